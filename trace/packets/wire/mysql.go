package wire

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"

	"wirecheck/trace"
	"wirecheck/trace/lex"
	"wirecheck/trace/source"
)

// myDecoder follows a connection in the protocol of the MySQL family (MySQL source documentation, Client/Server Protocol; MariaDB Knowledge
// Base, Client/Server Protocol). How results are framed depends on capabilities that were agreed upon at login; where that was not seen,
// the packets themselves show it.
type myDecoder struct {
	source.Session
	log    *Output
	client myStream
	server myStream
	phase  myPhase
	dark   bool
	// What was agreed upon.
	attributes bool // of queries
	capsKnown  bool
	serverCaps uint32
	clientCaps uint32
	queue      []*myCommand
	texts      map[uint32]*myPrepared
	prepared   uint32   // id of the statement that was prepared last
	cells      [][]byte // of the row that is read
	upload     bool     // the client sends a file
	parting    string   // why it ends, as far as somebody said it
}

type myPhase uint8

const (
	phaseGreeting myPhase = iota // the server's first packet
	phaseLogin                   // the client's answer
	phaseAuth                    // until OK or ERR
	phaseCommand
)

// myPrepared is a prepared statement.
type myPrepared struct {
	sql     string
	params  int // Unknown
	types   []byte
	long    map[int][]byte
	cut     bool // a value in long is not whole
	columns []trace.Column
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
	columns []trace.Column
	defs    []myColumn
	keep    *keeper
	kept    int // bytes of rows
	params  int // of a PREPARE's answer
	id      uint32
}

type myState uint8

const (
	stateFirst   myState = iota // the first packet of an answer, or of its next result
	stateColumns                // definitions of columns
	stateRows
	stateParams        // PREPARE: definitions of parameters
	statePreparedCols  // PREPARE: definitions of columns
	stateMaybeEOF      // EOF between definitions and rows, unless it was agreed to leave it out
	stateMaybeEOFPrep  // the same, behind a PREPARE's parameters
	stateMaybeEOFPrep2 // and behind its columns
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

// Capabilities.
const (
	capCompress   = 1 << 5
	capSSL        = 1 << 11
	capConnectDB  = 1 << 3
	capAttributes = 1 << 20 // of the connection
	capLenencAuth = 1 << 21
	capSecure     = 1 << 15
	capPluginAuth = 1 << 19
	capZstd       = 1 << 26
	capQueryAttrs = 1 << 27
	capNoEOF      = 1 << 24
)

// Status flags of the server.
const (
	statusInTrans     = 1
	statusMoreResults = 8
	statusCursor      = 0x40
)

// myStream puts packets together.
type myStream struct {
	buf  []byte // of a packet that is not complete
	msg  []byte // of a message of several packets
	big  bool   // the message is too large to be looked at
	skip int
	more bool   // the packet that is skipped is not the message's last
	head []byte // the beginning of a message that is too large
}

func newMyDecoder(o *Output, c Connection) *myDecoder {
	d := &myDecoder{log: o, phase: phaseCommand, texts: map[uint32]*myPrepared{}}
	d.Number, d.Info = c.Session, trace.Session{At: c.At, Product: o.Sink.Options.Product, Client: c.Client, Joined: !c.Whole}
	if d.Info.Product == "" && !c.Whole { // else the server's greeting tells it
		d.Info.Product = "mysql"
	}
	d.Transaction.Dialect = lex.MySQL
	if c.Whole {
		d.phase = phaseGreeting
	}
	return d
}

// isGreeting knows the server's first packet: protocol version 10, or an error.
func isGreeting(b []byte) bool {
	return len(b) > 5 && b[3] == 0 && (b[4] == 10 || b[4] == 0xff) && int(b[0])|int(b[1])<<8|int(b[2])<<16 == len(b)-4
}

// isMyRequest tells whether b may begin with a command.
func isMyRequest(b []byte) bool {
	if len(b) < 5 || b[3] != 0 {
		return false
	}
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	return n >= 1 && n+4 >= len(b) && (b[4] <= 0x1f && b[4] >= 1 || b[4] == comBulkExecute)
}

// certainMyRequest tells a request that fills the segment from chance: a query, or the execution of a prepared statement, whose header has a
// small number, a flag and the constant 1.
func certainMyRequest(b []byte) bool {
	n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
	switch {
	case n+4 != len(b) || n < 6:
		return false
	case b[4] == comQuery || b[4] == comPrepare:
		return printable(b[5:min(len(b), 40)])
	}
	return b[4] == comExecute && n >= 10 && b[8] == 0 && b[9] < 16 && binary.LittleEndian.Uint32(b[10:]) == 1
}

func printable(b []byte) bool {
	for _, c := range b {
		if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

// message gives the next message with the sequence number of its last packet; a body of nil is one that is too large.
func (s *myStream) message(b []byte) (seq byte, body, rest []byte, ok bool) {
	for {
		if s.skip > 0 {
			n := min(s.skip, len(b))
			s.skip -= n
			b = b[n:]
			if s.skip > 0 {
				return 0, nil, nil, false
			}
			if !s.more {
				s.big = false
				return 0, nil, b, true
			}
		}
		if len(s.buf) > 0 {
			s.buf = append(s.buf, b...)
			b = s.buf
		}
		if len(b) < 4 {
			s.hold(b, 64)
			return 0, nil, nil, false
		}
		n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		last := n < 0xffffff
		if s.big || len(s.msg)+n > maxMessage {
			have := min(len(b)-4, n)
			if !s.big {
				s.head = append(s.msg, b[4:4+have]...)
			}
			s.big, s.msg, s.buf = true, nil, nil
			s.skip, s.more = n-have, !last
			b = b[4+have:]
			if s.skip > 0 {
				return 0, nil, nil, false
			}
			if last {
				s.big = false
				return 0, nil, b, true
			}
			continue
		}
		if len(b) < 4+n {
			s.hold(b, 4+n)
			return 0, nil, nil, false
		}
		s.buf = nil
		seq, body, b = b[3], b[4:4+n], b[4+n:]
		if last && s.msg == nil {
			return seq, body, b, true
		}
		s.msg = append(s.msg, body...)
		if last {
			body, s.msg = s.msg, nil
			return seq, body, b, true
		}
	}
}

func (s *myStream) hold(b []byte, length int) {
	if len(s.buf) == 0 {
		s.buf = append(make([]byte, 0, max(len(b), min(length, 1<<20))), b...)
	}
}

// hidden tells, once, that the connection went on where nobody could look.
func (d *myDecoder) hidden() error {
	if !d.dark || d.Info.Encrypted || d.phase != phaseLogin {
		return nil
	}
	d.Info.Encrypted = true
	d.log.Encrypted++
	return d.tell()
}

// secured says that what follows is what TLS has hidden: it begins with the client's login.
func (d *myDecoder) Encrypted() {
	d.dark = false
	d.client, d.server = myStream{}, myStream{}
}

// resume follows again after a gap.
func (d *myDecoder) Resume() { d.phase, d.dark = phaseCommand, false }

// lastWords tells why the connection ends, as far as somebody said it.
func (d *myDecoder) Reason() string { return d.parting }

func (d *myDecoder) FromClient(b []byte, at int64) error {
	d.Seen = at
	if d.dark {
		return d.hidden()
	}
	for !d.dark && (len(b) > 0 || len(d.client.buf) > 0) {
		seq, body, rest, ok := d.client.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.request(seq, body, at); err != nil {
			return err
		}
	}
	return nil
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
	st := d.statement(trace.ProtocolUnknown, "", at)
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

// login takes the client's answer to the greeting.
func (d *myDecoder) login(body []byte) error {
	c := cursor{b: body}
	caps := uint32(c.little(4))
	c.bytes(28)
	d.clientCaps, d.capsKnown = caps, true
	if caps&capSSL != 0 && len(body) <= 32 {
		d.dark = true // from the next byte on
		return nil
	}
	d.phase = phaseAuth
	d.attributes = caps&d.serverCaps&capQueryAttrs != 0
	if caps&d.serverCaps&(capCompress|capZstd) != 0 {
		d.dark = true
		d.log.Compressed++
	}
	d.who(&c, caps)
	return d.tell()
}

func (d *myDecoder) who(c *cursor, caps uint32) {
	d.Info.User = c.text()
	switch {
	case caps&capLenencAuth != 0:
		c.lenencBytes()
	case caps&capSecure != 0:
		c.bytes(int(c.byte()))
	default:
		c.untilZero()
	}
	if caps&capConnectDB != 0 {
		d.Info.Database = c.text()
	}
	if caps&capPluginAuth != 0 {
		c.text()
	}
	if caps&capAttributes != 0 {
		d.connectAttributes(c)
	}
}

func (d *myDecoder) connectAttributes(c *cursor) {
	all, _ := c.lenencBytes()
	in := cursor{b: all}
	for len(in.b) > 0 && !in.bad {
		key, _ := in.lenencBytes()
		value, _ := in.lenencBytes()
		if s := string(key); s == "program_name" || s == "_client_name" && d.Info.Application == "" {
			d.Info.Application = string(value)
		}
	}
}

func (d *myDecoder) push(c *myCommand) {
	if len(d.queue) < 1<<16 {
		d.queue = append(d.queue, c)
	}
}

func (d *myDecoder) statement(protocol trace.Protocol, sql string, at int64) *trace.Statement {
	return &trace.Statement{SQL: sql, Protocol: protocol, Start: at, From: d.log.Sink.Tick(), Before: d.Transaction.Status, Tags: trace.ParseTags(sql, lex.MySQL)}
}

// command takes a command of the client.
func (d *myDecoder) command(body []byte, at int64) error {
	c := cursor{b: body[1:]}
	switch code := body[0]; code {
	case comQuit, comLongData, comClose: // not answered
		d.unanswered(code, &c)
	case comQuery:
		st := d.statement(trace.ProtocolSimple, "", at)
		if d.attributes {
			d.queryAttributes(&c)
		}
		st.SQL = string(c.b)
		st.Tags = trace.ParseTags(st.SQL, lex.MySQL)
		d.push(&myCommand{code: code, st: st})
	case comPrepare:
		d.push(&myCommand{code: code, text: string(c.b), st: d.statement(trace.ProtocolPrepared, string(c.b), at)})
	case comExecute, comBulkExecute:
		d.execute(code, &c, at)
	case comFetch:
		id := uint32(c.little(4))
		st := d.statement(trace.ProtocolFetch, "", at)
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
		d.dark = true // a replica; events without end follow
		d.log.Sink.Other("replication streams")
	default:
		d.push(&myCommand{code: code})
	}
	return nil
}

func (d *myDecoder) unanswered(code byte, c *cursor) {
	switch id := uint32(c.little(4)); code {
	case comQuit:
		d.parting = quit
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

// queryAttributes passes over the attributes in front of a COM_QUERY's text.
func (d *myDecoder) queryAttributes(c *cursor) {
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
	st := d.statement(trace.ProtocolPrepared, "", at)
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
	if d.attributes && (n > 0 || flags&8 != 0) {
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
		d.executeParams(c, st, p, n, names)
	}
	p.long, p.cut = nil, false
}

func (d *myDecoder) executeParams(c *cursor, st *trace.Statement, p *myPrepared, n int, names bool) {
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

func (d *myDecoder) FromServer(b []byte, at int64) error {
	d.Seen = at
	if d.dark {
		return d.hidden()
	}
	for !d.dark && (len(b) > 0 || len(d.server.buf) > 0) {
		_, body, rest, ok := d.server.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := d.answer(body, at); err != nil {
			return err
		}
	}
	return nil
}

func (d *myDecoder) answer(body []byte, at int64) error {
	switch d.phase {
	case phaseGreeting:
		return d.greeting(body)
	case phaseLogin:
		return nil
	case phaseAuth:
		switch {
		case len(body) > 0 && body[0] == 0:
			d.phase = phaseCommand
			c := cursor{b: body[1:]}
			d.okStatus(&c)
		case len(body) > 0 && body[0] == 0xff:
			e := myError(body)
			d.parting = e.Code + " " + e.Message
		}
		return nil
	}
	if len(d.queue) == 0 {
		if len(body) > 0 && body[0] == 0xff { // the session is ended
			e := myError(body)
			d.parting = e.Code + " " + e.Message
		}
		return nil
	}
	c := d.queue[0]
	if body == nil {
		if (c.state == stateRows || c.state == stateMaybeEOF) && c.keep != nil {
			c.state = stateRows
			c.keep.row(nil)
		}
		return nil
	}
	if len(body) == 0 || isProgress(body) {
		return nil
	}
	return d.step(c, body, at)
}

func (d *myDecoder) greeting(body []byte) error {
	c := cursor{b: body}
	if c.byte() != 10 { // too many connections, and the like
		d.phase = phaseAuth
		return nil
	}
	d.Info.Version = c.text()
	d.Info.Product = source.ProductOf(d.Info.Version)
	if d.Info.Product == "mariadb" {
		d.Info.Version = strings.TrimPrefix(d.Info.Version, "5.5.5-") // for replicas of old, which know no larger number
	}
	d.Info.Backend = strconv.FormatUint(c.little(4), 10)
	c.bytes(9)
	caps := c.little(2)
	c.bytes(3)
	d.serverCaps = uint32(caps | c.little(2)<<16)
	d.phase = phaseLogin
	return nil
}

// okStatus reads the rest of an OK packet: affected rows, last id, status.
func (d *myDecoder) okStatus(c *cursor) (affected int64, status int) {
	n, _ := c.lenenc()
	c.lenenc()
	status = int(c.little(2))
	if !c.bad {
		d.setStatus(status)
	}
	return int64(min(n, 1<<62)), status
}

func (d *myDecoder) setStatus(status int) {
	d.Transaction.Status = trace.StatusIdle
	if status&statusInTrans != 0 {
		d.Transaction.Status = trace.StatusOpen
	}
}

// step takes a packet of the answer to c.
func (d *myDecoder) step(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xff && (c.state == stateFirst || c.state == stateRows || c.state == stateMaybeEOF) {
		return d.refused(c, body, at)
	}
	switch c.state {
	case stateFirst:
		return d.first(c, body, at)
	case stateColumns:
		d.column(c, body)
		if c.left--; c.left == 0 {
			c.state = stateMaybeEOF
		}
	case stateMaybeEOF:
		c.state = stateRows
		if body[0] == 0xfe && len(body) == 5 {
			if status := int(binary.LittleEndian.Uint16(body[3:])); status&statusCursor != 0 {
				d.setStatus(status)
				return d.result(c, at, status)
			}
			return nil
		}
		return d.rows(c, body, at)
	case stateRows:
		return d.rows(c, body, at)
	case stateParams, stateMaybeEOFPrep, statePreparedCols, stateMaybeEOFPrep2:
		return d.preparing(c, body, at)
	}
	return nil
}

// first takes the first packet of an answer.
func (d *myDecoder) first(c *myCommand, body []byte, at int64) error {
	in := cursor{b: body[1:]}
	switch {
	case c.code == comPrepare:
		return d.preparedAnswer(c, &in, at)
	case c.code == comFieldList:
		if body[0] == 0xfe && len(body) < 9 {
			d.pop()
		}
		return nil
	case c.code == comChangeUser && body[0] != 0: // authentication goes on
		return nil
	case c.st == nil: // everything else is answered by one packet
		if body[0] == 0 {
			d.okStatus(&in)
			d.changed(c)
		}
		d.pop()
		if c.code == comInitDB || c.code == comChangeUser || c.code == comResetConn {
			return d.tell()
		}
		return nil
	case body[0] == 0:
		affected, status := d.okStatus(&in)
		c.keep = newKeeper(d.log.Sink.Options, &c.kept)
		c.keep.result.Affected = affected
		return d.result(c, at, status)
	case body[0] == 0xfb:
		d.upload = true
		d.log.Copies++
		return nil
	}
	d.resultSet(c, body)
	return nil
}

// changed takes what commands other than statements change.
func (d *myDecoder) changed(c *myCommand) {
	switch c.code {
	case comInitDB:
		d.Info.Database = c.text
	case comChangeUser:
		d.Info.User = c.text
		clear(d.texts)
	case comResetConn:
		clear(d.texts)
	}
}

// resultSet takes the number of columns. MariaDB may leave the definitions out that the client has already.
func (d *myDecoder) resultSet(c *myCommand, body []byte) {
	in := cursor{b: body}
	n, _ := in.lenenc()
	follows := true
	if len(in.b) == 1 {
		follows = in.byte() != 0
	}
	if n == 0 || n > 1<<16 || in.bad {
		return
	}
	c.columns, c.defs = nil, nil
	c.left, c.state = int(n), stateColumns
	c.keep = newKeeper(d.log.Sink.Options, &c.kept)
	if !follows {
		c.state = stateMaybeEOF
		if c.stmt != nil {
			c.columns, c.defs = c.stmt.columns, c.stmt.defs
		}
		c.keep.columns(c.columns)
	}
}

// column takes the definition of a column: catalog, schema, table, original table, name, original name; at the end, behind what MariaDB may
// add, 12 bytes of fixed length.
func (d *myDecoder) column(c *myCommand, body []byte) {
	in := cursor{b: body}
	for range 4 {
		in.lenencBytes()
	}
	name, _ := in.lenencBytes()
	var def myColumn
	if len(body) >= 12 {
		tail := body[len(body)-12:]
		def = myColumn{kind: tail[6], unsigned: tail[7]&0x20 != 0, decimals: int(tail[9])}
	}
	c.columns = append(c.columns, trace.Column{Name: string(name), Type: myTypeName(def.kind, def.unsigned)})
	c.defs = append(c.defs, def)
	if c.state == stateColumns && c.left == 1 {
		c.keep.columns(c.columns)
		if c.stmt != nil {
			c.stmt.columns, c.stmt.defs = c.columns, c.defs
		}
	}
}

// rows takes a row, or the end of the rows: EOF, or OK with EOF's first byte. A row that begins so is 16 MiB long at least.
func (d *myDecoder) rows(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xfe && len(body) < 0xffffff {
		status := 0
		in := cursor{b: body[1:]}
		if len(body) == 5 {
			in.bytes(2)
			status = int(in.little(2))
			d.setStatus(status)
		} else {
			_, status = d.okStatus(&in)
		}
		return d.result(c, at, status)
	}
	if c.keep == nil {
		c.keep = newKeeper(d.log.Sink.Options, &c.kept)
		c.keep.columns(c.columns)
	}
	if c.binary {
		var ok bool
		if d.cells, ok = myBinaryRow(d.cells[:0], body, c.defs); ok {
			c.keep.text(d.cells)
		} else {
			c.keep.row(nil)
		}
		return nil
	}
	in := cursor{b: body}
	d.cells = d.cells[:0]
	for len(in.b) > 0 {
		v, null := in.lenencBytes()
		if in.bad {
			c.keep.row(nil)
			return nil
		}
		if v == nil && !null {
			v = []byte{}
		}
		d.cells = append(d.cells, v)
	}
	c.keep.text(d.cells)
	return nil
}

// result takes the end of a result; there may be another one.
func (d *myDecoder) result(c *myCommand, at int64, status int) error {
	if c.keep != nil {
		addResult(c.st, c.keep.done())
		c.keep = nil
	}
	if status&statusMoreResults != 0 {
		c.state = stateFirst
		return nil
	}
	return d.done(c, at)
}

func (d *myDecoder) pop() { d.queue = d.queue[1:] }

// done hands on a statement.
func (d *myDecoder) done(c *myCommand, at int64) error {
	d.pop()
	c.st.End, c.st.To = at, d.log.Sink.Tick()
	c.st.After = d.Transaction.Status
	d.Executed(c.st)
	if err := d.tell(); err != nil {
		return err
	}
	return d.log.Sink.Statement(d.Number, c.st)
}

// refused takes an error. It does not tell the transaction's status.
func (d *myDecoder) refused(c *myCommand, body []byte, at int64) error {
	e := myError(body)
	if c.st == nil {
		d.pop()
		return nil
	}
	if c.keep != nil { // it came in the middle of the rows
		addResult(c.st, c.keep.done())
	}
	c.st.Error = e
	d.Transaction.Done(c.st.SQL, e)
	return d.done(c, at)
}

// isProgress knows MariaDB's reports of progress, which look like an error of number 65535 and come before the answer (Knowledge Base,
// Progress Reporting).
func isProgress(body []byte) bool {
	return len(body) > 3 && body[0] == 0xff && body[1] == 0xff && body[2] == 0xff
}

// myError reads an error packet: code, SQLSTATE, message.
func myError(body []byte) *trace.Error {
	in := cursor{b: body[1:]}
	e := &trace.Error{Code: strconv.FormatUint(in.little(2), 10)}
	if len(in.b) > 5 && in.b[0] == '#' {
		e.SQLState = string(in.bytes(6)[1:])
	}
	e.Message = string(in.b)
	return e
}

// preparedAnswer takes the first packet of the answer to a PREPARE: id, number of columns and of parameters.
func (d *myDecoder) preparedAnswer(c *myCommand, in *cursor, at int64) error {
	id := uint32(in.little(4))
	columns, params := int(in.little(2)), int(in.little(2))
	if in.bad {
		d.pop()
		return nil
	}
	p := &myPrepared{sql: c.text, params: params}
	if len(d.texts) < maxNames {
		d.texts[id] = p
	}
	d.prepared = id
	c.id, c.params, c.left, c.stmt = id, params, columns, p
	// EXECUTE may have been sent before this answer (MariaDB).
	for _, later := range d.queue[1:] {
		if later.stmt == nil && later.code == comExecute && later.st.Lost {
			later.stmt, later.st.SQL, later.st.Lost, later.st.Tags = p, p.sql, false, c.st.Tags
			later.st.NoParams = params > 0
		}
	}
	switch {
	case params > 0:
		c.state = stateParams
	case columns > 0:
		c.state = statePreparedCols
	default:
		d.pop()
	}
	return nil
}

// preparing takes the rest of that answer. Whether EOF stands behind the definitions shows when it does; its absence shows by the login, or
// by the next packet.
func (d *myDecoder) preparing(c *myCommand, body []byte, at int64) error {
	isEOF := body[0] == 0xfe && len(body) == 5
	switch c.state {
	case stateParams:
		if c.params--; c.params > 0 {
			return nil
		}
		c.state = stateMaybeEOFPrep
		if d.noEOF() {
			d.afterParams(c)
		}
		return nil
	case stateMaybeEOFPrep:
		d.afterParams(c)
		if isEOF {
			return nil
		}
		if c.state == statePreparedCols {
			return d.preparing(c, body, at)
		}
		return d.answer(body, at) // of the next command
	case statePreparedCols:
		d.column(c, body)
		if c.left--; c.left > 0 {
			return nil
		}
		c.stmt.columns, c.stmt.defs = c.columns, c.defs
		c.state = stateMaybeEOFPrep2
		if d.noEOF() {
			d.pop()
		}
		return nil
	}
	d.pop()
	if isEOF {
		return nil
	}
	return d.answer(body, at)
}

func (d *myDecoder) afterParams(c *myCommand) {
	if c.left > 0 {
		c.state = statePreparedCols
		return
	}
	d.pop()
}

// noEOF tells that both sides agreed to leave EOF out (CLIENT_DEPRECATE_EOF).
func (d *myDecoder) noEOF() bool { return d.capsKnown && d.serverCaps&d.clientCaps&capNoEOF != 0 }

func (d *myDecoder) tell() error { return d.log.Sink.Session(&d.Session) }

func (d *myDecoder) Gap() error {
	d.client, d.server = myStream{}, myStream{}
	for _, c := range d.queue {
		if c.st != nil {
			d.log.Sink.Other("statements next to missing packets, or to where a connection was joined")
		}
	}
	d.queue = nil
	d.upload = false
	d.Transaction.Status = trace.StatusUnknown
	return nil
}

func (d *myDecoder) Flush() error {
	if err := d.hidden(); err != nil {
		return err
	}
	if err := d.tell(); err != nil {
		return err
	}
	for _, c := range d.queue {
		if c.st == nil || c.code == comPrepare {
			continue
		}
		if err := d.log.Sink.Statement(d.Number, c.st); err != nil {
			return err
		}
	}
	d.queue = nil
	return nil
}

func (d *myDecoder) Close(at int64, reason string) error {
	if err := d.Flush(); err != nil {
		return err
	}
	return d.log.Sink.End(d.Number, &trace.End{At: at, Tick: d.log.Sink.Tick(), Reason: reason})
}
