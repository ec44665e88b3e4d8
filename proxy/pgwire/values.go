package pgwire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"sync/atomic"

	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	"wirecheck/trace/flow"
	"wirecheck/trace/packets/wire"
)

// field is a column of an answer.
type field struct {
	oid    uint32 // object id of its table
	number int    // of the column in it, 0 if it is none
	kind   uint32 // object id of the type
	format int
	// table and column are the names of what it shows; empty: no column of a table that the statement names.
	table, column string
}

// columns are those of an answer, which do not change. Their names are what a script says of them.
type columns struct {
	script *rewrite.Script
	fields []field
}

// described is what the server has said of a prepared statement. Both halves may use it.
type described struct {
	columns atomic.Pointer[columns]
	params  atomic.Pointer[[]uint32] // object ids of the parameters' types
}

// describes makes the place for what is said of a statement; nil if requests are not told apart.
func (o *Observer) describes(sql string) *described {
	if !o.recorder.Requests.Wants(sql, o.limits) {
		return nil
	}
	return &described{}
}

// params are the values of the parameters.
func (b *bound) params() (list []flow.Param) {
	if b == nil || !b.ok {
		return nil
	}
	list = make([]flow.Param, 0, len(b.values))
	for i, raw := range b.values {
		kind := declared(b.stmt.tail, i+1)
		if types := b.stmt.seen.params.Load(); types != nil && i < len(*types) {
			kind = (*types)[i]
		}
		text, ok := wire.PostgresText(raw, b.in.of(i), kind)
		list = append(list, flow.Param{Text: text, Null: raw == nil, Unknown: !ok})
	}
	return list
}

// parameters relays a ParameterDescription.
func (a *serverHalf) parameters(f frame, e *entry) error {
	if e.request != describe || e.stmt == nil || e.stmt.seen == nil || f.size > smallMessage {
		return a.relay(f)
	}
	body, err := a.in.body(f.size)
	if err != nil {
		return err
	}
	var types []uint32
	for rest := body[min(2, len(body)):]; len(rest) >= 4; rest = rest[4:] {
		types = append(types, binary.BigEndian.Uint32(rest))
	}
	e.stmt.seen.params.Store(&types)
	if err := a.release(); err != nil {
		return err
	}
	return a.out.message('t', body)
}

// describe keeps the first n fields of a RowDescription, where requests are told apart.
func (a *serverHalf) describe(body []byte, n int, ok bool, e *entry) {
	seen := (*described)(nil)
	switch {
	case !ok:
		return
	case e.request == simpleQuery && e.running != nil && e.running.WantsCells():
	case e.request == describe && e.stmt != nil && e.stmt.seen != nil:
		seen = e.stmt.seen
	default:
		return
	}
	if seen != nil && seen.columns.Load().are(body, n) {
		return
	}
	c := &columns{fields: make([]field, n)}
	rest := body[2:]
	for i := range c.fields {
		c.fields[i], rest = takeField(rest)
	}
	if seen != nil {
		seen.columns.Store(c)
		return
	}
	e.columns = c
}

// are reports whether these are the first n fields of a RowDescription.
func (c *columns) are(body []byte, n int) bool {
	if c == nil || len(c.fields) != n {
		return false
	}
	rest := body[2:]
	for _, known := range c.fields {
		var f field
		f, rest = takeField(rest)
		if known.table, known.column = "", ""; known != f {
			return false
		}
	}
	return true
}

// takeField takes a field off a RowDescription, which visibleFields has checked.
func takeField(b []byte) (f field, rest []byte) {
	b = b[bytes.IndexByte(b, 0)+1:]
	return field{
		oid: binary.BigEndian.Uint32(b), number: int(binary.BigEndian.Uint16(b[4:])), kind: binary.BigEndian.Uint32(b[6:]), format: int(binary.BigEndian.Uint16(b[16:])),
	}, b[fieldTail:]
}

// named gives the columns with the names that a script has for them.
func (c *columns) named(s *rewrite.Script) *columns {
	if c.script == s {
		return c
	}
	c = &columns{script: s, fields: slices.Clone(c.fields)}
	for i := range c.fields {
		f := &c.fields[i]
		if f.table, f.column = "", ""; f.number == 0 {
			continue
		}
		rel := relation(s, f.oid)
		if rel == nil {
			continue
		}
		if k := slices.IndexFunc(rel.Columns, func(c rewrite.Attribute) bool { return c.Number == f.number }); k >= 0 {
			f.table, f.column = rel.RelationName.String(), rel.Columns[k].Name
			if rel.Root != nil {
				f.table = rel.Root.RelationName.String()
			}
		}
	}
	return c
}

// relation finds the relation with an object id among those that a script names.
func relation(s *rewrite.Script, oid uint32) *rewrite.Relation {
	if s == nil || oid == 0 {
		return nil
	}
	for _, u := range s.Uses {
		if i := slices.IndexFunc(u.Known.Relations, func(r *rewrite.Relation) bool { return r.OID == oid }); i >= 0 {
			return u.Known.Relations[i]
		}
	}
	return nil
}

// cells gives the client's values of a row to the running statement.
func (a *serverHalf) cells(b []byte, e *entry, run *record.Running) {
	all := e.columns
	if e.request == execute && e.bound != nil {
		seen := e.bound.stmt.seen
		if all = seen.columns.Load(); all != nil && all.script != e.script {
			all = all.named(e.script)
			seen.columns.Store(all)
		}
	} else if all != nil {
		all = all.named(e.script)
		e.columns = all
	}
	unread := []record.Cell{{Unread: true}}
	if all == nil {
		run.Cells(unread)
		return
	}
	a.row = a.row[:0]
	for i, f := range all.fields {
		raw, rest, ok := cell(b)
		if !ok {
			run.Cells(unread)
			return
		}
		b = rest
		if e.request == execute {
			f.format = e.bound.out.of(i)
		}
		a.row = append(a.row, f.cell(raw))
	}
	run.Cells(a.row)
	clear(a.row) // idle sessions keep no values
}

// cell is a value of a row, which is nil if it is NULL.
func (f *field) cell(raw []byte) record.Cell {
	c := record.Cell{Table: f.table, Column: f.column, Null: raw == nil, Unread: len(raw) > smallMessage}
	if raw != nil && !c.Unread {
		text, ok := wire.PostgresText(raw, f.format, f.kind)
		c.Text, c.Unread = text, !ok
	}
	return c
}
