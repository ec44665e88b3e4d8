// Package cycle searches a graph of dependencies between transactions for the shortest cycle of each class through one of them.
//
// Searches spend their time waiting for memory. So a graph is numbers, close together: what is known of the transactions and of their dependencies is
// kept by those who search.
package cycle

import (
	"math/bits"
	"slices"

	"wirecheck/anomaly"
)

// Kinds is a set of kinds of dependencies.
type Kinds uint16

// The kinds.
const (
	WW Kinds = 1 << iota
	WR
	RW
	SO
	RT
	Row   // ww of writes that commute, see package isolation
	RowWR // wr and rw of reads of other columns than were written
	RowRW
	Request // evidence of findings only, never in a graph

	Data = WW | WR | RW
	Rows = Row | RowWR | RowRW
	Anti = RW | RowRW
)

// Arc is all that leads from one node to another, from one of its ends: the node at the other end, and the kinds in the lowest bits.
type Arc uint32

const (
	arcBits = 8 // of kinds
	// MaxNodes is how many transactions a graph holds at most; Add panics beyond.
	MaxNodes = 1<<(32-arcBits) - 1
)

func arc(node uint32, k Kinds) Arc { return Arc(node<<arcBits | uint32(k)) }

// Node is the node at the other end.
func (a Arc) Node() uint32 { return uint32(a) >> arcBits }

// Kinds are the kinds of dependencies.
func (a Arc) Kinds() Kinds { return Kinds(a & (1<<arcBits - 1)) }

// node is a transaction: what leads from it, and to it, in the order in which it was drawn.
type node struct{ out, in list }

// list is a list of arcs: where it begins, and how many there are.
type list struct{ at, n uint32 }

// smallList is how many arcs a list has room for at first. It has room for the next power of two then, unless Graph.Room gave it room.
const smallList = 4

// met says in which states the search of an epoch met a node: from the beginning of a walk, and from its end, a bit each. last is the entry of it in the
// queue of the latter that came last.
type met struct {
	epoch       uint32
	last        int32
	ahead, back uint8
}

// Graph is a graph of dependencies. It has one owner.
type Graph struct {
	// Backward says that an edge other than rw led to a transaction that had ended before its beginning did.
	Backward bool
	// Far counts the searches that ended at their limit and had found nothing till then.
	Far int

	nodes []node
	arcs  []Arc        // of all lists
	free  [32][]uint32 // where lists may begin again, by the power of two for which there is room
	roomy bool         // all lists have room
	met   []met
	ended []uint64 // when it ended

	mark        uint32  // epoch of searches
	ahead, back []visit // queues of walk
	near        int     // maxNear
	spent       int     // visits of all searches without a bound of their own
	grant       int     // maxSpent
	gift        int     // freeVisits
}

// New makes a graph with room for so many nodes, and arcs, if their number is known: then Room has to say of each node how many it may have.
func New(nodes, arcs int) *Graph {
	g := &Graph{nodes: make([]node, 0, nodes), met: make([]met, 0, nodes), ended: make([]uint64, 0, nodes), near: maxNear, grant: maxSpent, gift: freeVisits}
	if arcs > 0 {
		g.roomy, g.arcs = true, make([]Arc, 0, 2*arcs)
	}
	return g
}

// Limit sets how many visits the first search for a cycle may take, and how many all searches together are granted, and for each transaction.
func (g *Graph) Limit(near, grant, free int) { g.near, g.grant, g.gift = near, grant, free }

// Default limits, see Limit.
const (
	DefaultNear  = maxNear
	DefaultGrant = maxSpent
	DefaultFree  = freeVisits
)

// Add adds a transaction, which ended at this time, and gives its number.
func (g *Graph) Add(end uint64) uint32 {
	if len(g.nodes) > MaxNodes {
		panic("cycle: too many transactions")
	}
	g.nodes, g.met, g.ended = append(g.nodes, node{}), append(g.met, met{}), append(g.ended, end)
	return uint32(len(g.nodes) - 1)
}

// Room makes room for so many arcs from and to the node that was added last.
func (g *Graph) Room(out, in uint32) {
	at := uint32(len(g.arcs))
	g.nodes[len(g.nodes)-1] = node{list{at, 0}, list{at + out, 0}}
	g.arcs = g.arcs[:at+out+in]
}

// Out are the arcs from a node, In those to it. They are good until the next arc is drawn.
func (g *Graph) Out(node uint32) []Arc { return g.of(g.nodes[node].out) }

// In are the arcs to a node.
func (g *Graph) In(node uint32) []Arc { return g.of(g.nodes[node].in) }

func (g *Graph) of(l list) []Arc { return g.arcs[l.at : l.at+l.n] }

// Join draws a new arc, and gives its places at both ends.
func (g *Graph) Join(from, to uint32, k Kinds) (out, in uint32) {
	return g.put(&g.nodes[from].out, arc(to, k)), g.put(&g.nodes[to].in, arc(from, k))
}

func (g *Graph) put(l *list, a Arc) uint32 {
	if n := l.n; !g.roomy && (n == 0 || n >= smallList && n&(n-1) == 0) {
		g.grow(l)
	}
	l.n++
	g.arcs[l.at+l.n-1] = a
	return l.n - 1
}

// grow gives a list that is full twice the room.
func (g *Graph) grow(l *list) {
	old := *l
	size := max(2*l.n, smallList)
	class := bits.TrailingZeros32(size)
	if n := len(g.free[class]); n > 0 {
		l.at, g.free[class] = g.free[class][n-1], g.free[class][:n-1]
	} else {
		l.at = uint32(len(g.arcs))
		g.arcs = slices.Grow(g.arcs, int(size))[:l.at+size]
	}
	if copy(g.arcs[l.at:], g.of(old)); old.n > 0 {
		g.free[class-1] = append(g.free[class-1], old.at)
	}
}

// Set gives an arc, by its places at both ends, its kinds.
func (g *Graph) Set(from, out, to, in uint32, k Kinds) {
	g.Out(from)[out] = arc(to, k)
	g.In(to)[in] = arc(from, k)
}

// Clear takes out all nodes and arcs, and keeps room for as many as there were.
func (g *Graph) Clear() {
	nodes, arcs := len(g.nodes), len(g.arcs)
	g.nodes, g.ended, g.met, g.arcs, g.free = g.nodes[:0], g.ended[:0], g.met[:0], g.arcs[:0], [32][]uint32{}
	if cap(g.nodes) > 4*nodes {
		g.nodes, g.ended, g.met = nil, nil, nil
	}
	if cap(g.arcs) > 4*arcs {
		g.arcs = nil
	}
}

// Hop is one hop of a cycle: along arc number Arc of those that lead from a node, over an rw edge or over one of the others.
type Hop struct {
	From, Arc uint32
	RW        bool
}

// To is where a hop leads.
func (g *Graph) To(h Hop) uint32 { return g.Out(h.From)[h.Arc].Node() }

// Walk is a cycle as one who knows the transactions by their ids can tell it.
type Walk struct {
	Class anomaly.Class
	Steps []Step
}

// Step is a hop of a walk, from a transaction, with all edges that lead to the next one, in the order in which they were drawn.
type Step struct {
	Txn   uint64
	RW    bool
	Edges []Edge
}

// Edge is an edge between an access of one transaction and one of another, by the numbers that these have in their transactions.
type Edge struct {
	Kind     Kinds
	Over     bool // a ww that stands for a path over other versions of the row
	From, To uint32
}

// Txn is a committed transaction as one who draws edges knows it. From and To are ticks. Edges says that it may have edges.
type Txn struct {
	ID, Session, From, To uint64
	Edges                 bool
}

// Dependency is an edge between two transactions, by their ids, as package level has it: Old and New number versions, the statements are their places in
// their transactions.
type Dependency struct {
	From, To                   uint64
	Kind                       Kinds
	Old, New                   uint32
	FromStatement, ToStatement int32
}
