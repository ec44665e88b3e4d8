package live_test

import "testing"

// TestCascadeFound: what a foreign key deletes is the deleting transaction's, of the rows that it does delete.
func TestCascadeFound(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE shop (k int PRIMARY KEY)", "CREATE TABLE sale (k int PRIMARY KEY, shop int REFERENCES shop ON DELETE CASCADE, v int)", "CREATE TABLE mark (k int PRIMARY KEY)")
	s.before = []string{"TRUNCATE shop, sale, mark", "INSERT INTO shop VALUES (1), (2)", "INSERT INTO sale VALUES (10, 1, 0), (20, 2, 0)"}
	for read, want := range map[string]string{"10": "G-single read skew", "20": ""} {
		_, r := s.play("READ COMMITTED", "1 SELECT v FROM sale WHERE k = "+read, "2 !DELETE FROM shop WHERE k = 1", "2 INSERT INTO mark VALUES (7)", "2 COMMIT", "1 SELECT k FROM mark WHERE k = 7", "1 COMMIT")
		if got := names(r); got != want || r.Coverage.Approximate > 0 {
			t.Errorf("sale %s: found %q, want %q; %s", read, got, want, r.Coverage)
		}
	}
}
