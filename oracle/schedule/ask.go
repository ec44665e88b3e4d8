package schedule

import (
	"context"
	"strings"

	"wirecheck/answer"
	"wirecheck/statement"
)

// Ask executes a query of an oracle's own in a session. A query that is refused leaves the session's transaction as it was, also
// where an error fails it (fails: PostgreSQL).
func Ask(ctx context.Context, stage Stage, session int, sql string, now answer.State, fails bool) (Step, error) {
	got, err := AskAll(ctx, stage, session, now, fails, sql)
	if err != nil {
		return Step{}, err
	}
	return got[0], nil
}

// AskAll is Ask of several queries, until the server refuses one: that one is the last that it gives.
func AskAll(ctx context.Context, stage Stage, session int, now answer.State, fails bool, queries ...string) ([]Step, error) {
	if !fails || now != answer.Open {
		return Together(ctx, stage, session, queries...)
	}
	const undo = "ROLLBACK TO SAVEPOINT wirecheck_ask"
	steps, err := Together(ctx, stage, session, append(append([]string{"SAVEPOINT wirecheck_ask"}, queries...), undo)...)
	if err != nil {
		return nil, err
	}
	if len(steps) < len(queries)+2 {
		if _, err = stage.Execute(ctx, session, undo); err != nil {
			return nil, err
		}
	}
	if len(steps) == 1 { // no savepoint, no query
		return steps, nil
	}
	return steps[1:min(len(steps), len(queries)+1)], nil
}

// Together executes statements in a session, one after the other, until the server refuses one: that one is the last that it gives. A stage may send them in one
// message, as far as it can tell their answers apart.
func Together(ctx context.Context, stage Stage, session int, list ...string) (steps []Step, err error) {
	if together, ok := stage.(interface {
		Together(ctx context.Context, session int, list ...string) ([]Step, error)
	}); ok {
		if steps, err = together.Together(ctx, session, list...); err != nil || steps != nil {
			return steps, err
		}
	}
	for _, sql := range list {
		st, err := stage.Execute(ctx, session, sql)
		if err != nil {
			return nil, err
		}
		if steps = append(steps, st); st.Answer.Err != nil {
			break
		}
	}
	return steps, nil
}

// Expect tells a stage which queries Execute is given next in a session, one by one, so that it may send them ahead of their turn. They leave nothing behind: what
// they give is asked for or not. A stage that cannot be told does not mind.
func Expect(ctx context.Context, stage Stage, session int, queries []string) error {
	if stage, ok := stage.(interface {
		Expect(ctx context.Context, session int, queries []string) error
	}); ok {
		return stage.Expect(ctx, session, queries)
	}
	return nil
}

// Where finds the WHERE clause of a statement: the bytes of Text from its keyword to its end. It is false if there is none, or it
// is not certain which it is.
func Where(st *statement.Statement) (from, to int, ok bool) {
	c := &st.Clauses
	if c.From == "" || c.Where == "" {
		return 0, 0, false
	}
	const blank = " \t\r\n"
	for i := 0; i+len(c.From) <= len(st.Text); i++ {
		if st.Text[i:i+len(c.From)] != c.From {
			continue
		}
		rest := st.Text[i+len(c.From):]
		keyword := strings.TrimLeft(rest, blank)
		if len(keyword) < 5 || !strings.EqualFold(keyword[:5], "where") {
			continue
		}
		condition := strings.TrimLeft(keyword[5:], blank)
		if !strings.HasPrefix(condition, c.Where) {
			continue
		}
		if ok {
			return 0, 0, false
		}
		from = len(st.Text) - len(keyword)
		to = len(st.Text) - len(condition) + len(c.Where)
		ok = true
	}
	return from, to, ok
}

// Leaves reports whether a query of a schedule may leave something behind: a transaction that it begins or fails, locks, or what it does besides reading. Otherwise the
// others go the same way without it.
func (s *Step) Leaves() bool {
	return s.Statement.Verb != "select" || s.Failed() || s.Before != s.After || s.Statement.Locking.Lock != statement.LockNone || Steady(&s.Statement) != ""
}

// Steady says why a query's answer on the same rows may differ from one execution to the next; empty: it does not.
func Steady(st *statement.Statement) string {
	switch {
	case st.Unparsed:
		return "it is not understood"
	case len(st.Targets()) > 0: // WITH ... AS (DELETE ... RETURNING ...)
		return "it writes"
	case st.Volatile != "":
		return st.Volatile
	case st.Variables:
		return "it depends on what the session did before"
	case st.Parameters > 0:
		return "it has parameters"
	}
	return ""
}
