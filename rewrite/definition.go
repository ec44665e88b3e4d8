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

func (d *definer) createTable(i int) {
	d.out.Kind = "create table"
	if d.seq(i, "IF", "NOT", "EXISTS") {
		i += 3
	}
	d.out.Table, i = d.name(i)
	head := d.text(0, i)
	switch {
	case d.seq(i, "PARTITION", "OF"):
		d.out.Parent, i = d.name(i + 2)
		d.out.Raw = ""
		return
	case d.is(i, "OF"):
		d.fail("a table of a type")
		return
	case d.is(i, "LIKE"), d.is(i, "(") && d.is(i+1, "LIKE") && d.family:
		return // the twin of the other table has no optional metadata either
	}
	columns := ""
	if d.is(i, "(") && !d.is(i+1, "SELECT", "WITH", "VALUES", "(") {
		if end := d.close(i); !d.family && d.query(end+1) < len(d.t) { // names of columns only
			d.out.Rewrites = true
			return
		} else {
			if list := d.elements(i); len(list) > 0 {
				columns = " (" + strings.Join(list, ", ") + ")"
			}
			i = end + 1
		}
	}
	query := d.query(i)
	if query < len(d.t) {
		d.out.Rewrites = true
	} else if columns == "" {
		d.fail("a table without columns")
	}
	d.out.Raw = head + columns + d.options(i, query)
	if query < len(d.t) {
		d.out.Raw += " " + d.text(query, len(d.t))
	}
}

// query gives the token at which the query of CREATE TABLE AS begins, or the number of tokens.
func (d *definer) query(i int) int {
	if i >= len(d.t) {
		return len(d.t)
	}
	depth := d.t[i].Depth
	for ; i < len(d.t); i++ {
		if d.t[i].Depth == depth && (d.is(i, "AS", "SELECT", "VALUES") || d.is(i, "WITH") && d.family && !d.is(i+1, "SYSTEM") ||
			d.is(i, "IGNORE", "REPLACE") && d.family || d.is(i, "(") && d.is(i+1, "SELECT")) {
			return i
		}
	}
	return len(d.t)
}

// options gives those that are compulsory (Radar, section 2.3: ENGINE, CHARACTER SET and the like), and notes the others.
func (d *definer) options(i, to int) (keep string) {
	config := func(from, until int) {
		c := KeyDefinition{Kind: "CONFIG", Columns: d.mentioned(from, until)}
		for j := from; j < until; j++ {
			if len(c.Columns) == 0 || d.t[j].Kind == LexWord && !slices.Contains(c.Columns, d.t[j].Name) {
				c.Text += strings.ToUpper(d.text(j, j+1)) + " "
			}
		}
		c.Text = strings.TrimSpace(c.Text)
		d.out.Configs = append(d.out.Configs, c)
	}
	if d.lite { // STRICT decides which values a column has; WITHOUT ROWID how they are stored
		for ; i < to; i++ {
			switch {
			case d.is(i, "STRICT"):
				keep = " STRICT"
			case d.seq(i, "WITHOUT", "ROWID"):
				config(i, i+2)
				i++
			case !d.is(i, ","):
				d.fail("an option of the table that is not known: " + d.text(i, i+1))
			}
		}
		return keep
	}
	value := func(j int) int { // the token behind [=] value
		return min(d.skip(j, "=")+1, to)
	}
	for i < to {
		switch {
		case d.seq(i, "PARTITION", "BY"):
			config(i, to)
			return keep
		case d.is(i, "INHERITS") && !d.family, d.seq(i, "ON", "COMMIT"):
			end := i + 4
			if d.is(i, "INHERITS") {
				end = d.close(i+1) + 1
			}
			keep += " " + d.text(i, min(end, to))
			i = end
		case d.seq(i, "WITH", "SYSTEM"):
			d.fail("a system-versioned table has versions of rows besides the rows")
			return keep
		case d.family && d.is(i, "ENGINE", "CHARSET", "COLLATE"):
			end := value(i + 1)
			keep += " " + d.text(i, end)
			i = end
		case d.family && d.seq(i, "CHARACTER", "SET"):
			end := value(i + 2)
			keep += " " + d.text(i, end)
			i = end
		case d.is(i, ",", "DEFAULT"):
			i++
		case d.is(i+1, "("):
			end := d.close(i+1) + 1
			config(i, end)
			i = end
		default:
			end := i + 1
			for end < to && !d.is(end, "=", ",", "(") && !d.is(end-1, "=") {
				end++
			}
			if d.is(end, "=") {
				end = value(end)
			}
			config(i, end)
			i = end
		}
	}
	return keep
}

// mentioned gives the columns of the statement's own table that tokens name, in their order.
func (d *definer) mentioned(from, to int) (list []string) {
	for i := from; i < to; i++ {
		if d.t[i].Kind > LexQuoted || d.is(i+1, "(") {
			continue
		}
		if slices.ContainsFunc(d.out.Columns, func(c ColumnDefinition) bool { return strings.EqualFold(c.Name, d.t[i].Name) }) {
			list = append(list, d.t[i].Name)
		}
	}
	return list
}

// names gives those in the parentheses at i, an index's columns: their options and expressions are left out but for names.
func (d *definer) names(i int) (list []string, end int) {
	end = d.close(i)
	for _, p := range d.parts(i+1, end, d.t[i].Depth+1) {
		if d.t[p[0]].Kind <= LexQuoted && !d.is(p[0]+1, "(") || d.family && d.t[p[0]].Kind <= LexQuoted {
			list = append(list, d.t[p[0]].Name)
		} else {
			list = append(list, d.mentioned(p[0], p[1])...)
		}
	}
	return list, end
}

// elements reads the columns and constraints in the parentheses at open. It gives the raw columns.
func (d *definer) elements(open int) (raw []string) {
	end := d.close(open)
	parts := d.parts(open+1, end, d.t[open].Depth+1)
	for _, p := range parts { // columns first: constraints name them
		switch {
		case d.is(p[0], "LIKE") && !d.family:
			_, next := d.name(p[0] + 1)
			raw = append(raw, d.text(p[0], next))
		case !d.constraint(p[0]):
			raw = append(raw, d.column(p[0], p[1]))
		}
	}
	for _, p := range parts {
		switch {
		case d.is(p[0], "PERIOD") && d.is(p[0]+1, "FOR"):
			d.fail("a period makes versions of rows")
		case d.constraint(p[0]):
			d.key(p[0], p[1])
		}
	}
	d.expressions()
	return raw
}

// constraint reports whether a table constraint or an index begins at i.
func (d *definer) constraint(i int) bool {
	if d.family {
		return d.is(i, "CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "VECTOR") && !(d.is(i, "VECTOR") && !d.is(i+1, "INDEX")) ||
			d.seq(i, "PERIOD", "FOR")
	}
	return d.is(i, "CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE")
}

// key notes a table constraint.
func (d *definer) key(i, to int) {
	if d.is(i, "CONSTRAINT") {
		i++
		if !d.constraint(i) {
			i++
		}
	}
	k := KeyDefinition{Kind: "INDEX"}
	for j := i; j < to && d.lite; j++ {
		if d.seq(j, "ON", "CONFLICT") {
			d.fail("ON CONFLICT of a constraint decides what is written")
		}
	}
	switch {
	case d.is(i, "PRIMARY"):
		k.Kind = "PRIMARY KEY"
	case d.is(i, "UNIQUE"):
		k.Kind = "UNIQUE"
	case d.is(i, "FOREIGN"):
		k.Kind = "FOREIGN KEY"
	case d.is(i, "CHECK"):
		k.Kind, k.Columns = "CHECK", d.mentioned(i, to)
	case d.is(i, "EXCLUDE"):
		k.Kind, k.Columns = "EXCLUDE", d.mentioned(i, to)
	case d.is(i, "FULLTEXT", "SPATIAL", "VECTOR"):
		k.Kind = strings.ToUpper(d.text(i, i+1)) + " INDEX"
	}
	for j := i; j < to && k.Columns == nil && k.Kind != "CHECK"; j++ {
		if d.is(j, "(") {
			k.Columns, j = d.names(j)
			if k.Kind == "FOREIGN KEY" && d.is(j+1, "REFERENCES") {
				k.Table, k.Targets = d.reference(j + 2)
			}
			break
		}
	}
	if k.Kind == "PRIMARY KEY" {
		for n := range d.out.Columns {
			c := &d.out.Columns[n]
			c.NotNull = c.NotNull || slices.ContainsFunc(k.Columns, func(name string) bool { return strings.EqualFold(name, c.Name) })
		}
	}
	d.out.Keys = append(d.out.Keys, k)
}

func (d *definer) reference(i int) (table string, columns []string) {
	table, i = d.name(i)
	if d.is(i, "(") {
		columns, _ = d.names(i)
	}
	return table, columns
}

// The words that end a column's type.
var (
	familyOptions = strings.Fields(`NOT NULL DEFAULT AUTO_INCREMENT AUTO_RANDOM PRIMARY UNIQUE KEY COMMENT COLUMN_FORMAT STORAGE REFERENCES CHECK CONSTRAINT GENERATED AS ON
		VISIBLE INVISIBLE COLLATE VIRTUAL PERSISTENT STORED SERIAL ENGINE_ATTRIBUTE SECONDARY_ENGINE_ATTRIBUTE SRID REF_SYSTEM_ID WITH WITHOUT COMPRESSED FIRST AFTER`)
	liteOptions     = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED AS UNIQUE PRIMARY REFERENCES COLLATE DEFERRABLE INITIALLY`)
	postgresOptions = strings.Fields(`CONSTRAINT NOT NULL CHECK DEFAULT GENERATED UNIQUE PRIMARY REFERENCES COLLATE STORAGE COMPRESSION DEFERRABLE INITIALLY OPTIONS USING`)
)

var serials = map[string]string{
	"serial": "integer", "serial4": "integer", "bigserial": "bigint", "serial8": "bigint", "smallserial": "smallint", "serial2": "smallint",
}

// column reads the definition of a column and gives it without optional metadata.
func (d *definer) column(i, to int) string {
	c := ColumnDefinition{}
	depth := d.t[i].Depth
	if d.t[i].Kind > LexQuoted {
		d.fail("the definition of a column begins with something else than its name")
		return ""
	}
	c.Name = d.t[i].Name
	options := postgresOptions
	if d.family {
		options = familyOptions
	}
	if d.lite {
		options = liteOptions
	}
	first := i + 1
	end := first
	for end < to && (end == first && !(d.lite && d.is(end, options...)) || d.t[end].Depth > depth || !d.is(end, options...)) {
		end++
	}
	c.Type = d.text(first, end)
	kept := ""
	constraint := func(kind string, columns ...string) {
		c.Constraints = append(c.Constraints, KeyDefinition{Kind: kind, Columns: columns})
	}
	key := func(kind string) *KeyDefinition {
		d.out.Keys = append(d.out.Keys, KeyDefinition{Kind: kind, Columns: []string{c.Name}})
		return &d.out.Keys[len(d.out.Keys)-1]
	}
	position := ""
	for j := end; j < to; j++ {
		if d.t[j].Depth != depth {
			continue
		}
		switch {
		case d.is(j, "COLLATE"):
			from := j
			_, j = d.name(j + 1)
			j--
			c.Type += " " + d.text(from, j+1)
		case d.is(j, "SRID", "REF_SYSTEM_ID"):
			c.Type += " " + d.text(j, min(d.skip(j+1, "=")+1, to))
		case d.seq(j, "NOT", "NULL"):
			c.NotNull = true
			constraint("NOT NULL")
			j++
		case d.is(j, "DEFAULT") && d.is(j-1, "BY"): // GENERATED BY DEFAULT AS IDENTITY
		case d.is(j, "DEFAULT"):
			c.Default = true
			constraint("DEFAULT")
			j++
		case d.lite && d.seq(j, "ON", "CONFLICT"):
			d.fail("ON CONFLICT of a constraint decides what is written")
		case d.lite && d.is(j, "AUTOINCREMENT"):
			c.Automatic = true
			constraint("AUTO_INCREMENT")
		case d.is(j, "AUTO_INCREMENT", "AUTO_RANDOM", "IDENTITY", "SERIAL"):
			c.Automatic = true
			constraint("AUTO_INCREMENT")
		case d.seq(j, "ON", "UPDATE") && d.family && !d.is(j+2, "CASCADE", "SET", "NO", "RESTRICT"):
			c.Automatic = true
			constraint("ON UPDATE")
		case d.is(j, "AS") && d.is(j+1, "("):
			c.Generated = true
			c.Constraints = append(c.Constraints, KeyDefinition{Kind: "GENERATED", Text: d.text(j+1, d.close(j+1)+1)})
			j = d.close(j + 1)
		case d.is(j, "PRIMARY"), d.is(j, "KEY") && d.family && !d.is(j-1, "PRIMARY", "UNIQUE"):
			c.NotNull = true
			key("PRIMARY KEY")
		case d.is(j, "UNIQUE"):
			key("UNIQUE")
		case d.is(j, "CHECK"):
			k := key("CHECK")
			k.Text = d.text(j, d.close(j+1)+1)
		case d.is(j, "REFERENCES"):
			k := key("FOREIGN KEY")
			k.Table, k.Targets = d.reference(j + 1)
		case d.is(j, "INVISIBLE") && d.family:
			c.Invisible = true
			kept += " " + d.text(j, j+1)
		case d.is(j, "FIRST") && d.family:
			position = " " + d.text(j, j+1)
		case d.is(j, "AFTER") && d.family:
			position = " " + d.text(j, min(j+2, to))
		case d.is(j, "WITHOUT", "WITH") && d.is(j+1, "SYSTEM"), d.is(j, "ROW") && d.is(j+1, "START", "END"):
			d.fail("a column of a system-versioned table")
		}
	}
	if plain, ok := serials[strings.ToLower(c.Type)]; ok && !d.family && !d.lite {
		c.Type, c.Automatic, c.NotNull, c.Default = plain, true, true, true
		constraint("AUTO_INCREMENT")
	}
	if d.family && strings.EqualFold(c.Type, "SERIAL") {
		c.Type, c.Automatic, c.NotNull = "BIGINT UNSIGNED", true, true
		constraint("AUTO_INCREMENT")
		key("UNIQUE")
	}
	d.out.Columns = append(d.out.Columns, c)
	null := ""
	if d.family && d.is(first, "TIMESTAMP") {
		null = " NULL" // without it, it may be NOT NULL with defaults (MySQL manual, explicit_defaults_for_timestamp)
	}
	raw := d.text(i, i+1) + " " + c.Type + null + kept + position
	if c.Type == "" && !d.lite { // SQLite: sqlite.org/datatype3.html, section 3.1
		d.fail("a column without a type")
	}
	return strings.TrimRight(raw, " ")
}

// expressions finds which columns generated columns and checks name, when all columns are known.
func (d *definer) expressions() {
	resolve := func(k *KeyDefinition) {
		if k.Text == "" || k.Kind == "CONFIG" {
			return
		}
		var at []int
		for i := range d.t {
			if strings.HasPrefix(d.sql[d.t[i].Start:], k.Text) {
				at = append(at, i)
				break
			}
		}
		if len(at) > 0 {
			i := at[0]
			for !d.is(i, "(") {
				i++
			}
			k.Columns = d.mentioned(i, d.close(i))
		}
		k.Text = ""
	}
	for n := range d.out.Columns {
		for m := range d.out.Columns[n].Constraints {
			resolve(&d.out.Columns[n].Constraints[m])
		}
	}
	for n := range d.out.Keys {
		resolve(&d.out.Keys[n])
	}
}

func (d *definer) createIndex(i int) {
	d.out.Raw, d.out.Kind = "", "create index"
	kind := "INDEX"
	for j := 1; j < i; j++ {
		if d.is(j, "UNIQUE", "FULLTEXT", "SPATIAL") {
			kind = strings.ToUpper(d.text(j, j+1)) + " INDEX"
		}
	}
	for j := i; j < len(d.t); j++ {
		if d.t[j].Depth != d.t[0].Depth || !d.is(j, "ON") {
			continue
		}
		var next int
		d.out.Table, next = d.name(d.skip(j+1, "ONLY"))
		for next < len(d.t) && !d.is(next, "(") {
			next++
		}
		if next < len(d.t) {
			k := KeyDefinition{Kind: kind}
			k.Columns, _ = d.names(next)
			d.out.Keys = append(d.out.Keys, k)
		}
		return
	}
}

// createDomain keeps the type: a domain's constraints and default are optional.
func (d *definer) createDomain(i int) {
	_, i = d.name(i)
	end := d.skip(i, "AS")
	for end < len(d.t) && !d.is(end, postgresOptions...) {
		end++
	}
	d.out.Raw = d.text(0, end)
	if d.is(end, "COLLATE") {
		_, next := d.name(end + 1)
		d.out.Raw = d.text(0, next)
	}
}

func (d *definer) drop() {
	i := d.skip(1, "TEMPORARY", "MATERIALIZED", "UNIQUE", "ONLINE")
	switch {
	case d.is(i, "TABLE"):
		d.out.Kind = "drop table"
		i++
		if d.seq(i, "IF", "EXISTS") {
			i += 2
		}
		d.out.Table, _ = d.name(i)
	case d.is(i, "VIEW", "TYPE", "FUNCTION", "SCHEMA", "EXTENSION", "DOMAIN", "SEQUENCE", "AGGREGATE", "OPERATOR", "CAST", "COLLATION"):
	default:
		d.out.Raw = ""
	}
}

func (d *definer) alter() {
	i := d.skip(1, "ONLINE", "OFFLINE", "IGNORE")
	if !d.is(i, "TABLE") {
		if !d.is(i, "TYPE", "VIEW", "FUNCTION", "SCHEMA") || d.is(i+2, "OWNER") {
			d.out.Raw = ""
		}
		return
	}
	d.out.Kind = "alter table"
	i++
	if d.seq(i, "IF", "EXISTS") {
		i += 2
	}
	i = d.skip(i, "ONLY")
	d.out.Table, i = d.name(i)
	i = d.skip(i, "*")
	if d.is(i, "WAIT", "NOWAIT") {
		i += 2
	}
	head := d.text(0, i)
	to := len(d.t)
	for j := i; j < to; j++ {
		if d.t[j].Depth == d.t[0].Depth && (d.seq(j, "PARTITION", "BY") || d.seq(j, "REMOVE", "PARTITIONING")) {
			d.options(j, to)
			to = j
		}
	}
	var keep []string
	for _, p := range d.parts(i, to, d.t[0].Depth) {
		if raw := d.action(p[0], p[1]); raw != "" {
			keep = append(keep, raw)
		}
	}
	d.expressions()
	d.out.Raw = ""
	if len(keep) > 0 {
		d.out.Raw = head + " " + strings.Join(keep, ", ")
	}
}

// action gives one action of ALTER TABLE without optional metadata; empty: nothing remains.
func (d *definer) action(i, to int) string {
	all := d.text(i, to)
	next := i + 1
	named := func() { // behind [COLUMN] [IF [NOT] EXISTS]
		next = d.skip(next, "COLUMN")
		if d.is(next, "IF") {
			next = d.skip(next, "IF", "NOT", "EXISTS")
		}
	}
	switch {
	case d.is(i, "ADD") && d.is(next, "PARTITION", "SYSTEM", "PERIOD"):
		if !d.is(next, "PARTITION") {
			d.fail("a system-versioned table has versions of rows besides the rows")
		}
		return ""
	case d.is(i, "ADD") && d.constraint(next):
		d.key(next, to)
		return ""
	case d.is(i, "ADD"):
		named()
		if d.constraint(next) {
			d.key(next, to)
			return ""
		}
		prefix := d.text(i, next)
		if d.is(next, "(") {
			return prefix + " (" + strings.Join(d.elements(next), ", ") + ")"
		}
		return prefix + " " + d.column(next, to)
	case d.is(i, "MODIFY") && d.family:
		named()
		d.out.Rewrites = true
		return d.text(i, next) + " " + d.column(next, to)
	case d.is(i, "CHANGE") && d.family:
		named()
		d.out.Rewrites = true
		return d.text(i, next+1) + " " + d.column(next+1, to)
	case d.is(i, "DROP"):
		if d.is(next, "INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "SYSTEM", "PERIOD") {
			d.out.Rewrites = d.out.Rewrites || d.is(next, "PARTITION")
			return ""
		}
		return all
	case d.is(i, "RENAME"):
		if d.is(next, "INDEX", "KEY", "CONSTRAINT") {
			return ""
		}
		d.out.Rewrites = true
		return all
	case d.is(i, "ALTER") && !d.family:
		named()
		if d.is(next+1, "TYPE") || d.seq(next+1, "SET", "DATA") {
			d.out.Rewrites = true
			return all
		}
		return ""
	case d.is(i, "CONVERT") && d.family, d.is(i, "INHERIT") && !d.family, d.is(i, "NO") && d.is(next, "INHERIT"):
		d.out.Rewrites = true
		return all
	case d.family && d.is(i, "DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
		return all
	case d.is(i, "ENABLE", "FORCE") && d.seq(next, "ROW", "LEVEL"):
		d.fail("row security decides which rows are seen")
	case d.seq(i, "ATTACH", "PARTITION"):
		d.fail("a partition is attached")
	case d.seq(i, "DETACH", "PARTITION"):
		d.fail("a partition is detached")
	case d.is(i, "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"):
		d.out.Rewrites = true
	}
	return ""
}
