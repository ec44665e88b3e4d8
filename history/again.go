package history

import (
	"io"
	"strings"
)

// again is the reading of a history for the second time, of some transactions alone.
type again struct {
	only  func(txn uint64) bool
	begun int
}

// Again begins to read the same history, from its beginning in in, once more: what is of no transaction, and the events of those transactions that only
// wants. All of it must have been read before. Most events that it passes over it does not decode.
func (r *Reader) Again(in io.Reader, only func(txn uint64) bool) error {
	r.buf.Reset(in)
	r.block, r.ahead, r.line, r.warning, r.again = "", 0, 0, "", &again{only: only}
	r.rec.all = true
	_, _, err := r.longLine() // the header
	return err
}

// Passed is how many transactions have begun that Again passed over.
func (r *Reader) Passed() int { return r.again.begun }

// over reports whether an event is passed over, and counts what begins. What is of a session is of no transaction, even if it names one.
func (a *again) over(kind EventKind, txn uint64) bool {
	if txn == 0 || kind == EventSession || kind == EventClose || a.only(txn) {
		return false
	}
	if kind == EventBegin {
		a.begun++
	}
	return true
}

// overLine is over for a line of which the beginning tells all of it. A line that another program wrote may have other keys there.
func (a *again) overLine(line string) bool {
	rest, ok := strings.CutPrefix(line, `{"e":"`)
	kind, rest, found := strings.Cut(rest, `","s":`)
	if !ok || !found || len(kind) > len(EventSession) {
		return false
	}
	digits := func() (n uint64, ok bool) {
		i := 0
		for ; i < len(rest) && i < 19 && rest[i]-'0' <= 9; i++ {
			n = n*10 + uint64(rest[i]-'0')
		}
		rest, ok = rest[i:], i > 0 && i < 19
		return n, ok
	}
	if _, ok = digits(); !ok {
		return false
	}
	if rest, ok = strings.CutPrefix(rest, `,"t":`); !ok {
		return false
	}
	txn, ok := digits()
	return ok && a.over(EventKind(kind), txn)
}

// overRecord is over for a record of the binary form.
func (a *again) overRecord(s string) bool {
	r := binaryReader{s: s}
	kind := r.uint()
	r.uint() // the session
	if mask := r.uint(); kind == recordJSON || mask&hasTxn == 0 {
		return false
	}
	txn := r.uint()
	return !r.bad && kind < uint64(len(binaryKinds)) && a.over(binaryKinds[kind], txn)
}
