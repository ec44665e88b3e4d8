package mysql

import (
	"strings"
	"testing"

	"wirecheck/rewrite"
)

// TestPlansOutliveReadings reads the tables again: a plan stays while what it names is as it was, and one that names a
// table that changed is made again in its place.
func TestPlansOutliveReadings(t *testing.T) {
	read := func(columns ...string) map[rewrite.Name]*rewrite.Known {
		rows := [][]string{{"V", "10.11.19-MariaDB", "shop", "0", "", "", ""}}
		for _, table := range []string{"a", "b"} {
			rows = append(rows, []string{"T", "shop", table, "BASE TABLE", "InnoDB", "", ""})
			for i, c := range []string{"id", "wc_row_id", "wc_writers"} {
				rows = append(rows, []string{"C", "shop", table, c, []string{"int(11)", "bigint(20) unsigned", "varchar(168)"}[i], "INVISIBLE", string(rune('1' + i))})
			}
		}
		for i, c := range columns {
			rows = append(rows, []string{"C", "shop", "b", c, "int(11)", "", string(rune('4' + i))})
		}
		_, known, err := ReadCatalog(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		return known
	}
	c := rewrite.NewCatalog(rewrite.Server{Version: "10.11.19-MariaDB"}, nil)
	c.Learn(read(), 1, true)
	r, s := New(MariaDB, rewrite.CaptureAuto), Session{Database: "shop"}
	texts := []string{"SELECT id FROM a -- one", "SELECT id FROM b -- two", "CREATE TABLE new (x int)"}
	var first []*rewrite.Script
	for _, sql := range texts {
		first = append(first, r.Prepare(sql, c, s))
	}
	n := r.cache.Len()
	for i, again := range []map[rewrite.Name]*rewrite.Known{read(), read("later"), read()} {
		c.Learn(again, uint64(2+i), true)
		for j, sql := range texts {
			if got, want := r.Prepare(sql, c, s) == first[j], i == 0 || j != 1; got != want {
				t.Errorf("reading %d, %s: the plan is the first one: %v, want %v", i+1, sql, got, want)
			}
		}
		if r.cache.Len() != n {
			t.Errorf("reading %d: %d plans are kept, want %d", i+1, r.cache.Len(), n)
		}
	}
}

// TestNamesQuery: on MySQL the tables of a schema share one part of the question, so that it opens few of the server's own tables; on MariaDB each has its own.
func TestNamesQuery(t *testing.T) {
	names := []rewrite.Name{{Schema: "shop", Name: "a"}, {Schema: "shop", Name: "b"}, {Schema: "other", Name: "a"}, rewrite.Parents}
	for flavor, want := range map[Flavor]int{MySQL: 2, MariaDB: 3, TiDB: 3} {
		got := NamesQuery(names, flavor)
		for _, view := range []string{"TABLES", "COLUMNS", "VIEWS", "STATISTICS", "TRIGGERS", "COLUMN_PRIVILEGES"} {
			if n := strings.Count(got, "information_schema."+view+" "); n != want {
				t.Errorf("%v: %d parts of %s, want %d: %s", flavor, n, view, want, got)
			}
		}
		if n := strings.Count(got, "KEY_COLUMN_USAGE"); n > 0 != (flavor != TiDB) || n > want {
			t.Errorf("%v: %d parts for foreign keys: %s", flavor, n, got)
		}
	}
}
