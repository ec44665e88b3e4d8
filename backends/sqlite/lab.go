package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"wirecheck/backends/engine"
)

// tables are those of the database that are not the library's own.
const tables = `sqlite_schema AS m WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite\_%' ESCAPE '\'`

// Lab says how lab databases are made, filled and removed: see steward for what SQLite has no statements for.
func Lab() engine.Lab {
	lock := func(verb string) func(uint32) string {
		return func(run uint32) string { return fmt.Sprintf("%s LOCK %s%08x", verb, engine.LabPrefix, run) }
	}
	return engine.Lab{
		Lock: lock("TAKE"), Alive: lock("ASK"),
		List:   "SHOW DATABASES",
		Create: func(name string) string { return "CREATE DATABASE " + name },
		Drop:   func(name string) string { return "DROP DATABASE " + name },
		// The library's own way to empty a database is a call (SQLITE_DBCONFIG_RESET_DATABASE); this is the one in SQL: without a
		// schema nothing uses the pages, and VACUUM frees them and tells the other connections.
		Clear: func(string) string {
			return "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema; PRAGMA writable_schema = RESET; VACUUM"
		},
		Prepare: "PRAGMA foreign_keys = OFF",
		// NOT INDEXED: a covering index would give the rows in its own order.
		Columns: `SELECT m.name, '"' || replace(m.name, '"', '""') || '"', '"' || replace(m.name, '"', '""') || '" NOT INDEXED', p.name, lower(p.type), p.hidden IN (2, 3)
			FROM (SELECT name FROM ` + tables + `) AS m JOIN pragma_table_xinfo(m.name) AS p WHERE p.hidden <> 1 ORDER BY m.name, p.cid`,
		Expression: func(column, _ string) string { return column },
		Literal:    literal,
		Identifier: Identifier,
		Truncate: func(tables []string) string {
			return "DELETE FROM " + strings.Join(tables, "; DELETE FROM ") + ";"
		},
		Blocks:      "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'trigger')",
		Counters:    counters,
		Fingerprint: fingerprint,
	}
}

// counters gives the statements that set AUTOINCREMENT to where it is.
func counters(ctx context.Context, c engine.Conn) ([]string, error) {
	there, err := engine.Query(ctx, c, "SELECT 1 FROM sqlite_schema WHERE name = 'sqlite_sequence'")
	if err != nil || len(there) == 0 {
		return nil, err
	}
	rows, err := engine.Query(ctx, c, "SELECT name, seq FROM sqlite_sequence ORDER BY name")
	if err != nil {
		return nil, err
	}
	set := []string{"DELETE FROM sqlite_sequence"}
	for _, row := range rows {
		set = append(set, fmt.Sprintf("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)", literal(nil, row[0], ""), row[1]))
	}
	return set, nil
}

// fingerprint reads the definitions as they were written.
func fingerprint(ctx context.Context, c engine.Conn) (string, error) {
	rows, err := engine.Query(ctx, c, "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name <> 'sqlite_sequence' ORDER BY type, name")
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, row := range rows {
		for _, v := range row {
			fmt.Fprintf(sum, "%d:%s", len(v), v)
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
