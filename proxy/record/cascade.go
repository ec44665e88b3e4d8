package record

import (
	"slices"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// What foreign keys deleted with the rows of a statement is certain only if the session's next snapshot is still that of the statement, see
// rewrite.Cascaded. So the statement is recorded without it first, and once more when that snapshot is known.

// unsettled is a statement of which that is awaited.
type unsettled struct {
	ev   history.Event // without accesses
	rows []rewrite.Cascaded
}

// maxUnsettled bounds how many statements await it at once, as in a pipeline.
const maxUnsettled = 100

// cascadesUnseen is why a statement is not exact of which it is not certain.
const cascadesUnseen = "other transactions ended while foreign keys changed other tables, which may have changed what"

// unsettle keeps a statement that awaits a snapshot. If it cannot be kept, what foreign keys deleted is not seen.
func unsettle(t *Tracker, r *Running, ev *history.Event) {
	if len(r.cascaded) == 0 || ev.Error != nil || ev.Coverage != history.CoverageExact {
		return
	}
	if r.ticket.continues != nil || len(t.unsettled) >= maxUnsettled {
		ev.Coverage, ev.Why = history.CoverageApproximate, cascadesUnseen
		return
	}
	u := unsettled{ev: *ev, rows: r.cascaded}
	u.ev.Accesses, u.ev.Tokens = nil, nil
	t.unsettled = append(t.unsettled, u)
}

// Unsettled reports whether the session's next snapshot is awaited.
func (t *Tracker) Unsettled() bool { return len(t.unsettled) > 0 }

// Settle tells the text of a snapshot of the session, behind all statements that were answered; an empty text if none will come. What becomes due comes
// with the next answer.
func (t *Tracker) Settle(snapshot string) {
	now, ok := history.ParseSnapshot(snapshot)
	for i := range t.unsettled {
		u := &t.unsettled[i]
		settle(t, u, ok && !slices.ContainsFunc(u.rows, func(row rewrite.Cascaded) bool { return !row.Snapshot.Unchanged(now, row.Own) }))
	}
	t.unsettled = nil
}

// settle records a statement once more, with what foreign keys deleted if that is certain.
func settle(t *Tracker, u *unsettled, certain bool) {
	if !certain {
		u.ev.Coverage, u.ev.Why = history.CoverageApproximate, cascadesUnseen
		u.rows = nil
	}
	for _, row := range u.rows {
		u.ev.Accesses = append(u.ev.Accesses, row.Accesses...)
	}
	t.record(&u.ev)
}

// undoes says that the statements of a transaction from number n on are undone.
func undoes(t *Tracker, x *txn, n int) {
	t.unsettled = slices.DeleteFunc(t.unsettled, func(u unsettled) bool {
		if u.ev.Txn != x.id || u.ev.N < n {
			return false
		}
		settle(t, &u, false)
		return true
	})
}

// awaits says that a transaction ends. It reports whether something of it is told later: of one of its statements, if it is a transaction of its own.
func awaits(t *Tracker, x *txn) bool {
	later := false
	t.unsettled = slices.DeleteFunc(t.unsettled, func(u unsettled) bool {
		if u.ev.Txn != x.id {
			return false
		}
		if x.implicit && !later {
			later = true
			return false
		}
		settle(t, &u, false)
		return true
	})
	return later
}
