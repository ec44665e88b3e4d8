package mysql

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/rewrite"
)

const userSchemas = " NOT IN ('information_schema','performance_schema','mysql','sys','INFORMATION_SCHEMA','PERFORMANCE_SCHEMA','METRICS_SCHEMA')"

// The parts of the questions for the catalog. Each row is a kind, a schema, a table and up to four more texts.
const (
	serverPart     = "SELECT 'V' k,VERSION() a,IFNULL(DATABASE(),'') b,CAST(@@lower_case_table_names AS CHAR) c,'' d,'' e,'' f"
	tablePart      = " UNION ALL SELECT 'T',TABLE_SCHEMA,TABLE_NAME,TABLE_TYPE,IFNULL(ENGINE,''),IFNULL(CREATE_OPTIONS,''),'' FROM information_schema.TABLES WHERE "
	columnPart     = " UNION ALL SELECT 'C',TABLE_SCHEMA,TABLE_NAME,COLUMN_NAME,COLUMN_TYPE,CONCAT(EXTRA,'|',IS_NULLABLE,'|',IFNULL(COLLATION_NAME,''),'|',IFNULL(CONCAT('=',LEFT(COLUMN_DEFAULT,64)),'')),CAST(ORDINAL_POSITION AS CHAR) FROM information_schema.COLUMNS WHERE "
	viewPart       = " UNION ALL SELECT 'W',TABLE_SCHEMA,TABLE_NAME,VIEW_DEFINITION,'','','' FROM information_schema.VIEWS WHERE "
	indexPart      = " UNION ALL SELECT 'I',TABLE_SCHEMA,TABLE_NAME,INDEX_NAME,IFNULL(COLUMN_NAME,''),CONCAT(NON_UNIQUE,IF(SUB_PART IS NULL,'','p')),CAST(SEQ_IN_INDEX AS CHAR) FROM information_schema.STATISTICS WHERE "
	triggerPart    = " UNION ALL SELECT DISTINCT 'G',EVENT_OBJECT_SCHEMA,EVENT_OBJECT_TABLE,'','','','' FROM information_schema.TRIGGERS WHERE "
	constraintPart = " UNION ALL SELECT DISTINCT 'K',TABLE_SCHEMA,TABLE_NAME,'','','','' FROM information_schema.TABLE_CONSTRAINTS WHERE CONSTRAINT_TYPE IN ('FOREIGN KEY','CHECK') AND "
	keyPart        = " UNION ALL SELECT 'E',TABLE_SCHEMA,TABLE_NAME,REFERENCED_COLUMN_NAME,COLUMN_NAME,REFERENCED_TABLE_NAME,CONSTRAINT_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_SCHEMA=TABLE_SCHEMA AND "
	privilegePart  = " UNION ALL SELECT DISTINCT 'P',TABLE_SCHEMA,TABLE_NAME,'','','','' FROM information_schema.COLUMN_PRIVILEGES WHERE "
	parentPart     = " UNION ALL SELECT DISTINCT 'R',UNIQUE_CONSTRAINT_SCHEMA,REFERENCED_TABLE_NAME,UPDATE_RULE,DELETE_RULE,CONVERT(IFNULL(UNIQUE_CONSTRAINT_NAME,'') USING utf8mb4) COLLATE utf8mb4_bin,'' FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA" + userSchemas
	functionPart   = " UNION ALL SELECT DISTINCT 'F',ROUTINE_SCHEMA,ROUTINE_NAME,'','','','' FROM information_schema.ROUTINES WHERE ROUTINE_TYPE='FUNCTION' AND ROUTINE_SCHEMA" + userSchemas
	// noLimit is a LIMIT of its own, as the client may have set sql_select_limit: half a catalog would be wrong.
	noLimit = " LIMIT 18446744073709551615"
)

// SmallQuery asks whether the server has at most n tables; the answer is 1 or 0.
func SmallQuery(n int) string {
	return fmt.Sprintf("SELECT COUNT(*)<=%d FROM information_schema.TABLES WHERE TABLE_SCHEMA%s", n, userSchemas)
}

// CatalogQuery asks for everything that LoadCatalog needs, as far as the session's user may see it.
func CatalogQuery(f Flavor) string {
	const schema = "TABLE_SCHEMA" + userSchemas
	return serverPart + tablePart + schema + columnPart + schema + viewPart + schema + indexPart + schema + triggerPart + "EVENT_OBJECT_SCHEMA" + userSchemas +
		parentPart + functionPart + privilegePart + schema + constraints(f, schema) + noLimit
}

// constraints are the parts for the constraints of tables.
func constraints(f Flavor, tables string) string {
	switch f {
	case MariaDB, MySQL: // neither opens the tables of the client
		return constraintPart + tables + keyPart + tables
	}
	return ""
}

// NamesQuery is a CatalogQuery for some names. MariaDB finds a table's part by the table's name only where both names are compared with
// one constant each; it reads all tables for the foreign keys (rewrite.Parents), whatever the condition. MySQL opens some 40 of its own tables for each part
// that has all kinds. Many parts put the client's tables out of the cache of open ones (250 for each of 16 instances by default), and they come back with
// other statistics (MySQL 9.7.4). So there the tables of a schema share one part.
func NamesQuery(names []rewrite.Name, f Flavor) string {
	var b strings.Builder
	b.WriteString(serverPart)
	var functions, schemas []string
	shared := map[string][]string{} // names in one part, by the schema
	add := func(schema, names string) {
		table := "TABLE_SCHEMA=" + literal(schema) + " AND TABLE_NAME" + names
		b.WriteString(tablePart + table + columnPart + table + viewPart + table + indexPart + table +
			triggerPart + "EVENT_OBJECT_SCHEMA=" + literal(schema) + " AND EVENT_OBJECT_TABLE" + names + privilegePart + table + constraints(f, table))
	}
	for _, n := range names {
		switch {
		case n == rewrite.Parents:
			b.WriteString(parentPart)
		case n.Function:
			functions = append(functions, literal(n.Name))
		case f == MySQL:
			if len(shared[n.Schema]) == 0 {
				schemas = append(schemas, n.Schema)
			}
			shared[n.Schema] = append(shared[n.Schema], literal(n.Name))
		default:
			add(n.Schema, "="+literal(n.Name))
		}
	}
	for _, schema := range schemas {
		add(schema, " IN ("+strings.Join(shared[schema], ",")+")")
	}
	if len(functions) > 0 {
		b.WriteString(functionPart + " AND ROUTINE_NAME IN (" + strings.Join(functions, ",") + ")")
	}
	return b.String() + noLimit
}

// InstrumentedQuery asks for one table of a schema that has the hidden columns.
func InstrumentedQuery(schema string) string {
	return "SELECT TABLE_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA=" + literal(schema) + " AND COLUMN_NAME='" + columnWriters + "' LIMIT 1"
}

// literal is a name as SQL text that means the same in each sql_mode.
func literal(name string) string {
	if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_$-. ") == "" {
		return "'" + name + "'"
	}
	return fmt.Sprintf("_utf8mb4 0x%x", name)
}

// LoadCatalog makes a catalog from the rows of CatalogQuery, for which nothing changes.
func LoadCatalog(rows [][]string) (*rewrite.Catalog, error) {
	server, known, err := ReadCatalog(rows, nil)
	if err != nil {
		return nil, err
	}
	c := rewrite.NewCatalog(server, nil)
	c.Learn(known, 0, true)
	return c, nil
}

// ReadCatalog understands the rows of CatalogQuery, or of NamesQuery for names; NULLs are empty.
func ReadCatalog(rows [][]string, names []rewrite.Name) (rewrite.Server, map[rewrite.Name]*rewrite.Known, error) {
	l := loader{
		known:   make(map[rewrite.Name]*rewrite.Known),
		columns: make(map[*rewrite.Relation][]placed[rewrite.Attribute]),
		indexes: make(map[*rewrite.Relation]map[string]*index),
		keys:    make(map[*rewrite.Relation]map[string][]rewrite.Reference),
	}
	for _, n := range names {
		l.known[n] = &rewrite.Known{}
	}
	if names == nil {
		l.known[rewrite.Parents] = &rewrite.Known{}
	}
	for _, r := range rows {
		if len(r) != 7 {
			return l.server, nil, fmt.Errorf("a catalog row has %d columns", len(r))
		}
	}
	for _, kind := range []string{"V", "T", "C", "W", "I", "G", "R", "F", "P", "K", "E"} { // tables before what belongs to them
		for _, r := range rows {
			if r[0] != kind {
				continue
			}
			if err := l.row(r); err != nil {
				return l.server, nil, fmt.Errorf("catalog row %q: %w", r, err)
			}
		}
	}
	if l.server.Version == "" {
		return l.server, nil, fmt.Errorf("the catalog names no version")
	}
	for rel := range l.columns {
		l.finish(rel)
	}
	return l.server, l.known, nil
}

type placed[T any] struct {
	place int
	v     T
}

type index struct {
	columns []placed[string]
	unique  bool
}

type loader struct {
	server  rewrite.Server
	known   map[rewrite.Name]*rewrite.Known
	columns map[*rewrite.Relation][]placed[rewrite.Attribute]
	indexes map[*rewrite.Relation]map[string]*index
	keys    map[*rewrite.Relation]map[string][]rewrite.Reference // foreign keys by their names, and by column
}

func (l *loader) fold(s string) string {
	return folded(l.server, s)
}

// folded gives a name of a schema or table as the server compares it.
func folded(s rewrite.Server, name string) string {
	if s.FoldNames {
		return strings.ToLower(name)
	}
	return name
}

// NameOf gives the name of a table as a catalog has it.
func NameOf(s rewrite.Server, table rewrite.RelationName) rewrite.Name {
	return rewrite.Name{Schema: folded(s, table.Schema), Name: folded(s, table.Name)}
}

func (l *loader) relation(schema, name string) *rewrite.Relation {
	if k := l.known[NameOf(l.server, rewrite.RelationName{Schema: schema, Name: name})]; k != nil && len(k.Relations) > 0 {
		return k.Relations[0]
	}
	return nil
}

func (l *loader) row(r []string) error {
	switch r[0] {
	case "V":
		l.server.Version, l.server.Database, l.server.FoldNames = r[1], r[2], r[3] != "0"
		return nil
	case "F":
		l.known[rewrite.Name{Name: strings.ToLower(r[2]), Function: true}] = &rewrite.Known{Function: rewrite.FunctionUser}
		return nil
	case "T":
		l.table(r)
		return nil
	case "R":
		changes := func(rule string) bool { return rule != "RESTRICT" && rule != "NO ACTION" }
		if p := l.known[rewrite.Parents]; p != nil && (changes(r[3]) || changes(r[4])) {
			update := []string{r[5]}
			if !changes(r[3]) {
				update = nil
			}
			p.AddParent(l.fold(r[2]), rewrite.Cascade{Delete: changes(r[4]), Update: update})
		}
		return nil
	}
	rel := l.relation(r[1], r[2])
	if rel == nil {
		return nil // made since, or not visible
	}
	switch r[0] {
	case "C":
		place, err := strconv.Atoi(r[6])
		if err != nil {
			return err
		}
		extra, rest, _ := strings.Cut(strings.ToUpper(r[5]), "|")
		nullable, rest, _ := strings.Cut(rest, "|")
		collation, standard, _ := strings.Cut(rest, "|")
		l.columns[rel] = append(l.columns[rel], placed[rewrite.Attribute]{place, rewrite.Attribute{
			Name: r[3], Type: r[4],
			Hidden:    strings.Contains(extra, "INVISIBLE") || HiddenColumn(r[3]) && alwaysVisible(FlavorOf(l.server.Version)),
			Generated: strings.Contains(extra, " GENERATED") && !strings.Contains(extra, "DEFAULT_GENERATED") || strings.Contains(extra, "VIRTUAL") || strings.Contains(extra, "PERSISTENT"),
			Auto:      strings.Contains(extra, "AUTO_INCREMENT"),
			Touched:   strings.Contains(extra, "ON UPDATE"),
			Required:  nullable == "NO",
			Collation: strings.ToLower(collation),
			Fixed:     l.fixed(typeName(r[4]), extra, nullable, standard),
			Clock:     FlavorOf(l.server.Version) != TiDB && clockDefault.MatchString(standard) && (typeName(r[4]) == "timestamp" || typeName(r[4]) == "datetime"),
		}})
	case "I":
		place, err := strconv.Atoi(r[6])
		if err != nil {
			return err
		}
		if l.indexes[rel] == nil {
			l.indexes[rel] = make(map[string]*index)
		}
		ix := l.indexes[rel][r[3]]
		if ix == nil {
			ix = &index{unique: r[5][:1] == "0"}
			l.indexes[rel][r[3]] = ix
		}
		rel.Excludes = rel.Excludes || r[5] == "0p" // of a prefix
		ix.columns = append(ix.columns, placed[string]{place, r[4]})
	case "W":
		rel.Definition = r[3]
	case "G":
		rel.HasTriggers = true
	case "P":
		rel.ColumnGrants = true
	case "K":
		rel.Excludes = true
	case "E":
		if l.keys[rel] == nil {
			l.keys[rel] = make(map[string][]rewrite.Reference)
		}
		l.keys[rel][r[6]] = append(l.keys[rel][r[6]], rewrite.Reference{Column: r[4], Table: rewrite.RelationName{Schema: r[1], Name: r[5]}, Name: r[3]})
	}
	return nil
}

// constantDefault is how MariaDB writes the defaults that are no expressions, in upper case.
var constantDefault = regexp.MustCompile(`^=(NULL|-?[0-9.]+|'[^'\\]*')$`)

// clockDefault is how the servers write the time of a statement as a default. Its fractions of seconds are those of the column (MySQL manual, 13.2.5).
var clockDefault = regexp.MustCompile(`^=CURRENT_TIMESTAMP(\(\d?\))?$`)

// fixed reports whether the default of a column, "=" and its text, is one value that the server has at hand before it evaluates those of the statement.
func (l *loader) fixed(typ, extra, nullable, standard string) bool {
	long := strings.HasSuffix(typ, "text") || strings.HasSuffix(typ, "blob") || typ == "json" // their defaults are expressions
	switch FlavorOf(l.server.Version) {
	case MariaDB:
		return constantDefault.MatchString(standard) && (!long || standard == "=NULL")
	case MySQL:
		return !strings.Contains(extra, "DEFAULT_GENERATED") && (standard == "" && nullable == "YES" || standard != "" && !long)
	}
	return false
}

func (l *loader) table(r []string) {
	rel := &rewrite.Relation{
		RelationName: rewrite.RelationName{Schema: r[1], Name: r[2]},
		Engine:       r[4], Readable: true, Rows: -1, Partitioned: strings.Contains(strings.ToLower(r[5]), "partitioned"),
	}
	switch t := strings.ToUpper(r[3]); {
	case t == "BASE TABLE":
		rel.Kind = "table"
	case strings.Contains(t, "VIEW"):
		rel.Kind = "view"
	case t == "SEQUENCE":
		rel.Kind = "sequence"
	default: // SYSTEM VERSIONED, TEMPORARY: a no-op UPDATE is not one there, or it is not everybody's
		rel.Kind = "other"
	}
	l.known[NameOf(l.server, rel.RelationName)] = &rewrite.Known{Relations: []*rewrite.Relation{rel}}
	l.columns[rel] = nil
}

func (l *loader) finish(rel *rewrite.Relation) {
	columns := l.columns[rel]
	slices.SortFunc(columns, func(a, b placed[rewrite.Attribute]) int { return a.place - b.place })
	ours := 0
	for _, c := range columns {
		rel.Columns = append(rel.Columns, c.v)
		if c.v.Name == columnRowID && (strings.HasPrefix(c.v.Type, "bigint") || c.v.Type == "varchar(36)") || c.v.Name == columnWriters && strings.HasPrefix(c.v.Type, "varchar") {
			ours++
		}
	}
	rel.Instrumented = ours == 2
	for _, name := range slices.Sorted(maps.Keys(l.keys[rel])) {
		if columns := l.keys[rel][name]; len(columns) == 1 {
			rel.References = append(rel.References, columns[0])
		}
	}
	rel.Named = make(map[string][]string, len(l.indexes[rel]))
	names := make([]string, 0, len(l.indexes[rel]))
	for name := range l.indexes[rel] {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		ix := l.indexes[rel][name]
		slices.SortFunc(ix.columns, func(a, b placed[string]) int { return a.place - b.place })
		list := make([]string, len(ix.columns))
		for i, c := range ix.columns {
			list[i] = c.v
		}
		if name == "PRIMARY" {
			rel.Key = list
		} else {
			rel.Indexes = append(rel.Indexes, list)
		}
		if ix.unique {
			rel.Unique = append(rel.Unique, list)
		}
		rel.Named[name] = list
	}
}
