package columnar

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
)

// TestText: columns are UTF-8, and different texts stay different.
func TestText(t *testing.T) {
	for in, want := range map[string]string{"plain ü": "plain ü", "a\xffb": `a\xffb`, "\xe4\xf6": `\xe4\xf6`, "�": "�", "": ""} {
		if got := text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// TestRoundTrip: each field of an event, an access and a dependency has its column.
func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := history.Event{
		Kind: history.EventStmt, Session: 3, Txn: 4, From: 5, To: 6, At: 1_700_000_000_123_456_789, Engine: "a", Server: "b", Database: "c", User: "d", Client: "e",
		Backend: 7, Level: "f", Implicit: true, N: 8, SQL: "g", Verb: "h", Coverage: "i", Why: "j", CurrentRead: true, Predicate: true,
		Reads: []history.PredicateRead{{Table: "k", Where: "l", From: 9, To: 10, Whole: true, Met: true, Current: true, Within: true, Some: true, Counted: true, Last: "F", Groups: "G", Snapshot: "1:2:"}}, Unread: "m", UndoesFrom: 11, Tokens: []string{"n", "o"},
		Error: &history.ServerError{Code: "p", Message: "q"}, Request: "r", Params: "s", Tags: []string{"t"},
		Operands: []history.Operand{{Column: "u", Role: "v", Value: "w"}},
		Derived:  []history.Derived{{Column: "x", Row: history.Row{Table: "y", Key: "z"}, Txn: 12, N: 13, Version: "A", Read: "B", Kind: "C", Constant: "D"}},
		Outcome:  "E", Sent: 14, Pending: true,
		Accesses: []history.Access{{Op: "F", Row: history.Row{Table: "G", Key: "\xff"}, Name: "H", Version: "I", Writer: "J", Prev: "K", PrevWriter: "L", Order: 15, PrevOrder: 16,
			AsOf: 17, Approx: true, Image: "M", Was: "N", Values: "O"}},
	}
	if err := w.Event(2, &e); err != nil {
		t.Fatal(err)
	}
	w.Edge(isolation.Dependency{From: 1, To: 2, Kind: oracle.EdgeRW, Predicate: true, Path: true, Row: history.Row{Table: "a", Key: "b"}, Name: "c",
		FromVersion: "d", ToVersion: "e", FromStatement: 3, ToStatement: 4})
	if n, err := w.Close(); err != nil || n != (Count{1, 1, 1}) {
		t.Fatalf("%+v, %v", n, err)
	}
	events, err := parquet.ReadFile[eventRow](filepath.Join(dir, EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]eventRow{{
		Event: 1, Input: 2, Kind: "stmt", Session: 3, Txn: 4, FromTick: 5, ToTick: 6, At: 1_700_000_000_123_456, Engine: "a", Server: "b", Database: "c", User: "d", Client: "e",
		Backend: 7, Level: "f", Implicit: true, Statement: 8, SQL: "g", Verb: "h", Coverage: "i", Why: "j", CurrentRead: true, Predicate: true,
		Reads: []predicateRow{{"k", "l", 9, 10, true, true, true, true, true, true, "F", "G", "1:2:"}}, Unread: "m", UndoesFrom: 11, Tokens: []string{"n", "o"}, ErrorCode: "p", ErrorText: "q", Request: "r", Params: "s",
		Tags: []string{"t"}, Operands: []operandRow{{"u", "v", "w"}}, Derived: []derivedRow{{"x", "y", "z", 12, 13, "A", "B", "C", "D"}}, Outcome: "E", SentTick: 14, Pending: true,
	}}, events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	accesses, err := parquet.ReadFile[accessRow](filepath.Join(dir, AccessesFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]accessRow{{1, 3, 4, 8, "F", "G", `\xff`, "H", "I", "J", "K", "L", 15, 16, 17, true, "M", "N", "O"}}, accesses); diff != "" {
		t.Errorf("accesses (-want +got):\n%s", diff)
	}
	edges, err := parquet.ReadFile[edgeRow](filepath.Join(dir, EdgesFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]edgeRow{{1, 2, "rw", true, true, "a", "b", "c", "d", "e", 3, 4}}, edges); diff != "" {
		t.Errorf("edges (-want +got):\n%s", diff)
	}
}

// TestRowGroups: a long file has several row groups, so that memory is bounded, and all of its rows.
func TestRowGroups(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	w, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	const events, long = 200, 1 << 20
	for i := range events {
		if err := w.Event(1, &history.Event{Kind: history.EventStmt, Session: 1, SQL: strings.Repeat(string(rune('a'+i%26)), long)}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(filepath.Join(dir, EventsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	p, err := parquet.OpenFile(f, info.Size())
	if err != nil {
		t.Fatal(err)
	}
	groups := len(p.RowGroups())
	if least := events * long / groupBytes; groups < least || groups > 2*least || p.NumRows() != events {
		t.Errorf("%d row groups, want about %d; %d rows", groups, least, p.NumRows())
	}
}

// TestTooLarge: a number that has no room is an error and leaves no folder; the largest one that has is none.
func TestTooLarge(t *testing.T) {
	for place, fits := range map[uint64]bool{math.MaxInt64: true, math.MaxInt64 + 1: false} {
		parent := t.TempDir()
		w, err := Create(filepath.Join(parent, "out"))
		if err != nil {
			t.Fatal(err)
		}
		err = w.Event(1, &history.Event{Kind: history.EventStmt, Accesses: []history.Access{{Order: place}}})
		if (err == nil) != fits {
			t.Errorf("%d: %v", place, err)
		}
		_, err = w.Close()
		list, e := os.ReadDir(parent)
		if e != nil || (err == nil) != fits || (len(list) == 1) != fits {
			t.Errorf("%d: %v, left %v %v", place, err, list, e)
		}
	}
}
