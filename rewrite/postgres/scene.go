package postgres

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// scene is what stands around one statement: its place in the text, the session, and what its names mean.
type scene struct {
	sql      string // the whole text
	from, to int    // the statement's part of it
	catalog  *rewrite.View
	session  Session
	native   bool
	scan     func() ([]*pg.ScanToken, error) // the whole text's tokens without comments
	wanted   *rewrite.Wanted
	literal  bool // the plan depends on the value of a literal, so that it holds for this very text

	node  *pg.Node
	ctes  map[string]*cte
	scope map[string]int // names of the common table expressions around
	// siblings are the queries that stand before a part of a WITH clause: what it reads of them counts as its own.
	siblings map[string]*pg.SelectStmt
}

// content is what a statement mentions anywhere in it.
type content struct {
	tables  []*pg.RangeVar // that may be tables; names of common table expressions left out where no table has the name
	targets []*pg.RangeVar // of these, what is written
	user    []string       // functions that may read and write tables
	writes  bool           // a part of it writes
	into    *pg.RangeVar   // of SELECT INTO
	sets    bool           // it calls a function that returns a set, or one that may
	asks    bool           // it asks for the text of a statement, or something that it names may
}

// asking are built-in functions and views that show the text of a statement (manual, 9.26 and 28.2.3).
var asking = map[string]bool{
	"current_query": true, "pg_stat_activity": true, "pg_stat_get_activity": true, "pg_stat_get_backend_activity": true,
	"pg_prepared_statements": true, "pg_prepared_statement": true, "pg_cursors": true, "pg_cursor": true,
}

// texts are built-in functions that read tables which only a text names (manual, 9.15.4 and 12.4).
var texts = map[string]bool{
	"query_to_xml": true, "query_to_xmlschema": true, "query_to_xml_and_xmlschema": true, "cursor_to_xml": true,
	"table_to_xml": true, "table_to_xml_and_xmlschema": true, "schema_to_xml": true, "schema_to_xml_and_xmlschema": true,
	"database_to_xml": true, "database_to_xml_and_xmlschema": true, "ts_stat": true, "ts_rewrite": true,
}

func (x *scene) content(m proto.Message) content {
	var c content
	ctes := map[string]bool{}
	pgsyntax.Walk(m, func(m proto.Message) bool {
		if e, ok := m.(*pg.CommonTableExpr); ok {
			ctes[e.Ctename] = true
		}
		return true
	})
	pgsyntax.Walk(m, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.RangeVar:
			if q := x.siblings[n.Relname]; q != nil && n.Schemaname == "" && !ctes[n.Relname] {
				c.tables = append(c.tables, x.content(q).tables...)
				return true
			}
			if n.Schemaname == "" && (ctes[n.Relname] || x.siblings != nil && x.scope[n.Relname] > 0) && len(x.catalog.Named(n.Relname)) == 0 {
				return true
			}
			if x.watched(n) {
				c.tables = append(c.tables, n)
				if x.session.Asks {
					rel, _ := x.resolve(n)
					c.asks = c.asks || rel != nil && (rel.Kind == "view" || rel.RowSecurity)
				}
			}
		case *pg.InsertStmt:
			c.writes, c.targets = true, append(c.targets, n.Relation)
		case *pg.UpdateStmt:
			c.writes, c.targets = true, append(c.targets, n.Relation)
		case *pg.DeleteStmt:
			c.writes, c.targets = true, append(c.targets, n.Relation)
		case *pg.MergeStmt:
			c.writes, c.targets = true, append(c.targets, n.Relation)
		case *pg.IntoClause:
			c.into = n.Rel
		case *pg.LockingClause:
			return false // it names tables of the FROM clause
		case *pg.FuncCall:
			name := pgsyntax.LastName(n.Funcname)
			k := x.function(name)
			if k&rewrite.FunctionUser != 0 || texts[name] {
				c.user = append(c.user, name)
			}
			c.asks = c.asks || k&rewrite.FunctionUser != 0 && x.session.Asks
			if k&rewrite.FunctionSet != 0 {
				c.sets = true
			}
		}
		return true
	})
	sort.Strings(c.user)
	c.asks = c.asks || asksItself(m) || x.session.Asks && slices.ContainsFunc(c.targets, func(rv *pg.RangeVar) bool {
		rel, _ := x.resolve(rv)
		return rel != nil && (rel.Asks || rel.HasTriggers || rel.HasRules || rel.Cascades())
	})
	return c
}

// asksItself reports whether a statement's text asks for the text of a statement.
func asksItself(m proto.Message) bool {
	found := false
	pgsyntax.Walk(m, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.RangeVar:
			found = found || asking[n.Relname]
		case *pg.FuncCall:
			found = found || asking[pgsyntax.LastName(n.Funcname)]
		}
		return !found
	})
	return found
}

// asksElsewhere reports whether a statement of a script executes what may ask for the script's text, and stands in no statement of the script: a statement
// that was prepared, a cursor, or code in a string.
func asksElsewhere(m proto.Message, script *pg.ParseResult) bool {
	found := false
	pgsyntax.Walk(m, func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.ExecuteStmt:
			found = true
		case *pg.FetchStmt:
			found = found || !slices.ContainsFunc(script.Stmts, func(raw *pg.RawStmt) bool {
				return raw.Stmt.GetDeclareCursorStmt().GetPortalname() == n.Portalname
			})
		case *pg.DoStmt, *pg.CreateFunctionStmt:
			pgsyntax.Walk(m, func(m proto.Message) bool {
				if code, ok := m.(*pg.String); ok {
					for name := range asking {
						found = found || strings.Contains(strings.ToLower(code.Sval), name)
					}
				}
				return !found
			})
		}
		return !found
	})
	return found
}

func (x *scene) function(name string) rewrite.FunctionKind {
	return x.catalog.Function(name)
}

// watched reports whether a name may mean one of the user's tables.
func (x *scene) watched(rv *pg.RangeVar) bool {
	switch rv.Schemaname {
	case "":
		return !strings.HasPrefix(rv.Relname, "pg_") || len(x.catalog.Named(rv.Relname)) > 0
	case "pg_catalog", "information_schema", "pg_toast":
		return false
	}
	return true
}

// resolve finds the relation that a name means, or says why it is not certain.
func (x *scene) resolve(rv *pg.RangeVar) (*rewrite.Relation, string) {
	c := x.catalog
	found := c.Named(rv.Relname)
	if !c.Usable() {
		return nil, "the catalog is not known"
	}
	if rv.Catalogname != "" && rv.Catalogname != c.Database {
		return nil, "another database is named"
	}
	if rv.Schemaname != "" {
		if r := in(found, rv.Schemaname); r != nil {
			return r, ""
		}
		return nil, fmt.Sprintf("table %s.%s is not known", rv.Schemaname, rv.Relname)
	}
	if x.session.Temp && (x.session.TempNames == nil || slices.Contains(x.session.TempNames, rv.Relname)) {
		return nil, fmt.Sprintf("%s may be a temporary table", rv.Relname)
	}
	if strings.HasPrefix(rv.Relname, "pg_") {
		return nil, fmt.Sprintf("%s may be a system table", rv.Relname)
	}
	switch len(found) {
	case 0:
		return nil, fmt.Sprintf("table %s is not known", rv.Relname)
	case 1:
		return found[0], ""
	}
	for _, schema := range x.session.SearchPath {
		if r := in(found, schema); r != nil {
			return r, ""
		}
	}
	return nil, fmt.Sprintf("several schemas have a table %s", rv.Relname)
}

// in gives the relation of a schema.
func in(list []*rewrite.Relation, schema string) *rewrite.Relation {
	if i := slices.IndexFunc(list, func(r *rewrite.Relation) bool { return r.Schema == schema }); i >= 0 {
		return list[i]
	}
	return nil
}

// tokens gives the tokens of this statement from a place on.
func (x *scene) tokens(at int) []*pg.ScanToken {
	all, err := x.scan()
	if err != nil {
		return nil
	}
	i := sort.Search(len(all), func(i int) bool { return int(all[i].Start) >= at })
	j := sort.Search(len(all), func(i int) bool { return int(all[i].Start) >= x.to })
	return all[i:max(i, j)]
}

// cte is a common table expression of the statement.
type cte struct {
	query *pg.SelectStmt // nil if it is not a plain SELECT, or two have the name
	names int            // of its columns, as far as they are listed
	uses  int
	asked bool // harmless looks at it
}

// findCTEs lists the common table expressions of the statement, nested ones too, and how often their names are used.
func (x *scene) findCTEs(m proto.Message) {
	x.ctes = map[string]*cte{}
	pgsyntax.Walk(m, func(m proto.Message) bool {
		if e, ok := m.(*pg.CommonTableExpr); ok {
			c := &cte{query: e.Ctequery.GetSelectStmt(), names: len(e.Aliascolnames)}
			if x.ctes[e.Ctename] != nil || e.SearchClause != nil || e.CycleClause != nil {
				c.query = nil
			}
			x.ctes[e.Ctename] = c
		}
		if w, ok := m.(*pg.WithClause); ok && w.Recursive {
			for _, n := range w.Ctes {
				x.ctes[n.GetCommonTableExpr().GetCtename()] = &cte{}
			}
			return false
		}
		return true
	})
	if len(x.ctes) == 0 {
		return
	}
	pgsyntax.Walk(m, func(m proto.Message) bool {
		if rv, ok := m.(*pg.RangeVar); ok && rv.Schemaname == "" && x.ctes[rv.Relname] != nil {
			x.ctes[rv.Relname].uses++
		}
		return true
	})
}

// enter makes the names of a WITH clause known until the returned function is called.
func (x *scene) enter(with *pg.WithClause) func() {
	if x.scope == nil {
		x.scope = map[string]int{}
	}
	add := func(n int) {
		for _, c := range with.GetCtes() {
			x.scope[c.GetCommonTableExpr().GetCtename()] += n
		}
	}
	add(1)
	return func() { add(-1) }
}

// visible reports whether a column can be added to the FROM item ref without being seen: no star takes it up, and
// nothing refers to the whole row.
func (x *scene) visible(outputs []*pg.Node, ref string) bool {
	for _, n := range outputs {
		if f := n.GetResTarget().GetVal().GetColumnRef().GetFields(); len(f) == 1 && f[0].GetAStar() != nil {
			return false
		}
	}
	ok := true
	pgsyntax.Walk(x.node, func(m proto.Message) bool {
		if r, is := m.(*pg.ColumnRef); is && len(r.Fields) > 0 && r.Fields[0].GetString_().GetSval() == ref {
			ok = ok && len(r.Fields) > 1 && r.Fields[len(r.Fields)-1].GetAStar() == nil
		}
		return ok
	})
	return ok
}

// hiddenName is a column name that the client's text does not mention: ORDER BY and GROUP BY may name result columns.
func (x *scene) hiddenName(i int) string { return fmt.Sprintf("%s%d", x.hiddenPrefix(), i) }

func (x *scene) hiddenPrefix() string {
	name := "wirecheck"
	for strings.Contains(x.sql, name+" ") {
		name += "_"
	}
	return name + " "
}
