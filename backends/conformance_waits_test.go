package backends_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// waitCase is one way in which a session waits for another.
type waitCase struct {
	name    string
	on      []string // products
	holder  string
	waiter  string
	kind    engine.WaitKind
	release string
	blocker bool // the watcher must say for whom
}

var (
	all      = append(slices.Clone(servers), embedded...)
	servers  = []string{"postgres", "mariadb", "mysql", "tidb"}
	embedded = []string{"sqlite"}
	innodb   = []string{"mariadb", "mysql"}
	family   = []string{"mariadb", "mysql", "tidb"}
	pg       = []string{"postgres"}
)

// waitCases are the waits that each product must show, and how.
var waitCases = []waitCase{
	{"row", all, "BEGIN; UPDATE t SET v = 11 WHERE id = 1", "BEGIN; UPDATE t SET v = 12 WHERE id = 1", engine.WaitRow, "COMMIT", true},
	{"row, delete", all, "BEGIN; DELETE FROM t WHERE id = 1", "BEGIN; UPDATE t SET v = 12 WHERE id = 1", engine.WaitRow, "ROLLBACK", true},
	{"row, autocommit", []string{"postgres", "mariadb", "mysql"}, "BEGIN; UPDATE t SET v = 11 WHERE id = 1", "DELETE FROM t WHERE v = 10", engine.WaitRow, "COMMIT", true},
	{"locking read", servers, "BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE", "BEGIN; SELECT * FROM t WHERE id = 1 FOR UPDATE", engine.WaitRow, "COMMIT", true},
	{"shared read", pg, "BEGIN; SELECT * FROM t WHERE id = 1 FOR SHARE", "BEGIN; UPDATE t SET v = 0 WHERE id = 1", engine.WaitRow, "COMMIT", true},
	{"shared read", innodb, "BEGIN; SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE", "BEGIN; UPDATE t SET v = 0 WHERE id = 1", engine.WaitRow, "COMMIT", true},
	{"read for sharing", innodb, "BEGIN; UPDATE t SET v = 11 WHERE id = 1", "BEGIN; SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE", engine.WaitRow, "COMMIT", true},
	{"serializable read", innodb, "BEGIN; UPDATE t SET v = 11 WHERE id = 1", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE; BEGIN; SELECT * FROM t", engine.WaitRow, "COMMIT", true},
	{"unique insert", all, "BEGIN; INSERT INTO t VALUES (7, 1, 1)", "BEGIN; INSERT INTO t VALUES (7, 2, 2)", engine.WaitRow, "ROLLBACK", true},
	{"gap", innodb, "BEGIN; SELECT * FROM t WHERE k BETWEEN 3 AND 4 FOR UPDATE", "BEGIN; INSERT INTO t VALUES (3, 3, 3)", engine.WaitGap, "COMMIT", true},
	{"end of index", innodb, "BEGIN; SELECT * FROM t WHERE id > 5 FOR UPDATE", "BEGIN; INSERT INTO t VALUES (9, 3, 3)", engine.WaitGap, "COMMIT", true},
	{"table", pg, "BEGIN; LOCK TABLE t IN EXCLUSIVE MODE", "UPDATE t SET v = 1", engine.WaitTable, "COMMIT", true},
	{"definition", pg, "BEGIN; SELECT * FROM t", "ALTER TABLE t ADD x int", engine.WaitTable, "COMMIT", true},
	{"definition", innodb, "BEGIN; SELECT * FROM t", "ALTER TABLE t ADD x int", engine.WaitMetadata, "COMMIT", false},
	{"LOCK TABLES", innodb, "LOCK TABLES t WRITE", "UPDATE t SET v = 1", engine.WaitMetadata, "UNLOCK TABLES", false},
	{"global", innodb, "FLUSH TABLES WITH READ LOCK", "UPDATE t SET v = 1", engine.WaitGlobal, "UNLOCK TABLES", false},
	{"advisory", pg, "SELECT pg_advisory_lock(7)", "SELECT pg_advisory_lock(7)", engine.WaitAdvisory, "SELECT pg_advisory_unlock(7)", true},
	{"advisory", innodb, "SELECT GET_LOCK('wirecheck', 0)", "SELECT GET_LOCK('wirecheck', 100)", engine.WaitAdvisory, "SELECT RELEASE_LOCK('wirecheck')", false},
	{"safe snapshot", pg, "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = 0 WHERE id = 1",
		"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT * FROM t", engine.WaitSnapshot, "COMMIT", true},
	{"safe snapshot, after a transaction that the holder's overlaps", pg, "BEGIN ISOLATION LEVEL SERIALIZABLE; UPDATE t SET v = 0 WHERE id = 1",
		"BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT * FROM t; COMMIT; BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT * FROM t", engine.WaitSnapshot, "COMMIT", false},
	{"text that looks like the server's", innodb, "BEGIN; UPDATE t SET v = 11 WHERE id = 1",
		"BEGIN; UPDATE t SET v = 12 WHERE id = 1 /*\n---TRANSACTION 1, ACTIVE\n------- TRX HAS BEEN WAITING 1 SEC\nTABLE LOCK x trx id 1 lock mode X waiting\n*/",
		engine.WaitRow, "COMMIT", false},
}

func testWaits(t *testing.T, w *world) {
	for _, c := range waitCases {
		if !w.is(c.on...) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			r := w.room(t)
			a, b := r.session(), r.session()
			a.do(c.holder)
			if got := r.look(a, b); got[0].Blocked || got[1].Blocked {
				t.Errorf("nobody waits yet, but: %+v", got)
			}
			p := b.start(c.waiter)
			got := p.blocked(a)
			if got.Kind != c.kind || got.Foreign {
				t.Errorf("got %+v, want %s", got, c.kind)
			}
			tells := c.blocker && !w.is("tidb") || w.is("mysql") && c.kind != engine.WaitRow
			if tells && !slices.Equal(got.For, []uint64{a.conn.ID()}) {
				t.Errorf("it waits for %v, want %d", got.For, a.conn.ID())
			}
			if tells {
				if alone := r.look(b)[0]; !alone.Blocked || !alone.Foreign || len(alone.For) != 0 {
					t.Errorf("asked about the waiter alone: %+v, want a foreign blocker", alone)
				}
			}
			if again := r.look(a, b); again[0].Blocked || !again[1].Blocked {
				t.Errorf("looked again: %+v", again)
			}
			a.do(c.release)
			if _, o := p.wait(); o.Effect == answer.EffectGone {
				t.Errorf("after the release: %s, %v", word(o), p.err)
			}
			if got := r.look(a, b); got[0].Blocked || got[1].Blocked {
				t.Errorf("all is over, but: %+v", got)
			}
		})
	}
}

// testSeenLate: who looks at a wait for the first time when it is old believes it, too.
func testSeenLate(t *testing.T, w *world) {
	r := w.room(t)
	a, b := r.session(), r.session()
	a.do("BEGIN; UPDATE t SET v = 11 WHERE id = 1")
	p := b.start("BEGIN; UPDATE t SET v = 12 WHERE id = 1") // TiDB shows no waits in autocommit
	p.blocked(a)
	a.do(choose(w, "SELECT pg_sleep(0.05)", "SELECT SLEEP(0.05)"))
	late, err := w.engine.Watch(t.Context(), r.target)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	r.watcher = late
	p.blocked(a)
	a.do("ROLLBACK")
	p.succeed()
}

// testRefused: a product whose statements never wait refuses each that another one would block, at once, and shows nobody waiting.
func testRefused(t *testing.T, w *world) {
	n := 0
	for _, c := range waitCases {
		if !w.is(c.on...) {
			continue
		}
		n++
		r := w.room(t)
		a, b := r.session(), r.session()
		a.do(c.holder)
		p := b.start(c.waiter)
		p.wait()
		if _, o := p.wait(); o.Reason != answer.ReasonNoWait || !o.Retry || o.Effect != answer.EffectStatement {
			t.Errorf("%s: %s: %s, %v", c.name, c.waiter, word(o), p.a.Err)
		}
		if got := r.look(a, b); got[0].Blocked || got[1].Blocked {
			t.Errorf("%s: said to wait: %+v", c.name, got)
		}
		a.do(c.release)
		b.do("UPDATE t SET v = 13 WHERE id = 1")
	}
	if n == 0 {
		t.Error("no case is about this product")
	}
}

// testNotBlocked: what is slow does not wait.
func testNotBlocked(t *testing.T, w *world) {
	if w.engine.NeverWaits {
		r := w.room(t)
		holder, s := r.session(), r.session()
		holder.do("BEGIN; SELECT * FROM t")
		p := s.start(strings.Replace(w.busy(), "FROM n)", "FROM n WHERE i < 2000)", 1))
		p.never()
		return
	}
	tests := []struct{ name, sql string }{
		{"sleep", choose(w, "SELECT pg_sleep(0.1)", "SELECT SLEEP(0.1)")},
		{"sleep in a write", choose(w, "UPDATE t SET v = v + 1 WHERE id = 2 AND pg_sleep(0.05) IS NOT NULL", "UPDATE t SET v = v + 1 WHERE id = 2 AND SLEEP(0.05) = 0")},
		{"work", choose(w, "SELECT count(*) FROM generate_series(1, 1000000) g WHERE g % 3 = 0", "SELECT BENCHMARK(500000, SHA2('x', 256))")},
		{"insert", "BEGIN; INSERT INTO t VALUES (8, 8, 8); DELETE FROM t WHERE id = 8; COMMIT"},
	}
	if w.is("tidb") { // one-shot writes show nothing when they wait; those in transactions are what could be mistaken
		tests[1].sql = "BEGIN PESSIMISTIC; UPDATE t SET v = v + 1 WHERE id = 2; SELECT SLEEP(0.05); COMMIT"
	} else if !w.is("mariadb") {
		tests = append(tests, struct{ name, sql string }{"skip locked", "SELECT * FROM t ORDER BY id FOR UPDATE SKIP LOCKED"})
	} else {
		tests = append(tests, struct{ name, sql string }{"skip locked", "SELECT * FROM t WHERE id = 1 FOR UPDATE SKIP LOCKED"})
	}
	if w.is(innodb...) { // each asks for the lock of the row that does not match, and takes that back
		tests = append(tests, struct{ name, sql string }{"semi-consistent read", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED; " + strings.Repeat("UPDATE t SET v = 70 - v WHERE v IN (20, 50); ", 2000) + "DO 0"})
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := w.room(t)
			holder, s := r.session(), r.session()
			holder.do("BEGIN; UPDATE t SET v = 0 WHERE id = 1")
			for range 5 {
				s.start(test.sql).never()
			}
			holder.do("ROLLBACK")
		})
	}
}

// testThreeSessions: two wait for one; its end wakes one of them, which lets the other wait on.
func testThreeSessions(t *testing.T, w *world) {
	r := w.room(t)
	a, b, c := r.session(), r.session(), r.session()
	a.do("BEGIN; UPDATE t SET v = 1 WHERE id = 1")
	pb := b.start("BEGIN; UPDATE t SET v = 2 WHERE id = 1")
	pb.blocked(a, c)
	pc := c.start("BEGIN; UPDATE t SET v = 3 WHERE id = 1")
	pc.blocked(a, b)
	if both := r.look(b, c); !both[0].Blocked || !both[1].Blocked {
		t.Errorf("two wait, but: %+v", both)
	}
	a.do("COMMIT")
	first, second := pb, pc
	// The order of waking is not promised. On PostgreSQL both then ask for the new version of the row (EvalPlanQual), and the second one may be the
	// first to have it.
	select {
	case <-pb.done:
	case <-pc.done:
		first, second = pc, pb
	}
	first.succeed()
	second.blocked(first.session)
	first.session.do("COMMIT")
	second.succeed()
	second.session.do("COMMIT")
}

// testDeadlock: a circle is never believed, and its end is told as it is.
func testDeadlock(t *testing.T, w *world) {
	tests := []struct {
		name        string
		first, last string // what each session does at its beginning
		firstDies   bool   // it is the one that waits already
		server      string // what is set on the server meanwhile
	}{
		{"the last one is the victim", "", "", false, ""},
		{"the first one is the victim", "", "UPDATE t SET v = v + 1, k = k + 10 WHERE id > 2; INSERT INTO t VALUES (20, 1, 1), (21, 1, 1), (22, 1, 1)", true, ""},
	}
	if w.is("mariadb") { // as on a server that is not ours: then it does not tell who waits for whom
		const setting = "SET GLOBAL innodb_status_output_locks = "
		defer func() {
			if err := engine.Exec(t.Context(), w.owner(t), setting+"ON"); err != nil {
				t.Error(err)
			}
		}()
		for _, test := range tests {
			test.name, test.server = test.name+", locks not printed", setting+"OFF"
			tests = append(tests, test)
		}
	}
	if w.postgres() {
		tests[1].first, tests[1].last = "SET deadlock_timeout = '2s'", "SET deadlock_timeout = '100s'"
	}
	if w.is("tidb") {
		tests = tests[:1] // whoever closes the circle
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			r := w.room(t)
			a, b := r.session(), r.session()
			if test.server != "" {
				a.do(test.server)
			}
			looked := a.looks()
			a.do("BEGIN;" + test.first)
			a.do("UPDATE t SET v = 1 WHERE id = 1")
			b.do("BEGIN;" + test.last)
			b.do("UPDATE t SET v = 2 WHERE id = 2")
			pa := a.start("UPDATE t SET v = 1 WHERE id = 2")
			pa.blocked(b)
			if !test.firstDies {
				pa.await(looked, "the server's look for a circle")
			}
			pb := b.start("UPDATE t SET v = 2 WHERE id = 1")
			for !pa.answered() && !pb.answered() {
				if got := r.look(a, b); got[0].Blocked && !got[0].Cycle && got[1].Blocked && !got[1].Cycle {
					t.Errorf("a circle is taken for waits: %+v", got)
				}
			}
			victim, other := pb, pa
			if test.firstDies {
				victim, other = pa, pb
			}
			select {
			case <-victim.done:
			case <-time.After(limit):
				t.Fatal("the victim is not told")
			}
			got, want := r.engine.Outcome(victim.a, victim.err), answer.Outcome{Effect: answer.EffectRolledBack, Reason: answer.ReasonDeadlock, Retry: true}
			if w.postgres() {
				want.Effect = answer.EffectFailed
			}
			if got != want || victim.a.After.InTransaction() != w.postgres() {
				t.Errorf("victim: got %s in transaction %v, want %s", word(got), victim.a.After.InTransaction(), word(want))
			}
			if w.postgres() {
				victim.session.do("ROLLBACK")
			}
			other.succeed()
			other.session.do("COMMIT")
		})
	}
}

// looks gives what tells whether the server has looked for a circle since the session's step began to wait. Servers look at once, but for
// PostgreSQL, which tells.
func (s *session) looks() func() bool {
	s.t.Helper()
	k, ok := s.conn.(engine.Checker)
	if !ok {
		return func() bool { return true }
	}
	if tells, err := k.Tell(s.t.Context()); err != nil || !tells {
		s.t.Fatalf("the server does not tell when it looks for a circle: %v", err)
	}
	return k.Checked
}

// await waits until something holds while the step waits.
func (p *pending) await(holds func() bool, what string) {
	p.t.Helper()
	for began := time.Now(); !holds(); time.Sleep(time.Millisecond) { // nothing tells
		if p.answered() || time.Since(began) > limit {
			p.t.Fatalf("%s: %s does not come", p.sql, what)
		}
	}
}

// testHiddenCircle: a waits for b and c, and c for a. InnoDB follows one edge of each waiter's, so it may not see the circle before b
// has gone; until then these are waits like any other, and whoever executes a schedule must not wait for their end.
func testHiddenCircle(t *testing.T, w *world) {
	if !w.is(innodb...) {
		t.Skipf("%s looks at all edges, or locks nothing for sharing", w.engine.Title)
	}
	r := w.room(t)
	a, b, c := r.session(), r.session(), r.session()
	a.do("BEGIN; UPDATE t SET v = 0 WHERE id = 2")
	b.do("BEGIN; SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE")
	c.do("BEGIN; SELECT * FROM t WHERE id = 1 LOCK IN SHARE MODE")
	pa := a.start("UPDATE t SET v = 0 WHERE id = 1")
	pa.blocked(b, c)
	pc := c.start("UPDATE t SET v = 1 WHERE id = 2")
	for began := time.Now(); !pa.answered() && !pc.answered(); {
		got := r.look(a, b, c)
		if got[0].Blocked && !got[0].Cycle && got[2].Blocked && !got[2].Cycle {
			t.Logf("the server did not see the circle; the waits were believed after %s", time.Since(began).Round(time.Millisecond))
			break
		}
		if time.Since(began) > limit {
			t.Fatalf("neither an error nor waits to be believed: %+v", got)
		}
	}
	b.do("COMMIT")
	_, first := pa.wait()
	if first.Effect == answer.EffectNone {
		a.do("COMMIT")
	}
	_, second := pc.wait()
	if (first.Reason == answer.ReasonDeadlock) == (second.Reason == answer.ReasonDeadlock) {
		t.Errorf("a: %s, c: %s; want one victim", word(first), word(second))
	}
}

// testLongStatus: where the server's status is longer than it shows (1 MiB), the transactions that it leaves out are seen all the same.
func testLongStatus(t *testing.T, w *world) {
	if !w.is("mariadb") {
		t.Skip("only MariaDB's private servers print the locks that make the status so long")
	}
	r := w.room(t)
	filler := r.session()
	filler.do("CREATE TABLE big (id int PRIMARY KEY, x char(100)) CHARACTER SET latin1")
	filler.do("INSERT INTO big SELECT seq, 'x' FROM seq_1_to_6000")
	var crowd []*session
	for range 4 {
		s := r.session()
		s.do("BEGIN; SELECT COUNT(*) FROM (SELECT * FROM big LOCK IN SHARE MODE) AS all_rows")
		crowd = append(crowd, s)
	}
	a, b := r.session(), r.session()
	a.do("BEGIN; UPDATE t SET v = 0 WHERE id = 1")
	idle := r.session()
	idle.do("BEGIN; UPDATE t SET v = 0 WHERE id = 2")
	// More of what the status has no room for comes after the waiter in the list: the newest ones stand first and are left out.
	p := b.start("BEGIN; UPDATE t SET v = 1 WHERE id = 1")
	p.blocked(idle)
	if got := r.look(idle, b); got[0].Blocked || !got[1].Blocked {
		t.Errorf("got %+v", got)
	}
	rows, err := engine.Query(t.Context(), w.owner(t), "SHOW ENGINE INNODB STATUS")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows[0][2]) < 1<<20-1000 {
		t.Errorf("the status has %d bytes only: this tests nothing", len(rows[0][2]))
	}
	a.do("COMMIT")
	p.succeed()
	for _, s := range crowd {
		s.do("COMMIT")
	}
}
