package sieve

import (
	"cmp"

	"wirecheck/history"
)

// Straight is a quick look at a history of one recorder that keeps no facts. A history is straight if each transaction, in the order of their ends, read and
// replaced the last version of each row. Then all edges lead onward in that order, session order and real time too, and nothing is suspect: a Sieve would say
// so. Of any other history it decides nothing. So it asks for more than a Sieve does: of each row keys and places, for example, and no conditions.
//
// It is not safe for concurrent use.
type Straight struct {
	requests bool // count
	bent     bool
	sessions map[uint64]*straightTxn
	hand     *straightTxn // of the last session
	session  uint64
	latest   uint64 // the greatest id of a transaction so far
	to       uint64 // the latest end
	rows     index
	last     []lastVersion // by the number of the row
	tokens   names
	spot     spot  // of the last token
	versions names // of all rows, those that were undone too
	tables   map[string]uint64
	table    string // the last one
	hash     uint64
}

// lastVersion is the last version of a row so far.
type lastVersion struct {
	ver, order uint64
	token      uint64 // of its writer; 0: it has none, or nobody in the history wrote it
	sent       uint64 // when the statement that wrote it was sent
	spot       spot
}

// straightTxn is the transaction that a session has open, or had last.
type straightTxn struct {
	id       uint64
	from     uint64
	open     bool
	n        int    // the last statement
	token    uint64 // the first one
	accesses []straightAccess
}

type straightAccess struct {
	row             uint64
	ver, prev       name
	token, prevW    uint64 // hashes
	order, prevO    uint64
	asOf            uint64
	from, to        uint64 // of the statement
	writes, deletes bool
}

// NewStraight makes a Straight. requests says that requests are judged.
func NewStraight(requests bool) *Straight {
	return &Straight{requests: requests, sessions: map[uint64]*straightTxn{}, tables: map[string]uint64{}}
}

// maxStraight bounds the statements of a transaction, and its accesses.
const maxStraight = 10_000

// Add takes the next event, of which it keeps nothing. It reports whether the history is straight so far.
func (s *Straight) Add(e *history.Event) bool {
	if s.bent {
		return false
	}
	straight := true
	switch e.Kind {
	case history.EventBegin:
		straight = s.begin(e)
	case history.EventStmt:
		straight = s.statement(e)
	case history.EventEnd:
		t := s.of(e.Session)
		straight = t.open && t.id == e.Txn && !e.Pending && s.token(t, e.Tokens) && s.end(t, e.To, e.Outcome)
	case history.EventClose:
		if t := s.of(e.Session); t.open {
			straight = e.Why == "" && s.end(t, e.To, history.OutcomeAborted)
		}
	}
	s.bent = !straight
	return straight
}

// of is the transaction of a session.
func (s *Straight) of(session uint64) *straightTxn {
	if s.hand == nil || session != s.session {
		if s.hand, s.session = s.sessions[session], session; s.hand == nil {
			s.hand = &straightTxn{}
			s.sessions[session] = s.hand
		}
	}
	return s.hand
}

func (s *Straight) begin(e *history.Event) bool {
	t := s.of(e.Session)
	if t.open || e.From < t.from || e.Txn <= s.latest && s.isOpen(e.Txn) {
		return false
	}
	s.latest = max(s.latest, e.Txn)
	*t = straightTxn{id: e.Txn, from: e.From, open: true, accesses: t.accesses[:0]}
	return s.token(t, e.Tokens)
}

func (s *Straight) isOpen(id uint64) bool {
	for _, t := range s.sessions {
		if t.open && t.id == id {
			return true
		}
	}
	return false
}

// token enters the tokens of a transaction. It reports whether no other one had them.
func (s *Straight) token(t *straightTxn, tokens []string) bool {
	for _, text := range tokens {
		if text == "" {
			continue
		}
		n := nameOf(tokenSeed, text)
		if tok := n.hash(); t.token != tok && !s.tokens.add(n, &s.spot) {
			return false
		} else {
			t.token = cmp.Or(t.token, tok)
		}
	}
	return true
}

func (s *Straight) statement(e *history.Event) bool {
	if e.Txn == 0 {
		return true
	}
	t := s.of(e.Session)
	switch {
	case !t.open || t.id != e.Txn || e.N <= t.n || e.N > maxStraight,
		e.UndoesFrom > 0 || e.Error != nil && (e.Coverage != history.CoverageNone || len(e.Accesses) > 0),
		e.Request != "" && s.requests,
		len(e.Reads) > 0 || len(t.accesses)+len(e.Accesses) > maxStraight,
		!s.token(t, e.Tokens):
		return false
	}
	t.n = e.N
	for i := range e.Accesses {
		a := &e.Accesses[i]
		if a.Approx || a.Version == "" && a.Op != history.OpDelete {
			continue
		}
		if a.Row.Key == "" {
			return false
		}
		t.accesses = append(t.accesses, straightAccess{})
		n := &t.accesses[len(t.accesses)-1]
		n.row, n.order, n.prevO, n.asOf = rowHash(s.hashOf(a.Row.Table), hash(keySeed, a.Row.Key)), a.Order, a.PrevOrder, a.AsOf
		n.from, n.to, n.writes, n.deletes = e.From, e.To, a.Op.Writes(), a.Op == history.OpDelete
		if a.Version != "" {
			n.ver = nameOf(versionSeed, a.Version)
		}
		if a.Prev != "" {
			n.prev = nameOf(versionSeed, a.Prev)
		}
		if a.Writer != "" {
			n.token = nameOf(tokenSeed, a.Writer).hash()
		}
		if a.PrevWriter != "" {
			n.prevW = nameOf(tokenSeed, a.PrevWriter).hash()
		}
	}
	return true
}

func (s *Straight) hashOf(name string) uint64 {
	if name != s.table {
		h, ok := s.tables[name]
		if !ok {
			h = hash(tableSeed, name)
			s.tables[name] = h
		}
		s.table, s.hash = name, h
	}
	return s.hash
}

// end enters what a transaction did.
func (s *Straight) end(t *straightTxn, to uint64, out history.Outcome) bool {
	t.open = false
	if to < s.to || to < t.from {
		return false
	}
	s.to = to
	for i := range t.accesses {
		a := &t.accesses[i]
		switch {
		case out == history.OutcomeCommitted:
			if !s.access(t, a) {
				return false
			}
		case !a.writes || a.deletes:
		case out != history.OutcomeAborted || !s.versions.add(a.ver.of(a.row), &spot{}):
			return false
		}
	}
	return true
}

// access enters an access of a committed transaction.
func (s *Straight) access(t *straightTxn, a *straightAccess) bool {
	n, had := s.rows.put(a.row, uint32(len(s.last)))
	if !had {
		s.last = append(s.last, lastVersion{})
	}
	last := &s.last[n]
	if !a.writes {
		return s.saw(last, a.row, a.ver, a.order, a.token) && (a.asOf == 0 || last.order < a.asOf) && a.to >= last.sent
	}
	if a.prev != (name{}) && !s.saw(last, a.row, a.prev, a.prevO, a.prevW) || a.order <= max(last.order, history.OrderInitial) {
		return false
	}
	*last = lastVersion{order: a.order, token: t.token, sent: a.from, spot: last.spot}
	if a.deletes {
		return true // nobody can name that version
	}
	last.ver = a.ver.hash()
	return s.versions.add(a.ver.of(a.row), &last.spot)
}

// saw reports whether a version that was read or replaced is the last one of the row. The first one that is seen may have been there before.
func (s *Straight) saw(last *lastVersion, row uint64, ver name, order, token uint64) bool {
	if last.order == 0 {
		if order != history.OrderInitial || token != 0 || !s.versions.add(ver.of(row), &last.spot) {
			return false
		}
		last.ver, last.order = ver.hash(), order
		return true
	}
	return last.ver == ver.hash() && (order == 0 || order == last.order) && (token == 0 || token == last.token)
}
