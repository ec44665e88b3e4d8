package observed

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"wirecheck/history"
)

// nativeTable is the table of the keys that a history of rows gets.
const nativeTable = "key"

// ReadNative reads a history of rows and versions as one of keys and values: a row is a key, the id of a version its value. What the history says
// of the order of versions is lost. next gives its events, as history.Reader does.
func ReadNative(next func(*history.Event) error) (*History, error) {
	n := native{h: &History{Ordered: true}, open: map[uint64]*Transaction{}, late: map[uint64]int{}}
	var e history.Event
	for {
		if err := next(&e); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		n.add(&e)
	}
	for range n.open {
		n.h.Omit("transaction that had not ended")
	}
	return n.h, nil
}

type native struct {
	h    *History
	open map[uint64]*Transaction
	late map[uint64]int // transactions of which more follows behind the end, by their places
}

func (n *native) add(e *history.Event) {
	switch e.Kind {
	case history.EventBegin:
		n.open[e.Txn] = &Transaction{ID: e.Txn, Session: e.Session, Begin: e.From}
	case history.EventStmt:
		t := n.open[e.Txn]
		if i, ok := n.late[e.Txn]; ok {
			t = &n.h.Transactions[i]
		}
		switch {
		case t == nil && len(e.Accesses) > 0:
			n.h.Omit("statement outside of transactions, or told after the end of its own")
		case t != nil && e.Error == nil:
			n.statement(t, e)
		}
	case history.EventEnd:
		t := n.open[e.Txn]
		if t == nil {
			return
		}
		delete(n.open, e.Txn)
		t.Outcome = cmp.Or(e.Outcome, history.OutcomeUnknown)
		if t.Outcome != history.OutcomeUnknown {
			t.End = e.To
		}
		if t.Outcome != history.OutcomeCommitted {
			for i := range t.Ops {
				if op := &t.Ops[i]; op.Kind == Read {
					*op = Op{Key: op.Key, Unknown: true}
				}
			}
		}
		if e.Pending {
			n.late[e.Txn] = len(n.h.Transactions)
		}
		n.h.Transactions = append(n.h.Transactions, *t)
	}
}

func (n *native) statement(t *Transaction, e *history.Event) {
	if e.Coverage == history.CoverageApproximate || e.Coverage == history.CoverageOpaque {
		n.h.Omit("statement that was not seen exactly")
	}
	if e.UndoesFrom > 0 {
		n.h.Omit("ROLLBACK TO SAVEPOINT")
	}
	for i := range e.Accesses {
		a := &e.Accesses[i]
		if a.Approx || a.Row.Key == "" {
			n.h.Omit("access of a row or version that is not known")
			continue
		}
		op := Op{Key: fmt.Sprintf("%s/%s", a.Row.Table, a.Row.Key), Value: a.Version}
		switch {
		case a.Op == history.OpDelete:
			op.Kind, op.Value = Write, fmt.Sprintf("deleted-%d-%d", e.Txn, e.N)
		case a.Op.Writes():
			op.Kind = Write
		case a.Order == history.OrderInitial:
			op.Initial, op.Value = true, ""
		}
		t.Ops = append(t.Ops, op)
	}
}

// WriteNative writes a history of registers as one of rows and versions, a statement for each operation. It tells the order of a row's versions where
// the history shows it (Unordered).
func WriteNative(w io.Writer, h *History) error {
	if h.Lists() {
		return errors.New("lists are no rows: a history of appends has no native form")
	}
	o := orderOf(h)
	if o.nowhere {
		return ErrUnwritten
	}
	out, err := history.NewWriter(w, history.Header{Run: "converted"})
	if err != nil {
		return err
	}
	writer := map[[2]string]string{}
	for i := range h.Transactions {
		for k := range h.Transactions[i].Ops {
			op := &h.Transactions[i].Ops[k]
			if op.Value == initialVersion {
				return fmt.Errorf("the value %q has the name that the native form has for what was there before", op.Value)
			}
			if op.Kind == Write {
				writer[[2]string{op.Key, op.Value}] = fmt.Sprintf("t%d", i+1)
			}
		}
	}
	last := uint64(0)
	for i := range h.Transactions {
		last = max(last, h.Transactions[i].Begin, h.Transactions[i].End)
	}
	free := uint64(0)
	for i := range h.Transactions {
		free = max(free, h.Transactions[i].Session)
	}
	for i := range h.Transactions {
		t := &h.Transactions[i]
		n := uint64(i + 1)
		session := t.Session
		if session == 0 {
			free++
			session = free
		}
		// Without real time all transactions overlap.
		from, to := t.Begin, cmp.Or(t.End, last+1)
		events := []history.Event{{Kind: history.EventBegin, Session: session, Txn: n, From: from, Tokens: []string{fmt.Sprintf("t%d", n)}}}
		read := map[string]string{} // the version that the transaction has of each key
		for k := range t.Ops {
			op := &t.Ops[k]
			if op.Unknown {
				continue
			}
			e := history.Event{Kind: history.EventStmt, Session: session, Txn: n, From: from, To: to, N: k + 1, Coverage: history.CoverageExact}
			e.SQL, e.Verb, e.Accesses = opSQL(op), []string{"select", "update"}[op.Kind], []history.Access{op.access(read, writer, o, t.Outcome)}
			events = append(events, e)
		}
		events = append(events, history.Event{Kind: history.EventEnd, Session: session, Txn: n, To: to, Outcome: t.Outcome})
		for k := range events {
			if err := out.Write(&events[k]); err != nil {
				return err
			}
		}
	}
	return out.Close()
}

func opSQL(op *Op) string {
	if op.Kind == Write {
		return "write " + op.Key
	}
	return "read " + op.Key
}

const initialVersion = "initial"

func (op *Op) access(read map[string]string, writer map[[2]string]string, o *order, outcome history.Outcome) history.Access {
	at := [2]string{op.Key, op.Value}
	a := history.Access{Op: history.OpRead, Row: history.Row{Table: nativeTable, Key: op.Key}, Version: op.Value, Order: o.place[at]}
	if op.Kind == Write {
		a.Op = history.OpUpdate
		if outcome == history.OutcomeAborted {
			a.Order = 0
		}
		before := [2]string{op.Key, read[op.Key]}
		if before[1] == initialVersion {
			before[1] = ""
		}
		if p := read[op.Key]; p != "" && p != op.Value && (outcome == history.OutcomeAborted || o.behind[before] == op.Value) { // a version is replaced once
			a.Prev, a.PrevWriter, a.PrevOrder = p, writer[before], o.place[before]
			if p == initialVersion {
				a.PrevOrder = history.OrderInitial
			}
		}
		read[op.Key] = op.Value
		return a
	}
	if op.Initial {
		a.Version, a.Order = initialVersion, history.OrderInitial
	}
	a.Writer = writer[[2]string{op.Key, op.Value}]
	read[op.Key] = a.Version
	return a
}
