// Package scheduler decides which session may take its next step, so that concurrent sessions meet a chosen interleaving,
// and meet it again with the same seed.
//
// Core is the deciding part: pure, without clock, goroutine or socket. It is told what the sessions do (Offer, Wait, Finish,
// Idle, Withdraw, Leave) and answers (Next) only when no session may still move by itself. So its decisions, and its schedule,
// do not depend on the order in which packets happen to arrive. Waits are believed only until any step finishes or is let
// go: then they have to be told again. The protocol of execution is that of WriteCheck (VLDB 2025), 5.3, but for its time
// limit of two seconds: who waits is asked of the server's lock views.
//
// Package scheduler/shell is the part that lives in the world: it holds callers back until Core picks them, and asks who
// waits for whom.
//
// A Strategy picks among the sessions that could go: a given order, at random, or by PCT.
package scheduler

import "strconv"

// Session is a session's number, from 0, in the order in which sessions joined.
type Session int

// Step is a statement as the scheduler sees it.
type Step struct {
	Session Session
	N       int    // counts the session's steps, from 0
	Name    string // for people and for strategies; unique within a scenario
}

// EventKind is what happened to a step.
type EventKind int

// The kinds of events in a schedule.
const (
	// EventRun: the step was let go and finished before anything else was decided.
	EventRun EventKind = iota
	// EventWait: the step was let go and waits for a lock.
	EventWait
	// EventResume: a step that waited has finished.
	EventResume
	// EventLeave: the session is gone, and with it the step that it had with the server. If it had none, the step is the
	// one that would have been next, without a name.
	EventLeave
)

// String names the kind as the script language of the tests does.
func (k EventKind) String() string {
	switch k {
	case EventRun:
		return "run"
	case EventWait:
		return "wait"
	case EventResume:
		return "resume"
	case EventLeave:
		return "leave"
	}
	return "event " + strconv.Itoa(int(k))
}

// Event is one line of the schedule as it happened.
type Event struct {
	Kind EventKind
	Step Step
	For  []Session // EventWait: whom the step waits for, as far as the server tells, sorted
}

// Strategy picks the next step. It is asked once for each decision, always with the same candidates for the same past.
type Strategy interface {
	// Pick gives the index of one of the candidates, of which there is at least one, sorted by session.
	Pick(candidates []Step) int
}
