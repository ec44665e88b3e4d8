package mysqlwire_test

import (
	"bytes"
	"compress/zlib"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// counted counts what passes over a connection.
type counted struct {
	net.Conn
	in, out *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.in.Add(int64(n))
	return n, err
}

func (c counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.out.Add(int64(n))
	return n, err
}

// TestCompression moves long texts to the server and back. A client that asks for compression gets it, in an observed session and in one that is left
// out of a sample; another client does not.
func TestCompression(t *testing.T) {
	d := testserver.Family(t).Database(t)
	text := strings.Repeat("the same again ", 20_000)
	for name, sample := range map[string]float64{"observed": 1, "not observed": 1e-9} {
		through := startProxy(t, d, proxy.Config{Mode: proxy.Observe, Sample: sample}, observer(&sink{}))
		for _, compress := range []bool{true, false} {
			var in, out atomic.Int64
			cfg := through.MySQLConfig()
			cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
				return counted{c, &in, &out}, err
			}
			if err := cfg.Apply(driver.EnableCompression(compress)); err != nil {
				t.Fatal(err)
			}
			connector, err := driver.NewConnector(cfg)
			if err != nil {
				t.Fatal(err)
			}
			db := sql.OpenDB(connector)
			for _, s := range []string{"DROP TABLE IF EXISTS t", "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)", "INSERT INTO t VALUES (1, '" + text + "')"} {
				if _, err := db.Exec(s); err != nil {
					t.Fatal(err)
				}
			}
			var got string
			if err := db.QueryRow("SELECT v FROM t WHERE id = ?", 1).Scan(&got); err != nil || got != text {
				t.Errorf("%s, compress %v: got %d bytes, %v", name, compress, len(got), err)
			}
			_ = db.Close()
			caps := baseCaps
			if compress {
				caps |= uint64(mysql.CLIENT_COMPRESS)
			}
			c := dialRaw(t, through, caps) // this one numbers the packets within otherwise, and its text is not held as a whole
			c.query("UPDATE t SET v = CONCAT('" + strings.Repeat(text, 6) + "', 'x')")
			expectRows(t, c, "SELECT LENGTH(v), RIGHT(v, 1) FROM t", fmt.Sprint(6*len(text)+1)+"|x")
			if short := int64(len(text) / 5); (in.Load() < short) != compress || (out.Load() < short) != compress {
				t.Errorf("%s, compress %v: %d and %d bytes passed for a text of %d", name, compress, in.Load(), out.Load(), len(text))
			}
		}
	}
}

// chunk is one of the compressed protocol.
func chunk(number byte, content []byte, plain int) []byte {
	n := len(content)
	return append([]byte{byte(n), byte(n >> 8), byte(n >> 16), number, byte(plain), byte(plain >> 8), byte(plain >> 16)}, content...)
}

func deflated(b string) []byte {
	var out bytes.Buffer
	w := zlib.NewWriter(&out)
	_, _ = w.Write([]byte(b)) // a buffer takes all
	_ = w.Close()
	return out.Bytes()
}

// TestCompressedChunks reads chunks that arrive cut at each byte, with a deadline that passes at the cut, and malformed ones.
func TestCompressedChunks(t *testing.T) {
	stream := bytes.Join([][]byte{chunk(0, deflated("hello "), 6), chunk(1, []byte("you"), 0), chunk(2, nil, 0), chunk(3, deflated(strings.Repeat("x", 70_000)), 70_000)}, nil)
	want := "hello you" + strings.Repeat("x", 70_000)
	read := func(c net.Conn, b []byte) (n int, err error) {
		for {
			if n, err = c.Read(b); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
				return n, err
			}
			if err := c.SetReadDeadline(time.Time{}); err != nil {
				return 0, err
			}
		}
	}
	for cut := range len(stream) {
		ours, theirs := net.Pipe()
		c := mysqlwire.NewCompressed(ours)
		go func() {
			_, _ = theirs.Write(stream[:cut]) // a test that has failed reads no more
			_ = ours.SetReadDeadline(time.Unix(1, 0))
			_, _ = theirs.Write(stream[cut:])
			_ = theirs.Close()
		}()
		var got []byte
		b := make([]byte, 1000)
		for {
			n, err := read(c, b)
			got = append(got, b[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("cut at %d: %v behind %d bytes", cut, err, len(got))
			}
		}
		if string(got) != want {
			t.Fatalf("cut at %d: got %d bytes", cut, len(got))
		}
		_ = ours.Close()
	}
	for name, bad := range map[string][]byte{
		"more than announced":  chunk(0, deflated("hello"), 4),
		"less than announced":  chunk(0, deflated("hello"), 6),
		"bytes behind the end": chunk(0, append(deflated("hello"), 1), 5),
		"noise":                chunk(0, []byte("\xff\xff\xff\xff\xff"), 5),
		"the end in a header":  {5, 0, 0},
		"the end in a chunk":   chunk(0, deflated("hello"), 5)[:12],
		"the end in a plain":   chunk(0, []byte("hello"), 0)[:9],
		"nothing":              chunk(0, nil, 5),
	} {
		ours, theirs := net.Pipe()
		go func() {
			_, _ = theirs.Write(bad) // the reader may stop
			_ = theirs.Close()
		}()
		if got, err := io.ReadAll(mysqlwire.NewCompressed(ours)); err == nil {
			t.Errorf("%s: read %q without an error", name, got)
		}
		_ = ours.Close()
	}
}
