package trace

import (
	"encoding/binary"
	"slices"
	"strconv"
	"strings"
)

// myTalk follows a connection in the protocol of the MySQL family (MySQL source documentation, Client/Server Protocol; MariaDB Knowledge
// Base, Client/Server Protocol). How results are framed depends on capabilities that were agreed upon at login; where that was not seen,
// the packets themselves show it.
type myTalk struct {
	known
	log    *floor
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
	prepared   uint32 // id of the statement that was prepared last
	follow     follower
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
	columns []Column
	defs    []myColumn
}

// myCommand is a command that waits for its answer.
type myCommand struct {
	code    byte
	st      *Statement
	stmt    *myPrepared
	text    string
	state   myState
	left    int // definitions
	binary  bool
	columns []Column
	defs    []myColumn
	keep    *keeper
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

func newMyTalk(l *floor, number uint64, client string, at int64, whole bool) *myTalk {
	t := &myTalk{log: l, phase: phaseCommand, texts: map[uint32]*myPrepared{}}
	t.number, t.info = number, Session{At: at, Product: l.out.o.Product, Client: client, Joined: !whole}
	if t.info.Product == "" && !whole { // else the server's greeting tells it
		t.info.Product = "mysql"
	}
	t.follow.dialect = MySQL
	if whole {
		t.phase = phaseGreeting
	}
	return t
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
func (t *myTalk) hidden() error {
	if !t.dark || t.info.Encrypted || t.phase != phaseLogin {
		return nil
	}
	t.info.Encrypted = true
	t.log.encrypt++
	return t.tell()
}

// secured says that what follows is what TLS has hidden: it begins with the client's login.
func (t *myTalk) secured() {
	t.dark = false
	t.client, t.server = myStream{}, myStream{}
}

// resume follows again after a gap.
func (t *myTalk) resume() { t.phase, t.dark = phaseCommand, false }

// lastWords tells why the connection ends, as far as somebody said it.
func (t *myTalk) lastWords() string { return t.parting }

func (t *myTalk) fromClient(b []byte, at int64) error {
	t.seen = at
	if t.dark {
		return t.hidden()
	}
	for !t.dark && (len(b) > 0 || len(t.client.buf) > 0) {
		seq, body, rest, ok := t.client.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := t.request(seq, body, at); err != nil {
			return err
		}
	}
	return nil
}

func (t *myTalk) request(seq byte, body []byte, at int64) error {
	switch {
	case t.phase == phaseLogin:
		return t.login(body)
	case t.phase != phaseCommand:
		return nil // passwords
	case t.upload:
		t.upload = len(body) > 0 || body == nil
		return nil
	case body == nil:
		return t.large(at)
	case len(body) == 0 || seq != 0 && len(body) < 0xffffff:
		return nil // part of an exchange of passwords (COM_CHANGE_USER)
	}
	return t.command(body, at)
}

// large takes a command that is too large to be looked at: a statement of which the beginning is kept.
func (t *myTalk) large(at int64) error {
	head := t.client.head
	t.client.head = nil
	st := t.statement(ProtocolUnknown, "", at)
	st.Lost = true
	c := &myCommand{code: comQuery, st: st}
	if len(head) > 0 {
		switch head[0] {
		case comQuery:
			st.SQL, st.Protocol = string(head[1:min(len(head), MaxText+1)]), ProtocolSimple
		case comExecute, comBulkExecute:
			c.code, c.binary, st.Protocol, st.NoParams = head[0], true, ProtocolPrepared, true
			in := cursor{b: head[1:]}
			if c.stmt = t.texts[uint32(in.little(4))]; c.stmt != nil {
				st.SQL, st.Lost = c.stmt.sql, false
			}
		case comLongData:
			in := cursor{b: head[1:]}
			if p := t.texts[uint32(in.little(4))]; p != nil {
				p.cut = true
			}
			return nil // it is not answered
		}
	}
	t.push(c)
	return nil
}

// login takes the client's answer to the greeting.
func (t *myTalk) login(body []byte) error {
	c := cursor{b: body}
	caps := uint32(c.little(4))
	c.bytes(28)
	t.clientCaps, t.capsKnown = caps, true
	if caps&capSSL != 0 && len(body) <= 32 {
		t.dark = true // from the next byte on
		return nil
	}
	t.phase = phaseAuth
	t.attributes = caps&t.serverCaps&capQueryAttrs != 0
	if caps&t.serverCaps&(capCompress|capZstd) != 0 {
		t.dark = true
		t.log.packed++
	}
	t.who(&c, caps)
	return t.tell()
}

func (t *myTalk) who(c *cursor, caps uint32) {
	t.info.User = c.text()
	switch {
	case caps&capLenencAuth != 0:
		c.lenencBytes()
	case caps&capSecure != 0:
		c.bytes(int(c.byte()))
	default:
		c.untilZero()
	}
	if caps&capConnectDB != 0 {
		t.info.Database = c.text()
	}
	if caps&capPluginAuth != 0 {
		c.text()
	}
	if caps&capAttributes != 0 {
		t.connectAttributes(c)
	}
}

func (t *myTalk) connectAttributes(c *cursor) {
	all, _ := c.lenencBytes()
	in := cursor{b: all}
	for len(in.b) > 0 && !in.bad {
		key, _ := in.lenencBytes()
		value, _ := in.lenencBytes()
		if s := string(key); s == "program_name" || s == "_client_name" && t.info.Application == "" {
			t.info.Application = string(value)
		}
	}
}

func (t *myTalk) push(c *myCommand) {
	if len(t.queue) < 1<<16 {
		t.queue = append(t.queue, c)
	}
}

func (t *myTalk) statement(protocol Protocol, sql string, at int64) *Statement {
	return &Statement{SQL: sql, Protocol: protocol, Start: at, From: t.log.out.tick(), Before: t.follow.status, Tags: ParseTags(sql, MySQL)}
}

// command takes a command of the client.
func (t *myTalk) command(body []byte, at int64) error {
	c := cursor{b: body[1:]}
	switch code := body[0]; code {
	case comQuit, comLongData, comClose: // not answered
		t.unanswered(code, &c)
	case comQuery:
		st := t.statement(ProtocolSimple, "", at)
		if t.attributes {
			t.queryAttributes(&c)
		}
		st.SQL = string(c.b)
		st.Tags = ParseTags(st.SQL, MySQL)
		t.push(&myCommand{code: code, st: st})
	case comPrepare:
		t.push(&myCommand{code: code, text: string(c.b), st: t.statement(ProtocolPrepared, string(c.b), at)})
	case comExecute, comBulkExecute:
		t.execute(code, &c, at)
	case comFetch:
		id := uint32(c.little(4))
		st := t.statement(ProtocolFetch, "", at)
		cmd := &myCommand{code: code, st: st, stmt: t.texts[id], binary: true, state: stateRows}
		if st.Lost = cmd.stmt == nil; !st.Lost {
			st.SQL = cmd.stmt.sql
			cmd.columns, cmd.defs = cmd.stmt.columns, cmd.stmt.defs
		}
		t.push(cmd)
	case comInitDB:
		t.push(&myCommand{code: code, text: string(c.b)})
	case comChangeUser:
		t.push(&myCommand{code: code, text: c.text()})
	case comBinlogDump, comTableDump, comDumpGTID:
		t.dark = true // a replica; events without end follow
		t.log.out.other("replication streams")
	default:
		t.push(&myCommand{code: code})
	}
	return nil
}

func (t *myTalk) unanswered(code byte, c *cursor) {
	switch id := uint32(c.little(4)); code {
	case comQuit:
		t.parting = quit
	case comClose:
		delete(t.texts, id)
	case comLongData:
		p := t.texts[id]
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
func (t *myTalk) queryAttributes(c *cursor) {
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

func (t *myTalk) execute(code byte, c *cursor, at int64) {
	id := uint32(c.little(4))
	if id == 0xffffffff { // MariaDB: the statement that was prepared last
		id = t.prepared
	}
	p := t.texts[id]
	st := t.statement(ProtocolPrepared, "", at)
	cmd := &myCommand{code: code, st: st, stmt: p, binary: true}
	t.push(cmd)
	if p == nil {
		st.Lost, st.NoParams = true, true
		return
	}
	st.SQL, st.Tags = p.sql, ParseTags(p.sql, MySQL)
	if code == comBulkExecute || p.params == Unknown {
		st.NoParams = true
		return
	}
	flags := c.byte()
	c.little(4)
	n := p.params
	names := false
	if t.attributes && (n > 0 || flags&8 != 0) {
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
		t.executeParams(c, st, p, n, names)
	}
	p.long, p.cut = nil, false
}

func (t *myTalk) executeParams(c *cursor, st *Statement, p *myPrepared, n int, names bool) {
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
		v := Value{Null: nulls[i/8]&(1<<(i%8)) != 0}
		if long, ok := p.long[i]; ok {
			v = Value{Text: string(long)}
		} else if !v.Null {
			v = myBinary(c, myColumn{kind, unsigned, anyDecimals})
		}
		if i < p.params { // what follows are attributes
			st.Params = append(st.Params, Param{Type: myTypeName(kind, unsigned), Null: v.Null, Binary: v.Binary, Value: v.Text})
		}
	}
	if c.bad {
		st.Params, st.NoParams = nil, true
	}
}

func (t *myTalk) fromServer(b []byte, at int64) error {
	t.seen = at
	if t.dark {
		return t.hidden()
	}
	for !t.dark && (len(b) > 0 || len(t.server.buf) > 0) {
		_, body, rest, ok := t.server.message(b)
		if !ok {
			return nil
		}
		b = rest
		if err := t.answer(body, at); err != nil {
			return err
		}
	}
	return nil
}

func (t *myTalk) answer(body []byte, at int64) error {
	switch t.phase {
	case phaseGreeting:
		return t.greeting(body)
	case phaseLogin:
		return nil
	case phaseAuth:
		switch {
		case len(body) > 0 && body[0] == 0:
			t.phase = phaseCommand
			c := cursor{b: body[1:]}
			t.okStatus(&c)
		case len(body) > 0 && body[0] == 0xff:
			e := myError(body)
			t.parting = e.Code + " " + e.Message
		}
		return nil
	}
	if len(t.queue) == 0 {
		if len(body) > 0 && body[0] == 0xff { // the session is ended
			e := myError(body)
			t.parting = e.Code + " " + e.Message
		}
		return nil
	}
	c := t.queue[0]
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
	return t.step(c, body, at)
}

func (t *myTalk) greeting(body []byte) error {
	c := cursor{b: body}
	if c.byte() != 10 { // too many connections, and the like
		t.phase = phaseAuth
		return nil
	}
	t.info.Version = c.text()
	t.info.Product = productOf(t.info.Version)
	if t.info.Product == "mariadb" {
		t.info.Version = strings.TrimPrefix(t.info.Version, "5.5.5-") // for replicas of old, which know no larger number
	}
	t.info.Backend = strconv.FormatUint(c.little(4), 10)
	c.bytes(9)
	caps := c.little(2)
	c.bytes(3)
	t.serverCaps = uint32(caps | c.little(2)<<16)
	t.phase = phaseLogin
	return nil
}

// okStatus reads the rest of an OK packet: affected rows, last id, status.
func (t *myTalk) okStatus(c *cursor) (affected int64, status int) {
	n, _ := c.lenenc()
	c.lenenc()
	status = int(c.little(2))
	if !c.bad {
		t.setStatus(status)
	}
	return int64(min(n, 1<<62)), status
}

func (t *myTalk) setStatus(status int) {
	t.follow.status = StatusIdle
	if status&statusInTrans != 0 {
		t.follow.status = StatusOpen
	}
}

// step takes a packet of the answer to c.
func (t *myTalk) step(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xff && (c.state == stateFirst || c.state == stateRows || c.state == stateMaybeEOF) {
		return t.refused(c, body, at)
	}
	switch c.state {
	case stateFirst:
		return t.first(c, body, at)
	case stateColumns:
		t.column(c, body)
		if c.left--; c.left == 0 {
			c.state = stateMaybeEOF
		}
	case stateMaybeEOF:
		c.state = stateRows
		if body[0] == 0xfe && len(body) == 5 {
			if status := int(binary.LittleEndian.Uint16(body[3:])); status&statusCursor != 0 {
				t.setStatus(status)
				return t.result(c, at, status)
			}
			return nil
		}
		return t.rows(c, body, at)
	case stateRows:
		return t.rows(c, body, at)
	case stateParams, stateMaybeEOFPrep, statePreparedCols, stateMaybeEOFPrep2:
		return t.preparing(c, body, at)
	}
	return nil
}

// first takes the first packet of an answer.
func (t *myTalk) first(c *myCommand, body []byte, at int64) error {
	in := cursor{b: body[1:]}
	switch {
	case c.code == comPrepare:
		return t.preparedAnswer(c, &in, at)
	case c.code == comFieldList:
		if body[0] == 0xfe && len(body) < 9 {
			t.pop()
		}
		return nil
	case c.code == comChangeUser && body[0] != 0: // authentication goes on
		return nil
	case c.st == nil: // everything else is answered by one packet
		if body[0] == 0 {
			t.okStatus(&in)
			t.changed(c)
		}
		t.pop()
		if c.code == comInitDB || c.code == comChangeUser || c.code == comResetConn {
			return t.tell()
		}
		return nil
	case body[0] == 0:
		affected, status := t.okStatus(&in)
		c.keep = newKeeper(t.log.out.o, c.st.Results)
		c.keep.result.Affected = affected
		return t.result(c, at, status)
	case body[0] == 0xfb:
		t.upload = true
		t.log.copies++
		return nil
	}
	t.resultSet(c, body)
	return nil
}

// changed takes what commands other than statements change.
func (t *myTalk) changed(c *myCommand) {
	switch c.code {
	case comInitDB:
		t.info.Database = c.text
	case comChangeUser:
		t.info.User = c.text
		clear(t.texts)
	case comResetConn:
		clear(t.texts)
	}
}

// resultSet takes the number of columns. MariaDB may leave the definitions out that the client has already.
func (t *myTalk) resultSet(c *myCommand, body []byte) {
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
	c.keep = newKeeper(t.log.out.o, c.st.Results)
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
func (t *myTalk) column(c *myCommand, body []byte) {
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
	c.columns = append(c.columns, Column{Name: string(name), Type: myTypeName(def.kind, def.unsigned)})
	c.defs = append(c.defs, def)
	if c.state == stateColumns && c.left == 1 {
		c.keep.columns(c.columns)
		if c.stmt != nil {
			c.stmt.columns, c.stmt.defs = c.columns, c.defs
		}
	}
}

// rows takes a row, or the end of the rows: EOF, or OK with EOF's first byte. A row that begins so is 16 MiB long at least.
func (t *myTalk) rows(c *myCommand, body []byte, at int64) error {
	if body[0] == 0xfe && len(body) < 0xffffff {
		status := 0
		in := cursor{b: body[1:]}
		if len(body) == 5 {
			in.bytes(2)
			status = int(in.little(2))
			t.setStatus(status)
		} else {
			_, status = t.okStatus(&in)
		}
		return t.result(c, at, status)
	}
	if c.keep == nil {
		c.keep = newKeeper(t.log.out.o, c.st.Results)
		c.keep.columns(c.columns)
	}
	if c.binary {
		var ok bool
		if t.cells, ok = myBinaryRow(t.cells[:0], body, c.defs); ok {
			c.keep.text(t.cells)
		} else {
			c.keep.row(nil)
		}
		return nil
	}
	in := cursor{b: body}
	t.cells = t.cells[:0]
	for len(in.b) > 0 {
		v, null := in.lenencBytes()
		if in.bad {
			c.keep.row(nil)
			return nil
		}
		if v == nil && !null {
			v = []byte{}
		}
		t.cells = append(t.cells, v)
	}
	c.keep.text(t.cells)
	return nil
}

// result takes the end of a result; there may be another one.
func (t *myTalk) result(c *myCommand, at int64, status int) error {
	if c.keep != nil {
		addResult(c.st, c.keep.done())
		c.keep = nil
	}
	if status&statusMoreResults != 0 {
		c.state = stateFirst
		return nil
	}
	return t.done(c, at)
}

func (t *myTalk) pop() { t.queue = t.queue[1:] }

// done hands on a statement.
func (t *myTalk) done(c *myCommand, at int64) error {
	t.pop()
	c.st.End, c.st.To = at, t.log.out.tick()
	c.st.After = t.follow.status
	if level := levelOf(c.st.SQL, MySQL); level != "" && c.st.Error == nil {
		t.info.Level = level
	}
	if db, ok := useDatabase(c.st.SQL); ok && c.st.Error == nil {
		t.info.Database = db
	}
	if err := t.tell(); err != nil {
		return err
	}
	return t.log.out.statement(t.number, c.st)
}

// refused takes an error. It does not tell the transaction's status.
func (t *myTalk) refused(c *myCommand, body []byte, at int64) error {
	e := myError(body)
	if c.st == nil {
		t.pop()
		return nil
	}
	if c.keep != nil { // it came in the middle of the rows
		addResult(c.st, c.keep.done())
	}
	c.st.Error = e
	t.follow.done(c.st.SQL, e)
	return t.done(c, at)
}

// isProgress knows MariaDB's reports of progress, which look like an error of number 65535 and come before the answer (Knowledge Base,
// Progress Reporting).
func isProgress(body []byte) bool {
	return len(body) > 3 && body[0] == 0xff && body[1] == 0xff && body[2] == 0xff
}

// myError reads an error packet: code, SQLSTATE, message.
func myError(body []byte) *Error {
	in := cursor{b: body[1:]}
	e := &Error{Code: strconv.FormatUint(in.little(2), 10)}
	if len(in.b) > 5 && in.b[0] == '#' {
		e.SQLState = string(in.bytes(6)[1:])
	}
	e.Message = string(in.b)
	return e
}

// preparedAnswer takes the first packet of the answer to a PREPARE: id, number of columns and of parameters.
func (t *myTalk) preparedAnswer(c *myCommand, in *cursor, at int64) error {
	id := uint32(in.little(4))
	columns, params := int(in.little(2)), int(in.little(2))
	if in.bad {
		t.pop()
		return nil
	}
	p := &myPrepared{sql: c.text, params: params}
	if len(t.texts) < maxNames {
		t.texts[id] = p
	}
	t.prepared = id
	c.id, c.params, c.left, c.stmt = id, params, columns, p
	// EXECUTE may have been sent before this answer (MariaDB).
	for _, later := range t.queue[1:] {
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
		t.pop()
	}
	return nil
}

// preparing takes the rest of that answer. Whether EOF stands behind the definitions shows when it does; its absence shows by the login, or
// by the next packet.
func (t *myTalk) preparing(c *myCommand, body []byte, at int64) error {
	isEOF := body[0] == 0xfe && len(body) == 5
	switch c.state {
	case stateParams:
		if c.params--; c.params > 0 {
			return nil
		}
		c.state = stateMaybeEOFPrep
		if t.noEOF() {
			t.afterParams(c)
		}
		return nil
	case stateMaybeEOFPrep:
		t.afterParams(c)
		if isEOF {
			return nil
		}
		if c.state == statePreparedCols {
			return t.preparing(c, body, at)
		}
		return t.answer(body, at) // of the next command
	case statePreparedCols:
		t.column(c, body)
		if c.left--; c.left > 0 {
			return nil
		}
		c.stmt.columns, c.stmt.defs = c.columns, c.defs
		c.state = stateMaybeEOFPrep2
		if t.noEOF() {
			t.pop()
		}
		return nil
	}
	t.pop()
	if isEOF {
		return nil
	}
	return t.answer(body, at)
}

func (t *myTalk) afterParams(c *myCommand) {
	if c.left > 0 {
		c.state = statePreparedCols
		return
	}
	t.pop()
}

// noEOF tells that both sides agreed to leave EOF out (CLIENT_DEPRECATE_EOF).
func (t *myTalk) noEOF() bool { return t.capsKnown && t.serverCaps&t.clientCaps&capNoEOF != 0 }

func (t *myTalk) tell() error { return t.log.out.tell(&t.known) }

func (t *myTalk) gap() error {
	t.client, t.server = myStream{}, myStream{}
	for _, c := range t.queue {
		if c.st != nil {
			t.log.out.other("statements next to missing packets, or to where a connection was joined")
		}
	}
	t.queue = nil
	t.upload = false
	t.follow.status = StatusUnknown
	return nil
}

func (t *myTalk) flush() error {
	if err := t.hidden(); err != nil {
		return err
	}
	if err := t.tell(); err != nil {
		return err
	}
	for _, c := range t.queue {
		if c.st == nil || c.code == comPrepare {
			continue
		}
		if err := t.log.out.statement(t.number, c.st); err != nil {
			return err
		}
	}
	t.queue = nil
	return nil
}

func (t *myTalk) close(at int64, reason string) error {
	if err := t.flush(); err != nil {
		return err
	}
	return t.log.out.end(t.number, &End{At: at, Tick: t.log.out.tick(), Reason: reason})
}
