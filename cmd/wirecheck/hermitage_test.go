package main

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestHermitage executes the Hermitage scenarios at every level and compares each cell with docs/lab/hermitage.md. The scenarios
// themselves say what should be observed and found; a cell that disagrees has exit status 1.
func TestHermitage(t *testing.T) {
	t.Parallel()
	specs := glob(t, "../../testdata/hermitage/*.spec")
	document, err := os.ReadFile("../../docs/lab/hermitage.md")
	if err != nil {
		t.Fatal(err)
	}
	want := tables(string(document))
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"run", "--engine", name, "--level", "all", "--format", "markdown"}, specs...)
			out, said, status := command(t, args...)
			if status != exitClean {
				t.Errorf("exit status %d, said:\n%s", status, said)
			}
			got := tables(out)[name]
			if len(got) != len(specs)*len(strings.Split(strings.SplitN(out, "\n|---", 2)[1], "---|")[1:]) {
				t.Errorf("%d cells for %d scenarios:\n%s", len(got), len(specs), out)
			}
			for at, cell := range got {
				if want[name][at] != cell {
					t.Errorf("%s:\n got %q\nwant %q\n(the table in docs/lab/hermitage.md is what make hermitage printed; change it there, with the reason)", at, cell, want[name][at])
				}
			}
			for at := range want[name] {
				if _, ok := got[at]; !ok {
					t.Errorf("%s: in docs/lab/hermitage.md, but not executed", at)
				}
			}
		})
	}
}

var headline = regexp.MustCompile("^## .*\\(`(.*)`\\)$")

// tables reads what --format matrix printed: by engine, then by scenario and level.
func tables(text string) map[string]map[string]string {
	all := map[string]map[string]string{}
	name, levels := "", []string(nil)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		if m := headline.FindStringSubmatch(lines.Text()); m != nil {
			name, levels = m[1], nil
			all[name] = map[string]string{}
			continue
		}
		row, ok := strings.CutPrefix(lines.Text(), "| ")
		if !ok || name == "" {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(row, " |"), " | ")
		if levels == nil {
			levels = cells[1:]
			continue
		}
		for i, cell := range cells[1:] {
			all[name][cells[0]+" at "+levels[i]] = cell
		}
	}
	return all
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("%s: %v, %v", pattern, paths, err)
	}
	return paths
}

// TestMatrixSays: what disagrees, cannot be seen or is not there is said, and decides the exit status.
func TestMatrixSays(t *testing.T) {
	const body = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int) }
setup { INSERT INTO t VALUES (1, 10) }
teardown { DROP TABLE t }
session a
step b1 { BEGIN }
step r1 { SELECT n FROM t WHERE id = 1 }
step w1 { UPDATE t SET n = 11 WHERE id = 1 }
step c1 { COMMIT }
session b
step w2 { UPDATE t SET n = 12 WHERE id = 1 }
permutation b1 r1 w2 w1 c1
`
	postgres := serverURL(testserver.Postgres(t))
	tests := []struct {
		head, engine, want string
		status             exitStatus
	}{
		{"#wirecheck: outcome P4: rows(r1) are 10 and ok(w2) and ok(c1)\n", postgres, "| let through; oracle: lost update; agrees |", exitClean},
		{"#wirecheck: outcome P4: not ok(c1)\n", postgres, "| prevented: snapshot; oracle: lost update; **disagrees** (the results do not show P4) |", exitFound},
		{"#wirecheck: outcome G0: ok(c1)\n", postgres, "| let through; oracle: lost update; **disagrees** (the results show G0, which should be reported as G0) |", exitFound},
		{"#wirecheck: outcome P4: ok(c1)\n#wirecheck: expect: none\n", postgres, "**disagrees** (found lost update, which was not expected)", exitFound},
		{"#wirecheck: outcome own: ok(c1)\n", postgres, "| let through; oracle: lost update |", exitClean},
		{"", "tidb:nosuch", "## TiDB (`tidb:nosuch`)\n\nNot installed.", exitClean},
		{"", "nosuch", "", exitFailed},
	}
	for _, test := range tests {
		path := filepath.Join(t.TempDir(), "case.spec")
		if err := os.WriteFile(path, []byte(test.head+body), 0o644); err != nil {
			t.Fatal(err)
		}
		out, said, status := command(t, "run", path, "--engine", test.engine, "--format", "markdown")
		if status != test.status || !strings.Contains(out, test.want) {
			t.Errorf("%q on %s: exit status %d, want %d; said %q, printed:\n%s\nwant in it: %s", test.head, test.engine, status, test.status, said, out, test.want)
		}
	}
}

// TestFindingNamesSteps: of steps with the same text, a finding names the one that it is about.
func TestFindingNamesSteps(t *testing.T) {
	for _, s := range []*testserver.Server{testserver.Postgres(t), testserver.MariaDB(t)} {
		out, said, status := command(t, "run", "../../testdata/hermitage/otv.spec", "--engine", serverURL(s), "--level", "read committed")
		for _, want := range []string{"t3 in r3a read test id=1 as it was before t2 in w2a wrote it", "and t3 in r3c read that"} {
			if status != exitClean || !strings.Contains(out, want) {
				t.Errorf("%s: exit status %d, said %q, printed:\n%s\nwant in it: %s", s.Engine, status, said, out, want)
			}
		}
	}
}

// TestSetupIsInitial: what the setup wrote comes first, also if it was not seen being written (here the table is made in the
// same text), and in transactions that the sessions' setups began. Each session writes before it reads.
func TestSetupIsInitial(t *testing.T) {
	const text = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int); INSERT INTO t VALUES (1, 10), (2, 20); }
teardown { DROP TABLE t; }
session a
setup { BEGIN; }
step w1 { UPDATE t SET n = 11 WHERE id = 1; }
step r1 { SELECT n FROM t WHERE id = 2; }
step c1 { COMMIT; }
session b
setup { BEGIN; }
step w2 { UPDATE t SET n = 21 WHERE id = 2; }
step r2 { SELECT n FROM t WHERE id = 1; }
step c2 { COMMIT; }
permutation w1 w2 r1 r2 c1 c2
permutation w1 r1 c1 w2 r2 c2
permutation w2 w1 r2 r1 c2 c1
`
	path := filepath.Join(t.TempDir(), "case.spec")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, level := range []string{"read committed", "repeatable read"} {
		out, said, status := command(t, "run", path, "--engine", serverURL(testserver.Postgres(t)), "--level", level)
		if status != exitFound || strings.Count(out, "write skew (G2-item)") != 2 || strings.Count(out, "nothing found") != 1 {
			t.Errorf("%s: exit status %d, said %q, printed:\n%s", level, status, said, out)
		}
	}
}
