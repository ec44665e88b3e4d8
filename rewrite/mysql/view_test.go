package mysql

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/rewrite"
)

// TestViewColumns: a column of a view stands for that of the table that it shows, and one that it computes for none; not where the name of the view in the
// answer is that of another table of the query.
func TestViewColumns(t *testing.T) {
	if flavor() == TiDB {
		t.Skip("views are not seen there")
	}
	p := newPair(t, 0)
	of := func(table string, names ...string) map[string]rewrite.Shows {
		columns := map[string]rewrite.Shows{}
		for i := 0; i < len(names); i += 2 {
			columns[names[i]] = rewrite.Shows{Table: p.wired.db.Name + "." + table, Name: names[i+1]}
		}
		return columns
	}
	for _, tt := range []struct {
		sql, view, alias string
		want             map[string]rewrite.Shows
	}{
		{"SELECT * FROM rich", "rich", "rich", of("account", "id", "id", "owner", "owner", "balance", "balance")},
		{"SELECT * FROM richer x", "richer", "x", of("account", "rid", "id")},
		{"SELECT * FROM richer pair, pair b", "richer", "", of("account", "rid", "id")}, // on MariaDB
		{"SELECT * FROM nameless", "nameless", "", nil},
	} {
		got := p.rewriter.Script(tt.sql, p.catalog, p.session).Plans[0].Views
		name := tt.view
		if flavor() == MariaDB {
			name = tt.alias
		}
		want := map[string]map[string]rewrite.Shows{p.wired.db.Name + "." + name: tt.want}
		if name == "" || tt.want == nil {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" && !(want == nil && len(got) == 0) {
			t.Errorf("%s (-want +got):\n%s", tt.sql, diff)
		}
	}
}
