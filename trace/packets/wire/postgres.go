package wire

import (
	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// pgDecoder follows a connection in PostgreSQL's protocol (PostgreSQL manual, chapter 55, Frontend/Backend Protocol).
type pgDecoder struct {
	session
	client  pgStream
	server  pgStream
	starts  bool // the client's next message has no type
	asked   bool // the server's next byte answers a request for encryption
	sync    bool // after a gap or when joined: wait for the server to be ready
	queue   []*pgOp
	texts   map[string]*pgPrepared
	portals map[string]*pgPortal
	keep    *collector
	last    *trace.Statement // complete; ReadyForQuery tells the status after it
	cancel  bool
	cells   [][]byte // of the row that is read
}

// newPgDecoder follows a connection. One that was joined late is understood from the first request on if nothing seems to be under way.
func newPgDecoder(o *Output, c Connection) *pgDecoder {
	d := &pgDecoder{session: session{out: o}, starts: c.Whole, sync: !c.Whole && !c.Request, texts: map[string]*pgPrepared{}, portals: map[string]*pgPortal{}}
	d.Number, d.Info = c.Session, trace.Session{At: c.At, Product: "postgres", Client: c.Client, Joined: !c.Whole}
	d.Transaction.Dialect = lex.PostgreSQL
	return d
}

// FromClient takes the next bytes of the client.
func (d *pgDecoder) FromClient(b []byte, at int64) error {
	d.Seen = at
	if d.starts && len(b) > 0 && b[0] == tlsHandshake && len(d.client.buf) == 0 { // TLS without a request for it (sslnegotiation=direct)
		d.sight = encrypted
	}
	if d.sight != plain || d.cancel {
		return d.hidden()
	}
	for len(b) > 0 || len(d.client.buf) > 0 {
		if d.starts {
			msg, rest, ok := d.client.plain(b)
			if !ok {
				return nil
			}
			b = rest
			if err := d.startup(msg); err != nil {
				return err
			}
			if d.asked || d.cancel {
				return nil
			}
			continue
		}
		kind, body, rest, ok := d.client.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.request(kind, body, at); err != nil {
			return err
		}
	}
	return nil
}

func (d *pgDecoder) startup(msg []byte) error {
	c := cursor{b: msg}
	switch code := uint32(c.int32()); code {
	case 80877103, 80877104:
		d.asked = true
		return nil
	case 80877102:
		d.cancel = true
		return nil
	}
	d.starts = false
	d.Transaction.Status = answer.Idle
	for len(c.b) > 1 && !c.bad {
		key, value := c.text(), c.text()
		switch key {
		case "user":
			d.Info.User = value
		case "database":
			d.Info.Database = value
		case "application_name":
			d.Info.Application = value
		}
	}
	if d.Info.Database == "" {
		d.Info.Database = d.Info.User
	}
	return nil
}

// Encrypted says that what follows is what TLS has hidden: it begins with a startup message.
func (d *pgDecoder) Encrypted() {
	d.sight, d.asked, d.starts = plain, false, true
	d.client, d.server = pgStream{}, pgStream{}
}

// Resume follows again after a gap.
func (d *pgDecoder) Resume() { d.sync, d.starts, d.asked, d.sight = false, false, false, plain }

// FromServer takes the next bytes of the server.
func (d *pgDecoder) FromServer(b []byte, at int64) error {
	d.Seen = at
	if d.sight != plain {
		return d.hidden()
	}
	if d.asked && len(b) > 0 {
		d.asked = false
		if b[0] == 'S' || b[0] == 'G' {
			d.sight = encrypted
			return nil
		}
		if b[0] == 'N' {
			b = b[1:]
		}
	}
	for len(b) > 0 || len(d.server.buf) > 0 {
		kind, body, rest, ok := d.server.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.answer(kind, body, at); err != nil {
			return err
		}
	}
	return nil
}

// Gap gives up what is under way.
func (d *pgDecoder) Gap() error {
	d.client, d.server = pgStream{}, pgStream{}
	d.forget()
	d.keep = nil
	d.sync = true
	d.Transaction.Status = answer.Unknown
	return d.release(nil)
}

// Flush hands on what the end of the trace left open.
func (d *pgDecoder) Flush() error {
	if err := d.hidden(); err != nil {
		return err
	}
	if err := d.release(nil); err != nil {
		return err
	}
	for _, op := range d.queue {
		if op.st == nil {
			continue
		}
		d.params(op.st, op.portal)
		if err := d.release(op.st); err != nil {
			return err
		}
	}
	d.queue = nil
	if d.cancel {
		return nil
	}
	if err := d.announce(); err != nil {
		return err
	}
	return d.release(nil)
}

// Close ends the session.
func (d *pgDecoder) Close(at int64, reason string) error {
	if d.cancel {
		d.out.Sink.Other("cancel requests")
		return nil
	}
	if err := d.Flush(); err != nil {
		return err
	}
	return d.end(at, reason)
}
