package schedule

import (
	"context"
	"slices"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/statement"
)

// Queries says what is done with a schedule's queries, one by one.
type Queries struct {
	// LeftOut is what a query is that is left out, for the notes: "not compared". Reason says why it is; empty: it is not.
	LeftOut string
	Reason  func(st *statement.Statement) string
	// Each is given each of the others before it is executed; now is the state of its session.
	Each func(ctx context.Context, st *Step, now answer.State) error
}

// Queries executes a schedule's transactions one after the other on a stage that it prepares (Serial), and hands out the queries. What
// is left out is noted in the verdict. Nothing is executed if all are.
func (s *Schedule) Queries(ctx context.Context, stage Stage, v *Verdict, q Queries) error {
	unchecked := s.Unchecked()
	skipped := func(st *Step) bool {
		why := q.Reason(&st.Statement)
		if why == "" && unchecked[st] {
			why = NotChecked
		}
		if why != "" {
			v.Note("%s: %s: %s", st.Statement.Text, q.LeftOut, why)
		}
		return why != ""
	}
	if !slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Statement.Verb == "select" && q.Reason(&st.Statement) == "" }) {
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Statement.Verb == "select" {
				skipped(st)
			}
		}
		return nil
	}
	if err := stage.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
		return err
	}
	return s.Serial(ctx, stage, Serial{Before: func(st *Step, now answer.State) (bool, error) {
		if st.Statement.Verb != "select" || now == answer.Failed || skipped(st) {
			return true, nil
		}
		return true, q.Each(ctx, st, now)
	}})
}

// NotChecked is why an unchecked query is left out.
const NotChecked = "an optimistic transaction may have rows with the same key until COMMIT looks for them"

// Unchecked gives the queries of TiDB's optimistic transactions that stand behind a write which may have made duplicates: these are looked for at
// COMMIT (TiDB documentation, Constraints: UNIQUE KEY, optimistic transactions; pingcap/tidb#22730). If that was successful, there were none.
func (s *Schedule) Unchecked() map[*Step]bool {
	list := map[*Step]bool{}
	if !s.DBMS().DuplicatesAtCommit {
		return list
	}
	for _, t := range s.Transactions() {
		wrote := false
		for _, i := range t.Steps {
			st := &s.Steps[i]
			list[st] = wrote && s.DBMS().Optimistic(t.Level, true) && t.Outcome != history.OutcomeCommitted
			wrote = wrote || !st.Failed() && (st.Statement.Insert != nil || st.Statement.Verb == "update")
		}
	}
	return list
}
