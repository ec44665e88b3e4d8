package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
)

// A view that joins tables, and shows their primary keys, is seen: each of its rows is one row of each of its tables, which a subquery of the query
// around finds by that key, as in covering.go. The view itself, and the plan of the query, stay what they are.

// shownTable is a table of a view, with the view's names of its columns.
type shownTable struct {
	rel     *rewrite.Relation
	columns map[string]string // by the table's name in lower case
}

// maxViews is how many views may stand within each other.
const maxViews = 8

// tablesOf gives the tables of a view; why says why its rows do not tell theirs.
func (s *scene) tablesOf(view *rewrite.Relation, depth int) (list []shownTable, why string) {
	node, err := s.r.parser.Parse(view.Definition, 0)
	q, ok := node.(*ast.SelectStmt)
	if view.Definition == "" || err != nil || !ok || depth == maxViews {
		return nil, "a view of which the definition is not known"
	}
	if !s.joinsOnly(q) {
		return nil, "a view with groups, subqueries or outer joins"
	}
	in, ok := s.sources(q.From.TableRefs, nil)
	if !ok || len(in) > maxTables {
		return nil, "a view of which the definition is not known"
	}
	for i := range in {
		if slices.ContainsFunc(in[:i], func(o source) bool { return strings.EqualFold(o.alias, in[i].alias) }) {
			return nil, "a view of two tables of one name"
		}
		of := []shownTable{{rel: in[i].rel}}
		switch {
		case in[i].rel != nil && in[i].rel.Kind == "view":
			if of, why = s.tablesOf(in[i].rel, depth+1); why != "" {
				return nil, why
			}
		case in[i].rel == nil || in[i].why != "":
			return nil, "a view of " + in[i].why
		}
		for _, t := range of {
			t, ok := through(q, view, &in[i], t)
			if !ok || slices.ContainsFunc(list, func(o shownTable) bool { return o.rel == t.rel }) {
				return nil, "a view that does not show the primary keys of its tables"
			}
			list = append(list, t)
		}
	}
	return list, ""
}

// joinsOnly reports whether each row of a query is one row of each of its tables.
func (s *scene) joinsOnly(q *ast.SelectStmt) bool {
	all := walk(q)
	return q.Kind == ast.SelectStmtKindSelect && q.From != nil && !q.Distinct && q.GroupBy == nil && q.Having == nil && q.Limit == nil && q.With == nil && q.LockInfo == nil &&
		q.SelectIntoOpt == nil && all.queries == 1 && len(all.aggregates) == 0 && !all.window && !s.callsStored(all) && !outerJoined(q.From.TableRefs)
}

// outerJoined reports whether a FROM clause has an outer join.
func outerJoined(n ast.Node) (found bool) {
	visit(n, func(n ast.Node) {
		j, ok := n.(*ast.Join)
		found = found || ok && j.Right != nil && (j.Tp == ast.LeftJoin || j.Tp == ast.RightJoin)
	})
	return found
}

// through gives a table by the names that a view has for its columns, where src, of the view's query, is that table or a view of it. It reports whether
// the view shows the primary key.
func through(q *ast.SelectStmt, view *rewrite.Relation, src *source, t shownTable) (shownTable, bool) {
	out := shownTable{t.rel, map[string]string{}}
	if len(q.Fields.Fields) != len(view.Columns) {
		return out, false
	}
	for i, f := range q.Fields.Fields {
		c, ok := f.Expr.(*ast.ColumnNameExpr)
		if !ok || !strings.EqualFold(c.Name.Table.O, src.alias) {
			continue
		}
		for _, a := range t.rel.Columns {
			name := strings.ToLower(a.Name)
			if inner := t.columns[name]; t.columns == nil && c.Name.Name.L == name || inner != "" && strings.EqualFold(inner, c.Name.Name.O) {
				out.columns[name] = view.Columns[i].Name
			}
		}
	}
	return out, len(t.rel.Key) > 0 && !slices.ContainsFunc(t.rel.Key, func(c string) bool { return out.columns[strings.ToLower(c)] == "" })
}

// viewed gives the tables of a view as sources of the query that reads it; why says what is not seen.
func (e *exposure) viewed(n *ast.SelectStmt, all finding, list []source, src *source) (seen []source, why string) {
	s := e.s
	grouped := n.GroupBy != nil || s.aggregates(n)
	switch {
	case s.r.flavor == TiDB, e.locking, n.LockInfo != nil, s.session.Once, n.Distinct, outerJoined(n.From):
		return nil, src.why
	case s.r.flavor == MySQL && (grouped || s.mayJoin(n)):
		return nil, "a view in groups or beside subqueries on this server"
	case grouped && all.plain == 0:
		return nil, "groups of an index that may be read in part"
	}
	tables, why := s.tablesOf(src.rel, 0)
	if why != "" {
		return nil, why
	}
	for _, t := range tables {
		out := source{rel: t.rel, alias: src.alias, ref: src.ref}
		row := behind(s.r.flavor, src.alias, src.ref, t.rel, func(key string) string { return t.columns[strings.ToLower(key)] })
		if e.logged {
			out.found, out.label = row.tell("CONCAT("+row.state()+")"), row.tell("CONCAT(''"+nameOf(&row.source, true)+")")
		} else {
			out.up = row.tell(row.version(e.named))
		}
		seen = append(seen, out)
	}
	noteShown(s, src, tables, list)
	return seen, ""
}

// noteShown notes which columns of tables a view shows, by the name that the server gives the table of these columns: MariaDB the alias of the view (10.11.19), which
// may be the name of another table of the query, MySQL the name of the view (9.7.4).
func noteShown(s *planner, src *source, tables []shownTable, list []source) {
	name := src.rel.String()
	if s.r.flavor == MariaDB {
		name = src.rel.Schema + "." + src.alias
	}
	if slices.ContainsFunc(list, func(o source) bool {
		return o.alias != src.alias && o.rel != nil && strings.EqualFold(o.rel.String(), name) && s.r.flavor == MariaDB
	}) {
		return
	}
	columns := map[string]rewrite.Shows{}
	for _, t := range tables {
		for name, shown := range t.columns {
			columns[strings.ToLower(shown)] = rewrite.Shows{Table: t.rel.String(), Name: name}
		}
	}
	if s.plan.Views == nil {
		s.plan.Views = map[string]map[string]rewrite.Shows{}
	}
	s.plan.Views[name] = columns
}
