package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"

	"wirecheck/answer"
	"wirecheck/history/prose"
)

// Target is a server, a database on it, and who logs in there.
type Target struct {
	Engine string // Descriptor.Name
	Host   string
	Port   int
	// Socket is the path of a Unix socket (PostgreSQL: of its folder). It is used where Host is empty. Of an embedded product it is the
	// folder with its databases.
	Socket   string
	User     string
	Password string
	Database string // empty: none (MySQL family), or the user's (PostgreSQL)
	// TLS encrypts the connection; nil does not.
	TLS *tls.Config
	// Dial connects; nil means net.Dialer. A lab passes one that leads through an in-process proxy.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	// Warnings makes connections to the MySQL family fetch the warnings of each step that had some (SHOW WARNINGS: one
	// more round trip) and give them as Answer.Notices. PostgreSQL sends its notices by itself.
	Warnings bool
	// Application is what a connection calls itself where the product has a place for that (PostgreSQL: application_name).
	Application string
	// Heard is told of each notice as it arrives, which may be long before the step that it belongs to is done; nil: nobody
	// is. PostgreSQL only: the others send nothing before the answer.
	Heard func(answer.Notice)
}

// Address is the network and the address to connect to.
func (t Target) Address() (network, address string) {
	if t.Host == "" && t.Socket != "" {
		return "unix", t.Socket
	}
	return "tcp", net.JoinHostPort(t.Host, strconv.Itoa(t.Port))
}

// Target gives the private server as a target: its superuser, by TCP, without a database.
func (s *Server) Target() Target {
	if s.kill != nil {
		return Target{Engine: s.Engine, Socket: s.Socket}
	}
	return Target{Engine: s.Engine, Host: s.Host, Port: s.Port, User: s.User, Password: s.Password}
}

// Local gives a target on the private server by its Unix socket, if that makes no other user: there a message costs half of what it costs by TCP.
func (s *Server) Local(t Target) Target {
	if s.alike {
		t.Host, t.Socket = "", s.Socket
	}
	return t
}

// Conn is one connection of our own. It belongs to one goroutine at a time, except ID and Close: closing it while
// another goroutine waits in Do makes Do return an error at once. The server may go on waiting for a lock in the
// meantime; Watcher.Kill ends that.
type Conn interface {
	// ID is the server's number of the connection, as its lock views and KILL know it.
	ID() uint64
	// Do sends one step, which may hold several statements, as one message in the text protocol, and reads the whole
	// answer. What the server refuses is in Answer.Err. An error means that the connection cannot be used any more: the
	// server died, somebody killed it, ctx ended. What had been answered until then is still in the Answer.
	Do(ctx context.Context, sql string) (answer.Answer, error)
	Close() error
}

// Resetter is a Conn that can be made as new without connecting again: no transaction, settings, locks, temporary tables or prepared
// statements are left. Its number and its database stay.
type Resetter interface {
	Reset(ctx context.Context) error
}

// Settler is a Conn that hears notices as they arrive (Target.Heard).
type Settler interface {
	// Settle waits until Heard was told of all that the server has sent until now. It is meant for when the session is known
	// to wait in the server.
	Settle(ctx context.Context)
}

// Exec executes a step of which nothing but success is expected.
func Exec(ctx context.Context, c Conn, sql string) error {
	_, err := Query(ctx, c, sql)
	return err
}

// Query executes a step and gives the rows of its last statement. The server's refusal is an error here.
func Query(ctx context.Context, c Conn, sql string) ([][]answer.Value, error) {
	a, err := Ask(ctx, c, sql)
	if err != nil {
		return nil, fmt.Errorf("execute %s: %w", prose.Line(sql, prose.Width), err)
	}
	if len(a.Results) == 0 {
		return nil, nil
	}
	return a.Results[len(a.Results)-1].Rows, nil
}

// Ask is Conn.Do for a step that the server is expected to do: its refusal is an error.
func Ask(ctx context.Context, c Conn, sql string) (answer.Answer, error) {
	a, err := c.Do(ctx, sql)
	if err == nil && a.Err != nil {
		err = a.Err
	}
	return a, err
}
