package engine

import "context"

// Watcher asks a server, over a side connection of its own, which sessions wait for a lock. It belongs to one goroutine
// at a time. It keeps what it needs to be sure, so a run uses one watcher from beginning to end.
//
// How to use it: submit a step; if no answer comes within some 250 us (a time.Sleep of less than 1 ms takes 1 ms: use
// nanosleep, or ask at once), call Look again and again, without pause, until the answer comes or Look says that the
// step waits. Each Look is itself a wait of 50 to 300 us on a socket, so asking back to back costs little and finds a
// wait within a millisecond. A wait is to be believed only until any step finishes; then ask again: InnoDB wakes
// waiters that may go on to wait for the next row. A wait with Cycle is never to be believed: the engine is about to end
// it. A session that is not blocked may be busy or asleep: wait for its answer. For what an engine does not show
// (Descriptor.Silent), a time limit is the only sign.
type Watcher interface {
	// Look tells of each of the connections whether it waits for a lock right now, in their order.
	Look(ctx context.Context, ids []uint64) ([]Wait, error)
	// Alive reports whether the server still has the connection, and so may hold its locks.
	Alive(ctx context.Context, id uint64) (bool, error)
	// Kill ends a connection on the server, whatever it is doing. That it is gone already is no error.
	Kill(ctx context.Context, id uint64) error
	Close() error
}

// Wait is what a look says of one connection.
type Wait struct {
	Blocked bool
	Kind    WaitKind // what for; stable: the same situation gives the same word. Empty unless Blocked
	// For are those of the connections asked about that it waits for, in ascending order, where the engine tells
	// cheaply. Empty does not mean that there is none.
	For []uint64
	// Foreign says that it waits for a connection (or a prepared transaction) that was not asked about.
	Foreign bool
	// Cycle says that the wait is part of a circle of waits which the engine breaks by itself (deadlock), or may be
	// until it has been looked at for longer. It must not be believed.
	Cycle bool
	// Unseen says that the server could not be asked whether the connection waits: only time can tell (Descriptor.Patience).
	Unseen bool
}

// WaitKind says what a session waits for.
type WaitKind string

// The kinds of waits.
const (
	WaitRow           WaitKind = "row"            // a row, or its next-key
	WaitGap           WaitKind = "gap"            // a gap between rows, to insert into it
	WaitTransaction   WaitKind = "transaction"    // PostgreSQL: the end of a transaction, whatever it did
	WaitTable         WaitKind = "table"          // a whole table
	WaitAutoIncrement WaitKind = "auto-increment" // the table's AUTO_INCREMENT lock
	WaitMetadata      WaitKind = "metadata"       // the definition of a table or another object
	WaitGlobal        WaitKind = "global"         // FLUSH TABLES WITH READ LOCK, backup locks
	WaitAdvisory      WaitKind = "advisory"       // pg_advisory_lock, GET_LOCK
	WaitSnapshot      WaitKind = "safe snapshot"  // PostgreSQL: READ ONLY DEFERRABLE
	WaitOther         WaitKind = "lock"           // something else that is a lock
)

// MarkCycles sets Cycle on the waits that lie on a circle of For edges. ids[i] is the connection of waits[i].
func MarkCycles(ids []uint64, waits []Wait) {
	index := make(map[uint64]int, len(ids))
	for i, id := range ids {
		index[id] = i
	}
	seen := make([]int, len(ids)) // by which start it was reached, plus one
	for start := range waits {
		if waits[start].Blocked && reaches(start, start, start+1, index, waits, seen) {
			waits[start].Cycle = true
		}
	}
}

// reaches reports whether a way along For edges leads from a wait to the target.
func reaches(from, target, mark int, index map[uint64]int, waits []Wait, seen []int) bool {
	for _, id := range waits[from].For {
		next, known := index[id]
		switch {
		case !known || seen[next] == mark || !waits[next].Blocked:
			continue
		case next == target:
			return true
		}
		seen[next] = mark
		if reaches(next, target, mark, index, waits, seen) {
			return true
		}
	}
	return false
}
