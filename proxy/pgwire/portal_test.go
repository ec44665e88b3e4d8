package pgwire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestContinuedPortals fetches the rows of portals in parts, as JDBC does with setFetchSize: the rows belong to the statement that opened the portal.
func TestContinuedPortals(t *testing.T) {
	const open = "P s|SELECT k FROM t ORDER BY k"
	for _, tt := range []struct {
		name  string
		steps []string // of two sessions; those of the second one begin with 2
		want  string   // the first session's statements: number, what was seen, rows
	}{
		{"in parts", []string{"Q BEGIN", open, "B c s||", "E c 1", "S", "2Q UPDATE t SET v = v + 1", "E c 1", "S", "E c 0", "S", "Q SELECT k FROM t WHERE k = 1", "Q COMMIT"},
			"1 exact 1; 1 exact 2; 1 exact 3; 2 exact 1"},
		{"one batch", []string{"Q BEGIN", open, "B c s||", "E c 1", "E c 1", "E c 5", "S", "Q COMMIT"}, "1 exact 1; 1 exact 2; 1 exact 3"},
		{"an implicit transaction", []string{open, "B c s||", "E c 2", "H", "W s 1", "E c 2", "S"}, "1 exact 1 2; 1 exact 3"},
		{"not in parts", []string{"Q BEGIN", open, "B c s||", "E c 9", "S", "Q COMMIT"}, "1 exact 1 2 3"},
		{"two portals", []string{"Q BEGIN", open, "B c s||", "B d s||", "E c 1", "E d 1", "E c 1", "E d 2", "S", "Q COMMIT"},
			"1 exact 1; 2 exact 1; 1 exact 2; 2 exact 2 3"},
		{"a name used again", []string{"Q BEGIN", open, "B c s||", "E c 1", "C Pc", "B c s||", "E c 1", "S", "Q COMMIT"}, "1 exact 1; 2 exact 1"},
		{"the unnamed portal bound again", []string{"Q BEGIN", open, "B  s||", "E  1", "B  s||", "E  1", "S", "Q COMMIT"}, "1 exact 1; 2 exact 1"},
		{"the first one ignored", []string{"Q BEGIN", open, "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "E c 1", "S", "Q ROLLBACK TO a", "E c 1", "E c 1", "S", "Q COMMIT"},
			"3 error; 5 exact 1; 5 exact 2"},
		{"a write, ignored first", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 WHERE k < 3", "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "E c 0", "S", "Q ROLLBACK TO a", "E c 0", "S", "Q COMMIT"},
			"3 error; 5 exact 1 2"},
		{"a write", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 RETURNING k", "B c s||", "E c 1", "S", "E c 9", "S", "Q SELECT k FROM t WHERE k = 1", "Q COMMIT"},
			"1 approximate 1; 1 approximate 2 3; 2 exact 1"},
		{"ignored, as the client knew", []string{"Q BEGIN", "P s|UPDATE t SET v = 0 WHERE k < 3", "B c s||", "S", "Q SAVEPOINT a", "P |SELEC", "H", "W E 1", "E c 0", "S", "Q ROLLBACK TO a", "E c 0", "S", "Q COMMIT"},
			"2 error; 4 exact 1 2"},
		{"another transaction", []string{"Q BEGIN", open, "B c s||", "E c 1", "S", "Q COMMIT", "Q BEGIN", open, "E c 1", "S", "Q ROLLBACK", "Q SELECT k FROM t WHERE k = 2"}, "1 exact 1; 1 error; 1 exact 2"},
	} {
		srv := testserver.Postgres(t)
		db := srv.Database(t).As(testserver.AppTrust)
		const setup = "CREATE TABLE t (k int PRIMARY KEY, v int); INSERT INTO t VALUES (1, 1), (2, 2), (3, 3)"
		db.Exec(t, setup)
		ev := &events{}
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: proxy.Observe}, observer(ev))
		alone := []session{{name: tt.name, steps: slices.DeleteFunc(slices.Clone(tt.steps), func(step string) bool { return step[0] == '2' })}}
		direct, through := srv.Database(t).As(testserver.AppTrust), srv.Database(t).As(testserver.AppTrust)
		direct.Exec(t, setup)
		through.Exec(t, setup)
		compare(t, alone, play(t, srv.Address(), direct.Name, alone), play(t, r.addr.String(), through.Name, alone))
		before := len(ev.all())
		one, two := dialWire(t, r.addr.String(), db.User, db.Name), dialWire(t, r.addr.String(), db.User, db.Name)
		for _, step := range tt.steps {
			if other, ok := strings.CutPrefix(step, "2"); ok {
				two.step(other)
			} else {
				one.step(step)
			}
		}
		one.step("X")
		two.step("X")
		r.stop()
		var got []string
		for _, e := range ev.all()[before:] {
			if e.Kind != history.EventStmt || strings.HasPrefix(e.SQL, "UPDATE t SET v = v") || e.Coverage == history.CoverageNone && e.Error == nil {
				continue
			}
			said := fmt.Sprintf("%d %s", e.N, e.Coverage)
			if e.Error != nil {
				said = fmt.Sprintf("%d error", e.N)
			}
			for _, a := range e.Accesses {
				said += " " + a.Row.Key
			}
			got = append(got, said)
		}
		if d := cmp.Diff(tt.want, strings.Join(got, "; ")); d != "" {
			t.Errorf("%s: (-want +got)\n%s", tt.name, d)
		}
	}
}
