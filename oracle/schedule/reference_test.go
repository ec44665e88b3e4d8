package schedule_test

import (
	"testing"

	"wirecheck/oracle/schedule"
	"wirecheck/statement/mysql"
)

// TestReplaceUpdates: MySQL may perform REPLACE as an update, so that nobody can tell whether a foreign key refuses it. Of other products and statements, of
// tables to which none refers, and of answers that are no refusals, that is no reason.
func TestReplaceUpdates(t *testing.T) {
	list := []schedule.Reference{{Child: "child", Parent: "parent", Columns: []string{"id"}}}
	for _, test := range []struct {
		product, sql string
		refused      bool
		want         bool
	}{
		{"mysql", "REPLACE INTO parent VALUES (1)", true, true},
		{"mysql", "REPLACE INTO parent VALUES (1)", false, false},
		{"mysql", "REPLACE INTO child VALUES (1)", true, false},
		{"mysql", "INSERT INTO parent VALUES (1)", true, false},
		{"mysql", "DELETE FROM parent", true, false},
		{"mariadb", "REPLACE INTO parent VALUES (1)", true, false},
		{"tidb", "REPLACE INTO parent VALUES (1)", true, false},
	} {
		statements, err := mysql.New(mysql.MariaDB).Describe(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		s := &schedule.Schedule{Product: test.product}
		if why := s.ByRows(list, &statements[0], test.refused); (why != "") != test.want {
			t.Errorf("%+v: %q", test, why)
		}
	}
}
