// Package cycle searches a graph of dependencies between transactions for the shortest cycle of each class through one of them.
//
// Searches spend their time waiting for memory. So a graph is numbers, close together: what is known of the transactions and of their dependencies is
// kept by those who search.
package cycle

import "wirecheck/anomaly"

// Kinds is a set of kinds of dependencies.
type Kinds uint8

// The kinds.
const (
	WW Kinds = 1 << iota
	WR
	RW
	SO
	RT
	Request // evidence of findings only, never in a graph
	Row     // ww of writes that commute, see package isolation

	Data = WW | WR | RW
)

// Arc is all that leads from one node to another, from one of its ends.
type Arc struct {
	Node  uint32 // at the other end
	Kinds Kinds
}

// Node is a transaction: what leads from it, and to it, in the order in which it was drawn.
type Node struct{ Out, In []Arc }

// visited says in which states a search met a node.
type visited struct {
	epoch  uint32 // of the last search that met it
	states uint8  // a bit each
}

// hops are by state how many hops there are from a node to the end of a walk.
type hops [maxStates]uint32

// Graph is a graph of dependencies. It has one owner.
type Graph struct {
	Nodes []Node
	// Backward says that an edge other than rw led to a transaction that had ended before its beginning did.
	Backward bool
	// Far counts the searches that ended at their limit and had found nothing till then.
	Far int

	// By the number of the node. Searches read the first ones most.
	begins, ends []visited // by the search from the beginning of a walk, and by that from its end
	left         []hops
	ended        []uint64 // when it ended

	mark        uint32  // epoch of searches
	ahead, back []visit // queues of walk
	near        int     // maxNear
	spent       int     // visits of all searches without a bound of their own
	grant       int     // maxSpent
	free        int     // freeVisits
}

// New makes a graph with room for so many nodes.
func New(nodes int) *Graph {
	return &Graph{Nodes: make([]Node, 0, nodes), begins: make([]visited, 0, nodes), ends: make([]visited, 0, nodes), left: make([]hops, 0, nodes), ended: make([]uint64, 0, nodes), near: maxNear, grant: maxSpent, free: freeVisits}
}

// Limit sets how many visits the first search for a cycle may take, and how many all searches together are granted, and for each transaction.
func (g *Graph) Limit(near, grant, free int) { g.near, g.grant, g.free = near, grant, free }

// Default limits, see Limit.
const (
	DefaultNear  = maxNear
	DefaultGrant = maxSpent
	DefaultFree  = freeVisits
)

// Add adds a transaction, which ended at this time, and gives its number.
func (g *Graph) Add(end uint64) uint32 {
	g.Nodes, g.begins, g.ends = append(g.Nodes, Node{}), append(g.begins, visited{}), append(g.ends, visited{})
	g.left, g.ended = append(g.left, hops{}), append(g.ended, end)
	return uint32(len(g.Nodes) - 1)
}

// Join draws a new arc, and gives its places at both ends.
func (g *Graph) Join(from, to uint32, k Kinds) (out, in uint32) {
	a, b := &g.Nodes[from], &g.Nodes[to]
	out, in = uint32(len(a.Out)), uint32(len(b.In))
	a.Out, b.In = append(a.Out, Arc{to, k}), append(b.In, Arc{from, k})
	return out, in
}

// Set gives an arc, by its places at both ends, its kinds.
func (g *Graph) Set(from, out, to, in uint32, k Kinds) {
	g.Nodes[from].Out[out].Kinds = k
	g.Nodes[to].In[in].Kinds = k
}

// Keep takes out all arcs, and the nodes that keep does not want. It gives each node that stays its new number, in their order.
func (g *Graph) Keep(keep func(node uint32) bool, number func(old, new uint32)) {
	kept := 0
	for i := range g.Nodes {
		if keep(uint32(i)) {
			g.Nodes[kept], g.ended[kept] = Node{g.Nodes[i].Out[:0], g.Nodes[i].In[:0]}, g.ended[i]
			number(uint32(i), uint32(kept))
			kept++
		}
	}
	clear(g.Nodes[kept:])
	g.Nodes, g.ended = g.Nodes[:kept], g.ended[:kept]
	clear(g.begins) // who stays has another number
	clear(g.ends)
	g.begins, g.ends, g.left = g.begins[:kept], g.ends[:kept], g.left[:kept]
	if cap(g.Nodes) > 4*kept {
		g.Nodes, g.ended = append([]Node(nil), g.Nodes...), append([]uint64(nil), g.ended...)
		g.begins, g.ends, g.left = make([]visited, kept), make([]visited, kept), make([]hops, kept)
	}
}

// Hop is one hop of a cycle: along arc number Arc of those that lead from a node, over an rw edge or over one of the others.
type Hop struct {
	From, Arc uint32
	RW        bool
}

// To is where a hop leads.
func (g *Graph) To(h Hop) uint32 { return g.Nodes[h.From].Out[h.Arc].Node }

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
