package sqlite

import (
	"slices"
	"strings"

	"wirecheck/statement"
)

func (d *describer) add(u statement.TableUse) { d.st.Tables = append(d.st.Tables, u) }

// with reads WITH and gives the token behind it; the names that it defines become visible in c.
func (d *describer) with(i, end int, c *statement.Around) int {
	i++
	if d.Is(i, "RECURSIVE") {
		i++
	}
	c.Names = slices.Clone(c.Names)
	var queries []int
	for i < end {
		name, ok := d.Name(i)
		if !ok {
			d.lose("a common table expression without a name")
			return end
		}
		c.Names = append(c.Names, name)
		if i++; d.Is(i, "(") {
			i = d.Close(i) + 1
		}
		if !d.Is(i, "AS") {
			d.lose("a common table expression without AS")
			return end
		}
		i++
		if d.Is(i, "NOT") {
			i++
		}
		if d.Is(i, "MATERIALIZED") {
			i++
		}
		if !d.Is(i, "(") {
			d.lose("a common table expression without a query")
			return end
		}
		queries = append(queries, i)
		if i = d.Close(i) + 1; !d.Is(i, ",") {
			break
		}
		i++
	}
	d.st.HasSubquery = true
	for _, q := range queries {
		d.group(q, c.Inner(statement.PlaceCTE))
	}
	return i
}

// group reads the query in the parentheses at i.
func (d *describer) group(i int, c statement.Around) {
	d.st.HasSubquery = true
	from, end := i+1, d.Close(i)
	if d.Is(from, "WITH") {
		from = d.with(from, end, &c)
	}
	if !d.Is(from, "SELECT", "VALUES") {
		d.lose("a query that begins with something else than SELECT or VALUES")
		return
	}
	d.query(from, end, c)
}

// isQuery reports whether the parenthesis at i opens a query.
func (d *describer) isQuery(i int) bool { return d.Is(i, "(") && d.Is(i+1, "SELECT", "VALUES", "WITH") }

// arms cuts a query at its set operators.
func (d *describer) arms(i, end int) (list [][2]int) {
	if i >= end {
		return nil
	}
	first, depth := i, d.Tokens[i].Depth
	for ; i <= end; i++ {
		if i < end && (d.Tokens[i].Depth != depth || !d.Is(i, "UNION", "INTERSECT", "EXCEPT") || !d.Is(d.behind(i), "SELECT", "VALUES")) {
			continue
		}
		list = append(list, [2]int{first, i})
		first = d.behind(i)
	}
	return list
}

// behind is the token behind a set operator: EXCEPT also stands in names and in window frames (EXCLUDE).
func (d *describer) behind(i int) int {
	if d.Is(i+1, "ALL") {
		return i + 2
	}
	return i + 1
}

// query reads the mentions of tables in a query.
func (d *describer) query(i, end int, c statement.Around) {
	for n, arm := range d.arms(i, end) {
		inner := c
		if n > 0 {
			inner = c.Arm()
		}
		if arm[0] >= arm[1] {
			d.lose("a set operator without a query")
			return
		}
		for _, k := range d.clauses(arm[0], arm[1], "SELECT", "VALUES", "FROM", "WHERE", "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT") {
			if k.Word == "FROM" {
				d.from(k.Start+1, k.End, inner)
			} else {
				d.expressions(k.Start+1, k.End, inner)
			}
		}
	}
}

// expressions reads the queries in expressions.
func (d *describer) expressions(i, end int, c statement.Around) {
	for ; i < end; i++ {
		switch {
		case d.isQuery(i):
			d.group(i, c.Inner(statement.PlaceSubquery))
			i = d.Close(i)
		case d.Is(i, "SELECT"):
			d.lose("SELECT outside of parentheses")
			return
		case d.Is(i, "IN") && i+1 < end && !d.Is(i+1, "(") && d.Tokens[i+1].Kind <= statement.TokenName:
			d.lose("IN with a table's name")
			return
		}
	}
}

// joinWords stand between the tables of a FROM clause.
var joinWords = []string{",", "JOIN", "NATURAL", "LEFT", "RIGHT", "FULL", "OUTER", "INNER", "CROSS"}

// from reads a FROM clause.
func (d *describer) from(i, end int, c statement.Around) {
	for i < end && d.lost == "" {
		switch {
		case d.isQuery(i):
			d.group(i, c.Inner(statement.PlaceDerived))
			u := statement.TableUse{Kind: statement.SourceDerived, Read: true, Place: c.Place, Depth: c.Depth}
			i = d.alias(&u, d.Close(i)+1, end)
			d.add(u)
		case d.Is(i, "("):
			d.from(i+1, d.Close(i), c)
			i = d.Close(i) + 1
		default:
			var u statement.TableUse
			u, i = d.source(i, end, c)
			d.add(u)
		}
		from := i
		depth := int32(0)
		if i < end {
			depth = d.Tokens[i].Depth
		}
		if i < end && d.Is(i, "ON", "USING") { // up to the next table
			for i < end && (d.Tokens[i].Depth != depth || !d.Is(i, joinWords...)) {
				i++
			}
			d.expressions(from, i, c)
		}
		if i < end && !d.Is(i, joinWords...) {
			d.lose("a table reference that is not understood at " + d.At(i))
			return
		}
		for i < end && d.Is(i, joinWords...) {
			i++
		}
	}
}

// source reads a table's name with what stands behind it, and gives the token behind all that.
func (d *describer) source(i, end int, c statement.Around) (statement.TableUse, int) {
	u := statement.TableUse{Kind: statement.SourceTable, Read: true, Place: c.Place, Depth: c.Depth}
	name, ok := d.Name(i)
	if !ok || i >= end {
		d.lose("a table's name is missing")
		return u, end
	}
	first := i
	u.Name = name
	if i++; d.Is(i, ".") {
		u.Schema = name
		if u.Name, ok = d.Name(i + 1); !ok {
			d.lose("a table's name is missing")
			return u, end
		}
		i += 2
	}
	u.SQL = d.Between(first, i)
	switch {
	case u.Schema != "" && !strings.EqualFold(u.Schema, "main"):
		d.lose("a table of another database than main")
	case u.Schema == "" && slices.ContainsFunc(c.Names, func(n string) bool { return strings.EqualFold(n, u.Name) }):
		u.Kind = statement.SourceCTE
	}
	if i < end && d.Is(i, "(") && d.Tokens[i].Start == d.Tokens[i-1].End {
		if d.Is(first-1, "INTO") { // the list of columns
			u.Ref = u.SQL
			return u, i
		}
		d.volatile("table-valued function " + u.Name)
		u.Kind = statement.SourceFunction
		d.expressions(i+1, d.Close(i), c)
		i = d.Close(i) + 1
	}
	return u, d.alias(&u, i, end)
}

// clauseWords cannot be aliases: they are reserved, or SQLite takes them for what they begin where they stand.
var clauseWords = []string{"ON", "USING", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "SET", "VALUES", "SELECT", "DEFAULT", "RETURNING", "UNION", "INTERSECT", "EXCEPT",
	"WINDOW", "FROM", "INDEXED", "NOT", "WITH"}

// alias reads [AS alias] [INDEXED BY name | NOT INDEXED].
func (d *describer) alias(u *statement.TableUse, i, end int) int {
	u.Ref = u.SQL
	as := d.Is(i, "AS")
	if as {
		i++
	}
	if i < end && (as || !d.Is(i, clauseWords...) && !d.Is(i, joinWords...)) {
		if name, ok := d.Name(i); ok {
			u.Alias, u.Ref = name, d.At(i)
			i++
		} else if as {
			d.lose("AS without a name")
		}
	}
	switch {
	case d.Seq(i, "INDEXED", "BY"):
		d.volatile("INDEXED BY names an index")
		i += 3
	case d.Seq(i, "NOT", "INDEXED"):
		i += 2
	}
	return min(i, end)
}
