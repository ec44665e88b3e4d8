package mysqlwire

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// randomRow makes a row and what cut should make of it.
func randomRow(r *rand.Rand, c *columns) (row, shown []byte, hidden [][]byte) {
	n := len(c.types)
	nulls := make([]bool, n)
	values := make([][]byte, n)
	for i, typ := range c.types {
		nulls[i] = r.IntN(4) == 0
		size, fixed := binarySize(typ)
		if !fixed || !c.binary {
			size = r.IntN(300)
			if r.IntN(20) == 0 {
				size = 70_000
			}
		}
		values[i] = bytes.Repeat([]byte{byte(r.IntN(256))}, size)
	}
	encode := func(n int) []byte {
		var b []byte
		if c.binary {
			b = make([]byte, bitmap(n))
		}
		for i := range n {
			_, fixed := binarySize(c.types[i])
			switch {
			case nulls[i] && c.binary:
				b[1+(i+2)/8] |= 1 << ((i + 2) % 8)
			case nulls[i]:
				b = append(b, markInfo)
			case fixed && c.binary:
				b = append(b, values[i]...)
			default:
				b = appendLenencString(b, values[i])
			}
		}
		return b
	}
	for i := n - c.hidden; i < n; i++ {
		if nulls[i] {
			hidden = append(hidden, nil)
		} else {
			hidden = append(hidden, values[i])
		}
	}
	return encode(n), encode(n - c.hidden), hidden
}

func TestCut(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := []byte{mysql.MYSQL_TYPE_TINY, mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE,
		mysql.MYSQL_TYPE_VAR_STRING, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_NEWDECIMAL, mysql.MYSQL_TYPE_YEAR}
	for range 2000 {
		c := &columns{binary: r.IntN(2) == 0}
		for range 1 + r.IntN(20) {
			c.types = append(c.types, kinds[r.IntN(len(kinds))])
		}
		c.hidden = min(r.IntN(4), len(c.types)-1)
		for i := len(c.types) - c.hidden; i < len(c.types); i++ {
			c.types[i] = mysql.MYSQL_TYPE_VAR_STRING
		}
		row, wantShown, wantHidden := randomRow(r, c)
		shown, hidden, err := c.cut(bytes.Clone(row), nil)
		if err != nil || !bytes.Equal(shown, wantShown) || len(hidden) != len(wantHidden) {
			t.Fatalf("types %v, hidden %d: got % x, %d, %v; want % x, %d", c.types, c.hidden, shown, len(hidden), err, wantShown, len(wantHidden))
		}
		for i := range hidden {
			if !bytes.Equal(hidden[i], wantHidden[i]) || (hidden[i] == nil) != (wantHidden[i] == nil) {
				t.Fatalf("hidden %d: got % x, want % x", i, hidden[i], wantHidden[i])
			}
		}
		if len(row) > 0 {
			if _, _, err := c.cut(row[:len(row)-1], nil); err == nil && row[len(row)-1] != markInfo {
				t.Fatalf("a row cut short is taken: % x", row)
			}
		}
		same, keep, err := c.conceal(shown, func([][]byte) bool { return true })
		if err != nil || !keep || !bytes.Equal(same, shown) {
			t.Fatalf("conceal nothing: got % x, %v, %v", same, keep, err)
		}
	}
}

// TestLongRow cuts rows of more than one frame, around the lengths at which a frame begins or ends.
func TestLongRow(t *testing.T) {
	for _, size := range []int{packetMax + 1, frameMax - 60, frameMax - 9, frameMax - 8, frameMax - 4, frameMax, frameMax + 30, 3*frameMax + 5} {
		c := &columns{types: []byte{mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_BLOB, mysql.MYSQL_TYPE_VAR_STRING}, hidden: 1, binary: true}
		row := append([]byte{0, 0}, 7, 0, 0, 0)
		row = appendLenencString(row, make([]byte, size))
		want := bytes.Clone(row)
		row = appendLenencString(row, "0123456789 hidden")

		near, far := net.Pipe()
		go func() {
			defer far.Close()
			out := &conn{raw: far, nc: far, out: make([]byte, 0, bufferSize)}
			s := &link{client: out}
			if s.toClientFrames(row) != nil || out.send() != nil {
				return
			}
		}()
		var got bytes.Buffer
		s := &link{server: newConn(near), client: &conn{nc: writerConn{w: &got}, out: make([]byte, 0, bufferSize)}}
		if err := s.relayLongRow(c); err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		if err := s.client.send(); err != nil {
			t.Fatal(err)
		}
		all := joinFrames(t, got.Bytes())
		if !bytes.Equal(all, want) {
			t.Errorf("size %d: got %d bytes, want %d", size, len(all), len(want))
		}
		near.Close()
	}
}

type writerConn struct {
	net.Conn
	w io.Writer
}

func (c writerConn) Write(b []byte) (int, error) { return c.w.Write(b) }

// joinFrames puts a packet together and checks its frames.
func joinFrames(t *testing.T, b []byte) []byte {
	t.Helper()
	var all []byte
	for seq := byte(0); ; seq++ {
		n := int(b[0]) | int(b[1])<<8 | int(b[2])<<16
		if b[3] != seq {
			t.Errorf("sequence %d, want %d", b[3], seq)
		}
		all = append(all, b[4:4+n]...)
		b = b[4+n:]
		if n < frameMax {
			if len(b) > 0 {
				t.Errorf("%d bytes behind the last frame", len(b))
			}
			return all
		}
	}
}

func FuzzDecoders(f *testing.F) {
	f.Add([]byte("\x0a5.5.5-10.11\x00\x01\x00\x00\x0012345678\x00\xff\xf7\x2d\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00123456789012\x00mysql_native_password\x00"))
	f.Add([]byte("\x85\xa6\x3f\x20\x00\x00\x00\x01\x21" + string(make([]byte, 23)) + "u\x00\x14abcdefghijabcdefghijdb\x00mysql_native_password\x00\x05\x01a\x01bc"))
	f.Add([]byte{0, 1, 2, 2, 0, 0, 0})
	f.Add([]byte("\xff\x15\x04#28000denied"))
	f.Add([]byte{0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Add([]byte{0, 0xfc, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := parseGreeting(b); err == nil {
			if out := g.with(g.caps); !bytes.Equal(out, b) {
				t.Errorf("a greeting with its own capabilities: got % x, want % x", out, b)
			}
		}
		if l, err := parseLogin(b); err == nil {
			dropCaps(bytes.Clone(l.raw), 0)
		}
		if ok, err := parseOK(b); err == nil && ok.at+4 > len(b) {
			t.Errorf("status at %d of %d bytes", ok.at, len(b))
		}
		parseERR(b)
		columnNames(b)
		_, _ = typeOf(b)
		for _, binaryRow := range []bool{false, true} {
			c := &columns{types: []byte{3, 253, 12, 253, 8, 253}, hidden: 2, binary: binaryRow}
			if shown, hidden, err := c.cut(bytes.Clone(b), nil); err == nil {
				if len(hidden) != 2 {
					t.Errorf("%d hidden values, want 2", len(hidden))
				}
				if _, _, err := c.conceal(shown, func(row [][]byte) bool { return true }); err != nil {
					t.Errorf("what was cut cannot be read again: %v", err)
				}
			}
		}
		p := &prepared{params: 3, bound: []byte{3, 0, 3, 0, 3, 0}}
		p.withTypes(bytes.Clone(b), true, true)
	})
}

// FuzzFrames relays whatever comes instead of packets.
func FuzzFrames(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x0e"))
	f.Add([]byte("\xff\xff\xff\x00\x03SELECT"))
	f.Add([]byte("\x00\x00\x00\x00\x09\x00\x00\x00\x17\x01\x00\x00\x00\x00\x01\x00\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			if _, err := far.Write(b); err != nil {
				return
			}
		}()
		if err := near.SetDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		c := newConn(near)
		c.timed = true
		var out bytes.Buffer
		dst := &conn{nc: writerConn{w: &out}, out: make([]byte, 0, bufferSize)}
		for {
			fr, err := c.peek()
			if err != nil {
				break
			}
			if fr.n > 0 && int(fr.first)%2 == 0 && fr.n <= packetMax {
				p, err := c.packet(fr)
				if err != nil {
					break
				}
				if err := dst.put(fr.seq, p); err != nil {
					t.Fatal(err)
				}
				continue
			}
			if _, err := c.relay(dst, 0); err != nil {
				break
			}
		}
		near.Close()
		if err := dst.send(); err != nil {
			t.Fatal(err)
		}
		if got := out.Bytes(); !bytes.HasPrefix(b, got) {
			t.Errorf("relayed % x of % x", got, b)
		}
		if len(c.in) > bufferSize+len(b)+packetMax+headerSize {
			t.Errorf("the buffer has grown to %d bytes", len(c.in))
		}
	})
}

func TestGreetingMasks(t *testing.T) {
	raw := []byte("\x0a5.5.5-10.11-MariaDB\x00\x01\x00\x00\x0012345678\x00\xfe\xff\x2d\x02\x00\xff\xff\x15\x00\x00\x00\x00\x00\x00\x3f\x00\x00\x00123456789012\x00mysql_native_password\x00")
	g, err := parseGreeting(raw)
	if err != nil {
		t.Fatal(err)
	}
	if g.flavor() != "mariadb" || g.caps>>32 != 0x3f || g.thread != 1 {
		t.Errorf("got %+v", g)
	}
	m, err := parseGreeting(g.with(g.caps & capFollowed))
	if err != nil {
		t.Fatal(err)
	}
	if got := m.caps & (uint64(mysql.CLIENT_COMPRESS) | capZstd | capQueryAttributes | capOptionalMetadata | 1<<33 | 1<<37); got != 0 {
		t.Errorf("still offered: %x", got)
	}
	if m.caps&capBulk == 0 || m.caps&capCacheMetadata == 0 || m.caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		t.Errorf("not offered any more: %x", g.caps&^m.caps)
	}
	if b := binary.LittleEndian.Uint16(m.raw[m.lower:]); b&1 != 0 {
		t.Error("the greeting has become one of MySQL's")
	}
}
