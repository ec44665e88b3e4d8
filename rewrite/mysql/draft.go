package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// draft is the new text of a statement, and what its answer will tell.
type draft struct {
	judge
	plan   *rewrite.Plan
	edits  []edit        // in any order
	ups    int           // columns of derived tables
	silent bool          // an answer without rows does not tell what was read
	copies bool          // the text repeats parts of the client's
	clocks []string      // expressions of the server's time, see clock
	sole   bool          // a column tells whether LIMIT chose among rows (reader.another)
	exists *existed      // SELECT EXISTS
	hides  *hiddenGroups // what HAVING asks of groups, if the log tells it
	scalar *scalar       // a subquery whose value is told in front of them
	arms   int           // SELECTs of a set operation that log what they read

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

// opaque leaves the statement as it is.
func (s *draft) opaque(why string) {
	s.edits = nil
	s.plan.Edits, s.plan.Marked = nil, nil
	s.plan.Hidden, s.plan.Decode, s.plan.NoRows = 0, nil, false
	s.plan.Stamp, s.plan.Log, s.plan.Counted, s.plan.Auto, s.plan.ParsedApart, s.plan.CurrentRead = false, false, false, "", 0, false
	s.plan.Coverage, s.plan.WithRows, s.plan.Rows, s.plan.Why = history.CoverageOpaque, "", 0, why
}

// leave is opaque for a statement that is not parsed. What the hidden columns would show is still taken out of it, if that parses.
func (s *draft) leave(why string) {
	s.opaque(why)
	s.putVeil(s.plan.Text)
}

// inLog makes the plan that of a SELECT which tells by the log alone what it reads.
func (s *draft) inLog() {
	s.plan.Stamp, s.plan.Log = true, true
	s.plan.Coverage = history.CoverageExact
}

// finish checks the edits and puts them into the plan.
func (s *draft) finish(parsed string) {
	p := s.plan
	if p.Coverage == history.CoverageOpaque || len(s.edits) == 0 {
		s.putVeil(parsed)
		return
	}
	if len(s.veils)+s.ups > 0 {
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
		if p.ParsedApart = assignments(s.edits); p.ParsedApart > 0 && s.readsView(again) {
			s.opaque("a view or a derived table, which the server would not merge")
			return
		}
	case p.Stamp:
		p.Marked = marked
	}
	if len(s.why) > 0 {
		p.Coverage, p.Why = history.CoverageApproximate, strings.Join(s.why, "; ")
	} else if s.silent {
		p.Coverage, p.WithRows, p.Why = history.CoverageApproximate, history.CoverageExact, "an answer without rows does not tell what it read"
	}
}

// readsView reports whether a statement names a view, or a query a derived table. MySQL merges neither into a statement that assigns variables (9.7.4): plans,
// warnings and descriptions of columns are others then. It refuses a view of a table that a write changes (1443), but, with our columns or prepared, not in front of
// other errors, and with IGNORE not at all. INSERT ... SELECT may read any.
func (s *draft) readsView(n ast.StmtNode) bool {
	switch n := n.(type) {
	case *ast.SelectStmt:
		if derives(n) {
			return true
		}
	case *ast.InsertStmt:
		if n.Select != nil {
			return false
		}
	}
	return slices.ContainsFunc(walk(n).tables, func(t *ast.TableName) bool {
		rel, _ := s.resolve(t.Schema.O, t.Name.O)
		return rel != nil && rel.Kind == "view"
	})
}

// derives reports whether a derived table or a common table expression stands anywhere in a query.
func derives(n ast.Node) (found bool) {
	visit(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.TableSource:
			switch n.Source.(type) {
			case *ast.SelectStmt, *ast.SetOprStmt:
				found = true
			}
		case *ast.WithClause:
			found = true
		}
	})
	return found
}

// agrees reports whether the text with the added parts is what was meant: parsed again, each stands in its place.
func (s *draft) agrees(n ast.StmtNode) bool {
	switch n := n.(type) {
	case *ast.SelectStmt:
		if s.exists != nil {
			return s.exists.agrees(n)
		}
		if s.plan.Hidden == 0 {
			return endsWithProbe(n.Where)
		}
		return probes(n, s.plan.Hidden) && exposed(n) == s.ups
	case *ast.SetOprStmt:
		arms := armsOf(n.SelectList)
		if s.plan.Hidden > 0 {
			return len(arms) == s.arms && !slices.ContainsFunc(arms, func(arm *ast.SelectStmt) bool { return !probes(arm, s.plan.Hidden) })
		}
		return probedConditions(arms) == s.arms
	case *ast.UpdateStmt:
		if s.r.flavor == TiDB {
			return len(n.List) >= 2 && isWriters(n.List[len(n.List)-1].Column)
		}
		if s.plan.Counted {
			return len(n.List) >= 2 && isWriters(n.List[0].Column)
		}
		return len(n.List) >= 3 && isWriters(n.List[0].Column) && isWriters(n.List[len(n.List)-1].Column)
	case *ast.DeleteStmt:
		return endsWithProbe(n.Where)
	case *ast.InsertStmt:
		return s.agreesInsert(n)
	}
	return false
}

func (s *draft) agreesInsert(n *ast.InsertStmt) bool {
	if n.Setlist || len(n.Columns) > 0 {
		if len(n.Columns) == 0 || !isWriters(n.Columns[len(n.Columns)-1]) {
			return false
		}
	}
	for _, row := range n.Lists {
		if len(row) != len(n.Columns) || !n.Setlist && !isProbe(row[len(row)-1]) {
			return false
		}
	}
	if sel, ok := n.Select.(*ast.SelectStmt); ok && !probes(sel, 1) {
		return false
	}
	if len(n.OnDuplicate) > 0 && s.plan.Log {
		return len(n.OnDuplicate) >= 3 && isWriters(n.OnDuplicate[0].Column) && isWriters(n.OnDuplicate[len(n.OnDuplicate)-1].Column)
	}
	return true
}

func isWriters(c *ast.ColumnName) bool { return c.Name.L == columnWriters }

func isProbe(e ast.ExprNode) bool {
	c, ok := e.(*ast.ColumnNameExpr)
	return ok && c.Name.Name.L == "wc_probe"
}

func probes(n *ast.SelectStmt, count int) bool {
	if n.Fields == nil || len(n.Fields.Fields) <= count {
		return false
	}
	tail := n.Fields.Fields[len(n.Fields.Fields)-count:]
	return !slices.ContainsFunc(tail, func(f *ast.SelectField) bool { return !isProbe(f.Expr) || f.AsName.O != "" })
}
