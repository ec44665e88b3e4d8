package mysqlwire_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// valuesOf reads all rows as text.
func valuesOf(t *testing.T, rows *sql.Rows, err error) []string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	out := []string{strings.Join(names, "|")}
	for rows.Next() {
		cells, into := make([]sql.NullString, len(names)), make([]any, len(names))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		out = append(out, fmt.Sprint(cells))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestGoSQLDriver(t *testing.T) { testGoSQLDriver(t, false) }

// TestGoSQLDriverCompressed is TestGoSQLDriver with compression.
func TestGoSQLDriverCompressed(t *testing.T) { testGoSQLDriver(t, true) }

func testGoSQLDriver(t *testing.T, compress bool) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		cfg := through.MySQLConfig()
		cfg.MultiStatements = true
		if err := cfg.Apply(driver.EnableCompression(compress)); err != nil {
			t.Fatal(err)
		}
		connector, err := driver.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(connector)
		defer db.Close()
		through.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY, a BIGINT, b DOUBLE, c VARCHAR(50), d BLOB, e DATETIME(6), f DECIMAL(20,5), g BOOL, h DATE, i TIME(3), j YEAR, k FLOAT, l SMALLINT, m JSON)")
		when := time.Date(2026, 11, 20, 1, 2, 3, 456000, time.UTC)
		for i, row := range [][]any{
			{int64(-5), 1.5, "text", []byte{0, 1, 255}, when, "12.5", true, "2026-01-02", "-10:11:12.5", 2026, float32(2.5), int16(-7), `{"a":1}`},
			{nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil},
			{uint64(9), -0.0, strings.Repeat("ü", 25), make([]byte, 60_000), when, "0", false, "2026-01-02", "00:00:00", 1999, float32(0), 0, nil},
		} {
			if _, err := db.Exec("INSERT INTO t VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", append([]any{i}, row...)...); err != nil {
				t.Fatal(err)
			}
		}
		direct := d.MariaDB(t)
		for _, query := range []string{"SELECT * FROM t WHERE id >= ? ORDER BY id", "SELECT t.*, u.a FROM t JOIN t u USING (id) WHERE t.id >= ?", "SELECT COUNT(*), SUM(b) FROM t WHERE id >= ?"} {
			rows, err := db.Query(query, 0)
			got := valuesOf(t, rows, err)
			rows, err = direct.Query(query, 0)
			if diff := cmp.Diff(valuesOf(t, rows, err), got); diff != "" {
				t.Errorf("%s: direct (-), through the proxy (+):\n%s", query, diff)
			}
		}
		driver.RegisterReaderHandler("rows", func() io.Reader { return strings.NewReader("10\t1\n11\t2\n") })
		res, err := db.Exec("LOAD DATA LOCAL INFILE 'Reader::rows' INTO TABLE t (id, a)")
		if err != nil {
			t.Fatal(err)
		}
		if n, err := res.RowsAffected(); n != 2 || err != nil {
			t.Errorf("LOAD DATA: got %d rows, %v; want 2", n, err)
		}
		rows, err := db.Query("SELECT 1; SELECT id FROM t WHERE id > 9 ORDER BY id")
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
		}
		if !rows.NextResultSet() || !rows.Next() {
			t.Error("the second result is missing")
		}
		rows.Close()
	})
}

func TestGoMySQLClient(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		conn, err := client.Connect(through.Address(), through.User, through.Password, through.Name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 1), (2, 2)"} {
			if _, err := conn.Execute(sql); err != nil {
				t.Fatal(err)
			}
		}
		res, err := conn.Execute("SELECT * FROM t WHERE id > ? ORDER BY id", 0)
		if err != nil {
			t.Fatal(err)
		}
		if v, err := res.GetInt(1, 1); err != nil || v != 2 || len(res.Fields) != 2 {
			t.Errorf("got %d of %d fields, %v; want 2 of 2", v, len(res.Fields), err)
		}
	})
}

func TestUnixSocketAndEmptyPassword(t *testing.T) {
	d := testserver.Family(t).Database(t)
	root := d.As(d.Server.User)
	root.Exec(t, "CREATE USER nobody@'%'", "GRANT ALL ON "+d.Name+".* TO nobody@'%'")
	t.Cleanup(func() {
		if _, err := root.MariaDB(t).ExecContext(context.Background(), "DROP USER nobody@'%'"); err != nil {
			t.Error(err)
		}
	})
	var socket string
	if err := root.MariaDB(t).QueryRow("SELECT @@socket").Scan(&socket); err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(socket) {
		t.Fatalf("the server's socket is %q", socket)
	}
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		through := startProxy(t, d, proxy.Config{Mode: mode, Upstream: proxy.Address{Network: "unix", Addr: socket}}, observer(&sink{}))
		through.User, through.Password = "nobody", ""
		if out, err := mariadb(through, "-e", "SELECT CURRENT_USER()"); err != nil || out != "nobody@%\n" {
			t.Errorf("mode %s: got %q, %v", mode, out, err)
		}
	}
}

func TestSafeUpdatesLeavesTheCatalogWhole(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k))
	c := dialRaw(t, through, baseCaps)
	c.query("SET sql_select_limit = 20")
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.query("INSERT INTO t VALUES (1, 1)")
	c.query("SET sql_mode = ''") // the settings are asked for again
	c.query("SELECT * FROM t")
	for _, ev := range k.all() {
		if ev.Kind == history.EventStmt && ev.Verb == "select" && ev.Coverage != history.CoverageExact {
			t.Errorf("%s: coverage %s (%s), want exact", ev.SQL, ev.Coverage, ev.Why)
		}
	}
}

// TestChangedBehindOurBack has a table lose its columns, or its instrumented form, without the proxy seeing it.
func TestChangedBehindOurBack(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k))
	c := dialRaw(t, through, baseCaps)
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
	c.query("INSERT INTO t VALUES (1, 1)")
	r := c.do(22, []byte("SELECT v FROM t WHERE id = ?"))
	id := uint32(r.packets[0][1]) | uint32(r.packets[0][2])<<8
	c.do(23, executeArg(id, 0, []any{1}))
	dialRaw(t, d, baseCaps).query("ALTER TABLE t DROP COLUMN wc_row_id, DROP COLUMN wc_writers")
	for range 2 {
		if r := c.do(23, executeArg(id, 0, []any{1})); len(r.packets) != 5 || string(r.packets[3]) != "\x00\x00\x01\x00\x00\x00" {
			t.Errorf("prepared: got %s", r)
		}
	}
	expectRows(t, c, "SELECT * FROM t", "1|1")
	if p := c.query("UPDATE t SET v = 2").last(); p[0] != 0 || p[1] != 1 {
		t.Errorf("UPDATE: got %q, want OK", p)
	}
	expectRows(t, c, "SELECT v FROM t", "2")
}

// TestPreparedAndSerializable executes one prepared statement at two levels: under SERIALIZABLE it locks, and may need
// another form.
func TestPreparedAndSerializable(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))
	c := dialRaw(t, through, baseCaps)
	c.query("CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT, KEY (k))")
	c.query("INSERT INTO t VALUES (1, 7, 1), (2, 8, 2)")
	r := c.do(22, []byte("SELECT k FROM t WHERE k = ?"))
	id := uint32(r.packets[0][1]) | uint32(r.packets[0][2])<<8
	run := func() {
		t.Helper()
		if r := c.do(23, executeArg(id, 0, []any{7})); string(r.packets[3]) != "\x00\x00\x07\x00\x00\x00" {
			t.Errorf("got %s", r)
		}
		arg := executeArg(id, 0, []any{7})
		arg = append(arg[:10], append([]byte{0}, arg[13:]...)...) // the same types are not told again
		if r := c.do(23, arg); string(r.packets[3]) != "\x00\x00\x07\x00\x00\x00" {
			t.Errorf("without types: got %s", r)
		}
	}
	run()
	c.query("SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE")
	c.query("BEGIN")
	run()
	// The covering index alone is locked: the row itself can be changed by another session.
	other := dialRaw(t, d, baseCaps)
	other.query("SET innodb_lock_wait_timeout = 1")
	if p := other.query("UPDATE t SET v = 5 WHERE id = 1").last(); p[0] != 0 {
		t.Errorf("UPDATE beside a covered read: got %q, want OK", p)
	}
	c.query("COMMIT")
	run()
	c.write(0, []byte{25, byte(id), byte(id >> 8), 0, 0})
	expectRows(t, c, "SHOW STATUS LIKE 'Prepared_stmt_count'", "Prepared_stmt_count|0")
}
