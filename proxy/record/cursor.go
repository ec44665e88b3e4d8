package record

import (
	"wirecheck/history"
	"wirecheck/rewrite"
)

// cursorTold says what was told of a cursor since its transaction ended.
type cursorTold uint8

const (
	toldDuring cursorTold = iota // it has not ended
	toldNothing
	toldRead
)

// Fetches says, before the answer to a ticket begins, that the answer has rows of the cursor that first declared, and that p tells what is read in
// them. It returns false if that cannot be recorded: first is of a transaction that has ended, of which something was told since.
func (t *Tracker) Fetches(tk, first *Ticket, p *rewrite.Plan) bool {
	switch {
	case tk.set && tk.continues == first, !tk.set && t.goesOn(first):
		tk.continues = first
	case first.told == toldNothing:
		tk.late, first.told = first, toldRead
	default:
		tk.spent = true
		return false
	}
	if mayCommit(tk.plan) {
		t.commits--
	}
	if mayCommit(p) {
		t.commits++
	}
	tk.plan = p
	return true
}

// goesOn reports whether more rows can be fetched of a statement in the open transaction.
func (t *Tracker) goesOn(first *Ticket) bool {
	return first != nil && first.opened && first.n > 0 && first.txn != nil && first.txn == t.txn
}

// cursor sees to it that an event has what its statement read of a cursor whose transaction is open, and the transaction that declared it the rest.
func (t *Tracker) cursor(r *Running, ev *history.Event, res Result) {
	if first := r.ticket.late; first != nil {
		t.record(&history.Event{Kind: ev.Kind, Session: ev.Session, Txn: first.txn.id, N: first.n, From: first.from, To: ev.To, SQL: ev.SQL, Verb: ev.Verb,
			Accesses: ev.Accesses, Coverage: ev.Coverage, Why: ev.Why, Predicate: ev.Predicate, Unread: inParts})
		ev.Accesses, ev.Predicate = nil, false
	} else if r.ticket.spent && r.decoded == 0 && res.Err == nil { // nothing was left to read
		ev.Coverage, ev.Why = history.CoverageExact, ""
	}
	if c := r.ticket.plan.Cursor; c != nil && c.Hold && c.Rows != nil && res.Err == nil {
		r.ticket.txn.holds = append(r.ticket.txn.holds, r.ticket)
	}
}
