package replay

import (
	"cmp"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// The kinds of values that a server makes and that another execution makes differently.
const (
	madeByClock    = "clock"
	madeByCounter  = "counter" // sequences, AUTO_INCREMENT
	madeByChance   = "random"  // UUIDs
	clockTolerance = 2 * time.Second
	maxGenerated   = 1 << 18 // values that are remembered
	maxPairings    = 200     // rows that are compared in any order
)

// Generated knows which of the replay's values stand for which of the trace's. An application sends back what it has read: an id, the time at
// which a row changed. Such a value of the trace is none in the replay.
type Generated struct {
	dialect lex.Dialect
	// first and began are when the first step was sent, in the trace and in the replay.
	first int64
	began time.Time
	// values are readings of clocks and what chance made, which nothing else looks like. ids are numbers, by the table that they belong to.
	values map[string]string
	ids    map[string]map[string]string
	back   map[string]string // values, the other way round
	n      int
}

// NewGenerated makes one that knows nothing yet.
func NewGenerated(d lex.Dialect) *Generated {
	return &Generated{dialect: d, values: map[string]string{}, back: map[string]string{}, ids: map[string]map[string]string{}}
}

// mapped gives the statement as the application would have sent it, had it read what the replay brought.
func (g *Generated) mapped(s *Step) string {
	if g.n == 0 || len(s.form) == 0 {
		return s.SQL
	}
	changed := map[string]string{}
	for n, l := range flow.Literals(s.SQL, g.dialect) {
		if v, ok := g.other(s, l); ok {
			changed[strconv.Itoa(n)] = v
		}
	}
	if len(changed) == 0 {
		return s.SQL
	}
	return replaceLiterals(s.SQL, changed, g.dialect)
}

// other gives the value that stands in the replay for one of the trace's.
func (g *Generated) other(s *Step, l flow.Literal) (string, bool) {
	if !wholeNumber(l.Value) {
		return g.text(l.Value)
	}
	column := cmp.Or(l.Column, listed(s.SQL[:l.At]))
	for table, ids := range g.ids {
		if v, ok := ids[l.Value]; ok && belongsTo(column, table, s) {
			return v, true
		}
	}
	return "", false
}

// text replaces the values that a text consists of or holds.
func (g *Generated) text(value string) (string, bool) {
	if v, ok := g.values[value]; ok {
		return v, true
	}
	changed := false
	out := madeForms.ReplaceAllStringFunc(value, func(part string) string {
		if v, ok := g.values[part]; ok {
			changed = true
			return v
		}
		return part
	})
	return out, changed
}

// listed names the column of a value in a list: id IN (1, 2.
func listed(before string) string {
	m := inList.FindStringSubmatch(before)
	if m == nil {
		return ""
	}
	return lastName(m[1])
}

var inList = regexp.MustCompile("(?is)([\\w\"`.]+)\\s+(?:not\\s+)?in\\s*\\([^()]*$")

// belongsTo reports whether a column of a statement holds ids of a table: the table's own id, or one that is named after it.
func belongsTo(column, table string, s *Step) bool {
	of, isReference := strings.CutSuffix(column, "_id")
	switch {
	case column == "":
		return false
	case column == "id":
		return slices.ContainsFunc(s.tables, func(t use) bool { return t.name == table })
	case isReference:
		one := singular(table)
		return one == of || strings.HasSuffix(one, "_"+of) || slices.ContainsFunc(s.tables, func(t use) bool { return t.name == table && of == singular(table) })
	}
	return false
}

// singular is a table's name as columns that refer to it have it.
func singular(table string) string {
	for _, form := range [][2]string{{"ies", "y"}, {"sses", "ss"}, {"xes", "x"}, {"ches", "ch"}, {"s", ""}} {
		if stem, ok := strings.CutSuffix(table, form[0]); ok && stem != "" {
			return stem + form[1]
		}
	}
	return table
}

// madeForms are what clocks and chance make, wherever it stands in a text.
var madeForms = regexp.MustCompile(`(?i)\b[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}\b|\b\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?: ?(?:Z|[+-]\d\d(?::?\d\d)?)\b)?)?|\b[12]\d{9}(?:\.\d+|\d{3}|\d{6}|\d{9})?\b`)

// result says by what two answers differ that say the same otherwise, and remembers the pairs; ok is false if they differ in anything else.
func (g *Generated) result(s *Step, was *trace.Result, is *answer.Result) (kinds []string, ok bool) {
	if len(was.Rows) == 0 || len(was.Rows) > len(is.Rows) || was.Count != trace.Unknown && was.Count != int64(len(is.Rows)) || !was.Partial && len(was.Rows) != len(is.Rows) {
		return nil, false
	}
	pairs, ok := map[[3]string]string{}, true // table, the trace's value, the replay's: kind
	for i, row := range was.Rows {
		ok = g.row(s, row, is.Columns, is.Rows[i], pairs) && ok
	}
	// What an INSERT returns is known row by row, whatever else differs.
	if !ok && !(len(s.form) == 1 && s.form[0].Verb == "insert") {
		if pairs = g.anyOrder(s, was, is); pairs == nil {
			return nil, false
		}
		ok = true
	}
	for pair, kind := range pairs {
		if g.learn(pair[0], pair[1], pair[2]); !slices.Contains(kinds, kind) {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return kinds, ok
}

// anyOrder pairs rows that stand in another order.
func (g *Generated) anyOrder(s *Step, was *trace.Result, is *answer.Result) map[[3]string]string {
	if was.Partial || len(was.Rows) > maxPairings {
		return nil
	}
	pairs, taken := map[[3]string]string{}, make([]bool, len(is.Rows))
	for _, row := range was.Rows {
		found := false
		for j := range is.Rows {
			one := map[[3]string]string{}
			if taken[j] || !g.row(s, row, is.Columns, is.Rows[j], one) {
				continue
			}
			for k, v := range one {
				pairs[k] = v
			}
			taken[j], found = true, true
			break
		}
		if !found {
			return nil
		}
	}
	return pairs
}

// row compares two rows and adds what stands for what.
func (g *Generated) row(s *Step, was []trace.Value, columns []answer.Column, is []answer.Value, pairs map[[3]string]string) bool {
	if len(was) != len(is) {
		return false
	}
	same := true
	for i, v := range was {
		switch {
		case v.Null != (is[i] == nil):
			same = false
		case v.Null || v.Text == string(is[i]):
		default:
			same = i < len(columns) && g.cell(s, columns[i].Name, v.Text, string(is[i]), pairs) && same
		}
	}
	return same
}

// cell compares two different values.
func (g *Generated) cell(s *Step, column, was, is string, pairs map[[3]string]string) bool {
	column = aliased(s.SQL, strings.ToLower(column))
	if !madeForms.MatchString(was) && (g.values[was] == is || g.numbered(s, was, is)) {
		pairs[[3]string{"", was, is}] = madeByCounter
		return true
	}
	if wholeNumber(was) && wholeNumber(is) && !flow.IsClock(was) {
		for table, ids := range g.ids {
			if ids[was] == is && (belongsTo(column, table, s) || counterFunction[column]) {
				pairs[[3]string{table, was, is}] = madeByCounter
				return true
			}
		}
		table := counted(s, column)
		if table != "" {
			pairs[[3]string{table, was, is}] = madeByCounter
		}
		return table != ""
	}
	a, b := madeForms.FindAllStringIndex(was, -1), madeForms.FindAllStringIndex(is, -1)
	if len(a) == 0 || len(a) != len(b) {
		return false
	}
	lastA, lastB := 0, 0
	for i := range a {
		if was[lastA:a[i][0]] != is[lastB:b[i][0]] {
			return false
		}
		lastA, lastB = a[i][1], b[i][1]
		x, y := was[a[i][0]:lastA], is[b[i][0]:lastB]
		if x == y {
			continue
		}
		kind := g.kind(s, x, y)
		if kind == "" {
			return false
		}
		pairs[[3]string{"", x, y}] = kind
	}
	return was[lastA:] == is[lastB:]
}

// aliased is the column that a name of an answer stands for: RETURNING id AS order_id.
func aliased(sql, name string) string {
	for _, m := range alias.FindAllStringSubmatch(sql, -1) {
		if lastName(m[2]) == name {
			return lastName(m[1])
		}
	}
	return name
}

// alias finds a column, and nothing but a column, under another name.
var alias = regexp.MustCompile("(?is)(?:\\bselect|\\bdistinct|\\breturning|,)\\s*([\\w\"`.]+)\\s+as\\s+([\\w\"`]+)")

// numbered reports whether a statement that asks a counter has made texts of it that differ in a number alone: ORD-7 and ORD-9.
func (g *Generated) numbered(s *Step, was, is string) bool {
	return strings.Contains(s.Volatile, "a sequence") && !wholeNumber(was) && len(numbers.FindAllString(was, -1)) > 0 &&
		numbers.ReplaceAllString(was, "#") == numbers.ReplaceAllString(is, "#")
}

var numbers = regexp.MustCompile(`\d+`)

// counterFunction are the names of answers' columns that hold a counter's value.
var counterFunction = map[string]bool{"nextval": true, "currval": true, "lastval": true, "last_insert_id()": true}

// counted names the table whose counter a statement has asked for a value of a column; empty if it has not.
func counted(s *Step, column string) string {
	if len(s.form) != 1 {
		return ""
	}
	v := &s.form[0]
	if v.Verb == "insert" && len(v.Targets()) == 1 {
		table := strings.ToLower(v.Targets()[0].Name)
		if column == "id" || belongsTo(column, table, s) {
			return table
		}
	}
	if m := sequenceName.FindStringSubmatch(s.SQL); m != nil && counterFunction[column] {
		return lastName(m[1])
	}
	return ""
}

// sequenceName finds the table in the name of a sequence as PostgreSQL gives it to a serial column.
var sequenceName = regexp.MustCompile(`(?i)\b(?:nextval|currval)\s*\(\s*'"?((?:\w+"?\."?)?\w+?)(?:_id)?_seq"?'`)

// kind says what made two values differ: the same clock at the two times, or chance; empty: nothing that is known.
func (g *Generated) kind(s *Step, was, is string) string {
	switch {
	case g.values[was] == is && isUUID(was), isUUID(was) && isUUID(is) && len(was) == len(is):
		return madeByChance
	case isUUID(was) || isUUID(is):
		return ""
	}
	a, zonedA, ok1 := reading(was)
	b, zonedB, ok2 := reading(is)
	if !ok1 || !ok2 || zonedA != zonedB || s.start == 0 || g.began.IsZero() {
		return ""
	}
	// Between the time that the first step was sent and this one, the replay's clock has moved away from the trace's by so much.
	early, late := g.began.Sub(time.Unix(0, g.first)), time.Since(time.Unix(0, s.start))
	low, high := min(early, late)-clockTolerance-s.took, max(early, late)+clockTolerance
	moved := b.Sub(a)
	if day := 24 * time.Hour; len(was) == len("2006-01-02") && strings.Contains(was, "-") {
		low, high = low-day, high+day
	} else if !zonedA {
		// The two servers may have other time zones, which are a quarter of an hour apart or a multiple.
		const quarter = 15 * time.Minute
		for zone := -14 * time.Hour; zone <= 14*time.Hour; zone += quarter {
			if moved+zone >= low && moved+zone <= high {
				return madeByClock
			}
		}
		return ""
	}
	if moved < low || moved > high {
		return ""
	}
	return madeByClock
}

func isUUID(text string) bool {
	return len(text) == 36 && text[8] == '-' || len(text) == 32 && !strings.Contains(text, " ") && !strings.Contains(text, ":")
}

// reading reads a date and time, or a number of seconds since 1970 or thousandths and so on of them. zoned: it does not depend on a time zone.
func reading(text string) (at time.Time, zoned, ok bool) {
	if flow.IsClock(text) {
		n, _ := new(big.Rat).SetString(text)
		whole, _, _ := strings.Cut(text, ".")
		unit := map[int]int64{10: 1e9, 13: 1e6, 16: 1e3, 19: 1}[len(whole)]
		n.Mul(n, new(big.Rat).SetInt64(unit))
		f, _ := n.Float64()
		return time.Unix(0, int64(f)), true, true
	}
	text = strings.Replace(text, "T", " ", 1)
	for _, form := range []string{"2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999Z0700"} {
		if at, err := time.Parse(form, strings.Replace(text, " +", "+", 1)); err == nil {
			return at, true, true
		}
	}
	for _, form := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.Parse(form, text); err == nil {
			return at, false, true
		}
	}
	return at, false, false
}

func wholeNumber(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// learn remembers what stands for what.
func (g *Generated) learn(table, was, is string) {
	if g.n >= maxGenerated {
		return
	}
	into := g.values
	if table != "" {
		if into = g.ids[table]; into == nil {
			into = map[string]string{}
			g.ids[table] = into
		}
	}
	if _, known := into[was]; !known {
		g.n++
	}
	if into[was] = is; table == "" {
		g.back[is] = was
	}
}

// As gives a text of this replay as another replay of the same trace has it.
func (g *Generated) As(other *Generated, text string) string {
	if len(g.back) == 0 || len(other.values) == 0 {
		return text
	}
	return madeForms.ReplaceAllStringFunc(text, func(part string) string {
		if was, ok := g.back[part]; ok {
			return cmp.Or(other.values[was], part)
		}
		return part
	})
}
