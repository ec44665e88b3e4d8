package wire

import (
	"wirecheck/trace"
	"wirecheck/trace/source"
)

// session is what the decoders of both protocols do alike.
type session struct {
	source.Session
	out     *Output
	sight   sight
	parting string // why it ends, as far as one of the sides shows it
}

// sight tells whether the bytes of a session can be read.
type sight uint8

const (
	plain     sight = iota
	encrypted       // from the next byte on
	ignored         // compressed, or a replica's stream
)

// announce hands on what became known of the session.
func (s *session) announce() error { return s.out.Sink.Session(&s.Session) }

// hidden says, once, that the session went on encrypted.
func (s *session) hidden() error {
	if s.sight != encrypted || s.Info.Encrypted {
		return nil
	}
	s.Info.Encrypted = true
	s.out.Encrypted++
	return s.announce()
}

// Reason is why the session ends.
func (s *session) Reason() string { return s.parting }

// statement makes a statement of a request.
func (s *session) statement(protocol trace.Protocol, sql string, at int64) *trace.Statement {
	return &trace.Statement{SQL: sql, Protocol: protocol, Start: at, From: s.out.Sink.Tick(), Tags: trace.ParseTags(sql, s.Transaction.Dialect)}
}

// hand hands on a statement.
func (s *session) hand(st *trace.Statement) error { return s.out.Sink.Statement(s.Number, st) }

// end hands on the end of the session.
func (s *session) end(at int64, reason string) error {
	return s.out.Sink.End(s.Number, &trace.End{At: at, Tick: s.out.Sink.Tick(), Reason: reason})
}

// lost counts a statement whose answer is not known among others.
func (s *session) lost() {
	s.out.Sink.Other("statements next to missing packets, or to where a connection was joined")
}
