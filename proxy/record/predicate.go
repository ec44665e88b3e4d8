package record

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// view is what the ticks say of when a transaction took its view of the database.
type view struct {
	first    uint64 // tick before its first statement was sent that may have taken a snapshot
	any      uint64 // tick after the answer to the first one that certainly had
	read     uint64 // the same of the first plain read
	last     uint64 // tick before the last statement was sent
	imported bool   // it took over another session's snapshot, or had taken its own before it was noticed
	part     product.Participation
}

// sent notes a statement of the transaction. implicit says that no BEGIN made it.
func (v *view) sent(tk *Ticket, implicit bool) {
	v.last = tk.from
	if tk.plan.Verb == "set" {
		// SET TRANSACTION SNAPSHOT (PostgreSQL): what it sees is older than the transaction.
		v.imported = v.imported || strings.Contains(strings.ToUpper(tk.plan.Text), "SNAPSHOT")
	} else if v.first == 0 {
		v.first = tk.looks.before(tk.from, implicit)
	}
}

// atBegin notes that BEGIN took the snapshot.
func (v *view) atBegin(from, to uint64) { v.first, v.any, v.read = from, to, to }

// answered notes that a statement which reads or writes tables succeeded, and how many rows it certainly found.
func (v *view) answered(p *rewrite.Plan, found int, to uint64, moments []condition.Value) {
	if v.any == 0 && p.Verb != "set" {
		v.any = to
	}
	if v.read != 0 || p.Verb != "select" || len(p.Asks) == 0 || slices.ContainsFunc(p.Asks, func(a rewrite.Ask) bool { return a.Current }) {
		return
	}
	if found > 0 || slices.ContainsFunc(p.Asks, func(a rewrite.Ask) bool {
		b := settled(&a)
		if b.Where = b.Where.At(moments); b.Groups.OfAggregates() { // which the server cannot know to be false
			b.Where, _ = b.Where.Groups()
		}
		return b.Looks()
	}) {
		v.read = to
	}
}

// settled is an Ask in which parameters whose values are not known are unknown.
func settled(a *rewrite.Ask) *rewrite.Ask {
	b := a.Bind(func(int) (condition.Value, bool) { return nil, false })
	return &b
}

// back notes that the transaction went back to a savepoint that stands in front of statement n: it may begin again with another view.
func (v *view) back(p *product.Product, n int) {
	if p.SavepointRestarts && v.part.RollbackTo(n) {
		v.first, v.any, v.read = 0, 0, 0
	}
}

// Wants sets what is called with each predicate read for which images are to be captured from now on.
func (t *Tracker) Wants(want func(*rewrite.Ask)) {
	if !t.rec.NoPredicates {
		t.want = want
	}
}

// predicates fills in what a statement asked. The event has its accesses, of a suspended answer only the first.
func (t *Tracker) predicates(r *Running, ev *history.Event, res Result) {
	p, x := r.ticket.plan, r.ticket.txn
	logs := p.Log && !res.None // what it found comes later
	if ev.Error != nil || !touches(p) {
		return
	}
	if p.Any && !p.Settled {
		replaceable(p, ev, r.decoded)
	}
	x.seen.part.Use(ev.N)
	rows := len(ev.Accesses)
	if p.Keys > 0 { // each row of the answer tells something of a row that was found
		rows += r.decoded
	}
	if p.AsksExistence() && r.row && !r.none {
		rows++
	}
	x.seen.answered(p, rows, ev.To, r.moments)
	if t.rec.NoPredicates {
		if ev.Predicate = p.Predicate || len(p.Asks) > 0; ev.Predicate {
			ev.Unread = "predicates are off"
		}
		return
	}
	if res.Suspended {
		ev.Predicate, ev.Unread = p.Predicate || len(p.Asks) > 0, inParts
		return
	}
	if ev.Unread = p.Unread; p.Predicate && p.Unread == "" && len(p.Asks) == 0 {
		ev.Unread = "conditions are not evaluated in statements of this form"
	}
	ev.Predicate = ev.Predicate || p.Unread != "" && p.Verb == "select" && rows == 0 && ev.Coverage == history.CoverageExact // a whole key that no row has
	for i := range p.Asks {
		a := &p.Asks[i]
		if a.Beside && r.decoded == 0 && ev.Coverage == history.CoverageOpaque {
			ev.Predicate, ev.Unread = true, "it is not known whether the answer has rows"
			continue
		}
		groups := r.groups(a)
		if (a.Within || a.Beside || a.Having && groups == nil) && r.decoded == 0 || a.Met && ev.Coverage == history.CoverageOpaque {
			continue
		}
		if inserted := r.inserted(a); a.Met && inserted != condition.False {
			if inserted == condition.Unsure && t.want != nil {
				t.want(settled(a))
			}
			continue
		}
		found := accesses(ev, a.Table)
		later := a.Pinned && !a.Met && logs
		if a.Pinned && !a.Met && found > 0 {
			continue
		}
		a = settled(a)
		open := a.Where
		a.Where, a.Beyond = open.WithLists(r.lists).At(r.moments), a.Beyond.WithLists(r.lists)
		none := r.none || a.Within || a.Beside || a.Lacked // NOT EXISTS was true
		if a.ByRow {
			none = !r.row && r.opaque == ""
		}
		locks := t.dbms.SnapshotAt == product.AtFirstRead && (a.Current || a.Within && !product.Relaxed(x.level))
		read := history.PredicateRead{Table: a.Table, Current: locks || a.Met || latest(t.dbms, x, a), Met: a.Met, Within: a.Within && !a.Met, Counted: a.Single || a.Counted, Snapshot: r.snapshot, Whole: a.Exists || a.Lacked || ev.Coverage == history.CoverageExact && !logs && !a.Met}
		sure := !slices.ContainsFunc(ev.Accesses, func(r history.Access) bool { return r.Approx && r.Row.Table == a.Table }) // it names the rows that it read
		ok := false
		skips, hides := a.Skips(), a.Hides(found, r.decoded, read.Whole || r.blank)
		r.shows(a, groups, hides, &read)
		switch read.From, read.To, ok = t.sees(x, r.ticket, a, ev.To); {
		case !ok:
			ev.Unread = "it is not known when the transaction took its view of the database"
		case a.Lacked && r.decoded == 0:
		case skips && (a.Merged || a.Single || a.Around || r.decoded == 0 || found == 0): // one row more or less may change nothing
			ev.Unread = rewrite.SkipsRows
		case a.Folds && (found > 0 || ev.Coverage != history.CoverageExact || logs):
			ev.Unread = rewrite.LookAlike
		case hides && (a.Beyond.Op == "" || a.Beyond.Op == "unsure"):
			ev.Unread = "LIMIT may have hidden rows"
		default:
			if read.Some = (a.Exists && !none || p.Any && hides) && !named(ev, a.Table); read.Some {
				a.Where = r.some(open)
			} else {
				a.Where = r.others(a, a.Exists && !none, hides, skips)
			}
			read.Whole = read.Whole && sure && !hides && !skips && !read.Some
			read.Where = a.Where.String()
			r.asks(a, ev, read, later)
		}
		if ok && (a.Lacked || a.Bars) {
			read.Where, read.Some, read.Whole = r.some(open).String(), true, false
			ev.Reads = append(ev.Reads, read)
		}
		ev.Predicate = ev.Predicate || !later
		if a.Pinned && t.want != nil {
			t.want(a)
		}
	}
}

// groups gives what is known of the groups of an answer that may hide some (rewrite.Ask.Groups); nil if that does not decide.
func (r *Running) groups(a *rewrite.Ask) *condition.Groups {
	if a.Groups == nil || a.List < 0 || a.List >= len(r.lists) {
		return nil
	}
	known, ok := settled(a).Groups.With(r.lists[a.List])
	if !ok || len(known.Having.Reasons()) > 0 {
		return nil
	}
	return known
}

// shows notes the groups of which the answer shows some, and the column whose greatest or least value it shows, as history.PredicateRead.Last. Of MAX and MIN it decides the
// answer, see rewrite.Extreme.
func (r *Running) shows(a *rewrite.Ask, groups *condition.Groups, hides bool, read *history.PredicateRead) {
	switch {
	case groups != nil:
		a.Where, _ = a.Where.Groups()
		read.Groups = groups.Text()
		read.Counted = read.Counted && len(groups.By) == 0 && r.decoded > 0
		read.Whole = read.Whole && !(groups.Fixed && len(groups.By) > 0) // of other groups it reads nothing
	case a.Extreme != nil && len(r.totals) == 1:
		if decides, ok := a.Extreme.Decides(a.Where, r.totals[0]); ok {
			a.Where, read.Whole, read.Last = decides, false, a.Extreme.Column // the accesses name other rows, too
		}
	case hides && r.decoded == 1:
		first := &a.Beyond
		for len(first.Args) > 0 {
			first = &first.Args[0]
		}
		read.Last = first.Column
	}
}

// asks keeps a predicate read of an event. later says that it matters if the log tells no row of it.
func (r *Running) asks(a *rewrite.Ask, ev *history.Event, read history.PredicateRead, later bool) {
	if later {
		r.pinned = append(r.pinned, read)
		return
	}
	ev.Reads = append(ev.Reads, read)
	if a.Groups != nil && a.List == rewrite.ListOfLog && len(a.Groups.Having.Reasons()) == 0 {
		r.logged = &loggedGroups{len(ev.Reads) - 1, a.Groups}
	}
}

// accesses counts those of a statement in a table.
func accesses(ev *history.Event, table string) (n int) {
	for i := range ev.Accesses {
		if ev.Accesses[i].Row.Table == table {
			n++
		}
	}
	return n
}

// some gives the condition for rows of any of the lists, of one whose values come with the answer.
func (r *Running) some(open condition.Condition) condition.Condition {
	return open.WithoutLists().WithLists(r.lists).At(r.moments)
}

// others gives the condition for the rows that would change the answer. is says that EXISTS was true; hides and skips, that LIMIT and OFFSET may hide rows.
func (r *Running) others(a *rewrite.Ask, is, hides, skips bool) condition.Condition {
	switch {
	case is:
		return condition.Never
	case hides && skips:
		return condition.And(a.Where, condition.Condition{Op: "or", Args: []condition.Condition{a.Beyond, a.Alike.WithLists(r.lists)}})
	case hides: // the rows of the answer are others, besides
		return condition.And(a.Where, a.Beyond)
	}
	return a.Where
}

// named reports whether the accesses of a statement name a row of a table that it read for certain.
func named(ev *history.Event, table string) bool {
	return slices.ContainsFunc(ev.Accesses, func(a history.Access) bool { return a.Op == history.OpRead && !a.Approx && a.Row.Table == table })
}

// replaceable marks the rows in the place of which others would have done as well, since the answer shows as many rows as LIMIT allows, and nothing of them
// (rewrite.Plan.Any). If one of them goes, the answer may stay as it is, so no finding rests on them.
func replaceable(p *rewrite.Plan, ev *history.Event, rows int) {
	for i := range ev.Accesses {
		a := &ev.Accesses[i]
		k := slices.IndexFunc(p.Asks, func(q rewrite.Ask) bool { return q.Table == a.Row.Table })
		if a.Op == history.OpRead && (k < 0 || !p.Asks[k].Pinned && (p.Asks[k].Exists || !settled(&p.Asks[k]).Allows(max(rows, 1)+1))) {
			a.Approx = true
		}
	}
}

// inserted says whether an INSERT that looked for a row in its way has inserted its own: of a part of WITH, which has a table for itself, what it
// wrote tells, and of several rows, of which it inserted some, their images. On products that take the values in another form (Ask.Relation), it is sure
// only of those that the columns have as they are.
func (r *Running) inserted(a *rewrite.Ask) (was condition.Truth) {
	was = condition.False
	switch some := r.decoded > 0 && r.decoded != r.Plan().Rows; {
	case a.Within:
	case r.decoded > 0 && !(r.Plan().Met && some):
		return condition.True
	case a.Relation != nil && (some || !settled(a).Looks()):
		return condition.Unsure
	case !some:
		return was
	}
	for _, w := range r.accesses {
		if !w.Op.Writes() || w.Row.Table != a.Table {
			continue
		}
		if !r.Plan().Met {
			return condition.True
		}
		image, err := condition.ParseImage(w.Image)
		if err != nil {
			return condition.Unsure
		}
		switch settled(a).Where.Holds(image) {
		case condition.True:
			return condition.True
		case condition.Unsure:
			was = condition.Unsure
		}
	}
	return was
}

// met reports whether it is known of each row of an INSERT whether it was inserted.
func (r *Running) met() bool {
	return r.Plan().Met && !slices.ContainsFunc(r.Plan().Asks, func(a rewrite.Ask) bool { return a.Met && r.inserted(&a) == condition.Unsure })
}

// Existed takes the first value of a row of the answer, in text or binary form, to a statement that asks for existence (rewrite.Plan.AsksExistence).
func (r *Running) Existed(value []byte) {
	r.row = true
	no := string(value) == "f" || string(value) == "0" || len(bytes.Trim(value, "\x00")) == 0
	r.none = len(value) > 0 && no != r.Plan().Asks[0].Absent
}

// latest reports whether a statement of a transaction that took its view at BEGIN reads what is committed when it begins.
func latest(p *product.Product, x *txn, a *rewrite.Ask) bool {
	return p.SnapshotAt == product.AtBegin && a.Current && x.level == product.RepeatableRead
}

// sees gives the ticks between which it was settled what a statement could see.
func (t *Tracker) sees(x *txn, tk *Ticket, a *rewrite.Ask, to uint64) (from, upTo uint64, ok bool) {
	if x.seen.imported {
		return 0, 0, false
	}
	moment := t.dbms.SnapshotAt
	if a.Met || latest(t.dbms, x, a) || moment == product.AtFirstRead && a.Within || product.Relaxed(x.level) || moment == product.AtFirstRead && (a.Current || x.level == product.Serializable) {
		return tk.from, to, true
	}
	switch moment {
	case product.AtBegin:
		return x.from, cmp.Or(x.seen.read, to), true
	case product.AtFirstStatement:
		return x.seen.first, x.seen.any, true
	case product.AtFirstRead:
		if x.seen.read == 0 && x.implicit && !t.Manual { // the statement is the transaction
			return x.seen.first, to, true
		}
		return x.seen.first, x.seen.read, x.seen.read != 0
	}
	return 0, 0, false
}
