package scenario

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// isolationtester gives the path of PostgreSQL's program, of the newest version that is installed.
func isolationtester(t *testing.T) string {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/lib/pgxs/src/test/isolation/isolationtester")
	if len(found) == 0 {
		t.Skip("isolationtester is not installed (Debian: postgresql-server-dev-15)")
	}
	return slices.Max(found)
}

// TestAsIsolationtester hands texts to PostgreSQL's own program, without a server: it parses, checks, and only then looks
// for one. Both must accept and refuse the same texts, see as many sessions and name the same unused steps.
func TestAsIsolationtester(t *testing.T) {
	program := isolationtester(t)
	rng := rand.New(rand.NewPCG(1, 2))
	accepted := 0
	for i := range 300 {
		src := randomSpec(rng)
		cmd := exec.CommandContext(t.Context(), program, "host=/nonexistent")
		cmd.Stdin = strings.NewReader(src)
		out, _ := cmd.CombinedOutput() // fails always: there is no server
		s, err := Parse("x.spec", []byte(src))
		if accepts := strings.Contains(string(out), "Parsed test spec"); accepts != (err == nil) {
			t.Errorf("text %d: isolationtester said %q, Parse %v:\n%s", i, out, err, src)
			continue
		}
		if err != nil {
			continue
		}
		accepted++
		want := fmt.Sprintf("Parsed test spec with %d sessions", len(s.Sessions))
		if !strings.Contains(string(out), want) {
			t.Errorf("text %d: isolationtester said %q, want %q:\n%s", i, out, want, src)
		}
		for _, session := range s.Sessions {
			for _, st := range session.Steps {
				unused := slices.ContainsFunc(s.Warnings, func(p Problem) bool { return p.Text == "unused step name: "+st.Name })
				if told := strings.Contains("\n"+string(out), "\nunused step name: "+st.Name+"\n"); told != unused {
					t.Errorf("text %d: step %q unused: isolationtester %v, Parse %v:\n%s", i, st.Name, told, unused, src)
				}
			}
		}
	}
	if accepted < 50 || accepted > 250 {
		t.Errorf("%d of 300 texts were accepted, so this compares little", accepted)
	}
}

// randomSpec makes a spec of few names, and then perhaps breaks it.
func randomSpec(rng *rand.Rand) string {
	names := []string{"a", "b", "c", "d", `"a"`, `"x y"`, `"q""q"`, `""`, "_1$", "ä"}
	name := func() string { return names[rng.IntN(len(names))] }
	maybe := func(text string) string {
		if rng.IntN(3) == 0 {
			return text
		}
		return ""
	}
	blanks := []string{" ", "\n", "\t", " # c\n", "\r\n", "\f"}
	var parts []string
	add := func(p ...string) { parts = append(parts, p...) }
	add(maybe("setup { x\n}"), maybe("setup{}"), maybe("teardown { y }"))
	var steps []string
	for i := range 1 + rng.IntN(3) {
		add("session", name(), maybe("setup { a } "))
		for j := range 1 + rng.IntN(3) {
			st := fmt.Sprintf("s%d%d", i, j)
			if rng.IntN(4) == 0 {
				st = name()
			}
			steps = append(steps, st)
			add("step", st, "{ SELECT\n1 }")
		}
		add(maybe("teardown{ b }"))
	}
	step := func() string { return steps[rng.IntN(len(steps))] }
	for range rng.IntN(3) {
		add("permutation", step())
		for range rng.IntN(4) {
			add(step())
			switch rng.IntN(6) {
			case 0:
				add("(*)")
			case 1:
				add("(", step(), ")")
			case 2:
				add("(", step(), "notices 2, *)")
			}
		}
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	if rng.IntN(3) == 0 {
		i := rng.IntN(len(parts))
		odd := []string{"step", "setup", "{ x", "}", "\"", ";", "12", "3x", "notices", "(", ",", "{}", "teardown {}", "", "#", "permutation", "*"}
		parts[i] = odd[rng.IntN(len(odd))]
	}
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p)
		b.WriteString(blanks[rng.IntN(len(blanks))])
	}
	return b.String()
}
