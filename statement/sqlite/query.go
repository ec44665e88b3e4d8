package sqlite

import (
	"slices"
	"strings"

	"wirecheck/rewrite"
)

// around is what is around a query.
type around struct {
	place rewrite.Place
	depth int
	names []string // of the common table expressions that are visible
}

// inner is what is around a query within c.
func (c around) inner(p rewrite.Place) around {
	if c.place != rewrite.PlaceMain {
		p = c.place
	}
	return around{p, c.depth + 1, c.names}
}

func (d *describer) add(u rewrite.TableUse) { d.st.Tables = append(d.st.Tables, u) }

// with reads WITH and gives the token behind it; the names that it defines become visible in c.
func (d *describer) with(i, end int, c *around) int {
	i++
	if d.is(i, "RECURSIVE") {
		i++
	}
	c.names = slices.Clone(c.names)
	var queries []int
	for i < end {
		name, ok := d.name(i)
		if !ok {
			d.lose("a common table expression without a name")
			return end
		}
		c.names = append(c.names, name)
		if i++; d.is(i, "(") {
			i = d.close(i) + 1
		}
		if !d.is(i, "AS") {
			d.lose("a common table expression without AS")
			return end
		}
		i++
		if d.is(i, "NOT") {
			i++
		}
		if d.is(i, "MATERIALIZED") {
			i++
		}
		if !d.is(i, "(") {
			d.lose("a common table expression without a query")
			return end
		}
		queries = append(queries, i)
		if i = d.close(i) + 1; !d.is(i, ",") {
			break
		}
		i++
	}
	d.st.HasSubquery = true
	for _, q := range queries {
		d.group(q, c.inner(rewrite.PlaceCTE))
	}
	return i
}

// group reads the query in the parentheses at i.
func (d *describer) group(i int, c around) {
	d.st.HasSubquery = true
	from, end := i+1, d.close(i)
	if d.is(from, "WITH") {
		from = d.with(from, end, &c)
	}
	if !d.is(from, "SELECT", "VALUES") {
		d.lose("a query that begins with something else than SELECT or VALUES")
		return
	}
	d.query(from, end, c)
}

// isQuery reports whether the parenthesis at i opens a query.
func (d *describer) isQuery(i int) bool { return d.is(i, "(") && d.is(i+1, "SELECT", "VALUES", "WITH") }

// arms cuts a query at its set operators.
func (d *describer) arms(i, end int) (list [][2]int) {
	if i >= end {
		return nil
	}
	first, depth := i, d.tokens[i].depth
	for ; i <= end; i++ {
		if i < end && (d.tokens[i].depth != depth || !d.is(i, "UNION", "INTERSECT", "EXCEPT") || !d.is(d.behind(i), "SELECT", "VALUES")) {
			continue
		}
		list = append(list, [2]int{first, i})
		first = d.behind(i)
	}
	return list
}

// behind is the token behind a set operator: EXCEPT also stands in names and in window frames (EXCLUDE).
func (d *describer) behind(i int) int {
	if d.is(i+1, "ALL") {
		return i + 2
	}
	return i + 1
}

// query reads the mentions of tables in a query.
func (d *describer) query(i, end int, c around) {
	for n, arm := range d.arms(i, end) {
		inner := c
		if n > 0 && c.place == rewrite.PlaceMain {
			inner.place = rewrite.PlaceSelect
		}
		if arm[0] >= arm[1] {
			d.lose("a set operator without a query")
			return
		}
		for _, k := range d.clauses(arm[0], arm[1], "SELECT", "VALUES", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT") {
			if k.word == "FROM" {
				d.from(k.start+1, k.end, inner)
			} else {
				d.expressions(k.start+1, k.end, inner)
			}
		}
	}
}

// expressions reads the queries in expressions.
func (d *describer) expressions(i, end int, c around) {
	for ; i < end; i++ {
		switch {
		case d.isQuery(i):
			d.group(i, c.inner(rewrite.PlaceSubquery))
			i = d.close(i)
		case d.is(i, "SELECT"):
			d.lose("SELECT outside of parentheses")
			return
		case d.is(i, "IN") && i+1 < end && !d.is(i+1, "(") && d.tokens[i+1].kind <= tokName:
			d.lose("IN with a table's name")
			return
		}
	}
}

// joinWords stand between the tables of a FROM clause.
var joinWords = []string{",", "JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS"}

// from reads a FROM clause.
func (d *describer) from(i, end int, c around) {
	for i < end && d.lost == "" {
		switch {
		case d.isQuery(i):
			d.group(i, c.inner(rewrite.PlaceDerived))
			u := rewrite.TableUse{Kind: rewrite.SourceDerived, Read: true, Place: c.place, Depth: c.depth}
			i = d.alias(&u, d.close(i)+1, end)
			d.add(u)
		case d.is(i, "("):
			d.from(i+1, d.close(i), c)
			i = d.close(i) + 1
		default:
			var u rewrite.TableUse
			u, i = d.source(i, end, c)
			d.add(u)
		}
		from := i
		depth := 0
		if i < end {
			depth = d.tokens[i].depth
		}
		if i < end && d.is(i, "ON", "USING") { // up to the next table
			for i < end && (d.tokens[i].depth != depth || !d.is(i, joinWords...)) {
				i++
			}
			d.expressions(from, i, c)
		}
		if i < end && !d.is(i, joinWords...) {
			d.lose("a table reference that is not understood at " + d.at(i))
			return
		}
		for i < end && d.is(i, joinWords...) {
			i++
		}
	}
}

// source reads a table's name with what stands behind it, and gives the token behind all that.
func (d *describer) source(i, end int, c around) (rewrite.TableUse, int) {
	u := rewrite.TableUse{Kind: rewrite.SourceTable, Read: true, Place: c.place, Depth: c.depth}
	name, ok := d.name(i)
	if !ok || i >= end {
		d.lose("a table's name is missing")
		return u, end
	}
	first := i
	u.Name = name
	if i++; d.is(i, ".") {
		u.Schema = name
		if u.Name, ok = d.name(i + 1); !ok {
			d.lose("a table's name is missing")
			return u, end
		}
		i += 2
	}
	u.SQL = d.between(first, i)
	switch {
	case u.Schema != "" && !strings.EqualFold(u.Schema, "main"):
		d.lose("a table of another database than main")
	case u.Schema == "" && slices.ContainsFunc(c.names, func(n string) bool { return strings.EqualFold(n, u.Name) }):
		u.Kind = rewrite.SourceCTE
	}
	if i < end && d.is(i, "(") && d.tokens[i].start == d.tokens[i-1].end {
		if d.is(first-1, "INTO") { // the list of columns
			u.Ref = u.SQL
			return u, i
		}
		d.volatile("table-valued function " + u.Name)
		u.Kind = rewrite.SourceFunction
		d.expressions(i+1, d.close(i), c)
		i = d.close(i) + 1
	}
	return u, d.alias(&u, i, end)
}

// clauseWords cannot be aliases: they are reserved, or SQLite takes them for what they begin where they stand.
var clauseWords = []string{"ON", "USING", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SET", "VALUES", "SELECT", "DEFAULT", "RETURNING", "UNION", "INTERSECT", "EXCEPT",
	"WINDOW", "FROM", "INDEXED", "NOT", "WITH"}

// alias reads [AS alias] [INDEXED BY name | NOT INDEXED].
func (d *describer) alias(u *rewrite.TableUse, i, end int) int {
	u.Ref = u.SQL
	as := d.is(i, "AS")
	if as {
		i++
	}
	if i < end && (as || !d.is(i, clauseWords...) && !d.is(i, joinWords...)) {
		if name, ok := d.name(i); ok {
			u.Alias, u.Ref = name, d.at(i)
			i++
		} else if as {
			d.lose("AS without a name")
		}
	}
	switch {
	case d.seq(i, "INDEXED", "BY"):
		d.volatile("INDEXED BY names an index")
		i += 3
	case d.seq(i, "NOT", "INDEXED"):
		i += 2
	}
	return min(i, end)
}
