package pgwire

import (
	"fmt"
	"runtime/debug"

	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// recording is what the history gets of a session, until the session cannot be observed any more. A panic in the recorder, or in what it hands
// the events to, ends the recording and not the session. The pipeline's mutex guards it.
type recording struct {
	log     zerolog.Logger
	tracker *record.Tracker // nil: the session is not observed any more
}

// open begins a recording.
func (r *recording) open(o *Observer, session history.Event) {
	defer func() {
		if v := recover(); v != nil {
			r.warn(v)
		}
	}()
	r.tracker = record.NewTracker(o.recorder, session, o.limits)
	r.tracker.Wants(o.rewriter.Want)
}

// recovered, deferred, ends the recording if the function panics.
func (r *recording) recovered() {
	if v := recover(); v != nil {
		r.panicked(v)
	}
}

// panicked ends the recording because of a panic.
func (r *recording) panicked(v any) {
	if r.tracker != nil {
		r.end(r.warn(v))
	}
}

// warn says why the session is not observed any more.
func (r *recording) warn(v any) (why string) {
	why = fmt.Sprintf("a defect of wirecheck: panic: %v", v)
	r.log.Error().Str("why", why).Bytes("stack", debug.Stack()).Msg("session is not observed any more")
	return why
}

// end ends the recording before the session ends.
func (r *recording) end(why string) {
	t := r.tracker
	if t == nil {
		return
	}
	r.tracker = nil
	defer func() {
		_ = recover() // it may be what has panicked before
	}()
	t.Abandon(why)
}

// close ends the recording with the session.
func (r *recording) close() {
	defer r.recovered()
	if r.tracker != nil {
		r.tracker.Close()
	}
}

// setLevel sets the level of the next transactions.
func (r *recording) setLevel(level string) {
	defer r.recovered()
	if r.tracker != nil {
		r.tracker.SetLevel(level)
	}
}

// sent announces the statements of a message that is about to be sent. n knows the cursors, of which a Query may fetch.
func (r *recording) sent(e *entry, n *names) {
	defer r.recovered()
	e.tickets = e.ticket[:0]
	for _, plan := range e.plans(make([]*rewrite.Plan, 0, 1)) {
		if r.tracker != nil {
			opener := e.opener()
			if c := n.fetched(plan); c != nil && e.request == simpleQuery {
				opener = c.ticket
			}
			tk := r.tracker.Continuing(opener, plan, e.looked)
			r.tracker.From(tk, e.client, e.bound.params)
			e.tickets = append(e.tickets, tk)
		}
	}
	if r.tracker != nil && e.request == simpleQuery {
		record.Synced(r.tracker)
	}
}

// looks notes a message for which the server may take a snapshot before it executes a statement, or ends a transaction that no BEGIN made. open says that
// messages before it wait for a Sync. BEGIN and its like need no snapshot (analyze_requires_snapshot, src/backend/parser/analyze.c).
func (r *recording) looks(e *entry, open bool) {
	defer r.recovered()
	if r.tracker == nil {
		return
	}
	plan := e.plan
	if plan == nil && e.script != nil && len(e.script.Plans) == 1 {
		plan = e.script.Plans[0]
	}
	switch e.request {
	case parse, bind, describe:
		if plan == nil || plan.Control.Verb == "" {
			e.looked = record.Looking(r.tracker)
		}
	case ownQuery: // its own Sync is behind it
		if record.Looking(r.tracker); !open {
			record.Synced(r.tracker)
		}
	case syncing:
		record.Synced(r.tracker)
	}
}

// fetches says that the answer to a ticket, which has not begun, has rows of a cursor. It returns false if they cannot be recorded.
func (r *recording) fetches(tk *record.Ticket, c *cursor) bool {
	defer r.recovered()
	return r.tracker != nil && c.ticket != nil && r.tracker.Fetches(tk, c.ticket, c.declared.Rows)
}

// begin says that the answer to the entry's next statement begins.
func (r *recording) begin(e *entry) *record.Running {
	defer r.recovered()
	if r.tracker != nil {
		e.running = r.tracker.Answer(e.tickets[e.next])
	}
	return e.running
}

// done records the end of the statement that runs, if one does.
func (r *recording) done(e *entry, res record.Result) []record.Warning {
	defer r.recovered()
	run := e.running
	if run == nil {
		return nil
	}
	e.running = nil
	e.next++
	if r.tracker == nil {
		return nil
	}
	r.tracker.Log(r.log, run, res)
	return r.tracker.Done(run, res)
}

// drop takes back the statements that the server did not execute.
func (r *recording) drop(e *entry) {
	defer r.recovered()
	for ; e.next < len(e.tickets); e.next++ {
		if r.tracker != nil {
			r.tracker.Drop(e.tickets[e.next])
		}
	}
}

// extra records a refusal that belongs to no Execute: it makes the transaction fail all the same.
func (r *recording) extra(plan *rewrite.Plan, res record.Result) []record.Warning {
	defer r.recovered()
	if r.tracker == nil {
		return nil
	}
	return r.tracker.Done(r.tracker.Answer(r.tracker.Sending(plan)), res)
}

// unsettled reports whether a statement awaits the session's next snapshot.
func (r *recording) unsettled() bool { return r.tracker != nil && r.tracker.Unsettled() }

// settle takes note of the answer to snapshotQuery.
func (r *recording) settle(q *own) {
	defer r.recovered()
	if r.tracker == nil {
		return
	}
	text := ""
	if q.err == nil && len(q.rows) == 1 && len(q.rows[0]) == 1 {
		text = string(q.rows[0][0])
	}
	r.tracker.Settle(text)
}

// ready takes note of the transaction status in a ReadyForQuery.
func (r *recording) ready(status byte) []record.Warning {
	defer r.recovered()
	if r.tracker == nil {
		return nil
	}
	return r.tracker.Status(status != 'I')
}
