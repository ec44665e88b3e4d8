package mariadb

import (
	"context"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

// Watch opens a watcher for MariaDB.
func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) {
	return mysql.NewWatcher(ctx, t, mysql.Blockers{Find: printedLocks})
}

// LabSettings make the server print each transaction's locks in its status, from which follows who waits for whom: MariaDB 10.11 has
// no view that says it at once. Oracles with databases of their own, at several levels, need many connections.
func LabSettings() map[string]string {
	return map[string]string{"innodb_status_output_locks": "ON", "max_connections": "1000"}
}

// printedLocks finds out who waits for whom from the locks in the status. Where the server does not print them, or not
// all, it does not know.
func printedLocks(_ context.Context, _ engine.Conn, s *mysql.Status, _ [][]answer.Value) (map[string][]string, bool, error) {
	graph, exact := map[string][]string{}, !s.Truncated
	for _, waiter := range s.Transactions {
		exact = exact && !waiter.Suppressed
		if waiter.Waiting == nil {
			continue
		}
		graph[waiter.ID] = blockers(waiter, s.Transactions)
		exact = exact && len(graph[waiter.ID]) > 0
	}
	return graph, exact, nil
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
