package lab

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/testserver"
	"wirecheck/lab/scenario"
)

// place is a lab database on a private server.
func place(t *testing.T, name string) Config {
	t.Helper()
	var s *testserver.Server
	if name == "postgres" {
		s = testserver.Postgres(t)
	} else {
		s = testserver.MariaDB(t)
	}
	d, err := backends.ByName(name)
	if err != nil {
		t.Fatal(err)
	}
	labs, err := engine.OpenLabs(t.Context(), d, s.Target())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := labs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	target, err := labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range d.Levels {
		if l.SQL == d.Default {
			return Config{Backend: d, Target: target, Side: target, Level: l}
		}
	}
	t.Fatalf("%s has no level %s", name, d.Default)
	return Config{}
}

func open(t *testing.T, c Config) *Lab {
	t.Helper()
	l, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

func parse(t *testing.T, src string) *scenario.Spec {
	t.Helper()
	spec, err := scenario.Parse("x.spec", []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

func text(t *testing.T, l *Lab, spec *scenario.Spec, p *scenario.Permutation) string {
	t.Helper()
	r, err := l.Run(t.Context(), spec, p, func(bool) {})
	if err != nil {
		t.Fatalf("%s: %v", p, err)
	}
	var b bytes.Buffer
	if err := r.Text(&b, spec); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestResetsAgree runs all interleavings with each way to begin anew: what is printed is the same. The scenario has
// counters, definitions that a step changes, session settings and temporary tables.
func TestResetsAgree(t *testing.T) {
	specs := map[string]string{
		"postgres": `
setup { CREATE TABLE t (id serial PRIMARY KEY, n int); CREATE TABLE u (n int) }
setup { INSERT INTO t (n) VALUES (10), (20) }
setup { SELECT 'from the setup' AS told }
session s1
setup { BEGIN }
step a1 { UPDATE t SET n = n + 1 WHERE id = 1 }
step a2 { INSERT INTO t (n) VALUES (30) RETURNING id }
step a3 { COMMIT }
session s2
setup { SET application_name = 'x'; CREATE TEMP TABLE mine (n int) }
step b1 { INSERT INTO mine SELECT n FROM t RETURNING n }
step b2 { UPDATE t SET n = n * 2 }
step b3 { ALTER TABLE u ADD m int DEFAULT 1 }
`,
		"mariadb": `
setup { CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, n int); CREATE TABLE u (n int) }
setup { INSERT INTO t (n) VALUES (10), (20) }
session s1
setup { BEGIN }
step a1 { UPDATE t SET n = n + 1 WHERE id = 1 }
step a2 { INSERT INTO t (n) VALUES (30) }
step a3 { COMMIT }
session s2
setup { SET @x = 1; CREATE TEMPORARY TABLE mine (n int) }
step b1 { INSERT INTO mine SELECT n FROM t WHERE id > @x LOCK IN SHARE MODE }
step b2 { UPDATE t SET n = n * 2 WHERE id = 1 }
step b3 { ALTER TABLE u ADD m int DEFAULT 1 }
`,
	}
	for name, src := range specs {
		t.Run(name, func(t *testing.T) {
			spec := parse(t, src)
			labs := map[Reset]*Lab{}
			for _, reset := range []Reset{Setup, Thorough, Quick} {
				c := place(t, name)
				c.Reset = reset
				labs[reset] = open(t, c)
			}
			n := 0
			for p := range spec.Orders(scenario.Mode{Kind: scenario.KindAll}, scenario.Choice{}) {
				n++
				want := text(t, labs[Setup], spec, p)
				for _, reset := range []Reset{Thorough, Quick} {
					if got := text(t, labs[reset], spec, p); got != want {
						t.Fatalf("%s, reset %d:\n%s\nset up anew:\n%s", p, reset, got, want)
					}
				}
			}
			if n != 20 {
				t.Errorf("%d interleavings were run, want 20", n)
			}
		})
	}
}

// TestStandsStill has a step wait for somebody who is not part of the scenario: the case is given up, says why, and the next
// one runs.
func TestStandsStill(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := place(t, name)
			c.Case = 6 * time.Second // a busy machine needs some of it to come to the step that stands still
			l := open(t, c)
			lock := map[string]string{"postgres": "SELECT pg_advisory_lock(7)", "mariadb": "SELECT GET_LOCK('" + c.Target.Database + "', 100)"}[name]
			spec := parse(t, "setup { CREATE TABLE t (n int) }\nsession s1\nstep a { INSERT INTO t VALUES (1) }\nstep b { "+lock+" }\nstep c { INSERT INTO t VALUES (2) }\npermutation a b c\n")
			outside, err := c.Backend.Connect(t.Context(), c.Side)
			if err != nil {
				t.Fatal(err)
			}
			if err := engine.Exec(t.Context(), outside, lock); err != nil {
				t.Fatal(err)
			}
			r, err := l.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
			if err != nil || r.Trouble == nil || r.Crashed {
				t.Fatalf("got %v, %+v", err, r)
			}
			for _, want := range []string{"the case took more than 6s", "s1 is still in b, which waits (advisory)"} {
				if !strings.Contains(r.Trouble.Error(), want) {
					t.Errorf("trouble: %v; want %q", r.Trouble, want)
				}
			}
			if err := outside.Close(); err != nil {
				t.Fatal(err)
			}
			if r, err = l.Run(t.Context(), spec, spec.Permutations[0], func(bool) {}); err != nil || r.Trouble != nil || len(r.Tables[0].Rows) != 2 {
				t.Errorf("the next run: %v, %+v", err, r)
			}
		})
	}
}

// TestLockWaitTimeout lets the server end a wait: the statement fails, and the rest goes on.
func TestLockWaitTimeout(t *testing.T) {
	l := open(t, place(t, "mariadb"))
	spec := parse(t, `
setup { CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 1) }
session s1
step a1 { BEGIN }
step a2 { UPDATE t SET n = 2 }
session s2
setup { SET innodb_lock_wait_timeout = 2 }
step b1 { UPDATE t SET n = 3 }
step b2 { SELECT n FROM t }
permutation a1 a2 b1 b2
`)
	got := text(t, l, spec, spec.Permutations[0])
	for _, want := range []string{"s2  b1  UPDATE t SET n = 3  ... waits", "s2  b1  ... resumed", "ERROR 1205", "s2  b2  SELECT n FROM t"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
}
