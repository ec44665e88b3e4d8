package wss

import (
	"context"
	"slices"

	"wirecheck/answer"
	"wirecheck/statement"
)

// wholly are the ways in which a statement can have gone that is evaluated on whole tables: INSERT, and what reads its own target.
func (m *model) wholly(ctx context.Context, s store, n int, failed bool) ([]branch, error) {
	step := &m.s.Steps[n]
	st := &step.Statement
	var mentioned, targets []int
	for _, u := range st.Tables {
		i := m.table(u.Name)
		if u.Kind == statement.SourceTable && !slices.Contains(mentioned, i) {
			mentioned = append(mentioned, i)
		}
		if u.Target && !slices.Contains(targets, i) {
			targets = append(targets, i)
		}
	}
	quiet := m.quiet(s, n, mentioned)
	if st.Insert == nil && !failed && !quiet {
		m.loose = "it does not decide on each row by itself: " + st.Text
	}
	plain := st.Insert != nil && st.Verb == "insert" && !st.Insert.Conflict && !st.Ignore && st.Insert.Select == "" && !st.HasSubquery && !failed
	views := m.reads(s, n, mentioned, m.unlocked(n))
	plainValues := st.Insert != nil && st.Insert.Select == "" && !st.HasSubquery
	if plainValues {
		views = []view{{moment: step.Done}} // values are given, and keys are looked for among the latest rows
	}
	var out []branch
	for _, v := range views {
		before := m.shown(s, n, mentioned, v)
		if !m.readsTarget(st) { // its target is not read, but keys are looked for among the latest rows
			for i, table := range mentioned {
				if slices.Contains(targets, table) {
					before[i] = m.shown(s, n, []int{table}, view{moment: step.Done})[0]
				}
				if slices.Contains(targets, table) && plain {
					before[i].Rows = nil // it was done, so no key was in its way
				}
			}
		}
		e, err := m.onTables(ctx, n, append(before, m.references(s, n, mentioned)...))
		if err != nil {
			return nil, err
		}
		if !quiet && m.readsTarget(st) && (dataError(e.err) || st.Insert != nil && (st.Insert.Conflict || st.Ignore || st.Verb == "replace")) {
			// It reads its table as of one moment, and looks for keys in it as of another.
			m.loose = "it writes the table that it reads: " + st.Text
		}
		if e.err != nil && m.linked && dataError(e.err) != failed {
			m.loose = "a foreign key may decide: " + st.Text
		}
		if failed {
			if e.err != nil && step.Answer.Err != nil && e.err.Code == step.Answer.Err.Code {
				return []branch{{store: s, acts: []act{{step: n, read: v, whole: true}}}}, nil
			}
			if !quiet && !plainValues {
				m.loose = "whether it fails depends on more than one row: " + st.Text
			}
			continue
		}
		if e.err != nil {
			continue
		}
		o, ok, err := m.apply(ctx, s, n, v, before, e.after)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, o)
		}
	}
	if failed && m.loose != "" {
		// What it saw is not known well enough: it did nothing, which is certain.
		return []branch{{store: s}}, nil
	}
	return out, nil
}

// quiet reports whether tables look the same to a statement whatever moment and view of them it has: nobody else changes them meanwhile.
func (m *model) quiet(s store, n int, tables []int) bool {
	step := &m.s.Steps[n]
	first := ""
	for i, v := range append([]view{{moment: step.Done}, {moment: step.Sent}, {step.Done, true}, {step.Sent, true}}, m.views(n)...) {
		k := key(0, "", m.shown(s, n, tables, v))
		if i > 0 && k != first {
			return false
		}
		first = k
	}
	return true
}

// readsTarget reports whether a statement reads the rows of a table that it writes.
func (m *scene) readsTarget(st *statement.Statement) bool {
	for _, u := range st.Tables {
		for _, t := range st.Targets() {
			if u.Kind == statement.SourceTable && u.Read && m.table(u.Name) == m.table(t.Name) {
				return true
			}
		}
	}
	return false
}

// apply makes the difference between two states the statement's versions.
func (m *model) apply(ctx context.Context, s store, n int, v view, before, after []answer.Table) (branch, bool, error) {
	step := &m.s.Steps[n]
	a := act{step: n, read: v, whole: true}
	o := branch{store: s}
	write := func(r int, values []answer.Value) {
		a.addressed = append(a.addressed, r)
		o.store = m.change(o.store, r, n, values)
	}
	for _, was := range before {
		i := m.table(was.Name)
		d := answer.DiffRows(was.Rows, tableNamed(after, was.Name).Rows)
		if step.Statement.Verb == "replace" {
			again, err := m.replacedAlike(ctx, s, n, was, d)
			if err != nil {
				return o, false, err
			}
			d.Missing, d.Extra = append(d.Missing, again...), append(d.Extra, again...)
		}
		var rows []int
		for _, values := range d.Missing {
			r := m.find(o.store, n, i, values, rows)
			if r < 0 {
				return o, false, nil // what it saw has gone
			}
			if m.pending(&s[r], n, step.Done) != nil {
				return o, false, nil // it must have waited
			}
			rows = append(rows, r)
		}
		added := d.Extra
		if in := step.Statement.Insert; step.Statement.Verb == "update" || in != nil && in.Conflict && step.Statement.Verb != "replace" {
			into, rest := m.pair(i, d)
			if len(into) < len(rows) || step.Statement.Verb == "update" && len(rest) > 0 {
				m.loose = "which row became which is not certain: " + step.Statement.Text
				return o, false, nil
			}
			for k, r := range rows {
				write(r, into[k])
			}
			rows, added = nil, rest
		}
		for _, r := range rows {
			write(r, nil)
		}
		for _, values := range added {
			var r int
			o.store, r = m.insert(o.store, i, version{writer: m.of[n], at: step.Done, undone: never, values: values})
			a.addressed = append(a.addressed, r)
		}
	}
	o.acts = []act{a}
	return o, true, nil
}

// pair tells what became of each row that an UPDATE, or an INSERT that met its key, changed: a single one, or each by its primary key;
// fewer than there are if that is not certain. The rest are the rows that are new.
func (m *model) pair(table int, d answer.Difference) (into, rest [][]answer.Value) {
	if len(d.Missing) == 1 && len(d.Extra) == 1 {
		return d.Extra, nil
	}
	name := func(values []answer.Value) string {
		row := make([]answer.Value, len(m.names[table]))
		for i, c := range m.names[table] {
			row[i] = values[c]
		}
		return key(0, "", []answer.Table{{Rows: [][]answer.Value{row}}})
	}
	rest = slices.Clone(d.Extra)
	for _, values := range d.Missing {
		i := slices.IndexFunc(rest, func(r []answer.Value) bool { return name(r) == name(values) })
		if i < 0 || len(m.names[table]) == 0 {
			return nil, nil
		}
		into = append(into, rest[i])
		rest = slices.Delete(rest, i, i+1)
	}
	return into, rest
}

// find is a row that has values at the statement's end; used ones are left out.
func (m *model) find(s store, n, table int, values []answer.Value, used []int) int {
	for r := range s {
		if v := m.visible(&s[r], n, m.s.Steps[n].Done); s[r].table == table && v.alive() && answer.SameRow(v.values, values) && !slices.Contains(used, r) {
			return r
		}
	}
	return -1
}

// replacedAlike are the rows that a REPLACE replaces by equal ones: it removes and inserts them all the same (MySQL manual, 15.2.12).
func (m *model) replacedAlike(ctx context.Context, s store, n int, was answer.Table, d answer.Difference) (out [][]answer.Value, err error) {
	in := m.s.Steps[n].Statement.Insert
	if in == nil || len(in.Rows) == 0 || len(was.Rows) > 16 {
		return nil, nil
	}
	alone := was
	alone.Rows = nil
	e, err := m.onTables(ctx, n, []answer.Table{alone})
	if err != nil || e.err != nil {
		return nil, err
	}
	new := tableNamed(e.after, was.Name).Rows
	for _, values := range was.Rows {
		// Only a row that is also there afterwards can have been replaced by an equal one.
		if !slices.ContainsFunc(new, func(r []answer.Value) bool { return answer.SameRow(r, values) }) ||
			slices.ContainsFunc(d.Missing, func(r []answer.Value) bool { return answer.SameRow(r, values) }) {
			continue
		}
		alone.Rows = [][]answer.Value{values}
		e, err := m.onTables(ctx, n, []answer.Table{alone})
		if err != nil {
			return nil, err
		}
		if e.err == nil && len(tableNamed(e.after, was.Name).Rows) == len(new) {
			out = append(out, values)
		}
	}
	return out, nil
}
