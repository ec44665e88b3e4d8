package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/rewrite"
)

// relationRow makes the JSON text of one relation. All parts are found by an index, so a question for some names costs the
// same in a database of any size. The parts are aggregates, as the server would rather read all of a table to answer an EXISTS.
var relationRow = `SELECT pg_catalog.json_build_object('k', 'rel', 'oid', c.oid, 'schema', n.nspname, 'name', c.relname,
 'kind', c.relkind, 'persistence', c.relpersistence, 'columns',
 (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(attnum, attname, CASE WHEN y.typtype = 'd' THEN 'domain' WHEN y.typtype = 'e' THEN 'enum'
   WHEN y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN y.typname ELSE 'other' END, attgenerated <> '', attidentity <> '', attacl IS NOT NULL, co.collisdeterministic IS FALSE, attnotnull,
   CASE WHEN y.typname IN ('text', 'varchar') THEN ` + sorts + ` END) ORDER BY attnum)
  FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type y ON y.oid = atttypid LEFT JOIN pg_catalog.pg_collation co ON co.oid = attcollation WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped),
 'indexes', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(indisprimary,
   indisunique AND indimmediate AND indisvalid AND indpred IS NULL, indnkeyatts, indkey::pg_catalog.text)) FROM pg_catalog.pg_index WHERE indrelid = c.oid),
 'excludes', (SELECT pg_catalog.bool_or(indisexclusion OR indisunique AND NOT (indimmediate AND indisvalid AND indpred IS NULL AND indexprs IS NULL)) FROM pg_catalog.pg_index WHERE indrelid = c.oid),
 'rules', c.relhasrules, 'asks', (SELECT pg_catalog.bool_or(adbin::pg_catalog.text ~ (':funcid (' || 'pg_catalog.current_query'::pg_catalog.regproc::pg_catalog.oid || '|[1-9][0-9]{4,}) ')) FROM pg_catalog.pg_attrdef WHERE adrelid = c.oid),
 'readable', pg_catalog.has_table_privilege(c.oid, 'SELECT'),
 'security', CASE WHEN c.relrowsecurity THEN pg_catalog.row_security_active(c.oid) ELSE false END,
 'inherits', (SELECT pg_catalog.bool_or(p.relkind = 'r') FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class p ON p.oid = inhparent WHERE inhrelid = c.oid OR inhparent = c.oid),
 'rows', c.reltuples, 'more', ` + more + `)::pg_catalog.text` + relations

// relations are what is asked for.
const relations = `
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND pg_catalog.left(n.nspname, 3) <> 'pg_'`

// more has a letter for each part of restRows that has something to say of a relation.
const more = `pg_catalog.concat(CASE WHEN c.relhastriggers THEN 't' END, CASE WHEN c.relkind = 'v' THEN 'v' END, CASE WHEN c.relkind = 'p' OR c.relispartition THEN 'p' END)`

// restRows makes the JSON texts of what only relations with triggers, views and partitions have. The server plans all of it for longer than relationRow, so
// it is asked for by itself, where there are any. What a foreign key does to the tables that refer to one shows in the triggers that make it
// (pg_proc.dat: 1646 and 1647 cascade, 1650 and 1651 set null, 1652 and 1653 set default; the even ones when a row is deleted, the odd ones when the
// columns change to which the key refers).
func restRows(letters string) string {
	row := "SELECT pg_catalog.json_build_object('k', 'rest', 'oid', c.oid"
	for _, l := range letters {
		row += ",\n " + restParts[l]
	}
	return row + ")::pg_catalog.text" + relations
}

var restParts = map[rune]string{
	't': `'triggers', (SELECT pg_catalog.json_build_array(pg_catalog.bool_or(NOT tgisinternal AND tgenabled <> 'D'), pg_catalog.bool_or(tgisinternal AND tgfoid IN (1646, 1650, 1652)),
   pg_catalog.json_agg(confkey) FILTER (WHERE tgisinternal AND tgfoid IN (1647, 1651, 1653)))
  FROM pg_catalog.pg_trigger LEFT JOIN pg_catalog.pg_constraint k ON k.oid = tgconstraint WHERE tgrelid = c.oid),
 'referrers', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(rn.nspname, r.relname, k.conkey, k.confkey, t.oid::pg_catalog.int8, tgfoid = 1646, tgenabled IN ('O', 'A') AND
    (SELECT pg_catalog.bool_and(oprname = '=' AND oprnamespace = 'pg_catalog'::pg_catalog.regnamespace) FROM pg_catalog.pg_operator WHERE oid = ANY (conpfeqop))) ORDER BY k.oid)
  FROM pg_catalog.pg_trigger t JOIN pg_catalog.pg_constraint k ON k.oid = tgconstraint JOIN pg_catalog.pg_class r ON r.oid = conrelid JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace
  WHERE tgrelid = c.oid AND tgisinternal AND tgfoid IN (1646, 1650, 1652)),
 'references', (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(k.conkey[1], rn.nspname, r.relname, k.confkey[1]) ORDER BY k.oid)
  FROM pg_catalog.pg_constraint k JOIN pg_catalog.pg_class r ON r.oid = confrelid JOIN pg_catalog.pg_namespace rn ON rn.oid = r.relnamespace JOIN pg_catalog.pg_operator o ON o.oid = k.conpfeqop[1]
  WHERE conrelid = c.oid AND contype = 'f' AND convalidated AND NOT condeferrable AND pg_catalog.array_length(conkey, 1) = 1 AND oprname = '=' AND oprnamespace = 'pg_catalog'::pg_catalog.regnamespace AND
   (SELECT pg_catalog.bool_and(tgenabled IN ('O', 'A')) FROM pg_catalog.pg_trigger WHERE tgconstraint = k.oid))`,
	'v': `'view', CASE WHEN c.relkind = 'v' THEN ` + viewRow + ` END`,
	'p': `'root', CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid END,
 'parts', CASE WHEN c.relkind = 'p' THEN
  (` + partitionsOf("c.oid") + ` SELECT pg_catalog.json_agg(pg_catalog.json_build_array(d.oid::pg_catalog.int8, d.relkind, d.reltuples)) FROM "wirecheck p" JOIN pg_catalog.pg_class d ON d.oid = r) END`,
}

// partitionsOf begins a query that finds the partitions of a table, at all depths, as r of "wirecheck p". pg_partition_tree would lock them all
// (partitionfuncs.c), and so wait, perhaps for ever, for definitions that the client's statement has nothing to do with.
func partitionsOf(table string) string {
	return `WITH RECURSIVE "wirecheck p"(r) AS (SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = ` + table +
		` UNION ALL SELECT inhrelid FROM "wirecheck p" JOIN pg_catalog.pg_inherits ON inhparent = r)`
}

// sorts tells whether a collation co has the order of the letters and digits of ASCII that English has, by its provider and locale, whose columns have other names in
// later versions. The default one is that of the database.
const sorts = `(SELECT pg_catalog.concat(coalesce(j.p, 'c'), coalesce(j.icu, j.locale, j.libc), j.rules) ~ '^(c(C|POSIX|C[.].*|en_[A-Z]{2}([.].*)?)|i(und|root|en([_-][A-Z]{2})?)|b.*)$' FROM
   (SELECT pg_catalog.to_jsonb(co) ->> 'collprovider' AS p, pg_catalog.to_jsonb(co) ->> 'colliculocale' AS icu, pg_catalog.to_jsonb(co) ->> 'colllocale' AS locale, co.collcollate::pg_catalog.text AS libc, pg_catalog.to_jsonb(co) ->> 'collicurules' AS rules WHERE co.oid <> 100
    UNION ALL SELECT pg_catalog.to_jsonb(d) ->> 'datlocprovider', pg_catalog.to_jsonb(d) ->> 'daticulocale', pg_catalog.to_jsonb(d) ->> 'datlocale', d.datcollate::pg_catalog.text, pg_catalog.to_jsonb(d) ->> 'daticurules' FROM pg_catalog.pg_database d
     WHERE co.oid = 100 AND d.datname = pg_catalog.current_database()) j)`

// functionRow makes the JSON text of the functions of all names; %s are conditions.
const functionRow = `SELECT pg_catalog.json_build_object('k', 'functions', 'aggregates', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE prokind = 'a'),
 'sets', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE proretset), 'user', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE u AND provolatile <> 'i'),
 'plain', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE prokind = 'f' AND agg))::pg_catalog.text
FROM (SELECT proname, prokind, proretset, provolatile, left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema' AS u,
  pg_catalog.bool_or(prokind = 'a') OVER (PARTITION BY proname) AS agg FROM pg_catalog.pg_proc JOIN pg_catalog.pg_namespace n ON n.oid = pronamespace%s) p`

// serverRow makes the JSON text of what a rewrite.Server has.
const serverRow = `SELECT pg_catalog.json_build_object('k', 'database', 'name', pg_catalog.current_database(), 'version', pg_catalog.current_setting('server_version'),
 'standby', pg_catalog.pg_is_in_recovery(), 'encoding', pg_catalog.current_setting('server_encoding'),
 'events', (SELECT pg_catalog.count(*) > 0 FROM pg_catalog.pg_event_trigger WHERE evtenabled <> 'D'),
 'operators', EXISTS (SELECT FROM pg_catalog.pg_operator JOIN pg_catalog.pg_type t ON t.oid = oprright WHERE pg_operator.oid >= 16384 AND oprleft < 16384 AND oprright < 16384 AND typcategory <> 'A' AND
   oprname IN ('=', '<>', '<', '<=', '>', '>=', '~~', '!~~', '~~*', '!~~*', '+', '-', '&&', '@>', '<@')),
 'wal', pg_catalog.current_setting('wal_level'))::pg_catalog.text`

// AsksQuery asks whether something in the database may ask for the text of the running statement: the body of a function,
// a default, or a view.
const AsksQuery = `SELECT EXISTS (SELECT FROM pg_catalog.pg_proc WHERE pronamespace NOT IN ('pg_catalog'::pg_catalog.regnamespace, 'information_schema'::pg_catalog.regnamespace) AND prokind IN ('f', 'p') AND
  (prosrc ~* 'current_query|pg_stat_[a-z_]*activity|pg_prepared_statement|pg_cursor' OR prosrc = '' AND pg_catalog.pg_get_functiondef(oid) ~* 'current_query|pg_stat_[a-z_]*activity'))
 OR EXISTS (SELECT FROM pg_catalog.pg_attrdef WHERE adbin::pg_catalog.text LIKE '%:funcid ' || 'pg_catalog.current_query'::pg_catalog.regproc::pg_catalog.oid || ' %')
 OR EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class >= 16384 AND ev_action::pg_catalog.text ~ (':(funcid|relid) (' || 'pg_catalog.current_query'::pg_catalog.regproc::pg_catalog.oid || '|' ||
  'pg_catalog.pg_stat_get_activity'::pg_catalog.regproc::pg_catalog.oid || '|' || 'pg_catalog.pg_stat_activity'::pg_catalog.regclass::pg_catalog.oid || ') '))`

// SmallQuery asks whether the database has at most n relations.
func SmallQuery(n int) string {
	return fmt.Sprintf("SELECT pg_catalog.count(*) <= %d FROM (SELECT FROM pg_catalog.pg_class WHERE oid >= 16384 AND relkind IN ('r', 'p', 'v', 'm', 'f', 'S') LIMIT %d) x", n, n+1)
}

// CatalogQuery is the SELECT whose rows ReadCatalog takes. It asks for all relations and functions. It works for every
// user, from PostgreSQL 13 on, outside of a transaction as well as inside one. It has no backslash, so that it means the
// same whatever standard_conforming_strings is. pg_catalog is named everywhere since the search path may have other
// things of these names.
func CatalogQuery() string {
	return relationRow + "\nUNION ALL\n" + restRows("tvp") + " AND " + more + " <> ''\nUNION ALL\n" + fmt.Sprintf(functionRow, "") + "\nUNION ALL\n" + serverRow
}

// NamesQuery is a CatalogQuery for some names. RestQuery asks for what its answer lacks.
func NamesQuery(names []rewrite.Name) string {
	var relations, functions []string
	for _, n := range names {
		quoted := "E'" + strings.ReplaceAll(strings.ReplaceAll(n.Name, `\`, `\\`), "'", "''") + "'"
		if n.Function {
			functions = append(functions, quoted)
		} else {
			relations = append(relations, quoted)
		}
	}
	query := serverRow
	if len(relations) > 0 {
		list := "ARRAY[" + strings.Join(relations, ", ") + "]::pg_catalog.name[]"
		query += "\nUNION ALL\n" + relationRow + " AND (c.relname = ANY (" + list + ") OR c.oid = ANY (ARRAY(SELECT pg_catalog.pg_partition_root(oid)::pg_catalog.oid FROM pg_catalog.pg_class WHERE relname = ANY (" + list + ") AND relispartition)))"
	}
	if len(functions) > 0 {
		query += "\nUNION ALL\n" + fmt.Sprintf(functionRow, " WHERE proname = ANY (ARRAY["+strings.Join(functions, ", ")+"]::pg_catalog.name[])")
	}
	return query
}

// RestQuery is the query whose rows ReadCatalog takes behind those of a NamesQuery, or "" if it needs none.
func RestQuery(rows [][]string) string {
	var oids []string
	letters := ""
	for _, row := range rows {
		var r struct { // of a catalogRow, which is read later
			OID  uint32 `json:"oid,string"`
			More string `json:"more"`
		}
		if len(row) == 1 && json.Unmarshal([]byte(row[0]), &r) == nil && r.More != "" {
			oids = append(oids, strconv.FormatUint(uint64(r.OID), 10))
			for _, l := range r.More {
				if !strings.ContainsRune(letters, l) {
					letters += string(l)
				}
			}
		}
	}
	if oids == nil {
		return ""
	}
	return restRows(letters) + " AND c.oid = ANY (ARRAY[" + strings.Join(oids, ", ") + "]::pg_catalog.oid[])"
}

type catalogRow struct {
	K string `json:"k"`
	// relations
	OID         uint32              `json:"oid,string"`
	Schema      string              `json:"schema"`
	Name        string              `json:"name"`
	Kind        string              `json:"kind"`
	Persistence string              `json:"persistence"`
	Columns     [][]json.RawMessage `json:"columns"`
	Indexes     [][]json.RawMessage `json:"indexes"`
	Excludes    bool                `json:"excludes"`
	Triggers    []json.RawMessage   `json:"triggers"`   // whether there are the user's, or some that change other rows when this one's are deleted; the columns that do
	Referrers   [][]json.RawMessage `json:"referrers"`  // see rewrite.Referrer
	References  [][]json.RawMessage `json:"references"` // see rewrite.Reference
	Rules       bool                `json:"rules"`
	Asks        bool                `json:"asks"`
	Readable    bool                `json:"readable"`
	Security    bool                `json:"security"`
	View        []json.RawMessage   `json:"view"` // see viewRow
	Root        uint32              `json:"root,string"`
	Inherits    bool                `json:"inherits"`
	More        string              `json:"more"` // a row "rest" tells more
	Rows        float64             `json:"rows"`
	Parts       [][]json.RawMessage `json:"parts"`
	// functions
	Aggregates []string `json:"aggregates"`
	Sets       []string `json:"sets"`
	User       []string `json:"user"`
	Plain      []string `json:"plain"`
	// database
	Version   string `json:"version"`
	Standby   bool   `json:"standby"`
	Encoding  string `json:"encoding"`
	Events    bool   `json:"events"`
	WAL       string `json:"wal"`
	Operators bool   `json:"operators"`
}

// Reading is the answer to a CatalogQuery or NamesQuery.
type Reading struct {
	Server rewrite.Server
	Known  map[rewrite.Name]*rewrite.Known
}

// LoadCatalog makes a catalog from the rows of a CatalogQuery, for which nothing changes.
func LoadCatalog(rows [][]string) (*rewrite.Catalog, error) {
	r, err := ReadCatalog(rows, nil)
	if err != nil {
		return nil, err
	}
	c := rewrite.NewCatalog(r.Server, nil)
	c.Learn(r.Known, 0, true)
	return c, nil
}

// ReadCatalog understands the rows of a CatalogQuery, or of a NamesQuery for names and its RestQuery. A relation that the second of these no longer
// found is none.
func ReadCatalog(rows [][]string, names []rewrite.Name) (*Reading, error) {
	in := &Reading{Known: make(map[rewrite.Name]*rewrite.Known, len(rows))}
	for _, n := range names {
		in.Known[n] = &rewrite.Known{}
	}
	known := func(n rewrite.Name) *rewrite.Known {
		if in.Known[n] == nil && names == nil {
			in.Known[n] = &rewrite.Known{}
		}
		if k := in.Known[n]; k != nil {
			return k
		}
		return &rewrite.Known{} // a root that was not asked for
	}
	roots := map[*rewrite.Relation]uint32{}
	byOID := map[uint32]*rewrite.Relation{}
	functions := false
	var relations []*catalogRow
	rest := make(map[uint32]string)
	for i, row := range rows {
		if len(row) != 1 {
			return nil, fmt.Errorf("catalog row %d has %d columns, not 1", i+1, len(row))
		}
		var r catalogRow
		if err := json.Unmarshal([]byte(row[0]), &r); err != nil {
			return nil, fmt.Errorf("read catalog row %d: %w", i+1, err)
		}
		switch r.K {
		case "rel":
			relations = append(relations, &r)
		case "rest":
			rest[r.OID] = row[0]
		case "functions":
			functions = len(r.Aggregates) > 0
			for kind, list := range map[rewrite.FunctionKind][]string{
				rewrite.FunctionAggregate: r.Aggregates, rewrite.FunctionSet: r.Sets, rewrite.FunctionUser: r.User, rewrite.FunctionPlain: r.Plain,
			} {
				for _, n := range list {
					known(rewrite.Name{Name: n, Function: true}).Function |= kind
				}
			}
		case "database":
			in.Server = rewrite.Server{
				Database: r.Name, Version: r.Version, Standby: r.Standby, Encoding: r.Encoding,
				Minimal: r.WAL == "minimal", EventTriggers: r.Events, Operators: r.Operators,
			}
		}
	}
	if in.Server.Database == "" || names == nil && !functions {
		return nil, fmt.Errorf("the catalog is not complete: %d rows", len(rows))
	}
	for _, r := range relations {
		if r.More != "" {
			text, there := rest[r.OID]
			if !there {
				continue
			}
			if err := json.Unmarshal([]byte(text), r); err != nil {
				return nil, fmt.Errorf("read the rest of %s.%s: %w", r.Schema, r.Name, err)
			}
		}
		rel, err := r.relation()
		if err != nil {
			return nil, fmt.Errorf("read %s.%s of the catalog: %w", r.Schema, r.Name, err)
		}
		k := known(rewrite.Name{Name: rel.Name})
		k.Relations = append(k.Relations, rel)
		byOID[rel.OID] = rel
		if r.Root != 0 && r.Root != r.OID {
			roots[rel] = r.Root
		}
	}
	for rel, root := range roots {
		if rel.Root = byOID[root]; rel.Root == nil {
			rel.Kind = "other" // its root is in a schema that is not watched
		} else if rel.Kind == "partitioned" && rel.Root.Kind == "foreign" {
			rel.Kind = "foreign"
		}
	}
	if in.Server.Minimal {
		// With wal_level=minimal the rows of a table that is new in this transaction are not logged (manual, 20.5.1).
		for _, rel := range byOID {
			rel.Unlogged = true
		}
	}
	return in, nil
}

func (r *catalogRow) relation() (*rewrite.Relation, error) {
	kinds := map[string]string{"r": "table", "p": "partitioned", "v": "view", "m": "matview", "f": "foreign", "S": "sequence"}
	rel := &rewrite.Relation{
		RelationName: rewrite.RelationName{Schema: r.Schema, Name: r.Name}, Kind: kinds[r.Kind], OID: r.OID,
		HasRules: r.Rules, Excludes: r.Excludes, Asks: r.Asks, Readable: r.Readable,
		Inherits: r.Inherits, Unlogged: r.Persistence != "p", RowSecurity: r.Security, Rows: r.Rows,
	}
	var referred [][]int
	if err := unpack(r.Triggers, &rel.HasTriggers, &rel.CascadesDelete, &referred); r.Triggers != nil && err != nil {
		return nil, err
	}
	names := map[int]string{}
	for _, col := range r.Columns {
		var num int
		var at rewrite.Attribute
		var granted bool
		if err := unpack(col, &num, &at.Name, &at.Type, &at.Generated, &at.Auto, &granted, &at.Folds, &at.Required, &at.Sorts); err != nil {
			return nil, err
		}
		rel.ColumnGrants = rel.ColumnGrants || granted
		at.Number = num
		at.Hidden = hiddenColumns[at.Name] == at.Type && at.Type != ""
		names[num] = at.Name
		rel.Columns = append(rel.Columns, at)
	}
	for _, numbers := range referred {
		columns := []string{}
		for _, n := range numbers {
			columns = append(columns, names[n])
		}
		rel.AddCascade(columns)
	}
	for _, one := range r.Referrers {
		f := rewrite.Referrer{}
		if err := unpack(one, &f.Schema, &f.Name, &f.Columns, &f.Keys, &f.Trigger, &f.Deletes, &f.Plain); err != nil {
			return nil, err
		}
		rel.Referrers = append(rel.Referrers, f)
	}
	for _, one := range r.References {
		f, column := rewrite.Reference{}, 0
		if err := unpack(one, &column, &f.Table.Schema, &f.Table.Name, &f.Key); err != nil {
			return nil, err
		}
		f.Column = names[column]
		rel.References = append(rel.References, f)
	}
	rel.Instrumented = instrumented(rel)
	if r.View != nil {
		var err error
		if rel.Shown, err = shown(r.View); err != nil {
			return nil, err
		}
	}
	for _, ix := range r.Indexes {
		var primary, unique bool
		var n int
		var keys string
		if err := unpack(ix, &primary, &unique, &n, &keys); err != nil {
			return nil, err
		}
		var cols []string
		for i, k := range strings.Fields(keys) {
			num, err := strconv.Atoi(k)
			if err != nil {
				return nil, err
			}
			if i < n {
				cols = append(cols, names[num]) // "" for an expression
			}
		}
		if primary && unique {
			rel.Key = cols
		}
		if unique {
			rel.Unique = append(rel.Unique, cols)
		}
		if !primary || !unique { // a primary key that is deferred is an index
			rel.Indexes = append(rel.Indexes, cols)
		}
	}
	for _, part := range r.Parts {
		var oid uint32
		var kind string
		var rows float64
		if err := unpack(part, &oid, &kind, &rows); err != nil {
			return nil, err
		}
		rel.Partitions = append(rel.Partitions, oid)
		if kind == "f" { // its rows have no versions of this server
			rel.Kind = "foreign"
		}
		if kind == "r" && rows > 0 && r.Root == 0 {
			rel.Rows += rows // the server keeps no estimate for a partitioned table itself until it is analyzed
		}
	}
	return rel, nil
}

// shown reads what viewRow tells of a view.
func shown(in []json.RawMessage) (*rewrite.Shown, error) {
	s := &rewrite.Shown{}
	var tables, columns [][]json.RawMessage
	if err := unpack(in, &s.Rule, &tables, &columns); err != nil {
		return nil, err
	}
	for _, one := range tables {
		t := rewrite.ShownTable{Columns: map[int]int{}}
		if err := unpack(one, &t.OID, &t.Schema, &t.Name, &t.Secured); err != nil {
			return nil, err
		}
		for _, c := range columns {
			var number, of int
			var table uint32
			if err := unpack(c, &number, &table, &of); err != nil {
				return nil, err
			}
			if table == t.OID {
				t.Columns[number] = of
			}
		}
		s.Tables = append(s.Tables, t)
	}
	return s, nil
}

func unpack(in []json.RawMessage, out ...any) error {
	if len(in) != len(out) {
		return fmt.Errorf("%d values, not %d", len(in), len(out))
	}
	for i := range in {
		if err := json.Unmarshal(in[i], out[i]); err != nil {
			return err
		}
	}
	return nil
}
