package mysqlwire_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	driver "github.com/go-sql-driver/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
)

// rest reads what comes until the connection ends, and says how it ends.
func (c *rawClient) rest() string {
	b, err := io.ReadAll(c.r)
	if err == nil {
		return fmt.Sprintf("%q, then the end", b)
	}
	var reset interface{ Timeout() bool }
	if errors.As(err, &reset) && reset.Timeout() {
		return fmt.Sprintf("%q, then nothing", b)
	}
	return fmt.Sprintf("%q, then %s", b, err.Error()[strings.LastIndex(err.Error(), ": ")+2:])
}

// TestLostSessions ends sessions in the ways in which a server does: each must look as it does directly, to the last byte.
func TestLostSessions(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY, v INT)", "INSERT INTO t VALUES (1,1)")
	root := dialRaw(t, d.As(d.Server.User), baseCaps)
	kill := func(c *rawClient, what string) { root.query(fmt.Sprint("KILL ", what, " ", c.thread)) }
	ends := map[string]func(*rawClient) string{
		"killed while idle": func(c *rawClient) string {
			kill(c, "CONNECTION")
			return c.rest()
		},
		"killed in a transaction, and asks again": func(c *rawClient) string {
			c.query("BEGIN")
			c.query("UPDATE t SET v = v + 1")
			kill(c, "CONNECTION")
			root.awaitThread(c.thread, "")
			c.write(0, []byte("\x03SELECT 1"))
			b, _ := io.ReadAll(c.r) // what is sent to a connection that has ended may be answered by a reset or by nothing
			return fmt.Sprintf("%q", b)
		},
		"killed while it waits": func(c *rawClient) string {
			c.write(0, []byte("\x03SELECT SLEEP(100), v FROM t"))
			root.awaitThread(c.thread, "SLEEP(100)")
			kill(c, "CONNECTION")
			return c.rest()
		},
		"its query killed": func(c *rawClient) string {
			c.write(0, []byte("\x03UPDATE t SET v = SLEEP(100)"))
			root.awaitThread(c.thread, "SLEEP(100)")
			kill(c, "QUERY")
			return c.answer(3).String() + c.query("SHOW WARNINGS").String() + c.query("SELECT 1").String()
		},
		"kills itself": func(c *rawClient) string {
			c.write(0, []byte("\x03KILL CONNECTION_ID()"))
			return c.rest()
		},
		"silent for too long": func(c *rawClient) string {
			c.query("SET wait_timeout = 1")
			return c.rest()
		},
		"runs into a limit": func(c *rawClient) string {
			return c.query("SET STATEMENT max_statement_time = 0.01 FOR SELECT SLEEP(100), v FROM t").String() + c.query("SHOW WARNINGS").String()
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			want := end(dialRaw(t, d, baseCaps))
			t.Logf("directly: %s", want)
			for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
				through := startProxy(t, d, proxy.Config{Mode: mode}, observer(&sink{}))
				if diff := cmp.Diff(want, end(dialRaw(t, through, baseCaps))); diff != "" {
					t.Errorf("direct (-), mode %s (+):\n%s", mode, diff)
				}
			}
		})
	}
}

// TestTooBigCommands sends commands that the server refuses for their size, after which it ends the connection: the client gets the error as it does directly.
func TestTooBigCommands(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
	root := dialRaw(t, d.As(d.Server.User), baseCaps)
	size := rowsOf(t, root.query("SELECT @@max_allowed_packet"))[0]
	defer root.query("SET GLOBAL max_allowed_packet = " + size)
	root.query("SET GLOBAL max_allowed_packet = 1048576")
	play := func(at testserver.Database, cmd byte, text string) string {
		c := dialRaw(t, at, baseCaps)
		_, _ = c.conn.Write(framed(append([]byte{cmd}, text...))) // the server may end the connection meanwhile
		b, _ := io.ReadAll(c.r)
		return fmt.Sprintf("%q", b)
	}
	for name, size := range map[string]int{"a little": 1<<20 + 1<<16, "a megabyte": 2 << 20, "a frame": 1 << 24, "more frames": 40 << 20} {
		for _, command := range []struct {
			cmd  byte
			text string
		}{{mysql.COM_QUERY, "SELECT '"}, {mysql.COM_QUERY, "INSERT INTO t VALUES (1, '"}, {mysql.COM_STMT_PREPARE, "SELECT '"}} {
			text := command.text + strings.Repeat("x", size)
			want := play(d, command.cmd, text)
			for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
				through := startProxy(t, d, proxy.Config{Mode: mode}, observer(&sink{}))
				if got := play(through, command.cmd, text); got != want {
					t.Errorf("%s too big, command %d, %.10s, mode %s: got %s, directly %s", name, command.cmd, command.text, mode, got, want)
				}
			}
		}
	}
}

// framed is a command as packets.
func framed(command []byte) (out []byte) {
	const most = 1<<24 - 1
	for seq := byte(0); ; seq++ {
		n := min(len(command), most)
		out = append(append(out, byte(n), byte(n>>8), byte(n>>16), seq), command[:n]...)
		if command = command[n:]; n < most {
			return out
		}
	}
}

// TestCommandsThatJustFit sends the longest commands that the server takes, which are longer with what is added.
func TestCommandsThatJustFit(t *testing.T) {
	d := testserver.Family(t).Database(t)
	root := dialRaw(t, d.As(d.Server.User), baseCaps)
	size := rowsOf(t, root.query("SELECT @@max_allowed_packet"))[0]
	defer root.query("SET GLOBAL max_allowed_packet = " + size)
	const most = 1 << 18
	root.query(fmt.Sprint("SET GLOBAL max_allowed_packet = ", most))
	play := func(at testserver.Database) (out []string) {
		d.Exec(t, "DROP TABLE IF EXISTS t")
		c := dialRaw(t, at, baseCaps)
		c.query("CREATE TABLE t (id INT PRIMARY KEY, v LONGTEXT)")
		for _, text := range []string{"INSERT INTO t VALUES (1, '%s')", "UPDATE t SET v = '%s' WHERE id = 1", "SELECT id FROM t WHERE v <> '%s'", "SELECT id FROM t", "DELETE FROM t WHERE v <> '%s'"} {
			for _, less := range []int{1, 100, 5000} {
				text := strings.ReplaceAll(text, "%s", strings.Repeat("x", most-less-len(text)+1))
				out = append(out, c.query(text).String())
				out = append(out, fmt.Sprint(c.do(mysql.COM_STMT_PREPARE, []byte(text)).packets[0][0]))
			}
		}
		return out
	}
	want := play(d)
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		o := observer(&sink{})
		o.Instrument = mysqlwire.InstrumentAuto
		if diff := cmp.Diff(want, play(startProxy(t, d, proxy.Config{Mode: mode}, o))); diff != "" {
			t.Errorf("direct (-), mode %s (+):\n%s", mode, diff)
		}
	}
}

// TestRefusedSessions has the server refuse sessions: what the client and a driver get must be what they get directly.
func TestRefusedSessions(t *testing.T) {
	d := testserver.Family(t).Database(t)
	root := dialRaw(t, d.As(d.Server.User), baseCaps)
	rows := rowsOf(t, root.query("SELECT @@max_connections"))
	defer root.query("SET GLOBAL max_connections = " + rows[0])
	through := map[string]testserver.Database{"directly": d}
	for _, mode := range []proxy.Mode{proxy.Pass, proxy.Observe} {
		through[string(mode)] = startProxy(t, d, proxy.Config{Mode: mode}, observer(&sink{}))
	}
	refusal := func(at testserver.Database) string {
		cfg := at.MySQLConfig()
		connector, err := driver.NewConnector(cfg)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := connector.Connect(context.Background())
		if err == nil {
			conn.Close()
		}
		out, _ := mariadb(at, "-e", "SELECT 1")
		return fmt.Sprintf("%v; %s", err, strings.ReplaceAll(out, fmt.Sprint(at.Port), "PORT"))
	}
	check := func(name string, change func(testserver.Database) testserver.Database) {
		want := refusal(change(d))
		t.Logf("%s directly: %s", name, want)
		for mode, at := range through {
			if diff := cmp.Diff(want, refusal(change(at))); diff != "" {
				t.Errorf("%s: direct (-), %s (+):\n%s", name, mode, diff)
			}
		}
	}
	check("a wrong password", func(at testserver.Database) testserver.Database { at.Password = "wrong"; return at })
	check("no such database", func(at testserver.Database) testserver.Database { at.Name = "nothing"; return at })
	check("no such account", func(at testserver.Database) testserver.Database { at.User = "nothing"; return at })
	root.query("SET GLOBAL max_connections = 10")
	for range 10 {
		dialRaw(t, d.As(d.Server.User), baseCaps)
	}
	check("too many connections", func(at testserver.Database) testserver.Database { return at })
}
