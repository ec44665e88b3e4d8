package generate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/product"
)

// enginesVariable names further engines to test on: "mysql tidb:2025-11". Each must be on the machine.
const enginesVariable = "WIRECHECK_TEST_ENGINES"

// place is a server with a database in which cases are executed one after the other.
type place struct {
	d       engine.Descriptor
	dialect generate.Dialect
	target  engine.Target
	control engine.Conn
	labs    *engine.Labs
	server  *engine.Server
}

// eachEngine runs a test on a private server of each engine.
func eachEngine(t *testing.T, test func(t *testing.T, p *place)) {
	for _, name := range append([]string{"postgres", "mariadb", "sqlite"}, strings.Fields(os.Getenv(enginesVariable))...) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := openPlace(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := p.close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}()
			test(t, p)
		})
	}
}

func openPlace(ctx context.Context, name string) (_ *place, err error) {
	p := &place{}
	if p.d, err = backends.ByName(name); err != nil {
		return nil, err
	}
	p.dialect = generate.Dialect(p.d.Name)
	if p.server, err = p.d.Start(ctx, engine.Options{Settings: p.d.LabSettings}); err != nil {
		return nil, err
	}
	if p.labs, err = engine.OpenLabs(ctx, p.d, p.server.Target()); err != nil {
		return nil, errors.Join(err, p.server.Close())
	}
	if p.target, err = p.labs.Create(ctx); err == nil {
		p.control, err = p.d.Connect(ctx, p.target)
	}
	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	return p, nil
}

func (p *place) close(ctx context.Context) error {
	var errs []error
	if p.control != nil {
		errs = append(errs, p.control.Close())
	}
	return errors.Join(append(errs, p.labs.Close(ctx), p.server.Close())...)
}

// clear makes the database empty.
func (p *place) clear(ctx context.Context) error {
	if a, err := p.control.Do(ctx, "ROLLBACK"); err != nil || a.After.InTransaction() { // SQLite refuses it where nothing is open
		return errors.Join(err, a.Err)
	}
	return engine.Exec(ctx, p.control, p.d.Lab.Clear(p.target.Database))
}

// refusal is a statement that the server did not take, through its own fault.
type refusal struct {
	generate.Statement
	err *answer.Error
}

// tally counts what came of statements.
type tally struct {
	accepted, rejected, conflicts, skipped int
	refusals                               []refusal
	setups                                 []refusal
	features                               map[string]bool // of accepted statements
}

func (c *tally) share() float64 { return float64(c.accepted) / float64(c.accepted+len(c.refusals)) }

// top lists the most frequent refusals with an example each.
func (c *tally) top() string {
	counts, example := map[string]int{}, map[string]refusal{}
	var codes []string
	for _, r := range append(c.setups, c.refusals...) {
		if counts[r.err.Code] == 0 {
			codes = append(codes, r.err.Code)
		}
		counts[r.err.Code]++
		example[r.err.Code] = r
	}
	var out strings.Builder
	for _, code := range codes {
		fmt.Fprintf(&out, "%d x %s\n    %s\n", counts[code], example[code].err, example[code].SQL)
	}
	return out.String()
}

// note counts one statement's answer.
func (c *tally) note(st generate.Statement, a answer.Answer) {
	e := a.Err
	switch {
	case a.Before == answer.Failed && e != nil:
		c.skipped++
	case e == nil:
		c.accepted++
		for _, f := range st.Features {
			c.features[f] = true
		}
	case isConstraint(e.Code):
		c.rejected++
	case isConflict(e.Code):
		c.conflicts++
	default:
		c.refusals = append(c.refusals, refusal{st, e})
	}
}

// isConstraint reports whether rows of the moment, not the statement, are the reason: constraint violations (PostgreSQL class
// 23; MySQL: duplicate, NULL, foreign keys, CHECK, no partition).
func isConstraint(code string) bool {
	switch code {
	case "1062", "1048", "1451", "1452", "3819", "4025", "1526", "1586", "8141", "1748":
		return true
	}
	if strings.HasPrefix(code, "SQLITE_CONSTRAINT_") {
		return true
	}
	return len(code) == 5 && strings.HasPrefix(code, "23")
}

// isConflict reports whether a concurrent transaction is the reason.
func isConflict(code string) bool {
	switch code {
	case "40001", "40P01", "55P03", "1213", "1205", "1020", "3572", "9007", "8002", "8028", "SQLITE_BUSY", "SQLITE_BUSY_SNAPSHOT":
		return true
	}
	return false
}

// run executes the setup and then each session after the other, on one connection: nothing waits for anything.
func (p *place) run(ctx context.Context, k *generate.Case, c *tally) error {
	if err := p.clear(ctx); err != nil {
		return err
	}
	for _, st := range k.Database.Setup {
		a, err := p.control.Do(ctx, st.SQL)
		if err != nil {
			return fmt.Errorf("%s: %w", st.SQL, err)
		}
		if a.Err != nil {
			c.setups = append(c.setups, refusal{st, a.Err})
			return nil
		}
		c.note(st, a)
	}
	for _, s := range k.Sessions {
		for _, tx := range s.Transactions {
			for _, st := range tx.Statements {
				a, err := p.control.Do(ctx, st.SQL)
				if err != nil {
					return fmt.Errorf("%s: %w", st.SQL, err)
				}
				c.note(st, a)
			}
		}
	}
	return nil
}

// one makes and runs the case of a seed.
func (p *place) one(t *testing.T, seed uint64, limits generate.Limits, c *tally) *generate.Case {
	t.Helper()
	g, err := generate.New(p.dialect, limits, seeded(seed))
	if err != nil {
		t.Fatal(err)
	}
	k := g.Case()
	if err := p.run(t.Context(), k, c); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	return k
}

func seeded(seed uint64) func(int) int { return rand.New(rand.NewPCG(seed, 0)).IntN }

// TestOnServers executes what is generated on real servers.
func TestOnServers(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		t.Run("acceptance", func(t *testing.T) { acceptance(t, p) })
		t.Run("lab", func(t *testing.T) { inLab(t, p) })
		t.Run("plans", func(t *testing.T) { plans(t, p) })
		t.Run("rows in another order", func(t *testing.T) { otherRowOrder(t, p) })
	})
}

// acceptance: nearly all statements are valid, every setup is, and every feature works.
func acceptance(t *testing.T, p *place) {
	const count = 120
	c := &tally{features: map[string]bool{}}
	for seed := range count * *more {
		p.one(t, seed, generate.Limits{}, c)
	}
	t.Logf("%d statements accepted, %d refused through their own fault (share %.4f), %d constraint violations, %d conflicts, %d after a failure\n%s",
		c.accepted, len(c.refusals), c.share(), c.rejected, c.conflicts, c.skipped, c.top())
	if len(c.setups) > 0 {
		t.Errorf("%d setups were refused", len(c.setups))
	}
	if c.accepted < 1700 || c.share() < 0.90 {
		t.Errorf("%d statements accepted, share %.3f; want at least 1700 and 0.90", c.accepted, c.share())
	}
	// What a statement's own fault is counted as one, in case all of this counts nothing.
	a, err := p.control.Do(t.Context(), "SELECT nothing FROM nowhere")
	if err != nil {
		t.Fatal(err)
	}
	near := &tally{features: map[string]bool{}}
	if near.note(generate.Statement{}, a); len(near.refusals) != 1 || near.accepted != 0 {
		t.Errorf("an invalid statement is counted as %+v", near)
	}
	eachFeature(t, p, c)
}

// eachFeature sees to it that every feature of the dialect was in a statement that the server accepted: those that the cases so
// far did not have, in cases that favor them.
func eachFeature(t *testing.T, p *place, c *tally) {
	const attempts = 150
	for _, f := range generate.Features(p.dialect) {
		for seed := uint64(1000); !c.features[f.Name] && seed < 1000+attempts; seed++ {
			p.one(t, seed, generate.Limits{Favor: []string{f.Name}}, c)
		}
		if !c.features[f.Name] {
			t.Errorf("%s: no statement with it was accepted in %d cases that favor it", f.Name, attempts)
		}
	}
	t.Logf("with cases that favor features: %d accepted, share %.4f\n%s", c.accepted, c.share(), c.top())
}

// inLab executes cases as wirecheck run does: in the submitted order, with sessions that wait for each other.
func inLab(t *testing.T, p *place) {
	level := p.d.Levels[slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.SQL == p.d.Default })]
	target, err := p.labs.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := lab.Open(t.Context(), lab.Config{Backend: p.d, Target: target, Side: target, Level: level})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}()
	waits, ran := 0, 0
	for seed := range 25 * *more {
		k := newGenerator(t, p.dialect, generate.Limits{}, seed).Case()
		r, err := l.Run(t.Context(), k.Spec, k.Spec.Permutations[0], func(bool) {})
		if err != nil || r.Trouble != nil || r.Crashed {
			t.Fatalf("seed %d: %v, %+v\n%s", seed, err, r, printed(t, seed, k))
		}
		for _, e := range r.Events {
			switch e.Kind {
			case lab.Waits:
				waits++
			case lab.Ran, lab.Resumed:
				ran++
			}
		}
	}
	t.Logf("%d steps, %d of which waited", ran, waits)
	if waits < 5 && !p.d.NeverWaits {
		t.Errorf("%d steps waited for another session; want at least 5", waits)
	}
}

// rows gives what a statement returned, without regard to the order of the rows, or its error's code.
func (p *place) rows(t *testing.T, sql string) string {
	t.Helper()
	a, err := p.control.Do(t.Context(), sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	if a.Err != nil {
		return "error " + a.Err.Code
	}
	var lines []string
	for _, result := range a.Results {
		for _, row := range result.Rows {
			lines = append(lines, fmt.Sprintf("%q", row))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// otherPlans are settings under which the optimizer chooses other plans, and how to go back.
func otherPlans(d generate.Dialect) (settings []string, back string) {
	switch d {
	case generate.SQLite:
		return []string{"PRAGMA automatic_index = OFF; PRAGMA reverse_unordered_selects = ON"}, "PRAGMA automatic_index = ON; PRAGMA reverse_unordered_selects = OFF"
	case generate.TiDB: // it has no such settings
		return nil, ""
	case generate.Postgres:
		return []string{
			"SET jit = off; SET enable_seqscan = off; SET enable_bitmapscan = off",
			"SET jit = off; SET enable_hashjoin = off; SET enable_hashagg = off; SET enable_mergejoin = off",
			"SET jit = off; SET enable_nestloop = off; SET enable_sort = off; SET enable_indexscan = off",
		}, "RESET ALL"
	}
	return []string{
		"SET optimizer_switch = 'materialization=off,semijoin=off,derived_merge=off'",
		"SET optimizer_switch = 'index_merge=off,mrr=on,firstmatch=off,loosescan=off'",
	}, "SET optimizer_switch = DEFAULT"
}

// build makes a database empty and executes a setup in it. InnoDB gathers statistics at some time after it, and with them come other plans, so it
// is asked for them at once: MySQL 9.7 gave another answer to a query of seed 18 in the moment before.
func (p *place) build(t *testing.T, seed uint64, setup []generate.Statement) {
	t.Helper()
	if err := p.clear(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, st := range setup {
		if err := engine.Exec(t.Context(), p.control, st.SQL); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if p.dialect != generate.MySQL && p.dialect != generate.MariaDB {
		return
	}
	for _, st := range setup {
		if st.Kind != generate.KindSchema {
			continue
		}
		for _, name := range st.Tables {
			if err := engine.Exec(t.Context(), p.control, "ANALYZE TABLE "+name); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// rotate gives a feature of that kind, another one for each seed, so that rare ones are tried, too.
func rotate(d generate.Dialect, where string, seed uint64) []string {
	var names []string
	for _, f := range generate.Features(d) {
		if f.Where == where && f.Name != "insert-multi-row" && !f.OptIn {
			names = append(names, f.Name)
		}
	}
	return []string{names[seed%uint64(len(names))]}
}

// plans: queries give the same rows whatever the plan is: with other settings, without indexes, with rows stored in another order.
func plans(t *testing.T, p *place) {
	compared := 0
	for seed := range 25 * *more {
		// Where types are mixed, differences between plans are bugs of the servers (docs/lab/hunts.md).
		limits := generate.Limits{Rows: 8, Exclude: []string{"insert-multi-row", "foreign-key-self", "mixed-types", "cast-types", "bit-operator", "unary-minus"}}
		limits.Favor = append(rotate(p.dialect, "Query", seed), "type-varchar")
		limits.Favor = slices.DeleteFunc(limits.Favor, func(name string) bool { return slices.Contains(limits.Exclude, name) })
		g := newGenerator(t, p.dialect, limits, seed)
		db := g.Database()
		var queries, want []string
		p.build(t, seed, db.Setup)
		for range 20 {
			queries = append(queries, g.Query(db).SQL)
			want = append(want, p.rows(t, queries[len(queries)-1]))
		}
		compare := func(what string) {
			for i, q := range queries {
				if diff := cmp.Diff(want[i], p.rows(t, q)); diff != "" {
					t.Errorf("seed %d, %s: %s (-before +after):\n%s", seed, what, q, diff)
				}
				compared++
			}
		}
		settings, back := otherPlans(p.dialect)
		for _, setting := range settings {
			if err := engine.Exec(t.Context(), p.control, setting); err != nil {
				t.Fatal(err)
			}
			compare(setting)
			if err := engine.Exec(t.Context(), p.control, back); err != nil {
				t.Fatal(err)
			}
		}
		p.build(t, seed, slices.DeleteFunc(reverseInserts(db.Setup, true), func(st generate.Statement) bool { return slices.Contains(st.Features, "index") }))
		compare("without indexes, rows in another order")
	}
	t.Logf("%d answers compared", compared)
}

// otherRowOrder: executed one session after the other, a case ends with the same rows wherever the rows of the setup were stored.
func otherRowOrder(t *testing.T, p *place) {
	compared := 0
	for seed := range 60 * *more {
		limits := generate.Limits{Rows: 8, Exclude: []string{"foreign-key-self", "insert-multi-row"}, Templates: -1}
		limits.Favor = rotate(p.dialect, "Write", seed)
		k := newGenerator(t, p.dialect, limits, seed).Case()
		var ends []string
		for _, backwards := range []bool{false, true} {
			turned := *k.Database
			turned.Setup = reverseInserts(turned.Setup, backwards)
			again := *k
			again.Database = &turned
			c := &tally{features: map[string]bool{}}
			if err := p.run(t.Context(), &again, c); err != nil {
				t.Fatal(err)
			}
			if len(c.setups) > 0 {
				t.Fatalf("seed %d: %s", seed, c.top())
			}
			end := ""
			for _, table := range k.Database.Tables {
				end += table.Name + "\n" + p.rows(t, "SELECT * FROM "+table.Name) + "\n"
			}
			ends = append(ends, end)
		}
		if diff := cmp.Diff(ends[0], ends[1]); diff != "" {
			t.Errorf("seed %d (-forwards +backwards):\n%s\n%s", seed, diff, printed(t, seed, k))
		}
		compared++
	}
	t.Logf("%d cases compared", compared)
}

// reverseInserts puts the INSERT statements of each table in the opposite order.
func reverseInserts(setup []generate.Statement, backwards bool) []generate.Statement {
	out := slices.Clone(setup)
	for i := 0; backwards && i < len(out); i++ {
		n := i
		for n < len(out) && out[n].Kind == generate.KindInsert && out[n].Tables[0] == out[i].Tables[0] {
			n++
		}
		if n > i {
			slices.Reverse(out[i:n])
			i = n - 1
		}
	}
	return out
}
