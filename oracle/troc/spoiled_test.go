package troc_test

import (
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/troc"
	"wirecheck/product"
)

// TestSpoiled: a server that evaluates an UPDATE wrongly where a row id stands behind the columns (TiDB of January 2023: SET b = COALESCE((SELECT 0 FROM u WHERE
// t.b), 5) takes the next column's value) is not said to be wrong where no row id is, whether the tables at the end or a later statement show the value.
func TestSpoiled(t *testing.T) {
	for name, test := range map[string]struct {
		leaks           bool
		play, violation string
	}{
		"right at the end":              {true, "A: UPDATE t SET b = 5 WHERE a = 1 -> 1\nfinal: 1|5 2|0", ""},
		"right in a SELECT":             {true, "A: UPDATE t SET b = 5 WHERE a = 1 -> 1\nA: SELECT b FROM t WHERE a = 1 -> 5\nfinal: 1|5 2|0", ""},
		"wrong at the end, no leak":     {false, "A: UPDATE t SET b = 5 WHERE a = 1 -> 1\nfinal: 1|6 2|0", oracle.NameFinalState},
		"wrong in a SELECT, no leak":    {false, "A: UPDATE t SET b = 5 WHERE a = 1 -> 1\nA: SELECT b FROM t WHERE a = 1 -> 6\nfinal: 1|5 2|0", oracle.NameResult},
		"wrong where nothing is spoilt": {true, "A: INSERT INTO t VALUES (3, 5) -> 1\nfinal: 1|0 2|0 3|6", oracle.NameFinalState},
	} {
		v, err := troc.Check(t.Context(), played(t, "tidb", product.ReadCommitted, twoRows, test.play), &toy{product: "tidb", leaks: test.leaks}, troc.Options{})
		want := "violation: " + test.violation
		if test.violation == "" {
			want = "unknown: s1 does something else on tables to which troc adds no row id"
		}
		if got := short(v); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
}
