package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wirecheck/trace"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Shape is what units do that differ only in values.
type Shape struct {
	Units []*Unit
	Tags  []trace.Tag // that all of its units have
	text  string
	rows  map[*Unit]map[string]bool // by unit: the rows that its statements name, as far as their texts tell
	wrote map[*Unit]map[string]bool // those that its statements write or lock
}

// unitsCompared is how many units of a shape are looked at for rows that two of them share.
const unitsCompared = 40

// Shapes puts together the units that do the same, the most frequent shape first. It leaves out units that are not whole.
func Shapes(units []*Unit, d lex.Dialect) (shapes []*Shape) {
	by := map[string]*Shape{}
	for _, u := range units {
		if !u.Whole {
			continue
		}
		text := u.shape(d)
		s := by[text]
		if s == nil {
			s = &Shape{text: text, Tags: flow.Route(u.Tags()), rows: map[*Unit]map[string]bool{}, wrote: map[*Unit]map[string]bool{}}
			by[text] = s
			shapes = append(shapes, s)
		}
		s.Units = append(s.Units, u)
		tags := flow.Route(u.Tags())
		s.Tags = slices.DeleteFunc(s.Tags, func(t trace.Tag) bool { return t.Key == "traceparent" || !slices.Contains(tags, t) })
		if len(s.Units) <= unitsCompared {
			s.rows[u], s.wrote[u] = u.names(d, func(*Step) bool { return true }), u.names(d, (*Step).Writes)
		}
	}
	slices.SortStableFunc(shapes, func(a, b *Shape) int { return len(b.Units) - len(a.Units) })
	return shapes
}

// Statements are the shape's statements without literals.
func (s *Shape) Statements() []string { return strings.Split(strings.TrimSuffix(s.text, "\n"), "\n") }

// Writes gives the tables that the shape uses: true for those that it writes.
func (s *Shape) Writes() map[string]bool { return s.Units[0].tables }

// Shared gives the tables that two shapes both use, at least one of them to write.
func (s *Shape) Shared(o *Shape) (tables []string) {
	for name, w := range s.Writes() {
		if x, ok := o.Writes()[name]; ok && (w || x) {
			tables = append(tables, name)
		}
	}
	slices.Sort(tables)
	return tables
}

// names are the rows that some of a unit's statements name: "table.column=value".
func (u *Unit) names(d lex.Dialect, which func(*Step) bool) map[string]bool {
	rows := map[string]bool{}
	for _, s := range u.Steps {
		if !which(s) {
			continue
		}
		for _, l := range flow.Literals(s.SQL, d) {
			if l.Column == "" || l.Clause == "set" {
				continue
			}
			for _, t := range s.tables {
				rows[fmt.Sprintf("%s.%s=%s", t.name, l.Column, l.Value)] = true
			}
		}
	}
	return rows
}

// Meeting is two or more units of the trace that are executed at once, and what they share.
type Meeting struct {
	*Group
	Rows   []string // that the statements of all of them name: "table.column=value"
	Copied bool     // the last one is no unit of the trace, but does the same as another one of its shape
}

// Meetings chooses units of two shapes to execute together: those that name most of the same rows, and of these the nearest. If the shapes are
// the same one and no two units name all of the same rows, another choice is a unit beside a copy that does the same to the same rows, as another unit
// of its shape would. Units that write the same row hide what those do to each other that write different ones, after both have read more than that (two
// doctors on call): a further choice are the nearest two of these.
func Meetings(a, b *Shape, d lex.Dialect) (list []Meeting) {
	shared := a.Shared(b)
	var best, apart Meeting
	distance, between := 0, 0
	for _, u := range a.Units[:min(len(a.Units), unitsCompared)] {
		for _, v := range b.Units[:min(len(b.Units), unitsCompared)] {
			if u == v || a == b && u.first > v.first {
				continue
			}
			rows, far := common(a.rows[u], b.rows[v], shared), max(u.first-v.first, v.first-u.first)
			if best.Group == nil || len(rows) > len(best.Rows) || len(rows) == len(best.Rows) && far < distance {
				best, distance = Meeting{Group: Together([]*Unit{u, v}, d), Rows: rows}, far
			}
			wide := len(rows) > 0 || u.sweeps(v, d) || v.sweeps(u, d)
			if wide && len(common(a.wrote[u], b.wrote[v], shared)) == 0 && (apart.Group == nil || len(rows) > len(apart.Rows) || len(rows) == len(apart.Rows) && far < between) {
				apart, between = Meeting{Group: Together([]*Unit{u, v}, d), Rows: rows}, far
			}
		}
	}
	if best.Group != nil && (len(best.Rows) > 0 || a != b) {
		list = append(list, best)
	}
	if a == b && (len(list) == 0 || !all(a.rows[best.Units[0]], best.Rows, shared)) {
		u, other := a.Units[0], a.Units[0]
		for _, v := range a.Units[:min(len(a.Units), unitsCompared)] { // one that has nothing in common with it tells most values apart
			if other == u || len(common(a.rows[u], a.rows[v], shared)) < len(common(a.rows[u], a.rows[other], shared)) {
				other = v
			}
		}
		list = append(list, Meeting{Group: Together([]*Unit{u, u.beside(other, d)}, d), Rows: common(a.rows[u], a.rows[u], shared), Copied: true})
	}
	if apart.Group != nil && (len(list) == 0 || list[0].Copied || !slices.Equal(list[0].Units, apart.Units)) {
		list = append(list, apart)
	}
	return list
}

// sweeps reports whether a unit reads a table that another one writes by a condition that names no row: all doctors on call.
func (u *Unit) sweeps(v *Unit, d lex.Dialect) bool {
	return slices.ContainsFunc(u.Steps, func(s *Step) bool {
		return len(s.verbs()) == 1 && s.verbs()[0].Verb == "select" && slices.ContainsFunc(s.tables, func(t use) bool { return v.tables[t.name] }) && len(conditions(s.SQL, d)) == 0
	})
}

// all reports whether these are all of the rows of some tables that a unit names.
func all(names map[string]bool, rows, tables []string) bool {
	return len(common(names, names, tables)) == len(rows)
}

// common gives the rows of some tables that are in both sets.
func common(a, b map[string]bool, tables []string) (rows []string) {
	for row := range a {
		if table, _, _ := strings.Cut(row, "."); b[row] && slices.Contains(tables, table) {
			rows = append(rows, row)
		}
	}
	slices.Sort(rows)
	return rows
}

// later is added to the places of a copied unit's steps: they come after all others.
const later = 1 << 40

// copied copies a unit, so that its steps can be changed.
func (u *Unit) copied() *Unit {
	c := *u
	c.Steps = make([]*Step, len(u.Steps))
	for i, s := range u.Steps {
		step := *s
		c.Steps[i] = &step
	}
	return &c
}

// beside copies a unit with the values of another unit of its shape where that says nothing of the rows that both should meet on: two customers
// use one coupon. A value that a condition on a table that the unit writes has, stays; so does one that was computed from what it read.
func (u *Unit) beside(v *Unit, d lex.Dialect) *Unit {
	c := u.copied()
	for _, s := range c.Steps {
		s.N += later
	}
	c.first += later
	stays := map[string]bool{}
	for _, s := range u.Steps {
		written := slices.ContainsFunc(s.tables, func(t use) bool { return u.tables[t.name] })
		for _, l := range flow.Literals(s.SQL, d) {
			if l.Clause == "where" && written || l.Column == "" && l.Clause != "values" {
				stays[l.Value] = true
			}
		}
	}
	computed, read := map[string]bool{}, map[int]bool{}
	for _, f := range slices.Concat(u.flows(d), v.flows(d)) {
		computed[fmt.Sprint(f.To, " ", f.Literal)], read[f.From] = true, true
	}
	for i, s := range c.Steps {
		mine, theirs := flow.Literals(s.SQL, d), flow.Literals(v.Steps[i].SQL, d)
		if len(mine) != len(theirs) {
			continue
		}
		values := map[string]string{}
		for n := range mine {
			if !stays[mine[n].Value] && !computed[fmt.Sprint(i, " ", n)] && mine[n].Value != theirs[n].Value {
				values[fmt.Sprint(n)] = theirs[n].Value
			}
		}
		if len(values) == 0 {
			continue
		}
		s.SQL = replaceLiterals(s.SQL, values, d)
		if !read[i] && s.SQL == replaceLiterals(v.Steps[i].SQL, nil, d) { // what was computed from an answer stays with it
			s.Answer = v.Steps[i].Answer
		}
	}
	return c
}

// OwnLevel is the level at which the application ran a unit, as far as the trace tells; empty: the server's default.
func (u *Unit) OwnLevel() (level string) {
	level = u.Level
	for _, sql := range u.Setup {
		if m := levelName.FindStringSubmatch(sql); m != nil {
			level = levelText(m[1])
		}
	}
	for _, s := range u.Steps {
		for _, v := range s.verbs() {
			level = cmp.Or(v.Control.Level, level)
		}
	}
	return level
}

// Writes reports whether a step writes or locks rows of a table.
func (s *Step) Writes() bool {
	return slices.ContainsFunc(s.tables, func(t use) bool { return t.write })
}
