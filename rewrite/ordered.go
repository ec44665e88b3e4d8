package rewrite

import (
	"slices"

	"wirecheck/statement/condition"
)

// A query for the first rows in an order, as for the last number or a page of a list, asks for fewer rows than its WHERE says:
//
//	SELECT n FROM invoice WHERE shop = 3 ORDER BY n DESC LIMIT 1
//	SELECT * FROM product WHERE active ORDER BY name, id LIMIT 20 OFFSET 40
//
// LIMIT hides rows, but none that stands before the last row of the answer. Hidden columns tell what orders that one. OFFSET leaves out rows in front, but shows
// whether there is one more, or one less: the others move. One that stays in front of the last row, but elsewhere, may be on the page then; that is counted. Without
// an order, any rows are a right answer, so nothing is certain of those that are hidden.

// Ordered is a column that orders the rows of one table; Op is < if its values ascend, and > if they descend.
type Ordered struct {
	Op, Name string
	Kind     condition.Kind
	First    bool // NULL comes first, else last, or there is none
}

// MaxOrdered is how many columns of an order are told at most.
const MaxOrdered = 4

// Beyond gives the condition that a row stands before the last one of the answer (Ask.Beyond), if list k becomes known as the values of column k. whole says that the
// columns hold a whole key, and all that there are no others. alike is not certain of rows that may be before the last one, too: OFFSET may leave them out.
func Beyond(columns []Ordered, whole, all bool) (before, alike condition.Condition) {
	before.Op, alike = "or", condition.Never
	var same []condition.Condition
	for k, c := range columns {
		before.Args = append(before.Args, condition.And(append(slices.Clone(same), condition.Before(c.Op, c.First, c.Kind, c.Name, k))...))
		same = append(same, condition.Before("=", false, c.Kind, c.Name, k))
	}
	ties := condition.And(append(same, condition.Unknown("the order of rows beside the last one"))...)
	switch {
	case whole:
	case all:
		alike = ties
	default:
		before.Args = append(before.Args, ties)
	}
	if len(before.Args) == 1 {
		before = before.Args[0]
	}
	return before, alike
}

// UpToKey gives the columns of an order up to those that hold a whole key, behind which no others matter. whole is false if they do not.
func UpToKey(columns []Ordered, key []string) (upTo []Ordered, whole bool) {
	columns = columns[:min(len(columns), MaxOrdered)]
	for n := range columns {
		if len(key) > 0 && !slices.ContainsFunc(key, func(c string) bool {
			return !slices.ContainsFunc(columns[:n+1], func(o Ordered) bool { return o.Name == c })
		}) {
			return columns[:n+1], true
		}
	}
	return columns, false
}
