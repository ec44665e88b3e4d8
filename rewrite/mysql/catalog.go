package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/rewrite"
)

const userSchemas = " NOT IN ('information_schema','performance_schema','mysql','sys','INFORMATION_SCHEMA','PERFORMANCE_SCHEMA','METRICS_SCHEMA')"

// CatalogQuery asks for everything that LoadCatalog needs, as far as the session's user may see it. Each row is a kind,
// a schema, a table and up to four more texts.
func CatalogQuery() string {
	return "SELECT 'V' k,VERSION() a,IFNULL(DATABASE(),'') b,CAST(@@lower_case_table_names AS CHAR) c,'' d,'' e,'' f" +
		" UNION ALL SELECT 'T',TABLE_SCHEMA,TABLE_NAME,TABLE_TYPE,IFNULL(ENGINE,''),'','' FROM information_schema.TABLES WHERE TABLE_SCHEMA" + userSchemas +
		" UNION ALL SELECT 'C',TABLE_SCHEMA,TABLE_NAME,COLUMN_NAME,COLUMN_TYPE,EXTRA,CAST(ORDINAL_POSITION AS CHAR) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA" + userSchemas +
		" UNION ALL SELECT 'I',TABLE_SCHEMA,TABLE_NAME,INDEX_NAME,IFNULL(COLUMN_NAME,''),CAST(NON_UNIQUE AS CHAR),CAST(SEQ_IN_INDEX AS CHAR) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA" + userSchemas +
		" UNION ALL SELECT DISTINCT 'G',EVENT_OBJECT_SCHEMA,EVENT_OBJECT_TABLE,'','','','' FROM information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA" + userSchemas +
		" UNION ALL SELECT DISTINCT 'R',UNIQUE_CONSTRAINT_SCHEMA,REFERENCED_TABLE_NAME,UPDATE_RULE,DELETE_RULE,IFNULL(UNIQUE_CONSTRAINT_NAME,''),'' FROM information_schema.REFERENTIAL_CONSTRAINTS WHERE CONSTRAINT_SCHEMA" + userSchemas +
		" UNION ALL SELECT DISTINCT 'F',ROUTINE_SCHEMA,ROUTINE_NAME,'','','','' FROM information_schema.ROUTINES WHERE ROUTINE_TYPE='FUNCTION' AND ROUTINE_SCHEMA" + userSchemas +
		" UNION ALL SELECT DISTINCT 'P',TABLE_SCHEMA,TABLE_NAME,'','','','' FROM information_schema.COLUMN_PRIVILEGES WHERE TABLE_SCHEMA" + userSchemas
}

// LoadCatalog makes a catalog from the rows of CatalogQuery, for which nothing changes.
func LoadCatalog(rows [][]string) (*rewrite.Catalog, error) {
	server, known, err := ReadCatalog(rows)
	if err != nil {
		return nil, err
	}
	c := rewrite.NewCatalog(server, nil)
	c.Learn(known, 0, true)
	return c, nil
}

// ReadCatalog understands the rows of CatalogQuery; NULLs are empty.
func ReadCatalog(rows [][]string) (rewrite.Server, map[rewrite.Name]*rewrite.Known, error) {
	l := loader{
		known:   make(map[rewrite.Name]*rewrite.Known),
		columns: make(map[*rewrite.Relation][]placed[rewrite.Attribute]),
		indexes: make(map[*rewrite.Relation]map[string]*index), referred: make(map[*rewrite.Relation][]string),
	}
	for _, r := range rows {
		if len(r) != 7 {
			return l.server, nil, fmt.Errorf("a catalog row has %d columns", len(r))
		}
	}
	for _, kind := range []string{"V", "T", "C", "I", "G", "R", "F", "P"} { // tables before what belongs to them
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
	// referred are the indexes to which foreign keys refer that change other rows with the index's columns. TiDB says PRIMARY of all.
	referred map[*rewrite.Relation][]string
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

func (l *loader) relation(schema, name string) *rewrite.Relation {
	if k := l.known[rewrite.Name{Schema: l.fold(schema), Name: l.fold(name)}]; k != nil {
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
		extra := strings.ToUpper(r[5])
		l.columns[rel] = append(l.columns[rel], placed[rewrite.Attribute]{place, rewrite.Attribute{
			Name: r[3], Type: r[4],
			Hidden:    strings.Contains(extra, "INVISIBLE") || HiddenColumn(r[3]) && alwaysVisible(FlavorOf(l.server.Version)),
			Generated: strings.Contains(extra, " GENERATED") && !strings.Contains(extra, "DEFAULT_GENERATED") || strings.Contains(extra, "VIRTUAL") || strings.Contains(extra, "PERSISTENT"),
			Auto:      strings.Contains(extra, "AUTO_INCREMENT"),
			Touched:   strings.Contains(extra, "ON UPDATE"),
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
			ix = &index{unique: r[5] == "0"}
			l.indexes[rel][r[3]] = ix
		}
		ix.columns = append(ix.columns, placed[string]{place, r[4]})
	case "G":
		rel.HasTriggers = true
	case "R":
		changes := func(rule string) bool { return rule != "RESTRICT" && rule != "NO ACTION" }
		if changes(r[3]) {
			l.referred[rel] = append(l.referred[rel], r[5])
		}
		rel.CascadesDelete = rel.CascadesDelete || changes(r[4])
	case "P":
		rel.ColumnGrants = true
	}
	return nil
}

func (l *loader) table(r []string) {
	rel := &rewrite.Relation{
		RelationName: rewrite.RelationName{Schema: r[1], Name: r[2]},
		Engine:       r[4], Readable: true, Rows: -1,
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
	l.known[rewrite.Name{Schema: l.fold(r[1]), Name: l.fold(r[2])}] = &rewrite.Known{Relations: []*rewrite.Relation{rel}}
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
		if slices.Contains(l.referred[rel], name) || len(l.referred[rel]) > 0 && FlavorOf(l.server.Version) == TiDB {
			rel.AddCascade(list)
		}
	}
	for _, name := range l.referred[rel] {
		if l.indexes[rel][name] == nil {
			rel.AddCascade([]string{""}) // it may be any column
		}
	}
}
