package live_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// termForms are double bookings and oversold seats, each by a condition that computes with columns. MINE stands for what each of two sessions adds, where the
// conditions meet, and OTHER for what is beside them.
var termForms = []struct {
	name, ask, mine, other string
	family                 bool // the MySQL family has it, too
}{
	{"ranges that overlap", "SELECT count(*) FROM stay WHERE room = 1 AND during && '[2026-01-01,2026-01-03)'::daterange", "during) VALUES (ID, 1, '[2026-01-02,2026-01-04)')", "during) VALUES (ID, 1, '[2026-01-03,2026-01-04)')", false},
	{"a range that holds a day", "SELECT id FROM stay WHERE room = 1 AND during @> '2026-01-02'::date", "during) VALUES (ID, 1, daterange('2026-01-02', '2026-01-02', '[]'))", "during) VALUES (ID, 1, daterange('2026-01-02', '2026-01-02'))", false},
	{"a range of two columns", "SELECT count(*) FROM stay WHERE daterange(begins, ends, '[]') && daterange('2026-01-01', '2026-01-03')", "begins, ends) VALUES (ID, 1, '2026-01-02', '2026-01-02')", "begins, ends) VALUES (ID, 1, '2026-01-03', '2026-01-03')", false},
	{"OVERLAPS", "SELECT count(*) FROM stay WHERE (begins, ends) OVERLAPS ('2026-01-01'::date, '2026-01-03'::date)", "begins, ends) VALUES (ID, 1, '2026-01-02', '2026-01-04')", "begins, ends) VALUES (ID, 1, '2026-01-03', '2026-01-04')", false},
	{"the day in UTC, as Django asks", "SELECT count(*) FROM stay WHERE (stay.at AT TIME ZONE 'UTC')::date = '2026-01-01'::date", "at) VALUES (ID, 1, '2026-01-02 00:30+01')", "at) VALUES (ID, 1, '2026-01-02 00:00+00')", false},
	{"an array", "SELECT count(*) FROM stay WHERE room = ANY (ARRAY[1, 2])", "n) VALUES (ID, 2, 1)", "n) VALUES (ID, 3, 1)", false},
	{"the day of a day", "SELECT COUNT(*) FROM stay WHERE DATE(begins) = '2026-01-01' AND room = 1", "begins) VALUES (ID, 1, '2026-01-01')", "begins) VALUES (ID, 1, '2026-01-02')", true},
	{"the day", "SELECT COUNT(*) FROM stay WHERE DATE(begun) = '2026-01-01'", "begun) VALUES (ID, 1, '2026-01-01 23:00:00')", "begun) VALUES (ID, 1, '2026-01-02 00:00:00')", true},
	{"the day by a cast", "SELECT COUNT(*) FROM stay WHERE CAST(begun AS DATE) = '2026-01-01'", "begun) VALUES (ID, 1, '2026-01-01 23:00:00')", "begun) VALUES (ID, 1, '2026-01-02 00:00:00')", true},
	{"a day between two columns", "SELECT COUNT(*) FROM stay WHERE room = 1 AND '2026-01-02' BETWEEN begins AND ends", "begins, ends) VALUES (ID, 1, '2026-01-01', '2026-01-02')", "begins, ends) VALUES (ID, 1, '2026-01-03', '2026-01-04')", true},
	{"a sum of columns", "SELECT COUNT(*) FROM stay WHERE cap - n >= 2", "n, cap) VALUES (ID, 1, 1, 3)", "n, cap) VALUES (ID, 1, 2, 3)", true},
	{"two columns", "SELECT id FROM stay WHERE n < cap AND room = 1", "n, cap) VALUES (ID, 1, 1, 3)", "n, cap) VALUES (ID, 1, 3, 3)", true},
	{"a text that is trimmed and folded", "SELECT COUNT(*) FROM stay WHERE LOWER(TRIM(guest)) = 'ann'", "guest) VALUES (ID, 1, ' Ann ')", "guest) VALUES (ID, 1, 'Anne')", true},
	{"the beginning of a text", "SELECT id FROM stay WHERE LEFT(guest, 2) = 'an'", "guest) VALUES (ID, 1, 'anna')", "guest) VALUES (ID, 1, 'joan')", true},
	{"a product", "SELECT id FROM stay WHERE n * cap > 100 AND room = 1", "n, cap) VALUES (ID, 1, 11, 10)", "n, cap) VALUES (ID, 1, 10, 10)", true},
	{"a field of a moment", "SELECT COUNT(*) FROM stay WHERE EXTRACT(YEAR FROM begun) = 2026", "begun) VALUES (ID, 1, '2026-12-31 23:59:59')", "begun) VALUES (ID, 1, '2027-01-01 00:00:00')", true},
	{"rows", "SELECT COUNT(*) FROM stay WHERE (room, n) IN ((1, 7), (2, 8))", "n) VALUES (ID, 1, 7)", "n) VALUES (ID, 1, 8)", true},
	{"an hour later", "SELECT id FROM stay WHERE begun + interval '1 hour' > '2026-01-01 9:30'", "begun) VALUES (ID, 1, '2026-01-01 9:00')", "begun) VALUES (ID, 1, '2026-01-01 8:30')", false},
	{"a month", "SELECT id FROM stay WHERE date_trunc('month', begun) = '2026-1-1'", "begun) VALUES (ID, 1, '2026-01-31 9:00')", "begun) VALUES (ID, 1, '2026-02-01')", false},
	{"a document", "SELECT id FROM stay WHERE doc->>'state' = 'open' AND (doc->>'n')::int > 3", "doc) VALUES (ID, 1, '{\"state\": \"open\", \"n\": 4}')", "doc) VALUES (ID, 1, '{\"state\": \"open\", \"n\": 3}')", false},
	{"a part of a document", "SELECT id FROM stay WHERE doc @> '{\"state\": \"open\"}'", "doc) VALUES (ID, 1, '{\"n\": 1, \"state\": \"open\"}')", "doc) VALUES (ID, 1, '{\"open\": \"state\"}')", false},
	{"an element", "SELECT id FROM stay WHERE 'a' = ANY (tags)", "tags) VALUES (ID, 1, '{b,a}')", "tags) VALUES (ID, 1, '{b,A}')", false},
	{"arrays", "SELECT id FROM stay WHERE tags && ARRAY['a', 'c']", "tags) VALUES (ID, 1, '{c}')", "tags) VALUES (ID, 1, '{b}')", false},
	{"a regular expression", "SELECT id FROM stay WHERE guest ~ '^an'", "guest) VALUES (ID, 1, 'anna')", "guest) VALUES (ID, 1, 'joan')", false},
	{"what has not expired", "SELECT id FROM stay WHERE room = 1 AND at > now()", "at) VALUES (ID, 1, now() + interval '1 minute')", "at) VALUES (ID, 1, now() - interval '1 minute')", false},
	{"what begins today or later", "SELECT count(*) FROM stay WHERE begins >= current_date AND at < current_timestamp + interval '2 days'", "begins, at) VALUES (ID, 1, current_date, now() + interval '47 hours')", "begins, at) VALUES (ID, 1, current_date - 1, now())", false},
	{"what was made in the last hour", "SELECT EXISTS (SELECT 1 FROM stay WHERE at > now() - interval '1 hour' AND room = 1)", "at) VALUES (ID, 1, now() - interval '59 minutes')", "at) VALUES (ID, 1, now() - interval '61 minutes')", false},
	{"what is left of today", "SELECT COUNT(*) FROM stay WHERE room = 1 AND begun > LOCALTIMESTAMP", "begun) VALUES (ID, 1, '2999-01-01 00:00:00')", "begun) VALUES (ID, 1, '2020-01-01 00:00:00')", true},
	{"a default", "SELECT COUNT(*) FROM stay WHERE COALESCE(n, 0) < 1", "n) VALUES (ID, 1, NULL)", "n) VALUES (ID, 1, 1)", true},
}

// TestTerms plays these forms on PostgreSQL.
func TestTerms(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE stay (id INT PRIMARY KEY, room INT, during daterange, begins DATE, ends DATE, at TIMESTAMPTZ, begun TIMESTAMP, n INT, cap INT, price NUMERIC, guest TEXT, doc JSONB, tags TEXT[])")
	s.terms(false)
	for _, c := range []struct {
		name, query string
		args        []any
		row, want   string
	}{
		{"a parameter that is cast", "SELECT count(*) FROM stay WHERE room = $1::INTEGER AND n = $2::int8", []any{1, 2}, "n) VALUES (ID, 1, 2)", "G2 write skew"},
		{"a parameter of a sum", "SELECT count(*) FROM stay WHERE n + $1 <= cap", []any{2}, "n, cap) VALUES (ID, 1, 1, 3)", "G2 write skew"},
		{"a parameter of a sum, not met", "SELECT count(*) FROM stay WHERE n + $1 <= cap", []any{2}, "n, cap) VALUES (ID, 1, 2, 3)", ""},
		{"an array that is a parameter", "SELECT count(*) FROM stay WHERE room = ANY($1)", []any{[]int32{1, 7}}, "n) VALUES (ID, 1, 1)", "G2 write skew"},
		{"an array with a cast", "!SELECT count(*) FROM stay WHERE room = ANY($1::bigint[])", []any{[]int64{1, 7}}, "n) VALUES (ID, 1, 1)", "G2 write skew"},
		{"another room than those of an array", "SELECT count(*) FROM stay WHERE room = ANY($1)", []any{[]int32{2, 7}}, "n) VALUES (ID, 1, 1)", ""},
		{"a decimal", "SELECT count(*) FROM stay WHERE price > $1", []any{"1.50"}, "price) VALUES (ID, 1, 1.51)", "G2 write skew"},
		{"a decimal, not met", "SELECT count(*) FROM stay WHERE price > $1", []any{"1.50"}, "price) VALUES (ID, 1, 1.5)", ""},
		{"bounds that are parameters", "SELECT count(*) FROM stay WHERE during && daterange($1, $2, '[]')", []any{"2026-01-01", "2026-01-02"}, "during) VALUES (ID, 1, '[2026-01-02,2026-01-04)')", "G2 write skew"},
		{"a parameter beside the server's time", "SELECT id FROM stay WHERE at BETWEEN now() AND now() + interval '1 day' AND room = $1", []any{1}, "at) VALUES (ID, 1, now() + interval '23 hours')", "G2 write skew"},
		{"bounds that are parameters, not met", "SELECT count(*) FROM stay WHERE during && daterange($1, $2)", []any{"2026-01-01", "2026-01-02"}, "during) VALUES (ID, 1, '[2026-01-02,2026-01-04)')", ""},
	} {
		if _, err := ask(s.direct, "DELETE FROM stay"); err != nil {
			t.Fatal(err)
		}
		s.asked = func(i int) (string, []any) { return c.query, c.args }
		found, r := s.play("READ COMMITTED", "1 ?", "2 ?", "1 INSERT INTO stay (id, room, "+strings.Replace(c.row, "ID", "10", 1), "2 INSERT INTO stay (id, room, "+strings.Replace(c.row, "ID", "11", 1), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
	}
}

// TestTermsFamily plays those of MariaDB and its relatives.
func TestTermsFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE stay (id INT PRIMARY KEY, room INT, begins DATE, ends DATE, begun DATETIME, n INT, cap INT, guest VARCHAR(20), made TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP)")
	s.terms(true)
	if testserver.IsTiDB() {
		return
	}
	const early, late = "1764354698.25", "1764354698.999999" // 2025-11-28 18:31:38 and so many parts of a second
	for _, c := range []struct{ name, clock, where, row, want, unread string }{
		{"what has not begun", early, "begun > NOW()", "begun) VALUES (ID, 1, '2025-11-28 18:31:39')", "G2 write skew", ""},
		{"what has not begun, of before", early, "begun > NOW()", "begun) VALUES (ID, 1, '2025-11-28 18:31:38')", "", ""},
		{"what has not begun, in a statement of the protocol", early, "begun > NOW() AND room = ?", "begun) VALUES (ID, 1, '2025-11-28 18:31:39')", "G2 write skew", ""},
		{"what begins today", early, "begins = CURRENT_DATE AND room = 1", "begins) VALUES (ID, 1, '2025-11-28')", "G2 write skew", ""},
		{"what begins today, tomorrow", early, "begins = CURRENT_DATE AND room = 1", "begins) VALUES (ID, 1, '2025-11-29')", "", ""},
		{"what was made in the last hour", early, "made > NOW() - INTERVAL 1 HOUR AND room = 1", "n) VALUES (ID, 1, 7)", "G2 write skew", ""},
		{"what was made later", early, "made > NOW() AND room = 1", "n) VALUES (ID, 1, 7)", "", ""},
		{"the next second may have begun", late, "begun > NOW()", "begun) VALUES (ID, 1, '2025-11-28 19:31:39')", "", "the answer does not tell a value that the server computed"},
		{"fractions of seconds", early, "begun > NOW(3)", "begun) VALUES (ID, 1, '2025-11-28 19:31:39')", "", "the answer does not tell a value that the server computed"},
	} {
		if _, err := ask(s.direct, "DELETE FROM stay"); err != nil {
			t.Fatal(err)
		}
		s.asked = func(int) (string, []any) {
			if strings.Contains(c.where, "?") {
				return "SELECT id FROM stay WHERE " + c.where, []any{1}
			}
			return "SELECT id FROM stay WHERE " + c.where, nil
		}
		found, r := s.play("READ COMMITTED", "1 SET time_zone = '+00:00', timestamp = "+c.clock, "2 SET time_zone = '+00:00', timestamp = "+c.clock, "1 ?", "2 ?", "1 INSERT INTO stay (id, room, "+strings.Replace(c.row, "ID", "10", 1),
			"2 INSERT INTO stay (id, room, "+strings.Replace(c.row, "ID", "11", 1), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != c.want || (c.unread == "") != (r.Coverage.Unevaluated() == 0) || !strings.Contains(r.Coverage.String(), c.unread) {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
	}
}

// TestClockedWritesFamily: UPDATE and DELETE of what has expired, of which one finds no row and the other one comes too late, and near misses.
func TestClockedWritesFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("the server's time is not judged there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE ticket (id INT PRIMARY KEY, ends DATETIME, n INT)", "CREATE TABLE audit (id INT PRIMARY KEY, n INT)")
	const set = " SET time_zone = '+00:00', timestamp = 1764354698.25" // 2025-11-28 18:31:38
	for _, c := range []struct{ name, write, row, want string }{
		{"an UPDATE that finds none", "UPDATE ticket SET n = 1 WHERE ends < NOW()", "(1, '2025-11-28 18:31:37', 0)", "G2 write skew"},
		{"an UPDATE, of a row that lasts", "UPDATE ticket SET n = 1 WHERE ends < NOW()", "(1, '2025-11-28 18:31:38', 0)", ""},
		{"a DELETE that finds none", "DELETE FROM ticket WHERE ends < NOW() - INTERVAL 1 DAY", "(1, '2025-11-27 18:31:37', 0)", "G2 write skew"},
		{"a DELETE, of a row that lasts", "DELETE FROM ticket WHERE ends < NOW() - INTERVAL 1 DAY", "(1, '2025-11-27 18:31:38', 0)", ""},
	} {
		for _, sql := range []string{"DELETE FROM ticket", "DELETE FROM audit"} {
			if _, err := ask(s.direct, sql); err != nil {
				t.Fatal(err)
			}
		}
		found, r := s.play("READ COMMITTED", "1"+set, "2"+set, "1 "+c.write, "2 SELECT id FROM audit WHERE n = 5", "2 INSERT INTO ticket VALUES "+c.row, "1 INSERT INTO audit VALUES (1, 5)", "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != c.want || r.Coverage.Unevaluated() > 0 {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
	}
}

func (s *stand) terms(family bool) {
	s.t.Helper()
	for i, f := range slices.Concat(termForms, termForms) {
		level := "READ COMMITTED"
		if i >= len(termForms) {
			level = "REPEATABLE READ"
		}
		if family && (!f.family || testserver.IsTiDB() && strings.Contains(f.ask, "LOCALTIMESTAMP")) { // the server's time is not judged there
			continue
		}
		for _, row := range []string{f.mine, f.other} {
			if _, err := ask(s.direct, "DELETE FROM stay"); err != nil {
				s.t.Fatal(err)
			}
			insert := func(id string) string { return " INSERT INTO stay (id, room, " + strings.Replace(row, "ID", id, 1) }
			found, r := s.play(level, "1 "+f.ask, "2 "+f.ask, "1"+insert("10"), "2"+insert("11"), "1 COMMIT", "2 COMMIT")
			want := ""
			if row == f.mine {
				want = "G2 write skew"
			}
			if got := strings.Join(found, ", "); got != want {
				s.t.Errorf("%s, %s at %s: found %q, want %q; %s", f.name, row, level, got, want, r.Coverage)
			}
		}
	}
}

// limited are left joins with a LIMIT that showed all that they found, as the get() of Django asks, and near misses.
var limited = func() (list []form) {
	for _, c := range []struct{ name, tail, want string }{
		{"a join with LIMIT 21 that found one row", "LIMIT 21", "G2 write skew"},
		{"a join with LIMIT 1 that found one row", "LIMIT 1", ""},
	} {
		query := " SELECT b.id FROM booking b LEFT JOIN tag ON tag.id = b.id WHERE b.room IN (5, 8) ORDER BY b.id " + c.tail
		list = append(list, form{c.name, "1" + query + "\n2" + query + `
			1 INSERT INTO booking VALUES (10, 5, NULL, 'ann')
			2 INSERT INTO booking VALUES (11, 8, NULL, 'bob')
			1 COMMIT
			2 COMMIT`, c.want})
	}
	return list
}()

// TestLimited plays them.
func TestLimited(t *testing.T) {
	newStand(t, 2, bookings, "CREATE TABLE visit (id INT PRIMARY KEY, at TIMESTAMPTZ)", bookingTags[0], bookingTags[1], bookingTags[2], rooms[0], rooms[1]).forms(limited, "READ COMMITTED", "REPEATABLE READ")
}
