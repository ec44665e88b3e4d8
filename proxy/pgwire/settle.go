package pgwire

import (
	"strings"

	"wirecheck/product"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
)

// What foreign keys deleted with the rows of a statement is certain if the session's next snapshot is still the same (record.Tracker.Settle). So the session
// asks for that snapshot as soon as the server has answered: outside of a transaction the server half does, while nothing else is sent; within one, where an
// error of ours must not abort it, the client half does before it handles the next message.

const snapshotQuery = "SELECT pg_catalog.pg_current_snapshot()::pg_catalog.text"

// settling says where a statement awaits a snapshot: in state status the server is ready to tell it, or it is asked already, and that is all that awaits its
// answer. status is 0 if it is not ready, or none is awaited.
func settling(p *pipeline) (status byte, asked bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.events.unsettled() && answered(p) {
		return p.status, false
	}
	return 0, len(p.queue.items) == 1 && p.queue.items[0].own != nil && p.queue.items[0].own.settles
}

// settle asks for the snapshot that statements await, outside of a transaction.
func (a *serverHalf) settle() error {
	if status, _ := settling(a.pipeline); status != 'I' {
		return nil
	}
	if err := a.out.flush(); err != nil {
		return err
	}
	if !a.pipeline.sending.take() {
		return nil
	}
	defer a.pipeline.sending.give()
	if status, _ := settling(a.pipeline); a.requests.terminated || status != 'I' {
		return nil
	}
	return a.requests.put(&own{settles: true}, snapshotQuery)
}

// tidied reports whether the server must do once more what an error kept it from, and takes that for done.
func tidied(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.untidy
	p.untidy = false
	return was
}

// settleBefore asks for it before the client's next message is handled.
func settleBefore(c *clientHalf, f frame) error {
	if c.plain || !strings.ContainsRune("QPBEFX", rune(f.kind)) {
		return nil
	}
	status, asked := settling(c.pipeline)
	if asked { // what is planned meanwhile could not be sent again
		if err := c.pipeline.await(c.pipeline.queue.empty); err != nil {
			return err
		}
		status, _ = settling(c.pipeline)
	}
	switch status {
	case 'I':
		_, err := askSnapshot(c)
		return err
	case 'T':
		_, err := within(c, true, func() (*own, error) { return askSnapshot(c) })
		return err
	}
	return nil
}

func askSnapshot(c *clientHalf) (*own, error) {
	return ask(c, []string{snapshotQuery}, func() *own { return &own{settles: true} })
}

// held plans a text once more if it can tell what foreign keys delete once their tables are locked. In the open transaction they are, at the level at which
// that is looked for; so the client's statement would lock them too, if it deletes something.
func held(c *clientHalf, s *rewrite.Script, plan func() *rewrite.Script) (*rewrite.Script, error) {
	if len(s.Plans) != 1 || s.Plans[0].Hold == "" || !holdsTables(c.pipeline) {
		return s, nil
	}
	ok, err := within(c, true, func() (*own, error) { return c.question(s.Plans[0].Hold) })
	if err != nil || !ok {
		return s, err
	}
	return plan(), nil
}

// holdsTables reports whether locks can be taken in the open transaction.
func holdsTables(p *pipeline) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status == 'T' && answered(p) && p.events.tracker != nil && record.LevelOf(p.events.tracker) == product.ReadCommitted
}
