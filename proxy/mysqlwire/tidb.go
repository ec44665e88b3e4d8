package mysqlwire

import (
	"bytes"
	"strconv"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// TiDB executes a statement again that met a write conflict (in pessimistic transactions, and outside of transactions), and
// what each attempt appended to the session's variable stays there. The answer tells how many rows the last one found, and
// its entries are the last ones (TestTiDBAttempts).

func (s *session) onTiDB() bool { return s.rewriter.Flavor() == dialect.TiDB }

// attempted notes how many entries of the log are of the attempt that lasted.
func (s *session) attempted(stamp string, p *rewrite.Plan, a *answer) {
	n := int(min(a.affected, 1<<31-1))
	switch {
	case a.failed:
		n = 0
	case p.Verb == "update":
		if a.matched < 0 {
			return
		}
		n = a.matched
	case p.Verb == "insert": // ON DUPLICATE KEY UPDATE of one row: 1 means that it was inserted, 2 changed, 0 left as it is
		if n != 1 {
			n = 1
		} else {
			n = 0
		}
	}
	if s.attempts == nil {
		s.attempts = make(map[string]int)
	}
	s.attempts[stamp] = n
}

// lasting leaves the entries of the attempts that lasted.
func (s *session) lasting(entries map[string][]history.Access) {
	for stamp, n := range s.attempts {
		if list, ok := entries[stamp]; ok {
			entries[stamp] = dialect.Attempt(list, n)
		}
	}
	clear(s.attempts)
}

// matchedRows reads the text of an OK: "Rows matched: 1  Changed: 1  Warnings: 0". It is -1 if the text is another one.
func matchedRows(text []byte) int {
	_, rest, ok := bytes.Cut(text, []byte("Rows matched: "))
	digits := len(rest) - len(bytes.TrimLeft(rest, "0123456789"))
	n, err := strconv.Atoi(string(rest[:digits]))
	if !ok || err != nil {
		return -1
	}
	return n
}

// mayShow reports whether the last columns of an answer may be ours although the statement was not made to bring them: those of
// HANDLER ... READ, and on TiDB, where the columns are ordinary ones, of whatever was not understood. Who names them gets them.
func (s *session) mayShow(p *rewrite.Plan) bool {
	return readsHandler(p) || s.onTiDB() && p.Hidden == 0 && p.Decode == nil && !strings.Contains(strings.ToLower(p.Text), "wc_")
}

// namedOnTiDB corrects the level that a statement names: optimistic transactions read from a snapshot, whatever their level
// (TiDB docs, "Transaction Isolation Levels").
func (s *session) namedOnTiDB(p *rewrite.Plan) *rewrite.Plan {
	level := p.Control.Level
	switch {
	case !s.snapshot:
		return p
	case level == "read committed" || level == "repeatable read":
		level = "snapshot"
	case p.Control.Verb == rewrite.ControlBegin && strings.Contains(strings.ToUpper(p.Text), "PESSIMISTIC"):
		level = "repeatable read"
	default:
		return p
	}
	q := *p
	q.Control.Level = level
	return &q
}

// abortsOnTiDB knows the errors with which TiDB rolls the transaction back (TiDB docs, "Error Codes and Troubleshooting"): a deadlock,
// and what its storage refuses when it commits.
func abortsOnTiDB(code uint16) bool {
	switch code {
	case 1213, 8002, 8004, 8005, 8022, 8027, 8028, 8133, 8141, 8223, 9001, 9002, 9003, 9004, 9005, 9006, 9007, 9008:
		return true
	}
	return false
}

// undetermined is ErrResultUndetermined: whether the transaction was committed is not known.
const undetermined = 8501

// commitFails reports whether an error says that a transaction is rolled back, since it is the answer to COMMIT: optimistic
// transactions learn of all their errors there.
func (s *session) commitFails(p *rewrite.Plan, code uint16) bool {
	return s.onTiDB() && p.Control.Verb == rewrite.ControlCommit && code != undetermined
}
