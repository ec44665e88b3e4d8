package generate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/lab/generate"
)

// pretend is what an execution of a case might do: three statements about the same table in a row, of which no two neighbours are of one session.
func pretend(k *generate.Case) (outcomes []string) {
	for i := 2; i < len(k.Order); i++ {
		a, b, c := k.Order[i-2], k.Order[i-1], k.Order[i]
		if a.Session != b.Session && b.Session != c.Session && len(a.Tables) > 0 && slices.Equal(a.Tables, b.Tables) && slices.Equal(b.Tables, c.Tables) {
			outcomes = append(outcomes, fmt.Sprint(a.Kind, ">", b.Kind, ">", c.Kind, " ", a.Session == c.Session))
		}
	}
	return outcomes
}

// campaign makes cases in groups as a hunt does, and gives their texts.
type campaign struct {
	t        *testing.T
	dialect  generate.Dialect
	steering *generate.Steering
	steer    bool
}

func (c *campaign) run(from, to int) (texts []string) {
	const group = 10
	numbers := func(seed uint64, n int) func(int) int { return rand.New(rand.NewPCG(seed, uint64(n))).IntN }
	database := func(b generate.Base) (*generate.Generator, *generate.Database) {
		g, err := generate.New(c.dialect, generate.Limits{}, numbers(1, b.Group|b.Attempt<<40))
		if err != nil {
			c.t.Fatal(err)
		}
		return g, g.Database()
	}
	for i := from; i < to; i++ {
		base := generate.Base{Group: i / group}
		if c.steer {
			var err error
			base, err = c.steering.Begin(i/group, numbers(2, i/group), func(b generate.Base) (string, error) {
				_, db := database(b)
				return fmt.Sprint(len(db.Tables), len(db.Tables[0].Columns)), nil
			})
			if err != nil {
				c.t.Fatal(err)
			}
		}
		g, db := database(base)
		g.Draw(numbers(3, i))
		k, entry := (*generate.Case)(nil), (*generate.Entry)(nil)
		if c.steer {
			k, entry = c.steering.Next(g, db, numbers(4, i))
		} else {
			k = g.CaseOn(db)
		}
		c.steering.Learn(k, entry, pretend(k), true)
		text, err := k.Spec.Print()
		if err != nil {
			c.t.Fatal(err)
		}
		texts = append(texts, text)
	}
	return texts
}

// TestSteering: cases that are led to what is new do more different things than others, as many cases of each; the same numbers and executions give
// the same cases, also if the steering was written down and read again in between.
func TestSteering(t *testing.T) {
	for _, d := range []generate.Dialect{generate.Postgres, generate.MariaDB} {
		plain := &campaign{t, d, generate.NewSteering(), false}
		plain.run(0, 120)
		steered := &campaign{t, d, generate.NewSteering(), true}
		texts := steered.run(0, 120)
		without, with := plain.steering.Coverage.Outcomes(), steered.steering.Coverage.Outcomes()
		t.Logf("%s: %d outcomes, %d with steering, %d cases in the pool", d, without, with, len(steered.steering.Pool))
		if with*4 < without*5 {
			t.Errorf("%s: %d outcomes with steering, %d without: want a quarter more", d, with, without)
		}
		first := &campaign{t, d, generate.NewSteering(), true}
		again := first.run(0, 55) // in the middle of a group
		text, err := json.Marshal(first.steering)
		if err != nil {
			t.Fatal(err)
		}
		second := &campaign{t, d, generate.NewSteering(), true}
		if err := json.Unmarshal(text, second.steering); err != nil {
			t.Fatal(err)
		}
		again = append(again, second.run(55, 120)...)
		for i := range texts {
			if texts[i] != again[i] {
				t.Fatalf("%s: case %d is another after a resume:\n%s\nbefore:\n%s", d, i, again[i], texts[i])
			}
		}
	}
}

// TestSteeringBounded: the pool has a limit, and what brings nothing leaves it first.
func TestSteeringBounded(t *testing.T) {
	s := generate.NewSteering()
	k := newGenerator(t, generate.Postgres, generate.Limits{}, 1).Case()
	for i := range 500 {
		s.Learn(k, nil, []string{fmt.Sprint(i)}, true)
		if i == 0 {
			s.Pool[0].Uses, s.Pool[0].Hits = 10, 10
		} else {
			s.Pool[len(s.Pool)-1].Uses = 1000
		}
	}
	if len(s.Pool) != 200 || s.Pool[0].Hits != 10 {
		t.Errorf("%d cases in the pool; the good one is there: %v", len(s.Pool), s.Pool[0].Hits == 10)
	}
	if combinations, fresh := s.Learn(k, nil, []string{"3"}, true); combinations != 0 || fresh != 0 || len(s.Pool) != 200 {
		t.Errorf("nothing new: %d, %d, %d in the pool", combinations, fresh, len(s.Pool))
	}
	s.Pool = nil
	if _, fresh := s.Learn(k, nil, []string{"new"}, false); fresh != 1 || len(s.Pool) != 0 {
		t.Errorf("not wanted: %d new, %d in the pool", fresh, len(s.Pool))
	}
	g := newGenerator(t, generate.Postgres, generate.Limits{}, 1)
	if _, fresh := s.Learn(g.QueriesOn(g.Database(), 10), nil, []string{"of one session"}, true); fresh != 1 || len(s.Pool) != 0 {
		t.Errorf("a list of queries: %d new, %d in the pool", fresh, len(s.Pool))
	}
}

// TestMutate: changed cases are cases that should be tested (WriteCheck 5.2): at least two sessions, an explicit transaction, a write; what only reads
// writes nothing; steps have their session's order.
func TestMutate(t *testing.T) {
	for _, d := range generate.Dialects() {
		changed := map[string]int{}
		for seed := range uint64(15) {
			g := newGenerator(t, d, generate.Limits{}, seed)
			db := g.Database()
			k := g.CaseOn(db)
			for range 8 {
				next := g.Mutate(db, k.Order)
				check(t, next)
				switch {
				case len(next.Order) > len(k.Order):
					changed["longer"]++
				case len(next.Order) < len(k.Order):
					changed["shorter"]++
				case slices.EqualFunc(next.Order, k.Order, func(a, b generate.Step) bool { return a.SQL == b.SQL && a.Session == b.Session }):
					t.Errorf("%s: nothing changed", d)
				default:
					changed["as long"]++
				}
				k = next
			}
		}
		if len(changed) != 3 {
			t.Errorf("%s: %v", d, changed)
		}
	}
}

func check(t *testing.T, k *generate.Case) {
	t.Helper()
	begins, writes := 0, 0
	readOnly := map[int]bool{}
	counts := map[int]int{}
	for _, st := range k.Order {
		counts[st.Session]++
		if want := fmt.Sprintf("%s_%d", k.Sessions[st.Session].Name, counts[st.Session]); st.Name != want {
			t.Errorf("step %s, want %s", st.Name, want)
		}
		switch {
		case st.Kind == generate.KindBegin || strings.HasPrefix(st.SQL, "SET autocommit"):
			begins++
			readOnly[st.Session] = strings.Contains(st.SQL, "READ ONLY")
		case st.Kind == generate.KindCommit || st.Kind == generate.KindRollback:
			readOnly[st.Session] = false
		case st.Kind.Writes():
			writes++
			if readOnly[st.Session] {
				t.Errorf("a write where only reading is allowed: %s", st.SQL)
			}
		}
	}
	if len(counts) < 2 || len(counts) != len(k.Sessions) || begins == 0 || writes == 0 {
		t.Errorf("%d sessions, %d of them with steps, %d explicit transactions, %d writes", len(k.Sessions), len(counts), begins, writes)
	}
	statements := 0
	for _, s := range k.Sessions {
		for _, tx := range s.Transactions {
			statements += len(tx.Statements)
		}
	}
	if statements != len(k.Order) {
		t.Errorf("%d statements in transactions, %d in the order", statements, len(k.Order))
	}
}
