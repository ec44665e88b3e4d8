package mysqlwire_test

import (
	"bufio"
	"bytes"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/internal/testserver"
	"wirecheck/proxy/mysqlwire"
)

// rawClient speaks the protocol packet by packet, so that a test sees every byte.
type rawClient struct {
	t        *testing.T
	conn     net.Conn
	r        *bufio.Reader
	caps     uint64
	thread   uint32
	about    string
	executes bool
	cursor   bool   // the execution asks for a cursor
	doing    string // the last command
	below    *countedReads
	lost     bool // the end of the session is an answer too: packet panics with the error
}

// countedReads counts the bytes that came below TLS.
type countedReads struct {
	net.Conn
	n int
}

func (c *countedReads) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.n += n
	return n, err
}

const baseCaps = uint64(mysql.CLIENT_LONG_PASSWORD | mysql.CLIENT_LONG_FLAG | mysql.CLIENT_PROTOCOL_41 | mysql.CLIENT_TRANSACTIONS |
	mysql.CLIENT_SECURE_CONNECTION | mysql.CLIENT_MULTI_STATEMENTS | mysql.CLIENT_MULTI_RESULTS | mysql.CLIENT_PS_MULTI_RESULTS |
	mysql.CLIENT_PLUGIN_AUTH | mysql.CLIENT_CONNECT_WITH_DB | mysql.CLIENT_LOCAL_FILES)

// dialRaw logs in with mysql_native_password or caching_sha2_password.
func dialRaw(t *testing.T, d testserver.Database, caps uint64) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", d.Address())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(5 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	c := &rawClient{t: t, conn: conn, r: bufio.NewReader(conn), caps: caps}
	_, greeting := c.packet()
	end := bytes.IndexByte(greeting[1:], 0) + 2
	c.thread = binary.LittleEndian.Uint32(greeting[end:])
	salt := bytes.Clone(greeting[end+4 : end+12])
	salt = append(salt, greeting[end+31:end+43]...)
	login := c.login(d, salt)
	if caps&uint64(mysql.CLIENT_SSL) == 0 {
		c.write(1, login)
	} else {
		c.write(1, login[:32])
		c.below = &countedReads{Conn: conn}
		c.conn = tls.Client(c.below, &tls.Config{InsecureSkipVerify: true})
		c.r = bufio.NewReader(c.conn)
		c.write(2, login)
	}
	c.finishLogin(d, salt)
	if caps&uint64(mysql.CLIENT_COMPRESS) != 0 {
		c.conn = mysqlwire.NewCompressed(c.conn)
		c.r = bufio.NewReader(c.conn)
	}
	return c
}

func (c *rawClient) login(d testserver.Database, salt []byte) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(c.caps))
	b = binary.LittleEndian.AppendUint32(b, 1<<24)
	b = append(b, 45) // utf8mb4_general_ci
	b = append(b, make([]byte, 19)...)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.caps>>32))
	b = append(append(b, d.User...), 0)
	auth, method := mysql.CalcNativePassword(salt, []byte(d.Password)), "mysql_native_password"
	if testserver.IsMySQL() {
		auth, method = mysql.CalcCachingSha2Password(salt, []byte(d.Password)), "caching_sha2_password"
	}
	b = append(append(b, byte(len(auth))), auth...)
	b = append(append(b, d.Name...), 0)
	return append(b, method+"\x00"...)
}

// finishLogin reads on to the server's OK. caching_sha2_password may ask for the password, encrypted with the server's key
// (MySQL manual, "Caching SHA-2 Pluggable Authentication").
func (c *rawClient) finishLogin(d testserver.Database, salt []byte) {
	c.t.Helper()
	seq, b := c.packet()
	if len(b) == 2 && b[0] == 1 && b[1] == 4 && c.below != nil {
		c.write(seq+1, append([]byte(d.Password), 0))
		_, b = c.packet()
	} else if len(b) == 2 && b[0] == 1 && b[1] == 4 {
		c.write(seq+1, []byte{2})
		if seq, b = c.packet(); len(b) < 2 || b[0] != 1 {
			c.t.Fatalf("login: got %q, want a public key", b)
		}
		block, _ := pem.Decode(b[1:])
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		if err != nil {
			c.t.Fatal(err)
		}
		sealed, err := mysql.EncryptPassword(d.Password, salt, key.(*rsa.PublicKey))
		if err != nil {
			c.t.Fatal(err)
		}
		c.write(seq+1, sealed)
		_, b = c.packet()
	} else if len(b) == 2 && b[0] == 1 && b[1] == 3 {
		_, b = c.packet()
	}
	if len(b) == 0 || b[0] != 0 {
		c.t.Fatalf("login: got % x, want OK", b)
	}
}

func (c *rawClient) write(seq byte, payload []byte) {
	c.t.Helper()
	if seq == 0 {
		if mysqlwire.NewCommand(c.conn) {
			seq = 1 // as MariaDB's Connector/J numbers the packets within
		}
	}
	for {
		n := min(len(payload), 1<<24-1)
		head := []byte{byte(n), byte(n >> 8), byte(n >> 16), seq}
		if _, err := c.conn.Write(append(head, payload[:n]...)); err != nil && !c.lost {
			c.t.Fatal(err)
		}
		payload = payload[n:]
		seq++
		if n < 1<<24-1 {
			return
		}
	}
}

// packet reads one frame.
func (c *rawClient) packet() (seq byte, payload []byte) {
	c.t.Helper()
	seq, payload, err := c.tryPacket()
	if err != nil {
		if c.lost {
			panic(err)
		}
		c.t.Fatalf("read the answer to %q of %s at %s: %v", c.doing, c.about, c.conn.RemoteAddr(), err)
	}
	return seq, payload
}

func (c *rawClient) tryPacket() (seq byte, payload []byte, err error) {
	head := make([]byte, 4)
	if c.lost { // MariaDB 10.11.19 itself never ends some answers with a cursor
		if err := c.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			return 0, nil, err
		}
	}
	if _, err := io.ReadFull(c.r, head); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			err = os.ErrDeadlineExceeded // without addresses
		}
		return 0, nil, err
	}
	payload = make([]byte, int(head[0])|int(head[1])<<8|int(head[2])<<16)
	_, err = io.ReadFull(c.r, payload)
	return head[3], payload, err
}

// reply is an answer: the frames as text lines "seq: hex".
type reply struct {
	packets [][]byte
	seqs    []byte
	shift   byte     // packets left away
	rows    [][2]int // the packets that are rows, by result
}

func (r *reply) last() []byte { return r.packets[len(r.packets)-1] }

func (r *reply) String() string {
	var b bytes.Buffer
	for i, p := range r.packets {
		fmt.Fprintf(&b, "%d: %q\n", r.seqs[i], p)
	}
	return b.String()
}

func (c *rawClient) next(r *reply) []byte {
	c.t.Helper()
	seq, p := c.packet()
	r.packets, r.seqs = append(r.packets, p), append(r.seqs, seq-r.shift)
	return p
}

// do sends a command and reads its whole answer.
func (c *rawClient) do(cmd byte, arg []byte) *reply {
	c.t.Helper()
	c.doing = fmt.Sprintf("%d %s", cmd, arg)
	c.write(0, append([]byte{cmd}, arg...))
	return c.answer(cmd)
}

func (c *rawClient) query(sql string) *reply {
	c.t.Helper()
	return c.do(mysql.COM_QUERY, []byte(sql))
}

func (c *rawClient) answer(cmd byte) *reply {
	c.t.Helper()
	r := &reply{}
	c.executes = cmd == mysql.COM_STMT_EXECUTE
	switch cmd {
	case mysql.COM_STMT_PREPARE:
		c.prepared(r)
		return r
	case mysql.COM_STATISTICS:
		c.next(r)
		return r
	case mysql.COM_STMT_FETCH, mysql.COM_FIELD_LIST:
		for p := c.next(r); !c.ends(p); p = c.next(r) {
		}
		return r
	}
	for c.result(r) {
	}
	return r
}

// result reads one result and reports whether another one follows.
func (c *rawClient) result(r *reply) bool {
	p := c.next(r)
	switch p[0] {
	case 0xff:
		return false
	case 0x00:
		return c.okStatus(p)&mysql.SERVER_MORE_RESULTS_EXISTS != 0
	case 0xfe:
		return false
	case 0xfb:
		c.write(r.seqs[len(r.seqs)-1]+1, []byte("1\tone\n2\ttwo\n"))
		c.write(r.seqs[len(r.seqs)-1]+2, nil)
		return true
	}
	n, _, size := mysql.LengthEncodedInt(p)
	follows := c.caps>>36&1 == 0 || p[size] == 1
	if follows {
		for range n {
			c.next(r)
		}
	}
	if cached := c.caps>>36&1 != 0; cached && c.executes && follows {
		// Whether the metadata is repeated is the server's choice: the hidden columns may change it.
		p[size] = 0
		r.packets, r.seqs = r.packets[:len(r.packets)-int(n)], r.seqs[:len(r.seqs)-int(n)]
		r.shift += byte(n)
	}
	if c.caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		if p := c.next(r); c.cursor && binary.LittleEndian.Uint16(p[3:])&mysql.SERVER_STATUS_CURSOR_EXISTS != 0 {
			return false
		}
	}
	from := len(r.packets)
	defer func() { r.rows = append(r.rows, [2]int{from, len(r.packets) - 1}) }()
	for continued := false; ; continued = len(p) == 1<<24-1 {
		if p = c.next(r); !continued && c.ends(p) {
			break
		}
	}
	if p[0] == 0xff {
		return false
	}
	if c.caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
		return binary.LittleEndian.Uint16(p[3:])&mysql.SERVER_MORE_RESULTS_EXISTS != 0
	}
	return c.okStatus(p)&mysql.SERVER_MORE_RESULTS_EXISTS != 0
}

func (c *rawClient) ends(p []byte) bool {
	return p[0] == 0xff || p[0] == 0xfe && (len(p) < 9 || c.caps&uint64(mysql.CLIENT_DEPRECATE_EOF) != 0 && len(p) < 1<<24-1)
}

func (c *rawClient) okStatus(p []byte) uint16 {
	_, _, n := mysql.LengthEncodedInt(p[1:])
	_, _, m := mysql.LengthEncodedInt(p[1+n:])
	return binary.LittleEndian.Uint16(p[1+n+m:])
}

func (c *rawClient) okWarnings(p []byte) uint16 {
	_, _, n := mysql.LengthEncodedInt(p[1:])
	_, _, m := mysql.LengthEncodedInt(p[1+n:])
	return binary.LittleEndian.Uint16(p[1+n+m+2:])
}

func (c *rawClient) prepared(r *reply) {
	p := c.next(r)
	if p[0] == 0xff {
		return
	}
	for _, n := range []uint16{binary.LittleEndian.Uint16(p[7:]), binary.LittleEndian.Uint16(p[5:])} {
		for range n {
			c.next(r)
		}
		if n > 0 && c.caps&uint64(mysql.CLIENT_DEPRECATE_EOF) == 0 {
			c.next(r)
		}
	}
}

// executeArg makes the argument of COM_STMT_EXECUTE with the parameters as text or NULL.
func executeArg(id uint32, flags byte, params []any) []byte {
	b := binary.LittleEndian.AppendUint32(nil, id)
	b = append(b, flags, 1, 0, 0, 0)
	if len(params) == 0 {
		return b
	}
	nulls := make([]byte, (len(params)+7)/8)
	var types, values []byte
	for i, p := range params {
		switch v := p.(type) {
		case nil:
			nulls[i/8] |= 1 << (i % 8)
			types = append(types, mysql.MYSQL_TYPE_NULL, 0)
		case int:
			types = append(types, mysql.MYSQL_TYPE_LONGLONG, 0)
			values = binary.LittleEndian.AppendUint64(values, uint64(v))
		case string:
			types = append(types, mysql.MYSQL_TYPE_VAR_STRING, 0)
			values = append(values, mysql.PutLengthEncodedString([]byte(v))...)
		}
	}
	b = append(append(b, nulls...), 1)
	return append(append(b, types...), values...)
}
