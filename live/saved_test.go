package live_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestSavedWhole: two requests read a row and write all of its columns back in autocommit, as frameworks with soft deletes do: the column that says whether the
// row is deleted stands in the condition and among the assignments, NULL each time. That is no check of what the other one changed.
func TestSavedWhole(t *testing.T) {
	newStand(t, 2, items).saved()
}

// TestSavedWholeOnMariaDB is TestSavedWhole there.
func TestSavedWholeOnMariaDB(t *testing.T) {
	openStand(t, testserver.Family(t).Database(t), true, 2, items).saved()
}

const items = "CREATE TABLE item (id INT PRIMARY KEY, name VARCHAR(20), stock INT, version INT, gone INT)"

func (s *stand) saved() {
	const read = "SELECT * FROM item WHERE id = 1 AND gone IS NULL"
	upsert := func(values, set string) string {
		if s.family {
			return fmt.Sprintf("INSERT INTO item (id, name, stock) VALUES (1, %s) ON DUPLICATE KEY UPDATE %s", values, regexp.MustCompile(`new\.(\w+)`).ReplaceAllString(set, "VALUES($1)"))
		}
		return fmt.Sprintf("INSERT INTO item (id, name, stock) VALUES (1, %s) ON CONFLICT (id) DO UPDATE SET %s", values, strings.ReplaceAll(set, "new.", "EXCLUDED."))
	}
	for _, tt := range []struct{ name, first, second, want string }{
		{"saved twice", "UPDATE item SET name = 'tea', stock = 8, gone = NULL WHERE gone IS NULL AND id = 1",
			"UPDATE item SET name = 'tea', stock = 7, gone = NULL WHERE gone IS NULL AND id = 1", "G-single-request lost update between requests"},
		{"with a version", "UPDATE item SET name = 'tea', stock = 8, version = 2, gone = NULL WHERE gone IS NULL AND id = 1 AND version = 1",
			"UPDATE item SET name = 'tea', stock = 7, version = 2, gone = NULL WHERE gone IS NULL AND id = 1 AND version = 1", ""},
		{"deleted in between", "UPDATE item SET gone = 1 WHERE gone IS NULL AND id = 1",
			"UPDATE item SET name = 'tea', stock = 7, gone = NULL WHERE gone IS NULL AND id = 1", ""},
		{"another column in between", "UPDATE item SET name = 'cup', gone = NULL WHERE gone IS NULL AND id = 1",
			"UPDATE item SET stock = 7, gone = NULL WHERE gone IS NULL AND id = 1", ""},
		{"deleted in between, and restored unseen", "UPDATE item SET stock = 8 WHERE id = 1",
			"UPDATE item SET stock = 7, gone = NULL WHERE id = 1", "G-single-request lost update between requests"},
		{"upserts", upsert("'tea', 8", "stock = new.stock"), upsert("'tea', 7", "name = new.name, stock = new.stock"), "G-single-request lost update between requests"},
		{"an upsert", "UPDATE item SET stock = 8 WHERE id = 1", upsert("'tea', 0", "name = 'tea', stock = 7"), "G-single-request lost update between requests"},
		{"an upsert of another column", "UPDATE item SET name = 'cup' WHERE id = 1", upsert("'x', 7", "stock = new.stock"), ""},
		{"an upsert of what was not read", "UPDATE item SET stock = 8 WHERE id = 1", strings.Replace(upsert("'tea', 7", "stock = new.stock"), "(1,", "(2,", 1), ""},
		{"an upsert that computes", upsert("'tea', 8", "stock = item.stock - 2"), upsert("'tea', 7", "stock = item.stock - 3"), ""},
	} {
		for _, q := range []string{"DELETE FROM item", "INSERT INTO item VALUES (1, 'tea', 10, 1, NULL)"} {
			if _, err := ask(s.sessions[0], q); err != nil {
				s.t.Fatal(err)
			}
		}
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared(true)
		for i, q := range []string{read, read, tt.first, tt.second} {
			if _, err := ask(s.sessions[i%2], fmt.Sprintf("/*request_id='%d'*/ %s", i%2, q)); err != nil {
				s.t.Fatal(err)
			}
		}
		for _, c := range s.sessions { // MariaDB tells with the next statement which row the last one wrote
			if _, err := ask(c, "SELECT count(*) FROM item WHERE id = 7"); err != nil {
				s.t.Fatal(err)
			}
		}
		got := ""
		for _, f := range s.proxy.Checker.Result().Findings {
			got += fmt.Sprintf("%s %s", f.Class, f.Name)
		}
		if got != tt.want {
			s.t.Errorf("%s: found %q, want %q", tt.name, got, tt.want)
		}
	}
}
