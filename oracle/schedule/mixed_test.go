package schedule_test

import (
	"testing"

	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
)

// TestMixedLists: MySQL documents that a list in IN with quoted and unquoted values may give inconsistent results. Other lists, products and differences are not
// permitted.
func TestMixedLists(t *testing.T) {
	for _, test := range []struct {
		product, sql, name string
		permitted          bool
	}{
		{"mysql", "SELECT b FROM t WHERE a IN (18446744073709551615,'')", oracle.NameResult, true},
		{"mysql", "SELECT b FROM t WHERE a NOT IN ( ('x') , b, (-1.5))", oracle.NameResult, true},
		{"mysql", "SELECT b FROM t WHERE b IN ('2', TRUE)", oracle.NameResult, true},
		{"mysql", "SELECT b FROM t WHERE b = 'a' AND a IN (\"it's\", 5)", oracle.NameResult, true},
		{"mysql", "SELECT b FROM t WHERE a IN (1.5, 18446744073709551615)", oracle.NameResult, false},
		{"mysql", "SELECT b FROM t WHERE a IN ('1', '2') AND b IN (1, 2)", oracle.NameResult, false},
		{"mysql", "SELECT b FROM t WHERE a IN (X'31', DATE '2024-01-02', 1)", oracle.NameResult, false},
		{"mysql", "SELECT b FROM t WHERE b = 'a IN (1, ''x'')'", oracle.NameResult, false},
		{"mysql", "SELECT b FROM t WHERE a IN (SELECT 1) OR a = ''", oracle.NameResult, false},
		{"mysql", "SELECT b FROM t WHERE a IN (1, '')", oracle.NameError, false},
		{"mariadb", "SELECT b FROM t WHERE a IN (1, '')", oracle.NameResult, false},
		{"postgres", "SELECT b FROM t WHERE a IN (1, '')", oracle.NameResult, false},
	} {
		f := oracle.Finding{Kind: oracle.KindViolation, Promised: true, Name: test.name, Difference: &oracle.Difference{}}
		(&schedule.Schedule{Product: test.product}).Permit(&f, test.sql)
		if got := f.Kind == oracle.KindPermitted; got != test.permitted || f.Promised == got || (f.Difference.Cause != "") != got || (f.Source != "") != got {
			t.Errorf("%s: %s: permitted %v, %+v", test.product, test.sql, got, f)
		}
	}
}
