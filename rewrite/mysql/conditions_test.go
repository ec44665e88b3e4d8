package mysql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/statement/condition"
)

// conditionValues are values of the columns of a table: the column, its type and the values as literals.
var conditionValues = []struct {
	name, typ string
	values    []string
}{
	{"i", "INT", []string{"0", "1", "-3", "7", "NULL"}},
	{"j", "BIGINT", []string{"0", "2", "7", "NULL"}},
	{"u", "INT UNSIGNED", []string{"0", "5", "NULL"}},
	{"m", "DECIMAL(10,2)", []string{"0", "1.50", "-0.5", "100", "NULL"}},
	{"t", "VARCHAR(20)", []string{"''", "'ann'", "'Ann'", "'ann '", "'a%n'", "'ß'", "NULL"}},
	{"tb", "VARCHAR(20) COLLATE utf8mb4_bin", oddTexts},
	{"tl", "VARCHAR(20) CHARACTER SET latin1 COLLATE latin1_swedish_ci", oddTexts},
	{"tc", "CHAR(20) COLLATE utf8mb4_unicode_ci", oddTexts},
	{"ts", "VARCHAR(20) COLLATE @@", oddTexts},
	{"vb", "VARBINARY(20)", oddBytes},
	{"bn", "BINARY(4)", oddBytes},
	{"bl", "BLOB", oddBytes},
	{"uu", "@uuid", []string{"'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "'6BA7B811-9DAD-11D1-80B4-00C04FD430C8'", "'f47ac10b-58cc-4372-a567-0e02b2c3d479'", "'00000000-0000-0000-0000-000000000000'", "'6ba7b8109dad11d180b400c04fd430c8'", "'x'", "NULL"}},
	{"e", "ENUM('2', '1', 'b', 'a')", []string{"'1'", "'2'", "'a'", "'b'", "'A'", "NULL"}},
	{"b", "BIGINT UNSIGNED", []string{"0", "18446744073709551615", "9223372036854775808", "7", "NULL"}},
	{"d", "DATE", []string{"'2026-01-01'", "'2026-01-2'", "'2024-02-29'", "'2026-12-31'", "NULL"}},
	{"l", "DATETIME(6)", []string{"'2026-01-01 00:00:00'", "'2026-01-01 23:59:59.999999'", "'2026-1-2 9:00:00'", "NULL"}},
	{"k", "DATETIME", []string{"'2026-01-01 12:00:00'", "'2026-1-2 9:00:00'", "NULL"}},
}

// oddTexts are texts that collations may take for equal, or order in ways of their own.
var oddTexts = []string{"''", "' '", "'ann'", "'Ann'", "'ANN'", "'ann '", "' ann'", "'ann1'", "'ann-1'", "'an_n'", "'a%n'", "'a\\\\n'", "'ß'", "'ss'", "'än'", "'an'", "'i'", "'I'", "'ı'", "'a\tb'", "'9'", "'10'", "'Z'", "'_'", "'a.b'", "NULL"}

// oddBytes are texts, and bytes that are none.
var oddBytes = []string{"''", "' '", "'ann'", "'Ann'", "'ann '", "'ann\\0'", "'ß'", "'an'", "'an%'", "'_'", "'9'", "'a\tb'", "x'ff'", "x'616eff'", "NULL"}

// conditionMaker makes conditions on these columns.
type conditionMaker struct{ *rand.Rand }

func (c conditionMaker) pick(list ...string) string { return list[c.IntN(len(list))] }

func (c conditionMaker) of(name string) string {
	for _, v := range conditionValues {
		if v.name == name {
			return c.pick(v.values...)
		}
	}
	panic(name)
}

func (c conditionMaker) leaf() string {
	op := c.pick("=", "<>", "<", "<=", ">", ">=")
	switch c.IntN(23) {
	case 22: // a value between two columns
		return c.pick(c.of("l")+c.pick(" BETWEEN ", " NOT BETWEEN ")+c.pick("l AND k", "k AND l", "l AND l", "d AND l", "d AND d"), c.pick(c.of("i"), c.of("m"), "'7'", "j")+c.pick(" BETWEEN ", " NOT BETWEEN ")+c.pick("i AND j", "j AND i", "i AND 7", "i AND m", "u AND b", "i AND t"),
			c.of("t")+" BETWEEN t AND tb", "'2026-01-01' BETWEEN DATE(l) AND CAST(k AS DATE)", "'2026-01-01' BETWEEN d AND d", "'2026-01-01' BETWEEN DATE(l) AND l", "20260101 BETWEEN l AND k")
	case 21:
		return "uu " + c.pick(op, op, "<=>", "LIKE") + " " + c.pick(c.of("uu"), c.of("uu"), "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'", "0", "'6ba7%'", "t")
	case 19:
		return c.pick("vb", "bn", "bl") + " " + op + " " + c.pick("", "", "", "_binary", "N") + c.pick(oddBytes...)
	case 20:
		b := c.pick("vb", "bn", "bl")
		return c.pick(b+" LIKE ", b+" NOT LIKE ") + c.pick("'an%'", "'Ann'", "'%n'", "'a_n'", "'ann_'", "''", "'_'", "'a%'", "'ann'") + c.pick("", "", " ESCAPE '!'")
	case 14, 15:
		return c.computed(op)
	case 16:
		return c.text() + " " + c.pick("=", "<>", "LIKE", "NOT LIKE", "<=>", "<") + " " + c.pick("''", "'ann'", "'Ann'", "'an'", "'an%'", "'a'", "'ANN '", "NULL", "'9'", "'2026-01'")
	case 17:
		return c.pick("(i, t)", "(j, t)") + c.pick(" = ", " <> ") + c.pick("(7, 'ann')", "(1, NULL)", "(0, 'Ann')")
	case 18:
		return c.pick("(i, j) IN ((7, 1), (0, 5))", "(i, d) NOT IN ((7, '2026-1-2'), (1, NULL))", "i <=> j", "t <=> 'ann'", "d <=> '2026-1-2'", "DATE(l) <=> '2026-01-01'", "7 <=> i", "m <=> NULL", "NOT t <=> NULL")
	case 10:
		return c.pick("t", "tb", "tl", "tc", "ts") + " " + op + " " + c.pick("", "", "", "", "_binary", "N", "_utf8mb4") + c.pick(oddTexts[:len(oddTexts)-1]...)
	case 11:
		text := c.pick("t", "tb", "tl", "tc", "ts")
		pattern := c.pick("'an%'", "'%n'", "'a_n'", "'%a%n%'", "'ann_'", "'ann %'", "'%1'", "'a\\\\%'", "'a\\%n'", "'%\\_n'", "'_'", "'__'", "'%'", "'% '", "'%s%s'", "'ANN'", "'ann'", "'%-%'", "''", "NULL", "'a!%n'", "'a!_n'")
		return c.pick(text, text, "LOWER("+text+")") + c.pick(" LIKE ", " NOT LIKE ") + pattern + c.pick("", "", " ESCAPE '!'", " ESCAPE '\\\\'", " ESCAPE ''", " ESCAPE 'n'", " ESCAPE '%'")
	case 12:
		return c.pick("i", "b", "u", "i % 2", "e") + c.pick(" IS TRUE", " IS FALSE", " IS NOT TRUE", " IS NOT FALSE", " IS UNKNOWN", " = TRUE", " <> FALSE")
	case 13:
		return c.pick("e "+c.pick("=", "<>", "<", ">=")+" "+c.pick("'1'", "'a'", "'A'", "'3'", "1", "''"), "e LIKE 'A%'", "e IN ('1', 'b')", "b "+op+" "+c.of("b"), "b % 2 = 1", "b "+op+" -1", "b "+op+" i", "i = 0x7", "i = b'1'", "t = x'616e6e'", "i = 7.0", "m = 1.5e0", "m "+op+" '1.5'",
			"l "+op+" '2026-01-01 00:00:00.'", "l = '2026-01-01T00:00:00'", "l "+op+" '2026-01-01 00:00'", "d = '2026-02-30'", "d > '0000-00-00'", "l > '2026-01-01 24:00:00'", "DATE(l) = '2026-02-30'", "NOT i", "! (i = 0)", "NOT i = 7", "i BETWEEN 7 AND 1", "i XOR j", "i && j", "i <=> NULL", "i <=> 7", "NOT i BETWEEN 0 AND 1")
	case 0:
		return c.pick("i", "j", "u", "m") + " " + op + " " + c.of(c.pick("i", "j", "m"))
	case 1:
		return c.pick("i + j", "i - j", "j - i", "m - i + 1", "i + 1", "i - 1.5", "(i - (j - 2))", "u - 1", "u + 1") + " " + op + " " + c.pick("0", "3", "-2", "j", "i + j", "1.5", "m", "u")
	case 2:
		return c.pick("i", "j", "5", "u") + " " + op + " " + c.pick("j", "i", "i + 2", "j - i", "u", "m")
	case 3:
		return c.pick("COALESCE(i, 0)", "IFNULL(m, -1)", "COALESCE(j, NULL)", "ifnull(i, 2)", "COALESCE(i, '1')") + " " + op + " " + c.of("i")
	case 4:
		return c.pick("t", "LOWER(t)", "UPPER(t)") + c.pick(" = ", " <> ") + c.of("t")
	case 5:
		pattern := c.pick("'an%'", "'ANN'", "'%n'", "'a_n'", "''", "NULL", "'%N%'", "'_%n'", "'a\\%n'", "'% '", "'%n%n'")
		return c.pick("t LIKE "+pattern, "t NOT LIKE "+pattern, "LOWER(t) LIKE "+pattern, "UPPER(t) LIKE UPPER("+pattern+")", "t LIKE BINARY "+pattern, "t "+op+" "+c.of("t"), "t BETWEEN 'a' AND "+c.of("t"))
	case 6:
		return c.pick("d", "l") + " " + op + " " + c.of(c.pick("d", "l"))
	case 7:
		return c.pick("DATE(l)", "date(l)", "DATE(d)", "CAST(k AS DATE)", "CONVERT(l, DATE)") + " " + c.pick("= '2026-01-01'", "<> '2026-01-01'", "< '2026-01-02'", "<= '2026-01-01'", "> '2026-01-01'", ">= '2026-01-02'", "BETWEEN '2026-01-01' AND '2026-01-01'",
			"IN ('2026-01-01')", "= NULL", "= '2026-01-01 00:00:00'", "= 20260101", "= '2026-1-1'")
	case 8:
		return c.pick("i", "t", "d", "l") + c.pick(" IS NULL", " IS NOT NULL")
	}
	return c.pick("i % 2 = 1", "i % 3 <> 0", "i % 2 = -1", "i IN (0, 7)", "i NOT IN (1, NULL)", "j BETWEEN 1 AND 5", "m BETWEEN 0 AND 1.5", "j NOT BETWEEN 1 AND 5", "i", "1 = 1", "1 = 0", "i = '7'", "t = 0", "d = 20260101",
		"i "+op+" '7'", "i = '07'", "i = '7 '", "i = '7.0'", "i = '-1'", "i = '1e0'", "i IN ('0', '7')", "i NOT IN ('1', 7)", "j BETWEEN '1' AND '5'", "m "+op+" '1'", "m BETWEEN '0' AND 2", "i LIKE '7'", "i % '2' = '1'", "NOT i = '7'", "i <=> '7'")
}

// text is a text that is computed.
func (c conditionMaker) text() string {
	if c.IntN(3) == 0 {
		return c.pick("TRIM(", "LTRIM(", "RTRIM(", "LOWER(", "UPPER(") + c.text() + ")"
	}
	return c.pick("t", "tb", "tl", "tc", "ts", "vb", "bl", "LOWER(tb)", "LEFT(t, 2)", "LEFT(tb, -1)", "RIGHT(t, 1)", "SUBSTR(t, 2)", "SUBSTRING(tl FROM 1 FOR 2)", "MID(t, 2, 1)", "SUBSTR(t, 0)", "CONCAT(t, 'n')", "CONCAT('a', ts, 'x')", "CONCAT(t, NULL)", "CONCAT(t, t)", "CONCAT(t, 7)", "LEFT(e, 1)",
		"DATE_FORMAT(l, '%Y-%m')", "DATE_FORMAT(d, '%Y-%m-%d')", "DATE_FORMAT(l, '%H:%i')", "DATE_FORMAT(l, '%M')", "DATE_FORMAT(l, '')", "DATE_FORMAT(l, '%%Y')")
}

// computed is a comparison of a number, or a moment, that is computed.
func (c conditionMaker) computed(op string) string {
	number := c.pick("LENGTH("+c.text()+")", "CHAR_LENGTH(t)", "ABS(i)", "ABS(m)", "i * j", "m * 2", "i * m", "-i * 2", "i DIV 2", "j DIV 3", "i % 3", "MOD(j, 2)", "i & 1", "j & 4", "u * 2", "i * 2 + j", "i / 2", "m % 2", "m DIV 2", "i % -2", "LENGTH(t) % 2", "ABS(i) % 2")
	moment := c.pick("l", "l", "d", "l + INTERVAL 1 HOUR", "l - INTERVAL 90 MINUTE", "DATE_ADD(l, INTERVAL 2 WEEK)", "DATE_SUB(l, INTERVAL 1 DAY)", "l + INTERVAL 1 MONTH", "d + INTERVAL 1 DAY", "INTERVAL 1 DAY + l", "l + INTERVAL '1' DAY", "l + INTERVAL -1 SECOND", "l + INTERVAL 1.5 DAY", "l + INTERVAL NULL DAY")
	switch c.IntN(4) {
	case 0, 1:
		return number + " " + op + " " + c.pick("0", "1", "2", "3", "14", "1.5", "-1", "i", "NULL")
	case 2:
		return c.pick("YEAR(", "MONTH(", "DAY(", "DAYOFMONTH(", "HOUR(", "MINUTE(", "EXTRACT(YEAR FROM ", "EXTRACT(hour FROM ", "EXTRACT(YEAR_MONTH FROM ", "SECOND(") + moment + ") " + op + " " + c.pick("1", "2", "2026", "9", "23", "0", "1.5")
	}
	return moment + " " + op + " " + c.pick("'2026-01-01 1:00'", "'2026-01-02'", "'2026-1-2 9:00:00'", "'2026-01-02 00:59:59.999999'", "20260102", "l")
}

func (c conditionMaker) condition(depth int) string {
	switch k := c.IntN(6); {
	case depth > 0 && k == 0:
		return "(" + c.condition(depth-1) + " AND " + c.condition(depth-1) + ")"
	case depth > 0 && k == 1:
		return "(" + c.condition(depth-1) + " OR " + c.condition(depth-1) + ")"
	case depth > 0 && k == 2:
		return "NOT (" + c.condition(depth-1) + ")"
	}
	return c.leaf()
}

// TestConditions compares what conditions are said to be of rows with what the server says. What is not certain may be unsure, but of most it must not be.
func TestConditions(t *testing.T) {
	t.Parallel()
	p := newPair(t, 0)
	c := conditionMaker{rand.New(rand.NewPCG(15, 4))}
	var columns []string
	for _, v := range conditionValues {
		columns = append(columns, v.name+" "+v.typ)
	}
	sensitive := "utf8mb4_uca1400_as_cs"
	if flavor() == MySQL {
		sensitive = "utf8mb4_0900_as_cs"
	}
	uuid := map[bool]string{true: "UUID", false: "CHAR(36) COLLATE utf8mb4_bin"}[flavor() == MariaDB]
	p.wired.exec(t, "CREATE TABLE c (id INT PRIMARY KEY, "+strings.NewReplacer("@@", sensitive, "@uuid", uuid).Replace(strings.Join(columns, ", "))+") CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
	p.load(t)
	for _, sql := range AddColumns(flavor(), p.relation("c")) {
		p.wired.exec(t, sql)
	}
	p.load(t)
	var names, texts []string
	for _, v := range conditionValues {
		names, texts = append(names, v.name), append(texts, "IFNULL(REPLACE("+v.name+", ' 0', 'T0'), 'NULL')")
		if v.name != "l" && v.name != "k" {
			texts[len(texts)-1] = "IFNULL(CONCAT(" + v.name + "), 'NULL')"
		}
	}
	const many = 40
	for id := range many {
		var values []string
		for _, v := range conditionValues {
			values = append(values, c.of(v.name))
		}
		p.wired.exec(t, fmt.Sprintf("INSERT IGNORE INTO c (id, %s) VALUES (%d, %s)", strings.Join(names, ", "), id, strings.Join(values, ", ")))
	}
	images := map[string]condition.Image{}
	for _, row := range p.wired.texts(t, "SELECT id, "+strings.Join(texts, ", ")+" FROM c") {
		image := condition.Image{}
		for i, cell := range row[1:] {
			if image[names[i]] = nil; cell != "NULL" {
				image[names[i]] = &cell
			}
		}
		images[row[0]] = image
	}
	decided, unsure := 0, 0
	for range 2000 {
		where := c.condition(2)
		r := p.wired.conn.query(t, "SELECT id, IFNULL(("+where+"), 'NULL') FROM c")
		if r.err != "" {
			continue // an error of the client's
		}
		sc := p.rewriter.Script("SELECT COUNT(*) FROM c WHERE "+where, p.catalog, p.session)
		if len(sc.Plans) != 1 || len(sc.Plans[0].Asks) != 1 {
			continue // of two contradictions it is not certain that the server looks for rows
		}
		of := sc.Plans[0].Asks[0].Where.Bind(func(int) (condition.Value, bool) { return nil, false })
		for _, row := range r.rows {
			want := condition.True
			switch string(row[1]) {
			case "NULL":
				want = condition.Null
			case "0":
				want = condition.False
			}
			switch got := of.Holds(images[string(row[0])]); got {
			case want:
				decided++
			case condition.Unsure:
				unsure++
			default:
				t.Fatalf("%s of %v: %d, the server says %d (%s)", where, row, got, want, of.String())
			}
		}
	}
	t.Logf("decided %d, unsure %d", decided, unsure)
	if 2*decided < 3*unsure || decided < 10000 {
		t.Errorf("decided %d, unsure %d", decided, unsure)
	}
}
