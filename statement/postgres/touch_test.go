package postgres

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/statement"
)

func TestTouches(t *testing.T) {
	plain := func(name string) bool { return name == "t" || name == "u" }
	read := func(tables ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchRead, Reads: tables}
	}
	write := func(writes []string, reads ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchWrite, Writes: writes, Reads: reads}
	}
	on := func(tables ...string) []string { return tables }
	define := func(writes ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchDefine, Writes: writes}
	}
	made := func(tables ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchDefine, Plain: tables}
	}
	unknown, local, opaque := statement.Touch{Kind: statement.TouchUnknown}, statement.Touch{Kind: statement.TouchLocal}, statement.Touch{}
	for sql, want := range map[string][]statement.Touch{
		"SELECT 1":                                        {read()},
		"SELECT * FROM t":                                 {read("t")},
		"SELECT * FROM t, u WHERE t.a = u.a":              {read("t", "u")},
		"SELECT * FROM T":                                 {read("t")},
		`SELECT * FROM "T"`:                               {unknown},
		"SELECT * FROM s.t":                               {unknown},
		"SELECT * FROM v":                                 {unknown},
		"SELECT count(*), sum(n) FROM t":                  {read("t")},
		"SELECT f(n) FROM t":                              {unknown},
		"SELECT nextval('q')":                             {unknown},
		"SELECT pg_advisory_lock(1)":                      {unknown},
		"SELECT xmin, n FROM t":                           {unknown},
		"SELECT * FROM t FOR UPDATE":                      {write(on("t"))},
		"SELECT * FROM t JOIN u USING (a) FOR SHARE OF t": {write(on("t", "u"))},
		"SELECT * FROM t INTO x":                          {opaque},
		"SELECT * INTO x FROM t":                          {unknown},
		"WITH w AS (SELECT * FROM t) SELECT * FROM w":     {read("t")},
		"WITH w AS (DELETE FROM t RETURNING *) INSERT INTO u SELECT * FROM w": {write(on("u", "t"), "t", "u")},
		"WITH v AS (SELECT 1) INSERT INTO v VALUES (1)":                       {unknown},
		"INSERT INTO t VALUES (1)":                                            {write(on("t"), "t")},
		"INSERT INTO t SELECT * FROM u":                                       {write(on("t"), "t", "u")},
		"UPDATE t SET n = (SELECT n FROM u)":                                  {write(on("t"), "t", "u")},
		"UPDATE t SET n = g()":                                                {unknown},
		"DELETE FROM t WHERE CURRENT OF c":                                    {unknown},
		"MERGE INTO t USING u ON t.a = u.a WHEN MATCHED THEN DELETE":          {write(on("t"), "t", "u")},
		"BEGIN": {{Kind: statement.TouchBegin}},
		"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY":            {{Kind: statement.TouchBegin, Level: "serializable"}},
		"BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE": {opaque},
		"COMMIT; BEGIN":           {{Kind: statement.TouchEnd}, {Kind: statement.TouchBegin}},
		"COMMIT AND CHAIN":        {opaque},
		"ABORT":                   {{Kind: statement.TouchEnd}},
		"ROLLBACK TO s":           {{Kind: statement.TouchEnd, Partial: true}},
		"SAVEPOINT s; RELEASE s":  {local, local},
		"PREPARE TRANSACTION 'x'": {opaque},
		"COMMIT PREPARED 'x'":     {opaque},
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE":         {{Kind: statement.TouchLocal, Level: "serializable"}},
		"SET default_transaction_isolation = 'read committed'": {{Kind: statement.TouchLocal, Level: "read committed"}},
		"SET TRANSACTION SNAPSHOT 'x'":                         {opaque},
		"SET enable_seqscan = off":                             {local},
		"SET lock_timeout = 1":                                 {opaque},
		"SET lock_timeout = 0":                                 {local},
		"SET deadlock_timeout = 0":                             {opaque},
		"SET TIME ZONE 'UTC'":                                  {local},
		"SET client_encoding TO 'UTF8'":                        {local},
		"RESET ALL":                                            {opaque},
		"SET search_path = s":                                  {opaque},
		"LOCK TABLE t":                                         {unknown},
		"TRUNCATE t":                                           {unknown},
		"DO $$ BEGIN END $$":                                   {opaque},
		"CALL p()":                                             {opaque},
		"select from from":                                     {opaque},
		"CREATE TABLE t (a int PRIMARY KEY, b text DEFAULT 'x', c serial, CHECK (a > 0))": {made("t")},
		"CREATE TABLE t (a int REFERENCES u)":                                             {define("u", "t")},
		"CREATE TABLE t (a int UNIQUE DEFERRABLE)":                                        {define("t")},
		"CREATE TABLE t (a int DEFAULT nextval('q'))":                                     {define("t")},
		"CREATE TABLE t (a int) INHERITS (u)":                                             {define("u", "t")},
		"CREATE TABLE t (LIKE u)":                                                         {define("u", "t")},
		"CREATE TABLE t (a int) PARTITION BY LIST (a)":                                    {define("t")},
		"CREATE TEMP TABLE t (a int)":                                                     {opaque},
		"CREATE TABLE t AS SELECT 1":                                                      {opaque},
		"CREATE INDEX ON t (a)":                                                           {define()},
		"CREATE INDEX ON t (f(a))":                                                        {define("t")},
		"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u":                                  {define("u", "t")},
		"ALTER TABLE t SET (fillfactor = 50)":                                             {define()},
		"CREATE VIEW v AS SELECT * FROM t":                                                {define()},
		"CREATE RULE r AS ON INSERT TO t DO ALSO DELETE FROM u":                           {define("u", "t")},
		"CREATE TRIGGER g AFTER INSERT ON t EXECUTE FUNCTION f()":                         {define("t")},
		"CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'":                      {opaque},
		"DROP TABLE t, u":                                                                 {define("t", "u")},
		"CREATE EXTENSION x":                                                              {opaque},
	} {
		got := Touches(sql, plain)
		for i := range got {
			sortNames(got[i].Reads, got[i].Writes)
		}
		for i := range want {
			sortNames(want[i].Reads, want[i].Writes)
		}
		if diff := cmp.Diff(want, got, emptyIsNil); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sql, diff)
		}
	}
}

func sortNames(lists ...[]string) {
	for _, l := range lists {
		slices.Sort(l)
	}
}

// emptyIsNil makes no difference between no names and none.
var emptyIsNil = cmp.Transformer("names", func(l []string) []string { return append([]string{}, l...) })
