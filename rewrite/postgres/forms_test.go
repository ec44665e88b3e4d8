package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/rewrite/postgres"
)

type form struct {
	sql      string
	coverage history.Coverage
	facts    string
}

// forms are statements with their coverage and what they read and write; "" for coverage none, "rows" for those that are
// exact if there is a row in the answer, "-" where the facts are checked to be true but not listed.
var forms = []form{
	// plain reads
	{`SELECT * FROM account WHERE id = 1`, "exact", "read account 1"},
	{`select*from account where id=2`, "exact", "read account 2"},
	{`select 1from account where id=2`, "opaque", ""}, // junk behind a number, since PostgreSQL 15
	{`select'1'from account where id=2`, "exact", "read account 2"},
	{`SELECT balance FROM account ORDER BY 1 DESC LIMIT 2`, "exact", "read account 3, read account 4"},
	{`SELECT balance FROM account ORDER BY id LIMIT ALL`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT balance FROM account ORDER BY balance FETCH FIRST 1 ROW WITH TIES`, "exact", "read account 1"},
	{`SELECT id FROM account ORDER BY id OFFSET 3`, "exact", "read account 4"},
	{`SELECT a.* FROM account a WHERE a.id = 3;`, "exact", "read account 3"},
	{`SELECT a.*, 1 AS one FROM public.account AS a WHERE a.id = 3 -- the end`, "exact", "read account 3"},
	{"SELECT /* c1 */ id /* c2 */ -- c3\n FROM /* FROM */ account -- c4\n WHERE id = 1 /* c5 */ ; -- c6", "exact", "read account 1"},
	{`SELECT account FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT row_to_json(a) FROM account a WHERE id = 1`, "exact", "read account 1"},
	{`SELECT id AS "from" FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT id AS from FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT a.id IS DISTINCT FROM 5 FROM account a WHERE id = 1`, "exact", "read account 1"},
	{`SELECT a.id IS NOT DISTINCT FROM 5 AS where FROM account a WHERE id = 1`, "exact", "read account 1"},
	{`SELECT extract(year FROM now()) > 2000, substring(owner FROM 1 FOR 1) FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT $$from account$$, 'a;b', E'\'from', "owner" FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT 'ä', owner AS "größe" FROM account WHERE owner <> 'ä' AND id = 1`, "exact", "read account 1"},
	{`(SELECT id FROM account WHERE id = 1)`, "exact", "read account 1"},
	{`SELECT id FROM account WHERE now() > current_date - 1 AND id < 3`, "exact", "read account 1, read account 2"},
	{`SELECT EXISTS (SELECT 1 FROM account WHERE now() > now() - interval '1 day' AND id = 1)`, "exact", "read account 1"},
	{`SELECT id FROM account WHERE now() < current_date - 1 AND id < 3 ORDER BY id LIMIT 2`, "exact", ""},
	{`((SELECT id FROM account) ORDER BY id) LIMIT 1`, "exact", "read account 1"},
	{`(SELECT id FROM account ORDER BY id LIMIT 1);`, "exact", "read account 1"},
	{`TABLE account`, "opaque", ""}, // see below
	{`SELECT "Id", "select" FROM "Odd Name" ORDER BY "select"`, "exact", "read Odd Name 1, read Odd Name 2"},
	{`SELECT o."a""b" FROM "Odd Name" o WHERE "Id" = 1`, "exact", "read Odd Name 1"},
	{`SELECT * FROM pair`, "exact", "read pair 1 'o''x', read pair 1 'x y', read pair 2 'äöü'"},
	{`SELECT v FROM nokey`, "exact", "read nokey, read nokey, read nokey"},
	{`SELECT v FROM stamped`, "exact", "-"},
	{`SELECT * FROM feels`, "exact", "read feels ok, read feels sad"},
	{`SELECT * FROM part`, "exact", "read part 'eu' 1, read part 'eu' 2, read part 'us' 1"},
	{`SELECT * FROM part_us`, "exact", "read part 'us' 1"},
	{`SELECT * FROM ONLY part`, "exact", ""},
	{`SELECT * FROM ONLY account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT * FROM account * WHERE id = 1`, "exact", "read account 1"},
	{`SELECT * FROM parent`, "opaque", ""},
	{`SELECT * FROM child`, "opaque", ""},
	{`SELECT * FROM s2.remote WHERE v = 5`, "exact", "read s2.remote 1"},
	{`SELECT v FROM remote`, "exact", ""}, // not in the search path: the server refuses it either way
	{`SELECT id FROM account TABLESAMPLE BERNOULLI (100) REPEATABLE (1)`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT x, y FROM account AS a(x, y) WHERE x = 1`, "exact", "read account 1"},
	{`SELECT a FROM account AS a(ctid) WHERE owner = 'ann'`, "opaque", ""},
	{`SELECT id, row_number() OVER (ORDER BY id) FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT sum(balance) OVER w FROM account WINDOW w AS (ORDER BY id) LIMIT 1`, "exact", "read account 1"},
	{`SELECT unnest(tags) FROM account`, "approximate", "read account 1, read account 1, read account 4"},
	{`SELECT DISTINCT ON (account_id) * FROM orders ORDER BY account_id, id`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT CASE WHEN balance > 150 THEN 'rich' ELSE 'poor' END FROM account WHERE id IN (1, 2)`, "exact", "read account 1, read account 2"},
	{`SELECT tags[1], tags[1:2], ARRAY[id, 2] FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT owner COLLATE "C" FROM account WHERE id = 1 ORDER BY owner COLLATE "C"`, "exact", "read account 1"},
	{`SELECT balance::text::int + -1 FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT now() - interval '1' day > now() FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT id limits, balance offsets FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT FROM account WHERE id = 1`, "opaque", ""},
	{`SELECT "wirecheck 1".id FROM account AS "wirecheck 1" WHERE id = 1 ORDER BY "wirecheck 1"`, "exact", "read account 1"},
	{`SELECT owner FROM account WHERE id = 1 FOR UPDATE`, "exact", "lock account 1"},
	{`SELECT owner FROM account WHERE id = 1 FOR NO KEY UPDATE NOWAIT`, "exact", "lock account 1"},
	{`SELECT owner FROM account WHERE id = 1 FOR SHARE SKIP LOCKED`, "exact", "lock account 1"},
	{`SELECT owner FROM account WHERE id = 1 FOR KEY SHARE`, "exact", "lock account 1"},
	{`SELECT o.id FROM account a JOIN orders o ON o.account_id = a.id WHERE a.id = 2 FOR UPDATE OF a SKIP LOCKED`, "exact", "lock account 2, read orders 12"},
	{`SELECT o.id FROM account a JOIN orders o ON o.account_id = a.id WHERE a.id = 2 FOR UPDATE OF a FOR SHARE OF o`, "exact", "lock account 2, lock orders 12"},
	{`SELECT * FROM fast`, "exact", "read fast 1"},
	{`SELECT * FROM secured`, "approximate", "read secured 1"},

	// joins
	{`SELECT * FROM account JOIN orders ON account.id = account_id WHERE account.id = 1`, "exact", "read account 1, read account 1, read orders 10, read orders 11"},
	{`SELECT * FROM account, orders WHERE account.id = account_id AND account.id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT a.id, o.id FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id > 1 ORDER BY 1`, "exact", "read account 2, read account 3, read account 4, read orders 12"},
	{`SELECT a.id, o.id FROM account a RIGHT JOIN orders o ON o.account_id = a.id WHERE o.id > 11 ORDER BY 2`, "exact", "read account 2, read orders 12, read orders 13"},
	{`SELECT a.id, o.id FROM account a FULL JOIN orders o ON o.account_id = a.id WHERE a.id = 4 OR o.id = 13 ORDER BY 2`, "exact", "read account 4, read orders 13"},
	{`SELECT a.id, o.id FROM account a JOIN orders o ON o.account_id = a.id WHERE a.id = 2 AND o.id > 1000 LIMIT 1`, "exact", ""},
	{`SELECT a.*, o.* FROM account a JOIN orders o ON o.account_id = a.id WHERE a.id BETWEEN 1 AND 2 ORDER BY o.id LIMIT 2`, "exact", "read account 1, read account 1, read orders 10, read orders 11"},
	{`SELECT count(*) FROM account a, orders o WHERE o.account_id = a.id AND (a.id = 2)`, "exact", "read account 2, read orders 12"},
	{`SELECT EXISTS (SELECT 1 FROM account a JOIN orders o ON o.account_id = a.id AND a.id = 2 WHERE o.id > 1000)`, "exact", ""},
	{`SELECT * FROM account NATURAL JOIN orders`, "exact", ""},
	{`SELECT * FROM account JOIN orders USING (id)`, "exact", ""},
	{`SELECT * FROM account LEFT JOIN orders USING (id) AS u WHERE u.id = 1`, "exact", "read account 1"},
	{`SELECT * FROM (account JOIN orders ON account.id = account_id) AS j(a, b, c, d, e) WHERE a = 2`, "opaque", ""},
	{`SELECT a.id, b.id FROM account a, account b WHERE a.id = 1 AND b.id = 2`, "exact", "read account 1, read account 2"},
	{`SELECT * FROM account a CROSS JOIN "Odd Name" WHERE a.id = 1 AND "Id" = 2`, "exact", "read Odd Name 2, read account 1"},
	{`SELECT * FROM account, s2.remote r WHERE account.id = 1 AND r.id = 1`, "exact", "read account 1, read s2.remote 1"},
	{`SELECT a.id, l.x FROM account a, LATERAL (SELECT a.id + 1 AS x) l WHERE a.id = 1`, "exact", "read account 1"},
	{`SELECT a.id, g FROM account a, generate_series(1, 2) g WHERE a.id = 1`, "approximate", "read account 1, read account 1"},
	{`SELECT * FROM account a JOIN (VALUES (1), (2)) v(k) ON a.id = v.k ORDER BY 1`, "exact", "read account 1, read account 2"},
	{`SELECT * FROM account a, nokey LEFT JOIN pair p ON p.v = nokey.v WHERE a.id = 1 AND nokey.v = 2`, "exact", "read account 1, read nokey, read pair 1 'o''x'"},

	// no table at all
	{`SELECT 1`, "", ""},
	{`SELECT now() > '2000-01-01'`, "", ""},
	{`VALUES (1), (2)`, "", ""},
	{`SELECT relname FROM pg_class WHERE relname = 'account'`, "", ""},
	{`SELECT count(*) FROM information_schema.tables WHERE table_name = 'account'`, "", ""},
	{`SELECT`, "", ""},
	{`SELECT touch()`, "opaque", ""},

	// views
	{`SELECT * FROM rich_now`, "opaque", ""},

	// subqueries beside captured tables
	{`SELECT * FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, "exact", "read account 2, read orders 12"},
	{`SELECT (SELECT max(id) FROM orders) FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT (SELECT max(a.id)) FROM account a`, "exact", ""},

	// aggregates
	{`SELECT count(*) FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT sum(balance) AS total FROM account WHERE id < 3`, "exact", "read account 1, read account 2"},
	{`SELECT sum(balance) FROM account WHERE id > 100`, "exact", ""},
	{`SELECT mysum(balance) FROM account WHERE id < 3`, "exact", "read account 1, read account 2"},
	{`SELECT account_id, count(*), max(note) FROM orders GROUP BY account_id ORDER BY 1`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT account_id AS "wirecheck 1" FROM orders GROUP BY "wirecheck 1" ORDER BY 1`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT account_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > 1`, "rows", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT a.id, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id = 1 GROUP BY a.id LIMIT 21`, "exact", "read account 1, read orders 10, read orders 11"},
	{`SELECT a.owner, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id = 1 GROUP BY a.id, owner LIMIT 1 OFFSET 0`, "exact", "read account 1, read orders 10, read orders 11"},
	{`SELECT account_id, count(*) FROM orders WHERE account_id = 1 GROUP BY account_id HAVING count(*) > 5 LIMIT 1`, "rows", "-"},
	{`SELECT account_id, count(*) FROM orders WHERE account_id = 1 GROUP BY account_id LIMIT 1`, "exact", "read orders 10, read orders 11"},
	{`SELECT a.owner, o.note FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id = 1 GROUP BY a.id, o.note ORDER BY 2 LIMIT 1`, "fewer", "-"}, // several groups
	{`SELECT a.id, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE o.id = 10 OR a.id = 1 GROUP BY a.id LIMIT 1`, "fewer", "-"},
	{`SELECT a.owner, o.id FROM account a JOIN orders o ON o.account_id = a.id ORDER BY lower(a.owner), 2 LIMIT 2`, "exact", "-"}, // ordered by an expression
	{`SELECT a.owner, o.id FROM account a JOIN orders o ON o.account_id = a.id ORDER BY 2 LIMIT 1`, "exact", "read account 1, read orders 10"},
	{`SELECT a.id, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id = 1 GROUP BY a.id LIMIT 21 OFFSET 1`, "rows", "-"},
	{`SELECT a.id, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id GROUP BY a.id HAVING count(*) > 0 LIMIT 21`, "rows", "-"},
	{`SELECT account_id, count(*) FROM orders GROUP BY 1 ORDER BY 1 LIMIT 1`, "fewer", "read orders 10, read orders 11"},
	{`SELECT account_id, id FROM orders GROUP BY id ORDER BY id`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT account_id, sum(amount), GROUPING(account_id) FROM orders GROUP BY ROLLUP (account_id) ORDER BY 1`, "exact", "-"},
	{`SELECT account_id, note, count(*) FROM orders GROUP BY GROUPING SETS ((account_id), (note), ()) ORDER BY 1, 2`, "exact", "-"},
	{`SELECT count(DISTINCT account_id), sum(amount) FILTER (WHERE id > 10), string_agg(note, ',' ORDER BY note), percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM orders`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT a.owner, count(o.id) FROM account a LEFT JOIN orders o ON o.account_id = a.id GROUP BY a.id ORDER BY a.id`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12"},
	{`SELECT count(*) FROM account, orders`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT count(*) FROM part`, "exact", "read part 'eu' 1, read part 'eu' 2, read part 'us' 1"},
	{`SELECT count(*) FROM part WHERE region = 'us'`, "exact", "read part 'us' 1"},
	{`SELECT count(*) FROM pair`, "exact", "read pair 1 'o''x', read pair 1 'x y', read pair 2 'äöü'"},
	{`SELECT count(*) FROM nokey`, "exact", "read nokey, read nokey, read nokey"},
	{`SELECT sum(count(*)) OVER (), account_id FROM orders GROUP BY account_id ORDER BY 2`, "exact", "-"},
	{`SELECT coalesce(sum(balance), 0) + (SELECT count(*) FROM orders) FROM account WHERE id = 1`, "exact", "read account 1, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT 1 FROM account HAVING count(*) > 100`, "rows", ""},
	{`SELECT 1 FROM account ORDER BY count(*)`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT max(balance) FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT account_id, count(*) FROM orders GROUP BY DISTINCT account_id ORDER BY 1`, "exact", "-"},

	{`SELECT sum(v), max(v) FROM big WHERE id = 7`, "exact", "read big 7"},
	{`SELECT count(*) FROM big b WHERE grp = 3 AND b.id < 20 -- c`, "exact", "read big 13, read big 3"},
	{`SELECT count(*) FROM big WHERE grp = 3 AND id < 0`, "exact", ""},
	{`SELECT max(id) FROM big`, "opaque", ""},
	{`SELECT grp, count(*) FROM big WHERE grp = 3 GROUP BY grp`, "exact", ""},
	{`SELECT v FROM big WHERE id = 3`, "exact", "read big 3"},
	{`UPDATE big SET v = 1 WHERE id = 3`, "exact", "update big 3"},

	// subqueries in FROM, common table expressions, UNION ALL
	{`SELECT q.id FROM (SELECT * FROM account WHERE id < 3) q`, "exact", "read account 1, read account 2"},
	{`SELECT q.x FROM (SELECT id AS x FROM account WHERE id < 3 ORDER BY id LIMIT 1) AS q (x) WHERE x > 0`, "exact", "read account 1"},
	{`SELECT * FROM (SELECT * FROM account WHERE id < 3) q`, "exact", "read account 1, read account 2"},
	{`SELECT q FROM (SELECT id FROM account WHERE id < 3) q`, "exact", "read account 1, read account 2"},
	{`SELECT q.* FROM (SELECT id FROM account WHERE id < 3) q`, "exact", "read account 1, read account 2"},
	{`SELECT row_to_json(q) FROM (SELECT id FROM account WHERE id < 3) q`, "exact", "read account 1, read account 2"},
	{`SELECT count(*) FROM (SELECT 1 AS one FROM account LIMIT 2) s`, "exact", "read account 1, read account 2"},
	{`SELECT a.id, q.n FROM account a JOIN (SELECT account_id, id AS n FROM orders) q ON q.account_id = a.id WHERE a.id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT a.id, q.n FROM account a LEFT JOIN (SELECT account_id, count(*) AS n FROM orders GROUP BY 1) q ON q.account_id = a.id WHERE a.id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT a.id, n FROM account a LEFT JOIN (SELECT account_id, count(*) AS n FROM orders GROUP BY 1) q ON q.account_id = a.id ORDER BY n, a.id LIMIT 2`, "exact", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT a.id FROM account a LEFT JOIN (SELECT account_id, count(*) AS n FROM orders GROUP BY 1) q ON q.account_id = a.id WHERE a.id = 2`, "approximate", "read account 2"}, // the server may leave it out
	{`SELECT a.id FROM account a JOIN (SELECT account_id, sum(amount) AS n FROM orders GROUP BY account_id) q ON q.account_id = a.id AND q.n > 3.6`, "exact", "read account 1, read orders 10, read orders 11"},
	{`SELECT a.id, q.n FROM account a JOIN (SELECT account_id, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > 1) q ON q.account_id = a.id`, "approximate", "read account 1"},
	{`SELECT a.id, q.n FROM account a JOIN (SELECT account_id, count(*) AS n FROM orders GROUP BY ROLLUP (1)) q ON q.account_id = a.id`, "approximate", "-"},
	{`SELECT a.id, q.m FROM account a CROSS JOIN (SELECT max(id) AS m FROM orders) q WHERE a.id = 1`, "approximate", "read account 1"}, // the end of an index
	{`SELECT a.id, q.m FROM account a CROSS JOIN (SELECT max(id) AS m, sum(amount) FROM orders) q WHERE a.id = 1`, "exact", "read account 1, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT a.id, l.data FROM account a LEFT JOIN LATERAL (SELECT coalesce(json_agg(json_build_array(o.id, o.note)), '[]') AS data FROM orders o WHERE o.account_id = a.id) l ON true ORDER BY a.id`, "exact",
		"read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12"},
	{`SELECT a.id FROM account a LEFT JOIN LATERAL (SELECT json_agg(o.id) AS data FROM orders o WHERE o.account_id = a.id) l ON true WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id, l.data FROM account a LEFT JOIN LATERAL (SELECT json_agg(p.data) AS data FROM (SELECT * FROM orders o WHERE o.account_id = a.id ORDER BY o.id LIMIT 1) o LEFT JOIN LATERAL (SELECT count(*) AS data FROM pair WHERE pair.v = a.id) p ON true) l ON true WHERE a.id < 4`, "exact",
		"read account 1, read account 2, read account 3, read orders 10, read orders 12, read pair 1 'o''x', read pair 1 'x y'"},
	{`WITH q AS (SELECT account_id, count(*) AS n FROM orders GROUP BY account_id) SELECT a.owner, q.n FROM account a JOIN q ON q.account_id = a.id ORDER BY a.id LIMIT 1`, "exact", "read account 1, read orders 10, read orders 11"},
	{`WITH q AS (SELECT account_id, count(*) AS n FROM orders GROUP BY account_id) SELECT a.owner, q.n, r.n FROM account a JOIN q ON q.account_id = a.id JOIN q r ON r.n = q.n WHERE a.id = 2`, "approximate", "read account 2, read account 2"},
	{`SELECT b.grp, q.n FROM big b JOIN (SELECT grp, count(*) AS n FROM big GROUP BY grp) q ON q.grp = b.grp WHERE b.id = 3`, "approximate", "read big 3"}, // the server might sort
	{`SELECT a.id, l.id FROM account a LEFT JOIN LATERAL (SELECT o.id FROM orders o WHERE o.account_id = a.id ORDER BY id LIMIT 1) l ON true ORDER BY a.id`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 12"},
	{`SELECT r.id FROM (SELECT q.id FROM (SELECT id FROM account) q WHERE q.id = 1) r`, "exact", "read account 1"},
	{`SELECT q.id FROM (SELECT a.id FROM account a JOIN orders o ON o.account_id = a.id WHERE o.id = 12) q`, "exact", "read account 2, read orders 12"},
	{`SELECT q.id FROM (SELECT DISTINCT id FROM account) q`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT q.id FROM (SELECT id FROM account WHERE id = 1) q FOR UPDATE`, "exact", "lock account 1"},
	{`SELECT q.id FROM (SELECT id FROM account WHERE id = 1 FOR SHARE) q`, "exact", "lock account 1"},
	{`WITH q AS (SELECT id, owner FROM account WHERE id = 1) SELECT owner FROM q`, "exact", "read account 1"},
	{`WITH q (a) AS MATERIALIZED (SELECT id, owner FROM account WHERE id = 1) SELECT x.a FROM q x, orders o WHERE o.id = 10`, "exact", "read account 1, read orders 10"},
	{`WITH q AS (SELECT id FROM account) SELECT * FROM q`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`WITH q AS (SELECT id FROM account) SELECT a.id FROM q a, q b WHERE a.id = 1 AND b.id = 1`, "opaque", ""},
	{`WITH q AS (SELECT id FROM account), r AS (SELECT id FROM q WHERE id = 1) SELECT id FROM r`, "exact", "read account 1"},
	{`WITH account AS (SELECT * FROM account WHERE id = 1) SELECT id FROM account`, "opaque", ""},
	{`WITH account AS (SELECT id, 7 AS n FROM account) SELECT id, n FROM account WHERE id = 1`, "opaque", ""},
	{`WITH account AS (SELECT id FROM orders WHERE id IN (SELECT id FROM account)) SELECT id FROM account WHERE id = 10`, "opaque", ""},
	{`WITH account AS (SELECT id FROM orders), orders AS (SELECT id FROM account) SELECT id FROM orders WHERE id = 10`, "opaque", ""},
	{`WITH RECURSIVE q AS (SELECT 1 AS id UNION ALL SELECT q.id + 1 FROM q WHERE q.id < 3) SELECT a.id FROM q JOIN account a ON a.id = q.id`, "exact", "read account 1, read account 2, read account 3"},
	{`SELECT (WITH orders AS (SELECT 1 AS id) SELECT 1), orders.id FROM orders WHERE id = 10`, "exact", "read orders 10"},
	{`SELECT x.id FROM (WITH c AS (SELECT id FROM account WHERE id = 1) SELECT id FROM c) x`, "exact", "read account 1"},
	{`SELECT id FROM account WHERE id < 3 UNION ALL SELECT id FROM orders WHERE id = 12 ORDER BY 1 DESC`, "exact", "read account 1, read account 2, read orders 12"},
	{`SELECT id FROM account UNION ALL (SELECT o.id FROM orders o JOIN account a ON a.id = o.account_id ORDER BY o.id LIMIT 1) UNION ALL SELECT 7`, "exact", "read account 1, read account 1, read account 2, read account 3, read account 4, read orders 10"},
	{`SELECT 1 UNION ALL SELECT id FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT id FROM account UNION SELECT id FROM orders`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT id FROM account EXCEPT ALL SELECT id FROM orders`, "rows", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT count(*) FROM account UNION ALL SELECT id FROM orders`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`VALUES (1) UNION ALL SELECT id FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`UPDATE account SET balance = q.n FROM (SELECT account_id, id AS n FROM orders) q WHERE q.account_id = account.id AND q.n = 12`, "exact", "read orders 12, update account 2"},
	{`UPDATE account SET balance = q.n FROM (SELECT account_id, id AS n FROM orders) q WHERE q.account_id = account.id AND q.n = 12 RETURNING *`, "approximate", "update account 2"},
	{`WITH c AS (SELECT id FROM account ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) UPDATE account a SET balance = 1 FROM c WHERE a.id = c.id RETURNING a.id`, "exact", "lock account 1, update account 1"},
	{`WITH c AS (SELECT id FROM account ORDER BY id LIMIT 1) DELETE FROM account a USING c WHERE a.id = c.id`, "exact", "delete account 1, read account 1"},

	// DISTINCT, set operations, HAVING: a second scan of the same clauses
	{`SELECT DISTINCT account_id FROM orders`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT DISTINCT account_id, 'x', NULL, $$y$$ FROM orders ORDER BY 1 DESC -- end`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT DISTINCT o.account_id AS a, o.account_id AS a, 1, 2 FROM orders o WHERE lower(note) < 'z' ORDER BY 1 ;`, "exact", "read orders 10, read orders 11"},
	{`SELECT DISTINCT a.owner, o.amount::numeric(10,3) FROM account a JOIN orders o ON o.account_id = a.id ORDER BY 2`, "exact", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT a.owner, o.note FROM account a LEFT JOIN orders o ON o.account_id = a.id ORDER BY 1, 2`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT a.owner FROM account a LEFT JOIN orders o ON o.id = a.id ORDER BY 1`, "opaque", ""}, // the server leaves orders out
	{`SELECT DISTINCT ctid, tableoid::regclass, xmin FROM account WHERE balance = 100`, "exact", "read account 1"},
	{`SELECT DISTINCT o FROM orders o WHERE id = 10`, "exact", "read orders 10"},
	{`SELECT DISTINCT (id, owner) FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT DISTINCT "Id" AS "wirecheck q" FROM "Odd Name" AS "wirecheck 1"`, "exact", "read Odd Name 1, read Odd Name 2"},
	{`SELECT DISTINCT id FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT DISTINCT v FROM nokey WHERE v = 1`, "exact", ""}, // one of two rows is enough
	{`SELECT DISTINCT substr(upper(note::text), 1, 9) AS n FROM orders WHERE note IS NOT NULL ORDER BY n`, "exact", "read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT o.* FROM orders o WHERE o.account_id IN (1, 2) ORDER BY o.id`, "exact", "read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT * FROM account a JOIN orders o ON o.account_id = a.id`, "exact", "-"},
	// A condition, or the text itself, may fix what is compared: then one of several rows is enough.
	{`SELECT DISTINCT length(note) FROM orders WHERE length(note) = 1`, "exact", ""},
	{`SELECT DISTINCT coalesce(7, account_id) FROM orders`, "exact", ""},
	{`SELECT DISTINCT substr(note, NULL) FROM orders`, "exact", ""},
	{`SELECT DISTINCT account_id FROM orders LIMIT 1`, "opaque", ""},
	// with fewer rows than LIMIT says, the answer has read everything
	{`SELECT DISTINCT account_id FROM orders LIMIT 9`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT DISTINCT account_id FROM orders LIMIT 2`, "exact", ""},
	{`SELECT DISTINCT account_id FROM orders LIMIT 2000`, "opaque", ""},
	{`SELECT DISTINCT account_id FROM orders ORDER BY 1 FETCH FIRST 9 ROWS WITH TIES`, "opaque", ""},
	{`SELECT DISTINCT upper(note) FROM orders LIMIT 9`, "opaque", ""}, // it could fail behind its first row
	{`SELECT DISTINCT o.account_id, o.note FROM orders o JOIN account a ON a.id = o.account_id ORDER BY 1, 2 LIMIT 3 OFFSET 1`, "rows", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT o.account_id, o.note FROM orders o JOIN account a ON a.id = o.account_id ORDER BY 1, 2 LIMIT 2 OFFSET 1`, "rows", ""},
	{`SELECT account_id, count(*) FROM orders GROUP BY 1 LIMIT 10`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT id FROM account UNION SELECT id FROM orders ORDER BY 1 LIMIT 100`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT id FROM account UNION SELECT id FROM orders ORDER BY 1 LIMIT 8`, "exact", ""},
	{`SELECT DISTINCT q.a_id AS ids FROM (SELECT a.id AS a_id, o.note AS n FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE o.amount > 0) q ORDER BY ids LIMIT 9`, "exact", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT DISTINCT q.a_id AS ids FROM (SELECT a.id AS a_id, o.note AS n FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE coalesce(o.amount, 1) > 0) q ORDER BY ids LIMIT 9`, "opaque", ""},
	// no index has the ends of the column
	{`SELECT id, (SELECT max(amount) FROM orders o WHERE o.account_id = account.id) FROM account WHERE id < 3 ORDER BY id`, "exact", "read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT id, (SELECT max(note) FROM orders o WHERE o.account_id = account.id) FROM account WHERE id < 3 ORDER BY id`, "exact", "read account 1, read account 2, read orders 12"},
	// by a key, with LIMIT: the version goes with the row
	{`SELECT DISTINCT q.a_id AS ids, q.a_owner FROM (SELECT a.id AS a_id, a.owner AS a_owner, o.id AS o_id FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.balance >= 100) q ORDER BY q.a_owner DESC, a_id ASC LIMIT 2`, "exact", "-"},
	{`SELECT DISTINCT q.a_id AS ids FROM (SELECT a.id AS a_id, o.note AS n FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE o.amount > 0) q ORDER BY ids LIMIT 2`, "exact", ""},
	{`SELECT DISTINCT o.id, o.note FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE a.owner <> 'x' ORDER BY o.note, o.id LIMIT 1`, "exact", "read account 1, read orders 10"},
	{`SELECT DISTINCT o.id, a.owner FROM orders o JOIN account a ON a.id = o.account_id ORDER BY 1 DESC LIMIT 1`, "exact", "-"},
	{`SELECT DISTINCT o.id, o.note FROM orders o LEFT JOIN account a ON a.id = o.account_id ORDER BY o.note LIMIT 1`, "opaque", ""},
	{`SELECT DISTINCT o.id, upper(o.note) FROM orders o ORDER BY o.id LIMIT 1`, "opaque", ""},
	{`SELECT DISTINCT o.id FROM orders o JOIN account a ON a.balance > o.amount ORDER BY o.id LIMIT 1`, "opaque", ""},
	{`SELECT DISTINCT account_id FROM orders FOR UPDATE`, "opaque", ""},
	{`SELECT DISTINCT random() > 2, account_id FROM orders ORDER BY 2`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT DISTINCT account_id FROM orders WHERE random() >= 0`, "opaque", ""},
	{`SELECT DISTINCT nope FROM account`, "exact", ""},
	{`SELECT DISTINCT id FROM account WHERE nope = 1`, "exact", ""},
	{`SELECT DISTINCT id FROM account WHERE owner = 5`, "exact", ""},
	{`SELECT DISTINCT 1 / (id - 1) FROM account`, "exact", ""},
	{`SELECT DISTINCT json_build_object('a', id) FROM account`, "exact", ""},
	{`SELECT DISTINCT id FROM rich`, "opaque", ""},
	{`SELECT DISTINCT v FROM secured`, "opaque", ""},
	{`SELECT DISTINCT v FROM part`, "exact", "read part 'eu' 1, read part 'eu' 2, read part 'us' 1"},
	{`SELECT DISTINCT generate_series(1, id) FROM account WHERE id < 3`, "rows", ""},
	{`SELECT DISTINCT owner FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, "exact", "read account 2, read orders 12"},
	{`SELECT owner FROM account EXCEPT SELECT note FROM orders ORDER BY 1 NULLS FIRST`, "rows", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT id FROM account WHERE id > 2 INTERSECT SELECT id + 2 FROM account WHERE id < 3`, "rows", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT id FROM account WHERE id > 100 UNION SELECT id FROM orders WHERE id > 100`, "exact", ""},
	{`(SELECT id FROM account WHERE id = 1 UNION SELECT 7) EXCEPT (SELECT id FROM orders) ORDER BY id;`, "rows", "read account 1, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`(SELECT id FROM account LIMIT 1) UNION SELECT id FROM orders`, "opaque", ""},
	{`SELECT id FROM account UNION SELECT id FROM orders LIMIT 1`, "opaque", ""},
	{`SELECT id FROM account UNION SELECT owner FROM account`, "exact", ""},
	{`SELECT 'x' UNION SELECT owner FROM account WHERE id = 1`, "exact", "read account 1"},
	{`SELECT count(*), 'a' FROM account UNION ALL SELECT count(*), 'b' FROM orders`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT max(id) FROM account UNION SELECT max(v) FROM nokey`, "exact", "read nokey, read nokey, read nokey"}, // account has an index for it
	{`WITH c AS (SELECT id FROM account) SELECT id FROM c UNION SELECT id FROM orders WHERE id = 10`, "rows", "read account 1, read account 2, read account 3, read account 4, read orders 10"},
	{`WITH c AS (SELECT id FROM account) SELECT DISTINCT id FROM c WHERE id = 1`, "opaque", ""},
	{`SELECT account_id FROM orders GROUP BY account_id HAVING count(*) > 5`, "rows", ""},
	{`SELECT count(*) AS n FROM (SELECT account_id AS a, count(id) FROM orders GROUP BY account_id HAVING count(id) > 1) q`, "rows", "-"},
	{`SELECT account_id FROM orders WHERE id > 3 GROUP BY 1 HAVING sum(id) > 500 AND min(id) < 2 OR max(id) > 900 ORDER BY 1 DESC`, "rows", ""},
	{`SELECT id FROM account a WHERE (SELECT count(*) FROM orders o WHERE o.account_id = a.id) >= 50`, "approximate", "-"},
	{`SELECT id, owner FROM account a WHERE id > 0 AND 500 < (SELECT coalesce(sum(o.id), 0) FROM orders o WHERE a.id = o.account_id AND o.id > 2) ORDER BY id DESC LIMIT 7`, "approximate", "-"},
	{`SELECT count(*) FROM account a WHERE (SELECT count(*) FROM orders o WHERE o.account_id = a.id) > a.id`, "approximate", "-"},
	{`SELECT count(*) FROM (SELECT DISTINCT account_id FROM orders) q`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT count(*) FROM (SELECT account_id, count(*) AS n FROM orders GROUP BY 1 HAVING count(*) > 1) q`, "rows", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT * FROM (SELECT account_id, count(*) AS n FROM orders GROUP BY 1) q ORDER BY n DESC, 1`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT * FROM (SELECT account_id, count(*) AS n FROM orders GROUP BY 1) q WHERE n > 1`, "exact", "read orders 10, read orders 11"},
	{`SELECT * FROM (SELECT id, account_id AS a FROM orders WHERE id > 10) q WHERE q.a = 2`, "exact", "read orders 12"},
	{`SELECT *, q.* FROM (SELECT id FROM orders WHERE id > 12) q`, "exact", "read orders 13"},
	{`SELECT account_id, count(*) FROM orders o WHERE EXISTS (SELECT 1 FROM account a WHERE a.id = o.account_id AND a.id = 1) GROUP BY 1`, "approximate", "read orders 10, read orders 11"},
	{`SELECT count(*) FROM (SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id) q`, "-", "-"},
	{`SELECT string_agg(owner, ',') FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT grp, count(*) FROM big WHERE grp = 3 AND id < 20 GROUP BY grp`, "exact", "read big 13, read big 3"},
	{`SELECT DISTINCT v FROM big WHERE id = 7`, "exact", "read big 7"},
	{`SELECT DISTINCT grp FROM big`, "opaque", ""},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id WHERE a.id = 1`, "exact", "read account 1"}, // the server leaves orders out
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id AND o.id > 11 WHERE a.id = 1`, "exact", "read account 1"},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id OR o.id = 12 WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.balance::int WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.account_id = a.id WHERE a.id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT a.id, p.v FROM account a LEFT JOIN orders o ON o.id = a.id + 9 LEFT JOIN gen p ON p.id = o.id - 9 WHERE a.id < 3`, "exact", "read account 1, read account 2, read gen 1, read gen 2, read orders 10, read orders 11"},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id LEFT JOIN gen p ON p.id = o.id WHERE a.id = 1`, "exact", "read account 1"},
	{`SELECT a.id, p.v FROM account a LEFT JOIN orders o ON o.id = a.id LEFT JOIN gen p ON p.id = a.id WHERE a.id = 1`, "exact", "read account 1, read gen 1"},
	{`SELECT a.id, p.v FROM account a LEFT JOIN orders o ON o.id = a.id JOIN gen p ON p.id = coalesce(o.id, 1) WHERE a.id = 1`, "exact", "read account 1, read gen 1"},
	{`SELECT count(*) FROM account a LEFT JOIN orders o ON o.id = a.id`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT q.n FROM (SELECT a.id, o.id AS n FROM account a LEFT JOIN orders o ON o.id = a.id + 9) q WHERE q.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id FROM account a LEFT JOIN orders o ON o.id = a.id + 9 WHERE o.id > 11`, "exact", "read account 3, read account 4, read orders 12, read orders 13"},
	{`SELECT q.id FROM (SELECT a.id, o.note FROM account a LEFT JOIN orders o ON o.id = a.id) q WHERE q.id = 1`, "approximate", "read account 1"},
	{`SELECT grp FROM big WHERE grp = 7 AND grp > 20`, "exact", ""}, // of an index only
	{`SELECT id FROM big WHERE id IN (5, 6) AND id = 5`, "exact", "read big 5"},

	// subqueries in expressions
	{`SELECT * FROM account WHERE id IN (SELECT account_id FROM orders)`, "exact", "perhaps read orders 10, perhaps read orders 11, read account 1, read account 2, read orders 12"}, // two orders may have made it true for account 1
	{`SELECT * FROM account WHERE id NOT IN (SELECT account_id FROM orders)`, "rows", "read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT * FROM account WHERE id > ALL (SELECT account_id FROM orders WHERE id < 13) AND id < 4`, "rows", "read account 3, read orders 10, read orders 11, read orders 12"},
	{`SELECT id FROM account WHERE balance > (SELECT avg(amount) FROM orders) ORDER BY id LIMIT 1`, "rows", "read account 1, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT id FROM account WHERE id = (SELECT account_id FROM orders WHERE id = 12)`, "rows", "read account 2, read orders 12"},
	{`SELECT id FROM account WHERE id = 1 OR id = (SELECT account_id FROM orders WHERE id = 12)`, "approximate", "read account 1, read account 2"},
	{`SELECT id FROM account WHERE EXISTS (SELECT 1 FROM orders WHERE id = 12) AND id = 1`, "exact", "read account 1, read orders 12"},
	{`SELECT id FROM account WHERE EXISTS (SELECT 1 FROM orders) AND id = 1`, "exact", "perhaps read orders 10, perhaps read orders 11, perhaps read orders 12, perhaps read orders 13, read account 1"},
	{`SELECT id FROM account WHERE NOT EXISTS (SELECT 1 FROM orders WHERE account_id = account.id)`, "rows", "read account 3, read account 4"},
	{`SELECT id FROM account WHERE NOT (EXISTS (SELECT (1) AS a FROM orders WHERE account_id = account.id LIMIT 1))`, "rows", "read account 3, read account 4"},
	{`SELECT id FROM account WHERE NOT EXISTS (SELECT 1 FROM orders WHERE account_id = account.id LIMIT 1 OFFSET 1)`, "approximate", "-"},
	{`SELECT "q".*, o.id AS "orders.id" FROM (SELECT "a"."id", a.owner, a.balance + 1 AS "next" FROM account AS "a" ORDER BY a.id LIMIT 2) AS "q" LEFT OUTER JOIN orders o ON "q"."id" = o.account_id ORDER BY q.id, o.id`, "exact", "read account 1, read account 1, read account 2, read orders 10, read orders 11, read orders 12"},
	{`SELECT "o".*, a.owner AS "a.owner" FROM (SELECT "o"."id", "o"."account_id" FROM orders AS "o" ORDER BY "o"."id" LIMIT 1) AS "o" LEFT OUTER JOIN account a ON "o"."account_id" = a.id`, "exact", "read account 1, read orders 10"},
	{`SELECT 1 AS one, q.*, q.id FROM (SELECT id, owner FROM account WHERE id < 3) q ORDER BY q.id`, "exact", "read account 1, read account 2"},
	{`SELECT q.*, row_to_json(q.*) FROM (SELECT id, owner FROM account WHERE id = 1) q`, "exact", "read account 1"},           // by a second scan
	{`SELECT q.*, o.id FROM (SELECT * FROM account WHERE id = 1) q JOIN orders o ON o.account_id = q.id`, "approximate", "-"}, // another client may have added a column
	{`SELECT a.id FROM account a WHERE EXISTS (SELECT 1 FROM orders o WHERE o.account_id = a.id) ORDER BY 1`, "exact", "perhaps read orders 10, perhaps read orders 11, read account 1, read account 2, read orders 12"},
	{`SELECT a.id FROM account a WHERE EXISTS (SELECT 1 FROM orders o WHERE o.note = a.id)`, "approximate", ""},
	{`SELECT a.id FROM account a WHERE EXISTS (SELECT 1 FROM orders o WHERE o.account_id = a.id AND o.note = 'z' AND o.id > 3)`, "exact", "read account 2, read orders 12"},
	{`SELECT id FROM account WHERE id IN (SELECT o.account_id FROM orders o JOIN account b ON b.id = o.account_id WHERE o.note = 'z' AND b.owner IN ('bob', 'x'))`, "exact", "read account 2, read account 2, read orders 12"},
	{`SELECT id FROM account WHERE id IN (SELECT o.account_id FROM orders o LEFT JOIN account b ON b.id = o.account_id WHERE o.note = 'z')`, "approximate", "read account 2"},
	{`SELECT id FROM account WHERE owner IN (SELECT note FROM orders WHERE amount BETWEEN 1 AND 3 OR note IS NULL)`, "exact", ""},
	{`SELECT a.id FROM account a WHERE a.id IN (SELECT a.account_id FROM orders a WHERE a.id = 12)`, "exact", "read account 2, read orders 12"}, // as a whole
	{`SELECT id FROM account WHERE id IN (SELECT amount FROM orders)`, "exact", ""},                                                             // of another type
	{`SELECT id FROM account WHERE EXISTS (SELECT 1 FROM orders o, account b WHERE o.account_id = account.id AND b.id = o.account_id) AND id = 2`, "exact", "read account 2, read account 2, read orders 12"},
	{`SELECT id FROM account WHERE EXISTS (SELECT 1 FROM orders o WHERE o.account_id = account.id LIMIT 1) AND id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT EXISTS (SELECT 1 FROM orders WHERE id = 12)`, "exact", "read orders 12"},
	{`SELECT EXISTS (SELECT * FROM orders WHERE account_id = 77 LIMIT 1) AS there`, "exact", ""},
	{`SELECT EXISTS (SELECT * FROM orders WHERE id = 12 LIMIT 0)`, "exact", ""},                                                                         // it looked for none
	{`SELECT EXISTS (SELECT 1 FROM orders)`, "exact", "perhaps read orders 10, perhaps read orders 11, perhaps read orders 12, perhaps read orders 13"}, // any of them
	{`SELECT EXISTS (SELECT 1 FROM orders WHERE '[5,9]'::int4range @> id)`, "exact", ""},
	{`SELECT EXISTS (SELECT 1 FROM account WHERE tags @> ARRAY['zz'])`, "opaque", ""}, // intarray has an operator by that name that refuses arrays with NULL
	{`SELECT EXISTS (SELECT 1 FROM orders WHERE id = 12 OFFSET 1)`, "opaque", ""},
	{`SELECT NOT EXISTS (SELECT 1 FROM orders WHERE id = 12)`, "exact", "read orders 12"},
	{`SELECT a.id, EXISTS (SELECT 1 FROM orders o WHERE o.account_id = a.id) FROM account a WHERE a.id > 1`, "exact", "read account 2, read account 3, read account 4, read orders 12"},
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders WHERE id = 12) LIMIT 1`, "exact", "read orders 12"},
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders WHERE id = 99) LIMIT 1`, "exact", ""},
	{`SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM orders WHERE id = 99)`, "exact", ""},
	{`SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM orders WHERE id = 12) LIMIT 0`, "rows", ""},
	{`SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM orders WHERE id = 12 OFFSET 1)`, "opaque", ""},
	{`SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM orders WHERE id = 12) OFFSET 1`, "rows", ""},
	{`SELECT account_id, sum(amount) AS n FROM orders GROUP BY account_id ORDER BY n DESC LIMIT 1`, "exact", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT account_id, count(*) FROM orders GROUP BY 1 HAVING count(*) > 1 ORDER BY count(*), 1 LIMIT 1`, "rows", "read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT account_id, count(*) AS n FROM orders GROUP BY account_id ORDER BY account_id, n LIMIT 1`, "fewer", "-"}, // it may stop early
	{`SELECT id FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12) FOR UPDATE`, "approximate", "lock account 2"},
	{`SELECT a.id, (SELECT count(*) FROM orders o WHERE o.account_id = a.id) AS n FROM account a ORDER BY a.id`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12"},
	{`SELECT id, (SELECT note FROM orders WHERE account_id = 2), (SELECT 1 + sum(balance) FROM account WHERE id < 3) FROM account WHERE id > 2`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 12"},
	{`SELECT id, (SELECT note FROM orders WHERE account_id = 1) FROM account`, "exact", ""}, // more than one row
	{`SELECT id, (SELECT o.id FROM orders o WHERE o.account_id = a.id ORDER BY id LIMIT 1) FROM account a WHERE id = 1`, "exact", "read account 1, read orders 10"},
	{`SELECT a.id, (SELECT o.note FROM orders o WHERE o.account_id = a.id ORDER BY o.amount DESC LIMIT 1) FROM account a WHERE a.id < 4`, "exact", "read account 1, read account 2, read account 3, read orders 11, read orders 12"},
	{`SELECT a.id, (SELECT w FROM nokey ORDER BY v FETCH FIRST ROW ONLY) FROM account a WHERE a.id = 1`, "exact", "read account 1"},                                   // either of two
	{`SELECT a.id, (SELECT o.amount FROM orders o WHERE o.account_id = a.id ORDER BY o.note LIMIT 1) FROM account a WHERE a.id = 1`, "approximate", "read account 1"}, // an index of it
	{`SELECT a.id, (SELECT o.amount AS id FROM orders o WHERE o.account_id = a.id ORDER BY id LIMIT 1) FROM account a WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id, (SELECT o.amount FROM orders o WHERE o.account_id = a.id ORDER BY o.id LIMIT 1 OFFSET 1) FROM account a WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id, (SELECT o.amount FROM orders o WHERE o.account_id = a.id LIMIT 1) FROM account a WHERE a.id = 1`, "approximate", "read account 1"},
	{`SELECT a.id, (SELECT b.owner FROM account b WHERE b.id = a.id LIMIT 1) FROM account a WHERE a.id = 1`, "exact", "read account 1, read account 1"},
	{`SELECT a.id, ARRAY(SELECT o.id FROM orders o WHERE o.account_id = a.id ORDER BY o.id DESC LIMIT 2) FROM account a WHERE a.id = 1`, "exact", "read account 1, read orders 10, read orders 11"},
	{`SELECT a.id FROM account a WHERE a.id = (SELECT o.account_id FROM orders o WHERE o.id < 13 ORDER BY o.id DESC LIMIT 1)`, "rows", "read account 2, read orders 12"},
	{`UPDATE account SET balance = 1 WHERE id = (SELECT id FROM account WHERE owner = 'bob' ORDER BY id FOR UPDATE SKIP LOCKED LIMIT 1) RETURNING *`, "exact", "update account 2"}, // what it locks is what it writes
	{`DELETE FROM nokey WHERE v = 1 AND w = (SELECT w FROM nokey LIMIT 1 FOR UPDATE)`, "approximate", "-"},
	{`DELETE FROM pair p WHERE (SELECT q.v FROM pair q WHERE q.a = 2 FOR UPDATE) = p.v`, "approximate", "-"},
	{`DELETE FROM account a WHERE a.id = (SELECT b.id FROM account b WHERE b.id = 4 FOR NO KEY UPDATE)`, "exact", "delete account 4"},
	{`DELETE FROM account a WHERE a.id = (SELECT b.id FROM account b WHERE b.id = 4 FOR KEY SHARE) AND a.balance > 1000`, "approximate", ""}, // it may lock another one
	{`DELETE FROM account a WHERE a.id = (SELECT b.balance FROM account b WHERE b.id = 4 FOR UPDATE)`, "approximate", ""},
	{`UPDATE account SET balance = 1 WHERE id = (SELECT o.account_id FROM orders o ORDER BY o.id LIMIT 1)`, "rows", "read orders 10, update account 1"},
	{`SELECT (SELECT note FROM orders ORDER BY id DESC LIMIT 1) AS last`, "exact", "read orders 13"},
	{`SELECT id, coalesce(owner, (SELECT note FROM orders WHERE id = 10)) FROM account WHERE id = 1`, "approximate", "read account 1"},
	{`SELECT id, CASE WHEN id > 0 THEN 1 ELSE (SELECT count(*) FROM orders) END FROM account WHERE id = 1`, "approximate", "read account 1"},
	{`SELECT id, NULL::int + (SELECT count(*) FROM orders) FROM account WHERE id = 1`, "approximate", "read account 1"},
	{`SELECT id, ARRAY(SELECT o.note FROM orders o WHERE o.account_id = a.id) FROM account a WHERE id = 2`, "exact", "read account 2, read orders 12"},
	{`SELECT q.id FROM (SELECT id FROM account WHERE id = 1 FOR UPDATE) q WHERE q.id IN (SELECT account_id FROM orders)`, "approximate", "lock account 1"},
	{`SELECT max(id) FROM (SELECT id FROM account) q`, "exact", "read account 1, read account 2, read account 3, read account 4"},
	{`SELECT * FROM (SELECT max(q.id) FROM (SELECT id FROM account) q) p`, "exact", ""}, // the end of an index
	{`WITH q AS (SELECT id FROM account WHERE id = 1) SELECT DISTINCT id FROM q`, "rows", "read account 1"},
	{`SELECT (SELECT count(*) FROM orders), count(*) FROM account`, "exact", "read account 1, read account 2, read account 3, read account 4, read orders 10, read orders 11, read orders 12, read orders 13"},
	{`SELECT count(*) FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, "approximate", "read account 2"},
	{`SELECT id, (SELECT b.v FROM big b WHERE b.id = a.id) FROM account a WHERE id < 3`, "exact", "read account 1, read account 2, read big 1, read big 2"},
	{`SELECT id, (SELECT count(*) FROM big b WHERE b.v = a.id) FROM account a WHERE id < 3`, "approximate", "read account 1, read account 2"},
	{`SELECT id, (SELECT max(balance) FROM rich WHERE id = 2) FROM account WHERE id = 1`, "approximate", ""}, // refused
	{`SELECT id, (SELECT x.id FROM orders x WHERE x.nope = 1) FROM account WHERE id = 1`, "exact", ""},

	// INSERT
	{`INSERT INTO account VALUES (5, 'eve', 500)`, "exact", "insert account 5"},
	{`INSERT INTO account (id) VALUES (5), (6)`, "exact", "insert account 5, insert account 6"},
	{`INSERT INTO account AS a (id) VALUES (5) RETURNING *`, "exact", "insert account 5"},
	{`INSERT INTO account (id) VALUES (5) RETURNING a.id`, "exact", ""}, // refused
	{`INSERT INTO account (id, owner) VALUES (5, 'x') RETURNING id, owner || 'y' AS z; -- end`, "exact", "insert account 5"},
	{`INSERT INTO gen DEFAULT VALUES`, "exact", "-"},
	{`INSERT INTO gen (v) VALUES (7) RETURNING twice`, "exact", "-"},
	{`INSERT INTO account SELECT id + 10, owner FROM account WHERE id < 3`, "exact", "insert account 11, insert account 12, read account 1, read account 2"},
	{`INSERT INTO account SELECT id + 10, owner FROM account ORDER BY id LIMIT 1`, "approximate", "insert account 11"}, // which one it read is not certain
	{`INSERT INTO account (id, owner) SELECT o.id, a.owner FROM orders o JOIN account a ON a.id = o.account_id WHERE o.id = 12 ON CONFLICT (id) DO NOTHING`, "approximate", "insert account 12, read account 2, read orders 12"},
	{`INSERT INTO account (id) SELECT id + 60 FROM orders WHERE id = 12 RETURNING id`, "exact", "insert account 72, read orders 12"},
	{`INSERT INTO account (id) SELECT 9 WHERE NOT EXISTS (SELECT 1 FROM account WHERE id = 9)`, "rows", "insert account 9"},
	{`INSERT INTO account (id) SELECT 9 WHERE NOT EXISTS (SELECT 1 FROM account WHERE id = 1)`, "rows", ""}, // account 1 kept it from inserting
	{`INSERT INTO account (id) SELECT count(*) + 50 FROM orders WHERE amount > 2`, "exact", "insert account 53, read orders 11, read orders 12, read orders 13"},
	{`INSERT INTO account (id) SELECT 70 UNION SELECT id + 70 FROM account WHERE id = 1`, "exact", "insert account 70, insert account 71, read account 1"},
	{`INSERT INTO account (id) SELECT 80 + floor(random()) FROM account WHERE random() > 2`, "approximate", ""},
	{`INSERT INTO account SELECT 7, 'x'`, "exact", "insert account 7"},
	{`INSERT INTO account VALUES (1, 'dup')`, "exact", ""},
	{`INSERT INTO account (id, nope) VALUES (1, 'dup')`, "exact", ""},
	{`INSERT INTO account VALUES (1, 'dup') ON CONFLICT DO NOTHING`, "exact", ""}, // what it met is a predicate read
	{`INSERT INTO account VALUES (21, 'new') ON CONFLICT DO NOTHING RETURNING id`, "exact", "insert account 21"},
	{`INSERT INTO account VALUES (1, 'dup'), (21, 'new') ON CONFLICT DO NOTHING`, "2 rows", "insert account 21"},
	{`INSERT INTO account VALUES (22, 'a'), (21, 'new') ON CONFLICT DO NOTHING`, "2 rows", "insert account 21, insert account 22"},
	{`INSERT INTO account SELECT 21, 'new' ON CONFLICT DO NOTHING`, "approximate", "insert account 21"},
	{`INSERT INTO account VALUES (1, 'dup'), (8, 'new') ON CONFLICT (id) DO UPDATE SET owner = excluded.owner`, "exact", "insert account 8, update account 1"},
	{`INSERT INTO account AS t VALUES (1, 'dup', 5) ON CONFLICT (id) DO UPDATE SET balance = t.balance + excluded.balance WHERE t.balance > 0 RETURNING balance`, "rows", "update account 1"},
	{`INSERT INTO part VALUES (9, 'us', 1), (9, 'eu', 1)`, "approximate", "perhaps insert part 'eu' 9, perhaps insert part 'us' 9"},
	{`INSERT INTO part VALUES (1, 'us', 1), (9, 'us', 1) ON CONFLICT (region, id) DO UPDATE SET v = excluded.v`, "opaque", ""},
	{`INSERT INTO part_us (id, region, v) VALUES (1, 'us', 1), (9, 'us', 1) ON CONFLICT (region, id) DO UPDATE SET v = excluded.v`, "exact", "insert part 'us' 9, update part 'us' 1"},
	{`INSERT INTO part_us (id, region, v) VALUES (9, 'eu', 1)`, "exact", ""},
	{`INSERT INTO part_us (id, region, v) VALUES (9, 'us', 1)`, "exact", "insert part 'us' 9"},
	{`INSERT INTO pair VALUES (5, 'ö', 1)`, "exact", "insert pair 5 'ö'"},
	{`INSERT INTO nokey VALUES (5, 'x')`, "exact", "insert nokey"},
	{`INSERT INTO logged VALUES (2, 2)`, "approximate", "insert logged 2"},
	{`INSERT INTO ruled VALUES (2, 2)`, "opaque", ""},
	{`INSERT INTO secured VALUES (2, 1)`, "opaque", ""},
	{`INSERT INTO rich VALUES (9, 'v')`, "opaque", ""},
	{`INSERT INTO fast VALUES (2, 2)`, "exact", "insert fast 2"},
	{`INSERT INTO account SELECT g FROM generate_series(20, 30) g`, "opaque", ""},
	{`WITH n AS (SELECT 9 AS id) INSERT INTO account (id) SELECT id FROM n`, "exact", "insert account 9"},

	// UPDATE
	{`UPDATE account SET balance = balance + 1 WHERE id = 1`, "exact", "update account 1"},
	{`UPDATE account SET balance = 0`, "exact", "update account 1, update account 2, update account 3, update account 4"},
	{`UPDATE account AS a SET balance = 0 WHERE a.id = 2 RETURNING a.*, balance AS b`, "exact", "update account 2"},
	{`UPDATE account SET balance = 0 WHERE id = 77`, "exact", ""},
	{`UPDATE account SET (owner, balance) = ('z', 1) WHERE id = 1`, "exact", "update account 1"},
	{`UPDATE account SET (owner, balance) = (SELECT 'z', max(id) FROM orders) WHERE id = 1`, "approximate", "update account 1"},
	{`UPDATE account SET balance = o.amount FROM orders o WHERE o.account_id = account.id AND o.id = 12`, "exact", "read orders 12, update account 2"},
	{`UPDATE account a SET balance = 5 FROM account b WHERE a.id = 1 AND b.id = 2`, "exact", "read account 2, update account 1"},
	{`UPDATE ONLY account SET balance = 5 WHERE id = 1`, "exact", "update account 1"},
	{`UPDATE account SET id = id + 100 WHERE id = 1`, "exact", "delete account 1, insert account 101"},
	{`UPDATE account SET id = id WHERE id = 1`, "exact", "update account 1"},
	{`UPDATE pair SET b = b || 'ß' WHERE a = 2 OR v = 1 RETURNING b`, "exact", "delete pair 1 'x y', delete pair 2 'äöü', insert pair 1 'x yß', insert pair 2 'äöüß'"},
	{`UPDATE account SET id = a2.id + 200 FROM account a2 WHERE a2.id = 1 AND account.id = 1`, "approximate", "read account 1, update account 201"},
	{`UPDATE nokey SET v = 7`, "exact", "update nokey, update nokey, update nokey"},
	{`UPDATE nokey AS n SET v = 7 WHERE n.v = 1 OR n.v = 2 -- c
RETURNING v`, "exact", "update nokey, update nokey, update nokey"},
	{`UPDATE nokey SET v = (SELECT 1) WHERE v = 1`, "exact", "update nokey, update nokey"},
	{`UPDATE account SET balance = 'x' WHERE id = 1`, "exact", ""},
	{`UPDATE account SET nope = 1 WHERE id = 1`, "exact", ""},
	{`UPDATE part SET v = v + 1`, "exact", "update part 'eu' 1, update part 'eu' 2, update part 'us' 1"},
	{`UPDATE part SET region = 'us' WHERE id = 2`, "opaque", ""},
	{`UPDATE part SET region = 'eu' WHERE region = 'us'`, "opaque", ""},
	{`UPDATE pair SET v = 0 WHERE a = 1 AND b = 'x y'`, "exact", "update pair 1 'x y'"},
	{`UPDATE nokey SET v = 5 WHERE v = 1`, "exact", "update nokey, update nokey"},
	{`UPDATE logged SET v = 5`, "approximate", "update logged 1"},
	{`UPDATE secured SET v = 1`, "opaque", ""},
	{`UPDATE parent SET v = 1`, "opaque", ""},
	{`UPDATE rich SET owner = 'x'`, "opaque", ""},
	{`UPDATE fast SET v = 2`, "exact", "update fast 1"},
	{`WITH m AS (SELECT max(id) AS id FROM orders) UPDATE account SET balance = m.id FROM m WHERE account.id = 1`, "approximate", "update account 1"},
	{`UPDATE account SET balance = DEFAULT WHERE id = 1 -- end`, "exact", "update account 1"},

	// DELETE
	{`DELETE FROM account WHERE id = 1`, "exact", "delete account 1"},
	{`DELETE FROM account`, "exact", "delete account 1, delete account 2, delete account 3, delete account 4"},
	{`DELETE FROM account a USING orders o WHERE o.account_id = a.id AND o.id = 12 RETURNING a.id, o.id`, "exact", "delete account 2, read orders 12"},
	{`DELETE FROM part WHERE id = 1 RETURNING *`, "exact", "delete part 'eu' 1, delete part 'us' 1"},
	{`UPDATE parent_fk SET v = 2`, "exact", "update parent_fk 1"},
	{`UPDATE parent_fk SET id = 1`, "exact", "update parent_fk 1"},
	{`UPDATE code_fk SET id = id, v = 2`, "exact", "update code_fk 1"},
	{`UPDATE code_fk SET v = 2`, "exact", "update code_fk 1"},
	{`UPDATE code_fk SET (v, code) = (2, 8)`, "approximate", "update code_fk 1"},
	{`DELETE FROM code_fk WHERE id = 2`, "exact", ""},
	{`INSERT INTO code_fk VALUES (1, 7, 3) ON CONFLICT (id) DO UPDATE SET v = EXCLUDED.v`, "exact", "update code_fk 1"},
	{`INSERT INTO code_fk VALUES (1, 7, 3) ON CONFLICT (id) DO UPDATE SET code = 9`, "approximate", "update code_fk 1"},
	{`UPDATE twice_fk SET x = 2`, "approximate", "update twice_fk 1"},
	{`DELETE FROM child_fk`, "exact", "delete child_fk 1"},
	{`DELETE FROM nokey WHERE v = 2`, "exact", "delete nokey"},
	{`DELETE FROM account WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, "exact", "delete account 2, read orders 12"},
	{`DELETE FROM account WHERE id IN (SELECT a.id FROM account a JOIN orders o ON o.account_id = a.id WHERE o.note = 'z')`, "exact", "delete account 2, read account 2, read orders 12"},
	{`DELETE FROM account a WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.account_id = a.id)`, "rows", "delete account 3, delete account 4"},
	{`UPDATE account SET balance = 1 WHERE id IN (SELECT account_id FROM orders WHERE id = 12)`, "exact", "read orders 12, update account 2"},
	{`UPDATE account SET balance = 1 WHERE id IN (SELECT account_id FROM orders)`, "exact", "perhaps read orders 10, perhaps read orders 11, read orders 12, update account 1, update account 2"}, // account 1 has two
	{`UPDATE account SET balance = 1 WHERE EXISTS (SELECT 1 FROM orders o WHERE o.account_id = account.id AND o.note = 'z')`, "exact", "read orders 12, update account 2"},
	{`UPDATE account SET balance = (SELECT sum(amount) FROM orders WHERE account_id = 1) WHERE id = 1`, "exact", "read orders 10, read orders 11, update account 1"},
	{`UPDATE account SET balance = (SELECT sum(o.amount) FROM orders o WHERE o.account_id = account.id) WHERE id = 2`, "exact", "read orders 12, update account 2"},
	{`UPDATE account SET id = 20 WHERE id IN (SELECT o.account_id FROM orders o WHERE o.id = 12)`, "approximate", "update account 20"},
	{`UPDATE orders SET account_id = 2 WHERE EXISTS (SELECT 1 FROM account a WHERE a.id = account_id AND a.id < 9)`, "approximate", "update orders 10, update orders 11, update orders 12"}, // its new value is another one

	// left alone
	{`MERGE INTO account a USING orders o ON a.id = o.account_id WHEN MATCHED THEN UPDATE SET balance = 0`, "opaque", ""},
	{`TRUNCATE account`, "opaque", ""},
	{`EXPLAIN SELECT * FROM account`, "", ""},
	{`EXPLAIN (ANALYZE, TIMING off, SUMMARY off, COSTS off) SELECT * FROM account WHERE id = 1`, "opaque", ""},
	{`CREATE TABLE copy AS SELECT * FROM account`, "opaque", ""},
	{`SELECT * INTO copy FROM account`, "opaque", ""},
	{`SELECT id INTO copy FROM account UNION ALL SELECT id FROM orders`, "opaque", ""},
	{`DECLARE c CURSOR FOR SELECT * FROM account`, "exact", ""},
	{`PREPARE p AS SELECT * FROM account`, "", ""},
	{`CREATE TABLE fresh (id int)`, "", ""},
	{`ALTER TABLE account ADD COLUMN extra int`, "opaque", ""},
	{`SET search_path TO public`, "", ""},
	{`LOCK TABLE account`, "", ""},
	{`DO 'BEGIN END'`, "opaque", ""},
	{`SELECT nonsense FROM account`, "exact", ""},
	{`SELECT * FROM missing_table`, "opaque", ""},
	{`SELEC 1`, "opaque", ""},
	{``, "", ""},
	{`;;`, "", ""},
	{`-- nothing`, "", ""},

	// several statements
	{`SELECT 1; SELECT id FROM account WHERE id = 1; ; UPDATE account SET balance = 1 WHERE id = 2; SELECT 2`, "", "read account 1, update account 2"},
	{`UPDATE account SET balance = 1 WHERE id = 2;SELECT balance FROM account WHERE id = 2;DELETE FROM account WHERE id = 3`, "exact", "delete account 3, read account 2, update account 2"},
}

func coverage(p *rewrite.Plan) history.Coverage {
	if p.WithRows == history.CoverageExact && p.Below > 0 {
		return "fewer"
	}
	if p.WithRows == history.CoverageExact && p.Rows > 1 {
		return history.Coverage(fmt.Sprintf("%d rows", p.Rows))
	}
	if p.WithRows == history.CoverageExact {
		return "rows"
	}
	return p.Coverage
}

func TestForms(t *testing.T) {
	conn, c, _ := setUp(t)
	for _, firm := range []bool{false, true} {
		testForms(t, conn, c, firm)
	}
}

// TestLimits: the plan of one LIMIT is not that of another, whichever comes first.
func TestLimits(t *testing.T) {
	_, c, _ := setUp(t)
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range []struct {
		limit int
		want  history.Coverage
	}{{9, history.CoverageExact}, {1, history.CoverageOpaque}, {8, history.CoverageExact}, {2000, history.CoverageOpaque}, {7, history.CoverageExact}} {
		sql := fmt.Sprintf("SELECT DISTINCT account_id FROM orders LIMIT %d", f.limit)
		if p := r.Script(sql, c, postgres.Session{}).Plans[0]; p.Coverage != f.want {
			t.Errorf("%s: coverage %q, want %q", sql, p.Coverage, f.want)
		}
	}
}

// testForms verifies all forms; those in WITH whose columns the table decides are left alone if the text must not be refused.
func testForms(t *testing.T, conn *pgconn.PgConn, c *rewrite.Catalog, firm bool) {
	r := postgres.New(rewrite.CaptureAuto)
	for _, f := range slices.Concat(forms, nativeForms, existenceForms) {
		t.Run(fmt.Sprintf("%t %s", firm, f.sql), func(t *testing.T) {
			if firm && strings.HasPrefix(f.sql, "WITH") && !strings.Contains(f.sql, "INSERT INTO") && (strings.Contains(f.sql, "RETURNING *") || strings.Contains(f.sql, "RETURNING account.*")) {
				f.coverage, f.facts = "-", "-"
			}
			sc := r.Script(f.sql, c, postgres.Session{Firm: firm})
			accs := verify(t, conn, sc, f.sql, "")
			if len(sc.Plans) > 0 && f.coverage != "-" && coverage(sc.Plans[0]) != f.coverage {
				t.Errorf("%s\ncoverage %q (%s), want %q", f.sql, sc.Plans[0].Coverage, sc.Plans[0].Why, f.coverage)
			}
			var all []history.Access
			for _, a := range accs {
				all = append(all, a...)
			}
			if got := facts(all); f.facts != "-" && got != f.facts {
				t.Errorf("%s\nsent %s\ntells %q, want %q", f.sql, sc.SQL, got, f.facts)
			}
			if len(sc.Plans) > 0 && (sc.Plans[0].Coverage == history.CoverageOpaque) != (sc.Plans[0].Why != "" && sc.Plans[0].Coverage != history.CoverageApproximate) {
				t.Errorf("%s\ncoverage %q but why %q", f.sql, sc.Plans[0].Coverage, sc.Plans[0].Why)
			}
		})
	}
}
