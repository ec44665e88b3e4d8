package mysql

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
)

// A table that MariaDB does not read is not told, and the plan stays; one that may decide the answer is told.
func TestEliminated(t *testing.T) {
	if flavor() != MariaDB {
		t.Skip("only MariaDB eliminates tables without reading them")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	for _, c := range []struct {
		sql  string
		told int
	}{
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = a.k", 1},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON (a.k = b.id) AND b.m > 2 WHERE a.m < 3", 1},
		{"SELECT b.* FROM many a RIGHT JOIN many b ON a.u = b.m", 1},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = a.k LEFT JOIN many c ON c.id = b.m", 1},
		{"SELECT COUNT(*), SUM(a.m) FROM many a LEFT JOIN many b ON b.id = a.k", 1},
		{"SELECT a.* FROM many a LEFT JOIN many b ON b.id = 7 FOR UPDATE", 1},
		{"SELECT a.id, a.m FROM many a JOIN many b ON b.id = a.k", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.m = a.k", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id > a.k", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = b.k", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = a.k WHERE b.m IS NULL", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = a.k ORDER BY b.m", 2},
		{"SELECT * FROM many a LEFT JOIN many b ON b.id = a.k", 2},
		{"SELECT a.id, a.m, (SELECT MAX(k) FROM many c WHERE c.m = b.m) FROM many a LEFT JOIN many b ON b.id = a.k", 2},
		{"SELECT a.id, a.m FROM many a LEFT JOIN many b ON b.id = a.k LEFT JOIN many c ON c.m = b.m", 3},
	} {
		script := p.rewriter.Script(c.sql, p.catalog, p.session)
		plan := script.Plans[0]
		if plan.Coverage == history.CoverageOpaque || strings.Contains(c.sql, "(SELECT") && plan.Hidden-plan.Keys < c.told || !strings.Contains(c.sql, "(SELECT") && plan.Hidden-plan.Keys != c.told {
			t.Errorf("%s: %d columns, coverage %q (%s), want %d", c.sql, plan.Hidden-plan.Keys, plan.Coverage, plan.Why, c.told)
		}
		tables := func(s *side, sql string) (names []string) {
			for _, r := range s.texts(t, "EXPLAIN "+sql) {
				if r[0] == "1" {
					names = append(names, r[2])
				}
			}
			slices.Sort(names)
			return names
		}
		if want, got := tables(p.plain, c.sql), tables(p.wired, script.SQL); !slices.Equal(want, got) {
			t.Errorf("%s: it reads %v, with our columns %v", c.sql, want, got)
		}
	}
}
