package troc_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/generate"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

// mutants change one thing that a server answered. Each reports whether it changed anything.
var mutants = map[string]func(s *schedule.Schedule, r *rand.Rand) bool{
	"a row is missing in the end": func(s *schedule.Schedule, r *rand.Rand) bool {
		t := filled(s, r)
		if t == nil {
			return false
		}
		i := r.IntN(len(t.Rows))
		t.Rows = slices.Delete(slices.Clone(t.Rows), i, i+1)
		return true
	},
	"a row is there twice in the end": func(s *schedule.Schedule, r *rand.Rand) bool {
		t := filled(s, r)
		if t == nil {
			return false
		}
		t.Rows = append(slices.Clone(t.Rows), t.Rows[0])
		return true
	},
	"a result lacks a row": func(s *schedule.Schedule, r *rand.Rand) bool {
		st := reading(s, r)
		if st == nil {
			return false
		}
		st.Answer.Rows = st.Answer.Rows[1:]
		return true
	},
	"a result has a wrong value": func(s *schedule.Schedule, r *rand.Rand) bool {
		st := reading(s, r)
		if st == nil {
			return false
		}
		row := slices.Clone(st.Answer.Rows[0])
		if i := r.IntN(len(row)); bytes.Equal(row[i], []byte("7")) {
			row[i] = answer.Value("8")
		} else {
			row[i] = answer.Value("7")
		}
		st.Answer.Rows = append([][]answer.Value{row}, st.Answer.Rows[1:]...)
		return true
	},
	"one row more is affected": func(s *schedule.Schedule, r *rand.Rand) bool {
		var list []*schedule.Step
		for i := range s.Steps {
			if st := &s.Steps[i]; !st.Failed() && slices.Contains([]string{"insert", "update", "delete", "replace"}, st.Statement.Verb) {
				list = append(list, st)
			}
		}
		if len(list) == 0 {
			return false
		}
		list[r.IntN(len(list))].Answer.Affected++
		return true
	},
}

func filled(s *schedule.Schedule, r *rand.Rand) *answer.Table {
	var list []*answer.Table
	for i := range s.Final {
		if len(s.Final[i].Rows) > 0 {
			list = append(list, &s.Final[i])
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

func reading(s *schedule.Schedule, r *rand.Rand) *schedule.Step {
	var list []*schedule.Step
	for i := range s.Steps {
		if st := &s.Steps[i]; st.Statement.Verb == "select" && len(st.Answer.Rows) > 0 {
			list = append(list, st)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[r.IntN(len(list))]
}

// TestMutants: of generated cases of which the oracle says nothing, it says something when one answer is changed. Beside each is the
// near miss: the case as it was.
func TestMutants(t *testing.T) {
	const cases, least = 5, 0.8
	eachEngine(t, func(t *testing.T, p *place) {
		for _, level := range p.d.Levels[1:3] {
			t.Run(level.History, func(t *testing.T) {
				pair := p.at(t, level)
				r := rand.New(rand.NewPCG(*randomSeed, 77))
				g, err := generate.New(generate.Dialect(p.d.Name), limits(2, true), r.IntN)
				if err != nil {
					t.Fatal(err)
				}
				made, found := map[string]int{}, map[string]int{}
				total, caught := 0, 0
				for n := 0; n < cases; n++ {
					spec := g.Case().Spec
					result, err := pair.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
					if err != nil {
						continue // the server does not take the setup
					}
					again := func() *schedule.Schedule {
						s, err := pair.actor.Schedule(spec, result)
						if err != nil {
							t.Fatal(err)
						}
						return s
					}
					if v := pair.check(t, again()); len(v.Findings) > 0 || v.Unknown != "" {
						continue
					}
					for _, name := range slices.Sorted(maps.Keys(mutants)) {
						mutate := mutants[name]
						s := again()
						if !mutate(s, r) {
							continue
						}
						made[name]++
						total++
						v := pair.check(t, s)
						if slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindViolation }) {
							found[name]++
							caught++
						}
					}
				}
				t.Logf("%s, %s: %d of %d, %v of %v", p.name, level.History, caught, total, found, made)
				if total < cases || float64(caught) < least*float64(total) {
					t.Errorf("%d of %d changed schedules were found, %v of %v", caught, total, found, made)
				}
			})
		}
	})
}
