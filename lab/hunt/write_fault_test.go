package hunt

import (
	"context"
	"fmt"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/statement"
)

// lose executes a write and undoes it in the same transaction. Its locks stay.
func (f *fault) lose(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	effect := ""
	a, err := c.inside(ctx, func() (a answer.Answer, err error) {
		if err := c.must(ctx, "SAVEPOINT "+savepoint); err != nil {
			return a, err
		}
		if a, err = c.do(ctx, p.sql); err != nil || c.state != answer.Open {
			return a, err
		}
		if a.Err == nil && affected(a) > 0 {
			if err := c.must(ctx, "ROLLBACK TO SAVEPOINT "+savepoint); err != nil {
				return a, err
			}
			effect = fmt.Sprintf("its change of %d rows was undone", affected(a))
		}
		if err := c.must(ctx, "RELEASE SAVEPOINT "+savepoint); err != nil || effect == "" {
			return a, err
		}
		return a, f.relock(ctx, c, p.statement)
	})
	return a, effect, err
}

// relock takes the row locks of a write again that PostgreSQL lets go of with the savepoint (manual, 13.3.2), InnoDB not. The rows
// were locked a moment ago; if one cannot be locked now, because somebody who waited for it was quicker, its lock is lost, too.
func (f *fault) relock(ctx context.Context, c *conn, st *statement.Statement) error {
	if f.in.engine.Protocol != engine.ProtocolPostgres || st.Insert != nil {
		return nil
	}
	query, ok := st.Addressed("1")
	if !ok {
		return nil
	}
	lock := " FOR NO KEY UPDATE NOWAIT"
	if st.Verb == "delete" {
		lock = " FOR UPDATE NOWAIT"
	}
	_, _, err := c.attempt(ctx, func() (bool, error) {
		a, err := c.do(ctx, query+lock)
		return a.Err == nil, err
	})
	return err
}

// keep commits what is to be rolled back.
func (f *fault) keep(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	f.in.mu.Lock()
	wrote := len(c.wrote) > 0
	f.in.mu.Unlock()
	if !wrote || c.state != answer.Open {
		a, err := c.do(ctx, p.sql)
		return a, "", err
	}
	a, err := c.do(ctx, "COMMIT")
	if err != nil {
		return a, "", err
	}
	effect := "what the transaction wrote was committed"
	if a.Err != nil || c.state.InTransaction() || len(a.Results) == 1 && a.Results[0].Tag == "ROLLBACK" {
		effect = "" // a commit that the server refuses is a rollback
	}
	if c.state.InTransaction() {
		a, err := c.do(ctx, p.sql)
		return a, "", err
	}
	r := answer.Result{}
	if f.in.engine.Protocol == engine.ProtocolPostgres {
		r.Tag = "ROLLBACK"
	}
	return answer.Answer{Results: []answer.Result{r}}, effect, nil
}

// unlock executes a statement of a transaction on another connection, in autocommit: it takes no lock that lasts, and what it writes is
// committed at once. If it would have to wait there, it is executed as it should be.
func (f *fault) unlock(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	if c.state == answer.Open {
		other, err := f.aside(ctx, c, "autocommit", f.in.engine.SetLevel(f.level.SQL))
		if err != nil {
			f.trouble(err)
			return c.plain(ctx, p)
		}
		a, err := other.Do(ctx, p.sql)
		if err != nil {
			f.trouble(fmt.Errorf("fault: %w", err))
		} else if a.Err == nil {
			return a, "executed on another connection in autocommit", nil
		}
	}
	return c.plain(ctx, p)
}

// plain executes a step as it should be.
func (c *conn) plain(ctx context.Context, p *planned) (answer.Answer, string, error) {
	a, err := c.do(ctx, p.sql)
	return a, "", err
}

// twice executes an INSERT once more. Where a key forbids that, it stays as it was.
func (f *fault) twice(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	effect := ""
	a, err := c.inside(ctx, func() (answer.Answer, error) {
		a, err := c.do(ctx, p.sql)
		if err != nil || a.Err != nil || affected(a) == 0 {
			return a, err
		}
		ok, gone, err := c.attempt(ctx, func() (bool, error) {
			again, err := c.do(ctx, p.sql)
			return again.Err == nil && affected(again) > 0, err
		})
		if ok {
			effect = "executed twice"
		}
		return f.unless(gone, a), err
	})
	return a, effect, err
}

// unless is the answer, or an error if the server has ended the transaction because of what the fault did besides.
func (f *fault) unless(gone bool, a answer.Answer) answer.Answer {
	if gone {
		f.trouble(fmt.Errorf("fault: the server ended a transaction because of what the fault %q executed besides", f.kind))
	}
	return a
}

// skip executes an UPDATE so that one of its rows is left out. The row is locked all the same.
func (f *fault) skip(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	st := p.statement
	use := st.Main()[0]
	t, known, err := f.table(ctx, c, use.Name)
	query, ok := st.Addressed(f.list(t, use.Ref))
	if err != nil {
		f.trouble(err)
	}
	if err != nil || !known || !ok {
		return c.plain(ctx, p)
	}
	effect := ""
	a, err := c.inside(ctx, func() (answer.Answer, error) {
		var rows, spoiled answer.Answer
		// A locking read sees what the UPDATE will see, waits as it would, and makes no snapshot (InnoDB).
		ok, gone, err := c.attempt(ctx, func() (_ bool, err error) {
			rows, err = c.do(ctx, query+" FOR UPDATE")
			return rows.Err == nil, err
		})
		if err != nil || gone {
			return rows, err
		}
		if !ok || len(rows.Results) != 1 || len(rows.Results[0].Rows) < 2 {
			return c.do(ctx, p.sql)
		}
		list := rows.Results[0].Rows
		row := list[f.intn(len(list))]
		text, ok := except(st, f.is(t, use.Ref, row))
		if !ok {
			return c.do(ctx, p.sql)
		}
		ok, gone, err = c.attempt(ctx, func() (_ bool, err error) {
			spoiled, err = c.do(ctx, text)
			return spoiled.Err == nil && affected(spoiled) < int64(len(list)), err
		})
		if err != nil || gone {
			return spoiled, err
		}
		if !ok {
			return c.do(ctx, p.sql)
		}
		effect = "row " + answer.RowText(row) + " was left as it was"
		return spoiled, nil
	})
	return a, effect, err
}

// except adds to an UPDATE's condition that a row is not to be updated.
func except(st *statement.Statement, row string) (string, bool) {
	where, head, tail := st.Clauses.Where, st.Text[:st.AssignAt], st.Text[st.AssignAt:]
	if where == "" {
		return head + " WHERE NOT " + row + tail, true
	}
	if strings.Count(tail, where) != 1 {
		return "", false
	}
	before, after, _ := strings.Cut(tail, where)
	return head + before + "(" + where + "\n) AND NOT " + row + after, true
}

// swap lets two rows of a table exchange a column's values after a write of that table.
func (f *fault) swap(ctx context.Context, c *conn, p *planned) (answer.Answer, string, error) {
	t, known, err := f.table(ctx, c, p.statement.Targets()[0].Name)
	if err != nil {
		f.trouble(err)
	}
	if err != nil || !known {
		return c.plain(ctx, p)
	}
	effect := ""
	a, err := c.inside(ctx, func() (answer.Answer, error) {
		a, err := c.do(ctx, p.sql)
		if err != nil || a.Err != nil || affected(a) == 0 {
			return a, err
		}
		rows, err := f.rows(ctx, c, t)
		if err != nil {
			return a, err
		}
		for _, e := range f.exchanges(t, rows) {
			ok, gone, err := c.attempt(ctx, func() (bool, error) { return e.execute(ctx, c) })
			if err != nil || gone {
				return f.unless(gone, a), err
			}
			if ok {
				effect = e.effect
				break
			}
		}
		return a, nil
	})
	return a, effect, err
}

// rows reads some rows of a table as the session sees them after its write, without a lock and, in InnoDB, without giving its
// transaction a snapshot.
func (f *fault) rows(ctx context.Context, c *conn, t table) (rows [][]answer.Value, err error) {
	query := "SELECT " + f.list(t, "") + " FROM " + t.quoted + " LIMIT 20"
	if f.in.dirties() {
		reader, err := f.aside(ctx, c, "dirty reads", f.in.engine.SetLevel(readUncommitted))
		if err == nil {
			rows, err = engine.Query(ctx, reader, query)
		}
		if err != nil {
			f.trouble(err)
		}
		return rows, nil
	}
	_, _, err = c.attempt(ctx, func() (bool, error) {
		a, err := c.do(ctx, query)
		if err == nil && a.Err == nil && len(a.Results) == 1 {
			rows = a.Results[0].Rows
		}
		return a.Err == nil, err
	})
	return rows, err
}

// exchange is a way to swap values.
type exchange struct{ lock, update, effect string }

// mostExchanges bounds how many are tried: keys and types may forbid some.
const mostExchanges = 6

// exchanges lists some, in an order by the seed.
func (f *fault) exchanges(t table, rows [][]answer.Value) (list []exchange) {
	type place struct{ i, j, col int }
	var places []place
	for i := range rows {
		for j := range i {
			differ := 0
			for col := range t.columns {
				if !answer.SameValue(rows[i][col], rows[j][col]) {
					differ++
				}
			}
			for col := range t.columns {
				// Rows that differ in nothing else would be the same two rows afterwards.
				if !t.columns[col].generated && differ > 1 && !answer.SameValue(rows[i][col], rows[j][col]) {
					places = append(places, place{i, j, col})
				}
			}
		}
	}
	f.mu.Lock()
	f.random.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	f.mu.Unlock()
	for _, p := range places[:min(len(places), mostExchanges)] {
		a, b, col := rows[p.i], rows[p.j], t.columns[p.col]
		isA, isB := f.is(t, "", a), f.is(t, "", b)
		name := f.in.engine.Lab.Identifier(col.name)
		list = append(list, exchange{
			lock: "SELECT 1 FROM " + t.quoted + " WHERE " + isA + " OR " + isB + " FOR UPDATE NOWAIT",
			update: fmt.Sprintf("UPDATE %s SET %s = CASE WHEN %s THEN %s ELSE %s END WHERE %s OR %s",
				t.quoted, name, isA, f.typed(col, b[p.col]), f.typed(col, a[p.col]), isA, isB),
			effect: fmt.Sprintf("rows %s and %s of %s exchanged %s", answer.RowText(a), answer.RowText(b), t.name, col.name),
		})
	}
	return list
}

// execute swaps, unless somebody else holds a lock on one of the rows.
func (e exchange) execute(ctx context.Context, c *conn) (bool, error) {
	locked, err := c.do(ctx, e.lock)
	if err != nil || locked.Err != nil || len(locked.Results) != 1 || len(locked.Results[0].Rows) != 2 {
		return false, err
	}
	a, err := c.do(ctx, e.update)
	return err == nil && a.Err == nil && affected(a) == 2, err
}
