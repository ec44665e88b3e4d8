package live_test

import "testing"

// TestPreparedRows: what a client past the proxy wrote before a judgement began is initial, whether the catalog is read again or not. Beside it stands the
// same write with no new judgement behind it, whose writer is unknown.
func TestPreparedRows(t *testing.T) {
	s := newStand(t, 1, "CREATE TABLE r (id INT PRIMARY KEY, n INT)")
	do := func(c conn, query string) {
		t.Helper()
		if _, err := ask(c, query); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
	}
	for _, tt := range []struct {
		name           string
		begin          func()
		unknownWriters int
	}{
		{"rows put back", func() { s.proxy.Checker.Prepared(false) }, 0},
		{"rows put back once more", func() { s.proxy.Checker.Prepared(false) }, 0},
		{"all put back", func() { s.proxy.Checker.Prepared(true) }, 0},
		{"no new judgement", func() {}, 1},
	} {
		do(s.sessions[0], "SELECT n FROM r WHERE id = 0")
		do(s.direct, "DELETE FROM r")
		do(s.direct, "INSERT INTO r VALUES (1, 1)")
		s.proxy.Checker.Restart()
		tt.begin()
		do(s.sessions[0], "SELECT n FROM r WHERE id = 1")
		c := s.proxy.Checker.Result().Coverage
		if c.Exact != 1 || c.UnknownWriters != tt.unknownWriters {
			t.Errorf("%s: %d of unknown writers, not %d: %s", tt.name, c.UnknownWriters, tt.unknownWriters, c)
		}
	}
}
