package radar

import (
	"cmp"
	"context"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
)

// lanes is how many sessions of the raw database answer the queries of a schedule with one session, in turn: there are no transactions on it, and so each may
// ask any query.
const lanes = 2

// raw executes a query on the raw database.
func (c *checker) raw(ctx context.Context, st *schedule.Step) (schedule.Step, error) {
	if !c.alone {
		return c.o.Raw.Execute(ctx, st.Session, st.Statement.Text)
	}
	if c.expected == 0 {
		if err := c.expect(ctx, st); err != nil {
			return schedule.Step{}, err
		}
	}
	lane := c.turn % lanes
	c.turn, c.expected = c.turn+1, c.expected-1
	return c.o.Raw.Execute(ctx, lane, st.Statement.Text)
}

// expect tells the raw database of a query and of those behind it that are compared before anything is written.
func (c *checker) expect(ctx context.Context, from *schedule.Step) error {
	var next [lanes][]string
	on := false
	c.expected = 0
	for i := range c.s.Steps {
		st := &c.s.Steps[i]
		if on = on || st == from; !on {
			continue
		}
		if st.Statement.Verb != "select" {
			break
		}
		if c.why(st) == "" {
			lane := (c.turn + c.expected) % lanes
			next[lane] = append(next[lane], st.Statement.Text)
			c.expected++
		}
		if st.After == answer.Failed { // the transaction's other queries are refused
			break
		}
	}
	for lane, list := range next {
		if err := schedule.Expect(ctx, c.o.Raw, lane, list); err != nil {
			return err
		}
	}
	return nil
}

// set executes on the raw database what sets something in a session.
func (c *checker) set(ctx context.Context, session int, sql string) error {
	if _, err := c.o.Raw.Execute(ctx, session, sql); err != nil || !c.alone {
		return err
	}
	for lane := 1; lane < lanes; lane++ {
		if _, err := c.o.Raw.Execute(ctx, lane, sql); err != nil {
			return err
		}
	}
	return nil
}

// reusable reports whether the schedule's answer to a query is one of the state that its session of the stage is in now.
func (c *checker) reusable(st *schedule.Step, now answer.State) bool {
	now = cmp.Or(now, answer.Idle) // sessions begin outside of a transaction
	return c.o.Executed && c.alone && st.Before == now && st.After == now && st.Effect != answer.EffectGone
}

// alike reports whether two answers are the same: rows, or the code of an error, whose message tells values, of which any may
// come first.
func alike(a, b *schedule.Step) bool {
	if a.Answer.Err != nil || b.Answer.Err != nil {
		return a.Answer.Err != nil && b.Answer.Err != nil && a.Answer.Err.Code == b.Answer.Err.Code
	}
	return len(a.Answer.Columns) == len(b.Answer.Columns) && answer.DiffRows(b.Answer.Rows, a.Answer.Rows).Equal()
}
