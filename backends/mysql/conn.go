package mysql

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	protocol "github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
)

const (
	loginLimit = 10 * time.Second // for the handshake, which go-mysql does without a context
	readBuffer = 16 << 10
	maxPayload = 1<<24 - 1 // of one packet; a longer message comes in several
	maxMessage = 1 << 30   // as the servers' largest max_allowed_packet

	collation   = "utf8mb4_general_ci" // all of Unicode, and known to every version
	lockTimeout = "1205"

	comResetConnection = 0x1f // go-mysql has no name for it
)

// conn is a connection in the text protocol. go-mysql logs in; what follows is read packet by packet, since its results
// turn numbers and dates into Go values and back, and forget what came before an error.
type conn struct {
	net      net.Conn
	read     *bufio.Reader
	id       uint64
	state    answer.State
	warnings bool // fetch them

	seq   byte
	write []byte // reused for what is sent
	in    []byte // reused for what is read
	ahead engine.Ahead
}

// Connect opens a connection to a member of the MySQL family.
func Connect(ctx context.Context, t engine.Target) (engine.Conn, error) {
	c, err := connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return c, nil
}

func connect(ctx context.Context, t engine.Target) (*conn, error) {
	network, address := t.Address()
	c, err := login(ctx, t, network, address)
	if err != nil {
		return nil, fmt.Errorf("connect to %s at %s: %w", t.Engine, address, err)
	}
	// The greeting has 32 bits of the number only (TiDB has more), and nothing yet of the state.
	rows, err := engine.Query(ctx, c, "SELECT CONNECTION_ID()")
	if err == nil && (len(rows) != 1 || len(rows[0]) != 1) {
		err = errors.New("CONNECTION_ID() gave no number")
	}
	if err == nil {
		c.id, err = strconv.ParseUint(string(rows[0][0]), 10, 64)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("connect to %s at %s: %w", t.Engine, address, err), c.Close())
	}
	c.warnings = t.Warnings
	return c, nil
}

func login(ctx context.Context, t engine.Target, network, address string) (*conn, error) {
	dial := t.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
	}
	ctx, cancel := context.WithTimeout(ctx, loginLimit)
	defer cancel()
	stop := func(err error) error { return err }
	cutOff := func(ctx context.Context, network, address string) (net.Conn, error) {
		n, err := dial(ctx, network, address)
		if err == nil {
			stop = engine.CutOff(ctx, n)
		}
		return n, err
	}
	cl, err := client.ConnectWithDialer(ctx, network, address, t.User, t.Password, t.Database, cutOff, func(c *client.Conn) error {
		if t.TLS != nil {
			c.SetTLSConfig(t.TLS)
		}
		if err := c.SetCollation(collation); err != nil {
			return err
		}
		for _, capability := range []uint32{protocol.CLIENT_QUERY_ATTRIBUTES, protocol.CLIENT_DEPRECATE_EOF, protocol.CLIENT_COMPRESS} {
			c.UnsetCapability(capability)
		}
		return errors.Join(c.SetCapability(protocol.CLIENT_MULTI_STATEMENTS), c.SetCapability(protocol.CLIENT_MULTI_RESULTS))
	})
	if err = stop(err); err != nil {
		return nil, err
	}
	n := cl.Conn.Conn // go-mysql reads no further than the end of the handshake
	return &conn{net: n, read: bufio.NewReaderSize(n, readBuffer)}, nil
}

func (c *conn) ID() uint64 { return c.id }

// Close says good-bye and closes. Do may be waiting in another goroutine.
func (c *conn) Close() error {
	_ = c.net.SetDeadline(time.Now().Add(100 * time.Millisecond))
	_, _ = c.net.Write([]byte{1, 0, 0, 0, protocol.COM_QUIT}) // a courtesy
	if err := c.net.Close(); err != nil {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}

func (c *conn) Do(ctx context.Context, sql string) (answer.Answer, error) {
	a := answer.Answer{Before: c.state}
	stop := engine.CutOff(ctx, c.net)
	err := stop(c.do(sql, &a))
	a.After = c.state
	return a, err
}

// Reset makes the session as new (COM_RESET_CONNECTION; MySQL 5.7.3, MariaDB 10.2.4, TiDB). The character set goes back to the server's
// default with the rest, so it is set again.
func (c *conn) Reset(ctx context.Context) error {
	stop := engine.CutOff(ctx, c.net)
	err := c.ahead.Drop(c.drop)
	if err == nil {
		err = c.send(comResetConnection, "")
	}
	var a answer.Answer
	if err == nil {
		_, err = c.answer(&a)
	}
	if err == nil && a.Err != nil {
		err = a.Err
	}
	if err = stop(err); err != nil {
		return fmt.Errorf("reset session: %w", err)
	}
	return engine.Exec(ctx, c, "SET NAMES utf8mb4 COLLATE "+collation)
}

// Expect implements engine.Expecter. Warnings are asked for between two statements, so then none is sent ahead.
func (c *conn) Expect(ctx context.Context, queries []string) error {
	stop := engine.CutOff(ctx, c.net)
	err := stop(c.ahead.Drop(c.drop))
	if c.ahead.Expect(nil); err == nil && !c.warnings {
		c.ahead.Expect(queries)
	}
	return err
}

// drop reads an answer that nobody asked for any more.
func (c *conn) drop() error {
	_, err := c.early()
	return err
}

// early reads the answer to what was sent ahead.
func (c *conn) early() (a answer.Answer, err error) {
	c.seq = 1
	err = c.answers(&a)
	return a, err
}

// answers reads the answers to one message.
func (c *conn) answers(a *answer.Answer) error {
	for more := true; more; {
		var err error
		if more, err = c.answer(a); err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
	}
	return nil
}

// ask sends a statement, if it was not sent ahead, and reads its answer, if that was not read ahead.
func (c *conn) ask(sql string, a *answer.Answer) (read bool, err error) {
	sent, ready, err := c.ahead.Turn(sql, c.drop)
	if err != nil {
		return false, err
	}
	switch {
	case ready != nil:
		*a = *ready
		a.Before = c.state
		return true, nil
	case sent:
		c.seq = 1
	default:
		if err := c.send(protocol.COM_QUERY, sql); err != nil {
			return false, err
		}
	}
	a.Before = c.state
	if next := c.ahead.Next(); len(next) > 0 {
		c.write = c.write[:0]
		for _, sql := range next {
			n := len(sql) + 1
			c.write = append(append(c.write, byte(n), byte(n>>8), byte(n>>16), 0, protocol.COM_QUERY), sql...)
		}
		_, _ = c.net.Write(c.write) // if the server has ended, there are answers yet to be read
	}
	return false, c.answers(a)
}

func (c *conn) do(sql string, a *answer.Answer) error {
	read, err := c.ask(sql, a)
	if err != nil || read {
		return err
	}
	if a.Err != nil && !lost(a.Err) {
		// An error packet does not tell whether the transaction is still open (deadlock, implicit commit); PING's answer does. Those before it are of queries
		// that neither begin nor end one.
		if err := c.ahead.Read(c.early); err != nil {
			return err
		}
		if err := c.ping(); err != nil {
			return err
		}
		switch over := a.Before == answer.Open && c.state == answer.Idle; {
		case over && a.Err.Code == lockTimeout:
			return c.rolledBack(a.Err)
		case over && commits(sql):
			a.Err.Aborted = true // optimistic transactions learn of all their errors at COMMIT (TiDB)
		}
	}
	if n := len(a.Results); c.warnings && a.Err == nil && n > 0 && a.Results[n-1].Warnings > 0 {
		return c.showWarnings(a)
	}
	return nil
}

// lost reports whether a server of the family closes the connection after an error.
func lost(e *answer.Error) bool { return product.Of("mysql").Error(e.Code, e.Message).Gone }

func (c *conn) ping() error {
	if err := c.send(protocol.COM_PING, ""); err != nil {
		return err
	}
	if _, err := c.answer(&answer.Answer{}); err != nil {
		return fmt.Errorf("read answer to PING: %w", err)
	}
	return nil
}

// commits reports whether a step ends in COMMIT.
func commits(sql string) bool {
	sql = strings.TrimRight(sql, "; \t\r\n")
	last := strings.TrimSpace(sql[strings.LastIndexByte(sql, ';')+1:])
	return len(last) >= len("COMMIT") && strings.EqualFold(last[:len("COMMIT")], "COMMIT")
}

// rolledBack asks whether a lock wait time-out after which no transaction is open has rolled it back. Otherwise the statement,
// a DDL one, had committed it before.
func (c *conn) rolledBack(e *answer.Error) error {
	if err := c.send(protocol.COM_QUERY, "SELECT @@innodb_rollback_on_timeout"); err != nil {
		return err
	}
	var a answer.Answer
	if _, err := c.answer(&a); err != nil {
		return fmt.Errorf("read innodb_rollback_on_timeout: %w", err)
	}
	if a.Err == nil && len(a.Results) == 1 && len(a.Results[0].Rows) == 1 {
		e.Aborted = string(a.Results[0].Rows[0][0]) == "1"
	}
	return nil
}

// showWarnings fetches the warnings of the last statement; asking does not change what the session sees next.
func (c *conn) showWarnings(a *answer.Answer) error {
	if err := c.send(protocol.COM_QUERY, "SHOW WARNINGS"); err != nil {
		return err
	}
	var w answer.Answer
	if _, err := c.answer(&w); err != nil {
		return fmt.Errorf("read warnings: %w", err)
	}
	for _, r := range w.Results {
		for _, row := range r.Rows {
			if len(row) >= 3 {
				a.Notices = append(a.Notices, answer.Notice{Severity: string(row[0]), Code: string(row[1]), Message: string(row[2])})
			}
		}
	}
	return nil
}

// send writes a command.
func (c *conn) send(command byte, text string) error {
	c.seq = 0
	c.write = append(append(append(c.write[:0], 0, 0, 0, 0), command), text...)
	for b := c.write; ; {
		n := min(len(b)-4, maxPayload)
		b[0], b[1], b[2], b[3] = byte(n), byte(n>>8), byte(n>>16), c.seq
		c.seq++
		if _, err := c.net.Write(b[:4+n]); err != nil {
			return fmt.Errorf("send statement: %w", err)
		}
		if n < maxPayload {
			break
		}
		b = b[n:] // the next header goes over the last bytes that were sent
	}
	if cap(c.write) > 1<<20 {
		c.write = nil
	}
	return nil
}

// packet reads one message. It is valid until the next one is read.
func (c *conn) packet() ([]byte, error) {
	c.in = c.in[:0]
	for {
		var h [4]byte
		if _, err := io.ReadFull(c.read, h[:]); err != nil {
			return nil, err
		}
		n := int(h[0]) | int(h[1])<<8 | int(h[2])<<16
		if h[3] != c.seq {
			return nil, fmt.Errorf("packet %d came where %d was due", h[3], c.seq)
		}
		c.seq++
		start := len(c.in)
		if start+n > maxMessage {
			return nil, fmt.Errorf("a message of more than %d bytes", maxMessage)
		}
		if cap(c.in) < start+n {
			c.in = append(make([]byte, 0, max(2*cap(c.in), start+n, 512)), c.in...)
		}
		c.in = c.in[:start+n]
		if _, err := io.ReadFull(c.read, c.in[start:]); err != nil {
			return nil, err
		}
		if n < maxPayload {
			break
		}
	}
	if len(c.in) == 0 {
		return nil, errors.New("an empty packet")
	}
	return c.in, nil
}

// answer reads the answer to one statement, and reports whether that of another follows.
func (c *conn) answer(a *answer.Answer) (more bool, err error) {
	p, err := c.packet()
	if err != nil {
		return false, err
	}
	switch p[0] {
	case protocol.OK_HEADER:
		r, status, err := okPacket(p)
		if err != nil {
			return false, err
		}
		a.Results = append(a.Results, r)
		return c.status(status), nil
	case protocol.ERR_HEADER:
		a.Err = errorPacket(p)
		return false, nil
	case protocol.LocalInFile_HEADER: // we offer no files: an empty packet is an empty file
		if _, err := c.net.Write([]byte{0, 0, 0, c.seq}); err != nil {
			return false, err
		}
		c.seq++
		return c.answer(a)
	}
	return c.resultSet(a, p)
}

// status keeps what the server says of the session, and reports whether another answer follows.
func (c *conn) status(flags uint16) (more bool) {
	c.state = answer.Idle
	if flags&protocol.SERVER_STATUS_IN_TRANS != 0 {
		c.state = answer.Open
	}
	return flags&protocol.SERVER_MORE_RESULTS_EXISTS != 0
}

// resultSet reads columns and rows. p is the packet with the number of columns.
func (c *conn) resultSet(a *answer.Answer, p []byte) (more bool, err error) {
	count, _, n := lengthInt(p)
	if n != len(p) || count == 0 || count > 1<<16 {
		return false, errors.New("a result without a number of columns")
	}
	r := answer.Result{Columns: make([]answer.Column, count)}
	for i := range r.Columns {
		if p, err = c.packet(); err != nil {
			return false, err
		}
		if r.Columns[i], err = column(p); err != nil {
			return false, err
		}
	}
	if p, err = c.packet(); err != nil {
		return false, err
	}
	if !eof(p) {
		return false, errors.New("no end after the columns of a result")
	}
	for {
		if p, err = c.packet(); err != nil {
			return false, err
		}
		switch {
		case p[0] == protocol.ERR_HEADER: // a lock wait can end in the middle of the rows
			a.Err = errorPacket(p)
			return false, nil
		case eof(p):
			r.Warnings = int(binary.LittleEndian.Uint16(p[1:]))
			a.Results = append(a.Results, r)
			return c.status(binary.LittleEndian.Uint16(p[3:])), nil
		}
		row, err := textRow(p, len(r.Columns))
		if err != nil {
			return false, err
		}
		r.Rows = append(r.Rows, row)
	}
}

// eof recognises the packet that ends columns and rows: 0xfe can also begin the length of a value of more than 16 MiB.
func eof(p []byte) bool { return p[0] == protocol.EOF_HEADER && len(p) == 5 }
