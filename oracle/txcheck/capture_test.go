package txcheck

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
)

// script makes a schedule of PostgreSQL on a table t (id, v) from lines "SESSION: SQL" (session 1 or 2), each with its answer behind
// "-->": rows "1,2 3,4", "n" rows changed, or "error CODE". Results of reads have columns id and v.
func script(t testing.TB, level string, lines string) *schedule.Schedule {
	t.Helper()
	s := &schedule.Schedule{Product: "postgres", Level: level, Setup: []string{"CREATE TABLE t (id int, v int)"}, Sessions: []schedule.Session{{Name: "T1"}, {Name: "T2"}}}
	s.Final = []answer.Table{{Name: "t", Columns: []answer.Column{{Name: "id"}, {Name: "v"}}}}
	states := make([]answer.State, 3)
	for i, line := range strings.Split(strings.TrimSpace(lines), "\n") {
		session, rest, _ := strings.Cut(strings.TrimSpace(line), ": ")
		sql, told, _ := strings.Cut(rest, " --> ")
		n := int(session[0]-'0') - 1
		st := schedule.Step{Session: n, Name: fmt.Sprintf("step%d", i+1), Statement: describe(t, "postgres", sql), Sent: 2*i + 1, Done: 2*i + 2, Effect: answer.EffectNone, Before: states[n]}
		switch st.Statement.Control.Verb {
		case "begin":
			states[n] = answer.Open
		case "commit", "rollback":
			states[n] = answer.Idle
		}
		st.After = states[n]
		st.Answer = answerOf(st.Statement.Verb, told)
		s.Steps = append(s.Steps, st)
	}
	return s
}

func answerOf(verb, text string) answer.Result {
	a := answer.Result{}
	if code, failed := strings.CutPrefix(text, "error "); failed {
		a.Err = &answer.Error{Code: code}
		return a
	}
	if verb != "select" {
		_, _ = fmt.Sscan(text, &a.Affected)
		return a
	}
	a.Columns = []answer.Column{{Name: "id"}, {Name: "v"}}
	a.Rows = rowsOf(text)
	return a
}

// rowsOf reads "1,2 3,4"; - is NULL.
func rowsOf(text string) (rows [][]answer.Value) {
	for _, part := range strings.Fields(text) {
		var row []answer.Value
		for _, v := range strings.Split(part, ",") {
			if v == "-" {
				row = append(row, nil)
			} else {
				row = append(row, answer.Value(v))
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// shown is what the added reads of a schedule's statement bring back: versions as "row,previous,version".
type shown struct{ set, items, returned string }

// executed makes of a schedule an execution of its instrumented case.
func executed(t testing.TB, s *schedule.Schedule, reads map[int]shown) (*plan, *capture) {
	t.Helper()
	p, _ := dbmsOf(s.DBMS())
	c, why := newPlan(s, p)
	if why != "" {
		t.Fatal(why)
	}
	got := *s
	got.Steps = nil
	columns := []answer.Column{{Name: ColumnRow}, {Name: ColumnPrevious}, {Name: ColumnVersion}}
	tick := 0
	add := func(like schedule.Step, name string, a answer.Result) {
		like.Name, like.Answer, like.Sent, like.Done = name, a, tick+1, tick+2
		tick += 2
		got.Steps = append(got.Steps, like)
	}
	for i, st := range s.Steps {
		x, name := reads[i+1], fmt.Sprintf("S%d", i+1)
		probeOf := func(kind probe, prefix, list string, width int) {
			a := answer.Result{Columns: make([]answer.Column, width)}
			for _, part := range strings.Fields(list) {
				a.Rows = append(a.Rows, rowsOf(prefix+part)...)
			}
			like := st
			like.Statement = describe(t, "postgres", "SELECT 1")
			like.Before, like.After = st.Before, st.Before
			add(like, name+string(kind), a)
		}
		switch st.Statement.Verb {
		case "select":
			probeOf(vsr, "0,", x.set, 4)
			probeOf(items, "t,", x.items, 3)
		case "update", "delete", "insert":
			probeOf(vsr, "0,", x.set, 4)
			st.Answer.Columns, st.Answer.Rows = columns, rowsOf(x.returned)
		}
		add(st, name, st.Answer)
	}
	out, why := c.read(&got)
	if why != "" {
		t.Fatal(why)
	}
	return c, out
}

func edges(c *capture) string { return c.graph(bySnapshot).Text() }

func TestCapture(t *testing.T) {
	s := script(t, product.RepeatableRead, `
		1: BEGIN
		2: BEGIN
		1: SELECT id, v FROM t WHERE v > 5 --> 1,10
		2: UPDATE t SET v = 11 WHERE id = 1 --> 1
		2: INSERT INTO t (id, v) VALUES (3, 30) --> 1
		2: DELETE FROM t WHERE id = 2 --> 1
		2: COMMIT
		1: SELECT id, v FROM t --> 1,10 2,2
		1: COMMIT
		2: SELECT id, v FROM t --> 1,11 3,30`)
	_, got := executed(t, s, map[int]shown{
		3:  {set: "a,-,0 b,-,0", items: "a,0"},
		4:  {set: "a,-,0 b,-,0", returned: "a,0,4"},
		5:  {returned: "n5.0,-,0"},
		6:  {set: "a,0,4 b,-,0 n5.0,-,0", returned: "b,-,0"},
		8:  {set: "a,-,0 b,-,0", items: "a,0 b,0"},
		10: {set: "a,0,4 n5.0,-,0", items: "a,4 n5.0,0"},
	})
	want := strings.Join([]string{
		"3 -> 4 stmt-item-anti+stmt-predicate-anti", // it read the row that 4 overwrote
		"3 -> 5 stmt-predicate-anti",                // it looked where 5 inserted
		"3 -> 6 stmt-predicate-anti",
		"4 -> 5 stmt-predicate-write", // 4 looked where 5 inserted
		"4 -> 6 stmt-predicate-write", // 6 looked at the row that 4 wrote, and 4 at the one that 6 deleted
		"4 -> 10 stmt-item-read+stmt-predicate-read",
		"5 -> 6 stmt-predicate-write",
		"5 -> 10 stmt-item-read+stmt-predicate-read",
		"6 -> 10 stmt-predicate-read", // 10 does not see the row that 6 deleted
		"8 -> 4 stmt-item-anti+stmt-predicate-anti",
		"8 -> 5 stmt-predicate-anti",
		"8 -> 6 stmt-item-anti+stmt-predicate-anti",
	}, "\n") + "\n"
	if diff := cmp.Diff(want, edges(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if f := unseen(got); f != nil {
		t.Errorf("%s: %s", f.name(), f.why)
	}
}

// TestRolledBack: what was rolled back has no node, and who read it is found.
func TestRolledBack(t *testing.T) {
	s := script(t, product.ReadCommitted, `
		1: BEGIN
		1: UPDATE t SET v = 11 WHERE id = 1 --> 1
		2: SELECT id, v FROM t --> 1,11
		1: ROLLBACK`)
	_, got := executed(t, s, map[int]shown{2: {set: "a,-,0", returned: "a,0,2"}, 3: {set: "a,0,2"}})
	if f := unseen(got); f == nil || f.number != 3 {
		t.Errorf("the read of what was rolled back is not found: %+v", f)
	}
	// Near miss: it saw the row as it was before.
	_, got = executed(t, s, map[int]shown{2: {set: "a,-,0", returned: "a,0,2"}, 3: {set: "a,-,0"}})
	if f := unseen(got); f != nil {
		t.Errorf("%s: %s", f.name(), f.why)
	}
	if n := len(got.graph(bySnapshot).Nodes); n != 1 {
		t.Errorf("%d nodes", n)
	}
	// So is what is undone by ROLLBACK TO SAVEPOINT.
	s = script(t, product.ReadCommitted, `
		1: BEGIN
		1: UPDATE t SET v = 11 WHERE id = 1 --> 1
		1: SAVEPOINT p
		1: UPDATE t SET v = 12 WHERE id = 1 --> 1
		1: ROLLBACK TO p
		1: COMMIT`)
	_, got = executed(t, s, map[int]shown{2: {set: "a,-,0", returned: "a,0,2"}, 4: {set: "a,0,2", returned: "a,2,4"}})
	if g := got.graph(bySnapshot); len(g.Nodes) != 1 || g.Nodes[0].Statement != 2 {
		t.Errorf("%+v", g.Nodes)
	}
}

// TestAbsence: a row that is not seen was not there yet, or is gone; where both are possible nothing is concluded.
func TestAbsence(t *testing.T) {
	s := script(t, product.RepeatableRead, `
		2: INSERT INTO t (id, v) VALUES (3, 30) --> 1
		2: DELETE FROM t WHERE id = 3 --> 1
		1: SELECT id, v FROM t --> `)
	_, got := executed(t, s, map[int]shown{1: {returned: "n1.0,-,0"}, 2: {set: "n1.0,-,0", returned: "n1.0,-,0"}})
	if f := unseen(got); f == nil || f.number != 3 {
		t.Errorf("it is not certain what statement 3 does not see: %+v", f)
	}
	s.Level = product.ReadCommitted // near miss: what it sees is the newest
	_, got = executed(t, s, map[int]shown{1: {returned: "n1.0,-,0"}, 2: {set: "n1.0,-,0", returned: "n1.0,-,0"}})
	if f := unseen(got); f != nil {
		t.Errorf("%s: %s", f.name(), f.why)
	}
	if g := got.graph(bySnapshot); g.Edges[1][2]&PredicateRead == 0 {
		t.Errorf("the read depends on the deletion:\n%s", g.Text())
	}
}

// canned is a stage on which every execution of the instrumented case goes the same way, as long as its statements are there.
type canned struct {
	schedule.Stage
	runs   [][]schedule.Order
	result func(orders []schedule.Order) *schedule.Schedule
}

func (c *canned) Run(_ context.Context, _ []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	c.runs = append(c.runs, orders)
	return c.result(orders), nil
}

// TestDecycling: of two statements on a cycle the one that is chosen is removed, and the case is executed again without it.
func TestDecycling(t *testing.T) {
	s := script(t, product.RepeatableRead, `
		1: BEGIN
		2: BEGIN
		1: UPDATE t SET v = (SELECT sum(v) FROM t) WHERE id = 1 --> 1
		2: UPDATE t SET v = (SELECT sum(v) FROM t) WHERE id = 2 --> 1
		1: COMMIT
		2: COMMIT`)
	reads := map[int]shown{3: {set: "a,-,0 b,-,0", returned: "a,0,3"}, 4: {set: "a,-,0 b,-,0", returned: "b,0,4"}}
	for _, chosen := range []int{0, 1} {
		c, full := executed(t, s, reads)
		stage := &canned{result: func(orders []schedule.Order) *schedule.Schedule {
			out := *full.schedule
			out.Steps = nil
			for _, st := range full.schedule.Steps {
				if slices.ContainsFunc(orders, func(o schedule.Order) bool { return o.Name == st.Name }) {
					out.Steps = append(out.Steps, st)
				}
			}
			return &out
		}}
		k := &check{original: s, stage: stage, options: Options{Intn: func(int) int { return chosen }}, plan: c}
		ready, err := k.refine(t.Context())
		if err != nil || !ready || len(stage.runs) != 2 {
			t.Fatalf("%v, %v after %d executions", ready, err, len(stage.runs))
		}
		gone, stays := fmt.Sprintf("S%d", 3+chosen), fmt.Sprintf("S%d", 4-chosen)
		has := func(name string) bool {
			return slices.ContainsFunc(stage.runs[1], func(o schedule.Order) bool { return o.Name == name })
		}
		if has(gone) || !has(stays) || has(gone+string(vsr)) {
			t.Errorf("%s was to be removed: %v", gone, stage.runs[1])
		}
		if len(k.verdict.Notes) != 1 || len(k.verdict.Findings) > 0 {
			t.Errorf("%+v", k.verdict)
		}
	}
}

// TestHalfDone: what is read without locks at READ UNCOMMITTED while a write of another session waits shows how far that one came.
func TestHalfDone(t *testing.T) {
	const deletion = "DELETE FROM t WHERE v > 1"
	for _, test := range []struct {
		name, sql, level, other string
		sent, done              int // of the other one; the statement itself is sent at 3 and done at 4
		waited                  bool
		want                    string
	}{
		{"a read", "SELECT * FROM t", product.ReadUncommitted, deletion, 1, 9, true, "other"},
		{"the source of an INSERT", "INSERT INTO u SELECT * FROM t", product.ReadUncommitted, deletion, 1, 9, true, "other"},
		{"a subquery of a write", "DELETE FROM u WHERE id IN (SELECT id FROM t)", product.ReadUncommitted, deletion, 1, 9, true, "other"},
		{"a locking read", "SELECT * FROM t LOCK IN SHARE MODE", product.ReadUncommitted, deletion, 1, 9, true, ""},
		{"a write that reads nothing else", "UPDATE t SET v = 1", product.ReadUncommitted, deletion, 1, 9, true, ""},
		{"another level", "SELECT * FROM t", product.ReadCommitted, deletion, 1, 9, true, ""},
		{"it did not wait", "SELECT * FROM t", product.ReadUncommitted, deletion, 1, 9, false, ""},
		{"it was done before", "SELECT * FROM t", product.ReadUncommitted, deletion, 1, 2, true, ""},
		{"it came after", "SELECT * FROM t", product.ReadUncommitted, deletion, 5, 9, true, ""},
		{"it writes nothing", "SELECT * FROM t", product.ReadUncommitted, "SELECT * FROM t FOR UPDATE", 1, 9, true, ""},
	} {
		steps := []schedule.Step{
			{Session: 0, Name: "other", Statement: describe(t, "mariadb", test.other), Sent: test.sent, Done: test.done, Waited: test.waited},
			{Session: 1, Name: "it", Statement: describe(t, "mariadb", test.sql), Sent: 3, Done: 4},
		}
		p, _ := dbmsOf(product.Of("mariadb"))
		if got := p.halfDone(&steps[1], test.level, steps); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestOptimisticKeys: which rows with its keys an INSERT IGNORE of TiDB's optimistic transactions meets is not told by the order in time.
func TestOptimisticKeys(t *testing.T) {
	for _, test := range []struct {
		sql, setup, product, level string
		removed                    bool
	}{
		{"INSERT IGNORE INTO t VALUES (3, 3)", "CREATE TABLE t (id int UNIQUE, v int)", "tidb", product.Snapshot, true},
		{"REPLACE INTO t VALUES (3, 3)", "CREATE TABLE t (id int UNIQUE, v int)", "tidb", product.Snapshot, true},
		{"INSERT INTO t VALUES (3, 3) ON DUPLICATE KEY UPDATE v = 1", "CREATE TABLE t (id int UNIQUE, v int)", "tidb", product.Snapshot, true},
		{"INSERT INTO t VALUES (3, 3)", "CREATE TABLE t (id int UNIQUE, v int)", "tidb", product.Snapshot, false},
		{"INSERT IGNORE INTO t VALUES (3, 3)", "CREATE TABLE t (id int, v int)", "tidb", product.Snapshot, false},
		{"INSERT IGNORE INTO t VALUES (3, 3)", "CREATE TABLE t (id int UNIQUE, v int)", "tidb", product.RepeatableRead, false},
		{"INSERT IGNORE INTO t VALUES (3, 3)", "CREATE TABLE t (id int UNIQUE, v int)", "mariadb", product.Snapshot, false},
	} {
		s := &schedule.Schedule{Product: test.product, Level: test.level, Setup: []string{test.setup}, Sessions: []schedule.Session{{Name: "T1"}}}
		s.Final = []answer.Table{{Name: "t", Columns: []answer.Column{{Name: "id"}, {Name: "v"}}}}
		s.Steps = []schedule.Step{
			{Statement: describe(t, test.product, "BEGIN"), Sent: 1, Done: 2, After: answer.Open},
			{Statement: describe(t, test.product, test.sql), Sent: 3, Done: 4, Before: answer.Open, After: answer.Open},
			{Statement: describe(t, test.product, "COMMIT"), Sent: 5, Done: 6, Before: answer.Open},
		}
		p, _ := dbmsOf(s.DBMS())
		c, why := newPlan(s, p)
		if why != "" {
			t.Fatal(why)
		}
		if c.removed != test.removed {
			t.Errorf("%s on %s at %s, %s: removed %v: %v", test.sql, test.product, test.level, test.setup, c.removed, c.notes)
		}
	}
}

// TestFollow compares a schedule with its repetition.
func TestFollow(t *testing.T) {
	const lines = `
		1: BEGIN
		1: UPDATE t SET v = 11 WHERE id = 1 --> 1
		1: SELECT id, v FROM t --> 1,11 2,2
		1: COMMIT`
	tests := []struct {
		name   string
		change func(s *schedule.Schedule)
		want   string
	}{
		{"nothing", func(*schedule.Schedule) {}, ""},
		{"another order of rows", func(s *schedule.Schedule) { s.Steps[2].Answer.Rows = rowsOf("2,2 1,11") }, ""},
		{"another value", func(s *schedule.Schedule) { s.Steps[2].Answer.Rows = rowsOf("1,11 2,3") }, oracle.NameResult},
		{"a row too many", func(s *schedule.Schedule) { s.Steps[2].Answer.Rows = rowsOf("1,11 2,2 2,2") }, oracle.NameResult},
		{"a skipped row", func(s *schedule.Schedule) { s.Steps[1].Answer.Affected = 0 }, oracle.NameResult},
		{"an error", func(s *schedule.Schedule) {
			s.Steps[2].Answer, s.Steps[2].Reason = answer.Result{Err: &answer.Error{Code: "22012"}}, answer.ReasonOther
		}, oracle.NameError},
		{"an error that others may cause", func(s *schedule.Schedule) {
			s.Steps[2].Answer, s.Steps[2].Reason = answer.Result{Err: &answer.Error{Code: "40001"}}, answer.ReasonSerialization
		}, ""},
		{"it waited", func(s *schedule.Schedule) { s.Steps[1].Waited = true; s.Steps[2].Answer.Rows = nil }, ""},
		{"two that waited go on at once", func(s *schedule.Schedule) {
			s.Steps[1].Waited, s.Steps[2].Waited, s.Steps[2].Sent = true, true, s.Steps[1].Sent
			s.Steps[1].Answer.Affected = 0
		}, ""},
		{"another final state", func(s *schedule.Schedule) { s.Final[0].Rows = rowsOf("1,12") }, oracle.NameFinalState},
	}
	for _, test := range tests {
		s := script(t, product.ReadCommitted, lines)
		test.change(s)
		p, _ := dbmsOf(s.DBMS())
		c, _ := newPlan(s, p)
		again := script(t, product.ReadCommitted, lines)
		names := map[string]*schedule.Step{}
		for i := range again.Steps {
			again.Steps[i].Name = fmt.Sprintf("C%d", i+1)
			names[again.Steps[i].Name] = &s.Steps[i]
		}
		k := &check{original: s, plan: c, plain: c}
		d := k.follow(again, names)
		got := ""
		if d != nil {
			got = d.name
			k.refute(d)
			if f := k.verdict.Findings[0]; f.Kind != oracle.KindViolation || f.ID == "" || f.Difference.Rule == "" {
				t.Errorf("%s: %+v", test.name, f)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// TestPassed: which rows that others put in a statement comes to after a wait depends on its plan.
func TestPassed(t *testing.T) {
	for _, test := range []struct {
		product, other string
		sent, done     int
		waited, want   bool
		waiting        string
	}{
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, ""},
		{"mariadb", "UPDATE t SET v = 3", 4, 5, true, true, ""},
		{"mariadb", "UPDATE t SET id = 3", 1, 2, true, true, ""},
		{"mariadb", "UPDATE t SET v = 3", 1, 2, true, false, ""},                                           // it stays where it is
		{"mariadb", "DELETE FROM t", 4, 5, true, false, ""},                                                // it is not put anywhere
		{"mariadb", "INSERT INTO u VALUES (9, 9)", 4, 5, true, false, ""},                                  // another table
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 1, 2, true, false, ""},                                  // it was there
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, false, false, ""},                                 // no wait
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 6, 8, true, false, ""},                                  // it came later
		{"postgres", "INSERT INTO t VALUES (9, 9)", 4, 5, true, false, ""},                                 // the snapshot decides
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, false, "UPDATE t SET v = 1"},                // all rows, in one order
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, "UPDATE t SET v = 1 ORDER BY v"},      // in an order of the plan
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, "DELETE FROM t LIMIT 1"},              // in any order
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, "SELECT v FROM t FOR UPDATE"},         // perhaps by an index on v
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, "UPDATE t SET v = (SELECT 1 FROM t)"}, // a scan in it
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, false, "INSERT INTO t VALUES (9, 8)"},       // it scans nothing
		{"mariadb", "INSERT INTO t VALUES (9, 9)", 4, 5, true, true, "INSERT INTO t SELECT 9, 8 FROM t"},
	} {
		waiting := test.waiting
		if waiting == "" {
			waiting = "DELETE FROM t WHERE v > 0"
		}
		s := &schedule.Schedule{Product: test.product, Setup: []string{"CREATE TABLE t (id INT PRIMARY KEY, v INT)"}, Steps: []schedule.Step{
			{Name: "a", Statement: describe(t, test.product, waiting), Sent: 3, Done: 7, Waited: test.waited},
			{Name: "b", Session: 1, Statement: describe(t, test.product, test.other), Sent: test.sent, Done: test.done},
		}}
		p, _ := dbmsOf(s.DBMS())
		if got := p.passed(&s.Steps[0], s); (got == "b") != test.want {
			t.Errorf("%s, %s at %d: %q", test.product, test.other, test.sent, got)
		}
	}
}
