package isolation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/history"
)

// size counts what a checker holds besides transactions.
func (c *Checker) size() (versions, other int) {
	for _, tb := range c.tables {
		for r := range tb.all {
			versions += len(r.ordered) + len(r.floats)
			for _, v := range append(append([]*version{}, r.ordered...), r.floats...) {
				other += len(v.readers)
			}
		}
		versions += len(tb.byID)
		for _, v := range tb.byID {
			other += len(v.readers)
		}
	}
	return versions, other + len(c.tokens) + len(c.pending) + len(c.reported)
}

// TestEndlessStream: what is held after many events is no more than after some.
func TestEndlessStream(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 3))
		d := newToy(rng.IntN, 6, 12)
		c := New(Options{Keep: 50})
		for i := range 40_000 {
			d.step()
			for k := range d.out {
				c.Add(&d.out[k])
			}
			d.out = d.out[:0]
			if i%1000 != 0 {
				continue
			}
			if v, o := c.size(); v > 4000 || o > 20_000 || c.Kept() > 1500 {
				t.Fatalf("seed %d (keyed %v, asOf %v), after %d steps: %d transactions, %d versions, %d readers, tokens and the like", seed, d.keyed, d.asOf, i, c.Kept(), v, o)
			}
		}
	}
}

// TestOpenForever: one transaction that never ends holds back all others, up to the limit.
func TestOpenForever(t *testing.T) {
	c := New(Options{Keep: 10, MaxTxns: 500, Repeats: true})
	add := func(text string) int {
		n := 0
		for _, e := range parse(t, "s1 session postgres \"15\"\n"+text) {
			if e.Kind != history.EventSession {
				n += len(c.Add(&e))
			}
		}
		return n
	}
	add(`s9 t1 begin "read committed"; t1 r x@0`)
	found := 0
	for i := range 2000 {
		found += add(fmt.Sprintf(`s1 t%[1]d begin "read committed"; s2 t%[2]d begin "read committed"; t%[1]d r r%[1]d@0; t%[2]d r r%[1]d@0; t%[1]d w r%[1]d 0>1; t%[2]d w r%[1]d 1>2; t%[1]d commit; t%[2]d commit`, 2*i+2, 2*i+3))
		if c.Kept() > 502 {
			t.Fatalf("%d transactions kept", c.Kept())
		}
	}
	if found != 2000 {
		t.Errorf("%d findings, want 2000", found)
	}
	v := c.Coverage()
	if v.Forgotten == 0 || !strings.Contains(v.String(), "forgotten early (one stayed open too long)") {
		t.Errorf("the coverage does not tell: %s", v)
	}
}

// TestLargeTransactions: a client decides how many statements a transaction has, and so they count, ended or open, and not the transactions alone.
func TestLargeTransactions(t *testing.T) {
	const large = 4 * maxSilent
	for name, c := range map[string]*Checker{"": New(Options{}), "another stays open": New(Options{MaxTxns: 4000})} {
		add := func(e history.Event) { c.Add(&e) }
		add(history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres", Server: "15"})
		if name != "" {
			add(history.Event{Kind: history.EventSession, Session: 2, Engine: "postgres", Server: "15"})
			add(history.Event{Kind: history.EventBegin, Session: 2, Txn: 1_000_000})
		}
		for i := range 1000 {
			txn := uint64(i + 1)
			add(history.Event{Kind: history.EventBegin, Session: 1, Txn: txn})
			for n := range large / 100 {
				add(history.Event{Kind: history.EventStmt, Session: 1, Txn: txn, N: n + 1, Verb: "update", Coverage: history.CoverageExact})
			}
			add(history.Event{Kind: history.EventEnd, Session: 1, Txn: txn, Outcome: history.OutcomeAborted})
			if kept := c.Kept(); kept > 800 {
				t.Fatalf("%s: %d transactions of %d statements are kept", name, kept, large/100)
			}
		}
		add(history.Event{Kind: history.EventBegin, Session: 1, Txn: 2000})
		for n := range large {
			add(history.Event{Kind: history.EventStmt, Session: 1, Txn: 2000, N: n + 1, Verb: "select", Coverage: history.CoverageExact})
		}
		if n := len(c.open[2000].stmts); n > maxSilent {
			t.Errorf("%s: %d statements that read nothing are kept of an open transaction", name, n)
		}
	}
}

// TestBytes: what a client puts into statements counts by its size: texts, keys and images, ended or open.
func TestBytes(t *testing.T) {
	const most = 4 << 20
	text := strings.Repeat("x", 1<<20)
	for _, x := range []struct {
		name       string
		statements int // of each transaction
		event      history.Event
	}{
		{"texts of 1 MiB", 1, history.Event{SQL: "SELECT '" + text + "'"}},
		{"transactions of many texts", 100, history.Event{SQL: "UPDATE t SET v = '" + text + "'"}},
		{"keys", 3, history.Event{Accesses: []history.Access{{Op: history.OpRead, Row: history.Row{Table: "t", Key: text[:1<<16]}, Version: "1"}}}},
		{"images", 3, history.Event{Accesses: []history.Access{{Op: history.OpUpdate, Row: history.Row{Table: "t", Key: "1"}, Version: "1", Image: text[:1<<16], Was: text[:1<<16]}}}},
		{"conditions", 3, history.Event{Predicate: true, Reads: []history.PredicateRead{{Table: "t", Where: "a IN ('" + text[:1<<16] + "')"}}}},
	} {
		for _, another := range []bool{false, true} {
			c := New(Options{MaxBytes: most})
			c.Add(&history.Event{Kind: history.EventSession, Session: 1, Engine: "postgres", Server: "15"})
			c.Add(&history.Event{Kind: history.EventSession, Session: 2, Engine: "postgres", Server: "15"})
			if another {
				c.Add(&history.Event{Kind: history.EventBegin, Session: 2, Txn: 1_000_000})
			}
			for txn := range uint64(200) {
				c.Add(&history.Event{Kind: history.EventBegin, Session: 1, Txn: txn + 1})
				for n := range x.statements {
					ev := x.event
					ev.Kind, ev.Session, ev.Txn, ev.N, ev.Verb, ev.Coverage = history.EventStmt, 1, txn+1, n+1, "update", history.CoverageExact
					c.Add(&ev)
				}
				c.Add(&history.Event{Kind: history.EventEnd, Session: 1, Txn: txn + 1, Outcome: history.OutcomeCommitted})
				held := 0
				for _, t := range c.ended {
					for i := range t.stmts {
						held += len(t.stmts[i].sql)
					}
				}
				if held > most || c.endedSize > most || c.openSize > 2*most {
					t.Fatalf("%s, another stays open: %t: after %d transactions the checker holds %d bytes of texts, %d and %d by its estimate", x.name, another, txn+1, held, c.endedSize, c.openSize)
				}
			}
		}
	}
}

// TestOpenBytes: large open transactions are cut off; a small one beside them is not, and is judged.
func TestOpenBytes(t *testing.T) {
	c := New(Options{MaxBytes: 1 << 20})
	add := func(text string) (n int) {
		for _, e := range parse(t, "s1 session postgres \"15\"\n"+text) {
			if e.Kind != history.EventSession {
				n += len(c.Add(&e))
			}
		}
		return n
	}
	add(`s9 t9 begin "read committed"`)
	for n := range 1000 {
		c.Add(&history.Event{Kind: history.EventStmt, Session: 9, Txn: 9, N: n + 1, Verb: "update", SQL: strings.Repeat("x", 1<<14), Coverage: history.CoverageExact})
	}
	if n := len(c.open[9].stmts); n > 100 || c.Coverage().Partial != 1 {
		t.Errorf("%d statements are kept of a large transaction, %d are cut off", n, c.Coverage().Partial)
	}
	if add(`s1 t1 begin "read committed"; s2 t2 begin "read committed"; t1 r x@0; t2 r x@0; t1 w x 0>1; t2 w x 1>2; t1 commit; t2 commit`) != 1 || c.Coverage().Partial != 1 {
		t.Error("beside it, a lost update between small transactions is not found")
	}
}

// TestTooLarge: of a transaction with too many accesses the reads are not judged, since the one that makes up for a stale
// read may be among those left out.
func TestTooLarge(t *testing.T) {
	const text = two + `t2 r x@0; t2 r y@0; t2 r z@0; t1 w x 0>1; t1 commit; t2 lock x@1; t2 w x 1>2; t2 commit`
	for n := 1; n < 6; n++ {
		fs, c := run(Options{MaxAccesses: n}, parse(t, text))
		if len(fs) != 0 || n < 5 != (c.Coverage().Partial == 1) {
			t.Errorf("at most %d accesses: %s, %s", n, briefs(fs), c.Coverage())
		}
	}
}

// TestMaxFingerprints: findings beyond the limit are still reported, but no longer recognised.
func TestMaxFingerprints(t *testing.T) {
	text := ""
	for i := range 3 {
		text += fmt.Sprintf(`s1 t%[1]d begin; s2 t%[2]d begin; t%[1]d r a%[3]d.x@0; t%[2]d r a%[3]d.x@0; t%[1]d w a%[3]d.x 0>1; t%[2]d w a%[3]d.x 1>2; t%[1]d commit; t%[2]d commit
`, 2*i+1, 2*i+2, i)
	}
	fs, c := run(Options{MaxFingerprints: 2}, parse(t, text))
	if len(fs) != 3 || len(c.Summary()) != 2 || c.Coverage().Overflow != 1 {
		t.Errorf("%d findings, %d remembered, %d beyond", len(fs), len(c.Summary()), c.Coverage().Overflow)
	}
}
