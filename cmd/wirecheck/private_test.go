package main

import (
	"context"
	"strings"
	"testing"

	"wirecheck/internal/shop"
	"wirecheck/internal/testserver"
)

// TestPrivate: two users lose an update to one another. In warnings and answers each of them, and who logs in as one of them, sees the other's statements
// without literals and values; a superuser of PostgreSQL sees all, and so does everybody with --show-others.
func TestPrivate(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		second := testserver.AppMD5
		if engine == "mariadb" {
			second = testserver.AppEd25519
		}
		w := newWorld(t, engine, "CREATE TABLE coupon (id INT PRIMARY KEY, n INT, note VARCHAR(80))")
		for _, others := range []bool{false, true} {
			name := engine
			if w.others = others; others {
				name += " --show-others"
			}
			t.Run(name, func(t *testing.T) {
				w.run(t, "DELETE FROM coupon", "INSERT INTO coupon VALUES (1, 5, 'a note')")
				th := w.observe(t)
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				connect := func(user, password string) shop.Client {
					target := th.target
					target.User, target.Password = user, password
					c, err := target.Connect(ctx, shop.Driver)
					if err != nil {
						t.Fatalf("connect as %s: %v", user, err)
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
				one, two := connect(testserver.App, testserver.AppPassword), connect(second, testserver.AppPassword)
				for _, c := range []shop.Client{one, two} {
					do(c, "BEGIN")
					do(c, "SELECT n FROM coupon WHERE id = 1")
				}
				do(two, "UPDATE coupon SET n = 4712, note = 'secret of two' WHERE id = 1 /* user='anna' */")
				do(two, "COMMIT")
				do(one, "UPDATE coupon SET n = 4711, note = 'secret of one' WHERE id = 1 /* user='bert' */")
				do(one, "COMMIT")
				do(two, "SELECT 1")
				id := th.live.Result().Findings[0].ID
				check := func(who string, c shop.Client, ones, twos bool) {
					t.Helper()
					list, err := c.Heard(ctx)
					if err != nil {
						t.Fatal(err)
					}
					for _, text := range []string{strings.Join(list, "\n"), do(c, "SELECT wirecheck.explain('"+id+"')"), do(c, "SHOW WIRECHECK")} {
						for _, secret := range []string{"4711", "secret of one", "bert"} {
							if strings.Contains(text, secret) && !ones && !others {
								t.Errorf("%s sees %s: %s", who, secret, text)
							}
						}
						for _, secret := range []string{"4712", "secret of two", "anna"} {
							if strings.Contains(text, secret) && !twos && !others {
								t.Errorf("%s sees %s: %s", who, secret, text)
							}
						}
					}
					text := do(c, "SELECT wirecheck.explain('"+id+"')")
					if strings.Contains(text, "secret of one") != (ones || others) || strings.Contains(text, "secret of two") != (twos || others) || !strings.Contains(text, "a contradiction!") {
						t.Errorf("%s sees %s", who, text)
					}
				}
				check("the first user", one, true, false)
				check("the second user", two, false, true)
				check("the first user's other session", connect(testserver.App, testserver.AppPassword), true, false)
				check("the superuser", connect(w.admin.User, w.admin.Password), engine == "postgres", engine == "postgres")
			})
		}
	}
}
