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
	table  uint32 // object id
	number int    // of the column in it, 0 if it is none
	kind   uint32 // object id of the type
	format int
}

// described is what the server has said of a prepared statement. Both halves may use it.
type described struct {
	fields atomic.Pointer[[]field]
	params atomic.Pointer[[]uint32] // object ids of the parameters' types
}

// describes makes the place for what is said of a statement; nil if requests are not told apart.
func (o *Observer) describes(sql string) *described {
	if !o.recorder.Requests.Wants(sql, o.limits) {
		return nil
	}
	return &described{}
}

// bound are the parameters and formats of a Bind.
type bound struct {
	stmt    *prepared
	body    []byte
	formats []int // of the result
}

// bind keeps a Bind of p, where requests are told apart.
func (p *prepared) bind(body []byte) *bound {
	if p.seen == nil {
		return nil
	}
	b := &bound{stmt: p, body: slices.Clone(body)}
	if at, n := resultFormats(b.body); n > 0 {
		b.formats = codes(b.body[at+2:], n)
	}
	return b
}

func codes(b []byte, n int) (list []int) {
	for i := 0; i < n && len(b) >= 2*i+2; i++ {
		list = append(list, int(binary.BigEndian.Uint16(b[2*i:])))
	}
	return list
}

// format is the format of number i, by the rule of Bind: none is text, and one is for all.
func format(codes []int, i int) int {
	switch {
	case len(codes) == 1:
		return codes[0]
	case i < len(codes):
		return codes[i]
	}
	return 0
}

// params are the values of the parameters.
func (b *bound) params() (list []flow.Param) {
	if b == nil {
		return nil
	}
	formats, values, ok := parameters(b.body)
	if !ok {
		return nil
	}
	for i, raw := range values {
		kind := declared(b.stmt.tail, i+1)
		if types := b.stmt.seen.params.Load(); types != nil && i < len(*types) {
			kind = (*types)[i]
		}
		text, ok := wire.PostgresText(raw, format(formats, i), kind)
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
	list := make([]field, n)
	pos := 2
	for i := range n {
		pos += bytes.IndexByte(body[pos:], 0) + 1 // visibleFields has checked them
		b := body[pos:]
		list[i] = field{binary.BigEndian.Uint32(b), int(binary.BigEndian.Uint16(b[4:])), binary.BigEndian.Uint32(b[6:]), int(binary.BigEndian.Uint16(b[16:]))}
		pos += fieldTail
	}
	if seen != nil {
		seen.fields.Store(&list)
		return
	}
	e.fields = list
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
	fields := e.fields
	if e.request == execute {
		if e.bound == nil || e.bound.stmt.seen.fields.Load() == nil {
			run.Cells([]record.Cell{{Unread: true}})
			return
		}
		fields = *e.bound.stmt.seen.fields.Load()
	}
	list := make([]record.Cell, 0, len(fields))
	for i, f := range fields {
		raw, rest, ok := cell(b)
		if !ok {
			run.Cells([]record.Cell{{Unread: true}})
			return
		}
		b = rest
		if e.request == execute {
			f.format = format(e.bound.formats, i)
		}
		list = append(list, f.cell(raw, e.script))
	}
	run.Cells(list)
}

// cell is a value of a row, which is nil if it is NULL.
func (f field) cell(raw []byte, s *rewrite.Script) record.Cell {
	rel := relation(s, f.table)
	if rel == nil || f.number == 0 {
		return record.Cell{Unread: true}
	}
	column := slices.IndexFunc(rel.Columns, func(c rewrite.Attribute) bool { return c.Number == f.number })
	if column < 0 {
		return record.Cell{Unread: true}
	}
	table := rel.RelationName
	if rel.Root != nil {
		table = rel.Root.RelationName
	}
	c := record.Cell{Table: table.String(), Column: rel.Columns[column].Name, Null: raw == nil, Unread: len(raw) > smallMessage}
	if raw != nil && !c.Unread {
		text, ok := wire.PostgresText(raw, f.format, f.kind)
		c.Text, c.Unread = text, !ok
	}
	return c
}
