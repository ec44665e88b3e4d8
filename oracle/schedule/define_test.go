package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/product"
)

// TestBegun: definitions in front of everything else belong to the setup, but not those of a table that its session alone sees.
func TestBegun(t *testing.T) {
	for _, test := range []struct {
		first string
		setup []string
		steps int
	}{
		{"CREATE TABLE u (a INT)", []string{"CREATE TABLE u (a INT)"}, 1},
		{"CREATE TEMPORARY TABLE u (a INT)", nil, 2},
		{"CREATE OR REPLACE TEMPORARY TABLE u (a INT)", nil, 2},
	} {
		got := script(t, "mariadb", product.ReadCommitted, "s1 ->-: "+test.first, "s1 ->-: SELECT 1 FROM u").Begun()
		if diff := cmp.Diff(test.setup, got.Setup); diff != "" || len(got.Steps) != test.steps {
			t.Errorf("%s: %d steps, want %d, setup (-want +got):\n%s", test.first, len(got.Steps), test.steps, diff)
		}
	}
}

// TestPast: a session that reads what was committed some time ago is not executed again; a statement that names a column so is.
func TestPast(t *testing.T) {
	for sql, want := range map[string]bool{
		"SET tidb_read_staleness = '-1'": true, "SET SESSION system_versioning_asof = '2026-01-01'": true, "SET @x = 1": false,
		"UPDATE t SET as_of = 1, b = 'timestamp'": false,
	} {
		if got := script(t, "mariadb", "repeatable read", "s1 ->-: "+sql).Incomplete(); (got != "") != want {
			t.Errorf("%s: %q", sql, got)
		}
	}
}

// TestUntransacted: no rollback takes back what such a table's rows were.
func TestUntransacted(t *testing.T) {
	for sql, want := range map[string]bool{
		"CREATE TABLE t (a INT) ENGINE=MyISAM": true, "CREATE TABLE t (a INT) engine = 'Aria'": true, "CREATE TABLE t (a INT) ENGINE=InnoDB": false,
	} {
		if got := (&Schedule{Setup: []string{sql}}).Untransacted(); (got != "") != want {
			t.Errorf("%s: %q", sql, got)
		}
	}
}
