package sieve

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// ID names a transaction in whatever process: by the recorder that made its events, and the number that this one gave it.
type ID struct {
	Recorder uint32
	Txn      uint64
}

// Ended is what a Center needs to know of a transaction that has ended.
type Ended struct {
	ID
	Session    uint64 // the hash of its session's name
	From, To   uint64 // ticks
	Begin, End uint64 // the messages in which it began and ended
	Last       uint64 // the last one that tells of it: some writes are told behind the end
	Messages   []uint64
	// Cut says that the history of its recorder has a hole behind its last event.
	Cut bool

	is             status
	changed, asked uint64   // tables, a bit each, by their hash
	requests       []uint64 // hashes of their names
}

// Share is what a Part has found since its last one.
type Share struct {
	// Runs are the recorders' names, by the numbers that the IDs have here.
	Runs  map[uint32]string
	Ended []Ended
	// Oldest is the message in which the oldest transaction began that has not ended. ^0: there is none.
	Oldest uint64
	// Said is what the process says beside, for whoever reads the shares.
	Said []byte

	edges   [][2]ID
	special []ID
	groups  []group
}

// Edges is how many edges the share has.
func (s *Share) Edges() int { return len(s.edges) }

// group is of transactions that told the same version: a Checker that is given one of them needs all of them, or the lead alone.
type group struct {
	key     uint64
	lead    bool // the first of the list names the row: the others need it alone
	members []ID
}

// Empty reports whether nothing is in the share but how far it goes.
func (s *Share) Empty() bool {
	return len(s.Ended) == 0 && len(s.edges) == 0 && len(s.special) == 0 && len(s.groups) == 0
}

// Pieces gives the binary form in pieces of at most about so many bytes, each a share of its own.
func (s *Share) Pieces(size int) (list [][]byte) {
	data := s.Append(nil)
	if len(data) <= size || max(len(s.Ended), len(s.edges), len(s.special), len(s.groups)) < 2 {
		return [][]byte{data}
	}
	a, b := *s, *s
	a.Ended, b.Ended = halves(s.Ended)
	a.edges, b.edges = halves(s.edges)
	a.special, b.special = halves(s.special)
	a.groups, b.groups = halves(s.groups)
	a.Said = nil
	return append(a.Pieces(size), b.Pieces(size)...)
}

// halves cuts a list in two, of which the second is not empty if the list is not.
func halves[T any](list []T) (a, b []T) { return list[:len(list)/2], list[len(list)/2:] }

// shareFormat is the first byte of a share.
const shareFormat = 1

// Append appends the share in its binary form.
func (s *Share) Append(b []byte) []byte {
	w := shareWriter{b: append(b, shareFormat), at: map[ID]uint64{}}
	w.number(uint64(len(s.Runs)))
	for n, name := range s.Runs {
		w.number(uint64(n))
		w.number(uint64(len(name)))
		w.b = append(w.b, name...)
	}
	w.number(uint64(len(s.Said)))
	w.b = append(w.b, s.Said...)
	w.ids(s)
	w.number(s.Oldest + 1) // ^0 becomes 0
	w.number(uint64(len(s.Ended)))
	for i := range s.Ended {
		w.ended(&s.Ended[i])
	}
	w.number(uint64(len(s.edges)))
	for _, e := range s.edges {
		w.id(e[0])
		w.id(e[1])
	}
	w.number(uint64(len(s.special)))
	for _, id := range s.special {
		w.id(id)
	}
	w.number(uint64(len(s.groups)))
	for _, g := range s.groups {
		w.hash(g.key)
		lead := uint64(0)
		if g.lead {
			lead = 1
		}
		w.number(uint64(len(g.members))<<1 | lead)
		for _, id := range g.members {
			w.id(id)
		}
	}
	return w.b
}

type shareWriter struct {
	b  []byte
	at map[ID]uint64
}

func (w *shareWriter) number(n uint64) { w.b = binary.AppendUvarint(w.b, n) }
func (w *shareWriter) hash(n uint64)   { w.b = binary.LittleEndian.AppendUint64(w.b, n) }
func (w *shareWriter) id(id ID)        { w.number(w.at[id]) }

// bits writes which bits are set, mostly few.
func (w *shareWriter) bits(n uint64) {
	w.number(uint64(bits.OnesCount64(n)))
	for ; n != 0; n &= n - 1 {
		w.b = append(w.b, byte(bits.TrailingZeros64(n)))
	}
}

// ids writes all IDs of the share once, each by its difference from the one before.
func (w *shareWriter) ids(s *Share) {
	list := make([]ID, 0, len(s.Ended)+len(s.edges))
	add := func(id ID) {
		if _, had := w.at[id]; !had {
			w.at[id] = 0
			list = append(list, id)
		}
	}
	for i := range s.Ended {
		add(s.Ended[i].ID)
	}
	for _, e := range s.edges {
		add(e[0])
		add(e[1])
	}
	for _, id := range s.special {
		add(id)
	}
	for _, g := range s.groups {
		for _, id := range g.members {
			add(id)
		}
	}
	slices.SortFunc(list, func(a, b ID) int { return cmp.Or(cmp.Compare(a.Recorder, b.Recorder), cmp.Compare(a.Txn, b.Txn)) })
	w.number(uint64(len(list)))
	last := ID{}
	for i, id := range list {
		w.at[id] = uint64(i)
		w.number(uint64(id.Recorder - last.Recorder))
		if id.Recorder != last.Recorder {
			last.Txn = 0
		}
		w.number(id.Txn - last.Txn)
		last = id
	}
}

func (w *shareWriter) ended(e *Ended) {
	w.id(e.ID)
	w.hash(e.Session)
	w.number(e.From)
	w.number(e.To - e.From)
	w.number(e.Begin)
	w.number(e.End - e.Begin)
	w.number(e.Last - e.End)
	w.number(uint64(len(e.Messages)))
	slices.Sort(e.Messages)
	last := uint64(0)
	for _, m := range e.Messages {
		w.number(m - last)
		last = m
	}
	is := uint64(e.is) << 1
	if e.Cut {
		is |= 1
	}
	w.number(is)
	w.bits(e.changed)
	w.bits(e.asked)
	w.number(uint64(len(e.requests)))
	for _, r := range e.requests {
		w.hash(r)
	}
}

// shareReader reads the binary form. bad says that it is damaged.
type shareReader struct {
	b    []byte
	list []ID
	bad  bool
}

func (r *shareReader) number() uint64 {
	n, k := binary.Uvarint(r.b)
	if k <= 0 {
		r.bad, r.b = true, nil
		return 0
	}
	r.b = r.b[k:]
	return n
}

func (r *shareReader) hash() uint64 {
	if len(r.b) < 8 {
		r.bad, r.b = true, nil
		return 0
	}
	n := binary.LittleEndian.Uint64(r.b)
	r.b = r.b[8:]
	return n
}

// count reads how many follow, of at least a byte each.
func (r *shareReader) count() int {
	n := r.number()
	if n > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return int(n)
}

func (r *shareReader) id() ID {
	n := r.number()
	if n >= uint64(len(r.list)) {
		r.bad = true
		return ID{}
	}
	return r.list[n]
}

func (r *shareReader) bits() (n uint64) {
	for range r.count() {
		n |= 1 << (r.number() % 64)
	}
	return n
}

var errShare = errors.New("it is damaged")

// ReadShare reads the binary form of a share.
func ReadShare(b []byte) (*Share, error) {
	if len(b) == 0 || b[0] != shareFormat {
		return nil, fmt.Errorf("read the edges of a part: %w", errors.New("it has another form: the collectors are of different versions of wirecheck"))
	}
	r := shareReader{b: b[1:]}
	s := &Share{Runs: map[uint32]string{}}
	for range r.count() {
		number := uint32(r.number())
		n := min(r.count(), len(r.b))
		s.Runs[number] = string(r.b[:n])
		r.b = r.b[n:]
	}
	if n := r.count(); !r.bad {
		s.Said, r.b = r.b[:n:n], r.b[n:]
	}
	last := ID{}
	for range r.count() {
		id := ID{Recorder: last.Recorder + uint32(r.number()), Txn: r.number()}
		if id.Recorder == last.Recorder {
			id.Txn += last.Txn
		}
		r.list, last = append(r.list, id), id
	}
	s.Oldest = r.number() - 1
	for range r.count() {
		s.Ended = append(s.Ended, r.ended())
	}
	s.edges = make([][2]ID, 0, r.count())
	for range cap(s.edges) {
		s.edges = append(s.edges, [2]ID{r.id(), r.id()})
	}
	for range r.count() {
		s.special = append(s.special, r.id())
	}
	for range r.count() {
		g := group{key: r.hash()}
		n := r.number()
		g.lead = n&1 != 0
		r.bad = r.bad || n>>1 > uint64(len(r.b))
		for range min(n>>1, uint64(len(r.b))) {
			g.members = append(g.members, r.id())
		}
		s.groups = append(s.groups, g)
	}
	if r.bad || len(r.b) > 0 {
		return nil, fmt.Errorf("read the edges of a part: %w", errShare)
	}
	return s, nil
}

func (r *shareReader) ended() Ended {
	e := Ended{ID: r.id(), Session: r.hash(), From: r.number()}
	e.To = e.From + r.number()
	e.Begin = r.number()
	e.End = e.Begin + r.number()
	e.Last = e.End + r.number()
	last := uint64(0)
	for range r.count() {
		last += r.number()
		e.Messages = append(e.Messages, last)
	}
	is := r.number()
	e.is, e.Cut = status(is>>1), is&1 != 0
	e.changed, e.asked = r.bits(), r.bits()
	for range r.count() {
		e.requests = append(e.requests, r.hash())
	}
	return e
}
