package panel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/history"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

type alive bool

func (a alive) Alive(context.Context) bool { return bool(a) }

// TestEndured: an oracle's own statement that ends its connection is a finding if the server lives and nobody ended it.
func TestEndured(t *testing.T) {
	j := judges[0]
	lost := lab.Lost{SQL: "SELECT 1 / a FROM t", Text: "the connection ended: error 1105: index out of range"}
	ended := lost
	ended.Ended = true
	gone := schedule.Step{Effect: answer.EffectGone}
	for _, test := range []struct {
		name  string
		lost  lab.Lost
		err   error
		steps []schedule.Step
		alive alive
		want  string
	}{
		{"it could not go on", lost, fmt.Errorf("compare: %w", &lost), nil, true, "found"},
		{"it went on in other sessions", lost, nil, nil, true, "found"},
		{"the server is gone", lost, &lost, nil, false, "error session 1's connection is gone since SELECT 1"},
		{"somebody ended it", ended, &ended, nil, true, "unknown session 1's connection is gone since SELECT 1"},
		{"somebody ended it, and it went on", ended, nil, nil, true, ""},
		{"the schedule does so, too", lost, nil, []schedule.Step{gone}, true, ""},
		{"something else is wrong", lost, errors.New("disk full"), nil, true, "error disk full"},
	} {
		s := &schedule.Schedule{Sessions: []schedule.Session{{Name: "s1"}}, Steps: test.steps}
		v, err := endured(t.Context(), j, s, test.alive, &test.lost, schedule.Verdict{}, test.err)
		got := ""
		switch {
		case err != nil:
			got = "error " + err.Error()
		case len(v.Findings) > 0:
			got = "found"
			if f := v.Findings[0]; f.Name != oracle.NameCrash || f.Oracle != j.Name || f.ID == "" || f.Difference.SQL != test.lost.SQL {
				t.Errorf("%s: %+v", test.name, f)
			}
		case v.Unknown != "":
			got = "unknown " + v.Unknown
		}
		if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestNameless: a rule is the same whatever the names in a case; other words are not taken for names.
func TestNameless(t *testing.T) {
	spec := parse(t, "setup { CREATE TABLE orders (a INT) }\nsession clerk\nstep c1 { SELECT 1 }\npermutation c1")
	other := parse(t, "setup { CREATE UNLOGGED TABLE IF NOT EXISTS t (a INT) }\nsession s\nstep x { SELECT 1 }\npermutation x")
	a, b := WithoutNames("a row of orders as clerk wrote it in c1: it waits", spec, other), WithoutNames("a row of t as s wrote it in x: it waits", spec, other)
	if a != b || !strings.Contains(a, "it waits") {
		t.Errorf("%q and %q", a, b)
	}
	if c := WithoutNames("a row of t as s read it in x: it waits", spec, other); c == b {
		t.Errorf("another rule: %q", c)
	}
	word := parse(t, "setup { CREATE TABLE row (a INT) }\nsession s\nstep x { SELECT 1 }\npermutation x") // a table called as a word of the rule
	if a, b := WithoutNames("a row of row: it waits", word, other), WithoutNames("a row of t: it waits", word, other); a != b {
		t.Errorf("%q and %q", a, b)
	}
}

// TestInDoubt: of a COMMIT whose answer nobody heard, a finding must stand whether it was done or not.
func TestInDoubt(t *testing.T) {
	describe := Describer(backends.All()[0])
	step := func(sql string, effect answer.Effect) schedule.Step {
		statements, err := describe(sql)
		if err != nil {
			t.Fatal(err)
		}
		statements[0].Text = sql // as a stage has it
		return schedule.Step{Statement: statements[0], Effect: effect, Before: answer.Open, After: answer.Idle}
	}
	const cut, permitted = "COMMIT /* wirecheck: cut */", history.Outcome("permitted")
	for _, test := range []struct {
		name  string
		sql   string
		wrong []history.Outcome // in which the judge finds something
		want  int               // violations
	}{
		{"what is permitted had it been committed is no violation", cut, []history.Outcome{history.OutcomeAborted, permitted}, 0},
		{"either", cut, []history.Outcome{history.OutcomeCommitted, history.OutcomeAborted}, 1},
		{"had it been committed", cut, []history.Outcome{history.OutcomeCommitted}, 0},
		{"had it been rolled back", cut, []history.Outcome{history.OutcomeAborted}, 0},
		{"it is known", "COMMIT", []history.Outcome{history.OutcomeCommitted}, 1},
	} {
		s := &schedule.Schedule{Product: "mariadb", Level: product.ReadCommitted, Sessions: []schedule.Session{{}}, Steps: []schedule.Step{step(test.sql, answer.EffectNone)}}
		if test.sql == cut {
			s.Steps[0].Effect = answer.EffectGone
		}
		j := Judge{Oracle: oracle.Oracle{Name: "x"}, check: func(_ context.Context, s *schedule.Schedule, _ *lab.Stage, _ *Panel) (v schedule.Verdict, _ error) {
			if slices.Contains(test.wrong, s.Transactions()[0].Outcome) {
				v.Findings = []oracle.Finding{{Kind: oracle.KindViolation}}
			} else if slices.Contains(test.wrong, permitted) {
				v.Findings = []oracle.Finding{{Kind: oracle.KindPermitted}}
			}
			return v, nil
		}}
		b := &Panel{describe: describe, primary: &lab.Stage{}}
		v, err := b.ask(t.Context(), &scenario.Spec{}, j, s)
		v.Findings = slices.DeleteFunc(v.Findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindPermitted })
		if err != nil || len(v.Findings) != test.want {
			t.Errorf("%s: %v, %v", test.name, v, err)
		}
	}
}

// TestJudgeFails: an oracle with an error of its own could not judge, and says where it failed; the next one judges.
func TestJudgeFails(t *testing.T) {
	fails := Judge{check: func(_ context.Context, s *schedule.Schedule, _ *lab.Stage, _ *Panel) (schedule.Verdict, error) {
		return schedule.Verdict{Unknown: s.Steps[7].Name}, nil
	}}
	v, err := fails.guarded(t.Context(), &schedule.Schedule{}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "index out of range [7]") || !strings.Contains(err.Error(), "judges_test.go") || v.Unknown != "" {
		t.Errorf("got %v, %v", v, err)
	}
	judges := Judge{check: func(context.Context, *schedule.Schedule, *lab.Stage, *Panel) (schedule.Verdict, error) {
		return schedule.Verdict{Compared: 3}, nil
	}}
	if v, err := judges.guarded(t.Context(), &schedule.Schedule{}, nil, nil); err != nil || v.Compared != 3 {
		t.Errorf("got %v, %v", v, err)
	}
}
