package level_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"wirecheck/history"
	"wirecheck/history/observed"
)

// act is a read of the version that a transaction wrote (nil: the initial one), or a write. stmt is its place among the statements.
type act struct {
	write bool
	row   int
	from  *txn
	stmt  int
	tick  uint64
}

// txn is a transaction of a store.
type txn struct {
	id, session, from, to uint64
	outcome               history.Outcome
	acts                  []act
	stmts                 int
	number                int // of its commit, from 1; 0: none

	point, floor int           // how many commits it sees, and sees at least
	halves       [2]int        // the same, of even and of odd rows
	sees         map[*txn]bool // or which
	readOnly     bool
}

func (t *txn) wrote(row int) bool {
	return slices.ContainsFunc(t.acts, func(a act) bool { return a.write && a.row == row })
}

// kind is how a store works: what a transaction sees, and what it refuses.
type kind struct {
	level   string
	begin   func(s *store, t *txn)                    // sets what t sees
	stmt    func(s *store, t *txn)                    // before each statement
	version func(s *store, t *txn, row int) *txn      // what a read returns; nil func: the newest that t sees
	write   func(s *store, t *txn, row int) (ok bool) // at once; nil: always
	commit  func(s *store, t *txn, rows []int) (ok bool)
	single  bool // a statement reads one row
	locks   bool // a write holds its row until its transaction ends
	forks   bool // what a transaction's own write met may be newer than what else it reads: of lists, that shows through
}

// store is a database with versions that keeps one level's promises, and no other.
type store struct {
	kind
	rng      *rand.Rand
	chains   [][]*txn // by row: who wrote its versions, in their order
	log      []*txn   // committed, in the order of the commits
	all      []*txn
	open     map[int]*txn
	past     []int           // by session: how many commits it has seen
	known    []map[*txn]bool // by session
	tick, id uint64
}

// any is a number from low to high.
func (s *store) between(low, high int) int { return low + s.rng.IntN(high-low+1) }

func (s *store) now() int { return len(s.log) }

// newest is the last version of a row that see sees.
func (s *store) newest(row int, see func(*txn) bool) *txn {
	for _, w := range slices.Backward(s.chains[row]) {
		if w.number > 0 && see(w) {
			return w
		}
	}
	return nil
}

func (s *store) at(row, point int) *txn {
	return s.newest(row, func(w *txn) bool { return w.number <= point })
}

// place is that of a version among those of its row, from 1; the initial one has 0.
func (s *store) place(row int, w *txn) int { return slices.Index(s.chains[row], w) + 1 }

// lastRead is what a transaction read last of a row.
func (t *txn) lastRead(row int) (w *txn, ok bool) {
	for _, a := range slices.Backward(t.acts) {
		if !a.write && a.row == row && a.from != t {
			return a.from, true
		}
	}
	return nil, false
}

// current refuses to write a row of which the transaction read another version than the newest.
func current(s *store, t *txn, row int) bool {
	return !slices.ContainsFunc(t.acts, func(a act) bool { return !a.write && a.row == row && a.from != t && a.from != s.at(row, s.now()) })
}

// firstWins refuses transactions whose rows changed behind their point.
func firstWins(s *store, t *txn, rows []int) bool {
	return !slices.ContainsFunc(rows, func(row int) bool { w := s.at(row, s.now()); return w != nil && w.number > t.point })
}

// validated refuses transactions that read what is not the newest any more, unless they read only.
func validated(s *store, t *txn, rows []int) bool {
	return len(rows) == 0 || !slices.ContainsFunc(t.acts, func(a act) bool { return !a.write && a.from != t && a.from != s.at(a.row, s.now()) })
}

func anyPoint(s *store, t *txn)  { t.point = s.between(0, s.now()) }
func ownPoint(s *store, t *txn)  { t.point = s.between(s.past[t.session], s.now()) }
func lastPoint(s *store, t *txn) { t.point = s.now() }
func readers(low func(*store, *txn) int) func(*store, *txn) {
	return func(s *store, t *txn) {
		if t.point = s.now(); t.readOnly {
			t.point = s.between(low(s, t), s.now())
		}
	}
}

// causes lets a transaction see what its session has seen, and perhaps more, with all that it rests on.
func causes(s *store, t *txn) {
	t.sees = s.known[t.session]
	for _, w := range s.log {
		if s.rng.IntN(2*len(s.log)) < 3 {
			for x := range w.sees {
				t.sees[x] = true
			}
			t.sees[w] = true
		}
	}
	seen := map[*txn]bool{}
	for x := range t.sees {
		seen[x] = true
	}
	t.sees = seen
}

// atomic gives a version with which no read of the transaction is fractured; itself if there is none.
func atomic(s *store, t *txn, row int) *txn {
	if w, ok := t.lastRead(row); ok {
		return w
	}
	var fit []*txn
	for _, w := range append([]*txn{nil}, s.chains[row]...) {
		ok := w == nil || w.number > 0
		for _, a := range t.acts {
			if ok = ok && (a.write || a.from == t || (w == nil || !w.wrote(a.row) || s.place(a.row, a.from) >= s.place(a.row, w)) &&
				(a.from == nil || !a.from.wrote(row) || s.place(row, w) >= s.place(row, a.from))); !ok {
				break
			}
		}
		if ok {
			fit = append(fit, w)
		}
	}
	if len(fit) == 0 {
		return t
	}
	return fit[s.rng.IntN(len(fit))]
}

// kinds are the stores, each behind the level that it keeps.
var kinds = []kind{
	{level: "PL-1", locks: true, begin: lastPoint, version: func(s *store, t *txn, row int) *txn {
		for _, u := range s.open {
			if u != t && u.wrote(row) {
				return u
			}
		}
		return s.at(row, s.between(0, s.now()))
	}},
	{level: "PL-2", locks: true, begin: lastPoint, version: func(s *store, t *txn, row int) *txn { return s.at(row, s.between(0, s.now())) }},
	{level: "read committed with monotonic reads", locks: true, begin: lastPoint, stmt: func(_ *store, t *txn) { t.floor = max(t.floor, t.point) },
		version: func(s *store, t *txn, row int) *txn {
			p := s.between(t.floor, s.now())
			t.point = max(t.point, p)
			return s.at(row, p)
		}},
	{level: "cursor stability", locks: true, begin: lastPoint, write: current, version: func(s *store, t *txn, row int) *txn { return s.at(row, s.between(0, s.now())) }},
	{level: "monotonic atomic view", locks: true, forks: true, begin: anyPoint, stmt: func(s *store, t *txn) { t.point = s.between(t.point, s.now()) }},
	{level: "read atomic", locks: true, forks: true, begin: lastPoint, version: atomic},
	{level: "update atomic", locks: true, forks: true, begin: lastPoint, version: atomic, write: current},
	{level: "causal", forks: true, begin: causes},
	{level: "parallel snapshot isolation", begin: causes, commit: func(s *store, t *txn, rows []int) bool {
		return !slices.ContainsFunc(rows, func(row int) bool { w := s.at(row, s.now()); return w != nil && !t.sees[w] })
	}},
	{level: "prefix consistency", forks: true, begin: ownPoint},
	{level: "snapshot isolation", begin: anyPoint, commit: firstWins},
	{level: "strong session snapshot isolation", begin: ownPoint, commit: firstWins},
	{level: "strong snapshot isolation", begin: lastPoint, commit: firstWins},
	{level: "PL-3U", commit: validated, begin: func(s *store, t *txn) {
		t.halves = [2]int{s.now(), s.now()}
		if t.readOnly {
			t.halves = [2]int{s.between(0, s.now()), s.between(0, s.now())}
		}
	}, version: func(s *store, t *txn, row int) *txn { return s.at(row, t.halves[row%2]) }},
	{level: "PL-3", commit: validated, begin: readers(func(*store, *txn) int { return 0 })},
	{level: "PL-2.99", commit: validated, begin: readers(func(*store, *txn) int { return 0 })},
	{level: "strong session serializable", commit: validated, begin: readers(func(s *store, t *txn) int { return s.past[t.session] })},
	{level: "strict serializable", commit: validated, begin: lastPoint},
}

// simulate executes so many transactions.
func simulate(k kind, rng *rand.Rand, txns int) *store {
	sessions := 1 + rng.IntN(min(5, txns))
	s := &store{kind: k, rng: rng, chains: make([][]*txn, 1+rng.IntN(5)), open: map[int]*txn{}, past: make([]int, sessions+1), tick: 1000}
	s.single = s.single || rng.IntN(2) == 0
	for range sessions + 1 {
		s.known = append(s.known, map[*txn]bool{})
	}
	for s.id < uint64(txns) || len(s.open) > 0 {
		session := 1 + rng.IntN(sessions)
		s.tick += 2
		switch t := s.open[session]; {
		case t == nil && s.id < uint64(txns):
			s.id++
			t = &txn{id: s.id, session: uint64(session), from: s.tick, readOnly: rng.IntN(3) == 0}
			if s.begin != nil {
				s.begin(s, t)
			}
			s.open[session] = t
			s.all = append(s.all, t)
		case t == nil:
		case t.stmts > rng.IntN(5):
			s.end(t, rng.IntN(12) > 0)
		default:
			s.step(t)
		}
	}
	return s
}

// step executes a statement.
func (s *store) step(t *txn) {
	if s.stmt != nil && t.stmts > 0 {
		s.stmt(s, t)
	}
	t.stmts++
	row := s.rng.IntN(len(s.chains))
	if s.level == "PL-3U" && !t.readOnly && len(s.chains) > 1 { // what changes keeps to one half
		for row%2 != int(t.id)%2 {
			row = s.rng.IntN(len(s.chains))
		}
	}
	if !t.readOnly && s.rng.IntN(2) == 0 && !t.wrote(row) {
		held := false
		for _, u := range s.open {
			held = held || s.locks && u != t && u.wrote(row)
		}
		switch {
		case held:
		case s.write != nil && !s.write(s, t, row):
			s.end(t, false)
		default:
			t.acts = append(t.acts, act{true, row, nil, t.stmts, s.tick})
		}
		return
	}
	read := []int{row}
	if !s.single && len(s.chains) > 1 && s.rng.IntN(2) == 0 {
		read = append(read, (row+1)%len(s.chains))
	}
	for _, row := range read {
		if s.level == "PL-3U" && !t.readOnly && row%2 != int(t.id)%2 {
			continue
		}
		w := t
		switch {
		case t.wrote(row):
		case s.version != nil:
			if w = s.version(s, t, row); w == t {
				s.end(t, false)
				return
			}
		case t.sees != nil:
			w = s.newest(row, func(w *txn) bool { return t.sees[w] })
		default:
			w = s.at(row, t.point)
		}
		t.acts = append(t.acts, act{false, row, w, t.stmts, s.tick})
	}
}

// end commits a transaction, or rolls it back.
func (s *store) end(t *txn, commit bool) {
	var rows []int
	for _, a := range t.acts {
		if a.write {
			rows = append(rows, a.row)
		}
	}
	commit = commit && (s.commit == nil || s.commit(s, t, rows))
	t.to = s.tick + 1
	t.outcome = history.OutcomeAborted
	for _, row := range rows {
		s.chains[row] = append(s.chains[row], t)
	}
	if commit {
		t.outcome = history.OutcomeCommitted
		if len(rows) > 0 {
			s.log = append(s.log, t)
			t.number = len(s.log)
			t.point = t.number
		}
		s.past[t.session] = max(s.past[t.session], t.point)
		if t.sees != nil {
			for w := range t.sees {
				s.known[t.session][w] = true
			}
			if len(rows) > 0 {
				s.known[t.session][t] = true
			}
		}
	}
	delete(s.open, int(t.session))
}

func token(t *txn) string { return fmt.Sprint("T", t.id) }

func version(row int, w *txn) string {
	if w == nil {
		return fmt.Sprintf("r%d", row)
	}
	return fmt.Sprintf("r%dT%d", row, w.id)
}

// events is the history as a proxy records it.
func (s *store) events() (out []history.Event) {
	sessions := map[uint64]bool{}
	for _, t := range s.all {
		if !sessions[t.session] {
			sessions[t.session] = true
			out = append(out, history.Event{Kind: history.EventSession, Session: t.session, Engine: "postgres"})
		}
		out = append(out, history.Event{Kind: history.EventBegin, Session: t.session, Txn: t.id, From: t.from, To: t.from, Tokens: []string{token(t)}})
		for i := 0; i < len(t.acts); {
			a := t.acts[i]
			e := history.Event{Kind: history.EventStmt, Session: t.session, Txn: t.id, N: a.stmt, From: a.tick, To: a.tick + 1, Coverage: history.CoverageExact}
			for ; i < len(t.acts) && t.acts[i].stmt == a.stmt; i++ {
				a := t.acts[i]
				x := history.Access{Op: history.OpRead, Row: history.Row{Table: "t", Key: fmt.Sprint(a.row)}, Order: history.OrderInitial}
				w := a.from
				if a.write {
					x.Op, w = history.OpUpdate, t
				}
				if x.Version = version(a.row, w); w != nil {
					x.Order = uint64(s.place(a.row, w) + 1)
					if w != t {
						x.Writer = token(w)
					}
				}
				e.Accesses = append(e.Accesses, x)
			}
			out = append(out, e)
		}
		out = append(out, history.Event{Kind: history.EventEnd, Session: t.session, Txn: t.id, From: t.to - 1, To: t.to, Outcome: t.outcome})
	}
	slices.SortStableFunc(out, func(a, b history.Event) int { return cmp.Compare(a.To, b.To) })
	return out
}

// observed is the history as a client sees it, of registers or of lists.
func (s *store) observed(lists bool) *observed.History {
	h := &observed.History{Ordered: true, KnownInitial: true}
	byEnd := slices.SortedStableFunc(slices.Values(s.all), func(a, b *txn) int { return cmp.Compare(a.to, b.to) })
	for _, t := range byEnd {
		x := observed.Transaction{ID: t.id, Session: t.session, Outcome: t.outcome, Begin: t.from, End: t.to}
		for _, a := range t.acts {
			op := observed.Op{Key: fmt.Sprint(a.row)}
			w := a.from
			if a.write {
				w = t
			}
			switch op.Value = version(a.row, w); {
			case a.write && lists:
				op.Kind = observed.Append
			case a.write:
				op.Kind = observed.Write
			case t.outcome != history.OutcomeCommitted:
				op.Unknown = true
			case lists:
				op.IsList, op.Initial, op.Value = true, w == nil, ""
				for _, u := range s.chains[a.row][:s.place(a.row, w)] {
					if u.number > 0 || u == w {
						op.List = append(op.List, version(a.row, u))
					}
				}
				op.Initial = len(op.List) == 0
			case w == nil:
				op.Initial, op.Value = true, ""
			}
			x.Ops = append(x.Ops, op)
		}
		h.Transactions = append(h.Transactions, x)
	}
	return h
}
