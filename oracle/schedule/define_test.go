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
