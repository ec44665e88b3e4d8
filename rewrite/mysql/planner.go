package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	describe "wirecheck/statement/mysql"
	"wirecheck/statement/mysqlsyntax"
)

// planner makes the plan of one statement.
type planner struct {
	r        *Rewriter
	text     *statement.Text
	catalog  *rewrite.Catalog
	session  Session
	several  bool // one of several in its request
	prepared bool // sent as COM_STMT_PREPARE
	plan     *rewrite.Plan

	base  int    // offset of the statement in the whole text
	edits []edit // in any order
	why   []string
	arms  int // SELECTs of a set operation that log what they read

	veils    []edit // what is written out so that ordinary columns of ours do not show (veil.go)
	veilList *edit  // the list of columns of an INSERT, where what is seen does not bring one
}

// edit is text put in. check stands for it in the text that is parsed again to see that it stands where it was meant.
type edit struct {
	at    int
	cut   int
	add   string
	check string
}

// analyse fills the plan.
func (s *planner) analyse() {
	t := s.text
	first, last := t.Tokens[0], t.Tokens[len(t.Tokens)-1]
	s.base = first.Start
	s.plan.Text = t.SQL[first.Start:last.End]
	s.plan.Diagnostics = diagnosticsIn(t)
	i := 0
	for t.Is(i, "(") {
		i++
	}
	e, known := describe.EffectOf(t, i, s.r.flavor)
	s.plan.Verb, s.plan.Control, s.plan.Schema = e.Verb, e.Control, e.Schema
	if e.Temporary != "" {
		s.plan.Temporary = s.qualify(e.TemporarySchema, e.Temporary)
	}
	switch {
	case known:
		s.utility(i)
		s.veilView()
		return
	case t.Is(i, "DO"):
		if s.mayReadTables() {
			s.opaque("it may read tables")
		}
		return
	case e.Verb == "other":
		s.opaque("not analysed")
		return
	case e.Verb == "select":
		s.plan.Conceal = s.concealSelect()
	}
	s.dml()
}

// opaque leaves the statement as it is.
func (s *planner) opaque(why string) {
	s.edits = nil
	s.plan.Edits, s.plan.Marked = nil, nil
	s.plan.Hidden, s.plan.Decode, s.plan.NoRows = 0, nil, false
	s.plan.Stamp, s.plan.Log, s.plan.ParsedApart, s.plan.CurrentRead = false, false, 0, false
	s.plan.Coverage, s.plan.Why = history.CoverageOpaque, why
}

// partial says that not everything will be seen.
func (s *planner) partial(why string) {
	for _, w := range s.why {
		if w == why {
			return
		}
	}
	s.why = append(s.why, why)
}

// mayReadTables reports whether an expression statement (SET, DO) contains a query or a call of a stored function.
func (s *planner) mayReadTables() bool {
	for i := range s.text.Tokens {
		if s.text.Is(i, "SELECT", "TABLE") {
			return true
		}
		if name, ok := s.text.Name(i); ok && s.text.Is(i+1, "(") && s.stored(name) {
			return true
		}
	}
	return false
}

func (s *planner) stored(function string) bool {
	return s.catalog != nil && s.catalog.Functions[strings.ToLower(function)]&rewrite.FunctionUser != 0
}

// dml parses the statement and hands it to the file of its kind.
func (s *planner) dml() {
	for i, tok := range s.text.Tokens {
		if tok.Executable {
			s.opaque("a comment for certain versions of the server")
			return
		}
		if name, ok := s.text.Name(i); ok && (strings.EqualFold(name, columnRowID) || strings.EqualFold(name, columnWriters)) ||
			tok.Kind == statement.TokenVariable && len(s.text.At(i)) > 4 && strings.EqualFold(s.text.At(i)[:4], "@wc_") {
			s.opaque("it names the hidden columns")
			return
		}
	}
	if s.catalog == nil {
		s.opaque("the catalog is not known")
		return
	}
	if s.r.capture == rewrite.CaptureNative || s.session.Mode&mysqlsyntax.Foreign != 0 {
		s.opaque("this session cannot be instrumented")
		return
	}
	sql, returning, why := describe.Parsable(s.text, s.plan.Verb, s.r.flavor)
	if why != "" {
		s.opaque(why)
		return
	}
	if returning {
		s.partial("RETURNING is left to the client")
	}
	node, err := s.r.parser.Parse(sql, s.session.Mode)
	if err != nil {
		s.opaque("the parser does not know it")
		return
	}
	if alwaysVisible(s.r.flavor) && !s.veil(node) {
		s.opaque(showing)
		return
	}
	switch n := node.(type) {
	case *ast.SelectStmt:
		s.query(n)
	case *ast.SetOprStmt:
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
	s.finish(sql)
}

// finish checks the edits and puts them into the plan.
func (s *planner) finish(parsed string) {
	p := s.plan
	if p.Coverage == history.CoverageOpaque || len(s.edits) == 0 {
		s.putVeil(parsed)
		return
	}
	if len(s.veils) > 0 {
		s.edits = inOrder(append(s.edits, s.veils...))
	}
	whole := make([]rewrite.Edit, len(s.edits))
	marked := make([]rewrite.Edit, len(s.edits))
	for i, e := range s.edits {
		if i > 0 && e.at < s.edits[i-1].at {
			s.opaque("edits out of order")
			return
		}
		whole[i] = rewrite.Edit{At: e.at, Cut: e.cut, Add: stampVariable.Replace(e.add)}
		marked[i] = rewrite.Edit{At: e.at, Cut: e.cut, Add: stampLiteral.Replace(e.add)}
	}
	again, err := s.r.parser.Parse(rewrite.Apply(parsed, s.checks(s.edits)), s.session.Mode)
	if err != nil || !s.agrees(again) {
		s.opaque("the places to put text in are not certain")
		s.putVeil(parsed)
		return
	}
	p.Edits = whole
	switch {
	case s.r.flavor == MySQL: // its statements are prepared apart from their execution, so the stamp cannot stand in them
		p.ParsedApart = assignments(s.edits)
	case p.Stamp:
		p.Marked = marked
	}
	if len(s.why) > 0 {
		p.Coverage, p.Why = history.CoverageApproximate, strings.Join(s.why, "; ")
	}
}
