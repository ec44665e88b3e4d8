package hunt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
)

// execute executes a step, with the fault if it is the one to have it.
func (f *fault) execute(ctx context.Context, c *conn, p *planned) (answer.Answer, error) {
	if !p.candidate || c.state == answer.Failed || !f.take() {
		return c.do(ctx, p.sql)
	}
	how := map[Kind]func(context.Context, *conn, *planned) (answer.Answer, string, error){
		LostWrite: f.lose, RolledBackWrite: f.keep, DirtyRead: f.dirty, StaleRead: f.stale, SkippedRow: f.skip, DroppedLock: f.unlock,
		WrongValue: f.wrong, DuplicateInsert: f.twice, SwappedValues: f.swap,
	}[f.kind]
	a, effect, err := how(ctx, c, p)
	if effect != "" {
		effect = fmt.Sprintf("%s: %s: %s: %s", f.kind, p.session, p.sql, effect)
	}
	f.give(effect)
	return a, err
}

// wrong changes one value of a result.
func (f *fault) wrong(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	a, err := c.do(ctx, p.sql)
	if err != nil || a.Err != nil || len(a.Results) != 1 || len(a.Results[0].Rows) == 0 || len(a.Results[0].Columns) == 0 {
		return a, "", err
	}
	r := &a.Results[0]
	row, col := f.intn(len(r.Rows)), f.intn(len(r.Columns))
	was := r.Rows[row]
	now := slices.Clone(was)
	now[col] = other(was[col])
	r.Rows = slices.Clone(r.Rows)
	r.Rows[row] = now
	return a, fmt.Sprintf("answered %s in place of %s", answer.RowText(now), answer.RowText(was)), nil
}

// other is a value near to one that is another: it looks as if it had the same type.
func other(v answer.Value) answer.Value {
	text := string(v)
	switch n, err := strconv.ParseInt(text, 10, 64); {
	case v == nil:
		return answer.Value("0")
	case err == nil && n < 1<<62:
		return strconv.AppendInt(nil, n+1, 10)
	case text == "t":
		return answer.Value("f")
	case text == "f":
		return answer.Value("t")
	}
	if x, err := strconv.ParseFloat(text, 64); err == nil {
		return strconv.AppendFloat(nil, x+1, 'f', -1, 64)
	}
	// The last digit of a date, or the last letter of a text.
	for i := len(text) - 1; i >= 0; i-- {
		if d := text[i]; d >= '0' && d <= '9' {
			return answer.Value(text[:i] + string('0'+(d-'0'+1)%10) + text[i+1:])
		}
	}
	return answer.Value(text + "x")
}

// stale answers a query from the database as it was when the case began.
func (f *fault) stale(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	a, err := c.do(ctx, p.sql)
	if err != nil || a.Err != nil || f.snapshot == nil {
		return a, "", err
	}
	old, ok := f.peek(ctx, f.snapshot, p.sql)
	if !ok || same(a, old) {
		return a, "", nil
	}
	a.Results = old.Results
	return a, "answered as of the beginning of the case", nil
}

// peek executes a query in the open transaction of a connection of the injector's own, and leaves no locks; false if the server
// refuses it.
func (f *fault) peek(ctx context.Context, e engine.Conn, sql string) (answer.Answer, bool) {
	var got answer.Answer
	for i, step := range []string{"SAVEPOINT " + savepoint, sql, "ROLLBACK TO SAVEPOINT " + savepoint} {
		a, err := e.Do(ctx, step)
		if err == nil && a.Err != nil && i != 1 {
			err = a.Err
		}
		if err != nil {
			f.trouble(fmt.Errorf("fault: execute %s: %w", step, err))
			return got, false
		}
		if i == 1 {
			got = a
		}
	}
	return got, got.Err == nil
}

// dirty answers a query with what other sessions have written and not committed. InnoDB has a level for that. PostgreSQL and TiDB have
// none, and to execute the writes once more would wait for their locks; there the query is executed in the transaction of the session
// that wrote, which sees them.
func (f *fault) dirty(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	writers := f.in.writers(c, p.statement)
	if len(writers) == 0 {
		a, err := c.do(ctx, p.sql)
		return a, "", err
	}
	var seen answer.Answer
	var ok bool
	if f.in.dirties() {
		reader, err := f.aside(ctx, c, "dirty reads", f.in.engine.SetLevel(readUncommitted))
		if err != nil {
			f.trouble(err)
		} else {
			seen, err = reader.Do(ctx, p.sql)
			if ok = err == nil && seen.Err == nil; err != nil {
				f.trouble(err)
			}
		}
		// A serializable transaction's query would wait for the writer and see no more of it; a real one that reads dirty data
		// does not wait.
		if ok && f.level.History == product.Serializable && c.state == answer.Open {
			return seen, "answered with data of " + names(writers) + " that is not committed", nil
		}
	} else {
		seen, ok = f.borrow(ctx, writers, p.sql)
	}
	a, err := c.do(ctx, p.sql) // for what a query does to its own transaction: its snapshot
	if !ok || err != nil || a.Err != nil || same(a, seen) {
		return a, "", err
	}
	a.Results = seen.Results
	return a, "answered with data of " + names(writers) + " that is not committed", nil
}

// borrow executes a query in the open transaction of the first of some sessions that is free.
func (f *fault) borrow(ctx context.Context, writers []*conn, sql string) (answer.Answer, bool) {
	for _, w := range writers {
		if !w.mu.TryLock() {
			continue // it waits in the server
		}
		a, err := func() (a answer.Answer, err error) {
			defer w.mu.Unlock()
			if w.state != answer.Open {
				return answer.Answer{Err: &answer.Error{}}, nil
			}
			_, _, err = w.attempt(ctx, func() (bool, error) {
				a, err = w.do(ctx, sql)
				return false, err
			})
			return a, err
		}()
		if err != nil {
			f.trouble(err)
			return a, false
		}
		if a.Err == nil {
			return a, true
		}
	}
	return answer.Answer{}, false
}

func names(list []*conn) string {
	parts := make([]string, len(list))
	for i, c := range list {
		parts[i] = c.session
	}
	return strings.Join(parts, ", ")
}
