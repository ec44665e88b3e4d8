// Package mysql is the backend for MySQL, and holds what MariaDB shares with it: levels, error classes, the start of a
// private server, and the hidden columns.
package mysql

import (
	"wirecheck/backends/engine"
	"wirecheck/product"
)

// Descriptor describes MySQL.
func Descriptor() engine.Descriptor {
	return engine.Descriptor{
		Product:  product.Of("mysql"),
		Schemes:  []string{"mysql"},
		Protocol: engine.ProtocolMySQL,
		Port:     3306,
		Install:  Install,
		Start:    Start,
		Connect:  Connect,
		Watch:    Watch,
		SetLevel: SetLevel,
		Find:     Find,
		Lab:      Lab(),
		// Oracles with databases of their own, at several levels, need many connections.
		LabSettings: map[string]string{"max_connections": "1000"},
	}
}

// Install is the command that installs the server on Ubuntu. Debian has no package of it.
const Install = "apt-get install -y mysql-server"

// SetLevel gives the statement that makes a level the session's.
func SetLevel(level string) string { return "SET SESSION TRANSACTION ISOLATION LEVEL " + level }
