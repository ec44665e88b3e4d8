package lab

import (
	"strings"
	"testing"

	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// TestScript has SQL files, and the scenarios that they are.
func TestScript(t *testing.T) {
	family := mysql.New(mysql.MariaDB).Describe
	for _, test := range []struct {
		name, sql string
		describe  Describe
		want      string // setup | session setup | steps; or an error
	}{
		{"setup and queries", "-- a file\nCREATE TABLE t (a INT);\nINSERT INTO t VALUES (1), (2);\n\nSELECT a FROM t; SELECT a + 1\nFROM t;\n", family,
			"CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2) |  | line5=SELECT a FROM t line5_2=SELECT a + 1\nFROM t"},
		{"writes between queries", "CREATE TABLE t (a INT);\nSELECT * FROM t;\nINSERT INTO t VALUES (1);\nSELECT * FROM t", postgres.Describe,
			"CREATE TABLE t (a INT) |  | line2=SELECT * FROM t line3=INSERT INTO t VALUES (1) line4=SELECT * FROM t"},
		{"an open transaction", "CREATE TABLE t (a INT);\nBEGIN;\nINSERT INTO t VALUES (1);\nSELECT * FROM t;\nROLLBACK;", postgres.Describe,
			"CREATE TABLE t (a INT) |  | line2=BEGIN line3=INSERT INTO t VALUES (1) line4=SELECT * FROM t line5=ROLLBACK"},
		{"a closed transaction, settings, queries without tables", "SET sql_mode = '';\nBEGIN;\nCREATE TABLE t (a INT);\nCOMMIT;\nSELECT 1;\nSELECT * FROM t;", family,
			"SET sql_mode = ''; BEGIN; CREATE TABLE t (a INT); COMMIT; SELECT 1 | SET sql_mode = '' | line6=SELECT * FROM t"},
		{"a semicolon in a text", "CREATE TABLE t (a text);\nINSERT INTO t VALUES ('; SELECT * FROM t;');\nSELECT * FROM t;", postgres.Describe,
			"CREATE TABLE t (a text); INSERT INTO t VALUES ('; SELECT * FROM t;') |  | line3=SELECT * FROM t"},
		{"no query", "CREATE TABLE t (a INT);", family, "x.sql:1:1: no query of a table"},
		{"empty", "", family, "x.sql:1:1: no query of a table"},
		{"psql", "CREATE TABLE t (a INT);\n\\d t\nSELECT * FROM t;", postgres.Describe, `x.sql:2:1: "\\d t" is a command of a client program`},
		{"delimiter", "DELIMITER //\nSELECT * FROM t//", family, `x.sql:1:1: "DELIMITER //" is a command`},
		{"copy", "CREATE TABLE t (a INT);\nCOPY t (a) FROM stdin;\nSELECT * FROM t", postgres.Describe, "x.sql:2:1: COPY reads"},
		{"use", "USE x;\nSELECT * FROM t", family, "x.sql:1:1: the file is executed in a database of its own"},
		{"unterminated", "SELECT * FROM t WHERE a = 'x", family, "x.sql: describe statement: "},
	} {
		spec, err := Script("x.sql", test.sql, test.describe)
		if err != nil {
			if !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("%s: error %v, want %s", test.name, err, test.want)
			}
			continue
		}
		var setup, steps []string
		for _, b := range spec.Setup {
			setup = append(setup, b.SQL)
		}
		own := ""
		if b := spec.Sessions[0].Setup; b != nil {
			own = b.SQL
		}
		for _, s := range spec.Sessions[0].Steps {
			steps = append(steps, s.Name+"="+s.SQL)
		}
		if got := strings.Join(setup, "; ") + " | " + own + " | " + strings.Join(steps, " "); got != test.want {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, test.want)
		}
	}
}
