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
	tests := []struct {
		name, engines, spec, row string // row: that table c has at the end
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
			for _, v := range strings.Split(test.row, "|") {
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
