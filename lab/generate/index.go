package generate

import (
	"fmt"
	"regexp"
	"slices"
)

var indexName = regexp.MustCompile(`^CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)`)

// indexesOf gives the names of a table's indexes that the setup creates by statements of their own.
func (db *Database) indexesOf(t *Table) (names []string) {
	for _, st := range db.Setup {
		if m := indexName.FindStringSubmatch(st.SQL); m != nil && m[2] == t.Name {
			names = append(names, m[1])
		}
	}
	return names
}

// indexes makes secondary indexes of a table.
func (g *definer) indexes(db *Database, t *Table, left *int) {
	for range 2 {
		if *left == 0 || !g.chance(often) && !g.favored["index"] {
			continue
		}
		g.begin(KindSchema)
		if sql := g.index(db, t); sql != "" {
			*left--
			db.Setup = append(db.Setup, g.end(sql, []string{t.Name}))
		}
	}
}

// index makes an index, or nothing if the table has nothing for it.
func (g *definer) index(db *Database, t *Table) string {
	if !g.has("index") {
		return ""
	}
	t.indexes++
	name := fmt.Sprintf("%s_i%d", t.Name, t.indexes)
	if sql := g.uniqueIndex(db, t, name); sql != "" {
		return sql
	}
	columns := slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool {
		return c.Prefix || c.Class == JSON || c.Generated != "" && !g.has("index-generated")
	})
	create := fmt.Sprintf("CREATE INDEX %s ON %s ", name, t.Name)
	for _, c := range t.Columns {
		if g.grammar.mysql && (c.Class == Text || c.Class == Binary) && c.Generated == "" && g.use("index-prefix", fairly) {
			g.mark("index")
			return create + fmt.Sprintf("(%s(2))", c.Name)
		}
	}
	if expression := g.indexExpression(t); expression != "" && g.use("index-functional", fairly) {
		g.mark("index")
		return create + "((" + expression + "))"
	}
	if len(columns) == 0 {
		return ""
	}
	g.mark("index")
	if g.use("index-hash", rarely) {
		return create + "USING HASH (" + oneOf(g.intn, columns).Name + ")"
	}
	chosen := []*Column{oneOf(g.intn, columns)}
	for _, c := range columns {
		if c.Generated != "" && g.favored["index-generated"] { // few tables have one
			chosen[0] = c
		}
	}
	if len(columns) > 1 && g.use("index-multi-column", fairly) {
		chosen = some(g.intn, columns, 2)
	}
	if slices.ContainsFunc(chosen, func(c *Column) bool { return c.Generated != "" }) {
		g.mark("index-generated")
	}
	names := namesOf(chosen)
	if last := chosen[len(chosen)-1]; last.Class == Text && g.use("index-collation", often) {
		names[len(names)-1] += " COLLATE " + oneOf(g.intn, []string{"NOCASE", "RTRIM", "BINARY"})
	}
	if g.use("index-descending", fairly/2) {
		names[len(names)-1] += " DESC"
	}
	sql := create + "(" + list(names) + ")"
	if g.use("index-invisible", rarely) {
		return sql + " " + g.grammar.hidden
	}
	if g.use("index-include", rarely) {
		sql += " INCLUDE (" + oneOf(g.intn, t.Columns).Name + ")"
	}
	if g.use("index-partial", fairly) {
		sql += " WHERE " + g.comparison(db, scopeOf(t))
	}
	return sql
}

// uniqueIndex makes a unique index, or nothing. What the rows hold already stays possible.
func (g *definer) uniqueIndex(db *Database, t *Table, name string) string {
	if t.Partitioned {
		return ""
	}
	create := fmt.Sprintf("CREATE UNIQUE INDEX %s ON %s ", name, t.Name)
	add := func(k key, feature string, frequency int) bool {
		if !g.has("index-unique") || !t.fits(k) || !g.use(feature, frequency) {
			return false
		}
		g.mark("index", "index-unique")
		t.keys = append(t.keys, k)
		return true
	}
	for _, c := range t.Columns {
		if (c.Class == Text || c.Class == Binary) && c.Generated == "" && c.Parent == nil && g.grammar.mysql &&
			add(key{columns: []*Column{c}, of: prefixKey(2)}, "unique-prefix", rarely) {
			return create + fmt.Sprintf("(%s(2))", c.Name)
		}
		if (c.Class == Text && !c.Prefix && c.Generated == "" && c.SQL != "CHAR(5)") && add(key{columns: []*Column{c}, of: wholeKey}, "unique-expression", rarely) {
			return create + fmt.Sprintf("((LOWER(%s)))", c.Name)
		}
		if c.Class == Integer && c.Generated == "" && g.grammar.partialIndex {
			partial := key{columns: []*Column{c}, of: func(v []Value) (string, bool) {
				text, applies := wholeKey(v)
				return text, applies && v[0].Number > 1
			}}
			if add(partial, "unique-partial", rarely) {
				return create + fmt.Sprintf("(%s) WHERE %s > 1", c.Name, c.Name)
			}
		}
	}
	columns := slices.DeleteFunc(g.indexable(t), func(c *Column) bool { return c.Class == Boolean || c.Parent != nil })
	if len(columns) == 0 {
		return ""
	}
	c := oneOf(g.intn, columns)
	if add(key{columns: []*Column{c}, plain: true, of: wholeKey}, "index-unique", rarely) {
		return create + "(" + c.Name + ")"
	}
	return ""
}

// fits reports whether the rows of the setup keep the key.
func (t *Table) fits(k key) bool {
	seen := map[string]bool{}
	for _, row := range t.Rows {
		text, applies := k.of(t.values(row, k.columns))
		if applies && seen[text] {
			return false
		}
		seen[text] = applies
	}
	return true
}

// indexExpression gives an expression that an index may hold. TiDB takes few functions (manual, "CREATE INDEX", "Expression index").
func (g *definer) indexExpression(t *Table) string {
	for _, c := range t.Columns {
		switch {
		case c.Generated != "" || c.Prefix:
		case c.Class == Text && c.SQL == "VARCHAR(20)":
			return oneOf(g.intn, []string{"LOWER", "UPPER"}) + "(" + c.Name + ")"
		case c.Class == Integer && c.Parent == nil && g.grammar.sumIndex:
			return oneOf(g.intn, []string{c.Name + " + 1", "ABS(" + c.Name + ")"})
		}
	}
	return ""
}
