package troc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"wirecheck/oracle"
	"wirecheck/product"
)

// refusable says what a statement that was done at once should have met: a lock that it had to wait for, or, where the first updater
// wins, a newer version for which it had to be refused (Troc, III-E3). Nil: nothing.
func (c *check) refusable(ctx context.Context, w *world, i int, kind product.Kind, mode product.Mode, r roles, cand *candidate, tr *trial) (*mismatch, error) {
	st := &c.s.Steps[i]
	if st.Answer.Err == nil {
		if m := c.outdated(w, i, kind, mode, r, cand, tr); m != nil {
			return m, nil
		}
	}
	if st.Waited || mode == product.LockNone || !c.shows(i) {
		return nil, nil
	}
	if kind == product.Insert {
		return c.collides(ctx, w, i, cand, tr)
	}
	if st.Answer.Err != nil || tr.addressed == nil {
		return nil, nil
	}
	return c.meeting(w, i, kind, mode, r, tr), nil
}

// shows reports whether a wait of this step would have been seen: TiDB does not show those of autocommit statements.
func (c *frame) shows(i int) bool {
	return !c.p.AutocommitWaitsHidden || c.txs[c.txOf[i]].Explicit
}

// outdated finds a row that a statement changed or locked although its snapshot does not show the row's newest version: the first
// updater wins (PostgreSQL manual, 13.2.2; MariaDB, innodb_snapshot_isolation).
func (c *check) outdated(w *world, i int, kind product.Kind, mode product.Mode, r roles, cand *candidate, tr *trial) *mismatch {
	x := c.txOf[i]
	t := &w.txs[x]
	s, _ := c.p.View(c.txs[x].Level, kind)
	if s.Locked != product.V4 || t.lockless || mode < product.LockShare || !t.firm || len(t.snapshots) == 0 || kind == product.Insert || kind == product.Share && covering(cand.cause) {
		return nil
	}
	since := slices.Max(t.snapshots)
	for _, name := range r.locked {
		for _, id := range tr.addressed[name] {
			for _, v := range w.newer(name, id, x, since) {
				if c.p.AfterWait == product.WaitGoesOn && (v.same || v.deleted && c.p.DeletionsPass) {
					continue
				}
				return &mismatch{
					step: i, name: oracle.NameWrite,
					rule: fmt.Sprintf("the first updater wins: %s has changed and committed a row of %s since the snapshot, so that this statement is refused (%s)", c.name(v.tx), name, s.Source),
					want: oracle.Side{Text: "refused: serialization failure"}, got: about(&c.s.Steps[i].Answer, kind), trail: w.trail,
				}
			}
		}
	}
	return nil
}

// meeting finds a row lock of another transaction that a statement passed without waiting.
func (c *check) meeting(w *world, i int, kind product.Kind, mode product.Mode, r roles, tr *trial) *mismatch {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	if c.p.CoveringLocks && mode == product.LockShare && !whole(&st.Statement) {
		return nil // an index that has all columns may be all that is locked
	}
	for _, name := range r.locked {
		for _, id := range tr.addressed[name] {
			holder, ok := w.meets(x, name, id, mode)
			if ok && c.covered() && !w.wrote(holder, name, id) {
				continue // a shared lock may be on records of a secondary index alone
			}
			if !ok {
				continue
			}
			if t := &w.txs[x]; c.p.AfterWait == product.WaitRechecks && t.firm && len(t.snapshots) > 0 && len(w.newer(name, id, x, slices.Min(t.snapshots))) > 0 {
				continue
			}
			return c.passed(w, i, kind, holder, fmt.Sprintf("a row of %s that this statement locks is locked by %s", name, c.name(holder)))
		}
	}
	return nil
}

// passed is the mismatch of a statement that did not wait.
func (c *check) passed(w *world, i int, kind product.Kind, holder int, why string) *mismatch {
	l, _ := c.p.Lock(c.txs[c.txOf[i]].Level, kind)
	return &mismatch{
		step: i, name: oracle.NameBlocking, rule: why + ": it waits (" + l.Source + ")",
		want: oracle.Side{Text: "waits for " + c.name(holder)}, got: oracle.Side{Text: "did not wait"}, trail: w.trail,
	}
}

// secondary finds indexes besides the primary key in a setup. A foreign key makes one where there is none (MySQL manual, 15.1.20.5).
var secondary = regexp.MustCompile("(?i)\\b(unique|index|references)\\b|[(,]\\s*key\\b")

// covered reports whether the locks of a read may be where those of another statement do not meet them: InnoDB locks in shared mode the
// records of a covering secondary index alone, not the rows (MySQL manual, 17.7.3).
func (c *frame) covered() bool {
	return c.p.CoveringLocks && slices.ContainsFunc(c.s.Setup, secondary.MatchString)
}

// covering reports whether a departure is that of an index which has all columns.
func covering(cause *product.Cause) bool {
	return cause != nil && cause.ID == product.CoveringIndex
}

// wrote reports whether a transaction has versions of a row. An UPDATE that leaves it as it is only locks it, in the index by which it came.
func (w *world) wrote(tx int, table string, id int) bool {
	for _, r := range w.tables[table] {
		if r.id == id {
			return slices.ContainsFunc(r.versions, func(v version) bool { return v.tx == tx && !v.same })
		}
	}
	return false
}

// writers lists the other running transactions that have versions of a table.
func (w *world) writers(tx int, table string) (list []int) {
	for _, r := range w.tables[table] {
		for _, v := range r.versions {
			if v.tx != initial && v.tx != tx && w.txs[v.tx].status == running && !w.txs[v.tx].lockless && !v.same && !slices.Contains(list, v.tx) {
				list = append(list, v.tx)
			}
		}
	}
	return list
}

// collides finds a key of another transaction's row, inserted or deleted and not committed, that an INSERT passed without waiting. The
// paper compares index values; here the engine itself tells whether the rows of both can be in the table (Troc, III-E3, lockIndexes).
func (c *check) collides(ctx context.Context, w *world, i int, cand *candidate, tr *trial) (*mismatch, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	in := st.Statement.Insert
	if in == nil || in.Select != "" || len(cand.views) != 1 || st.Answer.Err != nil && !isDuplicate(st.Answer.Err) {
		return nil, nil
	}
	for name := range cand.views {
		writers := w.writers(x, name)
		if len(writers) != 1 {
			return nil, nil
		}
		dirty, err := c.t.try(ctx, st, map[string]relation{name: w.view(name, x, moment{dirty: true})}, false)
		if errors.Is(err, errNoView) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		inserted := tr.answer.Err == nil && (isDuplicate(dirty.answer.Err) || dirty.answer.Err == nil && dirty.answer.Affected != tr.answer.Affected)
		removed := isDuplicate(tr.answer.Err) && dirty.answer.Err == nil
		if inserted || removed {
			return c.passed(w, i, product.Insert, writers[0], fmt.Sprintf("a key that this statement inserts into %s is in a row that %s has inserted, changed or deleted", name, c.name(writers[0]))), nil
		}
	}
	return nil, nil
}

// unseen looks at rows for which a statement's condition holds in a version that is not committed, and only in that one. InnoDB waits
// for them, except in an UPDATE that reads semi-consistently; the others do not look at them.
func (c *check) unseen(ctx context.Context, w *world, i int, kind product.Kind, r roles, tr *trial) error {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	level := c.txs[x].Level
	weak := product.Relaxed(level)
	if st.Waited || kind != product.Update || !weak || len(r.locked) != 1 || len(r.read) > 0 || tr.addressed == nil {
		return nil
	}
	name := r.locked[0]
	writers := w.writers(x, name)
	if len(writers) == 0 {
		return nil
	}
	dirty, err := c.t.address(ctx, st, map[string]relation{name: w.view(name, x, moment{dirty: true})})
	if errors.Is(err, errNoView) || err == nil && dirty == nil {
		return nil
	}
	if err != nil {
		return err
	}
	for _, id := range dirty[name] {
		if slices.Contains(tr.addressed[name], id) {
			continue
		}
		holder, ok := w.meets(x, name, id, product.LockUpdate)
		if !ok {
			continue
		}
		cause := c.p.Cause(product.SemiConsistent)
		if w.inserted(name, id, holder) && cause != nil {
			cause = c.p.Cause(product.PassedInsert)
		}
		if cause == nil {
			cause = c.p.Cause(product.StatementSnapshot)
		}
		m := c.passed(w, i, kind, holder, fmt.Sprintf("the condition holds for a row of %s as %s has written it", name, c.name(holder)))
		w.causes = append(w.causes, note{cause: cause, step: i, evidence: m})
		return nil
	}
	return nil
}

// inserted reports whether a row has no version but those of one transaction.
func (w *world) inserted(table string, id, tx int) bool {
	for _, r := range w.tables[table] {
		if r.id == id {
			return !slices.ContainsFunc(r.versions, func(v version) bool { return v.tx != tx })
		}
	}
	return false
}

// intrudes finds a predicate lock that a write passed without waiting: the write brings in a row that the condition of another
// transaction's locking statement holds for (Troc, III-E3: the locked rows before and after the write are compared).
func (c *check) intrudes(ctx context.Context, w *world, i int, r roles) (*mismatch, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	if st.Waited {
		return nil, nil
	}
	for _, p := range w.ranges {
		if p.tx == x || w.txs[p.tx].status != running {
			continue
		}
		other := &c.s.Steps[p.step]
		for _, u := range other.Statement.Tables {
			name, ok := c.t.known(u)
			if !ok || !slices.Contains(r.locked, name) {
				continue
			}
			rel := w.view(name, p.tx, moment{dirty: true})
			after, err := c.t.address(ctx, other, map[string]relation{name: rel})
			if errors.Is(err, errNoView) {
				continue
			}
			if err != nil {
				return nil, err
			}
			for _, id := range after[name] {
				if c.written(w, name, id, x, i) {
					kind, _ := c.kind(i)
					return c.passed(w, i, kind, p.tx, fmt.Sprintf("it brings a row into %s for which the condition of %s's %s holds, which has locked the gaps between rows", name, c.name(p.tx), other.Name)), nil
				}
			}
		}
	}
	return nil, nil
}

// written reports whether a step gave a row its newest version.
func (c *frame) written(w *world, table string, id, x, i int) bool {
	for _, r := range w.tables[table] {
		if r.id == id {
			v := r.versions[len(r.versions)-1]
			return v.tx == x && v.step == i && !v.same && !v.deleted
		}
	}
	return false
}
