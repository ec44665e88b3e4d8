package mysql

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Lab says how lab databases of the MySQL family are made, filled and removed.
func Lab() engine.Lab {
	return engine.Lab{
		// Purge takes delete-marked records away, and with them lock structures, whose number decides who is the victim of a
		// deadlock (MySQL manual, 17.7.5.2).
		Pin:  "START TRANSACTION WITH CONSISTENT SNAPSHOT",
		Lock: func(run uint32) string { return "SELECT GET_LOCK('" + lockName(run) + "', 0)" },
		Alive: func(run uint32) string { // by trying: TiDB has IS_USED_LOCK in later versions only
			return "SELECT IF(GET_LOCK('" + lockName(run) + "', 0) = 1, RELEASE_LOCK('" + lockName(run) + "') < 0, 1)"
		},
		List: "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA WHERE SCHEMA_NAME LIKE '" +
			strings.ReplaceAll(engine.LabPrefix, "_", `\_`) + "%' ORDER BY SCHEMA_NAME",
		Create: func(name string) string { return "CREATE DATABASE " + Identifier(name) },
		Drop:   func(name string) string { return dropLimit + "DROP DATABASE IF EXISTS " + Identifier(name) },
		Expel: func(name string) string {
			return "SELECT CONCAT('KILL ', ID) FROM information_schema.PROCESSLIST WHERE DB = " + Quote(name) + " AND ID <> CONNECTION_ID()"
		},
		Guests: func(name string) string {
			return "SELECT CONCAT(USER, '@', HOST) FROM information_schema.PROCESSLIST WHERE DB = " + Quote(name) + " AND ID <> CONNECTION_ID()"
		},
		Schema: schema,
		Clear: func(name string) string {
			name = Identifier(name)
			return dropLimit + "DROP DATABASE " + name + "; CREATE DATABASE " + name + "; USE " + name
		},
		Prepare: "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO', foreign_key_checks = 0, time_zone = '+00:00'" +
			" /*!80000 , information_schema_stats_expiry = 0 */", // MySQL 8 shows AUTO_INCREMENT as it was a day ago
		Columns: `SELECT c.TABLE_NAME, CONCAT('` + "`', REPLACE(c.TABLE_NAME, '`', '``'), '`'), CONCAT('`', REPLACE(c.TABLE_NAME, '`', '``'), '`'" + `),
			c.COLUMN_NAME, c.DATA_TYPE, COALESCE(c.GENERATION_EXPRESSION, '') <> ''
			FROM information_schema.COLUMNS c JOIN information_schema.TABLES t USING (TABLE_SCHEMA, TABLE_NAME)
			WHERE c.TABLE_SCHEMA = DATABASE() AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION`,
		Expression: expression,
		Literal:    literal,
		Identifier: Identifier,
		Truncate: func(tables []string) string {
			return "TRUNCATE TABLE " + strings.Join(tables, "; TRUNCATE TABLE ") + ";"
		},
		Blocks:   "SELECT EXISTS (SELECT 1 FROM information_schema.TRIGGERS WHERE TRIGGER_SCHEMA = DATABASE())",
		Counters: counters, CountersTell: true,
		Keys: "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, COALESCE(COLUMN_NAME, '') FROM information_schema.STATISTICS" +
			" WHERE TABLE_SCHEMA = DATABASE() AND NON_UNIQUE = 0 ORDER BY 1, 2, 3, 4",
		Numbered:    "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND EXTRA LIKE '%auto_increment%'",
		Fingerprint: fingerprint,
	}
}

// dropLimit keeps the owner from waiting for ever for somebody's metadata lock; its default is a year.
const dropLimit = "SET SESSION lock_wait_timeout = 10; "

func lockName(run uint32) string { return fmt.Sprintf("%s%08x", engine.LabPrefix, run) }

// expression reads a FLOAT as a DOUBLE, since its own text form shows six digits. Adding zero would make 0 of -0.
func expression(column, kind string) string {
	if kind == "float" {
		return "(" + column + " * 1e0)"
	}
	return column
}

// literal writes a value: bytes in hexadecimal, everything else as a string, which becomes the column's type.
func literal(to []byte, v answer.Value, kind string) []byte {
	switch kind {
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit",
		"geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon", "geometrycollection", "geomcollection":
		return append(hex.AppendEncode(append(to, "x'"...), v), '\'')
	}
	to = append(to, '\'')
	for _, b := range v {
		if b == '\'' || b == '\\' {
			to = append(to, '\\')
		}
		to = append(to, b)
	}
	return append(to, '\'')
}

// counters gives the statements that set AUTO_INCREMENT and MariaDB's sequences to where they are.
func counters(ctx context.Context, c engine.Conn) ([]string, error) {
	rows, err := engine.Query(ctx, c, `SELECT TABLE_NAME, TABLE_TYPE, AUTO_INCREMENT FROM information_schema.TABLES
		WHERE TABLE_SCHEMA = DATABASE() AND (AUTO_INCREMENT IS NOT NULL OR TABLE_TYPE = 'SEQUENCE' AND VERSION() LIKE '%MariaDB%') ORDER BY TABLE_NAME`)
	if err != nil {
		return nil, err
	}
	var set []string
	for _, row := range rows {
		name := Identifier(string(row[0]))
		if string(row[1]) != "SEQUENCE" {
			set = append(set, "ALTER TABLE "+name+" AUTO_INCREMENT = "+string(row[2]))
			continue
		}
		next, err := engine.Query(ctx, c, "SELECT next_not_cached_value FROM "+name)
		if err != nil {
			return nil, err
		}
		set = append(set, "ALTER SEQUENCE "+name+" RESTART WITH "+string(next[0][0]))
	}
	return set, nil
}

var autoIncrement = regexp.MustCompile(` AUTO_INCREMENT=[0-9]+`)

// fingerprint reads the definitions as the server prints them, without where AUTO_INCREMENT stands.
func fingerprint(ctx context.Context, c engine.Conn) (string, error) {
	names, err := engine.Query(ctx, c, "SHOW TABLES")
	if err != nil {
		return "", err
	}
	var sql strings.Builder
	for _, row := range names {
		sql.WriteString("SHOW CREATE TABLE " + Identifier(string(row[0])) + ";")
	}
	sql.WriteString(`SELECT TRIGGER_NAME, EVENT_OBJECT_TABLE, ACTION_TIMING, EVENT_MANIPULATION, ACTION_STATEMENT FROM information_schema.TRIGGERS
		WHERE TRIGGER_SCHEMA = DATABASE() ORDER BY TRIGGER_NAME;
		SELECT ROUTINE_NAME, ROUTINE_TYPE, ROUTINE_DEFINITION FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = DATABASE() ORDER BY 1, 2`)
	a, err := engine.Ask(ctx, c, sql.String())
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, r := range a.Results {
		for _, row := range r.Rows {
			for _, v := range row {
				v = autoIncrement.ReplaceAll(v, nil)
				fmt.Fprintf(sum, "%d:%s", len(v), v)
			}
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
