package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// A wildcard q.* in a select list, or * where q is alone, would show what is added to the subquery q. It is written out, if the text of the subquery names its
// columns: what is known of tables may be older than they are.

// written is a wildcard of a subquery that was written out.
type written struct {
	ref   string
	names []string
	bare  bool // it was *
}

// stars finds the items ref.* of a select list, and * where q is alone; none if they are not all that refers to the whole row, or if the columns of q are not
// certain.
func (x *scene) stars(outputs []*pg.Node, ref string, q *pg.SelectStmt, alone bool) (stars []*pg.ColumnRef) {
	if !x.native || columnNames(q) == nil { // else the hidden columns are taken out of wildcards already
		return nil
	}
	bare := 0
	for _, n := range outputs {
		t := n.GetResTarget()
		f := t.GetVal().GetColumnRef().GetFields()
		switch {
		case len(f) == 1 && f[0].GetAStar() != nil:
			if bare++; !alone || t.GetVal().GetColumnRef().Location < 0 { // TABLE q has a star that stands nowhere
				return nil
			}
			stars = append(stars, t.Val.GetColumnRef())
		case len(f) == 2 && f[1].GetAStar() != nil && f[0].GetString_().GetSval() == ref && t.Name == "" && len(t.Indirection) == 0:
			stars = append(stars, t.Val.GetColumnRef())
		}
	}
	whole := 0
	pgsyntax.Walk(x.node, func(m proto.Message) bool {
		if r, is := m.(*pg.ColumnRef); is && r.Fields[0].GetString_().GetSval() == ref && (len(r.Fields) == 1 || r.Fields[len(r.Fields)-1].GetAStar() != nil) {
			whole++
		}
		return true
	})
	if whole != len(stars)-bare {
		return nil
	}
	return stars
}

// columnNames gives the names of a query's columns; nil if its text does not tell them, or if two are the same.
func columnNames(q *pg.SelectStmt) (names []string) {
	seen := map[string]bool{}
	for _, t := range q.TargetList {
		name := columnName(t)
		if name == "" || seen[name] {
			return nil
		}
		seen[name] = true
		names = append(names, name)
	}
	return names
}

// writeOut puts the columns in place of wildcards.
func (x *instrumentation) writeOut(stars []*pg.ColumnRef, ref string, names []string) {
	columns := make([]string, len(names))
	for i, name := range names {
		columns[i] = pgsyntax.Quote(ref) + "." + pgsyntax.Quote(name)
	}
	for _, star := range stars {
		toks := x.tokens(int(star.Location))
		last := 2*len(star.Fields) - 2
		if len(toks) <= last { // then the text does not prove right
			continue
		}
		at := int(toks[0].Start)
		x.edits = append(x.edits, rewrite.Edit{At: at, Cut: int(toks[last].End) - at, Add: strings.Join(columns, ", ")})
		x.written = append(x.written, written{ref, names, last == 0})
	}
}

// unwritten puts the wildcards back into a select list, and takes those that it found there out of left. Select lists come from the outside inwards.
func unwritten(list []*pg.Node, left *[]written) []*pg.Node {
	*left = slices.DeleteFunc(*left, func(w written) bool {
		for i := 0; i+len(w.names) <= len(list); i++ {
			if w.at(list[i:]) {
				star := []*pg.Node{pg.MakeStrNode(w.ref), {Node: &pg.Node_AStar{AStar: &pg.A_Star{}}}}
				if w.bare {
					star = star[1:]
				}
				one := &pg.Node{Node: &pg.Node_ResTarget{ResTarget: &pg.ResTarget{Val: &pg.Node{Node: &pg.Node_ColumnRef{ColumnRef: &pg.ColumnRef{Fields: star}}}}}}
				list = slices.Concat(list[:i], []*pg.Node{one}, list[i+len(w.names):])
				return true
			}
		}
		return false
	})
	return list
}

// at reports whether a select list begins with the columns.
func (w written) at(list []*pg.Node) bool {
	for i, name := range w.names {
		t := list[i].GetResTarget()
		f := t.GetVal().GetColumnRef().GetFields()
		if t.GetName() != "" || len(f) != 2 || f[0].GetString_().GetSval() != w.ref || f[1].GetString_().GetSval() != name {
			return false
		}
	}
	return true
}
