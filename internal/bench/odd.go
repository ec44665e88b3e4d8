package main

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/client"
	"github.com/go-mysql-org/go-mysql/mysql"
)

// odd are deeds of messages whose form is odd, in both protocols: they come slowly, are not text, or have names as long as texts.
func (h hostile) odd() []deed {
	q := h.query
	return []deed{
		{"statements byte by byte, in many sessions", false, func(a *attacker) {
			text := q("SELECT " + h.key + " FROM " + h.table + " WHERE " + h.key + " = 1")
			for range manySessions {
				c, err := h.login(a.ctx, a.server, a.port)
				if err != nil {
					continue
				}
				defer c.Close()
				defer context.AfterFunc(a.ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })()
				go io.Copy(io.Discard, c)
				go func() {
					for i := 0; a.ctx.Err() == nil; i++ {
						if _, err := io.WriteString(c, text[i%len(text):i%len(text)+1]); err != nil {
							return
						}
						time.Sleep(hostilePoll / 10)
					}
				}()
			}
			<-a.ctx.Done()
		}},
		{"texts that are no text", false, func(a *attacker) {
			a.drain()
			a.many(func(i int) string {
				random := make([]byte, i%20)
				for i := range random {
					random[i] = byte(a.rand.Uint32())
				}
				bad := string(random)
				return q([]string{"SELECT '" + bad + "'", "SELECT " + bad + " FROM " + h.table, "SELECT 1 /* " + bad + " */", "\x00" + bad, "UPDATE " + h.table + " SET " + h.value + " = " + h.value + " WHERE " + h.key + " = '" + bad + "'",
					"SELECT 1 AS `" + bad + "`", "SELECT 1 AS \"" + bad + "\"", "SELECT " + h.key + " FROM " + h.table + " WHERE " + h.key + " = 1 -- " + bad, "\xef\xbb\xbfSELECT 1"}[i%9])
			})
		}},
		{"encodings that change", false, func(a *attacker) {
			a.drain()
			a.many(func(i int) string {
				set := []string{"SET NAMES 'latin1'", "SET NAMES 'utf8'", "SET NAMES 'gbk'", "SET NAMES 'sjis'", "SET NAMES 'big5'", "SET NAMES 'nothing'"}[i%6]
				return q(set) + q("SELECT '\x81\x5c' AS a, "+h.key+" FROM "+h.table+" WHERE "+h.key+" = 1")
			})
		}},
		{"long names", false, func(a *attacker) {
			a.drain()
			long := strings.Repeat("x", 200_000)
			a.many(func(i int) string {
				return q([]string{"SAVEPOINT " + long, "PREPARE p" + long + " AS SELECT 1", "SELECT 1 AS " + long, "SELECT " + h.key + " FROM " + h.table + " " + long + " WHERE " + long + "." + h.key + " = 1", "DEALLOCATE PREPARE " + long, "EXECUTE p" + long}[i%6])
			})
		}},
		{"many columns, not read", false, func(a *attacker) {
			list := h.key + strings.Repeat(","+h.key, 1500)
			a.many(func(i int) string { return q("SELECT " + list + " FROM " + h.big) })
		}},
	}
}

// oddPostgres are such deeds on PostgreSQL alone.
func oddPostgres(frame func(kind byte, body string) string, query func(string) string) []deed {
	word := func(n int) string { return string(binary.BigEndian.AppendUint32(nil, uint32(n))) }
	ask := func(code int) string { return word(8) + word(code) }
	const ssl, gss = 80877103, 80877104
	return []deed{
		{"encryption asked for again and again", true, func(a *attacker) {
			for a.ctx.Err() == nil {
				c, err := a.dial()
				if err != nil {
					continue
				}
				text := []string{ask(gss) + ask(ssl) + ask(gss), strings.Repeat(ask(ssl), 50), strings.Repeat(ask(gss), 50), ask(ssl) + word(8) + word(196608), ask(gss) + "\x16\x03\x01\x40\x00", ask(ssl) + query("SELECT 1")}[a.rand.IntN(6)]
				_, _ = io.WriteString(c, text)
				_ = c.SetReadDeadline(time.Now().Add(hostilePoll))
				_, _ = c.Read(make([]byte, 16))
				c.Close()
			}
		}},
		{"many channels, not read", false, func(a *attacker) {
			a.many(func(i int) string {
				return query(fmt.Sprintf("LISTEN c%d; NOTIFY c%d, '%s'", i, i, strings.Repeat("x", 1000)))
			})
		}},
		{"long names of statements and portals", false, func(a *attacker) {
			a.drain()
			long := strings.Repeat("x", 100_000)
			a.many(func(i int) string {
				name := fmt.Sprint(long, i)
				return frame('P', name+"\x00SELECT bid FROM pgbench_branches\x00\x00\x00") + frame('B', name+"\x00"+name+strings.Repeat("\x00", 7)) + frame('D', "P"+name+"\x00") + frame('E', name+"\x00"+word(1)) + frame('C', "Pno"+name+"\x00") + frame('S', "")
			})
		}},
		{"settings that statements depend on", false, func(a *attacker) {
			a.drain()
			a.many(func(i int) string {
				return query([]string{"SET search_path = public, pg_temp", "SET standard_conforming_strings = off", "SELECT bid FROM pgbench_branches WHERE bid = 1", "SET TimeZone = 'Asia/Tokyo'", "BEGIN; SET LOCAL search_path = ''", "UPDATE public.pgbench_branches SET bbalance = bbalance WHERE bid = 2", "DISCARD ALL", "RESET ALL"}[i%8])
			})
		}},
	}
}

// oddMariaDB are such deeds on MariaDB alone.
func oddMariaDB(frame func(kind byte, body string) string) []deed {
	const query, changeUser = 3, 0x11
	three := func(n int) string { return string(binary.LittleEndian.AppendUint32(nil, uint32(n)))[:3] }
	deflate := func(text string) string {
		var b bytes.Buffer
		w := zlib.NewWriter(&b)
		_, _ = io.WriteString(w, text)
		_ = w.Close()
		return b.String()
	}
	bomb := deflate(strings.Repeat("x", 64<<20))
	small := deflate(frame(query, "SELECT 1"))
	return []deed{
		{"compressed packets that lie", false, func(a *attacker) {
			c, err := client.ConnectWithContext(a.ctx, fmt.Sprintf("127.0.0.1:%d", a.port), a.server.User, a.server.Password, "", attackTime, func(c *client.Conn) error {
				return c.SetCapability(mysql.CLIENT_COMPRESS)
			})
			if err != nil {
				return
			}
			one := *a
			one.conn = c.Conn.Conn
			defer one.conn.Close()
			defer context.AfterFunc(a.ctx, func() { _ = one.conn.SetDeadline(time.Unix(1, 0)) })()
			one.drain()
			packet := func(body string, says int) string { return three(len(body)) + "\x00" + three(says) + body }
			one.flood([]string{packet(bomb, 1<<24-1), packet(bomb, 1), packet(small, 1<<24-1), packet(small, 13), packet(a.noise(), 1<<20), packet(deflate("\xff\xff\xff\x00"+strings.Repeat("x", 1<<24-10)), 1<<24-6), packet(frame(query, "SELECT 1"), 0)}[a.rand.IntN(7)], attackBytes)
			<-a.ctx.Done()
		}},
		{"changes of the user that stall", false, func(a *attacker) { // the server asks for another proof, which never comes
			if a.rand.IntN(2) == 0 {
				a.send(frame(changeUser, a.server.User+"\x00\x00sbtest\x00\x2d\x00nothing\x00"))
				<-a.ctx.Done()
				return
			}
			a.drain()
			a.many(func(int) string {
				return frame(changeUser, a.server.User+"\x00\x00sbtest\x00\x2d\x00nothing\x00") + frame(query, "SELECT 1")
			})
		}},
		{"warnings without end", false, func(a *attacker) {
			a.drain()
			a.send(frame(query, "SET max_error_count = 65535"))
			a.many(func(i int) string {
				return frame(query, "SELECT CAST(CONCAT('x', k) AS INT) FROM sbtest.sbtest2") + frame(query, "SHOW WARNINGS") + frame(query, "INSERT IGNORE INTO sbtest.sbtest1 (id) VALUES (1)")
			})
		}},
	}
}
