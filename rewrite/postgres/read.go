package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/pgsyntax"
)

func (x *planner) selectStmt(s *pg.SelectStmt) {
	c := x.content(s)
	if c.into != nil {
		x.plan.Temp = c.into.Relpersistence == "t" || strings.HasPrefix(c.into.Schemaname, "pg_temp")
		x.opaque("SELECT INTO is left alone")
		return
	}
	for _, f := range c.user {
		x.missing("function %s may read and write tables", f)
	}
	x.writes(c)
	if len(c.tables) == 0 {
		if len(x.inside) > 0 {
			x.wrap(nil)
		}
		x.finish()
		return
	}
	if told := x.inside; len(told) > 0 {
		defer func() {
			if !x.collected && x.catalog.Usable() { // what is written shows, if not what is read
				x.inside, x.whys = told, slices.DeleteFunc(x.whys, func(why string) bool { return why == writesInside })
				x.wrap(nil)
				x.finish()
			}
		}()
	}
	x.plan.Predicate = true
	defer x.enter(s.WithClause)()
	x.having = groupsShown(x, s)
	defer withoutLimit(x, s)()
	exists, _ := existence(s)
	findScalar(x, s.WhereClause)
	x.counts = countsOf(x, s)
	findClocks(x, append([]*pg.Node{s.WhereClause, exists.GetWhereClause()}, s.FromClause...))
	if x.join = joinOf(x, s); x.join != nil {
		x.join.asks(x, x.ordering(s, c))
	}
	switch {
	case !x.catalog.Usable():
		x.opaque("the catalog is not known")
	case c.asks:
		x.opaque("%s", asksText)
	case s.Op == pg.SetOperation_SETOP_UNION && s.All:
		x.unionAll(s, c)
	default:
		x.query(s, c)
	}
}

// query appends the versions of a SELECT's tables to its target list, or tells them by scans.
func (x *planner) query(s *pg.SelectStmt, c content) {
	grouped, why := x.form(s)
	switch {
	case x.beyond(s):
		x.opaque(noColumn)
		return
	case x.unread(s):
		x.opaque("the server need not read its tables")
		return
	}
	if why == "DISTINCT" && x.keyed(s) {
		why = ""
	}
	if !x.distinct && (why != "" || grouped && x.ordered(s) || len(s.DistinctClause) > 0 || !grouped && x.covered(s)) && x.whole(s, c) {
		return
	}
	if why != "" {
		x.opaque("%s", why)
		return
	}
	before := *x
	x.opens = x.opened(s)
	list, why := x.askable(s)
	x.opens = nil
	if why != "" {
		x.opaque("%s", why)
		return
	}
	if slices.ContainsFunc(list, func(src source) bool { return src.how.nested }) { // a second scan leaves the client's groups as they are
		told := *x
		if *x = before; x.whole(s, c) {
			return
		}
		*x = told
	}
	if len(list) == 0 {
		if !x.whole(s, c) {
			x.opaque("it reads tables where they cannot be asked for row versions")
		}
		return
	}
	at := x.targetEnd(s)
	var add []string
	if grouped {
		if add = x.askGroups(s, list); add == nil {
			if !x.whole(s, c) {
				x.opaque("it aggregates a large table")
			}
			return
		}
	} else {
		for _, src := range list {
			add = append(add, x.ask(src.sure(oneTable(s.FromClause), s.FromClause, s.TargetList), history.OpRead, false))
		}
		told := toldBy(x, s, c)
		if x.plan.Keys = len(told); len(told) > 0 {
			x.plan.Lacking = len(x.parts) + 1
		}
		for _, text := range told {
			add = append(add, x.hidden(part{apart: true}, text))
		}
	}
	add = append(add, another(x, s)...)
	add = append(add, x.askSnapshot(locks(s) && !grouped && !(len(list) == 1 && pinned(s.WhereClause, list[0])))...)
	x.facts = len(list) + x.idle
	var outside []scan
	if x.facts < len(c.tables) && !locks(s) && !c.writes {
		sub := x.subqueries(s, grouped, !grouped)
		for _, sc := range sub.inside {
			add = append(add, x.askScan(sc, false))
			x.facts += sc.tables
		}
		x.facts += sub.none
		x.silent, outside = sub.silent, sub.outside
	}
	if (len(outside) > 0 || len(x.inside) > 0) && !x.wrap(outside) {
		x.missing("its end was not found")
	}
	if grouped && !x.wrapped && x.join != nil && (!x.join.grouped || (x.below > 0 || x.bounded) && len(s.DistinctClause) == 0) {
		add = append(add, x.join.columns(x)...)
	}
	if grouped && !x.wrapped && x.join == nil {
		add = append(add, x.counts.column(x, false)...)
	}
	beside := !x.wrapped && x.besides(s)
	if !x.wrapped && !beside {
		add = append(add, tellClocks(x)...)
	}
	x.edits = append(x.edits, rewrite.Edit{At: at, Add: ", " + strings.Join(add, ", ")})
	if beside {
		x.wrap(nil)
	}
	x.incomplete(c)
	if len(list) == 1 && list[0].up == "" && len(c.tables) == 1 {
		x.plan.Predicate = !pinned(s.WhereClause, list[0])
	}
	x.finish()
}

// whole tells what a query reads by scans of all of it. If that is not possible nothing changes.
func (x *planner) whole(s *pg.SelectStmt, c content) bool {
	if c.writes || locks(s) {
		return false
	}
	before := *x
	list, ok := x.entire(s)
	if !ok {
		if limit := x.limit(s); limit != "" {
			x.counted = s
			list, ok = x.entire(s)
			for i := range list {
				list[i].below = limit
			}
		}
	}
	bare := s.Op == pg.SetOperation_SETOP_NONE && len(s.ValuesLists) == 0 && len(x.content(&pg.SelectStmt{FromClause: s.FromClause}).tables) == 0
	if bare { // subqueries of its expressions alone read tables
		list, ok = nil, !slices.ContainsFunc(s.FromClause, func(n *pg.Node) bool { return n.GetRangeVar() != nil })
	} else if !ok && x.sharing(s) {
		list, ok, bare = nil, true, true
	}
	columns := len(s.TargetList)
	for _, sc := range list {
		for _, src := range sc.list {
			columns += len(src.rel.Columns)
		}
	}
	if !ok || len(list) == 0 && !bare || len(list) > maxHidden || columns > maxColumns {
		*x = before
		return false
	}
	x.edits, x.parts, x.arms, x.facts, x.idle, x.inner, x.written = nil, nil, nil, 0, 0, 0, nil
	x.silent = !emptyTells(s) || c.sets
	if s.Op == pg.SetOperation_SETOP_NONE && len(s.ValuesLists) == 0 {
		sub := x.subqueries(s, x.groups(s), false)
		list = append(list, sub.outside...)
		x.facts += sub.none
		x.silent = x.silent || sub.silent
	}
	if len(list) == 0 && (x.join == nil || x.join.blank || len(x.join.lists) == 0) || !x.wrap(list) {
		*x = before
		return false
	}
	if x.facts < len(c.tables) {
		x.missing("it reads tables in subqueries")
	}
	x.finish()
	return true
}

// sharing reports whether a query has a FROM clause of common table expressions alone that other parts use, too: what it reads of them is among what is
// told of a subquery that reads all of them.
func (x *scene) sharing(s *pg.SelectStmt) bool {
	return s.Op == pg.SetOperation_SETOP_NONE && len(s.FromClause) > 0 && !slices.ContainsFunc(s.FromClause, func(n *pg.Node) bool {
		rv := n.GetRangeVar()
		return rv == nil || rv.Schemaname != "" || x.scope[rv.Relname] == 0 || x.ctes[rv.Relname].uses < 2
	})
}

// limit gives the LIMIT of a query whose columns cost nothing: a small number, but more than one row. The server has all of the answer before the client
// gets its first row, so it is not made to compute what may fail, or much.
func (x *instrumentation) limit(s *pg.SelectStmt) string {
	n := s.LimitCount.GetAConst().GetIval()
	if n == nil || s.LimitOption != pg.LimitOption_LIMIT_OPTION_COUNT || s.LimitOffset != nil && s.LimitOffset.GetAConst().GetIval() == nil {
		return ""
	}
	for _, t := range s.TargetList {
		v := t.GetResTarget().GetVal()
		f := v.GetFuncCall()
		if count := f != nil && pgsyntax.LastName(f.Funcname) == "count" && f.Over == nil && x.function("count")&rewrite.FunctionUser == 0; v.GetColumnRef() == nil && !count {
			return ""
		}
	}
	x.literal = true
	if n.Ival < 2 || n.Ival > maxCounted {
		return ""
	}
	return strconv.Itoa(int(n.Ival))
}

// maxCounted is the largest LIMIT up to which the rows of an answer are counted.
const maxCounted = 1000

// groups reports whether a query may group rows.
func (x *judge) groups(s *pg.SelectStmt) bool {
	grouped, doubt := x.aggregates(s)
	return grouped || doubt != "" || len(s.GroupClause) > 0 || s.HavingClause != nil
}

// plainAggregates are aggregate functions whose result does not depend on the order of what they aggregate, as far as
// their values are exact.
var plainAggregates = map[string]bool{
	"count": true, "sum": true, "avg": true, "min": true, "max": true, "bool_and": true, "bool_or": true, "every": true,
}

// ordered reports whether collecting versions in an aggregate query could change the order of its rows, as an aggregate
// with DISTINCT or one that needs much memory keeps the server from hashing, or what it aggregates.
func (x *judge) ordered(s *pg.SelectStmt) bool {
	found := len(s.GroupClause) > 0 || s.HavingClause != nil
	pgsyntax.WalkAll(s.TargetList, func(m proto.Message) bool {
		if f, ok := m.(*pg.FuncCall); ok {
			name := pgsyntax.LastName(f.Funcname)
			found = found || x.function(name)&rewrite.FunctionAggregate != 0 && !plainAggregates[name]
		}
		return !found
	})
	return found
}

// askable finds the tables of a SELECT whose versions can be appended to its target list.
func (x *instrumentation) askable(s *pg.SelectStmt) (list []source, why string) {
	list, ok := x.sources(s.FromClause, s.TargetList, len(s.FromClause) == 1)
	switch {
	case !ok:
		return nil, "two tables have the same name"
	case len(list) > maxHidden:
		return nil, fmt.Sprintf("more than %d tables", maxHidden)
	case wide(s.TargetList, list):
		return nil, "it has very many columns"
	case x.targetEnd(s) < 0:
		return nil, "the end of its select list was not found"
	}
	x.locked(s, list)
	list = x.kept(s, list, true)
	if len(s.DistinctClause) > 0 && !x.distinct {
		x.missing("DISTINCT ON shows one row of each group only")
	}
	return list, ""
}

// covered reports whether the server may answer a query from an index alone, in the order of the index. Asking for
// versions takes that way from it, and the rows might come in another order.
func (x *judge) covered(s *pg.SelectStmt) bool {
	if len(s.FromClause) != 1 || len(s.SortClause) > 0 || len(s.LockingClause) > 0 {
		return false
	}
	rv := s.FromClause[0].GetRangeVar()
	if rv == nil || x.scope[rv.Relname] > 0 {
		return false
	}
	rel, _ := x.resolve(rv)
	if rel == nil || rel.Rows >= 0 && rel.Rows < minCovered {
		return false
	}
	src := source{rel: rel, ref: refName(rv)}
	if pinned(s.WhereClause, src) {
		return false
	}
	var names []string
	pgsyntax.Walk(s, func(m proto.Message) bool {
		if r, ok := m.(*pg.ColumnRef); ok {
			names = append(names, r.Fields[len(r.Fields)-1].GetString_().GetSval()) // "" for a star
		}
		return true
	})
	covers := func(ix []string) bool {
		return !slices.ContainsFunc(names, func(n string) bool { return n == "" || !slices.Contains(ix, n) })
	}
	return slices.ContainsFunc(rel.Indexes, covers) || slices.ContainsFunc(rel.Unique, covers)
}

// minCovered is how many rows a table has at least for the server to prefer an index to reading it all.
const minCovered = 500

// askGroups asks for the versions behind each row of an aggregate query; nil if the tables are too large.
func (x *instrumentation) askGroups(s *pg.SelectStmt, list []source) []string {
	if s.HavingClause != nil {
		x.missing(condition.HiddenGroups)
	}
	if len(s.GroupClause) > 0 && (s.LimitCount != nil || s.LimitOffset != nil) {
		x.limitGroups(s)
	}
	single := len(list) == 1 && list[0].up == "" && len(s.FromClause) == 1 && s.FromClause[0].GetRangeVar() != nil
	if slices.ContainsFunc(list, func(src source) bool { return src.rel.Rows > maxGroupRows }) {
		return nil
	}
	var add []string
	for _, src := range list {
		add = append(add, x.askGroup(src, small(list, maxGroupBytes), !single))
	}
	return add
}

// incomplete notes what the captured tables do not tell.
func (x *planner) incomplete(c content) {
	if x.facts < len(c.tables) {
		x.missing("it reads tables in subqueries")
	}
	if c.sets {
		x.missing("a function that returns a set may drop rows")
	}
}

// unionAll asks each arm of a UNION ALL for its versions: nothing is compared, so rows stay what they are. All arms
// get the same number of columns.
func (x *planner) unionAll(s *pg.SelectStmt, c content) {
	type arm struct {
		at   int
		list []source
	}
	var arms []arm
	width, beyond := 1, false
	var visit func(s *pg.SelectStmt) string
	visit = func(s *pg.SelectStmt) string {
		defer x.enter(s.WithClause)()
		if beyond = beyond || x.beyond(s); beyond {
			return noColumn
		}
		if s.Op == pg.SetOperation_SETOP_UNION && s.All {
			if why := visit(s.Larg); why != "" {
				return why
			}
			return visit(s.Rarg)
		}
		grouped, why := x.form(s)
		if grouped {
			why = "aggregates in a set operation"
		}
		if why != "" {
			return why
		}
		list, why := x.askable(s)
		if why != "" {
			return why
		}
		width = max(width, len(list))
		arms = append(arms, arm{x.targetEnd(s), list})
		x.facts, x.idle = x.facts+len(list)+x.idle, 0
		return ""
	}
	before := *x
	if why := visit(s); beyond {
		x.opaque(noColumn)
		return
	} else if why != "" || x.facts < len(c.tables) {
		told := *x
		if *x = before; x.whole(s, c) {
			return
		}
		if *x = told; why != "" {
			x.opaque("%s", why)
			return
		}
	}
	if x.facts == 0 {
		x.opaque("no table of its FROM clauses can be asked for row versions")
		return
	}
	for i, a := range arms {
		x.parts = nil
		var add strings.Builder
		for _, src := range a.list {
			add.WriteString(", " + x.ask(src, history.OpRead, false, fmt.Sprintf("'%d'", i)))
		}
		for n := len(a.list); n < width; n++ {
			text := "NULL"
			if n == 0 {
				text = fmt.Sprintf("'%d '", i)
			}
			fmt.Fprintf(&add, ", %s::pg_catalog.text AS %s", text, pgsyntax.Quote(x.hiddenName(n+1)))
		}
		x.edits = append(x.edits, rewrite.Edit{At: a.at, Add: add.String()})
		x.arms = append(x.arms, x.parts)
	}
	if x.parts = nil; len(x.inside) > 0 && !x.wrap(nil) {
		x.missing("its end was not found")
	}
	x.incomplete(c)
	x.finish()
}

// form says whether a SELECT groups rows, and why the versions of its tables cannot be appended to its target list.
func (x *judge) form(s *pg.SelectStmt) (grouped bool, why string) {
	switch {
	case s.Op != pg.SetOperation_SETOP_NONE:
		return false, "set operation"
	case len(s.ValuesLists) > 0:
		return false, "VALUES"
	case len(s.TargetList) == 0:
		return false, "it has no columns"
	}
	for _, d := range s.DistinctClause {
		if d.Node == nil { // DISTINCT without ON is a list of one empty node
			return false, "DISTINCT"
		}
	}
	aggregate, doubt := x.aggregates(s)
	grouped = aggregate || len(s.GroupClause) > 0 || s.HavingClause != nil
	if grouped {
		return true, ""
	}
	return false, doubt
}

// aggregates says whether s has a call of an aggregate function, or may have one. A call inside a subquery belongs to s
// as well if all its column references do (manual, 4.2.7).
func (x *judge) aggregates(s *pg.SelectStmt) (sure bool, doubt string) {
	var inside []*pg.SelectStmt // the subqueries around
	var visit func(m proto.Message) bool
	visit = func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.SelectStmt:
			inside = append(inside, n)
			pgsyntax.WalkParts(n.ProtoReflect(), visit)
			inside = inside[:len(inside)-1]
			return false
		case *pg.GroupingFunc:
			sure = sure || len(inside) == 0
		case *pg.FuncCall:
			name := pgsyntax.LastName(n.Funcname)
			if n.Over != nil || x.function(name)&rewrite.FunctionAggregate == 0 {
				return true
			}
			if len(inside) > 0 && x.local(n, inside[len(inside)-1]) {
				return true
			}
			if len(inside) == 0 && x.function(name)&rewrite.FunctionPlain == 0 {
				sure = true
			} else {
				doubt = name + " may be an aggregate function of the outer query"
			}
		}
		return true
	}
	pgsyntax.WalkAll(s.TargetList, visit)
	pgsyntax.WalkAll(s.SortClause, visit)
	pgsyntax.WalkAll(s.DistinctClause, visit)
	pgsyntax.WalkAll(s.WindowClause, visit)
	return sure, doubt
}

// local reports whether an aggregate call certainly belongs to the SELECT in which it stands: it has no column
// references, or one of a table of that SELECT.
func (x *judge) local(call *pg.FuncCall, s *pg.SelectStmt) bool {
	some, own := false, false
	pgsyntax.Walk(call, func(m proto.Message) bool {
		ref, ok := m.(*pg.ColumnRef)
		if !ok {
			return true
		}
		some = true
		for _, f := range s.FromClause {
			pgsyntax.Walk(f, func(m proto.Message) bool {
				if rv, ok := m.(*pg.RangeVar); ok {
					own = own || x.columnOf(ref, rv)
				}
				_, sub := m.(*pg.SelectStmt)
				return !sub
			})
		}
		return true
	})
	return own || !some
}

// columnOf reports whether a column reference certainly is to a column of a table.
func (x *scene) columnOf(ref *pg.ColumnRef, rv *pg.RangeVar) bool {
	name := refName(rv)
	switch f := ref.Fields; {
	case len(f) == 2:
		return f[0].GetString_().GetSval() == name
	case len(f) == 1 && len(rv.GetAlias().GetColnames()) == 0:
		return x.hasColumn(rv, f[0].GetString_().GetSval())
	}
	return false
}

// locks reports whether any part of a query locks rows.
func locks(s *pg.SelectStmt) bool {
	found := false
	pgsyntax.Walk(s, func(m proto.Message) bool {
		_, is := m.(*pg.LockingClause)
		found = found || is
		return !found
	})
	return found
}

// locked marks the sources that a FOR UPDATE or FOR SHARE clause locks.
func (x *judge) locked(s *pg.SelectStmt, list []source) {
	for _, n := range s.LockingClause {
		l := n.GetLockingClause()
		of := map[string]bool{}
		for _, r := range l.LockedRels {
			of[r.GetRangeVar().GetRelname()] = true
		}
		for i := range list {
			if len(of) == 0 || of[list[i].ref] {
				list[i].lock = true
			}
		}
	}
}

// targetEnd is the place behind the last item of a select list, or -1.
func (x *scene) targetEnd(s *pg.SelectStmt) int {
	last := s.TargetList[len(s.TargetList)-1].GetResTarget()
	if last == nil || last.Location < 0 { // TABLE t has a star that stands nowhere
		return -1
	}
	return clauseEnd(x.tokens(int(last.Location)))
}

// clauseEnd is the place behind the clause that begins with the first token, or -1. The keywords of through do not
// end it.
func clauseEnd(toks []*pg.ScanToken, through ...pg.Token) int {
	depth := 0
	for i, t := range toks {
		switch {
		case i == 0:
		case depth == 0 && (t.Token == pgsyntax.TokenClose || t.Token == pgsyntax.TokenEnd):
			return int(toks[i-1].End)
		case depth == 0 && (t.Token == pg.Token_RETURNING && pgsyntax.BeginsClause(toks, i) || t.Token == pg.Token_ON && i+1 < len(toks) && toks[i+1].Token == pg.Token_CONFLICT):
			return int(toks[i-1].End) // of INSERT ... SELECT
		case depth == 0 && pgsyntax.AfterTargets[t.Token] && !slices.Contains(through, t.Token) && pgsyntax.BeginsClause(toks, i):
			return int(toks[i-1].End)
		}
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
		}
	}
	if len(toks) == 0 {
		return -1
	}
	return int(toks[len(toks)-1].End)
}
