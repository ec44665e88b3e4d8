package main

import (
	"encoding/json"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/lab/panel"
	"wirecheck/lab/suite"
)

// audited has a transfer beside an audit that reads the two accounts one after the other.
const audited = `#wirecheck: oracle: none
setup { CREATE TABLE acc (id int PRIMARY KEY, n int) }
setup { CREATE TABLE audit (id int PRIMARY KEY, n int) }
setup { INSERT INTO acc VALUES (1, 100), (2, 100) }
teardown { DROP TABLE acc, audit }
session transfer
step ta { BEGIN }
step tb { UPDATE acc SET n = n - 10 WHERE id = 1 }
step tc { UPDATE acc SET n = n + 10 WHERE id = 2 }
step td { COMMIT }
session audit
step aa { BEGIN }
step ab { INSERT INTO audit SELECT id, n FROM acc WHERE id = 1 }
step ac { INSERT INTO audit SELECT id, n FROM acc WHERE id = 2 }
step ad { COMMIT }
`

// TestRunInvariant: the shortest permutation that breaks an invariant is printed, and none where the level prevents it.
func TestRunInvariant(t *testing.T) {
	path, doctors := specFile(t, "audit.spec", audited), specFile(t, "doctors.spec", "#wirecheck: oracle: none\n"+skew[len("#wirecheck: expect[postgres: repeatable read]: write skew\n"):])
	const total, sum = "SELECT sum(n) FROM audit HAVING sum(n) <> 200", "same:SELECT sum(n) FROM acc"
	for _, url := range []string{serverURL(testserver.Postgres(t)), serverURL(testserver.MariaDB(t))} {
		at := func(level string, more ...string) []string {
			return append([]string{path, "--engine", url, "--level", level, "--permutations", "all", "--invariant", total, "--invariant", sum}, more...)
		}
		expectRun(t, exitFound, []string{
			"invariant broken: SELECT sum(n) FROM audit HAVING sum(n) <> 200: it gives 210", "shortest: ta tb tc aa ab td ac ad",
			"no serial order of the sessions breaks it: the interleaving does",
		}, at("read committed")...)
		expectRun(t, exitFound, []string{"shortest: ta tb tc aa ab td ac ad", "found in permutation"}, at("read committed", "--quiet")...)
		expectRun(t, exitClean, []string{"with findings: 0"}, at("repeatable read")...)
		expectRun(t, exitFound, []string{
			"invariant broken in 1 of 1 permutation: SELECT sum(on_call) FROM doctor: before: 2; after: 0",
			"the serial order alice, bob breaks it as well: the statements do not keep it",
		}, doctors, "--engine", url, "--level", "read committed", "--invariant", "same:SELECT sum(on_call) FROM doctor")

		out, _ := expectRun(t, exitFound, nil, at("read committed", "--format", "json")...)
		var result struct {
			Runs []struct {
				Run        int                     `json:"run"`
				Invariants []suite.BrokenInvariant `json:"invariants"`
			} `json:"runs"`
			Cases []panel.CaseReport `json:"cases"`
		}
		if err := json.Unmarshal([]byte(out), &result); err != nil {
			t.Fatal(err)
		}
		broken := 0
		for _, c := range result.Cases {
			if len(c.Broken) > 0 {
				broken++
			}
		}
		if r := result.Runs[0]; len(r.Invariants) != 1 || r.Invariants[0].Invariant != total || r.Invariants[0].Broken != broken || broken == 0 || broken == r.Run || r.Invariants[0].Serial != "" {
			t.Errorf("%+v, broken in %d", r, broken)
		}
	}
}

// TestRunInvariantRefused: an invariant that cannot be judged is an error.
func TestRunInvariantRefused(t *testing.T) {
	path, url := specFile(t, "audit.spec", audited), serverURL(testserver.Postgres(t))
	for invariant, want := range map[string]string{
		"SELECT nothing FROM acc":     `invariant SELECT nothing FROM acc: the server refuses it: column "nothing" does not exist`,
		"SELECT n FROM acc":           "it does not hold before the first step: it gives 100, 100",
		"same:":                       "expected a query that must give no rows",
		"DELETE FROM acc WHERE n = 7": "it is not one query that gives rows",
	} {
		expectRun(t, exitFailed, []string{want}, path, "--engine", url, "--invariant", invariant)
	}
	expectRun(t, exitFailed, []string{"--invariant is not for --format matrix"}, path, "--engine", url, "--invariant", "SELECT 1", "--format", "matrix")
}

// TestHuntInvariant: a hunt says in how many cases an invariant holds, and that it means nothing if none could be judged. A fleet takes none.
func TestHuntInvariant(t *testing.T) {
	t.Parallel()
	hunt := func(want exitStatus, part string, args ...string) {
		t.Helper()
		args = append([]string{"hunt", "--cases", "4", "--oracle", "crash", "--seed", "3", "--out", t.TempDir(), "--no-progress", "--log-level", "error", "--engine", serverURL(testserver.Postgres(t))}, args...)
		out, said, status := command(t, args...)
		if status != want || !strings.Contains(out+said, part) {
			t.Errorf("%v: exit status %d, want %d and %q\n%s%s", args, status, want, part, out, said)
		}
	}
	hunt(exitClean, "invariant: SELECT * FROM t1 WHERE false: held in 4 of 4 cases", "--invariant", "SELECT * FROM t1 WHERE false")
	hunt(exitUnknown, "undecided: an invariant could be judged behind no case", "--invariant", "SELECT * FROM nowhere")
	hunt(exitClean, `"judged": 4`, "--invariant", "SELECT * FROM t1 WHERE false", "--format", "json")
	hunt(exitFailed, "expected a query that must give no rows", "--invariant", "same:")
	hunt(exitFailed, "--invariant is for one hunter", "--invariant", "SELECT 1", "--join", "embedded:"+t.TempDir())
}
