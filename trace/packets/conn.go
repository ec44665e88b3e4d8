package packets

import (
	"net/netip"
	"slices"

	"wirecheck/trace"
	"wirecheck/trace/packets/wire"
)

// conn is a TCP connection: it puts the segments of both directions into order and finds out who speaks what.
type conn struct {
	log     *pcapLog
	key     connKey
	client  netip.AddrPort // not valid: not known yet
	whole   bool           // seen from its beginning
	spoke   bool
	half    [2]half      // by whether the sender is key.b
	decoder wire.Decoder // nil: the protocol is not known yet
	tries   int
	ignored bool // of no interest
	seen    int64
}

// half is one direction of a connection.
type half struct {
	next    uint32 // sequence number
	known   bool
	done    bool // FIN
	waiting []early
	size    int
}

// early is a segment that came too early.
type early struct {
	seq  uint32
	at   int64
	data []byte
}

// Bounds of what waits for a missing segment.
const (
	maxHeld      = 1024
	maxHeldBytes = 4 << 20
)

// repeated tells whether a SYN is the one that opened the connection, sent once more.
func (c *conn) repeated(s *segment) bool {
	h := &c.half[c.side(s.from)]
	return h.known && !c.spoke && h.next == s.seq+1
}

func (c *conn) side(from netip.AddrPort) int {
	if from == c.key.b {
		return 1
	}
	return 0
}

func (c *conn) segment(s *segment) error {
	c.seen = s.at
	side := c.side(s.from)
	h := &c.half[side]
	if s.syn {
		h.next, h.known = s.seq+1, true
	}
	if s.ack && c.missed(1-side, s) {
		if err := c.jump(1 - side); err != nil {
			return err
		}
	}
	if len(s.data) > 0 {
		if err := c.take(side, s.seq, s.at, s.data); err != nil {
			return err
		}
		if s.missing > 0 && h.next == s.seq+uint32(len(s.data)) {
			if err := c.skip(side, h.next+uint32(s.missing)); err != nil {
				return err
			}
		}
	}
	switch {
	case s.reset:
		return c.log.close(c, s.at, trace.EndLost)
	case s.end && len(h.waiting) == 0:
		h.done = true
		if c.half[0].done && c.half[1].done {
			return c.log.close(c, s.at, trace.EndQuit)
		}
	}
	return nil
}

// patience is how long a segment that the other side has acknowledged may be missing. Packet captures put packets out of order, but not by that much.
const patience = 100_000_000

// missed tells whether a segment of a side that is missing was received, so that the packet capture has lost it.
func (c *conn) missed(side int, s *segment) bool {
	h := &c.half[side]
	return len(h.waiting) > 0 && int32(s.acked-h.next) > 0 && s.at-h.waiting[0].at > patience
}

// drain takes what still waits when nothing more is to come.
func (c *conn) drain() error {
	for side := range c.half {
		for len(c.half[side].waiting) > 0 {
			if err := c.jump(side); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes a segment's data: it is new, partly known, or too early.
func (c *conn) take(side int, seq uint32, at int64, data []byte) error {
	h := &c.half[side]
	if !h.known {
		h.next, h.known = seq, true
	}
	ahead := int32(seq - h.next)
	switch {
	case ahead > 0:
		if ahead > 1<<30 {
			return nil
		}
		h.waiting = append(h.waiting, early{seq, at, slices.Clone(data)})
		h.size += len(data)
		if len(h.waiting) > maxHeld || h.size > maxHeldBytes {
			return c.jump(side)
		}
		return nil
	case int(-ahead) >= len(data):
		return nil // sent again
	}
	data = data[-ahead:]
	h.next += uint32(len(data))
	if err := c.bytes(side, data, at); err != nil {
		return err
	}
	return c.release(side)
}

// release takes what waited and fits now.
func (c *conn) release(side int) error {
	h := &c.half[side]
	for i := 0; i < len(h.waiting); i++ {
		w := h.waiting[i]
		if int32(w.seq-h.next) > 0 {
			continue
		}
		h.waiting = slices.Delete(h.waiting, i, i+1)
		h.size -= len(w.data)
		return c.take(side, w.seq, w.at, w.data)
	}
	return nil
}

// jump gives a missing segment up.
func (c *conn) jump(side int) error {
	h := &c.half[side]
	first := h.waiting[0].seq
	for _, w := range h.waiting[1:] {
		if int32(w.seq-first) < 0 {
			first = w.seq
		}
	}
	return c.skip(side, first)
}

func (c *conn) skip(side int, to uint32) error {
	c.half[side].next = to
	c.log.gaps++
	if c.decoder != nil {
		if err := c.decoder.Gap(); err != nil {
			return err
		}
	}
	return c.release(side)
}

// maxTries is how many segments are looked at until a connection is taken to be of no interest.
const maxTries = 64

// bytes takes the next bytes of one side.
func (c *conn) bytes(side int, data []byte, at int64) error {
	c.spoke = true
	if c.ignored {
		return nil
	}
	from, to := c.key.a, c.key.b
	if side == 1 {
		from, to = to, from
	}
	if c.decoder == nil {
		c.recognise(from, to, data, at)
		if c.decoder == nil {
			c.tries++
			c.ignored = c.tries >= maxTries
			return nil
		}
	}
	if from == c.client {
		return c.decoder.FromClient(data, at)
	}
	return c.decoder.FromServer(data, at)
}

// recognise finds out what a connection is from the first bytes of one side. One that was seen from its beginning shows it: a server of the
// MySQL family speaks first, PostgreSQL's client does. In a connection that was joined late the data must begin like a message.
func (c *conn) recognise(from, to netip.AddrPort, data []byte, at int64) {
	var p wire.Protocol
	switch {
	case c.whole:
		if p = wire.Opening(data, from == c.client); p == wire.Unknown && c.tries > 0 {
			p = c.guess(from, to, data)
		}
	default:
		p = c.guess(from, to, data)
	}
	if p == wire.Unknown {
		return
	}
	server := c.key.a
	if c.client == c.key.a {
		server = c.key.b
	}
	c.log.servers[server] = p
	c.decoder = wire.NewDecoder(p, &c.log.output, wire.Connection{
		Session: c.log.output.Sink.NewSession(), Client: c.client.String(), At: at, Whole: c.whole && c.tries == 0, Request: from == c.client,
	})
}

// guess recognises a connection that was joined late.
func (c *conn) guess(from, to netip.AddrPort, data []byte) wire.Protocol {
	port := func(a netip.AddrPort, p wire.Protocol) bool {
		return c.log.usual(a) == p || c.log.servers[a] == wire.Unknown && slices.Contains(c.log.output.Sink.Options.Ports, int(a.Port()))
	}
	for _, p := range []wire.Protocol{wire.Postgres, wire.MySQL} {
		client := netip.AddrPort{}
		switch request, answer := p.Request(data), p.Answer(data); {
		case request != wire.No && !port(from, p) && (port(to, p) || request == wire.Surely):
			client = from
		case answer != wire.No && (port(from, p) || answer == wire.Surely):
			client = to
		default:
			continue
		}
		if c.client.IsValid() && c.client != client {
			return wire.Unknown
		}
		c.client = client
		return p
	}
	return wire.Unknown
}
