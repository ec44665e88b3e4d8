package sieve

import "encoding/binary"

// pile is a long list that grows without being copied.
type pile[T any] struct {
	full [][]T
	last []T
}

const pileStep = 1 << 14

func (p *pile[T]) add(v T) {
	if len(p.last) == cap(p.last) {
		if p.last != nil {
			p.full = append(p.full, p.last)
		}
		p.last = make([]T, 0, pileStep)
	}
	p.last = append(p.last, v)
}

func (p *pile[T]) len() int {
	return len(p.full)*pileStep + len(p.last)
}

// join puts another list, which is not used any more, behind this one.
func (p *pile[T]) join(o *pile[T]) {
	p.full = append(p.full, o.full...)
	for _, v := range o.last {
		p.add(v)
	}
}

func (p *pile[T]) all(yield func(int, *T) bool) {
	n := 0
	for _, list := range append(p.full[:len(p.full):len(p.full)], p.last) {
		for i := range list {
			if !yield(n, &list[i]) {
				return
			}
			n++
		}
	}
}

// store keeps the facts of rows: those of one row behind each other, each as what it has beside the one before. Most facts of a history are of
// the version that the fact before them was of, or of the one that replaced it, and take some ten bytes.
//
// The facts of a row are in pieces of blocks. A piece begins with the place of the next one and with how many of its bytes are used.
type store struct {
	blocks [][]byte
	used   int // of the last block
}

// chain is the facts of one row.
type chain struct {
	first, last uint32 // pieces
	free, size  uint16 // bytes of the last piece
	end
}

// end is what the next fact of a row is told from.
type end struct {
	txn   uint32 // of the last fact
	ver   uint64 // that was written, read or replaced by last
	token uint64 // that was told last
	tick  uint64
}

// The forms of a fact's fields, besides its flags.
const (
	sameVersion flags = 1 << (iota + noFlag)
	hasOrder
	hasAsOf
	hasTick
	sameToken
	otherToken
)

const (
	pieceUnit   = 32 // bytes
	pieceHead   = 6
	smallPiece  = pieceUnit
	largePiece  = 4 << 10
	blockSize   = 256 << 10
	maxFactSize = 2 + 5 + 5 + 5 + 8 + 10 + 8 + 10 + 8
)

// add puts a fact behind those of its row.
func (s *store) add(c *chain, f *fact) {
	var b [maxFactSize]byte
	s.put(c, appendFact(b[:2], f, &c.end))
}

// appendFact appends a fact behind two bytes for its flags.
func appendFact(b []byte, f *fact, e *end) []byte {
	is := f.flags
	b = binary.AppendVarint(b, int64(f.txn)-int64(e.txn))
	if nth := uint64(f.nth) << 1; f.stmt == f.nth {
		b = binary.AppendUvarint(b, nth)
	} else {
		b = binary.AppendUvarint(binary.AppendUvarint(b, nth|1), uint64(f.stmt))
	}
	if f.ver == e.ver {
		is |= sameVersion
	} else {
		b = binary.LittleEndian.AppendUint64(b, f.ver)
	}
	if f.order != 0 {
		is |= hasOrder
		b = binary.AppendUvarint(b, f.order)
	}
	if f.asOf != 0 {
		is |= hasAsOf
		b = binary.LittleEndian.AppendUint64(b, f.asOf)
	}
	if f.tick != 0 {
		is |= hasTick
		b = binary.AppendVarint(b, int64(f.tick-e.tick))
	}
	switch f.token {
	case 0:
	case e.token:
		is |= sameToken
	default:
		is |= otherToken
		b = binary.LittleEndian.AppendUint64(b, f.token)
	}
	binary.LittleEndian.PutUint16(b, uint16(is))
	e.follow(f)
	return b
}

// follow notes f as the last fact.
func (e *end) follow(f *fact) {
	e.txn, e.ver = f.txn, f.ver
	if f.flags&isPrev != 0 {
		e.ver = f.asOf
	}
	if f.tick != 0 {
		e.tick = f.tick
	}
	if f.token != 0 {
		e.token = f.token
	}
}

func (s *store) put(c *chain, b []byte) {
	if len(b) > int(c.free) {
		s.piece(c, len(b))
	}
	at := s.at(c.last)
	used := c.size - c.free
	copy(at[used:c.size], b)
	c.free -= uint16(len(b))
	binary.LittleEndian.PutUint16(at[4:], used+uint16(len(b)))
}

// piece gives a row one more piece, of twice the size of the one before, with room for so many bytes.
func (s *store) piece(c *chain, room int) {
	size := max(smallPiece, min(2*int(c.size), largePiece))
	for size < room+pieceHead {
		size *= 2
	}
	if len(s.blocks) == 0 || s.used+size > blockSize {
		s.blocks, s.used = append(s.blocks, make([]byte, blockSize)), 0
	}
	at := uint32(((len(s.blocks)-1)*blockSize + s.used) / pieceUnit)
	s.used += size
	if c.size == 0 {
		c.first = at
	} else {
		binary.LittleEndian.PutUint32(s.at(c.last), at)
	}
	c.last, c.size, c.free = at, uint16(size), uint16(size-pieceHead)
}

// at is a piece, and what stands behind it in its block.
func (s *store) at(piece uint32) []byte {
	n := int(piece) * pieceUnit
	return s.blocks[n/blockSize][n%blockSize:]
}

// read gives the facts of a row, in the order in which they came.
func (s *store) read(list []fact, c *chain) []fact {
	var e end
	for piece := c.first; c.size > 0; {
		b := s.at(piece)
		next, used := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint16(b[4:])
		for b = b[pieceHead:used]; len(b) > 0; {
			list = append(list, fact{})
			b = list[len(list)-1].read(b, &e)
		}
		if piece == c.last {
			break
		}
		piece = next
	}
	return list
}

// read reads a fact, and gives what stands behind it.
func (f *fact) read(b []byte, e *end) []byte {
	is := flags(binary.LittleEndian.Uint16(b))
	delta, n := binary.Varint(b[2:])
	b = b[2+n:]
	nth, n := binary.Uvarint(b)
	b = b[n:]
	if f.nth, f.stmt = uint32(nth>>1), uint32(nth>>1); nth&1 != 0 {
		stmt, n := binary.Uvarint(b)
		f.stmt, b = uint32(stmt), b[n:]
	}
	word := func() uint64 {
		v := binary.LittleEndian.Uint64(b)
		b = b[8:]
		return v
	}
	f.flags, f.txn, f.ver = is&(1<<noFlag-1), uint32(int64(e.txn)+delta), e.ver
	if is&sameVersion == 0 {
		f.ver = word()
	}
	if is&hasOrder != 0 {
		f.order, n = binary.Uvarint(b)
		b = b[n:]
	}
	if is&hasAsOf != 0 {
		f.asOf = word()
	}
	if is&hasTick != 0 {
		delta, n = binary.Varint(b)
		f.tick, b = e.tick+uint64(delta), b[n:]
	}
	if is&sameToken != 0 {
		f.token = e.token
	} else if is&otherToken != 0 {
		f.token = word()
	}
	e.follow(f)
	return b
}
