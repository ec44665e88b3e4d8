package postgres_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement/pgsyntax"
)

// offline is a catalog as a server told it.
func offline(t testing.TB) *rewrite.Catalog {
	t.Helper()
	text, err := os.ReadFile("testdata/catalog.txt")
	if err != nil {
		t.Fatal(err)
	}
	var list [][]string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		list = append(list, []string{line})
	}
	c, err := postgres.LoadCatalog(list)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func FuzzScript(f *testing.F) {
	for _, s := range forms {
		f.Add(s.sql)
	}
	f.Add("\x00")
	f.Add("0")
	c := offline(f)
	r := postgres.New(rewrite.CaptureAuto)
	f.Fuzz(func(t *testing.T, sql string) {
		sc := r.Script(sql, c, postgres.Session{})
		if sc.Unparsed {
			if sc.SQL != sql || len(sc.Plans) != 1 {
				t.Fatalf("%q was not understood, yet changed", sql)
			}
			return
		}
		changed := false
		for _, p := range sc.Plans {
			if p.Hidden > 0 || p.Cursor != nil && p.Cursor.Rows != nil {
				changed = true
				if got := rewrite.Apply(sql, p.Edits); got != sc.SQL {
					t.Fatalf("edits give %q, sent is %q", got, sc.SQL)
				}
			}
		}
		if !changed && sc.SQL != sql {
			t.Fatalf("%q is sent as %q, but no plan hides anything", sql, sc.SQL)
		}
		if _, err := pgsyntax.Parse(sc.SQL); err != nil {
			t.Fatalf("%q is sent as %q: %v", sql, sc.SQL, err)
		}
	})
}

// TestTablesGone: statements of tables that are not there, or that have other names' columns, and with locks, get a plan as any others do.
func TestTablesGone(t *testing.T) {
	c, r := offline(t), postgres.New(rewrite.CaptureAuto)
	names := []string{"account", "orders", "gone"}
	for _, form := range forms {
		texts := []string{form.sql, form.sql + " FOR UPDATE SKIP LOCKED", form.sql + " FOR KEY SHARE"}
		for _, name := range names {
			for _, other := range names {
				for _, sql := range texts {
					if changed := strings.ReplaceAll(sql, name, other); changed != sql || name == "gone" && other == name {
						r.Script(changed, c, postgres.Session{})
					}
				}
			}
		}
	}
}

func BenchmarkScript(b *testing.B) {
	c := offline(b)
	for _, s := range []struct{ name, sql string }{
		{"point", "SELECT balance FROM account WHERE id = %d"},
		{"join", "SELECT a.id, o.amount FROM account a JOIN orders o ON o.account_id = a.id WHERE a.id = %d ORDER BY o.amount DESC LIMIT 10"},
		{"update", "UPDATE account SET balance = balance + 1 WHERE id = %d;"},
		{"insert", "INSERT INTO orders (id, account_id, amount, note) VALUES (%d, 1, 2.5, 'a note')"},
		{"begin", "BEGIN -- %d"},
		{"list", "SELECT balance FROM account WHERE id IN (%d" + strings.Repeat(", 5071", 9500) + ")"},
		{"rows", "INSERT INTO orders (id, account_id, amount, note) VALUES (%d, 1, 2.5, 'a note')" + strings.Repeat(", (7, 1, 2.5, 'a note')", 2000)},
	} {
		b.Run(s.name+"/cached", func(b *testing.B) {
			r := postgres.New(rewrite.CaptureAuto)
			sql := fmt.Sprintf(s.sql, 1)
			for b.Loop() {
				r.Script(sql, c, postgres.Session{})
			}
		})
		b.Run(s.name+"/new", func(b *testing.B) {
			r := postgres.New(rewrite.CaptureAuto)
			i := 0
			for b.Loop() {
				i++
				r.Script(fmt.Sprintf(s.sql, i), c, postgres.Session{})
			}
		})
	}
}
