package replay

import (
	"testing"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
)

// read is the answer of a read of one number.
func read(n string) []trace.Result {
	rows := [][]trace.Value{{{Text: n}}}
	var d trace.Digest
	d.Add(rows[0])
	return []trace.Result{{Count: 1, Digest: d.String(), Rows: rows}}
}

// TestRunAsksAgain replays plain reads that overlapped commits: whatever the times say, the answer tells which of these they saw. A read sees nothing that
// began when it had ended, and one that has effects is not repeated.
func TestRunAsksAgain(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		p.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
		p.do("CREATE SEQUENCE s")
		next := "SELECT nextval('s')"
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			next = "SELECT NEXTVAL(s)"
		}
		const sql = "SELECT n FROM t WHERE id = 1"
		commits := []said{{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 1, sql: "UPDATE t SET n = 1 WHERE id = 1", start: 3, end: 4}}
		commit := said{session: 1, sql: "COMMIT", start: 6, end: 10}
		for _, test := range []struct {
			name        string
			level       string
			reads       []said
			asked, same int
		}{
			{"began before the commit, and saw it", "", []said{commit, {session: 2, sql: sql, start: 5, end: 12, results: read("1")}}, 1, 4},
			{"near miss: did not see it", "", []said{commit, {session: 2, sql: sql, start: 5, end: 12, results: read("0")}}, 0, 4},
			{"ended before the commit, and saw it", "", []said{{session: 2, sql: sql, start: 7, end: 8, results: read("1")}, commit}, 1, 4},
			{"began after it, and did not see it", "", []said{commit, {session: 2, sql: sql, start: 7, end: 12, results: read("0")}}, 0, 4},
			{"saw the first of two", "", []said{commit, {session: 3, sql: "UPDATE t SET n = 2 WHERE id = 1", start: 11, end: 14}, {session: 2, sql: sql, start: 5, end: 15, results: read("1")}}, 1, 5},
			{"saw the second of two", "", []said{commit, {session: 3, sql: "UPDATE t SET n = 2 WHERE id = 1", start: 11, end: 14}, {session: 2, sql: sql, start: 5, end: 15, results: read("2")}}, 1, 5},
			{"saw none of this", "", []said{commit, {session: 2, sql: sql, start: 5, end: 12, results: read("7")}}, 1, 3},
			{"saw what came later", "", []said{commit, {session: 2, sql: sql, start: 5, end: 12, results: read("2")}, {session: 3, sql: "UPDATE t SET n = 2 WHERE id = 1", start: 13, end: 14}}, 1, 4},
			{"overlapped a write of another table", "", []said{commit, {session: 3, sql: "DELETE FROM u", start: 12, end: 14}, {session: 2, sql: sql, start: 11, end: 15, results: read("7")}}, 0, 4},
			{"has effects", "", []said{commit, {session: 2, sql: next, start: 5, end: 12, results: read("9")}}, 0, 3},
			{"within a transaction", product.ReadCommitted, []said{{session: 2, sql: "BEGIN", start: 1, end: 2}, commit, {session: 2, sql: sql, start: 5, end: 12, results: read("1")}, {session: 2, sql: "COMMIT", start: 13, end: 14}}, 1, 6},
			{"within one that sees what its first statement sees", "repeatable read", []said{{session: 2, sql: "BEGIN", start: 1, end: 2}, commit, {session: 2, sql: sql, start: 5, end: 12, results: read("1")}, {session: 2, sql: "COMMIT", start: 13, end: 14}}, 0, 5},
		} {
			p.do("DELETE FROM t")
			p.do("INSERT INTO t VALUES (1, 0)")
			p.do("DROP TABLE IF EXISTS u")
			p.do("CREATE TABLE u (n int)")
			p.config.Level = test.level
			r := p.run(append(append([]said(nil), commits...), test.reads...))
			// A read beside the COMMIT may have found on its own what it is to find: then nobody asks again.
			lucky := r.Asked < test.asked && r.Divergence.Same == r.Statements
			if r.Asked != test.asked && !lucky || r.Divergence.Same != test.same || r.Divergence.Compared != len(commits)+len(test.reads) || r.Statements != len(commits)+len(test.reads) {
				t.Errorf("%s: asked again %d, want %d; same answers %d, want %d: %+v", test.name, r.Asked, test.asked, r.Divergence.Same, test.same, r.Divergence.First)
			}
		}
		if got := string(p.do(next)[0][0]); got != "2" {
			t.Errorf("the sequence is at %s, want 2: its reader was sent once", got)
		}
	})
}

// TestAsksWatched: a proxy that watches would see what the application did not do, if a read within a transaction came twice.
func TestAsksWatched(t *testing.T) {
	c := Config{Order: OrderCommit, Side: engine.Target{Host: "127.0.0.1", Port: 1}, Target: engine.Target{Host: "127.0.0.1", Port: 2}}
	c.Backend.Product = product.Of("postgres")
	p := newPreparer(&Config{Describe: postgres.Describe, Backend: engine.Descriptor{Product: product.Of("postgres"), Protocol: engine.ProtocolPostgres}})
	step := func(before answer.State) *Step {
		s := &Step{Statement: &trace.Statement{SQL: "SELECT n FROM t", Before: before, After: before, Results: read("1")}}
		p.prepare(s)
		return s
	}
	if c.asks(step(answer.Open)) || !c.asks(step(answer.Idle)) {
		t.Error("through a proxy only a read outside of transactions is asked again")
	}
	if c.Target = c.Side; !c.asks(step(answer.Open)) {
		t.Error("without one, a read within a transaction is, too")
	}
	if c.Order = OrderOff; c.asks(step(answer.Idle)) {
		t.Error("an order that nobody keeps needs no reads that are asked again")
	}
}
