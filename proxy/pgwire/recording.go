package pgwire

import (
	"github.com/rs/zerolog"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// recording is what the history gets of a session. The pipeline's mutex guards it.
type recording struct {
	log     zerolog.Logger
	tracker *record.Tracker
}

// sent announces the statements of a message that is about to be sent.
func (r *recording) sent(e *entry) {
	for _, plan := range e.plans() {
		e.tickets = append(e.tickets, r.tracker.Sending(plan))
	}
}

// begin says that the answer to the entry's next statement begins.
func (r *recording) begin(e *entry) *record.Running {
	e.running = r.tracker.Answer(e.tickets[e.next])
	return e.running
}

// done records the end of the statement that runs, if one does.
func (r *recording) done(e *entry, res record.Result) []record.Warning {
	if e.running == nil {
		return nil
	}
	r.debug(e.running.Plan(), res)
	ws := r.tracker.Done(e.running, res)
	e.running = nil
	e.next++
	return ws
}

// drop takes back the statements that the server did not execute.
func (r *recording) drop(e *entry) {
	for ; e.next < len(e.tickets); e.next++ {
		r.tracker.Drop(e.tickets[e.next])
	}
}

// extra records a refusal that belongs to no Execute: it makes the transaction fail all the same.
func (r *recording) extra(plan *rewrite.Plan, res record.Result) []record.Warning {
	return r.tracker.Done(r.tracker.Answer(r.tracker.Sending(plan)), res)
}

// debug writes a line about a statement that ended.
func (r *recording) debug(p *rewrite.Plan, res record.Result) {
	ev := r.log.Debug()
	if ev == nil {
		return
	}
	ev = ev.Str("verb", p.Verb).Str("coverage", string(p.Coverage))
	if p.Why != "" {
		ev = ev.Str("why", p.Why)
	}
	if res.Err != nil {
		ev = ev.Str("sqlstate", res.Err.Code)
	} else {
		ev = ev.Str("tag", res.Tag)
	}
	ev.Msg("statement")
}
