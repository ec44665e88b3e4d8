// Package sieve says which transactions of a history may be part of an anomaly, before package isolation names and explains what they are part
// of. Nearly all transactions of a history are in no cycle, and this package spends on them what it takes to see that: numbers in arrays, no
// texts, nothing forgotten.
//
// # What it keeps
//
// A transaction's accesses are kept while it is open. Then they become facts of rows (type fact), with hashes for names. Rows gives, for the facts of
// some rows, the edges between transactions; Meeting takes the edges of all rows and says which transactions are suspect. So rows can be judged
// apart, by their hash, and only edges meet in one place.
//
// # Why it misses nothing
//
// Call E the edges that the Checker of package isolation draws, of all the history or of a part of its transactions. For each edge of E from A to B there is
// a path from A to B in the edges drawn here, and all transactions on it are nodes: a Checker that does not know what lies between two versions
// draws A -> B where another one draws A -> X -> B. So the transactions of a cycle of E are in one strongly connected component here. Given all
// transactions of a component, a Checker draws between them what it would have drawn of the whole history: an edge that stands for a path over
// X is not drawn where X is there, and X is in the component if both of its ends are. What else decides which edge is drawn comes from the
// accesses of the transactions themselves, with these exceptions, for which more transactions are given to the Checker than are suspect (context):
//   - The place of a version may be told by another access than that of the suspect. Then all that touched the version go along.
//   - A version whose writer did not tell it, but a reader, is there for the one alone who was given both.
//   - What people know a row by is told by the first transaction that says it.
//   - What an INSERT that does not say so found in the row is told by all that touched the version before its own.
//   - What an UPDATE left as it was is told by the image that the version has which it replaced.
//   - With real time, a transaction that ended before another one began, and of which the ticks do not say so.
//
// Edges drawn here that the Checker does not draw cost work and nothing else. What it reports without a cycle (reads of what was undone, of
// versions that are not final, of the future, own writes that are not seen) makes its transactions suspect, if only it is possible. A table whose rows
// were chosen by conditions that can be evaluated makes one component of all that changed it or asked it. Where the history contradicts itself, or is so
// that the order of arrival decides what is believed, nothing is decided here: then all transactions are suspect (Result.All).
package sieve

import (
	"cmp"
	"slices"

	"wirecheck/history"
	"wirecheck/product"
)

// Options are those of package isolation that change what is found.
type Options struct {
	// Ordered says that session order and real time count.
	Ordered bool
	// Level, if set, takes the place of the level that each transaction ran at.
	Level string
	// Transactions says that transactions alone are judged, not requests.
	Transactions bool
	// Recorder says which recorder's clock the ticks of a session are of. nil: there is one.
	Recorder func(session uint64) int
	// Order asks for an order of all transactions (Result.Order). It is one of levels if Ordered is set.
	Order bool
	// MaxAccesses is how many accesses and statements a transaction may have to be judged. 0: no limit.
	MaxAccesses int
	// Walks is from how many transactions in cycles on the cycles are looked for (Result.Walks). 0: never.
	Walks int
	// Commutes is asked at the end whether there may be writes of different columns of a row that commute. nil: there are none.
	Commutes func() bool
	// Parts is in how many parts the rows are judged. 0: in one. Each, if set, judges them: it calls do with each number below n, at the same time if it can.
	Parts int
	Each  func(n int, do func(part int))
}

// Sieve takes a history event by event. It is not safe for concurrent use.
type Sieve struct {
	opts     Options
	txns     txns
	open     map[uint64]*running
	late     map[uint64]*running
	sessions map[uint64]*session
	parts    []*Rows
	meeting  *Meeting
	requests index // the nodes of requests, by the hashes of their names
	tables   map[string]*table
	last     *table
	around   around
	spare    []*running
	why      string // not empty: nothing can be decided
	part     *Part  // not nil: it takes the rows of one part of several, and forgets

	pending bool // some transactions' writes were told late
	named   bool // accesses say what people know rows by
	images  bool // or what was in them
	rough   bool // or not all tell the places of versions
	inserts bool // INSERTs wrote versions without saying what they replaced

	loose int // writes of committed transactions whose place among the versions of the row is not told
}

// table is a table of the history.
type table struct {
	name           string
	hash           uint64
	bit            uint64 // in txns.tables; from the 64th table on they share one
	keyed, unkeyed bool   // its rows have keys, or have none
	asked          bool   // by conditions that can be evaluated
}

type session struct {
	number uint32
	open   *running
	late   []*running
}

// running is a transaction that has not ended, or whose writes are still to be told.
type running struct {
	id       uint64
	number   uint32
	session  *session
	level    string
	implicit bool
	stmts    []statement
	accesses []access
	tokens   []uint64
	request  string
	told     int // accesses, with those that are not of the part's rows
}

type statement struct {
	n               int
	from, to        uint64
	current, failed bool
}

type access struct {
	op    history.Op
	stmt  int32
	named bool
	made  bool // by an INSERT
	table *table
	key   uint64 // 0: none
	ver   uint64
	token uint64
	prev  uint64
	prevW uint64
	order uint64
	prevO uint64
	asOf  uint64
}

// New makes a Sieve.
func New(opts Options) *Sieve {
	s := &Sieve{opts: opts, open: map[uint64]*running{}, late: map[uint64]*running{}, sessions: map[uint64]*session{}, tables: map[string]*table{}}
	s.meeting = newMeeting(&s.txns)
	for range max(1, opts.Parts) {
		s.parts = append(s.parts, newRows(&s.txns))
	}
	return s
}

// undecided says that nothing can be decided, and why. A part goes on: what comes first is believed.
func (s *Sieve) undecided(why string) {
	if s.part == nil {
		s.why = cmp.Or(s.why, why)
	}
}

// Add takes the next event. Nothing of it is kept.
func (s *Sieve) Add(e *history.Event) {
	if s.why != "" {
		return
	}
	switch e.Kind {
	case history.EventSession:
		s.session(e.Session)
	case history.EventBegin:
		s.begin(e)
	case history.EventStmt:
		s.statement(e)
	case history.EventEnd:
		t := s.open[e.Txn]
		if t == nil {
			s.undecided("a transaction ends that was not open")
			return
		}
		s.tokens(t, e.Tokens)
		s.txns.tells(t.number, e.To, e.Outcome)
		if e.Pending {
			s.pending = true
			s.late[t.id] = t
			t.session.late = append(t.session.late, t)
		}
		s.end(t, e.Outcome)
		if !e.Pending {
			s.drop(t)
		}
	case history.EventClose:
		s.close(e)
	}
}

func (s *Sieve) session(id uint64) *session {
	in := s.sessions[id]
	if in == nil {
		in = &session{number: uint32(len(s.txns.recorders))}
		recorder := 0
		if s.opts.Recorder != nil {
			recorder = s.opts.Recorder(id)
		}
		s.txns.recorders = append(s.txns.recorders, recorder)
		s.sessions[id] = in
		if s.part != nil {
			id = s.part.o.Session(id)
		}
		s.txns.sessionIDs = append(s.txns.sessionIDs, id)
	}
	return in
}

func (s *Sieve) begin(e *history.Event) {
	in := s.session(e.Session)
	if s.open[e.Txn] != nil {
		s.undecided("a transaction begins twice")
		return
	}
	if t := in.open; t != nil {
		s.end(t, history.OutcomeUnknown)
		s.drop(t)
	}
	var t *running
	if n := len(s.spare); n > 0 {
		t, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		t = &running{}
	}
	*t = running{id: e.Txn, session: in, level: cmp.Or(s.opts.Level, e.Level), implicit: e.Implicit, stmts: t.stmts[:0], accesses: t.accesses[:0], tokens: t.tokens[:0]}
	t.number = s.txns.begin(e.Txn, in.number, e.From)
	in.open = t
	s.open[t.id] = t
	if s.part != nil {
		s.part.began(t, e)
	}
	s.tokens(t, e.Tokens)
}

func (s *Sieve) tokens(t *running, tokens []string) {
	for _, text := range tokens {
		if text == "" {
			continue
		}
		tok := tokenHash(text)
		if owner, had := s.txns.tokens.put(tok, t.number); had {
			if owner != t.number {
				s.undecided("two transactions have one token")
				if s.part != nil {
					s.part.bind(owner, t.number)
				}
			}
			continue
		}
		if s.txns.token[t.number] == 0 {
			s.txns.token[t.number] = tok
		}
		t.tokens = append(t.tokens, tok)
	}
}

const tokenSeed, versionSeed, keySeed, tableSeed, requestSeed = 1, 2, 3, 4, 5

func (t *running) find(n int) int {
	for i := len(t.stmts) - 1; i >= 0 && n > 0 && t.stmts[i].n >= n; i-- {
		if t.stmts[i].n == n {
			return i
		}
	}
	return -1
}

func (s *Sieve) statement(e *history.Event) {
	t := s.open[e.Txn]
	if t == nil {
		if t = s.late[e.Txn]; t != nil {
			s.finishLate(t, e)
		}
		return
	}
	s.tokens(t, e.Tokens)
	if s.part != nil {
		s.part.told(t)
	}
	if e.Request != "" && !s.opts.Transactions && anew(e) {
		s.undecided("a request made a row anew in the place of one that has another number")
	}
	if i := t.find(e.N); i >= 0 {
		st := &t.stmts[i]
		st.current, st.to = st.current || e.CurrentRead, max(st.to, e.To)
		s.accesses(t, i, e)
		if i < len(t.stmts)-1 {
			slices.SortStableFunc(t.accesses, func(a, b access) int { return int(a.stmt) - int(b.stmt) })
		}
		return
	}
	if e.Level != "" && s.opts.Level == "" {
		t.level = e.Level
	}
	if e.UndoesFrom > 0 && e.Error == nil {
		s.txns.is[t.number] |= undone
		for i := range t.stmts {
			t.stmts[i].failed = t.stmts[i].failed || t.stmts[i].n >= e.UndoesFrom
		}
	}
	if e.Error != nil && e.Coverage != history.CoverageNone {
		s.txns.is[t.number] |= undone
	}
	if e.Request != "" && e.Request != t.request && !s.opts.Transactions {
		t.request = e.Request
		s.request(t.number, hash(requestSeed, e.Request))
	}
	t.stmts = append(t.stmts, statement{n: e.N, from: e.From, to: e.To, current: e.CurrentRead, failed: e.Error != nil})
	for i := range e.Reads {
		tb := s.table(e.Reads[i].Table)
		tb.asked = true
		s.txns.tables[t.number] |= tb.bit
		if s.part != nil {
			s.part.more[t.number].asked |= tb.bit
		}
	}
	s.accesses(t, len(t.stmts)-1, e)
	if most := s.opts.MaxAccesses; most > 0 && (len(t.stmts) > most || t.told > most) {
		s.undecided("a transaction is too large")
	}
}

// anew reports whether a statement made a row in the place of another one, which its request had read, or may have (MySQL family): no edge of rows tells that.
func anew(e *history.Event) bool {
	if e.Verb == "replace" {
		return true
	}
	if e.Verb != "insert" || !slices.ContainsFunc(e.Accesses, func(a history.Access) bool { return a.Op == history.OpInsert }) {
		return false
	}
	return slices.ContainsFunc(e.Derived, func(d history.Derived) bool {
		return !slices.ContainsFunc(e.Accesses, func(a history.Access) bool { return a.Row == d.Row })
	})
}

// request says that a transaction is of a request, by the hash of its name.
func (s *Sieve) request(txn uint32, name uint64) {
	if s.part != nil {
		s.part.more[txn].requests = append(s.part.more[txn].requests, name)
		return
	}
	node, _ := s.requests.put(name, uint32(s.requests.n))
	s.meeting.units.add([2]uint32{txn, node})
}

func (s *Sieve) table(name string) *table {
	if s.last != nil && s.last.name == name {
		return s.last
	}
	tb := s.tables[name]
	if tb == nil {
		tb = &table{name: name, hash: hash(tableSeed, name), bit: 1 << min(len(s.tables), 63)}
		if s.part != nil { // all parts give it the same one
			tb.bit = 1 << (tb.hash % 64)
		}
		s.tables[name] = tb
	}
	s.last = tb
	return tb
}

// accesses keeps what statement i did.
func (s *Sieve) accesses(t *running, i int, e *history.Event) {
	some := func(seed uint64, text string) uint64 {
		switch {
		case text == "":
			return 0
		case seed == tokenSeed:
			return tokenHash(text)
		}
		return hash(seed, text)
	}
	for k := range e.Accesses {
		a := &e.Accesses[k]
		if a.Approx || a.Version == "" && a.Op != history.OpDelete {
			continue
		}
		if t.told++; s.part != nil && s.opts.MaxAccesses > 0 && t.told > s.opts.MaxAccesses {
			continue
		}
		tb := s.table(a.Row.Table)
		tb.keyed, tb.unkeyed = tb.keyed || a.Row.Key != "", tb.unkeyed || a.Row.Key == ""
		n := access{op: a.Op, stmt: int32(i), named: a.Name != "", made: a.Op == history.OpInsert || e.Verb == "insert", table: tb, key: some(keySeed, a.Row.Key), ver: some(versionSeed, a.Version), token: some(tokenSeed, a.Writer),
			prev: some(versionSeed, a.Prev), prevW: some(tokenSeed, a.PrevWriter), order: a.Order, prevO: a.PrevOrder, asOf: a.AsOf}
		s.images = s.images || a.Image != "" || a.Was != ""
		if a.Op == history.OpDelete {
			n.ver = hash(t.id<<20^uint64(i)^n.prev, "deleted")
		}
		if a.Op.Writes() {
			s.txns.tables[t.number] |= tb.bit
		}
		if s.part == nil || s.part.has(&n) {
			t.accesses = append(t.accesses, n)
		}
	}
}

func (s *Sieve) close(e *history.Event) {
	in := s.sessions[e.Session]
	if in == nil {
		return
	}
	if t := in.open; t != nil {
		outcome := history.OutcomeAborted
		if e.Why != "" {
			outcome = history.OutcomeUnknown
		}
		s.txns.tells(t.number, e.To, outcome)
		if s.part != nil {
			s.part.more[t.number].cut = e.Why != ""
		}
		s.end(t, outcome)
		s.drop(t)
	}
	for _, t := range in.late {
		delete(s.late, t.id)
		s.drop(t)
	}
	delete(s.sessions, e.Session)
}

// end makes facts of what a transaction did.
func (s *Sieve) end(t *running, out history.Outcome) {
	delete(s.open, t.id)
	if t.session.open == t {
		t.session.open = nil
	}
	is := &s.txns.is[t.number]
	switch out {
	case history.OutcomeCommitted:
		*is |= committed
	case history.OutcomeAborted:
		*is |= aborted
	default:
		*is |= limbo
	}
	if t.level != "" && t.level != product.ReadUncommitted {
		*is |= trusts
	}
	if t.implicit && len(t.stmts) == 1 {
		*is |= single
	}
	s.txns.ended = append(s.txns.ended, t.number)
	if s.part != nil {
		s.part.ended(t)
	}
	s.flush(t)
}

func (s *Sieve) finishLate(t *running, e *history.Event) {
	delete(s.late, t.id)
	t.session.late = slices.DeleteFunc(t.session.late, func(o *running) bool { return o == t })
	if i := t.find(e.N); i >= 0 {
		s.tokens(t, e.Tokens)
		s.accesses(t, i, e)
		if s.part != nil {
			s.part.told(t)
			s.part.ended(t)
		}
		s.flush(t)
	}
	s.drop(t)
}

// drop keeps the memory of t for the next one.
func (s *Sieve) drop(t *running) {
	if len(s.spare) < 64 && cap(t.accesses) < 1024 {
		s.spare = append(s.spare, t)
	}
}

// flush makes facts of the accesses of t, which has ended.
func (s *Sieve) flush(t *running) {
	is := s.txns.is[t.number]
	if s.part != nil && is&limbo != 0 {
		is = committed // whoever sees one of its versions says that it has
	}
	s.around.look(t)
	for i := range t.accesses {
		a := &t.accesses[i]
		st := &t.stmts[a.stmt]
		more := s.around.of[i]
		if is&committed == 0 && (!a.op.Writes() || a.op == history.OpDelete) {
			continue
		}
		if !a.op.Writes() {
			f := fact{ver: a.ver, order: a.order, asOf: a.asOf, token: a.token, tick: st.to, txn: t.number, nth: uint32(i), stmt: uint32(a.stmt), flags: isRead | more}
			switch a.op {
			case history.OpMatch:
				f.flags |= fMatch
			case history.OpLock:
				f.flags |= fLock
			}
			s.keep(a, a.ver, f)
			continue
		}
		if a.op == history.OpDelete && a.key == 0 && a.prev == 0 {
			continue // neither a row nor a link
		}
		if is&limbo != 0 {
			a.order = 0 // nobody knows whether it is there
		}
		f := fact{ver: a.ver, order: a.order, tick: st.from, txn: t.number, nth: uint32(i), stmt: uint32(a.stmt), flags: isWrite | more}
		if st.current && a.op == history.OpUpdate {
			f.flags |= fCurrent
		}
		if a.made {
			f.flags |= fInsert
			s.inserts = s.inserts || a.prev == 0
		}
		if st.failed {
			f.flags |= fFailed
		} else if a.key == 0 && is&committed != 0 {
			f.asOf = a.prev // of a row without a key, nothing else says it beside this version
		}
		if !st.failed && a.order == 0 && a.prev == 0 && a.op != history.OpInsert && is&committed != 0 {
			s.loose++
		}
		if a.prev != 0 && is&committed != 0 {
			p := fact{ver: a.prev, order: a.prevO, asOf: a.ver, token: a.prevW, txn: t.number, nth: uint32(i), stmt: uint32(a.stmt), flags: isPrev | f.flags&fCurrent}
			if st.failed {
				p.flags |= fFailed
			}
			s.keep(a, a.prev, p)
		}
		s.keep(a, a.ver, f)
	}
	if s.around.special {
		s.txns.is[t.number] |= special
		if s.part != nil {
			s.part.special(t.number)
		}
	}
	t.accesses = t.accesses[:0]
}

// keep gives a fact to the part that judges its row. Of a row without a key each version counts as a row.
func (s *Sieve) keep(a *access, version uint64, f fact) {
	if a.named && a.key != 0 {
		f.flags |= fNamed
		s.named = true
	}
	s.rough = s.rough || f.order == 0 || a.key == 0
	row := a.row(version)
	if s.part == nil {
		s.parts[(row>>40)%uint64(len(s.parts))].add(row, a.key != 0, f)
	} else if s.part.mine(row) {
		s.part.fact(row, a.key != 0, f)
	}
}

// row is the hash of the row of an access, or of a version where rows have no keys.
func (a *access) row(version uint64) uint64 {
	if a.key == 0 {
		return rowHash(a.table.hash, version^0x5555555555555555)
	}
	return rowHash(a.table.hash, a.key)
}

func rowHash(table, key uint64) uint64 {
	row := (table ^ key) * 0x9e3779b97f4a7c15
	return max(row^row>>31, 1)
}
