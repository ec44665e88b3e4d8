package live_test

import (
	"strings"
	"testing"

	"wirecheck/internal/testserver"
	"wirecheck/report"
)

// flatForms are queries within others.
var flatForms = []joinForm{
	{"a query of a query", "SELECT * FROM (SELECT id, course, grade FROM enrollment WHERE grade > 4) q WHERE q.course = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a query of a query, out of the inner one", "SELECT * FROM (SELECT id, course, grade FROM enrollment WHERE grade > 4) q WHERE q.course = 5", "enrollment VALUES (10, 5, NULL, 3)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a query of a query, out of the outer one", "SELECT * FROM (SELECT id, course, grade FROM enrollment WHERE grade > 4) q WHERE q.course = 5", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"names exchanged", "SELECT q.id FROM (SELECT id, course AS grade, grade AS course FROM enrollment) q WHERE grade = 5 AND course = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"names exchanged, the other way", "SELECT q.id FROM (SELECT id, course AS grade, grade AS course FROM enrollment) q WHERE grade = 5 AND course = 9", "enrollment VALUES (10, 1, NULL, 5)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a query of WITH", "WITH q AS (SELECT id, grade FROM enrollment WHERE course = 5) SELECT * FROM q WHERE grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a query of WITH, of another course", "WITH q AS (SELECT id, grade FROM enrollment WHERE course = 5) SELECT * FROM q WHERE grade = 9", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count in WITH", "WITH q AS (SELECT count(*) AS n FROM enrollment WHERE course = 5) SELECT n FROM q", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a count in WITH, of another course", "WITH q AS (SELECT count(*) AS n FROM enrollment WHERE course = 5) SELECT n FROM q", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"one query of WITH reads another", "WITH p AS (SELECT id, course, grade FROM enrollment WHERE grade = 9), q AS (SELECT id, course AS c FROM p) SELECT count(*) FROM q WHERE c = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"one query of WITH reads another, of another grade", "WITH p AS (SELECT id, course, grade FROM enrollment WHERE grade = 9), q AS (SELECT id, course AS c FROM p) SELECT count(*) FROM q WHERE c = 5", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"rows of a window", "SELECT * FROM (SELECT id, course, row_number() OVER (ORDER BY id) AS place FROM enrollment) q WHERE q.course = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"the first rows", "SELECT * FROM (SELECT id, course FROM enrollment ORDER BY id LIMIT 1) q WHERE q.course = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"whether there is none", "SELECT NOT EXISTS (SELECT 1 FROM enrollment WHERE course = 5) AS free", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"whether there is none, where there is one", "SELECT NOT EXISTS (SELECT 1 FROM enrollment WHERE course = 1) AS free", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"a count beside rows", "SELECT c.floor, (SELECT count(*) FROM enrollment e WHERE e.course = 5) AS n FROM course c WHERE c.id = 5", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a count beside rows, of another course", "SELECT c.floor, (SELECT count(*) FROM enrollment e WHERE e.course = 5) AS n FROM course c WHERE c.id = 5", "enrollment VALUES (10, 2, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count beside no rows", "SELECT c.floor, (SELECT count(*) FROM enrollment e WHERE e.course = 5) AS n FROM course c WHERE c.id = 77", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count alone", "SELECT (SELECT count(*) FROM enrollment e WHERE e.course = 5) AS n", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"one arm of UNION ALL", "SELECT id FROM note WHERE stars = 5 UNION ALL SELECT id FROM enrollment WHERE grade = 9", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"no arm of UNION ALL", "SELECT id FROM note WHERE stars = 5 UNION ALL SELECT id FROM enrollment WHERE grade = 9", "enrollment VALUES (10, 5, NULL, 5)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count for each row", "SELECT c.id, (SELECT count(*) FROM enrollment e WHERE e.course = c.id AND e.grade > 4) AS n FROM course c WHERE c.floor = 4", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", "G2 write skew"},
	{"a count for each row, of another grade", "SELECT c.id, (SELECT count(*) FROM enrollment e WHERE e.course = c.id AND e.grade > 4) AS n FROM course c WHERE c.floor = 4", "enrollment VALUES (10, 5, NULL, 3)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a count for each row, of a row that is not in the answer", "SELECT c.id, (SELECT count(*) FROM enrollment e WHERE e.course = c.id AND e.grade > 4) AS n FROM course c WHERE c.floor = 4", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 5, NULL, 9)", ""},
	{"a condition on a count", "SELECT c.id FROM course c WHERE c.floor > (SELECT count(*) FROM enrollment e WHERE e.grade = 9)", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 2, NULL, 9)", ""},
	{"a condition on a count, of another grade", "SELECT c.id FROM course c WHERE c.floor > (SELECT count(*) FROM enrollment e WHERE e.grade = 9)", "enrollment VALUES (10, 5, NULL, 8)", "enrollment VALUES (11, 2, NULL, 9)", ""},
	{"notes above a grade", "SELECT n.id FROM note n WHERE n.stars > (SELECT coalesce(max(grade), 0) FROM enrollment WHERE course = 1) ORDER BY n.id LIMIT 10", "note VALUES (10, 1, 6)", "note VALUES (11, 1, 7)", "G2 write skew"},
	{"notes that are not above a grade", "SELECT n.id FROM note n WHERE n.stars > (SELECT coalesce(max(grade), 0) FROM enrollment WHERE course = 1) ORDER BY n.id LIMIT 10", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 7)", ""},
	{"notes above a number, of which there are some", "SELECT n.id FROM note n WHERE n.stars > (SELECT count(*) FROM enrollment WHERE course = 1)", "note VALUES (10, 1, 2)", "note VALUES (11, 1, 7)", "G2 write skew"},
	{"notes that are not above a number", "SELECT n.id FROM note n WHERE n.stars > (SELECT count(*) FROM enrollment WHERE course = 1)", "note VALUES (10, 1, 1)", "note VALUES (11, 1, 7)", ""},
	{"notes up to a grade", "SELECT id FROM note WHERE course > 0 AND (SELECT e.grade FROM enrollment e WHERE e.id = 1) >= stars", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 5)", "G2 write skew"},
	{"notes that are not up to a grade", "SELECT id FROM note WHERE course > 0 AND (SELECT e.grade FROM enrollment e WHERE e.id = 1) >= stars", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 6)", ""},
	{"a page of notes up to a grade, which is full", "SELECT id, stars FROM note WHERE stars <= (SELECT avg(grade) FROM enrollment) ORDER BY stars, id LIMIT 1", "note VALUES (10, 1, 3)", "note VALUES (11, 1, 4)", ""},
	{"a page of notes up to a grade, and notes in front", "SELECT id, stars FROM note WHERE stars <= (SELECT avg(grade) FROM enrollment) ORDER BY stars, id LIMIT 1", "note VALUES (10, 1, 3)", "note VALUES (11, 1, 2)", "G2 write skew"},
	{"a count of notes above a count", "SELECT count(*) FROM note WHERE stars > (SELECT count(*) + 0 FROM enrollment)", "note VALUES (10, 1, 6)", "note VALUES (11, 1, 7)", ""},
	{"a count of notes above a number", "SELECT count(*) FROM note WHERE stars > (SELECT count(*) FROM enrollment)", "note VALUES (10, 1, 6)", "note VALUES (11, 1, 7)", "G2 write skew"},
	{"notes above no grade", "SELECT id FROM note WHERE stars > (SELECT max(grade) FROM enrollment WHERE course = 77)", "note VALUES (10, 1, 6)", "note VALUES (11, 1, 7)", ""},
	{"notes above a grade that changes", "SELECT id FROM note WHERE stars > (SELECT max(grade) FROM enrollment WHERE grade > 4)", "enrollment VALUES (10, 5, NULL, 9)", "note VALUES (11, 1, 7)", ""},
	{"the notes with most stars", "SELECT id FROM note WHERE stars = (SELECT max(stars) FROM note)", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 5)", ""},
	{"groups that are small", "SELECT course, count(*) FROM enrollment WHERE grade > 4 GROUP BY course HAVING count(*) < 2", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"groups that are small, and rows of none", "SELECT course, count(*) FROM enrollment WHERE grade > 4 GROUP BY course HAVING count(*) < 2", "enrollment VALUES (10, 1, NULL, 3)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"groups that are small, and another group", "SELECT course, count(*) FROM enrollment WHERE grade > 4 GROUP BY course HAVING count(*) > 0", "enrollment VALUES (10, 5, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", "G2 write skew"},
	{"groups of stars that are small", "SELECT count(*) AS n, stars FROM note WHERE course > 0 GROUP BY stars HAVING count(*) < 2 ORDER BY stars", "note VALUES (10, 1, 5)", "note VALUES (11, 1, 4)", "G2 write skew"},
	{"groups of stars that are small, and rows of none", "SELECT count(*) AS n, stars FROM note WHERE course > 0 GROUP BY stars HAVING count(*) < 2 ORDER BY stars", "note VALUES (10, 0, 5)", "note VALUES (11, 1, 4)", ""},
	{"groups that are large", "SELECT course, count(*) FROM enrollment WHERE grade > 4 GROUP BY course HAVING count(*) > 2", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
	{"groups without what they have", "SELECT course FROM enrollment WHERE grade > 4 GROUP BY course HAVING count(*) > 0", "enrollment VALUES (10, 1, NULL, 9)", "enrollment VALUES (11, 1, NULL, 9)", ""},
}

// TestFlatForms: which new rows a query within another one would have found, and near misses.
func TestFlatForms(t *testing.T) {
	newStand(t, 2, courses...).joinForms(flatForms, "", "READ COMMITTED", "SERIALIZABLE")
}

// TestFlatFormsFamily plays them on MariaDB, or another product of the family.
func TestFlatFormsFamily(t *testing.T) {
	not := "names exchanged; one query of WITH reads another; notes above a grade"
	switch {
	case testserver.IsTiDB():
		not += "; a count beside rows; a count alone; a count for each row; notes above a number, of which there are some; notes up to a grade; a page of notes up to a grade, and notes in front; a count of notes above a number; groups that are small; groups that are small, and another group; groups of stars that are small"
	case testserver.IsMySQL():
		not += "; a count of notes above a number; groups that are small; groups that are small, and another group"
	}
	openStand(t, testserver.Family(t).Database(t), true, 2, ofFamilyToo()...).joinForms(flatForms, not, "READ COMMITTED", "REPEATABLE READ")
}

// TestNextNumberInValues: an INSERT whose row has a number that a subquery computes, as PostgreSQL users write it.
func TestNextNumberInValues(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE invoice (id INT PRIMARY KEY, no INT, shop INT)")
	for second, want := range map[string]string{"1": "G2 write skew", "2": ""} {
		if _, err := ask(s.direct, "DELETE FROM invoice"); err != nil {
			t.Fatal(err)
		}
		insert := func(id, shop string) string {
			return " INSERT INTO invoice (id, no, shop) VALUES (" + id + ", (SELECT coalesce(max(no), 0) + 1 FROM invoice WHERE shop = " + shop + "), " + shop + ")"
		}
		found, r := s.play("READ COMMITTED", "1"+insert("1", "1"), "2"+insert("2", second), "1 COMMIT", "2 COMMIT")
		if len(found) != 1 && want != "" || want == "" && len(found) > 0 || want != "" && found[0] != want {
			t.Errorf("shop %s: found %q, want %q; %s", second, found, want, r.Coverage)
		}
	}
}

// TestGroupsInWords: the finding says of which rows the groups are that the reader asked for, and of which of them the row is.
func TestGroupsInWords(t *testing.T) {
	ofFamily := openStand(t, testserver.Family(t).Database(t), true, 2, ofFamilyToo()...)
	for _, s := range []*stand{newStand(t, 2, courses...), ofFamily} {
		if _, err := ask(s.direct, "INSERT INTO note VALUES (1, 1, 5), (2, 1, 4), (3, 1, 3)"); err != nil {
			t.Fatal(err)
		}
		query := " SELECT stars, count(*) FROM note WHERE course > 0 GROUP BY stars HAVING count(*) < 2"
		_, r := s.play("READ COMMITTED", "1"+query, "2"+query, "1 INSERT INTO note VALUES (10, 1, 5)", "2 INSERT INTO note VALUES (11, 1, 4)", "1 COMMIT", "2 COMMIT")
		if len(r.Findings) != 1 {
			t.Fatalf("%d findings, %s", len(r.Findings), r.Coverage)
		}
		f := r.Findings[0]
		var b strings.Builder
		if err := report.Text(&b, r.Findings); err != nil {
			t.Fatal(err)
		}
		all := b.String() + report.Explain(f, report.Reader{Session: f.Transactions[0].Session, Others: true})
		for _, want := range []string{"asked for groups of rows of public.note where course > 0, that of stars = 4 among them in T1.1; T2 then inserted one more",
			"each asked for groups of rows of note, and each then inserted one", "You asked for groups of rows of note where course > 0, that of stars = 4 among them", "would have found note id=10 in the group of stars = 5"} {
			if want = strings.ReplaceAll(want, "public.note", f.Edges[0].Row.Table); !strings.Contains(all, want) {
				t.Errorf("%q is missing in\n%s", want, all)
			}
		}
		if strings.Contains(all, "...") || strings.Contains(all, "and found") {
			t.Errorf("it says what is not known\n%s", all)
		}
	}
}
