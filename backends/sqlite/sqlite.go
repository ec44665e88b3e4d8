// Package sqlite is the backend for SQLite, which is a library and not a server: it runs in this process, without cgo
// (modernc.org/sqlite, the C library translated to Go). A "server" is a folder, a database a file in it, and a session a
// connection to that file.
//
// Nothing ever waits: without a busy timeout, a statement that meets a lock is refused at once with SQLITE_BUSY (sqlite.org/rescode.html),
// and its transaction stays open.
package sqlite

import (
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Descriptor describes SQLite. The connections of one descriptor know each other, as those of one server do; so one that starts a
// folder is to be used for all that is done in it.
func Descriptor() engine.Descriptor {
	p := &process{folders: map[string]*folder{}}
	return engine.Descriptor{
		Name:       "sqlite",
		Title:      "SQLite",
		Schemes:    []string{"sqlite"},
		Embedded:   true,
		NeverWaits: true,
		Install:    "nothing: it is part of wirecheck",
		// Shared cache, which alone has READ UNCOMMITTED (sqlite.org/isolation.html), is left out: its use is discouraged
		// (sqlite.org/sharedcache.html).
		Levels:   []engine.Level{{SQL: "SERIALIZABLE", History: "serializable", Behaves: "serializable"}},
		Default:  "SERIALIZABLE",
		Aborts:   func(code string) bool { return Class(code).Aborts },
		Retry:    func(code string) bool { return Class(code).Retry },
		System:   func(string) bool { return false },
		Start:    p.start,
		Connect:  p.connect,
		Watch:    p.watch,
		Outcome:  func(a answer.Answer, err error) answer.Outcome { return engine.Judge(Class, a, err) },
		SetLevel: func(string) string { return "" }, // there is one
		Find:     Find,
		Lab:      Lab(),
	}
}

// Modes are the journal modes in which databases can be made (sqlite.org/pragma.html#pragma_journal_mode): in the default one a
// reader keeps writers from committing, and a writer that commits keeps readers out; with a write-ahead log readers see the state in
// which they began, and a transaction that wants to write after such a read is refused if somebody has written since.
const (
	modeRollback = "delete"
	modeWAL      = "wal"
)

// Find lists the library, once for each journal mode.
func Find() []engine.Found {
	version := Version()
	return []engine.Found{{Bin: modeRollback, Built: version}, {Name: modeWAL, Bin: modeWAL, Built: version}}
}

// Class sorts result codes (sqlite.org/rescode.html). Whether one has rolled a transaction back is asked of the library each time: it
// depends on more than the code (sqlite.org/lang_transaction.html, section 3).
func Class(code string) engine.ErrorClass {
	switch {
	case code == "SQLITE_BUSY_SNAPSHOT": // somebody has written since the transaction's first read
		return engine.ErrorClass{Reason: answer.ReasonSerialization, Retry: true}
	case strings.HasPrefix(code, "SQLITE_BUSY"), strings.HasPrefix(code, "SQLITE_LOCKED"):
		return engine.ErrorClass{Reason: answer.ReasonNoWait, Retry: true}
	case code == "SQLITE_INTERRUPT":
		return engine.ErrorClass{Reason: answer.ReasonCancelled}
	case strings.HasPrefix(code, "SQLITE_INTERNAL"), strings.HasPrefix(code, "SQLITE_CORRUPT"), strings.HasPrefix(code, "SQLITE_NOTADB"),
		strings.HasPrefix(code, "SQLITE_MISUSE"):
		return engine.ErrorClass{Reason: answer.ReasonInternal}
	}
	return engine.ErrorClass{Reason: answer.ReasonOther}
}
