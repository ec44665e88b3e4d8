package report

import (
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/product"
	sqltext "wirecheck/statement"
	"wirecheck/trace/lex"
)

// Reader is a session to which a finding is told.
type Reader struct {
	Session uint64
	Engine  string // the product of its server
	User    string
	// Others says that it may see what other users' sessions do: it is a superuser's, or the operator allows it.
	Others bool
}

// mayNotSee reports whether the server would not show the reader the statements of a transaction's session: PostgreSQL's
// pg_stat_activity (manual, 28.2.3) and the process list (MySQL manual, 13.7.7.29) show those of one's own user alone.
func (r Reader) mayNotSee(x *oracle.Transaction) bool {
	return !r.Others && x.Session != r.Session && (x.User == "" || x.User != r.User || x.Engine != r.Engine)
}

// For is a finding as its reader may see it: of other users' sessions it has statements without literals, and neither tags nor conditions; rows
// have their names where the reader's own statements used them.
func For(f oracle.Finding, r Reader) oracle.Finding {
	if !slices.ContainsFunc(f.Transactions, func(x oracle.Transaction) bool { return r.mayNotSee(&x) }) {
		return f
	}
	f.Transactions, f.Edges = slices.Clone(f.Transactions), slices.Clone(f.Edges)
	for i := range f.Edges {
		hide(&f, &f.Edges[i], r)
	}
	for i := range f.Transactions {
		x := &f.Transactions[i]
		if !r.mayNotSee(x) {
			continue
		}
		x.User, x.Client, x.Database, x.Tags, x.Request = "", "", "", nil, ""
		x.Statements = slices.Clone(x.Statements)
		for k := range x.Statements {
			s := &x.Statements[k]
			s.Tags, s.Params, s.SQL = nil, nil, masked(s, x.Engine)
		}
	}
	f.Remedies = oracle.Remedies(product.Of(f.Transactions[0].Engine), &f)
	return f
}

// hide takes out of an edge what its reader may not see.
func hide(f *oracle.Finding, e *oracle.Edge, r Reader) {
	own := func(txn int) bool { return !r.mayNotSee(&f.Transactions[txn]) }
	asked := -1 // who asked by a condition, and so need not have seen the row that came or went
	if e.ByCondition() {
		if asked = e.To; e.Kind == oracle.EdgeRW {
			asked = e.From
		}
	}
	if !own(e.From) {
		e.FromValues = nil
	}
	if !own(e.To) {
		e.ToValues = nil
	}
	changed := false
	if asked >= 0 && !own(asked) {
		e.Condition, e.Groups, e.Found, changed = "...", "", nil, true
	}
	if e.Row.Table != "" && !(own(e.From) && e.From != asked) && !(own(e.To) && e.To != asked) {
		e.Name, e.Row, changed = "", history.Row{Table: e.Row.Table}, true
	}
	if changed {
		e.Text = "both used " + e.RowText()
	}
}

// masked is a statement's text without its literals. Where settings of its session decide what a literal is, it is the verb alone.
func masked(s *oracle.Statement, engine string) string {
	if s.SQL == "" {
		return ""
	}
	if text, ok := sqltext.Masked(s.SQL, lex.Of(product.Of(engine).Dialect)); ok {
		return text
	}
	return strings.ToUpper(s.Verb) + " ..."
}
