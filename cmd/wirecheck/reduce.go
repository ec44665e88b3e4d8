package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"wirecheck/backends/engine"
	"wirecheck/lab/hunt"
	"wirecheck/lab/panel"
	"wirecheck/lab/reduce"
	"wirecheck/lab/scenario"
	"wirecheck/lab/suite"
	"wirecheck/product"
)

// reduceFlags are the flags of wirecheck reduce.
type reduceFlags struct {
	engine, oracles, level, class, out string
	permutation                        int
	budget                             budget
	limit                              time.Duration
}

// budget bounds a reduction: by candidates, by time, or by both.
type budget struct {
	tries int
	time  time.Duration
}

// String implements pflag.Value.
func (b *budget) String() string {
	var parts []string
	if b.tries > 0 {
		parts = append(parts, strconv.Itoa(b.tries))
	}
	if b.time > 0 {
		parts = append(parts, b.time.String())
	}
	return strings.Join(parts, ",")
}

// Set implements pflag.Value: "2000", "10m" or "2000,10m".
func (b *budget) Set(text string) error {
	var set budget
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(part)
		if err == nil && n > 0 {
			set.tries = n
			continue
		}
		if set.time, err = time.ParseDuration(part); err != nil || set.time <= 0 {
			return fmt.Errorf("%q is neither a number of candidates (2000) nor a time (10m)", part)
		}
	}
	*b = set
	return nil
}

// Type implements pflag.Value.
func (b *budget) Type() string { return "N|D" }

func newReduceCommand(c *common) *cobra.Command {
	var f reduceFlags
	cmd := &cobra.Command{
		Use:   "reduce CASE --engine ENGINE",
		Short: "Reduce a case to the smallest one that shows the same",
		Long: `reduce takes a scenario in which an oracle finds something and makes it smaller.
It removes sessions, statements, steps, tables, columns, rows, constraints and
settings, and then parts of statements: joins, subqueries, clauses, expressions,
constants, types. It keeps a smaller scenario only if the same oracle finds the
same class of thing by the same rule, three times of three. At last it gives
what is left short names.

The result goes to stdout or to --out. Ctrl-C or the budget ends the reduction,
and reduce keeps the smallest scenario so far.

Exit status: 0 reduced, 2 wirecheck could not do its work, 3 no oracle finds
anything in the case.`,
		Example: `  wirecheck reduce found/wss-tx-001/original.spec --engine tidb:2023-01 --out small.spec`,
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return runReduce(cmd.Context(), c, f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.engine, "engine", "", "where to execute: a name (private server) or a URL (default: what the case names)")
	flags.StringVar(&f.oracles, "oracle", "", "oracles that judge (default: what the case names, else all)")
	ordersFlag(flags, c)
	flags.StringVar(&f.level, "level", "", "isolation level (default: what the case names, else the product's default)")
	flags.StringVar(&f.class, "finding", "", "class or name of the finding to keep, such as wss-tx (default: the first one)")
	flags.StringVar(&f.out, "out", "", "file for the result (default: stdout)")
	flags.IntVar(&f.permutation, "permutation", 1, "which of the listed permutations")
	flags.Var(&f.budget, "budget", "how many candidates to try, how long, or both: 500, 10m, 500,10m (default 2000)")
	flags.DurationVar(&f.limit, "limit", time.Minute, "how long one candidate may take")
	return cmd
}

func runReduce(ctx context.Context, c *common, f reduceFlags, path string) (err error) {
	specs, err := suite.ReadScenarios([]string{path}, c.format, c.stderr)
	if err != nil {
		return err
	}
	spec := specs[0]
	if f.permutation < 1 || f.permutation > len(spec.Permutations) {
		return fmt.Errorf("%s has %d listed permutations: there is no permutation %d", path, len(spec.Permutations), f.permutation)
	}
	p, name, err := f.chosen(spec)
	if err != nil {
		return err
	}
	if seed, ok := spec.Seed(); ok && c.seed == 0 {
		c.seed = seed
	}
	c.random()
	a, err := panel.OpenExecutor(ctx, name, p, c.judging(), f.limit, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close(ctx)) }()
	level, err := f.levelOf(spec, a.Instance.Engine)
	if err != nil {
		return err
	}
	spec = spec.Reproducer(spec.Permutations[f.permutation-1], scenario.Target{Engine: a.Instance.Engine.Name, Level: level.History}, strings.Split(p.Names(), ","), c.seed)
	found, err := a.Find(ctx, spec, level, f.class)
	if err != nil {
		return err
	}
	if found == nil {
		fmt.Fprintf(c.stderr, "wirecheck: nothing is found in %s on %s at %s: there is nothing to keep while it is made smaller\n", path, a.Instance.Engine.Title, level.SQL)
		return exitUnknown
	}
	fmt.Fprintf(c.stderr, "keeping: %s: %s (%s)\n", found.Oracle, found.Title(), found.Class)
	began := time.Now()
	small, progress, err := a.Reduce(ctx, spec, level, found, f.budget.tries, f.budget.time, func(p reduce.Progress) {
		c.progressf("%d sessions, %d steps; %s: %d tried, %d taken", p.Sessions, p.Steps, p.Pass, p.Tried, p.Taken)
	})
	c.clearProgress()
	if err != nil && ctx.Err() == nil && !errors.Is(err, panel.ErrTime) {
		return err
	}
	text, e := small.Print()
	if e != nil {
		return e
	}
	fmt.Fprintf(c.stderr, "%d candidates tried, %d taken in %v: %s\n", progress.Tried, progress.Taken, time.Since(began).Round(time.Second/10), small.Size())
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(c.stderr, "wirecheck: interrupted; this is the best so far")
	case err != nil || progress.Exhausted:
		fmt.Fprintf(c.stderr, "wirecheck: the budget is used up (%s); this is the best so far\n", cmp.Or(f.budget.String(), "2000"))
	}
	if f.out == "" {
		_, err := fmt.Fprint(c.stdout, text)
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.out), 0o700); err != nil {
		return err
	}
	return hunt.ReplaceFile(f.out, []byte(text))
}

// chosen are the oracles and the engine.
func (f *reduceFlags) chosen(spec *scenario.Spec) (panel.Selection, string, error) {
	list := f.oracles
	if list == "" {
		if list = strings.Join(spec.Oracles(), ","); list == "" {
			list = "all"
		}
	}
	p, err := panel.Select(list)
	if err != nil {
		return p, "", err
	}
	name := f.engine
	if name == "" {
		if named := spec.Engines(); len(named) > 0 {
			name, _, _ = strings.Cut(named[0], " ")
		} else {
			return p, "", errors.New("the case names no engine: give --engine")
		}
	}
	return p, name, nil
}

// levelOf is the level: the flag's, the case's first that the product has, or the product's default.
func (f *reduceFlags) levelOf(spec *scenario.Spec, d engine.Descriptor) (product.Level, error) {
	if f.level != "" {
		return panel.FindLevel(d, f.level)
	}
	for _, name := range spec.Levels() {
		if l, err := panel.FindLevel(d, name); err == nil {
			return l, nil
		}
	}
	return panel.FindLevel(d, d.Default)
}
