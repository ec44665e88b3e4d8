package replay

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"wirecheck/statement/mysql"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

func TestWithoutTags(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1 /*route='%2Fa',traceparent='00-1-2-3'*/": "SELECT 1",
		"/*action='x'*/ SELECT 1":                          "SELECT 1",
		"SELECT /*+ MAX_EXECUTION_TIME(9) */ 1":            "SELECT /*+ MAX_EXECUTION_TIME(9) */ 1",
		"SELECT '/*a=''b''*/' /* why */":                   "SELECT '/*a=''b''*/' /* why */",
	} {
		if got := WithoutTags(sql, lex.MySQL); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

func TestUnqualified(t *testing.T) {
	describe := mysql.New(mysql.MariaDB).Describe
	for sql, want := range map[string]string{
		"SELECT shop.t.a FROM shop.t WHERE x = 'shop.t'": "SELECT t.a FROM t WHERE x = 'shop.t'",
		"INSERT INTO `Shop`.`t` VALUES (1)":              "INSERT INTO `t` VALUES (1)",
		"SELECT shop.a FROM other.x AS shop":             "SELECT shop.a FROM other.x AS shop",
		"SELECT a.shop FROM other.t a":                   "SELECT a.shop FROM other.t a",
	} {
		verbs, err := describe(sql)
		if err != nil {
			t.Fatal(err)
		}
		if got := Unqualified(sql, "shop", verbs); got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

func TestBraceless(t *testing.T) {
	for _, test := range []struct {
		d         lex.Dialect
		sql, want string
	}{
		{lex.PostgreSQL, `SELECT '{"a": "it''s"}', 1`, `SELECT  E'{"a": "it''s"\x7D', 1`},
		{lex.PostgreSQL, `SELECT E'a\\}'`, `SELECT  E'a\\\x7D'`},
		{lex.PostgreSQL, `AS $f$ x := '{}' $f$ LANGUAGE sql`, `AS  E' x := ''{\x7D'' ' LANGUAGE sql`},
		{lex.PostgreSQL, `SELECT 1 /* } */`, `SELECT 1  `},
		{lex.MySQL, `SELECT '{}'`, `SELECT _utf8mb4 0x7b7d`},
		{lex.MySQL, `SELECT 'a'`, `SELECT 'a'`},
	} {
		if got := Braceless(test.sql, test.d); got != test.want {
			t.Errorf("%s: got %s, want %s", test.sql, got, test.want)
		}
	}
}

// TestDefinitionsViews reads what mysqldump writes of a view: a placeholder, then the view.
func TestDefinitionsViews(t *testing.T) {
	var d Definitions
	for _, sql := range []string{"CREATE TABLE `t` (`n` int)", "CREATE VIEW `v` AS SELECT 1 AS `n`", "CREATE  ALGORITHM=UNDEFINED  SQL SECURITY DEFINER VIEW `v` AS select `t`.`n` AS `n` from `t`"} {
		d.Add(sql)
	}
	if len(d.Before) != 2 || !strings.Contains(d.Before[1], "from `t`") {
		t.Errorf("got %q, want the table and the view", d.Before)
	}
}

// TestDefinitions asks for what statements need of a dump: a table with its sequence, trigger and the trigger's function, and the tables that
// these name; not what only refers to it.
func TestDefinitions(t *testing.T) {
	var d Definitions
	for _, sql := range []string{
		"CREATE SCHEMA shop", "CREATE EXTENSION citext",
		"CREATE TYPE shop.state AS ENUM ('new')",
		"CREATE FUNCTION shop.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO shop.journal VALUES (1); RETURN NEW; END $$",
		"CREATE FUNCTION shop.unused() RETURNS int LANGUAGE sql AS 'SELECT 1'",
		"CREATE TABLE shop.item (id integer, s shop.state)", "CREATE SEQUENCE shop.item_id_seq",
		"ALTER TABLE ONLY shop.item ALTER COLUMN id SET DEFAULT nextval('shop.item_id_seq'::regclass)",
		"CREATE TABLE shop.journal (n int)", `CREATE TABLE shop."order" (item_id int)`, "CREATE VIEW shop.sold AS SELECT * FROM shop.\"order\"",
		"CREATE TRIGGER watch AFTER UPDATE ON shop.item FOR EACH ROW EXECUTE FUNCTION shop.note()",
		"ALTER TABLE ONLY shop.\"order\" ADD CONSTRAINT fk FOREIGN KEY (item_id) REFERENCES shop.item(id)",
		"CREATE INDEX item_s ON shop.item USING btree (s)",
		"ALTER TABLE ONLY shop.item ATTACH PARTITION shop.item_1", "CREATE TABLE shop.item_1 (n int)",
	} {
		d.Add(sql)
	}
	part, names := d.Of(words("UPDATE item SET s = 'new' WHERE id = 1"))
	got := slices.DeleteFunc(slices.Sorted(maps.Keys(names)), func(n string) bool { return n == "" })
	if want := []string{"item", "item_1", "item_id_seq", "journal", "note", "state"}; !slices.Equal(got, want) {
		t.Errorf("needed are %v, want %v", got, want)
	}
	if len(part.After) != 2 || !strings.Contains(part.After[0], "TRIGGER") || !strings.Contains(part.After[1], "INDEX") {
		t.Errorf("behind the rows come %q, want the trigger and the index", part.After)
	}
	if _, names := d.Of(words("SELECT * FROM sold")); !names["order"] || names["journal"] && !names["item"] {
		t.Errorf("a view needs its table: %v", names)
	}
}

// TestVaries: a LIMIT without ORDER BY makes an answer vary only if it cut the answer off, in the trace and now.
func TestVaries(t *testing.T) {
	for _, test := range []struct {
		sql     string
		was     int64
		is      int
		partial bool
		want    bool
	}{
		{"SELECT a FROM t LIMIT 3", 1, 1, false, false},
		{"SELECT a FROM t LIMIT 0, 3", 3, 1, false, false},
		{"SELECT a FROM t LIMIT 3", 3, 3, false, true},
		{"SELECT a FROM t LIMIT 3", trace.Unknown, 1, false, true},
		{"SELECT a FROM t LIMIT 30", 20, 20, true, true},
		{"SELECT a FROM t LIMIT 2, 3", 1, 1, false, true},
		{"SELECT a FROM t LIMIT ?", 1, 1, false, true},
		{"SELECT now() FROM t LIMIT 3", 1, 1, false, true},
		{"DELETE FROM t LIMIT 3", 1, 1, false, true},
		{"SELECT a FROM t ORDER BY a LIMIT 3", 3, 3, false, false},
	} {
		verbs, err := mysql.New(mysql.MariaDB).Describe(test.sql)
		if err != nil {
			t.Fatal(err)
		}
		s := &Step{Volatile: verbs[0].Volatile, form: verbs}
		if got := s.varies(&trace.Result{Count: test.was, Partial: test.partial}, test.is); got != test.want {
			t.Errorf("%s, %d and %d rows: varies %v", test.sql, test.was, test.is, got)
		}
	}
}
