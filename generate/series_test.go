package generate_test

import (
	"encoding/json"
	"testing"

	"wirecheck/generate"
)

// TestSeries: a series is one session with as many queries as it was asked for, besides those of its transactions; some are asked
// after their own transaction's writes; and it is the same for the same seed.
func TestSeries(t *testing.T) {
	const queries = 40
	for _, d := range generate.Dialects() {
		t.Run(string(d), func(t *testing.T) {
			writes := 0
			for seed := range uint64(20) {
				make := func() *generate.Case {
					g := newGenerator(t, d, generate.Limits{}, seed)
					return g.Series(g.Database(), queries)
				}
				k := make()
				if text := printed(t, seed, k); text != printed(t, seed, make()) {
					t.Fatalf("seed %d: another series for the same seed:\n%s", seed, text)
				}
				if len(k.Sessions) != 1 {
					t.Fatalf("seed %d: %d sessions", seed, len(k.Sessions))
				}
				n := 0
				for _, tx := range k.Sessions[0].Transactions {
					wrote := false
					for _, st := range tx.Statements {
						if st.Kind == generate.KindSelect {
							n++
						}
						if wrote && st.Kind == generate.KindSelect {
							writes++
						}
						wrote = wrote || st.Kind.Writes()
					}
				}
				if n < queries || n > 2*queries {
					t.Errorf("seed %d: %d queries, want %d and those of the transactions", seed, n, queries)
				}
			}
			if writes == 0 {
				t.Error("no query came after its transaction's own writes")
			}
		})
	}
}

// TestCoverageText: what was seen survives being written and read, so that a hunt that is gone on with makes the same cases.
func TestCoverageText(t *testing.T) {
	make := func(c *generate.Coverage, seed uint64) string {
		g := newGenerator(t, generate.Postgres, generate.Limits{}, seed)
		g.Steer(c)
		k := g.Case()
		c.AddCase(k)
		c.Add(generate.KindUpdate, generate.KindSelect, "waited")
		return printed(t, seed, k)
	}
	one, fresh := &generate.Coverage{}, &generate.Coverage{}
	for seed := range uint64(5) {
		make(one, seed)
	}
	text, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	other := &generate.Coverage{}
	if err := json.Unmarshal(text, other); err != nil {
		t.Fatal(err)
	}
	if other.Len() != one.Len() || one.Len() == 0 {
		t.Errorf("%d combinations, read back %d", one.Len(), other.Len())
	}
	differs := 0
	for seed := range uint64(20) {
		same := make(one, 100+seed)
		if got := make(other, 100+seed); got != same {
			t.Fatalf("seed %d: another case after reading back", seed)
		}
		if make(fresh, 100+seed) != same {
			differs++
		}
	}
	if differs == 0 {
		t.Error("what was seen made no difference: the test cannot fail")
	}
}
