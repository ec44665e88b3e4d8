package txcheck_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"wirecheck/lab/generate"
)

// BenchmarkCheck judges generated cases of two transactions, ten on each database, and reports how many a second.
func BenchmarkCheck(b *testing.B) {
	for _, name := range engines() {
		p := start(b, name)
		for _, level := range p.engine.Levels {
			b.Run(name+"/"+level.History, func(b *testing.B) {
				bench := p.bench(b, level, 1)
				var spent time.Duration
				for i := range b.N {
					g, err := generate.New(generate.Dialect(p.engine.Name), generate.Limits{Transactions: 2}, rand.New(rand.NewPCG(5, uint64(i/10))).IntN)
					if err != nil {
						b.Fatal(err)
					}
					c := g.Case()
					for range i % 10 {
						c = g.CaseOn(c.Database)
					}
					took, _ := bench.timed(b, c.Spec, c.Spec.Permutations[0])
					spent += took
				}
				b.ReportMetric(float64(b.N)/spent.Seconds(), "cases/s")
			})
		}
	}
}
