package live_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// courses are tables with foreign keys: each enrollment has a course, and perhaps a student. A note refers to a course without a foreign key.
var courses = []string{"CREATE TABLE course (id INT PRIMARY KEY, floor INT NOT NULL)", "CREATE TABLE student (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE)",
	"CREATE TABLE enrollment (id INT PRIMARY KEY, course INT NOT NULL REFERENCES course, student INT REFERENCES student, grade INT)", "CREATE TABLE note (id INT PRIMARY KEY, course INT, stars INT)",
	"INSERT INTO course VALUES (1, 3), (2, 3), (5, 4)", "INSERT INTO student VALUES (1, 'ann'), (2, 'bob'), (3, 'eve')"}

// joinForm is a query, and what two transactions insert after each of them has read.
type joinForm struct{ name, query, first, second, want string }

// joinForms are queries over joins.
var joinForms = []joinForm{
	{"an inner join by a foreign key", "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", "G2 write skew"},
	{"another grade", "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 2, NULL, 8)", ""},
	{"a foreign key that may be NULL", "SELECT e.id, s.name FROM enrollment e JOIN student s ON s.id = e.student WHERE e.grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"new rows to which nothing refers", "SELECT c.id, e.id AS e FROM course c JOIN enrollment e ON e.course = c.id WHERE c.id > 0", "course VALUES (10, 3)", "course VALUES (11, 3)", ""},
	{"the key of the other table", "SELECT e.id FROM enrollment e JOIN course c ON c.id = e.course WHERE c.id = 1", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, 2, 8)", "G2 write skew"},
	{"another key of the other table", "SELECT e.id FROM enrollment e JOIN course c ON c.id = e.course WHERE c.id = 1", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", ""},
	{"rows of a join that has some", "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE c.floor = 3", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", "G2 write skew"},
	{"rows of a join that has some, of another floor", "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE c.floor = 3", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows of a join that has none", "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE c.floor = 4", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a join without a foreign key", "SELECT n.id, c.floor FROM note n JOIN course c ON c.id = n.course", "note VALUES (10, 1, 5)", "note VALUES (11, 2, 5)", "G2 write skew"},
	{"a join without a foreign key, and nothing to join", "SELECT n.id, c.floor FROM note n JOIN course c ON c.id = n.course", "note VALUES (10, 7, 5)", "note VALUES (11, 7, 5)", ""},
	{"a link table", "SELECT c.id, s.name FROM course c JOIN enrollment e ON c.id = e.course JOIN student s ON s.id = e.student WHERE c.id IN (1, 2)", "enrollment VALUES (10, 1, 2, 9)", "enrollment VALUES (11, 2, 3, 9)", "G2 write skew"},
	{"a link table without the student", "SELECT c.id, s.name FROM course c JOIN enrollment e ON c.id = e.course JOIN student s ON s.id = e.student WHERE c.id IN (1, 2)", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 2, 3, 9)", ""},
	{"a left join, the side that may be missing", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.id = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a left join, for another course", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.id = 5", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", ""},
	{"a left join with a condition of its own", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id AND e.grade = 9 WHERE c.floor = 3", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", "G2 write skew"},
	{"a left join with another grade", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id AND e.grade = 9 WHERE c.floor = 3", "enrollment VALUES (10, 1, NULL, 8)", "enrollment VALUES (11, 2, NULL, 8)", ""},
	{"a left join with a condition on the side that stays", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id AND c.floor = 4", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 5, NULL, 8)", "G2 write skew"},
	{"a left join with a condition that the side that stays does not fulfil", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id AND c.floor = 4", "enrollment VALUES (10, 1, NULL, 8)", "enrollment VALUES (11, 1, NULL, 8)", ""},
	{"a left join that counts", "SELECT c.id, count(e.id) FROM course c LEFT JOIN enrollment e ON e.course = c.id GROUP BY c.id", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a left join that counts a part", "SELECT c.id, count(e.id) FROM course c LEFT JOIN enrollment e ON e.course = c.id AND e.grade < 5 GROUP BY c.id", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a LIMIT that hides no group", "SELECT c.id, coalesce(sum(n.stars), 0) FROM course c LEFT JOIN note n ON n.course = c.id WHERE c.id = 5 GROUP BY c.id LIMIT 21", "note VALUES (10, 5, 5)", "note VALUES (11, 5, 5)", "G2 write skew"},
	{"a LIMIT that hides no group, for another course", "SELECT c.id, coalesce(sum(n.stars), 0) FROM course c LEFT JOIN note n ON n.course = c.id WHERE c.id = 5 GROUP BY c.id LIMIT 21", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 5)", ""},
	{"a LIMIT of the only group", "SELECT c.id, coalesce(sum(n.grade), 0) FROM course c LEFT JOIN enrollment n ON n.course = c.id WHERE c.id = 5 GROUP BY c.id, c.floor LIMIT 1 OFFSET 0", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a LIMIT of the only group, for another course", "SELECT c.id, coalesce(sum(n.grade), 0) FROM course c LEFT JOIN enrollment n ON n.course = c.id WHERE c.id = 5 GROUP BY c.id, c.floor LIMIT 1 OFFSET 0", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"a LIMIT that may hide groups", "SELECT c.id, coalesce(sum(n.stars), 0) FROM course c LEFT JOIN note n ON n.course = c.id WHERE c.floor = 4 GROUP BY c.id LIMIT 1", "note VALUES (10, 5, 5)", "note VALUES (11, 5, 5)", ""},
	{"a LIMIT that may hide groups of the other table", "SELECT n.stars, count(*) FROM course c LEFT JOIN note n ON n.course = c.id WHERE c.id = 5 GROUP BY n.stars LIMIT 1", "note VALUES (10, 5, 5)", "note VALUES (11, 5, 5)", ""},
	{"a count over a left join", "SELECT count(*) FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.floor = 4", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a count over a left join, of another floor", "SELECT count(*) FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.floor = 4", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a left join that the server may leave out", "SELECT e.id FROM enrollment e LEFT JOIN student s ON s.id = e.student WHERE e.grade = 7", "student VALUES (10, 'x')", "student VALUES (11, 'y')", ""},
	{"a left join to one that there is not", "SELECT n.id, c.floor FROM note n LEFT JOIN course c ON c.id = n.course", "course VALUES (9, 3)", "course VALUES (10, 3)", ""},
	{"a left join to one that there is not, of which there is one then", "SELECT n.id, c.floor FROM note n LEFT JOIN course c ON c.id = n.course WHERE n.stars = 4", "course VALUES (7, 3)", "note VALUES (11, 1, 4)", "G2 write skew"},
	{"a condition on the side that may be missing", "SELECT e.id FROM enrollment e LEFT JOIN course c ON c.id = e.course WHERE (c.id = 5)", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"two left joins", "SELECT c.id, s.name FROM course c LEFT JOIN enrollment e ON e.course = c.id LEFT JOIN student s ON s.id = e.student WHERE c.id = 5", "enrollment VALUES (10, 5, 1, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a left join of a join", "SELECT c.id, s.name FROM course c LEFT JOIN (enrollment e JOIN student s ON s.id = e.student) ON e.course = c.id WHERE c.id = 5", "enrollment VALUES (10, 5, 1, 9)", "enrollment VALUES (11, 5, 2, 9)", "G2 write skew"},
	{"a left join of a join without the student", "SELECT c.id, s.name FROM course c LEFT JOIN (enrollment e JOIN student s ON s.id = e.student) ON e.course = c.id WHERE c.id = 5", "enrollment VALUES (10, 5, 1, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a LIMIT that hides no row", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.id = 5 LIMIT 2", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a LIMIT that may hide rows", "SELECT c.id, e.id AS e FROM course c LEFT JOIN enrollment e ON e.course = c.id WHERE c.id = 5 LIMIT 1", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows that look alike", "SELECT DISTINCT c.id FROM course c JOIN enrollment e ON e.course = c.id", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"rows of which the key is shown", "SELECT DISTINCT e.id, c.floor FROM course c JOIN enrollment e ON e.course = c.id WHERE e.grade = 9", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"a page of which the key is shown", "SELECT DISTINCT d.e_id AS ids, d.e_grade FROM (SELECT e.id AS e_id, e.grade AS e_grade, c.floor FROM enrollment e JOIN course c ON c.id = e.course LEFT JOIN student s ON s.id = e.student WHERE e.grade > 4) d ORDER BY d.e_grade, ids LIMIT 5 OFFSET 0",
		"enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"a full page", "SELECT DISTINCT d.e_id AS ids, d.e_grade FROM (SELECT e.id AS e_id, e.grade AS e_grade, c.floor FROM enrollment e JOIN course c ON c.id = e.course LEFT JOIN student s ON s.id = e.student WHERE e.grade > 4) d ORDER BY d.e_grade, ids LIMIT 1",
		"enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"a page of which the key is not shown", "SELECT DISTINCT d.e_grade FROM (SELECT e.id AS e_id, e.grade AS e_grade, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade > 4) d ORDER BY d.e_grade LIMIT 5", "enrollment VALUES (10, 1, NULL, 5)", "enrollment VALUES (11, 1, NULL, 5)", ""},
	{"rows whose course is one of a floor", "SELECT e.id FROM enrollment e WHERE e.course IN (SELECT id FROM course WHERE floor = 3)", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"rows whose course is one of another floor", "SELECT e.id FROM enrollment e WHERE e.course IN (SELECT id FROM course WHERE floor = 3)", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"a count of rows whose course is one of a floor", "SELECT count(*) FROM enrollment WHERE course IN (SELECT c.id FROM course c WHERE c.floor = 4) AND grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a count of rows whose course is one of a floor, with another grade", "SELECT count(*) FROM enrollment WHERE course IN (SELECT c.id FROM course c WHERE c.floor = 4) AND grade = 9", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows that find themselves", "SELECT count(*) FROM enrollment e WHERE e.id IN (SELECT e.id FROM enrollment e WHERE e.course = 5) AND e.grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"rows that do not find themselves", "SELECT count(*) FROM enrollment e WHERE e.id IN (SELECT e.id FROM enrollment e WHERE e.course = 5) AND e.grade = 9", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows that find themselves, and are not asked for", "SELECT count(*) FROM enrollment e WHERE e.id IN (SELECT e.id FROM enrollment e WHERE e.course = 5) AND e.grade = 9", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows that find themselves, without a key", "SELECT e.id FROM enrollment e WHERE EXISTS (SELECT 1 FROM enrollment f WHERE f.student = e.student AND f.grade = 9)", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"courses that have one", "SELECT c.id FROM course c WHERE EXISTS (SELECT 1 FROM enrollment e WHERE e.course = c.id AND e.grade = 9)", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"courses that have one, and get one of another grade", "SELECT c.id FROM course c WHERE EXISTS (SELECT 1 FROM enrollment e WHERE e.course = c.id AND e.grade = 9)", "enrollment VALUES (10, 2, NULL, 8)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"courses that have one, and get another one", "SELECT c.id FROM course c WHERE EXISTS (SELECT 1 FROM enrollment e WHERE e.course = c.id AND e.grade > 4)", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count of courses that have none", "SELECT count(*) FROM course WHERE id NOT IN (SELECT course FROM enrollment WHERE grade = 9) AND floor = 3", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"a count of courses that have none, of another floor", "SELECT count(*) FROM course WHERE id NOT IN (SELECT course FROM enrollment WHERE grade = 9) AND floor = 3", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"a count of courses that a left join says have none", "SELECT count(*) FROM course c LEFT JOIN enrollment e ON e.course = c.id AND e.grade = 9 WHERE e.id IS NULL AND c.floor = 3", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"a count of courses that a left join says have none, with another grade", "SELECT count(*) FROM course c LEFT JOIN enrollment e ON e.course = c.id AND e.grade = 9 WHERE e.id IS NULL AND c.floor = 3", "enrollment VALUES (10, 2, NULL, 8)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"students of a course, through a link table", "SELECT s.id FROM student s WHERE EXISTS (SELECT 1 FROM enrollment e, course c WHERE e.student = s.id AND c.id = e.course AND c.floor = 4)", "enrollment VALUES (10, 5, 1, 9)", "enrollment VALUES (11, 5, 2, 9)", "G2 write skew"},
	{"students of another course, through a link table", "SELECT s.id FROM student s WHERE EXISTS (SELECT 1 FROM enrollment e, course c WHERE e.student = s.id AND c.id = e.course AND c.floor = 4)", "enrollment VALUES (10, 1, 1, 9)", "enrollment VALUES (11, 5, 2, 9)", ""},
	{"one of a unique name", "SELECT e.id, s.name FROM enrollment e JOIN student s ON s.id = e.student WHERE s.name = 'ann' LIMIT 21", "enrollment VALUES (10, 5, 1, 9)", "enrollment VALUES (11, 2, 1, 9)", "G2 write skew"},
	{"another one of a unique name", "SELECT e.id, s.name FROM enrollment e JOIN student s ON s.id = e.student WHERE s.name = 'ann' LIMIT 21", "enrollment VALUES (10, 5, 2, 9)", "enrollment VALUES (11, 2, 3, 9)", ""},
}

// ofFamilyToo are the courses for the MySQL family.
func ofFamilyToo() (list []string) {
	for _, q := range courses {
		list = append(list, strings.NewReplacer("REFERENCES course", "REFERENCES course (id)", "REFERENCES student", "REFERENCES student (id)").Replace(q))
	}
	return list
}

// Not judged in the family: forms that need a list beside rows, and most of those with subqueries.
const unlisted = "rows of a join that has some; rows of a join that has none; a join without a foreign key; a left join with a condition on the side that stays; one of a unique name; a LIMIT that hides no group; " +
	"rows whose course is one of a floor; rows that find themselves; a count of rows whose course is one of a floor; courses that have one; a count of courses that have none; a count of courses that a left join says have none; students of a course, through a link table"

func unjudged(name, list string) bool { return slices.Contains(strings.Split(list, "; "), name) }

// TestJoinForms: which new rows a join would have found, and near misses.
func TestJoinForms(t *testing.T) {
	newStand(t, 2, courses...).joinForms(joinForms, "", "READ COMMITTED", "SERIALIZABLE")
}

// TestJoinFormsFamily plays them on MariaDB, or another product of the family.
func TestJoinFormsFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("joins are not judged there")
	}
	openStand(t, testserver.Family(t).Database(t), true, 2, ofFamilyToo()...).joinForms(joinForms, unlisted, "READ COMMITTED", "REPEATABLE READ")
}

// joinForms plays them. not names those that are not judged there.
func (s *stand) joinForms(list []joinForm, not string, levels ...string) {
	t := s.t
	for _, level := range levels {
		for _, f := range list {
			for _, q := range []string{"DELETE FROM enrollment", "DELETE FROM note", "DELETE FROM course WHERE id > 5", "DELETE FROM student WHERE id > 3", "INSERT INTO enrollment VALUES (1, 1, 1, 5)", "INSERT INTO note VALUES (1, 1, 5), (2, 7, 4)"} {
				if _, err := ask(s.direct, q); err != nil {
					t.Fatal(err)
				}
			}
			want := f.want
			if level == "SERIALIZABLE" || unjudged(f.name, not) || s.family && testserver.IsMySQL() && f.name == "a page of which the key is shown" {
				want = ""
			}
			found, r := s.play(level, "1 "+f.query, "2 "+f.query, "1 INSERT INTO "+f.first, "2 INSERT INTO "+f.second, "1 COMMIT", "2 COMMIT")
			if got := strings.Join(found, ", "); got != want {
				t.Errorf("%s at %s: found %q, want %q; %s", f.name, level, got, want, r.Coverage)
			}
		}
	}
}

// TestPagesOfJoinsFamily: a full page asks for the rows in front of its end, also where it has each row of one table once, as TypeORM's pages do.
func TestPagesOfJoinsFamily(t *testing.T) {
	if testserver.IsTiDB() || testserver.IsMySQL() {
		t.Skip("derived tables do not tell their rows there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, append(ofFamilyToo(), "INSERT INTO enrollment VALUES (1, 1, 1, 5), (2, 2, NULL, 4)")...)
	const (
		page = "SELECT DISTINCT d.e_id AS ids, d.e_grade FROM (SELECT e.id AS e_id, e.grade AS e_grade, c.floor AS c_floor FROM enrollment e JOIN course c ON c.id = e.course " +
			"LEFT JOIN student s ON s.id = e.student WHERE e.grade > 2) d ORDER BY "
		join = "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course ORDER BY "
	)
	for _, c := range []struct{ query, grade, want string }{
		{page + "d.e_grade DESC, d.e_id LIMIT 1", "9", "G2 write skew"},
		{page + "d.e_grade DESC, d.e_id LIMIT 1", "4", ""},
		{page + "d.e_grade DESC, d.e_id LIMIT 1 OFFSET 1", "9", "G2 write skew"},
		{page + "d.e_grade DESC, d.e_id LIMIT 1 OFFSET 1", "3", ""},
		{page + "d.e_grade DESC, d.e_id LIMIT 3", "3", "G2 write skew"},
		{page + "d.c_floor DESC, d.e_id LIMIT 1", "9", ""},
		{page + "d.e_grade + 0 DESC, d.e_id LIMIT 1", "9", ""},
		{page + "d.e_grade DESC LIMIT 1", "5", ""},
		{strings.Replace(page, "d.e_grade", "d.c_floor", 1) + "d.e_grade DESC, d.e_id LIMIT 1", "9", ""},
		{join + "e.grade DESC, e.id LIMIT 1", "9", "G2 write skew"},
		{join + "e.grade DESC, e.id LIMIT 1", "4", ""},
		{join + "c.floor DESC, e.id LIMIT 1", "9", ""},
	} {
		if _, err := ask(s.direct, "DELETE FROM enrollment WHERE id > 2"); err != nil {
			t.Fatal(err)
		}
		insert := func(id string) string { return " INSERT INTO enrollment VALUES (" + id + ", 1, NULL, " + c.grade + ")" }
		found, r := s.play("REPEATABLE READ", "1 "+c.query, "2 "+c.query, "1"+insert("10"), "2"+insert("11"), "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s, grade %s: found %q, want %q; %s", c.query, c.grade, got, c.want, r.Coverage)
		}
	}
}

// TestForeignKeysDeferred: where a foreign key is checked at COMMIT, a transaction that has deleted a course finds no row that joins it, whoever inserts one.
func TestForeignKeysDeferred(t *testing.T) {
	s := newStand(t, 2, courses[0], courses[1], strings.Replace(courses[2], "REFERENCES course", "REFERENCES course DEFERRABLE INITIALLY DEFERRED", 1), courses[3], courses[4])
	for again, want := range map[string]string{"DELETE FROM course WHERE id = 1": "", "DELETE FROM course WHERE id = 2": "G2 write skew"} {
		for _, q := range []string{"DELETE FROM enrollment", "DELETE FROM note"} {
			if _, err := ask(s.direct, q); err != nil {
				t.Fatal(err)
			}
		}
		id := again[len(again)-1:]
		found, r := s.play("READ COMMITTED", "1 "+again, "1 SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9", "2 SELECT id FROM note WHERE stars = 5",
			"2 INSERT INTO enrollment VALUES (10, 1, NULL, 9)", "1 INSERT INTO course VALUES ("+id+", 3)", "1 INSERT INTO note VALUES (10, 1, 5)", "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: found %q, want %q; %s", again, got, want, r.Coverage)
		}
	}
}

// TestForeignKeysOrphans: where somebody may have kept the server from looking at foreign keys, a row need not have the one to which it refers.
func TestForeignKeysOrphans(t *testing.T) {
	const join = "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9"
	for _, first := range []string{"SET session_replication_role = replica", "SELECT set_config('session_replication_role', 'replica', true)", "!ALTER TABLE enrollment DISABLE TRIGGER ALL; ALTER TABLE enrollment ENABLE TRIGGER ALL"} {
		d := testserver.Postgres(t).Database(t)
		s := openStand(t, d, false, 2, courses...)
		_, _ = ask(s.sessions[0], first) // a user without that right only tries
		for course, want := range map[string]string{"77": "", "1": "G2 write skew"} {
			d.As(d.Server.User).Exec(t, "SET session_replication_role = replica", "DELETE FROM enrollment", "INSERT INTO enrollment VALUES (20, "+course+", NULL, 5), (21, "+course+", NULL, 5)")
			found, r := s.play("REPEATABLE READ", "1 "+join, "2 "+join, "1 UPDATE enrollment SET grade = 9 WHERE id = 20", "2 UPDATE enrollment SET grade = 9 WHERE id = 21", "1 COMMIT", "2 COMMIT")
			if got := strings.Join(found, ", "); got != want {
				t.Errorf("%s, course %s: found %q, want %q; %s", first, course, got, want, r.Coverage)
			}
		}
	}
}

// TestForeignKeys: a foreign key says something as long as it is in force.
func TestForeignKeys(t *testing.T) {
	s := newStand(t, 2, courses...)
	const join = "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9"
	for _, c := range []struct{ ddl, first, second, want string }{
		{"INSERT INTO enrollment VALUES (1, 1, NULL, 5), (2, 2, NULL, 5)", "UPDATE enrollment SET grade = 9 WHERE id = 1", "UPDATE enrollment SET grade = 9 WHERE id = 2", "G2 write skew"},
		{"ALTER TABLE enrollment DROP CONSTRAINT enrollment_course_fkey", "INSERT INTO enrollment VALUES (10, 77, NULL, 9)", "INSERT INTO enrollment VALUES (11, 77, NULL, 9)", ""},
		{"ALTER TABLE enrollment ADD CONSTRAINT again FOREIGN KEY (course) REFERENCES course NOT VALID", "UPDATE enrollment SET student = 1, grade = 9 WHERE id = 20", "UPDATE enrollment SET grade = 9 WHERE id = 21", ""},
		{"DELETE FROM enrollment", "INSERT INTO enrollment VALUES (13, 1, NULL, 9)", "INSERT INTO enrollment VALUES (14, 1, NULL, 9)", "G2 write skew"},
		{"ALTER TABLE enrollment VALIDATE CONSTRAINT again", "INSERT INTO enrollment VALUES (15, 1, NULL, 9)", "INSERT INTO enrollment VALUES (16, 1, NULL, 9)", "G2 write skew"},
		{"ALTER TABLE enrollment DROP CONSTRAINT again", "INSERT INTO enrollment VALUES (17, 77, NULL, 9)", "INSERT INTO enrollment VALUES (18, 77, NULL, 9)", ""},
	} {
		if _, err := ask(s.sessions[0], c.ddl); err != nil {
			t.Fatal(err)
		}
		found, r := s.play("REPEATABLE READ", "1 "+join, "2 "+join, "1 "+c.first, "2 "+c.second, "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q; %s", c.ddl, got, c.want, r.Coverage)
		}
		if strings.Contains(c.ddl, "DROP") {
			if _, err := ask(s.direct, "INSERT INTO enrollment VALUES (20, 77, NULL, 5), (21, 77, NULL, 5)"); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestOperatorsOfUsers: where a user has an operator for built-in types, wirecheck does not know what a comparison says. The near miss is one for arrays, as intarray has.
func TestOperatorsOfUsers(t *testing.T) {
	const query, define = "SELECT id FROM note WHERE stars = 5", "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar, FUNCTION = alike)"
	for operator, want := range map[string]string{define: "", strings.ReplaceAll(define, "varchar", "varchar[]"): "G2 write skew"} {
		function := "CREATE FUNCTION alike(varchar, varchar) RETURNS bool LANGUAGE sql IMMUTABLE AS 'SELECT true'"
		if want != "" {
			function = strings.ReplaceAll(function, "varchar", "varchar[]")
		}
		s := newStand(t, 2, append(slices.Clone(courses), function)...)
		s.play("REPEATABLE READ", "1 "+query, "2 "+query, "1 COMMIT", "2 COMMIT") // so that the table is known
		if _, err := ask(s.sessions[1], operator); err != nil {
			t.Fatal(err)
		}
		found, r := s.play("REPEATABLE READ", "1 "+query, "2 "+query, "1 INSERT INTO note VALUES (10, 1, 5)", "2 INSERT INTO note VALUES (11, 1, 5)", "1 COMMIT", "2 COMMIT")
		if got := strings.Join(found, ", "); got != want {
			t.Errorf("%s: found %q, want %q; %s", operator, got, want, r.Coverage)
		}
	}
}

// TestForeignKeysFamily: there, a foreign key says something of rows that were inserted while the server checked it.
func TestForeignKeysFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("foreign keys are not known there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, append(ofFamilyToo(), "INSERT INTO enrollment VALUES (1, 1, NULL, 5), (2, 2, NULL, 5)")...)
	const join = "SELECT e.id, c.floor FROM enrollment e JOIN course c ON c.id = e.course WHERE e.grade = 9"
	for _, c := range []struct{ name, before, first, want string }{
		{"checked", "", "INSERT INTO enrollment VALUES (10, 1, NULL, 9)", "G2 write skew"},
		{"two rows", "", "INSERT INTO enrollment VALUES (12, 1, NULL, 8), (10, 1, NULL, 9)", "G2 write skew"},
		{"not checked", "SET foreign_key_checks = 0", "INSERT INTO enrollment VALUES (10, 77, NULL, 9)", ""},
		{"not checked, in a comment for versions", "/*!40014 SET foreign_key_checks = 0 */", "INSERT INTO enrollment VALUES (10, 77, NULL, 9)", ""},
		{"not checked by one statement", "", "SET STATEMENT foreign_key_checks = 0 FOR INSERT INTO enrollment VALUES (10, 77, NULL, 9)", ""},
		{"not checked by one statement, as MySQL says it", "", "INSERT /*+ SET_VAR(foreign_key_checks=0) */ INTO enrollment VALUES (10, 77, NULL, 9)", ""},
		{"a row of which nobody knows whether it was checked", "", "UPDATE enrollment SET grade = 9 WHERE id = 1", ""},
		{"a row that was moved afterwards", "", "INSERT INTO enrollment VALUES (10, 1, NULL, 9); UPDATE enrollment SET course = 2 WHERE id = 10", ""},
		{"a parent that the same transaction takes away", "", "INSERT INTO enrollment VALUES (10, 1, NULL, 9); SET foreign_key_checks = 0; DELETE FROM course WHERE id = 1", ""},
	} {
		for _, q := range []string{"DELETE FROM enrollment WHERE id > 2", "INSERT IGNORE INTO course VALUES (1, 3)", "UPDATE enrollment SET grade = 5"} {
			if _, err := ask(s.direct, q); err != nil {
				t.Fatal(err)
			}
		}
		for _, q := range []string{"SET foreign_key_checks = 1", c.before} {
			if _, err := ask(s.sessions[0], q); q != "" && err != nil {
				t.Fatal(err)
			}
		}
		lines := []string{"1 " + join, "2 " + join}
		for q := range strings.SplitSeq(c.first, "; ") {
			lines = append(lines, "1 "+q)
		}
		found, r := s.play("REPEATABLE READ", append(lines, "2 INSERT INTO enrollment VALUES (11, 2, NULL, 9)", "1 COMMIT", "2 COMMIT")...)
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
	}
}

// TestForeignKeysCascade: what a transaction inserted is not certain to be there if foreign keys may have deleted or changed it afterwards.
func TestForeignKeysCascade(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("cascades are not followed there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE cart (id INT PRIMARY KEY)", "CREATE TABLE item (id INT PRIMARY KEY, cart INT, n INT, FOREIGN KEY (cart) REFERENCES cart (id) ON DELETE CASCADE)",
		"INSERT INTO cart VALUES (1), (2), (3)")
	const count = "SELECT COUNT(*) FROM item WHERE n = 9"
	insert, cascade := "1 INSERT INTO item VALUES (10, 1, 9)", "1 DELETE FROM cart WHERE id = 1"
	for _, c := range []struct {
		name  string
		steps []string
		want  string
	}{
		{"a row that goes with its cart", []string{insert, cascade}, ""},
		{"a row of another cart", []string{"1 DELETE FROM cart WHERE id = 3", insert}, "G2 write skew"},
	} {
		found, r := s.play("REPEATABLE READ", slices.Concat([]string{"1 " + count, "2 " + count, "2 INSERT INTO item VALUES (11, 2, 9)"}, c.steps, []string{"1 COMMIT", "2 COMMIT"})...)
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
		for _, q := range []string{"DELETE FROM item", "INSERT IGNORE INTO cart VALUES (1), (3)"} {
			if _, err := ask(s.direct, q); err != nil {
				t.Fatal(err)
			}
		}
	}
}
