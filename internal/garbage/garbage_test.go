package garbage

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

// TestTune: the percentage is high while little is in use, and falls with what is. The limit is the user's, if there is one.
func TestTune(t *testing.T) {
	for live, want := range map[uint64]int{0: 300, 10 << 20: 300, 32 << 20: 300, 64 << 20: 100, 80 << 20: 60, 1 << 30: 60, 1 << 40: 60} {
		if got := percentFor(live); got != want {
			t.Errorf("%d MiB in use: %d%%, want %d%%", live>>20, got, want)
		}
	}
	for live, want := range map[uint64]int64{0: 190 << 20, 142 << 20: 190 << 20, 210 << 20: 280 << 20, 3 << 38: 1 << 40} {
		for _, besides := range []uint64{0, live / 2} {
			if got := memoryFor(live-besides, besides); got != want {
				t.Errorf("%d MiB in use, %d of it besides the heap: a limit of %d, want %d", live>>20, besides>>20, got, want)
			}
		}
	}
	enough, sleepers := make(chan struct{}), 20_000 // their stacks have 2 KiB each, and the heap hardly anything
	_, before := inUse()
	for range sleepers {
		go func() { <-enough }()
	}
	if _, besides := inUse(); besides < before+uint64(sleepers)<<10 {
		t.Errorf("%d bytes are in use besides the heap, and %d before %d goroutines began", besides, before, sleepers)
	}
	close(enough)
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	percentage := percent()
	for _, set := range []int64{math.MaxInt64, 1 << 30} { // without a limit of the user's, and with one
		limit := debug.SetMemoryLimit(set)
		stop := Tune()
		for n := 0; (debug.SetMemoryLimit(-1) == memoryAim) != (set == math.MaxInt64); n++ {
			if n > 10_000 {
				t.Fatalf("where the user sets %d, the limit is %d", set, debug.SetMemoryLimit(-1))
			}
			runtime.GC()
		}
		stop()
		if now := debug.SetMemoryLimit(limit); now != set {
			t.Errorf("at the end the limit is %d, and not %d as it was", now, set)
		}
	}
	stop := Tune()
	held := make([]byte, 80<<20)
	for n := 0; ; n++ {
		runtime.GC()
		if percent() == least {
			break
		}
		if n > 10_000 {
			t.Fatalf("with %d MiB in use the percentage stays %d", len(held)>>20, percent())
		}
	}
	stop()
	if now := percent(); now != percentage {
		t.Errorf("at the end the percentage is %d, and not %d as it was", now, percentage)
	}
	runtime.KeepAlive(held)
}
