package source

import (
	"testing"

	"wirecheck/trace/lex"
)

func TestEffects(t *testing.T) {
	type row struct {
		sql string
		d   lex.Dialect
	}
	for in, want := range map[row]effect{
		{"BEGIN", lex.MySQL}: effectBegin, {"start transaction read only", lex.PostgreSQL}: effectBegin, {"/* x */ COMMIT;", lex.MySQL}: effectEnd,
		{"ROLLBACK TO s", lex.MySQL}: effectUndo, {"ROLLBACK TRANSACTION TO SAVEPOINT s", lex.PostgreSQL}: effectUndo, {"COMMIT AND CHAIN", lex.MySQL}: effectBegin,
		{"COMMIT AND NO CHAIN", lex.MySQL}: effectEnd, {"COMMIT PREPARED 'x'", lex.PostgreSQL}: effectNone, {"PREPARE TRANSACTION 'x'", lex.PostgreSQL}: effectEnd,
		{"CREATE TABLE t (a int)", lex.MySQL}: effectImplicit, {"CREATE TABLE t (a int)", lex.PostgreSQL}: effectNone, {"CREATE TEMPORARY TABLE t (a int)", lex.MySQL}: effectNone,
		{"SET autocommit = 0", lex.MySQL}: effectAutoOff, {"SET @@session.autocommit=ON", lex.MySQL}: effectAutoOn, {"SET x = 1", lex.MySQL}: effectNone,
		{"BEGIN; SELECT 1", lex.PostgreSQL}: effectMany, {"BEGIN; -- x", lex.PostgreSQL}: effectBegin, {"SELECT ';'", lex.PostgreSQL}: effectNone,
		{"START SLAVE", lex.MySQL}: effectNone, {"", lex.MySQL}: effectNone, {"ABORT", lex.PostgreSQL}: effectEnd,
		{"CREATE FUNCTION f() AS 'x; y'; BEGIN; END", lex.PostgreSQL}: effectNone,
	} {
		if got := effectOf(in.sql, in.d); got != want {
			t.Errorf("%s: %d, want %d", in.sql, got, want)
		}
	}
}

func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		sql  string
		d    lex.Dialect
		want string
	}{
		{"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED", lex.MySQL, "read committed"},
		{"set session transaction read only, isolation level serializable", lex.MySQL, ""}, // words end at the comma, so it is not known
		{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", lex.MySQL, ""},
		{"SET GLOBAL TRANSACTION ISOLATION LEVEL READ COMMITTED", lex.MySQL, ""},
		{"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ", lex.PostgreSQL, "repeatable read"},
		{"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", lex.PostgreSQL, ""},
		{"SELECT 1", lex.PostgreSQL, ""},
	} {
		if got := levelOf(tt.sql, tt.d); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.sql, got, tt.want)
		}
	}
}
