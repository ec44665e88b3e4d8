// Package postgres is the backend for PostgreSQL: its levels and error classes, how to start a private server, and the
// hidden columns for those who want them.
package postgres

import (
	"wirecheck/backends/engine"
	"wirecheck/product"
)

// Descriptor describes PostgreSQL.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Product:  product.Of("postgres"),
		Schemes:  []string{"postgres", "postgresql"},
		Protocol: engine.ProtocolPostgres,
		Port:     5432,
		Install:  Install,
		Start:    Start,
		Connect:  Connect,
		Watch:    Watch,
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
