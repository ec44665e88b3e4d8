package pgwire_test

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits that hangs.
const patience = 3 * time.Minute

// gone is what is shown of the end of a connection.
const gone = "EOF"

// wire is a client that speaks messages.
type wire struct {
	t    testing.TB
	conn net.Conn
	in   *bufio.Reader
	oids map[uint32]int // of tables, by appearance
}

// dialWire connects and authenticates a user that is trusted.
func dialWire(t testing.TB, addr, user, database string, options ...string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // most tests have closed it
	w := &wire{t: t, conn: conn, in: bufio.NewReader(conn), oids: map[uint32]int{}}
	body := binary.BigEndian.AppendUint32(nil, 3<<16)
	for _, s := range append([]string{"user", user, "database", database, "client_encoding", "UTF8"}, options...) {
		body = append(append(body, s...), 0)
	}
	body = append(body, 0)
	w.raw(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...))
	for {
		kind, body := w.read()
		switch kind {
		case 'Z':
			return w
		case 'E':
			t.Fatalf("startup: %q", body)
		}
	}
}

func (w *wire) raw(b []byte) {
	w.t.Helper()
	if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.conn.Write(b); err != nil {
		w.t.Fatalf("write: %v", err)
	}
}

func message(kind byte, body []byte) []byte {
	out := append([]byte{kind}, 0, 0, 0, 0)
	binary.BigEndian.PutUint32(out[1:], uint32(len(body)+4))
	return append(out, body...)
}

func (w *wire) send(kind byte, body string) { w.t.Helper(); w.raw(message(kind, []byte(body))) }

// read gives the next message; kind 0 is the end of the connection.
func (w *wire) read() (kind byte, body []byte) {
	w.t.Helper()
	if err := w.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		w.t.Fatal(err)
	}
	var h [5]byte
	if _, err := io.ReadFull(w.in, h[:]); err == io.EOF {
		return 0, nil
	} else if err != nil {
		w.t.Fatalf("read: %v", err)
	}
	body = make([]byte, binary.BigEndian.Uint32(h[1:])-4)
	if _, err := io.ReadFull(w.in, body); err != nil {
		w.t.Fatalf("read: %v", err)
	}
	return h[0], body
}

// until reads up to n messages of a kind, and gives all messages as text.
func (w *wire) until(kind byte, n int) []string {
	w.t.Helper()
	var out []string
	for n > 0 {
		k, body := w.read()
		out = append(out, w.show(k, body))
		if k == 0 {
			break
		}
		if k == kind {
			n--
		}
	}
	return out
}

// show gives a message as text. The numbers of tables and their
// types are replaced by their order of appearance.
func (w *wire) show(kind byte, body []byte) string {
	if kind == 0 {
		return gone
	}
	if kind == 'T' {
		body = append([]byte{}, body...)
		pos := 2
		for range binary.BigEndian.Uint16(body) {
			for body[pos] != 0 {
				pos++
			}
			for _, at := range []int{pos + 1, pos + 7} { // table and type
				if oid := binary.BigEndian.Uint32(body[at:]); oid >= 16384 {
					if w.oids[oid] == 0 {
						w.oids[oid] = len(w.oids) + 1
					}
					binary.BigEndian.PutUint32(body[at:], uint32(w.oids[oid]))
				}
			}
			pos += 19
		}
	}
	if kind == 'E' && bytes.Contains(body, []byte("RMarkPortalActive")) { // we do not know the source line
		body = regexp.MustCompile(`\x00L\d+`).ReplaceAll(body, nil)
	}
	if kind == 'A' { // the backend's pid
		body = body[4:]
	}
	if len(body) > 4000 {
		return fmt.Sprintf("%c %d bytes %q...", kind, len(body), body[:100])
	}
	return fmt.Sprintf("%c %q", kind, body)
}

// step does one line of a session script:
//
//	Q sql              simple query, waits for ReadyForQuery
//	q sql              the same without waiting
//	P name types|sql   Parse; types are numbers, separated by commas
//	B portal name|formats|params|formats     Bind; lists separated by commas, NULL is null, \x.. binary
//	D Sname, D Pname   Describe
//	E portal limit     Execute
//	C Sname, C Pname   Close
//	H                  Flush
//	X                  Terminate, waits for the end
//	S                  Sync, waits for ReadyForQuery
//	s                  Sync, does not wait
//	d text, c, f text  CopyData with a line end, CopyDone, CopyFail
//	W kind n           waits for n messages of that kind
//	F oid hex          FunctionCall with one int4 argument
func (w *wire) step(line string) []string {
	w.t.Helper()
	op, arg, _ := strings.Cut(line, " ")
	arg = strings.ReplaceAll(arg, `\n`, "\n")
	switch op {
	case "Q":
		w.send('Q', arg+"\x00")
		return w.until('Z', 1)
	case "q":
		w.send('Q', arg+"\x00")
	case "P":
		head, sql, _ := strings.Cut(arg, "|")
		name, types, _ := strings.Cut(head, " ")
		w.send('P', name+"\x00"+sql+"\x00"+shorts(types, 4))
	case "B":
		f := strings.Split(arg, "|")
		for len(f) < 4 {
			f = append(f, "")
		}
		portal, name, _ := strings.Cut(f[0], " ")
		w.send('B', portal+"\x00"+name+"\x00"+shorts(f[1], 2)+params(f[2])+shorts(f[3], 2))
	case "D", "C":
		w.send(op[0], arg+"\x00")
	case "E":
		portal, limit, _ := strings.Cut(arg, " ")
		n, _ := strconv.Atoi(limit)
		w.send('E', portal+"\x00"+string(binary.BigEndian.AppendUint32(nil, uint32(n))))
	case "H":
		w.send('H', "")
	case "S":
		w.send('S', "")
		return w.until('Z', 1)
	case "s":
		w.send('S', "")
	case "X":
		w.send('X', "")
		return w.until(0, 1)
	case "d":
		w.send('d', arg+"\n")
	case "c":
		w.send('c', "")
	case "f":
		w.send('f', arg+"\x00")
	case "F":
		oid, val, _ := strings.Cut(arg, " ")
		n, _ := strconv.Atoi(oid)
		v, _ := strconv.Atoi(val)
		b := binary.BigEndian.AppendUint32(nil, uint32(n))
		b = append(b, 0, 1, 0, 1, 0, 1, 0, 0, 0, 4)
		b = binary.BigEndian.AppendUint32(b, uint32(v))
		w.send('F', string(append(b, 0, 1)))
		return w.until('Z', 1)
	case "W":
		kind, n, _ := strings.Cut(arg, " ")
		k, _ := strconv.Atoi(n)
		return w.until(kind[0], k)
	default:
		w.t.Fatalf("unknown step %q", line)
	}
	return nil
}

func shorts(list string, size int) string {
	var out []byte
	n := 0
	for _, s := range strings.Split(list, ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		v, _ := strconv.Atoi(s)
		if size == 2 {
			out = binary.BigEndian.AppendUint16(out, uint16(v))
		} else {
			out = binary.BigEndian.AppendUint32(out, uint32(v))
		}
		n++
	}
	return string(binary.BigEndian.AppendUint16(nil, uint16(n))) + string(out)
}

func params(list string) string {
	if list == "" {
		return "\x00\x00"
	}
	vals := strings.Split(list, ",")
	out := binary.BigEndian.AppendUint16(nil, uint16(len(vals)))
	for _, v := range vals {
		if v == "NULL" {
			out = binary.BigEndian.AppendUint32(out, 0xffffffff)
			continue
		}
		if hex, ok := strings.CutPrefix(v, `\x`); ok {
			var b []byte
			for i := 0; i+1 < len(hex); i += 2 {
				n, _ := strconv.ParseUint(hex[i:i+2], 16, 8)
				b = append(b, byte(n))
			}
			v = string(b)
		}
		out = binary.BigEndian.AppendUint32(out, uint32(len(v)))
		out = append(out, v...)
	}
	return string(out)
}
