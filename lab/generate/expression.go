package generate

import (
	"fmt"
	"slices"
	"strings"
)

// comparison compares a column with a constant: the simplest condition, and one that indexes and views may hold.
func (g *definer) comparison(db *Database, sc *scope) string {
	c := oneOf(g.intn, sc.refs(nil))
	return g.compare(db, c)
}

func (g *definer) compare(db *Database, c ref) string {
	switch c.Class {
	case JSON:
		return c.sql + " IS NOT NULL"
	case Boolean, Enum:
		return fmt.Sprintf("%s %s %s", c.sql, oneOf(g.intn, []string{"=", "<>"}), g.constant(db, c.Column).SQL)
	}
	operators := []string{"=", "=", "=", "<>", "<", ">", "<=", ">="}
	if c.Class == Integer && g.use("extreme-constant", seldom) {
		return fmt.Sprintf("%s %s %s", c.sql, oneOf(g.intn, operators), oneOf(g.intn, edges()))
	}
	return fmt.Sprintf("%s %s %s", c.sql, oneOf(g.intn, operators), g.constant(db, c.Column).SQL)
}

// constant draws a value to compare a column with: mostly one that a row has.
func (g *definer) constant(db *Database, c *Column) Value {
	if len(c.samples) > 0 && g.chance(600) {
		return oneOf(g.intn, c.samples)
	}
	return g.value(db.pool, c.Type)
}

// edges are numbers at the edges of the integer types, and beyond.
func edges() []string {
	return []string{"-129", "-128", "127", "128", "255", "256", "32767", "32768", "65535", "2147483647", "2147483648", "-2147483649",
		"4294967295", "9223372036854775807", "9223372036854775808"}
}

// condition makes a condition over the scope's rows.
func (r *expressions) condition(sc *scope, depth int) string {
	c := oneOf(r.intn, sc.refs(nil))
	comparable := c.Class != JSON
	ordered := comparable && c.Class != Boolean && c.Class != Enum
	nested := depth > 0
	subquery := nested && !r.flat && len(r.readable()) > 0
	mixture, _ := r.mixture()
	value := func() string { return r.constant(r.db, c.Column).SQL }
	return r.choose([]option{
		{40, "", true, func() string { return r.compare(r.db, c) }},
		{mixture, "mixed-types", r.mixing(), func() string { return r.mixedCondition(c) }},
		{8, "", ordered, func() string { return r.computed(sc, c, depth) }},
		{6, "between", ordered, func() string { return fmt.Sprintf("%s BETWEEN %s AND %s", c.sql, value(), value()) }},
		{8, "in-list", comparable, func() string { return r.inList(c, value) }},
		{6, "is-null", true, func() string { return c.sql + oneOf(r.intn, []string{" IS NULL", " IS NOT NULL"}) }},
		{3, "null-safe", comparable, func() string { return r.nullSafe(c, value()) }},
		{8, "like", c.Class == Text, func() string {
			return c.sql + oneOf(r.intn, []string{" LIKE ", " NOT LIKE "}) + oneOf(r.intn, []string{"'a%'", "'%b'", "'%'", "'_'"})
		}},
		{8, "json-path", c.Class == JSON, func() string { return r.jsonPart(c) + " = " + r.value(r.db.pool, integer()).SQL }},
		{2, "implicit-cast", c.Class == Integer, func() string { return fmt.Sprintf("%s = '%s'", c.sql, value()) }},
		{2, "cast", c.Class.Numeric() || c.Class == Text, func() string { return r.castCondition(c) }},
		{2, "row-value", comparable, func() string { return r.rowValue(sc, c) }},
		{14, "and-or", nested, func() string {
			return fmt.Sprintf("(%s %s %s)", r.condition(sc, depth-1), oneOf(r.intn, []string{"AND", "AND", "OR"}), r.condition(sc, depth-1))
		}},
		{2, "xor", nested, func() string { return fmt.Sprintf("(%s XOR %s)", r.condition(sc, depth-1), r.condition(sc, depth-1)) }},
		{4, "not", nested, func() string { return "NOT (" + r.condition(sc, depth-1) + ")" }},
		{3, "is-true", nested, func() string {
			return "(" + r.condition(sc, depth-1) + ")" + oneOf(r.intn, []string{" IS TRUE", " IS NOT TRUE", " IS FALSE", " IS NOT FALSE"})
		}},
		{4, "subquery-exists", subquery, func() string { return r.exists(sc, depth-1) }},
		{4, "subquery-in", subquery && len(r.partners(c)) > 0, func() string { return r.inSubquery(sc, c, depth-1) }},
		{2, "subquery-any", subquery && ordered && len(r.partners(c)) > 0, func() string { return r.anySubquery(sc, c, depth-1) }},
		{4, "subquery-scalar", subquery && c.Class.Numeric(), func() string {
			return fmt.Sprintf("%s %s %s", c.sql, oneOf(r.intn, []string{"=", "<", ">="}), r.scalarSubquery(sc, depth-1))
		}},
	})
}

// integer is a plain type for constants.
func integer() Type {
	return Type{SQL: "INT", Class: Integer, Least: -1 << 31, Most: 1<<31 - 1, Exact: true}
}

// computed compares an expression with a constant, or two columns.
func (r *expressions) computed(sc *scope, c ref, depth int) string {
	if others := sc.refs(func(o *Column) bool { return o != c.Column && comparableColumns(c.Column, o) }); len(others) > 0 && r.intn(3) > 0 {
		return fmt.Sprintf("%s %s %s", c.sql, oneOf(r.intn, []string{"=", "<>", "<", ">="}), oneOf(r.intn, others).sql)
	}
	return fmt.Sprintf("%s %s %s", r.expression(sc, c, depth), oneOf(r.intn, []string{"=", "<>", "<", ">="}), r.value(r.db.pool, resultOf(c.Type)).SQL)
}

// resultOf is the type with whose constants an expression of a type is compared.
func resultOf(t Type) Type {
	if t.Class == Integer {
		return integer()
	}
	return t
}

// comparableColumns reports whether two columns can be compared with each other without a conversion that may fail.
func comparableColumns(a, b *Column) bool {
	switch {
	case a.Class.Numeric() && b.Class.Numeric():
		return true
	case a.Class != b.Class || a.Class == JSON || a.Class == Enum:
		return false
	}
	return a.Collation == b.Collation
}

func (r *expressions) inList(c ref, value func() string) string {
	values := make([]string, r.between(2, 3))
	for i := range values {
		values[i] = value()
	}
	return fmt.Sprintf("%s %s (%s)", c.sql, oneOf(r.intn, []string{"IN", "IN", "NOT IN"}), list(values))
}

func (r *expressions) nullSafe(c ref, value string) string {
	if r.grammar.distinctFrom {
		return fmt.Sprintf("%s IS %sDISTINCT FROM %s", c.sql, oneOf(r.intn, []string{"", "NOT "}), value)
	}
	return fmt.Sprintf("%s <=> %s", c.sql, oneOf(r.intn, []string{value, "NULL"}))
}

// jsonPart reads the first element, a number.
func (r *expressions) jsonPart(c ref) string {
	return fmt.Sprintf(r.grammar.jsonFirst, c.sql)
}

func (r *expressions) castCondition(c ref) string {
	if c.Class == Text {
		if r.grammar.bytesOf != "" {
			return fmt.Sprintf(r.grammar.bytesOf, c.sql)
		}
		return fmt.Sprintf("CAST(%s AS BINARY) = %s", c.sql, r.value(r.db.pool, c.Type).SQL)
	}
	return fmt.Sprintf("CAST(%s AS %s) = '%s'", c.sql, r.grammar.text, r.value(r.db.pool, c.Type).SQL)
}

// rowValue compares two columns at once.
func (r *expressions) rowValue(sc *scope, c ref) string {
	o := oneOf(r.intn, sc.refs(func(o *Column) bool { return o.Class != JSON }))
	pair := func() string {
		return "(" + r.value(r.db.pool, c.Type).SQL + ", " + r.value(r.db.pool, o.Type).SQL + ")"
	}
	if r.intn(2) == 0 {
		return fmt.Sprintf("(%s, %s) = %s", c.sql, o.sql, pair())
	}
	return fmt.Sprintf("(%s, %s) IN (%s%s, %s)", c.sql, o.sql, r.grammar.rows, pair(), pair())
}

// expression computes something from a column; the result has the column's class, integers as wide as they get.
func (r *expressions) expression(sc *scope, c ref, depth int) string {
	value := func() string { return r.value(r.db.pool, c.Type).SQL }
	numeric := c.Class == Integer || c.Class == Decimal
	return r.choose([]option{
		{10, "arithmetic", numeric, func() string { return r.arithmetic(c) }},
		{6, "function", numeric, func() string { return "ABS(" + c.sql + ")" }},
		{8, "function", c.Class == Text, func() string { return r.textFunction(c) }},
		{5, "coalesce", true, func() string {
			return fmt.Sprintf(oneOf(r.intn, []string{"COALESCE(%s, %s)", "NULLIF(%s, %s)"}), c.sql, r.typed(c.Type, value()))
		}},
		{5, "case", depth > 0, func() string {
			return fmt.Sprintf("CASE WHEN %s THEN %s ELSE %s END", r.condition(sc, depth-1), r.typed(c.Type, value()), c.sql)
		}},
		{1, "", true, func() string { return c.sql }},
	})
}

// typed makes a constant of an enum one of its type where the product would take it as a text.
func (r *expressions) typed(t Type, value string) string {
	if r.grammar.named && (t.Class == Enum || t.Class == Binary || t.Class == JSON || t.Class == UUID) {
		return value + "::" + strings.ToLower(t.SQL)
	}
	return value
}

// arithmetic stays in range: the values are small, and unsigned ones never get smaller.
func (r *expressions) arithmetic(c ref) string {
	n := r.between(1, 3)
	if c.Class == Integer && c.Least == 0 || c.Generated != "" {
		return fmt.Sprintf("(%s + %d)", c.sql, n)
	}
	return fmt.Sprintf(oneOf(r.intn, []string{"(%s + %d)", "(%s + %d)", "(%s - %d)", "(%s %% %d)"}), c.sql, n)
}

func (r *expressions) textFunction(c ref) string {
	return fmt.Sprintf(oneOf(r.intn, []string{"UPPER(%s)", "LOWER(%s)", "SUBSTRING(%s, 1, 2)", "TRIM(%s)"}), c.sql)
}

// partners are the tables that a subquery may read and that have a column that can be compared with that one.
func (r *expressions) partners(c ref) []*Table {
	return slices.DeleteFunc(r.readable(), func(t *Table) bool {
		return !slices.ContainsFunc(t.Columns, func(o *Column) bool { return comparableColumns(c.Column, o) })
	})
}

// inner makes the FROM of a subquery of one of the tables, and its scope.
func (r *expressions) inner(outer *scope, tables []*Table) (from string, sc *scope) {
	t := oneOf(r.intn, tables)
	name, from := r.around(t, outer)
	r.tables = append(r.tables, t.Name)
	return from, &scope{sources: []source{t.source(name)}, outer: outer, qualified: true}
}

// innerWhere makes the WHERE of a subquery; correlated ones compare with a column of the query around.
func (r *expressions) innerWhere(sc *scope, depth int) string {
	if r.chance(often) || r.favored["subquery-correlated"] {
		c := oneOf(r.intn, sc.refs(nil))
		outside := sc.outside(func(o *Column) bool { return comparableColumns(c.Column, o) })
		if len(outside) > 0 && r.has("subquery-correlated") {
			r.mark("subquery-correlated")
			return fmt.Sprintf(" WHERE %s = %s", c.sql, oneOf(r.intn, outside).sql)
		}
	}
	if r.intn(4) == 0 {
		return ""
	}
	return " WHERE " + r.condition(sc, depth)
}

func (r *expressions) exists(sc *scope, depth int) string {
	from, inner := r.inner(sc, r.readable())
	return oneOf(r.intn, []string{"EXISTS", "NOT EXISTS"}) + " (SELECT 1 FROM " + from + r.innerWhere(inner, depth) + ")"
}

func (r *expressions) inSubquery(sc *scope, c ref, depth int) string {
	from, inner := r.inner(sc, r.partners(c))
	others := inner.refs(func(o *Column) bool { return comparableColumns(c.Column, o) })
	return fmt.Sprintf("%s %s (SELECT %s FROM %s%s)", c.sql, oneOf(r.intn, []string{"IN", "IN", "NOT IN"}), oneOf(r.intn, others).sql, from, r.innerWhere(inner, depth))
}

func (r *expressions) anySubquery(sc *scope, c ref, depth int) string {
	from, inner := r.inner(sc, r.partners(c))
	others := inner.refs(func(o *Column) bool { return comparableColumns(c.Column, o) })
	return fmt.Sprintf("%s %s (SELECT %s FROM %s%s)", c.sql, oneOf(r.intn, []string{"= ANY", "> ANY", "<= ALL", "<> ALL"}),
		oneOf(r.intn, others).sql, from, r.innerWhere(inner, depth))
}

// scalarSubquery is a query of one number.
func (r *expressions) scalarSubquery(sc *scope, depth int) string {
	from, inner := r.inner(sc, r.readable())
	what := "COUNT(*)"
	if numbers := inner.refs(func(c *Column) bool { return c.Class == Integer }); len(numbers) > 0 && r.intn(3) > 0 {
		what = oneOf(r.intn, []string{"MAX", "MIN"}) + "(" + oneOf(r.intn, numbers).sql + ")"
	}
	return "(SELECT " + what + " FROM " + from + r.innerWhere(inner, depth) + ")"
}
