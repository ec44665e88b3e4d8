package condition

import "slices"

// HiddenGroups is why it is not known what a change of a row means, of whose group HAVING decides.
const HiddenGroups = "HAVING hides groups"

// HiddenRows is the same where a comparison with what a subquery counts decides.
const HiddenRows = "a comparison with what a subquery counts hides rows"

// OfGroups is the condition that a row is of a group that the answer shows, by the column that makes the groups; of other rows it is not certain. The groups are the
// first list of the answer, see Listed.
func OfGroups(kind Kind, column string) Condition {
	return Condition{Op: "or", Args: []Condition{Listed(kind, column, 0), Unknown(HiddenGroups)}}
}

// NoGroups is OfGroups where the answer does not tell them, for one of these reasons.
func NoGroups(why string) Condition {
	return Condition{Op: "or", Args: []Condition{Never, Unknown("%s", why)}}
}

// Groups gives the condition on rows beside which OfGroups stands, and the one of the groups; without an operator if it does not stand there.
func (c Condition) Groups() (rows, groups Condition) {
	all := []Condition{c}
	if c.Op == "and" {
		all = c.Args
	}
	for i, a := range all {
		if a.Op == "or" && len(a.Args) == 2 && a.Args[1].Op == "unsure" && (a.Args[1].Reason == HiddenGroups || a.Args[1].Reason == HiddenRows) {
			return And(slices.Concat(all[:i], all[i+1:])...), a.Args[0]
		}
	}
	return c, Condition{}
}

// Partial reports whether a part of the condition is not evaluated.
func (c Condition) Partial() bool {
	return c.Op == "unsure" || slices.ContainsFunc(c.Args, Condition.Partial)
}
