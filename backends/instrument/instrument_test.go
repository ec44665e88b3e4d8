package instrument_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/instrument"
	"wirecheck/backends/postgres"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
)

func TestMain(m *testing.M) { testserver.Main(m) }

// mariadbTables are all the kinds of tables that must come through unharmed; each is followed by its rows.
var mariadbTables = []string{
	"CREATE TABLE plain (id int AUTO_INCREMENT PRIMARY KEY, v int DEFAULT 7 COMMENT 'it''s', KEY v (v)) COMMENT='a \"table\"'",
	"INSERT INTO plain (v) VALUES (1), (2), (NULL)",
	"INSERT INTO plain VALUES (1000, 5)", "DELETE FROM plain WHERE id = 1000", // the counter is ahead of the rows
	"CREATE TABLE nokey (a int, b text)",
	"INSERT INTO nokey VALUES (1, 'x'), (1, 'x'), (NULL, NULL)", // rows that nothing tells apart
	"CREATE TABLE parent (a int, b int, PRIMARY KEY (b, a), UNIQUE KEY u (a))",
	"INSERT INTO parent VALUES (1, 2), (3, 4)",
	"CREATE TABLE child (id bigint unsigned PRIMARY KEY, a int, b int, g int AS (a + b) VIRTUAL, s int AS (id % 10) STORED, t varchar(9) NOT NULL," +
		" CHECK (id > 0), CONSTRAINT named CHECK (id <> 100), FOREIGN KEY (b, a) REFERENCES parent (b, a) ON DELETE CASCADE ON UPDATE SET NULL, FULLTEXT KEY (t), KEY (g))",
	"INSERT INTO child (id, a, b, t) VALUES (1, 1, 2, 'word'), (18446744073709551615, 3, 4, '')",
	"CREATE TABLE parts (a int NOT NULL, b int) PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (10) COMMENT = 'low', PARTITION p1 VALUES LESS THAN MAXVALUE)",
	"INSERT INTO parts VALUES (1, 1), (11, 2)",
	"CREATE TABLE times (id int PRIMARY KEY, at timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp(), d datetime(6) DEFAULT current_timestamp(6) ON UPDATE current_timestamp(6))",
	"INSERT INTO times VALUES (1, '2001-02-03 04:05:06', '2001-02-03 04:05:06.789')",
	"SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
	"CREATE TABLE zeros (id int AUTO_INCREMENT PRIMARY KEY, d date, t timestamp NULL)", // values that the strict mode refuses
	"INSERT INTO zeros VALUES (0, '0000-00-00', 0), (5, '2000-00-31', NULL)",
	"SET sql_mode = DEFAULT",
	"SET innodb_strict_mode = OFF",
	"CREATE TABLE packed (a int PRIMARY KEY, b blob) ROW_FORMAT=COMPRESSED KEY_BLOCK_SIZE=8",
	"INSERT INTO packed VALUES (1, repeat(x'00ff', 5000))",
	"CREATE TABLE redundant (a int PRIMARY KEY, b char(10)) ROW_FORMAT=REDUNDANT KEY_BLOCK_SIZE=4", // a pair that the strict mode refuses
	"INSERT INTO redundant VALUES (1, 'x')",
	"SET innodb_strict_mode = DEFAULT",
	"CREATE TABLE `odd ``name.` (`col``umn` int PRIMARY KEY, `sélect` enum('a','ü') CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT 'ü', hid int INVISIBLE DEFAULT 3)",
	"INSERT INTO `odd ``name.` VALUES (1, 'a')",
	"CREATE TABLE options (a int, j json, p point NOT NULL, SPATIAL KEY (p)) DEFAULT CHARSET=latin1 PAGE_COMPRESSED=1 STATS_PERSISTENT=1 AVG_ROW_LENGTH=100 MAX_ROWS=1000",
	"INSERT INTO options VALUES (1, '{\"a\": [1]}', POINT(1, 2))",
	"CREATE TABLE fired (a int PRIMARY KEY, n int)", "CREATE TABLE audit (what varchar(20))",
	"CREATE TRIGGER loud BEFORE UPDATE ON fired FOR EACH ROW INSERT INTO audit VALUES ('update')",
	"CREATE TRIGGER louder AFTER INSERT ON fired FOR EACH ROW INSERT INTO audit VALUES ('insert')",
	"INSERT INTO fired VALUES (1, 1)",
	"CREATE TABLE isam (a int) ENGINE=MyISAM", "CREATE TABLE versioned (a int) WITH SYSTEM VERSIONING", "CREATE SEQUENCE seq",
	"CREATE VIEW seen AS SELECT * FROM plain", "CREATE VIEW joined AS SELECT p.id, n.b FROM plain p JOIN nokey n ON n.a = p.v",
}

// mariadbState tells all that a person could see of the database: definitions and rows.
func mariadbState(t *testing.T, d testserver.Database) map[string]string {
	t.Helper()
	db := d.MariaDB(t)
	rows, err := db.QueryContext(t.Context(), "SELECT TABLE_NAME, TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = ? AND TABLE_TYPE <> 'SEQUENCE'", d.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	kinds := map[string]string{}
	for rows.Next() {
		var name, kind string
		if err := rows.Scan(&name, &kind); err != nil {
			t.Fatal(err)
		}
		kinds[name] = kind
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	state := map[string]string{}
	for name, kind := range kinds {
		q := "`" + strings.ReplaceAll(name, "`", "``") + "`"
		what := "TABLE"
		if kind == "VIEW" {
			what = "VIEW"
		}
		state[name+" definition"] = dump(t, d, "SHOW CREATE "+what+" "+q)
		rows := "SELECT * FROM " + q
		if testserver.IsTiDB() { // it reads partitions side by side
			rows += " ORDER BY 1"
		}
		state[name+" rows"] = dump(t, d, rows)
		if name == "odd `name." {
			state[name+" hidden"] = dump(t, d, "SELECT hid FROM "+q)
		}
	}
	state["triggers"] = dump(t, d, "SHOW TRIGGERS")
	return state
}

func dump(t *testing.T, d testserver.Database, query string) string {
	t.Helper()
	rows, err := d.MariaDB(t).QueryContext(t.Context(), query)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]any, len(columns))
	for i := range values {
		values[i] = new([]byte)
	}
	lines := []string{fmt.Sprint(columns)}
	for rows.Next() {
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		line := ""
		for _, v := range values {
			line += fmt.Sprintf("%q ", *v.(*[]byte))
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func open(t *testing.T, url string, o instrument.Options) *instrument.Database {
	t.Helper()
	db, err := instrument.Open(t.Context(), url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return db
}

// apply adds or removes on every table that is asked for, and gives "table: how" for those that changed.
func apply(t *testing.T, url string, o instrument.Options, do func(*instrument.Database, context.Context, instrument.Table) instrument.Result) []string {
	t.Helper()
	db := open(t, url, o)
	var changed []string
	for _, table := range db.Tables {
		r := do(db, t.Context(), table)
		if r.Error != "" {
			t.Errorf("%s: %s", table, r.Error)
		}
		if r.How != "" {
			changed = append(changed, table.Name)
		}
	}
	return changed
}

func TestMariaDBAddAndRemoveLeaveNoTrace(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, mariadbTables...)
	before := mariadbState(t, d)

	first := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add)
	want := []string{"audit", "child", "fired", "nokey", "odd `name.", "options", "packed", "parent", "parts", "plain", "redundant", "times", "zeros"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("tables changed (-want +got):\n%s", diff)
	}
	if again := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add); again != nil {
		t.Errorf("adding again changed %v, want nothing", again)
	}
	during := mariadbState(t, d)
	for name, was := range before {
		if strings.HasSuffix(name, " rows") && during[name] != was {
			t.Errorf("%s with hidden columns:\n%s\nwithout:\n%s", name, during[name], was)
		}
	}
	ids := dump(t, d, "SELECT count(*) = count(DISTINCT wc_row_id), min(wc_writers), max(wc_writers) FROM nokey")
	if !strings.HasSuffix(ids, "\n"+`"1" "0:" "0:" `) {
		t.Errorf("row ids and writers of a table of equal rows: got %s", ids)
	}

	if removed := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove); !slices.Equal(removed, first) {
		t.Errorf("removed from %v, want %v", removed, first)
	}
	if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
		t.Errorf("after adding and removing (-before +after):\n%s", diff)
	}
	if again := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove); again != nil {
		t.Errorf("removing again changed %v, want nothing", again)
	}
}

// TestMariaDBInterruptedRunIsUndone: whatever part of the tables an interrupted run has changed, remove takes it back.
func TestMariaDBInterruptedRunIsUndone(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, mariadbTables...)
	before := mariadbState(t, d)
	apply(t, d.URL(), instrument.Options{Tables: []string{"c*", "p*", "z*"}}, (*instrument.Database).Add)
	d.Exec(t, "ALTER TABLE nokey ADD COLUMN wc_row_id bigint unsigned NOT NULL INVISIBLE DEFAULT uuid_short()",
		"ALTER TABLE plain DROP COLUMN wc_row_id") // as a server without atomic changes might leave it
	apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove)
	if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestMariaDBStatus(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, mariadbTables...)
	d.Exec(t, "ALTER TABLE plain ADD COLUMN wc_writers varchar(160) NOT NULL INVISIBLE DEFAULT '0:'", // half of what is added
		"CREATE TABLE mine (wc_row_id int)")
	apply(t, d.URL(), instrument.Options{Tables: []string{"nokey"}}, (*instrument.Database).Add)
	type line struct {
		State  instrument.State
		Cannot string
		Limits []string
	}
	want := map[string]line{
		"plain":     {State: instrument.StatePartial},
		"nokey":     {State: instrument.StateAdded},
		"mine":      {State: instrument.StateForeign},
		"child":     {State: instrument.StateNone, Limits: []string{"what foreign key child_ibfk_1 changes by cascading is not seen"}},
		"fired":     {State: instrument.StateNone, Limits: []string{"what trigger louder reads and writes is not seen", "what trigger loud reads and writes is not seen"}},
		"isam":      {State: instrument.StateNone, Cannot: "engine MyISAM knows no transactions"},
		"versioned": {State: instrument.StateNone, Cannot: "system versioning keeps the history of columns, so they could not be removed without a trace"},
		"seen":      {State: instrument.StateNone, Cannot: "a view has no rows of its own"},
	}
	got := map[string]line{}
	for _, table := range open(t, d.URL(), instrument.Options{}).Tables {
		if _, ok := want[table.Name]; ok {
			got[table.Name] = line{table.State, table.Cannot, table.Limits}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	t.Run("a half-done table is completed", func(t *testing.T) {
		changed := apply(t, d.URL(), instrument.Options{Tables: []string{"plain"}}, (*instrument.Database).Add)
		if table := open(t, d.URL(), instrument.Options{Tables: []string{"plain"}}).Tables[0]; table.State != instrument.StateAdded || len(changed) != 1 {
			t.Errorf("got %v, changed %v", table.State, changed)
		}
	})
	t.Run("columns of the user's own are left alone", func(t *testing.T) {
		db := open(t, d.URL(), instrument.Options{Tables: []string{"mine"}})
		for _, r := range []instrument.Result{db.Add(t.Context(), db.Tables[0]), db.Remove(t.Context(), db.Tables[0])} {
			if !strings.Contains(r.Error, "not wirecheck's") {
				t.Errorf("got %+v, want a refusal", r)
			}
		}
	})
}

func TestMariaDBTableInUse(t *testing.T) {
	d := testserver.MariaDB(t).Database(t)
	d.Exec(t, "CREATE TABLE a (id int PRIMARY KEY)", "CREATE TABLE b (id int PRIMARY KEY)")
	tx, err := d.MariaDB(t).BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(t.Context(), "SELECT * FROM a"); err != nil {
		t.Fatal(err)
	}
	db := open(t, d.URL(), instrument.Options{LockWait: time.Second})
	if r := db.Add(t.Context(), db.Tables[0]); !strings.Contains(r.Error, "in use for longer than 1s") {
		t.Errorf("table in use: got %+v", r)
	}
	if r := db.Add(t.Context(), db.Tables[1]); r.Error != "" || r.How == "" {
		t.Errorf("the next table: got %+v", r)
	}

	t.Run("cancelled", func(t *testing.T) {
		db := open(t, d.URL(), instrument.Options{LockWait: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		observer := d.MariaDB(t)
		go func() { // cancels when the server says that the statement waits
			for waits := 0; waits == 0 && t.Context().Err() == nil; {
				err := observer.QueryRow("SELECT count(*) FROM information_schema.PROCESSLIST WHERE STATE LIKE 'Waiting for table metadata lock' AND INFO LIKE 'ALTER%'").Scan(&waits)
				if err != nil {
					break
				}
			}
			cancel()
		}()
		if r := db.Add(ctx, db.Tables[0]); r.Error != context.Canceled.Error() {
			t.Errorf("got %+v, want %q", r, context.Canceled)
		}
		// The connection is as before: the same table can be changed once it is free.
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
		if r := db.Add(t.Context(), db.Tables[0]); r.Error != "" || r.How == "" {
			t.Errorf("after the cancellation: got %+v", r)
		}
	})
}

var postgresTables = []string{
	"CREATE TABLE plain (id serial PRIMARY KEY, v int DEFAULT 7)", "COMMENT ON COLUMN plain.v IS 'it''s'",
	"INSERT INTO plain (v) VALUES (1), (2), (NULL)",
	"CREATE TABLE nokey (a int, b text)", "INSERT INTO nokey VALUES (1, 'x'), (1, 'x')",
	"CREATE TABLE gone (a int, b int, c int)", "ALTER TABLE gone DROP COLUMN b", "INSERT INTO gone VALUES (1, 2)",
	"CREATE TABLE parent (a int, b int, PRIMARY KEY (b, a))", "INSERT INTO parent VALUES (1, 2)",
	"CREATE TABLE child (id bigint GENERATED ALWAYS AS IDENTITY, a int CHECK (a > 0), b int, g int GENERATED ALWAYS AS (a + b) STORED, FOREIGN KEY (b, a) REFERENCES parent ON DELETE CASCADE)",
	"INSERT INTO child (a, b) VALUES (1, 2)",
	"CREATE TABLE parts (a int NOT NULL, b int) PARTITION BY RANGE (a)",
	"CREATE TABLE parts_low PARTITION OF parts FOR VALUES FROM (0) TO (10)", "CREATE TABLE parts_rest PARTITION OF parts DEFAULT",
	"INSERT INTO parts VALUES (1, 1), (11, 2)",
	"CREATE TABLE old (a int)", "CREATE TABLE young (c int) INHERITS (old)", "INSERT INTO young VALUES (1, 2)",
	"CREATE TYPE shape AS (x int, y text)", "CREATE TABLE typed OF shape", "INSERT INTO typed VALUES (1, 'y')",
	"CREATE UNLOGGED TABLE light (a int) WITH (fillfactor = 70)",
	"CREATE TABLE \"Odd \"\"name.\" (\"sélect\" int PRIMARY KEY, tags text[] DEFAULT '{}')", "INSERT INTO \"Odd \"\"name.\" VALUES (1)",
	"CREATE TABLE fired (a int PRIMARY KEY, at timestamptz DEFAULT '2001-02-03 04:05:06Z')", "CREATE TABLE audit (what text)",
	"CREATE FUNCTION loud() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO audit VALUES (tg_op); RETURN NEW; END $$",
	"CREATE TRIGGER loud BEFORE INSERT OR UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION loud()", "INSERT INTO fired VALUES (1)",
	"CREATE INDEX ON plain (v) WHERE v > 1", "CREATE INDEX ON nokey (lower(b))", "CREATE STATISTICS st ON a, b FROM parent",
	"ALTER TABLE nokey REPLICA IDENTITY FULL", "ALTER TABLE audit ENABLE ROW LEVEL SECURITY", "GRANT SELECT (v) ON plain TO PUBLIC",
	"CREATE VIEW seen AS SELECT * FROM plain", "CREATE MATERIALIZED VIEW kept AS SELECT count(*) FROM plain",
	"CREATE RULE quiet AS ON DELETE TO gone DO INSTEAD NOTHING",
}

// postgresDump is what pg_dump says of definitions and rows.
func postgresDump(t *testing.T, d testserver.Database, args ...string) string {
	t.Helper()
	found := postgres.Find()
	if len(found) == 0 {
		t.Fatal("there is no PostgreSQL server")
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(found[0].Bin, "pg_dump"), append(args, "--dbname="+d.URL())...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("pg_dump: %v: %s", err, exit.Stderr)
		}
		t.Fatalf("pg_dump: %v", err)
	}
	// Since August 2025 pg_dump puts a random key into two lines (release notes of 15.14, CVE-2025-8714).
	lines := slices.DeleteFunc(strings.Split(string(out), "\n"), func(l string) bool {
		return strings.HasPrefix(l, `\restrict `) || strings.HasPrefix(l, `\unrestrict `)
	})
	return strings.Join(lines, "\n")
}

func TestPostgresColumnsAddAndRemoveLeaveNoTrace(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, postgresTables...)
	schema, data := postgresDump(t, d, "--schema-only"), postgresDump(t, d, "--data-only")
	o := instrument.Options{Capture: rewrite.CaptureColumns}

	first := apply(t, d.URL(), o, (*instrument.Database).Add)
	want := []string{`Odd "name.`, "audit", "child", "fired", "gone", "light", "nokey", "parent", "parts", "plain"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("tables changed (-want +got):\n%s", diff)
	}
	if again := apply(t, d.URL(), o, (*instrument.Database).Add); again != nil {
		t.Errorf("adding again changed %v, want nothing", again)
	}
	if removed := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove); !slices.Equal(removed, first) {
		t.Errorf("removed from %v, want %v", removed, first)
	}
	if diff := cmp.Diff(schema, postgresDump(t, d, "--schema-only")); diff != "" {
		t.Errorf("schema after adding and removing (-before +after):\n%s", diff)
	}
	if diff := cmp.Diff(data, postgresDump(t, d, "--data-only")); diff != "" {
		t.Errorf("rows after adding and removing (-before +after):\n%s", diff)
	}
}

func TestPostgresNativeChangesNothing(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, postgresTables...)
	schema := postgresDump(t, d, "--schema-only")
	if changed := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add); changed != nil {
		t.Errorf("native capture changed %v", changed)
	}
	if diff := cmp.Diff(schema, postgresDump(t, d, "--schema-only")); diff != "" {
		t.Errorf("schema (-before +after):\n%s", diff)
	}
	noKey := "no primary key: a row is followed from version to version"
	want := map[string][]string{
		"plain":  {"privileges on single columns may forbid the added columns"},
		"nokey":  {noKey},
		"fired":  {"what its triggers read and write is not seen"},
		"parent": {"what its foreign keys change by cascading is not seen"},
		"light":  {"its changes are not in the write-ahead log, so the order of versions is not known", noKey},
		"seen":   {"what is read through a view is not seen"},
		"old":    {"inheritance: rows of several tables", noKey},
	}
	got := map[string][]string{}
	for _, table := range open(t, d.URL(), instrument.Options{}).Tables {
		if _, ok := want[table.Name]; ok {
			got[table.Name] = table.Limits
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestPostgresTableInUse(t *testing.T) {
	d := testserver.Postgres(t).Database(t)
	d.Exec(t, "CREATE TABLE a (id int)")
	tx, err := d.Postgres(t).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "SELECT * FROM a"); err != nil {
		t.Fatal(err)
	}
	db := open(t, d.URL(), instrument.Options{Capture: rewrite.CaptureColumns, LockWait: 100 * time.Millisecond})
	if r := db.Add(t.Context(), db.Tables[0]); !strings.Contains(r.Error, "in use for longer than 100ms") {
		t.Errorf("table in use: got %+v", r)
	}
}

func TestOpenRefuses(t *testing.T) {
	p, m := testserver.Postgres(t).Database(t), testserver.MariaDB(t).Database(t)
	p.Exec(t, "CREATE TABLE t (a int)")
	m.Exec(t, "CREATE TABLE t (a int)")
	wrong := func(d testserver.Database) string { d.Password = "secret"; return d.URL() }
	tests := []struct {
		name, url string
		options   instrument.Options
		want      string
	}{
		{"unknown scheme", "oracle://u:secret@h/db", instrument.Options{}, `unknown engine "oracle": known are postgres, postgresql, mariadb, mysql`},
		{"no URL", "postgres://u:secret@h:x y/", instrument.Options{}, "the URL cannot be read"},
		{"nobody listens", "postgres://u:secret@127.0.0.1:1/db", instrument.Options{}, "connection refused"},
		{"nobody listens", "mysql://u:secret@127.0.0.1:1/db", instrument.Options{}, "connection refused"},
		{"wrong password", wrong(p), instrument.Options{}, "password authentication failed"},
		{"wrong password", wrong(m), instrument.Options{}, "Access denied"},
		{"unknown table", p.URL(), instrument.Options{Tables: []string{"t", "none"}}, `no table matches "none"`},
		{"unknown table", m.URL(), instrument.Options{Tables: []string{"other.t"}}, `no table matches "other.t"`},
		{"bad pattern", m.URL(), instrument.Options{Tables: []string{"[t"}}, "syntax error in pattern"},
		{"system schema", p.URL(), instrument.Options{Tables: []string{"pg_catalog.*"}}, "schema pg_catalog belongs to the server"},
		{"system schema", m.URL(), instrument.Options{Tables: []string{"mysql.user"}}, "schema mysql belongs to the server"},
		{"no such capture", m.URL(), instrument.Options{Capture: rewrite.CaptureNative}, "MariaDB has no native capture"},
		{"unknown parameter", m.URL() + "?sslmode=disable", instrument.Options{}, `unknown parameter "sslmode"`},
		{"unknown database", m.As(m.Server.User).URL() + "x", instrument.Options{}, "Unknown database"},
	}
	for _, test := range tests {
		db, err := instrument.Open(t.Context(), test.url, test.options)
		if err == nil {
			t.Errorf("%s: %v was opened", test.name, db.Engine.Name)
			continue
		}
		if !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %q, want %q in it", test.name, err, test.want)
		}
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: the error shows the password: %q", test.name, err)
		}
	}
}

func TestNoPrivilege(t *testing.T) {
	m := testserver.MariaDB(t).Database(t)
	root := m.As(m.Server.User)
	m.Exec(t, "CREATE TABLE t (a int)")
	root.Exec(t, "CREATE USER reader IDENTIFIED BY '"+testserver.AppPassword+"'", "GRANT SELECT ON "+m.Name+".* TO reader")
	t.Cleanup(func() { root.MariaDB(t).Exec("DROP USER reader") })
	db := open(t, m.As("reader").URL(), instrument.Options{})
	if r := db.Add(t.Context(), db.Tables[0]); !strings.Contains(r.Error, "ALTER command denied") {
		t.Errorf("mariadb: got %+v, want that ALTER is denied", r)
	}
	p := testserver.Postgres(t).Database(t)
	p.As(p.Server.User).Exec(t, "CREATE TABLE t (a int)")
	pdb := open(t, p.URL(), instrument.Options{Capture: rewrite.CaptureColumns})
	if r := pdb.Add(t.Context(), pdb.Tables[0]); !strings.Contains(r.Error, "must be owner of table t") {
		t.Errorf("postgres: got %+v, want that only the owner may", r)
	}
}

func TestWholeServerAndPasswordApart(t *testing.T) {
	s := testserver.MariaDB(t)
	d := s.Database(t).As(s.User)
	d.Exec(t, "CREATE TABLE t (a int)")
	url := fmt.Sprintf("mysql://%s@%s/", s.User, s.Address())
	db := open(t, url, instrument.Options{Password: s.Password, Tables: []string{d.Name + ".t"}})
	if len(db.Tables) != 1 || db.Tables[0].String() != d.Name+".t" {
		t.Errorf("got tables %v", db.Tables)
	}
	for _, scheme := range []string{"mysql", "mariadb"} { // the server decides which product it is, and not the URL
		db := open(t, fmt.Sprintf("%s://%s@%s/", scheme, s.User, s.Address()), instrument.Options{Password: s.Password})
		if db.Engine.Name != s.Engine || db.Engine.Title != "MariaDB" {
			t.Errorf("%s://: %s %s", scheme, db.Engine.Title, db.Version)
		}
	}
	for _, table := range open(t, url, instrument.Options{Password: s.Password}).Tables {
		if table.Schema == "mysql" || table.Schema == "sys" {
			t.Errorf("a table of the server's own is listed: %s", table)
		}
	}
}
