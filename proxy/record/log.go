package record

import (
	"slices"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// Held is how many statements and accesses, and texts as such, the open transaction holds until its log is fetched (MySQL family).
func (t *Tracker) Held() int {
	if t.txn == nil {
		return 0
	}
	return t.txn.heldFacts
}

// PendingLog reports whether statements ran whose log was not fetched (MySQL family).
func (t *Tracker) PendingLog() bool {
	return len(t.pending) > 0 || t.txn != nil && t.txn.logged
}

// Logged gives the fetched log: what each stamped statement of this session overwrote, by stamp. truncated says that
// the log was full, so that some is missing. A log that tells nothing of a statement that changed rows has lost it.
func (t *Tracker) Logged(entries map[string][]history.Access, truncated bool) []Warning {
	add := func(ev *history.Event, changed bool, pinned []history.PredicateRead, groups *loggedGroups) {
		list := entries[t.rec.Stamp(ev.Txn, ev.N)]
		if ev.Accesses == nil {
			ev.Accesses = list
		} else {
			ev.Accesses = append(ev.Accesses, list...)
		}
		if ev.Coverage == history.CoverageExact {
			switch {
			case truncated:
				ev.Coverage, ev.Why = history.CoverageApproximate, "it overwrote more rows than its log could take, or one without a row id"
			case changed && len(list) == 0:
				ev.Coverage, ev.Why = history.CoverageApproximate, "it changed rows of which the session's log tells nothing"
			}
		}
		for _, p := range pinned {
			if ev.Coverage == history.CoverageExact && accesses(ev, p.Table) == 0 {
				ev.Reads, ev.Predicate = append(ev.Reads, p), true
			}
		}
		groups.complete(ev, list)
		for i := range ev.Reads {
			ev.Reads[i].Whole = ev.Coverage == history.CoverageExact && !ev.Reads[i].Met && !ev.Reads[i].Some
		}
	}
	for _, l := range t.pending {
		ev := *l.ev
		ev.Accesses, ev.Reads = nil, slices.Clone(ev.Reads) // who has the first form may still read its list
		add(&ev, l.changed, l.pinned, l.groups)
		t.record(&ev)
	}
	t.pending = nil
	if x := t.txn; x != nil && x.logged {
		for _, h := range x.held {
			if h.logs {
				add(h.ev, h.changed, h.pinned, h.groups)
			}
		}
		t.flush(x, false)
	}
	return t.warnings()
}

// overwrites reports whether a statement changed rows that were there before, by the server's count. ON DUPLICATE KEY UPDATE counts 1 for a new row and 2
// for one that it changed.
func overwrites(p *rewrite.Plan, res Result) bool {
	return res.Changed > 0 && (p.WithRows != "" || res.Changed != uint64(p.Rows))
}
