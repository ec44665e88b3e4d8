package wss

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// effect is what a statement does to one row, or to a whole database.
type effect struct {
	addressed bool
	values    []answer.Value // the row's new ones; nil: it is deleted
	same      bool           // the row was found as it was to become, and nothing is written
	err       *answer.Error
	after     []answer.Table // of a whole database
}

// tooLong says that the model had to evaluate more statements than it may.
var tooLong = errors.New("the schedule has too many possible executions")

// unloadable says that rows cannot be put into their tables: an old snapshot and a transaction's own rows may break a key together.
var unloadable = errors.New("what a statement saw cannot be put into the tables again")

// load evaluates a statement on the stage: it fills the tables, executes, and reads them. What was evaluated before is remembered.
func (m *model) load(ctx context.Context, session int, sql string, tables []answer.Table) (schedule.Step, []answer.Table, error) {
	if m.evaluations++; m.evaluations > m.limit {
		return schedule.Step{}, nil, tooLong
	}
	if err := m.prepare(ctx); err != nil {
		return schedule.Step{}, nil, err
	}
	if err := m.c.stage.Load(ctx, tables); err != nil {
		if ctx.Err() != nil {
			return schedule.Step{}, nil, fmt.Errorf("wss: model: %w", err)
		}
		return schedule.Step{}, nil, fmt.Errorf("%w: %v", unloadable, err)
	}
	st, err := m.c.stage.Execute(ctx, session, sql)
	if err != nil {
		return st, nil, fmt.Errorf("wss: model: %w", err)
	}
	after, err := m.c.stage.Tables(ctx)
	if err != nil {
		return st, nil, fmt.Errorf("wss: model: %w", err)
	}
	return st, after, nil
}

// prepare gives the stage's sessions the settings that statements depend on.
func (m *model) prepare(ctx context.Context) error {
	if m.prepared {
		return nil
	}
	m.prepared = true
	if err := m.c.stage.Reset(ctx); err != nil {
		return fmt.Errorf("wss: model: %w", err)
	}
	plan := m.c.setup(m.c.alone)
	for _, n := range m.c.settingsOf(m.transactions) {
		plan = append(plan, order{m.s.Steps[n].Session, n, m.s.Steps[n].Statement.Text})
	}
	for _, o := range plan {
		if o.step >= 0 && (m.s.Steps[o.step].Statement.Control.Verb != statement.ControlNone || !m.c.alone(&m.s.Steps[o.step].Statement)) || modeOnly.MatchString(o.sql) {
			continue // levels, access modes, autocommit
		}
		if _, err := m.c.stage.Execute(ctx, o.session, o.sql); err != nil {
			return fmt.Errorf("wss: model: %w", err)
		}
	}
	return nil
}

func key(session int, sql string, tables []answer.Table) string {
	var b strings.Builder
	b.WriteString(strconv.Itoa(session) + "\x00" + sql)
	for _, t := range tables {
		b.WriteString("\x00\x01" + t.Name)
		for _, r := range t.Rows {
			b.WriteByte(2)
			for _, v := range r {
				if v == nil {
					b.WriteByte(3)
				} else {
					b.WriteString(strconv.Itoa(len(v)) + ":" + string(v))
				}
			}
		}
	}
	return b.String()
}

// onRow evaluates an UPDATE or DELETE of a single table on one row of it; others are the other tables that it reads.
func (m *model) onRow(ctx context.Context, n int, table int, values []answer.Value, others []answer.Table) (effect, error) {
	st := &m.s.Steps[n]
	target := m.tables[table]
	target.Rows = [][]answer.Value{values}
	tables := append([]answer.Table{target}, others...)
	k := "row" + key(st.Session, st.Statement.Text, tables)
	if e, ok := m.cache[k]; ok {
		return e, nil
	}
	did, after, err := m.load(ctx, st.Session, st.Statement.Text, tables)
	if err != nil {
		return effect{}, err
	}
	var e effect
	rows := tableNamed(after, target.Name).Rows
	switch {
	case did.Answer.Err != nil:
		e.err, e.addressed = did.Answer.Err, true
	case len(rows) == 0:
		e.addressed = true
	case len(rows) > 1:
		return effect{}, fmt.Errorf("wss: model: %s made %d rows of one", st.Statement.Text, len(rows))
	default:
		e.values = rows[0]
		e.addressed = did.Answer.Affected > 0 || !answer.SameRow(rows[0], values)
		if !e.addressed && !m.dbms.CountsMatched && st.Statement.Verb == "update" {
			// The MySQL family does not count rows that an UPDATE leaves as they are. The row is as it was: nothing need be loaded.
			if sql, ok := st.Statement.Addressed("1"); ok {
				q, err := m.c.stage.Execute(ctx, st.Session, sql)
				if err != nil {
					return effect{}, fmt.Errorf("wss: model: %w", err)
				}
				e.addressed = q.Answer.Err == nil && len(q.Answer.Rows) > 0
			}
		}
	}
	m.cache[k] = e
	return e, nil
}

// prefetch evaluates an UPDATE or DELETE on all the rows that it may see at once, and remembers what that tells of each row by itself.
// Which row became which is only certain for a single one; what is not certain is left to onRow.
func (m *model) prefetch(ctx context.Context, s store, n, table int, scan view, others []answer.Table) error {
	st := &m.s.Steps[n]
	target := m.tables[table]
	moment := st.Done
	if m.dbms.AfterWait != product.WaitGoesOn {
		moment = scan.moment
	}
	name := func(values []answer.Value) string {
		one := m.tables[table]
		one.Rows = [][]answer.Value{values}
		return "row" + key(st.Session, st.Statement.Text, append([]answer.Table{one}, others...))
	}
	target.Rows = nil
	for _, values := range m.shown(s, n, []int{table}, view{moment: moment})[0].Rows {
		_, known := m.cache[name(values)]
		if !known && !slices.ContainsFunc(target.Rows, func(r []answer.Value) bool { return answer.SameRow(r, values) }) {
			target.Rows = append(target.Rows, values)
		}
	}
	if len(target.Rows) < 2 {
		return nil
	}
	did, after, err := m.load(ctx, st.Session, st.Statement.Text, append([]answer.Table{target}, others...))
	if errors.Is(err, unloadable) {
		return nil // row by row, then
	}
	if err != nil || did.Answer.Err != nil {
		return err
	}
	d := answer.DiffRows(target.Rows, tableNamed(after, target.Name).Rows)
	remove := st.Statement.Verb == "delete"
	if did.Answer.Affected != int64(len(d.Missing)) || !remove && len(d.Missing) != len(d.Extra) || remove && len(d.Extra) > 0 {
		return nil
	}
	for _, values := range target.Rows {
		changed := slices.ContainsFunc(d.Missing, func(r []answer.Value) bool { return answer.SameRow(r, values) })
		switch {
		case changed && remove:
			m.cache[name(values)] = effect{addressed: true}
		case changed && len(d.Missing) == 1:
			m.cache[name(values)] = effect{addressed: true, values: d.Extra[0]}
		case !changed && (remove || m.dbms.CountsMatched): // the MySQL family does not count rows that stay as they are
			m.cache[name(values)] = effect{values: values}
		}
	}
	if remove || m.dbms.CountsMatched || len(d.Missing) > 0 {
		return nil
	}
	// Nothing was changed, so that the rows are still there.
	sql, ok := st.Statement.Addressed("1")
	if !ok {
		return nil
	}
	q, err := m.c.stage.Execute(ctx, st.Session, sql)
	if err != nil {
		return fmt.Errorf("wss: model: %w", err)
	}
	if q.Answer.Err == nil && len(q.Answer.Rows) == 0 {
		for _, values := range target.Rows {
			m.cache[name(values)] = effect{values: values}
		}
	}
	return nil
}

// onTables evaluates a statement on whole tables.
func (m *model) onTables(ctx context.Context, n int, tables []answer.Table) (effect, error) {
	st := &m.s.Steps[n]
	k := key(st.Session, st.Statement.Text, tables)
	if e, ok := m.cache[k]; ok {
		return e, nil
	}
	did, after, err := m.load(ctx, st.Session, st.Statement.Text, tables)
	if err != nil {
		return effect{}, err
	}
	e := effect{err: did.Answer.Err, after: after}
	m.cache[k] = e
	return e, nil
}

func tableNamed(tables []answer.Table, name string) *answer.Table {
	if i := slices.IndexFunc(tables, func(t answer.Table) bool { return t.Name == name }); i >= 0 {
		return &tables[i]
	}
	return &answer.Table{Name: name}
}
