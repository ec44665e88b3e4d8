// Package fleet joins the histories of several proxies in front of the same databases, so that they are judged as one: anomalies between sessions
// of different proxies are found, too.
//
// Names of versions and of their writers are the server's own, or are made of the recording process's unique name, so they agree between proxies.
// Three things do not, and are taken care of here: numbers of sessions and transactions are given out again; ticks are those of one recorder's
// clock, so Recorder says whose they are; and what PostgreSQL's versions were when a proxy began (history.OrderInitial) says nothing of what another
// proxy has seen before.
package fleet

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
)

// Source is one proxy's history.
type Source struct {
	Name string
	// Next reads the next event, and gives io.EOF behind the last one. What the event holds is good until the next call.
	Next func(*history.Event) error
}

// Merged is the history of several proxies.
type Merged struct {
	sources  []*source
	recorder []int // by session, from 1
	txns     uint64
	last     *source // whose event is in use
}

// source is a Source with the event that comes next.
type source struct {
	Source
	number   int
	event    history.Event
	at       int64 // wall clock of the event, or of one before it
	ended    bool
	sessions map[uint64]session // by their own numbers
	txns     map[uint64]uint64
}

// session is one of a proxy's sessions.
type session struct {
	number uint64
	begun  bool // what was there when the proxy began counts as initial for it
}

// Merge joins histories. Each keeps its order, and between them the wall clock decides, which no verdict depends on.
func Merge(sources ...Source) *Merged {
	m := &Merged{recorder: []int{0}}
	for i, s := range sources {
		m.sources = append(m.sources, &source{Source: s, number: i, sessions: map[uint64]session{}, txns: map[uint64]uint64{}})
	}
	return m
}

// Recorder tells whose clock the ticks of a session's events are of. Ticks of different recorders cannot be compared.
func (m *Merged) Recorder(session uint64) int {
	if session >= uint64(len(m.recorder)) {
		return 0
	}
	return m.recorder[session]
}

// Next gives the next event of all, and io.EOF behind the last one. What the event holds is good until the next call.
func (m *Merged) Next(e *history.Event) error {
	ahead := m.sources
	if m.last != nil {
		ahead = []*source{m.last}
	}
	for _, s := range ahead {
		if err := s.advance(); err != nil {
			return err
		}
	}
	m.last = nil
	for _, s := range m.sources {
		if !s.ended && (m.last == nil || s.at < m.last.at) {
			m.last = s
		}
	}
	if m.last == nil {
		return io.EOF
	}
	m.renumber(m.last)
	*e = m.last.event
	return nil
}

// advance reads the next event of a source.
func (s *source) advance() error {
	if s.ended {
		return nil
	}
	err := s.Next(&s.event)
	if errors.Is(err, io.EOF) {
		s.ended = true
		return nil
	}
	s.at = max(s.at, s.event.At)
	return err
}

// renumber gives an event its numbers among all.
func (m *Merged) renumber(s *source) {
	e := &s.event
	own, known := s.sessions[e.Session]
	if !known {
		own.number = uint64(len(m.recorder))
		m.recorder = append(m.recorder, s.number)
	}
	if e.Kind == history.EventSession {
		own.begun = product.Of(e.Engine).TransactionIDs
	}
	s.sessions[e.Session] = own
	if name, ok := strings.CutSuffix(e.Request, fmt.Sprintf(" of session %d", e.Session)); ok { // told by pauses: others have that name, too
		e.Request = fmt.Sprintf("%s of session %d", name, own.number)
	}
	e.Session = own.number
	if e.Txn != 0 {
		txn := s.txns[e.Txn]
		if txn == 0 {
			m.txns++
			txn = m.txns
			s.txns[e.Txn] = txn
		}
		if e.Kind == history.EventEnd && !e.Pending {
			delete(s.txns, e.Txn)
		}
		e.Txn = txn
	}
	if !own.begun {
		return
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		a.Order, a.PrevOrder = later(a.Order), later(a.PrevOrder)
	}
}

// later is a place that holds for the versions of other proxies, too.
func later(order uint64) uint64 {
	if order == history.OrderInitial {
		return history.OrderUnknown
	}
	return order
}
