// Package mysql is the backend for MySQL, and holds what MariaDB shares with it: levels, error classes, the start of a
// private server, and the hidden columns.
package mysql

import (
	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Descriptor describes MySQL.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Name:     "mysql",
		Title:    "MySQL",
		Schemes:  []string{"mysql"},
		Protocol: engine.ProtocolMySQL,
		Port:     3306,
		Install:  Install,
		Levels:   Levels(),
		Default:  "REPEATABLE READ",
		Aborts:   Aborts(false),
		Retry:    Retry,
		System:   System,
		Start:    Start,
		Connect:  Connect,
		Watch:    Watch,
		Outcome:  Outcome,
		SetLevel: SetLevel,
		Find:     Find,
		Lab:      Lab(),
		// Oracles with databases of their own, at several levels, need many connections.
		LabSettings: map[string]string{"max_connections": "1000"},
	}
}

// Install is the command that installs the server on Ubuntu. Debian has no package of it.
const Install = "apt-get install -y mysql-server"

// Levels are InnoDB's (MySQL manual, "Transaction Isolation Levels"). REPEATABLE READ reads from a snapshot but writes to the latest
// rows, so that lost updates and read skew pass once a transaction writes: it promises no more than read committed.
func Levels() []engine.Level {
	return []engine.Level{
		{SQL: "READ UNCOMMITTED", History: "read uncommitted", Behaves: "read uncommitted"},
		{SQL: "READ COMMITTED", History: "read committed", Behaves: "read committed"},
		{SQL: "REPEATABLE READ", History: "repeatable read", Behaves: "read committed"},
		{SQL: "SERIALIZABLE", History: "serializable", Behaves: "serializable"},
	}
}

// Aborts tells which errors roll the whole transaction back (MySQL manual, "InnoDB Error Handling"): 1213 (deadlock) and 1206 (lock
// table full), and 1205 (lock wait timeout) if innodb_rollback_on_timeout is on. All others roll back the statement.
func Aborts(rollbackOnTimeout bool) func(code string) bool {
	return func(code string) bool {
		switch code {
		case "1206", "1213":
			return true
		case "1205":
			return rollbackOnTimeout
		}
		return false
	}
}

// Retry reports whether the error number says that the transaction lost against a concurrent one: lock wait timeout,
// deadlock, NOWAIT.
func Retry(code string) bool { return Class(code).Retry }

// Outcome says what a step did to its session's transaction.
func Outcome(a answer.Answer, err error) answer.Outcome { return engine.Judge(Class, a, err) }

// SetLevel gives the statement that makes a level the session's.
func SetLevel(level string) string { return "SET SESSION TRANSACTION ISOLATION LEVEL " + level }

// System reports whether the schema is the product's own.
func System(schema string) bool {
	switch schema {
	case "information_schema", "mysql", "performance_schema", "sys":
		return true
	}
	return false
}
