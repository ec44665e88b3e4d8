package hunt

import (
	"path/filepath"
	"testing"
)

// TestBeside: two lists of queries of a database are executed at the same time, and count as they do one after the other. If the server ends meanwhile, nobody knows which of them
// is to blame, and it does not happen to the first one by itself. Near misses: the last list of a group, a case of several sessions, oracles of schedules beside.
func TestBeside(t *testing.T) {
	t.Parallel()
	made := func(oracles string) *hunter {
		h := hunterOn(t, "postgres", oracles, filepath.Join(t.TempDir(), "found"))
		h.o.Queries, h.o.Group = 30, 6
		return h
	}
	h, other := made("radar,tlp"), made("radar,tlp")
	h.last = 6
	for i, early := range []int{2, 2, 0, 0, 0, 0} {
		for _, h := range []*hunter{h, other} {
			if err := h.oneCase(t.Context(), i); err != nil {
				t.Fatal(err)
			}
		}
		if h.early == nil && early > 0 || h.early != nil && h.early.at != early || other.early != nil {
			t.Errorf("behind case %d: %+v, %+v", i, h.early, other.early)
		}
	}
	a, b := &h.store.state, &other.store.state
	if a.Cases != 6 || b.Cases != 6 || a.Statements != b.Statements || a.Unknown != b.Unknown {
		t.Errorf("%d cases with %d statements, %d of them unknown; one after the other %d, %d, %d", a.Cases, a.Statements, a.Unknown, b.Cases, b.Statements, b.Unknown)
	}
	for level, scores := range b.Scores {
		for name, want := range scores {
			if got := a.Scores.of(level, name); *got != *want || want.Cases != 6 || want.Compared < 30 {
				t.Errorf("%s, %s: %+v, one after the other %+v", level, name, got, want)
			}
		}
	}
	h.last = 12
	if err := h.Instance.Server.Kill(); err != nil {
		t.Fatal(err)
	}
	<-h.Instance.Server.Done()
	if err := h.oneCase(t.Context(), 6); err != nil {
		t.Fatal(err)
	}
	if a.Cases != 7 || a.Crashes != 0 || a.Flaky != 0 || h.early != nil {
		t.Errorf("the server ended beside two: %d cases, %d crashes, %d flaky, %+v", a.Cases, a.Crashes, a.Flaky, h.early)
	}
	if got := []int{h.beside(6), h.beside(7), h.beside(10)}; got[0] != 8 || got[1] != -1 || got[2] != -1 {
		t.Errorf("beside 6, 7 and 10: %v", got)
	}
	h.Selection.Isolation = true
	if got := h.beside(6); got != -1 {
		t.Errorf("beside 6, where the isolation oracle judges: %d", got)
	}
}
