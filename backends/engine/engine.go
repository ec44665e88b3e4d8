// Package engine holds what the backends have in common: the descriptor of a product, and the machinery by which a
// private throwaway server of it is started and removed without a trace.
package engine

import (
	"context"
	"time"

	"wirecheck/answer"
	"wirecheck/product"
)

// Protocol is a wire protocol.
type Protocol string

// The wire protocols.
const (
	ProtocolPostgres Protocol = "postgres"
	ProtocolMySQL    Protocol = "mysql"
)

// Descriptor says what wirecheck must know of one product.
type Descriptor struct {
	*product.Product
	Schemes  []string // of URLs that name a server of this product
	Protocol Protocol // empty: none, see Embedded
	Port     int      // the product's registered port
	Install  string   // the command that installs the server on Debian and Ubuntu
	// Embedded says that the product is a library in this process: it has no protocol, port, users or process of its own, and nothing
	// can stand between it and its client.
	Embedded bool
	// NeverWaits says that no statement waits for a lock: one that meets a lock is refused at once.
	NeverWaits bool
	// Start starts a private server from the binaries on the machine. ctx limits the start, not the server's life.
	Start func(ctx context.Context, o Options) (*Server, error)
	// Connect opens a connection, and Watch one that looks at the others.
	Connect func(ctx context.Context, t Target) (Conn, error)
	Watch   func(ctx context.Context, t Target) (Watcher, error)
	// SetLevel gives the statement that makes a level (Level.SQL) the session's, from the next transaction on.
	SetLevel func(level string) string
	// Discard is a statement that makes a session outside of a transaction as new: no settings, locks, prepared statements or
	// temporary tables are left. Empty: the product has none, and a new connection does it.
	Discard string
	// Find lists the servers of the product on the machine. Start takes the first unless told otherwise.
	Find func() []Found
	// Silent says how long a statement may take before it counts as waiting, where the engine shows nothing when it waits for a lock: a time limit
	// is the only sign then. 0: the engine shows it; nil: it shows all waits. Patience is for a statement of which the engine could show a wait, at a
	// moment when it must not be asked.
	Silent   func(sql string, inTransaction bool) time.Duration
	Patience time.Duration
	// Lab says how databases for executing schedules are made, filled and removed.
	Lab Lab
	// LabSettings are settings for a private server in which schedules are executed (Options.Settings): they make what
	// the engine does to sessions that wait quick and repeatable.
	LabSettings map[string]string
}

// Outcome says what a step did to its session's transaction; err is what Conn.Do returned.
func (d Descriptor) Outcome(a answer.Answer, err error) answer.Outcome {
	return Judge(d.Product, a, err)
}

// Options says how a private server is to be started. The zero value starts one with the superuser alone.
type Options struct {
	// Settings are server settings that win over ours: {"innodb_snapshot_isolation": "ON"}.
	Settings map[string]string
	// Users are made in addition to the superuser. They may log in from loopback and nothing more until somebody grants
	// them something.
	Users []User
	// Password is the superuser's. Empty means that one is made up.
	Password string
	// TLS turns on TLS with a certificate for localhost and 127.0.0.1, signed by an authority made for this server.
	TLS bool
	// Bin is the folder of the server's binaries. Empty means that they are looked for.
	Bin string
}

// User is an account of a private server.
type User struct {
	Name     string
	Password string
	// Method is how the user proves who they are, in the product's own words. PostgreSQL: scram-sha-256 (default), md5,
	// password, trust, cert. MariaDB: mysql_native_password (default), ed25519. MySQL: caching_sha2_password (default).
	Method string
}
