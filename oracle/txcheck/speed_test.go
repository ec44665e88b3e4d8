package txcheck_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"wirecheck/generate"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/txcheck"
)

type clocked struct {
	schedule.Stage
	prepare, run, reset, execute, tables      time.Duration
	nprepare, nrun, nreset, nexecute, norders int
}

func (c *clocked) Prepare(ctx context.Context, setup []string, n int) error {
	b := time.Now()
	defer func() { c.prepare += time.Since(b); c.nprepare++ }()
	return c.Stage.Prepare(ctx, setup, n)
}
func (c *clocked) Reset(ctx context.Context) error {
	b := time.Now()
	defer func() { c.reset += time.Since(b); c.nreset++ }()
	return c.Stage.Reset(ctx)
}
func (c *clocked) Execute(ctx context.Context, s int, sql string) (schedule.Step, error) {
	b := time.Now()
	defer func() { c.execute += time.Since(b); c.nexecute++ }()
	return c.Stage.Execute(ctx, s, sql)
}
func (c *clocked) Tables(ctx context.Context) ([]schedule.Table, error) {
	b := time.Now()
	defer func() { c.tables += time.Since(b) }()
	return c.Stage.Tables(ctx)
}
func (c *clocked) Run(ctx context.Context, ss []schedule.Session, o []schedule.Order) (*schedule.Schedule, error) {
	b := time.Now()
	defer func() { c.run += time.Since(b); c.nrun++; c.norders += len(o) }()
	return c.Stage.Run(ctx, ss, o)
}

func TestSpeed(t *testing.T) {
	for _, name := range engines() {
		p := start(t, name)
		for _, level := range p.engine.Levels {
			b := p.bench(t, level, 1)
			c := &clocked{Stage: b.stage}
			n := number(t, casesVariable, 30)
			var all time.Duration
			for i := range n {
				g, _ := generate.New(generate.Dialect(p.engine.Name), generate.Limits{Transactions: 2}, rand.New(rand.NewPCG(5, uint64(i))).IntN)
				spec := g.Case().Spec
				r, err := b.lab.Run(t.Context(), spec, spec.Permutations[0], func() {})
				if err != nil {
					t.Fatal(err)
				}
				s, _ := b.primary.Schedule(spec, r)
				begun := time.Now()
				if _, err := txcheck.Check(t.Context(), s, c, txcheck.Options{Intn: b.intn}); err != nil {
					t.Fatal(err)
				}
				all += time.Since(begun)
			}
			ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 / float64(n) }
			t.Logf("%s %s: %.1f cases/s; ms per case: prepare %.1f, run %.1f (%.1f runs of %.1f orders), reset %.1f (%.1f), execute %.1f (%.1f), tables %.1f", name, level.History, float64(n)/all.Seconds(),
				ms(c.prepare), ms(c.run), float64(c.nrun)/float64(n), float64(c.norders)/float64(c.nrun), ms(c.reset), float64(c.nreset)/float64(n), ms(c.execute), float64(c.nexecute)/float64(n), ms(c.tables))
		}
	}
}
