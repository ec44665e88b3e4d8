package live_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// A limit that HAVING checks: of rooms, 1 has two bookings of 4 and 5 hours, 2 has three of an hour, and 3 has one of a number of hours that is not known.
var roomHours = []string{"CREATE TABLE room (id INT PRIMARY KEY, floor INT, beds INT)", "INSERT INTO room VALUES (1, 1, 3), (2, 1, 3), (3, 1, 2), (4, 2, 1)", "CREATE TABLE booking (id INT PRIMARY KEY, room INT, day INT, hours INT, guest VARCHAR(20))", "CREATE TABLE mark (id INT PRIMARY KEY, n INT)"}

var roomFill = []string{"DELETE FROM booking", "INSERT INTO booking VALUES (1, 1, 1, 4, 'ann'), (2, 1, 1, 5, 'bob'), (3, 2, 1, 1, 'ann'), (4, 2, 1, 1, 'bob'), (5, 2, 1, 1, 'eve'), (6, 3, 1, NULL, 'eve')"}

// groupForm is a query with HAVING, and what two transactions do after each of them has read. all says that each finds what the other one does; else nothing is found.
type groupForm struct {
	name, query, first, second string
	all                        bool
}

const (
	another1 = "INSERT INTO booking VALUES (10, 1, 1, 2, 'x')"
	another2 = "INSERT INTO booking VALUES (11, 1, 1, 2, 'y')"
)

var groupForms = []groupForm{
	{"one more is the third", "SELECT room, count(*) FROM booking WHERE day = 1 GROUP BY room HAVING count(*) >= 3", another1, another2, true},
	{"one more is the third, in an answer without rows", "SELECT room, count(*) FROM booking WHERE room = 1 GROUP BY room HAVING count(*) >= 3", another1, another2, true},
	{"one more is the third, without a count in the answer", "SELECT room FROM booking WHERE room < 2 GROUP BY room HAVING count(*) > 2 ORDER BY room", another1, another2, true},
	{"one more is only the third of four", "SELECT room, count(*) FROM booking WHERE day = 1 GROUP BY room HAVING count(*) >= 4", another1, another2, false},
	{"two more are the fourth", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING count(*) >= 4", "INSERT INTO booking VALUES (10, 1, 1, 2, 'x'), (20, 1, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 2, 'y'), (21, 1, 1, 2, 'y')", true},
	{"two more of two rooms", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING count(*) >= 4", "INSERT INTO booking VALUES (10, 1, 1, 2, 'x'), (20, 7, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 2, 'y'), (21, 7, 1, 2, 'y')", false},
	{"one more of a room that is hidden", "SELECT room FROM booking GROUP BY room HAVING count(*) > 3", "INSERT INTO booking VALUES (10, 3, 1, 2, 'x')", another2, false},
	{"one more of a room that is shown, without its count", "SELECT room FROM booking GROUP BY room HAVING count(*) > 2", "INSERT INTO booking VALUES (10, 2, 1, 2, 'x')", another2, false},
	{"one more of another day", "SELECT room FROM booking WHERE day = 1 AND room = 1 GROUP BY room HAVING count(*) >= 3", "INSERT INTO booking VALUES (10, 1, 2, 2, 'x')", another2, false},
	{"one more of another room", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING count(*) >= 3", "INSERT INTO booking VALUES (10, 2, 1, 2, 'x')", another2, false},
	{"the first of a room", "SELECT room FROM booking WHERE room > 6 GROUP BY room HAVING count(*) < 3", "INSERT INTO booking VALUES (10, 7, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 8, 1, 2, 'y')", true},
	{"the first of a room, of which two are asked for", "SELECT room FROM booking WHERE room > 6 GROUP BY room HAVING count(*) > 1", "INSERT INTO booking VALUES (10, 7, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 8, 1, 2, 'y')", false},
	{"a sum beyond ten", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING sum(hours) > 10", another1, another2, true},
	{"a sum beyond eleven", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING sum(hours) > 11", another1, another2, false},
	{"a sum that was NULL", "SELECT room FROM booking WHERE room = 3 GROUP BY room HAVING coalesce(sum(hours), 0) >= 2", "INSERT INTO booking VALUES (10, 3, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 3, 1, 3, 'y')", true},
	{"a sum that stays NULL", "SELECT room FROM booking WHERE room = 3 GROUP BY room HAVING coalesce(sum(hours), 0) > 0", "INSERT INTO booking VALUES (10, 3, 1, NULL, 'x')", "INSERT INTO booking VALUES (11, 3, 1, NULL, 'y')", false},
	{"a greatest value", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING max(hours) > 5", "INSERT INTO booking VALUES (10, 1, 1, 6, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 7, 'y')", true},
	{"a value below the greatest one", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING max(hours) > 5", "INSERT INTO booking VALUES (10, 1, 1, 5, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 7, 'y')", false},
	{"a least value", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING min(hours) <= 3", "INSERT INTO booking VALUES (10, 1, 1, 3, 'x')", another2, true},
	{"a count of values", "SELECT room FROM booking WHERE room = 3 GROUP BY room HAVING count(hours) = 1", "INSERT INTO booking VALUES (10, 3, 1, 3, 'x')", "INSERT INTO booking VALUES (11, 3, 1, 4, 'y')", true},
	{"a count of values that NULL is not among", "SELECT room FROM booking WHERE room = 3 GROUP BY room HAVING count(hours) = 1", "INSERT INTO booking VALUES (10, 3, 1, NULL, 'x')", "INSERT INTO booking VALUES (11, 3, 1, 4, 'y')", false},
	{"two conditions", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING count(*) > 2 AND sum(hours) > 10", another1, another2, true},
	{"two conditions, of which one does not come true", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING count(*) > 2 AND sum(hours) > 15", another1, another2, false},
	{"groups of two columns", "SELECT room, day, count(*) FROM booking WHERE room = 1 GROUP BY room, day HAVING count(*) > 2", another1, another2, true},
	{"groups of two columns, of another day", "SELECT room, day, count(*) FROM booking WHERE room = 1 GROUP BY room, day HAVING count(*) > 2", "INSERT INTO booking VALUES (10, 1, 2, 2, 'x')", another2, false},
	{"a group that leaves", "SELECT room FROM booking WHERE room = 2 GROUP BY room HAVING count(*) < 3", "DELETE FROM booking WHERE id = 3", "DELETE FROM booking WHERE id = 4", true},
	{"a row that moves into a group", "SELECT room FROM booking WHERE room < 2 GROUP BY room HAVING count(*) > 2", "UPDATE booking SET room = 1 WHERE id = 3", "UPDATE booking SET room = 1 WHERE id = 4", true},
	{"a value that takes the sum over the border", "SELECT room FROM booking WHERE room = 1 GROUP BY room HAVING sum(hours) > 10", "UPDATE booking SET hours = 7 WHERE id = 1", "UPDATE booking SET hours = 7 WHERE id = 2", true},
	{"a count of groups", "SELECT count(*) FROM (SELECT room AS c, count(id) AS n FROM booking WHERE day = 1 GROUP BY room HAVING count(id) >= 3) q", another1, another2, true},
	{"a count of groups, of which none is new", "SELECT count(*) FROM (SELECT room AS c, count(id) AS n FROM booking WHERE day = 1 GROUP BY room HAVING count(id) >= 2) q", another1, another2, false},
	{"a count that HAVING hides", "SELECT count(*) FROM booking WHERE room = 1 HAVING count(*) > 2", another1, another2, true},
	{"a count that HAVING hides, far below", "SELECT count(*) FROM booking WHERE room = 1 HAVING count(*) > 4", another1, another2, false},
}

// countForms compare with what a subquery counts.
var countForms = []groupForm{
	{"rooms with three bookings", "SELECT * FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) >= 3", another1, another2, true},
	{"rooms with three bookings, as an ORM asks", `SELECT * FROM room WHERE room.floor = 1 AND room.id < 2 AND (SELECT count(*) FROM booking WHERE room.id = booking.room AND day = 1) >= 3 ORDER BY id LIMIT 15`, another1, another2, true},
	{"rooms with three bookings, of another day", "SELECT * FROM room r WHERE r.id < 2 AND (SELECT count(*) FROM booking b WHERE b.room = r.id AND b.day = 1) >= 3", "INSERT INTO booking VALUES (10, 1, 2, 2, 'x')", another2, false},
	{"rooms with three bookings, of another room", "SELECT * FROM room r WHERE r.id < 2 AND (SELECT count(*) FROM booking b WHERE b.room = r.id) >= 3", "INSERT INTO booking VALUES (10, 2, 1, 2, 'x')", another2, false},
	{"rooms with four bookings", "SELECT * FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) >= 4", another1, another2, false},
	{"two more bookings", "SELECT * FROM room r WHERE r.id = 1 AND (SELECT count(*) FROM booking b WHERE b.room = r.id) >= 4", "INSERT INTO booking VALUES (10, 1, 1, 2, 'x'), (20, 1, 1, 2, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 2, 'y'), (21, 1, 1, 2, 'y')", true},
	{"rooms with a free bed", "SELECT id FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) < r.beds", another1, another2, true},
	{"rooms with a free bed, of which there is another one", "SELECT id FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) + 0 < r.beds", another1, another2, false},
	{"rooms with a free bed, of a room with two", "SELECT id FROM room r WHERE r.beds > (SELECT count(*) FROM booking b WHERE b.room = r.id AND b.hours > 4)", "INSERT INTO booking VALUES (10, 1, 1, 6, 'x')", "INSERT INTO booking VALUES (11, 1, 1, 6, 'y')", false},
	{"rooms without bookings", "SELECT id FROM room r WHERE 0 = (SELECT count(*) FROM booking b WHERE b.room = r.id)", "INSERT INTO booking VALUES (10, 4, 1, 6, 'x')", "INSERT INTO booking VALUES (11, 4, 1, 6, 'y')", true},
	{"rooms with less than eleven hours", "SELECT id FROM room r WHERE r.floor = 1 AND (SELECT coalesce(sum(b.hours), 0) FROM booking b WHERE b.room = r.id) < 11", another1, another2, true},
	{"rooms with less than twelve hours", "SELECT id FROM room r WHERE r.floor = 1 AND (SELECT coalesce(sum(b.hours), 0) FROM booking b WHERE b.room = r.id) < 12", another1, another2, false},
	{"how many rooms have three", "SELECT count(*) FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) > 2", another1, another2, true},
	{"how many rooms have four", "SELECT count(*) FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) > 3", another1, another2, false},
	{"a LIMIT that hides rooms", "SELECT id FROM room r WHERE (SELECT count(*) FROM booking b WHERE b.room = r.id) < r.beds ORDER BY id LIMIT 1", "INSERT INTO booking VALUES (10, 3, 1, 6, 'x')", "INSERT INTO booking VALUES (11, 3, 1, 6, 'y')", false},
}

// TestCompared: which changes take what a subquery counts over the border that a condition sets, and near misses.
func TestCompared(t *testing.T) {
	newStand(t, 2, roomHours...).groupForms(countForms, "", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
}

// TestHiddenGroups: which changes take a group over the border that HAVING sets, and near misses.
func TestHiddenGroups(t *testing.T) {
	s := newStand(t, 2, roomHours...)
	s.groupForms(groupForms, "", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
	text := openStand(t, testserver.Postgres(t).Database(t), false, 2, strings.ReplaceAll(roomHours[2], "room INT", "room TEXT"), roomHours[3])
	for _, f := range groupForms[:2] {
		text.fillRooms()
		quoted := func(q string) string {
			return strings.NewReplacer("room = 1 ", "room = '1' ", "(10, 1,", "(10, '1',", "(11, 1,", "(11, '1',").Replace(q)
		}
		if found, r := text.playGroups("READ COMMITTED", quoted(f.query), quoted(f.first), quoted(f.second)); len(found) != 1 {
			t.Errorf("rooms with names: %s: found %q; %s", f.name, found, r)
		}
	}
}

// TestHiddenGroupsFamily plays them on MariaDB, or another product of the family.
func TestHiddenGroupsFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, roomHours...)
	not := "a count that HAVING hides; a count of groups"
	switch {
	case testserver.IsTiDB(), testserver.IsMySQL():
		for _, f := range groupForms {
			not += "; " + f.name
		}
	}
	s.groupForms(groupForms, not, "READ COMMITTED", "REPEATABLE READ")
}

// TestHiddenGroupsPrepared: the border may be a parameter.
func TestHiddenGroupsPrepared(t *testing.T) {
	setup := append(slices.Clone(roomHours), roomFill[1])
	for border, want := range map[int]string{3: "G2 write skew", 4: ""} {
		stands := []*stand{newStand(t, 2, setup...)}
		if !testserver.IsTiDB() {
			stands = append(stands, openStand(t, testserver.Family(t).Database(t), true, 2, setup...))
		}
		for _, s := range stands {
			s.asked = func(int) (string, []any) {
				return s.numbered("SELECT room, count(*) FROM booking WHERE room < $1 GROUP BY room HAVING count(*) >= $2"), []any{2, border}
			}
			if found, coverage := s.playGroups("READ COMMITTED", "?", another1, another2); strings.Join(found, ", ") != want {
				t.Errorf("border %d, family %t: found %q, want %q; %s", border, s.family, found, want, coverage)
			}
		}
		s := stands[0]
		s.fillRooms()
		s.asked = func(int) (string, []any) {
			return "SELECT id FROM room WHERE floor = $1 AND (SELECT count(*) FROM booking WHERE booking.room = room.id AND day = $2) >= $3", []any{1, 1, border}
		}
		if found, coverage := s.playGroups("READ COMMITTED", "?", another1, another2); strings.Join(found, ", ") != want {
			t.Errorf("counts beyond %d: found %q, want %q; %s", border, found, want, coverage)
		}
	}
}

func (s *stand) fillRooms() {
	for _, q := range roomFill {
		if _, err := ask(s.direct, q); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *stand) playGroups(level, query, first, second string) (found []string, coverage string) {
	found, r := s.play(level, "1 "+query, "2 "+query, "1 "+first, "2 "+second, "1 COMMIT", "2 COMMIT")
	return found, r.Coverage.String()
}

func (s *stand) groupForms(list []groupForm, not string, levels ...string) {
	for _, level := range levels {
		for _, f := range list {
			s.fillRooms()
			found, coverage := s.playGroups(level, f.query, f.first, f.second)
			want := ""
			if f.all && level != "SERIALIZABLE" && !unjudged(f.name, not) {
				want = "G2 write skew"
			}
			if got := strings.Join(found, ", "); got != want && !(s.family && want != "" && got == "G2-item write skew") { // the log names the rows of hidden groups, too
				s.t.Errorf("%s at %s: found %q, want %q; %s", f.name, level, got, want, coverage)
			}
		}
	}
}

// composeGroups makes a transaction of queries with HAVING and of changes.
func composeGroups(rng *rand.Rand, txn int) (p program) {
	for range 1 + rng.IntN(3) {
		n, v, id := rng.IntN(4), rng.IntN(3), 1+rng.IntN(3)
		aggregate := pick(rng, "count(*)", "count(v)", "sum(id)", "max(id)", "min(id)", "sum(v)", "coalesce(sum(v), 0)")
		than := pick(rng, " > ", " >= ", " < ", " = ", " <> ") + fmt.Sprint(n)
		having := aggregate + than
		p = append(p, struct {
			query string
			args  []any
		}{query: pick(rng, "SELECT v, count(*) FROM r GROUP BY v HAVING "+having+" ORDER BY v", fmt.Sprintf("SELECT v FROM r WHERE id > %d GROUP BY v HAVING %s ORDER BY v", id, having),
			fmt.Sprintf("SELECT v FROM r WHERE v = %d GROUP BY v HAVING %s ORDER BY v", v, having), "SELECT count(*) FROM r HAVING "+having,
			"SELECT count(*) FROM (SELECT v, count(*) AS n FROM r GROUP BY v HAVING "+having+") g", "SELECT q.id FROM q WHERE (SELECT "+aggregate+" FROM r WHERE r.v = q.id)"+than,
			fmt.Sprintf("INSERT INTO r VALUES (%d, %d, 'x')", 10*txn+len(p), v), fmt.Sprintf("INSERT INTO r VALUES (%d, %d, 'x'), (%d, %d, 'x')", 10*txn+len(p), v, 100*txn+len(p), n),
			fmt.Sprintf("UPDATE r SET v = %d WHERE id = %d", v, id), fmt.Sprintf("UPDATE r SET v = %d WHERE v = %d", n, v), fmt.Sprintf("DELETE FROM r WHERE id = %d", id), fmt.Sprintf("UPDATE r SET tag = 't%d' WHERE id = %d", txn, id))})
	}
	return p
}

// TestRandomGroups compares what is found of random queries with HAVING and changes with executing them in every serial order.
func TestRandomGroups(t *testing.T) {
	s := newStand(t, 3, ofRandom...)
	s.compose = composeGroups
	s.random("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE")
}

// TestRandomGroupsFamily does the same on MariaDB, or another product of the family.
func TestRandomGroupsFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 3, ofRandom...)
	s.compose = composeGroups
	s.random("READ COMMITTED", "REPEATABLE READ")
}
