package replay

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/statement"
	"wirecheck/trace/flow"
	"wirecheck/trace/lex"
)

// Guarded reports whether a step is an UPDATE whose condition names a column that it sets: SET version = 4 ... AND version = 3, SET used = true ... AND NOT
// used, SET n = n - 1 ... AND n > 0. Such a condition asks for what the application has read before, or needs; that no row is changed tells the application
// that it came too late. SET name = 'a' ... AND name = 'a' asks for nothing: it leaves the column as it is.
func (s *Step) Guarded(d lex.Dialect) bool {
	if len(s.verbs()) != 1 || s.verbs()[0].Verb != "update" {
		return false
	}
	literals := flow.Literals(s.SQL, d)
	stays := func(column string) bool {
		return slices.ContainsFunc(literals, func(a flow.Literal) bool {
			return a.Clause == "set" && strings.EqualFold(a.Column, column) && slices.ContainsFunc(literals, func(b flow.Literal) bool {
				return b.Clause == "where" && a.Column == b.Column && flow.Same(a.Value, b.Value)
			})
		})
	}
	for t := range lex.Tokens(s.verbs()[0].Clauses.Where, d) {
		if t.Kind != lex.Word && t.Kind != lex.Name {
			continue
		}
		name := strings.Trim(t.Text, "\"`")
		if slices.ContainsFunc(s.verbs()[0].Assignments, func(a statement.Assignment) bool { return strings.EqualFold(a.Column, name) && !stays(name) }) {
			return true
		}
	}
	return false
}

// CommittedBefore reports whether the unit has committed a write before a step: giving up at that step then undoes only a part of what the unit did.
func (u *Unit) CommittedBefore(step int) bool {
	open, wrote := false, false
	for _, s := range u.Steps[:step] {
		for _, v := range s.verbs() {
			switch v.Control.Verb {
			case statement.ControlBegin:
				open, wrote = true, false
			case statement.ControlCommit:
				if wrote {
					return true
				}
				open = false
			case statement.ControlRollback:
				open, wrote = false, false
			case statement.ControlNone:
				if wrote = wrote || v.Verb != "select" && slices.ContainsFunc(v.Tables, func(t statement.TableUse) bool { return t.Target }); wrote && !open {
					return true
				}
			}
		}
	}
	return false
}

// constant is an expression that stands for the same value whoever sets it.
var constant = regexp.MustCompile(`(?i)^\s*(?:'(?:[^']|'')*'(?:::\w+)?|-?[0-9.]+|true|false|null|default)\s*$`)

// Alike reports whether units write nothing but the same constants to the same rows: who comes second changes nothing. A value that one of them has computed
// from what it read is no constant.
func Alike(units []*Unit, d lex.Dialect) bool {
	var first []string
	for i, u := range units {
		var writes []string
		flows := u.flows(d)
		for j, s := range u.Steps {
			if !slices.ContainsFunc(s.verbs(), func(v statement.Statement) bool { return len(v.Targets()) > 0 }) {
				continue
			}
			computed := func(f Flow) bool { return f.To == j && f.Kind != flow.Copy }
			if len(s.verbs()) != 1 || s.verbs()[0].Verb != "update" || slices.ContainsFunc(flows, computed) ||
				slices.ContainsFunc(s.verbs()[0].Assignments, func(a statement.Assignment) bool { return !constant.MatchString(a.Expr) }) {
				return false
			}
			writes = append(writes, s.SQL)
		}
		if i == 0 {
			first = writes
		}
		if len(writes) == 0 || !slices.Equal(writes, first) {
			return false
		}
	}
	return true
}

// Within reports whether one of a table's keys has no columns but some of these: no two rows can be alike in all of them already.
func (k Keys) Within(table string, columns []string) bool {
	return statement.Whole(k[strings.ToLower(table)], func(c string) bool { return slices.Contains(columns, strings.ToLower(c)) }) != nil
}
