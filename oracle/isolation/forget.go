package isolation

import (
	"slices"

	"wirecheck/history"
)

// What may be forgotten.
//
// Take an ended transaction T. A cycle that is found in the future and passes T enters it by an edge X -> T: X wrote or
// read something before T did. Suppose that every transaction that was open when T ended has ended as well; call T
// settled then. A transaction that begins later finds T's versions in place: it cannot write a version before one of
// T's, and T cannot have read one of its versions. It could only read a version that T had replaced, a stale read, which
// is why Options.Keep more transactions are kept than needed (and since begin events may be late by as much).
// So all edges into settled transactions are there already. A transaction that no path reaches from an unsettled one
// will never be reached from one, hence it will never be on a new cycle: cycles among settled transactions only have
// been found when the last of them ended. All such transactions, cycles of them included, are forgotten in one sweep: mark what
// is reachable from the unsettled ones, drop the rest. Sweeps come when as much has been added as was left over by
// the last one, so their cost per transaction is constant.
//
// A request in autocommit is many transactions, and nothing tells which was its last. So where requests are known, ended transactions are kept longer (held). A request
// that goes on all the same when a part of it is forgotten is counted.
//
// What readers of a forgotten transaction's versions need later is the version's place alone: an edge from a forgotten
// transaction leads nowhere new, but the reader's own rw edge starts at that place. Reads that name their
// place (MySQL family) bring it along; for the others it is remembered in places, which is bounded too. A read, or a write, of a version whose
// successor is forgotten breaks the supposition: it is counted (older, Complete). If a place is lost,
// an edge is missing, never wrong.

// sweepStep is how many transactions are added between sweeps at least.
func (o *Options) sweepStep() int { return max(o.Keep, 256) }

// settle advances the settled part and sweeps when it is time.
func (c *Checker) settle() {
	if c.opts.Keep < 0 {
		return
	}
	for c.settled < len(c.ended) && c.unsettled-c.ended[c.settled].weight >= c.opts.Keep && (c.openFirst == nil || c.openFirst.begin > c.ended[c.settled].end) && !held(c, c.ended[c.settled]) {
		c.unsettled -= c.ended[c.settled].weight
		c.settled++
	}
	if c.weight >= c.sweepAt || c.weight > c.opts.MaxTxns || c.endedSize > c.opts.MaxBytes {
		c.sweep()
	}
}

const (
	// heldTimes is how many times Options.Keep transactions are held for requests at most, and heldFor how long, in nanoseconds of the history.
	heldTimes = 10
	heldFor   = 60_000_000_000
)

// held reports whether an ended transaction is kept for requests that may go on.
func held(c *Checker, t *txn) bool {
	return len(c.requests.by) > 0 && c.unsettled < heldTimes*c.opts.Keep && c.endedSize < c.opts.MaxBytes/2 && c.ended[len(c.ended)-1].endedAt-t.endedAt < heldFor
}

// weigh adds up the weights and the sizes of transactions.
func weigh(list []*txn) (weight, size int) {
	for _, t := range list {
		weight, size = weight+t.weight, size+t.size
	}
	return weight, size
}

func (c *Checker) sweep() {
	c.mark++
	stack := append([]*txn{}, c.ended[c.settled:]...)
	for _, t := range stack {
		t.mark = c.mark
	}
	for len(stack) > 0 {
		t := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for _, l := range t.out {
			if l.to.mark != c.mark && !l.to.gone {
				l.to.mark = c.mark
				stack = append(stack, l.to)
			}
		}
	}
	var drop []*txn
	keep := make([]*txn, 0, len(c.ended))
	settled := 0
	for i, t := range c.ended {
		if t.mark != c.mark {
			drop = append(drop, t)
			continue
		}
		if i < c.settled {
			settled++
		}
		keep = append(keep, t)
	}
	if weight, size := weigh(keep); weight > c.opts.MaxTxns || size > c.opts.MaxBytes {
		// Something stays open. The oldest go, and some more, so that this does not happen with each event.
		over := 0
		for (weight > c.opts.MaxTxns*9/10 || size > c.opts.MaxBytes*9/10) && over < len(keep) {
			weight, size, over = weight-keep[over].weight, size-keep[over].size, over+1
		}
		c.coverage.Forgotten += over
		drop = append(drop, keep[:over]...)
		keep = append([]*txn{}, keep[over:]...)
		settled = max(settled-over, 0)
		for _, t := range drop {
			t.gone = true
		}
	}
	untold := slices.DeleteFunc(slices.Clone(drop), func(t *txn) bool { return c.late[t.id] != t })
	c.forget(drop)
	c.unready()
	for _, t := range keep {
		t.dropGone(&c.spare)
	}
	c.ended, c.settled = keep, settled
	c.weight, c.endedSize = weigh(keep)
	c.unsettled, _ = weigh(keep[settled:])
	c.sweepAt = c.weight + max(c.opts.sweepStep(), c.weight/2)
	for _, t := range untold {
		c.requests.told(t)
	}
}

// dropGone takes out links to forgotten transactions.
func (t *txn) dropGone(s *spare) {
	t.out = slices.DeleteFunc(t.out, func(l *link) bool {
		if !l.to.gone {
			return false
		}
		delete(t.outTo, l.to)
		s.unlink(l)
		return true
	})
}

// forget drops transactions and what only they needed.
func (c *Checker) forget(drop []*txn) {
	for _, t := range drop {
		t.gone = true
	}
	c.mark++
	for _, t := range drop {
		c.coverage.unknownWriters(t)
		c.requests.forget(t)
		for _, tok := range t.tokens {
			if c.tokens[tok] == t {
				delete(c.tokens, tok)
			}
		}
		for _, key := range t.sets {
			delete(c.reported, key)
		}
		if t.session.last == t {
			t.session.last = nil
		}
		if c.late[t.id] == t {
			delete(c.late, t.id)
			t.session.late = slices.DeleteFunc(t.session.late, func(o *txn) bool { return o == t })
		}
	}
	for _, tb := range c.tables {
		tb.forget()
	}
	if c.opts.Strict {
		c.frontier = slices.DeleteFunc(c.frontier, func(f *txn) bool { return f.gone })
	}
	for _, t := range drop {
		for i := range t.accesses {
			c.releaseOnce(t.accesses[i].node)
		}
		for _, v := range t.touched {
			c.releaseOnce(v)
		}
		c.spare.forgotten(t)
		*t = txn{id: t.id, gone: true, session: t.session}
	}
}

// releaseOnce releases v, which may be nil, once in a sweep.
func (c *Checker) releaseOnce(v *version) {
	if v != nil && v.mark != c.mark {
		v.mark = c.mark
		c.release(v)
	}
}

// release takes forgotten transactions out of v, and v out of its row if nobody needs it any more.
func (c *Checker) release(v *version) {
	v.readers = slices.DeleteFunc(v.readers, func(r reader) bool { return r.t.gone })
	if v.writer != nil && v.writer.gone {
		if v.is == live && v.order > history.OrderInitial && v.row != nil {
			c.places.put(v.hash(), v.order)
			v.row.gone = max(v.row.goneAt(c), v.order)
		}
		if v.is == dead {
			c.gone.put(v.hash(), 1)
		}
		c.forgot = true
		v.writer = nil
		if v.is == live {
			v.is = forgotten
		}
	}
	p := v.prev
	c.dropIdle(v)
	if p != nil {
		c.dropIdle(p)
	}
}

// dropIdle drops v unless a kept transaction wrote or read it, or wrote its successor by link: somebody who read v may
// still end.
func (c *Checker) dropIdle(v *version) {
	if v.dropped || v.writer != nil || len(v.readers) > 0 || v.next != nil && v.next.writer != nil {
		return
	}
	v.dropped = true
	if v.next != nil {
		replaced(c, v)
		v.next.prev = nil
	}
	if v.prev != nil {
		replaced(c, v.prev)
		v.prev.next = nil
	}
	v.prev, v.next = nil, nil
	c.spare.unread(v)
	if r := v.row; r != nil && r.remove(v) && r.gone != 0 {
		c.gone.put(r.hash(), r.gone)
	}
	if v.table.byID != nil && v.table.byID[v.id] == v {
		delete(v.table.byID, v.id)
	}
	if v.token == "" {
		return
	}
	list := slices.DeleteFunc(c.pending[v.token], func(u *version) bool { return u == v })
	if len(list) == 0 {
		delete(c.pending, v.token)
	} else {
		c.pending[v.token] = list
	}
}

// replaced notes that v had a successor which is forgotten. Of rows with keys the places tell.
func replaced(c *Checker, v *version) {
	if v.row == nil {
		c.gone.put(v.hash(), 1)
		c.forgot = true
	}
}

// older counts v, whose writer is not known, if a transaction that is forgotten wrote a later version of the row, or wrote v itself and was
// rolled back: what follows from that is not found.
func older(c *Checker, v *version) {
	if v.writer != nil || c.opts.Keep < 0 || !c.forgot {
		return
	}
	stale := c.gone.at(v.hash()) != 0
	if !stale && v.row != nil {
		last := v.row.goneAt(c)
		stale = v.order > 0 && v.order < last || v.order == 0 && v.asOf > 0 && v.asOf <= last
	}
	if stale {
		c.coverage.Stale++
	}
	c.unsure = c.unsure || !stale && c.gone.evicted
}

// goneAt is the last place of a forgotten version of the row; 0: none is known.
func (r *row) goneAt(c *Checker) uint64 {
	if !r.goneAsked {
		r.gone, r.goneAsked = c.gone.at(r.hash()), true
	}
	return r.gone
}

// Complete reports whether forgetting has changed nothing in what was found: a checker that keeps everything (Options.Keep) finds the same.
func Complete(c *Checker) bool {
	return c.coverage.Stale == 0 && c.coverage.Forgotten == 0 && c.coverage.Resumed == 0 && !c.unsure
}

func (v *version) hash() hash {
	if v.row == nil {
		return start.add(v.table.name).add(v.id)
	}
	return v.row.named().add(v.id)
}

// hash is that of the row: the one of a version without a name.
func (r *row) hash() hash { return r.named().add("") }

// named is the hash of table and key, with which those of the row's versions begin.
func (r *row) named() hash {
	if r.sum == (hash{}) {
		if r.sum = start.add(r.table.name); r.key != "" {
			r.sum = r.sum.add(r.key)
		}
	}
	return r.sum
}
