package troc

import (
	"context"
	"errors"
	"regexp"

	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// summing finds in a view's definition what makes its rows other than the rows of its table, one by one.
var summing = regexp.MustCompile(`(?i)\b(group|distinct|having|limit|offset|fetch|union|intersect|except|over|with|join|select\b.*\bselect)\b|[a-z_]\s*\(`)

// query is where a view's definition begins behind its name and its columns.
var query = regexp.MustCompile(`(?i)\bas\s`)

// rowwise reports whether a view's definition shows rows of one table, each by itself.
func rowwise(definition string) bool {
	at := query.FindStringIndex(definition)
	return at != nil && !summing.MatchString(definition[at[1]:])
}

// apart finds what has the MySQL family evaluate a view by itself: it locks no rows then (MySQL manual, 10.2.2.4; 25.5.2).
var apart = regexp.MustCompile(`(?i)\b(derived_merge|temptable|no_merge)\b`)

// onViews executes a statement on a candidate's views. A locking read of a view addresses the rows behind it.
func onViews(ctx context.Context, c *check, st *schedule.Step, kind product.Kind, mode product.Mode, r roles, cand *candidate) (tr *trial, err error) {
	locks := mode != product.LockNone
	tr, err = c.t.try(ctx, st, cand.views, locks)
	if err == nil && locks && tr.addressed == nil && oneView(c, kind, &st.Statement) {
		name := r.locked[0]
		tr.addressed, err = behindView(ctx, c, st, name, cand.views[name])
	}
	return tr, err
}

// oneView reports whether a statement is a locking read of one view, each of whose rows is a row of a table.
func oneView(c *check, kind product.Kind, q *statement.Statement) bool {
	return (kind == product.ForUpdate || kind == product.Share) && q.Verb == "select" && len(q.Tables) == 1 && c.features.rowwise[q.Tables[0].Name] &&
		!c.s.Says(apart) && !q.SetOperation && !q.Aggregate && !q.HasSubquery && !q.Limit
}

// behindView asks which rows of its table a locking read of one view chose: those of which it gives a row if they are there alone.
func behindView(ctx context.Context, c *check, st *schedule.Step, name string, rel relation) (addressed map[string][]int, err error) {
	ids := []int{}
	for _, one := range rel {
		tr, err := c.t.try(ctx, st, map[string]relation{name: {one}}, false)
		switch {
		case errors.Is(err, errNoView) || err == nil && tr.answer.Err != nil:
			return nil, nil
		case err != nil:
			return nil, err
		}
		if len(tr.answer.Rows) > 0 {
			ids = append(ids, one.id)
		}
	}
	return map[string][]int{name: ids}, nil
}
