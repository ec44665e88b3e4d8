package live

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"wirecheck/fleet/stream"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// Status is what a checker knows at a moment, for those who watch it.
type Status struct {
	Findings []oracle.Finding // in the order in which they were found
	isolation.Now
	Sessions []history.Event // by which the open sessions began, in order
	Dropped  int             // events that the history lacks
	Pace     Pace
	// Publishing is what was done for other processes to judge; nil: nothing is published.
	Publishing *stream.State
	// Heard says what became of the warnings that came from who judges several proxies; of NotHeard messages nothing became, since they are none.
	Heard    stream.Heard
	NotHeard uint64
}

// maxOpen is how many open transactions a Status lists.
const maxOpen = 200

// Status says what the checker knows now. It keeps the sessions waiting for no longer than copying it takes.
func (l *Checker) Status() Status {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := Status{
		Findings: l.checker.Summary(), Now: isolation.Look(l.checker, maxOpen), Sessions: slices.Collect(maps.Values(l.open)), Dropped: l.dropped, Pace: l.pace,
		Heard: l.notices.heard, NotHeard: l.notices.wrong,
	}
	if l.publish != nil {
		s.Publishing = new(l.publish.State())
	}
	slices.SortFunc(s.Sessions, func(a, b history.Event) int { return cmp.Compare(a.Session, b.Session) })
	return s
}

// PaceBounds are the upper bounds of Pace's counts.
var PaceBounds = [...]time.Duration{
	10 * time.Microsecond, 30 * time.Microsecond, 100 * time.Microsecond, 300 * time.Microsecond, time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond,
	30 * time.Millisecond, 100 * time.Millisecond, 300 * time.Millisecond, time.Second,
}

// Pace counts for how long sessions waited for judging. Judging is the same for all sessions, so an event waits for those before it.
type Pace struct {
	Events uint64
	Waited time.Duration // for those before
	Judged time.Duration // all of it: what judging adds to the statements' time
	Most   time.Duration // of one event
	// Below counts the events that took no longer than each of PaceBounds.
	Below [len(PaceBounds)]uint64
}

// count adds an event that happened at a time, and whose judging began and ended.
func (p *Pace) count(at int64, begun, ended time.Time) {
	waited := max(0, begun.UnixNano()-at)
	whole := time.Duration(max(waited, ended.UnixNano()-at))
	p.Events++
	p.Waited += time.Duration(waited)
	p.Judged += whole
	p.Most = max(p.Most, whole)
	for i, bound := range PaceBounds {
		if whole <= bound {
			p.Below[i]++
		}
	}
}
