package generate_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
)

// cases makes the cases of some seeds in each dialect.
func cases(t *testing.T, limits generate.Limits, seeds int, check func(t *testing.T, seed uint64, k *generate.Case)) {
	t.Helper()
	for _, d := range generate.Dialects() {
		t.Run(string(d), func(t *testing.T) {
			for seed := range uint64(seeds) {
				check(t, seed, newGenerator(t, d, limits, seed).Case())
			}
		})
	}
}

func newGenerator(t *testing.T, d generate.Dialect, limits generate.Limits, seed uint64) *generate.Generator {
	t.Helper()
	g, err := generate.New(d, limits, seeded(seed))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func printed(t *testing.T, seed uint64, k *generate.Case) string {
	t.Helper()
	text, err := k.Spec.Print()
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return text
}

func TestSameSeedSameBytes(t *testing.T) {
	all := map[string]bool{}
	cases(t, generate.Limits{}, 60, func(t *testing.T, seed uint64, k *generate.Case) {
		first := printed(t, seed, k)
		g := newGenerator(t, k.Database.Dialect, generate.Limits{}, seed)
		again := g.Case()
		if diff := cmp.Diff(first, printed(t, seed, again)); diff != "" {
			t.Fatalf("seed %d (-first +second):\n%s", seed, diff)
		}
		if diff := cmp.Diff(k.Features, again.Features); diff != "" {
			t.Fatalf("seed %d, features (-first +second):\n%s", seed, diff)
		}
		all[first] = true
	})
	if want := 60 * len(generate.Dialects()); len(all) < want-2 {
		t.Errorf("%d different cases of %d seeds and dialects", len(all), want)
	}
}

func TestParsePrint(t *testing.T) {
	cases(t, generate.Limits{}, 60, func(t *testing.T, seed uint64, k *generate.Case) {
		text := printed(t, seed, k)
		spec, err := scenario.Parse("generated.spec", []byte(text))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		again, err := spec.Print()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(text, again); diff != "" || len(spec.Warnings) > 0 {
			t.Fatalf("seed %d: %v (-generated +parsed):\n%s", seed, spec.Warnings, diff)
		}
	})
}

// TestGroups: what WriteCheck 5.2 asks of a group of transactions and of a submitted order.
func TestGroups(t *testing.T) {
	for _, limits := range []generate.Limits{
		{Transactions: 4, Statements: 3, Tables: 2, Columns: 2, Rows: 3, ForeignKeys: -1},
		{Transactions: 2, Statements: 2, Tables: 1, Columns: 3, Rows: 2, ForeignKeys: -1, Templates: 100},
	} {
		groups(t, limits)
	}
}

func groups(t *testing.T, limits generate.Limits) {
	cases(t, limits, 200, func(t *testing.T, seed uint64, k *generate.Case) {
		text := func() string { return fmt.Sprintf("seed %d:\n%s", seed, printed(t, seed, k)) }
		transactions, explicit, writes := 0, 0, false
		var in []string
		for i, s := range k.Sessions {
			n := 0
			for _, tx := range s.Transactions {
				transactions++
				data := 0
				for _, st := range tx.Statements {
					n++
					in = append(in, fmt.Sprintf("%d %s", i, st.SQL))
					writes = writes || st.Kind.Writes()
					if st.Kind.Data() {
						data++
					}
				}
				ends := tx.Statements[len(tx.Statements)-1].Kind
				switch {
				case !tx.Explicit && len(tx.Statements) != 1:
					t.Errorf("an autocommit transaction of %d statements: %s", len(tx.Statements), text())
				case tx.Explicit && ends != generate.KindCommit && ends != generate.KindRollback:
					t.Errorf("a transaction without end: %s", text())
				case tx.Explicit && data > limits.Statements:
					t.Errorf("%d statements in a transaction: %s", data, text())
				}
				if tx.Explicit {
					explicit++
				}
			}
		}
		if transactions < 2 || transactions > limits.Transactions || explicit == 0 || !writes {
			t.Errorf("%d transactions, %d of them explicit, writes %v: %s", transactions, explicit, writes, text())
		}
		var ordered []string
		for i := range k.Sessions {
			for _, st := range k.Order {
				if st.Session == i {
					ordered = append(ordered, fmt.Sprintf("%d %s", i, st.SQL))
				}
			}
		}
		if diff := cmp.Diff(in, ordered); diff != "" {
			t.Errorf("the order does not keep the sessions' (-sessions +order):\n%s%s", diff, text())
		}
		if len(k.Database.Tables) > limits.Tables || slices.ContainsFunc(k.Database.Tables, func(tb *generate.Table) bool { return len(tb.Columns) > limits.Columns || len(tb.Rows) > limits.Rows }) {
			t.Errorf("limits are not kept: %s", text())
		}
	})
}

// TestOrders: the orders of two steps are both drawn, so the order is random, and a template's own order is kept in a part of the cases.
func TestOrders(t *testing.T) {
	first, kept := map[int]bool{}, 0
	const seeds = 60
	for seed := range uint64(seeds) {
		g := newGenerator(t, generate.Postgres, generate.Limits{Transactions: 2, Favor: []string{"template-lost-update"}}, seed)
		k := g.Case()
		if k.Sessions[0].Transactions[0].Template == "" {
			continue // no table for it
		}
		order := ""
		for _, st := range k.Order {
			order += fmt.Sprint(st.Session + 1)
		}
		if order == "11221212" {
			kept++
		}
		first[k.Order[0].Session] = true
	}
	if len(first) != 2 || kept < seeds/5 {
		t.Errorf("first sessions %v, the template's order %d times of %d", first, kept, seeds)
	}
}

// forbidden is what makes a statement's result depend on something else than rows (WriteCheck 5.1).
var forbidden = regexp.MustCompile(`(?i)\buuid\(|\b(now|rand|random|gen_random_uuid|current_timestamp|current_date|sysdate|connection_id|last_insert_id|nextval)\b|@|[{}]`)

func TestStatementsAreDeterministic(t *testing.T) {
	cases(t, generate.Limits{}, 400, func(t *testing.T, seed uint64, k *generate.Case) {
		for _, st := range k.Order {
			if m := forbidden.FindString(st.SQL); m != "" {
				t.Errorf("seed %d: %s in: %s", seed, m, st.SQL)
			}
			if limits, orders := strings.Count(st.SQL, " LIMIT "), strings.Count(st.SQL, " ORDER BY "); limits > orders {
				t.Errorf("seed %d: LIMIT without ORDER BY: %s", seed, st.SQL)
			}
		}
	})
}

// TestExclude: what is excluded appears neither by name nor in the text.
func TestExclude(t *testing.T) {
	traces := map[string]string{
		"foreign-key": `REFERENCES`, "savepoint": `SAVEPOINT`, "view": `CREATE VIEW`, "limit": `^SELECT.* LIMIT `, "rollback": `^ROLLBACK$`, "check": `CHECK \(\w+ (<>|>=) [^c]`,
		"join-left": `LEFT JOIN`, "subquery-exists": `EXISTS \(SELECT 1 FROM t`, "window": `OVER \(`, "delete": `^DELETE`, "select": `^SELECT`, "commit": `^COMMIT`,
		"nowait": `NOWAIT`, "insert-ignore": `IGNORE INTO`, "unique": `UNIQUE \(\w+\)`, "index": `CREATE (UNIQUE )?INDEX`, "type-json": `JSON`, "type-char": `CHAR\(5\)`,
	}
	for name, trace := range traces {
		t.Run(name, func(t *testing.T) {
			pattern := regexp.MustCompile(trace)
			for _, excluded := range []bool{true, false} {
				limits := generate.Limits{}
				if excluded {
					limits.Exclude = []string{name}
				}
				found := 0
				for _, d := range generate.Dialects() {
					for seed := range uint64(30) {
						k := newGenerator(t, d, limits, seed).Case()
						statements := slices.Clone(k.Database.Setup)
						for _, st := range k.Order {
							statements = append(statements, st.Statement)
						}
						for _, st := range statements {
							if slices.Contains(st.Features, name) || pattern.MatchString(st.SQL) {
								found++
								if excluded && found == 1 {
									t.Errorf("%s, seed %d: %s %v", d, seed, st.SQL, st.Features)
								}
							}
						}
					}
				}
				if !excluded && found == 0 {
					t.Error("it never appears, excluded or not")
				}
			}
		})
	}
}

// TestExcludeAny: whatever single feature is excluded, cases are made and do not have it; what only comes on demand does not come
// without.
func TestExcludeAny(t *testing.T) {
	for _, d := range generate.Dialects() {
		for _, f := range generate.Features(d) {
			for seed := range uint64(3) {
				k := newGenerator(t, d, generate.Limits{Exclude: []string{f.Name}}, seed).Case()
				if slices.Contains(k.Features, f.Name) {
					t.Errorf("%s, seed %d: %s is excluded and there", d, seed, f.Name)
				}
				for _, o := range generate.Features(d) {
					if o.OptIn && slices.Contains(k.Features, o.Name) {
						t.Errorf("%s, seed %d: %s comes without being asked for", d, seed, o.Name)
					}
				}
			}
		}
	}
}

// TestDefinitions: a share of databases has cases that change definitions; the cases of the others are those without a share.
func TestDefinitions(t *testing.T) {
	limits := generate.DefaultLimits()
	with := limits
	with.Definitions = 25
	for _, d := range generate.Dialects() {
		groups, seen := 0, map[string]bool{}
		for n := range 400 {
			g := newGenerator(t, d, with.ForGroup(n), uint64(n))
			share, plain := g.Case(), newGenerator(t, d, limits.ForGroup(n), uint64(n)).Case()
			if len(with.ForGroup(n).Include) > 0 {
				groups++
				for range 8 {
					for _, f := range g.Case().Features {
						seen[f] = true
					}
				}
				continue
			}
			if diff := cmp.Diff(printed(t, uint64(n), plain), printed(t, uint64(n), share)); diff != "" {
				t.Fatalf("%s, database %d: the share changes it:\n%s", d, n, diff)
			}
		}
		if groups != 100 {
			t.Errorf("%s: %d of 400 databases", d, groups)
		}
		wanted := []string{"ddl-index", "ddl-drop-index", "ddl-add-column", "admin-analyze"}
		if d != generate.SQLite {
			wanted = append(wanted, "ddl-rename-index", "ddl-drop-column", "ddl-modify-column", "set-optimizer")
		}
		if d == generate.MariaDB || d == generate.MySQL {
			wanted = append(wanted, "ddl-rename", "ddl-rebuild", "admin-flush")
		}
		if d == generate.TiDB {
			wanted = append(wanted, "set-retry")
		} else if d != generate.SQLite {
			wanted = append(wanted, "fault-killed", "fault-cut", "fault-doubt", "fault-wait")
		}
		for _, f := range wanted {
			if !seen[f] {
				t.Errorf("%s: no %s", d, f)
			}
		}
		with := with
		with.Undisturbed = true
		for n := range 4 {
			if slices.ContainsFunc(with.ForGroup(n).Include, func(f string) bool { return strings.HasPrefix(f, "ddl-") || strings.HasPrefix(f, "admin-") }) {
				t.Errorf("%s: definitions that are to be left out", d)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		dialect generate.Dialect
		limits  generate.Limits
		want    string
	}{
		{"oracle", generate.Limits{}, `unknown dialect "oracle"`},
		{generate.MySQL, generate.Limits{Tables: -1}, "limit Tables is -1: expected 1 to 20"},
		{generate.MySQL, generate.Limits{Transactions: 1}, "limit Transactions is 1: expected 2 to 50"},
		{generate.MySQL, generate.Limits{Depth: 9}, "limit Depth is 9: expected 0 to 5"},
		{generate.MySQL, generate.Limits{Exclude: []string{"savepoints"}}, `the feature "savepoints", which does not exist`},
		{generate.MySQL, generate.Limits{Exclude: []string{"commit", "rollback"}}, "exclude both commit and rollback"},
		{generate.MySQL, generate.Limits{Favor: []string{"join-left"}, ForeignKeys: -1}, ""},
	} {
		_, err := generate.New(test.dialect, test.limits, seeded(1))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %+v: got %v, want %q", test.dialect, test.limits, err, test.want)
		}
	}
}

// TestCoverage: steering finds more combinations in as many cases, and the same ones every time.
func TestCoverage(t *testing.T) {
	count := func(d generate.Dialect, steer bool) (n int) {
		for seed := range uint64(2) {
			c := &generate.Coverage{}
			g := newGenerator(t, d, generate.Limits{}, seed)
			if steer {
				g.Steer(c)
			}
			for range 50 {
				c.AddCase(g.Case())
			}
			n += c.Len()
		}
		return n
	}
	for _, d := range generate.Dialects() {
		plain, steered := count(d, false), count(d, true)
		t.Logf("%s: %d combinations in 2 times 50 cases, %d with steering", d, plain, steered)
		if steered*10 < plain*11 {
			t.Errorf("%s: %d combinations with steering, %d without; want a tenth more", d, steered, plain)
		}
		if again := count(d, true); again != steered {
			t.Errorf("%s: %d combinations, then %d", d, steered, again)
		}
	}
}

func TestCoverageOutcomes(t *testing.T) {
	c := &generate.Coverage{}
	for _, test := range []struct {
		outcomes []string
		want     int
	}{{nil, 0}, {[]string{"waits"}, 1}, {[]string{"waits", "deadlock"}, 1}, {[]string{"waits"}, 0}} {
		if got := c.AddOutcomes(test.outcomes); got != test.want {
			t.Errorf("%v: %d new, want %d", test.outcomes, got, test.want)
		}
	}
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	again := &generate.Coverage{}
	if err := json.Unmarshal(text, again); err != nil || again.Outcomes() != 2 || again.Len() != 0 || again.AddOutcomes([]string{"deadlock"}) != 0 {
		t.Errorf("%s: %d outcomes, %d others, error %v", text, again.Outcomes(), again.Len(), err)
	}
}
