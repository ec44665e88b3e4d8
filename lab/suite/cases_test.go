package suite

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"wirecheck/backends"
	"wirecheck/internal/testserver"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
)

// TestCases executes the known cases of testdata/cases on each engine and at each level that they are for, and compares
// what the results show with the cases' observe lines. Nothing watches: the added columns of MariaDB and MySQL hide some of
// the bugs.
func TestCases(t *testing.T) {
	paths, err := filepath.Glob("../../testdata/cases/*.spec")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	specs, err := ReadScenarios(paths, "text", t.Output())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := backends.Open(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			n := 0
			for _, level := range s.Engine.Levels {
				b, err := panel.Open(t.Context(), s, lab.Config{Level: level}, panel.Selection{}, panel.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for _, spec := range specs {
					if target := targetOf(s, level); spec.For(spec.Permutations[0], target) {
						checkCase(t, b, spec, target)
						n++
					}
				}
				if err := b.Close(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if n < 20 {
				t.Errorf("%d cases were executed", n)
			}
		})
	}
}

// checkCase executes one case and compares.
func checkCase(t *testing.T, b *panel.Panel, spec *scenario.Spec, target scenario.Target) {
	t.Helper()
	done, err := b.Run(t.Context(), spec, spec.Permutations[0])
	if err != nil {
		t.Errorf("%s at %s: %v", spec.Name, target.Level, err)
		return
	}
	report := done.Report(spec, target)
	want, says := spec.Observe(spec.Permutations[0], target)
	switch {
	case done.Trouble != nil || done.Crashed || len(report.Wrong) > 0:
		t.Errorf("%s at %s: %v, crashed %v, %v", spec.Name, target.Level, report.Wrong, done.Crashed, done.Trouble)
	case len(spec.Raw()) > 0 && says:
		twin := *spec
		twin.Setup = nil
		for _, sql := range spec.Raw() {
			twin.Setup = append(twin.Setup, scenario.Block{SQL: sql})
		}
		other, err := b.Run(t.Context(), &twin, spec.Permutations[0])
		if err != nil {
			t.Errorf("%s at %s, without metadata: %v", spec.Name, target.Level, err)
			return
		}
		if differ := answers(done) != answers(other); differ != want[0].Holds {
			t.Errorf("%s at %s: the answers are\n%s\nand without metadata\n%s", spec.Name, target.Level, answers(done), answers(other))
		}
	case report.Unknown != "" && slices.ContainsFunc(want, func(o scenario.Observation) bool { return o.Holds }):
		t.Errorf("%s at %s: %s", spec.Name, target.Level, report.Unknown)
	}
}

// answers are what the steps returned: rows without regard to their order, or the error's code.
func answers(d *panel.Judgement) string {
	var lines []string
	for _, ev := range d.Events {
		if ev.Answer.Err != nil {
			lines = append(lines, ev.Step.Name+": error "+ev.Answer.Err.Code)
		}
		for _, result := range ev.Answer.Results {
			for _, row := range result.Rows {
				lines = append(lines, fmt.Sprintf("%s: %q", ev.Step.Name, row))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
