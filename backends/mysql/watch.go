package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

const (
	// settleTime is how long several waits must have been seen together before they are believed, where the server does
	// not tell who waits for whom: it looks for a circle only after a wait has become visible.
	settleTime = 5 * time.Millisecond
	// cacheTime is how long information_schema.innodb_trx must be left alone to be renewed (0.1 s), and a little more.
	cacheTime = 110 * time.Millisecond
	// circleTime is how long a circle of waits is left to the server. Both products follow one edge of each waiter's only, so that they
	// do not see every circle before something else moves; what stands for longer is a wait like any other.
	circleTime = 100 * time.Millisecond
	killed     = "1094" // unknown thread id
)

// looking is one round trip: row and table locks of InnoDB, and the other locks by the sessions' states.
const looking = "SHOW ENGINE INNODB STATUS; SHOW PROCESSLIST"

// Blockers finds out who waits for whom for locks of InnoDB.
type Blockers struct {
	// Ask is one more statement of the round trip; or nothing.
	Ask string
	// Find makes the graph: a transaction's id, and those it waits for. exact tells that this is all there is: a waiter that has no
	// entry does not wait any more. It may add transactions that the status does not list, and take out waits that are none.
	Find func(ctx context.Context, c engine.Conn, s *Status, answer [][]answer.Value) (waits map[string][]string, exact bool, err error)
	// Metadata adds for whom sessions wait that wait for other locks than InnoDB's; nil: nobody knows.
	Metadata func(ctx context.Context, c engine.Conn, ids []uint64, waits []engine.Wait) error
}

// watcher looks at the sessions of a MySQL or MariaDB server. The clock is asked only where the server does not tell who
// waits for whom.
type watcher struct {
	conn     engine.Conn
	blockers Blockers
	seen     map[uint64]sighting
	cached   time.Time       // when innodb_trx was last read
	waiting  map[uint64]bool // what it said
}

// sighting is since when a session has been seen to wait for one lock.
type sighting struct {
	lock  string
	since time.Time
}

// NewWatcher opens a side connection. The user needs the privilege PROCESS.
func NewWatcher(ctx context.Context, t engine.Target, blockers Blockers) (engine.Watcher, error) {
	t.Database, t.Warnings = "", false
	c, err := Connect(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("watch locks: %w", err)
	}
	w := &watcher{conn: c, blockers: blockers, seen: map[uint64]sighting{}}
	if _, err := w.Look(ctx, nil); err != nil {
		return nil, errors.Join(fmt.Errorf("watch locks (this needs GRANT PROCESS ON *.* TO the user): %w", err), c.Close())
	}
	return w, nil
}

// Look says who waits.
func (w *watcher) Look(ctx context.Context, ids []uint64) ([]engine.Wait, error) {
	a, err := engine.Ask(ctx, w.conn, looking+w.blockers.Ask)
	if err == nil && (len(a.Results) < 2 || len(a.Results[0].Rows) != 1 || len(a.Results[0].Rows[0]) != 3) {
		err = errors.New("the server's status has an unknown form")
	}
	if err != nil {
		return nil, fmt.Errorf("look at locks: %w", err)
	}
	waits := make([]engine.Wait, len(ids))
	states(a.Results[1], ids, waits)
	status := ParseStatus(a.Results[0].Rows[0][2])
	graph, exact, err := w.blockers.Find(ctx, w.conn, &status, a.Results[len(a.Results)-1].Rows)
	if err == nil {
		err = w.innodb(ctx, status, graph, exact, ids, waits)
	}
	if err == nil && w.blockers.Metadata != nil {
		err = w.blockers.Metadata(ctx, w.conn, ids, waits)
	}
	if err != nil {
		return nil, fmt.Errorf("look at locks: %w", err)
	}
	return waits, nil
}

// states reads from the process list who waits for a lock that is not InnoDB's.
func states(list answer.Result, ids []uint64, waits []engine.Wait) {
	state := slices.IndexFunc(list.Columns, func(c answer.Column) bool { return c.Name == "State" })
	for _, row := range list.Rows {
		if state < 0 || len(row[state]) == 0 {
			continue
		}
		id, err := strconv.ParseUint(string(row[0]), 10, 64)
		if err != nil {
			continue
		}
		if i := slices.Index(ids, id); i >= 0 {
			if kind := stateKind(string(row[state])); kind != "" {
				waits[i] = engine.Wait{Blocked: true, Kind: kind}
			}
		}
	}
}

// stateKind says what a thread state waits for; nothing if for no lock (MySQL manual, "General Thread States").
func stateKind(state string) engine.WaitKind {
	lock, ok := strings.CutPrefix(state, "Waiting for ")
	switch {
	case state == "User lock": // GET_LOCK; "User sleep" is SLEEP
		return engine.WaitAdvisory
	case !ok || lock == "query cache lock": // held for microseconds
		return ""
	case lock == "table flush", lock == "global read lock", lock == "commit lock", lock == "backup lock":
		return engine.WaitGlobal
	case lock == "table level lock", lock == "table lock":
		return engine.WaitTable
	case strings.HasSuffix(lock, "metadata lock"):
		return engine.WaitMetadata
	case strings.HasSuffix(lock, " lock"):
		return engine.WaitOther
	}
	return ""
}

// innodb adds the waits for locks of InnoDB.
func (w *watcher) innodb(ctx context.Context, s Status, graph map[string][]string, exact bool, ids []uint64, waits []engine.Wait) error {
	var waiters []Transaction
	listed := 0
	for _, t := range s.Transactions {
		if slices.Contains(ids, t.Connection) {
			listed++
			if t.Waiting != nil {
				waiters = append(waiters, t)
			}
		}
	}
	if s.Truncated && listed < len(ids) {
		if err := w.unlisted(ctx, s, ids, waits); err != nil {
			return err
		}
	}
	w.forget(waiters)
	if len(waiters) == 0 {
		return nil
	}
	connection := make(map[string]uint64, len(s.Transactions))
	for _, t := range s.Transactions {
		connection[t.ID] = t.Connection
	}
	for _, t := range waiters {
		blockers, still := graph[t.ID]
		if exact && !still {
			continue
		}
		i := slices.Index(ids, t.Connection)
		waits[i] = engine.Wait{Blocked: true, Kind: t.Waiting.Kind()}
		for _, b := range blockers {
			if id := connection[b]; slices.Contains(ids, id) {
				waits[i].For = append(waits[i].For, id)
			} else {
				waits[i].Foreign = true
			}
		}
		slices.Sort(waits[i].For)
		waits[i].For = slices.Compact(waits[i].For)
	}
	if len(waiters) > 1 {
		engine.MarkCycles(ids, waits)
		w.doubt(waiters, exact, ids, waits)
	}
	return nil
}

// doubt sets Cycle on waits that the server may be about to end, and takes it back where it evidently is not.
func (w *watcher) doubt(waiters []Transaction, exact bool, ids []uint64, waits []engine.Wait) {
	now := time.Now()
	youngest, circle := circleTime, circleTime // for how long all waits, and those on circles, have been seen
	for _, t := range waiters {
		s, ok := w.seen[t.Connection]
		if !ok {
			s = sighting{t.WaitsFor(), now}
			w.seen[t.Connection] = s
		}
		age := now.Sub(s.since)
		youngest = min(youngest, age)
		if waits[slices.Index(ids, t.Connection)].Cycle {
			circle = min(circle, age)
		}
	}
	for _, t := range waiters {
		wait := &waits[slices.Index(ids, t.Connection)]
		wait.Cycle = wait.Cycle && circle < circleTime || wait.Blocked && !exact && youngest < settleTime
	}
}

// forget drops the sightings of sessions that do not wait any more, or for another lock.
func (w *watcher) forget(waiters []Transaction) {
	for id, s := range w.seen {
		if !slices.ContainsFunc(waiters, func(t Transaction) bool { return t.Connection == id && t.WaitsFor() == s.lock }) {
			delete(w.seen, id)
		}
	}
}

// WaitsFor names the lock that the transaction waits for.
func (t Transaction) WaitsFor() string {
	return t.ID + " " + t.Waiting.Table + t.Waiting.Page + " " + strings.Join(t.Waiting.Heap, " ")
}

// unlisted asks for the sessions that the status has no room for, at most as often as the answer is renewed.
func (w *watcher) unlisted(ctx context.Context, s Status, ids []uint64, waits []engine.Wait) error {
	if time.Since(w.cached) >= cacheTime {
		rows, err := engine.Query(ctx, w.conn, "SELECT trx_mysql_thread_id FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'")
		if err != nil {
			return err
		}
		w.cached, w.waiting = time.Now(), map[uint64]bool{}
		for _, row := range rows {
			if id, err := strconv.ParseUint(string(row[0]), 10, 64); err == nil {
				w.waiting[id] = true
			}
		}
	}
	for i, id := range ids {
		if w.waiting[id] && !slices.ContainsFunc(s.Transactions, func(t Transaction) bool { return t.Connection == id }) {
			waits[i] = engine.Wait{Blocked: true, Kind: engine.WaitRow}
		}
	}
	return nil
}

// Alive looks for the connection in the process list, which it leaves when it has been cleaned up.
func (w *watcher) Alive(ctx context.Context, id uint64) (bool, error) { return Alive(ctx, w.conn, id) }

// Alive looks for a connection in the process list.
func Alive(ctx context.Context, c engine.Conn, id uint64) (bool, error) {
	rows, err := engine.Query(ctx, c, "SHOW PROCESSLIST")
	if err != nil {
		return false, fmt.Errorf("look for session %d: %w", id, err)
	}
	want := strconv.FormatUint(id, 10)
	return slices.ContainsFunc(rows, func(row []answer.Value) bool { return string(row[0]) == want }), nil
}

// Kill ends a connection.
func (w *watcher) Kill(ctx context.Context, id uint64) error {
	a, err := w.conn.Do(ctx, "KILL "+strconv.FormatUint(id, 10))
	if err == nil && a.Err != nil && a.Err.Code != killed {
		err = a.Err
	}
	if err != nil {
		return fmt.Errorf("end session %d: %w", id, err)
	}
	return nil
}

// Close closes the side connection.
func (w *watcher) Close() error { return w.conn.Close() }

// Watch opens a watcher for MySQL.
func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) {
	return NewWatcher(ctx, t, Blockers{Ask: lockWaits, Find: findLockWaits, Metadata: metadataBlockers})
}

// lockWaits asks MySQL who waits for whom. The columns with threads are wrong when another session has moved the waiting lock (a page
// split, an implicit lock made explicit); those with transactions are right (seen on MySQL 9.7).
const lockWaits = "; SELECT REQUESTING_ENGINE_TRANSACTION_ID, BLOCKING_ENGINE_TRANSACTION_ID FROM performance_schema.data_lock_waits"

// findLockWaits reads the answer. The status does not list transactions that have written nothing yet and only locked rows for
// sharing (seen on MySQL 9.7): those are looked up.
func findLockWaits(ctx context.Context, c engine.Conn, s *Status, answer [][]answer.Value) (map[string][]string, bool, error) {
	graph := make(map[string][]string, len(answer))
	listed := make(map[string]bool, len(s.Transactions))
	for _, t := range s.Transactions {
		listed[t.ID] = true
	}
	var unlisted []string
	for _, row := range answer {
		waiter, blocker := string(row[0]), string(row[1])
		graph[waiter] = append(graph[waiter], blocker)
		for _, id := range []string{waiter, blocker} {
			if !listed[id] {
				listed[id] = true
				unlisted = append(unlisted, id)
			}
		}
	}
	if len(unlisted) == 0 {
		return graph, true, nil
	}
	added, err := lookUp(ctx, c, strings.Join(unlisted, ", "))
	if err != nil {
		return nil, false, err
	}
	s.Transactions = append(s.Transactions, added...)
	return graph, true, nil
}

// lookUp finds the connections of transactions, and what they wait for. A transaction's locks on tables are made by its own thread, and
// stay with it.
func lookUp(ctx context.Context, c engine.Conn, ids string) ([]Transaction, error) {
	const locks = " FROM performance_schema.data_locks l "
	a, err := engine.Ask(ctx, c, "SELECT DISTINCT l.ENGINE_TRANSACTION_ID, t.PROCESSLIST_ID"+locks+"JOIN performance_schema.threads t USING (THREAD_ID)"+
		" WHERE l.LOCK_TYPE = 'TABLE' AND l.ENGINE_TRANSACTION_ID IN ("+ids+") AND t.PROCESSLIST_ID IS NOT NULL;"+
		"SELECT l.ENGINE_TRANSACTION_ID, l.LOCK_TYPE, l.LOCK_MODE"+locks+"WHERE l.LOCK_STATUS = 'WAITING' AND l.ENGINE_TRANSACTION_ID IN ("+ids+")")
	if err != nil {
		return nil, err
	}
	waiting := map[string]*Lock{}
	for _, row := range a.Results[1].Rows {
		mode := strings.Split(string(row[2]), ",") // "X,GAP,INSERT_INTENTION", "S,REC_NOT_GAP", "AUTO_INC"
		waiting[string(row[0])] = &Lock{
			Record: string(row[1]) == "RECORD", Table: "?", Mode: strings.ReplaceAll(mode[0], "_", "-"), Insertion: slices.Contains(mode, "INSERT_INTENTION"),
		}
	}
	var found []Transaction
	for _, row := range a.Results[0].Rows {
		id, err := strconv.ParseUint(string(row[1]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the connection of a transaction: %w", err)
		}
		found = append(found, Transaction{ID: string(row[0]), Connection: id, Waiting: waiting[string(row[0])]})
	}
	return found, nil
}
