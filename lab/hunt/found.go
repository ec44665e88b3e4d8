package hunt

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"wirecheck/history/prose"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// reductionName stands for reductions where times stand by oracle.
const reductionName = "reduction"

// seldom says which of many findings alike are reduced: the first three, and then ever fewer.
func seldom(n int) bool { return n <= 3 || n&(n-1) == 0 }

// reducedShare is the most that reductions may have taken of a hunt's time, as one in so many, for a finding to be reduced that is like one before it: where
// definitions are slow, little time would be left for bugs that are rarer.
const reducedShare = 4

// worth reports whether the nth of findings alike is reduced. Without a limit of time, time does not matter.
func (h *hunter) worth(n int) bool {
	return seldom(n) && (n == 1 || h.o.Reduction == 0 || h.reduced <= time.Since(h.started)/reducedShare)
}

// focused is the case with nothing but the statement that differs, or else with the writes around it too, if that shows the finding: of a
// long list of queries, one is enough most of the time.
func (h *hunter) focused(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (*scenario.Spec, error) {
	if f.Difference == nil || f.Difference.Step == "" || !panel.AsksQueries(f.Oracle) && f.Name != oracle.NameHang {
		return spec, nil
	}
	late := map[string]bool{} // the steps behind one that hangs were not executed
	for i, steps := 1, spec.Permutations[0].Steps; f.Name == oracle.NameHang && i < len(steps); i++ {
		late[steps[i].Step.Name] = late[steps[i-1].Step.Name] || steps[i-1].Step.Name == f.Difference.Step
	}
	for _, keep := range []func(*scenario.Step) bool{
		func(st *scenario.Step) bool { return st.Name == f.Difference.Step },
		func(st *scenario.Step) bool {
			return st.Name == f.Difference.Step || !reads.MatchString(st.SQL) && !late[st.Name]
		},
	} {
		candidate := only(spec, keep)
		shows, err := h.Shows(ctx, candidate, level, f, spec)
		if err != nil && ctx.Err() == nil {
			return nil, err
		}
		if shows {
			return candidate, nil
		}
	}
	return spec, nil
}

// reads are statements that change nothing.
var reads = regexp.MustCompile(`(?i)^\s*(SELECT|WITH|\()`)

// only is a case with one permutation without the steps that are not kept.
func only(spec *scenario.Spec, keep func(*scenario.Step) bool) *scenario.Spec {
	out := *spec
	p := &scenario.Permutation{}
	steps := map[*scenario.Step]*scenario.Step{}
	out.Sessions = nil
	for i, s := range spec.Sessions {
		session := *s
		session.Steps = nil
		for _, st := range s.Steps {
			if keep(st) {
				kept := *st
				kept.Session, kept.Index = i, len(session.Steps)
				session.Steps = append(session.Steps, &kept)
				steps[st] = &kept
			}
		}
		out.Sessions = append(out.Sessions, &session)
	}
	for _, ps := range spec.Permutations[0].Steps {
		if kept := steps[ps.Step]; kept != nil {
			p.Steps = append(p.Steps, scenario.PermutationStep{Step: kept})
		}
	}
	out.Permutations = []*scenario.Permutation{p}
	return &out
}

// alike counts how many findings there were that are probably the same bug, this one included. What single queries show is compared
// with the reduced bugs; of what schedules show, little can be told before it is reduced.
func (h *hunter) alike(ctx context.Context, spec *scenario.Spec, f *oracle.Finding) (int, error) {
	key := coarseSignature(f)
	if panel.AsksQueries(f.Oracle) {
		i := slices.IndexFunc(h.store.kept, func(b *Bug) bool { return b.Seen > 0 && b.explains(spec, f) })
		if i < 0 {
			return 1, nil
		}
		key = h.store.kept[i].Signature
	}
	h.store.state.Reduced[key]++
	h.told++
	return h.store.shared.nth(ctx, key, fmt.Sprintf("%d.%d", h.at, h.told))
}

// found counts a finding and, if it may be a new one, makes it small and keeps it.
func (h *hunter) found(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) error {
	s := &h.store.state
	switch d := f.Difference; {
	case f.Kind == oracle.KindPermitted:
		s.Permitted[fmt.Sprintf("%s: %s", f.Class, d.Cause)]++
		return nil
	case d != nil && d.Flaky:
		return h.keepFlaky(ctx, spec, level, f)
	}
	s.Findings++
	if known, err := h.store.knows(ctx, f); known {
		h.unnoted(err)
		return nil
	}
	if told, err := h.alsoTold(ctx, spec, level, f); err != nil || told {
		return err
	}
	if n, err := h.alike(ctx, spec, f); err != nil || !h.worth(n) {
		return err
	}
	begun := time.Now()
	defer func() {
		s.Spent[reductionName] += time.Since(begun)
		h.reduced += time.Since(begun)
		clear(h.Spent)
	}()
	small, cut, err := h.smallest(ctx, spec, level, f)
	if err != nil {
		return err
	}
	evidence, seen := f, (*schedule.Schedule)(nil)
	for ctx.Err() == nil {
		// Without it the finding is kept as it was first seen. If it is the server that fails, the next case tells.
		var e *oracle.Finding
		if e, seen, err = h.evidence(ctx, small, cut, level, f); err != nil {
			h.Options.Log.Warn().Err(err).Msg("the smallest case could not be executed once more")
			break
		}
		if e != nil {
			evidence = e
			break
		}
		if !evident(f) {
			break
		}
		if small == spec { // it was there again each time in one database, and is not in a fresh one
			return h.keepFlaky(ctx, spec, level, f)
		}
		small, cut = spec, true
	}
	if cut {
		if i := slices.IndexFunc(h.store.kept, func(b *Bug) bool { return b.shownBy(small, evidence) }); i >= 0 {
			h.unnoted(h.store.also(ctx, h.store.kept[i], string(f.Class)))
			return nil
		}
	}
	bug, err := h.store.keep(context.WithoutCancel(ctx), h, small, spec, level, evidence, seen)
	if bug != nil {
		h.here = append(h.here, reducedBug{bug, small})
	}
	return err
}

// smallest makes a case small. cut says that it could be smaller.
func (h *hunter) smallest(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (small *scenario.Spec, cut bool, err error) {
	tries, hangs := h.o.Tries, f.Name == oracle.NameHang
	if hangs || f.Name == oracle.NameCrash {
		tries /= 10 // each of them starts a server
	}
	small = spec
	reduce := func() error {
		begin, err := h.focused(ctx, spec, level, f)
		if err != nil {
			return err
		}
		least, progress, err := h.Reduce(ctx, begin, level, f, tries, h.o.Reduction, h.reducing)
		small, cut = least, err != nil || progress.Exhausted
		if ctx.Err() != nil || errors.Is(err, panel.ErrTime) {
			return nil
		}
		return err
	}
	if !hangs {
		err := reduce()
		return small, cut, err
	}
	if err := h.Hurried(ctx, reduce); err != nil || small == spec || ctx.Err() != nil {
		return spec, true, err
	}
	if still, err := h.Shows(ctx, small, level, f, spec); err != nil || !still { // it was the machine that was slow
		return spec, true, err
	}
	return small, cut, nil
}

// reducedBug is a bug that the case under way showed, and how small the case became.
type reducedBug struct {
	bug   *Bug
	small *scenario.Spec
}

// alsoTold reports whether the finding is there in what became of the case for another finding: then another oracle, or another rule of
// the same one, tells the same bug, and it is noted with that.
func (h *hunter) alsoTold(ctx context.Context, spec *scenario.Spec, level product.Level, f *oracle.Finding) (bool, error) {
	for _, r := range h.here {
		shows, err := h.Shows(ctx, r.small, level, f, spec)
		if err != nil {
			return false, err
		}
		if shows {
			h.unnoted(h.store.also(ctx, r.bug, string(f.Class)))
			return true, nil
		}
	}
	return false, nil
}

// unnoted logs that it could not be written which other oracle tells a bug: it is printed at the end all the same.
func (h *hunter) unnoted(err error) {
	if err != nil {
		h.Options.Log.Error().Err(err).Msg("that another oracle tells a bug, too, could not be written")
	}
}

// evident reports whether evidence finds a finding again: one of an oracle that executes a case, and no crash.
func evident(f *oracle.Finding) bool {
	return f.Difference != nil && f.Name != oracle.NameCrash && f.Name != oracle.NameHang && f.Class != oracle.Crash
}

// stepNames finds what the generator calls steps.
var stepNames = regexp.MustCompile(` in (s\d+_\d+)\b|\b(s\d+_\d+) of session\b`)

// spelled puts the steps' statements in place of their names, which the script of a report does not have.
func spelled(line string, spec *scenario.Spec) string {
	return stepNames.ReplaceAllStringFunc(line, func(m string) string {
		for _, s := range spec.Sessions {
			for _, st := range s.Steps {
				sql := prose.Line(st.SQL, prose.Width)
				switch m {
				case " in " + st.Name:
					return " (" + sql + ")"
				case st.Name + " of session":
					return sql + " of session"
				}
			}
		}
		return m
	})
}

// named gives a violation without a cause, of a smallest case, the cause that other oracles name there, if it is the same one for all of them: a case that is
// smallest shows one bug.
func named(g *oracle.Finding, rulings []panel.Ruling) {
	var cause *oracle.Finding
	for i := range rulings {
		for k := range rulings[i].Findings {
			switch f := &rulings[i].Findings[k]; {
			case f.Kind != oracle.KindViolation || f.Difference == nil || f.Difference.Cause == "" || f.Difference.Flaky:
			case cause != nil && cause.Difference.Cause != f.Difference.Cause:
				return
			default:
				cause = f
			}
		}
	}
	if d := g.Difference; cause != nil && d.Cause == "" && g.Kind == oracle.KindViolation {
		d.Cause, d.Reason, g.Source = cause.Difference.Cause, cause.Difference.Reason, cause.Source
		g.ID = g.Fingerprint()
	}
}

// evidence is the finding as the smallest case, or one that could be smaller (cut), shows it, and the execution that showed it; nil if it does not any more.
func (h *hunter) evidence(ctx context.Context, small *scenario.Spec, cut bool, level product.Level, f *oracle.Finding) (*oracle.Finding, *schedule.Schedule, error) {
	if f.Name == oracle.NameCrash || f.Name == oracle.NameHang {
		return nil, nil, nil
	}
	ctx, cancel := h.Bounded(ctx)
	defer cancel()
	b, err := h.At(ctx, level)
	if err != nil {
		return nil, nil, err
	}
	scheduled := f.Difference != nil && !panel.AsksQueries(f.Oracle) // others may explain it by what the vendor documents, or know the bug by name
	defer b.Only(func(j panel.Judge) bool { return j.Name == f.Oracle || scheduled && !j.Single }, f.Oracle == panel.IsolationName)()
	b.Forget() // the folder's case is executed from its setup
	d, err := b.Run(ctx, small, small.Permutations[0])
	if err != nil {
		return nil, nil, err
	}
	s, err := b.Schedule(small, d.Result)
	if err != nil {
		return nil, nil, err
	}
	for _, v := range d.Rulings {
		for i := range v.Findings {
			if g := &v.Findings[i]; g.Oracle == f.Oracle && g.Class == f.Class && g.Name == f.Name && g.Kind == f.Kind {
				if g.Difference != nil {
					g.Difference.Reason = spelled(g.Difference.Reason, small)
					if !cut { // a case that could be smaller may show two bugs
						named(g, d.Rulings)
					}
				}
				return g, s, nil
			}
		}
	}
	for i := range d.Isolation.Findings {
		if g := &d.Isolation.Findings[i]; f.Oracle == panel.IsolationName && g.Class == f.Class && g.Name == f.Name && g.Promised == f.Promised {
			g.Edges = slices.Clone(g.Edges)
			for n, line := range d.Dependencies(small, g) {
				g.Edges[n].Text = spelled(line, small)
			}
			return g, s, nil
		}
	}
	return nil, s, nil
}
