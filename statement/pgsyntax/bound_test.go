package pgsyntax

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/internal/deeptext"
	"wirecheck/statement"
)

const childVariable = "WIRECHECK_TEST_DEEP"

// TestDeep parses the deepest texts that the gate lets through, of each production, in a process whose threads have a stack of 1 MB: an
// eighth of what Linux gives them.
func TestDeep(t *testing.T) {
	if os.Getenv(childVariable) != "" {
		for _, f := range deeptext.Postgres() {
			fmt.Println("form", f)
			sql := f.Most(MaxText, func(sql string) bool { return Bound(sql) != nil })
			before := spent(t)
			tree, err := Parse(sql)
			if took := spent(t) - before; took > time.Second {
				t.Errorf("%q, %d bytes: %v", f, len(sql), took)
			}
			if err != nil {
				continue
			}
			if _, err := Print(tree); err != nil {
				t.Log(err)
			}
			if _, err := Tokens(sql); err != nil {
				t.Error(err)
			}
		}
		fmt.Println("all forms parsed")
		return
	}
	child := exec.Command("sh", "-c", `ulimit -s 1024 && exec "$0" -test.run '^TestDeep$'`, os.Args[0])
	child.Env = append(os.Environ(), childVariable+"=1")
	out, err := child.CombinedOutput()
	if !strings.Contains(string(out), "all forms parsed") || err != nil {
		text := string(out)
		if i := strings.LastIndex(text, "form "); i >= 0 {
			text = text[i:min(len(text), i+500)]
		}
		t.Fatalf("%v, the last of it:\n%s", err, text)
	}
}

// spent is the time that the processors have worked for this process.
func spent(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// TestBound finds texts of every chain that are too deep, and short ones that are not.
func TestBound(t *testing.T) {
	var large *statement.TooLarge
	for _, f := range deeptext.Postgres() {
		if f.Kind == "lists" {
			if err := Bound(f.Text(2000)); err != nil {
				t.Errorf("%q 2000 times: %v", f, err)
			}
			continue
		}
		if _, err := Parse(f.Text(20_000)); !errors.As(err, &large) {
			t.Errorf("%q 20,000 times: %v", f, err)
		}
		if err := Bound(f.Text(30)); err != nil {
			t.Errorf("%q 30 times: %v", f, err)
		}
	}
}

// measured checks that the meter does not find a text smaller than it is.
func measured(t *testing.T, sql string) {
	if len(sql) > 3000 || strings.IndexByte(sql, 0) >= 0 || !utf8.ValidString(sql) {
		return
	}
	m, err := measure(sql)
	if err != nil {
		return
	}
	depth := m.depth()
	if tokens, err := Tokens(sql); err == nil && len(tokens) > m.tokens {
		t.Errorf("%q: %d tokens, the meter has %d", sql, len(tokens), m.tokens)
	}
	if tree, err := pg.Parse(sql); err == nil {
		if got := messages(tree.ProtoReflect()); got > 20+4*depth {
			t.Errorf("%q: the tree is %d messages deep, the meter has %d", sql, got, depth)
		}
	}
}

// TestMeter measures every form, alone and with some of the others in it.
func TestMeter(t *testing.T) {
	all := deeptext.Postgres()
	for i, f := range all {
		for _, n := range []int{1, 3, 20, 100} {
			measured(t, f.Text(n))
		}
		for j, in := range all {
			if inner, ok := strings.CutPrefix(in.Text(5), "SELECT "); ok && in.Kind == "chains" && (i+j)%8 == 0 {
				measured(t, strings.ReplaceAll(f.Text(7), "a", "("+inner+")"))
				measured(t, strings.ReplaceAll(f.Text(7), "b", inner))
			}
		}
	}
}

func FuzzMeter(f *testing.F) {
	for _, c := range deeptext.Postgres() {
		f.Add(c.Text(2))
	}
	f.Add("SELECT E'a' -- b\n'\\' + '' , U&\"d\\0061t\" UESCAPE '!', x'1F''2', $a$ $b$ $a$, 1.5e-3, .5, 1..2, a<>-1, a-- +\n+/*/**/*/-b")
	f.Fuzz(measured)
}

// TestGate finds calls of the parser outside of this package.
func TestGate(t *testing.T) {
	const path = `"github.com/pganalyze/pg_query_go/v6"`
	root := "../.."
	if err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasPrefix(name, "../../statement/pgsyntax/") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, 0)
		if err != nil {
			return nil // testdata
		}
		i := slices.IndexFunc(file.Imports, func(s *ast.ImportSpec) bool { return s.Path.Value == path })
		if i < 0 {
			return nil
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && fmt.Sprint(s.X) == file.Imports[i].Name.String() && !strings.HasPrefix(s.Sel.Name, "Make") {
					t.Errorf("%s: call pgsyntax instead of %s.%s", files.Position(n.Pos()), s.X, s.Sel.Name)
				}
			}
			return true
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
