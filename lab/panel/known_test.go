package panel

import (
	"flag"
	"fmt"
	"maps"
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
	"wirecheck/oracle"
)

var update = flag.Bool("update", false, "write what the oracles say of the cases in testdata/quiet to its file verdicts")

// quietOracles judge the cases in testdata/quiet.
const quietOracles = "wss,troc,txcheck,radar,tlp,norec,dqe"

const verdictsFile = "../../testdata/quiet/verdicts"

// TestQuietCases executes cases in which an oracle once called a bug what is none. No oracle may find anything more than a permitted
// difference, and each says what the file verdicts has: an oracle that no longer decides a case that it decided fails the test. An engine
// without lines there is one that not every machine has; its lines are logged.
func TestQuietCases(t *testing.T) {
	text, err := os.ReadFile(verdictsFile)
	if err != nil {
		t.Fatal(err)
	}
	want, got := map[string]string{}, map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, says, ok := strings.Cut(strings.TrimSpace(line), ": "); ok && key[0] != '#' {
			want[key] = says
		}
	}
	eachCase(t, "../../testdata/quiet/*.spec", quietOracles, func(name string, spec *scenario.Spec, target scenario.Target, d *Judgement) {
		key := fmt.Sprintf("%s on %s at %s", strings.TrimSuffix(filepath.Base(spec.Name), ".spec"), name, target.Level)
		var says []string
		for _, v := range d.Rulings {
			word := said(v)
			if says = append(says, v.Oracle+" "+word); strings.HasPrefix(word, "finds") {
				t.Errorf("%s: %s %s", key, v.Oracle, word)
			}
		}
		got[key] = strings.Join(says, ", ")
		if want[key] == "" && name != "postgres" && name != "mariadb" {
			t.Logf("no line for it: %s: %s", key, got[key])
		} else if want[key] != got[key] && !*update {
			t.Errorf("%s:\n says %s\n want %s\n(-update writes %s)", key, got[key], want[key], verdictsFile)
		}
	})
	if *update {
		maps.Copy(want, got)
		var b strings.Builder
		b.WriteString("# What each oracle says of each case in this folder. TestQuietCases in lab/panel compares it, and writes it with -update.\n")
		for _, key := range slices.Sorted(maps.Keys(want)) {
			fmt.Fprintf(&b, "%s: %s\n", key, want[key])
		}
		if err := os.WriteFile(verdictsFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// said puts a ruling into words: what it finds, the causes that permit what it sees, unknown, or nothing.
func said(v Ruling) string {
	var found, permitted []string
	for i := range v.Findings {
		if f := &v.Findings[i]; f.Kind == oracle.KindPermitted {
			permitted = append(permitted, f.Difference.Cause)
		} else {
			found = append(found, f.Title())
		}
	}
	slices.Sort(permitted)
	switch {
	case len(found) > 0:
		return "finds " + strings.Join(found, "; ")
	case len(permitted) > 0:
		return "permitted (" + strings.Join(slices.Compact(permitted), "; ") + ")"
	case v.Unknown != "":
		return "unknown"
	}
	return "nothing"
}

// TestFoundCases executes the bugs that hunts found (docs/lab/hunts.md), reduced: the oracles find them where the servers have them, and nothing
// where they do not.
func TestFoundCases(t *testing.T) {
	eachCase(t, "../../testdata/found/*.spec", "", func(name string, spec *scenario.Spec, target scenario.Target, d *Judgement) {
		r := d.Report(spec, target)
		found := !r.Expects && len(r.Found) > 0
		if len(r.Wrong) > 0 || r.Crashed || r.Unknown != "" && !found {
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
			if err != nil || d.Trouble != nil {
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
