package troc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"regexp"
	"slices"

	"wirecheck/answer"
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
	// variants are, by table, what the statement may have met in place of what is in views; perhaps is why.
	variants map[string][]variant
	perhaps  string
	guesses  []map[string]relation // the views that it may have met, if it makes a difference which
	guess    bool                  // it is one of these: if it is not what was seen, another one may be
	rule     string
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
	for _, ch := range c.choices(w, i, kind, strategy, len(r.read) > 0) {
		views, other, mixed := map[string]relation{}, map[string]relation(nil), ""
		for _, name := range r.locked {
			views[name] = w.view(name, x, ch.locked)
		}
		for _, name := range r.read {
			rel := w.view(name, x, ch.read)
			if have, ok := views[name]; ok && !have.equal(rel) {
				mixed = "it sees table " + name + " in two ways at once"
				other = map[string]relation{name: rel}
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
		if n := slices.IndexFunc(list, func(o candidate) bool { return o.cause == cand.cause && maps.EqualFunc(o.views, views, relation.equal) }); n >= 0 && mixed == "" {
			list[n].snaps = append(list[n].snaps, cand.snaps...) // both nil where nothing is told of the snapshot
			continue
		}
		if cand.cause != nil && slices.ContainsFunc(list, func(o candidate) bool {
			return (o.cause == nil || !covering(cand.cause)) && maps.EqualFunc(o.views, views, relation.equal)
		}) {
			continue
		}
		if err := c.doubt(ctx, w, i, kind, r, mixed, &cand); err != nil {
			return nil, err
		}
		if other != nil { // often it makes no difference for one of its roles what it sees
			all := maps.Clone(views)
			maps.Copy(all, other)
			cand.guesses = []map[string]relation{views, all}
		}
		list = append(list, cand)
	}
	if c.features.keys && kind.Writes() {
		for _, snap := range w.txs[x].snapshots {
			if other, found := behind(c, w, i, snap, &list[0]); found {
				list = append(list, other)
			}
		}
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

// choices lists the moments at which a statement may see its tables. reads says that there are some which it only reads.
func (c *check) choices(w *world, i int, kind product.Kind, s product.View, reads bool) (list []choice) {
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
		if cause := c.p.Cause(product.ReverseScan); cause != nil && backwards.MatchString(st.Statement.Text) {
			for _, snap := range snapshots {
				list = append(list, choice{locked: now, read: now, snap: snap, cause: cause})
			}
		}
		if own, _ := c.p.View(c.txs[x].Level, product.Update); own.Locked == product.V4 && t.firm {
			for _, snap := range snapshots {
				list = append(list, unrefused(c, kind, s, snap, reads)...)
			}
		}
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

// backwards finds what a server may read from an index in descending order.
var backwards = regexp.MustCompile(`(?i)\bdesc\b|\bmax\s*\(`)

// unrefused lists the ways in which a statement meets a row that is newer than its snapshot, and is not refused where it should be: that the newest
// version is a deletion is not always noticed, and nothing is where a secondary index has all columns. Writes lock what they only read, too (MySQL manual,
// 17.7.3).
func unrefused(c *check, kind product.Kind, s product.View, snap int, reads bool) (list []choice) {
	now, then := moment{at: c.place}, moment{at: snap}
	locked := then
	if s.Locked != product.V4 { // an INSERT
		locked = now
	}
	depart := func(id product.CauseID, locked, read moment) {
		if cause := c.p.Cause(id); cause != nil {
			list = append(list, choice{locked: locked, read: read, snap: snap, cause: cause})
		}
	}
	if kind != product.Select && s.Locked == product.V4 {
		depart(product.DeletedRow, now, then)
	}
	if kind == product.Share && c.covered() {
		depart(product.CoveringIndex, now, then)
	}
	if !kind.Writes() || !reads {
		return list
	}
	passing := moment{at: snap, gone: c.place}
	depart(product.DeletedRow, locked, passing)
	if s.Locked == product.V4 {
		depart(product.DeletedRow, now, passing)
	}
	if c.covered() {
		depart(product.CoveringIndex, locked, now)
	}
	return list
}

// rule says in words what is expected.
func (c *frame) rule(kind product.Kind, level string, s product.View, r roles) string {
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
func (c *check) doubt(ctx context.Context, w *world, i int, kind product.Kind, r roles, mixed string, cand *candidate) error {
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
	if name := older(c, w, c.txOf[i], cand); name != "" {
		set("its snapshot is older than the definition of table "+name, true)
	}
	if q.Variables {
		set("it depends on what its session did before", true)
	}
	sees, _ := c.p.View(c.txs[c.txOf[i]].Level, kind)
	for name := range cand.views {
		why, tainted := w.taint[name]
		if own, is := w.own[name]; tainted && (!is || own == c.txOf[i] || sees.Read == product.V2 || sees.Locked == product.V2) {
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
	if (r.through || r.inner) && !oneView(c, kind, q) {
		aside(c, w, i, r, cand, set)
	}
	if st.Waited && len(r.locked)+len(r.read) > 1 {
		c.meanwhile(w, i, kind, r, cand, "it waited in the middle of several tables", set)
	}
	// An INSERT of values waits for its keys, and each key that others have written meanwhile is a conflict: it begins again.
	if c.p.AfterWait == product.WaitRestarts && st.Waited && (kind != product.Insert || len(r.read) > 0) {
		if err := again(ctx, c, w, i, r, cand); err != nil {
			return err
		}
	}
	dirty := sees.Read == product.V2 && (kind == product.Select || len(r.read) > 0)
	if other := underWay(c, i, r); dirty && other != "" {
		set(other+" is at work and waits, and what it has done so far can be seen", true)
	}
	if q.Verb == "merge" {
		x := c.txOf[i]
		for _, name := range r.locked {
			rel := w.view(name, x, moment{at: c.place})
			const why = "MERGE chose what to do with its rows before it met what others had committed"
			cand.vary(name, variant{rel: rel}, why)
			cand.vary(name, variant{rel: w.view(name, x, moment{at: c.sentAt(i)})}, why)
		}
	}
	if st.Waited && modeOf(c.p, c.txs[c.txOf[i]].Level, kind, q) == product.LockKeyShare {
		set("it waited, and FOR KEY SHARE gives rows that others have changed without their keys as the snapshot has them", false)
	}
	if st.Waited && q.Limit && len(r.locked)+len(r.read) == 1 {
		c.meanwhile(w, i, kind, r, cand, "it waited, and LIMIT counts rows that were there before and after", set)
	}
	if c.features.keys && kind.Writes() {
		c.others(w, i, cand)
	}
	// A plain SELECT that waited did so for something else than rows.
	if st.Waited && kind == product.Select {
		set("it waited for something that is not known", false)
	}
	return nil
}

// aside doubts a statement that writes or locks a table through a view or within a common table expression, where others have a part in it: which
// rows its conditions chose cannot be asked for. By parts that write one table, it is not defined which row is what (PostgreSQL manual, 7.8.4).
func aside(c *check, w *world, i int, r roles, cand *candidate, set func(why string, lasting bool)) {
	st := &c.s.Steps[i]
	q := &st.Statement
	x := c.txOf[i]
	if r.inner && (len(q.Targets()) != len(r.locked) || c.t.sensitive(q)) {
		set("its parts may write the same rows, or see the row ids", true)
	}
	for _, name := range r.locked {
		now := w.view(name, x, moment{at: c.place})
		shown := func(snap int) bool { return !now.equal(w.view(name, x, moment{at: snap})) }
		if st.Waited || len(w.writers(x, name)) > 0 || !now.equal(cand.views[name]) || slices.ContainsFunc(w.txs[x].snapshots, shown) {
			why := "it addresses rows of " + name + ", which others write, through a view or within a common table expression"
			for at := min(c.place, c.sentAt(i)); at <= c.place; at++ {
				cand.vary(name, variant{rel: w.view(name, x, moment{at: at})}, why)
			}
			for _, snap := range w.txs[x].snapshots {
				cand.vary(name, variant{rel: w.view(name, x, moment{at: snap})}, why)
			}
			cand.vary(name, variant{rel: w.view(name, x, moment{dirty: true})}, why)
		}
		if r.through && len(c.features.generated[name]) > 0 {
			set("the server fills in a column of table "+name, true)
		}
	}
}

// again varies the tables of a statement that waited and began again if a row for which it waited was changed. Where others changed the table, and none of the
// rows that the statement chose when it was sent (none that was there, if it cannot be asked which these are), whether it did is not documented.
func again(ctx context.Context, c *check, w *world, i int, r roles, cand *candidate) error {
	x := c.txOf[i]
	before := map[string]relation{}
	for _, name := range append(slices.Clone(r.locked), r.read...) {
		before[name] = w.view(name, x, moment{at: c.sentAt(i)})
	}
	then, err := c.t.address(ctx, &c.s.Steps[i], before)
	if err != nil && !errors.Is(err, errNoView) {
		return err
	}
	for _, name := range r.locked {
		after := w.view(name, x, moment{at: c.place})
		moved := slices.ContainsFunc(before[name], func(t tuple) bool {
			now, ok := after.find(t.id)
			return (then == nil || slices.Contains(then[name], t.id)) && (!ok || !answer.SameRow(now.values, t.values))
		})
		if !moved {
			cand.vary(name, variant{rel: before[name]}, "it waited for a row that was not changed in the end, and whether it reads again then is not documented")
		}
	}
	return nil
}

// underWay names a write of another session that waits while a step is done, and may have changed by then what the step reads without locks.
func underWay(c *check, i int, r roles) string {
	st := &c.s.Steps[i]
	read := slices.Concat(r.read, r.locked)
	for j := range c.s.Steps {
		o := &c.s.Steps[j]
		k, ok := c.kind(j)
		if !ok || !k.Writes() || !o.Waited || o.Session == st.Session || o.Sent >= st.Done || o.Done <= st.Sent {
			continue
		}
		its := c.roles(k, &o.Statement)
		if c.features.acts || its.strange != "" || slices.ContainsFunc(its.locked, func(name string) bool { return slices.Contains(read, name) }) {
			return o.Name
		}
	}
	return ""
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
		c.meanwhile(w, i, kind, roles{locked: []string{table}}, ideal, "it waited, and which rows it chose cannot be asked for", func(why string, lasting bool) {
			ideal.uncertain, ideal.lasting = why, lasting
		})
		return nil, nil
	}
	alternative := func(rel relation, cause product.CauseID) {
		if known := c.p.Cause(cause); known != nil {
			other := *ideal
			other.views = maps.Clone(ideal.views)
			other.views[table], other.cause, other.snaps = rel, known, nil
			list = append(list, other)
		}
	}
	rel := ideal.views[table]
	if c.p.AfterWait == product.WaitRechecks {
		if slices.ContainsFunc(now[table], func(id int) bool { return !slices.Contains(then[table], id) }) {
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
		met := slices.DeleteFunc(slices.Clone(now[table]), func(id int) bool { return slices.Contains(skipped, id) })
		alternative(rel.without(skipped), c.passing(w, table, kind, st, skipped, met, then[table]))
	}
	return list, nil
}

// passing is the cause by which a statement that waited passed rows over: skipped. It met others. Of all, then are those that it would have
// chosen when it was sent.
func (c *frame) passing(w *world, table string, kind product.Kind, st *schedule.Step, skipped, met, then []int) product.CauseID {
	row := func(id int) *row {
		return &w.tables[table][slices.IndexFunc(w.tables[table], func(r row) bool { return r.id == id })]
	}
	insertedSince := func(id int) bool {
		v, _ := row(id).birth()
		return c.inserts(v) && c.s.Steps[v.step].Sent > st.Sent
	}
	sibling := func(id int) bool { // another row that its transaction inserted was met
		v, first := row(id).birth()
		return first && slices.ContainsFunc(met, func(id int) bool {
			other, _ := row(id).birth()
			return c.inserts(other) && other.tx == v.tx
		})
	}
	held := func(id int) bool {
		return slices.ContainsFunc(row(id).versions, func(v version) bool {
			return v.tx != initial && c.s.Steps[v.step].Done < st.Sent && c.txs[v.tx].End > st.Sent
		})
	}
	fresh := func(id int) bool { // there is no version of it but those of a transaction that held it
		v, first := row(id).birth()
		return first && v.tx != initial && c.s.Steps[v.step].Done < st.Sent && c.txs[v.tx].End > st.Sent
	}
	released := func(id int) bool { // it was there, and the scan let go of it: it did not match, and nobody held it
		v, _ := row(id).birth()
		there := v.tx == initial || c.txs[v.tx].End < st.Sent
		return kind != product.Update && there && !held(id) && !slices.Contains(then, id)
	}
	switch {
	case !slices.ContainsFunc(skipped, func(id int) bool { return !insertedSince(id) && !released(id) }):
		if kind != product.Update && slices.ContainsFunc(skipped, func(id int) bool { return insertedSince(id) && sibling(id) }) {
			return product.TornInsert
		}
		return product.NoGapLocks
	case kind != product.Update || slices.ContainsFunc(skipped, func(id int) bool { return slices.Contains(then, id) }):
		return product.MovedRow
	case !slices.ContainsFunc(skipped, func(id int) bool { return !fresh(id) }):
		return product.PassedInsert
	case schedule.ByIndex(c.s.Setup, &st.Statement), !slices.ContainsFunc(skipped, held):
		return product.NoGapLocks // the scan did not come to them; or they did not match, so that their locks were released
	}
	return product.TornUpdate
}

// inserts reports whether an INSERT made a version. An UPDATE that gives a row another key inserts none.
func (c *frame) inserts(v *version) bool {
	return v.tx != initial && c.s.Steps[v.step].Statement.Insert != nil
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
