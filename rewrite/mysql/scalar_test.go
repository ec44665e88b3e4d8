package mysql

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// scalarColumns are those of the two tables that TestScalars compares.
const scalarColumns = "i INT, k BIGINT, u BIGINT UNSIGNED, m DECIMAL(20,4), r DECIMAL(30,12), t VARCHAR(20), tb VARCHAR(20) COLLATE utf8mb4_bin, d DATE, l DATETIME(6), vb VARBINARY(20), KEY (m), KEY (u), KEY (t)"

// TestScalars compares what conditions on the value of a subquery are said to be of rows with what the server says.
func TestScalars(t *testing.T) {
	t.Parallel()
	if flavor() == TiDB {
		t.Skip("they are not judged there")
	}
	p := newPair(t, 0)
	c := conditionMaker{rand.New(rand.NewPCG(29, 11))}
	for _, name := range []string{"c", "o"} {
		p.wired.exec(t, "CREATE TABLE "+name+" (id INT PRIMARY KEY, "+scalarColumns+") CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
		p.wired.exec(t, "INSERT INTO "+name+` VALUES (1, 3, 3, 9223372036854775808, 1.6667, 1.666666666667, 'ann', 'ann', '2026-01-01', '2026-01-01 09:00', 'ann'),
			(2, -1, 9007199254740993, 9007199254740993, 9007199254740993.0001, 2, 'Ann ', 'a"\\n', '2026-03-01', '2026-01-01 00:00:00.000001', 'Ann '),
			(3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL), (4, 7, 2, 18446744073709551615, -0.5, 1.666666666, 'ß', '', '1999-12-31', '9999-12-31 23:59:59', x'ff00'), (5, 0, 0, 0, 0.3333, 0.333333333333, 'ANN', 'ß', '2026-01-02', '2026-01-02', '')`)
	}
	p.load(t)
	for _, name := range []string{"c", "o"} {
		for _, sql := range AddColumns(flavor(), p.relation(name)) {
			p.wired.exec(t, sql)
		}
	}
	p.load(t)
	p.session.UTF8 = true
	images := map[string]condition.Image{}
	columns := strings.Split("i k u m r t tb d l vb", " ")
	for _, row := range p.wired.conn.query(t, "SELECT id, "+strings.Join(columns, ", ")+" FROM c").rows {
		image := condition.Image{}
		for i, name := range columns {
			if image[name] = nil; row[i+1] != nil {
				text := strings.Replace(string(row[i+1]), " 0", "T0", map[bool]int{true: 1}[name == "l"])
				image[name] = &text
			}
		}
		images[string(row[0])] = image
	}
	counts, told := map[condition.Truth]int{}, 0
	for range 1500 {
		column, other := c.pick(columns...), c.pick("i", "k", "u", "m", "r")
		if !strings.Contains("ikumr", column) {
			other = c.pick(column, column, column, "t", "d")
		}
		value := c.pick("max(", "MIN(", "sum(", "avg(", "count(", "count(DISTINCT ", "coalesce(max(", "ifnull(avg(") + other + ")"
		if strings.Count(value, "(") > 1 {
			value += c.pick(", 0)", ", 1.5)", ", -1)", ", NULL)")
		}
		value = c.pick(value, value, "count(*)", other)
		where := c.pick("", " WHERE id > 2", " WHERE id IN (1, 2, 4)", " WHERE id < 0", " WHERE i = 7", " WHERE t <> 'ann' AND id < 9")
		if value == other {
			where = " WHERE id = " + c.pick("1", "2", "3", "4", "5", "77")
		}
		sub, op := "(SELECT "+value+" FROM o"+where+")", c.pick("=", "<>", "<", "<=", ">", ">=")
		compares := column + " " + op + " " + sub
		if c.IntN(4) == 0 {
			compares = sub + " " + op + " " + column
		}
		r := p.wired.conn.query(t, "SELECT id, IFNULL(("+compares+"), 'NULL') FROM c")
		if r.err != "" { // an error of the client's
			continue
		}
		form := c.pick("SELECT id FROM c WHERE %s", "SELECT COUNT(*) FROM c WHERE %s", "SELECT id, l FROM c WHERE %s ORDER BY id LIMIT 9", "SELECT i, COUNT(*) FROM c WHERE %s GROUP BY i")
		p.session.Fresh = c.IntN(2) == 0
		sc := p.rewriter.Script(fmt.Sprintf(form, compares), p.catalog, p.session)
		plan := sc.Plans[0]
		answer := p.wired.conn.query(t, sc.SQL)
		if own := p.wired.conn.query(t, plan.Text); answer.err != own.err {
			t.Fatalf("%s: %q, alone %q", sc.SQL, answer.err, own.err)
		}
		if plan.Moments == 0 { // of a type that is not compared
			continue
		}
		at := slices.IndexFunc(plan.Asks, func(a rewrite.Ask) bool { return strings.HasSuffix(a.Table, ".c") })
		if at < 0 {
			t.Fatalf("%s: %s", sc.SQL, plan.Unread)
		}
		if len(answer.rows) == 0 {
			continue
		}
		told++
		asTheServer(t, compares, atMoments(plan, at, answer.rows), images, r.rows, counts)
	}
	if t.Logf("%d told, %v", told, counts); told < 300 || counts[condition.True] < 300 || counts[condition.False] < 300 || counts[condition.Null] < 100 || counts[condition.Unsure] > counts[condition.True]+counts[condition.False] {
		t.Errorf("%d told; false, null, true, unsure: %v", told, counts)
	}
}

// TestScalarLimits: subqueries whose values the answer does not tell. Evaluating them once more might warn or find another value, or they are of the same table.
func TestScalarLimits(t *testing.T) {
	t.Parallel()
	if flavor() == TiDB {
		t.Skip("they are not judged there")
	}
	p := newPair(t, 0)
	told := func(sql string, s Session) bool {
		plan := p.rewriter.Prepare(sql, p.catalog, s).Plans[0]
		asks := slices.ContainsFunc(plan.Asks, func(a rewrite.Ask) bool { return strings.HasSuffix(a.Table, ".account") })
		if asks != (plan.Moments == 1) || !asks && plan.Unread == "" {
			t.Errorf("%s: asks %t, %d moments, %s", sql, asks, plan.Moments, plan.Unread)
		}
		return asks
	}
	const around = "SELECT note, owner FROM account WHERE balance > (@) AND id <> ?"
	for sub, want := range map[string]bool{
		"SELECT MAX(qty) FROM item": true, "SELECT qty FROM item WHERE id = 3": true, "SELECT COUNT(*) FROM item WHERE name = 'x'": true, "SELECT IFNULL(SUM(qty), 0) FROM item": true,
		"SELECT MAX(qty) FROM item WHERE name = ?": false, "SELECT IFNULL(MAX(qty), ?) FROM item": false, "SELECT qty FROM item WHERE name = 'x'": false, "SELECT qty FROM item WHERE id = 3 FOR UPDATE": false,
		"SELECT MAX(qty) FROM item WHERE qty > RAND()": false, "SELECT MAX(qty) FROM item WHERE name > 5": false, "SELECT MAX(qty) FROM item i WHERE i.account_id = account.id": false, "SELECT MAX(f) FROM kinds": false,
		"SELECT MAX(qty) FROM item GROUP BY name": false, "SELECT MAX(qty + 1) FROM item": false, "SELECT MAX(b.balance) FROM account b": false, "SELECT owner FROM rich LIMIT 1": false,
	} {
		if got := told(strings.Replace(around, "@", sub, 1), p.session); got != want {
			t.Errorf("%s: told %t", sub, got)
		}
	}
	for _, change := range []func(*Session){func(s *Session) { s.LockingReads = true }, func(s *Session) { s.Once = true }} {
		s := p.session
		if change(&s); told(strings.Replace(around, "@", "SELECT MAX(qty) FROM item", 1), s) {
			t.Errorf("%+v: told", s)
		}
	}
}
