package wss_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// fake is a stage of a tiny table engine: integers, one session at a time, no concurrency.
type fake struct {
	tables, prepared map[string]*table
	saved            map[string]*table // of the open transaction
	executed         []string
	// override answers a statement in a way that the engine itself would not: a bug. inside says whether a transaction is open.
	override func(f *fake, sql string, inside bool) (schedule.Step, bool)
}

type table struct {
	columns []string
	unique  []int
	auto    int // column that counts; -1: none
	next    int
	rows    [][]answer.Value
}

func clone(tables map[string]*table) map[string]*table {
	out := map[string]*table{}
	for name, t := range tables {
		c := *t
		c.rows = slices.Clone(t.rows)
		out[name] = &c
	}
	return out
}

func (f *fake) Prepare(ctx context.Context, setup []string, _ int) error {
	f.tables, f.saved = map[string]*table{}, nil
	for _, sql := range setup {
		st, err := f.Execute(ctx, 0, sql)
		if err == nil && st.Answer.Err != nil {
			err = errors.New(st.Answer.Err.Message)
		}
		if err != nil {
			return err
		}
	}
	f.prepared, f.executed = clone(f.tables), nil
	return nil
}

func (f *fake) Reset(context.Context) error {
	f.tables, f.saved = clone(f.prepared), nil
	return nil
}

func (f *fake) Tables(context.Context) (out []answer.Table, err error) {
	for name, t := range f.tables {
		n := answer.Table{Name: name, Rows: slices.Clone(t.rows)}
		for _, c := range t.columns {
			n.Columns = append(n.Columns, answer.Column{Name: c, Type: "int"})
		}
		slices.SortFunc(n.Rows, answer.CompareRows)
		out = append(out, n)
	}
	slices.SortFunc(out, func(a, b answer.Table) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func (f *fake) Load(_ context.Context, tables []answer.Table) error {
	for _, t := range tables {
		f.tables[t.Name].rows = slices.Clone(t.Rows)
	}
	return nil
}

func (f *fake) Run(context.Context, []schedule.Session, []schedule.Order) (*schedule.Schedule, error) {
	return nil, errors.New("not needed")
}

var (
	createText = regexp.MustCompile(`(?is)^CREATE TABLE (\w+) \((.*)\)$`)
	valuesText = regexp.MustCompile(`(?is)^(INSERT|REPLACE) INTO (\w+)(?: \(([^)]*)\))? VALUES (.*)$`)
	queryText  = regexp.MustCompile(`(?is)^SELECT (.*?) FROM (\w+)(?: WHERE (.*))?$`)
	copyText   = regexp.MustCompile(`(?is)^INSERT INTO (\w+) (SELECT .*)$`)
	tuple      = regexp.MustCompile(`\(([^)]*)\)`)
)

func (f *fake) Execute(_ context.Context, session int, sql string) (schedule.Step, error) {
	f.executed = append(f.executed, fmt.Sprintf("%d: %s", session+1, sql))
	if f.override != nil {
		if st, ok := f.override(f, sql, f.saved != nil); ok {
			return st, nil
		}
	}
	return f.do(sql), nil
}

func refused(code string) schedule.Step {
	return schedule.Step{Answer: answer.Result{Err: &answer.Error{Code: code, Message: code}}, Reason: answer.ReasonOther, Effect: answer.EffectStatement}
}

func done(affected int) schedule.Step {
	return schedule.Step{Answer: answer.Result{Affected: int64(affected)}, Effect: answer.EffectNone}
}

// do executes a statement.
func (f *fake) do(sql string) schedule.Step {
	switch word := strings.ToUpper(sql); {
	case strings.HasPrefix(word, "BEGIN") || strings.HasPrefix(word, "START TRANSACTION"):
		f.saved = clone(f.tables)
		return done(0)
	case word == "COMMIT":
		f.saved = nil
		return done(0)
	case word == "ROLLBACK":
		f.tables, f.saved = f.saved, nil
		return done(0)
	case strings.HasPrefix(word, "SET "), strings.HasPrefix(word, "CREATE INDEX"), strings.HasPrefix(word, "SAVEPOINT"), strings.HasPrefix(word, "ROLLBACK TO"):
		return done(0)
	}
	if m := createText.FindStringSubmatch(sql); m != nil {
		t := &table{auto: -1, next: 1}
		for i, c := range strings.Split(m[2], ",") {
			t.columns = append(t.columns, strings.Fields(c)[0])
			if strings.Contains(c, "PRIMARY KEY") || strings.Contains(c, "UNIQUE") {
				t.unique = append(t.unique, i)
			}
			if strings.Contains(c, "AUTO_INCREMENT") {
				t.auto = i
			}
		}
		f.tables[m[1]] = t
		return done(0)
	}
	if m := valuesText.FindStringSubmatch(sql); m != nil {
		return f.insert(f.tables[m[2]], m[3], tuple.FindAllStringSubmatch(m[4], -1), strings.EqualFold(m[1], "REPLACE"))
	}
	if m := copyText.FindStringSubmatch(sql); m != nil {
		rows := f.query(m[2])
		f.tables[m[1]].rows = append(slices.Clip(f.tables[m[1]].rows), rows...)
		return done(len(rows))
	}
	if m := updateText.FindStringSubmatch(sql); m != nil {
		return f.update(f.tables[m[1]], m[2], m[3])
	}
	if m := deleteText.FindStringSubmatch(sql); m != nil {
		t := f.tables[m[1]]
		n := len(t.rows)
		t.rows = slices.DeleteFunc(slices.Clone(t.rows), func(r []answer.Value) bool { return f.holds(m[2], t, r) })
		return done(n - len(t.rows))
	}
	if queryText.MatchString(sql) {
		rows := f.query(sql)
		st := done(0)
		st.Answer.Rows, st.Answer.Columns = rows, []answer.Column{{Name: "?"}}
		return st
	}
	panic("the fake does not know " + sql)
}

func (f *fake) query(sql string) (out [][]answer.Value) {
	m := queryText.FindStringSubmatch(sql)
	t := f.tables[m[2]]
	for _, r := range t.rows {
		if !f.holds(m[3], t, r) {
			continue
		}
		if m[1] == "*" {
			out = append(out, r)
			continue
		}
		var row []answer.Value
		for _, e := range strings.Split(m[1], ",") {
			row = append(row, f.value(e, t, r))
		}
		out = append(out, row)
	}
	return out
}

func (f *fake) insert(t *table, columns string, tuples [][]string, replace bool) schedule.Step {
	rows := slices.Clone(t.rows)
	for _, tup := range tuples {
		row := make([]answer.Value, len(t.columns))
		for i, v := range strings.Split(tup[1], ",") {
			at := i
			if columns != "" {
				at = slices.Index(t.columns, strings.TrimSpace(strings.Split(columns, ",")[i]))
			}
			row[at] = f.value(v, t, row)
		}
		if t.auto >= 0 && row[t.auto] == nil {
			row[t.auto] = []byte(strconv.Itoa(t.next))
			t.next++
		}
		clash := func(r []answer.Value) bool {
			return slices.ContainsFunc(t.unique, func(u int) bool { return row[u] != nil && r[u] != nil && string(r[u]) == string(row[u]) })
		}
		if replace {
			rows = slices.DeleteFunc(rows, clash)
		} else if slices.ContainsFunc(rows, clash) {
			return refused("1062")
		}
		rows = append(rows, row)
	}
	t.rows = rows
	return done(len(tuples))
}

// update counts the rows that match, as PostgreSQL does; what is compared to the MySQL family's count is not wrong by that.
func (f *fake) update(t *table, set, where string) schedule.Step {
	n := 0
	rows := slices.Clone(t.rows)
	for i, r := range t.rows {
		if !f.holds(where, t, r) {
			continue
		}
		n++
		rows[i] = slices.Clone(r)
		for _, a := range strings.Split(set, ",") {
			name, e, _ := strings.Cut(a, "=")
			rows[i][slices.Index(t.columns, strings.TrimSpace(name))] = f.value(e, t, r)
		}
	}
	t.rows = rows
	return done(n)
}

func (f *fake) holds(condition string, t *table, r []answer.Value) bool {
	if condition == "" {
		return true
	}
	for _, part := range strings.Split(condition, " OR ") {
		all := true
		for _, term := range strings.Split(part, " AND ") {
			all = all && f.term(term, t, r)
		}
		if all {
			return true
		}
	}
	return false
}

var comparison = regexp.MustCompile(`^(.*?)(<>|=|<|>)(.*)$`)

func (f *fake) term(text string, t *table, r []answer.Value) bool {
	m := comparison.FindStringSubmatch(text)
	if m == nil { // a value that is not 0
		v := f.value(text, t, r)
		return v != nil && string(v) != "0"
	}
	a, b := f.value(m[1], t, r), f.value(m[3], t, r)
	if a == nil || b == nil {
		return false
	}
	x, _ := strconv.Atoi(string(a))
	y, _ := strconv.Atoi(string(b))
	return map[string]bool{"=": x == y, "<": x < y, ">": x > y, "<>": x != y}[m[2]]
}

var maximum = regexp.MustCompile(`^\(SELECT MAX\((\w+)\) FROM (\w+)\)$`)

// value evaluates a number, NULL, a column, a column with something added, or (SELECT MAX(x) FROM u).
func (f *fake) value(text string, t *table, r []answer.Value) answer.Value {
	text = strings.TrimSpace(text)
	if m := maximum.FindStringSubmatch(text); m != nil {
		from := f.tables[m[2]]
		var best answer.Value
		for _, row := range from.rows {
			if v := row[slices.Index(from.columns, m[1])]; best == nil || string(v) > string(best) {
				best = v
			}
		}
		return best
	}
	if left, right, ok := strings.Cut(text, " + "); ok {
		a, b := f.value(left, t, r), f.value(right, t, r)
		if a == nil || b == nil {
			return nil
		}
		x, _ := strconv.Atoi(string(a))
		y, _ := strconv.Atoi(string(b))
		return []byte(strconv.Itoa(x + y))
	}
	if i := slices.Index(t.columns, text); i >= 0 {
		return r[i]
	}
	if text == "NULL" {
		return nil
	}
	if _, err := strconv.Atoi(text); err != nil {
		panic("the fake cannot evaluate " + text)
	}
	return []byte(text)
}

// play makes a schedule of lines:
//
//	T1: SQL     it is sent and done
//	T1> SQL     it is sent and waits
//	T1<         it is done
//
// with " !code reason" behind SQL or < where it is refused. ("rolled back" in the reason: so is its transaction.)
func play(product, level, setup, script, final string) *schedule.Schedule {
	s := &schedule.Schedule{Product: product, Version: "0", Level: level}
	for _, line := range lines(setup) {
		s.Setup = append(s.Setup, line)
	}
	states := map[int]answer.State{}
	waiting := map[int]schedule.Step{}
	tick := 0
	for _, line := range lines(script) {
		number, rest := int(line[1]-'1'), strings.TrimSpace(line[3:])
		for len(s.Sessions) <= number {
			s.Sessions = append(s.Sessions, schedule.Session{Name: fmt.Sprintf("T%d", len(s.Sessions)+1)})
		}
		sql, refusal, failed := strings.Cut(rest, "!")
		st, resumed := waiting[number]
		if line[2] != '<' {
			tick++
			st = schedule.Step{Session: number, Name: fmt.Sprintf("s%d", tick), Statement: describeOne(strings.TrimSpace(sql)), Sent: tick}
		} else if !resumed {
			panic("nothing waits: " + line)
		}
		if line[2] == '>' {
			st.Waited = true
			waiting[number] = st
			continue
		}
		delete(waiting, number)
		tick++
		st.Done, st.Before, st.Effect = tick, states[number], answer.EffectNone
		switch st.Statement.Control.Verb {
		case statement.ControlBegin:
			states[number] = answer.Open
		case statement.ControlCommit, statement.ControlRollback:
			states[number] = answer.Idle
		}
		if failed {
			code, reason, _ := strings.Cut(strings.TrimSpace(refusal), " ")
			st.Answer.Err = &answer.Error{Code: code, Message: code}
			st.Effect, st.Reason = answer.EffectStatement, answer.Reason(strings.TrimSuffix(reason, ", rolled back"))
			if strings.HasSuffix(reason, "rolled back") {
				st.Effect, states[number] = answer.EffectRolledBack, answer.Idle
			}
		}
		st.After = states[number]
		s.Steps = append(s.Steps, st)
	}
	f := &fake{}
	if err := f.Prepare(context.Background(), s.Setup, 1); err != nil {
		panic(err)
	}
	s.Final, _ = f.Tables(context.Background())
	for i, part := range strings.Split(final, ";") {
		s.Final[i].Rows = nil
		for _, line := range strings.Split(part, ",") {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			var row []answer.Value
			for _, v := range strings.Split(line, "|") {
				if v == "NULL" {
					row = append(row, nil)
				} else {
					row = append(row, []byte(v))
				}
			}
			s.Final[i].Rows = append(s.Final[i].Rows, row)
		}
		slices.SortFunc(s.Final[i].Rows, answer.CompareRows)
	}
	return s
}

func lines(text string) (out []string) {
	for _, line := range strings.Split(text, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}
