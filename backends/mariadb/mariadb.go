// Package mariadb is the backend for MariaDB: its levels and error classes, and how to start a private server.
// Instrumentation is shared with MySQL (package backends/mysql).
package mariadb

import (
	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
	"wirecheck/product"
)

// Descriptor describes MariaDB.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Product:  product.Of("mariadb"),
		Schemes:  []string{"mariadb"},
		Protocol: engine.ProtocolMySQL,
		Port:     3306,
		Install:  Install,
		Start:    Start,
		Connect:  mysql.Connect,
		Watch:    Watch,
		SetLevel: SetLevel,
		Find:     Find,
		Lab:      lab(),

		LabSettings: LabSettings(),
	}
}

// lab is that of the MySQL family, and reads backups.
func lab() engine.Lab {
	l := mysql.Lab()
	l.Archive = archive
	return l
}

// Install is the command that installs the server on Debian and Ubuntu.
const Install = "apt-get install -y mariadb-server mariadb-client"

// SetLevel gives the statements that make a level the session's. It leaves innodb_snapshot_isolation as the server has it
// unless the level is SNAPSHOT.
func SetLevel(level string) string {
	if level == product.Of("mariadb").Level(product.Snapshot).SQL {
		return "SET SESSION innodb_snapshot_isolation = ON; " + mysql.SetLevel("REPEATABLE READ")
	}
	return mysql.SetLevel(level)
}
