package trace

import (
	"encoding/binary"
	"errors"
	"fmt"

	"wirecheck/answer"
)

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
			s.Before = answer.State(v)
		case fieldAfter:
			s.After = answer.State(v)
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

func (d *decoder) error(b []byte) *answer.Error {
	e := &answer.Error{}
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

func (d *decoder) column(b []byte) (c answer.Column) {
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
