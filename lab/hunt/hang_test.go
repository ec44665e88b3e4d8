package hunt

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/crash"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// TestHang: a case that hangs is made small with a fraction of its limit, beginning with the statement that gave no answer; near miss: a statement that is
// slow, but has its answer within the limit.
func TestHang(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, sql string
		steps     int
	}{{"hangs", "SELECT SLEEP(1000)", 1}, {"hangs by what was written", "SELECT SLEEP(1000) FROM t WHERE a = 2", 2}, {"is slow", "SELECT SLEEP(6)", 6}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			h := hunterOn(t, "mariadb", "crash", filepath.Join(t.TempDir(), "found"))
			if err := h.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			var err error
			if h.Executor, err = panel.OpenExecutor(t.Context(), "mariadb", h.o.Selection, h.o.Judging, 20*time.Second, false); err != nil {
				t.Fatal(err)
			}
			h.o.Tries = 10
			spec, err := scenario.Parse("hang.spec", []byte("setup { CREATE TABLE t (a INT) }\nsetup { INSERT INTO t VALUES (1) }\nsession s\nstep s1 { SELECT 1 }\nstep s2 { SELECT 2 }\n"+
				"step s3 { INSERT INTO t VALUES (2) }\nstep s4 { "+test.sql+" }\nstep s5 { SELECT 5 }\nstep s6 { DELETE FROM t }\npermutation s1 s2 s3 s4 s5 s6"))
			if err != nil {
				t.Fatal(err)
			}
			silent := schedule.Step{Name: "s4", Statement: statement.Statement{Text: test.sql}}
			f := crash.Check(&schedule.Schedule{Sessions: []schedule.Session{{Name: "s"}}, Hung: true, Trouble: "no answer", Silent: &silent}).Findings[0]
			if f.Name != oracle.NameHang || f.Difference.Step != "s4" || f.Difference.SQL != test.sql {
				t.Fatalf("the finding does not tell the statement: %+v", f.Difference)
			}
			small, _, err := h.smallest(t.Context(), spec, h.levels[0], &f)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(small.Permutations[0].Steps); n != test.steps || !strings.Contains(small.Sessions[0].Steps[min(3, n-1)].SQL, "SLEEP") {
				t.Errorf("%d steps, want %d", n, test.steps)
			}
		})
	}
}
