package lab

import (
	"net"
	"strings"
	"testing"
	"time"
)

// writes counts what is written to a connection.
type writes struct {
	net.Conn
	n int
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	return w.Conn.Write(p)
}

// TestAloneAhead: the queries of a session that is alone are sent ahead of their turn, and the case is what it is otherwise. Near misses: a session beside it, a proxy in
// between.
func TestAloneAhead(t *testing.T) {
	const setup = "setup { CREATE TABLE t (a INT) }\nsetup { INSERT INTO t VALUES (1), (2) }\nteardown { DROP TABLE t }\nsession s1\n"
	var steps, beside strings.Builder
	for i, sql := range []string{"SELECT * FROM t", "SELECT 1", "SELECT nothing FROM t", "SELECT 2", "BEGIN", "UPDATE t SET a = a + 1", "SELECT a FROM t", "SELECT nothing FROM t", "SELECT a FROM t", "SELECT 3", "ROLLBACK", "SELECT a FROM t", "SELECT 4"} {
		name := "q" + string(rune('a'+i))
		steps.WriteString("step " + name + " { " + sql + " }\n")
		beside.WriteString(" " + name)
	}
	alone := parse(t, setup+steps.String()+"permutation"+beside.String()+"\n")
	two := parse(t, setup+steps.String()+"session s2\nstep other { SELECT 5 }\npermutation other"+beside.String()+"\n")
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			l := open(t, place(t, name))
			want := text(t, l, alone, alone.Permutations[0])
			m := l.members[0]
			w := &writes{Conn: m.wire.Conn}
			m.wire.Conn = w
			for _, test := range []struct {
				name   string
				direct bool
				beside bool
				ahead  bool
			}{{"alone", true, false, true}, {"through a proxy", false, false, false}, {"beside another", true, true, false}} {
				spec := alone
				if test.beside {
					spec = two
				}
				m.direct, m.used, w.n = test.direct, false, 0
				got := text(t, l, spec, spec.Permutations[0])
				if l.members[0] != m {
					t.Fatal("the session is another one")
				}
				if !test.beside && got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
				}
				if most := len(alone.Sessions[0].Steps); (w.n < most) != test.ahead {
					t.Errorf("%s: %d messages written for %d statements", test.name, w.n, most)
				}
			}
		})
	}
}

// TestExpected: a stage sends ahead what it is told of. What nobody asks for keeps nobody from the tables.
func TestExpected(t *testing.T) {
	for _, name := range []string{"postgres", "mariadb"} {
		t.Run(name, func(t *testing.T) {
			s := onStage(t, name)
			if err := s.Prepare(t.Context(), []string{"CREATE TABLE t (a INT)", "INSERT INTO t VALUES (1)"}, 2); err != nil {
				t.Fatal(err)
			}
			long := "SELECT a, " + map[string]string{"postgres": "repeat", "mariadb": "REPEAT"}[name] + "('x', 3000000) FROM t"
			list := []string{"SELECT a FROM t", "SELECT nothing FROM t", "SELECT a + 1 FROM t", long, long, long, "SELECT a FROM t"}
			if err := s.Expect(t.Context(), 1, list); err != nil {
				t.Fatal(err)
			}
			for i, want := range []string{"1", "refused", "2"} {
				if got := given(execute(t, s, 1, list[i])); got != want {
					t.Errorf("%s: got %s, want %s", list[i], got, want)
				}
			}
			tables, err := s.Tables(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			tables[0].Rows[0][0] = []byte("7")
			done := make(chan error, 1)
			go func() { done <- s.Load(t.Context(), tables) }()
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(stageLimit):
				t.Fatal("the rows cannot be loaded")
			}
			if got := given(execute(t, s, 1, "SELECT a FROM t")); got != "7" {
				t.Errorf("got %s, want 7", got)
			}
		})
	}
}
