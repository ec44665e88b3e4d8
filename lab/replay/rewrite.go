package replay

import (
	"math/big"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/statement"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Variants of units: what the application could do in place of what it did.

var (
	levelName   = regexp.MustCompile(`(?is)\bisolation\b.*?\b(read[\s_-]+uncommitted|read[\s_-]+committed|repeatable[\s_-]+read|serializable)\b`)
	levelClause = regexp.MustCompile(`(?is)\s*,?\s*\bisolation\s+level\s+(read\s+uncommitted|read\s+committed|repeatable\s+read|serializable)\b`)
	anyLevel    = regexp.MustCompile(`(?i)isolation`)
	plainName   = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
)

// levelText is a level as history.Event.Level has it.
func levelText(text string) string {
	return strings.Join(strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" \t\r\n_-", r) }), " ")
}

// with makes a group of variants of a group's units. It keeps the group's state.
func (g *Group) with(variant func(i int, u *Unit) *Unit) *Group {
	c := *g
	c.Units = slices.Clone(g.Units)
	for i, u := range c.Units {
		c.Units[i] = variant(i, u)
	}
	return &c
}

// Unbound gives the group without the levels that its units name themselves: they run at the level that their sessions get.
func (g *Group) Unbound() *Group {
	return g.with(func(_ int, u *Unit) *Unit {
		c := u.copied()
		c.Setup = slices.DeleteFunc(slices.Clone(u.Setup), anyLevel.MatchString)
		c.Steps = slices.DeleteFunc(c.Steps, func(s *Step) bool {
			return len(s.verbs()) == 1 && s.verbs()[0].Control.Verb == statement.ControlLevel && s.verbs()[0].Control.Level != ""
		})
		for _, s := range c.Steps {
			if slices.ContainsFunc(s.verbs(), namesLevel) {
				s.SQL = levelClause.ReplaceAllString(s.SQL, "")
			}
		}
		return c
	})
}

// Set gives the group with settings with which each session begins, and without those of its own that set the same.
func (g *Group) Set(names, statements []string) *Group {
	return g.with(func(_ int, u *Unit) *Unit {
		c := u.copied()
		own := slices.DeleteFunc(slices.Clone(u.Setup), func(sql string) bool {
			m := variable.FindStringSubmatch(sql)
			return m != nil && slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, m[1]) })
		})
		c.Setup = append(slices.Clone(statements), own...)
		return c
	})
}

// namesLevel reports whether a statement begins a transaction at a level that it names.
func namesLevel(v statement.Statement) bool {
	return v.Control.Verb == statement.ControlBegin && v.Control.Level != ""
}

// Read is a plain read that a unit could do with a lock.
type Read struct {
	Unit, Step int
	SQL        string
	Locking    string // the same read with a lock
}

// Reads gives the plain reads of the group's units that could lock what they read: reads of a table that one of the units writes, of rows
// that are rows of tables.
func (g *Group) Reads(d lex.Dialect) []Read {
	return g.reads(d, func(_ int, s *Step) bool {
		return slices.ContainsFunc(s.tables, func(t use) bool {
			return slices.ContainsFunc(g.Units, func(o *Unit) bool { return o.tables[t.name] })
		})
	})
}

// Parent names a table that none of the units writes and of which all of them read rows by the same condition: the room that both book. sql is such a
// read, with a lock. To lock these rows is the remedy where the rows that matter are not there yet. Empty: there is none.
func (g *Group) Parent(d lex.Dialect) (table, sql string) {
	for _, r := range g.reads(d, func(int, *Step) bool { return true }) {
		s := g.Units[r.Unit].Steps[r.Step]
		named := conditions(s.SQL, d)
		if len(named) == 0 || len(s.tables) != 1 || slices.ContainsFunc(g.Units, func(o *Unit) bool { return o.tables[s.tables[0].name] }) {
			continue
		}
		if !slices.ContainsFunc(g.Units, func(o *Unit) bool {
			return !slices.ContainsFunc(o.Steps, func(x *Step) bool {
				return len(x.tables) == 1 && x.tables[0].name == s.tables[0].name && slices.Equal(conditions(x.SQL, d), named)
			})
		}) {
			return s.tables[0].name, r.Locking
		}
	}
	return "", ""
}

// LockedTable gives the group with locks for its reads of a table.
func (g *Group) LockedTable(name string, d lex.Dialect) *Group {
	return g.Locked(g.reads(d, func(_ int, s *Step) bool { return len(s.tables) == 1 && s.tables[0].name == name }))
}

// reads gives the plain reads, of rows that are rows of tables or of an aggregate of such rows, of which a condition holds. It is given the unit's place.
func (g *Group) reads(d lex.Dialect, which func(unit int, s *Step) bool) (reads []Read) {
	for i, u := range g.Units {
		for j, s := range u.Steps {
			if with := s.locking(d); with != "" && which(i, s) {
				reads = append(reads, Read{i, j, s.SQL, with})
			}
		}
	}
	return reads
}

// locking gives a plain read with a lock; empty: it is none, or cannot have one.
func (s *Step) locking(d lex.Dialect) string {
	if len(s.verbs()) != 1 {
		return ""
	}
	v := &s.verbs()[0]
	if inner := s.counted(); inner != "" {
		return strings.Replace(s.SQL, inner, inner+" FOR UPDATE", 1)
	}
	switch {
	case v.Verb != "select" || v.Distinct || v.Window || v.SetOperation || v.HasSubquery || v.Locking.Lock != statement.LockNone:
		return ""
	case !v.Aggregate, d == lex.MySQL:
		return strings.TrimRight(strings.TrimSpace(s.SQL), "; \n") + " FOR UPDATE"
	}
	// PostgreSQL locks no rows for an aggregate, but those of a query in FROM (manual, SELECT, The Locking Clause).
	c := &v.Clauses
	if len(v.Tables) != 1 || v.Tables[0].Ref == "" || c.From == "" || c.GroupBy+c.Having+c.Window+c.With+c.Limit != "" {
		return ""
	}
	from := regexp.MustCompile(`(?i)\bfrom\s+`+regexp.QuoteMeta(c.From)).FindAllStringIndex(s.SQL, 2)
	if len(from) != 1 {
		return ""
	}
	rows := statement.Clauses{From: c.From, Where: c.Where}
	return s.SQL[:from[0][1]-len(c.From)] + "(" + rows.Query("*") + " FOR UPDATE) AS " + v.Tables[0].Ref
}

// plainRows and notRows tell a query in FROM whose rows are those of one table, as ORMs write it to count them.
var (
	plainRows = regexp.MustCompile(`(?is)^\(\s*(select\b.*)\)\s*(?:as\s+)?["\x60\w]+\s*$`)
	notRows   = regexp.MustCompile(`(?i)\b(?:distinct|group|having|union|intersect|except|limit|offset|fetch|window|over|with|for)\b|\(\s*select\b|\b(?:count|sum|min|max|avg)\s*\(|[()]\s*$`)
)

// counted gives the query in FROM whose rows a step counts: SELECT count(*) FROM (SELECT ... FROM doctor WHERE on_call) AS x. Empty: it is no such step.
func (s *Step) counted() string {
	v := &s.verbs()[0]
	if v.Verb != "select" || !v.Aggregate || v.Distinct || v.Window || v.SetOperation || v.Locking.Lock != statement.LockNone || len(s.tables) != 1 || len(v.Tables) != 2 {
		return ""
	}
	c := &v.Clauses
	m := plainRows.FindStringSubmatch(c.From)
	if m == nil || c.Where+c.GroupBy+c.Having+c.Window+c.With+c.Limit != "" || notRows.MatchString(m[1]) || strings.Count(s.SQL, m[1]) != 1 {
		return ""
	}
	return m[1]
}

// Locked gives the group with locks for some of its reads.
func (g *Group) Locked(reads []Read) *Group {
	return g.with(func(i int, u *Unit) *Unit {
		c := u.copied()
		for _, r := range reads {
			if r.Unit == i {
				s := c.Steps[r.Step]
				s.SQL = r.Locking
				s.tables = slices.Clone(s.tables)
				for n := range s.tables {
					s.tables[n].write = true
				}
			}
		}
		return c
	})
}

// Split reports whether one of the group's units has more than one transaction.
func (g *Group) Split() bool {
	return slices.ContainsFunc(g.Units, func(u *Unit) bool { return u.txns > 1 })
}

// OneTransaction gives the group with each unit as one transaction.
func (g *Group) OneTransaction() *Group {
	return g.with(func(_ int, u *Unit) *Unit {
		c := u.copied()
		c.Steps = slices.DeleteFunc(c.Steps, func(s *Step) bool {
			return slices.ContainsFunc(s.verbs(), func(v statement.Statement) bool {
				return v.Control.Verb == statement.ControlBegin || v.Control.Verb == statement.ControlCommit
			})
		})
		if len(c.Steps) == 0 {
			return c
		}
		around := func(like *Step, sql string, verb statement.ControlVerb) *Step {
			return &Step{N: like.N, Session: u.Session, Statement: like.Statement, SQL: sql, info: like.info, start: like.start, took: like.took,
				form:   []statement.Statement{{Text: sql, Verb: strings.ToLower(sql), Control: statement.Control{Verb: verb}}},
				Answer: answer.Answer{Results: []answer.Result{{}}}}
		}
		c.Steps = append([]*Step{around(c.Steps[0], "BEGIN", statement.ControlBegin)}, c.Steps...)
		c.Steps = append(c.Steps, around(c.Steps[len(c.Steps)-1], "COMMIT", statement.ControlCommit))
		c.txns = 1
		return c
	})
}

// Computed gives the group with UPDATEs that compute the new value from the row where the application computed it from what it had read, and leave alone
// what it wrote back as it was. sql is one of them; empty: there are none.
func (g *Group) Computed(d lex.Dialect) (c *Group, sql string) {
	c = g.with(func(_ int, u *Unit) *Unit {
		v := u.copied()
		flows := u.flows(d)
		for i, s := range u.Steps {
			if text, ok := s.computed(slices.DeleteFunc(slices.Clone(flows), func(f Flow) bool { return f.To != i }), d); ok {
				v.Steps[i].SQL, sql = text, text
			}
		}
		return v
	})
	return c, sql
}

// computed gives a step's text with values that the server computes, where flows say that the application did.
func (s *Step) computed(flows []Flow, d lex.Dialect) (text string, ok bool) {
	literals, list := flow.Literals(s.SQL, d), assignments(s.SQL, d)
	values := map[int]string{} // by place in list; empty: it is left out
	for _, f := range flows {
		if f.Literal >= len(literals) || literals[f.Literal].Clause != "set" || !plainName.MatchString(literals[f.Literal].Column) {
			continue
		}
		l := literals[f.Literal]
		at := slices.IndexFunc(list, func(a span) bool { return a.from <= l.At && l.End <= a.to })
		constant, number := new(big.Rat).SetString(f.Constant)
		switch {
		case at < 0:
		case f.back:
			values[at] = ""
		case f.Kind == flow.Plus && number && constant.Sign() < 0:
			ok, values[at] = true, s.SQL[list[at].from:l.At]+l.Column+" - "+strings.TrimPrefix(f.Constant, "-")+s.SQL[l.End:list[at].to]
		case f.Kind == flow.Plus && number:
			ok, values[at] = true, s.SQL[list[at].from:l.At]+l.Column+" + "+f.Constant+s.SQL[l.End:list[at].to]
		}
	}
	if !ok {
		return "", false
	}
	var kept []string
	for i, a := range list {
		if value, changed := values[i]; !changed {
			kept = append(kept, s.SQL[a.from:a.to])
		} else if value != "" {
			kept = append(kept, value)
		}
	}
	return strings.TrimRight(s.SQL[:list[0].from]+strings.Join(kept, ", ")+s.SQL[list[len(list)-1].to:], "; \n"), true
}

// span is a part of a text.
type span struct{ from, to int }

// assignments finds those of an UPDATE.
func assignments(sql string, d lex.Dialect) (list []span) {
	depth, in := 0, false
	for t := range lex.Tokens(sql, d) {
		switch {
		case t.Kind == lex.Space || t.Kind == lex.Comment:
			continue
		case t.Text == "(":
			depth++
		case t.Text == ")":
			depth--
		case depth > 0:
		case !in && t.Is("set"):
			in, list = true, append(list, span{})
			continue
		case flow.EndsSet(t), t.Text == ";":
			in = false
		case in && t.Text == ",":
			list = append(list, span{})
			continue
		}
		if n := len(list) - 1; in {
			if list[n].to == 0 {
				list[n].from = t.At
			}
			list[n].to = t.At + len(t.Text)
		}
	}
	return list
}

// Unique gives definitions of which each refuses the second of two rows that the group's units look for in vain and then insert, and which no key does yet.
func (g *Group) Unique(keys Keys, d lex.Dialect) (list []string) {
	for _, u := range g.Units {
		for i, s := range u.Steps {
			for _, columns := range u.lookedFor(i, d) {
				into := s.verbs()[0].Targets()[0]
				sql := "CREATE UNIQUE INDEX wirecheck_once ON " + into.SQL + " (" + strings.Join(columns, ", ") + ")"
				if !keys.Within(into.Name, columns) && !slices.Contains(list, sql) {
					list = append(list, sql)
				}
			}
		}
	}
	return list
}

// lookedFor gives the columns by which a unit has looked for the row that a step inserts, of each such read.
func (u *Unit) lookedFor(step int, d lex.Dialect) (list [][]string) {
	s := u.Steps[step]
	if len(s.verbs()) != 1 || s.verbs()[0].Insert == nil || len(s.verbs()[0].Targets()) != 1 {
		return nil
	}
	for _, read := range u.Steps[:step] {
		if len(read.verbs()) != 1 || read.verbs()[0].Verb != "select" || len(read.tables) != 1 || read.tables[0].name != strings.ToLower(s.verbs()[0].Targets()[0].Name) {
			continue
		}
		if columns := inserted(read.SQL, s.SQL, d); columns != nil {
			list = append(list, columns)
		}
	}
	return list
}

// Expected reports whether a unit has asked whether the row is there that a step inserts: then it knows what a unique key says that refuses the row.
func (u *Unit) Expected(step int, d lex.Dialect) bool { return len(u.lookedFor(step, d)) > 0 }

// inserted gives the columns of a read's condition, if an INSERT gives all of them the values that the read looked for.
func inserted(read, insert string, d lex.Dialect) (columns []string) {
	values := map[string]string{}
	for _, l := range flow.Literals(insert, d) {
		values[l.Column] = l.Value
	}
	for _, l := range flow.Literals(read, d) {
		if l.Clause != "where" {
			continue // LIMIT 1: whether there is any
		}
		if v, ok := values[l.Column]; !ok || v != l.Value || !plainName.MatchString(l.Column) {
			return nil
		}
		columns = append(columns, l.Column)
	}
	return columns
}

// Besides gives the group with one more definition in its state.
func (g *Group) Besides(definition string) *Group {
	c, state := *g, *g.State
	state.Besides = append(slices.Clone(state.Besides), definition)
	c.State = &state
	return &c
}

// Ordered gives the group with the writes of each unit in one order for all: by table, and then by the values of their conditions. It is nil if that
// changes nothing, or if a unit computes with what came before.
func (g *Group) Ordered(d lex.Dialect) *Group {
	changed := false
	c := g.with(func(_ int, u *Unit) *Unit {
		v := u.copied()
		var at []int
		for i, s := range v.Steps {
			if len(s.verbs()) == 1 && (s.verbs()[0].Verb == "update" || s.verbs()[0].Verb == "delete") && len(s.tables) == 1 {
				at = append(at, i)
			}
		}
		if len(at) < 2 || slices.ContainsFunc(u.flows(d), func(f Flow) bool { return slices.Contains(at, f.To) }) {
			return v
		}
		steps := make([]*Step, 0, len(at))
		for _, i := range at {
			steps = append(steps, v.Steps[i])
		}
		key := func(s *Step) string { return s.tables[0].name + " " + strings.Join(conditions(s.SQL, d), " ") }
		slices.SortStableFunc(steps, func(a, b *Step) int { return strings.Compare(key(a), key(b)) })
		for n, i := range at {
			if v.Steps[i] != steps[n] {
				changed = true
			}
		}
		places := make([]int, 0, len(at))
		for _, i := range at {
			places = append(places, v.Steps[i].N)
		}
		for n, i := range at {
			v.Steps[i] = steps[n]
			v.Steps[i].N = places[n]
		}
		return v
	})
	if !changed {
		return nil
	}
	return c
}
