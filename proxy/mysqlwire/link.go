package mysqlwire

import (
	"errors"
	"fmt"
)

// link is the two connections of a session, with what client and server agreed upon.
type link struct {
	client, server *conn
	caps           uint64 // the capabilities that client and server agreed upon
	seq            byte   // of the next packet to the client
	left           bool   // the client has said, or shown, that it leaves: nobody waits for it any more
	// sources are what the column definitions relayed last say of tables, if wantSources was set.
	sources     []source
	wantSources bool
}

// errServer is an error of the server's connection while the client waits for an answer.
type errServer struct{ err error }

func (e *errServer) Error() string { return "the server's connection: " + e.err.Error() }
func (e *errServer) Unwrap() error { return e.err }

// errClient is an error of the client's connection while it is sent an answer.
type errClient struct{ err error }

func (e *errClient) Error() string { return "send to the client: " + e.err.Error() }
func (e *errClient) Unwrap() error { return e.err }

// flush writes out what waits in either direction. It runs before every read that may block: so no peer waits for bytes
// that we hold, and what belongs together leaves in one write.
func (l *link) flush() error {
	if err := l.server.send(); err != nil {
		return fmt.Errorf("send to the server: %w", err)
	}
	if err := l.client.send(); err != nil {
		return &errClient{err}
	}
	return nil
}

// nextPacket waits for the next packet of an answer. It watches the client meanwhile: if the client leaves, the session ends. A client that has
// left, as all do at once behind COM_QUIT, is not watched: the session still fetches its log.
func (l *link) nextPacket() (frame, error) {
	var err error
	if !l.left {
		err = l.server.await(l.client, false)
	}
	var f frame
	if err == nil || errors.Is(err, errInterrupted) {
		f, err = l.server.peek()
	}
	if err != nil {
		return f, whileReadingServer(err)
	}
	return f, nil
}

// whileReadingServer says whose error ended a wait for the server: ours with the server, unless the client left.
func whileReadingServer(err error) error {
	var other *otherError
	var client *errClient
	if errors.As(err, &other) || errors.As(err, &client) {
		return err
	}
	return &errServer{err}
}

// take uses up a packet that is short by its nature. The payload is valid until the next read.
func (l *link) take(f frame) ([]byte, error) {
	b, err := l.server.packet(f)
	if err != nil {
		return nil, whileReadingServer(err)
	}
	return b, nil
}

// takeNext waits for the next packet and uses it up.
func (l *link) takeNext() ([]byte, error) {
	f, err := l.nextPacket()
	if err != nil {
		return nil, err
	}
	return l.take(f)
}

// pass relays one packet as it is, with the client's next sequence number.
func (l *link) pass(f frame) error {
	seq, err := l.server.relay(l.client, l.seq-f.seq)
	l.seq = seq + 1
	return err
}

// passNext waits for the next packet and relays it as it is.
func (l *link) passNext() error {
	f, err := l.nextPacket()
	if err != nil {
		return err
	}
	return l.pass(f)
}

// relayCommand relays the client's command as it is. The answer's first sequence number follows the command's last one.
func (l *link) relayCommand() error {
	f, err := l.client.peek()
	if err != nil {
		return err
	}
	last, err := l.client.relay(l.server, -f.seq) // which is 0 but with compression, see compressed
	l.seq = last + 1
	return err
}

// toClient writes one frame with the next sequence number.
func (l *link) toClient(payload []byte) error {
	if err := l.client.header(len(payload), l.seq); err != nil {
		return err
	}
	l.seq++
	return l.client.write(payload)
}

// toClientFrames writes a packet of any length.
func (l *link) toClientFrames(payload []byte) error {
	for len(payload) >= frameMax {
		if err := l.toClient(payload[:frameMax]); err != nil {
			return err
		}
		payload = payload[frameMax:]
	}
	return l.toClient(payload)
}

// has reports whether client and server agreed upon a capability.
func (l *link) has(capability uint64) bool { return l.caps&capability != 0 }

// endsRows reports whether f is not a row but the end of the rows: EOF, an OK in its place, or an error. A row whose first
// column has 16 MiB or more begins like an EOF, but its packet has more than one frame.
func (l *link) endsRows(f frame) bool {
	switch f.first {
	case markERR:
		return f.n > 0
	case markEOF:
		return f.n < packetEOF || l.has(deprecateEOF) && f.n < frameMax
	}
	return false
}
