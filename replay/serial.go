package replay

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/backends/engine"
	"wirecheck/lab"
	"wirecheck/scenario"
)

// Masks are columns whose values say nothing about the order of transactions: those that counters fill (they are not transactional) and
// those that differ between two executions of the same (clocks, random numbers).
type Masks struct {
	Counters map[string]bool // "table.column", lower case, without schema
	columns  map[string]bool // names of such columns, as results have them
	Unstable map[string]bool
	// Superseded are reads that say nothing that matters, by session and step of the scenario.
	Superseded [][]bool

	blind []string // tables that are not compared
}

// NewMasks makes masks of the columns that counters fill.
func NewMasks(counters map[string]bool) *Masks {
	m := &Masks{Counters: counters, columns: map[string]bool{}, Unstable: map[string]bool{}}
	for name := range counters {
		_, column, _ := strings.Cut(name, ".")
		m.columns[column] = true
	}
	return m
}

var unorderedList = regexp.MustCompile(`(?i)\b(group_concat|string_agg|array_agg|json_agg|jsonb_agg|json_arrayagg|json_objectagg|jsonb_object_agg|json_object_agg|xmlagg)\s*\(`)

// Blind masks the answers of statements that may bring something else for another reason than the order of transactions (clocks, LIMIT
// without ORDER BY, session variables, lists in no order), and the tables that such statements write.
func (m *Masks) Blind(g *Group) {
	for i, u := range g.Units {
		m.Superseded = append(m.Superseded, make([]bool, len(u.Steps)))
		for j, s := range u.Steps {
			unsure := s.Volatile != "" || unorderedList.MatchString(s.SQL)
			for _, v := range s.verbs {
				unsure = unsure || v.Variables
			}
			if !unsure || begins(s) {
				continue
			}
			m.Superseded[i][j] = true
			for _, t := range s.tables {
				if t.write && s.verbs[0].Verb != "select" {
					m.blind = append(m.blind, t.name)
				}
			}
		}
	}
}

// Learn masks what differs between two executions of the same order.
func (m *Masks) Learn(spec *scenario.Spec, a, b *lab.Result) {
	x, y := columnsOf(a), columnsOf(b)
	for place, text := range x {
		if y[place] != text {
			m.Unstable["column "+place] = true
		}
	}
	was, is := m.outcome(spec, a), m.outcome(spec, b)
	for place, text := range was {
		if is[place] != text {
			m.Unstable[place] = true
		}
	}
	for place := range is {
		if _, ok := was[place]; !ok {
			m.Unstable[place] = true
		}
	}
}

// columnsOf gives the values of each column of each table, in no order.
func columnsOf(r *lab.Result) map[string]string {
	out := map[string]string{}
	for _, t := range r.Tables {
		for i, c := range t.Columns {
			var values []string
			for _, row := range t.Rows {
				values = append(values, valueText(row[i]))
			}
			slices.Sort(values)
			out[bare(t.Name)+"."+strings.ToLower(c.Name)] = strings.Join(values, "\n")
		}
	}
	return out
}

// outcome is what an execution brought, by place: the answer of each step, and each column of each table.
func (m *Masks) outcome(spec *scenario.Spec, r *lab.Result) map[string]string {
	out := map[string]string{}
	for _, ev := range r.Events {
		if ev.Kind != lab.Ran && ev.Kind != lab.Resumed {
			continue
		}
		name := spec.Sessions[ev.Step.Session].Name + "\x00" + ev.Step.Name
		out[name] = m.answer(ev.Step.SQL, &ev.Answer)
	}
	for _, t := range r.Tables {
		// Rows whose counters are masked must not be compared in the order that these gave them.
		var rows []string
		for _, row := range t.Rows {
			var parts []string
			for i, v := range row {
				column := strings.ToLower(t.Columns[i].Name)
				place := bare(t.Name) + "." + column
				if m.Counters[place] || m.Unstable["column "+place] || m.refers(column) {
					continue
				}
				parts = append(parts, column+"="+valueText(v))
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
	return len(m.Counters) > 0 && strings.HasSuffix(column, "_id") && !m.columns[column]
}

func (m *Masks) answer(sql string, a *engine.Answer) string {
	if a.Err != nil {
		return "error " + a.Err.Code
	}
	var parts []string
	ordered := strings.Contains(strings.ToLower(sql), "order by")
	for _, r := range a.Results {
		if r.Columns == nil {
			parts = append(parts, fmt.Sprintf("%d rows changed", r.Affected))
			continue
		}
		var rows []string
		for _, row := range r.Rows {
			var values []string
			for i, v := range row {
				column := strings.ToLower(r.Columns[i].Name)
				if m.columns[column] || m.refers(column) {
					continue
				}
				values = append(values, valueText(v))
			}
			rows = append(rows, "("+strings.Join(values, ", ")+")")
		}
		if !ordered {
			slices.Sort(rows)
		}
		text := strings.Join(rows, " ")
		if text == "" {
			text = "no rows"
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func valueText(v engine.Value) string {
	if v == nil {
		return "NULL"
	}
	return string(v)
}

// Difference is how an execution differs from one serial order.
type Difference struct {
	Text string
	Step string // of the scenario, whose answer differs; empty: a table does
}

// Unserializable compares an execution with the serial ones (serial[i] executed orders[i]). It gives for each serial order what would
// have been different; nil if one of them is the same in everything that can be compared, so that the execution was serializable.
func (m *Masks) Unserializable(spec *scenario.Spec, r *lab.Result, orders []*scenario.Permutation, serial []*lab.Result) []Difference {
	is := m.outcome(spec, r)
	var why []Difference
	for i, s := range serial {
		difference, ok := m.difference(spec, is, m.outcome(spec, s))
		if !ok {
			return nil
		}
		var names []string
		for _, ps := range orders[i].Steps {
			if name := spec.Sessions[ps.Step.Session].Name; !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		difference.Text = fmt.Sprintf("with %s one after the other: %s", strings.Join(names, ", "), difference.Text)
		why = append(why, difference)
	}
	return why
}

func (m *Masks) difference(spec *scenario.Spec, is, would map[string]string) (Difference, bool) {
	for i, session := range spec.Sessions {
		for j, st := range session.Steps {
			if i < len(m.Superseded) && j < len(m.Superseded[i]) && m.Superseded[i][j] {
				continue
			}
			name := session.Name + "\x00" + st.Name
			if m.Unstable[name] || is[name] == would[name] {
				continue
			}
			text := fmt.Sprintf("%s of %s (%s) would have brought %s, and brought %s", st.Name, session.Name, brief(st.SQL), shown(would[name]), shown(is[name]))
			return Difference{text, st.Name}, true
		}
	}
	var tables []string
	for place := range is {
		if strings.HasPrefix(place, "table ") {
			tables = append(tables, place)
		}
	}
	slices.Sort(tables)
	for _, place := range tables {
		if !m.Unstable[place] && !slices.Contains(m.blind, bare(strings.TrimPrefix(place, "table "))) && is[place] != would[place] {
			a, b := onlyIn(would[place], is[place]), onlyIn(is[place], would[place])
			return Difference{Text: fmt.Sprintf("%s would have ended with %s, and ended with %s", place, shown(a), shown(b))}, true
		}
	}
	return Difference{}, false
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
	return brief(text)
}
