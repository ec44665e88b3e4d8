package postgres_test

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

// composer makes statements from pieces that are likely to be wrong together: most are valid, some are refused.
type composer struct{ *rand.Rand }

func (c composer) pick(list ...string) string { return list[c.IntN(len(list))] }

func (c composer) from() string {
	return c.pick("account a", "public.account AS a", "account a JOIN orders o ON o.account_id = a.id",
		"account a LEFT JOIN orders o ON o.account_id = a.id", "orders o RIGHT JOIN account a ON a.id = o.account_id AND o.id > 10",
		"account a FULL JOIN orders o USING (id)", "account a, LATERAL (SELECT o.id AS x FROM orders o WHERE o.account_id = a.id) l",
		"(SELECT id, balance, owner FROM account WHERE id < 4) a", "account a NATURAL JOIN nokey", "(account a CROSS JOIN pair p)",
		"account a JOIN (SELECT account_id, max(id) AS m FROM orders GROUP BY 1) g ON g.account_id = a.id", "ONLY account AS a",
		"account a TABLESAMPLE SYSTEM (100)", "account a, generate_series(1, 2) g", "account a JOIN rich r USING (id)", "part a",
		"account /* FROM orders */ a -- WHERE\n", `account a, "Odd Name" "o""x"`, "account a JOIN account b ON a.id = b.id + 1")
}

func (c composer) outputs() string {
	return c.pick("*", "a.*", "a.id", "a.id, a", "1", "a.id AS from", "a.id IS DISTINCT FROM 1", "(a.id) x", "CASE WHEN a.id > 1 THEN 'FROM' END",
		"count(*)", "sum(a.id), max(a.id)", "a.id, count(*)", "DISTINCT a.id", "DISTINCT ON (a.id) a.id", "row_number() OVER (ORDER BY a.id), a.id",
		"a.id, (SELECT count(*) FROM orders)", "a.id, (SELECT max(a.id))", "string_agg(a.id::text, ',' ORDER BY a.id)", "ARRAY[a.id, 1][1]", "'x', a.id::text",
		"a.id + 1 /* c */", "a.id, (SELECT count(*) FROM orders o3 WHERE o3.account_id = a.id)", "a.id, (SELECT id FROM orders WHERE note = 'x') + 1", "DISTINCT a.id % 2, owner", "DISTINCT a.*", "min(a.id)", "-a.id", "EXISTS (SELECT * FROM orders WHERE account_id = a.id)", "generate_series(1, a.id)", "ALL a.id", "$$x$$, a.id", "(a).id, a.ctid IS NULL")
}

func (c composer) where() string {
	return c.pick("", "", " WHERE a.id = 1", " WHERE a.id > 1 AND a.id < 4", " WHERE a.id IN (SELECT account_id FROM orders)", " WHERE (a.id = 1 OR a.id = 2)",
		" WHERE EXISTS (SELECT 1 FROM orders o2 WHERE o2.account_id = a.id)", " WHERE a.id IS NOT DISTINCT FROM 2", " WHERE a.id IN (SELECT account_id FROM orders WHERE id = 12) AND a.id < 5", " WHERE a.id NOT IN (SELECT account_id FROM orders)", " WHERE a.id > (SELECT min(account_id) FROM orders)", " WHERE NOT EXISTS (SELECT 1 FROM orders o4 WHERE o4.account_id = a.id)", " WHERE a.id = (SELECT account_id FROM orders WHERE id = 12)", " WHERE 'it''s' <> 'FROM' AND a.id = 3",
		" WHERE now() - interval '1 day' < current_timestamp AND a.id < 4", " WHERE now() < current_date", " WHERE a.id < 4 AND current_date BETWEEN current_date - 1 AND now()")
}

func (c composer) tail() string {
	return c.pick("", "", "", " ORDER BY 1", " ORDER BY a.id", " GROUP BY a.id ORDER BY a.id", " GROUP BY 1 ORDER BY 1", " GROUP BY ROLLUP (a.id) ORDER BY 1", " ORDER BY a.id LIMIT 2",
		" ORDER BY a.id FETCH FIRST ROW ONLY", " FOR UPDATE", " FOR UPDATE OF a", " ORDER BY a.id FOR NO KEY UPDATE OF a SKIP LOCKED", " GROUP BY a.id HAVING count(*) > 1 ORDER BY 1", " LIMIT ALL OFFSET 0")
}

func (c composer) query() string {
	q := "SELECT " + c.outputs() + " FROM " + c.from() + c.where() + c.tail()
	switch c.IntN(10) {
	case 0:
		return "(" + q + ")"
	case 1:
		return "WITH w AS (" + q + ") SELECT " + c.pick("1", "count(*)", "*", "(SELECT count(*) FROM w), 1", "1 FROM w UNION ALL SELECT 2") + " FROM w" + c.pick("", " LIMIT 2")
	case 2:
		return "SELECT " + c.pick("1", "count(*)", "q.*") + " FROM (" + q + ") q"
	case 3:
		return "(" + q + ") " + c.pick("UNION ALL", "UNION", "EXCEPT") + " (SELECT " + c.outputs() + " FROM account a" + c.where() + ")" + c.pick("", " ORDER BY 1", " LIMIT 3")
	}
	return q
}

func (c composer) write() string {
	if c.IntN(3) == 0 {
		return "WITH s AS (SELECT id, balance FROM account WHERE id < 3), w" + c.pick("", "", "(x, y)") + " AS (" + c.change() + ") " + c.pick("SELECT 1", "SELECT * FROM w", "SELECT count(*) FROM w", "SELECT w FROM w",
			"SELECT s.id, (SELECT count(*) FROM w) FROM s", "INSERT INTO nokey SELECT 7", "INSERT INTO nokey (v) SELECT 8 FROM w", "UPDATE orders SET amount = 3 FROM w WHERE orders.id = 10 RETURNING w.*",
			"DELETE FROM orders WHERE EXISTS (SELECT * FROM w)", "SELECT DISTINCT id FROM orders ORDER BY id", "(SELECT id FROM w) UNION ALL SELECT id FROM s", "SELECT count(*) FROM account", "SELECT id FROM orders o FOR UPDATE OF o")
	}
	return c.change()
}

func (c composer) change() string {
	returning := c.pick("", "", "", " RETURNING *", " RETURNING a.id, balance AS from", " RETURNING (SELECT count(*) FROM orders)")
	switch c.IntN(4) {
	case 0:
		return "INSERT INTO account AS a (id, owner) " + c.pick("VALUES (20, 'x'), (21, DEFAULT)", "SELECT id + 30, owner FROM account", "VALUES (1, 'dup')", "(VALUES (22, 'y'))") +
			c.pick("", "", " ON CONFLICT DO NOTHING", " ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, balance = a.balance + 1", " ON CONFLICT (id) DO UPDATE SET owner = 'z' WHERE a.id > 5") + returning
	case 1:
		return "UPDATE account a SET " + c.pick("balance = balance + 1", "id = id + 100", "owner = 'WHERE'", "(balance, owner) = (1, 'q')", "balance = (SELECT count(*) FROM orders)", "nope = 1") +
			c.pick("", " FROM orders o", " FROM (SELECT id AS oid2 FROM orders WHERE id = 10) o") + c.where() + returning
	case 2:
		return "UPDATE nokey a SET " + c.pick("v = v + 1", "w = 'WHERE'", "v = 1, w = DEFAULT") + c.pick("", " WHERE v = 1", " WHERE v = 1 OR w = 'b'", " WHERE NOT v = 1 -- c\n") + c.pick("", " RETURNING *", " RETURNING a.v AS where")
	}
	return "DELETE FROM account a" + c.pick("", " USING orders o") + c.where() + returning
}

// unordered compares rows as a set: most of the composed statements leave some of the order to the server.
var unordered = cmp.Transformer("sort", func(rows [][]string) []string {
	var out []string
	for _, r := range rows {
		out = append(out, strings.Join(r, "|"))
	}
	slices.Sort(out)
	return out
})

// TestRandomStatements compares composed statements with what the server answers directly.
func TestRandomStatements(t *testing.T) {
	conn, cat, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	c := composer{rand.New(rand.NewPCG(2, 2))}
	telling := 0
	counts := map[history.Coverage]int{}
	for range 300 {
		sql := c.query()
		if c.IntN(3) == 0 {
			sql = c.write()
		}
		sql += c.pick("", ";", " -- end", " /* end */ ;")
		sc := r.Script(sql, cat, postgres.Session{})
		if accs := verify(t, conn, sc, sql, "", unordered); len(accs) > 0 && len(accs[0]) > 0 {
			telling++
		}
		counts[sc.Plans[0].Coverage]++
		if t.Failed() {
			t.FailNow() // one is enough to look at
		}
	}
	for _, k := range []history.Coverage{history.CoverageExact, history.CoverageApproximate, history.CoverageOpaque} {
		if counts[k] < 30 {
			t.Errorf("only %d statements with coverage %q", counts[k], k)
		}
	}
	if telling < 100 {
		t.Errorf("only %d statements tell what they read or wrote", telling)
	}
}
