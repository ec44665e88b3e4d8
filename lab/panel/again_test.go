package panel

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/lab"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

// finds is an oracle that finds something in schedules.
func finds(name string, kind oracle.Kind, cause string, found func(s *schedule.Schedule) bool) Judge {
	return Judge{
		Oracle: oracle.Oracle{Name: name}, classes: []oracle.Class{oracle.Class(name)},
		check: func(_ context.Context, s *schedule.Schedule, _ *lab.Stage, _ *Panel) (v schedule.Verdict, err error) {
			if found(s) {
				v.Findings = append(v.Findings, oracle.Finding{
					Oracle: name, Class: oracle.Class(name), Name: oracle.NameResult, Kind: kind, ID: name, Tables: []string{"t"},
					Difference: &oracle.Difference{Step: s.Steps[0].Name, Rule: "a rule", Cause: cause},
				})
			}
			return v, nil
		},
	}
}

// executorOf is one with these oracles on PostgreSQL.
func executorOf(t *testing.T, list ...Judge) *Executor {
	t.Helper()
	a, err := OpenExecutor(t.Context(), "postgres", Selection{Judges: list}, Options{Log: zerolog.Nop()}, time.Minute, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestFresh: what a reset does not bring back, a fresh setup does; only what is missing then is flaky.
func TestFresh(t *testing.T) {
	t.Parallel()
	spec := parse(t, "setup { CREATE TABLE t (a INT) }\nsession s\nstep x { SELECT 't'::regclass::oid }\npermutation x")
	for name, want := range map[string]struct{ reproduced, executions int }{"a new table": {Attempts, 1 + 2*Attempts}, "the first time": {0, 1 + 2*Attempts}, "each time": {Attempts, 1 + Attempts}} {
		seen, executions := map[string]bool{}, 0
		a := executorOf(t, finds("troc", oracle.KindViolation, "", func(s *schedule.Schedule) bool {
			executions++
			oid := string(s.Steps[0].Answer.Rows[0][0])
			fresh := !seen[oid]
			seen[oid] = true
			return name == "each time" || fresh && (name == "a new table" || len(seen) == 1)
		}))
		level, err := FindLevel(a.Instance.Engine, "read committed")
		if err != nil {
			t.Fatal(err)
		}
		b, err := a.At(t.Context(), level)
		if err != nil {
			t.Fatal(err)
		}
		d, err := b.Run(t.Context(), spec, spec.Permutations[0])
		if err != nil || len(d.Findings()) != 1 {
			t.Fatalf("%s: %v, %+v", name, err, d.Rulings)
		}
		f := d.Findings()[0].Difference
		if f.Reproduced != want.reproduced || f.Attempts != Attempts || f.Flaky != (want.reproduced < Attempts) || executions != want.executions {
			t.Errorf("%s: %d of %d, flaky %v, in %d executions; want %+v", name, f.Reproduced, f.Attempts, f.Flaky, executions, want)
		}
	}
}

// TestShowsExplained: a smaller case does not show a bug with a cause if another oracle explains it there; a finding without a cause stays.
func TestShowsExplained(t *testing.T) {
	t.Parallel()
	const setup = "setup { CREATE TABLE t (a INT) }\nsession s\nstep x { SELECT 1 }\n"
	small, large := parse(t, setup+"permutation x"), parse(t, setup+"step y { SELECT 2 }\npermutation x y")
	for _, cause := range []string{"row moved behind the scan", ""} {
		a := executorOf(t, finds("troc", oracle.KindViolation, cause, func(*schedule.Schedule) bool { return true }),
			finds("wss", oracle.KindPermitted, "missing gap locks", func(s *schedule.Schedule) bool { return len(s.Steps) == 1 }))
		level, err := FindLevel(a.Instance.Engine, "read committed")
		if err != nil {
			t.Fatal(err)
		}
		f, err := a.Find(t.Context(), large, level, "troc")
		if err != nil || f == nil {
			t.Fatal(f, err)
		}
		if shows, err := a.Shows(t.Context(), large, level, f, large); err != nil || !shows {
			t.Errorf("cause %q, the case itself: %v, %v", cause, shows, err)
		}
		if shows, err := a.Shows(t.Context(), small, level, f, large); err != nil || shows != (cause == "") {
			t.Errorf("cause %q, the small case: %v, %v", cause, shows, err)
		}
	}
}
