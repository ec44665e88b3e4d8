package live_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"wirecheck/internal/testserver"
)

// types are one table for each type: its rows are numbered, and the values are unique.
type types struct {
	names    []string
	family   bool
	prepared bool // values are parameters
	table    *int // that of the query
}

// values are constants of all types: what is compared need not be alike.
var values = strings.Split("0|1|2|-1|2.5|2.50|1e0|20200101|9007199254740993|'0'|'1'|'2.5'|' 1'|'1a'|'a'|'A'|'a '|'b'|'ab'|''|'\u00e4'|'9007199254740993'|'2020-01-01'|'2020-1-1'|'2020-01-01 00:00:00'|'2020-01-01 12:00:00'|'12:00:00'|"+
	"TRUE|FALSE|NULL|DATE '2020-01-01'|TIMESTAMP '2020-01-01 12:00:00'|'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'|'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "|")

func (t types) value(rng *rand.Rand) string {
	if rng.IntN(3) == 0 {
		return values[rng.IntN(len(values))]
	}
	for _, own := range [][2]string{{"timestamp", "'2020-01-01' '2020-01-02' DATE'2020-01-01'"}, {"datetime", "'2020-01-01' '2020-01-02' DATE'2020-01-01'"}, {"date", "'2020-01-01' '2020-01-02' DATE'2020-01-01' '2020-1-1'"}, {"time", "'12:00:00' '12:00' '13:00:00'"},
		{"numeric", "0 1 2.5 2.50 '2.5' -1"}, {"decimal", "0 1 2.5 2.50 '2.5' -1"}, {"double", "0 1 2.5 1e0"}, {"text", "'a' 'A' 'b' 'ab' '' '1' '0'"}, {"char", "'a' 'A' 'b' 'ab' '' '1' '0'"}, {"binary", "'a' 'A' 'b' '' x'61' 0x4100"}, {"year", "2020 2021 '2020'"},
		{"bool", "TRUE FALSE"}, {"bit", "0 1 2"}, {"enum", "'a' 'b' 1 2"}, {"set", "'a' 'b' 'a,b'"}, {"int", "0 1 2 -1 '1' '2'"}} {
		if strings.Contains(t.names[*t.table], own[0]) {
			v := strings.Fields(own[1])
			return v[rng.IntN(len(v))]
		}
	}
	return values[rng.IntN(len(values))]
}

// parameter gives a constant as drivers take it.
func parameter(constant string) any {
	if text, ok := strings.CutPrefix(constant, "DATE"); ok {
		d, _ := time.Parse("'2006-01-02'", strings.TrimSpace(text))
		return d
	}
	if n, err := strconv.ParseInt(constant, 10, 64); err == nil {
		return n
	}
	if f, err := strconv.ParseFloat(constant, 64); err == nil {
		return f
	}
	switch constant {
	case "NULL":
		return nil
	case "TRUE", "FALSE":
		return constant == "TRUE"
	case "x'61'":
		return []byte("a")
	}
	return strings.Trim(constant, "'")
}

func (t types) query(rng *rand.Rand) (query string, args []any) {
	*t.table = rng.IntN(len(t.names))
	if t.prepared && !t.family && rng.IntN(2) == 0 {
		args = append(args, pgx.QueryExecModeExec) // the parameters have no types
	}
	modes := len(args)
	v := func() string {
		value := t.value(rng)
		if !t.prepared || rng.IntN(4) == 0 {
			return value
		}
		if args = append(args, parameter(value)); t.family {
			return "?"
		}
		return fmt.Sprintf("$%d", len(args)-modes)
	}
	condition := func() string {
		switch rng.IntN(12) {
		case 0, 1, 2:
			return "x.c = " + v()
		case 3:
			return v() + " = x.c"
		case 4:
			return "x.c " + pick(rng, "<>", "<", ">", "<=", ">=") + " " + v()
		case 5:
			return "x.c IN (" + v() + ", " + v() + ")"
		case 6:
			return "x.c NOT IN (" + v() + ", " + v() + ")"
		case 7:
			return "x.c BETWEEN " + v() + " AND " + v()
		case 8:
			return "x.c LIKE " + pick(rng, "'a%'", "'A%'", "'%'", "'a_'", "'1%'", "'2020%'", v())
		case 9:
			return "x.c IS " + pick(rng, "NULL", "NOT NULL")
		case 10:
			return pick(rng, "lower(x.c) = ", "upper(x.c) = ", "x.c + 1 = ", "-x.c = ", "coalesce(x.c, 1) = ", "date(x.c) = ") + v()
		}
		if t.family {
			return "x.c <=> " + v()
		}
		return "x.c IS NOT DISTINCT FROM " + v()
	}
	where := condition()
	switch rng.IntN(6) {
	case 0:
		where = "NOT (" + where + ")"
	case 1:
		where += " AND " + condition()
	case 2:
		where += " OR " + condition()
	case 3:
		where += fmt.Sprintf(" AND x.id %s %d", pick(rng, "=", ">", "<"), 1+rng.IntN(3))
	}
	from := fmt.Sprintf("t%d x", *t.table)
	query = fmt.Sprintf(pick(rng, "UPDATE %s SET n = n + 1 WHERE %s", "SELECT x.id, x.c FROM %s WHERE %s", "SELECT x.* FROM %s WHERE %s ORDER BY x.id", "SELECT count(*) FROM %s WHERE %s", "SELECT EXISTS (SELECT * FROM %s WHERE %s) AS e", "SELECT 1 AS one FROM %s WHERE %s LIMIT 1", "SELECT x.id FROM %s WHERE %s ORDER BY x.id LIMIT 1",
		"SELECT x.id FROM %s WHERE %s ORDER BY x.c, x.id LIMIT 2", "SELECT x.id FROM %s WHERE %s ORDER BY x.c DESC, x.id LIMIT 1"), from, where)
	if len(args) == modes {
		args = nil
	}
	return query, args
}

func (t types) fill(rng *rand.Rand) []string {
	fill := []string{fmt.Sprintf("DELETE FROM t%d", *t.table)}
	for i := range 4 {
		fill = append(fill, fmt.Sprintf("INSERT INTO t%d (id, c) VALUES (%d, %s)", *t.table, i+1, t.value(rng)))
	}
	return fill
}

func (t types) change(rng *rand.Rand) string {
	switch rng.IntN(4) {
	case 0:
		return fmt.Sprintf("DELETE FROM t%d WHERE id = %d", *t.table, 1+rng.IntN(4))
	case 1:
		return fmt.Sprintf("UPDATE t%d SET c = %s WHERE id = %d", *t.table, t.value(rng), 1+rng.IntN(4))
	}
	return fmt.Sprintf("INSERT INTO t%d (id, c) VALUES (%d, %s)", *t.table, 10+rng.IntN(3), t.value(rng))
}

// tables gives the statements that make them.
func (t types) tables() []string {
	list := []string{"CREATE TABLE mark (id INT PRIMARY KEY, n INT)"}
	for i, name := range t.names {
		unique := ""
		if i%2 == 0 {
			unique = " UNIQUE"
		}
		list = append(list, fmt.Sprintf("CREATE TABLE t%d (id INT PRIMARY KEY, c %s%s, n INT DEFAULT 0)", i, name, unique))
	}
	return list
}

// TestOneChangeTypes compares what a query of columns of many types depends on with its answers before and behind one change.
func TestOneChangeTypes(t *testing.T) {
	of := types{table: new(int)}
	for _, name := range strings.Split("int|bigint|numeric(10,2)|numeric|text|text COLLATE \"C\"|varchar(5)|char(4)|date|timestamp|timestamptz|time|boolean|uuid|float8|varchar(40)", "|") {
		of.names = append(of.names, name, name)
	}
	s := newStand(t, 2, of.tables()...)
	s.changes("READ COMMITTED", of)
	of.prepared = true
	s.changes("READ COMMITTED", of)
}

// TestOneChangeTypesFamily does the same on MariaDB, or another product of the family.
func TestOneChangeTypesFamily(t *testing.T) {
	of := types{table: new(int), family: true}
	for _, name := range strings.Split("int|int unsigned|bigint|decimal(10,2)|double|varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci|varchar(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin|varchar(40) CHARACTER SET latin1|char(4)|varchar(10)|date|datetime|datetime(3)|timestamp NULL|time|year|enum('a','b','1')|set('a','b')|varbinary(10)|binary(4)|bit(4)|tinyint(1)", "|") {
		of.names = append(of.names, name, name)
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, of.tables()...)
	s.changes("READ COMMITTED", of)
	of.prepared = true
	s.changes("READ COMMITTED", of)
}
