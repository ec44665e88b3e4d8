package instrument_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/instrument"
	"wirecheck/internal/testserver"
)

// The columns come and go on TiDB and leave no trace.
func TestAddAndRemoveOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.TiDB(t).Database(t)
	d.Exec(t, "CREATE TABLE plain (id int PRIMARY KEY, v int DEFAULT 7, KEY (v))", "INSERT INTO plain VALUES (1, 1), (2, 2), (3, NULL)",
		"CREATE TABLE nokey (a int, t timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP)", "INSERT INTO nokey VALUES (1, '2001-01-01'), (1, '2001-01-01'), (NULL, NULL)",
		"CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY HASH (id) PARTITIONS 3", "INSERT INTO parts VALUES (1, 1), (2, 2)",
		"CREATE VIEW seen AS SELECT * FROM plain")
	before := mariadbState(t, d)
	want := []string{"nokey", "parts", "plain"}
	if diff := cmp.Diff(want, apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add)); diff != "" {
		t.Errorf("tables changed (-want +got):\n%s", diff)
	}
	if again := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add); again != nil {
		t.Errorf("adding again changed %v, want nothing", again)
	}
	for query, want := range map[string]string{
		"SELECT COUNT(DISTINCT wc_row_id), MIN(LENGTH(wc_row_id)), MAX(wc_writers) FROM nokey": `"3" "36" "0:" `,
		"SELECT a, t FROM nokey WHERE a IS NOT NULL LIMIT 1":                                   `"1" "2001-01-01 00:00:00" `,
	} {
		if got := dump(t, d, query); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if diff := cmp.Diff(want, apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove)); diff != "" {
		t.Errorf("tables changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
		t.Errorf("after removal (-before +after):\n%s", diff)
	}
}
