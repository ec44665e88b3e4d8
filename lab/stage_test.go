package lab

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// onStage opens a stage on a private server.
func onStage(t *testing.T, name string) *Stage {
	t.Helper()
	c := place(t, name)
	c.Reset = Quick
	describe := Describe(postgres.Describe)
	if name != "postgres" {
		describe = mysql.New(mysql.MariaDB).Describe
	}
	return NewStage(open(t, c), "1", describe)
}

// contents are the stage's tables in short.
func contents(t *testing.T, s *Stage) string {
	t.Helper()
	tables, err := s.Tables(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, table := range tables {
		var rows []string
		for _, row := range table.Rows {
			var values []string
			for _, v := range row {
				if v == nil {
					v = []byte("NULL")
				}
				values = append(values, string(v))
			}
			rows = append(rows, strings.Join(values, "|"))
		}
		out = append(out, table.Name+": "+strings.Join(rows, ", "))
	}
	return strings.Join(out, "; ")
}

func execute(t *testing.T, s *Stage, session int, sql string) schedule.Step {
	t.Helper()
	st, err := s.Execute(t.Context(), session, sql)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return st
}

// TestStageAlone: a case without sessions, as reduction tries it, can be asked for what its setup made.
func TestStageAlone(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			setup := []string{"CREATE TABLE t (a INT PRIMARY KEY, b INT, UNIQUE (b, a))", "CREATE TABLE u (a INT, c INT, CONSTRAINT k FOREIGN KEY (c, a) REFERENCES t (b, a))",
				"ALTER TABLE t ADD CONSTRAINT l FOREIGN KEY (b) REFERENCES t (a)"}
			if err := s.Prepare(t.Context(), setup, 0); err != nil {
				t.Fatal(err)
			}
			list, known, err := schedule.References(t.Context(), s, product.Of(name))
			for i := range list { // each column with the one that refers to it
				for k, from := range list[i].From {
					list[i].From[k] = from + " to " + list[i].Columns[k]
				}
				slices.Sort(list[i].From)
				list[i].Columns = nil
			}
			slices.SortFunc(list, func(a, b schedule.Reference) int { return strings.Compare(a.Child, b.Child) })
			want := []schedule.Reference{{Child: "t", Parent: "t", From: []string{"b to a"}}, {Child: "u", Parent: "t", From: []string{"a to a", "c to b"}}}
			if err != nil || !known || !cmp.Equal(list, want) {
				t.Errorf("foreign keys %v, known %v, error %v", list, known, err)
			}
		})
	}
}

func TestStage(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			setup := []string{"CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(5))", "INSERT INTO t VALUES (1, 'x'), (2, NULL)"}
			prepare := func(setup ...string) {
				t.Helper()
				if err := s.Prepare(t.Context(), setup, 2); err != nil {
					t.Fatal(err)
				}
			}
			want := func(text string) {
				t.Helper()
				if got := contents(t, s); got != text {
					t.Errorf("tables are %q, want %q", got, text)
				}
			}
			prepare(setup...)
			want("t: 1|x, 2|NULL")
			execute(t, s, 0, "BEGIN")
			st := execute(t, s, 0, "UPDATE t SET b = 'y' WHERE a = 2")
			if st.Before != answer.Open || st.After != answer.Open || st.Answer.Affected != 1 || st.Statement.Text != "UPDATE t SET b = 'y' WHERE a = 2" || st.Effect != answer.EffectNone {
				t.Errorf("the update is %+v", st)
			}
			want("t: 1|x, 2|NULL") // not committed
			if st := execute(t, s, 1, "SELECT b FROM t WHERE a = 2"); len(st.Answer.Rows) != 1 || st.Answer.Rows[0][0] != nil || st.After != answer.Idle {
				t.Errorf("another session reads %+v", st.Answer)
			}
			execute(t, s, 0, "COMMIT")
			want("t: 1|x, 2|y")
			if st := execute(t, s, 1, "INSERT INTO t VALUES (1, 'z')"); st.Answer.Err == nil || st.Reason != answer.ReasonOther || !st.Failed() {
				t.Errorf("a duplicate is answered with %+v", st)
			}
			execute(t, s, 1, "BEGIN") // is left open: Reset ends it
			execute(t, s, 1, "DELETE FROM t")
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("t: 1|x, 2|NULL")

			tables, err := s.Tables(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tables[0].Rows = [][]answer.Value{{[]byte("7"), []byte("q'q")}}
			if err := s.Load(t.Context(), tables); err != nil {
				t.Fatal(err)
			}
			want("t: 7|q'q")
			row := tables[0].Rows[0]
			tables[0].Rows = [][]answer.Value{row, row} // break the key
			var refused *schedule.Refused
			if err := s.Load(t.Context(), tables); !errors.As(err, &refused) {
				t.Errorf("rows that break a key were loaded: %v", err)
			}
			tables[0].Rows = [][]answer.Value{row}
			if err := s.Load(t.Context(), tables); err != nil {
				t.Errorf("after a refusal: %v", err)
			}
			want("t: 7|q'q")
			tables[0].Name = "other"
			if err := s.Load(t.Context(), tables); err == nil || !strings.Contains(err.Error(), "no table other") {
				t.Errorf("a table that is not there was loaded: %v", err)
			}
			prepare(setup...)
			want("t: 1|x, 2|NULL")
			execute(t, s, 0, "ALTER TABLE t ADD COLUMN c INT") // another database now: Reset sees it
			if err := s.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("t: 1|x, 2|NULL")
			prepare("CREATE TABLE u (x INT)")
			want("u: ")
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE"}, 1); err == nil {
				t.Error("a setup that is no SQL was accepted")
			}
		})
	}
}

// TestStageAhead: a stage that was reset ahead of its case is as Prepare makes it, whatever has used it before or since.
func TestStageAhead(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			setup := []string{"CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"}
			prepare := func(setup []string) {
				t.Helper()
				if err := s.Prepare(t.Context(), setup, 2); err != nil {
					t.Fatal(err)
				}
			}
			want := func(text string) {
				t.Helper()
				if got := contents(t, s); got != text {
					t.Errorf("tables are %q, want %q", got, text)
				}
			}
			blocks := func(setup []string) (list []scenario.Block) {
				for _, sql := range setup {
					list = append(list, scenario.Block{SQL: sql})
				}
				return list
			}
			ahead := func(join func(bool) error) {
				t.Helper()
				if err := join(true); err != nil {
					t.Error(err)
				}
			}
			more := append(slices.Clone(setup), "INSERT INTO t VALUES (2)")
			ahead(s.Ahead(t.Context(), blocks(setup))) // nothing was prepared
			prepare(more)
			use := func() {
				t.Helper()
				execute(t, s, 0, "BEGIN")
				execute(t, s, 0, "DELETE FROM t")
				execute(t, s, 1, "INSERT INTO t VALUES (3)")
			}
			use()
			ahead(s.Ahead(t.Context(), blocks(setup))) // the oracle's setup is the case's, and more
			want("t: 1, 2")
			prepare(more)
			want("t: 1, 2")
			use() // near misses: used since, by a statement, by rows, by definitions; another setup
			prepare(more)
			want("t: 1, 2")
			ahead(s.Ahead(t.Context(), blocks(setup)))
			use()
			prepare(more)
			want("t: 1, 2")
			ahead(s.Ahead(t.Context(), blocks(setup)))
			tables, err := s.Tables(t.Context())
			if err == nil {
				tables[0].Rows = nil
				err = s.Load(t.Context(), tables)
			}
			if err != nil {
				t.Fatal(err)
			}
			prepare(more)
			want("t: 1, 2")
			execute(t, s, 0, "CREATE TABLE u (a INT)")
			ahead(s.Ahead(t.Context(), blocks(setup)))
			prepare(more)
			want("t: 1, 2")
			execute(t, s, 0, "DELETE FROM t WHERE a = 1")
			ahead(s.Ahead(t.Context(), blocks(more[2:])))
			want("t: 2")
			for range 2 {
				got, err := s.Run(t.Context(), []schedule.Session{{Name: "x"}}, []schedule.Order{{Name: "x1", SQL: "INSERT INTO t VALUES (4)"}})
				if err != nil || got.Steps[0].Failed() {
					t.Fatalf("executed %+v, error %v", got, err)
				}
				want("t: 1, 2, 4")
			}
		})
	}
}

// TestStageRun: statements that wait stand where they were resumed, scripts are taken apart.
func TestStageRun(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"}, 2); err != nil {
				t.Fatal(err)
			}
			got, err := s.Run(t.Context(), []schedule.Session{{Name: "x"}, {Name: "y"}}, []schedule.Order{
				{Session: 0, Name: "x1", SQL: "BEGIN; UPDATE t SET a = 2"}, {Session: 1, Name: "y1", SQL: "UPDATE t SET a = 3"}, {Session: 0, Name: "x2", SQL: "COMMIT"},
				{Session: 1, Name: "y2", SQL: "SELECT a FROM t; SELECT nothing"},
			})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, st := range got.Steps {
				line := fmt.Sprintf("%s %s: %s", got.Sessions[st.Session].Name, st.Name, st.Statement.Text)
				if st.Waited {
					line += " waited" // for whom, not every server tells
				}
				if st.Failed() {
					line += " refused"
				}
				lines = append(lines, line)
			}
			want := []string{"x x1: BEGIN", "x x1: UPDATE t SET a = 2", "x x2: COMMIT", "y y1: UPDATE t SET a = 3 waited", "y y2: SELECT a FROM t", "y y2: SELECT nothing refused"}
			if diff := cmp.Diff(want, lines); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wait := got.Steps[3]
			if !(wait.Sent > got.Steps[1].Done && wait.Sent < got.Steps[2].Sent && wait.Done > got.Steps[2].Done) {
				t.Errorf("the wait is from %d to %d, the commit from %d to %d", wait.Sent, wait.Done, got.Steps[2].Sent, got.Steps[2].Done)
			}
			if len(got.Final) != 1 || len(got.Final[0].Rows) != 1 || string(got.Final[0].Rows[0][0]) != "3" || got.Trouble != "" {
				t.Errorf("at the end: %v, trouble %q", got.Final, got.Trouble)
			}
			if tx := got.Transactions(); len(tx) != 4 || tx[0].Session != 0 || !tx[0].Explicit || tx[1].Explicit {
				t.Errorf("transactions: %+v", tx)
			}
		})
	}
}

// TestStageAheadLimit: a reset ahead that waits ends with the limit of a case, or once it is not needed. A stage whose reset waits for nobody stays of use.
func TestStageAheadLimit(t *testing.T) {
	lock := map[string]string{"postgres": "BEGIN; LOCK TABLE t", "mariadb": "LOCK TABLES t WRITE"}
	for name := range lock {
		for _, needed := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, needed %v", name, needed), func(t *testing.T) {
				s := onStage(t, name)
				setup := []string{"CREATE TABLE t (a INT PRIMARY KEY)", "INSERT INTO t VALUES (1)"}
				if err := s.Prepare(t.Context(), setup, 1); err != nil {
					t.Fatal(err)
				}
				execute(t, s, 0, "DELETE FROM t") // so that there is something to reset
				if needed {
					s.lab.config.Case = 100 * time.Millisecond
				}
				other, err := s.lab.config.Backend.Connect(t.Context(), s.lab.config.Side)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { other.Close() })
				if err := engine.Exec(t.Context(), other, lock[name]); err != nil {
					t.Fatal(err)
				}
				if err := s.Ahead(t.Context(), s.spec.Setup)(needed); err == nil {
					t.Error("the reset was not cut off")
				}
			})
		}
		t.Run(name+", nobody waits", func(t *testing.T) {
			s := onStage(t, name)
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE t (a INT PRIMARY KEY)"}, 1); err != nil {
				t.Fatal(err)
			}
			execute(t, s, 0, "INSERT INTO t VALUES (1)")
			if err := s.Ahead(t.Context(), s.spec.Setup)(true); err != nil {
				t.Error(err)
			}
			execute(t, s, 0, "INSERT INTO t VALUES (1)")
		})
	}
}
