package generate_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/generate"
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
	for _, name := range append([]string{"postgres", "mariadb"}, strings.Fields(os.Getenv(enginesVariable))...) {
		t.Run(name, func(t *testing.T) {
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
	if err := engine.Exec(ctx, p.control, "ROLLBACK"); err != nil {
		return err
	}
	return engine.Exec(ctx, p.control, p.d.Lab.Clear(p.target.Database))
}

// refusal is a statement that the server did not take, through its own fault.
type refusal struct {
	generate.Statement
	err *engine.ServerError
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
func (c *tally) note(st generate.Statement, a engine.Answer) {
	e := a.Err
	switch {
	case a.Before == engine.Failed && e != nil:
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
	return len(code) == 5 && strings.HasPrefix(code, "23")
}

// isConflict reports whether a concurrent transaction is the reason.
func isConflict(code string) bool {
	switch code {
	case "40001", "40P01", "55P03", "1213", "1205", "1020", "3572", "9007", "8002", "8028":
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

// TestAcceptance: nearly all statements are valid, and every setup is.
func TestAcceptance(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		const cases = 120
		c := &tally{features: map[string]bool{}}
		for seed := range uint64(cases) {
			p.one(t, seed, generate.Limits{}, c)
		}
		t.Logf("%d statements accepted, %d refused through their own fault (share %.4f), %d constraint violations, %d conflicts, %d after a failure\n%s",
			c.accepted, len(c.refusals), c.share(), c.rejected, c.conflicts, c.skipped, c.top())
		if len(c.setups) > 0 {
			t.Errorf("%d setups were refused", len(c.setups))
		}
		if c.accepted < 1500 || c.share() < 0.90 {
			t.Errorf("%d statements accepted, share %.3f; want at least 1500 and 0.90", c.accepted, c.share())
		}
		eachFeature(t, p, c)
	})
}

// eachFeature sees to it that every feature of the dialect was in a statement that the server accepted: those that the cases so
// far did not have, in cases that favor them.
func eachFeature(t *testing.T, p *place, c *tally) {
	const attempts = 40
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
