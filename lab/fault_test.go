package lab

import (
	"fmt"
	"net"
	"strings"
	"syscall"
	"testing"

	"wirecheck/answer"
)

// TestFaults: a session whose connection ends has its transaction undone, or committed where it had said so, lets go of its locks, and does nothing more;
// the next case has a new one. The near misses are statements like all others.
func TestFaults(t *testing.T) {
	const src = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int) }
setup { INSERT INTO t VALUES (1, 0), (2, 0) }
session s1
step a1 { BEGIN }
step a2 { UPDATE t SET n = 1 WHERE id = 1 }
step a3 { %s }
step a4 { SELECT 1 }
session s2
step b1 { UPDATE t SET n = n + 5 WHERE id = 1 }
step b2 { SELECT n FROM t WHERE id = 1 }
permutation a1 a2 b1 a3 b2 a4
`
	for _, name := range []string{"postgres", "mariadb"} {
		c := place(t, name)
		c.Reset = Quick
		l := open(t, c)
		for _, tt := range []struct {
			sql, is string // what is in the row at the end
			ends    bool
			effect  answer.Effect
		}{
			{"ROLLBACK /* wirecheck: killed */", "5", true, ""}, {"ROLLBACK /* wirecheck: cut */", "5", true, ""},
			{"COMMIT /* wirecheck: cut */", "6", true, answer.EffectGone},
			{"ROLLBACK /* killed */", "5", false, ""}, {"COMMIT /* wirecheck: killed */", "6", false, ""}, {"ROLLBACK /* wirecheck: cut", "", false, ""},
		} {
			if tt.is == "" { // a comment that does not end is no statement that can be executed
				if fault(tt.sql) != "" {
					t.Errorf("%q ends a connection", tt.sql)
				}
				continue
			}
			spec := parse(t, fmt.Sprintf(src, tt.sql))
			var before []uint64
			for range 2 {
				r, err := l.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
				if err != nil || r.Trouble != nil || r.Crashed {
					t.Fatalf("%s, %s: %v, %+v", name, tt.sql, err, r)
				}
				var did []string
				for _, ev := range r.Events {
					if ev.Kind != Ran || ev.Step.Name == "a4" {
						did = append(did, fmt.Sprint(ev.Step.Name, " ", ev.Kind))
					}
					if ev.Step.Name == "a3" && tt.ends && (tt.effect != "" && ev.Outcome.Effect != tt.effect || tt.effect == "" && ev.Outcome.Effect == answer.EffectGone) {
						t.Errorf("%s, %s: %+v", name, tt.sql, ev.Outcome)
					}
				}
				want := fmt.Sprint("b1 ", Waits, ", b1 ", Resumed, ", a4 ", Ran)
				if tt.ends {
					want = fmt.Sprint("b1 ", Waits, ", a4 ", Skipped, ", b1 ", Resumed)
				}
				if got := strings.Join(did, ", "); got != want {
					t.Errorf("%s, %s: %s, want %s", name, tt.sql, got, want)
				}
				if got := string(r.Tables[0].Rows[0][1]) + string(r.Tables[0].Rows[1][1]); !strings.Contains(got, tt.is) {
					t.Errorf("%s, %s: %s in the end, want %s", name, tt.sql, got, tt.is)
				}
				if before != nil && (before[0] != r.Backends[0]) != tt.ends {
					t.Errorf("%s, %s: connection %d, then %d", name, tt.sql, before[0], r.Backends[0])
				}
				before = r.Backends
			}
		}
	}
}

// TestKilledInWait: a statement that is to be killed in a wait ends its session as soon as it waits, its transaction's work is undone, and who waited for
// that goes on. The near misses do not wait, or are statements like all others.
func TestKilledInWait(t *testing.T) {
	const src = `
setup { CREATE TABLE t (id int PRIMARY KEY, n int) }
setup { INSERT INTO t VALUES (1, 0), (2, 0) }
session s1
step a1 { BEGIN }
step a2 { UPDATE t SET n = 1 WHERE id = 1 }
step a3 { UPDATE t SET n = n + 2 WHERE id = %d %s }
step a4 { COMMIT }
session s2
step b1 { BEGIN }
step b2 { UPDATE t SET n = 5 WHERE id = 2 }
step b3 { COMMIT }
session s3
step c1 { UPDATE t SET n = n + 7 WHERE id = 1 }
permutation b1 b2 a1 a2 c1 a3 b3 a4
`
	const mark = "/* wirecheck: killed in a wait */"
	for _, name := range []string{"postgres", "mariadb"} {
		l := open(t, place(t, name))
		for _, tt := range []struct {
			id            int
			comment       string
			did, contents string
		}{
			{2, mark, "c1 waits, a3 waits, a3 resumed, a4 skipped, c1 resumed", "7 5"},
			{1, mark, "c1 waits, c1 resumed", "10 5"},
			{2, "/* killed in a wait */", "c1 waits, a3 waits, a3 resumed, c1 resumed", "8 7"},
		} {
			spec := parse(t, fmt.Sprintf(src, tt.id, tt.comment))
			for range 2 {
				r, err := l.Run(t.Context(), spec, spec.Permutations[0], func(bool) {})
				if err != nil || r.Trouble != nil || r.Crashed {
					t.Fatalf("%s, %+v: %v, %+v", name, tt, err, r)
				}
				var did []string
				for _, ev := range r.Events {
					if ev.Kind != Ran {
						did = append(did, fmt.Sprint(ev.Step.Name, " ", ev.Kind))
					}
					if ev.Step.Name == "a3" && ev.Kind == Resumed && (ev.Outcome.Reason == answer.ReasonKilled) != (tt.comment == mark) {
						t.Errorf("%s, %+v: %+v", name, tt, ev.Outcome)
					}
				}
				if got := strings.Join(did, ", "); got != tt.did {
					t.Errorf("%s, %+v: %s", name, tt, got)
				}
				if got := string(r.Tables[0].Rows[0][1]) + " " + string(r.Tables[0].Rows[1][1]); got != tt.contents {
					t.Errorf("%s, %+v: %s in the end", name, tt, got)
				}
			}
		}
	}
}

// TestWireIsASocket: what a session keeps to cut its connection does not hide the socket, by which the connection knows that it has read all notices.
func TestWireIsASocket(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := new(session).remembering(nil)(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	c, ok := conn.(syscall.Conn)
	if !ok {
		t.Fatal("the socket is hidden")
	}
	if _, err := c.SyscallConn(); err != nil {
		t.Error(err)
	}
	one, other := net.Pipe()
	defer one.Close()
	defer other.Close()
	if _, err := (&wire{Conn: one}).SyscallConn(); err == nil {
		t.Error("a pipe has a socket")
	}
}
