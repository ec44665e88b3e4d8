package main

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// garbage is the garbage collector's percentage (runtime/debug.SetGCPercent) while traffic is observed. What the checker
	// remembers lives long and is small, a few tens of MiB as a rule (100 where each transaction reads hundreds of rows), so
	// collecting less often costs little memory and gives back a good part of the time that observing takes.
	garbage = 300
	// leastGarbage is the percentage where much memory is in use, as when clients make the proxy hold as much as they can.
	leastGarbage = 60
	// heapAim is up to what size of the heap the percentage may be more.
	heapAim = 128 << 20
)

// garbageFor is the percentage for so many bytes that are in use.
func garbageFor(live uint64) int {
	return int(min(garbage, max(leastGarbage, (heapAim-float64(live))*100/float64(max(live, 1)))))
}

// tuneCollector has each collection decide, by what it has left, when the next one comes. stop makes the percentage what it was.
func tuneCollector() (stop func()) {
	before := debug.SetGCPercent(garbage)
	now := garbage
	var mu sync.Mutex // guards what follows
	stopped := false
	var collected func(*[16]byte)
	collected = func(*[16]byte) {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		if want := garbageFor(live[0].Value.Uint64()); want < now*9/10 || want > now*11/10 {
			now = want
			debug.SetGCPercent(now)
		}
		runtime.SetFinalizer(new([16]byte), collected) // the next collection finds that nobody needs it
	}
	runtime.SetFinalizer(new([16]byte), collected)
	return func() {
		mu.Lock()
		defer mu.Unlock()
		stopped = true
		debug.SetGCPercent(before)
	}
}
