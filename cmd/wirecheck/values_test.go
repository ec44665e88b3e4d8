package main

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"wirecheck/anomaly"
	"wirecheck/history"
	"wirecheck/internal/shop"
	"wirecheck/internal/testserver"
	"wirecheck/oracle"
)

// TestValues: drivers hear which values they read and wrote over, also where parameters have them, and the remedies have the parameters' values.
// What the history has of answers is what the rows have, however a statement names, joins or computes columns.
func TestValues(t *testing.T) {
	t.Parallel()
	for _, engine := range testserver.Engines() {
		t.Run(engine, func(t *testing.T) {
			w := newWorld(t, engine, "CREATE TABLE coupon (id INT PRIMARY KEY, n INT, m VARCHAR(20), token VARCHAR(20))",
				"CREATE VIEW seen AS SELECT id, n AS m, m AS n FROM coupon", "INSERT INTO coupon VALUES (1, 101, 'm1', 'hush'), (2, 102, 'm2', 'hush'), (3, 103, 'm3', 'hush')")
			th := w.observe(t)
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			clients := [2]shop.Client{}
			for i := range clients {
				c, err := th.target.Connect(ctx, shop.Driver)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				clients[i] = c
			}
			do := func(c shop.Client, sql string, params ...any) {
				t.Helper()
				if engine == "postgres" {
					for i := range params {
						sql = strings.Replace(sql, "?", "$"+strconv.Itoa(i+1), 1)
					}
				}
				if _, err := c.Do(ctx, sql, params...); err != nil {
					t.Fatalf("%s: %v", sql, err)
				}
			}
			a, b := clients[0], clients[1]
			for _, sql := range []string{ // prepared, the WITH query makes MariaDB 10.11 wait without end
				"SELECT * FROM coupon", "SELECT n AS m, m AS n, id FROM coupon WHERE id = ?", "SELECT id, n + 1 AS n FROM coupon WHERE id = ?", "SELECT id, n FROM coupon WHERE id = 1 UNION ALL SELECT id + 1, n + 7 FROM coupon WHERE id = ?",
				"SELECT x.n, y.n FROM coupon x JOIN coupon y ON y.id = x.id + ?", "SELECT * FROM seen WHERE id = ?", "SELECT n FROM (SELECT id, id * 3 AS n FROM coupon) AS coupon WHERE id = ?",
				"SELECT id, (SELECT n FROM coupon WHERE id = 3) AS n FROM coupon WHERE id = ?", "SELECT id, max(n) AS n FROM coupon GROUP BY id HAVING id = ?", "SELECT x.id, y.n, y.m FROM coupon x LEFT JOIN coupon y ON y.id = x.id + ?",
				"SELECT DISTINCT n, id FROM coupon WHERE id < ?", "WITH coupon AS (SELECT id, 7 AS n FROM coupon) SELECT id, n FROM coupon WHERE id = 1", "SELECT id, n FROM coupon WHERE id = ? FOR UPDATE", "SELECT coalesce(n, 0) AS n, id FROM coupon WHERE id = ?",
			} {
				if strings.Contains(sql, "?") {
					do(a, sql, 1)
					sql = strings.Replace(sql, "?", "1", 1)
				}
				do(a, sql)
			}
			for _, c := range clients {
				do(c, "BEGIN")
				do(c, "SELECT n FROM coupon WHERE id = ?", 2)
			}
			do(b, "UPDATE coupon SET n = ? WHERE id = ?", 4, 2)
			do(b, "COMMIT")
			do(a, "UPDATE coupon SET n = ? WHERE id = ?", 3, 2)
			do(a, "COMMIT")
			heard, err := a.Heard(ctx)
			if err != nil {
				t.Fatal(err)
			}
			said := strings.Join(heard, "\n")
			for _, want := range []string{"You read n = 102 in coupon id=2", "set n = 4 in coupon id=2", "You set n = 3 in coupon id=2", "1 = 3, ", "2 = 2", "when you set n to 3, it was no longer the 102",
				"UPDATE coupon SET n = n - 99 WHERE id = 2", "SELECT n FROM coupon WHERE id = 2 FOR UPDATE"} {
				if !strings.Contains(said, want) {
					t.Errorf("%q is not in\n%s", want, said)
				}
			}
			if f := pick(th.stop(t).findings, anomaly.LostUpdate); f == nil || len(f.Edges[0].FromValues) != 1 || f.Edges[0].FromValues[0] != (oracle.Value{Column: "n", Text: "102"}) {
				t.Errorf("found %+v", f)
			}
			values := 0
			for ev := range recorded(t, th.file) {
				for i := range ev.Accesses {
					values += rightValues(t, &ev, &ev.Accesses[i])
				}
			}
			if values < 10 {
				t.Errorf("%d rows with values", values)
			}
		})
	}
}

// rightValues compares what the history has of a row with what it has had all the time; it gives 1 if there are values.
func rightValues(t *testing.T, ev *history.Event, a *history.Access) int {
	id := strings.TrimPrefix(a.Name, "id=")
	for _, v := range oracle.Values(a.Values) {
		if v.Column == "id" && id == "" {
			id = v.Text
		}
		if want := map[string]string{"id": id, "n": "10" + id, "m": "m" + id}[v.Column]; id != "" && v.Text != want {
			t.Errorf("%s has %s = %s in row %q (%s)", ev.SQL, v.Column, v.Text, a.Values, a.Name)
		}
	}
	return min(1, len(a.Values))
}
