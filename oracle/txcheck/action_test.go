package txcheck_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/oracle/txcheck"
)

// TestActions: what foreign keys write, and constraints that are checked at COMMIT, leave nothing undecided. A schedule that differs from its repetition is told, and
// one that differs from the order without transactions, unless what the actions write is the server's choice (doubt): then that alone is unknown.
func TestActions(t *testing.T) {
	t.Parallel()
	const (
		parents = "setup { CREATE TABLE p (id INT PRIMARY KEY, v INT) }\nsetup { INSERT INTO p VALUES (1, 0), (2, 0), (3, 0) }\n"
		rows    = "setup { INSERT INTO c VALUES (1, 1), (2, 2), (3, 3), (4, 1) }\n"
		child   = "setup { CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) %s) }\n"
		course  = `
session a
step a1 { BEGIN }
step a2 { DELETE FROM p WHERE id = 1 }
step a3 { SELECT id, p FROM c }
step a4 { COMMIT }
step a5 { SELECT id, p FROM c }
session b
step b1 { BEGIN }
step b2 { SELECT id, p FROM c }
step b3 { SELECT id, p FROM c WHERE p = 1 }
step b4 { COMMIT }
step b5 { UPDATE p SET v = 5 WHERE id = 2 }
permutation b1 a1 b2 a2 a3 b3 a4 b4 b5 a5
`
		insert = `
session a
step a1 { UPDATE c SET p = NULL }
session b
step b1 { BEGIN }
step b2 { INSERT INTO c VALUES (9, 2) }
step b3 { DELETE FROM p WHERE id = 3 }
step b4 { COMMIT }
permutation b1 b2 a1 b3 b4
`
	)
	tests := []struct{ name, engines, spec, doubt string }{
		{"CASCADE", "postgres mariadb", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows + course, ""},
		{"SET NULL", "postgres mariadb", parents + fmt.Sprintf(child, "ON DELETE SET NULL ON UPDATE CASCADE") + rows + course, ""},
		{"SET DEFAULT", "postgres", parents + fmt.Sprintf(strings.Replace(child, "p INT,", "p INT DEFAULT 3,", 1), "ON DELETE SET DEFAULT") + rows + course, ""},
		{"over two tables", "postgres mariadb", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows +
			"setup { CREATE TABLE d (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES c (id) ON DELETE CASCADE) }\nsetup { INSERT INTO d VALUES (1), (2) }\n" + strings.ReplaceAll(course, "id, p FROM c WHERE p", "id FROM d WHERE id"), ""},
		{"an insertion that is not committed", "postgres", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows + insert, ""},
		{"checked at COMMIT", "postgres", parents + fmt.Sprintf(child, "ON DELETE SET NULL DEFERRABLE INITIALLY DEFERRED") + rows + strings.Replace(course, "SET v = 5", "SET v = 6", 1), ""},
		{"checked when a statement says so", "postgres", parents + fmt.Sprintf(child, "DEFERRABLE") + rows + `
session a
step a1 { BEGIN }
step a2 { SET CONSTRAINTS ALL DEFERRED }
step a3 { INSERT INTO c VALUES (9, 9) }
step a4 { INSERT INTO p VALUES (9, 9) }
step a5 { COMMIT }
session b
step b1 { SELECT id, p FROM c }
permutation a1 a2 a3 b1 a4 a5
`, ""},
		{"not certain: two lead to a table", "postgres mariadb", parents + "setup { CREATE TABLE c (id INT PRIMARY KEY, p INT, q INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE, FOREIGN KEY (q) REFERENCES p (id)) }\n" +
			"setup { INSERT INTO c (id, p) VALUES (1, 1) }\n" + course, "several lead to c"},
		{"not certain: back to the table, row by row", "mariadb", "setup { CREATE TABLE p (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES p (id) ON DELETE CASCADE) }\nsetup { INSERT INTO p VALUES (1, NULL), (2, 1), (3, NULL) }\n" +
			"setup { CREATE TABLE c (id INT PRIMARY KEY, p INT) }\n" + course, "lead back to it"},
		{"not certain: a trigger", "mariadb", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows + "setup { CREATE TRIGGER g AFTER UPDATE ON p FOR EACH ROW UPDATE c SET p = 3 WHERE p = OLD.id }\n" + course, "TRIGGER"},
		{"not certain: a rule", "postgres", parents + fmt.Sprintf(child, "") + rows + "setup { CREATE RULE g AS ON DELETE TO p DO INSTEAD UPDATE c SET p = 2 WHERE p = OLD.id }\n" + course, "RULE"},
		{"not certain: a definition", "postgres mariadb", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows + strings.Replace(course, "UPDATE p SET v = 5 WHERE id = 2", "ALTER TABLE c ADD COLUMN z INT DEFAULT 4", 1), "b5 changes definitions"},
		{"not certain: rows that are gone", "postgres mariadb", parents + fmt.Sprintf(child, "ON DELETE CASCADE") + rows + strings.Replace(course, "UPDATE p SET v = 5 WHERE id = 2", "TRUNCATE TABLE c", 1), "b5 changes definitions"},
	}
	for _, action := range []string{"CASCADE", "SET NULL"} { // a single row, and near misses: part of a key, a range
		for key, doubt := range map[string]string{"id": "", "id, v": "lead back to it"} {
			tests = append(tests, struct{ name, engines, spec, doubt string }{"back to the table, from a single row: " + action + ", " + key, "mariadb",
				"setup { CREATE TABLE p (id INT PRIMARY KEY, v INT, FOREIGN KEY (v) REFERENCES p (id) ON DELETE " + action + ") }\nsetup { INSERT INTO p VALUES (1, NULL), (2, 1), (3, 2) }\n" +
					"setup { CREATE TABLE c (id INT PRIMARY KEY, p INT) }\nsetup { INSERT INTO c VALUES (1, 1) }\n" + strings.NewReplacer("c WHERE p", "p WHERE v", "id, p FROM c", "id, v FROM p").Replace(course), doubt})
			tests = append(tests, tests[len(tests)-1])
			last := &tests[len(tests)-1]
			last.spec, last.doubt = strings.Replace(last.spec, "WHERE id = 1 ", "WHERE id <= 1 ", 1), "lead back to it"
		}
	}
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			for _, level := range p.engine.Levels {
				b := p.bench(t, level, 1)
				for _, test := range tests {
					if !slices.Contains(strings.Fields(test.engines), name) {
						continue
					}
					spec, err := scenario.Parse("action.spec", []byte(test.spec))
					if err != nil {
						t.Fatalf("%s: %v", test.name, err)
					}
					b.keys = nil
					if _, key, ok := strings.Cut(test.name, ": "); ok && strings.Contains(test.name, "a single row") {
						_, columns, _ := strings.Cut(key, ", ")
						b.keys = map[string][][]string{"p": {strings.Split(columns, ", ")}}
					}
					if v := b.check(t, spec, spec.Permutations[0]); len(v.Findings) > 0 || v.Unknown != "" {
						t.Errorf("%s at %s, %s: want no finding, and nothing undecided\n%s", name, level.History, test.name, text(v))
					}
					if !strings.Contains(test.spec, "step a5 { SELECT") {
						continue
					}
					for i, again := 0, 0; i < 2; i++ {
						always := i == 1
						r, err := b.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
						if err != nil {
							t.Fatal(err)
						}
						s, err := b.primary.Schedule(spec, r)
						if err != nil {
							t.Fatal(err)
						}
						missed(s)
						stage, doubt := schedule.Stage(b.stage), ""
						if always {
							stage, doubt = faulty{b.stage, missed}, test.doubt
						}
						v, err := txcheck.Check(t.Context(), s, stage, b.options(2))
						if apart := func(n string) bool { return strings.Contains(n, "went different ways") }; slices.ContainsFunc(v.Notes, apart) && again < 50 {
							i, again = i-1, again+1 // MariaDB's purge had the metadata lock when TRUNCATE came, in one execution only
							continue
						}
						if err != nil || (len(v.Findings) == 1) != (doubt == "") || (v.Unknown != "") != (doubt != "") || !strings.Contains(v.Unknown, doubt) {
							t.Errorf("%s at %s, %s, spoiled, always %v: want one finding, or unknown %q: %v\n%s", name, level.History, test.name, always, doubt, err, text(v))
						}
					}
				}
			}
		})
	}
}

// missed makes the tables at the end as if an action had not reached a row.
func missed(s *schedule.Schedule) {
	for i := range s.Final {
		if rows := s.Final[i].Rows; len(rows) > 0 {
			s.Final[i].Rows = append(rows, rows[0])
			return
		}
	}
}

// TestDefinitions: what changes definitions within a transaction may be taken back, and is not followed, nor is what makes, drops or renames tables.
func TestDefinitions(t *testing.T) {
	t.Parallel()
	p := start(t, "postgres")
	b := p.bench(t, p.engine.Levels[0], 1)
	for text, unknown := range map[string]string{
		"session a\nstep a1 { BEGIN }\nstep a2 { ALTER TABLE t ADD COLUMN b INT }\nstep a3 { COMMIT }\nsession b\nstep b1 { SELECT a FROM t }\npermutation b1 a1 a2 a3\n": "a2 changes definitions within a transaction",
		"session a\nstep a1 { SELECT a FROM t }\nsession b\nstep b1 { ALTER TABLE t RENAME TO u }\npermutation a1 b1\n":                                                   "b1 changes which tables there are",
		"session a\nstep a1 { SELECT a FROM t }\nsession b\nstep b1 { CREATE TABLE u (a INT) }\npermutation a1 b1\n":                                                      "b1 changes which tables there are",
		"session a\nstep a1 { SELECT a FROM t }\nsession b\nstep b1 { ALTER TABLE t RENAME COLUMN a TO b }\npermutation a1 b1\n":                                          "",
		"session a\nstep a1 { SELECT a FROM t }\nsession b\nstep b1 { ALTER TABLE t ADD COLUMN b INT }\npermutation a1 b1\n":                                              "",
	} {
		spec, err := scenario.Parse("definitions.spec", []byte("setup { CREATE TABLE t (a INT) }\n"+text))
		if err != nil {
			t.Fatal(err)
		}
		if v := b.check(t, spec, spec.Permutations[0]); len(v.Findings) > 0 || v.Unknown != unknown {
			t.Errorf("unknown %q, want %q\n%s", v.Unknown, unknown, text)
		}
	}
}

// TestByRows: whether a statement is refused that comes to rows which refer to one another, or to keys that it moves, depends on its plan. What is not
// a refusal of such a statement is told.
func TestByRows(t *testing.T) {
	t.Parallel()
	const (
		self = "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES t (id)) }\nsetup { INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2) }\n"
		more = "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES t (id)) }\nsetup { INSERT INTO t VALUES (1, NULL, 1), (2, 1, 1), (3, 2, 1) }\n"
		rows = "setup { INSERT INTO t VALUES (1, NULL, 1), (2, 1, 2), (3, 2, 3) }\n"
		free = "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT) }\nsetup { INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2) }\n"
		play = "session a\nstep a1 { BEGIN }\nstep a2 { SELECT id FROM t }\nstep a3 { COMMIT }\nsession b\nstep b1 { %s }\npermutation a1 a2 b1 a3\n"
	)
	refused := func(st *schedule.Step) {
		st.Answer = answer.Result{Err: &answer.Error{Code: "23000", Message: "refused"}}
		st.Reason = answer.ReasonOther
	}
	done := func(st *schedule.Step) { st.Answer, st.Reason = answer.Result{}, "" }
	fewer := func(st *schedule.Step) { st.Answer.Affected-- }
	tests := []struct {
		name, engine, setup, sql string
		spoil                    func(*schedule.Step)
		unknown                  bool
	}{
		{"rows that refer to one another", "mariadb", self, "DELETE FROM t WHERE p >= 1", done, true},
		{"they do not", "mariadb", free, "DELETE FROM t WHERE p >= 1", refused, false},
		{"looked at when all rows are written", "postgres", self, "DELETE FROM t WHERE p >= 1", refused, false},
		{"a key that is moved", "postgres", free, "UPDATE t SET id = id + 10", refused, true},
		{"a column that is moved", "postgres", free, "UPDATE t SET p = p + 10", refused, false},
		{"fewer rows", "postgres", free, "UPDATE t SET id = id + 10", fewer, false},
		{"a column that no foreign key has", "mariadb", more, "UPDATE t SET n = 5 WHERE p >= 1", fewer, false},
		{"one that refers", "mariadb", more, "UPDATE t SET p = 3, n = 5 WHERE p >= 1", fewer, false},
		{"one that is referred to", "mariadb", more, "UPDATE t SET id = 3 WHERE id = 3", fewer, true},
		{"one that got its name later", "mariadb", "setup { CREATE TABLE t (a INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES t (a)) }\nsetup { ALTER TABLE t CHANGE a id INT }\n" + rows,
			"UPDATE t SET id = 3 WHERE id = 3", fewer, true},
		{"another one of such a table", "mariadb", "setup { CREATE TABLE t (a INT PRIMARY KEY, p INT, n INT, FOREIGN KEY (p) REFERENCES t (a)) }\nsetup { ALTER TABLE t RENAME COLUMN a TO id }\n" + rows,
			"UPDATE t SET n = 5 WHERE id = 3", fewer, false},
		{"one that is quoted", "mariadb", "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, `a-b c` INT, KEY (`a-b c`), FOREIGN KEY (p) REFERENCES t (`a-b c`)) }\n" + rows,
			"UPDATE t SET `A-b c` = 1 WHERE id = 3", fewer, true},
		{"another one beside it", "mariadb", "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, `a-b c` INT, KEY (`a-b c`), FOREIGN KEY (p) REFERENCES t (`a-b c`)) }\n" + rows,
			"UPDATE t SET p = 1 WHERE id = 3", fewer, false},
		{"one of a table whose name is quoted", "mariadb", "setup { CREATE TABLE t (id INT) }\nsetup { CREATE TABLE `my t` (id INT PRIMARY KEY, p INT, c INT, KEY (c), FOREIGN KEY (p) REFERENCES `my t` (c)) }\n" +
			strings.ReplaceAll(rows, " t ", " `my t` "), "UPDATE `my t` SET c = 1 WHERE id = 3", fewer, true},
		{"behind a comment", "mariadb", "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, c INT, KEY (c), FOREIGN KEY (p) REFERENCES t /* x */ (c)) }\n" + rows,
			"UPDATE t SET c = 1 WHERE id = 3", fewer, true},
		{"one of another key", "mariadb", "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, c INT UNIQUE, FOREIGN KEY (p) REFERENCES t (id)) }\n" + rows,
			"UPDATE t SET c = 4 WHERE id = 3", fewer, false},
		{"one that is generated", "mariadb", "setup { CREATE TABLE t (id INT PRIMARY KEY, p INT, n INT, c INT AS /* x */ (n) STORED, KEY (c), FOREIGN KEY (p) REFERENCES t (c)) }\n" +
			strings.ReplaceAll(rows, " t ", " t (id, p, n) "), "UPDATE t SET n = 1 WHERE id = 3", fewer, true},
		{"written out, in their order", "mariadb", self, "INSERT INTO t VALUES (4, 3), (5, 4)", refused, false},
	}
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := start(t, name)
			b := p.bench(t, p.engine.Levels[len(p.engine.Levels)-1], 1)
			for _, test := range tests {
				if test.engine != name {
					continue
				}
				spec, err := scenario.Parse("rows.spec", []byte(test.setup+fmt.Sprintf(play, test.sql)))
				if err != nil {
					t.Fatal(err)
				}
				r, err := b.lab.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
				if err != nil {
					t.Fatal(err)
				}
				s, err := b.primary.Schedule(spec, r)
				if err != nil {
					t.Fatal(err)
				}
				test.spoil(&s.Steps[slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Name == "b1" })])
				v, err := txcheck.Check(t.Context(), s, b.stage, txcheck.Options{Intn: b.intn, Orders: 1})
				if err != nil || (len(v.Findings) == 0) != test.unknown || test.unknown && !strings.Contains(v.Unknown, "row by row") {
					t.Errorf("%s: %v\n%s", test.name, err, text(v))
				}
			}
		})
	}
}
