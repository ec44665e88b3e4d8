package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"unsafe"

	"wirecheck/answer"
	"wirecheck/history"
)

// A record in a block is its length, then its kind, its session and its fields. A field is a number (its id shifted left by one, plus 1 if
// bytes follow rather than a number), then the number, or a length and the bytes. Fields with zero values are left out, so most
// records are little more than their text. A list is a field that is repeated; its elements are written the same way.
//
// One method of coder for each kind of record and each part of one lists the fields, for writing and for reading: written are those that
// are not zero, in the method's order; read is the field that comes next, whichever it is.

// The fields, for all kinds; the numbers are the format and never change.
const (
	fieldAt = iota + 1
	fieldTick
	fieldProduct
	fieldVersion
	fieldUser
	fieldDatabase
	fieldApplication
	fieldClient
	fieldBackend
	fieldLevel
	fieldFlags
	fieldSQL
	fieldPrepared
	fieldName
	fieldProtocol
	fieldParam
	fieldStart
	fieldEnd // as a difference to the start, if there is one
	fieldFrom
	fieldTo
	fieldBefore
	fieldAfter
	fieldTxn
	fieldXID
	fieldResult
	fieldError
	fieldTag
	fieldTable
	fieldState
	fieldTook
	fieldLock
	fieldFor
	fieldReason
	fieldValue
	fieldType
	fieldAffected // plus one: 0 is not known
	fieldCount    // plus one
	fieldColumn
	fieldRow
	fieldDigest
	fieldKey
	fieldCode
	fieldSQLState
	fieldMessage
	fieldCommand
	fieldID
	fieldEvent
	fieldText
	fieldAccesses
	lastField
)

// Flags of records and their parts.
const (
	flagJoined = 1 << iota
	flagEncrypted
	flagLost
	flagNoParams
	flagLate
	flagNull
	flagBinary
	flagPartial
	flagWrite
	flagHistoryEnds
)

// coder writes a record's fields behind b, or reads them from b.
type coder struct {
	b   []byte
	err error // of reading
	// read is the field that is read; its id is 0 while fields are written, and once it has been taken.
	read    field
	reading bool
	room    int // for what is still read: a few bytes may stand for much
}

// maxUnpacked is how much memory the parts of a record may take. What wirecheck writes takes less.
const maxUnpacked = 32 * maxRecord

// spend takes room for something that is read.
func (c *coder) spend(n int) {
	if c.room -= n; c.room < 0 && c.err == nil {
		c.err = errors.New("its parts would take more than 2 GiB: no wirecheck wrote it")
	}
}

// field is a field of a record or of a part of one: a number, or bytes, which are the coder's own.
type field struct {
	id   int
	v    uint64
	text []byte
}

var errShort = errors.New("it ends in the middle of a field")

// appendRecord appends a record without its length. base is the time from which its times count.
func appendRecord(b []byte, r *Record, base int64) []byte {
	c := coder{b: append(b, byte(r.Kind))}
	c.b = binary.AppendUvarint(c.b, r.Session)
	c.record(r, base)
	return c.b
}

// decodeRecord reads a record that appendRecord wrote. It keeps nothing of b.
func decodeRecord(b []byte, r *Record, base int64) error {
	if len(b) == 0 {
		return errShort
	}
	*r = Record{Kind: Kind(b[0])}
	c := coder{b: b[1:], reading: true, room: maxUnpacked}
	r.Session = c.uvarint()
	switch r.Kind {
	case KindSession:
		r.Open = &Session{}
	case KindStatement:
		r.Statement = &Statement{}
	case KindWait:
		r.Wait = &Wait{}
	case KindEnd:
		r.End = &End{}
	case KindHistory:
		r.History = &history.Event{}
	case KindNote:
		r.Note = &Note{}
	default:
		return fmt.Errorf("it is of kind %d, which this version does not know: use a newer wirecheck", r.Kind)
	}
	for c.next() {
		c.record(r, base)
		c.left()
	}
	if r.Kind == KindHistory && c.err == nil {
		c.err = r.History.Check()
	}
	return c.err
}

// next reads the next field.
func (c *coder) next() bool {
	if len(c.b) == 0 || c.err != nil {
		return false
	}
	head, v := c.uvarint(), c.uvarint()
	switch {
	case c.err != nil:
		return false
	case head>>1 == 0 || head>>1 >= lastField:
		c.err = fmt.Errorf("it has a field %d that this version does not know: use a newer wirecheck", head>>1)
		return false
	case head&1 == 0:
		c.read = field{id: int(head >> 1), v: v}
		return true
	case v > uint64(len(c.b)):
		c.err = errShort
		return false
	}
	c.read = field{id: int(head >> 1), text: c.b[:v:v]}
	c.b = c.b[v:]
	return true
}

// left notes a field that nothing has taken: it does not belong here.
func (c *coder) left() {
	if c.read.id != 0 && c.err == nil {
		c.err = fmt.Errorf("field %d stands where it does not belong", c.read.id)
	}
}

// take reports whether the field that is read has that id, and takes it.
func (c *coder) take(id int) bool {
	if c.read.id != id {
		return false
	}
	c.read.id = 0
	return true
}

func (c *coder) uvarint() uint64 {
	v, n := binary.Uvarint(c.b)
	if n <= 0 {
		if c.err == nil {
			c.err = errShort
		}
		return 0
	}
	c.b = c.b[n:]
	return v
}

// number is a number. Zero is left out.
func number[N ~uint8 | ~uint64](c *coder, id int, n *N) {
	switch {
	case c.take(id):
		*n = N(c.read.v)
	case !c.reading && *n != 0:
		c.b = binary.AppendUvarint(c.b, uint64(id)<<1)
		c.b = binary.AppendUvarint(c.b, uint64(*n))
	}
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func (c *coder) signed(id int, v *int64) {
	n := zigzag(*v)
	number(c, id, &n)
	*v = unzigzag(n)
}

// count is a number of which Unknown is left out.
func (c *coder) count(id int, v *int64) {
	n := uint64(*v + 1)
	number(c, id, &n)
	*v = int64(n - 1)
}

// when is a time, as a difference to base. A time that is not known is left out; one that equals base is written as one, by the bit that
// all differences carry.
func (c *coder) when(id int, at *int64, base int64) {
	n := zigzag(*at-base) + 1
	if *at == 0 {
		n = 0
	}
	if number(c, id, &n); n != 0 {
		*at = base + unzigzag(n-1)
	}
}

// flag is one of the flags that share a field.
type flag struct {
	bit uint64
	on  *bool
}

func (c *coder) flags(all ...flag) {
	var v uint64
	for _, f := range all {
		if *f.on {
			v |= f.bit
		}
	}
	number(c, fieldFlags, &v)
	for _, f := range all {
		*f.on = v&f.bit != 0
	}
}

// text is a text. An empty one is left out.
func (c *coder) text(id int, s *string) {
	switch {
	case c.take(id):
		*s = string(c.read.text)
	case !c.reading && *s != "":
		c.b = binary.AppendUvarint(c.b, uint64(id)<<1|1)
		c.b = binary.AppendUvarint(c.b, uint64(len(*s)))
		c.b = append(c.b, *s...)
	}
}

// write writes a field's bytes, also if there are none.
func (c *coder) write(id int, content func()) {
	c.b = binary.AppendUvarint(c.b, uint64(id)<<1|1)
	at := len(c.b)
	content()
	// The length goes in front of what was written; parts are small, so moving them costs little.
	var n [binary.MaxVarintLen64]byte
	l := binary.PutUvarint(n[:], uint64(len(c.b)-at))
	c.b = append(c.b, n[:l]...)
	copy(c.b[at+l:], c.b[at:len(c.b)-l])
	copy(c.b[at:], n[:l])
}

// part is a part of a record, which has fields of its own. What is wrong with them is wrong with the record.
func part[T any](c *coder, id int, p *T, fields func(*coder, *T)) {
	switch {
	case c.take(id):
		rest := c.b
		c.b = c.read.text
		for c.next() {
			fields(c, p)
			c.left()
		}
		c.b = rest
	case !c.reading:
		c.write(id, func() { fields(c, p) })
	}
}

// list is a part that is repeated. An element is empty before its fields are read.
func list[T any](c *coder, id int, all *[]T, empty T, fields func(*coder, *T)) {
	if c.reading {
		if c.read.id != id {
			return
		}
		if c.spend(int(unsafe.Sizeof(empty))); c.err != nil {
			return
		}
		*all = append(*all, empty)
		part(c, id, &(*all)[len(*all)-1], fields)
		return
	}
	for i := range *all {
		part(c, id, &(*all)[i], fields)
	}
}

func (c *coder) record(r *Record, base int64) {
	switch r.Kind {
	case KindSession:
		c.session(r.Open, base)
	case KindStatement:
		c.statement(r.Statement, base)
	case KindWait:
		w := r.Wait
		c.when(fieldAt, &w.At, base)
		number(c, fieldTick, &w.Tick)
		number(c, fieldState, &w.State)
		c.signed(fieldTook, &w.Took)
		c.text(fieldLock, &w.Lock)
		if c.take(fieldFor) {
			w.For = append(w.For, c.read.v)
		}
		for i := range w.For {
			number(c, fieldFor, &w.For[i])
		}
	case KindEnd:
		c.when(fieldAt, &r.End.At, base)
		number(c, fieldTick, &r.End.Tick)
		c.text(fieldReason, &r.End.Reason)
	case KindHistory:
		c.event(r.History)
	case KindNote:
		c.when(fieldAt, &r.Note.At, base)
		c.text(fieldText, &r.Note.Text)
		c.flags(flag{flagHistoryEnds, &r.Note.HistoryEnds})
	}
}

func (c *coder) session(s *Session, base int64) {
	c.when(fieldAt, &s.At, base)
	c.flags(flag{flagJoined, &s.Joined}, flag{flagEncrypted, &s.Encrypted})
	c.text(fieldProduct, &s.Product)
	c.text(fieldVersion, &s.Version)
	c.text(fieldUser, &s.User)
	c.text(fieldDatabase, &s.Database)
	c.text(fieldApplication, &s.Application)
	c.text(fieldClient, &s.Client)
	c.text(fieldBackend, &s.Backend)
	c.text(fieldLevel, &s.Level)
}

func (c *coder) statement(s *Statement, base int64) {
	c.when(fieldStart, &s.Start, base)
	if s.Start != 0 {
		base = s.Start
	}
	c.when(fieldEnd, &s.End, base)
	c.signed(fieldTook, &s.Took)
	number(c, fieldFrom, &s.From)
	number(c, fieldTo, &s.To)
	number(c, fieldID, &s.ID)
	c.flags(flag{flagLost, &s.Lost}, flag{flagNoParams, &s.NoParams}, flag{flagLate, &s.Late})
	number(c, fieldProtocol, &s.Protocol)
	number(c, fieldBefore, &s.Before)
	number(c, fieldAfter, &s.After)
	c.text(fieldTxn, &s.Txn)
	number(c, fieldXID, &s.XID)
	c.text(fieldSQL, &s.SQL)
	c.text(fieldPrepared, &s.Prepared)
	c.text(fieldName, &s.Name)
	list(c, fieldParam, &s.Params, Param{}, func(c *coder, p *Param) {
		c.text(fieldType, &p.Type)
		c.flags(flag{flagNull, &p.Null}, flag{flagBinary, &p.Binary})
		c.text(fieldValue, &p.Value)
	})
	list(c, fieldResult, &s.Results, Result{Affected: Unknown, Count: Unknown}, (*coder).result)
	if c.read.id == fieldError {
		s.Error = &answer.Error{}
	}
	if s.Error != nil {
		part(c, fieldError, s.Error, func(c *coder, e *answer.Error) {
			c.text(fieldCode, &e.Code)
			c.text(fieldSQLState, &e.SQLState)
			c.text(fieldMessage, &e.Message)
		})
	}
	list(c, fieldTag, &s.Tags, Tag{}, func(c *coder, t *Tag) { c.text(fieldKey, &t.Key); c.text(fieldValue, &t.Value) })
	list(c, fieldTable, &s.Tables, Table{}, func(c *coder, t *Table) {
		c.text(fieldName, &t.Name)
		c.flags(flag{flagWrite, &t.Write})
	})
}

func (c *coder) result(r *Result) {
	c.text(fieldCommand, &r.Tag)
	c.count(fieldAffected, &r.Affected)
	c.count(fieldCount, &r.Count)
	c.flags(flag{flagPartial, &r.Partial})
	c.text(fieldDigest, &r.Digest)
	list(c, fieldColumn, &r.Columns, answer.Column{}, func(c *coder, o *answer.Column) { c.text(fieldName, &o.Name); c.text(fieldType, &o.Type) })
	list(c, fieldRow, &r.Rows, []Value{}, func(c *coder, row *[]Value) {
		list(c, fieldValue, row, Value{}, func(c *coder, v *Value) {
			c.flags(flag{flagNull, &v.Null}, flag{flagBinary, &v.Binary})
			c.text(fieldValue, &v.Text)
		})
	})
}
