// Package rewrite says how one SQL statement is sent so that its answer tells which row versions it read and wrote,
// and how that answer is taken apart again. A Plan is made once per statement text by one of the dialects (packages
// rewrite/postgres and rewrite/mysql); what is not rewritten is forwarded byte for byte.
package rewrite

import (
	"errors"
	"strings"
	"unicode/utf8"

	"wirecheck/history"
	"wirecheck/statement"
)

// ErrPartial is what Plan.Decode returns with accesses that are true but not all.
var ErrPartial = errors.New("more rows were read than the answer can name")

// ChangedError is what Plan.Decode returns if a table is not the one that the statement was planned for.
type ChangedError struct{ Table string } // its bare name

func (e *ChangedError) Error() string {
	return "table " + e.Table + " is another one than when the statement was planned"
}

// Script is the client's text of one request: mostly one statement, several with multi-statements or a simple query.
type Script struct {
	SQL   string  // what to send; the client's own text where no Plan changes anything
	Plans []*Plan // one for each statement that the server will answer, in order; empty statements have none
	// Unparsed says that the text could not be understood: it is sent as it is, there is one Plan of verb "other" with
	// Why set, and the session must expect any number of answers.
	Unparsed bool
	// Missing are the names that the catalog does not know, or not as they are now. While there are any, the plans are those
	// that are made without a catalog.
	Missing []Name
	Uses    []Use // what the plans rest on
	Whole   bool  // SQL repeats parts of the client's text, so it cannot be made for another one with other literals (MySQL family)
	Own     bool  // its plans are made for this text from those of another one, and are nobody else's
}

// planSize is roughly the room that a plan takes besides its text and its conditions, in bytes.
const planSize = 1 << 10

// Size is roughly the room that the conditions of its plans take, in bytes: those of a long condition take ten times the text's. The plans themselves
// count if they are its own.
func (s *Script) Size() (n int) {
	if s.Own {
		n = planSize * len(s.Plans)
	}
	for _, p := range s.Plans {
		n += p.Size()
	}
	return n
}

// Size is Script.Size of one plan.
func (p *Plan) Size() (n int) {
	for i := range p.Asks {
		n += p.Asks[i].Where.Size()
	}
	return n
}

// Changed reports whether anything is sent differently from the client's text.
func (s *Script) Changed(client string) bool { return s.SQL != client }

// Edit is a piece of text put into (Add) or in place of (Cut bytes of) the client's text at byte offset At of it.
type Edit struct {
	At  int
	Cut int
	Add string
}

// Plan tells what to do with one statement of a Script.
type Plan struct {
	Text string // the client's text of this statement alone
	At   int    // where Text begins in the client's text of the whole Script (MySQL family)
	Verb string // as history.Event.Verb
	// Edits lead from the client's text of the whole Script to Script.SQL; they are ordered by At and do not overlap.
	// They also serve to map error positions back (MapPosition).
	Edits []Edit
	// Hidden is how many columns were added at the end of each row of the answer. They are stripped from the column
	// definitions and rows before the client sees them, and given to Accesses.
	Hidden int
	// NoRows says that the client's own statement returns no rows: all columns, and the rows themselves, are hidden.
	NoRows bool
	// Decode reads the hidden columns of one row (nil for NULL, in the text format) and appends what they tell to list.
	// It is nil when Hidden is 0. An error that is ErrPartial comes with the accesses that are known; what comes with
	// another one is not to be used. The cells are not kept.
	Decode func(list []history.Access, hidden [][]byte) ([]history.Access, error)

	// Conceal hides the hidden columns where the answer itself is about columns (SHOW CREATE TABLE, SHOW COLUMNS,
	// information_schema): it may change the cells of a row (nil for NULL, in the text format) and reports whether the
	// client sees the row at all. It is nil for other statements.
	Conceal func(row [][]byte) (keep bool)

	Coverage history.Coverage // what an answer that succeeds will tell
	Why      string           // why Coverage is not exact
	// Bare is the first table without hidden columns that the statement names and that can have them (MySQL family); nil if there is none.
	Bare *RelationName
	// WithRows is the coverage of a statement whose answer has Rows rows, or at least one if Rows is 0, or that changed so many, where that is more
	// than Coverage: for some forms the rows tell everything, and no rows nothing. It is empty for other statements. Without WithRows, the log
	// may tell nothing of a statement that changed Rows rows: all are new (MySQL family).
	WithRows history.Coverage
	Rows     int
	Below    int // WithRows is the coverage of an answer with fewer rows, none included; 0: see there
	// Bounded says that WithRows is the coverage of an answer with fewer rows than the LIMIT of the first Ask, which is a parameter.
	Bounded bool
	// WithoutRows is the coverage of a statement that changed no row, where that is more than Coverage. It is empty for other statements.
	WithoutRows history.Coverage
	// Empty is the coverage of SELECT EXISTS that found no row, where that is more than Coverage. It is empty for other statements.
	Empty history.Coverage
	Met   bool // Asks has what each row of an INSERT met if it was not inserted; then WithRows is its coverage where it is known which ones were
	// Blank says that an answer without rows has one all the same, which the client does not see: of its hidden columns only Lists tell something, and the
	// first one is NULL, which it is of no other row.
	Blank bool
	// Lists are so many hidden columns behind all others, each with a list of values for Asks (condition.Listed) as a JSON array; NULL if it is not told. One
	// of them may be that of Lacking (MySQL family).
	Lists int
	// Moments are so many hidden columns behind those, each with a list of what condition.Moment stands for, the same in all rows.
	Moments int
	// Clock is a query that tells the same in front of the statement, where an answer without rows tells nothing: the moments, and in one more column the
	// microseconds of the server's time. What they say holds until the next second begins. Empty: there is none.
	Clock string
	// Lacking is the number, from 1, of the first of Keys hidden columns, each with the value that a row of the answer puts into a list of Asks (condition.Listed
	// and Last), see Ask.Lacked and Beyond; 0: there is none. Their lists are in front of those of Lists.
	Lacking, Keys int
	// Snapshot is the number, from 1, of the hidden column that tells the statement's snapshot (history.Snapshot); 0: there is none.
	Snapshot int
	// Hold is a query without rows, which reads the tables that foreign keys change. If it was executed in the open transaction, Cascades can be told of a
	// statement that the server must not refuse (PostgreSQL). It is empty for others.
	Hold string
	// Cascades reads the last hidden column of a row of a DELETE, Moments aside: what foreign keys delete with it, see Cascaded. It is nil for other statements.
	Cascades    func(cell []byte) (Cascaded, error)
	Same        int  // the last so many of the hidden columns are the same in each row of the answer (INSERT ... SELECT)
	CurrentRead bool // see history.Event
	Predicate   bool // see history.Event
	// Asks are the statement's predicate reads, as far as its text tells them. Unread says why there are others.
	Asks   []Ask
	Unread string
	// Any says that the answer shows nothing of its rows but how many there are: where LIMIT is reached, others would have done as well.
	// Settled says that a hidden column tells whether there was another one.
	Any, Settled bool

	// Views are the columns of tables that the columns of views show, by the names of views and columns that the server's answer gives them, the latter in lower
	// case.
	Views map[string]map[string]Shows

	Cursor *Cursor // what the statement, or part of a text, does to a cursor of SQL (PostgreSQL); nil: nothing
	// Deallocates names the prepared statement that the statement drops (PostgreSQL); "*\x00", which is no name: all; empty: none.
	Deallocates string

	Control statement.Control // what the statement does to the transaction or the session
	Schema  bool              // the statement may change the catalog (DDL)
	// Changes are the bare names of the only relations that it changes, if Schema is set; none if it may change anything.
	Changes []string
	// Parents are what foreign keys change from now on with rows of these tables (MySQL family). Renames says that it renames some of
	// Changes.
	Parents map[string]Cascade
	Renames bool

	// Temp says that the statement creates a temporary table: from then on an unqualified name may mean it
	// (PostgreSQL).
	Temp bool

	// Stamp says that the statement marks what it writes with the transaction's token (MySQL family): the session must
	// see to it that the token is set on the server before this statement runs.
	Stamp bool
	// Marked are the edits that put the stamp itself into the text, at StampMark, instead of the name of the variable that
	// holds it (MySQL family): sent so, the statement needs no token on the server. It is nil where Stamp is not set.
	Marked []Edit
	// Log says that the statement appends what it overwrote to the session's log on the server (MySQL family), which
	// the session fetches later.
	Log bool
	// Counted says that the log may have several entries of a row (MySQL family: UPDATE of a join), or some of rows that were left out (INSERT IGNORE):
	// they count if they are of as many rows as the server says that the statement found or inserted.
	Counted bool
	// Unseen says that the statement tells nothing of the rows that it makes, though predicates may read their table (MySQL family).
	Unseen bool
	// Listed says that an INSERT got a list of columns (MariaDB: an error in one column then does not keep it from those of the next ones; without a
	// list it does).
	Listed bool
	// Columns are those of the table of an INSERT that does not list them, in their order.
	Columns []string
	// Auto is the column whose value for the one row that the statement inserts the answer tells (MySQL family: AUTO_INCREMENT); empty:
	// none. The session's log tells the rest of the row.
	Auto string
	// ParsedApart says that the server warns when it parses the text that was made, but not when it executes it (MySQL:
	// 1287 for assignments within expressions). So the session prepares it, where the client's own text would be sent,
	// and executes that; the client's own PREPARE gets the client's own text. It is the number of these warnings, or 0.
	ParsedApart int
	// Diagnostics says that the statement asks for what the previous statement left behind (ROW_COUNT(), FOUND_ROWS(),
	// SHOW WARNINGS, GET DIAGNOSTICS, @@warning_count and the like), so no statement of ours may come between.
	Diagnostics bool
	// Temporary is the qualified name of a temporary table that the statement creates (MySQL family): from then on it
	// hides a table of that name from this session.
	Temporary string
}

// Cascaded is what foreign keys delete with one row, if nothing else was committed between the snapshot of the DELETE and the snapshot in which they look for
// rows: the server takes that one later. It is certain if the session's next snapshot is still the same, see Snapshot.Unchanged (PostgreSQL).
type Cascaded struct {
	Snapshot history.Snapshot // of the statement
	Own      uint64           // the transaction's id
	Accesses []history.Access
}

// Cursor is what one statement does to the cursor of that name (PostgreSQL). Rows of a cursor are those of the statement that declared it.
type Cursor struct {
	Name string
	Does CursorVerb
	Hold bool  // of DECLARE: it outlives its transaction
	Rows *Plan // of DECLARE: by it the rows that are fetched are taken apart; nil: nothing was added to them
	// Hidden are the names of the columns that were added, which no column of the client's has.
	Hidden []string
}

// Shows is the column of a table that a column of a view shows.
type Shows struct{ Table, Name string }

// CursorVerb is what is done to a cursor.
type CursorVerb uint8

// What is done to a cursor.
const (
	CursorDeclare CursorVerb = iota
	CursorFetch
	CursorClose // without a name: all of them
)

// StampMark stands for the stamp in Plan.Marked. No text that is added has it otherwise.
const StampMark = "\x00"

// DecodeRow is Decode for one row of an answer. What is the same in each row counts for the first one. It may change the cells.
func (p *Plan) DecodeRow(list []history.Access, hidden [][]byte, first bool) ([]history.Access, error) {
	if p.IsBlank(hidden) {
		return list, nil
	}
	hidden = hidden[:max(0, len(hidden)-p.Lists-p.Moments)]
	for i := max(0, len(hidden)-p.Same); i < len(hidden) && !first; i++ {
		hidden[i] = []byte{} // it says nothing
	}
	return p.Decode(list, hidden)
}

// IsBlank reports whether a row with these hidden columns stands for none, see Blank.
func (p *Plan) IsBlank(hidden [][]byte) bool { return p.Blank && len(hidden) > 0 && hidden[0] == nil }

// WithStamp makes the text to send from the client's text of the whole Script, of which p is the only Plan: Script.SQL
// with the stamp in it.
func (p *Plan) WithStamp(client, stamp string) string {
	edits := make([]Edit, len(p.Marked))
	for i, e := range p.Marked {
		e.Add = strings.ReplaceAll(e.Add, StampMark, stamp)
		edits[i] = e
	}
	return Apply(client, edits)
}

// MapPosition maps a character position (from 1, as in PostgreSQL's ErrorResponse field P) in the sent text back to the
// client's text. A position inside added text maps to the place where the text was added, or to the client's own if it is in what is evaluated once more.
func MapPosition(client string, edits []Edit, pos int) int {
	out, in := 0, 0 // characters of the sent and of the client's text passed so far
	count := func(s string) int {
		n := 0
		for range s {
			n++
		}
		return n
	}
	at := 0
	for _, e := range edits {
		plain := count(client[at:e.At])
		if pos <= out+plain {
			return in + (pos - out)
		}
		out, in = out+plain, in+plain
		add := count(e.Add)
		if pos <= out+add {
			if own := copied(client, e.Add, pos-out-1); own >= 0 {
				return 1 + count(client[:own])
			}
			return in + 1
		}
		out, in = out+add, in+count(client[e.At:e.At+e.Cut])
		at = e.At + e.Cut
	}
	return in + (pos - out)
}

// copied finds the place of the client's text of which an added text has a copy around its n-th character: the longest run that both have, from the FROM
// of a query on, since what is added has names of the client's by itself. It is -1 if there is none.
func copied(client, add string, n int) int {
	from := 0
	for range n {
		_, size := utf8.DecodeRuneInString(add[from:])
		from += size
	}
	to, at := from, from
	for to < len(add) && strings.Contains(client, add[from:to+1]) {
		to++
	}
	for from > 0 && to > at && strings.Contains(client, add[from-1:to]) {
		from--
	}
	if !strings.Contains(strings.ToLower(add[from:at]), "from ") {
		return -1
	}
	return strings.Index(client, add[from:to]) + at - from
}

// Apply makes the text to send from the client's text.
func Apply(client string, edits []Edit) string {
	if len(edits) == 0 {
		return client
	}
	n := len(client)
	for _, e := range edits {
		n += len(e.Add)
	}
	b := make([]byte, 0, n)
	at := 0
	for _, e := range edits {
		b = append(b, client[at:e.At]...)
		b = append(b, e.Add...)
		at = e.At + e.Cut
	}
	return string(append(b, client[at:]...))
}
