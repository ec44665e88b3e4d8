package live_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestPreparedZones: a prepared statement compares a column with time zone with texts that have none. The server reads those in the text when it prepares the
// statement, or makes its plan again, and parameters with each Bind, in the time zone of that moment.
func TestPreparedZones(t *testing.T) {
	s := newStand(t, 2, "CREATE TABLE visit (id INT PRIMARY KEY, at TIMESTAMPTZ)")
	const (
		texts      = "SELECT count(*) AS n%d FROM visit WHERE at >= '2026-11-22' AND at < '2026-11-22 12:00'"
		parameters = "SELECT count(*) AS n%d FROM visit WHERE at >= $1 AND at < $2"
	)
	for i, tt := range []struct {
		name, query          string
		prepared, then, sent string // the time zones
		want                 string
	}{
		{"all in UTC", texts, "UTC", "UTC", "", "G2 write skew"},
		{"parameters, all in UTC", parameters, "UTC", "UTC", "", "G2 write skew"},
		{"prepared elsewhere", texts, "Asia/Tokyo", "UTC", "", ""},
		{"parameters, prepared elsewhere", parameters, "Asia/Tokyo", "UTC", "", ""},
		{"executed elsewhere", texts, "UTC", "Asia/Tokyo", "", ""},
		{"parameters, executed elsewhere", parameters, "UTC", "Asia/Tokyo", "", ""},
		{"and back", texts, "UTC", "UTC", "Asia/Tokyo", ""},
		{"parameters, moved in the same batch", parameters, "UTC", "UTC", "Asia/Tokyo", ""},
	} {
		if _, err := ask(s.direct, "DELETE FROM visit"); err != nil {
			t.Fatal(err)
		}
		s.proxy.Checker.Restart()
		s.proxy.Checker.Prepared(true)
		ctx := context.Background()
		do := func(query string) {
			for _, c := range s.sessions {
				if _, err := ask(c, query); err != nil {
					t.Fatal(err)
				}
			}
		}
		query, name := fmt.Sprintf(tt.query, i), fmt.Sprintf("visits%d", i)
		do("SET TIME ZONE '" + tt.prepared + "'")
		for _, c := range s.sessions {
			if _, err := c.pg.Prepare(ctx, name, query); err != nil {
				t.Fatal(err)
			}
		}
		if tt.then != tt.prepared {
			do("SET TIME ZONE '" + tt.then + "'")
		}
		do("BEGIN ISOLATION LEVEL READ COMMITTED")
		for _, c := range s.sessions {
			var args []any
			if tt.query == parameters { // as text, as PHP sends them
				args = []any{"2026-11-22", "2026-11-22 12:00"}
			}
			var b pgx.Batch
			if tt.sent != "" {
				b.Queue("SELECT set_config('TimeZone', '" + tt.sent + "', false)")
			}
			b.Queue(name, args...)
			if err := c.pg.SendBatch(ctx, &b).Close(); err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
		}
		for k, c := range s.sessions {
			if _, err := ask(c, fmt.Sprintf("INSERT INTO visit VALUES (%d, '2026-11-22 %d:00+00')", k, k)); err != nil {
				t.Fatal(err)
			}
		}
		do("COMMIT")
		got := ""
		r := s.proxy.Checker.Result()
		for _, f := range r.Findings {
			got += fmt.Sprintf("%s %s", f.Class, f.Name)
		}
		if got != tt.want {
			t.Errorf("%s: found %q, want %q; %s", tt.name, got, tt.want, r.Coverage)
		}
	}
}
