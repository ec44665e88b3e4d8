package live_test

import (
	"fmt"
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestUnseenRowsFamily: where a statement tells nothing of the rows that it makes, the coverage says that no condition was compared with them. Where it tells them, a
// double booking is found.
func TestUnseenRowsFamily(t *testing.T) {
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE tag (id INT PRIMARY KEY, name VARCHAR(20) UNIQUE, n INT)")
	last := 0
	rows := func(n, v int) string {
		var list []string
		for range n {
			last++
			list = append(list, fmt.Sprintf("(%d,'%d',%d)", last, last, v))
		}
		last += 1000
		return strings.Join(list, ",")
	}
	for i, form := range []string{"INSERT INTO tag VALUES %s", "INSERT IGNORE INTO tag VALUES %s", "REPLACE INTO tag VALUES %s", "INSERT IGNORE INTO tag VALUES %s ON DUPLICATE KEY UPDATE n = n"} {
		for k, n := range []int{1, 3, 120} {
			v := 10*i + k
			asks := fmt.Sprintf("SELECT count(*) FROM tag WHERE n = %d", v)
			found, r := s.play("READ COMMITTED", "1 "+asks, "2 "+asks, "1 "+fmt.Sprintf(form, rows(n, v)), "2 "+fmt.Sprintf(form, rows(n, v)), "1 COMMIT", "2 COMMIT")
			told := strings.HasPrefix(form, "INSERT INTO") && n <= 100
			if len(found) == 0 && r.Coverage.Unseen != 2-r.Coverage.Failed || told && len(found) == 0 || len(found) > 0 && r.Coverage.Unseen > 0 {
				t.Errorf("%s, %d rows: found %q, %s", form, n, found, r.Coverage)
			}
		}
	}
}
