package postgres_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/condition"
)

// clock is a random expression of the server's time.
func (c composer) clock(depth int) string {
	at := c.pick("now()", "CURRENT_TIMESTAMP", "current_timestamp(0)", "localtimestamp", "current_date", "transaction_timestamp()", "pg_catalog.now()", "now()::date", "now()::timestamp", "CAST(now() AS timestamptz)", "current_date::timestamp", "localtimestamp(3)", "now() AT TIME ZONE 'utc'")
	if depth == 0 || c.IntN(2) == 0 {
		return at
	}
	in := c.clock(depth - 1)
	return c.pick("("+in+" - interval '1 hour')", "("+in+" + interval '7 days')", "("+in+" - '1 month 2 hours'::interval)", "date_trunc('day', "+in+")", "(current_date + 1)", "(current_date - 7)", "("+in+")::date", "("+in+")::timestamptz")
}

// TestClocks compares what conditions on the server's time are said to be of rows with what the server says, in three time zones, also of answers without rows.
func TestClocks(t *testing.T) {
	conn := testserver.Postgres(t).Database(t).Postgres(t).PgConn()
	exec(t, conn, "CREATE TABLE c (id int PRIMARY KEY, n int, d date, l timestamp, z timestamptz)")
	cat := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	r.WantAll()
	c := composer{rand.New(rand.NewPCG(28, 11))}
	// What a statement tells without any row of the table, and how many of its first columns are the client's.
	forms := []struct {
		text  string
		empty bool
	}{
		{"SELECT id FROM c WHERE %s", true}, {"SELECT * FROM c WHERE %s ORDER BY d, id DESC", true}, {"SELECT id, n FROM c WHERE %s ORDER BY id LIMIT 3", true}, {"SELECT count(*) FROM c WHERE %s", true},
		{"SELECT EXISTS (SELECT 1 FROM c WHERE %s)", true}, {"SELECT n, count(*) FROM c WHERE %s GROUP BY n", false}, {"SELECT id FROM c WHERE %s FOR UPDATE", false}, {"UPDATE c SET n = 1 WHERE %s", false}, {"DELETE FROM c WHERE %s", false},
	}
	counts := map[condition.Truth]int{}
	for _, zone := range []string{"UTC", "Asia/Tokyo", "America/St_Johns"} {
		session := postgres.Session{UTC: zone == "UTC"}
		exec(t, conn, "BEGIN; SET LOCAL TimeZone = '"+zone+"'")
		for i, by := range []string{"0 seconds", "1 second", "-1 second", "1 hour", "-1 hour", "3 hours", "-9 hours", "1 day", "-1 day", "7 days", "-7 days", "-1 month -2 hours", "1 microsecond"} {
			exec(t, conn, fmt.Sprintf("INSERT INTO c VALUES (%d, 1, current_date + '%s'::interval, localtimestamp + '%[2]s'::interval, now() + '%[2]s'::interval)", 2*i, by))
			exec(t, conn, fmt.Sprintf("INSERT INTO c VALUES (%d, 2, now() + '%s'::interval, date_trunc('day', localtimestamp) + '%[2]s'::interval, date_trunc('second', now()) + '%[2]s'::interval)", 2*i+1, by))
		}
		exec(t, conn, "INSERT INTO c VALUES (98, 3, NULL, NULL, NULL), (99, 3, 'infinity', '-infinity', 'infinity')")
		images := map[string]condition.Image{}
		for _, a := range written(t, conn, r.Script("UPDATE c SET id = id", cat, session)) {
			if image, err := condition.ParseImage(a.Image); err == nil && a.Op == history.OpUpdate {
				images[a.Row.Key] = image
			}
		}
		for k := range 600 {
			column, at := c.pick("d", "l", "z", "coalesce(z, '2026-01-01 0:00+00')", "z::date", "l::date", "l + interval '2 hours'"), c.clock(2)
			where := column + " " + c.pick("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM") + " " + at
			switch c.IntN(6) {
			case 0:
				where = at + c.pick(" < ", " >= ") + column
			case 1:
				where = column + " BETWEEN " + at + " AND " + c.clock(1)
			case 2:
				where = "NOT (" + where + " AND n < 3)"
			}
			exec(t, conn, "SAVEPOINT s")
			res, err := conn.Exec(t.Context(), "SELECT id, ("+where+") FROM c").ReadAll()
			if err != nil { // an error of the client's
				exec(t, conn, "ROLLBACK TO s")
				continue
			}
			form, none := forms[k%len(forms)], c.IntN(3) == 0
			text := where
			if none {
				text = "id < 0 AND " + text
			}
			sc := r.Script(fmt.Sprintf(form.text, text), cat, session)
			p := sc.Plans[0]
			answer, err := conn.Exec(t.Context(), sc.SQL).ReadAll()
			exec(t, conn, "ROLLBACK TO s")
			if err != nil || len(p.Asks) != 1 {
				t.Fatalf("%s: %v; %s", sc.SQL, err, p.Unread)
			}
			of, moments := atMoments(p, 0, answer[0].Rows)
			if none {
				of = of.Args[1]
			}
			got := asTheServer(t, where+" in "+zone, of, images, res[0].Rows)
			if len(moments) > 0 || form.empty {
				for _, truth := range got {
					counts[truth]++
				}
			}
		}
		exec(t, conn, "ROLLBACK")
	}
	if t.Logf("%v", counts); counts[condition.True]+counts[condition.False] < counts[condition.Unsure] || counts[condition.True] < 1000 {
		t.Errorf("false, null, true, unsure: %v", counts)
	}
}

// atMoments is the condition of what a plan asks under a number, with the values that the rows of the answer tell, and these.
func atMoments(p *rewrite.Plan, ask int, rows [][][]byte) (of condition.Condition, moments []condition.Value) {
	for _, row := range rows {
		moments = rewrite.ReadMoments(row[len(row)-p.Moments:])
	}
	return p.Asks[ask].Where.Bind(func(int) (condition.Value, bool) { return nil, false }).At(moments), moments
}

// asTheServer compares a condition with the server's answer, rows of a key and a truth value, and gives what it is for each of them.
func asTheServer(t *testing.T, what string, of condition.Condition, images map[string]condition.Image, rows [][][]byte) (list []condition.Truth) {
	t.Helper()
	for _, row := range rows {
		want := map[string]condition.Truth{"": condition.Null, "t": condition.True, "f": condition.False}[string(row[1])]
		got := of.Holds(images[string(row[0])])
		if got != want && got != condition.Unsure {
			t.Fatalf("%s of %v: %d, the server says %d (%s)", what, images[string(row[0])], got, want, of.String())
		}
		list = append(list, got)
	}
	return list
}
