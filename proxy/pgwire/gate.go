package pgwire

import (
	"bytes"
	"fmt"
	"strings"
)

// gateText is how much of a statement's text a gate is told, in bytes.
const gateText = 1 << 10

// turn is a session's passing of the gate. It begins with the first message that may take locks or a snapshot (a Parse
// does both: exec_parse_message, src/backend/tcop/postgres.c), and ends with the ReadyForQuery of its batch.
type turn struct {
	active bool
	ending bool // the message that brings the ReadyForQuery was sent
	victim bool // the server chose it to break a deadlock
	never  bool // answers cannot be told apart any more: nothing is held back
}

// enter waits for the session's turn with a message that needs one, unless the session has it already. It is called by
// the goroutine that reads the client.
func (o *observing) enter(f frame) error {
	gate := o.Config.Gate
	if gate == nil || !strings.ContainsRune("QPBDEF", rune(f.kind)) {
		return nil
	}
	o.mu.Lock()
	free := o.gated.never || o.gated.active && !o.gated.ending
	o.mu.Unlock()
	if free {
		return nil
	}
	if err := o.toServer.flush(); err != nil { // what came before does not wait with us
		return err
	}
	o.mu.Lock()
	for o.gated.active && !o.ended && !o.gated.never {
		o.news.Wait()
	}
	ended, never := o.ended, o.gated.never
	o.mu.Unlock()
	switch {
	case ended:
		return errGone
	case never:
		return nil
	}
	text, err := o.gateText(f)
	if err != nil {
		return err
	}
	if err := gate.Enter(o.ctx, o.Session, text); err != nil {
		return fmt.Errorf("wait for the statement's turn: %w", err)
	}
	o.mu.Lock()
	o.gated = turn{active: true}
	o.mu.Unlock()
	return nil
}

// gateText is what a message asks for, for people: the statement, as far as it is known.
func (o *observing) gateText(f frame) (string, error) {
	b, err := o.peek(min(f.size, gateText))
	if err != nil {
		return "", err
	}
	sql := func(b []byte) string {
		begin, _, _ := bytes.Cut(b, []byte{0})
		return strings.ToValidUTF8(string(begin), "?")
	}
	first, rest, _ := bytes.Cut(b, []byte{0})
	o.mu.Lock()
	defer o.mu.Unlock()
	switch f.kind {
	case 'Q':
		return sql(b), nil
	case 'P':
		return sql(rest), nil
	case 'B':
		if p := o.statements[sql(rest)]; p != nil {
			return p.client[:min(len(p.client), gateText)], nil
		}
	case 'E':
		if p := o.portals[string(first)]; p != nil {
			return p.stmt.client[:min(len(p.stmt.client), gateText)], nil
		}
	}
	return fmt.Sprintf("message %c", f.kind), nil
}

// turnOver ends the turn if e is its last message; nil stands for a ReadyForQuery that belongs to no message. mu is held.
func (o *observing) turnOver(e *entry) {
	if !o.gated.active || e != nil && !e.last || e == nil && !o.gated.ending {
		return
	}
	victim := o.gated.victim
	o.gated = turn{}
	o.Config.Gate.Done(o.Session, victim)
	o.news.Broadcast()
}

// ungate lets everything pass from now on. mu is held.
func (o *observing) ungate() {
	if o.Config.Gate == nil || o.gated.never {
		return
	}
	o.gated = turn{never: true}
	o.Config.Gate.Left(o.Session)
	o.news.Broadcast()
}
