package schedule

import (
	"context"

	"wirecheck/answer"
	"wirecheck/statement"
)

// Serial says what is done around the statements of a serial execution.
type Serial struct {
	// Before is asked in front of each statement; now is the state of its session, which it may use. False: the statement is left out.
	Before func(st *Step, now answer.State) (execute bool, err error)
	// After is told what the statement did; nil: nobody is told.
	After func(st, got *Step) error
}

// Serial executes a schedule's transactions one after the other, in the order of their ends, each in its own session of a stage that
// is as Prepare made it: so every statement runs alone, and what a session sees is what was committed before and what its own
// transaction wrote. Statements need not do what they did in the schedule. Left out are those that ended their connection, and what
// comes after them in the session.
func (s *Schedule) Serial(ctx context.Context, stage Stage, v Serial) error {
	now := make([]answer.State, len(s.Sessions))
	gone := make([]bool, len(s.Sessions))
	execute := func(session int, sql string) (Step, error) {
		got, err := stage.Execute(ctx, session, sql)
		if err == nil {
			now[session] = got.After
			gone[session] = got.Effect == answer.EffectGone
		}
		return got, err
	}
	step := func(st *Step) error {
		if gone[st.Session] || st.Effect == answer.EffectGone {
			gone[st.Session] = true
			return nil
		}
		do, err := v.Before(st, now[st.Session])
		if err != nil || !do {
			return err
		}
		got, err := execute(st.Session, st.Statement.Text)
		if err != nil || v.After == nil {
			return err
		}
		return v.After(st, &got)
	}
	for i := range s.Sessions {
		for _, st := range s.Sessions[i].Setup {
			if _, err := execute(i, st.Text); err != nil {
				return err
			}
		}
	}
	done := make([]bool, len(s.Steps))
	for _, t := range s.Transactions() {
		for i := range t.Steps[0] { // what the session set before
			if st := &s.Steps[i]; st.Session == t.Session && !done[i] {
				done[i] = true
				if err := step(st); err != nil {
					return err
				}
			}
		}
		for _, i := range t.Steps {
			done[i] = true
			if err := step(&s.Steps[i]); err != nil {
				return err
			}
		}
		if now[t.Session].InTransaction() && !gone[t.Session] {
			if err := step(&Step{Session: t.Session, Statement: ending}); err != nil {
				return err
			}
		}
	}
	return nil
}

// ending ends what the schedule left open.
var ending = statement.Statement{Text: "ROLLBACK", Verb: "rollback", Control: statement.Control{Verb: statement.ControlRollback}}
