package troc

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
)

// written is a write that changed a world's tables: its step, the views on which it was executed, and what it did there.
type written struct {
	step  int
	views map[string]relation
	trial *trial
}

// after are a table's rows behind the write.
func (w *written) after(table string) (rows [][]answer.Value) {
	for _, t := range w.views[table] {
		if slices.Contains(w.trial.deleted[table], t.id) {
			continue
		}
		if at := slices.IndexFunc(w.trial.changed[table], func(o tuple) bool { return o.id == t.id }); at >= 0 {
			t = w.trial.changed[table][at]
		}
		rows = append(rows, t.values)
	}
	return append(rows, w.trial.added[table]...)
}

// spoiled says which write before a death does something else on tables without row ids; empty: none does. A server that evaluates a statement wrongly
// where a column stands behind the others makes what it did without that column look wrong: an UPDATE of TiDB by a whole primary key takes the next
// column's value for that of a correlated subquery.
func (c *check) spoiled(ctx context.Context, d *death) (why string, err error) {
	if d == nil || len(d.writes) == 0 || slices.ContainsFunc(c.s.Steps, func(st schedule.Step) bool { return st.Statement.DDL }) { // the tables are not those of the setup
		return "", nil
	}
	if err := c.t.bare(ctx, true); err != nil {
		return "", err
	}
	for i := range d.writes {
		w := &d.writes[i]
		st := &c.s.Steps[w.step]
		same, err := c.t.alike(ctx, st.Session, st.Statement.Text, w)
		if err != nil {
			return "", err
		}
		if !same {
			why = fmt.Sprintf("%s does something else on tables to which troc adds no row id", st.Name)
			break
		}
	}
	return why, c.t.bare(ctx, false)
}

// alike executes a write on its views once more, as the tables are now, and reports whether it leaves the same rows. What the tables cannot hold
// tells nothing.
func (t *theater) alike(ctx context.Context, session int, sql string, w *written) (bool, error) {
	clear(t.loaded)
	if err := t.load(ctx, w.views, false); errors.Is(err, errNoView) {
		return true, nil
	} else if err != nil {
		return false, err
	}
	done, err := t.do(ctx, session, sql)
	if err != nil {
		return false, err
	}
	if done.Answer.Err != nil {
		return false, nil
	}
	tables, err := t.stage.Tables(ctx)
	if err != nil {
		return false, fmt.Errorf("read the stage: %w", err)
	}
	for _, table := range tables {
		if _, seen := w.views[table.Name]; seen && !diffRows(table.Columns, w.after(table.Name), table.Rows).Equal() {
			return false, nil
		}
	}
	return true, nil
}
