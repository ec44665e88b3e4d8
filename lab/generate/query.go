package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Query makes a SELECT without locks that gives the same rows whatever the plan is, but for their order (Radar, VLDB'24, 3.2.2). It
// is meant to be the only statement under way.
func (g *Generator) Query(db *Database) Statement {
	g.begin(KindSelect)
	r := readerOf(&g.definer, db)
	sql := r.query()
	return g.end(sql, r.tables)
}

// query makes any SELECT.
func (r *reader) query() string {
	return r.choose([]option{
		{60, "", true, func() string { return r.selectRows() }},
		{10, "aggregate", true, func() string { return r.selectAggregate() }},
		{8, "group-by", r.has("aggregate"), func() string { return r.selectGroups() }},
		{5, "distinct", true, func() string { return r.selectDistinct() }},
		{2, "distinct-on", true, func() string { return r.selectDistinctOn() }},
		{3, "union", true, func() string { return r.selectSet("UNION") }},
		{3, "union-all", true, func() string { return r.selectSet("UNION ALL") }},
		{2, "intersect", true, func() string { return r.selectSet("INTERSECT") }},
		{2, "except", true, func() string { return r.selectSet("EXCEPT") }},
		{3, "cte", true, func() string { return r.selectCTE() }},
		{2, "cte-recursive", true, func() string { return r.selectRecursive() }},
		{4, "window", true, func() string { return r.selectWindow() }},
		{3, "view-read", len(r.db.Views) > 0, func() string { return r.selectView() }},
	})
}

// readFrom notes that the statement reads the table, and gives it as a source.
func (r *reader) readFrom(t *Table) (from string, sc *scope) {
	r.tables = append(r.tables, t.Name)
	return t.Name, scopeOf(t)
}

// from makes a FROM clause of one table or a join.
func (r *reader) from() (string, *scope) {
	t := oneOf(r.intn, r.db.Tables)
	single := func() string { return t.Name }
	sc := scopeOf(t)
	r.tables = append(r.tables, t.Name)
	join := func(word string) func() string {
		return func() string { return r.join(t, sc, word) }
	}
	text := r.choose([]option{
		{70, "", true, single},
		{9, "join-inner", true, join("JOIN")},
		{7, "join-left", true, join("LEFT JOIN")},
		{3, "join-right", true, join("RIGHT JOIN")},
		{2, "join-full", true, join("FULL JOIN")},
		{3, "join-cross", true, join("CROSS JOIN")},
		{2, "join-straight", true, join("STRAIGHT_JOIN")},
		{2, "join-using", len(r.sharing(t)) > 0, func() string { return r.joinUsing(t, sc) }},
		{2, "join-lateral", true, func() string { return r.lateral(t, sc) }},
		{4, "derived-table", true, func() string { return r.derived(t, sc) }},
	})
	if len(sc.sources) == 2 && sc.sources[1].table != "" && !r.marks["join-using"] && r.has("join-left") && r.use("join-three", fairly) {
		r.mark("join-left")
		text = r.extend(text, sc, t, "LEFT JOIN")
	}
	return text, sc
}

// join joins the table with another one or with itself, and extends the scope.
func (r *reader) join(t *Table, sc *scope, word string) string {
	return r.extend(t.Name, sc, t, word)
}

// extend joins what stands there, in which the table is, with another one or that table itself.
func (r *reader) extend(text string, sc *scope, t *Table, word string) string {
	other := oneOf(r.intn, r.db.Tables)
	name, sql := r.around(other, sc)
	if other == t {
		if len(r.db.Tables) > 1 && !r.has("self-join") {
			other = r.db.Tables[(slices.Index(r.db.Tables, t)+1)%len(r.db.Tables)]
			name, sql = other.Name, other.Name
		} else if !r.has("self-join") {
			word = "CROSS JOIN"
		}
	}
	if other == t && r.has("self-join") {
		r.mark("self-join")
	}
	r.tables = append(r.tables, other.Name)
	sc.qualified = true
	left := &scope{sources: slices.Clone(sc.sources), qualified: true}
	sc.sources = append(sc.sources, other.source(name))
	text += " " + word + " " + sql
	if word == "CROSS JOIN" {
		return text
	}
	return text + " ON " + r.joinCondition(left, other.source(name), word == "FULL JOIN")
}

// joinCondition compares a column of each side where they can be compared. PostgreSQL makes a full join only where it can merge or
// hash: with equality of like types.
func (r *reader) joinCondition(left *scope, right source, equality bool) string {
	var pairs [][2]string
	for _, a := range left.refs(nil) {
		for _, b := range right.columns {
			if comparableColumns(a.Column, b) && (!equality || a.SQL == b.SQL) {
				pairs = append(pairs, [2]string{a.sql, right.name + "." + b.Name})
			}
		}
	}
	if len(pairs) == 0 {
		return r.grammar.always
	}
	p := oneOf(r.intn, pairs)
	operator := "="
	if !equality && r.chance(fairly) {
		operator = oneOf(r.intn, []string{"<>", "<", ">="})
	}
	return p[0] + " " + operator + " " + p[1]
}

// shared is a table that has a column of the same name and type as one of another table.
type shared struct {
	*Table
	column string
}

// sharing lists what the table can be joined with by USING.
func (r *reader) sharing(t *Table) []shared {
	var out []shared
	for _, other := range r.db.Tables {
		for _, a := range t.Columns {
			for _, b := range other.Columns {
				if other != t && a.Name == b.Name && comparableColumns(a, b) && a.SQL == b.SQL {
					out = append(out, shared{other, a.Name})
				}
			}
		}
	}
	return out
}

func (r *reader) joinUsing(t *Table, sc *scope) string {
	other := oneOf(r.intn, r.sharing(t))
	r.tables = append(r.tables, other.Name)
	sc.qualified = true
	sc.sources = append(sc.sources, other.source(other.Name))
	return fmt.Sprintf("%s JOIN %s USING (%s)", t.Name, other.Name, other.column)
}

// lateral joins with a subquery that is evaluated for each row.
func (r *reader) lateral(t *Table, sc *scope) string {
	sc.qualified = true
	from, inner := r.inner(sc, r.readable())
	name := r.alias()
	text := fmt.Sprintf("%s JOIN LATERAL (SELECT COUNT(*) AS n FROM %s%s) AS %s ON TRUE", t.Name, from, r.innerWhere(inner, 0), name)
	sc.sources = append(sc.sources, source{name: name, columns: []*Column{counted("n")}, order: []*Column{counted("n")}})
	return text
}

// counted is the column of a number that a query makes.
func counted(name string) *Column {
	return &Column{Name: name, Type: Type{SQL: "BIGINT", Class: Integer, Least: -1 << 63, Most: 1<<63 - 1, Exact: true}}
}

// derived replaces the table by a subquery of it.
func (r *reader) derived(t *Table, sc *scope) string {
	name := r.alias()
	columns := some(r.intn, t.Columns, r.between(1, len(t.Columns)))
	inner := scopeOf(t)
	flat := reader{expressions{definer: r.definer, db: r.db, flat: true}}
	sc.sources = []source{{name: name, columns: columns}}
	sc.qualified = true
	return fmt.Sprintf("(SELECT %s FROM %s WHERE %s) AS %s", list(namesOf(columns)), t.Name, flat.condition(inner, 1), name)
}

// where makes a WHERE clause, or none.
func (r *reader) where(sc *scope, depth int) string {
	if !r.has("where") || r.chance(fairly) {
		return ""
	}
	r.mark("where")
	// Subqueries name columns of this query by their source.
	return " WHERE " + r.condition(sc, depth)
}

// projection makes a select list; what it computes has no name.
func (r *reader) projection(sc *scope) string {
	refs := sc.refs(nil)
	if len(sc.sources) == 1 && sc.sources[0].table != "" && r.chance(often) {
		return "*"
	}
	_, mixture := r.mixture()
	var items []string
	for _, c := range some(r.intn, refs, r.between(1, min(3, len(refs)))) {
		item := c.sql
		if r.mixing() && r.use("mixed-types", mixture) {
			if item = r.mixed(c, 3); r.intn(3) == 0 {
				item = "HEX(" + item + ")" // a number and its text are shown alike
			}
		} else if c.Class != JSON && r.chance(fairly) {
			item = r.expression(sc, c, 1)
		} else if c.Class == JSON && r.use("json-path", rarely*4) {
			item = r.jsonPart(c)
		}
		items = append(items, item)
	}
	if !r.flat && r.chance(seldom) && r.has("subquery-scalar") {
		r.mark("subquery-scalar")
		items = append(items, r.scalarSubquery(sc, 1))
	}
	return list(items)
}

// selectRows makes a plain SELECT.
func (r *reader) selectRows() string {
	r.mark("select")
	from, sc := r.from()
	sql := "SELECT " + r.hint(sc) + r.projection(sc) + " FROM " + from + r.where(sc, r.limits.Depth)
	return sql + r.order(sc)
}

// hint makes a hint for the optimizer, or none (TiDB manual, "Optimizer Hints").
func (r *reader) hint(sc *scope) string {
	table := oneOf(r.intn, sc.sources)
	if r.flat || table.table == "" || !r.use("hint", fairly) {
		return ""
	}
	if len(sc.sources) > 1 {
		return "/*+ " + oneOf(r.intn, []string{"INL_JOIN", "HASH_JOIN", "MERGE_JOIN", "INL_HASH_JOIN"}) + "(" + table.name + ") */ "
	}
	return "/*+ USE_INDEX_MERGE(" + table.name + ") */ "
}

// order makes ORDER BY and LIMIT. A LIMIT stands behind a total order only.
func (r *reader) order(sc *scope) string {
	total := sc.total()
	if len(total) > 0 && r.limit(rarely*2) {
		sql := " ORDER BY " + list(r.directed(total)) + fmt.Sprintf(" LIMIT %d", r.between(1, 3))
		if r.use("offset", fairly) {
			sql += fmt.Sprintf(" OFFSET %d", r.between(0, 2))
		}
		return sql
	}
	refs := sc.refs(func(c *Column) bool { return c.Class != JSON })
	if len(refs) > 0 && r.use("order-by", rarely*2) {
		return " ORDER BY " + list(r.directed([]string{oneOf(r.intn, refs).sql}))
	}
	return ""
}

// limit decides whether there is a LIMIT, with the ORDER BY that it needs.
func (r *reader) limit(frequency int) bool {
	if !r.has("order-by") || !r.use("limit", frequency) {
		return false
	}
	r.mark("order-by")
	return true
}

func (r *reader) directed(columns []string) []string {
	out := slices.Clone(columns)
	if r.intn(3) == 0 {
		out[0] += " DESC"
	}
	return out
}

// aggregate makes an aggregate whose result does not depend on the order of the rows: no sums of floats, and no least text where
// different texts are equal.
func (r *reader) aggregate(sc *scope) string {
	c := oneOf(r.intn, sc.refs(nil))
	sortable := c.Class != UUID && c.Class != JSON && c.Class != Boolean && c.Class != Binary && c.Exact && (c.Class != Enum)
	text := r.choose([]option{
		{4, "", true, func() string { return "COUNT(*)" }},
		{3, "", true, func() string { return "COUNT(" + c.sql + ")" }},
		{2, "aggregate-distinct", c.Class != JSON, func() string { return "COUNT(DISTINCT " + c.sql + ")" }},
		{4, "", c.Class == Integer || c.Class == Decimal, func() string { return "SUM(" + c.sql + ")" }},
		{4, "", sortable, func() string { return oneOf(r.intn, []string{"MIN", "MAX"}) + "(" + c.sql + ")" }},
		{2, "", c.Class == Integer || c.Class == Decimal, func() string { return "AVG(" + c.sql + ")" }},
	})
	if (c.Class == Integer || c.Class == Text && c.Exact) && r.use("group-concat", rarely) {
		text = fmt.Sprintf(r.grammar.concat, c.sql)
	}
	if r.use("aggregate-filter", rarely) {
		text += " FILTER (WHERE " + r.compare(r.db, oneOf(r.intn, sc.refs(nil))) + ")"
	}
	return text
}

func (r *reader) selectAggregate() string {
	r.mark("select")
	from, sc := r.from()
	items := []string{r.aggregate(sc)}
	if r.intn(2) == 0 {
		items = append(items, r.aggregate(sc))
	}
	hint := ""
	if r.use("hint", fairly) {
		hint = oneOf(r.intn, []string{"/*+ STREAM_AGG() */ ", "/*+ HASH_AGG() */ "})
	}
	return "SELECT " + hint + list(items) + " FROM " + from + r.where(sc, r.limits.Depth)
}

// groupable are the columns by which rows can be grouped so that what is shown of a group does not depend on the plan.
func groupable(c *Column) bool { return c.Class != JSON && c.Exact }

func (r *reader) selectGroups() string {
	r.mark("select")
	from, sc := r.from()
	by := sc.refs(groupable)
	if len(by) == 0 {
		delete(r.marks, "group-by")
		return "SELECT COUNT(*) FROM " + from + r.where(sc, 1)
	}
	by = some(r.intn, by, r.few(1, min(2, len(by))))
	var columns []string
	for _, c := range by {
		columns = append(columns, c.sql)
	}
	r.mark("aggregate")
	sql := fmt.Sprintf("SELECT %s, %s FROM %s%s", list(columns), r.aggregate(sc), from, r.where(sc, 1))
	switch {
	case r.use("rollup", rarely) && r.grammar.rollup:
		sql += " GROUP BY ROLLUP (" + list(columns) + ")"
	case r.marks["rollup"]:
		return sql + " GROUP BY " + list(columns) + " WITH ROLLUP"
	default:
		sql += " GROUP BY " + list(columns)
	}
	if r.use("having", fairly*2) {
		sql += fmt.Sprintf(" HAVING COUNT(*) %s %d", oneOf(r.intn, []string{">", "=", "<="}), r.between(1, 2))
	}
	if !r.marks["rollup"] && r.limit(rarely) { // the group is its own total order
		sql += " ORDER BY " + list(columns) + " LIMIT 2"
	}
	return sql
}

func (r *reader) selectDistinct() string {
	r.mark("select")
	from, sc := r.from()
	refs := sc.refs(groupable)
	if len(refs) == 0 {
		delete(r.marks, "distinct")
		return "SELECT COUNT(*) FROM " + from
	}
	var items []string
	for _, c := range some(r.intn, refs, r.few(1, min(2, len(refs)))) {
		items = append(items, c.sql)
	}
	return "SELECT DISTINCT " + list(items) + " FROM " + from + r.where(sc, 1)
}

func (r *reader) selectDistinctOn() string {
	r.mark("select")
	t := oneOf(r.intn, r.db.Tables)
	from, sc := r.readFrom(t)
	total, refs := sc.total(), sc.refs(groupable)
	if len(total) == 0 || len(refs) == 0 {
		delete(r.marks, "distinct-on")
		return "SELECT * FROM " + from + r.where(sc, 1)
	}
	c := oneOf(r.intn, refs)
	return fmt.Sprintf("SELECT DISTINCT ON (%s) * FROM %s%s ORDER BY %s", c.sql, from, r.where(sc, 1), list(append([]string{c.sql}, total...)))
}

// selectSet combines two queries of one column each, of the same type: else what is shown of equal values depends on the plan.
func (r *reader) selectSet(operator string) string {
	r.mark("select")
	a := oneOf(r.intn, r.db.Tables)
	from, sc := r.readFrom(a)
	refs := sc.refs(groupable)
	if len(refs) == 0 {
		refs = sc.refs(nil)
		if operator != "UNION ALL" {
			return fmt.Sprintf("SELECT COUNT(*) FROM %s %s SELECT 1", from, operator)
		}
	}
	if (operator == "INTERSECT" || operator == "EXCEPT") && r.use("set-all", fairly) {
		operator += " ALL"
	}
	c := oneOf(r.intn, refs)
	var others []string
	for _, t := range r.db.Tables {
		for _, o := range t.Columns {
			if o.SQL == c.SQL && o.Collation == c.Collation {
				others = append(others, t.Name+" "+o.Name)
			}
		}
	}
	table, column, _ := strings.Cut(oneOf(r.intn, others), " ")
	r.tables = append(r.tables, table)
	other := scopeOf(r.db.Tables[slices.IndexFunc(r.db.Tables, func(t *Table) bool { return t.Name == table })])
	return fmt.Sprintf("SELECT %s FROM %s%s %s SELECT %s FROM %s%s", c.sql, from, r.where(sc, 1), operator, column, table, r.where(other, 1))
}

func (r *reader) selectCTE() string {
	r.mark("select")
	t := oneOf(r.intn, r.db.Tables)
	from, sc := r.readFrom(t)
	name := r.alias()
	columns := some(r.intn, t.Columns, r.between(1, len(t.Columns)))
	with := fmt.Sprintf("WITH %s AS (SELECT %s FROM %s%s) ", name, list(namesOf(columns)), from, r.where(sc, 1))
	outer := &scope{sources: []source{{name: name, columns: columns}}}
	if r.intn(2) == 0 {
		return with + "SELECT * FROM " + name + r.where(outer, 1)
	}
	outer.sources = append(outer.sources, t.source(t.Name))
	outer.qualified = true
	left := &scope{sources: outer.sources[:1], qualified: true}
	return with + fmt.Sprintf("SELECT %s FROM %s JOIN %s ON %s", r.projection(outer), name, t.Name, r.joinCondition(left, t.source(t.Name), false))
}

// selectRecursive counts to a small number and joins a table with what was counted.
func (r *reader) selectRecursive() string {
	r.mark("select")
	name := r.alias()
	with := fmt.Sprintf("WITH RECURSIVE %s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM %s WHERE n < %d) ", name, name, r.between(2, 4))
	t := oneOf(r.intn, r.db.Tables)
	from, sc := r.readFrom(t)
	sc.qualified = true
	if numbers := sc.refs(func(c *Column) bool { return c.Class.Numeric() }); len(numbers) > 0 {
		word := "JOIN"
		if r.use("join-left", 500) {
			word = "LEFT JOIN"
		}
		return with + fmt.Sprintf("SELECT %s.n, %s FROM %s %s %s ON %s = %s.n", name, oneOf(r.intn, sc.refs(nil)).sql, name, word, from, oneOf(r.intn, numbers).sql, name)
	}
	return with + fmt.Sprintf("SELECT COUNT(*) FROM %s, %s", name, from)
}

// selectWindow makes a window function whose result is the same whatever the plan is: with a total order, or over whole
// partitions.
func (r *reader) selectWindow() string {
	r.mark("select")
	t := oneOf(r.intn, r.db.Tables)
	from, sc := r.readFrom(t)
	over := ""
	if by := sc.refs(groupable); len(by) > 0 && r.intn(2) == 0 {
		over = "PARTITION BY " + oneOf(r.intn, by).sql
	}
	total := sc.total()
	function := "COUNT(*)"
	numbers := sc.refs(func(c *Column) bool { return c.Class == Integer || c.Class == Decimal })
	if len(numbers) > 0 {
		function = "SUM(" + oneOf(r.intn, numbers).sql + ")"
	}
	if len(total) > 0 && r.intn(4) > 0 {
		functions := []string{"ROW_NUMBER()", "RANK()", "DENSE_RANK()", function}
		if len(numbers) > 0 {
			c := oneOf(r.intn, numbers).sql
			functions = append(functions, "LAG("+c+")", "LEAD("+c+", 2)", "FIRST_VALUE("+c+")")
		}
		function = oneOf(r.intn, functions)
		over = strings.TrimSpace(over + " ORDER BY " + list(r.directed(total)))
		if strings.HasPrefix(function, "SUM") || strings.HasPrefix(function, "COUNT") || strings.HasPrefix(function, "FIRST") {
			if r.use("window-frame", often) {
				over += oneOf(r.intn, []string{" ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", " ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING", " ROWS 1 PRECEDING"})
			}
		}
	}
	return fmt.Sprintf("SELECT %s, %s OVER (%s) FROM %s%s", oneOf(r.intn, sc.refs(nil)).sql, function, over, from, r.where(sc, 1))
}

func (r *reader) selectView() string {
	r.mark("select")
	v := oneOf(r.intn, r.db.Views)
	r.tables = append(r.tables, v.Table.Name)
	sc := &scope{sources: []source{{name: v.Name, columns: v.Columns}}}
	return "SELECT " + r.projection(sc) + " FROM " + v.Name + r.where(sc, 1)
}

// locking makes a SELECT that locks the rows that it gives.
func (r *reader) locking() string {
	r.mark("select")
	t := r.target
	r.target = nil
	from, sc := r.readFrom(t)
	join := len(r.db.Tables) > 1 && r.chance(rarely) || r.favored["for-update-of"]
	if join && r.has("join-inner") {
		r.mark("join-inner")
		from = r.join(t, sc, "JOIN")
	}
	where := r.where(sc, 1)
	if len(sc.sources) == 1 && r.has("where") && r.chance(300) {
		r.mark("where")
		where = " WHERE " + r.oneRow(t, sc)
	}
	sql := "SELECT " + r.projection(sc) + " FROM " + from + where
	if total := sc.total(); len(total) > 0 && r.limit(rarely) {
		sql += " ORDER BY " + list(total) + fmt.Sprintf(" LIMIT %d", r.between(1, 2))
	}
	strength := r.choose([]option{
		{10, "for-update", true, func() string { return " FOR UPDATE" }},
		{5, "for-share", true, func() string { return " FOR SHARE" }},
		{4, "lock-in-share-mode", true, func() string { return " LOCK IN SHARE MODE" }},
		{2, "for-no-key-update", true, func() string { return " FOR NO KEY UPDATE" }},
		{2, "for-key-share", true, func() string { return " FOR KEY SHARE" }},
	})
	sql += strength
	of := len(sc.sources) > 1 && strength != " LOCK IN SHARE MODE" && r.use("for-update-of", often)
	if of {
		sql += " OF " + sc.sources[0].name
	}
	waits := strength != " LOCK IN SHARE MODE" || r.grammar.shareWaits
	if waits && r.use("nowait", rarely) {
		return sql + " NOWAIT"
	}
	if waits && r.use("skip-locked", rarely) {
		return sql + " SKIP LOCKED"
	}
	return sql
}
