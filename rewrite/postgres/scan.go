package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// Where versions cannot be added to the rows of an answer (DISTINCT, set operations, subqueries), the clauses FROM and
// WHERE of the part in question are evaluated once more inside the same statement, for the versions only. All parts of
// a statement have one snapshot (manual, 13.2), so they meet the same versions. What the client wrote becomes a
// subquery, which is planned as it would be alone:
//
//	SELECT q.*, CASE WHEN row_number() OVER () > 1 THEN ” WHEN <cheap> THEN (SELECT <versions> <FROM> <WHERE>) END FROM (<client>) q
//
// The names, types and origins of q.* are those of the client's columns, and the window function keeps the order of
// the rows. An answer without rows tells nothing.

// scan is a FROM clause with its WHERE clause that is evaluated once more.
type scan struct {
	text   string // of the clauses
	list   []source
	tables int    // how many tables stand in the FROM clause
	limit  int    // the versions of so many rows are told, or none
	sole   bool   // one of the rows was enough for the server: of several it is not certain which one it met
	guard  string // a condition that says that it is cheap; empty if that is known
	params bool   // the clauses have parameters
	pair   *pair  // of IN: the versions are told that it compares with the row of the answer
	top    bool   // the text has the client's ORDER BY and LIMIT
	row    string // the row of the answer, which stands for none if it is NULL; empty: there is one in any case
	below  string // LIMIT: the versions are told if the answer has fewer rows; empty: whatever it has
}

// Limits of a scan, in rows: with a condition that an index serves, of a small table, for each row of the answer.
const (
	maxLed  = 1000
	maxScan = 10_000
	maxEach = 100
	maxSole = 20 // of which the server needed one
)

// nameLen is NAMEDATALEN: names have fewer bytes (manual, 4.1.1).
const nameLen = 64

// tinyBytes is how large a table may be to be read again for each row of an answer.
const tinyBytes = 64 << 10

// entire gives the scans that tell all that a query reads if every row of its answer is fetched. What stands in
// subqueries of its expressions is not among it. ok is false if that is not certain, not cheap, or not the same when it
// is done twice.
func (x *instrumentation) entire(s *pg.SelectStmt) (list []scan, ok bool) {
	list, ok = x.entireOf(s)
	if ok && s.Op == pg.SetOperation_SETOP_NONE && x.few(s) {
		for i := range list {
			list[i].limit = 1
			list[i].alone()
		}
	}
	return list, ok
}

func (x *instrumentation) entireOf(s *pg.SelectStmt) (list []scan, ok bool) {
	if s.IntoClause != nil || len(s.LockingClause) > 0 {
		return nil, false
	}
	defer x.enter(s.WithClause)()
	if (s.LimitCount != nil || s.LimitOffset != nil) && x.counted != s {
		if one, _ := x.aggregates(s); s.Op != pg.SetOperation_SETOP_NONE || !(one && len(s.GroupClause) == 0 || x.ranked(s)) {
			return nil, false
		}
	}
	if s.Op != pg.SetOperation_SETOP_NONE {
		left, ok1 := x.entire(s.Larg)
		right, ok2 := x.entire(s.Rarg)
		return append(left, right...), ok1 && ok2
	}
	if len(s.FromClause) == 0 {
		return nil, true
	}
	if len(s.FromClause) == 1 && s.WhereClause == nil {
		if q := s.FromClause[0].GetRangeSubselect(); q != nil && !q.Lateral {
			if in := q.Subquery.GetSelectStmt(); in != nil {
				return x.consumed(in)
			}
		}
		if rv := s.FromClause[0].GetRangeVar(); rv != nil && rv.Schemaname == "" && x.scope[rv.Relname] > 0 {
			return x.shared(rv.Relname)
		}
	}
	sc, ok := x.scanOf(s, false)
	return []scan{sc}, ok
}

// shared gives the scans of a common table expression that is read to its end. Its tables count once, however often it is used.
func (x *instrumentation) shared(name string) (list []scan, ok bool) {
	c := x.ctes[name]
	if c.query == nil {
		return nil, false
	}
	if list, ok = x.consumed(c.query); !ok || c.uses == 1 {
		return list, ok
	}
	for i := range list {
		if slices.Contains(x.drained, name) {
			list[i].tables = 0
		}
	}
	x.drained = append(slices.Clip(x.drained), name)
	return list, true
}

// ranked reports whether the first thing by which groups are ordered is an aggregate, so that all rows are read before there is a first group.
func (x *judge) ranked(s *pg.SelectStmt) bool {
	if len(s.GroupClause) == 0 || len(s.SortClause) == 0 || len(s.DistinctClause) > 0 || slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return n.GetGroupingSet() != nil }) {
		return false
	}
	n := s.SortClause[0].GetSortBy().GetNode()
	if i := int(n.GetAConst().GetIval().GetIval()); i > 0 && i <= len(s.TargetList) {
		n = s.TargetList[i-1].GetResTarget().GetVal()
	}
	if f := n.GetColumnRef().GetFields(); len(f) == 1 {
		for _, t := range s.TargetList {
			if columnName(t) == f[0].GetString_().GetSval() {
				n = t.GetResTarget().GetVal()
				break
			}
		}
	}
	f := n.GetFuncCall()
	name := pgsyntax.LastName(f.GetFuncname())
	return f != nil && f.Over == nil && plainAggregates[name] && x.function(name)&(rewrite.FunctionAggregate|rewrite.FunctionUser) == rewrite.FunctionAggregate
}

// consumed is entire for a query whose columns may not all be used.
func (x *instrumentation) consumed(s *pg.SelectStmt) ([]scan, bool) {
	outer := false
	pgsyntax.Walk(s, func(m proto.Message) bool {
		if j, ok := m.(*pg.JoinExpr); ok && j.Jointype != pg.JoinType_JOIN_INNER {
			outer = true
		}
		return !outer
	})
	if outer && !x.reduced(s) {
		return nil, false
	}
	return x.entire(s)
}

// few reports whether the server may find that it need not read all rows to answer a query without LIMIT: min and max
// are the ends of an index, and DISTINCT has one row if all that it compares is fixed (so since PostgreSQL 16).
func (x *judge) few(s *pg.SelectStmt) bool {
	_, doubt := x.aggregates(s)
	ends, others := false, false
	visit := func(m proto.Message) bool {
		if f, ok := m.(*pg.FuncCall); ok {
			name := pgsyntax.LastName(f.Funcname)
			if name == "min" || name == "max" {
				ends = true
			} else {
				others = others || x.function(name)&rewrite.FunctionAggregate != 0
			}
		}
		_, sub := m.(*pg.SubLink)
		return !sub || doubt != "" // an aggregate in there may be this query's
	}
	pgsyntax.WalkAll(s.TargetList, visit)
	pgsyntax.Walk(s.HavingClause, visit)
	pgsyntax.WalkAll(s.SortClause, visit)
	if ends && !others && len(s.GroupClause) == 0 && !x.endless(s) {
		return true
	}
	if len(s.DistinctClause) == 0 {
		return false
	}
	compared := s.DistinctClause
	if compared[0].GetNode() == nil {
		compared = s.TargetList
	}
	mentioned := map[string]bool{}
	note := func(m proto.Message) bool {
		if t, ok := m.(*pg.ResTarget); ok && t.Name != "" && x.atLeast(16) { // a column of a subquery may be a fixed one by another name
			mentioned[t.Name] = true
		}
		if r, ok := m.(*pg.ColumnRef); ok {
			mentioned[r.Fields[len(r.Fields)-1].GetString_().GetSval()] = true
		}
		null, ok := m.(*pg.NullTest)
		return !ok || null.Arg.GetColumnRef() == nil // IS NULL fixes nothing
	}
	pgsyntax.WalkAll(s.FromClause, note)
	pgsyntax.Walk(s.WhereClause, note)
	for _, rv := range tables(s.FromClause) {
		if c := x.ctes[rv.Relname]; c != nil && c.query != nil {
			pgsyntax.Walk(c.query, note)
		}
	}
	for _, n := range compared {
		if t := n.GetResTarget(); t != nil {
			n = t.Val
		}
		if varies(x.scene, n, mentioned) {
			return false
		}
	}
	return true
}

// varies reports whether no condition fixes the value of an expression: it is a column of which none speaks, or has only such columns, in functions that the
// server cannot replace by a constant.
func varies(x *scene, n *pg.Node, mentioned map[string]bool) bool {
	var f []*pg.Node
	plain := true
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch m := m.(type) {
		case *pg.ColumnRef:
			f = m.Fields
			plain = plain && (f[len(f)-1].GetAStar() != nil || !mentioned[f[len(f)-1].GetString_().GetSval()])
			return false
		case *pg.FuncCall:
			plain = plain && x.function(pgsyntax.LastName(m.Funcname))&rewrite.FunctionUser == 0
		case *pg.A_Const:
			plain = plain && !m.Isnull
			return false
		case *pg.Node, *pg.TypeCast, *pg.TypeName, *pg.String:
		default:
			plain = false
		}
		return plain
	})
	return plain && f != nil
}

// endless reports whether no index of the only table can have the ends that min and max ask for: none has one of their columns, nor of the columns that
// WHERE may make equal to them.
func (x *judge) endless(s *pg.SelectStmt) bool {
	if len(s.FromClause) != 1 || s.FromClause[0].GetRangeVar() == nil {
		return false
	}
	rv := s.FromClause[0].GetRangeVar()
	rel, _ := x.resolve(rv)
	if rel == nil || rel.Kind != "table" || rel.Inherits || rv.Schemaname == "" && x.scope[rv.Relname] > 0 || s.HavingClause != nil || len(s.SortClause) > 0 {
		return false
	}
	for _, t := range s.TargetList {
		f := t.GetResTarget().GetVal().GetFuncCall()
		if f == nil || len(f.Args) != 1 || f.Args[0].GetColumnRef() == nil || !x.columnOf(f.Args[0].GetColumnRef(), rv) {
			return false
		}
		if name := columnName(&pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: f.Args[0]}}}); x.sorted(rel, s, name) {
			return false
		}
	}
	return true
}

// sorted reports whether an index may give the rows of a table in the order of a column.
func (x *judge) sorted(rel *rewrite.Relation, s *pg.SelectStmt, column string) bool {
	if column == "" || slices.ContainsFunc(slices.Concat(rel.Indexes, rel.Unique), func(ix []string) bool { return slices.Contains(ix, column) }) {
		return true
	}
	found := false
	pgsyntax.Walk(s.WhereClause, func(m proto.Message) bool {
		r, ok := m.(*pg.ColumnRef)
		found = found || ok && r.Fields[len(r.Fields)-1].GetString_().GetSval() == column
		return !found
	})
	return found
}

// scanOf makes the scan of one SELECT's clauses. each says that they are evaluated for each row of the answer.
func (x *instrumentation) scanOf(s *pg.SelectStmt, each bool) (sc scan, ok bool) {
	if len(s.TargetList) == 0 || !joined(s.FromClause) || !x.needed(s) || !x.harmlessAll(s.FromClause) || !x.harmless(s.WhereClause) || x.unread(s) {
		return sc, false
	}
	var named []*pg.RangeVar
	pure := true
	inspect := func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.RangeVar:
			named = append(named, n)
		case *pg.FuncCall:
			pure = pure && x.steady(n)
		case *pg.RangeFunction, *pg.RangeTableSample, *pg.LockingClause, *pg.CommonTableExpr, *pg.CurrentOfExpr:
			pure = false
		case *pg.ParamRef:
			sc.params = true
		}
		return pure
	}
	pgsyntax.WalkAll(s.FromClause, inspect)
	outer := len(named)
	pgsyntax.Walk(s.WhereClause, inspect)
	if !pure {
		return sc, false
	}
	whys := x.whys
	all := make([]source, 0, len(named))
	for _, rv := range named {
		if rv.Schemaname == "" && x.ctes[rv.Relname] != nil {
			return sc, false
		}
		src, ok := x.source(rv, "")
		if !ok || src.rel.RowSecurity {
			x.whys = whys
			return sc, false
		}
		all = append(all, src)
	}
	sc.tables = outer
	if sc.list, ok = x.sources(s.FromClause, nil, false); !ok || len(sc.list) != outer || len(sc.list) == 0 || len(sc.list) > maxHidden {
		x.whys = whys
		return sc, false
	}
	at := x.targetEnd(s)
	if at < 0 {
		return sc, false
	}
	toks := x.tokens(at)
	if len(toks) < 2 || toks[0].Token != pg.Token_FROM {
		return sc, false
	}
	end := clauseEnd(toks, pg.Token_WHERE)
	if slices.ContainsFunc(toks, func(t *pg.ScanToken) bool { return int(t.End) <= end && t.End-t.Start >= nameLen }) {
		return sc, false // the server says whenever it reads a name that is too long
	}
	sc.text = copied(int(toks[0].Start), end)
	led := len(all) == 1 && x.led(s, sc.list[0], each)
	large := slices.ContainsFunc(all, func(s source) bool { return s.rel.Rows > maxGroupRows })
	switch {
	case large && (!led || !x.atLeast(15)): // see askScan
		return sc, false
	case each && led:
		sc.limit = maxEach
	case each:
		sc.limit, sc.guard = maxEach, small(all, tinyBytes)
	case led:
		sc.limit = maxLed
	default:
		sc.limit, sc.guard = maxScan, small(all, maxGroupBytes)
	}
	return sc, true
}

// joined reports whether a FROM clause has only tables and joins of tables.
func joined(from []*pg.Node) bool {
	for _, n := range from {
		switch f := n.Node.(type) {
		case *pg.Node_RangeVar:
		case *pg.Node_JoinExpr:
			if !joined([]*pg.Node{f.JoinExpr.Larg, f.JoinExpr.Rarg}) {
				return false
			}
		default:
			return false
		}
	}
	return len(from) > 0
}

// needed reports whether the server cannot leave out a table that an outer join adds, as it may if nothing refers to it:
// there is no outer join, or the select list has a column of each table.
func (x *judge) needed(s *pg.SelectStmt) bool {
	inner := true
	pgsyntax.WalkAll(s.FromClause, func(m proto.Message) bool {
		if j, ok := m.(*pg.JoinExpr); ok && j.Jointype != pg.JoinType_JOIN_INNER {
			inner = false
		}
		return inner
	})
	if inner || x.reduced(s) {
		return true
	}
	for _, rv := range tables(s.FromClause) {
		found := false
		pgsyntax.WalkAll(s.TargetList, func(m proto.Message) bool {
			if r, ok := m.(*pg.ColumnRef); ok && !found {
				found = x.columnOf(r, rv) || len(r.Fields) == 1 && r.Fields[0].GetAStar() != nil
			}
			return !found
		})
		if !found {
			return false
		}
	}
	return true
}

// steadyFunctions are built-in functions that give the same when they are called again in the statement, and do
// nothing else.
var steadyFunctions = map[string]bool{
	"lower": true, "upper": true, "length": true, "char_length": true, "abs": true, "round": true, "floor": true, "ceil": true,
	"mod": true, "now": true, "date_trunc": true, "date_part": true, "extract": true, "substring": true, "substr": true,
	"btrim": true, "ltrim": true, "rtrim": true, "replace": true, "to_char": true, "to_date": true, "to_timestamp": true,
	"array_length": true, "cardinality": true, "concat": true, "like_escape": true, "position": true, "strpos": true,
}

func (x *scene) steady(f *pg.FuncCall) bool {
	name := pgsyntax.LastName(f.Funcname)
	return steadyFunctions[name] && x.function(name)&rewrite.FunctionUser == 0 && f.Over == nil
}

// led reports whether a condition fixes a column that leads an index of the table. If each, also a column of the query
// around it may fix it.
func (x *judge) led(s *pg.SelectStmt, src source, each bool) bool {
	if s.FromClause[0].GetRangeVar() == nil || src.cols != nil {
		return false
	}
	fixed := x.fixed(s, src, each)
	first := func(ix []string) bool { return len(ix) > 0 && ix[0] != "" && fixed[ix[0]] }
	return slices.ContainsFunc(src.rel.Indexes, first) || slices.ContainsFunc(src.rel.Unique, first)
}

// conjuncts gives the conditions that AND joins.
func conjuncts(where *pg.Node) []*pg.Node {
	if where == nil {
		return nil
	}
	if b := where.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_AND_EXPR {
		var out []*pg.Node
		for _, a := range b.Args {
			out = append(out, conjuncts(a)...)
		}
		return out
	}
	return []*pg.Node{where}
}

// atLeast reports whether the server is of that major version or a later one.
func (x *scene) atLeast(major int) bool {
	digits, _, _ := strings.Cut(x.catalog.Version, ".")
	n, err := strconv.Atoi(digits)
	return err == nil && n >= major
}

// askScan gives the hidden column that tells the versions of a scan. once says that only the first row of the answer
// is to have it.
//
// The rows are counted by a window function and not by LIMIT: a limit could make the server read the table without the
// index, which at SERIALIZABLE locks all of it. From PostgreSQL 15 on it stops at the limit all the same.
func (x *instrumentation) askScan(sc scan, once bool) string {
	p := x.part(sc.list[0], history.OpRead)
	p.sole = sc.sole
	var columns, lists []string
	distinct := ""
	if len(sc.list) > 1 { // in a join a row may come many times
		distinct = "DISTINCT "
	}
	for i, src := range sc.list {
		in := p
		in.rel, in.lsn, in.scan = src.rel, false, nil
		columns = append(columns, fmt.Sprintf("pg_catalog.concat_ws(' ', %s) AS w%d", x.version(src, &in), i))
		lists = append(lists, fmt.Sprintf("coalesce(pg_catalog.json_agg(%swirecheck.w%d), '[]')", distinct, i))
		p.scan = append(p.scan, in)
	}
	if sc.pair != nil {
		return x.hidden(p, sc.pair.expr(sc, columns, lists))
	}
	list := "pg_catalog.json_build_array(" + strings.Join(lists, ", ") + ")::pg_catalog.text"
	if p.lsn {
		list = position + ", " + list
	}
	number := "pg_catalog.row_number() OVER ()"
	if sc.top {
		number = "1"
	}
	expr := fmt.Sprintf("(SELECT CASE WHEN pg_catalog.count(*) <= %d THEN pg_catalog.concat_ws(' ', %s) END FROM (SELECT %s, %s AS n %s) wirecheck WHERE wirecheck.n <= %d)",
		sc.limit, list, strings.Join(columns, ", "), number, sc.text, sc.limit+1)
	if once && sc.below != "" {
		sc.guard = strings.TrimSuffix("pg_catalog.count(*) OVER () < "+sc.below+" AND "+sc.guard, " AND ")
	}
	switch {
	case once && sc.row != "":
		expr = fmt.Sprintf("CASE WHEN %s IS NOT DISTINCT FROM NULL THEN NULL WHEN pg_catalog.row_number() OVER () > 1 THEN '' WHEN %s THEN coalesce(%s, '%s') ELSE '%s' END", sc.row, cmp.Or(sc.guard, "true"), expr, tooMany, tooMany)
	case once && sc.guard != "":
		expr = "CASE WHEN pg_catalog.row_number() OVER () > 1 THEN '' WHEN " + sc.guard + " THEN " + expr + " END"
	case once:
		expr = "CASE WHEN pg_catalog.row_number() OVER () > 1 THEN '' ELSE " + expr + " END"
	case sc.guard != "":
		expr = "CASE WHEN " + sc.guard + " THEN " + expr + " END"
	}
	return x.hidden(p, expr)
}

// copies of the client's text stand as marks in what is added until they are resolved, so that a template can resolve
// them for other literals: two places between zero bytes, which no text has.
func copied(from, to int) string { return fmt.Sprintf("\x00%d %d\x00", from, to) }

// resolve puts the client's text in place of the marks. move gives the places in sql.
func resolve(add, sql string, move func(int) int) string {
	if strings.IndexByte(add, 0) < 0 {
		return add
	}
	pieces := strings.Split(add, "\x00")
	for i := 1; i < len(pieces); i += 2 {
		a, b, _ := strings.Cut(pieces[i], " ")
		from, _ := strconv.Atoi(a) // both were written by copied
		to, _ := strconv.Atoi(b)
		pieces[i] = sql[move(from):move(to)]
	}
	return strings.Join(pieces, "")
}

// emptyTells reports whether an answer without rows means that a query whose scans entire gave read no row.
func emptyTells(s *pg.SelectStmt) bool {
	if inner := rowIfExists(s); inner != nil && (s.LimitCount == nil || s.LimitCount.GetAConst().GetIval().GetIval() > 0) {
		return emptyTells(inner)
	}
	switch {
	case s.WithClause != nil, s.HavingClause != nil, s.LimitCount != nil && s.LimitCount.GetAConst().GetIval().GetIval() == 0, s.LimitOffset != nil:
		return false
	case s.Op == pg.SetOperation_SETOP_UNION:
		return emptyTells(s.Larg) && emptyTells(s.Rarg)
	case s.Op != pg.SetOperation_SETOP_NONE:
		return false
	case len(s.FromClause) == 1 && s.FromClause[0].GetRangeSubselect() != nil:
		return emptyTells(s.FromClause[0].GetRangeSubselect().Subquery.GetSelectStmt())
	}
	return true
}
