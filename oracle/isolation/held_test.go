package isolation

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestRequestsHeld: a request that goes on when thousands of others have ended since is judged as before. What is too long ago is forgotten, and that is said.
func TestRequestsHeld(t *testing.T) {
	const (
		keep  = 200
		free  = `all booking "(= number room 1)"`
		check = "s1 A " + free + "; s2 B " + free + `; s2 B i booking.b >1 image "room 1"`
		book  = `; s1 A i booking.a >1 image "room 1"`
		read  = "s1 A r x@0; s2 B r x@0; s2 B w x 0>1 set n=4 derived n:x@0:2.1:plus:-1:5"
		write = "; s1 A w x 1>2 set n=4 derived n:x@0:1.1:plus:-1:5"
	)
	last := 0
	others := func(n int) string {
		var b strings.Builder
		for range n {
			last++
			fmt.Fprintf(&b, "; s3 N%d r other.x@0", last)
		}
		return b.String()
	}
	for _, tt := range []struct {
		name, text string
		apart      time.Duration // of transactions
		found      int
		resumed    int
	}{
		{"thousands between a check and a write", check + others(3*keep) + book, 0, 1, 0},
		{"thousands between a read and a write", read + others(3*keep) + write, 0, 1, 0},
		{"the same, slowly", read + others(3*keep) + write, 5 * time.Millisecond, 1, 0},
		{"more than are held", check + others(2*heldTimes*keep) + book, 0, 0, 1},
		{"longer than they are held", read + others(3*keep) + write, heldFor / keep, 0, 1},
		{"a part of the request", "s1 A r x@0; s2 B r x@0; s2 B w x 0>1 set n=4 derived n:x@0:2.1:plus:-1:5" + others(heldTimes*keep) + "; s1 A r y@0" + others(heldTimes*keep) + write, 0, 0, 1},
		{"a request that does not go on", check + others(2*heldTimes*keep), 0, 0, 0},
	} {
		events := parse(t, autocommit(tt.text))
		for i := range events {
			events[i].At = int64(i) * int64(tt.apart) / 3
		}
		found, c := run(Options{Keep: keep}, events)
		if v := c.Coverage(); len(found) != tt.found || v.Resumed != tt.resumed || Complete(c) != (tt.resumed == 0) || strings.Contains(v.String(), "went on when what it had read was forgotten") != (tt.resumed > 0) {
			t.Errorf("%s: found %s; %s", tt.name, briefs(found), v)
		}
	}
	none, c := run(Options{Keep: keep}, parse(t, autocommit("s1 - r x@0"+strings.Repeat("; s3 - r other.x@0", 3*keep))))
	if len(none) > 0 || c.Kept() > 2*keep+c.opts.sweepStep() {
		t.Errorf("without requests %d transactions are kept", c.Kept())
	}
}

// TestCrowded: a change that has more predicate reads beside it than are compared is counted.
func TestCrowded(t *testing.T) {
	for _, n := range []int{maxCompared - 10, maxCompared + 10} {
		text := "s9 t99990 begin; s1 t99991 begin; t99991 all booking \"(= number room 1)\"; t99991 commit"
		for range n {
			text += "; s2 - all booking \"(= number room 2)\""
		}
		text += `; t99990 i booking.b >1 image "room 1"; t99990 commit`
		_, c := run(Options{}, parse(t, autocommit(text)))
		if v := c.Coverage(); (v.Crowded > 0) != (n > maxCompared) || strings.Contains(v.String(), "so many others") != (n > maxCompared) {
			t.Errorf("%d reads: %s", n, v)
		}
	}
}

// TestRequestsInPart: a request of very many transactions, and a transaction of two requests, are counted.
func TestRequestsInPart(t *testing.T) {
	const both = "s1 t90001 begin; t90001 r x@0 request A; t90001 r y@0 request "
	for text, want := range map[string][2]int{
		"s1 A r x@0" + strings.Repeat("; s1 A r x@0", maxUnit-1): {0, 0},
		"s1 A r x@0" + strings.Repeat("; s1 A r x@0", maxUnit+9): {1, 0},
		both + "B; t90001 commit":                                {0, 1},
		both + "A; t90001 commit":                                {0, 0},
	} {
		_, c := run(Options{}, parse(t, autocommit(text)))
		v := c.Coverage()
		if v.Large != want[0] || v.Mixed != want[1] || strings.Contains(v.String(), "judged in part") != (want[0] > 0) || strings.Contains(v.String(), "of several requests") != (want[1] > 0) {
			t.Errorf("%.60s: %s", text, v)
		}
	}
}
