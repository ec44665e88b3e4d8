package sqlite

import (
	"math/rand/v2"
	"testing"

	"wirecheck/generate"
)

// TestDescribeGenerated describes random statements: each is understood, and none is volatile.
func TestDescribeGenerated(t *testing.T) {
	n := 0
	for seed := range uint64(300) {
		g, err := generate.New(generate.SQLite, generate.Limits{}, rand.New(rand.NewPCG(seed, 5)).IntN)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range g.Case().Order {
			list, err := Describe(s.SQL)
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: %d statements, %v", s.SQL, len(list), err)
			}
			if st := list[0]; st.Unparsed || st.Volatile != "" {
				t.Errorf("%s: unparsed %q, volatile %q", s.SQL, st.Why, st.Volatile)
			}
			n++
		}
	}
	t.Logf("%d statements", n)
}
