package lab

import (
	"context"
	"fmt"

	"wirecheck/answer"
)

// Reading is what a query gave before the first step and behind the last one (Config.Invariants).
type Reading struct {
	SQL           string
	Before, After answer.Answer
}

// readBefore executes the invariants' queries past any proxy.
func (l *Lab) readBefore(ctx context.Context, r *Result) error {
	for _, sql := range l.config.Invariants {
		a, err := l.side.Do(ctx, sql)
		if err != nil {
			return fmt.Errorf("invariant %s: %w", sql, err)
		}
		r.Invariants = append(r.Invariants, Reading{SQL: sql, Before: a})
	}
	return nil
}

// readAfter executes them again.
func (l *Lab) readAfter(ctx context.Context, r *Result) error {
	for i := range r.Invariants {
		a, err := l.side.Do(ctx, r.Invariants[i].SQL)
		if err != nil {
			return fmt.Errorf("invariant %s: %w", r.Invariants[i].SQL, err)
		}
		r.Invariants[i].After = a
	}
	return nil
}
