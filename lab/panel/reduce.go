package panel

import (
	"context"
	"errors"
	"strings"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/lab/reduce"
	"wirecheck/lab/reduce/mysql"
	"wirecheck/lab/reduce/postgres"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// ErrTime ends a reduction whose time is over.
var ErrTime = errors.New("the time for a reduction is over")

// Reduce makes a case smaller as long as it shows the same finding, within a time, if that is not 0. The time ends between two
// candidates: in the middle of one it would cost connections.
func (a *Executor) Reduce(
	ctx context.Context, spec *scenario.Spec, level product.Level, found *oracle.Finding, tries int, within time.Duration, progress func(reduce.Progress),
) (*scenario.Spec, reduce.Progress, error) {
	confirm := 0
	if found.Name == oracle.NameHang || AsksQueries(found.Oracle) { // each time takes the limit of a case; and who asks single queries waits for nobody
		confirm = 1
	}
	a.stuck = reducedStuckLimit
	defer func() { a.stuck = StuckLimit }()
	return a.smaller(ctx, spec, reduce.Options{Tries: tries, Confirm: confirm, Progress: progress}, within, func(ctx context.Context, candidate *scenario.Spec) (bool, error) {
		return a.Shows(ctx, candidate, level, found, spec)
	})
}

// Smaller makes a case smaller as long as a test holds of it, in the same way.
func (a *Executor) Smaller(
	ctx context.Context, spec *scenario.Spec, tries int, within time.Duration, progress func(reduce.Progress), test reduce.Test,
) (*scenario.Spec, reduce.Progress, error) {
	return a.smaller(ctx, spec, reduce.Options{Tries: tries, Progress: progress}, within, test)
}

func (a *Executor) smaller(ctx context.Context, spec *scenario.Spec, o reduce.Options, within time.Duration, test reduce.Test) (*scenario.Spec, reduce.Progress, error) {
	began := time.Now()
	describe := Describer(a.Instance.Engine)
	o.Split = func(sql string) []string {
		statements, err := describe(sql)
		if err != nil {
			return []string{sql}
		}
		parts := make([]string, len(statements))
		for i := range statements {
			parts[i] = statements[i].Text
		}
		return parts
	}
	switch a.Instance.Engine.Protocol { // others have no parser that is ours
	case engine.ProtocolPostgres:
		o.Simpler = postgres.Simpler
	case engine.ProtocolMySQL:
		o.Simpler = mysql.New()
	}
	return reduce.Reduce(ctx, spec, func(ctx context.Context, candidate *scenario.Spec) (bool, error) {
		if within > 0 && time.Since(began) > within {
			return false, ErrTime
		}
		return test(ctx, candidate)
	}, o)
}

// Find executes a case and gives a finding of it: of a class or name, or the first one that is more than permitted. It is nil if
// there is none.
func (a *Executor) Find(ctx context.Context, spec *scenario.Spec, level product.Level, class string) (*oracle.Finding, error) {
	b, err := a.At(ctx, level)
	if err != nil {
		return nil, err
	}
	d, err := b.Run(ctx, spec, spec.Permutations[0])
	if err != nil {
		return nil, err
	}
	var all []oracle.Finding
	for _, v := range d.Rulings {
		all = append(all, v.Findings...)
	}
	all = append(all, d.Isolation.Findings...)
	for i := range all {
		f := &all[i]
		if class != "" && !strings.EqualFold(class, string(f.Class)) && !strings.EqualFold(class, f.Title()) {
			continue
		}
		if class == "" && f.Kind == oracle.KindPermitted || f.Difference != nil && f.Difference.Flaky {
			continue
		}
		if d.Crashed || d.Hung {
			return f, a.Restart(ctx)
		}
		return f, nil
	}
	return nil, nil
}
