package wss

import (
	"context"
	"fmt"
	"slices"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// order is one statement of a serial schedule.
type order struct {
	session int
	step    int // in Schedule.Steps; -1: it is put in
	sql     string
}

// serial is the execution of a serial schedule.
type serial struct {
	orders []order
	steps  []schedule.Step // of each order
	tables []answer.Table
}

// of finds what a step of the concurrent schedule did in the serial one; nil if it is not part of it.
func (e *serial) of(step int) *schedule.Step {
	if i := slices.IndexFunc(e.orders, func(o order) bool { return o.step == step }); i >= 0 {
		return &e.steps[i]
	}
	return nil
}

// concurrent are the reasons of failures that only others' locks or writes can bring. They belong to the aborts (WriteCheck,
// section 5.3.2), and are no statement's success or failure: the statement did nothing, and is left out of the serial schedule.
func concurrent(reason answer.Reason) bool {
	return reason.Contention() || reason == answer.ReasonCancelled || reason == answer.ReasonKilled || reason == answer.ReasonFailed
}

// settingsOf are the settings that sessions execute outside of transactions, with the moment each was sent. They belong to no
// transaction, but what follows in the session depends on them.
func (c *check) settingsOf(transactions []schedule.Transaction) []int {
	inside := map[int]bool{}
	for _, t := range transactions {
		for _, n := range t.Steps {
			inside[n] = true
		}
	}
	var out []int
	for i := range c.s.Steps {
		if st := &c.s.Steps[i]; !inside[i] && !st.Failed() && ofSession(&st.Statement) {
			out = append(out, i)
		}
	}
	return out
}

// ofSession reports whether a statement outside of a transaction changes what the session's next ones do. A COMMIT or ROLLBACK there
// does nothing.
func ofSession(st *statement.Statement) bool {
	switch st.Control.Verb {
	case statement.ControlCommit, statement.ControlRollback, statement.ControlSavepoint, statement.ControlRollbackTo, statement.ControlRelease:
		return false
	}
	return true
}

// txPlan is the serial schedule of definition 1: the transactions in a given order, each in its session, which has the settings that
// it had. Of an aborted transaction no statement is executed (section 2.2): what it leaves behind outside of transactions, which is
// counters, is what AUTO_INCREMENT differences come from (generated.go).
func (c *check) txPlan(transactions []schedule.Transaction) []order {
	plan := c.setup(func(*statement.Statement) bool { return true })
	settings := c.settingsOf(transactions)
	for i := range transactions {
		t := &transactions[i]
		before := c.settingsBefore(&settings, t)
		if t.Outcome != history.OutcomeCommitted {
			plan = append(plan, slices.DeleteFunc(before, func(o order) bool { return schedule.ForNext(c.dbms, &c.s.Steps[o.step].Statement) })...)
			continue
		}
		plan = append(plan, before...)
		if t.Explicit && !c.begins(t) {
			plan = append(plan, order{t.Session, -1, "BEGIN"}) // the transaction before it ended with AND CHAIN
		}
		ended := !t.Explicit
		for _, n := range t.Steps {
			st := &c.s.Steps[n]
			sql := st.Statement.Text
			switch v := st.Statement.Control.Verb; {
			case v == statement.ControlCommit || v == statement.ControlRollback:
				ended = true
				if st.Statement.Control.Chain {
					sql = "COMMIT"
				}
			case st.Failed() && concurrent(st.Reason):
				continue
			}
			plan = append(plan, order{t.Session, n, sql})
		}
		if !ended {
			plan = append(plan, order{t.Session, -1, "COMMIT"}) // an implicit commit by a statement that is a transaction of its own
		}
	}
	return plan
}

// setup are the sessions' settings that are kept.
func (c *check) setup(keep func(*statement.Statement) bool) (plan []order) {
	for i := range c.s.Sessions {
		for _, st := range c.s.Sessions[i].Setup {
			if keep(&st) {
				plan = append(plan, order{i, -1, st.Text})
			}
		}
	}
	return plan
}

// alone reports whether a setting is kept where statements are executed without their transactions.
func (c *check) alone(st *statement.Statement) bool { return !schedule.SetsAccess(c.dbms, st) }

// settingsBefore takes from settings those of the transaction's session that were sent before it began.
func (c *check) settingsBefore(settings *[]int, t *schedule.Transaction) (plan []order) {
	*settings = slices.DeleteFunc(*settings, func(n int) bool {
		st := &c.s.Steps[n]
		if st.Session != t.Session || st.Sent >= t.Begin {
			return false
		}
		plan = append(plan, order{t.Session, n, st.Statement.Text})
		return true
	})
	return plan
}

// begins reports whether a transaction's own statements begin it: BEGIN, or the first one with autocommit switched off.
func (c *check) begins(t *schedule.Transaction) bool {
	return len(t.Steps) > 0 && (!c.s.Steps[t.Steps[0]].Before.InTransaction() || c.s.Steps[t.Steps[0]].Statement.Ends)
}

// stmtPlan is the simplified serial schedule of definition 2: the statements of committed transactions in autocommit, without
// transaction control. Why says why there is none. Both are empty if it would be the same as the other.
func (c *check) stmtPlan() (plan []order, why string) {
	explicit := false
	plan = c.setup(c.alone)
	settings := c.settingsOf(c.transactions)
	for i := range c.transactions {
		t := &c.transactions[i]
		plan = append(plan, slices.DeleteFunc(c.settingsBefore(&settings, t), func(o order) bool {
			st := &c.s.Steps[o.step].Statement
			return st.Control.Verb == statement.ControlAutocommit || !c.alone(st)
		})...)
		if t.Outcome != history.OutcomeCommitted {
			continue
		}
		explicit = explicit || t.Explicit
		for _, n := range t.Steps {
			st := &c.s.Steps[n]
			if why := inapplicable(&st.Statement); why != "" {
				return nil, fmt.Sprintf("%s (%s) %s", st.Name, st.Statement.Text, why)
			}
			// A read changes nothing, and what it returns is not compared here.
			if st.Statement.Control.Verb != statement.ControlNone || isRead(&st.Statement) || st.Failed() && concurrent(st.Reason) {
				continue
			}
			plan = append(plan, order{t.Session, n, st.Statement.Text})
		}
	}
	if !explicit {
		return nil, ""
	}
	return plan, ""
}

// inapplicable says why a statement of a transaction has no meaning outside of one (WriteCheck, section 2.2: "cannot be executed
// outside an explicit transaction").
func inapplicable(st *statement.Statement) string {
	switch st.Control.Verb {
	case statement.ControlSavepoint, statement.ControlRollbackTo, statement.ControlRelease:
		return "needs a transaction"
	case statement.ControlLevel:
		return "sets something for its transaction only"
	case statement.ControlLocks:
		return "locks tables until the transaction or the session lets go of them"
	case statement.ControlReset, statement.ControlAutocommit, statement.ControlDatabase:
		return "changes the session within a transaction"
	case statement.ControlNone:
		switch {
		case transactional.MatchString(st.Text):
			return "has a meaning within its transaction only"
		case st.Verb == "set":
			return "changes the session within a transaction"
		}
	}
	return ""
}

// execute executes a serial schedule from the initial database.
func (c *check) execute(ctx context.Context, plan []order) (*serial, error) {
	if !c.fresh {
		if err := c.stage.Reset(ctx); err != nil {
			return nil, fmt.Errorf("wss: %w", err)
		}
	}
	c.fresh = false
	e := &serial{orders: plan}
	for _, o := range plan {
		st, err := c.stage.Execute(ctx, o.session, o.sql)
		if err != nil {
			return nil, fmt.Errorf("wss: serial schedule: %w", err)
		}
		e.steps = append(e.steps, st)
	}
	var err error
	if e.tables, err = c.stage.Tables(ctx); err != nil {
		return nil, fmt.Errorf("wss: final state of the serial schedule: %w", err)
	}
	return e, nil
}
