package record

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement"
	"wirecheck/statement/condition"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// requestSession is a session whose statements the test answers.
type requestSession struct {
	*Tracker
	events *[]history.Event
}

func requestSessions(t *testing.T, n int, gap time.Duration) (list []requestSession, rec *Recorder) {
	t.Helper()
	events := &[]history.Event{}
	rec = NewRecorder("test", func(ev *history.Event) []Warning {
		kept := *ev
		kept.Accesses = append([]history.Access(nil), ev.Accesses...)
		*events = append(*events, kept)
		return nil
	})
	rec.Requests = NewRequests(nil)
	for range n {
		list = append(list, requestSession{NewTracker(rec, history.Event{Engine: "postgres"}, Limits{Gap: gap}), events})
	}
	return list, rec
}

// run executes a statement in autocommit that reads or writes rows of public.t: each given as "key@version column=value ...".
func (s requestSession) run(sql string, rows ...string) *history.Event {
	verb := strings.ToLower(strings.Fields(strings.TrimLeft(sql, "/*abc='1 "))[0])
	p := &rewrite.Plan{Text: sql, Verb: verb, Coverage: history.CoverageExact, Views: map[string]map[string]rewrite.Shows{"public.shown": {"m": {Table: "public.t", Name: "N"}}}}
	if verb == "discard" || sql == "SELECT 1" {
		p.Verb, p.Coverage = map[bool]string{true: "other", false: "select"}[verb == "discard"], history.CoverageNone
	}
	if verb == "begin" || verb == "commit" {
		p.Coverage, p.Control.Verb = history.CoverageNone, map[string]statement.ControlVerb{"begin": statement.ControlBegin, "commit": statement.ControlCommit}[verb]
	}
	tk := s.Sending(p)
	s.From(tk, sql, nil)
	r := s.Answer(tk)
	for _, row := range rows {
		f := strings.Fields(row)
		key, version, _ := strings.Cut(f[0], "@")
		a := history.Access{Op: history.OpRead, Row: history.Row{Table: "public.t", Key: key}, Version: version}
		if verb == "update" || verb == "insert" {
			a.Op = history.OpUpdate
		}
		p.Decode = func(list []history.Access, _ [][]byte) ([]history.Access, error) { return append(list, a), nil }
		if err := r.Decode(p, nil); err != nil {
			panic(err)
		}
		var cells []Cell
		for _, c := range f[1:] {
			column, value, _ := strings.Cut(c, "=")
			c := Cell{Table: "public.t", Column: column, Text: value, Null: value == "NULL"}
			if i := strings.LastIndexByte(column, '.'); i >= 0 { // of another relation, or of none
				c.Table, c.Column = column[:i], column[i+1:]
			}
			cells = append(cells, c)
		}
		if r.WantsCells() && row != f[0]+" -" {
			r.Cells(cells)
		}
	}
	s.Done(r, Result{})
	s.Status(s.InTransaction() && p.Control.Verb == statement.ControlBegin || s.InTransaction() && !s.txn.implicit)
	for i := len(*s.events) - 1; i >= 0; i-- {
		if ev := &(*s.events)[i]; ev.Kind == history.EventStmt && ev.SQL == sql {
			return ev
		}
	}
	return &history.Event{}
}

func derived(ev *history.Event) string {
	var list []string
	for _, d := range ev.Derived {
		list = append(list, fmt.Sprintf("%s of %s@%s by %s%s", d.Column, d.Row.Key, d.Version, d.Kind, d.Constant))
	}
	return strings.Join(list, ", ")
}

// rows are rows of the table, with a value each.
func rows(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%d@w m=7", 1000+i))
	}
	return list
}

// TestAskedByNumber: a number that may be a total is no longer explained by the one that was read, but the statement still asked for the row by that.
func TestAskedByNumber(t *testing.T) {
	set := history.Operand{Role: history.RoleSet, Column: "n", Value: "5"}
	for _, tt := range []struct {
		v    value
		told bool
		want flow.Kind
	}{{value{text: "0", asked: true}, true, flow.Asked}, {value{text: "0", asked: true}, false, flow.Plus}, {value{text: "0"}, true, ""}, {value{text: "5"}, true, flow.Copy}, {value{text: "5.0", asked: true}, true, ""}} {
		if got := tt.v.relates(set, tt.told); got != tt.want {
			t.Errorf("%+v, told %v: %q, want %q", tt.v, tt.told, got, tt.want)
		}
	}
}

// TestDerived: what an UPDATE assigns is traced to the latest read of its request, of whatever session.
func TestDerived(t *testing.T) {
	const a, b = " /*request_id='a'*/", " /*request_id='b'*/"
	const loadOne, saveOne = `SELECT "T"."id" AS "T_id", "T"."n" AS "T_n" FROM "t" "T" WHERE "T"."id" = 1`, `UPDATE "t" SET "n" = 8 WHERE "id" = 1`
	const load, save = `SELECT "T"."id" AS "T_id", "T"."n" AS "T_n" FROM "t" "T" WHERE "T"."id" IN (1)`, `UPDATE "t" SET "n" = 8 WHERE "id" IN (1)`
	for _, tt := range []struct {
		name string
		do   func(s, o requestSession) *history.Event
		want string
	}{
		{"read in another session", func(s, o requestSession) *history.Event {
			o.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by plus-1"},
		{"an upsert", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10", "2@v1 id=2 n=10")
			return s.run("INSERT INTO t (id, n) VALUES (1, 9) ON CONFLICT (id) DO UPDATE SET n = EXCLUDED.n"+a, "1@v2")
		}, "n of 1@v1 by plus-1"},
		{"an upsert that lets the server compute", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("INSERT INTO t (id, n) VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET n = t.n + EXCLUDED.n"+a, "1@v2")
		}, "n of 1@v1 by current"},
		{"the latest read counts", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 1 x"+a, "1@v2 n=7")
			return s.run("UPDATE t SET n = 'note 9' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by "},
		{"each number may come from each", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 1 x"+a, "1@v2 n=7")
			return s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus2, n of 1@v1 by "},
		{"the latest read is the condition's", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10 version=3")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=7 version=4")
			return s.run("UPDATE t SET n = 9, version = 5 WHERE id = 1 AND version = 4"+a, "1@v3")
		}, "n of 1@v2 by plus2, version of 1@v2 by plus1"},
		{"the first read is the condition's", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10 version=3")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=7 version=3")
			return s.run("UPDATE t SET n = 9 WHERE id = 1 AND version = 3"+a, "1@v3")
		}, "n of 1@v2 by plus2, n of 1@v1 by "},
		{"another value, and the same again", func(s, _ requestSession) *history.Event {
			for i, n := range []string{"10", "7", "7"} {
				s.run("SELECT 1 x"+a, fmt.Sprintf("1@v%d n=%s", i, n))
			}
			return s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus2, n of 1@v0 by "},
		{"a text that contains the first read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=paid")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=paid;sent")
			return s.run("UPDATE t SET n = 'paid; booked' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v1 by prefix; booked"},
		{"a text that contains the latest read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=paid")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=paid;sent")
			return s.run("UPDATE t SET n = 'paid;sent; booked' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by prefix; booked"},
		{"a word that is like the first read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=paid")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=sent")
			return s.run("UPDATE t SET n = 'paid_back' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v1 by "},
		{"the word that was read first", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=last,edited,by,ann")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=last,edited,by,bob")
			return s.run("UPDATE t SET n = 'last,edited,by,ann' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v1 by "},
		{"a text that contains the latest read alone", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=paid")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=sent")
			return s.run("UPDATE t SET n = 'sent; booked' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by prefix; booked"},
		{"NULL in the only read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=NULL")
			return s.run("UPDATE t SET n = 'me' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"NULL, and then a value", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=NULL")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=10")
			return s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus-1"},
		{"NULL, and an empty text", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=NULL")
			return s.run("UPDATE t SET n = '' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"NULL, and not of this row", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=NULL")
			return s.run("UPDATE t SET n = 'me' WHERE id = 2"+a, "2@v2")
		}, ""},
		{"NULL in the latest read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=paid")
			s.run("SELECT 1 x"+a, "1@v2 id=1 n=NULL")
			return s.run("UPDATE t SET n = 'paid; booked' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"read, NULL, and read again", func(s, _ requestSession) *history.Event {
			for i, n := range []string{"paid", "NULL", "sent"} {
				s.run("SELECT 1 x"+a, fmt.Sprintf("1@v%d n=%s", i, n))
			}
			return s.run("UPDATE t SET n = 'paid; booked' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v0 by prefix; booked"},
		{"an expression of the row", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT id, n - 1 FROM t WHERE id = 1"+a, "1@v2 id=1 .=8")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"a constant", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 1 AS one FROM t WHERE id = 1 FOR UPDATE"+a, "1@v2 .=1")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"a view's column", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT m FROM u WHERE id = 1"+a, "1@v2 public.u.m=8")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"a view's column that shows one of the table", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT m FROM shown WHERE id = 1"+a, "1@v2 public.shown.M=9")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"another column of that view", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT k FROM shown WHERE id = 1"+a, "1@v2 public.shown.k=9")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"an expression of another row", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT id, n - 1 FROM t WHERE id = 2"+a, "2@v2 id=2 .=7")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"a sum by the server", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT sum(n) FROM t WHERE id > 1"+a, "2@v2 .=8.00")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"a sum of the row itself, read with it", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10", "2@v1 id=2 n=8")
			return s.run("UPDATE t SET n = 18 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus8"},
		{"a sum of rows that the request read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, "2@v1 m=2.5", "3@v1 m=5.5")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"another sum", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, "2@v1 m=2.5", "3@v1 m=6.5")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"how many rows the request read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, "2@v1 m=4", "3@v1 m=5")
			return s.run("UPDATE t SET n = 2 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"how many rows came with it", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10", "2@v1 id=2 n=8")
			return s.run("UPDATE t SET n = 2 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"how many rows a long answer had", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, rows(maxCells+1)...)
			return s.run(fmt.Sprintf("UPDATE t SET n = %d WHERE id = 1", maxCells+1)+a, "1@v3")
		}, "n of 1@v1 by "},
		{"a row more than a long answer had", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, rows(maxCells+1)...)
			return s.run(fmt.Sprintf("UPDATE t SET n = %d WHERE id = 1", maxCells+2)+a, "1@v3")
		}, fmt.Sprintf("n of 1@v1 by plus%d", maxCells-8)},
		{"a sum of another column of the rows that came with it", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10 m=3.5", "2@v1 id=2 n=8 m=4.5")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"another sum of that column", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10 m=3.5", "2@v1 id=2 n=8 m=5.5")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"a constant of a query of no table", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 8 AS one"+a, "2@v2 .=8")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"what stands behind a constant", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 7 UNION SELECT count(*) FROM u"+a, "2@v2 .=8")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"a single row", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT 2 x"+a, "2@v1 m=8")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"rows of which no value came", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT sum(n) FROM t"+a, "1@v2 -", "2@v2 -")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v1 by "},
		{"what save() loads", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"what save() of TypeORM 1 loads", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(loadOne+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(saveOne+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"a query of that form under a name of its own", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(strings.NewReplacer(`"T"`, `"t"`, "T_", "t_").Replace(loadOne)+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(saveOne+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"what save() loads, with what relates to it", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			s.run(load+a+" ", "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"what save() loads, and nothing read before", func(s, o requestSession) *history.Event {
			s.run(load+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, ""},
		{"what save() loads, within a transaction that locks", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("BEGIN")
			s.run("SELECT 1 x FOR UPDATE"+a, "1@v2 id=1 n=9")
			s.run(load+a, "1@v2 id=1 n=9")
			return s.run(save+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"what save() loads, with related rows", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			s.run(`SELECT "i"."id" AS "id", "i"."t" AS "t" FROM "i" "i" WHERE (("i"."t" = 1))`+a, "2@w id=2 t=1")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, "n of 1@v1 by plus-2"},
		{"a load, and another read", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			s.run("SELECT 2 x"+a, "2@w id=2 n=1")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"a load, and an UPDATE in autocommit", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			return s.run(save+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"a load, and an UPDATE of another form", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run(load+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"a load in another session", func(s, o requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			o.run(load+a, "1@v2 id=1 n=9")
			s.run("BEGIN")
			return s.run(save+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"RETURNING", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("UPDATE t SET m = 1 WHERE id = 1 RETURNING n"+a, "1@v2 n=9")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by plus-1, n of 1@v1 by "},
		{"another request's read", func(s, o requestSession) *history.Event {
			o.run("SELECT 1 x"+b, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v2")
		}, ""},
		{"another row's read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10", "2@w1 id=2 n=5")
			return s.run("UPDATE t SET n = 9 WHERE id = 2"+a, "2@w2")
		}, "n of 2@w1 by plus4"},
		{"the row is told later", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10", "2@w1 id=2 n=5")
			return s.run("UPDATE t SET n = 9 WHERE id = 2" + a)
		}, "n of 2@w1 by plus4"},
		{"computed", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = n - 1 WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by current"},
		{"computed, checked by the statement", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = n - 1 WHERE id = 1 AND n >= 1"+a, "1@v2")
		}, ""},
		{"computed, and not from itself", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = m WHERE id = 1"+a, "1@v2")
		}, ""},
		{"NULL over a value", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			return s.run("UPDATE t SET n = NULL WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"NULL over NULL", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=NULL")
			return s.run("UPDATE t SET n = NULL WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"computed, and never read", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 m=10")
			return s.run("UPDATE t SET n = n - 1 WHERE id = 1"+a, "1@v2")
		}, ""},
		{"computed, twice", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("UPDATE t SET n = n - 1 WHERE id = 1"+a, "1@v2")
			return s.run("UPDATE t SET n = n - 1 WHERE id = 1"+a, "1@v3")
		}, ""},
		{"computed, from a text", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=abc")
			return s.run("UPDATE t SET n = n || 'd' WHERE id = 1"+a, "1@v2")
		}, ""},
		{"computed, an expression of the row in between", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 id=1 n=10")
			s.run("SELECT id, n - 1 FROM t WHERE id = 1"+a, "1@v2 id=1 .=8")
			return s.run("UPDATE t SET n = n - 1 WHERE id = 1"+a, "1@v3")
		}, ""},
		{"a clock", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 n=1763800000")
			return s.run("UPDATE t SET n = 1763800009 WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"a piece of a short text", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 n=a")
			return s.run("UPDATE t SET n = 'apple' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"overwritten by itself", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 n=10")
			s.run("UPDATE t SET n = 9 WHERE id = 1"+a, "1@v2")
			return s.run("UPDATE t SET n = 8 WHERE id = 1"+a, "1@v3")
		}, ""},
		{"a long value", func(s, _ requestSession) *history.Event {
			long := strings.Repeat("x", maxText+1)
			s.run("SELECT 1 x"+a, "1@v1 n="+long)
			return s.run("UPDATE t SET n = '"+long+"' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by copy"},
		{"a long value that grows", func(s, _ requestSession) *history.Event {
			long := strings.Repeat("x", maxText+1)
			s.run("SELECT 1 x"+a, "1@v1 n="+long)
			return s.run("UPDATE t SET n = '"+long+"; more' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by prefix; more"},
		{"a text that was read again, and goes back", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, `1@v1 n={"m":1,"tags":["red"]}`)
			s.run("SELECT 1 x"+a, `1@v2 n={"m":1,"tags":["red","blue"]}`)
			return s.run(`UPDATE t SET n = '{"m":1,"tags":["red","green"]}' WHERE id = 1`+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v1 by "},
		{"a text that was read again, and from which something was taken", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, `1@v1 n={"m":1,"tags":["red"]}`)
			s.run("SELECT 1 x"+a, `1@v2 n={"m":1,"tags":[]}`)
			return s.run(`UPDATE t SET n = '{"m":1,"tags":["green","red"]}' WHERE id = 1`+a, "1@v3")
		}, "n of 1@v2 by , n of 1@v1 by "},
		{"a text that was read again, and keeps what came", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, `1@v1 n={"m":1,"tags":["red"]}`)
			s.run("SELECT 1 x"+a, `1@v2 n={"m":1,"tags":["red","blue"]}`)
			return s.run(`UPDATE t SET n = '{"m":1,"tags":["red","blue","green"]}' WHERE id = 1`+a, "1@v3")
		}, "n of 1@v2 by "},
		{"a text that was read again, and has nothing of it", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 n=made; by ann")
			s.run("SELECT 1 x"+a, "1@v2 n=sent; by ann")
			return s.run("UPDATE t SET n = 'all is well' WHERE id = 1"+a, "1@v3")
		}, "n of 1@v2 by "},
		{"another long value", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "1@v1 n="+strings.Repeat("x", maxText+1))
			return s.run("UPDATE t SET n = '"+strings.Repeat("y", maxText+1)+"' WHERE id = 1"+a, "1@v2")
		}, "n of 1@v1 by "},
		{"a row without a key", func(s, _ requestSession) *history.Event {
			s.run("SELECT 1 x"+a, "@v1 n=10")
			return s.run("UPDATE t SET n = 9"+a, "@v2")
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, rec := requestSessions(t, 2, 0)
			if got := derived(tt.do(s[0], s[1])); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			values := 0
			for _, known := range rec.Requests.reads {
				values += len(known.totals)
				for _, row := range known.rows {
					values += len(row)
				}
			}
			if values != rec.Requests.size {
				t.Errorf("%d values are kept, and %d are counted", values, rec.Requests.size)
			}
		})
	}
}

// TestPauses: without tags, what follows on one session without a pause is one request; pools and tags end it.
func TestPauses(t *testing.T) {
	s, _ := requestSessions(t, 2, time.Hour)
	first := s[0].run("SELECT 1 x", "1@v1 n=1").Request
	if same := s[0].run("SELECT 2 x", "1@v1 n=1").Request; first == "" || same != first {
		t.Errorf("requests %q and %q", first, same)
	}
	if other := s[1].run("SELECT 3 x", "1@v1 n=1").Request; other == first || other == "" {
		t.Errorf("another session has request %q", other)
	}
	last := first
	for i, end := range []func(){
		func() { s[0].run("DISCARD ALL") },
		func() { s[0].run("SELECT 1") },
		func() { s[0].ResetPool() },
		func() { s[0].run("SELECT 4 x /*request_id='7'*/", "1@v1 n=1") },
		func() { s[0].pauses.end = time.Now().Add(-2 * time.Hour) },
	} {
		end()
		now := s[0].run(fmt.Sprintf("SELECT 1%d x", i), "1@v1 n=1").Request
		if now == last || now == "" || now == "7" {
			t.Errorf("end %d: request %q, the one before was %q", i, now, last)
		}
		last = now
	}
	s[0].run("BEGIN")
	s[0].run("SELECT 19 x", "1@v1 n=1")
	s[0].pauses.end = time.Now().Add(-2 * time.Hour)
	if now := s[0].run("SELECT 20 x", "1@v1 n=1").Request; now != last {
		t.Errorf("a pause within a transaction began request %q", now)
	}
}

// TestRequestsBounded: however many requests come and whatever they read, what is kept is bounded.
func TestRequestsBounded(t *testing.T) {
	s, rec := requestSessions(t, 1, 0)
	var wide []string
	for i := range maxCells / 2 {
		wide = append(wide, fmt.Sprintf("%d@v a=1 b=2", i))
	}
	for i := range maxValues/maxCells + 50 {
		s[0].run(fmt.Sprintf("SELECT 1 x /*request_id='%d'*/", i), wide...)
		*s[0].events = nil
	}
	if n := rec.Requests.size; n > maxValues+maxCells || n < maxValues/2 {
		t.Errorf("%d values are kept", n)
	}
	s[0].run("SELECT 1 x /*request_id='wide'*/", append(wide, "9@v a=1 b=2")...)
	if n := len(rec.Requests.reads["wide"].rows); n != 0 {
		t.Errorf("%d rows of an answer with too many values are kept", n)
	}
	for i := range maxRequests + 10 {
		s[0].run(fmt.Sprintf("SELECT 1 x /*request_id='r%d'*/", i), "1@v a=1")
		*s[0].events = nil
	}
	if n := len(rec.Requests.reads); n > maxRequests || n != len(rec.Requests.order) {
		t.Errorf("%d requests are kept, %d in order", n, len(rec.Requests.order))
	}
	for request, want := range map[string]int{"wide": 1, "narrow": 0} {
		was := rec.Requests.Untraced()
		rows := wide[:2]
		if request == "wide" {
			rows = append(wide, "9@v a=1 b=2")
		}
		s[0].run("SELECT 1 x /*request_id='u"+request+"'*/", rows...)
		s[0].run("UPDATE t SET a = 7 WHERE id = 1 /*request_id='u"+request+"'*/", "1@v2")
		if n := rec.Requests.Untraced() - was; n != want {
			t.Errorf("%s: %d are not traced, want %d", request, n, want)
		}
	}
	before := rec.Requests.Resumed()
	for _, tt := range []struct {
		request string
		resumed int
	}{{fmt.Sprint("r", maxRequests), 0}, {"new", 0}, {"r1", 1}, {"r1", 1}} { // the first ones are kept no more
		s[0].run("SELECT 1 x /*request_id='"+tt.request+"'*/", "1@v a=1")
		if n := rec.Requests.Resumed() - before; n != tt.resumed {
			t.Errorf("request %s: %d went on, want %d", tt.request, n, tt.resumed)
		}
	}
}

// TestTransactionsAlone: nothing is said of requests where they are not asked for, and nothing of UPDATEs before the first request.
func TestTransactionsAlone(t *testing.T) {
	s, rec := requestSessions(t, 1, 0)
	if ev := s[0].run("UPDATE t SET n = 9 WHERE id = 1", "1@v2"); ev.Operands != nil || ev.Request != "" {
		t.Errorf("%+v", ev)
	}
	s[0].run("SELECT 1 x /*request_id='1',route='%2Fa'*/", "1@v1 n=1")
	if ev := s[0].run("UPDATE t SET n = 9 WHERE id = 1", "1@v2"); len(ev.Operands) != 2 || ev.Request != "" {
		t.Errorf("%+v", ev)
	}
	rec.Requests.Partial = true
	if ev := s[0].run("SELECT 1 z /*request_id='2',route='%2Fb'*/", "1@v1 n=1"); ev.Request != "" || !slices.Contains(ev.Tags, "route=/b") {
		t.Errorf("where not all sessions are observed: %+v", ev)
	}
	rec.Requests = nil
	if ev := s[0].run("SELECT 1 y /*request_id='1'*/", "1@v1 n=1"); ev.Request != "" || ev.Tags != nil {
		t.Errorf("%+v", ev)
	}
	if rec.Requests.Wants("SELECT 1 /*a='b'*/", Limits{}) || !NewRequests(flow.RequestTags).Wants("SELECT 1 /*a='b'*/", Limits{}) {
		t.Error("wants")
	}
}

// TestTimes: an UPDATE that gives a column its own time tells that, with or without requests, and computes all others from the current row where it does.
func TestTimes(t *testing.T) {
	s, rec := requestSessions(t, 1, 0)
	rec.Now = func() time.Time { return time.Date(2026, 11, 28, 10, 0, 7, 0, time.UTC) }
	for sql, want := range map[string]string{
		"UPDATE t SET n = n - 2, at = '2026-11-28 10:00:06.5' WHERE id = 1":      "true time",
		"UPDATE t SET n = n - 2, at = now(), b = '2026-11-28 10:00:06.5'":        "true time",
		"UPDATE t SET n = 5, at = '2026-11-28 10:00:06.5' WHERE id = 1":          "false time",
		"UPDATE t SET n = n - 2, at = '2026-11-28 09:12:06.5' WHERE id = 1":      "false",
		"UPDATE t SET n = n - 2, at = '2026-11-28 10:00:06.5', b = 7":            "false time",
		"UPDATE t SET at = '2026-11-28 10:00:06.5' WHERE id = 1 AND n IN (1, 2)": "false",
	} {
		ev := s[0].run(sql, "1@v2")
		got := fmt.Sprint(ev.CurrentRead)
		for _, o := range ev.Operands {
			if o.Role == history.RoleTime && !strings.HasSuffix(got, "time") {
				got += " time"
			}
		}
		if got != want {
			t.Errorf("%s: got %s, want %s", sql, got, want)
		}
	}
}

// TestAskedBy: by which values a condition asks for a row.
func TestAskedBy(t *testing.T) {
	column := func(op string, kind condition.Kind, values ...string) condition.Condition {
		c := condition.Condition{Op: op, Kind: kind, Column: "C"}
		for _, v := range values {
			c.Values = append(c.Values, &v)
		}
		return c
	}
	join := func(op string, args ...condition.Condition) condition.Condition {
		return condition.Condition{Op: op, Args: args}
	}
	null, open := column("null", ""), column("=", condition.Text, "open")
	for _, tt := range []struct {
		where condition.Condition
		want  string
	}{
		{null, "c="}, {join("and", column(">", condition.Number, "1"), null), "c="}, {open, "c=open"}, {join("not", column("=", condition.Bool, "true")), "c=false"},
		{join("not", column("<>", condition.Number, "0")), "c=0"}, {column("=", condition.Bool, "false"), "c=false"},
		{join("or", null, open), ""}, {join("not", null), ""}, {join("not", open), ""}, {column("in", condition.Text, "a", "b"), ""}, {column("<>", condition.Text, "a"), ""},
		{condition.Always, ""}, {condition.Unknown("x"), ""}, {join("not", condition.Always), ""}, {condition.Open("=", condition.Text, "c", nil), ""}, {condition.Compare("=", condition.Text, "c", nil), ""},
	} {
		got := ""
		for _, c := range askedBy(&tt.where, nil) {
			got += c.Column + "=" + c.Text
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.where.String(), got, tt.want)
		}
	}
	if cells := askedBy(&open, []Cell{{Column: "c", Text: "OPEN"}}); len(cells) != 1 || cells[0].Text != "OPEN" || !cells[0].asked {
		t.Errorf("%+v", cells)
	}
}

// TestSelectedConstants: which columns of an answer are literals.
func TestSelectedConstants(t *testing.T) {
	for sql, want := range map[string]int{
		"SELECT 1 FROM t": 1, "SELECT 1 AS one FROM t LIMIT 1 FOR UPDATE": 1, "SELECT 1 one, 'a' \"b\", n FROM t": 2, "/* x */ SELECT (1) AS a FROM t WHERE n = 1": 1,
		"SELECT n FROM t": 0, "SELECT n - 1 FROM t": 0, "SELECT 1 - n FROM t": 0, "SELECT coalesce(n, 1) FROM t": 0, "SELECT CASE WHEN n > 1 THEN 2 END FROM t": 0,
		"SELECT 1 IN (n) FROM t": 0, "SELECT (SELECT 1 FROM u), 2 FROM t": 1, "SELECT 1": 1, "SELECT 7 UNION SELECT count(*) FROM t": 0, "SELECT 1 WHERE EXISTS (SELECT 1)": 0, "WITH a AS (SELECT 1) SELECT 1 FROM a": 0, "": 0,
	} {
		if got := selectedConstants(sql, lex.PostgreSQL); got != want {
			t.Errorf("%s: %d, want %d", sql, got, want)
		}
	}
}
