package tidb

import (
	"testing"
	"time"
)

func TestSilent(t *testing.T) {
	tests := []struct {
		sql    string
		inside bool
		want   time.Duration
	}{
		{"UPDATE t SET v = 1", true, 0}, {"UPDATE t SET v = 1", false, writePatience}, {"  insert into t values (1)", false, writePatience},
		{"SELECT * FROM t FOR UPDATE", true, 0}, {"(SELECT 1)", true, 0}, {"SELECT SLEEP(9)", false, 0}, {"DO SLEEP(9)", false, 0}, {"SELECT GET_LOCK('a', 1)", true, patience},
		{"ALTER TABLE t ADD x int", true, patience}, {"ALTER TABLE t ADD x int", false, patience}, {"COMMIT", true, writePatience}, {"commit;", true, writePatience},
		{"ROLLBACK", true, 0}, {"BEGIN", false, 0}, {"SET autocommit = 0", false, 0}, {"", false, patience},
	}
	for _, test := range tests {
		if got := Silent(test.sql, test.inside); got != test.want {
			t.Errorf("%q, in a transaction %v: silent %v, want %v", test.sql, test.inside, got, test.want)
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
