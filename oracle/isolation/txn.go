package isolation

import (
	"wirecheck/history"
	"wirecheck/product"
)

// session is one client connection.
type session struct {
	id   uint64
	info history.Event // the EventSession
	dbms *product.Product
	txn  *txn // open transaction
	// late are ended transactions some of whose writes are still to be told (history.Event.Pending).
	late  []*txn
	apart apart
	last  *txn // strict: the last committed transaction
	// recorder is whose clock its ticks are of (Options.Recorder).
	recorder int
}

// state is what is known of a transaction's outcome.
type state uint8

const (
	stateOpen      state = iota
	stateCommitted       // a node of the graph
	stateAborted
	stateLimbo // outcome unknown, and none of its versions seen
)

// txn is one transaction.
type txn struct {
	id        uint64
	session   *session
	level     string
	implicit  bool
	state     state
	begin     uint64 // Checker.seq at its begin and end
	end       uint64
	from, to  uint64 // ticks
	endedAt   int64
	sent      uint64 // no later than the tick before COMMIT was sent
	answered  bool   // the server said that it committed
	oldest    uint64 // begin of the transaction that was open longest at its begin
	floor     uint64 // who ended before this cannot be on a cycle with it through a predicate read, see beginTxn
	installed int    // accesses that entered the graph
	stmts     []stmt
	accesses  []access
	reads     []*predicate
	told      []told  // of accesses[installed:]: what they said, until it is in the graph
	writes    []int32 // the accesses in the graph that write
	tokens    []string
	part      product.Participation
	mistaken  bool // its last refusal was for a mistake, or followed from one
	undone    bool // some of its writes were undone, or may have been
	passed    bool // it is only counted (Options.Only)
	wrote     bool // of one that is only counted
	partial   bool // accesses are missing: its reads are not judged
	size      int  // what it takes, in bytes, see size.go
	weight    int  // once it has ended: as how many transactions it counts, since a client may put any number of statements into one
	request   *request
	mixed     bool // it has statements of several requests
	tags      []string
	// reportedLost are the statements of which a lost update between requests was reported; false: as possible.
	reportedLost map[int32]bool

	prevOpen, nextOpen *txn

	// node of the graph
	out     []*link
	outTo   map[*txn]*link // built when out grows long
	led     bool           // links lead to it, or did before the last sweep
	node    uint32         // one more than its number in graph.nodes; 0: it has none
	rt      []*txn         // strict: real-time predecessors, found at its begin
	touched []*version     // versions that hold this transaction as writer or reader, but for those of its reads
	sets    []string       // keys of Checker.reported in which it takes part
	gone    bool           // forgotten

	mark  uint32 // epoch, for sweeps
	fresh uint32 // Checker.freshMark when a link to Checker.fresh was made last
}

func (t *txn) product() *product.Product { return t.session.dbms }

// stmt is one statement of a transaction.
type stmt struct {
	n        int
	sql      string
	verb     string
	from, to uint64
	at       int64
	tags     []string
	current  bool // CurrentRead
	failed   bool // the server refused it, or it was undone by ROLLBACK TO SAVEPOINT
	// duplicate: the server refused it since a row with its key is there already.
	duplicate bool
	coverage  history.Coverage
	unsure    bool     // of some row it is not certain that it was read or written
	unseen    bool     // counted in Coverage.Unseen
	columns   *columns // of an UPDATE, where requests are known
	shown     *shown   // nil: nothing
	// What its text says, see texts.of and selectedBy, once that was asked for.
	uses                      *uses
	selection                 *selection
	usesKnown, selectionKnown bool
}

// exact reports whether the statement named each row that it read and wrote.
func (s *stmt) exact() bool { return s.coverage == history.CoverageExact && !s.unsure }

// access is one history.Access of a kept transaction. Most of the memory of a Checker is accesses, so what they said is
// kept apart (told) and let go when it is in the graph.
type access struct {
	node *version // what it read or wrote, once installed
	stmt int32    // index of its statement
	// older is one more than the number of the plain read of the same row that came before this one (see record.plain).
	older int32
	op    op
	// superseded marks a plain read that a later current read of the same transaction made irrelevant.
	superseded bool
	// denied marks an UPDATE that changed nothing in a row that its transaction then read in an older version.
	denied bool
	own    bool // read its own version
}

// told is what an access said.
type told struct {
	table  *table
	key    string
	name   string
	ver    string
	writer string
	prev   string
	prevW  string
	order  uint64
	prevO  uint64
	asOf   uint64
	became string // images
	were   string

	row *row     // see Checker.look
	was *version // the version read, if it was the row's last one
}

// toldBy is what access number i, which is not in the graph yet, said.
func (t *txn) toldBy(i int) *told { return &t.told[i-(len(t.accesses)-len(t.told))] }
