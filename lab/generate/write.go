package generate

import (
	"fmt"
	"slices"
	"strings"
)

// writeInto makes a write of that kind to the table.
func (g *Generator) writeInto(db *Database, t *Table, kind Kind) Statement {
	g.begin(kind)
	r := writerOf(&g.definer, db, t)
	r.tables = []string{t.Name}
	write := map[Kind]func() string{
		KindInsert: r.insert, KindUpsert: r.upsert, KindReplace: r.replace, KindUpdate: r.update, KindDelete: r.delete, KindMerge: r.merge,
	}[kind]
	sql := write()
	return g.end(sql, r.tables)
}

// constrained reports whether a CHECK constraint or the partitioning looks at the column.
func (t *Table) constrained(c *Column) bool {
	return c == t.partition || slices.ContainsFunc(t.checks, func(k check) bool { return slices.Contains(k.columns, c) })
}

// assignable are the columns that UPDATE may set; with keys: also those of keys, which can fail.
func (r *writer) assignable(keys bool) []*Column {
	return slices.DeleteFunc(r.target.writable(), func(c *Column) bool {
		return c.auto || !keys && (r.target.inKey(c) || c == r.target.partition)
	})
}

// assigned gives a value for a column: a constant, or something computed from the row.
func (r *writer) assigned(c *Column, self ref) string {
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
	return !slices.ContainsFunc(t.checks, func(k check) bool {
		return len(k.columns) == 1 && k.columns[0] == c && !k.holds([]Value{v})
	})
}

func (r *writer) update() string {
	r.mark("update")
	t := r.target
	sc := scopeOf(t)
	columns := r.assignable(false)
	if keys := r.assignable(true); len(columns) == 0 || len(keys) > len(columns) && r.use("update-key", fairly) {
		return r.updateKey(keys, sc)
	}
	chosen := some(r.intn, columns, r.few(1, min(2, len(columns))))
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
		sets = []string{fmt.Sprintf("(%s) = %s(%s)", list(namesOf(chosen)), r.grammar.row, list(values))}
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
	if r.grammar.updateFrom {
		sql += r.returning(&Table{Columns: sc.sources[0].columns})
	}
	return sql
}

// viewWith gives a view of the target that shows the columns, or nil.
func (r *writer) viewWith(columns []*Column) *View {
	for _, v := range r.db.Views {
		if v.Table == r.target && !slices.ContainsFunc(columns, func(c *Column) bool { return !slices.Contains(v.Columns, c) }) {
			return v
		}
	}
	return nil
}

// with puts a CTE of another table in front of an UPDATE or DELETE, for its condition to use.
func (r *writer) with() string {
	if len(r.readable()) == 0 || !r.use("write-cte", seldom) {
		return ""
	}
	t := oneOf(r.intn, r.readable())
	r.tables = append(r.tables, t.Name)
	return fmt.Sprintf("WITH w AS (SELECT %s FROM %s) ", oneOf(r.intn, t.Columns).Name, t.Name)
}

// writeWhere makes the condition of a write.
func (r *writer) writeWhere(sc *scope, with string) string {
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
func (r *writer) updateKey(columns []*Column, sc *scope) string {
	r.mark("update-key")
	t := r.target
	c := oneOf(r.intn, columns)
	value := r.cell(r.db, t, c)
	for range 4 {
		if !value.Null && t.allows(c, value) {
			break
		}
		value = r.present(c)
	}
	if value.Null && c.NotNull {
		value = r.present(c)
	}
	if c.Class == Integer && r.intn(2) == 0 && t.inKey(c) && c.Parent == nil && !t.constrained(c) {
		value.SQL = fmt.Sprint(r.between(0, 30))
	}
	return fmt.Sprintf("UPDATE %s SET %s = %s WHERE %s", t.Name, c.Name, value.SQL, r.oneRow(t, sc))
}

// present draws a value that is not NULL, as long as there is one.
func (r *reader) present(c *Column) Value {
	if c.Parent != nil {
		return r.cell(r.db, r.target, c)
	}
	return r.value(r.db.pool, c.Type)
}

// oneRow is a condition that one row of the setup meets; without a primary key, several can.
func (r *reader) oneRow(t *Table, sc *scope) string {
	if len(t.Rows) == 0 || len(t.Primary) == 0 || sc.sources[0].name != t.Name {
		return r.compare(r.db, oneOf(r.intn, sc.refs(nil)))
	}
	row := oneOf(r.intn, t.Rows)
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

// partner chooses another table for a join with the target, and the join's condition.
func (r *writer) partner() (other *Table, on string) {
	other = oneOf(r.intn, slices.DeleteFunc(slices.Clone(r.db.Tables), func(o *Table) bool { return o == r.target }))
	r.tables = append(r.tables, other.Name)
	left := scopeOf(r.target)
	left.qualified = true
	return other, r.joinCondition(left, other.source(other.Name), false)
}

// updateJoin updates rows that meet some of another table. What it sets comes from the row itself or is constant: with several
// partners, which one's value is taken would be left to the plan.
func (r *writer) updateJoin(c *Column) string {
	t := r.target
	other, on := r.partner()
	value := r.assigned(c, ref{c, t.Name + "." + c.Name})
	both := &scope{sources: []source{t.source(t.Name), other.source(other.Name)}, qualified: true}
	flat := &reader{expressions{definer: r.definer, db: r.db, flat: true}}
	if r.grammar.updateFrom {
		return fmt.Sprintf("UPDATE %s SET %s = %s FROM %s WHERE %s AND %s", t.Name, c.Name, value, other.Name, on, flat.condition(both, 1))
	}
	set, where := fmt.Sprintf("%s.%s = %s", t.Name, c.Name, value), flat.condition(both, 1)
	second := writerOf(r.definer, r.db, other)
	// In which order the tables are updated is not defined (MySQL manual, 15.2.17): what is assigned decides on no row.
	decides := func(t *Table, c *Column) bool { return strings.Contains(on+where, t.Name+"."+c.Name) }
	columns := slices.DeleteFunc(slices.Clone(second.assignable(false)), func(o *Column) bool { return decides(other, o) })
	if len(columns) > 0 && !decides(t, c) && r.use("update-multi-table", often) {
		o := oneOf(r.intn, columns)
		set += fmt.Sprintf(", %s.%s = %s", other.Name, o.Name, second.assigned(o, ref{o, other.Name + "." + o.Name}))
	}
	return fmt.Sprintf("UPDATE %s JOIN %s ON %s SET %s WHERE %s", t.Name, other.Name, on, set, where)
}

func (r *writer) delete() string {
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

func (r *writer) deleteJoin() string {
	t := r.target
	other, on := r.partner()
	if r.grammar.deleteUsing {
		return fmt.Sprintf("DELETE FROM %s USING %s WHERE %s", t.Name, other.Name, on)
	}
	from := t.Name
	if r.use("delete-multi-table", often) {
		from += ", " + other.Name
	}
	return fmt.Sprintf("DELETE %s FROM %s JOIN %s ON %s", from, t.Name, other.Name, on)
}

// merge makes a MERGE with one row as its source, so that no row is met twice (PostgreSQL manual, MERGE).
func (r *writer) merge() string {
	r.mark("merge")
	t := r.target
	columns := t.writable()
	row := r.newRow(t)
	var on, values []string
	by := t.Primary
	if len(by) == 0 {
		by = []*Column{oneOf(r.intn, slices.DeleteFunc(t.writable(), func(c *Column) bool { return c.Class == JSON }))}
	}
	for _, c := range by {
		v := row[t.index(c)]
		if len(t.Rows) > 0 && r.intn(2) == 0 {
			v = oneOf(r.intn, t.Rows)[t.index(c)]
		}
		on = append(on, fmt.Sprintf("%s.%s = %s", t.Name, c.Name, v.SQL))
	}
	for _, c := range columns {
		values = append(values, row[t.index(c)].SQL)
	}
	matched := "DELETE"
	if set := r.assignable(false); len(set) > 0 && r.intn(4) > 0 {
		c := oneOf(r.intn, set)
		matched = fmt.Sprintf("UPDATE SET %s = %s", c.Name, r.assigned(c, ref{c, t.Name + "." + c.Name}))
	}
	const form = "MERGE INTO %s USING (VALUES (1)) AS s (n) ON %s WHEN MATCHED THEN %s WHEN NOT MATCHED THEN INSERT (%s) VALUES (%s)"
	return fmt.Sprintf(form, t.Name, strings.Join(on, " AND "), matched, list(namesOf(columns)), list(values))
}
