package scenario

import "slices"

// Action is the kind of a statement, as far as the order of statements can matter.
type Action int

// The actions. The zero value is the safe one.
const (
	ActUnknown Action = iota // anything: depends on everything. Also DDL, TRUNCATE, LOCK TABLES, calls of routines
	ActLocal                 // touches only its own session: SET of a session variable, SAVEPOINT, RELEASE
	ActBegin                 // begins a transaction
	ActEnd                   // COMMIT, ROLLBACK, ROLLBACK TO SAVEPOINT: lets go of locks, shows or undoes writes
	ActRead                  // reads without locks
	ActWrite                 // writes or locks rows, and perhaps reads
)

// Footprint is what one statement does.
type Footprint struct {
	Action Action
	// Reads and Writes are the tables, by names that are equal if the tables are, including those reached through views,
	// foreign keys and triggers; a statement of which they are not all known is ActUnknown. A locking read writes.
	Reads, Writes []string
	// Partial marks an ActEnd that ends only a part of its transaction (ROLLBACK TO SAVEPOINT).
	Partial bool
	// Snapshot marks an ActBegin that takes the snapshot (WITH CONSISTENT SNAPSHOT).
	Snapshot bool
}

// Analyze gives the footprints of the statements in an SQL text, in their order. It may be handed any text.
type Analyze func(sql string) []Footprint

// Traits are what an engine does at a level, as far as the order of statements can matter. The zero value fits engines
// whose reads neither lock nor count when transactions are certified.
type Traits struct {
	SnapshotAtBegin bool // BEGIN takes the snapshot (TiDB), not the first statement
	ReadsLock       bool // plain reads take locks (MySQL family, SERIALIZABLE)
	Certifies       bool // the engine judges transactions by all that they read and wrote (PostgreSQL, SERIALIZABLE)
	ErrorsRelease   bool // whatever statement fails in a transaction, its locks are gone (PostgreSQL)
}

// Independence makes an Independent relation from what the statements touch. Two steps are independent if no statement of
// one depends on one of the other. Statements depend on each other if one writes what the other reads or writes, and
// further, if their transactions are connected:
//
//   - if both can block: the order decides who waits, and who is the deadlock's victim;
//   - if one can let go of locks, by ending its transaction, as a deadlock's victim or by failing, and the other can block, ends its own
//     or takes its snapshot, or reads what any of the connected transactions writes: whoever waited goes on, to the end
//     of what it has submitted by then;
//   - if the engine certifies transactions, unless one is a BEGIN.
//
// Two transactions are connected if one writes what the other reads or writes, if they are of the same session and a
// statement in it can block (it delays all that follow), or if both are connected with a third.
// A statement outside a transaction is a transaction of its own that ends with it. A transaction with an unknown
// statement is connected with all. Tables are the grain: rows and predicates are not looked at.
//
// The relation holds for runs in which a step waits its turn in the permutation, those of a session that is blocked are made up
// for in the same order, and the steps of an aborted transaction that are left are not executed.
func Independence(s *Spec, analyze Analyze, traits Traits) Independent {
	a := analysis{traits: traits, steps: make(map[*Step][]act)}
	for i, session := range s.Sessions {
		a.session(i, session, analyze)
	}
	a.connect()
	return func(x, y *Step) bool {
		if x.Session == y.Session {
			return false
		}
		for _, p := range a.steps[x] {
			for _, q := range a.steps[y] {
				if a.depend(p, q) {
					return false
				}
			}
		}
		return len(a.steps[x]) > 0 && len(a.steps[y]) > 0
	}
}

// act is a statement within its transaction.
type act struct {
	Footprint
	txn      *txn
	blocks   bool // can wait for others, or be waited for
	snapshot bool // takes its transaction's snapshot
	ends     bool // ends its transaction, or a part of it
	releases bool // can let go of locks: it ends, or fails, as a deadlock's victim at least, while others wait for locks it has
}

type txn struct {
	session       int
	reads, writes []string
	unknown       bool
	blocks        bool // some statement can
	group         int  // of connected transactions
}

type analysis struct {
	traits Traits
	txns   []*txn
	steps  map[*Step][]act
}

func (a *analysis) begin(session int) *txn {
	t := &txn{session: session}
	a.txns = append(a.txns, t)
	return t
}

// session follows a session's statements, those of its setup first, and tells to which transaction each belongs.
func (a *analysis) session(number int, s *Session, analyze Analyze) {
	var open *txn
	snapshot := false
	one := func(f Footprint) act {
		if f.Action == ActBegin && open != nil {
			f.Action = ActUnknown // ends the transaction in some engines, changes nothing in others
		}
		x := act{Footprint: f}
		switch {
		case f.Action == ActBegin:
			open, snapshot = a.begin(number), f.Snapshot || a.traits.SnapshotAtBegin
			x.txn, x.snapshot = open, snapshot
			return x
		case open == nil:
			x.txn = a.begin(number)
			x.ends = f.Action == ActWrite || f.Action == ActRead && a.traits.ReadsLock
		default:
			x.txn = open
		}
		t := x.txn
		t.reads = append(t.reads, f.Reads...)
		t.writes = append(t.writes, f.Writes...)
		t.unknown = t.unknown || f.Action == ActUnknown
		x.blocks = f.Action == ActWrite || f.Action == ActRead && a.traits.ReadsLock
		// An engine may take the snapshot at the first statement that touches data or at the first plain read; each that
		// could be the one counts.
		x.snapshot = (f.Action == ActRead || f.Action == ActWrite) && (open == nil || !snapshot)
		if open != nil && f.Action == ActRead {
			snapshot = true
		}
		if f.Action == ActEnd {
			x.ends = true
			if !f.Partial {
				open, snapshot = nil, false
			}
		}
		x.releases = x.ends || (x.blocks || a.traits.ErrorsRelease) && t.blocks
		t.blocks = t.blocks || x.blocks
		return x
	}
	if s.Setup != nil {
		for _, f := range analyze(s.Setup.SQL) {
			one(f)
		}
	}
	for _, st := range s.Steps {
		for _, f := range analyze(st.SQL) {
			a.steps[st] = append(a.steps[st], one(f))
		}
	}
}

// connect numbers the groups of connected transactions.
func (a *analysis) connect() {
	for i, t := range a.txns {
		t.group = i
	}
	for changed := true; changed; {
		changed = false
		for _, t := range a.txns {
			for _, u := range a.txns {
				if t.group != u.group && (t.conflicts(u) || t.session == u.session && a.sessionBlocks(t.session)) {
					t.group = min(t.group, u.group)
					u.group = t.group
					changed = true
				}
			}
		}
	}
}

func (a *analysis) sessionBlocks(session int) bool {
	return slices.ContainsFunc(a.txns, func(t *txn) bool { return t.session == session && t.blocks })
}

func (t *txn) conflicts(u *txn) bool {
	return t.unknown || u.unknown || share(t.writes, u.writes) || share(t.writes, u.reads) || share(t.reads, u.writes)
}

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(table string) bool { return slices.Contains(b, table) })
}

// depend is symmetric.
func (a *analysis) depend(p, q act) bool {
	switch {
	case p.Action == ActUnknown || q.Action == ActUnknown:
		return true
	case p.Action == ActLocal && !p.releases || q.Action == ActLocal && !q.releases:
		return false
	case share(p.Writes, q.Writes) || share(p.Writes, q.Reads) || share(p.Reads, q.Writes):
		return true
	case p.txn.group != q.txn.group:
		return false
	case p.Action == ActBegin && !p.snapshot || q.Action == ActBegin && !q.snapshot:
		return false
	case a.traits.Certifies:
		return true
	}
	return p.blocks && q.blocks || p.releases && a.minds(q) || q.releases && a.minds(p)
}

// minds reports whether x can tell whether transactions of other sessions, connected with its own, went on.
func (a *analysis) minds(x act) bool {
	return x.ends || x.blocks || x.snapshot || slices.ContainsFunc(a.txns, func(t *txn) bool {
		return t.group == x.txn.group && t.session != x.txn.session && share(x.Reads, t.writes)
	})
}
