package rewrite

import (
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
	Generated   bool // an expression computes it
	Automatic   bool // AUTO_INCREMENT, identity, serial, ON UPDATE: the server may put in a value of its own
	NotNull     bool // also as part of a primary key
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

// Lexeme is one token of a statement, as a dialect cuts it.
type Lexeme struct {
	Start, End int
	Depth      int // of parentheses around it; both parentheses of a pair have the outer depth
	Kind       LexemeKind
	Name       string // of words and quoted names: the name without quotes, as the server keeps it
}

// LexemeKind is the kind of a token.
type LexemeKind uint8

// The kinds.
const (
	LexWord   LexemeKind = iota // a keyword or an unquoted name
	LexQuoted                   // a quoted name, or one after a dot
	LexSymbol                   // one character that is none of the others
	LexOther                    // strings, numbers, parameters, operators
)

// Define reads a statement's metadata. It is for the dialects, which cut the text; family says that the dialect is the MySQL family's.
func Define(sql string, tokens []Lexeme, family bool) Definition {
	return (&definer{sql: sql, t: tokens, family: family}).define()
}

// DefineSQLite is Define for SQLite's dialect.
func DefineSQLite(sql string, tokens []Lexeme) Definition {
	return (&definer{sql: sql, t: tokens, lite: true}).define()
}

func (d *definer) define() Definition {
	sql, tokens := d.sql, d.t
	if len(tokens) == 0 {
		return Definition{}
	}
	d.out.Raw = strings.TrimSpace(sql[tokens[0].Start:tokens[len(tokens)-1].End])
	d.statement()
	if d.out.Why != "" {
		return Definition{Why: d.out.Why}
	}
	return d.out
}

type definer struct {
	sql    string
	t      []Lexeme
	family bool // the MySQL family's dialect
	lite   bool // SQLite's
	out    Definition
}

// is reports whether token i is one of the keywords or symbols.
func (d *definer) is(i int, words ...string) bool {
	if i < 0 || i >= len(d.t) || d.t[i].Kind != LexWord && d.t[i].Kind != LexSymbol {
		return false
	}
	s := d.sql[d.t[i].Start:d.t[i].End]
	return slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
}

func (d *definer) seq(i int, words ...string) bool {
	for n, w := range words {
		if !d.is(i+n, w) {
			return false
		}
	}
	return true
}

// text is that of tokens from until to.
func (d *definer) text(from, to int) string {
	if from >= to {
		return ""
	}
	return d.sql[d.t[from].Start:d.t[to-1].End]
}

// close gives the token that closes the parenthesis at i.
func (d *definer) close(i int) int {
	for j := i + 1; j < len(d.t); j++ {
		if d.t[j].Depth == d.t[i].Depth && d.is(j, ")") {
			return j
		}
	}
	return len(d.t) - 1
}

// name reads [schema.]name from i on: the name as tables are listed, and the token behind it.
func (d *definer) name(i int) (string, int) {
	if i >= len(d.t) || d.t[i].Kind > LexQuoted {
		d.fail("a name is missing")
		return "", i
	}
	name := d.t[i].Name
	if d.is(i+1, ".") && i+2 < len(d.t) {
		if schema := name; d.lite && !strings.EqualFold(schema, "main") {
			d.fail("a table of another database than main")
		} else if !d.lite && !d.family && schema != "public" {
			return schema + "." + d.t[i+2].Name, i + 3
		}
		return d.t[i+2].Name, i + 3
	}
	return name, i + 1
}

func (d *definer) fail(why string) {
	if d.out.Why == "" {
		d.out.Why = why
	}
}

// parts cuts the tokens from until to at the commas of that depth.
func (d *definer) parts(from, to, depth int) (list [][2]int) {
	first := from
	for i := from; i <= to; i++ {
		if i == to || d.t[i].Depth == depth && d.is(i, ",") {
			if i > first {
				list = append(list, [2]int{first, i})
			}
			first = i + 1
		}
	}
	return list
}

func (d *definer) skip(i int, words ...string) int {
	for d.is(i, words...) {
		i++
	}
	return i
}

func (d *definer) statement() {
	switch {
	case d.is(0, "CREATE"):
		d.create()
	case d.is(0, "ALTER"):
		d.alter()
	case d.is(0, "DROP"):
		d.drop()
	case d.is(0, "TRUNCATE"):
		d.out.Raw, d.out.Rewrites = "", true
	case d.is(0, "RENAME"):
		d.out.Kind, d.out.Rewrites = "alter table", true
	case d.is(0, "ANALYZE", "VACUUM", "REINDEX", "OPTIMIZE", "CLUSTER", "COMMENT", "GRANT", "REVOKE", "LOCK", "UNLOCK", "CHECK", "REPAIR", "FLUSH", "SHOW", "EXPLAIN", "NOTIFY",
		"LISTEN", "UNLISTEN", "CHECKPOINT", "SPLIT", "REFRESH"):
		d.out.Raw = ""
	case d.is(0, "DO", "CALL", "EXECUTE", "COPY", "LOAD", "IMPORT", "PREPARE"):
		d.out.Raw, d.out.Rewrites = "", true
	}
}

func (d *definer) create() {
	if d.lite && d.is(1, "VIRTUAL") {
		d.fail("what a virtual table answers is its module's affair")
		return
	}
	i := d.skip(1, "OR", "REPLACE", "GLOBAL", "LOCAL", "TEMP", "TEMPORARY", "UNLOGGED", "ONLINE", "OFFLINE", "UNIQUE", "FULLTEXT", "SPATIAL", "VECTOR", "RECURSIVE", "CONSTRAINT", "HYPO")
	switch {
	case d.is(i, "TABLE"):
		d.createTable(i + 1)
	case d.is(i, "INDEX"):
		d.createIndex(i + 1)
	case d.is(i, "MATERIALIZED"):
		d.fail("a materialized view keeps rows of its own")
	case d.is(i, "DOMAIN"):
		d.createDomain(i + 1)
	case d.is(i, "RULE") && d.has("SELECT") && d.has("INSTEAD") && d.seq(i+2, "AS", "ON", "SELECT"):
		d.fail("a rule makes a view of a table")
	case d.is(i, "TRIGGER", "RULE", "EVENT") || d.seq(1, "DEFINER") && d.has("TRIGGER", "EVENT"):
		d.out.Raw, d.out.Kind = "", "trigger"
	case d.is(i, "STATISTICS", "POLICY", "PUBLICATION", "SUBSCRIPTION", "USER", "ROLE", "PROCEDURE", "DATABASE", "TABLESPACE", "SERVER", "BINDING", "PLACEMENT", "ACCESS"):
		d.out.Raw = ""
	case d.is(i, "FOREIGN"):
		d.fail("a foreign table's rows are elsewhere")
	}
}

func (d *definer) has(words ...string) bool {
	for i := range d.t {
		if d.is(i, words...) {
			return true
		}
	}
	return false
}

// The words that end a column's type.
var (
	familyOptions = strings.Fields(`NOT NULL DEFAULT AUTO_INCREMENT AUTO_RANDOM PRIMARY UNIQUE KEY COMMENT COLUMN_FORMAT STORAGE REFERENCES CHECK CONSTRAINT GENERATED AS ON
		VISIBLE INVISIBLE COLLATE VIRTUAL PERSISTENT STORED SERIAL ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SRID REF_SYSTEM_ID WITH WITHOUT COMPRESSED FIRST AFTER`)
	liteOptions     = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED AS UNIQUE PRIMARY REFERENCES COLLATE DEFERRABLE INITIALLY`)
	postgresOptions = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED UNIQUE PRIMARY REFERENCES COLLATE STORAGE COMPRESSION DEFERRABLE INITIALLY OPTIONS USING`)
)
