package rewrite_test

import (
	"testing"

	"wirecheck/rewrite"
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
		a, ok1 := rewrite.ParseSnapshot(c.first)
		b, ok2 := rewrite.ParseSnapshot(c.later)
		if got := a.Unchanged(b, c.own); !ok1 || !ok2 || got != c.want {
			t.Errorf("%s: from %s to %s, own %d: %v, want %v", c.name, c.first, c.later, c.own, got, c.want)
		}
	}
	for _, text := range []string{"", "1:2", "1:x:", "1:2:3,x", "1:2:3:4"} {
		if s, ok := rewrite.ParseSnapshot(text); ok {
			t.Errorf("%q is read as %v", text, s)
		}
	}
}
