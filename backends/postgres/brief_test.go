package postgres

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/engine"
)

// TestDropBrief: a wait for a lock that is held within a statement only counts if its holder waits for something that lasts.
func TestDropBrief(t *testing.T) {
	ids := []uint64{10, 20, 30}
	on := func(pids ...uint64) engine.Wait { return engine.Wait{Blocked: true, For: pids} }
	none := engine.Wait{}
	tests := []struct {
		name  string
		waits []engine.Wait
		brief []bool
		want  []engine.Wait
	}{
		{"the holder runs", []engine.Wait{on(20), none, none}, []bool{true, false, false}, []engine.Wait{none, none, none}},
		{"the holder waits", []engine.Wait{on(20), on(30), none}, []bool{true, false, false}, []engine.Wait{on(20), on(30), none}},
		{"the holder waits briefly", []engine.Wait{on(20), on(30), none}, []bool{true, true, false}, []engine.Wait{none, none, none}},
		{"a chain that ends in a lasting wait", []engine.Wait{on(20), on(30), on(99)}, []bool{true, true, false}, []engine.Wait{on(20), on(30), on(99)}},
		{"an unknown holder", []engine.Wait{on(99), on(30), none}, []bool{true, false, false}, []engine.Wait{none, on(30), none}},
		{"nothing brief", []engine.Wait{on(20), none, none}, []bool{false, false, false}, []engine.Wait{on(20), none, none}},
	}
	for _, test := range tests {
		dropBrief(ids, test.waits, test.brief)
		if diff := cmp.Diff(test.want, test.waits); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
