package generate

import (
	"fmt"
	"slices"
	"strings"
)

// Database makes a database: tables with constraints, rows, indexes, foreign keys and views (Radar, VLDB'24, 3.2.1).
func (g *Generator) Database() *Database {
	db := &Database{Dialect: g.dialect, pool: g.stock()}
	tables := g.few(1, g.limits.Tables)
	foreign, indexes := g.limits.ForeignKeys, g.limits.Indexes
	for i := range tables {
		t := g.table(db, fmt.Sprintf("t%d", i+1), &foreign)
		db.Tables = append(db.Tables, t)
		before := g.intn(2) == 0
		if before {
			g.indexes(db, t, &indexes)
		}
		g.rows(db, t)
		if !before {
			g.indexes(db, t, &indexes)
		}
		g.trigger(db, t)
	}
	for _, t := range db.Tables {
		g.view(db, t)
	}
	return db
}

// Drop gives the statements that remove the database.
func (db *Database) Drop() []string {
	var out, tables []string
	for _, v := range db.Views {
		out = append(out, "DROP VIEW IF EXISTS "+v.Name)
	}
	for _, t := range slices.Backward(db.Tables) {
		tables = append(tables, t.Name)
	}
	if grammarOf(db.Dialect).embedded {
		for _, name := range tables {
			out = append(out, "DROP TABLE IF EXISTS "+name)
		}
		return out
	}
	out = append(out, "DROP TABLE IF EXISTS "+list(tables))
	if db.enum {
		out = append(out, "DROP TYPE IF EXISTS kind")
	}
	return out
}

// setup adds a statement to the setup.
func (g *definer) setup(db *Database, t *Table, kind Kind, text func() string) {
	var tables []string
	if t != nil {
		tables = []string{t.Name}
	}
	db.Setup = append(db.Setup, g.statement(kind, tables, text))
}

// table makes a table and the statement that creates it, and the types that it needs before.
func (g *definer) table(db *Database, name string, foreign *int) *Table {
	t := &Table{Name: name}
	g.begin(KindSchema)
	t.strict = g.use("strict", fairly)
	for i := range g.few(1, g.limits.Columns) + g.intn(2) {
		if i >= g.limits.Columns {
			break
		}
		t.Columns = append(t.Columns, g.column(db, t, fmt.Sprintf("c%d", i+1)))
	}
	var constraints []string
	add := func(text string) {
		if text != "" {
			constraints = append(constraints, text)
		}
	}
	g.choosePartition(t)
	add(g.primaryKey(t))
	add(g.uniqueConstraint(t))
	add(g.checkOne(db, t))
	add(g.checkTwo(t))
	unlogged := ""
	if !t.Partitioned && g.use("unlogged", seldom) {
		unlogged, t.apart = "UNLOGGED ", true
	}
	if *foreign > 0 && !t.Partitioned {
		if text := g.foreignKey(db, t); text != "" {
			*foreign--
			add(text)
		}
	}
	var lines []string
	for _, c := range t.Columns {
		lines = append(lines, g.definition(t, c))
	}
	tail, partitions := g.tableOptions(db, t)
	sql := fmt.Sprintf("CREATE %sTABLE %s (%s)%s", unlogged, name, list(append(lines, constraints...)), tail)
	create := g.end(sql, []string{name})
	if g.grammar.named && !db.enum && slices.Contains(create.Features, "type-enum") {
		db.enum = true
		g.begin(KindSchema)
		g.mark("type-enum")
		db.Setup = append(db.Setup, g.end("CREATE TYPE kind AS ENUM ("+quoted(enumMembers())+")", nil))
	}
	db.Setup = append(db.Setup, create)
	for _, p := range partitions {
		db.Setup = append(db.Setup, Statement{SQL: p, Kind: KindSchema, Tables: []string{name}, Features: []string{partitionFeature(create.Features)}})
	}
	return t
}

// column makes a column. The first one is never generated.
func (g *definer) column(db *Database, t *Table, name string) *Column {
	if len(t.Columns) > 0 {
		if c := g.generated(t, name); c != nil {
			return c
		}
	}
	c := &Column{Name: name}
	c.Type = g.anyType(func(ty Type) bool { return len(t.Columns) > 0 || ty.Class != JSON })
	if len(db.Tables) > 0 && g.chance(350) { // as in another table, so that they can be joined
		if like := oneOf(g.intn, oneOf(g.intn, db.Tables).Columns); like.Generated == "" && t.takes(like.Type) && like.Parent == nil && (len(t.Columns) > 0 || like.Class != JSON) {
			for _, f := range c.features {
				delete(g.marks, f)
			}
			c.Type = like.Type
		}
	}
	g.mark(c.features...)
	notNull := fairly
	if g.has("mixed-types") { // what optimizers conclude from NOT NULL shows there (Radar, listings 1 and 3)
		notNull = often
	}
	if g.use("not-null", notNull) {
		c.NotNull = true
	}
	// TEXT, BLOB and JSON of the MySQL family have no constant defaults (manual, "Data Type Default Values").
	if plain := !c.Prefix && c.Class != JSON || g.grammar.longDefaults; plain && g.use("default", fairly) {
		v := g.value(db.pool, c.Type)
		c.Default = &v
		if c.Class == Integer && g.use("default-expression", fairly) {
			c.Default = &Value{SQL: fmt.Sprintf("(%s + 1)", v.SQL), Key: fmt.Sprint(v.Number + 1), Number: v.Number + 1}
		}
	}
	return c
}

// generated makes a column that is computed from an earlier one, or nil.
func (g *definer) generated(t *Table, name string) *Column {
	base := oneOf(g.intn, t.Columns)
	if base.Generated != "" {
		return nil
	}
	c := &Column{Name: name}
	switch {
	case base.Class == Integer && base.SQL != "BIGINT":
		wide := "BIGINT"
		if t.strict {
			wide = "INTEGER"
		}
		c.Type = Type{SQL: wide, Class: Integer, Least: -1 << 63, Most: 1<<63 - 1, Exact: true}
		c.Generated = fmt.Sprintf(oneOf(g.intn, []string{"%s + 1", "%s * 2", "ABS(%s)"}), base.Name)
	case base.Class == Decimal:
		c.Type = Type{SQL: "DECIMAL(14,2)", Class: Decimal, Exact: true}
		c.Generated = fmt.Sprintf(oneOf(g.intn, []string{"%s + 1", "%s * 2"}), base.Name)
	case base.Class == Text && base.SQL == "VARCHAR(20)":
		c.Type = base.Type
		c.Type.SQL, c.Type.Length, c.Type.features = "VARCHAR(40)", 40, nil
		c.Generated = fmt.Sprintf(oneOf(g.intn, []string{"UPPER(%s)", "LOWER(%s)"}), base.Name)
		if g.intn(2) == 0 {
			c.Type = Type{SQL: "INT", Class: Integer, Least: -1 << 31, Most: 1<<31 - 1, Exact: true}
			c.Generated = fmt.Sprintf("LENGTH(%s)", base.Name)
		}
	default:
		return nil
	}
	if g.use("generated-stored", fairly/2) {
		c.Generated = "(" + c.Generated + ") STORED"
		return c
	}
	if g.use("generated-virtual", fairly/2) {
		c.Generated = "(" + c.Generated + ") VIRTUAL"
		return c
	}
	return nil
}

// takes reports whether the table may have a column of the type: a STRICT table has few, and ANY is for these.
func (t *Table) takes(ty Type) bool {
	switch ty.SQL {
	case "INT", "INTEGER", "REAL", "TEXT", "BLOB":
		return true
	case "ANY":
		return t.strict
	}
	return !t.strict
}

// definition writes a column into CREATE TABLE.
func (g *definer) definition(t *Table, c *Column) string {
	g.mark(c.features...)
	parts := []string{c.Name, c.SQL}
	if c.Collation != "" {
		parts = append(parts, "COLLATE "+c.Collation)
	}
	switch {
	case c.auto && g.grammar.keyInColumn:
		return strings.Join(append(parts, g.grammar.identity), " ")
	case c.Generated != "":
		return strings.Join(append(parts, "GENERATED ALWAYS AS "+c.Generated), " ")
	case c.auto:
		parts = append(parts, g.grammar.identity)
	}
	if c.NotNull && !slices.Contains(t.Primary, c) {
		parts = append(parts, "NOT NULL")
	}
	if c.Default != nil {
		sql := c.Default.SQL
		if (c.Class == Date || c.Class == DateTime || c.Class == Time) && !g.grammar.embedded { // the MySQL family wants a text there
			_, sql, _ = strings.Cut(sql, " ")
		}
		parts = append(parts, "DEFAULT "+sql)
	}
	return strings.Join(parts, " ")
}

// indexable are the columns that an index may hold whole.
func (g *definer) indexable(t *Table) []*Column {
	return slices.DeleteFunc(t.writable(), func(c *Column) bool { return c.Prefix || c.Class == JSON })
}

// primaryKey makes the primary key, if there is to be one.
func (g *definer) primaryKey(t *Table) string {
	columns := g.indexable(t)
	if !g.chance(850) || len(columns) == 0 && !g.has("primary-key-prefix") {
		return ""
	}
	tail := ""
	if g.use("primary-key-nonclustered", fairly) {
		tail = " NONCLUSTERED"
	}
	for _, c := range t.Columns {
		if c.Prefix && !t.Partitioned && g.use("primary-key-prefix", fairly) {
			t.Primary, t.prefixed = []*Column{c}, true
			c.NotNull = true
			t.keys = append(t.keys, key{columns: t.Primary, of: prefixKey(2)})
			return fmt.Sprintf("PRIMARY KEY (%s(2))", c.Name) + tail
		}
	}
	if len(columns) == 0 || !g.has("primary-key") {
		return ""
	}
	g.mark("primary-key")
	switch {
	case len(columns) > 1 && g.use("primary-key-multi-column", fairly):
		t.Primary = t.withPartition(some(g.intn, columns, 2))
	case columns[0].Class == Boolean || columns[0].Class == Enum: // with so few values, few rows
		t.Primary = t.withPartition([]*Column{columns[len(columns)-1]})
	default:
		t.Primary = t.withPartition(columns[:1])
	}
	for _, c := range t.Primary {
		c.NotNull = true
	}
	if c := t.Primary[0]; len(t.Primary) == 1 && c.Class == Integer && !t.Partitioned && g.use("auto-increment", often) {
		c.auto, c.Default = true, nil
	}
	if c := t.Primary[0]; g.grammar.keyInColumn && len(t.Primary) == 1 && c.Class == Integer {
		if c.auto || g.use("primary-key-rowid", often) {
			c.Type.SQL, c.Default = "INTEGER", nil
		}
	}
	if g.grammar.keyInColumn && t.Primary[0].auto {
		t.keys = append(t.keys, key{columns: t.Primary, plain: true, of: wholeKey})
		return ""
	}
	t.keyed = g.use("without-rowid", fairly)
	t.keys = append(t.keys, key{columns: t.Primary, plain: true, of: wholeKey})
	return "PRIMARY KEY (" + list(namesOf(t.Primary)) + ")" + tail
}

// prefixKey is the key of an index over the first characters of a text, or bytes of a binary value.
func prefixKey(n int) func([]Value) (string, bool) {
	return func(values []Value) (string, bool) {
		if values[0].Null {
			return "", false
		}
		text := values[0].Key
		return text[:min(n, len(text))], true
	}
}

// uniqueConstraint makes a UNIQUE constraint, or none.
func (g *definer) uniqueConstraint(t *Table) string {
	columns := slices.DeleteFunc(g.indexable(t), func(c *Column) bool {
		return len(t.Primary) == 1 && t.Primary[0] == c || c.Class == Boolean
	})
	if len(columns) == 0 {
		return ""
	}
	var chosen []*Column
	if len(columns) > 1 && g.use("unique-multi-column", rarely) {
		chosen = t.withPartition(some(g.intn, columns, 2))
	} else if g.use("unique", fairly) {
		chosen = t.withPartition([]*Column{oneOf(g.intn, columns)})
	} else {
		return ""
	}
	if g.use("unique-nulls-not-distinct", fairly) {
		t.keys = append(t.keys, key{columns: chosen, plain: true, of: nullsToo})
		return "UNIQUE NULLS NOT DISTINCT (" + list(namesOf(chosen)) + ")"
	}
	t.keys = append(t.keys, key{columns: chosen, plain: true, of: wholeKey})
	return "UNIQUE (" + list(namesOf(chosen)) + ")"
}

// checkOne makes a CHECK constraint over one column, or none.
func (g *definer) checkOne(db *Database, t *Table) string {
	columns := slices.DeleteFunc(t.writable(), func(c *Column) bool {
		// A default value might not meet it.
		return !c.Class.Numeric() && c.Class != Text || c.auto || c.Default != nil
	})
	if len(columns) == 0 || !g.use("check", fairly/2) {
		return ""
	}
	c := oneOf(g.intn, columns)
	v := g.value(db.pool, c.Type)
	condition := fmt.Sprintf("%s <> %s", c.Name, v.SQL)
	holds := func(x Value) bool { return x.Key != v.Key }
	if c.Class.Numeric() && v.Number <= 1 && g.intn(2) == 0 {
		condition, holds = fmt.Sprintf("%s >= %s", c.Name, v.SQL), func(x Value) bool { return x.Number >= v.Number }
	}
	t.checks = append(t.checks, check{[]*Column{c}, func(values []Value) bool { return values[0].Null || holds(values[0]) }})
	return "CHECK (" + condition + ")"
}

// checkTwo makes a CHECK constraint over two integer columns, or none.
func (g *definer) checkTwo(t *Table) string {
	columns := slices.DeleteFunc(t.writable(), func(c *Column) bool { return c.Class != Integer || c.auto || c.Default != nil })
	if len(columns) < 2 || !g.use("check-multi-column", fairly) {
		return ""
	}
	a, b := columns[0], columns[1]
	operator, holds := oneOf(g.intn, []string{"<>", "+"}), func(x, y float64) bool { return x != y }
	condition := fmt.Sprintf("%s <> %s", a.Name, b.Name)
	if operator == "+" {
		condition, holds = fmt.Sprintf("%s + %s >= 0", a.Name, b.Name), func(x, y float64) bool { return x+y >= 0 }
	}
	t.checks = append(t.checks, check{[]*Column{a, b}, func(v []Value) bool { return v[0].Null || v[1].Null || holds(v[0].Number, v[1].Number) }})
	return "CHECK (" + condition + ")"
}

// foreignKey adds a column that refers to a key of an earlier table or of this one, or none. It is a column of its own, since
// columns of other constraints and of generated columns may not have all actions (MySQL manual, "FOREIGN KEY Constraints").
func (g *definer) foreignKey(db *Database, t *Table) string {
	tables := slices.DeleteFunc(append(slices.Clone(db.Tables), t), func(p *Table) bool {
		return len(p.Primary) != 1 || p.Partitioned || p.prefixed || p.apart
	})
	if len(tables) == 0 || !g.has("foreign-key") || !g.chance(often) && !g.favored["foreign-key"] {
		return ""
	}
	parent := oneOf(g.intn, tables)
	if parent == t && !g.use("foreign-key-self", often) {
		if parent = tables[0]; parent == t {
			return ""
		}
	}
	if !t.takes(parent.Primary[0].Type) {
		return ""
	}
	g.mark("foreign-key")
	to := parent.Primary[0]
	c := &Column{Name: fmt.Sprintf("c%d", len(t.Columns)+1), Type: to.Type, Parent: to, parentTable: parent}
	c.Type.features = nil
	t.Columns = append(t.Columns, c)
	t.foreign, parent.Referenced = true, true
	text := fmt.Sprintf("FOREIGN KEY (%s) REFERENCES %s (%s)", c.Name, parent.Name, to.Name)
	actions := []struct{ sql, feature string }{
		{"CASCADE", "foreign-key-cascade"}, {"SET NULL", "foreign-key-set-null"}, {"RESTRICT", "foreign-key-restrict"},
		{"NO ACTION", "foreign-key-no-action"}, {"SET DEFAULT", "foreign-key-set-default"},
	}
	for _, event := range []string{"DELETE", "UPDATE"} {
		for _, a := range actions {
			if g.use(a.feature, 170) {
				text += " ON " + event + " " + a.sql
				break
			}
		}
	}
	if g.use("foreign-key-deferrable", fairly) {
		text += " DEFERRABLE INITIALLY DEFERRED"
	}
	return text
}

// tableOptions writes what stands behind the columns; partitions are statements of their own in PostgreSQL.
func (g *definer) tableOptions(db *Database, t *Table) (tail string, partitions []string) {
	if t.Partitioned {
		return g.partitioning(db, t)
	}
	if g.grammar.embedded {
		var words []string
		if t.strict {
			words = append(words, "STRICT")
		}
		if t.keyed {
			words = append(words, "WITHOUT ROWID")
		}
		if len(words) == 0 {
			return "", nil
		}
		return " " + list(words), nil
	}
	nontransactional := !t.foreign && g.use("engine-nontransactional", often)
	switch {
	case nontransactional:
		engines := slices.Clone(g.grammar.engines)
		if slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Prefix || c.Class == JSON || c.Generated != "" }) {
			engines = slices.DeleteFunc(engines, func(e string) bool { return e == "MEMORY" })
		}
		t.apart = true
		return " ENGINE = " + oneOf(g.intn, engines), nil
	case g.use("storage-parameter", rarely):
		return " WITH (fillfactor = 70)", nil
	}
	if g.use("engine", rarely) {
		tail += " ENGINE = InnoDB"
	}
	if g.use("row-format", rarely) {
		tail += " ROW_FORMAT = " + oneOf(g.intn, []string{"DYNAMIC", "COMPACT", "REDUNDANT"})
	}
	return tail, nil
}

// view makes a view of the table, or none.
func (g *definer) view(db *Database, t *Table) {
	if !g.has("view") || !g.favored["view"] && !g.chance(rarely) {
		return
	}
	g.setup(db, t, KindSchema, func() string {
		g.mark("view")
		v := &View{Name: fmt.Sprintf("v%d", len(db.Views)+1), Table: t, Columns: some(g.intn, t.Columns, g.between(1, len(t.Columns)))}
		db.Views = append(db.Views, v)
		sql := fmt.Sprintf("CREATE VIEW %s AS SELECT %s FROM %s", v.Name, list(namesOf(v.Columns)), t.Name)
		if g.intn(2) == 0 {
			sql += " WHERE " + g.comparison(db, scopeOf(t))
		}
		return sql
	})
}

// trigger makes a trigger that changes a column of the rows that are updated, or none.
func (g *definer) trigger(db *Database, t *Table) {
	columns := slices.DeleteFunc(t.writable(), func(c *Column) bool {
		return c.Class != Integer || t.inKey(c) || c.Parent != nil || t.constrained(c)
	})
	if len(columns) == 0 || !g.has("trigger") {
		return
	}
	g.begin(KindSchema)
	if !g.use("trigger", often) {
		return
	}
	column := oneOf(g.intn, columns).Name
	add := func(sql string) {
		g.mark("trigger")
		db.Setup = append(db.Setup, g.end(sql, []string{t.Name}))
	}
	create := fmt.Sprintf("CREATE TRIGGER %s_changes BEFORE UPDATE ON %s FOR EACH ROW ", t.Name, t.Name)
	if g.grammar.embedded { // a trigger cannot change the new row, but the table (sqlite.org/lang_createtrigger.html); it does not fire itself
		if len(t.Primary) == 0 {
			return
		}
		var same []string
		for _, c := range t.Primary {
			same = append(same, c.Name+" = NEW."+c.Name)
		}
		add(fmt.Sprintf("CREATE TRIGGER %s_changes AFTER UPDATE ON %s BEGIN UPDATE %s SET %s = 1 WHERE %s; END", t.Name, t.Name, t.Name, column, strings.Join(same, " AND ")))
		return
	}
	if !g.grammar.functions {
		add(create + "SET NEW." + column + " = 1")
		return
	}
	add(fmt.Sprintf("CREATE FUNCTION %s_changes() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN NEW.%s = 1; RETURN NEW; END $$", t.Name, column))
	add(create + "EXECUTE FUNCTION " + t.Name + "_changes()")
}
