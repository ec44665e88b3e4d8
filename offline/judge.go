// Package offline judges what was recorded: the histories and traces that proxies wrote, one or several together.
package offline

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"wirecheck/fleet"
	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/level"
	"wirecheck/oracle/sieve"
	"wirecheck/report"
	"wirecheck/trace"
)

// Input is a file that is judged.
type Input struct {
	In         io.Reader
	Path, Name string
}

// NotObserved is the error of a trace in which there is nothing to judge.
type NotObserved struct {
	Path   string
	Header trace.Header
}

// Error implements error.
func (e *NotObserved) Error() string { return e.Path + ": this trace holds no row versions" }

// Follower is called at each beginning of a judgement, with its options, which it may add to. What it gives is called for each event, with the number
// of the event's input, from 1.
type Follower func(*isolation.Options) (func(input int, e *history.Event) error, error)

// Judgement is what judging a history gave.
type Judgement struct {
	Checker *isolation.Checker
	Missing string       // says what was not there to be judged
	order   *sieve.Order // of all transactions, where it was asked for and Checker judged some of them; nil: Checker knows
}

// Judge reads histories or traces to their ends, and hands warn what is missing of them. Of what can be read twice a sieve says first which transactions can be part of an anomaly, unless
// follow, which may be nil, needs all dependencies. Where a read is older than the window of the checker, it begins again and keeps everything. ordered
// asks for an order of the transactions that proves levels.
func Judge(inputs []Input, opts isolation.Options, ordered bool, warn func(string), follow Follower) (j *Judgement, err error) {
	j = &Judgement{}
	tell := warn
	warn = func(text string) {
		j.Missing = cmp.Or(j.Missing, text)
		tell(text)
	}
	twice := true
	for _, in := range inputs {
		again, ok := in.In.(io.ReadSeeker)
		twice = twice && ok && Seekable(again)
	}
	if twice && follow == nil {
		if !ordered && len(inputs) == 1 {
			if err = judgeStraight(j, inputs, opts, warn); j.Checker != nil || err != nil {
				return j, err
			}
		}
		if err = judgeSuspects(j, inputs, opts, ordered, warn); j.Checker != nil || err != nil {
			return j, err
		}
	}
	if twice {
		if j.Checker, err = judgeOnce(inputs, opts, false, warn, follow); !errors.Is(err, errForgot) {
			return j, err
		}
		if err := rewind(inputs); err != nil {
			return nil, err
		}
	}
	j.Checker, err = judgeAll(inputs, opts, warn, follow)
	return j, err
}

// Levels says which levels of the literature a history satisfies. asked is the one whose proof is wanted; nil: none.
func (j *Judgement) Levels(asked *level.Level) (*report.Levels, error) {
	defer debug.SetGCPercent(debug.SetGCPercent(sievingGarbage))
	g := isolation.Levels(j.Checker)
	vs := g.Judge()
	l := &report.Levels{Weakest: level.Weakest(vs), Strongest: level.Strongest(vs), Unsure: isolation.Unsure(j.Checker), Verdicts: vs}
	if asked == &level.Mixed || len(g.Own()) > 1 {
		l.Verdicts = append(vs, g.Mixed())
	}
	if asked == nil {
		return l, nil
	}
	l.Asked = asked.Name
	if l.Verdict(asked.Name).State != level.Satisfied {
		return l, nil
	}
	var groups iter.Seq[[]uint64]
	if j.order != nil {
		groups = j.order.Groups()
	}
	proof := g.Certificate(asked.Name, groups)
	if proof == nil {
		return l, nil
	}
	l.Certificate, l.Views = proof.Order, proof.Views
	err := g.Check(asked.Name, proof)
	if j.order != nil && err == nil {
		err = j.order.Check(func(yield func(uint64) bool) {
			for _, p := range l.Certificate {
				if !yield(p.Txn) {
					return
				}
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("the order that is to prove %s does not (this is a defect of wirecheck): %w", asked.Name, err)
	}
	return l, nil
}

// keepingGarbage is the garbage collector's percentage while a checker keeps everything: the heap grows, and a collection finds little. sievingGarbage is
// that while a sieve has numbers in arrays, which take much room, and in which a collection looks for nothing.
const (
	keepingGarbage = 200
	sievingGarbage = 10
)

// judgeAll is judgeOnce with a checker that keeps everything.
func judgeAll(inputs []Input, opts isolation.Options, warn func(string), follow Follower) (*isolation.Checker, error) {
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

func rewind(inputs []Input) error {
	for _, in := range inputs {
		if _, err := in.In.(io.ReadSeeker).Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read %s again: %w", in.Name, err)
		}
	}
	return nil
}

// judgeStraight counts what is in a history of which a quick look says that nothing in it is suspect. It gives no checker where that look does not, or the
// history cannot be read.
func judgeStraight(j *Judgement, inputs []Input, opts isolation.Options, warn func(string)) error {
	defer debug.SetGCPercent(debug.SetGCPercent(keepingGarbage))
	var warnings []string
	in, err := openAll(inputs, func(text string) { warnings = append(warnings, text) })
	if err != nil {
		return rewind(inputs)
	}
	opts.Only = func(uint64) bool { return false }
	c, s := isolation.New(opts), sieve.NewStraight(!opts.Transactions)
	if in.list[0].lend != nil {
		in.list[0].lend()
	}
	var e history.Event
	for err = in.list[0].next(&e); err == nil; err = in.list[0].next(&e) {
		if c.Add(&e); !s.Add(&e) {
			break
		}
	}
	if !errors.Is(err, io.EOF) {
		return errors.Join(in.close(), rewind(inputs))
	}
	in.finish(c)
	for _, text := range warnings {
		warn(text)
	}
	isolation.Settle(c, isolation.Counts{})
	j.Checker = c
	return in.close()
}

// maxRowParts bounds the parts in which the sieve judges rows, at the same time.
const maxRowParts = 8

// searchFrom is from how many suspects on the sieve looks for cycles itself: fewer cost little.
const searchFrom = 256

// judgeSuspects asks a sieve which transactions can be part of an anomaly, and gives these to a checker that keeps everything; of many, those
// alone that are part of what the sieve found. If they are most of all, and it did not search, it judges nothing, and gives no checker.
func judgeSuspects(j *Judgement, inputs []Input, opts isolation.Options, ordered bool, warn func(string)) (err error) {
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
			isolation.Draw(c, all, !ordered && r.Walks.Onward(), r.Walks.Transactions(), r.Walks.Dependencies())
			r.Walks = nil // what it takes in memory is not needed any more
		}
	}
	isolation.Settle(c, n)
	if j.Checker = c; c.Broken() == "" {
		j.order = r.Order
	}
	return nil
}

// judgeSome gives a checker the transactions that it is to judge (Options.Only). all has counted all of the history. alone says that nothing else of the
// history matters to them: then, if it can, it reads nothing else.
func judgeSome(in *readings, inputs []Input, opts isolation.Options, alone bool, all *isolation.Checker, warn func(string)) (*isolation.Checker, error) {
	if v := all.Coverage(); !alone || len(in.list) > 1 || in.list[0].again == nil || len(v.Contradictions) > 0 || v.Broken != "" {
		return judgeAll(inputs, opts, warn, nil)
	}
	passed, err := in.list[0].again(inputs[0].In, opts.Only)
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
func judgeOnce(inputs []Input, opts isolation.Options, keeps bool, warn func(string), follow Follower) (_ *isolation.Checker, err error) {
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
func openAll(inputs []Input, warn func(string)) (*readings, error) {
	rs := &readings{}
	runs := map[string]string{}
	for _, in := range inputs {
		r, err := open(in, warn)
		if err != nil {
			return nil, errors.Join(err, rs.close())
		}
		rs.list = append(rs.list, r)
		run := r.header.Run
		if other, twice := runs[run]; twice && run != "" {
			return nil, errors.Join(fmt.Errorf("%s and %s are of one proxy: name one of them", other, in.Name), rs.close())
		}
		runs[run] = in.Name
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
func (rs *readings) judge(opts isolation.Options, keeps bool, follow Follower) (_ *isolation.Checker, err error) {
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
	opts.HideValues = opts.HideValues || slices.ContainsFunc(rs.list, func(r *reading) bool { return r.redacted })
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
	name     string
	header   history.Header
	next     func(*history.Event) error
	finish   func(open int) // warns of what is missing at the end, where so many sessions had not ended
	close    func() error
	redacted bool // its values are tokens, of which the proxy showed none
	// own says that what next gives is in memory of the event's own, and stays as it is when the next one comes.
	own bool
	// lend has next give strings that are good until its next call. nil: it cannot.
	lend func()
	// again begins to read it from its beginning once more, of transactions those alone that only wants. passed is how many others have begun so far.
	// nil: it cannot.
	again func(in io.Reader, only func(txn uint64) bool) (passed func() int, err error)
}

// Open begins to read a file. next gives the events and, behind the last one, io.EOF; what is missing then is handed to warn.
func Open(in Input, warn func(string)) (header history.Header, next func(*history.Event) error, done func() error, err error) {
	r, err := open(in, warn)
	if err != nil {
		return header, nil, nil, err
	}
	next = func(e *history.Event) error {
		err := r.next(e)
		if errors.Is(err, io.EOF) {
			r.finish(0)
		}
		return err
	}
	return r.header, next, r.close, nil
}

// open begins to read a file: a trace, or else a history.
func open(in Input, warn func(string)) (*reading, error) {
	head := bufio.NewReader(in.In)
	if begin, _ := head.Peek(16); trace.IsFile(begin) { // whatever is wrong with it the reader says
		return openObserved(Input{head, in.Path, in.Name}, warn)
	}
	r, err := history.NewReader(head, in.Name)
	if err != nil {
		return nil, err
	}
	finish := func(open int) {
		switch {
		case r.Warning() != "":
			warn(r.Warning())
		case open > 0 && r.Header().Closes:
			warn(fmt.Sprintf("%s: the history is cut off: %s had not ended", in.Name, prose.Count(open, "session")))
		}
	}
	again := func(from io.Reader, only func(txn uint64) bool) (func() int, error) {
		return r.Passed, r.Again(from, only)
	}
	return &reading{name: in.Name, header: r.Header(), next: r.Next, finish: finish, close: func() error { return nil }, own: true, lend: r.Lend, again: again}, nil
}

// openObserved begins to read the history in a trace.
func openObserved(in Input, warn func(string)) (*reading, error) {
	r, err := openTrace(in.In, in.Path, in.Name)
	if err != nil {
		return nil, err
	}
	var rec trace.Record
	observed, ended := r.Header().Observed, false
	next := func(e *history.Event) error {
		for {
			switch err := r.Next(&rec); {
			case errors.Is(err, io.EOF) && !observed:
				return &NotObserved{in.Path, r.Header()}
			case err != nil:
				return err
			case rec.Kind == trace.KindHistory && !ended:
				observed = true
				*e = *rec.History
				return nil
			case rec.Kind == trace.KindNote && rec.Note.HistoryEnds:
				ended = true
				warn(fmt.Sprintf("%s: %s (%s): what happened later is not judged", in.Path, rec.Note.Text, time.Unix(0, rec.Note.At).UTC().Format("15:04:05.000")))
			}
		}
	}
	finish := func(int) {
		if r.Warning() != "" {
			warn(r.Warning())
		}
	}
	header := history.Header{Started: r.Header().Started, Run: r.Header().Run}
	return &reading{name: in.Name, header: header, next: next, finish: finish, close: r.Close, redacted: r.Header().Redacted}, nil
}

// openTrace opens a trace file by its name, so that its other parts are found, or reads it from a stream.
func openTrace(in io.Reader, path, name string) (*trace.Reader, error) {
	if path == "-" {
		return trace.NewReader(in, name, trace.ReadOptions{})
	}
	return trace.Open(path, trace.ReadOptions{})
}

// Seekable reports whether a file can be read again: a pipe cannot.
func Seekable(f io.Seeker) bool {
	_, err := f.Seek(0, io.SeekCurrent)
	return err == nil
}
