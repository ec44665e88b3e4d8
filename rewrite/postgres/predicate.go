package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

// predicates notes what a statement asks of tables, and why that cannot be told of others.
func (x *planner) predicates(n *pg.Node) {
	p := x.plan
	if !x.native { // the places of literals are those of a text without the hidden columns
		if p.Predicate {
			p.Unread = "capture by columns"
		}
		return
	}
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		p.Any, p.Settled = anyRow(s.SelectStmt) && rowIfExists(s.SelectStmt) == nil, x.settled
		if tables := x.content(s.SelectStmt).tables; len(tables) > 0 && x.join == nil {
			askedBySet(x, s.SelectStmt, len(tables), true)
			p.Predicate = p.Predicate && !(p.Unread == "" && len(tables) == 1 && len(p.Asks) == 1 && p.Asks[0].Exists && p.Asks[0].Pinned)
		}
	case *pg.Node_UpdateStmt:
		u := s.UpdateStmt
		x.askedByWrite(u, u.Relation, u.WhereClause, u.TargetList, u.FromClause, u.WithClause)
	case *pg.Node_DeleteStmt:
		d := s.DeleteStmt
		x.askedByWrite(d, d.Relation, d.WhereClause, nil, d.UsingClause, d.WithClause)
	case *pg.Node_InsertStmt:
		if tables := len(x.content(s.InsertStmt).tables); tables > 1 {
			x.askedByInsert(s.InsertStmt, tables-1)
		}
	default:
		if p.Predicate {
			p.Unread = "a statement of another kind"
		}
	}
}

func (x *planner) askedBySelect(s *pg.SelectStmt, tables int) {
	var ask rewrite.Ask
	if s = x.flat(s); s.WithClause != nil {
		x.plan.Unread = rewrite.SeveralTables
		return
	}
	if inner, not := existence(s); inner != nil {
		ask.Exists, ask.Absent, s = true, not, inner
	} else if inner := rowIfExists(s); inner != nil {
		limit := s.LimitCount
		if ask.Exists, ask.ByRow, s = true, true, inner; limit != nil {
			if s.LimitCount != nil {
				x.plan.Unread = "LIMIT within EXISTS"
				return
			}
			s = proto.Clone(s).(*pg.SelectStmt)
			s.LimitCount, s.LimitOption = limit, pg.LimitOption_LIMIT_OPTION_COUNT // of at least 1, or there is never a row
		}
	}
	if inner := paged(s); inner != nil && !ask.Exists {
		limit := s.LimitCount
		ask.Merged, s = true, proto.Clone(inner).(*pg.SelectStmt)
		s.LimitCount, s.LimitOption = limit, pg.LimitOption_LIMIT_OPTION_COUNT
	}
	for inner := counted(s); inner != nil; inner = counted(s) {
		ask.Counted = ask.Counted || soleGroup(x, s)
		s, ask.Around = x.flat(inner), true
	}
	if !ask.Exists && !ask.Around {
		if tables -= asksBeside(x, s); tables == 0 {
			return
		}
		tables -= asksScalar(x, s) + asksCounted(x, s)
	}
	var rv *pg.RangeVar
	if len(s.FromClause) == 1 {
		if rv = s.FromClause[0].GetRangeVar(); rv == nil {
			var others int
			if rv, others = x.leftOf(s); rv != nil {
				ask.Joined = true
				tables -= others
			}
		}
	}
	switch {
	case s.Op != pg.SetOperation_SETOP_NONE:
		x.plan.Unread = "a set operation"
	case tables > 1, rv == nil, s.WithClause != nil:
		x.plan.Unread = rewrite.SeveralTables
	case s.HavingClause != nil && !soleGroup(x, s) && !x.having.told(x):
		x.plan.Unread = condition.HiddenGroups
	case skipsLocked(s):
		asksForNone(x, s)
	default:
		ask.Single = soleGroup(x, s)
		ask.Extreme = extremeShown(x, s, rv, &ask)
		if s.LimitOffset != nil {
			v, ok := x.value(s.LimitOffset, condition.Number, "int8", &ask)
			if !ok || ask.Exists {
				x.plan.Unread = rewrite.SkipsRows
				return
			}
			ask.Skip = v
		}
		if s.LimitCount != nil {
			v, ok := x.value(s.LimitCount, condition.Number, "int8", &ask)
			if !ok || s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
				x.plan.Unread = "LIMIT hides rows"
				return
			}
			ask.Limit, ask.Beyond, ask.Alike = v, x.top, x.alike
			one, doubt := x.aggregates(s)
			if plain := !one && doubt == "" && len(s.GroupClause) == 0 && len(s.DistinctClause) == 0; plain && len(s.SortClause) == 0 && !x.content(s).sets {
				ask.Beyond = condition.Never
			}
		}
		if ask.Having = s.HavingClause != nil; x.having != nil {
			x.having.asks(x, &ask)
		}
		ask.Merged = ask.Merged || len(s.GroupClause) > 0 || len(s.DistinctClause) > 0
		ask.Current, ask.Folds = len(s.LockingClause) > 0, !ask.Exists && folds(x, s, rv)
		if x.asked(rv, s.WhereClause, ask); ask.Joined && !ask.Exists && x.plan.Unread == "" {
			x.plan.Unread = rewrite.SeveralTables // what it asks of the others is not told
		}
	}
}

// soleGroup reports whether the answer has one row at most, which shows aggregates.
func soleGroup(x *planner, s *pg.SelectStmt) bool {
	one, doubt := x.aggregates(s)
	return one && doubt == "" && len(s.GroupClause) == 0
}

// paged gives the query of SELECT DISTINCT columns FROM (...) AS name LIMIT n, which has no row if that one has none: TypeORM makes pages so.
func paged(s *pg.SelectStmt) *pg.SelectStmt {
	if len(s.FromClause) != 1 || len(s.DistinctClause) == 0 || s.LimitOption != pg.LimitOption_LIMIT_OPTION_COUNT ||
		slices.ContainsFunc(s.TargetList, func(n *pg.Node) bool { return n.GetResTarget().GetVal().GetColumnRef() == nil }) {
		return nil
	}
	sub := s.FromClause[0].GetRangeSubselect()
	alone := &pg.SelectStmt{FromClause: s.FromClause, TargetList: s.TargetList, DistinctClause: s.DistinctClause, SortClause: s.SortClause, LimitCount: s.LimitCount, LimitOption: s.LimitOption, Op: pg.SetOperation_SETOP_NONE}
	inner := sub.GetSubquery().GetSelectStmt()
	if sub.GetLateral() || inner == nil || inner.LimitCount != nil || inner.LimitOffset != nil || !proto.Equal(s, alone) {
		return nil
	}
	return inner
}

// leftOf gives the table at the left of left joins, of which each row for which WHERE holds is in the answer, whatever the others have: eager loading of
// ORMs. others are the tables that it is joined with. It is nil if WHERE asks anything of the others, or the table stands among them.
func (x *scene) leftOf(s *pg.SelectStmt) (rv *pg.RangeVar, others int) {
	n := s.FromClause[0]
	var right []*pg.Node
	for j := n.GetJoinExpr(); j != nil; j = n.GetJoinExpr() {
		if j.Jointype != pg.JoinType_JOIN_LEFT || j.Alias != nil {
			return nil, 0
		}
		n, right = j.Larg, append(right, j.Rarg)
	}
	if rv = n.GetRangeVar(); rv == nil {
		return nil, 0
	}
	rel, _ := x.resolve(rv)
	ref := refName(rv)
	fits := rel != nil && !slices.ContainsFunc(s.LockingClause, func(n *pg.Node) bool { return len(n.GetLockingClause().LockedRels) > 0 })
	for len(right) > 0 && fits {
		n, right = right[0], right[1:]
		if j := n.GetJoinExpr(); j != nil {
			right = append(right, j.Larg, j.Rarg)
			continue
		}
		table := n.GetRangeVar()
		if table == nil || !x.watched(table) {
			return nil, 0
		}
		other, _ := x.resolve(table)
		others++
		fits = other != nil && other.Root == nil && !other.Inherits && other.RelationName != rel.RelationName
	}
	pgsyntax.Walk(s.WhereClause, func(m proto.Message) bool {
		if c, ok := m.(*pg.ColumnRef); ok {
			fits = fits && len(c.Fields) > 1 && c.Fields[len(c.Fields)-2].GetString_().GetSval() == ref
		}
		return true
	})
	if !fits {
		return nil, 0
	}
	return rv, others
}

// counted gives the query of SELECT ... FROM (...) AS name, of which each row counts: Prisma's count() is one.
func counted(s *pg.SelectStmt) *pg.SelectStmt {
	if len(s.FromClause) != 1 || s.WithClause != nil || s.WhereClause != nil || s.HavingClause != nil || s.LimitCount != nil || s.LimitOffset != nil {
		return nil
	}
	sub := s.FromClause[0].GetRangeSubselect()
	if sub.GetLateral() || len(s.LockingClause) > 0 {
		return nil
	}
	return sub.GetSubquery().GetSelectStmt()
}

// existence gives the query of SELECT EXISTS (...), or of SELECT NOT EXISTS (...).
func existence(s *pg.SelectStmt) (q *pg.SelectStmt, not bool) {
	if len(s.FromClause) > 0 || len(s.TargetList) != 1 || s.WhereClause != nil || s.Op != pg.SetOperation_SETOP_NONE {
		return nil, false
	}
	link, not := maybeNot(s.TargetList[0].GetResTarget().GetVal())
	if link.GetSubLinkType() != pg.SubLinkType_EXISTS_SUBLINK {
		return nil, false
	}
	return rowsOf(link), not
}

// maybeNot gives the subquery that an expression is, or the opposite of which it is.
func maybeNot(n *pg.Node) (link *pg.SubLink, not bool) {
	if b := n.GetBoolExpr(); b.GetBoolop() == pg.BoolExprType_NOT_EXPR {
		return b.Args[0].GetSubLink(), true
	}
	return n.GetSubLink(), false
}

// rowIfExists gives the query of SELECT 1 WHERE EXISTS (...), which has one row or none. TypeORM selects it from a row that a subquery makes.
func rowIfExists(s *pg.SelectStmt) *pg.SelectStmt {
	link := s.WhereClause.GetSubLink()
	if link.GetSubLinkType() != pg.SubLinkType_EXISTS_SUBLINK || len(s.FromClause) > 1 || s.LimitOption == pg.LimitOption_LIMIT_OPTION_WITH_TIES {
		return nil
	}
	alone := &pg.SelectStmt{FromClause: s.FromClause, TargetList: s.TargetList, WhereClause: s.WhereClause, LimitCount: s.LimitCount, LimitOption: s.LimitOption, Op: pg.SetOperation_SETOP_NONE}
	if !proto.Equal(s, alone) || !constants(s.TargetList) {
		return nil
	}
	if len(s.FromClause) == 1 {
		row := s.FromClause[0].GetRangeSubselect().GetSubquery().GetSelectStmt()
		if row == nil || !constants(row.TargetList) || !proto.Equal(row, &pg.SelectStmt{TargetList: row.TargetList, LimitOption: row.LimitOption, Op: pg.SetOperation_SETOP_NONE}) {
			return nil
		}
	}
	return rowsOf(link)
}

// constants reports whether a select list has constants only.
func constants(list []*pg.Node) bool {
	return !slices.ContainsFunc(list, func(n *pg.Node) bool { return n.GetResTarget().GetVal().GetAConst() == nil })
}

func (x *planner) askedByWrite(m proto.Message, rv *pg.RangeVar, where *pg.Node, values, from []*pg.Node, with *pg.WithClause) {
	if q := queued(x, m, rv, where, from, with); q != nil {
		asksForNone(x, q)
		return
	}
	switch {
	case len(from) > 0, with != nil, len(x.content(m).tables) > 1+x.within(where, values, false):
		x.plan.Unread = rewrite.SeveralTables
	case where.GetCurrentOfExpr() != nil:
	default:
		x.asked(rv, where, rewrite.Ask{Current: true})
	}
}

// asked notes a predicate read of one table.
func (x *planner) asked(rv *pg.RangeVar, where *pg.Node, ask rewrite.Ask) {
	rel, why := x.resolve(rv)
	switch {
	case rel == nil:
		x.plan.Unread = why
		return
	case rel.Kind != "table" && rel.Kind != "partitioned" || rel.Inherits || rel.HasRules:
		x.plan.Unread = "it reads a view, or a table with rules, parents or children"
		return
	case rel.RowSecurity:
		x.plan.Unread = "row security adds to the condition"
		return
	case x.catalog.Standby:
		x.plan.Unread = "a standby shows commits late"
		return
	case x.catalog.Operators:
		x.plan.Unread = "a user has defined operators for built-in types"
		return
	case len(rv.GetAlias().GetColnames()) > 0:
		x.plan.Unread = "its columns are renamed"
		return
	}
	ref := refName(rv)
	top := rel
	if rel.Root != nil {
		// A partition has its own part of the rows, which the images of the whole table do not tell.
		x.plan.Unread = "it reads a partition"
		return
	}
	ask.Table = top.String()
	if where != nil {
		a := &asker{planner: x, rel: rel, ref: ref, ask: ask, typed: map[int32]string{}}
		asked := a.condition(where)
		ask = a.ask
		ask.Where = condition.And(a.certain(asked), ask.Where)
	} else {
		ask.Where = condition.And(ask.Where)
	}
	ask.Pinned = pinned(where, source{rel: rel, ref: ref})
	if !ask.Pinned {
		x.wanted.Ask(&ask)
	}
	x.plan.Asks = append(x.plan.Asks, ask)
}

// asker makes conditions on one table of expressions, as far as they can be evaluated.
type asker struct {
	*planner
	rel *rewrite.Relation
	ref string // its name in the statement
	ask rewrite.Ask

	typed map[int32]string // the types for which the condition takes parameters, by their places
}

// condition makes a condition that can be evaluated of an expression.
func (a *asker) condition(n *pg.Node) condition.Condition {
	switch e := n.Node.(type) {
	case *pg.Node_BoolExpr:
		c := condition.Condition{Op: map[pg.BoolExprType]string{pg.BoolExprType_AND_EXPR: "and", pg.BoolExprType_OR_EXPR: "or", pg.BoolExprType_NOT_EXPR: "not"}[e.BoolExpr.Boolop]}
		for _, arg := range e.BoolExpr.Args {
			c.Args = append(c.Args, a.condition(arg))
		}
		return c
	case *pg.Node_NullTest:
		name, _ := comparedColumn(e.NullTest.Arg, a.rel, a.ref)
		if name == "" || e.NullTest.Argisrow {
			break
		}
		c := condition.Condition{Op: "null", Column: name}
		if e.NullTest.Nulltesttype == pg.NullTestType_IS_NOT_NULL {
			c = condition.Not(c)
		}
		return c
	case *pg.Node_ColumnRef:
		if name, at := comparedColumn(n, a.rel, a.ref); name != "" && kindOf(at) == condition.Bool {
			return isBool(name, "true")
		}
	case *pg.Node_BooleanTest:
		if name, at := comparedColumn(e.BooleanTest.Arg, a.rel, a.ref); name != "" && kindOf(at) == condition.Bool {
			yes, no := isBool(name, "true"), isBool(name, "false")
			switch e.BooleanTest.Booltesttype {
			case pg.BoolTestType_IS_TRUE, pg.BoolTestType_IS_NOT_TRUE:
				return condition.Test(name, yes, no, e.BooleanTest.Booltesttype == pg.BoolTestType_IS_NOT_TRUE)
			case pg.BoolTestType_IS_FALSE, pg.BoolTestType_IS_NOT_FALSE:
				return condition.Test(name, no, yes, e.BooleanTest.Booltesttype == pg.BoolTestType_IS_NOT_FALSE)
			}
		}
	case *pg.Node_AConst:
		if b := e.AConst.GetBoolval(); b != nil && b.Boolval {
			return condition.Always
		}
	case *pg.Node_AExpr:
		return a.comparison(e.AExpr)
	case *pg.Node_SubLink:
		return condition.Unknown("a condition with a subquery")
	case *pg.Node_FuncCall:
		switch f := e.FuncCall; {
		case pgsyntax.LastName(f.Funcname) == "overlaps":
			return a.overlapping(f)
		case own(a.scene, f, "starts_with") && len(f.Args) == 2:
			if of := a.operand(f.Args[0]); of.kind == condition.Text && of.typ != "enum" {
				if v, ok := a.value(f.Args[1], condition.Text, "text"); ok {
					return of.open("prefix", v)
				}
			}
		}
		return condition.Unknown("a condition with a function")
	}
	return condition.Unknown("a condition of another form")
}

func isBool(column, value string) condition.Condition {
	return condition.Compare("=", condition.Bool, column, &value)
}

// mirrored are the operators with their sides exchanged.
var mirrored = map[string]string{"=": "=", "<>": "<>", "<": ">", "<=": ">=", ">": "<", ">=": "<="}

func (a *asker) comparison(e *pg.A_Expr) condition.Condition {
	if len(e.Name) != 1 || e.Lexpr == nil || e.Rexpr == nil {
		return condition.Unknown("a condition of another form")
	}
	op := pgsyntax.LastName(e.Name)
	if c, ok := a.between(e); ok {
		return c
	} else if c, ok := a.rows(e, op); ok {
		return c
	} else if c, ok := a.member(e, op); ok {
		return c
	}
	if c, ok := a.cased(e, e.Lexpr, e.Rexpr); ok {
		return c
	} else if c, ok := a.cased(e, e.Rexpr, e.Lexpr); ok {
		return c
	}
	right := e.Rexpr
	of := a.operand(e.Lexpr)
	if e.Kind == pg.A_Expr_Kind_AEXPR_OP && of.kind == "" {
		if other := a.operand(right); other.kind != "" && mirrored[op] != "" {
			right, op, of = e.Lexpr, mirrored[op], other
		}
	}
	if e.Kind == pg.A_Expr_Kind_AEXPR_OP && mirrored[op] != "" {
		if d, ok := a.difference(e.Lexpr, e.Rexpr); ok {
			zero := "=0"
			return condition.OpenTerm(pgsyntax.LastName(e.Name), condition.Number, d, &zero)
		}
	}
	if of.kind == "" {
		if v, w := a.constant(e.Lexpr), a.constant(e.Rexpr); v != nil && w != nil && e.Kind == pg.A_Expr_Kind_AEXPR_OP && op == "=" {
			return condition.Constants(v, w)
		}
		return condition.Unknown("a comparison of something else than a column with values")
	}
	kind := of.kind
	if kind == condition.Other {
		return condition.Unknown("a comparison of type %s", of.typ)
	}
	if e.Kind == pg.A_Expr_Kind_AEXPR_OP && kind.Bounds() != "" {
		return a.ranges(op, of, right)
	}
	if kind == condition.JSON || kind.Element() != "" {
		return a.containing(e, op, of, right)
	}
	open := func(op string, list ...*pg.Node) condition.Condition {
		with, values := of, []condition.Value(nil)
		for _, n := range list {
			o, v, ok := a.valued(n, of, len(list) == 1)
			if !ok {
				return condition.Unknown("a comparison of something else than a column with values")
			}
			with, values = o, append(values, v)
		}
		return with.open(op, values...)
	}
	list := right.GetList().GetItems()
	switch {
	case e.Kind == pg.A_Expr_Kind_AEXPR_OP && mirrored[op] != "":
		return open(op, right)
	case e.Kind == pg.A_Expr_Kind_AEXPR_IN && op == "=":
		return open("in", list...)
	case e.Kind == pg.A_Expr_Kind_AEXPR_IN && op == "<>":
		return condition.Not(open("in", list...))
	case e.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY && op == "=" && right.GetAArrayExpr() != nil && len(right.GetAArrayExpr().Elements) > 0:
		return open("in", right.GetAArrayExpr().Elements...)
	case (e.Kind == pg.A_Expr_Kind_AEXPR_OP_ANY && op == "=" || e.Kind == pg.A_Expr_Kind_AEXPR_OP_ALL && op == "<>") && kind.Bounds() == "" && of.typ != "enum" && !of.day:
		if v, ok := a.array(right, of); ok {
			c := of.open("any", v)
			if op == "<>" {
				c = condition.Not(c)
			}
			return c
		}
	case e.Kind == pg.A_Expr_Kind_AEXPR_DISTINCT && !of.day:
		return open("distinct", right)
	case e.Kind == pg.A_Expr_Kind_AEXPR_NOT_DISTINCT && !of.day:
		return condition.Not(open("distinct", right))
	case e.Kind == pg.A_Expr_Kind_AEXPR_OP && slices.Contains([]string{"~", "~*", "!~", "!~*"}, op) && kind == condition.Text && of.typ != "enum":
		c := open(map[bool]string{true: "imatches", false: "matches"}[strings.HasSuffix(op, "*")], right)
		if strings.HasPrefix(op, "!") {
			c = condition.Not(c)
		}
		return c
	case (e.Kind == pg.A_Expr_Kind_AEXPR_ILIKE || e.Kind == pg.A_Expr_Kind_AEXPR_LIKE) && kind == condition.Text && of.typ != "enum":
		c := open(map[bool]string{true: "ilike", false: "like"}[strings.HasSuffix(op, "*")], patternOf(right)...)
		if strings.HasPrefix(op, "!") {
			return condition.Not(c)
		}
		return c
	}
	return condition.Unknown("operator %s", pgsyntax.LastName(e.Name))
}

// constant gives an integer of the text; nil if it is something else.
func (a *asker) constant(n *pg.Node) condition.Value {
	if c := n.GetAConst(); c == nil || c.GetIval() == nil {
		return nil
	}
	v, _ := a.value(n, condition.Number, "int4")
	return v
}

// comparedColumn is the column of rel that an expression is. Django casts varchar to text, which changes nothing.
func comparedColumn(n *pg.Node, rel *rewrite.Relation, ref string) (string, *rewrite.Attribute) {
	cast := n.GetTypeCast()
	if castTo(cast) == "text" && len(cast.TypeName.ArrayBounds) == 0 {
		n = cast.Arg
	}
	name := pgsyntax.Column(n, ref)
	for i := range rel.Columns {
		if name != "" && rel.Columns[i].Name == name && (cast == nil || strings.Contains("text varchar", rel.Columns[i].Type)) {
			return name, &rel.Columns[i]
		}
	}
	return "", nil
}

// kinds are how the types compare whose comparison needs no server.
var kinds = map[string]condition.Kind{
	"int2": condition.Number, "int4": condition.Number, "int8": condition.Number, "numeric": condition.Number, "bool": condition.Bool,
	"uuid": condition.UUID, "date": condition.Date, "time": condition.Clock, "timestamp": condition.Local, "timestamptz": condition.Instant,
	"text": condition.Text, "varchar": condition.Text, "enum": condition.Text,
	"int4range": condition.IntRange, "int8range": condition.IntRange, "numrange": condition.NumRange, "daterange": condition.DateRange,
	"tsrange": condition.LocalRange, "tstzrange": condition.InstantRange,
	"jsonb": condition.JSON, "_text": condition.TextArray, "_varchar": condition.TextArray, "_int4": condition.NumberArray, "_int8": condition.NumberArray,
}

func kindOf(a *rewrite.Attribute) condition.Kind {
	if k := kinds[a.Type]; k != "" && !a.Folds {
		return k
	}
	return condition.Other
}

// array gives a parameter or a constant that is an array in the form of condition.Open; of is what its elements are compared with.
func (a *asker) array(n *pg.Node, of operand) (condition.Value, bool) {
	typ := of.typ
	if c := n.GetTypeCast(); c != nil {
		if typ = castTo(c); len(c.TypeName.ArrayBounds) != 1 || kinds[typ] != of.kind {
			return nil, false
		}
		n = c.Arg
	}
	if n.GetParamRef() == nil && n.GetAConst().GetSval() == nil || typ == "" {
		return nil, false
	}
	return a.value(n, of.kind, typ+"[]")
}

// value gives a constant or a parameter in the form of condition.Open; typ is the type of what it is compared with, empty if
// that is not certain.
func (x *planner) value(n *pg.Node, kind condition.Kind, typ string, ask *rewrite.Ask) (condition.Value, bool) {
	for cast := ""; n.GetTypeCast() != nil || n.GetParamRef() != nil; n = n.GetTypeCast().Arg {
		if p := n.GetParamRef(); p != nil {
			if ask.Types == nil {
				ask.Types = map[int]string{}
			}
			num := int(p.Number)
			if cast != "" {
				typ = cast // it has the type of the cast
			}
			if t := ask.Types[num]; typ == "" || t != "" && t != typ {
				return nil, false
			}
			ask.Types[num] = typ
			v := fmt.Sprint("$", num)
			return &v, true
		}
		// A cast to a type of the same kind changes nothing that the kind can read, unless it rounds or cuts.
		to, arg := castTo(n.GetTypeCast()), n.GetTypeCast().Arg
		rounds := kind == condition.Number && to != "numeric" && arg.GetParamRef() == nil && arg.GetAConst().GetIval() == nil
		if kinds[to] != kind || rounds || cast != "" && arg.GetParamRef() != nil || len(n.GetTypeCast().TypeName.ArrayBounds) > 0 || to == "enum" {
			return nil, false
		}
		cast = to
	}
	c := n.GetAConst()
	if c == nil {
		return nil, false
	}
	at := int(c.Location)
	var text string
	switch v := c.Val.(type) {
	case *pg.A_Const_Ival:
		text = strconv.Itoa(int(v.Ival.GetIval()))
	case *pg.A_Const_Fval:
		text = v.Fval.GetFval()
	case *pg.A_Const_Sval:
		text = v.Sval.GetSval()
	case *pg.A_Const_Boolval:
		text, at = strconv.FormatBool(v.Boolval.GetBoolval()), -1
	default:
		return nil, c.Isnull
	}
	if at >= 0 && c.GetSval() == nil && text[0] == '-' {
		// The place is that of the sign.
		for at++; at < len(x.sql) && (x.sql[at] == ' ' || x.sql[at] == '\t' || x.sql[at] == '\n' || x.sql[at] == '\r'); at++ {
		}
	}
	v := "=" + text
	if at >= 0 {
		v = fmt.Sprintf("@%d=%s", at, text)
	}
	return &v, true
}
