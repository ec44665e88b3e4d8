package condition

import (
	"slices"
	"strconv"
	"strings"
)

// Bind gives the condition with parameter n (from 1) of Open replaced by what values gives; ok is false for a value that is not known.
func (c Condition) Bind(values func(n int) (v Value, ok bool)) Condition {
	return c.opened(func(c Condition) bool { return !slices.ContainsFunc(c.Values, later) }, func(c Condition) Condition { return c.bind(values) })
}

// later reports whether a value comes with the answer, see WithLists and At.
func later(v Value) bool { return v != nil && (*v)[0] == '#' || isMoment(v) }

// opened gives the condition with each part made by Open of which is holds replaced by what f gives. The arguments are copied only where one is.
func (c Condition) opened(is func(Condition) bool, f func(Condition) Condition) Condition {
	if c.Op == "parameters" && is(c) {
		return f(c)
	}
	if slices.ContainsFunc(c.Args, func(a Condition) bool { return a.open(is) }) {
		c.Args = slices.Clone(c.Args)
		for i := range c.Args {
			c.Args[i] = c.Args[i].opened(is, f)
		}
	}
	return c
}

// open reports whether a condition has a part made by Open of which is holds.
func (c Condition) open(is func(Condition) bool) bool {
	return c.Op == "parameters" && is(c) || slices.ContainsFunc(c.Args, func(a Condition) bool { return a.open(is) })
}

func (c Condition) bind(values func(n int) (v Value, ok bool)) Condition {
	unknown := ""
	value := func(v Value) Value {
		if v == nil {
			return nil
		}
		if text, ok := Constant(*v); ok {
			return &text
		}
		n, err := strconv.Atoi((*v)[1:])
		bound, ok := values(n)
		if err != nil || !ok {
			unknown = (*v)[1:]
		}
		return bound
	}
	out := make([]Value, len(c.Values))
	for i, v := range c.Values {
		out[i] = value(v)
	}
	term := c.Term.mapped(value)
	if unknown != "" {
		return Unknown("the value of parameter $%s is not known", unknown)
	}
	if term == nil {
		return c.compared(out)
	}
	c.Column = term.words()
	return c.compared(out).of(term)
}

// compared is Compare with the values that have become known.
func (c Condition) compared(values []Value) Condition {
	switch op := c.Reason; {
	case strings.HasSuffix(op, "like") && slices.Contains(values, nil):
		return Compare("=", c.Kind, c.Column, nil)
	case strings.HasSuffix(op, "like") && len(values) > 1 && strings.Contains(strings.ToLower(*values[0]), strings.ToLower(*values[1])):
		return Unknown("the pattern of LIKE has escapes")
	case op == "like", op == "ilike":
		return Like(op, c.Kind, c.Column, values[0])
	case op == "constants":
		return constants(values[0], values[1])
	case op == "lower", op == "upper", op == "lower like", op == "upper like":
		return inCase(op, c.Kind, c.Column, values[0])
	case strings.HasPrefix(op, "day"):
		return onDay(c, values)
	case op == "any":
		return c.any(values[0])
	case strings.HasPrefix(op, "elements "):
		c.Reason = op[len("elements "):]
		return c.compared([]Value{joined(values)})
	case op == "between":
		return And(Compare(">=", c.Kind, c.Column, values[0]), Compare("<=", c.Kind, c.Column, values[1]))
	case op == "distinct":
		return c.distinct(values[0])
	case op == "matches", op == "imatches":
		return c.matches(op, values[0])
	case op == "overlaps":
		return c.between(&Term{Fn: "period", Args: []Arg{{Value: values[0]}, {Value: values[1]}}})
	case c.Kind.Bounds() != "" && len(values) == 3 && op != "in":
		return c.between(&Term{Fn: "range", Args: []Arg{{Value: values[0]}, {Value: values[1]}, {Value: values[2]}}})
	}
	return Compare(c.Reason, c.Kind, c.Column, values...)
}

// Between is c AND upper, the two comparisons that BETWEEN stands for. MySQL and MariaDB compare all three values as one type (MySQL manual, 14.4.2), so neither
// is certain if the other one is not.
func (c Condition) Between(upper Condition) Condition {
	switch {
	case c.Op == "unsure":
		return c
	case upper.Op == "unsure":
		return upper
	case c.Op == "parameters" && c.Reason == ">=" && upper.Reason == "<=" && c.Term == nil && !slices.ContainsFunc(slices.Concat(c.Values, upper.Values), later):
		c.Reason, c.Values = "between", slices.Concat(c.Values, upper.Values)
		return c
	}
	return Condition{Op: "and", Args: []Condition{c, upper}}
}

// distinct is IS DISTINCT FROM, to which NULL is a value as others are.
func (c Condition) distinct(v Value) Condition {
	null := Condition{Op: "null", Column: c.Column}
	if v == nil {
		return Not(null)
	}
	return Condition{Op: "or", Args: []Condition{null, Condition{Op: "and", Args: []Condition{Not(null), Compare("<>", c.Kind, c.Column, v)}}}}
}

// matches is a match of a regular expression that is a text, with or without anchors at its ends (PostgreSQL manual, 9.7.3).
func (c Condition) matches(op string, pattern Value) Condition {
	if pattern == nil {
		return Compare("=", c.Kind, c.Column, nil)
	}
	text, begins := strings.CutPrefix(*pattern, "^")
	text, ends := strings.CutSuffix(text, "$")
	if !plain(text) || strings.ContainsAny(text, `.*+?()[]{}|\^$%_`) {
		return Unknown("a regular expression that is more than a text")
	}
	if !begins {
		text = "%" + text
	}
	if !ends {
		text += "%"
	}
	return Like(map[string]string{"matches": "like", "imatches": "ilike"}[op], c.Kind, c.Column, &text)
}

// any is the comparison for equality with one of the elements of an array.
func (c Condition) any(array Value) Condition {
	if array == nil {
		return Compare("=", c.Kind, c.Column, nil)
	}
	list, ok := elements(*array)
	switch {
	case !ok:
		return Unknown("an array whose elements are not certain")
	case (c.Kind == Text || c.Kind == Folded) && slices.Contains(list, nil):
		return Unknown("NULL in an array of texts, which may be a text (array_nulls)")
	case len(list) == 0:
		return Never
	}
	return Compare("in", c.Kind, c.Column, list...)
}

// joined is the text of an array of elements.
func joined(list []Value) Value {
	var words []string
	for _, v := range list {
		if v == nil {
			words = append(words, "NULL")
		} else {
			words = append(words, `"`+*v+`"`)
		}
	}
	text := "{" + strings.Join(words, ",") + "}"
	if slices.ContainsFunc(list, func(v Value) bool { return v != nil && strings.ContainsAny(*v, `"\`) }) {
		text = "" // it would need escapes
	}
	return &text
}

// elements reads the text of an array of one dimension (PostgreSQL manual, 8.15.6), without escapes in it.
func elements(s string) (list []Value, ok bool) {
	if len(s) < 2 || s[0] != '{' || s[len(s)-1] != '}' {
		return nil, false
	}
	for rest := s[1 : len(s)-1]; rest != ""; {
		var v string
		if quoted, isQuoted := strings.CutPrefix(rest, `"`); isQuoted {
			v, rest, ok = strings.Cut(quoted, `"`)
			if !ok || rest != "" && rest[0] != ',' {
				return nil, false
			}
		} else {
			v, rest, _ = strings.Cut(rest, ",")
			rest = "," + rest
			if v = strings.Trim(v, " \t\n\v\f\r"); v == "" || strings.ContainsAny(v, `{}"`) {
				return nil, false
			}
			if strings.EqualFold(v, "null") {
				list, rest = append(list, nil), strings.TrimPrefix(rest, ",")
				continue
			}
		}
		if strings.Contains(v, `\`) {
			return nil, false
		}
		list, rest = append(list, &v), strings.TrimPrefix(rest, ",")
	}
	return list, true
}

// between is the comparison with a range or a period that has constant ends.
func (c Condition) between(t *Term) Condition {
	v, known := t.value(nil)
	if !known {
		return Unknown("a %s whose ends are not certain", t.Fn)
	}
	return Compare(c.Reason, c.Kind, c.Column, v)
}

// of gives the condition with a term in place of the column.
func (c Condition) of(t *Term) Condition {
	if c.Column != "" {
		c.Column, c.Term = "", t
	}
	c.Args = slices.Clone(c.Args)
	for i := range c.Args {
		c.Args[i] = c.Args[i].of(t)
	}
	return c
}

// Mapped gives the condition with each constant and parameter of Open replaced.
func (c Condition) Mapped(to func(Value) Value) Condition {
	c.Args, c.Values, c.Term = slices.Clone(c.Args), slices.Clone(c.Values), c.Term.mapped(to)
	for i := range c.Args {
		c.Args[i] = c.Args[i].Mapped(to)
	}
	for i, v := range c.Values {
		c.Values[i] = to(v)
	}
	return c
}

// Constant is the constant that a value of Open is, if it is one.
func Constant(v string) (text string, ok bool) {
	if v[0] == '@' {
		v = v[strings.IndexByte(v, '='):]
	}
	return v[1:], v[0] == '='
}

// Whole reports whether a text is an integer that a double has, too, written as servers write it: so it compares with a number as the integer does,
// whether a server takes it for a text, a double or an integer.
func Whole(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && len(text) <= 15 && strconv.FormatInt(n, 10) == text
}

// Place is where the constant that a value of Open is stands in the text.
func Place(v string) (at int, ok bool) {
	if v[0] != '@' {
		return 0, false
	}
	at, err := strconv.Atoi(v[1:strings.IndexByte(v, '=')])
	return at, err == nil
}

// Open is Compare with values that become known later: $ and the number of a parameter, or = and a constant. The constant may have @
// and its place in the text in front.
func Open(op string, kind Kind, column string, values ...Value) Condition {
	return Condition{Op: "parameters", Reason: op, Kind: kind, Column: column, Values: values}
}

// Cased is the operator of Open for fn(column) = value or, if like, fn(column) LIKE value, where fn is lower or upper. same says that the value stands in the same
// function.
func Cased(fn string, like, same bool) string {
	switch {
	case like && same:
		return "ilike"
	case same:
		return "alike"
	case like:
		return fn + " like"
	}
	return fn
}

// Listed is the condition that a column has one of the values of a list that becomes known with the answer.
func Listed(kind Kind, column string, list int) Condition {
	v := "#" + strconv.Itoa(list)
	return Open("in", kind, column, &v)
}

// Barring is the condition that a row with a value keeps NOT IN from being true for one of the values of a list, see Listed: it is among them, or one of the two is
// NULL.
func Barring(kind Kind, column string, list int) Condition {
	c := Listed(kind, column, list)
	c.Reason = "barring"
	return c
}

// Before is the condition that a column stands before the last value of a list that becomes known with the answer, in an order that op is of: <, > or =. first says that
// NULL comes first there, else last.
func Before(op string, first bool, kind Kind, column string, list int) Condition {
	v := "#" + strconv.Itoa(list)
	if first {
		op += " null"
	}
	return Open(op, kind, column, &v)
}

// before is what Before is where the last value is known.
func (c Condition) before(last Value) Condition {
	null := Condition{Op: "null", Column: c.Column}
	op, first := strings.CutSuffix(c.Reason, " null")
	switch {
	case op == "=" && last == nil:
		return null
	case last == nil && first:
		return Never
	case last == nil:
		return Not(null)
	case first:
		return Condition{Op: "or", Args: []Condition{null, Compare(op, c.Kind, c.Column, last)}}
	}
	return Compare(op, c.Kind, c.Column, last)
}

// listed reports whether the condition is made by Listed or Before.
func listed(c Condition) bool { return c.Values[0] != nil && (*c.Values[0])[0] == '#' }

// WithoutLists gives the condition with parts that hold for any value in the place of those made by Listed that AND joins with the others.
func (c Condition) WithoutLists() Condition {
	if c.Op == "parameters" && listed(c) {
		null := Condition{Op: "null", Column: c.Column}
		return Condition{Op: "or", Args: []Condition{null, Not(null)}}
	}
	if c.Op != "and" {
		return c
	}
	args := make([]Condition, len(c.Args))
	for i, a := range c.Args {
		args[i] = a.WithoutLists()
	}
	return And(args...)
}

// WithLists gives the condition with the lists of Listed and Before; nil stands for one that is not known.
func (c Condition) WithLists(lists [][]Value) Condition {
	return c.opened(listed, func(c Condition) Condition { return c.listed(lists) })
}

func (c Condition) listed(lists [][]Value) Condition {
	i, err := strconv.Atoi((*c.Values[0])[1:])
	switch {
	case err != nil || i >= len(lists) || lists[i] == nil:
		return Unknown("the rows of a join were not listed")
	case c.Reason == "barring" && slices.Contains(lists[i], nil):
		return Always
	case c.Reason == "barring":
		return Condition{Op: "or", Args: []Condition{{Op: "null", Column: c.Column}, Listed(c.Kind, c.Column, i).listed(lists)}}
	case c.Reason != "in" && len(lists[i]) > 0:
		return c.before(lists[i][len(lists[i])-1])
	case len(lists[i]) == 0:
		return Never
	case len(lists[i]) == 1:
		return Compare("=", c.Kind, c.Column, lists[i][0])
	}
	return Compare("in", c.Kind, c.Column, lists[i]...)
}
