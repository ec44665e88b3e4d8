package sieve

import (
	"cmp"
	"slices"

	"wirecheck/history"
)

// PartOptions say which rows a Part has, and how long it remembers them.
type PartOptions struct {
	// Number, from 0, is which of so many Parts it is.
	Number, Parts int
	// Transactions and Level are those of Options.
	Transactions bool
	Level        string
	// Name gives a transaction's recorder and the number that it has there; Session a hash of a session's name. All parts must give the same ones,
	// but for the recorder's number, which is this process's (Share.Runs).
	Name    func(txn uint64) ID
	Session func(session uint64) uint64
	// Mine says which transactions this part tells the Center of. Of all parts, one tells of each.
	Mine func(ID) bool
	// Keep is how many transactions that ended before all began that are open are remembered. 0: DefaultPartKeep.
	Keep int
	// MaxTxns is how many ended transactions are kept at most where one stays open. 0: DefaultPartTxns.
	MaxTxns int
	// MaxAccesses is that of Options.
	MaxAccesses int
}

// The default limits of a Part.
const (
	DefaultPartKeep = 10_000
	DefaultPartTxns = 200_000
)

// Part draws the edges of some of the rows of a history while it happens, and forgets what is long over. It tells them in shares, of which a Center finds
// out which transactions may be part of an anomaly.
//
// A row whose facts contradict each other is not decided: all transactions that touched it count as one component, so that a Checker sees of it what it
// would see in the whole history.
type Part struct {
	o    PartOptions
	s    *Sieve
	rows *Rows
	more []more // of transactions, by their numbers

	at    uint64 // the message at hand: how far all is known
	from  uint64 // the message that the event is in, which may have come early
	old   bool   // an earlier process of this part has told it
	event uint64 // number of the event at hand, from 1

	fresh    []uint32 // ended since the last share
	edges    [][2]uint32
	specials []uint32
	groups   []group
	sent     index // edges and groups that were told, by their hashes
	dirty    []bool
	changed  []uint32 // the rows that are dirty
	waiting  map[uint64][]uint32
	kept     int // transactions after the last time that some were forgotten

	// Forgotten counts the transactions that were forgotten while others were open that had begun before their ends (MaxTxns).
	Forgotten int
}

// more is what a Part keeps of a transaction, beside txns.
type more struct {
	id               ID
	began, end, last uint64 // messages
	event            uint64 // number of the event in which it began
	asked            uint64 // tables, a bit each
	messages         []uint64
	requests         []uint64
	mine, cut        bool
	listed           bool // in fresh
	special          bool // told
}

// NewPart makes a Part.
func NewPart(o PartOptions) *Part {
	o.Keep = cmp.Or(o.Keep, DefaultPartKeep)
	o.MaxTxns = cmp.Or(o.MaxTxns, DefaultPartTxns)
	p := &Part{o: o, waiting: map[uint64][]uint32{}}
	p.s = New(Options{Transactions: o.Transactions, Level: o.Level, MaxAccesses: o.MaxAccesses})
	p.s.part, p.rows = p, p.s.parts[0]
	return p
}

// Add takes the next event of the history. It is in message from, and can be read since message at: others in front of it came late. old says that an earlier
// process of this part has told what it shows.
func (p *Part) Add(e *history.Event, at, from uint64, old bool) {
	p.event++
	p.at, p.from, p.old = at, from, old
	p.s.Add(e)
}

// Size is how much there is to tell, and to forget: a Share should be taken when it is some 10 000.
func (p *Part) Size() int { return len(p.fresh) + len(p.changed) }

// Open is how many transactions are open, and Kept how many are remembered.
func (p *Part) Open() int { return len(p.s.open) + len(p.s.late) }

// Kept is how many transactions are remembered, with those that are open.
func (p *Part) Kept() int { return len(p.s.txns.id) }

// Needed is the number of the first event, from 1, that another process needs to go on in place of this one.
func (p *Part) Needed() uint64 {
	if len(p.more) == 0 {
		return p.event + 1
	}
	return p.more[0].event
}

func (p *Part) began(t *running, e *history.Event) {
	id := p.o.Name(e.Txn)
	p.s.txns.recorders[t.session.number] = int(id.Recorder) // its clock
	p.more = append(p.more, more{id: id, began: p.at, event: p.event, mine: p.o.Mine(id)})
	p.told(t)
}

// told notes in which message something of t was.
func (p *Part) told(t *running) {
	if m := &p.more[t.number]; m.mine && (len(m.messages) == 0 || m.messages[len(m.messages)-1] != p.from) {
		m.messages = append(m.messages, p.from)
	}
}

func (p *Part) ended(t *running) {
	p.told(t)
	m := &p.more[t.number]
	m.end = cmp.Or(m.end, p.at)
	m.last = p.at
	if m.mine && !m.listed && !p.old {
		m.listed = true
		p.fresh = append(p.fresh, t.number)
	}
	for _, token := range t.tokens {
		if rows, awaited := p.waiting[token]; awaited {
			for _, n := range rows {
				p.change(n)
			}
			delete(p.waiting, token)
		}
	}
}

// bind makes two transactions of one component.
func (p *Part) bind(a, b uint32) {
	if !p.old {
		p.edge(a, b)
		p.edge(b, a)
	}
}

// special marks transactions that may be part of something without a cycle, all of them together.
func (p *Part) special(list ...uint32) {
	for i, n := range list {
		if m := &p.more[n]; !m.special {
			m.special = true
			p.specials = append(p.specials, n)
		}
		if i > 0 {
			p.bind(list[i-1], n)
		}
	}
}

// mine reports whether a row, by its hash, is of this part.
func (p *Part) mine(row uint64) bool { return (row>>40)%uint64(p.o.Parts) == uint64(p.o.Number) }

// has reports whether an access is of a row of this part. Of rows without keys each version is one.
func (p *Part) has(a *access) bool {
	return p.mine(a.row(a.ver)) || a.key == 0 && a.prev != 0 && p.mine(a.row(a.prev))
}

// fact keeps a fact.
func (p *Part) fact(row uint64, keyed bool, f fact) {
	n := p.rows.add(row, keyed, f)
	for int(n) >= len(p.dirty) {
		p.dirty = append(p.dirty, false)
	}
	if !p.old {
		p.change(n)
	}
}

func (p *Part) change(row uint32) {
	if !p.dirty[row] {
		p.dirty[row] = true
		p.changed = append(p.changed, row)
	}
}

// once reports whether a pair was not told yet.
func (p *Part) once(a, b uint64) bool {
	h := (a ^ b*0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93
	h = max(h^h>>29, 1)
	before := p.sent.n
	p.sent.put(h, 0)
	return p.sent.n > before
}

func (p *Part) edge(from, to uint32) {
	if from != to && p.once(uint64(from)<<32|uint64(to), 1) {
		p.edges = append(p.edges, [2]uint32{from, to})
	}
}

// Share gives what was found since the last one, and forgets what is over. Runs is left to the caller.
func (p *Part) Share() *Share {
	p.judge()
	s := &Share{Oldest: ^uint64(0), groups: p.groups}
	p.groups = nil
	for _, list := range []map[uint64]*running{p.s.open, p.s.late} {
		for _, t := range list {
			s.Oldest = min(s.Oldest, p.more[t.number].began)
		}
	}
	for _, n := range p.fresh {
		s.Ended = append(s.Ended, p.ending(n))
	}
	for _, e := range p.edges {
		s.edges = append(s.edges, [2]ID{p.id(e[0]), p.id(e[1])})
	}
	for _, n := range p.specials {
		s.special = append(s.special, p.id(n))
	}
	p.fresh, p.edges, p.specials = p.fresh[:0], p.edges[:0], p.specials[:0]
	p.forget()
	return s
}

func (p *Part) id(n uint32) ID { return p.more[n].id }

func (p *Part) ending(n uint32) Ended {
	t, m := &p.s.txns, &p.more[n]
	m.listed = false
	return Ended{
		ID: p.id(n), Session: t.sessionIDs[t.session[n]], From: t.from[n], To: t.to[n], Begin: m.began, End: m.end, Last: m.last,
		Messages: slices.Clone(m.messages), Cut: m.cut, is: t.is[n], changed: t.tables[n], asked: m.asked, requests: slices.Clone(m.requests),
	}
}

// judge draws the edges of the rows that have something new.
func (p *Part) judge() {
	if len(p.changed) == 0 {
		return
	}
	r := p.rows
	o := &out{edge: func(_ kind, from, to uint32) { p.edge(from, to) }, special: p.special, unknown: func(uint32) {}}
	for _, n := range p.changed {
		p.dirty[n] = false
		w := r.take(int(n))
		p.await(w, n)
		if w.why != "" || w.inOrder(&p.s.txns) || w.judge(o, &p.s.txns, r.keyed[n]) != "" {
			p.component(w)
		}
		p.context(w, r.hashes[n])
	}
	p.changed = p.changed[:0]
}

// await notes whose ends tell more of the row: of versions that the writers have not listed.
func (p *Part) await(w *row, n uint32) {
	for i := range w.facts {
		if f := &w.facts[i]; f.token != 0 {
			if _, ended := p.s.txns.owner(f.token); !ended {
				if rows := p.waiting[f.token]; len(rows) == 0 || rows[len(rows)-1] != n {
					p.waiting[f.token] = append(rows, n)
				}
			}
		}
	}
}

// component makes one component of all that touched a row.
func (p *Part) component(w *row) {
	var list []uint32
	for i := range w.facts {
		list = append(list, w.facts[i].txn)
	}
	p.special(list...)
}

// context tells which transactions a Checker needs beside others.
func (p *Part) context(w *row, hash uint64) {
	w.together(&p.s.txns, p.s.images, func(key uint64, list []uint32, who need) {
		if who == needName { // who names the row needs nobody for it
			lead := list[0]
			list = list[:1]
			for i := range w.facts {
				if x := &w.facts[i]; x.flags&fNamed == 0 && x.txn != lead {
					list = append(list, x.txn)
				}
			}
		}
		p.group(hash^key, list, who != needAll)
	})
}

func (p *Part) group(key uint64, list []uint32, lead bool) {
	g := group{key: key, lead: lead}
	for i, n := range list {
		if p.once(key, uint64(n)) || lead && i == 0 {
			g.members = append(g.members, p.id(n))
		}
	}
	if len(g.members) > 1 || len(g.members) == 1 && !lead {
		p.groups = append(p.groups, g)
	}
}

// forget drops transactions that ended before all began that are open, but for the last ones.
func (p *Part) forget() {
	t := &p.s.txns
	settled := len(t.ended)
	for _, list := range []map[uint64]*running{p.s.open, p.s.late} {
		for _, r := range list {
			settled = min(settled, int(t.began[r.number]))
		}
	}
	settled -= p.o.Keep
	if over := len(t.ended) - p.o.MaxTxns; over > max(settled, 0) {
		over = min(len(t.ended), over+p.o.MaxTxns/10) // so that this does not happen each time
		p.Forgotten += over - max(settled, 0)
		settled = over
	}
	if settled <= 0 || settled < min(p.o.Keep, p.kept/2) && len(t.ended) <= p.o.MaxTxns {
		return
	}
	drop := make([]bool, len(t.id))
	for _, n := range t.ended[:settled] {
		drop[n] = true
	}
	p.compact(drop)
	p.kept = len(p.s.txns.id)
}

// compact forgets transactions, and gives the others new numbers.
func (p *Part) compact(drop []bool) {
	old, s := p.s.txns, p.s
	number := make([]uint32, len(old.id))
	t := txns{}
	var kept []more
	sessions := map[uint32]uint32{}
	session := func(n uint32) uint32 {
		at, had := sessions[n]
		if !had {
			at = uint32(len(t.recorders))
			sessions[n] = at
			t.recorders, t.sessionIDs = append(t.recorders, old.recorders[n]), append(t.sessionIDs, old.sessionIDs[n])
		}
		return at
	}
	gone := uint32(0) // of the transactions that are gone, so many had ended
	ended := make([]uint32, 0, len(old.ended)+1)
	for _, n := range old.ended {
		ended = append(ended, gone)
		if drop[n] {
			gone++
		}
	}
	ended = append(ended, gone)
	for n := range old.id {
		if drop[n] {
			number[n] = none
			continue
		}
		number[n] = t.begin(old.id[n], session(old.session[n]), old.from[n])
		k := number[n]
		t.to[k], t.is[k], t.token[k], t.tables[k] = old.to[n], old.is[n], old.token[n], old.tables[n]
		t.began[k] = old.began[n] - ended[old.began[n]]
		kept = append(kept, p.more[n])
	}
	for _, n := range old.ended {
		if !drop[n] {
			t.ended = append(t.ended, number[n])
		}
	}
	for i, key := range old.tokens.keys {
		if key != 0 && number[old.tokens.vals[i]] != none {
			t.tokens.put(key, number[old.tokens.vals[i]])
		}
	}
	s.txns, p.more = t, kept
	for id, r := range s.late {
		if number[r.number] == none {
			delete(s.late, id)
			r.session.late = slices.DeleteFunc(r.session.late, func(o *running) bool { return o == r })
			continue
		}
		r.number = number[r.number]
	}
	for _, r := range s.open {
		r.number = number[r.number]
	}
	for _, in := range s.sessions {
		k, had := sessions[in.number]
		if !had {
			k = uint32(len(s.txns.recorders))
			s.txns.recorders, s.txns.sessionIDs = append(s.txns.recorders, old.recorders[in.number]), append(s.txns.sessionIDs, old.sessionIDs[in.number])
		}
		in.number = k
	}
	p.compactRows(number)
}

// compactRows forgets the facts of transactions that have no number any more.
func (p *Part) compactRows(number []uint32) {
	was, dirty := p.rows, p.dirty
	for _, rows := range p.waiting {
		for _, n := range rows {
			dirty[n] = true
		}
	}
	p.rows = newRows(&p.s.txns)
	p.s.parts[0] = p.rows
	p.dirty, p.changed, p.waiting, p.sent = nil, nil, map[uint64][]uint32{}, index{}
	for row := range was.keyed {
		for _, f := range was.facts(row) {
			if number[f.txn] == none {
				continue
			}
			f.txn = number[f.txn]
			n := p.rows.add(was.hashes[row], was.keyed[row], f)
			if int(n) >= len(p.dirty) {
				p.dirty = append(p.dirty, false)
			}
			if dirty[row] {
				p.change(n)
			}
		}
	}
}
