package wss

import (
	"slices"

	"wirecheck/oracle"
	"wirecheck/rewrite"
)

// The levels' groups. READ UNCOMMITTED of PostgreSQL is READ COMMITTED (manual, 13.2).
func relaxed(level string) bool {
	return level == oracle.ReadUncommitted || level == oracle.ReadCommitted
}

// innodb reports whether a product's transactions are InnoDB's.
func innodb(product string) bool { return product == "mysql" || product == "mariadb" }

// optimistic reports whether a transaction looks for conflicts at COMMIT only.
func (m *model) optimistic(transaction int) bool {
	t := &m.transactions[transaction]
	return m.s.Product == "tidb" && t.Level == oracle.Snapshot && t.Explicit
}

// views are the moments whose committed state a statement can read without locks.
//
//   - PostgreSQL: at READ COMMITTED what was committed when the statement began (manual, 13.2.1), above that when the transaction's first
//     statement began (13.2.2).
//   - TiDB: in a pessimistic transaction the latest committed state when the statement began, or begins again after a wait (TiDB docs,
//     pessimistic transaction mode, "current read"); in an optimistic one the state at BEGIN.
//   - InnoDB: at READ COMMITTED a consistent read in a write has a snapshot of its own (MySQL manual, 17.7.2.3); at READ UNCOMMITTED it
//     sees what is not committed; above, what a write reads is locked, and is the latest (17.7.3).
func (m *model) views(n int) []view {
	step, t := &m.s.Steps[n], &m.transactions[m.of[n]]
	switch {
	case m.s.Product == "postgres" && relaxed(t.Level):
		return []view{{moment: step.Sent}}
	case m.s.Product == "postgres":
		return []view{{moment: m.snapshot(m.of[n])}}
	case m.optimistic(m.of[n]):
		return []view{{moment: t.Begin}}
	case m.s.Product == "tidb":
		out := []view{}
		for _, at := range m.moments(n) {
			out = append(out, view{moment: at})
		}
		return out
	case t.Level == oracle.ReadUncommitted:
		return []view{{moment: step.Done}, {moment: step.Sent}, {step.Done, true}, {step.Sent, true}}
	case t.Level == oracle.ReadCommitted:
		return []view{{moment: step.Done}, {moment: step.Sent}}
	}
	return []view{{moment: step.Done}}
}

// unlocked are the views that a statement can have of what it reads besides its target. They are those of the target but for TiDB's
// pessimistic transactions, which do not lock what a SELECT within a write reads, and may read it as their snapshot reads do, which is at
// BEGIN (TiDB docs, pessimistic transaction mode: behaviors, and differences from MySQL InnoDB).
func (m *model) unlocked(n int) []view {
	views, t := m.views(n), &m.transactions[m.of[n]]
	if m.s.Product == "tidb" && t.Level == oracle.RepeatableRead && t.Explicit {
		views = append(views, view{moment: t.Begin})
	}
	return views
}

// snapshot is when a transaction's first statement was sent that reads or writes rows.
func (m *model) snapshot(t int) int {
	for _, n := range m.transactions[t].Steps {
		if st := &m.s.Steps[n].Statement; st.Control.Verb == rewrite.ControlNone && st.Verb != "set" {
			return m.s.Steps[n].Sent
		}
	}
	return m.transactions[t].Begin
}

// moments are the moments between a statement's beginning and its end at which the committed state can be another one, its end first.
func (m *model) moments(n int) []int {
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
	step, t := &m.s.Steps[n], &m.transactions[m.of[n]]
	now, held := m.visible(r, n, step.Done), m.pending(r, n, step.Done)
	if innodb(m.s.Product) {
		return m.decideLocking(s, r, i, n, now, held, match)
	}
	optimistic := m.optimistic(m.of[n])
	seen := m.visible(r, n, scan.moment)
	e, err := match(seen)
	switch {
	case err != nil:
		return nil, err
	case !e.addressed:
		return []choice{{row: i}}, nil
	case optimistic && e.values != nil && sameValues(e.values, seen.values):
		// Nothing is written, and whether it counts when conflicts are looked for is not documented.
		unwritten := e
		unwritten.same = true
		return []choice{{row: i, effect: e}, {row: i, effect: unwritten}}, nil
	case optimistic || held == nil && (now == seen || m.s.Product == "tidb" && r.unchanged(seen, now)):
		return []choice{{row: i, effect: e}}, nil // an optimistic transaction's conflicts are found at its COMMIT (model.commits)
	case held != nil || m.s.Product != "postgres" || !relaxed(t.Level):
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
		if within && (v.values == nil || from.values == nil || !sameValues(v.values, from.values)) {
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
	loose := relaxed(t.Level)
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
	switch {
	case !mine.addressed && (p == nil || !theirs.addressed):
		return tagReleased, nil
	case p != nil && m.s.Steps[n].Statement.Verb == "update" && !mine.addressed:
		return tagLocked, nil
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
