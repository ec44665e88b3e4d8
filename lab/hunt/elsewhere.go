package hunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// Elsewhere is what the smallest case of a bug shows on another engine.
type Elsewhere struct {
	Engine  string `json:"engine"` // as the user named it
	Version string `json:"version,omitempty"`
	Level   string `json:"level,omitempty"`
	Says    string `json:"says"`
}

// What a case says on another engine, if it is no more than a word.
const (
	shownThere    = "shown"
	notShownThere = "not shown"
)

// elsewhere executes a bug's smallest case on the other engines, each at the level of that name, or else at its default.
func (h *hunter) elsewhere(ctx context.Context, small *scenario.Spec, level product.Level, f *oracle.Finding) (list []Elsewhere) {
	for _, name := range h.o.Also {
		e := Elsewhere{Engine: name}
		if err := h.tryOn(ctx, &e, small, level, f); err != nil {
			if ctx.Err() != nil {
				return list
			}
			e.Says = "not tried: " + err.Error()
		}
		list = append(list, e)
	}
	return list
}

// tryOn executes a case on one other engine. The server is started for the first bug, and again after a case that ended it.
func (h *hunter) tryOn(ctx context.Context, e *Elsewhere, small *scenario.Spec, level product.Level, f *oracle.Finding) error {
	a := h.others[e.Engine]
	if a == nil {
		var err error
		if a, err = panel.OpenExecutor(ctx, e.Engine, h.Selection, h.Options, h.o.Limit, !h.o.Limits.Defines()); err != nil {
			return err
		}
		if h.others == nil {
			h.others = map[string]*panel.Executor{}
		}
		h.others[e.Engine] = a
	}
	e.Version = a.Instance.Version
	there, err := panel.FindLevel(a.Instance.Engine, level.History)
	if err != nil {
		there, err = panel.FindLevel(a.Instance.Engine, a.Instance.Engine.Default)
	}
	if err != nil {
		return err
	}
	e.Level = there.History
	within, cancel := a.Bounded(ctx)
	defer cancel()
	b, err := a.At(within, there)
	if err != nil {
		return err
	}
	defer b.Only(func(j panel.Judge) bool { return j.Name == f.Oracle }, f.Oracle == panel.IsolationName)()
	b.Forget()
	d, err := b.Run(within, small, small.Permutations[0])
	var refused *answer.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &refused):
		e.Says = "its SQL is refused: " + prose.Line(refused.Text(), prose.Width)
	case err != nil, d.Crashed, d.Hung:
		fate := a.Fate(ctx, d, err)
		if err := a.Restart(ctx); err != nil {
			return err
		}
		switch e.Says = fate; {
		case f.Name == fate:
			e.Says = shownThere
		case fate == "":
			e.Says = fmt.Sprintf("not judged: %v", errors.Join(err, d.Trouble))
		}
	default:
		e.Says = says(small, there, a.Instance.Engine.Name, d, f)
	}
	return nil
}

// says is what a judged case says of a finding: it is there, its vendor permits it, or why it is not.
func says(small *scenario.Spec, level product.Level, engineName string, d *panel.Judgement, f *oracle.Finding) string {
	permitted, unknown := "", ""
	all := d.Isolation.Findings
	for _, v := range d.Rulings {
		if unknown == "" && v.Unknown != "" {
			unknown = "unknown: " + v.Unknown
		}
		all = append(slices.Clip(all), v.Findings...)
	}
	for i := range all {
		switch g := &all[i]; {
		case g.Class != f.Class || g.Difference != nil && g.Difference.Flaky:
		case g.Kind == oracle.KindPermitted:
			permitted = "permitted: " + g.Difference.Cause
		case g.Kind == f.Kind:
			return shownThere
		}
	}
	r := d.Report(small, scenario.Target{Engine: engineName, Level: level.History})
	switch {
	case permitted != "":
		return permitted
	case len(r.Mistakes) > 0:
		return "its SQL is refused: " + r.Mistakes[0]
	case unknown != "":
		return unknown
	}
	return notShownThere
}

// closeOthers ends the servers of the other engines.
func (h *hunter) closeOthers(ctx context.Context) error {
	var errs []error
	for _, name := range h.o.Also {
		if a := h.others[name]; a != nil {
			errs = append(errs, a.Close(ctx))
		}
	}
	return errors.Join(errs...)
}

// printElsewhere writes one table of who shows what.
func (r *Report) printElsewhere(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, b := range r.Bugs {
		if len(b.Elsewhere) == 0 {
			continue
		}
		if i == slices.IndexFunc(r.Bugs, func(b *Bug) bool { return len(b.Elsewhere) > 0 }) {
			fmt.Fprintln(table, "bug\ton\tversion\tlevel\t")
		}
		for _, e := range b.Elsewhere {
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", b.Folder, e.Engine, e.Version, e.Level, e.Says)
		}
	}
	return table.Flush()
}
