package sieve

import (
	"cmp"
	"encoding/binary"
	"slices"

	"wirecheck/oracle/cycle"
)

// edge is one that is drawn by a transaction to or from another one, which ended before it.
type edge struct {
	other      uint32
	nth        uint32 // the access at which it is drawn
	mine, his  uint32 // accesses
	mySt, hisS uint32 // and their statements
	old, new   uint32 // versions
	kind       cycle.Kinds
	over       bool
	leaves     bool // it leads to the other one
}

// drafts keeps the edges that transactions draw, in some 12 bytes each. An edge begins with the place of the one that its transaction drew before.
type drafts struct {
	blocks [][]byte
	last   []uint32 // by transaction: one more than the place of its last edge; 0: it drew none
	list   []edge   // of the transaction that was asked for last
}

const (
	draftOver   = byte(cycle.RW) << 1
	draftLeaves = draftOver << 1
	draftSame   = draftLeaves << 1 // each access is the only one of its statement, by its number
	draftMine   = draftSame << 1   // it is drawn at the access that it is of
	maxDraft    = 4 + 1 + 8*binary.MaxVarintLen32
)

// add keeps an edge that a transaction draws. It reports false if there are too many.
func (d *drafts) add(by uint32, e *edge) bool {
	n := len(d.blocks) - 1
	if n < 0 || blockSize-len(d.blocks[n]) < maxDraft {
		d.blocks = append(d.blocks, make([]byte, 0, blockSize))
		n++
	}
	b := d.blocks[n]
	place := uint64(n)*blockSize + uint64(len(b)) + 1
	is := byte(e.kind)
	if e.over {
		is |= draftOver
	}
	if e.leaves {
		is |= draftLeaves
	}
	if e.mySt == e.mine && e.hisS == e.his {
		is |= draftSame
	}
	if e.nth == e.mine {
		is |= draftMine
	}
	b = append(binary.LittleEndian.AppendUint32(b, d.last[by]), is)
	b = binary.AppendVarint(b, int64(e.other)-int64(by))
	for _, v := range e.numbers(is) {
		b = binary.AppendUvarint(b, uint64(*v))
	}
	d.blocks[n] = binary.AppendVarint(b, int64(e.new)-int64(e.old))
	d.last[by] = uint32(place)
	return place <= uint64(none)
}

// of gives the edges that a transaction drew, in the order of the accesses at which it drew them, until the next call.
func (d *drafts) of(by uint32) []edge {
	d.list = d.list[:0]
	for place := d.last[by]; place != 0; {
		b := d.blocks[(place-1)/blockSize][(place-1)%blockSize:]
		place = binary.LittleEndian.Uint32(b)
		d.list = append(d.list, edge{})
		d.list[len(d.list)-1].read(b[4:], by)
	}
	slices.Reverse(d.list)
	if byAccess := func(a, b edge) int { return cmp.Compare(a.nth, b.nth) }; !slices.IsSortedFunc(d.list, byAccess) {
		slices.SortStableFunc(d.list, byAccess)
	}
	return d.list
}

// numbers are what is kept of e besides its ends and its new version.
func (e *edge) numbers(is byte) []*uint32 {
	list := [...]*uint32{&e.old, &e.mine, &e.his, &e.nth, &e.mySt, &e.hisS}
	switch is & (draftSame | draftMine) {
	case 0:
		return list[:]
	case draftSame:
		return list[:4]
	case draftMine:
		return append(list[:3], list[4:]...)
	}
	return list[:3]
}

func (e *edge) read(b []byte, by uint32) {
	is := b[0]
	e.kind, e.over, e.leaves = cycle.Kinds(is)&cycle.Data, is&draftOver != 0, is&draftLeaves != 0
	delta, n := binary.Varint(b[1:])
	e.other, b = uint32(int64(by)+delta), b[1+n:]
	for _, to := range e.numbers(is) {
		v, n := binary.Uvarint(b)
		*to, b = uint32(v), b[n:]
	}
	if is&draftMine != 0 {
		e.nth = e.mine
	}
	if is&draftSame != 0 {
		e.mySt, e.hisS = e.mine, e.his
	}
	delta, _ = binary.Varint(b)
	e.new = uint32(int64(e.old) + delta)
}
