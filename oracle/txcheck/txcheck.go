// Package txcheck judges a schedule by statements without transactions: Jiang, Liu, Rigger and Su, Detecting Transactional Bugs in
// Database Engines via Graph-Based Oracle Construction (OSDI 2023).
//
// The case is executed again with reads around its statements (SQL-level instrumentation, section 3.2) that show which row versions
// each statement overwrote, installed and may have referenced. From them follows which statements depend on which
// (statement-dependency graph, section 3.1). Statements on cycles are removed and the case is executed again, until there is no
// cycle (graph decycling, section 3.3). Then any topological order of the statements, executed without transactions, must give the
// same results and the same database (theorem 1).
//
// docs/explain/txcheck.md says where and why this differs from the paper.
package txcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Descriptor describes this oracle.
var Descriptor = oracle.Oracle{
	Name: "txcheck",
	Doc: `compares statements in transactions with the same ones in an equivalent order without transactions
Needs a lab: the case is executed again, instrumented. From TxCheck (OSDI 2023).`,
}

// Options are what the oracle is handed. The zero value takes the first of all choices and checks one order.
type Options struct {
	// Intn chooses a number from 0 to n-1: of the statements on cycles the one to be removed, and the order.
	Intn func(n int) int
	// Plain is another stage, for executions without our columns; nil: the same one, which then has to be prepared each time that
	// it changes its part.
	Plain schedule.Stage
	// Keys gives the unique keys of Plain's tables by their names, all in lower case; nil: they are not known.
	Keys func(ctx context.Context) (map[string][][]string, error)
	// Orders is how many topological orders are executed; the paper, and 0, mean one.
	Orders int
}

// maxRounds bounds how often a case is executed again. Each round removes a statement or moves one that has not been moved.
const maxRounds = 60

// Check judges a schedule. An error says that the stage cannot go on.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, o Options) (schedule.Verdict, error) {
	if o.Intn == nil {
		o.Intn = func(int) int { return 0 }
	}
	o.Orders, s = max(o.Orders, 1), s.Begun()
	p, known := dbmsOf(s.DBMS())
	switch {
	case !known:
		return schedule.Verdict{Unknown: "txcheck does not know " + s.Product}, nil
	case slices.ContainsFunc(s.Transactions(), func(t schedule.Transaction) bool { return t.Retries }):
		return schedule.Verdict{Unknown: "the server may have executed the statements of a transaction again (" + s.DBMS().Retry.Name + ")"}, nil
	case s.Crashed || s.Trouble != "":
		return schedule.Verdict{Unknown: "the case was not executed to its end: " + s.Trouble}, nil
	}
	if o.Plain == nil {
		o.Plain = stage
	}
	k := &check{original: s, stage: stage, options: o}
	c, why := newPlan(s, p)
	if why == "" && c.acts {
		var err error
		if why, err = c.ask(ctx, s, &o); err != nil {
			return schedule.Verdict{}, err
		}
	}
	if why != "" {
		k.verdict.Unknown = why
		c = bare(s, p)
	}
	k.plan = c
	if why != "" || c.doubt != "" || c.replaces(s) || c.late {
		k.plain = bare(s, p)
		if why != "" {
			k.plan = k.plain
		}
		if err := o.Plain.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
			return schedule.Verdict{}, fmt.Errorf("prepare the database: %w", err)
		}
	}
	if err := k.check(ctx); err != nil {
		return schedule.Verdict{}, err
	}
	k.verdict.Notes = append(k.plan.notes, k.verdict.Notes...)
	return k.verdict, nil
}

// instrument makes the instrumented database.
func (k *check) instrument(ctx context.Context) error {
	c := k.plan
	setup := append(k.original.Prompt(false), alterations(&c.dbms, c.tables, c.selects())...)
	if err := k.stage.Prepare(ctx, setup, len(c.sessions)+len(c.observers())); err != nil {
		return fmt.Errorf("prepare the instrumented database: %w", err)
	}
	return nil
}

// check is one case under way.
type check struct {
	original *schedule.Schedule
	stage    schedule.Stage
	options  Options
	plan     *plan
	plain    *plan    // for the control execution, where it cannot have our columns; else nil
	first    *capture // of the case with all its statements
	last     *capture // of the case without cycles
	agreed   bool     // its topological orders gave the same
	verdict  schedule.Verdict
}

func (k *check) note(format string, args ...any) {
	k.verdict.Notes = append(k.verdict.Notes, fmt.Sprintf(format, args...))
}

func (k *check) check(ctx context.Context) error {
	if k.plain == nil {
		k.plain = k.plan
		if err := k.instrument(ctx); err != nil {
			return err
		}
	}
	wrong, err := k.control(ctx)
	if err != nil {
		return err
	}
	if k.verdict.Unknown == "" {
		if k.plain != k.plan {
			if err := k.instrument(ctx); err != nil {
				return err
			}
		}
		if err := k.dependencies(ctx); err != nil {
			return err
		}
	}
	if wrong != nil && !slices.ContainsFunc(k.verdict.Findings, func(f oracle.Finding) bool { return f.Kind == oracle.KindViolation }) {
		if why, err := k.byRows(ctx, wrong); err != nil || why != "" {
			k.verdict.Unknown = why
			return err
		}
		k.refute(wrong)
	}
	return nil
}

// dependencies judges the instrumented case by its dependencies, as the paper does.
func (k *check) dependencies(ctx context.Context) error {
	ready, err := k.refine(ctx)
	if err != nil || !ready {
		return err
	}
	if why := k.counters(); why != "" {
		k.verdict.Unknown = why
		return nil
	}
	return k.judge(ctx)
}

// refine executes the instrumented case until each statement stands beside its added reads (blocking scheduling, section 4), all
// of them saw what there was to see, and the graph has no cycle (figure 8).
func (k *check) refine(ctx context.Context) (ready bool, err error) {
	moved := map[int]bool{}
	for range maxRounds {
		got, trouble, err := k.plan.run(ctx, k.stage)
		if err != nil {
			return false, err
		}
		if trouble != "" {
			k.verdict.Unknown = trouble
			return false, nil
		}
		if again := k.together(got, moved); again {
			continue
		}
		if k.first == nil {
			if k.first = got; k.plan.doubt == "" {
				k.isolation(got)
			}
		}
		if f := unseen(got); f != nil {
			k.drop(f, f.why)
			continue
		}
		g := got.graph(got.truth()[0])
		cyclic := slices.DeleteFunc(g.Cyclic(), func(n int) bool { return g.Nodes[n].Settles })
		if len(cyclic) > 0 {
			number := g.Nodes[cyclic[k.options.Intn(len(cyclic))]].Statement
			k.drop(got.fact(number), "its dependencies form a cycle with those of others")
			continue
		}
		k.last = got
		return true, nil
	}
	k.verdict.Unknown = fmt.Sprintf("the case did not come to rest in %d executions", maxRounds)
	return false, nil
}

// drop removes a statement from the case.
func (k *check) drop(f *fact, why string) {
	k.plan = k.plan.without(f.number)
	k.note("%s was removed from the test case: %s", f.plannedStatement.step.Name, why)
}

// together sees to it that statements and their added reads are executed side by side: one that waited is moved to where it went
// on, and removed if that does not help (the paper removes it at once). It reports whether the case must be executed again.
func (k *check) together(got *capture, moved map[int]bool) (again bool) {
	if len(got.apart) == 0 {
		return false
	}
	for _, f := range got.apart {
		if moved[f.number] {
			k.drop(f, "it waited for another transaction's lock and cannot be executed beside its added reads")
			return true
		}
	}
	for _, f := range got.apart {
		moved[f.number] = true
	}
	done := map[string]*schedule.Step{}
	for i := range got.schedule.Steps {
		done[got.schedule.Steps[i].Name] = &got.schedule.Steps[i]
	}
	ordered := *k.plan
	ordered.statements = slices.Clone(k.plan.statements)
	slices.SortStableFunc(ordered.statements, func(a, b *plannedStatement) int { return doneOf(done[a.name()]) - doneOf(done[b.name()]) })
	k.plan = &ordered
	return true
}

// unseen finds a statement of the graph that was not seen exactly, or that rests on what was rolled back.
func unseen(got *capture) *fact {
	for _, f := range got.facts {
		if f.out || f.role == setting {
			continue
		}
		if f.why != "" {
			return f
		}
		if f.level == product.ReadUncommitted && f.hasNow && f.role == write && bothWays(f) {
			f.why = "at READ UNCOMMITTED it reads its table with and without locks"
			return f
		}
		if got.plan.dbms.current && nonlocking(f) {
			f.why = "it locks the newest rows of some tables and reads others without locks"
			return f
		}
		for _, v := range append(f.set(got.truth()[0]), f.before...) {
			if w := got.writers[v]; w != nil && w.out {
				f.why = "it read or replaced what " + w.plannedStatement.step.Name + " had written and took back"
				return f
			}
		}
	}
	return nil
}

// counters says why nothing can be concluded since a statement that is left out may have used up a number of a counter.
func (k *check) counters() string {
	counts, leftOut := false, k.plan.removed
	for _, f := range k.last.facts {
		counts = counts || f.counter
		leftOut = leftOut || f.counter && (f.out || f.step == nil || f.step.Failed())
	}
	if counts && leftOut {
		return "the database counts rows by itself, and statements that are left out may have used up numbers"
	}
	if counts {
		return k.ahead()
	}
	return ""
}

// fact finds the fact of a statement.
func (c *capture) fact(number int) *fact {
	i := slices.IndexFunc(c.facts, func(f *fact) bool { return f.number == number })
	return c.facts[i]
}

// view is a rule by which the versions that a write references are taken from its added reads.
type view uint8

const (
	bySnapshot view = iota // the paper's: the reads in the write's own transaction
	byCurrent              // what was committed, and its transaction's own writes
	byTarget               // the written table as byCurrent, other tables as bySnapshot
)

// truth are the rules that the product may follow, the likeliest first.
func (c *capture) truth() []view {
	switch p := &c.plan.dbms; {
	case p.SubqueryEither: // a subquery that does not depend on the row may be evaluated on the snapshot
		return []view{byCurrent, byTarget}
	case p.current:
		return []view{byCurrent}
	}
	return []view{bySnapshot}
}

// set is the version set of a statement by a rule, of the tables that it reads.
func (f *fact) set(by view) (list []Version) {
	own, newest := f.view, f.now
	if !f.hasView {
		own = f.now
	}
	if !f.hasNow {
		newest = f.view
	}
	if f.level == product.ReadUncommitted && by == byCurrent && f.role == write && f.hasView {
		by = uncommitted(&f.plannedStatement.step.Statement)
	}
	for _, t := range f.tables {
		source := slices.Contains(f.sources, t)
		if !source && !f.readsTable(t) {
			continue
		}
		if source && f.role == write { // whatever rule holds for the tables to which the actions lead
			one := seen{tables: map[*table]rows{t: own.tables[t]}}
			list = append(list, one.versions()...)
		}
		from := own
		if f.role == read && f.hasNow || by == byCurrent || f.role == write && source || by == byTarget && t == f.target {
			from = newest
		}
		one := seen{tables: map[*table]rows{t: from.tables[t]}}
		list = append(list, one.versions()...)
	}
	return list
}

// uncommitted is the rule for a write at READ UNCOMMITTED. What INSERT ... SELECT and an UPDATE's subqueries read is not locked and so
// may not be committed; the rows that an UPDATE or DELETE looks for, and what a DELETE's subqueries read, are locked (InnoDB,
// ha_innobase::store_lock).
func uncommitted(st *statement.Statement) view {
	switch st.Verb {
	case "insert", "replace":
		return bySnapshot
	case "update":
		return byTarget
	}
	return byCurrent
}

// nonlocking reports whether a locking read reads something without locks: the clause does not hold for subqueries (MySQL manual,
// 17.7.2.4 Locking Reads), which are read from the snapshot, where there is one, or at READ UNCOMMITTED as they are, as a SELECT's other
// tables are.
func nonlocking(f *fact) bool {
	if f.role != read || !f.plannedStatement.locking || !slices.Contains([]string{product.ReadUncommitted, product.RepeatableRead, product.Snapshot}, f.level) {
		return false
	}
	return slices.ContainsFunc(f.plannedStatement.step.Statement.Reads(), func(u statement.TableUse) bool { return u.Lock == statement.LockNone })
}

// bothWays reports whether a write reads its target in two ways at READ UNCOMMITTED.
func bothWays(f *fact) bool {
	reads := 0
	for _, u := range f.plannedStatement.step.Statement.Reads() {
		if strings.EqualFold(u.Name, f.target.name) {
			reads++
		}
	}
	return f.plannedStatement.step.Statement.Verb == "update" && reads > 1
}

// graph makes the statement-dependency graph of the statements that were committed.
func (c *capture) graph(by view) *Graph {
	var nodes []Node
	for _, f := range c.facts {
		if f.out {
			continue
		}
		st := &f.plannedStatement.step.Statement
		n := Node{Statement: f.number, Session: f.plannedStatement.step.Session, Settles: f.role == setting, Defines: f.defines, Write: f.role == write}
		if f.role != setting {
			n.Reads, n.Before, n.After, n.Set = f.reads, f.before, f.after, f.set(by)
			n.Constraint = f.constraint
			n.Value = n.Write && (st.HasSubquery || slices.ContainsFunc(st.Assignments, schedule.Computed))
			n.Predicate = st.Predicate || !n.Value
		}
		nodes = append(nodes, n)
	}
	return NewGraph(nodes)
}
