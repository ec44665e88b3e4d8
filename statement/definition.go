package statement

import (
	"cmp"
	"slices"
	"strings"
)

// Definition is what one statement of a database's setup says of metadata, and what it becomes in a raw database (Radar, sections
// 2.2, 2.3 and 3.3): the same tables, columns and types, without what only constrains rows or helps to find them. It comes from the
// text alone. Names are as in Statement.
type Definition struct {
	// Why says what was not understood; then nothing else is known, and there is no raw database.
	Why string
	// Raw is the statement without optional metadata; empty: nothing remains of it. It is put together from pieces of the text.
	Raw string
	// Kind is what the statement defines: "create table", "alter table", "create index", "drop table", "trigger"; empty: something
	// without optional metadata of tables (views, types, functions, settings), or nothing.
	Kind    string
	Table   string // of the kinds that have one
	Columns []ColumnDefinition
	Keys    []KeyDefinition // table constraints and indexes, those of columns among them
	// Configs are table options that are optional, as text with the columns that they name: PARTITION BY RANGE (a).
	Configs []KeyDefinition
	// Parent is the partitioned table that the statement makes Table a partition of (PostgreSQL). Such a table has no twin.
	Parent string
	// Rewrites says that it changes rows that are there: a new type, rows of a query, removed partitions.
	Rewrites bool
}

// ColumnDefinition is a column and its constraints.
type ColumnDefinition struct {
	Name string
	Type string // as written, with character set and collation: what remains in the raw database
	// Constraints are NOT NULL, DEFAULT and GENERATED (Radar, figure 1), and AUTO_INCREMENT. A generated column's expression has the
	// columns that it names.
	Constraints []KeyDefinition
	Generated   bool   // an expression computes it
	Expression  string // which one, in its parentheses; empty: none
	Automatic   bool   // AUTO_INCREMENT, identity, serial, ON UPDATE: the server may put in a value of its own
	NotNull     bool   // also as part of a primary key
	Default     bool
	Invisible   bool // SELECT * and INSERT without a list of columns leave it out
}

// KeyDefinition is a constraint or an index, and the columns that it names, in order.
type KeyDefinition struct {
	Kind    string // "PRIMARY KEY", "UNIQUE", "CHECK", "FOREIGN KEY", "INDEX", "UNIQUE INDEX", "EXCLUDE", "NOT NULL", ...
	Columns []string
	Table   string   // FOREIGN KEY: the table that it refers to
	Targets []string // FOREIGN KEY: its columns; nil: its primary key
	Text    string   // of a configuration without columns
}

// Define reads a statement's metadata. It is for the dialects, which cut the text; family says that the dialect is the MySQL family's.
func Define(t *Text, family bool) Definition {
	return (&definer{Text: t, family: family}).define()
}

// DefineSQLite is Define for SQLite's dialect.
func DefineSQLite(t *Text) Definition { return (&definer{Text: t, lite: true}).define() }

type definer struct {
	*Text
	family bool // the MySQL family's dialect
	lite   bool // SQLite's
	out    Definition
}

func (d *definer) define() Definition {
	if len(d.Tokens) == 0 {
		return Definition{}
	}
	d.out.Raw = strings.TrimSpace(d.Between(0, len(d.Tokens)))
	d.statement()
	if d.out.Why != "" {
		return Definition{Why: d.out.Why}
	}
	return d.out
}

// close gives the token that closes the parenthesis at i, or the last one.
func (d *definer) close(i int) int {
	if end := d.Close(i); end >= 0 {
		return end
	}
	return len(d.Tokens) - 1
}

// named gives what token i names; empty if it is no name.
func (d *definer) named(i int) string {
	name, _ := d.Name(i)
	return name
}

// table reads [schema.]name from i on: the name as tables are listed, and the token behind it.
func (d *definer) table(i int) (string, int) {
	name, ok := d.Name(i)
	if !ok {
		d.fail("a name is missing")
		return "", i
	}
	if d.Is(i+1, ".") && i+2 < len(d.Tokens) {
		if schema := name; d.lite && !strings.EqualFold(schema, "main") {
			d.fail("a table of another database than main")
		} else if !d.lite && !d.family && schema != "public" {
			return schema + "." + d.named(i+2), i + 3
		}
		return d.named(i + 2), i + 3
	}
	return name, i + 1
}

func (d *definer) fail(why string) {
	d.out.Why = cmp.Or(d.out.Why, why)
}

func (d *definer) statement() {
	switch {
	case d.Is(0, "CREATE"):
		d.create()
	case d.Is(0, "ALTER"):
		d.alter()
	case d.Is(0, "DROP"):
		d.drop()
	case d.Is(0, "TRUNCATE"):
		d.out.Raw, d.out.Rewrites = "", true
	case d.Is(0, "RENAME"):
		d.out.Kind, d.out.Rewrites = "alter table", true
	case d.Is(0, "ANALYZE", "VACUUM", "REINDEX", "OPTIMIZE", "CLUSTER", "COMMENT", "GRANT", "REVOKE", "LOCK", "UNLOCK", "CHECK", "REPAIR", "FLUSH", "SHOW", "EXPLAIN", "NOTIFY",
		"LISTEN", "UNLISTEN", "CHECKPOINT", "SPLIT", "REFRESH"):
		d.out.Raw = ""
	case d.Is(0, "DO", "CALL", "EXECUTE", "COPY", "LOAD", "IMPORT", "PREPARE"):
		d.out.Raw, d.out.Rewrites = "", true
	}
}

func (d *definer) create() {
	if d.lite && d.Is(1, "VIRTUAL") {
		d.fail("what a virtual table answers is its module's affair")
		return
	}
	i := d.Skip(1, "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "RECURSIVE", "CONSTRAINT", "HYPO")
	switch {
	case d.Is(i, "TABLE") && (d.Is(1, "TEMP", "TEMPORARY") || d.Is(2, "TEMP", "TEMPORARY")):
		d.fail("a temporary table's rows are each session's own")
	case d.Is(i, "TABLE"):
		d.createTable(i + 1)
	case d.Is(i, "INDEX"):
		d.createIndex(i + 1)
	case d.Is(i, "MATERIALIZED"):
		d.fail("a materialized view keeps rows of its own")
	case d.Is(i, "DOMAIN"):
		d.createDomain(i + 1)
	case d.Is(i, "RULE") && d.has("SELECT") && d.has("INSTEAD") && d.Seq(i+2, "AS", "ON", "SELECT"):
		d.fail("a rule makes a view of a table")
	case d.Is(i, "TRIGGER", "RULE", "EVENT") || d.Seq(1, "DEFINER") && d.has("TRIGGER", "EVENT"):
		d.out.Raw, d.out.Kind = "", "trigger"
	case d.Is(i, "STATISTICS", "POLICY", "PUBLICATION", "SUBSCRIPTION", "USER", "ROLE", "PROCEDURE", "DATABASE", "TABLESPACE", "SERVER", "BINDING", "PLACEMENT", "ACCESS"):
		d.out.Raw = ""
	case d.Is(i, "FOREIGN"):
		d.fail("a foreign table's rows are elsewhere")
	}
}

// has reports whether one of the words stands anywhere.
func (d *definer) has(words ...string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return d.Any(0, w) })
}

// The words that end a column's type.
var (
	familyOptions = strings.Fields(`NOT NULL DEFAULT AUTO_INCREMENT AUTO_RANDOM PRIMARY UNIQUE KEY COMMENT COLUMN_FORMAT STORAGE REFERENCES CHECK CONSTRAINT GENERATED AS ON
		VISIBLE INVISIBLE COLLATE VIRTUAL PERSISTENT STORED SERIAL ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SRID REF_SYSTEM_ID WITH WITHOUT COMPRESSED FIRST AFTER`)
	liteOptions     = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED AS UNIQUE PRIMARY REFERENCES COLLATE DEFERRABLE INITIALLY`)
	postgresOptions = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED UNIQUE PRIMARY REFERENCES COLLATE STORAGE COMPRESSION DEFERRABLE INITIALLY OPTIONS USING`)
)
