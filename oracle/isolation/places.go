package isolation

import "math/bits"

// places remembers numbers by 128-bit hashes, in two generations: when the young one is full it becomes the old one, and what is asked
// for in the old one moves to the young one.
type places struct {
	limit      int
	young, old numbers
	evicted    bool // something is not remembered any more
}

func (p *places) put(h hash, n uint64) {
	if p.young.n >= p.limit {
		p.evicted = p.evicted || p.old.n > 0
		p.old, p.young = p.young, numbers{}
	}
	p.young.put(h, n)
}

// at is what is remembered; 0 if nothing is.
func (p *places) at(h hash) uint64 {
	if n := p.young.at(h); n != 0 {
		return n
	}
	n := p.old.at(h)
	if n != 0 {
		p.put(h, n)
	}
	return n
}

// numbers are numbers by hashes, none of which is 0. The zero value is empty. A map of the language would take twice as long: it hashes the hash, and a
// number is in another cache line than what tells where it is.
type numbers struct {
	slots []numbered // a power of two, at most three quarters of them used
	n     int
}

type numbered struct {
	hash hash
	n    uint64 // 0: the slot is free
}

const fewestSlots = 64

// slot is where a hash is, or is to be.
func (x *numbers) slot(h hash) *numbered {
	mask := uint64(len(x.slots) - 1)
	for i := (h[0] ^ h[1]) * 0x9e3779b97f4a7c15 >> 32; ; i++ { // the last letter of a name is in the lowest bits of h[1] alone
		if s := &x.slots[i&mask]; s.n == 0 || s.hash == h {
			return s
		}
	}
}

func (x *numbers) at(h hash) uint64 {
	if x.n == 0 {
		return 0
	}
	return x.slot(h).n
}

func (x *numbers) put(h hash, n uint64) {
	if 4*(x.n+1) > 3*len(x.slots) {
		old := x.slots
		x.slots = make([]numbered, max(fewestSlots, 2*len(old)))
		for _, s := range old {
			if s.n != 0 {
				*x.slot(s.hash) = s
			}
		}
	}
	s := x.slot(h)
	if s.n == 0 {
		x.n++
	}
	*s = numbered{h, n}
}

// hash is FNV-1a with 128 bits over some strings.
type hash [2]uint64

var start = hash{0x6c62272e07bb0142, 0x62b821756295c58d}

// add gives the hash of one string more.
func (h hash) add(s string) hash {
	hi, lo := h[0], h[1]
	for i := 0; i <= len(s); i++ {
		c := byte(0xff) // ends the string; not a byte of UTF-8
		if i < len(s) {
			c = s[i]
		}
		const primeLo = 0x13b // the prime is 2^88 + 0x13b
		lo ^= uint64(c)
		carry, l := bits.Mul64(lo, primeLo)
		hi, lo = carry+lo<<24+hi*primeLo, l
	}
	return hash{hi, lo}
}
