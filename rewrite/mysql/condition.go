package mysql

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/statement/mysqlsyntax"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/history"
)

// What DISTINCT, UNION and their relatives read cannot be told by a column of their answer, so it goes to the log: by a
// last part of the WHERE condition, which is always true. MariaDB evaluates the parts of AND in the order in which they
// stand, and this one, which assigns a variable and needs columns that no index holds, is neither evaluated beforehand
// nor handed to an index; so it is evaluated for each row that fulfils the rest, once.
//
// That was compared with the rows that fulfil the condition, and the plans with those of the client's statement
// (TestConditionLogs), for ref, range, index and full scans, index conditions, index merges, constant tables, temporary
// tables, and sorts; the plans differ by "Using where" alone. It does not hold for conditions with RAND() or user
// variables, which the server moves behind the others, for subqueries, for joins (the rows of a join buffer are
// evaluated in another order), nor where the server answers from an index alone (loose scans, MIN and MAX).

// listLimit is how many values IN may list: MariaDB makes a join of 1000 and more (in_predicate_conversion_threshold).
const listLimit = 100

// logged adds the part of the condition that logs what n reads from its one table. It reports whether it did; if not it
// has said why.
func (s *planner) logged(n *ast.SelectStmt, all finding, list []source, op history.Op, first int) bool {
	switch {
	case s.r.flavor != MariaDB:
		s.partial("DISTINCT and the like on this server")
	case s.several:
		s.partial("several statements in one request")
	case len(list) != 1 || all.sub != 1:
		s.partial("DISTINCT and the like of several tables")
	case n.Limit != nil:
		s.partial("the first rows of DISTINCT and the like")
	case n.Having != nil:
		s.partial("HAVING with DISTINCT and the like")
	case all.window, len(n.WindowSpecs) > 0: // over the groups of a constant table it is not evaluated (10.11.19)
		s.partial("window functions with DISTINCT, groups and the like")
	case extreme(all.extremes, list):
		s.partial("MIN or MAX of an index")
	case !plainCondition(n.Where), alone(n.Where):
		s.partial("a condition whose parts may be evaluated in another order")
	case convertsOnce(s, n.Where, list):
		s.partial("a TIMESTAMP that equals something else than a time")
	case equatesComputed(s, n.Where, list):
		s.partial("a column that equals a value which is computed")
	case s.covered(n, all, list, &list[0]):
		s.partial("DISTINCT and the like that an index may answer")
	default:
		return s.logCondition(&list[0], op, first)
	}
	return false
}

// logCondition puts the text in. first is the token SELECT.
func (s *planner) logCondition(src *source, op history.Op, first int) bool {
	kind := "r"
	if op == history.OpLock {
		kind = "l"
	}
	edits := s.narrowed(first, captured(kind, src), "wc_probe")
	if edits == nil {
		s.partial("WHERE is not understood")
	}
	s.edits = append(s.edits, edits...)
	return edits != nil
}

// captured is a condition that appends the row to the log and is true. The first branch never runs; it makes the server
// see, before it folds constants, that the log changes within the statement (its LENGTH would be taken once, and the
// limit would not hold).
func captured(op string, src *source, images ...string) string {
	return "IF(" + src.key + " IS NULL,(@wc_log:=" + emptyLog + ") IS NULL,IF(LENGTH(@wc_log)<" + fmt.Sprint(logLimit) + "," +
		logEntry(op, src, images...) + " IS NOT NULL,1))"
}

// setOperation plans UNION and the like. Each SELECT of it logs what it reads.
func (s *planner) setOperation(n *ast.SetOprStmt) {
	const what = "UNION, EXCEPT or INTERSECT"
	all := walk(n)
	if all.sub > 0 || s.callsStored(all) {
		s.plan.Predicate = true
	} else {
		return
	}
	arms := armsOf(n.SelectList)
	var firsts []int
	for i := range s.text.Tokens {
		if s.text.Is(i, "SELECT") {
			firsts = append(firsts, i)
		}
	}
	if n.With != nil || n.Limit != nil || s.callsStored(all) || len(arms) == 0 || len(arms) != len(firsts) || all.queries != len(arms)+1 {
		s.opaque(what)
		return
	}
	op := history.OpRead
	if s.session.LockingReads {
		op = history.OpLock
	}
	for _, arm := range arms {
		if arm.Kind != ast.SelectStmtKindSelect || arm.LockInfo != nil || arm.With != nil || arm.Limit != nil {
			s.opaque(what)
			return
		}
	}
	if scannedArms(s, n, arms) {
		s.plan.Unread = askedByArms(s, n.SelectList.Selects)
		return
	}
	for i, arm := range arms {
		if arm.From == nil {
			continue
		}
		list, ok := s.sources(arm.From.TableRefs, nil)
		if !ok || len(list) > maxTables {
			s.opaque(what)
			return
		}
		watched := false
		for j := range list {
			if list[j].why != "" {
				s.partial(list[j].why)
			}
			watched = watched || list[j].watched() && list[j].why == ""
		}
		if watched && s.logged(arm, walk(arm), list, op, firsts[i]) {
			s.arms++
			s.inLog()
		}
	}
	s.plan.Unread = askedByArms(s, n.SelectList.Selects)
	if s.plan.Coverage == history.CoverageNone && len(s.why) > 0 {
		s.opaque(strings.Join(s.why, "; "))
	}
}

// armsOf lists the SELECTs of a set operation in the order of the text; none if there is something else among them.
func armsOf(n *ast.SetOprSelectList) []*ast.SelectStmt {
	if n == nil || n.With != nil || n.Limit != nil {
		return nil
	}
	var arms []*ast.SelectStmt
	for _, s := range n.Selects {
		switch s := s.(type) {
		case *ast.SelectStmt:
			arms = append(arms, s)
		case *ast.SetOprSelectList:
			inner := armsOf(s)
			if inner == nil {
				return nil
			}
			arms = append(arms, inner...)
		default:
			return nil
		}
	}
	return arms
}

// probedConditions counts the SELECTs whose condition ends with the probe.
func probedConditions(arms []*ast.SelectStmt) (n int) {
	for _, arm := range arms {
		if endsWithProbe(arm.Where) {
			n++
		}
	}
	return n
}

func endsWithProbe(e ast.ExprNode) bool {
	if b, ok := e.(*ast.BinaryOperationExpr); ok && b.Op.String() == "and" {
		e = b.R
	}
	return isProbe(e)
}

// alone reports whether a condition is a constant that the server computes earlier where it is a part of AND, with its warnings
// (MariaDB 10.11: 1/0 already when it prepares). A literal has none, and the comparison of two has some if one alone is a text.
func alone(where ast.ExprNode) bool {
	if where == nil || len(walk(where).columns) > 0 {
		return false
	}
	if b, ok := where.(*ast.BinaryOperationExpr); ok && b.Op.String() == "eq" {
		return alone(b.L) || alone(b.R) || isText(b.L) != isText(b.R)
	}
	_, literal := where.(*mysqlsyntax.Value)
	return !literal
}

func isText(e ast.ExprNode) bool {
	v, ok := e.(*mysqlsyntax.Value)
	if ok {
		_, ok = v.V.(string)
	}
	return ok
}

// convertsOnce reports whether a condition asks only whether a TIMESTAMP equals values that may be no times. As a part of AND, MariaDB converts the first of them
// once more than alone, with its warning; of the other types it does not (10.11.19).
func convertsOnce(s *planner, where ast.ExprNode, list []source) bool {
	var values []ast.ExprNode
	switch e := unwrapped(where).(type) {
	case *ast.BinaryOperationExpr:
		if e.Op != opcode.EQ {
			return false
		}
		values = []ast.ExprNode{e.L, e.R}
	case *ast.PatternInExpr:
		values = append([]ast.ExprNode{e.Expr}, e.List...)
	}
	timestamp := slices.ContainsFunc(values, func(e ast.ExprNode) bool {
		c, ok := unwrapped(e).(*ast.ColumnNameExpr)
		if !ok {
			return false
		}
		a := list[0].column(c.Name.Name.O)
		return a != nil && typeName(a.Type) == "timestamp"
	})
	return timestamp && !quietly{s: s, list: list}.alike(values...)
}

// equatesComputed reports whether a condition says that a column equals a constant that is computed, perhaps with a warning. MariaDB writes a constant of the column's type
// in place of the column in the other parts of AND, and so computes it again in ours for each row (10.11.19).
func equatesComputed(s *planner, where ast.ExprNode, list []source) (found bool) {
	q := quietly{s: s, list: list}
	computed := func(e ast.ExprNode) bool { return len(walk(e).columns) == 0 && q.mayFail(e) }
	column := func(e ast.ExprNode) bool { _, ok := unwrapped(e).(*ast.ColumnNameExpr); return ok }
	if where != nil {
		visit(where, func(n ast.Node) {
			if e, ok := n.(*ast.BinaryOperationExpr); ok && e.Op == opcode.EQ {
				found = found || column(e.L) && computed(e.R) || column(e.R) && computed(e.L)
			}
		})
	}
	return found
}

// decided reports whether a condition is the same for all rows of src, although subqueries of these tables stand in it: MariaDB then evaluates it
// before it looks for rows, and no part of it with AND behind (10.11.19).
func (s *scene) decided(where ast.ExprNode, src *source, tables []*ast.TableName) bool {
	own := outside(where)
	return !slices.ContainsFunc(walk(where).columns, func(c *ast.ColumnName) bool {
		return src.mayOwn(c) && (c.Table.O != "" || slices.Contains(own, c) || !slices.ContainsFunc(tables, func(t *ast.TableName) bool {
			rel, _ := s.resolve(t.Schema.O, t.Name.O)
			return rel != nil && (&source{rel: rel}).column(c.Name.O) != nil
		}))
	})
}

// plainCondition reports whether the condition consists of parts that are known to be evaluated in their order.
func plainCondition(e ast.ExprNode) bool {
	other := false
	mysqlsyntax.Visit(e, func(n ast.Node) bool {
		other = other || !plainNode(n)
		return other
	})
	return !other
}

func plainNode(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.ColumnNameExpr, *ast.ColumnName, *mysqlsyntax.Value, *mysqlsyntax.ParamMarker, *ast.BinaryOperationExpr, *ast.UnaryOperationExpr, *ast.ParenthesesExpr,
		*ast.BetweenExpr, *ast.IsNullExpr, *ast.IsTruthExpr, *ast.RowExpr, *ast.CaseExpr, *ast.WhenClause, *ast.FuncCastExpr,
		*ast.TimeUnitExpr, *ast.PatternRegexpExpr, *ast.PatternLikeOrIlikeExpr:
		return true
	case *ast.PatternInExpr:
		return n.Sel == nil && len(n.List) <= listLimit
	case *ast.FuncCallExpr:
		return n.Schema.O == "" && slices.Contains(plainFunctions, n.FnName.L)
	}
	return false
}

// plainFunctions depend on their arguments, or are the same within a statement.
var plainFunctions = []string{
	"abs", "ceil", "ceiling", "coalesce", "concat", "concat_ws", "curdate", "current_date", "current_timestamp", "date", "date_add", "date_sub",
	"datediff", "day", "dayofmonth", "floor", "from_unixtime", "greatest", "hour", "if", "ifnull", "isnull", "lcase", "least", "left", "length",
	"lower", "ltrim", "minute", "mod", "month", "now", "nullif", "right", "round", "rtrim", "second", "strcmp", "substr", "substring", "trim",
	"truncate", "ucase", "unix_timestamp", "upper", "weekday", "year", "yearweek",
}
