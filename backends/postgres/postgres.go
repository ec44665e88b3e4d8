// Package postgres is the backend for PostgreSQL: its levels and error classes, how to start a private server, and the
// hidden columns for those who want them.
package postgres

import (
	"strings"

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
		Aborts:  Aborts,
		Retry:   Retry,
		System:  System,
		Start:   Start,
	}
}

// Install is the command that installs the server on Debian and Ubuntu.
const Install = "apt-get install -y postgresql"

// Aborts reports whether an error with this SQLSTATE leaves the session outside of any transaction. None does: inside a
// transaction block every error leaves a failed transaction that the client must roll back (ReadyForQuery 'E'), and the
// errors that end the transaction for good (class 57P, idle-in-transaction timeout 25P03) end the session with it.
func Aborts(string) bool { return false }

// Retry reports whether the SQLSTATE is a serialization failure or a deadlock (PostgreSQL manual, 13.5), or a lock
// timeout.
func Retry(code string) bool {
	switch code {
	case "40001", "40P01", "55P03":
		return true
	}
	return false
}

// System reports whether the schema is PostgreSQL's own. Names that begin with pg_ are reserved (manual, 5.9.5).
func System(schema string) bool {
	return schema == "information_schema" || strings.HasPrefix(schema, "pg_")
}
