package panel

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/backends"
	"wirecheck/internal/testserver"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
)

// TestFoundCases executes the bugs that hunts found (docs/lab/hunts.md), reduced: the oracles find them where the servers have them, and nothing
// where they do not.
func TestFoundCases(t *testing.T) {
	t.Parallel()
	eachCase(t, "../../testdata/found/*.spec", "", func(name string, spec *scenario.Spec, target scenario.Target, d *Judgement) {
		r := d.Report(spec, target)
		found := !r.Expects && len(r.Found) > 0
		if len(r.Wrong) > 0 || r.Crashed && !found || r.Unknown != "" && !found {
			t.Errorf("%s on %s at %s: found %v; not as expected: %v; unknown: %s", spec.Name, name, target.Level, r.Found, r.Wrong, r.Unknown)
		}
	})
}

// eachCase executes the cases of a folder on the engines at hand of the products that they name, at their levels, and has them judged: by the oracles of the
// list, or by those that the case names. Each engine's server is started once.
func eachCase(t *testing.T, pattern, oracles string, each func(name string, spec *scenario.Spec, target scenario.Target, d *Judgement)) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, name := range testserver.Engines() {
		var instance *backends.Instance
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			spec, err := scenario.Parse(path, text)
			if err != nil {
				t.Fatal(err)
			}
			if is, _, _ := strings.Cut(name, ":"); !slices.ContainsFunc(spec.Engines(), func(e string) bool { return strings.Fields(e)[0] == is }) {
				continue
			}
			if instance == nil {
				if instance, err = backends.Open(t.Context(), name); err != nil {
					t.Fatal(err)
				}
				defer instance.Close()
			}
			judgeCase(t, instance, spec, oracles, func(target scenario.Target, d *Judgement) { each(name, spec, target, d) })
		}
	}
}

// judgeCase judges the permutations of one case at its levels.
func judgeCase(t *testing.T, s *backends.Instance, spec *scenario.Spec, oracles string, each func(target scenario.Target, d *Judgement)) {
	t.Helper()
	if oracles == "" {
		oracles = strings.Join(spec.Oracles(), ",")
	}
	selection, err := Select(oracles)
	if err != nil {
		t.Fatal(err)
	}
	levels, err := Levels(s.Engine, nil, spec)
	if err != nil {
		t.Fatal(err)
	}
	seed, _ := spec.Seed()
	for _, level := range levels {
		target := scenario.Target{Engine: s.Engine.Name, Version: s.Version, Level: level.History}
		p, err := Open(t.Context(), s, lab.Config{Level: level, Case: time.Minute}, selection, Options{Log: zerolog.Nop(), Seed: max(seed, 1)})
		if err != nil {
			t.Fatal(err)
		}
		for _, perm := range spec.Permutations {
			if !spec.For(perm, target) {
				continue
			}
			d, err := p.Run(t.Context(), spec, perm)
			if err != nil || d.Trouble != nil && !d.Report(spec, target).Crashed {
				t.Errorf("%s on %s at %s: %v, %v", spec.Name, s.Engine.Name, level.SQL, err, d.Trouble)
				continue
			}
			each(target, d)
		}
		if err := p.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
