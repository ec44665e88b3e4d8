package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"wirecheck/backends/engine"
	"wirecheck/lab"
	dialect "wirecheck/rewrite/mysql"
	"wirecheck/scenario"
)

// runFlags are the flags of wirecheck run.
type runFlags struct {
	engine, permutations, oracles string
	levels                        []string
	update                        bool
	mode                          scenario.Mode // of permutations, where it is given
}

func newRunCommand(c *common) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SCENARIO...",
		Short: "Execute concurrent scenarios, and say what happened and what is wrong with it",
		Long: `run executes scenarios on a real server, deterministically: the steps are submitted one by one in the order of each
permutation; who waits for whom is asked of the server's lock views. It prints the schedule as it really happened, what
each step returned, the final tables, and the verdict of the oracles.

A SCENARIO is a file in PostgreSQL's isolation spec format, as its own isolationtester reads it, for any engine, with
#wirecheck: lines for what that format has no words for (docs/FORMATS.md, "Scenario files").

ENGINE is a bare name (postgres, mariadb, ...), which starts a private throwaway server, or a URL of a server on which
the user may create databases. Scenarios only touch a database made for them, and it is dropped at the end.

The result has nothing in it that differs from run to run. With --update it is stored beside the scenario; from then on
a run that prints something else fails.

Exit status: 0 as expected, or nothing found where nothing is expected; 1 something found that was not expected, or
another result than the stored one; 2 wirecheck could not do its work; 3 it could not decide.`,
		Example: `  wirecheck run write-skew.spec --engine postgres --level "repeatable read"
  wirecheck run testdata/hermitage/*.spec --engine mariadb --permutations all
  wirecheck run deadlock.spec --engine postgres://postgres@127.0.0.1:5432 --format isolationtester`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("permutations") {
				mode, err := scenario.ParsePermutations(f.permutations)
				if err != nil {
					return err
				}
				f.mode = mode
			}
			return runScenarios(cmd.Context(), c, f, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "where to execute: a name (private server) or a URL; default: what the scenario names, else postgres")
	flags.StringSliceVar(&f.levels, "level", nil, "isolation levels, as in 'repeatable read'; default: what the scenario names, else the product's default")
	flags.StringVar(&f.oracles, "oracle", "isolation", "oracles that judge: isolation, none")
	flags.StringVar(&f.permutations, "permutations", "listed", "which orders: listed, all, random:N, pct:N,D")
	flags.BoolVar(&f.update, "update", false, "store the result beside the scenario")
	return cmd
}

// runScenarios executes the files, engine by engine.
func runScenarios(ctx context.Context, c *common, f runFlags, paths []string) (err error) {
	if err := c.needFormat("text", "json", "junit", "isolationtester"); err != nil {
		return err
	}
	if f.oracles != "isolation" && f.oracles != "none" {
		return fmt.Errorf("unknown oracle %q: known are isolation, none", f.oracles)
	}
	specs, err := readSpecs(paths, c.stderr)
	if err != nil {
		return err
	}
	r := &runner{c: c, f: f, sites: map[string]*site{}}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, spec := range specs {
		if err := r.spec(ctx, spec); err != nil {
			return err
		}
	}
	return r.end()
}

// readSpecs reads all files before anything is executed, and says all that is wrong with them.
func readSpecs(paths []string, warnings io.Writer) ([]*scenario.Spec, error) {
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
			fmt.Fprintln(warnings, "wirecheck: warning:", w)
		}
		specs = append(specs, spec)
	}
	return specs, errors.Join(errs...)
}

// runner executes scenarios one after the other. Servers are started once.
type runner struct {
	c     *common
	f     runFlags
	sites map[string]*site
	cases []caseReport
}

func (r *runner) close() error {
	var errs []error
	for _, s := range r.sites {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// site gives the server for an engine.
func (r *runner) site(ctx context.Context, name string) (*site, error) {
	if s := r.sites[name]; s != nil {
		return s, nil
	}
	s, err := openSite(ctx, name)
	if err != nil {
		return nil, err
	}
	r.sites[name] = s
	return s, nil
}

// spec executes one file on the engines and at the levels that are asked for.
func (r *runner) spec(ctx context.Context, spec *scenario.Spec) error {
	engines := []string{r.f.engine}
	if r.f.engine == "" {
		engines = []string{"postgres"}
		if named := spec.Engines(); len(named) > 0 {
			engines = named
		}
	}
	for _, name := range engines {
		s, err := r.site(ctx, name)
		if err != nil {
			return err
		}
		var out bytes.Buffer
		if err := r.onSite(ctx, spec, s, &out); err != nil {
			return err
		}
		if err := r.emit(spec, s, out.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// levels are those at which a scenario is executed on a product.
func (r *runner) levels(spec *scenario.Spec, d engine.Descriptor) ([]engine.Level, error) {
	names := r.f.levels
	if len(names) == 0 {
		names = spec.Levels()
	}
	var levels []engine.Level
	for _, name := range names {
		l, err := findLevel(d, name)
		if err != nil && len(r.f.levels) == 0 {
			continue // the scenario names levels of several products
		}
		if err != nil {
			return nil, err
		}
		levels = append(levels, l)
	}
	if len(names) > 0 {
		return levels, nil
	}
	l, err := findLevel(d, d.Default)
	return []engine.Level{l}, err
}

func (r *runner) onSite(ctx context.Context, spec *scenario.Spec, s *site, out *bytes.Buffer) error {
	levels, err := r.levels(spec, s.engine)
	if err != nil {
		return err
	}
	for _, level := range levels {
		if !spec.For(nil, r.targetOf(s, level)) && r.f.engine == "" {
			continue
		}
		if err := r.atLevel(ctx, spec, s, level, out); err != nil {
			return fmt.Errorf("%s on %s at %s: %w", spec.Name, s.engine.Title, level.SQL, err)
		}
	}
	return nil
}

func (r *runner) targetOf(s *site, l engine.Level) scenario.Target {
	return scenario.Target{Engine: s.engine.Name, Version: s.version, Level: l.History}
}

// atLevel executes all permutations of a file at one level.
func (r *runner) atLevel(ctx context.Context, spec *scenario.Spec, s *site, level engine.Level, out *bytes.Buffer) (err error) {
	b, err := openBench(ctx, r.c, s, level, r.f.oracles == "isolation")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close(ctx)) }()
	p := printer{c: r.c, out: out, spec: spec, site: s, level: level}
	p.begin()
	n := 0
	for perm := range spec.Orders(r.mode(spec), r.choice(spec, s, level)) {
		if !spec.For(perm, r.targetOf(s, level)) {
			continue
		}
		n++
		if r.c.progress() {
			fmt.Fprintf(r.c.stderr, "\r\x1b[K%s, %s, %s: permutation %d", filepath.Base(spec.Name), s.engine.Title, level.SQL, n)
		}
		done, err := b.run(ctx, spec, perm)
		if err != nil {
			return err
		}
		report := judge(spec, r.targetOf(s, level), done)
		report.Spec, report.Engine, report.Level, report.N = spec.Name, s.engine.Name, level.History, n
		r.cases = append(r.cases, report)
		if err := p.permutation(n, done, report); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	if r.c.progress() {
		fmt.Fprint(r.c.stderr, "\r\x1b[K")
	}
	return nil
}

// mode is which permutations are run: what the flag says, else what the file says.
func (r *runner) mode(spec *scenario.Spec) scenario.Mode {
	if r.f.mode.Kind != "" {
		return r.f.mode
	}
	m, _ := spec.Mode()
	return m
}

// choice gives what generated permutations need: each file has the same random numbers whatever ran before it.
func (r *runner) choice(spec *scenario.Spec, s *site, level engine.Level) scenario.Choice {
	mode := r.mode(spec)
	choice := scenario.Choice{Independent: independence(spec, s.engine, level)}
	if mode.Kind == scenario.KindRandom || mode.Kind == scenario.KindPCT {
		seed, given := spec.Seed()
		if given && r.c.seed == 0 {
			r.c.seed = seed
		}
		choice.Intn = r.c.random().IntN
	}
	return choice
}

// emit prints what a file's execution said, and compares it with what is stored.
func (r *runner) emit(spec *scenario.Spec, s *site, out []byte) error {
	if _, err := r.c.stdout.Write(out); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if r.c.format != "text" && r.c.format != "isolationtester" {
		return nil
	}
	path := strings.TrimSuffix(spec.Name, ".spec") + "." + s.engine.Name + ".out"
	if r.f.update {
		if err := os.WriteFile(path, out, 0o644); err != nil {
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
	if line, got, want := firstDifference(out, stored); line > 0 && sameQuestion(out, stored) {
		fmt.Fprintf(r.c.stderr, "wirecheck: %s:%d: the result is another one than the stored one\n  got:  %s\n  want: %s\n(--update stores the new one)\n", path, line, got, want)
		r.cases = append(r.cases, caseReport{Spec: spec.Name, Engine: s.engine.Name, Wrong: []string{"another result than in " + path}})
	}
	return nil
}

// sameQuestion reports whether two results were printed for the same levels and permutations: their first lines are alike.
func sameQuestion(a, b []byte) bool {
	first, _, _ := bytes.Cut(a, []byte("\n"))
	stored, _, _ := bytes.Cut(b, []byte("\n"))
	return bytes.Equal(first, stored)
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

// end prints what concerns all cases, and gives the exit status.
func (r *runner) end() error {
	if err := r.summary(); err != nil {
		return err
	}
	found, unknown := false, false
	for _, cr := range r.cases {
		if cr.Crashed {
			return exitFailed
		}
		found = found || len(cr.Wrong) > 0 || !cr.Expects && len(cr.Found) > 0
		unknown = unknown || cr.Unknown != ""
	}
	switch {
	case found:
		return exitFound
	case unknown:
		return exitUnknown
	case len(r.cases) == 0:
		return errors.New("nothing was executed: no scenario is meant for this engine and level")
	}
	return nil
}

// bench is a lab with what it needs: a database of its own and, if it is to be judged, a proxy that sees what happens.
type bench struct {
	lab  *lab.Lab
	lens *lens
	labs *engine.Labs
}

// done is a case that was executed.
type done struct {
	*lab.Result
	judged
	judge bool
}

func openBench(ctx context.Context, c *common, s *site, level engine.Level, judge bool) (_ *bench, err error) {
	b := &bench{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close(ctx))
		}
	}()
	if b.labs, err = engine.OpenLabs(ctx, s.engine, s.target); err != nil {
		return nil, err
	}
	for _, name := range b.labs.Swept {
		c.log.Info().Str("database", name).Msg("removed a database that an earlier run had left behind")
	}
	target, err := b.labs.Create(ctx)
	if err != nil {
		return nil, err
	}
	config := lab.Config{Backend: s.engine, Target: target, Side: target, Level: level}
	if judge {
		if b.lens, err = openLens(ctx, c, s); err != nil {
			return nil, err
		}
		config.Target, config.Hidden = b.lens.through(target), dialect.HiddenColumn
		if s.engine.Protocol == engine.ProtocolMySQL {
			config.After = "DO 0"
		}
	}
	b.lab, err = lab.Open(ctx, config)
	return b, err
}

// run executes and judges one permutation.
func (b *bench) run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation) (*done, error) {
	prepared := func() {}
	if b.lens != nil {
		prepared = b.lens.live.restart // what the setup did is not judged
	}
	r, err := b.lab.Run(ctx, spec, p, prepared)
	if err != nil {
		return nil, err
	}
	d := &done{Result: r}
	if b.lens != nil {
		d.judged, d.judge = b.lens.live.judgement(), true
		d.coverage.UnknownWriters = 0 // what nobody is known to have written is the setup's
	}
	return d, nil
}

func (b *bench) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if b.lab != nil {
		errs = append(errs, b.lab.Close())
	}
	if b.lens != nil {
		errs = append(errs, b.lens.stop())
	}
	if b.labs != nil {
		errs = append(errs, b.labs.Close(ctx))
	}
	return errors.Join(errs...)
}
