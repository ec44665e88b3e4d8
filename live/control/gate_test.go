package control

import (
	"context"
	"testing"

	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/scheduler"
)

// blindWatcher sees nobody wait.
type blindWatcher struct{ engine.Watcher }

func (blindWatcher) Look(_ context.Context, ids []uint64) ([]engine.Wait, error) {
	return make([]engine.Wait, len(ids)), nil
}

// TestControlUnseen: so is one that could not be looked at.
func TestControlUnseen(t *testing.T) {
	d, err := backends.ByName("tidb")
	if err != nil {
		t.Fatal(err)
	}
	k := &Gate{look: shyWatcher{}, engine: d, backends: []uint64{7, 8}, texts: [][]string{{"SELECT 1"}, {"SELECT v FROM t"}}}
	waits, err := k.waits(t.Context(), []scheduler.Session{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if waits[0].Patience != d.Patience || waits[1].Patience != 0 {
		t.Errorf("patience %v and %v, want %v and none", waits[0].Patience, waits[1].Patience, d.Patience)
	}
}

// shyWatcher cannot tell of the first session.
type shyWatcher struct{ engine.Watcher }

func (shyWatcher) Look(_ context.Context, ids []uint64) ([]engine.Wait, error) {
	waits := make([]engine.Wait, len(ids))
	waits[0].Unseen = true
	return waits, nil
}

// TestControlSilent: a statement of which the server shows nothing is given only so much time, another one all it needs.
func TestControlSilent(t *testing.T) {
	d, err := backends.ByName("tidb")
	if err != nil {
		t.Fatal(err)
	}
	k := &Gate{look: blindWatcher{}, engine: d, backends: []uint64{7, 8}, texts: [][]string{{"BEGIN", "UPDATE t SET v = 1"}, {"SELECT v FROM t"}}}
	waits, err := k.waits(t.Context(), []scheduler.Session{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if waits[0].Patience != d.Patience || d.Patience == 0 || waits[1].Patience != 0 {
		t.Errorf("patience %v and %v, want %v and none", waits[0].Patience, waits[1].Patience, d.Patience)
	}
}
