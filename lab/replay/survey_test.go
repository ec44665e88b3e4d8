package replay

import "testing"

// TestDumpCommand: each product's own program; a trace that names none is taken for MariaDB's.
func TestDumpCommand(t *testing.T) {
	for _, tt := range []struct{ product, want string }{
		{"postgres", "pg_dump --no-owner shop > snapshot.sql"},
		{"mariadb", "mariadb-dump --single-transaction --routines --triggers shop > snapshot.sql"},
		{"mysql", "mysqldump --single-transaction --routines --triggers shop > snapshot.sql"},
		{"", "mariadb-dump --single-transaction --routines --triggers shop > snapshot.sql"},
	} {
		v := &Survey{}
		if tt.product != "" {
			v.Products = []string{tt.product}
		}
		if got := v.DumpCommand("shop"); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.product, got, tt.want)
		}
	}
}
