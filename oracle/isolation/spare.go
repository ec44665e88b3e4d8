package isolation

import "slices"

// spare is room for the accesses of open transactions and for what they say, which would grow anew in each transaction.
type spare struct {
	txns     []*txn // that were only counted
	told     [][]told
	accesses [][]access
	rooms    []room // of forgotten transactions
	links    []*link
	readers  [][]reader
}

// room is what a transaction kept its parts in.
type room struct {
	stmts    []stmt
	accesses []access
	writes   []int32
	touched  []*version
	tokens   []string
	out      []*link
}

// spareLength bounds each piece of room that is kept, spareRooms their number.
const (
	spareLength = 2048
	spareRooms  = 16
	// spareSlack is how much more room than it needs a transaction may keep.
	spareSlack = 8
	// So much of forgotten transactions is kept: a sweep forgets many at once. Each piece has room for no more than smallRoom.
	spareTxns, spareLinks, spareReaders, smallRoom = 4096, 1 << 14, 1 << 13, 16
)

// take takes the latest piece of room, if there is one.
func take[T any](rooms *[][]T) []T {
	n := len(*rooms) - 1
	if n < 0 {
		return nil
	}
	room := (*rooms)[n]
	(*rooms)[n] = nil
	*rooms = (*rooms)[:n]
	return room
}

// give keeps a slice that is not needed any more as room, unless it is too large or there is enough.
func give[T any](rooms *[][]T, room []T) {
	if cap(room) > 0 && cap(room) <= spareLength && len(*rooms) < spareRooms {
		clear(room)
		*rooms = append(*rooms, room[:0])
	}
}

// entered lets go what t's accesses said: it is in the graph. The accesses themselves stay, in no more room than they need.
func (s *spare) entered(t *txn) {
	give(&s.told, t.told)
	t.told = nil
	if room := t.accesses; cap(room)-len(room) > spareSlack {
		t.accesses = slices.Clone(room)
		give(&s.accesses, room)
	}
}

// room is room for what a transaction keeps.
func (s *spare) room() (r room) {
	if n := len(s.rooms) - 1; n >= 0 {
		r, s.rooms = s.rooms[n], s.rooms[:n]
	}
	return r
}

// forgotten keeps the room of a transaction that is forgotten: nobody looks at what it did any more.
func (s *spare) forgotten(t *txn) {
	for _, l := range t.out {
		s.unlink(l)
	}
	if len(s.rooms) < spareTxns {
		s.rooms = append(s.rooms, room{emptied(t.stmts), emptied(t.accesses), emptied(t.writes), emptied(t.touched), emptied(t.tokens), emptied(t.out)})
	}
}

// emptied is the room of a slice, if it is small.
func emptied[T any](list []T) []T {
	if cap(list) > smallRoom {
		return nil
	}
	clear(list[:cap(list)])
	return list[:0]
}

// link makes a link.
func (s *spare) link(from, to *txn) *link {
	n := len(s.links) - 1
	if n < 0 {
		s.links = append(s.links, &link{})
		n = 0
	}
	l := s.links[n]
	s.links = s.links[:n]
	l.from, l.to, l.edges = from, to, l.first[:0]
	return l
}

// unlink keeps the room of a link to or from a transaction that is forgotten.
func (s *spare) unlink(l *link) {
	if *l = (link{}); len(s.links) < spareLinks {
		s.links = append(s.links, l)
	}
}

// read adds a reader of v.
func (s *spare) read(v *version, r reader) {
	if v.readers == nil {
		if n := len(s.readers) - 1; n >= 0 {
			v.readers, s.readers = s.readers[n], s.readers[:n]
		} else {
			v.readers = make([]reader, 0, firstReaders)
		}
	}
	v.readers = append(v.readers, r)
}

// unread keeps the room for the readers of a version that has none any more.
func (s *spare) unread(v *version) {
	if cap(v.readers) == firstReaders && len(s.readers) < spareReaders {
		s.readers = append(s.readers, v.readers[:0])
	}
	v.readers = nil
}
