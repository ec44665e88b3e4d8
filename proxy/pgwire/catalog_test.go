package pgwire_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"wirecheck/backends/engine"
	"wirecheck/backends/postgres"
	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	pg "wirecheck/rewrite/postgres"
)

// largeDatabase makes a database of n tables.
func largeDatabase(t testing.TB, srv *testserver.Server, n int) testserver.Database {
	t.Helper()
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, fmt.Sprintf(`DO $$BEGIN FOR i IN 1..%d LOOP
		EXECUTE format('CREATE TABLE t%%s (id bigint PRIMARY KEY, a int NOT NULL, b text, c timestamptz DEFAULT now(), d numeric)', i); IF i %% 500 = 0 THEN COMMIT; END IF; END LOOP; END$$`, n))
	return db
}

// TestLargeDatabase names tables of a database that is too large to be read at once, outside and inside of transactions,
// while another session changes some. A statement whose tables may have changed is never planned with what was known.
func TestLargeDatabase(t *testing.T) {
	srv := testserver.Postgres(t)
	db := largeDatabase(t, srv, 520)
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	sessions := map[string]*wire{}
	for _, name := range []string{"1", "2"} {
		sessions[name] = dialWire(t, r.addr.String(), db.User, db.Name)
	}
	var want []string
	for _, step := range []struct {
		session, sql string
		coverage     history.Coverage
	}{
		{"1", "SELECT * FROM t1", history.CoverageExact},
		{"1", "SELECT * FROM nothere", history.CoverageOpaque},
		{"1", "BEGIN", ""},
		{"1", "SELECT b FROM t2", history.CoverageExact},
		{"2", "ALTER TABLE t3 ADD COLUMN e int", history.CoverageOpaque},
		{"1", "SELECT b FROM t2 WHERE id > 1", history.CoverageExact}, // another table was changed
		{"1", "SELECT b FROM t3", history.CoverageOpaque},             // this transaction may see it as it was
		{"1", "COMMIT", ""},
		{"1", "SELECT b FROM t3 WHERE id > 1", history.CoverageExact},
		{"1", "BEGIN ISOLATION LEVEL REPEATABLE READ", ""},
		{"1", "SELECT b FROM t4", history.CoverageExact},
		{"2", "CREATE TABLE nothere (k int PRIMARY KEY)", ""},
		{"2", "SELECT * FROM nothere", history.CoverageExact},
		{"1", "SELECT k FROM nothere", history.CoverageExact}, // names mean what they mean now, whatever the snapshot
		{"2", "GRANT SELECT ON t5 TO PUBLIC", ""},             // may concern anything
		{"1", "SELECT a FROM t4", history.CoverageOpaque},
		{"1", "ROLLBACK", ""},
		{"1", "SELECT k FROM nothere", history.CoverageExact},
		{"2", "CREATE TEMP TABLE t4 (other int)", ""},
		{"2", "SELECT * FROM t4", history.CoverageOpaque},
		{"1", "SELECT a FROM t4 WHERE id > 1", history.CoverageExact},
		{"2", "DROP TABLE t4", ""},
		{"2", "SELECT a, b FROM t4", history.CoverageExact},
		{"1", "SELECT public_f()", ""}, // there is no such function
		{"2", "CREATE FUNCTION public_f() RETURNS int LANGUAGE sql AS 'SELECT count(*)::int FROM t1'", ""},
		{"1", "SELECT public_f()", history.CoverageOpaque},
	} {
		sessions[step.session].step("Q " + step.sql)
		if step.coverage != "" {
			want = append(want, fmt.Sprintf("%s: %s", step.sql, step.coverage))
		}
	}
	r.stop()
	var got []string
	for _, e := range ev.all() {
		if e.Kind == history.EventStmt {
			got = append(got, fmt.Sprintf("%s: %s", e.SQL, e.Coverage))
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}

// TestPastTheProxy: definitions that go past the proxy are noticed: by the rows of a table that was made again, and by new sessions, since the
// server counts them. Transactions that are open go on with tables that did not change.
func TestPastTheProxy(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	past := func(sql string) { db.Exec(t, sql+"; SELECT pg_stat_force_next_flush()") }
	past("CREATE TABLE again (k int PRIMARY KEY); INSERT INTO again VALUES (1); CREATE TABLE other (k int PRIMARY KEY); INSERT INTO other VALUES (1)")
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	open := func() *wire { return dialWire(t, r.addr.String(), db.User, db.Name) }
	n := 0
	sees := func(s *wire, sql string) history.Coverage {
		t.Helper()
		n++
		sql += fmt.Sprintf(" -- %d", n)
		s.step("Q " + sql)
		for _, e := range ev.all() {
			if e.Kind == history.EventStmt && e.SQL == sql {
				return e.Coverage
			}
		}
		t.Fatalf("%s was not recorded", sql)
		return ""
	}
	expect := func(s *wire, sql string, want history.Coverage) {
		t.Helper()
		if got := sees(s, sql); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
	first, inside := open(), open()
	expect(first, "SELECT * FROM again", history.CoverageExact)
	inside.step("Q BEGIN")
	expect(inside, "SELECT * FROM other", history.CoverageExact)

	past("DROP TABLE again; CREATE TABLE again (k int PRIMARY KEY, v text); INSERT INTO again VALUES (1, 'a')")
	expect(first, "SELECT * FROM again WHERE k > 0", history.CoverageOpaque)
	expect(first, "SELECT * FROM again WHERE k > 0", history.CoverageExact)
	past("CREATE TABLE soon (k int PRIMARY KEY); CREATE TABLE sooner (k int PRIMARY KEY); CREATE TABLE soonest (k int PRIMARY KEY)")
	expect(first, "SELECT * FROM soonest", history.CoverageExact) // the first statement that names it
	expect(inside, "SELECT * FROM sooner", history.CoverageExact)
	expect(inside, "SELECT * FROM pg_catalog.pg_class, soon LIMIT 0", history.CoverageExact)
	first.step("Q CREATE TEMP TABLE soon (k int)")
	expect(first, "SELECT * FROM soon", history.CoverageOpaque)
	first.step("Q DISCARD ALL")
	expect(first, "SELECT * FROM soon", history.CoverageExact)
	past("CREATE FUNCTION late(int) RETURNS int LANGUAGE sql AS 'SELECT $1'; CREATE TABLE late (k int PRIMARY KEY); INSERT INTO late VALUES (1)")
	fresh := open()
	for deadline := time.Now().Add(time.Minute); sees(fresh, "SELECT * FROM late") != history.CoverageExact; fresh.step("Q DISCARD ALL") { // as a pool does
		if time.Now().After(deadline) {
			t.Fatal("no session that begins again notices a new table")
		}
	}
	expect(first, "SELECT * FROM late", history.CoverageExact)
	expect(inside, "SELECT k FROM other", history.CoverageExact)
	expect(inside, "SELECT k FROM again", history.CoverageExact) // names mean what they mean now
}

// TestDefinitionCountsOnce: what one session defined does not make another forget what it has read since, when the first one goes on.
func TestDefinitionCountsOnce(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	open := func() *wire { return dialWire(t, r.addr.String(), db.User, db.Name) }
	coverage := func(sql string) (c history.Coverage) {
		for _, e := range ev.all() {
			if e.Kind == history.EventStmt && e.SQL == sql {
				c = e.Coverage
			}
		}
		return c
	}
	defines, reads := open(), open()
	defines.step("Q BEGIN")
	defines.step("Q CREATE TABLE t (k int PRIMARY KEY)")
	defines.step("Q COMMIT")
	reads.step("Q BEGIN")
	defines.step("Q BEGIN")
	reads.step("Q SELECT * FROM t -- behind the commit")
	if got := coverage("SELECT * FROM t -- behind the commit"); got != history.CoverageExact {
		t.Errorf("a table that was defined before: %s, want exact", got)
	}
	// The near miss: the definition comes while the reader's transaction is open.
	defines.step("Q CREATE TABLE late (k int PRIMARY KEY)")
	defines.step("Q COMMIT")
	defines.step("Q BEGIN")
	reads.step("Q SELECT * FROM late")
	if got := coverage("SELECT * FROM late"); got != history.CoverageOpaque {
		t.Errorf("a table that was defined meanwhile: %s, want opaque", got)
	}
}

// BenchmarkCatalog plays what changes the schema in a database of 5,000 tables, directly and observed.
//
//	go test ./proxy/pgwire -run ^$ -bench Catalog -benchtime 1x
func BenchmarkCatalog(b *testing.B) {
	srv := testserver.Postgres(b)
	db := largeDatabase(b, srv, 5000)
	r := start(b, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&events{drop: true}))
	ctx := context.Background()
	connect := func(observed bool) *pgx.Conn {
		if observed {
			return db.At(r.addr.IP.String(), r.addr.Port).Postgres(b)
		}
		return db.Postgres(b)
	}
	exec := func(conn *pgx.Conn, sql string, args ...any) {
		if _, err := conn.Exec(ctx, fmt.Sprintf(sql, args...), pgx.QueryExecModeSimpleProtocol); err != nil {
			b.Fatalf("%s: %v", sql, err)
		}
	}
	exec(connect(false), "CREATE TABLE migrations (n int PRIMARY KEY)")
	for _, load := range []struct {
		name string
		play func(conn *pgx.Conn)
	}{
		{"cold start", func(conn *pgx.Conn) { exec(conn, "SELECT * FROM t7") }},
		{"5 temporary tables", func(conn *pgx.Conn) {
			for i := range 5 {
				exec(conn, "CREATE TEMP TABLE scratch%d (a int)", i)
				exec(conn, "SELECT * FROM t%d", 100+i)
			}
		}},
		{"500 migrations", func(conn *pgx.Conn) {
			for i := range 250 {
				exec(conn, "CREATE TABLE m%d (id bigint PRIMARY KEY, a int, b text)", i)
				exec(conn, "INSERT INTO migrations VALUES (%d)", 2*i)
				exec(conn, "ALTER TABLE m%d ADD COLUMN c int", i)
				exec(conn, "INSERT INTO migrations VALUES (%d)", 2*i+1)
			}
			for i := range 250 {
				exec(conn, "DROP TABLE m%d", i)
			}
			exec(conn, "DELETE FROM migrations")
		}},
		{"50 schemas", func(conn *pgx.Conn) {
			for i := range 50 {
				exec(conn, "CREATE SCHEMA test%d", i)
				exec(conn, "SET search_path = test%d", i)
				for j := range 5 {
					exec(conn, "CREATE TABLE x%d (id bigint PRIMARY KEY, a int, b text)", j)
				}
				for j := range 20 {
					exec(conn, "INSERT INTO x%d VALUES (%d, 1, 'b')", j%5, j)
					exec(conn, "SELECT * FROM x%d WHERE id = %d", j%5, j)
				}
				exec(conn, "DROP SCHEMA test%d CASCADE", i)
			}
		}},
	} {
		b.Run(load.name, func(b *testing.B) {
			var took [2]time.Duration
			for range b.N {
				for i, observed := range []bool{false, true} {
					from := time.Now()
					conn := connect(observed)
					load.play(conn)
					took[i] += time.Since(from)
					if err := conn.Close(ctx); err != nil {
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

// TestQuestionsAreNotCompiled: a session takes all ways of planning but one away. Our questions are asked of plans that look dear then, and the server does not
// compile them; the client's own query it does. The server says so, as its compiler is missing.
func TestQuestionsAreNotCompiled(t *testing.T) {
	srv, conn := apart(t, map[string]string{"jit": "on", "jit_provider": "none", "log_min_messages": "debug1"})
	compiled := func() bool { return strings.Contains(srv.Log(), "disabling JIT") }
	jit := func() (setting string) {
		if err := conn.QueryRow(t.Context(), "SHOW jit").Scan(&setting); err != nil {
			t.Fatal(err)
		}
		return setting
	}
	for _, q := range []string{
		"SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off; SET enable_nestloop = off",
		"CREATE TABLE t (k int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TEMP TABLE s (k int)", "INSERT INTO t VALUES (2)",
		"BEGIN", "ALTER TABLE t ADD v int", "INSERT INTO t VALUES (3)", "COMMIT", "BEGIN", "INSERT INTO s VALUES (1)",
	} {
		if _, err := conn.Exec(t.Context(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		if got := jit(); got != "on" || compiled() {
			t.Errorf("behind %s: jit is %s, compiled: %v; want on and false", q, got, compiled())
		}
	}
	if _, err := conn.Exec(t.Context(), "SET jit_above_cost = 0; SELECT count(*) FROM pg_class"); err != nil || !compiled() {
		t.Errorf("the client's own query is not compiled: %v", err)
	}
}

// TestDefinitionsAreAskedForOnce: definitions that may change anything, one behind the other, do not each make the session ask for the catalog. What names a
// table does, and so does BEGIN, behind which nothing can be asked.
func TestDefinitionsAreAskedForOnce(t *testing.T) {
	srv, conn := apart(t, map[string]string{"log_min_duration_statement": "0"})
	asked := 0
	for _, c := range []struct {
		sql  string
		asks bool
	}{
		{"CREATE TABLE t (k int PRIMARY KEY)", false},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", false}, // changes that function alone
		{"DROP FUNCTION f()", false},
		{"CREATE ROLE r; GRANT SELECT ON t TO r", false},
		{"SET ROLE postgres", false},
		{"DROP OWNED BY r", false},
		{"DROP ROLE r", false},
		{"INSERT INTO t VALUES (1)", true},
		{"SELECT * FROM t", false},
		{"CREATE SCHEMA s", false},
		{"BEGIN", true},
		{"ROLLBACK", false},
		{"CREATE SCHEMA u", false},
		{"ALTER TABLE t ADD v int", true}, // so that other sessions need not ask for all
	} {
		if _, err := conn.Exec(t.Context(), c.sql); err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		before := asked
		asked = strings.Count(srv.Log(), "execute wirecheck: question/wirecheck: question: "+pg.AsksQuery[:40])
		if (asked > before) != c.asks && before > 0 {
			t.Errorf("%s: %d questions, before %d; want more: %v", c.sql, asked, before, c.asks)
		}
	}
}

// TestTemporaryNamesAreAskedFor: a session with a temporary table asks for their names behind a definition that may drop one, and behind no other.
func TestTemporaryNamesAreAskedFor(t *testing.T) {
	srv, conn := apart(t, map[string]string{"log_min_duration_statement": "0"})
	asked := 0
	for _, c := range []struct {
		sql  string
		asks bool
	}{
		{"CREATE TABLE t (k int PRIMARY KEY)", false},
		{"CREATE TEMP TABLE s (k int)", false},
		{"SELECT * FROM s, t", true},
		{"CREATE TABLE u (k int PRIMARY KEY)", false},
		{"SELECT * FROM u, s", false},
		{"ALTER TABLE u ADD v int", false},
		{"SELECT * FROM u, s", false},
		{"DROP TABLE s", false},
		{"SELECT * FROM u", true},
		{"CREATE TEMP TABLE s (k int)", false},
		{"SELECT * FROM u", true},
		{"DROP TABLE u CASCADE", false}, // who knows what else
		{"SELECT * FROM t", true},
	} {
		if _, err := conn.Exec(t.Context(), c.sql); err != nil {
			t.Fatalf("%s: %v", c.sql, err)
		}
		before := asked
		asked = strings.Count(srv.Log(), "execute wirecheck: question/wirecheck: question: "+"SELECT coalesce(pg_catalog.json_agg(relname)")
		if (asked > before) != c.asks {
			t.Errorf("%s: %d questions, before %d; want more: %v", c.sql, asked, before, c.asks)
		}
	}
}

// apart gives a server of the test's own, and a session of its superuser through the proxy.
func apart(t *testing.T, settings map[string]string) (*engine.Server, *pgx.Conn) {
	t.Helper()
	srv, err := postgres.Start(t.Context(), engine.Options{Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = srv.Close() }) // the next test has another one
	r := start(t, proxy.Config{Upstream: proxy.Address{Network: "tcp", Addr: srv.Address()}, Mode: proxy.Observe}, observer(&events{}))
	conn, err := pgx.Connect(t.Context(), fmt.Sprintf("postgres://%s:%s@%s/postgres?default_query_exec_mode=simple_protocol&sslmode=disable", srv.User, srv.Password, r.addr))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // it has done what it was to do
	return srv, conn
}

// TestQuestionsTakeNoLocks: while somebody holds a partitioned table, and a table, for a definition, another session learns the catalog and reads what is not held.
func TestQuestionsTakeNoLocks(t *testing.T) {
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE p (k int PRIMARY KEY) PARTITION BY RANGE (k)", "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (5) PARTITION BY RANGE (k)",
		"CREATE TABLE p11 PARTITION OF p1 FOR VALUES FROM (1) TO (3)", "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (5) TO (9)", "INSERT INTO p VALUES (1), (6)",
		"CREATE TABLE t (k int PRIMARY KEY)", "CREATE TABLE u (k int PRIMARY KEY)")
	var ev events
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(&ev))
	holder := dialWire(t, srv.Address(), db.User, db.Name)
	for _, c := range []struct{ held, sql, want string }{
		{"p1, t", "SELECT count(*) FROM u", "0"},
		{"p1", "SELECT count(*) FROM p WHERE k = 6", "1"},
		{"p2", "SELECT count(*) FROM p WHERE k = 1", "1"},
	} {
		holder.send('Q', "BEGIN; LOCK TABLE ONLY "+strings.ReplaceAll(c.held, ", ", ", ONLY ")+" IN ACCESS EXCLUSIVE MODE\x00")
		holder.until('Z', 1)
		w := dialWire(t, r.addr.String(), db.User, db.Name, "options", "-c lock_timeout=20s")
		w.send('Q', c.sql+"\x00")
		if got := strings.Join(w.until('Z', 1), "\n"); !strings.Contains(got, `\x01`+c.want+`"`) {
			t.Errorf("%s, while %s is held: %s; want %s", c.sql, c.held, got, c.want)
		}
		holder.send('Q', "ROLLBACK\x00")
		holder.until('Z', 1)
	}
	r.stop()
	for _, e := range ev.all() {
		if e.Kind == history.EventStmt && (e.Coverage != history.CoverageExact || len(e.Accesses) == 0 && strings.Contains(e.SQL, " p ")) {
			t.Errorf("%s is %s (%s), with %d accesses", e.SQL, e.Coverage, e.Why, len(e.Accesses))
		}
	}
}
