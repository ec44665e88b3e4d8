package live_test

import (
	"strings"
	"testing"

	"wirecheck/internal/testserver"
)

// TestTimestampsFamily: a TIMESTAMP is compared in the time zone of the session, so its comparison is judged where that is UTC. Who wrote the row, and in which time zone, is of no matter.
func TestTimestampsFamily(t *testing.T) {
	if testserver.IsTiDB() {
		t.Skip("not yet there")
	}
	s := openStand(t, testserver.Family(t).Database(t), true, 2, "CREATE TABLE visit (id INT PRIMARY KEY, at TIMESTAMP(2) NULL, n INT)", rooms[0], rooms[1])
	const between = "SELECT count(*) FROM visit WHERE at >= '2026-11-01 09:00:00' AND at < '2026-11-01 12:00'"
	for _, tt := range []struct{ name, zone, writer, query, at, want string }{
		{"within", "+00:00", "+00:00", between, "'2026-11-01 11:59:59.99'", "G2 write skew"},
		{"behind", "+00:00", "+00:00", between, "'2026-11-01 12:00:00'", ""},
		{"written elsewhere", "+00:00", "+09:00", between, "'2026-11-01 20:59:59'", "G2 write skew"},
		{"behind, written elsewhere", "+00:00", "+09:00", between, "'2026-11-01 21:00:00'", ""},
		{"read elsewhere", "+09:00", "+00:00", between, "'2026-11-01 11:00:00'", ""},
		{"NULL", "+00:00", "+09:00", "SELECT count(*) FROM visit WHERE at IS NULL", "NULL", "G2 write skew"},
		{"an interval", "+00:00", "-03:30", "SELECT n FROM visit WHERE n = 5 AND at + INTERVAL 1 DAY > '2026-11-02 10:00:00'", "'2026-11-01 06:31'", "G2 write skew"},
		{"the day", "+00:00", "+01:00", "SELECT n FROM visit WHERE DATE(at) = '2026-11-01' AND n = 5", "'2026-11-02 00:30'", "G2 write skew"},
		{"the last one", "+00:00", "+01:00", "SELECT id, at FROM visit WHERE at IS NOT NULL ORDER BY at DESC LIMIT 1", "'2026-11-05 00:30'", "G2 write skew"},
		{"not the last one", "+00:00", "+01:00", "SELECT id, at FROM visit WHERE at IS NOT NULL ORDER BY at DESC LIMIT 1", "'2026-10-20 01:30'", ""},
		{"the zero date", "+00:00", "+00:00", "SELECT count(*) FROM visit WHERE at < '1980-01-01 00:00:00'", "'0000-00-00 00:00:00'", ""},
	} {
		both := func(queries ...string) {
			for _, q := range queries {
				for i, c := range s.sessions {
					if q := strings.Split(q, "|"); q[min(i, len(q)-1)] != "" {
						if _, err := ask(c, q[min(i, len(q)-1)]); err != nil {
							t.Fatal(q, err)
						}
					}
				}
			}
		}
		both("SET sql_mode = ''", "DELETE FROM visit|UPDATE room SET floor = 3 WHERE id = 1", "SET time_zone = '+00:00'", "INSERT INTO visit VALUES (1, '2026-10-31 00:00:00', 1)|", "SET time_zone = '"+tt.zone+"'|SET time_zone = '"+tt.writer+"'")
		found, r := s.play("READ COMMITTED", "1 "+tt.query, "2 SELECT floor FROM room WHERE id = 1", "2 INSERT INTO visit VALUES (2, "+tt.at+", 5)", "2 COMMIT", "1 UPDATE room SET floor = 9 WHERE id = 1", "1 COMMIT")
		if got := strings.Join(found, ", "); got != tt.want {
			t.Errorf("%s: found %q, want %q; %s", tt.name, got, tt.want, r.Coverage)
		}
		if known := tt.zone == "+00:00" && tt.name != "the zero date"; known != (r.Coverage.Unevaluated()+r.Coverage.Blind == 0) {
			t.Errorf("%s: %s", tt.name, r.Coverage)
		}
	}
}
