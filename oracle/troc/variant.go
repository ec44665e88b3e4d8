package troc

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"

	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// variant is a table at another moment than in a candidate's views. rest says that the rows which the statement chooses are as they are there.
type variant struct {
	rel  relation
	rest bool
}

// vary notes what a statement may have met in place of what is in views, as far as it is something else. It reports whether it is.
func (cand *candidate) vary(name string, v variant, why string) bool {
	if v.rel.equal(cand.views[name]) {
		return false
	}
	if cand.variants == nil {
		cand.variants = map[string][]variant{}
	}
	if !slices.ContainsFunc(cand.variants[name], func(o variant) bool { return o.rest == v.rest && o.rel.equal(v.rel) }) {
		cand.variants[name] = append(cand.variants[name], v)
	}
	cand.perhaps = cmp.Or(cand.perhaps, why)
	return true
}

// meanwhile varies the tables of a statement that waited in the middle of several ones, or of the rows that LIMIT counts: it may have read each at
// any moment from then on when it was sent.
func (c *check) meanwhile(w *world, i int, kind product.Kind, r roles, cand *candidate, why string, doubt func(why string, lasting bool)) {
	x := c.txOf[i]
	view, _ := c.p.View(c.txs[x].Level, kind)
	vary := func(sees product.Visibility, names []string) {
		if sees == product.V4 {
			return
		}
		for _, name := range names {
			still, changed := cand.views[name], false
			met := func(rel relation) {
				still = still.common(rel)
				changed = cand.vary(name, variant{rel: rel}, why) || changed
			}
			for at := c.sentAt(i); at <= c.place; at++ {
				met(w.view(name, x, moment{at: at}))
				switch {
				case sees != product.V2:
				case c.since[name] > at:
					doubt(why, true)
				default:
					met(w.dirty(name, x, at))
				}
			}
			if changed { // a scan may pass over what is moved meanwhile
				cand.vary(name, variant{rel: still}, why)
			}
		}
	}
	vary(view.Locked, r.locked)
	vary(view.Read, r.read)
}

// others adds the tables that foreign keys may lead to, as they are at all moments in question. To look at a row for a foreign key is to lock it: what
// is not committed is waited for, and not seen (MySQL manual, 17.7.3; PostgreSQL manual, 13.3.2). Of TiDB that is not documented.
func (c *check) others(w *world, i int, cand *candidate) {
	x := c.txOf[i]
	var moments []moment // the last one first
	for at := c.place; at >= min(c.place, c.sentAt(i)); at-- {
		moments = append(moments, moment{at: at})
	}
	var old []moment
	if sees, _ := c.p.View(c.txs[x].Level, product.Update); sees.Locked == product.V4 || c.p.AfterWait == product.WaitRestarts {
		for _, snap := range w.txs[x].snapshots {
			old = append(old, moment{at: snap})
		}
	}
	if c.p.AfterWait == product.WaitRestarts {
		moments = append(moments, moment{dirty: true})
	}
	q := &c.s.Steps[i].Statement
	targets := q.Targets()
	for _, name := range c.t.names {
		_, own := cand.views[name]
		if own && !reflexive(c, name) || !own && !related(c, q, name) {
			continue
		}
		if !own {
			cand.views[name] = w.view(name, x, moments[0])
		}
		itself := slices.ContainsFunc(targets, func(u statement.TableUse) bool {
			known, ok := c.t.known(u)
			return (ok || c.features.views[u.Name] == name) && (!ok || known == name)
		})
		met := moments
		if own || foreignSnapshot(c, x) == nil {
			met = append(slices.Clip(moments), old...)
		}
		for _, m := range met {
			cand.vary(name, variant{w.view(name, x, m), itself}, "foreign keys look at table "+name+", which others write")
		}
	}
}

// foreignSnapshot is the bug by which a product follows foreign keys in a transaction's snapshot, where its writes are to read what is committed; nil if none is
// known.
func foreignSnapshot(c *check, x int) *product.Cause {
	if sees, _ := c.p.View(c.txs[x].Level, product.Update); sees.Locked == product.V4 {
		return nil
	}
	return c.p.Cause(product.ForeignSnapshot)
}

// behind is a write as it goes if it follows its foreign keys in a snapshot of its transaction; false if there is no such bug, or it makes no difference.
func behind(c *check, w *world, i, snap int, cand *candidate) (other candidate, found bool) {
	x := c.txOf[i]
	q := &c.s.Steps[i].Statement
	other = *cand
	other.views, other.cause, other.snaps = maps.Clone(cand.views), foreignSnapshot(c, x), nil
	if other.cause == nil || cand.cause != nil {
		return other, false
	}
	used := map[string]bool{}
	for _, u := range q.Tables {
		if name, ok := c.t.known(u); ok {
			used[name] = true
		}
	}
	for _, name := range c.t.names {
		if rel := w.view(name, x, moment{at: snap}); !used[name] && related(c, q, name) && !rel.equal(cand.views[name]) {
			other.views[name], found = rel, true
		}
	}
	return other, found
}

// looksBack says why a write that waited may have been refused, or not: it goes on with the rows that it had found, and its foreign keys look at those that
// others have brought to the same table meanwhile (PostgreSQL manual, 13.2.1). No view of one moment shows that.
func looksBack(c *check, w *world, i int, cand *candidate, refused bool) string {
	x, sent := c.txOf[i], moment{at: c.sentAt(i)}
	for _, name := range c.t.names {
		_, used := cand.views[name]
		if used && refused && c.s.Steps[i].Waited && reflexive(c, name) && !w.view(name, x, sent).equal(w.view(name, x, moment{at: c.place})) {
			return "it waited, and foreign keys lead from table " + name + ", which others wrote meanwhile, back to it"
		}
	}
	return ""
}

// reflexive reports whether a foreign key may lead from a table to itself.
func reflexive(c *check, table string) bool {
	return c.features.keys && (len(c.keys) == 0 || slices.ContainsFunc(c.keys, func(r schedule.Reference) bool {
		return r.Parts || r.Child == table && r.Parent == table
	}))
}

// related reports whether foreign keys may lead from a statement to a table that it does not name: an INSERT looks for the rows that its own refer to, a
// DELETE for those that refer to its rows, and the actions which these set off go on from there.
func related(c *check, q *statement.Statement, table string) bool {
	if len(c.keys) == 0 || slices.ContainsFunc(c.keys, func(r schedule.Reference) bool { return r.Parts }) {
		return true
	}
	inserts, deletes := q.Verb == "insert" && q.Insert != nil && !q.Insert.Conflict, q.Verb == "delete"
	for _, u := range q.Targets() {
		target, ok := c.t.known(u)
		if !ok {
			return true
		}
		reached := schedule.Acting(c.keys, target, false)
		for _, r := range c.keys {
			up := r.Parent == table && (r.Child == target && !deletes || !inserts && slices.Contains(reached, r.Child))
			down := r.Child == table && !inserts && (r.Parent == target || slices.Contains(reached, r.Parent))
			if up || down {
				return true
			}
		}
	}
	return false
}

// mostVariants is how many combinations of what a statement may have met are tried.
const mostVariants = 16

// settle finds out whether it makes a difference which of its variants a statement met.
func (t *theater) settle(ctx context.Context, st *schedule.Step, cand *candidate, tr *trial, locks bool) error {
	if cand.uncertain != "" {
		return nil
	}
	combinations, differs, unclear := []map[string]relation{cand.views}, false, false
	for _, name := range slices.Sorted(maps.Keys(cand.variants)) {
		for _, views := range slices.Clip(combinations) {
			for _, v := range cand.variants[name] {
				views := maps.Clone(views)
				if views[name] = v.rel; v.rest {
					views[name] = cand.views[name].with(v.rel, tr.addressed[name])
					unclear = unclear || tr.addressed == nil && st.Statement.Insert == nil
				}
				combinations = append(combinations, views)
			}
		}
		if unclear = unclear || len(combinations) > mostVariants; unclear {
			break
		}
	}
	for n := 1; n < len(combinations) && !differs && !unclear; n++ {
		other, err := t.try(ctx, st, combinations[n], locks)
		if err != nil && !errors.Is(err, errNoView) {
			return err
		}
		differs = err != nil || !sameAnswer(&tr.answer, &other.answer) || !reflect.DeepEqual(tr.effect(), other.effect())
	}
	if differs || unclear {
		cand.uncertain, cand.lasting = cand.perhaps, true
	}
	if differs {
		cand.guesses = combinations
	}
	return nil
}

// guessed settles a candidate, and follows what a write did if it met one of the views that it may have met: a world that explains all that comes later leaves nothing
// undecided. None of them must, since a statement may have met parts of several ones: the world in which nothing is certain lives on beside them.
func guessed(ctx context.Context, c *check, from *world, i int, kind product.Kind, r roles, cand *candidate, tr *trial, locks bool) (alive []*world, err error) {
	st := &c.s.Steps[i]
	if err := c.t.settle(ctx, st, cand, tr, locks); err != nil || !kind.Writes() || st.Answer.Err != nil {
		return nil, err
	}
	for _, views := range cand.guesses {
		guess := *cand
		guess.views, guess.variants, guess.guesses, guess.uncertain, guess.lasting, guess.guess = views, nil, nil, "", false, true
		list, _, err := c.attempt(ctx, from, i, kind, r, &guess)
		if err != nil {
			return nil, err
		}
		alive = append(alive, list...)
	}
	return distinct(alive), nil
}
