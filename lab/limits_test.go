package lab

import (
	"testing"

	"wirecheck/answer"
)

func TestLimits(t *testing.T) {
	for sql, want := range map[string]bool{
		"SET lock_timeout = '10ms'":                         true,
		"begin; set local STATEMENT_TIMEOUT to 5; select 1": true,
		"SET SESSION innodb_lock_wait_timeout = 1":          true,
		"SET lock_wait_timeout = 1":                         true,
		"SELECT set_config('lock_timeout', '1s', false)":    true,
		"SELECT /*+ MAX_EXECUTION_TIME(10) */ * FROM t":     true,
		"SET deadlock_timeout = '1ms'":                      false,
		"SELECT my_lock_timeout, statement_timeouts FROM t": false,
		"SET idle_in_transaction_session_timeout = '1s'":    false,
		"UPDATE t SET v = 1":                                false,
		"SELECT a_time, _tim FROM t WHERE b = _":            false,
		"SET a_time = 1; SET Lock_Timeout = 1":              true,
	} {
		if got := setsLimit(sql); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
}

// TestDefines tells statements that may change definitions from settings, which stay in their session.
func TestDefines(t *testing.T) {
	for sql, want := range map[string]bool{
		"SELECT 1":                            false,
		"SET NAMES utf8mb3; SET autocommit=0": false,
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED":         false,
		"SET TimeZone TO 'Europe/Berlin';":                               false,
		"SAVEPOINT x; SELECT lower(name), now() FROM t":                  false,
		"SET STATEMENT max_statement_time=1 FOR ALTER TABLE t ADD c INT": true,
		"SET /* */ STATEMENT a=1 FOR DROP TABLE t":                       true,
		"SET @a = f()":                     true,
		"SET autocommit=0; DROP TABLE t":   true,
		"SELECT define_something()":        true,
		"CREATE TEMPORARY TABLE t (a INT)": true,
		"DO $$ BEGIN DROP TABLE t; END $$": true,
		"/*!50000 DROP TABLE t */":         true,
	} {
		if got := defines(sql); got != want {
			t.Errorf("%s: got %v, want %v", sql, got, want)
		}
	}
}

func TestLooksNumeric(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "1": true, "-1.5e3": true, "1 2": true, ".5": true, "1-": false, "e1": false, "1e": false, "0x1": false, "١": false, "+1": false,
	} {
		if got := looksNumeric(answer.Value(text)); got != want {
			t.Errorf("%q: got %v, want %v", text, got, want)
		}
	}
}
