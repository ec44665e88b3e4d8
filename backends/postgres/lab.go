package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// lockClass is the first key of the owners' advisory locks ("wclb" in ASCII); the second is the run id.
const lockClass = 0x77636c62

// visible are the schemas that a case can have things in. The condition is on an alias n of pg_namespace.
const visible = `n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'`

// Lab says how lab databases are made, filled and removed.
func Lab() engine.Lab {
	return engine.Lab{
		Maintenance: "postgres",
		Lock: func(run uint32) string {
			return fmt.Sprintf("SELECT pg_catalog.pg_try_advisory_lock(%d, %d)", lockClass, int32(run))
		},
		// Advisory locks belong to one database each; pg_locks shows those of all.
		Alive: func(run uint32) string {
			return fmt.Sprintf("SELECT EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND granted AND classid = %d AND objid = %d AND objsubid = 2)",
				lockClass, run)
		},
		List:   `SELECT datname FROM pg_catalog.pg_database WHERE pg_catalog.starts_with(datname, '` + engine.LabPrefix + `') ORDER BY datname`,
		Create: func(name string) string { return "CREATE DATABASE " + identifier(name) + " TEMPLATE template0" },
		Copying: &engine.Copying{
			Create: func(name, of string) string {
				return "CREATE DATABASE " + identifier(name) + " TEMPLATE " + identifier(of)
			},
			Settings: func(name, of string) string { return fmt.Sprintf(copySettings, name, quote(of)) },
			Refused: map[string]string{
				"55006": "others are connected to it, and PostgreSQL copies a database only while nobody is (pg_stat_activity lists them)",
				"42501": "the user must own it, or be a superuser, and be allowed to create databases",
				"3D000": "the server has no database of that name",
			},
		},
		Guests: func(name string) string {
			return "SELECT concat_ws(' ', usename, application_name, client_addr) FROM pg_catalog.pg_stat_activity WHERE datname = " + quote(name) +
				" AND backend_type = 'client backend' AND pid <> pg_catalog.pg_backend_pid()"
		},
		Schema:  schema,
		Archive: archive,
		Drop:    func(name string) string { return "DROP DATABASE IF EXISTS " + identifier(name) + " WITH (FORCE)" },
		Clear:   func(string) string { return clearing },
		// The plan of the fingerprint's query is kept, since making it takes longer than executing it.
		Prepare: "SET client_min_messages = error; SET search_path = public; SET extra_float_digits = 1; SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; " +
			"SET IntervalStyle = 'postgres'; SET bytea_output = 'hex'; SET lc_monetary = 'C'; " +
			// Triggers and foreign keys are off in replicas; only a superuser may be one.
			"SELECT pg_catalog.set_config('session_replication_role', 'replica', false) FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper; " +
			"DEALLOCATE ALL; PREPARE wirecheck_fingerprint AS " + fingerprint,
		Columns:    listColumns,
		Expression: func(column, _ string) string { return column + "::text" },
		Literal:    literal,
		Identifier: identifier,
		Insert:     " OVERRIDING SYSTEM VALUE",
		Truncate:   func(tables []string) string { return "TRUNCATE " + strings.Join(tables, ", ") + ";" },
		Blocks: `SELECT EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid >= 16384)
			AND NOT (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)`,
		Counters: counters,
		Numbered: `SELECT c.relname, a.attname FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
			LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
			WHERE c.oid >= 16384 AND a.attnum > 0 AND (a.attidentity <> '' OR pg_catalog.pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%')`,
		Keys: `SELECT n.nspname, c.relname, i.indexrelid, a.attname FROM pg_catalog.pg_index i JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
			JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
			JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1])
			WHERE c.oid >= 16384 AND i.indisunique AND i.indisvalid AND i.indpred IS NULL AND i.indexprs IS NULL AND NOT (c.relkind = 'r' AND c.relhassubclass) ORDER BY 1, 2, 3, 4`,
		Fingerprint: func(ctx context.Context, c engine.Conn) (string, error) {
			rows, err := engine.Query(ctx, c, "EXECUTE wirecheck_fingerprint")
			if err != nil {
				return "", err
			}
			return string(rows[0][0]), nil
		},
	}
}

// clearing drops all schemas and makes public anew, with the rights that a new database gives it (manual, 5.9.6).
const clearing = `DO $$DECLARE name text; BEGIN
  FOR name IN SELECT n.nspname FROM pg_catalog.pg_namespace n WHERE ` + visible + ` LOOP
    EXECUTE format('DROP SCHEMA %I CASCADE', name);
  END LOOP;
  CREATE SCHEMA public;
  GRANT USAGE ON SCHEMA public TO PUBLIC;
  IF current_setting('server_version_num')::int < 150000 THEN GRANT CREATE ON SCHEMA public TO PUBLIC; END IF;
END$$`

// listColumns lists tables with their columns. Partitions are read through the table that they belong to; a table that others
// inherit from is read without them.
const listColumns = `
SELECT CASE n.nspname WHEN 'public' THEN c.relname ELSE n.nspname || '.' || c.relname END,
  format('%I.%I', n.nspname, c.relname), CASE c.relkind WHEN 'p' THEN '' ELSE 'ONLY ' END || format('%I.%I', n.nspname, c.relname),
  a.attname, t.typname, a.attgenerated <> ''
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relpersistence <> 't' AND ` + visible + `
  AND a.attname IS NOT NULL
ORDER BY n.nspname, c.relname, a.attnum`

// fingerprint notices every change of what users define: each writes a new version of a row of the catalog.
const fingerprint = `
SELECT pg_catalog.md5(pg_catalog.string_agg(x, ' ' ORDER BY x)) FROM (
  SELECT 'c' || oid || '.' || xmin AS x FROM pg_catalog.pg_class WHERE oid >= 16384
  UNION ALL SELECT 'a' || attrelid || '.' || attnum || '.' || xmin FROM pg_catalog.pg_attribute WHERE attrelid >= 16384
  UNION ALL SELECT 'd' || oid || '.' || xmin FROM pg_catalog.pg_attrdef WHERE oid >= 16384
  UNION ALL SELECT 'i' || indexrelid || '.' || xmin FROM pg_catalog.pg_index WHERE indexrelid >= 16384
  UNION ALL SELECT 'k' || oid || '.' || xmin FROM pg_catalog.pg_constraint WHERE oid >= 16384
  UNION ALL SELECT 'g' || oid || '.' || xmin FROM pg_catalog.pg_trigger WHERE oid >= 16384
  UNION ALL SELECT 'f' || oid || '.' || xmin FROM pg_catalog.pg_proc WHERE oid >= 16384
  UNION ALL SELECT 't' || oid || '.' || xmin FROM pg_catalog.pg_type WHERE oid >= 16384
  UNION ALL SELECT 'r' || oid || '.' || xmin FROM pg_catalog.pg_rewrite WHERE oid >= 16384
  UNION ALL SELECT 'p' || oid || '.' || xmin FROM pg_catalog.pg_policy WHERE oid >= 16384
  UNION ALL SELECT 'n' || oid || '.' || xmin FROM pg_catalog.pg_namespace WHERE oid >= 16384
  UNION ALL SELECT 's' || seqrelid || '.' || xmin FROM pg_catalog.pg_sequence WHERE seqrelid >= 16384
) AS parts`

// counters gives the statements that set all sequences to where they are.
func counters(ctx context.Context, c engine.Conn) ([]string, error) {
	names, err := engine.Query(ctx, c, `SELECT format('%I.%I', n.nspname, c.relname) FROM pg_catalog.pg_class c
		JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'S' AND `+visible+` ORDER BY 1`)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	var sql strings.Builder
	for _, row := range names {
		fmt.Fprintf(&sql, "SELECT last_value, is_called FROM %s;", row[0])
	}
	a, err := engine.Ask(ctx, c, sql.String())
	if err != nil {
		return nil, err
	}
	var set []string
	for i, r := range a.Results {
		set = append(set, fmt.Sprintf("SELECT pg_catalog.setval(%s, %s, '%s')", quote(string(names[i][0])), r.Rows[0][0], r.Rows[0][1]))
	}
	return set, nil
}

func identifier(name string) string { return pgx.Identifier{name}.Sanitize() }

// literal writes a value; its column gives it its type.
func literal(to []byte, v answer.Value, _ string) []byte {
	to = append(to, " E'"...)
	for _, b := range v {
		if b == '\'' || b == '\\' {
			to = append(to, b)
		}
		to = append(to, b)
	}
	return append(to, '\'')
}
