package statement_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/lab/generate"
	"wirecheck/statement"
	"wirecheck/statement/sqlite"
)

// TestDescribeSQLite has statements and what is printed of them.
func TestDescribeSQLite(t *testing.T) {
	for _, test := range []struct{ sql, want string }{
		{"SELECT a, [b c] FROM t AS x LEFT JOIN \"u v\" USING (a) WHERE a > 1 -- ; comment\n AND b <> ';'", `verb: select
flags: predicate
mention: table t as x read
mention: table "u v" read
from: t AS x LEFT JOIN "u v" USING (a)
where: a > 1 -- ; comment
 AND b <> ';'
`},
		{"SELECT count(*), b FROM t GROUP BY b HAVING max(c) > 1 ORDER BY b LIMIT 3", `verb: select
flags: predicate, aggregate, limit
mention: table t read
from: t
group by: b
having: max(c) > 1
order by: b
limit: LIMIT 3
`},
		{"SELECT a FROM t WHERE a IS NOT DISTINCT FROM 3 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)", `verb: select
flags: predicate, subquery
mention: table t read
mention: table u read in subquery depth 1
from: t
where: a IS NOT DISTINCT FROM 3 AND EXISTS (SELECT 1 FROM u WHERE u.a = t.a)
`},
		{"WITH w (n) AS (SELECT a FROM t), v AS NOT MATERIALIZED (SELECT n FROM w) SELECT * FROM v JOIN u ON v.n = u.a", `verb: select
flags: predicate, subquery
mention: table t read in cte depth 1
mention: cte w read in cte depth 1
mention: cte v read
mention: table u read
with: WITH w (n) AS (SELECT a FROM t), v AS NOT MATERIALIZED (SELECT n FROM w)
from: v JOIN u ON v.n = u.a
`},
		{"SELECT a FROM t UNION ALL SELECT a FROM u WHERE a = 1 ORDER BY a LIMIT 1", `verb: select
flags: predicate, set operation, limit
mention: table t read
mention: table u read in select
`},
		{"SELECT min(a, b), sum(a) OVER (PARTITION BY b) FROM (SELECT a, b FROM t) AS x", `verb: select
flags: predicate, window, subquery
mention: table t read in derived depth 1
mention: derived as x read
from: (SELECT a, b FROM t) AS x
`},
		{"INSERT OR IGNORE INTO main.t (a, \"b\") VALUES (1, 'x, y'), (max(1, 2), X'00') RETURNING *", `verb: insert
flags: returning, ignore
mention: table main.t written
columns: a, b
row: 1 | 'x, y'
row: max(1, 2) | X'00'
`},
		{"INSERT INTO t (a) VALUES (1) ON CONFLICT (a) DO UPDATE SET b = excluded.a, c = 2 WHERE t.b > 1", `verb: insert
flags: conflict
mention: table t written read
columns: a
row: 1
on conflict: b=excluded.a | c=2
`},
		{"INSERT INTO t SELECT a, 1 FROM u WHERE TRUE ON CONFLICT DO NOTHING", `verb: insert
flags: conflict, nothing, predicate, subquery
mention: table t written
mention: table u read in select depth 1
query: SELECT a, 1 FROM u WHERE TRUE
`},
		{"REPLACE INTO t VALUES (1)", "verb: replace\nmention: table t written read\nrow: 1\n"},
		{"INSERT INTO t DEFAULT VALUES", "verb: insert\nflags: defaults\nmention: table t written\n"},
		{"UPDATE t AS x SET a = a + 1, (b, c) = (1, 2) FROM u WHERE x.a = u.a RETURNING a", `verb: update
flags: returning, predicate
mention: table t as x written read
mention: table u read
from: t AS x, u
where: x.a = u.a
set: a=a + 1 | b=(1, 2) | c=(1, 2)
`},
		{"DELETE FROM t", "verb: delete\nflags: predicate\nmention: table t written read\nfrom: t\n"},
		{"BEGIN IMMEDIATE TRANSACTION", "verb: begin\ncontrol: begin\n"},
		{"END", "verb: commit\ncontrol: commit\n"},
		{"ROLLBACK TRANSACTION TO SAVEPOINT P1", "verb: rollback to\ncontrol: rollback to p1\n"},
		{"RELEASE p1", "verb: release\ncontrol: release p1\n"},
		{"CREATE TABLE t (a)", "verb: ddl\nflags: ddl\n"},
		{"PRAGMA foreign_keys", "verb: set\nflags: variables\nvolatile: PRAGMA\n"},

		{"SELECT random(), date('now'), changes(), mine(1) FROM t", "verb: select\nflags: predicate, variables\nmention: table t read\nfrom: t\n" +
			"volatile: function changes tells of the session; function date tells of the clock; function mine is not known; function random tells of random values\n"},
		{"SELECT a FROM t LIMIT 1", "verb: select\nflags: predicate, limit\nmention: table t read\nfrom: t\nlimit: LIMIT 1\nvolatile: LIMIT without ORDER BY\n"},
		{"SELECT rowid FROM t", "verb: select\nflags: predicate\nmention: table t read\nfrom: t\nvolatile: it names the rowid, which is not among the columns\n"},
		{"SELECT group_concat(a) FROM t", "verb: select\nflags: predicate, aggregate\nmention: table t read\nfrom: t\nvolatile: aggregate group_concat shows the order of rows\n"},
		{"SELECT group_concat(a ORDER BY a) FROM t", "verb: select\nflags: predicate, aggregate\nmention: table t read\nfrom: t\n"},
		{"SELECT row_number() OVER (PARTITION BY a) FROM t", "verb: select\nflags: predicate, window\nmention: table t read\nfrom: t\nvolatile: a window function without ORDER BY\n"},
		{"SELECT row_number() OVER (ORDER BY a) FROM t", "verb: select\nflags: predicate, window\nmention: table t read\nfrom: t\n"},
		{"SELECT a, b, count(*) FROM t GROUP BY a", "verb: select\nflags: predicate, aggregate\nmention: table t read\nfrom: t\ngroup by: a\n" +
			"volatile: a column that is not grouped may be of any row of its group\n"},
		{"SELECT a + 1, count(*) FILTER (WHERE b > 1) FROM t GROUP BY a", "verb: select\nflags: predicate, aggregate\nmention: table t read\nfrom: t\ngroup by: a\n"},
		{"SELECT max(a), ?1 FROM t WHERE b = :b", "verb: select\nflags: predicate, aggregate, 2 parameters\nmention: table t read\nfrom: t\nwhere: b = :b\n" +
			""},

		{"SELECT a FROM t WHERE a IN u", "verb: select\nunparsed: IN with a table's name\nflags: variables\nvolatile: a statement that is not understood\n"},
		{"UPDATE OR IGNORE t SET a = 1", "verb: update\nunparsed: UPDATE OR IGNORE may leave out rows or change others\nflags: variables\nvolatile: a statement that is not understood\n"},
		{"SELECT * FROM temp.t", "verb: select\nunparsed: a table of another database than main\nflags: variables\nvolatile: a statement that is not understood\n"},
		{"SELECT (a FROM t", "verb: other\nunparsed: parentheses do not match\nflags: variables\nvolatile: a statement that is not understood\n"},
		{"MERGE INTO t", "verb: other\nunparsed: it begins with none of the words of SQLite's statements\nflags: variables\nvolatile: a statement that is not understood\n"},
	} {
		list, err := sqlite.Describe(test.sql)
		if err != nil || len(list) != 1 {
			t.Errorf("%s: %d statements, %v", test.sql, len(list), err)
			continue
		}
		if diff := cmp.Diff(test.want, printed(&list[0])); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.sql, diff)
		}
	}
}

// TestDescribeSQLiteScript: a script is cut at its semicolons, but for those in texts, names, comments and triggers.
func TestDescribeSQLiteScript(t *testing.T) {
	const script = `BEGIN; -- a; b
		CREATE TRIGGER x AFTER UPDATE ON t BEGIN UPDATE t SET a = 1; DELETE FROM u; END;
		SELECT ';' AS [a;b]; /* c; */; COMMIT`
	list, err := sqlite.Describe(script)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, st := range list {
		if script[st.At:st.At+len(st.Text)] != st.Text {
			t.Errorf("%q is not at %d", st.Text, st.At)
		}
		got = append(got, st.Text)
	}
	want := []string{"BEGIN", "CREATE TRIGGER x AFTER UPDATE ON t BEGIN UPDATE t SET a = 1; DELETE FROM u; END", "SELECT ';' AS [a;b]", "COMMIT"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, broken := range []string{"SELECT 'a", "SELECT \"a", "SELECT [a", "SELECT x'"} {
		if _, err := sqlite.Describe(broken); err == nil {
			t.Errorf("%s: no error", broken)
		}
	}
}

// TestDescribeSQLiteGenerated describes random statements: each is understood, none is volatile, and what it reads and writes is what the
// generator put into it.
func TestDescribeSQLiteGenerated(t *testing.T) {
	n := 0
	for seed := range uint64(300) {
		g, err := generate.New(generate.SQLite, generate.Limits{}, rand.New(rand.NewPCG(seed, 5)).IntN)
		if err != nil {
			t.Fatal(err)
		}
		k := g.Case()
		views := map[string]string{}
		for _, v := range k.Database.Views {
			views[v.Name] = v.Table.Name
		}
		for _, s := range k.Order {
			list, err := sqlite.Describe(s.SQL)
			if err != nil || len(list) != 1 {
				t.Fatalf("%s: %d statements, %v", s.SQL, len(list), err)
			}
			st := &list[0]
			if st.Unparsed || st.Volatile != "" {
				t.Errorf("%s: unparsed %q, volatile %q", s.SQL, st.Why, st.Volatile)
			}
			named := map[string]bool{}
			for _, u := range st.Tables {
				if u.Kind == statement.SourceTable {
					name := u.Name
					if views[name] != "" {
						name = views[name]
					}
					named[name] = true
				}
			}
			for _, table := range s.Tables {
				if !named[table] {
					t.Errorf("%s: table %s is not among %v", s.SQL, table, st.Tables)
				}
			}
			if len(named) != len(s.Tables) || s.Kind.Writes() != (len(st.Targets()) == 1) {
				t.Errorf("%s: got tables %v, targets %v; want %v", s.SQL, named, st.Targets(), s.Tables)
			}
			n++
		}
	}
	if n < 3000 {
		t.Errorf("%d statements only", n)
	}
}

// TestDefineSQLite has definitions and what remains of them in a raw database.
func TestDefineSQLite(t *testing.T) {
	for _, test := range []struct{ sql, raw, why string }{
		{"CREATE TABLE t (a INTEGER PRIMARY KEY AUTOINCREMENT, b, c VARCHAR(20) COLLATE NOCASE NOT NULL DEFAULT 'x', d INT GENERATED ALWAYS AS (a + 1) STORED, UNIQUE (b), CHECK (b > 1))",
			"CREATE TABLE t (a INTEGER, b, c VARCHAR(20) COLLATE NOCASE, d INT)", ""},
		{"CREATE TABLE [t x] (a ANY PRIMARY KEY, b REAL AS (a) VIRTUAL) STRICT, WITHOUT ROWID", "CREATE TABLE [t x] (a ANY, b REAL) STRICT", ""},
		{"CREATE TABLE main.t (a UNSIGNED BIG INT REFERENCES u (b) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED) WITHOUT ROWID", "CREATE TABLE main.t (a UNSIGNED BIG INT)", ""},
		{"CREATE TABLE t (a PRIMARY KEY, b NOT NULL, c COLLATE RTRIM)", "CREATE TABLE t (a, b, c COLLATE RTRIM)", ""},
		{"CREATE UNIQUE INDEX i ON t (a COLLATE NOCASE DESC, lower(b)) WHERE a > 1", "", ""},
		{"CREATE TRIGGER x AFTER UPDATE ON t BEGIN SELECT 1; END", "", ""},
		{"ALTER TABLE t ADD COLUMN d INT NOT NULL DEFAULT 1", "ALTER TABLE t ADD COLUMN d INT", ""},
		{"CREATE VIEW v AS SELECT 1", "CREATE VIEW v AS SELECT 1", ""},
		{"CREATE TABLE t (a INT UNIQUE ON CONFLICT REPLACE)", "", "ON CONFLICT of a constraint decides what is written"},
		{"CREATE TABLE t (a INT, UNIQUE (a) ON CONFLICT IGNORE)", "", "ON CONFLICT of a constraint decides what is written"},
		{"CREATE VIRTUAL TABLE t USING fts5 (a)", "", "what a virtual table answers is its module's affair"},
		{"CREATE TABLE aux.t (a)", "", "a table of another database than main"},
	} {
		d := sqlite.Define(test.sql)
		if d.Raw != test.raw || d.Why != test.why {
			t.Errorf("%s:\ngot  %q, why %q\nwant %q, why %q", test.sql, d.Raw, d.Why, test.raw, test.why)
		}
	}
	d := sqlite.Define("CREATE TABLE t (a INT, b INT AS (a * 2), PRIMARY KEY (b, a)) WITHOUT ROWID")
	if len(d.Keys) != 1 || strings.Join(d.Keys[0].Columns, ",") != "b,a" || len(d.Configs) != 1 || !d.Columns[1].Generated || d.Columns[0].Generated {
		t.Errorf("got %+v", d)
	}
}
