package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// maxMet is how many rows an INSERT has at most of which each asks.
const maxMet = 100

// met notes what INSERT ... ON CONFLICT DO NOTHING asks for each of its rows: whether there is a row with its key. It reports whether that is certain: one
// key alone can be in the way, and the text gives its values.
func (x *planner) met(s *pg.InsertStmt) bool {
	rel, _ := x.resolve(s.Relation)
	rows := s.SelectStmt.GetSelectStmt().GetValuesLists()
	if rel == nil || !x.native || x.catalog.Standby || len(rows) == 0 || len(rows) > maxMet || rel.Kind != "table" || rel.Root != nil || rel.HasTriggers {
		return false
	}
	var asks []rewrite.Ask
	for _, row := range rows {
		ask, ok := metBy(x, s, rel, row.GetList().GetItems())
		if !ok {
			return false
		}
		asks = append(asks, ask)
	}
	x.plan.Asks = append(x.plan.Asks, asks...)
	return true
}

// metBy is what one row of an INSERT asks.
func metBy(x *planner, s *pg.InsertStmt, rel *rewrite.Relation, row []*pg.Node) (ask rewrite.Ask, ok bool) {
	given := map[string]*pg.Node{}
	for i, n := range row {
		name := ""
		switch {
		case i < len(s.Cols) && len(s.Cols[i].GetResTarget().Indirection) == 0:
			name = s.Cols[i].GetResTarget().Name
		case len(s.Cols) == 0 && i < len(rel.Columns):
			name = rel.Columns[i].Name
		default:
			return ask, false
		}
		if n.GetSetToDefault() == nil {
			given[name] = n
		}
	}
	ask = rewrite.Ask{Table: rel.String(), Met: true, Within: x.inWith, Current: true, Pinned: true, Where: condition.Condition{Op: "and"}}
	for _, name := range arbiter(s.OnConflictClause.Infer, rel, given) {
		at := rel.Attribute(name)
		if at == nil || given[name] == nil {
			return ask, false
		}
		kind := kindOf(at)
		v, ok := x.value(given[name], kind, at.Type, &ask)
		// A value that the column takes in another form, as 1.6 in an integer, is none to compare with.
		if fits := kind == condition.Text || kind == condition.UUID || strings.HasPrefix(at.Type, "int") && given[name].GetAConst().GetFval() == nil; !ok || v == nil || !fits {
			return ask, false
		}
		ask.Where.Args = append(ask.Where.Args, condition.Open("=", kind, name, v))
	}
	if len(ask.Where.Args) == 0 || len(ask.Where.Reasons()) > 0 {
		return ask, false
	}
	if len(ask.Where.Args) == 1 {
		ask.Where = ask.Where.Args[0]
	}
	return ask, true
}

// arbiter gives the columns of the only key by which a row can be in the way of a new one; none if that is not certain. Without a conflict target
// every unique index and exclusion constraint is looked at (manual, INSERT).
func arbiter(target *pg.InferClause, rel *rewrite.Relation, given map[string]*pg.Node) (key []string) {
	if target == nil {
		return rel.Arbiter(func(column string) bool { // or by a default that each row may have: the catalog does not tell it, but numbers and UUIDs are counted or random
			at := rel.Attribute(column)
			return given[column] != nil || at == nil || kindOf(at) != condition.Number && kindOf(at) != condition.UUID
		})
	}
	if target.Conname != "" || target.WhereClause != nil {
		return nil
	}
	for _, n := range target.IndexElems {
		e := n.GetIndexElem()
		if e.Name == "" || len(e.Collation) > 0 || len(e.Opclass) > 0 {
			return nil
		}
		key = append(key, e.Name)
	}
	same := func(u []string) bool {
		return len(u) == len(key) && !slices.ContainsFunc(u, func(c string) bool { return !slices.Contains(key, c) })
	}
	if !slices.ContainsFunc(rel.Unique, same) {
		return nil
	}
	return key
}
