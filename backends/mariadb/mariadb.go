// Package mariadb is the backend for MariaDB: its levels and error classes, and how to start a private server.
// Instrumentation is shared with MySQL (package backends/mysql).
package mariadb

import (
	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// Descriptor describes MariaDB.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Name:     "mariadb",
		Title:    "MariaDB",
		Schemes:  []string{"mariadb"},
		Protocol: engine.ProtocolMySQL,
		Port:     3306,
		Install:  Install,
		Levels:   append(Levels(false), snapshot),
		Default:  "REPEATABLE READ",
		Aborts:   Aborts(false, false),
		Retry:    mysql.Retry,
		System:   mysql.System,
		Start:    Start,
		Connect:  mysql.Connect,
		Watch:    Watch,
		Outcome:  mysql.Outcome,
		SetLevel: SetLevel,
		Find:     Find,
		Lab:      mysql.Lab(),

		LabSettings: LabSettings(),
	}
}

// Install is the command that installs the server on Debian and Ubuntu.
const Install = "apt-get install -y mariadb-server mariadb-client"

// Levels are MariaDB's. With innodb_snapshot_isolation, which is on by default from 11.6.2, REPEATABLE READ refuses to
// overwrite what the snapshot does not show (error 1020), which makes it snapshot isolation; without, reads come from a
// snapshot and writes act on the latest rows, for which the theory has no stronger name than read committed.
func Levels(snapshotIsolation bool) []engine.Level {
	levels := mysql.Levels()
	if snapshotIsolation {
		levels[2].Behaves = "snapshot"
	}
	return levels
}

// snapshot is the level that REPEATABLE READ becomes in sessions with innodb_snapshot_isolation (10.6.18, 10.11.8, 11.4.2 and
// later). The setting stays on in the session.
var snapshot = engine.Level{SQL: "SNAPSHOT", History: "snapshot", Behaves: "snapshot"}

// SetLevel gives the statements that make a level the session's. It leaves innodb_snapshot_isolation as the server has it
// unless the level is SNAPSHOT.
func SetLevel(level string) string {
	if level == snapshot.SQL {
		return "SET SESSION innodb_snapshot_isolation = ON; " + mysql.SetLevel("REPEATABLE READ")
	}
	return mysql.SetLevel(level)
}

// Aborts tells which errors roll the whole transaction back: those of MySQL, and 1020 (ER_CHECKREAD) if
// innodb_snapshot_isolation is on.
func Aborts(snapshotIsolation, rollbackOnTimeout bool) func(code string) bool {
	base := mysql.Aborts(rollbackOnTimeout)
	return func(code string) bool {
		return base(code) || snapshotIsolation && code == "1020"
	}
}
