// Package wire decodes the two wire protocols. Its decoders take the bytes of both sides as a packet
// capture or a proxy has them: from any point on, in pieces, with gaps. They relay nothing, so they have little in common with the proxy's.
package wire

import (
	"wirecheck/trace/source"
)

// Protocol is one of the two wire protocols.
type Protocol uint8

// The wire protocols.
const (
	Unknown Protocol = iota
	Postgres
	MySQL // and its family
)

// Likelihood tells how sure it is that bytes are a message.
type Likelihood uint8

// The likelihoods.
const (
	No Likelihood = iota
	Perhaps
	Surely
)

// Opening gives the protocol whose connections begin with these bytes of the client, or of the server.
func Opening(b []byte, client bool) Protocol {
	switch {
	case !client && isGreeting(b):
		return MySQL
	case client && isStartup(b):
		return Postgres
	}
	return Unknown
}

// Request tells whether the bytes begin like a request, or surely are one or several.
func (p Protocol) Request(b []byte) Likelihood {
	switch {
	case p == Postgres && isPgRequest(b):
		return likely(certainPgRequest(b))
	case p == MySQL && isMyRequest(b):
		return likely(certainMyRequest(b))
	}
	return No
}

// Answer tells whether the bytes begin like an answer, or surely are one. Those of the MySQL family look like anything.
func (p Protocol) Answer(b []byte) Likelihood {
	if p == Postgres && isPgAnswer(b) {
		return likely(certainPgAnswer(b))
	}
	return No
}

func likely(surely bool) Likelihood {
	if surely {
		return Surely
	}
	return Perhaps
}

// EndsAnswer tells whether the bytes may be the last ones of an answer.
func (p Protocol) EndsAnswer(b []byte) bool { return p != Postgres || endsReady(b) }

// Decoder makes the statements of a session out of the bytes that its client and its server send. Times are nanoseconds since 1970.
type Decoder interface {
	// FromClient and FromServer take the next bytes of one side.
	FromClient(b []byte, at int64) error
	FromServer(b []byte, at int64) error
	// Encrypted says that TLS with the client has begun and what follows is what it has hidden.
	Encrypted()
	// Gap says that bytes of one side are missing in front of what comes next.
	Gap() error
	// Resume says, after a gap, that what follows is a request, behind everything that was answered.
	Resume()
	// Flush hands on what the end of the trace left open.
	Flush() error
	// Close ends the session. Reason is why it ends, as far as one of the sides shows it.
	Close(at int64, reason string) error
	Reason() string
}

// Connection is what is known of a connection when its first bytes come.
type Connection struct {
	Session uint64 // number
	Client  string // address
	At      int64
	Whole   bool // these are the first bytes that there were
	Request bool // else: they are a request
}

// Output takes what decoders find, and counts what they could not keep.
type Output struct {
	Sink       *source.Sink
	Encrypted  int // connections that went on encrypted
	Compressed int
	Copies     int // statements whose data was not kept
}

// NewDecoder makes the decoder of a connection.
func NewDecoder(p Protocol, o *Output, c Connection) Decoder {
	if p == MySQL {
		return newMyDecoder(o, c)
	}
	return newPgDecoder(o, c)
}
