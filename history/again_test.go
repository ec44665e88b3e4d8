package history

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// readAll reads all events to the end.
func readAll(t *testing.T, r *Reader) (events []Event) {
	t.Helper()
	for {
		var e Event
		if err := r.Next(&e); errors.Is(err, io.EOF) {
			return events
		} else if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}

// TestAgain: the second reading gives what the first one gave, but for the transactions that are not wanted, of which it counts the beginnings.
func TestAgain(t *testing.T) {
	var events []Event
	for i := range uint64(40) {
		word := strings.Repeat("x", int(i)) // a word that a record of a transaction that is passed over tells first
		events = append(events, Event{Kind: EventSession, Session: 1 + i%3, Engine: "postgres"},
			Event{Kind: EventBegin, Session: 1 + i%3, Txn: 1 + i, Level: "level " + word},
			Event{Kind: EventStmt, Session: 1 + i%3, Txn: 1 + i, N: 1, SQL: "SELECT 1", Verb: "select", Accesses: []Access{{Op: OpRead, Row: Row{"t" + word, "1"}, Version: "v"}}},
			Event{Kind: EventStmt, Session: 1 + i%3, Txn: 1 + i, N: 2, SQL: "SELECT 2", Error: &ServerError{Code: "1"}},
			Event{Kind: EventStmt, Session: 1 + i%3, SQL: "SET a"},
			Event{Kind: EventBegin, Session: 9, Txn: 100 + i, Level: "level " + word, Engine: "no field of the binary form"},
			Event{Kind: EventEnd, Session: 1 + i%3, Txn: 1 + i, Outcome: OutcomeCommitted})
	}
	// Another program writes keys in another order, and blanks.
	foreign := strings.ReplaceAll(strings.ReplaceAll(string(encode(t, events)), `{"e":"begin","s":9,`, `{"s":9, "e":"begin", `), `"stmt","s":1,`, `"stmt", "s":1, `)
	for name, data := range map[string][]byte{"JSON": encode(t, events), "binary": encodeBinary(t, events), "foreign": []byte(foreign)} {
		for _, only := range []func(uint64) bool{func(uint64) bool { return false }, func(uint64) bool { return true }, func(n uint64) bool { return n%7 == 0 }, func(n uint64) bool { return n > 105 }} {
			r, err := NewReader(bytes.NewReader(data), "h")
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(events, readAll(t, r)); d != "" {
				t.Fatal(d)
			}
			if err := r.Again(bytes.NewReader(data), only); err != nil {
				t.Fatal(err)
			}
			begun := 0
			want := slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
				over := e.Txn != 0 && !only(e.Txn)
				if over && e.Kind == EventBegin {
					begun++
				}
				return over
			})
			if d := cmp.Diff(want, readAll(t, r), cmpopts.EquateEmpty()); d != "" || r.Passed() != begun {
				t.Errorf("%s: %d begun, want %d (-want +got):\n%s", name, r.Passed(), begun, d)
			}
		}
	}
}

// TestAgainCutOff: a record that is cut off is told of in the second reading as in the first, whatever it is of.
func TestAgainCutOff(t *testing.T) {
	events := []Event{{Kind: EventBegin, Session: 1, Txn: 7}, {Kind: EventStmt, Session: 1, Txn: 7, SQL: "SELECT 1"}}
	for name, data := range map[string][]byte{"JSON": encode(t, events), "binary": encodeBinary(t, events)} {
		data = data[:len(data)-5]
		r, err := NewReader(bytes.NewReader(data), "h")
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, r)
		want := r.Warning()
		if err := r.Again(bytes.NewReader(data), func(uint64) bool { return false }); err != nil {
			t.Fatal(err)
		}
		if got := readAll(t, r); len(got) > 0 || r.Warning() != want || want == "" {
			t.Errorf("%s: %d events, warning %q, want %q", name, len(got), r.Warning(), want)
		}
	}
}

// TestTwoTransactions: an event of two transactions would be read for the one and passed over for the other.
func TestTwoTransactions(t *testing.T) {
	data := `{"wirecheck":"history","version":1}` + "\n" + `{"e":"begin","s":1,"t":1,"t":2}` + "\n"
	if _, _, err := decode([]byte(data)); err == nil || !strings.Contains(err.Error(), "two transactions") {
		t.Error(err)
	}
}
