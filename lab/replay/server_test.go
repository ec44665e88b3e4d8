package replay

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/backends/engine"
	"wirecheck/internal/testserver"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// place is a database in which tests replay.
type place struct {
	t      *testing.T
	config Config
}

func eachEngine(t *testing.T, run func(t *testing.T, p *place)) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := testserver.Postgres
			describe := Describe(postgres.Describe)
			if name == "mariadb" {
				s = testserver.MariaDB
				describe = mysql.New(mysql.MariaDB).Describe
			}
			server := s(t)
			d, err := backends.ByName(name)
			if err != nil {
				t.Fatal(err)
			}
			target := server.Server.Target()
			target.Database = server.Database(t).Name
			run(t, &place{t, Config{Backend: d, Target: target, Side: target, Describe: describe, Order: OrderCommit}})
		})
	}
}

func (p *place) do(sql string) [][]answer.Value {
	p.t.Helper()
	c, err := p.config.Backend.Connect(p.t.Context(), p.config.Side)
	if err != nil {
		p.t.Fatal(err)
	}
	rows, err := engine.Query(p.t.Context(), c, sql)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		p.t.Fatal(err)
	}
	return rows
}

func (p *place) run(list []said) *Result {
	p.t.Helper()
	open := traceOf(p.t, p.config.Backend.Name, list)
	v, err := Look(open)
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 5*time.Minute)
	defer cancel()
	r, err := Run(ctx, p.config, open, v)
	if err != nil {
		p.t.Fatal(err)
	}
	return r
}

func TestRunWaits(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		p.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
		p.do("INSERT INTO t VALUES (1, 0), (2, 0)")
		count := func(n int64) []trace.Result { return []trace.Result{{Affected: n, Count: trace.Unknown}} }
		r := p.run([]said{
			{session: 1, sql: "BEGIN", start: 1, end: 2},
			{session: 1, sql: "UPDATE t SET n = n * 10 + 1 WHERE id = 1", start: 3, end: 4, results: count(1)},
			{session: 2, sql: "UPDATE t SET n = n * 10 + 2 WHERE id = 1", start: 5, end: 20, results: count(1)},
			{session: 1, sql: "COMMIT", start: 10, end: 12},
			{session: 2, sql: "UPDATE t SET n = 7 WHERE id = 3", start: 30, end: 31, results: count(1)}, // it was there in the trace
		})
		if r.Waited != 1 || r.Deviated != 0 || r.Statements != 5 || len(r.Deadlocks) != 0 {
			t.Errorf("got %+v, want one wait and nothing else", r)
		}
		if d := r.Divergence; d.Compared != 5 || d.Same != 4 || d.Kinds[DivergedAffected] != 1 || d.First[0].Want != "1 row" || d.First[0].Got != "0 rows" {
			t.Errorf("divergence %+v", d)
		}
		if got := string(p.do("SELECT n FROM t WHERE id = 1")[0][0]); got != "12" {
			t.Errorf("n is %s, want 12: first session 1, then session 2", got)
		}
	})
}

// stuckSoon is for tests in which nothing but the replay itself ends a state in which everything waits.
const stuckSoon = 500 * time.Millisecond

// TestRunContradiction replays a trace whose order cannot be: it says that a session committed what another one's lock does not allow.
func TestRunContradiction(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		list := []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN", start: 3, end: 4},
			{session: 1, sql: "UPDATE t SET n = 1 WHERE id = 1", start: 5, end: 6},
			{session: 2, sql: "UPDATE t SET n = 2 WHERE id = 1", start: 7, end: 8},
			{session: 2, sql: "COMMIT", start: 9, end: 10},
			{session: 1, sql: "COMMIT", start: 11, end: 12},
		}
		p.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
		p.do("INSERT INTO t VALUES (1, 0), (2, 0)")
		p.config.Limits.Stuck = stuckSoon
		r := p.run(list)
		if r.Deviated != 1 || !strings.Contains(r.Deviations[0].Text, `sent before "COMMIT" of session 2`) || r.Waited != 1 {
			t.Errorf("got %+v, want one deviation: COMMIT of session 1 was sent before that of session 2", r.Deviations)
		}
		// The near miss: other rows, so nothing contradicts.
		list[3].sql = "UPDATE t SET n = 2 WHERE id = 2"
		if r := p.run(list); r.Deviated != 0 || r.Waited != 0 {
			t.Errorf("got %+v, want no deviation", r)
		}
	})
}

// TestRunLeftOpen replays a trace that ends while a transaction holds what another session wants.
func TestRunLeftOpen(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		p.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
		p.do("INSERT INTO t VALUES (1, 0), (2, 0)")
		p.config.Limits.Stuck = stuckSoon
		for _, order := range []Order{OrderCommit, OrderObject, OrderSession, OrderOff} {
			p.config.Order = order
			p.do("UPDATE t SET n = 0 WHERE id = 1")
			r := p.run([]said{
				{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 1, sql: "UPDATE t SET n = 1 WHERE id = 1", start: 3, end: 4},
				{session: 2, sql: "UPDATE t SET n = n + 5 WHERE id = 1", start: 50, end: 60},
			})
			if r.Left != 1 {
				t.Errorf("order %s: left open: %d, want 1", order, r.Left)
			}
			// In these orders either may come first; whoever waits is let go.
			if got := string(p.do("SELECT n FROM t WHERE id = 1")[0][0]); got != "5" {
				t.Errorf("order %s: n is %s, want 5: session 1 never committed", order, got)
			}
		}
	})
}

func TestRunDeadlock(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		p.do("CREATE TABLE t (id int PRIMARY KEY, n int)")
		p.do("INSERT INTO t VALUES (1, 0), (2, 0)")
		code, victim := "40P01", uint64(1)
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			code, victim = "1213", 2
		} else {
			p.config.Victims = true
			p.do("ALTER DATABASE " + p.config.Side.Database + " SET deadlock_timeout = '5s'")
		}
		list := []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN", start: 3, end: 4},
			{session: 1, sql: "UPDATE t SET n = 1 WHERE id = 1", start: 5, end: 6}, {session: 2, sql: "UPDATE t SET n = 2 WHERE id = 2", start: 7, end: 8},
			{session: 1, sql: "UPDATE t SET n = 3 WHERE id = 2", start: 10, end: 100}, {session: 2, sql: "UPDATE t SET n = 4 WHERE id = 1", start: 50, end: 101},
			{session: 1, sql: "COMMIT", start: 110, end: 111}, {session: 2, sql: "COMMIT", start: 120, end: 121},
		}
		list[3+victim].code = code
		if victim == 2 {
			list[4].end, list[5].end, list[5].after, list[7].before = 101, 100, answer.Idle, answer.Idle
		}
		r := p.run(list)
		if len(r.Deadlocks) != 1 || !r.Deadlocks[0].Captured || !r.Deadlocks[0].Replayed || r.Deadlocks[0].Session != victim {
			t.Errorf("deadlocks %+v, want one, of session %d, in both", r.Deadlocks, victim)
		}
		if r.Divergence.Count() != 0 {
			t.Errorf("divergence %+v", r.Divergence)
		}
		// The near miss: the same rows in the same order.
		p.do("UPDATE t SET n = 0")
		r = p.run([]said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN", start: 3, end: 4},
			{session: 1, sql: "UPDATE t SET n = 1 WHERE id = 1", start: 5, end: 6}, {session: 2, sql: "UPDATE t SET n = 2 WHERE id = 1", start: 7, end: 40},
			{session: 1, sql: "UPDATE t SET n = 3 WHERE id = 2", start: 10, end: 11}, {session: 1, sql: "COMMIT", start: 30, end: 31},
			{session: 2, sql: "UPDATE t SET n = 4 WHERE id = 2", start: 50, end: 51}, {session: 2, sql: "COMMIT", start: 60, end: 61},
		})
		if len(r.Deadlocks) != 0 || r.Waited != 1 || r.Deviated != 0 {
			t.Errorf("got %+v, want one wait and no deadlock", r)
		}
	})
}

func TestRunParameters(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		kinds := []string{"int4", "text", "bytea", "numeric"}
		sql, blob := "INSERT INTO t VALUES ($1, $2, $3, $4)", `\x00ff27`
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			kinds, sql, blob = []string{"LONGLONG", "VAR_STRING", "BLOB", "NEWDECIMAL"}, "INSERT INTO t VALUES (?, ?, ?, ?)", "\x00\xff'"
			p.do("CREATE TABLE t (id int PRIMARY KEY, s text, b blob, n decimal(10,2))")
		} else {
			p.do("CREATE TABLE t (id int PRIMARY KEY, s text, b bytea, n numeric(10,2))")
		}
		p.run([]said{{session: 1, sql: sql, start: 1, end: 2, params: []trace.Param{
			{Type: kinds[0], Value: "-5"}, {Type: kinds[1], Value: "O'Hara \\ \"q\"\nline"}, {Type: kinds[2], Value: blob}, {Type: kinds[3], Null: true},
		}}})
		row := p.do("SELECT id, s, b, n FROM t")[0]
		if string(row[0]) != "-5" || string(row[1]) != "O'Hara \\ \"q\"\nline" || string(row[2]) != blob || row[3] != nil {
			t.Errorf("got %q", row)
		}
	})
}

func TestRunConfined(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		p.config.Confined = true
		if p.config.Backend.Protocol == engine.ProtocolPostgres {
			return // a session there cannot leave its database
		}
		p.do("CREATE TABLE t (id int)")
		r := p.run([]said{
			{session: 1, sql: "USE mysql", start: 1, end: 2}, {session: 1, sql: "INSERT INTO t VALUES (1)", start: 3, end: 4},
			{session: 1, sql: "INSERT INTO other.t VALUES (1)", start: 5, end: 6}, {session: 1, sql: "DROP DATABASE other", start: 7, end: 8},
		})
		if r.Statements != 1 || len(r.Skipped) != 3 {
			t.Errorf("sent %d, skipped %v; want 1 sent and three reasons", r.Statements, r.Skipped)
		}
	})
}

const pgDump = `--
-- PostgreSQL database dump
--
\restrict abc
SET statement_timeout = 0;
SET transaction_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);

CREATE FUNCTION public.twice(n integer) RETURNS integer
    LANGUAGE plpgsql
    AS $$
BEGIN
  RETURN n * 2; -- it's; here
END;
$$;
CREATE TABLE public.item (
    id integer NOT NULL,
    name text,
    raw bytea
);
ALTER TABLE public.item OWNER TO wirecheck_nobody;
COPY public.item (id, name, raw) FROM stdin;
1	it's; a \\ back\tslash\nline	\\x00ff
2	\N	\N
\.

ALTER TABLE ONLY public.item
    ADD CONSTRAINT item_pkey PRIMARY KEY (id);
\unrestrict abc
`

const myDump = `-- MariaDB dump
/*M!999999\- enable the sandbox mode */ 
/*!40101 SET NAMES utf8mb4 */;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ ` + "`shop`" + `;
USE ` + "`shop`" + `;
DROP TABLE IF EXISTS item;
CREATE TABLE item (
  id int(11) NOT NULL,
  name text DEFAULT NULL,
  raw blob,
  PRIMARY KEY (id)
) ENGINE=InnoDB;
LOCK TABLES item WRITE;
INSERT INTO item VALUES
(1,'it\'s; a \\ back	slash
line',x'00ff'),
(2,NULL,NULL);
UNLOCK TABLES;
DELIMITER ;;
/*!50003 CREATE TRIGGER upper BEFORE INSERT ON item FOR EACH ROW BEGIN SET NEW.name = UPPER(NEW.name); END */;;
DELIMITER ;
`

func TestSnapshot(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		dump, d := pgDump, lex.PostgreSQL
		if p.config.Backend.Protocol == engine.ProtocolMySQL {
			dump, d = myDump, lex.MySQL
		}
		c, err := p.config.Backend.Connect(t.Context(), p.config.Side)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		restore := func(text string) error {
			path := filepath.Join(t.TempDir(), "dump.sql")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			s := Snapshot{Conn: c, Dialect: d, Confined: true}
			return s.Restore(t.Context(), path)
		}
		if err := restore(dump); err != nil {
			t.Fatal(err)
		}
		rows := p.do("SELECT id, name, raw FROM item ORDER BY id")
		raw := "\x00\xff"
		if d == lex.PostgreSQL {
			raw = `\x00ff`
		}
		if len(rows) != 2 || string(rows[0][1]) != "it's; a \\ back\tslash\nline" || string(rows[0][2]) != raw || rows[1][1] != nil {
			t.Errorf("rows %q", rows)
		}
		for _, bad := range []struct{ text, want string }{
			{"CREATE TABLE x (id int", "dump.sql:1: the dump ends in the middle"},
			{"SELECT 1;\nCREATE TABEL x (id int);\n", "dump.sql:2: the server refuses"},
			{"SELECT 1;\n\\copy x from y\n", "dump.sql:2:"},
		} {
			if err := restore(bad.text); err == nil || !strings.Contains(err.Error(), bad.want) {
				t.Errorf("%q: error %v, want %q", bad.text, err, bad.want)
			}
		}
	})
}
