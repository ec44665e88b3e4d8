package wss

import (
	"testing"

	"wirecheck/statement/mysql"
)

// TestIsWrite: what changes rows is a write; what changes the definition of a table that it names as its target is none.
func TestIsWrite(t *testing.T) {
	describe := mysql.New("mariadb").Describe
	for sql, want := range map[string]bool{
		"UPDATE t SET a = 1": true, "REPLACE INTO t VALUES (1)": true, "SELECT * FROM t FOR UPDATE": false,
		"ALTER TABLE t FORCE": false, "CREATE INDEX i ON t (a)": false, "ALTER TABLE t RENAME INDEX i TO i_r": false, "OPTIMIZE TABLE t": false, "TRUNCATE TABLE t": false,
	} {
		list, err := describe(sql)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", sql, err)
		}
		if got := isWrite(&list[0]); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
}
