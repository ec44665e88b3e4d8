package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A record in a block is its length, then its kind, its session and its fields. A field is a number (its id shifted left by one, plus 1 if
// bytes follow rather than a number), then the number, or a length and the bytes. Fields with zero values are left out, so most
// records are little more than their text. A list is a field that is repeated; its elements are written the same way.

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

// encoder appends fields.
type encoder struct{ b []byte }

func (e *encoder) number(field int, v uint64) {
	if v != 0 {
		e.b = binary.AppendUvarint(e.b, uint64(field)<<1)
		e.b = binary.AppendUvarint(e.b, v)
	}
}

func (e *encoder) signed(field int, v int64) { e.number(field, uint64(v<<1)^uint64(v>>63)) }

func (e *encoder) text(field int, s string) {
	if s != "" {
		e.b = binary.AppendUvarint(e.b, uint64(field)<<1|1)
		e.b = binary.AppendUvarint(e.b, uint64(len(s)))
		e.b = append(e.b, s...)
	}
}

// part writes an element of a list, also an empty one.
func (e *encoder) part(field int, write func(*encoder)) {
	e.b = binary.AppendUvarint(e.b, uint64(field)<<1|1)
	at := len(e.b)
	write(e)
	// The length goes in front of what was written; parts are small, so moving them costs little.
	var n [binary.MaxVarintLen64]byte
	l := binary.PutUvarint(n[:], uint64(len(e.b)-at))
	e.b = append(e.b, n[:l]...)
	copy(e.b[at+l:], e.b[at:len(e.b)-l])
	copy(e.b[at:], n[:l])
}

func (e *encoder) flags(set ...bool) {
	var v uint64
	for i, on := range set {
		if on {
			v |= 1 << i
		}
	}
	e.number(fieldFlags, v)
}

// appendRecord appends a record without its length. base is the time that its times are told from.
func appendRecord(b []byte, r *Record, base int64) []byte {
	e := encoder{append(b, byte(r.Kind))}
	e.b = binary.AppendUvarint(e.b, r.Session)
	switch r.Kind {
	case KindSession:
		e.session(r.Open, base)
	case KindStatement:
		e.statement(r.Statement, base)
	case KindWait:
		w := r.Wait
		e.when(fieldAt, w.At, base)
		e.number(fieldTick, w.Tick)
		e.number(fieldState, uint64(w.State))
		e.signed(fieldTook, w.Took)
		e.text(fieldLock, w.Lock)
		for _, s := range w.For {
			e.number(fieldFor, s)
		}
	case KindEnd:
		e.when(fieldAt, r.End.At, base)
		e.number(fieldTick, r.End.Tick)
		e.text(fieldReason, r.End.Reason)
	case KindHistory:
		e.event(r.History)
	case KindNote:
		e.when(fieldAt, r.Note.At, base)
		e.text(fieldText, r.Note.Text)
		e.flags(false, false, false, false, false, false, false, false, false, r.Note.HistoryEnds)
	}
	return e.b
}

// when writes a time as a difference to base. A time that is not known is left out; one that equals base is written as one, by the
// bit that all differences carry.
func (e *encoder) when(field int, at, base int64) {
	if at != 0 {
		d := at - base
		e.number(field, (uint64(d<<1)^uint64(d>>63))+1)
	}
}

func (e *encoder) session(s *Session, base int64) {
	e.when(fieldAt, s.At, base)
	e.flags(s.Joined, s.Encrypted)
	e.text(fieldProduct, s.Product)
	e.text(fieldVersion, s.Version)
	e.text(fieldUser, s.User)
	e.text(fieldDatabase, s.Database)
	e.text(fieldApplication, s.Application)
	e.text(fieldClient, s.Client)
	e.text(fieldBackend, s.Backend)
	e.text(fieldLevel, s.Level)
}

func (e *encoder) statement(s *Statement, base int64) {
	e.when(fieldStart, s.Start, base)
	if s.Start != 0 {
		base = s.Start
	}
	e.when(fieldEnd, s.End, base)
	e.signed(fieldTook, s.Took)
	e.number(fieldFrom, s.From)
	e.number(fieldTo, s.To)
	e.number(fieldID, s.ID)
	e.flags(false, false, s.Lost, s.NoParams, s.Late)
	e.number(fieldProtocol, uint64(s.Protocol))
	e.number(fieldBefore, uint64(s.Before))
	e.number(fieldAfter, uint64(s.After))
	e.text(fieldTxn, s.Txn)
	e.number(fieldXID, s.XID)
	e.text(fieldSQL, s.SQL)
	e.text(fieldPrepared, s.Prepared)
	e.text(fieldName, s.Name)
	for i := range s.Params {
		p := &s.Params[i]
		e.part(fieldParam, func(e *encoder) {
			e.text(fieldType, p.Type)
			e.flags(false, false, false, false, false, p.Null, p.Binary)
			e.text(fieldValue, p.Value)
		})
	}
	for i := range s.Results {
		e.part(fieldResult, func(e *encoder) { e.result(&s.Results[i]) })
	}
	if s.Error != nil {
		e.part(fieldError, func(e *encoder) {
			e.text(fieldCode, s.Error.Code)
			e.text(fieldSQLState, s.Error.SQLState)
			e.text(fieldMessage, s.Error.Message)
		})
	}
	for _, t := range s.Tags {
		e.part(fieldTag, func(e *encoder) { e.text(fieldKey, t.Key); e.text(fieldValue, t.Value) })
	}
	for _, t := range s.Tables {
		e.part(fieldTable, func(e *encoder) {
			e.text(fieldName, t.Name)
			e.flags(false, false, false, false, false, false, false, false, t.Write)
		})
	}
}

func (e *encoder) result(r *Result) {
	e.text(fieldCommand, r.Tag)
	e.number(fieldAffected, uint64(r.Affected+1))
	e.number(fieldCount, uint64(r.Count+1))
	e.flags(false, false, false, false, false, false, false, r.Partial)
	e.text(fieldDigest, r.Digest)
	for _, c := range r.Columns {
		e.part(fieldColumn, func(e *encoder) { e.text(fieldName, c.Name); e.text(fieldType, c.Type) })
	}
	for _, row := range r.Rows {
		e.part(fieldRow, func(e *encoder) {
			for _, v := range row {
				e.part(fieldValue, func(e *encoder) {
					e.flags(false, false, false, false, false, v.Null, v.Binary)
					e.text(fieldValue, v.Text)
				})
			}
		})
	}
}

var errShort = errors.New("it ends in the middle of a field")

// decoder reads fields.
type decoder struct {
	b   []byte
	err error
}

// next gives the next field, and either its number or its bytes, which are the decoder's own.
func (d *decoder) next() (field int, v uint64, text []byte, ok bool) {
	if len(d.b) == 0 || d.err != nil {
		return 0, 0, nil, false
	}
	head := d.uvarint()
	v = d.uvarint()
	if d.err != nil {
		return 0, 0, nil, false
	}
	if head>>1 == 0 || head>>1 >= lastField {
		d.err = fmt.Errorf("it has a field %d that this version does not know: use a newer wirecheck", head>>1)
		return 0, 0, nil, false
	}
	field = int(head >> 1)
	if head&1 == 0 {
		return field, v, nil, true
	}
	if v > uint64(len(d.b)) {
		d.err = errShort
		return 0, 0, nil, false
	}
	text, d.b = d.b[:v:v], d.b[v:]
	return field, 0, text, true
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		if d.err == nil {
			d.err = errShort
		}
		return 0
	}
	d.b = d.b[n:]
	return v
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

func when(v uint64, base int64) int64 { return base + unzigzag(v-1) }

// decodeRecord reads a record that appendRecord wrote. It keeps nothing of b.
func decodeRecord(b []byte, r *Record, base int64) error {
	if len(b) == 0 {
		return errShort
	}
	*r = Record{Kind: Kind(b[0])}
	d := decoder{b: b[1:]}
	r.Session = d.uvarint()
	switch r.Kind {
	case KindSession:
		r.Open = d.session(base)
	case KindStatement:
		r.Statement = d.statement(base)
	case KindWait:
		r.Wait = d.wait(base)
	case KindEnd:
		r.End = &End{}
		for field, v, text, ok := d.next(); ok; field, v, text, ok = d.next() {
			switch field {
			case fieldAt:
				r.End.At = when(v, base)
			case fieldTick:
				r.End.Tick = v
			case fieldReason:
				r.End.Reason = string(text)
			default:
				d.odd(field)
			}
		}
	case KindHistory:
		r.History = d.event()
	case KindNote:
		r.Note = &Note{}
		for field, v, text, ok := d.next(); ok; field, v, text, ok = d.next() {
			switch field {
			case fieldAt:
				r.Note.At = when(v, base)
			case fieldText:
				r.Note.Text = string(text)
			case fieldFlags:
				r.Note.HistoryEnds = v&flagHistoryEnds != 0
			default:
				d.odd(field)
			}
		}
	default:
		return fmt.Errorf("it is of kind %d, which this version does not know: use a newer wirecheck", r.Kind)
	}
	return d.err
}

func (d *decoder) odd(field int) {
	if d.err == nil {
		d.err = fmt.Errorf("field %d stands where it does not belong", field)
	}
}

func (d *decoder) session(base int64) *Session {
	s := &Session{}
	for field, v, text, ok := d.next(); ok; field, v, text, ok = d.next() {
		switch field {
		case fieldAt:
			s.At = when(v, base)
		case fieldFlags:
			s.Joined, s.Encrypted = v&flagJoined != 0, v&flagEncrypted != 0
		case fieldProduct:
			s.Product = string(text)
		case fieldVersion:
			s.Version = string(text)
		case fieldUser:
			s.User = string(text)
		case fieldDatabase:
			s.Database = string(text)
		case fieldApplication:
			s.Application = string(text)
		case fieldClient:
			s.Client = string(text)
		case fieldBackend:
			s.Backend = string(text)
		case fieldLevel:
			s.Level = string(text)
		default:
			d.odd(field)
		}
	}
	return s
}

func (d *decoder) wait(base int64) *Wait {
	w := &Wait{}
	for field, v, text, ok := d.next(); ok; field, v, text, ok = d.next() {
		switch field {
		case fieldAt:
			w.At = when(v, base)
		case fieldTick:
			w.Tick = v
		case fieldState:
			w.State = WaitState(v)
		case fieldTook:
			w.Took = unzigzag(v)
		case fieldLock:
			w.Lock = string(text)
		case fieldFor:
			w.For = append(w.For, v)
		default:
			d.odd(field)
		}
	}
	return w
}

func (d *decoder) statement(base int64) *Statement {
	s := &Statement{}
	for field, v, text, ok := d.next(); ok; field, v, text, ok = d.next() {
		switch field {
		case fieldStart:
			s.Start = when(v, base)
			base = s.Start
		case fieldEnd:
			s.End = when(v, base)
		case fieldTook:
			s.Took = unzigzag(v)
		case fieldFrom:
			s.From = v
		case fieldTo:
			s.To = v
		case fieldID:
			s.ID = v
		case fieldFlags:
			s.Lost, s.NoParams, s.Late = v&flagLost != 0, v&flagNoParams != 0, v&flagLate != 0
		case fieldProtocol:
			s.Protocol = Protocol(v)
		case fieldBefore:
			s.Before = Status(v)
		case fieldAfter:
			s.After = Status(v)
		case fieldTxn:
			s.Txn = string(text)
		case fieldXID:
			s.XID = v
		case fieldSQL:
			s.SQL = string(text)
		case fieldPrepared:
			s.Prepared = string(text)
		case fieldName:
			s.Name = string(text)
		case fieldParam:
			s.Params = append(s.Params, d.param(text))
		case fieldResult:
			s.Results = append(s.Results, d.result(text))
		case fieldError:
			s.Error = d.error(text)
		case fieldTag:
			s.Tags = append(s.Tags, d.tag(text))
		case fieldTable:
			s.Tables = append(s.Tables, d.table(text))
		default:
			d.odd(field)
		}
	}
	return s
}

// part reads an element of a list.
func (d *decoder) part(b []byte, each func(in *decoder, field int, v uint64, text []byte) bool) {
	in := decoder{b: b}
	for field, v, text, ok := in.next(); ok; field, v, text, ok = in.next() {
		if !each(&in, field, v, text) {
			in.odd(field)
		}
	}
	if d.err == nil {
		d.err = in.err
	}
}

func (d *decoder) param(b []byte) (p Param) {
	d.part(b, func(_ *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldType:
			p.Type = string(text)
		case fieldFlags:
			p.Null, p.Binary = v&flagNull != 0, v&flagBinary != 0
		case fieldValue:
			p.Value = string(text)
		default:
			return false
		}
		return true
	})
	return p
}

func (d *decoder) error(b []byte) *Error {
	e := &Error{}
	d.part(b, func(_ *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldCode:
			e.Code = string(text)
		case fieldSQLState:
			e.SQLState = string(text)
		case fieldMessage:
			e.Message = string(text)
		default:
			return false
		}
		return true
	})
	return e
}

func (d *decoder) tag(b []byte) (t Tag) {
	d.part(b, func(_ *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldKey:
			t.Key = string(text)
		case fieldValue:
			t.Value = string(text)
		default:
			return false
		}
		return true
	})
	return t
}

func (d *decoder) table(b []byte) (t Table) {
	d.part(b, func(_ *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldName:
			t.Name = string(text)
		case fieldFlags:
			t.Write = v&flagWrite != 0
		default:
			return false
		}
		return true
	})
	return t
}

func (d *decoder) result(b []byte) Result {
	r := Result{Affected: Unknown, Count: Unknown}
	d.part(b, func(in *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldCommand:
			r.Tag = string(text)
		case fieldAffected:
			r.Affected = int64(v - 1)
		case fieldCount:
			r.Count = int64(v - 1)
		case fieldFlags:
			r.Partial = v&flagPartial != 0
		case fieldDigest:
			r.Digest = string(text)
		case fieldColumn:
			r.Columns = append(r.Columns, in.column(text))
		case fieldRow:
			r.Rows = append(r.Rows, in.row(text))
		default:
			return false
		}
		return true
	})
	return r
}

func (d *decoder) column(b []byte) (c Column) {
	d.part(b, func(_ *decoder, field int, v uint64, text []byte) bool {
		switch field {
		case fieldName:
			c.Name = string(text)
		case fieldType:
			c.Type = string(text)
		default:
			return false
		}
		return true
	})
	return c
}

func (d *decoder) row(b []byte) []Value {
	row := []Value{}
	d.part(b, func(in *decoder, field int, v uint64, text []byte) bool {
		if field != fieldValue {
			return false
		}
		var val Value
		in.part(text, func(_ *decoder, field int, v uint64, text []byte) bool {
			switch field {
			case fieldFlags:
				val.Null, val.Binary = v&flagNull != 0, v&flagBinary != 0
			case fieldValue:
				val.Text = string(text)
			default:
				return false
			}
			return true
		})
		row = append(row, val)
		return true
	})
	return row
}
