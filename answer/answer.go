// Package answer holds what a server answered to a step, typed: results with their columns and values, the error, notices, the state
// of the session's transaction, and the outcome: what the step did to that transaction, and why it failed. Backends make answers;
// lab, oracles, replay and traces read them.
//
// It is pure and imports only history.
package answer

import "wirecheck/history"

// Answer is what one step brought back.
type Answer struct {
	Results []Result // one for each statement that was done, in order
	Err     *Error   // the error that ended the step, or nil
	Notices []Notice // in order of arrival
	// Before and After are what the server said of the session's transaction before the step and after it.
	Before, After State
}

// Result is what one statement brought back.
type Result struct {
	Tag          string    // "SELECT 2", "UPDATE 1", "BEGIN"; the MySQL family has none
	Columns      []Column  // nil where the statement returns no rows
	Rows         [][]Value // in text form. COPY TO STDOUT: one Value a line, without Columns
	Affected     int64
	LastInsertID uint64 // MySQL family
	Warnings     int    // how many the server has (MySQL family)
	// Err is the error that refused the statement. It is set where a step is taken apart by its statements; the Results of an Answer
	// are those of statements that were done, and have none.
	Err *Error
}

// Value is one field as the server sent it; nil is NULL, which is not the same as empty.
type Value = []byte

// Column describes one column of a result or a table.
type Column struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"` // the product's name of it: "int4", "varchar"; "user-defined" for what the database defines itself
	Numeric bool   `json:"-"`              // psql would align it to the right
}

// Equal reports whether two columns have the same name and type.
func (c Column) Equal(o Column) bool { return c.Name == o.Name && c.Type == o.Type }

// String is the name and the type, as in a definition.
func (c Column) String() string { return c.Name + " " + c.Type }

// Error is how a server refused a statement.
type Error = history.ServerError

// Notice is a message that came beside an answer: a notice or warning, or (with Channel) a LISTEN notification.
type Notice struct {
	Severity, Code, Message, Detail, Hint string
	Channel, Payload                      string
	PID                                   uint64
}

// Table is a table and its rows, in canonical order (CompareRows): equal contents give equal rows.
type Table struct {
	Name    string // for people: "t", or "s.t" outside of the usual schema
	Columns []Column
	Rows    [][]Value
}
