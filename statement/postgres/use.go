package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// uses collects the mentions of tables.
type uses struct {
	list []use
	sub  bool // there is a query within the statement
}

// use is a mention with its place in the text, as far as it is known.
type use struct {
	statement.TableUse
	at int32
}

// around is what is around a part of a tree.
type around struct {
	statement.Around
	lock func(ref string) statement.Lock
}

// inner is what is around a query within c.
func (c around) inner(p statement.Place) around { return around{Around: c.Inner(p)} }

func (u *uses) inOrder() (list []statement.TableUse) {
	slices.SortStableFunc(u.list, func(a, b use) int { return int(a.at - b.at) })
	for _, m := range u.list {
		list = append(list, m.TableUse)
	}
	return list
}

// add notes a name.
func (u *uses) add(rv *pg.RangeVar, c around, m statement.TableUse) {
	m.Kind, m.Schema, m.Name, m.Alias = statement.SourceTable, rv.Schemaname, rv.Relname, rv.GetAlias().GetAliasname()
	m.Place, m.Depth = c.Place, c.Depth
	m.SQL = pgsyntax.Quote(rv.Relname)
	if rv.Schemaname != "" {
		m.SQL = pgsyntax.Quote(rv.Schemaname) + "." + m.SQL
	}
	if rv.Catalogname != "" {
		m.SQL = pgsyntax.Quote(rv.Catalogname) + "." + m.SQL
	}
	m.Ref = m.SQL
	if m.Alias != "" {
		m.Ref = pgsyntax.Quote(m.Alias)
	}
	if m.Read && !m.Target && rv.Schemaname == "" && slices.Contains(c.Names, rv.Relname) {
		m.Kind = statement.SourceCTE
	}
	if c.lock != nil && m.Kind == statement.SourceTable {
		name := m.Alias
		if name == "" {
			name = m.Name
		}
		m.Lock = c.lock(name)
	}
	u.list = append(u.list, use{m, rv.Location})
}

// top is for the statement itself.
func (u *uses) top(n *pg.Node) {
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt, *pg.Node_InsertStmt, *pg.Node_UpdateStmt, *pg.Node_DeleteStmt, *pg.Node_MergeStmt:
		u.node(n, around{})
	case *pg.Node_DropStmt:
		for _, o := range s.DropStmt.Objects {
			u.dropped(o.GetList().GetItems())
		}
	default:
		u.utility(n)
	}
}

func (u *uses) dropped(names []*pg.Node) {
	rv := &pg.RangeVar{Relname: pgsyntax.LastName(names)}
	if len(names) > 1 {
		rv.Schemaname = pgsyntax.LastName(names[:len(names)-1])
	}
	if rv.Relname != "" {
		u.add(rv, around{}, statement.TableUse{Target: true})
	}
}

// utility notes the tables of a statement that is not about rows: those outside of queries it works on.
func (u *uses) utility(n *pg.Node) {
	target := true
	if c := n.GetCopyStmt(); c != nil {
		target = c.IsFrom
	}
	if n.GetLockStmt() != nil || n.GetVacuumStmt() != nil {
		target = false
	}
	pgsyntax.Walk(n, func(m proto.Message) bool {
		switch s := m.(type) {
		case *pg.SelectStmt, *pg.InsertStmt, *pg.UpdateStmt, *pg.DeleteStmt, *pg.MergeStmt:
			u.sub = true
			u.message(s, around{}.inner(statement.PlaceSelect))
			return false
		case *pg.Constraint:
			if s.Pktable != nil {
				u.add(s.Pktable, around{}, statement.TableUse{})
			}
			return false
		case *pg.RangeVar:
			u.add(s, around{}, statement.TableUse{Target: target, Read: n.GetCopyStmt() != nil && !target})
		}
		return true
	})
}

func (u *uses) node(n *pg.Node, c around) {
	pgsyntax.Walk(n, func(m proto.Message) bool { return u.visit(m, c) })
}

func (u *uses) nodes(list []*pg.Node, c around) {
	pgsyntax.WalkAll(list, func(m proto.Message) bool { return u.visit(m, c) })
}

func (u *uses) message(m proto.Message, c around) {
	pgsyntax.Walk(m, func(m proto.Message) bool { return u.visit(m, c) })
}

// visit deals with what names tables, and with what brings other names with it.
func (u *uses) visit(m proto.Message, c around) bool {
	switch s := m.(type) {
	case *pg.SelectStmt:
		u.query(s, c)
	case *pg.InsertStmt:
		c = u.with(s.WithClause, c)
		u.add(s.Relation, c, statement.TableUse{Target: true, Read: s.OnConflictClause.GetAction() == pg.OnConflictAction_ONCONFLICT_UPDATE})
		u.inserted(s.SelectStmt, c)
		u.message(s.OnConflictClause, c)
		u.nodes(s.ReturningList, c)
	case *pg.UpdateStmt:
		c = u.with(s.WithClause, c)
		u.add(s.Relation, c, statement.TableUse{Target: true, Read: true})
		u.from(s.FromClause, c)
		u.nodes(s.TargetList, c)
		u.node(s.WhereClause, c)
		u.nodes(s.ReturningList, c)
	case *pg.DeleteStmt:
		c = u.with(s.WithClause, c)
		u.add(s.Relation, c, statement.TableUse{Target: true, Read: true})
		u.from(s.UsingClause, c)
		u.node(s.WhereClause, c)
		u.nodes(s.ReturningList, c)
	case *pg.MergeStmt:
		c = u.with(s.WithClause, c)
		u.add(s.Relation, c, statement.TableUse{Target: true, Read: true})
		u.from([]*pg.Node{s.SourceRelation}, c)
		u.node(s.JoinCondition, c)
		u.nodes(s.MergeWhenClauses, c)
		u.nodes(s.ReturningList, c)
	case *pg.RangeVar:
		u.add(s, c, statement.TableUse{Read: true})
	case *pg.RangeSubselect:
		u.derived(s, c)
	case *pg.RangeFunction:
		u.function(s, c)
	case *pg.SubLink:
		u.sub = true
		u.node(s.Testexpr, c)
		u.node(s.Subselect, c.inner(statement.PlaceSubquery))
	case *pg.LockingClause: // it names tables of the FROM clause
	case *pg.IntoClause:
		u.add(s.Rel, c, statement.TableUse{Target: true})
	default:
		return true
	}
	return false
}

// inserted is the query of an INSERT. A list of values is none.
func (u *uses) inserted(n *pg.Node, c around) {
	s := n.GetSelectStmt()
	if s == nil {
		return
	}
	if len(s.ValuesLists) > 0 && s.WithClause == nil {
		u.nodes(s.ValuesLists, c)
		return
	}
	u.sub = true
	u.node(n, c.inner(statement.PlaceSelect))
}

// with goes through the common table expressions. Without RECURSIVE each sees only those before it (manual, 7.8).
func (u *uses) with(w *pg.WithClause, c around) around {
	add := func(e *pg.CommonTableExpr) { c.Names = append(slices.Clip(c.Names), e.Ctename) }
	if w.GetRecursive() {
		for _, n := range w.Ctes {
			add(n.GetCommonTableExpr())
		}
	}
	for _, n := range w.GetCtes() {
		e := n.GetCommonTableExpr()
		u.sub = true
		u.node(e.Ctequery, c.inner(statement.PlaceCTE))
		if !w.Recursive {
			add(e)
		}
	}
	return c
}

func (u *uses) query(s *pg.SelectStmt, c around) {
	locked := c.lock
	c = u.with(s.WithClause, c)
	if s.Op != pg.SetOperation_SETOP_NONE {
		arm := around{c.Arm(), c.lock}
		u.query(s.Larg, arm)
		u.query(s.Rarg, arm)
	}
	from := c
	if len(s.LockingClause) > 0 {
		from.lock = func(ref string) statement.Lock {
			l := lockOf(s.LockingClause, ref)
			if locked != nil && locked(ref).Stronger(l) {
				return locked(ref)
			}
			return l
		}
	}
	c.lock = nil
	if s.IntoClause != nil {
		u.message(s.IntoClause, c)
	}
	u.from(s.FromClause, from)
	for _, list := range [][]*pg.Node{s.TargetList, s.DistinctClause, {s.WhereClause}, s.GroupClause, {s.HavingClause}, s.WindowClause, s.SortClause,
		{s.LimitOffset}, {s.LimitCount}, s.ValuesLists} {
		u.nodes(list, c)
	}
}

func (u *uses) from(list []*pg.Node, c around) { u.nodes(list, c) }

// derived is a subquery in FROM. A lock of the query around it is one of its tables, too, but not of a common table expression
// (manual, SELECT, "The Locking Clause").
func (u *uses) derived(s *pg.RangeSubselect, c around) {
	u.sub = true
	ref := s.GetAlias().GetAliasname()
	m := statement.TableUse{Kind: statement.SourceDerived, Alias: ref, Read: true, Place: c.Place, Depth: c.Depth}
	if ref != "" {
		m.Ref = pgsyntax.Quote(ref)
	}
	first := len(u.list)
	u.list = append(u.list, use{m, -1})
	in := c.inner(statement.PlaceDerived)
	if c.lock != nil {
		if l := c.lock(ref); l != statement.LockNone {
			in.lock = func(string) statement.Lock { return l }
		}
	}
	u.node(s.Subquery, in)
	for _, t := range u.list[first+1:] { // it begins before all that is in it
		if at := u.list[first].at; at < 0 || t.at >= 0 && t.at < at {
			u.list[first].at = t.at
		}
	}
}

func (u *uses) function(s *pg.RangeFunction, c around) {
	m := statement.TableUse{Kind: statement.SourceFunction, Alias: s.GetAlias().GetAliasname(), Read: true, Place: c.Place, Depth: c.Depth}
	at := int32(-1)
	pgsyntax.WalkAll(s.Functions, func(p proto.Message) bool {
		if f, ok := p.(*pg.FuncCall); ok && m.Name == "" {
			m.Name, at = pgsyntax.LastName(f.Funcname), f.Location
		}
		return true
	})
	m.Ref = pgsyntax.Quote(m.Name)
	if m.Alias != "" {
		m.Ref = pgsyntax.Quote(m.Alias)
	}
	u.list = append(u.list, use{m, at})
	u.nodes(s.Functions, around{Around: c.Around})
}

// lockOf is the strongest lock of the clauses that is on ref.
func lockOf(clauses []*pg.Node, ref string) statement.Lock {
	strongest := statement.LockNone
	for _, n := range clauses {
		l := n.GetLockingClause()
		on := len(l.LockedRels) == 0
		for _, r := range l.LockedRels {
			on = on || r.GetRangeVar().GetRelname() == ref
		}
		if s := strengths[l.Strength]; on && s.Stronger(strongest) {
			strongest = s
		}
	}
	return strongest
}

var strengths = map[pg.LockClauseStrength]statement.Lock{
	pg.LockClauseStrength_LCS_FORKEYSHARE:    statement.LockKeyShare,
	pg.LockClauseStrength_LCS_FORSHARE:       statement.LockShare,
	pg.LockClauseStrength_LCS_FORNOKEYUPDATE: statement.LockNoKeyUpdate,
	pg.LockClauseStrength_LCS_FORUPDATE:      statement.LockUpdate,
}
