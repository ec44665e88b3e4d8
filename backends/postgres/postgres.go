// Package postgres is the backend for PostgreSQL: its levels and error classes, how to start a private server, and the
// hidden columns for those who want them.
package postgres

import (
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Descriptor describes PostgreSQL.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Name:     "postgres",
		Title:    "PostgreSQL",
		Schemes:  []string{"postgres", "postgresql"},
		Protocol: engine.ProtocolPostgres,
		Port:     5432,
		Install:  Install,
		// PostgreSQL manual, 13.2: READ UNCOMMITTED behaves like READ COMMITTED, and REPEATABLE READ is snapshot isolation.
		Levels: []engine.Level{
			{SQL: "READ UNCOMMITTED", History: "read uncommitted", Behaves: "read committed"},
			{SQL: "READ COMMITTED", History: "read committed", Behaves: "read committed"},
			{SQL: "REPEATABLE READ", History: "repeatable read", Behaves: "snapshot"},
			{SQL: "SERIALIZABLE", History: "serializable", Behaves: "serializable"},
		},
		Default: "READ COMMITTED",
		Aborts:  func(code string) bool { return class(code).Aborts },
		Retry:   func(code string) bool { return class(code).Retry },
		System:  System,
		Start:   Start,
		Connect: Connect,
		Watch:   Watch,
		Outcome: func(a answer.Answer, err error) answer.Outcome { return engine.Judge(class, a, err) },
		SetLevel: func(level string) string {
			return "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL " + level
		},
		Discard:     "DISCARD ALL",
		Find:        Find,
		Lab:         Lab(),
		LabSettings: LabSettings(),
	}
}

// Install is the command that installs the server on Debian and Ubuntu.
const Install = "apt-get install -y postgresql"

// LabSettings make a deadlock end after a millisecond, not a second, and the server tell when a waiter has looked for one: then the
// victim is the statement that closed the circle, as long as every other has looked before (engine.Checker); with a second the victim
// is whoever waited first, by timers.
// Autovacuum takes locks and snapshots of its own, and a background that works at moments of its own choosing. Oracles with databases
// of their own, at several levels, need more connections than the usual hundred.
func LabSettings() map[string]string {
	return map[string]string{"deadlock_timeout": "1ms", "log_lock_waits": "on", "autovacuum": "off", "max_connections": "500", "jit": "off"}
}

// class sorts errors (PostgreSQL manual, appendix A, "Error Codes", and 13.5, "Serialization Failure Handling"). No error
// leaves the session outside of any transaction: inside a transaction block every one leaves a failed transaction that the client must
// roll back (ReadyForQuery 'E'), COMMIT's own errors apart, and those that end the transaction for good end the session.
func class(code string) engine.ErrorClass {
	switch code {
	case "40001":
		return engine.ErrorClass{Reason: answer.ReasonSerialization, Retry: true}
	case "40P01":
		return engine.ErrorClass{Reason: answer.ReasonDeadlock, Retry: true}
	case "55P03": // lock_timeout, and NOWAIT: the code is one
		return engine.ErrorClass{Reason: answer.ReasonNoWait, Retry: true}
	case "25P02":
		return engine.ErrorClass{Reason: answer.ReasonFailed}
	case "57014": // statement_timeout, pg_cancel_backend
		return engine.ErrorClass{Reason: answer.ReasonCancelled}
	case "57P01", "57P05", "25P03", "25P04": // pg_terminate_backend and shutdown; idle_session, idle_in_transaction_session, transaction_timeout
		return engine.ErrorClass{Reason: answer.ReasonKilled, Gone: true}
	case "57P02", "57P03", "57P04": // a crash of another session, starting or stopping, database dropped
		return engine.ErrorClass{Reason: answer.ReasonServer, Gone: true}
	}
	switch {
	case strings.HasPrefix(code, "XX"): // internal error, corrupted data
		return engine.ErrorClass{Reason: answer.ReasonInternal}
	case strings.HasPrefix(code, "08"):
		return engine.ErrorClass{Reason: answer.ReasonServer, Gone: true}
	}
	return engine.ErrorClass{Reason: answer.ReasonOther}
}

// System reports whether the schema is PostgreSQL's own. Names that begin with pg_ are reserved (manual, 5.9.5).
func System(schema string) bool {
	return schema == "information_schema" || strings.HasPrefix(schema, "pg_")
}
