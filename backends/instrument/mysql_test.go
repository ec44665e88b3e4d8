package instrument_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/backends/instrument"
	"wirecheck/internal/testserver"
)

var mysqlTables = []string{
	"SET SESSION sql_mode = ''",
	"CREATE TABLE plain (id int AUTO_INCREMENT PRIMARY KEY, v int DEFAULT 7, KEY (v)) AUTO_INCREMENT=40", "INSERT INTO plain (v) VALUES (1), (2), (NULL)",
	"CREATE TABLE nokey (a int, t timestamp NULL DEFAULT NULL ON UPDATE CURRENT_TIMESTAMP, `o u` datetime(3) NULL ON UPDATE CURRENT_TIMESTAMP(3))",
	"INSERT INTO nokey VALUES (1, '2001-01-01', NULL), (1, '2001-01-01', NULL), (NULL, NULL, '2001-01-01')",
	"CREATE TABLE zeros (id int PRIMARY KEY, d date NOT NULL DEFAULT '0000-00-00')", "INSERT INTO zeros VALUES (1, '0000-00-00'), (2, '2001-00-00')",
	"CREATE TABLE parts (id int PRIMARY KEY, v int) PARTITION BY HASH (id) PARTITIONS 3", "INSERT INTO parts VALUES (1, 1), (2, 2)",
	"CREATE TABLE packed (id int PRIMARY KEY, v varchar(100)) ROW_FORMAT=COMPRESSED COMMENT='it''s'", "INSERT INTO packed VALUES (1, 'x')",
	"CREATE TABLE texts (id int PRIMARY KEY, v text, g int GENERATED ALWAYS AS (id * 2) STORED, e int DEFAULT (1 + 1), hid int INVISIBLE, FULLTEXT KEY (v), CHECK (id > 0))",
	"INSERT INTO texts (id, v) VALUES (1, 'x')",
	"CREATE TABLE parent (id int PRIMARY KEY)", "CREATE TABLE child (id int PRIMARY KEY, p int, FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE)",
	"INSERT INTO parent VALUES (1)", "INSERT INTO child VALUES (1, 1)",
	"CREATE TABLE fired (a int)", "INSERT INTO fired VALUES (1)", "CREATE TRIGGER loud BEFORE UPDATE ON fired FOR EACH ROW SET NEW.a = NEW.a + 1",
	"CREATE TABLE `odd ``name.` (`a b` int PRIMARY KEY, hid int INVISIBLE DEFAULT 3)", "INSERT INTO `odd ``name.` VALUES (1)",
	"CREATE TABLE isam (a int) ENGINE=MyISAM", "CREATE VIEW seen AS SELECT * FROM plain",
}

// The hidden columns come and go on MySQL, with the binary log on, and leave no trace; an interrupted run can be gone on
// with, or undone, at each of its steps.
func TestMySQLAddAndRemoveLeaveNoTrace(t *testing.T) {
	if !testserver.IsMySQL() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.MySQL(t).Database(t)
	d.Exec(t, mysqlTables...)
	before := mariadbState(t, d)
	first := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add)
	want := []string{"child", "fired", "nokey", "odd `name.", "packed", "parent", "parts", "plain", "texts", "zeros"}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("tables changed (-want +got):\n%s", diff)
	}
	if again := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add); again != nil {
		t.Errorf("adding again changed %v, want nothing", again)
	}
	during := mariadbState(t, d)
	for name, was := range before {
		if strings.HasSuffix(name, " rows") && during[name] != was {
			t.Errorf("%s with hidden columns:\n%s\nwithout:\n%s", name, during[name], was)
		}
	}
	for query, want := range map[string]string{
		"SELECT count(DISTINCT wc_row_id), min(wc_row_id) > 0, max(wc_writers) FROM nokey": `"3" "1" "0:" `,
		"SELECT count(DISTINCT wc_row_id), min(wc_row_id) > 0, max(wc_writers) FROM plain": `"3" "1" "0:" `,
		"SELECT wc_row_id FROM fired": `"0" `, // its trigger would have changed the row
	} {
		if got := dump(t, d, query); !strings.HasSuffix(got, "\n"+want) {
			t.Errorf("%s: got %s, want %s", query, got, want)
		}
	}
	if removed := apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove); !slices.Equal(removed, first) {
		t.Errorf("removed from %v, want %v", removed, first)
	}
	if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
		t.Errorf("after adding and removing (-before +after):\n%s", diff)
	}
	steps := []string{
		"ALTER TABLE nokey ADD COLUMN wc_row_id BIGINT UNSIGNED NULL DEFAULT 0 INVISIBLE",
		"ALTER TABLE nokey ALTER COLUMN wc_row_id SET DEFAULT (UUID_SHORT())",
		"UPDATE nokey SET wc_row_id = UUID_SHORT(), t = t, `o u` = `o u` LIMIT 1",
	}
	for n := 1; n <= len(steps); n++ {
		for _, undo := range []bool{true, false} {
			d.Exec(t, steps[:n]...)
			if table := open(t, d.URL(), instrument.Options{Tables: []string{"nokey"}}).Tables[0]; table.State != instrument.StatePartial {
				t.Errorf("interrupted after step %d: state %s", n, table.State)
			}
			if !undo {
				apply(t, d.URL(), instrument.Options{Tables: []string{"nokey"}}, (*instrument.Database).Add)
				if got := dump(t, d, "SELECT count(DISTINCT wc_row_id), min(wc_row_id) > 0 FROM nokey"); !strings.HasSuffix(got, `"3" "1" `) {
					t.Errorf("interrupted after step %d, then completed: %s", n, got)
				}
			}
			apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove)
			if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
				t.Errorf("interrupted after step %d (-before +after):\n%s", n, diff)
			}
		}
	}
}

// InnoDB allows 64 instant changes of a table's columns; then it must be copied.
func TestMySQLManyRounds(t *testing.T) {
	if !testserver.IsMySQL() {
		t.Skip("make test-engines runs this")
	}
	d := testserver.MySQL(t).Database(t)
	d.Exec(t, "CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
	before := mariadbState(t, d)
	for range 40 {
		apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Add)
		apply(t, d.URL(), instrument.Options{}, (*instrument.Database).Remove)
	}
	if diff := cmp.Diff(before, mariadbState(t, d)); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}
