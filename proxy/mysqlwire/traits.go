package mysqlwire

import (
	"regexp"
	"strings"

	"wirecheck/history"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// traits is what the relaying of a session must know of the server's product. It is filled once, at the login: nothing else
// in this package asks which product the server is.
type traits struct {
	engine string // as history.Event.Engine names it
	// ordinaryColumns says that the server cannot make columns invisible: it sends ours to a client that asks for all columns, also
	// in answer to the client's own text.
	ordinaryColumns bool
	// repeatsStatements says that the server executes a statement again that met a write conflict, and that the session's log
	// then has the entries of each attempt.
	repeatsStatements bool
	// optimistic says that transactions may be optimistic: those read from a snapshot whatever their level, and get all their
	// errors at COMMIT.
	optimistic bool
	// warnsOfAssignments says that the server warns of assignments within expressions (1287) where it parses them.
	warnsOfAssignments bool
	// updateSetsFoundRows says that UPDATE, to the rows that it found, and DO set FOUND_ROWS() too.
	updateSetsFoundRows bool
	// clearsWarnings says that every statement that does not ask for diagnostics clears the list of warnings (MySQL manual,
	// "Diagnostics Area"). Elsewhere only one that reads or writes tables does so at once.
	clearsWarnings bool
	// aborts holds the errors that roll back the whole transaction at the server's default settings.
	aborts map[string]bool
}

// traitsOf gives a product's traits. A lock wait timeout (1205) is in no list of aborts: it undoes the statement alone
// (MariaDB and MySQL, innodb_rollback_on_timeout).
func traitsOf(f dialect.Flavor) traits {
	t := traits{engine: string(f)}
	switch f {
	case dialect.MySQL:
		t.warnsOfAssignments, t.updateSetsFoundRows, t.clearsWarnings = true, true, true
		t.aborts = codes("1213")
	case dialect.MariaDB:
		t.aborts = codes("1213", "1020") // deadlock; innodb_snapshot_isolation: the row was changed
	case dialect.TiDB:
		t.ordinaryColumns, t.repeatsStatements, t.optimistic = true, true, true
		// A deadlock, and what the storage refuses at COMMIT (TiDB docs, "Error Codes and Troubleshooting").
		t.aborts = codes("1213", "8002", "8004", "8005", "8022", "8027", "8028", "8133", "8141", "8223", "9001", "9002", "9003", "9004", "9005", "9006", "9007", "9008")
	}
	return t
}

func codes(list ...string) map[string]bool {
	m := make(map[string]bool, len(list))
	for _, code := range list {
		m[code] = true
	}
	return m
}

// forgetsWarnings reports whether the server clears its list of warnings at a statement.
func (t *traits) forgetsWarnings(p *rewrite.Plan) bool {
	return p.Coverage != history.CoverageNone || p.Schema || t.clearsWarnings
}

// abortsAt reports whether an error in answer to p says that the whole transaction is rolled back.
func (t *traits) abortsAt(p *rewrite.Plan, code string) bool {
	// ErrResultUndetermined: whether the transaction was committed is not known.
	const undetermined = "8501"
	return t.aborts[code] || t.optimistic && p.Control.Verb == rewrite.ControlCommit && code != undetermined
}

// mayShow reports whether the last columns of an answer may be ours although the statement was not made to bring them: those
// of HANDLER ... READ, which shows all columns, and where columns cannot be made invisible those of every statement that was
// not understood. A client that names them gets them.
func (t *traits) mayShow(p *rewrite.Plan) bool {
	return readsHandler(p) || t.ordinaryColumns && p.Hidden == 0 && p.Decode == nil && !strings.Contains(strings.ToLower(p.Text), "wc_")
}

var handlerRead = regexp.MustCompile(`(?is)^\s*HANDLER\b.*\bREAD\b`)

func readsHandler(p *rewrite.Plan) bool { return p.Verb == "other" && handlerRead.MatchString(p.Text) }
