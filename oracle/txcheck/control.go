package txcheck

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/rewrite"
	"wirecheck/statement"
)

// Besides the instrumented case, which is judged as the paper does, the schedule that was handed in is judged, too: it may be the
// only execution in which something went wrong. For that the case is executed once more with its own statements as they are, in
// the order in which they were submitted, on the same tables (the control execution). No read is added to it, so no level makes a
// difference. As far as statements waited for one another and transactions ended in the same way, a correct product gives the
// same results, and the graph of the instrumented case says which order without transactions these are equivalent to.

// control executes the case as it was submitted, and compares.
func (k *check) control(ctx context.Context) (*difference, error) {
	if why := k.unrepeatable(); why != "" {
		k.note("the schedule itself was not compared: %s", why)
		return nil, nil
	}
	list := make([]*schedule.Step, len(k.original.Steps))
	names := map[string]*schedule.Step{}
	var orders []schedule.Order
	for i := range k.original.Steps {
		list[i] = &k.original.Steps[i]
	}
	slices.SortStableFunc(list, func(a, b *schedule.Step) int { return a.Sent - b.Sent })
	for i, st := range list {
		sql, why := k.plain.plain(st, i+1)
		if why != "" {
			k.note("the schedule itself was not compared: %s", why)
			return nil, nil
		}
		name := "C" + strconv.Itoa(i+1)
		names[name] = st
		orders = append(orders, schedule.Order{Session: st.Session, Name: name, SQL: sql})
	}
	stage := k.stage
	if k.plain.untouched {
		stage = k.options.Plain
	}
	got, err := stage.Run(ctx, k.plain.sessions, orders)
	if err != nil {
		return nil, fmt.Errorf("execute the case again: %w", err)
	}
	if got.Trouble != "" || got.Crashed {
		k.note("the schedule itself was not compared: it could not be executed again: %s", got.Trouble)
		return nil, nil
	}
	return k.follow(got, names), nil
}

// ahead says why the numbers that counters give are others in each database.
func (k *check) ahead() string {
	if p := k.original.DBMS(); p.NumbersAhead && counting.MatchString(strings.Join(k.original.Setup, ";\n")) {
		return p.Title + " hands out numbers in advance"
	}
	return ""
}

// unrepeatable says why the case may do something else each time.
func (k *check) unrepeatable() string {
	if k.original.Varies() != "" {
		return "the setup makes another database each time"
	}
	if why := k.ahead(); why != "" {
		return why
	}
	for i := 1; i < len(k.original.Steps); i++ {
		if a, b := &k.original.Steps[i-1], &k.original.Steps[i]; a.Sent == b.Sent && a.Session == b.Session {
			return b.Name + " holds several statements"
		}
	}
	return replaced(k.original)
}

// plain is a statement as it is sent to tables with our columns without being instrumented. why says that it cannot be.
func (c *plan) plain(st *schedule.Step, number int) (sql, why string) {
	d := &st.Statement
	switch {
	case d.Volatile != "" && d.Verb != "set" && d.Control.Verb == statement.ControlNone:
		return "", st.Name + " may give another result each time: " + d.Volatile
	case schedule.Skips(d):
		return "", st.Name + " leaves out what is locked: which index records are is the plan's choice"
	case !c.dbms.visible || c.untouched || d.Unparsed || d.Control.Verb != statement.ControlNone:
		return d.Text, ""
	case showsColumns(d):
		return "", st.Name + " would show the added columns to itself"
	case d.Insert == nil:
		return d.Text, ""
	}
	var target *table
	for _, u := range d.Targets() {
		target = c.table(u)
	}
	if target == nil {
		return "", st.Name + " writes a table that is not known"
	}
	var edits []rewrite.Edit
	if why := instrumentInsert(&c.dbms, d, target, number, func(at int, add string) { edits = append(edits, rewrite.Edit{At: at, Add: add}) }); why != "" {
		return "", st.Name + ": " + why
	}
	slices.SortStableFunc(edits, func(a, b rewrite.Edit) int { return a.At - b.At })
	return rewrite.Apply(d.Text, edits), ""
}

// follow compares step by step as long as both executions go the same way.
func (k *check) follow(got *schedule.Schedule, names map[string]*schedule.Step) *difference {
	want := make([]*schedule.Step, 0, len(got.Steps)) // what the control execution gave
	for i := range got.Steps {
		if names[got.Steps[i].Name] != nil {
			want = append(want, &got.Steps[i])
		}
	}
	apart := func(why string) *difference {
		k.note("the schedule was compared with its repetition only until they went different ways: %s", why)
		return nil
	}
	transactions := k.original.Transactions()
	p, _ := dbmsOf(k.original.DBMS())
	halfway := ""
	for i := range k.original.Steps {
		st := &k.original.Steps[i]
		if i >= len(want) || names[want[i].Name] != st {
			return apart(st.Name + " was not done in its turn")
		}
		for n := range k.original.Steps[i+1:] {
			if other := &k.original.Steps[i+1+n]; together(st, other, n == 0) {
				return apart(st.Name + " and " + other.Name + " went on at the same time, in an order that nobody sees")
			}
		}
		w := want[i]
		if w.Waited != st.Waited || w.After != st.After && concurrent(w) == "" && concurrent(st) == "" && w.Failed() == st.Failed() {
			return apart(st.Name + " waited in one of them only")
		}
		if concurrent(w) != concurrent(st) {
			return apart(st.Name + " was refused for what transactions do in one of them only")
		}
		if schedule.Skips(&st.Statement) && len(st.Statement.Targets()) > 0 {
			return apart(st.Name + " leaves out rows by the locks that it meets")
		}
		if t := schedule.Of(transactions, i); t != nil {
			if other := p.halfDone(st, t.Level, k.original.Steps); other != "" {
				if len(st.Statement.Targets()) > 0 {
					return apart(st.Name + " can see what " + other + " had done before it waited")
				}
				continue
			}
		}
		if other := p.passed(st, k.original); halfway == "" && other != "" {
			halfway = "what " + other + " wrote while " + st.Name + " waited in the middle of its scan lies before the scan or behind it, as its plan goes"
		}
		if concurrent(st) != "" || !k.plain.comparable(&st.Statement) {
			continue
		}
		answer := w.Answer
		if !k.plain.untouched {
			answer, _ = strip(w.Answer, 0)
		}
		if d := compareAnswers(answer, st.Answer, k.plain.counts(&st.Statement), st.Statement.Text); d != nil {
			if d.step = st; halfway != "" {
				return apart(halfway)
			}
			return d
		}
	}
	if len(want) > len(k.original.Steps) {
		return apart("more statements were executed again than in the schedule")
	}
	final := got.Final
	if !k.plain.untouched {
		final = stripTables(final)
	}
	d := compareTables(final, k.original.Final)
	if d != nil && halfway != "" {
		return apart(halfway)
	}
	return d
}

// passed names a statement that put rows into a place of the tables of st, or gave them another one, while st waited in the middle of its scan, or that has
// moved the row for which it waited; empty: there is none. Which of these rows st comes to afterwards depends on the index by which its plan goes.
func (p *dbms) passed(st *schedule.Step, s *schedule.Schedule) string {
	if !st.Waited || p.AfterWait != product.WaitGoesOn || planless(&st.Statement) {
		return ""
	}
	for i := range s.Steps {
		o := &s.Steps[i]
		moves := slices.ContainsFunc(o.Statement.Assignments, func(a statement.Assignment) bool { return schedule.KeyColumn(strings.Join(s.Setup, ";\n"), a.Column) })
		if o.Session == st.Session || o.Failed() || o.Done > st.Done || o.Statement.Verb == "delete" || o.Done < st.Sent && !moves {
			continue
		}
		if slices.ContainsFunc(o.Statement.Targets(), func(u statement.TableUse) bool {
			return slices.ContainsFunc(st.Statement.Tables, func(v statement.TableUse) bool { return p.SameTable(u.Name, v.Name) })
		}) {
			return o.Name
		}
	}
	return ""
}

// planless reports whether InnoDB has only one way to come to the rows of a statement: it writes out the rows of one table, or changes all of one in the
// order of its clustered index (MySQL manual, 17.6.2.1).
func planless(st *statement.Statement) bool {
	if st.Insert != nil {
		return st.Insert.Select == "" && len(st.Tables) == 1
	}
	c := &st.Clauses
	return len(st.Tables) == 1 && len(st.Assignments)+len(st.Targets()) > 0 && (st.Verb == "update" || st.Verb == "delete") && c.Where+c.OrderBy+c.Limit == ""
}

// counts reports whether the number of changed rows is the same with our columns: a row that REPLACE or ON DUPLICATE KEY UPDATE
// would leave as it is changes if it has one more column (MySQL family).
func (c *plan) counts(st *statement.Statement) bool {
	return !c.dbms.family || c.untouched || st.Verb != "replace" && (st.Insert == nil || !st.Insert.Conflict)
}

// together reports whether one event may have let two statements go on that waited at the same time: b was done right after a, or
// they waited for the same session. Then the server's own order need not be that of the answers.
func together(a, b *schedule.Step, next bool) bool {
	if !a.Waited || !b.Waited || b.Sent > a.Done {
		return false
	}
	return next || len(a.For) == 0 || len(b.For) == 0 || slices.ContainsFunc(a.For, func(s int) bool { return slices.Contains(b.For, s) })
}

// concurrent is why a statement failed, if that depends on other transactions.
func concurrent(st *schedule.Step) string {
	if st.Reason == answer.ReasonOther || st.Reason == answer.ReasonFailed {
		return ""
	}
	return string(st.Reason)
}

// comparable reports whether the same statement on the same database gives the same result, also in a database of another name and
// with columns of ours.
func (c *plan) comparable(st *statement.Statement) bool {
	switch st.Verb {
	case "select", "insert", "update", "delete", "replace":
	default:
		return false
	}
	if st.Volatile != "" || st.Unparsed || physical.MatchString(st.Text) || schedule.Skips(st) {
		return false
	}
	return !slices.ContainsFunc(st.Tables, func(u statement.TableUse) bool {
		if u.Kind != statement.SourceTable {
			return u.Kind == statement.SourceFunction && !c.untouched && c.dbms.visible
		}
		return catalog.MatchString(u.Schema + "." + u.Name)
	})
}

// catalog finds the names of the servers' own tables.
var catalog = regexp.MustCompile(`(?i)^(?:(?:information_schema|pg_catalog|mysql|performance_schema|sys|metrics_schema)\.|\.pg_)`)

// refute reports that the schedule differs from the control execution.
func (k *check) refute(d *difference) {
	if d.reference == nil {
		for i := range k.original.Steps {
			d.reference = append(d.reference, k.line(&k.original.Steps[i]))
		}
	}
	f := k.violation(d)
	f.Difference.Rule = "the same statements, submitted in the same order, where the same ones waited and the same transactions ended in the same way, give the same results"
	if k.agreed {
		f.Difference.Rule += "; these are those of a topological order of the statements' dependencies without transactions (TxCheck, theorem 1)"
	} else {
		f.Difference.Rule += "; expected is what a second execution gave: which of the two is wrong is not known"
	}
	k.report(f)
}
