package statement

// ControlVerb is a transaction or session control operation.
type ControlVerb string

// The control verbs that a session must follow to know its transactions and their levels.
const (
	ControlNone       ControlVerb = ""
	ControlBegin      ControlVerb = "begin"
	ControlCommit     ControlVerb = "commit"
	ControlRollback   ControlVerb = "rollback"
	ControlSavepoint  ControlVerb = "savepoint"
	ControlRollbackTo ControlVerb = "rollback to"
	ControlRelease    ControlVerb = "release"
	ControlLevel      ControlVerb = "level"      // sets an isolation level, see Control.Scope
	ControlAutocommit ControlVerb = "autocommit" // MySQL family: SET autocommit
	ControlReset      ControlVerb = "reset"      // RESET ALL, DISCARD ALL, or a setting changed in a way we cannot follow: ask the server again
	ControlDatabase   ControlVerb = "database"   // USE: Control.Name is the default database from now on
	ControlLocks      ControlVerb = "locks"      // LOCK/UNLOCK TABLES
)

// Scope says for how long a level that is set holds.
type Scope string

// The scopes of SET TRANSACTION and its relatives.
const (
	ScopeTransaction Scope = "transaction" // the current transaction (PostgreSQL), SET LOCAL
	ScopeNext        Scope = "next"        // the next transaction only (MySQL: SET TRANSACTION without SESSION)
	ScopeSession     Scope = "session"
)

// Control is the control part of a statement.
type Control struct {
	Verb  ControlVerb
	Name  string // of the savepoint, folded as the server folds it, or of the database
	Level string // as history.Event.Level; empty if the statement names none
	Scope Scope
	Chain bool // COMMIT AND CHAIN, ROLLBACK AND CHAIN
	On    bool // ControlAutocommit: the new value
	Ends  bool // the statement commits an open transaction first (MySQL: BEGIN, DDL, ...)
}
