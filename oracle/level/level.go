// Package level judges which isolation levels a whole history satisfies. It gets the dependencies between committed transactions, as an
// oracle or a reader of histories finds them, keeps all of them in compact arrays, and looks for what each level forbids within the strongly
// connected components alone: outside of them no level can be broken.
package level

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/anomaly"
	"wirecheck/product"
)

// Kind is the kind of a dependency.
type Kind uint8

// The kinds. Readers of histories add the first three; SO and RT follow from the transactions.
const (
	WW Kind = 1 << iota
	WR
	RW
	SO
	RT

	data = WW | WR | RW
)

// String is the kind as in formulas.
func (k Kind) String() string {
	return map[Kind]string{WW: "ww", WR: "wr", RW: "rw", SO: "so", RT: "rt"}[k]
}

// Txn is a committed transaction. Ticks are as in history.Event.
type Txn struct {
	ID, Session, From, To uint64
	Writes                bool
	Own                   Own
}

// Edge is a dependency between two transactions, by their IDs.
type Edge struct {
	From, To uint64
	Kind     Kind
	// Predicate says that the edge goes over what a condition chose, not over a row that was read.
	Predicate bool
	// Old and New number versions: New is the one that was written (ww, rw) or read (wr), Old the one that ww replaced. 0: not known.
	Old, New uint32
	// FromStatement and ToStatement are the places of the statements in their transactions; -1: not known.
	FromStatement, ToStatement int32
}

// Fact is something that a level forbids besides cycles.
type Fact struct {
	Class anomaly.Class
	Txns  []uint64
}

// Graph is what is known of a history.
type Graph struct {
	txns  []Txn // in the order in which they were added, as a rule that of their ends
	at    places
	edges edgeList
	facts []Fact
	own   uint8 // the levels of transactions that were not added, a bit each
	// Unordered counts versions whose place among those of their row is not known.
	Unordered int
	// Timeless says that the transactions' times are of several clocks: what needs real time is not known to be satisfied.
	Timeless bool
}

// edge is an Edge between places in Graph.txns.
type edge struct {
	from, to int32
	kind     Kind
	pred     bool
	old, new uint32
	fs, ts   int32
}

// NewGraph makes an empty graph.
func NewGraph() *Graph { return &Graph{} }

// Room makes room for so many more transactions.
func (g *Graph) Room(n int) {
	g.txns, g.at.near = slices.Grow(g.txns, n), slices.Grow(g.at.near, n)
}

// AddTxn adds a committed transaction. Where ticks are equal, those of one session come in their order.
func (g *Graph) AddTxn(t Txn) {
	if _, ok := g.at.of(t.ID); !ok {
		g.at.put(t.ID, int32(len(g.txns)))
		g.txns = append(g.txns, t)
	}
}

// Ran says that there was a transaction at a level, which is not added since no cycle has it.
func (g *Graph) Ran(o Own) { g.own |= 1 << o }

// Wrote says that a transaction wrote something.
func (g *Graph) Wrote(id uint64) {
	if i, ok := g.at.of(id); ok {
		g.txns[i].Writes = true
	}
}

// AddEdge adds a dependency between two transactions that were added.
func (g *Graph) AddEdge(e Edge) {
	from, ok := g.at.of(e.From)
	to, also := g.at.of(e.To)
	if !ok || !also || from == to {
		return
	}
	if e.Kind == WW || e.Kind == WR {
		g.txns[from].Writes = true
	}
	if e.Kind != WR {
		g.txns[to].Writes = true
	}
	g.edges.add(edge{from, to, e.Kind, e.Predicate, e.Old, e.New, e.FromStatement, e.ToStatement})
}

// Mark is a point in the making of a graph: the dependencies up to there.
type Mark struct{ blocks, bytes, n int }

// Mark is the point at hand.
func (g *Graph) Mark() Mark {
	m := Mark{blocks: len(g.edges.blocks), n: g.edges.n}
	if m.blocks > 0 {
		m.bytes = len(g.edges.blocks[m.blocks-1])
	}
	return m
}

// Cut takes out the dependencies that were added behind a mark.
func (g *Graph) Cut(m Mark) {
	l := &g.edges
	l.blocks, l.n = l.blocks[:m.blocks], m.n
	if m.blocks > 0 {
		l.blocks[m.blocks-1] = l.blocks[m.blocks-1][:m.bytes]
	}
}

// AddFact adds a fact.
func (g *Graph) AddFact(f Fact) { g.facts = append(g.facts, f) }

// Open are the kinds of dependencies that decide which levels the history satisfies, as far as no fact has broken them.
func (g *Graph) Open() (k Kind) {
	if len(g.Own()) > 1 {
		return data // Mixed
	}
	for i := range Levels {
		if l := &Levels[i]; g.breaks(l) < 0 {
			k |= l.kinds
		}
	}
	return k
}

// breaks is the number of the first fact that breaks a level; -1: none does.
func (g *Graph) breaks(l *Level) int {
	return slices.IndexFunc(g.facts, func(f Fact) bool { return l.Excludes(f.Class) })
}

// Level is an isolation level of the literature.
type Level struct {
	Name    string
	Aliases []string
	Forbids string // in words
	Source  string
	Implies []string                          // the next weaker levels
	kinds   Kind                              // of the cycles that break it
	check   func(*component) (*Witness, bool) // nil: none; false: it could not be decided
}

// facts are what breaks levels besides the cycles of a graph, and the weakest levels that each breaks. NotSerializable is found over keys alone, where there are no
// predicates that could tell PL-3 from PL-2.99.
var facts = map[anomaly.Class][]string{
	anomaly.DuplicateElements: {"PL-1"}, anomaly.CyclicVersions: {"PL-1"},
	anomaly.G1a: {"PL-2"}, anomaly.G1b: {"PL-2"}, anomaly.FutureRead: {"PL-2"}, anomaly.DirtyUpdate: {"PL-2"}, anomaly.IncompatibleOrder: {"PL-2"}, anomaly.GarbageRead: {"PL-2"},
	anomaly.Internal: {"read atomic"}, anomaly.BothUpdate: {"cursor stability"},
	anomaly.NotSerializable: {"PL-2.99"}, anomaly.NotStrict: {"strict serializable"},
}

// cycles are the weakest levels that forbid every cycle of a class. Some weaker ones forbid some of them: Graph.Judge knows.
var cycles = map[anomaly.Class][]string{
	anomaly.G0: {"PL-1"}, anomaly.G1c: {"PL-2"}, anomaly.GSingle: {"PL-2.99", "parallel snapshot isolation", "snapshot isolation", "PL-3U"},
	anomaly.GNonadjacent: {"PL-2.99", "snapshot isolation"}, anomaly.G2Item: {"PL-2.99", "PL-3"}, anomaly.G2: {"PL-3"},
	anomaly.G0 + anomaly.SuffixProcess: {"causal"}, anomaly.G1c + anomaly.SuffixProcess: {"causal"}, anomaly.GSingle + anomaly.SuffixProcess: {"parallel snapshot isolation"},
	anomaly.GNonadjacent + anomaly.SuffixProcess: {"strong session snapshot isolation"}, anomaly.G2Item + anomaly.SuffixProcess: {"strong session serializable"},
	anomaly.G2 + anomaly.SuffixProcess:  {"strong session serializable"},
	anomaly.G0 + anomaly.SuffixRealtime: {"strong snapshot isolation"}, anomaly.G1c + anomaly.SuffixRealtime: {"strong snapshot isolation"},
	anomaly.GSingle + anomaly.SuffixRealtime: {"strong snapshot isolation"}, anomaly.GNonadjacent + anomaly.SuffixRealtime: {"strong snapshot isolation"},
	anomaly.G2Item + anomaly.SuffixRealtime: {"strict serializable"}, anomaly.G2 + anomaly.SuffixRealtime: {"strict serializable"},
}

// IsFact reports whether a class is something that breaks levels without a cycle.
func IsFact(class anomaly.Class) bool { return facts[class] != nil }

// Excludes reports whether a level forbids all that is of a class.
func (l *Level) Excludes(class anomaly.Class) bool {
	return slices.ContainsFunc(slices.Concat(facts[class], cycles[class]), func(weakest string) bool { return Implies(l.Name, weakest) })
}

// OfSQL is the level that stands for one of SQL, as package product names them; nil if there is none.
func OfSQL(name string) *Level {
	if name == product.RepeatableRead {
		name = "PL-2.99"
	}
	l, _ := Parse(name)
	return l
}

// Levels lists the levels, each behind the weaker ones.
var Levels = []Level{
	{Name: "PL-1", kinds: WW, Aliases: []string{"read uncommitted"}, Forbids: "a cycle of ww", Source: "Adya 1999, 4.2.1", check: cycleOf(WW)},
	{Name: "PL-2", kinds: WW | WR, Aliases: []string{"read committed"}, Forbids: "a cycle of ww and wr; reads of what was undone or not final, future reads, dirty updates",
		Source: "Adya 1999, 4.2.2", Implies: []string{"PL-1"}, check: cycleOf(WW | WR)},
	{Name: "read committed with monotonic reads", kinds: data, Aliases: []string{"RC with monotonic reads", "monotonic view", "PL-2L"}, Forbids: "PL-2, and a read from before a transaction of which an earlier statement read",
		Source: "Biswas and Enea 2019, RC", Implies: []string{"PL-2"}, check: both(cycleOf(WW|WR), overwritten(earlier))},
	{Name: "cursor stability", kinds: data, Aliases: []string{"PL-CS"}, Forbids: "PL-2, and a cycle over one row of ww and one rw (a lost update)", Source: "Adya 1999, PL-CS", Implies: []string{"PL-2"},
		check: both(cycleOf(WW|WR), lostUpdate)},
	{Name: "monotonic atomic view", kinds: data, Aliases: []string{"MAV"}, Forbids: "PL-2, and a read from before a transaction of which the same or an earlier statement read (OTV)",
		Source: "Bailis et al. 2013, 5.1.2", Implies: []string{"read committed with monotonic reads"}, check: both(cycleOf(WW|WR), overwritten(sameOrEarlier))},
	{Name: "read atomic", kinds: data, Aliases: []string{"RA"}, Forbids: "PL-2, a fractured read, and an own write that is not seen", Source: "Bailis et al. 2014", Implies: []string{"monotonic atomic view"},
		check: both(cycleOf(WW|WR), overwritten(anyOrder))},
	{Name: "causal", kinds: data | SO, Aliases: []string{"causal consistency", "causal cerone", "TCC"}, Forbids: "read atomic, a cycle of so, ww and wr, and a read from before what precedes the reader by so and wr",
		Source: "Biswas and Enea 2019, CC", Implies: []string{"read atomic"}, check: both(cycleOf(WW|WR|SO), causal)},
	{Name: "update atomic", kinds: data, Aliases: []string{"UA"}, Forbids: "read atomic, and a lost update", Source: "Cerone, Bernardi and Gotsman 2015", Implies: []string{"read atomic", "cursor stability"},
		check: both(both(cycleOf(WW|WR), overwritten(anyOrder)), lostUpdate)},
	{Name: "PL-2.99", kinds: data, Aliases: []string{"repeatable read (Adya)"}, Forbids: "a cycle of ww, wr and rw over rows (not over what a condition chose)", Source: "Adya 1999, 4.2.3",
		Implies: []string{"cursor stability", "monotonic atomic view"}, check: cycleOver(WW|WR|RW, func(e *edge) bool { return !e.pred || e.kind != RW })},
	{Name: "parallel snapshot isolation", kinds: data | SO, Aliases: []string{"PSI"}, Forbids: "a cycle of so, ww, wr and at most one rw", Source: "Cerone and Gotsman 2016",
		Implies: []string{"causal", "update atomic"}, check: both(cycleOf(WW|WR|SO), oneRW)},
	{Name: "prefix consistency", kinds: data | SO, Aliases: []string{"prefix"}, Forbids: "a cycle of ww and of (so or wr) with or without an rw behind it", Source: "Burckhardt et al. 2015",
		Implies: []string{"causal"}, check: points(WW|WR|SO|RW, true)},
	{Name: "snapshot isolation", kinds: data, Aliases: []string{"SI", "PL-SI", "snapshot"}, Forbids: "a cycle without two adjacent rw", Source: "Cerone and Gotsman 2016", Implies: []string{"update atomic"},
		check: points(WW|WR|RW, false)},
	{Name: "strong session snapshot isolation", kinds: data | SO, Aliases: []string{"strong session SI"}, Forbids: "a cycle without two adjacent rw, session order included", Source: "Daudjee and Salem 2006",
		Implies: []string{"snapshot isolation", "parallel snapshot isolation", "prefix consistency"}, check: points(WW|WR|RW|SO, false)},
	{Name: "strong snapshot isolation", kinds: data | SO | RT, Aliases: []string{"strong SI"}, Forbids: "a cycle without two adjacent rw, real time included", Source: "Daudjee and Salem 2006",
		Implies: []string{"strong session snapshot isolation"}, check: points(WW|WR|RW|SO|RT, false)},
	{Name: "PL-3U", kinds: data, Aliases: []string{"update serializable"}, Forbids: "a cycle with at most one transaction that only reads", Source: "Adya 1999, 4.3.2",
		Implies: []string{"update atomic"}, check: updates},
	{Name: "PL-3", kinds: data, Aliases: []string{"serializable", "serializability", "SER", "1SR", "conflict serializable"}, Forbids: "a cycle", Source: "Adya 1999, 4.2.3", Implies: []string{"PL-2.99", "snapshot isolation", "PL-3U"}, check: cycleOf(WW | WR | RW)},
	{Name: "strong session serializable", kinds: data | SO, Aliases: []string{"strong session PL-3", "strong session"}, Forbids: "a cycle, session order included", Source: "Daudjee and Salem 2004",
		Implies: []string{"PL-3", "strong session snapshot isolation"}, check: cycleOf(WW | WR | RW | SO)},
	{Name: "strict serializable", kinds: data | SO | RT, Aliases: []string{"strong PL-3", "strong serializable", "PL-SS"}, Forbids: "a cycle, real time included", Source: "Papadimitriou 1979",
		Implies: []string{"strong session serializable", "strong snapshot isolation"}, check: cycleOf(WW | WR | RW | SO | RT)},
}

// Parse finds a level by its name or an alias, in any case, with spaces, hyphens or underscores.
func Parse(text string) (*Level, error) {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("-", " ", "_", " ").Replace(s)) }
	if plain(text) == Mixed.Name {
		return &Mixed, nil
	}
	var names []string
	for i := range Levels {
		l := &Levels[i]
		names = append(names, l.Name)
		if plain(l.Name) == plain(text) || slices.ContainsFunc(l.Aliases, func(a string) bool { return plain(a) == plain(text) }) {
			return l, nil
		}
	}
	return nil, fmt.Errorf("unknown level %q: use one of %s", text, strings.Join(append(names, Mixed.Name), ", "))
}
