package mysqlwire_test

import (
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/google/go-cmp/cmp"

	"wirecheck/internal/testserver"
	"wirecheck/proxy"
)

// step is a command of the differential test.
type step struct {
	cmd    byte
	sql    string
	params []any // not nil: prepared, executed twice, closed
	cursor bool
}

// differential are the statements that must be answered alike, byte for byte.
func differential() []step {
	wide := ""
	for i := range 800 {
		wide += fmt.Sprintf(", c%d INT", i+1)
	}
	setup := []string{
		"SET timestamp=1700000000",
		"CREATE TABLE acc (id INT PRIMARY KEY, owner VARCHAR(20), v INT, ts TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, KEY (v)) STATS_AUTO_RECALC=0", // else InnoDB renews them when it likes, and plans differ
		"SHOW WARNINGS",
		"CREATE TABLE IF NOT EXISTS acc (x INT)", "SHOW WARNINGS", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count",
		"CREATE TABLE item (id INT AUTO_INCREMENT PRIMARY KEY, acc INT, name VARCHAR(10), b BLOB, UNIQUE (name)) STATS_AUTO_RECALC=0", "SELECT LAST_INSERT_ID(), ROW_COUNT(), FOUND_ROWS()",
		"CREATE TABLE plain (a INT, b VARCHAR(10)) ENGINE=MyISAM",
		"INSERT INTO acc (id, owner, v) VALUES (1,'ann',10),(2,'bob',20),(3,NULL,30),(4,'dan',NULL)",
		"INSERT INTO acc VALUES (5,'eve',50,DEFAULT)", "SELECT ROW_COUNT()", "INSERT INTO item (acc, name) VALUES (1,'a'),(1,'b'),(2,'c')", "SELECT LAST_INSERT_ID()",
		"INSERT INTO item VALUES (NULL,3,'d','blob')", "SELECT LAST_INSERT_ID(), ROW_COUNT()", "INSERT INTO plain VALUES (1,'x')",
		"INSERT INTO plain VALUES (2,'much too long for it')", "SHOW WARNINGS", "SELECT 1/0", "SHOW WARNINGS", "SHOW WARNINGS LIMIT 0", "SHOW ERRORS",
		"SHOW CREATE TABLE acc", "SHOW CREATE TABLE item", "DESCRIBE acc", "SHOW COLUMNS FROM acc", "SHOW FULL COLUMNS FROM acc",
		"SELECT COLUMN_NAME, ORDINAL_POSITION FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = 'acc' ORDER BY ORDINAL_POSITION",
		"CREATE PROCEDURE p() BEGIN SELECT * FROM acc; SELECT 2; UPDATE acc SET v = 1 WHERE id = 99; END",
		"CREATE FUNCTION f(x INT) RETURNS INT DETERMINISTIC RETURN x + 1",
		"CREATE VIEW vw AS SELECT id, v FROM acc",
		// What a generated column computes is refused only where the INSERT lists columns; a check's own errors show in any case, those of further columns do not.
		"CREATE TABLE made (a INT, b INT, g INT AS (b / a) STORED, wc_writers_of INT)", "INSERT INTO made VALUES (0,1,DEFAULT,1)", "SHOW WARNINGS", "INSERT INTO made (a,b,g) VALUES (0,2,DEFAULT)", "SHOW WARNINGS", "SELECT * FROM made",
		"SET sql_quote_show_create = 0", "SHOW CREATE TABLE made", "SET sql_quote_show_create = 1",
		"CREATE TABLE checked (a VARCHAR(9) CHECK (CHAR_LENGTH(a > 2) > 0), b INT, c INT)", "INSERT INTO checked VALUES ('x',1,1)", "SHOW WARNINGS", "INSERT INTO checked VALUES ('1','x','y')", "SHOW WARNINGS",
		"INSERT INTO checked VALUES ('1','x','y')", "GET DIAGNOSTICS CONDITION 1 @m = MESSAGE_TEXT, @e = MYSQL_ERRNO", "SELECT @m, @e", "INSERT INTO checked SELECT '1', 1 / a, b FROM made", "SHOW WARNINGS",
		"CREATE TABLE wide (c0 INT" + wide + ")", "PREPARE wide FROM 'SELECT * FROM wide'", "EXECUTE wide", "DEALLOCATE PREPARE wide", // more definitions than a buffer holds
	}
	var steps []step
	add := func(sqls ...string) {
		for _, sql := range sqls {
			steps = append(steps, step{cmd: mysql.COM_QUERY, sql: sql})
		}
	}
	add(setup...)
	selects := []string{
		"SELECT * FROM acc", "SELECT id, v FROM acc WHERE id = 1", "SELECT a.*, i.name FROM acc a JOIN item i ON i.acc = a.id ORDER BY a.id, i.id",
		"SELECT a.id, i.id FROM acc a LEFT JOIN item i ON i.acc = a.id ORDER BY 1, 2", "SELECT v + 1, UPPER(owner) FROM acc ORDER BY id DESC LIMIT 2",
		"SELECT COUNT(*), SUM(v) FROM acc", "SELECT acc, COUNT(*) FROM item GROUP BY acc", "SELECT DISTINCT acc FROM item", "SELECT v FROM acc UNION SELECT id FROM item",
		"SELECT * FROM acc WHERE id IN (SELECT acc FROM item)", "SELECT id FROM acc WHERE v > 15 FOR UPDATE", "SELECT v FROM acc WHERE v > 15 LOCK IN SHARE MODE",
		"SELECT * FROM acc NATURAL JOIN item", "SELECT * FROM acc JOIN item USING (id)", "WITH c AS (SELECT * FROM acc) SELECT * FROM c", "SELECT * FROM vw",
		"SELECT f(v) FROM acc", "SELECT id, ROW_NUMBER() OVER (ORDER BY v, id) FROM acc ORDER BY id", "SELECT SQL_CALC_FOUND_ROWS id FROM acc LIMIT 1", "SELECT FOUND_ROWS()",
		"SELECT * FROM (SELECT id, v FROM acc) d", "SELECT 1", "SELECT NULL", "SELECT 1 FROM acc WHERE FALSE", "SELECT a.id FROM acc a, acc b WHERE a.id = b.id",
		"SELECT nothing FROM acc", "SELECT * FROM missing", "SELEC 1", "", "  ", "-- only a comment", "SELECT * FROM acc /* c */ WHERE id = 2 -- end", "SELECT id AS `wc x` FROM acc",
		"SELECT (SELECT MAX(v) FROM acc)", "SELECT EXISTS(SELECT 1 FROM acc)", "TABLE acc", "VALUES (1,2)", "SELECT * FROM item", "SELECT * FROM plain", "SHOW TABLES", "EXPLAIN SELECT 1",
		"SELECT @@autocommit, @@tx_isolation", "SELECT * FROM acc PROCEDURE ANALYSE()", "HANDLER acc OPEN", "HANDLER acc READ FIRST", "HANDLER acc READ NEXT LIMIT 3", "HANDLER acc CLOSE", "HANDLER acc READ FIRST",
		"HANDLER item OPEN i", "HANDLER i READ `PRIMARY` >= (1)", "HANDLER i CLOSE", "SELECT v INTO @x FROM acc WHERE id = 1", "SELECT @x",
	}
	writes := []string{
		"SELECT 1", "UPDATE acc SET v = 20 + ROW_COUNT() WHERE id = 2", "INSERT INTO item (acc, name) VALUES (ROW_COUNT(), 'rc')", "DELETE FROM item WHERE name = 'rc' AND acc <=> ROW_COUNT()",
		"UPDATE acc SET v = 11 WHERE id = 1", "SELECT ROW_COUNT()", "UPDATE acc SET v = 11 WHERE id = 1", "SELECT ROW_COUNT(), FOUND_ROWS()", "UPDATE acc SET v = v + 1",
		"SELECT * FROM acc", "UPDATE acc SET v = 1 WHERE id = 77", "UPDATE acc a JOIN item i ON i.acc = a.id SET a.v = 5", "INSERT INTO item (acc, name) VALUES (9,'z') ON DUPLICATE KEY UPDATE acc = 9",
		"SELECT LAST_INSERT_ID(), ROW_COUNT()", "INSERT INTO item (acc, name) VALUES (9,'z') ON DUPLICATE KEY UPDATE acc = 10", "SELECT LAST_INSERT_ID(), ROW_COUNT()",
		"INSERT IGNORE INTO item (acc, name) VALUES (9,'z')", "SHOW WARNINGS", "SELECT @@warning_count", "INSERT INTO item (acc, name) VALUES (9,'z')", "SHOW WARNINGS", "SHOW ERRORS",
		"REPLACE INTO item (acc, name) VALUES (12,'z')", "SELECT ROW_COUNT()", "DELETE FROM item WHERE name = 'z'", "SELECT ROW_COUNT()", "INSERT INTO item (acc, name) SELECT v, owner FROM acc WHERE id = 2",
		"INSERT INTO item (acc, name) VALUES (1,'r') RETURNING id, name", "DELETE FROM item WHERE name = 'r' RETURNING *", "SELECT ROW_COUNT()", "UPDATE acc SET v = 'abc' WHERE id = 1", "SHOW WARNINGS",
		"UPDATE acc SET ts = '2001-01-01' WHERE id = 2", "SELECT * FROM acc", "DELETE i FROM item i JOIN acc a ON a.id = i.acc WHERE a.id = 2", "SELECT * FROM item", "TRUNCATE plain", "DO 1", "SET @y = 3",
		"INSERT INTO acc (id, v) VALUES (6, 1), (1, 2)", "SELECT ROW_COUNT()", "SELECT COUNT(*) FROM acc", "UPDATE acc SET id = 60 WHERE id = 5", "UPDATE acc SET v = (SELECT MAX(id) FROM item) WHERE id = 1",
		"LOAD DATA LOCAL INFILE 'x' INTO TABLE plain", "SELECT * FROM plain", "CALL p()", "CALL p(); SELECT 7", "SELECT 1; SELECT 2; SELECT v FROM acc WHERE id = 1", "UPDATE acc SET v = 3 WHERE id = 1; SELECT * FROM acc",
		"SELECT * FROM acc; SELECT broken FROM acc; SELECT 3", "EXECUTE IMMEDIATE 'SELECT 1'", "BEGIN NOT ATOMIC SELECT 1; SELECT 2; END", "PREPARE st FROM 'SELECT v FROM acc WHERE id = ?'", "EXECUTE st USING @y", "DEALLOCATE PREPARE st",
	}
	if testserver.IsMySQL() {
		writes = append(writes, deprecated...)
	}
	add(selects...)
	add(writes...)
	add("BEGIN")
	add(selects...)
	add("SAVEPOINT s1")
	add(writes[:40]...)
	add("ROLLBACK TO s1", "COMMIT", "SELECT ROW_COUNT(), FOUND_ROWS()", "BEGIN", "SELECT * FROM acc", "UPDATE acc SET v = 8 WHERE id = 2", "COMMIT", "SELECT FOUND_ROWS()",
		"START TRANSACTION", "UPDATE acc SET v = 9 WHERE id = 2", "ROLLBACK", "SELECT v FROM acc WHERE id = 2",
		"SET autocommit=0", "SELECT v FROM acc WHERE id = 2", "UPDATE acc SET v = 9 WHERE id = 2", "SELECT ROW_COUNT()", "COMMIT", "CREATE TABLE later (a INT PRIMARY KEY)", "INSERT INTO later VALUES (1)", "SELECT * FROM later",
		"ALTER TABLE later ADD b INT", "SELECT * FROM later", "SHOW CREATE TABLE later", "RENAME TABLE later TO latest", "SELECT * FROM latest", "DROP TABLE latest", "SET autocommit=1",
		"SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM acc WHERE id = 1", "SET SESSION TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SELECT v FROM acc WHERE v > 0",
		"BEGIN", "SELECT v FROM acc WHERE v > 0", "UPDATE acc SET v = v + 1 WHERE id = 2", "COMMIT", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"KILL QUERY 0", "USE information_schema", "SELECT COUNT(*) > 0 FROM COLUMNS WHERE 0", "SELECT DATABASE()", "SET sql_mode='ANSI_QUOTES'", `SELECT "x" FROM nowhere`, "SET sql_mode=''", "USE DBNAME",
		"CREATE TEMPORARY TABLE test.tmp (a INT)", "XA START 'x'", "XA END 'x'", "XA ROLLBACK 'x'")
	steps = append(steps, step{cmd: mysql.COM_PING}, step{cmd: mysql.COM_SET_OPTION, sql: "\x01\x00"}, step{cmd: mysql.COM_QUERY, sql: "SELECT 1; SELECT 2"},
		step{cmd: mysql.COM_SET_OPTION, sql: "\x00\x00"}, step{cmd: 0x1f}, step{cmd: mysql.COM_QUERY, sql: "SET timestamp=1700000000"})
	for _, sql := range selects {
		steps = append(steps, step{sql: sql, params: []any{}}, step{sql: sql, params: []any{}, cursor: true})
	}
	for _, sql := range writes { // without a cursor: MariaDB 10.11.19 crashes at DELETE ... RETURNING with one
		steps = append(steps, step{sql: sql, params: []any{}})
	}
	for _, id := range []any{1, nil, "2"} {
		steps = append(steps,
			step{sql: "SELECT * FROM acc WHERE id = ?", params: []any{id}}, step{sql: "SELECT a.*, ? FROM acc a WHERE id = ?", params: []any{"x", id}},
			step{sql: "UPDATE acc SET v = ?, owner = ? WHERE id = ?", params: []any{100, "o", id}}, step{sql: "INSERT INTO item (acc, name) VALUES (?, ?)", params: []any{id, fmt.Sprint("n", id)}},
			step{sql: "DELETE FROM item WHERE acc = ?", params: []any{id}}, step{sql: "SELECT ROW_COUNT()", params: []any{}})
	}
	steps = append(steps, step{cmd: mysql.COM_FIELD_LIST, sql: "acc\x00"}, step{cmd: mysql.COM_FIELD_LIST, sql: "missing\x00"})
	add("DROP TABLE acc, item, plain, made, checked, wide", "DROP VIEW vw", "DROP PROCEDURE p", "DROP FUNCTION f")
	return steps
}

// statementID is a statement's number in an error message: the server counts those of all sessions.
var statementID = regexp.MustCompile(`statement \(\d+\)`)

// runSteps executes the steps and returns what came back, statement ids and the like left away.
func runSteps(t *testing.T, d testserver.Database, caps uint64, steps []step) []string {
	t.Helper()
	c := dialRaw(t, d, caps)
	var out []string
	for i, st := range steps {
		if testserver.IsMySQL() && st.cursor && strings.HasPrefix(st.sql, "EXPLAIN") {
			continue // MySQL 9.7.4 crashes when its rows are fetched
		}
		st.sql = strings.ReplaceAll(st.sql, "DBNAME", d.Name)
		head := fmt.Sprintf("%d %d %s %v\n", i, st.cmd, st.sql, st.params)
		c.about = head
		if st.params == nil {
			out = append(out, head+c.do(st.cmd, []byte(st.sql)).String())
			continue
		}
		r := c.do(mysql.COM_STMT_PREPARE, []byte(st.sql))
		if r.packets[0][0] != 0 {
			out = append(out, head+r.String())
			continue
		}
		id := binary.LittleEndian.Uint32(r.packets[0][1:])
		binary.LittleEndian.PutUint32(r.packets[0][1:], 0) // it counts our own prepared statements too
		text := head + r.String()
		flags := byte(0)
		if st.cursor {
			flags = 1
		}
		for range 2 {
			c.cursor = st.cursor && !strings.HasPrefix(st.sql, "CALL")
			r := c.do(mysql.COM_STMT_EXECUTE, executeArg(id, flags, st.params))
			c.cursor = false
			text += r.String()
			if p := r.last(); st.cursor && p[0] == 0xfe && (len(p) < 9 && p[3]&0x40 != 0 || len(p) >= 7 && caps&uint64(mysql.CLIENT_DEPRECATE_EOF) != 0 && p[3]&0x40 != 0) {
				for range 3 {
					text += "fetch\n" + c.do(mysql.COM_STMT_FETCH, binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, id), 2)).String()
				}
			}
		}
		c.write(0, binary.LittleEndian.AppendUint32([]byte{mysql.COM_STMT_CLOSE}, id))
		out = append(out, statementID.ReplaceAllString(text, "statement (N)"))
	}
	return out
}

func TestDifferential(t *testing.T) {
	d := testserver.Family(t).Database(t)
	d.Exec(t, "CREATE TABLE seen (id INT PRIMARY KEY)")
	for name, caps := range map[string]uint64{
		"plain":         baseCaps,
		"deprecate EOF": baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF),
		"session track": baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF|mysql.CLIENT_SESSION_TRACK|mysql.CLIENT_FOUND_ROWS),
		"mariadb":       (baseCaps | uint64(mysql.CLIENT_DEPRECATE_EOF) | 1<<34 | 1<<35 | 1<<36) &^ 1,
	} {
		if name == "mariadb" && (testserver.IsMySQL() || testserver.IsTiDB()) {
			continue // it has no such capabilities
		}
		t.Run(name, func(t *testing.T) {
			steps := differential()
			t.Logf("directly at %s", d.Address())
			want := runSteps(t, d, caps, steps)
			got := runSteps(t, startProxy(t, d, proxy.Config{Mode: proxy.Observe}, observer(&sink{})), caps, steps)
			for i := range min(len(want), len(got)) {
				if diff := cmp.Diff(want[i], got[i]); diff != "" {
					t.Errorf("direct (-), through the proxy (+):\n%s", diff)
				}
			}
		})
	}
}
