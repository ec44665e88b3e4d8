package main

import "wirecheck/history"

// Events are read ahead of their judging, in blocks of so many, and so many blocks.
const (
	aheadBlock  = 128
	aheadBlocks = 4
)

// aheadOf reads events in a goroutine of its own, ahead of the caller. What next gives is good until the next call. read may use the arrays again that it
// finds in the event that it is given, and no others. stop ends the reading, and then the file can be read again.
func aheadOf(read func(*history.Event) error) (next func() (*history.Event, error), stop func()) {
	type block struct {
		events []history.Event
		n      int
		err    error // what came behind the events
	}
	full, free, ended := make(chan *block, aheadBlocks), make(chan *block, aheadBlocks), make(chan struct{})
	for range aheadBlocks {
		free <- &block{events: make([]history.Event, aheadBlock)}
	}
	go func() {
		defer close(ended)
		for b := range free {
			for b.n = 0; b.n < len(b.events) && b.err == nil; {
				if b.err = read(&b.events[b.n]); b.err == nil {
					b.n++
				}
			}
			if full <- b; b.err != nil {
				return
			}
		}
	}()
	b, at := &block{}, 0
	next = func() (*history.Event, error) {
		for at == b.n {
			if b.err != nil {
				return nil, b.err
			}
			if b.events != nil {
				free <- b
			}
			b, at = <-full, 0
		}
		at++
		return &b.events[at-1], nil
	}
	stop = func() {
		close(free)
		<-ended // full has room for all blocks
	}
	return next, stop
}
