// Package history holds the nouns that everything else speaks of: rows, versions, statements, transactions, and the
// events from which a history is made. It imports only the standard library and does no input or output of its own
// beyond encoding and decoding.
package history

import (
	"fmt"
	"strings"
)

// Row names one row of one table for as long as it lives.
type Row struct {
	Table string `json:"table"` // schema-qualified: "public.account", "shop.coupon"
	Key   string `json:"key"`   // unique within Table and never reused for another row while the first one lives
}

// Bare is a table's name without its schema.
func Bare(table string) string { return table[strings.LastIndexByte(table, '.')+1:] }

// Op says what a statement did to a row.
type Op string

// The operations. OpLock is a locking read (SELECT ... FOR UPDATE or FOR SHARE, a read under two-phase locking).
const (
	OpRead   Op = "read"
	OpLock   Op = "lock"
	OpInsert Op = "insert"
	OpUpdate Op = "update"
	OpDelete Op = "delete"
	// OpMatch is an UPDATE that found the row and changed nothing in it, where the engine then creates no version (MySQL
	// family): Version is the current one, which it read under its lock and which had the assigned values already.
	OpMatch Op = "match"
)

// Writes reports whether op creates a version (a deletion creates the dead version, Adya 1999, section 4.1).
func (op Op) Writes() bool { return op == OpInsert || op == OpUpdate || op == OpDelete }

// Places in a row's version order that are not numbers of versions.
const (
	OrderUnknown uint64 = 0 // the version has a place, but it was not seen
	OrderInitial uint64 = 1 // older than every version whose writing the history holds
)

// Access is one row version that a statement read, or the version change that it made.
type Access struct {
	Op  Op  `json:"op"`
	Row Row `json:"row"`
	// Name is what people know the row by, as far as the statement told it: "id=1". A verdict may take it for the row's key in a condition, besides Key.
	Name string `json:"name,omitempty"`
	// Version is the version read (OpRead, OpLock) or created (OpInsert, OpUpdate); unique within Row. It is empty for
	// OpDelete, and for a read whose version could not be seen (Approx is set then).
	Version string `json:"version,omitempty"`
	// Writer is the token of the transaction that created the version read. A token belongs to one transaction, which
	// lists its own in Event.Tokens. Empty where it is the accessing transaction itself or unknown.
	Writer string `json:"writer,omitempty"`
	// Prev and PrevWriter tell the version that a write replaced, where the engine tells it.
	Prev       string `json:"prev,omitempty"`
	PrevWriter string `json:"prev_writer,omitempty"`
	// Order is the place of Version in the row's version order: it grows strictly along the order. For a deletion it is
	// the place of the dead version. OrderUnknown and OrderInitial have their own meanings.
	Order uint64 `json:"order,omitempty"`
	// PrevOrder is the place of Prev, in the same scale.
	PrevOrder uint64 `json:"prev_order,omitempty"`
	// AsOf bounds the place of a version read: its Order is less than AsOf. 0 where there is no bound. With it a version
	// whose writing was never seen still precedes every version whose Order is AsOf or more.
	AsOf uint64 `json:"as_of,omitempty"`
	// Approx says that the statement may have done this; no finding may rest on it.
	Approx bool `json:"approx,omitempty"`
	// Image has column values of the version that a write created, and Was of the version that it replaced, in the form of
	// package statement/condition. Empty where they were not captured.
	Image string `json:"image,omitempty"`
	Was   string `json:"was,omitempty"`
	// Values are column values of the version that a read gave to the client, in the same form, for people only; no verdict depends on them.
	Values string `json:"values,omitempty"`
}

// EventKind tells events apart.
type EventKind string

// The kinds of events, in the order in which they occur for one transaction.
const (
	EventSession EventKind = "session" // a client connected
	EventBegin   EventKind = "begin"   // a transaction began (explicit, or one autocommit statement)
	EventStmt    EventKind = "stmt"    // a statement was answered
	EventEnd     EventKind = "end"     // a transaction ended
	EventClose   EventKind = "close"   // the client left, or (with Why) the session is not observed any more
)

// Outcome is how a transaction ended.
type Outcome string

// The outcomes. A connection lost during COMMIT leaves OutcomeUnknown: the transaction may have committed.
const (
	OutcomeCommitted Outcome = "committed"
	OutcomeAborted   Outcome = "aborted"
	OutcomeUnknown   Outcome = "unknown"
)

// Coverage says how much of a statement's reads and writes its Accesses tell.
type Coverage string

// The coverages. A statement that touches no watched table (SET, SELECT 1, BEGIN) has CoverageNone.
const (
	CoverageNone        Coverage = ""
	CoverageExact       Coverage = "exact"
	CoverageApproximate Coverage = "approximate"
	CoverageOpaque      Coverage = "opaque"
)

// UnseenRows is Event.Why of an exact statement that made rows: who reads one knows who made it, but not before.
const UnseenRows = "its new rows are not seen"

// Event is one line of a history. Which fields are set depends on Kind.
type Event struct {
	Kind    EventKind `json:"e"`
	Session uint64    `json:"s,omitempty"` // wirecheck's own number of the client connection, from 1
	Txn     uint64    `json:"t,omitempty"` // number of the transaction, unique in the history, from 1
	// From and To are ticks of the recorder's logical clock: From was taken before the first byte of the statement (or
	// of the transaction's first statement) went to the server, To after the answer came. A.To < B.From means that A was
	// over before B began; nothing else follows from ticks.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// At is the wall clock in nanoseconds since 1970, for people only; no verdict depends on it.
	At int64 `json:"at,omitempty"`

	// EventSession
	Engine   string `json:"engine,omitempty"` // "postgres", "mariadb", "mysql"
	Server   string `json:"server,omitempty"` // the server's version string
	Database string `json:"db,omitempty"`
	User     string `json:"user,omitempty"`
	// Superuser says that the server lets the user see all that others do, as far as it told so at the login. It is not recorded.
	Superuser bool   `json:"-"`
	Client    string `json:"client,omitempty"`  // application_name or the driver's program name, if it said one
	Backend   uint64 `json:"backend,omitempty"` // backend pid or connection id

	// EventBegin
	Level    string `json:"level,omitempty"`    // "read uncommitted", "read committed", "repeatable read", "snapshot", "serializable"; empty: not known
	Implicit bool   `json:"implicit,omitempty"` // autocommit

	// EventStmt
	N        int      `json:"n,omitempty"` // number of the statement in its transaction, from 1
	SQL      string   `json:"sql,omitempty"`
	Verb     string   `json:"verb,omitempty"` // "select", "insert", "update", "delete", "replace", "merge", "copy", "ddl", "begin", "commit", "rollback", "savepoint", "rollback to", "release", "set", "other"
	Accesses []Access `json:"acc,omitempty"`
	Coverage Coverage `json:"coverage,omitempty"`
	Why      string   `json:"why,omitempty"` // why Coverage is not exact, the session is not observed any more, or UnseenRows
	// CurrentRead says that every column this UPDATE assigned is computed by the server from the row's current version
	// (SET v = v + 1), so that the statement read what it replaced, under its lock; but for columns that get its time (RoleTime).
	CurrentRead bool `json:"current_read,omitempty"`
	// Predicate says that the statement chose its rows by a condition other than equality with a whole unique key, so
	// that rows it did not match matter too (predicate dependencies, Adya 1999, section 4.4.1).
	Predicate bool `json:"predicate,omitempty"`
	// Reads are the statement's predicate reads, as far as they can be evaluated. Unread says why others cannot.
	Reads  []PredicateRead `json:"reads,omitempty"`
	Unread string          `json:"unread,omitempty"`
	// UndoesFrom is set on a ROLLBACK TO SAVEPOINT that succeeded: what the transaction's statements with this number
	// and later ones wrote never happened.
	UndoesFrom int `json:"undoes_from,omitempty"`
	// Tokens are names under which this transaction's versions are known, as far as they became known with this
	// statement or (EventBegin) from the start.
	Tokens []string `json:"tokens,omitempty"`
	// Error is set if the server refused the statement. Its writes then did not happen.
	Error *ServerError `json:"error,omitempty"`
	// Request names the request of the application that the statement belongs to, as far as its tags or its session's pauses tell.
	Request string `json:"request,omitempty"`
	// Params are the values of a prepared statement's parameters by their numbers, in the form of Access.Image, for people only.
	Params string `json:"params,omitempty"`
	// Tags are what the application said of the statement, for people: "route=/buy".
	Tags []string `json:"tags,omitempty"`
	// Operands are the columns that an UPDATE assigns and compares, or an INSERT of one row that updates the row in its way. They are recorded once requests are known, and where a column gets the time.
	Operands []Operand `json:"operands,omitempty"`
	// Derived says which of the values that it assigned come from values that the same request had read.
	Derived []Derived `json:"derived,omitempty"`

	// EventEnd
	Outcome Outcome `json:"outcome,omitempty"`
	// Sent is the tick before COMMIT was sent; 0: not known.
	Sent uint64 `json:"sent,omitempty"`
	// Pending says that the engine will tell some of this ended transaction's writes later (MySQL family, autocommit):
	// an EventStmt with the same Txn and N follows, with the missing Accesses, or the session's EventClose.
	Pending bool `json:"pending,omitempty"`
}

// ServerError is how a server refused a statement. A history's file has Code and Message, a capture file SQLState besides; the rest is
// known only while the answer is at hand.
type ServerError struct {
	Code     string `json:"code"`            // SQLSTATE (PostgreSQL), or the error number (MySQL family)
	SQLState string `json:"state,omitempty"` // of the MySQL family too, if known
	Message  string `json:"message,omitempty"`
	Severity string `json:"-"` // PostgreSQL: ERROR, FATAL, PANIC
	Detail   string `json:"-"`
	Hint     string `json:"-"`
	Where    string `json:"-"` // PostgreSQL: the context, such as the function
	// Aborted: the error rolled the transaction back. Who read the answer says so where the code alone does not tell.
	Aborted bool `json:"-"`
}

// Text is the error in the words of findings and notes.
func (e *ServerError) Text() string { return "error " + e.Code + ": " + e.Message }

// Error implements error.
func (e *ServerError) Error() string {
	if e.Severity != "" {
		return fmt.Sprintf("%s: %s (%s)", e.Severity, e.Message, e.Code)
	}
	return fmt.Sprintf("%s (%s)", e.Message, e.Code)
}
