package main

import (
	"context"
	"strings"
	"testing"

	"wirecheck/internal/shop"
)

// TestTold: psql, mariadb and drivers hear of a lost update, both parties of it, again shortly; and wirecheck answers them in the session. A server
// that has a schema of that name answers itself.
func TestTold(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		w := newWorld(t, engine, "CREATE TABLE coupon (id INT PRIMARY KEY, n INT)")
		for _, part := range []shop.Part{shop.Terminal, shop.Driver} {
			t.Run(engine+" "+string(part), func(t *testing.T) {
				w.run(t, "DELETE FROM coupon", "INSERT INTO coupon VALUES (1, 5)")
				th := w.observe(t)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				connect := func() shop.Client {
					c, err := th.target.Connect(ctx, part)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { c.Close() })
					return c
				}
				do := func(c shop.Client, sql string) string {
					t.Helper()
					out, err := c.Do(ctx, sql)
					if err != nil {
						t.Fatalf("%s: %v", sql, err)
					}
					return out
				}
				heard := func(c shop.Client, wants ...string) {
					t.Helper()
					list, err := c.Heard(ctx)
					if err != nil {
						t.Fatal(err)
					}
					said := strings.Join(list, "\n")
					for _, want := range wants {
						if !strings.Contains(said, want) {
							t.Errorf("%q is not in %q", want, said)
						}
					}
					if len(wants) == 0 && strings.Contains(said, "wirecheck") {
						t.Errorf("heard %q", said)
					}
				}
				a, b := connect(), connect()
				const read = "SELECT n FROM coupon WHERE id = 1"
				race := func(value string) {
					set := "UPDATE coupon SET n = " + value + " WHERE id = 1"
					for _, c := range []shop.Client{a, b} {
						do(c, "BEGIN")
						do(c, read)
					}
					do(b, set)
					do(b, "COMMIT")
					do(a, set)
					do(a, "COMMIT")
				}
				if out := do(a, "SHOW WIRECHECK"); strings.Contains(out, "WC-") {
					t.Errorf("before: %q", out)
				}
				race("4")
				id := th.live.Result().Findings[0].ID
				heard(a, "wirecheck: lost update: your UPDATE of coupon id=1 overwrote a change by session ", "Proof: SELECT wirecheck.explain('"+id+"')")
				do(b, "SELECT 1") // no table is read: any answer brings it
				heard(b, "UPDATE of coupon id=1 overwrote a change by you that it had not seen ("+id+")")
				race("3")
				heard(a, id+" again, 2nd time: lost update: your UPDATE")
				do(b, "SELECT n FROM coupon")
				heard(b, id+" again, 2nd time: lost update")

				if out := do(b, "show wirecheck like 'lost%'"); !strings.Contains(out, id) || !strings.Contains(out, "lost update") {
					t.Errorf("the list: %q", out)
				}
				if out := do(b, "SHOW WIRECHECK LIKE '%skew'"); strings.Contains(out, id) {
					t.Errorf("another pattern: %q", out)
				}
				if out := do(b, "SELECT wirecheck.explain('"+id+"')"); !strings.Contains(out, "a contradiction!") || !strings.Contains(out, "overwrote a change by you") {
					t.Errorf("explained: %q", out)
				}
				if out := do(b, "SELECT wirecheck.explain('WC-000000')"); !strings.Contains(out, "There is no finding WC-000000") {
					t.Errorf("an unknown one: %q", out)
				}
				do(b, "BEGIN")
				do(b, "SELECT wirecheck.explain ( '"+id+"' )")
				if engine == "postgres" { // the answer fits a transaction that has failed
					_, _ = b.Do(ctx, "SELECT 1/0")
					if out, err := b.Do(ctx, "SELECT wirecheck.explain('"+id+"') "); err == nil && !strings.Contains(out, "aborted") || strings.Contains(out, "contradiction") {
						t.Errorf("in a failed transaction: %q, %v", out, err)
					}
				}
				do(b, "ROLLBACK")
				for _, c := range []shop.Client{a, b} {
					_, _ = c.Heard(ctx)
				}
				do(a, read)
				heard(a)

				if engine != "postgres" {
					return
				}
				w.run(t, "CREATE SCHEMA wirecheck", "CREATE FUNCTION wirecheck.explain(text) RETURNS text LANGUAGE sql AS 'SELECT ''theirs'''")
				defer w.run(t, "DROP SCHEMA wirecheck CASCADE")
				c := connect()
				if out := do(c, "SELECT wirecheck.explain('"+id+"')"); !strings.Contains(out, "theirs") {
					t.Errorf("a schema of that name: %q", out)
				}
			})
		}
	}
}
