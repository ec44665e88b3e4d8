package mysqlwire_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
	"wirecheck/proxy/record"
)

// sink collects events and gives warnings when a statement contains a word.
type sink struct {
	mu     sync.Mutex
	events []*history.Event
	warn   string // a statement that contains this is warned of, once
	warned map[[2]uint64]bool
}

func (k *sink) record(ev *history.Event) []record.Warning {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := *ev
	kept.Accesses = slices.Clone(ev.Accesses) // the tracker uses their room again
	k.events = append(k.events, &kept)
	if id := [2]uint64{ev.Txn, uint64(ev.N)}; k.warn != "" && strings.Contains(ev.SQL, k.warn) && !k.warned[id] {
		if k.warned == nil {
			k.warned = make(map[[2]uint64]bool)
		}
		k.warned[id] = true
		return []record.Warning{{Code: 51002, Message: "lost update on shop.coupon", Finding: "WC-1", Hint: "lock the read"}}
	}
	return nil
}

func (k *sink) all() []*history.Event {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*history.Event(nil), k.events...)
}

func observer(k *sink) *mysqlwire.Observer {
	return &mysqlwire.Observer{Recorder: record.NewRecorder("test", k.record), Warn: true, Instrument: mysqlwire.InstrumentAuto}
}

func TestObserveLogins(t *testing.T) {
	d := testserver.Family(t).Database(t)
	testLogins(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), "observe")
}

// TestHistory follows one session's reads and writes from version to version.
func TestHistory(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
	for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1, 10), (2, 20)", "UPDATE t SET v = 5 WHERE id = 2",
		"BEGIN", "SELECT v FROM t WHERE id = 1", "UPDATE t SET v = 11 WHERE id = 1", "COMMIT", "SELECT * FROM t"} {
		if p := c.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
	}
	var got []string
	for _, ev := range k.all() {
		line := fmt.Sprintf("%s t%d", ev.Kind, ev.Txn)
		switch ev.Kind {
		case history.EventSession, history.EventClose:
			continue
		case history.EventStmt:
			line += fmt.Sprintf(".%d %s %s", ev.N, ev.Verb, ev.Coverage)
		case history.EventEnd:
			line += " " + string(ev.Outcome)
		}
		for _, a := range ev.Accesses {
			line += fmt.Sprintf(" %s %s by %s after %s", a.Op, a.Version, a.Writer, a.Prev)
		}
		got = append(got, strings.TrimSpace(line))
	}
	want := []string{
		"begin t1", "stmt t1.1 insert exact", "end t1 committed",
		"begin t2", "stmt t2.1 update exact", "end t2 committed",
		"stmt t2.1 update exact update 2:T2.1.test by  after 1:T1.1.test",
		"begin t3", "stmt t3.1 select exact read 1:T1.1.test by T1.test after",
		"stmt t3.2 update exact update 2:T3.2.test by  after 1:T1.1.test", "end t3 committed",
		"begin t4", "stmt t4.1 select exact read 2:T3.2.test by T3.test after  read 2:T2.1.test by T2.test after", "end t4 committed",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestInstrumentOwn: only the table that the client creates gets the hidden columns, not what others created in the meantime,
// here or in another database.
func TestInstrumentOwn(t *testing.T) {
	family := testserver.Family(t)
	d, other := family.Database(t), family.Database(t)
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), baseCaps)
	create := func(sql string) {
		t.Helper()
		if p := c.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
	}
	create("CREATE TABLE first (id INT PRIMARY KEY)")
	other.Exec(t, "CREATE TABLE theirs (id INT PRIMARY KEY)")
	d.Exec(t, "CREATE TABLE neighbour (id INT PRIMARY KEY)")
	create("/* note */ CREATE TABLE IF NOT EXISTS `sec``ond` (id INT PRIMARY KEY)")
	create("CREATE TABLE `" + other.Name + "` . third (id INT PRIMARY KEY)")
	hidden := func(on testserver.Database, table string) (n int) {
		err := on.MariaDB(t).QueryRow("SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLUMN_NAME LIKE 'wc%' AND TABLE_NAME = '" + table + "'").Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, test := range []struct {
		on    testserver.Database
		table string
		want  int
	}{{d, "first", 2}, {d, "sec`ond", 2}, {other, "third", 2}, {d, "neighbour", 0}, {other, "theirs", 0}} {
		if got := hidden(test.on, test.table); got != test.want {
			t.Errorf("table %s has %d hidden columns, want %d", test.table, got, test.want)
		}
	}
}

// TestLongTransactionIsNotHeld: the history gets the statements of a long transaction before its end, though they wait for the log.
func TestLongTransactionIsNotHeld(t *testing.T) {
	d := testserver.Family(t).Database(t)
	k := &sink{}
	c := dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(k)), baseCaps)
	for _, sql := range []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) SELECT i, 0 FROM n", "BEGIN", "UPDATE t SET v = 1 WHERE id = 1"} {
		if p := c.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
	}
	before := len(k.all())
	for range 12 {
		c.query("SELECT * FROM t")
	}
	if n := len(k.all()) - before; n < 10 {
		t.Errorf("%d events after 12 statements that read 1000 rows each", n)
	}
}
