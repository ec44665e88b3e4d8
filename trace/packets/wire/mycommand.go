package wire

import (
	"slices"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// The commands that matter (command byte).
const (
	comQuit = 0x01 + iota
	comInitDB
	comQuery
	comFieldList
)

const (
	comChangeUser  = 0x11
	comBinlogDump  = 0x12
	comTableDump   = 0x13
	comPrepare     = 0x16
	comExecute     = 0x17
	comLongData    = 0x18
	comClose       = 0x19
	comReset       = 0x1a
	comFetch       = 0x1c
	comDumpGTID    = 0x1e
	comResetConn   = 0x1f
	comBulkExecute = 0xfa
)

// myPrepared is a prepared statement.
type myPrepared struct {
	sql     string
	params  int // Unknown
	types   []byte
	long    map[int][]byte
	cut     bool // a value in long is not whole
	columns []answer.Column
	defs    []myColumn
}

// myCommand is a command that waits for its answer.
type myCommand struct {
	code    byte
	st      *trace.Statement
	stmt    *myPrepared
	text    string
	state   myState
	left    int // definitions
	binary  bool
	columns []answer.Column
	defs    []myColumn
	keep    *collector
	kept    int // bytes of rows
	params  int // of a PREPARE's answer
	id      uint32
}

func (d *myDecoder) request(seq byte, body []byte, at int64) error {
	switch {
	case d.phase == phaseLogin:
		return d.login(body)
	case d.phase != phaseCommand:
		return nil // passwords
	case d.upload:
		d.upload = len(body) > 0 || body == nil
		return nil
	case body == nil:
		return d.large(at)
	case len(body) == 0 || seq != 0 && len(body) < 0xffffff:
		return nil // part of an exchange of passwords (COM_CHANGE_USER)
	}
	return d.command(body, at)
}

// large takes a command that is too large to be looked at: a statement of which the beginning is kept.
func (d *myDecoder) large(at int64) error {
	head := d.client.head
	d.client.head = nil
	st := d.sent(trace.ProtocolUnknown, "", at)
	st.Lost = true
	c := &myCommand{code: comQuery, st: st}
	if len(head) > 0 {
		switch head[0] {
		case comQuery:
			st.SQL, st.Protocol = string(head[1:min(len(head), trace.MaxText+1)]), trace.ProtocolSimple
		case comExecute, comBulkExecute:
			c.code, c.binary, st.Protocol, st.NoParams = head[0], true, trace.ProtocolPrepared, true
			in := cursor{b: head[1:]}
			if c.stmt = d.texts[uint32(in.little(4))]; c.stmt != nil {
				st.SQL, st.Lost = c.stmt.sql, false
			}
		case comLongData:
			in := cursor{b: head[1:]}
			if p := d.texts[uint32(in.little(4))]; p != nil {
				p.cut = true
			}
			return nil // it is not answered
		}
	}
	d.push(c)
	return nil
}

func (d *myDecoder) push(c *myCommand) {
	if len(d.queue) < 1<<16 {
		d.queue = append(d.queue, c)
	}
}

// sent makes a statement of a command.
func (d *myDecoder) sent(protocol trace.Protocol, sql string, at int64) *trace.Statement {
	st := d.statement(protocol, sql, at)
	st.Before = d.Transaction.Status
	return st
}

// command takes a command of the client.
func (d *myDecoder) command(body []byte, at int64) error {
	c := cursor{b: body[1:]}
	switch code := body[0]; code {
	case comQuit, comLongData, comClose: // not answered
		d.unanswered(code, &c)
	case comQuery:
		st := d.sent(trace.ProtocolSimple, "", at)
		if d.agreed.both(capQueryAttrs) {
			skipAttributes(&c)
		}
		st.SQL = string(c.b)
		st.Tags = trace.ParseTags(st.SQL, lex.MySQL)
		d.push(&myCommand{code: code, st: st})
	case comPrepare:
		d.push(&myCommand{code: code, text: string(c.b), st: d.sent(trace.ProtocolPrepared, string(c.b), at)})
	case comExecute, comBulkExecute:
		d.execute(code, &c, at)
	case comFetch:
		id := uint32(c.little(4))
		st := d.sent(trace.ProtocolFetch, "", at)
		cmd := &myCommand{code: code, st: st, stmt: d.texts[id], binary: true, state: stateRows}
		if st.Lost = cmd.stmt == nil; !st.Lost {
			st.SQL = cmd.stmt.sql
			cmd.columns, cmd.defs = cmd.stmt.columns, cmd.stmt.defs
		}
		d.push(cmd)
	case comInitDB:
		d.push(&myCommand{code: code, text: string(c.b)})
	case comChangeUser:
		d.push(&myCommand{code: code, text: c.text()})
	case comBinlogDump, comTableDump, comDumpGTID:
		d.sight = ignored // a replica; events without end follow
		d.out.Sink.Other("replication streams")
	default:
		d.push(&myCommand{code: code})
	}
	return nil
}

func (d *myDecoder) unanswered(code byte, c *cursor) {
	switch id := uint32(c.little(4)); code {
	case comQuit:
		d.parting = trace.EndQuit
	case comClose:
		delete(d.texts, id)
	case comLongData:
		p := d.texts[id]
		n := int(c.little(2))
		if p == nil || c.bad {
			return
		}
		if p.long == nil {
			p.long = map[int][]byte{}
		}
		if len(p.long[n])+len(c.b) > maxMessage || len(p.long) >= maxNames {
			p.cut = true
			return
		}
		p.long[n] = append(p.long[n], c.b...)
	}
}

// skipAttributes passes over the attributes in front of a COM_QUERY's text.
func skipAttributes(c *cursor) {
	n, _ := c.lenenc()
	c.lenenc() // sets of parameters: 1
	if n == 0 || n > 1<<16 {
		return
	}
	c.bytes(int(n+7) / 8)
	c.byte()
	kinds := make([]uint16, 0, n)
	for range n {
		kinds = append(kinds, uint16(c.little(2)))
		c.lenencBytes()
	}
	for _, k := range kinds {
		myBinary(c, myColumn{kind: byte(k), unsigned: k&0x8000 != 0, decimals: anyDecimals})
	}
}

func (d *myDecoder) execute(code byte, c *cursor, at int64) {
	id := uint32(c.little(4))
	if id == 0xffffffff { // MariaDB: the statement that was prepared last
		id = d.prepared
	}
	p := d.texts[id]
	st := d.sent(trace.ProtocolPrepared, "", at)
	cmd := &myCommand{code: code, st: st, stmt: p, binary: true}
	d.push(cmd)
	if p == nil {
		st.Lost, st.NoParams = true, true
		return
	}
	st.SQL, st.Tags = p.sql, trace.ParseTags(p.sql, lex.MySQL)
	if code == comBulkExecute || p.params == trace.Unknown {
		st.NoParams = true
		return
	}
	flags := c.byte()
	c.little(4)
	n := p.params
	names := false
	if d.agreed.both(capQueryAttrs) && (n > 0 || flags&8 != 0) {
		v, _ := c.lenenc()
		names = true
		if v > 1<<16 {
			c.bad = true
		} else {
			n = int(v)
		}
	}
	if p.cut {
		st.NoParams = true
	} else if n > 0 {
		p.bind(c, st, n, names)
	}
	p.long, p.cut = nil, false
}

// bind reads n parameters of an execution, with their names if there are any.
func (p *myPrepared) bind(c *cursor, st *trace.Statement, n int, names bool) {
	nulls := slices.Clone(c.bytes((n + 7) / 8))
	if c.byte() == 1 {
		p.types = p.types[:0]
		for range n {
			p.types = append(p.types, c.bytes(2)...)
			if names {
				c.lenencBytes()
			}
		}
	}
	if c.bad || len(p.types) < 2*n {
		st.NoParams = true
		return
	}
	for i := range n {
		kind, unsigned := p.types[2*i], p.types[2*i+1]&0x80 != 0
		v := trace.Value{Null: nulls[i/8]&(1<<(i%8)) != 0}
		if long, ok := p.long[i]; ok {
			v = trace.Value{Text: string(long)}
		} else if !v.Null {
			v = myBinary(c, myColumn{kind, unsigned, anyDecimals})
		}
		if i < p.params { // what follows are attributes
			st.Params = append(st.Params, trace.Param{Type: myTypeName(kind, unsigned), Null: v.Null, Binary: v.Binary, Value: v.Text})
		}
	}
	if c.bad {
		st.Params, st.NoParams = nil, true
	}
}
