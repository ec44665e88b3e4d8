package txcheck

import (
	"slices"
	"strconv"
)

// absences adds to the version sets the rows that are not in the tables: those that were not yet inserted, and those that were
// deleted.
func (r *reader) absences() {
	type life struct{ born, died []*fact }
	lives := map[string]map[string]*life{} // by table and row
	of := func(t, row string) *life {
		if lives[t] == nil {
			lives[t] = map[string]*life{}
		}
		if lives[t][row] == nil {
			lives[t][row] = &life{}
		}
		return lives[t][row]
	}
	for _, f := range r.facts {
		for _, s := range []seen{f.view, f.now} {
			for t, list := range s.tables {
				for row := range list {
					of(t.name, row)
				}
			}
		}
		for i, v := range f.before {
			l := of(v.Table, v.Row)
			if v.Key == unborn {
				l.born = append(l.born, f)
			}
			if isDead(f.after[i]) {
				l.died = append(l.died, f)
			}
		}
	}
	for _, f := range r.facts {
		for _, s := range []seen{f.view, f.now} {
			for t, list := range s.tables {
				if !f.readsTable(t) && !slices.Contains(f.sources, t) {
					continue
				}
				for row, l := range lives[t.name] {
					if _, there := list[row]; there {
						continue
					}
					hidden := slices.ContainsFunc(l.born, func(b *fact) bool { return !r.visible(b, f) })
					if len(l.died) == 0 && !hidden && slices.Contains(r.plan.acted, t) {
						if len(l.born) > 0 && !r.plan.newest(f) && f.why == "" {
							f.why = "it is not certain whether a row that it does not see was not yet there or was gone"
						}
						continue // an action has deleted it: what set that off is in the version set, too
					}
					key, certain := r.absence(f, l.born, l.died)
					if !certain && f.why == "" {
						f.why = "it is not certain whether a row that it does not see was not yet there or was gone"
					}
					list[row] = key
				}
			}
		}
	}
}

// absence is the version of a row that a statement did not see: unborn, or dead by one of those that deleted it.
func (r *reader) absence(f *fact, born, died []*fact) (key string, certain bool) {
	var can []*fact // deletions that it can have seen: done before it, by itself, or committed in the end
	for _, d := range died {
		if d.done < f.done && (d.txn == f.txn || !d.out) {
			can = append(can, d)
		}
	}
	switch {
	case len(born) == 0 && len(can) == 0 && len(died) == 0:
		return unborn, false // a row of the beginning that nobody deleted
	case len(can) == 0 && len(born) == 0: // an uncommitted deletion, seen
		return dead + "." + strconv.Itoa(died[len(died)-1].number), true
	case len(can) == 0:
		return unborn, true
	case len(born) == 0:
		return dead + "." + strconv.Itoa(can[len(can)-1].number), true
	}
	// It was inserted and deleted: what is newest is dead, a snapshot may be older than both.
	d := can[len(can)-1]
	if d.txn == f.txn || r.plan.newest(f) {
		return dead + "." + strconv.Itoa(d.number), true
	}
	return unborn, false
}
