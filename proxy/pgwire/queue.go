package pgwire

import (
	"slices"

	"wirecheck/answer"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// request is what a message asks for.
type request uint8

const (
	simpleQuery request = iota
	parse
	bind
	describe
	execute
	closing
	syncing
	function
	copyEnd // CopyDone or CopyFail: it has no answer of its own, but says which Syncs the server ignores
	ownQuery
)

// entry is a message whose answer is awaited. The client half makes it. Once it is queued, its first part does not change, the second
// is guarded by the pipeline's mutex, and the third belongs to the server half.
type entry struct {
	request request
	seq     uint64
	ours    bool      // the session sent it, the client does not know of it
	kind    byte      // closing: 'S' for a statement, 'P' for a portal, 0 if the message is malformed
	name    string    // of the statement or portal that the message makes, executes or closes
	stmt    *prepared // parse: the statement that it makes, nil if that is not remembered; bind: the statement that is bound
	client  string    // the client's text and
	script  *rewrite.Script
	plan    *rewrite.Plan // of the statement or portal; nil if it is not known
	tickets []*record.Ticket
	ticket  [1]*record.Ticket // room for tickets: most have one
	bound   *bound            // bind, execute: the parameters, where requests are told apart
	columns *columns          // simpleQuery: those of the answer at hand, where requests are told apart
	first   *entry            // execute: the one that opened the portal; nil: this one does
	fetched *cursor           // execute: the cursor of whose rows it fetches
	looked  uint64            // bind, execute: the tick before the Bind was sent
	spent   bool              // execute: of a portal that cannot be executed again
	last    bool              // its ReadyForQuery ends the session's turn, see turn
	own     *own
	at      int // where the message begins in the batch, -1 if it is not kept there
	size    int // roughly, in bytes

	undo     undo
	resolved bool // parse: its answer came, or never will
	more     int  // syncing, copyEnd: as many more of the same kind follow

	running *record.Running // the statement whose answer has begun
	rows    *rewrite.Plan   // simpleQuery: of the cursor from which the answer at hand fetches
	next    int             // the plan that is answered next
	tag     string          // of a simpleQuery that was not understood: the last command tag
	failed  bool
	begun   bool // its answer has begun
	notices int  // that came before
	blank   bool // the answer at hand has no row, see rewrite.Plan.Blank
	copying bool // a CopyInResponse came, its CommandComplete or error did not
}

// own is a question of ours. It belongs to the server half until it is done, then to the one who asked; done is guarded by the pipeline's mutex.
type own struct {
	rows [][][]byte // of all results, in order
	size int
	err  *answer.Error
	done bool
	// settles says that its answer is the session's snapshot, see record.Tracker.Settle.
	settles bool
}

// current is the plan by which the answer that comes now is taken apart, or nil.
func (e *entry) current() *rewrite.Plan {
	switch {
	case e.rows != nil:
		return e.rows
	case e.request == simpleQuery && e.next < len(e.script.Plans):
		return e.script.Plans[e.next]
	case e.request == execute, e.request == describe:
		return e.plan
	}
	return nil
}

// plans are those of the statements that the message executes, in room if they are not a list already.
func (e *entry) plans(room []*rewrite.Plan) []*rewrite.Plan {
	switch {
	case e.request == simpleQuery:
		return e.script.Plans
	case (e.request == execute || e.request == function) && e.plan != nil:
		return append(room, e.plan)
	}
	return nil
}

// opener is the ticket of the statement of which this entry fetches more rows; nil: of none.
func (e *entry) opener() *record.Ticket {
	if e.fetched != nil {
		return e.fetched.ticket
	}
	if e.first == nil || len(e.first.tickets) == 0 {
		return nil
	}
	return e.first.tickets[0]
}

// refusedPlan is the plan of the statement whose Parse, Bind or Describe the server refused.
func (e *entry) refusedPlan() *rewrite.Plan {
	if e.plan != nil {
		return e.plan
	}
	if e.script != nil && len(e.script.Plans) > 0 {
		return e.script.Plans[0]
	}
	return nil
}

// edits are those of the text behind an entry.
func (e *entry) edits() []rewrite.Edit {
	if e == nil || e.script == nil || len(e.script.Plans) == 0 {
		return nil
	}
	return e.script.Plans[0].Edits
}

// endsReady reports whether the answer ends with a ReadyForQuery.
func (e *entry) endsReady() bool {
	switch e.request {
	case simpleQuery, syncing, function, ownQuery:
		return true
	}
	return false
}

// queue holds the entries whose answers are awaited, in order. A run of Syncs, or of ends of copied data, is one entry: while the server copies from the
// client it reads any number of them without an answer.
type queue struct {
	items []*entry
	room  []*entry     // where items begin when the first one comes
	size  int          // of the items, roughly in bytes
	share record.Share // has the size of the items, and of the message that the client half holds
}

const (
	entrySize = 1 << 10 // roughly the room that an entry takes besides its texts
	maxQueue  = 1 << 20 // of a queue: no more is read from the client beyond that
)

// full reports whether too much awaits its answer. An empty queue is never full, whatever other sessions keep: nothing would end the wait.
func (q *queue) full() bool { return !q.empty() && (q.size >= maxQueue || !q.share.Takes(0)) }

// hasRoom reports whether so much was answered since the queue was full that reading the client again is worth it.
func (q *queue) hasRoom() bool { return q.empty() || q.size <= maxQueue/2 && q.share.Takes(0) }

// more counts one more message of a kind of which there are runs. It returns false if the message needs an entry.
func (q *queue) more(r request) bool {
	if r == copyEnd && q.empty() {
		return true // nothing is copied, so it ends nothing
	}
	if n := len(q.items); n > 0 && q.items[n-1].request == r {
		q.items[n-1].more++
		return true
	}
	return false
}

func (q *queue) push(e *entry) {
	if len(q.items) == 0 {
		q.items = q.room
	}
	if q.items = append(q.items, e); cap(q.items) > cap(q.room) {
		q.room = q.items[:0]
	}
	e.size = entrySize + len(e.client)
	switch {
	case (e.request == simpleQuery || e.request == parse) && e.script != nil:
		if e.size += e.script.Size(); e.script.SQL != e.client {
			e.size += len(e.script.SQL)
		}
	case e.request == bind && e.plan != nil:
		e.size += e.plan.Size()
	}
	q.count(e.size)
}

// dropsNothing reports whether no SQL command that drops prepared statements is unanswered.
func (q *queue) dropsNothing() bool {
	return !slices.ContainsFunc(q.items, func(e *entry) bool {
		return slices.ContainsFunc(e.plans(nil), func(p *rewrite.Plan) bool { return p.Deallocates != "" })
	})
}

// count counts n bytes more, or less.
func (q *queue) count(n int) {
	q.size += n
	q.share.Add(n)
}

// clear drops all entries.
func (q *queue) clear() {
	q.items, q.room = nil, nil
	q.count(-q.size)
}

// head is the entry that is answered next, or nil.
func (q *queue) head() *entry {
	for len(q.items) > 0 && q.items[0].request == copyEnd {
		q.remove(0)
	}
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

// pop takes off the head, which was answered; of a run, one of its messages.
func (q *queue) pop() {
	if q.items[0].more > 0 {
		q.items[0].more--
		return
	}
	q.remove(0)
}

// remove takes off an entry.
func (q *queue) remove(i int) {
	q.count(-q.items[i].size)
	if i == 0 {
		q.items[0] = nil
		q.items = q.items[1:]
		return
	}
	q.items = append(q.items[:i], q.items[i+1:]...)
}

func (q *queue) empty() bool { return q.head() == nil }

// follows reports whether the entry behind the head is one of these.
func (q *queue) follows(r request) bool { return len(q.items) > 1 && q.items[1].request == r }

// beforeSync takes off the queue what the server ignores after an error: everything up to a Sync (manual, 55.2.3). It returns false if there is
// no Sync.
func (q *queue) beforeSync() (ignored []*entry, synced bool) {
	for len(q.items) > 0 && q.items[0].request != syncing {
		ignored = append(ignored, q.items[0])
		q.remove(0)
	}
	return ignored, len(q.items) > 0
}

// endCopy drops the Syncs that the server read, and ignored, while it was copying from the client (CopyGetData,
// src/backend/commands/copyfromparse.c): those between the head and the end of the copied data. It returns false if the
// client has not sent the end yet.
func (q *queue) endCopy() bool {
	if q.follows(syncing) {
		q.remove(1)
	}
	if !q.follows(copyEnd) {
		return false
	}
	if q.items[1].more--; q.items[1].more < 0 {
		q.remove(1)
	}
	return true
}
