package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/sieve"
	"wirecheck/trace"
)

// input is a file that is judged.
type input struct {
	in         io.Reader
	path, name string
}

// sourceOf names the files.
func sourceOf(inputs []input) string {
	var names []string
	for _, in := range inputs {
		names = append(names, in.name)
	}
	return strings.Join(names, ", ")
}

// openHistories opens the files to judge; done closes them. Several must be wirecheck's own.
func openHistories(cmd *cobra.Command, paths []string, format string) (inputs []input, found string, done func(), err error) {
	var opened []func()
	done = func() {
		for _, d := range opened {
			d()
		}
	}
	for _, path := range paths {
		in, name, f, d, err := openHistory(cmd, path, format)
		if err != nil {
			return nil, "", done, err
		}
		opened = append(opened, d)
		if found = f; found != inputNative && len(paths) > 1 {
			return nil, "", done, fmt.Errorf("%s: only histories of wirecheck's own are judged together", name)
		}
		inputs = append(inputs, input{in, path, name})
	}
	return inputs, found, done, nil
}

// follower is called at each beginning of a judgement, with its options, which it may add to. What it gives is called for each event, with the number
// of the event's input, from 1.
type follower func(*isolation.Options) (func(input int, e *history.Event) error, error)

// judgement is what judging a history gave.
type judgement struct {
	checker *isolation.Checker
	order   *sieve.Order // of all transactions, where it was asked for and checker judged some of them; nil: checker knows
	missing string       // says what was not there to be judged
}

// judge reads histories or traces to their ends. Of what can be read twice a sieve says first which transactions can be part of an anomaly, unless
// follow, which may be nil, needs all dependencies. Where a read is older than the window of the checker, it begins again and keeps everything. ordered
// asks for an order of the transactions that proves levels.
func judge(cmd *cobra.Command, inputs []input, opts isolation.Options, ordered bool, follow follower) (j *judgement, err error) {
	j = &judgement{}
	warn := func(text string) {
		j.missing = cmp.Or(j.missing, text)
		fmt.Fprintln(cmd.ErrOrStderr(), "wirecheck: warning:", text)
	}
	twice := true
	for _, in := range inputs {
		again, ok := in.in.(io.ReadSeeker)
		twice = twice && ok && seekable(again)
	}
	if twice && follow == nil {
		if err = judgeSuspects(j, inputs, opts, ordered, warn); j.checker != nil || err != nil {
			return j, err
		}
	}
	if twice {
		if j.checker, err = judgeOnce(inputs, opts, false, warn, follow); !errors.Is(err, errForgot) {
			return j, err
		}
		if err := rewind(inputs); err != nil {
			return nil, err
		}
	}
	j.checker, err = judgeAll(inputs, opts, warn, follow)
	return j, err
}

// keepingGarbage is the garbage collector's percentage while a checker keeps everything: the heap grows, and a collection finds little. sievingGarbage is
// that while a sieve has numbers in arrays, which take much room, and in which a collection looks for nothing.
const (
	keepingGarbage = 200
	sievingGarbage = 20
)

// judgeAll is judgeOnce with a checker that keeps everything.
func judgeAll(inputs []input, opts isolation.Options, warn func(string), follow follower) (*isolation.Checker, error) {
	return keepAll(opts, func(opts isolation.Options) (*isolation.Checker, error) {
		return judgeOnce(inputs, opts, true, warn, follow)
	})
}

// keepAll judges with a checker that keeps everything.
func keepAll(opts isolation.Options, judge func(isolation.Options) (*isolation.Checker, error)) (*isolation.Checker, error) {
	percent := keepingGarbage
	if opts.Walks != nil {
		percent = sievingGarbage
	}
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	opts.Keep, opts.MaxBytes = -1, math.MaxInt/16
	return judge(opts)
}

func rewind(inputs []input) error {
	for _, in := range inputs {
		if _, err := in.in.(io.ReadSeeker).Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read %s again: %w", in.name, err)
		}
	}
	return nil
}

// maxRowParts bounds the parts in which the sieve judges rows, at the same time.
const maxRowParts = 8

// searchFrom is from how many suspects on the sieve looks for cycles itself: fewer cost little.
const searchFrom = 256

// judgeSuspects asks a sieve which transactions can be part of an anomaly, and gives these to a checker that keeps everything; of many, those
// alone that are part of what the sieve found. If they are most of all, and it did not search, it judges nothing, and gives no checker.
func judgeSuspects(j *judgement, inputs []input, opts isolation.Options, ordered bool, warn func(string)) (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(sievingGarbage))
	var s *sieve.Sieve
	var warnings []string
	none := opts
	none.Only = func(uint64) bool { return false }
	var c *isolation.Checker
	walks, commutes := searchFrom, func() bool { return isolation.Commutes(c) }
	if opts.Strict {
		walks = 0 // the sieve searches no session order and no real time
	}
	later := func(text string) { warnings = append(warnings, text) }
	in, err := openAll(inputs, func(text string) { later(text) })
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	sift := func(o *isolation.Options) {
		s = sieve.New(sieve.Options{Walks: walks, Commutes: commutes, Ordered: o.Strict || o.Levels, Order: ordered, Level: o.Level, Transactions: o.Transactions, Recorder: o.Recorder, MaxAccesses: isolation.DefaultMaxAccesses,
			Parts: min(runtime.GOMAXPROCS(0), maxRowParts), Each: eachAtOnce})
	}
	if in.list[0].own && len(in.list) == 1 {
		sift(&none)
		c, err = in.count(none, s.Add)
	} else {
		c, err = in.judge(none, true, func(o *isolation.Options) (func(int, *history.Event) error, error) {
			sift(o)
			return func(_ int, e *history.Event) error { s.Add(e); return nil }, nil
		})
	}
	var r *sieve.Result
	if err == nil {
		r = s.Judge()
		if s = nil; ordered {
			runtime.GC() // what it takes in memory is not needed any more, and the proof takes as much
		}
	}
	if err != nil || r.All == "" && r.Suspects == 0 {
		for _, text := range warnings {
			warn(text)
		}
	}
	if err != nil {
		return err
	}
	n := isolation.Counts{UnknownWriters: r.UnknownWriters, Unordered: r.Unordered}
	if r.All != "" || r.Suspects > 0 {
		later = warn
		if err := rewind(inputs); err != nil || r.All != "" || r.Walks == nil && 2*r.Suspects > c.Coverage().Transactions {
			return err
		}
		opts.Only = r.Suspect
		if w := r.Walks; w != nil {
			opts.Only, opts.Walks, n.Far = w.Has, w.Of, w.Far()
		}
		all := c
		if c, err = judgeSome(in, inputs, opts, r.Alone, all, warn); err != nil {
			return err
		}
		if r.Walks != nil {
			isolation.Draw(c, all, r.Walks.Transactions(), r.Walks.Dependencies())
			r.Walks = nil // what it takes in memory is not needed any more
		}
	}
	isolation.Settle(c, n)
	if j.checker = c; c.Broken() == "" {
		j.order = r.Order
	}
	return nil
}

// judgeSome gives a checker the transactions that it is to judge (Options.Only). all has counted all of the history. alone says that nothing else of the
// history matters to them: then, if it can, it reads nothing else.
func judgeSome(in *readings, inputs []input, opts isolation.Options, alone bool, all *isolation.Checker, warn func(string)) (*isolation.Checker, error) {
	if v := all.Coverage(); !alone || len(in.list) > 1 || in.list[0].again == nil || len(v.Contradictions) > 0 || v.Broken != "" {
		return judgeAll(inputs, opts, warn, nil)
	}
	passed, err := in.list[0].again(inputs[0].in, opts.Only)
	if err != nil {
		return nil, err
	}
	count := opts
	count.Only, count.Walks, opts.Passed = func(uint64) bool { return false }, nil, passed
	same := isolation.New(count)
	c, err := keepAll(opts, func(opts isolation.Options) (*isolation.Checker, error) {
		return in.judge(opts, true, func(*isolation.Options) (func(int, *history.Event) error, error) {
			return func(_ int, e *history.Event) error { same.Add(e); return nil }, nil
		})
	})
	if err != nil {
		return nil, err
	}
	isolation.Join(c, all, same)
	return c, nil
}

// errForgot ends the reading of a history of which something is needed that the checker has forgotten.
var errForgot = errors.New("a read is older than the window of the checker")

// judgeOnce gives the events to a new checker; keeps says that it keeps everything.
func judgeOnce(inputs []input, opts isolation.Options, keeps bool, warn func(string), follow follower) (_ *isolation.Checker, err error) {
	in, err := openAll(inputs, warn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.close()) }()
	return in.judge(opts, keeps, follow)
}

// readings are the readings of all files.
type readings struct{ list []*reading }

// openAll begins to read files.
func openAll(inputs []input, warn func(string)) (*readings, error) {
	rs := &readings{}
	runs := map[string]string{}
	for _, in := range inputs {
		r, err := open(in, warn)
		if err != nil {
			return nil, errors.Join(err, rs.close())
		}
		rs.list = append(rs.list, r)
		if other, twice := runs[r.run]; twice && r.run != "" {
			return nil, errors.Join(fmt.Errorf("%s and %s are of one proxy: name one of them", other, in.name), rs.close())
		}
		runs[r.run] = in.name
	}
	return rs, nil
}

func (rs *readings) close() (err error) {
	for _, r := range rs.list {
		err = errors.Join(err, r.close())
	}
	return err
}

// judge gives the events to a new checker.
func (rs *readings) judge(opts isolation.Options, keeps bool, follow follower) (_ *isolation.Checker, err error) {
	next := rs.list[0].next
	if len(rs.list) > 1 {
		sources := make([]fleet.Source, len(rs.list))
		for i, r := range rs.list {
			sources[i] = fleet.Source{Name: r.name, Next: r.next}
		}
		m := fleet.Merge(sources...)
		next, opts.Recorder, opts.Origin = m.Next, m.Recorder, m.Origin
	}
	each := func(int, *history.Event) error { return nil }
	if follow != nil {
		if each, err = follow(&opts); err != nil {
			return nil, err
		}
	}
	c := isolation.New(opts)
	var e history.Event
	for {
		if err := next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if err := each(inputOf(&opts, &e), &e); err != nil {
			return nil, err
		}
		if c.Add(&e); !keeps && !isolation.Complete(c) {
			return nil, errForgot
		}
	}
	rs.finish(c)
	return c, nil
}

// finish warns of what was missing at the ends of the files.
func (rs *readings) finish(c *isolation.Checker) {
	for _, r := range rs.list {
		r.finish(c.Coverage().Open)
	}
}

// count gives the events to a checker that judges none of them, and at the same time to take.
func (rs *readings) count(opts isolation.Options, take func(*history.Event)) (*isolation.Checker, error) {
	in := newRelay(take)
	defer in.close()
	c := isolation.New(opts)
	for {
		e := in.event()
		if err := rs.list[0].next(e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		c.Add(e)
		in.pass()
	}
	rs.finish(c)
	return c, nil
}

// inputOf is the number of the input that an event is from, from 1.
func inputOf(o *isolation.Options, e *history.Event) int {
	if o.Recorder == nil {
		return 1
	}
	return o.Recorder(e.Session)
}

// reading is the reading of one file.
type reading struct {
	name   string
	run    string // of the process that recorded it; empty: not known
	next   func(*history.Event) error
	finish func(open int) // warns of what is missing at the end, where so many sessions had not ended
	close  func() error
	// own says that what next gives is in memory of the event's own, and stays as it is when the next one comes.
	own bool
	// again begins to read it from its beginning once more, of transactions those alone that only wants. passed is how many others have begun so far.
	// nil: it cannot.
	again func(in io.Reader, only func(txn uint64) bool) (passed func() int, err error)
}

// open begins to read a file: a trace, or else a history.
func open(in input, warn func(string)) (*reading, error) {
	head := bufio.NewReader(in.in)
	if begin, _ := head.Peek(16); trace.IsFile(begin) { // whatever is wrong with it the reader says
		return openObserved(input{head, in.path, in.name}, warn)
	}
	r, err := history.NewReader(head, in.name)
	if err != nil {
		return nil, err
	}
	finish := func(open int) {
		switch {
		case r.Warning() != "":
			warn(r.Warning())
		case open > 0 && r.Header().Closes:
			warn(fmt.Sprintf("%s: the history is cut off: %s had not ended", in.name, prose.Count(open, "session")))
		}
	}
	again := func(from io.Reader, only func(txn uint64) bool) (func() int, error) {
		return r.Passed, r.Again(from, only)
	}
	return &reading{name: in.name, run: r.Header().Run, next: r.Next, finish: finish, close: func() error { return nil }, own: true, again: again}, nil
}

// openObserved begins to read the history in a trace.
func openObserved(in input, warn func(string)) (*reading, error) {
	r, err := openTrace(in.in, in.path, in.name)
	if err != nil {
		return nil, err
	}
	var rec trace.Record
	observed, ended := r.Header().Observed, false
	next := func(e *history.Event) error {
		for {
			switch err := r.Next(&rec); {
			case errors.Is(err, io.EOF) && !observed:
				return errNotObserved(in.path, r.Header())
			case err != nil:
				return err
			case rec.Kind == trace.KindHistory && !ended:
				observed = true
				*e = *rec.History
				return nil
			case rec.Kind == trace.KindNote && rec.Note.HistoryEnds:
				ended = true
				warn(fmt.Sprintf("%s: %s (%s): what happened later is not judged", in.path, rec.Note.Text, time.Unix(0, rec.Note.At).UTC().Format("15:04:05.000")))
			}
		}
	}
	finish := func(int) {
		if r.Warning() != "" {
			warn(r.Warning())
		}
	}
	return &reading{name: in.name, run: r.Header().Run, next: next, finish: finish, close: r.Close}, nil
}
