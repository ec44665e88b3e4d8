package product

// Mode is the strength of a row lock, weakest first (PostgreSQL manual, 13.3.2; the others have LockShare and LockUpdate only).
type Mode uint8

// The modes.
const (
	LockNone Mode = iota
	LockKeyShare
	LockShare
	LockNoKeyUpdate
	LockUpdate
)

// Conflicts reports whether two transactions cannot hold both modes on one row.
func (m Mode) Conflicts(o Mode) bool {
	if m > o {
		m, o = o, m
	}
	switch m {
	case LockNone:
		return false
	case LockKeyShare:
		return o == LockUpdate
	case LockShare:
		return o >= LockNoKeyUpdate
	}
	return true
}

// Lock is a line of Troc's table III: what a statement locks for certain. The paper's rule is sound in one direction only: engines lock
// more (III-E3), so that nothing follows from a wait that was not expected.
type Lock struct {
	Levels []string // nil: all
	Kinds  []Kind
	Mode   Mode
	// Predicate says that no other transaction can bring in a row that the condition holds for.
	Predicate bool
	Source    string
}

// Lock finds the line of table III, the first that fits.
func (p *Product) Lock(level string, kind Kind) (l Lock, ok bool) {
	for _, l := range p.Locks {
		if has(l.Levels, level) && has(l.Kinds, kind) {
			return l, true
		}
	}
	return Lock{}, false
}
