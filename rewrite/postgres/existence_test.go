package postgres_test

// existenceForms ask whether an outer join has a row, as TypeORM's exists() does of a relation: if WHERE makes an inner join of it, the only row tells what was read of each table.
var existenceForms = []form{
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE (((a.id = 2)) AND (o.note = 'z'))) LIMIT 1`, "exact", "read account 2, read orders 12"},
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE (((a.id = 1)) AND (o.note > 'a'))) LIMIT 1`, "exact", "perhaps read orders 10, perhaps read orders 11, read account 1"}, // either of two, and the account of both
	{`SELECT EXISTS (SELECT 1 FROM orders a, account b WHERE b.id < 3 AND a.id < 12) AS a`, "exact", "perhaps read account 1, perhaps read account 2, perhaps read orders 10, perhaps read orders 11"},
	{`SELECT EXISTS (SELECT 1 FROM orders a, orders b, account c WHERE c.id = 1) AS a`, "exact", "perhaps read orders 10, perhaps read orders 10, perhaps read orders 11, perhaps read orders 11, perhaps read orders 12, perhaps read orders 12, perhaps read orders 13, perhaps read orders 13, read account 1"},
	{`SELECT EXISTS (SELECT 1 FROM orders a, orders b, account c WHERE c.id < 3) AS a`, "exact", ""}, // one of 32
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE (((a.id = 9)) AND (o.note = 'z'))) LIMIT 1`, "exact", ""},
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE o.note = 'z') LIMIT 1`, "opaque", ""}, // the server leaves account out
	{`SELECT 1 AS one FROM (SELECT 1 AS dummy) d WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account a ON a.id = o.account_id WHERE (a.id = 2 OR o.id = 13) AND o.note = 'z') LIMIT 1`, "opaque", ""},
	{`SELECT EXISTS (SELECT 1 FROM account a RIGHT JOIN orders o ON a.id = o.account_id WHERE a.id = 2)`, "exact", "read account 2, read orders 12"},
	{`SELECT EXISTS (SELECT 1 FROM account a RIGHT JOIN orders o ON a.id = o.account_id WHERE o.id = 12)`, "opaque", ""},
	{`SELECT EXISTS (SELECT 1 FROM account a FULL JOIN orders o ON a.id = o.account_id WHERE a.id = 2 AND o.id = 12)`, "opaque", ""},
	{`SELECT id FROM account a WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account b ON b.id = o.account_id WHERE o.account_id = a.id AND b.owner = 'bob')`, "exact", "read account 2, read account 2, read orders 12"},
	{`SELECT id FROM account a WHERE EXISTS (SELECT 1 FROM orders o LEFT JOIN account b ON b.id = o.account_id WHERE o.account_id = a.id AND a.owner = 'bob')`, "approximate", "read account 2"},
	{`SELECT id FROM account WHERE id IN (SELECT o.account_id FROM orders o LEFT JOIN account b ON b.id = o.account_id WHERE b.owner = 'bob')`, "exact", "read account 2, read account 2, read orders 12"},
	// exists() of Django and Rails: the answer depends on the row if there is no other one
	{`SELECT 1 AS a FROM orders WHERE note = 'z' LIMIT 1`, "exact", "read orders 12"},
	{`SELECT 1 AS a FROM orders WHERE account_id = 1 LIMIT 1`, "exact", "perhaps read orders 10"}, // either of two
	{`SELECT 1 AS a FROM orders WHERE account_id = 1 LIMIT 2`, "exact", "read orders 10, read orders 11"},
	{`SELECT (1) AS a, 'x'::text FROM orders WHERE account_id = 1 ORDER BY id DESC LIMIT 3;`, "exact", "read orders 10, read orders 11"},
	{`SELECT 1 AS a FROM orders WHERE account_id = 77 LIMIT 1`, "exact", ""},
	{`SELECT 1 AS a FROM orders WHERE account_id = 2 LIMIT 0`, "exact", ""},
	{`SELECT 1 AS a FROM orders WHERE account_id = 2 LIMIT 1 OFFSET 1`, "exact", ""},
	{`SELECT 1 AS a FROM orders o JOIN account a ON a.id = o.account_id WHERE a.owner = 'bob' LIMIT 1`, "exact", "read account 2, read orders 12"},
	{`SELECT 1 AS a FROM account WHERE id = 1 LIMIT 1 FOR UPDATE`, "exact", "lock account 1"},
}
