package tidb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/backends/mysql"
)

const (
	// settleTime is how long one lock request must have been seen waiting. TiDB shows LockWaiting during every request of a
	// pessimistic lock, contended or not: up to 4.2 ms with the same start time were seen under load (8.5).
	settleTime = 8 * time.Millisecond
	// settleLooks is in how many looks. A look takes 0.3 ms, and longer where the machine is busy, as the request then does.
	settleLooks = 20
)

// looking lists the transactions that wait for a lock. data_lock_waits stays empty without a TiKV server.
const looking = "SELECT SESSION_ID, WAITING_START_TIME FROM information_schema.TIDB_TRX WHERE STATE = 'LockWaiting'"

// watcher looks at the sessions of a TiDB server. It needs the clock: only time tells a wait from a request that is on its way.
type watcher struct {
	conn    engine.Conn
	careful bool // see dangerous
	seen    map[uint64]sighting
}

// sighting is a lock request that was seen waiting.
type sighting struct {
	started string // when, as the server says it: names the request
	since   time.Time
	looks   int
}

// Watch opens a side connection. The user needs the privilege PROCESS to see sessions of other users.
func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) {
	t.Database, t.Warnings = "", false
	c, err := mysql.Connect(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("watch locks: %w", err)
	}
	w := &watcher{conn: c, seen: map[uint64]sighting{}}
	rows, err := engine.Query(ctx, c, "SELECT VERSION()")
	if err == nil {
		w.careful = strings.HasPrefix(string(rows[0][0]), "5.") // as TiDB called itself before 7.4
		_, err = w.Look(ctx, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch locks: %w", err), c.Close())
	}
	return w, nil
}

// Look says who waits. A wait is believed once it has been seen for settleTime; a deadlock is refused long before that.
func (w *watcher) Look(ctx context.Context, ids []uint64) ([]engine.Wait, error) {
	if w.careful {
		if wait, err := w.dangerous(ctx); err != nil || wait {
			return unseen(len(ids)), err
		}
	}
	rows, err := engine.Query(ctx, w.conn, looking)
	if err != nil {
		return nil, fmt.Errorf("look at locks: %w", err)
	}
	now := time.Now()
	waits := make([]engine.Wait, len(ids))
	seen := make(map[uint64]sighting, len(rows))
	for _, row := range rows {
		id, err := strconv.ParseUint(string(row[0]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("look at locks: session %q: %w", row[0], err)
		}
		s := w.seen[id]
		if s.started != string(row[1]) {
			s = sighting{started: string(row[1]), since: now}
		}
		s.looks++
		seen[id] = s
		if i := slices.Index(ids, id); i >= 0 && s.looks >= settleLooks && now.Sub(s.since) >= settleTime {
			waits[i] = engine.Wait{Blocked: true, Kind: engine.WaitRow}
		}
	}
	w.seen = seen
	return waits, nil
}

// unseen says of n sessions that they could not be looked at. What is dangerous may itself wait for one of them: a COMMIT does
// for the pessimistic lock of a transaction that waits for another row. Without an end to that nobody would go on until a lock's
// time has run out.
func unseen(n int) []engine.Wait {
	waits := make([]engine.Wait, n)
	for i := range waits {
		waits[i].Unseen = true
	}
	return waits
}

// Alive looks for the connection in the process list.
func (w *watcher) Alive(ctx context.Context, id uint64) (bool, error) {
	return mysql.Alive(ctx, w.conn, id)
}

// dangerous reports whether some session may be ending its transaction right now. In old versions, reading TIDB_TRX at that moment can crash the
// server ("unlock of unlocked mutex" in SessionVars.GetRelatedTableForMDL, seen on that of January 2023, once in some thousand
// transactions). Then there is nothing to see either: what ends a transaction shows no wait.
func (w *watcher) dangerous(ctx context.Context) (bool, error) {
	rows, err := engine.Query(ctx, w.conn, "SHOW PROCESSLIST")
	if err != nil {
		return false, fmt.Errorf("look at sessions: %w", err)
	}
	for _, row := range rows {
		id, command, state, text := string(row[0]), string(row[4]), string(row[6]), string(row[7])
		if command == "Sleep" || id == strconv.FormatUint(w.conn.ID(), 10) {
			continue
		}
		if !strings.Contains(state, "in transaction") || !staysInside(text) {
			return true, nil
		}
	}
	return false, nil
}

// staysInside reports whether a statement in a transaction leaves it open, whatever its answer but a deadlock.
func staysInside(sql string) bool {
	word, _, _ := strings.Cut(strings.TrimLeft(sql, " \t\r\n("), " ")
	switch strings.ToUpper(word) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH":
		return true
	}
	return false
}

// Kill ends a connection.
func (w *watcher) Kill(ctx context.Context, id uint64) error {
	// An id that is unknown is no error here.
	if err := engine.Exec(ctx, w.conn, "KILL TIDB "+strconv.FormatUint(id, 10)); err != nil {
		return fmt.Errorf("end session %d: %w", id, err)
	}
	return nil
}

func (w *watcher) Close() error { return w.conn.Close() }
