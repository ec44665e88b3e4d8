package postgres_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// definitions change things of schema. Each is executed, and the catalog read before and behind it.
const definitions = `
CREATE TABLE n1 (id serial PRIMARY KEY, a int REFERENCES account ON DELETE CASCADE)
CREATE TABLE n2 (LIKE account INCLUDING ALL)
CREATE TABLE n3 (z int) INHERITS (parent)
ALTER TABLE n1 ADD COLUMN b text
ALTER TABLE n1 DROP COLUMN a
ALTER TABLE n1 ADD COLUMN a int REFERENCES account ON UPDATE CASCADE
DROP TABLE n1
CREATE TABLE n4 (id int PRIMARY KEY, o int, FOREIGN KEY (o) REFERENCES orders ON DELETE SET NULL)
ALTER TABLE n4 DROP CONSTRAINT n4_o_fkey
ALTER TABLE n4 ADD CONSTRAINT f FOREIGN KEY (o) REFERENCES orders ON DELETE CASCADE
ALTER TABLE n4 RENAME CONSTRAINT f TO g
ALTER TABLE logged DISABLE TRIGGER ALL
ALTER TABLE n4 RENAME TO n5
ALTER TABLE orders RENAME COLUMN note TO remark
ALTER TABLE pair ALTER COLUMN v TYPE bigint USING v::bigint
ALTER TABLE parent ADD COLUMN x int
ALTER TABLE parent RENAME COLUMN x TO y
ALTER TABLE parent DROP COLUMN y
ALTER TABLE child NO INHERIT parent
ALTER TABLE child INHERIT parent
DROP TABLE n5
CREATE INDEX ON account (owner)
CREATE UNIQUE INDEX u ON orders (amount)
ALTER INDEX u RENAME TO v
DROP INDEX v
CREATE VIEW nv AS SELECT id FROM account
CREATE OR REPLACE VIEW nv AS SELECT id, current_query() AS q FROM account
ALTER VIEW nv ALTER COLUMN id SET DEFAULT 1
ALTER VIEW nv RENAME TO nw
DROP VIEW nw
CREATE MATERIALIZED VIEW nm AS SELECT id FROM account
DROP MATERIALIZED VIEW nm
CREATE TABLE ta AS SELECT 1 AS a
SELECT 1 AS b INTO tb
CREATE SEQUENCE sq
ALTER SEQUENCE sq INCREMENT 2
DROP SEQUENCE sq
CREATE FUNCTION f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1'
CREATE OR REPLACE FUNCTION f(int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 2'
ALTER FUNCTION f(int) STABLE
CREATE FUNCTION asks() RETURNS text LANGUAGE sql AS 'SELECT Current_Query()'
DROP FUNCTION asks()
CREATE FUNCTION asks() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN (SELECT query FROM pg_stat_activity LIMIT 1); END $$
DROP FUNCTION asks()
CREATE FUNCTION asks() RETURNS text LANGUAGE sql RETURN current_query()
DROP FUNCTION asks()
CREATE FUNCTION asks() RETURNS text LANGUAGE internal AS 'current_query'
DROP FUNCTION asks()
CREATE FUNCTION sets() RETURNS SETOF int LANGUAGE sql AS 'SELECT 1'
CREATE FUNCTION s2.lower(text) RETURNS text LANGUAGE sql VOLATILE AS 'SELECT $1'
DROP FUNCTION s2.lower(text)
DROP FUNCTION f(int), sets()
CREATE PROCEDURE p() LANGUAGE sql AS 'SELECT 1'
DROP PROCEDURE p
DROP ROUTINE touch()
CREATE AGGREGATE s (int) (SFUNC = int4pl, STYPE = int)
DROP AGGREGATE s (int)
CREATE TRIGGER t BEFORE UPDATE ON account FOR EACH ROW EXECUTE FUNCTION note()
ALTER TABLE account DISABLE TRIGGER t
DROP TRIGGER t ON account
CREATE RULE r AS ON DELETE TO orders DO ALSO INSERT INTO log (what) VALUES (current_query())
DROP RULE r ON orders
ALTER TABLE orders ENABLE ROW LEVEL SECURITY
CREATE POLICY q ON orders USING (true)
ALTER POLICY q ON orders USING (false)
DROP POLICY q ON orders
CREATE TABLE d (id int PRIMARY KEY, t text DEFAULT current_query())
CREATE TYPE c AS (a int)
CREATE TYPE e AS ENUM ('a')
ALTER TYPE e ADD VALUE 'b'
ALTER TYPE e RENAME VALUE 'b' TO 'c'
CREATE TYPE r AS RANGE (subtype = int)
CREATE TYPE shell
DROP TYPE shell
CREATE DOMAIN dom AS int
ALTER DOMAIN dom SET DEFAULT 1
DROP DOMAIN dom
DROP TYPE c, e
CREATE COLLATION co (provider = icu, locale = 'de')
DROP COLLATION co
CREATE STATISTICS st ON id, owner FROM account
ALTER STATISTICS st SET STATISTICS 3
DROP STATISTICS st
CREATE PUBLICATION pu FOR TABLE account
ALTER PUBLICATION pu ADD TABLE orders
DROP PUBLICATION pu
CREATE FOREIGN DATA WRAPPER fdw
CREATE SERVER fs FOREIGN DATA WRAPPER fdw
CREATE USER MAPPING FOR CURRENT_USER SERVER fs
CREATE FOREIGN TABLE ft (a int) SERVER fs
ALTER FOREIGN TABLE ft ADD COLUMN b int
DROP FOREIGN TABLE ft
DROP USER MAPPING FOR CURRENT_USER SERVER fs
DROP SERVER fs
DROP FOREIGN DATA WRAPPER fdw
CREATE ROLE wc_confined
GRANT SELECT ON account TO wc_confined
REVOKE SELECT ON account FROM wc_confined
ALTER ROLE wc_confined SET work_mem = '1MB'
DROP ROLE wc_confined
CREATE OPERATOR FAMILY of USING btree
DROP OPERATOR FAMILY of USING btree
CREATE OPERATOR CLASS oc FOR TYPE int USING btree AS OPERATOR 1 <, OPERATOR 2 <=, OPERATOR 3 =, OPERATOR 4 >=, OPERATOR 5 >, FUNCTION 1 btint4cmp(int, int)
DROP OPERATOR CLASS oc USING btree
CREATE OPERATOR = (LEFTARG = int, RIGHTARG = text, FUNCTION = texteqint)
CREATE SUBSCRIPTION su CONNECTION 'host=nowhere' PUBLICATION pu WITH (connect = false)
ALTER SUBSCRIPTION su SET (slot_name = NONE)
DROP SUBSCRIPTION su
CREATE TEXT SEARCH DICTIONARY ts (TEMPLATE = simple)
ALTER TEXT SEARCH DICTIONARY ts (StopWords = english)
CREATE TEXT SEARCH CONFIGURATION tc (COPY = simple)
DROP TEXT SEARCH CONFIGURATION tc
CREATE CONVERSION cv FOR 'LATIN1' TO 'UTF8' FROM iso8859_1_to_utf8
DROP CONVERSION cv
ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC
ALTER DATABASE current SET work_mem = '1MB'
DROP TABLE child_fk
DROP TABLE codes_fk, code_fk
DROP TABLE big CASCADE
CREATE SCHEMA s3
`

// found is what the server says, without what ANALYZE counts and without sequences, which come and go with columns.
func found(t *testing.T, conn *pgconn.PgConn) (known map[rewrite.Name]*rewrite.Known, server rewrite.Server, asks string) {
	t.Helper()
	read, err := postgres.ReadCatalog(rows(t, conn, postgres.CatalogQuery()), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range read.Known {
		k.Relations = slices.DeleteFunc(k.Relations, func(r *rewrite.Relation) bool {
			r.Rows = 0
			if r.Shown != nil {
				slices.SortFunc(r.Shown.Tables, func(a, b rewrite.ShownTable) int { return strings.Compare(a.Name, b.Name) })
			}
			return r.Kind == "sequence"
		})
		if len(k.Relations) == 0 && !name.Function {
			delete(read.Known, name)
		}
	}
	return read.Known, read.Server, rows(t, conn, postgres.AsksQuery)[0][0]
}

// TestConfined has each definition change no more of the catalog than its plan says.
func TestConfined(t *testing.T) {
	_, _, db := setUp(t)
	conn := db.As(db.Server.User).Postgres(t).PgConn()
	exec(t, conn, "CREATE FUNCTION texteqint(int, text) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT $1::text = $2'")
	before, server, asks := found(t, conn)
	confined, all := 0, 0
	for sql := range strings.Lines(strings.TrimSpace(definitions)) {
		sql = strings.ReplaceAll(strings.TrimSpace(sql), "DATABASE current", "DATABASE "+db.Name)
		s := postgres.New(rewrite.CaptureAuto).Script(sql, catalog(t, conn), postgres.Session{SearchPath: []string{"pg_catalog", "public"}})
		p := s.Plans[0]
		exec(t, conn, sql)
		after, nowServer, nowAsks := found(t, conn)
		all++
		if !p.Schema || p.Changes != nil {
			confined++
			if nowServer != server || nowAsks > asks {
				t.Errorf("%s: the server is %+v (asks: %s), and was %+v (asks: %s)", sql, nowServer, nowAsks, server, asks)
			}
			var changes rewrite.Changes
			c := rewrite.NewCatalog(server, &changes)
			c.Learn(before, changes.Now(), true)
			if p.Schema {
				changes.Add(p.Changes...)
			}
			for name := range maps.Keys(merged(before, after)) {
				lost(before[name], after[name])
				if diff := cmp.Diff(before[name], after[name]); diff != "" && len(c.Stale([]rewrite.Use{{Name: name}})) == 0 {
					t.Errorf("%s: changes %v, but %v (-before +after):\n%s", sql, p.Changes, name, diff)
				}
			}
		}
		before, server, asks = after, nowServer, nowAsks
	}
	if confined < all*8/10 || confined == all {
		t.Errorf("%d of %d definitions are confined", confined, all)
	}
}

// lost takes out of what was known which foreign keys another table has no more: to take them for granted makes a plan lock more, and no answer wrong.
func lost(before, after *rewrite.Known) {
	if before == nil || after == nil || len(before.Relations) != len(after.Relations) {
		return
	}
	for i, b := range before.Relations {
		a := after.Relations[i]
		b.CascadesDelete = b.CascadesDelete && a.CascadesDelete
		b.Referrers = slices.DeleteFunc(b.Referrers, func(r rewrite.Referrer) bool { return a.Referrers == nil })
		if len(b.Referrers) == 0 {
			b.Referrers = nil
		}
		if a.CascadesUpdate == nil {
			b.CascadesUpdate = nil
		}
	}
}

func merged(a, b map[rewrite.Name]*rewrite.Known) map[rewrite.Name]*rewrite.Known {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
