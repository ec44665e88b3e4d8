package troc_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/lab/generate"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

var (
	randomCases = flag.Int("cases", 3, "random cases for each engine, level and number of sessions")
	randomSeed  = flag.Uint64("seed", 1, "of the random cases")
	randomLevel = flag.String("level", "", "this level only")
	randomSome  = flag.Int("sessions", 0, "this number of sessions only")
)

// limits are those of generated cases. Dense ones meet more often: one small table.
func limits(sessions int, dense bool) generate.Limits {
	l := generate.DefaultLimits()
	l.Transactions = sessions
	if dense {
		l.Tables, l.Rows, l.Columns, l.ForeignKeys, l.Depth, l.Templates = 1, 4, 2, -1, 1, 20
	}
	return l
}

// tally counts verdicts.
type tally struct {
	cases, silent, unknown, permitted, violations int
	statements, noted                             int
	causes, unknowns, notes                       map[string]int
	execution, judgement                          time.Duration
}

func (n *tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d cases: %d silent, %d unknown, %d with permitted differences, %d with violations; %d statements, %d notes; %.1f cases/s (%.1f ms to execute, %.1f ms to judge)",
		n.cases, n.silent, n.unknown, n.permitted, n.violations, n.statements, n.noted,
		float64(n.cases)/(n.execution+n.judgement).Seconds(), float64(n.execution.Milliseconds())/float64(n.cases), float64(n.judgement.Milliseconds())/float64(n.cases))
	for _, m := range []map[string]int{n.causes, n.unknowns, n.notes} {
		for _, k := range slices.SortedFunc(maps.Keys(m), func(a, b string) int { return m[b] - m[a] }) {
			fmt.Fprintf(&b, "\n%6d  %s", m[k], k)
		}
	}
	return b.String()
}

// TestRandom judges generated cases: whatever is found is a known departure.
func TestRandom(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		for _, level := range p.d.Levels {
			if *randomLevel != "" && level.History != *randomLevel {
				continue
			}
			for _, sessions := range []int{2, 4} {
				if *randomSome > 0 && sessions != *randomSome {
					continue
				}
				n := &tally{causes: map[string]int{}, unknowns: map[string]int{}, notes: map[string]int{}}
				r := rand.New(rand.NewPCG(*randomSeed, uint64(sessions)))
				var generators []*generate.Generator
				for _, dense := range []bool{false, true} {
					g, err := generate.New(generate.Dialect(p.d.Name), limits(sessions, dense), r.IntN)
					if err != nil {
						t.Fatal(err)
					}
					generators = append(generators, g)
				}
				t.Run(fmt.Sprintf("%s/%d", level.History, sessions), func(t *testing.T) {
					pair := p.at(t, level)
					var db *generate.Database
					for i := range *randomCases {
						g := generators[i/5%2]
						if i%5 == 0 {
							db = g.Database()
						}
						c := g.CaseOn(db)
						if !n.judge(t, pair, c.Spec) {
							db = g.Database()
						}
					}
					t.Logf("%s, %s, %d sessions: %s", p.name, level.History, sessions, n)
				})
			}
		}
	})
}

// judge executes and judges one case; false if the database is of no use.
func (n *tally) judge(t *testing.T, pair *pair, spec *scenario.Spec) bool {
	t.Helper()
	start := time.Now()
	r, err := pair.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
	if err != nil {
		return false // the server does not take the setup
	}
	s, err := pair.actor.Schedule(spec, r)
	if err != nil {
		t.Fatal(err)
	}
	middle := time.Now()
	v := pair.check(t, s)
	n.execution += middle.Sub(start)
	n.judgement += time.Since(middle)
	n.cases++
	n.statements += len(s.Steps)
	n.noted += len(v.Notes)
	for _, note := range v.Notes {
		_, why, _ := strings.Cut(note, ": ")
		n.notes["note: "+why]++
	}
	violation := false
	for _, f := range v.Findings {
		n.causes[string(f.Kind)+": "+f.Difference.Cause]++
		violation = violation || f.Kind == oracle.KindViolation && f.Difference.Cause == ""
	}
	switch {
	case violation:
		n.violations++
		t.Errorf("%s", account(spec, s, v))
	case v.Unknown != "":
		n.unknown++
		n.unknowns["unknown: "+v.Unknown]++
	case len(v.Findings) > 0:
		n.permitted++
	default:
		n.silent++
	}
	return true
}

// account tells a case and what was said of it.
func account(spec *scenario.Spec, s *schedule.Schedule, v schedule.Verdict) string {
	var b bytes.Buffer
	for _, sql := range s.Setup {
		fmt.Fprintf(&b, "  %s;\n", sql)
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		fmt.Fprintf(&b, "%s %-8s %d-%d", s.Sessions[st.Session].Name, st.Name, st.Sent, st.Done)
		if st.Waited {
			fmt.Fprintf(&b, " waited")
		}
		fmt.Fprintf(&b, ": %s", st.Statement.Text)
		if st.Answer.Err != nil {
			fmt.Fprintf(&b, " -> ERROR %s %s (%s, %s)", st.Answer.Err.Code, st.Answer.Err.Message, st.Reason, st.Effect)
		} else {
			fmt.Fprintf(&b, " -> %d affected %s", st.Answer.Affected, rows(st.Answer.Rows))
		}
		b.WriteByte('\n')
	}
	for _, table := range s.Final {
		fmt.Fprintf(&b, "  %s: %s\n", table.Name, rows(table.Rows))
	}
	for _, f := range v.Findings {
		text, err := json.MarshalIndent(f.Difference, "", " ")
		if err != nil {
			return err.Error()
		}
		fmt.Fprintf(&b, "%s %s %s\n%s\n", f.Kind, f.Name, f.Level, text)
	}
	return b.String()
}

func rows(list [][]answer.Value) string {
	var out []string
	for _, r := range list {
		var values []string
		for _, v := range r {
			if v == nil {
				values = append(values, "NULL")
			} else {
				values = append(values, string(v))
			}
		}
		out = append(out, strings.Join(values, "|"))
	}
	return "{" + strings.Join(out, ", ") + "}"
}
