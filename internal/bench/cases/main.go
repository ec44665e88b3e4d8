// Command cases measures how many concurrent test cases a second a lab executes: two transactions of four statements on a
// table of five rows, in random interleavings, everything included from putting the rows back to reading the tables at the end.
//
//	go run ./internal/bench/cases [-n CASES] [-engines postgres,mariadb]
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"time"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// text is the scenario. The two transactions meet on some rows, so that some statements wait.
const text = `
setup { CREATE TABLE t (id INT PRIMARY KEY, k INT, v INT); }
setup { INSERT INTO t VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 2, 40), (5, 3, 50); }
teardown { DROP TABLE t; }
session s1
step b1 { BEGIN }
step r1 { SELECT * FROM t WHERE k = 1 }
step u1 { UPDATE t SET v = v + 1 WHERE id = 2 }
step v1 { UPDATE t SET v = 7 WHERE id = 3 }
step q1 { SELECT * FROM t WHERE id = 5 }
step c1 { COMMIT }
session s2
step b2 { BEGIN }
step r2 { SELECT * FROM t WHERE id < 4 }
step u2 { UPDATE t SET v = v + 1 WHERE id = 3 }
step i2 { INSERT INTO t VALUES (6, 3, 60) }
step d2 { DELETE FROM t WHERE id = 4 }
step c2 { COMMIT }
`

func main() {
	n := flag.Int("n", 300, "cases in each round")
	rounds := flag.Int("rounds", 5, "rounds; the median counts")
	engines := flag.String("engines", "postgres,mariadb", "products")
	flag.Parse()
	if err := run(*n, *rounds, strings.Split(*engines, ",")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

func run(n, rounds int, engines []string) error {
	spec, err := scenario.Parse("cases.spec", []byte(text))
	if err != nil {
		return err
	}
	fmt.Printf("two transactions of four statements, five rows, random interleavings; to reach: 150 cases a second\n")
	for _, name := range engines {
		if err := measure(spec, name, n, rounds); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func measure(spec *scenario.Spec, name string, n, rounds int) (err error) {
	ctx := context.Background()
	d, err := backends.ByName(name)
	if err != nil {
		return err
	}
	s, err := d.Start(ctx, engine.Options{Settings: d.LabSettings})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	labs, err := engine.OpenLabs(ctx, d, s.Target())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, labs.Close(ctx)) }()
	i := slices.IndexFunc(d.Levels, func(l product.Level) bool { return l.History == product.RepeatableRead })
	for _, reset := range []struct {
		how  lab.Reset
		name string
	}{{lab.Quick, "DELETE and INSERT"}, {lab.Thorough, "TRUNCATE and INSERT"}, {lab.Setup, "DROP and CREATE"}} {
		target, err := labs.Create(ctx)
		if err != nil {
			return err
		}
		l, err := lab.Open(ctx, lab.Config{Backend: d, Target: target, Side: target, Level: d.Levels[i], Reset: reset.how})
		if err != nil {
			return err
		}
		var rates []float64
		var total counts
		for round := range rounds {
			c, took, err := cases(ctx, l, spec, n, uint64(round))
			if err != nil {
				return errors.Join(err, l.Close())
			}
			rates = append(rates, float64(n)/took.Seconds())
			total.waits, total.errors = total.waits+c.waits, total.errors+c.errors
		}
		slices.Sort(rates)
		fmt.Printf("%-10s %-20s %4.0f cases/s  [%.0f .. %.0f]   %.2f waits and %.2f errors a case\n", d.Title, reset.name, rates[len(rates)/2], rates[0],
			rates[len(rates)-1], float64(total.waits)/float64(n*rounds), float64(total.errors)/float64(n*rounds))
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// counts is what happened in the cases.
type counts struct{ waits, errors int }

func cases(ctx context.Context, l *lab.Lab, spec *scenario.Spec, n int, seed uint64) (c counts, took time.Duration, err error) {
	orders := slices.Collect(spec.Orders(scenario.Mode{Kind: scenario.KindRandom, N: n}, scenario.Choice{Intn: rand.New(rand.NewPCG(seed, 0)).IntN}))
	began := time.Now()
	for i := range n {
		r, err := l.Run(ctx, spec, orders[i%len(orders)], func(bool) {})
		if err == nil {
			err = r.Trouble
		}
		if err != nil {
			return c, 0, err
		}
		for _, ev := range r.Events {
			if ev.Kind == lab.Waits {
				c.waits++
			}
			if ev.Answer.Err != nil {
				c.errors++
			}
		}
	}
	return c, time.Since(began), nil
}
