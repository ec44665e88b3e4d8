package replay

import (
	"testing"
	"time"

	"wirecheck/answer"
	"wirecheck/trace/lex"
)

// TestLikePeer: a unit that reads what another one of its shape had read goes on as that one did, unless what it was given, or something else that it reads, may
// have made the difference.
func TestLikePeer(t *testing.T) {
	const count, leave = "SELECT count(*) FROM nurse WHERE on_call", "UPDATE nurse SET on_call = false WHERE name = "
	const row = "SELECT id, name FROM nurse WHERE name = "
	at := time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)
	const view, write = "SELECT n, updated_at FROM page WHERE id = 1", "UPDATE page SET n = 5, updated_at = "
	for _, test := range []struct {
		name      string
		own, peer []string // statements and what they brought in the trace
		now       []string // what the own ones bring now
		want      bool     // it would go on
	}{
		{"the peer's count", []string{count, "count=3", leave + "'bob'", "1 rows"}, []string{count, "count=4", leave + "'ann'", "1 rows"}, []string{"count=4", "1 rows"}, true},
		{"a count that nobody had", []string{count, "count=3", leave + "'bob'", "1 rows"}, []string{count, "count=4", leave + "'ann'", "1 rows"}, []string{"count=2", "1 rows"}, false},
		{"names and ids in the rows", []string{row + "'bob'", "id=2 name=bob", count, "count=3", "UPDATE nurse SET on_call = false WHERE id = 2", "1 rows"},
			[]string{row + "'ann'", "id=1 name=ann", count, "count=4", "UPDATE nurse SET on_call = false WHERE id = 1", "1 rows"}, []string{"id=2 name=bob", "count=4", "1 rows"}, true},
		{"the row says something else", []string{row + "'bob'", "id=2 name=bob rank=1", count, "count=3", "UPDATE nurse SET on_call = false WHERE id = 2", "1 rows"},
			[]string{row + "'ann'", "id=1 name=ann rank=9", count, "count=4", "UPDATE nurse SET on_call = false WHERE id = 1", "1 rows"}, []string{"id=2 name=bob rank=1", "count=4", "1 rows"}, false},
		{"one read as before, one as the peer's", []string{"SELECT max(n) AS a FROM nurse", "a=60", count, "count=60", leave + "'bob'", "1 rows"},
			[]string{"SELECT max(n) AS a FROM nurse", "a=200", count, "count=0", leave + "'ann'", "1 rows"}, []string{"a=60", "count=0", "1 rows"}, false},
		{"a number that it was given", []string{count, "count=3", "INSERT INTO shift (hours, who) VALUES (8, 'bob')", "1 rows"}, []string{count, "count=4", "INSERT INTO shift (hours, who) VALUES (4, 'ann')", "1 rows"},
			[]string{"count=4", "1 rows"}, false},
		{"a text that it may have chosen", []string{count, "count=3", "INSERT INTO shift (who) VALUES ('Thursday')", "1 rows"}, []string{count, "count=4", "INSERT INTO shift (who) VALUES ('Monday')", "1 rows"},
			[]string{"count=4", "1 rows"}, false},
		{"the clock", []string{view, "n=4 updated_at=x", write + "'2026-11-26 09:00:00.12'", "1 rows"}, []string{view, "n=4 updated_at=y", write + "'2026-11-26 11:00:00.5+01'", "1 rows"},
			[]string{"n=4 updated_at=y", "1 rows"}, true},
		{"another time than the clock's", []string{view, "n=4 updated_at=x", write + "'2026-11-26 09:00:07'", "1 rows"}, []string{view, "n=4 updated_at=y", write + "'2026-11-26 10:00:00'", "1 rows"},
			[]string{"n=4 updated_at=y", "1 rows"}, false},
		{"the same number", []string{count, "count=3", "UPDATE shift SET hours = 8 WHERE who = 'bob'", "1 rows"}, []string{count, "count=4", "UPDATE shift SET hours = 8 WHERE who = 'ann'", "1 rows"},
			[]string{"count=4", "1 rows"}, true},
	} {
		own, peer := unitOf(t, test.own...), unitOf(t, test.peer...)
		for i := range own.Steps {
			own.Steps[i].start, peer.Steps[i].start = at.UnixNano(), at.Add(time.Hour).UnixNano()
		}
		g := &Group{Units: []*Unit{own, peer}, State: &State{Filled: map[string]bool{}}}
		none := [][]*answer.Answer{nil, nil}
		var now []*answer.Answer
		for _, text := range test.now {
			now = append(now, answerOf(text))
		}
		if _, mark := g.Lanes(time.Now(), none, none, lex.PostgreSQL)[0].Recompute(now, lex.PostgreSQL); (mark == "") != test.want {
			t.Errorf("%s: marked %q, want to go on: %v", test.name, mark, test.want)
		}
	}
}

// TestVerbsOfParameters: what a prepared statement does is told with its parameters' values, as it is sent; so remedies can be made of it.
func TestVerbsOfParameters(t *testing.T) {
	u := unitOf(t, "SELECT count(*) FROM nurse WHERE name = 'y'", "count=1", "SELECT count(*) FROM nurse WHERE name = $1", "count=1")
	if where := u.Steps[1].verbs()[0].Clauses.Where; where != "name = 'x'" {
		t.Errorf("condition %q, want that with the value", where)
	}
	const want = "SELECT count(*) FROM (SELECT * FROM nurse WHERE name = 'x' FOR UPDATE) AS \"nurse\""
	if got := u.Steps[1].locking(lex.PostgreSQL); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
