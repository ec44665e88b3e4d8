// Package trace holds what happened at a server: which session sent which statement when, and what the server answered, as far as a source shows
// it. The package reads and writes the file of a trace (.wct, docs/reference/trace-format.md), and sorts, cuts, redacts, counts and prints it.
//
// A trace comes from logs (trace/logs), from packets (trace/packets) or from the recorder that a proxy feeds (trace/recorder); what these have in
// common is in trace/source. A replay starts from a trace. A trace is not a history: it does not know which row versions the statements read and
// wrote. What a source does not show stays unknown; nothing is guessed unless the field says so.
package trace

import (
	"wirecheck/answer"
	"wirecheck/history"
)

// Kind tells what a Record is.
type Kind uint8

// The kinds of records.
const (
	KindSession   Kind = 1 // a session began, was first seen, or more became known of it
	KindStatement Kind = 2
	KindWait      Kind = 3 // a statement waited for a lock, or got it
	KindEnd       Kind = 4 // a session ended
	KindHistory   Kind = 5 // an event of the history that a proxy in mode observe saw
	KindNote      Kind = 6 // the recorder has something to say of the trace itself
)

// Record is one piece of a trace. The field that belongs to its kind is set.
type Record struct {
	Kind      Kind       `json:"kind"`
	Session   uint64     `json:"session"` // number of the session in the file, from 1
	Open      *Session   `json:"open,omitempty"`
	Statement *Statement `json:"statement,omitempty"`
	Wait      *Wait      `json:"wait,omitempty"`
	End       *End       `json:"end,omitempty"`
	// History is an event of the history. The events stand in its order.
	History *history.Event `json:"history,omitempty"`
	Note    *Note          `json:"note,omitempty"`
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
	case KindNote:
		return r.Note.At
	}
	return 0 // events of the history have an order of their own
}

// Session is what is known of a session. A later record of the same session holds all of it again, with what is new.
type Session struct {
	At          int64  `json:"at,omitempty"`      // when it began, or what follows became known; 0: not known
	Joined      bool   `json:"joined,omitempty"`  // it was there already: what it did before is not in the trace
	Product     string `json:"product,omitempty"` // postgres, mariadb, mysql, tidb
	Version     string `json:"version,omitempty"`
	User        string `json:"user,omitempty"`
	Database    string `json:"database,omitempty"`
	Application string `json:"application,omitempty"`
	Client      string `json:"client,omitempty"`    // address
	Backend     string `json:"backend,omitempty"`   // the server's name for it: process id, thread id, connection id
	Level       string `json:"level,omitempty"`     // isolation level of its transactions unless they ask for another one, as history.Event.Level
	Encrypted   bool   `json:"encrypted,omitempty"` // it went on encrypted
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

// Unknown is the value of numbers that are not known where 0 would be a value.
const Unknown = -1

// Statement is one statement with its answer.
type Statement struct {
	SQL      string   `json:"sql"`
	Lost     bool     `json:"lost,omitempty"`     // the source does not tell the text, or not all of it
	Prepared string   `json:"prepared,omitempty"` // ProtocolExecute: the PREPARE behind it
	Name     string   `json:"name,omitempty"`     // of the prepared statement, if it has one
	Protocol Protocol `json:"protocol,omitempty"`
	Params   []Param  `json:"params,omitempty"`
	NoParams bool     `json:"no_params,omitempty"` // it had parameters that the source does not tell

	// Start and End are wall clock times in nanoseconds since 1970, 0 if not known.
	Start int64 `json:"start,omitempty"`
	End   int64 `json:"end,omitempty"`
	// Took is the duration as the server measured it, in nanoseconds, 0 if not known. It may be finer than Start and End.
	Took int64 `json:"took,omitempty"`
	// From and To are places in the order that the source itself keeps, 0 if not known. a.To < b.From means that a was over before b
	// began; nothing else follows from them.
	From uint64 `json:"from,omitempty"`
	To   uint64 `json:"to,omitempty"`
	// ID is a number that the server gives its statements in the order in which they begin (MariaDB's query id), 0 if not known.
	ID uint64 `json:"id,omitempty"`
	// Late says that the source wrote the statement down at an unknown time after it had ended (pgaudit with log_rows).
	Late bool `json:"late,omitempty"`

	Before answer.State `json:"before,omitempty"` // of the transaction
	After  answer.State `json:"after,omitempty"`
	Txn    string       `json:"txn,omitempty"` // the server's name for the transaction (PostgreSQL: virtual transaction id)
	XID    uint64       `json:"xid,omitempty"` // its number once it has written (PostgreSQL)

	Results []Result      `json:"results,omitempty"`
	Error   *answer.Error `json:"error,omitempty"`
	Tags    []Tag         `json:"tags,omitempty"`   // what sqlcommenter and its like put into a comment
	Tables  []Table       `json:"tables,omitempty"` // where the source shows them
}

// Param is the value of a parameter.
type Param struct {
	Type   string `json:"type,omitempty"` // the type as the protocol names it (int4, VAR_STRING); empty if not known
	Null   bool   `json:"null,omitempty"`
	Binary bool   `json:"binary,omitempty"` // Value is in the protocol's binary form, because its type is not one that we know how to write as text
	Value  string `json:"value"`            // text form, as in a literal without its quotes
}

// Result is one answer of a statement; a request of several statements has several.
type Result struct {
	Tag      string          `json:"tag,omitempty"` // PostgreSQL's command tag
	Affected int64           `json:"affected"`      // rows inserted, updated, deleted; Unknown
	Count    int64           `json:"count"`         // rows returned; Unknown
	Columns  []answer.Column `json:"columns,omitempty"`
	Rows     [][]Value       `json:"rows,omitempty"`    // those that were kept
	Partial  bool            `json:"partial,omitempty"` // not all rows were kept
	Digest   string          `json:"digest,omitempty"`  // of all rows, also those not kept; empty if they were not seen
}

// Value is a value of a row as a capture keeps it: as text where its form is known, else as it came.
type Value struct {
	Null   bool   `json:"null,omitempty"`
	Binary bool   `json:"binary,omitempty"`
	Text   string `json:"text"`
}

// Values copies a row of an answer.
func Values(row []answer.Value) []Value {
	out := make([]Value, len(row))
	for i, v := range row {
		out[i] = Value{Null: v == nil, Text: string(v)}
	}
	return out
}

// Tag is a key and a value that the application gave a statement in a comment.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Table is a table that a statement used.
type Table struct {
	Name  string `json:"name"` // with its schema, if the source shows it
	Write bool   `json:"write,omitempty"`
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
	At    int64     `json:"at,omitempty"`
	Tick  uint64    `json:"tick,omitempty"` // place in the source's own order, as Statement.From
	State WaitState `json:"state"`
	Took  int64     `json:"took"`          // nanoseconds so far
	Lock  string    `json:"lock"`          // as the server names it
	For   []uint64  `json:"for,omitempty"` // the sessions that hold it, as far as known
}

// Note says that something is missing of a trace, and why.
type Note struct {
	At   int64  `json:"at,omitempty"`
	Text string `json:"text"`
	// HistoryEnds says that no event of the history follows, though more happened.
	HistoryEnds bool `json:"history_ends,omitempty"`
}

// Why sessions end, where no server gives a reason.
const (
	EndQuit = "quit" // the client asked for it
	EndLost = "lost" // the connection ended without that
)

// End is the end of a session.
type End struct {
	At     int64  `json:"at,omitempty"`
	Tick   uint64 `json:"tick,omitempty"`
	Reason string `json:"reason,omitempty"` // EndQuit, EndLost, or what the server says
}
