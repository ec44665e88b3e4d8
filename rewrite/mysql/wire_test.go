package mysql

import (
	"bufio"
	"bytes"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"

	"wirecheck/internal/testserver"
)

// wire is a client that shows what the server sends byte for byte, which drivers do not (MySQL manual, "Client/Server
// Protocol"; mysql_native_password or caching_sha2_password, protocol 4.1, no TLS).
type wire struct {
	conn net.Conn
	r    *bufio.Reader
	seq  byte
	sent int // counts commands
}

// Capabilities of the protocol.
const (
	clientFoundRows       = 1 << 1
	clientMultiStatements = 1 << 16
)

// reply is a whole answer. The cells of a binary row are as they come, numbers in little-endian bytes.
type reply struct {
	err      string
	affected uint64
	insertID uint64
	status   uint16
	warnings uint16
	info     string
	columns  [][]byte // the column definitions
	rows     [][][]byte
	next     []reply
	refused  bool // the preparation failed
}

func dial(t testing.TB, db testserver.Database, capabilities uint32) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", db.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Logf("close: %v", err)
		}
	})
	w := &wire{conn: conn, r: bufio.NewReader(conn)}
	hello := w.read(t)
	rest := hello[bytes.IndexByte(hello, 0)+1:]
	salt := append(bytes.Clone(rest[4:12]), rest[31:43]...)
	// long password, long flag, connect with db, protocol 4.1, transactions, secure connection, multi results, ps multi results, plugin auth
	flags := uint32(1|4|8|0x200|0x2000|0x8000|1<<17|1<<18|1<<19) | capabilities
	out := binary.LittleEndian.AppendUint32(nil, flags)
	out = append(binary.LittleEndian.AppendUint32(out, 1<<24), 45)
	out = append(out, make([]byte, 23)...)
	out = append(append(out, db.User...), 0)
	if flavor() == MySQL {
		out = append(append(out, 32), cachingScramble(db.Password, salt)...)
		out = append(append(out, db.Name...), 0)
		w.write(t, append(append(out, "caching_sha2_password"...), 0))
		w.cachingPassword(t, db.Password, salt)
		return w
	}
	h1 := sha1.Sum([]byte(db.Password))
	h2 := sha1.Sum(h1[:])
	h3 := sha1.Sum(append(bytes.Clone(salt), h2[:]...))
	out = append(out, 20)
	for i := range h1 {
		out = append(out, h1[i]^h3[i])
	}
	out = append(append(out, db.Name...), 0)
	out = append(append(out, "mysql_native_password"...), 0)
	w.write(t, out)
	if p := w.read(t); p[0] != 0 {
		t.Fatalf("log in: %q", p)
	}
	return w
}

func (w *wire) read(t testing.TB) []byte {
	t.Helper()
	var head [4]byte
	if _, err := io.ReadFull(w.r, head[:]); err != nil {
		t.Fatalf("read: %v", err)
	}
	p := make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	if _, err := io.ReadFull(w.r, p); err != nil {
		t.Fatalf("read: %v", err)
	}
	w.seq = head[3] + 1
	return p
}

func (w *wire) write(t testing.TB, p []byte) {
	t.Helper()
	head := []byte{byte(len(p)), byte(len(p) >> 8), byte(len(p) >> 16), w.seq}
	if _, err := w.conn.Write(append(head, p...)); err != nil {
		t.Fatalf("write: %v", err)
	}
}

func (w *wire) command(t testing.TB, code byte, body []byte) {
	t.Helper()
	w.seq = 0
	w.sent++
	w.write(t, append([]byte{code}, body...))
}

func (w *wire) query(t testing.TB, sql string) reply {
	t.Helper()
	w.command(t, 3, []byte(sql))
	return w.replies(t, false)
}

// queries sends all texts before it reads the first answer, which costs both sides less than one after the other.
func (w *wire) queries(t testing.TB, texts []string) (list []reply) {
	t.Helper()
	var all []byte
	for _, sql := range texts {
		n := len(sql) + 1
		all = append(append(all, byte(n), byte(n>>8), byte(n>>16), 0, 3), sql...)
	}
	w.sent += len(texts)
	if _, err := w.conn.Write(all); err != nil {
		t.Fatalf("write: %v", err)
	}
	for range texts {
		list = append(list, w.replies(t, false))
	}
	return list
}

func (w *wire) replies(t testing.TB, isBinary bool) reply {
	t.Helper()
	r := w.reply(t, isBinary)
	for last := &r; last.status&8 != 0; { // SERVER_MORE_RESULTS_EXISTS
		next := w.reply(t, isBinary)
		r.next = append(r.next, next)
		last = &r.next[len(r.next)-1]
	}
	return r
}

func (w *wire) reply(t testing.TB, isBinary bool) (r reply) {
	t.Helper()
	p := w.read(t)
	switch p[0] {
	case 0xff:
		r.err = fmt.Sprintf("%d %s", binary.LittleEndian.Uint16(p[1:]), p[3:])
		return r
	case 0:
		p = p[1:]
		r.affected, p = number64(p)
		r.insertID, p = number64(p)
		r.status, r.warnings, r.info = binary.LittleEndian.Uint16(p), binary.LittleEndian.Uint16(p[2:]), string(p[4:])
		return r
	}
	n, _ := number64(p)
	for range n {
		r.columns = append(r.columns, w.read(t))
	}
	w.read(t) // EOF
	for {
		p := w.read(t)
		switch {
		case p[0] == 0xff:
			r.err = fmt.Sprintf("%d %s", binary.LittleEndian.Uint16(p[1:]), p[3:])
			return r
		case p[0] == 0xfe && len(p) < 9:
			r.warnings, r.status = binary.LittleEndian.Uint16(p[1:]), binary.LittleEndian.Uint16(p[3:])
			return r
		case isBinary:
			r.rows = append(r.rows, binaryRow(t, p, r.columns))
		default:
			var row [][]byte
			for len(p) > 0 {
				var cell []byte
				cell, p = text64(p)
				row = append(row, cell)
			}
			r.rows = append(r.rows, row)
		}
	}
}

// execute prepares, executes with text parameters and closes.
func (w *wire) execute(t testing.TB, sql string, args []string) reply {
	t.Helper()
	w.command(t, 0x16, []byte(sql))
	p := w.read(t)
	if p[0] == 0xff {
		return reply{refused: true, err: fmt.Sprintf("%d %s", binary.LittleEndian.Uint16(p[1:]), p[3:])}
	}
	id, columns, params := p[1:5], binary.LittleEndian.Uint16(p[5:]), binary.LittleEndian.Uint16(p[7:])
	for _, n := range []uint16{params, columns} {
		for i := uint16(0); n > 0 && i <= n; i++ { // definitions and EOF
			w.read(t)
		}
	}
	body := append(bytes.Clone(id), 0, 1, 0, 0, 0)
	if params > 0 {
		body = append(append(body, make([]byte, (params+7)/8)...), 1)
		for range args {
			body = append(body, 0xfd, 0)
		}
		for _, a := range args {
			body = append(body, lenenc([]byte(a))...)
		}
	}
	w.command(t, 0x17, body)
	r := w.replies(t, true)
	w.command(t, 0x19, id)
	return r
}

func number64(p []byte) (uint64, []byte) {
	switch p[0] {
	case 0xfc:
		return uint64(binary.LittleEndian.Uint16(p[1:])), p[3:]
	case 0xfd:
		return uint64(p[1]) | uint64(p[2])<<8 | uint64(p[3])<<16, p[4:]
	case 0xfe:
		return binary.LittleEndian.Uint64(p[1:]), p[9:]
	}
	return uint64(p[0]), p[1:]
}

func text64(p []byte) (cell, rest []byte) {
	if p[0] == 0xfb {
		return nil, p[1:]
	}
	n, p := number64(p)
	return p[:n:n], p[n:]
}

func lenenc(b []byte) []byte {
	switch n := len(b); {
	case n < 251:
		return append([]byte{byte(n)}, b...)
	default:
		return append([]byte{0xfd, byte(n), byte(n >> 8), byte(n >> 16)}, b...)
	}
}

func binaryRow(t testing.TB, p []byte, columns [][]byte) [][]byte {
	t.Helper()
	nulls := p[1 : 1+(len(columns)+9)/8]
	p = p[1+len(nulls):]
	row := make([][]byte, len(columns))
	for i, c := range columns {
		if nulls[(i+2)/8]&(1<<((i+2)%8)) != 0 {
			continue
		}
		size := -1
		switch c[len(c)-6] { // type: 2 charset, 4 length, 1 type, 2 flags, 1 decimals, 2 filler
		case 1:
			size = 1
		case 2, 13:
			size = 2
		case 3, 9, 4:
			size = 4
		case 8, 5:
			size = 8
		case 7, 10, 11, 12:
			size = 1 + int(p[0])
		}
		if size < 0 {
			row[i], p = text64(p)
		} else {
			row[i], p = p[:size:size], p[size:]
		}
	}
	return row
}
