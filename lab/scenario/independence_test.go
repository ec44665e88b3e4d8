package scenario

import (
	"strings"
	"testing"
)

// toy analyzes "begin", "end", "undo" (to a savepoint), "snapshot", "set", "r A", "w A" (also "w A r B"), separated by ";".
func toy(sql string) []Footprint {
	var all []Footprint
	for stmt := range strings.SplitSeq(sql, ";") {
		words := strings.Fields(stmt)
		if len(words) == 0 {
			continue
		}
		f := Footprint{}
		switch words[0] {
		case "begin":
			f.Action = ActBegin
		case "snapshot":
			f.Action, f.Snapshot = ActBegin, true
		case "end":
			f.Action = ActEnd
		case "undo":
			f.Action, f.Partial = ActEnd, true
		case "set":
			f.Action = ActLocal
		case "r", "w":
			f.Action = ActRead
			for i := 0; i+1 < len(words); i += 2 {
				if words[i] == "w" {
					f.Action = ActWrite
					f.Writes = append(f.Writes, words[i+1])
				} else {
					f.Reads = append(f.Reads, words[i+1])
				}
			}
		}
		all = append(all, f)
	}
	return all
}

func TestIndependence(t *testing.T) {
	ssi, locking, atBegin := Traits{Certifies: true}, Traits{ReadsLock: true}, Traits{SnapshotAtBegin: true}
	tests := []struct {
		name        string
		one, two    string // steps, separated by |; the step looked at is marked by !
		traits      Traits
		independent bool
	}{
		{"two reads", "begin|!r A|end", "begin|!r A|end", Traits{}, true},
		{"read and write of a table", "begin|!r A|end", "begin|!w A|end", Traits{}, false},
		{"two writes of a table", "!w A", "!w A", Traits{}, false},
		{"nothing in common", "begin|!w A|end", "begin|!w B|end", Traits{}, true},
		{"nothing in common, ends", "begin|w A|!end", "begin|w B|!end", Traits{}, true},
		{"two writes of connected transactions: a deadlock's victim", "begin|w A|!w B|end", "begin|w B|!w A r C|end", Traits{}, false},
		{"connected by a third", "begin|!w A|w C|end", "begin|!w B|w C|end", Traits{}, false},
		{"read, write of another table", "begin|!r A|r B|end", "begin|!w B|end", Traits{}, true},
		{"read, write of another table, certified", "begin|!r A|r B|end", "begin|!w B|end", ssi, false},
		{"read, write of another table, reads lock", "begin|!r A|r B|end", "begin|!w B|end", locking, false},
		{"two reads, certified and connected", "begin|!r A|w B|end", "begin|!r A|r B|end", ssi, false},
		{"two reads, certified, not connected", "begin|!r A|end", "begin|!r A|w B|end", ssi, true},
		{"first read and end: the snapshot", "begin|!r A|r B|end", "begin|w B|!end", Traits{}, false},
		{"second read and end", "begin|r A|!r A|r B|end", "begin|w B|!end", Traits{}, true},
		{"second read of the table and end", "begin|r A|!r B|end", "begin|w B|!end", Traits{}, false},
		{"read after write may take the snapshot", "begin|w A|!r A|r B|end", "begin|w B|!end", Traits{}, false},
		{"first read, write outside a transaction", "begin|!r A|r B|end", "!w B", Traits{}, false},
		{"first read, end of what it does not touch", "begin|!r A|end", "begin|w B|!end", Traits{}, true},
		{"begin and end", "!begin|r B|end", "begin|w B|!end", Traits{}, true},
		{"begin with snapshot and end", "!snapshot|r B|end", "begin|w B|!end", Traits{}, false},
		{"snapshot at begin", "!begin|r B|end", "begin|w B|!end", atBegin, false},
		{"snapshot at begin, first read, end", "begin|!r A|r B|end", "begin|w B|!end", atBegin, true},
		{"begin and write", "!begin|r B|end", "begin|!w B|end", atBegin, true},
		{"begin and write, certified", "!begin|r B|end", "begin|!w B|end", ssi, true},
		{"write and end", "begin|!w A|w B|end", "begin|w B|!end", Traits{}, false},
		{"two ends", "begin|w A|!end", "begin|r A|!end", Traits{}, false},
		{"end of a reader, write", "begin|r A|!end", "begin|!w A|end", locking, false},
		{"undo lets go of locks", "begin|w A|!undo|end", "begin|!w A|end", Traits{}, false},
		{"after an undo the transaction goes on", "begin|w A|undo|!r B|end", "begin|w A|!end", Traits{}, false},
		{"local", "begin|!set|w A|end", "begin|!w A|end", ssi, true},
		{"local and unknown", "begin|!set", "!ddl", Traits{}, false},
		{"unknown", "!r A", "!call", Traits{}, false},
		{"transaction with something unknown", "begin|!w A|call|end", "begin|!w B|end", Traits{}, false},
		{"begin in a transaction", "begin|w A|!begin", "!r B", Traits{}, false},
		{"several statements in a step", "!begin; r A; end", "!w A", Traits{}, false},
		{"several statements, nothing in common", "!begin; r A; end", "!w B", Traits{}, true},
		{"end lets another session go on that writes what is read", "begin|r A|!r C|end", "begin|w A|!end", Traits{}, true},
		{"empty step", "!;", "!w B", Traits{}, false},
	}
	for _, test := range tests {
		s := &Spec{}
		var marked []*Step
		for i, text := range []string{test.one, test.two} {
			session := &Session{}
			for j, sql := range strings.Split(text, "|") {
				sql, mark := strings.CutPrefix(sql, "!")
				st := &Step{SQL: sql, Session: i, Index: j}
				session.Steps = append(session.Steps, st)
				if mark {
					marked = append(marked, st)
				}
			}
			s.Sessions = append(s.Sessions, session)
		}
		independent := Independence(s, toy, test.traits)
		for _, pair := range [][2]*Step{{marked[0], marked[1]}, {marked[1], marked[0]}} {
			if got := independent(pair[0], pair[1]); got != test.independent {
				t.Errorf("%s: %s, %s: independent %v, want %v", test.name, test.one, test.two, got, test.independent)
			}
		}
	}
}

// TestIndependenceOfSetup: a session's setup may begin the transaction.
func TestIndependenceOfSetup(t *testing.T) {
	build := func(setup string) bool {
		s := mustParse(t, "session s setup {"+setup+"} step a {w A} step b {end} session u step c {r B} step d {r A}")
		return Independence(s, toy, Traits{})(s.Step("a"), s.Step("c"))
	}
	if !build("begin") || !build("set") {
		t.Errorf("a write and a read of different tables by unconnected transactions depend on each other")
	}
	s := mustParse(t, "session s setup {begin} step a {w A} step b {end} session u setup {begin} step c {r B} step d {r A}")
	if in := Independence(s, toy, Traits{}); !in(s.Step("a"), s.Step("c")) || in(s.Step("b"), s.Step("c")) || in(s.Step("a"), s.Step("b")) {
		t.Errorf("a transaction that the setup began is not followed")
	}
}

// TestIndependenceOfWaiting: the end of u lets v go on, whose second statement writes what s reads.
func TestIndependenceOfWaiting(t *testing.T) {
	const start = "session s step a {r A} step b {r A} step c {r C} session u step d {begin} step e {w A} step f {end} session v step g {w A} "
	s := mustParse(t, start+"step h {w C}")
	if Independence(s, toy, Traits{})(s.Step("c"), s.Step("f")) {
		t.Errorf("a read and the end that lets its writer go on are independent")
	}
	s = mustParse(t, start+"step h {w D}")
	if in := Independence(s, toy, Traits{}); in(s.Step("a"), s.Step("f")) || !in(s.Step("c"), s.Step("f")) {
		t.Errorf("c alone is a transaction without anything in common with the others")
	}
}

// TestPrunedCount: what the relation saves for two transfers and a report over two tables.
func TestPrunedCount(t *testing.T) {
	s := mustParse(t, `session s step a {begin} step b {r A} step c {w B} step d {end}
session u step e {begin} step f {r B} step g {w A} step h {end}`)
	got := len(orders(s.Orders(Mode{Kind: KindAll}, Choice{Independent: Independence(s, toy, Traits{})})))
	if all := s.Interleavings().Int64(); got >= int(all)/2 || got < 6 {
		t.Errorf("%d of %d interleavings are run", got, all)
	}
}
