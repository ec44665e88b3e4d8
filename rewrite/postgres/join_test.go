package postgres_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// TestListsKeepPlans: beside the list of a join, the server plans the client's query as it does alone, and its rows come in the same order.
func TestListsKeepPlans(t *testing.T) {
	conn, _, _ := setUp(t)
	exec(t, conn, `CREATE TABLE part_of (id int PRIMARY KEY, whole int, n int); CREATE TABLE whole (id int PRIMARY KEY, n int, name text);
		INSERT INTO whole SELECT i, i % 7, 'w' || i % 50 FROM generate_series(1, 200) i; INSERT INTO part_of SELECT i, i * 7 % 200, i % 11 FROM generate_series(1, 3000) i;
		CREATE INDEX ON part_of (whole); CREATE INDEX ON whole (n); ANALYZE part_of, whole`)
	c := catalog(t, conn)
	r := postgres.New(rewrite.CaptureAuto)
	node := regexp.MustCompile(`^[ ]*(?:->  )?`)
	lists := 0
	for _, from := range []string{"part_of p JOIN whole w ON w.id = p.whole", "whole w JOIN part_of p ON w.id = p.whole", "whole w, part_of p", "whole w LEFT JOIN part_of p ON p.whole = w.id"} {
		for _, where := range []string{"w.n = 3", "w.name = 'w7' AND p.n < 4", "w.id = 5", "p.id BETWEEN 10 AND 60", "w.n = 3 AND p.n = 2", "w.n > 2 AND w.name <> 'w1'"} {
			for _, behind := range []string{"", " ORDER BY w.n", " LIMIT 7", " ORDER BY p.n DESC LIMIT 3"} {
				if strings.Contains(from, ",") {
					where += " AND w.id = p.whole"
				}
				sql := fmt.Sprintf("SELECT p.id, w.name FROM %s WHERE %s%s", from, where, behind)
				sc := r.Script(sql, c, postgres.Session{})
				if sc.Plans[0].Lists == 0 {
					continue
				}
				lists++
				own, sent := rows(t, conn, "EXPLAIN (COSTS off) "+sql), rows(t, conn, "EXPLAIN (COSTS off) "+sc.SQL)
				nodes := func(plan [][]string) (text string) { // without those that compute our columns
					for _, line := range plan {
						if name := node.ReplaceAllString(line[0], ""); name != "Result" {
							text += name + "\n"
						}
					}
					return text
				}
				all, want := nodes(sent), nodes(own)
				if !strings.Contains(all, want) {
					t.Errorf("%s\nis planned as\n%s\nand beside a list as\n%s", sql, want, all)
				}
				mine, got := rows(t, conn, sql), rows(t, conn, sc.SQL)
				if len(mine) == 0 && len(got) == 1 {
					continue // the row that was made
				}
				for i := range mine {
					if len(got) != len(mine) || got[i][0] != mine[i][0] || got[i][1] != mine[i][1] {
						t.Errorf("%s: row %d differs", sql, i)
						break
					}
				}
			}
		}
	}
	if lists < 40 {
		t.Errorf("only %d queries have lists", lists)
	}
}
