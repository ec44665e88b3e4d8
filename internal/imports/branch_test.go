package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// productNames are the products and the protocols, which have the names of two of them, as texts and as constants.
var productNames = []string{"postgres", "postgresql", "mariadb", "mysql", "tidb", "sqlite"}

// branches are the places that may decide by the name of a product or of a protocol, with the reason. Elsewhere a row of package product decides.
var branches = map[string]struct {
	n      int
	reason string
}{
	"lab/generate/grammar.go":                      {4, "the row of each dialect's grammar is chosen here"},
	"live/checker.go":                              {4, "a protocol's session loop is chosen here"},
	"cmd/wirecheck/recording.go":                   {1, "only packets of the MySQL protocol can be compressed"},
	"cmd/wirecheck/explorerun.go":                  {1, "only PostgreSQL's protocol has CREATE DATABASE ... TEMPLATE behind it"},
	"oracle/schedule/scheduletest/scheduletest.go": {1, "the parser of a dialect is chosen here, for tests"},
}

// TestBranches: oracles, proxies, labs and commands ask package product what a product does, and do not look at its name.
func TestBranches(t *testing.T) {
	found := map[string][]token.Position{}
	for _, room := range []string{"oracle", "proxy", "live", "lab", "cmd"} {
		sources(t, filepath.Join("../..", room), func(path string, set *token.FileSet, file *ast.File) {
			for _, e := range decided(file) {
				name := strings.TrimPrefix(filepath.ToSlash(path), "../../")
				found[name] = append(found[name], set.Position(e.Pos()))
			}
		})
	}
	for name, places := range found {
		if len(places) > branches[name].n {
			t.Errorf("%s decides by the name of a product in %d places, and may in %d: which trait is missing in package product? %v", name, len(places), branches[name].n, places)
		}
	}
	for name, b := range branches {
		if len(found[name]) < b.n {
			t.Errorf("%s decides by the name of a product in %d places, and the list says %d", name, len(found[name]), b.n)
		}
	}
}

// decided gives the names of products with which a file compares something.
func decided(file *ast.File) (list []ast.Expr) {
	ast.Inspect(file, func(n ast.Node) bool {
		var compared []ast.Expr
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				compared = []ast.Expr{n.X, n.Y}
			}
		case *ast.CaseClause:
			compared = n.List
		}
		for _, e := range compared {
			if slices.Contains(productNames, strings.ToLower(named(e))) {
				list = append(list, e)
			}
		}
		return true
	})
	return list
}

// named is the text of a string, or the name of a constant.
func named(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strings.Trim(e.Value, "\"`")
	case *ast.Ident:
		if e.IsExported() {
			return e.Name
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok && x.Name == "lex" { // a way to write strings and comments
			return ""
		}
		return e.Sel.Name
	}
	return ""
}

// TestDecided: what counts as a decision by a name, and what does not.
func TestDecided(t *testing.T) {
	const source = `package p
func f(name string) bool {
	switch name {
	case "tidb", product.MariaDB, lex.MySQL: // two
	}
	list := []string{"mysql"} // a list decides nothing
	title := "postgres" + name
	return name == "sqlite" || MySQL != name && name == "other" && len(list) == len(title)
}`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := len(decided(file)); got != 4 {
		t.Errorf("%d decisions, want 4", got)
	}
}
