package mysqlwire_test

import (
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// TestLostLog: where somebody else took the log variable away, what it should have told is not called exact. Beside it
// a session that leaves it alone.
func TestLostLog(t *testing.T) {
	for _, test := range []struct {
		name, first string
		want        history.Coverage
		accesses    int
	}{
		{"taken away", "SET @wc_log = NULL", history.CoverageApproximate, 0},
		{"left alone", "SET @log = NULL", history.CoverageExact, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := testserver.Family(t).Database(t)
			k := &sink{}
			c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
			const update = "UPDATE t SET v = 2 WHERE id = 1"
			for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)", "BEGIN", test.first, update, "COMMIT"} {
				if p := c.query(sql).last(); p[0] == 0xff {
					t.Fatalf("%s: %q", sql, p)
				}
			}
			for _, ev := range k.all() {
				if ev.Kind != history.EventStmt || ev.SQL != update {
					continue
				}
				if testserver.IsMySQL() { // there the statement that sets the stamp makes a new log
					test.want, test.accesses = history.CoverageExact, 1
				}
				if ev.Coverage != test.want || len(ev.Accesses) != test.accesses {
					t.Errorf("coverage %s (%s) with %d accesses, want %s with %d", ev.Coverage, ev.Why, len(ev.Accesses), test.want, test.accesses)
				}
				return
			}
			t.Error("the update is not in the history")
		})
	}
}
