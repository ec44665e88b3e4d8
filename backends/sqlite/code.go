package sqlite

import "fmt"

// primary are the names of the primary result codes, and extended those of the extended ones that tell more than where in the file
// system something failed (sqlite.org/rescode.html).
var (
	primary = map[int32]string{
		1: "ERROR", 2: "INTERNAL", 3: "PERM", 4: "ABORT", 5: "BUSY", 6: "LOCKED", 7: "NOMEM", 8: "READONLY", 9: "INTERRUPT", 10: "IOERR", 11: "CORRUPT",
		12: "NOTFOUND", 13: "FULL", 14: "CANTOPEN", 15: "PROTOCOL", 16: "EMPTY", 17: "SCHEMA", 18: "TOOBIG", 19: "CONSTRAINT", 20: "MISMATCH", 21: "MISUSE",
		22: "NOLFS", 23: "AUTH", 24: "FORMAT", 25: "RANGE", 26: "NOTADB",
	}
	extended = map[int32]string{
		257: "ERROR_MISSING_COLLSEQ", 513: "ERROR_RETRY", 769: "ERROR_SNAPSHOT", 261: "BUSY_RECOVERY", 517: "BUSY_SNAPSHOT", 773: "BUSY_TIMEOUT",
		262: "LOCKED_SHAREDCACHE", 518: "LOCKED_VTAB", 516: "ABORT_ROLLBACK", 267: "CORRUPT_VTAB", 523: "CORRUPT_SEQUENCE", 779: "CORRUPT_INDEX",
		275: "CONSTRAINT_CHECK", 531: "CONSTRAINT_COMMITHOOK", 787: "CONSTRAINT_FOREIGNKEY", 1043: "CONSTRAINT_FUNCTION", 1299: "CONSTRAINT_NOTNULL",
		1555: "CONSTRAINT_PRIMARYKEY", 1811: "CONSTRAINT_TRIGGER", 2067: "CONSTRAINT_UNIQUE", 2323: "CONSTRAINT_VTAB", 2579: "CONSTRAINT_ROWID",
		2835: "CONSTRAINT_PINNED", 3091: "CONSTRAINT_DATATYPE",
	}
)

// codeName names a result code as SQLite's header does: "SQLITE_CONSTRAINT_UNIQUE".
func codeName(rc int32) string {
	if name, ok := extended[rc]; ok {
		return "SQLITE_" + name
	}
	name, ok := primary[rc&0xff]
	switch {
	case !ok:
		return fmt.Sprintf("SQLITE_%d", rc)
	case rc > 0xff:
		return fmt.Sprintf("SQLITE_%s(%d)", name, rc)
	}
	return "SQLITE_" + name
}
