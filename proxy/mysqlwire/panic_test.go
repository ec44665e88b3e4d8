package mysqlwire_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/record"
)

// unobserved are statements that an observed session rewrites, in both protocols.
func unobserved() (steps []step) {
	for _, sql := range []string{"CREATE TABLE p (id INT PRIMARY KEY, v INT)", "INSERT INTO p VALUES (1,1), (2,2)", "SELECT * FROM p", "BEGIN", "UPDATE p SET v = 5 WHERE id = 1",
		"SELECT * FROM p WHERE id = 1 FOR UPDATE", "SAVEPOINT s", "DELETE FROM p WHERE id = 2", "COMMIT", "SELECT ROW_COUNT(), FOUND_ROWS()", "SHOW COLUMNS FROM seen",
		"INSERT INTO p VALUES (1, 1)", "SELECT nothing FROM p", "SELECT * FROM p", "UPDATE p SET v = 6", "SELECT * FROM seen"} {
		steps = append(steps, step{cmd: mysql.COM_QUERY, sql: sql})
	}
	for _, sql := range []string{"SELECT * FROM p", "UPDATE p SET v = v + 1", "SELECT * FROM p"} {
		steps = append(steps, step{sql: sql, params: []any{}})
	}
	return append(steps, step{cmd: 0x1f}, step{cmd: mysql.COM_QUERY, sql: "SELECT * FROM p"}, step{cmd: mysql.COM_QUERY, sql: "DROP TABLE p"})
}

// TestPanicOfRecorder lets what gets the events panic, in each session at another event. The sessions go on, and each byte is
// the same as directly.
func TestPanicOfRecorder(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE seen (id INT PRIMARY KEY)")
	want := runSteps(t, d, baseCaps, unobserved())
	for at := range 24 {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			var mu sync.Mutex
			n, reason := 0, ""
			o := observer(nil)
			o.Recorder = record.NewRecorder("test", func(ev *history.Event) []record.Warning {
				mu.Lock()
				defer mu.Unlock()
				if n++; n == at+1 {
					panic("no more")
				}
				reason = ev.Why
				return nil
			})
			got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o), baseCaps, unobserved())
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("direct (-), through the proxy (+):\n%s", diff)
			}
			mu.Lock()
			defer mu.Unlock()
			if at > 0 && n > at && reason != "a defect of wirecheck: panic: no more" {
				t.Errorf("the history ends the session with %q", reason)
			}
		})
	}
}

// TestPanicOfRewriter lets the rewriter panic: the sessions go on, and each byte is the same as directly.
func TestPanicOfRewriter(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE seen (id INT PRIMARY KEY)")
	want := runSteps(t, d, baseCaps, unobserved())
	o := observer(&sink{})
	o.BreakRewriter()
	got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o), baseCaps, unobserved())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("direct (-), through the proxy (+):\n%s", diff)
	}
}
