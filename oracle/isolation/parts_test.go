package isolation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/sieve"
)

// division is a history that several parts read in messages, and of which a center gets shares, over a network that repeats and delays.
type division struct {
	t       *testing.T
	rng     *rand.Rand
	opts    Options
	events  []history.Event
	message []uint64          // of each event
	session map[uint64]uint64 // by transaction
	parts   int
	keep    int
	kills   bool
}

// published is a share as it stands in the stream.
type published struct {
	part int
	upto uint64
	data []byte
	more bool
}

func (d *division) name(txn uint64) sieve.ID {
	if d.opts.Recorder == nil {
		return sieve.ID{Txn: txn}
	}
	return sieve.ID{Recorder: uint32(d.opts.Recorder(d.session[txn])), Txn: txn}
}

func (d *division) part(i int) *sieve.Part {
	return sieve.NewPart(sieve.PartOptions{
		Number: i, Parts: d.parts, Transactions: d.opts.Transactions, Level: d.opts.Level, Name: d.name, Session: func(s uint64) uint64 { return s },
		Mine: func(id sieve.ID) bool { return id.Txn%uint64(d.parts) == uint64(i) }, Keep: d.keep, MaxAccesses: DefaultMaxAccesses,
	})
}

// plays lets part i read the history. It is killed now and then, and another process goes on from the position that it has saved, or the one before.
func (d *division) plays(i int) (out []published) {
	type position struct {
		event  int    // that is read first
		judged uint64 // all up to this message was told
	}
	var saved position
	p, begun := d.part(i), 0
	last := uint64(0)
	if n := len(d.message); n > 0 {
		last = d.message[n-1]
	}
	share := func(upto uint64) {
		s := p.Share()
		s.Runs = map[uint32]string{0: "a", 1: "b", 2: "c"}
		pieces := s.Pieces(1 + d.rng.IntN(2000))
		for k, data := range pieces {
			out = append(out, published{i, upto, data, k < len(pieces)-1})
		}
		if d.rng.IntN(4) > 0 {
			saved = position{begun + int(p.Needed()) - 1, upto}
		}
	}
	for k := 0; k < len(d.events); k++ {
		if k > 0 && d.message[k] != d.message[k-1] {
			if d.rng.IntN(3) == 0 {
				share(d.message[k-1])
			}
			if d.kills && d.rng.IntN(20) == 0 {
				p, begun = d.part(i), saved.event
				k = saved.event - 1
				continue
			}
		}
		e := d.events[k]
		p.Add(&e, d.message[k], d.message[k], d.message[k] <= saved.judged)
	}
	share(last)
	return out
}

// found are the findings of all, by the event that completed them, as text.
func (d *division) found() (list []string) {
	var stream []published
	var queues [][]published
	for i := range d.parts {
		queues = append(queues, d.plays(i))
	}
	for len(queues) > 0 {
		i := d.rng.IntN(len(queues))
		stream = append(stream, queues[i][0])
		if d.kills && d.rng.IntN(8) == 0 {
			stream = append(stream, stream[d.rng.IntN(len(stream))]) // once more
		}
		if queues[i] = queues[i][1:]; len(queues[i]) == 0 {
			queues = slices.Delete(queues, i, i+1)
		}
	}
	center := func() *sieve.Center {
		return sieve.NewCenter(sieve.CenterOptions{Parts: d.parts, Ordered: d.opts.Strict, Transactions: d.opts.Transactions, Keep: d.keep})
	}
	c := center()
	judged, from := uint64(0), 0 // what was saved
	for k := 0; k < len(stream); k++ {
		s, err := sieve.ReadShare(stream[k].data)
		if err != nil {
			d.t.Fatal(err)
		}
		c.Add(stream[k].part, s, stream[k].upto, stream[k].more, uint64(k))
		if d.rng.IntN(3) == 0 || k == len(stream)-1 {
			list = append(list, d.judge(c.Round(), judged)...)
			judged, from = max(judged, c.Judged()), int(min(c.Needed(), uint64(k+1)))
		}
		if d.kills && d.rng.IntN(20) == 0 {
			c = center()
			k = from - 1
		}
	}
	return list
}

// judge gives the suspects to a Checker, with nothing else.
func (d *division) judge(r *sieve.Round, known uint64) (list []string) {
	only := map[uint64]bool{}
	for i := range r.Judge {
		only[r.Judge[i].Txn] = true
	}
	if len(only) == 0 {
		return nil
	}
	c := New(d.opts)
	for i := range d.events {
		e := d.events[i]
		if d.message[i] > r.To || e.Txn != 0 && !only[e.Txn] {
			continue
		}
		for _, f := range c.Add(&e) {
			if d.message[i] > max(r.From, known) {
				list = append(list, foundAt(d.t, i, f))
			}
		}
	}
	if c.Broken() != "" {
		d.t.Fatal(c.Broken())
	}
	return list
}

// foundAt is a finding as text, with the event that completed it.
func foundAt(t *testing.T, event int, f oracle.Finding) string {
	f.Seen, f.FirstAt = 0, 0
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%04d %s", event, b)
}

// same compares what parts and a center find with what one Checker finds.
func (d *division) same(what string) (found int) {
	message := uint64(1)
	d.session = map[uint64]uint64{}
	for i := range d.events {
		d.session[d.events[i].Txn] = d.events[i].Session
		d.message = append(d.message, message)
		if d.rng.IntN(4) == 0 {
			message++
		}
	}
	var want []string
	c := New(d.opts)
	for i := range d.events {
		e := d.events[i]
		for _, f := range c.Add(&e) {
			want = append(want, foundAt(d.t, i, f))
		}
	}
	got := d.found()
	slices.Sort(want)
	slices.Sort(got)
	if a, b := strings.Join(want, "\n"), strings.Join(got, "\n"); a != b {
		d.t.Fatalf("%s, %d parts: one collector\n%s\nparts\n%s\n%s", what, d.parts, a, b, written(d.events))
	}
	return len(want)
}

// TestParts: parts and a center find what one Checker finds, whatever is repeated, delayed or killed.
func TestParts(t *testing.T) {
	found, none := 0, 0
	for seed := range *sieveRuns {
		rng := rand.New(rand.NewPCG(seed, 31))
		toy := newToy(rng.IntN, 2+rng.IntN(4), 2+rng.IntN(12))
		for range 10 + rng.IntN(120) {
			toy.step()
		}
		if rng.IntN(2) == 0 {
			toy.late()
		}
		opts := randomOptions(rng)
		opts.Keep, opts.Levels, opts.Repeats = -1, false, true
		if rng.IntN(2) == 0 {
			opts.Recorder = func(session uint64) int { return int(session % 3) }
		}
		events := garnish(rng, toy)
		// Which one of several cycles in real time is shown depends on when it is inferred that a transaction of unknown outcome committed.
		opts.Strict = opts.Strict && !slices.ContainsFunc(events, func(e history.Event) bool { return e.Outcome == history.OutcomeUnknown })
		d := &division{t: t, rng: rng, opts: opts, events: events, parts: []int{1, 2, 4}[seed%3], kills: seed%2 == 1}
		n := d.same(fmt.Sprint("toy, seed ", seed))
		found += n
		toy = newToy(rng.IntN, 2+rng.IntN(6), 2+rng.IntN(12))
		toy.keyed, toy.asOf = true, toy.asOf && rng.IntN(4) == 0
		for range 10 + rng.IntN(100) {
			if toy.step(); rng.IntN(20) == 0 {
				if s := toy.serve[rng.IntN(len(toy.serve))]; s != nil {
					clear(s.floor)
				}
			}
		}
		d = &division{t: t, rng: rng, opts: opts, events: plain(rng, toy), parts: []int{1, 2, 4}[seed%3], kills: seed%2 == 1}
		d.opts.Strict = false
		d.same(fmt.Sprint("stale reads, seed ", seed))
		if n == 0 {
			none++
		}
	}
	t.Logf("%d findings; %d histories without", found, none)
	if few := int(*sieveRuns) / 3; found < 2*few || none < few {
		t.Errorf("%d findings; %d histories without: the histories prove little", found, none)
	}
}
