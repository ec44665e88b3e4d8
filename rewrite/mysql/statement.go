package mysql

import (
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// statement is one statement under analysis.
type statement struct {
	r        *Rewriter
	text     *text
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
func (s *statement) analyse() {
	t := s.text
	first, last := t.tokens[0], t.tokens[len(t.tokens)-1]
	s.base = first.start
	s.plan.Text = t.sql[first.start:last.end]
	s.plan.Diagnostics = diagnosticsIn(t)
	i := 0
	for t.is(i, "(") {
		i++
	}
	s.plan.Verb = "other"
	if s.control(i) {
		s.veilView()
		return
	}
	switch {
	case t.is(i, "SELECT", "WITH", "TABLE", "VALUES"):
		s.plan.Verb = "select"
		s.plan.Conceal = s.concealSelect()
	case t.is(i, "INSERT"):
		s.plan.Verb = "insert"
	case t.is(i, "REPLACE"):
		s.plan.Verb = "replace"
	case t.is(i, "UPDATE"):
		s.plan.Verb = "update"
	case t.is(i, "DELETE"):
		s.plan.Verb = "delete"
	case t.is(i, "DO"):
		if s.mayReadTables() {
			s.opaque("it may read tables")
		}
		return
	default:
		s.opaque("not analysed")
		return
	}
	s.dml()
}

// opaque leaves the statement as it is.
func (s *statement) opaque(why string) {
	s.edits = nil
	s.plan.Edits, s.plan.Marked = nil, nil
	s.plan.Hidden, s.plan.Decode, s.plan.NoRows = 0, nil, false
	s.plan.Stamp, s.plan.Log, s.plan.ParsedApart, s.plan.CurrentRead = false, false, 0, false
	s.plan.Coverage, s.plan.Why = history.CoverageOpaque, why
}

// partial says that not everything will be seen.
func (s *statement) partial(why string) {
	for _, w := range s.why {
		if w == why {
			return
		}
	}
	s.why = append(s.why, why)
}

// mayReadTables reports whether an expression statement (SET, DO) contains a query or a call of a stored function.
func (s *statement) mayReadTables() bool {
	for i := range s.text.tokens {
		if s.text.is(i, "SELECT", "TABLE") {
			return true
		}
		if name, ok := s.text.name(i); ok && s.text.is(i+1, "(") && s.stored(name) {
			return true
		}
	}
	return false
}

func (s *statement) stored(function string) bool {
	return s.catalog != nil && s.catalog.Functions[strings.ToLower(function)]&rewrite.FunctionUser != 0
}

// dml parses the statement and hands it to the file of its kind.
func (s *statement) dml() {
	for i, tok := range s.text.tokens {
		if tok.executable {
			s.opaque("a comment for certain versions of the server")
			return
		}
		if name, ok := s.text.name(i); ok && (strings.EqualFold(name, columnRowID) || strings.EqualFold(name, columnWriters)) ||
			tok.kind == tokVar && len(s.text.at(i)) > 4 && strings.EqualFold(s.text.at(i)[:4], "@wc_") {
			s.opaque("it names the hidden columns")
			return
		}
	}
	if s.catalog == nil {
		s.opaque("the catalog is not known")
		return
	}
	if s.r.capture == rewrite.CaptureNative || s.session.Mode&Foreign != 0 {
		s.opaque("this session cannot be instrumented")
		return
	}
	sql, ok := s.shim()
	if !ok {
		return
	}
	node, err := s.r.parse(sql, s.session.Mode)
	if err != nil {
		s.opaque("the parser does not know it")
		return
	}
	if s.r.flavor.visible() && !s.veil(node) {
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
func (s *statement) finish(parsed string) {
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
	again, err := s.r.parse(rewrite.Apply(parsed, s.checks(s.edits)), s.session.Mode)
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

// shim gives the text to parse: what the parser does not know, but what does not matter to us, is blanked out.
func (s *statement) shim() (string, bool) {
	t := s.text
	sql := s.plan.Text
	depth := t.tokens[0].depth
	blank := func(from, to int) {
		sql = sql[:from-s.base] + strings.Repeat(" ", to-from) + sql[to-s.base:]
	}
	end := t.tokens[len(t.tokens)-1].end
	if s.r.flavor == TiDB && s.plan.Verb != "select" {
		return sql, true // the parser is its own
	}
	switch s.plan.Verb {
	case "select":
		for i := range t.tokens {
			if t.is(i, "INTO") {
				s.opaque("its result goes to variables or a file")
				return "", false
			}
		}
		// LOCK IN SHARE MODE NOWAIT | SKIP LOCKED | WAIT n (MariaDB)
		if i := t.find(0, depth, "LOCK"); s.r.flavor != TiDB && i >= 0 && t.seq(i, "LOCK", "IN", "SHARE", "MODE") && i+4 < len(t.tokens) {
			blank(t.tokens[i+4].start, end)
		}
	case "insert", "replace", "delete":
		if i := t.find(0, depth, "RETURNING"); i >= 0 {
			s.partial("RETURNING is left to the client")
			blank(t.tokens[i].start, end)
		}
	}
	return sql, true
}
