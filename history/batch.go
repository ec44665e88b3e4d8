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
	list  []string
	words words
	text  text
	event Event
}

// Read gives the events of a batch to take, one after the other. What an event holds is good until take returns; its strings stay valid.
func (r *BatchReader) Read(data []byte, take func(*Event)) error {
	r.list = r.list[:0]
	rest := data
	for n := 1; len(rest) > 0; n++ {
		size, k := binary.Uvarint(rest)
		if k <= 0 || size > uint64(len(rest)-k) {
			return fmt.Errorf("record %d of the batch is cut off", n)
		}
		e := &r.event
		clear(e.Accesses)
		e.reset()
		if err := readRecord(string(rest[k:k+int(size)]), e, &r.list, &r.words, &r.text); err != nil {
			return fmt.Errorf("record %d of the batch: %w", n, err)
		}
		rest = rest[k+int(size):]
		take(e)
	}
	return nil
}

var errDamaged = errors.New("the record is damaged")

// readRecord reads an event from one record.
func readRecord(s string, e *Event, list *[]string, words *words, text *text) error {
	if s != "" && s[0] == recordJSON {
		p := parser{s: s[1:], words: words, text: text}
		return p.event(e)
	}
	b := binaryReader{s: s, list: list, words: words, text: text}
	b.event(e)
	if b.bad || b.i != len(s) {
		return errDamaged
	}
	return e.checkNumbers() // words are of our lists
}
