package pgwire

import (
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
	spent   bool // execute: of a portal that cannot be executed again
	last    bool // its ReadyForQuery ends the session's turn, see turn
	own     *own

	undo     undo
	resolved bool // parse: its answer came, or never will

	running *record.Running // the statement whose answer has begun
	next    int             // the plan that is answered next
	tag     string          // of a simpleQuery that was not understood: the last command tag
	failed  bool
	copying bool // a CopyInResponse came, its CommandComplete or error did not
}

// own is a question of ours. It belongs to the server half until it is done, then to the one who asked; done is guarded by the pipeline's mutex.
type own struct {
	rows [][][]byte // of all results, in order
	size int
	err  *answer.Error
	done bool
}

// current is the plan by which the answer that comes now is taken apart, or nil.
func (e *entry) current() *rewrite.Plan {
	switch {
	case e.request == simpleQuery && e.next < len(e.script.Plans):
		return e.script.Plans[e.next]
	case e.request == execute, e.request == describe:
		return e.plan
	}
	return nil
}

// plans are those of the statements that the message executes.
func (e *entry) plans() []*rewrite.Plan {
	switch {
	case e.request == simpleQuery:
		return e.script.Plans
	case (e.request == execute || e.request == function) && e.plan != nil:
		return []*rewrite.Plan{e.plan}
	}
	return nil
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

// queue holds the entries whose answers are awaited, in order.
type queue struct {
	items []*entry
}

func (q *queue) push(e *entry) { q.items = append(q.items, e) }

// head is the entry that is answered next, or nil.
func (q *queue) head() *entry {
	for len(q.items) > 0 && q.items[0].request == copyEnd {
		q.pop()
	}
	if len(q.items) == 0 {
		return nil
	}
	return q.items[0]
}

func (q *queue) pop() {
	q.items[0] = nil
	q.items = q.items[1:]
}

func (q *queue) empty() bool { return q.head() == nil }

// syncFollows reports whether the entry after the head is a Sync, so that a ReadyForQuery follows without any further
// message of the client.
func (q *queue) syncFollows() bool {
	return len(q.items) > 1 && q.items[1].request == syncing
}

// beforeSync takes off the queue what the server ignores after an error: everything up to a Sync (manual, 55.2.3). It returns false if there is
// no Sync.
func (q *queue) beforeSync() (ignored []*entry, synced bool) {
	n := 0
	for n < len(q.items) && q.items[n].request != syncing {
		n++
	}
	ignored, q.items = q.items[:n], q.items[n:]
	return ignored, len(q.items) > 0
}

// endCopy drops the Syncs that the server read, and ignored, while it was copying from the client (CopyGetData,
// src/backend/commands/copyfromparse.c): those between the head and the end of the copied data. It returns false if the
// client has not sent the end yet.
func (q *queue) endCopy() bool {
	for i := 1; i < len(q.items); i++ {
		switch q.items[i].request {
		case syncing:
			continue
		case copyEnd:
			q.items = append(q.items[:1], q.items[i+1:]...)
			return true
		}
		break
	}
	for len(q.items) > 1 && q.items[1].request == syncing {
		q.items = append(q.items[:1], q.items[2:]...)
	}
	return false
}
