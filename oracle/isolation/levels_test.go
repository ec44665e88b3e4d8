package isolation

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle/level"
)

// TestUnsure: whatever of the coverage may hide a dependency is a reason not to be sure of a level.
func TestUnsure(t *testing.T) {
	for _, test := range []struct {
		seen Coverage
		want string
	}{
		{Coverage{Exact: 3, Requests: 2}, ""},
		{Coverage{Untold: 1}, "1 transaction whose writes were not told before its session ended"},
		{Coverage{Stale: 2}, "2 reads older than the window"},
		{Coverage{Opaque: 1, Stale: 2}, "1 statement opaque"},
		{Coverage{Contradictions: map[string]int{twoPlaces: 3}}, "1 kind of contradictions in it"},
	} {
		c := New(Options{Levels: true})
		c.coverage = test.seen
		if got := Unsure(c); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.seen, got, test.want)
		}
	}
}

// TestAwaited: writes that are still to be told are counted until they are told, or the session ends without them.
func TestAwaited(t *testing.T) {
	const waits = "s1 session mariadb\ns1 t1 begin repeatable read\nt1 stmt\nt1 commit pending\n"
	for _, test := range []struct {
		then            string
		awaited, untold int
	}{{"", 1, 0}, {"t1 late 1 w x 0>1\n", 0, 0}, {"s1 close\n", 0, 1}} {
		events, err := history.ParseText(strings.NewReader(waits + test.then))
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{})
		for i := range events {
			c.Add(&events[i])
		}
		if v := c.Coverage(); v.Awaited != test.awaited || v.Untold != test.untold {
			t.Errorf("%q: %d awaited, %d untold", test.then, v.Awaited, v.Untold)
		}
	}
}

// TestMissedRow: no level is known to be satisfied where a statement did not find a row for which its condition holds, and that was committed long before.
func TestMissedRow(t *testing.T) {
	one := func(i int, text string) string {
		return fmt.Sprintf("s1 t%d begin serializable\nt%d %s\nt%d commit\n", i, i, text, i)
	}
	old := "s1 session postgres\n" + one(1, `i b.a >1 image "room 1"`) + one(2, "i c.x >1") + one(3, "i c.y >1")
	const asked, missed = `all b "(= number room 1)"`, "1 row missed by a statement that must have found it, unless a session that was not observed deleted it"
	for _, test := range []struct{ name, text, want string }{
		{"missed", old + one(4, asked), missed},
		{"found", old + one(4, "r b.a@1 "+asked), ""},
		{"another room", old + one(4, strings.Replace(asked, "1", "2", 1)), ""},
		{"not all that it found is named", old + one(4, strings.Replace(asked, "all", "where", 1)), ""},
		{"deleted meanwhile", old + one(4, "d b.a 1>2") + one(5, asked), ""},
		{"moved meanwhile", old + one(4, `w b.a 1>2 image "room 2"`) + one(5, asked), ""},
		{"its room is not known", strings.Replace(old, "room 1", "hour 1", 1) + one(4, asked), "1 predicate not compared with all older changes"},
	} {
		events, err := history.ParseText(strings.NewReader(test.text))
		if err != nil {
			t.Fatal(err)
		}
		c := New(Options{Levels: true})
		for i := range events {
			if e := &events[i]; len(e.Reads) > 0 {
				e.Reads[0].From, e.Reads[0].To = e.From, e.To
			}
			c.Add(&events[i])
		}
		if got := Unsure(c); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestLostEnd: of a transaction whose end was lost, whose outcome is not known, or that ended before it began, nobody knows what it was over before. So a read
// of what it replaced is not stale for certain.
func TestLostEnd(t *testing.T) {
	const writes = "s1 session postgres\ns1 t1 begin serializable\nt1 w x 0>1\n"
	const reads = "s3 session postgres\ns3 t3 begin serializable\nt3 r x@1\ns4 session postgres\ns4 t4 begin serializable\nt4 r x@0\nt4 commit\nt3 commit\n"
	for _, test := range []struct {
		name, end string
		to        uint64 // of the end; 0: as it is
		stale     bool
		contrary  int
	}{
		{"told", "t1 commit\n", 0, true, 0},
		{"lost", "s1 t2 begin serializable\n", 0, false, 0},
		{"unknown", "t1 unknown\n", 0, false, 0},
		{"before its begin", "t1 commit\n", 2, false, 1},
	} {
		events, err := history.ParseText(strings.NewReader(writes + test.end + reads))
		if err != nil {
			t.Fatal(test.name, err)
		}
		c := New(Options{Levels: true, Strict: true})
		var stale bool
		for i := range events {
			e := &events[i]
			if e.Kind == history.EventEnd && e.Txn == 1 && test.to != 0 {
				e.To = test.to
			}
			for _, f := range c.Add(e) {
				stale = stale || f.Class == "G-single-realtime"
			}
		}
		vs := Levels(c).Judge()
		if broken := vs[len(vs)-1].State == level.Broken; broken != test.stale || stale != test.stale {
			t.Errorf("%s: strict serializable %v, a finding %v, want %v", test.name, vs[len(vs)-1], stale, test.stale)
		}
		if got := c.Coverage().Contradictions[endBefore]; got != test.contrary {
			t.Errorf("%s: %d contradictions, want %d", test.name, got, test.contrary)
		}
	}
}
