package mysql

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"wirecheck/backends/engine"
)

// Status is what SHOW ENGINE INNODB STATUS says of transactions. Unlike information_schema.innodb_trx and innodb_lock_waits, which show a
// copy that is not renewed while somebody asks more often than every 0.1 s (MySQL manual, "Persistence and Consistency of InnoDB
// Transaction and Locking Information"), it is made when it is asked for.
type Status struct {
	Transactions []Transaction
	// Truncated: the text was longer than 1 MiB, and the server left transactions out.
	Truncated bool
}

// Transaction is one transaction of the list.
type Transaction struct {
	ID         string // as the server prints it, and performance_schema has it
	Connection uint64 // 0: none, such as a background thread
	Waiting    *Lock  // the lock that it waits for; nil if it does not wait
	Waited     int64  // for how long, in ns where the server says it so exactly; else 0
	Locks      []Lock // those it has, if the server prints them (innodb_status_output_locks)
	Suppressed bool   // it has more than the server prints
}

// Lock is one lock of InnoDB: on a table, or on records of one page.
type Lock struct {
	Table     string
	Mode      string // S, X, IS, IX, AUTO-INC
	Record    bool
	Page      string   // "space id 5 page no 4"
	Heap      []string // the records' numbers in the page
	Gap       bool     // the gap before the record alone
	NoGap     bool     // the record alone
	Insertion bool     // the intention to insert into the gap
}

// supremum is the pseudo-record behind a page's last one: a lock on it is one on the gap before it.
const supremum = "1"

var (
	listStart   = []byte("\nLIST OF TRANSACTIONS FOR EACH SESSION:\n") // the latest deadlock, which looks alike, stands above it
	transaction = []byte("---TRANSACTION ")
	lockWait    = []byte("LOCK WAIT ")
	threadID    = []byte(" thread id ")
	waitingFor  = []byte("------- TRX HAS BEEN WAITING ")
	recordLocks = []byte("RECORD LOCKS ")
	tableLock   = []byte("TABLE LOCK ")
	recordLock  = []byte("Record lock, heap no ")
	suppressed  = []byte("LOCKS PRINTED FOR THIS TRX: SUPPRESSING FURTHER PRINTS")
	truncated   = []byte("... truncated...\n")
	listEnd     = []byte("--------\nFILE I/O\n")
)

// ParseStatus reads the text. What a client wrote (the statement is part of the text) could imitate a transaction only in
// lines of its own after the number of its connection, which are skipped.
func ParseStatus(text []byte) Status {
	var s Status
	start := bytes.Index(text, listStart)
	if start < 0 {
		s.Truncated = true
		return s
	}
	text = text[start+len(listStart):]
	if end := bytes.LastIndex(text, listEnd); end >= 0 {
		text = text[:end]
	} else {
		s.Truncated = true
	}
	s.Truncated = s.Truncated || bytes.Contains(text, truncated)
	for len(text) > 0 {
		line := cutLine(&text)
		if id, ok := bytes.CutPrefix(line, transaction); ok {
			s.Transactions = append(s.Transactions, parseTransaction(string(bytes.TrimRight(first(id, ','), ":")), &text))
		}
	}
	return s
}

// parseTransaction reads the lines of one transaction and leaves the next one's.
func parseTransaction(id string, text *[]byte) Transaction {
	t := Transaction{ID: id}
	waits, waitNext := false, false
	for len(*text) > 0 && !bytes.HasPrefix(*text, transaction) {
		line := cutLine(text)
		switch {
		case t.Connection == 0 && bytes.HasPrefix(line, lockWait):
			waits = true
		case t.Connection == 0 && connectionLine(line):
			_, number, _ := bytes.Cut(line, threadID)
			t.Connection, _ = strconv.ParseUint(string(first(number, ',')), 10, 64)
		case bytes.HasPrefix(line, waitingFor):
			t.Waited = duration(line[len(waitingFor):])
			waitNext = waits
		case bytes.HasPrefix(line, recordLocks), bytes.HasPrefix(line, tableLock):
			l := parseLock(string(line))
			l.Heap = heaps(text)
			switch {
			case waitNext:
				t.Waiting, waitNext = &l, false
			case !strings.HasSuffix(string(line), " waiting"):
				t.Locks = append(t.Locks, l)
			}
		case bytes.Contains(line, suppressed):
			t.Suppressed = true
		}
	}
	if waits && t.Waiting == nil {
		t.Waiting = &Lock{} // the description was cut off
	}
	return t
}

// connectionLine recognises "MySQL thread id 9, OS thread handle ..." and MariaDB's.
func connectionLine(line []byte) bool {
	return bytes.HasPrefix(line, []byte("MySQL thread id ")) || bytes.HasPrefix(line, []byte("MariaDB thread id "))
}

// parseLock reads "RECORD LOCKS space id 5 page no 4 n bits 320 index k of table `d`.`t` trx id 26 lock_mode X locks gap before rec"
// or "TABLE LOCK table `d`.`t` trx id 26 lock mode IX".
func parseLock(line string) Lock {
	l := Lock{Record: strings.HasPrefix(line, string(recordLocks))}
	at := strings.LastIndex(line, " trx id ")
	if at < 0 {
		return l
	}
	head, tail := line[:at], line[at:]
	if _, table, ok := strings.Cut(head, " table "); ok {
		l.Table = table
	}
	if l.Record {
		head = strings.TrimPrefix(head, string(recordLocks))
		l.Page, _, _ = strings.Cut(head, " n bits ")
	}
	if i := strings.Index(tail, " lock"); i >= 0 && len(tail) > i+len(" lock mode ") {
		l.Mode, _, _ = strings.Cut(tail[i+len(" lock mode "):], " ")
	}
	l.Gap = strings.Contains(tail, " locks gap before rec")
	l.NoGap = strings.Contains(tail, " locks rec but not gap")
	l.Insertion = strings.Contains(tail, " insert intention")
	return l
}

// heaps reads the records of a lock: lines "Record lock, heap no 4 PHYSICAL RECORD: ...", each with its content behind it.
func heaps(text *[]byte) []string {
	var numbers []string
	for len(*text) > 0 {
		line := first(*text, '\n')
		switch {
		case bytes.HasPrefix(line, recordLock):
			numbers = append(numbers, string(first(line[len(recordLock):], ' ')))
		case len(line) == 0 || line[0] == ' ':
		default:
			return numbers
		}
		cutLine(text)
	}
	return numbers
}

// duration reads "50406 us FOR THIS LOCK ..." or "830 ns FOR ...", in ns.
func duration(line []byte) int64 {
	number, rest, _ := bytes.Cut(line, []byte(" "))
	n, err := strconv.ParseInt(string(number), 10, 64)
	switch {
	case err != nil:
		return 0
	case bytes.HasPrefix(rest, []byte("ns")):
		return n
	case bytes.HasPrefix(rest, []byte("us")):
		return n * 1000
	}
	return 0
}

func first(text []byte, end byte) []byte {
	if i := bytes.IndexByte(text, end); i >= 0 {
		return text[:i]
	}
	return text
}

func cutLine(text *[]byte) []byte {
	line, rest, _ := bytes.Cut(*text, []byte("\n"))
	*text = rest
	return line
}

// Kind says what waiting for the lock is called.
func (l Lock) Kind() engine.WaitKind {
	switch {
	case l.Mode == "AUTO-INC":
		return engine.WaitAutoIncrement
	case l.Insertion:
		return engine.WaitGap
	case l.Record || l.Table == "":
		return engine.WaitRow
	}
	return engine.WaitTable
}

// Blocks reports whether a lock that is held makes one that is asked for wait (InnoDB's lock0lock.cc,
// lock_rec_has_to_wait; MySQL manual, "InnoDB Locking").
func (l Lock) Blocks(wanted Lock) bool {
	if l.Record != wanted.Record || compatible(l.Mode, wanted.Mode) {
		return false
	}
	if !l.Record {
		return l.Table == wanted.Table
	}
	if l.Page != wanted.Page || !slices.ContainsFunc(l.Heap, func(h string) bool { return slices.Contains(wanted.Heap, h) }) {
		return false
	}
	switch {
	case l.Insertion:
		return false // the intention alone keeps nobody out
	case wanted.Insertion:
		return !l.NoGap
	}
	return !l.Gap && !slices.Contains(wanted.Heap, supremum)
}

// compatible is the table of lock modes (MySQL manual, "InnoDB Locking", Intention Locks).
func compatible(a, b string) bool {
	const shared, exclusive, intendShared, intendExclusive, auto = "S", "X", "IS", "IX", "AUTO-INC"
	if a > b {
		a, b = b, a
	}
	switch {
	case a == auto && (b == intendShared || b == intendExclusive), a == intendShared && b != exclusive,
		a == intendExclusive && b == intendExclusive, a == shared && b == shared:
		return true
	case a == intendShared && b == exclusive, a == exclusive, b == exclusive:
		return false
	}
	return false // AUTO-INC with itself and S; IX with S
}
