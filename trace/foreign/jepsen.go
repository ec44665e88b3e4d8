package foreign

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// event is one line of a Jepsen history.
type event struct {
	index   int64
	indexed bool
	kind    string // invoke, ok, fail, info
	session string // text of the process; empty: none is given
	client  bool   // the process is a number, or not given
	ops     []observed.Op
	mops    bool // the value is a list of micro-operations
	none    bool // there is no value
}

// jepsen pairs invocations with completions.
type jepsen struct {
	h       *observed.History
	open    map[string]*observed.Transaction
	session map[string]uint64
	done    []observed.Transaction
	place   uint64
}

// jepsenHistory makes a history of events. Where all events have an index of their own, the indexes are their order; otherwise the lines are. There may be
// no transaction in it: a test may end before its first one, and what nothing shows is unknown.
func jepsenHistory(events []event) *observed.History {
	j := &jepsen{h: &observed.History{Ordered: true}, open: map[string]*observed.Transaction{}, session: map[string]uint64{}}
	j.sort(events)
	for i := range events {
		j.add(&events[i])
	}
	// Nobody heard of the end of what is still open.
	var left []*observed.Transaction
	for _, t := range j.open {
		left = append(left, t)
	}
	slices.SortFunc(left, func(a, b *observed.Transaction) int { return cmp.Compare(a.Begin, b.Begin) })
	for _, t := range left {
		j.end(*t, history.OutcomeUnknown)
	}
	j.h.Transactions = j.done
	return j.h
}

func (j *jepsen) sort(events []event) {
	seen := make(map[int64]bool, len(events))
	for i := range events {
		if e := &events[i]; !e.indexed || seen[e.index] {
			return
		}
		seen[events[i].index] = true
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.index, b.index) })
}

// sessionOf numbers the sessions. An event without process is a session of its own.
func (j *jepsen) sessionOf(e *event) uint64 {
	if e.session == "" {
		return 0
	}
	n := j.session[e.session]
	if n == 0 {
		n = uint64(len(j.session) + 1)
		j.session[e.session] = n
	}
	return n
}

func (j *jepsen) add(e *event) {
	j.place++
	if !e.client {
		return // the nemesis, a log entry
	}
	if !e.mops && !e.none {
		j.h.Omit("operation that is no transaction of reads and writes")
		delete(j.open, e.session)
		return
	}
	t := observed.Transaction{ID: j.place - 1, Session: j.sessionOf(e), Ops: e.ops}
	if e.indexed && e.index >= 0 {
		t.ID = uint64(e.index)
	}
	began := j.open[e.session]
	if e.session == "" {
		began = nil
	}
	switch e.kind {
	case "invoke":
		if began != nil { // a process that begins again without an end
			j.end(*began, history.OutcomeUnknown)
		}
		t.Begin = j.place
		if e.session == "" {
			j.h.Omit("invocation without a process")
			return
		}
		j.open[e.session] = &t
		return
	case "ok", "fail", "info":
	default:
		j.h.Omit("operation of an unknown type")
		return
	}
	if began != nil {
		t.Begin = began.Begin
		if e.none || e.kind != "ok" && len(t.Ops) == 0 {
			t.Ops = began.Ops
		}
		delete(j.open, e.session)
	} else if e.none {
		if e.kind == "ok" {
			j.h.Omit("completion without a value")
		}
		return
	}
	if e.kind == "ok" && slices.ContainsFunc(t.Ops, func(op observed.Op) bool { return op.Unknown }) {
		j.h.Omit(noResult)
	}
	j.end(t, map[string]history.Outcome{"ok": history.OutcomeCommitted, "fail": history.OutcomeAborted, "info": history.OutcomeUnknown}[e.kind])
	if e.kind == "ok" && began != nil && !sameWrites(began.Ops, t.Ops) {
		j.h.Omit("completion that wrote something else than its invocation")
	}
}

// noResult is why a committed transaction is not judged whole.
const noResult = "completed read without a result"

// end keeps a transaction. The end of one of unknown outcome may come any time later.
func (j *jepsen) end(t observed.Transaction, outcome history.Outcome) {
	t.Outcome = outcome
	if outcome != history.OutcomeUnknown {
		t.End = j.place
	}
	if outcome != history.OutcomeCommitted {
		t.Ops = slices.Clone(t.Ops)
		for i := range t.Ops {
			if op := &t.Ops[i]; op.Kind == observed.Read {
				*op = observed.Op{Kind: observed.Read, Key: op.Key, Unknown: true}
			}
		}
	}
	j.done = append(j.done, t)
}

// sameWrites reports whether two forms of one transaction write the same.
func sameWrites(a, b []observed.Op) bool {
	writes := func(ops []observed.Op) (out []observed.Op) {
		for _, op := range ops {
			if op.Kind != observed.Read {
				out = append(out, observed.Op{Kind: op.Kind, Key: op.Key, Value: op.Value})
			}
		}
		return out
	}
	return slices.EqualFunc(writes(a), writes(b), func(x, y observed.Op) bool { return x.Kind == y.Kind && x.Key == y.Key && x.Value == y.Value })
}

// mop makes an operation of its parts; ok is false for what is none.
func mop(f, key string, value text) (op observed.Op, ok bool) {
	op = observed.Op{Key: key}
	switch f {
	case "r":
		if value.missing {
			op.Unknown = true
			return op, true
		}
		op.Initial, op.IsList = value.none || value.list && len(value.items) == 0, value.list
		if !value.none {
			op.Value = value.text
		}
		op.List = value.items
	case "w":
		op.Kind, op.Value = observed.Write, value.text
	case "append":
		op.Kind, op.Value = observed.Append, value.text
	default:
		return op, false
	}
	return op, op.Kind == observed.Read || !value.none && !value.missing
}

// notation is how a form of Jepsen's histories writes values.
type notation[R ~[]byte] struct {
	none      string // nothing
	lists     string // what a list may begin with
	unmarshal func([]byte, any) error
	compact   func(R) string // a value without needless blanks, so that equal values have equal texts
	name      func(R) string // a keyword
}

// list gives the elements of a list; ok is false for what is none.
func (n *notation[R]) list(raw []byte) (list []R, ok bool) {
	raw = bytes.TrimSpace(raw)
	ok = len(raw) > 0 && strings.IndexByte(n.lists, raw[0]) >= 0 && n.unmarshal(raw, &list) == nil
	return list, ok
}

// mops reads a list of micro-operations; ok is false for a value that is none.
func (n *notation[R]) mops(raw R) (ops []observed.Op, ok bool) {
	list, ok := n.list(raw)
	if !ok {
		return nil, false
	}
	ops = make([]observed.Op, 0, len(list))
	for _, m := range list {
		parts, ok := n.list(m)
		if !ok || len(parts) < 2 || len(parts) > 3 {
			return nil, false
		}
		value := text{missing: true}
		if len(parts) == 3 {
			if value, ok = n.text(parts[2]); !ok {
				return nil, false
			}
		}
		op, ok := mop(n.name(parts[0]), n.compact(parts[1]), value)
		if !ok {
			return nil, false
		}
		ops = append(ops, op)
	}
	return ops, true
}

// text reads a value; ok is false for a list that cannot be read.
func (n *notation[R]) text(raw R) (t text, ok bool) {
	if t.text = n.compact(raw); t.text == n.none {
		return text{none: true}, true
	}
	if t.list = t.text != "" && strings.IndexByte(n.lists, t.text[0]) >= 0; t.list {
		var items []R
		if n.unmarshal(raw, &items) != nil {
			return t, false
		}
		t.items = make([]string, len(items))
		for i := range items {
			t.items[i] = n.compact(items[i])
		}
	}
	return t, true
}

// text is a value of a source: its own text, and its elements if it is a list.
type text struct {
	text    string
	missing bool
	none    bool // nil
	list    bool
	items   []string
}
