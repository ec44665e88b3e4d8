package trace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
)

// Digest makes the digest of a result's rows as they come: half of the SHA-256 of, for each row, the number of its values, and for each
// value 0 if it is NULL, else 1, its length and its text. Numbers are varints. So two servers that return the same values have the
// same digest, whatever protocol brought them.
type Digest struct {
	sum  hash.Hash
	room []byte
}

// Add adds a row.
func (d *Digest) Add(row []Value) {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	b := binary.AppendUvarint(d.room[:0], uint64(len(row)))
	for _, v := range row {
		if v.Null {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(v.Text)))
		b = append(b, v.Text...)
	}
	d.sum.Write(b)
	if cap(b) <= 1<<20 {
		d.room = b
	}
}

// addText adds a row of values in text form; nil is NULL.
func (d *Digest) addText(row [][]byte) {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	b := binary.AppendUvarint(d.room[:0], uint64(len(row)))
	for _, v := range row {
		if v == nil {
			b = append(b, 0)
			continue
		}
		b = append(b, 1)
		b = binary.AppendUvarint(b, uint64(len(v)))
		b = append(b, v...)
	}
	d.sum.Write(b)
	if cap(b) <= 1<<20 {
		d.room = b
	}
}

// String is the digest of the rows so far.
func (d *Digest) String() string {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	return hex.EncodeToString(d.sum.Sum(nil)[:16])
}

// keeper collects a result within bounds.
type keeper struct {
	most   int // rows
	bytes  int
	digest Digest
	result Result
	blind  bool // a row could not be seen whole, so there is no digest
}

// newKeeper begins a result of a statement that has the others already: what is kept of all of them together is bounded.
func newKeeper(o *ImportOptions, others []Result) *keeper {
	most := o.Rows
	if most == 0 {
		most = DefaultRows
	}
	k := &keeper{most: most, result: Result{Affected: Unknown, Count: Unknown}}
	if n := len(others); n > 0 {
		k.bytes = others[n-1].kept
	}
	return k
}

// maxResults are kept of one statement.
const maxResults = 1 << 14

// addResult adds a result to a statement's. Where some are left out the last one that is there is marked as not whole.
func addResult(st *Statement, r Result) {
	if len(st.Results) == maxResults {
		st.Results[maxResults-1].Partial = true
		return
	}
	st.Results = append(st.Results, r)
}

func (k *keeper) columns(c []Column) { k.result.Columns, k.result.Count = c, 0 }

// row takes a row, which may be kept; nil stands for one that was too large to look at.
func (k *keeper) row(row []Value) {
	k.result.Count = max(k.result.Count, 0) + 1
	if row == nil {
		k.blind, k.result.Partial = true, true
		return
	}
	k.digest.Add(row)
	size := 0
	for _, v := range row {
		size += len(v.Text) + 24
	}
	if k.room(size) {
		k.result.Rows = append(k.result.Rows, row)
	}
}

// text takes a row in text form, nil being NULL; it keeps nothing of it but a copy.
func (k *keeper) text(row [][]byte) {
	k.result.Count = max(k.result.Count, 0) + 1
	k.digest.addText(row)
	size := 24 * len(row)
	for _, v := range row {
		size += len(v)
	}
	if !k.room(size) {
		return
	}
	own := make([]Value, len(row))
	for i, v := range row {
		own[i] = Value{Null: v == nil, Text: string(v)}
	}
	k.result.Rows = append(k.result.Rows, own)
}

// room tells whether a row is to be kept, and makes room for it.
func (k *keeper) room(size int) bool {
	if k.result.Partial || len(k.result.Rows) >= k.most || k.bytes+size > maxRowBytes {
		k.result.Partial = true
		return false
	}
	k.bytes += size
	return true
}

// done gives the result.
func (k *keeper) done() Result {
	if k.result.Count != Unknown && !k.blind {
		k.result.Digest = k.digest.String()
	}
	k.result.kept = k.bytes
	return k.result
}

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
