package serial

import (
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement/postgres"
)

// TestMasksChoice: LIMIT may leave any row. Where it has left the same one in both executions, by its key, what else stands there is compared.
func TestMasksChoice(t *testing.T) {
	const one = "SELECT id, n FROM x WHERE n < 9 LIMIT 1"
	for _, test := range []struct {
		name    string
		sql     string
		beside  string // another statement
		columns string
		was     string // rows, separated by |
		is      string
		counter string
		want    bool // they differ
	}{
		{"the same row", one, "", "id n", "1 5", "1 6", "", true},
		{"all columns", "SELECT * FROM x WHERE n < 9 LIMIT 1", "", "n id", "5 1", "6 1", "", true},
		{"two rows in another order", "SELECT id, n FROM x WHERE n < 9 LIMIT 2", "", "id n", "1 5|2 7", "2 7|1 6", "", true},
		{"another row", one, "", "id n", "1 5", "2 6", "", false},
		{"one other row of two", "SELECT id, n FROM x WHERE n < 9 LIMIT 2", "", "id n", "1 5|2 7", "1 6|3 7", "", false},
		{"none", one, "", "id n", "1 5", "", "", true},
		{"no key in the answer", "SELECT n FROM x WHERE n < 9 LIMIT 1", "", "n", "5", "6", "", false},
		{"another column under its name", "SELECT m AS id, n FROM x WHERE n < 9 LIMIT 1", "", "id n", "1 5", "1 6", "", false},
		{"the key under another name", "SELECT id AS a, n FROM x WHERE n < 9 LIMIT 1", "", "a n", "1 5", "1 6", "", true},
		{"NULL is no key", one, "", "id n", "- 5", "- 6", "", false},
		{"a join", "SELECT x.id, y.n FROM x JOIN y ON x.id = y.id LIMIT 1", "", "id n", "1 5", "1 6", "", false},
		{"a group", "SELECT id, n FROM x GROUP BY id, n LIMIT 1", "", "id n", "1 5", "1 6", "", false},
		{"one row for all", "SELECT count(*) FROM x LIMIT 1", "", "count", "5", "6", "", true},
		{"a counter's value, and new rows", one, "INSERT INTO x (n) VALUES (1)", "id n", "1 5", "1 6", "x.id", false},
		{"a counter's value, and no new rows", one, "UPDATE x SET n = 1", "id n", "1 5", "1 6", "x.id", true},
		{"quoted", "SELECT id, n FROM x WHERE n < 9 LIMIT '1'::bigint OFFSET '0'", "", "id n", "1 5", "2 6", "", false},
	} {
		o := Options{Keys: map[string][][]string{"x": {{"id"}}}, Counters: map[string]bool{}}
		if test.counter != "" {
			o.Counters[test.counter] = true
		}
		m, was, is := NewMasks(o), answered(t, test.columns, test.was, test.sql, test.beside), answered(t, test.columns, test.is, test.sql, test.beside)
		if m.Blind(was); len(m.cuts) == 0 && test.name != "one row for all" {
			t.Errorf("%s: LIMIT is not seen", test.name)
		}
		if _, differs := m.difference(was, is, []int{0}, false); differs != test.want {
			t.Errorf("%s: differs: %v, want %v", test.name, differs, test.want)
		}
	}
}

// TestMasksStood: a counter's value is compared where it is that of a row which was there before.
func TestMasksStood(t *testing.T) {
	was := func(table, column, value string) bool { return table == "x" && column == "id" && value < "5" }
	for _, test := range []struct {
		name, sql, columns string
		was, is            string
		want               bool
	}{
		{"another old row", "SELECT id, n FROM x ORDER BY id LIMIT 1", "id n", "1 5", "2 5", true},
		{"all columns", "SELECT * FROM x ORDER BY id LIMIT 1", "id n", "1 5", "2 5", true},
		{"two new rows", "SELECT id, n FROM x ORDER BY id LIMIT 1", "id n", "7 5", "8 5", false},
		{"a new row for an old one", "SELECT id, n FROM x ORDER BY id LIMIT 1", "id n", "1 5", "8 5", true},
		{"another column under its name", "SELECT y_id AS id, n FROM x ORDER BY 1 LIMIT 1", "id n", "1 5", "2 5", false},
		{"of which table is not known", "SELECT x.id, y.n FROM x, y ORDER BY 1 LIMIT 1", "id n", "1 5", "2 5", false},
		{"another table", "SELECT id, n FROM y ORDER BY id LIMIT 1", "id n", "1 5", "2 5", false},
	} {
		m, a, b := NewMasks(Options{Counters: map[string]bool{"x.id": true}, Was: was}), answered(t, test.columns, test.was, test.sql), answered(t, test.columns, test.is, test.sql)
		m.Blind(a)
		if _, differs := m.difference(a, b, []int{0}, false); differs != test.want {
			t.Errorf("%s: differs: %v, want %v", test.name, differs, test.want)
		}
	}
}

// answered is an execution of statements by one session, the first of which brought rows, separated by |. - is NULL.
func answered(t *testing.T, columns, rows string, statements ...string) *schedule.Schedule {
	t.Helper()
	s := &schedule.Schedule{Sessions: []schedule.Session{{Name: "s1"}}}
	for i, sql := range statements {
		if sql == "" {
			continue
		}
		list, err := postgres.Describe(sql)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", sql, err)
		}
		st := schedule.Step{Name: []string{"a", "b"}[i], Statement: list[0]}
		if i == 0 {
			st.Answer.Columns = []answer.Column{}
			for name := range strings.FieldsSeq(columns) {
				st.Answer.Columns = append(st.Answer.Columns, answer.Column{Name: name})
			}
			for row := range strings.SplitSeq(rows, "|") {
				var values []answer.Value
				for v := range strings.FieldsSeq(row) {
					values = append(values, answer.Value(v))
					if v == "-" {
						values[len(values)-1] = nil
					}
				}
				if values != nil {
					st.Answer.Rows = append(st.Answer.Rows, values)
				}
			}
		}
		s.Steps = append(s.Steps, st)
	}
	return s
}
