package hunt

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/internal/testserver"
	"wirecheck/lab"
	"wirecheck/lab/generate"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/scheduler/shell"
)

var (
	mutationFaults  = flag.Int("mutation-faults", 2, "cases with each kind of fault that TestMutation judges")
	mutationClean   = flag.Int("mutation-clean", 3, "cases without a fault that TestMutation judges at each level")
	mutationTimes   = flag.Int("mutation-attempts", 1, "how often TestMutation executes a case again in which something was found")
	mutationSeed    = flag.Uint64("mutation-seed", 1, "of the cases and faults of TestMutation")
	mutationOracles = flag.String("mutation-oracles", "wss,troc,txcheck", "which oracles TestMutation measures")
	mutationUpdate  = flag.Bool("mutation-update", false, "write what TestMutation found to "+foundFile)
	mutationKinds   = flag.String("mutation-kinds", "", "which faults, separated by commas; empty: all")
)

// foundFile says how many faults of each kind each oracle found, by engine, seed and number of faults. No number may fall.
const foundFile = "testdata/mutation"

// TestMutation measures the oracles on generated cases: what share of known faults each of them finds, and that none finds anything
// in a correct server. An oracle that finds fewer faults than foundFile says fails the test. docs/lab/mutation.md says how the faults are made and what the tables say; make mutation runs it in full.
func TestMutation(t *testing.T) {
	t.Parallel()
	p, err := panel.Select(*mutationOracles)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range testserver.Engines() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMutation(t, name, p)
			var report strings.Builder
			defer func() { fmt.Println(report.String()) }() // also of what was measured before something ended the test
			fmt.Fprintf(&report, "\n## %s %s\n\n", m.instance.Engine.Title, m.instance.Version)
			m.clean(&report)
			m.faults(&report)
		})
	}
}

// mutation is the measurement on one engine.
type mutation struct {
	t         *testing.T
	name      string // of the engine, as --engine has it
	options   panel.Options
	instance  *backends.Instance
	in        *Injector
	selection panel.Selection
	hunter    *hunter                 // makes the cases, as hunt does
	panels    map[string]*panel.Panel // by level
	folder    string                  // of cases that were found without a fault
}

func newMutation(t *testing.T, name string, p panel.Selection) *mutation {
	o := panel.Options{Log: zerolog.Nop(), Seed: *mutationSeed}
	s, err := backends.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	m := &mutation{t: t, name: name, options: o, selection: p, panels: map[string]*panel.Panel{}}
	m.in = New(s.Engine, s.Target, panel.Describer(s.Engine))
	m.hunter = &hunter{Executor: &panel.Executor{Instance: s, Options: o}, o: Options{Limits: generate.DefaultLimits()}}
	spoiled := *s
	spoiled.Engine = m.in.Backend()
	m.instance = &spoiled
	t.Cleanup(func() {
		var errs []error
		for _, b := range m.panels {
			errs = append(errs, b.Close(context.Background()))
		}
		if err := errors.Join(append(errs, s.Close())...); err != nil {
			t.Error(err)
		}
	})
	return m
}

func (m *mutation) bench(level product.Level) *panel.Panel {
	b := m.panels[level.History]
	if b == nil {
		var err error
		config := lab.Config{Level: level, Case: time.Minute, Reset: lab.Quick, Limits: shell.Limits{Stuck: panel.StuckLimit}, Application: "mutation"}
		if b, err = panel.Open(m.t.Context(), m.instance, config, m.selection, m.options); err != nil {
			m.t.Fatal(err)
		}
		b.Sparing, b.Attempts = true, *mutationTimes
		m.panels[level.History] = b
	}
	return b
}

// generated makes case i. A group of cases has the same database.
func (m *mutation) generated(i, group int) (*scenario.Spec, *scenario.Permutation) {
	m.hunter.o.Group = group
	k, _, err := m.hunter.generated(i)
	if err != nil {
		m.t.Fatal(err)
	}
	return k.Spec, k.Spec.Permutations[0]
}

// executed gives what a case did; nil if there is nothing to judge: the server refused its setup, it did not come to its end, or an
// oracle failed, which fails the test. What else goes wrong ends the test.
func (m *mutation) executed(spec *scenario.Spec, r *lab.Result, err error, what string) *lab.Result {
	m.t.Helper()
	if m.t.Context().Err() != nil {
		m.t.Fatal(context.Cause(m.t.Context()))
	}
	var refused *answer.Error
	switch {
	case err != nil && r != nil && len(r.Events) > 0:
		m.t.Errorf("%s: %v", what, err)
		return nil
	case errors.As(err, &refused):
		return nil
	case err != nil:
		text, _ := spec.Print()
		m.t.Fatalf("%s: %v\n%s", what, err, text)
	case r.Crashed:
		text, _ := spec.Print()
		m.t.Fatalf("%s: the server or a connection ended: %v\n%s", what, r.Trouble, text)
	case r.Trouble != nil:
		return nil
	}
	return r
}

// mutationTally counts what one oracle said.
type mutationTally struct {
	found, flaky, unknown int
	permitted             map[string]int // by cause
	known                 map[string]int // bugs of the server, by cause
	why                   map[string]int // by reason why it is unknown
}

// tallies are by oracle.
type tallies map[string]*mutationTally

func (ts tallies) of(name string) *mutationTally {
	if ts[name] == nil {
		ts[name] = &mutationTally{permitted: map[string]int{}, known: map[string]int{}, why: map[string]int{}}
	}
	return ts[name]
}

// count adds what was said of one case, and gives the findings that are not permitted. Without a fault, the server's own bugs are
// counted apart if they are known bugs of the server (testdata/cases, testdata/found), which the finding's cause says; with one they may be the fault.
func (ts tallies) count(d *panel.Judgement, faulty bool) (found []oracle.Finding) {
	note := func(name string, findings []oracle.Finding, unknown string) {
		t := ts.of(name)
		flaky, solid := false, false
		for i := range findings {
			f := &findings[i]
			switch {
			case f.Kind == oracle.KindPermitted:
				t.permitted[f.Difference.Cause]++
			case !faulty && f.Difference != nil && f.Difference.Cause != "": // flaky or not: the plan may depend on statistics, which the server renews when it likes
				t.known[f.Difference.Cause]++
			case f.Difference != nil && f.Difference.Flaky:
				flaky = true
				found = append(found, *f)
			default:
				solid = true
				found = append(found, *f)
			}
		}
		switch {
		case solid:
			t.found++
		case flaky:
			t.flaky++
		case unknown != "":
			t.unknown++
			t.why[unknown]++
		}
	}
	if d.Judged {
		// An anomaly that the level allows is no sign of a fault.
		promised := slices.DeleteFunc(slices.Clone(d.Isolation.Findings), func(f oracle.Finding) bool { return !f.Promised })
		unseen := ""
		if d.Unseen() {
			unseen = "not all statements were seen"
		}
		note(panel.IsolationName, promised, unseen)
	}
	for _, v := range d.Rulings {
		note(v.Oracle, v.Findings, v.Unknown)
	}
	return found
}

// cleanGroup is how many cases without a fault have the same database, as in hunt. Cases with faults have one each: fewer cases are to
// be as different.
const cleanGroup = 10

// clean judges cases without a fault at every level: nothing but what is permitted may be found.
func (m *mutation) clean(out *strings.Builder) {
	fmt.Fprintf(out, "| level | oracle | cases | found | flaky | unknown | permitted | known bugs of the server |\n|---|---|---|---|---|---|---|---|\n")
	reasons, why := map[string]string{}, map[string]int{}
	for n, level := range m.instance.Engine.Levels {
		b := m.bench(level)
		all, cases, given := tallies{}, 0, 0
		began := time.Now()
		for i := n * *mutationClean; cases < *mutationClean; i++ {
			if given++; given > 2**mutationClean+20 {
				m.t.Fatalf("%s: %d of %d cases came to no end", level.SQL, given-1-cases, given-1)
			}
			spec, perm := m.generated(i, cleanGroup)
			d, err := b.Run(m.t.Context(), spec, perm)
			if m.executed(spec, d.Result, err, fmt.Sprintf("case %d at %s", i, level.SQL)) == nil {
				continue
			}
			cases++
			for _, f := range all.count(d, false) {
				m.keep(spec, level, i, d, &f)
			}
			for _, v := range d.Rulings {
				for _, f := range v.Findings {
					if f.Difference != nil && f.Difference.Cause != "" {
						word := map[bool]string{true: "permitted, ", false: "known bug, "}[f.Kind == oracle.KindPermitted]
						reasons[word+f.Difference.Cause] = fmt.Sprintf("%s (%s)", f.Difference.Reason, f.Source)
					}
				}
			}
		}
		took := time.Since(began)
		for _, name := range m.oracles() {
			t := all.of(name)
			fmt.Fprintf(out, "| %s | %s | %d | %d | %d | %d | %s | %s |\n", level.History, name, cases, t.found, t.flaky, t.unknown, mutationCounted(t.permitted), mutationCounted(t.known))
			for reason, n := range t.why {
				why[name+": "+stepName.ReplaceAllString(reason, "a step")] += n
			}
		}
		fmt.Fprintf(out, "| %s | all: %.1f cases/s | | | | | | |\n", level.History, float64(cases)/took.Seconds())
		fmt.Fprintf(os.Stderr, "%s, %s: %d cases without a fault in %v\n", m.instance.Engine.Title, level.SQL, cases, took.Round(time.Second))
	}
	m.explain(out, reasons, why)
}

// explain says what was permitted and why, and what was not decided and why not.
func (m *mutation) explain(out *strings.Builder, reasons map[string]string, why map[string]int) {
	fmt.Fprintln(out)
	for _, cause := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Fprintf(out, "- %s: %s\n", cause, reasons[cause])
	}
	often := slices.Sorted(maps.Keys(why))
	slices.SortStableFunc(often, func(a, b string) int { return why[b] - why[a] })
	for _, reason := range often[:min(len(often), mostReasons)] {
		fmt.Fprintf(out, "- unknown %d times by %s\n", why[reason], reason)
	}
}

// stepName is what the generator calls steps.
var stepName = regexp.MustCompile(`\bs[0-9]+_[0-9]+\b`)

func (m *mutation) oracles() []string { return strings.Split(m.selection.Names(), ",") }

func mutationCounted(list map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, list[name]))
	}
	return strings.Join(parts, ", ")
}

// keep stores a case in which something was found without a fault, and how it went, and says how to see it. What is there every time fails the test.
func (m *mutation) keep(spec *scenario.Spec, level product.Level, i int, d *panel.Judgement, f *oracle.Finding) {
	m.t.Helper()
	if m.folder == "" {
		var err error
		if m.folder, err = os.MkdirTemp("", "wirecheck-mutation-"); err != nil {
			m.t.Fatal(err)
		}
	}
	path := filepath.Join(m.folder, fmt.Sprintf("%s-%s-%d.spec", m.instance.Engine.Name, strings.ReplaceAll(level.History, " ", "-"), i))
	text, err := spec.Print()
	var went bytes.Buffer
	err = errors.Join(err, d.Text(&went, spec), os.WriteFile(path, []byte(text), 0o644), os.WriteFile(path+".txt", went.Bytes(), 0o644))
	if err != nil {
		m.t.Fatal(err)
	}
	say, how := m.t.Errorf, "found"
	if f.Difference != nil && f.Difference.Flaky {
		say, how = m.t.Logf, fmt.Sprintf("flaky (%d of %d)", f.Difference.Reproduced, f.Difference.Attempts)
	}
	say("%s in a correct server by %s: %s %s: bin/wirecheck run %s --engine %s --level %q --oracle %s",
		how, f.Oracle, f.Class, f.Name, path, m.instance.Engine.Name, level.SQL, f.Oracle)
}

// spoiled counts the cases with one kind of fault.
type spoiled struct {
	tried, fired, visible int
	by                    tallies
	any                   int
}

// mostTries bounds the cases that are executed for one in which the fault shows.
const mostTries = 200

// faults judges cases with each kind of fault, at all levels in turn.
func (m *mutation) faults(out *strings.Builder) {
	fmt.Fprintf(out, "\n| fault | tried | fired | visible | %s | any |\n|---|---|---|---|%s---|\n",
		strings.Join(m.oracles(), " | "), strings.Repeat("---|", len(m.oracles())))
	total := 0
	for _, kind := range Kinds() {
		if *mutationKinds != "" && !slices.Contains(strings.Split(*mutationKinds, ","), string(kind)) {
			continue
		}
		s := &spoiled{by: tallies{}}
		for i := 0; s.visible < *mutationFaults && i < mostTries**mutationFaults; i++ {
			m.oneFault(kind, i, s)
		}
		if s.fired == 0 && *mutationFaults > 0 {
			m.t.Errorf("%s: never in %d cases", kind, s.tried)
		}
		fmt.Fprintf(out, "| %s | %d | %d | %d |", kind, s.tried, s.fired, s.visible)
		for _, name := range m.oracles() {
			fmt.Fprintf(out, " %s |", share(s.by.of(name), s.visible))
		}
		fmt.Fprintf(out, " %s |\n", percent(s.any, s.visible))
		m.compare(kind, s)
		total += s.any
		fmt.Fprintf(os.Stderr, "%s, %s: fired in %d cases of %d, visible in %d, found in %d\n", m.instance.Engine.Title, kind, s.fired, s.tried, s.visible, s.any)
	}
	executing := slices.ContainsFunc(m.selection.Judges, func(j panel.Judge) bool { return j.Name != "crash" })
	if executing && total == 0 && *mutationFaults > 0 {
		m.t.Error("no fault was found by any oracle")
	}
}

// compare holds what the oracles found of a kind of fault against foundFile, or writes it there. The file may lack lines for engines that not
// every machine has, and for other seeds and numbers of faults.
func (m *mutation) compare(kind Kind, s *spoiled) {
	text, err := os.ReadFile(foundFile)
	if err != nil {
		m.t.Fatal(err)
	}
	lines := strings.Split(strings.TrimRight(string(text), "\n"), "\n")
	key := fmt.Sprintf("%s, seed %d, %d cases, %s:", m.name, *mutationSeed, *mutationFaults, kind)
	at := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, key) })
	now := key
	for _, name := range m.oracles() {
		now += fmt.Sprintf(" %s %d", name, s.by.of(name).found)
	}
	switch {
	case *mutationUpdate && at < 0:
		lines = append(lines, now)
		slices.Sort(lines[1:]) // the first one says what the file is
	case *mutationUpdate:
		lines[at] = now
	case at < 0:
		m.t.Logf("%s has no line for it: %s", foundFile, now)
	default:
		words := strings.Fields(lines[at][len(key):])
		for i := 0; i+1 < len(words); i += 2 {
			want, err := strconv.Atoi(words[i+1])
			if err != nil {
				m.t.Fatalf("%s: %q: %v", foundFile, lines[at], err)
			}
			if got := s.by.of(words[i]).found; got < want && slices.Contains(m.oracles(), words[i]) {
				m.t.Errorf("%s %s finds %d, and found %d (%s; -mutation-update changes it)", key, words[i], got, want, foundFile)
			}
		}
	}
	if *mutationUpdate {
		if err := os.WriteFile(foundFile, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			m.t.Fatal(err)
		}
	}
}

// share says how many cases an oracle found.
func share(t *mutationTally, of int) string {
	text := percent(t.found, of)
	if t.flaky > 0 {
		text += fmt.Sprintf(", flaky %d", t.flaky)
	}
	if t.unknown > 0 {
		text += fmt.Sprintf(", unknown %d", t.unknown)
	}
	return text
}

func percent(n, of int) string {
	if of == 0 {
		return "-"
	}
	return fmt.Sprintf("%d (%.0f%%)", n, 100*float64(n)/float64(of))
}

// oneFault executes one case with a fault. It is judged if the fault shows: if the execution differs in anything from the one
// without it, an answer, a wait, a row in the end.
func (m *mutation) oneFault(kind Kind, i int, s *spoiled) {
	level := m.instance.Engine.Levels[i%len(m.instance.Engine.Levels)]
	b := m.bench(level)
	spec, perm := m.generated(i, 1)
	var plan []Step
	for _, st := range perm.Steps {
		plan = append(plan, Step{Session: spec.Sessions[st.Step.Session].Name, SQL: st.Step.SQL})
	}
	s.tried++
	what := fmt.Sprintf("case %d with %s at %s", i, kind, level.SQL)
	armed := false
	spoil := func(execute func() error) (err error) {
		if armed, err = m.in.Arm(kind, *mutationSeed+uint64(i), level, plan); err != nil || !armed {
			return err
		}
		return errors.Join(execute(), m.in.Disarm())
	}
	b.Around = spoil
	defer func() { b.Around = nil }()
	execute := func() (*lab.Result, error) { return b.Again(m.t.Context(), spec, perm) }
	r, err := execute()
	if !armed && err == nil {
		return
	}
	r = m.executed(spec, r, err, what)
	effect := m.in.Effect()
	if r == nil || effect == "" {
		return
	}
	s.fired++
	b.Around = nil
	truth, err := execute()
	if truth = m.executed(spec, truth, err, what); truth == nil || text(m.t, r, spec) == text(m.t, truth, spec) {
		return
	}
	b.Around = spoil
	d, err := b.Run(m.t.Context(), spec, perm)
	if m.executed(spec, d.Result, err, what+" ("+effect+")") == nil {
		return
	}
	s.visible++
	if again := m.in.Effect(); again != effect {
		m.t.Logf("%s: the same seed did otherwise: %q, then %q", what, effect, again)
	}
	found := s.by.count(d, true)
	if len(slices.DeleteFunc(found, func(f oracle.Finding) bool { return f.Difference != nil && f.Difference.Flaky })) > 0 {
		s.any++
	} else if testing.Verbose() {
		m.t.Logf("%s: not found (%s): %s; it shows in %s", what, strings.Join(undecided(d), "; "), effect, shows(text(m.t, d.Result, spec), text(m.t, truth, spec)))
	}
}

// shows is where two executions differ first.
func shows(spoiled, truth string) string {
	a, b := strings.Split(spoiled, "\n"), strings.Split(truth, "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%q in place of %q", strings.TrimSpace(a[i]), strings.TrimSpace(b[i]))
		}
	}
	return fmt.Sprintf("%d lines in place of %d", len(a), len(b))
}

// undecided lists the oracles that could not decide, and why, and what they found that was permitted or not there each time.
func undecided(d *panel.Judgement) (list []string) {
	for _, v := range d.Rulings {
		for _, f := range v.Findings {
			list = append(list, fmt.Sprintf("%s: %s, %s (%d of %d times)", v.Oracle, f.Name, f.Difference.Cause, f.Difference.Reproduced, f.Difference.Attempts))
		}
		if v.Unknown != "" {
			list = append(list, v.Oracle+": unknown: "+v.Unknown)
		}
	}
	return list
}

func text(t *testing.T, r *lab.Result, spec *scenario.Spec) string {
	t.Helper()
	var b bytes.Buffer
	if err := r.Text(&b, spec); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
