package schedule

import (
	"context"
	"slices"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/statement"
)

// Queries says what is done with a schedule's queries, one by one.
type Queries struct {
	// LeftOut is what a query is that is left out, for the notes: "not compared". Reason says why it is; empty: it is not.
	LeftOut string
	Reason  func(st *statement.Statement) string
	// Each is given each of the others before it is executed.
	Each func(ctx context.Context, q *Query) error
}

// Query is a query that is to be executed.
type Query struct {
	*Step
	Verdict *Verdict
	s       *Schedule
	stage   Stage
	now     answer.State // of its session
}

// Queries executes a schedule's transactions one after the other on a stage that it prepares (Serial), and hands out the queries. What
// is left out is noted in the verdict. Nothing is executed if all are.
func (s *Schedule) Queries(ctx context.Context, stage Stage, o Queries) (v Verdict, err error) {
	if v.Unknown = s.Incomplete(); v.Unknown != "" {
		return v, nil
	}
	unchecked := s.Unchecked()
	skipped := func(st *Step) bool {
		why := o.Reason(&st.Statement)
		if why == "" && unchecked[st] {
			why = NotChecked
		}
		if why != "" {
			v.Note("%s: %s: %s", st.Statement.Text, o.LeftOut, why)
		}
		return why != ""
	}
	if !slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Statement.Verb == "select" && o.Reason(&st.Statement) == "" }) {
		for i := range s.Steps {
			if st := &s.Steps[i]; st.Statement.Verb == "select" {
				skipped(st)
			}
		}
		return v, nil
	}
	if err := stage.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
		return v, err
	}
	err = s.Serial(ctx, stage, Serial{Before: func(st *Step, now answer.State) (bool, error) {
		if st.Statement.Verb != "select" || now == answer.Failed || skipped(st) {
			return st.Leaves(), nil
		}
		return st.Leaves(), o.Each(ctx, &Query{st, &v, s, stage, now})
	}})
	return v, err
}

// Ask executes queries of an oracle's own in place of this one, until the server refuses one: refused is its place among them, or -1.
// The session's transaction stays as it was.
func (q *Query) Ask(ctx context.Context, queries ...string) (answers []answer.Result, refused int, err error) {
	steps, err := AskAll(ctx, q.stage, q.Session, q.now, q.s.DBMS().ErrorFails, queries...)
	if err != nil {
		return nil, 0, err
	}
	for i, st := range steps {
		if answers = append(answers, st.Answer); st.Answer.Err != nil {
			return answers, i, nil
		}
	}
	return answers, -1, nil
}

// Found adds the finding that the query breaks a rule which holds at every level, unless the vendor documents it. The parts are what the rule compares.
func (q *Query) Found(ctx context.Context, name string, class oracle.Class, rule string, expected, observed oracle.Side, opinion string, parts ...oracle.Part) error {
	f := oracle.Finding{
		Oracle: name, Kind: oracle.KindViolation, Class: class, Name: oracle.NameResult, Level: q.s.Level, Promised: true, Seen: 1,
		Difference: &oracle.Difference{
			Rule: rule, Step: q.Name, Session: q.s.Sessions[q.Session].Name, SQL: q.Statement.Text, Expected: expected, Observed: observed,
			Parts: parts, Opinion: opinion,
		},
	}
	for _, part := range parts {
		f.Difference.Reference = append(f.Difference.Reference, f.Difference.Session+": "+part.SQL)
	}
	if wrong := f.Difference.Wrong(); len(wrong) > 0 {
		f.Difference.SQL = parts[wrong[0]].SQL
	}
	for _, u := range q.Statement.Reads() {
		f.Tables = append(f.Tables, u.Name)
	}
	slices.Sort(f.Tables)
	f.Tables = slices.Compact(f.Tables)
	if err := q.s.Recognise(ctx, q.stage, q.Session, &q.Statement, q.now, &f); err != nil {
		return err
	}
	q.s.Permit(&f, q.Statement.Text)
	q.Verdict.Add(f)
	return nil
}

// NotChecked is why an unchecked query is left out.
const NotChecked = "an optimistic transaction may have rows with the same key until COMMIT looks for them"

// Unchecked gives the queries of TiDB's optimistic transactions, and of those that are lazy, that stand behind a write which may have made duplicates: these are looked for at
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
			list[st] = wrote && (s.DBMS().Optimistic(t.Level, true) || s.Lazy()) && t.Outcome != history.OutcomeCommitted
			wrote = wrote || !st.Failed() && (st.Statement.Insert != nil || st.Statement.Verb == "update")
		}
	}
	return list
}
