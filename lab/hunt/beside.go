package hunt

import (
	"context"
	"errors"
	"slices"
	"time"

	"wirecheck/answer"
	"wirecheck/lab/generate"
	"wirecheck/lab/panel"
	"wirecheck/product"
)

// early is a list of queries that was executed before its turn, beside another one on the same generated database, in databases of its own: with one
// alone a processor is idle for much of the time. What came of it counts at its turn.
type early struct {
	at    int
	panel *panel.Panel
	d     *panel.Judgement
	err   error
	spent map[string]time.Duration
}

// wrong reports whether a case may have to do with the end of the server, or with time. Which of two cases is to blame nobody knows.
func wrong(d *panel.Judgement, err error) bool {
	var refused *answer.Error
	return err != nil && !errors.As(err, &refused) || err == nil && (d.Crashed || d.Hung || d.Trouble != nil)
}

// beside is the list of queries that is executed beside case i; -1: none is. Lists alone go together, where no others judge: they touch nothing that the
// databases of a server share, and nobody looks at their locks.
func (h *hunter) beside(i int) int {
	next := i + h.every()
	if h.Instance.Server == nil || h.every() > apart || len(h.invariants) > 0 || !h.asks(i) || next >= h.last {
		return -1
	}
	return next
}

// execute executes a case and has it judged, if it was not before its turn. restore is called when nothing is asked of the panel any more.
func (h *hunter) execute(ctx context.Context, i int, k *generate.Case, level product.Level) (b *panel.Panel, d *panel.Judgement, restore func(), err error) {
	if e := h.early; e != nil && e.at == i {
		h.early = nil
		for oracle, spent := range e.spent {
			h.Spent[oracle] += spent
		}
		return e.panel, e.d, func() {}, e.err
	}
	next := h.beside(i)
	if next < 0 {
		return h.run(ctx, i, k, level)
	}
	other, _, err := h.generated(next)
	if err != nil { // it is told at its turn
		return h.run(ctx, i, k, level)
	}
	e := &early{at: next, spent: map[string]time.Duration{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		within, cancel := h.Bounded(ctx)
		defer cancel()
		if e.panel, e.err = h.Beside(within, level, e.spent); e.err == nil {
			e.d, e.err = e.panel.Run(within, other.Spec, other.Spec.Permutations[0])
		}
	}()
	b, d, restore, err = h.run(ctx, i, k, level)
	<-done
	switch {
	case ctx.Err() != nil:
		return b, d, restore, err
	case !wrong(d, err) && !wrong(e.d, e.err):
		h.early = e
		return b, d, restore, err
	}
	if again := h.Restart(ctx); again != nil || !wrong(d, err) {
		return b, d, restore, errors.Join(err, again)
	}
	restore()
	return h.run(ctx, i, k, level)
}

// run executes a case and has it judged.
func (h *hunter) run(ctx context.Context, i int, k *generate.Case, level product.Level) (b *panel.Panel, d *panel.Judgement, restore func(), err error) {
	within, cancel := h.Bounded(ctx)
	defer cancel()
	d, restore = &panel.Judgement{}, func() {}
	if b, err = h.At(within, level); err != nil {
		return b, d, restore, err
	}
	asks := h.asks(i)
	restore = b.Only(func(j panel.Judge) bool { return j.Single || !asks }, !asks && h.watched())
	b.Abreast = asks // generated queries touch nothing outside of their database
	d, err = b.Run(within, k.Spec, k.Spec.Permutations[0])
	return b, d, restore, err
}

// apart is every how many cases there is a list where only oracles of single queries judge.
const apart = 2

// every says every how many cases of a group there is a list of queries: a list takes about as long as a case for all of the other oracles.
func (h *hunter) every() int {
	if !h.Selection.Isolation && !slices.ContainsFunc(h.Selection.Judges, func(j panel.Judge) bool { return !j.Single }) {
		return apart
	}
	return 5
}
