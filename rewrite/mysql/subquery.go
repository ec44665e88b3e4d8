package mysql

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/opcode"

	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// What a subquery of an expression reads is told by one more column, in which its clauses FROM and WHERE are evaluated once more for each row of
// the answer, within the same statement and so in the same view of the database. That is done where it is certain
//
//   - what the subquery read: all that its clauses give, for its value; nothing, for NOT EXISTS that was true; what made EXISTS or IN true, if
//     that can be one of a few rows only;
//   - that the second evaluation shows nowhere: the conditions compare what needs no conversion, so that they have no warnings.

const (
	eachRows = 100 // of a subquery, for each row of the answer
	soleRows = 21  // of which the server needed one: more are too many to name
)

// lookup is a column that tells what a subquery read.
type lookup struct {
	add  string
	told told
}

// reader looks at the subqueries of one query.
type reader struct {
	s       *planner
	outer   []source
	lookups []lookup
	queries int             // subqueries of which it is certain what they read
	around  *ast.SelectStmt // the query, where it can have such columns
	// silent says that an answer without rows does not tell what they read. It does for EXISTS and IN: they add a row as a join does, to a row of the
	// answer.
	silent bool
}

// readerOf looks at the subqueries in the select list and in the conditions that WHERE joins by AND.
func readerOf(s *planner, n *ast.SelectStmt, list []source, locking bool) *reader {
	r := &reader{s: s, outer: list}
	q, _ := existence(n)
	if s.r.flavor == TiDB || locking || s.session.Once || n.Distinct || n.GroupBy != nil || s.aggregates(n) || n.From == nil && q == nil {
		return r
	}
	r.around = n
	for _, f := range n.Fields.Fields {
		r.value(f.Expr)
	}
	r.condition(n.Where, false)
	r.another(n)
	return r
}

// selectIn gives the query of a subquery.
func selectIn(e ast.ExprNode) *ast.SelectStmt {
	sub, ok := e.(*ast.SubqueryExpr)
	if !ok {
		return nil
	}
	q, _ := sub.Query.(*ast.SelectStmt)
	return q
}

// value looks at an expression of the select list: a subquery whose value is taken reads all that its clauses give.
func (r *reader) value(e ast.ExprNode) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		r.value(e.Expr)
	case *ast.FuncCallExpr:
		if name := e.FnName.L; (name == "ifnull" || name == "coalesce") && len(e.Args) > 0 {
			r.value(e.Args[0])
		}
	case *ast.ExistsSubqueryExpr:
		if q := selectIn(e.Sel); q != nil {
			r.exists(q)
		}
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			r.value(e.V)
		}
	case *ast.SubqueryExpr:
		q := selectIn(e)
		if q == nil {
			return
		}
		if q.Limit != nil {
			r.top(q)
			return
		}
		all := walk(q.Fields)
		if len(all.extremes) > 0 && len(all.extremes) == len(all.aggregates) && r.extreme(q, all) {
			return
		}
		r.tell(q, eachRows, "")
	}
}

// extreme reports whether MIN and MAX may be the ends of an index.
func (r *reader) extreme(q *ast.SelectStmt, all finding) bool {
	if q.From == nil {
		return true
	}
	list, ok := r.s.sources(q.From.TableRefs, nil)
	return !ok || extreme(all.extremes, list)
}

// condition looks at a condition that is true, or not, for each row of the answer.
func (r *reader) condition(e ast.ExprNode, not bool) {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		r.condition(e.Expr, not)
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Not || e.Op == opcode.Not2 {
			r.condition(e.V, !not)
		}
	case *ast.BinaryOperationExpr:
		if e.Op == opcode.LogicAnd && !not {
			r.condition(e.L, false)
			r.condition(e.R, false)
		} else if operators[e.Op] != "" {
			r.compared(e.L)
			r.compared(e.R)
		}
	case *ast.ExistsSubqueryExpr:
		q := selectIn(e.Sel)
		if not != e.Not {
			if _, _, ok := r.clauses(q); ok {
				r.queries++
				r.silent = true
			}
		} else if q != nil {
			r.exists(q)
		}
	case *ast.PatternInExpr:
		q := selectIn(e.Sel)
		switch {
		case e.Sel == nil || q == nil || q.Limit != nil || len(q.Fields.Fields) != 1:
		case not != e.Not:
			list, _, ok := r.clauses(q)
			if ok && r.s.r.flavor == MySQL { // which may have looked up each value
				ok = !slices.ContainsFunc(list, func(src source) bool { return !r.s.scansIndex(q, list, &src) })
			}
			if ok && r.closed(q) { // it was compared with each row
				r.tell(q, eachRows, "")
				r.silent = true
			}
		default:
			r.member(e.Expr, q)
		}
	}
}

// compared looks at what a comparison compares: a subquery that names nothing around it has one value, whatever the row.
func (r *reader) compared(e ast.ExprNode) {
	if sub, ok := unwrapped(e).(*ast.SubqueryExpr); ok && r.closed(selectIn(sub)) {
		r.value(sub)
		r.silent = true
	}
}

// exists looks at EXISTS that is true. It is for an aggregate, whatever the table has, unless the aggregate is of a query around.
func (r *reader) exists(q *ast.SelectStmt) {
	switch {
	case r.s.aggregates(q):
		if r.closed(q) {
			r.queries++
		}
	case r.led(q):
		r.tell(q, soleRows, "")
	}
}

// member looks at IN that is true. An index finds the rows that may have made it so; if there is one only, it was that one.
func (r *reader) member(e ast.ExprNode, q *ast.SelectStmt) {
	list, _, ok := r.clauses(q)
	outer, is1 := e.(*ast.ColumnNameExpr)
	inner, is2 := q.Fields.Fields[0].Expr.(*ast.ColumnNameExpr)
	if !ok || !is1 || !is2 || len(list) != 1 || !r.s.owns(inner.Name, list, &list[0], 1) {
		return
	}
	for i := range r.outer {
		src := &r.outer[i]
		if src.rel == nil || !r.s.owns(outer.Name, r.outer, src, 1) || strings.EqualFold(src.alias, list[0].alias) {
			continue
		}
		a, b := src.column(outer.Name.Name.O), list[0].column(inner.Name.Name.O)
		begins := func(ix []string) bool { return len(ix) > 0 && strings.EqualFold(ix[0], inner.Name.Name.O) }
		if a != nil && b != nil && sameValues(a, b) && (slices.ContainsFunc(list[0].rel.Unique, begins) || slices.ContainsFunc(list[0].rel.Indexes, begins)) {
			r.tell(q, soleRows, list[0].ref+"."+mysqlsyntax.Quote(b.Name)+"="+src.ref+"."+mysqlsyntax.Quote(a.Name))
		}
		return
	}
}

// tell adds columns for the tables of a subquery. also is a further condition.
func (r *reader) tell(q *ast.SelectStmt, rows int, also string) {
	if list, text, ok := r.clauses(q); ok {
		r.again(q, list, text, rows, also)
	}
}

// again is tell for the tables and the text of clauses. It reports whether it did.
func (r *reader) again(q *ast.SelectStmt, list []source, text string, rows int, also string) bool {
	sole, room := rows == soleRows, int(min(r.s.session.GroupConcat, 1<<24))/groupEntryNamed
	if sole {
		rows = max(min(rows, room), 2)
	}
	if rows > room || r.s.r.flavor == MySQL && slices.ContainsFunc(list, func(src source) bool { return len(src.rel.Key) == 0 }) {
		return false
	}
	if also != "" {
		text += " AND " + also
	}
	r.queries++
	for i := range list {
		src := &list[i]
		r.spare(q, list, src)
		t := toldOf(src)
		t.limit, t.sole = rows, sole
		r.lookups = append(r.lookups, lookup{"," + r.s.collected(src.version(true), rows, text), t})
	}
	return true
}

// spare finds what the hidden columns hold by the primary key where an index may answer a subquery alone: the status flags tell whether the server read the
// whole table.
func (r *reader) spare(q *ast.SelectStmt, list []source, src *source) {
	if r.s.r.flavor == MySQL || len(src.rel.Key) > 0 && (q.Where == nil || !unique(q.Where, src, list)) && r.s.ofIndex(q, list, src) {
		src.byKey(r.s.r.flavor)
	}
}

// clauses gives the tables of a subquery and the text of its clauses FROM and WHERE. ok is false if that is not all, if it may end
// before it has read what they give, or if they cannot be evaluated once more.
func (r *reader) clauses(q *ast.SelectStmt) (list []source, text string, ok bool) {
	if q == nil || q.GroupBy != nil || q.Having != nil {
		return nil, "", false
	}
	if q.Limit != nil { // within EXISTS any number of rows but none does
		v, is := q.Limit.Count.(*mysqlsyntax.Value)
		if !is || q.Limit.Offset != nil || strings.Trim(fmt.Sprint(v.V), "0") == "" {
			return nil, "", false
		}
	}
	return r.scan(q)
}

// closes reports whether the parenthesis at token i closes one that opens between from and i.
func closes(t *statement.Text, from, i int) bool {
	if !t.Is(i, ")") {
		return false
	}
	for k := i - 1; k >= from; k-- {
		if t.Tokens[k].Depth == t.Tokens[i].Depth && t.Is(k, "(") {
			return true
		}
		if t.Tokens[k].Depth == t.Tokens[i].Depth {
			return false
		}
	}
	return false
}

// closed reports whether a subquery refers to its own tables only.
func (r *reader) closed(q *ast.SelectStmt) bool {
	list, _, ok := r.clauses(q)
	return ok && !slices.ContainsFunc(walk(q).columns, func(c *ast.ColumnName) bool {
		return !slices.ContainsFunc(list, func(src source) bool { return r.s.owns(c, list, &src, 1) })
	})
}

// led reports whether an index of each table begins with a column that is equated, or the subquery is evaluated once.
func (r *reader) led(q *ast.SelectStmt) bool {
	list, _, ok := r.clauses(q)
	if !ok || r.closed(q) {
		return ok
	}
	equated := map[string]bool{}
	visit(q.Where, func(n ast.Node) {
		b, ok := n.(*ast.BinaryOperationExpr)
		if !ok || b.Op != opcode.EQ {
			return
		}
		for _, e := range []ast.ExprNode{b.L, b.R} {
			if c, ok := e.(*ast.ColumnNameExpr); ok {
				for i := range list {
					if r.s.owns(c.Name, list, &list[i], 1) {
						equated[fmt.Sprint(i, c.Name.Name.L)] = true
					}
				}
			}
		}
	})
	for i := range list {
		begins := func(ix []string) bool { return len(ix) > 0 && equated[fmt.Sprint(i, strings.ToLower(ix[0]))] }
		if !slices.ContainsFunc(list[i].rel.Indexes, begins) && !begins(list[i].rel.Key) {
			return false
		}
	}
	return true
}

// quietly looks for what may warn when a condition is evaluated.
type quietly struct {
	s    *planner
	list []source
}

// kinds of values that compare without a conversion.
const (
	kindNumber = iota + 1
	kindText
	kindTime
)

func (q quietly) kind(e ast.ExprNode) int {
	switch e := e.(type) {
	case *ast.ParenthesesExpr:
		return q.kind(e.Expr)
	case *mysqlsyntax.Value:
		switch v := e.V.(type) {
		case string:
			return kindText
		case mysqlsyntax.Written:
			if strings.Trim(string(v), "0123456789.") == "" { // x'41' is a number or a text
				return kindNumber
			}
		case int64, uint64, bool:
			return kindNumber
		}
	case *ast.UnaryOperationExpr:
		if e.Op == opcode.Minus {
			if k := q.kind(e.V); k == kindNumber {
				return k
			}
		}
	case *ast.FuncCallExpr:
		return q.moment(e)
	case *ast.FuncCastExpr:
		if e.FunctionType == ast.CastBinaryOperator && q.kind(e.Expr) == kindText {
			return kindText
		}
	case *ast.ColumnNameExpr:
		kind := 0
		for i := range q.list {
			src := &q.list[i]
			if src.rel == nil || e.Name.Table.O != "" && !strings.EqualFold(e.Name.Table.O, src.alias) {
				continue
			}
			a := src.column(e.Name.Name.O)
			if a == nil {
				continue
			}
			k := q.ofColumn(a)
			if kind != 0 && kind != k {
				return 0
			}
			kind = k
		}
		return kind
	}
	return 0
}

// moment is kind for functions that give a time, which is the same all through a statement.
func (q quietly) moment(e *ast.FuncCallExpr) int {
	switch e.FnName.L {
	case "now", "current_timestamp", "localtime", "localtimestamp", "utc_timestamp", "curdate", "current_date", "utc_date":
		if len(e.Args) == 0 {
			return kindTime
		}
	case "date_add", "date_sub", "adddate", "subdate":
		if v, ok := unwrapped(e.Args[1]).(*mysqlsyntax.Value); ok && q.kind(e.Args[0]) == kindTime {
			if n, ok := v.V.(int64); ok && n < 10000 { // far from the first and the last year
				return kindTime
			}
		}
	}
	return 0
}

func (q quietly) ofColumn(a *rewrite.Attribute) int {
	switch {
	case exactNumber(a):
		return kindNumber
	case slices.Contains([]string{"date", "datetime", "timestamp"}, typeName(a.Type)):
		return kindTime
	case slices.Contains([]string{"enum", "char", "varchar", "tinytext", "text", "mediumtext", "longtext"}, typeName(a.Type)):
		return kindText
	}
	return 0
}

// alike reports whether values are of one kind.
func (q quietly) alike(list ...ast.ExprNode) bool {
	first := q.kind(list[0])
	if first == kindText && slices.ContainsFunc(list, func(e ast.ExprNode) bool { return q.kind(e) == kindTime }) {
		first = kindTime
	}
	return first != 0 && !slices.ContainsFunc(list, func(e ast.ExprNode) bool { return q.kind(e) != first && !(first == kindTime && isTime(e)) })
}

var timeLiteral = regexp.MustCompile(`^[1-9]\d{3}-((0[1-9]|1[0-2])-(0[1-9]|1\d|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)` +
	`( ([01]\d|2[0-3])(:[0-5]\d){2}(\.\d{1,6})?)?$`)

// isTime reports whether an expression is a literal that each server takes for a time.
func isTime(e ast.ExprNode) bool {
	v, ok := unwrapped(e).(*mysqlsyntax.Value)
	if !ok {
		return false
	}
	s, ok := v.V.(string)
	return ok && timeLiteral.MatchString(s)
}

// condition reports whether a condition certainly has no warnings, and gives the same when it is evaluated again.
func (q quietly) condition(e ast.ExprNode) bool {
	switch e := e.(type) {
	case nil:
		return true
	case *ast.ColumnNameExpr:
		return q.kind(e) == kindNumber
	case *ast.ParenthesesExpr:
		return q.condition(e.Expr)
	case *ast.UnaryOperationExpr:
		return (e.Op == opcode.Not || e.Op == opcode.Not2) && q.condition(e.V)
	case *ast.BinaryOperationExpr:
		switch e.Op {
		case opcode.LogicAnd, opcode.LogicOr:
			return q.condition(e.L) && q.condition(e.R)
		case opcode.EQ, opcode.NE, opcode.LT, opcode.LE, opcode.GT, opcode.GE, opcode.NullEQ:
			return q.alike(e.L, e.R)
		}
	case *ast.BetweenExpr:
		return q.alike(e.Expr, e.Left, e.Right)
	case *ast.IsNullExpr:
		_, column := e.Expr.(*ast.ColumnNameExpr)
		return column
	case *ast.PatternInExpr:
		return e.Sel == nil && q.alike(append([]ast.ExprNode{e.Expr}, e.List...)...)
	case *ast.PatternLikeOrIlikeExpr:
		return q.kind(e.Expr) == kindText && q.kind(e.Pattern) == kindText
	}
	return false
}

// joins is condition for those of the joins of a FROM clause.
func (q quietly) joins(n ast.ResultSetNode) bool {
	j, ok := n.(*ast.Join)
	if !ok {
		_, table := n.(*ast.TableSource)
		return table
	}
	if slices.ContainsFunc(j.Using, func(c *ast.ColumnName) bool { return q.kind(&ast.ColumnNameExpr{Name: c}) == 0 }) {
		return false
	}
	if j.NaturalJoin || j.On != nil && !q.condition(j.On.Expr) {
		return false
	}
	return q.joins(j.Left) && (j.Right == nil || q.joins(j.Right))
}
