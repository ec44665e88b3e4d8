package isolation

// entry is a transaction on its way into the graph.
type entry struct {
	c        *Checker
	t        *txn
	recs     []record // what the transaction did to each row
	trust    bool     // its reads see committed versions only
	revealed []*version
	limbo    []*txn
	checks   []staleCheck
}

// record finds or makes the record of a version's row.
func (n *entry) record(v *version) *record {
	mark, rec := &v.mark, &v.rec
	if v.row != nil {
		mark, rec = &v.row.mark, &v.row.rec
	}
	if *mark != n.c.mark {
		*mark, *rec = n.c.mark, int32(len(n.recs))
		n.recs = append(n.recs, record{})
	}
	return &n.recs[*rec]
}

// know tells that the writer of v goes by token.
func (n *entry) know(v *version, token string, trust bool) {
	if n.c.know(v, token, trust) {
		n.revealed = append(n.revealed, v)
	}
	if w := v.inLimbo(n.c); w != nil && trust {
		n.limbo = append(n.limbo, w)
	}
}

// read enters access number i, a read.
func (n *entry) read(i int) {
	t := n.t
	a, said := &t.accesses[i], t.toldBy(i)
	v := said.was
	if v == nil {
		v = said.node(said.ver)
	}
	a.node = v
	v.named(said.name)
	a.own = v.writer == t || t.goesBy(said.writer)
	if t.partial || a.own {
		if a.own = true; v.writer == t && !t.partial {
			internal(n.c, t, a, v, n.record(v).last)
		}
		return
	}
	putAt(n.c, v, said.order, said.asOf)
	n.know(v, said.writer, n.trust)
	older(n.c, v)
	rec, st := n.record(v), &t.stmts[a.stmt]
	internal(n.c, t, a, v, rec.last)
	switch {
	case a.op == opLock, a.op == opMatch && st.current:
		supersede(t, rec)
	case a.op == opMatch:
		// What was to be assigned came from what the transaction had read before: that read stands.
		if !st.failed {
			rec.match = int32(i) + 1
		}
	default:
		a.older, rec.plain = rec.plain, int32(i)+1
		if rec.match != 0 && v.older(t.accesses[rec.match-1].node) {
			t.accesses[rec.match-1].denied = true
		}
	}
	n.c.spare.read(v, reader{t, int32(i)})
}

// write enters access number i, a write.
func (n *entry) write(i int) {
	t := n.t
	a, said := &t.accesses[i], t.toldBy(i)
	var p, v *version
	if said.prev != "" {
		p = said.node(said.prev)
		if p.writer != t {
			t.touched = append(t.touched, p)
			putAt(n.c, p, said.prevO, 0)
			// Engines let a write wait for the one that it replaces to commit, at every level. Its own one it may have undone with this one.
			n.know(p, said.prevW, !t.goesBy(said.prevW))
			older(n.c, p)
		}
	}
	if a.op == opDelete {
		v = deletion(t, a.stmt, said)
	} else {
		v = said.node(said.ver)
	}
	if v == nil {
		return
	}
	v.named(said.name)
	by := v
	if p != nil {
		by = p
	}
	rec, st := n.record(by), &t.stmts[a.stmt]
	if v.row == nil {
		v.mark, v.rec = n.c.mark, by.recIndex()
	}
	if st.current && a.op == opUpdate {
		for read := rec.plain; read > 0; read = t.accesses[read-1].older {
			if p == nil || t.accesses[read-1].node != p {
				n.checks = append(n.checks, staleCheck{rec.plain, i})
				break
			}
		}
		supersede(t, rec)
		if p != nil && p.writer != t && !t.partial {
			n.c.spare.read(p, reader{t, int32(i)})
		}
	} else if !st.failed {
		rec.plain = 0
	}
	older(n.c, v)
	if v.writer != nil && v.writer != t {
		n.c.coverage.contradiction(twoWriters) // believe the first
		return
	}
	t.touched = append(t.touched, v)
	if st.failed {
		if v.is != live {
			v.writer, v.wstmt, a.node = t, a.stmt, v
			dies(n.c, v)
			putAt(n.c, v, said.order, 0)
		}
		return
	}
	if n.c.levels != nil && said.order == 0 && p == nil && a.op != opInsert {
		n.c.levels.Unordered++
	}
	v.writer, v.is, v.wstmt = t, live, a.stmt
	putAt(n.c, v, said.order, 0)
	a.node = v
	t.writes = append(t.writes, int32(i))
	if rec.last != nil && rec.last != v {
		rec.last.inter = true
	}
	v.inter = false
	rec.last = v
	if p != nil {
		n.c.coverage.join(p, v)
		dirtyUpdate(n.c, p, v)
	}
}
