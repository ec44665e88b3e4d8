package lab

import "testing"

// TestPlain: what may leave something in a session, or make a table, is not plain; beside it stands what looks like it.
func TestPlain(t *testing.T) {
	for sql, want := range map[string]bool{
		`SELECT set_config('work_mem', '1MB', false)`:                  false,
		`SELECT "set_config"('work_mem', '1MB', false)`:                false,
		`SELECT "pg_advisory_lock"(1)`:                                 false,
		`SELECT "pg_advisory_lock" (1)`:                                false,
		`SELECT pg_catalog."pg_advisory_lock"(1)`:                      false,
		"SELECT `get_lock`('a', 1)":                                    false,
		`INSERT INTO t VALUES ("nextval"('s'))`:                        false,
		`SELECT * INTO other FROM t`:                                   false,
		`SELECT * INTO "other" FROM t`:                                 false,
		`WITH x AS (SELECT 1 AS a) SELECT a INTO other FROM x`:         false,
		`SELECT count(*), "n" FROM "t" WHERE ("n" = 1 OR n IN (2))`:    true,
		`SELECT "into" FROM t WHERE lower("name") = 'a'`:               true,
		`INSERT INTO t (a) VALUES (1)`:                                 true,
		`INSERT INTO "t" ("a") VALUES (1)`:                             true,
		"INSERT IGNORE INTO `t`(`a`) VALUES (1)":                       true,
		`REPLACE INTO t SELECT a FROM u`:                               true,
		`MERGE INTO t USING u ON (t.a = u.a) WHEN MATCHED THEN DELETE`: true,
		`UPDATE "t" SET "n" = ("n" + 1) WHERE ("id") = 1`:              true,
	} {
		if got := plain(sql); got != want {
			t.Errorf("%s: plain %v, want %v", sql, got, want)
		}
	}
}
