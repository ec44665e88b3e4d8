package record

import "wirecheck/history"

// spare is room for the accesses of a session's next statements: that of accesses which were recorded, as the sink has copied what it keeps.
type spare struct {
	lists [][]history.Access // the largest last
	size  int                // of all
}

// maxSpare bounds the room that a session keeps between statements, in accesses, and spareLists in how many pieces.
const (
	maxSpare   = 1024
	spareLists = 8
)

// take gives the largest room, or none.
func (s *spare) take() []history.Access {
	n := len(s.lists) - 1
	if n < 0 {
		return nil
	}
	room := s.lists[n]
	s.lists[n] = nil
	s.lists, s.size = s.lists[:n], s.size-cap(room)
	return room
}

// give keeps room, which must not be used any more, unless there is too much.
func (s *spare) give(room []history.Access) {
	if cap(room) == 0 || len(s.lists) == spareLists || s.size+cap(room) > maxSpare {
		return
	}
	room = room[:0]
	s.lists, s.size = append(s.lists, room), s.size+cap(room)
	for i := len(s.lists) - 1; i > 0 && cap(s.lists[i-1]) > cap(room); i-- {
		s.lists[i-1], s.lists[i] = room, s.lists[i-1]
	}
}
