package troc_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
	"wirecheck/statement/mysql"
	"wirecheck/statement/postgres"
)

// toy is a stage without a server. It knows tables with the columns a and b, of which a is the key, and a few forms of statements: it
// executes one statement after the other, and nothing at once, so that what a history may show is decided by the oracle.
type toy struct {
	product  string
	rows     map[string][]toyRow
	setup    []string
	begun    map[string][]toyRow // the tables when the open transaction began; nil: none is open
	readOnly bool                // the open transaction is
	refuse   error               // what Prepare says
	broken   string              // a part of statements that end in an internal error
	leaks    bool                // an UPDATE takes the last column's value, wc_row_id, where there is one
}

type toyRow struct{ a, b, id string }

var (
	toyInsert  = regexp.MustCompile(`^INSERT INTO (\w+)(?: \(a, b\))? VALUES (.*)$`)
	toyTuple   = regexp.MustCompile(`\(([\w-]+), ([\w-]+)\)`)
	toyUpdate  = regexp.MustCompile(`^UPDATE (\w+) SET ([ab]) = (b \+ )?([\w-]+)(?: WHERE (.*))?$`)
	toyDelete  = regexp.MustCompile(`^DELETE FROM (\w+)(?: WHERE (.*))?$`)
	toySelect  = regexp.MustCompile(`^SELECT (\*|b|1|\w+\.wc_row_id) FROM (\w+)(?: WHERE (.*?))?(?: ORDER BY a(?: DESC)?)?(?: FOR UPDATE| FOR SHARE| FOR KEY SHARE| LOCK IN SHARE MODE)?$`)
	toyLess    = regexp.MustCompile(`^(UPDATE \w+ SET b = [\w-]+ WHERE) b < \(SELECT MAX\(b\) FROM (\w+)\)$`)
	toyJoin    = regexp.MustCompile(`^SELECT (t\.b, u\.b|[tu]\.wc_row_id) FROM t JOIN u ON u\.a = t\.a WHERE t\.a = (\w+)(?: FOR UPDATE OF t)?$`)
	toyTerm    = regexp.MustCompile(`^([ab]) (=|<|>) ([\w-]+)$`)
	toyCreated = regexp.MustCompile(`^CREATE TABLE (\w+)`)
)

func (s *toy) describe(sql string) statement.Statement {
	describe := postgres.Describe
	if s.product != "postgres" {
		describe = mysql.New(mysql.Flavor(s.product)).Describe
	}
	list, err := describe(sql)
	if err != nil || len(list) != 1 {
		panic(fmt.Sprintf("%s: %v, %d statements", sql, err, len(list)))
	}
	return list[0]
}

func (s *toy) Prepare(_ context.Context, setup []string, _ int) error {
	if s.refuse != nil && len(setup) > 0 && strings.HasPrefix(setup[len(setup)-1], "ALTER") {
		return s.refuse
	}
	s.setup = setup
	return s.Reset(nil)
}

func (s *toy) Reset(context.Context) error {
	s.rows, s.begun, s.readOnly = map[string][]toyRow{}, nil, false
	for _, sql := range s.setup {
		if m := toyCreated.FindStringSubmatch(sql); m != nil {
			s.rows[m[1]] = nil
		} else if a := s.one(sql); !strings.HasPrefix(sql, "ALTER") && a.Err != nil {
			return fmt.Errorf("%s: %s", sql, a.Err.Message)
		}
	}
	return nil
}

func (s *toy) Execute(_ context.Context, _ int, sql string) (schedule.Step, error) {
	st := schedule.Step{Statement: s.describe(sql), Answer: s.one(sql), Effect: answer.EffectNone}
	if st.Answer.Err != nil {
		st.Effect, st.Reason = answer.EffectStatement, answer.ReasonOther
	}
	if s.broken != "" && strings.Contains(sql, s.broken) {
		st.Answer = answer.Result{Err: &answer.Error{Code: "1105", Message: "index out of range"}}
		st.Effect, st.Reason = answer.EffectStatement, answer.ReasonInternal
	}
	return st, nil
}

func (s *toy) Tables(context.Context) (list []answer.Table, err error) {
	for name, rows := range s.rows {
		t := answer.Table{Name: name}
		width := 2
		if s.ids() {
			width = 3
		}
		for _, c := range []string{"a", "b", "wc_row_id"}[:width] {
			t.Columns = append(t.Columns, answer.Column{Name: c, Type: "int"})
		}
		for _, r := range rows {
			t.Rows = append(t.Rows, []answer.Value{answer.Value(r.a), answer.Value(r.b), answer.Value(r.id)}[:width])
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b answer.Table) int { return strings.Compare(a.Name, b.Name) })
	return list, nil
}

// ids reports whether the tables have troc's row ids.
func (s *toy) ids() bool {
	return slices.ContainsFunc(s.setup, func(sql string) bool { return strings.HasPrefix(sql, "ALTER") })
}

func (s *toy) Load(_ context.Context, tables []answer.Table) error {
	for _, t := range tables {
		keys := map[string]bool{}
		s.rows[t.Name] = nil
		for _, r := range t.Rows {
			if keys[string(r[0])] {
				return fmt.Errorf("two rows with the key %s", r[0])
			}
			keys[string(r[0])] = true
			id := "0"
			if len(r) == 3 {
				id = string(r[2])
			}
			s.rows[t.Name] = append(s.rows[t.Name], toyRow{string(r[0]), string(r[1]), id})
		}
	}
	return nil
}

// Run executes steps one after the other, as the serial oracle wants them.
func (s *toy) Run(ctx context.Context, sessions []schedule.Session, orders []schedule.Order) (*schedule.Schedule, error) {
	if err := s.Reset(ctx); err != nil {
		return nil, err
	}
	out := &schedule.Schedule{Product: s.product, Version: "toy", Sessions: sessions}
	for i, o := range orders {
		st, err := s.Execute(ctx, o.Session, o.SQL)
		if err != nil {
			return nil, err
		}
		st.Session, st.Name, st.Sent, st.Done = o.Session, o.Name, 2*i+1, 2*i+2
		out.Steps = append(out.Steps, st)
	}
	var err error
	out.Final, err = s.Tables(ctx)
	return out, err
}

// control executes what begins and ends a transaction. Savepoints do nothing: the histories read behind them, and write nothing.
func (s *toy) control(sql string) bool {
	switch word, _, _ := strings.Cut(sql, " "); {
	case word == "BEGIN", word == "START":
		s.begun, s.readOnly = maps.Clone(s.rows), strings.HasSuffix(sql, "READ ONLY")
		for name, rows := range s.begun {
			s.begun[name] = slices.Clone(rows)
		}
	case word == "COMMIT":
		s.begun, s.readOnly = nil, false
	case sql == "ROLLBACK":
		s.rows, s.begun, s.readOnly = s.begun, nil, false
	default:
		return word == "SAVEPOINT" || word == "ROLLBACK"
	}
	return true
}

// holds evaluates conditions like "a = 1 OR b > 2".
func holds(r toyRow, where string) bool {
	if where == "" {
		return true
	}
	for _, term := range strings.Split(where, " OR ") {
		m := toyTerm.FindStringSubmatch(term)
		if m == nil {
			panic("condition " + where)
		}
		have, _ := strconv.Atoi(map[string]string{"a": r.a, "b": r.b}[m[1]])
		want, _ := strconv.Atoi(m[3])
		if m[2] == "=" && have == want || m[2] == "<" && have < want || m[2] == ">" && have > want {
			return true
		}
	}
	return false
}

// one executes a statement.
func (s *toy) one(sql string) (a answer.Result) {
	sql = strings.NewReplacer("`", "", `"`, "").Replace(sql)
	if m := toyLess.FindStringSubmatch(sql); m != nil {
		most := 0
		for _, r := range s.rows[m[2]] {
			b, _ := strconv.Atoi(r.b)
			most = max(most, b)
		}
		sql = fmt.Sprintf("%s b < %d", m[1], most)
	}
	if sql, ok := strings.CutSuffix(sql, ")"); ok && strings.Contains(sql, "(SELECT MAX(b) FROM ") { // SELECT t.wc_row_id FROM t WHERE b < (...)
		front, table, _ := strings.Cut(sql, "(SELECT MAX(b) FROM ")
		most := 0
		for _, r := range s.rows[table] {
			b, _ := strconv.Atoi(r.b)
			most = max(most, b)
		}
		return s.one(fmt.Sprintf("%s%d", front, most))
	}
	if s.control(sql) {
		return a
	}
	if s.readOnly && !strings.HasPrefix(sql, "SELECT") {
		code := "1792"
		if s.product == "postgres" {
			code = "25006"
		}
		return answer.Result{Err: &answer.Error{Code: code, Message: "the transaction is READ ONLY"}}
	}
	switch {
	case toyJoin.MatchString(sql):
		m := toyJoin.FindStringSubmatch(sql)
		a.Columns = []answer.Column{{Name: "b", Type: "int"}, {Name: "b", Type: "int"}}
		for _, r := range s.rows["t"] {
			for _, other := range s.rows["u"] {
				switch {
				case r.a != m[2] || other.a != m[2]:
				case m[1] == "t.wc_row_id":
					a.Rows = append(a.Rows, []answer.Value{answer.Value(r.id)})
				case m[1] == "u.wc_row_id":
					a.Rows = append(a.Rows, []answer.Value{answer.Value(other.id)})
				default:
					a.Rows = append(a.Rows, []answer.Value{answer.Value(r.b), answer.Value(other.b)})
				}
			}
		}
	case toyInsert.MatchString(sql):
		m := toyInsert.FindStringSubmatch(sql)
		kept := slices.Clone(s.rows[m[1]])
		for _, v := range toyTuple.FindAllStringSubmatch(m[2], -1) {
			s.rows[m[1]] = append(s.rows[m[1]], toyRow{v[1], v[2], "0"})
			a.Affected++
		}
		return s.unique(m[1], kept, a)
	case toyUpdate.MatchString(sql):
		m := toyUpdate.FindStringSubmatch(sql)
		kept := slices.Clone(s.rows[m[1]])
		for i := range s.rows[m[1]] {
			r := &s.rows[m[1]][i]
			if !holds(*r, m[5]) {
				continue
			}
			old := *r
			value := m[4]
			if m[3] != "" {
				x, _ := strconv.Atoi(r.b)
				y, _ := strconv.Atoi(value)
				value = strconv.Itoa(x + y)
			}
			if s.leaks && s.ids() {
				value = r.id
			}
			if m[2] == "a" {
				r.a = value
			} else {
				r.b = value
			}
			if s.product == "postgres" || old != *r { // the MySQL family counts rows that change
				a.Affected++
			}
		}
		return s.unique(m[1], kept, a)
	case toyDelete.MatchString(sql):
		m := toyDelete.FindStringSubmatch(sql)
		n := len(s.rows[m[1]])
		s.rows[m[1]] = slices.DeleteFunc(slices.Clone(s.rows[m[1]]), func(r toyRow) bool { return holds(r, m[2]) })
		a.Affected = int64(n - len(s.rows[m[1]]))
	case toySelect.MatchString(sql):
		m := toySelect.FindStringSubmatch(sql)
		a.Columns = []answer.Column{{Name: "b", Type: "int"}}
		for _, r := range s.rows[m[2]] {
			if !holds(r, m[3]) {
				continue
			}
			switch {
			case m[1] == "b":
				a.Rows = append(a.Rows, []answer.Value{answer.Value(r.b)})
			case m[1] == "1":
				a.Rows = append(a.Rows, []answer.Value{answer.Value("1")})
			case m[1] == "*" && s.product != "mysql" && s.product != "mariadb" && s.ids():
				a.Columns = []answer.Column{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}, {Name: "wc_row_id", Type: "int"}}
				a.Rows = append(a.Rows, []answer.Value{answer.Value(r.a), answer.Value(r.b), answer.Value(r.id)})
			case m[1] == "*":
				a.Columns = []answer.Column{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}}
				a.Rows = append(a.Rows, []answer.Value{answer.Value(r.a), answer.Value(r.b)})
			default:
				a.Columns = []answer.Column{{Name: "wc_row_id", Type: "int"}}
				a.Rows = append(a.Rows, []answer.Value{answer.Value(r.id)})
			}
		}
	case strings.HasPrefix(sql, "ALTER"), strings.HasPrefix(sql, "SET"):
	default:
		panic("the toy does not know: " + sql)
	}
	return a
}

func (s *toy) unique(table string, kept []toyRow, a answer.Result) answer.Result {
	keys := map[string]bool{}
	for _, r := range s.rows[table] {
		if keys[r.a] {
			s.rows[table] = kept
			code := "1062"
			if s.product == "postgres" {
				code = "23505"
			}
			return answer.Result{Err: &answer.Error{Code: code, Message: "duplicate key " + r.a}}
		}
		keys[r.a] = true
	}
	return a
}

// played makes a schedule of a text. A line is a statement, "session: SQL -> answer". The answer is the number of affected rows, rows as
// 1|0 2|0 ("none" if there are none), or ! with a code and a reason. "session@3: ..." waited: it was sent behind line 3. The last line
// may be "final: rows of t", "final u: rows of u". What stands behind ~ is for the isolation oracle (see observed).
func played(t *testing.T, product, level, setup, text string) *schedule.Schedule {
	t.Helper()
	s := &schedule.Schedule{Product: product, Version: "toy", Level: level}
	for _, sql := range strings.Split(setup, ";") {
		s.Setup = append(s.Setup, strings.TrimSpace(sql))
	}
	stage := &toy{product: product}
	open := map[string]answer.State{}
	index := map[string]int{}
	session := func(name string) int {
		if _, ok := index[name]; !ok {
			index[name] = len(s.Sessions)
			s.Sessions = append(s.Sessions, schedule.Session{Name: name})
		}
		return index[name]
	}
	rowsOf := func(text string) (rows [][]answer.Value) {
		for _, r := range strings.Fields(text) {
			if r == "none" {
				continue
			}
			var row []answer.Value
			for _, v := range strings.Split(r, "|") {
				row = append(row, answer.Value(v))
			}
			rows = append(rows, row)
		}
		return rows
	}
	n := 0
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		who, what, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("line %q", line)
		}
		if table, ok := strings.CutPrefix(who, "final"); ok {
			name := strings.TrimSpace(table)
			if name == "" {
				name = "t"
			}
			s.Final = append(s.Final, answer.Table{Name: name, Columns: []answer.Column{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}}, Rows: rowsOf(what)})
			continue
		}
		n++
		what, _, _ = strings.Cut(what, " ~ ")
		sql, told, _ := strings.Cut(what, " -> ")
		st := schedule.Step{Name: fmt.Sprintf("s%d", n), Statement: stage.describe(sql), Sent: 10*n - 5, Done: 10 * n, Effect: answer.EffectNone}
		name, at, waited := strings.Cut(who, "@")
		if waited {
			after, err := strconv.Atoi(at)
			if err != nil {
				t.Fatal(err)
			}
			st.Waited, st.Sent = true, 10*after+1
		}
		st.Session = session(name)
		st.Before = open[name]
		switch st.Statement.Control.Verb {
		case statement.ControlBegin:
			open[name] = answer.Open
		case statement.ControlCommit, statement.ControlRollback:
			open[name] = answer.Idle
		}
		switch {
		case strings.HasPrefix(told, "!"):
			code, reason, _ := strings.Cut(told[1:], " ")
			st.Answer.Err = &answer.Error{Code: code, Message: reason}
			st.Reason, st.Effect = answer.Reason(reason), answer.EffectStatement
			switch {
			case product == "postgres" && st.Statement.Control.Verb == statement.ControlCommit, product != "postgres" && st.Reason != answer.ReasonOther && st.Reason != answer.ReasonLockTimeout:
				st.Effect, open[name] = answer.EffectRolledBack, answer.Idle
			case product == "postgres" && st.Before.InTransaction():
				st.Effect, open[name] = answer.EffectFailed, answer.Failed
			}
		case st.Statement.Verb == "select":
			st.Answer.Rows = rowsOf(told)
			st.Answer.Columns = []answer.Column{{Name: "a", Type: "int"}, {Name: "b", Type: "int"}}
		case told != "":
			affected, err := strconv.ParseInt(told, 10, 64)
			if err != nil {
				t.Fatalf("line %q: %v", line, err)
			}
			st.Answer.Affected = affected
		}
		st.After = open[name]
		s.Steps = append(s.Steps, st)
	}
	return s
}
