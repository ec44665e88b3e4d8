package trace

import (
	"encoding/binary"
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

// flag is a flag that is set, or 0.
func flag(f uint64, on bool) uint64 {
	if on {
		return f
	}
	return 0
}

// appendRecord appends a record without its length. base is the time from which its times count.
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
		e.number(fieldFlags, flag(flagHistoryEnds, r.Note.HistoryEnds))
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
	e.number(fieldFlags, flag(flagJoined, s.Joined)|flag(flagEncrypted, s.Encrypted))
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
	e.number(fieldFlags, flag(flagLost, s.Lost)|flag(flagNoParams, s.NoParams)|flag(flagLate, s.Late))
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
			e.number(fieldFlags, flag(flagNull, p.Null)|flag(flagBinary, p.Binary))
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
			e.number(fieldFlags, flag(flagWrite, t.Write))
		})
	}
}

func (e *encoder) result(r *Result) {
	e.text(fieldCommand, r.Tag)
	e.number(fieldAffected, uint64(r.Affected+1))
	e.number(fieldCount, uint64(r.Count+1))
	e.number(fieldFlags, flag(flagPartial, r.Partial))
	e.text(fieldDigest, r.Digest)
	for _, c := range r.Columns {
		e.part(fieldColumn, func(e *encoder) { e.text(fieldName, c.Name); e.text(fieldType, c.Type) })
	}
	for _, row := range r.Rows {
		e.part(fieldRow, func(e *encoder) {
			for _, v := range row {
				e.part(fieldValue, func(e *encoder) {
					e.number(fieldFlags, flag(flagNull, v.Null)|flag(flagBinary, v.Binary))
					e.text(fieldValue, v.Text)
				})
			}
		})
	}
}
