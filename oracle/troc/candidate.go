package troc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// candidate is one way in which a statement may have been executed.
type candidate struct {
	views     map[string]relation
	snaps     []int          // the moments at one of which the snapshot was taken, if this is what happened; nil: it tells nothing of that
	cause     *product.Cause // the departure from table II that it is; nil: none
	uncertain string         // why its result is not certain
	lasting   bool           // what it wrote is not certain either, though its result be as expected
	rule      string
}

// choice is a moment for each role.
type choice struct {
	locked, read moment
	snap         int // -1: no snapshot is involved
	cause        *product.Cause
}

// candidates lists the ways in which table II, and what is known of the product, let a statement be executed (Troc, III-E2).
func (c *check) candidates(ctx context.Context, w *world, i int, kind product.Kind, r roles) ([]candidate, error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	level := c.txs[x].Level
	strategy, ok := c.p.View(level, kind)
	if !ok {
		return nil, fmt.Errorf("troc: no line of table II for %s, %s, %s", c.p.Name, level, kind)
	}
	var list []candidate
	for _, ch := range c.choices(w, i, kind, strategy) {
		views, mixed := map[string]relation{}, ""
		for _, name := range r.locked {
			views[name] = w.view(name, x, ch.locked)
		}
		for _, name := range r.read {
			rel := w.view(name, x, ch.read)
			if have, ok := views[name]; ok && !have.equal(rel) {
				mixed = "it sees table " + name + " in two ways at once"
				continue
			}
			views[name] = rel
		}
		cand := candidate{views: views, cause: ch.cause, rule: c.rule(kind, level, strategy, r)}
		// InnoDB opens a read view for what is read without locks only (MySQL manual, 17.7.2.3).
		if ch.snap >= 0 && (w.txs[x].firm || c.p.SnapshotAt != product.AtFirstRead || kind == product.Select || !kind.Writes() && len(r.read) > 0) {
			cand.snaps = []int{ch.snap}
		}
		// With a table in both roles the views alone do not tell candidates apart: they hold what is locked.
		if n := slices.IndexFunc(list, func(o candidate) bool { return o.cause == cand.cause && sameViews(o.views, views) }); n >= 0 && mixed == "" {
			list[n].snaps = append(list[n].snaps, cand.snaps...) // both nil where nothing is told of the snapshot
			continue
		}
		if cand.cause != nil && slices.ContainsFunc(list, func(o candidate) bool {
			return (o.cause == nil || !c.covering(cand.cause)) && sameViews(o.views, views)
		}) {
			continue
		}
		c.doubt(w, i, kind, r, mixed, &cand)
		list = append(list, cand)
	}
	if st.Waited && len(r.locked) == 1 && len(r.read) == 0 {
		more, err := c.departures(ctx, w, i, kind, r.locked[0], &list[0])
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	return list, nil
}

func sameViews(a, b map[string]relation) bool {
	if len(a) != len(b) {
		return false
	}
	for name, rel := range a {
		if other, ok := b[name]; !ok || !rel.equal(other) {
			return false
		}
	}
	return true
}

// choices lists the moments at which a statement may see its tables.
func (c *check) choices(w *world, i int, kind product.Kind, s product.View) (list []choice) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	t := &w.txs[x]
	now, sent := moment{at: c.place}, moment{at: c.sentAt(i)}
	var snapshots []int
	switch {
	case c.p.SnapshotAt == product.AtFirstStatement && !t.firm:
		snapshots = []int{sent.at}
	case c.p.SnapshotAt == product.AtFirstRead && !t.firm: // it may not have been taken yet
		snapshots = append(slices.Clip(t.snapshots), now.at)
		if st.Waited { // what it reads without locks it may have read before the wait
			snapshots = append(snapshots, sent.at)
		}
	default:
		snapshots = t.snapshots
	}
	if s.Locked == product.V4 || s.Read == product.V4 {
		for _, snap := range snapshots {
			ch := choice{locked: now, read: moment{at: snap}, snap: snap}
			if s.Locked == product.V4 {
				ch.locked = moment{at: snap}
			}
			list = append(list, ch)
		}
		// An optimistic autocommit statement that meets a conflict is executed again, on what is there then (TiDB documentation, optimistic
		// transactions: automatic retry).
		if t.lockless && c.p.AutocommitRetries && !c.txs[x].Explicit && kind.Writes() {
			list = append(list, choice{locked: now, read: now, snap: -1})
		}
		// At this level only: that the newest version of a row is a deletion is not always noticed, and nothing is where an index has all columns.
		depart := func(id product.CauseID, may bool) {
			if cause := c.p.Cause(id); cause != nil && s.Locked == product.V4 && t.firm && may {
				for _, snap := range snapshots {
					list = append(list, choice{locked: now, read: moment{at: snap}, snap: snap, cause: cause})
				}
			}
		}
		depart(product.DeletedRow, kind != product.Select)
		depart(product.CoveringIndex, kind == product.Share && c.covered())
		return list
	}
	ch := choice{locked: now, read: now, snap: -1}
	if s.Locked == product.V2 {
		ch.locked = moment{dirty: true}
	}
	list = []choice{ch}
	if s.Read == product.V2 {
		list[0].read = moment{dirty: true}
		if kind != product.Select { // whether a source table is locked depends on the statement
			list = append(list, ch)
		}
	}
	if st.Waited { // what it reads without locks it may have read before or after the wait
		ch.read = sent
		list = append(list, ch)
	}
	plain, _ := c.p.View(c.txs[x].Level, product.Select)
	switch {
	case plain.Read != product.V4: // there is no snapshot that stays
	case kind.Writes() && c.p.Cause(product.CurrentRead) != nil:
		if cause := c.p.Cause(product.CurrentRead); len(t.snapshots) > 0 {
			var old []choice
			for _, snap := range t.snapshots {
				old = append(old, choice{locked: now, read: moment{at: snap}, snap: -1})
			}
			for n := range list {
				list[n].cause = cause
			}
			list = append(old, list...)
		}
	case c.p.SubqueryEither:
		for _, snap := range t.snapshots {
			list = append(list, choice{locked: now, read: moment{at: snap}, snap: -1})
		}
	}
	return list
}

// rule says in words what is expected.
func (c *check) rule(kind product.Kind, level string, s product.View, r roles) string {
	visibility := map[product.Visibility]string{
		product.V2: "all versions, committed or not (V2)", product.V3: "its own versions and those that are committed (V1, V3)", product.V4: "its own versions and those of its snapshot (V1, V4)",
	}
	text := fmt.Sprintf("%s at %s sees %s", kind, c.p.LevelTitle(level), visibility[s.Locked])
	if len(r.locked) == 0 {
		text = fmt.Sprintf("%s at %s sees %s", kind, c.p.LevelTitle(level), visibility[s.Read])
	} else if len(r.read) > 0 && s.Locked != s.Read {
		text += ", and of tables that it only reads " + visibility[s.Read]
	}
	return text + "; executed alone on that view it gives what is expected (" + s.Source + ")"
}

// doubt says what makes a statement's result uncertain.
func (c *check) doubt(w *world, i int, kind product.Kind, r roles, mixed string, cand *candidate) {
	st := &c.s.Steps[i]
	q := &st.Statement
	set := func(why string, lasting bool) {
		if cand.uncertain == "" {
			cand.uncertain, cand.lasting = why, lasting
		}
	}
	if mixed != "" {
		set(mixed, true)
	}
	if q.Volatile != "" {
		set(q.Volatile, true)
	}
	if q.Variables {
		set("it depends on what its session did before", true)
	}
	for name := range cand.views {
		if why, ok := w.taint[name]; ok {
			set(why, true)
		}
	}
	if kind.Writes() {
		for _, name := range r.locked {
			var columns []string
			for _, col := range c.t.columns[name] {
				columns = append(columns, col.Name)
			}
			if c.features.fills(name, columns, q) {
				set("the server fills in a column of table "+name, true)
			}
		}
	}
	if st.Waited && len(r.locked)+len(r.read) > 1 {
		set("it waited in the middle of several tables", true)
	}
	if c.p.AfterWait == product.WaitRestarts && st.Waited && slices.ContainsFunc(r.locked, func(name string) bool { return c.onlyAdded(w, name, i) }) {
		set("it waited for a row that was not changed in the end, and whether it reads again then is not documented", true)
	}
	v, _ := c.p.View(c.txs[c.txOf[i]].Level, kind)
	dirty := v.Read == product.V2 && (kind == product.Select || len(r.read) > 0)
	if other := c.underWay(i); dirty && other != "" {
		set(other+" is at work and waits, and what it has done so far can be seen", true)
	}
	if q.Verb == "merge" {
		x := c.txOf[i]
		for _, name := range r.locked {
			rel := w.view(name, x, moment{at: c.place})
			if !rel.equal(cand.views[name]) || !rel.equal(w.view(name, x, moment{at: c.sentAt(i)})) {
				set("MERGE chose what to do with its rows before it met what others had committed", true)
			}
		}
	}
	if st.Waited && modeOf(c.p, c.txs[c.txOf[i]].Level, kind, q) == product.LockKeyShare {
		set("it waited, and FOR KEY SHARE gives rows that others have changed without their keys as the snapshot has them", false)
	}
	if st.Waited && q.Limit {
		set("it waited, and LIMIT counts rows that were there before and after", true)
	}
	if c.features.keys && kind.Writes() {
		c.others(w, i, cand, set)
	}
	// A plain SELECT that waited did so for something else than rows.
	if st.Waited && kind == product.Select {
		set("it waited for something that is not known", false)
	}
}

// onlyAdded reports whether, while a step waited, others added rows to a table and left those that were there as they were.
func (c *check) onlyAdded(w *world, table string, i int) bool {
	before, after := w.view(table, c.txOf[i], moment{at: c.sentAt(i)}), w.view(table, c.txOf[i], moment{at: c.place})
	return len(after) > len(before) && !slices.ContainsFunc(before, func(t tuple) bool {
		now, ok := after.find(t.id)
		return !ok || !answer.SameRow(now.values, t.values)
	})
}

// underWay names a write of another session that waits while a step is done.
func (c *check) underWay(i int) string {
	st := &c.s.Steps[i]
	for j := range c.s.Steps {
		o := &c.s.Steps[j]
		if k, ok := c.kind(j); ok && k.Writes() && o.Waited && o.Session != st.Session && o.Sent < st.Done && o.Done > st.Sent {
			return o.Name
		}
	}
	return ""
}

// others adds the tables that foreign keys may lead to. When and how they are looked at is not modelled: if they are not the same at all
// moments in question, the result is not certain.
func (c *check) others(w *world, i int, cand *candidate, doubt func(why string, lasting bool)) {
	x := c.txOf[i]
	moments := []moment{{at: c.sentAt(i)}, {dirty: true}}
	for _, snap := range w.txs[x].snapshots {
		moments = append(moments, moment{at: snap})
	}
	for _, name := range c.t.names {
		if _, ok := cand.views[name]; ok && !c.features.itself[name] {
			continue
		}
		rel := w.view(name, x, moment{at: c.place})
		for _, m := range moments {
			if !rel.equal(w.view(name, x, m)) {
				doubt("foreign keys look at table "+name+", which others write", true)
			}
		}
		if _, ok := cand.views[name]; !ok {
			cand.views[name] = rel
		}
	}
	if c.s.Steps[i].Waited {
		doubt("it waited, and foreign keys look at other tables in their own way", true)
	}
}

// departures lists the known ways in which a statement on one table that waited departs from table II.
func (c *check) departures(ctx context.Context, w *world, i int, kind product.Kind, table string, ideal *candidate) (list []candidate, err error) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	level := c.txs[x].Level
	if kind == product.Insert || !product.Relaxed(level) || c.p.AfterWait == product.WaitRestarts {
		return nil, nil
	}
	sent := c.sentAt(i)
	before := map[string]relation{table: w.view(table, x, moment{at: sent})}
	then, err := c.t.address(ctx, st, before)
	if err != nil && !errors.Is(err, errNoView) {
		return nil, err
	}
	now, err := c.t.address(ctx, st, ideal.views)
	if err != nil && !errors.Is(err, errNoView) {
		return nil, err
	}
	if then == nil || now == nil {
		ideal.uncertain, ideal.lasting = "it waited, and which rows it chose cannot be asked for", true
		return nil, nil
	}
	alternative := func(rel relation, cause product.CauseID) {
		if known := c.p.Cause(cause); known != nil {
			list = append(list, candidate{
				views: map[string]relation{table: rel}, cause: known, uncertain: ideal.uncertain, lasting: ideal.lasting, rule: ideal.rule,
			})
		}
	}
	rel := ideal.views[table]
	if c.p.AfterWait == product.WaitRechecks {
		var gone []int
		for _, id := range now[table] {
			if !slices.Contains(then[table], id) {
				gone = append(gone, id)
			}
		}
		if len(gone) > 0 {
			alternative(slices.DeleteFunc(slices.Clone(rel), func(t tuple) bool { return !slices.Contains(then[table], t.id) }), product.EvalPlanQual)
		}
		return list, nil
	}
	var moved []int // rows that others changed while it waited, in the order of the scan
	for _, id := range now[table] {
		if slices.ContainsFunc(w.newer(table, id, x, sent), func(v version) bool { return !v.same }) {
			moved = append(moved, id)
		}
	}
	missing := -1 // how many rows were passed over, as far as the counts tell
	if st.Answer.Err == nil {
		ideal, err := c.t.try(ctx, st, ideal.views, true)
		if err != nil {
			return nil, err
		}
		switch {
		case ideal.answer.Err != nil:
		case kind.Writes():
			missing = int(ideal.answer.Affected - st.Answer.Affected)
		default:
			missing = len(ideal.answer.Rows) - len(st.Answer.Rows)
		}
	}
	for _, skipped := range subsets(moved, missing) {
		cause := product.TornUpdate
		switch {
		case !slices.ContainsFunc(skipped, func(id int) bool { return !c.insertedSince(w, table, id, st.Sent) }):
			cause = product.NoGapLocks
		case kind != product.Update || slices.ContainsFunc(skipped, func(id int) bool { return slices.Contains(then[table], id) }):
			cause = product.MovedRow
		}
		alternative(rel.without(skipped), cause)
	}
	return list, nil
}

// insertedSince reports whether a row was inserted after a moment of the schedule. An UPDATE that gives a row another key inserts none.
func (c *check) insertedSince(w *world, table string, id, tick int) bool {
	return slices.ContainsFunc(w.tables[table], func(r row) bool {
		if r.id != id || r.versions[0].tx == initial {
			return false
		}
		st := &c.s.Steps[r.versions[0].step]
		return st.Sent > tick && st.Statement.Insert != nil
	})
}

// subsets gives the subsets of a list but the empty one. Of a list of more than four, only those of a size, and at most 100.
func subsets(list []int, size int) (out [][]int) {
	for mask := 1; mask < 1<<min(len(list), 16); mask++ {
		if len(list) > 4 && bits.OnesCount(uint(mask)) != size {
			continue
		}
		var s []int
		for i, v := range list {
			if mask&(1<<i) != 0 {
				s = append(s, v)
			}
		}
		if out = append(out, s); len(out) == 100 {
			break
		}
	}
	return out
}

// attempt executes a candidate and compares (Troc, III-E4 and III-F).
func (c *check) attempt(ctx context.Context, from *world, i int, kind product.Kind, r roles, cand *candidate) (alive []*world, died []death, err error) {
	st := &c.s.Steps[i]
	q := &st.Statement
	x := c.txOf[i]
	mode := modeOf(c.p, c.txs[x].Level, kind, q)
	tr, err := c.t.try(ctx, st, cand.views, mode != product.LockNone)
	if errors.Is(err, errNoView) {
		w := from.clone()
		c.snap(w, x, i, nil, false)
		c.note("%s was not compared: %v", st.Name, err)
		if kind.Writes() && st.Answer.Err == nil {
			c.taint(w, q, st.Name+": "+err.Error())
		}
		return []*world{w}, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
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
		return nil, []death{{mismatch: *m, causes: w.causes, place: c.place, world: next}}, nil
	}
	if name := differ(st, &tr.answer); name != "" {
		explained, err := c.explained(ctx, w, i, kind, r, tr)
		switch {
		case err != nil:
			return nil, nil, err
		case explained:
			return []*world{w}, nil, nil
		case cand.uncertain != "":
			c.note("%s was not compared: %s", st.Name, cand.uncertain)
			if kind.Writes() && st.Answer.Err == nil {
				c.taint(w, q, st.Name+": "+cand.uncertain)
			}
			return []*world{w}, nil, nil
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
		alive = c.apply(w, i, r, cand, tr)
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
			c.taint(w, q, st.Name+": "+cand.uncertain)
		}
	}
	return alive, nil, nil
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
	views[name] = relation{}
	for _, t := range cand.views[name] {
		if slices.Contains(chosen, t.id) {
			views[name] = append(views[name], t)
		}
	}
	for _, t := range w.view(name, x, moment{at: c.place}) {
		if !slices.Contains(chosen, t.id) {
			views[name] = append(views[name], t)
		}
	}
	slices.SortFunc(views[name], func(a, b tuple) int { return a.id - b.id })
	other, err := c.t.try(ctx, st, views, true)
	if errors.Is(err, errNoView) {
		cand.uncertain, cand.lasting = "whether its keys are unique cannot be told from its snapshot", true
		return tr, nil
	}
	if err != nil {
		return nil, err
	}
	if again := slices.Clone(other.addressed[name]); again == nil || !sameSet(again, chosen) {
		cand.uncertain, cand.lasting = "whether its keys are unique cannot be told from its snapshot", true
		return tr, nil
	}
	return other, nil
}

func sameSet(a, b []int) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(id int) bool { return !slices.Contains(b, id) })
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
		c.taint(w, &st.Statement, st.Name+": an optimistic transaction may look for duplicates at COMMIT only")
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
	if w.txs[x].lockless { // whether it counts when conflicts are looked for at COMMIT is not documented
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
	if c.p.CoveringLocks && mode == product.LockShare && !whole.MatchString(st.Statement.Text) {
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
