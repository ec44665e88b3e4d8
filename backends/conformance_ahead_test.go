package backends_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/backends/engine"
)

// testAhead: queries that are sent ahead of their turn have the answers that they have otherwise, whatever some of them give and in whatever state the session is. Near
// misses: another statement comes in their place; nobody comes for them, and their answers are long.
func testAhead(t *testing.T, w *world) {
	r := w.room(t)
	s, plain := r.session(), r.session()
	ahead, ok := s.conn.(engine.Expecter)
	if !ok {
		t.Fatal("this product's connections send nothing ahead")
	}
	expect := func(list ...string) {
		t.Helper()
		if err := ahead.Expect(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	ask := func(s *session, sql string) string {
		t.Helper()
		a, err := s.conn.Do(t.Context(), sql)
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%s, %s:", a.Before, a.After)
		for _, res := range a.Results {
			text += fmt.Sprintf(" %d columns, %s", len(res.Columns), printRows(res.Rows))
		}
		if a.Err != nil {
			text += " error " + a.Err.Code
		}
		return text
	}
	long := choose(w, "SELECT repeat('x', 300000)", "SELECT REPEAT('x', 300000)")
	list := []string{"SELECT COUNT(*) FROM t", "SELECT * FROM nothing", "SELECT 1", long, "SELECT * FROM nothing", "SELECT * FROM nothing", "SELECT 2 /* " + strings.Repeat("y", 2*engine.Window) + " */", "SELECT 3"}
	for i := range 100 {
		list = append(list, fmt.Sprintf("SELECT %d /* %s */", i, strings.Repeat("z", 400)))
	}
	for _, begin := range []string{"", "BEGIN"} {
		for _, s := range []*session{s, plain} {
			if begin != "" {
				s.do(begin)
			}
		}
		expect(list...)
		for _, sql := range list {
			if got, want := ask(s, sql), ask(plain, sql); got != want {
				t.Fatalf("behind %q: %.60s: got %.200s, want %.200s", begin, sql, got, want)
			}
		}
		for _, s := range []*session{s, plain} {
			s.do("ROLLBACK")
		}
	}
	t.Run("another statement", func(t *testing.T) {
		expect("SELECT 1", "SELECT 2", "SELECT 3", "SELECT 4")
		var got []string
		for _, sql := range []string{"SELECT 1", "SELECT 9", "SELECT 2", "SELECT 3"} {
			got = append(got, s.rows(sql))
		}
		if want := []string{"1", "9", "2", "3"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
	t.Run("nobody comes", func(t *testing.T) {
		s.do("CREATE TABLE lingering (a int)")
		expect("SELECT 1", long+" FROM t, t AS x, t AS y, t AS z", "SELECT * FROM lingering")
		s.do("SELECT 1")
		expect()
		plain.do("DROP TABLE lingering") // what is under way would keep it from that
		if resetter, ok := s.conn.(engine.Resetter); ok {
			expect("SELECT 1", "SELECT 2")
			s.do("SELECT 1")
			if err := resetter.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if got := s.rows("SELECT 7"); got != "7" {
			t.Errorf("got %s, want 7", got)
		}
	})
	t.Run("the server ends the connection", func(t *testing.T) { // by the right one: what came before has its answer
		if w.is("tidb") {
			return // it ends no connection by a statement of its own
		}
		s := r.session()
		list := slices.Repeat([]string{"SELECT 1 /* " + strings.Repeat("z", 1000) + " */"}, 80)
		const last = 20
		list[last] = choose(w, "SELECT pg_terminate_backend(pg_backend_pid())", "KILL CONNECTION_ID()")
		if err := s.conn.(engine.Expecter).Expect(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		for i, sql := range list[:last+2] {
			a, err := s.conn.Do(t.Context(), sql)
			if ended := err != nil || a.Err != nil; ended != (i >= last) {
				t.Fatalf("statement %d: %v, %v", i, a.Err, err)
			}
		}
	})
	t.Run("the connection ends", func(t *testing.T) {
		expect("SELECT 1", w.busy(), "SELECT 2")
		s.do("SELECT 1")
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.conn.Do(ctx, w.busy()); err == nil {
			t.Error("a statement that does not end has an answer")
		}
	})
}

// testLocal: who comes by the socket is who comes by TCP. Where that is another user, nobody comes by it.
func testLocal(t *testing.T, w *world) {
	r := w.room(t)
	near := w.server.Local(r.target)
	if network, _ := near.Address(); (network == "unix") != w.postgres() {
		t.Errorf("a target on this machine goes by %s", network)
	}
	conn, err := w.engine.Connect(t.Context(), near)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const who = "SELECT CURRENT_USER"
	if got, want := (&session{room: r, conn: conn}).rows(who), r.session().rows(who); got != want {
		t.Errorf("got %s, by TCP %s", got, want)
	}
}

// TestAheadBounds: no more is under way than the sockets' buffers take, and what was read early is given at its turn.
func TestAheadBounds(t *testing.T) {
	var h engine.Ahead
	var list []string
	for i := range 100 {
		list = append(list, fmt.Sprintf("SELECT %d /* %s */", i, strings.Repeat("z", 1000)))
	}
	h.Expect(slices.Clone(list))
	under, most := 0, 0
	for _, sql := range list {
		sent, _, err := h.Turn(sql, func() error { t.Error("nothing is to be dropped"); return nil })
		if err != nil {
			t.Fatal(err)
		}
		if sent {
			under -= len(sql)
		}
		for _, next := range h.Next() {
			under += len(next)
		}
		most = max(most, under)
	}
	if most > engine.Window || most < engine.Window/2 || under != 0 {
		t.Errorf("at most %d bytes under way, %d at the end; the bound is %d", most, under, engine.Window)
	}
	h.Expect([]string{"a", "b"})
	if _, _, err := h.Turn("a", nil); err != nil {
		t.Fatal(err)
	}
	h.Next()
	read := answer.Answer{Results: []answer.Result{{Tag: "b"}}}
	if err := h.Read(func() (answer.Answer, error) { return read, nil }); err != nil {
		t.Fatal(err)
	}
	sent, got, err := h.Turn("b", nil)
	if err != nil || !sent || got == nil || cmp.Diff(*got, read) != "" {
		t.Errorf("got %v, %v, %v", sent, got, err)
	}
}
