package observed

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// recorded is a history of rows and versions in JSON lines.
func recorded(t *testing.T, text string) []byte {
	t.Helper()
	events, err := history.ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w, err := history.NewWriter(&b, history.Header{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readNative(data []byte) (*History, error) {
	r, err := history.NewReader(bytes.NewReader(data), "h")
	if err != nil {
		return nil, err
	}
	return ReadNative(r.Next)
}

func TestReadNative(t *testing.T) {
	h, err := readNative(recorded(t, `s1 t1 begin "read committed"
t1 r x@0, w x 0>1
t1 commit
s2 t2 begin "read committed"
t2 r x@1!T1 y@1?
t2 abort
s3 t3 begin "read committed"
t3 d y 0>1 -- DELETE
s4 t4 begin "read committed"
t4 stmt
t4 commit pending
t4 late 1 w z 0>1
`))
	if err != nil {
		t.Fatal(err)
	}
	want := &History{Ordered: true, Omitted: map[string]int{"access of a row or version that is not known": 1, "transaction that had not ended": 1}, Transactions: []Transaction{
		{ID: 1, Session: 1, Outcome: history.OutcomeCommitted, Begin: 1, End: 6, Ops: []Op{{Key: "t/x", Initial: true}, {Kind: Write, Key: "t/x", Value: "1"}}},
		{ID: 2, Session: 2, Outcome: history.OutcomeAborted, Begin: 7, End: 12, Ops: []Op{{Key: "t/x", Unknown: true}}},
		{ID: 4, Session: 4, Outcome: history.OutcomeCommitted, Begin: 17, End: 22, Ops: []Op{{Kind: Write, Key: "t/z", Value: "1"}}},
	}}
	if d := cmp.Diff(want, h); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	var b bytes.Buffer
	if err := WriteNative(&b, h); err != nil {
		t.Fatal(err)
	}
	again, err := readNative(b.Bytes())
	if err != nil || len(again.Transactions) != 3 || len(again.Transactions[0].Ops) != 2 {
		t.Errorf("written and read again: %v, %+v", err, again)
	}
}

// TestWriteNativeInitial: a value cannot have the name of what was there before.
func TestWriteNativeInitial(t *testing.T) {
	for value, ok := range map[string]bool{initialVersion: false, "'" + initialVersion + "'": true} {
		h := &History{Transactions: []Transaction{{Outcome: history.OutcomeCommitted, Ops: []Op{{Kind: Write, Key: "x", Value: value}}}}}
		if err := WriteNative(&bytes.Buffer{}, h); (err == nil) != ok {
			t.Errorf("%s: %v", value, err)
		}
	}
}

// TestOrderOf: an order is told only where each version comes behind another one.
func TestOrderOf(t *testing.T) {
	read, write := func(v string) Op { return Op{Key: "x", Value: v, Initial: v == ""} }, func(v string) Op { return Op{Kind: Write, Key: "x", Value: v} }
	txn := func(out history.Outcome, ops ...Op) Transaction { return Transaction{Outcome: out, Ops: ops} }
	const ok, bad, unknown = history.OutcomeCommitted, history.OutcomeAborted, history.OutcomeUnknown
	for _, tt := range []struct {
		name string
		list []Transaction
		want string // the places of 1, 2 and 3
	}{
		{"one version", []Transaction{txn(ok, write("1"))}, "2 0 0"},
		{"a chain, in any order of the transactions", []Transaction{txn(ok, read("2"), write("3")), txn(ok, write("1")), txn(ok, read("1"), write("2"))}, "2 3 4"},
		{"its own", []Transaction{txn(ok, write("1"), write("2"))}, "2 3 0"},
		{"two behind the initial one", []Transaction{txn(ok, write("1")), txn(ok, write("2"))}, "0 0 0"},
		{"two behind one", []Transaction{txn(ok, write("1")), txn(ok, read("1"), write("2")), txn(ok, read("1"), write("3"))}, "0 0 0"},
		{"one that was rolled back does not count", []Transaction{txn(bad, write("2")), txn(ok, read(""), write("1"))}, "2 0 0"},
		{"behind one that was rolled back", []Transaction{txn(bad, write("1")), txn(ok, read("1"), write("2"))}, "0 0 0"},
		{"one that may not have been written", []Transaction{txn(unknown, write("1"))}, "0 0 0"},
		{"one that nobody wrote", []Transaction{txn(ok, read("7")), txn(ok, write("1"))}, "0 0 0"},
		{"one written twice", []Transaction{txn(ok, write("1")), txn(ok, read("1"), write("1"))}, "0 0 0"},
		{"a ring", []Transaction{txn(ok, read("2"), write("1")), txn(ok, read("1"), write("2"))}, "0 0 0"},
	} {
		h := &History{Transactions: tt.list}
		o := orderOf(h)
		got := fmt.Sprint(o.place[[2]string{"x", "1"}], o.place[[2]string{"x", "2"}], o.place[[2]string{"x", "3"}])
		if got != tt.want || (h.Unordered() == 0) == (got == "0 0 0") {
			t.Errorf("%s: places %s, want %s; %d keys unordered", tt.name, got, tt.want, h.Unordered())
		}
	}
}
