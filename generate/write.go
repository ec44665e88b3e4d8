package generate

import (
	"fmt"
	"slices"
	"strings"
)

// writeInto makes a write of that kind to the table.
func (g *Generator) writeInto(db *Database, t *Table, kind Kind) Statement {
	g.begin(kind)
	r := &reader{Generator: g, db: db, target: t, tables: []string{t.Name}}
	var sql string
	switch kind {
	case KindInsert:
		sql = r.insert()
	case KindUpsert:
		sql = r.upsert()
	case KindReplace:
		sql = r.replace()
	case KindUpdate:
		sql = r.update()
	case KindDelete:
		sql = r.delete()
	case KindMerge:
		sql = r.merge()
	default:
		panic("generate: no write of kind " + string(kind))
	}
	return g.end(sql, r.tables)
}

// newRow draws a row for an INSERT: mostly one that breaks no constraint as far as the setup's rows tell.
func (r *reader) newRow(t *Table) []Value {
	row := r.row(r.db, t)
	for range 4 {
		if t.allowed(row) || t.checked(row) && r.chance(rarely) {
			break
		}
		row = r.row(r.db, t)
		for i, c := range t.Columns {
			if c.Class == Integer && c.Generated == "" && c.Parent == nil && t.inKey(c) {
				row[i] = number(fmt.Sprint(r.between(0, 30)), 0)
				row[i].Number = parse(row[i].SQL)
			}
		}
	}
	return row
}

func parse(sql string) (n float64) {
	for _, digit := range sql {
		n = n*10 + float64(digit-'0')
	}
	return n
}

// intoColumns are the columns that an INSERT names: all, or all without some of those that have another value.
func (r *reader) intoColumns(t *Table) []*Column {
	all := t.writable()
	some := slices.DeleteFunc(slices.Clone(all), func(c *Column) bool {
		return c.auto && !r.chance(fairly) || (c.Default != nil || !c.NotNull) && !t.constrained(c) && r.chance(rarely)
	})
	if len(some) == 0 {
		return all
	}
	return some
}

// constrained reports whether a CHECK constraint or the partitioning looks at the column.
func (t *Table) constrained(c *Column) bool {
	return c == t.partition || slices.ContainsFunc(t.checks, func(k check) bool { return slices.Contains(k.columns, c) })
}

// tuple writes a row's values for some columns.
func (r *reader) tuple(t *Table, columns []*Column, row []Value) string {
	var texts []string
	for _, c := range columns {
		if (c.Default != nil || !c.NotNull) && !t.constrained(c) && r.use("insert-default", seldom) {
			texts = append(texts, "DEFAULT")
			continue
		}
		if c.Class == Integer && c.Parent == nil && !c.auto && r.use("extreme-value", 5) {
			texts = append(texts, fmt.Sprint(oneOf(r.Generator, []int64{c.Least, c.Most})))
			continue
		}
		texts = append(texts, row[t.index(c)].SQL)
	}
	return "(" + list(texts) + ")"
}

// tuples writes VALUES of one or some rows, different in all keys.
func (r *reader) tuples(t *Table, columns []*Column, several bool) string {
	n := 1
	if several && r.use("insert-multi-row", fairly) {
		n = r.between(2, 3)
	}
	var texts []string
	scratch := *t
	for range n {
		row := r.newRow(&scratch)
		scratch.Rows = append(slices.Clone(scratch.Rows), row)
		texts = append(texts, r.tuple(t, columns, row))
	}
	return list(texts)
}

// into gives the object that an INSERT names: the table, or a view that shows all of its columns without default.
func (r *reader) into() (name string, columns []*Column) {
	t := r.target
	for _, v := range r.db.Views {
		if v.Table == t && !slices.ContainsFunc(t.writable(), func(c *Column) bool { return !slices.Contains(v.Columns, c) }) && r.use("view-write", fairly) {
			return v.Name, t.writable()
		}
	}
	return t.Name, r.intoColumns(t)
}

func (r *reader) insert() string {
	r.mark("insert")
	t := r.target
	if r.use("insert-select", rarely*2) {
		return r.insertSelect("INSERT")
	}
	if r.use("insert-set", rarely) {
		columns := r.intoColumns(t)
		return "INSERT INTO " + t.Name + " SET " + r.pairs(columns, r.newRow(t))
	}
	name, columns := r.into()
	sql := fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", name, list(namesOf(columns)), r.tuples(t, columns, true))
	return sql + r.returning(t)
}

func (r *reader) pairs(columns []*Column, row []Value) string {
	var texts []string
	for _, c := range columns {
		texts = append(texts, c.Name+" = "+row[r.target.index(c)].SQL)
	}
	return list(texts)
}

// insertSelect takes the rows of a table, in a total order where that matters: REPLACE and IGNORE depend on it, and numbers that the
// table gives to new rows.
func (r *reader) insertSelect(verb string) string {
	t := r.target
	from := oneOf(r.Generator, r.db.Tables)
	r.tables = append(r.tables, from.Name)
	sc := scopeOf(from)
	var items []string
	columns := t.writable()
	for _, c := range columns {
		items = append(items, r.selected(t, c, sc))
	}
	limited := &reader{Generator: r.Generator, db: r.db, flat: true}
	sql := fmt.Sprintf("%s INTO %s (%s) SELECT %s FROM %s WHERE %s", verb, t.Name, list(namesOf(columns)), list(items), from.Name, limited.condition(sc, 1))
	if total := sc.total(); total != nil {
		sql += " ORDER BY " + list(total)
		if r.limit(often) {
			sql += " LIMIT 1"
		}
	}
	return sql
}

// selected gives what INSERT ... SELECT puts into a column: a column of the same type, moved out of the way of what is there if it is
// a key, or a constant.
func (r *reader) selected(t *Table, c *Column, sc *scope) string {
	same := sc.refs(func(o *Column) bool { return o.SQL == c.SQL && o.Class != Enum && (o.NotNull || !c.NotNull) })
	if len(same) > 0 && !t.constrained(c) && c.Parent == nil && r.chance(700) {
		o := oneOf(r.Generator, same)
		if c.Class == Integer && t.inKey(c) && o.Generated == "" {
			return fmt.Sprintf("%s + %d", o.sql, r.between(1, 20))
		}
		return o.sql
	}
	v := r.cell(r.db, t, c)
	if v.Null {
		return "NULL"
	}
	return r.typed(c.Type, v.SQL)
}

func (r *reader) returning(t *Table) string {
	if !r.use("returning", fairly/2) {
		return ""
	}
	return " RETURNING " + oneOf(r.Generator, []string{"*", list(namesOf(some(r.Generator, t.Columns, r.between(1, len(t.Columns)))))})
}

// upsert makes an INSERT that does something else where a row is in the way.
func (r *reader) upsert() string {
	t := r.target
	columns := r.intoColumns(t)
	into := fmt.Sprintf("INTO %s (%s) VALUES ", t.Name, list(namesOf(columns)))
	one := func() string { return r.tuple(t, columns, r.row(r.db, t)) }
	assignable := r.assignable(false)
	var target []*Column
	for _, k := range t.keys {
		if k.plain && target == nil {
			target = k.columns
		}
	}
	covers := target != nil && !slices.ContainsFunc(target, func(c *Column) bool { return !slices.Contains(columns, c) })
	sql := r.choose([]option{
		{10, "insert-ignore", true, func() string {
			if r.use("insert-select", rarely) && len(r.ordered()) > 0 {
				return r.insertSelectIgnore()
			}
			return "INSERT IGNORE " + into + one()
		}},
		{10, "on-duplicate-key", len(assignable) > 0, func() string {
			c := oneOf(r.Generator, assignable)
			value := r.assigned(c, ref{c, t.Name + "." + c.Name})
			if slices.Contains(columns, c) && r.intn(2) == 0 {
				value = "VALUES(" + c.Name + ")"
			}
			return "INSERT " + into + one() + " ON DUPLICATE KEY UPDATE " + c.Name + " = " + value
		}},
		{8, "on-conflict-nothing", true, func() string { return "INSERT " + into + one() + " ON CONFLICT DO NOTHING" }},
		{12, "on-conflict-update", covers && len(assignable) > 0, func() string {
			c := oneOf(r.Generator, assignable)
			value := r.assigned(c, ref{c, t.Name + "." + c.Name})
			if slices.Contains(columns, c) && r.intn(2) == 0 {
				value = "excluded." + c.Name
			}
			return fmt.Sprintf("INSERT %s%s ON CONFLICT (%s) DO UPDATE SET %s = %s", into, one(), list(namesOf(target)), c.Name, value)
		}},
		{1, "", true, func() string { return "INSERT " + into + one() }},
	})
	r.mark("insert")
	if !strings.Contains(sql, " SELECT ") && !strings.Contains(sql, "ON DUPLICATE") {
		sql += r.returning(t)
	}
	return sql
}

// ordered are the tables that have a total order.
func (r *reader) ordered() []*Table {
	return slices.DeleteFunc(slices.Clone(r.db.Tables), func(t *Table) bool { return len(t.Primary) == 0 })
}

// insertSelectIgnore is INSERT IGNORE ... SELECT from a table with a total order: which of two rows stays depends on it.
func (r *reader) insertSelectIgnore() string {
	whole := r.db
	narrowed := *whole
	narrowed.Tables = r.ordered()
	r.db = &narrowed
	defer func() { r.db = whole }()
	return r.insertSelect("INSERT IGNORE")
}

func (r *reader) replace() string {
	r.mark("replace")
	t := r.target
	if len(r.ordered()) > 0 && r.use("replace-select", rarely*2) {
		whole := r.db
		narrowed := *whole
		narrowed.Tables = r.ordered()
		r.db = &narrowed
		defer func() { r.db = whole }()
		return r.insertSelect("REPLACE")
	}
	columns := r.intoColumns(t)
	return fmt.Sprintf("REPLACE INTO %s (%s) VALUES %s", t.Name, list(namesOf(columns)), r.tuple(t, columns, r.row(r.db, t))) + r.returning(t)
}

// assignable are the columns that UPDATE may set; with keys: also those of keys, which can fail.
func (r *reader) assignable(keys bool) []*Column {
	return slices.DeleteFunc(r.target.writable(), func(c *Column) bool {
		return c.auto || !keys && (r.target.inKey(c) || c == r.target.partition)
	})
}

// assigned gives a value for a column: a constant, or something computed from the row.
func (r *reader) assigned(c *Column, self ref) string {
	t := r.target
	if (c.Class == Integer || c.Class == Decimal || c.Class == Text && c.SQL == "VARCHAR(20)") && !t.inKey(c) && c.Parent == nil && r.use("update-expression", often) {
		switch {
		case c.Class == Text:
			return r.textFunction(self)
		case t.constrained(c): // a CHECK constraint may look at it; what grows is safest
			return fmt.Sprintf("%s + %d", self.sql, r.between(1, 3))
		}
		return r.arithmetic(self)
	}
	if (c.Default != nil || !c.NotNull) && !t.constrained(c) && r.use("update-default", seldom) {
		return "DEFAULT"
	}
	for range 4 {
		v := r.cell(r.db, t, c)
		if !c.NotNull && v.Null || t.allows(c, v) {
			return v.SQL
		}
	}
	return self.sql
}

// allows reports whether the CHECK constraints over this column alone take the value.
func (t *Table) allows(c *Column, v Value) bool {
	for _, k := range t.checks {
		if len(k.columns) == 1 && k.columns[0] == c && !k.holds([]Value{v}) {
			return false
		}
	}
	return true
}

func (r *reader) update() string {
	r.mark("update")
	t := r.target
	sc := scopeOf(t)
	columns := r.assignable(false)
	if keys := r.assignable(true); len(columns) == 0 || len(keys) > len(columns) && r.use("update-key", fairly) {
		return r.updateKey(keys, sc)
	}
	chosen := some(r.Generator, columns, r.few(1, min(2, len(columns))))
	if len(r.db.Tables) > 1 && r.use("update-join", rarely) {
		return r.updateJoin(chosen[0])
	}
	name := t.Name
	if v := r.viewWith(chosen); v != nil && r.use("view-write", fairly*2) {
		name, sc = v.Name, &scope{sources: []source{{name: v.Name, columns: v.Columns}}}
		sc.sources[0].order = nil
	}
	var sets []string
	for _, c := range chosen {
		value := r.assigned(c, ref{c, c.Name})
		if c.Class == Integer && !t.constrained(c) && c.Parent == nil && len(r.readable()) > 0 && r.use("update-subquery", rarely) {
			value = "COALESCE(" + r.scalarSubquery(sc, 0) + ", 0)"
			if c.Least == 0 {
				value = "ABS(" + value + ")"
			}
		}
		sets = append(sets, c.Name+" = "+value)
	}
	if len(chosen) == 2 && name == t.Name && r.use("update-row", fairly) {
		var values []string
		for _, set := range sets {
			_, value, _ := strings.Cut(set, " = ")
			values = append(values, value)
		}
		sets = []string{fmt.Sprintf("(%s) = ROW (%s)", list(namesOf(chosen)), list(values))}
	}
	with := ""
	if name == t.Name {
		with = r.with()
	}
	ignore, tail := "", ""
	if total := sc.total(); total != nil {
		switch {
		case r.use("update-limit", rarely):
			tail = " ORDER BY " + list(r.directed(total)) + fmt.Sprintf(" LIMIT %d", r.between(1, 2))
		case r.use("update-ignore", seldom):
			ignore, tail = "IGNORE ", " ORDER BY "+list(total)
		}
	}
	where := r.writeWhere(sc, with)
	sql := fmt.Sprintf("%sUPDATE %s%s SET %s%s%s", with, ignore, name, list(sets), where, tail)
	if r.dialect == Postgres {
		sql += r.returning(&Table{Columns: sc.sources[0].columns})
	}
	return sql
}

// viewWith gives a view of the target that shows the columns, or nil.
func (r *reader) viewWith(columns []*Column) *View {
	for _, v := range r.db.Views {
		if v.Table == r.target && !slices.ContainsFunc(columns, func(c *Column) bool { return !slices.Contains(v.Columns, c) }) {
			return v
		}
	}
	return nil
}

// with puts a CTE of another table in front of an UPDATE or DELETE, for its condition to use.
func (r *reader) with() string {
	if len(r.readable()) == 0 || !r.use("write-cte", seldom) {
		return ""
	}
	t := oneOf(r.Generator, r.readable())
	r.tables = append(r.tables, t.Name)
	return fmt.Sprintf("WITH w AS (SELECT %s FROM %s) ", oneOf(r.Generator, t.Columns).Name, t.Name)
}

// writeWhere makes the condition of a write.
func (r *reader) writeWhere(sc *scope, with string) string {
	if with != "" {
		return " WHERE EXISTS (SELECT 1 FROM w) AND " + r.condition(sc, 0)
	}
	if r.has("where") && r.chance(400) { // one row, which others write, too
		r.mark("where")
		return " WHERE " + r.oneRow(r.target, sc)
	}
	return r.where(sc, r.limits.Depth)
}

// updateKey changes a key of one row, chosen by a key: of several rows, whether the change meets another row depends on which is
// changed first.
func (r *reader) updateKey(columns []*Column, sc *scope) string {
	r.mark("update-key")
	t := r.target
	c := oneOf(r.Generator, columns)
	value := r.cell(r.db, t, c)
	for range 4 {
		if !value.Null && t.allows(c, value) {
			break
		}
		value = r.value2(c)
	}
	if value.Null && c.NotNull {
		value = r.value2(c)
	}
	if c.Class == Integer && r.intn(2) == 0 && t.inKey(c) && c.Parent == nil && !t.constrained(c) {
		value.SQL = fmt.Sprint(r.between(0, 30))
	}
	return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", t.Name, c.Name, value.SQL, r.oneRow(t, sc))
}

// value2 draws a value that is not NULL.
func (r *reader) value2(c *Column) Value {
	if c.Parent != nil {
		return r.cell(r.db, r.target, c)
	}
	return r.value(r.db.pool, c.Type)
}

// oneRow is a condition that one row of the setup meets; without a primary key, several can.
func (r *reader) oneRow(t *Table, sc *scope) string {
	if len(t.Rows) == 0 || len(t.Primary) == 0 || sc.sources[0].name != t.Name {
		return r.compare(r.db, oneOf(r.Generator, sc.refs(nil)))
	}
	row := oneOf(r.Generator, t.Rows)
	if r.hot != nil && slices.ContainsFunc(t.Rows, func(o []Value) bool { return &o[0] == &r.hot[0] }) && r.chance(800) {
		row = r.hot
	}
	return t.where(row)
}

// where is the condition that chooses the row by its primary key.
func (t *Table) where(row []Value) string {
	var parts []string
	for _, c := range t.Primary {
		parts = append(parts, c.Name+" = "+row[t.index(c)].SQL)
	}
	return strings.Join(parts, " AND ")
}

// updateJoin updates rows that meet some of another table. What it sets comes from the row itself or is constant: with several
// partners, which one's value is taken would be left to the plan.
func (r *reader) updateJoin(c *Column) string {
	t := r.target
	var others []*Table
	for _, o := range r.db.Tables {
		if o != t {
			others = append(others, o)
		}
	}
	other := oneOf(r.Generator, others)
	r.tables = append(r.tables, other.Name)
	left := scopeOf(t)
	left.qualified = true
	on := r.joinCondition(left, other.source(other.Name), false)
	value := r.assigned(c, ref{c, t.Name + "." + c.Name})
	both := &scope{sources: []source{t.source(t.Name), other.source(other.Name)}, qualified: true}
	flat := &reader{Generator: r.Generator, db: r.db, flat: true}
	if r.dialect == Postgres {
		return fmt.Sprintf("UPDATE %s SET %s = %s FROM %s WHERE %s AND %s", t.Name, c.Name, value, other.Name, on, flat.condition(both, 1))
	}
	set := fmt.Sprintf("%s.%s = %s", t.Name, c.Name, value)
	second := &reader{Generator: r.Generator, db: r.db, target: other}
	if columns := second.assignable(false); len(columns) > 0 && r.use("update-multi-table", often) {
		o := oneOf(r.Generator, columns)
		set += fmt.Sprintf(", %s.%s = %s", other.Name, o.Name, second.assigned(o, ref{o, other.Name + "." + o.Name}))
	}
	return fmt.Sprintf("UPDATE %s JOIN %s ON %s SET %s WHERE %s", t.Name, other.Name, on, set, flat.condition(both, 1))
}

func (r *reader) delete() string {
	r.mark("delete")
	t := r.target
	sc := scopeOf(t)
	if len(r.db.Tables) > 1 && r.use("delete-join", rarely) {
		return r.deleteJoin()
	}
	if r.use("modifying-cte", seldom) {
		return "WITH w AS (DELETE FROM " + t.Name + r.where(sc, 1) + " RETURNING *) SELECT * FROM w"
	}
	if r.use("delete-all", rarely) {
		return "DELETE FROM " + t.Name
	}
	with := r.with()
	where := r.writeWhere(sc, with)
	if where == "" && r.intn(4) > 0 {
		where = " WHERE " + r.condition(sc, 0)
	}
	sql := with + "DELETE FROM " + t.Name + where
	if total := sc.total(); total != nil && r.use("delete-limit", rarely) {
		return sql + " ORDER BY " + list(r.directed(total)) + fmt.Sprintf(" LIMIT %d", r.between(1, 2))
	}
	return sql + r.returning(t)
}

func (r *reader) deleteJoin() string {
	t := r.target
	var others []*Table
	for _, o := range r.db.Tables {
		if o != t {
			others = append(others, o)
		}
	}
	other := oneOf(r.Generator, others)
	r.tables = append(r.tables, other.Name)
	left := scopeOf(t)
	left.qualified = true
	on := r.joinCondition(left, other.source(other.Name), false)
	if r.dialect == Postgres {
		return fmt.Sprintf("DELETE FROM %s USING %s WHERE %s", t.Name, other.Name, on)
	}
	from := t.Name
	if r.use("delete-multi-table", often) {
		from += ", " + other.Name
	}
	return fmt.Sprintf("DELETE %s FROM %s JOIN %s ON %s", from, t.Name, other.Name, on)
}

// merge makes a MERGE with one row as its source, so that no row is met twice (PostgreSQL manual, MERGE).
func (r *reader) merge() string {
	r.mark("merge")
	t := r.target
	columns := t.writable()
	row := r.newRow(t)
	var on, values []string
	by := t.Primary
	if len(by) == 0 {
		by = []*Column{oneOf(r.Generator, slices.DeleteFunc(t.writable(), func(c *Column) bool { return c.Class == JSON }))}
	}
	for _, c := range by {
		v := row[t.index(c)]
		if len(t.Rows) > 0 && r.intn(2) == 0 {
			v = oneOf(r.Generator, t.Rows)[t.index(c)]
		}
		on = append(on, fmt.Sprintf("%s.%s = %s", t.Name, c.Name, v.SQL))
	}
	for _, c := range columns {
		values = append(values, row[t.index(c)].SQL)
	}
	matched := "DELETE"
	if set := r.assignable(false); len(set) > 0 && r.intn(4) > 0 {
		c := oneOf(r.Generator, set)
		matched = fmt.Sprintf("UPDATE SET %s = %s", c.Name, r.assigned(c, ref{c, t.Name + "." + c.Name}))
	}
	return fmt.Sprintf("MERGE INTO %s USING (VALUES (1)) AS s (n) ON %s WHEN MATCHED THEN %s WHEN NOT MATCHED THEN INSERT (%s) VALUES (%s)",
		t.Name, strings.Join(on, " AND "), matched, list(namesOf(columns)), list(values))
}
