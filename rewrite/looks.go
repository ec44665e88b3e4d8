package rewrite

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"wirecheck/statement/condition"
)

// Looks reports whether the server certainly looks for rows, and does not see from the condition alone that there are none: the servers
// of the MySQL family then read nothing, and the transaction takes no view of the database ("Impossible WHERE", MySQL manual, EXPLAIN
// Output Format). Values of parameters must be bound.
func (a *Ask) Looks() bool {
	if a.Searched {
		return true
	}
	if a.Relation == nil || a.Relation.Partitioned || !a.Allows(1) {
		return false
	}
	return a.Relation.possible(&a.Where)
}

// possible reports whether a condition may certainly hold for a row, as far as the types of the columns tell.
func (r *Relation) possible(c *condition.Condition) bool {
	fits := func(v condition.Value) bool { return r.fits(c, v) }
	switch c.Op {
	case "true":
		return true
	case "=", "<>", "<", "<=", ">", ">=", "alike", "prefix", "in":
		if c.Term != nil { // what is computed from columns is known of a row only
			return !slices.Contains(c.Values, nil) && !c.Term.HasNull()
		}
		return slices.ContainsFunc(c.Values, fits)
	case "modulo":
		return c.Values[1] != nil
	case "like":
		return r.Attribute(c.Column) != nil && c.Values[0] != nil
	case "null":
		a := r.Attribute(c.Column)
		return a != nil && !a.Required
	case "or":
		return slices.ContainsFunc(c.Args, func(a condition.Condition) bool { return r.possible(&a) })
	case "not":
		return r.refutable(&c.Args[0])
	case "and":
		return r.compatible(c.Args)
	}
	return false
}

// opposite is what NOT makes of comparisons, and of AND and OR.
var opposite = map[string]string{"<>": "=", "<": ">=", ">": "<=", "<=": ">", ">=": "<", "and": "or", "or": "and"}

// refutable reports whether NOT c may certainly hold for a row.
func (r *Relation) refutable(c *condition.Condition) bool {
	switch c.Op {
	case "null":
		return true
	case "<>", "<", ">", "<=", ">=":
		n := *c
		n.Op = opposite[c.Op]
		return r.possible(&n)
	case "not":
		return r.possible(&c.Args[0])
	case "and", "or": // BETWEEN, say
		n := condition.Condition{Op: opposite[c.Op]}
		for _, a := range c.Args {
			n.Args = append(n.Args, condition.Not(a))
		}
		return r.possible(&n)
	case "=", "in", "alike", "prefix", "modulo":
		return c.Term == nil && !slices.Contains(c.Values, nil)
	}
	return false
}

// compatible reports whether conditions may hold together: no column is in two of them, but as the bounds of a range, or to say that it is not NULL.
func (r *Relation) compatible(list []condition.Condition) bool {
	var all []condition.Condition
	for _, c := range list {
		if c.Op == "and" {
			all = append(all, c.Args...)
		} else {
			all = append(all, c)
		}
	}
	for i := range all {
		if !r.possible(&all[i]) {
			return false
		}
		for k := range i {
			shared := false
			all[i].Columns(func(a string) { all[k].Columns(func(b string) { shared = shared || a == b }) })
			if shared && !present(&all[k], &all[i]) && !present(&all[i], &all[k]) && !isRange(&all[k], &all[i]) && !isRange(&all[i], &all[k]) {
				return false
			}
		}
	}
	return true
}

// present reports whether the first condition says that a column is not NULL, and the second one compares it: then it says nothing more.
func present(there, c *condition.Condition) bool {
	return there.Op == "not" && there.Args[0].Op == "null" && (opposite[c.Op] != "" || c.Op == "=" || c.Op == "in") && c.Column != "" && c.Column == there.Args[0].Column
}

// isRange reports whether the first condition is a lower bound of a column, and the second one a higher bound of it.
func isRange(low, high *condition.Condition) bool {
	if !strings.HasPrefix(low.Op, ">") || !strings.HasPrefix(high.Op, "<") || high.Op == "<>" || low.Column != high.Column || low.Term != nil || high.Term != nil {
		return false
	}
	below := condition.Compare("<", low.Kind, low.Column, high.Values[0])
	if low.Op == ">=" && high.Op == "<=" {
		below.Op = "<="
	}
	return below.Holds(condition.Image{low.Column: low.Values[0]}) == condition.True
}

// bits are how many bits the integer types have.
var bits = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// fits reports whether a column may have a value that compares so with v.
func (r *Relation) fits(c *condition.Condition, v condition.Value) bool {
	a := r.Attribute(c.Column)
	if v == nil || a == nil {
		return false
	}
	typ := strings.ToLower(a.Type)
	name, rest, _ := strings.Cut(typ, "(")
	name, _, _ = strings.Cut(name, " ")
	switch n := bits[name]; {
	case n > 0:
		value, err := strconv.ParseInt(*v, 10, 64)
		low, high := int64(-1)<<(n-1), int64(1)<<(n-1)-1
		if strings.Contains(typ, "unsigned") {
			low = 0
		}
		return err == nil && value >= low && value <= high && (c.Op != "<" || value > low) && (c.Op != ">" || value < high)
	case c.Kind == condition.Date || c.Kind == condition.Timestamp:
		return *v > "1000" && *v < "9999"
	case c.Op == "<" && *v == "":
		return false
	}
	digits, _, _ := strings.Cut(rest, ")")
	size, err := strconv.Atoi(digits)
	switch name {
	case "char", "varchar":
		return err == nil && utf8.RuneCountInString(*v) <= size
	case "varbinary":
		return err == nil && len(*v) <= size
	case "binary":
		return err == nil && len(*v) == size
	}
	return strings.HasSuffix(name, "text") || strings.HasSuffix(name, "blob")
}
