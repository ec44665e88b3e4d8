package product

// Visibility is one of the paper's rules of which versions a statement of a transaction sees (Troc, III-E2).
type Visibility uint8

// The rules. V1, a transaction's own versions and what was committed before it began, holds always and is not listed.
const (
	V2 Visibility = 2 // all versions, committed or not
	V3 Visibility = 3 // versions that are committed when the statement is executed
	V4 Visibility = 4 // versions that were committed when the transaction took its snapshot
)

// Kind is the kind of a statement as Troc's tables II and III know it.
type Kind uint8

// The kinds.
const (
	Select    Kind = iota
	Share          // SELECT ... FOR SHARE, and plain SELECT where it locks (Traits.ReadsLock)
	ForUpdate      // SELECT ... FOR UPDATE
	Update         // MERGE too
	Delete
	Insert // REPLACE too
)

func (k Kind) String() string {
	return [...]string{"SELECT", "SELECT FOR SHARE", "SELECT FOR UPDATE", "UPDATE", "DELETE", "INSERT"}[k]
}

// Writes reports whether statements of the kind write.
func (k Kind) Writes() bool { return k >= Update }

var (
	reads   = []Kind{Select}
	locking = []Kind{Share, ForUpdate}
	writes  = []Kind{Update, Delete, Insert}
	inserts = []Kind{Insert}
)

// View is a line of Troc's table II, widened: which versions a statement sees in the tables that it locks or writes, and in those that
// it only reads (subqueries, joined tables of a write, the source of INSERT ... SELECT). WriteCheck's and TxCheck's rules read it too.
type View struct {
	Levels []string
	Kinds  []Kind     // nil: all
	Locked Visibility // of the tables that are locked or written
	Read   Visibility // of the others
	Source string
}

// View finds the line of table II, the first that fits; ok is false for a product or level that it does not have.
func (p *Product) View(level string, kind Kind) (v View, ok bool) {
	for _, v := range p.Views {
		if has(v.Levels, level) && has(v.Kinds, kind) {
			return v, true
		}
	}
	return View{}, false
}
