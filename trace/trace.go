// Package trace holds what really happened at a server: which session sent which statement when, and what was answered, as far as
// somebody saw it. It has the capture file format (.wct, docs/FORMATS.md), the readers of the logs and packet captures that
// production servers leave behind, and what one does with a capture file: order it, cut it, redact it, count it.
//
// A trace is not a history: it does not know which row versions were read and written. It is what a replay starts from.
// What a source did not tell stays unknown here; nothing is guessed unless the field says so.
package trace

// Kind tells what a Record is.
type Kind uint8

// The kinds of records.
const (
	KindSession   Kind = 1 // a session began, was first seen, or more became known of it
	KindStatement Kind = 2
	KindWait      Kind = 3 // a statement waited for a lock, or got it
	KindEnd       Kind = 4 // a session ended
)

// Record is one piece of a trace. The field that belongs to its kind is set.
type Record struct {
	Kind      Kind
	Session   uint64 // number of the session in the file, from 1
	Open      *Session
	Statement *Statement
	Wait      *Wait
	End       *End
}

// At is a record's place in the order of a trace: the time it began, or what comes next to it, in nanoseconds since 1970.
func (r *Record) At() int64 {
	switch r.Kind {
	case KindSession:
		return r.Open.At
	case KindStatement:
		if r.Statement.Start != 0 {
			return r.Statement.Start
		}
		return r.Statement.End
	case KindWait:
		return r.Wait.At
	case KindEnd:
		return r.End.At
	}
	return 0
}

// Session is what is known of a session. A later record of the same session holds all of it again, with what is new.
type Session struct {
	At          int64  // when it began, or what follows became known; 0: not known
	Joined      bool   // it was there already: what it did before is not in the trace
	Product     string // postgres, mariadb, mysql, tidb
	Version     string
	User        string
	Database    string
	Application string
	Client      string // address
	Backend     string // the server's name for it: process id, thread id, connection id
	Level       string // isolation level of its transactions unless they ask for another one, as history.Event.Level
	Encrypted   bool   // it went on where nobody could look
}

// Protocol is how a statement reached the server.
type Protocol uint8

// The protocols.
const (
	ProtocolUnknown  Protocol = 0
	ProtocolSimple   Protocol = 1 // as text: PostgreSQL's simple query, COM_QUERY
	ProtocolPrepared Protocol = 2 // a prepared statement of the wire protocol: Parse, Bind, Execute; COM_STMT_EXECUTE
	ProtocolExecute  Protocol = 3 // the SQL statement EXECUTE
	ProtocolFetch    Protocol = 4 // more rows of a portal or cursor of the wire protocol
)

// Status is what the server says of a session's transaction.
type Status byte

// The states, as in PostgreSQL's ReadyForQuery.
const (
	StatusUnknown Status = 0
	StatusIdle    Status = 'I'
	StatusOpen    Status = 'T'
	StatusFailed  Status = 'E'
)

// Unknown is the value of numbers that are not known where 0 would be a value.
const Unknown = -1

// Statement is one statement with its answer.
type Statement struct {
	SQL      string
	Lost     bool   // the source does not tell the text, or not all of it
	Prepared string // ProtocolExecute: the PREPARE behind it
	Name     string // of the prepared statement, if it has one
	Protocol Protocol
	Params   []Param
	NoParams bool // it had parameters that the source does not tell

	// Start and End are wall clock times in nanoseconds since 1970, 0 if not known.
	Start, End int64
	// Took is the duration as the server measured it, in nanoseconds, 0 if not known. It may be finer than Start and End.
	Took int64
	// From and To are places in the order that the source itself keeps, 0 if not known. a.To < b.From means that a was over before b
	// began; nothing else follows from them.
	From, To uint64
	// ID is a number that the server gives its statements in the order in which they begin (MariaDB's query id), 0 if not known.
	ID uint64
	// Late says that the source wrote the statement down at an unknown time after it had ended (pgaudit with log_rows).
	Late bool

	Before, After Status // of the transaction
	Txn           string // the server's name for the transaction (PostgreSQL: virtual transaction id)
	XID           uint64 // its number once it has written (PostgreSQL)

	Results []Result
	Error   *Error
	Tags    []Tag   // what sqlcommenter and its like put into a comment
	Tables  []Table // where the source tells them
}

// Param is the value of a parameter.
type Param struct {
	Type   string // the type as the protocol names it (int4, VAR_STRING); empty if not known
	Null   bool
	Binary bool   // Value is in the protocol's binary form, because its type is not one that we know how to write as text
	Value  string // text form, as in a literal without its quotes
}

// Result is one answer of a statement; a request of several statements has several.
type Result struct {
	Tag      string // PostgreSQL's command tag
	Affected int64  // rows inserted, updated, deleted; Unknown
	Count    int64  // rows returned; Unknown
	Columns  []Column
	Rows     [][]Value // those that were kept
	Partial  bool      // not all rows were kept
	Digest   string    // of all rows, also those not kept; empty if they were not seen
}

// Column is a column of a result.
type Column struct{ Name, Type string }

// Value is a value of a row.
type Value struct {
	Null   bool
	Binary bool
	Text   string
}

// Error is how a server refused a statement.
type Error struct {
	Code    string // SQLSTATE, or the number in the MySQL family
	State   string // SQLSTATE, MySQL family, if known
	Message string
}

// Tag is a key and a value that the application gave a statement in a comment.
type Tag struct{ Key, Value string }

// Table is a table that a statement used.
type Table struct {
	Name  string // with its schema, if the source tells it
	Write bool
}

// WaitState is what a wait notice says.
type WaitState uint8

// The states.
const (
	WaitBegan    WaitState = 1 // it waits, and has for Took
	WaitEnded    WaitState = 2 // it has the lock
	WaitDeadlock WaitState = 3 // it closed a circle
	WaitGaveUp   WaitState = 4 // it ended without the lock
)

// Wait is a server's notice that a session waits for a lock.
type Wait struct {
	At    int64
	Tick  uint64 // place in the source's own order, as Statement.From
	State WaitState
	Took  int64    // nanoseconds so far
	Lock  string   // as the server names it
	For   []uint64 // the sessions that hold it, as far as known
}

// End is the end of a session.
type End struct {
	At     int64
	Tick   uint64
	Reason string // quit, lost, killed, or what the server says
}
