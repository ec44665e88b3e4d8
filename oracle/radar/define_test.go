package radar_test

import (
	"math/rand/v2"
	"testing"

	"wirecheck/lab/generate"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
	"wirecheck/statement/sqlite"
)

// TestDefineGenerated reads the definitions of random databases: each is understood, and what remains has no optional metadata and
// stays as it is when it is read again.
func TestDefineGenerated(t *testing.T) {
	for _, dialect := range generate.Dialects() {
		define := mysql.Define
		switch dialect {
		case generate.Postgres:
			define = postgres.Define
		case generate.SQLite:
			define = sqlite.Define
		}
		kinds := map[string]int{}
		for seed := range uint64(200) {
			r := rand.New(rand.NewPCG(seed, 3))
			g, err := generate.New(dialect, generate.Limits{Columns: 5}, r.IntN)
			if err != nil {
				t.Fatal(err)
			}
			for _, st := range g.Database().Setup {
				if st.Kind != generate.KindSchema {
					continue
				}
				d := define(st.SQL)
				kinds[d.Kind]++
				if d.Why != "" {
					t.Errorf("%s, seed %d: %s: not understood: %s", dialect, seed, st.SQL, d.Why)
					continue
				}
				if d.Raw == "" {
					continue
				}
				again := define(d.Raw)
				if again.Why != "" || again.Raw != d.Raw || len(again.Keys)+len(again.Configs) > 0 || len(again.Columns) != len(d.Columns) {
					t.Errorf("%s, seed %d: %s\nremains %s\nread again %+v", dialect, seed, st.SQL, d.Raw, again)
				}
				for i, c := range again.Columns {
					if len(c.Constraints) > 0 || c.NotNull || c.Generated || c.Automatic || c.Default || !same(c, d.Columns[i]) {
						t.Errorf("%s, seed %d: column %s of %s: %+v", dialect, seed, c.Name, d.Raw, c)
					}
				}
			}
		}
		if kinds["create table"] < 200 || kinds["create index"] < 50 {
			t.Errorf("%s: %v", dialect, kinds)
		}
	}
}

func same(a, b statement.ColumnDefinition) bool {
	return a.Name == b.Name && a.Type == b.Type && a.Invisible == b.Invisible
}
