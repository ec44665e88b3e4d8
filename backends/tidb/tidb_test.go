package tidb

import "testing"

func TestSilent(t *testing.T) {
	tests := []struct {
		sql    string
		inside bool
		want   bool
	}{
		{"UPDATE t SET v = 1", true, false}, {"UPDATE t SET v = 1", false, true}, {"  insert into t values (1)", false, true},
		{"SELECT * FROM t FOR UPDATE", true, false}, {"(SELECT 1)", true, false}, {"SELECT SLEEP(9)", false, false}, {"DO SLEEP(9)", false, false}, {"SELECT GET_LOCK('a', 1)", true, true},
		{"ALTER TABLE t ADD x int", true, true}, {"ALTER TABLE t ADD x int", false, true}, {"COMMIT", true, true}, {"commit;", true, true},
		{"ROLLBACK", true, false}, {"BEGIN", false, false}, {"SET autocommit = 0", false, false}, {"", false, true},
	}
	for _, test := range tests {
		if got := Silent(test.sql, test.inside); got != test.want {
			t.Errorf("%q, in a transaction %v: silent %v", test.sql, test.inside, got)
		}
	}
}

func TestStaysInside(t *testing.T) {
	for sql, want := range map[string]bool{"update t set v = 1": true, " (SELECT 1)": true, "COMMIT": false, "BEGIN": false, "ALTER TABLE t ADD x int": false, "": false} {
		if got := staysInside(sql); got != want {
			t.Errorf("%q: got %v", sql, got)
		}
	}
}
