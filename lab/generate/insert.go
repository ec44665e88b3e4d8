package generate

import (
	"fmt"
	"slices"
	"strings"
)

// newRow draws a row for an INSERT: mostly one that breaks no constraint as far as the setup's rows tell.
func (r *writer) newRow(t *Table) []Value {
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
func (r *writer) intoColumns(t *Table) []*Column {
	all := t.writable()
	some := slices.DeleteFunc(slices.Clone(all), func(c *Column) bool {
		return c.auto && !r.chance(fairly) || (c.Default != nil || !c.NotNull) && !t.constrained(c) && r.chance(rarely)
	})
	if len(some) == 0 {
		return all
	}
	return some
}

// tuple writes a row's values for some columns.
func (r *writer) tuple(t *Table, columns []*Column, row []Value) string {
	var texts []string
	for _, c := range columns {
		if (c.Default != nil || !c.NotNull) && !t.constrained(c) && r.use("insert-default", seldom) {
			texts = append(texts, "DEFAULT")
			continue
		}
		if c.Class == Integer && c.Parent == nil && !c.auto && r.use("extreme-value", 5) {
			texts = append(texts, fmt.Sprint(oneOf(r.intn, []int64{c.Least, c.Most})))
			continue
		}
		texts = append(texts, row[t.index(c)].SQL)
	}
	return "(" + list(texts) + ")"
}

// tuples writes VALUES of one or some rows, different in all keys.
func (r *writer) tuples(t *Table, columns []*Column, several bool) string {
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
func (r *writer) into() (name string, columns []*Column) {
	t := r.target
	for _, v := range r.db.Views {
		if v.Table == t && !slices.ContainsFunc(t.writable(), func(c *Column) bool { return !slices.Contains(v.Columns, c) }) && r.use("view-write", fairly) {
			return v.Name, t.writable()
		}
	}
	return t.Name, r.intoColumns(t)
}

func (r *writer) insert() string {
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

func (r *writer) pairs(columns []*Column, row []Value) string {
	var texts []string
	for _, c := range columns {
		texts = append(texts, c.Name+" = "+row[r.target.index(c)].SQL)
	}
	return list(texts)
}

// insertSelect takes the rows of a table, in a total order where that matters: REPLACE and IGNORE depend on it, and numbers that the
// table gives to new rows.
func (r *writer) insertSelect(verb string) string {
	t := r.target
	from := oneOf(r.intn, r.db.Tables)
	r.tables = append(r.tables, from.Name)
	sc := scopeOf(from)
	var items []string
	columns := t.writable()
	for _, c := range columns {
		items = append(items, r.selected(t, c, sc))
	}
	limited := &reader{expressions{definer: r.definer, db: r.db, flat: true}}
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
func (r *writer) selected(t *Table, c *Column, sc *scope) string {
	same := sc.refs(func(o *Column) bool { return o.SQL == c.SQL && o.Class != Enum && (o.NotNull || !c.NotNull) })
	if len(same) > 0 && !t.constrained(c) && c.Parent == nil && r.chance(700) {
		o := oneOf(r.intn, same)
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

func (r *writer) returning(t *Table) string {
	if !r.use("returning", fairly/2) {
		return ""
	}
	return " RETURNING " + oneOf(r.intn, []string{"*", list(namesOf(some(r.intn, t.Columns, r.between(1, len(t.Columns)))))})
}

// upsert makes an INSERT that does something else where a row is in the way.
func (r *writer) upsert() string {
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
			return r.grammar.insertIgnore + " " + into + one()
		}},
		{10, "on-duplicate-key", len(assignable) > 0, func() string {
			c := oneOf(r.intn, assignable)
			value := r.assigned(c, ref{c, t.Name + "." + c.Name})
			if slices.Contains(columns, c) && r.intn(2) == 0 {
				value = "VALUES(" + c.Name + ")"
			}
			return "INSERT " + into + one() + " ON DUPLICATE KEY UPDATE " + c.Name + " = " + value
		}},
		{8, "on-conflict-nothing", true, func() string { return "INSERT " + into + one() + " ON CONFLICT DO NOTHING" }},
		{12, "on-conflict-update", covers && len(assignable) > 0, func() string {
			c := oneOf(r.intn, assignable)
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
func (r *writer) ordered() []*Table {
	return slices.DeleteFunc(slices.Clone(r.db.Tables), func(t *Table) bool { return len(t.Primary) == 0 })
}

// insertSelectIgnore is INSERT IGNORE ... SELECT from a table with a total order: which of two rows stays depends on it.
func (r *writer) insertSelectIgnore() string {
	whole := r.db
	narrowed := *whole
	narrowed.Tables = r.ordered()
	r.db = &narrowed
	defer func() { r.db = whole }()
	return r.insertSelect(r.grammar.insertIgnore)
}

func (r *writer) replace() string {
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
