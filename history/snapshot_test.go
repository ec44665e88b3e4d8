package history_test

import (
	"testing"

	"wirecheck/history"
)

func TestSnapshotUnchanged(t *testing.T) {
	for _, c := range []struct {
		name, first, later string
		own                uint64
		want               bool
	}{
		{"the same", "10:12:10", "10:12:10", 12, true},
		{"own has begun and ended", "10:12:10", "10:13:10", 12, true},
		{"others have begun", "10:12:10", "10:15:10,13,14", 12, true},
		{"own was running", "11:12:11", "12:12:", 11, true},
		{"one has ended", "10:12:10", "12:12:", 12, false},
		{"one has begun and ended", "10:12:10", "10:14:10", 12, false},
		{"one of two", "10:12:10,11", "10:12:10", 12, false},
		{"earlier", "10:12:10", "10:11:10", 12, false},
		{"very many", "10:12:", "10:20000:", 12, false},
	} {
		a, ok1 := history.ParseSnapshot(c.first)
		b, ok2 := history.ParseSnapshot(c.later)
		if got := a.Unchanged(b, c.own); !ok1 || !ok2 || got != c.want {
			t.Errorf("%s: from %s to %s, own %d: %v, want %v", c.name, c.first, c.later, c.own, got, c.want)
		}
	}
	for _, text := range []string{"", "1:2", "1:x:", "1:2:3,x", "1:2:3:4"} {
		if s, ok := history.ParseSnapshot(text); ok {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}

func TestSnapshotHides(t *testing.T) {
	for _, c := range []struct {
		snapshot string
		xmin     uint32
		want     bool
	}{
		{"10:12:10", 10, true},  // runs
		{"10:12:10", 12, true},  // has not begun
		{"10:12:10", 13, true},  // nor has this one
		{"10:12:10", 11, false}, // has ended, or is a subtransaction
		{"10:12:10", 9, false},
		{"4294967300:4294967302:4294967300", 4, true}, // versions keep the lower half
		{"4294967300:4294967302:4294967300", 5, false},
		{"4294967300:4294967302:4294967300", 6, true},
		{"4294967290:4294967294:4294967290", 2, true}, // of the next epoch
		{"4294967300:4294967302:", 4294967290, false}, // of the one before
	} {
		s, ok := history.ParseSnapshot(c.snapshot)
		if got := s.Hides(c.xmin); !ok || got != c.want {
			t.Errorf("%s hides %d: %v, want %v", c.snapshot, c.xmin, got, c.want)
		}
	}
}
