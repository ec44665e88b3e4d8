package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"wirecheck/scenario"
)

// repeats is how often the same seed is run: short in `make test`, 200 times in `make soak`.
var repeats = flag.Int("repeats", 20, "how often TestSameSeedSameOutput runs each seed")

// circles has three sessions that wait for one another in circles of two and three, and for the outcome of an INSERT. No
// row is wanted by all three: PostgreSQL does not say which of two goes first that waited for a third's row, see docs/ARCHITECTURE.md,
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
	stop := make(chan struct{})
	t.Cleanup(func() { close(stop) })
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

// TestSameSeedSameOutput runs the same seed again and again while others need the processors: what is printed is the
// same, byte by byte, with deadlocks among it.
func TestSameSeedSameOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "circles.spec")
	if err := os.WriteFile(path, []byte(circles), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, engine := range []string{"postgres", "mariadb"} {
		for _, permutations := range []string{"random:6", "pct:6,3"} {
			t.Run(engine+"/"+permutations, func(t *testing.T) {
				mode, err := scenario.ParsePermutations(permutations)
				if err != nil {
					t.Fatal(err)
				}
				server, err := openSite(t.Context(), engine)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := server.Close(); err != nil {
						t.Error(err)
					}
				}()
				busy(t, 2)
				want := ""
				for n := range *repeats {
					var out, said bytes.Buffer
					c := &common{format: "text", logLevel: "warn", seed: 11, stdout: &out, stderr: &said}
					if err := c.setUp(); err != nil {
						t.Fatal(err)
					}
					r := &runner{c: c, f: runFlags{engines: []string{engine}, oracles: "isolation", mode: mode}, sites: map[string]*site{engine: server}}
					specs, err := readSpecs(c, []string{path})
					if err != nil {
						t.Fatal(err)
					}
					if err := r.spec(t.Context(), specs[0]); err != nil {
						t.Fatalf("run %d: %v\n%s", n, err, said.String())
					}
					got := out.String()
					if n == 0 {
						want = got
						if strings.Count(got, "... waits") < 5 || !strings.Contains(strings.ToLower(got), "deadlock") {
							t.Errorf("hardly anything happens:\n%s", got)
						}
					}
					if line, g, w := firstDifference([]byte(got), []byte(want)); line > 0 {
						t.Fatalf("run %d of %d differs in line %d:\n got %s\nwant %s\nthe whole of it:\n%s", n+1, *repeats, line, g, w, got)
					}
				}
			})
		}
	}
}
