package lab

import (
	"slices"
	"testing"

	"wirecheck/oracle/schedule"
)

// TestTogether: statements in one message do what they do one by one, to the first that the server refuses.
func TestTogether(t *testing.T) {
	tests := []struct {
		name string
		list []string
		want []string // what each of them gives
	}{
		{"all are done", []string{"SELECT 1", "SELECT 2 -- two", "SELECT 3"}, []string{"1", "2", "3"}},
		{"one is refused", []string{"SELECT 1", "SELECT * FROM nothing", "SELECT 3"}, []string{"1", "refused"}},
		{"a write that is taken back", []string{"BEGIN", "UPDATE t SET a = 7", "SELECT a FROM t", "ROLLBACK"}, []string{"-", "-", "7", "-"}},
	}
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"}, 1); err != nil {
				t.Fatal(err)
			}
			for _, test := range tests {
				steps, err := schedule.Together(t.Context(), s, 0, test.list...)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, st := range steps {
					got = append(got, given(st))
				}
				if !slices.Equal(got, test.want) {
					t.Errorf("%s: got %q, want %q", test.name, got, test.want)
				}
			}
			if got := given(execute(t, s, 0, "SELECT a FROM t")); got != "1" {
				t.Errorf("behind them: got %s, want 1", got)
			}
			if m := s.lab.members[0]; m.dirty {
				t.Error("the session must be made anew, though nothing was left in it")
			}
			steps, err := schedule.Together(t.Context(), s, 0, "SELECT ';'", "SELECT 2") // not in one message
			if err != nil || len(steps) != 2 || given(steps[0])+given(steps[1]) != ";2" {
				t.Errorf("text with a semicolon: %v, %v", steps, err)
			}
			if _, err := schedule.Together(t.Context(), s, 0, "SELECT 1", "SET time_zone = '+01:00'"); err != nil {
				t.Fatal(err)
			}
			if m := s.lab.members[0]; !m.dirty {
				t.Error("what one of them set stays in the session")
			}
		})
	}
}

// given is what a statement gave: its first value, "-" without rows, or that it was refused.
func given(st schedule.Step) string {
	switch rows := st.Answer.Rows; {
	case st.Answer.Err != nil:
		return "refused"
	case len(rows) == 0:
		return "-"
	default:
		return string(rows[0][0])
	}
}
