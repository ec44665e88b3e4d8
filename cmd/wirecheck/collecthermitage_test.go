package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/stream"
	"wirecheck/lab/scenario"
)

// TestCollectHermitage: of the Hermitage scenarios that are not among the interleavings, too, several proxies find what one finds.
func TestCollectHermitage(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"postgres", "mariadb"} {
		w := newWorld(t, engine, "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
		w.clock, w.items = time.Now, true // what a condition passed over is not judged between proxies
		found := 0
		for _, name := range []string{"g-single-dependencies", "g-single-write-1", "g-single-write-2", "g2-two-edges", "pmp-write"} {
			in := hermitage(t, name)
			levels := []string{"READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"}
			if engine == "postgres" {
				levels = levels[1:] // the first is the second one there
			}
			for _, level := range levels {
				t.Run(engine+"/"+name+"/"+strings.ToLower(level), func(t *testing.T) {
					ctx, cancel := context.WithTimeout(context.Background(), patience)
					defer cancel()
					w.publish = nil
					th := w.observe(t, "DELETE FROM test", "INSERT INTO test (id, value) VALUES (1, 10), (2, 20)")
					s := newStage(t, ctx, w.admin, th.target, level)
					s.play(ctx, lines(in.steps))
					s.close()
					one := th.stop(t)
					f := newFleet(t)
					w.publish = func() *stream.Publisher { return f.publisher(t, fmt.Sprint("run", len(f.list))) }
					s = in.spread(t, w, level, 3)
					f.published(t)
					if diff := cmp.Diff(ids(one.findings), ids(f.collected(t))); diff != "" {
						t.Errorf("three proxies (-one +three):\n%s\n%s", diff, strings.Join(s.told, "\n"))
					}
					found += len(one.findings)
				})
			}
		}
		if found == 0 {
			t.Errorf("%s: nothing was found at any level", engine)
		}
	}
}

// hermitage is the interleaving of a scenario.
func hermitage(t *testing.T, name string) interleaving {
	t.Helper()
	text, err := os.ReadFile("../../testdata/hermitage/" + name + ".spec")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := scenario.Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	in := interleaving{name: name}
	for _, step := range spec.Permutations[0].Steps {
		in.steps += fmt.Sprintf("%d %s\n", step.Step.Session+1, step.Step.SQL)
	}
	return in
}
