package foreign

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/history/observed"
	"wirecheck/oracle/inferred"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
)

// store plays transactions of three sessions to a store of registers or lists that serves some reads wrong.
type store struct {
	rng   *rand.Rand
	lists bool
	all   map[string][]string // what was written to each key, whatever became of it
	now   map[string][]string // what was committed
	tick  uint64
	open  [4]*observed.Transaction
	h     *observed.History
}

func newStore(rng *rand.Rand) *store {
	return &store{rng: rng, lists: rng.IntN(3) == 0, all: map[string][]string{}, now: map[string][]string{}, h: &observed.History{Ordered: true}}
}

// read is what a read of a key returns in a transaction: mostly what is committed, with its own writes.
func (s *store) read(t *observed.Transaction, key string) observed.Op {
	list := slices.Clone(s.now[key])
	if s.rng.IntN(8) == 0 { // any version
		list = slices.Clone(s.all[key][:s.rng.IntN(len(s.all[key])+1)])
	}
	for i := range t.Ops {
		if op := &t.Ops[i]; op.Kind != observed.Read && op.Key == key {
			list = append(slices.DeleteFunc(list, func(v string) bool { return v == op.Value }), op.Value)
		}
	}
	op := observed.Op{Key: key, Initial: len(list) == 0, IsList: s.lists}
	switch {
	case s.lists:
		op.List, op.Value = list, "["+strings.Join(list, " ")+"]"
	case len(list) > 0:
		op.Value = list[len(list)-1]
	}
	return op
}

func (s *store) step(session int) {
	s.tick++
	t := s.open[session]
	switch {
	case t == nil:
		s.open[session] = &observed.Transaction{Session: uint64(session), Begin: s.tick}
	case len(t.Ops) == 0 || s.rng.IntN(3) > 0:
		key := fmt.Sprint(s.rng.IntN(3))
		if s.rng.IntN(2) == 0 {
			t.Ops = append(t.Ops, s.read(t, key))
			return
		}
		value := fmt.Sprint(len(s.all["0"]) + len(s.all["1"]) + len(s.all["2"]) + 1)
		s.all[key] = append(s.all[key], value)
		kind := observed.Write
		if s.lists {
			kind = observed.Append
		}
		t.Ops = append(t.Ops, observed.Op{Kind: kind, Key: key, Value: value})
	default:
		s.end(session, history.OutcomeCommitted)
	}
}

func (s *store) end(session int, outcome history.Outcome) {
	t := s.open[session]
	s.open[session] = nil
	t.ID, t.End, t.Outcome = uint64(len(s.h.Transactions)), s.tick, outcome
	if s.rng.IntN(8) == 0 && outcome == history.OutcomeCommitted {
		t.Outcome = history.OutcomeAborted
	}
	for i := range t.Ops {
		op := &t.Ops[i]
		switch {
		case op.Kind == observed.Read && t.Outcome != history.OutcomeCommitted:
			*op = observed.Op{Key: op.Key, Unknown: true}
		case op.Kind != observed.Read && t.Outcome == history.OutcomeCommitted:
			s.now[op.Key] = append(s.now[op.Key], op.Value)
		}
	}
	s.h.Transactions = append(s.h.Transactions, *t)
}

// judgement is what a history's classes and levels are.
func judgement(h *observed.History) string {
	r := inferred.Check(h, inferred.Options{Order: true, Levels: true})
	classes := map[string]bool{}
	for _, f := range r.Findings {
		classes[string(f.Class)] = true
	}
	var b strings.Builder
	fmt.Fprintln(&b, slices.Sorted(maps.Keys(classes)), r.Undecided)
	for _, v := range r.Levels {
		fmt.Fprintf(&b, "%s: %s\n", v.Level, v.State)
	}
	return b.String()
}

// withoutTime is a history as a form without real time has it.
func withoutTime(from *observed.History) *observed.History {
	h := *from
	h.Transactions = slices.Clone(h.Transactions)
	for i := range h.Transactions {
		h.Transactions[i].Begin, h.Transactions[i].End = 0, 0
	}
	h.Ordered, h.KnownInitial = false, true
	return &h
}

// TestConvertRandom writes random histories in each form that can say them: classes and levels stay.
func TestConvertRandom(t *testing.T) {
	converted, wrong := map[string]int{}, 0
	for seed := range uint64(400) {
		s := newStore(rand.New(rand.NewPCG(seed, 51)))
		for range 8 + s.rng.IntN(50) {
			s.step(1 + s.rng.IntN(3))
		}
		limbo := s.rng.IntN(3) == 0
		for i, t := range s.open {
			if t != nil && limbo {
				s.end(i, history.OutcomeUnknown)
				s.h.Transactions[len(s.h.Transactions)-1].End = 0
			}
		}
		if len(s.h.Transactions) == 0 {
			continue
		}
		ordered, timeless := judgement(s.h), judgement(withoutTime(s.h))
		if !strings.HasPrefix(ordered, "[]") {
			wrong++
		}
		for _, format := range Formats {
			var b bytes.Buffer
			if err := Write(&b, s.h, format); err != nil {
				continue
			}
			again, err := Read(bytes.NewReader(b.Bytes()), format, "again")
			if err != nil {
				t.Fatalf("seed %d as %s: %v\n%s", seed, format, err, b.String())
			}
			if len(again.Transactions) == 0 {
				continue // nothing was committed
			}
			want := ordered
			if !again.Ordered {
				want = timeless
			}
			if got := judgement(again); got != want {
				var elle bytes.Buffer
				_ = Write(&elle, s.h, Elle)
				t.Errorf("seed %d as %s:\n%swant\n%s%s\nof\n%s", seed, format, got, want, b.String(), elle.String())
			}
			converted[format]++
		}
		if t.Failed() {
			return
		}
	}
	t.Log(converted, wrong)
	for _, format := range Formats {
		if converted[format] < 50 || wrong < 100 {
			t.Errorf("%v were converted, %d of them wrong: they prove little", converted, wrong)
		}
	}
}

// TestConvertStrays: where a form cannot say where a value came from, the history is refused. Its neighbour, whose values were all written, is not.
func TestConvertStrays(t *testing.T) {
	for _, tt := range []struct {
		from, text string
		refused    []string
	}{
		{Plume, "w(0,1,1,1)\nr(0,2,2,2)\n", []string{Elle, JepsenJSON, "native"}}, // garbage
		{Plume, "w(0,1,1,1)\nr(0,1,2,2)\n", nil},
		{Elle, "{:type :ok :process 0 :value [[:r 0 7] [:w 1 1]]}", []string{Plume, DBCop}}, // there before
		{Elle, "{:type :ok :process 0 :value [[:r 0 nil] [:w 1 1]]}", nil},
		{Elle, "{:type :fail :process 0 :value [[:w 0 7]]} {:type :ok :process 1 :value [[:r 0 7]]}", []string{TimeKiller}},
		{Elle, "{:type :fail :process 0 :value [[:w 0 7]]} {:type :ok :process 1 :value [[:r 0 nil]]}", nil},
	} {
		h := read(t, tt.from, tt.text)
		for _, to := range append([]string{"native"}, Formats...) {
			var b bytes.Buffer
			var err error
			if to == "native" {
				err = observed.WriteNative(&b, h)
			} else if err = Write(&b, h, to); to == TimeKiller && !h.Ordered {
				continue
			}
			if refused := slices.Contains(tt.refused, to); refused != (err != nil) {
				t.Errorf("%q as %s: %v, refused: want %v", tt.text, to, err, refused)
			}
		}
	}
}

// TestConvertNative: the oracle of rows and versions says of the native form what the one that infers the order of versions says of the history, where the
// history shows that order.
func TestConvertNative(t *testing.T) {
	broken, satisfied := 0, 0
	for seed := range uint64(3000) {
		s := newStore(rand.New(rand.NewPCG(seed, 52)))
		s.lists = false
		for range 4 + s.rng.IntN(24) {
			s.step(1 + s.rng.IntN(3))
		}
		if s.h.Unordered() > 0 || len(s.h.Transactions) == 0 {
			continue
		}
		var b bytes.Buffer
		if err := observed.WriteNative(&b, s.h); errors.Is(err, observed.ErrUnwritten) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		r, err := history.NewReader(&b, "h")
		if err != nil {
			t.Fatal(err)
		}
		c := isolation.New(isolation.Options{Keep: -1, Levels: true})
		var e history.Event
		for r.Next(&e) == nil {
			c.Add(&e)
		}
		got := isolation.Levels(c).Judge()
		for i, want := range inferred.Check(s.h, inferred.Options{Order: true, Levels: true}).Levels {
			switch want.State {
			case level.Unknown:
				continue
			case level.Broken:
				broken++
			default:
				satisfied++
			}
			if got[i].State != want.State {
				var elle bytes.Buffer
				_ = Write(&elle, s.h, Elle)
				t.Fatalf("seed %d: %s: %s by the native form (%v), %s by the history (%v)\n%s", seed, want.Level, got[i].State, got[i].Witness, want.State, want.Witness, elle.String())
			}
		}
	}
	if t.Log(broken, satisfied); broken < 300 || satisfied < 3000 {
		t.Errorf("%d levels broken, %d satisfied: they prove little", broken, satisfied)
	}
}

// TestConvertUnknown: a read without a result, and a time and a session that are not told, do not become a read of nothing, a time and one session.
func TestConvertUnknown(t *testing.T) {
	const sound = `{"tid":2,"sid":2,"sts":{"p":4,"l":0},"cts":{"p":5,"l":0},"ops":[{"t":"w","k":8,"v":1}]}`
	for text, omitted := range map[string]int{
		`[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"sid":3,"sts":{"p":3,"l":0},"cts":{"p":6,"l":0},"ops":[{"t":"r","k":7}]},` + sound + `]`:          1,
		`[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"sid":3,"sts":{"p":3,"l":0},"cts":{"p":6,"l":0},"ops":[{"t":"r","k":7,"v":2}]},` + sound + `]`:    0,
		`[{"tid":1,"sid":1,"sts":{"p":1,"l":0},"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"sid":3,"cts":{"p":6,"l":0},"ops":[{"t":"r","k":7,"v":2}]},` + sound + `]`:                                            0,
		`[{"tid":1,"sid":1,"sts":{"p":3,"l":0},"cts":{"p":2,"l":0},"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"sid":3,"sts":{"p":3,"l":0},"cts":{"p":6,"l":0},"ops":[{"t":"r","k":9,"v":null}]},` + sound + `]`: 1,
		`[{"tid":1,"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"ops":[{"t":"r","k":7,"v":null}]},` + sound + `]`:                                                                                                 0,
		`[{"tid":1,"sid":0,"sts":{"p":1},"cts":{"p":2},"ops":[{"t":"w","k":7,"v":2}]},{"tid":3,"sid":0,"sts":{"p":3},"cts":{"p":6},"ops":[{"t":"r","k":7,"v":null}]},` + sound + `]`:                         0, // near miss: one session
	} {
		h := read(t, TimeKiller, text)
		if n := len(h.Omitted); n != omitted {
			t.Errorf("%s: %v", text, h.Omitted)
		}
		for _, to := range []string{Elle, JepsenJSON, TimeKiller} {
			var b bytes.Buffer
			if err := Write(&b, h, to); err != nil {
				t.Fatal(err)
			}
			again := read(t, to, b.String())
			if to == TimeKiller && omitted == 0 && judgement(again) != judgement(h) {
				t.Errorf("%s again: %s, want %s", text, judgement(again), judgement(h))
			}
			if got, want := classesOf(again), classesOf(h); got != want || len(again.Omitted) > 0 {
				t.Errorf("%s as %s: %s, want %s; %v\n%s", text, to, got, want, again.Omitted, b.String())
			}
		}
	}
}

// classesOf are the classes that are found in a history.
func classesOf(h *observed.History) string {
	line, _, _ := strings.Cut(judgement(h), "]")
	return line
}

// TestConvertSessions: Elle's forms keep the order of a session, also around a transaction of unknown outcome, or refuse it where its transactions
// overlap or have no times.
func TestConvertSessions(t *testing.T) {
	const form = `[{"tid":1,"sid":1,%s,"ops":[{"t":"w","k":7,"v":2}]},{"tid":2,"sid":1,%s,"ops":[{"t":"r","k":7,"v":null}]},{"tid":3,"sid":2,"sts":{"p":5},"cts":{"p":6},"ops":[{"t":"r","k":7,"v":2}]}]`
	const crashed = "{:type :invoke, :process 0, :value [[:append x 1]]}\n{:type :ok, :process 0, :value [[:append x 1]]}\n{:type :invoke, :process 0, :value [[:append y 1]]}\n" +
		"{:type :invoke, :process 0, :value [[:r x nil]]}\n{:type :ok, :process 0, :value [[:r x []]]}\n{:type :invoke, :process 1, :value [[:r x nil]]}\n{:type :ok, :process 1, :value [[:r x [1]]]}\n"
	for _, test := range []struct {
		from, text string
		ok         bool
	}{
		{TimeKiller, fmt.Sprintf(form, `"sts":{"p":1},"cts":{"p":2}`, `"sts":{"p":3},"cts":{"p":4}`), true},
		{TimeKiller, fmt.Sprintf(form, `"sts":{"p":1},"cts":{"p":2}`, `"sts":{"p":2},"cts":{"p":4}`), false},
		{TimeKiller, fmt.Sprintf(form, `"sts":{"p":1},"cts":{"p":3}`, `"sts":{"p":2},"cts":{"p":4}`), false},
		{TimeKiller, fmt.Sprintf(form, `"sts":{"p":1}`, `"cts":{"p":4}`), false},
		{TimeKiller, fmt.Sprintf(form, `"sts":{"p":1},"cts":{"p":2}`, `"cts":{"p":4}`), true},
		{Elle, crashed, true},
		{Elle, "{:type :ok, :process 0, :value [[:append x 1]]}\n{:type :ok, :process 0, :value [[:r x []]]}\n{:type :ok, :process 1, :value [[:r x [1]]]}\n", true},
	} {
		h := read(t, test.from, test.text)
		for _, to := range []string{Elle, JepsenJSON} {
			var b bytes.Buffer
			if err := Write(&b, h, to); (err == nil) != test.ok {
				t.Errorf("%s as %s: %v", test.text, to, err)
			} else if test.ok {
				if got, want := judgement(read(t, to, b.String())), judgement(h); got != want {
					t.Errorf("%s as %s: %s, want %s\n%s", test.text, to, got, want, b.String())
				}
			}
		}
	}
}
