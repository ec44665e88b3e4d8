package trace

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
)

// pgTalk follows a connection in PostgreSQL's protocol (PostgreSQL manual, chapter 55, Frontend/Backend Protocol).
type pgTalk struct {
	log     *floor
	number  uint64
	info    Session
	told    Session
	seen    int64
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
	follow  follower
	last    *Statement // complete; ReadyForQuery tells the status after it
	cancel  bool
	cells   [][]byte // of the row that is read
	parting string   // why it ends, as far as somebody said it
}

// pgOp is a message of the client that waits for its answer.
type pgOp struct {
	kind     byte // Q, P, B, D, E, C, F, S
	st       *Statement
	prepared *pgPrepared
	portal   *pgPortal
}

// pgPrepared is a prepared statement.
type pgPrepared struct {
	name    string
	sql     string
	known   bool
	types   []uint32
	columns []Column
}

// pgPortal is a bound statement.
type pgPortal struct {
	of      *pgPrepared
	formats []int    // of parameters
	raw     [][]byte // parameters as they came, nil is NULL
	results []int    // formats of result columns
	columns []Column
	ran     bool
}

// pgStream splits a direction into messages.
type pgStream struct {
	buf  []byte
	skip int    // bytes of a message that is not looked at
	head []byte // its beginning
}

// maxMessage is the largest message that is looked at; of larger ones nothing is kept.
const maxMessage = MaxText + 1<<20

// maxNames bounds the prepared statements and portals that a connection may have.
const maxNames = 1 << 16

// newPgTalk follows a connection. One that was joined late is understood from the first request on if nothing seems to be under way.
func newPgTalk(l *floor, number uint64, client string, at int64, whole, request bool) *pgTalk {
	t := &pgTalk{log: l, number: number, starts: whole, sync: !whole && !request, texts: map[string]*pgPrepared{}, portals: map[string]*pgPortal{}}
	t.info = Session{At: at, Product: "postgres", Client: client, Joined: !whole}
	t.follow.dialect = PostgreSQL
	return t
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

func (t *pgTalk) fromClient(b []byte, at int64) error {
	t.seen = at
	if t.starts && len(b) > 0 && b[0] == tlsHandshake && len(t.client.buf) == 0 { // TLS that nobody asked for (sslnegotiation=direct)
		t.dark = true
	}
	if t.dark || t.cancel {
		return t.hidden()
	}
	for len(b) > 0 || len(t.client.buf) > 0 {
		if t.starts {
			msg, rest, ok := t.client.plain(b)
			if !ok {
				return nil
			}
			b = rest
			if err := t.startup(msg); err != nil {
				return err
			}
			if t.asked || t.cancel {
				return nil
			}
			continue
		}
		kind, body, rest, ok := t.client.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := t.request(kind, body, at); err != nil {
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

func (t *pgTalk) startup(msg []byte) error {
	c := cursor{b: msg}
	switch code := uint32(c.int32()); code {
	case 80877103, 80877104:
		t.asked = true
		return nil
	case 80877102:
		t.cancel = true
		return nil
	}
	t.starts = false
	t.follow.status = StatusIdle
	for len(c.b) > 1 && !c.bad {
		key, value := c.text(), c.text()
		switch key {
		case "user":
			t.info.User = value
		case "database":
			t.info.Database = value
		case "application_name":
			t.info.Application = value
		}
	}
	if t.info.Database == "" {
		t.info.Database = t.info.User
	}
	return nil
}

func (t *pgTalk) tell() error {
	if t.info == t.told {
		return nil
	}
	if t.told != (Session{}) {
		t.info.At = t.seen // when more became known
	}
	t.told = t.info
	info := t.info
	return t.log.out.session(t.number, &info)
}

// push queues what waits for an answer. A queue without end is a connection that was not understood.
func (t *pgTalk) push(op *pgOp) {
	if len(t.queue) < 1<<16 {
		t.queue = append(t.queue, op)
	}
}

// request takes a message of the client.
func (t *pgTalk) request(kind byte, body []byte, at int64) error {
	c := cursor{b: body}
	if body == nil { // too large to be looked at
		c.b = append(t.client.head, 0)
	}
	switch kind {
	case 'Q':
		st := t.statement(ProtocolSimple, c.text(), at)
		st.Lost = body == nil
		t.push(&pgOp{kind: 'Q', st: st})
	case 'P':
		p := &pgPrepared{name: c.text(), known: body != nil}
		p.sql = c.text()
		for n := c.int16(); n > 0 && !c.bad; n-- {
			p.types = append(p.types, uint32(c.int32()))
		}
		if len(t.texts) < maxNames {
			t.texts[p.name] = p
		}
		t.push(&pgOp{kind: 'P', prepared: p})
	case 'B':
		t.bind(&c)
	case 'D':
		op := &pgOp{kind: 'D'}
		if what, name := c.byte(), c.text(); what == 'S' {
			op.prepared = t.text(name)
		} else {
			op.portal = t.portals[name]
		}
		t.push(op)
	case 'E':
		t.execute(c.text(), at)
	case 'C':
		if what, name := c.byte(), c.text(); what == 'S' {
			delete(t.texts, name)
		} else {
			delete(t.portals, name)
		}
		t.push(&pgOp{kind: 'C'})
	case 'F':
		t.log.out.other("function calls (fastpath)")
		t.push(&pgOp{kind: 'F'})
	case 'S':
		t.push(&pgOp{kind: 'S'})
	case 'X':
		t.parting = quit
	}
	return nil
}

// text gives a prepared statement, also one that was prepared before anybody looked.
func (t *pgTalk) text(name string) *pgPrepared {
	p := t.texts[name]
	if p == nil {
		p = &pgPrepared{name: name}
		if len(t.texts) < maxNames {
			t.texts[name] = p
		}
	}
	return p
}

func (t *pgTalk) bind(c *cursor) {
	name := c.text()
	p := &pgPortal{of: t.text(c.text())}
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
	if len(t.portals) < maxNames {
		t.portals[name] = p
	}
	t.push(&pgOp{kind: 'B', portal: p})
}

func (t *pgTalk) execute(name string, at int64) {
	p := t.portals[name]
	st := t.statement(ProtocolPrepared, "", at)
	op := &pgOp{kind: 'E', st: st, portal: p}
	switch {
	case p == nil: // a cursor of the SQL level, or a portal from before anybody looked
		st.Lost = true
	default:
		st.SQL, st.Name, st.Lost = p.of.sql, p.of.name, !p.of.known
		st.Tags = ParseTags(st.SQL, PostgreSQL)
		if p.ran {
			st.Protocol = ProtocolFetch
		}
		p.ran = true
	}
	t.push(op)
}

func (t *pgTalk) statement(protocol Protocol, sql string, at int64) *Statement {
	return &Statement{SQL: sql, Protocol: protocol, Start: at, From: t.log.out.tick(), Tags: ParseTags(sql, PostgreSQL)}
}

// params reads a portal's parameters. Their types may have become known after Bind was sent.
func (t *pgTalk) params(st *Statement, p *pgPortal) {
	if p == nil || st.Params != nil {
		return
	}
	for i, raw := range p.raw {
		var oid uint32
		if i < len(p.of.types) {
			oid = p.of.types[i]
		}
		v := pgValue(raw, formatOf(p.formats, i), oid)
		st.Params = append(st.Params, Param{Type: pgTypeName(oid), Null: v.Null, Binary: v.Binary, Value: v.Text})
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
func (t *pgTalk) hidden() error {
	if !t.dark || t.info.Encrypted {
		return nil
	}
	t.info.Encrypted = true
	t.log.encrypt++
	return t.tell()
}

// secured says that what follows is what TLS has hidden: it begins with a startup message.
func (t *pgTalk) secured() {
	t.dark, t.asked, t.starts = false, false, true
	t.client, t.server = pgStream{}, pgStream{}
}

// resume follows again after a gap.
func (t *pgTalk) resume() { t.sync, t.starts, t.asked, t.dark = false, false, false, false }

// lastWords tells why the connection ends, as far as somebody said it.
func (t *pgTalk) lastWords() string { return t.parting }

func (t *pgTalk) fromServer(b []byte, at int64) error {
	t.seen = at
	if t.dark {
		return t.hidden()
	}
	if t.asked && len(b) > 0 {
		t.asked = false
		if b[0] == 'S' || b[0] == 'G' {
			t.dark = true // from the next byte on
			return nil
		}
		if b[0] == 'N' {
			b = b[1:]
		}
	}
	for len(b) > 0 || len(t.server.buf) > 0 {
		kind, body, rest, ok := t.server.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := t.answer(kind, body, at); err != nil {
			return err
		}
	}
	return nil
}

// head gives the first of the queue if it is of one of these kinds.
func (t *pgTalk) head(kinds string) *pgOp {
	if len(t.queue) > 0 && bytes.IndexByte([]byte(kinds), t.queue[0].kind) >= 0 {
		return t.queue[0]
	}
	return nil
}

func (t *pgTalk) pop(kinds string) {
	if t.head(kinds) != nil {
		t.queue = t.queue[1:]
	}
}

// answer takes a message of the server.
func (t *pgTalk) answer(kind byte, body []byte, at int64) error {
	c := cursor{b: body}
	switch kind {
	case 'S':
		t.parameterStatus(c.text(), c.text())
		return nil
	case 'K':
		t.info.Backend = strconv.Itoa(c.int32())
		return nil
	case 'Z':
		return t.ready(Status(c.byte()))
	case 'N', 'A':
		return nil
	}
	if t.sync {
		return nil
	}
	switch kind {
	case '1':
		t.pop("P")
	case '2':
		t.pop("B")
	case '3':
		t.pop("C")
	case 't':
		if op := t.head("D"); op != nil && op.prepared != nil {
			op.prepared.types = op.prepared.types[:0]
			for n := c.int16(); n > 0 && !c.bad; n-- {
				op.prepared.types = append(op.prepared.types, uint32(c.int32()))
			}
		}
	case 'T':
		t.description(&c)
	case 'n':
		t.pop("D")
	case 'D':
		t.row(&c, body == nil)
	case 'C':
		return t.complete(c.text(), at)
	case 's', 'I':
		return t.complete("", at)
	case 'V':
		t.pop("F")
	case 'E':
		return t.failed(&c, at)
	case 'G', 'H', 'W':
		t.log.copies++
	}
	return nil
}

func (t *pgTalk) parameterStatus(key, value string) {
	switch key {
	case "server_version":
		t.info.Version = value
	case "application_name":
		t.info.Application = value
	case "session_authorization":
		if t.info.User == "" {
			t.info.User = value
		}
	}
}

// description takes the columns of a result.
func (t *pgTalk) description(c *cursor) {
	var columns []Column
	for n := c.int16(); n > 0 && !c.bad; n-- {
		col := Column{Name: c.text()}
		c.bytes(6)
		col.Type = pgTypeName(uint32(c.int32()))
		c.bytes(8)
		columns = append(columns, col)
	}
	if op := t.head("D"); op != nil {
		if op.prepared != nil {
			op.prepared.columns = columns
		} else if op.portal != nil {
			op.portal.columns = columns
		}
		t.pop("D")
		return
	}
	if op := t.head("Q"); op != nil {
		t.keep = newKeeper(t.log.out.o, op.st.Results)
		t.keep.columns(columns)
	}
}

func (t *pgTalk) row(c *cursor, large bool) {
	op := t.head("QE")
	if op == nil {
		return
	}
	var formats []int
	var columns []Column
	if p := op.portal; p != nil {
		formats, columns = p.results, p.columns
		if columns == nil {
			columns = p.of.columns
		}
	}
	if t.keep == nil {
		t.keep = newKeeper(t.log.out.o, op.st.Results)
		t.keep.columns(columns)
	}
	if large {
		t.keep.row(nil)
		return
	}
	n := c.int16()
	if !slices.Contains(formats, 1) { // as text
		t.cells = t.cells[:0]
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
			t.cells = append(t.cells, v)
		}
		t.keep.text(t.cells)
		return
	}
	row := make([]Value, 0, min(max(n, 0), 1600))
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
		if i < len(t.keep.result.Columns) {
			oid = pgTypeOID(t.keep.result.Columns[i].Type)
		}
		row = append(row, pgValue(raw, formatOf(formats, i), oid))
	}
	t.keep.row(row)
}

// complete takes the end of one result.
func (t *pgTalk) complete(tag string, at int64) error {
	op := t.head("QE")
	if op == nil {
		return nil
	}
	k := t.keep
	t.keep = nil
	if k == nil {
		k = newKeeper(t.log.out.o, op.st.Results)
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
	op.st.End, op.st.To = at, t.log.out.tick()
	if op.kind == 'E' {
		t.pop("E")
		return t.done(op)
	}
	return nil
}

// tagCount gives the rows that a command tag says were written.
func tagCount(tag string) int64 {
	var last string
	for _, verb := range []string{"INSERT ", "UPDATE ", "DELETE ", "MERGE ", "COPY "} {
		if len(tag) > len(verb) && tag[:len(verb)] == verb {
			_, last, _ = cutLast(tag, " ")
		}
	}
	if n, err := strconv.ParseInt(last, 10, 64); err == nil {
		return n
	}
	return Unknown
}

// done hands on the statement before, and keeps this one until its status is known.
func (t *pgTalk) done(op *pgOp) error {
	st := op.st
	t.params(st, op.portal)
	if op.portal == nil && op.kind == 'E' {
		st.NoParams = true
	}
	st.Before = t.follow.status
	st.After = t.follow.done(st.SQL, st.Error)
	if level := levelOf(st.SQL, PostgreSQL); level != "" && st.Error == nil {
		t.info.Level = level
	}
	return t.release(st)
}

func (t *pgTalk) release(next *Statement) error {
	last := t.last
	t.last = next
	if last == nil {
		return nil
	}
	if err := t.tell(); err != nil {
		return err
	}
	return t.log.out.statement(t.number, last)
}

// failed takes an error. What was sent behind it up to Sync is not executed.
func (t *pgTalk) failed(c *cursor, at int64) error {
	e := &Error{}
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
	t.keep = nil
	if len(t.queue) == 0 { // the login was refused, or the session is ended
		t.parting = e.Code + " " + e.Message
		return nil
	}
	op := t.queue[0]
	if op.kind == 'Q' {
		op.st.Error, op.st.End, op.st.To = e, at, t.log.out.tick()
		return nil // ReadyForQuery completes it
	}
	culprit := op
	i := 0
	for ; i < len(t.queue) && t.queue[i].kind != 'S' && t.queue[i].kind != 'Q'; i++ {
		if q := t.queue[i]; q.kind == 'E' {
			switch {
			case culprit.st == nil && culprit.executes(q):
				culprit = q
			case q != culprit:
				t.log.out.other("statements skipped after an error in their pipeline")
			}
		}
	}
	t.queue = t.queue[i:]
	if culprit.kind == 'C' || culprit.kind == 'S' || culprit.kind == 'F' {
		return nil
	}
	if culprit.st == nil { // refused before it was executed
		culprit = &pgOp{kind: 'E', portal: culprit.portal, st: t.statement(ProtocolPrepared, "", at), prepared: culprit.prepared}
		p := culprit.prepared
		if p == nil && culprit.portal != nil {
			p = culprit.portal.of
		}
		if p != nil {
			culprit.st.SQL, culprit.st.Name, culprit.st.Lost = p.sql, p.name, !p.known
		}
	}
	culprit.st.Error, culprit.st.End, culprit.st.To = e, at, t.log.out.tick()
	return t.done(culprit)
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
func (t *pgTalk) ready(status Status) error {
	if status != StatusIdle && status != StatusOpen && status != StatusFailed {
		status = StatusUnknown
	}
	if t.sync {
		// What was sent before the gap or before anybody looked is over; what is complete in the queue is not to be had.
		t.sync = false
		t.forget()
	}
	i := slices.IndexFunc(t.queue, func(op *pgOp) bool { return op.kind == 'S' || op.kind == 'Q' || op.kind == 'F' })
	if i >= 0 {
		op := t.queue[i]
		t.queue = t.queue[i+1:]
		if op.kind == 'Q' && op.st.End != 0 {
			if err := t.done(op); err != nil {
				return err
			}
		}
	}
	t.follow.status = status
	if t.last != nil {
		t.last.After = status
	}
	if err := t.tell(); err != nil {
		return err
	}
	return t.release(nil)
}

// forget drops the requests whose answers cannot be told apart any more.
func (t *pgTalk) forget() {
	for _, op := range t.queue {
		if op.st != nil {
			t.log.out.other("statements next to missing packets, or to where a connection was joined")
		}
	}
	t.queue = nil
}

func (t *pgTalk) gap() error {
	t.client, t.server = pgStream{}, pgStream{}
	t.forget()
	t.keep = nil
	t.sync = true
	t.follow.status = StatusUnknown
	return t.release(nil)
}

// flush hands on what the end of the capture left open.
func (t *pgTalk) flush() error {
	if err := t.hidden(); err != nil {
		return err
	}
	if err := t.release(nil); err != nil {
		return err
	}
	for _, op := range t.queue {
		if op.st == nil {
			continue
		}
		t.params(op.st, op.portal)
		if err := t.release(op.st); err != nil {
			return err
		}
	}
	t.queue = nil
	if t.cancel {
		return nil
	}
	if err := t.tell(); err != nil {
		return err
	}
	return t.release(nil)
}

func (t *pgTalk) close(at int64, reason string) error {
	if t.cancel {
		t.log.out.other("cancel requests")
		return nil
	}
	if err := t.flush(); err != nil {
		return err
	}
	return t.log.out.end(t.number, &End{At: at, Tick: t.log.out.tick(), Reason: reason})
}
