package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/lab/scenario"
	"wirecheck/trace"
	"wirecheck/trace/lex"
)

// said is one statement of a made-up trace. Times are in milliseconds; 0 is not known.
type said struct {
	session    uint64
	sql        string
	start, end int64
	from, to   uint64
	code       string // it failed
	before     answer.State
	after      answer.State
	results    []trace.Result
	params     []trace.Param
	took       int64
}

// traceOf makes a trace file.
func traceOf(t testing.TB, product string, list []said) Open {
	t.Helper()
	var file bytes.Buffer
	w, err := trace.NewWriter(&file, trace.Header{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(r *trace.Record) {
		if err := w.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	known := map[uint64]bool{}
	inside := map[uint64]bool{}
	for _, s := range list {
		if !known[s.session] {
			known[s.session] = true
			write(&trace.Record{Kind: trace.KindSession, Session: s.session, Open: &trace.Session{Product: product, Database: "shop", User: "app"}})
		}
		if s.sql == "" {
			write(&trace.Record{Kind: trace.KindEnd, Session: s.session, End: &trace.End{At: s.start * 1e6, Tick: s.from}})
			continue
		}
		st := &trace.Statement{
			SQL: s.sql, Start: s.start * 1e6, End: s.end * 1e6, From: s.from, To: s.to, Before: answer.Idle, After: answer.Idle, Results: s.results,
			Params: s.params, Took: s.took * 1e6,
		}
		if inside[s.session] {
			st.Before, st.After = answer.Open, answer.Open
		}
		switch strings.ToLower(scenario.FirstWord(s.sql)) {
		case "begin", "start":
			st.After, inside[s.session] = answer.Open, true
		case "commit", "rollback":
			st.After, inside[s.session] = answer.Idle, false
		}
		if s.code != "" {
			st.Error = &answer.Error{Code: s.code}
			if inside[s.session] {
				st.After = answer.Failed
			}
		}
		if s.before != 0 {
			st.Before = s.before
		}
		if s.after != 0 {
			st.After = s.after
		}
		write(&trace.Record{Kind: trace.KindStatement, Session: s.session, Statement: st})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return func() (*trace.Reader, error) {
		return trace.NewReader(bytes.NewReader(file.Bytes()), "test", trace.ReadOptions{})
	}
}

func TestSequence(t *testing.T) {
	const wait = "UPDATE t SET n = 1 WHERE id = 1"
	tests := []struct {
		name string
		list []said
		want string
	}{
		{"nothing overlaps, the file is out of order", []said{
			{session: 2, sql: "COMMIT", start: 30, end: 31}, {session: 1, sql: "a", start: 10, end: 11}, {session: 2, sql: "b", start: 20, end: 21},
		}, "1:a 2:b 2:COMMIT"},
		{"a writer that waited for a commit comes right before it", []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN", start: 3, end: 4}, {session: 1, sql: wait, start: 5, end: 6},
			{session: 2, sql: wait, start: 7, end: 20}, {session: 1, sql: "SELECT 1", start: 8, end: 9}, {session: 1, sql: "COMMIT", start: 10, end: 12}, {session: 2, sql: "COMMIT", start: 30, end: 31},
		}, "1:BEGIN 2:BEGIN 1:" + wait + " 1:SELECT 1 2:" + wait + " 1:COMMIT 2:COMMIT"},
		{"one that was overtaken waits for who overtook it", []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN", start: 1, end: 2}, {session: 3, sql: "BEGIN", start: 1, end: 2},
			{session: 1, sql: wait, start: 5, end: 6}, {session: 2, sql: wait, start: 7, end: 30}, {session: 1, sql: "COMMIT", start: 10, end: 11},
			{session: 3, sql: wait, start: 12, end: 13}, {session: 3, sql: "COMMIT", start: 20, end: 21}, {session: 2, sql: "COMMIT", start: 40, end: 41},
		}, "1:BEGIN 2:BEGIN 3:BEGIN 1:" + wait + " 1:COMMIT 3:" + wait + " 2:" + wait + " 3:COMMIT 2:COMMIT"},
		{"a plain read comes before the first commit that it overlapped", []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 1, sql: "UPDATE t SET n = 1", start: 3, end: 4}, {session: 2, sql: "SELECT sum(n) FROM t", start: 5, end: 90},
			{session: 1, sql: "COMMIT", start: 10, end: 11}, {session: 1, sql: "BEGIN", start: 20, end: 21}, {session: 1, sql: "COMMIT", start: 30, end: 31},
		}, "1:BEGIN 1:UPDATE t SET n = 1 2:SELECT sum(n) FROM t 1:COMMIT 1:BEGIN 1:COMMIT"},
		{"the first statement with a snapshot of its own does too", []said{
			{session: 1, sql: "BEGIN", start: 1, end: 2}, {session: 2, sql: "BEGIN ISOLATION LEVEL REPEATABLE READ", start: 1, end: 2}, {session: 1, sql: wait, start: 3, end: 4},
			{session: 2, sql: wait, start: 5, end: 40}, {session: 1, sql: "COMMIT", start: 10, end: 11}, {session: 3, sql: "BEGIN", start: 20, end: 21}, {session: 3, sql: "COMMIT", start: 22, end: 23},
		}, "1:BEGIN 2:BEGIN ISOLATION LEVEL REPEATABLE READ 1:" + wait + " 2:" + wait + " 1:COMMIT 3:BEGIN 3:COMMIT"},
		{"ticks win over a clock that says nothing", []said{
			{session: 1, sql: "a", start: 1000, end: 1000, from: 5, to: 6}, {session: 2, sql: "b", start: 1000, end: 1000, from: 1, to: 2}, {session: 1, sql: "c", start: 1000, end: 1000, from: 7, to: 8},
		}, "2:b 1:a 1:c"},
		{"only beginnings are known", []said{
			{session: 1, sql: "a", start: 1000, from: 1}, {session: 2, sql: "b", start: 1000, from: 2}, {session: 1, sql: "c", start: 1000, from: 3},
		}, "1:a 2:b 1:c"},
		{"only ends are known: who took long and ended behind another waited for it", []said{
			{session: 1, sql: "BEGIN", end: 1000, to: 1}, {session: 2, sql: "BEGIN", end: 1000, to: 2}, {session: 1, sql: wait, end: 1000, to: 3, took: 1},
			{session: 1, sql: "COMMIT", end: 1000, to: 4, took: 1}, {session: 2, sql: wait, end: 1000, to: 5, took: 100}, {session: 2, sql: "COMMIT", end: 1000, to: 6},
		}, "1:BEGIN 2:BEGIN 1:" + wait + " 2:" + wait + " 1:COMMIT 2:COMMIT"},
		{"only ends are known: who was quick did not", []said{
			{session: 1, sql: "BEGIN", end: 1000, to: 1}, {session: 2, sql: "BEGIN", end: 1000, to: 2}, {session: 1, sql: wait, end: 1000, to: 3, took: 1},
			{session: 1, sql: "COMMIT", end: 1000, to: 4, took: 1}, {session: 2, sql: wait, end: 1000, to: 5, took: 1}, {session: 2, sql: "COMMIT", end: 1000, to: 6},
		}, "1:BEGIN 2:BEGIN 1:" + wait + " 1:COMMIT 2:" + wait + " 2:COMMIT"},
		{"a session's order is never changed", []said{
			{session: 1, sql: "a", start: 10, end: 50}, {session: 1, sql: "b", start: 12, end: 13}, {session: 2, sql: "c", start: 14, end: 15},
		}, "1:a 1:b 2:c"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			open := traceOf(t, "postgres", test.list)
			v, err := Look(open)
			if err != nil {
				t.Fatal(err)
			}
			in, err := open()
			if err != nil {
				t.Fatal(err)
			}
			q := newSequence(in, v, 3, nil, 0)
			var got []string
			for {
				s, err := q.next()
				if errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatal(err)
				}
				got = append(got, fmt.Sprintf("%d:%s", s.Session, s.Statement.SQL))
			}
			if text := strings.Join(got, " "); text != test.want {
				t.Errorf("got  %s\nwant %s", text, test.want)
			}
		})
	}
}

func TestSequenceOfNothing(t *testing.T) {
	if _, err := Look(traceOf(t, "postgres", []said{{session: 1, sql: "a"}})); err == nil || !strings.Contains(err.Error(), "in which order") {
		t.Errorf("a trace without times and places: %v", err)
	}
}

func TestInline(t *testing.T) {
	tests := []struct {
		sql    string
		d      lex.Dialect
		params []trace.Param
		want   string
	}{
		{"SELECT $2, $1", lex.PostgreSQL, []trace.Param{{Value: "a'b"}, {Type: "int4", Value: "-7"}}, "SELECT '-7'::int4, 'a''b'"},
		{"SELECT '$1', $1 -- $1", lex.PostgreSQL, []trace.Param{{Value: `back\slash`}}, `SELECT '$1',  E'back\\slash' -- $1`},
		{"SELECT $$ $1 $$, $1", lex.PostgreSQL, []trace.Param{{Null: true, Type: "int4"}}, "SELECT $$ $1 $$, NULL::int4"},
		{"SELECT ?, '?', ? /* ? */", lex.MySQL, []trace.Param{{Type: "LONGLONG", Value: "-7"}, {Type: "VAR_STRING", Value: `a'b\`}}, `SELECT (-7), '?', 'a\'b\\' /* ? */`},
		{"SELECT ?, ?, ?", lex.MySQL, []trace.Param{{Type: "DOUBLE", Value: "1.5"}, {Type: "BLOB", Value: "\x00\xff"}, {Null: true}}, "SELECT 1.5e0, x'00ff', NULL"},
		{"SELECT ?", lex.MySQL, []trace.Param{{Type: "LONGLONG", Value: "1 OR 1=1"}}, "SELECT '1 OR 1=1'"},
	}
	for _, test := range tests {
		got, err := Inline(&trace.Statement{SQL: test.sql, Params: test.params}, test.d)
		if err != nil || got != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.sql, got, err, test.want)
		}
	}
	for _, bad := range []trace.Statement{
		{SQL: "SELECT $2", Params: []trace.Param{{Value: "a"}}},
		{SQL: "SELECT $1", Params: []trace.Param{{Value: "a\x00"}}},
		{SQL: "SELECT $1", Params: []trace.Param{{Type: "hstore", Binary: true, Value: "a"}}},
	} {
		if got, err := Inline(&bad, lex.PostgreSQL); err == nil {
			t.Errorf("%s: got %q, want an error", bad.SQL, got)
		}
	}
}

func TestSettings(t *testing.T) {
	for _, test := range []struct {
		sent []string
		want []string
	}{
		{[]string{"SET search_path TO a", "SET search_path = b", "SET TIME ZONE 'UTC'"}, []string{"SET search_path = b", "SET TIME ZONE 'UTC'"}},
		{[]string{"SET a = 1, b = 2", "SET a = 3"}, []string{"SET a = 1, b = 2", "SET a = 3"}},
		{[]string{"PREPARE p (int) AS SELECT $1", "SET x = 1", "DEALLOCATE p"}, []string{"SET x = 1"}},
		{[]string{"PREPARE p AS SELECT 1", "PREPARE q AS SELECT 2", "DEALLOCATE q"}, []string{"PREPARE p AS SELECT 1"}},
		{[]string{"SET x = 1", "RESET x"}, []string{"RESET x"}},
		{[]string{"SET x = 1", "DISCARD ALL"}, nil},
		{[]string{"USE a", "USE b"}, []string{"USE b"}},
		{[]string{"SET @n = 1", "SET @m = 2", "SET @n = 3"}, []string{"SET @m = 2", "SET @n = 3"}},
		{[]string{"DROP TABLE t"}, nil},
	} {
		m := &collected{}
		for _, sql := range test.sent {
			m.set(sql)
		}
		if !slices.Equal(m.settings, test.want) {
			t.Errorf("%q leaves %q, want %q", test.sent, m.settings, test.want)
		}
	}
}

// TestAxis: a client that left without its answer does not cost the others their ends; a log without ends has none.
func TestAxis(t *testing.T) {
	for _, test := range []struct {
		name                                   string
		all, from, to, both, sources, sessions int
		want                                   axis
	}{
		{"all told", 10, 0, 0, 10, 1, 2, axisTicks},
		{"two clients left", 10, 2, 0, 8, 1, 2, axisTicks},
		{"more without an end than sessions", 10, 3, 0, 7, 1, 2, axisFrom},
		{"beginnings only", 2, 2, 0, 0, 1, 2, axisFrom},
		{"ends only", 10, 0, 10, 0, 1, 2, axisTo},
		{"two sources", 10, 0, 0, 10, 2, 2, axisTime},
	} {
		if got := chooseAxis(test.all, test.from, test.to, test.both, test.sources, test.sessions); got != test.want {
			t.Errorf("%s: axis %d, want %d", test.name, got, test.want)
		}
	}
}

// TestSurveyProduct: a session that was joined in the middle shows its protocol alone, so what another one says counts.
func TestSurveyProduct(t *testing.T) {
	session := func(product, version string, joined bool) trace.Session {
		return trace.Session{Product: product, Version: version, Joined: joined}
	}
	for _, tt := range []struct {
		name     string
		sessions []trace.Session
		given    string
		want     string // the product, or the error
	}{
		{"joined and whole", []trace.Session{session("mysql", "", true), session("mariadb", "10.11.6-MariaDB", false)}, "", "mariadb"},
		{"joined only", []trace.Session{session("mysql", "", true)}, "", "mysql"},
		{"joined, and the user knows", []trace.Session{session("mysql", "", true)}, "mariadb", "mariadb"},
		{"near miss: two products", []trace.Session{session("mysql", "8.0.36", false), session("mariadb", "10.11.6-MariaDB", false)}, "", "--product"},
		{"two products, and the user knows", []trace.Session{session("mysql", "8.0.36", false), session("mariadb", "10.11.6-MariaDB", false)}, "mysql", "mysql"},
	} {
		var file bytes.Buffer
		w, err := trace.NewWriter(&file, trace.Header{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range tt.sessions {
			err = errors.Join(err, w.Write(&trace.Record{Kind: trace.KindSession, Session: uint64(i + 1), Open: &tt.sessions[i]}))
			err = errors.Join(err, w.Write(&trace.Record{Kind: trace.KindStatement, Session: uint64(i + 1), Statement: &trace.Statement{SQL: "SELECT 1", Start: 1, End: 2, From: 1, To: 2}}))
		}
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
		v, err := Look(func() (*trace.Reader, error) {
			return trace.NewReader(bytes.NewReader(file.Bytes()), "test", trace.ReadOptions{})
		})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if err := v.Of(tt.given); err != nil {
			got = err.Error()
		} else {
			got = v.Products[0]
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}
