package troc

import (
	"context"
	"errors"
	"maps"
	"slices"

	"wirecheck/oracle"
	"wirecheck/product"
	"wirecheck/statement"
)

// gone follows an UPDATE or DELETE whose condition holds for rows that its transaction's snapshot shows, and that others have deleted since,
// or moved to another key. The statement passes over them. For its transaction they should be gone, as every other row is what the
// statement made of it; engines go on to show them. That is another world.
func (c *check) gone(ctx context.Context, worlds []*world, i int, kind product.Kind, r roles) ([]*world, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	reads, _ := c.p.View(c.txs[x].Level, product.Select)
	own, _ := c.p.View(c.txs[x].Level, kind)
	if kind != product.Update && kind != product.Delete || reads.Read != product.V4 || own.Locked != product.V3 || st.Answer.Err != nil ||
		len(r.locked) != 1 || len(r.read) > 0 || st.Statement.Limit || st.Statement.HasSubquery || !c.txs[x].Explicit {
		return worlds, nil
	}
	table := r.locked[0]
	out := slices.Clip(worlds)
	for _, w := range worlds {
		if len(w.txs[x].snapshots) != 1 || w.taint[table] != "" {
			continue
		}
		snap := moment{at: w.txs[x].snapshots[0]}
		then, now := w.view(table, x, snap), w.view(table, x, moment{at: c.place})
		lost := slices.DeleteFunc(slices.Clone(then), func(t tuple) bool { _, ok := now.find(t.id); return ok })
		if len(lost) == 0 {
			continue
		}
		chosen, err := c.t.address(ctx, st, map[string]relation{table: lost})
		if errors.Is(err, errNoView) || chosen == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		ideal, why := w.clone(), product.DeletedMeanwhile
		for _, id := range chosen[table] {
			at := slices.IndexFunc(w.tables[table], func(r row) bool { return r.id == id })
			if dead := w.latest(&w.tables[table][at], x, moment{at: c.place}); dead != nil && dead.tx != initial && c.s.Steps[dead.step].Statement.Verb == "update" {
				why = product.MovedAway
			}
			ideal.add(table, id, version{tx: x, step: i, deleted: true, same: true})
		}
		cause := c.p.Cause(why)
		if len(chosen[table]) == 0 || cause == nil {
			continue
		}
		w.causes = append(slices.Clip(w.causes), note{cause: cause, step: i})
		out = append(out, ideal)
	}
	return out, nil
}

// met adds to what an INSERT ... ON DUPLICATE KEY UPDATE or a REPLACE did the rows that it met and left as they were: without such a row it inserts one.
func (c *check) met(ctx context.Context, w *world, i int, r roles, cand *candidate, tr *trial) (*trial, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	if in := st.Statement.Insert; in == nil || !in.Conflict && st.Statement.Verb != "replace" || len(r.locked) != 1 || tr.answer.Err != nil || c.p.Cause(product.NoopUpdate) == nil {
		return tr, nil
	}
	name := r.locked[0]
	var met []int
	for _, t := range cand.views[name] {
		changed := slices.ContainsFunc(tr.changed[name], func(o tuple) bool { return o.id == t.id })
		foreign := slices.ContainsFunc(w.txs[x].snapshots, func(snap int) bool { return len(w.newer(name, t.id, x, snap)) > 0 })
		if changed || !foreign {
			continue
		}
		views := maps.Clone(cand.views)
		views[name] = views[name].without([]int{t.id})
		other, err := c.t.try(ctx, st, views, false)
		if err != nil && !errors.Is(err, errNoView) {
			return nil, err
		}
		if err == nil && len(other.added[name]) > len(tr.added[name]) {
			met = append(met, t.id)
		}
	}
	out := *tr
	out.addressed = map[string][]int{name: met}
	return &out, nil
}

// twice judges rows of one primary key that a SELECT returned twice: no state of the table has them, whether or not its view can be made. Where
// rows are not kept under their key, a snapshot can show the row that another transaction has deleted beside the one that this one has
// inserted since: whether that is a bug, the product's cause says. Where it wrote no version, its own locks may be the cause.
func (c *check) twice(w *world, i int, kind product.Kind, r roles) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	view, _ := c.p.View(c.txs[x].Level, kind)
	if kind.Writes() || st.Answer.Err != nil || !plain(&st.Statement, r) || c.judged[i] || c.features.late || view.Read == product.V2 || c.unchecked() {
		return
	}
	table := append(slices.Clone(r.locked), r.read...)[0]
	shown, _ := places(st, c.t.columns[table])
	key := c.features.primaryKey(table, c.t.columns[table])
	if len(key) == 0 {
		return
	}
	for n, at := range key {
		if key[n] = slices.Index(shown, at); key[n] < 0 {
			return
		}
	}
	var cause *product.Cause
	wrote := slices.ContainsFunc(w.tables[table], func(r row) bool { return slices.ContainsFunc(r.versions, func(v version) bool { return v.tx == x }) })
	if wrote && c.p.Clustered != product.Yes && view.Read == product.V4 {
		if cause = c.p.Cause(product.KeyTwice); cause == nil || w.txs[x].lockless || c.p.Certifies && c.txs[x].Level == product.Serializable {
			return
		}
	}
	if !wrote && locksBefore(c, x, i, table) {
		cause = c.p.Cause(product.LockedKey)
	}
	seen := map[string]bool{}
	for _, values := range st.Answer.Rows {
		var k string
		for _, n := range key {
			k += string(values[n]) + "\x00"
		}
		if !seen[k] {
			seen[k] = true
			continue
		}
		c.judged[i] = true
		c.out.Findings = append(c.out.Findings, c.finding(&mismatch{
			step: i, name: oracle.NameResult, rule: "a table has one row for each value of its primary key, in every state that a statement can see",
			want: oracle.Side{Text: "no two rows with one primary key"}, got: about(&st.Answer, kind), trail: w.trail,
		}, cause))
		return
	}
}

// locksBefore reports whether a transaction has locked rows of a table, or tried to write some, before step i.
func locksBefore(c *check, x, i int, table string) bool {
	for n := range i {
		if kind, ok := c.kind(n); ok && c.txOf[n] == x && slices.Contains(c.roles(kind, &c.s.Steps[n].Statement).locked, table) {
			return true
		}
	}
	return false
}

// plain reports whether a SELECT reads one table, by its name alone, and gives each of its rows by itself.
func plain(q *statement.Statement, r roles) bool {
	return len(r.locked)+len(r.read) == 1 && len(q.Tables) == 1 && r.strange == "" && !r.viewed && !q.SetOperation && !q.Aggregate && !q.HasSubquery
}
