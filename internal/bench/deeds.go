package main

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/backends/engine"
)

// deed is one way to abuse a server.
type deed struct {
	name  string
	early bool // before the login
	do    func(a *attacker)
}

// attacker is one client. What it meets does not matter: only what others notice does.
type attacker struct {
	hostile
	ctx    context.Context
	server *engine.Server
	port   int
	rand   *rand.Rand
	conn   net.Conn
	failed bool
}

// attack does one deed, for attackTime at most.
func (h hostile) attack(ctx context.Context, s *engine.Server, port int, r *rand.Rand, d deed) {
	ctx, cancel := context.WithTimeout(ctx, attackTime)
	defer cancel()
	a := &attacker{hostile: h, ctx: ctx, server: s, port: port, rand: r}
	var err error
	if d.early {
		a.conn, err = a.dial()
	} else {
		a.conn, err = h.login(ctx, s, port)
	}
	if err != nil {
		return
	}
	defer a.conn.Close()
	if tcp, ok := a.conn.(*net.TCPConn); ok && r.IntN(2) == 0 {
		_ = tcp.SetLinger(0) // it ends with a reset
	}
	defer context.AfterFunc(ctx, func() { _ = a.conn.SetDeadline(time.Unix(1, 0)) })()
	d.do(a)
}

func (a *attacker) dial() (net.Conn, error) {
	return (&net.Dialer{}).DialContext(a.ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", a.port))
}

// send sends a text.
func (a *attacker) send(text string) {
	if !a.failed {
		_, err := io.WriteString(a.conn, text)
		a.failed = err != nil
	}
}

// flood sends a text over and over, some n bytes.
func (a *attacker) flood(text string, n int) {
	for text = strings.Repeat(text, 1+(1<<16)/len(text)); n > 0 && !a.failed; n -= len(text) {
		a.send(text)
	}
}

// many sends texts that differ.
func (a *attacker) many(text func(i int) string) {
	var batch strings.Builder
	for i := 0; !a.failed; {
		for batch.Reset(); batch.Len() < 1<<15; i++ {
			batch.WriteString(text(i))
		}
		a.send(batch.String())
	}
}

// drain reads what comes, at the same time: the server is not held up.
func (a *attacker) drain() { go io.Copy(io.Discard, a.conn) }

func (a *attacker) noise() string {
	noise := make([]byte, 1+a.rand.IntN(1<<16))
	for i := range noise {
		noise[i] = byte(a.rand.Uint32())
	}
	return string(noise)
}

// maybeRead reads what is left, in half of all cases.
func (a *attacker) maybeRead() {
	if a.rand.IntN(2) == 0 {
		_, _ = io.Copy(io.Discard, a.conn)
	}
}

// stallTLS asks for TLS by a text of the protocol in many connections, and stops somewhere in it.
func (a *attacker) stallTLS(ask string) {
	for range manySessions {
		c, err := a.dial()
		if err != nil {
			continue
		}
		defer c.Close()
		defer context.AfterFunc(a.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
		how, noise := a.rand.IntN(4), a.noise()
		go func() {
			_, _ = io.WriteString(c, ask)
			_, _ = c.Read(make([]byte, 4096)) // the server's greeting, or that it agrees
			switch how {
			case 0:
				_, _ = io.WriteString(c, noise)
			case 1: // the beginning of a first message of 16 KiB
				_, _ = io.WriteString(c, "\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03")
			case 2: // it says nothing once TLS is there
				_ = tls.Client(c, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(a.ctx)
			}
		}()
	}
	<-a.ctx.Done()
}

// common are the deeds that both protocols have.
func (h hostile) common() []deed {
	return slices.Concat(h.connections(), h.texts(), h.statements(), h.crowds(), h.odd())
}

// crowds are deeds of many sessions each, of which one alone would do no harm.
func (h hostile) crowds() []deed {
	q := h.query
	crowd := func(each func(a *attacker) string) func(*attacker) {
		return func(a *attacker) {
			for range manySessions {
				c, err := h.login(a.ctx, a.server, a.port)
				if err != nil {
					continue
				}
				defer c.Close()
				defer context.AfterFunc(a.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
				go io.WriteString(c, each(a))
			}
			<-a.ctx.Done()
		}
	}
	long := strings.Repeat("x", 1<<20-100)
	return []deed{
		{"long texts without end, in many sessions", false, crowd(func(*attacker) string {
			text := q("SELECT '" + long + "'")
			return text[:len(text)-1]
		})},
		{"long texts that take long, in many sessions", false, crowd(func(*attacker) string { return q("SELECT " + h.sleep + ", '" + long + "'") })},
		{"long rows in many sessions, not read", false, crowd(func(a *attacker) string {
			n := []int{900_000, 4 << 20}[a.rand.IntN(2)]
			return strings.Repeat(q(fmt.Sprintf("SELECT repeat('x', %d), %s FROM %s WHERE %[2]s < 10", n, h.key, h.big)), 3)
		})},
		{"many rows in many sessions, not read", false, crowd(func(a *attacker) string {
			return q(fmt.Sprintf("SELECT * FROM %s WHERE %s < 9900", h.big, h.key)) + strings.Repeat(q("SELECT repeat('x', 1000000)"), 8)
		})},
		{"many rows in transactions of many sessions", false, crowd(func(a *attacker) string {
			return q("BEGIN") + q(fmt.Sprintf("UPDATE %s SET %s = %[2]s WHERE %s = %d", h.big, h.value, h.key, a.rand.IntN(9000))) + strings.Repeat(q(fmt.Sprintf("SELECT * FROM %s WHERE %s < 9900", h.big, h.key)), 10)
		})},
		{"long errors in many sessions, not read", false, crowd(func(*attacker) string { return q("SELECT CAST('" + long[:200_000] + "' AS int)") })},
		{"pipelines in many sessions, not read", false, crowd(func(a *attacker) string { return strings.Repeat(q("SELECT repeat('x', 100000)"), 30_000) })},
		{"lists of many values in many sessions", false, crowd(func(a *attacker) string {
			var all strings.Builder
			for range 40 {
				all.WriteString(q("SELECT " + h.key + " FROM " + h.table + " WHERE " + h.key + " IN (1" + strings.Repeat(fmt.Sprint(",", a.rand.IntN(100)), 9500) + ")"))
			}
			return all.String()
		})},
		{"the half of many sessions that sends is closed", false, crowd(func(a *attacker) string { return strings.Repeat(q("SELECT * FROM "+h.big), 10) })},
	}
}

// queries are many statements that differ, whose answers are read.
func (h hostile) queries(text func(i int) string) func(*attacker) {
	return func(a *attacker) {
		a.drain()
		a.many(func(i int) string { return h.query(text(i)) })
	}
}

// connections are deeds for which it does not matter what a statement says.
func (h hostile) connections() []deed {
	q := h.query
	return []deed{
		{"half a login", true, func(a *attacker) {
			a.send("\x00\x00\x00\x10\x00\x03\x00\x00user\x00u\x00\x00"[:a.rand.IntN(17)])
			if a.rand.IntN(2) == 0 {
				a.send(a.noise())
			}
			<-a.ctx.Done()
		}},
		{"noise", false, func(a *attacker) {
			a.send(a.noise())
			a.maybeRead()
		}},
		{"a lock and a full pipeline", false, func(a *attacker) { // the row stays locked if nobody notices that the client is gone
			a.flood(h.lock, 1)
			a.flood(q("SELECT 'x'"), 7<<20)
		}},
		{"a long answer, little read", false, func(a *attacker) {
			a.send(q("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 1000) SELECT a.n, b.n, repeat('x', 100) FROM t a, t b"))
			_, _ = io.CopyN(io.Discard, a.conn, a.rand.Int64N(1<<20))
		}},
		{"a deep text", false, func(a *attacker) {
			one := []string{"+1", "||1", " IS NULL", "::int", "(", "[1]", " COLLATE x", " UNION SELECT 1", " AND 1", "-(", " BETWEEN 1 AND 2", ",(SELECT 1", ".a", " NOT NULL"}
			a.send(q("SELECT 1" + strings.Repeat(one[a.rand.IntN(len(one))], a.rand.IntN(100_000))))
			a.maybeRead()
		}},
		{"more announced than comes", false, func(a *attacker) {
			a.send(h.frame(byte(a.rand.Uint32()), strings.Repeat("x", 1<<20))[:a.rand.IntN(1<<20)])
			a.maybeRead()
		}},
		{"a flood", false, func(a *attacker) {
			a.flood(h.floods[a.rand.IntN(len(h.floods))], attackBytes)
			a.maybeRead()
		}},
		{"a slow login", true, func(a *attacker) { // byte by byte
			go func() {
				for !a.failed && a.ctx.Err() == nil {
					a.send("\x00")
					time.Sleep(hostilePoll)
				}
			}()
			<-a.ctx.Done()
		}},
		{"many slow logins", true, func(a *attacker) {
			for range 50 {
				if c, err := a.dial(); err == nil {
					defer c.Close()
				}
			}
			<-a.ctx.Done()
		}},
		{"come and go", true, func(a *attacker) {
			for a.ctx.Err() == nil {
				if c, err := a.dial(); err == nil {
					c.Close()
				}
			}
		}},
	}
}

// texts are single statements that are long.
func (h hostile) texts() []deed {
	long := func(text func(n int) string) func(*attacker) {
		return func(a *attacker) {
			a.send(h.query(text(1 << (10 + a.rand.IntN(17)))))
			a.maybeRead()
		}
	}
	return []deed{
		{"a text of many megabytes", false, long(func(n int) string { return "SELECT '" + strings.Repeat("x", n) + "'" })},
		{"a list of many values", false, long(func(n int) string {
			return "SELECT " + h.key + " FROM " + h.table + " WHERE " + h.key + " IN (1" + strings.Repeat(",2", min(n, 1<<21)/2) + ")"
		})},
		{"a condition of many parts", false, long(func(n int) string {
			return "SELECT " + h.key + " FROM " + h.table + " WHERE " + h.key + "=1" + strings.Repeat(" OR "+h.key+"=2", min(n, 1<<20)/16)
		})},
		{"many statements in a text", false, long(func(n int) string { return "SELECT 1" + strings.Repeat(";SELECT 1", min(n, 1<<21)/9) })},
		{"a join of many tables", false, long(func(n int) string {
			var from strings.Builder
			for i := range min(n/32, 100) {
				fmt.Fprintf(&from, ", %s t%d", h.table, i)
			}
			return "SELECT * FROM " + h.table + " t" + from.String() + " WHERE 1=0"
		})},
		{"tables that double", false, long(func(n int) string {
			with := "WITH c0 AS (SELECT * FROM " + h.table + ")"
			for i := range min(n/1024, 9) {
				with += fmt.Sprintf(", c%d AS (SELECT * FROM c%d a, c%d b)", i+1, i, i)
			}
			return with + " SELECT * FROM c" + fmt.Sprint(min(n/1024, 9))
		})},
		{"subqueries in subqueries", false, long(func(n int) string {
			n = min(n/64, 300)
			return strings.Repeat("SELECT * FROM (", n) + "SELECT * FROM " + h.table + strings.Repeat(") x", n)
		})},
	}
}

// statements are deeds of many statements.
func (h hostile) statements() []deed {
	q, queries := h.query, h.queries
	return []deed{
		{"texts that differ", false, queries(func(i int) string {
			return fmt.Sprintf("SELECT %s, %d FROM %s WHERE %s = %d", h.key, i, h.table, h.key, i)
		})},
		{"savepoints", false, func(a *attacker) {
			a.send(q("BEGIN"))
			queries(func(i int) string { return fmt.Sprintf("SAVEPOINT s%d", i) })(a)
		}},
		{"conditions of an open transaction", false, func(a *attacker) {
			a.send(q("BEGIN ISOLATION LEVEL SERIALIZABLE"))
			a.send(q("BEGIN"))
			queries(func(i int) string {
				return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s > %d", h.table, h.value, 100_000_000+i)
			})(a)
		}},
		{"long conditions of an open transaction", false, func(a *attacker) {
			a.send(q("BEGIN"))
			queries(func(i int) string {
				return fmt.Sprintf("SELECT count(*) FROM %s WHERE %s = -%d%s", h.table, h.value, i, strings.Repeat(fmt.Sprintf(" OR %s = -%d", h.value, i), 200))
			})(a)
		}},
		{"temporary tables", false, queries(func(i int) string {
			return []string{"CREATE TEMPORARY TABLE x (a int PRIMARY KEY)", "INSERT INTO x VALUES (1)", "SELECT * FROM x", "DROP TABLE x"}[i%4]
		})},
		{"temporary tables that stay", false, queries(func(i int) string { return fmt.Sprintf("CREATE TEMPORARY TABLE x%d (a int)", i) })},
		{"whole tables", false, queries(func(i int) string { return "SELECT * FROM " + h.big })},
		{"a transaction of long texts", false, func(a *attacker) {
			a.send(q("BEGIN"))
			queries(func(i int) string {
				return fmt.Sprintf("SELECT %s FROM %s WHERE %s = %d /* %s */", h.key, h.table, h.key, i%10, strings.Repeat("x", 100_000))
			})(a)
		}},
		{"settings", false, queries(h.setting)},
		{"tags that differ", false, queries(func(i int) string {
			return fmt.Sprintf("SELECT %s FROM %s WHERE %s = 1 /*traceparent='00-%032x-%016x-01',action='%d'*/", h.key, h.table, h.key, i+1, i+1, i)
		})},
	}
}

func postgresDeeds(frame func(kind byte, body string) string, query func(string) string) []deed {
	short := func(n int) string { return string(binary.BigEndian.AppendUint16(nil, uint16(n))) }
	word := func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	parse := func(name, sql string) string { return frame('P', name+"\x00"+sql+"\x00\x00\x00") }
	bind := func(portal, name string) string {
		return frame('B', portal+"\x00"+name+"\x00"+strings.Repeat("\x00", 6))
	}
	execute := func(portal string, rows int) string { return frame('E', portal+"\x00"+word(rows)) }
	sync := frame('S', "")
	drained := func(text func(i int) string) func(*attacker) {
		return func(a *attacker) {
			a.drain()
			a.many(text)
		}
	}
	const point = "SELECT bid, bbalance FROM pgbench_branches WHERE bid = $1"
	return []deed{
		{"startup messages of all kinds", true, func(a *attacker) {
			begin := word([]int{0, 8, 9, 10_000, 1 << 30, -1}[a.rand.IntN(6)]) + word([]int{80877103, 80877104, 80877102, 196608, 196610, 3 << 16, 1 << 16, 99 << 16}[a.rand.IntN(8)])
			a.drain()
			a.flood(begin, 1<<20)
			a.flood("user\x00postgres\x00", 1<<20)
			<-a.ctx.Done()
		}},
		{"replication", true, func(a *attacker) {
			body := word(196608) + "user\x00" + a.server.User + "\x00replication\x00" + "true\x00\x00"
			a.send(word(len(body)+4) + body)
			a.flood(frame('p', "x\x00"), 1<<20)
		}},
		{"TLS that stalls", true, func(a *attacker) { a.stallTLS(word(8) + word(80877103)) }},
		{"copying both ways", true, func(a *attacker) { // the log of the server, which is not read
			c, err := pgconn.Connect(a.ctx, fmt.Sprintf("postgres://%s:%s@127.0.0.1:%d/postgres?sslmode=disable&replication=true", a.server.User, a.server.Password, a.port))
			if err != nil {
				return
			}
			raw, err := c.Hijack()
			if err != nil {
				return
			}
			defer raw.Conn.Close()
			defer context.AfterFunc(a.ctx, func() { _ = raw.Conn.SetDeadline(time.Unix(1, 0)) })()
			one := *a
			one.conn = raw.Conn
			one.send(query("START_REPLICATION 0/1000000"))
			one.flood([]string{frame('d', "r"+strings.Repeat("\x00", 33)), frame('d', strings.Repeat("x", 1<<16)), frame('c', ""), sync, query("IDENTIFY_SYSTEM")}[a.rand.IntN(5)], attackBytes)
			<-a.ctx.Done()
		}},
		{"cancel requests", true, func(a *attacker) {
			for a.ctx.Err() == nil {
				if c, err := a.dial(); err == nil {
					_, _ = io.WriteString(c, word(16)+word(80877102)+word(a.rand.IntN(1<<16))+word(a.rand.Int()))
					c.Close()
				}
			}
		}},
		{"statements that stay", false, drained(func(i int) string { return parse(fmt.Sprint("s", i), point+fmt.Sprint(" AND ", i, " = ", i)) })},
		{"portals that stay", false, func(a *attacker) {
			a.drain()
			a.send(query("BEGIN") + parse("s", "SELECT bid FROM pgbench_branches"))
			a.many(func(i int) string { return bind(fmt.Sprint("p", i), "s") + execute(fmt.Sprint("p", i), 1) })
		}},
		{"many parameters", false, drained(func(i int) string {
			n := []int{1000, 32767, 65535}[i%3]
			return frame('P', "\x00SELECT bid FROM pgbench_branches WHERE bid = $1\x00"+short(n)+strings.Repeat(word(23), n)) +
				frame('B', "\x00\x00"+short(n)+strings.Repeat(short(i%3), n)+short(n)+strings.Repeat(word(-1), n)+short(n)+strings.Repeat(short(1), n)) +
				frame('D', "P\x00") + execute("", 0) + sync
		})},
		{"malformed binds", false, drained(func(i int) string {
			return parse("", point) + frame('B', "\x00\x00"+[]string{short(-1), short(1), short(0) + short(1) + word(-2), short(0) + short(1) + word(1<<30), short(0) + short(1) + word(1) + "1" + short(99), ""}[i%6]) + execute("", 0) + sync
		})},
		{"rows one by one", false, func(a *attacker) {
			a.drain()
			a.send(query("BEGIN") + parse("", "SELECT * FROM pgbench_accounts") + bind("", ""))
			a.many(func(int) string { return execute("", 1) + frame('H', "") })
		}},
		{"copying in and dying", false, func(a *attacker) {
			a.send(query("CREATE TEMP TABLE c (a text)") + query("COPY c FROM STDIN"))
			a.flood(frame('d', strings.Repeat("x", 1000)+"\n"), 1<<22)
		}},
		{"copying in, and all else", false, drained(func(i int) string {
			return []string{query("COPY pgbench_branches (bid) FROM STDIN"), frame('d', "x"), parse("", point), bind("", ""), execute("", 0), frame('f', "no\x00"), sync, query("COPY pgbench_branches TO STDOUT")}[i%8]
		})},
		{"copying out, little read", false, func(a *attacker) {
			a.send(query("COPY pgbench_accounts TO STDOUT") + query("COPY (SELECT * FROM pgbench_accounts a, pgbench_branches) TO STDOUT"))
			_, _ = io.CopyN(io.Discard, a.conn, a.rand.Int64N(1<<20))
			<-a.ctx.Done()
		}},
	}
}

// postgresStatements are deeds of statements alone.
func postgresStatements(query func(string) string) []deed {
	return []deed{
		{"notices", false, func(a *attacker) {
			a.drain()
			a.send(query("DO $$BEGIN FOR i IN 1..10000000 LOOP RAISE NOTICE '% %', i, repeat('x', 1000); END LOOP; END$$"))
			<-a.ctx.Done()
		}},
		{"notifications", false, func(a *attacker) {
			a.drain()
			a.send(query("LISTEN x"))
			a.many(func(i int) string { return query(fmt.Sprintf("NOTIFY x, '%d%s'", i, strings.Repeat("x", 7000))) })
		}},
		{"cursors that stay", false, func(a *attacker) {
			a.drain()
			a.send(query("BEGIN"))
			a.many(func(i int) string {
				return query(fmt.Sprintf("DECLARE c%d CURSOR WITH HOLD FOR SELECT * FROM pgbench_branches", i)) + query(fmt.Sprintf("FETCH 1 FROM c%d", i))
			})
		}},
		{"schemas", false, func(a *attacker) {
			a.drain()
			a.many(func(i int) string {
				return query([]string{"CREATE SCHEMA IF NOT EXISTS hostile", "CREATE TABLE IF NOT EXISTS hostile.t (a int)", "CREATE OR REPLACE VIEW hostile.v AS SELECT * FROM hostile.t", "ALTER TABLE hostile.t ADD COLUMN b int", "ALTER TABLE hostile.t DROP COLUMN b", "DROP SCHEMA hostile CASCADE"}[i%6])
			})
		}},
		{"views that double", false, func(a *attacker) {
			a.drain()
			for i := range 12 {
				from := "pgbench_branches"
				if i > 0 {
					from = fmt.Sprintf("pg_temp.v%d", i-1)
				}
				a.send(query(fmt.Sprintf("CREATE TEMP VIEW v%d AS SELECT a.bid, b.bbalance FROM %s a, %s b", i, from, from)))
				a.send(query(fmt.Sprintf("SELECT * FROM v%d", i)))
			}
			<-a.ctx.Done()
		}},
		{"a table of many rows is written", false, func(a *attacker) {
			a.drain()
			a.send(query("BEGIN"))
			a.many(func(i int) string { return query("UPDATE pgbench_accounts SET abalance = abalance") })
		}},
		{"a row is written over and over", false, func(a *attacker) {
			a.drain()
			a.send(query("CREATE TEMP TABLE hot (a int); INSERT INTO hot VALUES (1)") + query("BEGIN"))
			a.many(func(i int) string { return query("UPDATE hot SET a = a + 1") })
		}},
	}
}

func mariadbDeeds(frame func(kind byte, body string) string) []deed {
	const query, initDB, prepare, execute, long, closing, fetch, changeUser, reset, bulk, infile = 3, 2, 0x16, 0x17, 0x18, 0x19, 0x1c, 0x11, 0x1f, 0xfa, 0xfb
	four := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	drained := func(text func(i int) string) func(*attacker) {
		return func(a *attacker) {
			a.drain()
			a.many(text)
		}
	}
	const point = "SELECT id, k FROM sbtest.sbtest1 WHERE id = ?"
	greeted := func(a *attacker, capabilities int, rest string) {
		_, _ = a.conn.Read(make([]byte, 4096))
		body := four(capabilities) + four(1<<24) + "\x2d" + strings.Repeat("\x00", 23) + rest
		head := four(len(body))
		a.send(head[:3] + "\x01" + body)
	}
	return []deed{
		{"logins with all capabilities", true, func(a *attacker) {
			greeted(a, []int{-1, 1<<5 | 0x8a200, 1<<26 | 0x8a200, 0, 1<<11 | 0x8a200, 1<<31 | 0x8a200}[a.rand.IntN(6)], "root\x00\xff"+a.noise())
			a.flood(frame(query, "SELECT 1"), 1<<20)
			a.maybeRead()
		}},
		{"TLS that stalls", true, func(a *attacker) {
			body := four(0x8aa00) + four(1<<24) + "\x2d" + strings.Repeat("\x00", 23)
			a.stallTLS(four(len(body))[:3] + "\x01" + body)
		}},
		{"logins with many attributes", true, func(a *attacker) {
			greeted(a, 0x18a200, a.server.User+"\x00\x00mysql_native_password\x00\xfd\xff\xff\xff"+strings.Repeat("\x01a\x01b", 1<<20))
			<-a.ctx.Done()
		}},
		{"long data without end", false, func(a *attacker) {
			a.drain()
			a.send(frame(prepare, "SELECT ?"))
			a.flood(frame(long, four(1)+"\x00\x00"+strings.Repeat("x", 1<<20)), 1<<28)
			a.send(frame(execute, four(1)+"\x00"+four(1)+"\x00\x01\xfc\x00"))
			<-a.ctx.Done()
		}},
		{"long data of each parameter", false, drained(func(i int) string {
			return frame(prepare, "SELECT ?,?,?") + frame(long, four(i)+four(i % 5)[:2]+"x") + frame(closing, four(i-1))
		})},
		{"statements that stay", false, drained(func(i int) string { return frame(prepare, point+fmt.Sprint(" AND ", i, " = ", i)) })},
		{"cursors that stay", false, drained(func(i int) string {
			return frame(prepare, point) + frame(execute, four(i)+"\x01"+four(1)+"\x00\x01\x08\x00\x01\x00\x00\x00\x00\x00\x00\x00") + frame(fetch, four(i)+four(1))
		})},
		{"many parameters", false, drained(func(i int) string {
			return frame(prepare, "SELECT id FROM sbtest.sbtest1 WHERE id IN (?"+strings.Repeat(",?", []int{100, 65534, 65535}[i%3])+")") + frame(execute, four(i)+"\x00"+four(1)+strings.Repeat("\xff", 8192)+"\x01"+strings.Repeat("\x08\x00", 65535))
		})},
		{"malformed executes", false, drained(func(i int) string {
			return frame(prepare, point) + frame(execute, four(i)+[]string{"", "\x00", "\x00" + four(1), "\x00" + four(1) + "\x00", "\x00" + four(1) + "\x00\x01", "\x00" + four(1) + "\x00\x01\xfd\x00\xfe\xff\xff\xff\xff\xff\xff\xff\xff", "\x80" + four(-1) + "\x00\x01\x00\x00\xfd"}[i%7])
		})},
		{"bulks", false, drained(func(i int) string {
			return frame(prepare, "INSERT INTO sbtest.sbtest1 (k) VALUES (?)") + frame(bulk, four(i)+"\x80\x00\x03\x00"+strings.Repeat("\x00\x01\x00\x00\x00", 1000)) + frame(query, "ROLLBACK")
		})},
		{"other users", false, drained(func(i int) string {
			return frame(changeUser, []string{"root\x00\x00\x00", "nobody\x00\x14" + strings.Repeat("x", 20) + "sbtest\x00", "", "x", strings.Repeat("x", 100_000)}[i%5])
		})},
		{"resets", false, drained(func(i int) string {
			return frame(query, "BEGIN") + frame(query, point[:34]) + frame(reset, "") + frame(initDB, "sbtest")
		})},
		{"a file without end", false, func(a *attacker) {
			a.drain()
			a.send(frame(query, "CREATE TEMPORARY TABLE sbtest.f (a TEXT)") + frame(query, "LOAD DATA LOCAL INFILE 'x' INTO TABLE sbtest.f"))
			a.flood(four(1 << 16)[:3]+"\x02"+strings.Repeat("x\n", 1<<15), 1<<27)
			<-a.ctx.Done()
		}},
		{"a file, and all else", false, drained(func(i int) string {
			return []string{frame(query, "LOAD DATA LOCAL INFILE 'x' INTO TABLE sbtest.sbtest1"), frame(query, "SELECT 1"), four(0), frame(prepare, point), frame(infile, "x")}[i%5]
		})},
		{"sequence numbers of all kinds", false, func(a *attacker) {
			a.drain()
			a.many(func(i int) string { return four(9)[:3] + string([]byte{byte(i)}) + "\x03SELECT 1" })
		}},
		{"packets of 16 MiB", false, func(a *attacker) {
			a.drain()
			for !a.failed {
				a.send("\xff\xff\xff\x00\x03SELECT '" + strings.Repeat("x", 1<<24-1-9))
				a.send(four(2)[:3] + "\x01x'")
			}
		}},
		{"procedures that return much", false, func(a *attacker) {
			a.drain()
			a.send(frame(query, "BEGIN NOT ATOMIC DECLARE i INT DEFAULT 0; WHILE i < 1000000 DO SELECT i, k FROM sbtest.sbtest1 WHERE id = 1; SET i = i + 1; END WHILE; END"))
			<-a.ctx.Done()
		}},
		{"schemas", false, drained(func(i int) string {
			return frame(query, []string{"CREATE DATABASE IF NOT EXISTS hostile", "CREATE TABLE IF NOT EXISTS hostile.t (a INT PRIMARY KEY)", "ALTER TABLE hostile.t ADD COLUMN b INT", "SELECT * FROM hostile.t", "DROP DATABASE hostile"}[i%5])
		})},
		{"a table of many rows is written", false, func(a *attacker) {
			a.drain()
			a.send(frame(query, "BEGIN"))
			a.many(func(i int) string { return frame(query, "UPDATE sbtest.sbtest2 SET k = k + 1") })
		}},
		{"a row is written over and over", false, func(a *attacker) {
			a.drain()
			a.send(frame(query, "CREATE TEMPORARY TABLE sbtest.hot (a INT PRIMARY KEY)") + frame(query, "INSERT INTO sbtest.hot VALUES (1)") + frame(query, "BEGIN"))
			a.many(func(i int) string { return frame(query, "UPDATE sbtest.hot SET a = a + 1") })
		}},
	}
}
