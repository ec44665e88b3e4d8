package pgwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
	"wirecheck/rewrite"
)

// passBuffer is the size of the buffers in pass mode, that of io.Copy.
const passBuffer = 1 << 15

// passing is a session in pass mode. Bytes are copied; the walkers look at the headers that fly by only to know when the
// session is idle, which is when it can be ended politely.
type passing struct {
	*session
	requests walker // of what the client sends

	mu          sync.Mutex // guards what follows
	answers     walker     // of what the server sends
	outstanding int        // requests that end with a ReadyForQuery and have not had it
	open        bool       // messages of the extended protocol were sent since the last of these
	idle        bool       // the last ReadyForQuery said that no transaction is open
	draining    bool
	gone        bool // the client's connection is broken
	leaving     bool // nothing more goes to the server

	changes *rewrite.Changes // of the schema, which observed sessions rely on; nil: there are none
	changed bool             // this session has changed the schema in a transaction that is still open
}

// pass hands the session to a relay if both connections are plain sockets, and else copies with two goroutines.
func (s *session) pass() error {
	p := &passing{session: s, idle: true}
	if s.observer != nil {
		p.changes = &s.observer.at(databaseKey{s.Config.Upstream.String(), s.startup.database()}).changes
	}
	fromClient, fromServer := s.fromClient.rest(), s.fromServer.rest()
	s.fromClient, s.toClient, s.fromServer, s.toServer = nil, nil, nil, nil // most sessions are idle: they hold no buffer
	end, ok := s.relays.Run(s.ctx, relay.Pair{
		Client: s.client, Server: s.server, FromClient: fromClient, FromServer: fromServer,
		Watcher: p, Draining: s.Draining, ToServer: -1, ToClient: -1,
	})
	if ok {
		return p.relayed(end)
	}
	return p.copy(fromClient, fromServer)
}

// relayed ends a session that a relay has served.
func (p *passing) relayed(end relay.End) (err error) {
	switch end.Cause {
	case relay.ServerEnded:
		if end.Err != nil {
			err = &sideError{server, "read from", end.Err}
		}
	case relay.ClientBroke:
		err = &sideError{client, "read from", end.Err}
		if end.Writing {
			err = &sideError{client, "write to", end.Err}
		}
	case relay.Left, relay.Stopped:
		p.leaving = true
	default:
		err = end.Err
	}
	if end.Client == nil {
		return err
	}
	p.relayedClient = end.Client
	defer end.Client.Close() // there is nothing to lose behind the last words
	if len(end.Unsent) > 0 {
		_ = end.Client.SetWriteDeadline(time.Now().Add(lastMessage)) // a connection that is broken fails below
		if _, e := end.Client.Write(end.Unsent); e != nil {
			return err
		}
	}
	return p.finish(err)
}

// copy copies with a goroutine for each direction.
func (p *passing) copy(fromClient, fromServer []byte) error {
	var g errgroup.Group
	ended := make(chan struct{})
	g.Go(func() error {
		err := proxy.Catch(func() error { return p.forward(fromClient) })
		p.mu.Lock()
		p.gone = err != nil
		p.mu.Unlock()
		return p.clientEnded(err)
	})
	g.Go(func() error {
		defer close(ended)
		return p.serverEnded(proxy.Catch(func() error { return p.backward(fromServer) }))
	})
	g.Go(func() error {
		select {
		case <-ended:
		case <-p.Draining:
			p.mu.Lock()
			p.draining = true
			p.mu.Unlock()
			_ = p.server.SetReadDeadline(past) // wakes backward, which then looks whether it may leave
		}
		return nil
	})
	return p.finish(g.Wait())
}

// finish sends the client the reason why the session ended, if there is one of ours and a place to put it. A server that ends a connection, or gets a message of
// a wrong length, says nothing either.
func (p *passing) finish(err error) error {
	var defect *proxy.PanicError
	switch {
	case !p.answers.between():
	case errors.As(err, &defect):
		p.fatal(brokenHere(defect))
	case p.leaving && (p.draining || p.ctx.Err() != nil): // ctx may end before Draining is noticed
		p.fatal(shuttingDown())
	}
	return err
}

// forward copies from the client to the server. first came together with the last authentication message.
func (p *passing) forward(first []byte) error {
	buf := make([]byte, passBuffer)
	n := copy(buf, first)
	for {
		if n > 0 {
			if ok, err := p.sending(buf[:n]); !ok {
				return err
			}
			if _, err := p.server.Write(buf[:n]); err != nil {
				return &sideError{server, "write to", err}
			}
		}
		k, err := p.client.Read(buf)
		if k == 0 && err != nil {
			return endOf(client, err)
		}
		n = k
	}
}

// sending counts the requests in b. It returns false if b must not be sent.
func (p *passing) sending(b []byte) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.leaving {
		return false, nil
	}
	p.requests.walk(b, func(kind byte, _ []byte) {
		switch kind {
		case 'Q', 'S', 'F':
			p.outstanding++
			p.open = false
		case 'P', 'B', 'D', 'E', 'C':
			p.open = true
		}
	})
	if p.requests.lost {
		return false, fmt.Errorf("read from client: %w", errLength)
	}
	return true, nil
}

// backward copies from the server to the client.
func (p *passing) backward(first []byte) error {
	buf := make([]byte, passBuffer)
	n := copy(buf, first)
	for {
		if n > 0 {
			p.Answer(buf[:n])
			if _, err := p.client.Write(buf[:n]); err != nil {
				return &sideError{client, "write to", err}
			}
			if p.leave(false) {
				return nil
			}
		}
		k, err := p.server.Read(buf)
		n = k
		if k > 0 || err == nil {
			continue
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return endOf(server, err)
		}
		if err := p.server.SetReadDeadline(noTime); err != nil {
			return fmt.Errorf("set deadline: %w", err)
		}
		// The context is asked after its deadline was taken away, so that it is not missed.
		if must := p.ctx.Err() != nil || p.stopped(); p.leave(must) {
			return nil
		}
	}
}

// Request implements relay.Watcher.
func (p *passing) Request(b []byte) error {
	_, err := p.sending(b)
	return err
}

// Answer implements relay.Watcher. It takes note of each ReadyForQuery, and of what changes the schema.
func (p *passing) Answer(b []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answers.walk(b, func(kind byte, body []byte) {
		switch {
		case kind == 'Z':
			p.outstanding = max(p.outstanding-1, 0)
			p.idle = len(body) > 0 && body[0] == 'I'
			if p.changed { // others see it from the end of the transaction on
				p.changes.Add()
				p.changed = !p.idle
			}
		case kind == 'C' && p.changes != nil && mayChangeSchema(body):
			p.changed = true
		}
	})
}

// Leave implements relay.Watcher.
func (p *passing) Leave() bool {
	p.mu.Lock()
	p.draining = true
	p.mu.Unlock()
	return p.leave(false)
}

// stopped reports whether the client's connection is broken.
func (p *passing) stopped() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// mayChangeSchema reads the tag of a CommandComplete, as far as it has come: CREATE, ALTER, DROP, DO, CALL, GRANT, REVOKE and the like may
// change what a catalog says. CREATE TABLE AS answers as SELECT does, but a new table is asked for when a statement names it.
func mayChangeSchema(tag []byte) bool {
	if len(tag) < 3 {
		return true
	}
	switch string(tag[:3]) {
	case "SEL", "INS", "UPD", "DEL", "MER", "BEG", "STA", "COM", "ROL", "SAV", "REL", "SET", "SHO", "RES", "FET", "MOV", "CLO", "DEC", "DEA", "DIS", "PRE",
		"COP", "EXP", "LOC", "LIS", "NOT", "UNL", "ANA", "VAC", "CHE", "TRU":
		return false
	}
	return true
}

// leave decides whether the session ends here: if it must, or if it should and is idle between two messages.
func (p *passing) leave(must bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.leaving = must || p.draining && p.idle && !p.open && p.outstanding == 0 && p.answers.between()
	return p.leaving
}

// endOf makes the end of a connection no error.
func endOf(s side, err error) error {
	e := quiet(err)
	if e == nil {
		return nil
	}
	return &sideError{s, "read from", e}
}

// walker follows the headers in a stream of messages, in whatever pieces they come.
type walker struct {
	head [headerLen]byte // as far as it came
	have int
	rest int  // bytes of the present message that are still to come
	lost bool // a length made no sense
}

// between reports whether the stream stands between two messages.
func (w *walker) between() bool { return !w.lost && w.have == 0 && w.rest == 0 }

// walk calls see with the kind of each message that begins in b, and with its body as far as b has it: at least a byte if there is one.
func (w *walker) walk(b []byte, see func(kind byte, body []byte)) {
	for len(b) > 0 && !w.lost {
		if w.rest > 0 {
			k := min(w.rest, len(b))
			b, w.rest = b[k:], w.rest-k
			continue
		}
		if w.have < headerLen {
			k := copy(w.head[w.have:], b)
			w.have += k
			b = b[k:]
			if w.have < headerLen {
				return
			}
		}
		size := binary.BigEndian.Uint32(w.head[1:])
		switch {
		case size < 4 || size > maxMessage+4:
			w.lost = true
			return
		case size > 4 && len(b) == 0:
			return
		}
		w.rest, w.have = int(size)-4, 0
		see(w.head[0], b[:min(w.rest, len(b))])
	}
}
