package txcheck

import (
	"testing"

	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// TestPasses: an UPDATE that waited at READ COMMITTED may do otherwise when it is executed again on InnoDB, as MDEV-26643 does once in some hundred times.
func TestPasses(t *testing.T) {
	for _, tt := range []struct {
		product, level, verb string
		waited, want         bool
	}{
		{"mariadb", product.ReadCommitted, "update", true, true},
		{"mysql", product.ReadUncommitted, "update", true, true},
		{"mariadb", product.ReadCommitted, "update", false, false},
		{"mariadb", product.ReadCommitted, "delete", true, false},
		{"mariadb", product.RepeatableRead, "update", true, false},
		{"postgres", product.ReadCommitted, "update", true, false},
	} {
		p, ok := dbmsOf(product.Of(tt.product))
		st := &schedule.Step{Waited: tt.waited, Statement: statement.Statement{Verb: tt.verb}}
		if got := p.passes(st, tt.level); !ok || got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
