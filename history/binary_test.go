package history

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func encodeBinary(t testing.TB, events []Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewBinaryWriter(&b, Header{Engine: "postgres", Started: 5, Run: "k3f9"})
	if err != nil {
		t.Fatal(err)
	}
	for i := range events {
		if err := w.Write(&events[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// compact are events that need no JSON.
func compact() []Event {
	return []Event{
		{Kind: EventBegin, Session: 1, Txn: 7, From: 3, Level: "read committed", Implicit: true, Tokens: []string{"x9", ""}},
		{Kind: EventStmt, Session: 1, Txn: 7, From: 3, To: 4, At: -5, N: 1, SQL: "SELECT 1", Verb: "select", Coverage: CoverageExact, CurrentRead: true, Predicate: true, Accesses: []Access{
			{Op: OpRead, Row: Row{"public.t", "17"}, Version: "(0,1)/9", Writer: "x9", AsOf: 77},
			{Op: OpMatch, Row: Row{"public.t", "017"}, Version: "a", Order: OrderInitial, Approx: true},
			{Op: OpUpdate, Row: Row{"public.t", "\x00\x80"}, Version: "b", Prev: "a", PrevWriter: "x8", Order: 18446744073709551615, PrevOrder: 3},
			{Op: OpDelete, Row: Row{"public.u", "18446744073709551615"}, Name: "id=1"},
			{Op: OpUpdate, Row: Row{"public.u", "1"}, Version: "c", Name: "id=\x80", Image: "id 1 v 2", Was: "id 1 v 1", Values: "v 1"}}},
		{Kind: EventStmt, Session: 1, Txn: 7, From: 5, To: 6, N: 2, SQL: "SELECT 1", Verb: "select", Coverage: CoverageOpaque, Params: "1, 'a'", Request: "00-1"},
		{Kind: EventStmt, Session: 1, Txn: 7, From: 5, To: 6, N: 2, SQL: "SELECT 2", Verb: "select", Coverage: CoverageApproximate, Why: "a view", Unread: "LIKE", Tags: []string{"route=/buy", ""},
			Reads: []PredicateRead{{Table: "public.t", Where: "(>= number id 7)", From: 4, To: 6, Whole: true}, {Table: "public.u", From: 1, To: 2, Current: true}, {Table: "public.u", Met: true}, {Table: "public.u", Within: true}}},
		{Kind: EventStmt, Session: 1, Txn: 7, From: 5, To: 6, N: 3, SQL: "ROLLBACK TO a", Verb: "rollback to", UndoesFrom: 2},
		{Kind: EventEnd, Session: 1, Txn: 7, To: 7, Outcome: OutcomeCommitted, Sent: 6, Pending: true},
		{Kind: EventClose, Session: 1, To: 8},
	}
}

func TestBinaryRoundTrip(t *testing.T) {
	events := append(full(), compact()...)
	if data := encodeBinary(t, compact()); bytes.Contains(data, []byte(`{"e":`)) {
		t.Errorf("an event that needs no JSON has it: %q", data)
	}
	data := encodeBinary(t, events)
	got, r, err := decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(events, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if d := cmp.Diff(Header{Engine: "postgres", Started: 5, Run: "k3f9"}, r.Header()); d != "" {
		t.Error(d)
	}
	if n, text := len(encodeBinary(t, compact())), len(encode(t, compact())); n*3 > text {
		t.Errorf("%d bytes, and %d as JSON", n, text)
	}
}

func TestBinaryCutOff(t *testing.T) {
	data := encodeBinary(t, compact())
	head := bytes.IndexByte(data, '\n') + 1
	for n := head; n < len(data); n++ {
		got, r, err := decode(data[:n])
		if err != nil || len(got) >= len(compact()) || n > head && len(got) == 0 && r.Warning() == "" {
			t.Fatalf("cut at %d: %d events, warning %q, %v", n, len(got), r.Warning(), err)
		}
	}
}

func TestBinaryDamaged(t *testing.T) {
	head := string(appendHeader(nil, Header{}, formBinary))
	for _, rec := range []string{"\x01\xff", "\x02\x03\x01", "\x04\x03\x01\x00\x00", "\x07\x03\x01\x80\x01\x09\x00\x00", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "\xff\xff\xff\xff\x7f", "\x03\x00{}", "\x00"} {
		if _, _, err := decode([]byte(head + rec)); err == nil || !strings.HasPrefix(err.Error(), "h:2: ") {
			t.Errorf("%q: %v", rec, err)
		}
	}
	if _, _, err := decode([]byte(`{"wirecheck":"history","version":1,"form":"xml"}` + "\n")); err == nil {
		t.Error("an unknown form was accepted")
	}
}

func FuzzBinary(f *testing.F) {
	f.Add(encodeBinary(f, append(full(), compact()...)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := NewReader(bytes.NewReader(append(appendHeader(nil, Header{}, formBinary), data...)), "h")
		if err != nil {
			t.Fatal(err)
		}
		var e Event
		var events []Event
		for {
			if err := r.Next(&e); err != nil {
				if errors.Is(err, io.EOF) {
					break
				}
				return
			}
			c := e
			c.Accesses, c.Tokens = append([]Access(nil), e.Accesses...), append([]string(nil), e.Tokens...)
			events = append(events, c)
		}
		again, _, err := decode(encodeBinary(t, events))
		if err != nil {
			t.Fatalf("own output is refused: %v", err)
		}
		if d := cmp.Diff(events, again); d != "" {
			t.Fatalf("(-first +second):\n%s", d)
		}
	})
}

func BenchmarkBinaryReader(b *testing.B) {
	var events []Event
	for range 1000 {
		events = append(events, compact()...)
	}
	data := encodeBinary(b, events)
	b.SetBytes(int64(len(encode(b, events))))
	b.ReportAllocs()
	for b.Loop() {
		r, err := NewReader(bytes.NewReader(data), "h")
		if err != nil {
			b.Fatal(err)
		}
		var e Event
		for r.Next(&e) == nil {
		}
	}
}
