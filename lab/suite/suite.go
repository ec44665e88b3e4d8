// Package suite executes scenario files on one or more engines and at one or more levels. It prints what happened and what the oracles say,
// compares it with what the scenarios expect and with stored results, and makes the matrices of docs/lab.
package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"wirecheck/backends"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// Options says where to execute the scenarios, who judges, and what becomes of the results.
type Options struct {
	Engines, Levels []string
	Oracles         string
	Invariants      []lab.Invariant
	Mode            scenario.Mode // of permutations, where it is given
	Limit           time.Duration // of one permutation
	Out             string        // folder for scenarios that show what was found
	Update          bool          // store the results beside the scenarios
	Format          string        // text, json, junit, html, isolationtester, matrix, markdown
	Quiet           bool          // show only the first permutation with something to say, and number the others
	Color           bool          // of marks
	Judging         panel.Options

	Stdout, Stderr io.Writer
	Progress       func(done, total int64, format string, args ...any) // shows how far the suite has come; total 0: nobody knows how far it goes
	Choose         func() uint64                                       // gives a seed where neither the options nor the scenario have one
}

// Conclusion says what came of all scenarios together.
type Conclusion struct {
	Failed  bool // a case could not be executed to its end
	Found   bool // an oracle found something that no scenario expects, or a result is not as expected
	Unknown bool // a case could not be decided
}

// Run executes the scenarios, engine by engine, and prints the results.
func Run(ctx context.Context, specs []*scenario.Spec, o Options) (_ Conclusion, err error) {
	r := &runner{o: o, instances: map[string]*backends.Instance{}}
	defer func() { err = errors.Join(err, r.close()) }()
	if o.Format == formatMatrix || o.Format == formatMarkdown {
		return r.matrix(ctx, specs)
	}
	for _, spec := range specs {
		if err := r.spec(ctx, spec); err != nil {
			return Conclusion{}, errors.Join(err, r.summary())
		}
	}
	return r.end()
}

// split takes SQL files apart from scenarios.
func split(paths []string) (specs, scripts []string) {
	for _, path := range paths {
		if strings.EqualFold(filepath.Ext(path), ".sql") {
			scripts = append(scripts, path)
		} else {
			specs = append(specs, path)
		}
	}
	return specs, scripts
}

// Read reads scenarios and SQL files before anything is executed.
func Read(paths []string, o Options) ([]*scenario.Spec, error) {
	if o.Oracles != "" {
		if _, err := panel.Select(o.Oracles); err != nil {
			return nil, err
		}
	}
	paths, scripts := split(paths)
	specs, err := ReadScenarios(paths, o.Format, o.Stderr)
	if err != nil {
		return nil, err
	}
	for _, path := range scripts {
		spec, err := readScript(path, o.Engines)
		if err != nil {
			return nil, err
		}
		specs = append(specs, spec)
	}
	return specs, nil
}

// readScript reads an SQL file: a database and queries of it (lab.Script). It is in the dialect of the first engine.
func readScript(path string, engines []string) (*scenario.Spec, error) {
	name := product.All()[0].Name
	if len(engines) > 0 {
		name = engines[0]
	}
	if _, _, ok := backends.Embedded(name); ok {
		name, _, _ = strings.Cut(name, ":")
	} else if scheme, _, ok := strings.Cut(name, "://"); ok {
		name = scheme
	}
	d, err := backends.ByName(name)
	if err != nil {
		return nil, err
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read SQL file: %w", err)
	}
	return lab.Script(path, string(src), panel.Describer(d))
}

// ReadScenarios reads all files before anything is executed, and says all that is wrong with them.
func ReadScenarios(paths []string, format string, stderr io.Writer) ([]*scenario.Spec, error) {
	var specs []*scenario.Spec
	var errs []error
	for _, path := range paths {
		src, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, fmt.Errorf("read scenario: %w", err))
			continue
		}
		spec, err := scenario.Parse(path, src)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, w := range spec.Warnings {
			if format != "isolationtester" || !strings.HasPrefix(w.Text, scenario.UnusedStep) { // there it is part of the result
				fmt.Fprintln(stderr, "wirecheck: warning:", w)
			}
		}
		specs = append(specs, spec)
	}
	return specs, errors.Join(errs...)
}

// runner executes scenarios one after the other. Servers are started once.
type runner struct {
	o         Options
	instances map[string]*backends.Instance
	cases     []panel.CaseReport
	counts    []runCount
}

func (r *runner) close() error {
	var errs []error
	for _, s := range r.instances {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// instance gives the server for an engine.
func (r *runner) instance(ctx context.Context, name string) (*backends.Instance, error) {
	if s := r.instances[name]; s != nil {
		return s, nil
	}
	s, err := backends.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	r.instances[name] = s
	return s, nil
}

// levelsOf gives the server for an engine, and the levels that are asked for, else those of a file.
func (r *runner) levelsOf(ctx context.Context, name string, spec *scenario.Spec) (*backends.Instance, []product.Level, error) {
	s, err := r.instance(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	levels, err := panel.Levels(s.Engine, r.o.Levels, spec)
	return s, levels, err
}

// spec executes one file on the engines and at the levels that are asked for. What fails is a case that failed; an error ends
// the whole run.
func (r *runner) spec(ctx context.Context, spec *scenario.Spec) error {
	engines := r.o.Engines
	if len(engines) == 0 {
		engines = []string{product.All()[0].Name}
		if named := spec.Engines(); len(named) > 0 {
			engines = named
		}
	}
	for _, name := range engines {
		s, levels, err := r.levelsOf(ctx, name, spec)
		if err != nil {
			return err
		}
		levels = slices.DeleteFunc(levels, func(l product.Level) bool { return !spec.For(nil, targetOf(s, l)) && len(r.o.Engines) == 0 })
		if r.o.Format == "text" && len(r.cases) > 0 && len(levels) > 0 {
			fmt.Fprintln(r.o.Stdout)
		}
		var out bytes.Buffer
		whole := true
		for _, level := range levels {
			err := r.atLevel(ctx, spec, s, level, &out)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil {
				continue
			}
			whole = false
			r.failed(spec, s, level, err)
			delete(r.instances, name)
			if s, err = s.Revive(ctx); err != nil {
				return err
			}
			r.instances[name] = s
		}
		if whole {
			if err := r.compare(spec, s, levels, out.Bytes()); err != nil {
				return err
			}
		}
	}
	return nil
}

// failed says that a scenario could not be executed to its end.
func (r *runner) failed(spec *scenario.Spec, s *backends.Instance, level product.Level, err error) {
	fmt.Fprintf(r.o.Stderr, "wirecheck: %s on %s at %s: %v\n", spec.Name, s.Engine.Title, level.SQL, err)
	if !errors.Is(err, errDied) && !errors.Is(err, errHung) { // else the case itself is among the cases
		r.cases = append(r.cases, panel.CaseReport{Spec: spec.Name, Engine: s.Engine.Name, Level: level.History, Failed: err.Error(), Found: []string{}, Outcomes: []string{}})
	}
}

func targetOf(s *backends.Instance, l product.Level) scenario.Target {
	return scenario.Target{Engine: s.Engine.Name, Version: s.Version, Level: l.History}
}

// errDied says that the server ended in the middle of a permutation, and errHung that it gave no answer there.
var (
	errDied = errors.New("the server ended, or ended a connection, in the middle; the remaining permutations were not run")
	errHung = errors.New("the server gave no answer in time; the remaining permutations were not run")
)

// atLevel executes all permutations of a file at one level.
func (r *runner) atLevel(ctx context.Context, spec *scenario.Spec, s *backends.Instance, level product.Level, out *bytes.Buffer) (err error) {
	mode := r.mode(spec)
	o := r.o.Judging
	if r.o.Format == "isolationtester" {
		o.Database = "isolation_regression" // some of PostgreSQL's specs name it
	}
	b, err := panel.Open(ctx, s, lab.Config{
		Level: level, Case: r.o.Limit, Reset: r.resetFor(spec, mode), Invariants: r.o.Invariants,
		// PostgreSQL's specs know their sessions by what pg_isolation_regress calls them.
		Application: "isolation/" + strings.TrimSuffix(filepath.Base(spec.Name), ".spec"),
		Keep:        r.o.Format == "isolationtester",
	}, r.panel(spec), o)
	if err != nil {
		return err
	}
	died := false
	defer func() {
		if e := b.Close(ctx); !died {
			err = errors.Join(err, e)
		}
	}()
	p := panel.Printer{Format: r.o.Format, Stdout: r.o.Stdout, Out: out, Spec: spec, Instance: s, Level: level}
	if err := p.Begin(); err != nil {
		return err
	}
	count := runCount{Spec: spec.Name, Engine: s.Engine.Name, Version: s.Version, Level: level.History, Permutations: mode.String()}
	choice := r.choice(spec, s, level, &count)
	quiet := quietly{on: r.o.Quiet}
	broken := breaks{o: &r.o, list: make([]*BrokenInvariant, len(r.o.Invariants))}
	for perm := range spec.Orders(mode, choice) {
		if !spec.For(perm, targetOf(s, level)) {
			continue
		}
		count.Run++
		r.o.Progress(0, 0, "%s, %s, %s: permutation %d", filepath.Base(spec.Name), s.Engine.Title, level.SQL, count.Run)
		done, err := b.Run(ctx, spec, perm)
		r.o.Progress(0, 0, "")
		if err != nil {
			return errors.Join(err, p.Refused(done))
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		report := done.Report(spec, targetOf(s, level))
		report.Spec, report.Engine, report.Level, report.N = spec.Name, s.Engine.Name, level.History, count.Run
		if report.Broken, err = broken.note(perm, done.Result); err != nil {
			return err
		}
		if err := r.keep(spec, perm, s, &report); err != nil {
			return err
		}
		r.cases = append(r.cases, report)
		p.Hide = !quiet.shows(&report)
		if err := p.Permutation(count.Run, done, report); err != nil {
			return err
		}
		if done.Crashed || done.Hung {
			died = true
			if done.Hung {
				return errHung
			}
			return errDied
		}
	}
	if err := broken.tell(ctx, b, spec, out, &count); err != nil {
		return err
	}
	r.counts = append(r.counts, count)
	p.Hide = r.o.Quiet
	if err := p.End(count.text()); err != nil || !r.o.Quiet {
		return err
	}
	_, err = fmt.Fprintf(r.o.Stdout, "\n%s\n", quiet.text(count.Run))
	return err
}

// runCount says how many of the possible orders were run.
type runCount struct {
	Spec         string   `json:"spec"`
	Engine       string   `json:"engine"`
	Version      string   `json:"version"`
	Level        string   `json:"level"`
	Permutations string   `json:"permutations"`
	Seed         *uint64  `json:"seed,omitempty"`
	Run          int      `json:"run"`
	Possible     *big.Int `json:"interleavings"`

	Invariants []BrokenInvariant `json:"invariants,omitempty"`
}

// text is what people read; nothing where the scenario itself lists what is run.
func (c runCount) text() string {
	n := plural(c.Possible, "interleaving", "interleavings")
	switch {
	case c.Possible.IsInt64() && c.Possible.Int64() == int64(c.Run):
		return fmt.Sprintf("%d of %s", c.Run, n)
	case c.Seed != nil:
		return fmt.Sprintf("%d of %s, %s, seed %d", c.Run, n, c.Permutations, *c.Seed)
	case c.Permutations == string(scenario.KindAll):
		return fmt.Sprintf("%d of %s; the others cannot differ", c.Run, n)
	}
	return ""
}

func plural(n *big.Int, one, many string) string {
	if n.IsInt64() && n.Int64() == 1 {
		return "1 " + one
	}
	return n.String() + " " + many
}

// panel is who judges: whom the flag names, else whom the file names.
func (r *runner) panel(spec *scenario.Spec) panel.Selection {
	list := r.o.Oracles
	if list == "" {
		list = panel.IsolationName
		if named := spec.Oracles(); len(named) > 0 {
			list = strings.Join(named, ",")
		}
	}
	p, err := panel.Select(list)
	p.Named = p.Named && r.o.Oracles != ""
	if err != nil { // the file names an oracle that is not there yet, or misspells it: that is no reason not to execute it
		return panel.Selection{Isolation: true}
	}
	return p
}

// mode is which permutations are run: what the flag says, else what the file says.
func (r *runner) mode(spec *scenario.Spec) scenario.Mode {
	if r.o.Mode.Kind != "" {
		return r.o.Mode
	}
	m, _ := spec.Mode()
	return m
}

// choice gives what generated permutations need: each file has the same random numbers whatever ran before it.
func (r *runner) choice(spec *scenario.Spec, s *backends.Instance, level product.Level, count *runCount) scenario.Choice {
	count.Possible = spec.Interleavings()
	choice := scenario.Choice{}
	switch r.mode(spec).Kind {
	case scenario.KindAll:
		choice.Independent = panel.Independence(spec, s.Engine, level)
	case scenario.KindRandom, scenario.KindPCT:
		seed := r.seed(spec)
		count.Seed = &seed
		choice.Intn = mathrand.New(mathrand.NewPCG(seed, 0)).IntN
	}
	return choice
}

// seed is that of the flag, else the file's, else one that is chosen.
func (r *runner) seed(spec *scenario.Spec) uint64 {
	if r.o.Judging.Seed != 0 {
		return r.o.Judging.Seed
	}
	if seed, given := spec.Seed(); given {
		return seed
	}
	r.o.Judging.Seed = r.o.Choose()
	return r.o.Judging.Seed
}

// question says what a result is the answer to: results are only compared if it is the same.
func (r *runner) question(spec *scenario.Spec, levels []product.Level) string {
	names := make([]string, len(levels))
	for i, l := range levels {
		names[i] = l.History
	}
	mode := r.mode(spec)
	q := fmt.Sprintf("# wirecheck run: levels %s; permutations %s; oracle %s; format %s", strings.Join(names, ", "), mode, r.panel(spec).Names(), r.o.Format)
	if len(r.o.Invariants) > 0 {
		q += fmt.Sprintf("; invariants %v", r.o.Invariants)
	}
	if mode.Kind == scenario.KindRandom || mode.Kind == scenario.KindPCT {
		q += fmt.Sprintf("; seed %d", r.seed(spec))
	}
	return q + "\n"
}

// compare holds what was printed against what is stored, or stores it.
func (r *runner) compare(spec *scenario.Spec, s *backends.Instance, levels []product.Level, out []byte) error {
	if r.o.Format != "text" && r.o.Format != "isolationtester" || len(out) == 0 {
		return nil
	}
	path := strings.TrimSuffix(spec.Name, ".spec") + "." + s.Engine.Name + ".out"
	question := r.question(spec, levels)
	now := append([]byte(question), out...)
	if r.o.Update {
		if err := os.WriteFile(path, now, 0o644); err != nil {
			return fmt.Errorf("store the result: %w", err)
		}
		return nil
	}
	stored, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the stored result: %w", err)
	}
	if !bytes.HasPrefix(stored, []byte(question)) {
		first, _, _ := bytes.Cut(stored, []byte("\n"))
		fmt.Fprintf(r.o.Stderr, "wirecheck: %s was not compared: it is the result of other flags\n  this run: %s  stored:   %s\n", path, question, first)
		return nil
	}
	if line, got, want := firstDifference(now, stored); line > 0 {
		fmt.Fprintf(r.o.Stderr, "wirecheck: %s:%d: the result is another one than the stored one\n  got:  %s\n  want: %s\n(--update stores the new one)\n", path, line, got, want)
		r.cases = append(r.cases, panel.CaseReport{Spec: spec.Name, Engine: s.Engine.Name, Wrong: []string{"another result than in " + path}})
		return nil
	}
	for i := range r.cases { // the stored result has the same mistakes: they are meant
		if c := &r.cases[i]; c.Spec == spec.Name && c.Engine == s.Engine.Name && len(c.Mistakes) > 0 && c.Unknown == c.Mistakes[0] {
			c.Unknown = ""
		}
	}
	return nil
}

// firstDifference gives the first line, from 1, in which two texts differ, and what stands there; 0 if there is none.
func firstDifference(got, want []byte) (line int, g, w string) {
	a, b := strings.Split(string(got), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(a), len(b)) {
		g, w = "(end)", "(end)"
		if i < len(a) {
			g = a[i]
		}
		if i < len(b) {
			w = b[i]
		}
		if g != w {
			return i + 1, g, w
		}
	}
	return 0, "", ""
}

// end prints what concerns all cases.
func (r *runner) end() (c Conclusion, err error) {
	if err := r.summary(); err != nil {
		return c, err
	}
	if len(r.cases) == 0 {
		return c, errors.New("nothing was executed: no scenario is meant for this engine and level")
	}
	for _, cr := range r.cases {
		c.Failed = c.Failed || cr.Crashed || cr.Failed != ""
		c.Found = c.Found || len(cr.Wrong) > 0 || len(cr.Broken) > 0 || !cr.Expects && len(cr.Found) > 0
		c.Unknown = c.Unknown || cr.Unknown != ""
	}
	return c, nil
}

// resetFor is how the database gets back to its beginning between permutations. Where many are run, the setup is executed once, if
// a teardown has nothing to tell.
func (r *runner) resetFor(spec *scenario.Spec, mode scenario.Mode) lab.Reset {
	if mode.Kind == scenario.KindListed && len(spec.Permutations) > 0 || r.o.Format == "isolationtester" {
		return lab.Setup
	}
	if spec.Teardown != nil {
		for statement := range strings.SplitSeq(strings.TrimRight(spec.Teardown.SQL, "; \n"), ";") {
			if first, _, _ := strings.Cut(strings.TrimSpace(statement), " "); !strings.EqualFold(first, "DROP") {
				return lab.Setup
			}
		}
	}
	return lab.Thorough
}
