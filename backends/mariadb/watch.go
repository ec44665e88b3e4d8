package mariadb

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// Watch opens a watcher for MariaDB.
func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) {
	asleep := sleepers{}
	return mysql.NewWatcher(ctx, t, mysql.Blockers{Find: func(ctx context.Context, c engine.Conn, s *mysql.Status, _ [][]answer.Value) (map[string][]string, bool, error) {
		if err := asleep.keep(ctx, c, s); err != nil {
			return nil, false, err
		}
		graph, exact := printedLocks(s)
		return graph, exact, nil
	}})
}

// sleepers are, by connection, the locks for which sessions are known to sleep. An UPDATE that reads semi-consistently asks for a row's lock and takes the
// request back at once if the row's committed version does not match (row0sel.cc, row_search_mvcc): meanwhile the status shows it like a wait, but with
// the time since the connection last slept (lock0lock.cc: suspend_time is set where the thread is suspended).
type sleepers map[uint64]string

// clockTick is how long a wait can seem longer than its statement: the server takes the times from a clock that ticks.
const clockTick = 5 * time.Millisecond

// keep takes requests that are older than their statements out of the status: nobody waits for them yet.
func (l sleepers) keep(ctx context.Context, c engine.Conn, s *mysql.Status) error {
	var old []*mysql.Transaction
	var ids []string
	for i := range s.Transactions {
		t := &s.Transactions[i]
		switch {
		case t.Waiting == nil:
			delete(l, t.Connection)
		case time.Duration(t.Waited) > clockTick && l[t.Connection] != t.WaitsFor():
			old, ids = append(old, t), append(ids, strconv.FormatUint(t.Connection, 10))
		}
	}
	if len(old) == 0 {
		return nil
	}
	rows, err := engine.Query(ctx, c, "SELECT id, time_ms FROM information_schema.processlist WHERE id IN ("+strings.Join(ids, ", ")+")")
	if err != nil {
		return err
	}
	for n, t := range old {
		i := slices.IndexFunc(rows, func(r []answer.Value) bool { return string(r[0]) == ids[n] })
		if i < 0 {
			t.Waiting = nil
			continue
		}
		ms, err := strconv.ParseFloat(string(rows[i][1]), 64)
		if err != nil {
			return fmt.Errorf("read the time of a statement: %w", err)
		}
		if time.Duration(t.Waited) > time.Duration(ms*float64(time.Millisecond))+clockTick {
			t.Waiting = nil
			continue
		}
		l[t.Connection] = t.WaitsFor()
	}
	return nil
}

// LabSettings make the server print each transaction's locks in its status, from which follows who waits for whom: MariaDB 10.11 has
// no view that says it at once. Oracles with databases of their own, at several levels, need many connections.
func LabSettings() map[string]string {
	return map[string]string{"innodb_status_output_locks": "ON", "max_connections": "1000"}
}

// printedLocks finds out who waits for whom from the locks in the status. Where the server does not print them, or not
// all, it does not know.
func printedLocks(s *mysql.Status) (map[string][]string, bool) {
	graph, exact := map[string][]string{}, !s.Truncated
	for _, waiter := range s.Transactions {
		exact = exact && !waiter.Suppressed
		if waiter.Waiting == nil {
			continue
		}
		graph[waiter.ID] = blockers(waiter, s.Transactions)
		exact = exact && len(graph[waiter.ID]) > 0
	}
	return graph, exact
}

// blockers are the transactions that hold a lock which the waiter's has to wait for; if there is none, those that have waited
// longer for one that goes before it.
func blockers(waiter mysql.Transaction, all []mysql.Transaction) []string {
	var holders, queue []string
	for _, other := range all {
		if other.ID == waiter.ID {
			continue
		}
		for _, l := range other.Locks {
			if l.Blocks(*waiter.Waiting) {
				holders = append(holders, other.ID)
				break
			}
		}
		if w := other.Waiting; w != nil && other.Waited > waiter.Waited && w.Blocks(*waiter.Waiting) {
			queue = append(queue, other.ID)
		}
	}
	if len(holders) == 0 {
		return queue
	}
	return holders
}
