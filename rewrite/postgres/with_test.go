package postgres_test

// nativeForms are further statements as in forms; with capture by columns less of them is seen.
var nativeForms = []form{
	// parts of WITH that write
	{`WITH d AS (DELETE FROM orders WHERE id = 10 RETURNING id) SELECT a.id FROM account a, d WHERE a.id = 1`, "rows", "delete orders 10, read account 1"},
	{`WITH d AS (DELETE FROM orders WHERE id < 12 RETURNING *) INSERT INTO account SELECT id, note FROM d`, "exact", "delete orders 10, delete orders 11, insert account 10, insert account 11"},
	{`WITH d AS (DELETE FROM orders WHERE id > 11 RETURNING *) INSERT INTO account (id, owner) SELECT d.id, d.note FROM d RETURNING *`, "exact", "delete orders 12, delete orders 13, insert account 12, insert account 13"},
	{`WITH d(x, y) AS (DELETE FROM orders WHERE id = 13 RETURNING orders.*) INSERT INTO account (id) SELECT x + y FROM d`, "exact", "delete orders 13, insert account 112"},
	{`WITH d AS (DELETE FROM orders WHERE id = 99 RETURNING id) INSERT INTO account SELECT id FROM d`, "exact", ""},
	{`WITH u (a, b) AS (UPDATE account SET balance = balance + 1 WHERE id = 1 RETURNING id, balance AS n) SELECT b, a FROM u`, "exact", "update account 1"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1) SELECT 1`, "rows", "update account 1"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1) SELECT * FROM u`, "opaque", ""}, // the server finds an error
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id > 2 RETURNING *) SELECT count(u.*), count(*) FROM u`, "exact", "update account 3, update account 4"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING *) SELECT u, row_to_json(u) FROM u LIMIT 1`, "rows", "update account 1"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 77 RETURNING *) INSERT INTO orders (id) SELECT 77 WHERE NOT EXISTS (SELECT * FROM u)`, "rows", "insert orders 77"},
	{`WITH u AS (UPDATE account SET id = 50 WHERE id = 4 RETURNING id), i AS (INSERT INTO nokey SELECT id FROM u) DELETE FROM orders WHERE id = 10`, "rows", "delete account 4, delete orders 10, insert account 50, insert nokey"},
	{`WITH c AS (SELECT id FROM account WHERE id > 1 ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED), u AS (UPDATE account SET balance = 1 FROM c WHERE account.id = c.id RETURNING account.*) SELECT * FROM u`, "exact", "lock account 2, update account 2"},
	{`WITH c AS (SELECT account_id FROM orders WHERE id = 12), u AS (UPDATE account SET balance = 1 WHERE id IN (SELECT account_id FROM c) RETURNING id) SELECT id FROM u`, "approximate", "update account 2"},
	{`WITH c AS (SELECT id FROM orders WHERE id = 12), u AS (UPDATE account SET balance = c.id FROM c WHERE account.id = 1 RETURNING c.id) SELECT c.id FROM u, c`, "approximate", "update account 1"},
	{`WITH account AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING *) SELECT id FROM account`, "approximate", "update account 1"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING id), d AS (DELETE FROM account WHERE id = 2) SELECT id FROM u`, "opaque", ""}, // one table
	{`WITH i AS (INSERT INTO account VALUES (1, 'dup') ON CONFLICT DO NOTHING RETURNING id) SELECT count(*) FROM i`, "exact", ""},
	{`WITH i AS (INSERT INTO account VALUES (1, 'dup'), (21, 'new') ON CONFLICT DO NOTHING RETURNING id) SELECT count(*) FROM i`, "approximate", "insert account 21"},
	{`WITH i AS (INSERT INTO orders VALUES (10, 1) ON CONFLICT (id) DO NOTHING RETURNING id) SELECT id FROM i UNION ALL SELECT id FROM account WHERE id = 3 LIMIT 1`, "rows", "read account 3"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING id) SELECT id FROM u UNION SELECT id FROM orders WHERE id = 10`, "approximate", "update account 1"},
	{`WITH i AS (INSERT INTO logged VALUES (2, 2) RETURNING id) SELECT id FROM i`, "opaque", ""},
	{`WITH d AS (DELETE FROM parent_fk RETURNING id) SELECT id FROM d`, "opaque", ""},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING id, id) SELECT 1 FROM u`, "opaque", ""},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING *) SELECT balance FROM account WHERE id = 1`, "rows", "read account 1, update account 1"},
	{`WITH u AS (UPDATE account SET balance = 1 WHERE id = 1 RETURNING id) SELECT id FROM u UNION ALL SELECT id FROM orders WHERE id = 10`, "rows", "read orders 10, update account 1"},

	// common table expressions that are used several times
	{`WITH c AS (SELECT id, balance FROM account WHERE id < 4) SELECT id, (SELECT count(*) FROM c) FROM c ORDER BY id LIMIT 2`, "rows", "read account 1, read account 2, read account 3"},
	{`WITH c AS (SELECT id, balance FROM account WHERE id < 4) SELECT (SELECT count(*) FROM c), o.id FROM orders o, c WHERE o.id = 10`, "exact", "read account 1, read account 2, read account 3, read orders 10, read orders 10, read orders 10"},
	{`WITH c AS (SELECT id FROM account WHERE id < 3) SELECT id FROM c UNION ALL SELECT -id FROM c`, "rows", "read account 1, read account 1, read account 2, read account 2"},
	{`WITH c AS (SELECT id FROM account WHERE id < 3) SELECT id FROM c UNION ALL SELECT -id FROM c WHERE id = (SELECT max(account_id) FROM orders)`, "opaque", ""},
	{`WITH c AS (SELECT id FROM account WHERE id < 3) SELECT id FROM c WHERE EXISTS (SELECT 1 FROM c d WHERE d.id > c.id)`, "opaque", ""},
	{`WITH c AS (SELECT id FROM account WHERE id < 3 LIMIT 1) SELECT id, (SELECT count(*) FROM c) FROM c`, "opaque", ""},
	{`WITH c AS (SELECT id FROM account WHERE id < 3) SELECT a.id FROM c a JOIN c b ON a.id = b.id`, "opaque", ""},
}
