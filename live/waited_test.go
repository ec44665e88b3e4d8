package live_test

import (
	"strings"
	"testing"

	"wirecheck/product"
)

// TestWaitedFor: a statement that waits for a transaction at READ COMMITTED sees what it locks as that transaction left it, and all else as it was before
// (PostgreSQL manual, 13.2.1). Its snapshot tells, though it ends behind that transaction's COMMIT.
func TestWaitedFor(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE cart (id INT PRIMARY KEY, total INT)", "CREATE TABLE item (id SERIAL PRIMARY KEY, cart INT, price INT)")
	const total = " UPDATE cart SET total = (SELECT coalesce(sum(price), 0) FROM item WHERE cart = 1) WHERE id = 1"
	fill := func() {
		t.Helper()
		for _, sql := range []string{"TRUNCATE cart, item", "INSERT INTO cart VALUES (1, 10), (2, 0)", "INSERT INTO item (cart, price) VALUES (1, 10), (1, 20)"} {
			if _, err := ask(s.direct, sql); err != nil {
				t.Fatal(err)
			}
		}
	}
	fill()
	s.play("READ COMMITTED", "1"+total, "1 SELECT id FROM item WHERE cart = 1 FOR UPDATE", "1 DELETE FROM item WHERE cart = 1", "1 ROLLBACK") // from now on images are asked for
	for _, c := range []struct {
		name  string
		want  string
		lines []string
	}{
		{"a sum without the row of the other one", "G-single phantom", []string{"1 INSERT INTO item (cart, price) VALUES (1, 5)", "1" + total, "2&" + total, "1 COMMIT", "2 COMMIT"}},
		{"of another cart", "", []string{"1 INSERT INTO item (cart, price) VALUES (2, 5)", "1" + total, "2&" + total, "1 COMMIT", "2 COMMIT"}},
		{"a row that was moved into it", "G-single phantom", []string{"2 INSERT INTO item (cart, price) VALUES (3, 5)", "2 COMMIT", "1 UPDATE item SET cart = 1 WHERE cart = 3", "1" + total, "2&" + total, "1 COMMIT", "2 COMMIT"}},
		{"committed before", "", []string{"1 INSERT INTO item (cart, price) VALUES (1, 5)", "1" + total, "1 COMMIT", "2" + total, "2 COMMIT"}},
		{"locked in a statement of its own", "", []string{"1 INSERT INTO item (cart, price) VALUES (1, 5)", "1" + total, "2& SELECT id FROM cart WHERE id = 1 FOR UPDATE", "1 COMMIT", "2" + total, "2 COMMIT"}},
		{"a DELETE misses a new row", "G-single phantom", []string{"1 UPDATE item SET price = 30 WHERE price = 20", "1 INSERT INTO item (cart, price) VALUES (1, 5)", "2& DELETE FROM item WHERE cart = 1", "1 COMMIT", "2 COMMIT"}},
		{"a DELETE follows a row out of its condition", "", []string{"1 UPDATE item SET cart = 2 WHERE price = 20", "2& DELETE FROM item WHERE cart = 1", "1 COMMIT", "2 COMMIT"}},
		{"a locking SELECT misses a new row", "G-single phantom", []string{"1 UPDATE item SET price = 30 WHERE price = 20", "1 INSERT INTO item (cart, price) VALUES (1, 5)", "2& SELECT id, price FROM item WHERE cart = 1 FOR UPDATE", "1 COMMIT", "2 COMMIT"}},
		{"a locking SELECT that reads nothing of the other one's", "", []string{"1 UPDATE item SET price = 30 WHERE price = 20", "1 INSERT INTO item (cart, price) VALUES (1, 5)", "2& SELECT id FROM item WHERE cart = 1 FOR UPDATE", "1 COMMIT", "2 COMMIT"}},
		{"a new row of a subtransaction", "G-single phantom", []string{"1 UPDATE item SET price = 30 WHERE price = 20", "1 SAVEPOINT a", "1 INSERT INTO item (cart, price) VALUES (1, 5)", "2& DELETE FROM item WHERE cart = 1", "1 COMMIT", "2 COMMIT"}},
		{"a new row that went away", "", []string{"1 UPDATE item SET price = 30 WHERE price = 20", "1 SAVEPOINT a", "1 INSERT INTO item (cart, price) VALUES (1, 5)", "1 ROLLBACK TO a", "2& DELETE FROM item WHERE cart = 1", "1 COMMIT", "2 COMMIT"}},
	} {
		fill()
		found, r := s.play("READ COMMITTED", c.lines...)
		if got := strings.Join(found, ", "); got != c.want {
			t.Errorf("%s: found %q, want %q; %s", c.name, got, c.want, r.Coverage)
		}
		for _, f := range r.Findings {
			if f.PreventedBy != product.RepeatableRead {
				t.Errorf("%s: prevented by %q", c.name, f.PreventedBy)
			}
			for _, remedy := range f.Remedies {
				if strings.Contains(remedy.Text, "one statement") {
					t.Errorf("%s: one statement saw a part: %s", c.name, remedy.Text)
				}
			}
		}
	}
}
