package isolation

import (
	"wirecheck/history"
	"wirecheck/oracle"
)

// Dependency is one edge of the graph, with its evidence.
type Dependency struct {
	From, To uint64 // numbers of the transactions
	Kind     oracle.EdgeKind
	// Predicate says that it is one of a predicate read; the versions are then the one that changed the match.
	Predicate bool
	// Path says that it is a ww edge which stands for a path: other transactions wrote the row in between.
	Path bool
	Row  history.Row // empty for session order and real time
	Name string      // what people know the row by; empty: not told
	// FromVersion was written or read by From, ToVersion by To. They are empty for a dead version, and for session order and real time.
	FromVersion, ToVersion string
	// FromStatement and ToStatement are numbers of statements in their transactions; 0: not known.
	FromStatement, ToStatement int
}

// show hands an edge to Options.Dependencies.
func (g *graph) show(e *edge, from, to *txn) {
	if g.dependencies == nil {
		return
	}
	d := Dependency{From: from.id, To: to.id, Kind: kindOf(e.kind), Predicate: e.pred != nil, Path: e.over,
		FromStatement: from.numberOf(e.fromStmt), ToStatement: to.numberOf(e.toStmt)}
	if e.from != nil {
		d.Row, d.Name = e.from.name(), e.from.rowLabel()
		d.FromVersion, d.ToVersion = e.from.told(), e.to.told()
	}
	g.dependencies(d)
}

// told is the id by which the history knows the version; empty for a dead one.
func (v *version) told() string {
	if v.del {
		return ""
	}
	return v.id
}

// numberOf is the number of statement i; 0 where i says that it is not known.
func (t *txn) numberOf(i int32) int {
	if i < 0 {
		return 0
	}
	return t.stmts[i].n
}
