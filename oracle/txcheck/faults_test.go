package txcheck_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/txcheck"
)

const faultCase = `
setup { CREATE TABLE t (id INT PRIMARY KEY, v INT) }
setup { INSERT INTO t VALUES (1, 10), (2, 20), (3, 30) }
session a
step a1 { BEGIN }
step a2 { SELECT v FROM t WHERE id < 3 }
step a3 { UPDATE t SET v = v + 1 WHERE id < 3 }
step a4 { COMMIT }
session b
step b1 { BEGIN }
step b2 { INSERT INTO t VALUES (4, (SELECT max(v) FROM t)) }
step b3 { COMMIT }
step b4 { SELECT sum(v) FROM t }
permutation a1 b1 a2 b2 a3 a4 b3 b4
`

// inPartitions is the case with its table in two partitions, between which no row moves (PostgreSQL).
var inPartitions = strings.Replace(faultCase, "v INT) }", "v INT) PARTITION BY RANGE (id) }\nsetup { CREATE TABLE p PARTITION OF t FOR VALUES FROM (0) TO (3) }\n"+
	"setup { CREATE TABLE q PARTITION OF t FOR VALUES FROM (3) TO (9) }", 1)

// faulty is a stage whose server misbehaves in transactions: what executions of several sessions gave is spoiled.
type faulty struct {
	schedule.Stage
	spoil func(s *schedule.Schedule)
}

func (f faulty) Run(ctx context.Context, sessions []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	s, err := f.Stage.Run(ctx, sessions, orders)
	if err == nil {
		f.spoil(s)
	}
	return s, err
}

// step finds a step that is the case's own, instrumented or not, by the beginning of its text.
func step(s *schedule.Schedule, text string) *schedule.Step {
	i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool {
		return !strings.Contains(st.Name, ".") && strings.HasPrefix(st.Statement.Text, text) // an added read's name has a dot
	})
	if i < 0 {
		return &schedule.Step{}
	}
	return &s.Steps[i]
}

// TestFaults lets the server misbehave, in the schedule alone and in everything but statements without transactions. Each fault is
// to be found, at every level, in a case in which nothing is found without it.
func TestFaults(t *testing.T) {
	t.Parallel()
	value := func(rows [][]answer.Value) {
		if len(rows) > 0 {
			rows[0][0] = answer.Value("77")
		}
	}
	faults := []struct {
		name, want string
		spoil      func(s *schedule.Schedule)
	}{
		{"nothing", "", func(*schedule.Schedule) {}},
		{"wrong value", oracle.NameResult, func(s *schedule.Schedule) { value(step(s, "SELECT v").Answer.Rows) }},
		{"missing row", oracle.NameResult, func(s *schedule.Schedule) {
			a := &step(s, "SELECT v").Answer
			a.Rows = a.Rows[:len(a.Rows)-1]
		}},
		{"lost write", oracle.NameFinalState, func(s *schedule.Schedule) { s.Final[0].Rows = s.Final[0].Rows[1:] }},
		{"duplicate row", oracle.NameFinalState, func(s *schedule.Schedule) { s.Final[0].Rows = append(s.Final[0].Rows, s.Final[0].Rows[0]) }},
	}
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			source := faultCase
			if name == "postgres" {
				source = inPartitions
			}
			spec, err := scenario.Parse("fault.spec", []byte(source))
			if err != nil {
				t.Fatal(err)
			}
			for _, level := range p.engine.Levels {
				b := p.bench(t, level, 1)
				for _, fault := range faults {
					for _, always := range []bool{false, true} {
						r, err := b.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
						if err != nil {
							t.Fatal(err)
						}
						s, err := b.primary.Schedule(spec, r)
						if err != nil {
							t.Fatal(err)
						}
						fault.spoil(s)
						stage := schedule.Stage(b.stage)
						if always {
							stage = faulty{b.stage, fault.spoil}
						}
						v, err := txcheck.Check(t.Context(), s, stage, txcheck.Options{Intn: b.intn, Orders: 2})
						if err != nil {
							t.Fatal(err)
						}
						got := ""
						for _, f := range v.Findings {
							got = f.Name
							if f.Kind != oracle.KindViolation || f.Difference == nil || len(f.Difference.Reference) == 0 || f.ID == "" {
								t.Errorf("%+v", f)
							}
						}
						if got != fault.want || v.Unknown != "" {
							t.Errorf("%s at %s, %s, always %v: %q, want %q\n%s", name, level.History, fault.name, always, got, fault.want, text(v))
						}
					}
				}
			}
		})
	}
}
