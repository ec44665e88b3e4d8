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

// Ring chooses three units of a shape of which each two name a row that the third does not: each reads what another one writes, and any two of them may be
// serializable. ok reports whether there are three; of several, those that are nearest to each other are taken.
func (s *Shape) Ring(d lex.Dialect) (m Meeting, ok bool) {
	tables := s.Shared(s)
	units := s.Units[:min(len(s.Units), unitsCompared)]
	alone := func(a, b, without *Unit) (rows []string) {
		return slices.DeleteFunc(common(s.rows[a], s.rows[b], tables), func(row string) bool { return s.rows[without][row] })
	}
	distance := 0
	for i, u := range units {
		for j, v := range units[:i] {
			if len(common(s.rows[u], s.rows[v], tables)) == 0 {
				continue
			}
			for _, w := range units[:j] {
				far := max(u.first, v.first, w.first) - min(u.first, v.first, w.first)
				if ok && far >= distance {
					continue
				}
				x, y, z := alone(u, v, w), alone(v, w, u), alone(w, u, v)
				if len(x) > 0 && len(y) > 0 && len(z) > 0 {
					m, ok, distance = Meeting{Group: Together([]*Unit{w, v, u}, d), Rows: slices.Concat(x, y, z)}, true, far
				}
			}
		}
	}
	return m, ok
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
