package mysql

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
)

// asker makes the condition of one predicate read.
type asker struct {
	*planner
	src    *source
	ask    rewrite.Ask
	places map[ast.Node]int // the tokens of the condition's literals and parameters
	groups *hiddenGroups    // the condition is HAVING, of these; nil: of the rows
}

// askedBySelect notes what a SELECT asks of a table, or why that cannot be told.
func (s *planner) askedBySelect(n *ast.SelectStmt) {
	s.plan.Unread, s.plan.Any, s.plan.Settled = s.asks(n), s.exists != nil || anyRow(n) && rowIfExists(n, s.session.Cut) == nil, s.sole
	tellClocks(s)
	s.plan.Predicate = s.plan.Predicate || s.plan.Unread != "" && walk(n).queries > 1 || slices.ContainsFunc(s.plan.Asks, func(a rewrite.Ask) bool { return !a.Pinned })
}

// asks gives the reason if a SELECT is not a predicate read of one table that can be told.
func (s *planner) asks(n *ast.SelectStmt) string {
	if j := joiningOf(s, n); j != nil {
		return j.asks()
	}
	askedByLacking(s, n)
	var ask rewrite.Ask
	client := n
	if inner, not := existence(n); inner != nil {
		n, ask.Exists, ask.Absent = inner, true, not
	} else if inner := rowIfExists(n, s.session.Cut); inner != nil {
		limit := n.Limit
		n, ask.Exists, ask.ByRow = inner, true, true
		if limit != nil {
			if n.Limit != nil {
				return "LIMIT within EXISTS"
			}
			copied := *n
			copied.Limit = limit // of at least 1, or there is never a row
			n = &copied
		}
	}
	if inner := paged(n); inner != nil && !ask.Exists {
		copied := *inner
		copied.Limit = n.Limit
		n, ask.Merged = &copied, true
	}
	n = inlined(s, n)
	for inner := counted(n); inner != nil; inner = counted(n) {
		ask.Counted = ask.Counted || soleGroup(s, n)
		n, ask.Around = inlined(s, inner), true
	}
	n, around := flat(s, n)
	all, first := walk(n), s.whereOf(ask.ByRow)
	if around != nil {
		first = s.whereIn(around.in)
	}
	if !ask.Exists && !ask.Around && around == nil && (all.sub > 1 || n.From == nil && all.sub > 0) {
		all.sub -= beside(s, n) + asksScalar(s, n)
		all.queries, first = all.sub, s.whereIn(n)
	}
	switch {
	case n.From == nil && all.sub > 0:
		return rewrite.SeveralTables
	case n.From == nil:
		return ""
	}
	list, ok := s.sources(n.From.TableRefs, nil)
	lock := ast.SelectLockNone
	if n.LockInfo != nil {
		lock = n.LockInfo.LockType
	}
	joined := ok && len(list) > 1 && lefts(n, list)
	var having *rewrite.Attribute
	if n == client && ok && list[0].rel != nil {
		having = groupsShown(s, n, list)
	}
	ask.Joined = ask.Joined || joined
	switch {
	case !ok, len(list) != 1 && !joined, all.sub > 1, n.With != nil, all.queries > 1:
		return rewrite.SeveralTables
	case !list[0].watched():
		return ""
	case list[0].rel == nil:
		return list[0].why
	case n.Having != nil && having == nil && s.hides == nil && (n.GroupBy != nil || !s.aggregates(&ast.SelectStmt{Fields: n.Fields, SelectStmtOpts: n.SelectStmtOpts})):
		return condition.HiddenGroups
	case s.session.Cut && n.Limit == nil:
		return "sql_select_limit hides rows, or max_sort_length changes their order"
	case s.r.flavor == TiDB && lock != ast.SelectLockNone && lock != ast.SelectLockForUpdate && lock != ast.SelectLockForUpdateNoWait && lock != ast.SelectLockForUpdateWaitN:
		return "FOR SHARE may lock nothing"
	case lock == ast.SelectLockForUpdateSkipLocked, lock == ast.SelectLockForShareSkipLocked:
		// It may leave out any row (MySQL manual, 17.7.2.4: an inconsistent view, for tables that are queues), so nothing follows of those that it leaves out.
		s.plan.Asks = append(s.plan.Asks, rewrite.Ask{Table: list[0].table(), Where: condition.Never, Current: true})
		return ""
	}
	ask.Current, ask.Single = lock != ast.SelectLockNone || s.session.LockingReads, soleGroup(s, n)
	ask.Merged = ask.Merged || n.GroupBy != nil || n.Distinct
	ask.Folds, ask.Extreme = !ask.Exists && folds(s, n, list), extremeShown(s, n, client, list)
	asksGroups(s, n, having, &ask)
	switch {
	case n.Limit == nil || ask.Merged || ask.Single:
	case n.OrderBy == nil:
		ask.Beyond = condition.Never
	case n == client:
		var told []string
		ask.Beyond, ask.Alike, told = ordering(s, n, list, 0, ask.Current, nil)
		tellKeys(s, told)
	}
	why := s.asked(n.From.TableRefs, &list[0], n.Where, n.Limit, ask, first, around)
	if why == "" && joined && !ask.Exists {
		return rewrite.SeveralTables // what it asks of the others is not told, see joiningOf
	}
	if why == "" && ask.Exists && !ask.ByRow && !ask.Around && around == nil && len(list) == 1 {
		s.plan.Empty = history.CoverageExact // it read no row, though parameters cannot stand there twice to tell which
	}
	return why
}

// lefts reports whether the first table stands at the left of left joins, so that each row of it for which WHERE holds is in the answer, whatever the
// others have: eager loading of ORMs. It does not if WHERE asks anything of the others, or the table stands among them.
func lefts(n *ast.SelectStmt, list []source) bool {
	var left ast.ResultSetNode = n.From.TableRefs
	for j, ok := left.(*ast.Join); ok; j, ok = left.(*ast.Join) {
		if left = j.Left; j.Right != nil && j.Tp != ast.LeftJoin {
			return false
		}
	}
	if t, ok := left.(*ast.TableSource); !ok || n.LockInfo != nil && len(n.LockInfo.Tables) > 0 {
		return false
	} else if _, ok := t.Source.(*ast.TableName); !ok {
		return false
	}
	fits := list[0].rel != nil && !slices.ContainsFunc(list[1:], func(src source) bool { return src.rel == nil || src.why != "" || src.table() == list[0].table() })
	visit(n.Where, func(n ast.Node) {
		if c, ok := n.(*ast.ColumnName); ok {
			fits = fits && c.Schema.O == "" && strings.EqualFold(c.Table.O, list[0].alias)
		}
	})
	return fits
}

// paged gives the query of SELECT DISTINCT columns FROM (...) AS name LIMIT n, which has no row if that one has none: TypeORM makes pages so.
func paged(n *ast.SelectStmt) *ast.SelectStmt {
	if !n.Distinct || n.Limit == nil || n.Where != nil || n.Having != nil || n.GroupBy != nil || n.LockInfo != nil || n.SelectIntoOpt != nil ||
		n.Fields == nil || slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool { _, ok := f.Expr.(*ast.ColumnNameExpr); return !ok }) {
		return nil
	}
	_, inner := derivedIn(n)
	if inner == nil || inner.Limit != nil {
		return nil
	}
	return inner
}

// soleGroup reports whether the answer has one row, which shows aggregates.
func soleGroup(s *planner, n *ast.SelectStmt) bool { return n.GroupBy == nil && s.aggregates(n) }

// counted gives the query of SELECT ... FROM (...) AS name, of which each row counts: Prisma's count() is one.
func counted(n *ast.SelectStmt) *ast.SelectStmt {
	if n.Where != nil || n.Having != nil || n.Limit != nil || n.LockInfo != nil || n.SelectIntoOpt != nil {
		return nil
	}
	_, inner := derivedIn(n)
	return inner
}

// rowIfExists gives the query of SELECT 1 WHERE EXISTS (...) LIMIT 1, which has one row or none. TypeORM selects it from a row that a subquery makes.
// cut says that the session cuts answers that have no LIMIT.
func rowIfExists(n *ast.SelectStmt, cut bool) *ast.SelectStmt {
	if !constantRow(n) || n.Limit == nil && cut {
		return nil
	}
	if n.From != nil {
		t, ok := n.From.TableRefs.Left.(*ast.TableSource)
		if !ok || n.From.TableRefs.Right != nil {
			return nil
		}
		row, ok := t.Source.(*ast.SelectStmt)
		if !ok || row.From != nil || row.Where != nil || row.Limit != nil || !constantRow(row) {
			return nil
		}
	}
	q, not := existsIn(n.Where)
	if not {
		return nil
	}
	return q
}

// constantRow reports whether a query has constants in its select list, and no clauses but FROM, WHERE and LIMIT.
func constantRow(n *ast.SelectStmt) bool {
	return n.Fields != nil && n.With == nil && n.GroupBy == nil && n.Having == nil && n.OrderBy == nil && n.LockInfo == nil && n.SelectIntoOpt == nil && !n.Distinct &&
		!slices.ContainsFunc(n.Fields.Fields, func(f *ast.SelectField) bool {
			_, ok := unwrapped(f.Expr).(*mysqlsyntax.Value)
			return !ok
		})
}

// askedByWrite notes what the condition of an UPDATE or DELETE asks of its table.
func (s *planner) askedByWrite(refs *ast.TableRefsClause, src *source, where ast.ExprNode, all finding, limit *ast.Limit, values ...ast.ExprNode) {
	switch {
	case all.sub > within(s, where, values...).asked:
		s.plan.Unread = rewrite.SeveralTables
	case limit != nil:
		s.plan.Unread = "LIMIT hides rows"
	default:
		s.plan.Unread = s.asked(refs.TableRefs, src, where, nil, rewrite.Ask{Current: true}, s.whereOf(false), nil)
		askClocks(s)
	}
}

// asked notes a predicate read of one table. It gives the reason if it cannot. first is the token WHERE of the condition, or -1. around is a query around that
// of the table, see flat, or nil.
func (s *planner) asked(from *ast.Join, src *source, where ast.ExprNode, limit *ast.Limit, ask rewrite.Ask, first int, around *outer) string {
	if src.why != "" {
		return "it reads " + src.why
	}
	a := &asker{planner: s, src: src, ask: ask, places: s.places(where, first)}
	if limit != nil {
		a.placeOf(limit)
		if a.ask.Limit = a.value(limit.Count, condition.Number); a.ask.Limit == nil {
			return "LIMIT hides rows"
		}
		if a.ask.Skip = a.value(limit.Offset, condition.Number); limit.Offset != nil && a.ask.Skip == nil {
			return rewrite.SkipsRows
		}
	}
	if where == nil {
		a.ask.Where = condition.And(a.ask.Where)
	} else {
		a.ask.Where = condition.And(a.condition(where), a.ask.Where)
	}
	if around != nil {
		seen := *src
		seen.alias, a.src = around.alias, &seen
		a.ask.Where = condition.And(a.ask.Where, a.holds(around.query))
		a.src = src
	}
	return a.note(from, s.point(where, []source{*src}, src, src.rel.Unique) && !nullSafe(where))
}

// note puts a predicate read into the plan. It gives the reason if it cannot. pinned is Ask.Pinned.
func (a *asker) note(from *ast.Join, pinned bool) string {
	switch {
	case a.session.Past:
		return "the session reads what was there earlier"
	case !strings.EqualFold(a.src.rel.Engine, "InnoDB"):
		return "a table of another storage engine"
	case partitions(from):
		return "it reads a partition"
	}
	a.ask.Table, a.ask.Relation = a.src.table(), a.src.rel
	if a.ask.Pinned = pinned; !pinned {
		a.r.wanted.Ask(&a.ask)
	}
	a.plan.Asks = append(a.plan.Asks, a.ask)
	return ""
}

// visit calls f with n and all below it, in the order of the text.
func visit(n ast.Node, f func(ast.Node)) {
	mysqlsyntax.Visit(n, func(n ast.Node) bool { f(n); return false })
}

// whereOf finds the statement's only WHERE, or the one within WHERE EXISTS (...); -1 if it is not certain.
func (s *scene) whereOf(within bool) int {
	first := -1
	for i := range s.text.Tokens {
		if s.text.Is(i, "WHERE") {
			if first >= 0 && !within {
				return -1
			}
			first, within = i, within && first < 0
		}
	}
	return first
}

// places finds the tokens of the literals and parameters of the condition behind token first. It is nil if they are not certain.
func (s *scene) places(where ast.ExprNode, first int) map[ast.Node]int {
	t := s.text
	if where == nil || first < 0 {
		return nil
	}
	var tokens []int
	depth := t.Tokens[first].Depth
	for i := first + 1; i < len(t.Tokens) && t.Tokens[i].Depth >= depth; i++ {
		if t.Tokens[i].Depth == depth && (t.Is(i, "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "FOR", "LOCK", "RETURNING", "PROCEDURE", "INTO", "WINDOW") ||
			t.Is(first, "ON") && t.Is(i, endsOfCondition...) && !(t.Is(i, "LEFT", "RIGHT") && t.Is(i+1, "("))) {
			break
		}
		switch t.Tokens[i].Kind {
		case statement.TokenNumber, statement.TokenString, statement.TokenParam:
			if t.Is(i-1, "ESCAPE") {
				continue // no value of the tree
			}
			tokens = append(tokens, i)
		}
	}
	out := map[ast.Node]int{}
	certain := true
	mysqlsyntax.Visit(where, func(n ast.Node) (over bool) {
		var fits func(i int) bool
		switch v := n.(type) {
		case *ast.AggregateFuncExpr: // COUNT(*) has a value in the tree alone
			return countsAll(v) && !(len(out) < len(tokens) && t.Is(tokens[len(out)]-2, "COUNT"))
		case *mysqlsyntax.ParamMarker:
			fits = func(i int) bool { return t.Tokens[i].Kind == statement.TokenParam }
		case *mysqlsyntax.Value:
			switch v.V.(type) {
			case nil, bool:
				return false
			case string:
				fits = func(i int) bool {
					return t.Tokens[i].Kind == statement.TokenString && !strings.HasPrefix(t.At(i-1), "_")
				} // that names a character set
			default:
				fits = func(i int) bool { return t.At(i) == fmt.Sprint(v.V) }
			}
		default:
			return false
		}
		if certain = certain && len(out) < len(tokens) && fits(tokens[len(out)]); certain {
			out[n] = tokens[len(out)]
		}
		return false
	})
	if !certain || len(out) != len(tokens) {
		return nil
	}
	return out
}

// operators are those of comparisons, and mirrored what they are with the sides exchanged.
var (
	operators = map[opcode.Op]string{opcode.EQ: "=", opcode.NE: "<>", opcode.LT: "<", opcode.LE: "<=", opcode.GT: ">", opcode.GE: ">="}
	mirrored  = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
)

// condition makes a condition that can be evaluated of an expression.
func (a *asker) condition(n ast.ExprNode) condition.Condition {
	switch e := n.(type) {
	case *ast.ParenthesesExpr:
		return a.condition(e.Expr)
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			if null, ok := unwrapped(e.V).(*ast.IsNullExpr); ok {
				return a.null(null.Expr, !null.Not)
			}
			return condition.Not(a.condition(e.V))
		}
	case *ast.IsNullExpr:
		return a.null(e.Expr, e.Not)
	case *ast.ColumnNameExpr: // Django's booleans: WHERE (on_call AND shift = 7)
		if name, at := a.column(e); name != "" && strings.HasSuffix(typeName(at.Type), "int") {
			return isZero("<>", name)
		}
	case *ast.IsTruthExpr:
		if name, at := a.column(e.Expr); name != "" && strings.HasSuffix(typeName(at.Type), "int") {
			is, other := isZero("<>", name), isZero("=", name)
			if e.True == 0 {
				is, other = other, is
			}
			return condition.Test(name, is, other, e.Not)
		}
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.NullEQ:
			left, right := e.L, e.R
			if a.operand(left).kind == "" {
				left, right = right, left
			}
			return condition.Not(a.open("distinct", left, right))
		case opcode.LogicAnd, opcode.LogicOr:
			return condition.Condition{Op: e.Op.String(), Args: []condition.Condition{a.condition(e.L), a.condition(e.R)}}
		default:
			return a.comparison(operators[e.Op], e.L, e.R)
		}
	case *ast.PatternInExpr:
		if e.Sel != nil {
			return condition.Unknown("a subquery")
		}
		if c, ok := a.rows(e.Expr, e.List...); ok {
			return negated(e.Not, c)
		}
		return negated(e.Not, a.open("in", e.Expr, e.List...))
	case *ast.BetweenExpr:
		return negated(e.Not, a.between(e))
	case *ast.PatternLikeOrIlikeExpr:
		if e.IsLike {
			return negated(e.Not, a.like(e))
		}
	}
	return condition.Unknown("a condition of another form")
}

// between makes a condition of BETWEEN: of a column and two values, or of a value and two columns of one type, which all three are compared as (MySQL manual, 14.4.2).
func (a *asker) between(e *ast.BetweenExpr) condition.Condition {
	low, high := a.operand(e.Left), a.operand(e.Right)
	if a.operand(e.Expr).kind == "" && low.name != "" && high.name != "" && low.typ == high.typ && low.reads == high.reads && low.kind.Orders() && low.kind != condition.Folded {
		return condition.And(a.open("<=", e.Left, e.Expr), a.open(">=", e.Right, e.Expr))
	}
	return a.open(">=", e.Expr, e.Left).Between(a.open("<=", e.Expr, e.Right))
}

func negated(is bool, c condition.Condition) condition.Condition {
	if is {
		return condition.Not(c)
	}
	return c
}

func (a *asker) comparison(op string, left, right ast.ExprNode) condition.Condition {
	if op == "" {
		return condition.Unknown("a condition of another form")
	}
	if c, ok := a.rows(left, right); ok && (op == "=" || op == "<>") {
		return negated(op == "<>", c)
	}
	if d := a.difference(left, right); d != nil {
		return condition.OpenTerm(op, condition.Number, d, text("=0"))
	}
	if m, ok := unwrapped(left).(*ast.BinaryOperationExpr); ok && m.Op == opcode.Mod && (op == "=" || op == "<>") {
		if c, ok := a.remainder(m, right); ok {
			return negated(op == "<>", c)
		}
	}
	if c, ok := a.cased(op, left, right); ok {
		return c
	} else if c, ok := a.cased(op, right, left); ok {
		return c
	}
	if a.operand(left).kind == "" {
		if x, y := a.constant(left), a.constant(right); x != nil && y != nil && op == "=" {
			return condition.Constants(x, y)
		}
		left, right, op = right, left, mirrored[op]
	}
	return a.open(op, left, right)
}

// open makes a condition of a column and values.
func (a *asker) open(op string, left ast.ExprNode, list ...ast.ExprNode) condition.Condition {
	of := a.operand(left)
	switch of.kind {
	case "":
		return condition.Unknown("a comparison of something else than a column with values")
	case condition.Other:
		return condition.Unknown("a comparison of type %s", of.typ)
	}
	switch order := strings.ContainsAny(op, "<>") && op != "<>"; {
	case order && of.typ == "enum":
		return condition.Unknown("the order of %s depends on its collation", of.name)
	case order && of.typ == "uuid": // MariaDB manual, UUID Data Type: the parts of some versions are compared from the last one on
		return condition.Unknown("the order of %s depends on its version", of.name)
	case op == "distinct" && of.typ == "uuid":
		return condition.Unknown("<=> of a text that may be no UUID is NULL")
	}
	var values []condition.Value
	for _, n := range list {
		if v, ok := unwrapped(n).(*mysqlsyntax.Value); ok && v.V == nil {
			values = append(values, nil)
			continue
		}
		v := a.value(n, of.reads)
		if v == nil && len(list) == 1 {
			v = a.scalared(n, of)
		}
		if v == nil && len(list) == 1 {
			of, v = a.clocked(n, of)
		}
		if v == nil {
			return condition.Unknown("a comparison of %s with something else than values of its kind", of.typ)
		}
		values = append(values, v)
	}
	switch {
	case of.reads != of.kind && op == "distinct":
		return condition.Unknown("a comparison of days with <=>")
	case of.reads != of.kind && op == "<>":
		return condition.Not(condition.Open("day=", of.kind, of.name, values...))
	case of.reads != of.kind:
		return condition.Open("day"+op, of.kind, of.name, values...)
	case of.term != nil:
		return condition.OpenTerm(op, of.kind, of.term, values...)
	}
	return condition.Open(op, of.kind, of.name, values...)
}

func unwrapped(n ast.ExprNode) ast.ExprNode {
	for {
		p, ok := n.(*ast.ParenthesesExpr)
		if !ok {
			return n
		}
		n = p.Expr
	}
}

// constant gives an integer of the text; nil if it is something else.
func (a *asker) constant(n ast.ExprNode) condition.Value {
	if v, ok := unwrapped(n).(*mysqlsyntax.Value); ok {
		if _, ok := v.V.(int64); ok {
			return a.value(n, condition.Number)
		}
	}
	return nil
}

// column is the column of the table that an expression is.
func (a *asker) column(n ast.ExprNode) (string, *rewrite.Attribute) {
	if a.groups != nil {
		return a.groups.column(n)
	}
	c, ok := unwrapped(n).(*ast.ColumnNameExpr)
	if !ok || c.Name.Schema.O != "" && (a.src.rel == nil || c.Name.Schema.O != a.src.rel.Schema) || c.Name.Table.O != "" && !strings.EqualFold(c.Name.Table.O, a.src.alias) {
		return "", nil
	}
	at := a.src.column(c.Name.Name.O)
	if at == nil {
		return "", nil
	}
	return at.Name, at
}

// value gives a literal or a parameter in the form of condition.Open; nil if it is something else, or of another kind than what it
// is compared with: the servers convert those by rules of their own ('1abc' = 1). A whole number may be a text, as PHP sends it.
func (a *asker) value(n ast.ExprNode, kind condition.Kind) condition.Value {
	n = unwrapped(n)
	sign := ""
	if u, ok := n.(*ast.UnaryOperationExpr); ok && u.Op == opcode.Minus {
		n, sign = u.V, "-"
	}
	token, known := a.places[n]
	isText := kind == condition.Folded || kind == condition.Bytes
	switch v := n.(type) {
	case *mysqlsyntax.ParamMarker:
		if !known || sign != "" || isText && !a.session.UTF8 {
			return nil
		}
		num := 1
		for _, t := range a.text.Tokens[:token] {
			if t.Kind == statement.TokenParam {
				num++
			}
		}
		if a.ask.Types == nil {
			a.ask.Types = map[int]string{}
		}
		a.ask.Types[num] = string(kind)
		return text("$" + strconv.Itoa(num))
	case *mysqlsyntax.Value:
		number := kind == condition.Number
		switch v := v.V.(type) {
		case bool:
			if number && sign == "" {
				return text(map[bool]string{true: "=1", false: "=0"}[v])
			}
		case string:
			if sign == "" && known && (number && condition.Whole(v) || !number && (a.session.UTF8 || ascii(v))) {
				return text(fmt.Sprintf("@%d=%s", a.text.Tokens[token].Start, v))
			}
		case int64, uint64, mysqlsyntax.Written:
			if number && known {
				return text(fmt.Sprintf("@%d=%s%v", a.text.Tokens[token].Start, sign, v))
			}
			if w, ok := v.(mysqlsyntax.Written); ok && kind == condition.Bytes && sign == "" {
				if raw, ok := w.Bytes(); ok {
					return text("=" + raw)
				}
			}
		}
	}
	return nil
}

func text(s string) condition.Value { return &s }
