package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/fleet/stream"
)

// partition is how long the network is apart: ten seconds in `make soak`, and in `make test` until all was played.
var partition = flag.Duration("partition", 0, "how long no byte passes between NATS and a proxy or the collector in TestCollectPartition; 0: while sessions play")

// named gives interleavings by their names.
func named(t *testing.T, names ...string) (list []interleaving) {
	t.Helper()
	for _, in := range interleavings {
		if slices.Contains(names, in.name) {
			list = append(list, in)
		}
	}
	if len(list) != len(names) {
		t.Fatalf("%d of the interleavings %v", len(list), names)
	}
	return list
}

// repeatable are the anomalies of MariaDB's REPEATABLE READ, and what comes close.
func repeatable(t *testing.T) []interleaving {
	return named(t, "G1c", "P4", "P4 done with a locking read", "G-single, one snapshot", "G-single, write of what the other wrote", "G2-item", "G2-item, one after the other")
}

// asOne is what one proxy finds of the interleavings.
func asOne(t *testing.T, w *world, list []interleaving) []string {
	t.Helper()
	w.publish = nil
	var want []string
	for _, in := range list {
		_, one := in.judge(t, w, "REPEATABLE READ")
		want = append(want, ids(one.findings)...)
	}
	slices.Sort(want)
	return slices.Compact(want)
}

// publishInTurn has the world's next proxies publish to the fleets, one after the other.
func publishInTurn(t *testing.T, w *world, fleets ...*fleetOf) {
	runs := 0
	w.publish = func() *stream.Publisher {
		runs++
		return fleets[runs%len(fleets)].publisher(t, fmt.Sprint("run", runs))
	}
}

// spread plays each interleaving with each client at a proxy of its own.
func spread(t *testing.T, w *world, list []interleaving) {
	t.Helper()
	for _, in := range list {
		in.spread(t, w, "REPEATABLE READ", 2)
	}
}

// TestCollectPartition: for a while no byte passes between NATS and every other proxy, or between NATS and the collector; the connections stay. The
// sessions go on meanwhile. Afterwards all is found as by one proxy, nothing is missing, and nothing is told twice.
func TestCollectPartition(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"proxy", "collector"} {
		t.Run(of, func(t *testing.T) {
			w := newWorld(t, "mariadb", "CREATE TABLE test (id INT PRIMARY KEY, value INT)")
			w.clock = time.Now
			list := repeatable(t)
			want := asOne(t, w, list)
			f := newFleet(t)
			b, way := newBreakable(t, f.bus.URL())
			far, from := f, f.where
			if of == "proxy" {
				far = f.over(t, way)
			} else {
				from = way
			}
			told := filepath.Join(t.TempDir(), "told")
			p := startProgram(t, "collect", "--from", from, "--stream", told)
			p.until(t, "it collects", func() bool { return strings.Contains(p.stderr.String(), "collecting") })
			lines := func() int {
				text, err := os.ReadFile(told)
				if err != nil {
					t.Fatal(err)
				}
				return bytes.Count(text, []byte("\n"))
			}
			publishInTurn(t, w, f, far)
			spread(t, w, list[:2]) // the streams and all connections are there
			f.published(t)
			far.published(t)
			p.until(t, "what came before", func() bool { return lines() == 2 })

			goOn := b.hold()
			defer goOn()
			began := time.Now()
			spread(t, w, list)
			if of == "collector" {
				f.published(t)
			} else {
				waiting := uint64(0)
				for _, p := range far.list {
					waiting += p.State().Waiting
				}
				if waiting == 0 {
					t.Error("nothing waits: the proxies are not apart")
				}
			}
			if n := lines(); n != 2 {
				t.Errorf("%d findings, of two: the partition is none", n)
			}
			time.Sleep(*partition - time.Since(began))
			t.Logf("no byte passed for %s", time.Since(began).Round(time.Millisecond))
			goOn()
			f.published(t)
			far.published(t)
			p.until(t, "all that is found", func() bool { return lines() == len(want) })
			if status := p.end(t); status != int(exitFound) || strings.Contains(p.stderr.String(), `"run":`) {
				t.Errorf("exit status %d, or something is missing:\n%s", status, p.stderr.String())
			}
			got := f.collected(t)
			if diff := cmp.Diff(want, ids(got)); diff != "" || lines() != len(want) {
				t.Errorf("%d lines told; with several (-one +several):\n%s", lines(), diff)
			}
		})
	}
}
