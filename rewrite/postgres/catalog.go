package postgres

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"wirecheck/rewrite"
)

// catalogQuery gives one row of JSON text for each relation, one for the functions and one for the database. It takes
// only what any user may read, and has no backslash, so that it means the same whatever standard_conforming_strings
// is. The attributes, indexes and triggers are aggregated once and joined: thousands of tables cost milliseconds.
// pg_catalog is named everywhere since the search path may have other things of these names.
const catalogQuery = `SELECT pg_catalog.json_build_object('k', 'rel', 'oid', c.oid, 'schema', n.nspname, 'name', c.relname,
 'kind', c.relkind, 'persistence', c.relpersistence, 'columns', a.columns, 'grants', a.grants, 'indexes', i.indexes,
 'triggers', t.relid IS NOT NULL, 'rules', c.relhasrules, 'readable', pg_catalog.has_table_privilege(c.oid, 'SELECT'),
 'security', CASE WHEN c.relrowsecurity THEN pg_catalog.row_security_active(c.oid) ELSE false END,
 'root', CASE WHEN c.relispartition THEN pg_catalog.pg_partition_root(c.oid)::pg_catalog.oid END,
 'inherits', h.relid IS NOT NULL, 'cascades', f.relid IS NOT NULL, 'rows', c.reltuples)::pg_catalog.text
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN (SELECT attrelid AS relid, pg_catalog.bool_or(attacl IS NOT NULL) AS grants,
  pg_catalog.json_agg(pg_catalog.json_build_array(attnum, attname, CASE WHEN y.typtype = 'd' THEN 'domain' WHEN y.typtype = 'e' THEN 'enum'
   WHEN y.typnamespace = 'pg_catalog'::pg_catalog.regnamespace THEN y.typname ELSE 'other' END, attgenerated <> '', attidentity <> '') ORDER BY attnum) AS columns
 FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_type y ON y.oid = atttypid WHERE attnum > 0 AND NOT attisdropped GROUP BY attrelid) a ON a.relid = c.oid
LEFT JOIN (SELECT indrelid AS relid, pg_catalog.json_agg(pg_catalog.json_build_array(indisprimary,
  indisunique AND indimmediate AND indisvalid AND indpred IS NULL, indnkeyatts, indkey::pg_catalog.text)) AS indexes
 FROM pg_catalog.pg_index GROUP BY indrelid) i ON i.relid = c.oid
LEFT JOIN (SELECT DISTINCT tgrelid AS relid FROM pg_catalog.pg_trigger WHERE NOT tgisinternal AND tgenabled <> 'D') t ON t.relid = c.oid
LEFT JOIN (SELECT DISTINCT r.relid FROM pg_catalog.pg_inherits JOIN pg_catalog.pg_class p ON p.oid = inhparent AND p.relkind = 'r',
  LATERAL (VALUES (inhparent), (inhrelid)) r(relid)) h ON h.relid = c.oid
LEFT JOIN (SELECT DISTINCT confrelid AS relid FROM pg_catalog.pg_constraint WHERE contype = 'f' AND (confdeltype IN ('c', 'n', 'd') OR confupdtype IN ('c', 'n', 'd'))) f ON f.relid = c.oid
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND c.relpersistence <> 't' AND n.nspname <> 'information_schema' AND pg_catalog.left(n.nspname, 3) <> 'pg_'
UNION ALL
SELECT pg_catalog.json_build_object('k', 'functions', 'aggregates', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE prokind = 'a'),
 'sets', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE proretset), 'user', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE u AND provolatile <> 'i'),
 'plain', pg_catalog.json_agg(DISTINCT proname) FILTER (WHERE prokind = 'f' AND agg))::pg_catalog.text
FROM (SELECT proname, prokind, proretset, provolatile, left(n.nspname, 3) <> 'pg_' AND n.nspname <> 'information_schema' AS u,
  pg_catalog.bool_or(prokind = 'a') OVER (PARTITION BY proname) AS agg FROM pg_catalog.pg_proc JOIN pg_catalog.pg_namespace n ON n.oid = pronamespace) p
UNION ALL
SELECT pg_catalog.json_build_object('k', 'database', 'name', pg_catalog.current_database(), 'version', pg_catalog.current_setting('server_version'),
 'standby', pg_catalog.pg_is_in_recovery(), 'encoding', pg_catalog.current_setting('server_encoding'),
 'wal', pg_catalog.current_setting('wal_level'), 'horizon', pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::pg_catalog.text)::pg_catalog.text`

// CatalogQuery is the SELECT, for the simple protocol, whose rows LoadCatalog takes. It works for every user, from
// PostgreSQL 13 on, outside of a transaction as well as inside one.
func CatalogQuery() string { return catalogQuery }

type catalogRow struct {
	K string `json:"k"`
	// relations
	OID         uint32              `json:"oid,string"`
	Schema      string              `json:"schema"`
	Name        string              `json:"name"`
	Kind        string              `json:"kind"`
	Persistence string              `json:"persistence"`
	Columns     [][]json.RawMessage `json:"columns"`
	Grants      bool                `json:"grants"`
	Indexes     [][]json.RawMessage `json:"indexes"`
	Triggers    bool                `json:"triggers"`
	Rules       bool                `json:"rules"`
	Readable    bool                `json:"readable"`
	Security    bool                `json:"security"`
	Root        uint32              `json:"root,string"`
	Inherits    bool                `json:"inherits"`
	Cascades    bool                `json:"cascades"`
	Rows        float64             `json:"rows"`
	// functions
	Aggregates []string `json:"aggregates"`
	Sets       []string `json:"sets"`
	User       []string `json:"user"`
	Plain      []string `json:"plain"`
	// database
	Version  string `json:"version"`
	Standby  bool   `json:"standby"`
	Encoding string `json:"encoding"`
	WAL      string `json:"wal"`
	Horizon  uint64 `json:"horizon,string"`
}

// LoadCatalog makes a catalog from the rows of CatalogQuery. Its Horizon is that of this reading; a process that reads
// the catalog of a database again keeps the first one, see KeepHorizon.
func LoadCatalog(rows [][]string) (*rewrite.Catalog, error) {
	c := &rewrite.Catalog{
		Relations: make(map[rewrite.RelationName]*rewrite.Relation, len(rows)),
		ByName:    make(map[string][]*rewrite.Relation, len(rows)),
		ByOID:     make(map[uint32]*rewrite.Relation, len(rows)),
		Functions: make(map[string]rewrite.FunctionKind, 256),
	}
	roots := map[*rewrite.Relation]uint32{}
	known := false
	minimal := false
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
			rel, err := r.relation()
			if err != nil {
				return nil, fmt.Errorf("read catalog row %d (%s.%s): %w", i+1, r.Schema, r.Name, err)
			}
			c.Relations[rel.RelationName] = rel
			c.ByName[rel.Name] = append(c.ByName[rel.Name], rel)
			c.ByOID[rel.OID] = rel
			if r.Root != 0 && r.Root != r.OID {
				roots[rel] = r.Root
			}
		case "functions":
			add := func(names []string, k rewrite.FunctionKind) {
				for _, n := range names {
					c.Functions[n] |= k
				}
			}
			add(r.Aggregates, rewrite.FunctionAggregate)
			add(r.Sets, rewrite.FunctionSet)
			add(r.User, rewrite.FunctionUser)
			add(r.Plain, rewrite.FunctionPlain)
		case "database":
			known = true
			c.Database, c.Version, c.Horizon = r.Name, r.Version, r.Horizon
			c.Standby, c.Encoding = r.Standby, r.Encoding
			minimal = r.WAL == "minimal"
		}
	}
	if !known || len(c.Functions) == 0 {
		return nil, fmt.Errorf("the catalog is not complete: %d rows", len(rows))
	}
	for rel, root := range roots {
		if rel.Root = c.ByOID[root]; rel.Root == nil {
			rel.Kind = "other" // its root is in a schema that is not watched
		}
	}
	for rel := range roots {
		// The rows of a foreign partition have no versions of this server.
		if rel.Kind == "foreign" && rel.Root != nil {
			rel.Root.Kind = "foreign"
		}
	}
	for rel := range roots {
		if rel.Kind == "partitioned" && rel.Root.Kind == "foreign" {
			rel.Kind = "foreign"
		}
	}
	for rel := range roots {
		// The server keeps no estimate for a partitioned table itself until it is analyzed.
		if rel.Kind == "table" && rel.Rows > 0 && rel.Root != nil && rel.Root.Kind == "partitioned" {
			rel.Root.Rows += rel.Rows
		}
	}
	if minimal {
		// With wal_level=minimal the rows of a table that is new in this transaction are not logged (manual, 20.5.1).
		for _, rel := range c.Relations {
			rel.Unlogged = true
		}
	}
	return c, nil
}

func (r *catalogRow) relation() (*rewrite.Relation, error) {
	kinds := map[string]string{"r": "table", "p": "partitioned", "v": "view", "m": "matview", "f": "foreign", "S": "sequence"}
	rel := &rewrite.Relation{
		RelationName: rewrite.RelationName{Schema: r.Schema, Name: r.Name}, Kind: kinds[r.Kind], OID: r.OID,
		HasTriggers: r.Triggers, HasRules: r.Rules, ColumnGrants: r.Grants, Readable: r.Readable,
		Inherits: r.Inherits, Unlogged: r.Persistence != "p", RowSecurity: r.Security, Cascades: r.Cascades, Rows: r.Rows,
	}
	names := map[int]string{}
	for _, col := range r.Columns {
		var num int
		var at rewrite.Attribute
		if err := unpack(col, &num, &at.Name, &at.Type, &at.Generated, &at.Auto); err != nil {
			return nil, err
		}
		at.Hidden = hiddenColumns[at.Name] == at.Type && at.Type != ""
		names[num] = at.Name
		rel.Columns = append(rel.Columns, at)
	}
	rel.Instrumented = instrumented(rel)
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
		if !primary {
			rel.Indexes = append(rel.Indexes, cols)
		}
	}
	return rel, nil
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

// KeepHorizon gives a catalog that was read again the horizon of the first one that this process read of the same
// database: what was written in between is not initial. first is nil for the first one. The catalog must not be in use
// yet.
func KeepHorizon(again, first *rewrite.Catalog) {
	if first != nil && first.Database == again.Database {
		again.Horizon = first.Horizon
	}
}
