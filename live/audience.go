package live

import (
	"slices"
	"time"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/proxy/record"
	"wirecheck/report"
)

// audience decides which sessions hear of a finding, and when: each session that takes part and the one that completed it. The latter hears of it
// at once, the others at their next answers. A session hears the whole of a finding once, and shortly that it is there again.
type audience struct {
	clock    func() time.Time
	others   bool // all sessions may see what others do
	sessions map[uint64]*hearer
}

// hearer is one session.
type hearer struct {
	reader  report.Reader
	heard   map[string]int   // ids, and how often the session heard of them since from
	from    time.Time        // when the period began
	told    int              // warnings in the period
	waiting []record.Warning // for its next answer
}

// The limits for a session. What is beyond them is in the report only.
const (
	period    = time.Minute
	mostOfOne = 5    // warnings of one finding in a period
	mostOfAll = 20   // warnings in a period
	mostHeard = 1000 // findings that are remembered
	mostWaits = mostOfAll
)

func newAudience(o *Options) *audience {
	a := &audience{clock: o.Clock, others: o.ShowOthers, sessions: map[uint64]*hearer{}}
	if a.clock == nil {
		a.clock = func() time.Time { return o.Now }
	}
	return a
}

// event takes note of sessions that begin and end.
func (a *audience) event(ev *history.Event) {
	switch ev.Kind {
	case history.EventSession:
		a.sessions[ev.Session] = &hearer{reader: report.Reader{Session: ev.Session, Engine: ev.Engine, User: ev.User, Others: a.others || ev.Superuser}, heard: map[string]int{}}
	case history.EventClose:
		delete(a.sessions, ev.Session)
	}
}

// found makes the warnings of a finding. They wait for their sessions' next answers.
func (a *audience) found(f oracle.Finding) {
	parties := []uint64{f.Session}
	for i := range f.Transactions {
		if s := f.Transactions[i].Session; !slices.Contains(parties, s) {
			parties = append(parties, s)
		}
	}
	for _, session := range parties {
		if h := a.sessions[session]; h != nil {
			h.hear(f, a.clock())
		}
	}
}

// due are the warnings for a session's answer.
func (a *audience) due(session uint64) (due []record.Warning) {
	if h := a.sessions[session]; h != nil {
		due, h.waiting = h.waiting, nil
	}
	return due
}

func (h *hearer) hear(f oracle.Finding, now time.Time) {
	if now.Sub(h.from) >= period {
		h.from, h.told = now, 0
		for id := range h.heard {
			h.heard[id] = 0
		}
	}
	times, before := h.heard[f.ID]
	if times >= mostOfOne || h.told >= mostOfAll || len(h.waiting) >= mostWaits || !before && len(h.heard) >= mostHeard {
		return
	}
	h.told++
	h.heard[f.ID]++
	w := report.Warning
	if before {
		w = report.Again
	}
	h.waiting = append(h.waiting, record.Warning(w(f, h.reader)))
}
