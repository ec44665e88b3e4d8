package wss

import (
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// guarded reports whether nothing can come into the range of a write at a level until its transaction ends (next-key locks).
func guarded(p *product.Product, level string) bool {
	l, ok := p.Lock(level, product.Update)
	return ok && l.Predicate
}

// optimistic reports whether a transaction looks for conflicts at COMMIT only.
func (m *scene) optimistic(transaction int) bool {
	t := &m.transactions[transaction]
	return m.dbms.Optimistic(t.Level, t.Explicit)
}

// view is which versions a write sees.
func (m *scene) view(n int) product.View {
	kind := map[string]product.Kind{"update": product.Update, "delete": product.Delete}
	k, ok := kind[m.s.Steps[n].Statement.Verb]
	if !ok {
		k = product.Insert
	}
	v, _ := m.dbms.View(m.transactions[m.of[n]].Level, k)
	return v
}

// seesSnapshot reports whether a write sees what its transaction's snapshot has.
func (m *scene) seesSnapshot(n int) bool {
	v, _ := m.dbms.View(m.transactions[m.of[n]].Level, product.Update)
	return v.Locked == product.V4
}

// views are the moments whose committed state a write can read without locks.
//
//   - Where a write evaluates its condition again after a wait: when it, or its transaction's snapshot, began.
//   - Where it restarts: in an optimistic transaction at BEGIN; else when it began, or begins again after a wait ("current read").
//   - Where its scan goes on: rows that it writes as they are in the end; what it reads besides without locks also as it was when the statement began,
//     and at READ UNCOMMITTED what is not committed. Above READ COMMITTED what a write reads is locked, and is the latest.
func (m *scene) views(n int) []view {
	step, t := &m.s.Steps[n], &m.transactions[m.of[n]]
	switch m.dbms.AfterWait {
	case product.WaitRechecks:
		if m.seesSnapshot(n) {
			return []view{{moment: m.snapshot(m.of[n])}}
		}
		return []view{{moment: step.Sent}}
	case product.WaitRestarts:
		if m.optimistic(m.of[n]) {
			return []view{{moment: t.Begin}}
		}
		out := []view{}
		for _, at := range m.moments(n) {
			out = append(out, view{moment: at})
		}
		return out
	}
	out := []view{{moment: step.Done}}
	if !guarded(m.dbms, t.Level) {
		out = append(out, view{moment: step.Sent})
	}
	if m.view(n).Read == product.V2 {
		out = append(out, view{step.Done, true}, view{step.Sent, true})
	}
	return out
}

// unlocked are the views that a statement can have of what it reads besides its target. They are those of the target, and where subqueries may be read
// from the transaction's snapshot, that of BEGIN.
func (m *scene) unlocked(n int) []view {
	views, t := m.views(n), &m.transactions[m.of[n]]
	if plain, _ := m.dbms.View(t.Level, product.Select); m.dbms.SubqueryEither && plain.Read == product.V4 && !m.seesSnapshot(n) && t.Explicit {
		views = append(views, view{moment: t.Begin})
	}
	return views
}

// snapshot is when a transaction's first statement was sent that reads or writes rows.
func (m *scene) snapshot(t int) int {
	for _, n := range m.transactions[t].Steps {
		if st := &m.s.Steps[n].Statement; st.Control.Verb == statement.ControlNone && st.Verb != "set" {
			return m.s.Steps[n].Sent
		}
	}
	return m.transactions[t].Begin
}

// moments are the moments between a statement's beginning and its end at which the committed state can be another one, its end first.
func (m *scene) moments(n int) []int {
	step := &m.s.Steps[n]
	out := []int{step.Done}
	if !step.Waited {
		return out
	}
	for i := len(m.ends) - 1; i >= 0; i-- {
		if m.ends[i] > step.Sent && m.ends[i] < step.Done {
			out = append(out, m.ends[i])
		}
	}
	return append(out, step.Sent)
}

// decide gives what an UPDATE or DELETE can have done with a row of its target. None: whatever it did, it must have waited, or failed.
func (m *model) decide(s store, r *row, i, n int, scan view, match func(*version) (effect, error)) ([]choice, error) {
	step := &m.s.Steps[n]
	now, held := m.visible(r, n, step.Done), m.pending(r, n, step.Done)
	if m.dbms.AfterWait == product.WaitGoesOn {
		return m.decideLocking(s, r, i, n, now, held, match)
	}
	optimistic := m.optimistic(m.of[n])
	seen := m.visible(r, n, scan.moment)
	free := held == nil && (now == seen || m.dbms.AfterWait == product.WaitRestarts && r.unchanged(seen, now))
	e, err := match(seen)
	switch {
	case err != nil:
		return nil, err
	case !e.addressed:
		return []choice{{row: i}}, nil
	case (optimistic || free && m.dbms.Optimistic(m.transactions[m.of[n]].Level, true)) && e.values != nil && answer.SameRow(e.values, seen.values):
		// Nothing is written, and whether it counts when optimistic transactions look for conflicts is not documented, nor in autocommit.
		unwritten := e
		unwritten.same = true
		return []choice{{row: i, effect: e}, {row: i, effect: unwritten}}, nil
	case optimistic || free:
		return []choice{{row: i, effect: e}}, nil // an optimistic transaction's conflicts are found at its COMMIT (model.commits)
	case held != nil || m.dbms.AfterWait != product.WaitRechecks || m.seesSnapshot(n):
		return nil, nil // it must wait; TiDB begins again with the latest state; PostgreSQL refuses it (manual, 13.2.2)
	}
	// PostgreSQL manual, 13.2.1: the search condition is evaluated again on the updated version of a row that was found. Where it is a join with
	// other rows, also by EXISTS or IN, it may be with the same ones as before only (src/backend/executor/README, EvalPlanQual).
	if e, err = match(now); err != nil {
		return nil, err
	}
	out := []choice{{row: i, effect: e}}
	if st := &step.Statement; e.addressed && (st.HasSubquery || len(st.Reads()) > 1) {
		out = append(out, choice{row: i})
	}
	return out, nil
}

// unchanged reports whether the versions from one to a later one all have the same values. TiDB writes nothing where an UPDATE changes nothing
// (pingcap/tidb#28212): it locks the row, and who waited for the lock meets no conflict and goes on with what it has read.
func (r *row) unchanged(from, to *version) bool {
	within := false
	for i := range r.versions {
		v := &r.versions[i]
		within = within || v == from
		if within && (v.values == nil || from.values == nil || !answer.SameRow(v.values, from.values)) {
			return false
		}
		if v == to {
			return within
		}
	}
	return false
}

// decideLocking is decide by InnoDB's rules: a write locks each row that it scans and decides on the row's latest version. At READ
// COMMITTED and below (MySQL manual, 17.7.2.1) an UPDATE decides on the last committed version whether a locked row matches, and waits
// only then (semi-consistent read); locks on rows that do not match are released; there are no gap locks.
func (m *model) decideLocking(s store, r *row, i, n int, now, held *version, match func(*version) (effect, error)) (out []choice, err error) {
	step, t := &m.s.Steps[n], &m.transactions[m.of[n]]
	e, err := match(now)
	if err != nil {
		return nil, err
	}
	loose := !guarded(m.dbms, t.Level)
	update := step.Statement.Verb == "update"
	if held == nil {
		out = []choice{{row: i, effect: e}}
	} else {
		theirs, err := match(held)
		if err != nil {
			return nil, err
		}
		switch {
		case !e.addressed && !theirs.addressed:
			out = []choice{{row: i}}
		case loose && update && !e.addressed:
			out = []choice{{row: i, tag: tagLocked}}
		}
	}
	if !step.Waited || !loose || held == nil && !e.addressed {
		return out, nil
	}
	why, err := m.passedBy(s, r, n, match)
	if err != nil || why == tagNone || slices.ContainsFunc(out, func(c choice) bool { return !c.effect.addressed }) {
		return out, err
	}
	return append(out, choice{row: i, tag: why}), nil
}

// passedBy tells by which rule an InnoDB statement that waited can have decided against a row before its end.
func (m *model) passedBy(s store, r *row, n int, match func(*version) (effect, error)) (tag, error) {
	why := tagNone
	for _, moment := range m.moments(n)[1:] {
		at, err := m.passedAt(s, r, n, moment, match)
		switch {
		case err != nil || at == tagGap || at == tagReleased:
			return at, err
		case at == tagLocked || why == tagNone:
			why = at
		}
	}
	return why, nil
}

// passedAt is passedBy for a decision at one moment.
func (m *model) passedAt(s store, r *row, n, moment int, match func(*version) (effect, error)) (tag, error) {
	v, p := m.visible(r, n, moment), m.pending(r, n, moment)
	if !v.alive() && p == nil {
		before := m.origin(s, r, moment)
		if before == nil {
			return tagGap, nil
		}
		// Its key was changed: the question is what it was under the old one.
		why, err := m.passedAt(s, before, n, moment, match)
		if why == tagNone {
			why = tagMoved
		}
		return why, err
	}
	mine, err := match(v)
	if err != nil {
		return tagNone, err
	}
	theirs, err := match(p)
	if err != nil {
		return tagNone, err
	}
	later := func(v version) bool { return v.writer >= 0 && v.writer != m.of[n] && v.at > moment }
	st := &m.s.Steps[n].Statement
	switch {
	case !mine.addressed && p != nil && st.Verb == "update" && (theirs.addressed || !schedule.ByIndex(m.s.Setup, st)):
		return tagLocked, nil
	case !mine.addressed && (p == nil || !theirs.addressed):
		return tagReleased, nil
	case m.keys[r.table] == nil && slices.ContainsFunc(r.versions, later):
		return tagMoved, nil // a secondary index may have led to it
	}
	return tagNone, nil
}

// origin is the row that a later change of the key made a row of, as it was at a moment; nil if there is none.
func (m *model) origin(s store, r *row, moment int) *row {
	for i := range r.versions {
		if v := &r.versions[i]; v.from > 0 && v.at > moment {
			before := &s[v.from-1]
			if before.versions[0].at > moment {
				return m.origin(s, before, moment)
			}
			return before
		}
	}
	return nil
}
