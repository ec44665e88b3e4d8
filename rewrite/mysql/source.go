package mysql

import (
	"cmp"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/mysqlsyntax"
)

// source is one item of a FROM clause.
type source struct {
	rel   *rewrite.Relation // nil for a derived table, a common table expression or a table that is not known
	alias string            // the name by which columns are qualified
	ref   string            // the same as SQL text, with schema where there is no alias
	key   string            // SQL text that names the row
	found string            // SQL text of state, where another place than the row has it; else empty
	why   string            // why its reads cannot be seen; empty if they can
	query *ast.SelectStmt   // of a derived table, or of a common table expression that is used once
	up    string            // SQL text of version, where a derived table has it
	label string            // SQL text of the key with the columns' names, where a derived table has it
	// eliminated says that the server does not read the table.
	eliminated bool
}

func (src *source) table() string { return src.rel.String() }

// state is the SQL text of a source's row id and writers, to go within CONCAT.
func (src *source) state() string {
	if src.found != "" {
		return src.found
	}
	return src.key + ",' '," + src.ref + "." + columnWriters
}

// version is the SQL text of a source's row id, writers and, if named, its key; NULL for the missing row of an outer
// join.
func (src *source) version(named bool) string {
	name := ""
	if src.up != "" {
		return src.up
	}
	if named {
		name = nameOf(src, false)
	}
	return "CONCAT(" + src.state() + name + ")"
}

// resolve finds the relation that a name means; why is set if it cannot be rewritten.
func (s *scene) resolve(schema, name string) (rel *rewrite.Relation, why string) {
	schema = cmp.Or(schema, s.session.Database)
	if systemSchema(schema) {
		return nil, ""
	}
	if schema == "" {
		return nil, "a table that is not known"
	}
	rel = s.catalog.Relation(folded(s.catalog.Server, schema), folded(s.catalog.Server, name))
	switch {
	case rel == nil:
		return nil, "a table that is not known"
	case s.session.temporary(rel.String()):
		return nil, "a temporary table"
	case slices.Contains(s.changed, rel.Name) && s.r.flavor != TiDB: // there its hidden columns have to be kept out of the answer
		return nil, "a table that the same text changes"
	case rel.Kind != "table" && rel.Kind != "partitioned":
		return rel, "a " + rel.Kind
	case !rel.Instrumented:
		if _, can := Instrumentable(rel); can && s.bare == nil {
			s.bare = &rel.RelationName
		}
		return rel, "a table that is not instrumented"
	case rel.ColumnGrants || !rel.Readable:
		return rel, "a table of which not all columns may be read"
	}
	return rel, ""
}

func systemSchema(s string) bool {
	switch strings.ToLower(s) {
	case "information_schema", "performance_schema", "mysql", "sys":
		return true
	}
	return false
}

// system reports whether a query reads tables of the server's own schemas alone, also in subqueries and without a stored function.
func (s *scene) system(n ast.Node) bool {
	all := walk(n)
	return len(all.tables) > 0 && !s.callsStored(all) && !slices.ContainsFunc(all.tables, func(t *ast.TableName) bool { return !systemSchema(cmp.Or(t.Schema.O, s.session.Database)) })
}

// sources lists what a FROM clause names, from left to right. ok is false if there is something unknown in it.
func (s *scene) sources(n ast.ResultSetNode, ctes []string) (list []source, ok bool) {
	switch n := n.(type) {
	case nil:
		return nil, true
	case *ast.Join:
		left, ok := s.sources(n.Left, ctes)
		if !ok || n.Right == nil {
			return left, ok
		}
		right, ok := s.sources(n.Right, ctes)
		return append(left, right...), ok
	case *ast.TableSource:
		name, isTable := n.Source.(*ast.TableName)
		if !isTable {
			if _, join := n.Source.(*ast.Join); join {
				return s.sources(n.Source, ctes)
			}
			query, _ := n.Source.(*ast.SelectStmt)
			if n.Lateral || n.AsName.O == "" || len(n.ColumnNames) > 0 {
				query = nil
			}
			return []source{{alias: n.AsName.O, why: "a derived table", query: query}}, true
		}
		return []source{s.source(name, n.AsName.O, ctes)}, true
	case *ast.TableName:
		return []source{s.source(n, "", ctes)}, true
	}
	return nil, false
}

func (s *scene) source(n *ast.TableName, alias string, ctes []string) source {
	src := source{alias: alias}
	if alias == "" {
		src.alias = n.Name.O
	}
	_, known := s.ctes[n.Name.L]
	if n.Schema.O == "" && (known || slices.ContainsFunc(ctes, func(c string) bool { return strings.EqualFold(c, n.Name.O) })) {
		src.why, src.query = "a common table expression", s.ctes[strings.ToLower(n.Name.O)]
		return src
	}
	src.rel, src.why = s.resolve(n.Schema.O, n.Name.O)
	if n.AsOf != nil || n.TableSample != nil {
		src.why = "a sample or an old state of a table"
	}
	src.ref = mysqlsyntax.Quote(src.alias)
	if alias == "" && n.Schema.O != "" {
		src.ref = mysqlsyntax.Quote(n.Schema.O) + "." + src.ref
	}
	src.key = rowKey(s.r.flavor, &src)
	return src
}

// watched reports whether there is something to see in it.
func (src *source) watched() bool { return !src.eliminated && (src.rel != nil || src.why != "") }

// finding is what a walk over a tree found.
type finding struct {
	queries    int            // SELECTs
	sub        int            // nested in others, with tables of their own
	aggregates []string       // their names in lower case
	extremes   []ast.ExprNode // arguments of MIN and MAX
	plain      int            // how many are neither MIN nor MAX nor of distinct values
	distinct   bool           // COUNT(DISTINCT x) and the like
	window     bool
	functions  []string
	columns    []*ast.ColumnName
	tables     []*ast.TableName
	wildcard   bool
	setVar     bool // @a := 1
}

// walk looks for what matters in n; it does not go into other statements than n's own parts.
func walk(n ast.Node) finding {
	var f finding
	visit(n, f.enter)
	return f
}

func (f *finding) enter(n ast.Node) {
	switch n := n.(type) {
	case *ast.SelectStmt:
		f.queries++
		if n.From != nil {
			f.sub++
		}
	case *ast.SetOprStmt:
		f.queries++
	case *ast.AggregateFuncExpr:
		name := strings.ToLower(n.F)
		f.aggregates = append(f.aggregates, name)
		f.distinct = f.distinct || n.Distinct
		if name == "min" || name == "max" {
			f.extremes = append(f.extremes, n.Args...)
		} else if !n.Distinct {
			f.plain++
		}
	case *ast.WindowFuncExpr:
		f.window = true
	case *ast.FuncCallExpr:
		// A stored function of that name needs the schema in front (MySQL manual, 11.2.5), and to ask the catalog would change what these say.
		if counts := n.FnName.L == "found_rows" || n.FnName.L == "row_count"; !counts || n.Schema.O != "" {
			f.functions = append(f.functions, n.FnName.L)
		}
	case *ast.ColumnNameExpr:
		f.columns = append(f.columns, n.Name)
	case *ast.TableName:
		f.tables = append(f.tables, n)
	case *ast.SelectField:
		if n.WildCard != nil {
			f.wildcard = true
		}
	case *ast.VariableExpr:
		if n.Value != nil {
			f.setVar = true
		}
	}
}

// stored reports whether one of the functions is a stored one.
func (s *scene) callsStored(f finding) bool {
	return slices.ContainsFunc(f.functions, s.stored)
}

// partitions reports whether a FROM clause names partitions.
func partitions(from *ast.Join) bool {
	found := false
	visit(from, func(n ast.Node) {
		t, ok := n.(*ast.TableName)
		found = found || ok && len(t.PartitionNames) > 0
	})
	return found
}
