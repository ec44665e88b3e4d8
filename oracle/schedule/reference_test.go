package schedule_test

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement/mysql"
)

// TestReplaceUpdates: MySQL may perform REPLACE as an update, so that nobody can tell whether a foreign key refuses it. Of other products and statements, of
// tables to which none refers, and of answers that no such key refuses, that is no reason.
func TestReplaceUpdates(t *testing.T) {
	list := []schedule.Reference{{Child: "child", Parent: "parent", Columns: []string{"id"}}}
	for _, test := range []struct {
		product, sql string
		code         string
		want         bool
	}{
		{"mysql", "REPLACE INTO parent VALUES (1)", "1451", true},
		{"mysql", "REPLACE INTO parent VALUES (1)", "", false},
		{"mysql", "REPLACE INTO parent VALUES (1)", "1452", false},
		{"mysql", "REPLACE INTO parent VALUES (1)", "1048", false},
		{"mysql", "REPLACE INTO child VALUES (1)", "1451", false},
		{"mysql", "INSERT INTO parent VALUES (1)", "1451", false},
		{"mysql", "DELETE FROM parent", "1451", false},
		{"mariadb", "REPLACE INTO parent VALUES (1)", "1451", false},
		{"tidb", "REPLACE INTO parent VALUES (1)", "1451", false},
	} {
		statements, err := mysql.New(mysql.MariaDB).Describe(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		s := &schedule.Schedule{Product: test.product}
		var refusal *answer.Error
		if test.code != "" {
			refusal = &answer.Error{Code: test.code}
		}
		if why := s.ByRows(list, &statements[0], nil, refusal); (why != "") != test.want {
			t.Errorf("%+v: %q", test, why)
		}
	}
}
