package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// asksText is why a statement goes as the client wrote it: the server would show the text that was sent, or store it.
const asksText = "it may ask for its own text"

// writes notes what is written inside of a statement, and that it is not seen.
func (x *planner) writes(c content) {
	if len(c.targets) > 0 {
		x.missing(writesInside)
	}
}

// write is an INSERT, UPDATE or DELETE in one form.
type write struct {
	node      proto.Message
	relation  *pg.RangeVar
	with      *pg.WithClause
	from      []*pg.Node // other tables that RETURNING can see
	where     *pg.Node
	returning []*pg.Node
	op        history.Op
	upsert    bool
}

func (x *planner) insertStmt(s *pg.InsertStmt) {
	w := write{node: s, relation: s.Relation, with: s.WithClause, returning: s.ReturningList, op: history.OpInsert}
	src := s.SelectStmt.GetSelectStmt()
	x.plan.Predicate = src != nil && len(src.ValuesLists) == 0 && len(x.content(s).tables) > 1
	if oc := s.OnConflictClause; oc != nil {
		switch oc.Action {
		case pg.OnConflictAction_ONCONFLICT_UPDATE:
			w.upsert = true
			x.plan.CurrentRead = x.currentRead(oc.TargetList, s.Relation)
			if oc.WhereClause != nil {
				x.missing(metPassed)
			}
		default:
			if x.plan.Met = x.met(s) && len(src.ValuesLists) > 1; x.plan.Met || len(x.plan.Asks) == 0 {
				x.missing(metNothing)
			}
		}
	}
	if src != nil && x.many(src) {
		x.opaque("it may insert very many rows")
		return
	}
	x.write(w)
	if p := x.plan; (p.Why == metNothing || p.Why == metPassed) && p.Coverage == history.CoverageApproximate && len(src.GetValuesLists()) > 0 {
		p.WithRows, p.Rows = history.CoverageExact, len(src.ValuesLists) // all rows were inserted or updated, so it passed over none
	}
}

// Why ON CONFLICT is not seen in full.
const (
	metNothing = "ON CONFLICT DO NOTHING does not tell which rows it met"
	metPassed  = "ON CONFLICT ... WHERE does not tell which rows it passed over"
)

func (x *planner) updateStmt(s *pg.UpdateStmt) {
	x.plan.CurrentRead = x.currentRead(s.TargetList, s.Relation)
	x.write(write{node: s, relation: s.Relation, with: s.WithClause, from: s.FromClause, where: s.WhereClause,
		returning: s.ReturningList, op: history.OpUpdate})
}

func (x *planner) deleteStmt(s *pg.DeleteStmt) {
	x.write(write{node: s, relation: s.Relation, with: s.WithClause, from: s.UsingClause, where: s.WhereClause,
		returning: s.ReturningList, op: history.OpDelete})
}

// unlisted are the columns of an INSERT that does not list them.
func (w *write) unlisted(rel *rewrite.Relation) []string {
	if insert, ok := w.node.(*pg.InsertStmt); ok && len(insert.Cols) == 0 {
		return rel.ClientColumns()
	}
	return nil
}

func (x *planner) write(w write) {
	findClocks(x, []*pg.Node{w.where})
	c := x.content(w.node)
	for _, f := range c.user {
		x.missing("function %s may read and write tables", f)
	}
	if len(c.targets) > 1 {
		x.missing(writesInside)
	}
	x.plan.Predicate = x.plan.Predicate || w.op != history.OpInsert
	rel, why := x.resolve(w.relation)
	if rel == nil {
		x.opaque("%s", why)
		return
	}
	x.plan.Columns = w.unlisted(rel)
	current := w.where.GetCurrentOfExpr() != nil
	if current && (!x.native || len(rel.Key) == 0) {
		x.opaque("WHERE CURRENT OF in a table without a primary key")
		return
	}
	if c.asks {
		x.opaque("%s", asksText)
		return
	}
	if why := unreturning(rel); why != "" {
		x.opaque("%s", why)
		return
	}
	if why := unstamped(rel); !x.native && (w.upsert || w.op == history.OpUpdate) && why != "" {
		x.opaque("%s", why)
		return
	}
	if !x.native && !rel.Instrumented {
		x.opaque("%s does not have the hidden columns", rel.RelationName)
		return
	}
	if x.native && rel.Kind == "partitioned" && (w.upsert || w.op == history.OpUpdate && moves(w.node, rel)) {
		x.opaque("rows of %s may be routed to another partition", rel.RelationName)
		return
	}
	if w.op != history.OpInsert && w.where == nil && rel.Rows > maxRows {
		x.opaque("it may change very many rows")
		return
	}
	target := source{rel: rel, ref: w.relation.Relname}
	if a := w.relation.Alias; a != nil {
		target.ref = a.Aliasname
	}
	defer x.enter(w.with)()
	others, ok := x.sources(w.from, w.returning, false)
	if !ok || slices.ContainsFunc(others, func(s source) bool { return s.ref == target.ref }) {
		x.opaque("two tables have the same name")
		return
	}
	if len(others) >= maxHidden || wide(w.returning, append(others, target)) {
		x.opaque("it has very many tables or columns")
		return
	}
	toks := x.tokens(x.from)
	if len(toks) == 0 {
		x.opaque("its end was not found")
		return
	}
	target = target.sure(len(w.from) == 0, []*pg.Node{w.where})
	if x.linked = x.native && x.links(w, target, len(c.tables)+len(c.user)); x.linked {
		x.link(w, target)
	}
	list := []string{x.ask(target, w.op, w.upsert)}
	for _, s := range others {
		list = append(list, x.ask(s, history.OpRead, false))
	}
	x.facts = len(list)
	list = append(list, x.images(target, &w)...)
	if len(c.tables) > x.facts && len(c.targets) == 1 && !rel.HasTriggers {
		list = append(list, x.beside(w)...)
	}
	if len(c.tables) == x.facts+1 && x.locksOwn(w, target) {
		x.facts++
	}
	list = append(list, x.askSnapshot(w.op != history.OpInsert && !x.inWith && !(len(c.tables) == 1 && pinned(w.where, target)))...)
	told := x.askInside(false)
	list, x.plan.Same = append(list, told...), x.plan.Same+len(told)
	list = append(append(list, cascades(x, w, target)...), tellClocks(x)...)
	add := " RETURNING "
	if len(w.returning) > 0 {
		add = ", "
	}
	x.plan.NoRows = len(w.returning) == 0
	x.edits = append(x.edits, rewrite.Edit{At: int(toks[len(toks)-1].End), Add: add + strings.Join(list, ", ")})
	if len(c.tables) > x.facts {
		x.missing("it reads tables in subqueries")
	}
	if w.op != history.OpInsert && len(w.from) == 0 {
		x.plan.Predicate = !current && !pinned(w.where, target)
	}
	x.sideEffects(w, rel)
	x.finish()
}

// beside gives the hidden columns that tell what the subqueries of a write read, or the query of an INSERT. They stand in RETURNING, which sees what
// the statement's snapshot shows: they meet the same versions, also where a row was found again after waiting for another transaction.
func (x *planner) beside(w write) (columns []string) {
	var sub subqueries
	switch s := w.node.(type) {
	case *pg.InsertStmt:
		q := s.SelectStmt.GetSelectStmt()
		if q == nil || len(q.ValuesLists) > 0 {
			return nil
		}
		list, ok := x.entire(q)
		if !ok || locks(q) {
			return nil
		}
		if q.Op == pg.SetOperation_SETOP_NONE {
			sub = x.subqueries(q, x.groups(q), false)
		}
		sub.outside = append(list, sub.outside...)
		sub.silent = sub.silent || !emptyTells(q) || s.OnConflictClause != nil
	case *pg.UpdateStmt:
		if !x.assignsBeside(s) {
			sub = x.subqueries(&pg.SelectStmt{TargetList: s.TargetList, FromClause: asFrom(w), WhereClause: s.WhereClause}, false, true)
		}
	case *pg.DeleteStmt:
		sub = x.subqueries(&pg.SelectStmt{FromClause: asFrom(w), WhereClause: s.WhereClause}, false, true)
	}
	if len(sub.outside)+len(sub.inside) > maxHidden {
		return nil
	}
	for _, sc := range append(sub.outside, sub.inside...) {
		if sc.pair == nil {
			sc.limit = min(sc.limit, maxEach) // all of it comes with each row
		}
		columns = append(columns, x.askScan(sc, false))
		x.facts += sc.tables
	}
	x.facts += sub.none
	x.silent = sub.silent
	if w.op == history.OpInsert {
		x.plan.Same = len(columns)
	}
	return columns
}

// locksOwn reports whether the only subquery of a write locks the rows that it writes, as workers take a job: WHERE id = (SELECT id FROM job ... FOR UPDATE).
// What that reads is then what the statement overwrites, or nothing where it writes nothing.
func (x *judge) locksOwn(w write, target source) bool {
	e, key := w.where.GetAExpr(), keyColumns(target.rel)
	if w.op == history.OpInsert || len(w.from) > 0 || w.with != nil || e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || pgsyntax.LastName(e.Name) != "=" ||
		len(key) != 1 || pgsyntax.Column(e.Lexpr, target.ref) != key[0] || e.Rexpr.GetSubLink().GetSubLinkType() != pg.SubLinkType_EXPR_SUBLINK {
		return false
	}
	q := e.Rexpr.GetSubLink().Subselect.GetSelectStmt()
	if q == nil || !locks(q) || !x.closed(q) || len(q.FromClause) != 1 || q.FromClause[0].GetRangeVar() == nil || len(q.TargetList) != 1 {
		return false
	}
	rv := q.FromClause[0].GetRangeVar()
	rel, _ := x.resolve(rv)
	ref := q.TargetList[0].GetResTarget().GetVal().GetColumnRef()
	return rel != nil && rel.RelationName == target.rel.RelationName && rel.Kind == "table" && ref != nil && x.columnOf(ref, rv) && pgsyntax.Column(&pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: ref}}, refName(rv)) == key[0]
}

// asFrom gives the tables of an UPDATE or DELETE as a FROM clause.
func asFrom(w write) []*pg.Node {
	return append([]*pg.Node{{Node: &pg.Node_RangeVar{RangeVar: w.relation}}}, w.from...)
}

// assignsBeside reports whether an UPDATE changes a column that has the name of one to which a subquery of it refers: RETURNING has its new value.
func (x *judge) assignsBeside(s *pg.UpdateStmt) bool {
	changed := map[string]bool{}
	for _, t := range s.TargetList {
		changed[t.GetResTarget().GetName()] = true
	}
	if rel, _ := x.resolve(s.Relation); rel != nil {
		for _, a := range rel.Columns {
			changed[a.Name] = changed[a.Name] || a.Generated
		}
	}
	found := false
	pgsyntax.Walk(s, func(m proto.Message) bool {
		if l, ok := m.(*pg.SubLink); ok {
			if x.closed(l.Subselect.GetSelectStmt()) && l.Testexpr == nil {
				return false // all that it names is its own
			}
			pgsyntax.Walk(l, func(m proto.Message) bool {
				if r, ok := m.(*pg.ColumnRef); ok {
					found = found || changed[r.Fields[len(r.Fields)-1].GetString_().GetSval()]
				}
				return !found
			})
		}
		return !found
	})
	return found
}

// links reports whether an UPDATE should tell the version that it replaces, and can. It should if the row has no key
// or gets another one. It can if rows go one by one from the scan of the only table to their update: then the
// condition that link adds is evaluated last for the very version that is replaced, also if that was found by
// EvalPlanQual after waiting for another transaction.
func (x *judge) links(w write, target source, others int) bool {
	s, ok := w.node.(*pg.UpdateStmt)
	if !ok || others > 1 || len(s.FromClause) > 0 || s.WithClause != nil || refersSubquery(s) || target.rel.Kind != "table" || s.WhereClause.GetCurrentOfExpr() != nil {
		return false
	}
	if key, _ := x.key(target); key == "" {
		return true
	}
	if _, wanted := x.image(target); wanted != nil {
		return true
	}
	for _, t := range s.TargetList {
		if slices.Contains(keyColumns(target.rel), t.GetResTarget().GetName()) {
			return true
		}
	}
	return false
}

// link adds the condition that remembers a version to the WHERE clause. Without a place for it there is no link.
func (x *instrumentation) link(w write, target source) {
	s := w.node.(*pg.UpdateStmt)
	last := s.TargetList[len(s.TargetList)-1].GetResTarget()
	toks := x.tokens(int(last.GetLocation()))
	depth, where, end := 0, -1, -1
	for i, t := range toks {
		if depth == 0 && i > 0 && toks[i-1].Token != pg.Token_AS && toks[i-1].Token != pgsyntax.TokenDot {
			switch t.Token {
			case pg.Token_WHERE:
				where = int(t.End)
			case pg.Token_RETURNING:
				end = int(toks[i-1].End)
			}
		}
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
		}
		if end >= 0 {
			break
		}
	}
	if end < 0 && len(toks) > 0 {
		end = int(toks[len(toks)-1].End)
	}
	if end < 0 || (where < 0) != (s.WhereClause == nil) {
		x.linked = false
		return
	}
	if where < 0 {
		x.edits = append(x.edits, rewrite.Edit{At: end, Add: " WHERE " + x.remember(target)})
		return
	}
	if s.WhereClause.GetBoolExpr().GetBoolop() == pg.BoolExprType_AND_EXPR {
		x.edits = append(x.edits, rewrite.Edit{At: end, Add: " AND " + x.remember(target)})
		return
	}
	x.edits = append(x.edits, rewrite.Edit{At: where, Add: openCondition}, rewrite.Edit{At: end, Add: closeCondition + x.remember(target)})
}

// What stands around a condition that link makes a part of an AND, and that was none.
const openCondition, closeCondition = " (", ") AND "

// Condition finds the condition of an UPDATE that edits of this package make a part of an AND. It is a byte offset between the word WHERE and the
// condition; ok says that there is one.
func Condition(edits []rewrite.Edit) (at int, ok bool) {
	for i := 1; i < len(edits); i++ {
		if edits[i-1].Add == openCondition && strings.HasPrefix(edits[i].Add, closeCondition) {
			return edits[i-1].At, true
		}
	}
	return 0, false
}

// sideEffects notes what else changes when rows of rel do.
func (x *planner) sideEffects(w write, rel *rewrite.Relation) {
	if rel.HasTriggers {
		x.missing("triggers on %s may read and write tables", rel.RelationName)
	}
	var targets []*pg.Node
	switch s := w.node.(type) {
	case *pg.UpdateStmt:
		targets = s.TargetList
	case *pg.InsertStmt:
		targets = s.OnConflictClause.GetTargetList()
	}
	// An UPDATE that moves a row to another partition deletes it in the first one.
	cascades := rel.CascadesDelete && (w.op == history.OpDelete || w.op == history.OpUpdate && (rel.Root != nil || rel.Kind == "partitioned"))
	for _, t := range targets {
		name := t.GetResTarget().GetName()
		cascades = cascades || slices.Contains(rel.CascadesUpdate, name)
		if x.native && !x.linked && slices.Contains(keyColumns(rel), name) {
			x.missing("it assigns a key column, so the row's former name is not seen")
		}
	}
	if cascades && x.plan.Cascades == nil {
		if len(x.whys) == 0 && w.op == history.OpDelete && !x.silent {
			x.plan.WithoutRows = history.CoverageExact // of no row nothing follows
		}
		x.missing("foreign keys that refer to %s may change other tables", rel.RelationName)
	}
}

// moves reports whether an UPDATE may assign a column of the partition key, which is part of the primary key if there
// is one.
func moves(m proto.Message, rel *rewrite.Relation) bool {
	key := keyColumns(rel)
	if s, ok := m.(*pg.UpdateStmt); ok && len(key) > 0 {
		for _, t := range s.TargetList {
			if slices.Contains(key, t.GetResTarget().GetName()) {
				return true
			}
		}
		return false
	}
	return true
}

// unreturning says why RETURNING cannot be added to a write of rel.
func unreturning(rel *rewrite.Relation) string {
	if why := unreadable(rel); why != "" {
		return why
	}
	switch {
	case rel.HasRules:
		return fmt.Sprintf("%s has rules", rel.RelationName)
	case rel.RowSecurity:
		// RETURNING makes the policies for SELECT apply to what is written (manual, CREATE POLICY).
		return fmt.Sprintf("%s has row security", rel.RelationName)
	}
	return ""
}

// maxRows is how many rows a statement may seem to change before RETURNING is thought too expensive: the server keeps
// the rows until the statement is done.
const maxRows = 1_000_000

// many reports whether the source of an INSERT may be very large.
func (x *scene) many(s *pg.SelectStmt) bool {
	many := false
	pgsyntax.Walk(s, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.FuncCall:
			many = many || pgsyntax.LastName(n.Funcname) == "generate_series"
		case *pg.SelectStmt:
			for _, f := range n.FromClause {
				rv := f.GetRangeVar()
				if rv == nil || n.WhereClause != nil || n.LimitCount != nil {
					continue
				}
				if rel, _ := x.resolve(rv); rel != nil && rel.Rows > maxRows {
					many = true
				}
			}
		}
		return !many
	})
	return many
}

// currentRead reports whether every column that is assigned is computed by the server from the row's current version,
// or without anything that the client may have taken from an earlier read. At least one is of the former kind. The primary key only tells which row it
// is: CASE WHEN id = 1 THEN 7 END, as Django's bulk_update() has it, is a value of the client's.
func (x *scene) currentRead(targets []*pg.Node, rv *pg.RangeVar) bool {
	var key []string
	if rel, _ := x.resolve(rv); rel != nil {
		key = rel.Key
	}
	ref := refName(rv)
	some := false
	for _, t := range targets {
		if !x.native && t.GetResTarget().GetName() == rewrite.ColumnWriters {
			continue // ours
		}
		own, client := false, false
		pgsyntax.Walk(t.GetResTarget().GetVal(), func(m proto.Message) bool {
			switch n := m.(type) {
			case *pg.SubLink:
				client = true // its reads are those of the statement's snapshot
			case *pg.ColumnRef:
				f := n.Fields
				switch name := f[len(f)-1].GetString_().GetSval(); {
				case slices.Contains(key, name) && name != t.GetResTarget().GetName():
				case len(f) == 1 && x.hasColumn(rv, f[0].GetString_().GetSval()):
					own = true
				case len(f) == 2 && f[0].GetString_().GetSval() == ref:
					own = true
				}
			case *pg.A_Const, *pg.ParamRef:
				client = true
			}
			return true
		})
		sub := refersSubquery(t)
		if sub || !own && client {
			return false
		}
		some = some || own
	}
	return some
}

func (x *scene) hasColumn(rv *pg.RangeVar, name string) bool {
	rel, _ := x.resolve(rv)
	return rel != nil && rel.Attribute(name) != nil
}

func refersSubquery(m proto.Message) bool {
	found := false
	pgsyntax.Walk(m, func(m proto.Message) bool {
		switch m.(type) {
		case *pg.SubLink, *pg.MultiAssignRef:
			found = true
		}
		return !found
	})
	return found
}
