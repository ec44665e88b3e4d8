package mysqlwire

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// clientCompress is what a client asks for that compresses its packets with zlib. The proxy compresses towards the client and not towards the server: what
// it reads and writes there is the client's packets, so it says itself what the client's SHOW STATUS LIKE 'Compression' cannot say.
const clientCompress = uint64(mysql.CLIENT_COMPRESS)

const (
	chunkHeader = 7       // length of the content, number, length of what was compressed (MySQL manual, "Compressed Packet")
	chunkMin    = 50      // what is shorter is not compressed: MIN_COMPRESS_LENGTH, include/mysql_com.h
	chunkMax    = 1 << 15 // of what we compress at a time
)

var errCompressed = errors.New("a compressed packet is malformed")

// compressed is the client's connection behind a login with clientCompress. What was read before is within the connection below. One goroutine at a time may
// read it, and one write. While nothing comes, it holds no memory but its own. The numbers that count are those of the chunks: the packets within may have any
// (MariaDB's Connector/J begins with 1), as the server does not look at them.
type compressed struct {
	net.Conn
	next atomic.Uint32 // number of the next chunk to the client: behind that of the last one from it

	head  [chunkHeader]byte // of the chunk that comes
	have  int               // bytes of head
	rest  int               // bytes of the chunk that are still to be read from Conn
	plain int               // bytes that they are when they are not compressed any more; only if in is set
	in    *inflater         // nil: the chunk is not compressed
}

func newCompressed(c net.Conn) *compressed { return &compressed{Conn: c} }

// NetConn is the connection below.
func (c *compressed) NetConn() net.Conn { return c.Conn }

// Read implements net.Conn. A deadline may end it between two chunks, and within one that is not compressed.
func (c *compressed) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	for c.rest == 0 && c.in == nil {
		if err := c.begin(); err != nil {
			return 0, err
		}
	}
	if c.in == nil {
		n, err := c.Conn.Read(b[:min(len(b), c.rest)])
		c.rest -= n
		return n, c.cut(err)
	}
	n, err := c.in.zlib.Read(b[:min(len(b), c.plain)])
	if c.plain -= n; c.plain > 0 && err == nil {
		return n, nil
	}
	if c.plain == 0 && err == nil || err == io.EOF {
		err = c.end()
	}
	if err != nil {
		return n, fmt.Errorf("%w: %w", errCompressed, err)
	}
	return n, nil
}

// begin reads the header of a chunk.
func (c *compressed) begin() error {
	for c.have < chunkHeader {
		n, err := c.Conn.Read(c.head[c.have:])
		if c.have += n; n == 0 {
			if c.have > 0 {
				err = c.cut(err)
			}
			return err
		}
	}
	u24 := func(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
	c.have, c.rest = 0, u24(c.head[:])
	c.next.Store(uint32(c.head[3]) + 1)
	if c.plain = u24(c.head[4:]); c.plain == 0 {
		return nil
	}
	c.in = inflaters.Get().(*inflater)
	c.in.from = c
	if err := c.in.zlib.(zlib.Resetter).Reset(c.in, nil); err != nil {
		return fmt.Errorf("%w: %w", errCompressed, err)
	}
	return nil
}

// end looks at the end of a compressed chunk, which must not hold more than it said.
func (c *compressed) end() error {
	var more [1]byte
	n, err := c.in.zlib.Read(more[:])
	switch {
	case n > 0 || c.plain > 0 || c.rest > 0 || c.in.r < c.in.w:
		return errors.New("another length than announced")
	case err != io.EOF:
		return err
	}
	c.in.from = nil
	inflaters.Put(c.in)
	c.in = nil
	return nil
}

// cut is an error within a chunk.
func (c *compressed) cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// inflater decompresses one chunk at a time.
type inflater struct {
	zlib io.ReadCloser
	from *compressed
	buf  [4 << 10]byte
	r, w int
}

// emptyStream is zlib's form of nothing: a reader cannot be made without a stream.
var emptyStream = func() []byte {
	var b bytes.Buffer
	_ = zlib.NewWriter(&b).Close() // a buffer takes all
	return b.Bytes()
}()

var inflaters = sync.Pool{New: func() any {
	r, err := zlib.NewReader(bytes.NewReader(emptyStream))
	if err != nil {
		panic(err)
	}
	return &inflater{zlib: r}
}}

// fill reads some of the chunk. The decompressor does not go on behind an error, so a deadline, which is one of a wait for the next command, does not
// end it, as it does not end the wait for the rest of a packet.
func (f *inflater) fill() error {
	if f.from.rest == 0 {
		return io.EOF
	}
	f.r, f.w = 0, 0
	for {
		n, err := f.from.Conn.Read(f.buf[:min(len(f.buf), f.from.rest)])
		f.from.rest -= n
		f.w = n
		switch {
		case n > 0:
			return nil
		case !isTimeout(err):
			return f.from.cut(err)
		}
		if err := f.from.Conn.SetReadDeadline(time.Time{}); err != nil {
			return err
		}
	}
}

// Read implements io.Reader.
func (f *inflater) Read(b []byte) (int, error) {
	if f.r == f.w {
		if err := f.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, f.buf[f.r:f.w])
	f.r += n
	return n, nil
}

// ReadByte implements io.ByteReader: without it the decompressor would read ahead.
func (f *inflater) ReadByte() (byte, error) {
	if f.r == f.w {
		if err := f.fill(); err != nil {
			return 0, err
		}
	}
	f.r++
	return f.buf[f.r-1], nil
}

// deflater compresses one chunk at a time.
type deflater struct {
	zlib *zlib.Writer
	out  bytes.Buffer
}

var deflaters = sync.Pool{New: func() any { return &deflater{zlib: zlib.NewWriter(nil)} }}

// Write implements net.Conn.
func (c *compressed) Write(b []byte) (written int, err error) {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	for len(b) > 0 {
		part := b[:min(len(b), chunkMax)]
		chunk, err := d.chunk(part, byte(c.next.Add(1)-1))
		if err != nil {
			return written, err
		}
		if _, err := c.Conn.Write(chunk); err != nil {
			return written, err
		}
		written, b = written+len(part), b[len(part):]
	}
	return written, nil
}

// chunk makes a chunk of b, compressed if that makes it shorter.
func (d *deflater) chunk(b []byte, number byte) ([]byte, error) {
	var head [chunkHeader]byte
	d.out.Reset()
	d.out.Write(head[:])
	plain := 0
	if len(b) >= chunkMin {
		d.zlib.Reset(&d.out)
		if _, err := d.zlib.Write(b); err != nil {
			return nil, err
		}
		if err := d.zlib.Close(); err != nil {
			return nil, err
		}
		plain = len(b)
	}
	if plain == 0 || d.out.Len()-chunkHeader >= len(b) {
		plain = 0
		d.out.Truncate(chunkHeader)
		d.out.Write(b)
	}
	chunk := d.out.Bytes()
	binary.LittleEndian.PutUint32(chunk, uint32(len(chunk)-chunkHeader))
	chunk[3] = number
	chunk[4], chunk[5], chunk[6] = byte(plain), byte(plain>>8), byte(plain>>16)
	return chunk, nil
}
