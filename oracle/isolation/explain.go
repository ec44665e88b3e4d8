package isolation

import (
	"cmp"
	"fmt"
	"slices"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/level"
	"wirecheck/product"
)

// report makes a finding of a cycle.
func (c *Checker) report(p []step, class oracle.Class, suffix string, mask kinds, session uint64) {
	hops, name := choose(c, p, class, mask)
	if class == anomaly.G2Item && overPredicates(hops) > 0 {
		class = anomaly.G2
	}
	ts := make([]*txn, len(hops))
	for i, h := range hops {
		ts[i] = h.t
	}
	first := firstOf(ts)
	hops = append(append([]hop{}, hops[first:]...), hops[:first]...)
	ts = append(append([]*txn{}, ts[first:]...), ts[:first]...)
	class += oracle.Class(suffix)
	if suffix != "" {
		name = ""
	}
	edges := make([]edge, len(hops))
	to := make([]int, len(hops))
	for i := range hops {
		edges[i], to[i] = hops[i].e, (i+1)%len(hops)
	}
	c.emit(class, name, ts, edges, to, session)
}

// firstOf is the place of the transaction that gets the label T1, so that texts do not depend on who ended last: the one with the smallest number, or, where
// several recorders gave the numbers, the one that began first by the wall clock.
func firstOf(ts []*txn) (first int) {
	wall := !oneClock(ts)
	began := func(t *txn) int64 {
		if !wall || len(t.stmts) == 0 {
			return 0
		}
		return t.stmts[0].at
	}
	for i, t := range ts {
		if cmp.Or(cmp.Compare(began(t), began(ts[first])), cmp.Compare(t.id, ts[first].id)) < 0 {
			first = i
		}
	}
	return first
}

// dirtyRead makes a finding of one committed read of a version that never was, or was not final.
func (c *Checker) dirtyRead(class oracle.Class, v *version, r reader) {
	if v.writer == nil || v.writer == r.t || r.t.state != stateCommitted {
		return
	}
	if v.thin {
		class = anomaly.GarbageRead
	}
	e := edge{kind: edgeWR, from: v, to: v, fromStmt: v.wstmt, toStmt: r.access().stmt}
	direct(c, class, []*txn{v.writer, r.t}, e)
}

// emit reports a finding, unless it was reported of the same transactions.
func (c *Checker) emit(class oracle.Class, name string, ts []*txn, edges []edge, to []int, session uint64) {
	key := setKey(class, ts)
	commutes := slices.ContainsFunc(edges, func(e edge) bool { return e.commutes })
	if commutes {
		key += " rows"
	}
	if c.reported[key] {
		return
	}
	c.reported[key] = true
	ts[0].sets = append(ts[0].sets, key)
	f := draft(c, class, name, ts, edges, to, session)
	if f.Rows = commutes; commutes && !f.Promised {
		return // rows are protected, but no serial order of the columns' writes is missing
	}
	if c.levels != nil && len(edges) == 1 {
		c.levels.AddFact(level.Fact{Class: class, Txns: ids(ts)})
	}
	publish(c, f)
}

// draft makes a finding; edge i leaves transaction i and leads to transaction to[i].
func draft(c *Checker, class oracle.Class, name string, ts []*txn, edges []edge, to []int, session uint64) *oracle.Finding {
	f := oracle.Finding{Oracle: Descriptor.Name, Class: class, Name: name, Session: session, Seen: 1}
	wall := !oneClock(ts)
	for i, t := range ts {
		p := t.public(i, edges, to)
		if wall {
			t.byWallClock(&p)
		}
		if t.request != nil && (name == anomaly.LostBetween || name == anomaly.SkewBetween) {
			p.Request = t.request.name
		}
		f.Transactions = append(f.Transactions, p)
	}
	tables := map[string]bool{}
	for i := range edges {
		e := &edges[i]
		pub := oracle.Edge{From: i, To: to[i], Kind: kindOf(e.kind), FromStatement: ts[i].number(e.fromStmt), ToStatement: ts[to[i]].number(e.toStmt)}
		if e.from != nil {
			pub.Row, pub.FromVersion, pub.ToVersion = rowOf(e), e.from.label(), e.to.label()
			if e.pred != nil {
				pub.Condition, pub.Groups, pub.Found = e.pred.words(e)
				if e.kind == edgeRW {
					pub.FromVersion = ""
				}
			}
			if pub.Name = e.from.rowLabel(); pub.Name == "" {
				pub.Name = e.to.rowLabel()
			}
			evidence(&pub, e, ts[i], ts[to[i]])
			if e.kind == edgeWW {
				pub.Columns, _ = overwritten(c, e.from, e.to)
			}
			if pub.Row.Table != "" && !tables[pub.Row.Table] {
				tables[pub.Row.Table] = true
				f.Tables = append(f.Tables, pub.Row.Table)
			}
		}
		pub.Text = sentence(&f, &pub, e, class, e.kind == edgeWR && ts[to[i]].matched(e.to, e.toStmt))
		f.Edges = append(f.Edges, pub)
	}
	// Told best from the stale read on.
	if i := f.Stale(); i >= 0 {
		f.Edges = slices.Concat(f.Edges[i:], f.Edges[:i])
	}
	slices.Sort(f.Tables)
	blame(&f, ts, anew(edges))
	return &f
}

// publish reports a finding, unless it is the repetition of one.
func publish(c *Checker, f *oracle.Finding) {
	f.ID = f.Fingerprint()
	if c.opts.HideValues {
		f.HideValues()
	}
	if c.opts.Origin != nil {
		for i := range f.Transactions {
			x := &f.Transactions[i]
			x.Proxy, x.Number = c.opts.Origin(x.ID)
		}
	}
	f.FirstAt = c.hand.endedAt
	if old := c.seen[f.ID]; old != nil {
		old.Seen++
		f.Seen, f.FirstAt = old.Seen, old.FirstAt
		if !c.opts.Repeats {
			return
		}
	} else if len(c.seen) < c.opts.MaxFingerprints {
		kept := *f
		c.seen[f.ID] = &kept
		c.order = append(c.order, f.ID)
	} else {
		c.coverage.Overflow++
	}
	c.found = append(c.found, *f)
}

// blame says what was promised. A cycle of transactions at different levels is promised to be absent only where every
// one of them ran at a level that promises it: a weaker participant may be the one to blame, so it is never a violation.
// (PostgreSQL's manual, 13.2.3, says so of SERIALIZABLE itself.) The level of a G1a's aborted writer does not matter:
// nothing is promised to it.
//
// renewed says that the cycle rests on a row that was deleted and made anew under its key. A snapshot protects rows, not
// keys: PostgreSQL's REPEATABLE READ lets a transaction insert a key that it still sees in the row which another one
// deleted (seen with 15; then it sees two rows with one primary key). Only SERIALIZABLE promises to prevent that.
func blame(f *oracle.Finding, ts []*txn, renewed bool) {
	f.Level = ts[0].level
	if f.Class == anomaly.G1a || f.Class == anomaly.GarbageRead {
		f.Level = ts[1].level
	}
	ph, ok := anomaly.Broken(f.Class, f.Name)
	f.Promised = ok
	for _, t := range ts {
		if t.state != stateCommitted {
			continue
		}
		if t.level != f.Level {
			f.Level = "mixed"
		}
		held, source := t.product().Promises(t.level, ph)
		f.Promised = f.Promised && held && (!renewed || t.level == product.Serializable)
		if f.Promised && f.Source == "" {
			f.Source = source
		}
	}
	f.Kind = oracle.KindAnomaly
	if f.Promised {
		f.Kind = oracle.KindViolation
	} else {
		f.Source = ""
	}
	if ok && renewed {
		ph = anomaly.PG2Item
	}
	if ok {
		f.PreventedBy = ts[0].product().Weakest(ph)
		_, partly := f.Partly() // in a snapshot, the server refuses to lock what was changed since
		if snapshot := ts[0].product().WeakestSnapshot(); (f.OnlyReads() || partly != 0 && ts[0].product().AfterWait == product.WaitRechecks) && snapshot != "" {
			f.PreventedBy = snapshot
		}
	}
	f.Remedies = oracle.Remedies(ts[0].product(), f)
}

// anew reports whether one of the edges leads to a row's new life and another one is an anti-dependency, in a cycle of transactions.
func anew(edges []edge) bool {
	again, anti := false, false
	for i := range edges {
		e := &edges[i]
		if e.kind == edgeRequest {
			return false
		}
		anti = anti || e.kind == edgeRW
		again = again || (e.kind == edgeWW || e.kind == edgeRW) && (e.from.del || e.to.inserted())
	}
	return again && anti
}

// inserted reports whether a captured INSERT made the version.
func (v *version) inserted() bool {
	if v.writer == nil {
		return false
	}
	return slices.ContainsFunc(v.writer.accesses, func(a access) bool { return a.node == v && a.op == opInsert })
}

// public is the transaction's part in a finding.
func (t *txn) public(i int, edges []edge, to []int) oracle.Transaction {
	in := &t.session.info
	p := oracle.Transaction{Label: fmt.Sprintf("T%d", i+1), ID: t.id, Session: t.session.id, Engine: in.Engine, Server: in.Server,
		Database: in.Database, User: in.User, Client: in.Client, Backend: in.Backend, Level: t.level, Implicit: t.implicit,
		From: t.from, To: t.to, EndedAt: t.endedAt}
	p.Outcome = map[state]history.Outcome{stateCommitted: history.OutcomeCommitted, stateAborted: history.OutcomeAborted}[t.state]
	var idx []int
	for k := range edges {
		if k == i && edges[k].fromStmt >= 0 {
			idx = append(idx, int(edges[k].fromStmt))
		}
		if to[k] == i && edges[k].toStmt >= 0 {
			idx = append(idx, int(edges[k].toStmt))
		}
	}
	if p.Tags = t.tags; p.Tags == nil && t.request != nil {
		p.Tags = []string{"request " + t.request.name}
	}
	if t.state == stateCommitted {
		// What else the transaction did with the rows at hand shows how it used what it read.
		idx = append(idx, t.related(edges)...)
	}
	slices.Sort(idx)
	for _, x := range slices.Compact(idx) {
		s := &t.stmts[x]
		st := oracle.Statement{N: s.n, SQL: s.sql, Verb: s.verb, From: s.from, To: s.to, At: s.at, Tags: s.tags}
		if s.shown != nil {
			st.Params = oracle.Params(s.shown.params, t.product())
		}
		p.Statements = append(p.Statements, st)
	}
	return p
}

// byWallClock puts the wall clock in the place of ticks, in a finding of sessions whose ticks cannot be compared: people see what came when, as far as
// the machines' clocks agree. No verdict depends on it.
func (t *txn) byWallClock(p *oracle.Transaction) {
	at := func(ns int64) uint64 { return uint64(max(ns, 0)) }
	for i := range p.Statements {
		s := &p.Statements[i]
		s.From, s.To = at(s.At), at(s.At)
	}
	p.To = at(p.EndedAt)
	if p.From = p.To; len(t.stmts) > 0 {
		p.From = at(t.stmts[0].at - 1)
	}
}

// maxRelated is how many more statements of a transaction are shown.
const maxRelated = 8

// related are the statements of t that read or wrote a row of one of the edges.
func (t *txn) related(edges []edge) []int {
	var out []int
	for i := range t.accesses {
		a := &t.accesses[i]
		if a.node == nil || len(out) == maxRelated {
			continue
		}
		probe := edge{from: a.node, to: a.node}
		if slices.ContainsFunc(edges, func(e edge) bool { return probe.sameRow(&e) }) {
			out = append(out, int(a.stmt))
		}
	}
	return out
}

// number is the history's number of statement index i; 0 if it was not captured.
func (t *txn) number(i int32) int {
	if i < 0 {
		return 0
	}
	return t.stmts[i].n
}

// rowOf names the row of an edge, with its key if any of the versions tells it.
func rowOf(e *edge) history.Row {
	if e.from.row == nil {
		return e.to.name()
	}
	return e.from.name()
}

// sentence says why edge e leads from its transaction to the other. match says that the read of a wr edge is an UPDATE
// that changed nothing.
func sentence(f *oracle.Finding, p *oracle.Edge, e *edge, class oracle.Class, match bool) string {
	a, b := f.Transactions[p.From].Label, f.Transactions[p.To].Label
	row := p.RowText()
	at := func(txn, n int) string {
		if n == 0 {
			return "in a statement that was not captured"
		}
		return fmt.Sprintf("in %s.%d", f.Transactions[txn].Label, n)
	}
	from, to := at(p.From, p.FromStatement), at(p.To, p.ToStatement)
	then := "then wrote version " + p.ToVersion
	if e.to != nil && e.to.del {
		then = "then deleted it"
	}
	switch {
	case class == anomaly.Internal:
		return fmt.Sprintf("%s wrote version %s of %s %s and then read version %s %s", a, p.ToVersion, row, to, p.FromVersion, from)
	case class == anomaly.FutureRead:
		return fmt.Sprintf("%s read version %s of %s %s; %s sent the statement that wrote it only after that (%s)", b, p.ToVersion, row, to, a, from)
	case class == anomaly.DirtyUpdate:
		return fmt.Sprintf("%s wrote version %s of %s %s, which was undone; %s replaced that version %s", a, p.FromVersion, row, from, b, to)
	case class == anomaly.GarbageRead:
		return fmt.Sprintf("%s read version %s of %s %s; it names %s as its writer, which did not write it", b, p.ToVersion, row, to, a)
	case e.pred != nil:
		return predicateSentence(p, e, a, b, from, to)
	case class == anomaly.G1a:
		how := "was rolled back"
		if f.Transactions[p.From].Outcome == history.OutcomeCommitted {
			how = "undid that statement"
		}
		return fmt.Sprintf("%s read version %s of %s %s; %s had written it %s and %s", b, p.ToVersion, row, to, a, from, how)
	case class == anomaly.G1b:
		return fmt.Sprintf("%s read version %s of %s %s; %s had written it %s and replaced it itself before it committed", b, p.ToVersion, row, to, a, from)
	case e.kind == edgeWW:
		return fmt.Sprintf("%s wrote version %s of %s %s; %s %s %s", a, p.FromVersion, row, from, b, then, to)
	case e.kind == edgeWR && match:
		return fmt.Sprintf("%s found version %s of %s %s, which %s had written %s, and had nothing to change in it", b, p.ToVersion, row, to, a, from)
	case e.kind == edgeWR && e.from != e.to:
		return fmt.Sprintf("%s read version %s of %s %s, with the columns that %s had written %s", b, p.ToVersion, row, to, a, from)
	case e.kind == edgeWR:
		return fmt.Sprintf("%s read version %s of %s %s, which %s had written %s", b, p.ToVersion, row, to, a, from)
	case e.kind == edgeRW:
		return fmt.Sprintf("%s read version %s of %s %s; %s %s %s", a, p.FromVersion, row, from, b, then, to)
	case e.kind == edgeSO:
		return fmt.Sprintf("%s ended before %s began in the same session", a, b)
	}
	return fmt.Sprintf("%s was answered (tick %d) before %s was sent (tick %d)", a, f.Transactions[p.From].To, b, f.Transactions[p.To].From)
}
