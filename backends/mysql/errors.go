package mysql

import (
	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// Class sorts error numbers of MySQL and MariaDB (MySQL error message reference; MySQL manual, "InnoDB Error Handling"). A lock wait
// time-out rolls back the statement alone unless innodb_rollback_on_timeout is on, which the connection asks for.
func Class(code string) engine.ErrorClass {
	switch code {
	case "1213", // InnoDB, and the metadata locks
		"3058": // GET_LOCK: nothing is rolled back
		return engine.ErrorClass{Reason: answer.ReasonDeadlock, Retry: true, Aborts: code == "1213"}
	case "1205":
		return engine.ErrorClass{Reason: answer.ReasonLockTimeout, Retry: true}
	case "1206": // the lock table is full
		return engine.ErrorClass{Reason: answer.ReasonOther, Aborts: true}
	case "1020": // MariaDB with innodb_snapshot_isolation: the row has changed behind the snapshot
		return engine.ErrorClass{Reason: answer.ReasonSerialization, Retry: true, Aborts: true}
	case "3572": // MySQL: NOWAIT. MariaDB says 1205
		return engine.ErrorClass{Reason: answer.ReasonNoWait, Retry: true}
	case "1317", "1969", "3024": // KILL QUERY; max_statement_time (MariaDB), max_execution_time (MySQL)
		return engine.ErrorClass{Reason: answer.ReasonCancelled}
	case "1927", "1152", "1184", "1158", "1159", "1160", "1161", "4031":
		// MariaDB: connection was killed. Then: aborted connections, broken packets; MySQL: disconnected for inactivity.
		return engine.ErrorClass{Reason: answer.ReasonKilled, Gone: true}
	case "1053", "1077", "1079", "2006", "2013", "1040", "1129", "1130": // shutdown in progress, and what clients call a lost server
		return engine.ErrorClass{Reason: answer.ReasonServer, Gone: true}
	case "1105", "1815", "1030": // unknown error, internal error, error from the storage engine
		return engine.ErrorClass{Reason: answer.ReasonInternal}
	}
	return engine.ErrorClass{Reason: answer.ReasonOther}
}
