package replay

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/history/prose"
	"wirecheck/statement"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Flow is data that went from a step's answer through the application into a later statement of the same unit.
type Flow struct {
	From, To int // steps of the unit
	Literal  int // of To's text
	Kind     flow.Kind
	Constant string // what is added or put to it

	row, column int
	back        bool // To writes the value back to the column that it was read from
}

// String says it for people; steps have the names that a scenario gives them.
func (f Flow) String() string {
	switch f.Kind {
	case flow.Plus:
		if strings.HasPrefix(f.Constant, "-") {
			return fmt.Sprintf("step %d writes what step %d read minus %s", f.To+1, f.From+1, f.Constant[1:])
		}
		return fmt.Sprintf("step %d writes what step %d read plus %s", f.To+1, f.From+1, f.Constant)
	case flow.Prefix:
		return fmt.Sprintf("step %d writes what step %d read followed by %q", f.To+1, f.From+1, f.Constant)
	case flow.Suffix:
		return fmt.Sprintf("step %d writes %q followed by what step %d read", f.To+1, f.Constant, f.From+1)
	}
	return fmt.Sprintf("step %d uses the value that step %d read", f.To+1, f.From+1)
}

// cell is a value that a step read.
type cell struct {
	step, row, column int
	name              string
	value             string
	rows, columns     int
	flag              bool // the MySQL family's BOOLEAN is a TINYINT, and has 0 or 1
}

const maxCells = 400 // of one answer: what an application computes with is not a long list

// cells are the values that an answer to a statement brought, by the names of the columns that they come from: ORMs give these others.
func cells(step int, sql string, a *answer.Answer) (list []cell) {
	for i := len(a.Results) - 1; i >= 0; i-- {
		r := &a.Results[i]
		if r.Columns == nil && r.LastInsertID != 0 {
			return []cell{{step: step, name: "id", value: fmt.Sprint(r.LastInsertID), rows: 1, columns: 1}}
		}
		if len(r.Rows)*len(r.Columns) > maxCells {
			return nil
		}
		names := make([]string, len(r.Columns))
		for k, c := range r.Columns {
			names[k] = aliased(sql, strings.ToLower(c.Name))
		}
		for j, row := range r.Rows {
			for k, v := range row {
				if v != nil && k < len(r.Columns) {
					flag := r.Columns[k].Type == "tinyint" && (string(v) == "0" || string(v) == "1")
					list = append(list, cell{step, j, k, names[k], string(v), len(r.Rows), len(r.Columns), flag})
				}
			}
		}
		return list
	}
	return nil
}

// flows recognises where values of a unit's statements come from.
func (u *Unit) flows(d lex.Dialect) (flows []Flow) {
	var known []cell // read so far
	inputs := map[string]bool{}
	for j, s := range u.Steps {
		for n, l := range flow.Literals(s.SQL, d) {
			if f, ok := u.flow(j, n, l, known, inputs, d); ok {
				flows = append(flows, f)
			} else {
				inputs[l.Value] = true
			}
		}
		known = append(known, cells(j, s.SQL, &s.Answer)...)
	}
	return flows
}

// flow finds where one literal comes from: the nearest read of a column that it belongs to, or else the nearest read that explains it. Small ids are alike
// in all tables.
func (u *Unit) flow(to, n int, l flow.Literal, known []cell, inputs map[string]bool, d lex.Dialect) (Flow, bool) {
	likely := -1
	for i := len(known) - 1; i >= 0; i-- {
		c := known[i]
		f := Flow{From: c.step, To: to, Literal: n, row: c.row, column: c.column}
		if l.Column != "" && (l.Clause == "set" || l.Clause == "values") && u.sameTable(c.step, to) && (c.name == l.Column || u.alone(c, l, to, d)) && u.addressed(c, to, d) {
			if kind, constant, ok := flow.Relate(c.value, l.Value); ok && !(c.flag && kind == flow.Plus) { // it is set or taken away, not counted
				f.Kind, f.Constant, f.back = kind, constant, kind == flow.Copy && l.Clause == "set" && c.name == l.Column
				return f, true
			}
		}
		if c.value != l.Value {
			continue
		}
		if u.made(c, l, to) || l.Clause == "values" && u.Steps[c.step].asksCounter() || !inputs[l.Value] && u.belongs(c, l, to) {
			f.Kind = flow.Copy
			return f, true
		}
		if named := l.Column != "id" && (c.name == l.Column || c.name == "id" && strings.HasSuffix(l.Column, "id")); likely < 0 && !inputs[l.Value] && (named || telling(l.Value)) {
			likely = i
		}
	}
	if likely < 0 {
		return Flow{}, false
	}
	c := known[likely]
	return Flow{From: c.step, To: to, Literal: n, row: c.row, column: c.column, Kind: flow.Copy}, true
}

// belongs reports whether a literal stands in the column that a value was read from, or in one that holds ids of the table that it was read from.
func (u *Unit) belongs(c cell, l flow.Literal, to int) bool {
	if c.name == l.Column && meet(u.Steps[c.step], u.Steps[to], func(_, _ use) bool { return true }) {
		return true
	}
	return c.name == "id" && slices.ContainsFunc(u.Steps[c.step].tables, func(t use) bool { return belongsTo(l.Column, t.name, u.Steps[to]) })
}

// made reports whether a value is the id of a row that the unit has inserted, in a column of a later statement that refers to such rows.
func (u *Unit) made(c cell, l flow.Literal, to int) bool {
	s := u.Steps[c.step]
	if c.name != "id" || len(s.verbs()) != 1 || s.verbs()[0].Verb != "insert" || len(s.verbs()[0].Targets()) != 1 {
		return false
	}
	return l.Column != "" && belongsTo(l.Column, strings.ToLower(s.verbs()[0].Targets()[0].Name), u.Steps[to])
}

// alone reports whether the only value that a SELECT gave is what the only number that a statement sets can come from: SELECT uses AS n.
func (u *Unit) alone(c cell, l flow.Literal, to int, d lex.Dialect) bool {
	from := u.Steps[c.step]
	if c.rows != 1 || c.columns != 1 || len(from.verbs()) != 1 || from.verbs()[0].Verb != "select" || counting.MatchString(from.SQL) {
		return false
	}
	if l.Clause == "values" {
		return strings.HasPrefix(c.name, "max") && nextTo(c.value, l.Value)
	}
	return !slices.ContainsFunc(flow.Literals(u.Steps[to].SQL, d), func(other flow.Literal) bool { return other.Clause == "set" && other.Number && other.At != l.At })
}

// counting finds a read that counts rows: an application decides by the number, and sets nothing to it.
var counting = regexp.MustCompile(`(?i)\bcount\s*\(`)

func nextTo(read, written string) bool {
	a, ok1 := new(big.Int).SetString(read, 10)
	b, ok2 := new(big.Int).SetString(written, 10)
	return ok1 && ok2 && new(big.Int).Sub(b, a).IsInt64() && new(big.Int).Sub(b, a).Int64() == 1
}

// telling reports whether a value is such that it is not met by chance.
func telling(v string) bool {
	if flow.IsNumber(v) {
		return len(strings.TrimLeft(v, "-0")) >= 2
	}
	return len(v) >= 3
}

// sameTable reports whether a step read a table that another one writes.
func (u *Unit) sameTable(from, to int) bool {
	return meet(u.Steps[from], u.Steps[to], func(_, b use) bool { return b.write })
}

// addressed reports whether the row that a value stands in is the one that the statement writes: the only one, if the statement's condition names no other
// value in one of its columns, or one that has a value which the condition names.
func (u *Unit) addressed(c cell, to int, d lex.Dialect) bool {
	named, other := false, false
	for _, l := range flow.Literals(u.Steps[to].SQL, d) {
		if l.Clause != "where" {
			continue
		}
		for _, beside := range cells(c.step, u.Steps[c.step].SQL, &u.Steps[c.step].Answer) {
			if beside.row == c.row && beside.column != c.column {
				named = named || beside.value == l.Value
				other = other || beside.name == l.Column && !flow.Same(beside.value, l.Value)
			}
		}
	}
	return named || c.rows == 1 && !other
}

// Lane is a unit with what is known of its data flow.
type Lane struct {
	Unit  *Unit
	Flows []Flow
	made  *made // nil: not known
}

// NewLane recognises a unit's data flow.
func NewLane(u *Unit, d lex.Dialect) *Lane { return &Lane{Unit: u, Flows: u.flows(d)} }

// Recompute gives the statements that the application would have sent, had it read what is in answers (nil: the step was not
// executed), where the relation is known. mark says why it might have done something else; empty: it would not.
func (l *Lane) Recompute(answers []*answer.Answer, d lex.Dialect) (texts []string, mark string) {
	u := l.Unit
	changed := l.changed(answers, func(Flow) bool { return true })
	for j, s := range u.Steps {
		texts = append(texts, replaceLiterals(s.SQL, changed[j], d))
	}
	for j, s := range u.Steps {
		if j >= len(answers) || answers[j] == nil {
			continue
		}
		if why := l.unlike(j, &s.Answer, answers[j], d); why != "" && l.goesOn(j) && !l.likePeer(j, answers, d) {
			return texts, fmt.Sprintf("session s%d: %s, and what the application then does is not known: %s", u.Session, why, prose.Query(s.SQL, prose.Width))
		}
	}
	return texts, ""
}

// changed are the values that flows bring to literals, by step and literal's place.
func (l *Lane) changed(answers []*answer.Answer, which func(Flow) bool) map[int]map[string]string {
	u := l.Unit
	changed := map[int]map[string]string{}
	for _, f := range l.Flows {
		if f.From >= len(answers) || answers[f.From] == nil || answers[f.From].Err != nil || !which(f) {
			continue
		}
		for _, c := range cells(f.From, u.Steps[f.From].SQL, answers[f.From]) {
			if c.row == f.row && c.column == f.column {
				if v, ok := f.Kind.Apply(c.value, f.Constant); ok {
					if changed[f.To] == nil {
						changed[f.To] = map[string]string{}
					}
					changed[f.To][fmt.Sprint(f.Literal)] = v
				}
			}
		}
	}
	return changed
}

// Named gives texts as the application would have sent them in an execution in which the rows that it inserted have got other ids.
func (l *Lane) Named(texts []string, answers []*answer.Answer, d lex.Dialect) (named []string) {
	changed := l.changed(answers, func(f Flow) bool {
		from := l.Unit.Steps[f.From]
		return f.Kind == flow.Copy && len(from.verbs()) == 1 && from.verbs()[0].Verb == "insert"
	})
	for j, text := range texts {
		named = append(named, replaceLiterals(text, changed[j], d))
	}
	return named
}

// goesOn reports whether the unit writes or commits something after a step.
func (l *Lane) goesOn(step int) bool {
	writes := (*Step).Writes
	later := l.Unit.Steps[step+1:]
	// An UPDATE that found another number of rows: would it have committed?
	return slices.ContainsFunc(later, writes) || len(later) > 0 && writes(l.Unit.Steps[step])
}

// unlike says how an answer differs from what the application got, in what it may have decided by; empty if it does not.
func (l *Lane) unlike(step int, was, is *answer.Answer, d lex.Dialect) string {
	if is.Err != nil || was.Err != nil {
		if (is.Err == nil) != (was.Err == nil) && is.Err == nil {
			return "a statement that had failed is done"
		}
		return "" // the server prevented it
	}
	if len(was.Results) != len(is.Results) {
		return "another number of results"
	}
	for i := range was.Results {
		a, b := &was.Results[i], &is.Results[i]
		if a.Columns == nil {
			if a.Affected != b.Affected && !(d == lex.MySQL && l.indifferent(step, d)) {
				return fmt.Sprintf("%s changed in place of %d", prose.Count(b.Affected, "row"), a.Affected)
			}
			continue
		}
		if len(a.Rows) != len(b.Rows) {
			return fmt.Sprintf("%s in place of %d", prose.Count(len(b.Rows), "row"), len(a.Rows))
		}
		for r := range a.Rows {
			for c := range a.Rows[r] {
				if !answer.SameValue(a.Rows[r][c], b.Rows[r][c]) && !slices.ContainsFunc(l.Flows, func(f Flow) bool { return f.From == step && f.row == r && f.column == c }) &&
					!l.byServer(cellPlace{step, i, r, c}, a.Rows[r][c], b.Rows[r][c]) {
					return fmt.Sprintf("it read %q in place of %q", b.Rows[r][c], a.Rows[r][c])
				}
			}
		}
	}
	return ""
}

// indifferent reports whether the number of rows that an UPDATE changed says nothing but whether they had the new values already: the MySQL
// family counts those that really change (manual, mysql_affected_rows()). It does if the condition is on none of the columns that are
// set; optimistic locking is the other case.
func (l *Lane) indifferent(step int, d lex.Dialect) bool {
	s := l.Unit.Steps[step]
	if len(s.verbs()) != 1 || s.verbs()[0].Verb != "update" {
		return false
	}
	return s.verbs()[0].Clauses.Limit == "" && !s.Guarded(d) &&
		!slices.ContainsFunc(flow.Literals(s.SQL, d), func(l flow.Literal) bool { return l.Clause == "where" && l.Column == "" })
}

// replaceLiterals puts other values in the place of some literals.
func replaceLiterals(sql string, values map[string]string, d lex.Dialect) string {
	sql = strings.TrimRight(strings.TrimSpace(sql), "; \n")
	if len(values) == 0 {
		return sql
	}
	var b strings.Builder
	at := 0
	for n, l := range flow.Literals(sql, d) {
		v, ok := values[fmt.Sprint(n)]
		if !ok || v == l.Value {
			continue
		}
		b.WriteString(sql[at:l.At])
		switch {
		case l.Number && flow.IsNumber(v):
			b.WriteString(v)
		case d == lex.MySQL:
			b.WriteString(quoteMySQL(v))
		default:
			b.WriteString(quotePostgres(v))
		}
		at = l.End
	}
	b.WriteString(sql[at:])
	return b.String()
}

// Superseded tells which of a unit's reads say nothing that matters: the application read rows that it then locked, or that an UPDATE
// then computed from as they were by then (IsoRel, 3.4).
func (u *Unit) Superseded(d lex.Dialect) []bool {
	out := make([]bool, len(u.Steps))
	for i, s := range u.Steps {
		if len(s.verbs()) != 1 || s.verbs()[0].Verb != "select" || s.verbs()[0].Locking.Lock != "" || len(s.tables) != 1 {
			continue
		}
		for _, later := range u.Steps[i+1:] {
			if len(later.verbs()) != 1 || len(later.tables) != 1 || later.tables[0].name != s.tables[0].name || !slices.Equal(conditions(s.SQL, d), conditions(later.SQL, d)) {
				continue
			}
			v := &later.verbs()[0]
			out[i] = out[i] || v.Locking.Lock != "" || v.Verb == "update" && computes(later.SQL, v, d)
		}
	}
	return out
}

// conditions are the literals of a statement's conditions.
func conditions(sql string, d lex.Dialect) (list []string) {
	for _, l := range flow.Literals(sql, d) {
		if l.Clause == "where" {
			list = append(list, l.Column+"="+l.Value)
		}
	}
	slices.Sort(list)
	return list
}

// computes reports whether an UPDATE sets nothing to a value that its text gives: a literal, or a constant without one (SET used = true).
func computes(sql string, v *statement.Statement, d lex.Dialect) bool {
	return !slices.ContainsFunc(flow.Literals(sql, d), func(l flow.Literal) bool { return l.Clause == "set" && l.Column != "" }) &&
		!slices.ContainsFunc(v.Assignments, func(a statement.Assignment) bool {
			return slices.Contains([]string{"true", "false", "null", "default"}, strings.ToLower(strings.TrimSpace(a.Expr)))
		})
}
