package troc_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/answer"
	"wirecheck/history"
	"wirecheck/oracle"
	"wirecheck/oracle/isolation"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/serial"
	"wirecheck/oracle/troc"
	"wirecheck/oracle/wss"
	"wirecheck/product"
)

// observed makes of a text that played reads what the proxy would have recorded of it. Behind ~ in a line stands what the statement read and
// wrote, as history.ParseText reads it: "A: UPDATE t SET b = 5 WHERE a = 1 -> 1 ~ w 1 0>1". A statement without ~ is not recorded. Names of
// sessions are A, B and so on.
func observed(t *testing.T, name, level, text string) []history.Event {
	t.Helper()
	var b strings.Builder
	txns, open := 0, map[int]int{}
	seen := map[int]bool{}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		who, what, _ := strings.Cut(strings.TrimSpace(line), ": ")
		if strings.HasPrefix(who, "final") {
			continue
		}
		session := int(who[0]-'A') + 1
		if !seen[session] {
			fmt.Fprintf(&b, "s%d session %s 0\n", session, name)
			seen[session] = true
		}
		what, accesses, recorded := strings.Cut(what, " ~ ")
		sql, _, _ := strings.Cut(what, " -> ")
		word, _, _ := strings.Cut(sql, " ")
		switch {
		case word == "BEGIN", word == "START":
			txns++
			open[session] = txns
			fmt.Fprintf(&b, "s%d t%d begin %q\n", session, txns, level)
		case sql == "COMMIT", sql == "ROLLBACK":
			outcome := map[string]string{"COMMIT": "commit", "ROLLBACK": "abort"}[sql]
			fmt.Fprintf(&b, "t%d %s\n", open[session], outcome)
			delete(open, session)
		case recorded && open[session] > 0:
			fmt.Fprintf(&b, "t%d %s -- %s\n", open[session], accesses, sql)
		case recorded:
			txns++
			fmt.Fprintf(&b, "s%d t%d begin %q implicit\nt%d %s -- %s\nt%d commit\n", session, txns, level, txns, accesses, sql, txns)
		}
	}
	events, err := history.ParseText(strings.NewReader(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	return events
}

// isolationSays judges events, and says it as short does.
func isolationSays(events []history.Event) string {
	var out []string
	c := isolation.New(isolation.Options{})
	for i := range events {
		for _, f := range c.Add(&events[i]) {
			out = append(out, string(f.Kind)+": "+f.Title())
		}
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

// recorded is a stage whose first run of all steps brings what the history has. The serial oracle asks for that first: it executes the same
// schedule again, and leaves out what differs. The toy cannot run statements that overlap.
type recorded struct {
	*toy
	history *schedule.Schedule // nil: the oracle has it
}

func (r *recorded) Run(ctx context.Context, sessions []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	if again := r.history; again != nil {
		r.history = nil
		return again, nil
	}
	return r.toy.Run(ctx, sessions, orders)
}

// judged is what the oracles say of one history. Empty: nothing.
type judged struct{ isolation, wss, troc, txcheck, serial string }

// needsServer stands for an oracle that executes the schedule itself, with statements of its own and transactions that overlap. No table of
// answers can do that. testdata/corpus has these schedules for txcheck: savepoint-second, savepoint-behind, recheck-join, halves and the
// scenarios whose names begin with readonly. The corpus cannot have the near misses in which a server breaks its promise.
const needsServer = "needs a server"

// TestJudges hands hand-made histories to all oracles that judge without a server. Each history has a near miss beside it. The wss oracle
// compares writes and what they saw, so that plain reads say nothing to it.
func TestJudges(t *testing.T) {
	const (
		one   = "CREATE TABLE t (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 10), (2, 20), (3, 30)"
		pairs = "CREATE TABLE t (a INT PRIMARY KEY, b INT); CREATE TABLE u (a INT PRIMARY KEY, b INT); INSERT INTO t VALUES (1, 10); INSERT INTO u VALUES (1, 10)"

		second = `
			A: BEGIN
			A: SAVEPOINT p
			A: SELECT b FROM t WHERE a = 3 -> 30 ~ r 3@0
			A: ROLLBACK TO p ~ undo 1
			A: SAVEPOINT q
			A: SELECT b FROM t WHERE a = 1 -> 10 ~ r 1@0
			B: UPDATE t SET b = b + 5 WHERE a < 3 -> 2 ~ w 1 0>1 2 0>1
			A: ROLLBACK TO q ~ undo 3
			A: SELECT b FROM t WHERE a = 2 -> 25 ~ r 2@1
			A: COMMIT
			final: 1|15 2|25 3|30`
		behind = `
			A: BEGIN
			A: SELECT b FROM t WHERE a = 3 -> 30 ~ r 3@0
			A: SAVEPOINT q
			A: SELECT b FROM t WHERE a = 1 -> 10 ~ r 1@0
			B: UPDATE t SET b = b + 5 WHERE a < 3 -> 2 ~ w 1 0>1 2 0>1
			A: ROLLBACK TO q ~ undo 2
			A: SELECT b FROM t WHERE a = 2 -> 25 ~ r 2@1
			A: COMMIT
			final: 1|15 2|25 3|30`
		join = `
			B: BEGIN
			B: UPDATE t SET b = 11 WHERE a = 1 -> 1 ~ w t.1 0>1
			B: UPDATE u SET b = 11 WHERE a = 1 -> 1 ~ w u.1 0>1
			A: BEGIN
			%s
			A: COMMIT
			final: 1|11
			final u: 1|11`
		recheck = `B: COMMIT
			A@4: SELECT t.b, u.b FROM t JOIN u ON u.a = t.a WHERE t.a = 1 FOR UPDATE OF t -> 11|10 ~ lock t.1@1 , r u.1@0`
		halves = `B: COMMIT
			A: SELECT t.b, u.b FROM t JOIN u ON u.a = t.a WHERE t.a = 1 -> 11|10 ~ r t.1@1 u.1@0`
		readOnly = `
			A: START TRANSACTION READ ONLY
			A: SELECT b FROM t WHERE a = 1 -> 10 ~ r 1@0
			A: UPDATE t SET b = 11 WHERE a = 1 -> %s
			A: COMMIT
			B: UPDATE t SET b = 12 WHERE a = 2 -> 1 ~ w 2 0>1
			final: 1|%s 2|12 3|30`
		lost = `
			A: BEGIN
			A: SELECT b FROM t WHERE a = 1 -> 10 ~ r 1@0
			B: UPDATE t SET b = 15 WHERE a = 1 -> 1 ~ w 1 0>1
			A: UPDATE t SET b = 11 WHERE a = 1 -> 1 ~ w 1 1>2
			A: COMMIT
			final: 1|11 2|20 3|30`
	)
	const (
		result   = "violation: " + oracle.NameResult
		oneSide  = "violation: " + oracle.NameError
		unserial = "anomaly: " + oracle.NameSerial // of sessions as wholes: no level below SERIALIZABLE promises it
	)
	refused := func(code string, reason answer.Reason) string {
		return fmt.Sprintf(readOnly, "!"+code+" "+string(reason)+" ~ stmt error "+code, "10")
	}
	done := fmt.Sprintf(readOnly, "1 ~ w 1 0>1", "11")
	for _, test := range []struct {
		name, product, level, setup, text string
		want                              judged
	}{
		{"second savepoint", "mariadb", product.Snapshot, one, second, judged{txcheck: needsServer, serial: unserial}},
		{"savepoint behind the first statement", "mariadb", product.Snapshot, one, behind, judged{
			isolation: "violation: " + anomaly.ReadSkew, troc: result, txcheck: needsServer, serial: unserial,
		}},
		{"recheck of a join", "postgres", product.ReadCommitted, pairs, fmt.Sprintf(join, recheck), judged{
			isolation: "anomaly: " + anomaly.ReadSkew, txcheck: needsServer, serial: unserial,
		}},
		{"half of a transaction in one statement", "postgres", product.ReadCommitted, pairs, fmt.Sprintf(join, halves), judged{
			isolation: "violation: " + anomaly.Vanishes, troc: result, txcheck: needsServer, serial: unserial,
		}},
		{"READ ONLY, refused", "mariadb", product.RepeatableRead, one, refused("1792", answer.ReasonReadOnly), judged{txcheck: needsServer}},
		{"READ ONLY, refused with another error", "mariadb", product.RepeatableRead, one, refused("1690", answer.ReasonOther), judged{
			wss: oneSide + "; violation: " + oracle.NameFinalState, troc: oneSide, txcheck: needsServer, serial: unserial,
		}},
		// The isolation oracle does not look at READ ONLY. The server's refusal of each write alone leaves wss without a reference.
		{"READ ONLY, and done", "mariadb", product.RepeatableRead, one, done, judged{
			wss:  "unknown: each write alone gives what was observed, and saw what it sees in the serial schedule; the serial execution on this server differs from both",
			troc: "violation: " + oracle.NameWrite, txcheck: needsServer, serial: unserial,
		}},
		{"lost update at snapshot", "mariadb", product.Snapshot, one, lost, judged{
			isolation: "violation: " + anomaly.LostUpdate, troc: "violation: " + oracle.NameWrite, txcheck: needsServer, serial: unserial,
		}},
		{"lost update at REPEATABLE READ", "mariadb", product.RepeatableRead, one, lost, judged{
			isolation: "anomaly: " + anomaly.LostUpdate, txcheck: needsServer, serial: unserial,
		}},
	} {
		s := played(t, test.product, test.level, test.setup, test.text)
		said := func(v schedule.Verdict, err error) string {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			return short(v)
		}
		stage := func() *recorded { return &recorded{&toy{product: test.product}, s} }
		got := judged{txcheck: needsServer}
		got.isolation = isolationSays(observed(t, test.product, test.level, test.text))
		got.wss = said(wss.Check(t.Context(), s, stage(), wss.Options{}))
		got.troc = said(troc.Check(t.Context(), s, stage(), troc.Options{}))
		got.serial = said(serial.Check(t.Context(), s, stage(), serial.Options{Counters: map[string]bool{}}))
		if got != test.want {
			t.Errorf("%s:\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
	}
}
