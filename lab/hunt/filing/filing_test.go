package filing

import (
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/backends"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// waited is a case in which one session waits for the other.
func waited(t *testing.T, engine string) *Case {
	t.Helper()
	d, err := backends.ByName(engine)
	if err != nil {
		t.Fatal(err)
	}
	step := func(session int, name, sql string, sent, done int) schedule.Step {
		return schedule.Step{Session: session, Name: name, Statement: statement.Statement{Text: sql}, Sent: sent, Done: done}
	}
	s := &schedule.Schedule{
		Product: engine, Version: "1", Setup: []string{"CREATE TABLE t (a INT)"}, Sessions: []schedule.Session{{Name: "x"}, {Name: "y"}},
		Steps: []schedule.Step{step(0, "x1", "BEGIN", 1, 2), step(0, "x2", "DELETE FROM t", 3, 4), step(0, "x3", "COMMIT", 6, 7), step(1, "y1", "DELETE FROM t", 5, 8), step(1, "y2", "TABLE t", 9, 10)},
	}
	s.Steps[3].Waited, s.Steps[3].For = true, []int{0}
	s.Steps[3].Answer.Err = &answer.Error{Code: "1213", Message: "Deadlock costs $5"}
	return &Case{Engine: d, Level: d.Levels[0], Schedule: s, Finding: &oracle.Finding{Difference: &oracle.Difference{Step: "y2", Session: "y", SQL: "TABLE t"}}}
}

// TestForms: in each form the statement that lets a waiting session go comes before that session's next one.
func TestForms(t *testing.T) {
	for _, test := range []struct {
		engine, name string
		want         []string // in this order
	}{
		{"mariadb", "case.test", []string{"--connection s1\nBEGIN;", "send DELETE FROM t;", "wait_condition", "--connection s1\nCOMMIT;", "--connection s2\n--echo # ", `costs \$5`, "--error 1213\n--reap\n", "TABLE t;"}},
		{"postgres", "case.isolation.spec", []string{"session s1", "step s1_1 { BEGIN; }", "session s2", "step s2_3 { DELETE FROM t; }", "permutation s1_1 s1_2 s2_3 s1_4 s2_6"}},
		{"tidb", "case_test.go", []string{"done2 := make", "go func() { done2 <- tk2.ExecToErr(\"DELETE FROM t\") }() // waits for tk1", "tk1.MustExec(\"COMMIT\")", "<-done2, \"[1213]\"", "tk2.MustQuery(\"TABLE t\")"}},
	} {
		k := waited(t, test.engine)
		name, text := k.Test()
		if name != test.name {
			t.Errorf("%s: %s", test.engine, name)
		}
		rest := text
		for _, want := range test.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%s: %q is not there, or not in its place:\n%s", test.engine, want, text)
				break
			}
			rest = after
		}
		if strings.HasSuffix(name, ".go") {
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, 0); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
		if script := k.Script(); !strings.Contains(script, "-- waits for terminal 1\n\n-- terminal 1\nCOMMIT;\n\n-- terminal 2\n-- goes on: ") {
			t.Errorf("%s: %s", test.engine, script)
		}
	}
}

// TestBrace: isolationtester cannot read a } in SQL, so there is no file; near miss: a { is none.
func TestBrace(t *testing.T) {
	for sql, there := range map[string]bool{"SELECT '}'": false, "SELECT '{'": true} {
		k := waited(t, "postgres")
		k.Schedule.Steps[1].Statement.Text = sql
		if _, text := k.Test(); (text != "") != there {
			t.Errorf("%s: %s", sql, text)
		}
	}
}

// TestEnding: a person reads how a connection ends; near miss: an ordinary ROLLBACK.
func TestEnding(t *testing.T) {
	for sql, want := range map[string]string{
		"ROLLBACK /* wirecheck: killed */": "-- in place of this, end the terminal's connection", "ROLLBACK /* wirecheck: cut */": "-- in place of this, kill the terminal's client",
		"COMMIT /* wirecheck: cut */": "before it has the answer", "ROLLBACK": "",
	} {
		k := waited(t, "postgres")
		k.Schedule.Steps[2].Statement.Text = sql
		if script := k.Script(); !strings.Contains(script, want) || strings.Contains(script, "kill the terminal's") && !strings.Contains(sql, "cut") {
			t.Errorf("%s:\n%s", sql, script)
		}
	}
}

// TestFinals: the tables at the end are shown as they were when the lab had ended all transactions; near miss: a transaction that has ended.
func TestFinals(t *testing.T) {
	for after, want := range map[answer.State]string{
		answer.Open: "\nROLLBACK;\n\n-- terminal 1\nTABLE s;\nSELECT * FROM t;\n-- 7\n", answer.Failed: "\nROLLBACK;\n", answer.Idle: "observed: \n\n-- terminal 1\nTABLE s;\n",
	} {
		k := waited(t, "mariadb")
		if script := k.Script(); strings.Contains(script, "ROLLBACK") || !strings.Contains(script, "\n-- Session x is terminal 1, y is terminal 2.\n") {
			t.Errorf("no final query:\n%s", script)
		}
		k.Finals = []string{"TABLE s", "SELECT * FROM t"}
		k.Schedule.Steps[4].After = after
		k.Schedule.Final = []answer.Table{{Name: "t", Columns: []answer.Column{{Name: "a"}}, Rows: [][]answer.Value{{answer.Value("7")}}}}
		if script := k.Script(); !strings.Contains(script, want) {
			t.Errorf("%v: %q is not in\n%s", after, want, script)
		}
	}
}

// TestContradiction: where nobody knows which answer is wrong, the script says that they contradict each other; near miss: one is known to be wrong.
func TestContradiction(t *testing.T) {
	for wrong, want := range map[bool]string{
		false: "TABLE b;\n-- no rows; these answers contradict each other: x by one, no rows by another\n", true: "TABLE b;\n-- observed, which is wrong: no rows; expected: x\n",
	} {
		k := waited(t, "mariadb")
		k.Finding.Class = oracle.TLP
		d := k.Finding.Difference
		d.SQL, d.Expected, d.Observed = "TABLE b", oracle.Side{Text: "x"}, oracle.Side{Text: "no rows"}
		d.Parts = []oracle.Part{{SQL: "TABLE a", Answer: d.Expected}, {SQL: "TABLE b", Answer: d.Observed, Wrong: wrong}}
		if script := k.Script(); !strings.HasSuffix(script, want) {
			t.Errorf("%v: no %q at the end of\n%s", wrong, want, script)
		}
	}
}

// TestContradictionOfWrites: what DQE undoes stands behind the answers that contradict each other, and says nothing.
func TestContradictionOfWrites(t *testing.T) {
	k := waited(t, "mariadb")
	k.Finding.Class, k.Finding.Tables = oracle.DQE, []string{"t"}
	d := k.Finding.Difference
	d.SQL, d.Expected, d.Observed = "DELETE FROM t", oracle.Side{Text: "1"}, oracle.Side{Text: "no rows"}
	d.Parts = []oracle.Part{{SQL: "SELECT wc_dqe_id FROM t", Answer: d.Expected}, {SQL: "DELETE FROM t", Answer: d.Observed}}
	const want = "SELECT wc_dqe_id FROM t;\n-- rows that are gone: no rows; these answers contradict each other: 1 by one, no rows by another\nROLLBACK;\n"
	if script := k.Script(); !strings.HasSuffix(script, want) {
		t.Errorf("no %q at the end of\n%s", want, script)
	}
	d.Parts[1].Wrong = true
	if script := k.Script(); strings.Contains(script, "contradict") {
		t.Errorf("one is known to be wrong:\n%s", script)
	}
}

// TestNoRows: of a write that changed nothing the script says so. Near misses: a statement that writes nothing, and a write whose answer nobody has.
func TestNoRows(t *testing.T) {
	k := waited(t, "mariadb")
	k.Schedule.Steps[1].Statement.Tables = []statement.TableUse{{Kind: statement.SourceTable, Name: "t", Target: true}}
	script := k.Script()
	if !strings.Contains(script, "DELETE FROM t;\n-- 0 rows\n") || strings.Count(script, "0 rows") != 1 {
		t.Errorf("the script is\n%s", script)
	}
}
