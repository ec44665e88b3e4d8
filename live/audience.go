package live

import (
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/proxy/record"
	"wirecheck/report"
)

// audience decides which sessions hear of a finding, and when: each session that takes part and the one that completed it. The latter hears of it
// at once, the others at their next answers. A session hears the whole of the first finding of a group, and shortly of the others and that
// one is there again.
type audience struct {
	clock    func() time.Time
	others   bool // all sessions may see what others do
	sessions map[uint64]*hearer
	waiting  atomic.Int64 // warnings that wait, of all sessions
}

// hearer is one session.
type hearer struct {
	reader  report.Reader
	groups  map[string]string // of each finding that was heard, by its id: the first finding of its group
	parts   map[string]string // the same by what findings of a group have in common
	heard   map[string]int    // groups, and how often the session heard of them since from
	from    time.Time         // when the period began
	told    int               // warnings in the period
	waiting []record.Warning  // for its next answer
	// occurrences are the last findings with those of the session's transactions that took part: who judges several proxies tells of them, too.
	occurrences []string
}

// The limits for a session. What is beyond them is in the report only.
const (
	period    = time.Minute
	mostOfOne = 5    // warnings of one group in a period
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
		a.sessions[ev.Session] = &hearer{reader: report.Reader{Session: ev.Session, Engine: ev.Engine, User: ev.User, Others: a.others || ev.Superuser}, heard: map[string]int{}, groups: map[string]string{}, parts: map[string]string{}}
	case history.EventClose:
		a.due(ev.Session)
		delete(a.sessions, ev.Session)
	}
}

// found makes the warnings of a finding. They wait for their sessions' next answers.
func (a *audience) found(f oracle.Finding) {
	for _, session := range f.Parties() {
		if h := a.sessions[session]; h != nil {
			h.news(&f, session)
			a.waiting.Add(h.hear(f, session, a.clock()))
		}
	}
}

// tell makes the warning of a finding between proxies, which has another number for the session. What the session has heard it does not hear again.
// tell reports whether the session is open.
func (a *audience) tell(f oracle.Finding, session, as uint64) bool {
	h := a.sessions[session]
	if h != nil && h.news(&f, as) {
		a.waiting.Add(h.hear(f, as, a.clock()))
	}
	return h != nil
}

// due are the warnings for a session's answer.
func (a *audience) due(session uint64) (due []record.Warning) {
	if h := a.sessions[session]; h != nil {
		due, h.waiting = h.waiting, nil
		a.waiting.Add(-int64(len(due)))
	}
	return due
}

// news reports whether the session, whose number in the finding is as, has not heard of it with these transactions of its own. It remembers that it has.
func (h *hearer) news(f *oracle.Finding, as uint64) bool {
	var own []uint64
	for i := range f.Transactions {
		switch x := &f.Transactions[i]; {
		case x.Session != as:
		case x.Proxy != "":
			own = append(own, x.Number)
		default:
			own = append(own, x.ID)
		}
	}
	slices.Sort(own)
	occurrence := fmt.Sprint(f.ID, own)
	if slices.Contains(h.occurrences, occurrence) {
		return false
	}
	if h.occurrences = append(h.occurrences, occurrence); len(h.occurrences) > mostHeard {
		h.occurrences = h.occurrences[1:]
	}
	return true
}

// hear keeps the warning of a finding, in which the session's number is as, for the session's next answer. It says how many more wait.
func (h *hearer) hear(f oracle.Finding, as uint64, now time.Time) (more int64) {
	if now.Sub(h.from) >= period {
		h.from, h.told = now, 0
		for id := range h.heard {
			h.heard[id] = 0
		}
	}
	group, known := h.groups[f.ID]
	var parts []string
	if !known {
		group, parts = h.group(&f)
	}
	times, before := h.heard[group]
	if times >= mostOfOne || h.told >= mostOfAll || len(h.waiting) >= mostWaits || !known && len(h.groups) >= mostHeard {
		return 0
	}
	reader := h.reader
	reader.Session = as
	h.told++
	h.heard[group]++
	h.groups[f.ID] = group
	for _, part := range parts {
		h.parts[part] = group
	}
	var w report.Wire
	switch {
	case known:
		w = report.Again(f, reader)
	case before:
		w = report.Variant(f, reader, group)
	default:
		w = report.Warning(f, reader)
	}
	h.waiting = append(h.waiting, record.Warning(w))
	return 1
}

// group finds the group of a finding that the session has not heard of, and what names it: findings of one kind and name with a statement in common
// are of one group, as in oracle.Groups.
func (h *hearer) group(f *oracle.Finding) (group string, parts []string) {
	group = f.ID
	for _, shape := range f.Shapes() {
		part := string(f.Kind) + "\x00" + f.Title() + "\x00" + shape
		if parts = append(parts, part); h.parts[part] != "" {
			group = h.parts[part]
		}
	}
	return group, parts
}
