package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/statement/condition"
)

// outer is a query around another one, of whose rows it takes those for which its WHERE holds.
type outer struct {
	query, in *ast.SelectStmt
	alias     string // how it knows the one in
}

// flat gives a query of another one in its FROM clause as a query of the table of that one, for what it asks:
//
//	SELECT * FROM (SELECT id, hour FROM booking WHERE room = 1) b WHERE b.hour = 9
//
// asks for the rows of booking where room = 1 and hour = 9. Columns that have got another name are left alone. A query of another form stays as it is.
func flat(s *planner, n *ast.SelectStmt) (q *ast.SelectStmt, around *outer) {
	t, in := derivedIn(n)
	if in == nil || n.LockInfo != nil || n.Fields == nil || walk(n).queries != 2 || !s.joinsOnly(in) || in.From.TableRefs.Right != nil || slices.ContainsFunc(in.Fields.Fields, func(f *ast.SelectField) bool {
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		return f.WildCard == nil && (!ok || f.AsName.O != "" && !strings.EqualFold(f.AsName.O, c.Name.Name.O))
	}) {
		return n, nil
	}
	if _, ok := in.From.TableRefs.Left.(*ast.TableSource).Source.(*ast.TableName); !ok {
		return n, nil
	}
	copied := *n
	copied.From, copied.Where = in.From, in.Where
	return &copied, &outer{n, in, t.AsName.O}
}

// derivedIn gives the query that is all of a FROM clause.
func derivedIn(n *ast.SelectStmt) (*ast.TableSource, *ast.SelectStmt) {
	if n.From == nil || n.From.TableRefs.Right != nil || n.With != nil {
		return nil, nil
	}
	t, ok := n.From.TableRefs.Left.(*ast.TableSource)
	if !ok || t.Lateral {
		return nil, nil
	}
	in, _ := t.Source.(*ast.SelectStmt)
	return t, in
}

// inlined puts the only query of a WITH clause into the FROM clause, if that names nothing else.
func inlined(s *planner, n *ast.SelectStmt) *ast.SelectStmt {
	if n.With == nil || len(n.With.CTEs) != 1 || n.From == nil || n.From.TableRefs.Right != nil {
		return n
	}
	t, ok := n.From.TableRefs.Left.(*ast.TableSource)
	if !ok {
		return n
	}
	name, ok := t.Source.(*ast.TableName)
	if !ok || name.Schema.O != "" || name.Name.L != n.With.CTEs[0].Name.L || s.ctes[name.Name.L] == nil {
		return n
	}
	named, from, copied := *t, *n.From, *n
	if named.Source = s.ctes[name.Name.L]; named.AsName.O == "" {
		named.AsName = name.Name
	}
	from.TableRefs = &ast.Join{Left: &named}
	copied.From, copied.With = &from, nil
	return &copied
}

// holds gives the condition of WHERE of a query that stands within another one, or around one.
func (a *asker) holds(q *ast.SelectStmt) condition.Condition {
	if q.Where == nil {
		return condition.Always
	}
	a.places = a.planner.places(q.Where, a.whereIn(q))
	return a.condition(q.Where)
}

// whereIn finds the WHERE of a query; -1 if that is not certain.
func (s *scene) whereIn(q *ast.SelectStmt) int {
	at := s.selectOf(q)
	if at >= 0 {
		at = s.text.Find(at+1, s.text.Tokens[at].Depth, "WHERE")
	}
	return at
}

// beside notes what the subqueries of a query ask that are certainly evaluated for each of its rows. It gives the number of queries with tables in them: 0 where a
// table is named twice, since then the answer does not tell which of them read a row.
func beside(s *planner, n *ast.SelectStmt) int {
	if !namesOnce(s.scene, n) || n.GroupBy != nil || n.With != nil || n.LockInfo != nil || n.Having != nil || n.Kind != ast.SelectStmtKindSelect || s.aggregates(n) {
		return 0
	}
	known := 0
	for _, a := range s.plan.Asks { // see lacking
		if a.Beside {
			known++
		}
	}
	var values []ast.ExprNode
	for _, f := range n.Fields.Fields {
		if f.Expr != nil {
			values = append(values, f.Expr)
		}
	}
	from := len(s.plan.Asks)
	asked := within(s, nil, values...).asked // a comparison in WHERE may be the same behind a change
	for i := range s.plan.Asks[from:] {
		a := &s.plan.Asks[from+i]
		a.Within, a.Beside, a.Current = false, n.From != nil || n.Where != nil || n.Limit != nil, s.session.LockingReads
	}
	return known + asked
}

// existence gives the query of SELECT EXISTS (...), or of SELECT NOT EXISTS (...).
func existence(n *ast.SelectStmt) (q *ast.SelectStmt, not bool) {
	if n.From != nil || n.Fields == nil || len(n.Fields.Fields) != 1 || n.Where != nil || n.With != nil || n.Limit != nil || n.OrderBy != nil || n.Having != nil || n.LockInfo != nil || n.SelectIntoOpt != nil {
		return nil, false
	}
	return existsIn(n.Fields.Fields[0].Expr)
}

// existsIn gives the query of EXISTS (...), or of NOT EXISTS (...).
func existsIn(n ast.ExprNode) (q *ast.SelectStmt, not bool) {
	switch e := unwrapped(n).(type) {
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			q, not = existsIn(e.V)
			return q, !not
		}
	case *ast.ExistsSubqueryExpr:
		return selectIn(e.Sel), e.Not
	}
	return nil, false
}
