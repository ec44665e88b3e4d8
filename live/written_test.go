package live_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/live"
	"wirecheck/oracle"
)

// written are forms of INSERT, UPDATE and DELETE that ask something besides, and what goes wrong with them at READ COMMITTED. A line without a mark is
// for both dialects; those of "p" are for PostgreSQL, those of "m" for the MySQL family.
var written = []struct {
	name, steps, want string
	family            string // what is found there, if it is something else; "-": it is not played
	hole              bool   // PostgreSQL 15.18 lets it pass at SERIALIZABLE, too: it notes no read of the row that was in the way; 15.20 refuses one of the two
}{
	{"double booking by NOT EXISTS", `p1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 1)
		p2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 1)
		m1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 1)
		m2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 1)
		1 COMMIT
		2 COMMIT`, "G2 write skew", "", false},
	{"another room", `p1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 1)
		p2 INSERT INTO booking SELECT 11, 2, NULL, 'bob' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 2)
		m1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 1)
		m2 INSERT INTO booking SELECT 11, 2, NULL, 'bob' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 2)
		1 COMMIT
		2 COMMIT`, "", "", false},
	{"one after the other", `p1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 1)
		m1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 1)
		1 COMMIT
		p2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' WHERE NOT EXISTS (SELECT 1 FROM booking WHERE room = 1)
		m2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE room = 1)
		2 COMMIT`, "", "", false},
	{"double booking by a count", `p1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' WHERE (SELECT count(*) FROM booking WHERE room = 1) = 0
		p2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' WHERE (SELECT count(*) FROM booking WHERE room = 1) = 0
		m1 INSERT INTO booking SELECT 10, 1, NULL, 'ann' FROM DUAL WHERE (SELECT count(*) FROM booking b WHERE room = 1) = 0
		m2 INSERT INTO booking SELECT 11, 1, NULL, 'bob' FROM DUAL WHERE (SELECT count(*) FROM booking b WHERE room = 1) = 0
		1 COMMIT
		2 COMMIT`, "G2 write skew", "", false},
	{"a subquery that need not be evaluated", `p1 UPDATE booking SET guest = 'x' WHERE id = 1 AND (room = 5 OR (SELECT count(*) FROM post WHERE v > 50) > 0)
		m1 UPDATE booking SET guest = 'x' WHERE id = 1 AND (room = 5 OR (SELECT count(*) FROM post WHERE v > 50) > 0)
		2 SELECT guest FROM booking WHERE id = 1
		2 INSERT INTO post (id, tag, v) VALUES (9, 1, 60)
		2 COMMIT
		1 COMMIT`, "", "", false},
	{"write skew by a count within UPDATE", `p1 UPDATE doctor SET oncall = 0 WHERE id = 1 AND (SELECT count(*) FROM doctor WHERE oncall = 1) > 1
		p2 UPDATE doctor SET oncall = 0 WHERE id = 2 AND (SELECT count(*) FROM doctor WHERE oncall = 1) > 1
		1 COMMIT
		2 COMMIT`, "G2-item write skew", "-", false},
	{"a count of other doctors", `p1 UPDATE doctor SET oncall = 0 WHERE id = 1 AND (SELECT count(*) FROM doctor WHERE oncall = 1 AND shift = 7) > 0
		p2 UPDATE doctor SET oncall = 0 WHERE id = 3 AND (SELECT count(*) FROM doctor WHERE oncall = 1 AND shift = 8) > 0
		1 COMMIT
		2 COMMIT`, "", "-", false},
	{"write skew by a count within UPDATE, of the family", `m1 UPDATE doctor SET oncall = 0 WHERE id = 1 AND (SELECT n FROM (SELECT count(*) n FROM doctor WHERE oncall = 1) d) > 1
		m2 UPDATE doctor SET oncall = 0 WHERE id = 2 AND (SELECT n FROM (SELECT count(*) n FROM doctor WHERE oncall = 1) d) > 1
		1 COMMIT
		2 COMMIT`, "", "G2 write skew", false},
	{"a count of other doctors, of the family", `m1 UPDATE doctor SET oncall = 0 WHERE id = 1 AND (SELECT n FROM (SELECT count(*) n FROM doctor WHERE shift = 7) d) > 0
		m2 UPDATE doctor SET oncall = 0 WHERE id = 3 AND (SELECT n FROM (SELECT count(*) n FROM doctor WHERE shift = 8) d) > 0
		1 COMMIT
		2 COMMIT`, "", "", false},
	{"lost update by a join", `1 SELECT n FROM tag WHERE id = 1
		2 SELECT n FROM tag WHERE id = 1
		p1 UPDATE tag SET n = 5 FROM post WHERE post.tag = tag.id AND post.id = 1
		m1 UPDATE tag JOIN post ON post.tag = tag.id SET tag.n = 5 WHERE post.id = 1
		1 COMMIT
		p2 UPDATE tag SET n = 6 FROM post WHERE post.tag = tag.id AND post.id = 1
		m2 UPDATE tag JOIN post ON post.tag = tag.id SET tag.n = 6 WHERE post.id = 1
		2 COMMIT`, "G-single lost update", "", false},
	{"a join that adds", `1 SELECT n FROM tag WHERE id = 2
		2 SELECT n FROM tag WHERE id = 2
		p1 UPDATE tag SET n = n + 5 FROM post WHERE post.tag = tag.id AND post.id = 1
		m1 UPDATE tag JOIN post ON post.tag = tag.id SET tag.n = tag.n + 5 WHERE post.id = 1
		1 COMMIT
		p2 UPDATE tag SET n = n + 6 FROM post WHERE post.tag = tag.id AND post.id = 1
		m2 UPDATE tag JOIN post ON post.tag = tag.id SET tag.n = tag.n + 6 WHERE post.id = 1
		2 COMMIT`, "", "", false},
	{"a row that a join deletes", `1 SELECT v FROM post WHERE id = 1
		p2 DELETE FROM post USING tag WHERE post.tag = tag.id AND tag.name = 'a'
		2 UPDATE tag SET n = 3 WHERE id = 2
		2 COMMIT
		1 SELECT n FROM tag WHERE id = 2
		1 COMMIT`, "G-single read skew", "-", false},
	{"a row that a join does not delete", `1 SELECT v FROM post WHERE id = 2
		p2 DELETE FROM post USING tag WHERE post.tag = tag.id AND tag.name = 'a'
		2 UPDATE tag SET n = 3 WHERE id = 2
		2 COMMIT
		1 SELECT n FROM tag WHERE id = 2
		1 COMMIT`, "", "-", false},
	{"write skew by the values of subqueries", `1 UPDATE tag SET n = (SELECT count(*) FROM post WHERE v > 15) WHERE id = 1
		2 UPDATE post SET v = 30 WHERE id = 1 AND (SELECT count(*) FROM tag WHERE n > 0) = 0
		1 COMMIT
		2 COMMIT`, "G2 write skew", "", false},
	{"a value that does not change", `1 UPDATE tag SET n = (SELECT count(*) FROM post WHERE v > 15) WHERE id = 1
		2 UPDATE post SET v = 14 WHERE id = 1 AND (SELECT count(*) FROM tag WHERE n > 5) = 0
		1 COMMIT
		2 COMMIT`, "", "", false},
	{"a tag is found and deleted", `p1 INSERT INTO tag (id, name, n) VALUES (1, 'a', 0) ON CONFLICT (id) DO NOTHING
		2 SELECT count(*) FROM post WHERE tag = 1 AND v > 50
		1 INSERT INTO post (id, tag, v) VALUES (10, 1, 99)
		1 COMMIT
		2 DELETE FROM tag WHERE id = 1
		2 COMMIT`, "G2 write skew", "-", true},
	{"a tag is found by its name and deleted", `p1 INSERT INTO tag (id, name, n) VALUES (DEFAULT, 'a', 0) ON CONFLICT DO NOTHING
		2 SELECT count(*) FROM post WHERE tag = 1 AND v > 50
		1 INSERT INTO post (id, tag, v) VALUES (10, 1, 99)
		1 COMMIT
		2 DELETE FROM tag WHERE id = 1
		2 COMMIT`, "G2 write skew", "-", true},
	{"one of two keys was in the way", `p1 INSERT INTO tag (id, name, n) VALUES (2, 'a', 0) ON CONFLICT DO NOTHING
		2 SELECT count(*) FROM post WHERE tag = 1 AND v > 50
		1 INSERT INTO post (id, tag, v) VALUES (10, 1, 99)
		1 COMMIT
		2 DELETE FROM tag WHERE id = 1
		2 COMMIT`, "", "-", false},
	{"a tag is found and renamed", `p1 INSERT INTO tag (id, name, n) VALUES (1, 'a', 0) ON CONFLICT (id) DO NOTHING
		2 SELECT count(*) FROM post WHERE tag = 1 AND v > 50
		1 INSERT INTO post (id, tag, v) VALUES (10, 1, 99)
		1 COMMIT
		2 UPDATE tag SET name = 'c' WHERE id = 1
		2 COMMIT`, "", "-", false},
	{"get or create", `1 SELECT n FROM tag WHERE name = 'x'
		2 INSERT INTO tag (id, name, n) VALUES (7, 'x', 0)
		2 COMMIT
		p1 INSERT INTO tag (id, name, n) VALUES (8, 'x', 0) ON CONFLICT (name) DO NOTHING
		m1 INSERT IGNORE INTO tag (id, name, n) VALUES (8, 'x', 0)
		1 COMMIT`, "", "", false},
	{"double booking by rows that are inserted unless they are there", `1 SELECT count(*) FROM tag WHERE n = 9
		2 SELECT count(*) FROM tag WHERE n = 9
		p1 INSERT INTO tag (id, name, n) VALUES (8, 'p', 9) ON CONFLICT (name) DO NOTHING
		m1 INSERT IGNORE INTO tag (id, name, n) VALUES (8, 'p', 9)
		p2 INSERT INTO tag (id, name, n) VALUES (9, 'q', 9) ON CONFLICT (name) DO NOTHING
		m2 INSERT IGNORE INTO tag (id, name, n) VALUES (9, 'q', 9)
		1 COMMIT
		2 COMMIT`, "G2 write skew", "", false},
	{"one of the rows is there", `1 SELECT count(*) FROM tag WHERE n = 9
		2 SELECT count(*) FROM tag WHERE n = 9
		p1 INSERT INTO tag (id, name, n) VALUES (8, 'r', 9) ON CONFLICT (name) DO NOTHING
		m1 INSERT IGNORE INTO tag (id, name, n) VALUES (8, 'r', 9)
		p2 INSERT INTO tag (id, name, n) VALUES (9, 'b', 9) ON CONFLICT (name) DO NOTHING
		m2 INSERT IGNORE INTO tag (id, name, n) VALUES (9, 'b', 9)
		1 COMMIT
		2 COMMIT`, "", "", false},
	{"read skew by what was in the way", `1 SELECT v FROM post WHERE id = 1
		2 UPDATE post SET v = 11 WHERE id = 1
		2 INSERT INTO tag (id, name, n) VALUES (7, 'x', 0)
		2 COMMIT
		p1 INSERT INTO tag (id, name, n) VALUES (8, 'x', 0) ON CONFLICT (name) DO NOTHING
		m1 INSERT IGNORE INTO tag (id, name, n) VALUES (8, 'x', 0)
		1 COMMIT`, "G-single read skew", "-", false},
	{"another name is in the way", `1 SELECT v FROM post WHERE id = 1
		2 UPDATE post SET v = 11 WHERE id = 1
		2 INSERT INTO tag (id, name, n) VALUES (7, 'x', 0)
		2 COMMIT
		p1 INSERT INTO tag (id, name, n) VALUES (8, 'b', 0) ON CONFLICT (name) DO NOTHING
		1 COMMIT`, "", "-", false},
	{"lost update by a part of WITH", `1 SELECT n FROM tag WHERE id = 1
		2 SELECT n FROM tag WHERE id = 1
		p1 WITH u AS (UPDATE tag SET n = 5 WHERE id = 1 RETURNING id) INSERT INTO post SELECT 20, id, 5 FROM u
		1 COMMIT
		p2 WITH u AS (UPDATE tag SET n = 6 WHERE id = 1 RETURNING id) INSERT INTO post SELECT 21, id, 6 FROM u
		2 COMMIT`, "G-single lost update", "-", false},
	{"read skew by what was in the way of a part of WITH", `1 SELECT v FROM post WHERE id = 1
		2 UPDATE post SET v = 11 WHERE id = 1
		2 INSERT INTO tag (id, name, n) VALUES (7, 'x', 0)
		2 COMMIT
		p1 WITH i AS (INSERT INTO tag (id, name, n) VALUES (8, 'x', 0) ON CONFLICT (name) DO NOTHING RETURNING id) SELECT count(*) FROM i
		1 COMMIT`, "G-single read skew", "-", false},
	{"nothing was in the way of a part of WITH", `1 SELECT v FROM post WHERE id = 1
		2 UPDATE post SET v = 11 WHERE id = 1
		2 INSERT INTO tag (id, name, n) VALUES (7, 'x', 0)
		2 COMMIT
		p1 WITH i AS (INSERT INTO tag (id, name, n) VALUES (8, 'y', 0) ON CONFLICT (name) DO NOTHING RETURNING id) SELECT count(*) FROM i
		1 COMMIT`, "", "-", false},
	{"a part of WITH that adds", `1 SELECT n FROM tag WHERE id = 2
		2 SELECT n FROM tag WHERE id = 2
		p1 WITH u AS (UPDATE tag SET n = n + 5 WHERE id = 2 RETURNING id) INSERT INTO post SELECT 20, id, 5 FROM u
		1 COMMIT
		p2 WITH u AS (UPDATE tag SET n = n + 6 WHERE id = 2 RETURNING id) INSERT INTO post SELECT 21, id, 6 FROM u
		2 COMMIT`, "", "-", false},
	{"read skew by a row that moves", `1 SELECT count(*) FROM tag WHERE n = 9
		p2 WITH d AS (DELETE FROM post WHERE id = 1 RETURNING *) INSERT INTO tag SELECT 10 + id, 'moved', 9 FROM d
		2 COMMIT
		1 SELECT v FROM post WHERE id = 1
		p1 INSERT INTO booking SELECT 30, 1, NULL, 'x' FROM tag WHERE n = 9
		1 COMMIT`, "G-single phantom", "-", false},
	{"lost update by ON CONFLICT ... WHERE", `p1 SELECT n FROM tag WHERE id = 1
		p2 SELECT n FROM tag WHERE id = 1
		p1 INSERT INTO tag VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET n = excluded.n WHERE (tag.id = 1 AND 1=1)
		1 COMMIT
		p2 INSERT INTO tag VALUES (1, 'a', 1) ON CONFLICT (id) DO UPDATE SET n = excluded.n WHERE (tag.id = 1 AND 1=1)
		2 COMMIT`, "G-single lost update", "-", false},
}

const tags = "CREATE TABLE tag (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)"

// writtenTables are made with the first session; each form finds them filled by it.
var writtenTables = []string{
	bookings, "CREATE TABLE doctor (id INT PRIMARY KEY, oncall INT, shift INT)", tags, "CREATE TABLE post (id INT PRIMARY KEY, tag INT, v INT)",
}

var writtenRows = []string{
	"DELETE FROM booking", "DELETE FROM doctor", "DELETE FROM tag", "DELETE FROM post",
	"INSERT INTO booking (id, room, hour, guest) VALUES (1, 5, NULL, 'eve')", "INSERT INTO doctor (id, oncall, shift) VALUES (1, 1, 7), (2, 1, 7), (3, 1, 8), (4, 1, 8)",
	"INSERT INTO tag (id, name, n) VALUES (1, 'a', 0), (2, 'b', 0)", "INSERT INTO post (id, tag, v) VALUES (1, 1, 10), (2, 2, 20)",
}

// TestWritten plays them with near misses. At SERIALIZABLE nothing is found but what PostgreSQL lets pass.
func TestWritten(t *testing.T) {
	tables := append([]string{}, writtenTables...)
	tables[2] = strings.Replace(tags, "id INT", "id INT GENERATED BY DEFAULT AS IDENTITY", 1)
	newStand(t, 2, tables...).written("p", "READ COMMITTED", "SERIALIZABLE")
}

// TestWrittenFamily plays them on MariaDB, or another product of the family.
func TestWrittenFamily(t *testing.T) {
	tables := append([]string{}, writtenTables...)
	tables[0] = strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1)
	openStand(t, testserver.Family(t).Database(t), true, 2, tables...).written("m", "READ COMMITTED")
}

// TestFirstStatements: what a statement writes to the table that its own condition reads is captured from the first one on, and is none of what it found.
func TestFirstStatements(t *testing.T) {
	firstStatements(t, func() *stand { return newStand(t, 2, bookings) }, "")
}

// TestFirstStatementsFamily is the same on MariaDB, or another product of the family.
func TestFirstStatementsFamily(t *testing.T) {
	firstStatements(t, func() *stand {
		return openStand(t, testserver.Family(t).Database(t), true, 2, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1))
	}, "FROM DUAL")
}

// TestSelectedLiteralsFamily: the values that a new row gets of literals in a SELECT tell what conditions find, moments and numbers of the server's too.
func TestSelectedLiteralsFamily(t *testing.T) {
	for hour, want := range map[string]string{"10:30": "G2 write skew", "9:00": ""} {
		s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE slot (id INT AUTO_INCREMENT PRIMARY KEY, room INT, start DATETIME)")
		insert := func(hour string) string {
			return fmt.Sprintf("INSERT INTO slot (room, start) SELECT 7, '2026-12-24 %s' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM slot s WHERE s.room = 7 AND s.start >= '2026-12-24 10:00')", hour)
		}
		found, r := s.play("READ COMMITTED", "1 "+insert("10:00"), "2 "+insert(hour), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want || r.Coverage.Blind > 0 {
			t.Errorf("%s: found %q, want %q; %s", hour, got, want, r.Coverage)
		}
		for _, f := range r.Findings {
			if name := f.Edges[0].Name; !strings.HasPrefix(name, "id=") {
				t.Errorf("the row is called %q", name)
			}
		}
	}
}

func firstStatements(t *testing.T, open func() *stand, from string) {
	for room, want := range map[int]string{1: "G2 write skew", 2: ""} {
		insert := func(session, room int) string {
			return fmt.Sprintf("%d INSERT INTO booking SELECT %d, %d, NULL, 'ann' %s WHERE NOT EXISTS (SELECT 1 FROM booking b WHERE b.room = %d)", session, session, room, from, room)
		}
		found, r := open().play("READ COMMITTED", insert(1, 1), insert(2, room), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("rooms 1 and %d: found %q, want %q; %s", room, got, want, r.Coverage)
		}
		for _, f := range r.Findings {
			for _, e := range f.Edges {
				if got := e.FoundText(); got != " and found none" {
					t.Errorf("rooms 1 and %d: it asked for rooms%s", room, got)
				}
			}
		}
	}
}

// TestNamesOfColumns: a finding names columns as the table does, whatever case they are in.
func TestNamesOfColumns(t *testing.T) {
	const stock = `CREATE TABLE stock (id INT PRIMARY KEY, "onHand" INT)`
	columns := func(s *stand, quote string) {
		s.before = []string{"DELETE FROM stock", "INSERT INTO stock VALUES (1, 5)"}
		_, r := s.play("READ COMMITTED", "1 SELECT * FROM stock WHERE id = 1", "2 SELECT * FROM stock WHERE id = 1",
			"1 UPDATE stock SET "+quote+"onHand"+quote+" = 4 WHERE id = 1", "1 COMMIT", "2 UPDATE stock SET "+quote+"onHand"+quote+" = 3 WHERE id = 1", "2 COMMIT")
		if len(r.Findings) != 1 || len(r.Findings[0].Edges) == 0 {
			t.Fatalf("found %+v", r.Findings)
		}
		read := r.Findings[0].Edges[0].FromValues
		if !slices.Contains(read, oracle.Value{Column: "onHand", Text: "5"}) {
			t.Errorf("read %+v", read)
		}
	}
	columns(newStand(t, 2, stock), `"`)
	columns(openStand(t, testserver.Family(t).Database(t), true, 2, strings.ReplaceAll(stock, `"`, "`")), "`")
}

// TestBytes: VARBINARY, as MediaWiki's columns are, and the BINARY(16) of a UUID are compared by their bytes.
func TestBytes(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE booking (id INT PRIMARY KEY, room VARBINARY(20), uid BINARY(4), KEY (room), KEY (uid))")
	s.before = []string{"DELETE FROM booking", "INSERT INTO booking VALUES (7, 'z', x'00000001')"}
	for _, tt := range []struct{ column, mine, other, want string }{
		{"room", "'ann'", "'ann'", "G2 write skew"},
		{"room", "'ann'", "'Ann'", ""},
		{"room", "'ann'", "'ann '", ""},
		{"room", "x'ff00'", "0xff00", "G2 write skew"},
		{"uid", "x'c3ff0001'", "X'C3FF0001'", "G2 write skew"},
		{"uid", "x'c3ff0001'", "x'c3fe0001'", ""},
		{"uid", "0x41424344", "'ABCD'", "G2 write skew"},
		{"uid", "'A'", "x'41000000'", ""}, // which is what the row of 'A' has, and the first condition is of another value
	} {
		row := map[string]string{"room": "(%d, %s, NULL)", "uid": "(%d, NULL, %s)"}[tt.column]
		found, r := s.play("READ COMMITTED", "1 SELECT id FROM booking WHERE "+tt.column+" = "+tt.mine, "2 SELECT count(*) FROM booking WHERE "+tt.column+" = "+tt.other,
			"1 INSERT INTO booking VALUES "+fmt.Sprintf(row, 1, tt.mine), "2 INSERT INTO booking VALUES "+fmt.Sprintf(row, 2, tt.other), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != tt.want || r.Coverage.Blind > 0 || len(r.Coverage.Unread) > 0 {
			t.Errorf("%+v: found %q; %s", tt, got, r.Coverage)
		}
	}
}

// TestFoundRows: what counts rows for pages, as WordPress asks it, reads no table.
func TestFoundRows(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 1, "CREATE TABLE post (id INT PRIMARY KEY, state INT)")
	s.before = []string{"DELETE FROM post", "INSERT INTO post VALUES (1, 1), (2, 1)"}
	for asked, opaque := range map[string]int{"SELECT FOUND_ROWS()": 0, "SELECT found_rows(), ROW_COUNT()": 0, "SELECT not_there()": 1} {
		_, r := s.play("READ COMMITTED", "1 SELECT SQL_CALC_FOUND_ROWS id FROM post WHERE state = 1 LIMIT 1", "1 "+asked, "1 COMMIT")
		if r.Coverage.Opaque > opaque || r.Coverage.Exact == 0 {
			t.Errorf("%s: %s", asked, r.Coverage)
		}
	}
}

// TestUUID: MariaDB's type is compared by its value, however a text writes it.
func TestUUID(t *testing.T) {
	s := openStand(t, testserver.MariaDB(t).Database(t), true, 2, "CREATE TABLE line (id INT PRIMARY KEY, cart UUID, KEY (cart))")
	s.before = []string{"DELETE FROM line", "INSERT INTO line VALUES (7, NULL)"}
	const cart = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	for other, want := range map[string]string{cart: "G2 write skew", strings.ToUpper(cart): "G2 write skew", "0" + cart[1:]: ""} {
		found, r := s.play("READ COMMITTED", "1 SELECT id FROM line WHERE cart = '"+cart+"'", "2 SELECT count(*) FROM line WHERE cart = '"+other+"'",
			"1 INSERT INTO line VALUES (1, '"+cart+"')", "2 INSERT INTO line VALUES (2, '"+other+"')", "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want || r.Coverage.Blind > 0 || len(r.Coverage.Unread) > 0 {
			t.Errorf("%s: found %q, want %q; %s", other, got, want, r.Coverage)
		}
	}
}

// TestFirstWrites: two transactions insert a row each and then count them, or change one, as the first statements that the proxy sees of the table. What they wrote is known,
// although nothing had read the table by a condition before.
func TestFirstWrites(t *testing.T) {
	firstWrites(t, func() *stand { return newStand(t, 2, bookings) })
}

// TestFirstWritesFamily is the same on MariaDB, or another product of the family.
func TestFirstWritesFamily(t *testing.T) {
	firstWrites(t, func() *stand {
		return openStand(t, testserver.Family(t).Database(t), true, 2, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1))
	})
}

func firstWrites(t *testing.T, open func() *stand) {
	for room, want := range map[int]string{1: "G2 write skew", 2: ""} {
		s := open()
		found, r := s.play("READ COMMITTED", "1 INSERT INTO booking (id, room) VALUES (1, 1)", fmt.Sprintf("2 INSERT INTO booking (id, room) VALUES (2, %d)", room),
			"1 SELECT count(*) FROM booking WHERE room = 1", fmt.Sprintf("2 SELECT count(*) FROM booking WHERE room = %d", room), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want || r.Coverage.Blind > 0 {
			t.Errorf("rooms 1 and %d: found %q, want %q; %s", room, got, want, r.Coverage)
		}
	}
}

func (s *stand) written(dialect string, levels ...string) {
	s.before = writtenRows
	for _, level := range levels {
		for _, f := range written {
			var lines []string
			for line := range strings.SplitSeq(f.steps, "\n") {
				if line = strings.TrimSpace(line); line[0] == 'p' || line[0] == 'm' {
					if line[:1] != dialect {
						continue
					}
					line = line[1:]
				}
				lines = append(lines, line)
			}
			if dialect == "m" && f.family == "-" && (level != "SERIALIZABLE" || f.hole) {
				continue
			}
			found, r := s.play(level, lines...)
			want := f.want
			switch {
			case level == "SERIALIZABLE" && (!f.hole || r.Coverage.Failed > 0):
				want = ""
			case dialect == "m" && f.family != "":
				want = f.family
			}
			if got := strings.Join(found, ", "); got != want {
				s.t.Errorf("%s at %s: found %q, want %q; %s", f.name, level, got, want, r.Coverage)
			}
		}
	}
}

// TestMetAfterWaiting: an INSERT that waited for the row which was in its way has met the row of that transaction.
func TestMetAfterWaiting(t *testing.T) {
	for end, want := range map[string]string{"COMMIT": "G-single read skew", "ROLLBACK": ""} {
		s := newStand(t, 2, writtenTables...)
		s.before = writtenRows
		_, r := s.play("READ COMMITTED", "1 SELECT v FROM post WHERE id = 1", "2 UPDATE post SET v = 11 WHERE id = 1", "2 INSERT INTO tag VALUES (7, 'x', 0)",
			"1& INSERT INTO tag VALUES (8, 'x', 0) ON CONFLICT (name) DO NOTHING", "2 "+end, "1 COMMIT")
		if got := names(r); got != want {
			t.Errorf("%s: found %q, want %q; %s", end, got, want, r.Coverage)
		}
	}
}

// TestMetAmongSeveral: of several rows, each that was not inserted met one: all of them, or as the images of the others tell. The row that was inserted itself
// was in nobody's way.
func TestMetAmongSeveral(t *testing.T) {
	const read = "1 SELECT v FROM post WHERE id = 1"
	for _, tt := range []struct {
		rows, want string
		exact      bool
	}{
		{"(8, 'x', 0), (9, 'x', 0)", "G-single read skew", true}, // none is inserted
		{"(8, 'x', 0), (9, 'y', 0)", "G-single read skew", true},
		{"(8, 'w', 0), (9, 'y', 0)", "", true},
		{"(8, 'w', 0), (9, 'w', 0)", "", true},
		{"(8, 'w', 0), (9, lower('X'), 0)", "", false}, // its key is not certain
	} {
		s := newStand(t, 2, writtenTables...)
		s.before = writtenRows
		_, r := s.play("READ COMMITTED", read, "2 UPDATE post SET v = 11 WHERE id = 1", "2 INSERT INTO tag VALUES (7, 'x', 0)", "2 COMMIT",
			"1 INSERT INTO tag VALUES "+tt.rows+" ON CONFLICT (name) DO NOTHING", "1 COMMIT")
		if got := names(r); got != tt.want || (r.Coverage.Approximate == 0) != tt.exact {
			t.Errorf("%s: found %q, want %q; %s", tt.rows, got, tt.want, r.Coverage)
		}
	}
}

// TestSubqueryAfterWaiting: the row that an UPDATE wrote after it had waited does not tell what its subquery saw of it. Its snapshot does: the row as it was before.
func TestSubqueryAfterWaiting(t *testing.T) {
	for end, want := range map[string]string{"COMMIT": "G-single phantom", "ROLLBACK": ""} {
		s := newStand(t, 2, writtenTables...)
		s.before = writtenRows
		_, r := s.play("READ COMMITTED", "2 UPDATE post SET v = 60 WHERE id = 1", "1& UPDATE post SET v = 1 + (SELECT count(*) FROM post WHERE v > 50) WHERE id = 1", "2 "+end, "1 COMMIT")
		if got := names(r); got != want || r.Coverage.Unsettled != 0 {
			t.Errorf("%s: found %q, want %q; %s", end, got, want, r.Coverage)
		}
	}
}

func names(r live.Result) string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, string(f.Class)+" "+f.Name)
	}
	return strings.Join(list, ", ")
}
