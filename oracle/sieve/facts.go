package sieve

// What a row's history is made of.

// flags say what a fact is.
type flags uint16

const (
	isRead   flags = 1 << iota // a read of the version
	isWrite                    // the version was written
	isPrev                     // the version was replaced, by the version in the fact's asOf
	fCurrent                   // of isPrev, isWrite: the statement read what it replaced
	fMatch                     // of isRead: an UPDATE that changed nothing
	fDropped                   // of isRead: a later current read of the transaction takes its place
	fFailed                    // of isWrite, isPrev: it was undone
	fInter                     // of isWrite: the transaction replaced it itself
	fLock                      // of isRead: it locked the row
	fNamed                     // the access said what people know the row by

	noFlag = iota // so many there are

	fInsert = fMatch // of isWrite: an INSERT wrote it
)

// fact is one thing that a transaction said of a version. Strings are hashes of 64 bits: where two strings have one hash, rows or versions count
// as one, which adds edges and takes none away.
type fact struct {
	ver   uint64
	order uint64 // history.Access.Order, of isPrev PrevOrder
	asOf  uint64 // of isPrev: the version that replaced it; of isWrite, in rows without keys: the version that it replaced
	token uint64 // of the writer of the version; 0: not told
	tick  uint64 // of isRead: when it was answered; of isWrite: when it was sent
	txn   uint32
	nth   uint32 // which access of the transaction it is
	stmt  uint32 // and of which of its statements
	flags flags
}

// hash is one of 64 bits of a text, seeded: the same in every process.
func hash(seed uint64, s string) uint64 {
	const m1, m2 = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := seed ^ uint64(len(s))*m1
	b := s
	for len(b) >= 8 {
		h = (h ^ word(b)) * m2
		h ^= h >> 32
		b = b[8:]
	}
	if n := len(b); n > 0 {
		last := uint64(0) // the bytes left, with zeros behind them
		switch {
		case len(s) >= 8:
			last = word(s[len(s)-8:]) >> (64 - 8*n)
		case n >= 4:
			last = half(b) | half(b[n-4:])<<(8*n-32)
		default:
			last = uint64(b[0]) | uint64(b[n/2])<<(n/2*8) | uint64(b[n-1])<<(8*n-8)
		}
		h = (h ^ last) * m2
		h ^= h >> 32
	}
	h *= m1
	h ^= h >> 29
	return max(h, 1) // 0 says that there is no text
}

func half(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

func word(s string) uint64 {
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// name is a text by its last digits, and a hash of what stands in front of them.
type name struct{ front, number uint64 }

func nameOf(seed uint64, s string) (n name) {
	i := len(s)
	for digit := uint64(1); i > 0 && s[i-1]-'0' < 10 && digit < 1e15; digit *= 10 {
		i--
		n.number += uint64(s[i]-'0') * digit
	}
	for i < len(s) && s[i] == '0' { // "01" is not "1"
		i++
	}
	n.front = hash(seed, s[:i])
	return n
}

// near is a hash that a name has in common with so many others, of the numbers beside its own.
func (n name) near(beside uint64) uint64 {
	h := (n.front ^ n.number/beside) * 0x9e3779b97f4a7c15
	return h ^ h>>29
}

func (n name) hash() uint64 { return max(n.near(1), 1) }

// of is the name of something that belongs to a row.
func (n name) of(row uint64) name { return name{n.front ^ row*0xd6e8feb86659fd93, n.number} }

// names is a set of names. Those with numbers beside each other take little room. The zero value is empty.
type names struct {
	words index
	bits  []uint64
}

// spot is where a name is in a set. Where the next one is beside it, it is not looked for.
type spot struct {
	key uint64
	at  uint32
}

// add adds a name, and notes its spot. It reports whether it was not there.
func (s *names) add(n name, last *spot) bool {
	if key := max(n.near(64), 1); key != last.key {
		at, had := s.words.put(key, uint32(len(s.bits)))
		if !had {
			s.bits = append(s.bits, 0)
		}
		*last = spot{key, at}
	}
	bit := uint64(1) << (n.number % 64)
	was := s.bits[last.at]&bit != 0
	s.bits[last.at] |= bit
	return !was
}

// tokenHash is the hash of a token. Recorders number their transactions: those of the tokens that differ in their last digits alone lie beside each other in
// an index, so that a cache has them where a transaction needs one.
func tokenHash(s string) uint64 {
	n := nameOf(tokenSeed, s)
	return max(n.near(beside)&^((beside-1)<<indexShift)|n.number%beside<<indexShift, 1)
}

const (
	beside     = 16 // tokens
	indexShift = 7  // how many low bits of a key do not say where it is in an index
)

// index finds numbers by hashes. The zero value is empty.
type index struct {
	keys []uint64
	vals []uint32
	n    int
}

// at is the place of a key, and whether it is there.
func (x *index) at(key uint64) (int, bool) {
	mask := len(x.keys) - 1
	for i := int(key>>indexShift) & mask; ; i = (i + 1) & mask {
		if x.keys[i] == key {
			return i, true
		}
		if x.keys[i] == 0 {
			return i, false
		}
	}
}

// of is the number of a key.
func (x *index) of(key uint64) (uint32, bool) {
	if x.n == 0 {
		return 0, false
	}
	i, ok := x.at(key)
	return x.vals[i], ok
}

// put gives a key that has no number yet this one, and gives the number that it has.
func (x *index) put(key uint64, val uint32) (was uint32, had bool) {
	if 2*(x.n+1) > len(x.keys) {
		old := *x
		*x = index{keys: make([]uint64, max(16, 2*len(old.keys))), vals: make([]uint32, max(16, 2*len(old.keys))), n: old.n}
		for i, k := range old.keys {
			if k != 0 {
				at, _ := x.at(k)
				x.keys[at], x.vals[at] = k, old.vals[i]
			}
		}
	}
	i, ok := x.at(key)
	if ok {
		return x.vals[i], true
	}
	x.keys[i], x.vals[i] = key, val
	x.n++
	return val, false
}

// clear makes x empty, with room for so many keys.
func (x *index) clear(n int) {
	size := 16
	for size < 2*n+2 {
		size *= 2
	}
	if len(x.keys) < size || len(x.keys) > 16*size {
		*x = index{keys: make([]uint64, size), vals: make([]uint32, size)}
		return
	}
	clear(x.keys)
	x.n = 0
}
