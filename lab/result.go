package lab

import (
	"slices"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
)

// Result is what the execution of one permutation did.
type Result struct {
	Permutation *scenario.Permutation
	// Setup are the answers of the setup blocks and the sessions' setups, Teardown those of the teardowns, in order.
	Setup, Teardown []Output
	Events          []Event
	Finals          []answer.Answer // of the scenario's final queries
	Invariants      []Reading       // of Config.Invariants, in their order; empty where the case was not begun
	Tables          []answer.Table  // all tables at the end, before the teardown
	// Heard are the notices of the steps as they arrived.
	Heard []Heard
	// Trouble says why the case could not be executed to its end: the server is gone, or it stood still. What had happened
	// until then is there; nothing can be concluded from what had not.
	Trouble error
	// Marks say why another run may go differently, see shell.Shell.Marks.
	Marks []string
	// Backends are the server's numbers of the sessions, as lock views and histories have them.
	Backends []uint64
	// Crashed and Hung are Trouble's fate (FateOf); both are false after a time-out.
	Crashed, Hung bool
	// Silent is the step that has no answer, if the server hangs in one.
	Silent *scenario.Step
}

// Session finds the session that the server knows by a number; -1 if it is none of the scenario's.
func (r *Result) Session(backend uint64) int { return slices.Index(r.Backends, backend) }

// Heard is a notice with the moment of its arrival.
type Heard struct {
	Session int
	// Launched is how many steps had been submitted when it arrived. All that arrives before the next step is submitted is
	// in the order of each session, but not of the sessions among one another.
	Launched int
	Notice   answer.Notice
}

// Output is what a block outside of the schedule brought back.
type Output struct {
	Session int // -1: the connection that executes setup and teardown
	SQL     string
	Answer  answer.Answer
}

// EventKind is what happened to a step.
type EventKind string

// The kinds of events.
const (
	Ran     EventKind = "ran"     // it was submitted and finished
	Waits   EventKind = "waits"   // it was submitted and waits for a lock
	Resumed EventKind = "resumed" // it had waited and has finished
	Skipped EventKind = "skipped" // it was not submitted, see Event.Why
)

// Event is one line of the schedule as it happened.
type Event struct {
	Kind    EventKind
	Place   int // in the permutation's steps
	Step    *scenario.Step
	Wait    engine.WaitKind // Waits: what for
	For     []int           // Waits: the sessions that it waits for, as far as the server tells
	Answer  answer.Answer   // Ran, Resumed
	Outcome answer.Outcome  // Ran, Resumed
	Why     string          // Skipped
	// Lost says that the step's connection ended with it, because somebody asked the server to end it: the other sessions
	// go on.
	Lost bool
}
