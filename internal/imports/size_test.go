package imports

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// The sizes at which a reader loses the thread. They are limits, not goals.
const (
	maxFunction = 100 // lines
	maxMethods  = 40  // of one type
	maxFile     = 600 // lines
)

// TestSizes holds functions, types and files to their limits.
func TestSizes(t *testing.T) {
	methods := map[string]int{}
	sources(t, "../..", func(path string, set *token.FileSet, file *ast.File) {
		if n := set.Position(file.End()).Line; n > maxFile {
			t.Errorf("%s has %d lines, at most %d: which idea is missing a file?", path, n, maxFile)
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if n := set.Position(f.End()).Line - set.Position(f.Pos()).Line + 1; n > maxFunction {
				t.Errorf("%s: %s has %d lines, at most %d: which noun is missing?", path, f.Name.Name, n, maxFunction)
			}
			if f.Recv != nil {
				methods[filepath.Dir(path)+": "+receiver(f.Recv.List[0].Type)]++
			}
		}
	})
	if len(methods) == 0 {
		t.Fatal("no type was found")
	}
	for name, n := range methods {
		if n > maxMethods {
			t.Errorf("%s has %d methods, at most %d: which noun is missing?", name, n, maxMethods)
		}
	}
}

// sources gives the Go files below a folder, but for tests and what is in testdata.
func sources(t *testing.T, folder string, each func(path string, set *token.FileSet, file *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err == nil {
			each(path, set, file)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
