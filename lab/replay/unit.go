package replay

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/lab/scenario"
	"wirecheck/statement"
	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Unit is what the application did as one: a transaction, or the transactions of one request. Its steps are those that were replayed.
type Unit struct {
	Session uint64
	Steps   []*Step
	Setup   []string // settings that its session had when it began
	Level   string   // of its session, as history.Event.Level; empty: the server's default
	Request string   // by which its transactions were put together; empty: it is one transaction
	Writes  bool
	Whole   bool // everything of it was replayed, and it committed
	lo, hi  int64
	tables  map[string]bool // true: written
	first   int             // place of its first step
	txns    int
}

// Request puts transactions together to units.
type Request struct {
	On  bool
	Gap time.Duration // transactions of a session without tags that follow each other within this are one request; 0: they are not
}

// Collector makes units of the steps of a replay, as they are done. What it keeps of a long replay is bounded by most units.
type Collector struct {
	Units   []*Unit
	Dropped int // units beyond Most
	Most    int
	// Database is the one that the statements name as theirs (MySQL family): units are executed in others. Empty: names stay as they are.
	Database string
	// Begin are the statements that the replay has put in front of each session: units have them as settings, but for roles, which have no rights on
	// the tables that labs make.
	Begin []string
	// Definitions are the statements of the replay that changed the database's definitions, by place.
	Definitions []Definition

	sessions map[uint64]*collected
}

// Definition is a statement that changed definitions.
type Definition struct {
	N   int
	SQL string
}

type collected struct {
	unit     *Unit
	settings []string
	database string
	next     []*Step // what speaks of the next transaction only
	level    string
}

// NewCollector makes a collector of at most so many units.
func NewCollector(most int) *Collector {
	return &Collector{Most: most, sessions: map[uint64]*collected{}}
}

// Add takes a step that is done.
func (c *Collector) Add(s *Step) {
	if s.Statement == nil {
		return
	}
	s.as = s.SQL
	s.SQL = Unqualified(s.SQL, c.Database, s.form) // it is done
	m := c.sessions[s.Session]
	if m == nil {
		m = &collected{database: c.Database, settings: slices.DeleteFunc(slices.Clone(c.Begin), administration.MatchString)}
		if s.info != nil {
			m.level = s.info.Level
		}
		for _, sql := range c.Begin {
			if l := levelName.FindStringSubmatch(sql); l != nil {
				m.level = levelText(l[1])
			}
		}
		c.sessions[s.Session] = m
	}
	if s.Skip != "" || s.standIn != "" || s.Lost != nil {
		if m.unit != nil {
			m.unit.Whole = false
		}
		return
	}
	a := &s.Answer
	if m.unit != nil && !a.Before.InTransaction() {
		m.unit = nil // the trace does not show how it ended
	}
	if m.unit == nil && !a.Before.InTransaction() && !a.After.InTransaction() && c.outside(m, s) {
		return
	}
	if m.unit == nil {
		m.unit = &Unit{Session: s.Session, Setup: slices.Clone(m.settings), Level: m.level, Whole: !s.begun, lo: s.lo, first: s.N, tables: map[string]bool{}, txns: 1}
		for _, b := range m.next {
			m.unit.Steps = append(m.unit.Steps, b)
			m.unit.lo, m.unit.first = min(m.unit.lo, b.lo), min(m.unit.first, b.N)
		}
		m.next = nil
	}
	m.unit.add(s)
	if a.After.InTransaction() {
		return
	}
	u := m.unit
	m.unit = nil
	last := scenario.FirstWord(s.SQL)
	if strings.EqualFold(last, "rollback") || strings.EqualFold(last, "abort") || s.Outcome.Effect == answer.EffectRolledBack {
		u.Whole = false
	}
	if len(u.tables) == 0 {
		return
	}
	if len(c.Units) >= c.Most {
		c.Dropped++
		return
	}
	c.Units = append(c.Units, u)
}

// outside takes a statement outside of transactions that is none itself; it reports whether it was one.
func (c *Collector) outside(m *collected, s *Step) bool {
	if s.failed() {
		return true
	}
	for _, v := range s.form {
		if v.DDL {
			c.Definitions = append(c.Definitions, Definition{s.N, s.SQL})
			return true
		}
		switch v.Control.Verb {
		case statement.ControlLevel:
			if v.Control.Scope == statement.ScopeNext {
				m.next = append(m.next, s)
				return true
			}
		case statement.ControlNone:
			if len(v.Tables) > 0 {
				return false
			}
		}
	}
	if m.set(s.SQL) {
		return true
	}
	switch strings.ToLower(scenario.FirstWord(s.SQL)) {
	case "listen", "unlisten", "notify":
		return true // nothing that a transaction sees
	case "begin", "start", "commit", "rollback", "savepoint", "show", "explain", "analyze", "vacuum":
		return true
	}
	return len(s.tables) == 0
}

var (
	variable = regexp.MustCompile(`(?is)^\s*(?:set|reset)\s+((?:session\s+characteristics|transaction|time\s+zone|names|character\s+set)\b|(?:session\s+|@@session\.|@@)?[^\s=,]+)`)
	prepared = regexp.MustCompile(`(?is)^\s*(?:prepare|deallocate(?:\s+prepare)?|drop\s+prepare)\s+("[^"]+"|[^\s(;]+)`)
)

// set takes a statement that changes the session; it reports whether it was one. What was set before and is overwritten is forgotten.
func (m *collected) set(sql string) bool {
	word := strings.ToLower(scenario.FirstWord(sql))
	forget := func(form *regexp.Regexp, verb string) {
		name := form.FindStringSubmatch(sql)
		m.settings = slices.DeleteFunc(m.settings, func(old string) bool {
			o := form.FindStringSubmatch(old)
			return o != nil && name != nil && strings.Count(old, "=") < 2 && strings.EqualFold(o[1], name[1]) && strings.EqualFold(scenario.FirstWord(old), verb)
		})
	}
	switch word {
	case "set":
		if strings.Count(sql, "=") < 2 { // of several at once, none is overwritten
			forget(variable, "set")
		}
	case "prepare":
		forget(prepared, "prepare")
	case "use":
		if name := strings.Trim(strings.TrimSpace(sql[len("use"):]), "`; "); m.database != "" && strings.EqualFold(name, m.database) {
			return true
		}
		m.settings = slices.DeleteFunc(m.settings, func(old string) bool { return strings.EqualFold(scenario.FirstWord(old), "use") })
	case "deallocate", "drop":
		if prepared.MatchString(sql) {
			forget(prepared, "prepare")
			return true
		}
		return false
	case "reset":
		forget(variable, "set")
		if all := variable.FindStringSubmatch(sql); all != nil && strings.EqualFold(all[1], "all") {
			m.settings = slices.DeleteFunc(m.settings, func(old string) bool { return strings.EqualFold(scenario.FirstWord(old), "set") })
			return true
		}
	case "discard":
		m.settings = nil
		return true
	default:
		return false
	}
	m.settings = append(m.settings, sql)
	return true
}

func (u *Unit) add(s *Step) {
	u.Steps = append(u.Steps, s)
	u.hi = max(u.hi, s.hi)
	if r := flow.Request(s.Tags(), flow.RequestTags); r != "" && u.Request == "" {
		u.Request = r
	}
	for _, t := range s.tables {
		u.tables[t.name] = u.tables[t.name] || t.write
		u.Writes = u.Writes || t.write
	}
	for _, v := range s.form {
		u.Whole = u.Whole && !v.DDL
	}
}

// Tags are what the application said of the unit's statements.
func (u *Unit) Tags() (tags []trace.Tag) {
	for _, s := range u.Steps {
		for _, t := range s.Tags() {
			if !slices.Contains(tags, t) {
				tags = append(tags, t)
			}
		}
	}
	return tags
}

// Join puts the transactions of one request together.
func (r Request) Join(units []*Unit) []*Unit {
	if !r.On {
		return units
	}
	var out []*Unit
	by := map[string]*Unit{}
	last := map[uint64]*Unit{}
	for _, u := range units {
		var into *Unit
		if u.Request != "" {
			into = by[u.Request]
		} else if before := last[u.Session]; before != nil && before.Request == "" && r.Gap > 0 && u.start()-before.end() <= int64(r.Gap) && u.start() != 0 {
			into = before
		}
		last[u.Session] = u
		// What overlaps is not one after the other: one traceparent can belong to several at once.
		if into == nil || into.hi > u.lo {
			out = append(out, u)
			if u.Request != "" {
				by[u.Request] = u
			}
			continue
		}
		into.join(u)
		last[u.Session] = into
	}
	return out
}

// several is how many transactions of a session in one unit are more than one request has for sure.
const several = 4

// WholeSessions gives the sessions of which pauses alone made one unit, though they have many transactions: then the pauses tell no requests apart.
func WholeSessions(units []*Unit) (sessions []uint64) {
	n := map[uint64]int{}
	for _, u := range units {
		n[u.Session]++
	}
	for _, u := range units {
		if n[u.Session] == 1 && u.Request == "" && u.txns >= several {
			sessions = append(sessions, u.Session)
		}
	}
	return sessions
}

func (u *Unit) join(v *Unit) {
	u.Steps = append(u.Steps, v.Steps...)
	u.hi, u.txns = max(u.hi, v.hi), u.txns+v.txns
	u.Writes, u.Whole = u.Writes || v.Writes, u.Whole && v.Whole
	for name, w := range v.tables {
		u.tables[name] = u.tables[name] || w
	}
}

// start and end are by the clock, 0 if not known.
func (u *Unit) start() int64 { return u.Steps[0].start }

func (u *Unit) end() int64 {
	s := u.Steps[len(u.Steps)-1]
	if s.start == 0 {
		return 0
	}
	return s.start + int64(s.took)
}

// overlaps reports whether two units were under way at the same time.
func (u *Unit) overlaps(v *Unit) bool { return u.lo < v.hi && v.lo < u.hi }

// conflicts reports whether two units use the same table, one of them to write.
func (u *Unit) conflicts(v *Unit) bool {
	for name, w := range u.tables {
		if x, ok := v.tables[name]; ok && (w || x) {
			return true
		}
	}
	return false
}

// shape is what a unit does, whatever the values are.
func (u *Unit) shape(d lex.Dialect) string {
	var b strings.Builder
	for _, s := range u.Steps {
		b.WriteString(shapeOf(s.SQL, d))
		b.WriteByte('\n')
	}
	return b.String()
}

// Said is a statement as a history has it, and when it was answered, in nanoseconds since 1970.
type Said struct {
	SQL string
	At  int64
}

// Of gives the unit of a session that ran these statements: the one in which statements of these shapes ended nearest to these times. It is nil
// if there is none.
func Of(units []*Unit, session uint64, statements []Said, d lex.Dialect) (found *Unit) {
	nearest := int64(math.MaxInt64)
	for _, u := range units {
		if u.Session != session {
			continue
		}
		far := int64(0)
		for _, st := range statements {
			shape, best := shapeOf(strings.TrimRight(st.SQL, "; "), d), int64(math.MaxInt64)
			for _, s := range u.Steps {
				if strings.Contains(shapeOf(s.Statement.SQL, d), shape) { // a text may hold several statements
					best = min(best, max(s.Statement.End-st.At, st.At-s.Statement.End))
				}
			}
			far = max(far, best)
		}
		if far < nearest {
			found, nearest = u, far
		}
	}
	return found
}

// Together makes a group of units, whatever they have to do with each other.
func Together(units []*Unit, d lex.Dialect) *Group {
	g := &Group{Units: units, Overlapped: true, Start: math.MaxInt}
	slices.SortStableFunc(g.Units, func(a, b *Unit) int { return a.first - b.first })
	for _, u := range units {
		g.Start = min(g.Start, u.first)
		g.Shape += u.shape(d)
	}
	return g
}

// savepoint begins a statement that names one; savepointWords are the words of such a statement that are no name.
var (
	savepoint      = regexp.MustCompile(`(?i)^\s*(savepoint|release|rollback)\b`)
	savepointWords = []string{"savepoint", "release", "rollback", "to", "work", "transaction", "and", "no", "chain"}
)

// shapeOf is a statement's text without its literals, comments, blanks and the names of savepoints.
func shapeOf(sql string, d lex.Dialect) string {
	var b strings.Builder
	named := savepoint.MatchString(sql)
	for t := range lex.Tokens(sql, d) {
		switch t.Kind {
		case lex.Word, lex.Name:
			text := strings.ToLower(t.Text)
			if named && !slices.Contains(savepointWords, text) {
				text = "?" // frameworks number their savepoints
			}
			b.WriteString(text)
		case lex.Space, lex.Comment:
			b.WriteByte(' ')
		case lex.String, lex.Number:
			b.WriteByte('?')
		default:
			b.WriteString(strings.ToLower(t.Text))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// Group is units that are executed together.
type Group struct {
	Units []*Unit // in the order in which they began
	// Overlapped says that they overlapped in the trace: the order in which they ran there is itself of interest.
	Overlapped bool
	// Start is the place of the first step: the state before it is the group's.
	Start int
	// Besides its units, these queries are executed on its state.
	Queries []string
	// State is set by who replays: the rows that it needs, and what else brings them back.
	State *State
	// Shape is what the units do, whatever the values are.
	Shape string
}

// Phantom reports whether one unit adds or removes rows of a table that another one reads by a condition: then what they miss of each
// other may be rows that were not there.
func (g *Group) Phantom() bool {
	for _, u := range g.Units {
		for _, s := range u.Steps {
			for _, v := range s.verbs() {
				if v.Verb != "insert" && v.Verb != "delete" && v.Verb != "replace" {
					continue
				}
				for _, t := range v.Targets() {
					if slices.ContainsFunc(g.Units, func(o *Unit) bool { return o != u && o.reads(strings.ToLower(t.Name)) }) {
						return true
					}
				}
			}
		}
	}
	return false
}

// reads reports whether a unit reads a table without writing it in the same statement.
func (u *Unit) reads(table string) bool {
	return slices.ContainsFunc(u.Steps, func(s *Step) bool {
		return slices.Contains(s.tables, use{name: table}) && len(s.verbs()) == 1 && s.verbs()[0].Predicate
	})
}

// Within reports whether a group does what some of a larger one's units do, whatever the values are.
func (g *Group) Within(larger *Group) bool {
	if len(g.Units) >= len(larger.Units) {
		return false
	}
	left := strings.Split(strings.TrimPrefix(larger.Shape, overlapMark), shapeMark)
	for shape := range strings.SplitSeq(strings.TrimPrefix(g.Shape, overlapMark), shapeMark) {
		i := slices.Index(left, shape)
		if i < 0 {
			return false
		}
		left = slices.Delete(left, i, i+1)
	}
	return true
}

// What Group.Shape has in front of overlapping units, and between units.
const (
	overlapMark = "o\x00"
	shapeMark   = "\x00"
)

// OneSession reports whether two of its units came from the same session, which does not run two at once.
func (g *Group) OneSession() bool {
	seen := map[uint64]bool{}
	for _, u := range g.Units {
		if seen[u.Session] {
			return true
		}
		seen[u.Session] = true
	}
	return false
}

// State is the database as it was before a group began, as far as the group needs it.
type State struct {
	Tables   []engine.Table
	Whole    []engine.Table // all of their rows, if Tables has not all and they are not too many
	Thinned  bool
	Counters []string        // statements that set sequences to where they were
	Filled   map[string]bool // columns that counters fill: "table.column"
	Keys     Keys            // of its tables
	Defined  int             // how many of the trace's own definitions had been executed
	Besides  []string        // definitions that the trace does not have (Group.Besides)
}

// representatives is how many groups of the same shapes are run.
const representatives = 3

// Alone makes groups of one unit each, one for each kind of unit that reads tables: for oracles that judge queries, whoever else is there. left is how many
// were found beyond most.
func Alone(units []*Unit, most int, d lex.Dialect) (groups []*Group, left int) {
	seen := map[string]bool{}
	for _, u := range units {
		reads := slices.ContainsFunc(u.Steps, func(s *Step) bool {
			return slices.ContainsFunc(s.verbs(), func(v statement.Statement) bool { return v.Predicate })
		})
		shape := u.shape(d)
		if !u.Whole || !reads || seen[shape] {
			continue
		}
		seen[shape] = true
		if len(groups) >= most {
			left++
			continue
		}
		groups = append(groups, &Group{Units: []*Unit{u}, Overlapped: true, Start: u.first, Shape: shape})
	}
	slices.SortStableFunc(groups, func(a, b *Group) int { return a.Start - b.Start })
	return groups, left
}

// Groups chooses what is executed together: units that overlapped and touch each other's tables (up to four at once, else by pairs),
// and, if near is not 0, all pairs of units that have fewer than near others between them and touch each other's tables, even if they did
// not overlap. Of those that do the same with other values only the first few are taken. left is how many were found beyond most.
func Groups(units []*Unit, near, most int, d lex.Dialect) (groups []*Group, left int) {
	units = slices.Clone(units)
	slices.SortStableFunc(units, func(a, b *Unit) int { return a.first - b.first })
	shapes := map[*Unit]string{}
	for _, u := range units {
		shapes[u] = u.shape(d)
	}
	seen := map[string]int{}
	add := func(overlapped bool, members ...*Unit) {
		g := &Group{Units: members, Overlapped: overlapped, Start: members[0].first}
		var parts []string
		for _, u := range members {
			parts = append(parts, shapes[u])
		}
		slices.Sort(parts)
		g.Shape = strings.Join(parts, shapeMark)
		if overlapped {
			g.Shape = overlapMark + g.Shape
		}
		if seen[g.Shape]++; seen[g.Shape] > representatives {
			return
		}
		if len(groups) >= most {
			left++
			return
		}
		groups = append(groups, g)
	}
	for i, u := range units {
		if !u.Whole {
			continue
		}
		var others []*Unit
		for _, v := range units[i+1:] {
			if v.lo > u.hi {
				break
			}
			if v.Whole && u.overlaps(v) && u.conflicts(v) {
				others = append(others, v)
			}
		}
		if len(others) > 1 && len(others) <= 3 {
			add(true, append([]*Unit{u}, others...)...)
		}
		for _, v := range others {
			add(true, u, v)
		}
	}
	// The nearest first: what lies between two units is missing when they are run alone.
	for distance := 1; distance < near && distance < len(units); distance++ {
		for i := 0; i+distance < len(units); i++ {
			u, v := units[i], units[i+distance]
			// Two single statements have no other order than one after the other.
			if u.Whole && v.Whole && !u.overlaps(v) && u.conflicts(v) && len(u.Steps)+len(v.Steps) > 2 {
				add(false, u, v)
			}
		}
	}
	slices.SortStableFunc(groups, func(a, b *Group) int { return a.Start - b.Start })
	return groups, left
}
