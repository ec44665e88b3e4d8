package relay

import (
	"net"
	"sync"
)

// Buffers are buffers of one size that connections borrow: of hundreds of sessions most wait, and need none.
type Buffers struct {
	size int
	free sync.Pool // of *[]byte
}

// NewBuffers makes buffers of a size.
func NewBuffers(size int) *Buffers { return &Buffers{size: size} }

// Get lends a buffer.
func (b *Buffers) Get() *[]byte {
	if p, ok := b.free.Get().(*[]byte); ok {
		return p
	}
	p := make([]byte, b.size)
	return &p
}

// Put takes a buffer back. Nobody may use it any more.
func (b *Buffers) Put(p *[]byte) { b.free.Put(p) }

// Read reads from c into a buffer that it lends. A plain socket that has to wait has none meanwhile. If nothing was read, there is none afterwards.
func (b *Buffers) Read(c net.Conn) (p *[]byte, n int, err error) {
	if s, ok := c.(interface {
		readLent(*Buffers) (*[]byte, int, error)
	}); ok {
		p, n, err = s.readLent(b)
	} else {
		p = b.Get()
		n, err = c.Read(*p)
	}
	if n == 0 && p != nil {
		b.Put(p)
		p = nil
	}
	return p, n, err
}
