package isolation

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/oracle/level"
	"wirecheck/oracle/sieve"
)

// sieveRuns is how many random histories are judged with and without a sieve: few in `make test`, many in `make soak`.
var sieveRuns = flag.Uint64("sieve-runs", 120, "random histories of each kind, with and without a sieve")

// sieved judges events with a sieve before the Checker. walks says that it looks for the cycles, alone that the Checker is given nothing but what it judges,
// if the sieve says that it may. With both, the sieve is asked for no order.
func sieved(opts Options, events []history.Event, parts int, walks, alone bool) (*Checker, *sieve.Result) {
	counted := opts
	counted.Only = func(uint64) bool { return false }
	counts := New(counted)
	var lent lender
	for i := range events {
		counts.Add(lent.event(&events[i]))
	}
	from := 0
	if walks && !opts.Strict {
		from = 1
	}
	s := sieve.New(sieve.Options{Walks: from, Commutes: func() bool { return Commutes(counts) }, Ordered: opts.Strict || opts.Levels, Level: opts.Level, Transactions: opts.Transactions, Recorder: opts.Recorder, Order: opts.Levels && !(walks && alone), MaxAccesses: DefaultMaxAccesses, Parts: parts, Each: func(n int, do func(int)) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { do(i) })
		}
		all.Wait()
	}})
	for i := range events {
		s.Add(&events[i])
	}
	r := s.Judge()
	n := Counts{UnknownWriters: r.UnknownWriters, Unordered: r.Unordered}
	if r.All == "" {
		opts.Only = r.Suspect
	}
	if w := r.Walks; w != nil {
		opts.Only, opts.Walks, n.Far = w.Has, w.Of, w.Far()
	}
	c := judged(opts, counts, events, alone && r.Alone && len(counts.coverage.Contradictions) == 0)
	Settle(c, n)
	if r.Walks != nil {
		Draw(c, counts, r.Order == nil && r.Walks.Onward(), r.Walks.Transactions(), r.Walks.Dependencies())
	}
	return c, r
}

// judged gives a Checker the events; alone: of transactions those only that it judges.
func judged(opts Options, counts *Checker, events []history.Event, alone bool) *Checker {
	if !alone {
		_, c := run(opts, events)
		return c
	}
	begun, count := 0, opts
	count.Only, count.Walks = func(uint64) bool { return false }, nil
	opts.Passed = func() int { return begun }
	c, same := New(opts), New(count)
	for i := range events {
		if e := &events[i]; e.Txn == 0 || opts.Only(e.Txn) {
			c.Add(e)
			same.Add(e)
		} else if e.Kind == history.EventBegin {
			begun++
		}
	}
	Join(c, counts, same)
	return c
}

// said is all that a Checker says of a history.
func said(t *testing.T, c *Checker) string {
	if c.Broken() != "" {
		t.Fatal(c.Broken())
	}
	out := ""
	for _, f := range c.Summary() {
		b, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		out += string(b) + "\n"
	}
	b, err := json.Marshal(c.Coverage())
	if err != nil {
		t.Fatal(err)
	}
	out += string(b) + "\n"
	if g := Levels(c); g != nil {
		b, err := json.Marshal(g.Judge())
		if err != nil {
			t.Fatal(err)
		}
		out += string(b) + Unsure(c) + fmt.Sprint(g.Own(), g.Mixed()) + "\n"
	}
	return out + fmt.Sprint(tables(c))
}

// sieveCounts counts what the histories of a test were.
type sieveCounts struct{ all, none, some, whole, found, proved, refuted, walked, cycles, alone, shown, straight int }

// same judges a history with and without a sieve.
func (n *sieveCounts) same(t *testing.T, opts Options, events []history.Event, parts int, what string) {
	opts.Keep = -1
	_, whole := run(opts, events)
	c, r := sieved(opts, events, parts, false, false)
	a := said(t, whole)
	if straight(opts, events) {
		counted := opts
		counted.Only = func(uint64) bool { return false }
		_, c := run(counted, events)
		if Settle(c, Counts{}); said(t, c) != a {
			t.Fatalf("%s, %+v (strict %v): a straight history, in which there is\n%s\n%s", what, opts.Options(), opts.Strict, a, written(events))
		}
		n.straight++
	}
	if b := said(t, c); a != b {
		t.Fatalf("%s, %+v, sieve %+v (strict %v): without a sieve\n%s\nwith it\n%s\n%s", what, opts.Options(), *r, opts.Strict, a, b, written(events))
	}
	if r.Alone && r.Suspects > 0 {
		c, _ := sieved(opts, events, parts, false, true)
		if b := said(t, c); a != b {
			t.Fatalf("%s, %+v (strict %v), the suspects alone: without a sieve\n%s\nwith it\n%s\n%s", what, opts.Options(), opts.Strict, a, b, written(events))
		}
		if n.alone++; len(whole.order) > 0 {
			n.shown++
		}
	}
	if c, r := sieved(opts, events, parts, true, n.walked%2 == 0); r.Walks != nil {
		if b := said(t, c); a != b {
			t.Fatalf("%s, %+v, the sieve looks for cycles: without a sieve\n%s\nwith it\n%s\n%s", what, opts.Options(), a, b, written(events))
		}
		if opts.Levels && r.Order != nil {
			if err := n.proves(Levels(whole), Levels(c), r.Order); err != nil {
				t.Fatalf("%s, %+v, the sieve looks for cycles: %v\n%s", what, opts.Options(), err, written(events))
			}
		}
		if n.walked++; len(whole.order) > 0 {
			n.cycles++
		}
	}
	if opts.Levels && r.All == "" {
		if err := n.proves(Levels(whole), Levels(c), r.Order); err != nil {
			t.Fatalf("%s, %+v, sieve %+v: %v\n%s", what, opts.Options(), *r, err, written(events))
		}
	}
	switch {
	case r.All != "":
		n.whole++
	case r.Suspects == 0:
		n.none++
	case uint64(r.Suspects) == uint64(whole.coverage.Transactions):
		n.all++
	default:
		n.some++
	}
	if len(whole.order) > 0 {
		n.found++
	}
}

// straight reports whether a quick look says that nothing is suspect.
func straight(opts Options, events []history.Event) bool {
	s := sieve.NewStraight(!opts.Transactions)
	is := opts.Recorder == nil
	var lent lender
	for i := range events {
		is = is && s.Add(lent.event(&events[i]))
	}
	return is
}

// proves checks that each level that the whole history satisfies is proved by an order of what a sieve left, and of all else in the sieve's order.
func (n *sieveCounts) proves(whole, left *level.Graph, o *sieve.Order) error {
	for _, v := range whole.Judge() {
		want := whole.Certificate(v.Level, nil)
		proof := left.Certificate(v.Level, o.Groups())
		if v.State != level.Satisfied || want == nil {
			continue
		}
		ids := func(yield func(uint64) bool) {
			for _, p := range proof.Order {
				if !yield(p.Txn) {
					return
				}
			}
		}
		if proof == nil {
			return fmt.Errorf("%s: %v, by the sieve no proof", v.Level, want)
		}
		if err := errors.Join(whole.Check(v.Level, proof), left.Check(v.Level, proof), o.Check(ids)); err != nil || len(proof.Order) != len(want.Order) {
			return fmt.Errorf("%s: %v, by the sieve %v: %w", v.Level, want, proof, err)
		}
		n.proved++
		if slices.Reverse(proof.Order); o.Check(ids) != nil {
			n.refuted++
		}
	}
	return nil
}

// Options are those that matter to the sieve.
func (o Options) Options() [4]any { return [4]any{o.Strict, o.Levels, o.Possible, o.Level} }

// garnish tells more in a history of the toy: names of rows, writers and places, outcomes that are not known, writes that are told late, requests.
func garnish(rng *rand.Rand, d *toy) []history.Event {
	events := slices.Clone(d.out)
	requests, limbo, late, names, prevs := rng.IntN(4) == 0, rng.IntN(4) == 0, rng.IntN(4) == 0, rng.IntN(2) == 0, rng.IntN(3) == 0
	wrote := map[string]history.Event{}
	order := map[string]uint64{}
	for i := range events {
		e := &events[i]
		e.Accesses = slices.Clone(e.Accesses)
		if requests && e.Kind == history.EventStmt && rng.IntN(3) > 0 {
			e.Request = fmt.Sprint("request ", (e.Txn+e.Session)/3)
		}
		for k := range e.Accesses {
			a := &e.Accesses[k]
			if names && rng.IntN(3) == 0 {
				a.Name = "row " + a.Row.Key
			}
			if prevs && a.Prev != "" {
				if w, ok := wrote[a.Prev]; ok && rng.IntN(2) == 0 && w.Txn != e.Txn {
					a.PrevWriter = fmt.Sprint("T", w.Txn)
				}
				if rng.IntN(2) == 0 {
					a.PrevOrder = order[a.Prev]
				}
			}
			if a.Op == history.OpRead && rng.IntN(20) == 0 {
				a.Op = history.OpMatch
				e.CurrentRead = rng.IntN(2) == 0
			}
			if a.Op.Writes() {
				wrote[a.Version], order[a.Version] = *e, a.Order
				if a.Order != 0 && a.Prev != "" && rng.IntN(20) == 0 {
					a.Order = 0
				}
			}
		}
		if e.Kind == history.EventEnd && limbo && rng.IntN(3) == 0 {
			e.Outcome = history.OutcomeUnknown
		}
		if e.Kind == history.EventBegin && rng.IntN(8) == 0 {
			e.Level = []string{"", "read uncommitted", "serializable", "repeatable read"}[rng.IntN(4)]
		}
	}
	if late {
		events = tellLate(rng, events)
	}
	return events
}

// tellLate lets the writes of some transactions' last statement come behind their ends.
func tellLate(rng *rand.Rand, events []history.Event) []history.Event {
	last := map[uint64]int{}
	var out []history.Event
	held := map[int][]history.Event{} // by the event behind which they come
	for i := range events {
		e := events[i]
		if e.Kind == history.EventStmt {
			last[e.Txn] = len(out)
		}
		if at, ok := last[e.Txn]; e.Kind == history.EventEnd && ok && rng.IntN(3) == 0 && len(out[at].Accesses) > 0 {
			if a := &out[at].Accesses[0]; a.Op.Writes() {
				more := out[at]
				out[at].Accesses = nil
				out[at].Coverage = history.CoverageApproximate
				e.Pending = true
				behind := min(len(events)-1, i+rng.IntN(6))
				held[behind] = append(held[behind], more)
			}
		}
		out = append(out, e)
		out = append(out, held[i]...)
	}
	return out
}

func randomOptions(rng *rand.Rand) Options {
	return Options{Strict: rng.IntN(3) == 0, Levels: rng.IntN(3) == 0, Possible: rng.IntN(2) == 0, Repeats: rng.IntN(2) == 0, Transactions: rng.IntN(8) == 0}
}

// TestSieve: the findings, the coverage and the levels of a history are the same whether the Checker judges all of it or what a sieve leaves.
func TestSieve(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns * 4 {
		rng := rand.New(rand.NewPCG(seed, 21))
		d := newToy(rng.IntN, 2+rng.IntN(4), 2+rng.IntN(12))
		for range 10 + rng.IntN(120) {
			d.step()
			if rng.IntN(60) == 0 {
				if s := d.serve[rng.IntN(len(d.serve))]; s != nil {
					clear(s.floor)
				}
			}
		}
		if rng.IntN(2) == 0 {
			d.late()
		}
		n.same(t, randomOptions(rng), garnish(rng, d), 1+rng.IntN(3), fmt.Sprint("toy, seed ", seed))
	}
	t.Logf("%+v", n)
	if few := int(*sieveRuns) / 3; n.some < few || n.none < few || n.found < few || n.whole > n.some || n.proved < 10*few || n.refuted < n.proved/2 || n.alone < 2*few || n.shown < few {
		t.Errorf("%+v: the histories prove little", n)
	}
}

// TestSieveMutated: nor does it matter where the history contradicts itself.
func TestSieveMutated(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns {
		rng := rand.New(rand.NewPCG(seed, 22))
		d := newToy(rng.IntN, 2+rng.IntN(4), 3+rng.IntN(5))
		for range 10 + rng.IntN(80) {
			d.step()
		}
		n.same(t, randomOptions(rng), mutate(rng, garnish(rng, d)), 1, fmt.Sprint("mutated, seed ", seed))
	}
	t.Logf("%+v", n)
}

// TestSievePredicates: nor where rows are chosen by conditions.
func TestSievePredicates(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns {
		rng := rand.New(rand.NewPCG(seed, 13))
		d := &mvcc{rng: rng, rr: seed%2 == 0, lossy: seed%3 == 0, rows: make([][]mversion, 4), place: 10}
		d.run(3 + int(seed%2))
		n.same(t, randomOptions(rng), d.events, 2, fmt.Sprint("predicates, seed ", seed))
	}
	t.Logf("%+v", n)
}

// TestSieveColumns: nor where statements read and assign a part of the columns.
func TestSieveColumns(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns {
		rng := rand.New(rand.NewPCG(seed, 32))
		events := parse(t, strings.Join(newColumnToy(seed).lines, "\n"))
		for i := range events {
			if e := &events[i]; e.Kind == history.EventBegin && rng.IntN(4) == 0 {
				e.Level = []string{"repeatable read", "serializable"}[rng.IntN(2)]
			}
		}
		n.same(t, randomOptions(rng), events, 1+rng.IntN(2), fmt.Sprint("columns, seed ", seed))
	}
	t.Logf("%+v", n)
	if few := int(*sieveRuns) / 6; n.some < few || n.found < few {
		t.Errorf("%+v: the histories prove little", n)
	}
}

// TestSieveFleet: nor where several proxies recorded it.
func TestSieveFleet(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns {
		rng := rand.New(rand.NewPCG(seed, 24))
		d := newToy(rng.IntN, 3+rng.IntN(3), 3+rng.IntN(5))
		for range 10 + rng.IntN(80) {
			d.step()
		}
		var parts [2][]history.Event
		for i, e := range garnish(rng, d) {
			e.At = int64(i + 1)
			if k := e.Session % 2; e.From > 0 && k == 1 { // another clock
				e.From, e.To = e.From+uint64(rng.IntN(2))+1000, e.To+1002
			}
			parts[e.Session%2] = append(parts[e.Session%2], e)
		}
		source := func(list []history.Event) fleet.Source {
			return fleet.Source{Next: func(e *history.Event) error {
				if len(list) == 0 {
					return io.EOF
				}
				*e, list = list[0], list[1:]
				return nil
			}}
		}
		m := fleet.Merge(source(parts[0]), source(parts[1]))
		var events []history.Event
		for {
			var e history.Event
			if err := m.Next(&e); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			e.Accesses = slices.Clone(e.Accesses)
			events = append(events, e)
		}
		opts := randomOptions(rng)
		opts.Recorder = m.Recorder
		n.same(t, opts, events, 1+rng.IntN(2), fmt.Sprint("fleet, seed ", seed))
	}
	t.Logf("%+v", n)
	if few := int(*sieveRuns) / 6; n.some < few || n.found < few {
		t.Errorf("%+v: the histories prove little", n)
	}
}

// plain tells a history of the toy so that a sieve can look for its cycles: statements have texts that assign the same column, and places are told.
func plain(rng *rand.Rand, d *toy) []history.Event {
	events := slices.Clone(d.out)
	names, prevs, images, hidden := rng.IntN(2) == 0, rng.IntN(8), rng.IntN(3) == 0, rng.IntN(3) == 0
	writer, order := map[string]uint64{}, map[string]uint64{}
	for _, r := range d.rows {
		order[r.versions[0].id] = r.versions[0].order
	}
	value := 0
	for i := range events {
		e := &events[i]
		e.Accesses = slices.Clone(e.Accesses)
		for k := range e.Accesses {
			a := &e.Accesses[k]
			if names && rng.IntN(3) == 0 {
				a.Name = "row " + a.Row.Key
			}
			switch value++; {
			case a.Op == history.OpInsert:
				e.Verb, e.SQL = "insert", fmt.Sprintf("INSERT INTO t VALUES (%s, %d, 'x')", a.Row.Key, value)
			case a.Op == history.OpUpdate && rng.IntN(6) == 0:
				e.Verb, e.SQL = "insert", fmt.Sprintf("INSERT INTO t VALUES (%s, %d, 'x') ON CONFLICT (id) DO UPDATE SET a = excluded.a", a.Row.Key, value)
			case a.Op == history.OpUpdate && rng.IntN(4) == 0:
				e.Verb, e.SQL = "update", fmt.Sprintf("UPDATE t SET a = %d, b = 'y' WHERE id = %s", value, a.Row.Key)
			case a.Op == history.OpUpdate:
				e.Verb, e.SQL = "update", fmt.Sprintf("UPDATE t SET a = %d WHERE id = %s", value, a.Row.Key)
			case a.Op == history.OpDelete:
				e.Verb, e.SQL = "delete", "DELETE FROM t WHERE id = "+a.Row.Key
			default:
				e.Verb, e.SQL = "select", "SELECT a FROM t WHERE id = "+a.Row.Key
			}
			if images && a.Op.Writes() && a.Op != history.OpDelete {
				a.Image = fmt.Sprintf(`{"id":"%s","a":"%d","b":"%d"}`, a.Row.Key, rng.IntN(2), rng.IntN(2))
			}
			if a.Prev != "" && prevs > 0 {
				if a.PrevOrder = order[a.Prev]; writer[a.Prev] != 0 && writer[a.Prev] != e.Txn && prevs%2 == 1 {
					a.PrevWriter = fmt.Sprint("T", writer[a.Prev])
				}
			}
			if a.Op.Writes() {
				writer[a.Version], order[a.Version] = e.Txn, a.Order
			}
		}
		if e.Kind == history.EventBegin && rng.IntN(4) == 0 {
			e.Level = []string{"", "serializable", "repeatable read"}[rng.IntN(3)]
		}
		if e.Kind == history.EventStmt && rng.IntN(12) == 0 && len(e.Accesses) == 1 && hidden { // the writer is told, and not only by its own statements
			if a := &e.Accesses[0]; !a.Op.Writes() && writer[a.Version] != 0 && writer[a.Version] != e.Txn {
				a.Writer = fmt.Sprint("T", writer[a.Version])
			}
		}
	}
	return events
}

// TestSieveWalks: nor does it matter that the sieve looks for the cycles, in histories of which many reads are stale.
func TestSieveWalks(t *testing.T) {
	var n sieveCounts
	for seed := range *sieveRuns * 4 {
		rng := rand.New(rand.NewPCG(seed, 25))
		d := newToy(rng.IntN, 2+rng.IntN(6), 2+rng.IntN(12))
		d.keyed, d.asOf = true, d.asOf && rng.IntN(4) == 0
		stale := []int{5, 20, 100}[seed%3]
		for range 10 + rng.IntN(40)<<(seed%4) {
			d.step()
			if rng.IntN(stale) == 0 {
				if s := d.serve[rng.IntN(len(d.serve))]; s != nil {
					clear(s.floor)
				}
			}
		}
		if rng.IntN(3) == 0 {
			d.late()
		}
		opts := randomOptions(rng)
		opts.Strict = false
		n.same(t, opts, plain(rng, d), 1+rng.IntN(3), fmt.Sprint("stale, seed ", seed))
	}
	t.Logf("%+v", n)
	if few := int(*sieveRuns); n.walked < few || n.cycles < few {
		t.Errorf("%+v: the histories prove little", n)
	}
}

// TestSieveStraight: a quick look says that nothing is suspect in most histories that are serial, and in none that a few changes made one with something in it.
func TestSieveStraight(t *testing.T) {
	var serial, mutated sieveCounts
	for seed := range *sieveRuns * 10 {
		rng := rand.New(rand.NewPCG(seed, 26))
		d := newToy(rng.IntN, 1+rng.IntN(2), 2+rng.IntN(4))
		d.keyed, d.asOf = true, d.asOf && rng.IntN(4) == 0
		for range 10 + rng.IntN(60) {
			d.step()
		}
		opts, events := randomOptions(rng), plain(rng, d)
		serial.same(t, opts, events, 1, fmt.Sprint("serial, seed ", seed))
		if straight(opts, events) {
			mutated.same(t, opts, mutate(rng, events), 1, fmt.Sprint("serial and mutated, seed ", seed))
		}
	}
	t.Logf("%+v\n%+v", serial, mutated)
	if n := int(*sieveRuns) * 10 / 4; serial.straight < 2*n || mutated.straight < n/4 || mutated.none-mutated.straight < n/8 || mutated.found < n/8 || mutated.whole < n/8 {
		t.Error("the histories prove little")
	}
}

// TestSievePlain: the sieve looks for cycles where it draws what the Checker draws, and leaves them to the Checker where it may not.
func TestSievePlain(t *testing.T) {
	// A stale read of x closes a cycle: 3 read what 2 wrote after 1, and x from before 1.
	const text = `s1 t1 begin "serializable"; t1 w x 0>1; t1 commit
s2 t2 begin "serializable"; t2 r x@1; t2 w y 0>1; t2 commit
s3 t3 begin "serializable"; t3 r y@1; t3 r x@0; t3 commit
`
	update := func(e *history.Event, sql string) { e.Verb, e.SQL = "update", sql }
	writes := func(e *history.Event) bool { return len(e.Accesses) > 0 && e.Accesses[0].Op.Writes() }
	for _, test := range []struct {
		name  string
		walks bool
		each  func(n int, e *history.Event)
	}{
		{"as it is", true, func(int, *history.Event) {}},
		{"UPDATEs of one column", true, func(n int, e *history.Event) {
			if writes(e) {
				update(e, fmt.Sprintf("UPDATE t SET a = %d WHERE id = 1", n))
			}
		}},
		{"UPDATEs of columns that one of them names", true, func(n int, e *history.Event) {
			if writes(e) {
				update(e, []string{"UPDATE t SET a = b WHERE id = 1", "UPDATE t SET b = 2 WHERE id = 1"}[n%2])
			}
		}},
		{"UPDATEs of different columns", false, func(n int, e *history.Event) {
			if writes(e) {
				update(e, []string{"UPDATE t SET a = 1 WHERE id = 1", "UPDATE t SET b = 2 WHERE id = 1"}[n%2])
			}
		}},
		{"requests", false, func(_ int, e *history.Event) { e.Request = "r" }},
		{"an UPDATE that changed nothing", false, func(_ int, e *history.Event) {
			if e.Txn == 2 && len(e.Accesses) > 0 && !writes(e) {
				e.Accesses[0].Op = history.OpMatch
			}
		}},
		{"an outcome that is not known", false, func(_ int, e *history.Event) {
			if e.Txn == 2 && e.Kind == history.EventEnd {
				e.Outcome = history.OutcomeUnknown
			}
		}},
		{"a statement that failed", false, func(_ int, e *history.Event) {
			if e.Txn == 2 && writes(e) {
				e.Error = &history.ServerError{Code: "1205"}
			}
		}},
		{"a write that was not captured", false, func(_ int, e *history.Event) {
			if e.Txn == 2 && writes(e) {
				e.Accesses, e.Tokens = nil, []string{"T2"}
			} else if e.Txn == 3 && len(e.Accesses) > 0 && e.Accesses[0].Row.Key == "y" {
				e.Accesses[0].Writer = "T2"
			}
		}},
		{"a row without key", false, func(_ int, e *history.Event) {
			for i := range e.Accesses {
				if e.Accesses[i].Row.Key == "y" {
					e.Accesses[i].Row = history.Row{Table: "u"}
				}
			}
		}},
	} {
		events, n := parse(t, text), 0
		for i := range events {
			if writes(&events[i]) {
				n++
			}
			test.each(n, &events[i])
		}
		_, r := sieved(Options{Keep: -1, Levels: true}, events, 1, true, false)
		if r.All == "" && (r.Walks != nil) != test.walks || test.walks && r.All != "" {
			t.Errorf("%s: the sieve looks for cycles: %v, want %v (%+v)", test.name, r.Walks != nil, test.walks, *r)
		}
		new(sieveCounts).same(t, Options{Levels: true}, events, 1, test.name)
	}
}
