package mysqlwire_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// modes runs a test in both modes.
func modes(t *testing.T, test func(t *testing.T, d, through testserver.Database)) {
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		t.Run(string(mode), func(t *testing.T) {
			d := testserver.Family(t).Database(t)
			test(t, d, startProxy(t, d, proxy.Config{Mode: mode}, observer(&sink{})))
		})
	}
}

func TestChangeUserAndReset(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		for _, caps := range []uint64{baseCaps, baseCaps | uint64(mysql.CLIENT_COMPRESS)} {
			c := dialRaw(t, through, caps)
			c.query("DROP TABLE IF EXISTS t")
			c.query("CREATE TABLE t (id INT PRIMARY KEY, v INT)")
			for _, cmd := range []byte{mysql.COM_CHANGE_USER, 0x1f} {
				c.query("SET @x = 1")
				c.query("BEGIN")
				c.query("INSERT INTO t VALUES (1, 1)")
				if cmd == 0x1f {
					c.do(cmd, nil)
				} else {
					c.changeUser(d)
				}
				expectRows(t, c, "SELECT @x IS NULL, COUNT(*) FROM t", "1|0")
				expectRows(t, c, "SELECT DATABASE(), USER() LIKE 'app@%'", d.Name+"|1")
			}
		}
	})
}

func (c *rawClient) changeUser(d testserver.Database) {
	c.t.Helper()
	b := append([]byte{mysql.COM_CHANGE_USER}, d.User...)
	b = append(b, 0, 0)
	b = append(append(b, d.Name...), 0, 45, 0)
	if testserver.IsMySQL() {
		c.write(0, append(b, "caching_sha2_password\x00"...))
		seq, p := c.packet()
		_, salt, _ := strings.Cut(string(p[1:]), "\x00")
		c.write(seq+1, mysql.CalcCachingSha2Password([]byte(salt)[:20], []byte(d.Password)))
		c.finishLogin(d, []byte(salt)[:20])
		return
	}
	c.write(0, append(b, "mysql_native_password\x00"...))
	seq, p := c.packet()
	if p[0] == 0xfe { // a new challenge
		_, salt, _ := strings.Cut(string(p[1:]), "\x00")
		c.write(seq+1, mysql.CalcNativePassword([]byte(salt)[:20], []byte(d.Password)))
		_, p = c.packet()
	}
	if p[0] != 0 {
		c.t.Fatalf("change user: got %q, want OK", p)
	}
}

func TestKill(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		c, other := dialRaw(t, through, baseCaps), dialRaw(t, through, baseCaps)
		expectRows(t, c, "SELECT CONNECTION_ID()", fmt.Sprint(c.thread))
		c.write(0, []byte("\x03SELECT SLEEP(30)"))
		other.awaitThread(c.thread, "SLEEP")
		other.query(fmt.Sprint("KILL QUERY ", c.thread))
		if r := c.answer(mysql.COM_QUERY); r.last()[0] == 0xff && binary.LittleEndian.Uint16(r.last()[1:]) != 1317 {
			t.Errorf("killed query: got %s", r)
		}
		expectRows(t, c, "SELECT 1", "1")
		other.query(fmt.Sprint("KILL ", c.thread))
		if _, p, err := c.tryPacket(); err == nil && (p[0] != 0xff || binary.LittleEndian.Uint16(p[1:]) != 1927) {
			t.Errorf("killed connection: got %q, want the end or error 1927", p)
		}
		expectRows(t, other, "SELECT 1", "1")
	})
}

// awaitThread asks the server until the thread executes a text, or (text empty) is gone.
func (c *rawClient) awaitThread(thread uint32, text string) {
	c.t.Helper()
	sql := fmt.Sprintf("SELECT COUNT(*), SLEEP(0.01) FROM information_schema.PROCESSLIST WHERE ID = %d AND IFNULL(INFO, '') LIKE '%%%s%%'", thread, text)
	want := "1|0"
	if text == "" {
		want = "0|0"
	}
	for end := time.Now().Add(patience); time.Now().Before(end); {
		if rowsOf(c.t, c.query(sql))[0] == want {
			return
		}
	}
	c.t.Fatalf("thread %d: %q did not come", thread, text)
}

func TestClientVanishes(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		direct := dialRaw(t, d, baseCaps)
		direct.query("CREATE TABLE t (id INT PRIMARY KEY)")
		c := dialRaw(t, through, baseCaps)
		c.query("BEGIN")
		c.query("INSERT INTO t VALUES (1)")
		c.conn.Close()
		direct.awaitThread(c.thread, "")
		if p := direct.query("INSERT INTO t VALUES (1)").last(); p[0] != 0 {
			t.Errorf("after the client left: got %q, want OK", p)
		}
	})
}

// TestDrain: at the end of the process an idle session ends at once, with what its last statement wrote in the history; another one finishes its transaction.
func TestDrain(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY)")
	c := proxy.Config{
		Listen: proxy.Address{Network: "tcp", Addr: "127.0.0.1:0"}, Upstream: proxy.Address{Network: "tcp", Addr: d.Address()},
		Protocol: proxy.MySQL, Mode: proxy.Observe, Timeouts: proxy.Timeouts{Grace: time.Minute},
	}
	k := &sink{}
	o := observer(k)
	p, err := proxy.Listen(t.Context(), zerolog.Nop(), func(proxy.Config) (proxy.Handler, error) { return mysqlwire.New(o), nil }, c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Serve(ctx) }()
	through := d.At("127.0.0.1", p.Addrs()[0].(*net.TCPAddr).Port)
	idle, busy := dialRaw(t, through, baseCaps), dialRaw(t, through, baseCaps)
	const update = "UPDATE noted SET v = 2 WHERE id = 1"
	for _, sql := range []string{"CREATE TABLE noted (id INT PRIMARY KEY, v INT)", "INSERT INTO noted VALUES (1,1)", update} {
		if p := idle.query(sql).last(); p[0] == 0xff {
			t.Fatalf("%s: %q", sql, p)
		}
	}
	busy.query("BEGIN")
	busy.query("INSERT INTO t VALUES (1)")
	cancel()
	if _, p := idle.packet(); binary.LittleEndian.Uint16(p[1:]) != 1053 {
		t.Errorf("idle session: got %q, want error 1053", p)
	}
	busy.query("INSERT INTO t VALUES (2)")
	if p := busy.query("COMMIT").last(); p[0] != 0 {
		t.Errorf("COMMIT while draining: got %q, want OK", p)
	}
	if _, p := busy.packet(); binary.LittleEndian.Uint16(p[1:]) != 1053 {
		t.Errorf("after COMMIT: got %q, want error 1053", p)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if !slices.ContainsFunc(k.all(), func(ev *history.Event) bool { return ev.SQL == update && len(ev.Accesses) == 1 }) {
		t.Error("what the idle session wrote is not in the history")
	}
	expectRows(t, dialRaw(t, d, baseCaps), "SELECT COUNT(*) FROM t", "2")
}

func TestGarbageAfterLogin(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))
	for name, bytes := range map[string]string{
		"wrong sequence":  "\x01\x00\x00\x07\x0e",
		"continued frame": "\x01\x00\x00\x01\x03",
	} {
		var answers [2]string
		for i, at := range []testserver.Database{d, through} {
			c := dialRaw(t, at, baseCaps)
			if _, err := c.conn.Write([]byte(bytes)); err != nil {
				t.Fatal(err)
			}
			number, p := c.packet()
			answers[i] = fmt.Sprintf("%d: %q", number, p)
			if _, err := c.r.ReadByte(); err == nil {
				t.Errorf("%s: the connection stays open", name)
			}
		}
		if answers[0] != answers[1] || !strings.Contains(answers[0], "08S01") {
			t.Errorf("%s: %s through the proxy, want the server's %s", name, answers[1], answers[0])
		}
	}
}

// TestShortCommands sends commands that end before what they must name: the server answers, and the session goes on.
func TestShortCommands(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))
	var answers [2]string
	for i, at := range []testserver.Database{d, through} {
		c := dialRaw(t, at, baseCaps)
		for _, cmd := range []byte{mysql.COM_STMT_EXECUTE, mysql.COM_STMT_RESET, mysql.COM_STMT_EXECUTE} {
			answers[i] += c.do(cmd, []byte{1, 0}).String()
		}
		answers[i] += c.query("SELECT 1").String()
	}
	if diff := cmp.Diff(answers[0], answers[1]); diff != "" {
		t.Errorf("direct (-), through the proxy (+):\n%s", diff)
	}
}

func TestGarbageBeforeLogin(t *testing.T) {
	d := testserver.Family(t).Database(t)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))
	for name, bytes := range map[string]string{
		"HTTP":           "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"huge length":    "\xff\xff\xff\x01\x00",
		"wrong sequence": "\x20\x00\x00\x05" + strings.Repeat("\xff", 32),
		"cut user":       "\x21\x00\x00\x01\x0d\xa2\x0a\x00" + strings.Repeat("\x00", 28) + "x",
	} {
		conn, err := net.Dial("tcp", through.Address())
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Write([]byte(bytes)); err != nil {
			t.Fatal(err)
		}
		all, err := io.ReadAll(conn)
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(string(all), "#08S01Got packets out of order") && err == nil {
			t.Errorf("%s: got %q, want an error of the protocol", name, all)
		}
		conn.Close()
	}
	expectRows(t, dialRaw(t, through, baseCaps), "SELECT 1", "1")
}

func TestLongPackets(t *testing.T) {
	d := testserver.Family(t).Database(t)
	root := d.As(d.Server.User)
	root.Exec(t, "SET GLOBAL max_allowed_packet = 128*1024*1024")
	const size = 20 << 20
	text := strings.Repeat("0123456789abcdef", size/16)
	through := startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{}))
	c := dialRaw(t, through, baseCaps)
	c.query("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT, w INT)")
	if p := c.query("INSERT INTO t VALUES (1, '" + text + "', 7)").last(); p[0] != 0 {
		t.Fatalf("INSERT: got %q, want OK", p)
	}
	r := c.do(mysql.COM_STMT_PREPARE, []byte("INSERT INTO t VALUES (?, ?, 8)"))
	id := binary.LittleEndian.Uint32(r.packets[0][1:])
	if p := c.do(mysql.COM_STMT_EXECUTE, executeArg(id, 0, []any{2, text})).last(); p[0] != 0 {
		t.Fatalf("execute: got %q, want OK", p)
	}
	long := binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_SEND_LONG_DATA}, id)
	long = append(long, 1, 0)
	for range 4 {
		c.write(0, append(long[:7:7], text[:size/4]...))
	}
	arg := executeArg(id, 0, []any{3, ""})
	if p := c.do(mysql.COM_STMT_EXECUTE, arg[:len(arg)-1]).last(); p[0] != 0 {
		t.Fatalf("execute with long data: got %q, want OK", p)
	}
	expectRows(t, c, "SELECT COUNT(DISTINCT v), MIN(LENGTH(v)), MAX(LENGTH(v)) FROM t", fmt.Sprintf("1|%d|%d", size, size))

	direct := dialRaw(t, d, baseCaps)
	for _, c := range []*rawClient{direct, c} {
		c.query("SET long_query_time = 3600") // or an answer that takes 10 s on a busy machine has the flag SERVER_QUERY_WAS_SLOW
	}
	for _, sql := range []string{"SELECT * FROM t", "SELECT v FROM t WHERE id = 1", "SELECT id, REPEAT(v, 3), w FROM t WHERE id = 2",
		fmt.Sprintf("SELECT LEFT(v, %d) FROM t WHERE id = 1", 1<<24-1-4), fmt.Sprintf("SELECT LEFT(v, %d) FROM t WHERE id = 1", 1<<24-1-5)} {
		for _, binary := range []bool{false, true} {
			want, got := direct.sum(sql, binary), c.sum(sql, binary)
			if got != want {
				t.Errorf("%s, binary %v: got %s, want %s", sql, binary, got, want)
			}
		}
	}
}

// TestNumbersBehindLongCommands: the answer to a command of several frames goes on with their numbers, as drivers check.
func TestNumbersBehindLongCommands(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.As(d.Server.User).Exec(t, "SET GLOBAL max_allowed_packet = 128*1024*1024")
	direct, c := dialRaw(t, d, baseCaps), dialRaw(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), baseCaps)
	text := strings.Repeat("x", 2<<24)
	for _, n := range []int{1000, 1<<24 - 1 - len("\x03SELECT LENGTH('')"), 2 << 24} { // a frame, one that is full and an empty one, and three
		for _, prepared := range []bool{false, true} {
			sql := "SELECT LENGTH('" + text[:n] + "')"
			if want, got := direct.sum(sql, prepared), c.sum(sql, prepared); got != want {
				t.Errorf("a text of %d bytes, prepared %v: got %s, want %s", len(sql), prepared, got, want)
			}
		}
		arg := []any{text[:n]}
		var seqs [2]string
		for i, c := range []*rawClient{direct, c} {
			r := c.do(mysql.COM_STMT_PREPARE, []byte("SELECT LENGTH(?)"))
			seqs[i] = fmt.Sprint(c.do(mysql.COM_STMT_EXECUTE, executeArg(binary.LittleEndian.Uint32(r.packets[0][1:]), 0, arg)).seqs)
		}
		if seqs[0] != seqs[1] {
			t.Errorf("an argument of %d bytes: numbers %s, want %s", n, seqs[1], seqs[0])
		}
	}
}

// TestProcedureWithCursor: the server's status tells of the cursor of a procedure while its results come.
func TestProcedureWithCursor(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE a (id INT PRIMARY KEY)", "INSERT INTO a VALUES (1), (2)",
		"CREATE PROCEDURE closes() BEGIN DECLARE c CURSOR FOR SELECT id FROM a; OPEN c; CLOSE c; SELECT 1; END",
		"CREATE PROCEDURE leaves() BEGIN DECLARE c CURSOR FOR SELECT id FROM a; OPEN c; SELECT 1; SELECT id FROM a; END",
		"CREATE PROCEDURE none() BEGIN SELECT 1; END")
	var steps []step
	for _, sql := range []string{"CALL closes()", "SELECT 2", "CALL leaves()", "SELECT id FROM a", "CALL none()"} {
		steps = append(steps, step{cmd: mysql.COM_QUERY, sql: sql}, step{sql: sql, params: []any{}})
		if !testserver.IsMySQL() || !strings.HasPrefix(sql, "CALL") {
			steps = append(steps, step{sql: sql, params: []any{}, cursor: true})
		}
	}
	for name, caps := range map[string]uint64{"plain": baseCaps, "deprecate EOF": baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF)} {
		t.Run(name, func(t *testing.T) {
			want := runSteps(t, d, caps, steps)
			got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), caps, steps)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("direct (-), through the proxy (+):\n%s", diff)
			}
		})
	}
}

// sum executes a query and gives the hash of all that came back.
func (c *rawClient) sum(sql string, prepared bool) string {
	c.t.Helper()
	var r *reply
	if prepared {
		r = c.do(mysql.COM_STMT_PREPARE, []byte(sql))
		id := binary.LittleEndian.Uint32(r.packets[0][1:])
		c.write(0, append([]byte{mysql.COM_STMT_EXECUTE}, executeArg(id, 0, nil)...))
		r = c.answer(mysql.COM_STMT_EXECUTE)
	} else {
		r = c.query(sql)
	}
	h := sha256.New()
	n := 0
	for i, p := range r.packets {
		fmt.Fprintf(h, "%d %d ", r.seqs[i], len(p))
		h.Write(p)
		n += len(p)
	}
	return fmt.Sprintf("%d frames, %d bytes, %x", len(r.packets), n, h.Sum(nil)[:8])
}

// memoryMB is how much TestLargeResultNeedsLittleMemory passes: some in `make test`, a gibibyte in `make soak`.
var memoryMB = flag.Int("memory", 128, "MB of rows that TestLargeResultNeedsLittleMemory passes through the proxy")

func TestLargeResultNeedsLittleMemory(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		c := dialRaw(t, through, baseCaps)
		const size = 1_000_000
		rows := *memoryMB
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		from := fmt.Sprintf("seq_1_to_%d", rows)
		if testserver.IsMySQL() {
			from = fmt.Sprintf("(SELECT 1 FROM information_schema.COLLATIONS a, information_schema.COLLATIONS b LIMIT %d) s", rows)
		}
		c.write(0, fmt.Appendf(nil, "\x03SELECT REPEAT('x', %d) FROM %s", size, from))
		total, err := io.CopyN(io.Discard, c.r, int64(rows)*size)
		if err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if grown := int64(after.Sys) - int64(before.Sys); grown > 16<<20 {
			t.Errorf("%d bytes of result: memory has grown by %d bytes", total, grown)
		}
		c.conn.Close()
	})
}

func TestSlowWriter(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		c := dialRaw(t, through, baseCaps)
		for _, b := range []byte("\x09\x00\x00\x00\x03SELECT 1\x01\x00\x00\x00\x0e") {
			if _, err := c.conn.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if got := rowsOf(t, c.answer(mysql.COM_QUERY)); len(got) != 1 || got[0] != "1" {
			t.Errorf("got %q, want 1", got)
		}
		if p := c.answer(mysql.COM_PING).last(); p[0] != 0 {
			t.Errorf("ping: got %q, want OK", p)
		}
	})
}

func TestPipelining(t *testing.T) {
	modes(t, func(t *testing.T, d, through testserver.Database) {
		c := dialRaw(t, through, baseCaps)
		var all []byte
		for i := range 200 {
			sql := fmt.Sprintf("\x03SELECT %d", i)
			all = append(append(all, byte(len(sql)), 0, 0, 0), sql...)
		}
		if _, err := c.conn.Write(all); err != nil {
			t.Fatal(err)
		}
		for i := range 200 {
			if got := rowsOf(t, c.answer(mysql.COM_QUERY)); len(got) != 1 || got[0] != fmt.Sprint(i) {
				t.Fatalf("answer %d: got %q", i, got)
			}
		}
	})
}
