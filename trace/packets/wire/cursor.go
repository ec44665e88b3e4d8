package wire

import "encoding/binary"

// cursor reads fields of a message, whatever is in it. Reading past the end gives zeros and makes it bad.
type cursor struct {
	b   []byte
	bad bool
}

func (c *cursor) bytes(n int) []byte {
	if n < 0 || n > len(c.b) {
		c.bad, c.b = true, nil
		return nil
	}
	v := c.b[:n]
	c.b = c.b[n:]
	return v
}

func (c *cursor) byte() byte {
	if v := c.bytes(1); v != nil {
		return v[0]
	}
	return 0
}

func (c *cursor) text() string { return string(c.untilZero()) }

// untilZero reads a string that ends with a zero byte.
func (c *cursor) untilZero() []byte {
	for i, x := range c.b {
		if x == 0 {
			v := c.b[:i]
			c.b = c.b[i+1:]
			return v
		}
	}
	c.bad, c.b = true, nil
	return nil
}

// Big endian: PostgreSQL.

func (c *cursor) int16() int {
	if v := c.bytes(2); v != nil {
		return int(int16(binary.BigEndian.Uint16(v)))
	}
	return 0
}

func (c *cursor) int32() int {
	if v := c.bytes(4); v != nil {
		return int(int32(binary.BigEndian.Uint32(v)))
	}
	return 0
}

// Little endian: the MySQL family.

func (c *cursor) little(n int) uint64 {
	var v uint64
	for i, x := range c.bytes(n) {
		v |= uint64(x) << (8 * i)
	}
	return v
}

// lenenc reads a length-encoded integer; null is the marker 0xfb.
func (c *cursor) lenenc() (v uint64, null bool) {
	switch first := c.byte(); first {
	case 0xfb:
		return 0, true
	case 0xfc:
		return c.little(2), false
	case 0xfd:
		return c.little(3), false
	case 0xfe:
		return c.little(8), false
	case 0xff:
		c.bad = true
		return 0, false
	default:
		return uint64(first), false
	}
}

func (c *cursor) lenencBytes() (v []byte, null bool) {
	n, null := c.lenenc()
	if null {
		return nil, true
	}
	if n > uint64(len(c.b)) {
		c.bad, c.b = true, nil
		return nil, false
	}
	return c.bytes(int(n)), false
}
