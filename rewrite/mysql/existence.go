package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"

	"wirecheck/history"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// SELECT EXISTS of a whole unique key finds one row, or none. So the server is asked for that row, and EXISTS is whether there is one:
//
//	SELECT EXISTS (SELECT * FROM orders WHERE customer = 1) AS found
//	SELECT wc_e.wc_v IS NOT NULL AS found,wc_e.wc_v FROM (SELECT (SELECT <version> FROM orders WHERE customer = 1 LIMIT 1) wc_v LIMIT 1) wc_e
//
// Both have the same type, if the subquery shows no columns by their names (MySQL 9.7.4). The clauses FROM and WHERE stay where they are, so parameters keep their places.
//
// Of another condition, another row may have done as well: EXISTS stays true when the row that was found goes and another one is left. So the row alone tells nothing; a second
// scan does, if it finds no other one.

// existed is a SELECT EXISTS that is asked so.
type existed struct {
	query *ast.SelectStmt // in EXISTS
	not   bool
}

// existenceTold makes such a statement. It reports false if it stays as it is.
func existenceTold(s *planner, n *ast.SelectStmt) bool {
	q, not := existence(n)
	if s.r.flavor == TiDB || !plainQuery(q) || n.Fields.Fields[0].AsName.O == "" || s.session.Once || s.session.LockingReads || s.session.Cut || q.GroupBy != nil || q.Having != nil || q.Limit != nil || q.OrderBy != nil ||
		q.Distinct || s.aggregates(q) || walk(q.Fields).window || len(q.WindowSpecs) > 0 {
		return false
	}
	list, ok := s.sources(q.From.TableRefs, nil)
	if !ok || len(list) != 1 || list[0].rel == nil || list[0].why != "" || len(list[0].rel.Key) == 0 || slices.ContainsFunc(q.Fields.Fields, shownByName) || s.predicate(q.Where, list) {
		return false
	}
	if q.Where != nil && slices.ContainsFunc(walk(q.Where).functions, func(f string) bool { return clocks[f].name != "" }) { // tellClocks has no place for them
		return false
	}
	t, outer, first := s.text, s.outerSelect(), s.selectOf(q)
	words, is := []string{"EXISTS", "("}, " IS NOT NULL "
	if not {
		words, is = append([]string{"NOT"}, words...), " IS NULL "
	}
	end := -1
	if outer >= 0 && first == outer+1+len(words) && t.Seq(outer+1, words...) {
		end = t.Close(first - 1)
	}
	last := len(t.Tokens)
	for last > 0 && t.Is(last-1, ";") {
		last--
	}
	if end < 0 || last != end+2 && !(last == end+3 && t.Is(end+1, "AS")) || listEnd(t, first) < 0 {
		return false
	}
	list[0].byKey(s.r.flavor)
	tables, value := scannedVersions(list)
	from, to := t.Tokens[outer+1].Start, listEnd(t, first)
	test := func(value string) string {
		return value + is + t.Between(end+1, last) + "," + value + " FROM (SELECT (SELECT "
	}
	s.edits = append(s.edits,
		edit{at: from, cut: to - from, add: test("wc_e.wc_v") + value + " ", check: test("wc_probe") + "wc_probe "},
		edit{at: t.Tokens[end].Start, cut: t.Tokens[last-1].End - t.Tokens[end].Start, add: " LIMIT 1) wc_v LIMIT 1) wc_e", check: " LIMIT 1) wc_v LIMIT 1) wc_e"})
	s.exists, s.copies = &existed{q, not}, s.copies || slices.ContainsFunc(t.Tokens[outer:], func(k statement.Token) bool {
		return k.End <= to && (k.Kind == statement.TokenNumber || k.Kind == statement.TokenString || k.Kind == statement.TokenParam)
	})
	p := s.plan
	p.Hidden, p.Coverage, p.Decode = 1, history.CoverageExact, decodeScan(tables, 2)
	return true
}

// shownByName reports whether a field of a select list is more than a literal or *, so that the server may find an error in it.
func shownByName(f *ast.SelectField) bool {
	if f.WildCard != nil {
		return f.WildCard.Table.O != ""
	}
	_, literal := f.Expr.(*mysqlsyntax.Value)
	return !literal
}

// agrees reports whether a statement, with its probes, asks for the row of the client's EXISTS.
func (e *existed) agrees(n *ast.SelectStmt) bool {
	if n.Fields == nil || len(n.Fields.Fields) != 2 || !isProbe(n.Fields.Fields[1].Expr) || n.Fields.Fields[1].AsName.O != "" {
		return false
	}
	test, ok := n.Fields.Fields[0].Expr.(*ast.IsNullExpr)
	if !ok || !isProbe(test.Expr) || test.Not == e.not {
		return false
	}
	_, derived := derivedIn(n)
	if derived == nil || derived.From != nil || len(derived.Fields.Fields) != 1 {
		return false
	}
	q := selectIn(derived.Fields.Fields[0].Expr)
	return q != nil && q.Limit != nil && len(q.Fields.Fields) == 1 && isProbe(q.Fields.Fields[0].Expr) && sameText(q.From, e.query.From) && (q.Where == nil) == (e.query.Where == nil) && (q.Where == nil || sameText(q.Where, e.query.Where))
}

// sameText reports whether two nodes are of the same text but for its layout.
func sameText(a, b ast.Node) bool {
	var texts [2]strings.Builder
	for i, n := range []ast.Node{a, b} {
		if n.Restore(format.NewRestoreCtx(format.DefaultRestoreFlags, &texts[i])) != nil {
			return false
		}
	}
	return texts[0].String() == texts[1].String()
}
