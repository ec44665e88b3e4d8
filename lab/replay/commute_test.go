package replay

import (
	"slices"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/product"
	"wirecheck/statement"
	"wirecheck/statement/postgres"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// TestCommute: only those statements of two sessions are with the server at once of which neither can tell which one came first.
func TestCommute(t *testing.T) {
	const read, write = "SELECT n FROM t WHERE id = 1", "UPDATE t SET n = 2 WHERE id = 1"
	in, out := &session{open: true}, &session{}
	for _, test := range []struct {
		name  string
		a     *session
		x     string
		b     *session
		y     string
		level string
		want  bool
	}{
		{"two reads", out, read, in, read, "", true},
		{"a read and a write that is not committed", out, read, in, write, "", true},
		{"the same the other way round", in, write, in, read, "", true},
		{"BEGIN and a commit", out, "BEGIN", in, "COMMIT", "", true},
		{"a read and a commit", out, read, in, "COMMIT", "", false},
		{"a read and a write that commits at once", out, read, out, write, "", false},
		{"two writes", in, write, in, write, "", false},
		{"a locking read", in, read + " FOR UPDATE", in, write, "", false},
		{"a read with effects", out, "SELECT nextval('s')", out, read, "", false},
		{"a read that locks", in, read, in, write, product.Serializable, false},
		{"a read that sees what is not committed", out, read, in, write, product.ReadUncommitted, false},
		{"one snapshot", in, read, in, write, product.RepeatableRead, true},
		{"DDL", out, read, in, "ALTER TABLE t ADD COLUMN m int", "", false},
		{"BEGIN in a transaction", in, "BEGIN", in, "COMMIT", "", false},
		{"a session that has set another level", &session{odd: true}, read, in, write, "", false},
		{"a session that begins", nil, read, in, write, "", false},
	} {
		c := Config{Describe: postgres.Describe, Level: test.level, Backend: engine.Descriptor{Product: product.Of("postgres"), Protocol: engine.ProtocolPostgres}}
		k, prep := &pacer{config: c, sessions: map[uint64]*session{}, versions: true, dialect: lex.PostgreSQL}, newPreparer(&c)
		last := uint64(0)
		step := func(m *session, sql string) *Step {
			last++
			s := &Step{Session: last, Statement: &trace.Statement{SQL: sql, Before: answer.Idle, After: answer.Idle}}
			if m != nil {
				k.sessions[s.Session] = m
			}
			if m != nil && m.open && sql != "COMMIT" {
				s.Statement.Before, s.Statement.After = answer.Open, answer.Open
			}
			prep.prepare(s)
			s.ends = letsGo(s.Statement)
			return s
		}
		if got := k.commute(step(test.a, test.x), step(test.b, test.y)); got != test.want {
			t.Errorf("%s: got %v, want %v", test.name, got, test.want)
		}
		if k.versions = false; k.commute(step(in, write), step(out, read)) {
			t.Error("a write of a table without transactions is seen at once")
		}
	}
}

// TestFollows: a session is no longer taken for what the trace's first record says of it once it changes that.
func TestFollows(t *testing.T) {
	for sql, want := range map[string]bool{
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE":   true,
		"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED": false,
		"BEGIN ISOLATION LEVEL SERIALIZABLE":                                        true,
		"SET default_transaction_isolation = 'serializable'":                        true,
		"BEGIN":                      false,
		"RESET ALL":                  true,
		"SET application_name = 'a'": false,
		"SELECT 1":                   false,
		"this is nothing":            true,
	} {
		s, m := &Step{Statement: &trace.Statement{SQL: sql}}, &session{}
		newPreparer(&Config{Describe: postgres.Describe, Backend: engine.Descriptor{Product: product.Of("postgres"), Protocol: engine.ProtocolPostgres}}).prepare(s)
		if m.follows(s); m.odd != want {
			t.Errorf("%s: got %v, want %v", sql, m.odd, want)
		}
	}
}

// TestKnowsVersions: one table without transactions is enough, whoever it belongs to.
func TestKnowsVersions(t *testing.T) {
	eachEngine(t, func(t *testing.T, p *place) {
		all, err := knowsVersions(t.Context(), &p.config)
		if err != nil || !all {
			t.Fatalf("got %v, %v, want that all tables know transactions", all, err)
		}
		if p.config.Backend.Protocol != engine.ProtocolMySQL {
			return
		}
		p.do("CREATE TABLE u (id int PRIMARY KEY) ENGINE=MyISAM")
		if all, err := knowsVersions(t.Context(), &p.config); err != nil || all {
			t.Errorf("got %v, %v, want a table that knows none", all, err)
		}
	})
}

// TestForm: a statement is not taken apart again that differs in literals alone, unless a literal may make it another one; what is asked of it is its own.
func TestForm(t *testing.T) {
	times := 0
	p := newPreparer(&Config{Backend: engine.Descriptor{Product: product.Of("postgres"), Protocol: engine.ProtocolPostgres}})
	describe := postgres.Describe
	p.config.Describe = func(sql string) ([]statement.Statement, error) {
		times++
		return describe(sql)
	}
	for _, test := range []struct {
		first, second string
		shared        bool
	}{
		{"SELECT n FROM t WHERE id = 1 LIMIT 1", "SELECT n FROM t WHERE id = 22 LIMIT 5 /*route='a'*/", true},
		{"UPDATE t SET n = 1 WHERE name = 'a'", "UPDATE t SET n = 2 WHERE name = 'bb'", true},
		{`UPDATE t SET n = 1 WHERE name = 'a'`, `UPDATE "T" SET n = 2 WHERE name = 'bb'`, false},
		{"SELECT set_config('search_path', 'a', false)", "SELECT set_config('default_transaction_isolation', 'serializable', false)", false},
		{"SELECT '2020-01-01'::date", "SELECT 'now'::date", false},
		{"SET a = 'b'", "SET a = 'c'", false},
	} {
		clear(p.known)
		a, b := &Step{Statement: &trace.Statement{SQL: test.first}}, &Step{Statement: &trace.Statement{SQL: test.second}}
		p.prepare(a)
		times = 0
		p.prepare(b)
		if shared := times == 0; shared != test.shared {
			t.Errorf("%s: %d times taken apart, want shared: %v", test.second, times, test.shared)
		}
		want, err := describe(test.second)
		if err != nil {
			t.Fatal(err)
		}
		same := slices.EqualFunc(b.verbs(), want, func(x, y statement.Statement) bool {
			return x.Text == y.Text && x.Clauses == y.Clauses && x.Volatile == y.Volatile
		})
		if !same {
			t.Errorf("%s: got %+v, want %+v", test.second, b.verbs(), want)
		}
	}
}
