package record

import (
	"runtime"
	"sync/atomic"
)

// Lanes bound how many long texts are planned at a time: hundreds of sessions that send them would take the processors from all others.
type Lanes struct {
	room    chan struct{}
	waiting atomic.Int32
}

const (
	longText = 8 << 10 // bytes; a text that is longer needs a lane
	// WaitLanes is how many texts may wait for one. Further ones are not planned.
	WaitLanes = 8
)

func newLanes() *Lanes {
	return &Lanes{room: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
}

// Plan calls plan when the text may be planned, which a long one waits for. It reports false, and does not call it, if too many wait already, unless the text must be planned.
func (l *Lanes) Plan(text string, must bool, plan func()) bool {
	if len(text) <= longText {
		plan()
		return true
	}
	if l.waiting.Add(1) > WaitLanes && !must {
		l.waiting.Add(-1)
		return false
	}
	l.room <- struct{}{}
	l.waiting.Add(-1)
	defer func() { <-l.room }()
	plan()
	return true
}
