package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
	"wirecheck/statement"
)

func TestControl(t *testing.T) {
	c := offline(t)
	r := postgres.New(rewrite.CaptureAuto)
	type control = statement.Control
	reset := control{Verb: statement.ControlReset}
	for _, f := range []struct {
		sql    string
		verb   string
		want   control
		schema bool
		temp   bool
	}{
		{"BEGIN", "begin", control{Verb: statement.ControlBegin}, false, false},
		{"begin work isolation level serializable read only", "begin", control{Verb: statement.ControlBegin, Level: "serializable"}, false, false},
		{"START TRANSACTION ISOLATION LEVEL READ UNCOMMITTED", "begin", control{Verb: statement.ControlBegin, Level: "read committed"}, false, false},
		{"BEGIN TRANSACTION READ WRITE, ISOLATION LEVEL REPEATABLE READ", "begin", control{Verb: statement.ControlBegin, Level: "repeatable read"}, false, false},
		{"COMMIT", "commit", control{Verb: statement.ControlCommit}, false, false},
		{"END TRANSACTION AND CHAIN", "commit", control{Verb: statement.ControlCommit, Chain: true}, false, false},
		{"ROLLBACK", "rollback", control{Verb: statement.ControlRollback}, false, false},
		{"ABORT WORK AND NO CHAIN", "rollback", control{Verb: statement.ControlRollback}, false, false},
		{`SAVEPOINT "A b"`, "savepoint", control{Verb: statement.ControlSavepoint, Name: "A b"}, false, false},
		{`SAVEPOINT ABC`, "savepoint", control{Verb: statement.ControlSavepoint, Name: "abc"}, false, false},
		{`ROLLBACK TO abc`, "rollback to", control{Verb: statement.ControlRollbackTo, Name: "abc"}, false, false},
		{`RELEASE SAVEPOINT abc`, "release", control{Verb: statement.ControlRelease, Name: "abc"}, false, false},
		{"PREPARE TRANSACTION 'x'", "other", control{}, false, false},
		{"COMMIT PREPARED 'x'", "other", control{}, false, false},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "set", control{Verb: statement.ControlLevel, Level: "serializable", Scope: statement.ScopeTransaction}, false, false},
		{"SET TRANSACTION READ ONLY", "set", control{}, false, false},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ", "set", control{Verb: statement.ControlLevel, Level: "repeatable read", Scope: statement.ScopeSession}, false, false},
		{"SET default_transaction_isolation = 'serializable'", "set", control{Verb: statement.ControlLevel, Level: "serializable", Scope: statement.ScopeSession}, false, false},
		{"SET default_transaction_isolation TO 'Read Committed'", "set", control{Verb: statement.ControlLevel, Level: "read committed", Scope: statement.ScopeSession}, false, false},
		{"SET LOCAL default_transaction_isolation = 'serializable'", "set", control{}, false, false},
		{"SET default_transaction_isolation TO DEFAULT", "set", reset, false, false},
		{"RESET default_transaction_isolation", "set", reset, false, false},
		{"SET transaction_isolation = 'serializable'", "set", control{Verb: statement.ControlLevel, Level: "serializable", Scope: statement.ScopeTransaction}, false, false},
		{"RESET ALL", "set", reset, true, false},
		{"DISCARD ALL", "other", reset, true, false},
		{"DISCARD PLANS", "other", control{}, false, false},
		{"SET search_path TO a, b", "set", reset, true, false},
		{"SET LOCAL search_path = a", "set", reset, true, false},
		{"SET SCHEMA 'a'", "set", reset, true, false},
		{"SET ROLE x", "set", reset, true, false},
		{"SET SESSION AUTHORIZATION x", "set", reset, true, false},
		{"SET work_mem = '1MB'", "set", control{}, false, false},
		{"SET TIME ZONE 'UTC'", "set", control{}, false, false},
		{"SELECT set_config('search_path', 'a', false)", "select", reset, true, false},
		{"SELECT pg_catalog.set_config('app.user', '5', true)", "select", control{}, false, false},
		{"SELECT set_config('default_transaction_isolation', 'serializable', false)", "select", control{Verb: statement.ControlLevel, Level: "serializable", Scope: statement.ScopeSession}, false, false},
		{"SELECT set_config('transaction_isolation', 'repeatable read', true)", "select", control{Verb: statement.ControlLevel, Level: "repeatable read", Scope: statement.ScopeTransaction}, false, false},
		{"SELECT set_config(name, '5', true) FROM account", "select", reset, true, false},
		{"SHOW search_path", "other", control{}, false, false},
		{"LISTEN x", "other", control{}, false, false},
		{"CREATE TABLE x (id int)", "ddl", control{}, true, false},
		{"CREATE TEMP TABLE x (id int)", "ddl", control{}, true, true},
		{"CREATE TABLE pg_temp.x (id int)", "ddl", control{}, true, true},
		{"CREATE TEMPORARY TABLE x AS SELECT 1", "ddl", control{}, true, true},
		{"SELECT 1 INTO TEMP x", "ddl", control{}, true, true},
		{"CREATE TEMP VIEW x AS SELECT 1", "ddl", control{}, true, true},
		{"ALTER TABLE account RENAME TO account2", "ddl", control{}, true, false},
		{"DROP TABLE account", "ddl", control{}, true, false},
		{"GRANT SELECT ON account TO x", "ddl", control{}, true, false},
		{"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'", "ddl", control{}, true, false},
		{"DO 'BEGIN END'", "other", control{}, true, false},
		{"CALL p()", "other", control{}, false, false},
		{"TRUNCATE account", "ddl", control{}, false, false},
		{"VACUUM", "other", control{}, false, false},
		{"ANALYZE account", "other", control{}, false, false},
		{"COPY account FROM STDIN", "copy", control{}, false, false},
		{"NOTIFY x, 'y'", "other", control{}, false, false},
	} {
		p := r.Script(f.sql, c, postgres.Session{}).Plans[0]
		if p.Verb != f.verb || p.Schema != f.schema || p.Temp != f.temp || p.Hidden > 0 && p.Verb != "select" {
			t.Errorf("%s: verb %q schema %v temp %v", f.sql, p.Verb, p.Schema, p.Temp)
		}
		if d := cmp.Diff(f.want, p.Control); d != "" {
			t.Errorf("%s: control (-want +got):\n%s", f.sql, d)
		}
	}
}

func TestFlags(t *testing.T) {
	c := offline(t)
	r := postgres.New(rewrite.CaptureNative)
	for _, f := range []struct {
		sql                string
		current, predicate bool
	}{
		{"SELECT * FROM account WHERE id = $1", false, false},
		{"SELECT * FROM account WHERE 5 = account.id AND balance > 3", false, false},
		{"SELECT * FROM account WHERE id = $1 OR id = $2", false, true},
		{"SELECT * FROM account WHERE id > $1", false, true},
		{"SELECT * FROM account WHERE id = balance", false, true},
		{"SELECT * FROM orders WHERE note = 'x'", false, false},
		{"SELECT * FROM pair WHERE a = 1", false, true},
		{"SELECT * FROM pair WHERE a = 1 AND b = 'x'::text", false, false},
		{"SELECT * FROM account WHERE id IN (1, 2)", false, true},
		{"SELECT * FROM account a, account b WHERE a.id = 1 AND b.id = 2", false, false},
		{"SELECT * FROM account AS a (x) WHERE x = -1", false, false},
		{"SELECT 1", false, false},
		{"UPDATE account SET balance = balance + 1 WHERE id = 1", true, false},
		{"UPDATE account SET balance = balance - $1, tags = tags || $2 WHERE id = $3", true, false},
		{"UPDATE account SET balance = balance + 1, owner = DEFAULT WHERE id = 1", true, false},
		{"UPDATE account SET balance = account.balance + 1, owner = current_user WHERE id = 1", true, false},
		{"UPDATE account SET balance = 5 WHERE id = 1", false, false},
		{"UPDATE account SET balance = balance + 1, owner = $1 WHERE id = 1", false, false},
		{"UPDATE account SET balance = balance + (SELECT 1) WHERE id = 1", false, false},
		{"UPDATE account SET owner = now() WHERE id = 1", false, false},
		{"UPDATE account SET balance = balance + 1", true, true},
		{"UPDATE account SET balance = CASE WHEN account.id = 1 THEN 7 WHEN id = 2 THEN 8 END WHERE id IN (1, 2)", false, true},
		{"UPDATE account SET balance = CASE WHEN balance > 3 THEN 7 ELSE 8 END WHERE id = 1", true, false},
		{"UPDATE account SET id = id + 1 WHERE id = 1", true, false},
		{"DELETE FROM account WHERE id = 1", false, false},
		{"DELETE FROM account WHERE balance = 1", false, true},
		{"INSERT INTO account VALUES (1)", false, false},
		{"INSERT INTO account SELECT 1", false, false},
		{"INSERT INTO account SELECT id FROM orders", false, true},
		{"INSERT INTO account VALUES (1) ON CONFLICT (id) DO UPDATE SET balance = account.balance + 1", true, false},
		{"INSERT INTO account VALUES (1) ON CONFLICT (id) DO UPDATE SET balance = excluded.balance", false, false},
	} {
		p := r.Script(f.sql, c, postgres.Session{}).Plans[0]
		if p.CurrentRead != f.current || p.Predicate != f.predicate {
			t.Errorf("%s: current read %v, predicate %v, want %v, %v", f.sql, p.CurrentRead, p.Predicate, f.current, f.predicate)
		}
	}
}

func TestNames(t *testing.T) {
	c := offline(t)
	// A table of the same name in another schema.
	var remote rewrite.Known
	for _, rel := range c.All() {
		if rel.Name == "remote" {
			twin := *rel
			twin.Schema, twin.OID = "public", 4_000_000_000
			remote.Relations = []*rewrite.Relation{rel, &twin}
		}
	}
	c.Learn(map[rewrite.Name]*rewrite.Known{{Name: "remote"}: &remote}, 0, false)
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct {
		sql  string
		s    postgres.Session
		want history.Coverage
	}{
		{"SELECT * FROM remote", postgres.Session{}, history.CoverageOpaque},
		{"SELECT * FROM remote", postgres.Session{SearchPath: []string{"pg_catalog", "public"}}, history.CoverageExact},
		{"SELECT * FROM s2.remote", postgres.Session{}, history.CoverageExact},
		{"SELECT * FROM account", postgres.Session{Temp: true}, history.CoverageOpaque},
		{"SELECT * FROM public.account", postgres.Session{Temp: true}, history.CoverageExact},
		{"SELECT * FROM off.public.account", postgres.Session{}, history.CoverageExact},
		{"SELECT * FROM other.public.account", postgres.Session{}, history.CoverageOpaque},
		{"SELECT * FROM pg_temp.account", postgres.Session{}, history.CoverageOpaque},
		{"SELECT * FROM pg_class", postgres.Session{Temp: true}, history.CoverageNone},
	} {
		p := r.Script(f.sql, c, f.s).Plans[0]
		if p.Coverage != f.want {
			t.Errorf("%s in %+v: coverage %q (%s), want %q", f.sql, f.s, p.Coverage, p.Why, f.want)
		}
	}
	if p := r.Script("SELECT * FROM account", nil, postgres.Session{}).Plans[0]; p.Coverage != history.CoverageOpaque {
		t.Errorf("without a catalog: coverage %q", p.Coverage)
	}
	if p := postgres.New(rewrite.CaptureColumns).Script("SELECT * FROM account", c, postgres.Session{}).Plans[0]; p.Coverage != history.CoverageOpaque || p.Hidden != 0 {
		t.Errorf("capture columns: %+v", p)
	}
}
