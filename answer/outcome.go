package answer

import "strconv"

// State is what a server says of a session's transaction, in the letters of PostgreSQL's ReadyForQuery.
type State byte

// The states. The MySQL family's transactions never are Failed.
const (
	Unknown State = 0   // nothing is known of it: some sources of traces do not tell
	Idle    State = 'I' // outside of a transaction
	Open    State = 'T' // in one
	Failed  State = 'E' // in one that has failed: the server refuses everything but its end
)

// String is the state's name; empty where it is not known. A letter that a file has and that means nothing is a number.
func (s State) String() string {
	switch s {
	case Unknown:
		return ""
	case Idle:
		return "idle"
	case Open:
		return "open"
	case Failed:
		return "failed"
	}
	return strconv.Itoa(int(s))
}

// MarshalText gives the state's name, for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// InTransaction reports whether a transaction is open, a failed one included.
func (s State) InTransaction() bool { return s == Open || s == Failed }

// Outcome says what a step did to its session's transaction: what the rest of that session's steps may still do.
type Outcome struct {
	Effect Effect
	Reason Reason // why it failed; empty if it did not
	// Retry says that the transaction lost against a concurrent one and may succeed when it is repeated.
	Retry bool
}

// Effect is what happened to the transaction.
type Effect string

// The effects.
const (
	// EffectNone: the step was done. Whether it ended the transaction, Answer.After tells.
	EffectNone Effect = "done"
	// EffectStatement: the statement was rolled back, or did nothing. The transaction, if one is open, goes on.
	EffectStatement Effect = "statement failed"
	// EffectFailed: the transaction has failed. The server refuses everything until the client ends it; COMMIT, too,
	// rolls it back (PostgreSQL).
	EffectFailed Effect = "transaction failed"
	// EffectRolledBack: the transaction is rolled back and the session outside of one. After an error, the client did
	// not ask for that; without one, it did, or it asked for COMMIT of a failed transaction.
	EffectRolledBack Effect = "rolled back"
	// EffectCommitted: the statement failed, but what came before it in the transaction is committed (MySQL family: a
	// statement with an implicit commit).
	EffectCommitted Effect = "committed, then failed"
	// EffectGone: the connection is gone, and its transaction is rolled back, except when COMMIT was on its way: then
	// nobody knows.
	EffectGone Effect = "connection gone"
)

// Reason is why a step failed, in words that are the same for all products.
type Reason string

// The reasons.
const (
	ReasonDeadlock      Reason = "deadlock"
	ReasonSerialization Reason = "serialization failure" // could not serialize, write conflict, row changed behind the snapshot
	ReasonLockTimeout   Reason = "lock wait time-out"
	ReasonNoWait        Reason = "lock not available" // NOWAIT
	ReasonFailed        Reason = "transaction has failed before"
	ReasonReadOnly      Reason = "read-only transaction"
	ReasonCancelled     Reason = "cancelled"   // statement time-out, KILL QUERY, pg_cancel_backend
	ReasonKilled        Reason = "killed"      // KILL, pg_terminate_backend, an idle time-out
	ReasonServer        Reason = "server gone" // it shut down, crashed, or the network broke
	ReasonInternal      Reason = "internal error"
	ReasonOther         Reason = "error" // the statement's own fault: constraint, syntax, privilege
)

// Contention reports whether the statement was refused because other transactions ran too: it lost against one, or did not get its lock.
func (r Reason) Contention() bool {
	return r == ReasonDeadlock || r == ReasonSerialization || r == ReasonLockTimeout || r == ReasonNoWait
}
