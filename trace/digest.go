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
	b := d.begin(len(row))
	for _, v := range row {
		b = appendCell(b, v.Text, v.Null)
	}
	d.end(b)
}

// AddText adds a row of values in text form; nil is NULL.
func (d *Digest) AddText(row [][]byte) {
	b := d.begin(len(row))
	for _, v := range row {
		b = appendCell(b, v, v == nil)
	}
	d.end(b)
}

func (d *Digest) begin(values int) []byte {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	return binary.AppendUvarint(d.room[:0], uint64(values))
}

func (d *Digest) end(row []byte) {
	d.sum.Write(row)
	if cap(row) <= 1<<20 {
		d.room = row
	}
}

func appendCell[T string | []byte](b []byte, text T, null bool) []byte {
	if null {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// String is the digest of the rows so far.
func (d *Digest) String() string {
	if d.sum == nil {
		d.sum = sha256.New()
	}
	return hex.EncodeToString(d.sum.Sum(nil)[:16])
}
