// Package recorder makes a trace of a proxy's sessions while they go on, and writes its file.
package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"wirecheck/history"
	"wirecheck/history/prose"
	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
	"wirecheck/trace/source"
)

// Recorder makes a trace of what the clients of a proxy send and get. The sessions hand over copies of bytes; one goroutine
// understands, encodes and writes them.
//
// What waits for that goroutine is bounded. A session that finds no room waits, so a busy machine slows clients down in place of
// spoiling the trace; but not for longer than the patience: if the disk hangs, the traffic goes on, and what is not recorded then is
// counted and noted in the trace. If the disk is full, recording ends, the traffic goes on, and the trace says where.
type Recorder struct {
	o     Options
	clock atomic.Uint64 // places; each piece of a session has placeRoom of them
	woken chan struct{} // there is work
	ended chan struct{} // the goroutine has returned

	// Of the goroutine:
	parts  parts
	output wire.Output
	events uint64
	gaps   uint64

	mu       sync.Mutex // guards what follows
	waiting  batch      // for the goroutine
	room     chan struct{}
	crowded  bool  // sessions do not wait for room until there is much of it
	historic bool  // the history is not whole any more
	flush    int64 // what was written so far is wanted on the disk, at this time; 0: not
	closing  bool
	stopped  error
	tally    Tally
	live     map[*Session]bool
}

// Options say what is recorded, and where.
type Options struct {
	Path    string // of the first part; it must not exist
	Started time.Time
	Run     string // unique name of the recording
	Source  trace.Source
	// Observed says that the history will be recorded, too.
	Observed bool
	Rows     int // rows kept of each result; 0: DefaultRows; negative: none
	// A part is ended, and the next one begun, when it has this size or age; 0: never.
	PartSize int64
	PartAge  time.Duration
	Redact   *trace.Redactor // nil: values are kept
	// Stopped gets, once, the reason why recording has ended before Close.
	Stopped func(error)
	// Noted gets each note that the recorder puts into the trace. Session 0: of all.
	Noted func(session uint64, text string)

	patience time.Duration // 0: defaultPatience
	closing  time.Duration // that Close waits for the file; 0: maxClosing
	most     int           // bytes that wait; 0: maxWaiting
	create   func(path string) (partFile, error)
}

// Format is the format of the source of a trace that a recorder made (trace.Source).
const Format = "proxy"

// DefaultRows is how many rows of each result a recording keeps, so that small results are kept whole; the digest is of all.
const DefaultRows = 10

const (
	defaultPatience = time.Second
	maxClosing      = 20 * time.Second
	maxWaiting      = 16 << 20
	wakeAt          = 128 << 10 // bytes that are worth the goroutine's attention before Flush
	placeRoom       = 1 << 12
	maxMoments      = 1 << 18 // entries that wait
)

// Tally counts what a recorder did.
type Tally struct {
	Sessions, Statements, Events uint64
	Parts                        int
	Held                         time.Duration // sessions waited for room, all together
	Dropped                      uint64        // bytes of sessions that were not recorded
	Gaps                         uint64        // places where they are missing
	DroppedEvents                uint64        // of the history
	Encrypted, Copies            int           // connections that went on encrypted; COPY and LOAD DATA, whose data is not kept
}

// batch is what waits for the goroutine: entries, and their bytes one behind the other.
type batch struct {
	entries []entry
	bytes   []byte
	history int // about how many bytes the events take
}

func (b *batch) size() int { return len(b.bytes) + b.history }

type entryKind uint8

const (
	entryFromClient entryKind = iota // by the client
	entryToClient                    // to the client
	entryEncrypted                   // TLS with the client began
	entryGap                         // lost bytes are missing here
	entryClosed
	entryEvent
	entryHistoryEnds
)

type entry struct {
	kind  entryKind
	who   *Session
	n     int // bytes
	at    int64
	place uint64
	event *history.Event
}

// New opens the first part and starts.
func New(o Options) (*Recorder, error) {
	o.patience = cmp.Or(o.patience, defaultPatience)
	o.closing = cmp.Or(o.closing, maxClosing)
	o.most = cmp.Or(o.most, maxWaiting)
	o.Rows = cmp.Or(o.Rows, DefaultRows)
	if o.create == nil {
		o.create = createPart
	}
	r := &Recorder{o: o, woken: make(chan struct{}, 1), ended: make(chan struct{}), room: make(chan struct{}), live: map[*Session]bool{}}
	r.output.Sink = source.NewSink(source.Options{Rows: o.Rows, Out: r.write})
	r.parts = parts{o: &r.o, live: map[uint64]*trace.Session{}}
	if err := r.parts.open(o.Started.UnixNano()); err != nil {
		return nil, err
	}
	go r.run()
	return r, nil
}

// place gives the next place in the order of everything.
func (r *Recorder) place() uint64 { return r.clock.Add(placeRoom) }

// fits reports whether there is room for n bytes.
func (r *Recorder) fits(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free(n)
}

func (r *Recorder) free(n int) bool {
	return r.waiting.size()+n <= r.o.most && len(r.waiting.entries) < maxMoments
}

func (r *Recorder) drop(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped == nil {
		r.tally.Dropped += uint64(n)
	}
}

// push queues an entry. It waits for room unless must is set, which is for entries that take none; and not for longer than the patience. It
// reports whether the entry was taken. Nothing is taken, or missed, after the recording has stopped.
func (r *Recorder) push(e entry, b []byte, must bool) bool {
	need := len(b)
	if e.event != nil {
		need = eventSize(e.event)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !must && r.stopped == nil && !r.free(need) && !r.crowded {
		r.await(need)
	}
	switch {
	case r.stopped != nil || r.closing:
		return true
	case !must && !r.free(need):
		r.crowded = true
		if e.event == nil {
			r.tally.Dropped += uint64(need)
		}
		return false
	}
	w := &r.waiting
	w.entries = append(w.entries, e)
	w.bytes = append(w.bytes, b...)
	if e.event != nil {
		w.history += need
	}
	if w.size() >= wakeAt {
		r.wake()
	}
	return true
}

// await waits until there is room, for as long as the patience allows. r.mu is held.
func (r *Recorder) await(need int) {
	began := time.Now()
	patience := time.NewTimer(r.o.patience)
	defer patience.Stop()
	for over := false; !over && !r.free(need) && !r.closing && r.stopped == nil && !r.crowded; {
		r.wake()
		room := r.room
		r.mu.Unlock()
		select {
		case <-room:
		case <-patience.C:
			over = true
		}
		r.mu.Lock()
	}
	r.tally.Held += time.Since(began)
}

// wake gets the goroutine's attention.
func (r *Recorder) wake() {
	select {
	case r.woken <- struct{}{}:
	default: // it is awake
	}
}

func eventSize(e *history.Event) int { return 300 + len(e.SQL) + 250*len(e.Accesses) }

// Event takes an event of the history, in its order. Nothing of it is kept but its strings. If there is no room for one, the history ends
// there: one with a hole would not be true.
func (r *Recorder) Event(e *history.Event) {
	r.mu.Lock()
	over := r.historic
	if over {
		r.tally.DroppedEvents++
	}
	r.mu.Unlock()
	if over {
		return
	}
	own := *e
	own.Accesses, own.Tokens = slices.Clone(e.Accesses), slices.Clone(e.Tokens)
	if e.Error != nil {
		err := *e.Error
		own.Error = &err
	}
	if r.push(entry{kind: entryEvent, event: &own}, nil, false) {
		return
	}
	r.mu.Lock()
	r.historic = true
	r.tally.DroppedEvents++
	r.mu.Unlock()
	r.push(entry{kind: entryHistoryEnds, at: time.Now().UnixNano()}, nil, true)
}

// Flush brings what happened before on the disk, soon, so that a crash of the process does not lose it.
func (r *Recorder) Flush(at time.Time) {
	r.mu.Lock()
	r.flush = at.UnixNano()
	r.mu.Unlock()
	r.wake()
}

// Close ends the trace. Sessions that are still there are recorded as they are.
func (r *Recorder) Close(at time.Time) error {
	r.mu.Lock()
	if r.closing {
		r.mu.Unlock()
		return errors.New("close recorder: it is closed")
	}
	r.closing = true
	close(r.room)
	r.room = make(chan struct{})
	r.mu.Unlock()
	r.wake()
	hung := time.NewTimer(r.o.closing)
	defer hung.Stop()
	select {
	case <-r.ended:
	case <-hung.C:
		return errors.New("close recorder: the trace's file takes nothing, so the end of the trace is missing")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped != nil {
		return r.stopped
	}
	for _, c := range r.open() {
		if c.broken {
			continue
		}
		if err := c.decoder.Flush(); err != nil {
			r.mu.Unlock()
			r.stop(err)
			r.mu.Lock()
			return r.stopped
		}
	}
	r.tally.Parts, r.tally.Statements = r.parts.n, uint64(r.output.Sink.Report.Statements)
	return r.parts.close("")
}

// open gives the sessions that have not ended, in the order of their numbers. r.mu is held.
func (r *Recorder) open() []*Session {
	return slices.SortedFunc(maps.Keys(r.live), func(a, b *Session) int { return cmp.Compare(a.number, b.number) })
}

// Tally gives the counts so far.
func (r *Recorder) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tally
}

// run is the goroutine.
func (r *Recorder) run() {
	defer close(r.ended)
	var work batch
	for range r.woken {
		r.mu.Lock()
		work, r.waiting = r.waiting, batch{entries: work.entries[:0], bytes: work.bytes[:0]}
		flush, closing := r.flush, r.closing
		r.flush, r.crowded = 0, false
		close(r.room)
		r.room = make(chan struct{})
		r.mu.Unlock()
		err := r.take(&work)
		if flush != 0 && err == nil {
			err = r.parts.flush(flush)
		}
		if err != nil {
			r.stop(err)
			return
		}
		clear(work.entries) // they hold events
		if cap(work.bytes) > 4*wakeAt && len(work.bytes) < wakeAt {
			work = batch{}
		}
		r.mu.Lock()
		r.tally.Statements, r.tally.Parts = uint64(r.output.Sink.Report.Statements), r.parts.n
		r.tally.Encrypted, r.tally.Copies, r.tally.Events, r.tally.Gaps = r.output.Encrypted+r.output.Compressed, r.output.Copies, r.events, r.gaps
		r.mu.Unlock()
		if closing {
			return
		}
	}
}

// stop ends the recording because of an error. Those who wait go on.
func (r *Recorder) stop(err error) {
	end := r.parts.close(err.Error())
	r.mu.Lock()
	r.stopped = fmt.Errorf("the recording ended before the traffic did: %w", err)
	if end != nil { // the reader will say that the file was not closed
		r.stopped = fmt.Errorf("%w (nor could that be written into it: %v)", r.stopped, end)
	}
	err = r.stopped
	r.waiting = batch{}
	close(r.room)
	r.room = make(chan struct{})
	r.tally.Statements, r.tally.Parts = uint64(r.output.Sink.Report.Statements), r.parts.n
	r.mu.Unlock()
	if r.o.Stopped != nil {
		r.o.Stopped(err)
	}
}

// take records what waited.
func (r *Recorder) take(b *batch) error {
	rest := b.bytes
	for i := range b.entries {
		e := &b.entries[i]
		var data []byte
		if e.kind == entryFromClient || e.kind == entryToClient {
			data, rest = rest[:e.n:e.n], rest[e.n:]
		}
		r.output.Sink.SetTicks(e.place, e.place+placeRoom-1)
		if err := r.guard(e.who, func() error { return r.one(e, data) }); err != nil {
			return err
		}
	}
	return nil
}

// guard calls f for a session. A panic is a defect of wirecheck: it ends the recording of that session, which a note says, and of no other one.
func (r *Recorder) guard(c *Session, f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			if c == nil {
				panic(v) // no session's bytes made it
			}
			c.broken = true
			err = r.note(c.number, &trace.Note{Text: fmt.Sprintf("a defect of wirecheck (%v): nothing of this session is recorded from here on", v)})
		}
	}()
	return f()
}

// one records an entry.
func (r *Recorder) one(e *entry, data []byte) error {
	switch {
	case e.who == nil || !e.who.broken:
	case e.kind == entryClosed:
		r.mu.Lock()
		delete(r.live, e.who)
		r.mu.Unlock()
		return nil
	default:
		return nil
	}
	switch e.kind {
	case entryFromClient:
		return e.who.decoder.FromClient(data, e.at)
	case entryToClient:
		return e.who.decoder.FromServer(data, e.at)
	case entryEncrypted:
		e.who.decoder.Encrypted()
	case entryGap:
		if err := e.who.decoder.Gap(); err != nil {
			return err
		}
		e.who.decoder.Resume()
		r.gaps++
		text := fmt.Sprintf("%s of this session are missing in front of this: the recorder could not keep up", prose.Count(e.n, "byte"))
		return r.note(e.who.number, &trace.Note{At: e.at, Text: text})
	case entryClosed:
		r.mu.Lock()
		delete(r.live, e.who)
		r.mu.Unlock()
		return e.who.decoder.Close(e.at, cmp.Or(e.who.decoder.Reason(), trace.EndLost))
	case entryEvent:
		r.events++
		return r.write(&trace.Record{Kind: trace.KindHistory, Session: e.event.Session, History: e.event})
	case entryHistoryEnds:
		text := "the recorder could not keep up: what statements read and wrote is not recorded from here on"
		return r.note(0, &trace.Note{At: e.at, Text: text, HistoryEnds: true})
	}
	return nil
}

func (r *Recorder) note(session uint64, n *trace.Note) error {
	if r.o.Noted != nil {
		r.o.Noted(session, n.Text)
	}
	return r.write(&trace.Record{Kind: trace.KindNote, Session: session, Note: n})
}

// write takes the records of the sessions.
func (r *Recorder) write(rec *trace.Record) error {
	if r.o.Redact != nil {
		r.o.Redact.Record(rec, r.parts.product(rec))
	}
	return r.parts.write(rec)
}
