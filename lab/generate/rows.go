package generate

import (
	"fmt"
	"slices"
)

// rows fills a table. Each row keeps all constraints, so that no INSERT of the setup is refused.
func (g *definer) rows(db *Database, t *Table) {
	const attempts = 20
	want := g.between(min(2, g.limits.Rows), g.limits.Rows)
	if create := &db.Setup[len(db.Setup)-1]; g.use("empty-table", seldom) {
		create.Features = withFeature(create.Features, "empty-table")
		return
	}
	var texts []string
	for range want {
		for range attempts {
			row := g.row(db, t)
			if t.allowed(row) && g.referred(t, row) {
				t.Rows = append(t.Rows, row)
				texts = append(texts, rowText(t, row))
				break
			}
		}
	}
	if len(texts) == 0 {
		return
	}
	for i, c := range t.Columns {
		for _, row := range t.Rows {
			if c.Generated == "" && !row[i].Null {
				c.samples = append(c.samples, row[i])
			}
		}
	}
	into := fmt.Sprintf("INSERT INTO %s (%s) VALUES ", t.Name, list(namesOf(t.writable())))
	if g.has("insert-multi-row") && g.intn(2) == 0 {
		g.setup(db, t, KindInsert, func() string {
			g.mark("insert-multi-row")
			return into + list(texts)
		})
		return
	}
	for _, text := range texts {
		g.setup(db, t, KindInsert, func() string { return into + text })
	}
}

// row draws a row, without regard to the constraints. Generated columns have no SQL.
func (g *definer) row(db *Database, t *Table) []Value {
	row := make([]Value, len(t.Columns))
	for i, c := range t.Columns {
		row[i] = g.cell(db, t, c)
	}
	return row
}

// cell draws a value for a column.
func (g *definer) cell(db *Database, t *Table, c *Column) Value {
	switch {
	case c.Generated != "":
		return Value{}
	case c.Parent != nil:
		rows := c.parentTable.Rows
		if len(rows) == 0 || g.chance(fairly) {
			return null()
		}
		return oneOf(g.intn, rows)[c.parentTable.index(c.Parent)]
	case c.NotNull || !g.chance(fairly):
		return g.value(db.pool, c.Type)
	}
	return null()
}

// referred reports whether the rows that the row's foreign keys name are there.
func (g *definer) referred(t *Table, row []Value) bool {
	for i, c := range t.Columns {
		if c.Parent == nil || row[i].Null {
			continue
		}
		at := c.parentTable.index(c.Parent)
		if !slices.ContainsFunc(c.parentTable.Rows, func(p []Value) bool { return p[at].SQL == row[i].SQL }) {
			return false
		}
	}
	return true
}

// rowText writes a row for VALUES.
func rowText(t *Table, row []Value) string {
	var texts []string
	for i, c := range t.Columns {
		if c.Generated == "" {
			texts = append(texts, row[i].SQL)
		}
	}
	return "(" + list(texts) + ")"
}
