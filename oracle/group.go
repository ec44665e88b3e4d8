package oracle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"wirecheck/history/prose"
)

// Group is what a person mends at once: findings of one kind and name whose statements hang together. A transaction that reads and writes in ten
// ways has a hundred findings, and one mistake.
type Group struct {
	// Findings are the variants. The first one stands for all: it has the fewest transactions.
	Findings []*Finding
	Seen     int      // how often they were found, all together
	Tables   []string // sorted
}

// Groups puts findings into groups, in the order in which the first one of each comes. Two findings belong together if they are of one product, kind and
// name and have a statement in common, or if each belongs together with a third one.
func Groups(list []Finding) []Group {
	of := make([]int, len(list)) // the group of each finding, or one that it was joined with
	var root func(i int) int
	root = func(i int) int {
		for of[i] != i {
			of[i] = of[of[i]]
			i = of[i]
		}
		return i
	}
	first := map[[4]string]int{}
	for i := range list {
		of[i] = i
		f := &list[i]
		parts, engine := f.Shapes(), ""
		if len(f.Transactions) > 0 {
			engine = f.Transactions[0].Engine
		}
		if f.Difference != nil {
			parts = []string{f.ID}
		}
		for _, part := range parts {
			key := [4]string{engine, string(f.Kind), f.Title(), part}
			if before, known := first[key]; !known {
				first[key] = i
			} else if a, b := root(before), root(i); a != b {
				of[max(a, b)] = min(a, b)
			}
		}
	}
	var groups []Group
	at := map[int]int{}
	for i := range list {
		k, known := at[root(i)]
		if !known {
			k, at[root(i)] = len(groups), len(groups)
			groups = append(groups, Group{})
		}
		groups[k].add(&list[i])
	}
	for i := range groups {
		g := &groups[i]
		slices.Sort(g.Tables)
		g.Tables = slices.Compact(g.Tables)
		slices.SortStableFunc(g.Findings, func(a, b *Finding) int {
			return cmp.Or(len(a.Transactions)-len(b.Transactions), a.conditions()-b.conditions(), cmp.Compare(b.Seen, a.Seen), cmp.Compare(a.ID, b.ID))
		})
	}
	return groups
}

func (g *Group) add(f *Finding) {
	g.Findings = append(g.Findings, f)
	g.Seen += max(f.Seen, 1)
	g.Tables = append(g.Tables, f.Tables...)
}

// First is the finding that stands for the group.
func (g *Group) First() *Finding { return g.Findings[0] }

// conditions counts the edges over conditions: what goes without is easier to understand.
func (f *Finding) conditions() (n int) {
	for i := range f.Edges {
		if f.Edges[i].ByCondition() {
			n++
		}
	}
	return n
}

// Check is the shape of the statement that read what another transaction then changed; empty if there is none.
func (f *Finding) Check() string {
	if i := f.Stale(); i >= 0 {
		return f.shape(f.Edges[i].From, f.Edges[i].FromStatement)
	}
	return ""
}

// Stale is the index of the first edge that leads from a read to the write that it did not see; -1: there is none.
func (f *Finding) Stale() int {
	return slices.IndexFunc(f.Edges, func(e Edge) bool { return e.Kind == EdgeRW })
}

// maxShape is how many bytes of a shape are kept. A longer one ends in a hash.
const maxShape = 300

// Shapes are the shapes of the statements that carry the edges, sorted, each once; of a write that was not captured it is its table.
func (f *Finding) Shapes() []string {
	var out []string
	add := func(txn, n int, table string) {
		shape := f.shape(txn, n)
		if shape == "" {
			shape = "a statement on " + table + " that was not captured"
		}
		if len(shape) > maxShape {
			sum := sha256.Sum256([]byte(shape))
			shape = prose.Cut(shape, maxShape) + " #" + hex.EncodeToString(sum[:4])
		}
		out = append(out, shape)
	}
	for i := range f.Edges {
		if e := &f.Edges[i]; e.Row.Table != "" {
			add(e.From, e.FromStatement, e.Row.Table)
			add(e.To, e.ToStatement, e.Row.Table)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
