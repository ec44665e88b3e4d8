package mysqlwire_test

import (
	"os"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// TestDifferentialFile compares the answers to the statements of testdata/differential.sql, in both protocols.
func TestDifferentialFile(t *testing.T) {
	raw, err := os.ReadFile("testdata/differential.sql")
	if err != nil {
		t.Fatal(err)
	}
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE seen (id INT PRIMARY KEY)")
	for name, test := range map[string]struct {
		caps     uint64
		prepared bool
	}{
		"text":     {baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF), false},
		"prepared": {baseCaps | uint64(mysql.CLIENT_FOUND_ROWS), true},
	} {
		t.Run(name, func(t *testing.T) {
			var steps []step
			for line := range strings.Lines(string(raw)) {
				sql := strings.TrimSpace(line)
				switch {
				case sql == "", strings.HasPrefix(sql, "--"):
				case test.prepared && !strings.HasPrefix(sql, "!"):
					steps = append(steps, step{sql: sql, params: []any{}})
				default:
					steps = append(steps, step{cmd: mysql.COM_QUERY, sql: strings.TrimPrefix(sql, "!")})
				}
			}
			if testserver.IsMySQL() { // what the statements leave behind there is the same then
				runSteps(t, d, test.caps, steps)
			}
			want := runSteps(t, d, test.caps, steps)
			got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), test.caps, steps)
			for i := range want {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("direct (-), through the proxy (+):\n%s", diff)
				}
			}
		})
	}
}

// TestNewTablesFollow creates a table through the proxy in a schema whose other tables were instrumented since the proxy
// has read the catalog.
func TestNewTablesFollow(t *testing.T) {
	d := testserver.Family(t).Database(t)
	o := observer(&sink{})
	o.Instrument = mysqlwire.InstrumentFollow
	at := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o)
	c := dialRaw(t, at, baseCaps)
	d.Exec(t, "CREATE TABLE old (id INT PRIMARY KEY, wc_row_id BIGINT UNSIGNED NOT NULL DEFAULT (UUID_SHORT()) INVISIBLE, wc_writers VARCHAR(168) NOT NULL DEFAULT '0:' INVISIBLE)")
	if p := c.query("CREATE TABLE new (id INT PRIMARY KEY)").last(); p[0] != 0 {
		t.Fatalf("%q", p)
	}
	var n int
	if err := d.MariaDB(t).QueryRow("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'new' AND COLUMN_NAME LIKE 'wc%'").Scan(&n); err != nil || n != 2 {
		t.Errorf("the new table has %d hidden columns, %v; want 2", n, err)
	}
}
