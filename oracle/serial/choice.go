package serial

import (
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/statement"
)

// sameChoice reports whether LIMIT has left the same rows, by a unique key of their table, in all answers that it cut off in both executions: then what else
// stands in these rows says as much as other answers do.
func (m *Masks) sameChoice(s, would *schedule.Schedule) bool {
	for p := range m.cuts {
		if !m.cutOff(s, p) || !m.cutOff(would, p) {
			continue
		}
		a, b := m.chosen(s, p), m.chosen(would, p)
		if a == nil || !slices.Equal(a, b) {
			return false
		}
	}
	return true
}

// chosen gives the rows at a place by a unique key; nil: it is not known which rows they are.
func (m *Masks) chosen(s *schedule.Schedule, p string) (rows []string) {
	var st *schedule.Step
	for i := range s.Steps {
		if place(s.Steps[i].Session, s.Steps[i].Name) == p {
			if st != nil {
				return nil
			}
			st = &s.Steps[i]
		}
	}
	x := &st.Statement
	if len(x.Tables) != 1 || x.Tables[0].Kind != statement.SourceTable || x.Aggregate || x.Distinct || x.Window {
		return nil
	}
	table := strings.ToLower(x.Tables[0].Name)
	for _, key := range m.keys[table] {
		if slices.ContainsFunc(key, func(column string) bool { return m.counters[table+"."+column] }) && inserts(s, table) {
			continue // its values tell other rows in each execution
		}
		if rows = byKey(x, &st.Answer, key); rows != nil {
			return rows
		}
	}
	return nil
}

// byKey gives the values of a key in the rows of an answer; nil: not all of it is there.
func byKey(x *statement.Statement, a *answer.Result, key []string) (rows []string) {
	at := make([]int, len(key))
	from := source{columns: x.Columns}
	for i, column := range key {
		at[i] = -1
		for n, c := range a.Columns {
			if from.column(n, strings.ToLower(c.Name)) == strings.ToLower(column) {
				at[i] = n
			}
		}
		if at[i] < 0 {
			return nil
		}
	}
	for _, row := range a.Rows {
		text := ""
		for _, i := range at {
			if row[i] == nil {
				return nil
			}
			text += answer.Text(row[i]) + "\n"
		}
		rows = append(rows, text)
	}
	slices.Sort(rows)
	return rows
}

// inserts reports whether a session puts rows into a table, as far as the statements tell.
func inserts(s *schedule.Schedule, table string) bool {
	return slices.ContainsFunc(s.Steps, func(st schedule.Step) bool {
		x := &st.Statement
		return x.Unparsed || x.Verb != "select" && x.Verb != "update" && x.Verb != "delete" &&
			slices.ContainsFunc(x.Targets(), func(t statement.TableUse) bool { return strings.EqualFold(t.Name, table) })
	})
}
