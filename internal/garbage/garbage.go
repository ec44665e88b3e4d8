// Package garbage tunes the garbage collector of a process that observes traffic for days.
package garbage

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	// most is the garbage collector's percentage (runtime/debug.SetGCPercent) while traffic is observed. What the checker
	// remembers lives long and is small, a few tens of MiB as a rule (100 where each transaction reads hundreds of rows), so
	// collecting less often costs little memory and gives back a good part of the time that observing takes.
	most = 300
	// least is the percentage where much memory is in use, as when clients make the proxy hold as much as they can.
	least = 60
	// heapAim is up to what size of the heap the percentage may be more.
	heapAim = 128 << 20
	// memoryAim is how much memory the Go runtime may hold (runtime/debug.SetMemoryLimit) while little of it is in use. Under it the runtime
	// gives back what clients made it take for a while: else a heap with 125 MiB in use holds 300.
	memoryAim = 190 << 20
)

// memoryFor is the limit for so many bytes that are in use, in the heap and besides it: 10,000 sessions need more for stacks than for what they point
// to. It leaves a third as much again, so that much in use does not mean collecting all the time.
func memoryFor(live, besides uint64) int64 {
	return int64(max(memoryAim, float64(live+besides)*4/3))
}

// inUse is what the last collection left in the heap, and what the limit counts besides the heap: stacks and the runtime's own data, in bytes.
func inUse() (live, besides uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/objects:bytes"},
		{Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	besides = s[1].Value.Uint64()
	for _, heap := range s[2:] {
		besides -= min(besides, heap.Value.Uint64())
	}
	return s[0].Value.Uint64(), besides
}

// percentFor is the percentage for so many bytes that are in use.
func percentFor(live uint64) int {
	return int(min(most, max(least, (heapAim-float64(live))*100/float64(max(live, 1)))))
}

// Tune has each collection decide, by what it has left, when the next one comes, and how much memory may be held. stop makes both what they
// were. A limit that the user has set (GOMEMLIMIT) stays.
func Tune() (stop func()) {
	before, limit := debug.SetGCPercent(most), debug.SetMemoryLimit(-1)
	now := most
	limited := limit != math.MaxInt64
	var mu sync.Mutex // guards what follows
	stopped := false
	var collected func(*[16]byte)
	collected = func(*[16]byte) {
		mu.Lock()
		defer mu.Unlock()
		if stopped {
			return
		}
		live, besides := inUse()
		if !limited {
			debug.SetMemoryLimit(memoryFor(live, besides))
		}
		if want := percentFor(live); want < now*9/10 || want > now*11/10 {
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
		debug.SetMemoryLimit(limit)
	}
}
