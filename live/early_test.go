package live_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgproto3"
)

// TestEarlySnapshot: PostgreSQL takes the snapshot of a transaction at REPEATABLE READ when it parses the first statement, and that of a SELECT when it
// binds it. What commits between that and the Execute is not seen, and the other way round: what commits before is.
func TestEarlySnapshot(t *testing.T) {
	const query = "SELECT id FROM booking WHERE room = 7"
	parse := []pgproto3.FrontendMessage{&pgproto3.Parse{Name: "early", Query: query}}
	bind := []pgproto3.FrontendMessage{&pgproto3.Bind{DestinationPortal: "early", PreparedStatement: "early"}}
	describe := []pgproto3.FrontendMessage{&pgproto3.Describe{ObjectType: 'S', Name: "early"}}
	execute := []pgproto3.FrontendMessage{&pgproto3.Execute{Portal: "early"}}
	begin := []pgproto3.FrontendMessage{&pgproto3.Parse{Query: "BEGIN"}, &pgproto3.Bind{}, &pgproto3.Execute{}}
	for _, tt := range []struct {
		name, level    string
		before, behind [][]pgproto3.FrontendMessage // the other session's COMMIT
		want           string
		rows           int
	}{
		{"parsed before", "REPEATABLE READ", [][]pgproto3.FrontendMessage{parse}, [][]pgproto3.FrontendMessage{bind, execute}, "", 0},
		{"parsed behind", "REPEATABLE READ", nil, [][]pgproto3.FrontendMessage{parse, bind, execute}, "", 1},
		{"described before", "REPEATABLE READ", [][]pgproto3.FrontendMessage{parse, describe}, [][]pgproto3.FrontendMessage{bind, execute}, "", 0},
		{"parsed before, and BEGIN again", "REPEATABLE READ", [][]pgproto3.FrontendMessage{parse}, [][]pgproto3.FrontendMessage{begin, bind, execute}, "", 0},
		{"parsed before a BEGIN that goes on", "", [][]pgproto3.FrontendMessage{parse}, [][]pgproto3.FrontendMessage{begin, bind, execute}, "", 0},
		{"BEGIN before, and parsed behind", "", [][]pgproto3.FrontendMessage{begin}, [][]pgproto3.FrontendMessage{parse, bind, execute}, "", 1},
		{"bound before", "READ COMMITTED", [][]pgproto3.FrontendMessage{parse, bind}, [][]pgproto3.FrontendMessage{execute}, "", 0},
		{"bound behind", "READ COMMITTED", [][]pgproto3.FrontendMessage{parse}, [][]pgproto3.FrontendMessage{bind, execute}, "G-single read skew", 1},
		{"read before, and bound behind", "READ COMMITTED", [][]pgproto3.FrontendMessage{parse, bind, execute}, [][]pgproto3.FrontendMessage{bind, execute}, "G-single read skew", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStand(t, 3, bookings, "INSERT INTO booking VALUES (1, 1, NULL, 'ann')")
			raw := func(c conn, list [][]pgproto3.FrontendMessage) (rows int) {
				front := c.pg.PgConn().Frontend()
				for _, messages := range list { // each is answered before the next one is sent
					for _, m := range messages {
						front.Send(m)
					}
					front.Send(&pgproto3.Flush{})
					if err := front.Flush(); err != nil {
						t.Fatal(err)
					}
					for range messages {
						rows = 0
						for over := false; !over; {
							m, err := front.Receive()
							if err != nil {
								t.Fatal(err)
							}
							switch m := m.(type) {
							case *pgproto3.DataRow:
								rows++
							case *pgproto3.ParseComplete, *pgproto3.BindComplete, *pgproto3.CommandComplete, *pgproto3.RowDescription:
								over = true
							case *pgproto3.ErrorResponse:
								t.Fatal(m.Message)
							}
						}
					}
					if messages[0] == execute[0] { // its portal may be made again
						front.Send(&pgproto3.Close{ObjectType: 'P', Name: "early"})
						front.Send(&pgproto3.Flush{})
						if err := front.Flush(); err != nil {
							t.Fatal(err)
						}
						if m, err := front.Receive(); err != nil || fmt.Sprintf("%T", m) != "*pgproto3.CloseComplete" {
							t.Fatal(m, err)
						}
					}
				}
				return rows
			}
			mine, other := s.sessions[0], s.sessions[1]
			do := func(c conn, query string) {
				if _, err := ask(c, query); err != nil {
					t.Fatalf("%s: %v", query, err)
				}
			}
			s.play("READ COMMITTED", "1 SELECT id FROM booking WHERE room = 7") // from now on the images are wanted
			s.proxy.Checker.Restart()
			s.proxy.Checker.Prepared(true)
			for _, q := range []string{"BEGIN", "SELECT guest FROM booking WHERE id = 2"} { // it is open all the while
				do(s.sessions[2], q)
			}
			if tt.level == "" { // the messages begin a transaction
				do(mine, "SET default_transaction_isolation TO 'repeatable read'")
			} else {
				do(mine, "BEGIN ISOLATION LEVEL "+tt.level)
			}
			guest := func(level string) { // it is read before the other session changes it, by the text or by the snapshot
				if tt.level == level {
					do(mine, "SELECT guest FROM booking WHERE id = 1")
				}
			}
			guest("READ COMMITTED")
			raw(mine, tt.before)
			do(other, "BEGIN")
			do(other, "INSERT INTO booking VALUES (10, 7, NULL, 'bob')")
			do(other, "UPDATE booking SET guest = 'bob' WHERE id = 1")
			do(other, "COMMIT")
			rows := raw(mine, tt.behind)
			if front := mine.pg.PgConn().Frontend(); rows != tt.rows {
				t.Fatalf("%d rows, want %d", rows, tt.rows)
			} else {
				front.Send(&pgproto3.Sync{})
				if err := front.Flush(); err != nil {
					t.Fatal(err)
				}
				if m, err := front.Receive(); err != nil || fmt.Sprintf("%T", m) != "*pgproto3.ReadyForQuery" {
					t.Fatal(m, err)
				}
			}
			guest("REPEATABLE READ")
			guest("")
			do(mine, "COMMIT")
			do(s.sessions[2], "COMMIT")
			got := ""
			r := s.proxy.Checker.Result()
			for _, f := range r.Findings {
				got += fmt.Sprintf("%s %s", f.Class, f.Name)
			}
			if got != tt.want {
				t.Errorf("found %q, want %q; %s", got, tt.want, r.Coverage)
			}
		})
	}
}
