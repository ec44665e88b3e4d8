package mysql

import (
	"testing"

	"wirecheck/history"
)

// An answer without rows does not tell what subqueries read; one with rows does, where that is certain.
func TestSubqueriesTellWithRows(t *testing.T) {
	cat := testCatalog(t)
	for sql, want := range map[string]history.Coverage{
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id LIMIT 1)":                              exact,
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id LIMIT 0)":                              "",
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id LIMIT 1, 1)":                           "",
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id) OR a.id = 1":                          "",
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = 'x')":                                       "", // it warns
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE RAND() < 1)":                                            "",
		"SELECT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id) FOR UPDATE":                           "",
		"SELECT balance FROM item WHERE balance IN (SELECT id FROM account WHERE balance = 5)":                                           "", // exact in any case
		"SELECT note FROM item WHERE balance IN (SELECT balance FROM account)":                                                           "", // of several rows any may have been read
		"SELECT COUNT(*) FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id)":                                  "",
		"SELECT DISTINCT note FROM account a WHERE NOT EXISTS (SELECT 1 FROM item i WHERE i.balance = a.id)":                             "",
		"SELECT SUM(balance), COUNT(note) FROM account LIMIT 1":                                                                          exact,
		"SELECT note, (SELECT SUM(i.balance) FROM item i WHERE i.id = a.id) FROM account a WHERE a.id NOT IN (SELECT balance FROM item)": exact,
	} {
		for _, s := range []Session{{Database: "shop", GroupConcat: 1 << 20}, {Database: "shop", GroupConcat: 1 << 20, LockingReads: true}} {
			p := New(MariaDB, "").Script(sql, cat, s).Plans[0]
			expected := want
			if s.LockingReads && sql[:10] != "SELECT SUM" {
				expected = ""
			}
			if p.WithRows != expected {
				t.Errorf("%s (locking %v): with rows %q, coverage %q: %s; want %q", sql, s.LockingReads, p.WithRows, p.Coverage, p.Why, expected)
			}
		}
	}
}
