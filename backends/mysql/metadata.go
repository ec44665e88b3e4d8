package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"wirecheck/backends/engine"
)

// metadataLocks lists the locks that are no locks of InnoDB: on definitions, global ones, and those of GET_LOCK.
const metadataLocks = "SELECT m.OBJECT_TYPE, m.OBJECT_SCHEMA, m.OBJECT_NAME, m.LOCK_TYPE, m.LOCK_STATUS, t.PROCESSLIST_ID" +
	" FROM performance_schema.metadata_locks m JOIN performance_schema.threads t ON t.THREAD_ID = m.OWNER_THREAD_ID WHERE t.PROCESSLIST_ID IS NOT NULL"

// metadataLock is one of them.
type metadataLock struct {
	object  string
	kind    string // SHARED_READ, EXCLUSIVE, ...
	granted bool
	owner   uint64
}

// metadataBlockers adds to waits for such locks for whom they are (MySQL; MariaDB shows them only where an instrument is switched on).
func metadataBlockers(ctx context.Context, c engine.Conn, ids []uint64, waits []engine.Wait) error {
	if !slices.ContainsFunc(waits, isMetadata) {
		return nil
	}
	rows, err := engine.Query(ctx, c, metadataLocks)
	if err != nil {
		return err
	}
	locks := make([]metadataLock, 0, len(rows))
	for _, row := range rows {
		owner, err := strconv.ParseUint(string(row[5]), 10, 64)
		if err != nil {
			return fmt.Errorf("read the owner of a metadata lock: %w", err)
		}
		locks = append(locks, metadataLock{
			object: fmt.Sprintf("%s %q %q", row[0], row[1], row[2]), kind: string(row[3]), granted: string(row[4]) == "GRANTED", owner: owner,
		})
	}
	for i := range waits {
		if !isMetadata(waits[i]) {
			continue
		}
		for _, owner := range metadataOwners(ids[i], locks) {
			if slices.Contains(ids, owner) {
				waits[i].For = append(waits[i].For, owner)
			} else {
				waits[i].Foreign = true
			}
		}
	}
	return nil
}

func isMetadata(w engine.Wait) bool {
	return w.Blocked && (w.Kind == engine.WaitMetadata || w.Kind == engine.WaitGlobal || w.Kind == engine.WaitAdvisory)
}

// metadataOwners are those who hold what the session's pending lock has to wait for; if nobody does, those whose own pending locks go
// before it.
func metadataOwners(session uint64, locks []metadataLock) []uint64 {
	var holders, queue []uint64
	for _, wanted := range locks {
		if wanted.owner != session || wanted.granted {
			continue
		}
		for _, l := range locks {
			if l.owner == session || l.object != wanted.object || !metadataConflict(l.kind, wanted.kind) {
				continue
			}
			if l.granted {
				holders = append(holders, l.owner)
			} else {
				queue = append(queue, l.owner)
			}
		}
	}
	if len(holders) == 0 {
		holders = queue
	}
	slices.Sort(holders)
	return slices.Compact(holders)
}

// weakMetadata are kinds of locks with those that they can stand beside, wanted or held; the rest exclude each other (MySQL source,
// sql/mdl.cc, the matrices of MDL_object_lock and MDL_scoped_lock). Whatever is not here excludes all.
var weakMetadata = map[string][]string{
	"INTENTION_EXCLUSIVE":   {"INTENTION_EXCLUSIVE"},
	"SHARED":                {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE"},
	"SHARED_HIGH_PRIO":      {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE", "SHARED_NO_READ_WRITE"},
	"SHARED_READ":           {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE"},
	"SHARED_WRITE":          {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE"},
	"SHARED_WRITE_LOW_PRIO": {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_UPGRADABLE"},
	"SHARED_UPGRADABLE":     {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_WRITE", "SHARED_WRITE_LOW_PRIO", "SHARED_READ_ONLY"},
	"SHARED_READ_ONLY":      {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_UPGRADABLE", "SHARED_READ_ONLY", "SHARED_NO_WRITE"},
	"SHARED_NO_WRITE":       {"SHARED", "SHARED_HIGH_PRIO", "SHARED_READ", "SHARED_READ_ONLY"},
	"SHARED_NO_READ_WRITE":  {"SHARED", "SHARED_HIGH_PRIO"},
}

func metadataConflict(held, wanted string) bool { return !slices.Contains(weakMetadata[wanted], held) }
