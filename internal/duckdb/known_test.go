package duckdb

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const twoSessions = `
s1 session postgres "15.4"
s2 session postgres "15.4"
s3 session postgres "15.4"
s1 t1 begin "read committed"
s2 t2 begin "read committed"
`

// known are histories with an anomaly, and near misses.
var known = []struct {
	name, text string
	want       map[string][]string // rows by query; the others have none
	check      []string
}{
	{
		name: "lost update",
		text: `
			t1 r shop.x@0
			t2 r shop.x@0
			t1 w shop.x 0>1
			t1 commit
			t2 w shop.x 1>2
			t2 commit`,
		want:  map[string][]string{"lost update": {"2 1 shop <nil>"}, "G-single": {"2 1"}, "G2": {"2 1"}},
		check: []string{"lost update [1 2]"},
	},
	{
		name: "lost update over another writer's version",
		text: `
			t2 r shop.x@0
			t1 w shop.x 0>1
			t1 commit
			s3 t3 begin "read committed"
			t3 w shop.x 1>2
			t3 commit
			t2 w shop.x 2>3
			t2 commit`,
		want:  map[string][]string{"lost update": {"2 1 shop <nil>"}, "G-single": {"2 1"}, "G2": {"2 1"}},
		check: []string{"lost update [1 2]"},
	},
	{
		name: "near miss of a lost update: the row is read again before it is written",
		text: `
			t1 lock shop.x@0
			t1 w shop.x 0>1
			t1 commit
			t2 lock shop.x@1
			t2 w shop.x 1>2
			t2 commit`,
	},
	{
		name: "a read that does not repeat and no lost update",
		text: `
			t2 r shop.x@0
			t1 w shop.x 0>1
			t1 commit
			t2 r shop.x@1
			t2 w shop.x 1>2
			t2 commit`,
		want:  map[string][]string{"G-single": {"2 1"}, "G2": {"2 1"}},
		check: []string{"non-repeatable read [1 2]"},
	},
	{
		name: "read skew over three transactions",
		text: `
			t1 r shop.x@0
			t2 w shop.x 0>1
			t2 commit
			s3 t3 begin "read committed"
			t3 r shop.x@1
			t3 w shop.y 0>1
			t3 commit
			t1 r shop.y@1
			t1 commit`,
		want:  map[string][]string{"G-single": {"1 2"}, "G2": {"1 2"}},
		check: []string{"read skew [1 2 3]"},
	},
	{
		name: "write skew",
		text: `
			t1 r shop.x@0, r shop.y@0
			t2 r shop.x@0, r shop.y@0
			t1 w shop.x 0>1
			t2 w shop.y 0>1
			t1 commit
			t2 commit`,
		want:  map[string][]string{"write skew": {"1 2"}, "G2": {"1 2", "2 1"}},
		check: []string{"write skew [1 2]"},
	},
	{
		name: "near miss of a write skew: the first one had committed when the second one read",
		text: `
			t1 r shop.x@0, r shop.y@0
			t1 w shop.x 0>1
			t1 commit
			t2 r shop.x@1, r shop.y@0
			t2 w shop.y 0>1
			t2 commit`,
	},
	{
		name: "write skew rolled back",
		text: `
			t1 r shop.x@0, r shop.y@0
			t2 r shop.x@0, r shop.y@0
			t1 w shop.x 0>1
			t2 w shop.y 0>1
			t1 commit
			t2 abort`,
	},
	{
		name: "write skew over conditions",
		text: `
			t1 all booking "(= number room 1)"
			t2 all booking "(= number room 1)"
			t1 i booking.a >1 image "room 1"
			t2 i booking.b >1 image "room 1"
			t1 commit
			t2 commit`,
		want:  map[string][]string{"write skew": {"1 2"}, "G2": {"1 2", "2 1"}},
		check: []string{"write skew [1 2]"},
	},
	{
		name: "near miss of a write skew over conditions: another room",
		text: `
			t1 all booking "(= number room 1)"
			t2 all booking "(= number room 1)"
			t1 i booking.a >1 image "room 1"
			t2 i booking.b >1 image "room 2"
			t1 commit
			t2 commit`,
	},
	{
		name: "circular information flow",
		text: `
			t1 w shop.x 0>1
			t2 w shop.y 0>1
			t1 r shop.y@1
			t2 r shop.x@1
			t1 commit
			t2 commit`,
		want:  map[string][]string{"G1c": {"1 2 wr", "2 1 wr"}},
		check: []string{"circular information flow [1 2]"},
	},
	{
		name: "near miss of a circular information flow",
		text: `
			t1 w shop.x 0>1
			t2 w shop.y 0>1
			t1 r shop.y@0
			t2 r shop.x@1
			t1 commit
			t2 commit`,
	},
}

// TestKnown: the queries of the page find what the checker finds, of the same transactions, and nothing in the near misses.
func TestKnown(t *testing.T) {
	for _, tt := range known {
		t.Run(tt.name, func(t *testing.T) {
			l := newLake(t, parse(t, twoSessions+tt.text))
			for _, name := range []string{"lost update", "G-single", "write skew", "G2", "G1c"} {
				want := tt.want[name]
				if want == nil {
					want = []string{}
				}
				if diff := cmp.Diff(want, l.rows(name)); diff != "" {
					t.Errorf("%s (-want +got):\n%s", name, diff)
				}
			}
			var got []string
			for i := range l.found {
				got = append(got, brief(&l.found[i]))
			}
			if diff := cmp.Diff(tt.check, got); diff != "" {
				t.Errorf("the checker (-want +got):\n%s", diff)
			}
		})
	}
}
