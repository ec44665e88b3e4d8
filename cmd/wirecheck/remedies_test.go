package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/internal/testserver"
	"wirecheck/oracle"
	"wirecheck/product"
)

// race is a race of two sessions and what each kind of remedy makes of it. Where a remedy has SQL, the test puts that in the place of the
// statement that it was made of, in both sessions; the others are written here.
type race struct {
	name   string // of the anomaly
	setup  []string
	one    []string // the statements of a session; the other session does the same, or what two says
	two    []string
	levels map[string][]string       // of each product: where it is let through
	fill   map[anomaly.Remedy]string // what the question mark of a remedy's SQL stands for
	// written are remedies without SQL: statements that replace others; "" for one that goes; "setup" is added to the setup, "lock" or
	// "update" is what each session does first.
	written map[anomaly.Remedy]map[string]string
}

var races = []race{
	{
		name:  anomaly.LostUpdate,
		setup: []string{"CREATE TABLE coupon (code VARCHAR(20) PRIMARY KEY, n INT)", "INSERT INTO coupon VALUES ('W', 5)"},
		one:   []string{"SELECT n FROM coupon WHERE code = 'W'", "UPDATE coupon SET n = 4 WHERE code = 'W'"},
		two:   []string{"SELECT n FROM coupon WHERE code = 'W'", "UPDATE coupon SET n = 3 WHERE code = 'W'"},
		levels: map[string][]string{"postgres": {"read committed"}, "mariadb": {"read committed", "repeatable read"},
			"mysql": {"read uncommitted", "read committed", "repeatable read"}, "tidb": {"read committed", "repeatable read"}},
		fill: map[anomaly.Remedy]string{anomaly.RemedyAtomic: "-1", anomaly.RemedyCheck: "5"},
	},
	{
		name: anomaly.WriteSkew,
		setup: []string{"CREATE TABLE duty (name VARCHAR(20) PRIMARY KEY, on_call INT, rule INT)", "INSERT INTO duty VALUES ('ann', 1, 7), ('bob', 1, 7)",
			"CREATE TABLE rule (id INT PRIMARY KEY, n INT)", "INSERT INTO rule VALUES (7, 0)"},
		one: []string{"SELECT on_call FROM duty WHERE name IN ('ann', 'bob')", "UPDATE duty SET on_call = 0 WHERE name = 'ann'"},
		two: []string{"SELECT on_call FROM duty WHERE name IN ('ann', 'bob')", "UPDATE duty SET on_call = 0 WHERE name = 'bob'"},
		levels: map[string][]string{"postgres": {"read committed", "repeatable read"}, "mariadb": {"read committed", "repeatable read"},
			"mysql": {"read uncommitted", "read committed", "repeatable read"}, "tidb": {"read committed", "repeatable read", "snapshot"}},
		written: map[anomaly.Remedy]map[string]string{
			anomaly.RemedyParent: {"lock": "SELECT id FROM rule WHERE id = 7 FOR UPDATE", "update": "UPDATE rule SET n = n + 1 WHERE id = 7"},
		},
	},
	{
		name: anomaly.WriteSkew,
		setup: []string{"CREATE TABLE room (id INT PRIMARY KEY, n INT)", "INSERT INTO room VALUES (1, 0)",
			"CREATE TABLE booking (id INT PRIMARY KEY, room INT, hour INT)"},
		one:    []string{"SELECT count(*) FROM booking WHERE room = 1 AND hour = 9", "INSERT INTO booking VALUES (1, 1, 9)"},
		two:    []string{"SELECT count(*) FROM booking WHERE room = 1 AND hour = 9", "INSERT INTO booking VALUES (2, 1, 9)"},
		levels: map[string][]string{"postgres": {"read committed", "repeatable read"}, "mariadb": {"read committed"}, "mysql": {"read committed", "repeatable read"}, "tidb": {"read committed", "repeatable read", "snapshot"}},
		written: map[anomaly.Remedy]map[string]string{
			anomaly.RemedyParent:     {"lock": "SELECT id FROM room WHERE id = 1 FOR UPDATE", "update": "UPDATE room SET n = n + 1 WHERE id = 1"},
			anomaly.RemedyConstraint: {"setup": "CREATE UNIQUE INDEX once ON booking (room, hour)"},
		},
	},
	{
		name:   anomaly.ReadSkew,
		setup:  []string{"CREATE TABLE account (id INT PRIMARY KEY, balance INT)", "INSERT INTO account VALUES (1, 50), (2, 50)"},
		one:    []string{"SELECT balance FROM account WHERE id = 1", "SELECT balance FROM account WHERE id = 2"},
		two:    []string{"UPDATE account SET balance = balance - 9 WHERE id = 1", "UPDATE account SET balance = balance + 9 WHERE id = 2"},
		levels: map[string][]string{"postgres": {"read committed"}, "mariadb": {"read committed"}, "mysql": {"read uncommitted", "read committed"}, "tidb": {"read committed"}},
		written: map[anomaly.Remedy]map[string]string{anomaly.RemedyOneRead: {
			"SELECT balance FROM account WHERE id = 1": "SELECT id, balance FROM account WHERE id IN (1, 2)", "SELECT balance FROM account WHERE id = 2": "",
		}},
	},
	{
		name:   anomaly.NonRepeatableRead,
		setup:  []string{"CREATE TABLE price (id INT PRIMARY KEY, n INT)", "INSERT INTO price VALUES (1, 50)"},
		one:    []string{"SELECT n FROM price WHERE id = 1", "SELECT id, n FROM price WHERE id = 1"},
		two:    []string{"UPDATE price SET n = 60 WHERE id = 1"},
		levels: map[string][]string{"postgres": {"read committed"}, "mariadb": {"read committed"}, "mysql": {"read uncommitted", "read committed"}, "tidb": {"read committed"}},
		written: map[anomaly.Remedy]map[string]string{anomaly.RemedyOneRead: {
			"SELECT n FROM price WHERE id = 1": "", "SELECT id, n FROM price WHERE id = 1": "SELECT id, n FROM price WHERE id = 1 AND n > 0",
		}},
	},
	{
		name:   anomaly.ReadWriteSkew,
		setup:  []string{"CREATE TABLE pair (id INT PRIMARY KEY, n INT)", "INSERT INTO pair VALUES (1, 50), (2, 50)"},
		one:    []string{"SELECT n FROM pair WHERE id = 1", "UPDATE pair SET n = 7 WHERE id = 2"},
		two:    []string{"UPDATE pair SET n = 8 WHERE id = 1", "UPDATE pair SET n = 8 WHERE id = 2"},
		levels: map[string][]string{"postgres": {"read committed"}, "mariadb": {"read committed", "repeatable read"}, "mysql": {"read committed", "repeatable read"}, "tidb": {"read committed", "repeatable read"}},
	},
	{
		name: anomaly.Phantom,
		setup: []string{"CREATE TABLE room (id INT PRIMARY KEY, n INT)", "INSERT INTO room VALUES (1, 0)",
			"CREATE TABLE booking (id INT PRIMARY KEY, room INT, hour INT)", "INSERT INTO booking VALUES (1, 1, 8)"},
		one:    []string{"SELECT id FROM booking WHERE room = 1", "SELECT id, hour FROM booking WHERE room = 1"},
		two:    []string{"INSERT INTO booking VALUES (2, 1, 9)"},
		levels: map[string][]string{"postgres": {"read committed"}, "mysql": {"read committed"}, "mariadb": {"read committed"}, "tidb": {"read committed"}},
		written: map[anomaly.Remedy]map[string]string{
			anomaly.RemedyOneRead: {"SELECT id FROM booking WHERE room = 1": ""},
			anomaly.RemedyParent:  {"lock": "SELECT id FROM room WHERE id = 1 FOR UPDATE", "update": "UPDATE room SET n = n + 1 WHERE id = 1"},
		},
	},
	{
		name:   anomaly.Vanishes,
		setup:  []string{"CREATE TABLE stock (id INT PRIMARY KEY, n INT)", "INSERT INTO stock VALUES (1, 50), (2, 50)"},
		one:    []string{"SELECT n FROM stock WHERE id = 1", "SELECT n FROM stock WHERE id = 2"},
		two:    []string{"UPDATE stock SET n = 60 WHERE id = 1", "UPDATE stock SET n = 60 WHERE id = 2"},
		levels: map[string][]string{"mysql": {"read uncommitted"}, "mariadb": {"read uncommitted"}},
		written: map[anomaly.Remedy]map[string]string{anomaly.RemedyOneRead: {
			"SELECT n FROM stock WHERE id = 1": "SELECT id, n FROM stock WHERE id IN (1, 2)", "SELECT n FROM stock WHERE id = 2": "",
		}},
	},
}

// remediesApart gives BEGIN and COMMIT steps of their own, which makes ten times as many interleavings, and executes each race at all levels.
var remediesApart = flag.Bool("remedies-apart", false, "TestRemedies: each race at all levels, and BEGIN and COMMIT are steps of their own in the interleavings")

// TestRemedies executes each remedy that a finding offers, on each product, at the highest level that lets the race through (in `make soak` at all of them):
// with it, no interleaving of the scenario shows the anomaly. Without it, some do.
func TestRemedies(t *testing.T) {
	t.Parallel()
	engines := []string{"postgres", "mariadb"}
	if testserver.IsMySQL() || testserver.IsTiDB() {
		engines = []string{testserver.Family(t).Engine}
	}
	for _, engine := range engines {
		tried := map[anomaly.Remedy]bool{}
		for _, r := range races {
			levels := r.levels[engine]
			if !*remediesApart {
				levels = levels[max(0, len(levels)-1):]
			}
			for _, level := range levels {
				t.Run(engine+" "+level+" "+r.name, func(t *testing.T) {
					for _, kind := range r.try(t, engine, level) {
						tried[kind] = true
					}
				})
			}
		}
		if strings.Contains(flag.Lookup("test.run").Value.String(), "/") {
			continue // some races were left out
		}
		for _, a := range anomaly.List {
			for _, kind := range a.Remedies {
				switch {
				case tried[kind] || kind == anomaly.RemedyOneTxn: // between requests, which a scenario does not have
				default:
					t.Errorf("%s: remedy %s was not tried", engine, kind)
				}
			}
		}
	}
}

// try executes each remedy that the race's finding offers, and gives them.
func (r *race) try(t *testing.T, engine, level string) (tried []anomaly.Remedy) {
	t.Helper()
	f := pick(r.run(t, engine, level, nil, ""), r.name)
	if f == nil {
		t.Fatalf("no %s without a remedy", r.name)
	}
	for _, remedy := range f.Remedies {
		tried = append(tried, remedy.Kind)
		at, change := level, r.written[remedy.Kind]
		switch {
		case remedy.Kind == anomaly.RemedyLevel:
			at = product.Of(engine).Level(f.PreventedBy).SQL
		case remedy.Kind == anomaly.RemedyParent: // what the text says first
			change = map[string]string{"first": change[strings.Fields(strings.TrimPrefix(remedy.Text, "first "))[0]]}
			if strings.Contains(remedy.Text, "FOR UPDATE") {
				maps.Copy(change, r.rewritten(engine, oracle.Remedy{Kind: anomaly.RemedyLock}))
			}
		case remedy.SQL != "":
			change = r.rewritten(engine, remedy)
		}
		if at == level && change == nil {
			t.Errorf("remedy %s has no statement: %s", remedy.Kind, remedy.Text)
			continue
		}
		if after := r.run(t, engine, at, change, remedy.Kind); pick(after, r.name) != nil {
			t.Errorf("%s in spite of the remedy %s: %s %v", r.name, remedy.Kind, remedy.Text, change)
		}
	}
	return tried
}

// pick finds a finding by its name.
func pick(list []oracle.Finding, name string) *oracle.Finding {
	if i := slices.IndexFunc(list, func(f oracle.Finding) bool { return f.Name == name }); i >= 0 {
		return &list[i]
	}
	return nil
}

// rewritten maps the statements of both sessions that look like the one that a remedy rewrote: values differ.
func (r *race) rewritten(engine string, remedy oracle.Remedy) map[string]string {
	change := map[string]string{}
	for _, sql := range append(slices.Clone(r.one), r.two...) {
		f := oracle.Finding{Class: anomaly.GSingle, Name: anomaly.LostUpdate, Transactions: []oracle.Transaction{{Statements: []oracle.Statement{{N: 1, SQL: sql}}}}}
		for _, kind := range []oracle.EdgeKind{oracle.EdgeRW, oracle.EdgeWW} {
			f.Edges = []oracle.Edge{{Kind: kind, FromStatement: 1, ToStatement: 1}}
			for _, same := range oracle.Remedies(product.Of(engine), &f) {
				if same.Kind == remedy.Kind && same.SQL != "" {
					change[sql] = strings.Replace(same.SQL, "?", r.fill[remedy.Kind], 1)
				}
			}
		}
	}
	return change
}

// merge gives all interleavings of two lists.
func merge(one, two []string, yield func([]string)) {
	if len(one) == 0 || len(two) == 0 {
		yield(append(slices.Clone(one), two...))
		return
	}
	merge(one[1:], two, func(rest []string) { yield(append([]string{one[0]}, rest...)) })
	merge(one, two[1:], func(rest []string) { yield(append([]string{two[0]}, rest...)) })
}

// run executes all interleavings of the race's two sessions, and gives what was found.
func (r *race) run(t *testing.T, engine, level string, change map[string]string, kind anomaly.Remedy) (found []oracle.Finding) {
	t.Helper()
	var b strings.Builder
	for _, sql := range r.setup {
		fmt.Fprintf(&b, "setup { %s }\n", sql)
	}
	if sql := change["setup"]; sql != "" {
		fmt.Fprintf(&b, "setup { %s }\n", sql)
	}
	var blocks [2][]string
	for i, session := range [][]string{r.one, r.two} {
		fmt.Fprintf(&b, "session s%d\n", i+1)
		var steps []string
		for _, sql := range append([]string{"first"}, session...) {
			if other, ok := change[sql]; ok || sql == "first" {
				sql = other
			}
			if sql != "" {
				steps = append(steps, sql)
			}
		}
		// A block is what the interleavings do not take apart.
		last := len(steps) - 1
		for n, sql := range append(append([]string{"BEGIN"}, steps...), "COMMIT") {
			name := fmt.Sprintf("s%d_%d", i+1, n)
			fmt.Fprintf(&b, "step %s { %s }\n", name, sql)
			if n == 1 || n == last+2 {
				k := len(blocks[i]) - 1
				blocks[i][k] += " " + name
			} else {
				blocks[i] = append(blocks[i], name)
			}
		}
	}
	if !*remediesApart {
		merge(blocks[0], blocks[1], func(order []string) { fmt.Fprintf(&b, "permutation %s\n", strings.Join(order, " ")) })
	}
	path := filepath.Join(t.TempDir(), strings.ReplaceAll(r.name, " ", "-")+".spec")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	place := serverURL(testserver.Postgres(t))
	if engine != "postgres" {
		place = serverURL(testserver.Family(t))
	}
	out, said, status := command(t, "run", path, "--engine", place, "--level", level, "--oracle", "isolation", "--format", "json", "--log-level", "error")
	var result struct {
		Cases []struct {
			Trouble  string
			Findings []oracle.Finding
		}
	}
	if err := json.Unmarshal([]byte(out), &result); err != nil || status != exitClean && status != exitFound || len(result.Cases) < 2 {
		t.Fatalf("%s %s, remedy %q: exit status %d, %d interleavings, %v\n%s\n%s", engine, level, kind, status, len(result.Cases), err, said, b.String())
	}
	for _, c := range result.Cases {
		if c.Trouble != "" {
			t.Errorf("%s %s, remedy %q: %s", engine, level, kind, c.Trouble)
		}
		found = append(found, c.Findings...)
	}
	return found
}
