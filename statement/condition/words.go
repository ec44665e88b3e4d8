package condition

import (
	"cmp"
	"slices"
	"strings"
)

// Of is what the condition compares, in words: a column or a term.
func (c Condition) Of() string {
	if c.Term != nil {
		return c.Term.words()
	}
	return c.Column
}

// alternatives is the condition without alternatives that are not certain, if others are.
func (c Condition) alternatives() Condition {
	certain := slices.DeleteFunc(slices.Clone(c.Args), func(a Condition) bool { return a.Op == "unsure" })
	switch {
	case c.Op != "or" || len(certain) == 0:
	case len(certain) == 1:
		return certain[0]
	default:
		c.Args = certain
	}
	return c
}

// Words is the condition as people write it; those of Always if it holds for all rows. Of several alternatives, those that are not certain are left out: where it
// certainly holds, another one does. Whether the server checked foreign keys is left out, too, as no statement asks that.
func (c Condition) Words() string {
	c = c.alternatives()
	switch {
	case c.Op == "true", c.Column == ForeignKeys:
		return Always.Op
	}
	switch c.Op {
	case "and", "or":
		var list []string
		for _, a := range c.Args {
			a = a.alternatives()
			w := a.Words()
			if w == Always.Op && c.Op == "or" {
				return w
			} else if w == Always.Op {
				continue
			}
			if len(a.Args) > 1 && a.Op != c.Op {
				w = "(" + w + ")"
			}
			list = append(list, w)
		}
		return cmp.Or(strings.Join(list, " "+c.Op+" "), Always.Op)
	case "not":
		return c.Args[0].denied()
	case "null":
		return c.Of() + " is null"
	case "unsure":
		return "..."
	}
	of := c.Of()
	var list []string
	for _, v := range c.Values {
		switch {
		case v == nil:
			list = append(list, "null")
		case c.Op == "prefix":
			list = append(list, "'"+*v+"%'")
		case c.Op == "overlaps":
			from, to, _, _, _ := splitRange(*v)
			list = append(list, "('"+from+"', '"+to+"')")
		case c.Kind.Bounds() != "":
			list = append(list, "'"+strings.ReplaceAll(*v, `"`, "")+"'")
		case c.Kind == Number || c.Kind == Bool || c.Kind == NumberArray && c.Op == "member":
			list = append(list, *v)
		default:
			list = append(list, "'"+*v+"'")
		}
	}
	if c.Term != nil && c.Term.Fn == "sum" && list[0] == "0" {
		return c.Term.balanced(c.Op)
	}
	switch c.Op {
	case "modulo":
		return of + " % " + list[0] + " = " + list[1]
	case "alike":
		return "lower(" + of + ") = lower(" + list[0] + ")"
	case "in":
		return of + " in (" + strings.Join(list, ", ") + ")"
	case "member":
		return list[0] + " = any(" + of + ")"
	case "has":
		return of + " @> " + list[0]
	case "prefix":
		return of + " like " + list[0]
	}
	return of + " " + c.Op + " " + list[0]
}

// denied is NOT c as people write it.
func (c Condition) denied() string {
	switch words := c.Words(); c.Op {
	case "null":
		return c.Of() + " is not null"
	case "in", "like", "ilike", "prefix":
		op := strings.Replace(c.Op, "prefix", "like", 1)
		return c.Of() + " not " + op + strings.TrimPrefix(words, c.Of()+" "+op)
	case "=":
		if c.Term == nil {
			return c.Of() + " <> " + strings.TrimPrefix(words, c.Of()+" = ")
		}
		fallthrough
	default:
		return "not (" + words + ")"
	}
}
