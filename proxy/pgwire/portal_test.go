package pgwire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestContinuedPortals fetches the rows of portals in parts, as JDBC does with setFetchSize: the rows belong to the statement that opened the portal.
func TestContinuedPortals(t *testing.T) {
	const open = "P s|SELECT k FROM t ORDER BY k"
	playFetched(t, []fetched{
		{"in parts", []string{"Q BEGIN", open, "B c s||", "E c 1", "S", "2Q UPDATE t SET v = v + 1", "E c 1", "S", "E c 0", "S", "Q SELECT k FROM t WHERE k = 1", "Q COMMIT"},
			"1 exact 1; 1 exact 2; 1 exact 3; 2 exact 1"},
		{"one batch", []string{"Q BEGIN", open, "B c s||", "E c 1", "E c 1", "E c 5", "S", "Q COMMIT"}, "1 exact 1; 1 exact 2; 1 exact 3"},
		{"an implicit transaction", []string{open, "B c s||", "E c 2", "H", "W s 1", "E c 2", "S"}, "1 exact 1 2; 1 exact 3"},
		{"not in parts", []string{"Q BEGIN", open, "B c s||", "E c 9", "S", "Q COMMIT"}, "1 exact 1 2 3"},
		{"two portals", []string{"Q BEGIN", open, "B c s||", "B d s||", "E c 1", "E d 1", "E c 1", "E d 2", "S", "Q COMMIT"},
			"1 exact 1; 2 exact 1; 1 exact 2; 2 exact 2 3"},
		{"a name used again", []string{"Q BEGIN", open, "B c s||", "E c 1", "C Pc", "B c s||", "E c 1", "S", "Q COMMIT"}, "1 exact 1; 2 exact 1"},
		{"the unnamed portal bound again", []string{"Q BEGIN", open, "B  s||", "E  1", "B  s||", "E  1", "S", "Q COMMIT"}, "1 exact 1; 2 exact 1"},
		{"the first one ignored", []string{"Q BEGIN", open, "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "E c 1", "S", "Q ROLLBACK TO a", "E c 1", "E c 1", "S", "Q COMMIT"},
			"3 error; 5 exact 1; 5 exact 2"},
		{"a write, ignored first", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 WHERE k < 3", "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "E c 0", "S", "Q ROLLBACK TO a", "E c 0", "S", "Q COMMIT"},
			"3 error; 5 exact 1 2"},
		{"a write", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 RETURNING k", "B c s||", "E c 1", "S", "E c 9", "S", "Q SELECT k FROM t WHERE k = 1", "Q COMMIT"},
			"1 approximate 1; 1 approximate 2 3; 2 exact 1"},
		{"ignored, as the client knew", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 WHERE k < 3", "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "H", "W E 1", "E c 0", "S", "Q ROLLBACK TO a", "E c 0", "S", "Q COMMIT"},
			"2 error; 4 exact 1 2"},
		{"another transaction", []string{"Q BEGIN", open, "B c s||", "E c 1", "S", "Q COMMIT", "Q BEGIN", open, "E c 1", "S", "Q ROLLBACK", "Q SELECT k FROM t WHERE k = 2"}, "1 exact 1; 1 error; 1 exact 2"},
	})
}

// TestCursors fetches the rows of cursors of SQL: they belong to the statement that declared the cursor.
func TestCursors(t *testing.T) {
	const declare, hold = "Q DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k", "Q DECLARE h CURSOR WITH HOLD FOR SELECT k FROM t ORDER BY k"
	playFetched(t, []fetched{
		{"in parts", []string{"Q BEGIN", declare, "Q FETCH 1 FROM c", "2Q UPDATE t SET v = v + 1", "Q FETCH c", "Q FETCH ALL IN c", "Q SELECT k FROM t WHERE k = 1", "Q COMMIT"},
			"1 exact; 1 exact 1; 1 exact 2; 1 exact 3; 2 exact 1"},
		{"one text", []string{"Q BEGIN; DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k; FETCH 2 FROM c; FETCH ALL FROM c; COMMIT"}, "1 exact; 1 exact 1 2; 1 exact 3"},
		{"several queries at once", []string{"q BEGIN", "q DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k", "q FETCH 2 FROM c", "q FETCH 2 FROM c", "q COMMIT", "W Z 5"}, "1 exact; 1 exact 1 2; 1 exact 3"},
		{"backwards and binary", []string{"Q BEGIN", "Q DECLARE \"C x\" BINARY INSENSITIVE SCROLL CURSOR FOR SELECT k, v FROM t ORDER BY k", "Q FETCH LAST FROM \"C x\"", "Q FETCH BACKWARD 1 FROM \"C x\"", "Q FETCH ABSOLUTE 1 IN \"C x\"", "Q FETCH 0 FROM \"C x\"", "Q COMMIT"},
			"1 exact; 1 exact 3; 1 exact 2; 1 exact 1; 1 exact 1"},
		{"CURRENT OF", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k FOR UPDATE", "Q FETCH 1 FROM c", "Q UPDATE t SET v = 9 WHERE CURRENT OF c", "Q MOVE 1 FROM c", "Q FETCH 1 FROM c", "Q COMMIT", "Q SELECT k FROM t WHERE v = 9"},
			"1 exact; 1 exact 1; 2 exact 1; 3 opaque; 1 exact 3; 1 exact 1"},
		{"CURRENT OF, behind another's update", []string{"Q BEGIN", declare, "Q FETCH 1 FROM c", "2Q UPDATE t SET v = v + 1", "Q UPDATE t SET v = 9 WHERE CURRENT OF c", "Q FETCH 1 FROM c", "Q DELETE FROM t WHERE CURRENT OF c RETURNING v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 exact 1; 1 exact 2; 3 exact 2"},
		{"CURRENT OF, without a key, and without a row", []string{"Q INSERT INTO keyless VALUES (1)", "Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k FROM keyless", "Q FETCH 1 FROM c", "Q UPDATE keyless SET k = 2 WHERE CURRENT OF c", "Q FETCH 1 FROM c", "Q SAVEPOINT a", "Q DELETE FROM keyless WHERE CURRENT OF c", "Q ROLLBACK TO a", "Q COMMIT"},
			"1 exact ; 1 exact; 1 exact ; 2 opaque; 1 exact; 4 error"},
		{"two, one closed, one declared again", []string{"Q BEGIN", declare, "Q DECLARE d CURSOR FOR SELECT v, k FROM t ORDER BY k DESC", "Q FETCH 1 FROM d", "Q FETCH 1 FROM c", "Q CLOSE c", "Q DECLARE c CURSOR FOR SELECT 7 AS k", "Q FETCH 1 FROM c", "Q CLOSE ALL", declare, "Q FETCH 1 FROM c", "Q COMMIT"},
			"1 exact; 2 exact; 2 exact 3; 1 exact 1; 5 opaque; 7 exact; 7 exact 1"},
		{"refused", []string{"Q FETCH 1 FROM c", declare, "Q BEGIN", declare, "Q SAVEPOINT a", declare, "Q ROLLBACK TO a", "Q FETCH 1 FROM c", "Q SAVEPOINT b", "Q FETCH 1 FROM d", "Q ROLLBACK TO b", "Q CLOSE c", "Q FETCH 1 FROM c", "Q ROLLBACK"},
			"1 error; 1 error; 1 exact; 3 error; 1 exact 1; 6 error; 9 error"},
		{"another transaction", []string{"Q BEGIN", declare, "Q FETCH 1 FROM c", "Q COMMIT", "Q BEGIN", "Q SAVEPOINT a", "Q FETCH 1 FROM c", "Q ROLLBACK TO a", "Q DECLARE c CURSOR FOR SELECT 1", "Q FETCH 1 FROM c", "Q ROLLBACK"}, "1 exact; 1 exact 1; 2 error; 5 opaque"},
		{"aggregates and subqueries", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT count(*) FROM t", "Q FETCH 1 FROM c", "Q DECLARE d CURSOR FOR SELECT k FROM t WHERE v = (SELECT max(v) FROM t) ORDER BY k", "Q FETCH 1 FROM d", "Q COMMIT"},
			"1 opaque; 2 opaque; 3 opaque; 4 opaque"},
		{"with hold, in autocommit", []string{hold, "2Q UPDATE t SET v = v + 1", "Q FETCH 5 FROM h", "Q FETCH 5 FROM h", "Q CLOSE h"}, "1 exact; 1 exact 1 2 3; 1 exact; 1 exact"},
		{"with hold, longer", []string{hold, "Q FETCH 2 FROM h", "Q FETCH 2 FROM h", "Q BEGIN", "Q FETCH BACKWARD 1 FROM h", "Q COMMIT", "Q DISCARD ALL", "Q FETCH 1 FROM h"}, "1 exact; 1 exact 1 2; 1 exact; 1 opaque; 1 opaque; 1 error"},
		{"with hold, within", []string{"Q BEGIN", hold, "Q FETCH 1 FROM h", "Q COMMIT", "Q FETCH 1 FROM h", "Q CLOSE h"}, "1 exact; 1 exact 1; 1 exact 2; 1 exact"},
		{"with hold, rolled back", []string{"Q BEGIN", hold, "Q ROLLBACK", "Q FETCH 1 FROM h"}, "1 exact; 1 error"},
		{"by the protocol", []string{"Q BEGIN", declare, "P f|FETCH 1 FROM c", "D Sf", "B  f|||1", "D P", "E  0", "S", "B  f||", "E  0", "S", "Q COMMIT", "Q BEGIN", "Q DECLARE c CURSOR FOR SELECT max(k) AS k FROM t", "B  f||", "E  0", "S", "Q ROLLBACK", "Q BEGIN", declare, "B  f|||1", "E  0", "S", "Q COMMIT"},
			"1 exact; 1 exact 1; 1 exact 2; 1 opaque; 2 opaque; 1 exact; 1 exact 1"},
		{"by the protocol, at once", []string{"Q BEGIN", "q DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k", "P |FETCH 2 FROM c", "D S", "B  |||1", "E  1", "E  0", "S", "W Z 1", "Q COMMIT"}, "1 exact; 1 exact 1; 1 exact 2"},
		{"as portals", []string{"Q BEGIN", declare, "D Pc", "E c 1", "S", "E c 0", "S", "q DECLARE d CURSOR FOR SELECT k, v FROM t ORDER BY k", "D Pd", "E d 2", "S", "W Z 1", "C Pc", "S", "Q FETCH 1 FROM d", "Q COMMIT", hold, "D Ph", "E h 2", "S"},
			"1 exact; 1 exact 1; 1 exact 2 3; 2 exact; 2 exact 1 2; 2 exact 3; 1 exact; 1 opaque"},
		{"declared by the protocol", []string{"Q BEGIN", "P |DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k", "B  ||", "E  0", "S", "Q FETCH 1 FROM c", "Q COMMIT"}, "1 opaque; 2 opaque"},
		{"by a function", []string{"Q BEGIN", declare, "Q SELECT fetched('c')", "Q COMMIT"}, "1 exact; 2 opaque"},
		{"not understood", []string{"Q BEGIN", declare, "Q FETCH 1 FROM c; SELECT '\\' FROM (", "Q ROLLBACK", "Q SET standard_conforming_strings = off", "Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k FROM t ORDER BY k", "Q FETCH 1 FROM c; SELECT '\\\\'", "Q COMMIT"},
			"1 exact; 2 error; 1 exact; 2 opaque"},
	})
}

// TestCursorsOfOtherTables updates and deletes the current rows of cursors over views, inheritance, partitions and triggers, and behind other transactions.
func TestCursorsOfOtherTables(t *testing.T) {
	const (
		one, begin = "Q FETCH 1 FROM c", "Q BEGIN ISOLATION LEVEL REPEATABLE READ"
		two        = "2Q UPDATE t SET v = v + 1 WHERE k = 1"
		update     = "Q UPDATE t SET v = 9 WHERE CURRENT OF c RETURNING v"
		declare    = "Q DECLARE c CURSOR FOR SELECT k, v FROM t"
	)
	playBeside(t, []string{
		"CREATE TABLE t (k int PRIMARY KEY, v int)", "CREATE VIEW w AS SELECT k, v FROM t",
		"CREATE TABLE parent (k int PRIMARY KEY, v int)", "CREATE TABLE child () INHERITS (parent)",
		"CREATE TABLE parts (k int PRIMARY KEY, v int) PARTITION BY RANGE (k)", "CREATE TABLE parts1 PARTITION OF parts FOR VALUES FROM (0) TO (2)", "CREATE TABLE parts2 PARTITION OF parts FOR VALUES FROM (2) TO (9)",
		"CREATE TABLE fired (k int PRIMARY KEY, v int)",
		"CREATE FUNCTION fire() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN IF NEW.v < 0 THEN RETURN NULL; END IF; NEW.v := NEW.v + 100; RETURN NEW; END'",
		"CREATE TRIGGER fires BEFORE UPDATE ON fired FOR EACH ROW EXECUTE FUNCTION fire()",
	}, "TRUNCATE t, parent, child, parts, fired; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3); INSERT INTO parent VALUES (1, 1); INSERT INTO child VALUES (1, 1), (2, 2); INSERT INTO parts VALUES (1, 1), (2, 2); INSERT INTO fired VALUES (1, 1), (2, 2)", []fetched{
		{"a view", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM w", one, "Q UPDATE t SET v = 9 WHERE CURRENT OF c", "Q SAVEPOINT a", "Q UPDATE w SET v = 9 WHERE CURRENT OF c", "Q ROLLBACK TO a", "Q COMMIT"},
			"1 opaque; 2 opaque; 3 exact 1; 5 error"},
		{"a parent", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM parent", one, one, "Q UPDATE parent SET v = 9 WHERE CURRENT OF c RETURNING k, v", one, "Q DELETE FROM parent WHERE CURRENT OF c RETURNING k, v", "Q SAVEPOINT a", "Q UPDATE ONLY parent SET v = 9 WHERE CURRENT OF c RETURNING k, v", "Q ROLLBACK TO a", "Q COMMIT"},
			"1 opaque; 2 opaque; 3 opaque; 4 opaque; 5 opaque; 6 opaque; 8 opaque"},
		{"a parent alone", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM ONLY parent", one, "Q UPDATE ONLY parent SET v = 9 WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 opaque; 2 opaque; 3 opaque"},
		{"a child", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM parent", one, one, "Q UPDATE child SET v = 9 WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 opaque; 2 opaque; 3 opaque; 4 opaque"},
		{"partitions", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM parts", one, "Q UPDATE parts SET v = 9 WHERE CURRENT OF c RETURNING k, v", one, "Q DELETE FROM parts WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 exact 1; 1 exact 2; 3 exact 2"},
		{"a partition", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM parts", one, "Q UPDATE parts1 SET v = 9 WHERE CURRENT OF c RETURNING k, v", one, "Q UPDATE parts1 SET v = 9 WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 exact 1; 1 exact 2; 3 exact"},
		{"moved", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM parts", one, "Q UPDATE parts SET k = 5 WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 opaque"},
		{"a trigger", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k, v FROM fired FOR UPDATE", one, "Q UPDATE fired SET v = 9 WHERE CURRENT OF c RETURNING k, v", one, "Q UPDATE fired SET v = -1 WHERE CURRENT OF c RETURNING k, v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 approximate 1; 1 exact 2; 3 approximate"},
		{"deleted by another", []string{"Q BEGIN", declare, one, "2Q DELETE FROM t WHERE k = 1", update, "Q COMMIT"}, "1 exact; 1 exact 1; 1 exact 1; 2 exact"},
		{"updated twice by another", []string{"Q BEGIN", declare, one, two, two, update, "Q COMMIT"}, "1 exact; 1 exact 1; 2 exact 1"},
		{"updated by another, one snapshot", []string{begin, declare, one, two, update, "Q ROLLBACK"}, "1 exact; 1 exact 1; 2 error"},
		{"deleted by another, one snapshot", []string{begin, declare, one, "2Q DELETE FROM t WHERE k = 1", "Q DELETE FROM t WHERE CURRENT OF c", "Q ROLLBACK"},
			"1 exact; 1 exact 1; 1 exact 1; 2 error"},
		{"updated by itself", []string{"Q BEGIN", declare, one, "Q UPDATE t SET v = 5 WHERE k = 1", update, update, "Q DELETE FROM t WHERE CURRENT OF c", update, "Q COMMIT"},
			"1 exact; 1 exact 1; 2 exact 1; 3 exact 1; 4 exact 1; 5 exact 1; 6 exact"},
		{"locked", []string{"Q BEGIN", declare + " FOR UPDATE", one, update, update, "Q COMMIT"}, "1 exact; 1 exact 1; 2 exact 1; 3 exact 1"},
		{"its key changed", []string{"Q BEGIN", declare, one, "Q UPDATE t SET k = 7 WHERE CURRENT OF c RETURNING k", "Q UPDATE t SET v = k WHERE CURRENT OF c RETURNING v", "Q COMMIT"},
			"1 exact; 1 exact 1; 2 approximate 7; 3 exact 7"},
		{"before the first row, and behind the last", []string{"Q BEGIN", declare, "Q SAVEPOINT a", update, "Q ROLLBACK TO a", "Q FETCH ALL FROM c", "Q SAVEPOINT a", update, "Q ROLLBACK TO a", "Q COMMIT"},
			"1 exact; 3 error; 1 exact 1 2 3; 6 error"},
		{"another table's cursor", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT k FROM fired", one, "Q SAVEPOINT a", update, "Q ROLLBACK TO a", "Q COMMIT"},
			"1 opaque; 2 opaque; 4 error"},
		{"a join, and a sort", []string{"Q BEGIN", "Q DECLARE c CURSOR FOR SELECT t.k FROM t JOIN fired f ON f.k = t.k", one, "Q UPDATE t SET v = 9 WHERE CURRENT OF c RETURNING t.k", "Q DECLARE d CURSOR FOR SELECT k FROM t ORDER BY v + 1", "Q FETCH 1 FROM d", "Q SAVEPOINT a", "Q UPDATE t SET v = 9 WHERE CURRENT OF d", "Q ROLLBACK TO a", "Q COMMIT"},
			"1 exact; 1 exact 1 1; 2 error; 3 error; 4 error; 5 error; 6 error; 7 error"},
	})
}

// fetched is a session that fetches in parts.
type fetched struct {
	name  string
	steps []string // of two sessions; those of the second one begin with 2, and those of one past the proxy with 0
	want  string   // the first session's statements: number, what was seen, rows; "or" stands between what is seen sooner and later
}

// playFetched plays sessions directly and through the proxy, alone, where each message must be the same; and then beside a second session.
func playFetched(t *testing.T, list []fetched) {
	playBeside(t, []string{"CREATE TABLE t (k int PRIMARY KEY, v int)", "CREATE TABLE keyless (k int)", "CREATE FUNCTION fetched(c refcursor) RETURNS int LANGUAGE plpgsql AS 'DECLARE k int; BEGIN FETCH c INTO k; RETURN k; END'"},
		"TRUNCATE t; INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)", list)
}

// playBeside is playFetched with other tables, and with what fills them before each session.
func playBeside(t *testing.T, tables []string, fill string, list []fetched) {
	srv := testserver.Postgres(t)
	database := func() testserver.Database {
		db := srv.Database(t).As(testserver.AppTrust)
		db.Exec(t, tables...)
		return db
	}
	db, direct, through := database(), database(), database()
	ev := &events{}
	r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
	defer r.stop()
	for _, tt := range list {
		for _, d := range []testserver.Database{db, direct, through} {
			d.Exec(t, fill)
		}
		alone := []session{{name: tt.name, steps: slices.DeleteFunc(slices.Clone(tt.steps), func(step string) bool { return step[0] == '2' || step[0] == '0' })}}
		compare(t, alone, play(t, srv.Address(), direct.Name, alone), play(t, r.addr.String(), through.Name, alone))
		before := len(ev.all())
		one, two, past := dialWire(t, r.addr.String(), db.User, db.Name), dialWire(t, r.addr.String(), db.User, db.Name), dialWire(t, srv.Address(), db.User, db.Name)
		for _, step := range tt.steps {
			if other, ok := strings.CutPrefix(step, "2"); ok {
				two.step(other)
			} else if other, ok := strings.CutPrefix(step, "0"); ok {
				past.step(other)
			} else {
				one.step(step)
			}
		}
		one.step("X")
		two.step("X")
		past.step("X")
		got, want := anyOrder(statements(ev.all()[before:])), anyOrder(tt.want)
		if either := strings.Split(tt.want, " or "); len(either) > 1 && slices.ContainsFunc(either, func(s string) bool { return anyOrder(s) == got }) {
			want = got
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
}

// anyOrder sorts the rows of each statement: in which order a cascade comes to rows depends on the server's statistics.
func anyOrder(shown string) string {
	list := strings.Split(shown, "; ")
	for i, one := range list {
		words := strings.Fields(one)
		slices.Sort(words[min(2, len(words)):])
		list[i] = strings.Join(words, " ")
	}
	return strings.Join(list, "; ")
}

// statements shows the statements that read or wrote something, or failed: number, what was seen, rows.
func statements(list []history.Event) string {
	var got []string
	for _, e := range list {
		if e.Kind != history.EventStmt || strings.HasPrefix(e.SQL, "UPDATE t SET v = v") || e.Coverage == history.CoverageNone && e.Error == nil {
			continue
		}
		said := fmt.Sprintf("%d %s", e.N, e.Coverage)
		if e.Error != nil {
			said = fmt.Sprintf("%d error", e.N)
		}
		for _, a := range e.Accesses {
			said += " " + a.Row.Key
		}
		got = append(got, said)
	}
	return strings.Join(got, "; ")
}
