package replay

import (
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/statement"
)

// TestByServer tells values that the server made from those by which an application may decide.
func TestByServer(t *testing.T) {
	const was, is = "2ca6988c-c60e-4a66-a5fa-653fe1d100ab", "06d791e7-6c9d-4fca-b789-c227bb1c39c7"
	now := time.Now().UTC().Format("2006-01-02 15:04:05.000000")
	for _, test := range []struct {
		name, sql, column, was, is string
		alike                      string // what a unit that does the same got
		want                       bool
	}{
		{"a UUID", "SELECT key FROM job", "key", was, is, "", true},
		{"a UUID that a statement names", "SELECT key FROM job WHERE key <> '" + is + "'", "key", was, is, "", false},
		{"no value in its place", "SELECT key FROM job", "key", was, "", "", false},
		{"two readings of the clock", "SELECT at FROM job", "at", now, now[:19], "", true},
		{"an old time in its place", "SELECT at FROM job", "at", now, "2020-01-01 00:00:00", "", false},
		{"an old time that one like it got", "SELECT at FROM job", "at", now, "2020-01-01 00:00:00", "2020-01-01 00:00:00", true},
		{"two new ids", "SELECT id FROM job", "id", "8", "9", "", true},
		{"ids of rows that were there", "SELECT id FROM job", "id", "1", "2", "", false},
		{"a row that was there for a new one", "SELECT id FROM job", "id", "8", "2", "", false},
		{"another number", "SELECT n FROM job", "n", "8", "9", "", false},
	} {
		step := func(value string) *Step {
			var v answer.Value
			if value != "" {
				v = answer.Value(value)
			}
			return &Step{SQL: test.sql, form: []statement.Statement{{Verb: "select"}}, tables: []use{{name: "job"}},
				Answer: answer.Answer{Results: []answer.Result{{Columns: []answer.Column{{Name: test.column}}, Rows: [][]answer.Value{{v}}}}}}
		}
		g := &Group{Units: []*Unit{{Steps: []*Step{step(test.was)}}}, State: &State{Filled: map[string]bool{"job.id": true}, Tables: []engine.Table{
			{Table: answer.Table{Name: "public.job", Columns: []answer.Column{{Name: "id"}}, Rows: [][]answer.Value{{answer.Value("1")}, {answer.Value("2")}}}}}}}
		if test.alike != "" {
			g.Units = append(g.Units, &Unit{Steps: []*Step{step(test.alike)}})
		}
		first, again := [][]*answer.Answer{{&step(test.was).Answer}, nil}, [][]*answer.Answer{{&step(test.was + "?").Answer}, nil}
		l := g.Lanes(time.Now(), first, again, 0)[0]
		if got := l.byServer(cellPlace{}, step(test.was).Answer.Results[0].Rows[0][0], step(test.is).Answer.Results[0].Rows[0][0]); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
	}
}
