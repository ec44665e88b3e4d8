package wss

import "regexp"

var (
	// nontransactional finds storage engines whose changes no rollback takes back (MySQL manual, 18.1).
	nontransactional = regexp.MustCompile(`(?i)\b(ENGINE|TYPE)\s*=?\s*(MyISAM|MEMORY|HEAP|ARIA|CSV|ARCHIVE|MERGE|MRG_MYISAM|BLACKHOLE)\b`)
	// transactional finds statements that mean something within their transaction only.
	transactional = regexp.MustCompile(`(?i)^\s*(SET\s+(LOCAL|CONSTRAINTS)\b|DECLARE\b|FETCH\b|MOVE\b|CLOSE\b|LOCK\b|UNLOCK\b|CREATE\s+(GLOBAL\s+|LOCAL\s+)?TEMP(ORARY)?\b|PREPARE\s+TRANSACTION\b|XA\b)`)
	// deferred finds constraints that are checked at the end of a transaction (PostgreSQL manual, CREATE TABLE: DEFERRABLE).
	deferred = regexp.MustCompile(`(?i)\bDEFERRABLE\b`)
)
