package mysql

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement"
	describe "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// setsVariable finds a hint by which a statement has a setting of its own (MySQL manual, "Variable-Setting Hint Syntax").
var setsVariable = regexp.MustCompile(`(?is)/\*\+.*\bSET_VAR\b`)

// planner makes the plan of one statement, by its kind.
type planner struct{ draft }

// analyse fills the plan.
func (s *planner) analyse() {
	t := s.text
	first, last := t.Tokens[0], t.Tokens[len(t.Tokens)-1]
	s.plan.Text, s.plan.At = t.SQL[first.Start:last.End], first.Start
	s.plan.Diagnostics = diagnosticsIn(t)
	s.session.Once = s.session.Once || s.plan.Diagnostics && mentions(t, "FOUND_ROWS") // a subquery of ours would set it for the rows behind (MariaDB 10.11.19)
	i := 0
	for t.Is(i, "(") {
		i++
	}
	e, known := describe.EffectOf(t, i, s.r.flavor)
	s.plan.Verb, s.plan.Control, s.plan.Schema = e.Verb, e.Control, e.Schema
	if e.Temporary != "" {
		s.plan.Temporary = s.qualify(e.TemporarySchema, e.Temporary)
	}
	if e.Verb != "ddl" || definesTable(t, 1) {
		s.hideColumns()
	}
	switch {
	case known:
		s.utility(i)
		s.veilView()
		s.putVeil(s.plan.Text)
		return
	case t.Is(i, "DO"):
		if s.mayReadTables() {
			s.opaque("it may read tables")
		}
		s.putVeil(s.plan.Text)
		return
	case e.Verb == "other":
		s.opaque("not analysed")
		return
	case e.Verb == "select":
		if s.aboutColumns() {
			s.plan.Conceal = concealRows
		}
	}
	s.dml()
}

// dml parses the statement and hands it to the file of its kind.
func (s *planner) dml() {
	versions := strings.Contains(s.text.SQL, "/*!") // the parser executes each of them
	for i, tok := range s.text.Tokens {
		if tok.Executable || versions {
			s.leave("a comment for certain versions of the server")
			return
		}
		if name, ok := s.text.Name(i); ok && (strings.EqualFold(name, columnRowID) || strings.EqualFold(name, columnWriters)) ||
			tok.Kind == statement.TokenVariable && len(s.text.At(i)) > 4 && strings.EqualFold(s.text.At(i)[:4], "@wc_") {
			s.leave("it names the hidden columns")
			return
		}
	}
	if !s.catalog.Usable() {
		s.leave("the catalog is not known")
		return
	}
	if s.r.flavor == MySQL && setsVariable.MatchString(s.text.SQL) {
		s.leave("a setting of this statement alone")
		return
	}
	if s.r.capture == rewrite.CaptureNative || s.session.Mode&mysqlsyntax.Foreign != 0 {
		s.leave("this session cannot be instrumented")
		return
	}
	sql, returning, why := describe.Parsable(s.text, s.plan.Verb, s.r.flavor)
	if why != "" {
		s.leave(why)
		return
	}
	if i := s.text.Find(0, s.text.Tokens[0].Depth, "RETURNING"); returning && s.text.Any(i, "(") {
		// The columns that RETURNING names are those of the rows that the statement writes.
		s.partial("what RETURNING calls or asks in subqueries is not seen")
	}
	node, err := s.r.parser.Parse(sql, s.session.Mode)
	if err != nil {
		s.leave("the parser does not know it")
		return
	}
	if alwaysVisible(s.r.flavor) && !s.veil(node) {
		s.opaque(showing)
		return
	}
	switch n := node.(type) {
	case *ast.SelectStmt:
		if !s.system(n) {
			s.query(n)
		}
	case *ast.SetOprStmt:
		if s.system(n) {
			return
		}
		s.setOperation(n)
	case *ast.InsertStmt:
		s.insert(n)
	case *ast.UpdateStmt:
		s.update(n)
	case *ast.DeleteStmt:
		s.delete(n)
	default:
		s.opaque("not analysed")
	}
	if s.r.flavor == MariaDB && slices.ContainsFunc(s.edits, edit.asks) && (quietly{s: s}).warnsOfRow(node) {
		s.opaque("a warning may name a row by its number")
	}
	s.finish(sql)
}
