package lab

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
)

// Run executes one permutation of a scenario: setup, steps, final queries, teardown. An error means that the case is wrong
// or could not be begun; if its setup was refused, what came before that is in the Result. What happens later is in the
// Result only. prepared is called when the setup is done, before the sessions' own setups, which may begin transactions
// that the steps go on with; afresh is false if rows were put back and no definition was touched.
func (l *Lab) Run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, prepared func(afresh bool)) (*Result, error) {
	return l.run(ctx, spec, p, nil, prepared)
}

// ErrCaseLimit says that Config.Case has passed.
var ErrCaseLimit = errors.New("the case took more than")

// bounded bounds what a case executes.
func (l *Lab) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, l.config.Case, fmt.Errorf("%w %v", ErrCaseLimit, l.config.Case))
}

// run is Run; settings are statements that are executed in each session before its own setup.
func (l *Lab) run(ctx context.Context, spec *scenario.Spec, p *scenario.Permutation, settings [][]string, prepared func(afresh bool)) (*Result, error) {
	ctx, cancel := l.bounded(ctx)
	defer cancel()
	began := time.Now()
	err := l.ready(ctx, spec, l.config.Keep || !slices.ContainsFunc(spec.Sessions, tells))
	if err == nil {
		err = l.begin(ctx, spec)
	}
	if err != nil {
		return nil, l.blame(ctx, err, began, l.config.Case)
	}
	r := &Result{Permutation: p}
	for i := range spec.Sessions {
		r.Backends = append(r.Backends, l.members[i].conn.ID())
	}
	if err := l.setUp(ctx, spec, r, prepared); err != nil {
		return r, err
	}
	for i, list := range settings {
		for _, sql := range list {
			if err := l.block(ctx, l.members[i], i, &scenario.Block{SQL: sql}, &r.Setup); err != nil {
				return r, fmt.Errorf("setup of session %s: %w", spec.Sessions[i].Name, err)
			}
		}
	}
	if r.Invariants, err = ReadBefore(ctx, l.side, l.config.Invariants); err != nil {
		return nil, err
	}
	if pin := l.config.Backend.Lab.Pin; pin != "" {
		if err := engine.Exec(ctx, l.side, pin); err != nil {
			return nil, err
		}
	}
	l.execute(ctx, spec, p, r)
	l.altered = l.altered || slices.ContainsFunc(spec.Sessions, alters)
	limit := l.config.Case
	if r.Trouble != nil { // the next case may use the database all the same
		limit = killLimit
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), limit)
		defer cancel()
	}
	began = time.Now()
	if err := l.tearDown(ctx, spec, r); err != nil {
		r.stop(l.blame(ctx, err, began, limit)) // no step is under way any more
	}
	if r.Trouble != nil {
		l.current, l.contents = nil, nil
	}
	return r, nil
}

// begin makes the database ready for setUp: as it was when the setup had been done, or empty.
func (l *Lab) begin(ctx context.Context, spec *scenario.Spec) error {
	b, pristine := l.config.Backend.Lab, l.pristine
	if l.pristine = false; pristine && l.is(spec) {
		return nil
	}
	if l.is(spec) && l.contents != nil && l.contents.Resettable {
		changed, err := l.changed(ctx)
		if err != nil {
			return err
		}
		if !changed {
			return l.contents.Reset(ctx, l.side, l.config.Reset == Thorough)
		}
	}
	l.current, l.contents = nil, nil
	now, err := b.Fingerprint(ctx, l.side)
	if err != nil {
		return fmt.Errorf("look for what is left in the database: %w", err)
	}
	if now != l.empty {
		if err := engine.Exec(ctx, l.side, b.Clear(l.config.Side.Database)); err != nil {
			return fmt.Errorf("clear the database: %w", err)
		}
	}
	return nil
}

// is reports whether the database is in the state that the scenario's setup leaves.
func (l *Lab) is(spec *scenario.Spec) bool {
	return l.current != nil && slices.EqualFunc(l.current.Setup, spec.Setup, sameBlock)
}

func sameBlock(a, b scenario.Block) bool { return a.SQL == b.SQL }

// changed reports whether definitions are not as they were when contents were remembered. The server is only asked if
// something was executed that can have changed them: its catalogs are slow to read.
func (l *Lab) changed(ctx context.Context) (bool, error) { return l.changedFor(ctx, l.side) }

// changedFor is changed as a connection sees it.
func (l *Lab) changedFor(ctx context.Context, c engine.Conn) (bool, error) {
	if !l.altered {
		return false, nil
	}
	changed, err := l.contents.Changed(ctx, c)
	l.altered = changed || err != nil
	return changed, err
}

// alters reports whether something in a session may change definitions. It errs on the side of yes.
func alters(s *scenario.Session) bool { return has(s, defines) }

// tells reports whether something in a session may tell what the session did before, or leave something in it. It errs on the side of yes.
func tells(s *scenario.Session) bool { return has(s, func(sql string) bool { return !plain(sql) }) }

// has reports whether a session has a text.
func has(s *scenario.Session, text func(sql string) bool) bool {
	return slices.ContainsFunc([]*scenario.Block{s.Setup, s.Teardown}, func(b *scenario.Block) bool { return b != nil && text(b.SQL) }) ||
		slices.ContainsFunc(s.Steps, func(st *scenario.Step) bool { return text(st.SQL) })
}

// setUp executes the setup blocks, unless begin has brought back what they did.
func (l *Lab) setUp(ctx context.Context, spec *scenario.Spec, r *Result, prepared func(afresh bool)) error {
	afresh := !l.is(spec)
	if afresh {
		began := time.Now()
		for i := range spec.Setup {
			b := &spec.Setup[i]
			if err := l.block(ctx, l.control, -1, b, &r.Setup); err != nil {
				err = l.blame(ctx, err, began, l.config.Case)
				return fmt.Errorf("%s:%d: setup: %w", spec.Name, b.Pos.Line, err)
			}
		}
		l.outputs = r.Setup
	}
	r.Setup = slices.Clone(l.outputs)
	if l.config.Reset != Setup && !l.is(spec) {
		var err error
		if l.contents, err = l.config.Backend.Lab.Remember(ctx, l.side); err != nil {
			return err
		}
		l.current, l.altered = spec, false
	}
	prepared(afresh)
	for i, s := range spec.Sessions {
		if s.Setup == nil {
			continue
		}
		if err := l.block(ctx, l.members[i], i, s.Setup, &r.Setup); err != nil {
			return fmt.Errorf("%s:%d: setup of session %s: %w", spec.Name, s.Setup.Pos.Line, s.Name, err)
		}
	}
	return nil
}

// block executes one setup or teardown.
func (l *Lab) block(ctx context.Context, s *session, n int, b *scenario.Block, out *[]Output) error {
	a, err := s.do(ctx, b.SQL)
	*out = append(*out, Output{Session: n, SQL: b.SQL, Answer: a})
	if err != nil {
		return err
	}
	if a.Err != nil {
		return a.Err
	}
	return nil
}

// tearDown executes final queries and teardowns. Refused teardowns are only reported in the answers.
func (l *Lab) tearDown(ctx context.Context, spec *scenario.Spec, r *Result) error {
	for i, s := range spec.Sessions {
		m := l.members[i]
		if s.Teardown != nil && m != nil && !m.lost {
			var refused *answer.Error
			if err := l.block(ctx, m, i, s.Teardown, &r.Teardown); err != nil && !errors.As(err, &refused) {
				return fmt.Errorf("teardown of session %s: %w", s.Name, err)
			}
		}
	}
	if err := l.quiesce(ctx); err != nil {
		return fmt.Errorf("end the sessions' transactions: %w", err)
	}
	if l.config.Backend.Lab.Pin != "" { // the server may clear away what it likes again
		if err := engine.Exec(ctx, l.side, "COMMIT"); err != nil {
			return err
		}
	}
	if l.config.Ended != nil {
		l.config.Ended()
	}
	if err := ReadAfter(ctx, l.side, r.Invariants); err != nil {
		return err
	}
	for _, sql := range spec.Finals() {
		a, err := l.control.conn.Do(ctx, sql)
		if err != nil {
			return fmt.Errorf("final query: %w", err)
		}
		r.Finals = append(r.Finals, a)
	}
	var err error
	if r.Tables, err = l.tables(ctx); err != nil {
		return err
	}
	if spec.Teardown != nil && l.config.Reset == Setup {
		var refused *answer.Error
		if err := l.block(ctx, l.control, -1, spec.Teardown, &r.Teardown); err != nil && !errors.As(err, &refused) {
			return fmt.Errorf("teardown: %w", err)
		}
	}
	return nil
}

// tables reads all tables, without columns that are not the scenario's.
func (l *Lab) tables(ctx context.Context) ([]answer.Table, error) {
	b := l.config.Backend.Lab
	if l.contents != nil {
		if changed, err := l.changed(ctx); err == nil && !changed {
			tables := slices.Clone(l.contents.Tables)
			err := b.ReadRows(ctx, l.side, tables)
			return plainTables(tables), err
		}
	}
	tables, err := b.ReadTables(ctx, l.side)
	for i := range tables {
		if l.config.Hidden != nil {
			tables[i].Hide(l.config.Hidden)
		}
	}
	return plainTables(tables), err
}

// plainTables are tables without what makes statements of them.
func plainTables(tables []engine.Table) []answer.Table {
	out := make([]answer.Table, len(tables))
	for i, t := range tables {
		out[i] = t.Table
	}
	return out
}

// quiesce ends what sessions left open, so that nobody waits for them: transactions, and locks that outlive them.
func (l *Lab) quiesce(ctx context.Context) error {
	var stale []int
	for i, m := range l.members {
		if m != nil && !m.lost && l.config.After != "" {
			if _, err := m.do(ctx, l.config.After); err != nil {
				return err
			}
		}
		if m != nil && (m.dirty || m.inside) {
			stale = append(stale, i)
		}
	}
	return l.renew(ctx, stale, func(i int) string { return l.members[i].name })
}
