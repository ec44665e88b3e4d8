package mysqlwire_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// dice makes random statements over the tables of fuzzSetup.
type dice struct {
	*rand.Rand
	prepared bool // ? may stand for a value
	params   int  // how many do
	aliases  int
	mysql    bool
	tidb     bool
}

// fuzzSetup makes the tables. Every clock stands still.
func fuzzSetup() []string {
	return []string{
		"SET timestamp=1700000000",
		"CREATE TABLE t0 (id INT PRIMARY KEY, a INT, b VARCHAR(10), c DECIMAL(8,2), KEY (a), KEY ba (b, a)) STATS_AUTO_RECALC=0",
		"CREATE TABLE t1 (id INT AUTO_INCREMENT PRIMARY KEY, r INT NOT NULL DEFAULT 0, d DATE, e DOUBLE, u VARCHAR(5), UNIQUE KEY (u), KEY (r)) STATS_AUTO_RECALC=0",
		"CREATE TABLE t2 (k VARCHAR(4), n BIGINT, f TEXT, g ENUM('x','y','z') NOT NULL DEFAULT 'x', w TIMESTAMP DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (k, n)) STATS_AUTO_RECALC=0",
		"CREATE TABLE t3 (x INT, y BIT(4), z FLOAT, s INT AS (x+1) VIRTUAL) STATS_AUTO_RECALC=0",
		"CREATE VIEW v0 AS SELECT id, a, b FROM t0 WHERE a > 0",
		"INSERT INTO t0 VALUES (1,10,'ann',1.5),(2,20,'bob',NULL),(3,10,NULL,-2),(4,NULL,'a',0),(5,0,'A',99.99)",
		"INSERT INTO t1 (r,d,e,u) VALUES (1,'2020-01-01',0.5,'a'),(2,NULL,-0.0,'b'),(1,'1999-12-31',1e10,'c'),(9,'2020-01-01',NULL,NULL)",
		"INSERT INTO t2 (k,n,f,g) VALUES ('a',1,'text','x'),('a',2,NULL,'y'),('b',-5,'','z'),('c',0,REPEAT('long',100),'x')",
		"INSERT INTO t3 (x,y,z) VALUES (1,b'101',0.1),(1,b'101',0.1),(2,NULL,NULL),(NULL,b'0',1e5)",
		// MariaDB renews the statistics of a table's indexes, which all plans share, whenever it opens the table once more: so it does that now, and not when a
		// subquery of ours does.
		"ANALYZE TABLE t0, t1, t2, t3", "SELECT 1 FROM t0 a, t0 b, t0 c, t0 d LIMIT 0", "SELECT 1 FROM t1 a, t1 b, t1 c, t1 d LIMIT 0", "SELECT 1 FROM t2 a, t2 b, t2 c, t2 d LIMIT 0", "SELECT 1 FROM t3 a, t3 b, t3 c, t3 d LIMIT 0",
	}
}

type fuzzTable struct {
	name    string
	columns []string
	key     string
}

var fuzzTables = []fuzzTable{
	{"t0", []string{"id", "a", "b", "c"}, "id"},
	{"t1", []string{"id", "r", "d", "e", "u"}, "id"},
	{"t2", []string{"k", "n", "f", "g", "w"}, "k,n"},
	{"t3", []string{"x", "y", "z", "s"}, ""},
	{"v0", []string{"id", "a", "b"}, "id"},
}

func (g *dice) one(list ...string) string { return list[g.IntN(len(list))] }

func (g *dice) chance(percent int) bool { return g.IntN(100) < percent }

func (g *dice) table() fuzzTable { return fuzzTables[g.IntN(len(fuzzTables))] }

// base gives a table that may be written, mostly.
func (g *dice) base() fuzzTable {
	if g.chance(4) {
		return g.table()
	}
	return fuzzTables[g.IntN(4)]
}

// scope is what an expression may name.
type scope struct {
	columns []string
	depth   int
}

func scopeOf(t fuzzTable, alias string) (s scope) {
	for _, c := range t.columns {
		if alias != "" {
			c = alias + "." + c
		}
		s.columns = append(s.columns, c)
	}
	return s
}

func (g *dice) literal() string {
	if g.prepared && g.chance(30) {
		g.params++
		return "?"
	}
	return g.one("0", "1", "2", "3", "10", "-1", "NULL", "'a'", "'bob'", "'A'", "''", "1.5", "0.1e1", "TRUE", "'2020-01-01'", "'it''s'", "x'41'", "b'1'", "99999999999", "'long text that fits nowhere'", "@u", "@v")
}

func (g *dice) column(s scope) string {
	if len(s.columns) == 0 || g.chance(1) {
		return g.one("nothing", "id", "a")
	}
	return s.columns[g.IntN(len(s.columns))]
}

func (g *dice) expr(s scope) string {
	s.depth++
	if s.depth > 3 || g.chance(25) {
		if g.chance(60) {
			return g.column(s)
		}
		return g.literal()
	}
	e := func() string { return g.expr(s) }
	switch g.IntN(20) {
	case 0, 1, 2:
		return e() + g.one("+", "-", "*", "/", " DIV ", "%", "|", " XOR ") + e()
	case 3:
		return "(" + e() + ")"
	case 4, 5:
		return g.one("IFNULL", "NULLIF", "CONCAT", "GREATEST", "MOD") + "(" + e() + ", " + e() + ")"
	case 6, 7:
		return g.one("UPPER", "LENGTH", "ABS", "ISNULL", "HEX", "-", "NOT ", "BINARY ", "DATE", "ROUND") + "(" + e() + ")"
	case 8:
		return "CASE WHEN " + g.cond(s) + " THEN " + e() + " ELSE " + e() + " END"
	case 9:
		return "IF(" + g.cond(s) + ", " + e() + ", " + e() + ")"
	case 10:
		return "CAST(" + e() + " AS " + g.one("SIGNED", "CHAR", "CHAR(3)", "DECIMAL(5,1)", "DATE", "BINARY") + ")"
	case 11:
		return "(" + g.subquery(s, 1) + ")"
	case 12:
		return g.cond(s)
	case 13:
		return g.one("@u := ", "@v := ") + e()
	case 14:
		return g.one("RAND(3)", "NOW()", "CURDATE()", "DATABASE()", "PI()", "COALESCE(NULL, 1)", "SUBSTR('abc', 2)", "FOUND_ROWS()", "LAST_INSERT_ID()")
	case 15:
		return "DATE_ADD(" + e() + ", INTERVAL " + g.one("1", "-1") + " " + g.one("DAY", "MONTH") + ")"
	}
	return g.column(s)
}

func (g *dice) cond(s scope) string {
	s.depth++
	if s.depth > 4 {
		return g.column(s) + g.one(" = ", " < ", " > ") + g.literal()
	}
	switch g.IntN(14) {
	case 0, 1, 2, 3:
		return g.column(s) + g.one("=", "<", ">", "<=>", "<>", " >= ") + g.literal()
	case 4:
		return g.expr(s) + g.one("=", "<", ">") + g.expr(s)
	case 5:
		return g.cond(s) + g.one(" AND ", " OR ") + g.cond(s)
	case 6:
		return g.column(s) + g.one(" IN (", " NOT IN (") + g.literal() + ", " + g.literal() + ")"
	case 7:
		return g.column(s) + " BETWEEN " + g.literal() + " AND " + g.literal()
	case 8:
		return g.column(s) + " IS " + g.one("", "NOT ") + "NULL"
	case 9:
		return g.column(s) + " LIKE " + g.one("'a%'", "'%b%'", "'_'", g.literal())
	case 10:
		return g.one("", "NOT ") + "EXISTS (" + g.subquery(s, 1) + ")"
	case 11:
		return g.column(s) + g.one(" IN (", " = ANY (", " = (") + g.subquery(s, 1) + ")"
	case 12:
		return "(" + g.cond(s) + ")"
	}
	return g.one("1", "0", "1 < 2", "NULL", "TRUE", "1/0", "1 = 1")
}

func (g *dice) subquery(outer scope, width int) string {
	t := g.table()
	s := scopeOf(t, "")
	if g.chance(30) {
		s.columns = append(s.columns, outer.columns...)
	}
	s.depth = outer.depth + 1
	list := g.column(s)
	if g.chance(30) {
		list = g.one("MAX", "MIN", "COUNT", "SUM") + "(" + list + ")"
	}
	for range width - 1 {
		list += ", " + g.column(s)
	}
	q := "SELECT " + list + " FROM " + t.name
	if g.chance(60) {
		q += " WHERE " + g.cond(s)
	}
	if g.chance(20) {
		q += " ORDER BY 1 LIMIT 1"
	}
	return q
}

// from makes a FROM clause with what it puts in scope and the columns that order its rows wholly; empty: none do.
func (g *dice) from() (text string, s scope, order string) {
	t := g.table()
	if g.chance(60) {
		alias := ""
		text = t.name
		if g.chance(30) {
			alias = g.one("p", "q", "`p q`")
			text += g.one(" ", " AS ") + alias
		}
		return text, scopeOf(t, alias), t.key
	}
	if g.chance(15) {
		return "(" + g.subquery(scope{}, 1) + ") d", scope{}, ""
	}
	u := g.table()
	s = scopeOf(t, "p")
	right := scopeOf(u, "q")
	on := s.columns[g.IntN(len(s.columns))] + " = " + right.columns[g.IntN(len(right.columns))]
	s.columns = append(s.columns, right.columns...)
	if t.key != "" && u.key != "" {
		order = "p." + strings.ReplaceAll(t.key, ",", ",p.") + ",q." + strings.ReplaceAll(u.key, ",", ",q.")
	}
	switch g.IntN(8) {
	case 0:
		return t.name + " p, " + u.name + " q", s, order
	case 1:
		return t.name + " p NATURAL JOIN " + u.name + " q", s, order
	case 2:
		return t.name + " p JOIN " + u.name + " q USING (id)", s, order
	case 3, 4:
		return t.name + " p LEFT JOIN " + u.name + " q ON " + on, s, order
	case 5:
		return t.name + " p RIGHT JOIN " + u.name + " q ON " + on, s, order
	}
	return t.name + " p JOIN " + u.name + " q ON " + on, s, order
}

func (g *dice) selectOf() string {
	from, s, order := g.from()
	if len(s.columns) == 0 {
		return "SELECT * FROM " + from
	}
	var list []string
	grouped := g.chance(25)
	switch {
	case grouped:
		for range 1 + g.IntN(2) {
			list = append(list, g.one("COUNT(*)", "SUM(", "MIN(", "MAX(", "AVG(", "GROUP_CONCAT(DISTINCT ", "COUNT(DISTINCT ", "BIT_OR("))
			if last := len(list) - 1; list[last] != "COUNT(*)" {
				list[last] += g.column(s) + ")"
			}
		}
	case g.chance(40):
		list = []string{"*"}
	}
	if !grouped {
		for range g.IntN(3) {
			e := g.expr(s)
			if g.chance(20) {
				e += g.one(" AS x1", " y1", " AS `a b`")
			}
			list = append(list, e)
		}
	}
	if len(list) == 0 {
		list = []string{g.column(s)}
	}
	by := ""
	if grouped && g.chance(60) {
		by = g.column(s)
		list = append([]string{by}, list...)
	}
	q := "SELECT " + g.one("", "", "", "", "", "", "DISTINCT ", "SQL_CALC_FOUND_ROWS ", "STRAIGHT_JOIN ", "SQL_NO_CACHE ", "ALL ") + strings.Join(list, ", ") + " FROM " + from
	if g.chance(60) {
		q += " WHERE " + g.cond(s)
	}
	if by != "" {
		q += " GROUP BY " + g.one(by, by, "1", fmt.Sprint(g.IntN(5)))
		if g.chance(10) {
			q += " WITH ROLLUP"
		}
	}
	if g.chance(8) {
		q += " HAVING " + g.one("1 < 2", "COUNT(*) > 1", g.cond(s), "0")
	}
	whole := false
	switch g.IntN(10) {
	case 0, 1:
		q += " ORDER BY " + g.one("1", "2", "3", "5", "(2)", "1, 2", g.expr(s)) + g.one("", " DESC")
	case 2, 3, 4, 5:
		if order != "" && !grouped {
			q, whole = q+" ORDER BY "+order+g.one("", " DESC"), true
		}
	}
	if whole && g.chance(40) || g.chance(2) {
		q += g.one(" LIMIT 0", " LIMIT 1", " LIMIT 2", " LIMIT 1, 2", " LIMIT 2 OFFSET 1")
	}
	if g.chance(8) {
		q += g.one(" FOR UPDATE", " LOCK IN SHARE MODE")
	}
	return q
}

func (g *dice) query() string {
	switch g.IntN(20) {
	case 0:
		return g.subquery(scope{}, 1) + g.one(" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ") + g.subquery(scope{}, 1+g.IntN(8)/7)
	case 1:
		return "WITH c AS (" + g.selectOf() + ") SELECT * FROM c"
	case 2:
		return "SELECT " + g.expr(scope{})
	case 3:
		return "SELECT * FROM (" + g.selectOf() + ") d"
	case 4:
		return "(" + g.selectOf() + ")"
	}
	return g.selectOf()
}

func (g *dice) assignments(t fuzzTable, values bool) string {
	s := scopeOf(t, "")
	var list []string
	for range 1 + g.IntN(2) {
		c := t.columns[g.IntN(len(t.columns))]
		e := g.expr(s)
		switch g.IntN(6) {
		case 0:
			e = "DEFAULT"
		case 1:
			e = c
		case 2:
			if values {
				e = "VALUES(" + c + ")"
			}
		case 3:
			e = c + " + 1"
		}
		list = append(list, c+g.one("=", " = ")+e)
	}
	return strings.Join(list, ", ")
}

func (g *dice) insert() string {
	t := g.base()
	verb := g.one("INSERT INTO ", "INSERT INTO ", "INSERT INTO ", "INSERT IGNORE INTO ", "REPLACE INTO ", "REPLACE ", "INSERT ")
	q := verb + t.name
	columns := t.columns
	if g.chance(70) {
		columns = nil
		for _, c := range t.columns {
			if g.chance(70) {
				columns = append(columns, c)
			}
		}
		q += " (" + strings.Join(columns, ", ") + ")"
	}
	switch g.IntN(10) {
	case 0:
		return verb + t.name + " SET " + g.assignments(t, false)
	case 1, 2:
		q += " " + g.subquery(scope{}, max(1, len(columns)))
	default:
		var rows []string
		for range 1 + g.IntN(3) {
			var row []string
			for range columns {
				row = append(row, g.one("DEFAULT", fmt.Sprint(g.IntN(12)), g.literal(), g.literal(), g.expr(scope{depth: 1})))
			}
			if g.chance(2) {
				row = append(row, "1")
			}
			rows = append(rows, "("+strings.Join(row, ", ")+")")
		}
		q += g.one(" VALUES ", " VALUE ", "VALUES") + strings.Join(rows, ", ")
	}
	if !strings.HasPrefix(verb, "REPLACE") && g.chance(30) {
		q += " ON DUPLICATE KEY UPDATE " + g.assignments(t, true)
	}
	return q + g.returning(10)
}

func (g *dice) returning(percent int) string {
	if g.mysql || g.tidb || !g.chance(percent) {
		return ""
	}
	return " RETURNING " + g.one("*", "1", "id", "x + 1")
}

func (g *dice) update() string {
	t := g.base()
	s := scopeOf(t, "")
	if g.chance(8) {
		return "UPDATE t0 p JOIN t1 q ON p.id = q.r SET p.a = " + g.literal() + ", q.e = p.a WHERE " + g.one("p.id = 1", "q.id < 3", "1")
	}
	q := "UPDATE " + g.one("", "", "", "IGNORE ", "LOW_PRIORITY ") + t.name + " SET " + g.assignments(t, false)
	if g.chance(80) {
		q += " WHERE " + g.cond(s)
	}
	if t.key != "" && g.chance(20) {
		q += " ORDER BY " + t.key + g.one("", " LIMIT 1", " LIMIT 2", " LIMIT 0")
	}
	return q
}

func (g *dice) deletion() string {
	t := g.base()
	switch g.IntN(10) {
	case 0:
		return "DELETE p FROM t0 p JOIN t1 q ON p.id = q.r WHERE " + g.one("q.id = 1", "p.a > 10", "0")
	case 1:
		return "TRUNCATE TABLE " + t.name
	}
	q := "DELETE " + g.one("", "", "", "QUICK ", "IGNORE ") + "FROM " + t.name
	if g.chance(90) {
		q += " WHERE " + g.cond(scopeOf(t, ""))
	}
	if t.key != "" && g.chance(15) {
		q += " ORDER BY " + t.key + g.one("", " LIMIT 1", " LIMIT 0")
	}
	return q + g.returning(15)
}

func (g *dice) ddl() string {
	t := g.base().name
	return g.one(
		"CREATE TABLE n0 (id INT PRIMARY KEY, v INT)", "CREATE TABLE IF NOT EXISTS n0 (id INT)", "CREATE TABLE n1 AS "+g.selectOf(), "CREATE TABLE n2 LIKE "+t,
		"INSERT INTO n0 VALUES (1, 2), (2, 3)", "SELECT * FROM n0", "SELECT * FROM n1", "SELECT * FROM n2", "UPDATE n0 SET v = v + 1", "DROP TABLE n0", "DROP TABLE IF EXISTS n1, n2",
		"ALTER TABLE "+t+" ADD COLUMN extra INT DEFAULT 3", "ALTER TABLE "+t+" DROP COLUMN extra", "ALTER TABLE t0 ADD INDEX i0 (c)", "ALTER TABLE t0 DROP INDEX i0",
		"CREATE OR REPLACE VIEW v1 AS "+g.selectOf(), "SELECT * FROM v1", "RENAME TABLE n0 TO n3", "CREATE TEMPORARY TABLE t3 (x INT, q INT)", "CREATE TEMPORARY TABLE tmp (x INT)", "INSERT INTO tmp VALUES (1)",
		"SELECT * FROM tmp", "DROP TEMPORARY TABLE IF EXISTS t3", "ALTER TABLE n0 MODIFY v BIGINT", "CREATE INDEX i1 ON n0 (v)",
		"CREATE PROCEDURE p0() BEGIN SELECT 1; "+g.selectOf()+"; "+g.update()+"; END", "CALL p0()", "DROP PROCEDURE IF EXISTS p0",
		"CREATE TRIGGER g0 BEFORE UPDATE ON t1 FOR EACH ROW SET NEW.e = 7", "DROP TRIGGER IF EXISTS g0", "CREATE FUNCTION f0(x INT) RETURNS INT DETERMINISTIC RETURN x + 1", "SELECT f0(id) FROM t0",
	)
}

func (g *dice) control() string {
	return g.one("BEGIN", "START TRANSACTION", "COMMIT", "ROLLBACK", "SAVEPOINT s1", "ROLLBACK TO s1", "RELEASE SAVEPOINT s1", "SET autocommit=0", "SET autocommit=1", "COMMIT AND CHAIN",
		"START TRANSACTION READ ONLY", "START TRANSACTION WITH CONSISTENT SNAPSHOT", "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", "ROLLBACK TO nothing")
}

func (g *dice) session() string {
	t := g.table().name
	return g.one("SHOW WARNINGS", "SHOW ERRORS", "SHOW COUNT(*) WARNINGS", "SELECT @@warning_count", "SELECT @@warning_count, @@error_count", "SELECT ROW_COUNT()", "SELECT FOUND_ROWS()", "SELECT LAST_INSERT_ID()",
		"SELECT ROW_COUNT(), FOUND_ROWS(), LAST_INSERT_ID()", "SELECT @u, @v", "SET @u = 5", "SET @v = 'x', @u = @u + 1", "SHOW WARNINGS LIMIT 1",
		"SET sql_mode=''", "SET sql_mode='STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'", "SET sql_mode='ANSI_QUOTES'", "SET sql_mode='ONLY_FULL_GROUP_BY'", "SET sql_mode=DEFAULT", "SET sql_mode='PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES'", "SET sql_mode='TRADITIONAL'",
		"SHOW COLUMNS FROM "+t, "SHOW FULL COLUMNS FROM "+t, "DESCRIBE "+t, "DESC "+t+" id", "SHOW CREATE TABLE "+t, "SHOW TABLES", "SHOW COLUMNS FROM "+t+" LIKE '%i%'",
		"SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.columns WHERE TABLE_SCHEMA=DATABASE() ORDER BY 1, ORDINAL_POSITION LIMIT 5",
		"SELECT COUNT(*) FROM information_schema.columns WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME='"+t+"'",
		"DO 1", "DO "+g.expr(scope{}), "SET @u = ("+g.subquery(scope{}, 1)+")", "SELECT a, b INTO @u, @v FROM t0 WHERE id = 1", "HANDLER "+t+" OPEN", "HANDLER "+t+" READ FIRST LIMIT 2", "HANDLER "+t+" CLOSE",
		"PREPARE st FROM '"+strings.ReplaceAll(g.query(), "'", "''")+"'", "PREPARE st FROM 'SHOW COLUMNS FROM "+t+"'", "EXECUTE st", "EXECUTE st", "EXECUTE st USING @u", "DEALLOCATE PREPARE st", "EXECUTE IMMEDIATE 'SELECT * FROM t0'",
		"SET sql_select_limit=20", "SET sql_select_limit=DEFAULT", "SET NAMES latin1", "SET NAMES utf8mb4", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t3 (x, z)", "LOAD DATA LOCAL INFILE 'x' INTO TABLE t0 (id, b)", "USE information_schema", "USE DBNAME",
		"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='mine'", "GET DIAGNOSTICS @u = ROW_COUNT", "TABLE t0", "VALUES (1,2)", "SET max_error_count=0", "SET max_error_count=DEFAULT", "SET group_concat_max_len=10", "SET group_concat_max_len=DEFAULT")
}

// statement makes one statement, sometimes a wrong one.
func (g *dice) statement() string {
	var q string
	switch n := g.IntN(100); {
	case n < 38:
		q = g.query()
	case n < 52:
		q = g.insert()
	case n < 64:
		q = g.update()
	case n < 71:
		q = g.deletion()
	case n < 77:
		q = g.ddl()
	case n < 85:
		q = g.control()
	default:
		q = g.session()
	}
	if g.chance(4) {
		q = g.mangle(q)
	}
	return q
}

// mangle makes a statement that is wrong, mostly.
func (g *dice) mangle(q string) string {
	words := strings.Split(q, " ")
	i := g.IntN(len(words))
	switch g.IntN(5) {
	case 0:
		words = append(words[:i:i], words[i+1:]...)
	case 1:
		words[i] = g.one("nothing", "ORDR", ")", "(", "'", "`", "/*", "--", "\\", "\x00", "1", "é")
	case 2:
		return q[:g.IntN(len(q)+1)]
	case 3:
		return q + g.one(";", " ;;", " -- end", " # end", " /* end */", ")", " extra words", "\n\nFROM", " LIMIT", ", 1")
	default:
		words = append(words[:i:i], append([]string{g.one("/* c */", "\n", "NOT", "AS", ",", "DISTINCT", "/*!99999 x */", "/*!40000 1 */")}, words[i:]...)...)
	}
	return strings.Join(words, " ")
}

// text makes the text of one COM_QUERY.
func (g *dice) text() string {
	q := g.statement()
	for g.chance(6) {
		q += g.one(";", "; ", ";\n") + g.statement()
	}
	return q
}
