package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestPrepared executes statements with parameters, often enough for a generic plan, in both result formats.
func TestPrepared(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct {
		sql    string
		params []string
		facts  string
	}{
		{`SELECT * FROM account WHERE id = $1`, []string{"1"}, "read account 1"},
		{`SELECT $2::text || owner, id FROM account a WHERE id = $1 ORDER BY $1`, []string{"1", "x"}, "read account 1"},
		{`SELECT v FROM pair WHERE a = $1 AND b = $2`, []string{"1", "x y"}, "read pair 1 'x y'"},
		{`SELECT sum(balance) FROM account WHERE id <= $1`, []string{"2"}, "read account 1, read account 2"},
		{`SELECT count(*) FROM big WHERE grp = $1 AND id < $2`, []string{"3", "20"}, "read big 13, read big 3"},
		{`SELECT max(grp), $1::text FROM big WHERE grp = $2 AND id < $3`, []string{"x", "3", "10"}, "read big 3"},
		{`SELECT DISTINCT account_id, $2 FROM orders WHERE id < $1`, []string{"12", "x"}, "read orders 10, read orders 11"},
		{`SELECT id FROM account WHERE id = $1 UNION SELECT id FROM orders WHERE note = $2 OR $1 = id`, []string{"1", "z"}, "read account 1, read orders 12"},
		{`SELECT owner FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = $1) AND balance > $2`, []string{"12", "0"}, "read account 2, read orders 12"},
		{`SELECT id, (SELECT count(*) FROM orders o WHERE o.account_id = a.id AND o.id >= $2) FROM account a WHERE id = $1`, []string{"1", "11"}, "read account 1, read orders 11"},
		{`SELECT account_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > $1`, []string{"1"}, "read orders 10, read orders 11, read orders 12, read orders 13"},
		{`SELECT account_id, count(*) FROM orders WHERE id < $1 GROUP BY 1`, []string{"12"}, "read orders 10, read orders 11"},
		{`INSERT INTO account (id, owner) VALUES ($1, $2)`, []string{"50", "z"}, "insert account 50"},
		{`INSERT INTO account (id, owner) VALUES ($1, $2) RETURNING id, owner`, []string{"50", "z"}, "insert account 50"},
		{`INSERT INTO account (id, owner) SELECT * FROM unnest($1::int[], $2::text[])`, []string{"{50,51}", "{a,b}"}, "insert account 50, insert account 51"},
		{`UPDATE account SET balance = balance + $1 WHERE id = $2`, []string{"5", "2"}, "update account 2"},
		{`UPDATE nokey SET w = $1 WHERE v = $2 RETURNING w`, []string{"q", "1"}, "update nokey, update nokey"},
		{`UPDATE account SET balance = 1 WHERE id = $1 AND (SELECT count(*) FROM orders WHERE id > $2) > $3`, []string{"2", "11", "1"}, "read orders 12, read orders 13, update account 2"},
		{`UPDATE account SET balance = 1 WHERE id = $1 AND (SELECT count(*) FROM orders WHERE id > $2) > $3`, []string{"2", "11", "5"}, ""},
		{`DELETE FROM orders WHERE id = $1`, []string{"11"}, "delete orders 11"},
		{`SELECT id FROM account WHERE id = $1 FOR UPDATE`, []string{"3"}, "lock account 3"},
	} {
		t.Run(f.sql, func(t *testing.T) {
			sc := r.Statement(f.sql, c, postgres.Session{})
			p := sc.Plans[0]
			if p.Coverage != history.CoverageExact && p.WithRows != history.CoverageExact && !strings.Contains(f.sql, "SELECT * FROM unnest") {
				t.Errorf("coverage %q: %s", p.Coverage, p.Why)
			}
			direct := describe(t, conn, "d", f.sql)
			ours := describe(t, conn, "o", sc.SQL)
			if d := cmp.Diff(direct.ParamOIDs, ours.ParamOIDs); d != "" {
				t.Errorf("parameters differ (-direct +rewritten):\n%s", d)
			}
			keep := len(ours.Fields) - p.Hidden
			if d := cmp.Diff(len(direct.Fields), keep); d != "" && !p.NoRows {
				t.Errorf("columns differ (-direct +rewritten):\n%s", d)
			}
			var params [][]byte
			for _, s := range f.params {
				params = append(params, []byte(s))
			}
			for i := range 8 {
				format := []int16{int16(i % 2)}
				exec(t, conn, "BEGIN")
				want, _ := take(t, conn.ExecPrepared(t.Context(), "d", params, nil, format), nil)
				exec(t, conn, "ROLLBACK; BEGIN")
				got, acc := take(t, conn.ExecPrepared(t.Context(), "o", params, nil, format), p)
				exec(t, conn, "ROLLBACK")
				if d := cmp.Diff(want, got); d != "" {
					t.Errorf("execution %d (-direct +rewritten):\n%s", i, d)
				}
				if facts(acc) != f.facts {
					t.Errorf("execution %d tells %q, want %q", i, facts(acc), f.facts)
				}
			}
			exec(t, conn, "DEALLOCATE ALL")
		})
	}
}

func describe(t *testing.T, conn *pgconn.PgConn, name, sql string) *pgconn.StatementDescription {
	t.Helper()
	sd, err := conn.Prepare(t.Context(), name, sql, nil)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return sd
}

// TestAfterWaiting checks what is told when a statement waits for another transaction and then goes on with the
// version that this one made (EvalPlanQual).
func TestAfterWaiting(t *testing.T) {
	a, c, db := setUp(t)
	exec(t, a, "CREATE TABLE chain (v int, w int); INSERT INTO chain VALUES (1, 0), (2, 0)")
	c = catalog(t, a)
	b := db.Postgres(t).PgConn()
	watch := db.Postgres(t).PgConn()
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct{ first, second, truth string }{
		{`UPDATE chain SET w = w + 1 WHERE v = 1`, `UPDATE chain SET w = w + 10 WHERE v = 1`, `SELECT ctid, xmin FROM chain WHERE v = 1`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 1`, `UPDATE account SET id = id + 100 WHERE id = 1 OR balance < 0`, `SELECT ctid, xmin FROM account WHERE id = 1`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 2`, `SELECT balance FROM account WHERE id = 2 FOR UPDATE`, `SELECT ctid, xmin FROM account WHERE id = 2`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 2`, `DELETE FROM account WHERE id = 2`, `SELECT ctid, xmin FROM account WHERE id = 2`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 3`, `UPDATE account a SET balance = 7 FROM orders o WHERE a.id = 3 AND o.id = 11`, `SELECT ctid, xmin FROM orders WHERE id = 11`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 2`, `DELETE FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, `SELECT ctid, xmin FROM account WHERE id = 2`},
		{`UPDATE account SET balance = balance + 1 WHERE id = 2`, `UPDATE account SET balance = 0 WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, `SELECT ctid, xmin FROM orders WHERE id = 12`},
		{`UPDATE orders SET note = note || '1' WHERE id = 10`, `SELECT 1 FROM account a JOIN orders o ON o.account_id = a.id WHERE o.id = 10 FOR UPDATE OF o`, `SELECT ctid, xmin FROM orders WHERE id = 10`},
	} {
		t.Run(f.second, func(t *testing.T) {
			exec(t, a, "BEGIN;"+f.first)
			sc := r.Script(f.second, c, postgres.Session{})
			p := sc.Plans[0]
			if c := coverage(p); c != history.CoverageExact && c != "rows" {
				t.Fatalf("coverage %q: %s", p.Coverage, p.Why)
			}
			exec(t, b, "BEGIN")
			done := make(chan []history.Access)
			go func() {
				defer close(done)
				mrr := b.Exec(t.Context(), sc.SQL)
				for mrr.NextResult() {
					_, acc := take(t, mrr.ResultReader(), p)
					done <- acc
				}
				if err := mrr.Close(); err != nil {
					t.Error(err)
				}
			}()
			waiting := fmt.Sprintf("SELECT count(*) FROM pg_locks WHERE pid = %d AND NOT granted", b.PID())
			for rows(t, watch, waiting)[0][0] == "0" {
			}
			exec(t, a, "COMMIT")
			truth := rows(t, watch, f.truth)[0]
			want := truth[0] + "/" + truth[1]
			found := false
			for acc := range done {
				for _, x := range acc {
					found = found || x.Prev == want || x.Version == want
				}
				if !found {
					t.Errorf("version %s is not told: %+v", want, acc)
				}
			}
			exec(t, b, "ROLLBACK")
		})
	}
}

// TestChain follows a row without key through the transactions that wrote it.
func TestChain(t *testing.T) {
	conn, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	prev := ""
	for i := range 5 {
		sc := r.Script(fmt.Sprintf("UPDATE nokey SET v = v + %d WHERE w = 'b' OR length(w) > %d", i, 10+i), c, postgres.Session{})
		mrr := conn.Exec(t.Context(), sc.SQL)
		mrr.NextResult()
		_, acc := take(t, mrr.ResultReader(), sc.Plans[0])
		if err := mrr.Close(); err != nil {
			t.Fatal(err)
		}
		if len(acc) != 1 || prev != "" && acc[0].Prev != prev || acc[0].Version == acc[0].Prev {
			t.Fatalf("after %s: %+v", prev, acc)
		}
		prev = acc[0].Version
	}
}

// TestPrivileges checks that a user who may write but not read is left alone, and one under row security too.
func TestPrivileges(t *testing.T) {
	conn, _, db := setUp(t)
	exec(t, conn, `CREATE TABLE inbox (id int PRIMARY KEY, v int); CREATE TABLE half (id int PRIMARY KEY, secret int);
		ALTER TABLE secured NO FORCE ROW LEVEL SECURITY; INSERT INTO inbox VALUES (1, 1); INSERT INTO half VALUES (1, 1)`)
	other := db.As(db.Server.User).Postgres(t).PgConn()
	role := "writer_" + db.Name
	exec(t, other, fmt.Sprintf(`CREATE ROLE %[1]s; GRANT INSERT, UPDATE, DELETE ON inbox TO %[1]s; GRANT SELECT (id), UPDATE ON half TO %[1]s;
		GRANT ALL ON secured TO %[1]s; SET ROLE %[1]s`, role))
	defer exec(t, other, fmt.Sprintf("RESET ROLE; DROP OWNED BY %[1]s; DROP ROLE %[1]s", role))
	c := catalog(t, other)
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct {
		sql      string
		coverage history.Coverage
	}{
		{"INSERT INTO inbox VALUES (2, 2)", history.CoverageOpaque},
		{"UPDATE inbox SET v = 2", history.CoverageOpaque},
		{"SELECT id FROM half", history.CoverageOpaque},
		{"UPDATE half SET secret = 2 WHERE id = 1", history.CoverageOpaque},
		{"INSERT INTO secured VALUES (5, 1)", history.CoverageOpaque},
		{"UPDATE secured SET v = 1", history.CoverageOpaque},
		{"SELECT * FROM secured", history.CoverageApproximate},
		{"SELECT * FROM account", history.CoverageOpaque},
	} {
		sc := r.Script(f.sql, c, postgres.Session{})
		if got := sc.Plans[0].Coverage; got != f.coverage {
			t.Errorf("%s: coverage %q (%s), want %q", f.sql, got, sc.Plans[0].Why, f.coverage)
		}
		exec(t, other, "BEGIN")
		want, _ := once(t, other, f.sql, nil)
		exec(t, other, "ROLLBACK; BEGIN")
		got, _ := once(t, other, sc.SQL, sc.Plans[0])
		exec(t, other, "ROLLBACK")
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s (-direct +rewritten):\n%s", f.sql, d)
		}
	}
}

func once(t *testing.T, conn *pgconn.PgConn, sql string, p *rewrite.Plan) (answer, []history.Access) {
	t.Helper()
	mrr := conn.Exec(t.Context(), sql)
	var a answer
	var acc []history.Access
	if mrr.NextResult() {
		a, acc = take(t, mrr.ResultReader(), p)
	}
	if err := mrr.Close(); err != nil {
		a = answer{Err: refusal(err)}
	}
	return a, acc
}

// TestEncoding checks that a client whose encoding lacks characters of a key gets its answer all the same, and that
// the key has the same name for it.
func TestEncoding(t *testing.T) {
	conn, c, _ := setUp(t)
	exec(t, conn, "INSERT INTO pair VALUES (7, '日本', 9); CREATE TABLE word (w text PRIMARY KEY, v int); INSERT INTO word VALUES ('日', 1)")
	c = catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	for _, sql := range []string{
		"SELECT v FROM pair WHERE v = 9", "SELECT v FROM word", "SELECT count(*) FROM word", "UPDATE word SET w = w || 'x'", "DELETE FROM pair WHERE v = 9",
	} {
		var told []string
		for _, s := range []postgres.Session{{}, {Encoding: "LATIN1"}} {
			exec(t, conn, "SET client_encoding TO "+map[string]string{"": "UTF8", "LATIN1": "LATIN1"}[s.Encoding])
			sc := r.Script(sql, c, s)
			exec(t, conn, "BEGIN")
			a, acc := once(t, conn, sc.SQL, sc.Plans[0])
			exec(t, conn, "ROLLBACK")
			if a.Err != "" {
				t.Errorf("%s in %q: %s", sc.SQL, s.Encoding, a.Err)
			}
			told = append(told, facts(acc))
		}
		if told[0] != told[1] || told[0] == "" {
			t.Errorf("%s: rows are called %q", sql, told)
		}
	}
	for _, f := range []struct {
		s        postgres.Session
		sql      string
		unparsed bool
	}{
		{postgres.Session{Encoding: "SJIS"}, "SELECT 'ä'", true},
		{postgres.Session{Encoding: "SJIS"}, "SELECT 'a'", false},
		{postgres.Session{}, "SELECT '\xff'", true},
		{postgres.Session{Backslashes: true}, `SELECT 'a\'' FROM account`, true},
		{postgres.Session{Backslashes: true}, `SELECT 'a' FROM account`, false},
		{postgres.Session{}, "SELECT '" + strings.Repeat("x", 300<<10) + "'", true},
		{postgres.Session{}, strings.Repeat("(", 100_000) + "SELECT 1", true},
	} {
		if sc := r.Script(f.sql, c, f.s); sc.Unparsed != f.unparsed || f.unparsed && sc.SQL != f.sql {
			t.Errorf("%.40q in %+v: unparsed %v, want %v", f.sql, f.s, sc.Unparsed, f.unparsed)
		}
	}
}
