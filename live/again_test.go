package live_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestPreparedAgain: prepared statements with parameters in binary form are prepared again when images of all rows are no longer wanted. The client does not have them
// described again, and wirecheck still knows what their parameters and columns are: that the value which a request writes comes from the one that it had read.
func TestPreparedAgain(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE item (id INT PRIMARY KEY, stock INT, price INT)", "INSERT INTO item VALUES (1, 10, 3)")
	read := func(i int) string {
		return "SELECT id, stock FROM item WHERE id = $1 /*request_id='" + string(rune('a'+i)) + "'*/"
	}
	write := func(i int) string {
		return "UPDATE item SET stock = $1 WHERE id = $2 /*request_id='" + string(rune('a'+i)) + "'*/"
	}
	race := func() {
		for i, c := range s.sessions {
			if _, err := ask(c, read(i), 1); err != nil {
				t.Fatal(err)
			}
		}
		for i, c := range s.sessions {
			if _, err := ask(c, write(i), 1000+i, 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	race()
	for range 11 { // as many as end the time in which all is wanted
		var b pgx.Batch
		for range 1000 {
			b.Queue("SELECT 1")
		}
		if err := s.sessions[0].pg.SendBatch(context.Background(), &b).Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := ask(s.sessions[0], "SELECT count(*) FROM item WHERE price = 4"); err != nil { // writes bring the price from now on
		t.Fatal(err)
	}
	s.proxy.Checker.Restart()
	s.proxy.Checker.Prepared(true)
	race()
	if r := s.proxy.Checker.Result(); names(r) != "G-single-request lost update between requests" {
		t.Errorf("found %q; %s", names(r), r.Coverage)
	}
}
