package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestExistence: SELECT EXISTS of a whole key tells the row that makes it true, and the client sees the same. Of other conditions the row is not asked for.
func TestExistence(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("subqueries are not seen there")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	found, none, others := 0, 0, 0
	for _, head := range []string{"SELECT EXISTS (SELECT * FROM many/**/) AS found", "SELECT NOT EXISTS (SELECT 1 FROM many/**/) `free`;", "SELECT EXISTS(SELECT * FROM many m/**/)e", "SELECT EXISTS (SELECT 1 FROM many FORCE INDEX (k)/**/ -- end\n) AS 'e'"} {
		for _, where := range conditions {
			if where != "" {
				where = " WHERE " + where
			}
			sql := strings.ReplaceAll(head, "/**/", strings.NewReplacer("id", "m.id", "note", "m.note").Replace(where))
			if !strings.Contains(head, " m/") {
				sql = strings.ReplaceAll(head, "/**/", where)
			}
			script := p.rewriter.Script(sql, p.catalog, p.session)
			plan := script.Plans[0]
			if !strings.Contains(script.SQL, "wc_e.") {
				others++
				continue
			}
			if plan.Hidden != 1 || plan.Coverage != exact || plan.Log {
				t.Fatalf("%s: %+v", sql, *plan)
			}
			want, got := p.plain.exec(t, sql), p.wired.exec(t, script.SQL)
			list, err := plan.DecodeRow(nil, got.rows[0][1:], true)
			got.columns, got.rows[0] = got.columns[:1], got.rows[0][:1]
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(reply{}), cmpopts.IgnoreFields(reply{}, "status")); diff != "" || err != nil {
				t.Errorf("%s: %v (-plain +wired):\n%s", sql, err, diff)
			}
			if flavor() == MySQL && (want.status^got.status)&0x20 != 0 {
				t.Errorf("%s: status %x, alone %x", sql, got.status, want.status)
			}
			var fulfil []string
			for _, r := range p.wired.texts(t, "SELECT "+keyOf(p.relation("many"))+" FROM many"+where) {
				fulfil = append(fulfil, r[0])
			}
			switch {
			case len(list) != len(fulfil), len(list) > 0 && !slices.Contains(fulfil, list[0].Row.Key):
				t.Errorf("%s: %v told, %d fulfil the condition", sql, list, len(fulfil))
			case len(list) > 0:
				found++
			default:
				none++
			}
		}
	}
	if t.Logf("%d found one, %d none, %d are of other conditions", found, none, others); found < 10 || none < 4 || others < 100 {
		t.Error("too few")
	}
	for sql, hidden := range map[string]bool{"SELECT EXISTS (SELECT nosuch FROM many) e": false, "SELECT EXISTS (SELECT 1/0 FROM many) e": false, "SELECT EXISTS (SELECT id FROM many LIMIT 0) e": false, "SELECT EXISTS (SELECT id FROM many WHERE k > 3) + 1 e": false,
		"SELECT EXISTS (SELECT id FROM many FOR UPDATE) e": false, "SELECT EXISTS (SELECT a.id FROM many a LEFT JOIN many b ON b.id = a.k) e": false, "SELECT EXISTS (SELECT * FROM many a) e": false, "SELECT EXISTS (SELECT * FROM many a WHERE a.id = 3) e": true, "SELECT EXISTS (SELECT * FROM many a WHERE a.k = 3) e": false, "SELECT EXISTS (SELECT id FROM many) e": false} {
		if plan := p.rewriter.Script(sql, p.catalog, p.session).Plans[0]; strings.Contains(p.rewriter.Script(sql, p.catalog, p.session).SQL, "wc_e.") != hidden {
			t.Errorf("%s: %+v", sql, *plan)
		}
		p.check(t, strings.ReplaceAll(sql, "many", "item"))
	}
}
