package postgres

import (
	"fmt"
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

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
func (k *showing) tableItem(rv *pg.RangeVar, sc *scope) *item {
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

func scopeOf(up *scope) *scope {
	if up == nil {
		return &scope{}
	}
	return up
}
