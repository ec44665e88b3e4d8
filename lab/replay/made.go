package replay

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// made tells which values of the answers of a group's units the server made: another execution of the same order brings others, and no
// application decides by them.
type made struct {
	state    *State
	stood    func(table, column, value string) bool // see State.Stood
	began    time.Time                              // of the replay
	inputs   map[string]bool                        // values that the units' own statements name
	unstable map[cellPlace]bool
	alike    []*Lane // lanes of units that do the same
}

// cellPlace is a value's place in the answers of a unit.
type cellPlace struct{ step, result, row, column int }

// Lanes recognises the data flow of a group's units. began is when the replay began that brought their answers. first and again are what two
// executions of the group in its own order brought, by unit and step.
func (g *Group) Lanes(began time.Time, first, again [][]*answer.Answer, d lex.Dialect) (lanes []*Lane) {
	inputs, shapes := map[string]bool{}, map[string][]*Lane{}
	for _, u := range g.Units {
		for _, s := range u.Steps {
			for _, l := range flow.Literals(s.SQL, d) {
				inputs[l.Value] = true
			}
		}
	}
	var stood func(table, column, value string) bool
	if g.State != nil {
		stood = g.State.Stood()
	}
	for i, u := range g.Units {
		l := NewLane(u, d)
		l.made = &made{state: g.State, stood: stood, began: began, inputs: inputs, unstable: unstable(first[i], again[i])}
		lanes = append(lanes, l)
		shape := u.shape(d)
		shapes[shape] = append(shapes[shape], l)
	}
	for _, same := range shapes {
		for _, l := range same {
			l.made.alike = same
		}
	}
	return lanes
}

// Counted gives the columns that the group's own INSERTs fill from counters, as State.Filled: with nextval() in their values, or with what a statement before
// them has got from a counter.
func (g *Group) Counted(d lex.Dialect) map[string]bool {
	columns := map[string]bool{}
	add := func(s *Step, column string) {
		if t := s.verbs()[0].Targets(); len(t) == 1 {
			columns[bareName(t[0].Name)+"."+strings.ToLower(column)] = true
		}
	}
	for _, u := range g.Units {
		for _, s := range u.Steps {
			if len(s.verbs()) != 1 || s.verbs()[0].Insert == nil {
				continue
			}
			in := s.verbs()[0].Insert
			for _, row := range in.Rows {
				for i := range min(len(row), len(in.Columns)) {
					if counterCall.MatchString(row[i]) {
						add(s, in.Columns[i])
					}
				}
			}
		}
		for _, f := range u.flows(d) {
			s := u.Steps[f.To]
			if l := flow.Literals(s.SQL, d)[f.Literal]; u.Steps[f.From].asksCounter() && l.Clause == "values" && l.Column != "" && len(s.verbs()) == 1 {
				add(s, l.Column)
			}
		}
	}
	return columns
}

// counterCall is a value that a counter gives: PostgreSQL and MariaDB.
var counterCall = regexp.MustCompile(`(?is)^\s*(nextval\s*\([^()]*\)|next\s+value\s+for\s+[\w."` + "`" + `]+)\s*$`)

// asksCounter reports whether all that a step does is to ask a counter.
func (s *Step) asksCounter() bool {
	return len(s.tables) == 0 && (strings.Contains(s.Volatile, "a sequence") || strings.Contains(strings.ToLower(s.SQL), "last_insert_id"))
}

// Began is when the replay sent its first step.
func (g *Generated) Began() time.Time { return g.began }

// unstable gives the places at which two executions brought other values.
func unstable(a, b []*answer.Answer) map[cellPlace]bool {
	out := map[cellPlace]bool{}
	for step := range a {
		if a[step] == nil || step >= len(b) || b[step] == nil {
			continue
		}
		for i := range a[step].Results {
			if i >= len(b[step].Results) || len(a[step].Results[i].Rows) != len(b[step].Results[i].Rows) {
				break
			}
			for r, row := range a[step].Results[i].Rows {
				for c, v := range row {
					if other := b[step].Results[i].Rows[r]; c < len(other) && !answer.SameValue(v, other[c]) {
						out[cellPlace{step, i, r, c}] = true
					}
				}
			}
		}
	}
	return out
}

// byServer reports whether a value that the application got was made by the server, and what stands in its place tells the application nothing
// else: it is made in the same way, or a unit that does the same has got it and gone on.
func (l *Lane) byServer(p cellPlace, was, is answer.Value) bool {
	m := l.made
	if m == nil || was == nil || is == nil {
		return false
	}
	s := l.Unit.Steps[p.step]
	column := aliased(s.SQL, strings.ToLower(s.Answer.Results[p.result].Columns[p.column].Name))
	switch {
	case m.counted(s, column, string(was)):
		return m.counted(s, column, string(is))
	case m.inputs[string(was)] || m.inputs[string(is)]:
		return false
	case m.unstable[p] && strings.Contains(s.Volatile, "random values"), isUUID(string(was)) && isUUID(string(is)) && m.unstable[p]:
		return true
	case m.clock(string(was)):
		return m.clock(string(is)) || slices.ContainsFunc(m.alike, func(other *Lane) bool { return other != l && other.got(p, is) })
	}
	return returnsDefault(s, column) && numbers.ReplaceAllString(string(was), "#") == numbers.ReplaceAllString(string(is), "#")
}

// got reports whether the unit's application got a value at a place.
func (l *Lane) got(p cellPlace, v answer.Value) bool {
	a := &l.Unit.Steps[p.step].Answer
	return p.result < len(a.Results) && p.row < len(a.Results[p.result].Rows) && p.column < len(a.Results[p.result].Rows[p.row]) &&
		answer.SameValue(a.Results[p.result].Rows[p.row][p.column], v)
}

// clock reports whether a value may be a reading of the server's clock since the replay began, in any time zone.
func (m *made) clock(text string) bool {
	return !m.began.IsZero() && readBetween(text, m.began.Add(-clockTolerance), time.Now().Add(clockTolerance))
}

// readBetween reports whether a value may be a reading of a clock at a time, in any time zone.
func readBetween(text string, from, to time.Time) bool {
	at, zoned, ok := reading(text)
	const day, quarter = 24 * time.Hour, 15 * time.Minute
	switch {
	case !ok:
		return false
	case len(text) == len("2006-01-02"):
		return at.After(from.Add(-2*day)) && at.Before(to.Add(day))
	case zoned:
		return at.After(from) && at.Before(to)
	}
	for zone := -14 * time.Hour; zone <= 14*time.Hour; zone += quarter {
		if at.Add(zone).After(from) && at.Add(zone).Before(to) {
			return true
		}
	}
	return false
}

// counted reports whether a value came out of a counter after the group had begun: the statement asks one, or the value is in a column that a
// counter fills, and in no row of the state.
func (m *made) counted(s *Step, column, value string) bool {
	if !wholeNumber(value) || m.state == nil {
		return false
	}
	if counterFunction[column] || s.asksCounter() {
		return true
	}
	of := ""
	for _, t := range s.tables {
		if m.state.Filled[bareName(t.name)+"."+column] {
			if of != "" && of != bareName(t.name) {
				return false // of which of the two is not known
			}
			of = bareName(t.name)
		}
	}
	return of != "" && !m.stood(of, column, value)
}

// bareName is a table's name without its schema.
func bareName(name string) string { return strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]) }

// Stood gives a function that reports whether a row has a value in a column that a counter fills. Names are in lower case, tables without schema.
func (s *State) Stood() func(table, column, value string) bool {
	values := map[[3]string]bool{}
	for _, t := range s.Tables {
		for i, c := range t.Columns {
			if name := [3]string{bareName(t.Name), strings.ToLower(c.Name)}; s.Filled[name[0]+"."+name[1]] {
				for _, row := range t.Rows {
					name[2] = string(row[i])
					values[name] = true
				}
			}
		}
	}
	return func(table, column, value string) bool { return values[[3]string{table, column, value}] }
}

// returnsDefault reports whether a statement is an INSERT that gives back a column for which it names no value.
func returnsDefault(s *Step, column string) bool {
	if len(s.verbs()) != 1 || s.verbs()[0].Verb != "insert" {
		return false
	}
	into, _, ok := strings.Cut(strings.ToLower(s.SQL), "values")
	_, list, named := strings.Cut(into, "(")
	return ok && named && !slices.ContainsFunc(strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(" ,()\"`\n\t", r) }), func(name string) bool { return name == column })
}
