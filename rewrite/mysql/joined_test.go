package mysql

import (
	"testing"

	"wirecheck/rewrite"
)

// joinForms are UPDATEs of joins, and some whose subqueries read their own table.
var joinForms = []form{
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = a.balance + 1", approx, 2}, // ann has two items
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = 100", approx, 2},           // hers is 100
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET balance = i.qty * 10, owner = 'eve'", approx, 2},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.owner = 'ann' WHERE i.qty > 2", approx, 2},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.owner = i.name", opaque, 0},
	{"UPDATE account a LEFT JOIN item i ON a.id = i.account_id SET a.balance = 7 WHERE i.id IS NULL", approx, 2},
	{"UPDATE item i LEFT JOIN account a ON a.id = i.account_id SET a.balance = 7", approx, 2},
	{"UPDATE item i RIGHT JOIN account a ON a.id = i.account_id SET a.balance = 7", approx, 4},
	{"UPDATE account a JOIN account b ON a.id = b.id - 1 SET a.balance = b.balance", opaque, 0},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = 1, i.qty = 2", opaque, 0},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = i.qty, a.id = a.balance", opaque, 0},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.updated = '2020-01-01 10:00:00'", approx, 2},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.updated = '2001-01-01 00:00:00'", approx, 2},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.updated = '2020-1-1'", opaque, 0},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = 5 WHERE a.id = 99", approx, 0},
	{"UPDATE account a JOIN item i ON a.id = i.account_id SET a.balance = 5 WHERE a.id = 1 AND i.id = 10", approx, 1},
	{"UPDATE account a, item i, bare b SET i.qty = b.a WHERE a.id = i.account_id AND b.a = a.id", approx, 3},
	{"UPDATE item i JOIN account a ON a.id = i.account_id SET i.account_id = NULL", approx, -1},
	{"UPDATE kinds k JOIN account a ON a.id = k.id SET k.d = 1.505, k.i = 1", opaque, 0}, // it is rounded,
	{"UPDATE kinds k JOIN account a ON a.id = k.id SET k.d = 1.5", approx, 2},
	{"UPDATE kinds k JOIN account a ON a.id = k.id SET k.dt = '2020-02-28', k.v = 'Emile', k.i = 1, k.d = 1.50", approx, 2},
	{"UPDATE kinds k JOIN account a ON a.id = k.id SET k.v = 'x', k.dtm = '2020-01-01 00:00:00'", approx, 2},
	{"UPDATE parent p JOIN account a ON a.id = p.id SET p.v = a.balance", approx, 2},
	{"UPDATE watched w JOIN account a ON a.id = w.id SET w.v = 3", opaque, 0},
	{"UPDATE old o JOIN account a ON a.id = o.id SET a.balance = 3", approx, 0},
	{"UPDATE rich r JOIN account a ON a.id = r.id SET a.balance = 3", opaque, 0},
	{"UPDATE account SET balance = balance + 1 WHERE id = (SELECT m FROM (SELECT MAX(id) m FROM account) d)", approx, -1},
	{"UPDATE account SET balance = 0 WHERE id = 1 AND (SELECT n FROM (SELECT COUNT(*) n FROM account WHERE balance >= 100) d) > 1", approx, -1},
	{"UPDATE account SET balance = 100 WHERE id < 3 AND (SELECT n FROM (SELECT COUNT(*) n FROM account) d) > 1", approx, -1},
	{"UPDATE account SET owner = (SELECT o FROM (SELECT MAX(owner) o FROM account) d) WHERE id = 1", notSure, -1},
}

// notSure is the coverage of forms that the products of the family see differently.
const notSure = "-"

// TestJoins: the client sees the same, and what the log tells of a row is what happened to it.
func TestJoins(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("these stay as they are there")
	}
	for _, images := range []bool{false, true} {
		p := newPair(t, 0)
		if p.images = images; images {
			p.rewriter.WantAll()
		}
		for _, f := range joinForms {
			plan, accesses := p.check(t, f.sql)
			if f.coverage != notSure && plan.Coverage != f.coverage {
				t.Errorf("%s: coverage %q (%s), want %q", f.sql, plan.Coverage, plan.Why, f.coverage)
			}
			if f.n >= 0 && f.n != len(accesses) {
				t.Errorf("%s: %d accesses, want %d", f.sql, len(accesses), f.n)
			}
		}
	}
}

// TestLeftJoinsNotTold: where a left join is not followed through its tables, the statement counts as one of which a part is not judged. EXISTS does not rest on the others.
func TestLeftJoinsNotTold(t *testing.T) {
	const join = "SELECT a.id, b.id FROM account a LEFT JOIN item b ON b.owner = a.owner WHERE a.balance > 1"
	cat := testCatalog(t)
	for _, c := range []struct {
		flavor    Flavor
		sql, want string
	}{
		{MariaDB, join, ""},
		{MariaDB, join + " FOR UPDATE", rewrite.SeveralTables},
		{MySQL, join + " FOR SHARE", rewrite.SeveralTables},
		{TiDB, join, rewrite.SeveralTables},
		{TiDB, "SELECT COUNT(*) FROM account a LEFT JOIN item b ON b.owner = a.owner WHERE a.balance > 1", rewrite.SeveralTables},
		{TiDB, "SELECT EXISTS (SELECT 1 FROM account a LEFT JOIN item b ON b.owner = a.owner WHERE a.balance > 1)", ""},
		{TiDB, "SELECT id FROM account WHERE balance > 1", ""},
	} {
		if p := New(c.flavor, rewrite.CaptureAuto).Script(c.sql, cat, Session{Database: "shop", GroupConcat: 1 << 20}).Plans[0]; p.Unread != c.want {
			t.Errorf("%v, %s: %q, want %q", c.flavor, c.sql, p.Unread, c.want)
		}
	}
}
