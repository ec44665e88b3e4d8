package mysql

import (
	"slices"
	"strings"
	"testing"

	"wirecheck/history"
	"wirecheck/internal/testserver"
	"wirecheck/rewrite"
)

// What clients see of every form is the same on TiDB with the columns and without, and what is captured is what happened.
func TestFormsOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	for _, forms := range [][]form{selects, updates, inserts, deletes} {
		for _, f := range forms {
			if !slices.Contains(unordered, f.sql) && f.sql != natural {
				p.check(t, f.sql)
			}
		}
	}
}

// natural shows the hidden columns: which columns a derived table has in common with a table is not known (docs/reference/limits.md).
const natural = "SELECT * FROM (SELECT id, note FROM account) d NATURAL JOIN parent"

// unordered forms have an answer, or an effect, that depends on the order of rows that TiDB does not keep from run to run.
var unordered = []string{
	"SELECT DISTINCT note FROM account LIMIT 2",
	"SELECT DISTINCT a.owner, i.name FROM account a JOIN item i ON i.account_id = a.id LIMIT 2",
	"SELECT note FROM account UNION SELECT b FROM bare LIMIT 1",
	"INSERT INTO item (account_id, name) SELECT DISTINCT 7, name FROM item",
	"INSERT INTO item (account_id, name) SELECT 7, name FROM item GROUP BY name",
}

// What would show the columns is written out, and what can be seen of ordinary forms is seen.
func TestVeilOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	for _, f := range []form{
		{"SELECT * FROM account WHERE id = 1", exact, 1},
		{"SELECT * FROM account", exact, 4},
		{"SELECT a.*, i.* FROM account a JOIN item i ON i.account_id = a.id", exact, 6},
		{"SELECT i.*, balance FROM account a LEFT JOIN item i ON i.account_id = a.id", exact, 7},
		{"SELECT @@db.account.* FROM @@db.account", exact, 4},
		{"SELECT *, 1 FROM parts", exact, 4},
		{"SELECT * FROM account WHERE id = 1 FOR UPDATE", exact, 1},
		{"SELECT DISTINCT * FROM bare", opaque, 0},
		{"SELECT * FROM bare UNION SELECT * FROM bare", opaque, 0},
		{"SELECT * FROM bare INTERSECT SELECT id, owner FROM account", opaque, 0},
		{"TABLE bare", opaque, 0},
		{"SELECT * FROM (SELECT * FROM bare) d", exact, 4},
		{"SELECT * FROM (SELECT * FROM bare LIMIT 1) d", opaque, 0},
		{"WITH w AS (SELECT * FROM account) SELECT * FROM w", opaque, 0},
		{"WITH w AS (TABLE bare) SELECT * FROM w", opaque, 0},
		{"SELECT id FROM parent WHERE (id, v) IN (SELECT * FROM parent)", approx, 2},
		{"SELECT * FROM parent WHERE EXISTS (SELECT * FROM child WHERE parent_id = parent.id)", approx, 2},
		{"SELECT * FROM rich", opaque, 0},
		{"SELECT * FROM parent NATURAL JOIN child", approx, 2},
		{"SELECT * FROM parent p NATURAL LEFT JOIN child AS c", approx, 2},
		{"SELECT c.* FROM parent p NATURAL JOIN child c WHERE p.v = 1", approx, 1},
		{"SELECT * FROM parent JOIN child USING (id)", exact, 4},
		{"SELECT p.*, c.* FROM parent p LEFT JOIN child c USING (id)", exact, 4},
		{"SELECT COUNT(*), SUM(balance) FROM account WHERE balance > 0", exact, 4},
		{"SELECT COUNT(*) FROM account WHERE id = 1", opaque, 0},
		{"SELECT COUNT(*) FROM account a JOIN item i ON i.account_id = a.id", exact, 5},
		{"SELECT account_id, COUNT(*) FROM item GROUP BY account_id", exact, 4},
		{"SELECT account_id, COUNT(*) FROM item GROUP BY account_id LIMIT 1", opaque, 0},
		{"SELECT COUNT(*) FROM (SELECT DISTINCT note FROM account WHERE balance > 0) d", exact, 4},
		{"SELECT COUNT(*) FROM (SELECT DISTINCT note FROM account WHERE id = 1) d", opaque, 0},
		{"SELECT DISTINCT owner FROM account", opaque, 0},
		{"SELECT COUNT(*) FROM account WHERE balance > 0 FOR UPDATE", opaque, 0},
		{"SELECT MAX(id) FROM account", opaque, 0},
		{"SELECT COUNT(*) FROM parent NATURAL JOIN child", opaque, 0},
		{"SELECT owner FROM account WHERE owner > 'a'", exact, 3},
		{"SELECT owner FROM account WHERE owner > 'a' LIMIT 1", opaque, 0},
		{"SELECT owner FROM account WHERE owner > 'a' FOR UPDATE", opaque, 0},
		{"SELECT a.id, i.account_id FROM account a JOIN item i ON i.account_id = a.id", exact, 5},
		{"SELECT i.account_id FROM account a JOIN item i ON i.account_id = a.id", exact, 5},
		{"SELECT a.owner, i.account_id FROM account a JOIN item i ON i.account_id = a.id WHERE a.id = 1", exact, 3},
		{"SELECT a.owner FROM account a LEFT JOIN item i ON i.account_id = a.id WHERE a.id = 1", approx, 2},
		{"INSERT INTO bare VALUES (7, 'x'), (8, 'y')", exact, 0},
		{"INSERT INTO bare VALUES (7, 'x', 'y', 'z')", opaque, 0},
		{"INSERT INTO bare VALUES (7)", opaque, 0},
		{"INSERT INTO bare SELECT * FROM bare", approx, 0},
		{"INSERT INTO bare (b, a) SELECT b, a FROM bare", approx, 0},
		{"INSERT INTO bare TABLE bare", opaque, 0},
		{"SELECT * FROM parent NATURAL JOIN parts", exact, 4},
		{"INSERT INTO parts VALUES (1, 5) ON DUPLICATE KEY UPDATE v = 5", exact, 1},
		{"INSERT INTO parent VALUES (1, 5), (9, 9) ON DUPLICATE KEY UPDATE v = 5", approx, 0},
		{"REPLACE INTO parent VALUES (9, 5)", approx, 0},
		{"UPDATE account SET balance = balance - 50 WHERE id = 1", exact, 1},
		{"UPDATE account SET balance = 100, owner = 'ann' WHERE id = 1", exact, 1},
		{"UPDATE account SET balance = 100.4 WHERE id = 1", opaque, 0},
		{"UPDATE account SET balance = '100' WHERE id = 1", exact, 1},
		{"UPDATE account SET balance = balance / 1 WHERE id = 1", opaque, 0},
		{"UPDATE kinds SET d = d * 1.5 WHERE id = 1", opaque, 0},
		{"UPDATE kinds SET d = d + 0.50 WHERE id = 1", exact, 1},
		{"UPDATE kinds SET j = '{}' WHERE id = 1", opaque, 0},
		{"UPDATE account SET balance = (SELECT MAX(v) FROM parent) WHERE id = 1", opaque, 0},
		{"UPDATE account SET balance = 1 WHERE (id, 1) IN (SELECT * FROM parent)", approx, 1},
		{"DELETE FROM account WHERE balance > 100", exact, 3},
		{"DELETE FROM account LIMIT 1", opaque, 0},
	} {
		plan, accesses := p.try(t, f.sql, false, nil)
		if plan.Coverage != f.coverage || len(accesses) != f.n {
			t.Errorf("%s: coverage %q (%s), %d accesses; want %q, %d", f.sql, plan.Coverage, plan.Why, len(accesses), f.coverage, f.n)
		}
		p.try(t, f.sql, true, nil)
	}
}

// The images of what is written are those of the rows, also where what is assigned takes another form in the column.
func TestImagesOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	p.images = true
	p.rewriter.WantAll()
	images := map[string]int{}
	check := func(sql string) {
		_, accesses := p.check(t, sql)
		for _, a := range accesses {
			if a.Op != history.OpMatch && a.Op != history.OpRead {
				images[sql] += len(a.Image)
			}
		}
	}
	for _, forms := range [][]form{updates, inserts, deletes} {
		for _, f := range forms {
			if !slices.Contains(unordered, f.sql) {
				check(f.sql)
			}
		}
	}
	for _, sql := range []string{
		"UPDATE account SET balance = balance + 1", "UPDATE account SET balance = -2147483648 + id, owner = 'Zoë'", "UPDATE account SET owner = NULL, note = '' WHERE id > 1",
		"UPDATE account SET owner = 12, balance = '7'", "UPDATE account SET owner = CONCAT(owner, 'x') WHERE id = 1", "UPDATE kinds SET d = d + 0.50 WHERE id = 1",
		"INSERT INTO parent (id, v) VALUES (8, 4 + 4), (9, id + 1)", "INSERT INTO bare SET a = 9, b = CONCAT('q', a)",
	} {
		if check(sql); images[sql] == 0 {
			t.Errorf("%s: no images", sql)
		}
	}
}

// A column of the answer that is an expression has its text for a name, so * in EXISTS stays.
func TestExistsOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	for _, sql := range []string{
		"SELECT EXISTS (SELECT * FROM account WHERE id = 1)", "SELECT id, NOT EXISTS(SELECT a.*, 1 FROM account a WHERE a.id = item.account_id) FROM item",
		"SELECT EXISTS (SELECT * FROM bare WHERE a IN (SELECT id FROM account))",
	} {
		plan, _ := p.try(t, sql, false, nil)
		if !strings.Contains(rewrite.Apply(sql, plan.Edits), "*") {
			t.Errorf("%s: sent %s", sql, rewrite.Apply(sql, plan.Edits))
		}
	}
}

// A view has the client's columns for ever.
func TestViewOnTiDB(t *testing.T) {
	if !testserver.IsTiDB() {
		t.Skip("make test-engines runs this")
	}
	p := newPair(t, 0)
	const sql = "CREATE VIEW every AS SELECT * FROM bare"
	p.plain.exec(t, sql)
	p.wired.exec(t, p.rewriter.Script(sql, p.catalog, p.session).SQL)
	p.load(t)
	p.check(t, "SELECT * FROM every")
}

// withoutOriginalName takes the sixth string out of a column's definition, the name of the column in its table. TiDB leaves it empty
// where it finds a row by its key without a plan, which it does not do if there is an expression among the columns.
func withoutOriginalName(def []byte) []byte {
	at := 0
	for range 5 {
		at += 1 + int(def[at]) // no name here has 251 bytes
	}
	return slices.Concat(def[:at], []byte{0}, def[at+1+int(def[at]):])
}
