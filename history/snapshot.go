package history

import (
	"slices"
	"strconv"
	"strings"
)

// Snapshot is what a statement can see of other transactions, as pg_current_snapshot() tells it (PostgreSQL manual, 9.27.4): those below Next that are not
// among Running. Subtransactions are not told apart from transactions that have ended.
type Snapshot struct {
	Next    uint64
	Running []uint64
}

// ParseSnapshot reads the text xmin:xmax:xip_list.
func ParseSnapshot(text string) (s Snapshot, ok bool) {
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, false
	}
	var err error
	if s.Next, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return s, false
	}
	for _, one := range strings.FieldsFunc(parts[2], func(r rune) bool { return r == ',' }) {
		id, err := strconv.ParseUint(one, 10, 64)
		if err != nil {
			return s, false
		}
		s.Running = append(s.Running, id)
	}
	return s, true
}

// maxStarted is how many transactions may have begun between two snapshots that are compared.
const maxStarted = 10_000

// Unchanged reports whether no transaction but own has ended between s and a later snapshot of the same session.
func (s Snapshot) Unchanged(later Snapshot, own uint64) bool {
	if later.Next < s.Next || later.Next-s.Next > maxStarted {
		return false
	}
	for _, id := range s.Running {
		if id != own && !slices.Contains(later.Running, id) {
			return false
		}
	}
	for id := s.Next; id < later.Next; id++ {
		if id != own && !slices.Contains(later.Running, id) {
			return false
		}
	}
	return true
}

// Hides reports whether what a transaction wrote was certainly not visible, by the xmin of one of its versions: the transaction had not ended, or had not begun.
// Of a subtransaction that had begun it cannot be told, see Running. Versions keep the lower half of the numbers.
func (s Snapshot) Hides(xmin uint32) bool {
	return int32(xmin-uint32(s.Next)) >= 0 || slices.ContainsFunc(s.Running, func(id uint64) bool { return uint32(id) == xmin })
}
