package radar

import (
	"strings"
	"testing"

	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

func family() Options {
	return Options{Describe: mysql.New(mysql.MariaDB).Describe, Define: mysql.Define}
}

// TestAbstract has setups and their abstract metadata; the first is figure 6 of the paper.
func TestAbstract(t *testing.T) {
	figure := []string{
		"CREATE TABLE t1 (c1 INT, c2 INT GENERATED ALWAYS AS (c1+1), UNIQUE (c1))",
		"CREATE TABLE t2 (c3 INT NOT NULL, FOREIGN KEY (c3) REFERENCES t1 (c1))",
	}
	const want = "<INT, GENERATED(<INT>)>; <INT>; UNIQUE(<INT>)\n<INT, NOT NULL>; FOREIGN KEY(<INT, NOT NULL>)->(<INT>)"
	if got := Abstract(figure, family()); got != want {
		t.Errorf("figure 6: got\n%s\nwant\n%s", got, want)
	}
	for _, test := range []struct {
		name string
		same bool
		a, b string
	}{
		{"names", true, "CREATE TABLE t (a INT PRIMARY KEY, b TEXT)", "CREATE TABLE other (x INT, y TEXT, PRIMARY KEY (x))"},
		{"order of columns", true, "CREATE TABLE t (a INT, b TEXT)", "CREATE TABLE t (b TEXT, a INT)"},
		{"constants and operators", true, "CREATE TABLE t (a INT, CHECK (a > 1))", "CREATE TABLE t (a INT, CHECK (1000 < ABS(a)))"},
		{"an index of its own statement", true, "CREATE TABLE t (a INT, KEY (a))", "CREATE TABLE t (a INT); CREATE INDEX i ON t (a)"},
		{"rows", true, "CREATE TABLE t (a INT)", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1)"},
		{"a dropped table", true, "CREATE TABLE t (a INT)", "CREATE TABLE t (a INT); CREATE TABLE u (b INT); DROP TABLE u"},
		{"types", false, "CREATE TABLE t (a INT)", "CREATE TABLE t (a BIGINT)"},
		{"NOT NULL", false, "CREATE TABLE t (a INT)", "CREATE TABLE t (a INT NOT NULL)"},
		{"which column has the index", false, "CREATE TABLE t (a INT, b TEXT, KEY (a))", "CREATE TABLE t (a INT, b TEXT, KEY (b))"},
		{"the order within an index", false, "CREATE TABLE t (a INT, b TEXT, KEY (a, b))", "CREATE TABLE t (a INT, b TEXT, KEY (b, a))"},
		{"partitions", false, "CREATE TABLE t (a INT)", "CREATE TABLE t (a INT) PARTITION BY HASH (a) PARTITIONS 2"},
		{"one more table", false, "CREATE TABLE t (a INT)", "CREATE TABLE t (a INT); CREATE TABLE u (a INT)"},
	} {
		a, b := Abstract(strings.Split(test.a, "; "), family()), Abstract(strings.Split(test.b, "; "), family())
		if got := a == b; got != test.same {
			t.Errorf("%s: the same: %v, want %v\n%s\n%s", test.name, got, test.same, a, b)
		}
	}
	list := Options{Describe: postgres.Describe, Define: postgres.Define}
	if got := Abstract([]string{"CREATE TABLE p (a int NOT NULL) PARTITION BY LIST (a)", "CREATE TABLE p1 PARTITION OF p DEFAULT"}, list); got !=
		"<INT, NOT NULL>; PARTITION; PARTITION BY LIST(<INT, NOT NULL>)" {
		t.Errorf("partitions: got %s", got)
	}
}

// TestConstruct has setups, what of them makes the raw database, and of which tables the rows are known from the text.
func TestConstruct(t *testing.T) {
	pg := Options{Describe: postgres.Describe, Define: postgres.Define}
	for _, test := range []struct {
		name   string
		family bool
		setup  string
		want   string // statements | known columns | unsure
	}{
		{"figure 4", true, "CREATE TABLE t1 (c1 INT, c2 INT GENERATED ALWAYS AS (c1+1), UNIQUE (c1)); INSERT INTO t1 (c1) VALUES (1); CREATE TABLE t2 (c3 INT NOT NULL, FOREIGN KEY (c3) REFERENCES t1 (c1)); INSERT INTO t2 VALUES (1)",
			"CREATE TABLE t1 (c1 INT, c2 INT); INSERT INTO t1 (c1) VALUES (1); CREATE TABLE t2 (c3 INT); INSERT INTO t2 VALUES (1) | t1: c1 t2: c3"},
		{"defaults, NULL, counters", true, "CREATE TABLE t (id INT AUTO_INCREMENT KEY, a INT DEFAULT 3, b INT NOT NULL, c TIMESTAMP, d INT); INSERT INTO t VALUES (5, DEFAULT, 1, NULL, NULL)",
			"CREATE TABLE t (id INT, a INT, b INT, c TIMESTAMP NULL, d INT); INSERT INTO t VALUES (5, DEFAULT, 1, NULL, NULL) | t: b d"},
		{"a column that is left out", false, "CREATE TABLE t (a int, b int); INSERT INTO t (b) VALUES (1)", "CREATE TABLE t (a int, b int); INSERT INTO t (b) VALUES (1) | t: b"},
		{"expressions", false, "CREATE TABLE t (a int); INSERT INTO t VALUES (1 + 1)", "CREATE TABLE t (a int) | t unsure: a written value is no literal"},
		{"literals", false, "CREATE TABLE t (a int, b text, c date, d bytea); INSERT INTO t VALUES (-1.5e3, 'it''s', DATE '2024-01-01', '\\x00'::bytea)",
			"CREATE TABLE t (a int, b text, c date, d bytea); INSERT INTO t VALUES (-1.5e3, 'it''s', DATE '2024-01-01', '\\x00'::bytea) | t: a b c d"},
		{"updates", true, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1); UPDATE t SET a = 2", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1) | t unsure: rows come from other statements than INSERT ... VALUES"},
		{"conflicts", true, "CREATE TABLE t (a INT KEY); INSERT IGNORE INTO t VALUES (1)", "CREATE TABLE t (a INT) | t unsure: rows come from other statements than INSERT ... VALUES"},
		{"triggers", true, "CREATE TABLE t (a INT); CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 2; INSERT INTO t VALUES (1)",
			"CREATE TABLE t (a INT); INSERT INTO t VALUES (1) | t: a | a trigger may write other values"},
		{"another type", true, "CREATE TABLE t (a INT); INSERT INTO t VALUES (1); ALTER TABLE t MODIFY a CHAR(3)", "CREATE TABLE t (a INT); INSERT INTO t VALUES (1); ALTER TABLE t MODIFY a CHAR(3) | t unsure: rows were changed"},
	} {
		o := pg
		if test.family {
			o = family()
		}
		twin := Construct(strings.Split(test.setup, "; "), test.family, o)
		got := strings.Join(twin.Setup, "; ") + " |"
		for _, name := range []string{"t", "t1", "t2"} {
			k := twin.tables[name]
			switch {
			case k == nil:
			case k.unsure != "":
				got += " " + name + " unsure: " + k.unsure
			default:
				got += " " + name + ":"
				for _, c := range k.columns {
					if !k.computed[c.Name] {
						got += " " + c.Name
					}
				}
			}
		}
		if twin.unsure != "" {
			got += " | " + twin.unsure
		}
		if got != test.want || twin.Why != "" {
			t.Errorf("%s: got\n%s (%s)\nwant\n%s", test.name, got, twin.Why, test.want)
		}
	}
	if twin := Construct([]string{"CREATE TABLE t (a INT) WITH SYSTEM VERSIONING"}, true, family()); twin.Why == "" {
		t.Error("a system-versioned table has a raw twin")
	}
}

// TestReason has queries that are compared and those that are not.
func TestReason(t *testing.T) {
	for _, test := range []struct {
		sql  string
		want string // part of the reason; empty: compared
	}{
		{"SELECT a FROM t", ""},
		{"SELECT a FROM t ORDER BY a LIMIT 3", ""},
		{"SELECT a, 'current_database(' FROM t WHERE b = 'limit 1'", ""},
		{"SELECT SUM(a) OVER (PARTITION BY b) FROM t", ""},
		{"SELECT a FROM t LIMIT 3", "LIMIT without ORDER BY"},
		{"SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 2) AS x", "LIMIT in a part"},
		{"SELECT random() FROM t", "random"},
		{"SELECT current_database() FROM t", "metadata"},
		{"SELECT ctid FROM t", "system column"},
		{"SELECT 't'::regclass, a FROM t", "metadata"},
		{"SELECT relname FROM pg_class", "metadata"},
		{"SELECT a FROM t WHERE a = $1", "parameters"},
		{"SELECT 1", "reads no table"},
		{"UPDATE t SET a = 1", "no query"},
	} {
		list, err := postgres.Describe(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		c := &checker{}
		if got := c.reason(&list[0]); (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
			t.Errorf("%s: %q, want %q", test.sql, got, test.want)
		}
	}
}

// TestPieces has the parts of a query that are tried when one side refuses it.
func TestPieces(t *testing.T) {
	got := pieces("SELECT a + 1, f(b, 'x, y') FROM t WHERE 1 / (c - 1) > 2 AND (d OR CAST(e AS int) IN (3, g))")
	for _, want := range []string{"a + 1", "f(b, 'x, y')", "1 / (c - 1)", "1 / (c - 1) > 2", "c - 1", "CAST(e AS int)", "CAST(e AS int) IN (3, g)", "g"} {
		if !contains(got, want) {
			t.Errorf("lacks %q: %q", want, got)
		}
	}
	for _, p := range got {
		if strings.HasPrefix(p, "SELECT") {
			t.Errorf("has the query itself: %q", p)
		}
	}
}

func contains(list []string, s string) bool {
	for _, v := range list {
		if v == s {
			return true
		}
	}
	return false
}

// TestSummed has values that sums in another order may have, and near misses.
func TestSummed(t *testing.T) {
	for _, test := range []struct {
		a, b, kind string
		want       bool
	}{
		{"0.1", "0.10000000000000001", "double", true},
		{"0.7", "0", "float8", true},
		{"0.7", "0", "numeric", false},
		{"0.7", "zero", "double", false},
		{"1.25", "1.2500001", "float4", true},
		{"1", "2", "int", false},
	} {
		if got := summed(test.a, test.kind) == summed(test.b, test.kind); got != test.want {
			t.Errorf("%s and %s (%s): equal %v", test.a, test.b, test.kind, got)
		}
	}
}
