package postgres_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/condition"
)

// TestScalars compares what conditions on the value of a subquery are said to be of rows with what the server says, also of answers without rows.
func TestScalars(t *testing.T) {
	conn := testserver.Postgres(t).Database(t).Postgres(t).PgConn()
	columns := "i int, k bigint, m numeric, t text, d date, l timestamp, z timestamptz, u uuid, b bool"
	exec(t, conn, "CREATE TABLE a (id int PRIMARY KEY, "+columns+"); CREATE TABLE o (id int PRIMARY KEY, "+columns+")")
	for _, name := range []string{"a", "o"} {
		exec(t, conn, "INSERT INTO "+name+` VALUES (1, 3, 3, 3.50, 'ann', '2026-01-01', '2026-01-01 09:00', '2026-01-01 09:00+00', '6f1a2c3e-0000-4000-8000-000000000001', true),
			(2, -1, 9007199254740993, 9007199254740993.0000001, E'a"\\n', '2026-03-01', '2026-01-01 00:00:00.000001', '2026-01-01 23:30-02', '6f1a2c3e-0000-4000-8000-000000000002', false),
			(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (4, 7, 2, 'NaN', '', 'infinity', '-infinity', 'infinity', '6f1a2c3e-0000-4000-8000-000000000001', true), (5, 0, 0, 0.1, 'ß', '0044-03-15 BC', '2026-01-02', '1999-12-31 12:00+05:30', NULL, NULL)`)
	}
	cat := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	r.WantAll()
	c := composer{rand.New(rand.NewPCG(29, 11))}
	counts, told := map[condition.Truth]int{}, 0
	for _, zone := range []string{"UTC", "Asia/Tokyo"} {
		session := postgres.Session{UTC: zone == "UTC"}
		exec(t, conn, "SET TimeZone = '"+zone+"'; SET DateStyle = 'SQL, DMY'")
		images := map[string]condition.Image{}
		exec(t, conn, "BEGIN")
		for _, a := range written(t, conn, r.Script("UPDATE a SET id = id", cat, session)) {
			if image, err := condition.ParseImage(a.Image); err == nil && a.Op == history.OpUpdate {
				images[a.Row.Key] = image
			}
		}
		exec(t, conn, "ROLLBACK")
		for range 500 {
			column, other := c.pick("i", "k", "m", "t", "d", "l", "z", "u", "b"), c.pick("i", "k", "m")
			if !strings.Contains("ikm", column) {
				other = column
			}
			value := c.pick("max(", "min(", "sum(", "avg(", "count(", "coalesce(max(") + other + ")"
			if strings.HasPrefix(value, "coalesce") {
				value += c.pick(", 0)", ", 1.5)", ", -1)")
			}
			value = c.pick(value, value, "count(*)", other)
			where := c.pick("", " WHERE id > 2", " WHERE id < 0", " WHERE i = 7", " WHERE t <> 'ann' AND id < 9")
			if value == other {
				where = c.pick(" WHERE id = 1", " WHERE id = 2", " WHERE id = 3", " WHERE id = 4", " WHERE id = 77")
			}
			sub, op := "(SELECT "+value+" FROM o"+where+")", c.pick("=", "<>", "<", "<=", ">", ">=")
			compares := column + " " + op + " " + sub
			if c.IntN(4) == 0 {
				compares = sub + " " + op + " " + column
			}
			res, err := conn.Exec(t.Context(), "SELECT id, ("+compares+") FROM a").ReadAll()
			if err != nil { // an error of the client's
				continue
			}
			none := c.IntN(3) == 0
			text := compares
			if none {
				text += " AND id < 0"
			}
			sc := r.Script(c.pick("SELECT id FROM a WHERE ", "SELECT count(*) FROM a WHERE ", "SELECT * FROM a WHERE ")+text+c.pick("", " LIMIT 9"), cat, session)
			p := sc.Plans[0]
			answer, err := conn.Exec(t.Context(), sc.SQL).ReadAll()
			if err != nil {
				t.Fatalf("%s: %v", sc.SQL, err)
			}
			if p.Moments == 0 { // of a type that is not compared
				continue
			}
			told++
			at := slices.IndexFunc(p.Asks, func(a rewrite.Ask) bool { return a.Table == "public.a" })
			if at < 0 {
				t.Fatalf("%s: %s", sc.SQL, p.Unread)
			}
			of, _ := atMoments(p, at, answer[0].Rows)
			if none {
				of = of.Args[0]
			}
			for _, truth := range asTheServer(t, compares+" in "+zone, of, images, res[0].Rows) {
				counts[truth]++
			}
		}
	}
	if t.Logf("%d told, %v", told, counts); told < 300 || counts[condition.True] < 300 || counts[condition.False] < 300 || counts[condition.Null] < 100 || counts[condition.Unsure] > counts[condition.True]+counts[condition.False] {
		t.Errorf("%d told; false, null, true, unsure: %v", told, counts)
	}
}

// TestScalarLimits: subqueries whose values the answer does not tell. Evaluating them once more might find an error or another value, or they are of the same table. What one
// takes together for each row is told (counts.go).
func TestScalarLimits(t *testing.T) {
	conn := testserver.Postgres(t).Database(t).Postgres(t).PgConn()
	exec(t, conn, "CREATE TABLE a (id int PRIMARY KEY, n int, f float8, t text); CREATE TABLE o (id int PRIMARY KEY, n int, f float8, t text); CREATE VIEW v AS SELECT * FROM o")
	cat := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	for sub, want := range map[string]bool{
		"SELECT max(n) FROM o": true, "SELECT n FROM o WHERE id = 3": true, "SELECT max(n) FROM o WHERE t = $1": true,
		"SELECT n FROM o WHERE t = 'x'": false, "SELECT n FROM o WHERE id = 3 FOR UPDATE": false, "SELECT max(n) FROM o WHERE 1 / n > 0": false, "SELECT max(n) FROM o WHERE n > random()": false,
		"SELECT max(n) FROM o WHERE o.id = a.id": true, "SELECT max(n + a.id) FROM o WHERE o.id = a.id": false, "SELECT max(f) FROM o": false, "SELECT max(n) FROM v": false, "SELECT max(n) FROM o GROUP BY t": false, "SELECT max(n / id) FROM o": false,
		"SELECT max(n) FROM a b": false, "SELECT max(n) FROM o WHERE n = $2": false,
	} {
		p := r.Script("SELECT id FROM a WHERE n > ("+sub+") AND id <> $2", cat, postgres.Session{}).Plans[0]
		asks := slices.ContainsFunc(p.Asks, func(a rewrite.Ask) bool { return a.Table == "public.a" })
		if asks != want || !want && p.Unread == "" {
			t.Errorf("%s: asks %t, want %t; %s", sub, asks, want, p.Unread)
		}
	}
}
