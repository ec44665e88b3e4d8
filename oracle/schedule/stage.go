package schedule

import (
	"context"

	"wirecheck/answer"
)

// Stage executes what an oracle wants executed: one database of its own on the engine that is tested, with as many sessions as
// the case has. It belongs to one goroutine at a time. Statements that the server refuses are answers, not errors; an error means
// that the stage cannot go on (the server is gone, ctx has ended).
type Stage interface {
	// Prepare makes the database what the statements leave in it, from nothing, with that many sessions at the case's level
	// (Schedule.Level), and remembers it for Reset. Statements beyond a case's own setup may add columns and tables. What the server
	// refuses is an error here. There is a session 0 in any case. Preparing what is there already costs no more than Reset.
	Prepare(ctx context.Context, setup []string, sessions int) error
	// Reset brings the tables back to what Prepare made, and makes all sessions as new: no transactions, settings, locks or
	// temporary tables are left.
	Reset(ctx context.Context) error
	// Execute executes one statement in a session and waits for its answer. It fills Step but for Name, Sent, Done, Waited and For,
	// which are zero; of Statement perhaps the text alone. Sessions begin outside of a transaction, with the settings of a new connection. A statement that would wait for another session of the stage ends, after a time limit, with an
	// answer whose Reason is answer.ReasonLockTimeout.
	Execute(ctx context.Context, session int, sql string) (Step, error)
	// Tables reads all tables, on a connection of its own: it sees what is committed.
	Tables(ctx context.Context) ([]answer.Table, error)
	// Load puts rows in the place of those that tables have; tables that are not named stay as they are. Columns that the
	// server generates are left out. No triggers and no foreign keys are looked at. Rows that the server does not take, since
	// they break a key, are a Refused error, after which the stage can still be used.
	Load(ctx context.Context, tables []answer.Table) error
	// Run resets, executes each session's settings (Session.Setup), and executes steps as a case is executed: submitted in this
	// order, as far as waits allow.
	Run(ctx context.Context, sessions []Session, orders []Order) (*Schedule, error)
}

// Refused is the error of Stage.Load if the server does not take the rows. What an oracle concludes from a schedule that a server
// with a bug made may well be such rows.
type Refused struct{ Err error }

func (r *Refused) Error() string { return "the server refuses the rows: " + r.Err.Error() }

// Unwrap gives the server's own words.
func (r *Refused) Unwrap() error { return r.Err }
