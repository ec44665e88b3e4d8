package live_test

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestCutAnswersFamily: sql_select_limit hides rows from a client. A row that it hides is not one that the server did not see.
func TestCutAnswersFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, strings.Replace(bookings, "TIMESTAMP", "DATETIME", 1))
	var rows []string
	for id := range 21 {
		rows = append(rows, fmt.Sprintf("(%d, 6, NULL, 'ann')", id+1))
	}
	for _, limit := range []string{"20", "DEFAULT"} {
		for _, q := range []string{"DELETE FROM booking", "INSERT INTO booking (id, room, hour, guest) VALUES " + strings.Join(rows, ", ")} {
			if _, err := ask(s.direct, q); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := ask(s.sessions[0], "SET sql_select_limit = "+limit); err != nil {
			t.Fatal(err)
		}
		found, r := s.play("READ COMMITTED",
			"2 UPDATE booking SET room = 0 WHERE id = 21",
			"1 SELECT * FROM booking WHERE room > 4 ORDER BY id",
			"2 UPDATE booking SET guest = 'x' WHERE id = 1",
			"2 COMMIT",
			"1 COMMIT")
		if len(found) > 0 {
			t.Errorf("limit %s: found %q; %s", limit, found, fmt.Sprintf("%+v", r.Coverage))
		}
		if why := r.Coverage.WhyUnread(); strings.Contains(why, "sql_select_limit") != (limit == "20") {
			t.Errorf("limit %s: not evaluated: %q; %s", limit, why, r.Coverage)
		}
	}
}
