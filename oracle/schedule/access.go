package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/product"
	"wirecheck/statement"
)

// accessText finds what a SET says of whether transactions may write, as characteristics of transactions or by a variable.
var accessText = regexp.MustCompile(`(?is)^\s*set\s+(@@)?(session\s+characteristics\s+as\s+)?((?:session|local)[\s.]+)?` +
	`(?:transaction\s|((?:default_)?transaction_read_only|tx_read_only)\s*(?::?=|to)\s*'?(\w+))`)

// access reads what a SET says of whether transactions may write, and of which transactions. It is false for other statements, BEGIN
// among them. Sources: MySQL manual, 15.3.7; PostgreSQL manual, SET TRANSACTION.
func access(p *product.Product, st *statement.Statement) (readOnly bool, scope statement.Scope, ok bool) {
	m := accessText.FindStringSubmatch(st.Text)
	if m == nil {
		return false, "", false
	}
	characteristics, session, variable := m[2] != "", m[3] != "", strings.ToLower(m[4])
	readOnly, ok = st.Begin.ReadOnly, st.Begin.ReadOnly || st.Begin.ReadWrite
	if variable != "" {
		readOnly, ok = slices.Contains([]string{"on", "true", "yes", "1"}, strings.ToLower(m[5])), true
	}
	switch {
	case p.Dialect == product.DialectMySQL && (session || variable != "" && m[1] == ""), characteristics, strings.HasPrefix(variable, "default"):
		scope = statement.ScopeSession
	case p.Dialect == product.DialectMySQL:
		scope = statement.ScopeNext
	default:
		scope = statement.ScopeTransaction
	}
	return readOnly, scope, ok
}

// SetsAccess reports whether a statement says whether transactions may write, BEGIN apart. An execution without the schedule's
// transactions leaves it out: there each statement is a transaction of its own, which may have another access mode than in the schedule.
func SetsAccess(p *product.Product, st *statement.Statement) bool {
	_, _, ok := access(p, st)
	return ok
}

// ForNext reports whether a statement sets something for the next transaction of its session, and for no other one.
func ForNext(p *product.Product, st *statement.Statement) bool {
	_, scope, ok := access(p, st)
	return ok && scope == statement.ScopeNext || st.Control.Verb == statement.ControlLevel && st.Control.Scope == statement.ScopeNext
}
