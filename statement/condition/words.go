package condition

import "strings"

// Words is the condition as people write it; empty if it holds for all rows.
func (c Condition) Words() string {
	switch c.Op {
	case "true":
		return ""
	case "and", "or":
		var list []string
		for _, a := range c.Args {
			w := a.Words()
			if len(a.Args) > 1 && a.Op != c.Op {
				w = "(" + w + ")"
			}
			list = append(list, w)
		}
		return strings.Join(list, " "+c.Op+" ")
	case "not":
		return "not (" + c.Args[0].Words() + ")"
	case "null":
		return c.Column + " is null"
	case "unsure":
		return "..."
	}
	var list []string
	for _, v := range c.Values {
		switch {
		case v == nil:
			list = append(list, "null")
		case c.Op == "prefix":
			list = append(list, "'"+*v+"%'")
		case c.Kind == Number || c.Kind == Bool:
			list = append(list, *v)
		default:
			list = append(list, "'"+*v+"'")
		}
	}
	switch c.Op {
	case "modulo":
		return c.Column + " % " + list[0] + " = " + list[1]
	case "alike":
		return "lower(" + c.Column + ") = lower(" + list[0] + ")"
	case "in":
		return c.Column + " in (" + strings.Join(list, ", ") + ")"
	case "prefix":
		return c.Column + " like " + list[0]
	}
	return c.Column + " " + c.Op + " " + list[0]
}
