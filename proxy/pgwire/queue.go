package pgwire

import (
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// request is what a message asked for.
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
	copyEnd // CopyDone or CopyFail: it has no answer of its own, but says which Syncs the server never saw
	ownQuery
)

// entry is a message on its way whose answer is awaited.
type entry struct {
	request request
	seq     uint64
	ours    bool // we sent it, the client knows nothing of it

	client  string          // the client's text and
	script  *rewrite.Script // what became of it: for plans and error positions
	tickets []*record.Ticket

	plan    *rewrite.Plan   // describe, execute: of the statement or portal; nil if it is not known
	running *record.Running // the statement whose answer has begun
	next    int             // simpleQuery: the plan that is answered next
	tag     string          // simpleQuery that was not understood: the last command tag
	failed  bool
	spent   *string // execute: the name of a portal that cannot be executed again
	last    bool    // its ReadyForQuery ends the turn, see Gate
	copying bool    // a CopyInResponse came, its CommandComplete or error did not

	undo     undo
	resolved bool // parse: its answer came

	own *own
}

// own is a question of ours.
type own struct {
	rows [][][]byte // of all results, in order
	size int
	err  *serverError
	done bool
}

// undo takes back what a message that the server refused or skipped would have done to a name.
type undo struct {
	kind byte // 'S', 'P' or 0
	name string
	stmt *prepared // what the name stood for before, may be nil
	port *portal
}

// prepared is a prepared statement.
type prepared struct {
	name    string
	client  string // the client's text
	script  *rewrite.Script
	tail    []byte // of its Parse message: the types of its parameters
	catalog *rewrite.Catalog
	seq     uint64
	batch   uint64 // number of the Sync before which it was sent
	parsing *entry // until the server has answered
	gone    bool   // the server does not have it any more: it refused to prepare it anew
}

// plan is the plan of the statement, nil if it is empty.
func (p *prepared) plan() *rewrite.Plan {
	if p == nil || len(p.script.Plans) == 0 {
		return nil
	}
	return p.script.Plans[0]
}

// extended reports whether something hidden is in the statement's answer.
func (p *prepared) extended() bool {
	plan := p.plan()
	return plan != nil && plan.Hidden > 0
}

// portal is a statement bound to its parameters.
type portal struct {
	stmt *prepared
	plan *rewrite.Plan
	seq  uint64
	run  bool // it was executed, and its statement returns no rows: it cannot be executed again
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

// turns reports whether the entry ends with a ReadyForQuery.
func (e *entry) turns() bool {
	switch e.request {
	case simpleQuery, syncing, function, ownQuery:
		return true
	}
	return false
}

// syncFollows reports whether the entry after the head is a Sync, so that a ReadyForQuery follows without any further
// message of the client.
func (q *queue) syncFollows() bool {
	return len(q.items) > 1 && q.items[1].request == syncing
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
