package serial

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// toy is a stage whose database is one number for each name: "read NAME", "NAME := N", "NAME += N" in comments of real statements, which
// only say what kind of statement it is.
type toy struct {
	schedule.Stage
	start map[string]int
	clock int    // each execution is a little later
	slow  int    // so many executions pass before the clock shows another time
	kind  string // type of the column that the clock fills
	keys  map[string][][]string
	gone  string // the step that gets no answer when it is executed again
}

func (t *toy) Prepare(context.Context, []string, int) error { return nil }

func (t *toy) Run(_ context.Context, sessions []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	t.clock++
	s := &schedule.Schedule{Product: "postgres", Level: product.ReadCommitted, Sessions: sessions}
	db := map[string]int{}
	for k, v := range t.start {
		db[k] = v
	}
	for i, o := range orders {
		list, err := postgres.Describe(o.SQL)
		if err != nil || len(list) != 1 {
			return nil, fmt.Errorf("%s: %v", o.SQL, err)
		}
		st := schedule.Step{Session: o.Session, Name: o.Name, Statement: list[0], Sent: 2 * i, Done: 2*i + 1, Effect: answer.EffectNone}
		name, n := "", 0
		switch {
		case strings.HasPrefix(o.SQL, "SELECT"):
			fmt.Sscanf(o.SQL, "SELECT n FROM %s", &name)
			st.Answer = answer.Result{Columns: []answer.Column{{Name: "n"}}, Rows: [][]answer.Value{{answer.Value(fmt.Sprint(db[name]))}}}
		default:
			fmt.Sscanf(o.SQL, "UPDATE %s SET n = %d", &name, &n)
			db[name] = n
			st.Answer.Affected = 1
		}
		if t.clock > 1 && o.Name == t.gone {
			st.Effect = answer.EffectGone
		}
		s.Steps = append(s.Steps, st)
	}
	for name, n := range db {
		s.Final = append(s.Final, answer.Table{Name: name, Columns: []answer.Column{{Name: "n"}, {Name: "at", Type: t.kind}},
			Rows: [][]answer.Value{{answer.Value(fmt.Sprint(n)), answer.Value(fmt.Sprint(t.clock / max(t.slow, 1)))}}})
	}
	return s, nil
}

// run executes lines "session: statement" and judges them.
func run(t *testing.T, change func(*schedule.Schedule), lines ...string) schedule.Verdict {
	t.Helper()
	return runOn(t, &toy{}, change, lines...)
}

func runOn(t *testing.T, stage *toy, change func(*schedule.Schedule), lines ...string) schedule.Verdict {
	t.Helper()
	stage.start = map[string]int{"x": 10, "y": 10}
	sessions := []schedule.Session{{Name: "s1"}, {Name: "s2"}}
	var orders []schedule.Order
	for i, line := range lines {
		session, sql, _ := strings.Cut(line, ": ")
		orders = append(orders, schedule.Order{Session: int(session[0] - '1'), Name: fmt.Sprint("step", i), SQL: sql})
	}
	s, err := stage.Run(t.Context(), sessions, orders)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	v, err := Check(t.Context(), s, stage, Options{Keys: stage.keys})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCheck(t *testing.T) {
	v := run(t, nil, "1: SELECT n FROM x", "2: SELECT n FROM x", "1: UPDATE x SET n = 9", "2: UPDATE x SET n = 8")
	if len(v.Findings) != 1 || v.Unknown != "" {
		t.Fatalf("a lost update: got %+v", v)
	}
	if f := v.Findings[0]; f.Kind != oracle.KindAnomaly || f.Name != oracle.NameSerial || len(f.Difference.Reference) != 1 || !strings.Contains(f.Difference.Reference[0], "the closest of 2 serial orders") || f.Difference.Step == "" {
		t.Errorf("got %+v, want an anomaly with what the closest of two orders would have brought", f)
	}
	for name, lines := range map[string][]string{
		"one after the other":     {"1: SELECT n FROM x", "1: UPDATE x SET n = 9", "2: SELECT n FROM x", "2: UPDATE x SET n = 8"},
		"different rows":          {"1: SELECT n FROM x", "2: SELECT n FROM y", "1: UPDATE x SET n = 9", "2: UPDATE y SET n = 8"},
		"only one order explains": {"1: SELECT n FROM x", "2: UPDATE x SET n = 8", "1: SELECT n FROM y"},
		"nobody reads":            {"1: UPDATE x SET n = 9", "2: UPDATE x SET n = 8", "1: UPDATE y SET n = 1"},
		"one session":             {"1: SELECT n FROM x", "1: UPDATE x SET n = 9"},
	} {
		if v := run(t, nil, lines...); len(v.Findings) > 0 || v.Unknown != "" {
			t.Errorf("%s: got %+v, want nothing", name, v)
		}
	}
	// Write skew: each reads what the other writes.
	if v := run(t, nil, "1: SELECT n FROM x", "2: SELECT n FROM y", "1: UPDATE y SET n = 0", "2: UPDATE x SET n = 0"); len(v.Findings) != 1 {
		t.Errorf("write skew: got %+v", v)
	}
}

// TestCheckVictim leaves out a session that the server refused something and of which no write lasts, and says nothing of one that went on.
func TestCheckVictim(t *testing.T) {
	lines := []string{"1: SELECT n FROM x", "2: SELECT n FROM x", "1: UPDATE x SET n = 9", "2: UPDATE x SET n = 8"}
	refuse := func(s *schedule.Schedule) {
		last := &s.Steps[3]
		last.Answer = answer.Result{Err: &answer.Error{Code: "40P01"}}
		last.Reason, last.Effect = answer.ReasonDeadlock, answer.EffectRolledBack
	}
	v := run(t, refuse, lines...)
	if v.Unknown != "" || len(v.Findings) > 0 { // its SELECT was a transaction of its own, of which nothing stays
		t.Errorf("a session that read something before: got %+v, want nothing", v)
	}
	v = run(t, refuse, "1: SELECT n FROM x", "2: UPDATE y SET n = 7", "1: UPDATE x SET n = 9", "2: UPDATE x SET n = 8")
	if v.Unknown == "" || len(v.Findings) > 0 {
		t.Errorf("a session that wrote something before: got %+v, want unknown", v)
	}
	v = run(t, func(s *schedule.Schedule) {
		refuse(s)
		s.Steps[1].After, s.Steps[3].Before = answer.Open, answer.Open
	}, lines...)
	if len(v.Findings) > 0 || v.Unknown != "" {
		t.Errorf("a transaction that was rolled back: got %+v, want nothing", v)
	}
}

// TestMasks compares no clocks, and nothing that may differ for another reason than the order.
func TestMasks(t *testing.T) {
	for volatile, want := range map[string][2]bool{
		"function now tells of the clock":                                         {false, false},
		"function nextval tells of a sequence":                                    {true, false},
		"LIMIT without ORDER BY":                                                  {false, true},
		"function now tells of the clock; function random tells of random values": {false, true},
		"": {false, false},
	} {
		if counter, other := causes(volatile); counter != want[0] || other != want[1] {
			t.Errorf("%q: got %v, %v, want %v", volatile, counter, other, want)
		}
	}
	// A read of locked rows that does not wait says nothing.
	v := run(t, nil, "1: UPDATE x SET n = 9", "2: SELECT n FROM x FOR UPDATE SKIP LOCKED", "1: UPDATE x SET n = 7")
	if len(v.Findings) > 0 {
		t.Errorf("SKIP LOCKED: got %+v, want nothing", v)
	}
	if v := run(t, nil, "1: UPDATE x SET n = 9", "2: SELECT n FROM x", "1: UPDATE x SET n = 7"); len(v.Findings) != 1 {
		t.Errorf("an intermediate read: got %+v, want it", v)
	}
}

// TestMasksSlowClock: two executions of the same order may show the same second, and the next one another. What the clock fills by the
// definition or by a statement is not compared; other times, and what is no time, are.
func TestMasksSlowClock(t *testing.T) {
	const definition = "CREATE TABLE x (n int, at timestamp DEFAULT now())"
	for _, test := range []struct {
		name, kind, setup, update string
		want                      int
	}{
		{"a default", "timestamp", definition, "UPDATE x SET n = 8", 0},
		{"a statement", "date", "", "UPDATE x SET n = 8, at = now()", 0},
		{"a time that the client gives", "timestamp", "", "UPDATE x SET n = 8, at = '2026-01-02'", 1},
		{"no time", "text", definition, "UPDATE x SET n = 8", 1},
	} {
		v := runOn(t, &toy{slow: 3, kind: test.kind}, func(s *schedule.Schedule) { s.Setup = []string{test.setup} },
			"1: SELECT n FROM x", "2: "+test.update, "1: SELECT n FROM y")
		if len(v.Findings) != test.want || v.Unknown != "" {
			t.Errorf("%s: got %+v, want %d findings", test.name, v, test.want)
		}
	}
}

// TestMasksLimit: an answer that LIMIT did not cut off has all rows, and differs for the order of transactions only.
func TestMasksLimit(t *testing.T) {
	for query, want := range map[string]int{
		"SELECT n FROM x LIMIT 21":                                     1,
		"SELECT n FROM x LIMIT 21 OFFSET 0":                            1,
		"SELECT n FROM x FETCH FIRST 2 ROWS ONLY":                      1,
		"SELECT n FROM x LIMIT 1":                                      0, // the toy gives one row, as others may
		"SELECT n FROM x LIMIT 21 OFFSET 1":                            0,
		"SELECT n FROM x LIMIT 20 + 1":                                 0,
		"SELECT n FROM x FETCH FIRST 2 ROWS WITH TIES":                 0,
		"SELECT n FROM x FOR UPDATE SKIP LOCKED LIMIT 9":               0,
		"SELECT n FROM x WHERE n IN (SELECT n FROM x LIMIT 9) LIMIT 9": 0,
		"SELECT n FROM x WHERE random() > 0 LIMIT 9":                   0,
	} {
		v := run(t, nil, "1: UPDATE x SET n = 9", "2: "+query, "1: UPDATE x SET n = 7")
		if len(v.Findings) != want || v.Unknown != "" {
			t.Errorf("%s: got %+v, want %d findings", query, v, want)
		}
	}
}

// TestMasksKey: LIMIT cuts nothing off where the condition fixes a whole unique key.
func TestMasksKey(t *testing.T) {
	keys := map[string][][]string{"x": {{"id"}, {"room", "hour"}}}
	for query, want := range map[string]int{
		"SELECT n FROM x WHERE id = 1 LIMIT 1":                              1,
		`SELECT n FROM x AS "t1" WHERE (("t1"."id" = 1)) LIMIT 1 OFFSET 0`:  1,
		"SELECT n FROM x WHERE hour = $1 AND n > 0 AND x.room = -1 LIMIT 1": 1,
		"SELECT n FROM x WHERE 'a' = ID FETCH FIRST 1 ROW ONLY":             1,
		"SELECT n FROM x WHERE n = 1 LIMIT 1":                               0,
		"SELECT n FROM x WHERE room = 1 LIMIT 1":                            0,
		"SELECT n FROM x WHERE id > 1 LIMIT 1":                              0,
		"SELECT n FROM x WHERE id = n LIMIT 1":                              0,
		"SELECT n FROM x WHERE id = 1 OR n = 1 LIMIT 1":                     0,
		"SELECT n FROM x WHERE NOT id = 1 LIMIT 1":                          0,
		"SELECT n FROM x WHERE (id = 1) IS NOT TRUE LIMIT 1":                0,
		"SELECT n FROM x, y WHERE x.id = 1 LIMIT 1":                         0,
		"SELECT n FROM x LEFT JOIN y ON x.id = y.id WHERE x.id = 1 LIMIT 1": 0,
		"SELECT n FROM x AS z WHERE y.id = 1 LIMIT 1":                       0,
		"SELECT n FROM x WHERE id = 1 FOR UPDATE SKIP LOCKED LIMIT 1":       0,
	} {
		v := runOn(t, &toy{keys: keys}, nil, "1: UPDATE x SET n = 9", "2: "+query, "1: UPDATE x SET n = 7")
		if len(v.Findings) != want || v.Unknown != "" {
			t.Errorf("%s: got %+v, want %d findings", query, v, want)
		}
	}
	if v := runOn(t, &toy{}, nil, "1: UPDATE x SET n = 9", "2: SELECT n FROM x WHERE id = 1 LIMIT 1", "1: UPDATE x SET n = 7"); len(v.Findings) > 0 {
		t.Errorf("no key is known: got %+v", v)
	}
}

// TestMasksKeyNumber: the MySQL family finds many texts equal to a number (MySQL manual, 14.3).
func TestMasksKeyNumber(t *testing.T) {
	for query, want := range map[string]bool{
		"SELECT n FROM x WHERE code = 'a' LIMIT 1":                    true,
		"SELECT n FROM x WHERE code = 0 LIMIT 1":                      false,
		"SELECT n FROM x WHERE code = ? LIMIT 1":                      false,
		"SELECT n FROM x WHERE id = 1 LIMIT 1":                        true,
		"SELECT n FROM x WHERE (`x`.`ID` = '1') AND n > 0 LIMIT 0, 1": true,
		"SELECT n FROM x WHERE id = 1 OR n = 1 LIMIT 1":               false,
		"SELECT n FROM x WHERE id = 1 || n = 1 LIMIT 1":               false,
		"SELECT n FROM x WHERE id <=> NULL LIMIT 1":                   false,
		"SELECT n FROM x, y WHERE x.id = 1 LIMIT 1":                   false,
	} {
		list, err := mysql.New(mysql.MariaDB).Describe(query)
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: %v", query, err)
		}
		if _, cut := list[0].Cut(); !cut {
			t.Errorf("%s: not cut off", query)
		}
		m := NewMasks(Options{Keys: map[string][][]string{"x": {{"code"}, {"id"}}}})
		tables := []answer.Table{{Name: "x", Columns: []answer.Column{{Name: "code", Type: "varchar(20)"}, {Name: "id", Type: "int(11)"}, {Name: "n", Type: "int(11)"}}}}
		if got := schedule.Single(m.keys, &list[0], tables); got != want {
			t.Errorf("%s: at most one row: %v, want %v", query, got, want)
		}
	}
}

// TestCheckGone: what got an answer once and none when it was executed again is not compared, and so nothing is said.
func TestCheckGone(t *testing.T) {
	lines := []string{"1: SELECT n FROM x", "2: SELECT n FROM x", "1: UPDATE x SET n = 9", "2: UPDATE x SET n = 8"}
	if v := runOn(t, &toy{gone: "step1"}, nil, lines...); !strings.Contains(v.Unknown, "step1 of s2") || len(v.Findings) > 0 {
		t.Errorf("got %+v, want unknown", v)
	}
}
