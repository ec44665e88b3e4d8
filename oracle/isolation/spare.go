package isolation

import "slices"

// spare is room for the accesses of open transactions and for what they say, which would grow anew in each transaction.
type spare struct {
	txns     []*txn // that were only counted
	told     [][]told
	accesses [][]access
}

// spareLength bounds each piece of room that is kept, spareRooms their number.
const (
	spareLength = 2048
	spareRooms  = 16
	// spareSlack is how much more room than it needs a transaction may keep.
	spareSlack = 8
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
