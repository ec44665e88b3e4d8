package isolation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/oracle"
)

// autocommit writes a history of transactions of one statement each: "s1 A r x@0" is a read of request A in session 1. Other lines stay.
func autocommit(lines string) string {
	var b strings.Builder
	for i, line := range strings.FieldsFunc(lines, func(r rune) bool { return r == ';' || r == '\n' }) {
		f := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(f) < 3 || !strings.HasPrefix(f[0], "s") || f[1] == "session" || strings.HasPrefix(f[1], "t") {
			fmt.Fprintln(&b, line)
			continue
		}
		request := ""
		if f[1] != "-" {
			request = " request " + f[1]
		}
		fmt.Fprintf(&b, "%s t%d begin \"read committed\" implicit\nt%d %s%s\nt%d commit\n", f[0], i+1, i+1, f[2], request, i+1)
	}
	return b.String()
}

// TestRequests has for each rule of lost updates between requests a history that shows one, and near misses.
func TestRequests(t *testing.T) {
	const (
		reads  = "s1 A r x@0; s2 B r x@0; " // t1 and t2
		mine   = " equal id=1 set stock=99"
		fromT1 = mine + " derived stock:x@0:1.1:plus:-1:100"
		fromT2 = mine + " derived stock:x@0:2.1:plus:-1:100"
		jobs   = "s1 A r x@0; s2 B r x@0; " // WHERE owner IS NULL
		his    = "s2 B w x 0>1 equal id=1 set owner=b derived owner:x@0:2.1:asked::"
		claims = " equal id=1 set owner=a derived owner:x@0:1.1:asked::"
		lost   = "G-single-request lost update between requests "
	)
	for _, tt := range []struct{ name, text, want string }{
		{"counter", reads + "s2 B w x 0>1" + fromT2 + "; s1 A w x 1>2" + fromT1, lost + "[1 3 4]"},
		{"one after the other", "s2 B r x@0; s2 B w x 0>1 set stock=99 derived stock:x@0:1.1:plus:-1:100; s1 A r x@1; s1 A w x 1>2 set stock=98 derived stock:x@1:3.1:plus:-1:99", ""},
		{"another session of the same request", reads + "s2 B w x 0>1" + fromT2 + "; s3 A w x 1>2" + fromT1, lost + "[1 3 4]"},
		{"the other one has no request", "s1 A r x@0; s2 - w x 0>1 set stock=7; s1 A w x 1>2" + fromT1, lost + "[1 2 3]"},
		{"the other one computes", "s1 A r x@0; s2 - inc x 0>1 computed stock; s1 A w x 1>2" + fromT1, lost + "[1 2 3]"},
		{"the other write is the request's own", "s1 A r x@0; s2 A w x 0>1 set stock=7; s1 A w x 1>2" + fromT1, ""},
		{"the value does not come from the read", reads + "s2 B w x 0>1 set stock=99; s1 A w x 1>2 set stock=99", ""},
		{"the request computes in the server", reads + "s2 B inc x 0>1 computed stock; s1 A inc x 1>2 computed stock", ""},
		{"a check that may be stale", reads + "s2 B inc x 0>1 computed stock derived stock:x@0:2.1:current::3; s1 A inc x 1>2 computed stock derived stock:x@0:1.1:current::3", "unknown: " + lost + "[1 3 4]"},
		{"a check that may be stale, one after the other", "s2 B r x@0; s2 B inc x 0>1 computed stock derived stock:x@0:1.1:current::3; s1 A r x@1; s1 A inc x 1>2 computed stock derived stock:x@1:3.1:current::1", ""},
		{"a check that may be stale, of another column", "s1 A r x@0; s2 B w x 0>1 set name=new; s1 A inc x 1>2 computed stock derived stock:x@0:1.1:current::3", ""},
		{"a check that may be stale, with a version column", "s1 A r x@0; s2 B inc x 0>1 computed stock set version=2; s1 A inc x 1>2 computed stock equal version=1 derived stock:x@0:1.1:current::3", ""},
		{"a check that may be stale, in the same transaction", "s1 t1 begin; t1 lock x@0 request A; t1 inc x 0>1 request A computed stock derived stock:x@0:1.1:current::3; t1 commit; s2 B inc x 1>2 computed stock", ""},
		{"a check that may be stale, and the other one's own", "s1 A r x@0; s2 A inc x 0>1 computed stock; s1 A inc x 1>2 computed stock derived stock:x@0:1.1:current::3", ""},
		{"another column", "s1 A r x@0; s2 B w x 0>1 set name=new; s1 A w x 1>2" + fromT1, ""},
		{"another row", "s1 A r x@0; s2 B w y 0>1 set stock=7; s1 A w x 0>1" + fromT1, ""},
		{"all columns written back", reads + "s2 B w x 0>1 set name=a set stock=99 derived name:x@0:2.1:copy::a derived stock:x@0:2.1:plus:-1:100; " +
			"s1 A w x 1>2 set name=b set stock=100 derived stock:x@0:1.1:copy::100", lost + "[1 3 4]"},
		{"only the columns written back meet", reads + "s2 B w x 0>1 set name=a set stock=99 derived name:x@0:2.1:copy::a derived stock:x@0:2.1:plus:-1:100; " +
			"s1 A w x 1>2 set name=a computed stock derived name:x@0:1.1:copy::a", ""},
		{"the value that was there before", "s1 A r x@0; s2 - w x 0>1 set stock=100; s1 A w x 1>2 set stock=100 derived stock:x@0:1.1:copy::100", ""},
		{"version column checked", "s1 A r x@0; s2 B w x 0>1 set stock=99 set version=2; s1 A w x 1>2" + fromT1 + " equal version=1", ""},
		{"old value checked", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 A w x 1>2" + fromT1 + " equal stock=100", ""},
		{"checked in another way", "s1 A r x@0; s2 B w x 0>1 set stock=50 set used=t; s1 A w x 1>2" + fromT1 + " checked used", ""},
		{"a range is no check", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 A w x 1>2" + fromT1 + " range stock", lost + "[1 2 3]"},
		{"a column that the other one left is no check", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 A w x 1>2" + fromT1 + " equal version=1", lost + "[1 2 3]"},
		{"locked in the transaction of the write", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 t9 begin; t9 lock x@1 request A; t9 w x 1>2 request A" + fromT1 + "; t9 commit", lost + "[1 2 9]"},
		{"locked, and read with the lock", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 t9 begin; t9 lock x@1 request A; t9 w x 1>2 request A" + mine + " derived stock:x@1:9.1:plus:49:50; t9 commit", ""},
		{"locked, and not known which read", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 t9 begin; t9 lock x@1 request A; t9 w x 1>2 request A" + mine +
			" derived stock:x@1:9.1:plus:49:50 derived stock:x@0:1.1:::100; t9 commit", "unknown: " + lost + "[1 2 9]"},
		{"locked before the other one writes", "s1 A r x@0; s1 t9 begin; t9 lock x@0 request A; t9 w x 0>1 request A" + fromT1 + "; t9 commit; s2 B w x 1>2 set stock=50", ""},
		{"locked in an earlier transaction only", "s1 A lock x@0; s2 B w x 0>1 set stock=50; s1 A w x 1>2" + fromT1, lost + "[1 2 3]"},
		{"another row locked", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 t9 begin; t9 lock y@0 request A; t9 w x 1>2 request A" + fromT1 + "; t9 commit", lost + "[1 2 9]"},
		{"the other one is rolled back", "s1 A r x@0; s2 t9 begin; t9 w x 0>1 request B set stock=5; t9 abort; s1 A w x 0>2" + fromT1, ""},
		{"the write is rolled back", "s1 A r x@0; s2 B w x 0>1 set stock=50; s1 t9 begin; t9 w x 1>2 request A" + fromT1 + "; t9 abort", ""},
		{"the other one ends late", "s1 A r x@0; s2 t9 begin; t9 w x 0>1 request B set stock=5; s1 A w x 1>2" + fromT1 + "; t9 commit", lost + "[1 4 9]"},
		{"the read ends late", "s1 t1 begin; t1 r x@0 request A; s2 B w x 0>1 set stock=5; s3 t9 begin; t9 w x 1>2 request A" + fromT1 + "; t9 commit; t1 commit", lost + "[1 3 9]"},
		{"within one transaction it is another anomaly", "s1 t1 begin; t1 r x@0 request A; s2 B w x 0>1 set stock=5; t1 w x 1>2 request A" + fromT1 + "; t1 commit", "G-single lost update [1 3]"},
		{"requests mixed in one transaction", "s1 t1 begin; t1 r x@0 request A; t1 r y@0 request C; t1 commit; s2 B w x 0>1 set stock=5; s1 A w x 1>2" + fromT1, ""},
		{"a soft delete's column, NULL again", "s1 A r x@0; s2 B w x 0>1 isnull gone set stock=50 null gone; s1 A w x 1>2" + fromT1 + " isnull gone null gone derived gone:x@0:1.1:::", lost + "[1 2 3]"},
		{"a soft delete's column, NULL again, read", "s1 A r x@0; s2 B r x@0; s2 B w x 0>1 set stock=50 null gone derived gone:x@0:2.1:::; s1 A w x 1>2" + fromT1 + " isnull gone null gone", lost + "[1 3 4]"},
		{"a soft delete's column, and deleted", "s1 A r x@0; s2 B w x 0>1 isnull gone set stock=50 set gone=now; s1 A w x 1>2" + fromT1 + " isnull gone null gone", ""},
		{"a soft delete's column, deleted and not checked", "s1 A r x@0; s2 B w x 0>1 isnull gone set gone=now; s1 A w x 1>2 null gone derived gone:x@0:1.1:::", "unknown: " + lost + "[1 2 3]"},
		{"a column that may have been NULL", "s1 A r x@0; s2 B w x 0>1 null note; s1 A w x 1>2 null note derived note:x@0:1.1:::", ""},
		{"a column that was not NULL", "s1 A r x@0; s2 B w x 0>1 null note; s1 A w x 1>2 set note=ab derived note:x@0:1.1:prefix:b:a", lost + "[1 2 3]"},
		{"columns of the other one not known", "s1 A r x@0; s2 B w x 0>1; s1 A w x 1>2" + fromT1, "unknown: " + lost + "[1 2 3]"},
		{"no relation", "s1 A r x@0; s2 B w x 0>1 set stock=5; s1 A w x 1>2 set stock=x derived stock:x@0:1.1:::100", "unknown: " + lost + "[1 2 3]"},
		{"no relation, checked", "s1 A r x@0; s2 B w x 0>1 set stock=5; s1 A w x 1>2 set stock=x equal stock=100 derived stock:x@0:1.1:::100", ""},
		{"nothing left to change", reads + "s2 B w x 0>1" + fromT2 + "; s1 A match x@1" + fromT1, lost + "[1 3 4]"},
		{"nothing left to change, checked", reads + "s2 B w x 0>1" + fromT2 + "; s1 A match x@1" + fromT1 + " equal stock=100", ""},
		{"nothing to change from the beginning", "s1 A r x@1; s1 A match x@1 set stock=100 derived stock:x@1:1.1:copy::100; s2 B w x 1>2 set stock=7", ""},
		{"a claim", jobs + his + "; s1 A w x 1>2" + claims, lost + "[1 3 4]"},
		{"a claim, by the same value", jobs + "s2 B w x 0>1 equal id=1 set owner=a; s1 A w x 1>2" + claims, lost + "[1 3 4]"},
		{"a claim, nothing left to change", jobs + "s2 B w x 0>1 equal id=1 set owner=a; s1 A match x@1" + claims, lost + "[1 3 4]"},
		{"a claim, one after the other", "s2 B r x@0; s2 B w x 0>1 set owner=b; s1 A r x@1; s1 A w x 1>2 set owner=a derived owner:x@1:3.1:asked::b", ""},
		{"a claim that is checked", jobs + his + "; s1 A w x 1>2" + claims + " checked owner", ""},
		{"a claim with a version column", jobs + his + " set version=2; s1 A w x 1>2" + claims + " equal version=1", ""},
		{"a claim, locked", jobs + his + "; s1 t9 begin; t9 lock x@1 request A; t9 w x 1>2 request A" + claims + "; t9 commit", lost + "[1 3 9]"},
		{"a claim, locked and asked again", jobs + his + "; s1 t9 begin; t9 lock x@1 request A; t9 w x 1>2 request A equal id=1 set owner=a derived owner:x@1:9.1:asked::; t9 commit", ""},
		{"a claim, given back before", jobs + his + "; s2 B w x 1>2 computed owner; s1 A w x 2>3" + claims, "unknown: " + lost + "[1 3 5]"},
		{"a claim, then another column", jobs + his + "; s2 B w x 1>2 set done=1; s1 A w x 2>3" + claims, lost + "[1 3 5]"},
		{"a claim, nothing known of the one behind", jobs + his + "; s2 B w x 1>2; s1 A w x 2>3" + claims, "unknown: " + lost + "[1 3 5]"},
		{"a claim, taken from nobody", jobs + "s2 B w x 0>1 equal id=1 computed owner; s1 A w x 1>2" + claims, "unknown: " + lost + "[1 3 4]"},
		{"a claim, another column meanwhile", jobs + "s2 B w x 0>1 equal id=1 set note=b; s1 A w x 1>2" + claims, ""},
		{"without keys", "s1 A r _@a; s2 B w _ a>b set stock=5; s1 A w _ b>c set stock=99 derived stock:_@a:1.1:plus:-1:100", lost + "[1 2 3]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events := parse(t, autocommit(tt.text))
			found, c := run(Options{Possible: true}, events)
			if got := briefs(found); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			possible := strings.HasPrefix(tt.want, "unknown")
			if quiet, d := run(Options{}, events); (len(quiet) > 0) != (tt.want != "" && !possible) || (d.Coverage().Possible == 1) != possible {
				t.Errorf("without Possible: %q, %+v", briefs(quiet), d.Coverage())
			}
			if alone, d := run(Options{Transactions: true}, events); strings.Contains(briefs(alone), "requests") || d.Coverage().Requests != 0 {
				t.Errorf("transactions alone: %q", briefs(alone))
			}
			for i := range found {
				if f := &found[i]; strings.Contains(tt.want, "requests") && (f.Promised || f.PreventedBy != "" || f.Edges[2].Kind != oracle.EdgeRequest || len(f.Remedies) == 0) {
					t.Errorf("%+v", f)
				}
			}
			if _, ok := c.requests.by["A"]; !ok && c.Kept() > 0 {
				t.Error("the request is not kept")
			}
		})
	}
}

// many are reads of the rows x0, x1 and so on by one statement.
func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "r x%d@0 ", i)
	}
	return b.String()
}

// TestApart: rows that a session reads outside of transactions and writes later are counted where no request is known.
func TestApart(t *testing.T) {
	for text, want := range map[string]int{
		"s1 - r x@0; s1 - w x 0>1": 1,
		"s1 - r x@0; s1 - r y@0; s1 - w x 0>1; s1 - w y 0>1; s1 - w y 1>2": 2,
		"s1 - r x@0; s2 - w x 0>1": 0,
		// The last 32 rows that a statement read are remembered.
		"s1 - " + many(33) + "; s1 - w x1 0>1": 1,
		"s1 - " + many(33) + "; s1 - w x0 0>1": 0,
		// Checks, and then makes what it had not found.
		`s1 - all b "(= number room 1)"; s1 - i b.a >1 image "room 1"; s1 - i b.c >1 image "room 1"`:                                 1,
		`s1 - all b "(= number room 1)"; s1 - all b "(= number room 1)"; s1 - i b.a >1 image "room 1"; s1 - i b.c >1 image "room 1"`: 1,
		`s1 - all b "(= number room 1)"; s1 - i b.a >1 image "room 2"`:                                                               0,
		`s1 - all b "(= number room 1)"; s2 - i b.a >1 image "room 1"`:                                                               0,
		`s1 A all b "(= number room 1)"; s1 A i b.a >1 image "room 1"`:                                                               0,
		`s1 - r b.x@0 all b "(= number room 1)"; s1 - i b.a >1 image "room 1"`:                                                       0,
		`s1 - all b "(> number room 1)"; s1 - i b.a >1 image "room 2"`:                                                               0,
		`s1 t1 begin; t1 all b "(= number room 1)"; t1 i b.a >1 image "room 1"; t1 commit`:                                           0,
		`s1 - all b "(= number room 1)"; s1 t9 begin; t9 i b.a >1 image "room 1"; t9 abort`:                                          0,
		"s1 A r x@0; s1 A w x 0>1":                                         0,
		"s1 t1 begin; t1 r x@0; t1 commit; s1 - w x 0>1":                   0,
		"s1 - r x@0; s1 t9 begin; t9 w x 0>1; t9 commit":                   1,
		"s1 - r x@0; s1 close; s1 session postgres \"15.4\"; s1 - w x 0>1": 0,
	} {
		_, c := run(Options{}, parse(t, autocommit(text)))
		got := c.Coverage()
		if got.Apart != want {
			t.Errorf("%s: %d rows, want %d", text, got.Apart, want)
		}
		line := fmt.Sprintf("%d rows read outside of a transaction", want)
		if want == 1 {
			line = "1 row read outside of a transaction"
		}
		if strings.Contains(got.String(), line) != (want > 0) {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestRequestsForgotten: what is kept of requests is bounded by the transactions that are kept.
func TestRequestsForgotten(t *testing.T) {
	c := New(Options{Keep: 10})
	for i := range 2000 {
		text := strings.NewReplacer("N", fmt.Sprint(i), "T1", fmt.Sprint(2*i+1), "T2", fmt.Sprint(2*i+2)).Replace(
			"s1 tT1 begin implicit; tT1 r xN@0 request RN; tT1 commit; s1 tT2 begin implicit; tT2 w xN 0>1 request RN set n=1 derived n:xN@0:T1.1:plus:1:0; tT2 commit")
		for _, e := range parse(t, text)[4:] {
			if found := c.Add(&e); len(found) > 0 {
				t.Fatalf("%s", briefs(found))
			}
		}
	}
	if len(c.requests.by) > 1000 || c.Coverage().Requests != 2000 {
		t.Errorf("%d requests are kept, %d were counted", len(c.requests.by), c.Coverage().Requests)
	}
}

// TestSerialRequests: requests that run one after the other never lose an update, whatever they read and write.
func TestSerialRequests(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 13))
		var events []history.Event
		version, value := map[string]int{}, map[string]int{}
		txn := 0
		for request := range 1 + r.IntN(6) {
			seen := map[string][3]int{} // by row: transaction, version, value
			for range r.IntN(8) {
				txn++
				row := string(rune('x' + r.IntN(3)))
				session := 1 + r.IntN(4)
				line := fmt.Sprintf("t%d r %s@%d", txn, row, version[row])
				if was, ok := seen[row]; ok && r.IntN(2) == 0 {
					n := r.IntN(5)
					line = fmt.Sprintf("t%d w %s %d>%d set n=%d derived n:%s@%d:%d.1:plus:%d:%d", txn, row, version[row], version[row]+1, was[2]+n, row, was[1], was[0], n, was[2])
					version[row]++
					value[row] = was[2] + n
					delete(seen, row) // the recorder forgets what the request has overwritten
				} else {
					seen[row] = [3]int{txn, version[row], value[row]}
				}
				if r.IntN(9) > 0 {
					line += fmt.Sprintf(" request R%d", request)
				}
				events = append(events, parse(t, fmt.Sprintf("s1 session postgres 15; s%d t%d begin implicit; %s; t%d commit", session, txn, line, txn))[1:]...)
			}
		}
		if found, _ := run(Options{Possible: true}, events); len(found) > 0 {
			t.Fatalf("seed %d: %s", seed, briefs(found))
		}
	}
}
