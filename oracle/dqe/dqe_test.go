package dqe

import (
	"context"
	"strings"
	"testing"

	"wirecheck/oracle/schedule"
	"wirecheck/oracle/schedule/scheduletest"
	"wirecheck/statement/postgres"
)

func TestTranslate(t *testing.T) {
	for _, test := range []struct{ product, sql, query, update, remove string }{
		{"postgres", "SELECT a FROM t WHERE b > 1", "SELECT t.wc_dqe_id FROM t WHERE b > 1", "UPDATE t SET wc_dqe_hit = 1 WHERE b > 1", "DELETE FROM t WHERE b > 1"},
		{"postgres", "DELETE FROM t AS x WHERE x.b > 1", "SELECT x.wc_dqe_id FROM t AS x WHERE x.b > 1", "UPDATE t AS x SET wc_dqe_hit = 1 WHERE x.b > 1", "DELETE FROM t AS x WHERE x.b > 1"},
		{"mariadb", "UPDATE t SET a = 2 WHERE b > 1", "SELECT t.wc_dqe_id FROM t WHERE b > 1", "UPDATE t SET wc_dqe_hit = 1 WHERE b > 1", "DELETE FROM t WHERE b > 1"},
		{"mariadb", "SELECT a FROM t AS x WHERE x.b > 1", "SELECT x.wc_dqe_id FROM t AS x WHERE x.b > 1", "UPDATE t AS x SET wc_dqe_hit = 1 WHERE x.b > 1", "DELETE x FROM t AS x WHERE x.b > 1"},
	} {
		st := scheduletest.One(t, test.product, test.sql)
		q := Translate(&st, test.product != "postgres")
		unquoted := strings.NewReplacer("`", "", `"`, "")
		q.Select, q.Delete = unquoted.Replace(q.Select), unquoted.Replace(q.Delete)
		if q.Select != test.query || q.Update != test.update || q.Delete != test.remove {
			t.Errorf("%s: got\n%s\n%s\n%s", test.sql, q.Select, q.Update, q.Delete)
		}
	}
}

func TestCheck(t *testing.T) {
	const (
		query  = "SELECT a FROM t WHERE b > 1"
		chosen = "SELECT \"t\".wc_dqe_id FROM t WHERE b > 1"
		update = "UPDATE t SET wc_dqe_hit = 1 WHERE b > 1"
		hits   = "SELECT wc_dqe_id FROM \"t\" WHERE wc_dqe_hit = 1"
		remove = "DELETE FROM t WHERE b > 1"
		remain = "SELECT wc_dqe_id FROM \"t\""

		nested       = "SELECT a FROM t WHERE b NOT IN (SELECT c FROM u)"
		nestedChosen = "SELECT \"t\".wc_dqe_id FROM t WHERE b NOT IN (SELECT c FROM u)"
		nestedRemove = "DELETE FROM t WHERE b NOT IN (SELECT c FROM u)"
	)
	for _, test := range []struct {
		name, sql, setup string
		answers          map[string]string
		left             string // what remain gives after the deletion
		want             string // the outcome begins so
	}{
		{"the same rows", query, "", map[string]string{chosen: "1 3", hits: "3 1", remain: "1 2 3"}, "2", ""},
		{"one row less updated", query, "", map[string]string{chosen: "1 3", hits: "1", remain: "1 2 3"}, "2", "found " + update},
		{"one row more deleted", query, "", map[string]string{chosen: "1 3", hits: "1 3", remain: "1 2 3"}, "", "found " + remove},
		{"SELECT is wrong, and not the others", query, "", map[string]string{chosen: "1", hits: "1 3", remain: "1 2 3"}, "2", "found " + chosen},
		{"two of three say nothing of a subquery that an index may answer", nested, "", map[string]string{nestedChosen: "1 3", hits: "1 3", remain: "1 2 3"}, "", "contradict " + nestedRemove},
		{"a cascade may delete more", query, "CREATE TABLE u (a INT REFERENCES t ON DELETE CASCADE)", map[string]string{chosen: "1 3", hits: "1 3", remain: "1 2 3"}, "", ""},
		{"a refused update", query, "", map[string]string{chosen: "1 3", update: "error 22012", remain: "1 2 3"}, "2", "note " + update + ": not compared"},
		{"a trigger", query, "CREATE TRIGGER x BEFORE UPDATE ON t EXECUTE FUNCTION f()", nil, "", "unknown a trigger"},
		{"two rows of one number", query, "", map[string]string{chosen: "1", remain: "1 1"}, "", "unknown the server did not number the rows"},
		{"a join", "SELECT 1 FROM t JOIN t AS x ON true WHERE t.b > 1", "", nil, "", "note "},
		{"no condition", "SELECT a FROM t", "", nil, "", "note "},
	} {
		stage := &deleting{Scripted: scheduletest.Scripted{Answers: test.answers}, remain: remain, left: test.left}
		s := scheduletest.Single(t, "postgres", test.sql)
		if test.setup != "" {
			s.Setup = append(s.Setup, test.setup)
		}
		v, err := Check(t.Context(), s, stage, Options{Describe: postgres.Describe, Define: postgres.Define})
		if err != nil {
			t.Fatal(err)
		}
		got := scheduletest.Outcome(t, v)
		if len(v.Findings) == 1 && len(v.Findings[0].Difference.Wrong()) == 0 {
			got = strings.Replace(got, "found", "contradict", 1)
		}
		if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		if test.answers == nil && len(stage.Asked) > 0 {
			t.Errorf("%s: executed %q", test.name, stage.Asked)
		}
	}
}

// deleting is a scripted stage on which a deletion changes one answer until it is rolled back.
type deleting struct {
	scheduletest.Scripted
	remain, left string
	deleted      bool
}

func (d *deleting) Execute(ctx context.Context, session int, sql string) (schedule.Step, error) {
	switch {
	case strings.HasPrefix(sql, "DELETE"):
		d.deleted = true
	case sql == "ROLLBACK":
		d.deleted = false
	case sql == d.remain && d.deleted:
		other := scheduletest.Scripted{Answers: map[string]string{sql: d.left}}
		return other.Execute(ctx, session, sql)
	}
	return d.Scripted.Execute(ctx, session, sql)
}
