package mysqlwire

import (
	"errors"
	"io"

	"wirecheck/proxy"
)

// relayLongRow relays a row without its hidden columns that is not held in memory. How long it is for the client must be said before its first byte, and is known
// behind its last column that the client sees: up to there the row is spooled.
func (l *link) relayLongRow(c *columns) (err error) {
	var s proxy.Spool
	defer func() { err = errors.Join(err, s.Close()) }()
	in := &payload{from: l.server, more: true}
	nulls, err := in.nulls(c, &s)
	if err != nil {
		return err
	}
	for i := range c.shown() {
		if err := in.column(c.types[i], i, nulls, &s); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, in); err != nil {
		return unexpected(err)
	}
	out := &frames{to: l, left: s.Size()}
	if err := s.CopyTo(out); err != nil {
		return err
	}
	return out.end()
}

// payload reads one packet, all its frames. It ends with io.EOF.
type payload struct {
	from *conn
	left int  // of the frame at hand
	more bool // another frame follows
}

// ready sees to it that some of the packet is buffered.
func (p *payload) ready() error {
	for p.left == 0 {
		if !p.more {
			return io.EOF
		}
		f, err := p.from.peek()
		if err != nil {
			return unexpected(err)
		}
		p.from.r += headerSize
		p.left, p.more = f.n, f.n == frameMax
	}
	_, err := p.from.need(1)
	return unexpected(err)
}

// Read implements io.Reader.
func (p *payload) Read(b []byte) (int, error) {
	if err := p.ready(); err != nil {
		return 0, err
	}
	n := copy(b, p.from.in[p.from.r:p.from.r+min(p.left, p.from.buffered())])
	p.from.r += n
	p.left -= n
	return n, nil
}

// take reads n bytes.
func (p *payload) take(n int) ([]byte, error) {
	b := make([]byte, n)
	if _, err := io.ReadFull(p, b); err != nil {
		return nil, ended(err)
	}
	return b, nil
}

// ended makes the end of a packet that was not to end there an error.
func ended(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return errMalformed
	}
	return err
}

// nulls reads a binary row's header and null bitmap, and writes those for the client.
func (p *payload) nulls(c *columns, to io.Writer) (all []byte, err error) {
	if !c.binary {
		return nil, nil
	}
	if all, err = p.take(bitmap(len(c.types))); err == nil {
		_, err = to.Write(c.appendNulls(nil, all))
	}
	return all, err
}

// column copies the i-th column. nulls are a binary row's.
func (p *payload) column(typ byte, i int, nulls []byte, to io.Writer) error {
	n, fixed := 0, false
	if nulls != nil {
		if isNull(nulls, i) {
			return nil
		}
		n, fixed = binarySize(typ)
	}
	if !fixed {
		var err error
		if n, err = p.size(nulls != nil, to); err != nil {
			return err
		}
	}
	_, err := io.CopyN(to, p, int64(n))
	return ended(err)
}

// size copies what stands in front of a value of no fixed length, and gives that length.
func (p *payload) size(binary bool, to io.Writer) (int, error) {
	head, err := p.take(1)
	if err != nil {
		return 0, err
	}
	rest, err := p.take(lenencSize(head[0]) - 1)
	if err != nil {
		return 0, err
	}
	head = append(head, rest...)
	if _, err := to.Write(head); err != nil {
		return 0, err
	}
	if head[0] == markInfo && !binary {
		return 0, nil // it is NULL
	}
	n, _, err := lenenc(head)
	if err != nil || n > 1<<40 {
		return 0, errMalformed
	}
	return int(n), nil
}

// frames writes a packet of left bytes to the client.
type frames struct {
	to   *link
	left int  // of the packet
	room int  // of the frame at hand
	last bool // the frame at hand is the last one
}

// Write implements io.Writer.
func (f *frames) Write(b []byte) (written int, err error) {
	for len(b) > 0 {
		if f.room == 0 {
			if err := f.next(); err != nil {
				return written, err
			}
		}
		n := min(len(b), f.room)
		if err := f.to.client.write(b[:n]); err != nil {
			return written, err
		}
		b, written, f.room, f.left = b[n:], written+n, f.room-n, f.left-n
	}
	return written, nil
}

func (f *frames) next() error {
	f.room = min(f.left, frameMax)
	f.last = f.room < frameMax
	err := f.to.client.header(f.room, f.to.seq)
	f.to.seq++
	return err
}

// end writes the empty frame that ends a packet of full ones, or that is an empty packet.
func (f *frames) end() error {
	if f.last {
		return nil
	}
	return f.next()
}
