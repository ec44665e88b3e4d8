package suite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"wirecheck/history/prose"
	"wirecheck/lab"
	"wirecheck/lab/panel"
	"wirecheck/lab/scenario"
)

// BrokenInvariant is an invariant that permutations of one scenario at one level break.
type BrokenInvariant struct {
	Invariant string `json:"invariant"`
	Broken    int    `json:"broken"`           // permutations
	Shortest  string `json:"shortest"`         // the one with the fewest switches between the sessions
	Result    string `json:"result"`           // what the query gave there
	Serial    string `json:"serial,omitempty"` // a serial order that breaks it as well
	Untried   string `json:"untried,omitempty"`
	switches  int
}

// breaks are those of one scenario at one level.
type breaks struct {
	o    *Options
	list []*BrokenInvariant // by the number of the invariant; nil: it holds
}

// note adds what a permutation broke.
func (k *breaks) note(p *scenario.Permutation, r *lab.Result) (texts []string, err error) {
	broken, err := r.Broken()
	if err != nil {
		return nil, err
	}
	for i, inv := range k.o.Invariants {
		why, ok := broken[i]
		if !ok {
			continue
		}
		texts = append(texts, why)
		b := k.list[i]
		if b == nil {
			b = &BrokenInvariant{Invariant: inv.String()}
			k.list[i] = b
		}
		b.Broken++
		if n := p.Switches(); b.Broken == 1 || n < b.switches {
			b.Shortest, b.Result, b.switches = p.String(), why, n
		}
	}
	return texts, nil
}

// blame executes the sessions one after the other, in every order: what breaks then as well is not the interleaving's fault.
func (k *breaks) blame(ctx context.Context, b *panel.Panel, spec *scenario.Spec) ([]BrokenInvariant, error) {
	found := slices.DeleteFunc(slices.Clone(k.list), func(b *BrokenInvariant) bool { return b == nil })
	if len(found) == 0 {
		return nil, nil
	}
	orders, untried, err := b.Alone(ctx, spec)
	if err != nil {
		return nil, err
	}
	for i, order := range orders {
		if k.list[i] != nil {
			k.list[i].Serial = order
		}
	}
	var out []BrokenInvariant
	for _, f := range found {
		if f.Serial == "" {
			f.Untried = untried
		}
		out = append(out, *f)
	}
	return out, nil
}

// text is what people read of a broken invariant.
func (b *BrokenInvariant) text(run int) string {
	why := "no serial order of the sessions breaks it: the interleaving does"
	switch {
	case b.Serial != "":
		why = fmt.Sprintf("the serial order %s breaks it as well: the statements do not keep it, whatever the interleaving", b.Serial)
	case b.Untried != "":
		why = "whether a serial order breaks it as well is not known: " + b.Untried
	}
	return fmt.Sprintf("invariant broken in %d of %s: %s\n  shortest: %s\n  %s\n", b.Broken, prose.Count(run, "permutation"), b.Result, b.Shortest, why)
}

// tell ends the invariants of one scenario at one level.
func (k *breaks) tell(ctx context.Context, b *panel.Panel, spec *scenario.Spec, out *bytes.Buffer, count *runCount) (err error) {
	if count.Invariants, err = k.blame(ctx, b, spec); err != nil {
		return errors.Join(errors.New("execute the serial orders"), err)
	}
	if k.o.Format != "text" {
		return nil
	}
	for i := range count.Invariants {
		text := "\n" + count.Invariants[i].text(count.Run)
		out.WriteString(text)
		if k.o.Quiet { // which shows nothing of out
			fmt.Fprint(k.o.Stdout, text)
		}
	}
	return nil
}
