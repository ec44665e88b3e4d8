package isolation

import (
	"wirecheck/history"
	"wirecheck/oracle"
)

// shown are values of a statement that findings show. No verdict depends on them, but that a row which two INSERTs offered is the same.
type shown struct {
	params string
	reads  []string  // of the statement's first accesses that are kept, in order
	one    [1]string // room for reads: most have one
}

// show keeps the values that the event has of statement i, which is the last one of t.
func (t *txn) show(i int32, e *history.Event) {
	var s *shown
	if e.Params != "" {
		s = &shown{params: e.Params}
	}
	n := 0 // accesses that addAccesses will keep
	for k := range e.Accesses {
		a := &e.Accesses[k]
		if a.Approx || a.Op != history.OpDelete && a.Version == "" {
			continue
		}
		if n++; a.Values != "" {
			if s == nil {
				s = &shown{}
			}
			if s.reads == nil {
				s.reads = s.one[:0]
			}
			for len(s.reads) < n {
				s.reads = append(s.reads, "")
			}
			s.reads[n-1] = a.Values
		}
	}
	t.stmts[i].shown = s
}

// readValues are the values that statement i gave of version v.
func (t *txn) readValues(i int32, v *version) []oracle.Value {
	if i < 0 || v == nil || t.stmts[i].shown == nil {
		return nil
	}
	reads, n := t.stmts[i].shown.reads, 0
	for k := range t.accesses {
		if t.accesses[k].stmt != i {
			continue
		}
		if n == len(reads) {
			return nil
		}
		if t.accesses[k].node == v && reads[n] != "" {
			return oracle.Values(reads[n])
		}
		n++
	}
	return nil
}

// assigned are the values that statement i assigned in the rows that it wrote.
func (t *txn) assigned(i int32) []oracle.Value {
	if i < 0 || t.stmts[i].verb != "update" {
		return nil
	}
	params := ""
	if s := t.stmts[i].shown; s != nil {
		params = s.params
	}
	return oracle.Assigned(t.stmts[i].sql, params, t.product())
}

// evidence puts the values into a finding's edge.
func evidence(pub *oracle.Edge, e *edge, from, to *txn) {
	switch e.kind {
	case edgeRW:
		if e.pred == nil {
			pub.FromValues = from.readValues(e.fromStmt, e.from)
		}
		if pub.ToValues = to.assigned(e.toStmt); e.pred != nil && e.pred.precedes(&e.pred.where, e.to.image) && pub.ToValues == nil {
			pub.ToValues = []oracle.Value{{Column: e.pred.last, Text: *e.to.image.values[e.pred.last]}}
		}
	case edgeWW:
		pub.FromValues, pub.ToValues = from.assigned(e.fromStmt), to.assigned(e.toStmt)
	case edgeWR:
		pub.FromValues = from.assigned(e.fromStmt)
		switch {
		case to.matched(e.to, e.toStmt):
			pub.ToValues = to.assigned(e.toStmt)
		case e.pred == nil:
			pub.ToValues = to.readValues(e.toStmt, e.to)
		}
	}
}
