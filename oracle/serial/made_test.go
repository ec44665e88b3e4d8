package serial

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// TestUniquely: what surely differs from one execution to the next is found by comparing two; what may be the same by chance is not.
func TestUniquely(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t VALUES (gen_random_uuid(), 1)":               true,
		"INSERT INTO t (id) VALUES (1, REPLACE(UUID(), '-', ''))":   true,
		"UPDATE t SET etag = gen_random_uuid(), n = 3 WHERE id = 1": true,
		"SELECT gen_random_uuid(), n FROM t":                        true,
		"SELECT n FROM t ORDER BY gen_random_uuid()":                false,
		"SELECT n FROM t WHERE key < gen_random_uuid()":             false,
		"INSERT INTO t VALUES (left(uuid(), 1))":                    false,
		"INSERT INTO t VALUES (gen_random_uuid(), random())":        false,
		"UPDATE t SET n = random()":                                 false,
		"UPDATE t SET n = 1":                                        false,
	} {
		if got := uniquely(text); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// TestMade compares, in a column that the server fills, the values that statements name; of clocks, those that no clock can show now.
func TestMade(t *testing.T) {
	const own, made, other = "11111111-1111-4111-8111-111111111111", "2ca6988c-c60e-4a66-a5fa-653fe1d100ab", "06d791e7-6c9d-4fca-b789-c227bb1c39c7"
	of := func(key, at string) *schedule.Schedule {
		st := statement.Statement{Text: "SELECT key, at FROM t"}
		named := statement.Statement{Text: "UPDATE t SET key = '" + own + "', at = '2026-12-24 18:00:00', seen = '2026-11-23 10:00:00'"}
		return &schedule.Schedule{Setup: []string{"CREATE TABLE t (key uuid, at timestamp DEFAULT now())"}, Sessions: []schedule.Session{{Name: "s1"}},
			Steps: []schedule.Step{{Name: "a1", Statement: named}, {Name: "a2", Statement: st, Answer: answer.Result{
				Columns: []answer.Column{{Name: "key"}, {Name: "at", Type: "timestamp"}}, Rows: [][]answer.Value{{answer.Value(key), answer.Value(at)}}}}}}
	}
	m := NewMasks(Options{Recent: func(day string) bool { return day == "2026-11-23" }})
	a := of(made, "2026-11-23 10:00:01")
	m.Blind(a)
	m.Learn(a, of(other, "2026-11-23 10:00:02"))
	for _, test := range []struct {
		name, key, at string
		differs       bool
	}{
		{"made by the server", other, "2026-11-23 10:00:09", false},
		{"a key that a statement names", own, "2026-11-23 10:00:01", true},
		{"a time that a statement names", made, "2026-12-24 18:00:00", true},
		{"one that the clock may show", made, "2026-11-23 10:00:00", false},
	} {
		if _, differs := m.difference(a, of(test.key, test.at), []int{0}, false); differs != test.differs {
			t.Errorf("%s: differs %v, want %v", test.name, differs, test.differs)
		}
	}
}
