package level

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/anomaly"
)

// TestNames has for each name of a cycle a history that shows it, and a near miss. An edge is "from kind to old new", with the places of its statements where
// they matter; a history begins with the sessions of its transactions.
func TestNames(t *testing.T) {
	done := map[string]bool{}
	for _, tt := range []struct{ name, shows, misses string }{
		{anomaly.DirtyWrite, "1 2: 1 ww 2 1 2, 2 ww 1 3 4", "1 2: 1 ww 2 1 2, 1 ww 2 3 4"},
		{anomaly.CircularFlow, "1 2: 1 wr 2 0 1, 2 wr 1 0 2", "1 2: 1 wr 2 0 1"},
		{anomaly.LostUpdate, "1 2: 1 rw 2 0 1, 2 ww 1 1 2", "1 2: 1 rw 2 0 1, 2 ww 1 3 4"}, // G-cursor; near miss: over two rows
		{anomaly.Vanishes, "1 2: 1 wr 2 0 1 0 0, 2 rw 1 0 2 1 0", "1 2: 1 wr 2 0 1 0 1, 2 rw 1 0 2 0 0"},
		{anomaly.Fractured, "1 2: 1 wr 2 0 1 0 1, 2 rw 1 0 2 0 0", "1 2: 1 wr 2 0 1 0 1, 1 wr 2 0 2"},
		{anomaly.CausalViolation, "1 2 3: 1 wr 2 0 1, 2 wr 3 0 2, 3 rw 1 0 1", "1 2 3: 1 wr 2 0 1, 2 wr 3 0 2, 1 wr 3 0 1"},
		{anomaly.ReadYourWrites, "1 1: 2 rw 1 0 1", "1 2: 2 rw 1 0 1"},
		{anomaly.MonotonicReads, "1 2 2: 1 wr 2 0 1, 3 rw 1 0 1", "1 2 2: 1 wr 3 0 1, 2 rw 1 0 1"},
		{anomaly.MonotonicWrites, "1 1: 2 ww 1 1 2", "1 1: 1 ww 2 1 2"},
		{anomaly.WritesFollowReads, "1 2 2: 1 wr 2 0 1, 3 ww 1 2 1", "1 2 3: 1 wr 2 0 1, 3 ww 1 2 1"},
		{anomaly.StaleRead, "then 1 2: 2 rw 1 0 1", "1 2: 2 rw 1 0 1"},
		{anomaly.LongFork, "1 2 3 4: 1 wr 3 0 1, 3 rw 2 0 2, 2 wr 4 0 2, 4 rw 1 0 1", "1 2 3 4: 1 wr 3 0 1, 3 rw 2 0 2, 2 wr 4 0 2, 1 wr 4 0 1"},
		{anomaly.WriteSkew, "1 2: 1 rw 2 0 1, 2 rw 1 0 2", "1 2: 1 rw 2 0 1, 1 rw 2 0 2"},
		{anomaly.ReadOnly, "1 2 3: 1 rw 2 0 1, 2 wr 3 0 1, 3 rw 1 0 2", "1 2 3 4: 1 rw 2 0 1, 2 wr 3 0 1, 3 rw 1 0 2, 3 ww 4 3 4"}, // near miss: it writes
	} {
		done[tt.name] = true
		if names := named(tt.shows); !strings.Contains(names, tt.name) {
			t.Errorf("%s: %s is not named so, but %s", tt.name, tt.shows, names)
		}
		if names := named(tt.misses); strings.Contains(names, tt.name) {
			t.Errorf("%s: near miss %s is named %s", tt.name, tt.misses, names)
		}
	}
	for _, s := range anomaly.Shapes {
		if !done[s.Name] {
			t.Errorf("%s has no history", s.Name)
		}
	}
}

// named are the names of the witnesses of all levels. Transactions overlap, or come one after the other ("then").
func named(text string) string {
	g := NewGraph()
	sessions, edges, _ := strings.Cut(text, ":")
	sessions, then := strings.CutPrefix(sessions, "then ")
	for i, session := range strings.Fields(sessions) {
		x := Txn{ID: uint64(i + 1), From: uint64(i + 1), To: uint64(100 + i)}
		if then {
			x.From, x.To = uint64(10*i+1), uint64(10*i+2)
		}
		fmt.Sscan(session, &x.Session)
		g.AddTxn(x)
	}
	for _, edge := range strings.Split(edges, ",") {
		var e Edge
		var kind string
		fmt.Sscan(edge, &e.From, &kind, &e.To, &e.Old, &e.New, &e.FromStatement, &e.ToStatement)
		e.Kind = map[string]Kind{"ww": WW, "wr": WR, "rw": RW}[kind]
		g.AddEdge(e)
	}
	var names []string
	for _, v := range g.Judge() {
		if v.Witness != nil {
			names = append(names, v.Witness.Name)
		}
	}
	return strings.Join(names, ", ")
}
