package wire

import (
	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// pgOp is a message of the client that waits for its answer.
type pgOp struct {
	kind     byte // Q, P, B, D, E, C, F, S
	st       *trace.Statement
	prepared *pgPrepared
	portal   *pgPortal
	kept     int // bytes of rows
}

// executes tells whether q executes what op prepares, binds or describes.
func (op *pgOp) executes(q *pgOp) bool {
	switch {
	case q.portal == nil:
		return false
	case op.portal != nil:
		return q.portal == op.portal
	}
	return op.prepared != nil && q.portal.of == op.prepared
}

// pgPrepared is a prepared statement.
type pgPrepared struct {
	name    string
	sql     string
	known   bool
	types   []uint32
	columns []answer.Column
}

// pgPortal is a bound statement.
type pgPortal struct {
	of      *pgPrepared
	formats []int    // of parameters
	raw     [][]byte // parameters as they came, nil is NULL
	results []int    // formats of result columns
	columns []answer.Column
	ran     bool
}

// maxNames bounds the prepared statements and portals that a connection may have.
const maxNames = 1 << 16

// push queues what waits for an answer. A queue without end is a connection that was not understood.
func (d *pgDecoder) push(op *pgOp) {
	if len(d.queue) < 1<<16 {
		d.queue = append(d.queue, op)
	}
}

// request takes a message of the client.
func (d *pgDecoder) request(kind byte, body []byte, at int64) error {
	c := cursor{b: body}
	if body == nil { // too large to be looked at
		c.b = append(d.client.head, 0)
	}
	switch kind {
	case 'Q':
		st := d.statement(trace.ProtocolSimple, c.text(), at)
		st.Lost = body == nil
		d.push(&pgOp{kind: 'Q', st: st})
	case 'P':
		p := &pgPrepared{name: c.text(), known: body != nil}
		p.sql = c.text()
		for n := c.int16(); n > 0 && !c.bad; n-- {
			p.types = append(p.types, uint32(c.int32()))
		}
		if len(d.texts) < maxNames {
			d.texts[p.name] = p
		}
		d.push(&pgOp{kind: 'P', prepared: p})
	case 'B':
		d.bind(&c)
	case 'D':
		op := &pgOp{kind: 'D'}
		if what, name := c.byte(), c.text(); what == 'S' {
			op.prepared = d.text(name)
		} else {
			op.portal = d.portals[name]
		}
		d.push(op)
	case 'E':
		d.execute(c.text(), at)
	case 'C':
		if what, name := c.byte(), c.text(); what == 'S' {
			delete(d.texts, name)
		} else {
			delete(d.portals, name)
		}
		d.push(&pgOp{kind: 'C'})
	case 'F':
		d.out.Sink.Other("function calls (fastpath)")
		d.push(&pgOp{kind: 'F'})
	case 'S':
		d.push(&pgOp{kind: 'S'})
	case 'X':
		d.parting = trace.EndQuit
	}
	return nil
}

// text gives a prepared statement, also one that was prepared before the source began.
func (d *pgDecoder) text(name string) *pgPrepared {
	p := d.texts[name]
	if p == nil {
		p = &pgPrepared{name: name}
		if len(d.texts) < maxNames {
			d.texts[name] = p
		}
	}
	return p
}

func (d *pgDecoder) bind(c *cursor) {
	name := c.text()
	p := &pgPortal{of: d.text(c.text())}
	for n := c.int16(); n > 0 && !c.bad; n-- {
		p.formats = append(p.formats, c.int16())
	}
	for n := c.int16(); n > 0 && !c.bad; n-- {
		size := c.int32()
		if size < 0 {
			p.raw = append(p.raw, nil)
			continue
		}
		p.raw = append(p.raw, append([]byte{}, c.bytes(size)...))
	}
	for n := c.int16(); n > 0 && !c.bad; n-- {
		p.results = append(p.results, c.int16())
	}
	if len(d.portals) < maxNames {
		d.portals[name] = p
	}
	d.push(&pgOp{kind: 'B', portal: p})
}

func (d *pgDecoder) execute(name string, at int64) {
	p := d.portals[name]
	st := d.statement(trace.ProtocolPrepared, "", at)
	op := &pgOp{kind: 'E', st: st, portal: p}
	switch {
	case p == nil: // a cursor of the SQL level, or a portal from before the source began
		st.Lost = true
	default:
		st.SQL, st.Name, st.Lost = p.of.sql, p.of.name, !p.of.known
		st.Tags = trace.ParseTags(st.SQL, lex.PostgreSQL)
		if p.ran {
			st.Protocol = trace.ProtocolFetch
		}
		p.ran = true
	}
	d.push(op)
}

// params reads a portal's parameters. Their types may have become known after Bind was sent.
func (d *pgDecoder) params(st *trace.Statement, p *pgPortal) {
	if p == nil || st.Params != nil {
		return
	}
	for i, raw := range p.raw {
		var oid uint32
		if i < len(p.of.types) {
			oid = p.of.types[i]
		}
		v := pgValue(raw, formatOf(p.formats, i), oid)
		st.Params = append(st.Params, trace.Param{Type: pgTypeName(oid), Null: v.Null, Binary: v.Binary, Value: v.Text})
	}
}

// formatOf gives the format of value i: none given means text, one is for all.
func formatOf(formats []int, i int) int {
	switch {
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return 0
}
