// Package record turns what a session sent and was answered into the events of a history. The session loops of both
// protocols share it: a Tracker follows the transactions of one session, a Recorder numbers and orders the events of
// all sessions. Neither knows what is done with the events, nor any wire format.
package record

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"wirecheck/history"
)

// Warning is what a session's client is to learn, in both protocols' terms.
type Warning struct {
	SQLState string // PostgreSQL, class 01
	Code     uint16 // MySQL family
	Message  string
	Detail   string
	Hint     string
	Schema   string
	Table    string
	Finding  string // fingerprint of the finding, WC-xxxxxx
}

// Sink receives each event, in the order of the history, and returns the warnings that became due in that event's
// session. It is never called by two goroutines at once. It must not keep the event nor its slices; strings it may keep.
type Sink func(*history.Event) []Warning

// Recorder numbers sessions and transactions, keeps the logical clock, and hands events to the sink one by one.
type Recorder struct {
	run      string
	clock    atomic.Uint64
	sessions atomic.Uint64
	txns     atomic.Uint64
	texts    atomic.Int64 // see Share
	messages atomic.Int64
	facts    atomic.Int64
	lanes    *Lanes

	// Now is the wall clock, for people, and to know columns that get the time; nil: events carry no times. It is set before sessions begin.
	Now func() time.Time
	// Requests tells requests apart; nil: they are not. It is set before sessions begin.
	Requests *Requests

	// NoPredicates says that what statements asked is not recorded, and no images for it. It is set before sessions begin.
	NoPredicates bool

	// Answers answers what a session's client asks wirecheck; nil: nothing does. It is set before sessions begin.
	Answers func(session uint64, q Question) *Table
	// Due gives the warnings that wait for a session's next answer, whatever it is; nil: none do. It is set before sessions begin.
	Due func(session uint64) []Warning

	mu     sync.Mutex
	sink   Sink
	handed int64 // see Handed
}

// NewRecorder makes a Recorder. run tells this process's tokens from those of all others (MySQL family: they are
// stored in the rows); it must be short, of letters and digits.
func NewRecorder(run string, sink Sink) *Recorder {
	return &Recorder{run: run, sink: sink, lanes: newLanes()}
}

// Lanes are those in which the texts of all sessions are planned.
func (r *Recorder) Lanes() *Lanes { return r.lanes }

// Tick advances the logical clock and returns its new value.
func (r *Recorder) Tick() uint64 { return r.clock.Add(1) }

// Token is the name under which the versions of a transaction are known where wirecheck itself stamps them.
func (r *Recorder) Token(txn uint64) string { return fmt.Sprintf("T%d.%s", txn, r.run) }

// Stamp is the name of one statement of a transaction, as it is stored in the rows that it wrote.
func (r *Recorder) Stamp(txn uint64, n int) string { return fmt.Sprintf("T%d.%d.%s", txn, n, r.run) }

func (r *Recorder) record(ev *history.Event) []Warning {
	handed := r.now()
	if ev.At == 0 {
		ev.At = handed
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handed = handed
	return r.sink(ev)
}

// Handed is the wall clock, in nanoseconds since 1970, when the event that the sink has was handed to it: statements may wait for their log. It is for the sink
// alone.
func (r *Recorder) Handed() int64 { return r.handed }

// now is the wall clock in nanoseconds since 1970; 0: there is none.
func (r *Recorder) now() int64 {
	if r.Now == nil {
		return 0
	}
	return r.Now().UnixNano()
}
