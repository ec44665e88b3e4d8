package mysqlwire_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
	"wirecheck/proxy/mysqlwire"
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

var (
	alikeFor  = flag.Duration("alike-for", 0, "how long random sessions are compared; 0: a few of them")
	alikeSeed = flag.Uint64("alike-seed", 1, "the seed of the first random session; each next one has the next number")
	alikeRuns = flag.Int("alike-sessions", 3, "how many random sessions are compared without -alike-for")
)

// act is one command of a random session.
type act struct {
	cmd    byte
	text   string // of COM_QUERY and COM_STMT_PREPARE; the argument of others, or what is behind the parameters
	slot   int    // the prepared statement
	params []any
	flags  byte
	cut    int // bytes cut from the end
}

func (a act) String() string {
	return fmt.Sprintf("command %d %q slot %d params %v flags %d cut %d", a.cmd, a.text, a.slot, a.params, a.flags, a.cut)
}

// number is the number of rows that are fetched, or of the parameter that has long data.
func (a act) number(usual int) int {
	if len(a.params) > 0 {
		usual, _ = a.params[0].(int)
	}
	return usual
}

// slots is how many prepared statements a random session has.
const slots = 3

// otherClient is the slot of what another client does.
const otherClient = -1

// randomActs makes a session.
func randomActs(g *dice, n int) (acts []act) {
	for _, sql := range fuzzSetup() {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	var params [slots]int
	var cursorless [slots]bool
	for range n {
		a := act{cmd: mysql.COM_QUERY, slot: g.IntN(slots)}
		switch k := g.IntN(100); {
		case k < 62:
			a.text = g.text()
		case k < 72:
			a.cmd = mysql.COM_STMT_PREPARE
			g.prepared, g.params = true, 0
			a.text = g.statement()
			g.prepared = false
			params[a.slot] = g.params
			// MariaDB 10.11.19 crashes at DELETE ... RETURNING with a cursor, MySQL 9.7.4 at EXPLAIN with one.
			cursorless[a.slot] = !strings.HasPrefix(a.text, "SELECT")
		case k < 86:
			a.cmd = mysql.COM_STMT_EXECUTE
			for range params[a.slot] {
				a.params = append(a.params, []any{nil, 1, 2, 3, 10, -1, "a", "bob", "", "2020-01-01", "1.5"}[g.IntN(11)])
			}
			if g.chance(20) && !cursorless[a.slot] {
				a.flags = 1
			}
		case k < 88:
			a.cmd = mysql.COM_STMT_FETCH
		case k < 90:
			a.cmd, a.text = mysql.COM_STMT_SEND_LONG_DATA, g.one("", "long", strings.Repeat("x", 300))
		case k < 92:
			a.cmd = g.command(mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE)
		case k < 94:
			a.cmd, a.text = mysql.COM_FIELD_LIST, g.table().name+"\x00"+g.one("", "%", "a")
		case k < 95:
			a.cmd, a.text = mysql.COM_SET_OPTION, g.one("\x00\x00", "\x01\x00", "\x02\x00")
		case k < 97:
			a.cmd = g.command(mysql.COM_PING, mysql.COM_STATISTICS, mysql.COM_RESET_CONNECTION)
		case k < 98:
			a.cmd, a.text = mysql.COM_INIT_DB, g.one("DBNAME", "information_schema", "nothing")
		default:
			a.slot = slots // no such statement
			a.cmd = g.command(mysql.COM_STMT_EXECUTE, mysql.COM_STMT_FETCH, mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE)
		}
		if a.cmd != mysql.COM_QUERY && g.chance(2) {
			a.cut = 1 + g.IntN(4)
		}
		switch a.cmd { // of these MariaDB reads on in what it has of earlier commands
		case mysql.COM_FIELD_LIST, mysql.COM_STMT_FETCH, mysql.COM_STMT_RESET, mysql.COM_STMT_CLOSE:
			a.cut = 0
		case mysql.COM_STMT_SEND_LONG_DATA: // MySQL takes the next file of LOAD DATA LOCAL for packets out of order (9.7.4)
			if g.mysql {
				a.cut = 0
			}
		}
		acts = append(acts, a)
	}
	for _, sql := range []string{"ROLLBACK", "USE DBNAME", "SELECT * FROM t0 ORDER BY id", "SELECT * FROM t1 ORDER BY id", "SELECT * FROM t2 ORDER BY k, n", "SELECT * FROM t3 ORDER BY x, y, z", "SHOW TABLES"} {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	return acts
}

func (g *dice) command(list ...byte) byte { return list[g.IntN(len(list))] }

// alikeCaps are the capabilities of random sessions.
func alikeCaps(seed uint64) uint64 {
	list := []uint64{baseCaps, baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF), baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF|mysql.CLIENT_SESSION_TRACK|mysql.CLIENT_FOUND_ROWS)}
	if !testserver.IsMySQL() && !testserver.IsTiDB() {
		list = append(list, (baseCaps|uint64(mysql.CLIENT_DEPRECATE_EOF)|1<<34|1<<35|1<<36)&^1)
	}
	caps := list[seed%uint64(len(list))]
	if seed%7 == 0 && !testserver.IsTiDB() {
		caps |= uint64(mysql.CLIENT_COMPRESS)
	}
	return caps
}

// way is one to the server.
type way struct {
	name string
	at   testserver.Database
}

// allWays gives the direct way first, and what plays a session on one of them, in an empty database.
func allWays(t *testing.T) (ways []way, at func(way int, caps uint64, acts []act) []string) {
	d := testserver.Family(t).Database(t)
	root := d.As(d.Server.User)
	root.Name = ""
	ways = []way{{"directly", d}, {"pass", startProxy(t, d, proxy.Config{Mode: proxy.Pass}, nil)}}
	for _, how := range []mysqlwire.Instrument{mysqlwire.InstrumentOff, mysqlwire.InstrumentAuto} {
		o := observer(&sink{})
		o.Instrument = how
		ways = append(ways, way{"observe, instrument " + string(how), startProxy(t, d, proxy.Config{Mode: proxy.Observe}, o)})
	}
	return ways, func(way int, caps uint64, acts []act) []string {
		root.Exec(t, "DROP DATABASE "+d.Name, "CREATE DATABASE "+d.Name)
		out := play(t, ways[way].at, caps, acts)
		if testserver.IsMySQL() {
			out = withoutEnds(out)
		}
		if caps&uint64(mysql.CLIENT_COMPRESS) != 0 { // the server counts on from the compressed packets at each flush, so nobody looks at the numbers within them
			for i := range out {
				out[i] = packetNumber.ReplaceAllString(out[i], "")
			}
		}
		return out
	}
}

var packetNumber = regexp.MustCompile(`(?m)^\d+: `)

// TestAlikeFound plays sessions that random ones were cut down to.
func TestAlikeFound(t *testing.T) {
	if testserver.IsMySQL() || testserver.IsTiDB() {
		t.Skip("the sessions are about MariaDB")
	}
	const cached = 0x1c010fa28c // with MariaDB's cache of metadata
	q := func(list ...string) (acts []act) {
		for _, sql := range list {
			acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
		}
		return acts
	}
	random := func(list ...string) []act { return q(append(fuzzSetup(), list...)...) } // with the tables of random sessions
	prepare := func(sql string) act { return act{cmd: mysql.COM_STMT_PREPARE, text: sql} }
	execute, unknown := act{cmd: mysql.COM_STMT_EXECUTE}, act{cmd: mysql.COM_STMT_EXECUTE, slot: slots}
	table := q("CREATE TABLE t (x INT, y BIT(4), z FLOAT, s INT AS (x+1) VIRTUAL)", "CREATE TABLE k (a VARCHAR(4), b INT, c INT, PRIMARY KEY (a, b), KEY (c))",
		"CREATE VIEW v AS SELECT x FROM t", "INSERT INTO t (x,y,z) VALUES (1,b'101',0.1),(1,b'101',0.1),(2,NULL,NULL),(NULL,b'0',1e5)")
	ways, at := allWays(t)
	for name, acts := range map[string][]act{
		"a file behind a result with hidden columns": q("SELECT x FROM t; LOAD DATA LOCAL INFILE 'x' INTO TABLE t (x, z)", "SELECT x, z FROM t"),
		"conditions on the server's time": random("SELECT id FROM t0", "SELECT d FROM t1 WHERE d > NOW()", "SELECT FOUND_ROWS(), ROW_COUNT()", "SHOW WARNINGS", "SELECT id FROM t0", "SELECT d FROM t1 WHERE d > NOW() AND nothing", "SELECT FOUND_ROWS()", "SHOW WARNINGS",
			"SELECT id FROM t0", "UPDATE t1 SET r = r + 1 WHERE d < CURDATE()", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "DELETE FROM t1 WHERE d > NOW() OR u = 'x' AND nothing", "SHOW WARNINGS", "BEGIN", "SELECT id FROM t0 LIMIT 2", "DELETE FROM t1 WHERE d < NOW() - INTERVAL 1 DAY", "SELECT FOUND_ROWS(), ROW_COUNT()",
			"SELECT d FROM t1 WHERE d > NOW(); SELECT d FROM t1 WHERE d > NOW()", "ROLLBACK", "SET TRANSACTION READ ONLY", "SELECT d FROM t1 WHERE d > NOW()", "DELETE FROM t1", "SELECT d FROM t1 WHERE e = 'x' AND d > NOW()", "SHOW WARNINGS", "SET sql_select_limit = 0", "SELECT d FROM t1 WHERE d > NOW()", "SELECT FOUND_ROWS()"),
		"warnings that name rows by their numbers": random("SELECT id, DATE(b) FROM t0", "SHOW WARNINGS", "SELECT id FROM t0 WHERE b + INTERVAL 1 DAY IS NULL", "SHOW WARNINGS", "SELECT id, b > NOW() FROM t0", "SHOW WARNINGS", "SELECT id, CAST(a AS DECIMAL(1,0)) FROM t0", "SHOW WARNINGS",
			"SELECT id, CAST(b AS DATETIME) FROM t0", "SHOW WARNINGS", "SELECT d.id FROM (SELECT id, b FROM t0) d WHERE b > CURDATE()", "SHOW WARNINGS", "SELECT id, CAST(b AS SIGNED), UPPER(b) FROM t0", "SHOW WARNINGS"),
		"an order by what the answer has under a column's name": random("SELECT id, 'c' FROM t0 ORDER BY c LIMIT 1", "SELECT id, 5 AS c FROM t0 ORDER BY c LIMIT 1", "SELECT id, b AS c FROM t0 ORDER BY c LIMIT 1", "SELECT id, 'c' FROM t0 GROUP BY c LIMIT 1",
			"SELECT id, 5 AS c FROM t0 HAVING c = 5", "SELECT id, 'c' FROM t0 ORDER BY t0.c LIMIT 1", "SELECT id, 'x' FROM t0 ORDER BY c LIMIT 1"),
		"a DELETE that returns rows which cannot be": append(random("DELETE FROM t2 WHERE 0 OR g IS NULL RETURNING *", "DELETE FROM t2 WHERE NOT (g IS NOT NULL) RETURNING k", "DELETE FROM t2 WHERE (g IS NULL) AND k = 'x' RETURNING k", "DELETE FROM t2 WHERE f IS NULL AND n = 7 RETURNING k"),
			prepare("DELETE FROM t2 WHERE g IS NULL OR n IS NULL RETURNING *"), execute),
		"a subquery that reads the table that is updated": q("SET sql_mode=''", "UPDATE t SET y=DEFAULT WHERE EXISTS (SELECT z FROM t)", "UPDATE t SET z=NULL WHERE x IN (SELECT x FROM v)",
			"UPDATE t SET z=1 WHERE x IN (SELECT b FROM k)", "UPDATE t SET z=NULL"),
		"values for generated columns": q("INSERT IGNORE INTO t VALUES ('', 3, 'A', 1), ('long', 10, 3, 'A'), (1, 4, 10, DEFAULT)", "INSERT IGNORE INTO t SELECT b, b, b, a FROM k", "INSERT INTO t VALUES (1, 2, 3, DEFAULT)"),
		"statements behind a trigger": random("CREATE TRIGGER g0 BEFORE UPDATE ON t1 FOR EACH ROW SET NEW.e = 7;SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.columns WHERE TABLE_SCHEMA=DATABASE() ORDER BY 1, ORDINAL_POSITION LIMIT 5",
			"CREATE PROCEDURE p0() SELECT r FROM t1; UPDATE t1 SET r = 3; CALL p0(); SHOW COLUMNS FROM t1", "DROP TRIGGER g0; UPDATE t1 SET r = 4; SELECT * FROM t1 ORDER BY id"),
		"a script that is not parsed": q("SHOW CREATE TABLE t; CREATE PROCEDURE p() BEGIN SELECT 1; SELECT 2; END", "SHOW CREATE /*!99999 x */ TABLE t"),
		"comments for versions": q("START TRANSACTION READ ONLY /*!99999 x */", "COMMIT", "SHOW COLUMNS /*!50700 nothing */ FROM t", "SHOW COLUMNS /*M!50700 nothing */ FROM t", "SHOW CREATE /*!99999 /* x */ y */ TABLE t",
			"CREATE TABLE c (x INT /*!50600 , y INT */ /*!99999 , z INT */)", "INSERT INTO c VALUES (1, 2)", "SELECT * FROM c /*!080000 JOIN nothing */", "SHOW COLUMNS FROM /*!9999 c */ t", "/*!99999 x */ SELECT x FROM c /*!999999 ORDER BY y */ /*!50000 ORDER BY x */"),
		"a table that the server need not read": q("INSERT INTO k VALUES ('a', 1, 1), ('3b', 2, 1), ('x', 3, 9)", "CREATE TABLE o (id INT PRIMARY KEY, n INT)", "INSERT INTO o VALUES (3, 1)", "SELECT k.b FROM k LEFT JOIN o ON k.a = o.id",
			"SELECT o.n FROM t RIGHT JOIN o ON t.x = o.id", "SELECT k.b, o.id FROM k LEFT JOIN o ON k.a = o.id", "SELECT COUNT(*) FROM o RIGHT JOIN k ON k.a = o.id AND o.n > 0", "SELECT k.b FROM k JOIN o ON k.a = o.id"),
		"a DELETE whose condition is the same for all rows": q("CREATE TABLE o (id INT PRIMARY KEY, n INT)", "DELETE FROM o WHERE NOT EXISTS (SELECT x FROM t)", "DELETE FROM o WHERE CAST('2020-01-01' AS SIGNED) < (SELECT COUNT(a) FROM k WHERE b < 'A')",
			"DELETE FROM o WHERE NOT EXISTS (SELECT x FROM t WHERE x = n)", "DELETE FROM o WHERE n > 0 AND NOT EXISTS (SELECT x FROM t)"),
		"errors in several columns": q("SET sql_mode=DEFAULT", "CREATE TABLE o (id INT, n INT)", "SELECT x FROM t", "INSERT INTO o VALUES ('x', 'y')", "SELECT FOUND_ROWS()", "SHOW WARNINGS", "SELECT @@warning_count, @@error_count", "INSERT INTO o SELECT 'x', 'y'",
			"SHOW COUNT(*) WARNINGS", "SHOW WARNINGS", "INSERT INTO o (id, n) VALUES ('x', 'y')", "SHOW WARNINGS", "INSERT INTO o VALUES (1, 'y')", "SHOW WARNINGS", "SELECT @@warning_count, ROW_COUNT()"),
		"counts behind our questions": append(q("USE information_schema", "DROP TRIGGER IF EXISTS g0", "START TRANSACTION READ ONLY", "SELECT @@warning_count, @@error_count", "COMMIT", "USE DBNAME", "DROP TABLE IF EXISTS nope", "SET sql_mode=''", "SELECT a", "SHOW COUNT(*) WARNINGS",
			"SHOW WARNINGS", "CREATE TABLE o (id INT PRIMARY KEY)"), prepare("SELECT id FROM o WHERE id < NULL"), q("SELECT ROW_COUNT()")[0], execute, q("SELECT ROW_COUNT()")[0]),
		"a preparation behind several errors": {q("SET sql_mode=DEFAULT")[0], q("CREATE TABLE o (id INT, n INT)")[0], q("INSERT INTO o VALUES ('x', 'y')")[0], prepare("UPDATE t SET z = 1"), q("SHOW WARNINGS")[0], q("SHOW COUNT(*) ERRORS")[0],
			q("INSERT INTO o VALUES ('x', 'y')")[0], prepare("SELECT 1"), q("SHOW WARNINGS")[0], q("INSERT INTO o VALUES ('x', 'y')")[0], q("SHOW ERRORS")[0], q("SHOW ERRORS LIMIT 1")[0], q("SELECT @@error_count")[0]},
		"errors behind the beginning of a transaction": {prepare("START TRANSACTION"), q("INSERT INTO nope VALUES (1)")[0], q("SET sql_mode=DEFAULT")[0], execute, q("SHOW ERRORS")[0], q("SHOW COUNT(*) ERRORS")[0], q("SELECT @@error_count")[0],
			q("SELECT '1x' + x FROM t")[0], q("SET sql_mode=DEFAULT")[0], execute, q("SHOW ERRORS")[0], q("SHOW COUNT(*) ERRORS")[0], q("SHOW WARNINGS")[0]},
		"no rows are asked for": q("CREATE TABLE o (id INT PRIMARY KEY, a INT, b VARCHAR(10), KEY (a), KEY ba (b, a))", "CREATE TABLE o2 (id INT PRIMARY KEY, r INT, KEY (r))", "SELECT p.id FROM o p JOIN o q ON p.b = q.b WHERE EXISTS (SELECT MIN(id) FROM o2) ORDER BY p.id LIMIT 0",
			"SELECT p.id FROM o p JOIN o q ON p.b = q.b WHERE EXISTS (SELECT MIN(id) FROM o2)", "SELECT p.id FROM o p JOIN o q ON p.b = q.b ORDER BY p.id LIMIT 0", "SELECT p.id FROM o p JOIN o q ON p.b = q.b", "SELECT x FROM t WHERE x > 1 LIMIT 0", "SELECT id FROM o LIMIT 0",
			"SELECT id FROM o WHERE EXISTS (SELECT MIN(id) FROM o2)", "SELECT x FROM t WHERE EXISTS (SELECT MIN(id) FROM o2)", "SELECT p.id FROM o p, o q WHERE EXISTS (SELECT MIN(id) FROM o2)"),
		"times that are none": q("CREATE TABLE o (id INT PRIMARY KEY, w TIMESTAMP NULL, d DATE, n INT)", "SELECT x FROM t EXCEPT SELECT n FROM o WHERE w IN ('no time', 'A')", "INSERT INTO o VALUES (1, '2024-01-01', '2024-01-01', 3)",
			"SELECT DISTINCT n FROM o WHERE w = 'A'", "SELECT DISTINCT n FROM o WHERE (w = '2024-02-31')", "SELECT DISTINCT n FROM o WHERE w = '2024-01-01'", "SELECT DISTINCT n FROM o WHERE d = 'A'", "SELECT DISTINCT n FROM o WHERE w < 'A'",
			"SELECT DISTINCT n FROM o WHERE w = 'A' AND n > 0", "SELECT COUNT(*) FROM o WHERE w = 'A'", "SELECT n, COUNT(*) FROM o WHERE w = 'A' GROUP BY n", "SELECT x FROM t WHERE EXISTS (SELECT n FROM o WHERE w = 'A')", "UPDATE o SET n = 4 WHERE w = 'A'",
			"UPDATE o SET n = 4 WHERE w = '2024-02-31'", "DELETE FROM o WHERE w = 'A'", "DELETE FROM o WHERE w IN ('2024-02-31', 'B')", "SELECT n FROM o WHERE w = 'A' FOR UPDATE"),
		"warnings and flags of a second scan": q("CREATE TABLE o (id INT PRIMARY KEY, n INT, KEY (n))", "INSERT INTO o VALUES (1, 10), (2, 20), (3, NULL)", "SELECT DISTINCT COUNT(*), MIN(n) FROM o WHERE n IS NOT NULL", "SELECT DISTINCT COUNT(*) FROM o WHERE n < x'41'",
			"SELECT DISTINCT COUNT(*) FROM t WHERE x < 7", "SELECT DISTINCT COUNT(*) FROM o WHERE n < 0.5"),
		"a join of a number with a text of an index": q("CREATE TABLE o (id INT PRIMARY KEY, u VARCHAR(5), n INT, UNIQUE KEY (u), KEY (n)) STATS_AUTO_RECALC=0", "INSERT INTO o VALUES (1, 'a', 10), (2, 'b', 20), (3, 'c', 10), (4, NULL, NULL), (5, 'A1', 0)",
			"ANALYZE TABLE o", // or the plans, and with them how often the servers warn, depend on when it looks at the rows
			"SELECT p.id FROM o p JOIN o q ON p.n = q.u", "SELECT q.n FROM o p RIGHT JOIN o q ON p.u = q.n WHERE p.u IS NOT NULL", "SELECT p.u FROM o p JOIN o q ON p.n = q.id",
			"CREATE VIEW ov AS SELECT u, n FROM o WHERE n > 0", "SELECT COUNT(DISTINCT p.n) FROM o p JOIN ov q ON p.n = q.u WHERE p.n LIKE '_'"),
		"distinct values of an index": q("SELECT DISTINCT a FROM k", "SELECT COUNT(DISTINCT a) FROM k", "SELECT a FROM k GROUP BY a", "SELECT DISTINCT c FROM k",
			"SELECT DISTINCT x FROM t", "SELECT DISTINCT a FROM k ORDER BY a, b FOR UPDATE", "SELECT DISTINCT x FROM t FOR UPDATE"),
		"another form of a prepared statement, without its columns": {prepare("SELECT COUNT(*), AVG(x) FROM t WHERE y LIKE '_'"), q("SET group_concat_max_len=10")[0], execute, execute, q("SET group_concat_max_len=1000")[0], execute},
		"a temporary table in front of the prepared statement's":    {prepare("SELECT t.z FROM t JOIN k ON t.x = k.b"), q("CREATE TEMPORARY TABLE t (x INT, q INT)")[0], execute, q("DROP TEMPORARY TABLE t")[0], execute},
		"a temporary table in front of it, and another database": {prepare("SELECT t.z FROM t JOIN k ON t.x = k.b"), q("CREATE TEMPORARY TABLE t (x INT, q INT)")[0], q("USE information_schema")[0], execute, q("SELECT DATABASE()")[0],
			q("DROP TEMPORARY TABLE DBNAME.t")[0], execute, q("USE DBNAME")[0], execute},
		"ROW_COUNT() after commands without statement": {unknown, q("SELECT ROW_COUNT(), FOUND_ROWS()")[0], prepare("SELEC"), q("SELECT ROW_COUNT()")[0], prepare("SELECT 1"), {cmd: mysql.COM_STMT_RESET}, q("SELECT ROW_COUNT()")[0]},
		"ROW_COUNT() in a script":                      {q("SHOW FULL COLUMNS FROM t")[0], unknown, q("START TRANSACTION; SELECT ROW_COUNT(), FOUND_ROWS()")[0]},
		"FOUND_ROWS() beside rows that are found by their key": q("CREATE TABLE o (id INT PRIMARY KEY, a INT, KEY (a))", "INSERT INTO o VALUES (1, 10), (2, 20), (3, 10)", "SELECT id FROM o WHERE id > 5", "SELECT a, FOUND_ROWS() AS n FROM o", "SELECT a FROM o WHERE a > 10",
			"SELECT SQL_CALC_FOUND_ROWS FOUND_ROWS() AS n, q.id FROM o p JOIN o q USING (id)", "SELECT p.id FROM o p JOIN o q USING (id) ORDER BY 1 LIMIT 1", "SELECT FOUND_ROWS() AS n, x FROM v"),
		"an index answers a subquery alone": random("SELECT (SELECT id FROM t0 WHERE a IS NOT NULL AND id < 2), q.a FROM v0 q ORDER BY id", "SELECT *, (SELECT id FROM t0 WHERE a NOT IN (10, 20, 0)) AS x FROM t1 WHERE id < 3 ORDER BY id",
			"SELECT p.id FROM t0 p JOIN v0 q ON p.a = q.a WHERE EXISTS (SELECT MIN(id) FROM t1)", "SELECT id FROM t1 WHERE id < 3 AND EXISTS (SELECT id FROM t0 WHERE a > 15)", "SELECT id FROM t1 WHERE id < 3 AND EXISTS (SELECT c FROM t0 WHERE c > 15)",
			"SELECT id, (SELECT a FROM t0 WHERE a > 0 ORDER BY a DESC LIMIT 1) FROM t1 WHERE id < 3"),
		"the primary key answers for one table of a join": random("SELECT p.k, BIT_OR(q.n), MIN(p.k) FROM t2 p JOIN t2 q ON p.k = q.k GROUP BY 1", "SELECT p.w FROM t2 p LEFT JOIN t2 q ON p.g = q.k WHERE q.k < 0.1e1", "SELECT DISTINCT p.k FROM t2 p JOIN t2 q ON p.k = q.k WHERE q.k > 'a'",
			"SELECT p.k, p.w FROM t2 p JOIN t2 q ON p.k = q.k WHERE q.k = 'a'", "SELECT q.id FROM t0 p RIGHT JOIN v0 q ON p.a = q.a WHERE p.id <=> 2", "SELECT q.id FROM t0 p RIGHT JOIN v0 q ON p.a = q.a WHERE p.id = 2"),
		"warnings of values that are counted once": random("SELECT MAX(q.c), COUNT(DISTINCT q.id) FROM t0 q WHERE q.a>'it''s'", "SELECT COUNT(DISTINCT b), MAX(c) FROM t0 WHERE a > 'it''s'", "SELECT SUM(DISTINCT id), MAX(c) FROM t0 WHERE a > 15", "SELECT COUNT(DISTINCT id), COUNT(c) FROM t0 WHERE a > 'it''s'"),
		"executions with another number of parameters than the statement has": append(random(), prepare("SELECT f FROM t2 WHERE n<>? INTERSECT SELECT x FROM t3 WHERE z>?"), act{cmd: mysql.COM_STMT_EXECUTE, params: []any{"a"}},
			act{cmd: mysql.COM_STMT_EXECUTE, params: []any{"bob", nil, -1, 3, 3, "", "", "bob", 10, nil, nil, -1, 10, "1.5"}}, act{cmd: mysql.COM_STMT_EXECUTE, params: []any{1, 0}}),
		"a table that is not read, and a subquery with a column of that name": random("SELECT CASE WHEN q.n IS NULL THEN (SELECT a FROM v0 ORDER BY 1 LIMIT 1) ELSE q.f END FROM t0 p RIGHT JOIN t2 q ON p.id = q.f ORDER BY 1",
			"SELECT q.f, (SELECT MAX(r) FROM t1 WHERE r = a) FROM t0 p RIGHT JOIN t2 q ON p.id = q.n"),
		"errors of a query in an INSERT":                        random("REPLACE INTO t0 SELECT a, b, b, a FROM v0 WHERE b BETWEEN x'41' AND 1", "SHOW WARNINGS", "INSERT INTO t0 (id, a) SELECT a, b FROM v0 WHERE b BETWEEN x'41' AND 1", "SHOW WARNINGS", "INSERT INTO t0 SELECT b, b, b, b FROM t0 WHERE a > 0", "SHOW WARNINGS"),
		"a snapshot behind several errors":                      random("INSERT INTO t1 VALUES ('A', -1, 10, 2, 11)", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SELECT @@warning_count", "SHOW WARNINGS", "COMMIT", "INSERT INTO t1 VALUES ('A', -1, 10, 2, 11)", "SELECT r FROM t1", "SHOW WARNINGS"),
		"variables behind the first error":                      random("INSERT INTO t0 VALUES (DEFAULT, ROUND(@v := 7), 5, 3)", "SELECT @v", "INSERT INTO t0 (id, a) VALUES (DEFAULT, @v := 8)", "SELECT @v", "INSERT INTO t0 VALUES (9, @v := 9, 5, 3)", "SELECT @v"),
		"functions behind the first error":                      random("INSERT INTO t0 VALUES (DEFAULT, LAST_INSERT_ID(77), 5, 3)", "SELECT LAST_INSERT_ID()", "INSERT INTO t0 VALUES (DEFAULT, GET_LOCK('wirecheck', 0), 5, 3)", "SELECT IS_USED_LOCK('wirecheck') IS NULL", "INSERT INTO t0 VALUES (DEFAULT, LAST_INSERT_ID(), 5, 3)", "SELECT LAST_INSERT_ID()"),
		"errors of a query with subqueries":                     random("INSERT INTO t0 SELECT 1, 1, 'a', 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t1 WHERE r = 7)", "SHOW WARNINGS", "INSERT INTO t0 SELECT 1, 1, 'a', 1 FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM t1 WHERE u = 7)", "SHOW WARNINGS", "INSERT INTO t0 SELECT r, r, u, 'x' FROM t1 WHERE (SELECT COUNT(*) FROM t3 WHERE x = t1.id) = 0", "SHOW WARNINGS", "INSERT INTO t0 SELECT r, r, u, 'x' FROM t1 WHERE (SELECT COUNT(*) FROM t3 WHERE x = t1.u) = 0", "SHOW WARNINGS"),
		"a script that sets how long a list may be":             random("SET group_concat_max_len=10; SELECT DISTINCT 1, z FROM t3; SELECT COUNT(*), MAX(z) FROM t3", "SET group_concat_max_len=DEFAULT; SELECT DISTINCT 1, z FROM t3", "SET max_error_count=5; SELECT DISTINCT 1, z FROM t3"),
		"errors that a script shows":                            random("INSERT INTO t1 VALUES ('A', -1, 10, 2, 11)", "SHOW ERRORS; SHOW WARNINGS; SHOW COLUMNS FROM t2", "INSERT INTO t1 VALUES ('A', -1, 10, 2, 11)", "SELECT 1; SHOW ERRORS LIMIT 1; SELECT r FROM t1; SHOW ERRORS"),
		"an unknown statement behind several errors":            {q("INSERT k VALUES (@v, NULL, NULL)")[0], unknown, q("SHOW ERRORS")[0], q("INSERT k VALUES (@v, NULL, NULL)")[0], q("SHOW ERRORS")[0], q("SELECT @@error_count")[0]},
		"a fetch of an unknown statement behind several errors": append(random("INSERT t0 VALUE (DEFAULT, 'it''s', b'1', 9)"), act{cmd: mysql.COM_STMT_FETCH, slot: slots}, q("SHOW ERRORS")[0]),
		"long data for no parameter": append(random(), prepare("INSERT IGNORE INTO t1 (id, r, d, e, u) SELECT a, b, a, id, id FROM v0"), act{cmd: mysql.COM_STMT_SEND_LONG_DATA}, q("CREATE TRIGGER g0 BEFORE UPDATE ON t1 FOR EACH ROW SET NEW.e = 7")[0],
			execute, execute, act{cmd: mysql.COM_STMT_RESET}, execute),
		"a trigger on the table of a prepared UPDATE, and another database": slices.Concat(random(), []act{prepare("UPDATE t1 SET e=e + 1 WHERE e < 9")}, q("CREATE TRIGGER g0 BEFORE UPDATE ON t1 FOR EACH ROW SET NEW.e = 7", "USE information_schema"), []act{execute, execute},
			q("USE DBNAME", "SELECT id, e FROM t1 ORDER BY id"), []act{execute}),
		"a prepared DELETE that returns rows of a table with other columns": append(random(), prepare("DELETE FROM t3 RETURNING x + 1"), q("CREATE TEMPORARY TABLE t3 (x INT, q INT)")[0], execute),
		"warnings behind definitions of no table": random("SELECT * FROM t3 HAVING z>'long text'", "SET sql_select_limit=DEFAULT", "CREATE PROCEDURE p0() SELECT 1", "SHOW WARNINGS", "SELECT r FROM t1 WHERE r > 'x'", "SELECT id FROM t0", "SET sql_select_limit=DEFAULT", "SELECT r FROM t1 WHERE r > 'x'",
			"SET NAMES latin1", "DROP PROCEDURE p0", "SHOW WARNINGS", "CREATE DEFINER=CURRENT_USER FUNCTION f0(x INT) RETURNS INT DETERMINISTIC RETURN x + 1", "SHOW WARNINGS", "CREATE TABLE o (id INT)", "SHOW WARNINGS"),
		"an order that the end of an index makes needless": random("SELECT MIN(p.a), MIN(p.a) FROM v0 p ORDER BY (SELECT SUM(b) FROM v0 WHERE id IS NOT NULL)", "SELECT MIN(p.a), MAX(p.c) FROM t0 p ORDER BY (SELECT SUM(b) FROM v0)", "SELECT MIN(p.a), SUM(p.a) FROM t0 p ORDER BY (SELECT SUM(b) FROM v0)"),
		"locking joins that look for a part of the primary key": random("SELECT p.id FROM v0 p RIGHT JOIN t2 q ON p.b = q.k WHERE p.b LIKE 'a%' LOCK IN SHARE MODE", "SELECT p.id, q.n FROM t0 p JOIN t2 q ON p.b = q.k FOR UPDATE", "DELETE FROM t2 WHERE f IS NOT NULL",
			"SELECT MOD(NULL, p.a), p.c-(3) DIV BINARY (NULLIF(q.n, p.id)) FROM t0 p, t2 q WHERE p.b IN (SELECT q.k FROM t2 WHERE p.a<'A') LOCK IN SHARE MODE"),
		"statements that ONLY_FULL_GROUP_BY forbids from the second execution on": append(random("SET sql_mode='ONLY_FULL_GROUP_BY'"), prepare("SELECT *, (SELECT id FROM t2 WHERE NOT EXISTS (SELECT MIN(id) FROM v0)) FROM t0 WHERE c=99999999999 ORDER BY a DESC"), execute, execute, execute),
		"a DELETE that compares a text with a number":                             append(random(), prepare("DELETE FROM t0 WHERE 0.1e1='A'"), execute, prepare("DELETE FROM t0 WHERE 1=1"), execute),
		"a prepared query of columns behind a setting":                            append(random("BEGIN"), prepare("SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.columns WHERE TABLE_SCHEMA=DATABASE() ORDER BY 1, ORDINAL_POSITION LIMIT 5"), q("SET group_concat_max_len=DEFAULT")[0], execute),
		"errors of commands without statement":                                    {unknown, q("SELECT ROW_COUNT(), FOUND_ROWS()")[0], q("SHOW ERRORS")[0]},
		"an empty statement ends the text": q("SELECT x FROM t;; UPDATE t SET z = 7", "SELECT z FROM t", "; UPDATE t SET z = 8", "SELECT x FROM t; /* none */ ; DELETE FROM t", "SELECT z FROM t",
			"SELECT x FROM t; UPDATE t SET z = 9;; ;", "SELECT z FROM t"),
		"warnings behind what FOUND_ROWS() says":      q("SELECT MAX(x) FROM t UNION SELECT 7", "INSERT nope (b) VALUES (1)", "SELECT @@warning_count; INSERT IGNORE INTO nope SET d = (SELECT x FROM v)"),
		"warnings behind a session that begins again": {q("SELECT '1x' + x FROM t")[0], {cmd: mysql.COM_RESET_CONNECTION}, q("SHOW WARNINGS")[0], q("SHOW COUNT(*) WARNINGS")[0]},
		"warnings that are not listed": append(q("SET max_error_count=0", "SELECT '1x' + x FROM t", "SET sql_mode='TRADITIONAL'", "SELECT 10", "SHOW COUNT(*) WARNINGS", "SHOW WARNINGS", "SELECT @@error_count, @@warning_count",
			"SET max_error_count=1", "SELECT '1x' + x FROM t"), unknown, q("SHOW COUNT(*) ERRORS")[0]),
		"warnings in front of what wirecheck cannot ask": append(random(), prepare("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE"), execute, q("DROP TRIGGER IF EXISTS g0")[0], q("START TRANSACTION READ ONLY")[0], q("SHOW COUNT(*) WARNINGS")[0], q("SHOW WARNINGS")[0]),
		"a prepared query that is an error by now, from another database": append(random(), prepare("SELECT IFNULL(y, x) FROM t3 WHERE 0"), q("CREATE TEMPORARY TABLE t3 (x INT, q INT)")[0], q("USE information_schema")[0], execute, q("SELECT ROW_COUNT()")[0],
			q("SHOW WARNINGS")[0], q("USE DBNAME")[0], execute, q("SELECT ROW_COUNT()")[0]),
		"warnings in front of a CALL that is prepared": slices.Concat(random("CREATE PROCEDURE p0() BEGIN SELECT 1; UPDATE t0 SET a = 1; END; SELECT '1x' + id FROM t0"), []act{prepare("CALL p0()")}, q("SELECT @@warning_count", "SHOW WARNINGS"), []act{execute}, q("SELECT @@warning_count"),
			q("CREATE PROCEDURE p1() SELECT 2; SELECT '1x' + id FROM t0", "CALL p1()", "SHOW WARNINGS", "SELECT '1x' + id FROM t0"), []act{prepare("SELECT 1 FROM t2")}, q("SHOW WARNINGS")),
		"a join for whose rows no index is good": random("SELECT DISTINCT q.id, BIT_OR(p.id) FROM t0 p, t0 q WHERE p.id<q.a GROUP BY q.id", "SELECT DISTINCT q.id, BIT_OR(p.id) FROM t0 p, t0 q WHERE p.c<q.c GROUP BY q.id", "SELECT DISTINCT q.id, BIT_OR(p.id) FROM t0 p JOIN t0 q ON q.a > p.c GROUP BY q.id"),
		"values of an INSERT without a list that find errors": random("INSERT INTO t1 VALUES (7, 5, 'it''s' XOR id|'A', DEFAULT, 1)", "SELECT @@warning_count, @@error_count", "INSERT INTO t1 VALUES (8, (SELECT n FROM t2), NULL, 'x', '1234567')", "SHOW ERRORS",
			"INSERT INTO t1 VALUES (8, 'x', 'y', NOW(), CONCAT('1234567', @v))", "SHOW ERRORS", "INSERT INTO t1 VALUES (8, 3, CURDATE(), -1, CONCAT('a', 3))"),
		"a column that equals a constant which warns": random("SELECT f FROM t2 WHERE x'41' DIV -1=n INTERSECT SELECT g FROM t2", "SELECT DISTINCT f FROM t2 WHERE n = '2x' DIV 1", "SELECT DISTINCT f FROM t2 WHERE n = '2x'", "SELECT DISTINCT f FROM t2 WHERE n = 2"),
		"an index that the same text adds":            random("ALTER TABLE t0 ADD INDEX i0 (c); SELECT p.k FROM t2 p JOIN t0 q ON p.f = q.c ORDER BY 1", "SELECT p.k FROM t2 p JOIN t0 q ON p.f = q.c ORDER BY 1"),
		"a left join of texts that the server leaves out": random("SELECT p.u, MIN(p.d) FROM t1 p LEFT JOIN t1 q ON p.u = q.u GROUP BY 1", "SELECT p.k, COUNT(*) FROM t2 p LEFT JOIN t1 q ON p.k = q.u GROUP BY 1", "SELECT p.k, COUNT(*) FROM t2 p LEFT JOIN t1 q ON p.f = q.u GROUP BY 1",
			"SELECT p.k, COUNT(q.d) FROM t2 p LEFT JOIN t1 q ON p.k = q.u GROUP BY 1"),
		"warnings behind a setting": q("SELECT '1x' + x FROM t", "SET sql_mode='ONLY_FULL_GROUP_BY'", "SELECT LAST_INSERT_ID()", "SELECT @@warning_count", "SHOW WARNINGS", "SELECT '1x' + x FROM t", "SET SESSION group_concat_max_len=10",
			"SELECT 1, @v := 2", "SHOW WARNINGS", "DO 1", "SHOW WARNINGS", "SET sql_mode=''", "SELECT COUNT(*) FROM t", "SHOW WARNINGS"),
		"different values of an index": {q("SELECT COUNT(DISTINCT c) FROM k")[0], q("SELECT COUNT(DISTINCT c), COUNT(*) FROM k")[0], q("INSERT INTO k VALUES ('a', 1, 1), ('a', 2, 1), ('b', 1, NULL)")[0], q("SELECT COUNT(DISTINCT c) FROM k")[0],
			q("SELECT SUM(DISTINCT c) FROM k WHERE b > 0")[0]},
	} {
		acts := append(slices.Clone(table), acts...)
		want := at(0, cached, acts)
		for way := 1; way < len(ways); way++ {
			if got := at(way, cached, acts); !slices.Equal(want, got) {
				t.Errorf("%s, %s:\n%s", name, ways[way].name, story(acts, want, got, true))
			}
		}
	}
}

// TestKeyAnswersAlone: what is added to a query that the primary key answers alone changes neither its order nor its status flags, nor how often it warns.
func TestKeyAnswersAlone(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("the status flags are MariaDB's and MySQL's")
	}
	ways, at := allWays(t)
	var acts []act
	for _, sql := range append(fuzzSetup(), "SELECT DISTINCT p.k FROM t2 p WHERE p.k>0", "SELECT DISTINCT k FROM t2 WHERE k BETWEEN NULL AND 2 ORDER BY k,n DESC", "SELECT DISTINCT k FROM t2 WHERE k > 'a'", "SELECT DISTINCT k FROM t2 WHERE k IN (0, 'a')",
		"SELECT DISTINCT id FROM t1 WHERE id > '1'", "SELECT k FROM t2 WHERE k > 0", "SELECT RAND(3) r FROM t2 WHERE k >= 0 ORDER BY k,n DESC LOCK IN SHARE MODE", "SELECT RAND(3) r FROM t2 WHERE k >= 'a' ORDER BY k,n DESC LOCK IN SHARE MODE",
		"SELECT n FROM t2 ORDER BY k DESC,n LOCK IN SHARE MODE", "SELECT n FROM t2 ORDER BY k DESC,n DESC LOCK IN SHARE MODE", "SELECT n FROM t2 ORDER BY n LOCK IN SHARE MODE", "SELECT k FROM t2 ORDER BY k LOCK IN SHARE MODE",
		"SELECT DISTINCT GROUP_CONCAT(DISTINCT n), BIT_OR(g) FROM t2 LIMIT 0", "SELECT DISTINCT GROUP_CONCAT(DISTINCT n), BIT_OR(g) FROM t2", "SELECT COUNT(*), SUM(n) FROM t2 LIMIT 0", "SELECT DISTINCT g FROM t2 LIMIT 0") {
		acts = append(acts, act{cmd: mysql.COM_QUERY, text: sql})
	}
	for _, caps := range []uint64{baseCaps, baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF)} {
		want := at(0, caps, acts)
		for way := 1; way < len(ways); way++ {
			if got := at(way, caps, acts); !slices.Equal(want, got) {
				t.Errorf("%s:\n%s", ways[way].name, story(acts, want, got, true))
			}
		}
	}
}

// newColumns is the end of an answer whose status says that the number of columns has changed: 0x0400.
var newColumns = regexp.MustCompile(`"\\xfe\\x00\\x00(?:\\"|\\x..)\\x04`)

// TestNewColumns executes prepared statements whose tables were changed, so that wirecheck executes another form of them: the status says whether the number
// of the client's columns has changed, and it says so once.
func TestNewColumns(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("TiDB does not tell it")
	}
	query := func(sql string) act { return act{cmd: mysql.COM_QUERY, text: sql} }
	execute := act{cmd: mysql.COM_STMT_EXECUTE}
	ways, at := allWays(t)
	for name, list := range map[string]struct {
		made  string // in front of the table of the statement
		tells int    // how often the status says it
	}{
		"fewer columns":   {"CREATE TEMPORARY TABLE t (x INT, q INT)", 2},
		"as many columns": {"CREATE TEMPORARY TABLE t (x INT, p INT, q INT)", 0},
		"more columns":    {"CREATE TEMPORARY TABLE t (x INT, p INT, q INT, r INT)", 2},
	} {
		acts := []act{query("CREATE TABLE t (x INT, y INT, z INT)"), query("INSERT INTO t VALUES (1, 2, 3)"), {cmd: mysql.COM_STMT_PREPARE, text: "SELECT * FROM t LIMIT 1"}, execute,
			query(list.made), execute, execute, query("DROP TEMPORARY TABLE t"), execute, execute}
		for _, caps := range []uint64{baseCaps, baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF)} {
			want := at(0, caps, acts)
			for way := 1; way < len(ways); way++ {
				if got := at(way, caps, acts); !slices.Equal(want, got) {
					t.Errorf("%s, %s:\n%s", name, ways[way].name, story(acts, want, got, true))
				}
			}
			told := 0
			for _, answer := range want {
				if newColumns.MatchString(answer) {
					told++
				}
			}
			if told != list.tells {
				t.Errorf("%s, directly: the status says it in %d answers, want %d:\n%q", name, told, list.tells, want)
			}
		}
	}
}

// TestAlike plays random sessions directly, and in each mode through the proxy: each byte of the answers must be the same.
func TestAlike(t *testing.T) {
	ways, at := allWays(t)
	until := time.Now().Add(*alikeFor)
	noise, planned, renewed, played := 0, 0, 0, 0
	for seed := *alikeSeed; time.Now().Before(until) || *alikeFor == 0 && seed < *alikeSeed+uint64(*alikeRuns); seed++ {
		played++
		caps := alikeCaps(seed)
		acts := randomActs(&dice{Rand: rand.New(rand.NewPCG(seed, 0)), mysql: testserver.IsMySQL(), tidb: testserver.IsTiDB()}, 40)
		want := at(0, caps, acts)
		if strings.HasSuffix(want[len(want)-1], os.ErrDeadlineExceeded.Error()) { // the server never ends its answer
			noise++
			continue
		}
		for way := 1; way < len(ways); way++ {
			if way == 1 && seed%4 > 0 {
				continue // pass is tried less
			}
			got := at(way, caps, acts)
			if slices.Equal(want, got) {
				continue
			}
			if again := at(0, caps, acts); !slices.Equal(want, again) { // not even the server itself repeats it
				noise++
				want = again
				continue
			}
			differs := func(list []act) bool {
				return !slices.Equal(at(0, caps, list), at(way, caps, list))
			}
			if !differs(acts) {
				t.Logf("-alike-seed %d, capabilities %#x, %s: only once\n%s", seed, caps, ways[way].name, story(acts, want, got, true))
				noise++
				continue
			}
			begin := acts[:len(fuzzSetup()):len(fuzzSetup())] // stays, for the statistics of its tables
			short := append(begin, shorten(acts[len(begin):], func(list []act) bool { return differs(append(begin, list...)) })...)
			direct, through := at(0, caps, short), at(way, caps, short)
			if slices.Equal(direct, through) {
				noise++
				continue
			}
			steady := true
			for range 4 {
				steady = steady && slices.Equal(direct, at(0, caps, short)) && slices.Equal(through, at(way, caps, short))
			}
			if !steady {
				noise++
				continue
			}
			wider, marks := widened(short)
			wide := at(0, caps, wider)
			for _, i := range slices.Backward(marks) {
				wide = slices.Delete(wide, min(i, len(wide)), min(i+1, len(wide)))
			}
			if slices.Equal(wide, through) && !strings.Contains(strings.Join(wide, ""), "wc_") {
				planned++ // the server itself answers so where tables have two more columns
				continue
			}
			if slices.ContainsFunc(looked(short, len(begin)), func(list []act) bool { return slices.Equal(at(0, caps, list), through) }) {
				renewed++ // the server itself answers so where another client has looked at a table meanwhile
				continue
			}
			t.Errorf("-alike-seed %d, capabilities %#x, %s:\n%s", seed, caps, ways[way].name, story(short, direct, through, false))
		}
	}
	t.Logf("%d sessions; %d were not the same directly, %d differ by the plan of a wider table, %d by what another client's look at a table changes", played, noise, planned, renewed)
}

// looked gives the session in all forms in which another client looks at a table, once, behind the beginning. If it opens a changed table more often at a time than
// anybody before, MariaDB renews the statistics of its indexes, which all plans share. And when MariaDB executes a prepared statement again whose table is below a view or
// in a join, it may use the indexes that have the columns which the last statement named that had the table open, of any client (10.11.19).
func looked(acts []act, begin int) (lists [][]act) {
	for _, table := range fuzzTables {
		for i := begin; i < len(acts); i++ {
			for _, look := range []string{"SELECT 1 FROM %s a, %[1]s b, %[1]s c, %[1]s d, %[1]s e, %[1]s f LIMIT 0", "SELECT * FROM %s LIMIT 0", "SELECT 1 FROM %s LIMIT 0", "SELECT a.* FROM %s a, %[1]s b LIMIT 0", "SELECT b.* FROM %s a, %[1]s b LIMIT 0"} {
				other := act{cmd: mysql.COM_QUERY, slot: otherClient, text: fmt.Sprintf(look, table.name)}
				lists = append(lists, slices.Insert(slices.Clone(acts), i, other))
			}
		}
	}
	return lists
}

// widened adds the hidden columns to the tables that the session begins with, as the proxy does. marks are the acts that do it.
func widened(acts []act) (out []act, marks []int) {
	flavor := map[bool]dialect.Flavor{false: dialect.MariaDB, true: dialect.MySQL}[testserver.IsMySQL()]
	for _, a := range acts {
		out = append(out, a)
		table, ok := strings.CutPrefix(a.text, "CREATE TABLE ")
		if name, _, _ := strings.Cut(table, " "); ok && slices.Contains(fuzzSetup(), a.text) {
			for _, sql := range dialect.AddColumns(flavor, &rewrite.Relation{RelationName: rewrite.RelationName{Schema: "DBNAME", Name: name}}) {
				marks = append(marks, len(out))
				out = append(out, act{cmd: mysql.COM_QUERY, text: strings.ReplaceAll(sql, "`DBNAME`", "DBNAME")})
			}
		}
	}
	return out, marks
}

// story prints a session with the answers that differ. brief leaves the others out.
func story(acts []act, direct, through []string, brief bool) string {
	var text strings.Builder
	for i := range min(len(direct), len(through)) {
		diff := cmp.Diff(direct[i], through[i])
		if diff != "" || !brief {
			fmt.Fprintf(&text, "%v\n", acts[i])
		}
		if diff != "" {
			fmt.Fprintf(&text, "directly (-), through the proxy (+):\n%s\n", diff)
		}
	}
	if len(direct) != len(through) {
		fmt.Fprintf(&text, "%d answers directly, %d through the proxy\n", len(direct), len(through))
	}
	return text.String()
}

// shorten leaves commands out of a session as long as it still fails.
func shorten(acts []act, fails func([]act) bool) []act {
	for size := max(1, len(acts)/2); ; size /= 2 {
		for i := 0; i+size <= len(acts); {
			if less := slices.Delete(slices.Clone(acts), i, i+size); fails(less) {
				acts = less
			} else {
				i += size
			}
		}
		if size <= 1 {
			return acts
		}
	}
}
