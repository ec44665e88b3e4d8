package troc_test

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/oracle"
	"wirecheck/product"
)

// TestOrphans: a row at the end that refers to no row breaks its foreign key, whatever the statements saw. Beside each stand near misses: a row that refers to
// nothing, one whose parent differs in what the column does not tell apart, and keys that nobody looks at.
func TestOrphans(t *testing.T) {
	const numbers = `
		setup { CREATE TABLE p (id INT PRIMARY KEY) }
		setup { CREATE TABLE c (id INT PRIMARY KEY, n INT, up INT, FOREIGN KEY (up) REFERENCES p (id)) }
		setup { INSERT INTO p VALUES (1), (2) }
		`
	const pairs = `
		setup { CREATE TABLE p (a INT, b INT, PRIMARY KEY (b, a)) }
		setup { CREATE TABLE c (id INT PRIMARY KEY, y INT, x INT, FOREIGN KEY (x, y) REFERENCES p (b, a)) }
		setup { INSERT INTO p VALUES (1, 2) }
		`
	const texts = `
		setup { CREATE TABLE p (id VARCHAR(9) PRIMARY KEY) }
		setup { CREATE TABLE c (id INT PRIMARY KEY, up VARCHAR(9), FOREIGN KEY (up) REFERENCES p (id)) }
		setup { INSERT INTO p VALUES ('a') }
		`
	const parted = `
		setup { CREATE TABLE p (id INT PRIMARY KEY) PARTITION BY RANGE (id) }
		setup { CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9) }
		setup { CREATE TABLE c (id INT PRIMARY KEY, n INT, up INT, FOREIGN KEY (up) REFERENCES p (id)) }
		setup { INSERT INTO p VALUES (1), (2) }
		`
	const own = `
		setup { CREATE TABLE c (id INT PRIMARY KEY, n INT, up INT, FOREIGN KEY (up) REFERENCES c (id)) }
		`
	const dated = `
		setup { CREATE TABLE p (name VARCHAR(9), at TIMESTAMP, PRIMARY KEY (name, at)) }
		setup { CREATE TABLE c (name VARCHAR(9), at TIMESTAMP, FOREIGN KEY (name, at) REFERENCES p (name, at)) }
		setup { INSERT INTO p VALUES ('a', '2026-01-01 12:00:00') }
		`
	const insert = "session s step q { INSERT INTO c VALUES (1, 7, 2) } permutation q"
	const change = "setup { INSERT INTO c VALUES (1, 7, 2) } session s step q { UPDATE c SET n = 7 } permutation q"
	keyed := func(more string) string { return strings.Replace(numbers, "p (id))", "p (id) "+more+")", 1) }
	tests := []struct {
		name, engines, spec, row string // row: that table c has at the end; behind a >: p has no row then
		want                     bool
	}{
		{"a row whose parent is not there", "postgres mariadb mysql tidb", numbers + "session s step q { INSERT INTO c VALUES (1, 7, 2) } permutation q", "1|7|3", true},
		{"its parent is there", "postgres mariadb mysql tidb", numbers + "session s step q { INSERT INTO c VALUES (1, 7, 2) } permutation q", "1|7|1", false},
		{"it refers to none", "postgres mariadb mysql tidb", numbers + "session s step q { INSERT INTO c VALUES (1, 7, 2) } permutation q", "1|7|NULL", false},
		{"two columns, in another order", "postgres mariadb mysql tidb", pairs + "session s step q { INSERT INTO c VALUES (1, 1, 2) } permutation q", "1|2|1", true},
		{"both are there", "postgres mariadb mysql tidb", pairs + "session s step q { INSERT INTO c VALUES (1, 1, 2) } permutation q", "1|1|2", false},
		{"one of two is NULL", "postgres mariadb mysql tidb", pairs + "session s step q { INSERT INTO c VALUES (1, 1, 2) } permutation q", "1|NULL|9", false},
		{"texts that the column tells apart", "postgres", texts + "session s step q { INSERT INTO c VALUES (1, 'a') } permutation q", "1|A", true},
		{"texts that it does not tell apart", "mariadb mysql", texts + "session s step q { INSERT INTO c VALUES (1, 'a') } permutation q", "1|A", false},
		{"keys that a session does not look at", "mariadb mysql", numbers + "session s step f { SET foreign_key_checks = 0 } step q { INSERT INTO c VALUES (1, 7, 2) } permutation f q", "1|7|3", false},
		{"keys that are not enforced", "postgres", numbers + "setup { SET session_replication_role = replica } session s step q { INSERT INTO c VALUES (1, 7, 2) } permutation q", "1|7|3", false},
		{"keys that are not enforced of one table", "postgres", numbers + "setup { ALTER TABLE p DISABLE TRIGGER ALL } " + insert, "1|7|3", false},
		{"keys that TiDB leaves alone", "tidb", numbers + "session s step f { SET GLOBAL tidb_enable_foreign_key = ON } step q { INSERT INTO c VALUES (1, 7, 2) } permutation f q", "1|7|3", false},
		{"rows that are not checked", "postgres", strings.Replace(numbers, ", FOREIGN KEY (up) REFERENCES p (id)", "", 1) +
			"setup { ALTER TABLE c ADD FOREIGN KEY (up) REFERENCES p NOT VALID } " + insert, "1|7|3", false},
		{"its parent went, and it stayed as the setup left it", "postgres mariadb mysql tidb", numbers + change, ">1|7|2", true},
		{"the setup left it without one", "mariadb mysql", numbers + "setup { SET foreign_key_checks = 0 } setup { INSERT INTO c VALUES (2, 7, 9) } setup { SET foreign_key_checks = 1 } " + insert, "2|7|9", false},
		{"NULL instead of a parent that went", "postgres mariadb mysql tidb", keyed("ON DELETE SET NULL") + change, ">1|7|NULL", false},
		{"an action that did not happen", "postgres mariadb mysql tidb", keyed("ON DELETE CASCADE") + change, ">1|7|2", true},
		{"it refers to itself", "postgres mariadb mysql tidb", own + "session s step q { INSERT INTO c VALUES (1, 7, 1) } permutation q", "1|7|1", false},
		{"its own table has none", "postgres mariadb mysql tidb", own + "session s step q { INSERT INTO c VALUES (1, 7, 1) } permutation q", "1|7|3", true},
		{"its parent is in a partition", "postgres", parted + insert, "1|7|2", false},
		{"no partition has its parent", "postgres", parted + insert, "1|7|3", true},
		{"all or none may be NULL", "postgres", strings.Replace(pairs, "p (b, a)", "p (b, a) MATCH FULL", 1) + "session s step q { INSERT INTO c VALUES (1, 1, 2) } permutation q", "1|NULL|NULL", false},
		{"a view beside its parent", "postgres mariadb mysql", numbers + "setup { CREATE VIEW w AS SELECT * FROM p WHERE id > 1 } " + insert, "1|7|1", false},
		{"looked at when the transaction ends", "postgres", keyed("DEFERRABLE INITIALLY DEFERRED") + insert, "1|7|3", false},
		{"put off by a step", "postgres", keyed("DEFERRABLE") + "session s step b { BEGIN } step d { SET CONSTRAINTS ALL DEFERRED } step q { INSERT INTO c VALUES (1, 7, 2) } step e { COMMIT } permutation b d q e", "1|7|3", false},
		{"a step drops the key", "mariadb mysql tidb", keyed("") + "session s step q { INSERT INTO c VALUES (1, 7, 2) } step d { ALTER TABLE c DROP FOREIGN KEY c_ibfk_1 } permutation q", "1|7|2", false},
		{"a session's setup drops the key", "postgres", numbers + "session s setup { ALTER TABLE c DROP CONSTRAINT c_up_fkey } step q { INSERT INTO c VALUES (1, 7, 2) } permutation q", "1|7|3", false},
		{"a session's setup makes another key of it", "postgres", numbers + "setup { CREATE TABLE o (id INT PRIMARY KEY) } setup { INSERT INTO o VALUES (3) } session s setup { ALTER TABLE c RENAME up TO old; ALTER TABLE c ADD up INT; } " +
			"step q { SELECT 1 } step i { INSERT INTO c VALUES (1, 7, 2) } permutation q i", "1|7|3|3", false},
		{"a time zone of the session, and texts that are not told apart", "mariadb mysql", dated + "session s setup { SET time_zone = '+05:00' } step q { INSERT INTO c SELECT * FROM p } permutation q", "A|2026-01-01 12:00:00", false},
		{"a search path of the session", "postgres", "setup { CREATE SCHEMA o } setup { CREATE TABLE o.p (id INT PRIMARY KEY) } setup { CREATE TABLE o.c (id INT, n INT, up INT REFERENCES o.p) }" +
			strings.Replace(numbers, "p (id INT", "p (id NUMERIC", 1) + "teardown { DROP SCHEMA o CASCADE } session s setup { SET search_path = o, public } step q { INSERT INTO public.c VALUES (1, 7, 2) } permutation q", "1|7|2.0", false},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		pair := p.at(t, p.d.Levels[slices.IndexFunc(p.d.Levels, func(l product.Level) bool { return l.History == product.ReadCommitted })])
		for _, test := range tests {
			if !slices.Contains(strings.Fields(test.engines), strings.Split(p.name, ":")[0]) {
				continue
			}
			spec, err := scenario.Parse("orphan.spec", []byte(test.spec))
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			s := pair.execute(t, spec)
			if v := pair.check(t, s); len(v.Findings) > 0 {
				t.Errorf("%s: a true end\n%s", test.name, account(spec, s, v))
			}
			var row []answer.Value
			after, gone := strings.CutPrefix(test.row, ">")
			if gone {
				s.Final[slices.IndexFunc(s.Final, func(t answer.Table) bool { return t.Name == "p" })].Rows = nil
			}
			for _, v := range strings.Split(after, "|") {
				if v == "NULL" {
					row = append(row, nil)
				} else {
					row = append(row, answer.Value(v))
				}
			}
			s.Final[slices.IndexFunc(s.Final, func(t answer.Table) bool { return t.Name == "c" })].Rows[0] = row
			v := pair.check(t, s)
			got := slices.ContainsFunc(v.Findings, func(f oracle.Finding) bool { return strings.Contains(f.Difference.Rule, "keep their foreign keys") })
			if got != test.want {
				t.Errorf("%s: got %t, want %t\n%s", test.name, got, test.want, account(spec, s, v))
			}
		}
	})
}
