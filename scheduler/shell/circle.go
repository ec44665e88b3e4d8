package shell

import (
	"slices"

	"wirecheck/scheduler"
)

// findCircles sets Cycle of the sessions that wait for themselves by way of others.
func findCircles(sessions []scheduler.Session, waits []Wait) {
	for i, s := range sessions {
		waits[i].Cycle = waits[i].Cycle || waitsForItself(s, sessions, waits)
	}
}

func waitsForItself(s scheduler.Session, sessions []scheduler.Session, waits []Wait) bool {
	seen := make([]bool, len(sessions))
	for todo := []scheduler.Session{s}; len(todo) > 0; {
		i := slices.Index(sessions, todo[0])
		todo = todo[1:]
		if i < 0 || seen[i] || !waits[i].Blocked {
			continue
		}
		seen[i] = true
		if slices.Contains(waits[i].For, s) {
			return true
		}
		todo = append(todo, waits[i].For...)
	}
	return false
}
