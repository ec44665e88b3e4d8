package hunt

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
)

// audit reads two accounts one after the other while a transfer moves 10 between them.
const audit = `setup { CREATE TABLE t1 (id int PRIMARY KEY, n int) }
setup { CREATE TABLE t2 (id int PRIMARY KEY, n int) }
setup { INSERT INTO t1 VALUES (1, 100), (2, 100), (3, 5) }
session transfer
step ta { BEGIN }
step tb { UPDATE t1 SET n = n - 10 WHERE id = 1 }
step tc { UPDATE t1 SET n = n + 10 WHERE id = 2 }
step td { COMMIT }
session audit
step aa { BEGIN }
step ab { INSERT INTO t2 SELECT id, n FROM t1 WHERE id = 1 }
step ax { SELECT n FROM t1 WHERE id = 3 }
step ac { INSERT INTO t2 SELECT id, n FROM t1 WHERE id = 2 }
step ad { COMMIT }
permutation ta tb tc aa ab td ax ac ad
`

// TestHunterInvariant: a case that breaks an invariant is made small and kept with the command that shows it. What a serial order breaks as well, what
// holds, and a query for other tables are counted.
func TestHunterInvariant(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "found")
	h := hunterOn(t, "postgres", "crash", dir)
	texts := []string{"SELECT sum(n) FROM t2 HAVING sum(n) <> 200", "same:SELECT count(*) FROM t2", "same:SELECT sum(n) FROM t1", "SELECT c1 FROM t9"}
	var err error
	if h.Options.Invariants, err = lab.ParseInvariants(texts); err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		h.invariants = append(h.invariants, &Invariant{Invariant: text})
	}
	spec, err := scenario.Parse("audit.spec", []byte(audit))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"read committed", "repeatable read", "read committed"} {
		level, err := panel.FindLevel(h.Instance.Engine, name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := h.At(t.Context(), level)
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Run(t.Context(), spec, spec.Permutations[0])
		if err != nil {
			t.Fatal(err)
		}
		if err := h.breaks(t.Context(), b, spec, level, d.Result); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []Invariant{{Judged: 3, Broken: 2}, {Judged: 3, Alone: 3}, {Judged: 3}, {Refused: 3}} {
		got := h.invariants[i]
		if got.Judged != want.Judged || got.Broken != want.Broken || got.Alone != want.Alone || got.Unsure != 0 || got.Refused != want.Refused {
			t.Errorf("%s: got %+v, want %+v", texts[i], got, want)
		}
	}
	first := h.invariants[0]
	text, err := os.ReadFile(first.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "WHERE id = 3") || !strings.Contains(string(text), "permutation") || first.Level != "read committed" || first.Steps >= len(spec.Permutations[0].Steps) {
		t.Errorf("kept is %+v\n%s", first, text)
	}
	r := &Report{Invariants: h.invariants}
	var out strings.Builder
	if err := r.Text(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"invariant broken in 2 of 3 cases: SELECT sum(n) FROM t2 HAVING sum(n) <> 200: it gives ", "again: wirecheck run " + first.Spec + " --engine postgres --invariant 'SELECT sum(n) FROM t2 HAVING sum(n) <> 200'",
		"same:SELECT count(*) FROM t2: held in 0 of 3 cases\n  broken by a serial order as well, so by the statements themselves: 3 cases",
		"invariant: same:SELECT sum(n) FROM t1: held in 3 of 3 cases\n", "could not be judged: 3 cases; the first: invariant SELECT c1 FROM t9: the server refuses it",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, out.String())
		}
	}
	if !r.Broke() || (&Report{Invariants: h.invariants[1:]}).Broke() {
		t.Error("only the first invariant is broken")
	}
}
