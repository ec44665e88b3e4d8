package record

import (
	"cmp"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
)

// Ticket is a request on its way.
type Ticket struct {
	plan   *rewrite.Plan
	from   uint64
	txn    *txn
	n      int
	set    bool    // txn and n are known
	looks  looks   // before it was sent
	origin *origin // nil: nothing is known of its request
	opened bool    // its answer has begun
	// What was recorded of it, for those that fetch more of its rows.
	coverage history.Coverage
	why      string
	// continues is the request of which this one fetches more rows; nil: none. late is one of a transaction that has ended.
	continues, late *Ticket
	// told says, of a cursor that outlives its transaction, whether something was read of it since. spent says that what this one fetches of such a
	// cursor is not recorded.
	told  cursorTold
	spent bool
}

// Result is how a request ended.
type Result struct {
	Err *answer.Error // nil if it succeeded
	Tag string        // PostgreSQL: the command tag
	// Changed is how many rows an INSERT, UPDATE or DELETE changed, by the server's count (MySQL family; 0 elsewhere).
	Changed uint64
	// None says that an UPDATE found no row, so that its log will tell nothing of it (MySQL family).
	None bool
	// Suspended says that more rows can be fetched (PostgreSQL: an Execute with a row limit).
	Suspended bool
	// Moments are what rewrite.Plan.Moments would have told of an answer without rows; nil: it is not known (MySQL family).
	Moments []condition.Value
}

// mayCommit reports whether the server may have committed something once p was sent, its answer unseen.
func mayCommit(p *rewrite.Plan) bool {
	return p.Control.Verb == statement.ControlCommit || p.Control.Ends || touches(p) && p.Verb != "select"
}

// touches reports whether p reads or writes tables, or may.
func touches(p *rewrite.Plan) bool { return p.Coverage != history.CoverageNone }

func inside(p *rewrite.Plan) bool {
	switch p.Control.Verb {
	case statement.ControlBegin, statement.ControlCommit, statement.ControlRollback:
		return false
	}
	return true
}

// looks are ticks before the server may have taken a snapshot for what it executes later; 0: it has not.
type looks struct {
	transaction uint64 // since the last message that begins or ends a transaction
	batch       uint64 // since the last one that ends a transaction that no BEGIN made
}

// Looking announces a message for which the server may take a snapshot though it executes nothing yet (PostgreSQL: Parse, Bind and Describe, see
// exec_parse_message, exec_bind_message and RevalidateCachedQuery in its sources): at REPEATABLE READ the first one is that of the transaction, and what
// a SELECT sees is settled by its Bind. It gives the tick.
func Looking(t *Tracker) uint64 {
	now := t.rec.Tick()
	t.looks.transaction, t.looks.batch = cmp.Or(t.looks.transaction, now), cmp.Or(t.looks.batch, now)
	return now
}

// Synced announces a message that ends a transaction which no BEGIN made (PostgreSQL: Sync, and Query, whose tickets are made).
func Synced(t *Tracker) { t.looks.batch = 0 }

// sent notes a statement. alone says that certainly no transaction is open: else a BEGIN goes on with the one that is, and its snapshot.
func (l *looks) sent(p *rewrite.Plan, alone bool) {
	switch p.Control.Verb {
	case statement.ControlCommit, statement.ControlRollback:
		l.transaction = 0
	case statement.ControlBegin:
		if alone {
			l.transaction = l.batch
		}
	}
}

// before is the tick before the first snapshot of the transaction whose first statement was sent at tick from. implicit says that no BEGIN made it.
func (l looks) before(from uint64, implicit bool) uint64 {
	if implicit {
		return min(from, cmp.Or(l.batch, from))
	}
	return min(from, cmp.Or(l.transaction, from))
}
