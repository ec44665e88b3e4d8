package generate_test

import (
	"slices"
	"testing"

	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
)

// TestQueriesOn: as many queries as were asked for, of one session, writes in its transaction alone, and the same for the same numbers.
func TestQueriesOn(t *testing.T) {
	const n = 40
	for _, d := range generate.Dialects() {
		made := func() *generate.Case {
			g := newGenerator(t, d, generate.Limits{}, 5)
			return g.QueriesOn(g.Database(), n)
		}
		k := made()
		text := printed(t, 5, k)
		if again := printed(t, 5, made()); again != text {
			t.Errorf("%s: two cases of one seed", d)
		}
		if _, err := scenario.Parse("queries.spec", []byte(text)); err != nil {
			t.Errorf("%s: %v", d, err)
		}
		queries, writes, open := 0, 0, false
		for _, st := range k.Order {
			switch {
			case st.Kind == generate.KindBegin:
				open = true
			case st.Kind == generate.KindSelect:
				queries++
			case st.Kind.Writes():
				writes++
				if !open {
					t.Errorf("%s: a write in front of the transaction: %s", d, st.SQL)
				}
			}
		}
		if queries < n || writes < 2 || len(k.Sessions) != 1 || k.Order[len(k.Order)-1].Kind != generate.KindRollback {
			t.Errorf("%s: %d queries, %d writes, %d sessions, ends with %s", d, queries, writes, len(k.Sessions), k.Order[len(k.Order)-1].SQL)
		}
	}
}

// TestQueriesOnSavepoints: where an error fails the transaction, no more than the queries in front of the next write are lost. Near miss: elsewhere there are no savepoints.
func TestQueriesOnSavepoints(t *testing.T) {
	for _, d := range generate.Dialects() {
		g := newGenerator(t, d, generate.Limits{}, 5)
		failed, kept, lost, most := false, false, 0, 0 // whether each write and every second query fails
		for i, st := range g.QueriesOn(g.Database(), 60).Order {
			switch {
			case st.SQL == "SAVEPOINT p1":
				kept = kept || !failed
			case st.SQL == "ROLLBACK TO SAVEPOINT p1":
				failed = !kept
			case failed:
				lost++
			case st.Kind.Writes():
				failed = true
			case kept && i%2 == 0:
				failed = true
			}
			if st.SQL == "SAVEPOINT p1" || st.SQL == "ROLLBACK TO SAVEPOINT p1" {
				most, lost = max(most, lost), 0
			}
		}
		if kept != (d == generate.Postgres) || most > 5 {
			t.Errorf("%s: savepoints %v, %d statements lost behind an error", d, kept, most)
		}
	}
}

// TestMixedTypesInQueriesAlone: a write is refused where a query warns, so only queries mix types.
func TestMixedTypesInQueriesAlone(t *testing.T) {
	for _, d := range []generate.Dialect{generate.MySQL, generate.TiDB} {
		mixed := 0
		for seed := range uint64(150) {
			for _, st := range newGenerator(t, d, generate.Limits{}, seed).Case().Order {
				if !slices.Contains(st.Features, "mixed-types") {
					continue
				}
				if mixed++; st.Kind != generate.KindSelect {
					t.Errorf("%s, seed %d: %s", d, seed, st.SQL)
				}
			}
		}
		if mixed == 0 {
			t.Errorf("%s: types are never mixed", d)
		}
	}
}
