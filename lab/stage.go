package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// Describe takes a text apart into statements, as a dialect of package rewrite does.
type Describe func(sql string) ([]statement.Statement, error)

// Stage lets a re-executing oracle execute what it wants in a lab's database (schedule.Stage). The lab must reset quickly or
// thoroughly (Config.Reset).
type Stage struct {
	lab      *Lab
	version  string
	describe Describe
	spec     *scenario.Spec // the setup and the sessions
	plain    bool           // see Plain
	lost     *Lost          // see TakeLost
}

// Plain tells whether nothing in the case's sessions leaves traces in a session or can see them: then sessions are not made as new
// each time. Until it is called they are.
func (s *Stage) Plain(spec *scenario.Spec) { s.plain = !slices.ContainsFunc(spec.Sessions, tells) }

// NewStage makes a stage of a lab. version is the server's, for Schedule.Version.
func NewStage(l *Lab, version string, describe Describe) *Stage {
	return &Stage{lab: l, version: version, describe: Remember(describe)}
}

// stageLimit bounds one statement: one session at a time executes, so nothing should wait for long.
const stageLimit = 10 * time.Second

// Ahead resets the stage while something else goes on. It does so only if the stage was prepared with this setup last, and rows alone bring that
// back, so that no setup is executed. Nobody may use the stage until join has returned, which waits for the end; if the stage is not needed, it
// brings about the end. An error says that the reset was cut off, at the latest by Config.Case: the stage is of no use any more. What else goes
// wrong does so once more when the stage is prepared.
func (s *Stage) Ahead(ctx context.Context, setup []scenario.Block) (join func(needed bool) error) {
	l := s.lab
	if s.spec == nil || l.config.Backend.Embedded || !l.is(s.spec) || !l.contents.Resettable || l.altered || len(setup) > len(s.spec.Setup) || !slices.EqualFunc(s.spec.Setup[:len(setup)], setup, sameBlock) {
		return func(bool) error { return nil }
	}
	ctx, cancel := l.bounded(ctx)
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		err = s.Reset(ctx)
	}()
	return func(needed bool) error {
		defer cancel()
		if !needed {
			cancel()
		}
		if <-done; ctx.Err() == nil {
			return nil
		}
		return err
	}
}

// Prepare implements schedule.Stage.
func (s *Stage) Prepare(ctx context.Context, setup []string, sessions int) error {
	s.spec = &scenario.Spec{Name: "stage"}
	for _, sql := range setup {
		s.spec.Setup = append(s.spec.Setup, scenario.Block{SQL: sql})
	}
	for i := range max(sessions, 1) { // a case without any is asked about, too
		s.spec.Sessions = append(s.spec.Sessions, &scenario.Session{Name: "s" + strconv.Itoa(i+1)})
	}
	return s.Reset(ctx)
}

// Reset implements schedule.Stage.
func (s *Stage) Reset(ctx context.Context) error {
	if s.spec == nil {
		return errors.New("reset a stage: it was not prepared")
	}
	began := time.Now()
	// Sessions first: what they hold open keeps tables from being reset.
	err := s.lab.ready(ctx, s.spec, s.plain)
	if err == nil {
		err = s.lab.begin(ctx, s.spec)
	}
	if err != nil {
		return s.lab.blame(ctx, err, began, stageLimit)
	}
	err = s.lab.setUp(ctx, s.spec, &Result{}, func(bool) {})
	s.lab.pristine = err == nil
	return err
}

// Execute implements schedule.Stage.
func (s *Stage) Execute(ctx context.Context, session int, sql string) (schedule.Step, error) {
	statements := []statement.Statement{{Text: sql}}
	if strings.Contains(sql, ";") { // perhaps several, whose answers must be told apart
		var err error
		if statements, err = s.describe(sql); err != nil {
			return schedule.Step{}, err
		}
	}
	steps, err := s.send(ctx, session, statements, sql)
	if err != nil {
		return schedule.Step{}, err
	}
	return steps[len(steps)-1], nil
}

// Together implements schedule.Together: one message has all statements.
func (s *Stage) Together(ctx context.Context, session int, list ...string) ([]schedule.Step, error) {
	if slices.ContainsFunc(list, func(sql string) bool { return strings.Contains(sql, ";") }) { // it may be several
		return nil, nil
	}
	var statements []statement.Statement
	for _, sql := range list {
		statements = append(statements, statement.Statement{Text: sql})
	}
	steps, err := s.send(ctx, session, statements, list...)
	if err != nil {
		return nil, err
	}
	if last := &steps[len(steps)-1]; len(steps) < len(list) && !last.Failed() {
		return nil, fmt.Errorf("execute on the stage: %d statements in one message have other answers than one each: %s", len(list), strings.Join(list, "; "))
	}
	return steps, nil
}

// Expect implements schedule.Expect.
func (s *Stage) Expect(ctx context.Context, session int, queries []string) error {
	s.lab.pristine = false
	return s.lab.members[session].expect(ctx, queries)
}

// send executes what is one message, and makes a step of each of its statements that was executed.
func (s *Stage) send(ctx context.Context, session int, statements []statement.Statement, parts ...string) ([]schedule.Step, error) {
	sql := strings.Join(parts, between)
	s.lab.pristine = false
	m := s.lab.members[session]
	if m.lost {
		if s.lost != nil && s.lost.Session == session {
			return nil, s.lost
		}
		return nil, fmt.Errorf("session %d's connection is gone", session+1)
	}
	b := s.lab.config.Backend
	limit, cancel := context.WithTimeout(ctx, stageLimit)
	defer cancel()
	a, err := m.do(limit, parts...)
	o := b.Outcome(a, err)
	s.lab.altered = s.lab.altered || slices.ContainsFunc(parts, defines)
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil && limit.Err() != nil {
		kill, cancel := context.WithTimeout(context.WithoutCancel(ctx), killLimit)
		defer cancel()
		if err := s.lab.watcher.Kill(kill, m.conn.ID()); err != nil {
			if kill.Err() != nil {
				err = fmt.Errorf("%w: %w", ErrStays, err)
			}
			return nil, fmt.Errorf("end a statement that took more than %v: %w", stageLimit, err)
		}
		o = answer.Outcome{Effect: answer.EffectGone, Reason: answer.ReasonLockTimeout}
		s.lost = &Lost{Session: session, SQL: sql, Ended: true, Text: fmt.Sprintf("no answer within %v", stageLimit)}
		err = nil
	}
	if o.Effect == answer.EffectGone && s.lost == nil {
		s.lost = &Lost{Session: session, SQL: sql, Ended: o.Reason == answer.ReasonKilled}
		switch {
		case a.Err != nil:
			s.lost.Text = "the connection ended: " + a.Err.Text()
		case err != nil:
			s.lost.Text = "the connection ended: " + err.Error()
		}
	}
	if err != nil && a.Err == nil {
		if s.lost != nil {
			return nil, s.lost
		}
		return nil, fmt.Errorf("execute on the stage: %w", err)
	}
	return split(schedule.Step{Session: session, Before: a.Before, After: a.After, Effect: o.Effect, Reason: o.Reason}, sql, statements, a), nil
}

// Lost is a session whose connection ended by a statement that the stage was asked to execute. Everything that is asked of the session
// after it gets this as its error.
type Lost struct {
	Session int
	SQL     string
	Text    string // what was seen
	Ended   bool   // somebody ended it: we, since it did not, or the server on request
}

// Error implements error.
func (l *Lost) Error() string {
	return fmt.Sprintf("session %d's connection is gone since %s: %s", l.Session+1, l.SQL, l.Text)
}

// TakeLost gives the first session that was lost since it was asked last; nil: none was.
func (s *Stage) TakeLost() *Lost {
	lost := s.lost
	s.lost = nil
	return lost
}

// Alive reports whether the server answers at all.
func (s *Stage) Alive(ctx context.Context) bool {
	limit, cancel := context.WithTimeout(ctx, stageLimit)
	defer cancel()
	_, err := engine.Query(limit, s.lab.side, "SELECT 1")
	return err == nil
}

// Tables implements schedule.Stage. Where no session is left in a transaction, who reads waits for nobody.
func (s *Stage) Tables(ctx context.Context) ([]answer.Table, error) {
	began := time.Now()
	tables, err := s.lab.tables(ctx)
	if !slices.ContainsFunc(s.lab.members, func(m *session) bool { return m != nil && (m.dirty || m.inside) }) {
		err = s.lab.blame(ctx, err, began, stageLimit)
	}
	return tables, err
}

// Load implements schedule.Stage.
func (s *Stage) Load(ctx context.Context, tables []answer.Table) error {
	if s.lab.contents == nil {
		return errors.New("load a stage: it was not prepared")
	}
	s.lab.pristine = false
	s.lab.settle(ctx)
	err := s.lab.contents.Load(ctx, s.lab.side, tables)
	var refused *answer.Error
	if errors.As(err, &refused) {
		return &schedule.Refused{Err: err}
	}
	return err
}

// Run implements schedule.Stage.
func (s *Stage) Run(ctx context.Context, sessions []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	if s.spec == nil {
		return nil, errors.New("run on a stage: it was not prepared")
	}
	spec := &scenario.Spec{Name: "stage", Setup: s.spec.Setup}
	for _, from := range sessions {
		spec.Sessions = append(spec.Sessions, &scenario.Session{Name: from.Name})
	}
	p := &scenario.Permutation{}
	for _, o := range orders {
		session := spec.Sessions[o.Session]
		st := &scenario.Step{Name: o.Name, SQL: o.SQL, Session: o.Session, Index: len(session.Steps)}
		session.Steps = append(session.Steps, st)
		p.Steps = append(p.Steps, scenario.PermutationStep{Step: st})
	}
	settings := make([][]string, len(sessions))
	for i := range sessions {
		for _, st := range sessions[i].Setup {
			settings[i] = append(settings[i], st.Text)
		}
	}
	r, err := s.lab.run(ctx, spec, p, settings, func(bool) {})
	if err != nil {
		return nil, err
	}
	return s.Schedule(spec, r)
}

// Schedule gives what a lab's execution of a scenario did in the oracles' words.
func (s *Stage) Schedule(spec *scenario.Spec, r *Result) (*schedule.Schedule, error) {
	out := &schedule.Schedule{
		Product: s.lab.config.Backend.Name, Version: s.version, Level: s.lab.config.Level.History,
		Final: r.Tables, Crashed: r.Crashed, Hung: r.Hung, Marks: r.Marks,
	}
	out.Raw = spec.Raw()
	if r.Trouble != nil {
		out.Trouble = r.Trouble.Error()
	}
	for i := range spec.Setup {
		out.Setup = append(out.Setup, spec.Setup[i].SQL)
	}
	for _, session := range spec.Sessions {
		out.Sessions = append(out.Sessions, schedule.Session{Name: session.Name})
	}
	if r.Silent != nil {
		out.Silent = &schedule.Step{Session: r.Silent.Session, Name: r.Silent.Name, Statement: statement.Statement{Text: r.Silent.SQL}}
	}
	tick := 0
	next := func() int { tick++; return tick }
	for _, o := range r.Setup {
		if o.Session < 0 {
			continue
		}
		steps, err := s.steps(schedule.Step{Session: o.Session, Name: "setup", Sent: next()}, o.SQL, o.Answer, s.lab.config.Backend.Outcome(o.Answer, nil))
		if err != nil {
			return nil, err
		}
		begun := o.Answer.Before.InTransaction()
		for _, st := range steps {
			if begun = begun || st.After.InTransaction(); begun {
				st.Done = next()
				out.Steps = append(out.Steps, st)
			} else {
				out.Sessions[o.Session].Setup = append(out.Sessions[o.Session].Setup, st.Statement)
			}
		}
	}
	sent, waits := map[int]int{}, map[int]Event{}
	for _, ev := range r.Events {
		switch ev.Kind {
		case Waits:
			if _, again := sent[ev.Place]; !again {
				sent[ev.Place] = next()
			}
			waits[ev.Place] = ev
		case Ran, Resumed:
			if sent[ev.Place] == 0 {
				sent[ev.Place] = next()
			}
			wait, waited := waits[ev.Place]
			steps, err := s.steps(schedule.Step{Session: ev.Step.Session, Name: ev.Step.Name, Sent: sent[ev.Place], Waited: waited, For: wait.For}, ev.Step.SQL, ev.Answer, ev.Outcome)
			if err != nil {
				return nil, err
			}
			for _, st := range steps {
				st.Done = next()
				out.Steps = append(out.Steps, st)
			}
		}
	}
	return out, nil
}

// steps takes an executed step apart.
func (s *Stage) steps(like schedule.Step, sql string, a answer.Answer, o answer.Outcome) ([]schedule.Step, error) {
	statements, err := s.describe(sql)
	if err != nil {
		return nil, err
	}
	if how := fault(sql); how != "" && (how != inWait || o.Reason == answer.ReasonKilled) { // a report must tell, and a dialect leaves out comments
		statements = slices.Clone(statements)
		statements[0].Text = sql
	}
	like.Before, like.After, like.Effect, like.Reason = a.Before, a.After, o.Effect, o.Reason
	return split(like, sql, statements, a), nil
}

// split makes a step for each statement that was executed. Where the answers cannot be told apart it is one step of verb
// "script".
func split(like schedule.Step, sql string, statements []statement.Statement, a answer.Answer) []schedule.Step {
	ran := len(a.Results)
	if a.Err != nil {
		ran++
	}
	if len(statements) == 1 && ran <= 1 {
		ran = 1 // a connection that ended has no answer
	}
	if ran == 0 || ran > len(statements) || ran < len(statements) && a.Err == nil {
		like.Statement = statement.Statement{Text: sql, Verb: "script", Unparsed: true}
		if n := len(a.Results); n > 0 {
			like.Answer = a.Results[n-1]
		}
		like.Answer.Err = a.Err
		return []schedule.Step{like}
	}
	steps := make([]schedule.Step, ran)
	now := like.Before
	for i := range steps {
		st := like
		st.Statement = statements[i]
		if i < len(a.Results) {
			st.Answer = a.Results[i]
		}
		st.Before = now
		if i < ran-1 {
			now = following(now, statements[i])
			st.After, st.Effect, st.Reason = now, answer.EffectNone, ""
		} else {
			st.Answer.Err = a.Err
		}
		steps[i] = st
	}
	return steps
}

// following is the state after a statement that was done in the middle of a script.
func following(now answer.State, st statement.Statement) answer.State {
	switch st.Control.Verb {
	case statement.ControlBegin:
		return answer.Open
	case statement.ControlCommit, statement.ControlRollback:
		if !st.Control.Chain {
			return answer.Idle
		}
	}
	return now
}
