// Package replay executes again what a trace file (package trace) says that an application did, on a server that may be another one, and says
// where what came back differs.
//
// Two machines do it. Run (pacer.go) replays a trace as a stream, whatever its length: one connection for each session, and a
// pacer that holds each statement back until what came before it in the trace is done or is seen waiting for a lock. Window (window.go)
// takes transactions that stand close to each other and makes scenarios of them, which a lab can execute in other orders.
//
// What the trace cannot tell is not compared, and nothing is guessed without saying so. docs/explain/replay.md describes all of it.
package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/statement"
	"wirecheck/trace"
)

// Order is what a statement waits for besides its own session.
type Order string

// The orders.
const (
	// OrderCommit: everything keeps the place that it had among the commits of the trace: what was over before it began is over, and
	// what had begun has begun.
	OrderCommit Order = "commit"
	// OrderObject: the same, but only among statements that use the same tables, one of them to write.
	OrderObject Order = "object"
	// OrderSession: each session for itself: a statement comes when the session's last one is done and the think time has passed.
	OrderSession Order = "session"
	// OrderOff: nothing is waited for but the time at which the statement was sent.
	OrderOff Order = "off"
)

// ParseOrder reads an order.
func ParseOrder(text string) (Order, error) {
	switch o := Order(text); o {
	case OrderCommit, OrderObject, OrderSession, OrderOff:
		return o, nil
	}
	return "", fmt.Errorf("order %q: expected commit, object, session or off", text)
}

// Describe takes a text apart into statements, as a dialect of package rewrite does.
type Describe func(sql string) ([]statement.Statement, error)

// Config says where and how a trace is replayed.
type Config struct {
	Backend engine.Descriptor
	// Target is the server and the database, which is the replay's own. It may lead through a proxy that watches.
	Target engine.Target
	// Side is the same server for the connection that looks at the locks and kills; it never leads through a proxy.
	Side     engine.Target
	Describe Describe
	Order    Order
	// Speed is how fast the trace's clock goes: 1 as recorded, 2 twice as fast; 0: nobody waits for the clock.
	Speed  float64
	Limits Limits
	// Setup gives the statements that a new session begins with, besides its level; nil: none.
	Setup func(s *trace.Session) []string
	// Confined refuses statements that name another database or the server itself: it is somebody else's server.
	Confined bool
	// Level is the level of all transactions, as history.Event.Level, whatever the trace says; empty: those of the trace. Settings are the names of settings
	// that Setup gives: statements of the trace that set them are left out, and so are those that set the level, if Level is set.
	Level    string
	Settings []string
	// Made are statements that were executed before, by their texts (InferSchema).
	Made map[string]bool
	// Keep chooses sessions; nil: all.
	Keep func(session uint64, s *trace.Session) bool
	// Until is where the replay ends, in the trace's clock (Record.At); 0: at its end.
	Until int64
	// Generated learns which of the replay's values stand for which of the trace's; nil: nobody else wants to know.
	Generated *Generated
	// Victims says that sessions may set deadlock_timeout (PostgreSQL), so that the victim of a deadlock is the trace's.
	Victims bool
	// Before is called before a step is sent, when everything that the order asks for is settled; nil: nobody is.
	Before func(ctx context.Context, s *Step) error
	// Done is called for each step when it is done, in that order, by one goroutine; nil: nobody is.
	Done func(s *Step)
	// Progress is called now and then with the number of steps that are done.
	Progress func(done int)
}

// Limits bound what is waited for. Zero fields have defaults.
type Limits struct {
	// Statement bounds one statement that is not seen waiting, or ten times what it took in the trace, if that is longer.
	Statement time.Duration
	// Stuck is how long a state may last in which everything waits for locks and the server does not end it.
	Stuck time.Duration
	// Ahead is how many statements are read ahead of the one whose turn it is.
	Ahead int
	// Window is how many statements of a trace may be out of order.
	Window int
}

// The defaults.
const (
	statementLimit = time.Minute
	stuckLimit     = 3 * time.Second
	aheadLimit     = 4096
	windowLimit    = 1 << 16
	killLimit      = 10 * time.Second
	grace          = 250 * time.Microsecond // before the lock views are asked about a step: most are done by then
	pollEvery      = time.Millisecond       // between looks that showed nothing new
	overlapGrace   = 250 * time.Millisecond // how long one waits at least for a step that had not ended in the trace either
	readGrace      = time.Second            // the same, for a plain read, which seldom waits, and sees what is committed meanwhile
	enoughLooks    = 3                      // at the locks in that time
)

func (l *Limits) fill() {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&l.Statement, statementLimit)
	set(&l.Stuck, stuckLimit)
	if l.Ahead <= 0 {
		l.Ahead = aheadLimit
	}
	if l.Window <= 0 {
		l.Window = windowLimit
	}
}

// Step is one statement of a trace at its place in the replay.
type Step struct {
	N         int // place in the order in which steps are sent, from 1
	Session   uint64
	Statement *trace.Statement // nil: the session's end
	SQL       string           // as it is sent: parameters are literals
	Skip      string           // why it is not sent; empty: it is
	Volatile  string           // why the same statement may bring another result, as far as its text tells

	seq    int   // place in the file
	lo, hi int64 // when it began and ended there, on the trace's axis
	start  int64 // by the clock, 0: not known
	took   time.Duration
	ends   bool  // it ended a transaction, or let go of locks in another way
	before *Step // the end of a transaction before which it is sent, which is held back for it
	passed bool  // others were sent before what follows it, since it waits
	holds  int   // steps that are still to come in front of it
	inside bool  // it was in a transaction when it began
	early  bool  // what it sees is as old as its beginning
	asks   bool  // it can be sent again until its answer is the trace's
	asked  int   // it was sent, its answer was another one, and it is to be sent again when so many transactions have ended
	missed bool  // a commit that it overlapped came while it was with the server
	after  *Step // the one that it waited for, as far as its duration tells
	info   *trace.Session
	form   []statement.Statement        // what SQL does, or a text that differs from it in literals and parameters alone
	exact  func() []statement.Statement // what SQL does, with its clauses; nil: form is it
	tables []use
	shape  string // its text without literals; empty: the trace does not tell how long it took

	Answer  answer.Answer
	Outcome answer.Outcome
	Waited  bool // it was seen waiting for a lock
	Lost    error
	sent    time.Time
	looks   int           // at the locks since
	lasted  time.Duration // from sending it to its answer
	standIn string        // why another statement is sent that fails, as this one did; empty: it is sent itself
	as      string        // the text that was sent, where SQL was changed then
	begun   bool          // a BEGIN was put in front: the session was in a transaction when the trace began
}

// use is a table that a step touches.
type use struct {
	name  string
	write bool
}

// meet reports whether two steps touch the same table so that of their uses the condition holds.
func meet(a, b *Step, holds func(x, y use) bool) bool {
	return slices.ContainsFunc(a.tables, func(x use) bool {
		return slices.ContainsFunc(b.tables, func(y use) bool { return x.name == y.name && holds(x, y) })
	})
}

// verbs are what the step does. For what does not depend on literals, form is faster.
func (s *Step) verbs() []statement.Statement {
	if s.exact != nil {
		return s.exact()
	}
	return s.form
}

// Tags are what the application said of the statement.
func (s *Step) Tags() []trace.Tag {
	if s.Statement == nil {
		return nil
	}
	return s.Statement.Tags
}

// Info is what the trace says of the step's session; nil if it says nothing.
func (s *Step) Info() *trace.Session { return s.info }

// Is reports whether the step is the statement that was sent as this text.
func (s *Step) Is(sql string) bool {
	return s.SQL == sql || s.as != "" && s.as == sql
}

// Lacks reports whether the step shows that the database is not the trace's: the server refused it, and had not refused it then.
func (s *Step) Lacks() bool {
	return s.Answer.Err != nil && s.Statement != nil && s.Statement.Error == nil
}

// Touches reports whether the step was sent and reads or writes a table.
func (s *Step) Touches() bool { return s.Skip == "" && s.standIn == "" && len(s.tables) > 0 }

// failed reports whether the server refused the step.
func (s *Step) failed() bool { return s.Answer.Err != nil || s.Lost != nil }

// Deviation is a place where the recorded order could not be kept.
type Deviation struct {
	Step    int    `json:"step"`
	Session uint64 `json:"session"`
	SQL     string `json:"sql,omitempty"`
	Text    string `json:"text"`
}

// Deadlock is one that a server ended.
type Deadlock struct {
	Session  uint64      `json:"session"` // the victim
	Step     int         `json:"step"`
	SQL      string      `json:"sql"`
	Tags     []trace.Tag `json:"tags,omitempty"`
	Captured bool        `json:"captured"` // it is in the trace
	Replayed bool        `json:"replayed"` // it is in the replay
	Others   []Party     `json:"others,omitempty"`
	// OtherVictim: the server chose another one of them in the replay than in the trace.
	OtherVictim bool `json:"other_victim,omitempty"`
}

// Party is a session that took part in something, with its statement.
type Party struct {
	Session uint64      `json:"session"`
	SQL     string      `json:"sql,omitempty"`
	Tags    []trace.Tag `json:"tags,omitempty"`
}

// Result is what a replay did.
type Result struct {
	Order      Order          `json:"order"`
	Sessions   int            `json:"sessions"`
	Statements int            `json:"statements"` // that were sent
	Waited     int            `json:"waited"`     // that were seen waiting for a lock
	Errors     int            `json:"errors"`     // that the server refused
	Skipped    map[string]int `json:"skipped"`    // by reason
	Divergence Divergence     `json:"divergence"`
	Deadlocks  []Deadlock     `json:"deadlocks"`
	Latencies  []Latency      `json:"latencies,omitempty"` // of the shapes whose times differ most from the trace's
	Deviations []Deviation    `json:"deviations"`          // the first ones
	Deviated   int            `json:"deviated"`            // all
	Begun      int            `json:"begun,omitempty"`     // sessions that were in a transaction when the trace began
	Left       int            `json:"left,omitempty"`      // transactions that were open when it ended; they were rolled back
	Late       int            `json:"late,omitempty"`      // statements that came too far out of order in the file
	// Asked is how many plain reads that overlapped a commit were sent again behind it, since their answers differed from the trace's.
	Asked int `json:"asked_again,omitempty"`
	// Backends gives the trace's session of each of the server's numbers.
	Backends map[uint64]uint64 `json:"-"`
	Elapsed  time.Duration     `json:"elapsed_ns"`
	Notes    []string          `json:"notes,omitempty"`
}

// maxShown is how many of each kind of thing a result keeps.
const maxShown = 100
