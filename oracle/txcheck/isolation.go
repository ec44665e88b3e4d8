package txcheck

import (
	"slices"
	"strconv"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// isolation looks for cycles of item dependencies that the level forbids (TxCheck, section 4, isolation bug detection). Item
// dependencies only, since those of version sets may be spurious. What a cycle is called and which product promises to prevent
// it at which level, package oracle/isolation and oracle.Promises say.
func (k *check) isolation(got *capture) {
	checker := isolation.New(isolation.Options{Keep: -1})
	transactions := k.original.Transactions()
	promised := func(f *fact) bool {
		tx := f.plannedStatement.tx
		return tx < 0 || k.original.Held(&transactions[tx], f.plannedStatement.number-1)
	}
	for _, e := range got.events(k.original.Product, k.original.Version, promised) {
		for _, f := range checker.Add(&e) {
			k.forbidden(f)
		}
	}
}

// forbidden reports what the level forbids; what it allows is for the oracle of that name to tell.
func (k *check) forbidden(f oracle.Finding) {
	if f.Kind != oracle.KindViolation {
		return
	}
	f.Oracle = Descriptor.Name
	d := &oracle.Difference{
		Rule:     "the item dependencies of committed transactions, as the added reads show them, have no cycle that the level forbids (TxCheck, section 4; " + f.Source + ")",
		Expected: oracle.Side{Text: "no " + string(f.Class)}, Observed: oracle.Side{Text: f.Title()},
	}
	for _, e := range f.Edges {
		d.Observed.Text += "; " + e.Text
	}
	for _, x := range k.plan.statements {
		d.Reference = append(d.Reference, k.line(x.step))
	}
	f.Difference = d
	k.report(f)
}

// events is the execution as a history. The reads of a statement outside of an explicit transaction were those of another one,
// and are left out, and so are those that are not promised to fit the others.
func (c *capture) events(product, version string, promised func(*fact) bool) (events []history.Event) {
	type at struct {
		moment int
		event  history.Event
	}
	var list []at
	place := map[Version]uint64{} // in the row's version order
	next := map[history.Row]uint64{}
	rowOf := func(v Version) history.Row { return history.Row{Table: v.Table, Key: v.Row} }
	placeOf := func(v Version) uint64 {
		if p := place[v]; p != 0 {
			return p
		}
		if v.Key != "0" { // undone before this, or never seen to be written
			return history.OrderUnknown
		}
		return history.OrderInitial
	}
	token := func(v Version, txn int) string {
		if w := c.writers[v]; w != nil && w.txn != txn {
			return "t" + strconv.Itoa(w.txn+1)
		}
		return ""
	}
	for k := range c.plan.sessions {
		events = append(events, history.Event{Kind: history.EventSession, Session: uint64(k + 1), Engine: product, Server: version})
	}
	numbers := map[int]int{}
	used := map[int]bool{}
	for _, f := range c.facts {
		if f.step == nil || f.txn < 0 || f.role == setting {
			continue
		}
		t := &c.transactions[f.txn]
		used[f.txn] = true
		numbers[f.txn]++
		e := history.Event{
			Kind: history.EventStmt, Session: uint64(t.Session + 1), Txn: uint64(f.txn + 1), N: numbers[f.txn], Verb: f.step.Statement.Verb,
			SQL: f.plannedStatement.step.Statement.Text, Coverage: history.CoverageExact, From: uint64(f.step.Sent), To: uint64(f.step.Done), Error: f.step.Answer.Err,
		}
		if t.Explicit && promised(f) {
			for _, v := range f.reads {
				e.Accesses = append(e.Accesses, history.Access{Op: history.OpRead, Row: rowOf(v), Version: v.Key, Writer: token(v, f.txn), Order: placeOf(v)})
			}
		}
		undone := f.out && t.Outcome == history.OutcomeCommitted // by ROLLBACK TO SAVEPOINT
		for i, v := range f.after {
			if undone {
				break
			}
			row := rowOf(v)
			if next[row] == 0 {
				next[row] = history.OrderInitial
			}
			next[row]++
			place[v] = next[row]
			was := f.before[i]
			a := history.Access{Op: history.OpUpdate, Row: row, Version: v.Key, Order: next[row]}
			switch {
			case was.Key == unborn:
				a.Op = history.OpInsert
			case isDead(v):
				a.Op, a.Version = history.OpDelete, ""
			}
			if was.Key != unborn {
				a.Prev, a.PrevWriter, a.PrevOrder = was.Key, token(was, f.txn), placeOf(was)
			}
			e.Accesses = append(e.Accesses, a)
		}
		list = append(list, at{f.step.Done, e})
	}
	for n := range c.transactions {
		if !used[n] {
			continue
		}
		t := &c.transactions[n]
		id, session := uint64(n+1), uint64(t.Session+1)
		list = append(list,
			at{t.Begin, history.Event{Kind: history.EventBegin, Session: session, Txn: id, Level: t.Level, Implicit: !t.Explicit, From: uint64(t.Begin), Tokens: []string{"t" + strconv.Itoa(n+1)}}},
			at{t.End, history.Event{Kind: history.EventEnd, Session: session, Txn: id, Outcome: t.Outcome, To: uint64(t.End)}})
	}
	rank := map[history.EventKind]int{history.EventBegin: 0, history.EventStmt: 1, history.EventEnd: 2}
	slices.SortStableFunc(list, func(a, b at) int {
		if a.moment != b.moment {
			return a.moment - b.moment
		}
		return rank[a.event.Kind] - rank[b.event.Kind]
	})
	for _, x := range list {
		events = append(events, x.event)
	}
	return events
}
