package panel

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// repeats is how often the same seed is run: short in `make test`, 200 times in `make soak`.
var repeats = flag.Int("repeats", 2, "how often TestSameSeedSameOutput runs each seed")

// circles has three sessions that wait for one another in circles of two and three, and for the outcome of an INSERT. No
// row is wanted by all three: PostgreSQL does not say which of two goes first that waited for a third's row, see docs/explain/architecture.md,
// "The lab".
const circles = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int) }
setup { INSERT INTO t VALUES (1, 0), (2, 0), (3, 0), (9, 0) }
teardown { DROP TABLE t }

session s1
step a1 { BEGIN }
step a2 { UPDATE t SET n = n + 1 WHERE id = 1 }
step a3 { UPDATE t SET n = n * 2 + 1 WHERE id = 2 }
step a4 { SELECT * FROM t WHERE id = 9 FOR UPDATE }
step a5 { COMMIT }

session s2
step b1 { BEGIN }
step b2 { UPDATE t SET n = n + 10 WHERE id = 9 }
step b3 { INSERT INTO t VALUES (4, 40) }
step b4 { UPDATE t SET n = n + 10 WHERE id = 2 }
step b5 { UPDATE t SET n = n + 10 WHERE id = 3 }
step b6 { COMMIT }

session s3
step c1 { BEGIN }
step c2 { SELECT n FROM t WHERE id = 3 FOR UPDATE }
step c3 { DELETE FROM t WHERE id = 1 }
step c4 { INSERT INTO t VALUES (4, 44) }
step c5 { COMMIT }
step c6 { UPDATE t SET n = -1 WHERE id = 1 }
`

// busy keeps as many processors busy as there are goroutines, until the test ends.
func busy(t *testing.T, goroutines int) {
	// They take the machine's processors, not the Go scheduler's, which would add ten milliseconds to every message.
	before := runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + goroutines)
	stop := make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		runtime.GOMAXPROCS(before)
	})
	for range goroutines {
		go func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
					if n%1000 == 0 {
						runtime.Gosched()
					}
				}
			}
		}()
	}
}

// TestSameSeedSameOutput runs the same seeds again and again, in `make soak` while others need the processors: what is printed is the same, byte by
// byte, with deadlocks among it.
func TestSameSeedSameOutput(t *testing.T) {
	spec := parse(t, circles)
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s, err := backends.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			level, err := FindLevel(s.Engine, s.Engine.Default)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level}, Selection{Isolation: true}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close(context.Background()) })
			if *repeats > 2 { // make soak; in make test, other packages need the processors
				busy(t, 2)
			}
			want := ""
			for n := range *repeats {
				got := schedules(t, b, s, level, spec)
				if n == 0 {
					want = got
					if strings.Count(got, "... waits") < 8 || !strings.Contains(strings.ToLower(got), "deadlock") {
						t.Errorf("hardly anything happens:\n%s", got)
					}
				}
				if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(got, "\n")); diff != "" {
					t.Fatalf("run %d of %d differs (-want +got):\n%s\nthe whole of it:\n%s\n\nwanted:\n%s", n+1, *repeats, diff, got, want)
				}
			}
		})
	}
}

// schedules runs some random interleavings, always the same ones, and gives what is printed.
func schedules(t *testing.T, b *Panel, s *backends.Instance, level product.Level, spec *scenario.Spec) string {
	t.Helper()
	var out bytes.Buffer
	p := Printer{Format: "text", Stdout: io.Discard, Out: &out, Spec: spec, Instance: s, Level: level}
	p.Begin()
	n := 0
	for _, mode := range []scenario.Mode{{Kind: scenario.KindRandom, N: 3}, {Kind: scenario.KindPCT, N: 2, Depth: 3}} {
		for perm := range spec.Orders(mode, scenario.Choice{Intn: rand.New(rand.NewPCG(11, 0)).IntN}) {
			n++
			d, err := b.Run(t.Context(), spec, perm)
			if err != nil {
				t.Fatal(err)
			}
			if err := p.Permutation(n, d, d.Report(spec, scenario.Target{Engine: s.Engine.Name, Level: level.History})); err != nil {
				t.Fatal(err)
			}
		}
	}
	return out.String()
}

// TestWatchedAgain: what the isolation oracle says of a case does not depend on whether the database was set up for it, or only its rows came back. Beside
// a lost update stands the same without an overlap.
func TestWatchedAgain(t *testing.T) {
	const sessions = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int) }
setup { INSERT INTO t VALUES (1, 0), (2, 0) }
session s1
step a1 { BEGIN }
step a2 { SELECT n FROM t WHERE id = 1 }
step a3 { UPDATE t SET n = 1 WHERE id = 1 }
step a4 { INSERT INTO t VALUES (3, 0) }
step a5 { COMMIT }
session s2
step b1 { BEGIN }
step b2 { SELECT n FROM t WHERE id = 1 }
step b3 { UPDATE t SET n = 2 WHERE id = 1 }
step b4 { COMMIT }
permutation `
	list, err := Select("isolation,crash")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := backends.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { s.Close() })
			level, err := FindLevel(s.Engine, product.ReadCommitted)
			if err != nil {
				t.Fatal(err)
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level}, list, Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { b.Close(context.Background()) })
			wants := map[string]string{}
			for range 3 {
				for order, lost := range map[string]bool{"a1 b1 a2 b2 a3 a4 a5 b3 b4": true, "a1 a2 a3 a4 a5 b1 b2 b3 b4": false} {
					spec := parse(t, sessions+order)
					d, err := b.Run(t.Context(), spec, spec.Permutations[0])
					if err != nil {
						t.Fatal(err)
					}
					got := fmt.Sprintf("%d exact, %d of unknown writers;", d.Isolation.Coverage.Exact, d.Isolation.Coverage.UnknownWriters)
					for _, f := range d.Isolation.Findings {
						got += " " + f.Name
					}
					if want, again := wants[order]; again && got != want || (len(d.Isolation.Findings) > 0) != lost {
						t.Errorf("%s: %s, before it %q; a lost update: %v", order, got, want, lost)
					}
					wants[order] = got
				}
			}
		})
	}
}
