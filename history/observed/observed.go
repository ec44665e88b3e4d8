// Package observed holds histories of what clients saw: transactions of reads and writes of keys and values, as other checkers
// record them. Unlike a history of package history, nothing in it says which version of a row a read returned, nor in which
// order the versions came: that has to be inferred.
package observed

import (
	"errors"

	"wirecheck/history"
)

// Kind says what an operation did to its key.
type Kind uint8

// The kinds of operations.
const (
	Read   Kind = iota
	Write       // gives the key a value, whatever it had
	Append      // adds a value to the end of the key's list
)

// Op is one operation of a transaction.
type Op struct {
	Kind Kind
	// Unknown says that the result of a read is not known: the transaction failed, or nobody heard of its end.
	Unknown bool
	// Initial says that a read returned what the key had before any write: nil, or an empty list.
	Initial bool
	// IsList says that a read returned a list, which List has.
	IsList bool
	Key    string
	// Value is what was written or appended, or what a read returned. Values are equal if their texts are.
	Value string
	List  []string
}

// Transaction is one transaction of a client.
type Transaction struct {
	// ID is the transaction's number in its source: the index of its completion in a Jepsen history.
	ID uint64
	// Session tells sessions apart, from 1; 0: the source names none. The transactions of one session stand in its order.
	Session uint64
	Outcome history.Outcome
	// Begin and End are places in real time. A.End < B.Begin means that A was over before B began; 0 is not known.
	Begin, End uint64
	Ops        []Op
}

// History is a history of transactions, in the order of their ends where the source shows it.
type History struct {
	Format       string // "elle", "plume", ...
	Transactions []Transaction
	// Ordered says that the source shows real time.
	Ordered bool
	// KnownInitial says that the source shows when a read returned what the key had before any write, so that another value which nobody wrote
	// came from nowhere. Otherwise it may have been there before the history began.
	KnownInitial bool
	// Omitted counts by reason what the source has and the history lacks, so that not all of it can be judged.
	Omitted map[string]int
}

// Omit counts one thing that the history lacks.
func (h *History) Omit(reason string) {
	if h.Omitted == nil {
		h.Omitted = map[string]int{}
	}
	h.Omitted[reason]++
}

// Strays reports whether a committed transaction read what nobody wrote, and what none but a transaction wrote that was rolled back.
func (h *History) Strays() (unwritten, rolledBack bool) {
	stays := map[[2]string]bool{}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		for k := range t.Ops {
			if op := &t.Ops[k]; op.Kind != Read {
				at := [2]string{op.Key, op.Value}
				stays[at] = stays[at] || t.Outcome != history.OutcomeAborted
			}
		}
	}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		for k := range t.Ops {
			op := &t.Ops[k]
			if op.Kind != Read || op.Unknown || op.Initial || t.Outcome != history.OutcomeCommitted {
				continue
			}
			values := op.List
			if !op.IsList {
				values = []string{op.Value}
			}
			for _, v := range values {
				is, written := stays[[2]string{op.Key, v}]
				unwritten, rolledBack = unwritten || !written, rolledBack || written && !is
			}
		}
	}
	return unwritten, rolledBack
}

// ErrUnwritten says that a value from nowhere would be taken for one from before the history, or the other way round.
var ErrUnwritten = errors.New("a value was read that nobody wrote, and the form does not tell one from before the history from one from nowhere as this history does")

// Lists reports whether the history has appends.
func (h *History) Lists() bool {
	for i := range h.Transactions {
		for k := range h.Transactions[i].Ops {
			if h.Transactions[i].Ops[k].Kind == Append {
				return true
			}
		}
	}
	return false
}
