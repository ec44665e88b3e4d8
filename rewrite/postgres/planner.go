package postgres

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
	describe "wirecheck/statement/postgres"
)

// planner makes the plan of one statement.
type planner struct {
	sql      string // the whole text
	from, to int    // the statement's part of it
	catalog  *rewrite.Catalog
	session  Session
	native   bool
	scan     func() ([]*pg.ScanToken, error) // the whole text's tokens without comments

	node    *pg.Node
	plan    *rewrite.Plan
	linked  bool // a condition was added to WHERE
	wrapped bool // the statement became a subquery
	silent  bool // an answer without rows does not tell what was read
	edits   []rewrite.Edit
	parts   []part
	arms    [][]part // UNION ALL: the parts of each arm
	inner   int      // hidden columns of subqueries so far
	ctes    map[string]*cte
	scope   map[string]int // names of the common table expressions around
	whys    []string       // why the coverage is not exact
	facts   int            // tables whose versions are captured, as they are mentioned
}

// missing notes why something is not seen.
func (x *planner) missing(format string, args ...any) {
	why := fmt.Sprintf(format, args...)
	for _, w := range x.whys {
		if w == why {
			return
		}
	}
	x.whys = append(x.whys, why)
}

// opaque ends the understanding of a statement that touches tables in a way that is not seen.
func (x *planner) opaque(format string, args ...any) {
	x.missing(format, args...)
	x.facts, x.parts, x.edits, x.wrapped, x.silent = 0, nil, nil, false, false
	x.finish()
}

// finish fills what the answer will tell into the plan.
func (x *planner) finish() {
	p := x.plan
	switch {
	case x.facts > 0 && len(x.whys) == 0:
		p.Coverage = history.CoverageExact
	case x.facts > 0:
		p.Coverage = history.CoverageApproximate
	case len(x.whys) > 0:
		p.Coverage = history.CoverageOpaque
	}
	if p.Coverage == history.CoverageExact && x.silent {
		p.Coverage, p.WithRows = history.CoverageApproximate, history.CoverageExact
		x.missing("an answer without rows does not tell what it read")
	}
	p.Why = strings.Join(x.whys, "; ")
	if len(x.edits) == 0 {
		return
	}
	p.Hidden = len(x.parts)
	p.Decode = decoder(x.parts)
	if x.arms != nil {
		p.Hidden, p.Decode = armDecoder(x.arms)
	}
}

func (x *planner) understand(n *pg.Node) {
	x.node = n
	x.findCTEs(n)
	e := describe.EffectOf(n)
	x.plan.Verb, x.plan.Control, x.plan.Schema = e.Verb, e.Control, e.Schema
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		x.selectStmt(s.SelectStmt)
	case *pg.Node_InsertStmt:
		x.insertStmt(s.InsertStmt)
	case *pg.Node_UpdateStmt:
		x.updateStmt(s.UpdateStmt)
	case *pg.Node_DeleteStmt:
		x.deleteStmt(s.DeleteStmt)
	default:
		x.utility(n)
	}
}

// content is what a statement mentions anywhere in it.
type content struct {
	tables  []*pg.RangeVar // that may be tables; names of common table expressions left out where no table has the name
	targets []*pg.RangeVar // of these, what is written
	user    []string       // functions that may read and write tables
	writes  bool           // a part of it writes
	into    *pg.RangeVar   // of SELECT INTO
	sets    bool           // it calls a function that returns a set, or one that may
}

// texts are built-in functions that read tables which only a text names (manual, 9.15.4 and 12.4).
var texts = map[string]bool{
	"query_to_xml": true, "query_to_xmlschema": true, "query_to_xml_and_xmlschema": true, "cursor_to_xml": true,
	"table_to_xml": true, "table_to_xml_and_xmlschema": true, "schema_to_xml": true, "schema_to_xml_and_xmlschema": true,
	"database_to_xml": true, "database_to_xml_and_xmlschema": true, "ts_stat": true, "ts_rewrite": true,
}

func (x *planner) content(m proto.Message) content {
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
			if n.Schemaname == "" && ctes[n.Relname] && (x.catalog == nil || len(x.catalog.ByName[n.Relname]) == 0) {
				return true
			}
			if x.watched(n) {
				c.tables = append(c.tables, n)
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
			if k&rewrite.FunctionSet != 0 {
				c.sets = true
			}
		}
		return true
	})
	sort.Strings(c.user)
	return c
}

func (x *planner) function(name string) rewrite.FunctionKind {
	if x.catalog == nil {
		return 0
	}
	return x.catalog.Functions[name]
}

// watched reports whether a name may mean one of the user's tables.
func (x *planner) watched(rv *pg.RangeVar) bool {
	switch rv.Schemaname {
	case "":
		return !strings.HasPrefix(rv.Relname, "pg_") || x.catalog != nil && len(x.catalog.ByName[rv.Relname]) > 0
	case "pg_catalog", "information_schema", "pg_toast":
		return false
	}
	return true
}

// resolve finds the relation that a name means, or says why it is not certain.
func (x *planner) resolve(rv *pg.RangeVar) (*rewrite.Relation, string) {
	c := x.catalog
	if c == nil {
		return nil, "the catalog is not known"
	}
	if rv.Catalogname != "" && rv.Catalogname != c.Database {
		return nil, "another database is named"
	}
	if rv.Schemaname != "" {
		if r := c.Relations[rewrite.RelationName{Schema: rv.Schemaname, Name: rv.Relname}]; r != nil {
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
	found := c.ByName[rv.Relname]
	switch len(found) {
	case 0:
		return nil, fmt.Sprintf("table %s is not known", rv.Relname)
	case 1:
		return found[0], ""
	}
	for _, schema := range x.session.SearchPath {
		if r := c.Relations[rewrite.RelationName{Schema: schema, Name: rv.Relname}]; r != nil {
			return r, ""
		}
	}
	return nil, fmt.Sprintf("several schemas have a table %s", rv.Relname)
}

// tokens gives the tokens of this statement from a place on.
func (x *planner) tokens(at int) []*pg.ScanToken {
	all, err := x.scan()
	if err != nil {
		return nil
	}
	i := sort.Search(len(all), func(i int) bool { return int(all[i].Start) >= at })
	j := sort.Search(len(all), func(i int) bool { return int(all[i].Start) >= x.to })
	return all[i:max(i, j)]
}

// proven parses what is to be sent and compares it with the client's tree, the additions taken away: whatever the
// splicing did, the server understands the client's own statement in it.
func proven(sent string, client *pg.ParseResult, list []*planner) bool {
	tree, err := pgsyntax.Parse(sent)
	if err != nil || len(tree.Stmts) != len(client.Stmts) {
		return false
	}
	for i, raw := range tree.Stmts {
		if len(list[i].edits) > 0 && !list[i].strip(raw.Stmt) {
			return false
		}
		if !pgsyntax.Same(raw.Stmt.ProtoReflect(), client.Stmts[i].Stmt.ProtoReflect()) {
			return false
		}
	}
	return true
}

// strip takes the additions out of the tree of a changed statement. No name in the client's text is like theirs.
func (x *planner) strip(n *pg.Node) bool {
	prefix := x.hiddenPrefix()
	ours := func(n *pg.Node) bool { return strings.HasPrefix(n.GetResTarget().GetName(), prefix) }
	hidden := x.plan.Hidden
	if x.wrapped {
		n, ok := x.unwrap(n, ours)
		if !ok {
			return false
		}
		hidden -= n
	}
	var top *[]*pg.Node
	keep := func(list *[]*pg.Node) {
		if top == nil {
			top = list
			for _, n := range (*list)[max(0, len(*list)-hidden):] {
				if !ours(n) {
					top = nil // the answer does not end with our columns
					return
				}
			}
		}
		*list = slices.DeleteFunc(*list, ours)
	}
	switch s := n.Node.(type) {
	case *pg.Node_InsertStmt:
		keep(&s.InsertStmt.ReturningList)
	case *pg.Node_UpdateStmt:
		keep(&s.UpdateStmt.ReturningList)
		if x.linked && !unlink(&s.UpdateStmt.WhereClause) {
			return false
		}
	case *pg.Node_DeleteStmt:
		keep(&s.DeleteStmt.ReturningList)
	case *pg.Node_SelectStmt:
		arm := s.SelectStmt // it is the client's, if the statement was wrapped
		for arm.Op != pg.SetOperation_SETOP_NONE {
			arm = arm.Larg
		}
		keep(&arm.TargetList)
	}
	if top == nil || x.plan.NoRows && len(*top) != 0 {
		return false
	}
	pgsyntax.Walk(n, func(m proto.Message) bool {
		if s, ok := m.(*pg.SelectStmt); ok {
			s.TargetList = slices.DeleteFunc(s.TargetList, ours)
		}
		return true
	})
	return true
}

// unlink takes the condition that was added last out of a WHERE clause.
func unlink(where **pg.Node) bool {
	if (*where).GetNullTest() != nil {
		*where = nil
		return true
	}
	b := (*where).GetBoolExpr()
	if b == nil || b.Boolop != pg.BoolExprType_AND_EXPR || len(b.Args) < 2 || b.Args[len(b.Args)-1].GetNullTest() == nil {
		return false
	}
	if b.Args = b.Args[:len(b.Args)-1]; len(b.Args) == 1 {
		*where = b.Args[0]
	}
	return true
}
