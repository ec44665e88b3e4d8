// Package tidb is the backend for TiDB: its levels and error classes, its view of waits, and how to start a private server (one
// process with its own storage, unistore). Protocol and connections are MySQL's (package backends/mysql).
package tidb

import (
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// Descriptor describes TiDB.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Name:     "tidb",
		Title:    "TiDB",
		Schemes:  []string{"tidb"},
		Protocol: engine.ProtocolMySQL,
		Port:     4000,
		Install:  Install,
		Levels:   Levels(),
		Default:  "REPEATABLE READ",
		Aborts:   func(code string) bool { return class(code).Aborts },
		Retry:    func(code string) bool { return class(code).Retry },
		System:   System,
		Start:    Start,
		Find:     Find,
		Connect:  mysql.Connect,
		Watch:    Watch,
		Outcome:  func(a answer.Answer, err error) answer.Outcome { return engine.Judge(class, a, err) },
		SetLevel: SetLevel,
		Silent:   Silent,
		Patience: 500 * time.Millisecond,
		Lab:      labs(),
	}
}

// labs are MySQL's, with quicker definitions where nothing is under way meanwhile: with metadata locks each of a definition's steps
// (six for an index) waits for a look at them, every 50 ms (TiDB docs, "Metadata Lock").
func labs() engine.Lab {
	l := mysql.Lab()
	l.Undisturbed = "SET GLOBAL tidb_enable_metadata_lock = OFF"
	return l
}

// Install is the command that installs the server. Debian and Ubuntu have no package of it.
const Install = "curl -sSf https://tiup-mirrors.pingcap.com/install.sh | sh && tiup install tidb"

// optimistic is the level of optimistic transactions, which take no locks and fail at COMMIT if what they wrote has changed.
const optimistic = "SNAPSHOT"

// Levels are TiDB's (TiDB docs, "TiDB Transaction Isolation Levels"). READ COMMITTED takes effect in pessimistic transactions only;
// REPEATABLE READ in these reads from a snapshot but writes to the latest rows, like MySQL's.
func Levels() []engine.Level {
	return []engine.Level{
		{SQL: "READ COMMITTED", History: "read committed", Behaves: "read committed"},
		{SQL: "REPEATABLE READ", History: "repeatable read", Behaves: "read committed"},
		{SQL: optimistic, History: "snapshot", Behaves: "snapshot"},
	}
}

// SetLevel gives the statements that make a level the session's.
func SetLevel(level string) string {
	mode := "pessimistic"
	if level == optimistic {
		level, mode = "REPEATABLE READ", "optimistic"
	}
	return mysql.SetLevel(level) + "; SET SESSION tidb_txn_mode = '" + mode + "'"
}

// class sorts errors: TiDB's own (TiDB docs, "Error Codes and Troubleshooting"), and MySQL's for the rest. TiDB rolls the
// transaction back at a deadlock and at whatever its storage refuses when it commits.
func class(code string) engine.ErrorClass {
	switch code {
	case "9007", "8005", "8002", "8022", "8028": // write conflict; its older number; SELECT FOR UPDATE; retryable commit error; schema changed
		return engine.ErrorClass{Reason: answer.ReasonSerialization, Retry: true, Aborts: true}
	case "9004", "8004", "8027", "8223", "9001", "9002", "9003", "9005", "9006", "9008":
		// Resolving a lock, a transaction too large, schema out of date, the storage's and the scheduler's time-outs, garbage collection.
		return engine.ErrorClass{Reason: answer.ReasonOther, Aborts: true}
	case "8141", "8133": // assertion failed, data inconsistent
		return engine.ErrorClass{Reason: answer.ReasonInternal, Aborts: true}
	}
	return mysql.Class(code)
}

// System reports whether the schema is TiDB's own. It shows some in capitals.
func System(schema string) bool {
	schema = strings.ToLower(schema)
	return mysql.System(schema) || schema == "metrics_schema" || schema == "inspection_schema" || schema == "lightning_task_info"
}

// Silent reports whether the server shows nothing when the statement waits. tidb_trx shows waits of statements in pessimistic
// transactions alone: writes outside of a transaction and COMMIT wait inside the storage's protocol, DDL for the metadata lock.
func Silent(sql string, inTransaction bool) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\r\n("), " ")
	switch strings.ToUpper(strings.TrimRight(word, "; \t\r\n")) {
	case "SELECT", "DO", "TABLE", "VALUES", "WITH": // outside of a transaction they take no locks
		return strings.Contains(strings.ToUpper(sql), "GET_LOCK")
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		return !inTransaction
	case "BEGIN", "START", "ROLLBACK", "SET", "SHOW", "USE", "EXPLAIN", "DESC", "DESCRIBE", "SAVEPOINT", "RELEASE":
		return false
	}
	return true
}
