package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/engine"
)

// looking is the watcher's query. pg_blocking_pids tells, uncached, who holds a lock that a session waits for or stands
// before it in the lock's queue (PostgreSQL manual, 9.27, "Session Information Functions"); a transaction that waits for a
// safe snapshot has a function of its own. Only for a session that waits is it looked up what for: itself or, since
// pg_blocking_pids speaks for them too, one of its parallel workers. That row is gone if the lock was granted meanwhile: then
// the session does not wait. pg_safe_snapshot_blocking_pids looks at the first serializable transaction that it finds of a session,
// which may be an earlier one that is remembered because others overlapped it (PostgreSQL 15, GetSafeSnapshotBlockingPids in
// predicate.c); it is silent then, and only the wait event (manual, table 28.9) tells of the wait. The event is read after
// the function: where it shows a wait that the function did not, the wait may have begun between the two, so the function is
// asked once more.
const looking = `
SELECT p, b, CASE WHEN w = 'SafeSnapshot' THEN pg_catalog.pg_safe_snapshot_blocking_pids(p) ELSE s END, w
FROM (SELECT p, b, s, CASE WHEN b <> '{}' THEN COALESCE(
        (SELECT locktype || ' ' || mode FROM pg_catalog.pg_lock_status() AS l WHERE NOT l.granted AND l.pid = p LIMIT 1),
        (SELECT locktype || ' ' || mode FROM pg_catalog.pg_lock_status() AS l JOIN pg_catalog.pg_stat_get_activity(NULL) AS a USING (pid)
         WHERE NOT l.granted AND a.leader_pid = p LIMIT 1))
      WHEN s = '{}' THEN (SELECT wait_event FROM pg_catalog.pg_stat_get_activity(p) WHERE wait_event = 'SafeSnapshot') END AS w
    FROM (SELECT p, pg_catalog.pg_blocking_pids(p) AS b, pg_catalog.pg_safe_snapshot_blocking_pids(p) AS s
          FROM unnest($1::int4[]) WITH ORDINALITY AS u(p, n) ORDER BY n OFFSET 0) AS x OFFSET 0) AS y`

// safeSnapshot is the wait event of a transaction that waits for a safe snapshot.
const safeSnapshot = "SafeSnapshot"

const lookName = "wirecheck_look"

// planOnce has the server keep one plan for the watcher's query: to plan it for each array of sessions takes several times as long as to execute it (PostgreSQL
// manual, 20.7.4, plan_cache_mode). Servers without the setting (before 12) answer with no row.
const planOnce = "SELECT pg_catalog.set_config(name, 'force_generic_plan', false) FROM pg_catalog.pg_settings WHERE name = 'plan_cache_mode'"

// watcher looks at the sessions of a server. Circles follow from who waits for whom, soft blocks (places in a queue)
// included: PostgreSQL breaks them after deadlock_timeout, by an error or by rearranging the queue.
type watcher struct {
	conn  *pgconn.PgConn
	array []byte // the parameter, reused
}

// Watch opens a side connection.
func Watch(ctx context.Context, t engine.Target) (engine.Watcher, error) {
	pc, err := login(ctx, t)
	if err != nil {
		return nil, fmt.Errorf("watch locks: %w", err)
	}
	_, err = pc.Exec(ctx, planOnce).ReadAll()
	if err == nil {
		_, err = pc.Prepare(ctx, lookName, looking, nil)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch locks: %w", err), pc.Close(context.WithoutCancel(ctx)))
	}
	return &watcher{conn: pc}, nil
}

func (w *watcher) Look(ctx context.Context, ids []uint64) ([]engine.Wait, error) {
	w.array = append(w.array[:0], '{')
	for i, id := range ids {
		if i > 0 {
			w.array = append(w.array, ',')
		}
		w.array = strconv.AppendUint(w.array, id, 10)
	}
	w.array = append(w.array, '}')
	r := w.conn.ExecPrepared(ctx, lookName, [][]byte{w.array}, nil, nil)
	waits, brief := make([]engine.Wait, 0, len(ids)), make([]bool, 0, len(ids))
	var bad error
	for r.NextRow() {
		wait, short, err := waitOf(r.Values(), ids)
		bad = errors.Join(bad, err)
		waits, brief = append(waits, wait), append(brief, short)
	}
	if _, err := r.Close(); err != nil {
		return nil, fmt.Errorf("look at locks: %w", err)
	}
	if bad == nil && len(waits) != len(ids) {
		bad = fmt.Errorf("%d rows for %d sessions", len(waits), len(ids))
	}
	if bad != nil {
		return nil, fmt.Errorf("look at locks: %w", bad)
	}
	dropBrief(ids, waits, brief)
	engine.MarkCycles(ids, waits)
	return waits, nil
}

// dropBrief takes back the waits for locks that are held within a statement only, unless whoever holds one waits in turn.
func dropBrief(ids []uint64, waits []engine.Wait, brief []bool) {
	lasting := func(pid uint64) bool {
		i := slices.Index(ids, pid)
		return i >= 0 && waits[i].Blocked && !brief[i]
	}
	for again := true; again; {
		again = false
		for i, b := range brief {
			if b && slices.ContainsFunc(waits[i].For, lasting) {
				brief[i], again = false, true
			}
		}
	}
	for i, b := range brief {
		if b {
			waits[i] = engine.Wait{}
		}
	}
}

// waitOf reads a row: pid, blockers, safe snapshot's blockers, "locktype mode" or the wait event or NULL. brief says that the lock is one that
// is held within a statement only.
func waitOf(row [][]byte, ids []uint64) (w engine.Wait, brief bool, err error) {
	blockers, err := parsePIDs(row[1])
	if err != nil {
		return engine.Wait{}, false, err
	}
	kind := engine.WaitSnapshot
	if len(blockers) == 0 {
		if blockers, err = parsePIDs(row[2]); err != nil {
			return engine.Wait{}, false, err
		}
	} else {
		if row[3] == nil {
			return engine.Wait{}, false, nil
		}
		brief, kind = short(string(row[3])), kindOf(string(row[3]))
	}
	if len(blockers) == 0 && string(row[3]) != safeSnapshot {
		return engine.Wait{}, false, nil
	}
	w = engine.Wait{Blocked: true, Kind: kind}
	for _, pid := range blockers {
		if slices.Contains(ids, pid) {
			w.For = append(w.For, pid)
		} else {
			w.Foreign = true // pid 0 is a prepared transaction
		}
	}
	slices.Sort(w.For)
	w.For = slices.Compact(w.For)
	return w, brief, nil
}

// parsePIDs reads an int4[] in text form.
func parsePIDs(text []byte) ([]uint64, error) {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return nil, fmt.Errorf("read process ids: %q is no array", text)
	}
	var pids []uint64
	for text = text[1 : len(text)-1]; len(text) > 0; {
		end := slices.Index(text, ',')
		if end < 0 {
			end = len(text)
		}
		pid, err := strconv.ParseUint(string(text[:end]), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read process ids: %w", err)
		}
		pids = append(pids, pid)
		text = text[min(end+1, len(text)):]
	}
	return pids, nil
}

// lockType takes "transactionid ShareLock" apart.
func lockType(lock string) string {
	for i := range len(lock) {
		if lock[i] == ' ' {
			return lock[:i]
		}
	}
	return lock
}

// short reports whether a lock is one that the server holds within a statement only, mostly for microseconds: the wait ends
// by itself (PostgreSQL manual, table 28.12: extend, frozenid, page, spectoken).
func short(lock string) bool {
	switch lockType(lock) {
	case "extend", "frozenid", "page", "spectoken":
		return true
	}
	return false
}

// kindOf says in our words what pg_locks calls locktype and mode.
func kindOf(lock string) engine.WaitKind {
	switch lockType(lock) {
	case "transactionid", "tuple":
		// Row locks are not in memory: whoever needs a row waits for the end of the transaction that has it, and who comes
		// after that one queues for the tuple (PostgreSQL manual, 54.12, pg_locks).
		return engine.WaitRow
	case "virtualxid":
		return engine.WaitTransaction // CREATE INDEX CONCURRENTLY and the like
	case "relation":
		return engine.WaitTable
	case "object", "userlock":
		return engine.WaitMetadata
	case "advisory":
		return engine.WaitAdvisory
	}
	return engine.WaitOther
}

// Alive looks for the backend among those that report their activity. A backend takes itself off that list after it has
// let go of its locks (proc_exit, src/backend/storage/ipc/ipc.c: before_shmem_exit callbacks come first).
func (w *watcher) Alive(ctx context.Context, id uint64) (bool, error) {
	r, err := w.conn.Exec(ctx, "SELECT count(*) FROM pg_catalog.pg_stat_get_activity("+strconv.FormatUint(id, 10)+")").ReadAll()
	if err != nil {
		return false, fmt.Errorf("look for session %d: %w", id, err)
	}
	return string(r[0].Rows[0][0]) != "0", nil
}

func (w *watcher) Kill(ctx context.Context, id uint64) error {
	_, err := w.conn.Exec(ctx, "SELECT pg_catalog.pg_terminate_backend("+strconv.FormatUint(id, 10)+")").ReadAll()
	if err != nil {
		return fmt.Errorf("end session %d: %w", id, err)
	}
	return nil
}

func (w *watcher) Close() error {
	if err := w.conn.Close(context.Background()); err != nil {
		return fmt.Errorf("close watcher: %w", err)
	}
	return nil
}
