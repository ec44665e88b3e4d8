package rewrite

import "sort"

// Literal is the place of one literal in a text.
type Literal struct{ At, End int }

// Shift moves places of one text to those of another one that differs in its literals only.
type Shift struct{ From, To []Literal }

// Place gives the place in the other text of a place that is not inside of a literal.
func (s Shift) Place(at int) int {
	next := sort.Search(len(s.From), func(i int) bool { return s.From[i].End > at })
	if next == 0 {
		return at
	}
	return at + s.To[next-1].End - s.From[next-1].End
}
