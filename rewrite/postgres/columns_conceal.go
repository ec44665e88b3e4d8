package postgres

import (
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// concealer changes a text so that it means what it meant before its tables had the hidden columns, and so that what it
// updates is stamped. Each change is made twice: in the text and in the client's tree, and the server's reading of the
// changed text must equal the changed tree (see columns.go).
type concealer struct {
	*planner // for its names, tokens and reasons
	tables   map[*pg.RangeVar]*item
	err      error
}

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

// item is a FROM item by whose name columns can be qualified.
type item struct {
	schema, ref string
	cols        []outcol // what ref.* stands for without the hidden columns; nil if it is not known
	hides       bool     // it has hidden columns
	table       bool     // it is a table, so that it has system columns
	doubt       string   // why it is not known whether it hides something
}

// scope is what the expressions of one query can refer to.
type scope struct {
	items []*item
	ctes  map[string][]string // names of common table expressions, with their columns if they are known
	up    *scope
	top   bool // its output is the client's
}

// shows notes that the client will see hidden columns.
func (k *concealer) shows(format string, args ...any) {
	k.missing("the hidden columns show: "+format, args...)
}

func (k *concealer) edit(at, cut int, add string) {
	k.edits = append(k.edits, rewrite.Edit{At: at, Cut: cut, Add: add})
}

// visible gives the columns of a relation that are not hidden.
func visible(rel *rewrite.Relation) []rewrite.Attribute {
	return slices.DeleteFunc(slices.Clone(rel.Columns), func(a rewrite.Attribute) bool { return a.Hidden })
}

func hides(rel *rewrite.Relation) bool {
	return slices.ContainsFunc(rel.Columns, func(a rewrite.Attribute) bool { return a.Hidden })
}

// firstHidden is the place of the first hidden column.
func firstHidden(rel *rewrite.Relation) int {
	return slices.IndexFunc(rel.Columns, func(a rewrite.Attribute) bool { return a.Hidden })
}

// relation finds the table that a name means, if it has hidden columns; doubt says that it may.
func (k *concealer) relation(rv *pg.RangeVar) (rel *rewrite.Relation, doubt string) {
	if rv == nil || !k.watched(rv) {
		return nil, ""
	}
	rel, why := k.resolve(rv)
	if rel != nil {
		return rel, ""
	}
	for _, r := range k.catalog.ByName[rv.Relname] {
		if hides(r) {
			return nil, why
		}
	}
	return nil, ""
}

func (sc *scope) cte(name string) ([]string, bool) {
	for s := sc; s != nil; s = s.up {
		if cols, ok := s.ctes[name]; ok {
			return cols, true
		}
	}
	return nil, false
}

// with makes the scope of a statement that has a WITH clause.
func (k *concealer) with(w *pg.WithClause, up *scope) *scope {
	sc := &scope{up: up, ctes: map[string][]string{}}
	if w == nil {
		return sc
	}
	if w.Recursive {
		for _, n := range w.Ctes {
			sc.ctes[n.GetCommonTableExpr().GetCtename()] = nil
		}
	}
	for _, n := range w.Ctes {
		e := n.GetCommonTableExpr()
		k.node(e.Ctequery, &scope{up: sc})
		cols := names(e.Ctequery)
		for i, a := range e.Aliascolnames {
			if i < len(cols) {
				cols[i] = a.GetString_().GetSval()
			}
		}
		if w.Recursive || e.SearchClause != nil || e.CycleClause != nil {
			cols = nil
		}
		sc.ctes[e.Ctename] = cols
	}
	return sc
}

// names gives the columns of a query whose stars were expanded; nil if they are not known.
func names(query *pg.Node) []string {
	var targets []*pg.Node
	switch s := query.GetNode().(type) {
	case *pg.Node_SelectStmt:
		q := firstArm(s.SelectStmt)
		if len(q.ValuesLists) > 0 { // column1 and so on (manual, VALUES)
			var out []string
			for i := range q.ValuesLists[0].GetList().GetItems() {
				out = append(out, fmt.Sprintf("column%d", i+1))
			}
			return out
		}
		targets = q.TargetList
	case *pg.Node_InsertStmt:
		targets = s.InsertStmt.ReturningList
	case *pg.Node_UpdateStmt:
		targets = s.UpdateStmt.ReturningList
	case *pg.Node_DeleteStmt:
		targets = s.DeleteStmt.ReturningList
	}
	var out []string
	for _, n := range targets {
		t := n.GetResTarget()
		name := t.GetName()
		if f := t.GetVal().GetColumnRef().GetFields(); name == "" && len(f) > 0 {
			name = f[len(f)-1].GetString_().GetSval()
		}
		if name == "" {
			return nil
		}
		out = append(out, name)
	}
	return out
}

// from adds the items of a FROM clause to a scope.
func (k *concealer) from(list []*pg.Node, sc *scope) {
	for _, n := range list {
		k.fromItem(n, sc, true)
	}
}

func (k *concealer) fromItem(n *pg.Node, sc *scope, named bool) {
	add := func(i *item) {
		if named {
			sc.items = append(sc.items, i)
		}
	}
	switch f := n.GetNode().(type) {
	case *pg.Node_RangeVar:
		i := k.tableItem(f.RangeVar, sc)
		add(i)
		k.aliases(f.RangeVar)
	case *pg.Node_RangeTableSample:
		k.fromItem(f.RangeTableSample.Relation, sc, named)
		k.nodes(f.RangeTableSample.Args, sc)
	case *pg.Node_RangeSubselect:
		k.node(f.RangeSubselect.Subquery, &scope{up: sc})
		if cols, ok := k.columns(n, sc); ok {
			add(&item{ref: f.RangeSubselect.GetAlias().GetAliasname(), cols: cols})
		} else {
			add(&item{ref: f.RangeSubselect.GetAlias().GetAliasname()})
		}
	case *pg.Node_JoinExpr:
		j := f.JoinExpr
		inner := named && j.Alias == nil
		k.fromItem(j.Larg, sc, inner)
		k.fromItem(j.Rarg, sc, inner)
		if j.IsNatural {
			k.natural(j, sc)
		}
		k.node(j.Quals, sc)
		if j.Alias != nil {
			i := &item{ref: j.Alias.Aliasname, hides: k.hiding(j.Larg, sc) || k.hiding(j.Rarg, sc)}
			if cols, ok := k.columns(n, sc); ok {
				i.cols = cols
			}
			add(i)
		}
		if a := j.JoinUsingAlias; a != nil {
			add(&item{ref: a.Aliasname})
		}
	case *pg.Node_RangeFunction:
		k.nodes(f.RangeFunction.Functions, sc)
		add(&item{ref: f.RangeFunction.GetAlias().GetAliasname()})
	default:
		k.node(n, sc)
		add(&item{})
	}
}

// tableItem describes a table or common table expression in a FROM clause.
func (k *concealer) tableItem(rv *pg.RangeVar, sc *scope) *item {
	if i := k.tables[rv]; i != nil {
		return i // its list of names may have been changed since
	}
	i := &item{schema: rv.Schemaname, ref: rv.Relname}
	if k.tables == nil {
		k.tables = map[*pg.RangeVar]*item{}
	}
	k.tables[rv] = i
	if rv.Alias != nil {
		i.schema, i.ref = "", rv.Alias.Aliasname
	}
	renames := rv.GetAlias().GetColnames()
	if rv.Schemaname == "" {
		if cols, ok := sc.cte(rv.Relname); ok {
			for n, c := range cols {
				if n < len(renames) {
					c = renames[n].GetString_().GetSval()
				}
				i.cols = append(i.cols, outcol{qualifier: []string{i.ref}, name: c})
			}
			return i
		}
	}
	rel, doubt := k.relation(rv)
	if i.doubt = doubt; rel == nil {
		return i
	}
	i.hides, i.table = hides(rel), rel.Kind != "view"
	qualifier := []string{i.ref}
	if i.schema != "" {
		qualifier = []string{i.schema, i.ref}
	}
	for n, a := range visible(rel) {
		name := a.Name
		if n < len(renames) {
			name = renames[n].GetString_().GetSval()
		}
		i.cols = append(i.cols, outcol{qualifier: qualifier, name: name, typ: a.Type})
	}
	return i
}

// aliases puts the hidden columns into a list of column names where they stand before columns that it renames.
func (k *concealer) aliases(rv *pg.RangeVar) {
	list := rv.GetAlias().GetColnames()
	rel, _ := k.relation(rv)
	if len(list) == 0 || rel == nil || !hides(rel) || len(list) <= firstHidden(rel) {
		return
	}
	toks := k.tokens(int(rv.Location))
	open := slices.IndexFunc(toks, func(t *pg.ScanToken) bool { return t.Token == pgsyntax.TokenOpen })
	if open < 0 || len(toks) < open+2*len(list)+1 {
		k.shows("the names given to the columns of %s", rel.RelationName)
		return
	}
	var out []*pg.Node
	next := 0
	for _, a := range rel.Columns {
		if next >= len(list) {
			break
		}
		if !a.Hidden {
			out, next = append(out, list[next]), next+1
			continue
		}
		k.edit(int(toks[open+1+2*next].Start), 0, pgsyntax.Quote(a.Name)+", ")
		out = append(out, pg.MakeStrNode(a.Name))
	}
	rv.Alias.Colnames = append(out, list[next:]...)
}

// hiding reports whether a FROM item has hidden columns anywhere.
func (k *concealer) hiding(n *pg.Node, sc *scope) bool {
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
func (k *concealer) columns(n *pg.Node, sc *scope) ([]outcol, bool) {
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
func (k *concealer) joined(j *pg.JoinExpr, sc *scope) ([]outcol, bool) {
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
func (k *concealer) naturalWord(rv *pg.RangeVar) *pg.ScanToken {
	var last *pg.ScanToken
	for _, t := range k.tokens(k.from0()) {
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

func (k *concealer) from0() int { return k.planner.from }

// relationEnd is the place behind a table's name, or behind its alias too; -1 if it is not found.
func (k *concealer) relationEnd(rv *pg.RangeVar, alias bool) int {
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
func (k *concealer) units(n *pg.Node, sc *scope) ([]outcol, bool) {
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

// star expands a star over several FROM items; ok is false if it cannot be done.
func (k *concealer) star(list []*pg.Node, sc *scope) (cols []outcol, ok bool) {
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
func (k *concealer) starred(qualifier []*pg.Node, from []*pg.Node, sc *scope) ([]outcol, bool) {
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

// find looks for the FROM item that a qualifier names.
func (sc *scope) find(qualifier []*pg.Node) *item {
	ref := qualifier[len(qualifier)-1].GetString_().GetSval()
	schema := ""
	if len(qualifier) > 1 {
		schema = qualifier[len(qualifier)-2].GetString_().GetSval()
	}
	for s := sc; s != nil; s = s.up {
		for _, i := range s.items {
			if i.ref == ref && (schema == "" || schema == i.schema) {
				return i
			}
		}
	}
	return nil
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
func (k *concealer) replace(at, n int, text string) bool {
	toks := k.tokens(at)
	if len(toks) < n || int(toks[0].Start) != at {
		return false
	}
	k.edit(at, int(toks[n-1].End)-at, " "+text+" ")
	return true
}

func (k *concealer) parsed(sql string, pick func(*pg.SelectStmt) *pg.Node) *pg.Node {
	tree, err := pgsyntax.Parse(sql)
	if err != nil {
		k.err = err
		return &pg.Node{}
	}
	return pick(tree.Stmts[0].Stmt.GetSelectStmt())
}

func (k *concealer) parsedTargets(list string) []*pg.Node {
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

func (k *concealer) nodes(list []*pg.Node, sc *scope) {
	for _, n := range list {
		k.node(n, sc)
	}
}

// row conceals what an expression that may be a whole row shows, where a record does as well.
func (k *concealer) row(n *pg.Node, sc *scope) {
	if ref := n.GetColumnRef(); ref != nil {
		if i := k.wholeRow(ref, sc); i != nil && k.record(n, i) {
			return
		}
	}
	k.node(n, sc)
}

// node conceals what one part of a tree shows.
func (k *concealer) node(n *pg.Node, sc *scope) {
	switch e := n.GetNode().(type) {
	case nil:
	case *pg.Node_SelectStmt:
		k.selectStmt(e.SelectStmt, sc)
	case *pg.Node_InsertStmt:
		k.insertStmt(e.InsertStmt, sc)
	case *pg.Node_UpdateStmt:
		k.updateStmt(e.UpdateStmt, sc)
	case *pg.Node_DeleteStmt:
		k.deleteStmt(e.DeleteStmt, sc)
	case *pg.Node_MergeStmt:
		k.mergeStmt(e.MergeStmt, sc)
	case *pg.Node_CopyStmt:
		k.copyStmt(e.CopyStmt, sc)
	case *pg.Node_TableLikeClause:
		if rel, doubt := k.relation(e.TableLikeClause.Relation); doubt != "" || rel != nil && hides(rel) {
			k.shows("LIKE copies them")
		}
	case *pg.Node_ColumnRef:
		if i := k.wholeRow(e.ColumnRef, sc); i != nil {
			k.shows("a whole row of %s", i.ref)
		}
	case *pg.Node_SubLink:
		k.node(e.SubLink.Testexpr, sc)
		q := e.SubLink.Subselect
		if s := q.GetSelectStmt(); e.SubLink.SubLinkType == pg.SubLinkType_EXISTS_SUBLINK && s != nil {
			k.exists(s, sc)
			return
		}
		k.node(q, &scope{up: sc})
	case *pg.Node_FuncCall:
		f := e.FuncCall
		for _, a := range f.Args {
			if wholeRows[pgsyntax.LastName(f.Funcname)] && k.function(pgsyntax.LastName(f.Funcname))&rewrite.FunctionUser == 0 {
				k.row(a, sc)
			} else {
				k.node(a, sc)
			}
		}
		k.nodes(f.AggOrder, sc)
		k.node(f.AggFilter, sc)
		k.parts(f.Over.ProtoReflect(), sc)
	case *pg.Node_TypeCast:
		if name := pgsyntax.LastName(e.TypeCast.GetTypeName().GetNames()); name == "text" || name == "varchar" {
			k.row(e.TypeCast.Arg, sc)
			return
		}
		k.node(e.TypeCast.Arg, sc)
	case *pg.Node_NullTest:
		k.row(e.NullTest.Arg, sc)
	case *pg.Node_AExpr:
		k.row(e.AExpr.Lexpr, sc)
		k.row(e.AExpr.Rexpr, sc)
	case *pg.Node_MultiAssignRef: // its source comes again for each column
		edits := k.edits
		k.node(e.MultiAssignRef.Source, sc)
		if e.MultiAssignRef.Colno > 1 {
			k.edits = edits
		}
	case *pg.Node_RowExpr:
		e.RowExpr.Args = k.expandList(e.RowExpr.Args, sc)
	case *pg.Node_AIndirection:
		if e.AIndirection.Arg.GetColumnRef() == nil || len(e.AIndirection.Indirection) > 0 && e.AIndirection.Indirection[0].GetAStar() != nil {
			k.node(e.AIndirection.Arg, sc)
		}
		k.nodes(e.AIndirection.Indirection, sc)
	default:
		k.parts(n.ProtoReflect(), sc)
	}
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

// parts goes on below a message.
func (k *concealer) parts(m protoreflect.Message, sc *scope) {
	if !m.IsValid() {
		return
	}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if fd.Kind() != protoreflect.MessageKind {
			return true
		}
		visit := func(m protoreflect.Message) {
			if n, ok := m.Interface().(*pg.Node); ok {
				k.node(n, sc)
				return
			}
			k.message(m.Interface(), sc)
		}
		if !fd.IsList() {
			visit(v.Message())
			return true
		}
		l := v.List()
		for i := range l.Len() {
			visit(l.Get(i).Message())
		}
		return true
	})
}

func (k *concealer) message(m proto.Message, sc *scope) {
	switch s := m.(type) {
	case *pg.SelectStmt:
		k.selectStmt(s, sc)
	case *pg.CopyStmt:
		k.copyStmt(s, sc)
	default:
		k.parts(m.ProtoReflect(), sc)
	}
}
