package condition

import (
	"math/big"
	"slices"
	"strings"
)

// Term is a value that is computed from columns and constants, and compared in place of a column.
type Term struct {
	// Fn is sum, of numbers; coalesce; range, of two bounds and the text that says which of them belong to it, as in [); period, of two ends; or one
	// of functions.
	Fn   string
	Args []Arg
}

// Arg is a column, another term or, without these, a constant in the form of Open.
type Arg struct {
	Minus  bool // of a sum
	Column string
	Term   *Term
	Value  Value
}

// Function is the function of arguments; nil where one of them is nil, as it is not certain, or none of them has a column.
func Function(fn string, args ...*Arg) *Term {
	t, columns := &Term{Fn: fn}, false
	for _, arg := range args {
		if arg == nil {
			return nil
		}
		columns = columns || arg.Column != "" || arg.Term != nil
		t.Args = append(t.Args, *arg)
	}
	if !columns {
		return nil
	}
	return t
}

// maxSum is how many columns and constants a sum has at most.
const maxSum = 8

// Add adds an argument to a sum; false: there are too many.
func (t *Term) Add(a Arg) bool {
	t.Args = append(t.Args, a)
	return len(t.Args) <= maxSum
}

// OpenTerm is Open with a term in place of the column.
func OpenTerm(op string, kind Kind, t *Term, values ...Value) Condition {
	c := Open(op, kind, "", values...)
	c.Term = t
	return c
}

// value computes the term; known is false if it cannot be told.
func (t *Term) value(image Image) (v Value, known bool) {
	args := make([]Value, len(t.Args))
	for i, a := range t.Args {
		if args[i], known = a.Value, true; a.Column != "" {
			args[i], known = image[a.Column]
		} else if a.Term != nil {
			args[i], known = a.Term.value(image)
		}
		if !known {
			return nil, false
		}
	}
	switch t.Fn {
	case "sum":
		return t.sum(args)
	case "coalesce":
		for _, v := range args {
			if v != nil {
				return v, true
			}
		}
		return nil, true
	case "range", "period":
		kinds := "[]"
		if t.Fn == "period" {
			known = len(args) == 2 && args[0] != nil && args[1] != nil
		} else if known = len(args) == 3 && args[2] != nil; known {
			kinds = *args[2]
		}
		if !known {
			return nil, false
		}
		text, ok := joinRange(args[0], args[1], kinds)
		return &text, ok
	}
	f := functions[t.Fn]
	var texts []string
	for _, v := range args {
		if v == nil {
			return nil, true
		}
		texts = append(texts, *v)
	}
	switch {
	case (t.Fn == "->" || t.Fn == "->>") && len(texts) == 2:
		return member(texts[0], t.Fn == "->>", texts[1])
	case t.Fn == "#>>" && len(texts) == 2:
		return path(texts[0], texts[1])
	}
	if f.of == nil || len(args) < f.least || len(args) > f.most {
		return nil, false
	}
	text, ok := f.of(texts)
	return &text, ok
}

// maxDigits is how many digits a number has at most that is added.
const maxDigits = 100

func (t *Term) sum(args []Value) (Value, bool) {
	total, scale := new(big.Rat), 0
	for i, v := range args {
		if v == nil {
			return nil, true
		}
		d, ok := decimal(*v)
		if !ok || len(*v) > maxDigits {
			return nil, false
		}
		n, ok := new(big.Rat).SetString(*v)
		if !ok {
			return nil, false
		}
		if t.Args[i].Minus {
			n.Neg(n)
		}
		total.Add(total, n)
		scale = max(scale, len(d.part))
	}
	text := total.FloatString(scale)
	return &text, true
}

// mapped gives the term with each of its constants replaced.
func (t *Term) mapped(to func(Value) Value) *Term {
	if t == nil {
		return nil
	}
	out := &Term{t.Fn, slices.Clone(t.Args)}
	for i := range out.Args {
		if a := &out.Args[i]; a.Term != nil {
			a.Term = a.Term.mapped(to)
		} else if a.Column == "" {
			a.Value = to(a.Value)
		}
	}
	return out
}

// HasNull reports whether one of the constants is NULL.
func (t *Term) HasNull() bool {
	return slices.ContainsFunc(t.Args, func(a Arg) bool {
		return a.Term != nil && a.Term.HasNull() || a.Term == nil && a.Column == "" && a.Value == nil
	})
}

func (t *Term) size() (n int) {
	const arg = 48
	for _, a := range t.Args {
		if n += arg + len(a.Column); a.Value != nil {
			n += len(*a.Value)
		}
		if a.Term != nil {
			n += a.Term.size()
		}
	}
	return n
}

// columns calls yield with each column of the term.
func (t *Term) columns(yield func(string)) {
	for _, a := range t.Args {
		if a.Term != nil {
			a.Term.columns(yield)
		} else if a.Column != "" {
			yield(a.Column)
		}
	}
}

// append writes the text form: a list that begins with the function. A column has + or - in front, a constant = or ~. A term is a list; one that is
// subtracted has - in front.
func (t *Term) append(b []byte) []byte {
	b = append(append(b, '('), t.Fn...)
	for _, a := range t.Args {
		if a.Term != nil {
			if b = append(b, ' '); a.Minus {
				b = append(b, '-')
			}
			b = a.Term.append(b)
			continue
		}
		sign, text := "+", a.Column
		if a.Column == "" {
			if sign = "="; a.Value != nil {
				text = *a.Value
			} else {
				sign = "0"
			}
		}
		if a.Minus {
			sign = map[string]string{"+": "-", "=": "~", "0": "0"}[sign]
		}
		word := sign + text
		b = appendWord(append(b, ' '), &word)
	}
	return append(b, ')')
}

// term reads the text form behind its parenthesis.
func (s *scanner) term(depth int) (*Term, error) {
	fn, err := s.word()
	if err != nil || fn == nil || depth > maxDepth || functions[*fn].of == nil && !slices.Contains([]string{"sum", "coalesce", "range", "period", "->", "->>", "#>>"}, *fn) {
		return nil, errForm
	}
	t := &Term{Fn: *fn}
	for !s.take(')') {
		minus := strings.HasPrefix(strings.TrimLeft(s.rest, " "), "-(") && s.take('-')
		if s.take('(') {
			inner, err := s.term(depth + 1)
			if err != nil {
				return nil, err
			}
			t.Args = append(t.Args, Arg{Minus: minus, Term: inner})
			continue
		}
		w, err := s.word()
		if err != nil || w == nil || *w == "" {
			return nil, errForm
		}
		a := Arg{Minus: (*w)[0] == '-' || (*w)[0] == '~'}
		text := (*w)[1:]
		switch (*w)[0] {
		case '+', '-':
			a.Column = text
		case '=', '~':
			a.Value = &text
		case '0':
		default:
			return nil, errForm
		}
		if a.Column == "" && strings.ContainsAny((*w)[:1], "+-") {
			return nil, errForm
		}
		t.Args = append(t.Args, a)
	}
	if len(t.Args) == 0 {
		return nil, errForm
	}
	return t, nil
}

// balanced is the comparison of a sum with 0 as people write it: what is subtracted stands at the other side.
func (t *Term) balanced(op string) string {
	var sides [2][]string
	for _, a := range t.Args {
		side := 0
		if a.Minus {
			side = 1
		}
		sides[side] = append(sides[side], a.words())
	}
	for i := range sides {
		if len(sides[i]) == 0 {
			sides[i] = []string{"0"}
		}
	}
	return strings.Join(sides[0], " + ") + " " + op + " " + strings.Join(sides[1], " + ")
}

// words is the argument as people write it, without its sign.
func (a Arg) words() string {
	switch {
	case a.Term != nil:
		return a.Term.words()
	case a.Column != "":
		return a.Column
	case a.Value != nil:
		return *a.Value
	}
	return "null"
}

// words is the term as people write it.
func (t *Term) words() string {
	var list []string
	sum := ""
	for i, a := range t.Args {
		text := a.words()
		list = append(list, text)
		switch {
		case a.Minus && i == 0:
			sum = "-" + text
		case a.Minus:
			sum += " - " + text
		case i == 0:
			sum = text
		default:
			sum += " + " + text
		}
	}
	switch t.Fn {
	case "sum":
		return sum
	case "range":
		if len(list) == 3 && len(list[2]) == 2 {
			return list[2][:1] + list[0] + ", " + list[1] + list[2][1:]
		}
	case "period":
		return "(" + strings.Join(list, ", ") + ")"
	case "utc":
		return list[0]
	case "extract":
		return "extract(" + strings.Join(list, " from ") + ")"
	case "plus", "minus":
		return list[0] + map[string]string{"plus": " + ", "minus": " - "}[t.Fn] + "interval '" + strings.Join(list[1:], " ") + "'"
	}
	if t.Fn == "->" || t.Fn == "->>" || t.Fn == "#>>" {
		return list[0] + t.Fn + "'" + strings.Join(list[1:], "") + "'"
	}
	if sign := signs[t.Fn]; sign != "" {
		return strings.Join(list, " "+sign+" ")
	}
	return t.Fn + "(" + strings.Join(list, ", ") + ")"
}

// signs are how people write some functions.
var signs = map[string]string{"concat": "||", "product": "*", "quotient": "/", "remainder": "%", "bitand": "&"}

// onDay is the comparison of the day of a date and time with a date: day= day< day<= day> day>=. The second value is the time zone, if one is named.
func onDay(c Condition, values []Value) Condition {
	op, day := strings.TrimPrefix(c.Reason, "day"), values[0]
	if len(values) > 1 && (values[1] == nil || !strings.EqualFold(*values[1], "UTC")) {
		return Unknown("the day of %s in a time zone other than UTC", c.Column)
	}
	if day == nil {
		return Compare("=", c.Kind, c.Column, nil)
	}
	next, ok := nextDay(*day)
	if !ok || !slices.Contains([]string{"=", "<", "<=", ">", ">="}, op) {
		return Unknown("the value of %s is not of a form that certainly compares", c.Column)
	}
	begin, end := *day+" 00:00:00", next+" 00:00:00"
	from, before := Compare(">=", c.Kind, c.Column, &begin), Compare("<", c.Kind, c.Column, &end)
	switch op {
	case "=":
		return Condition{Op: "and", Args: []Condition{from, before}}
	case "<":
		return Compare("<", c.Kind, c.Column, &begin)
	case "<=":
		return before
	case ">":
		return Compare(">=", c.Kind, c.Column, &end)
	}
	return from
}
