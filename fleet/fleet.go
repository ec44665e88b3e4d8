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
	"io"

	"wirecheck/history"
)

// Source is one proxy's history.
type Source struct {
	Name string
	// Next reads the next event, and gives io.EOF behind the last one. What the event holds is good until the next call.
	Next func(*history.Event) error
}

// Merged is the history of several proxies.
type Merged struct {
	join    *Join
	sources []*source
	last    *source // whose event is in use
}

// source is a Source with the event that comes next.
type source struct {
	Source
	member *Member
	event  history.Event
	at     int64 // wall clock of the event, or of one before it
	ended  bool
}

// Merge joins histories. Each keeps its order, and between them the wall clock decides, which no verdict depends on.
func Merge(sources ...Source) *Merged {
	m := &Merged{join: NewJoin()}
	for _, s := range sources {
		m.sources = append(m.sources, &source{Source: s, member: m.join.Member(s.Name)})
	}
	return m
}

// Recorder is Join.Recorder.
func (m *Merged) Recorder(session uint64) int { return m.join.Recorder(session) }

// Origin is Join.Origin. The members have the sources' names.
func (m *Merged) Origin(txn uint64) (source string, own uint64) { return m.join.Origin(txn) }

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
	if !m.last.member.Take(&m.last.event) {
		return m.Next(e)
	}
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
