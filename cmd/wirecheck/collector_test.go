package main

import (
	"runtime"
	"runtime/metrics"
	"testing"
)

// TestCollector: the percentage is high while little is in use, and falls with what is.
func TestCollector(t *testing.T) {
	for live, want := range map[uint64]int{0: 300, 10 << 20: 300, 32 << 20: 300, 64 << 20: 100, 80 << 20: 60, 1 << 30: 60, 1 << 40: 60} {
		if got := garbageFor(live); got != want {
			t.Errorf("%d MiB in use: %d%%, want %d%%", live>>20, got, want)
		}
	}
	percent := func() uint64 {
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(s)
		return s[0].Value.Uint64()
	}
	before := percent()
	stop := tuneCollector()
	held := make([]byte, 80<<20)
	for n := 0; ; n++ {
		runtime.GC()
		if percent() == leastGarbage {
			break
		}
		if n > 10_000 {
			t.Fatalf("with %d MiB in use the percentage stays %d", len(held)>>20, percent())
		}
	}
	stop()
	if now := percent(); now != before {
		t.Errorf("at the end the percentage is %d, and not %d as it was", now, before)
	}
	runtime.KeepAlive(held)
}
