package txcheck

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// versions reads "t.r1@0 t.r2@unborn".
func versions(text string) (list []Version) {
	for _, part := range strings.Fields(text) {
		table, rest, _ := strings.Cut(part, ".")
		row, key, _ := strings.Cut(rest, "@")
		list = append(list, Version{table, row, key})
	}
	return list
}

// sheet is a hand-made history: what the added reads showed of statements 1, 2, ...
type sheet []struct{ kind, reads, before, after, set string }

func (s sheet) nodes() (nodes []Node) {
	for i, x := range s {
		n := Node{Statement: i + 1, Session: i % 2, Reads: versions(x.reads), Before: versions(x.before), After: versions(x.after), Set: versions(x.set)}
		for _, word := range strings.Fields(x.kind) {
			switch word {
			case "write":
				n.Write = true
			case "predicate":
				n.Predicate = true
			case "value":
				n.Value = true
			case "set":
				n.Settles = true
			default:
				n.Constraint = append(n.Constraint, word)
			}
		}
		nodes = append(nodes, n)
	}
	return nodes
}

// TestKinds has each of the seven kinds of TxCheck's figure 3 with its near miss: the same statements, of which the second saw,
// or wrote, another version.
func TestKinds(t *testing.T) {
	update := struct{ kind, reads, before, after, set string }{"write predicate", "", "t.x@0", "t.x@1", ""}
	tests := []struct {
		name  string
		sheet sheet
		want  string
	}{
		{"item-read (a)", sheet{update, {reads: "t.x@1"}}, "1 -> 2 stmt-item-read\n"},
		{"item-read, near miss: another row's version of that key", sheet{update, {reads: "t.y@1"}}, ""},
		{"item-read, near miss: the version before is an anti-dependency", sheet{update, {reads: "t.x@0"}}, "2 -> 1 stmt-item-anti\n"},

		{"item-write (b)", sheet{update, {kind: "write predicate", before: "t.x@1", after: "t.x@2"}}, "1 -> 2 stmt-item-write\n"},
		{"item-write, near miss: of another row", sheet{update, {kind: "write predicate", before: "t.y@0", after: "t.y@2"}}, ""},
		{"item-write, near miss: not the next version", sheet{update, {kind: "write", before: "t.x@1", after: "t.x@2"}, {kind: "write", before: "t.x@2", after: "t.x@3"}},
			"1 -> 2 stmt-item-write\n2 -> 3 stmt-item-write\n"},

		{"item-anti (c)", sheet{{reads: "t.x@0"}, update}, "1 -> 2 stmt-item-anti\n"},
		{"item-anti, near miss: the version it installs", sheet{{reads: "t.x@1"}, update}, "2 -> 1 stmt-item-read\n"},
		{"item-anti, near miss: of another table", sheet{{reads: "u.x@0"}, update}, ""},

		{"predicate-read (d): no row matches, but it was looked at", sheet{update, {kind: "predicate", set: "t.x@1"}}, "1 -> 2 stmt-predicate-read\n"},
		{"predicate-read, near miss: it references another table", sheet{update, {kind: "predicate", set: "u.x@1"}}, ""},
		{"predicate-read of a row that is gone", sheet{{kind: "write predicate", before: "t.x@0", after: "t.x@dead.1"}, {kind: "predicate", set: "t.x@dead.1"}}, "1 -> 2 stmt-predicate-read\n"},

		{"predicate-write (e): it changes nothing, but it looked", sheet{update, {kind: "write predicate", set: "t.x@1"}}, "1 -> 2 stmt-predicate-write\n"},
		{"predicate-write, case 1: it overwrites what a write looked at", sheet{{kind: "write predicate", set: "t.x@0"}, update}, "1 -> 2 stmt-predicate-write\n"},
		{"predicate-write, near miss: a write that looks at nothing", sheet{update, {kind: "write"}}, ""},
		{"predicate-write, near miss: a read that looks", sheet{{kind: "predicate", set: "t.x@0"}, update}, "1 -> 2 stmt-predicate-anti\n"},

		{"predicate-anti (f)", sheet{{kind: "predicate", set: "t.x@0"}, update}, "1 -> 2 stmt-predicate-anti\n"},
		{"predicate-anti, near miss: it saw the new version", sheet{{kind: "predicate", set: "t.x@1"}, update}, "2 -> 1 stmt-predicate-read\n"},
		{"predicate-anti by a row that is inserted", sheet{{kind: "predicate", set: "t.n@unborn"}, {kind: "write", before: "t.n@unborn", after: "t.n@0"}}, "1 -> 2 stmt-predicate-anti\n"},
		{"predicate-anti, near miss: the inserted row was seen", sheet{{kind: "predicate", set: "t.n@0"}, {kind: "write", before: "t.n@unborn", after: "t.n@0"}}, "2 -> 1 stmt-predicate-read\n"},

		{"value-write (g)", sheet{update, {kind: "write value", before: "t.n@unborn", after: "t.n@0", set: "t.x@1"}}, "1 -> 2 stmt-value-write\n"},
		{"value-write, case 1: it overwrites what a value was made of", sheet{{kind: "write value", before: "t.n@unborn", after: "t.n@0", set: "t.x@0"}, update}, "1 -> 2 stmt-value-write\n"},
		{"value-write, near miss: the value is a literal", sheet{update, {kind: "write", before: "t.n@unborn", after: "t.n@0"}}, ""},

		{"writes that a key may relate keep their order", sheet{{kind: "write k"}, {kind: "write k l"}, {kind: "write l"}}, "1 -> 2 constraint\n2 -> 3 constraint\n"},
		{"settings keep their place in their session", sheet{{kind: "set"}, {kind: "set"}, {kind: ""}, {kind: ""}}, "1 -> 3 settings\n2 -> 4 settings\n"},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, NewGraph(test.sheet.nodes()).Text()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

// figure1 is the paper's figure 1 with the versions of its figure 6. sees is the version of t0's row that the UPDATE's subquery
// sees.
func figure1(sees string) sheet {
	return sheet{
		{kind: "write predicate", before: "t0.1@0", after: "t0.1@1", set: "t0.1@0"},                              // T0.S1
		{reads: "t1.2@0 t1.3@0", set: "t1.2@0 t1.3@0"},                                                           // T0.S2
		{reads: "t0.1@0", set: "t0.1@0"},                                                                         // T1.S1
		{reads: "t1.2@0", set: "t0.1@0 t1.2@0 t1.3@0"},                                                           // T1.S2
		{kind: "write predicate", before: "t1.2@0 t1.3@0", after: "t1.2@5 t1.3@5", set: sees + " t1.2@0 t1.3@0"}, // T1.S3
	}
}

func TestFigure4(t *testing.T) {
	paper := NewGraph(figure1("t0.1@0").nodes())
	if paper.Edges[4][0] == 0 || paper.Edges[0][4] != 0 {
		t.Errorf("by the snapshot the UPDATE of t1 comes before that of t0:\n%s", paper.Text())
	}
	current := NewGraph(figure1("t0.1@1").nodes())
	if current.Edges[0][4] == 0 || current.Edges[4][0] != 0 {
		t.Errorf("by what is newest the UPDATE of t1 comes after that of t0:\n%s", current.Text())
	}
	for _, g := range []*Graph{paper, current} {
		if len(g.Cyclic()) > 0 {
			t.Errorf("there is a cycle:\n%s", g.Text())
		}
	}
}

func TestCyclic(t *testing.T) {
	// 1 and 2 read what the other overwrites, and 3 hangs on the cycle without being part of it.
	s := sheet{
		{kind: "write predicate", before: "t.x@0", after: "t.x@1", set: "t.x@0 t.y@0"},
		{kind: "write predicate", before: "t.y@0", after: "t.y@2", set: "t.x@0 t.y@0"},
		{reads: "t.y@2"},
	}
	if got := NewGraph(s.nodes()).Cyclic(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("on cycles: %v\n%s", got, NewGraph(s.nodes()).Text())
	}
	s[1].set = "t.x@1 t.y@0" // near miss: the second saw what the first wrote
	if got := NewGraph(s.nodes()).Cyclic(); len(got) > 0 {
		t.Errorf("on cycles: %v\n%s", got, NewGraph(s.nodes()).Text())
	}
}

// TestOrder lists all topological orders of a graph by all choices there are.
func TestOrder(t *testing.T) {
	g := NewGraph(figure1("t0.1@0").nodes())
	seen := map[string]bool{}
	var try func(choices []int)
	try = func(choices []int) {
		var widths []int
		order := g.Order(func(n int) int {
			widths = append(widths, n)
			if len(widths) <= len(choices) {
				return choices[len(widths)-1]
			}
			return 0
		})
		place := map[int]int{}
		var text []string
		for at, n := range order {
			place[n] = at
			text = append(text, strconv.Itoa(n+1))
		}
		for i := range g.Edges {
			for j, k := range g.Edges[i] {
				if k != 0 && place[i] > place[j] {
					t.Fatalf("%v breaks %d -> %d", order, i+1, j+1)
				}
			}
		}
		seen[strings.Join(text, " ")] = true
		for at := len(choices); at < len(widths); at++ {
			for c := 1; c < widths[at]; c++ {
				next := append(slices.Clone(choices), make([]int, at-len(choices))...)
				try(append(next, c))
			}
		}
	}
	try(nil)
	// Figure 4: the three reads in any order, then the UPDATE of t1, then that of t0.
	want := []string{"2 3 4 5 1", "2 4 3 5 1", "3 2 4 5 1", "3 4 2 5 1", "4 2 3 5 1", "4 3 2 5 1"}
	var got []string
	for order := range seen {
		got = append(got, order)
	}
	slices.Sort(got)
	// The read of t0 alone is not bound to the UPDATE of t1.
	for _, order := range want {
		if !slices.Contains(got, order) {
			t.Errorf("%s is missing in %v", order, got)
		}
	}
	if len(got) != 8 {
		t.Errorf("%d orders: %v", len(got), got)
	}
}

func TestOrderOfACycle(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	NewGraph(sheet{{kind: "write", before: "t.x@0", after: "t.x@1", reads: "t.y@0"}, {kind: "write", before: "t.y@0", after: "t.y@1", reads: "t.x@0"}}.nodes()).Order(func(int) int { return 0 })
}
