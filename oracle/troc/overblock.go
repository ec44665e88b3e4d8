package troc

import (
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Overblocking describes the same oracle where it looks for waits that no lock explains. Engines may lock more than a manual says, so that the user must
// name it.
var Overblocking = oracle.Oracle{
	Name: "overblocking",
	Doc: `reports a statement that waited for a transaction which, by the vendor's documented locks, held nothing that it needs
It needs a stage to execute on, as troc does. A finding is a question to the vendor: wrong data follow from none.`,
}

// waits are the statements of a schedule that waited, as far as nothing explains that.
type waits struct {
	*check
	found    map[int]mismatch // by step
	explains map[int]bool     // by step: something explains it in one of the worlds
}

// see judges a statement that waited. The transactions whose end may have let it go are those that ended since, back to one that did not itself
// wait. If by the documented locks none of them can have held what it needs, nothing explains the wait. What is not certain explains it.
func (c *waits) see(w *world, i int, kind product.Kind, r roles) {
	if c == nil {
		return
	}
	st := &c.s.Steps[i]
	if !st.Waited || st.Failed() && st.Reason.Contention() || c.explains[i] {
		return
	}
	holders := c.releasers(i)
	deferred := c.p.Certifies && c.txs[c.txOf[i]].Level == product.Serializable // READ ONLY, DEFERRABLE (PostgreSQL manual, 13.2.3)
	c.explains[i] = len(holders) == 0 || deferred || uncertain(&st.Statement, r) || slices.ContainsFunc(holders, func(y int) bool { return c.held(w, y, i, kind, r) })
	if c.explains[i] {
		delete(c.found, i)
		return
	}
	why := "plain reads take no row locks, and wait for none"
	if kind != product.Select {
		why = "no row of a table that the statement names, and no gap that it writes into, was locked by " + c.name(holders[0])
	}
	l, _ := c.p.Lock(c.txs[c.txOf[i]].Level, kind)
	c.found[i] = mismatch{
		step: i, name: oracle.NameOverblocking, rule: why + " (" + l.Source + ")",
		want: oracle.Side{Text: "does not wait"}, got: oracle.Side{Text: "waited for " + c.name(holders[0])}, trail: w.trail,
	}
}

// uncertain reports whether a statement may wait for something that its text does not tell.
func uncertain(q *statement.Statement, r roles) bool {
	return q.Unparsed || q.DDL || q.Volatile != "" || q.Variables || r.strange != "" || r.viewed
}

// releasers are the transactions of other sessions whose end may have let a step go that waited; nil: that is not certain.
func (c *frame) releasers(i int) (list []int) {
	st := &c.s.Steps[i]
	var before []int
	for j := range c.s.Steps {
		if o := &c.s.Steps[j]; o.Session != st.Session && o.Done < st.Done && o.Done > st.Sent {
			before = append(before, j)
		}
	}
	slices.SortFunc(before, func(a, b int) int { return c.s.Steps[b].Done - c.s.Steps[a].Done })
	for _, j := range before {
		o := &c.s.Steps[j]
		x := c.txOf[j]
		ends := x >= 0 && c.txs[x].End == o.Done
		switch {
		case !ends && !o.Waited, o.Failed(): // it let go of locks in some other way
			return nil
		case ends && c.txs[x].Begin > st.Sent: // what it waited for was there before
			return nil
		case ends:
			list = append(list, x)
		}
		if !o.Waited {
			return list
		}
	}
	return nil
}

// held reports whether a transaction can have held what a statement waited for, by the locks that are documented.
func (c *waits) held(w *world, y, i int, kind product.Kind, r roles) bool {
	names := append(slices.Clone(r.locked), r.read...)
	for _, j := range c.txs[y].Steps {
		o := &c.s.Steps[j]
		q := &o.Statement
		other, ok := c.kind(j)
		switch {
		case !ok && (q.Control.Verb != statement.ControlNone || q.Verb == "set"):
			continue
		case !ok:
			return true
		case o.Done > c.s.Steps[i].Done:
			continue
		}
		theirs := c.roles(other, q)
		switch {
		case uncertain(q, theirs):
			return true
		case kind == product.Select, other == product.Select:
			continue
		}
		for _, name := range append(slices.Clone(theirs.locked), theirs.read...) {
			if (c.features.keys || slices.Contains(names, name)) && (kind == product.Insert || kind == product.Update || c.lockable(w, y, j, name)) {
				return true
			}
		}
	}
	return false
}

// lockable reports whether a statement can have locked a row of a table: one was there for it. Gaps are locked besides, but only inserting waits
// for these (MySQL manual, 17.7.1). PostgreSQL locks the rows that a statement chooses, and no others (manual, 13.3.2).
func (c *waits) lockable(w *world, y, j int, table string) bool {
	o := &c.s.Steps[j]
	if c.p.AfterWait == product.WaitRechecks {
		return o.Waited || o.Answer.Affected > 0 || len(o.Answer.Rows) > 0 || o.Failed()
	}
	if c.p.AfterWait == product.WaitRestarts || o.Answer.Affected > 0 || len(o.Answer.Rows) > 0 || o.Failed() {
		return true // TiDB locks keys that are not there, too
	}
	for x := range c.txs { // what it took back is not in the history any more
		if c.outcome(x) != committed && slices.ContainsFunc(c.txs[x].Steps, func(n int) bool { return c.writes(n, table) }) {
			return true
		}
	}
	for _, r := range w.tables[table] {
		for n := range r.versions {
			v := &r.versions[n]
			if v.deleted || v.tx != initial && c.s.Steps[v.step].Done > o.Done {
				continue
			}
			gone := slices.ContainsFunc(r.versions[n+1:], func(v version) bool { return v.deleted && c.txs[v.tx].End < o.Done })
			if !gone || v.tx == y {
				return true
			}
		}
	}
	return false
}

// writes reports whether a step may have written a table.
func (c *waits) writes(n int, table string) bool {
	kind, ok := c.kind(n)
	return !ok && c.s.Steps[n].Statement.Control.Verb == statement.ControlNone || ok && kind.Writes() && slices.Contains(c.roles(kind, &c.s.Steps[n].Statement).locked, table)
}

// findings are those waits, in place of what else is found.
func (c *waits) findings(v schedule.Verdict) schedule.Verdict {
	v.Findings = nil
	for i := range c.s.Steps {
		m, ok := c.found[i]
		if !ok || c.s.Steps[i].Effect == answer.EffectGone {
			continue
		}
		f := c.finding(&m, nil)
		f.Oracle, f.Class, f.Promised = Overblocking.Name, oracle.Overblocking, true
		f.ID = f.Fingerprint()
		v.Findings = append(v.Findings, f)
	}
	return v
}
