package offline

import (
	"testing"

	"wirecheck/history"
)

// TestRelay: all events arrive, in their order, whether the last batch is full, begun or empty.
func TestRelay(t *testing.T) {
	for _, n := range []int{0, 1, relayBatch - 1, relayBatch, relayBatch + 1, 3*relayBatches*relayBatch + 7} {
		var got []uint64
		r := newRelay(func(e *history.Event) { got = append(got, e.Txn) })
		for i := range n {
			e := r.event()
			*e = history.Event{Txn: uint64(i), Accesses: append(e.Accesses[:0], history.Access{})}
			r.pass()
		}
		r.close()
		if len(got) != n {
			t.Fatalf("%d of %d events arrived", len(got), n)
		}
		for i, txn := range got {
			if txn != uint64(i) {
				t.Fatalf("of %d events, %d came as number %d", n, txn, i)
			}
		}
	}
}
