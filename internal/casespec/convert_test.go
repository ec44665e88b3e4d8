package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/scenario"
)

func TestConvert(t *testing.T) {
	const in = `{
 "id": "hermitage-g2item", "title": "Two tables", "source": "https://example.org/1", "kind": "txn", "family": "any",
 "isolation": ["RU", "RR"], "mode": "optimistic", "session_init": ["SET x = 1"], "class": "bug", "notes": "n",
 "setup": ["CREATE TABLE t(c INT)", "create table u (c INT)", "INSERT INTO t VALUES (1)"],
 "schedule": [{"session": "b", "sql": "BEGIN"}, {"session": "a", "sql": "SELECT 1"}, {"session": "b", "sql": "COMMIT"}],
 "final": ["SELECT * FROM t", "SELECT * FROM u"],
 "buggy": [{"stmt": 2, "rows": ["1|a b", "NULL|or"], "blocked": false}, {"final": 2, "nrows": 3}, {"stmt": 3, "err": "1213", "affected": 0}],
 "correct": [{"final": 1, "rows": []}, {"stmt": 1, "err": "*", "crash": false, "wss_stmt": true}, {"wss_tx": false}],
 "oracles": ["isorel (write skew)", "troc"]
}`
	const want = `# hermitage-g2item: Two tables
# Source: https://example.org/1
# Class: bug
# Note: n

#wirecheck: engine: postgres, mariadb, mysql, tidb
#wirecheck: level: read uncommitted, repeatable read
#wirecheck: final: SELECT * FROM t
#wirecheck: final: SELECT * FROM u
#wirecheck: outcome buggy: rows(aa) are 1|'a b', NULL|'or' and not blocked(aa) and count(final2) = 3 and affected(bb) = 0 and failed(bb) with 1213
#wirecheck: outcome correct: rows(final) are none and failed(ba) and not crashed and found(wss-stmt) and not found(wss-tx)
#wirecheck: expect[mariadb, mysql, tidb, postgres: repeatable read]: write skew
#wirecheck: observe: not buggy
#wirecheck: observe[mariadb, mysql, tidb, postgres: repeatable read]: buggy

setup { CREATE TABLE t(c INT) }
setup { create table u (c INT) }
setup { INSERT INTO t VALUES (1) }
teardown { DROP TABLE t, u }

session b
setup { SET x = 1; SET SESSION tidb_txn_mode = 'optimistic' }
step ba { BEGIN }
step bb { COMMIT }

session a
setup { SET x = 1; SET SESSION tidb_txn_mode = 'optimistic' }
step aa { SELECT 1 }

permutation ba aa bb
`
	got, err := convert([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConvertProblems(t *testing.T) {
	for in, want := range map[string]string{
		`{"id": "x", "new": 1}`: `unknown field "new"`,
		`{"id": "x", "family": "any", "schedule": [{"session": "s", "sql": "x"}], "buggy": [{"stmt": 2, "nrows": 1}]}`: "a condition names statement 2 and final query 0; there are 1 and 0",
		`{"id": "x", "family": "any", "schedule": [{"session": "s", "sql": "SELECT '}'"}]}`:                            "holds a }",
	} {
		if _, err := convert([]byte(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", in, err, want)
		}
	}
}

// TestTables: every case in the tables exists as a spec, and its observe lines say what the table says.
func TestTables(t *testing.T) {
	for id, where := range seen {
		s := read(t, id)
		for _, sel := range where {
			for _, engine := range sel.Engines {
				levels := sel.Levels
				if len(levels) == 0 {
					levels = []string{"serializable"} // any
				}
				for _, level := range levels {
					product, version, _ := strings.Cut(engine, " ")
					target := scenario.Target{Engine: product, Version: version, Level: level}
					got, ok := s.Observe(nil, target)
					if !ok || !s.For(nil, target) || len(got) != 1 || got[0] != (scenario.Observation{Outcome: "buggy", Holds: true}) {
						t.Errorf("%s on %v: observe %v %v, meant for it %v", id, target, got, ok, s.For(nil, target))
					}
				}
			}
		}
		elsewhere := scenario.Target{Engine: "cockroach", Level: "read committed"}
		if got, ok := s.Observe(nil, elsewhere); !ok || got[0].Holds || s.For(nil, elsewhere) {
			t.Errorf("%s elsewhere: observe %v %v", id, got, ok)
		}
	}
	for id := range silent {
		names, ok := read(t, id).Expect(nil, scenario.Target{Engine: "tidb", Level: "repeatable read"})
		if !ok || len(names) != 0 {
			t.Errorf("%s: expect %v %v, want nothing", id, names, ok)
		}
	}
	for id := range misfires {
		if got, ok := read(t, id).Observe(nil, scenario.Target{}); ok {
			t.Errorf("%s: observe %v", id, got)
		}
	}
}

func read(t *testing.T, id string) *scenario.Spec {
	t.Helper()
	file := filepath.Join("../../testdata/cases", id+".spec")
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(file, src)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
