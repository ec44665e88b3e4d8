package postgres

import (
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

// outcol is one column that a star stands for, or all columns of one table.
type outcol struct {
	qualifier []string
	name      string // empty: all columns of qualifier
	typ       string
	same      []string // of a column merged by USING: the qualifier under which the same column is known, if there is one
}

func (c outcol) String() string {
	var b strings.Builder
	for _, q := range c.qualifier {
		b.WriteString(pgsyntax.Quote(q) + ".")
	}
	if c.name == "" {
		return b.String() + "*"
	}
	return b.String() + pgsyntax.Quote(c.name)
}

func listed(cols []outcol) string {
	var list []string
	for _, c := range cols {
		list = append(list, c.String())
	}
	return strings.Join(list, ", ")
}

// hiding reports whether a FROM item has hidden columns anywhere.
func (k *showing) hiding(n *pg.Node, sc *scope) bool {
	switch f := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		i := k.tableItem(f.RangeVar, sc)
		return i.hides || i.doubt != ""
	case *pg.Node_RangeTableSample:
		return k.hiding(f.RangeTableSample.Relation, sc)
	case *pg.Node_JoinExpr:
		return k.hiding(f.JoinExpr.Larg, sc) || k.hiding(f.JoinExpr.Rarg, sc)
	}
	return false
}

// columns gives the visible columns of a FROM item one by one, in the order of a star.
func (k *showing) columns(n *pg.Node, sc *scope) ([]outcol, bool) {
	switch f := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		rv := f.RangeVar
		if i := k.tableItem(rv, sc); i.cols != nil || i.doubt != "" {
			return i.cols, i.doubt == ""
		}
		return nil, false
	case *pg.Node_RangeTableSample:
		return k.columns(f.RangeTableSample.Relation, sc)
	case *pg.Node_RangeSubselect:
		ref := f.RangeSubselect.GetAlias().GetAliasname()
		var out []outcol
		for i, name := range names(f.RangeSubselect.Subquery) {
			if a := f.RangeSubselect.GetAlias().GetColnames(); i < len(a) {
				name = a[i].GetString_().GetSval()
			}
			out = append(out, outcol{qualifier: []string{ref}, name: name})
		}
		return out, out != nil && ref != ""
	case *pg.Node_JoinExpr:
		return k.joined(f.JoinExpr, sc)
	}
	return nil, false
}

// joined gives the columns of a join: first those that it merges, then the others of the left and the right side
// (manual, 7.2.1.1).
func (k *showing) joined(j *pg.JoinExpr, sc *scope) ([]outcol, bool) {
	left, ok1 := k.columns(j.Larg, sc)
	right, ok2 := k.columns(j.Rarg, sc)
	if !ok1 || !ok2 {
		return nil, false
	}
	var using []string
	for _, n := range j.UsingClause {
		using = append(using, n.GetString_().GetSval())
	}
	if j.IsNatural {
		using = common(left, right)
	}
	var out []outcol
	for _, u := range using {
		out = append(out, merged(u, j.Jointype, left, right))
	}
	for _, c := range slices.Concat(left, right) {
		if !slices.Contains(using, c.name) {
			out = append(out, c)
		}
	}
	if j.Alias != nil {
		seen := map[string]bool{}
		for i := range out {
			if seen[out[i].name] {
				return nil, false // alias.name would be ambiguous
			}
			seen[out[i].name] = true
			out[i].qualifier, out[i].same = []string{j.Alias.Aliasname}, nil
			if i < len(j.Alias.Colnames) {
				return nil, false
			}
		}
	}
	return out, true
}

// plain are types without modifiers: two columns of such a type are described alike.
var plain = map[string]bool{"int2": true, "int4": true, "int8": true, "text": true, "uuid": true, "date": true, "bool": true}

// merged is a column that USING merges. Unless the join is a full one it is that of one side, if the types are the same
// (buildMergedJoinVar, src/backend/parser/parse_clause.c).
func merged(name string, join pg.JoinType, left, right []outcol) outcol {
	out := outcol{name: name}
	is := func(c outcol) bool { return c.name == name }
	l, r := slices.IndexFunc(left, is), slices.IndexFunc(right, is)
	if l < 0 || r < 0 || left[l].typ != right[r].typ {
		return out
	}
	side := left[l]
	switch join {
	case pg.JoinType_JOIN_INNER, pg.JoinType_JOIN_LEFT:
	case pg.JoinType_JOIN_RIGHT:
		side = right[r]
	default:
		return out
	}
	out.typ = side.typ
	if out.same = side.same; len(side.qualifier) > 0 && plain[side.typ] {
		out.same = side.qualifier
	}
	return out
}

// common gives the names that both sides of a join have, in the order of the left one.
func common(left, right []outcol) []string {
	var out []string
	for _, l := range left {
		if slices.ContainsFunc(right, func(r outcol) bool { return r.name == l.name }) {
			out = append(out, l.name)
		}
	}
	return out
}

// natural makes USING out of NATURAL where both sides have hidden columns, which would be joined too.
func (k *concealer) natural(j *pg.JoinExpr, sc *scope) {
	if !k.hiding(j.Larg, sc) || !k.hiding(j.Rarg, sc) {
		return
	}
	left, ok1 := k.columns(j.Larg, sc)
	right, ok2 := k.columns(j.Rarg, sc)
	rv := j.Rarg.GetRangeVar()
	if !ok1 || !ok2 || rv == nil {
		k.shows("a NATURAL JOIN compares them")
		return
	}
	using := common(left, right)
	word, end := k.naturalWord(rv), k.relationEnd(rv, true)
	if word == nil || end < 0 || len(using) != len(slices.Compact(slices.Sorted(slices.Values(using)))) {
		k.shows("a NATURAL JOIN compares them")
		return
	}
	k.edit(int(word.Start), int(word.End-word.Start), "")
	j.IsNatural = false
	if len(using) == 0 {
		k.edit(end, 0, " ON true")
		j.Quals = k.parsed("SELECT true", func(s *pg.SelectStmt) *pg.Node { return s.TargetList[0].GetResTarget().Val })
		return
	}
	var quoted []string
	for _, u := range using {
		quoted = append(quoted, pgsyntax.Quote(u))
		j.UsingClause = append(j.UsingClause, pg.MakeStrNode(u))
	}
	k.edit(end, 0, " USING ("+strings.Join(quoted, ", ")+")")
}

// naturalWord finds the word NATURAL of the join whose right side is rv.
func (k *revision) naturalWord(rv *pg.RangeVar) *pg.ScanToken {
	var last *pg.ScanToken
	for _, t := range k.tokens(k.from) {
		if int(t.Start) >= int(rv.Location) {
			break
		}
		switch t.Token {
		case pg.Token_NATURAL:
			last = t
		case pg.Token_JOIN, pg.Token_INNER_P, pg.Token_LEFT, pg.Token_RIGHT, pg.Token_FULL, pg.Token_OUTER_P, pg.Token_ONLY:
		default:
			last = nil
		}
	}
	return last
}

// relationEnd is the place behind a table's name, or behind its alias too; -1 if it is not found.
func (k *revision) relationEnd(rv *pg.RangeVar, alias bool) int {
	toks := k.tokens(int(rv.Location))
	n := 1
	for _, part := range []string{rv.Catalogname, rv.Schemaname} {
		if part != "" {
			n += 2
		}
	}
	if len(toks) < n {
		return -1
	}
	if n < len(toks) && int(toks[n].End-toks[n].Start) == 1 && k.sql[toks[n].Start] == '*' {
		n++
	}
	if !alias || rv.Alias == nil {
		return int(toks[n-1].End)
	}
	if n < len(toks) && toks[n].Token == pg.Token_AS {
		n++
	}
	if n++; len(toks) < n {
		return -1
	}
	if len(rv.Alias.Colnames) > 0 {
		closing := slices.IndexFunc(toks[n:], func(t *pg.ScanToken) bool { return t.Token == pgsyntax.TokenClose })
		if closing < 0 {
			return -1
		}
		n += closing + 1
	}
	return int(toks[n-1].End)
}

// units gives what a star over a FROM item stands for, item.* where nothing is hidden.
func (k *showing) units(n *pg.Node, sc *scope) ([]outcol, bool) {
	if j := n.GetJoinExpr(); j != nil && j.Alias == nil && !j.IsNatural && len(j.UsingClause) == 0 {
		left, ok1 := k.units(j.Larg, sc)
		right, ok2 := k.units(j.Rarg, sc)
		return append(left, right...), ok1 && ok2
	}
	if !k.hiding(n, sc) {
		var ref []string
		switch f := n.GetNode().(type) {
		case *pg.Node_RangeVar:
			i := k.tableItem(f.RangeVar, sc)
			if ref = []string{i.ref}; i.schema != "" {
				ref = []string{i.schema, i.ref}
			}
		case *pg.Node_RangeTableSample:
			return k.units(f.RangeTableSample.Relation, sc)
		case *pg.Node_RangeSubselect:
			ref = []string{f.RangeSubselect.GetAlias().GetAliasname()}
		case *pg.Node_RangeFunction:
			ref = []string{f.RangeFunction.GetAlias().GetAliasname()}
		case *pg.Node_JoinExpr:
			if f.JoinExpr.Alias != nil {
				ref = []string{f.JoinExpr.Alias.Aliasname}
			}
		}
		if len(ref) > 0 && ref[len(ref)-1] != "" {
			return []outcol{{qualifier: ref}}, true
		}
	}
	return k.columns(n, sc)
}
