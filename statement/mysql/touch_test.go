package mysql

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/statement"
)

func TestTouches(t *testing.T) {
	plain := func(name string) bool { return name == "t" || name == "u" }
	touch := func(k statement.TouchKind) statement.Touch { return statement.Touch{Kind: k} }
	read := func(tables ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchRead, Reads: tables}
	}
	write := func(tables ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchWrite, Writes: tables}
	}
	define := func(tables ...string) statement.Touch {
		return statement.Touch{Kind: statement.TouchDefine, Writes: tables}
	}
	made := statement.Touch{Kind: statement.TouchDefine, Plain: []string{"t"}}
	unknown, local, opaque := touch(statement.TouchUnknown), touch(statement.TouchLocal), statement.Touch{}
	for sql, want := range map[string][]statement.Touch{
		"SELECT 1":                                                {read()},
		"SELECT * FROM t JOIN `U` ON t.a = U.a":                   {read("t", "u")},
		"(SELECT * FROM t) UNION ALL (SELECT * FROM u)":           {read("t", "u")},
		"SELECT * FROM d.t":                                       {unknown},
		"SELECT * FROM v":                                         {unknown},
		"SELECT count(*), IFNULL(n, 0) FROM t":                    {read("t")},
		"SELECT f(n) FROM t":                                      {unknown},
		"SELECT GET_LOCK('x', 1)":                                 {unknown},
		"SELECT @@tx_isolation":                                   {unknown},
		"SELECT n INTO @x FROM t":                                 {unknown},
		"SELECT * FROM t FOR UPDATE":                              {write("t")},
		"SELECT * FROM t WHERE a IN (SELECT a FROM u FOR UPDATE)": {write("t", "u")},
		"SELECT * FROM t LOCK IN SHARE MODE":                      {write("t")},
		"WITH w AS (SELECT * FROM t) SELECT * FROM w":             {read("t")},
		"SELECT /*!99999 f(1), */ 1":                              {opaque},
		"INSERT INTO t VALUES (1)":                                {write("t")},
		"INSERT INTO t SELECT * FROM u":                           {write("t", "u")},
		"REPLACE INTO t VALUES (1)":                               {write("t")},
		"UPDATE t SET n = (SELECT max(n) FROM u)":                 {write("t", "u")},
		"UPDATE t, v SET t.n = 1":                                 {unknown},
		"DELETE FROM t WHERE a = LAST_INSERT_ID()":                {unknown},
		"BEGIN": {touch(statement.TouchBegin)},
		"START TRANSACTION WITH CONSISTENT SNAPSHOT": {{Kind: statement.TouchBegin, Snapshot: true}},
		"COMMIT; BEGIN":           {touch(statement.TouchEnd), touch(statement.TouchBegin)},
		"COMMIT AND CHAIN":        {opaque},
		"COMMIT RELEASE":          {opaque},
		"ROLLBACK":                {touch(statement.TouchEnd)},
		"ROLLBACK TO SAVEPOINT s": {{Kind: statement.TouchEnd, Partial: true}},
		"SAVEPOINT s":             {local},
		"SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE": {{Kind: statement.TouchLocal, Level: "serializable"}},
		"SET @a = 1, @b = 'x'":                                 {local},
		"SET @a = (SELECT max(n) FROM t)":                      {opaque},
		"SET autocommit = 0":                                   {opaque},
		"SET autocommit = 1, sql_mode = 'STRICT_ALL_TABLES'":   {local},
		"SET SESSION innodb_snapshot_isolation = ON":           {local},
		"SET NAMES utf8mb4":                                    {local},
		"SET NAMES utf8mb4, autocommit = 0":                    {opaque},
		"SET @@session.time_zone = '+00:00', @a = 1":           {local},
		"SET sql_mode = 'ANSI_QUOTES'":                         {opaque},
		"SET sql_mode = CONCAT(@@sql_mode, ',ANSI')":           {opaque},
		"SET GLOBAL time_zone = '+00:00'":                      {opaque},
		"SET time_zone = (SELECT n FROM t)":                    {opaque},
		"SET foreign_key_checks = 0":                           {opaque},
		"SET innodb_lock_wait_timeout = 1":                     {opaque},
		"SET @@session.autocommit = 0":                         {opaque},
		"LOCK TABLES t WRITE":                                  {opaque},
		"TRUNCATE TABLE t":                                     {opaque},
		"CALL p()":                                             {opaque},
		"XA START 'x'":                                         {opaque},
		"CREATE TABLE t (a int PRIMARY KEY AUTO_INCREMENT, b text, KEY (b(10))) ENGINE=InnoDB": {made},
		"CREATE TABLE t (a int) ENGINE=MyISAM":                                                 {define("t")},
		"CREATE TABLE t (a int, FOREIGN KEY (a) REFERENCES u (a))":                             {define("create", "table", "t", "a", "int", "foreign", "key", "a", "references", "u", "a")},
		"CREATE TABLE t (a int REFERENCES u (a))":                                              {define("create", "table", "t", "a", "int", "references", "u", "a")},
		"CREATE TABLE t LIKE u":                                                                {define("t", "u")},
		"CREATE TABLE t (a int) PARTITION BY HASH (a) PARTITIONS 2":                            {define("t")},
		"CREATE TEMPORARY TABLE t (a int)":                                                     {opaque},
		"CREATE INDEX i ON t (a)":                                                              {define()},
		"ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES u (a)":                                   {define("alter", "table", "t", "add", "foreign", "key", "a", "references", "u", "a")},
		"CREATE VIEW v AS SELECT * FROM t":                                                     {define()},
		"CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW DELETE FROM u":                       {define("create", "trigger", "g", "before", "insert", "on", "t", "for", "each", "row", "delete", "from", "u")},
		"CREATE PROCEDURE p() BEGIN DELETE FROM u; END":                                        {opaque},
		"DROP TABLE t":    {define("t")},
		"DROP DATABASE d": {opaque},
		"'":               {opaque},
	} {
		r := New(MariaDB)
		got := r.Touches(sql, plain)
		for _, list := range [][]statement.Touch{got, want} {
			for i := range list {
				slices.Sort(list[i].Reads)
				slices.Sort(list[i].Writes)
			}
		}
		if diff := cmp.Diff(want, got, emptyIsNil); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sql, diff)
		}
	}
}

// emptyIsNil makes no difference between no names and none.
var emptyIsNil = cmp.Transformer("names", func(l []string) []string { return append([]string{}, l...) })
