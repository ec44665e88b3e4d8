package mysqlwire_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/record/recordtest"
)

// TestLongMessagesOfMany: while other sessions hold as many long messages as all may, a long text, parameter or row is not held. The answers are the
// server's all the same, what is short is seen as always, and when the others have ended, so is what is long.
func TestLongMessagesOfMany(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	o := observer(k)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o)
	dialRaw(t, through, baseCaps).query("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(10))")
	dialRaw(t, through, baseCaps).query("INSERT INTO t VALUES (1, 'x')")
	long := strings.Repeat("y", 300_000)
	steps := []step{
		{cmd: mysql.COM_QUERY, sql: "SELECT id FROM t"}, {cmd: mysql.COM_QUERY, sql: "SELECT id FROM t WHERE v <> '" + long + "'"}, {cmd: mysql.COM_QUERY, sql: "SELECT REPEAT('z', 300000), v FROM t"},
		{sql: "SELECT id FROM t WHERE v <> ?", params: []any{"y"}}, {sql: "SELECT id FROM t WHERE v <> ?", params: []any{long}}, {sql: "SELECT v, REPEAT('z', 300000), id, NULL FROM t", params: []any{}},
		{sql: "SELECT id FROM t WHERE v <> '" + long + "'", params: []any{}}, {cmd: mysql.COM_INIT_DB, sql: d.Name},
	}
	seen := func() map[history.Coverage]int {
		n := make(map[history.Coverage]int)
		for _, e := range k.all() {
			if e.Kind == history.EventStmt {
				n[e.Coverage]++
			}
		}
		return n
	}
	want := runSteps(t, d, baseCaps, steps)
	check := func(opaque int) {
		t.Helper()
		before := seen()
		if diff := cmp.Diff(want, runSteps(t, through, baseCaps, steps)); diff != "" {
			t.Errorf("directly (-), through the proxy (+):\n%s", diff)
		}
		after := seen()
		const all = 3 + 4*2 // each prepared statement is executed twice
		if exact := after[history.CoverageExact] - before[history.CoverageExact]; exact != all-opaque || after[history.CoverageOpaque]-before[history.CoverageOpaque] != opaque {
			t.Errorf("seen exactly: %d of %d, want %d; before and after: %s", exact, all, all-opaque, fmt.Sprint(before, after))
		}
	}
	check(0)
	end := recordtest.Fill(o.Recorder)
	check(1 + 1 + 2 + 2) // texts and rows: a prepared statement is seen whatever its parameters
	end()
	check(0)
	end = recordtest.Occupy(o.Recorder.Lanes())
	check(1 + 2)
	end()
	check(0)
}
