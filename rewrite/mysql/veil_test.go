package mysql

import (
	"testing"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// tidbCatalog has the tables account and item, whose columns are ordinary ones, and one without.
func tidbCatalog(t testing.TB) *rewrite.Catalog {
	t.Helper()
	rows := [][]string{
		{"V", "8.0.11-TiDB-v8.4.0", "shop", "2", "", "", ""},
		{"T", "shop", "account", "BASE TABLE", "InnoDB", "", ""}, {"T", "shop", "item", "BASE TABLE", "InnoDB", "", ""}, {"T", "shop", "plain", "BASE TABLE", "InnoDB", "", ""},
		{"C", "shop", "plain", "a", "int", "", "1"},
	}
	for _, table := range []string{"account", "item"} {
		rows = append(rows, []string{"I", "shop", table, "PRIMARY", "id", "0", "1"}, []string{"C", "shop", table, "id", "int", "", "1"}, []string{"C", "shop", table, table + "v", "int", "", "2"},
			[]string{"C", "shop", table, "wc_row_id", "varchar(36)", "DEFAULT_GENERATED", "3"}, []string{"C", "shop", table, "wc_writers", "varchar(168)", "", "4"})
	}
	cat, err := LoadCatalog(rows)
	if err != nil {
		t.Fatal(err)
	}
	return cat
}

func TestVeil(t *testing.T) {
	cat := tidbCatalog(t)
	r := New(TiDB, rewrite.CaptureAuto)
	for _, test := range []struct{ sql, want string }{
		{"SELECT DISTINCT * FROM account", "SELECT DISTINCT `account`.`id`,`account`.`accountv` FROM account"},
		{"SELECT DISTINCT shop.a.*, 1 FROM account a", "SELECT DISTINCT `a`.`id`,`a`.`accountv`, 1 FROM account a"},
		{"SELECT DISTINCT 2 * id FROM account", ""},
		{"SELECT COUNT(*) FROM account", ""},
		{"SELECT DISTINCT * FROM plain", ""},
		{"SELECT * FROM (SELECT * FROM item) d", "SELECT * FROM (SELECT `item`.`id`,`item`.`itemv` FROM item) d"},
		{"SELECT DISTINCT * FROM plain, item", "SELECT DISTINCT `plain`.*,`item`.`id`,`item`.`itemv` FROM plain, item"},
		{"SELECT DISTINCT * FROM account a NATURAL JOIN item", "SELECT DISTINCT `a`.`id`,`a`.`accountv`,`item`.`itemv` FROM account a  JOIN item USING (`id`) "},
		{"SELECT DISTINCT * FROM account NATURAL RIGHT JOIN item", ""}, // not certain
		{"SELECT DISTINCT * FROM account JOIN item USING (id) JOIN plain", ""},
		{"TABLE item", "SELECT `item`.`id`,`item`.`itemv` FROM item"},
		{"CREATE VIEW v AS SELECT * FROM item", "CREATE VIEW v AS SELECT `item`.`id`,`item`.`itemv` FROM item"},
		{"CREATE VIEW v AS SELECT id FROM item", ""},
		{"INSERT INTO item TABLE account", "INSERT INTO item (`id`,`itemv`)  SELECT `account`.`id`,`account`.`accountv` FROM account"},
		{"INSERT INTO item VALUES (1,2,3,4)", "INSERT INTO item (`id`,`itemv`)  VALUES (1,2,3,4)"},
		{"INSERT INTO item (id) SELECT 1", ""},
		{"INSERT INTO plain VALUES (1)", ""},
	} {
		for _, script := range []*rewrite.Script{r.Script(test.sql, cat, Session{Database: "shop"}), r.Prepare(test.sql, cat, Session{Database: "shop"})} {
			if test.want == "" {
				test.want = test.sql
			}
			if script.SQL != test.want || script.Plans[0].Coverage == history.CoverageExact && script.Plans[0].Verb != "ddl" {
				t.Errorf("%s\n got %s (%s, %s)\nwant %s", test.sql, script.SQL, script.Plans[0].Coverage, script.Plans[0].Why, test.want)
			}
		}
	}
}

// A text that differs in its literals alone gets its own ones, also where the rewriter repeats them.
func TestShapesOnTiDB(t *testing.T) {
	cat := tidbCatalog(t)
	cached := New(TiDB, rewrite.CaptureAuto)
	for _, sql := range []string{
		"UPDATE item SET itemv = 1 WHERE id = 5", "UPDATE item SET itemv = 22 WHERE id = 6", "UPDATE item SET itemv = 333 WHERE id = 77",
		"SELECT item.*, 1 FROM item WHERE id = 1", "SELECT item.*, 22 FROM item WHERE id = 333", "INSERT INTO item VALUES (1,2)", "INSERT INTO item VALUES (11,22)",
	} {
		want := New(TiDB, rewrite.CaptureAuto).Script(sql, cat, Session{Database: "shop"})
		if got := cached.Script(sql, cat, Session{Database: "shop"}); got.SQL != want.SQL || got.SQL == sql {
			t.Errorf("%s\n got %s\nwant %s", sql, got.SQL, want.SQL)
		}
	}
}
