package mysqlwire

import (
	"fmt"
	"runtime/debug"

	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/trace/flow"
)

// recording is what the history gets of a session, by the calls of record.Tracker, until the session cannot be observed any more. A
// panic in the recorder, in what it hands the events to, in a decoder or in the rewriter ends the recording and not the session.
type recording struct {
	log     zerolog.Logger
	tracker *record.Tracker // nil: the session is not observed any more
	warned  bool            // the log has the reason
}

// open begins a recording.
func (r *recording) open(o *Observer, want func(*rewrite.Ask), session history.Event) {
	r.guard(func() {
		r.tracker = record.NewTracker(o.Recorder, session, o.Limits)
		r.tracker.Wants(want)
	})
}

// observed reports whether the session is still observed.
func (r *recording) observed() bool { return r.tracker != nil }

// guard calls f, which finds out what wirecheck wants to know and sends nothing. It reports whether f has returned.
func (r *recording) guard(f func()) (ok bool) {
	defer func() {
		if !ok {
			r.panicked(recover())
		}
	}()
	f()
	return true
}

// panicked ends the recording because of a panic.
func (r *recording) panicked(v any) {
	why := fmt.Sprintf("a defect of wirecheck: panic: %v", v)
	if !r.warned {
		r.warned = true
		r.log.Error().Str("why", why).Bytes("stack", debug.Stack()).Msg("session is not observed any more")
	}
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

// do calls the tracker, if there is one.
func (r *recording) do(f func(t *record.Tracker)) {
	if t := r.tracker; t != nil {
		r.guard(func() { f(t) })
	}
}

func (r *recording) SetLevel(level string)  { r.do(func(t *record.Tracker) { t.SetLevel(level) }) }
func (r *recording) Drop(tk *record.Ticket) { r.do(func(t *record.Tracker) { t.Drop(tk) }) }
func (r *recording) Close()                 { r.do(func(t *record.Tracker) { t.Close() }) }
func (r *recording) PendingLog() bool       { return r.tracker != nil && r.tracker.PendingLog() }
func (r *recording) InTransaction() bool    { return r.tracker != nil && r.tracker.InTransaction() }
func (r *recording) Held() int              { return r.tracker.Held() }

func (r *recording) Sending(p *rewrite.Plan) (tk *record.Ticket) {
	r.do(func(t *record.Tracker) { tk = t.Sending(p) })
	return tk
}

func (r *recording) From(tk *record.Ticket, sql string, params func() []flow.Param) {
	r.do(func(t *record.Tracker) { t.From(tk, sql, params) })
}

func (r *recording) ResetPool() { r.do((*record.Tracker).ResetPool) }

func (r *recording) Stamp(tk *record.Ticket) (stamp string) {
	r.do(func(t *record.Tracker) { stamp = t.Stamp(tk) })
	return stamp
}

func (r *recording) Answer(tk *record.Ticket) (run *record.Running) {
	r.do(func(t *record.Tracker) { run = t.Answer(tk) })
	return run
}

func (r *recording) Done(run *record.Running, res record.Result) (due []record.Warning) {
	r.do(func(t *record.Tracker) {
		t.Log(r.log, run, res)
		due = t.Done(run, res)
	})
	return due
}

// Status passes on what an answer's status flags say.
func (r *recording) Status(flags uint16) (due []record.Warning) {
	r.do(func(t *record.Tracker) {
		t.Manual = flags&statusAutocommit == 0
		due = t.Status(flags&statusInTrans != 0)
	})
	return due
}

func (r *recording) Logged(entries map[string][]history.Access, truncated bool) (due []record.Warning) {
	r.do(func(t *record.Tracker) { due = t.Logged(entries, truncated) })
	return due
}

// opaque says that the answer does not tell what the plan promised.
func (st *sentStatement) opaque(why string) {
	if st.running != nil {
		st.running.Opaque(why)
	}
}
