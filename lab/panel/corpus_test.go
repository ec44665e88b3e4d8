package panel

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"wirecheck/backends"
	"wirecheck/internal/testserver"
	"wirecheck/lab"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/troc"
	"wirecheck/product"
)

var (
	corpusUpdate = flag.Bool("corpus-update", false, "write what the oracles say into the scenarios of testdata/corpus, to be reviewed")
	corpusAll    = flag.Bool("corpus-all", false, "whether TestCorpus executes at PostgreSQL's READ UNCOMMITTED, too, which is its READ COMMITTED")
	corpusOnly   = flag.String("corpus", "", "a regular expression: which scenarios of testdata/corpus TestCorpus executes")
)

// corpusOracles are all that judge schedules, and those of single queries. Waits that no lock explains are looked for where a scenario names that oracle.
const corpusOracles = "all,serial,overblocking"

// TestCorpus executes the scenarios of testdata/corpus on each engine and at each level that they are for, and lets every oracle judge them,
// the isolation oracle through the proxy. What each of them says stands in the scenarios' verdict lines: a finding that does not stand there
// fails the test, and so does an oracle that cannot decide any more.
func TestCorpus(t *testing.T) {
	t.Parallel()
	specs := corpusSpecs(t)
	said := corpusTable{}
	t.Cleanup(func() { // the engines have run
		if *corpusUpdate {
			for _, spec := range specs {
				if err := said.store(spec); err != nil {
					t.Error(err)
				}
			}
		}
	})
	var mu sync.Mutex // guards said
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			corpusOn(t, name, specs, func(spec *scenario.Spec, n int, target scenario.Target, is []string) {
				mu.Lock()
				defer mu.Unlock()
				said.add(spec, n, target, is)
			})
		})
	}
}

// corpusSpecs reads the scenarios.
func corpusSpecs(t *testing.T) []*scenario.Spec {
	t.Helper()
	only := regexp.MustCompile(*corpusOnly)
	return slices.DeleteFunc(readSpecs(t, "../../testdata/corpus/*.spec"), func(spec *scenario.Spec) bool {
		return !only.MatchString(filepath.Base(spec.Name))
	})
}

// readSpecs reads the scenarios of a folder.
func readSpecs(t *testing.T, pattern string) (specs []*scenario.Spec) {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scenarios in %s: %v", pattern, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		spec, err := scenario.Parse(path, text)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return specs
}

// corpusSay takes what the oracles say of a permutation.
type corpusSay func(spec *scenario.Spec, n int, target scenario.Target, said []string)

// corpusOn executes the scenarios on one engine, at all levels at once where that is possible.
func corpusOn(t *testing.T, name string, specs []*scenario.Spec, say corpusSay) {
	s, err := backends.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the levels have run
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	selection, err := Select(corpusOracles)
	if err != nil {
		t.Fatal(err)
	}
	for i, level := range s.Engine.Levels {
		if !*corpusAll && !*corpusUpdate && i+1 < len(s.Engine.Levels) && level.Setting == nil && level.Gives.Name == s.Engine.Levels[i+1].Gives.Name {
			continue
		}
		target := scenario.Target{Engine: s.Engine.Name, Version: s.Version, Level: level.History}
		t.Run(level.History, func(t *testing.T) {
			if s.Engine.Name != "tidb" { // TiDB 2023-01 ends a connection that asks for a lock of GET_LOCK that another one has
				t.Parallel()
			}
			b, err := Open(t.Context(), s, lab.Config{Level: level}, selection, Options{Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			b.Sparing = true
			for _, spec := range specs {
				for n, p := range spec.Permutations {
					if spec.For(p, target) {
						corpusCase(t, b, s, spec, n, target, say)
					}
				}
			}
			if err := b.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// corpusCase executes one permutation, and compares what is said with what is stated.
func corpusCase(t *testing.T, b *Panel, s *backends.Instance, spec *scenario.Spec, n int, target scenario.Target, say corpusSay) {
	p := spec.Permutations[n]
	defer b.Only(func(j Judge) bool { return j.Name != troc.Overblocking.Name || slices.Contains(spec.Oracles(), j.Name) }, true)()
	d, err := b.Run(t.Context(), spec, p)
	if err != nil {
		t.Fatalf("%s at %s: %v", spec.Name, target.Level, err)
	}
	if d.Trouble != nil || d.Crashed || d.Hung {
		t.Errorf("%s at %s: it did not come to its end: %v", spec.Name, target.Level, d.Trouble)
		return
	}
	say(spec, n, target, d.Said())
	_, states := spec.Verdict(p, target)
	r := d.Report(spec, target)
	if states && len(r.Wrong) == 0 || *corpusUpdate {
		return
	}
	if !states {
		r.Wrong = append(r.Wrong, "no verdict line says what is true of it")
	}
	t.Errorf("%s at %s, %s:\n%s\n%s", spec.Name, target.Level, p, strings.Join(r.Wrong, "\n"), corpusText(t, d, s, spec, target))
}

// corpusText is what wirecheck run prints of a case.
func corpusText(t *testing.T, d *Judgement, s *backends.Instance, spec *scenario.Spec, target scenario.Target) string {
	var out bytes.Buffer
	p := Printer{Format: "text", Stdout: &out, Out: &bytes.Buffer{}, Spec: spec, Instance: s, Level: *s.Engine.Level(target.Level)}
	p.Begin()
	if err := errors.Join(p.Permutation(1, d, d.Report(spec, target)), p.End("")); err != nil {
		t.Error(err)
	}
	return out.String()
}

// corpusTable is what was said: by scenario, number of the permutation, and product and level.
type corpusTable map[string]map[int]map[[2]string]string

func (c corpusTable) add(spec *scenario.Spec, n int, target scenario.Target, said []string) {
	c.set(spec, n, [2]string{target.Engine, target.Level}, said)
}

func (c corpusTable) set(spec *scenario.Spec, n int, where [2]string, said []string) {
	if c[spec.Name] == nil {
		c[spec.Name] = map[int]map[[2]string]string{}
	}
	if c[spec.Name][n] == nil {
		c[spec.Name][n] = map[[2]string]string{}
	}
	for i, line := range said { // of a reason, what does not name the case's own steps and statements
		if strings.Contains(line, " unknown ") {
			said[i], _, _ = strings.Cut(line, ": ")
		}
	}
	text := strings.Join(said, "; ")
	if text == "" {
		text = "nothing"
	}
	c[spec.Name][n][where] = text
}

// store replaces a scenario's verdict lines. What they say of engines that did not run stays as it is.
func (c corpusTable) store(spec *scenario.Spec) error {
	for n, p := range spec.Permutations {
		for _, d := range product.All() {
			for _, l := range d.Levels {
				where := [2]string{d.Name, l.History}
				target := scenario.Target{Engine: d.Name, Level: l.History}
				if _, ran := c[spec.Name][n][where]; ran || !spec.For(p, target) {
					continue
				}
				if said, ok := spec.Verdict(p, target); ok {
					c.set(spec, n, where, said)
				}
			}
		}
	}
	src, err := os.ReadFile(spec.Name)
	if err != nil {
		return err
	}
	table := c[spec.Name]
	shared := true
	for _, one := range table {
		shared = shared && maps.Equal(one, table[0])
	}
	lines := slices.DeleteFunc(strings.SplitAfter(string(src), "\n"), func(l string) bool { return strings.HasPrefix(l, "#wirecheck: verdict") })
	var out []string
	n, last := 0, -1
	for i, l := range lines {
		if strings.HasPrefix(l, "#wirecheck: ") && n == 0 {
			last = i
		}
		if strings.HasPrefix(l, "permutation") {
			n++
		}
	}
	n = 0
	for i, l := range lines {
		if !shared && strings.HasPrefix(l, "permutation") {
			out = append(out, verdictLines(table[n])...)
			n++
		}
		out = append(out, l)
		if shared && i == last {
			out = append(out, verdictLines(table[0])...)
		}
	}
	return os.WriteFile(spec.Name, []byte(strings.Join(out, "")), 0o644)
}

// verdictLines writes what is said as directives: first that of most products and levels, then the others.
func verdictLines(said map[[2]string]string) (lines []string) {
	levels := map[string]map[string][]string{} // by text and product
	count := map[string]int{}
	for _, d := range product.All() {
		for _, l := range d.Levels {
			if text, ok := said[[2]string{d.Name, l.History}]; ok {
				if levels[text] == nil {
					levels[text] = map[string][]string{}
				}
				levels[text][d.Name] = append(levels[text][d.Name], l.History)
				count[text]++
			}
		}
	}
	texts := slices.Sorted(maps.Keys(count))
	slices.SortStableFunc(texts, func(a, b string) int { return count[b] - count[a] })
	if i := slices.Index(texts, "nothing"); i > 0 {
		texts = slices.Insert(slices.Delete(texts, i, i+1), 0, "nothing")
	}
	for i, text := range texts {
		if i == 0 {
			lines = append(lines, "#wirecheck: verdict: "+text+"\n")
			continue
		}
		at := map[string][]string{} // products by levels
		for _, d := range product.All() {
			if list := levels[text][d.Name]; len(list) > 0 {
				key := strings.Join(list, ", ")
				at[key] = append(at[key], d.Name)
			}
		}
		for _, key := range slices.Sorted(maps.Keys(at)) {
			lines = append(lines, fmt.Sprintf("#wirecheck: verdict[%s: %s]: %s\n", strings.Join(at[key], ", "), key, text))
		}
	}
	return lines
}

// TestEveryOracleHasCases: each oracle has at least one case in which it must find something, and a near miss in which it must not. A
// case states that by its verdict lines (testdata/corpus), or by outcomes that ask the oracle (testdata/found).
func TestEveryOracleHasCases(t *testing.T) {
	type cases struct{ finds, quiet bool }
	have := map[string]*cases{IsolationName: {}}
	oracleOf := map[string]string{} // by class
	for _, j := range judges {
		have[j.Name] = &cases{}
		for _, class := range j.classes {
			oracleOf["found("+string(class)+")"] = j.Name
		}
	}
	eachTarget := func(spec *scenario.Spec, each func(p *scenario.Permutation, target scenario.Target)) {
		versions := []string{""}
		for _, d := range spec.Directives {
			for _, engine := range d.Only.Engines {
				if _, version, ok := strings.Cut(engine, " "); ok && !slices.Contains(versions, version) {
					versions = append(versions, version)
				}
			}
		}
		for _, p := range spec.Permutations {
			for _, d := range product.All() {
				for _, l := range d.Levels {
					for _, version := range versions {
						if target := (scenario.Target{Engine: d.Name, Version: version, Level: l.History}); spec.For(p, target) {
							each(p, target)
						}
					}
				}
			}
		}
	}
	for _, spec := range readSpecs(t, "../../testdata/corpus/*.spec") {
		eachTarget(spec, func(p *scenario.Permutation, target scenario.Target) {
			verdict, states := spec.Verdict(p, target)
			for name, c := range have {
				says := slices.IndexFunc(verdict, func(item string) bool { return strings.HasPrefix(item, name+" ") })
				c.quiet = c.quiet || states && says < 0
				c.finds = c.finds || says >= 0 && !strings.HasPrefix(verdict[says], name+" unknown")
			}
		})
	}
	for _, spec := range readSpecs(t, "../../testdata/found/*.spec") {
		eachTarget(spec, func(p *scenario.Permutation, target scenario.Target) {
			observed, _ := spec.Observe(p, target)
			for _, o := range spec.Outcomes(p) {
				for found, name := range oracleOf {
					if i := slices.IndexFunc(observed, func(x scenario.Observation) bool { return x.Outcome == o.Name }); i >= 0 && strings.Contains(o.Condition.String(), found) {
						have[name].finds = have[name].finds || observed[i].Holds
						have[name].quiet = have[name].quiet || !observed[i].Holds
					}
				}
			}
		})
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if c := have[name]; !c.finds || !c.quiet {
			t.Errorf("%s: a case in which it finds something: %v; a near miss: %v", name, c.finds, c.quiet)
		}
	}
}
