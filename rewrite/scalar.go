package rewrite

import "wirecheck/statement/condition"

// BehindComparison is why it is not known what a change in the table of a subquery means, with whose value a condition compares a column.
const BehindComparison = "a comparison with a subquery may come out the same behind a change"

// HiddenGroups is why it is not known what a change of a row means, of whose group HAVING decides.
const HiddenGroups = "HAVING hides groups"

// OfShownGroup is the condition that a row is of a group that the answer shows, by the column that makes the groups; of other rows it is not certain. The groups are the
// first list of the answer.
func OfShownGroup(kind condition.Kind, column string) condition.Condition {
	return condition.Condition{Op: "or", Args: []condition.Condition{condition.Listed(kind, column, 0), condition.Unknown(HiddenGroups)}}
}

// ReadMoments reads the values of the hidden columns that Plan.Moments counts, up to the first one that is not told.
func ReadMoments(cells [][]byte) (values []condition.Value) {
	for _, list := range ReadLists(cells) {
		if list == nil {
			break
		}
		values = append(values, list...)
	}
	return values
}
