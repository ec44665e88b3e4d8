package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

// star expands a star over several FROM items; ok is false if it cannot be done.
func (k *showing) star(list []*pg.Node, sc *scope) (cols []outcol, ok bool) {
	counts := map[string]int{}
	merged, unknown := false, false
	for _, n := range list {
		u, ok := k.units(n, sc)
		if !ok {
			return nil, false
		}
		cols = append(cols, u...)
		all, known := k.columns(n, sc)
		unknown = unknown || !known
		for _, c := range all {
			counts[c.name]++
		}
	}
	for i, c := range cols {
		switch {
		case len(c.qualifier) > 0 || c.name == "":
		case counts[c.name] > 1 && c.same == nil:
			return nil, false
		case counts[c.name] > 1:
			cols[i].qualifier = c.same
		default:
			merged = true
		}
	}
	return cols, !merged || !unknown || len(list) == 1
}

// targets expands the stars of a target list or RETURNING list. from is the FROM clause that a bare star stands for.
func (k *concealer) targets(list []*pg.Node, from []*pg.Node, sc *scope, top bool) []*pg.Node {
	var out []*pg.Node
	for _, n := range list {
		t := n.GetResTarget()
		val := t.GetVal()
		ref := val.GetColumnRef()
		f := ref.GetFields()
		switch {
		case len(f) > 0 && f[len(f)-1].GetAStar() != nil:
			cols, ok := k.starred(f[:len(f)-1], from, sc)
			if !ok || cols == nil || ref.Location < 0 {
				if !ok {
					k.shows("a star could not be expanded")
				}
				out = append(out, n)
				continue
			}
			if !k.replace(int(ref.Location), 2*len(f)-1, listed(cols)) {
				k.shows("a star was not found")
				out = append(out, n)
				continue
			}
			out = append(out, k.parsedTargets(listed(cols))...)
			continue
		case val.GetAIndirection() != nil && k.rowStar(t, sc, &out):
			continue
		case top && len(f) == 1:
			if i := k.wholeRow(ref, sc); i != nil && k.record(val, i) {
				out = append(out, n)
				continue
			}
		}
		k.node(val, sc)
		out = append(out, n)
	}
	return out
}

// rowStar expands (t).* in a target list.
func (k *concealer) rowStar(t *pg.ResTarget, sc *scope, out *[]*pg.Node) bool {
	ind := t.Val.GetAIndirection()
	ref := ind.Arg.GetColumnRef()
	if ref == nil || len(ref.Fields) != 1 || len(ind.Indirection) != 1 || ind.Indirection[0].GetAStar() == nil {
		return false
	}
	i := k.wholeRow(ref, sc)
	if i == nil || i.cols == nil {
		return false
	}
	toks := k.tokens(int(t.Location))
	if len(toks) < 5 || toks[0].Token != pgsyntax.TokenOpen || toks[2].Token != pgsyntax.TokenClose || toks[3].Token != pgsyntax.TokenDot {
		return false
	}
	k.replace(int(t.Location), 5, listed(i.cols))
	*out = append(*out, k.parsedTargets(listed(i.cols))...)
	return true
}

// starred gives what a star stands for if something is hidden in it; nothing and true if nothing is.
func (k *showing) starred(qualifier []*pg.Node, from []*pg.Node, sc *scope) ([]outcol, bool) {
	if len(qualifier) == 0 {
		if !slices.ContainsFunc(from, func(n *pg.Node) bool { return k.hiding(n, sc) }) {
			return nil, true
		}
		return k.star(from, sc)
	}
	i := sc.find(qualifier)
	switch {
	case i == nil:
		return nil, true
	case i.doubt != "":
		return nil, false
	case !i.hides:
		return nil, true
	}
	return i.cols, i.cols != nil
}

// wholeRow gives the table whose whole row a column reference means, if the table has hidden columns. A column of that
// name goes first (transformColumnRef, src/backend/parser/parse_expr.c).
func (k *concealer) wholeRow(ref *pg.ColumnRef, sc *scope) *item {
	f := ref.Fields
	if n := len(f); n > 1 && f[n-1].GetAStar() != nil {
		f = f[:n-1]
		if i := sc.find(f); i != nil && (i.hides || i.doubt != "") {
			return i
		}
		return nil
	}
	if len(f) != 1 {
		return nil
	}
	name := f[0].GetString_().GetSval()
	i := sc.find(f)
	if name == "" || i == nil || !i.hides && i.doubt == "" {
		return nil
	}
	unknown := false
	for s := sc; s != nil; s = s.up {
		for _, o := range s.items {
			if slices.ContainsFunc(o.cols, func(c outcol) bool { return c.name == name }) {
				return nil
			}
			unknown = unknown || o.cols == nil && o != i && o.ref != name
		}
	}
	if unknown {
		k.shows("%s may be a whole row", name)
		return nil
	}
	return i
}

// record replaces a reference to a whole row by a row without the hidden columns. Its type is record, its name the same.
func (k *concealer) record(n *pg.Node, i *item) bool {
	if i.cols == nil || !i.table {
		return false
	}
	system := i.cols[0]
	system.name = "tableoid" // NULL if there is no row (the null side of an outer join)
	text := fmt.Sprintf("(SELECT %[1]s FROM (SELECT %[2]s WHERE %[3]s IS NOT NULL) %[1]s)", pgsyntax.Quote(i.ref), listed(i.cols), system)
	if !k.replace(int(n.GetColumnRef().Location), 2*len(n.GetColumnRef().Fields)-1, text) {
		return false
	}
	n.Node = k.parsed("SELECT "+text, func(s *pg.SelectStmt) *pg.Node { return s.TargetList[0].GetResTarget().Val }).GetNode()
	return true
}

// replace puts text in the place of n tokens.
func (k *revision) replace(at, n int, text string) bool {
	toks := k.tokens(at)
	if len(toks) < n || int(toks[0].Start) != at {
		return false
	}
	k.edit(at, int(toks[n-1].End)-at, " "+text+" ")
	return true
}

func (k *revision) parsed(sql string, pick func(*pg.SelectStmt) *pg.Node) *pg.Node {
	tree, err := pgsyntax.Parse(sql)
	if err != nil {
		k.err = err
		return &pg.Node{}
	}
	return pick(tree.Stmts[0].Stmt.GetSelectStmt())
}

func (k *revision) parsedTargets(list string) []*pg.Node {
	tree, err := pgsyntax.Parse("SELECT " + list)
	if err != nil {
		k.err = err
		return nil
	}
	return tree.Stmts[0].Stmt.GetSelectStmt().TargetList
}

// wholeRows are built-in functions that take a row of any type and do not show its type.
var wholeRows = map[string]bool{
	"row_to_json": true, "to_json": true, "to_jsonb": true, "json_agg": true, "jsonb_agg": true, "count": true, "concat": true,
	"concat_ws": true, "format": true, "json_build_object": true, "jsonb_build_object": true, "json_build_array": true,
	"jsonb_build_array": true, "json_object_agg": true, "jsonb_object_agg": true, "num_nulls": true, "num_nonnulls": true,
}

// expandList expands stars where the server does in ROW(...) and VALUES (...).
func (k *concealer) expandList(list []*pg.Node, sc *scope) []*pg.Node {
	var out []*pg.Node
	for _, n := range list {
		f := n.GetColumnRef().GetFields()
		if len(f) < 2 || f[len(f)-1].GetAStar() == nil {
			k.node(n, sc)
			out = append(out, n)
			continue
		}
		cols, ok := k.starred(f[:len(f)-1], nil, sc)
		if !ok {
			k.shows("a star could not be expanded")
		}
		if !ok || cols == nil || !k.replace(int(n.GetColumnRef().Location), 2*len(f)-1, listed(cols)) {
			out = append(out, n)
			continue
		}
		for _, t := range k.parsedTargets(listed(cols)) {
			out = append(out, t.GetResTarget().Val)
		}
	}
	return out
}
