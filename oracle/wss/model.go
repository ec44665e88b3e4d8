package wss

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// model executes a schedule by the rules that a product documents for writes: which rows a statement sees, for which it waits, and what
// it does with rows that others changed while it waited. Rows and their versions are its own; what a statement does to a row is
// evaluated on the stage, in autocommit and alone, so that no transaction's code takes part in it.
//
// Where the rules leave a choice (a scan's order is the server's), all choices are tried. A rule that no choice can obey with what was
// observed - a statement that did not wait for a row that another transaction had written - ends the branch.
type model struct {
	scene
	c           *check
	cache       map[string]effect
	evaluations int
	limit       int
	prepared    bool
	loose       string // why the model is not exact: then nothing follows from its disagreement
	leaves      int
}

// scene is what the model knows from the start: the schedule, its transactions and tables, and with them what each statement can see.
type scene struct {
	s            *schedule.Schedule
	dbms         *product.Product
	transactions []schedule.Transaction
	of           []int // by step: the transaction; -1: none
	tables       []answer.Table
	linked       bool    // tables refer to others
	names        [][]int // by table: the columns of its primary key
	keys         [][]int // by table: the columns of the clustered index; nil: rows have no such key
	ends         []int   // the moments at which transactions ended
}

// act is what one write did in the model.
type act struct {
	step      int
	addressed []int       // rows
	passed    map[int]tag // rows that it could have addressed at its end, and by which rule it did not
	read      view        // of the tables that it reads without locks
	whole     bool        // it was evaluated on whole tables
}

// tag is the rule by which a row was passed by.
type tag int

const (
	tagNone     tag = iota
	tagLocked       // semi-consistent read: its last committed version does not match, and another transaction holds its lock
	tagReleased     // it did not match, so that its lock was released, and was changed later
	tagGap          // it was not there
	tagMoved        // it matched all the time, but its key was changed behind the scan
)

// branch is one way in which the schedule can have gone.
type branch struct {
	store store
	acts  []act
}

const (
	evaluationLimit = 600
	leafLimit       = 4000
	choiceLimit     = 256 // ways in which one statement can go
)

// newModel begins with the initial database.
func (c *check) newModel(s *schedule.Schedule, transactions []schedule.Transaction, initial []answer.Table) *model {
	m := &model{scene: newScene(s, transactions, initial), c: c, cache: map[string]effect{}, limit: c.options.Evaluations}
	if m.limit == 0 {
		m.limit = evaluationLimit
	}
	return m
}

func newScene(s *schedule.Schedule, transactions []schedule.Transaction, initial []answer.Table) scene {
	m := scene{s: s, dbms: s.DBMS(), transactions: transactions, tables: slices.Clone(initial)}
	m.of = schedule.Places(transactions, len(s.Steps))
	for i := range transactions {
		m.ends = append(m.ends, transactions[i].End)
	}
	slices.Sort(m.ends)
	m.linked = reference.MatchString(strings.Join(s.Setup, "\n"))
	m.keys = make([][]int, len(m.tables))
	m.names = make([][]int, len(m.tables))
	for name, columns := range clusteredKeys(s.Setup) {
		if t := m.table(name); t >= 0 {
			m.names[t] = m.columns(t, columns)
		}
	}
	if m.dbms.Clustered == product.Yes {
		m.keys = m.names
	}
	return m
}

// impossible says why the model cannot be applied; empty: it can.
func (m *scene) impossible() string {
	if m.dbms.AfterWait == product.WaitUnknown {
		return "which rows a write of " + m.dbms.Title + " sees is not known"
	}
	if slices.ContainsFunc(m.transactions, func(t schedule.Transaction) bool { return t.Retries }) {
		return "the server may have executed the statements of a transaction again (" + m.dbms.Retry.Name + ")"
	}
	if hit := opaque.FindString(strings.Join(m.s.Setup, "\n")); hit != "" {
		return "the setup has " + strings.ToLower(hit)
	}
	if selfReference(m.s.Setup) {
		return "a table refers to itself"
	}
	for n := range m.s.Steps {
		st := &m.s.Steps[n].Statement
		if m.of[n] < 0 || m.s.Steps[n].Failed() && concurrent(m.s.Steps[n].Reason) {
			continue
		}
		switch {
		case st.Control.Verb != statement.ControlNone || st.Verb == "set" || isRead(st), schedule.Upkeep(m.s.Setup, st):
		case st.Unparsed || st.DDL || !isWrite(st) || st.Volatile != "" || st.Variables || st.Verb == "merge":
			// MERGE chooses its action again when a row was changed or deleted meanwhile (PostgreSQL manual, 13.2.1).
			return "it cannot follow " + st.Text
		}
		if other := m.peeks(n); other != nil {
			return fmt.Sprintf("%s sees what %s has done so far", st.Text, other.Statement.Text)
		}
		if schedule.Upkeep(m.s.Setup, st) {
			continue
		}
		for _, u := range st.Tables {
			if isWrite(st) && u.Kind == statement.SourceTable && m.table(u.Name) < 0 {
				return u.Name + " is no table"
			}
		}
	}
	return ""
}

// peeks gives a write that another one, which reads without locks at READ UNCOMMITTED, may have seen half done: it had begun, and waited.
// The model knows statements as a whole.
func (m *scene) peeks(n int) *schedule.Step {
	st := &m.s.Steps[n]
	if !isWrite(&st.Statement) || m.view(n).Read != product.V2 {
		return nil
	}
	for i := range m.s.Steps {
		other := &m.s.Steps[i]
		if other.Session == st.Session || !other.Waited || !isWrite(&other.Statement) || other.Done < st.Sent || other.Sent > st.Done {
			continue
		}
		for _, u := range other.Statement.Targets() {
			if slices.ContainsFunc(st.Statement.Tables, func(r statement.TableUse) bool {
				return r.Kind == statement.SourceTable && !r.Target && m.table(r.Name) == m.table(u.Name)
			}) {
				return other
			}
		}
	}
	return nil
}

// table finds a table by its name in a statement; -1: there is none.
func (m *scene) table(name string) int {
	return slices.IndexFunc(m.tables, func(t answer.Table) bool {
		return m.dbms.SameTable(t.Name, name)
	})
}

// columns are the numbers of a table's columns; nil if it has not all of them.
func (m *scene) columns(table int, names []string) (out []int) {
	for _, name := range names {
		i := slices.IndexFunc(m.tables[table].Columns, func(c answer.Column) bool { return strings.EqualFold(c.Name, name) })
		if i < 0 {
			return nil
		}
		out = append(out, i)
	}
	return out
}

// explain looks for a way in which the schedule can have gone by the rules and that leaves the observed state. Nil: there is none, if
// exact is true; else it is not known.
func (m *model) explain(ctx context.Context) (best *explanation, exact bool, err error) {
	b := branch{}
	for i, t := range m.tables {
		for _, values := range t.Rows {
			b.store, _ = m.insert(b.store, i, version{writer: -1, undone: never, values: values})
		}
	}
	best, err = m.from(ctx, b, 0)
	if errors.Is(err, tooLong) || errors.Is(err, unloadable) {
		m.loose = err.Error()
		err = nil
	}
	return best, m.loose == "", err
}

// from goes on with a step.
func (m *model) from(ctx context.Context, b branch, n int) (best *explanation, err error) {
	for ; n < len(m.s.Steps); n++ {
		st := &m.s.Steps[n]
		t := m.of[n]
		switch {
		case t < 0:
		case st.Statement.Control.Verb == statement.ControlRollbackTo && !st.Failed():
			b.store = m.undo(b.store, t, m.savepoint(t, n), st.Done)
		case st.After == answer.Failed && st.Before != answer.Failed:
			// PostgreSQL takes everything back at once, to the last savepoint or the beginning, and lets go of its locks. A read can fail, too.
			b.store = m.undo(b.store, t, m.savepoint(t, n), st.Done)
		case isRead(&st.Statement):
		case !isWrite(&st.Statement) || st.Failed() && concurrent(st.Reason):
		default:
			outcomes, err := m.outcomes(ctx, b.store, n)
			if err != nil {
				return best, err
			}
			for _, o := range outcomes {
				found, err := m.from(ctx, branch{o.store, append(slices.Clip(b.acts), o.acts...)}, n+1)
				if found != nil && (best == nil || found.better(best)) {
					best = found
				}
				if err != nil || best != nil && best.kind == oracle.KindPermitted {
					return best, err
				}
			}
			return best, nil
		}
	}
	if m.leaves++; m.leaves > leafLimit {
		return nil, tooLong
	}
	if len(m.c.differ(m.final(b.store), m.s.Final, true)) > 0 || !m.commits(b) {
		return nil, nil
	}
	return m.reasons(ctx, b)
}

// savepoint is the moment of the savepoint to which a step takes its transaction back: the one that ROLLBACK TO names, or the last one.
func (m *scene) savepoint(t, n int) int {
	steps := m.transactions[t].Steps
	name := m.s.Steps[n].Statement.Control.Name
	var released []string
	for i := slices.Index(steps, n) - 1; i >= 0; i-- {
		c := &m.s.Steps[steps[i]].Statement.Control
		switch {
		case c.Verb == statement.ControlRelease:
			released = append(released, strings.ToLower(c.Name))
		case c.Verb != statement.ControlSavepoint:
		case name == "" && slices.Contains(released, strings.ToLower(c.Name)):
			released = slices.DeleteFunc(released, func(r string) bool { return r == strings.ToLower(c.Name) })
		case name == "" || strings.EqualFold(c.Name, name):
			return m.s.Steps[steps[i]].Done
		}
	}
	return m.transactions[t].Begin
}

// undo takes back what a transaction wrote after a moment.
func (m *model) undo(s store, t, since, now int) store {
	s = slices.Clone(s)
	for i := range s {
		if !slices.ContainsFunc(s[i].versions, func(v version) bool { return v.writer == t && v.at > since && v.undone == never }) {
			continue
		}
		s[i].versions = slices.Clone(s[i].versions)
		for k := range s[i].versions {
			if v := &s[i].versions[k]; v.writer == t && v.at > since && v.undone == never {
				v.undone = now
			}
		}
	}
	return s
}

// commits reports whether every transaction that was committed could be: an optimistic one must fail if somebody else committed a row
// that it writes after its snapshot (TiDB docs, optimistic transactions).
func (m *scene) commits(b branch) bool {
	for i := range b.store {
		for _, v := range b.store[i].versions {
			if v.writer < 0 || v.undone != never || !committed(&m.transactions[v.writer]) || !m.dbms.Optimistic(m.transactions[v.writer].Level, true) {
				continue
			}
			mine := &m.transactions[v.writer]
			for _, w := range b.store[i].versions {
				if w.writer >= 0 && w.writer != v.writer && w.undone == never && committed(&m.transactions[w.writer]) &&
					m.transactions[w.writer].End > mine.Begin && m.transactions[w.writer].End < mine.End && mine.Explicit {
					return false
				}
			}
		}
	}
	return true
}

// outcomes are the ways in which a write can have gone.
func (m *model) outcomes(ctx context.Context, s store, n int) ([]branch, error) {
	st := &m.s.Steps[n].Statement
	failed := m.s.Steps[n].Failed()
	target := m.single(st)
	if failed || target < 0 {
		return m.wholly(ctx, s, n, failed)
	}
	var out []branch
	scans := []view{m.views(n)[0]}
	if m.dbms.AfterWait == product.WaitRestarts { // the moment of its snapshot is not certain
		scans = m.reads(s, n, []int{target}, m.views(n))
	}
	for _, scan := range scans {
		for _, read := range m.reads(s, n, m.others(st, target), m.unlocked(n)) {
			list, err := m.rows(ctx, s, n, target, scan, read)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
		}
	}
	return out, nil
}

// single is the table of an UPDATE or DELETE that decides on each row by itself; -1: it is something else.
func (m *scene) single(st *statement.Statement) int {
	if st.Verb != "update" && st.Verb != "delete" || st.Limit || st.Ignore {
		return -1
	}
	targets := st.Targets()
	if len(targets) != 1 {
		return -1
	}
	table := m.table(targets[0].Name)
	uses := 0
	for _, u := range st.Tables {
		if u.Kind == statement.SourceTable && m.table(u.Name) == table {
			uses++
		}
	}
	if uses != 1 {
		return -1
	}
	return table
}

// others are the tables that a statement reads besides its target.
func (m *scene) others(st *statement.Statement, target int) (out []int) {
	for _, u := range st.Tables {
		if i := m.table(u.Name); u.Kind == statement.SourceTable && i != target && !slices.Contains(out, i) {
			out = append(out, i)
		}
	}
	return out
}

// shown are tables as a view shows them to a statement's transaction.
func (m *scene) shown(s store, n int, tables []int, v view) []answer.Table {
	out := make([]answer.Table, 0, len(tables))
	for _, i := range tables {
		t := m.tables[i]
		t.Rows = nil
		for r := range s {
			if s[r].table != i {
				continue
			}
			if x := m.see(&s[r], n, v); x.alive() {
				t.Rows = append(t.Rows, x.values)
			}
		}
		slices.SortFunc(t.Rows, answer.CompareRows)
		out = append(out, t)
	}
	return out
}

// references are the tables that foreign keys may lead to, as they are when a statement ends: constraints look at the latest rows.
func (m *scene) references(s store, n int, but []int) []answer.Table {
	if !m.linked {
		return nil
	}
	var list []int
	for i := range m.tables {
		if !slices.Contains(but, i) {
			list = append(list, i)
		}
	}
	return m.shown(s, n, list, view{moment: m.s.Steps[n].Done})
}

// reads are the views that show a statement something else of tables than those before them.
func (m *model) reads(s store, n int, tables []int, views []view) []view {
	if len(tables) == 0 {
		return views[:1]
	}
	var out []view
	seen := map[string]bool{}
	for _, v := range views {
		k := key(0, "", m.shown(s, n, tables, v))
		if !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	return out
}

// choice is what becomes of one row.
type choice struct {
	row    int
	effect effect
	tag    tag
}

// rows are the ways in which an UPDATE or DELETE that decides row by row can have gone.
func (m *model) rows(ctx context.Context, s store, n, target int, scan, read view) ([]branch, error) {
	mentioned := m.others(&m.s.Steps[n].Statement, target)
	others := append(m.shown(s, n, mentioned, read), m.references(s, n, append(mentioned, target))...)
	match := func(v *version) (effect, error) {
		if !v.alive() {
			return effect{}, nil
		}
		return m.onRow(ctx, n, target, v.values, others)
	}
	if err := m.prefetch(ctx, s, n, target, scan, others); err != nil {
		return nil, err
	}
	ways := [][]choice{nil}
	for r := range s {
		if s[r].table != target {
			continue
		}
		choices, err := m.decide(s, &s[r], r, n, scan, match)
		if err != nil {
			return nil, err
		}
		var next [][]choice
		for _, way := range ways {
			for _, c := range choices {
				next = append(next, append(slices.Clip(way), c))
			}
		}
		if ways = next; len(ways) > choiceLimit {
			return nil, tooLong
		}
	}
	var out []branch
	for _, way := range ways {
		o := branch{store: s}
		a := act{step: n, passed: map[int]tag{}, read: read}
		bad := false
		for _, c := range way {
			if c.tag != tagNone {
				a.passed[c.row] = c.tag
			}
			if !c.effect.addressed {
				continue
			}
			if c.effect.err != nil && m.linked && dataError(c.effect.err) {
				m.loose = "a foreign key decides: " + m.s.Steps[n].Statement.Text
			}
			bad = bad || c.effect.err != nil
			a.addressed = append(a.addressed, c.row)
			if !c.effect.same {
				o.store = m.change(o.store, c.row, n, c.effect.values)
			}
		}
		if bad {
			continue // it would have failed, and did not
		}
		o.acts = []act{a}
		out = append(out, o)
	}
	return out, nil
}
