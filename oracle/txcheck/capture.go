package txcheck

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// probe is a kind of added read (TxCheck, section 3.2).
type probe string

const (
	target    probe = ""         // the statement itself
	vsr       probe = ".VSR"     // Version-Set Read, in the statement's transaction
	bwr       probe = ".BWR"     // Before-Write Read: the rows of the statement's own condition, in its transaction
	items     probe = ".ITEM"    // the rows that a read returns: the paper has their keys in the statement's own list
	committed probe = ".VSR.NOW" // Version-Set Read of what is committed, by a session of ours
	before    probe = ".WAS"     // all rows of the target, committed or not, just before it is written
	after     probe = ".AWR"     // After-Write Read: all rows of the target, committed or not, just after
)

// session is a session of the case, as far as the added reads must know it.
type session struct {
	fixed bool // its transaction has its snapshot
	tx    int
}

// observers are the sessions of ours behind the case's: one that sees what is committed, and one that sees everything.
func (c *plan) observers() (list []schedule.Session) {
	level := func(name, level string) schedule.Session {
		s := schedule.Session{Name: name}
		if level != "" {
			s.Setup = []statement.Statement{{Text: "SET SESSION TRANSACTION ISOLATION LEVEL " + level}}
		}
		return s
	}
	switch {
	case c.dbms.dirty:
		return []schedule.Session{level("txcheck-committed", "READ COMMITTED"), level("txcheck-all", "READ UNCOMMITTED")}
	case c.dbms.current:
		return []schedule.Session{level("txcheck-committed", "")}
	}
	return nil
}

// orders is the instrumented test case.
func (c *plan) orders() (orders []schedule.Order) {
	now := len(c.sessions)
	sessions := make([]session, len(c.sessions))
	for _, x := range c.statements {
		k := x.step.Session
		s := &sessions[k]
		if s.tx != x.tx {
			*s = session{tx: x.tx}
		}
		add := func(session int, p probe, sql string) {
			orders = append(orders, schedule.Order{Session: session, Name: x.name() + string(p), SQL: sql})
		}
		switch x.role {
		case control, setting:
			s.fixed = s.fixed || x.step.Statement.Begin.Snapshot
		case read:
			c.aroundRead(x, s, add, now)
		case write:
			c.aroundWrite(x, s, add, now)
			continue
		}
		add(k, target, x.text)
	}
	return orders
}

// current reports whether a statement sees the newest committed versions and not those of its transaction's snapshot.
func (c *plan) current(x *plannedStatement) bool {
	if !c.dbms.current || c.dbms.Optimistic(x.level, true) {
		return false
	}
	return x.role == write || x.locking || serial(x)
}

// aroundRead adds the reads in front of a read.
func (c *plan) aroundRead(x *plannedStatement, s *session, add func(int, probe, string), now int) {
	if len(x.tables) == 0 {
		return
	}
	if c.current(x) {
		add(now, committed, versionSet(x.tables))
		return
	}
	add(x.step.Session, vsr, versionSet(x.tables))
	if sql, ok := x.step.Statement.Addressed(keysOf(&x.step.Statement)); ok && !x.locking {
		add(x.step.Session, items, sql)
	}
	s.fixed = true
}

// aroundWrite adds the reads around a write, and the write. A read in the write's own transaction is left out where it would
// be the transaction's first and so fix the snapshot at a moment at which the case itself does not (InnoDB), or take locks.
func (c *plan) aroundWrite(x *plannedStatement, s *session, add func(int, probe, string), now int) {
	k := x.step.Session
	sees := !c.dbms.dirty || !serial(x) && (s.fixed || !x.begun || x.level == product.ReadCommitted || x.level == product.ReadUncommitted)
	if sees {
		add(k, vsr, versionSet(x.tables))
		if sql, ok := x.step.Statement.Addressed(keysOf(&x.step.Statement)); ok && !c.dbms.visible {
			add(k, bwr, sql)
		}
	}
	if c.current(x) {
		add(now, committed, versionSet(x.tables))
	}
	all := []*table{x.target}
	switch {
	case c.dbms.dirty:
		add(now+1, before, versionSet(all))
		add(k, target, x.text)
		add(now+1, after, versionSet(all))
	case !c.dbms.WriteReturning:
		add(k, target, x.text)
		add(k, after, versionSet(all))
	default:
		add(k, target, x.text)
	}
}

// keysOf are the expressions that tell which rows of its own tables a statement addresses.
func keysOf(st *statement.Statement) string {
	var list []string
	for _, u := range st.Main() {
		if u.Kind == statement.SourceTable {
			list = append(list, "'"+u.Name+"'", u.Ref+".wc_row_id", u.Ref+".wc_version")
		}
	}
	return strings.Join(list, ", ")
}

// rows maps the rows of one table to the keys of their versions.
type rows map[string]string

// seen is what a Version-Set Read returned.
type seen struct {
	tables   map[*table]rows
	previous map[Version]string // of the versions seen: the key of what they replaced, where it is known
}

// parseSet reads the answer to versionSet.
func parseSet(a answer.Result, tables []*table) (seen, error) {
	out := seen{tables: map[*table]rows{}, previous: map[Version]string{}}
	if a.Err != nil {
		return out, fmt.Errorf("an added read failed: %s", a.Err.Text())
	}
	for _, t := range tables {
		out.tables[t] = rows{}
	}
	for _, row := range a.Rows {
		n, err := strconv.Atoi(string(row[0]))
		if err != nil || len(row) != 4 || n < 0 || n >= len(tables) {
			return out, fmt.Errorf("an added read returned %q", row)
		}
		t, id, key := tables[n], string(row[1]), string(row[3])
		if row[1] == nil || row[3] == nil {
			return out, fmt.Errorf("a row of %s has no name", t.name)
		}
		if _, twice := out.tables[t][id]; twice {
			return out, fmt.Errorf("the row %s of %s is there twice", id, t.name)
		}
		out.tables[t][id] = key
		if row[2] != nil {
			out.previous[Version{t.name, id, key}] = string(row[2])
		}
	}
	return out, nil
}

// fact is what an execution of the instrumented case showed of one statement.
type fact struct {
	*plannedStatement
	step    *schedule.Step // in this execution; nil: it was not executed
	answer  answer.Result
	out     bool   // it is not in the graph: its transaction was rolled back, or this statement was undone
	why     string // it could not be seen exactly
	txn     int    // its transaction in this execution
	reads   []Version
	bwr     []Version // what the read before it showed of the rows of its condition
	asked   bool      // bwr was asked
	before  []Version
	after   []Version
	view    seen // what its transaction saw just before; empty if it was not asked
	now     seen // what was committed just before, and the transaction's own writes
	hasView bool
	hasNow  bool
	done    int
}

// capture is one execution of the instrumented case.
type capture struct {
	plan         *plan
	schedule     *schedule.Schedule
	transactions []schedule.Transaction
	facts        []*fact // of reads, writes and settings, in the order in which they were done
	writers      map[Version]*fact
	apart        []*fact // separated from their added reads: they waited
}

// run executes the instrumented case and reads what it showed. trouble says why nothing can be concluded.
func (c *plan) run(ctx context.Context, stage schedule.Stage) (out *capture, trouble string, err error) {
	sessions := append(slices.Clone(c.sessions), c.observers()...)
	s, err := stage.Run(ctx, sessions, c.orders())
	if err != nil {
		return nil, "", fmt.Errorf("execute the instrumented case: %w", err)
	}
	if s.Trouble != "" || s.Crashed {
		return nil, "the instrumented case could not be executed to its end: " + s.Trouble, nil
	}
	out, trouble = c.read(s)
	return out, trouble, nil
}

// read reads what an execution of the instrumented case showed.
func (c *plan) read(s *schedule.Schedule) (*capture, string) {
	out := &capture{plan: c, schedule: s, transactions: s.Transactions(), writers: map[Version]*fact{}}
	steps, txn := map[string]*schedule.Step{}, map[string]int{}
	for i, n := range schedule.Places(out.transactions, len(s.Steps)) {
		steps[s.Steps[i].Name], txn[s.Steps[i].Name] = &s.Steps[i], n
	}
	byDone := slices.Clone(c.statements)
	slices.SortStableFunc(byDone, func(a, b *plannedStatement) int { return doneOf(steps[a.name()]) - doneOf(steps[b.name()]) })
	r := &reader{capture: out, steps: steps, txn: txn, own: map[int][]*fact{}, saved: map[int][]savepoint{}}
	for _, x := range byDone {
		if why := r.statement(x); why != "" {
			return nil, why
		}
	}
	r.absences()
	return out, ""
}

// doneOf is the moment at which a step was done; those that were not executed come last.
func doneOf(st *schedule.Step) int {
	if st == nil {
		return 1 << 30
	}
	return st.Done
}

// reader reads an execution statement by statement.
type reader struct {
	*capture
	steps map[string]*schedule.Step
	txn   map[string]int
	own   map[int][]*fact // by transaction: its writes up to now that were not undone
	saved map[int][]savepoint
}

type savepoint struct {
	name string
	at   int // len(capture.facts)
}

func (r *reader) statement(x *plannedStatement) (trouble string) {
	st := r.steps[x.name()]
	f := &fact{plannedStatement: x, step: st, txn: -1, done: doneOf(st)}
	if st == nil {
		if x.role != control {
			f.out = true
			r.facts = append(r.facts, f)
		}
		return ""
	}
	f.txn = r.txn[x.name()]
	if x.role == control {
		r.savepoint(f)
		return ""
	}
	if st.Waited && x.role != setting {
		r.apart = append(r.apart, f)
	}
	f.answer, _ = strip(st.Answer, x.hidden)
	if x.role == setting {
		r.facts = append(r.facts, f)
		return ""
	}
	if f.txn < 0 {
		return "a statement belongs to no transaction"
	}
	switch r.transactions[f.txn].Outcome {
	case history.OutcomeUnknown:
		return "it is not known whether a transaction was committed"
	case history.OutcomeAborted:
		f.out = true
	}
	if st.Failed() {
		switch st.Reason {
		case answer.ReasonOther, "":
		default:
			f.why = "the server refused it for what its transaction or others do (" + string(st.Reason) + ")"
		}
		if r.early(f) {
			f.why = "a constraint refused it while what another transaction had written was not committed"
		}
	}
	if why := r.sets(f); why != "" {
		f.why = why
	}
	if x.role == write && !st.Failed() {
		if why := r.written(f); why != "" {
			f.why = why
		}
		r.own[f.txn] = append(r.own[f.txn], f)
		for _, v := range f.after {
			r.writers[v] = f
		}
	}
	r.facts = append(r.facts, f)
	return ""
}

// early reports whether a constraint refused a statement that may not have seen what another transaction had written by then: where statements read what is
// committed before they lock, one that fails does not wait (TiDB documentation, pessimistic transaction mode).
func (r *reader) early(f *fact) bool {
	if r.plan.dbms.AfterWait != product.WaitRestarts || !answer.BreaksConstraint(f.step.Answer.Err) {
		return false
	}
	for txn, writes := range r.own {
		if txn != f.txn && len(writes) > 0 && r.transactions[txn].End > f.step.Sent {
			return true
		}
	}
	return false
}

// savepoint follows savepoints: what was done since one that is rolled back to is as if it had not been done.
func (r *reader) savepoint(f *fact) {
	if f.step.Failed() {
		return
	}
	list := r.saved[f.txn]
	verb, name := f.step.Statement.Control.Verb, f.step.Statement.Control.Name
	at := len(list) - 1
	for at >= 0 && list[at].name != name {
		at--
	}
	switch verb {
	case statement.ControlSavepoint:
		r.saved[f.txn] = append(list, savepoint{name, len(r.facts)})
	case statement.ControlRelease:
		if at >= 0 {
			r.saved[f.txn] = list[:at]
		}
	case statement.ControlRollbackTo:
		if at < 0 {
			return
		}
		r.saved[f.txn] = list[:at+1]
		for _, g := range r.facts[list[at].at:] {
			if g.txn == f.txn {
				g.out = true
			}
		}
		r.own[f.txn] = slices.DeleteFunc(r.own[f.txn], func(g *fact) bool {
			return g.out && r.transactions[g.txn].Outcome == history.OutcomeCommitted || slices.Contains(r.facts[list[at].at:], g)
		})
	}
}

// sets reads the Version-Set Reads and the rows that were read.
func (r *reader) sets(f *fact) (why string) {
	var err error
	if st := r.steps[f.name()+string(vsr)]; st != nil {
		if f.view, err = parseSet(st.Answer, f.tables); err != nil {
			return err.Error()
		}
		f.hasView = true
	}
	if st := r.steps[f.name()+string(committed)]; st != nil {
		if f.now, err = parseSet(st.Answer, f.tables); err != nil {
			return err.Error()
		}
		f.hasNow = true
		for _, g := range r.own[f.txn] { // what the transaction wrote is not committed, but it sees it
			table, reads := f.now.tables[g.target]
			if !reads {
				continue
			}
			for _, v := range g.before {
				delete(table, v.Row)
			}
			for _, v := range g.after {
				if !isDead(v) {
					table[v.Row] = v.Key
				}
			}
		}
	}
	if st := r.steps[f.name()+string(items)]; st != nil && st.Answer.Err == nil {
		f.reads = r.items(st.Answer)
	}
	if st := r.steps[f.name()+string(bwr)]; st != nil && st.Answer.Err == nil {
		f.bwr, f.asked = r.items(st.Answer), true
	}
	if len(f.tables) > 0 && !f.hasView && !f.hasNow {
		return "what it references was not seen"
	}
	return ""
}

// items reads the answer to a query for the keys of the rows that a statement addresses.
func (r *reader) items(a answer.Result) (list []Version) {
	for _, row := range a.Rows {
		for i := 0; i+2 < len(row); i += 3 {
			if row[i+1] == nil || row[i+2] == nil { // an outer join's row that is not there
				continue
			}
			t := r.plan.table(statement.TableUse{Name: string(row[i])})
			if t == nil {
				continue
			}
			v := Version{t.name, string(row[i+1]), string(row[i+2])}
			if !slices.Contains(list, v) {
				list = append(list, v)
			}
		}
	}
	return list
}

// written finds what a write overwrote and installed.
func (r *reader) written(f *fact) (why string) {
	name := f.target.name
	number := strconv.Itoa(f.number)
	changed := func(row, was, is string) {
		f.before = append(f.before, Version{name, row, was})
		f.after = append(f.after, Version{name, row, is})
	}
	gone := dead + "." + number
	if r.plan.dbms.WriteReturning {
		_, added := strip(f.step.Answer, f.hidden)
		for _, row := range added {
			id, key := string(row[0]), string(row[2])
			switch {
			case f.step.Statement.Verb == "delete":
				changed(id, key, gone)
			case key != number: // an INSERT's rows begin with version 0
				changed(id, unborn, key)
			case row[1] == nil:
				return "a row tells no version that was overwritten"
			default:
				changed(id, string(row[1]), key)
			}
		}
		return ""
	}
	was := f.view.tables[f.target]
	if st := r.steps[f.name()+string(before)]; st != nil {
		set, err := parseSet(st.Answer, []*table{f.target})
		if err != nil {
			return err.Error()
		}
		was = set.tables[f.target]
	}
	st := r.steps[f.name()+string(after)]
	if st == nil {
		return "what it wrote was not read"
	}
	set, err := parseSet(st.Answer, []*table{f.target})
	if err != nil {
		return err.Error()
	}
	is := set.tables[f.target]
	for _, row := range slices.Sorted(maps.Keys(is)) {
		key := is[row]
		_, there := was[row]
		inserts := f.step.Statement.Verb == "insert" || f.step.Statement.Verb == "replace"
		previous, told := set.previous[Version{name, row, key}]
		switch {
		case key == number && told:
			changed(row, previous, key)
		case !there && inserts && key == "0":
			changed(row, unborn, key)
		}
	}
	deletes := f.step.Statement.Verb == "delete" || f.step.Statement.Verb == "replace"
	for _, row := range slices.Sorted(maps.Keys(was)) {
		if _, there := is[row]; there || !deletes {
			continue
		}
		key := was[row]
		if newer, ok := f.now.tables[f.target][row]; f.hasNow && ok {
			key = newer
		}
		changed(row, key, gone)
	}
	if f.step.Statement.Verb == "delete" && f.step.Answer.Affected != int64(len(f.before)) && !r.plan.dbms.dirty {
		return fmt.Sprintf("it deleted %d rows, of which %d could be seen", f.step.Answer.Affected, len(f.before))
	}
	return ""
}

func isDead(v Version) bool { return strings.HasPrefix(v.Key, dead) }

// versions lists a version set.
func (s *seen) versions() (list []Version) {
	for t, rows := range s.tables {
		for row, key := range rows {
			list = append(list, Version{t.name, row, key})
		}
	}
	slices.SortFunc(list, func(a, b Version) int {
		return cmp.Or(strings.Compare(a.Table, b.Table), strings.Compare(a.Row, b.Row), strings.Compare(a.Key, b.Key))
	})
	return list
}
