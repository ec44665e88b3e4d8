package scheduler

import (
	"fmt"
	"slices"
)

// state is what Core knows of a session.
type state int

const (
	thinking state = iota // may offer a step by itself
	idle                  // has been thinking for too long: it is not awaited any more
	offered               // holds a step that may be let go
	running               // its step is with the server, and may finish by itself
	waiting               // its step waits for another session
	stale                 // waited when it was last asked, and a step has finished since
	gone
)

var stateNames = [...]string{"thinking", "idle", "offered", "running", "waiting", "stale", "gone"}

func (s state) String() string { return stateNames[s] }

// Verdict is the kind of a Decision.
type Verdict int

const (
	// Go: the decision's step is to be let go.
	Go Verdict = iota
	// Unsettled: some session may still move by itself. Ask again when something has happened.
	Unsettled
	// Stuck: every session that is left waits, so only the server can end this (lock wait time-out), or nobody.
	Stuck
	// Quiet: nothing is offered, nobody moves and nobody waits: all sessions are gone or idle.
	Quiet
)

// Decision is Core's answer.
type Decision struct {
	Verdict Verdict
	Step    Step // Go: the step
	// Unsettled: Think are the sessions that may offer a step, Ask those whose step is with the server: whether they wait
	// is what the lock views tell. Both are sorted.
	Think, Ask []Session
}

// Core decides who goes next. It belongs to one goroutine at a time.
type Core struct {
	strategy Strategy
	sessions []member
	round    int // counts decisions
	trace    []Event
}

type member struct {
	state state
	step  Step // offered, running, waiting, stale
	next  int  // number of the next step
	since int  // waiting, stale: the decision that let the step go
	told  bool // the step's EventWait is in the trace
	// What happened since the last decision and is not in the trace yet.
	done, victim, left bool
	waitsFor           []Session
	finished           Step
}

// NewCore makes a core without sessions.
func NewCore(strategy Strategy) *Core { return &Core{strategy: strategy} }

// Join adds a session. It is thinking.
func (c *Core) Join() Session {
	c.sessions = append(c.sessions, member{})
	return Session(len(c.sessions) - 1)
}

// Offer says that a session has a step to run. The name is the step's; empty gives it one.
func (c *Core) Offer(s Session, name string) Step {
	m := c.member(s, "offers a step", thinking, idle)
	m.step = Step{Session: s, N: m.next, Name: name}
	m.next++
	m.state = offered
	return m.step
}

// Wait says that the session's step waits for others. It holds until any step finishes or a session leaves.
func (c *Core) Wait(s Session, whom []Session) {
	m := c.member(s, "waits", running, stale)
	m.state = waiting
	m.waitsFor = slices.Clone(whom)
	slices.Sort(m.waitsFor)
}

// Finish says that the session's step has its whole answer. The session is thinking. victim says that the server chose it
// to break a deadlock.
func (c *Core) Finish(s Session, victim bool) {
	m := c.member(s, "finishes a step", running, waiting, stale)
	m.state, m.done, m.victim, m.finished = thinking, true, victim, m.step
	c.doubt()
}

// Idle says that a session has been thinking for too long. It is not awaited until it offers a step.
func (c *Core) Idle(s Session) { c.member(s, "is idle", thinking).state = idle }

// Leave says that the session is gone, whatever it was doing.
func (c *Core) Leave(s Session) {
	m := c.member(s, "leaves", thinking, idle, offered, running, waiting, stale)
	m.state, m.left = gone, true
	c.doubt()
}

// doubt makes every wait a question again.
func (c *Core) doubt() {
	for i := range c.sessions {
		if m := &c.sessions[i]; m.state == waiting {
			m.state = stale
		}
	}
}

// Running reports whether the session's step is with the server.
func (c *Core) Running(s Session) bool {
	st := c.sessions[s].state
	return st == running || st == waiting || st == stale
}

// Gone reports whether the session has left.
func (c *Core) Gone(s Session) bool { return c.sessions[s].state == gone }

// Thinking reports whether the session may offer a step and is awaited.
func (c *Core) Thinking(s Session) bool { return c.sessions[s].state == thinking }

// Asked reports whether it is not known that the session's step waits.
func (c *Core) Asked(s Session) bool {
	st := c.sessions[s].state
	return st == running || st == stale
}

// member finds the session and panics if it is in none of the states: the shell has lost track, and a schedule that is
// wrong would be worse than none.
func (c *Core) member(s Session, does string, in ...state) *member {
	if s < 0 || int(s) >= len(c.sessions) {
		panic(fmt.Sprintf("scheduler: session %d %s, but there are only %d", s, does, len(c.sessions)))
	}
	m := &c.sessions[s]
	if !slices.Contains(in, m.state) {
		panic(fmt.Sprintf("scheduler: session %d %s while it is %v", s, does, m.state))
	}
	return m
}

// Next decides. A step that is to go is running from then on.
func (c *Core) Next() Decision {
	var d Decision
	var candidates []Step
	waits := false
	for i := range c.sessions {
		switch m := &c.sessions[i]; m.state {
		case thinking:
			d.Think = append(d.Think, Session(i))
		case running, stale:
			d.Ask = append(d.Ask, Session(i))
		case offered:
			candidates = append(candidates, m.step)
		case waiting:
			waits = true
		}
	}
	if len(d.Think)+len(d.Ask) > 0 {
		d.Verdict = Unsettled
		return d
	}
	c.settle()
	switch {
	case len(candidates) > 0:
		pick := c.strategy.Pick(candidates)
		d.Verdict, d.Step = Go, candidates[pick]
		m := &c.sessions[d.Step.Session]
		c.round++
		m.state, m.since, m.told, m.waitsFor = running, c.round, false, nil
	case waits:
		d.Verdict = Stuck
	default:
		d.Verdict = Quiet
	}
	return d
}

// settle brings what happened since the last decision into the trace, in an order that does not depend on who was
// quicker: the step that was let go, then those that had waited, in the order in which they were let go, then who left.
// If one of those was the victim of a deadlock, the step that was let go has closed the circle: it waited, however
// shortly, until the victim's locks were gone.
func (c *Core) settle() {
	order, victims := c.byTurn(), c.victims()
	for _, s := range order {
		m := &c.sessions[s]
		switch {
		case m.done && m.victim && m.told:
			c.emit(EventResume, m)
		case m.done && !m.told && !m.victim && len(victims) > 0:
			c.trace = append(c.trace, Event{Kind: EventWait, Step: m.finished, For: victims})
			m.told = true
		case m.state == waiting && !m.told:
			c.trace = append(c.trace, Event{Kind: EventWait, Step: m.step, For: m.waitsFor})
			m.told = true
		case m.done && !m.told:
			c.emit(EventRun, m)
		}
	}
	for _, s := range order {
		if m := &c.sessions[s]; m.done {
			c.emit(EventResume, m)
		}
	}
	for _, s := range order {
		if m := &c.sessions[s]; m.left {
			c.trace = append(c.trace, Event{Kind: EventLeave, Step: Step{Session: s, N: m.next}})
			m.left = false
		}
	}
}

// byTurn lists the sessions: the one whose step was let go last, then the others by when theirs were.
func (c *Core) byTurn() []Session {
	order := make([]Session, len(c.sessions))
	for i := range order {
		order[i] = Session(i)
	}
	slices.SortStableFunc(order, func(a, b Session) int {
		last, lastB := c.sessions[a].since == c.round, c.sessions[b].since == c.round
		switch {
		case last && !lastB:
			return -1
		case lastB && !last:
			return 1
		}
		return c.sessions[a].since - c.sessions[b].since
	})
	return order
}

// victims are the sessions whose steps had waited and were ended to break a deadlock.
func (c *Core) victims() []Session {
	var found []Session
	for i := range c.sessions {
		if m := &c.sessions[i]; m.done && m.victim && m.told {
			found = append(found, Session(i))
		}
	}
	return found
}

func (c *Core) emit(kind EventKind, m *member) {
	c.trace = append(c.trace, Event{Kind: kind, Step: m.finished})
	m.done, m.victim, m.told = false, false, false
}

// Trace is the schedule so far: what happened up to the last decision that was not Unsettled. It may be read until the
// next call of a method.
func (c *Core) Trace() []Event { return c.trace }
