package offline

import (
	"runtime"
	"sync"

	"wirecheck/history"
)

// relay hands the events of a history to a second goroutine, in batches, so that reading and counting go on while a sieve takes them. Where there is one
// processor, it gives each event at once.
type relay struct {
	take       func(*history.Event)
	free, full chan []history.Event
	batch      []history.Event
	n          int // of the batch: so many are to be taken
	ended      chan struct{}
}

// A batch should fit a processor's cache, with the accesses of its events.
const (
	relayBatch   = 128
	relayBatches = 4
)

// newRelay makes a relay. close ends its goroutine.
func newRelay(take func(*history.Event)) *relay {
	r := &relay{take: take}
	if runtime.GOMAXPROCS(0) == 1 {
		r.batch = make([]history.Event, 1)
		return r
	}
	r.batch = make([]history.Event, relayBatch)
	r.free, r.full, r.ended = make(chan []history.Event, relayBatches), make(chan []history.Event, relayBatches), make(chan struct{})
	for range relayBatches - 1 {
		r.free <- make([]history.Event, relayBatch)
	}
	go func() {
		defer close(r.ended)
		for batch := range r.full {
			for i := range batch {
				take(&batch[i])
			}
			r.free <- batch[:cap(batch)]
		}
	}()
	return r
}

// event is the place of the next event, with the room of one before.
func (r *relay) event() *history.Event { return &r.batch[r.n] }

// pass hands on the event in that place, which nobody may change any more.
func (r *relay) pass() {
	if r.full == nil {
		r.take(&r.batch[0])
		return
	}
	if r.n++; r.n == len(r.batch) {
		r.full <- r.batch
		r.batch, r.n = <-r.free, 0
	}
}

// close waits until all events are taken.
func (r *relay) close() {
	if r.full == nil {
		return
	}
	r.full <- r.batch[:r.n]
	close(r.full)
	<-r.ended
}

// eachAtOnce calls do with each number below n, all at the same time.
func eachAtOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}
