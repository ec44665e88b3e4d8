package mysql

import (
	"cmp"
	"errors"
	"reflect"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// TestExistenceOfSeveral: of several rows that make EXISTS true, each is told as one that the server may have met. If there is one only, the server met it; more than
// soleRows-1 are not told.
func TestExistenceOfSeveral(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("subqueries are not seen there")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	sole, several, many := 0, 0, 0
	for _, head := range []string{"SELECT EXISTS (SELECT id FROM many/**/)", "SELECT 1 one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM many/**/) LIMIT 1"} {
		for _, where := range conditions {
			if where != "" {
				where = " WHERE " + where
			}
			sql := strings.ReplaceAll(head, "/**/", where)
			plan, accesses, err := p.told(t, sql)
			if plan.Coverage != exact {
				continue
			}
			fulfil := map[string]bool{}
			for _, r := range p.wired.texts(t, "SELECT "+keyOf(p.relation("many"))+" FROM many"+where) {
				fulfil[r[0]] = true
			}
			switch n := len(fulfil); {
			case n >= soleRows:
				if many++; len(accesses) > 0 || !errors.Is(err, rewrite.ErrPartial) {
					t.Errorf("%s: %v told of %d rows, error %v", sql, accesses, n, err)
				}
				continue
			case n == 1:
				sole++
			case n > 1:
				several++
			}
			if err != nil || len(accesses) != len(fulfil) {
				t.Errorf("%s: %v told of %d rows, error %v", sql, accesses, len(fulfil), err)
			}
			for _, a := range accesses {
				if !fulfil[a.Row.Key] || a.Approx != (len(fulfil) > 1) {
					t.Errorf("%s: %+v told of %v", sql, a, fulfil)
				}
			}
		}
	}
	if sole < 10 || several < 10 || many < 10 {
		t.Errorf("%d sole rows, %d times several, %d times too many", sole, several, many)
	}
}

// TestExistenceInJoins: a row that is in all combinations which make EXISTS true was read; one that is in some of them may have been.
func TestExistenceInJoins(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("subqueries are not seen there")
	}
	p := newPair(t, 0)
	makeMany(t, p)
	certain, uncertain := 0, 0
	for _, where := range []string{"a.id=5", "a.k=3 AND a.id<100", "a.k IN (3,4) AND a.id<60", "a.id IN (3,13,4)", "b.id=2 AND a.id<90", "b.id>1 AND a.id<8", "a.id<200", "a.id=5000", "a.id IN (13,23)", "a.k=4 AND a.id<50", "a.id=7"} {
		from := "FROM many a JOIN many b ON b.id=a.k WHERE " + where
		_, accesses, err := p.told(t, "SELECT EXISTS (SELECT a.id "+from+") AS found")
		key := keyOf(p.relation("many"))
		combinations := p.wired.texts(t, "SELECT "+strings.ReplaceAll(key, "`many`", "a")+","+strings.ReplaceAll(key, "`many`", "b")+" "+from)
		if len(combinations) >= soleRows {
			if len(accesses) > 0 || !errors.Is(err, rewrite.ErrPartial) {
				t.Errorf("%s: %v told of %d combinations, error %v", where, accesses, len(combinations), err)
			}
			continue
		}
		var sides [2]map[string]bool
		for i := range sides {
			sides[i] = map[string]bool{}
			for _, c := range combinations {
				sides[i][c[i]] = true
			}
		}
		told := map[string]bool{}
		for _, a := range accesses {
			in := [2]bool{sides[0][a.Row.Key], sides[1][a.Row.Key]}
			told[a.Row.Key] = true
			if !a.Approx && !(in[0] && len(sides[0]) == 1 || in[1] && len(sides[1]) == 1) || a.Approx && !(in[0] && len(sides[0]) > 1 || in[1] && len(sides[1]) > 1) {
				t.Errorf("%s: %+v told of %v", where, a, combinations)
			}
			if a.Approx {
				uncertain++
			} else {
				certain++
			}
		}
		for i := range sides {
			for k := range sides[i] {
				if !told[k] {
					t.Errorf("%s: %s is not told", where, k)
				}
			}
		}
		if err != nil {
			t.Errorf("%s: %v", where, err)
		}
	}
	if certain < 4 || uncertain < 10 {
		t.Errorf("%d certain, %d uncertain", certain, uncertain)
	}
}

// told gives what the changed text of a query tells, of which the client sees the same.
func (p *pair) told(t *testing.T, sql string) (plan *rewrite.Plan, list []history.Access, failed error) {
	t.Helper()
	script := p.rewriter.Script(sql, p.catalog, p.session)
	plan = script.Plans[0]
	want, got := p.plain.exec(t, sql), p.wired.exec(t, script.SQL)
	for i, row := range got.rows {
		n := len(row) - plan.Hidden
		var err error
		if plan.Hidden > 0 {
			list, err = plan.DecodeRow(list, row[n:], i == 0)
		}
		failed, got.rows[i] = cmp.Or(failed, err), row[:n]
	}
	if got.columns = got.columns[:len(want.columns)]; !reflect.DeepEqual(want.rows, got.rows) || (want.status^got.status)&0x20 != 0 || want.warnings != got.warnings {
		t.Errorf("%s: %q, status %x, %d warnings; alone %q, %x, %d", sql, got.rows, got.status, got.warnings, want.rows, want.status, want.warnings)
	}
	return plan, list, failed
}
