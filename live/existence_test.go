package live_test

import (
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestPreparedExistenceFamily: SELECT EXISTS in a prepared statement, as Laravel asks, has read no row if it found none. Which one it found is not seen of
// joins: parameters cannot stand twice in the statement.
func TestPreparedExistenceFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("subqueries are not seen there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 1, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1), "INSERT INTO booking VALUES (1, 1, NULL, 'eve')")
	for _, tt := range []struct {
		query, guest string
		opaque       int
	}{
		{"SELECT EXISTS (SELECT * FROM booking WHERE guest = ?) AS `exists`", "ann", 0},
		{"SELECT EXISTS (SELECT * FROM booking WHERE guest = ?) AS `exists`", "eve", 0},
		{"SELECT NOT EXISTS (SELECT * FROM booking WHERE guest = ?) AS free", "ann", 0},
		{"SELECT NOT EXISTS (SELECT * FROM booking WHERE guest = ?) AS free", "eve", 0},
		{"SELECT EXISTS (SELECT * FROM booking a JOIN booking b ON b.room = a.room + 1 WHERE a.guest = ?) AS `exists`", "eve", 1}, // it read the one of the first table
	} {
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared()
		if _, err := ask(s.sessions[0], tt.query, tt.guest); err != nil {
			t.Fatal(err)
		}
		if v := s.proxy.Checker.Result().Coverage; v.Opaque != tt.opaque || v.Exact != 1-tt.opaque {
			t.Errorf("%s of %s: %s", tt.query, tt.guest, v)
		}
	}
}
