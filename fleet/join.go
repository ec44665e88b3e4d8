package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
)

// Join gives the sessions and transactions of several histories numbers that differ. It keeps what is open only, so it can go on for as long as proxies
// come and go. It has one owner: it is not safe for concurrent use.
type Join struct {
	names    []string         // of the members
	sessions uint64           // so many have a number
	owners   map[uint64]owner // of the sessions that are open, and of those in over
	over     []uint64         // sessions that ended with the event at hand
}

// owner says whose a session is: the number of its member, and its number there.
type owner struct {
	member int
	own    uint64
}

// NewJoin makes a Join without members.
func NewJoin() *Join { return &Join{owners: map[uint64]owner{}} }

// Recorder tells whose clock the ticks of a session's events are of: the number of its member, from 1, or 0 if the session was not open at the event at
// hand. Ticks of different recorders cannot be compared.
func (j *Join) Recorder(session uint64) int { return j.owners[session].member }

// Owner tells whose a session is: the name of its member, and the number that it has there. false: it was not open at the event at hand.
func (j *Join) Owner(session uint64) (member string, own uint64, open bool) {
	o, open := j.owners[session]
	if open {
		member = j.names[o.member-1]
	}
	return member, o.own, open
}

// Origin tells whose a transaction is: the name of its member, and the number that it has there.
func (j *Join) Origin(txn uint64) (member string, own uint64) {
	if n := txn % membersAtMost; n > 0 && n <= uint64(len(j.names)) {
		member = j.names[n-1]
	}
	return member, txn / membersAtMost
}

// Member adds one proxy's history.
func (j *Join) Member(name string) *Member {
	j.names = append(j.names, name)
	return &Member{join: j, number: len(j.names), sessions: map[uint64]*session{}}
}

// Member is one proxy's history in a Join.
type Member struct {
	join     *Join
	number   int
	sessions map[uint64]*session // that are open, by their own numbers
	// gaps counts the holes in the history so far. Behind the first one, what belongs to a transaction is left out unless its begin was there.
	gaps int
}

// session is one of a proxy's sessions.
type session struct {
	number    uint64
	announced bool
	begun     bool // what was there when the proxy began counts as initial for it
	// txns are those that began and are not told to the end, by their own numbers; false: they have ended, and something of them is still to be told.
	txns map[uint64]bool
}

// membersAtMost is for how many proxies, one after the other, transactions have numbers of their own.
const membersAtMost = 1 << 20

// txn is the number of a transaction among all. It needs no table, since a request of the application names transactions that ended long ago.
func (m *Member) txn(own uint64) uint64 { return own*membersAtMost + uint64(m.number) }

// Take gives an event its numbers among all. It reports whether the event can be judged: after a hole, that needs the begin of its transaction, and
// a session that is announced again says nothing.
func (m *Member) Take(e *history.Event) bool {
	for _, session := range m.join.over {
		delete(m.join.owners, session)
	}
	m.join.over = m.join.over[:0]
	s := m.sessions[e.Session]
	switch {
	case s == nil:
		m.join.sessions++
		s = &session{number: m.join.sessions, txns: map[uint64]bool{}}
		m.sessions[e.Session], m.join.owners[s.number] = s, owner{m.number, e.Session}
	case e.Kind == history.EventSession && s.announced:
		return false
	}
	if !s.follow(e, m.gaps > 0) {
		return false
	}
	if e.Kind == history.EventClose {
		m.forget(e.Session, s)
	}
	if name, ok := strings.CutSuffix(e.Request, fmt.Sprintf(" of session %d", e.Session)); ok { // told by pauses: others have that name, too
		e.Request = fmt.Sprintf("%s of session %d", name, s.number)
	}
	e.Session = s.number
	if e.Txn != 0 {
		e.Txn = m.txn(e.Txn)
	}
	for i := range e.Derived {
		if d := &e.Derived[i]; d.Txn != 0 {
			d.Txn = m.txn(d.Txn)
		}
	}
	if !s.begun {
		return true
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		a.Order, a.PrevOrder = later(a.Order), later(a.PrevOrder)
	}
	return true
}

// follow keeps which transactions of the session can be told further. cut says that the history has holes.
func (s *session) follow(e *history.Event, cut bool) bool {
	switch e.Kind {
	case history.EventSession:
		s.announced, s.begun = true, product.Of(e.Engine).TransactionIDs
		return true
	case history.EventBegin:
		s.txns[e.Txn] = true
		return true
	}
	if e.Txn == 0 {
		return true
	}
	open, known := s.txns[e.Txn]
	switch {
	case !known:
		return !cut
	case e.Kind == history.EventEnd && e.Pending:
		s.txns[e.Txn] = false
	case e.Kind == history.EventEnd || !open:
		delete(s.txns, e.Txn)
	}
	return true
}

func (m *Member) forget(own uint64, s *session) {
	delete(m.sessions, own)
	m.join.over = append(m.join.over, s.number)
}

// Lost says that events are missing here: what comes next rests on nothing of before. It gives the events that end the sessions, which are then
// not observed any more. Those that go on must be announced again.
func (m *Member) Lost(why string) (closes []history.Event) {
	m.gaps++
	for _, own := range slices.Sorted(maps.Keys(m.sessions)) {
		s := m.sessions[own]
		closes = append(closes, history.Event{Kind: history.EventClose, Session: s.number, Why: why})
		m.forget(own, s)
	}
	return closes
}

// later is a place that holds for the versions of other proxies, too.
func later(order uint64) uint64 {
	if order == history.OrderInitial {
		return history.OrderUnknown
	}
	return order
}
