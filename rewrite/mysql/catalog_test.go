package mysql

import (
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
