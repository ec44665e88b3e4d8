package backends_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// testLoopback: the server listens on loopback only.
func testLoopback(t *testing.T, w *world) {
	sockets := socketsOf(t, w.server.PID())
	found := 0
	for _, file := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Logf("cannot look: %v", err)
			continue
		}
		for _, line := range strings.Split(string(b), "\n") {
			f := strings.Fields(line)
			if len(f) < 10 || f[3] != "0A" || !slices.Contains(sockets, f[9]) {
				continue
			}
			found++
			if !strings.HasPrefix(f[1], "0100007F:") {
				t.Errorf("it listens on %s", f[1])
			}
		}
	}
	if found == 0 {
		t.Error("no listening socket of the server was found: the test sees nothing")
	}
}

// socketsOf lists the inodes of a process's sockets.
func socketsOf(t *testing.T, pid int) []string {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	var inodes []string
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
			inodes = append(inodes, strings.Trim(strings.TrimPrefix(target, "socket:"), "[]"))
		}
	}
	return inodes
}

// values are expressions, what they must read as byte by byte, and the type.
var values = map[engine.Protocol][][3]string{
	engine.ProtocolPostgres: {
		{"1::int4", "1", "int4"}, {"12345678901234567890.123456789012345678900::numeric", "12345678901234567890.123456789012345678900", "numeric"},
		{"0.1::float8", "0.1", "float8"}, {"'a''b\\'::text", "a'b\\", "text"}, {"NULL::int8", "NULL", "int8"}, {"'\\xdeadbeef'::bytea", "\\xdeadbeef", "bytea"},
		{"'2024-02-30'::text::varchar(20)", "2024-02-30", "varchar"}, {"'2024-02-29 12:34:56.789'::timestamp", "2024-02-29 12:34:56.789", "timestamp"},
		{"ARRAY[1,NULL]", "{1,NULL}", "_int4"}, {"true", "t", "bool"}, {"'{\"a\": 1}'::jsonb", "{\"a\": 1}", "jsonb"}, {"'7'::xid8", "7", "xid8"}, {"''::text", "", "text"},
	},
	engine.ProtocolMySQL: {
		{"1", "1", ""}, {"12345678901234567890.123456789012345678900", "12345678901234567890.123456789012345678900", "decimal"},
		{"18446744073709551615", "18446744073709551615", "bigint unsigned"}, {"0.1e0", "0.1", "double"}, {"'a''b\\\\'", "a'b\\", "varchar"},
		{"NULL", "NULL", ""}, {"x'00ff27'", "\x00\xff'", "varbinary"}, {"CAST('2024-02-29 12:34:56.789' AS DATETIME(3))", "2024-02-29 12:34:56.789", "datetime"},
		{"CAST('-838:59:59' AS TIME)", "-838:59:59", "time"}, {"'\U0001F600'", "\U0001F600", "varchar"}, {"''", "", ""},
	},
	"": { // SQLite: each value has a type of its own, which its form tells
		{"1", "1", "integer"}, {"-9223372036854775808", "-9223372036854775808", "integer"}, {"1.0", "1.0", "real"}, {"0.1", "0.1", "real"}, {"9e999", "9e999", "real"},
		{"1e300", "1e+300", "real"}, {"'a''b\\'", "a'b\\", "text"}, {"'1'", "'1'", "text"}, {"'1.0e5'", "'1.0e5'", "text"}, {"'-'", "-", "text"}, {"X'31'", "X'31'", "blob"},
		{"X''", "X''", "blob"}, {"'X''31'''", "'X''31'''", "text"}, {"'''1'''", "'''1'''", "text"}, {"NULL", "NULL", ""}, {"'\U0001F600'", "\U0001F600", "text"}, {"''", "", "text"},
	},
}

func testAnswers(t *testing.T, w *world) {
	r := w.room(t)
	s := r.session()
	var exprs []string
	for _, v := range values[w.engine.Protocol] {
		exprs = append(exprs, v[0])
	}
	a := s.do("SELECT " + strings.Join(exprs, ", "))
	for i, v := range values[w.engine.Protocol] {
		got, column := a.Results[0].Rows[0][i], a.Results[0].Columns[i]
		if text := printRows([][]answer.Value{{got}}); text != v[1] || (v[1] == "NULL") != (got == nil) {
			t.Errorf("%s: got %q, want %q", v[0], text, v[1])
		}
		if v[2] != "" && column.Type != v[2] {
			t.Errorf("%s: type %q, want %q", v[0], column.Type, v[2])
		}
	}
	if !a.Results[0].Columns[1].Numeric || a.Results[0].Columns[len(exprs)-1].Numeric {
		t.Error("alignment: numbers stand right, text left")
	}
	t.Run("several statements, an error in the middle", func(t *testing.T) {
		s.do("BEGIN")
		a, _ := s.try("INSERT INTO t VALUES (30, 1, 1), (31, 1, 1); SELECT id FROM t WHERE id > 20 ORDER BY id; INSERT INTO t VALUES (30, 1, 1); SELECT 2")
		if len(a.Results) != 2 || a.Results[0].Affected != 2 || printRows(a.Results[1].Rows) != "30 31" || a.Err == nil || a.Before != answer.Open || !a.After.InTransaction() {
			t.Errorf("got %+v", a)
		}
		if want := choose(w, "INSERT 0 2", ""); a.Results[0].Tag != want {
			t.Errorf("tag %q, want %q", a.Results[0].Tag, want)
		}
		s.do("ROLLBACK")
	})
	t.Run("definitions that another session changed", func(t *testing.T) {
		other := r.session()
		s.do("CREATE TABLE changing (a int)")
		s.do("INSERT INTO changing VALUES (1)")
		if got := s.rows("SELECT * FROM changing"); got != "1" {
			t.Errorf("got %s", got)
		}
		other.do("DROP TABLE changing")
		other.do("CREATE TABLE changing (a int, b int)")
		other.do("INSERT INTO changing VALUES (1, 2)")
		if a := s.do("SELECT * FROM changing"); printRows(a.Results[0].Rows) != "1|2" || len(a.Results[0].Columns) != 2 {
			t.Errorf("got %+v", a.Results[0])
		}
		s.do("DROP TABLE changing")
	})
	t.Run("large", func(t *testing.T) {
		big := strings.Repeat("x", 1<<20)
		if got := s.rows("SELECT '" + big + "'"); got != big {
			t.Errorf("got %d bytes", len(got))
		}
	})
	t.Run("context", func(t *testing.T) {
		s := r.session()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := s.conn.Do(ctx, w.busy())
		if err == nil || time.Since(began) > limit {
			t.Errorf("got %v after %s", err, time.Since(began))
		}
		r.kill(s)
	})
	if _, ok := s.conn.(engine.Resetter); ok {
		t.Run("reset", func(t *testing.T) { testSessionReset(t, r) })
	}
	switch {
	case w.engine.Embedded: // no channel for either
	case w.postgres():
		testNotices(t, r)
	default:
		testWarnings(t, r)
	}
}

// testNetwork: connections go where they are told, and the server asks for a password.
func testNetwork(t *testing.T, w *world) {
	r := w.room(t)
	t.Run("dial", func(t *testing.T) {
		target, dialled := r.target, 0
		target.Host, target.Port = "nowhere.invalid", 1
		target.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialled++
			return (&net.Dialer{}).DialContext(ctx, "tcp", w.server.Address())
		}
		c, err := w.engine.Connect(t.Context(), target)
		if err != nil || dialled != 1 {
			t.Fatalf("dialled %d times, %v", dialled, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Run("refused", func(t *testing.T) {
		target := r.target
		target.Password = "wrong"
		if c, err := w.engine.Connect(t.Context(), target); err == nil {
			t.Errorf("a wrong password logs in: %v", c.Close())
		}
	})
}

// testNotices: notices, notifications and COPY in the order of their arrival (PostgreSQL).
func testNotices(t *testing.T, r *room) {
	s, other := r.session(), r.session()
	s.do("LISTEN c")
	other.do("NOTIFY c, 'hello'")
	a := s.do("DO $$BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END$$; SELECT 1")
	var got []string
	for _, n := range a.Notices {
		got = append(got, n.Severity+n.Message+n.Channel+n.Payload)
	}
	slices.Sort(got)
	if strings.Join(got, ",") != "NOTICEone,WARNINGtwo,chello" {
		t.Errorf("notices: %q", got)
	}
	if a := s.do("COPY t TO STDOUT"); len(a.Results[0].Rows) != 3 || string(a.Results[0].Rows[0][0]) != "1\t10\t1\n" || a.Results[0].Tag != "COPY 3" {
		t.Errorf("COPY TO: %+v", a)
	}
	if a, o := s.try("COPY t FROM STDIN"); o.Effect != answer.EffectStatement || a.Err.Code != "57014" {
		t.Errorf("COPY FROM: %s, %v", word(o), a.Err)
	}
	if got := s.rows("SELECT 1"); got != "1" {
		t.Errorf("after COPY FROM: %s", got)
	}
	if a := s.do(""); len(a.Results) != 1 || a.Results[0].Tag != "" {
		t.Errorf("an empty step: %+v", a)
	}
}

// testSessionReset: nothing of a session is left but its number, its database and how it reads text.
func testSessionReset(t *testing.T, r *room) {
	if r.engine.Embedded {
		testReopened(t, r)
		return
	}
	s, other := r.session(), r.session()
	conn := s.conn.(engine.Resetter)
	id := s.conn.ID()
	s.do("SET @a = 1, SESSION sql_mode = '', time_zone = '+03:00'; CREATE TEMPORARY TABLE temp (a int); SELECT GET_LOCK('reset', 0); BEGIN; UPDATE t SET v = 0 WHERE id = 1")
	before := other.rows("SELECT @@sql_mode, @@time_zone, @@character_set_client, @@character_set_results, @@collation_connection")
	if err := conn.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.rows("SELECT @@sql_mode, @@time_zone, @@character_set_client, @@character_set_results, @@collation_connection"); got != before {
		t.Errorf("settings: %s, a new session's %s", got, before)
	}
	if a := s.do("SELECT @a, CONNECTION_ID(), DATABASE()"); a.After.InTransaction() || printRows(a.Results[0].Rows) != fmt.Sprintf("NULL|%d|%s", id, r.target.Database) {
		t.Errorf("%+v", a)
	}
	if a, _ := s.try("SELECT * FROM temp"); a.Err == nil {
		t.Error("a temporary table is left")
	}
	if got := other.rows("SELECT GET_LOCK('reset', 0)"); got != "1" {
		t.Errorf("GET_LOCK after the reset: %s", got)
	}
	if got := other.rows("SELECT v FROM t WHERE id = 1"); got != "10" {
		t.Errorf("the transaction left %s", got)
	}
	other.do("UPDATE t SET v = v WHERE id = 1")
}

// testReopened: the same for an embedded product.
func testReopened(t *testing.T, r *room) {
	s, other := r.session(), r.session()
	id := s.conn.ID()
	s.do("PRAGMA foreign_keys = OFF; CREATE TEMPORARY TABLE temp_t (a int); BEGIN; UPDATE t SET v = 0 WHERE id = 1")
	if err := s.conn.(engine.Resetter).Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a := s.do("PRAGMA foreign_keys"); a.After.InTransaction() || s.conn.ID() != id || printRows(a.Results[0].Rows) != "1" {
		t.Errorf("%+v, connection %d, was %d", a, s.conn.ID(), id)
	}
	if a, _ := s.try("SELECT * FROM temp_t"); a.Err == nil {
		t.Error("a temporary table is left")
	}
	if got := other.rows("SELECT v FROM t WHERE id = 1"); got != "10" {
		t.Errorf("the transaction left %s", got)
	}
	other.do("UPDATE t SET v = v WHERE id = 1")
}

// testWarnings: warnings are counted, and fetched on demand (MySQL family).
func testWarnings(t *testing.T, r *room) {
	a := r.session().do("INSERT IGNORE INTO t VALUES (1, 1, 1)")
	if a.Results[0].Warnings != 1 || a.Results[0].Affected != 0 || len(a.Notices) != 0 {
		t.Errorf("warnings that nobody asked for: %+v", a)
	}
	r.target.Warnings = true
	s := r.session()
	a = s.do("INSERT IGNORE INTO t VALUES (1, 1, 1)")
	if len(a.Notices) != 1 || a.Notices[0].Code != "1062" || a.Notices[0].Severity != "Warning" {
		t.Errorf("warnings: %+v", a.Notices)
	}
	s.do("CREATE TABLE auto (id int AUTO_INCREMENT PRIMARY KEY, v int)")
	if a := s.do("INSERT INTO auto (v) VALUES (1), (2)"); a.Results[0].LastInsertID != 1 || a.Results[0].Affected != 2 {
		t.Errorf("got %+v", a.Results[0])
	}
}

// testLevels: each level can be set, and what it is called then.
func testLevels(t *testing.T, w *world) {
	r := w.room(t)
	for _, l := range w.engine.Levels {
		s := r.session()
		s.do(w.engine.SetLevel(l.SQL))
		var got string
		switch {
		case w.engine.SetLevel(l.SQL) == "":
			if len(w.engine.Levels) != 1 {
				t.Errorf("%s: it cannot be set, and is not the only one", l.SQL)
			}
			continue
		case w.postgres():
			got = s.rows("SHOW transaction_isolation")
		case w.is("mariadb"):
			got = s.rows("SELECT LOWER(REPLACE(@@tx_isolation, '-', ' '))")
		default:
			got = s.rows("SELECT LOWER(REPLACE(@@transaction_isolation, '-', ' '))")
		}
		want := strings.ToLower(l.SQL)
		if l.SQL == "SNAPSHOT" {
			want = "repeatable read"
		}
		if got != want {
			t.Errorf("%s: the session's level is %q", l.SQL, got)
		}
	}
}
