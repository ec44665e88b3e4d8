package scenario

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustParse(t testing.TB, src string) *Spec {
	t.Helper()
	s, err := Parse("x.spec", []byte(src))
	if err != nil {
		t.Fatalf("%v in:\n%s", err, src)
	}
	return s
}

// sameSpec compares everything but places and warnings.
func sameSpec(a, b *Spec) string {
	return cmp.Diff(a, b, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Warnings" }, cmp.Ignore()),
		cmp.Comparer(func(_, _ Pos) bool { return true }))
}

func TestParsePrint(t *testing.T) {
	src, err := os.ReadFile("testdata/everything.spec")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/everything.want")
	if err != nil {
		t.Fatal(err)
	}
	s := mustParse(t, string(src))
	got, err := s.Print()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("printed (-want +got):\n%s", diff)
	}
	if diff := sameSpec(s, mustParse(t, got)); diff != "" {
		t.Errorf("printed and parsed again (-first +again):\n%s", diff)
	}
	if len(s.Warnings) != 0 {
		t.Errorf("warnings: %v", s.Warnings)
	}
}

// TestBlocks: blanks at the ends go, newlines stay, the first } ends the block (specscanner.l).
func TestBlocks(t *testing.T) {
	for src, want := range map[string]string{
		"{}":                     "",
		"{ \t\r\f }":             "",
		"{ a }":                  "a",
		"{\n  a\n}":              "\n  a\n",
		"{  \n  a;  \n  b  \n }": "\n  a;  \n  b  \n",
		"{ 'a {' }":              "'a {'",
		"{ -- # a\n\t}":          "-- # a\n",
	} {
		s := mustParse(t, "session s step a "+src)
		if got := s.Sessions[0].Steps[0].SQL; got != want {
			t.Errorf("%q: got %q, want %q", src, got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for src, want := range map[string]string{
		`a`: "a", `ä$1`: "ä$1", `"a"`: "a", `""`: "", `""""`: `"`, `"a""b"`: `a"b`, `"step"`: "step", `steps`: "steps",
		`Step`: "Step", `"{}#"`: "{}#", "\"a\rb\"": "a\rb",
	} {
		s := mustParse(t, "session s step "+src+" {}")
		if got := s.Sessions[0].Steps[0].Name; got != want {
			t.Errorf("%s: got %q, want %q", src, got, want)
		}
		printed, err := s.Print()
		if err != nil {
			t.Errorf("%s: %v", src, err)
		} else if diff := sameSpec(s, mustParse(t, printed)); diff != "" {
			t.Errorf("%s: %s", src, diff)
		}
	}
}

func TestCommentEndsAtCarriageReturn(t *testing.T) {
	s := mustParse(t, "session s # x\rstep a {} # y\r\n# z")
	if len(s.Sessions[0].Steps) != 1 {
		t.Errorf("got %d steps, want the one after the carriage return", len(s.Sessions[0].Steps))
	}
}

func TestProblems(t *testing.T) {
	const ok = "session s step a {x} step b {y}\nsession u step c {z}\n"
	tests := []struct{ name, src, want string }{
		{"empty", "", "1:1: found the end of the file, expected a session; a spec has at least one"},
		{"only setup", "setup {}\n", "2:1: found the end of the file, expected a session; a spec has at least one"},
		{"no steps", "session s", "1:10: found the end of the file, expected step; a session has at least one"},
		{"no name", "session {}", "1:9: found an SQL block, expected a name after session"},
		{"keyword as name", "session s step setup {}", `1:16: found "setup", expected a name after step; to use the word as a name, quote it: "setup"`},
		{"no block", "session s step a step b {}", `1:18: found "step", expected an SQL block { ... } after the name of the step`},
		{"open block", "session s\nstep ä { x", "2:8: the SQL block that begins here is not closed before the end of the file; add the missing }"},
		{"open name, and more", "session s step \"a {}\n\nsession s2 step {}", "1:16: the quoted name that begins here is not closed on its line; add the missing \"\n" +
			"x.spec:3:17: found an SQL block, expected a name after step"},
		{"character", "session s; step a {}", "1:10: unexpected character ';'; SQL stands in braces { ... }, comments begin with #"},
		{"two teardowns", "teardown {} teardown {} " + ok, `1:13: found "teardown", expected session; a file has one teardown, after all setup blocks and before the first session`},
		{"setup after teardown", "teardown {} setup {} " + ok, `1:13: found "setup", expected session; a file has one teardown, after all setup blocks and before the first session`},
		{"two session setups", "session s setup {} setup {} step a {}", `1:20: found "setup", expected step; a session has one setup block, unlike the file`},
		{"session after permutation", ok + "permutation a session v step d {}", `3:15: found "session", expected a name of a step or the next permutation`},
		{"empty permutation", ok + "permutation\n", "4:1: found the end of the file, expected a name of a step or the next permutation"},
		{"empty markers", ok + "permutation a()", `3:15: found ")", expected a name of a step, or *, as marker in the parentheses`},
		{"marker list", ok + "permutation a(b c)", "3:17: found the name c, expected ) or , after a marker"},
		{"notices without number", ok + "permutation a(c notices)", `3:24: found ")", expected a number after notices`},
		{"large number", ok + "permutation a(c notices 99999999999) c", "3:25: the number 99999999999 is too large; at most 2147483647"},
		{"duplicate steps", "session s step a {}\nsession u step a {}", "2:16: a second step named a, the first is in line 1; names of steps are unique in the file, rename one"},
		{"unknown step", ok + "permutation a d B", "3:15: there is no step d\nx.spec:3:17: there is no step B; did you mean b?"},
		{"unknown marker", ok + "permutation a(d) b", "3:15: the marker of a names the step d, which does not exist"},
		{"marker elsewhere", ok + "permutation a(c) b\npermutation c", "3:15: the marker of a names the step c, which is not in this permutation; it would never wait for it"},
		{"own session", ok + "permutation a(b) b", "3:15: the marker of a names b, a step of the same session; a step can only wait for another session"},
		{"itself", ok + "permutation a(a notices 1)", "3:15: the marker of a names the step itself; a step cannot wait for its own end"},
		{"zero byte", "session s step a {\x00}", "1:18: the SQL block that begins here holds a zero byte; remove it"},
	}
	for _, test := range tests {
		_, err := Parse("x.spec", []byte(test.src))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if got != "x.spec:"+test.want {
			t.Errorf("%s:\ngot  %s\nwant x.spec:%s", test.name, got, test.want)
		}
	}
}

func TestWarnings(t *testing.T) {
	s := mustParse(t, "# wirecheck: expect: none\nsession s step a {} step b {}\nsession s step c {}\npermutation c a")
	want := []string{
		"x.spec:1:1: an ordinary comment to wirecheck; for a directive leave out the blank: #wirecheck:",
		"x.spec:3:9: a second session named s, the first is in line 2; output that names it will be hard to read",
		"x.spec:2:26: unused step name: b",
	}
	var got []string
	for _, w := range s.Warnings {
		got = append(got, w.String())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if s := mustParse(t, "session s step a {}"); len(s.Warnings) != 0 {
		t.Errorf("without permutations no step is unused: %v", s.Warnings)
	}
}

func TestPrintRefuses(t *testing.T) {
	build := func(change func(*Spec)) *Spec {
		s := mustParse(t, "session s step a {x}")
		change(s)
		return s
	}
	for name, s := range map[string]*Spec{
		"brace":     build(func(s *Spec) { s.Sessions[0].Steps[0].SQL = "SELECT {1}" }),
		"newline":   build(func(s *Spec) { s.Sessions[0].Name = "a\nb" }),
		"header":    build(func(s *Spec) { s.Header = []string{"a\nstep b {}"} }),
		"directive": build(func(s *Spec) { s.Directives = []Directive{{Key: "seed", Value: "x"}} }),
		"no steps":  build(func(s *Spec) { s.Sessions[0].Steps = nil }),
	} {
		if text, err := s.Print(); err == nil {
			t.Errorf("%s: printed %q, want an error", name, text)
		} else if !strings.HasPrefix(err.Error(), "print x.spec: ") {
			t.Errorf("%s: the error does not name the spec: %v", name, err)
		}
	}
}

// TestSpecs reads the project's specs: each parses without a warning and prints to the same spec.
func TestSpecs(t *testing.T) {
	for folder, atLeast := range map[string]int{"../../testdata/hermitage": 15, "../../testdata/cases": 29} {
		files, err := filepath.Glob(filepath.Join(folder, "*.spec"))
		if err != nil || len(files) < atLeast {
			t.Fatalf("%s: %d specs, want %d: %v", folder, len(files), atLeast, err)
		}
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Parse(file, src)
			if err != nil {
				t.Error(err)
				continue
			}
			printed, err := s.Print()
			if err != nil {
				t.Error(err)
				continue
			}
			s.Name = "x.spec"
			if diff := sameSpec(s, mustParse(t, printed)); diff != "" {
				t.Errorf("%s: %s", file, diff)
			}
			if len(s.Warnings) > 0 || len(s.Outcomes(nil)) == 0 || len(s.Permutations) != 1 {
				t.Errorf("%s: warnings %v, %d outcomes, %d permutations", file, s.Warnings, len(s.Outcomes(nil)), len(s.Permutations))
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/*.spec", "../../testdata/*/*.spec"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			src, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src)
		}
	}
	f.Add([]byte("session\"\"\rstep\"\"\"\"{}permutation\"\"\"\"(*)#"))
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := Parse("x.spec", src)
		if err != nil {
			return
		}
		printed, err := s.Print()
		if err != nil {
			t.Fatalf("parsed, but not printed: %v\n%q", err, src)
		}
		if diff := sameSpec(s, mustParse(t, printed)); diff != "" {
			t.Fatalf("%s\nof %q\nprinted %q", diff, src, printed)
		}
	})
}

// TestParseBounded: a file that is no scenario is refused in a moment, with the place of the first problems; columns count
// characters.
func TestParseBounded(t *testing.T) {
	_, err := Parse("x.spec", []byte("ä "+strings.Repeat("[", 2_000_000)))
	var problems Problems
	if !errors.As(err, &problems) || len(problems) != maxProblems {
		t.Fatalf("%d problems", len(problems))
	}
	if last := problems[maxProblems-1].Pos; last.Line != 1 || last.Column < maxProblems {
		t.Errorf("the last problem is at %v", last)
	}
	if _, err := Parse("x.spec", []byte("session a step s { SELECT '"+strings.Repeat("[", 2_000_000)+"' }")); err != nil {
		t.Errorf("a long statement: %.200v", err)
	}
}

// TestManyProblems: an error names the first problems of a file of another kind, and counts the others.
func TestManyProblems(t *testing.T) {
	for words, want := range map[int]string{shown - 1: "", shown + 3: "and 3 more"} {
		_, err := Parse("a.spec", []byte(strings.Repeat(": ", words)))
		lines := strings.Split(err.Error(), "\n")
		if got := lines[len(lines)-1]; len(lines) > shown+1 || (got == want) != (want != "") {
			t.Errorf("%d problems: %d lines, the last is %q", words, len(lines), got)
		}
	}
}
