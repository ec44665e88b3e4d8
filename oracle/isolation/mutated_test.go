package isolation

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle"
)

// mutate makes a history contradict itself: accesses get another one's version, writer, place or row, and events go, come twice or change
// places.
func mutate(rng *rand.Rand, events []history.Event) []history.Event {
	out := slices.Clone(events)
	var acc []*history.Access
	for i := range out {
		out[i].Accesses = slices.Clone(out[i].Accesses)
		for j := range out[i].Accesses {
			acc = append(acc, &out[i].Accesses[j])
		}
	}
	for range rng.IntN(6) {
		if len(acc) == 0 {
			break
		}
		a, b := acc[rng.IntN(len(acc))], acc[rng.IntN(len(acc))]
		switch rng.IntN(6) {
		case 0:
			a.Version = b.Version
		case 1:
			a.Writer = b.Writer
		case 2:
			a.Order, b.Order = b.Order, a.Order
		case 3:
			a.Row = b.Row
		case 4:
			a.Prev, a.PrevWriter, a.PrevOrder = b.Version, b.Writer, b.Order
		case 5:
			a.Op = b.Op
		}
	}
	for range rng.IntN(3) {
		i, j := rng.IntN(len(out)), rng.IntN(len(out))
		switch rng.IntN(3) {
		case 0:
			out = slices.Delete(out, i, i+1)
		case 1:
			out = slices.Insert(out, i, out[j])
		case 2:
			out[i], out[j] = out[j], out[i]
		}
	}
	return out
}

var mutations = flag.Int("mutations", 2000, "mutated histories that TestMutated judges")

// TestMutated: no history ends the judging, however it contradicts itself, and the edges of each cycle are those of its class.
func TestMutated(t *testing.T) {
	for seed := range uint64(*mutations) {
		rng := rand.New(rand.NewPCG(seed, 7))
		d := newToy(rng.IntN, 2+rng.IntN(4), 3)
		for range 10 + rng.IntN(50) {
			d.step()
		}
		events := mutate(rng, d.out)
		for _, strict := range []bool{false, true} {
			fs, c := run(Options{Strict: strict, Repeats: true, Keep: -1, Levels: strict}, events)
			if strict {
				Levels(c).Judge()
			}
			if c.Broken() != "" {
				t.Fatalf("seed %d, strict %v: %s\n%s", seed, strict, c.Broken(), written(events))
			}
			for _, f := range fs {
				if ordered := slices.ContainsFunc(f.Edges, func(e oracle.Edge) bool { return e.Kind == "so" || e.Kind == "rt" }); ordered && !strings.Contains(string(f.Class), "-process") && !strings.Contains(string(f.Class), "-realtime") {
					t.Fatalf("seed %d, strict %v: %s rests on session order or real time\n%s", seed, strict, f.Class, written(events))
				}
			}
		}
	}
}

func written(events []history.Event) string {
	var b []byte
	for i := range events {
		b = append(history.AppendEvent(b, &events[i]), '\n')
	}
	return fmt.Sprintf("%s", b)
}

// TestBroken: a state that cannot be ends judging, not the process, and what came after it is counted.
func TestBroken(t *testing.T) {
	c := New(Options{})
	events := parse(t, `s1 session postgres "15"; s1 t1 begin; t1 w x 0>1; t1 commit; s1 t2 begin; t2 commit`)
	c.Add(&events[0])
	c.tables = nil // no input does this
	for i := range events[1:] {
		c.Add(&events[i+1])
	}
	if v := c.Coverage(); v.Broken == "" || v.Unjudged != 3 || !strings.Contains(v.String(), "JUDGING ENDED EARLY") {
		t.Errorf("coverage: %s", v)
	}
	if v := New(Options{}).Coverage(); strings.Contains(v.String(), "JUDGING") {
		t.Errorf("near miss: %s", v)
	}
}
