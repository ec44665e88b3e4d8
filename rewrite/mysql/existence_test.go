package mysql

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestExistence: SELECT EXISTS tells the row that makes it true, and the client sees the same.
func TestExistence(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("subqueries are not seen there")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	found, some, none := 0, 0, 0
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
			case len(list) != min(len(fulfil), 1), len(list) > 0 && !slices.Contains(fulfil, list[0].Row.Key):
				t.Errorf("%s: %v told, %d fulfil the condition", sql, list, len(fulfil))
			case len(list) > 0:
				if found++; list[0].Approx != plan.Predicate {
					t.Errorf("%s: %v may be one of several: %t", sql, list[0], plan.Predicate)
				} else if plan.Predicate {
					some++
				}
			default:
				none++
			}
		}
	}
	if t.Logf("%d found one, %d of them perhaps of several; %d found none", found, some, none); some < 100 || found == some || none < 10 {
		t.Error("too few")
	}
	for sql, hidden := range map[string]bool{"SELECT EXISTS (SELECT nosuch FROM many) e": false, "SELECT EXISTS (SELECT 1/0 FROM many) e": false, "SELECT EXISTS (SELECT id FROM many LIMIT 0) e": false, "SELECT EXISTS (SELECT id FROM many WHERE k > 3) + 1 e": false,
		"SELECT EXISTS (SELECT id FROM many FOR UPDATE) e": false, "SELECT EXISTS (SELECT a.id FROM many a LEFT JOIN many b ON b.id = a.k) e": false, "SELECT EXISTS (SELECT * FROM many a) e": true, "SELECT EXISTS (SELECT id FROM many) e": false} {
		if plan := p.rewriter.Script(sql, p.catalog, p.session).Plans[0]; strings.Contains(p.rewriter.Script(sql, p.catalog, p.session).SQL, "wc_e.") != hidden {
			t.Errorf("%s: %+v", sql, *plan)
		}
		p.check(t, strings.ReplaceAll(sql, "many", "item"))
	}
}
