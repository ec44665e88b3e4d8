package prose

import (
	"strings"
	"testing"
)

// TestQuery leaves out long select lists, of subqueries too, and nothing else.
func TestQuery(t *testing.T) {
	const list = "stock.id AS stock_id, stock.name AS stock_name, stock.n AS stock_n"
	for sql, want := range map[string]string{
		"SELECT " + list + " FROM stock WHERE stock.id = 1 FOR UPDATE":                                                                       "SELECT ... FROM stock WHERE stock.id = 1 FOR UPDATE",
		"SELECT id, n FROM stock WHERE id = 1":                                                                                               "SELECT id, n FROM stock WHERE id = 1",
		"SELECT count(*) AS n FROM (SELECT " + list + " FROM stock WHERE stock.n > 1) AS x WHERE n > 2":                                      "SELECT count(*) AS n FROM (SELECT ... FROM stock WHERE stock.n > 1) AS x WHERE n > 2",
		"SELECT (SELECT max(x) FROM y WHERE y.a = 'from here to there'), extract(year from z), coalesce(a, b) FROM stock WHERE stock.id = 1": "SELECT ... FROM stock WHERE stock.id = 1",
		"UPDATE stock SET name = 'select a long list of things from all of the shelves of this house' WHERE id = 1":                          "UPDATE stock SET name = 'select a long list of things from all of the shelves of this house' WHERE id = 1",
		"INSERT INTO stock (id, name) SELECT " + list + " FROM stock AS other WHERE id = 1":                                                  "INSERT INTO stock (id, name) SELECT ... FROM stock AS other WHERE id = 1",
		"SELECT '" + strings.Repeat("x", 90):                                                                                                 "SELECT '" + strings.Repeat("x", 90),
	} {
		if got := Query(sql, 0); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", sql, got, want)
		}
	}
	if got := Query("SELECT "+list+" FROM stock WHERE stock.id = 1", 20); got != "SELECT ... FROM s..." {
		t.Errorf("cut: %s", got)
	}
}
