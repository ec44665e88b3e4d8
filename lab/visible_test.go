package lab

import (
	"fmt"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// TestVisible reads tables as two sessions see them: each its own uncommitted writes, the other's not; values without loss, whatever the
// session's time zone, which stays as it was.
func TestVisible(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			c := place(t, name)
			c.Reset = Quick
			s := NewStage(open(t, c), "", func(sql string) ([]statement.Statement, error) { return []statement.Statement{{Text: sql}}, nil })
			kind, zone, ask := "timestamp", "SET time_zone = '+05:00'", "SELECT @@time_zone"
			if c.Backend.Protocol == engine.ProtocolPostgres {
				kind, zone, ask = "timestamptz", "SET TimeZone = 'Asia/Karachi'", "SHOW TimeZone"
			}
			if _, err := s.Visible(t.Context(), 0); err == nil {
				t.Error("a stage that was not prepared is read")
			}
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE t (id INT PRIMARY KEY, f REAL, w " + kind + " NULL)", "INSERT INTO t VALUES (1, 16777217, '2024-01-01 12:00:00')"}, 2); err != nil {
				t.Fatal(err)
			}
			before, err := s.Visible(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			do := func(session int, sql string) schedule.Step {
				st, err := s.Execute(t.Context(), session, sql)
				if err != nil || st.Answer.Err != nil {
					t.Fatalf("%s: %v, %v", sql, err, st.Answer.Err)
				}
				return st
			}
			do(0, zone)
			do(0, "BEGIN")
			do(0, "INSERT INTO t VALUES (2, 0.1, NULL)")
			own, err := s.Visible(t.Context(), 0)
			if err != nil || len(own) != 1 || len(own[0].Rows) != 2 {
				t.Fatalf("its own: %v, %+v", err, own)
			}
			other, err := s.Visible(t.Context(), 1)
			if err != nil || len(other[0].Rows) != 1 {
				t.Fatalf("the other's: %v, %+v", err, other)
			}
			if d := answer.DiffTables(before, other); len(d) > 0 {
				t.Errorf("changed: %+v", d)
			}
			if c.Backend.Protocol == engine.ProtocolMySQL {
				if got, want := fmt.Sprintf("%s", own[0].Rows[0]), fmt.Sprintf("%s", before[0].Rows[0]); got != want {
					t.Errorf("in another time zone: %s, want %s", got, want)
				}
			}
			if got := string(do(0, ask).Answer.Rows[0][0]); got != "+05:00" && got != "Asia/Karachi" {
				t.Errorf("the session's time zone is %s", got)
			}
			do(0, "ROLLBACK")
		})
	}
}
