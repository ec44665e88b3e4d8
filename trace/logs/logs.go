// Package logs reads the logs that servers write, and makes the records of a trace of their lines.
package logs

import (
	"bytes"

	"wirecheck/trace/source"
)

// Formats are the formats of logs.
func Formats() []source.Format {
	return []source.Format{
		{Name: "jsonlog", Title: "PostgreSQL jsonlog", Unit: "lines", Detect: isJSONLog, Open: newJSONLog},
		{Name: "csvlog", Title: "PostgreSQL csvlog", Unit: "lines", Detect: isCSVLog, Open: newCSVLog},
		{Name: "audit", Title: "MariaDB server_audit", Unit: "lines", Detect: isServerAudit, Open: newServerAudit},
		{Name: "slow", Title: "slow query log (MySQL, MariaDB, Percona Server, TiDB)", Unit: "lines", Detect: isSlowLog, Open: newSlowLog},
		{Name: "general", Title: "general query log (MySQL, MariaDB)", Unit: "lines", Detect: isGeneralLog, Open: newGeneralLog},
		{Name: "stderr", Title: "PostgreSQL log (stderr)", Unit: "lines", Detect: isStderrLog, Open: newStderrLog},
	}
}

// anyLine reports whether one of the first lines of a file is something.
func anyLine(head []byte, most int, is func(line []byte) bool) bool {
	n := 0
	for line := range bytes.SplitSeq(head, []byte("\n")) {
		if n++; n > most {
			return false
		}
		if is(bytes.TrimRight(line, "\r")) {
			return true
		}
	}
	return false
}
