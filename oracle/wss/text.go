package wss

import "regexp"

var (
	// transactional finds statements that mean something within their transaction only.
	transactional = regexp.MustCompile(`(?i)^\s*(SET\s+(LOCAL|CONSTRAINTS)\b|DECLARE\b|FETCH\b|MOVE\b|CLOSE\b|LOCK\b|UNLOCK\b|CREATE\s+(GLOBAL\s+|LOCAL\s+)?TEMP(ORARY)?\b|PREPARE\s+TRANSACTION\b|XA\b)`)
	// modeOnly finds settings that change how transactions are executed, and not what a statement does.
	modeOnly = regexp.MustCompile(`(?i)\b(autocommit|transaction|isolation|tidb_txn_mode|innodb_snapshot_isolation)`)
	// opaque finds what makes a write do more than it says.
	opaque = regexp.MustCompile(`(?i)\b(CREATE\s+(OR\s+REPLACE\s+)?(CONSTRAINT\s+)?TRIGGER|ON\s+(DELETE|UPDATE)\s+(CASCADE|SET\s+NULL|SET\s+DEFAULT|CURRENT_TIMESTAMP|NOW\b)|CREATE\s+(OR\s+REPLACE\s+)?RULE|INHERITS)`)
	// reference finds foreign keys, and the tables that they refer to.
	reference = regexp.MustCompile("(?i)\\bREFERENCES\\s+([^\\s(,]+)")
	// deferred finds constraints that are checked at the end of a transaction (PostgreSQL manual, CREATE TABLE: DEFERRABLE).
	deferred = regexp.MustCompile(`(?i)\bDEFERRABLE\b`)
)
