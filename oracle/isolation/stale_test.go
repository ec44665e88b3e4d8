package isolation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/oracle/cycle"
	"wirecheck/oracle/level"
)

// staleHistory has a read of the first version of a row after n other transactions, if stale is set, and of the last one otherwise.
func staleHistory(keyed, stale bool, n int) string {
	x, y := "x", "y"
	if !keyed {
		x, y = "a._", "b._"
	}
	v := func(i int) string {
		if keyed {
			return fmt.Sprint(i)
		}
		return fmt.Sprint("v", i)
	}
	last := map[bool]string{true: v(0), false: v(1)}[stale]
	var b strings.Builder
	fmt.Fprintf(&b, "s1 t1 begin \"serializable\"; t1 w %s %s>%s, w %s %s>%s; t1 commit\n", x, v(0), v(1), y, v(0), v(1))
	for i := range n {
		fmt.Fprintf(&b, "s2 t%d begin \"serializable\"; t%d w c.z%d >1; t%d commit\n", i+2, i+2, i, i+2)
	}
	fmt.Fprintf(&b, "s3 t%d begin \"serializable\"; t%d r %s@%s %s@%s; t%d commit\n", n+2, n+2, y, v(1), x, last, n+2)
	return b.String()
}

// TestStale: a read older than the window is counted, and a checker that keeps all finds it.
func TestStale(t *testing.T) {
	for _, keyed := range []bool{true, false} {
		for _, stale := range []bool{true, false} {
			events := parse(t, staleHistory(keyed, stale, 5000))
			fs, c := run(Options{}, events)
			if v := c.Coverage(); (v.Stale > 0) != stale || Complete(c) == stale || strings.Contains(v.String(), "older than the window") != stale || len(fs) > 0 {
				t.Errorf("keyed %v, stale %v: complete %v, %s\n%s", keyed, stale, Complete(c), v, briefs(fs))
			}
			fs, c = run(Options{Keep: -1}, events)
			if (len(fs) > 0) != stale || !Complete(c) {
				t.Errorf("keyed %v, stale %v: all kept: %s", keyed, stale, briefs(fs))
			}
		}
	}
}

// TestDeadForgotten: a read of what was rolled back long ago is counted, too.
func TestDeadForgotten(t *testing.T) {
	for _, read := range []string{"0", "1"} {
		text := strings.Replace(staleHistory(true, false, 5000), "t1 commit", "t1 abort", 1)
		text = strings.Replace(text, "y@1 x@1", "x@"+read, 1)
		events := parse(t, text)
		_, c := run(Options{}, events)
		if fs, _ := run(Options{Keep: -1}, events); (len(fs) == 1) != (read == "1") || Complete(c) == (read == "1") {
			t.Errorf("read of version %s: complete %v, all kept: %s", read, Complete(c), briefs(fs))
		}
	}
}

// TestComplete: where a checker that forgets says that it is complete, one that keeps everything finds the same, however stale the reads are.
func TestComplete(t *testing.T) {
	complete, not := 0, 0
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 11))
		d := newToy(rng.IntN, 4, 6)
		for range 2500 {
			d.step()
			if seed%3 > 0 && rng.IntN(400) == 0 { // a session whose reads may be as old as the history
				if s := d.serve[rng.IntN(len(d.serve))]; s != nil {
					clear(s.floor)
				}
			}
		}
		all, _ := run(Options{Repeats: true, Keep: -1}, d.out)
		some, c := run(Options{Repeats: true, Keep: 20}, d.out)
		same := fingerprints(all) == fingerprints(some)
		if Complete(c) && !same {
			t.Errorf("seed %d (keyed %v, asOf %v): %d findings without forgetting, %d with, and nothing is counted", seed, d.keyed, d.asOf, len(all), len(some))
		}
		if Complete(c) {
			complete++
		} else {
			not++
		}
	}
	if complete == 0 || not == 0 {
		t.Errorf("%d histories are complete and %d are not: the test has lost its force", complete, not)
	}
}

// TestFar: once the searches have spent what they may, they end early, and what they did not find is counted; near cycles are still found.
func TestFar(t *testing.T) {
	// ring has a stale read that closes a cycle over so many transactions, each of which read what the one before wrote.
	ring := func(n int) string {
		var b strings.Builder
		b.WriteString("s1 t1 begin \"serializable\"; t1 w x 0>1, w c.z1 >1; t1 commit\n")
		for i := 2; i < n; i++ {
			fmt.Fprintf(&b, "s2 t%d begin \"serializable\"; t%d r c.z%d@1; t%d w c.z%d >1; t%d commit\n", i, i, i-1, i, i, i)
		}
		fmt.Fprintf(&b, "s3 t%d begin \"serializable\"; t%d r c.z%d@1 x@0; t%d commit\n", n, n, n-1, n)
		return b.String()
	}
	for _, test := range []struct{ length, grant, found, far int }{
		{2000, cycle.DefaultGrant, 1, 0},
		{2000, -1 << 30, 0, 1},
		{100, -1 << 30, 1, 0},
	} {
		c := New(Options{Keep: -1, Levels: true})
		c.paths.Limit(cycle.DefaultNear, test.grant, cycle.DefaultFree)
		for _, e := range parse(t, ring(test.length)) {
			c.Add(&e)
		}
		v := c.Coverage()
		if len(c.Summary()) != test.found || v.Far != test.far || strings.Contains(v.String(), "\n  1 attempt to find a long cycle ended early") != (test.far > 0) || (v.Caution() != "") != (test.far > 0) {
			t.Errorf("%+v: %d findings, %s", test, len(c.Summary()), v)
		}
		verdicts := Levels(c).Judge()
		if i := slices.IndexFunc(verdicts, func(v level.Verdict) bool { return v.Level == "PL-3" }); verdicts[i].State != level.Broken {
			t.Errorf("%+v: PL-3 is %v", test, verdicts[i].State)
		}
	}
}

// TestFarStrict: where the search of a bounded number of visits found no cycle of data, those in session order and real time are looked for all the same.
func TestFarStrict(t *testing.T) {
	for _, grant := range []int{cycle.DefaultGrant, -1 << 30} {
		for read, want := range map[string]int{"y@0": 1, "y@1": 0} { // the near miss reads what its session wrote
			var b strings.Builder
			b.WriteString("s3 t1 begin \"serializable\"; t1 w y 0>1; t1 commit\n")
			for i := 2; i < 2000; i++ {
				fmt.Fprintf(&b, "s2 t%d begin \"serializable\"; t%d r c.z%d@1; t%d w c.z%d >1; t%d commit\n", i, i, i-1, i, i, i)
			}
			fmt.Fprintf(&b, "s4 t2000 begin \"serializable\"; t2000 w x 0>1, w c.w >1; t2000 commit\n")
			for i := 2001; i < 4000; i++ {
				fmt.Fprintf(&b, "s4 t%d begin \"serializable\"; t%d r c.w%d@1; t%d w c.w%d >1; t%d commit\n", i, i, i-1, i, i, i)
			}
			fmt.Fprintf(&b, "s3 t4000 begin \"serializable\"; t4000 r c.z1999@1 x@0 %s; t4000 commit\n", read)
			c := New(Options{Keep: -1, Strict: true})
			c.paths.Limit(cycle.DefaultNear, grant, cycle.DefaultFree)
			for _, e := range parse(t, b.String()) {
				c.Add(&e)
			}
			process := 0
			for _, f := range c.Summary() {
				if strings.HasSuffix(string(f.Class), anomaly.SuffixProcess) {
					process++
				}
			}
			if process != want {
				t.Errorf("grant %d, read %s: %d findings in session order, want %d; %s", grant, read, process, want, c.Coverage())
			}
		}
	}
}
