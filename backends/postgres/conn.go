package postgres

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// maxMessage bounds one message of the server's (a row, mostly), so that a broken length does not eat the memory.
const maxMessage = 1 << 30

// conn is a connection in the simple protocol. pgconn logs in; what follows is read message by message, since the order
// of notices, results and errors is part of what a step shows.
type conn struct {
	net   net.Conn
	front *pgproto3.Frontend
	id    uint64
	state answer.State
	meter *meter              // nil unless somebody hears
	heard func(answer.Notice) // or nil
	// checked: the server has looked for a deadlock since the present wait began, see checked.go.
	checked atomic.Bool
	busy    atomic.Bool // somebody is in Do
	ahead   engine.Ahead
}

// Connect opens a connection.
func Connect(ctx context.Context, t engine.Target) (engine.Conn, error) {
	hijacked, err := connect(ctx, t)
	if err != nil {
		return nil, err
	}
	return hijacked, nil
}

func connect(ctx context.Context, t engine.Target) (*conn, error) {
	c := &conn{heard: t.Heard, state: answer.Idle}
	if t.Heard != nil {
		t.Dial = c.metered(t.Dial)
	}
	pc, err := login(ctx, t)
	if err != nil {
		return nil, err
	}
	h, err := pc.Hijack()
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	h.Frontend.SetMaxBodyLen(maxMessage)
	c.net, c.front, c.id = h.Conn, h.Frontend, uint64(h.PID)
	return c, nil
}

func login(ctx context.Context, t engine.Target) (*pgconn.PgConn, error) {
	cfg, err := pgconn.ParseConfig("sslmode=disable host=localhost") // no service file, no environment's TLS
	if err != nil {
		return nil, fmt.Errorf("connect to postgres: %w", err)
	}
	_, address := t.Address()
	cfg.Host, cfg.Port = t.Host, uint16(t.Port)
	cfg.Host = cmp.Or(cfg.Host, t.Socket)
	cfg.User, cfg.Password, cfg.Database = t.User, t.Password, t.Database
	cfg.TLSConfig, cfg.Fallbacks = t.TLS, nil
	cfg.RuntimeParams = map[string]string{}
	if t.Application != "" {
		cfg.RuntimeParams["application_name"] = t.Application
	}
	if t.Dial != nil {
		cfg.DialFunc = t.Dial
		cfg.LookupFunc = func(_ context.Context, host string) ([]string, error) { return []string{host}, nil }
	}
	pc, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to postgres at %s: %w", address, err)
	}
	return pc, nil
}

func (c *conn) ID() uint64 { return c.id }

// Close says good-bye and closes. The limit is for a peer that does not read; Do may be waiting in another goroutine.
func (c *conn) Close() error {
	if buf, err := (&pgproto3.Terminate{}).Encode(nil); err == nil {
		_ = c.net.SetDeadline(time.Now().Add(100 * time.Millisecond))
		_, _ = c.net.Write(buf) // a courtesy
	}
	if err := c.net.Close(); err != nil {
		return fmt.Errorf("close connection to postgres: %w", err)
	}
	return nil
}

func (c *conn) Do(ctx context.Context, sql string) (answer.Answer, error) {
	a := answer.Answer{Before: c.state}
	if strings.ContainsRune(sql, 0) {
		return a, fmt.Errorf("send statement: it contains a zero byte, which the protocol cannot carry")
	}
	c.busy.Store(true)
	defer c.busy.Store(false)
	stop := engine.CutOff(ctx, c.net)
	err := stop(c.do(sql, &a))
	a.After = c.state
	return a, err
}

// Expect implements engine.Expecter.
func (c *conn) Expect(ctx context.Context, queries []string) error {
	stop := engine.CutOff(ctx, c.net)
	err := stop(c.ahead.Drop(c.drop))
	if c.ahead.Expect(nil); err == nil && !slices.ContainsFunc(queries, func(sql string) bool { return strings.ContainsRune(sql, 0) }) {
		c.ahead.Expect(queries)
	}
	return err
}

// drop reads an answer that nobody asked for any more.
func (c *conn) drop() error { return c.read(&reader{answer: &answer.Answer{}}) }

func (c *conn) do(sql string, a *answer.Answer) error {
	sent, _, err := c.ahead.Turn(sql, c.drop)
	if err != nil {
		return err
	}
	a.Before = c.state
	c.checked.Store(false)
	if !sent {
		c.front.SendQuery(&pgproto3.Query{String: sql})
	}
	for _, sql := range c.ahead.Next() {
		c.front.SendQuery(&pgproto3.Query{String: sql})
	}
	if err := c.front.Flush(); err != nil && !sent { // else the server has ended behind answers that are to be read
		return fmt.Errorf("send statement: %w", err)
	}
	return c.read(&reader{answer: a, heard: c.heard})
}

// read reads the answer to one message.
func (c *conn) read(r *reader) error {
	for {
		msg, err := c.front.Receive()
		if err != nil {
			return fmt.Errorf("read answer: %w", err)
		}
		switch m := msg.(type) {
		case *pgproto3.ReadyForQuery:
			c.state = transaction(m.TxStatus)
			return nil
		case *pgproto3.CopyInResponse:
			c.front.Send(&pgproto3.CopyFail{Message: "COPY FROM STDIN has no data here"})
			if err := c.front.Flush(); err != nil {
				return fmt.Errorf("refuse COPY: %w", err)
			}
		case *pgproto3.CopyBothResponse:
			return fmt.Errorf("read answer: replication is not supported")
		default:
			if !c.logged(msg) {
				r.take(msg)
			}
		}
	}
}

func transaction(status byte) answer.State {
	switch status {
	case 'T':
		return answer.Open
	case 'E':
		return answer.Failed
	}
	return answer.Idle
}

// reader puts the messages of an answer together.
type reader struct {
	answer *answer.Answer
	result answer.Result       // of the statement whose answer is being read
	heard  func(answer.Notice) // or nil
}

func (r *reader) take(msg pgproto3.BackendMessage) {
	switch m := msg.(type) {
	case *pgproto3.RowDescription:
		r.result.Columns = columns(m.Fields)
	case *pgproto3.DataRow:
		r.result.Rows = append(r.result.Rows, copyRow(m.Values))
	case *pgproto3.CopyData:
		r.result.Rows = append(r.result.Rows, []answer.Value{append([]byte{}, m.Data...)})
	case *pgproto3.CommandComplete:
		r.result.Tag = string(m.CommandTag)
		r.result.Affected = affected(r.result.Tag)
		r.end()
	case *pgproto3.EmptyQueryResponse:
		r.end()
	case *pgproto3.ErrorResponse:
		r.result = answer.Result{} // rows before the error are no result
		r.answer.Err = &answer.Error{
			Code: m.Code, SQLState: m.Code, Severity: m.Severity, Message: m.Message, Detail: m.Detail, Hint: m.Hint, Where: m.Where,
		}
	case *pgproto3.NoticeResponse:
		n := answer.Notice{Severity: m.Severity, Code: m.Code, Message: m.Message, Detail: m.Detail, Hint: m.Hint}
		r.answer.Notices = append(r.answer.Notices, n)
		if r.heard != nil {
			r.heard(n)
		}
	case *pgproto3.NotificationResponse:
		r.answer.Notices = append(r.answer.Notices, answer.Notice{Channel: m.Channel, Payload: m.Payload, PID: uint64(m.PID)})
	}
}

func (r *reader) end() {
	r.answer.Results = append(r.answer.Results, r.result)
	r.result = answer.Result{}
}

// copyRow takes a row out of the connection's buffer, into one block of memory.
func copyRow(values [][]byte) []answer.Value {
	size := 0
	for _, v := range values {
		size += len(v)
	}
	block := make([]byte, 0, size)
	row := make([]answer.Value, len(values))
	for i, v := range values {
		if v == nil {
			continue
		}
		start := len(block)
		block = append(block, v...)
		row[i] = block[start:len(block):len(block)]
	}
	return row
}

// affected reads the number at the end of a command tag: "INSERT 0 3", "UPDATE 1". SELECT's is not of rows changed.
func affected(tag string) int64 {
	i := strings.LastIndexByte(tag, ' ')
	if i < 0 || strings.HasPrefix(tag, "SELECT") {
		return 0
	}
	n, err := strconv.ParseInt(tag[i+1:], 10, 64)
	if err != nil {
		return 0 // "CREATE TABLE"
	}
	return n
}

func columns(fields []pgproto3.FieldDescription) []answer.Column {
	cols := make([]answer.Column, len(fields))
	for i, f := range fields {
		cols[i] = answer.Column{Name: string(f.Name), Type: typeName(f.DataTypeOID), Numeric: numeric(f.DataTypeOID)}
	}
	return cols
}
