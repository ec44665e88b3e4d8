package stream

import (
	"maps"
	"slices"
	"time"
)

// silence is after which time, by the clock of the stream, a run that says nothing is taken for gone: several heartbeats.
const silence = time.Minute

// incoming is a message as a reader gets it.
type incoming struct {
	run    string
	seq    uint64 // the run's own number
	stream uint64 // its place in the stream
	at     time.Time
	lost   uint64
	end    bool
	data   []byte
}

// delivery is a message in its place, or a hole.
type delivery struct {
	incoming
	hole string // why something is missing in front of it; the run has ended, or is silent, if there is no message (seq 0)
}

// sequence puts the messages of all runs into the order of each run's own numbers, and leaves out those that it has had. What it gives depends on the
// messages alone, and not on when they come.
type sequence struct {
	runs    map[string]*run
	silence time.Duration
}

// run is one process's messages.
type run struct {
	next uint64 // all before it were given
	held map[uint64]incoming
	last time.Time // of its last message, by the stream's clock
	gone bool      // it has ended, or said nothing for long
}

func newSequence() *sequence { return &sequence{map[string]*run{}, silence} }

// begin says that the messages of a run are wanted from a number on.
func (s *sequence) begin(name string, next uint64) *run {
	r := &run{next: next, held: map[uint64]incoming{}}
	s.runs[name] = r
	return r
}

// put takes a message as it stands in the stream, and gives what can be read now.
func (s *sequence) put(m incoming) (list []delivery) {
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		if r := s.runs[name]; name != m.run && !r.gone && m.at.Sub(r.last) > s.silence {
			list = append(list, r.give(name, "a message of it did not come", 0)...)
			list = append(list, delivery{incoming{run: name, at: m.at}, "it has said nothing for a minute"})
			r.gone = true
		}
	}
	r := s.runs[m.run]
	if r == nil {
		r = s.begin(m.run, 1)
	}
	if m.seq < r.next {
		return list
	}
	r.last, r.gone = m.at, false
	if _, twice := r.held[m.seq]; !twice {
		r.held[m.seq] = m
	}
	return append(list, r.give(m.run, "messages are gone from the stream", window)...)
}

// finish gives what is held back, since nothing comes any more.
func (s *sequence) finish() (list []delivery) {
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		list = append(list, s.runs[name].give(name, "a message of it did not come", 0)...)
	}
	return list
}

// give gives what is next. A message that is missing may still come if it is one of the last so many.
func (r *run) give(name, why string, window uint64) (list []delivery) {
	hole := ""
	for len(r.held) > 0 {
		if m, ok := r.held[r.next]; ok {
			delete(r.held, r.next)
			r.next++
			r.gone = m.end
			list = append(list, delivery{m, hole})
			hole = ""
			continue
		}
		numbers := slices.Sorted(maps.Keys(r.held))
		if numbers[len(numbers)-1] < r.next+window {
			break
		}
		// Those up to the newest less the window were in front of it, if they were ever there.
		next := min(numbers[0], numbers[len(numbers)-1]-window+1)
		hole, r.next = why, next
	}
	if hole != "" {
		list = append(list, delivery{incoming{run: name}, hole})
	}
	return list
}
