package schedule_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
	"wirecheck/statement/postgres"
)

// book is a stage that writes down what it is asked to execute, and follows transactions.
type book struct {
	schedule.Stage
	lines []string
	state map[int]answer.State
	fail  string // the statement that is refused
}

func (b *book) Execute(_ context.Context, session int, sql string) (schedule.Step, error) {
	b.lines = append(b.lines, string(rune('1'+session))+" "+sql)
	st := schedule.Step{Session: session, Before: b.state[session]}
	switch {
	case sql == b.fail:
		st.Answer.Err = &answer.Error{Code: "22012", Message: "refused"}
		if b.state[session] == answer.Open {
			b.state[session] = answer.Failed
		}
	case sql == "BEGIN":
		b.state[session] = answer.Open
	case sql == "COMMIT" || sql == "ROLLBACK":
		b.state[session] = answer.Idle
	case strings.HasPrefix(sql, "ROLLBACK TO"):
		b.state[session] = answer.Open
	}
	st.After = b.state[session]
	return st, nil
}

func one(t *testing.T, sql string) statement.Statement {
	t.Helper()
	list, err := postgres.Describe(sql)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %v, %d statements", sql, err, len(list))
	}
	return list[0]
}

// interleaved makes a schedule of lines "1 BEGIN"; a session's state follows from its statements.
func interleaved(t *testing.T, lines ...string) *schedule.Schedule {
	t.Helper()
	s := &schedule.Schedule{Product: "postgres", Sessions: []schedule.Session{{Name: "s1"}, {Name: "s2"}}}
	state := map[int]answer.State{}
	for i, line := range lines {
		n, sql := int(line[0]-'1'), line[2:]
		st := schedule.Step{Session: n, Statement: one(t, sql), Sent: 2*i + 1, Done: 2*i + 2, Before: state[n]}
		switch sql {
		case "BEGIN":
			state[n] = answer.Open
		case "COMMIT", "ROLLBACK":
			state[n] = answer.Idle
		}
		st.After = state[n]
		s.Steps = append(s.Steps, st)
	}
	return s
}

// TestSerial executes transactions that were interleaved one after the other, in the order of their ends.
func TestSerial(t *testing.T) {
	s := interleaved(t, "1 SET search_path = x", "1 BEGIN", "2 BEGIN", "1 SELECT 1", "2 SELECT 2", "2 COMMIT", "1 SELECT 3", "2 SELECT 4", "1 COMMIT", "2 BEGIN", "2 SELECT 5")
	s.Sessions[0].Setup = []statement.Statement{one(t, "SET application_name = 'a'")}
	b := &book{state: map[int]answer.State{}}
	var told []string
	err := s.Serial(t.Context(), b, schedule.Serial{
		Before: func(st *schedule.Step, now answer.State) (bool, error) {
			if st.Statement.Text == "SELECT 3" && now != answer.Open {
				t.Errorf("SELECT 3 is in state %v", now)
			}
			return st.Statement.Text != "SELECT 4", nil
		},
		After: func(st, got *schedule.Step) error { told = append(told, st.Statement.Text); return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1 SET application_name = 'a'", "2 BEGIN", "2 SELECT 2", "2 COMMIT", "1 SET search_path = x", "1 BEGIN", "1 SELECT 1", "1 SELECT 3", "1 COMMIT", "2 BEGIN", "2 SELECT 5", "2 ROLLBACK"}
	if !slices.Equal(b.lines, want) {
		t.Errorf("executed\n%s\nwant\n%s", strings.Join(b.lines, "\n"), strings.Join(want, "\n"))
	}
	if len(told) != len(want)-1 { // not told of the session's settings
		t.Errorf("told of %d statements", len(told))
	}
}

// TestAsk leaves a transaction as it was when a query of the oracle's own fails it.
func TestAsk(t *testing.T) {
	for _, test := range []struct {
		now   answer.State
		fails bool
		want  int // statements
	}{{answer.Open, true, 3}, {answer.Idle, true, 1}, {answer.Open, false, 1}} {
		b := &book{state: map[int]answer.State{0: test.now}, fail: "SELECT 1/0"}
		got, err := schedule.Ask(t.Context(), b, 0, "SELECT 1/0", test.now, test.fails)
		if err != nil || got.Answer.Err == nil || len(b.lines) != test.want {
			t.Errorf("%+v: %v, %v, executed %q", test, got.Answer.Err, err, b.lines)
		}
		if test.fails && b.state[0] != test.now {
			t.Errorf("%+v: the session's state is %v", test, b.state[0])
		}
	}
}

// TestWhere finds conditions in texts.
func TestWhere(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT a FROM t WHERE a = 1", "WHERE a = 1"},
		{"SELECT a FROM t  where\n a = 1 ORDER BY a", "where\n a = 1"},
		{"SELECT a FROM t WHERE a ORDER BY a", "WHERE a"},
		{"SELECT (SELECT 1 FROM u WHERE b = 2) FROM t JOIN u ON true WHERE a IN (SELECT b FROM u WHERE b = 2)", "WHERE a IN (SELECT b FROM u WHERE b = 2)"},
		{"WITH x AS (SELECT 1 FROM t WHERE a) SELECT 2 FROM t WHERE a", ""}, // either
		{"SELECT a FROM t", ""},
		{"SELECT a FROM t /* c */ WHERE a = 1", ""}, // a comment between them
	} {
		st := one(t, test.sql)
		from, to, ok := schedule.Where(&st)
		if got := test.sql[from:to]; got != test.want || ok != (test.want != "") {
			t.Errorf("%s: %q, %v; want %q", test.sql, got, ok, test.want)
		}
	}
}
