package serial

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// Masks are what says nothing of the order of transactions and is not compared: columns that counters fill (counters are not transactional),
// what differs between two executions of the same order (clocks, random numbers), and answers that may differ for another reason.
type Masks struct {
	counters map[string]bool       // "table.column"
	keys     map[string][][]string // see Options
	was      func(table, column, value string) bool
	sources  map[string]source       // places of answers that come from one table
	columns  map[string]bool         // names of such columns, as results have them
	unstable map[string]bool         // places
	skipped  map[string]bool         // places of answers that are not compared
	doubtful map[string]bool         // places of answers that may differ for another reason than the order of transactions
	cuts     map[string]int          // places of answers that may if they have so many rows: LIMIT cut them off
	blind    map[string]bool         // tables of which the same holds
	times    bool                    // dates and times may be a clock's: they are not compared
	recent   func(day string) bool   // whether a clock may show a day now; nil: not known
	known    map[string]bool         // values that statements name
	cells    map[string]map[int]bool // places of answers: columns with values that the server makes
	notes    []string
}

// NewMasks makes masks of the columns that counters fill.
func NewMasks(o Options) *Masks {
	m := &Masks{counters: o.Counters, keys: o.Keys, was: o.Was, sources: map[string]source{}, recent: o.Recent, known: map[string]bool{}, cells: map[string]map[int]bool{}, columns: map[string]bool{}, unstable: map[string]bool{}, skipped: map[string]bool{}, doubtful: map[string]bool{}, cuts: map[string]int{}, blind: map[string]bool{}}
	for name := range o.Counters {
		_, column, _ := strings.Cut(name, ".")
		m.columns[column] = true
	}
	return m
}

// Skip masks the answer of a step.
func (m *Masks) Skip(session int, step string) { m.skipped[place(session, step)] = true }

// Doubts reports whether Blind has masked anything.
func (m *Masks) Doubts() bool { return len(m.doubtful)+len(m.cuts)+len(m.blind) > 0 }

func place(session int, step string) string { return "step " + strconv.Itoa(session) + " " + step }

var (
	lists = regexp.MustCompile(`(?i)\b(group_concat|string_agg|array_agg|json_agg|jsonb_agg|json_arrayagg|json_objectagg|jsonb_object_agg|json_object_agg|xmlagg)\s*\(`)
	// Who does not wait for locks wants to know what is locked now.
	contention = regexp.MustCompile(`(?i)\bskip\s+locked\b|\bnowait\b|\bpg_try_advisory\w*\s*\(|\b(is_free_lock|is_used_lock|get_lock)\s*\(`)
	// What a definition says that fills a column from the clock: a default, ON UPDATE, a trigger.
	clocks = regexp.MustCompile(`(?i)\b(current_(timestamp|date|time)|local(time|timestamp)|(clock|statement|transaction)_timestamp|now|curdate|curtime|sysdate|utc_(timestamp|date|time))\b`)
)

// Blind masks the answers of statements that may bring something else for another reason than the order of transactions (LIMIT without ORDER
// BY, session variables, lists in no order, rows that others have locked), and the tables that such statements write. Where a clock is asked, it
// masks dates and times: Learn finds the columns into which a clock's values come only if the clock has moved on, and many show seconds or days.
func (m *Masks) Blind(s *schedule.Schedule) {
	m.know(s)
	m.times = slices.ContainsFunc(s.Setup, clocks.MatchString)
	for i := range s.Steps {
		st := &s.Steps[i]
		x := &st.Statement
		m.times = m.times || strings.Contains(x.Volatile, "the clock")
		p := place(st.Session, st.Name)
		if len(x.Tables) == 1 && x.Tables[0].Kind == statement.SourceTable {
			m.sources[p] = source{strings.ToLower(x.Tables[0].Name), x.Columns}
		}
		if rows, ok := x.Cut(); ok && m.cuts[p] == 0 && !lists.MatchString(x.Text) && !contention.MatchString(x.Text) {
			if !schedule.Single(m.keys, x, s.Final) && !(x.Aggregate && x.Clauses.GroupBy == "") {
				m.cuts[p] = rows
			}
			continue
		}
		counter, other := causes(x.Volatile)
		if other && uniquely(x.Text) {
			_, other = causes(strings.Join(slices.DeleteFunc(strings.Split(x.Volatile, "; "), func(reason string) bool { return strings.HasSuffix(reason, "random values") }), "; "))
		}
		other = other || lists.MatchString(x.Text) || contention.MatchString(x.Text) || x.Variables && !counter
		if !counter && !other {
			continue
		}
		if x.Verb == "begin" || x.Verb == "set" || x.Verb == "show" {
			continue
		}
		m.doubtful[p] = true
		if !other {
			continue
		}
		for _, t := range x.Targets() {
			if name := strings.ToLower(t.Name); !m.blind[name] {
				m.blind[name] = true
				m.notes = append(m.notes, fmt.Sprintf("table %s is not compared: %s", t.Name, x.Volatile))
			}
		}
	}
}

// causes takes the reasons apart why a statement is volatile, clocks left aside.
func causes(volatile string) (counter, other bool) {
	for reason := range strings.SplitSeq(volatile, "; ") {
		switch {
		case reason == "", strings.HasSuffix(reason, "the clock"):
		case strings.HasSuffix(reason, "a sequence"), strings.Contains(reason, "last_insert_id"):
			counter = true
		default:
			other = true
		}
	}
	return counter, other
}

// Learn masks what differs between two executions of the same order.
func (m *Masks) Learn(a, b *schedule.Schedule) {
	x, y := columnValues(a), columnValues(b)
	for place, text := range x {
		if y[place] != text {
			m.unstable["column "+place] = true
		}
	}
	m.learnAnswers(a, b)
	was, is := m.outcome(a), m.outcome(b)
	for place, text := range was {
		if is[place] != text {
			m.unstable[place] = true
		}
	}
	for place := range is {
		if _, ok := was[place]; !ok {
			m.unstable[place] = true
		}
	}
}

// columnValues gives the values of each column of each table, in no order.
func columnValues(s *schedule.Schedule) map[string]string {
	out := map[string]string{}
	for _, t := range s.Final {
		for i, c := range t.Columns {
			var values []string
			for _, row := range t.Rows {
				values = append(values, answer.Text(row[i]))
			}
			slices.Sort(values)
			out[bare(t.Name)+"."+strings.ToLower(c.Name)] = strings.Join(values, "\n")
		}
	}
	return out
}

// bare is a table's name without its schema, as statements have it.
func bare(name string) string {
	if _, after, ok := strings.Cut(name, "."); ok {
		name = after
	}
	return strings.ToLower(name)
}

// outcome is what an execution brought, by place: the answer of each step, and each table.
func (m *Masks) outcome(s *schedule.Schedule) map[string]string {
	out := map[string]string{}
	for i := range s.Steps {
		st := &s.Steps[i]
		p := place(st.Session, st.Name)
		if _, ok := out[p]; ok {
			out[p] += "; "
		}
		out[p] += m.answer(p, st.Statement.Text, &st.Answer)
	}
	for _, t := range s.Final {
		// Rows whose counters are masked must not be compared in the order that these gave them.
		var rows []string
		for _, row := range t.Rows {
			var parts []string
			for i, v := range row {
				if text, compared := m.compared(t.Name, "", i, t.Columns[i], v); compared {
					parts = append(parts, strings.ToLower(t.Columns[i].Name)+"="+text)
				}
			}
			rows = append(rows, strings.Join(parts, ", "))
		}
		slices.Sort(rows)
		out["table "+t.Name] = strings.Join(rows, "\n")
	}
	return out
}

// refers reports whether a column looks like a reference to a counter's value: order_id.
func (m *Masks) refers(column string) bool {
	return len(m.counters) > 0 && strings.HasSuffix(column, "_id") && !m.columns[column]
}

// clocked reports whether a column's values may be a clock's: it is of type date, datetime, time, timestamp, timestamptz or the like.
func (m *Masks) clocked(c answer.Column) bool {
	name := strings.ToLower(c.Type)
	return m.times && (strings.HasPrefix(name, "date") || strings.HasPrefix(name, "time"))
}

func (m *Masks) answer(place, sql string, a *answer.Result) string {
	if a.Err != nil {
		return "error " + a.Err.Code
	}
	if a.Columns == nil {
		return prose.Count(a.Affected, "row") + " changed"
	}
	var rows []string
	for _, row := range a.Rows {
		var values []string
		for i, v := range row {
			if text, compared := m.compared("", place, i, a.Columns[i], v); compared {
				values = append(values, text)
			}
		}
		rows = append(rows, "("+strings.Join(values, ", ")+")")
	}
	if !strings.Contains(strings.ToLower(sql), "order by") {
		slices.Sort(rows)
	}
	if len(rows) == 0 {
		return "no rows"
	}
	return strings.Join(rows, " ")
}

// difference finds the first one between what the execution of these sessions was and what it would have been, and counts the places in which
// they differ. strict: in what Blind has masked, too.
func (m *Masks) difference(s, would *schedule.Schedule, sessions []int, strict bool) (first Difference, differs bool) {
	was, other := m.outcome(s), m.outcome(would)
	choice := strict || m.sameChoice(s, would)
	places := 0
	add := func(make func() Difference) {
		if places++; places == 1 {
			first = make()
		}
	}
	seen := map[string]bool{}
	for _, session := range sessions {
		for i := range s.Steps {
			st := &s.Steps[i]
			p := place(session, st.Name)
			if st.Session != session || seen[p] || m.skipped[p] || m.unstable[p] || m.doubtful[p] && !strict {
				continue
			}
			seen[p] = true
			if was[p] == other[p] || !choice && m.cutOff(s, p) && m.cutOff(would, p) {
				continue
			}
			add(func() Difference {
				d := Difference{Session: session, Step: st.Name, SQL: st.Statement.Text, Want: shown(other[p]), Got: shown(was[p])}
				d.Text = fmt.Sprintf("%s of %s (%s) would have brought %s, and brought %s", st.Name, s.Sessions[session].Name, prose.Query(st.Statement.Text, prose.Width), d.Want, d.Got)
				if same := stepOf(would, session, st.Name); same != nil && len(st.Answer.Rows) > 1 {
					d.Text += detailed(detail(m.rows("", p, st.Answer.Columns, st.Answer.Rows), m.rows("", p, same.Answer.Columns, same.Answer.Rows)))
				}
				return d
			})
		}
	}
	for i := range s.Final {
		t := &s.Final[i]
		p := "table " + t.Name
		if m.unstable[p] || m.blind[bare(t.Name)] && !strict || was[p] == other[p] {
			continue
		}
		add(func() Difference {
			d := Difference{Table: t.Name, Want: shown(onlyIn(other[p], was[p])), Got: shown(onlyIn(was[p], other[p]))}
			d.Text = fmt.Sprintf("table %s would have ended with %s, and ended with %s", t.Name, d.Want, d.Got)
			if j := slices.IndexFunc(would.Final, func(o answer.Table) bool { return o.Name == t.Name }); j >= 0 {
				if text := detail(m.rows(t.Name, "", t.Columns, t.Rows), m.rows(t.Name, "", would.Final[j].Columns, would.Final[j].Rows)); text != "" {
					d.Text = fmt.Sprintf("table %s at the end%s", t.Name, detailed(text))
				}
			}
			return d
		})
	}
	first.places = places
	return first, places > 0
}

// detailed is a detail behind what it belongs to.
func detailed(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// rows are those of a table, or of the answer at a place, with what is compared of them.
func (m *Masks) rows(table, place string, columns []answer.Column, rows [][]answer.Value) [][]cell {
	return cells(columns, rows, func(i int, v answer.Value) (string, bool) { return m.compared(table, place, i, columns[i], v) })
}

// compared gives what is compared of a value in the i-th column of a table, or of the answer at a place; ok is false if nothing is.
func (m *Masks) compared(table, place string, i int, c answer.Column, v answer.Value) (text string, ok bool) {
	name, unstable, counter := strings.ToLower(c.Name), m.cells[place][i], false
	if table == "" {
		counter = m.columns[name]
	} else {
		p := bare(table) + "." + name
		counter, unstable = m.counters[p], m.unstable["column "+p]
	}
	switch {
	case counter && v != nil && m.stood(table, place, i, name, string(v)):
	case counter || m.refers(name):
		return "", false
	case m.clocked(c):
		return answer.Text(v), v != nil && m.given(v)
	case unstable:
		return m.made(v), true
	}
	return answer.Text(v), true
}

// source is the table that an answer comes from, and the items of the list as statement.Statement.Columns.
type source struct {
	table   string
	columns []string
}

// column is the table's column that stands in the i-th of an answer, which is named so; empty: it is not known.
func (s *source) column(i int, name string) string {
	switch {
	case len(s.columns) == 1 && s.columns[0] == "*":
		return name
	case i < len(s.columns) && !slices.Contains(s.columns, "*"):
		return strings.ToLower(s.columns[i])
	}
	return ""
}

// stood reports whether a counter's value is that of a row which was there before: each execution has the same one.
func (m *Masks) stood(table, place string, i int, name, value string) bool {
	if m.was == nil {
		return false
	}
	if table == "" {
		from, ok := m.sources[place]
		if table = from.table; !ok || from.column(i, name) != name {
			return false
		}
	}
	return m.was(bare(table), name, value)
}

// stepOf finds a step of an execution.
func stepOf(s *schedule.Schedule, session int, name string) *schedule.Step {
	i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Session == session && st.Name == name })
	if i < 0 {
		return nil
	}
	return &s.Steps[i]
}

// cutOff reports whether LIMIT has cut an answer at a place off, in this execution: then other rows may stand for those that are there.
func (m *Masks) cutOff(s *schedule.Schedule, p string) bool {
	rows := m.cuts[p]
	return rows > 0 && slices.ContainsFunc(s.Steps, func(st schedule.Step) bool {
		return place(st.Session, st.Name) == p && len(st.Answer.Rows) >= rows
	})
}

// onlyIn gives the lines of a that b has not.
func onlyIn(a, b string) string {
	other := map[string]int{}
	for line := range strings.SplitSeq(b, "\n") {
		other[line]++
	}
	var lines []string
	for line := range strings.SplitSeq(a, "\n") {
		if other[line] > 0 {
			other[line]--
			continue
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "; ")
}

func shown(text string) string {
	if text == "" {
		return "nothing"
	}
	return prose.Line(text, prose.Width)
}
