package schedule

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/product"
	"wirecheck/statement"
)

// Transaction is one transaction of a schedule: an explicit one, or one autocommit statement.
type Transaction struct {
	Session int
	N       int // number within its session, from 1
	// Steps index Schedule.Steps, BEGIN and COMMIT included. A statement that commits implicitly (MySQL family: DDL) is a
	// transaction of its own behind the one that it ends.
	Steps    []int
	Explicit bool
	Level    string // that it ran at, as history.Event.Level: MariaDB's and TiDB's snapshot isolation is "snapshot"
	ReadOnly bool
	// Retries says that the server may have executed the statements again, on what was committed by then, before it committed the transaction
	// (product.Product.Retry).
	Retries bool
	Outcome history.Outcome // a transaction that was open at the end is aborted
	// Begin and End are the moments at which its first statement was sent and its last one was done; a transaction that was open at
	// the end of the schedule has an End behind all others.
	Begin, End int
}

// setting is what a session's transactions run at.
type setting struct {
	level, next string
	stricter    bool // the product's setting for snapshot isolation is on (product.Stricter)
	retries     bool // the product's setting for automatic retries is on (product.Product.Retry)
	readOnly    bool
	nextOnly    *bool // what is set for the next transaction; nil: nothing
}

// assignments find what a statement gives to a setting that products have, by the setting's name.
var assignments = func() map[string]*regexp.Regexp {
	patterns := map[string]*regexp.Regexp{}
	for _, p := range product.All() {
		for _, v := range []*product.Setting{p.Stricter(), p.Retry} {
			if v != nil {
				patterns[v.Name] = regexp.MustCompile(`(?i)\b` + v.Name + `\s*:?=\s*['"]?(\w*)`)
			}
		}
	}
	return patterns
}()

// assign follows a statement that may give a setting a value. DEFAULT is the server's affair: the setting counts as it was.
func assign(on *bool, v *product.Setting, st *statement.Statement) {
	if v == nil {
		return
	}
	if m := assignments[v.Name].FindStringSubmatch(st.Text); m != nil && !strings.EqualFold(m[1], "default") {
		*on = v.Assigned(m[1])
	}
}

// SetsRetry reports whether a statement sets product.Product.Retry and nothing else. Which transactions that concerns, Transactions tells.
func SetsRetry(p *product.Product, st *statement.Statement) bool {
	return st.Verb == "set" && p.Retry != nil && assignments[p.Retry.Name].MatchString(st.Text) && strings.Count(st.Text, "=") == 1
}

// note follows a statement that sets something for later transactions.
func (s *setting) note(p *product.Product, st *statement.Statement) {
	assign(&s.stricter, p.Stricter(), st)
	assign(&s.retries, p.Retry, st)
	if readOnly, scope, ok := access(p, st); ok {
		switch scope {
		case statement.ScopeSession:
			s.readOnly = readOnly
		case statement.ScopeNext:
			s.nextOnly = &readOnly
		}
	}
	c := st.Control
	if c.Verb != statement.ControlLevel || c.Level == "" {
		return
	}
	switch c.Scope {
	case statement.ScopeSession:
		s.level = c.Level
	case statement.ScopeNext:
		s.next = c.Level
	}
}

// set follows a statement that sets something within a transaction.
func (t *Transaction) set(p *product.Product, st *statement.Statement) {
	if readOnly, scope, ok := access(p, st); ok && scope == statement.ScopeTransaction {
		t.ReadOnly = readOnly
	}
	if c := st.Control; c.Verb == statement.ControlLevel && c.Scope == statement.ScopeTransaction && c.Level != "" {
		t.Level = p.Real(c.Level, t.Level == product.Snapshot)
	}
}

// Transactions takes the schedule apart, in the order of their ends: the First Commit/Rollback First Scheduled order
// (WriteCheck, section 3.3). Statements outside of transactions that only set something belong to none.
func (s *Schedule) Transactions() []Transaction {
	open := make([]*Transaction, len(s.Sessions))
	settings := make([]setting, len(s.Sessions))
	counts := make([]int, len(s.Sessions))
	for i := range settings {
		settings[i].level = s.Level
		if s.Level == product.Snapshot { // how MariaDB and TiDB give snapshot isolation
			settings[i].level, settings[i].stricter = product.RepeatableRead, true
		}
		for n := range s.Sessions[i].Setup {
			settings[i].note(s.DBMS(), &s.Sessions[i].Setup[n])
		}
	}
	var out []Transaction
	end := func(session, moment int, outcome history.Outcome) {
		t := open[session]
		t.End, t.Outcome = moment, outcome
		out = append(out, *t)
		open[session] = nil
	}
	last := 0
	for i := range s.Steps {
		st := &s.Steps[i]
		n := st.Session
		last = max(last, st.Done)
		c := st.Statement.Control
		if open[n] != nil && st.Statement.Ends && st.Effect != answer.EffectGone { // an implicit commit
			outcome := history.OutcomeCommitted
			if t := open[n]; st.Effect == answer.EffectRolledBack && s.DBMS().Optimistic(t.Level, t.Explicit) { // this commit met the conflict
				outcome = history.OutcomeAborted
			}
			end(n, st.Done, outcome)
		}
		ends := c.Verb == statement.ControlCommit || c.Verb == statement.ControlRollback
		if open[n] == nil {
			idle := !st.Before.InTransaction() && !st.After.InTransaction()
			if idle && (c.Verb != statement.ControlNone && c.Verb != statement.ControlDatabase || st.Statement.Verb == "set") && st.Effect != answer.EffectGone {
				settings[n].note(s.DBMS(), &st.Statement)
				continue
			}
			counts[n]++
			open[n] = settings[n].begin(s.DBMS(), st)
			open[n].Session, open[n].N, open[n].Begin = n, counts[n], st.Sent
		}
		t := open[n]
		t.Steps = append(t.Steps, i)
		if (c.Verb == statement.ControlLevel || st.Statement.Verb == "set") && st.Answer.Err == nil {
			t.set(s.DBMS(), &st.Statement)
			settings[n].note(s.DBMS(), &st.Statement)
		}
		switch {
		case st.Effect == answer.EffectGone:
			outcome := history.OutcomeAborted
			if c.Verb == statement.ControlCommit || !st.Before.InTransaction() {
				outcome = history.OutcomeUnknown
			}
			end(n, st.Done, outcome)
		case st.Effect == answer.EffectCommitted:
			end(n, st.Done, history.OutcomeCommitted)
		case st.Effect == answer.EffectRolledBack && !st.After.InTransaction():
			end(n, st.Done, history.OutcomeAborted)
		case ends && st.Answer.Err == nil && (c.Chain || st.After.InTransaction()): // or by completion_type (MySQL manual, 7.1.8)
			end(n, st.Done, outcomeOf(st))
			counts[n]++
			next := *t
			open[n] = &Transaction{Session: n, N: counts[n], Explicit: true, Level: next.Level, ReadOnly: next.ReadOnly, Retries: next.Retries, Begin: st.Done}
		case !st.After.InTransaction():
			end(n, st.Done, outcomeOf(st))
		}
	}
	for n := range open {
		if open[n] != nil {
			last++
			end(n, last, history.OutcomeAborted)
		}
	}
	return out
}

// outcomeOf is how a transaction ended with a step, after which its session is outside of one.
func outcomeOf(st *Step) history.Outcome {
	if st.Statement.Control.Verb == statement.ControlRollback || st.Answer.Err != nil {
		return history.OutcomeAborted
	}
	return history.OutcomeCommitted
}

// begin makes the transaction that a step begins.
func (s *setting) begin(p *product.Product, st *Step) *Transaction {
	level := s.level
	t := &Transaction{Explicit: st.After.InTransaction(), ReadOnly: s.readOnly}
	if s.next != "" {
		level = s.next
	}
	if s.nextOnly != nil {
		t.ReadOnly = *s.nextOnly
	}
	if t.Explicit || st.Reason != answer.ReasonReadOnly { // what is refused for that uses up nothing
		s.next, s.nextOnly = "", nil
	}
	stricter := s.stricter
	if st.Statement.Control.Verb == statement.ControlBegin {
		b := st.Statement.Begin
		if st.Statement.Control.Level != "" {
			level = st.Statement.Control.Level
		}
		stricter = (stricter || b.Optimistic) && !b.Pessimistic
		t.ReadOnly = b.ReadOnly || t.ReadOnly && !b.ReadWrite
	}
	t.Level = p.Real(level, stricter)
	t.Retries = s.retries && p.Optimistic(t.Level, t.Explicit)
	return t
}

// Of finds the transaction of a step among those of Transactions; nil if it belongs to none.
func Of(transactions []Transaction, step int) *Transaction {
	if i := slices.IndexFunc(transactions, func(t Transaction) bool { return slices.Contains(t.Steps, step) }); i >= 0 {
		return &transactions[i]
	}
	return nil
}

// Places gives the place among transactions of each step's transaction, for that many steps; -1: it belongs to none.
func Places(transactions []Transaction, steps int) []int {
	of := slices.Repeat([]int{-1}, steps)
	for i := range transactions {
		for _, n := range transactions[i].Steps {
			of[n] = i
		}
	}
	return of
}

// Restarted reports whether a step made the storage engine begin its part of a transaction again (product.Participation).
func (s *Schedule) Restarted(t *Transaction, step int) bool {
	return slices.Contains(s.restarts(t), step)
}

// Held reports whether what a step of a transaction read is still held for the transaction at its end, by its snapshot or its locks: the storage
// engine did not begin again behind it.
func (s *Schedule) Held(t *Transaction, step int) bool {
	again := s.restarts(t)
	return len(again) == 0 || step > again[len(again)-1]
}

// restarts are the steps of a transaction by which the storage engine began its part of it again.
func (s *Schedule) restarts(t *Transaction) (list []int) {
	if !s.DBMS().SavepointRestarts {
		return nil
	}
	var part product.Participation
	saved := map[string]int{}
	for _, i := range t.Steps {
		st := &s.Steps[i]
		if st.Failed() {
			continue
		}
		switch c, name := &st.Statement.Control, strings.ToLower(st.Statement.Control.Name); {
		case c.Verb == statement.ControlSavepoint:
			saved[name] = i
		case c.Verb == statement.ControlRollbackTo:
			if at, ok := saved[name]; ok && part.RollbackTo(at) {
				list = append(list, i)
			}
		case c.Verb == statement.ControlNone && st.Statement.Verb != "set", st.Statement.Begin.Snapshot:
			part.Use(i)
		}
	}
	return list
}
