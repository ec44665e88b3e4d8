package mysql

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// clock is a random expression of the server's time.
func (c conditionMaker) clock(depth int) string {
	if depth == 0 || c.IntN(2) == 0 {
		return c.pick("NOW()", "CURRENT_TIMESTAMP", "NOW(6)", "CURDATE()", "CURRENT_DATE", "UTC_TIMESTAMP()", "UTC_DATE()", "LOCALTIME(3)", "DATE(NOW())")
	}
	in := c.clock(depth - 1)
	return c.pick(in+" - INTERVAL 1 HOUR", in+" + INTERVAL 7 DAY", "DATE_SUB("+in+", INTERVAL 1 MONTH)", "DATE_ADD("+in+", INTERVAL 30 MINUTE)", "DATE("+in+")", "ADDDATE("+in+", 1)")
}

// TestClocks compares what conditions on the server's time are said to be of rows with what the server says.
func TestClocks(t *testing.T) {
	t.Parallel()
	if flavor() == TiDB {
		t.Skip("they are not judged there")
	}
	p := newPair(t, 0)
	c := conditionMaker{rand.New(rand.NewPCG(28, 11))}
	p.wired.exec(t, "CREATE TABLE c (id INT PRIMARY KEY, d DATE, l DATETIME, k DATETIME(6))")
	p.load(t)
	for _, sql := range AddColumns(flavor(), p.relation("c")) {
		p.wired.exec(t, sql)
	}
	p.load(t)
	p.wired.exec(t, "SET time_zone = '+09:00', timestamp = 1764354698.25")
	for i, by := range []string{"0 SECOND", "1 SECOND", "-1 SECOND", "1 HOUR", "-1 HOUR", "9 HOUR", "-9 HOUR", "1 DAY", "-1 DAY", "7 DAY", "1 MONTH", "-1 MONTH", "250000 MICROSECOND"} {
		p.wired.exec(t, fmt.Sprintf("INSERT INTO c (id, d, l, k) VALUES (%d, NOW() + INTERVAL %s, NOW() + INTERVAL %[2]s, NOW(6) + INTERVAL %[2]s), (%d, NULL, CURDATE() + INTERVAL %[2]s, NOW() + INTERVAL %[2]s)", 2*i, by, 2*i+1))
	}
	images := map[string]condition.Image{}
	for _, row := range p.wired.texts(t, "SELECT id, IFNULL(d, 'NULL'), l, k FROM c") {
		images[row[0]] = condition.Image{"d": &row[1], "l": &row[2], "k": &row[3]}
		if row[1] == "NULL" {
			images[row[0]]["d"] = nil
		}
	}
	counts := map[condition.Truth]int{}
	for range 600 {
		column, at := c.pick("d", "l", "k", "DATE(k)"), c.clock(2)
		where := column + " " + c.pick("=", "<>", "<", "<=", ">", ">=") + " " + at
		switch c.IntN(6) {
		case 0:
			where = at + c.pick(" < ", " >= ") + column
		case 1:
			where = column + " BETWEEN " + at + " AND " + c.clock(1)
		}
		r := p.wired.conn.query(t, "SELECT id, IFNULL(("+where+"), 'NULL') FROM c")
		if r.err != "" {
			t.Fatal(where, r.err)
		}
		form := c.pick("SELECT COUNT(*) FROM c WHERE %s", "SELECT id FROM c WHERE %s", "SELECT EXISTS (SELECT 1 FROM c WHERE %s)", "SELECT id, l FROM c WHERE %s ORDER BY id LIMIT 5")
		sc := p.rewriter.Script(fmt.Sprintf(form, where), p.catalog, p.session)
		plan := sc.Plans[0]
		if len(plan.Asks) != 1 {
			t.Fatal(where, plan.Unread)
		}
		answer := p.wired.conn.query(t, sc.SQL)
		if answer.err != "" {
			t.Fatal(sc.SQL, answer.err)
		}
		asTheServer(t, where, atMoments(plan, 0, answer.rows), images, r.rows, counts)
		clock, _ := strings.CutSuffix(plan.Clock, ",MICROSECOND(NOW(6))")
		if rows := strings.HasPrefix(form, "SELECT id") && plan.Moments > 0; plan.Clock != "" && !rows || plan.Clock == "" && rows && !fraction.MatchString(where) || fraction.MatchString(strings.ReplaceAll(clock, "DATETIME(6)", "")) {
			t.Errorf("%s: asked in front: %q", sc.SQL, plan.Clock)
		} else if plan.Clock != "" {
			told := p.wired.conn.query(t, plan.Clock).rows[0]
			if last := len(told) - 1; string(told[last]) != "250000" {
				t.Errorf("%s: %s microseconds", where, told[last])
			} else {
				asTheServer(t, plan.Clock, atMoments(plan, 0, [][][]byte{told[:last]}), images, r.rows, counts)
			}
		}
	}
	if t.Logf("%v", counts); 2*(counts[condition.True]+counts[condition.False]) < counts[condition.Unsure] || counts[condition.True] < 1000 {
		t.Errorf("false, null, true, unsure: %v", counts)
	}
}

// atMoments is the condition of what a plan asks under a number, with the values that the rows of the answer tell.
func atMoments(p *rewrite.Plan, ask int, rows [][][]byte) condition.Condition {
	var moments []condition.Value
	for _, row := range rows {
		moments = rewrite.ReadMoments(row[len(row)-p.Moments:])
	}
	return p.Asks[ask].Where.Bind(func(int) (condition.Value, bool) { return nil, false }).At(moments)
}

// asTheServer compares a condition with the server's answer, rows of a key and a truth value, and counts what it is for each of them.
func asTheServer(t *testing.T, what string, of condition.Condition, images map[string]condition.Image, rows [][][]byte, counts map[condition.Truth]int) {
	t.Helper()
	for _, row := range rows {
		want := condition.True
		switch string(row[1]) {
		case "NULL":
			want = condition.Null
		case "0":
			want = condition.False
		}
		got := of.Holds(images[string(row[0])])
		if counts[got]++; got != want && got != condition.Unsure {
			t.Fatalf("%s of %v: %d, the server says %d (%s)", what, images[string(row[0])], got, want, of.String())
		}
	}
}
