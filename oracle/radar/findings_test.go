package radar_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab"
	"wirecheck/oracle"
	"wirecheck/oracle/radar"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// faulty is a stage on a server that is wrong about something.
type faulty struct {
	radar.Stage
	setup func(sql string) string                 // what the server does instead of a statement of the setup
	spoil func(sql string, answer *schedule.Step) // what it does to an answer
}

func (f faulty) Prepare(ctx context.Context, setup []string, sessions int) error {
	if f.setup != nil {
		setup = slices.Clone(setup)
		for i := range setup {
			setup[i] = f.setup(setup[i])
		}
	}
	return f.Stage.Prepare(ctx, setup, sessions)
}

func (f faulty) Execute(ctx context.Context, session int, sql string) (schedule.Step, error) {
	st, err := f.Stage.Execute(ctx, session, sql)
	if err == nil && f.spoil != nil {
		f.spoil(sql, &st)
	}
	return st, err
}

// lose takes the last row from the answers of one query.
func lose(query string) func(string, *schedule.Step) {
	return func(sql string, st *schedule.Step) {
		if sql == query && len(st.Answer.Rows) > 0 {
			st.Answer.Rows = st.Answer.Rows[:len(st.Answer.Rows)-1]
		}
	}
}

func refuse(query, code string) func(string, *schedule.Step) {
	return func(sql string, st *schedule.Step) {
		if sql == query {
			st.Answer = answer.Result{Err: &answer.Error{Code: code, Message: "made up"}}
		}
	}
}

// TestFindings executes small files on servers that are right or wrong about something.
func TestFindings(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL DEFAULT 7);\nINSERT INTO t (a) VALUES (1), (2);\nINSERT INTO t VALUES (3, 30);\n"
	const generated = "CREATE TABLE t (k INT PRIMARY KEY, a INT, g INT GENERATED ALWAYS AS (a + 1) STORED);\nINSERT INTO t (k, a) VALUES (1, 1), (2, 2);\n"
	tests := []struct {
		name    string
		engines string
		sql     string
		stage   faulty
		want    string // kind and name of the findings, what notes hold; empty: nothing
	}{
		{"nothing wrong", "", table + "SELECT * FROM t WHERE b = 7;", faulty{}, ""},
		{"a lost row", "", table + "SELECT * FROM t WHERE b = 7;", faulty{spoil: lose("SELECT * FROM t WHERE b = 7")}, "violation different result"},
		{"the order of rows does not matter", "", table + "SELECT * FROM t;", faulty{spoil: func(sql string, st *schedule.Step) {
			if sql == "SELECT * FROM t" {
				slices.Reverse(st.Answer.Rows)
			}
		}}, ""},
		{"in a transaction, after its own write", "", table + "BEGIN;\nUPDATE t SET b = 8 WHERE a < 3;\nSELECT a FROM t WHERE b = 8;\nROLLBACK;\nSELECT a FROM t WHERE b = 7;",
			faulty{spoil: lose("SELECT a FROM t WHERE b = 8")}, "violation different result"},
		{"after a rollback", "", table + "BEGIN;\nUPDATE t SET b = 8 WHERE a < 3;\nSELECT a FROM t WHERE b = 8;\nROLLBACK;\nSELECT a FROM t WHERE b = 7;",
			faulty{spoil: lose("SELECT a FROM t WHERE b = 7")}, "violation different result"},
		{"savepoints, deletions, commits", "", table + "BEGIN;\nDELETE FROM t WHERE a = 1;\nSAVEPOINT p;\nDELETE FROM t;\nSELECT * FROM t;\nROLLBACK TO SAVEPOINT p;\nSELECT * FROM t;\nCOMMIT;\nSELECT * FROM t;", faulty{}, ""},
		{"a definition between queries", "", table + "SELECT * FROM t;\nCREATE INDEX i ON t (b);\nSELECT * FROM t WHERE b > 7;\nALTER TABLE t ADD COLUMN c INT DEFAULT 5;\nSELECT * FROM t WHERE c = 5;", faulty{}, ""},
		{"a lost row after a definition", "", table + "ALTER TABLE t ADD COLUMN c INT DEFAULT 5;\nSELECT * FROM t;\nALTER TABLE t ADD COLUMN d INT DEFAULT 6;\nSELECT * FROM t WHERE d = 6;",
			faulty{spoil: lose("SELECT * FROM t WHERE d = 6")}, "violation different result"},
		{"an error from nowhere", "postgres", table + "SELECT a FROM t WHERE b = 7;", faulty{spoil: refuse("SELECT a FROM t WHERE b = 7", "22012")}, "violation error on one side only"},
		{"an error of values, and no rows", "postgres", "CREATE TABLE t (a INT PRIMARY KEY);\nSELECT a FROM t WHERE a = 7;", faulty{spoil: refuse("SELECT a FROM t WHERE a = 7", "22012")}, "permitted error on one side only"},
		{"an error that no values explain, and no rows", "", "CREATE TABLE t (a INT PRIMARY KEY);\nSELECT a FROM t WHERE a = 7;", faulty{spoil: refuse("SELECT a FROM t WHERE a = 7", "58030")}, "violation error on one side only"},
		{"an error that no values explain", "", table + "SELECT a FROM t WHERE b = 7;", faulty{spoil: refuse("SELECT a FROM t WHERE b = 7", "58030")}, "violation error on one side only"},
		{"the same error", "postgres", table + "SELECT 1 / (a - 1) FROM t;", faulty{}, ""},
		{"a join that is left out", "postgres", "CREATE TABLE t1 (c1 INT);\nINSERT INTO t1 VALUES (1);\nCREATE TABLE t2 (c2 INT PRIMARY KEY);\nINSERT INTO t2 VALUES (1);\n" +
			"SELECT t1.c1 FROM t1 LEFT JOIN t2 ON t2.c2 = t1.c1 AND 1 / (t1.c1 - 1) = 1;", faulty{}, "permitted error on one side only"},
		{"a join that is left out (MariaDB)", "mariadb", "CREATE TABLE t1 (c1 BIGINT);\nINSERT INTO t1 VALUES (9223372036854775807);\nCREATE TABLE t2 (c2 BIGINT PRIMARY KEY);\nINSERT INTO t2 VALUES (1);\n" +
			"SELECT t1.c1 FROM t1 LEFT JOIN t2 ON t2.c2 = t1.c1 + 1;", faulty{}, "permitted error on one side only"},
		{"ties under LIMIT", "", table + "SELECT a FROM t ORDER BY b LIMIT 1;", faulty{spoil: func(sql string, st *schedule.Step) {
			if strings.Contains(sql, "LIMIT") {
				st.Answer.Rows[0][0] = answer.Value("9")
			}
		}}, "note: an order with ties"},
		{"a stored value", "", table + "SELECT 1 FROM t WHERE a > 5;", faulty{setup: func(sql string) string { return strings.Replace(sql, "(3, 30)", "(4, 30)", 1) }}, "violation different final state"},
		{"a default is the server's affair", "", table + "SELECT 1 FROM t WHERE a > 5;", faulty{setup: func(sql string) string { return strings.Replace(sql, "DEFAULT 7", "DEFAULT 9", 1) }}, ""},
		{"generated values", "", generated + "SELECT * FROM t;\nBEGIN;\nUPDATE t SET a = a + 5;\nSELECT g FROM t WHERE g > 3;\nROLLBACK;\nSELECT g FROM t;", faulty{}, ""},
		{"a generated value that is not its expression's", "", generated + "SELECT g FROM t;", faulty{setup: func(sql string) string { return strings.Replace(sql, "a + 1", "a + 2", 1) }}, "violation different result"},
		{"after an update, too", "", generated + "UPDATE t SET a = a + 5;\nSELECT g FROM t;", faulty{setup: func(sql string) string { return strings.Replace(sql, "a + 1", "a + 2", 1) }}, "violation different result"},
		{"a generated value of inexact ones is taken as it is", "", strings.Replace(generated, "a INT,", "a FLOAT,", 1) + "SELECT g FROM t;",
			faulty{setup: func(sql string) string { return strings.Replace(sql, "a + 1", "a + 2", 1) }}, ""},
		{"a column that depends on a group's key", "postgres", table + "SELECT a, b FROM t GROUP BY a;", faulty{}, "note: the raw database lacks what it needs"},
		{"any row of a group", "mariadb", table + "SELECT b, a FROM t GROUP BY b;", faulty{spoil: func(sql string, st *schedule.Step) {
			if strings.Contains(sql, "GROUP") {
				st.Answer.Rows[0][1] = answer.Value("2")
			}
		}}, "note: any row of a group"},
		{"a wrong group", "mariadb", table + "SELECT b, COUNT(*) FROM t GROUP BY b;", faulty{spoil: func(sql string, st *schedule.Step) {
			if strings.Contains(sql, "GROUP") {
				st.Answer.Rows[0][1] = answer.Value("5")
			}
		}}, "violation different result"},
		{"the clock", "", table + "SELECT a, now() FROM t;", faulty{}, "note: not compared: function now"},
		{"the database's name", "postgres", table + "SELECT a, current_database() FROM t;", faulty{}, "note: has to do with metadata"},
		{"an index that is named", "mariadb", table + "SELECT a FROM t FORCE INDEX (PRIMARY);", faulty{}, "note: has to do with metadata"},
		{"a partition that is named", "postgres", "CREATE TABLE p (a INT NOT NULL, b TEXT) PARTITION BY LIST (a);\nCREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);\nCREATE TABLE p2 PARTITION OF p DEFAULT;\n" +
			"INSERT INTO p VALUES (1, 'x'), (2, 'y'), (3, 'z');\nSELECT * FROM p WHERE a > 1;\nSELECT * FROM p1;", faulty{}, "note: it names a partition"},
		{"dates in another style", "postgres", "CREATE TABLE t (a DATE PRIMARY KEY);\nINSERT INTO t VALUES ('2024-01-02');\nSET DateStyle = 'SQL, DMY';\nSELECT * FROM t;\nINSERT INTO t VALUES ('2024-03-04');\nSELECT * FROM t;", faulty{}, ""},
		{"dates in another style, in a transaction", "postgres", "CREATE TABLE t (a DATE PRIMARY KEY);\nINSERT INTO t VALUES ('2024-01-02');\nSET DateStyle = 'SQL, DMY';\nSELECT * FROM t;\nBEGIN;\nINSERT INTO t VALUES ('2024-03-04');\nSELECT * FROM t;",
			faulty{}, "unknown: in a transaction of a session that shows values otherwise, rows cannot be read without loss"},
		{"a definition in a transaction", "postgres", table + "SELECT * FROM t;\nBEGIN;\nCREATE TABLE u (a INT PRIMARY KEY);\nINSERT INTO u VALUES (1);\nSELECT * FROM u;\nROLLBACK;", faulty{},
			"unknown: a definition in a transaction: CREATE TABLE u (a INT PRIMARY KEY)"},
		{"a temporary table", "", table + "SELECT * FROM t;\nCREATE TEMPORARY TABLE u (a INT PRIMARY KEY);\nSELECT * FROM u;", faulty{},
			"unknown: a temporary table is the session's own: CREATE TEMPORARY TABLE u (a INT PRIMARY KEY)"},
		{"locked tables", "mariadb", table + "CREATE TABLE u (a INT);\nSELECT * FROM t;\nLOCK TABLES u READ;\nSELECT * FROM t;", faulty{}, "unknown: which tables are locked decides which can be queried: LOCK TABLES u READ"},
		{"a new table", "", table + "SELECT * FROM t;\nCREATE TABLE u (a INT PRIMARY KEY, b INT DEFAULT 4);\nINSERT INTO u (a) VALUES (1);\nSELECT * FROM u JOIN t ON t.a = u.a;\nDROP TABLE u;\nSELECT * FROM t;", faulty{}, ""},
		{"settings", "mariadb", table + "SELECT * FROM t;\nSET sql_mode = 'ANSI_QUOTES';\nSELECT \"a\" FROM t;\nSET @x = 1, SESSION div_precision_increment = 2;\nSELECT a / 3 FROM t;", faulty{}, ""},
		{"settings", "postgres", table + "SELECT * FROM t;\nSET extra_float_digits = 0;\nSELECT a / 3.0::float8 FROM t;\nRESET ALL;\nSELECT a / 3.0::float8 FROM t;", faulty{}, ""},
		{"a setting within a transaction", "postgres", table + "SELECT * FROM t;\nBEGIN;\nSET LOCAL DateStyle = 'SQL';\nSELECT DATE '2024-01-02' FROM t;\nCOMMIT;", faulty{},
			"unknown: a setting that ends or is undone with its transaction: SET LOCAL DateStyle = 'SQL'"},
		{"a query that writes", "postgres", table + "WITH w AS (DELETE FROM t WHERE a = 1 RETURNING *) SELECT * FROM w;\nSELECT a FROM t WHERE b = 7;", faulty{}, "note: not compared: it writes"},
		{"a query that writes what a key forbids", "postgres", table + "WITH w AS (INSERT INTO t VALUES (1) RETURNING *) SELECT * FROM w;\nSELECT a FROM t WHERE b = 7;",
			faulty{}, "note: not compared: it writes"},
		{"when constraints are looked at", "postgres", table + "BEGIN;\nSET CONSTRAINTS ALL DEFERRED;\nUPDATE t SET b = 8;\nSELECT a FROM t WHERE b = 8;\nCOMMIT;", faulty{}, ""},
		{"a lost row after that", "postgres", table + "BEGIN;\nSET CONSTRAINTS ALL DEFERRED;\nUPDATE t SET b = 8;\nSELECT a FROM t WHERE b = 8;\nCOMMIT;",
			faulty{spoil: lose("SELECT a FROM t WHERE b = 8")}, "violation different result"},
		{"the level within a transaction", "postgres", table + "SELECT * FROM t;\nBEGIN;\nSET TRANSACTION ISOLATION LEVEL SERIALIZABLE;\nSELECT * FROM t;\nCOMMIT;", faulty{}, ""},
		{"behind an error that fails the transaction", "postgres", table + "BEGIN;\nSELECT 1 / (a - a) FROM t;\nSELECT a FROM t;\nUPDATE t SET b = 8;\nROLLBACK;\nSELECT b FROM t;", faulty{}, ""},
		{"behind a failed transaction", "postgres", table + "BEGIN;\nSELECT 1 / (a - a) FROM t;\nSELECT a FROM t;\nUPDATE t SET b = 8;\nROLLBACK;\nSELECT b FROM t;",
			faulty{spoil: lose("SELECT b FROM t")}, "violation different result"},
		{"a zero date", "mariadb", "CREATE TABLE t (a DATE NOT NULL, b INT);\nINSERT INTO t VALUES ('0000-00-00', 1), ('2024-01-01', 2);\nSELECT b FROM t WHERE a IS NULL;", faulty{}, "permitted different result"},
		{"a zero date, and another difference", "mariadb", "CREATE TABLE t (a DATE NOT NULL, b INT);\nINSERT INTO t VALUES ('0000-00-00', 1), ('2024-01-01', 2);\nSELECT b FROM t WHERE a < '2024-02-02';",
			faulty{spoil: lose("SELECT b FROM t WHERE a < '2024-02-02'")}, "violation different result"},
		{"AUTO_INCREMENT columns that are NULL", "mariadb", table + "SET sql_auto_is_null = 1;\nSELECT 1 FROM t WHERE a IS NULL;", faulty{}, "unknown: with sql_auto_is_null, which columns have AUTO_INCREMENT decides what IS NULL finds"},
		{"many kinds of metadata", "postgres", `CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE DOMAIN small AS int CHECK (value < 100) DEFAULT 5;
CREATE SCHEMA x;
CREATE SEQUENCE q START 5;
CREATE TABLE x.u (k text COLLATE "C" PRIMARY KEY, m mood DEFAULT 'ok');
CREATE TABLE t (id serial PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) STORED, i bigint GENERATED BY DEFAULT AS IDENTITY, n numeric(5,2) NOT NULL CHECK (n > 0), s small, k text REFERENCES x.u, w timestamptz DEFAULT now(), z int DEFAULT nextval('q'), UNIQUE (n, k), EXCLUDE (n WITH =));
CREATE INDEX ON t ((n + 1)) WHERE n > 1;
CREATE VIEW v AS SELECT id, n FROM t WHERE n > 1;
CREATE TABLE child (extra int) INHERITS (t);
CREATE TABLE copy (LIKE t INCLUDING ALL);
CREATE TABLE made AS SELECT 1 AS a, 'x'::text AS b;
INSERT INTO x.u VALUES ('a', 'sad'), ('b', DEFAULT);
INSERT INTO t (n, k) VALUES (1.5, 'a'), (2.25, NULL), (3, 'b');
INSERT INTO child (id, i, n, extra) VALUES (10, 3, 4.5, 1);
UPDATE t SET n = n + 1 WHERE id = 1;
ALTER TABLE t ADD COLUMN late int NOT NULL DEFAULT 3, ADD CONSTRAINT c CHECK (late > 0);
ANALYZE;
SELECT id, g, i, n, s, k, w, z, late FROM t;
SELECT * FROM v JOIN t USING (id);
SELECT m FROM x.u WHERE k = 'b';
SELECT count(*) FROM child WHERE g = 20;
SELECT * FROM made, copy;
`, faulty{}, ""},
		{"many kinds of metadata (MariaDB)", "mariadb", "CREATE TABLE u (k VARCHAR(5) COLLATE utf8mb4_bin PRIMARY KEY, e ENUM('a','b') DEFAULT 'a') ENGINE=InnoDB;\n" +
			"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, g INT AS (n * 2) VIRTUAL, p INT AS (n * 3) PERSISTENT, n DECIMAL(5,2) NOT NULL CHECK (n > 0), k VARCHAR(5) COLLATE utf8mb4_bin, w TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, " +
			"h INT INVISIBLE DEFAULT 4, f FLOAT, d DOUBLE ZEROFILL, b BIT(3), j JSON, UNIQUE KEY (n, k), KEY (f), FOREIGN KEY (k) REFERENCES u (k) ON DELETE CASCADE) ENGINE=InnoDB AUTO_INCREMENT=5;\n" +
			"CREATE TABLE part (a INT NOT NULL, b DATE DEFAULT '2024-01-01', PRIMARY KEY (a)) PARTITION BY HASH (a) PARTITIONS 3;\n" +
			"CREATE TABLE likeness LIKE t;\nCREATE TABLE made (KEY (a)) SELECT 1 AS a;\nCREATE VIEW v AS SELECT id, n FROM t WHERE n > 1;\n" +
			"INSERT INTO u VALUES ('a', 'b'), ('b', DEFAULT);\nINSERT INTO t (n, k, f, d, b, j) VALUES (1.5, 'a', 0.1, 2, b'101', '{\"a\": 1}'), (2.25, NULL, 3.4e38, NULL, NULL, NULL);\n" +
			"INSERT INTO part VALUES (1, NULL), (2, '2024-05-05');\nINSERT INTO part (a) VALUES (3);\nALTER TABLE t ADD COLUMN late INT NOT NULL DEFAULT 3 AFTER n, ADD INDEX (late);\nCREATE INDEX i ON t (d);\n" +
			"SELECT * FROM t;\nSELECT id, g, p, h, w, late FROM t WHERE f > 1;\nSELECT * FROM v JOIN t USING (id);\nSELECT e FROM u WHERE k = 'b';\nSELECT * FROM part WHERE a > 1;\nSELECT * FROM likeness, made;\n", faulty{}, ""},
	}
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		for _, test := range tests {
			if test.engines != "" && test.engines != p.d.Name {
				continue
			}
			spec, err := lab.Script(test.name, test.sql, p.describe())
			if err != nil {
				t.Fatal(err)
			}
			stage := test.stage
			stage.Stage = s.first
			v, err := radar.Check(t.Context(), s.execute(t, spec), stage, s.options)
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			var got []string
			for _, f := range v.Findings {
				got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Name))
				if d := f.Difference; f.Kind == oracle.KindPermitted && (d.Reason == "" || d.Cause == "" || f.Source == "") || f.ID == "" || f.Class != oracle.Radar || len(f.Tables) == 0 {
					t.Errorf("%s: not complete: %+v", test.name, f)
				}
			}
			for _, n := range v.Notes {
				if want, ok := strings.CutPrefix(test.want, "note: "); ok && strings.Contains(n, want) {
					n = want
				}
				got = append(got, "note: "+n)
			}
			if v.Unknown != "" {
				got = append(got, "unknown: "+v.Unknown)
			}
			if text := strings.Join(got, "; "); text != test.want {
				t.Errorf("%s: got %s\nwant %s\n%s", test.name, text, test.want, tell(v))
			}
		}
	})
}

// TestGiven gives the raw database by the scenario's own statements.
func TestGiven(t *testing.T) {
	t.Parallel()
	const table = "CREATE TABLE t (a INT PRIMARY KEY);\nINSERT INTO t VALUES (1);\n"
	eachEngine(t, func(t *testing.T, p *place) {
		s := p.stages(t, p.level(p.d.Default))
		for _, test := range []struct {
			sql  string
			raw  []string
			want string
		}{
			{"SELECT a FROM t;", []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (99)"}, "different result"},
			{"SELECT a FROM t;", []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"}, ""},
			{"SELECT a FROM t;\nUPDATE t SET a = 2;\nSELECT a + 1 FROM t;", []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"}, ""},
			{"SELECT a FROM t;", []string{"CREATE TABLE nothing (a INT)"}, "unknown"},
			{"SELECT a FROM t;", []string{"CREATE TABLE t (a INT)", "INSERT INTO u VALUES (1)"}, "unknown"},
		} {
			spec, err := lab.Script("given", table+test.sql, p.describe())
			if err != nil {
				t.Fatal(err)
			}
			schedule := s.execute(t, spec)
			schedule.Raw = test.raw
			v, err := radar.Check(t.Context(), schedule, s.first, s.options)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			for _, f := range v.Findings {
				got += f.Name
			}
			if v.Unknown != "" {
				got += "unknown"
			}
			if got != test.want {
				t.Errorf("%s, raw %q: got %q (%s), want %q", test.sql, test.raw, got, v.Unknown, test.want)
			}
		}
	})
}

// TestRawRows: a report says how the raw database got the rows that the query met. Those that nobody changed came from the setup's own statements.
func TestRawRows(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, p *place) {
		table := "CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9));\nINSERT INTO t VALUES (1, 'x'), (2, NULL);\n"
		second, third := "'2'", "'3'"
		if p.d.Product.Dialect == product.DialectSQLite {
			second, third = "2", "3"
		}
		s := p.stages(t, p.level(p.d.Default))
		q := p.d.Product.Quote("t")
		for sql, want := range map[string]string{
			"BEGIN;\nDELETE FROM t WHERE a = 1;\nINSERT INTO t VALUES (3, 'it''s');\nSELECT a FROM t WHERE a < 9;": "INSERT INTO " + q + " VALUES (" + second + ", NULL), (" + third + ", 'it''s')",
			"DELETE FROM t WHERE a = 1;\nSELECT a FROM t WHERE a < 9;":                                             "INSERT INTO " + q + " VALUES (" + second + ", NULL)",
			"SELECT a FROM t WHERE a < 9;": "INSERT INTO t VALUES (1, 'x'), (2, NULL)",
		} {
			spec, err := lab.Script("rows", table+sql, p.describe())
			if err != nil {
				t.Fatal(err)
			}
			v, err := radar.Check(t.Context(), s.execute(t, spec), faulty{Stage: s.first, spoil: lose("SELECT a FROM t WHERE a < 9")}, s.options)
			if err != nil || len(v.Findings) != 1 {
				t.Fatalf("%s: %+v, %v", sql, v, err)
			}
			var inserts []string
			for _, line := range v.Findings[0].Difference.Reference {
				if strings.Contains(line, "INSERT") {
					inserts = append(inserts, strings.TrimPrefix(line, oracle.RawDatabase+": "))
				}
			}
			if got := strings.Join(inserts, "; "); got != want {
				t.Errorf("%s: the raw database came from %s, want %s", sql, got, want)
			}
		}
	})
}

// TestRawRowsAgain: the report's statements give the raw database the rows of the database, whatever their types are.
func TestRawRowsAgain(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, p *place) {
		typed := map[product.Dialect]string{product.DialectPostgres: "b JSON, c BOOLEAN, d NUMERIC", product.DialectSQLite: "b, c INT, d TEXT"}[p.d.Product.Dialect]
		values := "'5', '1', '10'"
		switch {
		case typed == "":
			typed = "b ENUM('5', '1', '2'), c JSON, d VARCHAR(9)"
		case p.d.Product.Dialect == product.DialectSQLite:
			values = "5, '1', '10'"
		}
		s := p.stages(t, p.level(p.d.Default))
		spec, err := lab.Script("rows", "CREATE TABLE t (a INT PRIMARY KEY, "+typed+");\nBEGIN;\nINSERT INTO t VALUES (3, "+values+");\nSELECT a FROM t WHERE a < 9;", p.describe())
		if err != nil {
			t.Fatal(err)
		}
		v, err := radar.Check(t.Context(), s.execute(t, spec), faulty{Stage: s.first, spoil: lose("SELECT a FROM t WHERE a < 9")}, s.options)
		if err != nil || len(v.Findings) != 1 {
			t.Fatalf("%+v, %v", v, err)
		}
		want, err := s.options.Raw.Tables(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var script []string
		for _, line := range v.Findings[0].Difference.Reference {
			if sql := strings.TrimPrefix(line, oracle.RawDatabase+": "); !strings.HasPrefix(sql, "SELECT") {
				script = append(script, sql)
			}
		}
		if err := s.options.Raw.Prepare(t.Context(), script, 1); err != nil {
			t.Fatalf("%v: %v", script, err)
		}
		got, err := s.options.Raw.Tables(t.Context())
		if d := answer.DiffTables(want, got); err != nil || len(d) > 0 || len(got) != 1 || len(got[0].Rows) != 1 {
			t.Errorf("%v: %+v, %v", script, d, err)
		}
	})
}
