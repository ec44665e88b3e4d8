package isolation

import "wirecheck/history"

// What a transaction takes in memory is estimated, since a client decides how many statements it has, how long they are and how many rows they
// read.

const (
	// maxText is how much is kept of the text of a statement, in bytes. Findings show it.
	maxText = 64 << 10
	// weightBytes is what a transaction may take, in bytes, before it counts as one more.
	weightBytes = 12 << 10
	// smallShare is the part of Options.MaxBytes up to which an open transaction is kept whole, whatever the others take.
	smallShare = 64
	// These stand for what a transaction, a statement, a condition and an access take besides their texts.
	txnBytes, stmtBytes, conditionBytes, accessBytes = 1024, 192, 512, 192
)

func sizeOfStatement(e *history.Event) int {
	n := stmtBytes + min(len(e.SQL)+len(e.Params), maxText)
	for i := range e.Reads {
		n += conditionBytes + 8*len(e.Reads[i].Where) // it is kept parsed
	}
	return n
}

func sizeOfAccess(a *history.Access) int {
	return accessBytes + len(a.Row.Key) + len(a.Name) + len(a.Version) + len(a.Writer) + len(a.Prev) + len(a.PrevWriter) + len(a.Image) + len(a.Values) + len(a.Was)
}

// grow notes that t takes n bytes more.
func (t *txn) grow(c *Checker, n int) {
	t.size += n
	if t.end == 0 {
		c.openSize += n
		return
	}
	weight := 1 + t.size/weightBytes - t.weight // late writes of one that has ended
	c.endedSize, t.weight, c.weight = c.endedSize+n, t.weight+weight, c.weight+weight
	if c.settled == 0 || t.end > c.ended[c.settled-1].end {
		c.unsettled += weight
	}
}

// tooLarge reports whether no more of t is kept: the open transactions take too much, and t is one of the large ones.
func (t *txn) tooLarge(c *Checker) bool {
	return c.openSize > c.opts.MaxBytes && t.size > c.opts.MaxBytes/smallShare
}
