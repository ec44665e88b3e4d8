// Package condition evaluates simple SQL conditions on images of row versions, where the result is certain to be the server's.
// What it cannot decide with certainty it does not decide: the truth value Unsure stands for it.
//
// A condition has a text form, in which a history keeps it. It is a list in parentheses that begins with the operator:
//
//	(and X...)  (or X...)  (not X)  (true)
//	(= KIND COLUMN VALUE)     also <>, <, <=, >, >=
//	(in KIND COLUMN VALUE...)
//	(prefix KIND COLUMN VALUE)   LIKE 'value%'
//	(like KIND COLUMN VALUE)     LIKE with another pattern, without escapes; ilike: the letters are equal but for case
//	(alike KIND COLUMN VALUE)    LOWER(COLUMN) = LOWER(VALUE), UPPER, ILIKE without wildcards: text that is equal but for case
//	(modulo number COLUMN DIVISOR VALUE)   COLUMN % DIVISOR = VALUE, of integers
//	(&& KIND COLUMN VALUE)       of ranges; also @> and <@; has: the range COLUMN contains the one value
//	(member KIND COLUMN VALUE)   VALUE = ANY (COLUMN); arrays also have &&, @> and <@, documents (json) @> and ?
//	(overlaps KIND TERM VALUE)   (begin, end) OVERLAPS (begin, end), of moments
//	(null COLUMN)                IS NULL, of a TERM too
//	(unsure REASON)              what is not evaluated, and why
//
// A TERM may stand for a COLUMN, see Term: (sum +n -reserved). KIND says how the values of the column compare.
// A word with blanks, parentheses or quotes is quoted as in Go, and so is
// the word null where it is not NULL. An image is a list of columns and their values: `room 1 guest null`.
package condition

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Truth is a truth value of SQL, or Unsure.
type Truth uint8

// The truth values.
const (
	False Truth = iota
	Null
	True
	Unsure
)

// Value is a value of a column as text; nil is NULL.
type Value = *string

// ForeignKeys names what the image of a new row may tell besides its columns: 1 if the server checked its foreign keys (MySQL family).
const ForeignKeys = "@@foreign_key_checks"

// Condition is one operator with its operands. Its fields must not be changed once it is used.
type Condition struct {
	Op     string
	Kind   Kind
	Column string
	Term   *Term // in place of the column; nil if there is none
	Values []Value
	Args   []Condition
	Reason string // of unsure
}

// Size is roughly the room that a condition takes, in bytes.
func (c *Condition) Size() int {
	const node, value = 128, 32
	n := node
	if c.Term != nil {
		n += c.Term.size()
	}
	for _, v := range c.Values {
		if n += value; v != nil {
			n += len(*v)
		}
	}
	for i := range c.Args {
		n += c.Args[i].Size()
	}
	return n
}

// Always is the condition that holds for all rows, and Never the one that holds for none.
var (
	Always = Condition{Op: "true"}
	Never  = Not(Always)
)

// IsNever reports whether a condition is Never.
func (c *Condition) IsNever() bool { return c.Op == "not" && c.Args[0].Op == Always.Op }

// Not is the condition that holds where c is false.
func Not(c Condition) Condition { return Condition{Op: "not", Args: []Condition{c}} }

// Unknown is a condition that cannot be evaluated.
func Unknown(format string, args ...any) Condition {
	return Condition{Op: "unsure", Reason: fmt.Sprintf(format, args...)}
}

// equating are the comparisons that need no order of the values, and matching those of text alone.
var (
	equating = []string{"=", "<>", "in", "alike", "prefix", "like", "ilike", "modulo"}
	matching = []string{"alike", "prefix", "like", "ilike"}
)

// ranging are the comparisons of ranges, besides those for equality.
var ranging = []string{"&&", "@>", "<@", "has"}

// Compare compares a column with a value. A value that does not certainly mean the same to the server gives an Unknown condition.
func Compare(op string, kind Kind, column string, values ...Value) Condition {
	reads := kind.Reads
	switch op {
	case "has":
		reads = kind.Bounds().Reads
	case "overlaps":
		reads = func(text string) bool { return kind.overlaps(text, text) == True }
	case "member":
		reads = kind.Element().Reads
	case "?":
		reads = func(string) bool { return true }
	}
	for _, v := range values {
		if v != nil && !slices.Contains(matching, op) && !reads(*v) {
			return Unknown("the value of %s is not of a form that certainly compares", column)
		}
	}
	switch {
	case op == "modulo" && (len(values) != 2 || kind != Number || values[0] == nil || !integer(*values[0]) || strings.Trim(*values[0], "+-0") == ""):
		return Unknown("the divisor of %s is not certain", column)
	case kind == JSON && (op == "@>" || op == "?"), kind.Element() != "" && op != "?" && slices.Contains(containing, op):
	case slices.Contains(ranging, op):
		if kind.Bounds() == "" {
			return Unknown("%s is no range", column)
		}
	case kind.Bounds() != "" && !slices.Contains(equating, op):
		return Unknown("operator %s of ranges", op)
	case !kind.equates():
		return Unknown("%s has a type whose comparison is not certain", column)
	case slices.Contains(matching, op) && kind != Text && kind != Folded && !(kind == Bytes && (op == "like" || op == "prefix")):
		return Unknown("%s has no letters of certain case", column)
	case !slices.Contains(equating, op) && !kind.Orders():
		return Unknown("the order of %s depends on its collation", column)
	}
	return Condition{Op: op, Kind: kind, Column: column, Values: values}
}

// Reasons are why parts of the condition are not evaluated.
func (c *Condition) Reasons() (list []string) {
	if c.Op == "unsure" {
		return []string{c.Reason}
	}
	for i := range c.Args {
		list = append(list, c.Args[i].Reasons()...)
	}
	return list
}

// Columns calls yield with each column that the condition needs.
func (c *Condition) Columns(yield func(string)) {
	if c.Column != "" {
		yield(c.Column)
	}
	if c.Term != nil {
		c.Term.columns(yield)
	}
	for i := range c.Args {
		c.Args[i].Columns(yield)
	}
}

// Renamed gives the condition, which is on one column, as one on another column.
func (c Condition) Renamed(column string) Condition {
	if c.Term != nil {
		return Unknown("a comparison of something else than a column with values")
	}
	if c.Column != "" {
		c.Column = column
	}
	c.Args = slices.Clone(c.Args)
	for i := range c.Args {
		c.Args[i] = c.Args[i].Renamed(column)
	}
	return c
}

// Holds evaluates the condition on an image.
func (c *Condition) Holds(image Image) Truth {
	switch c.Op {
	case "true":
		return True
	case "and", "or":
		// Among three values, AND is the least and OR the greatest. What is unsure may be any of them.
		out, end := True, False
		if c.Op == "or" {
			out, end = False, True
		}
		unsure := false
		for i := range c.Args {
			t := c.Args[i].Holds(image)
			switch {
			case t == end:
				return end
			case t == Unsure:
				unsure = true
			case t == Null:
				out = Null
			}
		}
		if unsure {
			return Unsure
		}
		return out
	case "not":
		switch t := c.Args[0].Holds(image); t {
		case True:
			return False
		case False:
			return True
		default:
			return t
		}
	case "unsure":
		return Unsure
	}
	v, known := image[c.Column]
	if c.Term != nil {
		v, known = c.Term.value(image)
	}
	if !known {
		return Unsure
	}
	if c.Op == "null" {
		return truth(v == nil)
	}
	out := False
	if c.Op == "in" {
		for _, w := range c.Values {
			switch t := c.Kind.compare("=", v, w); {
			case t == True:
				return True
			case t > out:
				out = t
			}
		}
		return out
	}
	if c.Op == "modulo" {
		return modulo(v, c.Values[0], c.Values[1])
	}
	return c.Kind.compare(c.Op, v, c.Values[0])
}

func integer(s string) bool { _, err := strconv.ParseInt(s, 10, 64); return err == nil }

// modulo compares a remainder, which has the sign of what is divided.
func modulo(v, divisor, w Value) Truth {
	if v == nil || w == nil {
		return Null
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	d, err2 := strconv.ParseInt(*divisor, 10, 64)
	if err != nil || err2 != nil || d == 0 {
		return Unsure
	}
	rest := strconv.FormatInt(n%d, 10)
	return Number.compare("=", &rest, w)
}

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// And is the conjunction of conditions.
func And(list ...Condition) Condition {
	var all []Condition
	for _, c := range list {
		switch c.Op {
		case "and":
			all = append(all, c.Args...)
		case "true", "":
		default:
			if c.IsNever() {
				return Never
			}
			all = append(all, c)
		}
	}
	switch len(all) {
	case 0:
		return Always
	case 1:
		return all[0]
	}
	return Condition{Op: "and", Args: all}
}

// Constants is the comparison of two integers for equality, as 1 = 1 and 1 = 0, which programs write where there is no condition. The
// values are those of Open.
func Constants(a, b Value) Condition { return Open("constants", Number, "", a, b) }

func constants(a, b Value) Condition {
	if a == nil || b == nil || !integer(*a) || !integer(*b) {
		return Unknown("a comparison of values that are not integers")
	}
	if same := Compare("=", Number, "", b); same.Holds(Image{"": a}) == True {
		return Always
	}
	return Never
}

// inCase is LOWER(column) = v, or UPPER, or LIKE. Of a value with letters of the other case it says nothing.
func inCase(op string, kind Kind, column string, v Value) Condition {
	fn, like := strings.CutSuffix(op, " like")
	if v != nil && (!ascii(*v) || fn == "lower" && *v != strings.ToLower(*v) || fn == "upper" && *v != strings.ToUpper(*v)) {
		return Unknown("%s() of %s is compared with letters that it may not give", fn, column)
	}
	if like {
		return Like("ilike", kind, column, v)
	}
	return Compare("alike", kind, column, v)
}

// Like is LIKE with a pattern without escapes; op is like, or ilike if case does not matter.
func Like(op string, kind Kind, column string, pattern Value) Condition {
	switch {
	case pattern == nil:
		return Compare("=", kind, column, nil)
	case strings.Contains(*pattern, `\`):
		return Unknown("the pattern of LIKE has escapes")
	}
	wild := strings.IndexAny(*pattern, "%_")
	switch text := *pattern; {
	case op == "ilike" && wild < 0:
		op = "alike"
	case op == "like" && wild < 0:
		op = "="
	case op == "like" && wild == len(text)-1 && text[wild] == '%':
		text = text[:wild]
		op, pattern = "prefix", &text
	}
	return Compare(op, kind, column, pattern)
}

// Image has the values of some columns of a row version.
type Image map[string]Value

// AppendColumn appends a column and its value to the text form of an image.
func AppendColumn(b []byte, column string, v Value) []byte {
	if len(b) > 0 {
		b = append(b, ' ')
	}
	b = append(appendWord(b, &column), ' ')
	return appendWord(b, v)
}

func appendWord(b []byte, v Value) []byte {
	switch {
	case v == nil:
		return append(b, "null"...)
	case *v == "" || *v == "null" || strings.ContainsFunc(*v, func(r rune) bool {
		return r <= ' ' || r > '~' || r == '(' || r == ')' || r == '"' || r == '\\'
	}):
		return strconv.AppendQuote(b, *v)
	}
	return append(b, *v...)
}

// ParseImage reads the text form of an image.
func ParseImage(text string) (Image, error) {
	s := scanner{text}
	out := Image{}
	for {
		column, err := s.word()
		if err == errEnd {
			return out, nil
		}
		if err != nil || column == nil {
			return nil, errForm
		}
		v, err := s.word()
		if err != nil {
			return nil, errForm
		}
		out[*column] = v
	}
}

// String is the text form.
func (c Condition) String() string { return string(c.append(nil)) }

func (c *Condition) append(b []byte) []byte {
	b = append(append(b, '('), c.Op...)
	if c.Kind != "" {
		b = append(append(b, ' '), c.Kind...)
	}
	if c.Term != nil {
		b = c.Term.append(append(b, ' '))
	}
	for _, w := range []string{c.Column, c.Reason} {
		if w != "" {
			b = appendWord(append(b, ' '), &w)
		}
	}
	for _, v := range c.Values {
		b = appendWord(append(b, ' '), v)
	}
	for i := range c.Args {
		b = c.Args[i].append(append(b, ' '))
	}
	return append(b, ')')
}

var (
	errForm = errors.New("not a condition, see package statement/condition")
	errEnd  = errors.New("end")
)

// maxDepth is how deep a condition may nest.
const maxDepth = 200

// Parse reads the text form.
func Parse(text string) (Condition, error) {
	s := scanner{text}
	c, err := s.condition(0)
	if err == nil && strings.TrimSpace(s.rest) != "" {
		err = errForm
	}
	return c, err
}

type scanner struct{ rest string }

func (s *scanner) take(c byte) bool {
	s.rest = strings.TrimLeft(s.rest, " ")
	if s.rest != "" && s.rest[0] == c {
		s.rest = s.rest[1:]
		return true
	}
	return false
}

// word reads a word; nil is null.
func (s *scanner) word() (Value, error) {
	s.rest = strings.TrimLeft(s.rest, " ")
	if s.rest == "" {
		return nil, errEnd
	}
	if s.rest[0] == '"' {
		q, err := strconv.QuotedPrefix(s.rest)
		if err != nil {
			return nil, errForm
		}
		s.rest = s.rest[len(q):]
		v, err := strconv.Unquote(q)
		return &v, err
	}
	i := strings.IndexAny(s.rest, " ()")
	if i < 0 {
		i = len(s.rest)
	}
	v := s.rest[:i]
	s.rest = s.rest[i:]
	if v == "" {
		return nil, errForm
	}
	if v == "null" {
		return nil, nil
	}
	return &v, nil
}

func (s *scanner) condition(depth int) (c Condition, err error) {
	if depth > maxDepth || !s.take('(') {
		return c, errForm
	}
	i := strings.IndexAny(s.rest, " )")
	if i < 0 {
		return c, errForm
	}
	c.Op, s.rest = s.rest[:i], s.rest[i:]
	text := func(to *string) {
		v, e := s.word()
		if e != nil || v == nil || *v == "" {
			err = errForm
			return
		}
		*to = *v
	}
	least, most := 0, 0 // values
	switch c.Op {
	case "and", "or", "not", "true":
		for !s.take(')') {
			a, err := s.condition(depth + 1)
			if err != nil {
				return c, err
			}
			c.Args = append(c.Args, a)
		}
		if c.Op == "not" && len(c.Args) != 1 || c.Op == "true" && len(c.Args) > 0 {
			err = errForm
		}
		return c, err
	case "unsure":
		text(&c.Reason)
	case "null", "=", "<>", "<", "<=", ">", ">=", "alike", "prefix", "like", "ilike", "in", "modulo", "&&", "@>", "<@", "has", "overlaps", "member", "?":
		if c.Op != "null" {
			if text((*string)(&c.Kind)); strings.Trim(string(c.Kind), "abcdefghijklmnopqrstuvwxyz") != "" {
				return c, errForm
			}
		}
		if s.take('(') {
			var e error
			if c.Term, e = s.term(0); e != nil {
				return c, e
			}
		} else {
			text(&c.Column)
		}
		least, most = 1, 1
		switch c.Op {
		case "null":
			least, most = 0, 0
		case "in":
			most = 1 << 20
		case "modulo":
			least, most = 2, 2
		}
	default:
		return c, errForm
	}
	for err == nil && !s.take(')') {
		v, e := s.word()
		if err = e; e == nil {
			c.Values = append(c.Values, v)
		}
	}
	if err != nil || len(c.Values) < least || len(c.Values) > most {
		return c, errForm
	}
	return c, nil
}

// Test is the condition IS TRUE or IS FALSE of a column, which has one of the two values, is and other say, or NULL. not stands for IS NOT.
func Test(column string, is, other Condition, not bool) Condition {
	null := Condition{Op: "null", Column: column}
	if not {
		return Condition{Op: "or", Args: []Condition{other, null}}
	}
	return Condition{Op: "and", Args: []Condition{is, Not(null)}}
}
