package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// selectStmt conceals what a query shows. sc is the scope around it; where it is the client's own query it is nil.
func (k *concealer) selectStmt(s *pg.SelectStmt, up *scope) {
	top := up == nil
	if top {
		up = &scope{}
	}
	sc := k.with(s.WithClause, up)
	if s.Op != pg.SetOperation_SETOP_NONE {
		k.selectStmt(s.Larg, sc)
		k.selectStmt(s.Rarg, sc)
		return
	}
	k.from(s.FromClause, sc)
	if k.tableStmt(s, sc) {
		return
	}
	s.TargetList = k.targets(s.TargetList, s.FromClause, sc, top && s.IntoClause == nil)
	for _, v := range s.ValuesLists {
		if l := v.GetList(); l != nil {
			l.Items = k.expandList(l.Items, sc)
		}
	}
	k.clauses(s, sc)
}

// exists leaves the select list of an EXISTS subquery alone: it is not evaluated (manual, 9.23.1).
func (k *concealer) exists(s *pg.SelectStmt, up *scope) {
	if s.Op != pg.SetOperation_SETOP_NONE || len(s.TargetList) != 1 {
		k.selectStmt(s, &scope{up: up})
		return
	}
	if f := s.TargetList[0].GetResTarget().GetVal().GetColumnRef().GetFields(); len(f) == 0 || f[len(f)-1].GetAStar() == nil {
		k.selectStmt(s, &scope{up: up})
		return
	}
	sc := k.with(s.WithClause, up)
	k.from(s.FromClause, sc)
	k.clauses(s, sc)
}

func (k *concealer) clauses(s *pg.SelectStmt, sc *scope) {
	for _, d := range s.DistinctClause {
		k.node(d, sc)
	}
	k.node(s.WhereClause, sc)
	k.nodes(s.GroupClause, sc)
	k.node(s.HavingClause, sc)
	k.nodes(s.WindowClause, sc)
	k.nodes(s.SortClause, sc)
	k.node(s.LimitOffset, sc)
	k.node(s.LimitCount, sc)
}

// tableStmt makes a SELECT of TABLE name.
func (k *concealer) tableStmt(s *pg.SelectStmt, sc *scope) bool {
	if len(s.TargetList) != 1 || len(s.FromClause) != 1 {
		return false
	}
	ref := s.TargetList[0].GetResTarget().GetVal().GetColumnRef()
	rv := s.FromClause[0].GetRangeVar()
	if ref == nil || ref.Location >= 0 || rv == nil {
		return false
	}
	cols, ok := k.starred(nil, s.FromClause, sc)
	if ok && cols == nil {
		return true
	}
	var word *pg.ScanToken
	for _, t := range k.tokens(k.scene.from) {
		if int(t.Start) >= int(rv.Location) {
			break
		}
		if t.Token != pg.Token_ONLY && t.Token != pgsyntax.TokenOpen {
			word = t
		}
	}
	if !ok || word == nil || word.Token != pg.Token_TABLE {
		k.shows("TABLE %s", rv.Relname)
		return true
	}
	k.edit(int(word.Start), int(word.End-word.Start), "SELECT "+listed(cols)+" FROM")
	s.TargetList = k.parsedTargets(listed(cols))
	return true
}

// target makes the scope of a write: its table first.
func (k *concealer) target(rv *pg.RangeVar, sc *scope) (*item, *rewrite.Relation) {
	i := k.tableItem(rv, &scope{}) // the target is never a common table expression
	sc.items = append(sc.items, i)
	rel, _ := k.relation(rv)
	if rel != nil && !hides(rel) {
		rel = nil
	}
	return i, rel
}

func (k *concealer) insertStmt(s *pg.InsertStmt, up *scope) {
	outer := scopeOf(up)
	sc := k.with(s.WithClause, outer)
	k.node(s.SelectStmt, &scope{up: sc})
	_, rel := k.target(s.Relation, sc)
	if rel != nil && len(s.Cols) == 0 && s.SelectStmt != nil {
		k.columnList(s, rel)
	}
	if oc := s.OnConflictClause; oc != nil {
		inner := &scope{up: sc}
		if i := sc.items[0]; i.hides {
			x := *i
			x.ref, x.schema, x.cols = "excluded", "", slices.Clone(i.cols)
			for n := range x.cols {
				x.cols[n].qualifier = []string{"excluded"}
			}
			inner.items = append(inner.items, &x)
		}
		k.nodes(oc.TargetList, inner)
		k.node(oc.WhereClause, inner)
		if rel != nil && oc.Action == pg.OnConflictAction_ONCONFLICT_UPDATE {
			oc.TargetList = k.stamp(oc.TargetList, rel, sc.items[0])
		}
	}
	s.ReturningList = k.targets(s.ReturningList, []*pg.Node{pgsyntax.TableNode(s.Relation)}, sc, up == nil)
}

// columnList names the columns that an INSERT without a list means: as many as there are values (manual, INSERT).
func (k *concealer) columnList(s *pg.InsertStmt, rel *rewrite.Relation) {
	src := s.SelectStmt.GetSelectStmt()
	n := -1
	switch arm := firstArm(src); {
	case arm == nil:
	case len(arm.ValuesLists) > 0:
		n = len(arm.ValuesLists[0].GetList().GetItems())
	default:
		n = outputs(arm.TargetList)
	}
	cols := visible(rel)
	first := firstHidden(rel)
	if n >= 0 && n <= first {
		return // the hidden columns stand behind
	}
	if n < 0 && first >= len(cols) {
		return // and there is nothing behind them
	}
	end := k.relationEnd(s.Relation, true)
	if n < 0 || end < 0 {
		k.shows("it is not known how many columns are inserted")
		return
	}
	var names []string
	for _, c := range cols[:min(n, len(cols))] {
		names = append(names, pgsyntax.Quote(c.Name))
	}
	k.edit(end, 0, " ("+strings.Join(names, ", ")+") ")
	s.Cols = k.insertColumns(names)
}

func (k *revision) insertColumns(names []string) []*pg.Node {
	tree, err := pgsyntax.Parse("INSERT INTO t (" + strings.Join(names, ", ") + ") VALUES (1)")
	if err != nil {
		k.err = err
		return nil
	}
	return tree.Stmts[0].Stmt.GetInsertStmt().Cols
}

func firstArm(s *pg.SelectStmt) *pg.SelectStmt {
	for s != nil && s.Op != pg.SetOperation_SETOP_NONE {
		s = s.Larg
	}
	return s
}

// outputs counts the columns of a target list whose stars were expanded; -1 if it has others.
func outputs(list []*pg.Node) int {
	for _, n := range list {
		v := n.GetResTarget().GetVal()
		if f := v.GetColumnRef().GetFields(); len(f) > 0 && f[len(f)-1].GetAStar() != nil {
			return -1
		}
		if ind := v.GetAIndirection().GetIndirection(); len(ind) > 0 && ind[len(ind)-1].GetAStar() != nil {
			return -1
		}
	}
	return len(list)
}

func (k *concealer) updateStmt(s *pg.UpdateStmt, up *scope) {
	sc := k.with(s.WithClause, scopeOf(up))
	i, rel := k.target(s.Relation, sc)
	k.from(s.FromClause, sc)
	k.nodes(s.TargetList, sc)
	k.node(s.WhereClause, sc)
	if rel != nil {
		s.TargetList = k.stamp(s.TargetList, rel, i)
	}
	s.ReturningList = k.targets(s.ReturningList, append([]*pg.Node{pgsyntax.TableNode(s.Relation)}, s.FromClause...), sc, up == nil)
}

func (k *concealer) deleteStmt(s *pg.DeleteStmt, up *scope) {
	sc := k.with(s.WithClause, scopeOf(up))
	k.target(s.Relation, sc)
	k.from(s.UsingClause, sc)
	k.node(s.WhereClause, sc)
	s.ReturningList = k.targets(s.ReturningList, append([]*pg.Node{pgsyntax.TableNode(s.Relation)}, s.UsingClause...), sc, up == nil)
}

func (k *concealer) mergeStmt(s *pg.MergeStmt, up *scope) {
	sc := k.with(s.WithClause, scopeOf(up))
	i, rel := k.target(s.Relation, sc)
	k.from([]*pg.Node{s.SourceRelation}, sc)
	k.node(s.JoinCondition, sc)
	for _, n := range s.MergeWhenClauses {
		w := n.GetMergeWhenClause()
		k.node(w.Condition, sc)
		k.nodes(w.TargetList, sc)
		w.Values = k.expandList(w.Values, sc)
		if rel == nil {
			continue
		}
		switch w.CommandType {
		case pg.CmdType_CMD_UPDATE:
			w.TargetList = k.stamp(w.TargetList, rel, i)
		case pg.CmdType_CMD_INSERT:
			if len(w.TargetList) == 0 && len(w.Values) > firstHidden(rel) {
				k.shows("MERGE inserts without a list of columns")
			}
		}
	}
}

// copyStmt names the columns that COPY without a list means: all but generated ones (manual, COPY).
func (k *concealer) copyStmt(s *pg.CopyStmt, up *scope) {
	if s.Query != nil {
		k.node(s.Query, up)
		return
	}
	rel, doubt := k.relation(s.Relation)
	if doubt != "" {
		k.shows("%s", doubt)
	}
	if rel == nil || !hides(rel) || len(s.Attlist) > 0 || rel.Kind == "view" {
		return
	}
	end := k.relationEnd(s.Relation, false)
	if end < 0 {
		k.shows("COPY")
		return
	}
	var names []string
	for _, c := range visible(rel) {
		if !c.Generated {
			names = append(names, pgsyntax.Quote(c.Name))
			s.Attlist = append(s.Attlist, pg.MakeStrNode(c.Name))
		}
	}
	k.edit(end, 0, " ("+strings.Join(names, ", ")+") ")
}

// stamp puts the assignment of the next stamp in front of a SET list. Where that could be noticed the row keeps its old
// stamp: then its new version has the name of the one before.
func (k *concealer) stamp(list []*pg.Node, rel *rewrite.Relation, target *item) []*pg.Node {
	if len(list) == 0 || unstamped(rel) != "" || k.asks {
		return list
	}
	set := -1
	for _, t := range k.tokens(k.scene.from) {
		if int(t.Start) >= int(list[0].GetResTarget().Location) {
			break
		}
		if t.Token == pg.Token_SET {
			set = int(t.End)
		}
	}
	if set < 0 {
		return list
	}
	add := rewrite.ColumnWriters + " = " + nextStamp(outcol{qualifier: []string{target.ref}, name: rewrite.ColumnWriters}.String())
	tree, err := pgsyntax.Parse("UPDATE t SET " + add)
	if err != nil {
		k.err = err
		return list
	}
	k.edit(set, 0, " "+add+",")
	return append(tree.Stmts[0].Stmt.GetUpdateStmt().TargetList, list...)
}

// unstamped says why an UPDATE of rel is not stamped.
func unstamped(rel *rewrite.Relation) string {
	switch {
	case !rel.Instrumented:
		return fmt.Sprintf("%s does not have the hidden columns", rel.RelationName)
	case rel.HasTriggers:
		// A trigger would see that the row changed where nothing else did (WHEN (OLD.* IS DISTINCT FROM NEW.*),
		// suppress_redundant_updates_trigger).
		return fmt.Sprintf("%s has triggers", rel.RelationName)
	case rel.HasRules:
		return fmt.Sprintf("%s has rules", rel.RelationName)
	case rel.ColumnGrants:
		return fmt.Sprintf("the user may perhaps not write all columns of %s", rel.RelationName)
	}
	return ""
}
