package history

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Batch is a piece of a history in the binary form, without a header, that can be read without the pieces before it: its table of words begins anew.
// The zero value is ready. It is not safe for concurrent use.
type Batch struct {
	w    BinaryWriter
	data []byte
}

// Add appends an event.
func (b *Batch) Add(e *Event) {
	b.w.rec = b.w.append(b.w.rec[:0], e)
	b.data = appendBytes(b.data, b.w.rec)
	if cap(b.w.rec) > maxKeptLine {
		b.w.rec = nil
	}
}

// Len is the size in bytes.
func (b *Batch) Len() int { return len(b.data) }

// Take gives the batch's bytes, which are the caller's, and begins the next one.
func (b *Batch) Take() []byte {
	data := b.data
	b.data = make([]byte, 0, len(data)+len(data)/4)
	b.w.words.reset()
	return data
}

// BatchReader reads batches. It keeps strings that come again once. The zero value is ready.
type BatchReader struct {
	words words
	text  text
	rec   binaryReader
	event Event
}

// Read gives the events of a batch to take, one after the other. What an event holds is good until take returns; its strings stay valid.
func (r *BatchReader) Read(data []byte, take func(*Event)) error {
	r.rec = binaryReader{list: r.rec.list[:0], words: &r.words, text: &r.text}
	rest := data
	for n := 1; len(rest) > 0; n++ {
		size, k := binary.Uvarint(rest)
		if k <= 0 || size > uint64(len(rest)-k) {
			return fmt.Errorf("record %d of the batch is cut off", n)
		}
		e := &r.event
		clear(e.Accesses)
		e.reset()
		if err := r.rec.readRecord(string(rest[k:k+int(size)]), e); err != nil {
			return fmt.Errorf("record %d of the batch: %w", n, err)
		}
		rest = rest[k+int(size):]
		take(e)
	}
	return nil
}

var errDamaged = errors.New("the record is damaged: copy the file once more from where it was written")

// readRecord reads an event from one record.
func (r *binaryReader) readRecord(s string, e *Event) error {
	if s != "" && s[0] == recordJSON {
		p := parser{s: s[1:], words: r.words, text: r.text}
		return p.event(e)
	}
	r.s, r.i, r.bad = s, 0, false
	r.event(e)
	if r.bad || r.i != len(s) {
		return errDamaged
	}
	return e.checkNumbers() // words are of our lists
}
