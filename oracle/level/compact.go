package level

import (
	"encoding/binary"
	"iter"
	"slices"
)

// places are the places of transactions by their IDs. Recorders number transactions from 1 on, so that most are found by their number.
type places struct {
	near []int32 // one more than the place; 0: none
	far  map[uint64]int32
}

// maxGap is how far behind all others a number may be that is kept in the array.
const maxGap = 1 << 12

func (p *places) of(id uint64) (int32, bool) {
	if id < uint64(len(p.near)) && p.near[id] != 0 {
		return p.near[id] - 1, true
	}
	at, ok := p.far[id]
	return at, ok
}

func (p *places) put(id uint64, at int32) {
	if n := uint64(len(p.near)); id < n+maxGap {
		if id >= n {
			p.near = slices.Grow(p.near, int(id-n)+1)[:id+1]
		}
		p.near[id] = at + 1
		return
	}
	if p.far == nil {
		p.far = map[uint64]int32{}
	}
	p.far[id] = at
}

// edgeList keeps edges in some 15 bytes each.
type edgeList struct {
	blocks [][]byte
	n      int
}

const (
	edgeBlock = 1 << 16
	maxEdge   = 2*binary.MaxVarintLen32 + 1 + 4*binary.MaxVarintLen32
)

func (l *edgeList) add(e edge) {
	last := len(l.blocks) - 1
	if last < 0 || cap(l.blocks[last])-len(l.blocks[last]) < maxEdge {
		l.blocks = append(l.blocks, make([]byte, 0, edgeBlock))
		last++
	}
	b := l.blocks[last]
	b = binary.AppendUvarint(b, uint64(uint32(e.to)))
	b = binary.AppendVarint(b, int64(e.from)-int64(e.to))
	kind := byte(e.kind)
	if e.pred {
		kind |= 1 << 7
	}
	b = append(b, kind)
	b = binary.AppendUvarint(b, uint64(e.old))
	b = binary.AppendVarint(b, int64(e.new)-int64(e.old))
	b = binary.AppendUvarint(b, uint64(e.fs+1))
	b = binary.AppendUvarint(b, uint64(e.ts+1))
	l.blocks[last] = b
	l.n++
}

// all gives the edges in their order.
func (l *edgeList) all() iter.Seq[edge] {
	return func(yield func(edge) bool) {
		for _, b := range l.blocks {
			i := 0
			uint := func() uint64 {
				n, k := binary.Uvarint(b[i:])
				i += k
				return n
			}
			int := func() int64 {
				n, k := binary.Varint(b[i:])
				i += k
				return n
			}
			for i < len(b) {
				var e edge
				e.to = int32(uint())
				e.from = e.to + int32(int())
				e.kind, e.pred = Kind(b[i]&^(1<<7)), b[i]&(1<<7) != 0
				i++
				e.old = uint32(uint())
				e.new = e.old + uint32(int())
				e.fs, e.ts = int32(uint())-1, int32(uint())-1
				if !yield(e) {
					return
				}
			}
		}
	}
}

// list gives the edges in an array that has room for more.
func (l *edgeList) list(more int) []edge {
	return slices.AppendSeq(make([]edge, 0, l.n+more), l.all())
}

// spans marks the transactions that may be on a cycle of some kinds: those between the two ends of an edge that leads back, against the order of Graph.txns. A
// cycle leads back over every place between its first and its last one, so that all its transactions are marked. In a history that has
// little to be found, those are few.
func (g *Graph) spans(kinds Kind) []bool {
	n := len(g.txns)
	change := make([]int32, n+1)
	back := func(from, to int) { change[to], change[from+1] = change[to]+1, change[from+1]-1 }
	for e := range g.edges.all() {
		if e.kind&kinds != 0 && e.to < e.from {
			back(int(e.from), int(e.to))
		}
	}
	if kinds&(SO|RT) != 0 {
		g.backInTime(back)
	}
	in, depth := make([]bool, n), int32(0)
	for i := range in {
		depth += change[i]
		in[i] = depth > 0
	}
	return in
}

// backInTime calls back for what session order and real time lead back to, against the order of Graph.txns.
func (g *Graph) backInTime(back func(from, to int)) {
	latest := make([]uint64, len(g.txns)) // begin of those up to a place
	begun := map[uint64]uint64{}          // the latest begin in each session
	for i, t := range g.txns {
		before := uint64(0)
		if i > 0 {
			before = latest[i-1]
		}
		latest[i] = max(before, t.From)
		if t.To < before && !g.Timeless { // it ended before one began that was added before it
			first, _ := slices.BinarySearch(latest[:i], t.To+1)
			back(i, first)
		}
		if t.From < begun[t.Session] {
			back(i, 0)
		}
		begun[t.Session] = max(begun[t.Session], t.From)
	}
}
