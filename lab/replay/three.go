package replay

import (
	"slices"

	"wirecheck/trace/lex"
)

// MeetingOfThree chooses units of three shapes to execute together: two that were chosen for their pair (Meetings), and of the third shape one that names
// most of the rows that they name. ok reports whether there are three.
func MeetingOfThree(shapes [3]*Shape, pair func(a, b *Shape) []Meeting, d lex.Dialect) (best Meeting, ok bool) {
	most := -1
	for last, c := range shapes {
		a, b := shapes[(last+1)%3], shapes[(last+2)%3]
		if a == c || b == c && a != b { // of a shape that is there twice, both are in the pair
			continue
		}
		for _, two := range pair(a, b) {
			u, rows := c.near(two.Units, [2]*Shape{a, b})
			if u == nil {
				continue
			}
			if n := len(rows) + len(two.Rows); n > most {
				most = n
				best = Meeting{Group: Together(append(slices.Clone(two.Units), u), d), Rows: two.Rows, Copied: two.Copied}
			}
		}
	}
	return best, most >= 0
}

// near is the unit of a shape that names most of the rows that two others name, and the nearest of these; nil: it has no other ones.
func (s *Shape) near(two []*Unit, of [2]*Shape) (best *Unit, rows []string) {
	distance := 0
	for _, u := range s.Units[:min(len(s.Units), unitsCompared)] {
		if slices.Contains(two, u) {
			continue
		}
		var shared []string
		far := 0
		for i, o := range two {
			other := of[0]
			if other.rows[o] == nil {
				other = of[1]
			}
			names := other.rows[o]
			if names == nil { // a copy of the other one, which names the same rows
				names = other.rows[two[1-i]]
			}
			shared = append(shared, common(s.rows[u], names, s.Shared(other))...)
			far += max(u.first-o.first%later, o.first%later-u.first)
		}
		if best == nil || len(shared) > len(rows) || len(shared) == len(rows) && far < distance {
			best, rows, distance = u, shared, far
		}
	}
	return best, rows
}
