package live

import (
	"math"

	"wirecheck/history"
	"wirecheck/oracle/isolation"
)

// Piece is a piece of a history that is judged by itself: all events of some transactions.
type Piece struct {
	// Recorder and Origin are those of isolation.Options.
	Recorder func(session uint64) int
	Origin   func(txn uint64) (recorder string, own uint64)
	// Each calls add with the events, in order. What an old one completes is known.
	Each func(add func(e *history.Event, old bool)) error
}

// Judge judges a piece, beside what Take gets, and tells what is new of what it finds.
func (l *Checker) Judge(p Piece) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	o := l.options
	o.Recorder, o.Origin, o.Keep, o.MaxBytes = p.Recorder, p.Origin, -1, math.MaxInt/16
	c := isolation.New(o)
	err := p.Each(func(e *history.Event, old bool) {
		for _, f := range c.Add(e) {
			if !old {
				l.tell(f)
			}
		}
	})
	if why := c.Broken(); why != "" {
		l.log.Error().Str("why", why).Msg("some transactions could not be judged: a defect of wirecheck")
	}
	return err
}
