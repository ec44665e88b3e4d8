package pgwire

import (
	"bytes"
	"io"
	"net"
	"testing"
	"time"
)

// pieces is a connection whose reads come in pieces of the given sizes.
type pieces struct {
	net.Conn
	data  []byte
	sizes []byte
	i     int
}

func (p *pieces) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := 1
	if len(p.sizes) > 0 {
		n += int(p.sizes[p.i%len(p.sizes)])
		p.i++
	}
	n = copy(b, p.data[:min(n, len(p.data))])
	p.data = p.data[n:]
	return n, nil
}

func (p *pieces) Write(b []byte) (int, error)     { return len(b), nil }
func (p *pieces) SetDeadline(time.Time) error     { return nil }
func (p *pieces) SetReadDeadline(time.Time) error { return nil }

// FuzzReader reads a stream in pieces: what comes out does not depend on them, and nothing longer than the stream is
// believed.
func FuzzReader(f *testing.F) {
	f.Add([]byte("Q\x00\x00\x00\x05\x00S\x00\x00\x00\x04"), []byte{0})
	f.Add([]byte("Q\xff\xff\xff\xff"), []byte{3, 1})
	f.Add([]byte("D\x00\x00\x00\x03"), []byte{200})
	f.Add(append([]byte("d\x00\x01\x00\x04"), make([]byte, 1<<16)...), []byte{255, 7})
	f.Fuzz(func(t *testing.T, data, sizes []byte) {
		read := func(sizes []byte) (out []byte, walked int) {
			r := newReader(&pieces{data: data, sizes: sizes}, client)
			for i := 0; ; i++ {
				fr, err := r.header(maxMessage)
				if err != nil {
					return out, i
				}
				out = append(out, fr.kind)
				var w bytes.Buffer
				if i%2 == 0 {
					err = r.copyTo(&w, fr.size)
				} else if fr.size <= 1<<20 {
					var b []byte
					b, err = r.body(fr.size)
					w.Write(b)
				} else {
					err = r.skip(fr.size)
				}
				if err != nil {
					return out, i
				}
				out = append(out, w.Bytes()...)
			}
		}
		whole, n := read([]byte{255})
		split, m := read(sizes)
		if !bytes.Equal(whole, split) || n != m {
			t.Fatalf("%q in pieces %v: %q (%d messages), whole: %q (%d)", data, sizes, split, m, whole, n)
		}
		var a, b walker
		var seen, again []byte
		note := func(to *[]byte) func(byte, []byte) {
			return func(k byte, body []byte) { *to = append(append(*to, k), body[:min(1, len(body))]...) }
		}
		a.walk(data, note(&seen))
		for i := range data {
			b.walk(data[i:i+1], note(&again))
		}
		if !bytes.Equal(seen, again) {
			t.Fatalf("walker: %q whole, %q byte by byte", seen, again)
		}
	})
}

// FuzzBodies gives arbitrary bodies to the decoders of single messages.
func FuzzBodies(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x011\x00\x02\x00\x01\x00\x00"), byte(1))
	f.Add([]byte("\x00\x02\x00\x00\x00\x011\xff\xff\xff\xff"), byte(1))
	f.Add([]byte("\x00\x01a\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff\x00\x00"), byte(1))
	f.Add([]byte("SERROR\x00C08P01\x00Mbind message has 3 result formats but query has 4 columns\x00RPortalSetResultFormat\x00P12\x00\x00"), byte(2))
	f.Add([]byte("SCRAM-SHA-256\x00\x00\x00\x00\x08y,,n=,r="), byte(0))
	f.Fuzz(func(t *testing.T, body []byte, hidden byte) {
		h := int(hidden % 8)
		if at, n := resultFormats(body); n > 0 && at+2+2*n != len(body) {
			t.Fatalf("%q: %d codes at %d", body, n, at)
		}
		if end, n, ok := visibleCells(body, h); ok && (end > len(body) || n < 0) {
			t.Fatalf("%q: %d cells up to %d", body, n, end)
		}
		if end, n, ok := visibleFields(body, h); ok && (end > len(body) || n < 0) {
			t.Fatalf("%q: %d fields up to %d", body, n, end)
		}
		if h == 0 {
			if got := recounted(body, 0); len(got) > len(body)+2 && bytes.Contains(body, []byte("RPortalSetResultFormat")) {
				t.Logf("%q became %q", body, got)
			}
		}
		recounted(body, h)
		parseError(body)
		bindingMissed(body)
		if len(body) >= 4 {
			withoutPlus(body)
		}
		if len(body) >= 8 {
			parseStartup(body)
		}
		text(body)
	})
}
