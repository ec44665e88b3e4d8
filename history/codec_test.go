package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// full has every field set.
func full() []Event {
	return []Event{
		{Kind: EventSession, Session: 1, From: 1, To: 2, At: 1700000000000000001, Engine: "postgres", Server: "15.4", Database: "shop",
			User: "ann", Client: "psql", Backend: 4711},
		{Kind: EventBegin, Session: 1, Txn: 7, From: 3, Level: "read committed", Implicit: true, Tokens: []string{"x921"}},
		{Kind: EventStmt, Session: 1, Txn: 7, From: 3, To: 4, N: 1, SQL: "select \"a\"\n\t'\\\x01é\xff\xfe€'", Verb: "select",
			Coverage: CoverageApproximate, Why: "view", CurrentRead: true, Predicate: true, UndoesFrom: 2, Tokens: []string{"a", "b\xc3"},
			Error: &ServerError{Code: "40001", Message: "could not serialize"}, Request: "4bf9 é", Tags: []string{"route=/buy"},
			Operands: []Operand{{"stock", RoleSet, "98"}, {"n", RoleComputed, ""}, {"id", RoleEqual, "1"}},
			Derived:  []Derived{{"stock", Row{"public.t", "1"}, 6, 2, "a", "99", "plus", "-1"}, {Column: "b", Row: Row{Table: "t"}, Txn: 6, N: 1}},
			Accesses: []Access{
				{Op: OpRead, Row: Row{Table: "public.t", Key: "1"}, Version: "(0,1)/9", Writer: "x9", AsOf: 77},
				{Op: OpUpdate, Row: Row{Table: "public.t", Key: "\x00\x80"}, Version: "b", Prev: "a", PrevWriter: "x8", Order: 18446744073709551615, PrevOrder: 3, Approx: true, Image: `a "x y"`, Was: "a null"},
			}, Reads: []PredicateRead{{Table: "public.t", Where: "(null a)", From: 3, To: 4, Whole: true, Snapshot: "10:12:10,11"}, {Table: "u", Groups: "(groups)"}}, Unread: "it joins tables"},
		{Kind: EventEnd, Session: 1, Txn: 7, To: 5, Outcome: OutcomeUnknown, Sent: 4, Pending: true},
		{Kind: EventClose, Session: 1, To: 6},
	}
}

func encode(t testing.TB, events []Event) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{Engine: "postgres", Started: 5, Run: "k3f9"})
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

// decode reads all events; the slices are copied, as Next uses them again.
func decode(data []byte) ([]Event, *Reader, error) {
	r, err := NewReader(bytes.NewReader(data), "h")
	if err != nil {
		return nil, nil, err
	}
	var out []Event
	var e Event
	for {
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return out, r, nil
		} else if err != nil {
			return out, r, err
		}
		c := e
		c.Accesses = append([]Access(nil), e.Accesses...)
		c.Tokens = append([]string(nil), e.Tokens...)
		out = append(out, c)
	}
}

func TestRoundTrip(t *testing.T) {
	got, r, err := decode(encode(t, full()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(full(), got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	if d := cmp.Diff(Header{Engine: "postgres", Started: 5, Run: "k3f9"}, r.header); d != "" {
		t.Error(d)
	}
	if r.Warning() != "" {
		t.Error(r.Warning())
	}
}

// TestEncodingJSON holds the hand-written encoder to the struct tags of Event.
func TestEncodingJSON(t *testing.T) {
	for _, e := range full() {
		e.SQL = strings.ToValidUTF8(e.SQL, "?")
		for i := range e.Accesses {
			e.Accesses[i].Row.Key = strings.ToValidUTF8(e.Accesses[i].Row.Key, "?")
		}
		for i := range e.Tokens {
			e.Tokens[i] = strings.ToValidUTF8(e.Tokens[i], "?")
		}
		var got Event
		d := json.NewDecoder(bytes.NewReader(AppendEvent(nil, &e)))
		d.DisallowUnknownFields()
		if err := d.Decode(&got); err != nil {
			t.Fatalf("%v in %s", err, AppendEvent(nil, &e))
		}
		if d := cmp.Diff(e, got); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
}

func TestCreate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h.wch")
	w, err := Create(path, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&Event{Kind: EventClose, Session: 1}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, error %v; want 0600", info.Mode(), err)
	}
	if _, err := Create(path, Header{}); !errors.Is(err, os.ErrExist) {
		t.Errorf("second Create: %v; want an error that it exists", err)
	}
}

func TestReaderErrors(t *testing.T) {
	const head = `{"wirecheck":"history","version":1,"run":"a"}` + "\n"
	for _, tt := range []struct{ name, in, want string }{
		{"empty", "", "h: is empty: a history begins with a header line"},
		{"other file", "PK\x03\x04\n", "h:1: " + notHistory},
		{"other json", `{"type":"ok"}` + "\n", "h:1: " + notHistory},
		{"no line", strings.Repeat("[", 1<<16), "h:1: " + notHistory},
		{"cut header", `{"wirecheck":"hist`, "h:1: the header line is cut off: nothing was recorded"},
		{"version", `{"wirecheck":"history","version":2,"new":{}}` + "\n", "h:1: the history has version 2 and this program reads version 1: use the wirecheck that wrote it"},
		{"no version", `{"wirecheck":"history"}` + "\n", "h:1: the header has no version: it was written by hand? Version 1 is the only one"},
		{"key", head + `{"e":"close","s":1,"x":1}` + "\n", `h:2: unknown key "x": it was written by a newer wirecheck, or by hand (docs/reference/history-format.md lists the keys)`},
		{"nested key", head + `{"e":"stmt","s":1,"acc":[{"op":"read","row":{"tab":"t"}}]}` + "\n", `h:2: unknown key "row.tab": it was written by a newer wirecheck, or by hand (docs/reference/history-format.md lists the keys)`},
		{"kind", head + `{"e":"open","s":1}` + "\n", `h:2: unknown kind of event "open"`},
		{"no kind", head + `{"s":1}` + "\n", `h:2: the event has no kind (key e)`},
		{"op", head + `{"e":"stmt","s":1,"acc":[{"op":"peek","row":{"table":"t","key":"1"}}]}` + "\n", `h:2: unknown operation "peek"`},
		{"outcome", head + `{"e":"end","s":1,"t":1,"outcome":"maybe"}` + "\n", `h:2: unknown outcome "maybe"`},
		{"coverage", head + `{"e":"stmt","s":1,"coverage":"full"}` + "\n", `h:2: unknown coverage "full"`},
		{"no txn", head + `{"e":"begin","s":1}` + "\n", `h:2: a begin event needs t, the transaction's number`},
		{"no session", head + `{"e":"stmt","t":1}` + "\n", `h:2: a stmt event needs s, the session's number`},
		{"broken in the middle", head + `{"e":"close","s":1` + "\n" + `{"e":"close","s":1}` + "\n", `h:2: the line ends where , or } was expected`},
		{"number", head + `{"e":"close","s":1.5}` + "\n", `h:2: column 19: found '.' where , or } was expected`},
		{"negative", head + `{"e":"close","s":-1}` + "\n", `h:2: column 18: -1 is no whole number from 0 to 2^64-1`},
		{"null", head + `{"e":null}` + "\n", `h:2: column 6: found 'n' where a string was expected`},
		{"rest", head + `{"e":"close","s":1} x` + "\n", `h:2: column 21: found 'x' where the end of the line was expected`},
		{"escape", head + `{"e":"close","s":1,"db":"\x"}` + "\n", `h:2: column 27: found 'x' where an escape was expected`},
	} {
		_, _, err := decode([]byte(tt.in))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
}

func TestReaderCutOff(t *testing.T) {
	data := encode(t, full())
	for cut := 1; cut < 40; cut++ {
		got, r, err := decode(data[:len(data)-cut])
		if err != nil {
			t.Fatalf("cut by %d: %v", cut, err)
		}
		switch {
		case cut == 1: // only the line end is missing
			if len(got) != len(full()) || r.Warning() != "" {
				t.Errorf("cut by 1: %d events, warning %q", len(got), r.Warning())
			}
		case cut < len(`{"e":"close","s":1,"to":6}`)+1:
			if want := "h:6: the last line is cut off and was left out"; r.Warning() != want || len(got) != len(full())-1 {
				t.Errorf("cut by %d: %d events, warning %q, want %q", cut, len(got), r.Warning(), want)
			}
		}
	}
}

func TestText(t *testing.T) {
	const text = `s1 session "postgres" "15.4"
s1 t1 begin "read committed"
s1 t2 begin "serializable" implicit tokens x1,x2
t1 r x@0 acc.y@3
t1 lock x@1!T7 , inc x 1!T7>2 predicate -- SELECT 1
t1 w _ a>b#9
t1 i z >1 image "a \"x y\""
t1 d z 1>2 was "a null"
t1 r x@0 all t "(null a)" where acc "(true)" unread "it joins tables"
t1 r x@v<9 y@v2#5? approximate error "40001"
t1 stmt -- SET x
t1 undo 2
t1 abort
t2 commit pending
s1 close
`
	events, err := ParseText(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i := range events {
		if e := &events[i]; e.Kind == EventStmt && !strings.Contains(strings.Split(text, "\n")[i], "--") {
			e.SQL = ""
		}
		b = append(AppendText(b, &events[i]), '\n')
	}
	if d := cmp.Diff(text, string(b)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	want := Event{Kind: EventStmt, Session: 1, Txn: 1, N: 2, From: 9, To: 10, SQL: "SELECT 1", Verb: "update", Coverage: CoverageExact,
		CurrentRead: true, Predicate: true, Accesses: []Access{
			{Op: OpLock, Row: Row{"t", "x"}, Version: "1", Order: 2, Writer: "T7"},
			{Op: OpUpdate, Row: Row{"t", "x"}, Version: "2", Order: 3, Prev: "1", PrevOrder: 2, PrevWriter: "T7"}}}
	if d := cmp.Diff(want, events[4]); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestTextErrors(t *testing.T) {
	for _, in := range []string{"t1 r x@0", "s1", "s1 t1 begin\nt1 x", "s1 t1 begin\nt1 r x", "s1 t1 begin\nt1 w x 1", "s1 t1 begin\nt1 w x",
		"s1 t1 begin\nt1 undo", "s1 t1 begin\nt1 r x@v#a", "s1 t1 begin \"a"} {
		if _, err := ParseText(strings.NewReader(in)); err == nil {
			t.Errorf("%q was accepted", in)
		}
	}
}

func FuzzText(f *testing.F) {
	f.Add("s1 t1 begin\nt1 r x@0\nt1 lock x@1!T7, w y 0>1 predicate -- SELECT 1\nt1 commit")
	f.Fuzz(func(t *testing.T, in string) {
		_, _ = ParseText(strings.NewReader(in)) // must not panic
	})
}

func BenchmarkReader(b *testing.B) {
	var events []Event
	for range 1000 {
		events = append(events, full()...)
	}
	data := encode(b, events)
	b.SetBytes(int64(len(data)))
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

func BenchmarkAppendEvent(b *testing.B) {
	events := full()
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = buf[:0]
		for i := range events {
			buf = AppendEvent(buf, &events[i])
		}
		b.SetBytes(int64(len(buf)))
	}
}

func TestWriterConcurrent(t *testing.T) {
	var b bytes.Buffer
	w, err := NewWriter(&b, Header{})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for s := range uint64(4) {
		wg.Go(func() {
			for n := range 100 {
				if err := w.Write(&Event{Kind: EventStmt, Session: s + 1, N: n + 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	events, _, err := decode(b.Bytes())
	if err != nil || len(events) != 400 {
		t.Fatalf("%d events, error %v", len(events), err)
	}
	last := map[uint64]int{}
	for _, e := range events {
		if e.N != last[e.Session]+1 {
			t.Fatalf("session %d: statement %d after %d", e.Session, e.N, last[e.Session])
		}
		last[e.Session] = e.N
	}
}

// brokenWriter fails after n bytes.
type brokenWriter struct{ n int }

func (b *brokenWriter) Write(p []byte) (int, error) {
	if b.n -= len(p); b.n < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestWriterBroken(t *testing.T) {
	w, err := NewWriter(&brokenWriter{100}, Header{})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(&Event{Kind: EventStmt, Session: 1, SQL: strings.Repeat("x", 1<<17)}); err == nil {
		t.Error("the error did not come")
	}
	for _, err := range []error{w.Write(&Event{Kind: EventClose, Session: 1}), w.Flush(), w.Close()} {
		if err == nil || err.Error() != "write history: disk full" {
			t.Errorf("got %v, want the first error again", err)
		}
	}
}
