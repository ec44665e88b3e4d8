package mysql

import (
	"testing"

	"wirecheck/rewrite"
)

// TestOneGroup: LIMIT hides no group where WHERE leaves one, and the plan of a text is not that of one like it with another OFFSET.
func TestOneGroup(t *testing.T) {
	cat := testCatalog(t)
	r := New(MariaDB, rewrite.CaptureAuto)
	for _, c := range []struct {
		sql string
		one bool
	}{
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id, owner LIMIT 1", true},
		{"SELECT owner, COUNT(*) FROM account WHERE id = ? GROUP BY owner LIMIT 1", true},
		{"SELECT owner, COUNT(*) FROM account WHERE owner = 'ann' GROUP BY owner LIMIT 1", true},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 1 OFFSET 0", true},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 1 OFFSET 1", false},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 0, 1", true},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 2, 1", false},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT 0", false},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY id LIMIT ?", false},
		{"SELECT owner, COUNT(*) FROM account WHERE owner = 7 GROUP BY owner LIMIT 1", false}, // '7' and '7a'
		{"SELECT owner, COUNT(*) FROM account WHERE id > 1 GROUP BY id LIMIT 1", false},
		{"SELECT balance, COUNT(*) FROM account WHERE owner = 'ann' GROUP BY balance LIMIT 1", false},
		{"SELECT balance, COUNT(*) FROM account WHERE id = 1 OR id = 2 GROUP BY id LIMIT 1", false},
		{"SELECT owner, COUNT(*) FROM account WHERE id = 1 GROUP BY LEFT(owner, 1) LIMIT 1", false},
	} {
		s := Session{Database: "shop", GroupConcat: 1 << 20}
		p := r.Script(c.sql, cat, s).Plans[0]
		if len(p.Asks) == 0 && c.one || len(p.Asks) > 0 && (p.Asks[0].Limit == nil) != c.one {
			t.Errorf("%s: asks %+v (%s), want one group %v", c.sql, p.Asks, p.Unread, c.one)
		}
	}
}
