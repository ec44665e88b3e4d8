package pgwire_test

import (
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// peak runs f and gives by how many bytes the memory in use grew at most meanwhile. Each look collects the garbage first:
// how much of that lies around depends on when the collector last ran, and not on what the proxy keeps.
func peak(f func()) int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	base := int64(m.HeapAlloc)
	var high atomic.Int64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(30 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				var m runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&m)
				high.Store(max(high.Load(), int64(m.HeapAlloc)-base))
			}
		}
	}()
	f()
	close(stop)
	<-done
	return high.Load()
}

// leastPeak gives the peak of f, or the least one of three if it is more than few: what is kept is there each time; what piles up during a slow
// collection, on a busy machine, is not.
func leastPeak(few int64, f func()) int64 {
	p := peak(f)
	for range 2 {
		if p > few {
			p = min(p, peak(f))
		}
	}
	return p
}

// kept runs f and gives by how many bytes the memory in use has grown by then.
func kept(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// drop reads messages without keeping them until a ReadyForQuery, and gives the bytes of all DataRows.
func (w *wire) drop() (n int64) {
	w.t.Helper()
	for {
		if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
			w.t.Fatal(err)
		}
		var h [5]byte
		if _, err := io.ReadFull(w.in, h[:]); err != nil {
			w.t.Fatal(err)
		}
		size := int64(binary.BigEndian.Uint32(h[1:])) - 4
		if h[0] == 'E' {
			b := make([]byte, size)
			_, err := io.ReadFull(w.in, b)
			w.t.Fatalf("%q, %v", b, err)
		}
		if _, err := io.CopyN(io.Discard, w.in, size); err != nil {
			w.t.Fatal(err)
		}
		switch h[0] {
		case 'D':
			n += size
		case 'Z':
			return n
		}
	}
}

// memoryMiB is how much TestMemory passes in one answer: some in `make test`, a gibibyte in `make soak`.
var memoryMiB = flag.Int("memory", 64, "MiB of rows that TestMemory passes through the proxy, at most 1024")

// TestMemory passes long answers and single messages of many megabytes through the proxy.
func TestMemory(t *testing.T) {
	const few = 32 << 20 // half of the smallest of these, and more than a collection that takes long lets pile up meanwhile
	srv := testserver.Postgres(t)
	db := srv.Database(t).As(testserver.AppTrust)
	db.Exec(t, "CREATE TABLE big (id int PRIMARY KEY, v text)", "INSERT INTO big SELECT i FROM generate_series(1, 1024) i",
		"CREATE TABLE sink (v text)")
	for _, mode := range modes {
		ev := &events{}
		r := start(t, proxy.Config{Upstream: upstream(srv), Mode: mode}, observer(ev))
		w := dialWire(t, r.addr.String(), db.User, db.Name)
		check := func(name string, got, want int64, f func() int64) {
			t.Helper()
			var n int64
			p := leastPeak(few, func() { n = f() })
			t.Logf("%s, %s: %d MiB, live heap grew by %.1f MiB", mode, name, n>>20, float64(p)/(1<<20))
			if n < want {
				t.Errorf("%s, %s: %d bytes, want %d", mode, name, n, want)
			}
			if p > few {
				t.Errorf("%s, %s: live heap grew by %d bytes, want at most %d", mode, name, p, few)
			}
		}
		query := func(sql string) func() int64 {
			return func() int64 {
				w.send('Q', sql+"\x00")
				return w.drop()
			}
		}
		check("long answer", 0, int64(*memoryMiB)<<20, query(fmt.Sprintf("SELECT id, repeat('x', 1048576) FROM big WHERE id <= %d", *memoryMiB)))
		check("small rows", 0, 34<<20, query("SELECT a.id, b.id, repeat('some text', 25) FROM big a, big b WHERE b.id <= 150"))
		check("one long row, known length", 0, 64<<20, query("SELECT id, repeat('x', 67108864) FROM big WHERE id = 1"))
		check("one long row, spooled", 0, 64<<20, query("SELECT repeat('x', 67108864), id FROM big WHERE id = 1"))
		check("long statement", 0, 0, func() int64 {
			w.raw(message('Q', nil)[:1])
			w.raw(binary.BigEndian.AppendUint32(nil, 64<<20+4+uint32(len("SELECT length('')\x00"))))
			w.raw([]byte("SELECT length('"))
			pour(w, 64<<20)
			w.raw([]byte("')\x00"))
			return w.drop()
		})
		check("long parameter", 0, 0, func() int64 {
			w.send('P', "\x00SELECT id FROM big WHERE v = $1\x00\x00\x00")
			body := "\x00\x00\x00\x00\x00\x01"
			w.raw([]byte{'B'})
			w.raw(binary.BigEndian.AppendUint32(nil, uint32(4+len(body)+4+64<<20+2)))
			w.raw([]byte(body))
			w.raw(binary.BigEndian.AppendUint32(nil, 64<<20))
			pour(w, 64<<20)
			w.raw([]byte{0, 0})
			w.send('E', "\x00\x00\x00\x00\x00")
			w.send('S', "")
			return w.drop()
		})
		check("copy in", 0, 0, func() int64 {
			w.send('Q', "COPY sink FROM STDIN\x00")
			w.until('G', 1)
			line := []byte(strings.Repeat("y", 1<<16) + "\n")
			for range 1024 {
				w.raw(message('d', line))
			}
			w.send('c', "")
			return w.drop()
		})
		check("copy out", 0, 0, query("COPY sink TO STDOUT"))
		r.stop()
		db.Exec(t, "TRUNCATE sink")
	}
}

func pour(w *wire, n int) {
	chunk := []byte(strings.Repeat("z", 1<<16))
	for ; n > 0; n -= len(chunk) {
		w.raw(chunk[:min(n, len(chunk))])
	}
}
