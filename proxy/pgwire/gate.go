package pgwire

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"wirecheck/proxy"
	"wirecheck/proxy/relay"
)

// gateText is how much of a statement's text a gate gets, in bytes.
const gateText = 1 << 10

// turn is a session's passing of the gate. It begins with the first message that may take locks or a snapshot (a Parse
// does both: exec_parse_message, src/backend/tcop/postgres.c), and ends with the ReadyForQuery of its batch. The pipeline's mutex guards it.
type turn struct {
	gate    proxy.Gate // nil: nothing is held back
	session *proxy.Session

	active bool
	ending bool // the message that brings the ReadyForQuery was sent
	victim bool // the server chose it to break a deadlock
	never  bool // the pipeline is lost: nothing is held back
}

// sent takes note of a message that is about to be sent.
func (t *turn) sent(e *entry) {
	if t.active && e.endsReady() && !e.ours {
		e.last, t.ending = true, true
	}
}

// has reports whether the session may send without waiting.
func (t *turn) has() bool { return t.never || t.active && !t.ending }

// enter waits for the session's turn with a message that needs one, unless the session has it already.
func (c *clientHalf) enter(ctx context.Context, f frame) error {
	gate := c.session.Config.Gate
	if gate == nil || !strings.ContainsRune("QPBDEF", rune(f.kind)) {
		return nil
	}
	if free, err := c.pipeline.awaitTurn(c.out.flush); free || err != nil {
		return err
	}
	text, err := c.gateText(f)
	if err != nil {
		return err
	}
	c.pipeline.sending.park(true)
	defer c.pipeline.sending.park(false)
	entering, stop := untilHangUp(ctx, c.session.Client)
	err = gate.Enter(entering, c.session.Session, text)
	left := entering.Err() != nil && ctx.Err() == nil
	stop()
	switch {
	case left:
		return &sideError{client, "read from", io.EOF}
	case err != nil:
		return fmt.Errorf("wait for the statement's turn: %w", err)
	}
	c.pipeline.beginTurn()
	return nil
}

// untilHangUp gives a context that ends also when the client has ended its side of the connection, whatever it has sent before: its transaction must not
// hold its locks until its turn comes.
func untilHangUp(ctx context.Context, conn net.Conn) (context.Context, func()) {
	entering, cancel := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	if socket := relay.RawOf(conn); socket != nil {
		watcher.Go(func() {
			if socket.Read(relay.Ended) == nil {
				cancel()
			}
		})
	}
	return entering, func() {
		_ = conn.SetReadDeadline(past)
		watcher.Wait()
		cancel()
		_ = conn.SetReadDeadline(time.Time{})
		if ctx.Err() != nil { // the deadline that ends the session may just have been taken away
			_ = conn.SetReadDeadline(past)
		}
	}
}

// gateText is what a message asks for, for people: the statement, as far as it is known.
func (c *clientHalf) gateText(f frame) (string, error) {
	b, err := c.peek(min(f.size, gateText))
	if err != nil {
		return "", err
	}
	sql := func(b []byte) string {
		begin, _, _ := bytes.Cut(b, []byte{0})
		return strings.ToValidUTF8(string(begin), "?")
	}
	first, rest, _ := bytes.Cut(b, []byte{0})
	switch f.kind {
	case 'Q':
		return sql(b), nil
	case 'P':
		return sql(rest), nil
	case 'B':
		if p, _ := c.pipeline.statement(sql(rest)); p != nil {
			return p.client[:min(len(p.client), gateText)], nil
		}
	case 'E':
		if p := c.pipeline.portal(string(first)); p != nil {
			return p.stmt.client[:min(len(p.stmt.client), gateText)], nil
		}
	}
	return fmt.Sprintf("message %c", f.kind), nil
}

// awaitTurn waits until the session's last turn is over. It returns true if the session may send without another one. What was sent before does not
// wait with the session: flush sends it.
func (p *pipeline) awaitTurn(flush func() error) (free bool, err error) {
	p.mu.Lock()
	free = p.turn.has()
	p.mu.Unlock()
	if free {
		return true, nil
	}
	if err := flush(); err != nil {
		return false, err
	}
	err = p.await(func() bool {
		free = p.turn.never
		return free || !p.turn.active
	})
	return free, err
}

// beginTurn says that the gate has let the session go.
func (p *pipeline) beginTurn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn.never { // answers were lost meanwhile
		p.turn.gate.Left(p.turn.session)
		return
	}
	p.turn.active, p.turn.ending, p.turn.victim = true, false, false
}

// turnOver ends the turn if e is its last message; nil stands for a ReadyForQuery that belongs to no message. mu is held.
func (p *pipeline) turnOver(e *entry) {
	t := &p.turn
	if !t.active || e != nil && !e.last || e == nil && !t.ending {
		return
	}
	victim := t.victim
	t.active, t.ending, t.victim = false, false, false
	t.gate.Done(t.session, victim)
	p.changed.Broadcast()
}

// ungate lets everything pass from now on. mu is held.
func (p *pipeline) ungate() {
	t := &p.turn
	if t.gate == nil || t.never {
		return
	}
	t.active, t.ending, t.victim, t.never = false, false, false, true
	t.gate.Left(t.session)
	p.changed.Broadcast()
}
