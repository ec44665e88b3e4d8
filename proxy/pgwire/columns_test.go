package pgwire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/pgwire"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestDifferentialColumns plays the sessions directly on plain tables, and through the proxy on tables with the hidden
// columns: each message must be the same.
func TestDifferentialColumns(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, all := sessions(t, "testdata/sessions.txt")
	all = append(all, prepared(all)...)
	for i := range all {
		all[i].steps = slices.DeleteFunc(all[i].steps, shows)
	}
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)

	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	hide(t, db, "account", "nokey", "child")
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, columnsObserver(ev))
	compare(t, all, want, play(t, r.addr.String(), db.Name, all))
	r.stop()
	coverage(t, ev.all())
}

// shows reports whether a step is known to show that there are hidden columns: the type of a whole row, the row that a
// NOT NULL refused, and the size of the tables.
func shows(step string) bool {
	return strings.Contains(step, "SELECT account FROM") || strings.Contains(step, "VALUES (50, NULL)") || strings.Contains(step, "EXPLAIN")
}

// TestColumnsInTransactions changes the schema in a transaction: what it reads then must still not show the columns.
func TestColumnsInTransactions(t *testing.T) {
	srv := testserver.Postgres(t)
	setup, _ := sessions(t, "testdata/sessions.txt")
	all := []session{{name: "schema changes inside", steps: []string{
		"Q BEGIN",
		"Q CREATE TABLE fresh (k int)",
		"Q SELECT * FROM account ORDER BY id",
		"Q ALTER TABLE account ADD COLUMN later int DEFAULT 3",
		"Q SELECT * FROM account ORDER BY id",
		"Q INSERT INTO account VALUES (60, 'x', 1, 'n', 2)",
		"P |SELECT * FROM account WHERE id = $1", "D S", "B  ||60|", "E  0", "S",
		"Q SAVEPOINT s",
		"Q ALTER TABLE account DROP COLUMN later",
		"Q TABLE account ORDER BY id",
		"Q ROLLBACK TO s",
		"Q SELECT * FROM account ORDER BY id",
		"Q UPDATE account SET later = 4 WHERE id = 1 RETURNING *",
		"Q ROLLBACK",
		"Q SELECT * FROM account ORDER BY id",
		"Q BEGIN ISOLATION LEVEL REPEATABLE READ",
		"Q SET LOCAL search_path TO public",
		"Q SET TRANSACTION ISOLATION LEVEL SERIALIZABLE",
		"Q SHOW transaction_isolation",
		"Q SELECT * FROM nokey ORDER BY a",
		"Q COMMIT",
		"Q CREATE TEMP TABLE scratch (x int)",
		"Q SELECT * FROM account ORDER BY id",
		"Q CREATE TEMP TABLE nokey (other int); INSERT INTO nokey VALUES (1)",
		"Q SELECT * FROM nokey",
		"Q TABLE nokey; SELECT * FROM public.nokey ORDER BY a",
		"Q DROP TABLE nokey",
		"Q SELECT * FROM nokey ORDER BY a",
		"Q BEGIN; CREATE TEMP TABLE child (other int)",
		"Q SELECT * FROM child",
		"Q SELECT * FROM account ORDER BY id",
		"Q ROLLBACK",
		"Q SELECT * FROM child",
	}}}
	direct := srv.Database(t).As(testserver.AppTrust)
	direct.Exec(t, setup...)
	want := play(t, srv.Address(), direct.Name, all)

	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, setup...)
	hide(t, db, "account", "nokey", "child")
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, columnsObserver(&events{}))
	got := play(t, r.addr.String(), db.Name, all)
	for _, lines := range []map[string][]string{want, got} { // the number of a column behind the hidden ones is another one
		lines[all[0].name] = slices.DeleteFunc(lines[all[0].name], func(l string) bool { return l[0] == 'T' && strings.Contains(l, "later") })
	}
	compare(t, all, want, got)
}

func columnsObserver(ev *events) *pgwire.Observer {
	return pgwire.NewObserver(pgwire.ObserverConfig{
		Rewriter: postgres.New(rewrite.CaptureColumns),
		Recorder: record.NewRecorder("test", ev.sink),
	})
}

// hide gives tables the hidden columns.
func hide(t *testing.T, db testserver.Database, tables ...string) {
	t.Helper()
	for _, table := range tables {
		db.Exec(t, fmt.Sprintf(`ALTER TABLE %s ADD COLUMN wc_row_id uuid DEFAULT gen_random_uuid(), ADD COLUMN wc_writers text DEFAULT '%s',
			ALTER COLUMN wc_writers SET DEFAULT %s`, table, postgres.StampUnknown, postgres.StampDefault))
	}
}
