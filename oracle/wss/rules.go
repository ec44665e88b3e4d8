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
	case m.s.Product == "tidb" && t.Level == oracle.Snapshot && t.Explicit:
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
func (m *model) decide(r *row, i, n int, read view, match func(*version) (effect, error)) ([]choice, error) {
	step, t := &m.s.Steps[n], &m.transactions[m.of[n]]
	now, held := m.visible(r, n, step.Done), m.pending(r, n, step.Done)
	if innodb(m.s.Product) {
		return m.decideLocking(r, i, n, now, held, match)
	}
	optimistic := m.s.Product == "tidb" && t.Level == oracle.Snapshot && t.Explicit
	seen := m.visible(r, n, read.moment)
	e, err := match(seen)
	switch {
	case err != nil:
		return nil, err
	case !e.addressed:
		return []choice{{row: i}}, nil
	case optimistic || held == nil && now == seen:
		return []choice{{row: i, effect: e}}, nil // an optimistic transaction's conflicts are found at its COMMIT (model.commits)
	case held != nil || m.s.Product != "postgres" || !relaxed(t.Level):
		return nil, nil // it must wait; TiDB begins again with the latest state; PostgreSQL refuses it (manual, 13.2.2)
	}
	// PostgreSQL manual, 13.2.1: the search condition is evaluated again on the updated version of a row that was found.
	if e, err = match(now); err != nil {
		return nil, err
	}
	return []choice{{row: i, effect: e}}, nil
}

// decideLocking is decide by InnoDB's rules: a write locks each row that it scans and decides on the row's latest version. At READ
// COMMITTED and below (MySQL manual, 17.7.2.1) an UPDATE decides on the last committed version whether a locked row matches, and waits
// only then (semi-consistent read); locks on rows that do not match are released; there are no gap locks.
func (m *model) decideLocking(r *row, i, n int, now, held *version, match func(*version) (effect, error)) (out []choice, err error) {
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
	why, err := m.passedBy(r, n, match)
	if err != nil || why == tagNone || slices.ContainsFunc(out, func(c choice) bool { return !c.effect.addressed }) {
		return out, err
	}
	return append(out, choice{row: i, tag: why}), nil
}

// passedBy tells by which rule an InnoDB statement that waited can have decided against a row before its end.
func (m *model) passedBy(r *row, n int, match func(*version) (effect, error)) (tag, error) {
	step := &m.s.Steps[n]
	why := tagNone
	moved := false
	for _, v := range r.versions {
		moved = moved || v.writer >= 0 && v.writer != m.of[n] && v.at > step.Sent && len(r.versions) > 1
	}
	for _, moment := range m.moments(n)[1:] {
		v, p := m.visible(r, n, moment), m.pending(r, n, moment)
		mine, err := match(v)
		if err != nil {
			return why, err
		}
		theirs, err := match(p)
		if err != nil {
			return why, err
		}
		switch {
		case !v.alive() && p == nil:
			return tagGap, nil
		case p == nil && !mine.addressed:
			return tagReleased, nil
		case !mine.addressed && !theirs.addressed:
			return tagReleased, nil
		case p != nil && step.Statement.Verb == "update" && !mine.addressed:
			why = tagLocked
		case moved && why == tagNone:
			why = tagMoved
		}
	}
	return why, nil
}
