package mysql

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
)

// A query that an index answers alone is executed by the plan that it has without us, and brings its rows in the same order.
func TestCoveredReadsKeepTheirPlans(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("covered reads are not seen there")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	explain := func(s *side, sql string) (lines []string) {
		for _, r := range s.texts(t, "EXPLAIN "+sql) {
			if r[0] == "1" { // ours is a subquery
				lines = append(lines, strings.NewReplacer("SIMPLE", "PRIMARY", s.db.Name, "@@").Replace(strings.Join(r, "|")))
			}
		}
		return lines
	}
	const at = "/**/"
	n := 0
	for _, head := range []string{
		"SELECT id FROM many" + at, "SELECT k, id FROM many" + at + " LIMIT 7", "SELECT m, k FROM many" + at + " ORDER BY k DESC LIMIT 5", "SELECT k FROM many" + at + " ORDER BY m",
		"SELECT COUNT(*) FROM many" + at, "SELECT COUNT(DISTINCT k), SUM(m) FROM many" + at, "SELECT k, COUNT(*) FROM many" + at + " GROUP BY k", "SELECT m, SUM(k) s FROM many" + at + " GROUP BY m ORDER BY s DESC, m LIMIT 3",
		"SELECT many.id, o.k FROM many JOIN many o ON o.m = many.k" + at + " LIMIT 9", "SELECT many.id, o.id FROM many LEFT JOIN many o ON o.u = many.k" + at + " ORDER BY many.m, many.id",
	} {
		for _, where := range []string{"", "k=3", "k BETWEEN 2 AND 3", "k IN (1,2) AND m=4", "id<9", "m=3 AND k>2", "u=10", "u<20"} {
			if where != "" {
				where = " WHERE " + strings.NewReplacer("k", "many.k", "id", "many.id", "m=", "many.m=", "u", "many.u").Replace(where)
			}
			sql := strings.ReplaceAll(head, at, where)
			script := p.rewriter.Script(sql, p.catalog, p.session)
			plan := script.Plans[0]
			if flavor() == MariaDB && plan.Coverage != history.CoverageExact {
				t.Errorf("%s: coverage %q: %s", sql, plan.Coverage, plan.Why)
			}
			if plan.Coverage != history.CoverageExact || !strings.Contains(script.SQL, "wc_k") {
				continue
			}
			n++
			if diff := cmp.Diff(explain(p.plain, sql), explain(p.wired, script.SQL)); diff != "" {
				t.Errorf("%s: plans (-plain +wired):\n%s", script.SQL, diff)
			}
			p.wired.exec(t, SetToken("T1.1.x"))
			want, got := p.plain.exec(t, sql), p.wired.exec(t, script.SQL)
			for i := range got.rows {
				got.rows[i] = got.rows[i][:len(got.rows[i])-plan.Hidden]
			}
			if diff := cmp.Diff(want.rows, got.rows); diff != "" || want.status != got.status {
				t.Errorf("%s: status %x and %x (-plain +wired):\n%s", script.SQL, want.status, got.status, diff)
			}
		}
	}
	if n < 40 {
		t.Errorf("only %d statements find rows by their keys", n)
	}
	for _, sql := range []string{"SELECT id FROM many WHERE k=3", "SELECT COUNT(*) FROM many WHERE k=3", "SELECT a.id FROM many a JOIN many b ON a.k = b.m ORDER BY b.k"} {
		once := p.session
		once.Once = true
		if plan := p.rewriter.Script(sql, p.catalog, once).Plans[0]; plan.Coverage != history.CoverageOpaque || len(plan.Edits) > 0 {
			t.Errorf("%s where it may not read a row twice: %+v", sql, *plan)
		}
		if plan := p.rewriter.Script(sql+" FOR UPDATE", p.catalog, p.session).Plans[0]; plan.Coverage != history.CoverageOpaque || len(plan.Edits) > 0 {
			t.Errorf("%s FOR UPDATE: %+v", sql, *plan)
		}
	}
}
