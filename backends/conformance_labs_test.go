package backends_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wirecheck/backends/engine"
)

// owner is a connection like that of labs' owners.
func (w *world) owner(t *testing.T) engine.Conn {
	t.Helper()
	target := w.server.Target()
	target.Database = w.engine.Lab.Maintenance
	c, err := w.engine.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// databases lists what looks like labs.
func (w *world) databases(t *testing.T, c engine.Conn) []string {
	t.Helper()
	rows, err := engine.Query(t.Context(), c, w.engine.Lab.List)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range rows {
		names = append(names, string(row[0]))
	}
	return names
}

// testLabs: a lab is made and dropped, and nothing else is.
func testLabs(t *testing.T, w *world) {
	c := w.owner(t)
	before := w.databases(t, c)
	target, err := w.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := w.databases(t, c); !slices.Contains(got, target.Database) || len(got) != len(before)+1 {
		t.Errorf("databases %v, then %v", before, got)
	}
	busy, err := w.engine.Connect(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := engine.Exec(t.Context(), busy, "CREATE TABLE t (a int); BEGIN; INSERT INTO t VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	if err := w.labs.Drop(t.Context(), target); err != nil { // although somebody is in the middle of a transaction
		t.Error(err)
	}
	_ = busy.Close()
	if got := w.databases(t, c); !slices.Equal(got, before) {
		t.Errorf("databases %v, in the end %v", before, got)
	}
	for _, name := range []string{target.Database, "mysql", "postgres", engine.LabPrefix + "00000000_1"} {
		if err := w.labs.Drop(t.Context(), engine.Target{Database: name}); err == nil {
			t.Errorf("it dropped %s, which it had not made", name)
		}
	}
}

// testAbandoned: labs of dead owners go, those of living ones and databases that only look like labs stay.
func testAbandoned(t *testing.T, w *world) {
	c := w.owner(t)
	alike := engine.LabPrefix + "of_mine"
	if err := engine.Exec(t.Context(), c, "CREATE DATABASE "+alike); err != nil {
		t.Fatal(err)
	}
	mine, err := w.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := engine.OpenLabs(t.Context(), w.engine, w.server.Target())
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	open := func() []string {
		third, err := engine.OpenLabs(t.Context(), w.engine, w.server.Target())
		if err != nil {
			t.Fatal(err)
		}
		if err := third.Close(t.Context()); err != nil {
			t.Error(err)
		}
		return third.Swept
	}
	if swept := open(); len(swept) != 0 {
		t.Errorf("while all owners live, it swept %v", swept)
	}
	brief, err := engine.OpenLabs(t.Context(), w.engine, w.server.Target())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := brief.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	late := w.engine // it lists the databases before an owner drops its own and ends
	late.Lab.Alive = func(run uint32) string {
		if brief != nil {
			if err := brief.Close(t.Context()); err != nil {
				t.Error(err)
			}
			brief = nil
		}
		return w.engine.Lab.Alive(run)
	}
	if l, err := engine.OpenLabs(t.Context(), late, w.server.Target()); err != nil || len(l.Swept) > 0 || l.Close(t.Context()) != nil || brief != nil {
		t.Errorf("while an owner ended, it swept %v, %v", l.Swept, err)
	}
	watcher, err := w.engine.Watch(t.Context(), w.server.Target())
	if w.postgres() {
		watcher, err = w.engine.Watch(t.Context(), theirs)
	}
	if err != nil {
		t.Fatal(err)
	}
	// What kill -9 does to the owner's connection, from the server's point of view.
	if err := watcher.Kill(t.Context(), other.Owner()); err != nil {
		t.Fatal(err)
	}
	if err := watcher.Close(); err != nil {
		t.Error(err)
	}
	var swept []string
	for began := time.Now(); time.Since(began) < limit; { // until the server has noticed
		if swept = open(); len(swept) > 0 {
			break
		}
	}
	if !slices.Equal(swept, []string{theirs.Database}) {
		t.Errorf("swept %v, want %s", swept, theirs.Database)
	}
	if got := w.databases(t, c); !slices.Contains(got, mine.Database) || !slices.Contains(got, alike) || slices.Contains(got, theirs.Database) {
		t.Errorf("databases afterwards: %v", got)
	}
	if err := engine.Exec(t.Context(), c, "DROP DATABASE "+alike); err != nil {
		t.Error(err)
	}
	if err := w.labs.Drop(t.Context(), mine); err != nil {
		t.Error(err)
	}
}

// contents is a schema with what is hard to put back.
func contents(w *world) string {
	return choose(w,
		`CREATE SCHEMA s; CREATE TABLE s.parent (id int PRIMARY KEY); INSERT INTO s.parent VALUES (1), (2);
		CREATE TYPE mood AS ENUM ('sad', 'ok');
		CREATE TABLE child (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, p int REFERENCES s.parent, f float4, n numeric, x text, b bytea, m mood, a int[],
			g int GENERATED ALWAYS AS (p * 2) STORED, at timestamptz, "odd ""name" json);
		INSERT INTO child (p, f, n, x, b, m, a, at, "odd ""name") VALUES (1, 0.1, 1.50, 'it''s \ here', '\xdead', 'ok', '{1,NULL}', '2024-03-31 01:30:00+00', '{"k":  1}'),
			(NULL, 'NaN', NULL, '', NULL, NULL, NULL, '-infinity', NULL), (2, '-0', 7, E'\u20ac\n', '', 'sad', '{}', NULL, 'null');
		CREATE TABLE empty_table (a int); CREATE TABLE none (); CREATE SEQUENCE q START 5; SELECT nextval('q'); SELECT setval('child_id_seq', 40, false);
		CREATE TABLE part (a int) PARTITION BY LIST (a); CREATE TABLE part1 PARTITION OF part FOR VALUES IN (1); INSERT INTO part VALUES (1);
		CREATE FUNCTION boom() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'fired'; END$$;
		CREATE TRIGGER boom BEFORE INSERT OR DELETE ON child FOR EACH ROW EXECUTE FUNCTION boom()`,
		"CREATE TABLE parent (id int PRIMARY KEY); INSERT INTO parent VALUES (1), (2);"+
			"CREATE TABLE child (id int AUTO_INCREMENT PRIMARY KEY, p int, f float, d double, n decimal(20,5), x text, b varbinary(20), e enum('sad','ok'), bits bit(9),"+
			" g int GENERATED ALWAYS AS (p * 2) VIRTUAL, at timestamp(3) NULL, y datetime, `odd ``name` json, FOREIGN KEY (p) REFERENCES parent (id));"+
			"INSERT INTO child (p, f, d, n, x, b, e, bits, at, y, `odd ``name`) VALUES (1, 0.1, 0.1, 1.5, 'it''s \\\\ here', x'00ff27', 'ok', b'101000001', '2024-03-31 01:30:00.123', '2024-02-29 00:00:00', '{\"k\": 1}'),"+
			" (NULL, 16777217, 1e300, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL), (2, -0e0, -0e0, -7, '\u20ac\U0001F600\\n', '', 'sad', b'0', NULL, '1000-01-01 00:00:00', 'null');"+
			"CREATE TABLE empty_table (a int)",
		`CREATE TABLE parent (id int PRIMARY KEY) WITHOUT ROWID; INSERT INTO parent VALUES (1), (2);
		CREATE TABLE child (id INTEGER PRIMARY KEY AUTOINCREMENT, p int REFERENCES parent (id), x, y ANY, r REAL, n NUMERIC, g int GENERATED ALWAYS AS (p * 2) VIRTUAL,
			h int AS (p + 1) STORED, "odd ""name" text);
		INSERT INTO child (p, x, y, r, n, "odd ""name") VALUES (1, '1', 1, 0.1, '1e3', 'it''s \ here'), (NULL, X'00ff27', 'X''00''', -9e999, 2.5, ''), (2, CAST(X'610062' AS TEXT), NULL, 3, '7', '\u20ac');
		CREATE INDEX cover ON child (x, y); CREATE TABLE keyless (a, b); INSERT INTO keyless VALUES (2, 1), (1, 2), ('1', 2.0); CREATE INDEX k ON keyless (a, b);
		CREATE TABLE strict_table (a ANY, b TEXT) STRICT; INSERT INTO strict_table VALUES ('1', '1'), (1, 'a'), (X'31', NULL); CREATE TABLE empty_table (a int)`)
}

// testReset: after whatever happened to rows and counters, the lab is what it was.
func testReset(t *testing.T, w *world) {
	r := w.room(t)
	s, lab := r.session(), w.engine.Lab
	s.do(contents(w))
	c := r.session().conn
	if err := lab.PrepareConn(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	kept, err := lab.Remember(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if !kept.Resettable || len(kept.Tables) < 4 {
		t.Fatalf("resettable %v, tables %+v", kept.Resettable, kept.Tables)
	}
	counter := choose(w, "SELECT last_value, is_called FROM q UNION ALL SELECT last_value, is_called FROM child_id_seq", "SELECT AUTO_INCREMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'child'",
		"SELECT name, seq FROM sqlite_sequence")
	counters := func() string {
		rows, err := engine.Query(t.Context(), c, counter)
		if err != nil {
			t.Fatal(err)
		}
		return printRows(rows)
	}
	zeros := func() string { // as the server shows them: MySQL and PostgreSQL have -0, MariaDB and TiDB have not
		rows, err := engine.Query(t.Context(), c, choose(w, "SELECT f::text FROM child ORDER BY id", "SELECT CONCAT(f), CONCAT(d) FROM child ORDER BY id", "SELECT r FROM child ORDER BY id"))
		if err != nil {
			t.Fatal(err)
		}
		return printRows(rows)
	}
	before, minus := counters(), zeros()
	for _, thorough := range []bool{false, true, false} {
		s.do(choose(w, "SET session_replication_role = replica; DELETE FROM child WHERE id = 1; UPDATE child SET x = 'changed'; INSERT INTO child (p) VALUES (1); INSERT INTO empty_table VALUES (1); SELECT nextval('q'); DELETE FROM part",
			"DELETE FROM child WHERE id = 1; UPDATE child SET x = 'changed'; INSERT INTO child (p) VALUES (1); INSERT INTO child (id, p) VALUES (150, 1); INSERT INTO empty_table VALUES (1)"))
		if changed, err := kept.Changed(t.Context(), c); err != nil || changed {
			t.Errorf("writing changed definitions: %v, %v", changed, err)
		}
		if err := kept.Reset(t.Context(), c, thorough); err != nil {
			t.Fatal(err)
		}
		now, err := lab.ReadTables(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(kept.Tables, now, cmpopts.IgnoreUnexported(engine.Table{})); diff != "" {
			t.Errorf("thorough %v: the tables differ:\n%s", thorough, diff)
		}
		if after := zeros(); after != minus {
			t.Errorf("thorough %v: numbers %s, were %s", thorough, after, minus)
		}
		if after := counters(); after != before && !w.is("tidb") { // TiDB hands out AUTO_INCREMENT in portions
			t.Errorf("thorough %v: counters %s, were %s", thorough, after, before)
		}
		if changed, err := kept.Changed(t.Context(), c); err != nil || changed {
			t.Errorf("thorough %v: definitions changed: %v, %v", thorough, changed, err)
		}
	}
	for _, ddl := range []string{"ALTER TABLE empty_table ADD b int", "CREATE INDEX i ON empty_table (a)", "CREATE VIEW w AS SELECT 1 AS one", "CREATE TABLE more (a int)"} {
		if kept, err = lab.Remember(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		s.do(ddl)
		if changed, err := kept.Changed(t.Context(), c); err != nil || !changed {
			t.Errorf("%s was not noticed: %v", ddl, err)
		}
	}
	if err := engine.Exec(t.Context(), c, lab.Clear(r.target.Database)); err != nil {
		t.Fatal(err)
	}
	if left, err := lab.ReadTables(t.Context(), c); err != nil || len(left) != 0 {
		t.Errorf("after clearing: %v, %v", left, err)
	}
	if got := r.session().rows("SELECT 1"); !strings.HasPrefix(got, "1") {
		t.Errorf("after clearing: %s", got)
	}
}
