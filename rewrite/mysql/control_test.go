package mysql

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

func TestControl(t *testing.T) {
	c := func(verb statement.ControlVerb) statement.Control { return statement.Control{Verb: verb} }
	level := func(l string, s statement.Scope) statement.Control {
		return statement.Control{Verb: statement.ControlLevel, Level: l, Scope: s}
	}
	begin := statement.Control{Verb: statement.ControlBegin, Ends: true}
	ends := statement.Control{Ends: true}
	for _, test := range []struct {
		sql  string
		verb string
		want statement.Control
	}{
		{"BEGIN", "begin", begin},
		{"begin work", "begin", begin},
		{"/* x */ START TRANSACTION", "begin", begin},
		{"START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY", "begin", begin},
		{"COMMIT", "commit", c(statement.ControlCommit)},
		{"COMMIT WORK AND NO CHAIN", "commit", c(statement.ControlCommit)},
		{"COMMIT AND CHAIN", "commit", statement.Control{Verb: statement.ControlCommit, Chain: true}},
		{"ROLLBACK", "rollback", c(statement.ControlRollback)},
		{"ROLLBACK WORK AND CHAIN NO RELEASE", "rollback", statement.Control{Verb: statement.ControlRollback, Chain: true}},
		{"ROLLBACK TO a", "rollback to", statement.Control{Verb: statement.ControlRollbackTo, Name: "a"}},
		{"ROLLBACK WORK TO SAVEPOINT `A b`", "rollback to", statement.Control{Verb: statement.ControlRollbackTo, Name: "a b"}},
		{"ROLLBACK TO savepoint", "rollback to", statement.Control{Verb: statement.ControlRollbackTo, Name: "savepoint"}},
		{"SAVEPOINT X1", "savepoint", statement.Control{Verb: statement.ControlSavepoint, Name: "x1"}},
		{"RELEASE SAVEPOINT x1", "release", statement.Control{Verb: statement.ControlRelease, Name: "x1"}},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "set", level("serializable", statement.ScopeNext)},
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", "set", level("read committed", statement.ScopeSession)},
		{"SET LOCAL TRANSACTION READ ONLY, ISOLATION LEVEL REPEATABLE READ", "set", level("repeatable read", statement.ScopeSession)},
		{"SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED", "set", c("")},
		{"SET TRANSACTION READ ONLY", "set", c("")},
		{"SET tx_isolation='READ-COMMITTED'", "set", level("read committed", statement.ScopeSession)},
		{"SET @@session.transaction_isolation := \"SERIALIZABLE\"", "set", level("serializable", statement.ScopeSession)},
		{"SET @@transaction_isolation = 'SERIALIZABLE'", "set", level("serializable", statement.ScopeNext)},
		{"SET @@global.tx_isolation = 'SERIALIZABLE'", "set", c("")},
		{"SET tx_isolation=@x", "set", c(statement.ControlReset)},
		{"SET autocommit=0", "set", statement.Control{Verb: statement.ControlAutocommit}},
		{"SET @@autocommit = ON", "set", statement.Control{Verb: statement.ControlAutocommit, On: true}},
		{"SET SESSION autocommit = TRUE", "set", statement.Control{Verb: statement.ControlAutocommit, On: true}},
		{"SET autocommit=1, sql_mode=''", "set", c(statement.ControlReset)},
		{"SET NAMES utf8mb4", "set", c("")},
		{"SET NAMES 'latin1'", "set", c("")},
		{"SET NAMES gbk", "set", c(statement.ControlReset)},
		{"SET sql_mode = CONCAT(@@sql_mode, ',ANSI_QUOTES')", "set", c(statement.ControlReset)},
		{"SET max_sort_length = 64", "set", c(statement.ControlReset)},
		{"SET @autocommit = 1", "set", c("")},
		{"SET @a = 1, @b = 'autocommit'", "set", c("")},
		{"SET PASSWORD = 'x'", "set", ends},
		{"SET STATEMENT max_statement_time=1 FOR SELECT 1", "set", c(statement.ControlReset)},
		{"USE `my db`", "other", statement.Control{Verb: statement.ControlDatabase, Name: "my db"}},
		{"LOCK TABLES a WRITE", "other", statement.Control{Verb: statement.ControlLocks, Ends: true}},
		{"UNLOCK TABLES", "other", c(statement.ControlLocks)},
		{"CREATE TABLE x (a INT)", "ddl", ends},
		{"CREATE TEMPORARY TABLE x (a INT)", "ddl", c("")},
		{"DROP TABLE x", "ddl", ends},
		{"DROP TEMPORARY TABLE x", "ddl", c("")},
		{"DROP PREPARE p", "other", c("")},
		{"TRUNCATE x", "ddl", ends},
		{"ANALYZE TABLE x", "other", ends},
		{"GRANT SELECT ON x TO y", "other", ends},
		{"CALL p()", "other", c(statement.ControlReset)},
		{"XA START 'x'", "other", c("")},
		{"EXECUTE p", "other", c(statement.ControlReset)},
	} {
		plan := New(MariaDB, rewrite.CaptureAuto).Script(test.sql, nil, Session{}).Plans[0]
		if diff := cmp.Diff(test.want, plan.Control); diff != "" || plan.Verb != test.verb {
			t.Errorf("%s: verb %q, want %q; control (-want +got):\n%s", test.sql, plan.Verb, test.verb, diff)
		}
	}
}

func TestDiagnostics(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT ROW_COUNT()": true, "select found_rows()": true, "SHOW WARNINGS": true, "SHOW COUNT(*) ERRORS": true, "SHOW ERRORS LIMIT 1": true,
		"GET DIAGNOSTICS @n = NUMBER": true, "SELECT @@warning_count": true, "SELECT @@session.error_count": true,
		"SELECT SQL_CALC_FOUND_ROWS a FROM t": false, "SELECT 'row_count'": false, "SELECT 1": false, "COMMIT": false, "SHOW TABLES": false,
	} {
		if got := New(MariaDB, rewrite.CaptureAuto).Script(sql, nil, Session{}).Plans[0].Diagnostics; got != want {
			t.Errorf("%s: %v", sql, got)
		}
	}
}

func TestScripts(t *testing.T) {
	r := New(MariaDB, rewrite.CaptureAuto)
	for _, test := range []struct {
		sql      string
		multi    bool
		plans    int
		unparsed bool
	}{
		{"", false, 0, false},
		{" ; ", false, 0, false},
		{"-- only a comment", false, 0, false},
		{"SELECT 1;", false, 1, false},
		{"SELECT 1; SELECT 2", false, 1, true},
		{"SELECT 1; SELECT ';' ; COMMIT ; ;", true, 3, false},
		{"SELECT 1; SELECT ';' ; ;COMMIT", true, 1, true}, // the server refuses the empty statement and all that follows
		{"; COMMIT", true, 1, true},
		{"CREATE PROCEDURE p() BEGIN SELECT 1; END", true, 1, true},
		{"SELECT 1; BEGIN NOT ATOMIC SELECT 1; END", true, 1, true},
		{"SELECT 'open", true, 1, true},
		{"SELECT 1 /* open", true, 1, true},
	} {
		s := r.Script(test.sql, nil, Session{MultiStatements: test.multi})
		if len(s.Plans) != test.plans || s.Unparsed != test.unparsed || s.SQL != test.sql {
			t.Errorf("%s: %d plans, unparsed %v", test.sql, len(s.Plans), s.Unparsed)
		}
	}
}

// TestEmptyStatementOnTiDB: TiDB executes what stands behind an empty statement.
func TestEmptyStatementOnTiDB(t *testing.T) {
	if s := New(TiDB, rewrite.CaptureAuto).Script("SELECT 1; ;COMMIT", nil, Session{MultiStatements: true}); len(s.Plans) != 2 || s.Unparsed {
		t.Errorf("%d plans, unparsed %v", len(s.Plans), s.Unparsed)
	}
}

func TestTemporaryTablesHideOthers(t *testing.T) {
	cat := testCatalog(t)
	s := Session{Database: "shop"}
	r := New(MariaDB, rewrite.CaptureAuto)
	plan := r.Script("CREATE TEMPORARY TABLE IF NOT EXISTS account (id INT)", cat, s).Plans[0]
	if plan.Temporary != "shop.account" {
		t.Fatalf("got %q", plan.Temporary)
	}
	if got := r.Script("SELECT note FROM account", cat, s).Plans[0].Hidden; got != 1 {
		t.Errorf("before: %d hidden columns", got)
	}
	if got := r.Script("SELECT note FROM account", cat, s.WithTemporary(plan.Temporary)).Plans[0]; got.Hidden != 0 {
		t.Errorf("after: %+v", got)
	}
}

func TestCurrentReadAndPredicate(t *testing.T) {
	cat := testCatalog(t)
	for _, test := range []struct {
		sql                string
		current, predicate bool
	}{
		{"UPDATE account SET balance = balance + 1 WHERE id = 1", true, false},
		{"UPDATE account SET balance = balance + ? WHERE id = ?", true, false},
		{"UPDATE account SET balance = 5 WHERE id = 1", false, false},
		{"UPDATE account SET balance = balance + 1, owner = 'x' WHERE id = 1", false, false},
		{"UPDATE account SET balance = balance + 1, note = NOW() WHERE id = 1 AND owner = 'x'", true, false},
		{"UPDATE account SET balance = balance + 1 WHERE owner = 'x'", true, true},
		{"UPDATE account SET balance = CASE WHEN account.id = 1 THEN 7 WHEN id = 2 THEN 8 END WHERE id = 1", false, false},
		{"UPDATE account SET balance = CASE WHEN balance > 3 THEN 7 ELSE 8 END WHERE id = 1", true, false},
		{"UPDATE account SET id = id + 1 WHERE id = 1", true, false},
		{"UPDATE account SET balance = (SELECT balance + 1 FROM item LIMIT 1)", false, true},
		{"SELECT note FROM account WHERE 5 = id", false, false},
		{"SELECT note FROM account WHERE id = -5", false, false},
		{"SELECT note FROM account WHERE id = 5 OR id = 6", false, true},
		{"SELECT note FROM account WHERE id = balance", false, true},
		{"SELECT note FROM account WHERE id > 5", false, true},
		{"SELECT note FROM account", false, true},
		{"DELETE FROM account WHERE (id = 1)", false, false},
		{"DELETE FROM account WHERE id < 1", false, true},
	} {
		p := New(MariaDB, rewrite.CaptureAuto).Script(test.sql, cat, Session{Database: "shop"}).Plans[0]
		if p.CurrentRead != test.current || p.Predicate != test.predicate {
			t.Errorf("%s: current %v, predicate %v (%s)", test.sql, p.CurrentRead, p.Predicate, p.Why)
		}
	}
}

func TestFlavors(t *testing.T) {
	cat := testCatalog(t)
	for _, test := range []struct {
		flavor   Flavor
		sql      string
		coverage history.Coverage
	}{
		{MySQL, "SELECT note FROM account", exact},
		{MySQL, "INSERT INTO account (id) VALUES (1)", exact},
		{MySQL, "SELECT COUNT(note) FROM account", opaque},
		{MySQL, "UPDATE account SET balance = 1", exact},
		{MySQL, "INSERT INTO account (id) VALUES (1) ON DUPLICATE KEY UPDATE id = 2", exact},
		{MySQL, "DELETE FROM account", exact},
		{MySQL, "SELECT note, COUNT(*) FROM account GROUP BY note", opaque},
		{TiDB, "UPDATE account SET balance = 1", exact},
		{TiDB, "UPDATE account SET balance = @a", opaque},
		{TiDB, "SELECT note FROM account", exact},
		{TiDB, "SELECT note, COUNT(*) FROM account GROUP BY note", opaque},
		{TiDB, "DELETE FROM account", exact},
		{TiDB, "DELETE FROM account LIMIT 1", opaque},
	} {
		p := New(test.flavor, rewrite.CaptureAuto).Script(test.sql, cat, Session{Database: "shop"}).Plans[0]
		if p.Coverage != test.coverage || p.Coverage == opaque && (len(p.Edits) > 0 || p.Stamp || p.Log || p.Hidden > 0) {
			t.Errorf("%s: %s: %+v", test.flavor, test.sql, p)
		}
		assigns := 0
		for _, e := range p.Edits {
			assigns += strings.Count(e.Add, ":=")
		}
		if test.flavor == MySQL && p.ParsedApart != assigns {
			t.Errorf("%s: %s: ParsedApart %d, %d assignments", test.flavor, test.sql, p.ParsedApart, assigns)
		}
	}
	for version, want := range map[string]Flavor{"10.11.19-MariaDB-0+deb12u1": MariaDB, "5.5.5-10.6.1-MariaDB": MariaDB, "9.7.4": MySQL, "8.0.11-TiDB-v8.5.0": TiDB} {
		if got := FlavorOf(version); got != want {
			t.Errorf("%s: %s", version, got)
		}
	}
}

func TestRefused(t *testing.T) {
	for _, test := range []struct {
		code    string
		message string
		want    bool
	}{
		{"1054", "Unknown column 'account.wc_writers' in 'SELECT'", true},
		{"1054", "Unknown column 'renamed' in 'INSERT INTO'", true},
		{"1136", "Column count doesn't match value count at row 1", true},
		{"1143", "SELECT command denied to user 'a'@'b' for column 'wc_row_id' in table 'account'", true},
		{"1064", "You have an error in your SQL syntax", true},
		{"1364", "Field 'wc_row_id' doesn't have a default value", true},
		{"1364", "Field 'v' doesn't have a default value", false},
		{"1242", "Subquery returns more than 1 row", false},
		{"1062", "Duplicate entry 'wc_row_id' for key 'PRIMARY'", false},
	} {
		if got := Refused(test.code, test.message); got != test.want {
			t.Errorf("%s %s: %v", test.code, test.message, got)
		}
	}
}

// testCatalog is a small catalog as a server would tell it.
func testCatalog(t testing.TB) *rewrite.Catalog {
	t.Helper()
	rows := [][]string{
		{"V", "10.11.19-MariaDB", "shop", "0", "", "", ""},
		{"T", "shop", "account", "BASE TABLE", "InnoDB", "", ""},
		{"I", "shop", "account", "PRIMARY", "id", "0", "1"},
		{"I", "shop", "account", "owner", "owner", "1", "1"},
		{"T", "shop", "item", "BASE TABLE", "InnoDB", "", ""},
		{"T", "shop", "plain", "BASE TABLE", "InnoDB", "", ""},
		{"C", "shop", "plain", "a", "int(11)", "", "1"},
	}
	for i, c := range [][]string{{"id", "int(11)", ""}, {"owner", "varchar(20)", ""}, {"balance", "int(11)", ""}, {"note", "text", ""},
		{"wc_row_id", "bigint(20) unsigned", "INVISIBLE"}, {"wc_writers", "varchar(168)", "INVISIBLE"}} {
		for _, table := range []string{"account", "item"} {
			rows = append(rows, []string{"C", "shop", table, c[0], c[1], c[2], string(rune('1' + i))})
		}
	}
	cat, err := LoadCatalog(rows)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func FuzzScript(f *testing.F) {
	for _, forms := range [][]form{selects, updates, inserts, deletes} {
		for _, form := range forms {
			f.Add(form.sql, uint8(0))
		}
	}
	f.Add("SELECT 1; UPDATE account SET balance = ? WHERE id = ?; SELECT * FROM account", uint8(7))
	cat := testCatalog(f)
	r, visible, ordinary := New(MariaDB, rewrite.CaptureAuto), New(TiDB, rewrite.CaptureAuto), tidbCatalog(f)
	f.Fuzz(func(t *testing.T, sql string, mode uint8) {
		s := Session{Database: "shop", Mode: mysqlsyntax.Mode(mode) & (mysqlsyntax.AnsiQuotes | mysqlsyntax.NoBackslashEscapes), MultiStatements: mode&4 != 0, LockingReads: mode&8 != 0, GroupConcat: 1 << 20}
		for i, script := range []*rewrite.Script{r.script(key{sql: sql, catalog: cat, session: s}), r.Prepare(sql, cat, s), visible.Script(sql, ordinary, s)} {
			if len(script.Plans) == 0 {
				if script.SQL != sql {
					t.Fatalf("%q became %q", sql, script.SQL)
				}
				continue
			}
			edits := script.Plans[0].Edits
			if got := rewrite.Apply(sql, edits); got != script.SQL {
				t.Fatalf("%q: edits give %q, the script is %q", sql, got, script.SQL)
			}
			at := 0
			for _, e := range edits {
				if e.Cut < 0 || e.At < at || e.At+e.Cut > len(sql) || e.Cut > 0 && i < 2 && sql[e.At+e.Cut-1] != '*' && !strings.Contains(script.SQL, "wc_e.") { // a wildcard is written out, and EXISTS
					t.Fatalf("%q: edit %+v", sql, e)
				}
				at = e.At + e.Cut
			}
			count := func(sql string) (n int) {
				text, err := mysqlsyntax.Lex(sql, s.Mode)
				if err != nil {
					return -1
				}
				for _, tok := range text.Tokens {
					if tok.Kind == statement.TokenParam {
						n++
					}
				}
				return n
			}
			if count(sql) != count(script.SQL) {
				t.Fatalf("%q became %q", sql, script.SQL)
			}
		}
	})
}

// TestTablesGone: statements of tables that are not there, or that have other names' columns, and with locks, get a plan as any others do.
func TestTablesGone(t *testing.T) {
	cat := testCatalog(t)
	var names []string
	for name := range strings.FieldsSeq("account item coded log gone") {
		names = append(names, name)
	}
	for _, flavor := range []Flavor{MariaDB, MySQL, TiDB} {
		r, s := New(flavor, rewrite.CaptureAuto), Session{Database: "shop", GroupConcat: 1 << 20}
		for _, forms := range [][]form{selects, updates, inserts, deletes} {
			for _, form := range forms {
				texts := []string{form.sql, form.sql + " FOR UPDATE SKIP LOCKED", form.sql + " FOR UPDATE", form.sql + " LOCK IN SHARE MODE"}
				for _, name := range names {
					for _, other := range names {
						for _, sql := range texts {
							if changed := strings.ReplaceAll(sql, name, other); changed != sql || name == "gone" && other == name {
								r.script(key{sql: changed, catalog: cat, session: s})
							}
						}
					}
				}
			}
		}
	}
}

func FuzzDecodeLog(f *testing.F) {
	f.Add([]byte("m shop.account 102 1:T1.1.x T7.2.k3f9 id=5,b=x41;d shop.%c3%b6 7 0: T7.3.k3f9;r a.b 1 12:T1.1.a,T2.2.b T1.1.c;"))
	f.Fuzz(func(t *testing.T, value []byte) {
		if _, _, err := DecodeLog(value); err != nil {
			return
		}
	})
}

func TestDecodeLog(t *testing.T) {
	got, truncated, err := DecodeLog([]byte("u shop.account 102 1:T1.1.x T7.2.k3f9;d shop.a%20b%3b 7 0: T7.3.k3f9;l a.b 1 12:T1.1.a,T2.2.b T7.3.k3f9 a%20b=2001-01-01 00:00:00,c=x6f27;"))
	if err != nil || truncated {
		t.Fatal(err, truncated)
	}
	u, d, l := got["T7.2.k3f9"][0], got["T7.3.k3f9"][0], got["T7.3.k3f9"][1]
	if u.Op != "update" || u.Row.Table != "shop.account" || u.Row.Key != "102" || u.Version != "2:T7.2.k3f9" || u.Order != 3 || u.Prev != "1:T1.1.x" || u.PrevWriter != "T1.x" || u.PrevOrder != 2 {
		t.Errorf("got %+v", u)
	}
	if d.Op != "delete" || d.Row.Table != "shop.a b;" || d.Version != "" || d.Order != 2 || d.Prev != "0:" || d.PrevWriter != "" || d.PrevOrder != 1 {
		t.Errorf("got %+v", d)
	}
	if l.Op != "lock" || l.Version != "12:T2.2.b" || l.Writer != "T2.b" || l.Order != 13 || l.Name != "a b=2001-01-01 00:00:00, c='o'''" || d.Name != "" {
		t.Errorf("got %+v", l)
	}
	for _, bad := range []string{"x", "u a 1 0: t", "u a b 1;", "q a.b 1 0: t;", "u a.b 1 x: t;", "u a%2 1 0: t;", "u a 1 0: t 5;", "u a 1 0: t a=xz;"} {
		if _, _, err := DecodeLog([]byte(bad)); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

var benchmarked = map[string]string{
	"select": "SELECT id, owner, balance FROM account WHERE id = ?",
	"join":   "SELECT a.id, i.note FROM account a JOIN item i ON i.owner = a.owner WHERE a.id = ? AND i.balance > 5 ORDER BY i.id LIMIT 10",
	"update": "UPDATE account SET balance = balance + ?, owner = ? WHERE id = ?",
	"insert": "INSERT INTO account (id, owner, balance) VALUES (?, ?, ?)",
	"commit": "COMMIT",
}

func BenchmarkCached(b *testing.B) {
	cat := testCatalog(b)
	for name, sql := range benchmarked {
		b.Run(name, func(b *testing.B) {
			r := New(MariaDB, rewrite.CaptureAuto)
			for b.Loop() {
				r.Script(sql, cat, Session{Database: "shop"})
			}
		})
	}
}

func BenchmarkUncached(b *testing.B) {
	cat := testCatalog(b)
	for name, sql := range benchmarked {
		b.Run(name, func(b *testing.B) {
			r := New(MariaDB, rewrite.CaptureAuto)
			for b.Loop() {
				r.script(key{sql: sql, catalog: cat, session: Session{Database: "shop"}})
			}
		})
	}
}
