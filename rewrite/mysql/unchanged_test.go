package mysql

import (
	"testing"

	"wirecheck/history"
)

// TestPassesUnchanged: statements whose plan would change with what is added to them pass as they are, and their near misses do not.
func TestPassesUnchanged(t *testing.T) {
	p := newPair(t, 0)
	makeMany(t, p)
	lax := func(s Session) Session { s.Lax = true; return s }
	same := func(s Session) Session { return s }
	for _, c := range []struct {
		flavor   Flavor
		prepared bool
		session  func(Session) Session
		sql      string
		want     history.Coverage
	}{
		{MySQL, true, same, "SELECT AVG(m), SUM(k) FROM many WHERE EXISTS (SELECT * FROM rich WHERE id = 1)", opaque},
		{MySQL, true, same, "SELECT AVG(m), SUM(k) FROM many WHERE EXISTS (SELECT * FROM (SELECT id FROM many) d WHERE id = 1)", opaque},
		{MySQL, true, same, "SELECT AVG(m), SUM(k) FROM many WHERE id = 3", exact},
		{MySQL, true, lax, "DELETE FROM many WHERE m = ?", opaque},
		{MySQL, true, same, "DELETE FROM many WHERE m = ?", exact},
		{MySQL, true, lax, "DELETE FROM many WHERE m = 3", exact},
		{MariaDB, true, lax, "DELETE FROM many WHERE m = ?", exact},
		{MariaDB, false, same, "SELECT * FROM (SELECT MAX(u), BIT_OR(m) FROM many) d", opaque},
		{MariaDB, false, same, "SELECT DISTINCT COUNT(note), MAX(id) FROM many", opaque},
		{MySQL, false, same, "SELECT DISTINCT COUNT(note), MAX(id) FROM many", exact},
		{MariaDB, false, same, "SELECT * FROM (SELECT MAX(note), BIT_OR(m) FROM many) d", exact},
		{MariaDB, false, same, "SELECT a.k, SUM(b.id), MIN(b.note) FROM many a LEFT JOIN many b ON a.u = b.m WHERE a.k BETWEEN 2 AND 1 GROUP BY 1 WITH ROLLUP", opaque},
		{MariaDB, false, same, "SELECT a.c, SUM(b.id), MIN(b.note) FROM many a LEFT JOIN many b ON a.u = b.m WHERE a.k BETWEEN 2 AND 1 GROUP BY 1 WITH ROLLUP", exact},
	} {
		if c.flavor != flavor() {
			continue
		}
		plan := p.rewriter.Script
		if c.prepared {
			plan = p.rewriter.Prepare
		}
		if got := plan(c.sql, p.catalog, c.session(p.session)).Plans[0]; got.Coverage != c.want {
			t.Errorf("%s: coverage %q (%s), want %q", c.sql, got.Coverage, got.Why, c.want)
		}
	}
}
