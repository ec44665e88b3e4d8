package mysql

import (
	"slices"
	"testing"
)

// TestMetadataConflict: the table is symmetric, as the server's is, and the strongest kind stands beside nothing.
func TestMetadataConflict(t *testing.T) {
	for a := range weakMetadata {
		for b := range weakMetadata {
			if metadataConflict(a, b) != metadataConflict(b, a) {
				t.Errorf("%s and %s: it depends on who comes first", a, b)
			}
		}
		if !metadataConflict(a, "EXCLUSIVE") || !metadataConflict("EXCLUSIVE", a) {
			t.Errorf("EXCLUSIVE stands beside %s", a)
		}
	}
}

func TestMetadataOwners(t *testing.T) {
	locks := []metadataLock{
		{"t", "SHARED_READ", true, 1}, {"t", "SHARED_WRITE", true, 2}, {"t", "EXCLUSIVE", false, 3}, {"t", "SHARED_UPGRADABLE", true, 3},
		{"t", "SHARED_READ", false, 4}, {"u", "SHARED_READ", true, 5}, {"g", "SHARED", true, 6}, {"g", "INTENTION_EXCLUSIVE", false, 7},
	}
	for session, want := range map[uint64][]uint64{1: nil, 3: {1, 2}, 4: {3}, 7: {6}, 9: nil} {
		if got := metadataOwners(session, locks); !slices.Equal(got, want) {
			t.Errorf("session %d waits for %v, want %v", session, got, want)
		}
	}
}
