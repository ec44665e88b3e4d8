package shell

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// TestStill: where it can be seen that nobody outside can do anything, a session that thinks is awaited until then and no longer, without
// a mark. What happens while that is looked at counts.
func TestStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var still atomic.Bool
		var meanwhile atomic.Pointer[func()]
		w := start(t, 2, Limits{Still: func(context.Context) bool {
			if do := meanwhile.Swap(nil); do != nil {
				(*do)()
			}
			return still.Load()
		}}, false, false)
		one := w.enter(t.Context(), 0)
		w.held(one, 1000*ms)
		var two chan error
		late := func() { // the other session offers its step while all is still, as it seems
			two = make(chan error, 1)
			w.sh.mu.Lock()
			step := w.sh.core.Offer(1, "")
			w.sh.gates[step.Session].waiting = true
			open := w.sh.gates[step.Session].open
			w.sh.tell()
			w.sh.mu.Unlock()
			go func() { two <- <-open }()
			still.Store(false)
		}
		still.Store(true)
		meanwhile.Store(&late)
		w.held(one, 1000*ms)
		still.Store(true)
		w.goes(one)
		w.held(two, 1000*ms) // the first step is with the server
		w.sh.Finish(0, false)
		w.goes(two)
		w.sh.Finish(1, false)
		w.goes(w.enter(t.Context(), 1)) // the other one thinks
		w.sh.Finish(1, false)
		w.sh.Leave(1)
		w.goes(w.enter(t.Context(), 0))
		w.marks()
		w.schedule("run 0 1.1 for []", "run 1 2.1 for []", "run 1 2.2 for []", "leave 1  for []")
		w.end()
	})
}
