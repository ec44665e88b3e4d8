package txcheck

import (
	"slices"
	"strconv"
	"strings"
)

// Version names one version of one row: its table, the value of its primary key column (ColumnRow) and that of its version key
// column (ColumnVersion). Before a row is inserted it is in its version unborn, and a deletion makes the version dead (Adya
// 1999, section 4.1), so that the absence of a row is a version, too.
type Version struct{ Table, Row, Key string }

// The keys of versions that no table holds. A row is never inserted twice, so each row has at most one of each.
const (
	unborn = "unborn"
	dead   = "dead"
)

// Kind is a kind of statement dependency (TxCheck, section 3.1 and appendix A).
type Kind uint16

// The seven kinds of the paper, and two of ours: see Node.Constraint and Node.Settles.
const (
	ItemRead       Kind = 1 << iota // definition 2: S_i installs x_i, S_j reads it
	ItemWrite                       // definition 3: S_i installs x_i, S_j the next version
	ItemAnti                        // definition 4: S_i reads x_k, S_j installs the next version
	PredicateRead                   // definition 5: S_i installs x_i, which is in the version set of the read S_j
	PredicateWrite                  // definition 6: S_j overwrites what the write S_i has in its version set, or S_i installs what the write S_j has there
	PredicateAnti                   // definition 7: S_j overwrites what the read S_i has in its version set
	ValueWrite                      // definition 8: as definition 6, for the values that are written
	Constraint                      // writes that a constraint of the table may relate, in the order in which they were done
	Settings                        // a session's settings in the session's order, and what changes definitions in that of all
)

var kindNames = []string{"stmt-item-read", "stmt-item-write", "stmt-item-anti", "stmt-predicate-read", "stmt-predicate-write",
	"stmt-predicate-anti", "stmt-value-write", "constraint", "settings"}

// String names the kinds in k.
func (k Kind) String() string {
	var names []string
	for i, name := range kindNames {
		if k&(1<<i) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "+")
}

// Node is a statement and what the added reads showed of it.
type Node struct {
	Statement int // names the statement to the caller
	Session   int
	Write     bool // it is UPDATE, DELETE, INSERT or REPLACE
	Predicate bool // it chooses what it reads or writes by a condition
	Value     bool // what it writes is computed from rows (w_value of definition 8)

	Reads  []Version // item versions that it returned; of reads
	Before []Version // what it overwrote: the Before-Write Read
	After  []Version // what it installed: the After-Write Read
	Set    []Version // all versions of the tables that it references: the Version-Set Reads

	// Constraint names what constraints relate the write by; two writes with a name in common keep their order. It is
	// not in the paper: an INSERT that finds its key taken, or free, depends on other writes without reading anything.
	Constraint []string
	// Settles says that it is a SET of its session, which all the session's other statements keep their place around. Defines says that it changes
	// definitions, and all statements do.
	Settles, Defines bool
}

// Graph is a statement-dependency graph (definition 1): Edges[i][j] holds the kinds by which Nodes[j] depends on Nodes[i].
type Graph struct {
	Nodes []Node
	Edges [][]Kind
}

// NewGraph infers the dependencies among statements that were done in this order (TxCheck, section 3.2, lemmas 1 to 7).
func NewGraph(nodes []Node) *Graph {
	g := &Graph{Nodes: nodes, Edges: make([][]Kind, len(nodes))}
	for i := range nodes {
		g.Edges[i] = make([]Kind, len(nodes))
	}
	type uses struct{ after, before, reads, set []int }
	versions := map[Version]*uses{}
	note := func(list []Version, put func(*uses)) {
		for _, v := range list {
			u := versions[v]
			if u == nil {
				u = &uses{}
				versions[v] = u
			}
			put(u)
		}
	}
	for i := range nodes {
		n := &nodes[i]
		note(n.After, func(u *uses) { u.after = append(u.after, i) })
		note(n.Before, func(u *uses) { u.before = append(u.before, i) })
		note(n.Reads, func(u *uses) { u.reads = append(u.reads, i) })
		note(n.Set, func(u *uses) { u.set = append(u.set, i) })
	}
	for _, u := range versions {
		for _, i := range u.after {
			g.add(i, u.reads, func(int) Kind { return ItemRead })
			g.add(i, u.before, func(int) Kind { return ItemWrite })
			g.add(i, u.set, func(j int) Kind { return setKinds(&nodes[j], PredicateRead) })
		}
		for _, i := range u.reads {
			g.add(i, u.before, func(int) Kind { return ItemAnti })
		}
		for _, i := range u.set {
			g.add(i, u.before, func(int) Kind { return setKinds(&nodes[i], PredicateAnti) })
		}
	}
	for i := range nodes {
		for j := i + 1; j < len(nodes); j++ {
			if meets(nodes[i].Constraint, nodes[j].Constraint) {
				g.Edges[i][j] |= Constraint
			}
			if nodes[i].Defines || nodes[j].Defines || nodes[i].Session == nodes[j].Session && (nodes[i].Settles || nodes[j].Settles) {
				g.Edges[i][j] |= Settings
			}
		}
	}
	return g
}

// setKinds are the kinds of a dependency that rests on the version set of n: read for a read, else those of a write.
func setKinds(n *Node, read Kind) (k Kind) {
	if !n.Write {
		return read
	}
	if n.Predicate {
		k |= PredicateWrite
	}
	if n.Value {
		k |= ValueWrite
	}
	return k
}

func (g *Graph) add(i int, list []int, kind func(j int) Kind) {
	for _, j := range list {
		if i != j {
			g.Edges[i][j] |= kind(j)
		}
	}
}

func meets(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// Cyclic lists the nodes that lie on cycles, in ascending order.
func (g *Graph) Cyclic() (list []int) {
	reach := make([][]bool, len(g.Nodes))
	for i := range reach {
		reach[i] = make([]bool, len(g.Nodes))
		stack := []int{i}
		for len(stack) > 0 {
			n := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for j, k := range g.Edges[n] {
				if k != 0 && !reach[i][j] {
					reach[i][j] = true
					stack = append(stack, j)
				}
			}
		}
		if reach[i][i] {
			list = append(list, i)
		}
	}
	return list
}

// Order sorts the nodes topologically: of those on which nothing that is left depends, pick chooses one (TxCheck, algorithm 1,
// OracleGen). The graph must have no cycle.
func (g *Graph) Order(pick func(n int) int) []int {
	in := make([]int, len(g.Nodes))
	for i := range g.Edges {
		for j, k := range g.Edges[i] {
			if k != 0 {
				in[j]++
			}
		}
	}
	var free, order []int
	for i, n := range in {
		if n == 0 {
			free = append(free, i)
		}
	}
	for len(free) > 0 {
		at := pick(len(free))
		i := free[at]
		free = slices.Delete(free, at, at+1)
		order = append(order, i)
		for j, k := range g.Edges[i] {
			if k == 0 {
				continue
			}
			if in[j]--; in[j] == 0 {
				free = append(free, j)
			}
		}
	}
	if len(order) != len(g.Nodes) {
		panic("txcheck: order of a graph with cycles")
	}
	return order
}

// Text lists the edges, a line each, for reports and tests: "3 -> 5 stmt-item-anti", by Node.Statement.
func (g *Graph) Text() string {
	var b strings.Builder
	for i := range g.Edges {
		for j, k := range g.Edges[i] {
			if k != 0 {
				b.WriteString(strconv.Itoa(g.Nodes[i].Statement) + " -> " + strconv.Itoa(g.Nodes[j].Statement) + " " + k.String() + "\n")
			}
		}
	}
	return b.String()
}
