package lab

import (
	"context"
	"slices"
	"testing"
	"time"

	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/scheduler"
)

// numbered is a connection of which only the number matters.
type numbered struct {
	engine.Conn
	id uint64
}

func (c numbered) ID() uint64 { return c.id }

// meanwhile is a watcher to which the first connection waits for the second one; something happens before it answers.
type meanwhile struct {
	engine.Watcher
	happens func()
}

func (m meanwhile) Look(context.Context, []uint64) ([]engine.Wait, error) {
	m.happens()
	return []engine.Wait{{Blocked: true, Kind: "row", For: []uint64{12}}, {}}, nil
}

// TestLookIsOfTheStepBefore: a step ends while the server is asked who waits, and its session submits the next one. What was
// seen is of the first.
func TestLookIsOfTheStepBefore(t *testing.T) {
	for _, tt := range []struct {
		name    string
		limited bool // the server ends the step by itself
		next    bool // the session submits its next step meanwhile
	}{
		{"it waits on", false, false}, {"it ends", false, true}, {"it waits on, and has a limit", true, false}, {"it ends by its limit", true, true},
	} {
		first, second := &scenario.Step{Session: 0, Name: "first"}, &scenario.Step{Session: 0, Name: "second"}
		x := &execution{
			perm: &scenario.Permutation{Steps: []scenario.PermutationStep{{Step: first}, {Step: second}}}, plans: [][]int{{0, 1}, nil},
			done: make([]Event, 2), submitted: [][]int{{0}, nil}, waits: make([]engine.WaitKind, 2), waitSeen: make([]time.Time, 2),
			seen: make([]engine.Wait, 2), begun: []bool{true, false}, limited: []bool{tt.limited, false}, waitsFor: map[int][]int{},
		}
		x.lab = &Lab{members: []*session{{conn: numbered{id: 11}}, {conn: numbered{id: 12}}}, watcher: meanwhile{happens: func() {
			if tt.next {
				x.note(func() { x.submitted[0] = append(x.submitted[0], 1) })
			}
		}}}
		waits, err := x.look(t.Context(), []scheduler.Session{0})
		if err != nil || len(waits) != 1 || !waits[0].Blocked || waits[0].Foreign != tt.limited {
			t.Errorf("%s: saw %+v, %v", tt.name, waits, err)
		}
		whom, ends := x.waitsFor[0]
		if ends != tt.limited || ends && !slices.Equal(whom, []int{1}) || len(x.waitsFor[1]) > 0 {
			t.Errorf("%s: noted %v", tt.name, x.waitsFor)
		}
		if x.waits[0] != "row" || x.waits[1] != "" {
			t.Errorf("%s: the steps wait for %q", tt.name, x.waits)
		}
	}
}
