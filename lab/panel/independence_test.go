package panel

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// pruneRuns is how many interleavings TestPrunedRunsShowEverything runs on each server and level.
var pruneRuns = flag.Int("prune-runs", 30, "interleavings that TestPrunedRunsShowEverything runs at each level")

func parse(t *testing.T, src string) *scenario.Spec {
	t.Helper()
	spec, err := scenario.Parse("x.spec", []byte(src))
	if err != nil {
		t.Fatalf("%v\n%s", err, src)
	}
	return spec
}

// TestPruning counts the interleavings that are left, of a scenario of which much is independent.
func TestPruning(t *testing.T) {
	const sessions = `
session s1
step a1 { BEGIN }
step a2 { SELECT n FROM t }
step a3 { COMMIT }
session s2
step b1 { BEGIN }
step b2 { UPDATE u SET n = 1 }
step b3 { COMMIT }
`
	tables := "setup { CREATE TABLE t (n int); CREATE TABLE u (n int) }\n"
	tests := []struct {
		name, engine, level, spec string
		want                      int
	}{
		{"nothing in common", "postgres", "read committed", tables + sessions, 1},
		{"nothing in common", "mariadb", "repeatable read", tables + sessions, 1},
		{"one table", "postgres", "read committed", tables + strings.ReplaceAll(sessions, "FROM t", "FROM u"), 6},
		{"one table, certified", "postgres", "serializable", tables + strings.ReplaceAll(sessions, "FROM t", "FROM u"), 6},
		{"a view", "postgres", "read committed", tables + "setup { CREATE VIEW v AS SELECT n FROM u }" + strings.ReplaceAll(sessions, "FROM t", "FROM v"), 9},
		{"a foreign key", "postgres", "read committed", tables + "setup { ALTER TABLE t ADD FOREIGN KEY (n) REFERENCES u (n) }" + sessions, 12},
		{"a function", "postgres", "read committed", tables + "setup { CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1' }" + sessions, 20},
		{"a trigger", "mariadb", "repeatable read", tables + "setup { CREATE TRIGGER g BEFORE UPDATE ON u FOR EACH ROW SET NEW.n = 2 }" + sessions, 9},
		{"a table that nobody made", "mariadb", "repeatable read", sessions, 12},
		{"DDL in a step", "mariadb", "repeatable read", tables + strings.ReplaceAll(sessions, "UPDATE u SET n = 1", "DROP TABLE u"), 20},
		{"autocommit off", "mariadb", "repeatable read", tables + strings.ReplaceAll(sessions, "step a1 { BEGIN }", "step a1 { SET autocommit = 0 }"), 20},
	}
	for _, test := range tests {
		d, err := backends.ByName(test.engine)
		if err != nil {
			t.Fatal(err)
		}
		level, err := FindLevel(d, test.level)
		if err != nil {
			t.Fatal(err)
		}
		spec := parse(t, test.spec)
		got := len(slices.Collect(spec.Orders(scenario.Mode{Kind: scenario.KindAll}, scenario.Choice{Independent: Independence(spec, d, level)})))
		if got != test.want {
			t.Errorf("%s, %s: %d interleavings of %v are run, want %d", test.name, test.engine, got, spec.Interleavings(), test.want)
		}
	}
}

// randomSpec makes a small scenario over three tables.
func randomSpec(rng *rand.Rand) string {
	var b strings.Builder
	b.WriteString("setup { CREATE TABLE a (id int PRIMARY KEY, n int); CREATE TABLE b (id int PRIMARY KEY, n int); CREATE TABLE c (id int PRIMARY KEY, n int) }\n" +
		"setup { INSERT INTO a VALUES (1, 1), (2, 2); INSERT INTO b VALUES (1, 1), (2, 2); INSERT INTO c VALUES (1, 1), (2, 2) }\n")
	lengths := [][]int{{2, 2}, {3, 2}, {2, 1, 1}}[rng.IntN(3)]
	for s, steps := range lengths {
		fmt.Fprintf(&b, "session s%d\n", s)
		explicit := steps > 1
		if explicit && rng.IntN(2) == 0 {
			b.WriteString("setup { BEGIN }\n")
		} else if explicit {
			fmt.Fprintf(&b, "step b%d { BEGIN }\n", s)
		}
		for i := range steps {
			table, id := string("abc"[rng.IntN(3)]), 1+rng.IntN(2)
			sql := []string{
				"SELECT n FROM $t ORDER BY id", "SELECT n FROM $t WHERE id = $id FOR UPDATE", "UPDATE $t SET n = n * 3 + $n WHERE id = $id",
				"UPDATE $t SET n = n + 1", "INSERT INTO $t VALUES (3, $n)", "DELETE FROM $t WHERE id = $id",
				"SELECT 1 / (n - 1) FROM $t WHERE id = $id",
			}[rng.IntN(7)]
			fmt.Fprintf(&b, "step x%d%d { %s }\n", s, i, strings.NewReplacer("$t", table, "$id", strconv.Itoa(id), "$n", strconv.Itoa(s+5)).Replace(sql))
		}
		if explicit {
			fmt.Fprintf(&b, "step c%d { COMMIT }\n", s)
		}
	}
	return b.String()
}

// ways are the different ways in which a scenario went: what each step returned, and the tables at the end.
func ways(t *testing.T, l *lab.Lab, spec *scenario.Spec, independent scenario.Independent) (list []string, runs int) {
	t.Helper()
	for p := range spec.Orders(scenario.Mode{Kind: scenario.KindAll}, scenario.Choice{Independent: independent}) {
		r, err := l.Run(t.Context(), spec, p, func(bool) {})
		if err != nil || r.Trouble != nil {
			t.Fatalf("%s: %v, %v", p, err, r.Trouble)
		}
		list = append(list, way(r, spec))
		runs++
	}
	slices.Sort(list)
	return slices.Compact(list), runs
}

func way(r *lab.Result, spec *scenario.Spec) string {
	events := slices.DeleteFunc(slices.Clone(r.Events), func(ev lab.Event) bool { return ev.Kind == lab.Waits })
	slices.SortFunc(events, func(a, b lab.Event) int { return strings.Compare(a.Step.Name, b.Step.Name) })
	for i := range events {
		events[i].Kind = lab.Ran // whether a step waited is what the order of others decides
	}
	var b bytes.Buffer
	same := lab.Result{Permutation: r.Permutation, Events: events, Tables: r.Tables}
	_ = same.Text(&b, spec) // a buffer takes everything
	return b.String()
}

// openLab is a lab on a private server that ends with the test.
func openLab(t *testing.T, name, level string, c lab.Config) (*lab.Lab, engine.Descriptor, product.Level) {
	t.Helper()
	s, err := backends.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if c.Level, err = FindLevel(s.Engine, level); err != nil {
		t.Fatal(err)
	}
	labs, err := engine.OpenLabs(t.Context(), s.Engine, s.Target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { labs.Close(context.Background()) })
	if c.Target, err = labs.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.Backend, c.Side = s.Engine, c.Target
	l, err := lab.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l, s.Engine, c.Level
}

// TestPrunedRunsShowEverything runs random scenarios on real servers, all interleavings and those that pruning leaves: what
// can be seen is the same. (Package scenario has a property test of the relation itself.)
func TestPrunedRunsShowEverything(t *testing.T) {
	t.Parallel()
	for _, at := range []struct{ engine, level string }{
		{"postgres", "read committed"}, {"postgres", "repeatable read"}, {"mariadb", "repeatable read"},
	} {
		t.Run(at.engine+"/"+at.level, func(t *testing.T) {
			t.Parallel()
			l, d, level := openLab(t, at.engine, at.level, lab.Config{Reset: lab.Thorough})
			rng := rand.New(rand.NewPCG(3, 9))
			all, pruned := 0, 0
			for all < *pruneRuns {
				src := randomSpec(rng)
				spec := parse(t, src)
				if n := spec.Interleavings(); !n.IsInt64() || n.Int64() > 40 {
					continue
				}
				want, n := ways(t, l, spec, nil)
				got, m := ways(t, l, spec, Independence(spec, d, level))
				all, pruned = all+n, pruned+m
				if !slices.Equal(got, want) {
					t.Fatalf("%d of %d interleavings show %d of %d results of\n%s\nmissing:\n%s", m, n, len(got), len(want), src,
						strings.Join(slices.DeleteFunc(want, func(w string) bool { return slices.Contains(got, w) }), "\n"))
				}
			}
			t.Logf("%d of %d interleavings were run", pruned, all)
			if pruned > all*9/10 {
				t.Errorf("hardly anything was pruned: %d of %d", pruned, all)
			}
		})
	}
}
