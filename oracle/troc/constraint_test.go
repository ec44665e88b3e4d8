package troc_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// TestConstraints: what foreign keys look at elsewhere, constraints that are looked at when a transaction ends, and a wait in the middle of several tables
// leave nothing undecided where they make no difference: beside each case stands its near miss, in which something else was seen. Where they do make a
// difference, nothing is said.
func TestConstraints(t *testing.T) {
	const parents = `
		setup { CREATE TABLE p (id INT PRIMARY KEY, v INT) }
		setup { INSERT INTO p VALUES (1, 0), (2, 0) }
		`
	const meanwhile = `
		setup { INSERT INTO t VALUES (1, NULL), (2, 1) }
		session a
		step a1 { BEGIN }
		step a2 { SELECT * FROM t WHERE id = 1 FOR UPDATE }
		step a3 { INSERT INTO t VALUES (3, 1) }
		step a4 { COMMIT }
		session b
		step b1 { DELETE FROM t }
		permutation a1 a2 b1 a3 a4`
	const twoWays = `
		session a
		step a1 { BEGIN }
		step a2 { INSERT INTO p VALUES (3, 7) }
		step a3 { ROLLBACK }
		session b
		step b1 { INSERT INTO p SELECT id + 10, v FROM p WHERE id = 1 }
		step b2 { SELECT id, v FROM p }
		permutation a1 a2 b1 a3 b2`
	falsify := func(step string, change func(st *schedule.Step)) func(s *schedule.Schedule) {
		return func(s *schedule.Schedule) {
			change(&s.Steps[slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Name == step })])
		}
	}
	lostRow := func(st *schedule.Step) { st.Answer.Rows = st.Answer.Rows[1:] }
	more := func(st *schedule.Step) { st.Answer.Affected++ }
	refused := func(st *schedule.Step) {
		st.Answer, st.Reason = answer.Result{Err: &answer.Error{Code: "23503", Message: "refused"}}, answer.ReasonOther
	}
	tests := []struct {
		name, engines, level, spec string
		falsify                    func(s *schedule.Schedule) // nil: it cannot be judged
		unsure                     bool                       // what is falsified may have been so
	}{
		{"a definition before all else", "postgres mariadb mysql", product.ReadCommitted, parents + `
			session a
			step a1 { ALTER TABLE p ADD COLUMN d INT DEFAULT 7 }
			session b
			step b1 { BEGIN }
			step b2 { UPDATE p SET v = 1 WHERE d = 7 }
			step b3 { COMMIT }
			permutation b1 a1 b2 b3`, falsify("b2", more), false},
		{"a definition behind a read of its table", "postgres mariadb mysql", product.ReadCommitted, parents + `
			session a
			step a1 { ALTER TABLE p ADD COLUMN d INT DEFAULT 7 }
			session b
			step b1 { SELECT v FROM p }
			step b2 { UPDATE p SET v = 1 WHERE d = 7 }
			permutation b1 a1 b2`, falsify("b2", more), false},
		{"a table that is emptied, and filled again", "postgres mariadb mysql", product.RepeatableRead, parents + `
			session a
			step a1 { TRUNCATE TABLE p }
			step a2 { INSERT INTO p VALUES (1, 4) }
			session b
			step b1 { UPDATE p SET v = 1 }
			step b2 { SELECT * FROM p }
			permutation b1 a1 a2 b2`, falsify("b2", lostRow), false},
		{"columns that go and come", "postgres mariadb mysql", product.RepeatableRead, parents + `
			session a
			step a1 { ALTER TABLE p DROP COLUMN v }
			step a2 { ALTER TABLE p ADD COLUMN w INT }
			session b
			step b1 { UPDATE p SET v = 1 WHERE id = 1 }
			step b2 { INSERT INTO p VALUES (3, 5) }
			step b3 { UPDATE p SET w = 2 WHERE w IS NULL }
			permutation b1 a1 a2 b2 b3`, falsify("b3", more), false},
		{"a definition within a transaction", "postgres", product.ReadCommitted, parents + `
			session a
			step a1 { BEGIN }
			step a2 { TRUNCATE TABLE p }
			step a3 { ROLLBACK }
			session b
			step b1 { SELECT * FROM p }
			permutation a1 a2 a3 b1`, nil, false},
		{"a definition that waits for all that name its table", "postgres mariadb mysql", product.ReadCommitted, parents + `
			setup { CREATE TABLE q (id INT PRIMARY KEY) }
			session a
			step a1 { TRUNCATE TABLE p }
			session b
			step b1 { BEGIN }
			step b2 { UPDATE p SET v = 1 WHERE id = 1 }
			step b3 { COMMIT }
			session c
			step c1 { INSERT INTO q VALUES (1) }
			permutation b1 b2 a1 b3 c1`, falsify("c1", more), false},
		{"a definition that two wait with", "postgres mariadb mysql", product.ReadCommitted, parents + `
			session a
			step a1 { TRUNCATE TABLE p }
			session b
			step b1 { BEGIN }
			step b2 { UPDATE p SET v = 1 WHERE id = 1 }
			step b3 { COMMIT }
			session c
			step c1 { UPDATE p SET v = 2 WHERE id = 2 }
			permutation b1 b2 a1 c1 b3`, nil, false},
		{"a definition that is refused", "postgres mariadb mysql", product.ReadCommitted, parents + `
			session a
			step a1 { ALTER TABLE p DROP COLUMN nothing }
			session b
			step b1 { SELECT * FROM p }
			step b2 { UPDATE p SET v = 1 WHERE id = 1 }
			permutation b1 a1 b2`, falsify("b2", more), false},
		{"a parent that another one changes", "postgres mariadb mysql", product.ReadCommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id)) }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE p SET v = 1 WHERE id = 2 }
			step a3 { COMMIT }
			session b
			step b1 { INSERT INTO c VALUES (1, 1) }
			permutation a1 a2 b1 a3`, falsify("b1", more), false},
		{"a parent that another one adds", "mariadb mysql", product.ReadCommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id)) }
			session a
			step a1 { BEGIN }
			step a2 { INSERT INTO p VALUES (3, 0) }
			step a3 { COMMIT }
			session b
			step b1 { BEGIN }
			step b2 { INSERT INTO c VALUES (1, 3) }
			step b3 { COMMIT }
			permutation a1 a2 b1 b2 a3 b3`, falsify("b2", more), true},
		{"a row that refers to its own table, and is not in the snapshot", "postgres", product.Serializable, `
			setup { CREATE TABLE t (a INT PRIMARY KEY, b INT REFERENCES t (a)) }
			setup { INSERT INTO t (a) VALUES (2), (3) }
			session a
			step a1 { DELETE FROM t WHERE a = 2 }
			session b
			step b1 { BEGIN }
			step b2 { INSERT INTO t VALUES (1, 2) }
			step b3 { COMMIT }
			permutation b1 b2 a1 b3`, nil, false},
		{"another row of its own table", "postgres", product.RepeatableRead, `
			setup { CREATE TABLE t (a INT PRIMARY KEY, b INT REFERENCES t (a)) }
			setup { INSERT INTO t (a) VALUES (2), (3) }
			session a
			step a1 { DELETE FROM t WHERE a = 2 }
			session b
			step b1 { BEGIN }
			step b2 { INSERT INTO t VALUES (1, 3) }
			step b3 { COMMIT }
			permutation b1 b2 a1 b3`, falsify("a1", more), false},
		{"constraints that are looked at when a transaction ends", "postgres", product.ReadCommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) DEFERRABLE INITIALLY DEFERRED) }
			session a
			step a1 { BEGIN }
			step a2 { INSERT INTO c VALUES (1, 9) }
			step a3 { INSERT INTO p VALUES (9, 0) }
			step a4 { COMMIT }
			session b
			step b1 { INSERT INTO c VALUES (2, 77) }
			step b2 { BEGIN }
			step b3 { INSERT INTO c VALUES (3, 77) }
			step b4 { SELECT * FROM c }
			step b5 { COMMIT }
			permutation a1 a2 b1 a3 a4 b2 b3 b4 b5`, falsify("b4", lostRow), false},
		{"actions of a key that is checked when a transaction ends", "postgres", product.ReadCommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) }
			setup { INSERT INTO c VALUES (1, 1), (2, 2), (3, 1) }
			session a
			step a1 { BEGIN }
			step a2 { INSERT INTO c VALUES (4, 9) }
			step a3 { DELETE FROM p WHERE id = 2 }
			step a4 { INSERT INTO p VALUES (9, 0) }
			step a5 { COMMIT }
			session b
			step b1 { SELECT * FROM c }
			permutation a1 a2 a3 a4 a5 b1`, falsify("b1", lostRow), false},
		{"a statement that says when they are looked at", "postgres", product.ReadCommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) DEFERRABLE) }
			session a
			step a1 { BEGIN }
			step a2 { SET CONSTRAINTS ALL DEFERRED }
			step a3 { INSERT INTO c VALUES (1, 9) }
			step a4 { INSERT INTO p VALUES (9, 0) }
			step a5 { COMMIT }
			session b
			step b1 { SELECT * FROM c }
			permutation a1 a2 a3 a4 a5 b1`, falsify("b1", lostRow), false},
		{"a table to which the statement's keys do not lead", "postgres", product.RepeatableRead, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id)) }
			setup { INSERT INTO c VALUES (1, 1) }
			session a
			step a1 { DELETE FROM p WHERE id = 2 }
			session b
			step b1 { BEGIN }
			step b2 { SELECT * FROM c }
			step b3 { DELETE FROM c WHERE id = 1 }
			step b4 { COMMIT }
			permutation b1 b2 a1 b3 b4`, falsify("b3", more), false},
		{"through a view", "postgres mariadb mysql", product.RepeatableRead, parents + `
			setup { CREATE VIEW w AS SELECT v, id FROM p WHERE id < 9 }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE w SET v = v + 1 WHERE id = 1 }
			step a3 { INSERT INTO w (id) VALUES (3) }
			step a4 { COMMIT }
			session b
			step b1 { SELECT * FROM w }
			step b2 { SELECT * FROM p }
			permutation a1 a2 a3 b1 a4 b2`, falsify("b2", lostRow), false},
		{"through a view, where others write", "postgres mariadb mysql", product.RepeatableRead, parents + `
			setup { CREATE VIEW w AS SELECT v, id FROM p WHERE id < 9 }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE w SET v = v + 1 WHERE id = 1 }
			step a3 { COMMIT }
			session b
			step b1 { BEGIN }
			step b2 { UPDATE p SET v = 4 WHERE id = 2 }
			step b3 { COMMIT }
			permutation b1 b2 a1 a2 a3 b3`, falsify("a2", more), false},
		{"through a view, what others write", "postgres mariadb mysql", product.ReadCommitted, parents + `
			setup { CREATE VIEW w AS SELECT v, id FROM p WHERE id < 9 }
			session a
			step a2 { UPDATE w SET v = v + 1 WHERE id = 1 }
			session b
			step b1 { BEGIN }
			step b2 { UPDATE p SET v = 4 WHERE id = 1 }
			step b3 { COMMIT }
			permutation b1 b2 a2 b3`, falsify("a2", more), true},
		{"within a common table expression", "postgres", product.ReadCommitted, parents + `
			session a
			step a1 { WITH w AS (DELETE FROM p WHERE id = 1 RETURNING *) SELECT * FROM w }
			session b
			step b1 { SELECT * FROM p }
			permutation a1 b1`, falsify("a1", lostRow), false},
		{"by two parts that may write the same rows", "postgres", product.ReadCommitted, parents + `
			session a
			step a1 { WITH w AS (DELETE FROM p WHERE id = 1 RETURNING *) UPDATE p SET v = 3 WHERE id IN (SELECT id FROM w) }
			permutation a1`, falsify("a1", more), true},
		{"a snapshot that begins with its session's own commit", "mariadb mysql", product.RepeatableRead, parents + `
			session a
			step a1 { BEGIN }
			step a2 { UPDATE p SET v = 1 WHERE id = 2 }
			step a3 { START TRANSACTION WITH CONSISTENT SNAPSHOT }
			step a4 { SELECT * FROM p }
			step a5 { COMMIT }
			session b
			step b1 { UPDATE p SET v = 2 WHERE id = 1 }
			permutation a1 a2 a3 b1 a4 a5`, falsify("a4", func(st *schedule.Step) {
			st.Answer.Rows[1] = slices.Replace(slices.Clone(st.Answer.Rows[1]), 1, 2, answer.Value("0"))
		}), false},
		{"a wait in the middle of several tables that are all locked", "mariadb mysql", product.ReadUncommitted, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT) }
			setup { INSERT INTO c VALUES (1, 1), (2, 2) }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE p SET v = 1 WHERE id = 1 }
			step a3 { ROLLBACK }
			session b
			step b1 { SELECT c.id, p.v FROM c JOIN p ON p.id = c.p FOR UPDATE }
			permutation a1 a2 b1 a3`, falsify("b1", lostRow), false},
		{"a wait in the middle of several tables", "postgres mariadb mysql", product.RepeatableRead, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT) }
			setup { INSERT INTO c VALUES (1, 1), (2, 2) }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE p SET v = 1 WHERE id = 1 }
			step a3 { ROLLBACK }
			session b
			step b1 { SELECT c.id, p.v FROM c JOIN p ON p.id = c.p FOR UPDATE }
			permutation a1 a2 b1 a3`, falsify("b1", lostRow), false},
		{"a foreign key that looks at rows which came while it waited", "postgres", product.ReadCommitted, `
			setup { CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES t (id)) }
			` + meanwhile, nil, false},
		{"one that is added later", "postgres", product.ReadCommitted, `
			setup { CREATE TABLE t (id INT PRIMARY KEY, p INT) }
			setup { ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES t (id) }
			` + meanwhile, nil, false},
		{"one by a qualified name", "postgres", product.ReadCommitted, `
			setup { CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES public.t (id)) }
			` + meanwhile, nil, false},
		{"one that leads to another table", "postgres", product.ReadCommitted, parents + `
			setup { CREATE TABLE t (id INT PRIMARY KEY, p INT) }
			setup { ALTER TABLE t ADD FOREIGN KEY (p) REFERENCES public.p (id) }
			` + strings.Replace(meanwhile, "INSERT INTO t VALUES (3, 1)", "UPDATE t SET p = 2 WHERE id = 2", 1), falsify("b1", refused), false},
		{"a foreign key that looks at what was there before", "postgres", product.ReadCommitted, `
			setup { CREATE TABLE t (id INT PRIMARY KEY, p INT REFERENCES t (id)) }
			setup { INSERT INTO t VALUES (1, NULL), (2, 1) }
			session a
			step a1 { BEGIN }
			step a2 { SELECT * FROM t WHERE id = 1 FOR UPDATE }
			step a3 { COMMIT }
			session b
			step b1 { DELETE FROM t }
			permutation a1 a2 b1 a3`, falsify("b1", refused), false},
		{"what changes while it waits", "mariadb mysql", product.RepeatableRead, parents + `
			setup { CREATE TABLE c (id INT PRIMARY KEY, p INT) }
			setup { INSERT INTO c VALUES (1, 1), (2, 2) }
			session a
			step a1 { BEGIN }
			step a2 { UPDATE p SET v = 1 WHERE id = 1 }
			step a3 { COMMIT }
			session b
			step b1 { UPDATE c JOIN p ON p.id = c.p SET c.p = p.v + 5 }
			permutation a1 a2 b1 a3`, falsify("b1", more), true},
		{"a table that is seen in two ways", "mariadb mysql", product.ReadUncommitted, parents + twoWays, falsify("b1", more), true},
		{"such a table, read behind it", "mariadb mysql", product.ReadUncommitted, parents + twoWays, falsify("b2", lostRow), true},
		{"such a table, at the end", "mariadb mysql", product.ReadUncommitted, parents + twoWays, func(s *schedule.Schedule) {
			s.Final[0].Rows = s.Final[0].Rows[1:]
		}, true},
		{"such a table, where the ways differ", "mariadb mysql", product.ReadUncommitted, parents + strings.NewReplacer(" WHERE id = 1", "", "permutation a1 a2 b1 a3 b2", "permutation a1 a2 b1 b2 a3").Replace(twoWays), falsify("b2", lostRow), true},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		for _, test := range tests {
			if !slices.Contains(strings.Fields(test.engines), p.name) {
				continue
			}
			spec, err := scenario.Parse("constraint.spec", []byte(test.spec))
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			pair := p.at(t, p.d.Levels[slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.History == test.level })])
			s := pair.execute(t, spec)
			v := pair.check(t, s)
			// MariaDB's purge of an earlier UPDATE may hold the metadata lock for which TRUNCATE waits, when the writer has let go of it.
			for again := 0; test.falsify != nil && strings.Contains(v.Unknown, "changes definitions") && again < 20; again++ {
				s = pair.execute(t, spec)
				v = pair.check(t, s)
			}
			compared := v.Unknown == "" && !slices.ContainsFunc(v.Notes, func(note string) bool {
				return !strings.Contains(note, "its transaction ends")
			})
			if len(v.Findings) > 0 || compared != (test.falsify != nil) {
				t.Errorf("%s: compared: %t\n%s", test.name, compared, account(spec, s, v))
			}
			if test.falsify == nil {
				continue
			}
			test.falsify(s)
			want := "violation: "
			if test.unsure {
				want = "unknown: "
			}
			if v := pair.check(t, s); !strings.HasPrefix(short(v), want) {
				t.Errorf("the near miss of %s: %q\n%s", test.name, short(v), account(spec, s, v))
			}
		}
	})
}

// TestOlderSnapshot: whether a snapshot shows what a table held before a newer definition is not documented, so that neither is a finding; near miss: a
// snapshot that is newer.
func TestOlderSnapshot(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		if p.name != "postgres" { // the others refuse the read
			return
		}
		for order, finds := range map[string]bool{"b1 b2 a1 b3 b4": false, "b1 a1 b2 b3 b4": true} {
			spec, err := scenario.Parse("older.spec", []byte(`
				setup { CREATE TABLE p (id INT PRIMARY KEY, v INT) }
				setup { CREATE TABLE q (id INT PRIMARY KEY) }
				setup { INSERT INTO p VALUES (1, 0) }
				session a
				step a1 { TRUNCATE TABLE p }
				session b
				step b1 { BEGIN }
				step b2 { SELECT * FROM q }
				step b3 { SELECT * FROM p }
				step b4 { COMMIT }
				permutation `+order))
			if err != nil {
				t.Fatal(err)
			}
			pair := p.at(t, p.d.Levels[slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.History == product.RepeatableRead })])
			s := pair.execute(t, spec)
			if v := pair.check(t, s); short(v) != "" {
				t.Errorf("%s: %q\n%s", order, short(v), account(spec, s, v))
			}
			st := &s.Steps[slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Name == "b3" })]
			st.Answer.Rows = [][]answer.Value{{answer.Value("1"), answer.Value("0")}}
			if v := pair.check(t, s); (short(v) != "") != finds {
				t.Errorf("%s, with the row that was there before: %q\n%s", order, short(v), account(spec, s, v))
			}
		}
	})
}

// TestByRows: whether a DELETE that comes to rows which refer to one another is refused depends on its plan; the refusal of one whose rows do not is told.
func TestByRows(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		if p.name != "mariadb" {
			return
		}
		for _, key := range []string{", FOREIGN KEY (p) REFERENCES t (id)", ""} {
			spec, err := scenario.Parse("rows.spec", []byte(`
				setup { CREATE TABLE t (id INT PRIMARY KEY, p INT`+key+`) }
				setup { INSERT INTO t VALUES (1, NULL), (2, 1), (3, 2) }
				session a
				step a1 { SELECT id, p FROM t }
				session b
				step b1 { DELETE FROM t WHERE p >= 1 }
				permutation a1 b1`))
			if err != nil {
				t.Fatal(err)
			}
			pair := p.at(t, p.d.Levels[1])
			s := pair.execute(t, spec)
			for i := range s.Steps {
				if st := &s.Steps[i]; st.Name == "b1" {
					st.Answer, st.Reason = answer.Result{Err: &answer.Error{Code: "1451", Message: "refused"}}, answer.ReasonOther
				} else {
					s.Final[0].Rows = st.Answer.Rows
				}
			}
			if v := pair.check(t, s); (len(v.Findings) == 0) != (key != "") {
				t.Errorf("with %q: %q\n%s", key, short(v), account(spec, s, v))
			}
		}
	})
}
