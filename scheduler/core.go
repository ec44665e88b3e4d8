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
	running               // its step is with the server
	gone
)

var stateNames = [...]string{"thinking", "idle", "offered", "running", "gone"}

func (s state) String() string { return stateNames[s] }

// Verdict is the kind of a Decision.
type Verdict int

const (
	// Go: the decision's step is to be let go.
	Go Verdict = iota
	// Unsettled: some session may still move by itself. Ask again when something has happened.
	Unsettled
	// Stuck: nothing is offered and some sessions wait, so only the server can end this (lock wait time-out), an idle
	// session, or nobody.
	Stuck
	// Quiet: nothing is offered, nobody moves and nobody waits: all sessions are gone or idle.
	Quiet
)

// Decision is Core's answer.
type Decision struct {
	Verdict Verdict
	Step    Step // Go: the step
	// Unsettled: Think are the sessions that may offer a step, Ask those whose step is with the server if it is not known
	// that they all wait: that is what the lock views tell.
	Think, Ask []Session
	// Stuck: the sessions that may yet end it. All lists are sorted.
	Idle []Session
}

// Core decides who goes next. It belongs to one goroutine at a time.
type Core struct {
	strategy Strategy
	sessions []member
	last     Session // whose step was let go last; -1 before the first
	round    int     // counts the steps that were let go
	blocked  bool    // every step that is with the server waits
	schedule []Event
}

type member struct {
	state state
	step  Step // offered, running: that step
	next  int  // number of the next step
	turn  int  // the round in which a step of the session was let go last
	// While the step is with the server:
	told     bool      // its EventWait is in the schedule
	waitsFor []Session // when it was last seen waiting
	blockers []Session // told: waitsFor when the schedule was last brought up to date
	// What happened since the schedule was last brought up to date:
	done, victim, left bool
	finished           Step // done: the step
	lost               Step // left: the step that was with the server, or what EventLeave says instead
}

// NewCore makes a core without sessions.
func NewCore(strategy Strategy) *Core { return &Core{strategy: strategy, last: -1} }

// Join adds a session. It is thinking.
func (c *Core) Join() Session {
	c.sessions = append(c.sessions, member{})
	return Session(len(c.sessions) - 1)
}

// Offer says that a session has a step to run. Without a name, the step is named after the session's and its own number,
// from 1: "2.1".
func (c *Core) Offer(s Session, name string) Step {
	m := c.member(s, "offers a step", thinking, idle)
	if name == "" {
		name = fmt.Sprintf("%d.%d", s+1, m.next+1)
	}
	m.step = Step{Session: s, N: m.next, Name: name}
	m.next++
	m.state = offered
	return m.step
}

// Withdraw takes the session's offer back. The session is thinking: it is awaited, as one that is about to leave must be
// until the server has let go of its locks.
func (c *Core) Withdraw(s Session) {
	m := c.member(s, "withdraws its step", offered)
	m.state = thinking
	m.next--
}

// Wait says that every step that is with the server waits, all at the same moment, and for whom as far as it is known. It
// holds until a step finishes or is let go, or a session leaves. There is no way to tell of one wait alone: it would not
// be known to last while any other step is still at work.
func (c *Core) Wait(whom map[Session][]Session) {
	for s := range c.sessions {
		_, told := whom[Session(s)]
		if is := c.sessions[s].state == running; is != told {
			panic(fmt.Sprintf("scheduler: session %d is %v, and told to wait: %v", s, c.sessions[s].state, told))
		}
	}
	for s, others := range whom {
		c.member(s, "waits", running).waitsFor = slices.Sorted(slices.Values(others))
	}
	c.blocked = true
}

// Finish says that the session's step has its whole answer. The session is thinking. victim says that the server chose it
// to break a deadlock.
func (c *Core) Finish(s Session, victim bool) {
	m := c.member(s, "finishes a step", running)
	m.state, m.done, m.victim, m.finished = thinking, true, victim, m.step
	c.blocked = false
}

// Idle says that a session has been thinking for too long. It is not awaited until it offers a step.
func (c *Core) Idle(s Session) { c.member(s, "is idle", thinking).state = idle }

// Leave says that the session is gone, whatever it was doing, and that the server has let go of its locks.
func (c *Core) Leave(s Session) {
	m := c.member(s, "leaves", thinking, idle, offered, running)
	switch m.state {
	case running:
		m.lost = m.step
	case offered:
		m.lost = Step{Session: s, N: m.next - 1}
	default:
		m.lost = Step{Session: s, N: m.next}
	}
	m.state, m.left = gone, true
	c.blocked = false
}

// Busy reports whether a step is with the server of which it is not known that it waits.
func (c *Core) Busy() bool {
	return !c.blocked && slices.ContainsFunc(c.sessions, func(m member) bool { return m.state == running })
}

// Due reports whether a step is offered, and only sessions that think may keep Next from picking one.
func (c *Core) Due() bool {
	return !c.Busy() && slices.ContainsFunc(c.sessions, func(m member) bool { return m.state == offered })
}

// IdleAll says of every session that is thinking that it is idle.
func (c *Core) IdleAll() {
	for i := range c.sessions {
		if c.sessions[i].state == thinking {
			c.sessions[i].state = idle
		}
	}
}

// Running reports whether the session's step is with the server.
func (c *Core) Running(s Session) bool { return c.sessions[s].state == running }

// Gone reports whether the session has left.
func (c *Core) Gone(s Session) bool { return c.sessions[s].state == gone }

// Thinking reports whether the session may offer a step and is awaited.
func (c *Core) Thinking(s Session) bool { return c.sessions[s].state == thinking }

// Offers reports whether the session has a step, offered or with the server.
func (c *Core) Offers(s Session) bool {
	return c.sessions[s].state == offered || c.sessions[s].state == running
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
	var think, with, away []Session
	var candidates []Step
	for i := range c.sessions {
		switch m := &c.sessions[i]; m.state {
		case thinking:
			think = append(think, Session(i))
		case running:
			with = append(with, Session(i))
		case offered:
			candidates = append(candidates, m.step)
		case idle:
			away = append(away, Session(i))
		}
	}
	waits := len(with) > 0 && c.blocked
	switch {
	case len(with) > 0 && !waits:
		return Decision{Verdict: Unsettled, Think: think, Ask: with}
	case len(think) > 0:
		return Decision{Verdict: Unsettled, Think: think}
	}
	c.settle()
	switch {
	case len(candidates) > 0:
		return Decision{Verdict: Go, Step: c.letGo(candidates[c.strategy.Pick(candidates)])}
	case waits:
		return Decision{Verdict: Stuck, Idle: away}
	}
	return Decision{Verdict: Quiet}
}

// End says that nothing more is decided. What has happened since the last decision comes into the schedule, unless a step is with the server.
func (c *Core) End() {
	if !slices.ContainsFunc(c.sessions, func(m member) bool { return m.state == running }) {
		c.settle()
	}
}

func (c *Core) letGo(step Step) Step {
	c.round++
	c.last, c.blocked = step.Session, false
	m := &c.sessions[step.Session]
	m.state, m.turn, m.told, m.waitsFor, m.blockers = running, c.round, false, nil, nil
	return step
}
