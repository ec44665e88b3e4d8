// Package tidb is the backend for TiDB: its levels and error classes, its view of waits, and how to start a private server (one
// process with its own storage, unistore). Protocol and connections are MySQL's (package backends/mysql).
package tidb

import (
	"strings"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
	"wirecheck/product"
)

// Descriptor describes TiDB.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Product:  product.Of("tidb"),
		Schemes:  []string{"tidb"},
		Protocol: engine.ProtocolMySQL,
		Port:     4000,
		Install:  Install,
		Start:    Start,
		Find:     Find,
		Connect:  mysql.Connect,
		Watch:    Watch,
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
	l.CountersTell = false
	l.Blocks = "SELECT EXISTS (SELECT 1 FROM information_schema.SEQUENCES WHERE SEQUENCE_SCHEMA = DATABASE())" // a server caches their numbers
	l.Undisturbed = "SET GLOBAL tidb_enable_metadata_lock = OFF"
	return l
}

// Install is the command that installs the server. Debian and Ubuntu have no package of it.
const Install = "curl -sSf https://tiup-mirrors.pingcap.com/install.sh | sh && tiup install tidb"

// SetLevel gives the statements that make a level the session's.
func SetLevel(level string) string {
	mode := "pessimistic"
	if level == product.Of("tidb").Level(product.Snapshot).SQL {
		level, mode = "REPEATABLE READ", "optimistic"
	}
	return mysql.SetLevel(level) + "; SET SESSION tidb_txn_mode = '" + mode + "'"
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
