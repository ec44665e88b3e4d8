package mysqlwire

import (
	"errors"
	"fmt"
	"io"
)

const (
	// frameMax is the longest payload of one frame; a frame of exactly this length is continued in the next one
	// (MariaDB Knowledge Base, "0-packet").
	frameMax   = 1<<24 - 1
	headerSize = 4
	// packetMax bounds what a session holds in memory of one packet that it must understand. It streams longer ones.
	packetMax = 1 << 20
)

var errTooLong = errors.New("packet is too long to be understood")

// errSequence is a frame whose sequence number is not the next one.
type errSequence struct{ got, want byte }

func (e errSequence) Error() string {
	return fmt.Sprintf("packet out of order: sequence %d, want %d", e.got, e.want)
}

// frame is the header of a frame and its first byte.
type frame struct {
	n     int
	seq   byte
	first byte // 0 if n is 0
}

// peek waits for the next frame's header, and its first byte if it has one, and uses nothing up.
func (c *conn) peek() (frame, error) {
	b, err := c.need(headerSize)
	if err != nil {
		return frame{}, err
	}
	f := frame{n: int(b[0]) | int(b[1])<<8 | int(b[2])<<16, seq: b[3]}
	if f.n > 0 {
		if b, err = c.need(headerSize + 1); err != nil {
			return frame{}, unexpected(err)
		}
		f.first = b[headerSize]
	}
	return f, nil
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// prefix waits for the first n bytes of the payload of the frame f that was peeked, or all of it, and uses nothing up.
func (c *conn) prefix(f frame, n int) ([]byte, error) {
	b, err := c.need(headerSize + min(n, f.n))
	if err != nil {
		return nil, unexpected(err)
	}
	return b[headerSize:], nil
}

// packet waits for the whole packet f, uses it up and returns its payload, which is valid until the next reading call.
// It must not be longer than packetMax.
func (c *conn) packet(f frame) ([]byte, error) {
	if f.n > packetMax {
		return nil, errTooLong
	}
	b, err := c.need(headerSize + f.n)
	if err != nil {
		return nil, unexpected(err)
	}
	c.r += headerSize + f.n
	return b[headerSize:], nil
}

// put writes one packet of at most packetMax bytes.
func (c *conn) put(seq byte, payload ...[]byte) error {
	n := 0
	for _, p := range payload {
		n += len(p)
	}
	if n >= frameMax {
		return errTooLong
	}
	if err := c.header(n, seq); err != nil {
		return err
	}
	for _, p := range payload {
		if err := c.write(p); err != nil {
			return err
		}
	}
	return nil
}

func (c *conn) header(n int, seq byte) error {
	if len(c.out)+headerSize > bufferSize {
		if err := c.send(); err != nil {
			return err
		}
	}
	c.outRoom()
	c.out = append(c.out, byte(n), byte(n>>8), byte(n>>16), seq)
	return nil
}

// relay moves one packet, all its frames, from c to dst and adds delta to the sequence numbers. It holds no more than a
// buffer of it, and returns the last sequence number that it wrote.
func (c *conn) relay(dst *conn, delta byte) (byte, error) {
	for {
		f, err := c.peek()
		if err != nil {
			return 0, err
		}
		if err := c.relayFrame(f, dst, f.seq+delta); err != nil {
			return f.seq + delta, err
		}
		if f.n < frameMax {
			return f.seq + delta, nil
		}
	}
}

// relayFrame moves the frame f, which was peeked.
func (c *conn) relayFrame(f frame, dst *conn, seq byte) error {
	if err := dst.header(f.n, seq); err != nil {
		return err
	}
	c.r += headerSize
	return c.move(f.n, dst)
}

// move moves n bytes from c to dst.
func (c *conn) move(n int, dst *conn) error {
	for n > 0 {
		if c.buffered() == 0 {
			if _, err := c.need(1); err != nil {
				return unexpected(err)
			}
		}
		k := min(n, c.buffered())
		if err := dst.write(c.in[c.r : c.r+k]); err != nil {
			return err
		}
		c.r += k
		n -= k
	}
	return nil
}
