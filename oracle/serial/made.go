package serial

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
)

// leastKnown is how long a value is at least that is not taken for another one by chance.
const leastKnown = 8

// cellMade stands for a value that the server made and that another execution makes differently.
const cellMade = "(made by the server)"

var (
	// What makes values of which no two are the same, and what surely passes on that they differ.
	unique   = regexp.MustCompile(`(?i)\b(gen_random_uuid|uuid_generate_v[147]|uuidv[47]|uuid|uuid_v4|uuid_v7|uuid_short|sys_guid|gen_random_bytes|random_bytes)\s*\([^()]*\)`)
	passesOn = regexp.MustCompile(`(?i)\b(replace|unhex|hex|lower|upper|uuid_to_bin|encode|cast|md5|sha1|sha2|sha256)\s*\($`)
	called   = regexp.MustCompile(`(?i)([\w"]+)\s*\($`)
	random   = regexp.MustCompile(`(?i)\b(random|rand|random_normal|setseed)\s*\(`)
	decides  = regexp.MustCompile(`(?i)\b(where|having|on|order\s+by|group\s+by|case|if|ifnull|coalesce|like|limit)\b`)
	literals = regexp.MustCompile(`'((?:[^'\\]|'')+)'`)
)

// uniquely reports whether all that is random in a statement are values of which no two are the same, that it returns or stores as they are: then
// two executions differ in them for certain, and Learn finds the columns.
func uniquely(text string) bool {
	if random.MatchString(text) {
		return false
	}
	calls := unique.FindAllStringIndex(text, -1)
	for _, at := range calls {
		before := strings.TrimRight(text[:at[0]], " \t\r\n")
		if m := called.FindStringSubmatch(before); m != nil && !strings.EqualFold(m[1], "values") && !passesOn.MatchString(before) && !intoList(before) || decides.MatchString(before) {
			return false
		}
	}
	return len(calls) > 0
}

// intoList reports whether a text ends where the values of an INSERT begin or a subquery does: nothing is called there.
func intoList(before string) bool {
	before = strings.TrimRight(strings.TrimSuffix(before, "("), " \t\r\n")
	return before == "" || strings.HasSuffix(before, ",")
}

// know remembers the values that statements name: where a column has values of the server's, these are none.
func (m *Masks) know(s *schedule.Schedule) {
	add := func(text string) {
		for _, l := range literals.FindAllStringSubmatch(text, -1) {
			m.known[strings.ReplaceAll(l[1], "''", "'")] = true
		}
	}
	for _, text := range s.Setup {
		add(text)
	}
	for i := range s.Steps {
		add(s.Steps[i].Statement.Text)
	}
}

// made is a value as it is compared in a column that has values of the server's.
func (m *Masks) made(v answer.Value) string {
	if v == nil || len(v) >= leastKnown && m.known[string(v)] {
		return answer.Text(v)
	}
	return cellMade
}

// learnAnswers finds the columns of answers that two executions of the same order filled with other values.
func (m *Masks) learnAnswers(a, b *schedule.Schedule) {
	for i := range a.Steps {
		x := &a.Steps[i]
		y := stepOf(b, x.Session, x.Name)
		if y == nil || len(x.Answer.Rows) != len(y.Answer.Rows) || len(x.Answer.Columns) != len(y.Answer.Columns) {
			continue
		}
		p := place(x.Session, x.Name)
		for c := range x.Answer.Columns {
			if !slices.Equal(sorted(x.Answer.Rows, c), sorted(y.Answer.Rows, c)) {
				if m.cells[p] == nil {
					m.cells[p] = map[int]bool{}
				}
				m.cells[p][c] = true
			}
		}
	}
}

// Refined gives masks that know, too, what differs between two executions of another order: there, other places hold values of the server's.
func (m *Masks) Refined(a, b *schedule.Schedule) *Masks {
	c := *m
	c.unstable, c.cells = maps.Clone(m.unstable), map[string]map[int]bool{}
	for p, columns := range m.cells {
		c.cells[p] = maps.Clone(columns)
	}
	c.Learn(a, b)
	return &c
}

// sorted gives a column's values, in no order. A row may lack some: a history that people wrote, say.
func sorted(rows [][]answer.Value, column int) []string {
	var values []string
	for _, row := range rows {
		if column < len(row) {
			values = append(values, answer.Text(row[column]))
		}
	}
	slices.Sort(values)
	return values
}

// dayLength is that of a date: 2026-11-23.
const dayLength = 10

// given reports whether a date or time is one that a statement names, and so far from the time of the executions that it is no clock's.
func (m *Masks) given(v answer.Value) bool {
	if m.recent == nil || len(v) < dayLength || m.recent(string(v[:dayLength])) {
		return false
	}
	text := strings.TrimSuffix(strings.TrimSuffix(string(v), "+00"), " 00:00:00")
	iso := strings.Replace(text, " ", "T", 1)
	return m.known[string(v)] || m.known[text] || m.known[text+"Z"] || m.known[iso] || m.known[iso+"Z"]
}
