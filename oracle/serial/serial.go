// Package serial asks of an execution whether its sessions, taken as units, could have run one after the other: it executes them in every
// serial order and compares what each statement brought and what the tables hold at the end (view and final-state serializability by
// values: Bernstein, Hadzilacos, Goodman, Concurrency Control and Recovery in Database Systems, chapter 2; Vidyasankar 1987). It needs no
// dependencies, and sees phantoms and races between the several transactions of one session as well as any other.
//
// A session is one unit: what an application does for one request. So this oracle is asked by name only: sessions that run transactions
// which have nothing to do with each other need not be serializable as wholes.
package serial

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "serial",
	Doc: `sessions that could not have run one after the other
It executes the sessions in every serial order. If none brings the same answers and tables, they were not serializable. Each session is taken as
one unit, all of its transactions together: name this oracle for scenarios in which that is what is wanted.`,
}

// MaxSessions is how many sessions are judged at most: their orders are 24.
const MaxSessions = 4

// Options are what the execution itself does not tell.
type Options struct {
	// Counters are the columns that counters fill, as "table.column" in lower case, without schema.
	Counters map[string]bool
	// Keys are the columns of the unique keys of each table, by its name, in lower case.
	Keys map[string][][]string
	// Was reports whether a row that was there before has a value in a column; nil: not known.
	Was func(table, column, value string) bool
	// Recent reports whether a clock may show a day (2026-11-23) while executions run; nil: not known.
	Recent func(day string) bool
}

// Check judges a schedule on a stage of its own.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, o Options) (v schedule.Verdict, err error) {
	if v.Unknown = s.Incomplete(); v.Unknown != "" {
		return v, nil
	}
	if slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Name == "setup" }) {
		v.Unknown = "a session's setup begins a transaction"
		return v, nil
	}
	if err := stage.Prepare(ctx, s.Setup, len(s.Sessions)); err != nil {
		return v, err
	}
	again, err := stage.Run(ctx, s.Sessions, submitted(s))
	if err != nil {
		return v, err
	}
	for i := range again.Steps {
		if st := &again.Steps[i]; st.Effect == answer.EffectGone {
			if was := stepOf(s, st.Session, st.Name); was != nil && was.Effect != answer.EffectGone {
				v.Unknown = fmt.Sprintf("executed again, %s of %s got no answer", st.Name, s.Sessions[st.Session].Name)
				return v, nil
			}
		}
	}
	m := NewMasks(o)
	m.Blind(s)
	m.Learn(s, again)
	j, err := m.Judge(s, false, func(order []int) (*schedule.Schedule, error) { return stage.Run(ctx, s.Sessions, inOrder(s, order)) })
	if err != nil {
		return v, err
	}
	v.Unknown, v.Notes = j.Unknown, m.notes
	if len(j.Differences) > 0 {
		v.Findings = append(v.Findings, finding(s, j.Closest()))
	}
	return v, nil
}

// submitted gives the steps in the order in which they were sent.
func submitted(s *schedule.Schedule) (orders []schedule.Order) {
	steps := slices.Clone(s.Steps)
	slices.SortStableFunc(steps, func(a, b schedule.Step) int { return a.Sent - b.Sent })
	for _, st := range steps {
		orders = append(orders, schedule.Order{Session: st.Session, Name: st.Name, SQL: st.Statement.Text})
	}
	return orders
}

// inOrder gives the steps of whole sessions, one session after the other.
func inOrder(s *schedule.Schedule, order []int) (orders []schedule.Order) {
	all := submitted(s)
	for _, session := range order {
		for _, o := range all {
			if o.Session == session {
				orders = append(orders, o)
			}
		}
	}
	return orders
}

// Judgement says whether an execution was serializable.
type Judgement struct {
	// Differences say for each serial order what would have been different; empty: one of them is the same.
	Differences []Difference
	Unknown     string // why nothing can be said
}

// Difference is how an execution differs from one serial order.
type Difference struct {
	Text    string
	Order   []int // the sessions
	Session int
	Step    string // whose answer differs; empty: a table does
	SQL     string
	Table   string
	Want    string
	Got     string
	places  int // in which the order differs
}

// Closest is the serial order that differs in the fewest places: its first difference is what one mends.
func (j *Judgement) Closest() Difference {
	d := slices.MinFunc(j.Differences, func(a, b Difference) int { return a.places - b.places })
	if n := len(j.Differences); n > 1 {
		d.Text += fmt.Sprintf(" (the closest of %d serial orders)", n)
	}
	return d
}

// Judge compares an execution with the serial ones, which run executes. Sessions of which nothing lasted, since the server ended their transactions
// to let others go on (deadlock, serialization failure, lock wait), are left out: without them it must be serializable. strict compares what
// Blind has masked, too: then no difference tells more, and one tells nothing.
func (m *Masks) Judge(s *schedule.Schedule, strict bool, run func(order []int) (*schedule.Schedule, error)) (j Judgement, err error) {
	sessions, why := lasting(s)
	switch {
	case why != "":
		return Judgement{Unknown: why}, nil
	case len(sessions) > MaxSessions:
		return Judgement{Unknown: fmt.Sprintf("more than %d sessions", MaxSessions)}, nil
	case len(sessions) < 2:
		return j, nil
	}
	for order := range schedule.Permutations(sessions) {
		r, err := run(order)
		if err != nil {
			return j, err
		}
		if r.Trouble != "" || r.Crashed {
			return Judgement{Unknown: "a serial order could not be executed: " + r.Trouble}, nil
		}
		d, differs := m.difference(s, r, sessions, strict)
		if !differs {
			return Judgement{}, nil
		}
		d.Order = order
		d.Text = fmt.Sprintf("with %s one after the other: %s", strings.Join(names(s, order), ", "), d.Text)
		j.Differences = append(j.Differences, d)
	}
	return j, nil
}

// lasting gives the sessions that did something that lasted. One that the server has refused something, and that has committed nothing but reads, did not: the
// application got an error. Why says why that is not known.
func lasting(s *schedule.Schedule) (sessions []int, why string) {
	lasts, refused, wrote := make([]bool, len(s.Sessions)), make([]bool, len(s.Sessions)), make([]bool, len(s.Sessions))
	for i := range s.Steps {
		st := &s.Steps[i]
		switch {
		case st.Effect == answer.EffectGone:
			return nil, "a connection ended"
		case st.Reason == answer.ReasonDeadlock || st.Reason == answer.ReasonSerialization || st.Reason == answer.ReasonLockTimeout || st.Reason == answer.ReasonKilled:
			refused[st.Session] = true
		}
	}
	for _, t := range s.Transactions() {
		if t.Outcome == history.OutcomeUnknown {
			return nil, "it is not known whether a transaction committed"
		}
		// A transaction that the application rolled back still read what it read.
		lasts[t.Session] = lasts[t.Session] || t.Outcome == history.OutcomeCommitted || !refused[t.Session]
		wrote[t.Session] = wrote[t.Session] || t.Outcome == history.OutcomeCommitted && slices.ContainsFunc(t.Steps, func(i int) bool { return mayWrite(&s.Steps[i].Statement) })
	}
	for i := range s.Sessions {
		switch {
		case refused[i] && !wrote[i]:
		case lasts[i] && refused[i]:
			return nil, fmt.Sprintf("session %s went on after the server had ended one of its transactions", s.Sessions[i].Name)
		case lasts[i]:
			sessions = append(sessions, i)
		}
	}
	return sessions, ""
}

// mayWrite reports whether a statement changes rows, or may do so in a way that its text does not tell.
func mayWrite(x *statement.Statement) bool {
	return x.Unparsed || x.DDL || len(x.Targets()) > 0 || x.Verb == "select" && x.Volatile != "" && x.Volatile != statement.UnorderedLimit
}

func names(s *schedule.Schedule, sessions []int) (list []string) {
	for _, i := range sessions {
		list = append(list, s.Sessions[i].Name)
	}
	return list
}

// finding tells of an execution that no serial order explains. It is a violation where the product promises serializable transactions, each
// session is one, and all that it read is held for it to its end.
func finding(s *schedule.Schedule, d Difference) oracle.Finding {
	f := oracle.Finding{
		Oracle: Descriptor.Name, Kind: oracle.KindAnomaly, Class: oracle.Serial, Name: oracle.NameSerial, Level: s.Level, Seen: 1, Tables: []string{},
		Difference: &oracle.Difference{
			Rule: "serializability: some order of the sessions, one after the other, brings the same answers and the same tables at the end",
			Step: d.Step, SQL: d.SQL, Table: d.Table,
			Expected: oracle.Side{Text: d.Want}, Observed: oracle.Side{Text: d.Got},
		},
	}
	if d.Step != "" {
		f.Difference.Session = s.Sessions[d.Session].Name
	}
	promised := true
	for _, t := range s.Transactions() {
		promised = promised && t.N == 1 && t.Level == product.Serializable && s.Held(&t, t.Steps[0])
	}
	if promised {
		f.Kind, f.Promised = oracle.KindViolation, true
	}
	f.Difference.Reference = []string{d.Text}
	f.ID = f.Fingerprint()
	return f
}
