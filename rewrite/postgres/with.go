package postgres

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// An INSERT, UPDATE or DELETE in a WITH clause is executed once and to its end, whatever the statement around reads of it (manual, 7.8.4). So it is planned
// as it would be alone, under a name of ours, and the client's name becomes a query of it that has the client's columns only:
//
//	WITH u AS (UPDATE t ... RETURNING a, b) ...
//	WITH "wirecheck with 1" AS (UPDATE t ... RETURNING a, b, <versions>), u AS (SELECT a, b FROM "wirecheck with 1") ...
//
// The statement around gets one more column for each part, with all that the part told. The parts work side by side, in an order that the manual leaves
// open. Where that may show (triggers, functions of the user, two parts that write one table), nothing is changed.

// inside is a part of a WITH clause that writes.
type inside struct {
	*planner
	name    string
	ref     string // our name of it
	at      int    // where its own name begins
	open    int    // behind the bracket that opens its text
	shut    int    // in front of the one that closes it
	columns []string
	star    bool // the columns are those of the table
	row     bool // they are taken from a whole row, as the server may know others by then; so they have lost their origin
}

// writesInside is why a statement is not seen that writes in such a way.
const writesInside = "it writes inside WITH"

type insides []*inside

// maxInside is how many rows a part has at most that are told where they come with each row of the answer; else it is maxScan.
const maxInside = 100

// apart plans the parts of a statement's WITH clause that write, and gives the statement without them. Where there are none, or they cannot be seen, it
// gives the statement itself.
func (x *planner) apart(n *pg.Node) *pg.Node {
	with := withOf(n)
	if with == nil || with.Recursive || !x.native || x.catalog.Standby || !x.orderless(n) {
		return n
	}
	rest := proto.Clone(n).(*pg.Node)
	scope, siblings := map[string]int{}, map[string]*pg.SelectStmt{}
	var list insides
	end := 0
	for i, c := range with.Ctes {
		e := c.GetCommonTableExpr()
		in := x.insideOf(e, len(list)+1)
		if in == nil {
			return n
		}
		end = in.shut
		if e.Ctequery.GetSelectStmt() == nil {
			in.scope, in.siblings = maps.Clone(scope), maps.Clone(siblings)
			in.inner = x.inner
			if !in.plans(e, n.GetInsertStmt() != nil) {
				return n
			}
			x.inner = in.inner
			list = append(list, in)
			withOf(rest).Ctes[i].GetCommonTableExpr().Ctequery = nil
		}
		scope[e.Ctename]++
		siblings[e.Ctename] = e.Ctequery.GetSelectStmt()
	}
	unused(rest)
	toks := x.tokens(end)
	if len(list) == 0 || len(toks) < 2 || len(list) > maxHidden || locksItself(rest.GetSelectStmt()) {
		return n
	}
	x.inside, x.from, x.unsaid = list, int(toks[1].Start), !x.tells(rest, list)
	return rest
}

// unused takes the queries out of a WITH clause that only its parts used, or nothing: then the server does not execute them.
func unused(rest *pg.Node) {
	list := withOf(rest).Ctes
	for i := len(list) - 1; i >= 0; i-- {
		found := false
		pgsyntax.Walk(rest, func(m proto.Message) bool {
			rv, ok := m.(*pg.RangeVar)
			found = found || ok && rv.Schemaname == "" && rv.Relname == list[i].GetCommonTableExpr().Ctename
			return !found
		})
		if !found {
			list[i].GetCommonTableExpr().Ctequery = nil
		}
	}
}

// locksItself reports whether a query locks rows, its WITH clause aside.
func locksItself(s *pg.SelectStmt) bool {
	if s == nil {
		return false
	}
	s = proto.Clone(s).(*pg.SelectStmt)
	s.WithClause = nil
	return locks(s)
}

// withOf gives the WITH clause of a statement.
func withOf(n *pg.Node) *pg.WithClause {
	switch s := n.GetNode().(type) {
	case *pg.Node_SelectStmt:
		return s.SelectStmt.WithClause
	case *pg.Node_InsertStmt:
		return s.InsertStmt.WithClause
	case *pg.Node_UpdateStmt:
		return s.UpdateStmt.WithClause
	case *pg.Node_DeleteStmt:
		return s.DeleteStmt.WithClause
	}
	return nil
}

// orderless reports whether the order in which the parts of a statement work cannot show.
func (x *scene) orderless(n *pg.Node) bool {
	c := x.content(n)
	if len(c.user) > 0 || c.asks || c.into != nil {
		return false
	}
	var written []string
	for _, rv := range c.targets {
		rel, _ := x.resolve(rv)
		if rel == nil || rel.HasTriggers || rel.HasRules || rel.Cascades() || slices.Contains(written, topName(rel)) {
			return false
		}
		written = append(written, topName(rel))
	}
	return true
}

// topName names a table, or of a partition the one at the top.
func topName(rel *rewrite.Relation) string {
	if rel.Root != nil {
		rel = rel.Root
	}
	return rel.String()
}

// insideOf finds the text of a part; nil if it is not found.
func (x *scene) insideOf(e *pg.CommonTableExpr, number int) *inside {
	if e.SearchClause != nil || e.CycleClause != nil {
		return nil
	}
	toks := x.tokens(int(e.Location))
	from, depth := -1, 0
	for i, t := range toks {
		if t.Token == pgsyntax.TokenClose {
			if depth--; depth == 0 && from >= 0 {
				s := *x
				s.from, s.to = int(toks[from+1].Start), int(t.Start)
				in := &inside{planner: newPlanner(&s), name: e.Ctename, ref: fmt.Sprintf("%swith %d", x.hiddenPrefix(), number), at: int(e.Location), open: int(toks[from].End), shut: int(t.Start)}
				in.inWith = true
				return in
			}
		}
		if t.Token == pgsyntax.TokenOpen {
			if depth == 0 && i > 0 && slices.ContainsFunc(toks[1:i], func(t *pg.ScanToken) bool { return t.Token == pg.Token_AS }) {
				from = i
			}
			depth++
		}
	}
	return nil
}

// plans plans a part as a statement of its own, and reports whether it tells something. unseen says that the client does not see the origin of its columns.
func (in *inside) plans(e *pg.CommonTableExpr, unseen bool) bool {
	var returning []*pg.Node
	rv, others := (*pg.RangeVar)(nil), 0
	switch s := e.Ctequery.Node.(type) {
	case *pg.Node_InsertStmt:
		in.insertStmt(s.InsertStmt)
		returning, rv = s.InsertStmt.ReturningList, s.InsertStmt.Relation
	case *pg.Node_UpdateStmt:
		in.updateStmt(s.UpdateStmt)
		returning, rv, others = s.UpdateStmt.ReturningList, s.UpdateStmt.Relation, len(s.UpdateStmt.FromClause)
	case *pg.Node_DeleteStmt:
		in.deleteStmt(s.DeleteStmt)
		returning, rv, others = s.DeleteStmt.ReturningList, s.DeleteStmt.Relation, len(s.DeleteStmt.UsingClause)
	}
	if in.plan.Hidden == 0 {
		return false
	}
	in.predicates(e.Ctequery)
	asks := slices.DeleteFunc(in.plan.Asks, func(a rewrite.Ask) bool { return a.Within && !a.Met }) // whether these were evaluated, its own rows tell, and not those of the answer
	if len(asks) < len(in.plan.Asks) {
		in.plan.Unread = rewrite.SeveralTables
	}
	in.plan.Asks = asks
	if len(returning) == 0 {
		return in.ctes[e.Ctename].uses == 0 // else the server finds an error
	}
	in.columns = in.shown(returning, rv, others == 0)
	if in.star && firm(in.scene) {
		ref := refName(rv)
		if !unseen || len(returning) > 1 || slices.Contains(in.columns, ref) {
			return false
		}
		in.star, in.row = false, true
		in.edits[len(in.edits)-1].Add += ", " + pgsyntax.Quote(ref) + " AS " + pgsyntax.Quote(in.hiddenPrefix()+"row")
	}
	return len(in.columns) > 0 && len(e.Aliascolnames) <= len(in.columns)
}

// shown gives the names of the columns that RETURNING shows; none if they are not certain. alone says that there is no other table.
func (in *inside) shown(returning []*pg.Node, rv *pg.RangeVar, alone bool) (names []string) {
	rel, _ := in.resolve(rv)
	for _, t := range returning {
		f := t.GetResTarget().GetVal().GetColumnRef().GetFields()
		switch {
		case len(f) == 0 || f[len(f)-1].GetAStar() == nil:
			names = append(names, columnName(t))
		case len(f) == 1 && alone, len(f) == 2 && f[0].GetString_().GetSval() == refName(rv):
			in.star = true
			for _, a := range rel.Columns {
				names = append(names, a.Name)
			}
		default:
			return nil
		}
	}
	for i, name := range names {
		if name == "" || slices.Contains(names[:i], name) {
			return nil
		}
	}
	return names
}

// edited gives the edits of a part.
func (in *inside) edited() []rewrite.Edit {
	add := ""
	if len(in.columns) > 0 {
		quoted := make([]string, len(in.columns))
		for i, c := range in.columns {
			quoted[i] = pgsyntax.Quote(c)
		}
		if in.row {
			quoted = []string{"(wirecheck." + pgsyntax.Quote(in.hiddenPrefix()+"row") + ").*"}
		}
		add = ", " + copied(in.at, in.open) + "SELECT " + strings.Join(quoted, ", ") + " FROM " + pgsyntax.Quote(in.ref) + " wirecheck)"
	}
	return append(in.edits, rewrite.Edit{At: in.at, Cut: in.open - in.at, Add: pgsyntax.Quote(in.ref) + " AS ("}, rewrite.Edit{At: in.shut + 1, Add: add})
}

// askInside gives the columns that have what the parts told. once says that only the first row of the answer is to have them.
func (x *planner) askInside(once bool) (columns []string) {
	for _, in := range x.inside {
		hidden := make([]string, in.plan.Hidden)
		for i := range hidden {
			hidden[i] = "wirecheck." + pgsyntax.Quote(in.hiddenName(i+1))
		}
		list, from := strings.Join(hidden, ", "), pgsyntax.Quote(in.ref)
		if in.star { // the server finds an error before it executes anything if the table has got other columns
			names := ""
			for _, c := range in.columns {
				names += "wirecheck." + pgsyntax.Quote(c) + ", "
			}
			from = fmt.Sprintf("(SELECT wirecheck.* FROM %s wirecheck UNION ALL SELECT %s%s FROM %s wirecheck WHERE false)", from, names, list, from)
		}
		limit := maxInside
		if once {
			limit = maxScan
		}
		expr := fmt.Sprintf("(SELECT CASE WHEN pg_catalog.count(*) <= %d THEN coalesce(pg_catalog.json_agg(pg_catalog.json_build_array(%s)), '[]')::pg_catalog.text END FROM %s wirecheck)", limit, list, from)
		if once {
			expr = "CASE WHEN pg_catalog.row_number() OVER () > 1 THEN '' ELSE " + expr + " END"
		}
		columns = append(columns, x.hidden(part{rows: in.plan.Decode}, expr))
	}
	x.collected = true
	return columns
}

// addInside makes what the parts tell a part of the plan.
func (x *planner) addInside() {
	if len(x.inside) > 0 && !x.collected {
		x.missing(writesInside)
		x.inside = nil
	}
	for _, in := range x.inside {
		x.facts++
		x.whys = append(x.whys, in.whys...)
		x.edits = append(x.edits, in.edited()...)
		x.written = append(x.written, in.written...)
		x.plan.Predicate = x.plan.Predicate || in.plan.Predicate
		x.plan.Asks = append(x.plan.Asks, in.plan.Asks...)
		x.plan.Unread = cmp.Or(x.plan.Unread, in.plan.Unread)
	}
	x.silent = x.silent || x.unsaid && len(x.inside) > 0
}

// currentRead says of all parts of a statement what Plan.CurrentRead says of one. rest is the statement without the parts.
func (list insides) currentRead(n, rest *pg.Node, current bool) bool {
	some := false
	note := func(n *pg.Node, is bool) {
		if n.GetUpdateStmt() != nil || n.GetInsertStmt().GetOnConflictClause().GetAction() == pg.OnConflictAction_ONCONFLICT_UPDATE {
			current, some = (current || !some) && is, true
		}
	}
	note(rest, current)
	for _, c := range withOf(n).GetCtes() {
		for _, in := range list {
			if e := c.GetCommonTableExpr(); in.at == int(e.Location) {
				note(e.Ctequery, in.plan.CurrentRead)
			}
		}
	}
	return some && current
}

// tells reports whether an answer without rows, or of no rows that are inserted, means that the only part had none.
func (x *judge) tells(n *pg.Node, list insides) bool {
	s := n.GetSelectStmt()
	if i := n.GetInsertStmt(); i != nil && i.OnConflictClause == nil {
		s = i.SelectStmt.GetSelectStmt()
	}
	if s == nil || s.Op != pg.SetOperation_SETOP_NONE || s.LimitCount != nil || s.LimitOffset != nil || s.HavingClause != nil || len(list) != 1 || x.content(s).sets {
		return false
	}
	if one, _ := x.aggregates(s); one && len(s.GroupClause) == 0 {
		return true
	}
	rv := (*pg.RangeVar)(nil)
	if len(s.FromClause) == 1 {
		rv = s.FromClause[0].GetRangeVar()
	}
	return s.WhereClause == nil && rv != nil && rv.Schemaname == "" && rv.Relname == list[0].name
}

// decodeRows reads what a part of a WITH clause told: for each of its rows an array of its hidden columns.
func (p *part) decodeRows(out []history.Access, text []byte) ([]history.Access, error) {
	var rows [][]*string
	if err := json.Unmarshal(text, &rows); err != nil {
		return nil, fmt.Errorf("%w: %w", errHidden, err)
	}
	var partial error
	for _, row := range rows {
		cells := make([][]byte, len(row))
		for i, c := range row {
			if c != nil {
				cells[i] = []byte(*c)
			}
		}
		list, err := p.rows(out, cells)
		if err != nil && !errors.Is(err, rewrite.ErrPartial) {
			return nil, err
		}
		partial = errors.Join(partial, err)
		out = list
	}
	return out, partial
}

// strip takes what was added to the parts out of the tree.
func (list insides) strip(n *pg.Node) bool {
	with := withOf(n)
	for _, in := range list {
		i := slices.IndexFunc(with.GetCtes(), func(c *pg.Node) bool { return c.GetCommonTableExpr().GetCtename() == in.ref })
		if i < 0 || !in.strip(with.Ctes[i].GetCommonTableExpr().Ctequery) {
			return false
		}
		e := with.Ctes[i].GetCommonTableExpr()
		e.Ctename = in.name
		if len(in.columns) == 0 {
			continue
		}
		if i+1 >= len(with.Ctes) {
			return false
		}
		ours := with.Ctes[i+1].GetCommonTableExpr()
		from := ours.GetCtequery().GetSelectStmt().GetFromClause()
		if ours.GetCtename() != in.name || len(from) != 1 || from[0].GetRangeVar().GetRelname() != in.ref {
			return false
		}
		e.Aliascolnames, e.Ctematerialized = ours.Aliascolnames, ours.Ctematerialized
		with.Ctes = slices.Delete(with.Ctes, i+1, i+2)
	}
	return true
}
