package wss

import (
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// difference is one way in which the concurrent schedule is not like a serial one, before it is judged.
type difference struct {
	class  oracle.Class
	name   string
	step   int // -1: the final state differs
	tables []answer.TableDifference
	serial *serial
}

// compare looks for all differences: success of writes, reads where they must agree, and the final state.
func (c *check) compare(class oracle.Class, e *serial) (out []difference) {
	for i, o := range e.orders {
		if o.step < 0 {
			continue
		}
		was, is := &c.s.Steps[o.step], &e.steps[i]
		switch {
		case concurrent(is.Reason):
			c.verdict.Note("%s ended in the serial schedule with %q, so that its success cannot be compared", was.Name, is.Reason)
		case !isWrite(&was.Statement) && !was.Statement.DDL && !was.Failed() && !is.Failed():
			if class == oracle.WSSTx && c.readsCompared(o.step) && !answer.DiffRows(is.Answer.Rows, was.Answer.Rows).Equal() {
				out = append(out, difference{class: class, name: oracle.NameResult, step: o.step, serial: e})
			}
		case class == oracle.WSSTx && was.Failed() != is.Failed() && c.takenBack(o.step):
			c.verdict.Note("%s is not compared: its transaction went back to a savepoint before it, so its locks may be gone", was.Name)
		case was.Failed() != is.Failed():
			name := oracle.NameError
			if dataError(was.Answer.Err) || dataError(is.Answer.Err) {
				name = oracle.NameWrite
			}
			out = append(out, difference{class: class, name: name, step: o.step, serial: e})
		case dataError(was.Answer.Err) && dataError(is.Answer.Err): // which of several broken constraints a server names is not defined
		case was.Failed() && was.Answer.Err != nil && is.Answer.Err != nil && was.Answer.Err.Code != is.Answer.Err.Code:
			out = append(out, difference{class: class, name: oracle.NameError, step: o.step, serial: e})
		}
	}
	if d := answer.DiffTables(e.tables, c.s.Final); len(d) > 0 {
		out = append(out, difference{class: class, name: oracle.NameFinalState, step: -1, tables: d, serial: e})
	}
	return out
}

// readsCompared reports whether what a step read must be what it reads in the serial schedule: at SERIALIZABLE where the engine locks
// what a transaction reads until its end (WriteCheck, section 5.4, footnote 4: not where serializable is SSI).
func (c *check) readsCompared(n int) bool {
	st := &c.s.Steps[n]
	if !st.Before.InTransaction() && !st.After.InTransaction() || schedule.Skips(&st.Statement) {
		// In autocommit a SELECT, and what a locking one reads in subqueries, reads a snapshot as old as its beginning (MySQL manual, 17.7.2.1,
		// SERIALIZABLE); SKIP LOCKED leaves out rows, so that the view is inconsistent (MySQL manual, 17.7.2.4).
		return false
	}
	return isRead(&st.Statement) && st.Statement.Volatile == "" && c.dbms.ReadsLock && !c.takenBack(n) &&
		!slices.ContainsFunc(c.transactions, func(t schedule.Transaction) bool { return t.Level != product.Serializable })
}

// takenBack reports whether a step's transaction went back to a savepoint from before it. Its locks may be gone then: InnoDB keeps those on
// rows, but ends its whole part of the transaction if that had not begun at the savepoint (sql/handler.cc, ha_rollback_to_savepoint).
func (c *check) takenBack(n int) bool {
	t := schedule.Of(c.transactions, n)
	if t == nil {
		return false
	}
	before := map[string]bool{} // by savepoint: it was set before the step
	for _, i := range t.Steps {
		control, name := &c.s.Steps[i].Statement.Control, strings.ToLower(c.s.Steps[i].Statement.Control.Name)
		switch {
		case c.s.Steps[i].Failed():
		case control.Verb == statement.ControlSavepoint:
			before[name] = i < n
		case control.Verb == statement.ControlRollbackTo && i > n && before[name]:
			return true
		}
	}
	return false
}

// dataError reports whether an error comes from the rows that are there: a constraint (SQLSTATE class 23; the MySQL family's numbers).
// Other transactions' writes make or avoid it, so it is the write's success that differs.
func dataError(e *answer.Error) bool {
	if e == nil {
		return false
	}
	switch e.Code {
	case "1062", "1586", "1169", "1451", "1452", "1216", "1217", "3819", "4025", "1048":
		return true
	}
	return len(e.Code) == 5 && strings.HasPrefix(e.Code, "23")
}

// finding makes a finding of a difference.
func (c *check) finding(d *difference, j judgement) oracle.Finding {
	definition, what := "tx-WSS (WriteCheck, definition 1)", "its transactions executed one after the other"
	if d.class == oracle.WSSStmt {
		definition, what = "stmt-WSS (WriteCheck, definition 2)", "the statements of its committed transactions executed in autocommit"
	}
	f := oracle.Finding{Oracle: Name, Kind: j.kind, Class: d.class, Name: d.name, Level: c.level(), Source: j.source, Seen: 1}
	f.Difference = &oracle.Difference{Reason: j.reason, Cause: string(j.cause)}
	switch {
	case d.step >= 0 && d.name == oracle.NameResult:
		f.Difference.Rule = definition + " and section 5.4: at SERIALIZABLE a read returns what it returns with " + what + " in the order of their ends"
	case d.step >= 0:
		f.Difference.Rule = definition + " and section 5.4: a write succeeds or fails as it does with " + what + " in the order of their ends"
	default:
		f.Difference.Rule = definition + ": the final state is that of the schedule with " + what + " in the order of their ends"
	}
	for i, o := range d.serial.orders {
		line := c.s.Sessions[o.session].Name + ": " + o.sql
		if e := d.serial.steps[i].Answer.Err; e != nil {
			line += " -- error " + e.Code
		}
		f.Difference.Reference = append(f.Difference.Reference, line)
	}
	if d.step >= 0 {
		st := &c.s.Steps[d.step]
		is := d.serial.of(d.step)
		f.Difference.Step, f.Difference.Session, f.Difference.SQL = st.Name, c.s.Sessions[st.Session].Name, st.Statement.Text
		f.Difference.Expected, f.Difference.Observed = side(is), side(st)
		for _, u := range st.Statement.Tables {
			if u.Name != "" {
				f.Tables = append(f.Tables, u.Name)
			}
		}
	} else {
		t := &d.tables[0]
		f.Difference.Table = t.Table
		f.Difference.Expected, f.Difference.Observed = tableSide(d.serial.tables, t, t.Rows.Missing), tableSide(c.s.Final, t, t.Rows.Extra)
		f.Difference.Observed.Text = t.Shape
		for _, t := range d.tables {
			f.Tables = append(f.Tables, t.Table)
		}
	}
	slices.Sort(f.Tables)
	f.Tables = slices.Compact(f.Tables)
	f.ID = f.Fingerprint()
	return f
}

// level is that of all transactions, or "mixed".
func (c *check) level() string {
	level := c.s.Level
	for i, t := range c.transactions {
		if i > 0 && t.Level != level {
			return "mixed"
		}
		level = t.Level
	}
	return level
}

// side is what a statement brought back.
func side(st *schedule.Step) (out oracle.Side) {
	switch {
	case st == nil:
		out.Text = "not executed"
	case st.Answer.Err != nil:
		out.Text = st.Answer.Err.Text()
	case st.Answer.Columns == nil:
		out.Text = "done"
	default:
		out = schedule.SideOf(st.Answer.Columns, st.Answer.Rows, 0)
	}
	return out
}

// tableSide is one side of a table that differs: the rows that the other side does not have.
func tableSide(tables []answer.Table, d *answer.TableDifference, rows [][]answer.Value) oracle.Side {
	i := slices.IndexFunc(tables, func(t answer.Table) bool { return t.Name == d.Table })
	if i < 0 {
		return schedule.SideOf(nil, rows, 0)
	}
	return schedule.SideOf(tables[i].Columns, rows, len(tables[i].Rows)-len(rows))
}

// committed reports whether a transaction's effects are there.
func committed(t *schedule.Transaction) bool { return t.Outcome == history.OutcomeCommitted }
