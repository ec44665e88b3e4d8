package live_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"

	"wirecheck/internal/testserver"
)

// TestPreparedExistenceFamily: SELECT EXISTS in a prepared statement, as Laravel asks, has read no row if it found none. Which one it found is not seen of
// joins: parameters cannot stand twice in the statement.
func TestPreparedExistenceFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("subqueries are not seen there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 1, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1), "INSERT INTO booking VALUES (1, 1, NULL, 'eve')")
	for _, tt := range []struct {
		query, guest string
		opaque       int
	}{
		{"SELECT EXISTS (SELECT * FROM booking WHERE guest = ?) AS `exists`", "ann", 0},
		{"SELECT EXISTS (SELECT * FROM booking WHERE guest = ?) AS `exists`", "eve", 1},
		{"SELECT EXISTS (SELECT * FROM booking WHERE id = ?) AS `exists`", "1", 0},
		{"SELECT NOT EXISTS (SELECT * FROM booking WHERE id = ?) AS free", "1", 0},
		{"SELECT NOT EXISTS (SELECT * FROM booking WHERE guest = ?) AS free", "ann", 0},
		{"SELECT NOT EXISTS (SELECT * FROM booking WHERE guest = ?) AS free", "eve", 1},
		{"SELECT EXISTS (SELECT * FROM booking a JOIN booking b ON b.room = a.room + 1 WHERE a.guest = ?) AS `exists`", "eve", 1}, // it read the one of the first table
	} {
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared(true)
		if _, err := ask(s.sessions[0], tt.query, tt.guest); err != nil {
			t.Fatal(err)
		}
		if v := s.proxy.Checker.Result().Coverage; v.Opaque != tt.opaque || v.Exact != 1-tt.opaque {
			t.Errorf("%s of %s: %s", tt.query, tt.guest, v)
		}
	}
}

// existences ask whether there is a booking of eve's, who has several, or of bob's, who has one. pinned says that the condition fixes a whole key, scanned that a
// second scan tells how many there are on MariaDB and MySQL, too.
var existences = []struct {
	query                 string
	sole, pinned, scanned bool
}{
	{query: "SELECT EXISTS (SELECT * FROM booking b WHERE b.guest = 'eve') AS e"},
	{query: "SELECT NOT EXISTS (SELECT 1 FROM booking WHERE guest = 'eve') AS e"},
	{query: "SELECT EXISTS (SELECT * FROM booking WHERE guest = 'bob') AS e", sole: true, scanned: true},
	{query: "SELECT NOT EXISTS (SELECT 1 FROM booking WHERE guest = 'bob') AS e", sole: true, scanned: true},
	{query: "SELECT EXISTS (SELECT * FROM booking WHERE id = 1) AS e", sole: true, pinned: true},
	{query: "SELECT 1 AS a FROM booking WHERE guest = 'eve' LIMIT 1"}, // as Django and Rails ask
	{query: "SELECT 1 AS a FROM booking WHERE guest = 'bob' LIMIT 1", sole: true, scanned: true},
	{query: "SELECT (1) AS a FROM booking WHERE guest = 'bob' LIMIT 1", sole: true, scanned: true},
	{query: "SELECT (1) AS a FROM booking WHERE guest = 'eve' LIMIT 1"},
	{query: "SELECT 1 AS a FROM booking WHERE guest = 'bob' ORDER BY id LIMIT 1", sole: true},
	{query: "SELECT 1 AS a FROM booking WHERE guest = 'bob' LIMIT 2", sole: true, scanned: true},
	{query: "SELECT 1 AS a FROM booking WHERE id = 1 LIMIT 1", sole: true, pinned: true},
	{query: "SELECT 1 AS a FROM booking JOIN room ON room.id = booking.room WHERE guest = 'eve' LIMIT 1"},
	{query: "SELECT 1 AS a FROM booking JOIN room ON room.id = booking.room WHERE guest = 'bob' LIMIT 1", sole: true, scanned: true},
	{query: "SELECT 1 AS row_exists FROM (SELECT 1 AS dummy_column) dummy_table WHERE EXISTS (SELECT 1 FROM booking b LEFT JOIN room r ON r.id = b.room WHERE (((r.id = 5))) AND (b.guest = 'eve')) LIMIT 1"},
	{query: "SELECT 1 AS row_exists FROM (SELECT 1 AS dummy_column) dummy_table WHERE EXISTS (SELECT 1 FROM booking b LEFT JOIN room r ON r.id = b.room WHERE (((r.id = 5))) AND (b.guest = 'bob')) LIMIT 1", sole: true, scanned: true},
}

// TestExistence: EXISTS depends on the row that makes it true if there is no other one. If one of several goes, it stays true.
func TestExistence(t *testing.T) { newStand(t, 2, bookings, rooms[0], rooms[1]).existence() }

// TestExistenceFamily plays it on MariaDB, or another product of the family, where a whole key or a second scan says that there is no other one.
func TestExistenceFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("subqueries are not seen there")
	}
	openStand(t, testserver.Family(t).Database(t), true, 2, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1), rooms[0], rooms[1]).existence()
}

// existence plays a read skew and a write skew over a row that makes EXISTS true.
func (s *stand) existence() {
	for _, f := range existences {
		for _, p := range []struct{ name, steps, want string }{
			{"read skew", "1 %s|2 DELETE FROM booking WHERE %s|2 UPDATE room SET floor = 9 WHERE id = 1|2 COMMIT|1 SELECT floor FROM room WHERE id = 1|1 COMMIT", "G-single read skew"},
			{"write skew", "1 %s|2 SELECT floor FROM room WHERE id = 1|2 DELETE FROM booking WHERE %s|2 COMMIT|1 UPDATE room SET floor = 9 WHERE id = 1|1 COMMIT", "G2-item write skew"},
		} {
			for i, goes := range []string{"id = 1", "id = 2", "id = 3"} { // eve's, bob's, and another one of eve's
				for _, q := range []string{"DELETE FROM booking", "UPDATE room SET floor = 3 WHERE id = 1", "INSERT INTO booking VALUES (1, 5, NULL, 'eve'), (2, 5, NULL, 'bob'), (3, 5, NULL, 'eve')"} {
					if _, err := ask(s.sessions[0], q); err != nil {
						s.t.Fatal(err)
					}
				}
				want := ""
				if f.sole && (i == 1) == !f.pinned && i < 2 && (f.pinned || f.scanned || !s.family) {
					want = p.want
				}
				found, r := s.play("READ COMMITTED", strings.Split(strings.ReplaceAll(strings.Replace(p.steps, "%s", f.query, 1), "%s", goes), "|")...)
				if got := strings.Join(found, ", "); got != want || f.pinned && len(r.Coverage.Unread) > 0 {
					s.t.Errorf("%s of %s, where %s goes: found %q, want %q; %s", p.name, f.query, goes, got, want, r.Coverage)
				}
				unknown, c := !f.pinned && (i == 1) == f.sole && want == "", r.Coverage // nobody knows whether another one is left
				if c.Others > 0 && !unknown || unknown && c.Others+c.Unevaluated()+c.Approximate+c.Opaque == 0 {
					s.t.Errorf("%s of %s, where %s goes: %s", p.name, f.query, goes, c)
				}
			}
		}
	}
}

// TestBoundExistence: Rails binds the LIMIT of exists?, too.
func TestBoundExistence(t *testing.T) {
	s := newStand(t, 2, bookings, rooms[0], rooms[1], "INSERT INTO booking VALUES (1, 5, NULL, 'eve'), (2, 5, NULL, 'bob'), (3, 5, NULL, 'eve')")
	for guest, want := range map[string]string{"bob": "G-single read skew", "eve": ""} {
		if _, err := ask(s.sessions[0], "UPDATE room SET floor = 3 WHERE id = 1"); err != nil {
			t.Fatal(err)
		}
		s.asked = func(int) (string, []any) {
			return "SELECT 1 AS one FROM booking WHERE guest = $1 LIMIT $2", []any{guest, 1}
		}
		found, r := s.play("READ COMMITTED", "1 ?", "2 UPDATE booking SET guest = 'dan' WHERE id = (SELECT min(id) FROM booking WHERE guest = '"+guest+"')", "2 UPDATE room SET floor = 9 WHERE id = 1", "2 COMMIT", "1 SELECT floor FROM room WHERE id = 1", "1 COMMIT")
		if got := strings.Join(found, ", "); got != want || r.Coverage.Opaque > 0 {
			t.Errorf("the booking of %s goes: found %q, want %q; %s", guest, got, want, r.Coverage)
		}
	}
}

// TestExistenceSerializable: at SERIALIZABLE, PostgreSQL locks what a statement reads. That EXISTS had more than one row to find is not looked up there, since a write of
// the other one would then be refused.
func TestExistenceSerializable(t *testing.T) {
	s := newStand(t, 2, bookings, "CREATE INDEX ON booking (room)", rooms[0], rooms[1], "INSERT INTO booking SELECT i, i / 2, NULL, 'ann' FROM generate_series(1, 5000) i", "ANALYZE booking", "SET seq_page_cost = 1000")
	if _, err := ask(s.sessions[1], "SET seq_page_cost = 1000"); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{"SELECT 1 AS a FROM booking WHERE room = 1000 LIMIT 1", "SELECT EXISTS (SELECT 1 FROM booking WHERE room = 1000)", "SELECT floor FROM room WHERE id = 1 AND EXISTS (SELECT 1 FROM booking WHERE room = 1000)",
		"SELECT floor, (SELECT min(id) FROM booking WHERE id > 1999) FROM room WHERE id = 1",
		"SELECT floor FROM room WHERE id IN (1, 2) AND id + 999 IN (SELECT room FROM booking WHERE room = 1000)"} {
		for i, q := range []string{"1 BEGIN ISOLATION LEVEL SERIALIZABLE", "2 BEGIN ISOLATION LEVEL SERIALIZABLE", "1 " + query, "2 SELECT floor FROM room WHERE id = 2", "2 DELETE FROM booking WHERE id = 2001",
			"1 UPDATE room SET floor = floor + 1 WHERE id = 2", "2 COMMIT", "1 COMMIT", "1 INSERT INTO booking VALUES (2001, 1000, NULL, 'ann')"} {
			if _, err := ask(s.sessions[q[0]-'1'], q[2:]); err != nil {
				t.Fatalf("%s: statement %d, %s: %v", query, i, q, err)
			}
		}
	}
}

// TestTextKeyFamily: many texts equal one number, so a unique key is not given by a number that is compared with a text (MySQL manual, 14.3).
func TestTextKeyFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("subqueries are not seen there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE coupon (id INT PRIMARY KEY, code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci UNIQUE) ENGINE=InnoDB",
		"CREATE TABLE room (id INT PRIMARY KEY, floor INT) ENGINE=InnoDB", rooms[1])
	for _, tt := range []struct {
		query     string
		parameter any
		goes      string // what is found where the coupon a goes, and another one is left
		unread    int    // whether it is not known which other coupons the query finds
	}{
		{"SELECT EXISTS (SELECT * FROM coupon WHERE code = 0) AS found", nil, "", 1},
		{"SELECT EXISTS (SELECT * FROM coupon WHERE code = ?) AS found", 0, "", 1},
		{"SELECT EXISTS (SELECT * FROM coupon WHERE code = 'a') AS found", nil, "G-single read skew", 0},
		{"SELECT EXISTS (SELECT * FROM coupon WHERE code = ?) AS found", "a", "G-single read skew", 0},
		{"SELECT 1 AS found FROM coupon WHERE code = 0 LIMIT 1", nil, "", 1},
		{"SELECT 1 AS found FROM coupon WHERE code = ? LIMIT 1", 0, "", 1},
		{"SELECT 1 AS found FROM coupon WHERE code = 'a' LIMIT 1", nil, "G-single read skew", 0},
		{"SELECT 1 AS found FROM coupon WHERE code = ? LIMIT 1", "a", "G-single read skew", 0},
		{"SELECT id FROM coupon WHERE code = 0", nil, "G-single read skew", 1},
		{"SELECT id FROM coupon WHERE code = ?", 0, "G-single read skew", 1},
		{"SELECT id FROM coupon WHERE code = ?", "a", "G-single read skew", 0},
	} {
		s.asked = func(int) (string, []any) {
			if tt.parameter == nil {
				return tt.query, nil
			}
			return tt.query, []any{tt.parameter}
		}
		for change, want := range map[string]string{"DELETE FROM coupon WHERE id = 1": tt.goes, "INSERT INTO coupon VALUES (3, 'c')": ""} {
			for _, q := range []string{"DELETE FROM coupon", "INSERT INTO coupon VALUES (1, 'a'), (2, 'b')", "UPDATE room SET floor = 3 WHERE id = 1"} {
				if _, err := ask(s.sessions[0], q); err != nil {
					t.Fatal(err)
				}
			}
			found, r := s.play("READ COMMITTED", "1 ?", "2 "+change, "2 UPDATE room SET floor = 9 WHERE id = 1", "2 COMMIT", "1 SELECT floor FROM room WHERE id = 1", "1 COMMIT")
			if got := strings.Join(found, ", "); got != want {
				t.Errorf("%s of %v, %s: found %q, want %q; %s", tt.query, tt.parameter, change, got, want, r.Coverage)
			}
			if got := len(r.Coverage.Unread); got != tt.unread {
				t.Errorf("%s of %v, %s: predicates were not evaluated for %d reasons, want %d; %s", tt.query, tt.parameter, change, got, tt.unread, r.Coverage)
			}
		}
	}
}

// TestCountedKeyFamily: a count of rows with a whole unique key in a prepared statement, as Laravel's rule "unique" asks, depends on a row that comes if there is
// none. What it found comes with the session's log.
func TestCountedKeyFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE member (id INT PRIMARY KEY, number INT UNIQUE) ENGINE=InnoDB", "CREATE TABLE room (id INT PRIMARY KEY, floor INT) ENGINE=InnoDB", rooms[1])
	for number, want := range map[int]string{5: "G-single phantom", 6: ""} {
		for _, q := range []string{"DELETE FROM member", "INSERT INTO member VALUES (1, 7)", "UPDATE room SET floor = 3 WHERE id = 1"} {
			if _, err := ask(s.sessions[0], q); err != nil {
				t.Fatal(err)
			}
		}
		s.asked = func(int) (string, []any) { return "SELECT count(*) FROM member WHERE number = ?", []any{number} }
		found, r := s.play("READ COMMITTED", "1 ?", "2 INSERT INTO member VALUES (2, 5)", "2 UPDATE room SET floor = 9 WHERE id = 1", "2 COMMIT", "1 SELECT floor FROM room WHERE id = 1", "1 COMMIT")
		if got := strings.Join(found, ", "); got != want && !testserver.IsTiDB() || got != "" && got != want || r.Coverage.Predicates+r.Coverage.Unevaluated()+r.Coverage.Opaque == 0 {
			t.Errorf("%d: found %q, want %q; %s", number, got, want, r.Coverage)
		}
	}
	s.asked = func(int) (string, []any) { return "SELECT count(*) FROM member WHERE number = ?", []any{7} }
	if found, r := s.play("READ COMMITTED", "1 ?", "2 INSERT INTO member VALUES (8, 8)", "2 COMMIT", "1 COMMIT"); len(found) > 0 || r.Coverage.Opaque == 0 && r.Coverage.Predicates+r.Coverage.Unevaluated() > 0 {
		t.Errorf("a key that is there: %v; %s", found, r.Coverage)
	}
}

// TestRoundedKey: many numbers equal one that is rounded, so such a number fixes no unique key (PostgreSQL manual, 8.1.3).
func TestRoundedKey(t *testing.T) {
	s := newStand(t, 1, "CREATE TABLE coin (id INT PRIMARY KEY, number BIGINT UNIQUE)", "INSERT INTO coin VALUES (1, 9007199254740992)")
	for _, tt := range []struct {
		query string
		types []uint32 // of the parameter
		read  bool     // its condition is judged, or counted as one that is not
	}{
		{"SELECT id FROM coin WHERE number = 9007199254740992::float8", nil, true},
		{"SELECT id FROM coin WHERE number = 9007199254740992", nil, false},
		{"SELECT id FROM coin WHERE number = $1", []uint32{pgtype.Float8OID}, true},
		{"SELECT id FROM coin WHERE number = $1", []uint32{pgtype.Int8OID}, false},
	} {
		var values [][]byte
		if tt.types != nil {
			values = [][]byte{[]byte("9007199254740992")}
		}
		s.proxy.Checker.Restart()
		if r := s.sessions[0].pg.PgConn().ExecParams(t.Context(), tt.query, values, tt.types, nil, nil).Read(); r.Err != nil || len(r.Rows) != 1 {
			t.Fatal(r.Err, r.Rows)
		}
		if c := s.proxy.Checker.Result().Coverage; c.Predicates+c.Unevaluated() > 0 != tt.read || c.Exact != 1 {
			t.Errorf("%s of %v: %s", tt.query, tt.types, c)
		}
	}
}

// TestOwnViewFamily: a statement that is its own transaction takes its view of the database while it runs, also if it finds no row. Of one in a longer transaction,
// InnoDB may have taken none where it knows of no partition that has the row.
func TestOwnViewFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("it takes its view at BEGIN")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 1, "CREATE TABLE member (id INT PRIMARY KEY, number INT) ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION few VALUES LESS THAN (9))", "INSERT INTO member VALUES (1, 7)")
	for _, tt := range []struct {
		before []string
		known  bool
	}{
		{nil, true},
		{[]string{"SET autocommit = 0"}, false},
		{[]string{"ROLLBACK", "SET autocommit = 1"}, true},
		{[]string{"BEGIN"}, false},
		{[]string{"ROLLBACK", "BEGIN", "SELECT number FROM member WHERE id = 1"}, true},
	} {
		for _, q := range tt.before {
			if _, err := ask(s.sessions[0], q); err != nil {
				t.Fatal(err)
			}
		}
		before := s.proxy.Checker.Result().Coverage
		if _, err := ask(s.sessions[0], "SELECT number FROM member WHERE id = 50"); err != nil {
			t.Fatal(err)
		}
		c := s.proxy.Checker.Result().Coverage.Since(before)
		if c.Predicates+c.Unevaluated() != 1 || (c.Predicates == 1) != tt.known {
			t.Errorf("behind %q: %s", tt.before, c)
		}
	}
}

// TestPartitionFamily: a SELECT of a partition by a whole key that no row has is counted, and one that finds the row is not.
func TestPartitionFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("conditions are not judged there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 1, "CREATE TABLE member (id INT PRIMARY KEY, number INT) ENGINE=InnoDB PARTITION BY RANGE (id) (PARTITION few VALUES LESS THAN (9))", "INSERT INTO member VALUES (1, 7)")
	for q, want := range map[string]int{
		"SELECT number FROM member PARTITION (few) WHERE id = 5": 1, "SELECT number FROM member PARTITION (few) WHERE id = 1": 0,
		"SELECT count(*) FROM member PARTITION (few) WHERE id = 5": 1, "SELECT number FROM member WHERE id = 1": 0, "SELECT 1": 0,
	} {
		before := s.proxy.Checker.Result().Coverage
		if _, err := ask(s.sessions[0], q); err != nil {
			t.Fatal(err)
		}
		if c := s.proxy.Checker.Result().Coverage.Since(before); c.Unevaluated() != want {
			t.Errorf("%s: want %d not evaluated: %s", q, want, c)
		}
	}
}
