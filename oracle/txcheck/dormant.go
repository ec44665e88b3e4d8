package txcheck

import (
	"regexp"
	"slices"
	"strings"

	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// referring finds a foreign key: the table that it refers to, the columns, and the actions.
var referring = regexp.MustCompile("(?i)\\bREFERENCES\\s+[`\"]?(\\w+)[`\"]?\\s*(?:\\(([^)]*)\\))?" +
	`((?:\s*\bMATCH\s+\w+|\s*\bON\s+(?:DELETE|UPDATE)\s+(?:CASCADE|RESTRICT|NO\s+ACTION|SET\s+(?:NULL|DEFAULT)(?:\s*\([^)]*\))?))*)`)

var (
	onDelete  = regexp.MustCompile(`(?i)\bON\s+DELETE\s+(?:CASCADE|SET)\b`)
	computing = regexp.MustCompile(`(?i)\bGENERATED\b|\bAS\s*\(`)
	onUpdate  = regexp.MustCompile(`(?i)\bON\s+UPDATE\s+(?:CASCADE|SET)\b`)
)

// dormant gives the setup without the actions of foreign keys that no statement of the schedule has set off: where nothing deleted rows
// of the table that is referred to, or changed the columns, the key is like one without actions (SQL:2016, part 2, 11.8; MySQL manual,
// 15.1.20.5; PostgreSQL manual, CREATE TABLE). An action only ever follows a statement on that table, or another action.
func dormant(setup string, tables []table, steps []schedule.Step) string {
	through := slices.ContainsFunc(steps, func(st schedule.Step) bool { // a view
		return slices.ContainsFunc(st.Statement.Targets(), func(u statement.TableUse) bool {
			return !slices.ContainsFunc(tables, func(t table) bool { return strings.EqualFold(t.name, u.Name) })
		})
	})
	if through {
		return setup
	}
	computed := computing.MatchString(setup)
	return referring.ReplaceAllStringFunc(setup, func(key string) string {
		m := referring.FindStringSubmatch(key)
		if slices.ContainsFunc(steps, func(st schedule.Step) bool { return wakes(m, computed, &st) }) {
			return key
		}
		return strings.TrimSuffix(key, m[3])
	})
}

// wakes reports whether a statement sets off the action of a foreign key, as referring has found it.
func wakes(m []string, computed bool, step *schedule.Step) bool {
	table, columns, actions := m[1], strings.Split(m[2], ","), m[3]
	if m[2] == "" || computed { // a column that is referred to may be computed from one that is assigned
		columns = nil
	}
	st := &step.Statement
	return !idle(step) && (onDelete.MatchString(actions) && deletes(st, table) || onUpdate.MatchString(actions) && updates(st, table, columns))
}

// awakens reports whether a statement sets off the action of a foreign key of the setup that refers to its own table.
func awakens(setup string, x *plannedStatement) bool {
	computed := computing.MatchString(setup)
	return slices.ContainsFunc(referring.FindAllStringSubmatch(setup, -1), func(m []string) bool {
		return strings.EqualFold(m[1], x.target.name) && wakes(m, computed, x.step)
	})
}

// targets reports whether a statement may write a table in a way that its verb does not tell. plain says that it may write the table, and
// that its verb does.
func targets(st *statement.Statement, table string) (plain, strange bool) {
	switch {
	case st.Unparsed, st.DDL:
		return false, true
	case st.Control.Verb != statement.ControlNone, st.Verb == "set":
		return false, false
	}
	for _, u := range st.Targets() {
		if !strings.EqualFold(u.Name, table) {
			continue
		}
		if u.Place != statement.PlaceMain {
			return false, true
		}
		plain = true
	}
	switch st.Verb {
	case "select", "insert", "update", "delete", "replace":
		return plain, false
	}
	return false, true
}

// idle reports whether a statement has changed no row: it was refused, or met none. In the orders of txcheck it does the same, or that is a difference.
func idle(step *schedule.Step) bool {
	st := &step.Statement
	return step.Answer.Err != nil || (st.Verb == "delete" || st.Verb == "update") && len(st.Targets()) == 1 && st.Targets()[0].Place == statement.PlaceMain && step.Answer.Affected == 0
}

func deletes(st *statement.Statement, table string) bool {
	plain, strange := targets(st, table)
	return strange || plain && (st.Verb == "delete" || st.Verb == "replace")
}

// updates reports whether a statement may change one of the columns; none: any column.
func updates(st *statement.Statement, table string, columns []string) bool {
	plain, strange := targets(st, table)
	if strange || !plain {
		return strange
	}
	assigned := st.Assignments
	switch {
	case st.Verb == "update":
	case st.Verb == "replace":
		return true
	case st.Verb == "insert" && st.Insert != nil && st.Insert.Conflict:
		assigned = st.Insert.Updates
	default:
		return false
	}
	return len(columns) == 0 || len(assigned) == 0 || slices.ContainsFunc(assigned, func(a statement.Assignment) bool {
		return a.Partial || a.Column == "" || slices.ContainsFunc(columns, func(c string) bool {
			return strings.EqualFold(strings.Trim(c, " `\"\t\n"), strings.Trim(a.Column, "`\""))
		})
	})
}
