package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unsafe"

	"wirecheck/history"
)

// Events of a history stand in a trace file as their JSON form (package history), but for their accesses, which are most of them and
// much alike: these are packed, each as what differs from the one before.

// Marks of a packed access. Of what has no mark, texts and numbers are empty.
const (
	accOp          = 1 << iota // the operation follows; else it is that of the access before
	accTable                   // the same for the table
	accKey                     // the key follows; else it is empty
	accSameName                // the name is made of the key as in the access before
	accName                    // the name follows
	accSameVersion             // as in the access before, also of those that follow
	accVersion
	accSameWriter
	accWriter
	accPrev
	accPrevWriter
	accOrder
	accPrevOrder
	accSameAsOf
	accAsOf
	accApprox
	accValues
	accImage
	accWas
	accEnd
)

// packer remembers the access before.
type packer struct {
	last      history.Access
	pre, post string // of the name, around the key
}

// appendAccesses packs accesses.
func appendAccesses(b []byte, all []history.Access) []byte {
	var p packer
	for i := range all {
		b = p.append(b, &all[i])
	}
	return b
}

func (p *packer) append(b []byte, a *history.Access) []byte {
	var marks uint64
	set := func(on bool, mark uint64) {
		if on {
			marks |= mark
		}
	}
	set(a.Op != p.last.Op, accOp)
	set(a.Row.Table != p.last.Row.Table, accTable)
	set(a.Row.Key != "", accKey)
	pre, post, made := around(a.Name, a.Row.Key)
	same := made && pre == p.pre && post == p.post
	set(same, accSameName)
	set(!same && a.Name != "", accName)
	set(a.Version != "" && a.Version == p.last.Version, accSameVersion)
	set(a.Version != "" && a.Version != p.last.Version, accVersion)
	set(a.Writer != "" && a.Writer == p.last.Writer, accSameWriter)
	set(a.Writer != "" && a.Writer != p.last.Writer, accWriter)
	set(a.Prev != "", accPrev)
	set(a.PrevWriter != "", accPrevWriter)
	set(a.Order != 0, accOrder)
	set(a.PrevOrder != 0, accPrevOrder)
	set(a.AsOf != 0 && a.AsOf == p.last.AsOf, accSameAsOf)
	set(a.AsOf != 0 && a.AsOf != p.last.AsOf, accAsOf)
	set(a.Approx, accApprox)
	set(a.Values != "", accValues)
	set(a.Image != "", accImage)
	set(a.Was != "", accWas)
	b = binary.AppendUvarint(b, marks)
	for _, t := range []struct {
		mark uint64
		text string
	}{
		{accOp, string(a.Op)}, {accTable, a.Row.Table}, {accKey, a.Row.Key}, {accName, a.Name}, {accVersion, a.Version}, {accWriter, a.Writer},
		{accPrev, a.Prev}, {accPrevWriter, a.PrevWriter}, {accValues, a.Values}, {accImage, a.Image}, {accWas, a.Was},
	} {
		if marks&t.mark != 0 {
			b = binary.AppendUvarint(b, uint64(len(t.text)))
			b = append(b, t.text...)
		}
	}
	for _, n := range []struct{ mark, value uint64 }{{accOrder, a.Order}, {accPrevOrder, a.PrevOrder}, {accAsOf, a.AsOf}} {
		if marks&n.mark != 0 {
			b = binary.AppendUvarint(b, n.value)
		}
	}
	p.last = *a
	if made {
		p.pre, p.post = pre, post
	}
	return b
}

// around tells what stands around the key in a row's name.
func around(name, key string) (pre, post string, ok bool) {
	if key == "" {
		return "", "", false
	}
	i := strings.LastIndex(name, key)
	if i < 0 {
		return "", "", false
	}
	return name[:i], name[i+len(key):], true
}

var errAccess = errors.New("its accesses are damaged")

// decodeAccesses reads packed accesses. Texts that repeat share memory.
func decodeAccesses(b []byte, room int) (all []history.Access, err error) {
	d := coder{b: b, room: room}
	var p packer
	for len(d.b) > 0 && d.err == nil {
		marks := d.uvarint()
		if marks >= accEnd {
			return nil, errAccess
		}
		if d.spend(int(unsafe.Sizeof(p.last))); marks&accSameName != 0 {
			d.spend(len(p.pre) + len(p.post))
		}
		a := history.Access{Op: p.last.Op, Row: history.Row{Table: p.last.Row.Table}, Approx: marks&accApprox != 0}
		if marks&accOp != 0 {
			a.Op = history.Op(d.string())
		}
		if marks&accTable != 0 {
			a.Row.Table = d.string()
		}
		a.Row.Key = d.marked(marks, accKey, 0, "")
		a.Name = d.marked(marks, accName, accSameName, p.pre+a.Row.Key+p.post)
		a.Version = d.marked(marks, accVersion, accSameVersion, p.last.Version)
		a.Writer = d.marked(marks, accWriter, accSameWriter, p.last.Writer)
		a.Prev = d.marked(marks, accPrev, 0, "")
		a.PrevWriter = d.marked(marks, accPrevWriter, 0, "")
		a.Values = d.marked(marks, accValues, 0, "")
		a.Image = d.marked(marks, accImage, 0, "")
		a.Was = d.marked(marks, accWas, 0, "")
		if marks&accOrder != 0 {
			a.Order = d.uvarint()
		}
		if marks&accPrevOrder != 0 {
			a.PrevOrder = d.uvarint()
		}
		switch {
		case marks&accSameAsOf != 0:
			a.AsOf = p.last.AsOf
		case marks&accAsOf != 0:
			a.AsOf = d.uvarint()
		}
		p.last = a
		if pre, post, ok := around(a.Name, a.Row.Key); ok {
			p.pre, p.post = pre, post
		}
		all = append(all, a)
	}
	if d.err != nil {
		return nil, fmt.Errorf("%w: %w", errAccess, d.err)
	}
	return all, nil
}

// marked gives the text of an access if marks has same, and reads one if marks has mark.
func (d *coder) marked(marks, mark, same uint64, text string) string {
	switch {
	case marks&same != 0:
		return text
	case marks&mark != 0:
		return d.string()
	}
	return ""
}

// string reads a text behind its length.
func (d *coder) string() string {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		if d.err == nil {
			d.err = errShort
		}
		return ""
	}
	s := string(d.b[:n])
	d.b = d.b[n:]
	return s
}

// event writes an event of a history, or reads the field that comes next of one.
func (c *coder) event(ev *history.Event) {
	switch {
	case c.take(fieldEvent):
		var in history.Decoder
		accesses := ev.Accesses
		c.err = in.Decode(c.read.text, ev)
		ev.Accesses = accesses
	case c.take(fieldAccesses):
		ev.Accesses, c.err = decodeAccesses(c.read.text, c.room)
	case !c.reading:
		head := *ev
		head.Accesses = nil
		c.write(fieldEvent, func() { c.b = history.AppendEvent(c.b, &head) })
		if len(ev.Accesses) > 0 {
			c.write(fieldAccesses, func() { c.b = appendAccesses(c.b, ev.Accesses) })
		}
	}
}
