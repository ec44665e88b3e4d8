package hunt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
	"wirecheck/product"
)

// Invariant is what a run of a hunt has to say of one of the user's invariants.
type Invariant struct {
	Invariant string `json:"invariant"`
	Judged    int    `json:"judged"`            // cases behind which it was looked at
	Broken    int    `json:"broken"`            // of these, those that broke it each time, and of which no serial order does
	Alone     int    `json:"alone,omitempty"`   // those of which a serial order breaks it as well: the statements do not keep it
	Unsure    int    `json:"unsure,omitempty"`  // those that did not break it each time, or of which not all serial orders could be tried
	Refused   int    `json:"refused,omitempty"` // cases whose database the query is not for
	Why       string `json:"why,omitempty"`     // of the first of these
	Level     string `json:"level,omitempty"`   // of the smallest case that breaks it
	Result    string `json:"result,omitempty"`  // what the query gave there
	Spec      string `json:"spec,omitempty"`    // its file
	Steps     int    `json:"steps,omitempty"`
	Engine    string `json:"engine,omitempty"`
}

// breaks looks at the invariants behind a case.
func (h *hunter) breaks(ctx context.Context, b *panel.Panel, spec *scenario.Spec, level product.Level, r *lab.Result) error {
	if r.Trouble != nil || r.Crashed || len(r.Invariants) == 0 {
		return nil
	}
	for i, reading := range r.Invariants {
		inv := h.invariants[i]
		why, err := reading.Broken()
		switch {
		case err != nil: // random databases have other tables and columns
			if inv.Refused++; inv.Refused == 1 {
				inv.Why = err.Error()
			}
			continue
		case why == "":
			inv.Judged++
			continue
		}
		inv.Judged++
		broken, alone, err := h.confirmed(ctx, b, spec, i, panel.Attempts)
		switch {
		case err != nil:
			return err
		case alone:
			inv.Alone++
		case !broken:
			inv.Unsure++
		default:
			if inv.Broken++; seldom(inv.Broken) {
				if err := h.keepBroken(ctx, inv, i, spec, level, why); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// confirmed executes a case again, so many times, and its sessions one after the other. alone says that a serial order breaks the invariant as well.
func (h *hunter) confirmed(ctx context.Context, b *panel.Panel, spec *scenario.Spec, i, times int) (broken, alone bool, err error) {
	for range times {
		r, err := b.Again(ctx, spec, spec.Permutations[0])
		if err != nil || r.Trouble != nil || r.Crashed {
			return false, false, err
		}
		if why, err := r.Invariants[i].Broken(); err != nil || why == "" {
			return false, false, nil
		}
	}
	orders, untried, err := b.Alone(ctx, spec)
	return untried == "" && err == nil && orders[i] == "", orders[i] != "", err
}

// keepBroken makes a case smaller as long as it breaks an invariant, and keeps it if none is kept that is as small.
func (h *hunter) keepBroken(ctx context.Context, inv *Invariant, i int, spec *scenario.Spec, level product.Level, why string) error {
	small, _, err := h.Smaller(ctx, spec, h.o.Tries, h.o.Reduction, h.reducing, func(ctx context.Context, candidate *scenario.Spec) (bool, error) {
		b, err := h.At(ctx, level)
		if err != nil {
			return false, err
		}
		broken, _, err := h.confirmed(ctx, b, candidate, i, 1)
		if refused := (*answer.Error)(nil); errors.As(err, &refused) { // the candidate's setup
			return false, nil
		}
		return broken, err
	})
	if err != nil && !errors.Is(err, panel.ErrTime) {
		return err
	}
	steps := len(small.Permutations[0].Steps)
	if inv.Spec != "" && inv.Steps <= steps {
		return nil
	}
	b, err := h.At(ctx, level)
	if err != nil {
		return err
	}
	if r, err := b.Again(ctx, small, small.Permutations[0]); err != nil {
		return err
	} else if is, err := r.Invariants[i].Broken(); err == nil && is != "" {
		why = is
	}
	name := fmt.Sprintf("invariant-%d", i+1)
	inv.Level, inv.Result, inv.Steps, inv.Engine = level.History, why, steps, h.o.Engine
	inv.Spec = filepath.Join(h.store.dir, name, "case.spec")
	h.store.write(pendingFolder{name: name, files: map[string]string{"case.spec": h.reproducer(small, level, "none"), "original.spec": h.reproducer(spec, level, "none")}})
	return nil
}

// text tells of an invariant.
func (v *Invariant) text(w io.Writer) {
	if v.Broken > 0 {
		fmt.Fprintf(w, "invariant broken in %d of %s: %s\n  the smallest, at %s: %s; no serial order of its sessions breaks it\n", v.Broken, prose.Count(v.Judged, "case"), v.Result, v.Level, prose.Count(v.Steps, "step"))
		fmt.Fprintf(w, "  again: wirecheck run %s --engine %s --invariant %s\n", v.Spec, v.Engine, "'"+strings.ReplaceAll(v.Invariant, "'", `'\''`)+"'")
	} else {
		fmt.Fprintf(w, "invariant: %s: held in %d of %s\n", v.Invariant, v.Judged-v.Alone-v.Unsure, prose.Count(v.Judged, "case"))
	}
	if v.Alone > 0 {
		fmt.Fprintf(w, "  broken by a serial order as well, so by the statements themselves: %s\n", prose.Count(v.Alone, "case"))
	}
	if v.Unsure > 0 {
		fmt.Fprintf(w, "  not broken each time, or with serial orders that could not be tried: %s\n", prose.Count(v.Unsure, "case"))
	}
	if v.Refused > 0 {
		fmt.Fprintf(w, "  could not be judged: %s; the first: %s\n", prose.Count(v.Refused, "case"), v.Why)
	}
}
