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
		Patience: patience,
		Lab:      labs(),
	}
}

// labs are MySQL's, with quicker definitions where nothing is under way meanwhile: with metadata locks each of a definition's steps
// (six for an index) waits for a look at them, every 50 ms (TiDB docs, "Metadata Lock").
func labs() engine.Lab {
	l := mysql.Lab()
	l.CountersTell = false
	l.Restores = true
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

// patience is how long a statement may take whose wait nothing shows. What writes without a transaction, or ends one, takes a few milliseconds if it waits for
// nobody; a definition takes hundreds on a busy machine. The longer a write has waited, the longer it sleeps before it looks at the lock again.
const (
	patience      = 500 * time.Millisecond
	writePatience = 100 * time.Millisecond
)

// Silent says how long a statement may take before it counts as waiting, if the server shows nothing when it waits. tidb_trx shows waits of statements in
// pessimistic transactions alone: writes outside of a transaction and COMMIT wait inside the storage's protocol, DDL for the metadata lock.
func Silent(sql string, inTransaction bool) time.Duration {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\r\n("), " ")
	switch strings.ToUpper(strings.TrimRight(word, "; \t\r\n")) {
	case "SELECT", "DO", "TABLE", "VALUES", "WITH": // outside of a transaction they take no locks
		if strings.Contains(strings.ToUpper(sql), "GET_LOCK") {
			return patience
		}
		return 0
	case "INSERT", "UPDATE", "DELETE", "REPLACE":
		if inTransaction {
			return 0
		}
		return writePatience
	case "COMMIT":
		return writePatience
	case "BEGIN", "START", "ROLLBACK", "SET", "SHOW", "USE", "EXPLAIN", "DESC", "DESCRIBE", "SAVEPOINT", "RELEASE":
		return 0
	}
	return patience
}
