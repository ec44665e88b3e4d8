// Package toy is a lock server for tests of the scheduler: exclusive row locks, first come first served, kept until the end
// of the transaction, and a deadlock detector. It is pure and moves one small step at a time, always the same way, so that a
// test can stop it anywhere.
package toy

import (
	"fmt"
	"slices"
	"strings"
)

// Verb is what a step does.
type Verb byte

// The verbs.
const (
	Lock   Verb = 'l' // lock the rows one after the other, and keep them
	Auto   Verb = 'a' // the same, and let go of everything at the end: an autocommit statement
	Swap   Verb = 's' // let go of the first row, then lock the others: as with advisory locks
	Commit Verb = 'c' // let go of everything
)

var verbs = map[string]Verb{"lock": Lock, "auto": Auto, "swap": Swap, "commit": Commit}

// Step is what a session asks for. Rows are numbers from 0.
type Step struct {
	Verb Verb
	Rows []int
}

// Parse reads the steps of one session: "lock a b; commit". Rows are letters.
func Parse(text string) ([]Step, error) {
	var steps []Step
	for part := range strings.SplitSeq(text, ";") {
		words := strings.Fields(part)
		if len(words) == 0 {
			continue
		}
		verb, ok := verbs[words[0]]
		if !ok {
			return nil, fmt.Errorf("no verb %q in %q", words[0], text)
		}
		st := Step{Verb: verb}
		for _, row := range words[1:] {
			if len(row) != 1 || row[0] < 'a' || row[0] > 'z' {
				return nil, fmt.Errorf("row %q in %q is not one letter", row, text)
			}
			st.Rows = append(st.Rows, int(row[0]-'a'))
		}
		steps = append(steps, st)
	}
	return steps, nil
}

// String is what Parse reads.
func (st Step) String() string {
	var b strings.Builder
	for name, verb := range verbs {
		if verb == st.Verb {
			b.WriteString(name)
		}
	}
	for _, row := range st.Rows {
		fmt.Fprintf(&b, " %c", 'a'+row)
	}
	return b.String()
}

// Policy says who must go when a circle of waits is found.
type Policy int

// The policies.
const (
	Closer Policy = iota // who began to wait last
	First                // who began to wait first
)

type state byte

const (
	idle     state = iota
	ready          // can go on
	blocked        // waits for the next row
	answered       // the answer has not been taken yet
)

type session struct {
	state  state
	step   Step
	at     int // the row of the step that is next
	since  int // blocked: when that began
	victim bool
}

type row struct {
	owner int // -1: nobody
	queue []int
}

// Server is the lock server.
type Server struct {
	policy   Policy
	sessions []session
	rows     []row
	ready    []int // who goes on, in this order
	waits    int   // counts the waits so far
}

// NewServer makes a server without locks. Rows come into being when they are locked first.
func NewServer(sessions int, policy Policy) *Server {
	return &Server{policy: policy, sessions: make([]session, sessions)}
}

// Clone copies the server.
func (sv *Server) Clone() *Server {
	c := *sv
	c.sessions, c.ready, c.rows = slices.Clone(sv.sessions), slices.Clone(sv.ready), slices.Clone(sv.rows)
	for i := range c.rows {
		c.rows[i].queue = slices.Clone(c.rows[i].queue)
	}
	return &c
}

// Key is the same for servers that will go on the same way.
func (sv *Server) Key() string {
	b := make([]byte, 0, 64)
	for i, ss := range sv.sessions {
		b = append(b, byte(ss.state), byte(ss.at), sv.rank(i))
		if ss.victim {
			b = append(b, 'v')
		}
	}
	for _, r := range sv.rows {
		b = append(b, 'r', byte(r.owner))
		for _, s := range r.queue {
			b = append(b, byte(s))
		}
	}
	b = append(b, '!')
	for _, s := range sv.ready {
		b = append(b, byte(s))
	}
	return string(b)
}

// rank is the session's place among those that are blocked, by when that began.
func (sv *Server) rank(s int) (n byte) {
	if sv.sessions[s].state != blocked {
		return 0
	}
	for _, other := range sv.sessions {
		if other.state == blocked && other.since <= sv.sessions[s].since {
			n++
		}
	}
	return n
}

// Submit begins a session's step.
func (sv *Server) Submit(s int, st Step) {
	ss := &sv.sessions[s]
	if ss.state != idle {
		panic(fmt.Sprintf("session %d is not idle", s))
	}
	*ss = session{state: ready, step: st}
	sv.ready = append(sv.ready, s)
}

// Tick takes the next small step, and reports whether there was one.
func (sv *Server) Tick() bool {
	if len(sv.ready) == 0 {
		return sv.breakCircle()
	}
	s := sv.ready[0]
	sv.ready = sv.ready[1:]
	ss := &sv.sessions[s]
	switch {
	case ss.step.Verb == Swap && ss.at == 0 && len(ss.step.Rows) > 0:
		if r := sv.row(ss.step.Rows[0]); r.owner == s {
			sv.release(r)
		}
		ss.at++
		sv.ready = append(sv.ready, s)
	case ss.at < len(ss.step.Rows):
		sv.lock(s, sv.row(ss.step.Rows[ss.at]))
	default:
		sv.answer(s, false)
	}
	return true
}

func (sv *Server) row(n int) *row {
	for len(sv.rows) <= n {
		sv.rows = append(sv.rows, row{owner: -1})
	}
	return &sv.rows[n]
}

func (sv *Server) lock(s int, r *row) {
	ss := &sv.sessions[s]
	if r.owner >= 0 && r.owner != s {
		sv.waits++
		ss.state, ss.since = blocked, sv.waits
		r.queue = append(r.queue, s)
		return
	}
	r.owner = s
	ss.at++
	sv.ready = append(sv.ready, s)
}

// release gives the row to the first in its queue.
func (sv *Server) release(r *row) {
	r.owner = -1
	if len(r.queue) == 0 {
		return
	}
	r.owner, r.queue = r.queue[0], slices.Clone(r.queue[1:])
	ss := &sv.sessions[r.owner]
	ss.state = ready
	ss.at++
	sv.ready = append(sv.ready, r.owner)
}

func (sv *Server) answer(s int, victim bool) {
	ss := &sv.sessions[s]
	ss.state, ss.victim = answered, victim
	if ss.step.Verb == Auto || ss.step.Verb == Commit || victim {
		sv.rollback(s)
	}
}

// rollback lets go of all that the session holds and waits for.
func (sv *Server) rollback(s int) {
	for i := range sv.rows {
		r := &sv.rows[i]
		r.queue = slices.DeleteFunc(slices.Clone(r.queue), func(other int) bool { return other == s })
		if r.owner == s {
			sv.release(r)
		}
	}
}

// Disconnect ends the session, whatever it was doing.
func (sv *Server) Disconnect(s int) {
	sv.ready = slices.DeleteFunc(slices.Clone(sv.ready), func(other int) bool { return other == s })
	sv.sessions[s] = session{}
	sv.rollback(s)
}

// TimeOut ends a wait for a row: the step fails, and the session keeps what it holds.
func (sv *Server) TimeOut(s int) {
	ss := &sv.sessions[s]
	r := sv.row(ss.step.Rows[ss.at])
	r.queue = slices.DeleteFunc(slices.Clone(r.queue), func(other int) bool { return other == s })
	ss.state = answered
}

// Answer takes the answer to the session's step, if there is one.
func (sv *Server) Answer(s int) (victim, ok bool) {
	ss := &sv.sessions[s]
	if ss.state != answered {
		return false, false
	}
	victim = ss.victim
	*ss = session{}
	return victim, true
}

// Answered reports whether there is an answer to the session's step.
func (sv *Server) Answered(s int) bool { return sv.sessions[s].state == answered }

// WaitsFor gives those who must let go before the session can go on: the row's owner and who stands before the session in
// the queue. There are none if it does not wait.
func (sv *Server) WaitsFor(s int) []int {
	ss := sv.sessions[s]
	if ss.state != blocked {
		return nil
	}
	r := sv.rows[ss.step.Rows[ss.at]]
	return append([]int{r.owner}, r.queue[:slices.Index(r.queue, s)]...)
}

// InCircle reports whether the session waits for itself.
func (sv *Server) InCircle(s int) bool {
	seen := make([]bool, len(sv.sessions))
	todo := sv.WaitsFor(s)
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if next == s {
			return true
		}
		if !seen[next] {
			seen[next] = true
			todo = append(todo, sv.WaitsFor(next)...)
		}
	}
	return false
}

// breakCircle ends the step of a session that waits for itself.
func (sv *Server) breakCircle() bool {
	victim := -1
	for s := range sv.sessions {
		if !sv.InCircle(s) {
			continue
		}
		if victim < 0 || (sv.policy == Closer) == (sv.sessions[s].since > sv.sessions[victim].since) {
			victim = s
		}
	}
	if victim < 0 {
		return false
	}
	sv.answer(victim, true)
	return true
}
