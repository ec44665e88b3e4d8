package condition

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Groups are what an answer rests on where a condition on aggregates decides whether it shows a group of rows: HAVING, or a comparison with a subquery that counts.
// What is known of each group tells whether a change of its rows changes the answer. The text form is
//
//	(groups [fixed] [shows] (by COLUMN...) (of AGGREGATE...) HAVING (VALUE...)...)
//
// where HAVING is a condition on the columns and the aggregates, and each list of values is a group: those of the columns, then those of the aggregates.
type Groups struct {
	By []string // the columns that make the groups
	// Of are the aggregates: count(*) first, then count(column), sum(column), min(column) and max(column). With any of a column there is its count. A name alone is a value
	// with which they are compared.
	Of     []string
	Having Condition
	Fixed  bool // there are no other groups than the known ones, and these are there without rows, too
	Shows  bool // the answer shows aggregates of the groups for which Having holds
	Known  [][]Value
}

// Where gives the groups with another condition; nil stays nil.
func (g *Groups) Where(having func(Condition) Condition) *Groups {
	if g == nil {
		return nil
	}
	out := *g
	out.Having = having(g.Having)
	return &out
}

// CountAll is the aggregate that counts the rows of a group.
const CountAll = "count(*)"

// Want adds an aggregate of a column, and its count.
func (g *Groups) Want(fn, column string) (name string) {
	if len(g.Of) == 0 {
		g.Of = []string{CountAll}
	}
	for _, name = range []string{"count(" + column + ")", fn + "(" + column + ")"} {
		if !slices.Contains(g.Of, name) {
			g.Of = append(g.Of, name)
		}
	}
	return name
}

// Aggregate takes the name of an aggregate apart; the column is * if it counts rows.
func Aggregate(name string) (fn, column string) {
	fn, column, _ = strings.Cut(strings.TrimSuffix(name, ")"), "(")
	return fn, column
}

// Columns calls yield with each column of the rows that the groups need.
func (g *Groups) Columns(yield func(string)) {
	if g == nil {
		return
	}
	for _, c := range g.By {
		yield(c)
	}
	for _, name := range g.Of {
		if _, c := Aggregate(name); c != "*" && c != "" {
			yield(c)
		}
	}
}

// With gives the groups with what is known of them: a JSON array of texts for each. ok is false if it is not understood.
func (g *Groups) With(list []Value) (known *Groups, ok bool) {
	out := *g
	for _, v := range list {
		var values []Value
		if v == nil || json.Unmarshal([]byte(*v), &values) != nil || len(values) != len(g.By)+len(g.Of) {
			return nil, false
		}
		out.Known = append(out.Known, values)
	}
	return &out, list != nil
}

// maxGroups is how many groups are computed at most.
const maxGroups = 200

// Computed gives the groups with the aggregates of rows, which are all that there are; ok is false if they are too many, or a value is not known.
func (g *Groups) Computed(rows []Image) (known *Groups, ok bool) {
	out := *g
	by := map[string][]Image{}
	var keys [][]Value
	for _, row := range rows {
		key, ok := g.Key(row)
		if !ok {
			return nil, false
		}
		text := KeyText(key)
		if by[text] == nil {
			keys = append(keys, key)
		}
		by[text] = append(by[text], row)
	}
	for _, key := range keys {
		image := g.changed(g.none(), nil, by[KeyText(key)])
		for _, name := range g.Of {
			v, known := image[name]
			if !known {
				return nil, false
			}
			key = append(key, v)
		}
		out.Known = append(out.Known, key)
	}
	return &out, len(keys) <= maxGroups
}

// none are the aggregates of no rows.
func (g *Groups) none() Image {
	zero, image := "0", Image{}
	for _, name := range g.Of {
		if image[name] = nil; strings.HasPrefix(name, "count(") {
			image[name] = &zero
		}
	}
	return image
}

// OfAggregates reports whether the condition is on aggregates alone, so that it needs the rows.
func (g *Groups) OfAggregates() bool {
	if g == nil {
		return false
	}
	of := true
	g.Having.Columns(func(c string) { of = of && !slices.Contains(g.By, c) })
	return of && len(g.Having.Reasons()) == 0
}

// Key gives the group of a row; ok is false if a column is not known.
func (g *Groups) Key(row Image) (key []Value, ok bool) {
	for _, c := range g.By {
		v, known := row[c]
		if !known {
			return nil, false
		}
		key = append(key, v)
	}
	return key, true
}

// KeyText is a text for a group, which no other one has.
func KeyText(key []Value) string {
	var b []byte
	for _, v := range key {
		b = append(appendWord(b, v), ' ')
	}
	return string(b)
}

// Changes reports whether it changes the answer if rows leave the group and others come.
func (g *Groups) Changes(key []Value, leave, come []Image) Truth {
	i := slices.IndexFunc(g.Known, func(known []Value) bool { return KeyText(known[:len(g.By)]) == KeyText(key) })
	if i < 0 && g.Fixed {
		return False
	}
	image := g.none()
	for k, name := range g.Of {
		if i >= 0 {
			image[name] = g.Known[i][len(g.By)+k]
		}
	}
	before, after := g.holds(key, image), g.holds(key, g.changed(image, leave, come))
	switch {
	case before == Unsure || after == Unsure:
		return Unsure
	case before != after:
		return True
	}
	return truth(before == True && g.Shows && len(leave) != len(come))
}

// holds reports whether the answer has the group.
func (g *Groups) holds(key []Value, image Image) Truth {
	n, ok := Integer(image[CountAll])
	if !ok || n < 0 {
		return Unsure
	}
	if n == 0 && !g.Fixed {
		return False
	}
	for i, c := range g.By {
		image[c] = key[i]
	}
	if t := g.Having.Holds(image); t != Null {
		return t
	}
	return False
}

// changed are the aggregates of a group when rows have left it and others have come. What is not certain is not among them.
func (g *Groups) changed(was Image, leave, come []Image) Image {
	now := Image{}
	for _, name := range g.Of {
		fn, column := Aggregate(name)
		if column == "" {
			now[name] = was[name]
			continue
		}
		left, ok := valuesOf(leave, column)
		came, ok2 := valuesOf(come, column)
		if v, known := was[name]; ok && ok2 && known {
			if v, known = aggregated(fn, v, left, came, now["count("+column+")"]); known {
				now[name] = v
			}
		}
	}
	return now
}

// valuesOf are the values of a column that are not NULL; of * those of each row.
func valuesOf(rows []Image, column string) (list []string, ok bool) {
	for _, row := range rows {
		v, known := row[column]
		switch {
		case column == "*":
			list = append(list, "")
		case !known:
			return nil, false
		case v != nil:
			list = append(list, *v)
		}
	}
	return list, true
}

// aggregated is an aggregate when values have left and others have come; count is how many there are now. ok is false if it is not certain.
func aggregated(fn string, was Value, left, came []string, count Value) (now Value, ok bool) {
	if fn == "count" {
		n, ok := Integer(was)
		text := strconv.FormatInt(n+int64(len(came)-len(left)), 10)
		return &text, ok
	}
	n, ok := Integer(count)
	switch {
	case !ok || n < 0:
		return nil, false
	case n == 0:
		return nil, true
	case fn == "sum":
		return summed(was, left, came)
	}
	less := map[string]string{"min": "<", "max": ">"}[fn]
	for _, v := range left {
		if was == nil || Number.compare(less, was, &v) != True { // it may have been the last one with that value
			return nil, false
		}
	}
	for _, v := range came {
		if was == nil {
			was = &v
			continue
		}
		switch Number.compare(less, &v, was) {
		case True:
			was = &v
		case False:
		default:
			return nil, false
		}
	}
	return was, less != "" && was != nil
}

// summed is a sum when numbers have left it and others have come.
func summed(was Value, left, came []string) (Value, bool) {
	term := &Term{Fn: "sum"}
	var values []Value
	add := func(v Value, minus bool) {
		term.Args, values = append(term.Args, Arg{Minus: minus}), append(values, v)
	}
	if was != nil {
		add(was, false)
	}
	for _, v := range left {
		add(&v, true)
	}
	for _, v := range came {
		add(&v, false)
	}
	return term.sum(values)
}

// Text is the text form.
func (g *Groups) Text() string {
	b := []byte("(groups")
	if g.Fixed {
		b = append(b, " fixed"...)
	}
	if g.Shows {
		b = append(b, " shows"...)
	}
	words := func(first string, list []Value) {
		b = append(append(b, " ("...), first...)
		for i, v := range list {
			if i > 0 || first != "" {
				b = append(b, ' ')
			}
			b = appendWord(b, v)
		}
		b = append(b, ')')
	}
	words("by", texts(g.By))
	words("of", texts(g.Of))
	b = g.Having.append(append(b, ' '))
	for _, known := range g.Known {
		words("", known)
	}
	return string(append(b, ')'))
}

func texts(list []string) (values []Value) {
	for i := range list {
		values = append(values, &list[i])
	}
	return values
}

// ParseGroups reads the text form.
func ParseGroups(text string) (*Groups, error) {
	s := scanner{text}
	g := &Groups{}
	if !s.take('(') {
		return nil, errForm
	}
	for first := true; !s.at('('); first = false {
		w, err := s.word()
		switch {
		case err != nil || w == nil || first != (*w == "groups"):
			return nil, errForm
		case *w == "fixed":
			g.Fixed = true
		case *w == "shows":
			g.Shows = true
		case !first:
			return nil, errForm
		}
	}
	for _, list := range []struct {
		first string
		to    *[]string
	}{{"by", &g.By}, {"of", &g.Of}} {
		words, err := s.words()
		if err != nil || len(words) == 0 || slices.Contains(words, nil) || *words[0] != list.first {
			return nil, errForm
		}
		for _, w := range words[1:] {
			*list.to = append(*list.to, *w)
		}
	}
	var err error
	if g.Having, err = s.condition(0); err != nil || len(g.Of) == 0 || g.Of[0] != CountAll {
		return nil, errForm
	}
	for !s.take(')') {
		known, err := s.words()
		if err != nil || len(known) != len(g.By)+len(g.Of) {
			return nil, errForm
		}
		g.Known = append(g.Known, known)
	}
	if strings.TrimSpace(s.rest) != "" {
		return nil, errForm
	}
	return g, nil
}

// at reports whether c comes next.
func (s *scanner) at(c byte) bool {
	s.rest = strings.TrimLeft(s.rest, " ")
	return s.rest == "" || s.rest[0] == c
}

// words reads a list of words in parentheses.
func (s *scanner) words() (list []Value, err error) {
	if !s.take('(') {
		return nil, errForm
	}
	for !s.take(')') {
		w, err := s.word()
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}
