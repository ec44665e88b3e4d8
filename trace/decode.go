package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"

	"wirecheck/answer"
)

var errShort = errors.New("it ends in the middle of a field")

// decoder reads fields.
type decoder struct {
	b   []byte
	err error
}

// field is a field of a record or of a part of one: a number, or bytes, which are the decoder's own.
type field struct {
	id   int
	v    uint64
	text []byte
}

// next gives the next field.
func (d *decoder) next() (f field, ok bool) {
	if len(d.b) == 0 || d.err != nil {
		return field{}, false
	}
	head, v := d.uvarint(), d.uvarint()
	switch {
	case d.err != nil:
		return field{}, false
	case head>>1 == 0 || head>>1 >= lastField:
		d.err = fmt.Errorf("it has a field %d that this version does not know: use a newer wirecheck", head>>1)
		return field{}, false
	case head&1 == 0:
		return field{id: int(head >> 1), v: v}, true
	case v > uint64(len(d.b)):
		d.err = errShort
		return field{}, false
	}
	f = field{id: int(head >> 1), text: d.b[:v:v]}
	d.b = d.b[v:]
	return f, true
}

// fields gives the fields that are left.
func (d *decoder) fields() iter.Seq[field] {
	return func(yield func(field) bool) {
		for f, ok := d.next(); ok && yield(f); f, ok = d.next() {
		}
	}
}

// part gives the fields of an element of a list. What is wrong with them is wrong with the record.
func (d *decoder) part(b []byte) iter.Seq[field] {
	return func(yield func(field) bool) {
		in := decoder{b: b}
		for f, ok := in.next(); ok && d.err == nil && yield(f); f, ok = in.next() {
		}
		if d.err == nil {
			d.err = in.err
		}
	}
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
		for f := range d.fields() {
			switch f.id {
			case fieldAt:
				r.End.At = when(f.v, base)
			case fieldTick:
				r.End.Tick = f.v
			case fieldReason:
				r.End.Reason = string(f.text)
			default:
				d.odd(f.id)
			}
		}
	case KindHistory:
		r.History = d.event()
	case KindNote:
		r.Note = &Note{}
		for f := range d.fields() {
			switch f.id {
			case fieldAt:
				r.Note.At = when(f.v, base)
			case fieldText:
				r.Note.Text = string(f.text)
			case fieldFlags:
				r.Note.HistoryEnds = f.v&flagHistoryEnds != 0
			default:
				d.odd(f.id)
			}
		}
	default:
		return fmt.Errorf("it is of kind %d, which this version does not know: use a newer wirecheck", r.Kind)
	}
	return d.err
}

// odd notes a field that has no place here.
func (d *decoder) odd(id int) {
	if d.err == nil {
		d.err = fmt.Errorf("field %d stands where it does not belong", id)
	}
}

func (d *decoder) session(base int64) *Session {
	s := &Session{}
	for f := range d.fields() {
		switch f.id {
		case fieldAt:
			s.At = when(f.v, base)
		case fieldFlags:
			s.Joined, s.Encrypted = f.v&flagJoined != 0, f.v&flagEncrypted != 0
		case fieldProduct:
			s.Product = string(f.text)
		case fieldVersion:
			s.Version = string(f.text)
		case fieldUser:
			s.User = string(f.text)
		case fieldDatabase:
			s.Database = string(f.text)
		case fieldApplication:
			s.Application = string(f.text)
		case fieldClient:
			s.Client = string(f.text)
		case fieldBackend:
			s.Backend = string(f.text)
		case fieldLevel:
			s.Level = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return s
}

func (d *decoder) wait(base int64) *Wait {
	w := &Wait{}
	for f := range d.fields() {
		switch f.id {
		case fieldAt:
			w.At = when(f.v, base)
		case fieldTick:
			w.Tick = f.v
		case fieldState:
			w.State = WaitState(f.v)
		case fieldTook:
			w.Took = unzigzag(f.v)
		case fieldLock:
			w.Lock = string(f.text)
		case fieldFor:
			w.For = append(w.For, f.v)
		default:
			d.odd(f.id)
		}
	}
	return w
}

func (d *decoder) statement(base int64) *Statement {
	s := &Statement{}
	for f := range d.fields() {
		switch f.id {
		case fieldStart:
			s.Start = when(f.v, base)
			base = s.Start
		case fieldEnd:
			s.End = when(f.v, base)
		case fieldTook:
			s.Took = unzigzag(f.v)
		case fieldFrom:
			s.From = f.v
		case fieldTo:
			s.To = f.v
		case fieldID:
			s.ID = f.v
		case fieldFlags:
			s.Lost, s.NoParams, s.Late = f.v&flagLost != 0, f.v&flagNoParams != 0, f.v&flagLate != 0
		case fieldProtocol:
			s.Protocol = Protocol(f.v)
		case fieldBefore:
			s.Before = answer.State(f.v)
		case fieldAfter:
			s.After = answer.State(f.v)
		case fieldTxn:
			s.Txn = string(f.text)
		case fieldXID:
			s.XID = f.v
		case fieldSQL:
			s.SQL = string(f.text)
		case fieldPrepared:
			s.Prepared = string(f.text)
		case fieldName:
			s.Name = string(f.text)
		case fieldParam:
			s.Params = append(s.Params, d.param(f.text))
		case fieldResult:
			s.Results = append(s.Results, d.result(f.text))
		case fieldError:
			s.Error = d.error(f.text)
		case fieldTag:
			s.Tags = append(s.Tags, d.tag(f.text))
		case fieldTable:
			s.Tables = append(s.Tables, d.table(f.text))
		default:
			d.odd(f.id)
		}
	}
	return s
}

func (d *decoder) param(b []byte) (p Param) {
	for f := range d.part(b) {
		switch f.id {
		case fieldType:
			p.Type = string(f.text)
		case fieldFlags:
			p.Null, p.Binary = f.v&flagNull != 0, f.v&flagBinary != 0
		case fieldValue:
			p.Value = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return p
}

func (d *decoder) error(b []byte) *answer.Error {
	e := &answer.Error{}
	for f := range d.part(b) {
		switch f.id {
		case fieldCode:
			e.Code = string(f.text)
		case fieldSQLState:
			e.SQLState = string(f.text)
		case fieldMessage:
			e.Message = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return e
}

func (d *decoder) tag(b []byte) (t Tag) {
	for f := range d.part(b) {
		switch f.id {
		case fieldKey:
			t.Key = string(f.text)
		case fieldValue:
			t.Value = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return t
}

func (d *decoder) table(b []byte) (t Table) {
	for f := range d.part(b) {
		switch f.id {
		case fieldName:
			t.Name = string(f.text)
		case fieldFlags:
			t.Write = f.v&flagWrite != 0
		default:
			d.odd(f.id)
		}
	}
	return t
}

func (d *decoder) result(b []byte) Result {
	r := Result{Affected: Unknown, Count: Unknown}
	for f := range d.part(b) {
		switch f.id {
		case fieldCommand:
			r.Tag = string(f.text)
		case fieldAffected:
			r.Affected = int64(f.v - 1)
		case fieldCount:
			r.Count = int64(f.v - 1)
		case fieldFlags:
			r.Partial = f.v&flagPartial != 0
		case fieldDigest:
			r.Digest = string(f.text)
		case fieldColumn:
			r.Columns = append(r.Columns, d.column(f.text))
		case fieldRow:
			r.Rows = append(r.Rows, d.row(f.text))
		default:
			d.odd(f.id)
		}
	}
	return r
}

func (d *decoder) column(b []byte) (c answer.Column) {
	for f := range d.part(b) {
		switch f.id {
		case fieldName:
			c.Name = string(f.text)
		case fieldType:
			c.Type = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return c
}

func (d *decoder) row(b []byte) []Value {
	row := []Value{}
	for f := range d.part(b) {
		if f.id == fieldValue {
			row = append(row, d.value(f.text))
		} else {
			d.odd(f.id)
		}
	}
	return row
}

func (d *decoder) value(b []byte) (v Value) {
	for f := range d.part(b) {
		switch f.id {
		case fieldFlags:
			v.Null, v.Binary = f.v&flagNull != 0, f.v&flagBinary != 0
		case fieldValue:
			v.Text = string(f.text)
		default:
			d.odd(f.id)
		}
	}
	return v
}
