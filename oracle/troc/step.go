package troc

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// step takes one world through one step. It gives the worlds that agree with what was seen, and the deaths of those that do not.
func (c *check) step(ctx context.Context, from *world, i int) (alive []*world, died []death, err error) {
	st := &c.s.Steps[i]
	w := from.clone()
	w.recall(c.place-1, from.tables, c.until)
	// A statement that commits first (MySQL family: BEGIN) ends the transaction before.
	for x := range c.txs {
		if t := &c.txs[x]; x != c.txOf[i] && t.End == st.Done && w.txs[x].status == running {
			w.end(x, c.outcome(x), c.place)
		}
	}
	x := c.txOf[i]
	if x < 0 {
		if st.Answer.Err == nil {
			c.t.set(st.Session, &st.Statement)
		}
		return []*world{w}, nil, nil
	}
	if c.txs[x].Steps[0] == i {
		c.begin(w, x, i)
	}
	alive = []*world{w}
	if _, ok := c.kind(i); ok {
		if alive, died, err = c.statement(ctx, w, i); err != nil || c.out.Unknown != "" {
			return nil, nil, err
		}
	} else if why, err := c.control(ctx, w, x, i); why != "" || err != nil {
		c.out.Unknown = why
		return nil, nil, err
	}
	if st.Effect == answer.EffectFailed && st.Reason != answer.ReasonFailed {
		for _, w := range alive {
			w.fail(x)
		}
	}
	if c.txs[x].End != st.Done {
		return alive, died, nil
	}
	ended := alive
	alive = nil
	for _, w := range ended {
		m := c.commits(w, x, i)
		if m != nil && c.txs[x].Retries {
			if err := c.retried(ctx, w, x); err != nil {
				return nil, nil, err
			}
			m = nil
		}
		if m != nil {
			died = append(died, death{mismatch: *m, causes: w.causes, place: c.place, writes: w.writes})
			continue
		}
		w.end(x, c.outcome(x), c.place)
		alive = append(alive, w)
	}
	return alive, died, nil
}

// kind is the kind of a step's statement; ok is false where it neither reads nor writes tables.
func (c *frame) kind(i int) (k product.Kind, ok bool) {
	st := &c.s.Steps[i]
	x := c.txOf[i]
	if x < 0 {
		return 0, false
	}
	return kindOf(c.p, c.txs[x].Level, c.txs[x].Explicit, &st.Statement)
}

func (c *frame) outcome(x int) status {
	if c.txs[x].Outcome == history.OutcomeCommitted {
		return committed
	}
	return aborted
}

// begin notes the start of a transaction, and the snapshot of those that take one then.
func (c *check) begin(w *world, x, i int) {
	t := &w.txs[x]
	t.began = c.sentAt(i)
	for y, before := range c.txs { // the statement commits its session's transaction first, and sees what that one wrote
		if y != x && before.Session == c.txs[x].Session && before.End == c.s.Steps[i].Done {
			t.began = w.txs[y].at
		}
	}
	t.lockless = c.p.Optimistic(c.txs[x].Level, true) // in autocommit, too
	st := &c.s.Steps[i].Statement
	if c.p.SnapshotAt == product.AtBegin || st.Control.Verb == statement.ControlBegin && st.Begin.Snapshot {
		t.snapshots, t.firm = []int{t.began}, true
	}
}

var constraints = regexp.MustCompile(`(?i)^\s*set\s+constraints\b`)

var harmless = regexp.MustCompile(`(?i)^\s*(show|explain|describe|desc)\b`)

// control follows a statement that neither reads nor writes tables. It says why nothing can be followed any more.
func (c *check) control(ctx context.Context, w *world, x, i int) (why string, err error) {
	st := &c.s.Steps[i]
	q := &st.Statement
	if st.Failed() || schedule.Upkeep(c.s.Setup, q) {
		return "", nil
	}
	if q.DDL {
		return redefine(ctx, c, w, i)
	}
	switch q.Control.Verb {
	case statement.ControlRelease:
		w.release(x, q.Control.Name)
		return "", nil
	case statement.ControlBegin, statement.ControlCommit, statement.ControlRollback, statement.ControlLevel, statement.ControlAutocommit:
		return "", nil
	case statement.ControlSavepoint:
		w.txs[x].saves = append(slices.Clip(w.txs[x].saves), save{q.Control.Name, i})
		return "", nil
	case statement.ControlRollbackTo:
		if !w.back(x, q.Control.Name) {
			return st.Name + " goes back to a savepoint that was not seen", nil
		}
		if c.s.Restarted(&c.txs[x], i) { // the next statement may take another snapshot (product.Participation)
			w.txs[x].firm = false
		}
		return "", nil
	case statement.ControlLocks, statement.ControlDatabase, statement.ControlReset:
		return st.Name + " changes what later statements mean: " + q.Text, nil
	}
	switch {
	case constraints.MatchString(q.Text):
		return "", nil // the stage is without those of which it can say so
	case q.Verb == "set":
		c.t.set(st.Session, q)
		return "", nil
	case harmless.MatchString(q.Text):
		return "", nil
	case q.Unparsed:
		return st.Name + " was not understood: " + q.Why, nil
	}
	return st.Name + " is of a kind that is not followed: " + q.Text, nil
}

// concurrent reports whether another transaction ran at some time since this one's beginning.
func (c *frame) concurrent(x int) bool {
	return slices.ContainsFunc(c.txs, func(t schedule.Transaction) bool {
		return t.Session != c.txs[x].Session && t.End >= c.txs[x].Begin && t.Begin <= c.txs[x].End
	})
}

// commits judges the end of an optimistic transaction: the first that commits wins (TiDB documentation, optimistic transactions).
func (c *frame) commits(w *world, x, i int) *mismatch {
	if !c.p.Optimistic(c.txs[x].Level, c.txs[x].Explicit) || c.outcome(x) != committed || len(w.txs[x].snapshots) != 1 {
		return nil
	}
	for name, rows := range w.tables {
		if w.taint[name] != "" {
			continue
		}
		for _, r := range rows {
			if !slices.ContainsFunc(r.versions, func(v version) bool { return v.tx == x && !v.same }) {
				continue
			}
			for _, v := range w.newer(name, r.id, x, w.txs[x].snapshots[0]) {
				if v.same {
					continue
				}
				return &mismatch{
					step: i, name: oracle.NameWrite,
					rule: fmt.Sprintf("an optimistic transaction that has changed a row is refused if another one has changed it since its snapshot: %s has changed and committed one of %s (TiDB documentation, optimistic mode)", c.name(v.tx), name),
					want: oracle.Side{Text: "refused: write conflict"}, got: oracle.Side{Text: "committed"}, trail: w.trail,
				}
			}
		}
	}
	return nil
}

// retried executes the writes of an optimistic transaction again, on what is committed when its COMMIT meets a conflict (TiDB documentation,
// optimistic transactions: automatic retry; updates may be lost by it).
func (c *check) retried(ctx context.Context, w *world, x int) error {
	w.remove(func(v *version) bool { return v.tx == x })
	for _, i := range c.txs[x].Steps {
		st := &c.s.Steps[i]
		kind, ok := c.kind(i)
		if !ok || !kind.Writes() || st.Failed() {
			continue
		}
		r, cand := c.roles(kind, &st.Statement), candidate{views: map[string]relation{}}
		for _, name := range append(slices.Clone(r.locked), r.read...) {
			cand.views[name] = w.view(name, x, moment{at: c.place})
		}
		if err := c.doubt(ctx, w, i, kind, r, "", &cand); err != nil {
			return err
		}
		tr, err := c.t.try(ctx, st, cand.views, true)
		if err == nil {
			err = c.t.settle(ctx, st, &cand, tr, true)
		}
		switch {
		case err != nil && !errors.Is(err, errNoView):
			return err
		case err != nil || cand.uncertain != "" || tr.answer.Err != nil || w.txs[x].saves != nil:
			c.taint(w, &st.Statement, x, st.Name+" was executed again at COMMIT")
		default:
			*w = *c.apply(w, i, r, &cand, tr)[0]
		}
	}
	return nil
}

// name is a transaction's name for people.
func (c *frame) name(x int) string {
	t := &c.txs[x]
	name := c.s.Sessions[t.Session].Name
	if t.N > 1 {
		name += fmt.Sprintf(" (transaction %d)", t.N)
	}
	return name
}

// roles are what a statement does with the tables that it mentions.
type roles struct {
	locked, read []string // names; a table may be in both
	strange      string   // a mention that is no table of the case
	inner        bool     // it writes within a common table expression
	through      bool     // it writes or locks the rows of a table through a view
	viewed       bool     // it names a view
}

func (c *check) roles(kind product.Kind, q *statement.Statement) (r roles) {
	for _, u := range q.Tables {
		if u.Kind != statement.SourceTable {
			continue
		}
		name, ok := c.t.known(u)
		if base, view := c.features.views[u.Name]; !ok && view && u.Schema == "" {
			r.viewed = true
			if name, ok = base, base != ""; ok {
				r.through = r.through || u.Target || kind != product.Select
			} else if kind == product.Select {
				for _, name := range c.t.names { // it may show any of them
					if !slices.Contains(r.read, name) {
						r.read = append(r.read, name)
					}
				}
				continue
			}
		}
		if !ok {
			r.strange = u.Name
			continue
		}
		locked := u.Target || u.Lock != statement.LockNone || kind == product.Share && q.Locking.Lock == statement.LockNone
		r.inner = r.inner || u.Target && u.Place != statement.PlaceMain
		list := &r.read
		if locked {
			list = &r.locked
		}
		if !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	return r
}

// statement takes a world through a statement that reads or writes tables.
func (c *check) statement(ctx context.Context, w *world, i int) (alive []*world, died []death, err error) {
	st := &c.s.Steps[i]
	q := &st.Statement
	x := c.txOf[i]
	kind, _ := c.kind(i)
	r := c.roles(kind, q)
	c.waits.see(w, i, kind, r)
	skip := func(why string) ([]*world, []death, error) {
		leave(c, w, "%s was not compared: %s", st.Name, why)
		if err := alone(ctx, c, w, i); err != nil {
			return nil, nil, err
		}
		if kind.Writes() && !st.Failed() {
			c.taint(w, q, x, st.Name+": "+why)
		}
		c.snap(w, x, i, nil, false)
		return []*world{w}, nil, nil
	}
	switch {
	case st.Failed() && st.Reason.Contention():
		c.snap(w, x, i, nil, false)
		if !c.concurrent(x) {
			return nil, []death{{mismatch: mismatch{
				step: i, name: oracle.NameDeadlock, rule: "a transaction that runs alone meets no lock and no conflict (Troc, III-E3)",
				want: oracle.Side{Text: "no other transaction is open"}, got: about(&st.Answer, kind), trail: w.trail,
			}, causes: w.causes, place: c.place}}, nil
		}
		return []*world{w}, nil, nil
	case st.Failed() && st.Reason != answer.ReasonOther:
		c.snap(w, x, i, nil, false)
		return []*world{w}, nil, nil
	case r.strange != "" || q.Unparsed:
		why := "it names " + r.strange
		if q.Unparsed {
			why = "it was not understood: " + q.Why
		}
		if kind.Writes() && !st.Failed() || q.Verb == "other" {
			c.out.Unknown = st.Name + ": " + why
			return nil, nil, nil
		}
		return skip(why)
	case kind.Writes() && !st.Failed() && len(r.locked) > 0 && c.readOnly(x):
		return nil, []death{{mismatch: mismatch{
			step: i, name: oracle.NameWrite, rule: "a READ ONLY transaction refuses every write to a table that is not temporary (" + c.p.Cause(product.ReadOnly).Source + ")",
			want: oracle.Side{Text: "refused: read-only transaction"}, got: about(&st.Answer, kind), trail: w.trail,
		}, causes: w.causes, place: c.place}}, nil
	case c.features.late && st.Failed() && st.Answer.Err != nil && strings.HasPrefix(st.Answer.Err.Code, "23"):
		return skip("a constraint may be looked at when its transaction ends")
	case schedule.Skips(q):
		return skip("SKIP LOCKED leaves out rows by locks that are not all known")
	case len(r.locked)+len(r.read) == 0:
		c.snap(w, x, i, nil, true)
		return []*world{w}, nil, nil
	}
	c.twice(w, i, kind, r)
	candidates, err := c.candidates(ctx, w, i, kind, r)
	if err != nil {
		return nil, nil, err
	}
	for n := range candidates {
		list, dead, err := c.attempt(ctx, w, i, kind, r, &candidates[n])
		if err != nil {
			return nil, nil, err
		}
		alive, died = append(alive, list...), append(died, dead...)
	}
	return alive, died, nil
}

// readOnly reports whether a transaction is READ ONLY from its beginning to its end, and the product refuses writes in it.
func (c *frame) readOnly(x int) bool {
	return c.p.ReadOnlyRefuses && c.txs[x].ReadOnly && !slices.ContainsFunc(c.txs[x].Steps, func(i int) bool { return schedule.SetsAccess(c.p, &c.s.Steps[i].Statement) })
}

// snap notes that a statement may have taken the transaction's snapshot. chosen are the moments at one of which it must have been taken
// after what was seen; nil: nothing is known of that.
func (c *check) snap(w *world, x, i int, chosen []int, certain bool) {
	t := &w.txs[x]
	if t.firm {
		if chosen != nil {
			t.snapshots = chosen
		}
		return
	}
	switch c.p.SnapshotAt {
	case product.AtFirstStatement:
		t.snapshots, t.firm = []int{c.sentAt(i)}, true
		// A DEFERRABLE transaction waits in its first query, and takes another snapshot if its first one turns out not to be safe
		// (PostgreSQL manual, 13.2.3).
		if kind, _ := c.kind(i); kind == product.Select && c.s.Steps[i].Waited {
			t.snapshots = append(t.snapshots, c.place)
		}
	case product.AtFirstRead:
		kind, _ := c.kind(i)
		if chosen != nil {
			t.snapshots, t.firm = chosen, certain
		} else if !slices.Contains(t.snapshots, c.place) && (kind == product.Select || len(c.roles(kind, &c.s.Steps[i].Statement).read) > 0) {
			t.snapshots = append(slices.Clip(t.snapshots), c.place)
		}
	}
}

// certainlyReads reports whether an answer shows that tables were read to make it, so that the snapshot was taken by then.
func certainlyReads(st *schedule.Step) bool {
	return st.Answer.Err == nil && len(st.Answer.Rows) > 0 && !st.Statement.Aggregate && !st.Statement.SetOperation
}

// whole reports whether a SELECT returns all columns of its tables, so that it cannot be answered from a secondary index alone.
func whole(q *statement.Statement) bool { return slices.Contains(q.Columns, "*") }

func isDuplicate(e *answer.Error) bool {
	return e != nil && (e.Code == "23505" || e.Code == "1062" || e.Code == "1586" || e.Code == "1859")
}

// describeView says in words on what a statement was executed.
func describeView(views map[string]relation, limit int) string {
	var parts []string
	for name, rel := range views {
		var rows []string
		for _, t := range rel {
			if len(rows) == limit {
				rows = append(rows, "...")
				break
			}
			rows = append(rows, answer.RowText(t.values))
		}
		parts = append(parts, name+" = {"+strings.Join(rows, ", ")+"}")
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}
