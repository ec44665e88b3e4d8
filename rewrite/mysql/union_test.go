package mysql

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// TestUnionScans: UNION tells what its arms read, and the client sees the same rows in the same order.
func TestUnionScans(t *testing.T) {
	if flavor() != MySQL {
		t.Skip("there the log tells")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	told, over := 0, 0
	for _, form := range []string{"SELECT c FROM many/**/ UNION SELECT note FROM many WHERE id < 5", "SELECT id, note FROM many/**/ UNION ALL SELECT k, c FROM many m WHERE k = 3", "(SELECT note n FROM many/**/) UNION (SELECT c FROM many WHERE u = 10) ORDER BY n DESC",
		"SELECT a.note FROM many a JOIN many b ON b.id = a.k AND b.id < 4 UNION SELECT c FROM many/**/ UNION SELECT note FROM many WHERE id = 1"} {
		for _, where := range conditions {
			if where != "" {
				where = " WHERE " + where
			}
			sql := strings.ReplaceAll(form, "/**/", where)
			script := p.rewriter.Script(sql, p.catalog, p.session)
			plan := script.Plans[0]
			if plan.Coverage != history.CoverageExact { // the condition may warn
				continue
			}
			want, got := p.plain.exec(t, sql), p.wired.exec(t, script.SQL)
			var accesses []history.Access
			for i, row := range got.rows {
				n := len(row) - plan.Hidden
				list, err := plan.DecodeRow(nil, row[n:], true)
				if accesses = list; errors.Is(err, rewrite.ErrPartial) {
					over, accesses = over+1, nil
				} else if err != nil {
					t.Fatal(sql, err)
				}
				got.rows[i] = row[:n]
			}
			got.columns = got.columns[:len(want.columns)]
			for _, r := range []*reply{&want, &got} {
				for i, c := range r.columns {
					r.columns[i] = []byte(strings.ReplaceAll(strings.ReplaceAll(string(c), string(lenenc([]byte(p.plain.db.Name))), ""), string(lenenc([]byte(p.wired.db.Name))), ""))
				}
			}
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(reply{}), cmpopts.IgnoreFields(reply{}, "status")); diff != "" || (want.status^got.status)&0x20 != 0 {
				t.Errorf("%s: status %x and %x (-plain +wired):\n%s", sql, want.status, got.status, diff)
			}
			if len(accesses) == 0 {
				continue
			}
			told++
			var read, fulfil []string
			for _, a := range accesses {
				read = append(read, a.Row.Key)
			}
			for _, where := range []string{where, map[bool]string{true: " WHERE id < 5", false: ""}[strings.Contains(sql, "id < 5")], map[bool]string{true: " WHERE k = 3", false: ""}[strings.Contains(sql, "WHERE k = 3")],
				map[bool]string{true: " WHERE u = 10", false: ""}[strings.Contains(sql, "WHERE u = 10")], map[bool]string{true: " WHERE id = 1 OR id < 4 OR k < 4", false: ""}[strings.Contains(sql, "JOIN")]} {
				if where == "" {
					continue
				}
				for _, r := range p.wired.texts(t, "SELECT "+keyOf(p.relation("many"))+" FROM many"+where) {
					fulfil = append(fulfil, r[0])
				}
			}
			for _, list := range []*[]string{&read, &fulfil} {
				slices.Sort(*list)
				*list = slices.Compact(*list)
			}
			if !strings.Contains(sql, "JOIN") && !slices.Equal(read, fulfil) || slices.ContainsFunc(read, func(k string) bool { return !slices.Contains(fulfil, k) }) {
				t.Errorf("%s: %d rows told, %d fulfil the conditions", sql, len(read), len(fulfil))
			}
		}
	}
	if t.Logf("%d told, %d rows of answers to too many", told, over); told < 40 || over == 0 {
		t.Error("too few")
	}
}
