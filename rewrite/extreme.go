package rewrite

import (
	"strconv"

	"wirecheck/statement/condition"
)

// Extreme is the greatest value of a column of whole numbers, or the least, where the only cell of the answer shows it: SELECT MAX(n), or
// SELECT COALESCE(MAX(n), 0) + 1. The values are in the form of those of an Ask.
type Extreme struct {
	Column  string
	Least   bool
	Instead condition.Value // what it is without rows (COALESCE); nil: NULL
	Plus    condition.Value // what is added to the greatest value, or taken from the least one; nil: nothing
}

// ShowsExtreme reports whether the number that the answer shows decides what it rests on.
func (p *Plan) ShowsExtreme() bool { return len(p.Asks) == 1 && p.Asks[0].Extreme != nil }

// Decides gives the part of a condition that decides the answer: rows with smaller values than the greatest one do not, whether they come or go. shown is the number
// that the cell shows. ok is false where the answer may be that of no rows, or the values are not known.
func (e *Extreme) Decides(where condition.Condition, shown string) (decides condition.Condition, ok bool) {
	n, err := strconv.ParseInt(shown, 10, 64)
	plus, known := whole(e.Plus)
	if err != nil || !known || n > maxExtreme || n < -maxExtreme {
		return where, false
	}
	op := ">="
	if e.Least {
		plus, op = -plus, "<="
	}
	n -= plus
	if instead, known := whole(e.Instead); e.Instead != nil && (!known || n == instead) {
		return where, false
	}
	text := strconv.FormatInt(n, 10)
	return condition.And(where, condition.Compare(op, condition.Number, e.Column, &text)), true
}

const maxExtreme = 1 << 53

// whole is a whole number of modest size; nil is 0.
func whole(v condition.Value) (n int64, ok bool) {
	if v == nil {
		return 0, true
	}
	text, ok := condition.Constant(*v)
	n, err := strconv.ParseInt(text, 10, 32)
	return n, ok && err == nil
}

// mapped gives the Extreme with other values.
func (e *Extreme) mapped(to func(condition.Value) condition.Value) *Extreme {
	if e == nil {
		return nil
	}
	other := *e
	other.Instead, other.Plus = to(e.Instead), to(e.Plus)
	return &other
}
