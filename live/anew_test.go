package live_test

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestMadeAnew: two requests read rows and write values that come from them in other ways than by an UPDATE of one row: they delete a row and insert it anew, replace
// it, or write several rows by their values. The near misses check what they had read, read again, or write something else.
func TestMadeAnew(t *testing.T) {
	newStand(t, 2, items).anew()
}

// TestMadeAnewOnMariaDB is TestMadeAnew there, where the new row has another number.
func TestMadeAnewOnMariaDB(t *testing.T) {
	openStand(t, testserver.Family(t).Database(t), true, 2, items).anew()
}

// remakes are pairs of requests, as statements of "a" and "b"; those of "p" are for PostgreSQL, those of "m" for the MySQL family. Want is "lost" or
// "possible" or empty.
var remakes = []struct{ name, steps, want string }{
	{"deleted and inserted", `a DELETE FROM item WHERE id = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "lost"},
	{"deleted and inserted, without columns", `a DELETE FROM item WHERE id = 1
		a INSERT INTO item VALUES (1, 'tea', 8, 1, NULL)
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item VALUES (1, 'tea', 7, 1, NULL)`, "lost"},
	{"deleted and inserted in a transaction", `a BEGIN
		a DELETE FROM item WHERE id = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		a COMMIT
		b BEGIN
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)
		b COMMIT`, "lost"},
	{"an UPDATE, then deleted and inserted", `a UPDATE item SET stock = 8 WHERE id = 1
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "lost"},
	{"deleted and inserted, then an UPDATE", `a DELETE FROM item WHERE id = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		b UPDATE item SET stock = 7 WHERE id = 1`, "lost"},
	{"another column", `a UPDATE item SET name = 'pot' WHERE id = 1
		b UPDATE item SET stock = 7 WHERE id = 1`, ""},
	{"another column, which the new row has as it was", `a UPDATE item SET name = 'pot' WHERE id = 1
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "lost"},
	{"inserted with the values that it had", `a DELETE FROM item WHERE id = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 10, 1)
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, ""},
	{"deleted by the one, inserted by the other", `a DELETE FROM item WHERE id = 1
		b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "possible"},
	{"deleted with the old value", `a DELETE FROM item WHERE id = 1 AND stock = 10
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		b DELETE FROM item WHERE id = 1 AND stock = 10`, ""},
	{"deleted with a version", `a DELETE FROM item WHERE id = 1 AND version = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 2)
		b DELETE FROM item WHERE id = 1 AND version = 1
		b SELECT * FROM item WHERE id = 1
		b DELETE FROM item WHERE id = 1 AND version = 2
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 3)`, ""},
	{"another row", `a DELETE FROM item WHERE id = 1
		a INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		b DELETE FROM item WHERE id = 2
		b INSERT INTO item (id, name, stock, version) VALUES (2, 'cup', 19, 1)`, ""},
	{"the one writes what it reads after the other", `b DELETE FROM item WHERE id = 1
		b INSERT INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		a BEGIN
		p a SELECT * FROM item WHERE id = 1 FOR UPDATE
		m a SELECT * FROM item WHERE id = 1 FOR UPDATE
		a UPDATE item SET stock = stock - 1 WHERE id = 1 AND stock = 8
		a COMMIT`, ""},
	{"replaced", `m a REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		m b REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "lost"},
	{"several replaced", `m a REPLACE INTO item VALUES (1, 'tea', 8, 1, NULL), (2, 'cup', 19, 1, NULL)
		m b REPLACE INTO item VALUES (1, 'tea', 7, 1, NULL), (2, 'cup', 18, 1, NULL)`, "lost"},
	{"an UPDATE, then replaced", `m a UPDATE item SET stock = 8 WHERE id = 1
		m b REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, "lost"},
	{"replaced, then an UPDATE", `m a REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		m b UPDATE item SET stock = 7 WHERE id = 1`, "lost"},
	{"replaced by what was there", `m a REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 10, 1)
		m b REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 7, 1)`, ""},
	{"another row replaced", `m a REPLACE INTO item (id, name, stock, version) VALUES (1, 'tea', 8, 1)
		m b REPLACE INTO item (id, name, stock, version) VALUES (3, 'pot', 7, 1)`, ""},
	{"several rows by an upsert", `p a INSERT INTO item (id, name, stock) VALUES (1, '', 8), (2, '', 18) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		p b INSERT INTO item (id, name, stock) VALUES (1, '', 7), (2, '', 17) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		m a INSERT INTO item (id, name, stock) VALUES (1, '', 8), (2, '', 18) ON DUPLICATE KEY UPDATE stock = VALUES(stock)
		m b INSERT INTO item (id, name, stock) VALUES (1, '', 7), (2, '', 17) ON DUPLICATE KEY UPDATE stock = VALUES(stock)`, "lost"},
	{"several rows, of which one is as it was", `p a INSERT INTO item (id, name, stock) VALUES (1, '', 10), (2, '', 18) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		p b INSERT INTO item (id, name, stock) VALUES (1, '', 7), (4, '', 17) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		m a INSERT INTO item (id, name, stock) VALUES (1, '', 10), (2, '', 18) ON DUPLICATE KEY UPDATE stock = VALUES(stock)
		m b INSERT INTO item (id, name, stock) VALUES (1, '', 7), (4, '', 17) ON DUPLICATE KEY UPDATE stock = VALUES(stock)`, ""},
	{"an upsert without columns", `p a INSERT INTO item VALUES (1, '', 8) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		p b INSERT INTO item VALUES (1, '', 7) ON CONFLICT (id) DO UPDATE SET stock = excluded.stock
		m a INSERT INTO item VALUES (1, '', 8, 1, 1) ON DUPLICATE KEY UPDATE stock = VALUES(stock)
		m b INSERT INTO item VALUES (1, '', 7, 1, 1) ON DUPLICATE KEY UPDATE stock = VALUES(stock)`, "lost"},
	{"branches of CASE", `a UPDATE item SET stock = CASE id WHEN 1 THEN 8 WHEN 2 THEN 18 END WHERE id IN (1, 2)
		b UPDATE item SET stock = CASE WHEN (item.id = 1) THEN 7 WHEN (item.id = 2) THEN 17 ELSE NULL END WHERE item.id IN (1, 2)`, "lost"},
	{"branches of CASE for other rows", `a UPDATE item SET stock = CASE id WHEN 1 THEN 8 ELSE stock END WHERE id IN (1, 2)
		b UPDATE item SET stock = CASE id WHEN 2 THEN 17 ELSE stock END WHERE id = 2`, ""},
	{"branches of CASE, and the version", `a UPDATE item SET stock = CASE id WHEN 1 THEN 8 END, version = 2 WHERE id = 1 AND version = 1
		b UPDATE item SET stock = CASE id WHEN 1 THEN 7 END, version = 2 WHERE id = 1 AND version = 1`, ""},
	{"rows of VALUES", `p a UPDATE item SET stock = v.n FROM (VALUES (1, 8), (2, 18)) AS v(id, n) WHERE item.id = v.id
		p b UPDATE item AS t SET stock = v.n::int FROM (VALUES (7, 1), (17, 2)) AS v(n, id) WHERE v.id = t.id`, "lost"},
	{"rows of VALUES in front", `p a UPDATE item SET stock = 8 WHERE id = 1
		p b WITH v (id, n) AS (VALUES (1, 7), (2, 17)) UPDATE item AS t SET stock = v.n FROM v WHERE t.id = v.id`, "lost"},
	{"rows of VALUES with a version", `p a UPDATE item SET stock = v.n, version = 2 FROM (VALUES (1, 8, 1)) AS v(id, n, version) WHERE item.id = v.id AND item.version = v.version
		p b UPDATE item SET stock = v.n, version = 2 FROM (VALUES (1, 7, 1)) AS v(id, n, version) WHERE item.id = v.id AND item.version = v.version`, ""},
	{"other rows of VALUES", `p a UPDATE item SET stock = v.n FROM (VALUES (1, 8)) AS v(id, n) WHERE item.id = v.id
		p b UPDATE item SET stock = v.n FROM (VALUES (2, 18)) AS v(id, n) WHERE item.id = v.id`, ""},
}

func (s *stand) anew() {
	for _, tt := range remakes {
		for _, q := range []string{"DELETE FROM item", "INSERT INTO item VALUES (1, 'tea', 10, 1, NULL), (2, 'cup', 20, 1, NULL), (3, 'pot', 30, 1, NULL)"} {
			if _, err := ask(s.sessions[0], q); err != nil {
				s.t.Fatal(err)
			}
		}
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared(true)
		played := 0
		send := func(who, sql string) {
			if _, err := ask(s.sessions[strings.Index("ab", who)], fmt.Sprintf("/*request_id='%s'*/ %s", who, sql)); err != nil {
				s.t.Fatalf("%s: %s: %v", tt.name, sql, err)
			}
		}
		for id := 1; id <= 2; id++ {
			for _, who := range []string{"a", "b"} {
				send(who, fmt.Sprintf("SELECT * FROM item WHERE id = %d", id))
			}
		}
		for line := range strings.SplitSeq(tt.steps, "\n") {
			who, sql, _ := strings.Cut(strings.TrimSpace(line), " ")
			if who == "p" || who == "m" {
				if (who == "m") != s.family {
					continue
				}
				who, sql, _ = strings.Cut(sql, " ")
			}
			send(who, sql)
			played++
		}
		if played == 0 {
			continue
		}
		for _, c := range s.sessions { // MariaDB tells with the next statement which row the last one wrote
			if _, err := ask(c, "SELECT count(*) FROM item WHERE id = 7"); err != nil {
				s.t.Fatal(err)
			}
		}
		r := s.proxy.Checker.Result()
		got := strings.ReplaceAll(names(r), "G-single-request lost update between requests", "lost")
		for what := range r.Coverage.Possibly {
			if got == "" && strings.HasPrefix(what, "lost update") {
				got = "possible"
			}
		}
		if short, _, _ := strings.Cut(got, ","); short != tt.want {
			s.t.Errorf("%s: found %q, want %q; %s", tt.name, got, tt.want, r.Coverage)
		}
	}
}
