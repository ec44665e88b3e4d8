package pgwire

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"wirecheck/answer"
)

// What the server refuses in the text that we made of the client's is sent again as the client wrote it, if nothing was executed since the session was
// idle: then the answer is the server's about the client's text. The client half keeps the messages of the batch (up to a Query or Sync) for that. The
// server half, which gets the refusal, sends them, while the client half waits for the client and nothing else awaits its answer. In a transaction
// block the refusal has made the transaction fail, so it is translated (see translated).

// maxBatch is how many bytes of a batch are kept.
const maxBatch = 16 << 10

// batch holds the messages that the client sent since the last Query or Sync. It belongs to the half that may send to the server, see sending.
type batch struct {
	text  []byte
	at    int  // where the current message begins, or -1 if the batch is too long
	ended bool // the next message begins another one
}

// keep keeps the message whose header was just read.
func (b *batch) keep(f frame, in *reader) error {
	if b.ended {
		b.text, b.at, b.ended = b.text[:0], 0, false
	}
	if strings.ContainsRune("QSF", rune(f.kind)) {
		b.ended = true
	}
	if b.at < 0 || len(b.text)+f.size > maxBatch || f.kind == 'd' {
		b.at = -1
		return nil
	}
	if err := in.fill(f.size); err != nil {
		return inside(err)
	}
	b.at = len(b.text)
	b.text = append(b.text, f.kind, byte((f.size+4)>>24), byte((f.size+4)>>16), byte((f.size+4)>>8), byte(f.size+4))
	b.text = append(b.text, in.buf[in.r:in.r+f.size]...)
	return nil
}

// sending says who may send to the server: the client half while it handles a message, and between two messages the server half, if it wants to.
type sending struct {
	mu      sync.Mutex // guards what follows
	changed *sync.Cond
	busy    bool // the client half handles a message
	parked  bool // and waits for the server half meanwhile, or has ended
	wanted  bool // the server half waits for its turn
	taken   bool // and has it
}

// wait waits for the client's next message, while the server half may send.
func (c *clientHalf) wait() error {
	if c.in.buffered() == 0 {
		if err := c.out.flush(); err != nil {
			return err
		}
	}
	c.pipeline.sending.setBusy(false)
	defer c.pipeline.sending.setBusy(true)
	return c.in.wait()
}

func newSending() *sending {
	s := &sending{}
	s.changed = sync.NewCond(&s.mu)
	return s
}

// setBusy says whether the client half handles a message.
func (s *sending) setBusy(busy bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for busy && (s.wanted || s.taken) {
		s.changed.Wait()
	}
	s.busy = busy
	if s.wanted {
		s.changed.Broadcast()
	}
}

// park says whether the client half waits for what only the server half, or another session, can bring.
func (s *sending) park(parked bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parked = parked
	s.changed.Broadcast()
}

// take waits until the client half has handled its message, and gives the server half the right to send. It returns false if the client half does not
// get there by itself: it waits, its client does not send the message's end, or the server does not read it.
func (s *sending) take() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	late := false
	s.wanted = true
	defer time.AfterFunc(lastMessage, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		late = true
		s.changed.Broadcast()
	}).Stop()
	for s.busy && !s.parked && !late {
		s.changed.Wait()
	}
	s.wanted, s.taken = false, !s.busy && !s.parked
	s.changed.Broadcast()
	return s.taken
}

// give ends what take began.
func (s *sending) give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken = false
	s.changed.Broadcast()
}

// sendAgain sends what follows a place in the batch once more, as the client wrote it. The server half may send; synced says that the batch has ended.
func sendAgain(c *clientHalf, at int, synced bool) error {
	if !synced { // the server ignores everything up to a Sync
		if err := c.out.message('S', nil); err != nil {
			return err
		}
	}
	plain := *c
	plain.plain = true
	plain.in = &reader{conn: c.in.conn, side: client, buf: bytes.Clone(c.batch.text[at:]), w: len(c.batch.text) - at}
	for plain.in.buffered() > 0 {
		f, err := plain.in.header(maxMessage)
		if err == nil {
			err = plain.request(f)
		}
		if err != nil {
			return err
		}
	}
	c.named = plain.named
	return c.out.flush()
}

// again sends a batch once more, from the message on that the server refused, if that is possible and right. It returns false if not: then the refusal
// is the client's.
func (a *serverHalf) again(body []byte, e *entry) (bool, error) {
	refusal := parseError(body)
	if e.at < 0 || e.script == nil || !e.script.Changed(e.client) || a.environment.hides || !aboutText(refusal) {
		return false, nil
	}
	ours := false
	a.pipeline.guard(func() { ours = ourFault(body, e, refusal.Code) })
	if (e.request == bind || e.request == describe) && !ours {
		return false, nil
	}
	if !a.pipeline.sending.take() {
		return false, nil
	}
	defer a.pipeline.sending.give()
	if a.requests.terminated {
		return false, nil
	}
	synced, ok := a.pipeline.takeBack(e)
	if !ok {
		return false, nil
	}
	if ours {
		a.environment.database.changes.Add()
	}
	a.log.Debug().Str("sqlstate", refusal.Code).Str("error", refusal.Message).Msg("refused, sent again as the client wrote it")
	a.repeated = e.notices
	return true, sendAgain(a.requests, e.at, synced)
}

// aboutText reports whether an error may be about a statement's text, and not about what it met.
func aboutText(e *answer.Error) bool {
	if ends(e) || len(e.Code) != 5 {
		return false
	}
	switch e.Code[:2] {
	case "42", "0A", "22", "54":
		return true
	}
	return false
}

// takeBack takes back what was sent since the message that the server refused, if nothing was executed in its transaction and nothing else awaits its
// answer. synced says whether the batch has ended.
func (p *pipeline) takeBack(e *entry) (synced, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lost != "" || p.status != 'I' || p.bound || e.begun || e.next > 0 || p.queue.head() != e || e.ours {
		return false, false
	}
	for i, later := range p.queue.items {
		if last := later.endsReady(); last && i < len(p.queue.items)-1 || later.more > 0 || later.ours || later.request == copyEnd {
			return false, false
		} else if last {
			synced = true
		}
	}
	for i := len(p.queue.items) - 1; i >= 0; i-- {
		old := p.queue.items[i]
		p.events.drop(old)
		old.resolved = true
		p.names.takeBack(old)
	}
	if e.request == parse && e.name == "" {
		p.names.set("", nil)
	}
	last := p.queue.items[len(p.queue.items)-1].last
	p.queue.clear()
	p.push(&entry{request: ownQuery, ours: true, own: &own{}}) // the ReadyForQuery behind the refusal
	p.open, p.ignoring = false, false
	if last { // the turn ends with the answer to what is sent again
		p.turn.ending = false
	}
	p.changed.Broadcast()
	return synced, true
}

// wait reads until something is buffered.
func (r *reader) wait() error {
	if r.buffered() > 0 {
		return nil
	}
	if err := r.read(); err != nil && r.buffered() == 0 {
		return r.failed(err, false)
	}
	return nil
}
