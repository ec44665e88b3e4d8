package mysqlwire

import (
	"encoding/binary"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/trace/flow"
)

// request is a client's command in the form in which the server gets it.
type request interface {
	// send puts it into the output to the server. stamp is the name of what it writes; empty if it writes nothing.
	send(stamp string) error
	// holdsStamp reports whether the request brings the stamp itself, so that the server's variable need not have it.
	holdsStamp() bool
	// proceed sends what must wait for the server's first word. If ok is false, the client's own text is to be sent, for the
	// reason why.
	proceed(a *answer) (why string, ok bool, err error)
	// binary reports whether rows come in the binary protocol.
	binary() bool
	// statement is the prepared statement that is executed; nil: none.
	statement() *prepared
	// params are the values of its parameters, as far as they are known.
	params() []flow.Param
}

// plain has the answers of a request that is a text in one piece without a stamp.
type plain struct{}

func (plain) holdsStamp() bool                                 { return false }
func (plain) proceed(*answer) (why string, ok bool, err error) { return "", true, nil }
func (plain) binary() bool                                     { return false }
func (plain) statement() *prepared                             { return nil }
func (plain) params() []flow.Param                             { return nil }

// textRequest is COM_QUERY.
type textRequest struct {
	plain
	o   *observation
	sql string
}

func (r textRequest) send(string) error {
	return r.o.server.put(0, []byte{mysql.COM_QUERY}, []byte(r.sql))
}

// stampedText is COM_QUERY with the stamp in the text.
type stampedText struct {
	textRequest
	plan   *rewrite.Plan
	client string // the client's own text
}

func (r stampedText) holdsStamp() bool { return true }

func (r stampedText) send(stamp string) error {
	if stamp != "" {
		r.sql = r.plan.WithStamp(r.client, dialect.CleanStamp(stamp))
	}
	return r.textRequest.send(stamp)
}

// streamRequest is a command that is too long to be held. It passes as it is.
type streamRequest struct {
	plain
	o *observation
}

func (r streamRequest) send(string) error {
	return r.o.relayCommand()
}

// execution is COM_STMT_EXECUTE or MariaDB's COM_STMT_BULK_EXECUTE.
type execution struct {
	plain
	o    *observation
	of   *prepared
	id   uint32 // the server's
	body []byte
	long bool // some of its parameters were sent before
}

func (r execution) binary() bool         { return true }
func (r execution) statement() *prepared { return r.of }

func (r execution) params() []flow.Param {
	if r.long {
		return nil
	}
	return r.of.values(r.body)
}

func (r execution) send(string) error {
	binary.LittleEndian.PutUint32(r.body[1:], r.id)
	return r.o.server.put(0, r.body)
}

// streamExecution is an execution that is too long to be held. Its head is in the client's buffer.
type streamExecution struct {
	execution
	frame frame
}

func (r streamExecution) send(string) error {
	b, err := r.o.client.prefix(r.frame, 5)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(b[1:], r.id)
	return r.o.relayCommand()
}
