// Package filing writes a case in the forms in which those who make a DBMS take it: a script that a person follows with the product's
// own client, in one terminal or several, and a test file as the product's own tests have it.
package filing

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/backends/engine"
	"wirecheck/history/prose"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/report"
)

// Case is what is filed.
type Case struct {
	Engine   engine.Descriptor
	Level    product.Level
	Schedule *schedule.Schedule // an execution that showed the finding
	Finals   []string           // queries at the end
	Finding  *oracle.Finding
	Settings Settings
}

// Single reports whether the finding is about single queries: then the isolation level and the other sessions have no say.
func (c *Case) Single() bool {
	return c.Finding.Difference != nil && len(c.Finding.Difference.Parts) > 0
}

// act is one thing that a person does, or sees, in a terminal.
type act struct {
	session int // of the schedule
	sql     string
	raw     bool   // in the raw database
	waits   bool   // it has no answer yet
	on      []int  // the sessions that it waits for, as far as they are known
	resumed bool   // a statement that waited has its answer; nothing is typed
	refused string // the code of its error
	note    string // its answer, and what is wrong with it
}

// acts are what is done, in an order that can be followed: a session that waits is given nothing before it goes on.
func (c *Case) acts() []act {
	if c.Single() {
		return c.single()
	}
	type moment struct {
		at int
		act
	}
	var list []moment
	s := c.Schedule
	for i := range s.Steps {
		st := &s.Steps[i]
		a := act{session: st.Session, sql: st.Statement.Text, on: st.For, note: c.note(st)}
		if st.Answer.Err != nil {
			a.refused = st.Answer.Err.Code
		}
		if !st.Waited {
			list = append(list, moment{st.Done, a})
			continue
		}
		sent := a
		sent.waits, sent.note = true, ""
		a.resumed = true
		list = append(list, moment{st.Sent, sent}, moment{st.Done, a})
	}
	slices.SortStableFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var out []act
	for _, m := range list {
		out = append(out, m.act)
	}
	finals := c.final()
	if len(finals) > 0 { // the tables were read when the lab had ended all transactions
		out = append(out, c.rollbacks()...)
	}
	for _, sql := range finals {
		out = append(out, act{sql: sql, note: c.finalNote(sql)})
	}
	return out
}

// rollbacks end the transactions that the steps leave open.
func (c *Case) rollbacks() (out []act) {
	open := map[int]bool{}
	for i := range c.Schedule.Steps {
		st := &c.Schedule.Steps[i]
		open[st.Session] = st.After.InTransaction() && st.Effect != answer.EffectGone
	}
	for n := range c.Schedule.Sessions {
		if open[n] {
			out = append(out, act{session: n, sql: "ROLLBACK"})
		}
	}
	return out
}

// finalNote tells the answer of a query at the end, as far as it is known: that of a whole table.
func (c *Case) finalNote(sql string) string {
	if d := c.Finding.Difference; d != nil && d.Table != "" && strings.Contains(sql, d.Table) {
		return "expected: " + report.SideText(d.Expected) + "; observed: " + report.SideText(d.Observed)
	}
	for _, table := range c.Schedule.Final {
		if sql == "SELECT * FROM "+table.Name {
			return report.SideText(schedule.SideOf(table.Columns, table.Rows, 0))
		}
	}
	return ""
}

// final are the queries at the end: the case's own, or one of the table that differs.
func (c *Case) final() []string {
	if d := c.Finding.Difference; len(c.Finals) == 0 && d != nil && d.Table != "" {
		return []string{"SELECT * FROM " + d.Table}
	}
	return c.Finals
}

// note tells a step's answer, and what it should have been.
func (c *Case) note(st *schedule.Step) string {
	d := c.Finding.Difference
	if d != nil && d.Step == st.Name && d.SQL == st.Statement.Text {
		return "expected: " + report.SideText(d.Expected) + "; observed: " + report.SideText(d.Observed)
	}
	if text := told(st.Answer); text != "" || st.Answer.Err != nil || len(st.Statement.Targets()) == 0 {
		return text
	}
	return "0 rows"
}

// told is an answer in one line.
func told(a answer.Result) string {
	switch {
	case a.Err != nil:
		return prose.Line(a.Err.Text(), prose.Width)
	case a.Columns != nil:
		return report.SideText(schedule.SideOf(a.Columns, a.Rows, 0))
	case a.Affected > 0:
		return prose.Count(int(a.Affected), "row")
	}
	return ""
}

// single are the transactions one after the other, as an oracle of single queries executes them, up to the query, and its parts.
func (c *Case) single() []act {
	d, s := c.Finding.Difference, c.Schedule
	var out []act
	for _, t := range s.Transactions() {
		for _, i := range t.Steps {
			st := &s.Steps[i]
			if st.Name != d.Step || s.Sessions[st.Session].Name != d.Session {
				if c.Finding.Class != oracle.DQE { // it tries conditions on the rows of the setup
					a := act{session: st.Session, sql: st.Statement.Text}
					if st.Answer.Err != nil {
						a.refused = st.Answer.Err.Code
					}
					out = append(out, a)
				}
				continue
			}
			return append(out, c.parts(st.Session)...)
		}
	}
	return append(out, c.parts(0)...)
}

// parts are the statements that the rule compares.
func (c *Case) parts(session int) (out []act) {
	d := c.Finding.Difference
	if c.Finding.Class == oracle.DQE {
		for _, line := range d.Reference { // the columns that number the rows
			if _, own := strings.CutPrefix(line, d.Session+": "); !own {
				out = append(out, act{session: session, sql: line})
			}
		}
	}
	for i, part := range d.Parts {
		a := act{session: session, sql: part.SQL, raw: part.Database != "", note: report.SideText(part.Answer)}
		if i == 0 && c.Finding.Class == oracle.Radar && len(d.Wrong()) == 0 {
			a.note = "observed: " + a.note + "; without the optional metadata: " + report.SideText(d.Parts[1].Answer)
		}
		if part.Wrong {
			a.note = "observed, which is wrong: " + a.note
			if part.SQL == d.SQL {
				a.note += "; expected: " + report.SideText(d.Expected)
			}
		}
		if c.Finding.Class == oracle.DQE && !strings.HasPrefix(part.SQL, "SELECT") { // what it did, and undo it
			write := a
			write.note = ""
			if strings.HasPrefix(part.SQL, "DELETE") {
				a.note = "rows that are gone: " + a.note
			}
			a.sql = c.accessed(part.SQL)
			out = append(out, act{session: session, sql: "BEGIN"}, write, a, act{session: session, sql: "ROLLBACK"})
			continue
		}
		out = append(out, a)
	}
	last := len(out) - 1
	for last >= 0 && out[last].note == "" { // ROLLBACK
		last--
	}
	if last >= 0 && len(d.Wrong()) == 0 && slices.Contains([]oracle.Class{oracle.TLP, oracle.NoREC, oracle.DQE}, c.Finding.Class) {
		out[last].note += "; these answers contradict each other: " + report.SideText(d.Expected) + " by one, " + report.SideText(d.Observed) + " by another"
	}
	return out
}

// accessed is the query that shows which rows a statement of DQE accessed.
func (c *Case) accessed(sql string) string {
	table := c.Finding.Tables[0]
	if strings.HasPrefix(sql, "UPDATE") {
		return "SELECT wc_dqe_id FROM " + table + " WHERE wc_dqe_hit = 1"
	}
	return "SELECT wc_dqe_id FROM " + table
}

// raw is how the raw database is made; nil: there is none.
func (c *Case) raw() (setup []string) {
	d := c.Finding.Difference
	if c.Finding.Class != oracle.Radar || d == nil {
		return nil
	}
	for _, line := range d.Reference {
		if sql, ok := strings.CutPrefix(line, oracle.RawDatabase+": "); ok && !slices.ContainsFunc(d.Parts, func(p oracle.Part) bool { return p.SQL == sql }) {
			setup = append(setup, sql)
		}
	}
	return setup
}

// sessions are the sessions that do something, with what each sets first.
func (c *Case) sessions(acts []act) (list []int) {
	for _, a := range acts {
		if !slices.Contains(list, a.session) {
			list = append(list, a.session)
		}
	}
	slices.Sort(list)
	return list
}

// settings are what a session sets before its first statement, beside what every session of the case sets (Settings.session).
func (c *Case) settings(session int) (list []string) {
	if !c.Single() && c.Engine.SetLevel != nil && !c.Engine.Embedded {
		list = append(list, strings.Split(c.Engine.SetLevel(c.Level.SQL), "; ")...)
	}
	for i := range c.Schedule.Sessions[session].Setup {
		list = append(list, c.Schedule.Sessions[session].Setup[i].Text)
	}
	return list
}

// ended is a statement with its end.
func ended(sql string) string { return strings.TrimRight(sql, "; \t\r\n") + ";" }

// waitNote says whom a statement waits for.
func waitNote(a act, name func(int) string) string {
	if len(a.on) == 0 {
		return "waits"
	}
	names := make([]string, len(a.on))
	for i, n := range a.on {
		names[i] = name(n)
	}
	return fmt.Sprintf("waits for %s", strings.Join(names, ", "))
}
