package mysqlwire

import (
	"regexp"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/statement"
)

// traits is what the relaying of a session must know of the server's product. It is filled once, at the login: nothing else
// in this package asks which product the server is.
type traits struct {
	*product.Product
	// ordinaryColumns says that the server cannot make columns invisible: it sends ours to a client that asks for all columns, also
	// in answer to the client's own text.
	ordinaryColumns bool
	// repeatsStatements says that the server executes a statement again that met a write conflict, and that the session's log
	// then has the entries of each attempt.
	repeatsStatements bool
	// optimistic says that transactions may be optimistic: those read from a snapshot whatever their level, and get all their
	// errors at COMMIT.
	optimistic bool
}

func traitsOf(f dialect.Flavor) traits {
	p := product.Of(string(f))
	return traits{p, !p.InvisibleColumns, p.AfterWait == product.WaitRestarts, p.Optimistic(product.Snapshot, true)}
}

// forgetsWarnings reports whether the server clears its list of warnings at a statement. A query without tables leaves it, also if it calls
// functions that are not known yet.
func (t *traits) forgetsWarnings(p *rewrite.Plan) bool {
	switch {
	case t.ClearsWarnings:
		return true
	case p.Schema:
		return !tableless.MatchString(p.Text)
	case p.Coverage == history.CoverageOpaque && p.Verb == "select":
		return tables.MatchString(p.Text)
	}
	return p.Coverage != history.CoverageNone && p.Control.Verb != statement.ControlBegin // one WITH CONSISTENT SNAPSHOT is seen exactly
}

// tableless are definitions that name no table.
var tableless = regexp.MustCompile(`(?is)^\s*(?:DROP\s+TRIGGER|(?:CREATE|ALTER|DROP)\s+(?:OR\s+REPLACE\s+|AGGREGATE\s+|DEFINER\s*=\s*\S+\s+)*(?:DATABASE|SCHEMA|PROCEDURE|FUNCTION|PACKAGE|EVENT|USER|ROLE|SERVER))\b`)

// call is a call of a procedure.
var call = regexp.MustCompile(`(?i)^\s*CALL\b`)

// tables are the words in front of tables and subqueries of a query.
var tables = regexp.MustCompile(`(?i)\b(?:FROM|TABLE)\b|\bSELECT\b(?s:.*)\bSELECT\b`)

// abortsAt reports whether an error in answer to p says that the whole transaction is rolled back.
func (t *traits) abortsAt(p *rewrite.Plan, e *history.ServerError) bool {
	// ErrResultUndetermined: whether the transaction was committed is not known.
	const undetermined = "8501"
	return t.Error(e.Code, e.Message).Aborts || t.optimistic && p.Control.Verb == statement.ControlCommit && e.Code != undetermined
}

// refused reports whether an error, before which nothing was relayed of the answer to p, says that nothing of p was executed.
// What a procedure executes may be refused when other parts of it were executed.
func (t *traits) refused(p *rewrite.Plan, e *history.ServerError) bool {
	if t.ordinaryColumns {
		return !manyResults(p) && dialect.Shown(e.Code, e.Message)
	}
	return !manyResults(p) && dialect.Refused(e.Code, e.Message)
}

// mayShow reports whether the last columns of an answer may be ours although the statement was not made to bring them: those
// of HANDLER ... READ, which shows all columns, also one that was prepared in SQL, and where columns cannot be made invisible
// those of every statement that was not understood. A client that names them gets them.
func (t *traits) mayShow(p *rewrite.Plan) bool {
	return readsHandler(p) || t.ordinaryColumns && p.Hidden == 0 && p.Decode == nil && !strings.Contains(strings.ToLower(p.Text), "wc_")
}

var handlerRead = regexp.MustCompile(`(?is)^\s*(?:HANDLER\b.*\bREAD|EXECUTE)\b`)

func readsHandler(p *rewrite.Plan) bool { return p.Verb == "other" && handlerRead.MatchString(p.Text) }
