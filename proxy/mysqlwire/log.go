package mysqlwire

import (
	"bytes"
	"strconv"

	"wirecheck/history"
	"wirecheck/proxy/record"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement"
)

// writeLog is what the session knows of its log on the server, to which statements append what they overwrote
// (rewrite/mysql, log.go).
type writeLog struct {
	o      *observation
	exists bool   // the server's variable is set
	rows   uint64 // that were logged since the log was fetched
	// attempts is, by stamp, the number of entries of the attempt that lasted. Where the server executes a statement again
	// that met a write conflict, what each attempt appended stays in the log. The answer tells how many rows the last one
	// found, and its entries are the last ones (TestTiDBAttempts).
	attempts map[string]int
	// counted is, by stamp, how many rows a statement found whose entries are to be compared with that (rewrite.Plan.Counted).
	counted map[string]int
	// inserted is, by stamp, the number that the answer to a statement gave to the one row that it inserted.
	inserted map[string]numbered
}

// numbered is the value of an AUTO_INCREMENT column.
type numbered struct {
	column string
	id     uint64
}

// fetchEvery is the number of logged rows after which the session fetches the log within a transaction, so that it does
// not reach its limit.
const fetchEvery = 100

// fetchHeld is the number of statements and accesses that wait for the log after which the session fetches it, so that a
// long transaction does not keep all of them in memory.
const fetchHeld = 10_000

// note counts what a statement has logged.
func (l *writeLog) note(stamp string, p *rewrite.Plan, a *answer, t *traits) {
	if !p.Log {
		return
	}
	if t.repeatsStatements {
		l.attempted(stamp, p, a)
	}
	if p.Counted {
		if l.counted == nil {
			l.counted = make(map[string]int)
		}
		l.counted[stamp] = int(min(a.affected, 1<<31-1))
		if p.Verb == "update" {
			l.counted[stamp] = a.matched
		}
	}
	if p.Auto != "" {
		if l.inserted == nil {
			l.inserted = make(map[string]numbered)
		}
		l.inserted[stamp] = numbered{p.Auto, a.insertID}
	}
	l.rows += max(a.affected, 1) // rows that an UPDATE matched without changing them are logged too
	if p.Verb == "select" {
		l.rows = fetchEvery // nothing tells how many rows it logged
	}
}

// attempted notes how many entries of the log are of the attempt that lasted.
func (l *writeLog) attempted(stamp string, p *rewrite.Plan, a *answer) {
	n := int(min(a.affected, 1<<31-1))
	switch {
	case a.failed:
		n = 0
	case p.Verb == "update":
		if a.matched < 0 {
			return
		}
		n = a.matched
	case p.Verb == "insert" && p.Rows > 0: // ON DUPLICATE KEY UPDATE of one row: 1 means that it was inserted, 2 changed, 0 left as it is
		if n != 1 {
			n = 1
		} else {
			n = 0
		}
	}
	if l.attempts == nil {
		l.attempts = make(map[string]int)
	}
	l.attempts[stamp] = n
}

// lasting leaves the entries of the attempts that lasted.
func (l *writeLog) lasting(entries map[string][]history.Access) {
	for stamp, n := range l.attempts {
		if list, ok := entries[stamp]; ok {
			entries[stamp] = dialect.Attempt(list, n)
		}
	}
	clear(l.attempts)
	for stamp, n := range l.counted {
		if list, ok := entries[stamp]; ok {
			entries[stamp] = dialect.Counted(list, n)
		}
	}
	clear(l.counted)
	for stamp, n := range l.inserted {
		dialect.Numbered(entries[stamp], n.column, n.id)
	}
	clear(l.inserted)
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

// wanted reports whether the session is to fetch the log in front of the statements: none of them asks what the last one
// left behind, and a transaction is over or is about to be.
func (l *writeLog) wanted(plans []*rewrite.Plan) bool {
	o := l.o
	if !o.tracker.PendingLog() {
		return false
	}
	ends := !o.tracker.InTransaction() || l.rows >= fetchEvery || o.tracker.Held() >= fetchHeld
	for _, p := range plans {
		if p.Diagnostics {
			return false
		}
		switch p.Control.Verb {
		case statement.ControlCommit, statement.ControlRollback, statement.ControlAutocommit:
			ends = true
		}
		ends = ends || p.Control.Ends
	}
	return ends
}

// fetch fetches the log now, if there is one: the session is about to lose it.
func (l *writeLog) fetch() error {
	o := l.o
	if !o.tracker.PendingLog() {
		return nil
	}
	fetch := preface{o: o, fetch: true}
	if err := fetch.send(); err != nil {
		return err
	}
	return fetch.receive()
}

// sendFetch puts into the output what fetches the log and sets the stamp of the statement behind it, or takes the old one
// away. A server that warns of assignments within expressions gets two statements, the others one.
func (l *writeLog) sendFetch(stamp string) error {
	o := l.o
	if o.traits.WarnsOfAssignments {
		q := dialect.FetchLogQuietly(stamp)
		if err := o.ownQuery(q[0]); err != nil {
			return err
		}
		return o.ownQuery(q[1] + ",FOUND_ROWS()")
	}
	sql := dialect.FetchLog() + ",FOUND_ROWS()"
	if stamp == "" {
		return o.ownQuery(sql + ",@wc_t:=NULL")
	}
	return o.ownQuery(sql + ",@wc_t:='" + stamp + "'") // letters, digits and dots (record.NewRecorder)
}

// readFetch reads the answers to sendFetch: refused says that the stamp was not set, lost that the log is gone.
func (l *writeLog) readFetch() (rows [][][]byte, refused *history.ServerError, lost bool, err error) {
	o := l.o
	if !o.traits.WarnsOfAssignments {
		rows, refused, err = o.ownAnswer()
		return rows, refused, refused != nil, err
	}
	if _, refused, err = o.ownAnswer(); err != nil {
		return nil, nil, false, err
	}
	rows, unread, err := o.ownAnswer()
	return rows, refused, refused != nil || unread != nil, err
}

// receive takes the answers to sendFetch: the tracker gets the entries of the log. refused says that the stamp was not set.
func (l *writeLog) receive(stamp string) (refused *history.ServerError, err error) {
	o := l.o
	rows, refused, lost, err := l.readFetch()
	if err != nil {
		return nil, err
	}
	o.stamped(stamp, refused)
	l.rows = 0
	if lost || len(rows) != 1 || len(rows[0]) < 3 {
		o.warnings.late(o.tracker.Logged(nil, true))
		return refused, nil
	}
	o.counts.foundNow = 1 // the row of this answer
	o.counts.keep(string(rows[0][2]))
	o.warnings.late(l.decode(rows[0][0]))
	return nil, nil
}

// decode decodes the log and gives it to the tracker. It is nil if another statement has set the variable.
func (l *writeLog) decode(value []byte) []record.Warning {
	o := l.o
	if value == nil {
		return o.tracker.Logged(nil, true)
	}
	var entries map[string][]history.Access
	var truncated bool
	var err error
	o.tracker.guard(func() { entries, truncated, err = dialect.DecodeLog(value) })
	if err != nil {
		o.ps.Log.Warn().Err(err).Msg("the log of a session is not understood")
		entries, truncated = nil, true
	}
	l.lasting(entries)
	return o.tracker.Logged(entries, truncated)
}
