package scheduler

import "slices"

// settle brings what happened since the last time into the schedule, in an order that does not depend on who was quicker:
//
//  1. the step that was let go last: that it ran, or that it waits;
//  2. the sessions that left without finishing a step;
//  3. those that had waited and were ended to break a deadlock;
//  4. the others that had waited, in the order in which they were let go.
//
// A session that left after its step had finished does so right after that. Where several had waited and were resumed at
// once, the order says nothing about which of them had its lock first: the server does not tell.
func (c *Core) settle() {
	order := c.byTurn()
	if c.last >= 0 {
		c.settleLast(&c.sessions[c.last])
	}
	for _, s := range order {
		if m := &c.sessions[s]; m.left && !m.done {
			c.leave(m)
		}
	}
	for _, s := range order {
		if m := &c.sessions[s]; m.done && m.victim {
			c.finish(EventResume, m)
		}
	}
	for _, s := range order {
		switch m := &c.sessions[s]; {
		case m.done:
			c.finish(EventResume, m)
		case m.state == running:
			m.blockers = m.waitsFor
		}
	}
}

// settleLast tells of the step that was let go last.
func (c *Core) settleLast(m *member) {
	switch {
	case m.told: // by an earlier call
	case m.state == running:
		c.wait(m, m.step, m.waitsFor)
	case !m.done:
	case c.closed(m):
		c.wait(m, m.finished, c.victims())
	default:
		c.finish(EventRun, m)
	}
}

// closed reports whether only the step that was let go last, and has finished, can have closed the circle of waits that
// cost a waiting session its step. Then that step waited, however shortly, until the victim's locks were gone. Core cannot
// see whether the step released locks instead. If it did, the sessions that waited for it went on, and any of them, the
// victim too, can have closed a circle with another one. So closed is true only if the victim alone can have gone on.
func (c *Core) closed(last *member) bool {
	victims := c.victims()
	return !last.victim && len(victims) == 1 && slices.Equal(c.freed(), victims)
}

// freed lists the waiting sessions that can have gone on since the last time: those that finished or left, those that
// waited for the step that was let go last, for a session that left, or for another one on the list, and those of which
// the server did not tell whom they waited for.
func (c *Core) freed() []Session {
	may := make([]bool, len(c.sessions)) // release locks, or go on
	for i := range c.sessions {
		m := &c.sessions[i]
		may[i] = Session(i) == c.last || m.left || m.told && (m.done || len(m.blockers) == 0)
	}
	for more := true; more; {
		more = false
		for i := range c.sessions {
			m := &c.sessions[i]
			if !may[i] && m.told && slices.ContainsFunc(m.blockers, func(s Session) bool { return may[s] }) {
				may[i], more = true, true
			}
		}
	}
	var found []Session
	for i := range c.sessions {
		if m := &c.sessions[i]; may[i] && m.told {
			found = append(found, Session(i))
		}
	}
	return found
}

// victims are the sessions that had waited and were ended to break a deadlock.
func (c *Core) victims() []Session {
	var found []Session
	for i := range c.sessions {
		if m := &c.sessions[i]; m.done && m.victim && m.told {
			found = append(found, Session(i))
		}
	}
	return found
}

// byTurn lists the sessions: the one whose step was let go last, then the others by when theirs were.
func (c *Core) byTurn() []Session {
	order := make([]Session, len(c.sessions))
	for i := range order {
		order[i] = Session(i)
	}
	slices.SortStableFunc(order, func(a, b Session) int {
		switch c.last {
		case a:
			return -1
		case b:
			return 1
		}
		return c.sessions[a].turn - c.sessions[b].turn
	})
	return order
}

func (c *Core) wait(m *member, step Step, whom []Session) {
	c.schedule = append(c.schedule, Event{Kind: EventWait, Step: step, For: whom})
	m.told = true
}

func (c *Core) finish(kind EventKind, m *member) {
	c.schedule = append(c.schedule, Event{Kind: kind, Step: m.finished})
	m.done, m.victim, m.told = false, false, false
	if m.left {
		c.leave(m)
	}
}

func (c *Core) leave(m *member) {
	c.schedule = append(c.schedule, Event{Kind: EventLeave, Step: m.lost})
	m.left = false
}

// Schedule is the schedule so far: what happened up to the last decision that was not Unsettled, or up to End. It may be read until the
// next call of a method.
func (c *Core) Schedule() []Event { return c.schedule }
