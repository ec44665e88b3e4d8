// Package sqlite is the backend for SQLite, which is a library and not a server: it runs in this process, without cgo
// (modernc.org/sqlite, the C library translated to Go). A "server" is a folder, a database a file in it, and a session a
// connection to that file.
//
// Nothing ever waits: without a busy timeout, a statement that meets a lock is refused at once with SQLITE_BUSY (sqlite.org/rescode.html),
// and its transaction stays open.
package sqlite

import (
	"wirecheck/backends/engine"
	"wirecheck/product"
)

// Descriptor describes SQLite. The connections of one descriptor know each other, as those of one server do; so one that starts a
// folder is to be used for all that is done in it.
func Descriptor() engine.Descriptor {
	p := &process{folders: map[string]*folder{}}
	return engine.Descriptor{
		Product:    product.Of("sqlite"),
		Schemes:    []string{"sqlite"},
		Embedded:   true,
		NeverWaits: true,
		Install:    "nothing: it is part of wirecheck",
		Start:      p.start,
		Connect:    p.connect,
		Watch:      p.watch,
		SetLevel:   func(string) string { return "" }, // there is one
		Find:       Find,
		Lab:        Lab(),
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
