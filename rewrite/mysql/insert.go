package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// insert plans INSERT and REPLACE.
func (s *planner) insert(n *ast.InsertStmt) {
	src, ok := s.target(n.Table)
	if !ok {
		return
	}
	all := walk(n)
	if s.callsStored(all) {
		s.opaque("a stored function")
		return
	}
	if in := withinInsert(s, n); all.sub > in.absent {
		s.partial("what its query reads is not seen")
	} else {
		s.silent = all.sub > 0
	}
	switch {
	case n.IsReplace:
		s.partial(replaced)
	case n.IgnoreErr && len(n.OnDuplicate) == 0:
		s.plan.Met = met(s, n, &src)
		s.partial(ignored)
	}
	if n.IsReplace && s.parent(&src) != nil || s.cascades(&src, false, n.OnDuplicate) {
		s.partial("foreign keys may change other tables")
	}
	if !s.insertStamp(n, &src) {
		return
	}
	if len(n.OnDuplicate) > 0 && n.Select != nil {
		s.opaque("INSERT ... SELECT ... ON DUPLICATE KEY UPDATE")
		return
	}
	if len(n.OnDuplicate) > 0 && len(n.Lists) > 1 && s.r.flavor == TiDB { // nothing tells how many of the rows its last attempt changed
		s.partial("rows that ON DUPLICATE KEY UPDATE changes are not seen")
	} else if len(n.OnDuplicate) > 0 {
		images := s.plan.Log // new rows are in the log, too
		if !s.onDuplicate(n, &src) {
			return
		}
		if !images && !n.IgnoreErr {
			s.plan.Rows = len(n.Lists)
		}
	}
	s.plan.Stamp = true
	s.plan.Coverage = history.CoverageExact
	if len(n.Lists) > 0 && len(s.why) == 1 && (s.why[0] == replaced || s.why[0] == ignored) {
		s.plan.WithRows, s.plan.Rows = history.CoverageExact, len(n.Lists) // if it changed so many rows, all of them are new
	}
}

// Why INSERT and REPLACE are not seen in full.
const (
	replaced = "rows that REPLACE deletes are not seen"
	ignored  = "INSERT IGNORE does not tell which rows it met"
)

// insertStamp adds the column wc_writers and its value for each row.
func (s *planner) insertStamp(n *ast.InsertStmt, src *source) bool {
	t := s.text
	if t.Is(1, "DELAYED") {
		s.opaque("INSERT DELAYED")
		return false
	}
	i, ok := s.behindTable()
	if !ok {
		s.opaque("the table is not found")
		return false
	}
	added := addition{columns: columnWriters, values: insertedMark, probes: "wc_probe"}
	log := s.newRow(n, src)
	s.plan.Unseen = log == "" && (s.r.wanted.Everything() || s.r.wanted.Rows(src.table()))
	if log != "" {
		id := "UUID_SHORT()"
		if s.r.flavor == TiDB {
			id = "UUID()"
		}
		if n.Select != nil {
			id = "(" + newRowID + ":=" + id + ")"
		}
		added = addition{columns: columnRowID + "," + columnWriters, values: id + "," + logging(log, insertedMark), probes: "wc_probe,wc_probe"}
		s.plan.Log, s.plan.Counted, s.plan.Auto = true, n.IgnoreErr, s.auto(n, src)
	}
	if n.Setlist {
		return s.insertSet(i, added)
	}
	if i = s.insertColumns(n, src, i, added); i < 0 {
		return false
	}
	switch {
	case t.Is(i, "VALUES", "VALUE") && n.Select == nil:
		return s.insertRows(i+1, len(n.Lists), added)
	case t.Is(i, "SELECT") && n.Select != nil:
		return s.insertSelect(n.Select, i, added)
	}
	s.opaque("the form of this INSERT")
	return false
}

// addition is what an INSERT gets: columns, and their values for each row.
type addition struct{ columns, values, probes string }

// insertColumns extends or adds the list of columns and gives the token behind it, or -1.
func (s *planner) insertColumns(n *ast.InsertStmt, src *source, i int, added addition) int {
	t := s.text
	if t.Is(i, "(") && !t.Is(i+1, "SELECT", "WITH", "(") {
		end := t.Close(i)
		if end < 0 || len(n.Columns) == 0 || n.Select == nil && len(n.Lists[0]) == 0 {
			s.opaque("an INSERT without columns")
			return -1
		}
		s.edits = append(s.edits, edit{at: t.Tokens[end-1].End, add: "," + added.columns, check: "," + added.columns})
		return end + 1
	}
	if n.Select == nil && (len(n.Lists) == 0 || len(n.Lists[0]) == 0) {
		s.opaque("an INSERT without columns")
		return -1
	}
	// With a list of columns, an error in what a generated one computes refuses the row, and a value for one warns less often (1906).
	if s.r.flavor == MariaDB && slices.ContainsFunc(src.rel.Columns, func(c rewrite.Attribute) bool { return c.Generated && !c.Hidden }) {
		s.opaque("an INSERT without a list of columns into a table with generated ones")
		return -1
	}
	if s.r.flavor == MariaDB && leavesTraces(n) { // with a list of columns those behind the first error are evaluated, too
		s.opaque("an INSERT without a list of columns that assigns variables, or whose functions do")
		return -1
	}
	if s.r.flavor == MariaDB && n.Select != nil && (!quietQuery(s, n.Select, nil) || mayFailField(s, n.Select)) { // the list that shows several errors shows those of its rows, too
		s.opaque("an INSERT without a list of columns whose query may find errors")
		return -1
	}
	if s.r.flavor == MariaDB && slices.ContainsFunc(n.Lists, func(row []ast.ExprNode) bool { return slices.ContainsFunc(row, quietly{s: s}.mayFail) }) { // with its own errors, and those of the column
		s.opaque("an INSERT without a list of columns that computes values")
		return -1
	}
	names := src.clientColumns()
	s.plan.Columns = src.rel.ClientColumns()
	if n.Select == nil && len(n.Lists[0]) != len(names) {
		s.opaque("an INSERT with another number of columns") // an error, or the catalog is old
		return -1
	}
	list := " (" + strings.Join(append(names, added.columns), ",") + ") "
	s.edits = append(s.edits, edit{at: t.Tokens[i-1].End, add: list, check: list})
	s.plan.Listed = s.r.flavor == MariaDB
	return i
}

// mayFail reports whether the value of a row may find an error before a column takes it.
func (q quietly) mayFail(e ast.ExprNode) bool {
	switch e := unwrapped(e).(type) {
	case *mysqlsyntax.Value, *mysqlsyntax.ParamMarker, *ast.DefaultExpr, *ast.VariableExpr, *ast.ColumnNameExpr:
		return false
	case *ast.SubqueryExpr: // of one row, as an aggregate of a column has
		sub := selectIn(e)
		if sub == nil || len(sub.Fields.Fields) != 1 || sub.GroupBy != nil || !quietQuery(q.s, sub, nil) {
			return true
		}
		aggregate, ok := sub.Fields.Fields[0].Expr.(*ast.AggregateFuncExpr)
		return !ok || !slices.Contains([]string{"count", "max", "min"}, strings.ToLower(aggregate.F)) || slices.ContainsFunc(aggregate.Args, q.mayFail)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd, opcode.LogicOr:
			return q.mayFail(e.L) || q.mayFail(e.R)
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
			return !q.alike(e.L, e.R)
		}
		return !q.sum(e)
	case *ast.FuncCallExpr:
		return q.kind(e) == 0 && !q.sum(e) && (e.Schema.O != "" || !slices.Contains(quietFunctions, e.FnName.L) || slices.ContainsFunc(e.Args, q.mayFail))
	default:
		return q.kind(e) == 0
	}
}

// mayFailField reports whether a value that a query brings may find an error before a column takes it.
func mayFailField(s *planner, n ast.ResultSetNode) bool {
	q, ok := n.(*ast.SelectStmt)
	if !ok {
		return true
	}
	list, ok := s.sources(refsOf(q), nil)
	own := quietly{s: s, list: list}
	return !ok || slices.ContainsFunc(q.Fields.Fields, func(f *ast.SelectField) bool { return f.WildCard == nil && own.mayFail(f.Expr) })
}

// sum reports whether an expression adds, subtracts or multiplies numbers.
func (q quietly) sum(e ast.ExprNode) bool {
	switch e := unwrapped(e).(type) {
	case *ast.BinaryOperationExpr:
		return (e.Op == opcode.Plus || e.Op == opcode.Minus || e.Op == opcode.Mul) && q.sum(e.L) && q.sum(e.R)
	case *ast.FuncCallExpr:
		return e.FnName.L == "unix_timestamp" && len(e.Args) == 0
	default:
		return q.kind(e) == kindNumber
	}
}

// quietFunctions take any text, and find no error in it.
var quietFunctions = strings.Fields("coalesce concat concat_ws current_timestamp hex ifnull json_array json_object last_insert_id lower md5 now sha1 upper uuid uuid_short")

// leavesTraces reports whether an expression within n, once it is evaluated, changes what other statements find, whatever becomes of its own one.
func leavesTraces(n ast.Node) (found bool) {
	visit(n, func(n ast.Node) {
		switch n := n.(type) {
		case *ast.VariableExpr:
			found = found || n.Value != nil
		case *ast.FuncCallExpr:
			switch n.FnName.L {
			case "last_insert_id":
				found = found || len(n.Args) > 0
			case "nextval", "setval", "get_lock", "release_lock", "release_all_locks":
				found = true
			}
		}
	})
	return found
}

// quietQuery reports whether a query certainly finds no error before it has a row. It may have subqueries that ask whether there are rows, or how many. outer are
// the tables around it.
func quietQuery(s *planner, n ast.ResultSetNode, outer []source) bool {
	q, ok := n.(*ast.SelectStmt)
	if !ok || q.With != nil || q.Having != nil || walk(q.Fields).queries > 0 {
		return false
	}
	list, ok := s.sources(refsOf(q), nil)
	own := quietly{s: s, list: slices.Concat(list, outer)}
	return ok && !slices.ContainsFunc(list, func(src source) bool { return src.rel == nil || src.rel.Kind == "view" }) && own.asks(q.Where) && (q.From == nil || own.joins(q.From.TableRefs))
}

// asks is condition for one that may ask subqueries whether there are rows, or how many.
func (q quietly) asks(e ast.ExprNode) bool {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return q.asks(e.Expr)
	case *ast.UnaryOperationExpr:
		return (e.Op == opcode.Not || e.Op == opcode.Not2) && q.asks(e.V)
	case *ast.ExistsSubqueryExpr:
		sub := selectIn(e.Sel)
		return sub != nil && sub.GroupBy == nil && sub.OrderBy == nil && !q.s.aggregates(sub) && quietQuery(q.s, sub, q.list)
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd || e.Op == opcode.LogicOr {
			return q.asks(e.L) && q.asks(e.R)
		}
		if sub := selectIn(e.L); sub != nil && len(sub.Fields.Fields) == 1 && sub.GroupBy == nil {
			count, ok := sub.Fields.Fields[0].Expr.(*ast.AggregateFuncExpr)
			if !ok || !strings.EqualFold(count.F, "count") || sub.OrderBy != nil {
				return false
			}
			_, value := count.Args[0].(ast.ValueExpr) // COUNT(*)
			_, column := count.Args[0].(*ast.ColumnNameExpr)
			return (value || column) && q.kind(e.R) == kindNumber && quietQuery(q.s, sub, q.list)
		}
	}
	return q.condition(e)
}

// insertRows adds the stamp to each row of VALUES.
func (s *planner) insertRows(i, rows int, added addition) bool {
	t := s.text
	for n := 0; n < rows; n++ {
		end := -1
		if i < len(t.Tokens) && t.Is(i, "(") {
			end = t.Close(i)
		}
		if end < i+2 {
			s.opaque("a row of VALUES is not found")
			return false
		}
		s.edits = append(s.edits, edit{at: t.Tokens[end-1].End, add: "," + added.values, check: "," + added.probes + " "})
		if i = end + 1; n+1 < rows {
			if !t.Is(i, ",") {
				s.opaque("a row of VALUES is not found")
				return false
			}
			i++
		}
	}
	return true
}

func (s *planner) insertSet(i int, added addition) bool {
	t := s.text
	if !t.Is(i, "SET") || i+1 >= len(t.Tokens) {
		s.opaque("SET is not found")
		return false
	}
	end := t.Find(i, t.Tokens[i].Depth, "ON", "RETURNING")
	if end < 0 {
		end = len(t.Tokens)
	}
	add, check := "", ""
	columns, values := strings.Split(added.columns, ","), strings.SplitN(added.values, ",", strings.Count(added.columns, ",")+1)
	for k, c := range columns {
		add, check = add+","+c+"="+values[k], check+","+c+"=1"
	}
	s.edits = append(s.edits, edit{at: t.Tokens[end-1].End, add: add, check: check + " "})
	return true
}

// insertSelect adds the stamp to the select list.
func (s *planner) insertSelect(n ast.ResultSetNode, i int, added addition) bool {
	sel, ok := n.(*ast.SelectStmt)
	if !ok || sel.Kind != ast.SelectStmtKindSelect || sel.IsInBraces || sel.With != nil {
		s.opaque("INSERT from UNION and the like")
		return false
	}
	if sel.From == nil && s.r.flavor == TiDB {
		s.opaque("INSERT from a SELECT without tables")
		return false
	}
	at, list := listEnd(s.text, i), []source(nil)
	if sel.From == nil {
		end := s.text.Find(i+1, s.text.Tokens[i].Depth, "FROM", "WHERE", "HAVING", "ORDER", "LIMIT", "ON", "RETURNING", "PROCEDURE", "INTO", "FOR", "LOCK", "WINDOW", "GROUP")
		if end < 0 {
			end = len(s.text.Tokens)
		}
		at = s.text.Tokens[end-1].End
	} else if list, ok = s.sources(sel.From.TableRefs, nil); !ok {
		at = -1
	}
	if at < 0 || !placesFit(sel, list) {
		s.opaque("the end of the select list is not certain")
		return false
	}
	s.edits = append(s.edits, edit{at: at, add: "," + added.values, check: "," + added.probes + " "})
	return true
}

// onDuplicate marks the rows that ON DUPLICATE KEY UPDATE changes.
func (s *planner) onDuplicate(n *ast.InsertStmt, src *source) bool {
	t := s.text
	depth := t.Tokens[0].Depth
	for i := 1; i < len(t.Tokens); i++ {
		if t.Tokens[i].Depth != depth || !t.Seq(i, "ON", "DUPLICATE", "KEY", "UPDATE") || i+4 >= len(t.Tokens) {
			continue
		}
		end := t.Find(i, depth, "RETURNING")
		if end < 0 {
			end = len(t.Tokens)
		}
		if n.IgnoreErr {
			s.partial("INSERT IGNORE may leave rows as they were")
		}
		offered := false // the row that was not inserted
		for k := i + 4; k < end; k++ {
			offered = offered || t.Is(k, "VALUES", "VALUE", ".")
		}
		s.plan.CurrentRead = !offered && s.current(n.OnDuplicate, src)
		return s.stampAssignments(n.OnDuplicate, src, t.Tokens[i+4].Start, t.Tokens[end-1].End, !n.IgnoreErr)
	}
	s.opaque("ON DUPLICATE KEY UPDATE is not found")
	return false
}
