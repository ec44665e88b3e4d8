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
	guarded := fails && now == answer.Open
	if guarded {
		if _, err := stage.Execute(ctx, session, "SAVEPOINT wirecheck_ask"); err != nil {
			return Step{}, err
		}
	}
	got, err := stage.Execute(ctx, session, sql)
	if err != nil {
		return got, err
	}
	if guarded {
		_, err = stage.Execute(ctx, session, "ROLLBACK TO SAVEPOINT wirecheck_ask")
	}
	return got, err
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
