package mysqlwire_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// changing are the steps of TestChangedTables. Sessions 1 and 2 go through the proxy, x does not. "prepare N" in front of a text
// prepares it under that name, "execute N" executes it.
var changing = []string{
	// Another session changes a table.
	"1 CREATE TABLE t (id INT PRIMARY KEY, v INT)", "1 INSERT INTO t VALUES (1, 10), (2, 20)", "1 prepare a SELECT * FROM t", "1 execute a",
	"1 prepare b INSERT INTO t VALUES (3, 30)", "1 prepare c UPDATE t SET v = v + 1 WHERE id = 1", "1 execute c",
	"2 ALTER TABLE t ADD COLUMN w INT DEFAULT 7", "1 SELECT * FROM t", "1 execute a", "1 INSERT INTO t VALUES (3, 30)", "1 execute b", "1 execute c", "1 SELECT * FROM t ORDER BY id",
	"2 ALTER TABLE t DROP COLUMN w, ADD COLUMN u INT FIRST", "1 INSERT INTO t VALUES (5, 6, 7)", "1 SELECT * FROM t", "1 execute a",
	// A client that does not use the proxy does.
	"x ALTER TABLE t ADD COLUMN d INT", "1 SELECT * FROM t", "1 execute a", "1 UPDATE t SET d = 1", "1 DELETE FROM t WHERE d = 1 AND id = 6", "2 SELECT d FROM t",
	"x ALTER TABLE t DROP COLUMN v", "1 SELECT * FROM t", "1 SELECT v FROM t", "1 execute c", "1 UPDATE t SET d = 2 WHERE id = 1", "1 DELETE FROM t WHERE v = 3",
	"x DROP TABLE t", "1 SELECT * FROM t", "1 UPDATE t SET d = 1", "1 execute a",
	"x CREATE TABLE t (k VARCHAR(9) PRIMARY KEY, id INT)", "1 SELECT * FROM t", "1 INSERT INTO t VALUES ('k', 1)", "1 UPDATE t SET id = id + 1", "1 SELECT k FROM t WHERE k = 'k'", "1 execute a", "1 DELETE FROM t",
	// Names change their meaning.
	"1 CREATE TABLE one (id INT PRIMARY KEY, a INT)", "1 CREATE TABLE two (k VARCHAR(9) PRIMARY KEY, b INT, c INT)", "1 INSERT INTO one VALUES (1, 1)", "1 INSERT INTO two VALUES ('x', 2, 3)",
	"1 prepare d SELECT * FROM one", "1 execute d", "1 prepare e DELETE FROM one", "2 SELECT * FROM two",
	"x RENAME TABLE one TO three, two TO one, three TO two", "1 SELECT * FROM one", "1 execute d", "1 UPDATE one SET b = 9", "2 SELECT * FROM two", "2 INSERT INTO two VALUES (2, 2)",
	"2 RENAME TABLE one TO three, two TO one, three TO two", "1 SELECT * FROM one", "1 execute d", "1 INSERT INTO two VALUES ('y', 1, 1)", "1 execute e", "2 SELECT * FROM one",
	"1 CREATE VIEW w AS SELECT b FROM two", "1 SELECT * FROM w", "2 CREATE OR REPLACE VIEW w AS SELECT c, k FROM two", "1 SELECT * FROM w",
	"x CREATE OR REPLACE VIEW w AS SELECT k FROM two", "1 SELECT * FROM w", "1 DROP VIEW w", "1 CREATE TABLE w (id INT PRIMARY KEY)", "1 INSERT INTO w VALUES (1)", "1 SELECT * FROM w", "2 UPDATE w SET id = 2",
	"x RENAME TABLE w TO base", "x CREATE VIEW w AS SELECT id + 1 AS id FROM base", "1 SELECT * FROM w", "1 SELECT id FROM w WHERE id = 3", "1 DELETE FROM w", "x DROP VIEW w", "1 DROP TABLE base",
	// Temporary tables are a session's own.
	"1 CREATE TABLE s (id INT PRIMARY KEY, v INT)", "1 INSERT INTO s VALUES (1, 1)", "2 prepare f SELECT * FROM s", "2 execute f", "1 CREATE TEMPORARY TABLE s (x INT, y INT, z INT)", "1 SELECT * FROM s", "1 INSERT INTO s VALUES (1, 2, 3)",
	"1 UPDATE s SET x = 2", "2 SELECT * FROM s", "2 UPDATE s SET v = 2", "2 execute f", "2 CREATE TEMPORARY TABLE s LIKE s", "2 INSERT INTO s VALUES (9, 9)", "2 SELECT * FROM s", "2 execute f", "1 DROP TEMPORARY TABLE s", "1 SELECT * FROM s", "1 DELETE FROM s", "2 SELECT * FROM s",
	"2 CREATE PROCEDURE hide() CREATE TEMPORARY TABLE two (only_column INT)", "1 CALL hide()", "1 SELECT * FROM two", "1 INSERT INTO two VALUES (4)", "1 UPDATE two SET only_column = 5", "2 SELECT * FROM two", "2 DROP PROCEDURE hide", "1 DROP TEMPORARY TABLE two",
	// Inside of a transaction, and where autocommit is off.
	"1 BEGIN", "1 SELECT * FROM fresh", "2 CREATE TABLE fresh (id INT PRIMARY KEY, v INT)", "2 INSERT INTO fresh VALUES (1, 1)", "1 SELECT * FROM fresh", "1 UPDATE fresh SET v = 2", "1 COMMIT", "1 SELECT * FROM fresh",
	"1 SET autocommit = 0", "2 CREATE TABLE later (id INT PRIMARY KEY)", "2 INSERT INTO later VALUES (1)", "1 SELECT * FROM later", "1 INSERT INTO later VALUES (2)", "1 ROLLBACK", "1 SELECT FOUND_ROWS(), ROW_COUNT()", "1 SELECT * FROM later", "1 COMMIT",
	"1 SET autocommit = 1", "1 SET TRANSACTION ISOLATION LEVEL READ COMMITTED", "2 CREATE TABLE latest (id INT PRIMARY KEY)", "1 BEGIN", "2 INSERT INTO latest VALUES (1)", "1 SELECT * FROM latest", "2 INSERT INTO latest VALUES (2)", "1 SELECT * FROM latest", "1 COMMIT",
	"1 CREATE TABLE IF NOT EXISTS later (other INT)", "1 INSERT INTO later VALUES (3)", "1 CREATE OR REPLACE TABLE later (other INT)", "1 INSERT INTO later VALUES (4)", "1 SELECT * FROM later",
	"1 DROP TABLE t, one, two, s, fresh, later, latest",
}

// TestChangedTables changes tables between the statements that use them, by other sessions and by clients that the proxy does not see. The
// client gets what it gets directly.
func TestChangedTables(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TiDB: hidden columns are ordinary ones, which show where another client changes a table")
	}
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE seen (id INT PRIMARY KEY)")
	play := func(t *testing.T, through testserver.Database) (out []string) {
		clients := map[string]*rawClient{"1": dialRaw(t, through, baseCaps), "2": dialRaw(t, through, baseCaps), "x": dialRaw(t, d, baseCaps)}
		ids := map[string]uint32{}
		for i, step := range changing {
			who, sql, _ := strings.Cut(step, " ")
			if testserver.IsMySQL() && strings.Contains(sql, "OR REPLACE TABLE") {
				continue
			}
			c := clients[who]
			c.about = step
			word, rest, _ := strings.Cut(sql, " ")
			name, text, _ := strings.Cut(rest, " ")
			answer := ""
			switch word {
			case "prepare":
				r := c.do(mysql.COM_STMT_PREPARE, []byte(text))
				ids[name] = binary.LittleEndian.Uint32(r.packets[0][1:])
				binary.LittleEndian.PutUint32(r.packets[0][1:], 0) // it counts our own prepared statements too
				answer = r.String()
			case "execute":
				r := c.do(mysql.COM_STMT_EXECUTE, executeArg(ids[name], 0, nil))
				for _, p := range r.packets {
					if p[0] == 0xfe && len(p) == 5 { // the server's own statement is another one now, so the server does not say that it changed
						p[4] &^= byte(mysql.SERVER_STATUS_METADATA_CHANGED >> 8)
					}
				}
				answer = r.String()
			default:
				answer = c.query(sql).String()
			}
			if who != "x" {
				out = append(out, fmt.Sprintf("%d %s\n%s", i, step, answer))
			}
		}
		return out
	}
	want := play(t, d)
	for _, byName := range []bool{false, true} {
		t.Run(fmt.Sprintf("byName=%v", byName), func(t *testing.T) {
			o := observer(&sink{})
			if byName {
				o.AskByName()
			}
			got := play(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o))
			for i := range want {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("direct (-), through the proxy (+):\n%s", diff)
				}
			}
		})
	}
}

// TestPastTheProxy: sessions that begin after a table got its hidden columns, or was made, past the proxy see its rows.
func TestPastTheProxy(t *testing.T) {
	d := testserver.Family(t).Database(t)
	if testserver.IsTiDB() {
		t.Skip("TiDB: hidden columns are ordinary ones, so that all tables are read together")
	}
	flavor := dialect.MariaDB
	if testserver.IsMySQL() {
		flavor = dialect.MySQL
	}
	d.Exec(t, "CREATE TABLE bare (id INT PRIMARY KEY, v INT)")
	k := &sink{}
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k))
	n := 0
	sees := func(c *rawClient, table string) history.Coverage {
		t.Helper()
		n++
		sql := fmt.Sprintf("SELECT * FROM %s WHERE id < %d", table, 100+n)
		if p := c.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
		for _, ev := range k.all() {
			if ev.Kind == history.EventStmt && ev.SQL == sql {
				return ev.Coverage
			}
		}
		t.Fatalf("%s was not recorded", sql)
		return ""
	}
	first := dialRaw(t, through, baseCaps)
	if got := sees(first, "bare"); got != history.CoverageOpaque {
		t.Fatalf("a table without hidden columns: %s", got)
	}
	d.Exec(t, "CREATE TABLE late (id INT PRIMARY KEY, v INT)")
	for _, table := range []string{"bare", "late"} {
		for _, sql := range dialect.AddColumns(flavor, &rewrite.Relation{RelationName: rewrite.RelationName{Schema: d.Name, Name: table}}) {
			d.Exec(t, sql)
		}
	}
	for _, table := range []string{"bare", "late"} {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) { // a session that begins later is asked in its place
			c := dialRaw(t, through, baseCaps)
			seen := sees(c, table)
			c.conn.Close()
			if seen == history.CoverageExact {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("no new session notices what %s is now", table)
			}
		}
		if got := sees(first, table); got != history.CoverageExact {
			t.Errorf("the session before: %s is %s", table, got)
		}
	}
}

// TestAskByName follows what is seen of tables that are asked for as statements name them.
func TestAskByName(t *testing.T) {
	d := testserver.Family(t).Database(t)
	if testserver.IsMySQL() || testserver.IsTiDB() {
		t.Skip("in a transaction only MariaDB can be asked")
	}
	k := &sink{}
	o := observer(k)
	o.AskByName()
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o)
	clients := map[string]*rawClient{"1": dialRaw(t, through, baseCaps), "2": dialRaw(t, through, baseCaps)}
	var want []string
	for _, step := range []struct {
		session, sql string
		coverage     history.Coverage
	}{
		{"1", "CREATE TABLE p (id INT PRIMARY KEY, v INT)", ""},
		{"1", "BEGIN", ""},
		{"1", "SELECT v FROM p", history.CoverageExact},
		{"1", "UPDATE p SET v = 2 WHERE id = 1", history.CoverageExact},
		{"1", "COMMIT", ""},
		{"2", "CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)", ""},
		{"1", "DELETE FROM p WHERE id = 1", history.CoverageApproximate}, // it may delete rows of c
		{"1", "DELETE FROM c WHERE id = 1", history.CoverageExact},
		{"2", "ALTER TABLE p RENAME TO q", ""},
		{"1", "DELETE FROM q WHERE id = 2", history.CoverageApproximate},
		{"2", "CREATE TABLE e (id INT PRIMARY KEY)", ""},
		{"2", "CREATE TABLE f (id INT PRIMARY KEY, e INT, FOREIGN KEY (e) REFERENCES e (id) ON DELETE SET NULL)", ""},
		{"1", "DELETE FROM e WHERE id = 2", history.CoverageApproximate},
		{"1", "UPDATE e SET id = 3 WHERE id = 2", history.CoverageExact},
		{"2", "CREATE TABLE kept (id INT PRIMARY KEY, c INT, FOREIGN KEY (c) REFERENCES c (id) ON DELETE RESTRICT)", ""},
		{"1", "DELETE FROM c WHERE id = 2", history.CoverageExact}, // a foreign key that changes nothing
		{"2", "CREATE TABLE d (id INT PRIMARY KEY, q INT, FOREIGN KEY (q) REFERENCES q (id) ON DELETE SET NULL ON UPDATE CASCADE)", ""},
		{"1", "UPDATE q SET v = 3 WHERE id = 3", history.CoverageExact},
		{"1", "UPDATE q SET id = 4 WHERE id = 3", history.CoverageApproximate},
		{"2", "ALTER TABLE q CHANGE v w INT", ""}, // the one that the key refers to might have got the name of another one
		{"1", "UPDATE q SET w = 4 WHERE id = 4", history.CoverageApproximate},
		{"2", "ALTER TABLE q CHANGE w v INT", ""},
		{"2", "CREATE TRIGGER touched AFTER INSERT ON c FOR EACH ROW SET @touched = 1", ""},
		{"1", "INSERT INTO c VALUES (1, NULL)", history.CoverageOpaque},
		{"2", "DROP TRIGGER touched", ""},
		{"1", "INSERT INTO c VALUES (2, NULL)", history.CoverageExact},
		{"1", "SELECT ABS(v) FROM q", history.CoverageExact},
		{"2", "CREATE FUNCTION twice(n INT) RETURNS INT DETERMINISTIC RETURN 2 * n", ""},
		{"1", "SELECT twice(v) FROM q", history.CoverageApproximate},
		{"1", "SET autocommit = 0", ""},
		{"2", "CREATE TABLE r (id INT PRIMARY KEY, v INT)", ""},
		{"1", "SELECT id FROM r", history.CoverageExact},
		{"1", "COMMIT", ""},
	} {
		if p := clients[step.session].query(step.sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", step.sql, p)
		}
		if step.coverage != "" {
			want = append(want, fmt.Sprintf("%s: %s", step.sql, step.coverage))
		}
	}
	var got []string
	for _, ev := range k.all() {
		line := fmt.Sprintf("%s: %s", ev.SQL, ev.Coverage)
		if ev.Kind == history.EventStmt && (len(got) == 0 || got[len(got)-1] != line) { // what a write overwrote follows it
			got = append(got, line)
			t.Logf("%s (%s)", line, ev.Why)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// BenchmarkCatalog plays what changes the schema in a database of 5,000 tables, directly and observed.
//
//	go test ./proxy/mysqlwire -run ^$ -bench Catalog -benchtime 1x
func BenchmarkCatalog(b *testing.B) {
	d := testserver.Family(b).Database(b)
	exec := func(conn *sql.Conn, text string, args ...any) {
		if _, err := conn.ExecContext(context.Background(), fmt.Sprintf(text, args...)); err != nil {
			b.Fatalf("%s: %v", fmt.Sprintf(text, args...), err)
		}
	}
	connect := func(d testserver.Database) *sql.Conn {
		conn, err := d.MariaDB(b).Conn(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		return conn
	}
	first := connect(d)
	for i := range 5000 {
		exec(first, "CREATE TABLE t%d (id BIGINT PRIMARY KEY, a INT NOT NULL, b VARCHAR(30), c DATETIME, d DECIMAL(9, 2), KEY (a))", i)
	}
	exec(first, "CREATE TABLE migrations (n INT PRIMARY KEY)")
	o := &mysqlwire.Observer{Recorder: record.NewRecorder("test", func(*history.Event) []record.Warning { return nil }), Warn: true}
	through := startProxy(b, d, proxy.Config{Mode: proxy.Observe}, o)
	for _, load := range []struct {
		name string
		play func(conn *sql.Conn)
	}{
		{"cold start", func(conn *sql.Conn) { exec(conn, "SELECT * FROM t7") }},
		{"5 tables", func(conn *sql.Conn) {
			for i := range 5 {
				exec(conn, "CREATE TABLE scratch%d (a INT)", i)
				exec(conn, "SELECT * FROM t%d", 100+i)
			}
			for i := range 5 {
				exec(conn, "DROP TABLE scratch%d", i)
			}
		}},
		{"5 temporary tables", func(conn *sql.Conn) {
			for i := range 5 {
				exec(conn, "CREATE TEMPORARY TABLE scratch%d (a INT)", i)
				exec(conn, "SELECT * FROM t%d", 100+i)
			}
		}},
		{"500 migrations", func(conn *sql.Conn) {
			for i := range 250 {
				exec(conn, "CREATE TABLE m%d (id BIGINT PRIMARY KEY, a INT, b TEXT)", i)
				exec(conn, "INSERT INTO migrations VALUES (%d)", 2*i)
				exec(conn, "ALTER TABLE m%d ADD COLUMN c INT", i)
				exec(conn, "INSERT INTO migrations VALUES (%d)", 2*i+1)
			}
			for i := range 250 {
				exec(conn, "DROP TABLE m%d", i)
			}
			exec(conn, "DELETE FROM migrations")
		}},
		{"50 schemas", func(conn *sql.Conn) {
			for i := range 50 {
				schema := strings.ReplaceAll(d.Name, "_", string(rune('a'+i%26))) // _ stands for any character in the user's privilege
				exec(conn, "CREATE DATABASE %s", schema)
				exec(conn, "USE %s", schema)
				for j := range 5 {
					exec(conn, "CREATE TABLE x%d (id BIGINT PRIMARY KEY, a INT, b TEXT)", j)
				}
				for j := range 20 {
					exec(conn, "INSERT INTO x%d VALUES (%d, 1, 'b')", j%5, j)
					exec(conn, "SELECT * FROM x%d WHERE id = %d", j%5, j)
				}
				exec(conn, "DROP DATABASE %s", schema)
			}
		}},
		{"first write that is seen", func(conn *sql.Conn) { exec(conn, "DELETE FROM seen") }},
	} {
		if strings.Contains(load.name, "seen") { // from then on, new tables get the hidden columns
			exec(first, "CREATE OR REPLACE TABLE seen (id INT PRIMARY KEY, wc_row_id BIGINT UNSIGNED NOT NULL DEFAULT (UUID_SHORT()) INVISIBLE, wc_writers VARCHAR(168) NOT NULL DEFAULT '0:' INVISIBLE)")
		}
		b.Run(load.name, func(b *testing.B) {
			var took [2]time.Duration
			for range b.N {
				for i, at := range []testserver.Database{d, through} {
					from := time.Now()
					conn := connect(at)
					load.play(conn)
					took[i] += time.Since(from)
					if err := conn.Close(); err != nil {
						b.Fatal(err)
					}
				}
			}
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			b.ReportMetric(float64(took[0].Milliseconds())/float64(b.N), "ms-direct/op")
			b.ReportMetric(float64(took[1].Milliseconds())/float64(b.N), "ms-observe/op")
			b.ReportMetric(float64(took[1])/float64(took[0]), "observe/direct")
			b.ReportMetric(float64(m.HeapAlloc>>20), "MiB-heap")
		})
	}
}
