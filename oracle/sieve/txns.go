package sieve

import (
	"math"

	"wirecheck/history"
)

// status is what is known of a transaction.
type status uint16

const (
	committed status = 1 << iota
	aborted
	limbo   // its outcome is not known
	trusts  // its reads see committed versions only
	undone  // some of its writes were undone, or may have been
	single  // one statement, which began it
	special // it may be part of something that is reported without a cycle
)

// txns are the transactions by their numbers, which they get when they begin.
type txns struct {
	id       []uint64
	session  []uint32 // the number of the session
	from, to []uint64 // ticks; to is the last one there is where nobody knows by when it was over, see tells
	is       []status
	token    []uint64 // the first token; 0: none
	tables   []uint64 // that it changed, or asked for rows, a bit each
	began    []uint32 // how many had ended when it began

	ended      []uint32 // in the order of their ends
	tokens     index    // the numbers of transactions by their tokens
	recorders  []int    // by the number of the session
	sessionIDs []uint64
}

func (t *txns) begin(id uint64, session uint32, from uint64) uint32 {
	n := uint32(len(t.id))
	if len(t.id) == cap(t.id) { // append would copy all of it more often
		t.id, t.session, t.from, t.to = double(t.id), double(t.session), double(t.from), double(t.to)
		t.is, t.token, t.tables, t.began = double(t.is), double(t.token), double(t.tables), double(t.began)
	}
	t.id, t.session, t.from, t.to = append(t.id, id), append(t.session, session), append(t.from, from), append(t.to, math.MaxUint64)
	t.is, t.token, t.tables, t.began = append(t.is, 0), append(t.token, 0), append(t.tables, 0), append(t.began, uint32(len(t.ended)))
	return n
}

// tells keeps the tick of an end. A transaction of which the outcome is not known may have committed later.
func (t *txns) tells(n uint32, to uint64, out history.Outcome) {
	if to >= t.from[n] && (out == history.OutcomeCommitted || out == history.OutcomeAborted) {
		t.to[n] = to
	}
}

// double makes room for as much as there is.
func double[T any](list []T) []T { return append(make([]T, 0, max(64, 2*len(list))), list...) }

func (t *txns) sameClock(a, b uint32) bool {
	return t.recorders[t.session[a]] == t.recorders[t.session[b]]
}

// owner is the transaction that a token belongs to, if it has ended.
func (t *txns) owner(token uint64) (uint32, bool) {
	n, ok := t.tokens.of(token)
	return n, ok && t.is[n]&(committed|aborted|limbo) != 0
}
