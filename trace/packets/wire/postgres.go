package wire

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// pgDecoder follows a connection in PostgreSQL's protocol (PostgreSQL manual, chapter 55, Frontend/Backend Protocol).
type pgDecoder struct {
	source.Session
	log     *Output
	client  pgStream
	server  pgStream
	starts  bool // the client's next message has no type
	asked   bool // the server's next byte answers a request for encryption
	dark    bool // encrypted
	sync    bool // after a gap or when joined: wait for the server to be ready
	queue   []*pgOp
	texts   map[string]*pgPrepared
	portals map[string]*pgPortal
	keep    *keeper
	last    *trace.Statement // complete; ReadyForQuery tells the status after it
	cancel  bool
	cells   [][]byte // of the row that is read
	parting string   // why it ends, as far as somebody said it
}

// pgOp is a message of the client that waits for its answer.
type pgOp struct {
	kind     byte // Q, P, B, D, E, C, F, S
	st       *trace.Statement
	prepared *pgPrepared
	portal   *pgPortal
	kept     int // bytes of rows
}

// pgPrepared is a prepared statement.
type pgPrepared struct {
	name    string
	sql     string
	known   bool
	types   []uint32
	columns []trace.Column
}

// pgPortal is a bound statement.
type pgPortal struct {
	of      *pgPrepared
	formats []int    // of parameters
	raw     [][]byte // parameters as they came, nil is NULL
	results []int    // formats of result columns
	columns []trace.Column
	ran     bool
}

// pgStream splits a direction into messages.
type pgStream struct {
	buf  []byte
	skip int    // bytes of a message that is not looked at
	head []byte // its beginning
}

// maxMessage is the largest message that is looked at; of larger ones nothing is kept.
const maxMessage = trace.MaxText + 1<<20

// maxNames bounds the prepared statements and portals that a connection may have.
const maxNames = 1 << 16

// newPgDecoder follows a connection. One that was joined late is understood from the first request on if nothing seems to be under way.
func newPgDecoder(o *Output, c Connection) *pgDecoder {
	d := &pgDecoder{log: o, starts: c.Whole, sync: !c.Whole && !c.Request, texts: map[string]*pgPrepared{}, portals: map[string]*pgPortal{}}
	d.Number, d.Info = c.Session, trace.Session{At: c.At, Product: "postgres", Client: c.Client, Joined: !c.Whole}
	d.Transaction.Dialect = lex.PostgreSQL
	return d
}

// isStartup knows the first message of a client: version 3, or a request for encryption or cancellation.
func isStartup(b []byte) bool {
	if len(b) < 8 {
		return false
	}
	n, code := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	return n >= 8 && n <= 10000 && (code>>16 == 3 || code >= 80877102 && code <= 80877104)
}

// isPgRequest tells whether b may begin with a client's message.
func isPgRequest(b []byte) bool { return pgMessage(b, "QPBDECSHFXdcfp") }

func isPgAnswer(b []byte) bool { return pgMessage(b, "RSKZTDCEINAG123nstdcHVW") }

func pgMessage(b []byte, types string) bool {
	if len(b) < 5 || bytes.IndexByte([]byte(types), b[0]) < 0 {
		return false
	}
	n := binary.BigEndian.Uint32(b[1:])
	return n >= 4 && n < 1<<24 && (len(b) == int(n)+1 || int(n)+1 > len(b) || bytes.IndexByte([]byte(types), b[n+1]) >= 0)
}

// certainPgRequest tells requests from chance: messages that fill the segment, the last of which is a query, Sync or Flush.
func certainPgRequest(b []byte) bool {
	n, last := pgChain(b, "QPBDECSHFX")
	switch last[0] {
	case 'Q':
		return n == 1 && len(b) > 6 && b[len(b)-1] == 0
	case 'S', 'H':
		return n > 1 && len(last) == 5
	}
	return false
}

// certainPgAnswer tells answers from chance: messages that fill the segment, the last of which is ReadyForQuery.
func certainPgAnswer(b []byte) bool {
	n, last := pgChain(b, "RSKZTDCEINAG123nstdcHVW")
	return n > 1 && last[0] == 'Z' && len(last) == 6 && bytes.IndexByte([]byte("ITE"), last[5]) >= 0
}

// endsReady tells whether the bytes end with ReadyForQuery.
func endsReady(b []byte) bool {
	return len(b) >= 6 && bytes.Equal(b[len(b)-6:len(b)-1], []byte{'Z', 0, 0, 0, 5})
}

// pgChain gives the number of messages that fill b, and the last one; 0 if they do not.
func pgChain(b []byte, types string) (n int, last []byte) {
	for len(b) > 0 {
		if len(b) < 5 || bytes.IndexByte([]byte(types), b[0]) < 0 {
			return 0, []byte{0}
		}
		size := binary.BigEndian.Uint32(b[1:])
		if size < 4 || uint64(size)+1 > uint64(len(b)) {
			return 0, []byte{0}
		}
		last, b = b[:size+1], b[size+1:]
		n++
	}
	if n == 0 {
		last = []byte{0}
	}
	return n, last
}

func (d *pgDecoder) FromClient(b []byte, at int64) error {
	d.Seen = at
	if d.starts && len(b) > 0 && b[0] == tlsHandshake && len(d.client.buf) == 0 { // TLS that nobody asked for (sslnegotiation=direct)
		d.dark = true
	}
	if d.dark || d.cancel {
		return d.hidden()
	}
	for len(b) > 0 || len(d.client.buf) > 0 {
		if d.starts {
			msg, rest, ok := d.client.plain(b)
			if !ok {
				return nil
			}
			b = rest
			if err := d.startup(msg); err != nil {
				return err
			}
			if d.asked || d.cancel {
				return nil
			}
			continue
		}
		kind, body, rest, ok := d.client.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.request(kind, body, at); err != nil {
			return err
		}
	}
	return nil
}

// plain gives a message without type.
func (s *pgStream) plain(b []byte) (msg, rest []byte, ok bool) {
	s.buf = append(s.buf, b...)
	if len(s.buf) < 4 {
		return nil, nil, false
	}
	n := int(binary.BigEndian.Uint32(s.buf))
	if n < 8 || n > 10000 {
		s.buf = nil
		return nil, nil, false
	}
	if len(s.buf) < n {
		return nil, nil, false
	}
	msg, rest = s.buf[4:n], s.buf[n:]
	s.buf = nil
	return msg, rest, true
}

// message gives the next message. The body of one that is too large, or of no interest, is nil.
func (s *pgStream) message(b []byte) (kind byte, body, rest []byte, ok bool) {
	if s.skip > 0 {
		n := min(s.skip, len(b))
		s.skip -= n
		b = b[n:]
		if s.skip > 0 {
			return 0, nil, nil, false
		}
	}
	if len(s.buf) > 0 {
		s.buf = append(s.buf, b...)
		b = s.buf
	}
	n := 0
	if len(b) >= 5 {
		n = int(binary.BigEndian.Uint32(b[1:]))
	}
	switch {
	case len(b) < 5:
		s.hold(b, 64)
		return 0, nil, nil, false
	case n < 4:
		s.buf = nil
		return 0, nil, nil, false // no message: what follows makes no sense either, until something does
	case (n > maxMessage || b[0] == 'd') && len(b) < 1+n:
		s.skip, s.buf, s.head = 1+n-len(b), nil, nil
		if b[0] == 'Q' || b[0] == 'P' {
			s.head = slices.Clone(b[5:])
		}
		return b[0], nil, nil, true
	case len(b) < 1+n:
		s.hold(b, 1+n)
		return 0, nil, nil, false
	}
	s.buf = nil
	if n > maxMessage || b[0] == 'd' {
		return b[0], nil, b[1+n:], true
	}
	return b[0], b[5 : 1+n], b[1+n:], true
}

// hold keeps what is there of a message of a length.
func (s *pgStream) hold(b []byte, length int) {
	if len(s.buf) == 0 {
		s.buf = append(make([]byte, 0, max(len(b), min(length, 1<<20))), b...)
	}
}

func (d *pgDecoder) startup(msg []byte) error {
	c := cursor{b: msg}
	switch code := uint32(c.int32()); code {
	case 80877103, 80877104:
		d.asked = true
		return nil
	case 80877102:
		d.cancel = true
		return nil
	}
	d.starts = false
	d.Transaction.Status = trace.StatusIdle
	for len(c.b) > 1 && !c.bad {
		key, value := c.text(), c.text()
		switch key {
		case "user":
			d.Info.User = value
		case "database":
			d.Info.Database = value
		case "application_name":
			d.Info.Application = value
		}
	}
	if d.Info.Database == "" {
		d.Info.Database = d.Info.User
	}
	return nil
}

func (d *pgDecoder) tell() error { return d.log.Sink.Session(&d.Session) }

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
		d.log.Sink.Other("function calls (fastpath)")
		d.push(&pgOp{kind: 'F'})
	case 'S':
		d.push(&pgOp{kind: 'S'})
	case 'X':
		d.parting = quit
	}
	return nil
}

// text gives a prepared statement, also one that was prepared before anybody looked.
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
	case p == nil: // a cursor of the SQL level, or a portal from before anybody looked
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

func (d *pgDecoder) statement(protocol trace.Protocol, sql string, at int64) *trace.Statement {
	return &trace.Statement{SQL: sql, Protocol: protocol, Start: at, From: d.log.Sink.Tick(), Tags: trace.ParseTags(sql, lex.PostgreSQL)}
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

// tlsHandshake is the first byte of TLS.
const tlsHandshake = 0x16

// hidden tells, once, that the connection went on where nobody could look.
func (d *pgDecoder) hidden() error {
	if !d.dark || d.Info.Encrypted {
		return nil
	}
	d.Info.Encrypted = true
	d.log.Encrypted++
	return d.tell()
}

// secured says that what follows is what TLS has hidden: it begins with a startup message.
func (d *pgDecoder) Encrypted() {
	d.dark, d.asked, d.starts = false, false, true
	d.client, d.server = pgStream{}, pgStream{}
}

// resume follows again after a gap.
func (d *pgDecoder) Resume() { d.sync, d.starts, d.asked, d.dark = false, false, false, false }

// lastWords tells why the connection ends, as far as somebody said it.
func (d *pgDecoder) Reason() string { return d.parting }

func (d *pgDecoder) FromServer(b []byte, at int64) error {
	d.Seen = at
	if d.dark {
		return d.hidden()
	}
	if d.asked && len(b) > 0 {
		d.asked = false
		if b[0] == 'S' || b[0] == 'G' {
			d.dark = true // from the next byte on
			return nil
		}
		if b[0] == 'N' {
			b = b[1:]
		}
	}
	for len(b) > 0 || len(d.server.buf) > 0 {
		kind, body, rest, ok := d.server.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.answer(kind, body, at); err != nil {
			return err
		}
	}
	return nil
}

// head gives the first of the queue if it is of one of these kinds.
func (d *pgDecoder) head(kinds string) *pgOp {
	if len(d.queue) > 0 && bytes.IndexByte([]byte(kinds), d.queue[0].kind) >= 0 {
		return d.queue[0]
	}
	return nil
}

func (d *pgDecoder) pop(kinds string) {
	if d.head(kinds) != nil {
		d.queue = d.queue[1:]
	}
}

// answer takes a message of the server.
func (d *pgDecoder) answer(kind byte, body []byte, at int64) error {
	c := cursor{b: body}
	switch kind {
	case 'S':
		d.parameterStatus(c.text(), c.text())
		return nil
	case 'K':
		d.Info.Backend = strconv.Itoa(c.int32())
		return nil
	case 'Z':
		return d.ready(trace.Status(c.byte()))
	case 'N', 'A':
		return nil
	}
	if d.sync {
		return nil
	}
	switch kind {
	case '1':
		d.pop("P")
	case '2':
		d.pop("B")
	case '3':
		d.pop("C")
	case 't':
		if op := d.head("D"); op != nil && op.prepared != nil {
			op.prepared.types = op.prepared.types[:0]
			for n := c.int16(); n > 0 && !c.bad; n-- {
				op.prepared.types = append(op.prepared.types, uint32(c.int32()))
			}
		}
	case 'T':
		d.description(&c)
	case 'n':
		d.pop("D")
	case 'D':
		d.row(&c, body == nil)
	case 'C':
		return d.complete(c.text(), at)
	case 's', 'I':
		return d.complete("", at)
	case 'V':
		d.pop("F")
	case 'E':
		return d.failed(&c, at)
	case 'G', 'H', 'W':
		d.log.Copies++
	}
	return nil
}

func (d *pgDecoder) parameterStatus(key, value string) {
	switch key {
	case "server_version":
		d.Info.Version = value
	case "application_name":
		d.Info.Application = value
	case "session_authorization":
		if d.Info.User == "" {
			d.Info.User = value
		}
	}
}

// description takes the columns of a result.
func (d *pgDecoder) description(c *cursor) {
	var columns []trace.Column
	for n := c.int16(); n > 0 && !c.bad; n-- {
		col := trace.Column{Name: c.text()}
		c.bytes(6)
		col.Type = pgTypeName(uint32(c.int32()))
		c.bytes(8)
		columns = append(columns, col)
	}
	if op := d.head("D"); op != nil {
		if op.prepared != nil {
			op.prepared.columns = columns
		} else if op.portal != nil {
			op.portal.columns = columns
		}
		d.pop("D")
		return
	}
	if op := d.head("Q"); op != nil {
		d.keep = newKeeper(d.log.Sink.Options, &op.kept)
		d.keep.columns(columns)
	}
}

func (d *pgDecoder) row(c *cursor, large bool) {
	op := d.head("QE")
	if op == nil {
		return
	}
	var formats []int
	var columns []trace.Column
	if p := op.portal; p != nil {
		formats, columns = p.results, p.columns
		if columns == nil {
			columns = p.of.columns
		}
	}
	if d.keep == nil {
		d.keep = newKeeper(d.log.Sink.Options, &op.kept)
		d.keep.columns(columns)
	}
	if large {
		d.keep.row(nil)
		return
	}
	n := c.int16()
	if !slices.Contains(formats, 1) { // as text
		d.cells = d.cells[:0]
		for range max(n, 0) {
			size := c.int32()
			if c.bad {
				return
			}
			var v []byte
			if size >= 0 {
				if v = c.bytes(size); v == nil {
					v = []byte{}
				}
			}
			d.cells = append(d.cells, v)
		}
		d.keep.text(d.cells)
		return
	}
	row := make([]trace.Value, 0, min(max(n, 0), 1600))
	for i := range max(n, 0) {
		size := c.int32()
		if c.bad {
			return
		}
		var raw []byte
		if size >= 0 {
			raw = append([]byte{}, c.bytes(size)...)
		}
		var oid uint32
		if i < len(d.keep.result.Columns) {
			oid = pgTypeOID(d.keep.result.Columns[i].Type)
		}
		row = append(row, pgValue(raw, formatOf(formats, i), oid))
	}
	d.keep.row(row)
}

// complete takes the end of one result.
func (d *pgDecoder) complete(tag string, at int64) error {
	op := d.head("QE")
	if op == nil {
		return nil
	}
	k := d.keep
	d.keep = nil
	if k == nil {
		k = newKeeper(d.log.Sink.Options, &op.kept)
		if p := op.portal; p != nil && (p.columns != nil || p.of.columns != nil) { // no rows
			k.columns(p.columns)
			if p.columns == nil {
				k.columns(p.of.columns)
			}
		}
	}
	r := k.done()
	r.Tag = tag
	r.Affected = tagCount(tag)
	addResult(op.st, r)
	op.st.End, op.st.To = at, d.log.Sink.Tick()
	if op.kind == 'E' {
		d.pop("E")
		return d.done(op)
	}
	return nil
}

// tagCount gives the rows that a command tag says were written.
func tagCount(tag string) int64 {
	var last string
	for _, verb := range []string{"INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "} {
		if len(tag) > len(verb) && tag[:len(verb)] == verb {
			last = tag[strings.LastIndexByte(tag, ' ')+1:]
		}
	}
	if n, err := strconv.ParseInt(last, 10, 64); err == nil {
		return n
	}
	return trace.Unknown
}

// done hands on the statement before, and keeps this one until its status is known.
func (d *pgDecoder) done(op *pgOp) error {
	st := op.st
	d.params(st, op.portal)
	if op.portal == nil && op.kind == 'E' {
		st.NoParams = true
	}
	st.Before = d.Transaction.Status
	st.After = d.Transaction.Done(st.SQL, st.Error)
	d.Executed(st)
	return d.release(st)
}

func (d *pgDecoder) release(next *trace.Statement) error {
	last := d.last
	d.last = next
	if last == nil {
		return nil
	}
	if err := d.tell(); err != nil {
		return err
	}
	return d.log.Sink.Statement(d.Number, last)
}

// failed takes an error. What was sent behind it up to Sync is not executed.
func (d *pgDecoder) failed(c *cursor, at int64) error {
	e := &trace.Error{}
	for !c.bad {
		switch field := c.byte(); field {
		case 0:
			c.bad = true
		case 'C':
			e.Code = c.text()
		case 'M':
			e.Message = c.text()
		default:
			c.text()
		}
	}
	d.keep = nil
	if len(d.queue) == 0 { // the login was refused, or the session is ended
		d.parting = e.Code + " " + e.Message
		return nil
	}
	op := d.queue[0]
	if op.kind == 'Q' {
		op.st.Error, op.st.End, op.st.To = e, at, d.log.Sink.Tick()
		return nil // ReadyForQuery completes it
	}
	culprit := op
	i := 0
	for ; i < len(d.queue) && d.queue[i].kind != 'S' && d.queue[i].kind != 'Q'; i++ {
		if q := d.queue[i]; q.kind == 'E' {
			switch {
			case culprit.st == nil && culprit.executes(q):
				culprit = q
			case q != culprit:
				d.log.Sink.Other("statements skipped after an error in their pipeline")
			}
		}
	}
	d.queue = d.queue[i:]
	if culprit.kind == 'C' || culprit.kind == 'S' || culprit.kind == 'F' {
		return nil
	}
	if culprit.st == nil { // refused before it was executed
		culprit = &pgOp{kind: 'E', portal: culprit.portal, st: d.statement(trace.ProtocolPrepared, "", at), prepared: culprit.prepared}
		p := culprit.prepared
		if p == nil && culprit.portal != nil {
			p = culprit.portal.of
		}
		if p != nil {
			culprit.st.SQL, culprit.st.Name, culprit.st.Lost = p.sql, p.name, !p.known
		}
	}
	culprit.st.Error, culprit.st.End, culprit.st.To = e, at, d.log.Sink.Tick()
	return d.done(culprit)
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

// ready takes ReadyForQuery: everything up to the client's Sync or query has been answered.
func (d *pgDecoder) ready(status trace.Status) error {
	if status != trace.StatusIdle && status != trace.StatusOpen && status != trace.StatusFailed {
		status = trace.StatusUnknown
	}
	if d.sync {
		// What was sent before the gap or before anybody looked is over; what is complete in the queue is not to be had.
		d.sync = false
		d.forget()
	}
	i := slices.IndexFunc(d.queue, func(op *pgOp) bool { return op.kind == 'S' || op.kind == 'Q' || op.kind == 'F' })
	if i >= 0 {
		op := d.queue[i]
		d.queue = d.queue[i+1:]
		if op.kind == 'Q' && op.st.End != 0 {
			if err := d.done(op); err != nil {
				return err
			}
		}
	}
	d.Transaction.Status = status
	if d.last != nil {
		d.last.After = status
	}
	if err := d.tell(); err != nil {
		return err
	}
	return d.release(nil)
}

// forget drops the requests whose answers cannot be told apart any more.
func (d *pgDecoder) forget() {
	for _, op := range d.queue {
		if op.st != nil {
			d.log.Sink.Other("statements next to missing packets, or to where a connection was joined")
		}
	}
	d.queue = nil
}

func (d *pgDecoder) Gap() error {
	d.client, d.server = pgStream{}, pgStream{}
	d.forget()
	d.keep = nil
	d.sync = true
	d.Transaction.Status = trace.StatusUnknown
	return d.release(nil)
}

// flush hands on what the end of the capture left open.
func (d *pgDecoder) Flush() error {
	if err := d.hidden(); err != nil {
		return err
	}
	if err := d.release(nil); err != nil {
		return err
	}
	for _, op := range d.queue {
		if op.st == nil {
			continue
		}
		d.params(op.st, op.portal)
		if err := d.release(op.st); err != nil {
			return err
		}
	}
	d.queue = nil
	if d.cancel {
		return nil
	}
	if err := d.tell(); err != nil {
		return err
	}
	return d.release(nil)
}

func (d *pgDecoder) Close(at int64, reason string) error {
	if d.cancel {
		d.log.Sink.Other("cancel requests")
		return nil
	}
	if err := d.Flush(); err != nil {
		return err
	}
	return d.log.Sink.End(d.Number, &trace.End{At: at, Tick: d.log.Sink.Tick(), Reason: reason})
}
