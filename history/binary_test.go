package history

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
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
			Reads: []PredicateRead{{Table: "public.t", Where: "(>= number id 7)", From: 4, To: 6, Whole: true}, {Table: "public.u", From: 1, To: 2, Current: true}, {Table: "public.u", Met: true, Groups: "(groups)"}, {Table: "public.u", Within: true, Snapshot: "10:12:10"}}},
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

// TestLend: events of which the strings are lent are the same until the next one comes.
func TestLend(t *testing.T) {
	events := append(full(), compact()...)
	for _, data := range [][]byte{encodeBinary(t, events), encode(t, events)} {
		r, err := NewReader(bytes.NewReader(data), "h")
		if err != nil {
			t.Fatal(err)
		}
		r.Lend()
		var e Event
		for i := range events {
			if err := r.Next(&e); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(events[i], e, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("event %d (-want +got):\n%s", i, d)
			}
		}
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

// TestBinaryWords: a text of a statement has a number from its third time on, other words from their second; and reader and writer number alike when
// there are more of them than are numbered, in a file and in batches that follow each other.
func TestBinaryWords(t *testing.T) {
	stmt := func(sql string) Event {
		return Event{Kind: EventStmt, Session: 1, Txn: 7, N: 1, SQL: sql, Verb: "select", Coverage: CoverageExact}
	}
	long := "SELECT " + strings.Repeat("1 + ", 40) + "1"
	var b Batch
	var sizes []int
	for range 4 {
		before := b.Len()
		e := stmt(long)
		b.Add(&e)
		sizes = append(sizes, b.Len()-before)
	}
	if sizes[1] >= sizes[0] || sizes[1] < len(long) || sizes[2] > 20 || sizes[3] != sizes[2] {
		t.Errorf("sizes %v", sizes)
	}
	b.Take()
	again := stmt(long)
	b.Add(&again)
	b.Add(&again)
	if n := strings.Count(string(b.Take()), long); n != 1 {
		t.Errorf("a text that the batch before had, too, stands %d times in a batch", n)
	}
	var events []Event
	for i := range 2 * maxWords {
		events = append(events, stmt(fmt.Sprintf("SELECT %d", i)))
		if i%100 == 0 {
			events = append(events, stmt(long), stmt(fmt.Sprintf("SELECT %d", i)), Event{Kind: EventBegin, Session: 1, Txn: 7, Level: fmt.Sprint("level ", i)})
		}
	}
	got, _, err := decode(encodeBinary(t, events))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(events, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got = got[:0]
	var r BatchReader
	for part := range slices.Chunk(events, len(events)/3) {
		for i := range part {
			b.Add(&part[i])
		}
		if err := r.Read(b.Take(), func(e *Event) {
			own := *e
			own.Accesses, own.Tokens = nil, nil
			got = append(got, own)
		}); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(events, got); d != "" {
		t.Errorf("batches (-want +got):\n%s", d)
	}
}
