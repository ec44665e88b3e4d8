package offline

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
)

var (
	mutatedFiles = flag.Int("mutated-files", 200, "damaged histories that TestMutated judges in two ways")
	mutatedFrom  = flag.Uint64("mutated-from", 0, "seed of the first of them")
)

// randomEvents are those of a few sessions, each of which reads and writes some rows, sometimes as they were before.
func randomEvents(rng *rand.Rand) (out []history.Event) {
	type txn struct {
		id, n   int
		written map[int]string
	}
	sessions, rows := 2+rng.IntN(3), 2+rng.IntN(3)
	open := make([]*txn, sessions)
	versions := make([][]string, rows) // of each row, and whose they are
	writer := map[string]int{}
	tick, id := uint64(0), 0
	add := func(e history.Event) {
		tick += 2
		e.From, e.To = tick-1, tick
		out = append(out, e)
	}
	for s := range sessions {
		add(history.Event{Kind: history.EventSession, Session: uint64(s + 1), Engine: "postgres", Server: "15.4"})
	}
	for range 20 + rng.IntN(60) {
		s := rng.IntN(sessions)
		t := open[s]
		if t == nil {
			id++
			open[s] = &txn{id: id, written: map[int]string{}}
			add(history.Event{Kind: history.EventBegin, Session: uint64(s + 1), Txn: uint64(id), Level: "read committed", Tokens: []string{fmt.Sprint("T", id)}})
			continue
		}
		if t.n > rng.IntN(6) {
			e := history.Event{Kind: history.EventEnd, Session: uint64(s + 1), Txn: uint64(t.id), Outcome: history.OutcomeCommitted}
			if rng.IntN(8) == 0 {
				e.Outcome = history.OutcomeAborted
			}
			add(e)
			open[s] = nil
			continue
		}
		t.n++
		r := rng.IntN(rows)
		a := history.Access{Op: history.OpRead, Row: history.Row{Table: "public.t", Key: fmt.Sprint(r)}, Version: "v0", Order: history.OrderInitial}
		verb := "select"
		if rng.IntN(2) == 0 && t.written[r] == "" {
			a.Op, verb, a.Version = history.OpUpdate, "update", fmt.Sprint("v", t.id)
			versions[r] = append(versions[r], a.Version)
			writer[a.Version] = t.id
			t.written[r] = a.Version
			a.Order = uint64(len(versions[r]) + 1)
		} else if n := len(versions[r]); n > 0 {
			at := n - 1 - min(rng.IntN(3), n-1)
			if a.Version, a.Order = versions[r][at], uint64(at+2); writer[a.Version] != t.id {
				a.Writer = fmt.Sprint("T", writer[a.Version])
			}
		}
		add(history.Event{Kind: history.EventStmt, Session: uint64(s + 1), Txn: uint64(t.id), N: t.n, Verb: verb, Coverage: history.CoverageExact, Accesses: []history.Access{a}})
	}
	return out
}

// damage flips bytes of a history, drops fields, doubles and exchanges lines.
func damage(rng *rand.Rand, data []byte, lines bool) []byte {
	data = slices.Clone(data)
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(data))
		if lines && rng.IntN(4) > 0 {
			all := bytes.SplitAfter(data, []byte("\n"))
			i, k := 1+rng.IntN(len(all)-1), 1+rng.IntN(len(all)-1)
			switch rng.IntN(4) {
			case 0:
				all = slices.Delete(all, i, i+1)
			case 1:
				all = slices.Insert(all, k, all[i])
			case 2:
				all[i], all[k] = all[k], all[i]
			default: // a field
				fields := bytes.Split(all[i], []byte(","))
				f := rng.IntN(len(fields))
				if g := bytes.Split(all[k], []byte(",")); rng.IntN(2) == 0 {
					fields[f] = g[rng.IntN(len(g))]
				} else {
					fields = slices.Delete(fields, f, f+1)
				}
				all[i] = bytes.Join(fields, []byte(","))
			}
			data = bytes.Join(all, nil)
			continue
		}
		switch to := min(len(data), at+1+rng.IntN(8)); rng.IntN(4) {
		case 0:
			data[at] ^= 1 << rng.IntN(8)
		case 1:
			data = slices.Delete(data, at, to)
		case 2:
			data = slices.Insert(data, at, data[at:to]...)
		default:
			data[at] = "0123456789"[rng.IntN(10)]
		}
	}
	return data
}

// written is a history's file in a form.
func written(t *testing.T, events []history.Event, form string) []byte {
	var b bytes.Buffer
	var w interface {
		Write(*history.Event) error
		Flush() error
	}
	var err error
	header := history.Header{Engine: "postgres", Run: "test"}
	if w, err = history.NewWriter(&b, header); form == "binary" {
		b.Reset()
		w, err = history.NewBinaryWriter(&b, header)
	}
	for i := range events {
		err = errors.Join(err, w.Write(&events[i]))
	}
	if err = errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestMutated judges damaged histories with the sieve and without it (from a pipe). Nothing panics, and both say the same of the levels. What
// the sieve finds the other one finds, too. That one may find more where a transaction read what was rolled back later, or ended before its time.
func TestMutated(t *testing.T) {
	read, found, satisfied, proved := 0, 0, 0, 0
	// An edge that a late writer draws led to the report of an older cycle; ends that were lost, or stand before their begins; a session that
	// names a transaction; edges of reads of what was undone later.
	seeds := []uint64{9996, 104490, 112818, 114348, 115332, 134462, 137744}
	for i := range uint64(*mutatedFiles) {
		seeds = append(seeds, *mutatedFrom+i)
	}
	for _, seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 15))
		events := randomEvents(rng)
		for _, form := range []string{"lines", "binary"} {
			data := damage(rng, written(t, events, form), form == "lines")
			var says [2]string
			var ids [2][]string
			for i, in := range []io.Reader{bytes.NewReader(data), io.MultiReader(bytes.NewReader(data))} {
				asked := &level.Levels[seed/2%uint64(len(level.Levels))]
				j, err := Judge([]Input{{in, "h", "h"}}, isolation.Options{Strict: seed%2 == 0, Levels: true}, seed%3 == 0, func(string) {}, nil)
				if err != nil {
					says[i] = err.Error()
					continue
				}
				if seed%3 == 0 {
					l, err := j.Levels(asked)
					if err != nil {
						t.Fatalf("seed %d, %s, %s: %v\n%q", seed, form, asked.Name, err, data)
					}
					if l.Verdict(asked.Name).State == level.Satisfied {
						if satisfied++; l.Certificate != nil {
							proved++
						}
					}
				}
				for _, f := range j.Checker.Summary() {
					ids[i] = append(ids[i], fmt.Sprintln(f.ID, f.Class, f.Name, f.Kind))
				}
				says[i] = fmt.Sprintln(j.Missing, isolation.Unsure(j.Checker) == "", len(ids[i]) > 0)
				for _, v := range isolation.Levels(j.Checker).Judge() {
					says[i] += fmt.Sprintln(v.Level, v.State)
				}
				found += len(ids[i])
				read++
			}
			more := slices.DeleteFunc(ids[0], func(id string) bool { return slices.Contains(ids[1], id) })
			if says[0] != says[1] || len(more) > 0 {
				t.Errorf("seed %d, %s: the sieve alone finds %q; with it and without:\n%s\n%q", seed, form, more, cmp.Diff(says[0], says[1]), data)
			}
		}
	}
	t.Logf("%d of %d judgements, %d findings; of %d satisfied levels %d are proved", read, 4*len(seeds), found, satisfied, proved)
	if read < *mutatedFiles || found < *mutatedFiles || proved == 0 {
		t.Error("the test has lost its force")
	}
}
