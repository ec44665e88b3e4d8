package troc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// attempt executes a candidate and compares (Troc, III-E4 and III-F).
func (c *check) attempt(ctx context.Context, from *world, i int, kind product.Kind, r roles, cand *candidate) (alive []*world, died []death, err error) {
	st := &c.s.Steps[i]
	q := &st.Statement
	x := c.txOf[i]
	mode := modeOf(c.p, c.txs[x].Level, kind, q)
	tr, err := onViews(ctx, c, st, kind, mode, r, cand)
	switch impossible := errors.Is(err, errNoView); {
	case cand.guess && (impossible || err == nil && differ(st, &tr.answer) != ""):
		return nil, nil, nil
	case impossible:
		return viewless(ctx, c, from, i, kind, r, cand)
	case err != nil:
		return nil, nil, err
	}
	guesses, err := guessed(ctx, c, from, i, kind, r, cand, tr, mode != product.LockNone)
	if err != nil {
		return nil, nil, err
	}
	defer func() { alive = append(alive, guesses...) }()
	if tr, err = c.unique(ctx, from, i, kind, r, cand, tr); err != nil {
		return nil, nil, err
	}
	w := from.clone()
	c.snap(w, x, i, cand.snaps, certainlyReads(st))
	if cand.cause != nil {
		w.causes = append(w.causes, note{cause: cand.cause, step: i})
	}
	w.trail = append(w.trail, fmt.Sprintf("%s: %s -- on %s", c.name(x), q.Text, describeView(cand.views, 8)))
	dead := func(m *mismatch, next *world) ([]*world, []death, error) {
		return nil, []death{{mismatch: *m, causes: w.causes, place: c.place, world: next, writes: w.writes}}, nil
	}
	if name := differ(st, &tr.answer); name != "" {
		if cand.uncertain == "" {
			cand.uncertain = cmp.Or(tr.broken(), c.s.ByRows(c.keys, q, st.Answer.Err, tr.answer.Err), looksBack(c, w, i, cand, name == oracle.NameError))
		}
		explained, err := c.explained(ctx, w, i, kind, r, tr)
		switch {
		case err != nil:
			return nil, nil, err
		case explained:
			return []*world{w}, nil, nil
		case cand.uncertain != "":
			leave(c, w, "%s was not compared: %s", st.Name, cand.uncertain)
			maps.DeleteFunc(w.likely, func(name string, _ bool) bool { _, seen := cand.views[name]; return seen }) // they may be otherwise
			if kind.Writes() && st.Answer.Err == nil {
				c.taint(w, q, x, st.Name+": "+cand.uncertain)
			}
			return []*world{w}, nil, alone(ctx, c, w, i)
		}
		m := &mismatch{step: i, name: name, rule: cand.rule, want: about(&tr.answer, kind), got: about(&st.Answer, kind), views: cand.views, trail: w.trail}
		if name == oracle.NameResult && (q.Verb == "select" || q.Returning) {
			d := diffRows(st.Answer.Columns, tr.answer.Rows, st.Answer.Rows)
			if !d.Equal() {
				m.want = schedule.SideOf(tr.answer.Columns, d.Missing, len(tr.answer.Rows)-len(d.Missing))
				m.got = schedule.SideOf(st.Answer.Columns, d.Extra, len(st.Answer.Rows)-len(d.Extra))
			}
		}
		return dead(m, w)
	}
	if cand.uncertain == "" {
		m, err := c.refusable(ctx, w, i, kind, mode, r, cand, tr)
		if err != nil {
			return nil, nil, err
		}
		if m != nil {
			return dead(m, nil)
		}
	}
	if st.Answer.Err != nil {
		return []*world{w}, nil, nil
	}
	if cand.cause == nil && cand.uncertain == "" {
		if err := c.unseen(ctx, w, i, kind, r, tr); err != nil {
			return nil, nil, err
		}
	}
	alive = []*world{w}
	if kind.Writes() {
		if tr, err = c.met(ctx, w, i, r, cand, tr); err != nil {
			return nil, nil, err
		}
		if alive, err = c.gone(ctx, c.apply(w, i, r, cand, tr), i, kind, r); err != nil {
			return nil, nil, err
		}
		if m, err := c.intrudes(ctx, alive[0], i, r); err != nil || m != nil && cand.uncertain == "" {
			if err != nil {
				return nil, nil, err
			}
			return dead(m, nil)
		}
	}
	for _, w := range alive {
		c.hold(w, i, kind, mode, r, tr)
		if kind.Writes() && cand.lasting {
			suspect(c, w, q, x, st.Name+": "+cand.uncertain)
		}
	}
	return alive, nil, nil
}

// broken says that the stage failed, which tells nothing of what should have come; empty: it did not.
func (tr *trial) broken() string {
	if tr.reason != answer.ReasonInternal {
		return ""
	}
	return "alone on its view it ends in an internal error: " + tr.answer.Err.Text()
}

// suspect says that what a statement wrote is not certain, though its answer is as expected.
func suspect(c *check, w *world, q *statement.Statement, x int, why string) {
	firm := maps.Clone(w.taint)
	for name := range w.likely {
		delete(firm, name)
	}
	c.taint(w, q, x, why)
	for name := range w.taint {
		if _, is := firm[name]; !is {
			w.likely[name] = true
		}
	}
}

// viewless follows a statement whose view breaks the tables' own constraints, so that it cannot be executed on it. Of a SELECT that gives each row by
// itself, what it should give of each row of the view alone is known all the same: a row of the answer that none of them gives is wrong.
func viewless(ctx context.Context, c *check, from *world, i int, kind product.Kind, r roles, cand *candidate) (alive []*world, died []death, err error) {
	st := &c.s.Steps[i]
	q := &st.Statement
	w := from.clone()
	c.snap(w, c.txOf[i], i, nil, false)
	if kind.Writes() && st.Answer.Err == nil {
		c.taint(w, q, c.txOf[i], st.Name+": "+errNoView.Error())
	}
	if !kind.Writes() && st.Answer.Err == nil && cand.uncertain == "" && cand.variants == nil && plain(q, r) && !q.Distinct && !q.Window && !q.Limit {
		rows, known, err := c.t.rowByRow(ctx, st, cand.views)
		if err != nil {
			return nil, nil, err
		}
		if d := diffRows(st.Answer.Columns, rows, st.Answer.Rows); known && len(d.Extra) > 0 {
			return nil, []death{{mismatch: mismatch{
				step: i, name: oracle.NameResult, rule: cand.rule + "; of each row of that view alone", want: schedule.SideOf(st.Answer.Columns, d.Missing, len(rows)-len(d.Missing)),
				got: schedule.SideOf(st.Answer.Columns, d.Extra, len(st.Answer.Rows)-len(d.Extra)), trail: w.trail,
			}, causes: w.causes, place: c.place, world: w, writes: w.writes}}, nil
		}
	}
	leave(c, w, "%s was not compared: %v", st.Name, errNoView)
	return []*world{w}, nil, alone(ctx, c, w, i)
}

// rowByRow executes a SELECT on each row of its views alone. It is false if that cannot be done, or fails.
func (t *theater) rowByRow(ctx context.Context, st *schedule.Step, views map[string]relation) (rows [][]answer.Value, known bool, err error) {
	for name, rel := range views {
		for _, one := range rel {
			tr, err := t.try(ctx, st, map[string]relation{name: {one}}, false)
			switch {
			case errors.Is(err, errNoView):
				return nil, false, nil
			case err != nil:
				return nil, false, err
			case tr.answer.Err != nil:
				return nil, false, nil
			}
			rows = append(rows, tr.answer.Rows...)
		}
	}
	return rows, true, nil
}

// unique executes a write once more where a key decided: a snapshot does not show with which rows a key must be unique. Rows that the
// statement chooses stay as the snapshot has them, the others are as they are now.
func (c *check) unique(ctx context.Context, w *world, i int, kind product.Kind, r roles, cand *candidate, tr *trial) (*trial, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	s, _ := c.p.View(c.txs[x].Level, kind)
	if s.Locked != product.V4 || kind != product.Update || c.txs[x].Explicit && c.p.Optimistic(c.txs[x].Level, true) || len(r.locked) != 1 || tr.addressed == nil || !isDuplicate(tr.answer.Err) && !isDuplicate(st.Answer.Err) {
		return tr, nil
	}
	name := r.locked[0]
	chosen := tr.addressed[name]
	views := maps.Clone(cand.views)
	views[name] = cand.views[name].with(w.view(name, x, moment{at: c.place}), chosen)
	other, err := c.t.try(ctx, st, views, true)
	if errors.Is(err, errNoView) {
		cand.uncertain, cand.lasting = "whether its keys are unique cannot be told from its snapshot", true
		return tr, nil
	}
	if err != nil {
		return nil, err
	}
	if again := slices.Clone(other.addressed[name]); again == nil || len(again) != len(chosen) || slices.ContainsFunc(again, func(id int) bool { return !slices.Contains(chosen, id) }) {
		cand.uncertain, cand.lasting = "whether its keys are unique cannot be told from its snapshot", true
		return tr, nil
	}
	return other, nil
}

// explained reports whether a refusal has a reason outside of the statement's view: a key that a row has which the snapshot does not
// show.
func (c *check) explained(ctx context.Context, w *world, i int, kind product.Kind, r roles, tr *trial) (bool, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	s, _ := c.p.View(c.txs[x].Level, kind)
	if s.Locked != product.V4 || !kind.Writes() {
		return false, nil
	}
	if c.p.DuplicatesAtCommit && isDuplicate(tr.answer.Err) && st.Answer.Err == nil {
		c.taint(w, &st.Statement, x, st.Name+": an optimistic transaction may look for duplicates at COMMIT only")
		return true, nil
	}
	if !isDuplicate(st.Answer.Err) {
		return false, nil
	}
	views := map[string]relation{}
	for _, name := range append(slices.Clone(r.locked), r.read...) {
		views[name] = w.view(name, x, moment{at: c.place})
	}
	other, err := c.t.try(ctx, st, views, false)
	if errors.Is(err, errNoView) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return other.answer.Err != nil && other.answer.Err.Code == st.Answer.Err.Code, nil
}

// apply puts what a statement did into the history (Troc, III-E4).
func (c *check) apply(w *world, i int, r roles, cand *candidate, tr *trial) []*world {
	x := c.txOf[i]
	w.writes = append(w.writes, written{i, cand.views, tr})
	// InnoDB and TiDB keep rows under a key: a change of it removes one record and makes another one, and a row with the key of a deleted one
	// is a newer version of that record. Where it is not certain which key that is, moved is the world in which it is the one that differs.
	moved := w.clone()
	perhaps := false
	record := func(name string, values []answer.Value) {
		for _, to := range []*world{w, moved} {
			id, certain, found := c.record(to, name, values)
			perhaps = perhaps || found && !certain
			if !found || to == w && !certain {
				id = to.next
				to.next++
			}
			to.add(name, id, version{tx: x, step: i, values: values})
		}
	}
	for _, name := range c.t.names {
		for _, t := range tr.changed[name] {
			before, _ := cand.views[name].find(t.id)
			primary, maybe := c.features.rekeys(name, c.t.columns[name], before.values, t.values)
			clustered := c.p.Clustered != product.No && (primary || maybe)
			perhaps = perhaps || clustered && (maybe && !primary || c.p.Clustered == product.Perhaps)
			for _, to := range []*world{w, moved} {
				if clustered && (to == moved || primary && c.p.Clustered == product.Yes) {
					to.add(name, t.id, version{tx: x, step: i, deleted: true})
					to.add(name, to.next, version{tx: x, step: i, values: t.values})
					to.next++
					continue
				}
				to.add(name, t.id, version{tx: x, step: i, values: t.values})
			}
		}
		for _, to := range []*world{w, moved} {
			for _, id := range tr.deleted[name] {
				to.add(name, id, version{tx: x, step: i, deleted: true})
			}
		}
		for _, values := range tr.added[name] {
			record(name, values)
		}
	}
	worlds := c.unchanged(w, i, r, tr)
	if perhaps {
		worlds = append(worlds, c.unchanged(moved, i, r, tr)...)
	}
	return worlds
}

// record finds the deleted row of which a new one with these values is a newer version, since it has the same key.
func (c *check) record(w *world, table string, values []answer.Value) (id int, certain, found bool) {
	if c.p.Clustered == product.No {
		return 0, false, false
	}
	for _, r := range w.tables[table] {
		at := len(r.versions) - 1
		if !r.versions[at].deleted {
			continue
		}
		for at >= 0 && r.versions[at].deleted {
			at--
		}
		if at < 0 {
			continue
		}
		same, maybe := c.features.sameKey(table, c.t.columns[table], r.versions[at].values, values)
		if same || maybe {
			return r.id, same && c.p.Clustered == product.Yes, true
		}
	}
	return 0, false, false
}

// unchanged gives rows that were addressed and stayed as they were a new version all the same: they are the transaction's own writes
// (Troc, III-E4). Where it makes a difference that engines do not write them, that is another world.
func (c *check) unchanged(w *world, i int, r roles, tr *trial) []*world {
	x := c.txOf[i]
	noop := w.clone()
	matters, added := false, false
	for _, name := range r.locked {
		for _, id := range tr.addressed[name] {
			if slices.Contains(tr.deleted[name], id) || slices.ContainsFunc(tr.changed[name], func(t tuple) bool { return t.id == id }) {
				continue
			}
			at := slices.IndexFunc(w.tables[name], func(r row) bool { return r.id == id })
			if at < 0 {
				continue
			}
			now := w.latest(&w.tables[name][at], x, moment{at: c.place})
			if now == nil || now.deleted || now.tx == x {
				continue
			}
			for _, snap := range w.txs[x].snapshots {
				old := w.latest(&w.tables[name][at], x, moment{at: snap})
				matters = matters || old == nil || old.deleted || !answer.SameRow(old.values, now.values)
			}
			w.add(name, id, version{tx: x, step: i, values: now.values, same: true})
			added = true
		}
	}
	// Whether it counts when conflicts are looked for at COMMIT is not documented. IGNORE leaves a row as it is also because of a key, without a write.
	if w.txs[x].lockless || c.s.Steps[i].Statement.Ignore {
		if added {
			return []*world{w, noop}
		}
		return []*world{w}
	}
	cause := c.p.Cause(product.NoopUpdate)
	if s, _ := c.p.View(c.txs[x].Level, product.Select); !matters || cause == nil || s.Read != product.V4 {
		return []*world{w}
	}
	noop.causes = append(noop.causes, note{cause: cause, step: i})
	return []*world{w, noop}
}

// hold notes the locks that a statement has got, if its transaction goes on.
func (c *check) hold(w *world, i int, kind product.Kind, mode product.Mode, r roles, tr *trial) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	if mode == product.LockNone || !c.txs[x].Explicit || st.After != answer.Open || kind == product.Insert {
		return
	}
	if c.p.CoveringLocks && mode == product.LockShare && !whole(&st.Statement) {
		return
	}
	if tr.addressed == nil {
		return
	}
	for _, name := range r.locked {
		for _, id := range tr.addressed[name] {
			w.locks = append(w.locks, lock{tx: x, step: i, table: name, row: id, mode: mode})
		}
	}
	line, ok := c.p.Lock(c.txs[x].Level, kind)
	if ok && line.Predicate && !st.Statement.Limit && len(r.locked) == 1 && len(r.read) == 0 && c.txs[x].Level != product.Snapshot {
		w.ranges = append(w.ranges, predicate{x, i})
	}
}
