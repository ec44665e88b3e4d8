// Package dqe is the oracle of Song et al., "Testing Database Systems via Differential Query Execution" (ICSE 2023): SELECT, UPDATE and
// DELETE with the same condition access the same rows (section III). Two columns are added to each table, which number its rows and
// tell which were updated (section III-B).
package dqe

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "dqe",
	Doc: "SELECT, UPDATE and DELETE with the same condition access different rows\n\n" +
		"Differential query execution (ICSE 2023) with each condition on a single table, on the rows of the setup. It needs a database of its own.",
}

// Options is what the oracle needs besides.
type Options struct {
	Describe func(sql string) ([]statement.Statement, error) // of the dialect
	Define   func(sql string) statement.Definition           // of the dialect
}

// The columns that are added.
const (
	rowID   = "wc_dqe_id"
	updated = "wc_dqe_hit"
)

// Check tries the conditions of a schedule's SELECT, UPDATE and DELETE statements on the rows that the setup makes.
func Check(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, o Options) (schedule.Verdict, error) {
	c := &checker{s: s, o: o, stage: stage, family: s.DBMS().Dialect != product.DialectPostgres, lite: s.DBMS().Dialect == product.DialectSQLite, keys: map[string][]string{}, tried: map[string]bool{}}
	if c.v.Unknown = s.Incomplete(); c.v.Unknown == "" {
		c.read()
	}
	if c.v.Unknown != "" {
		return c.v, nil
	}
	var list []*schedule.Step
	for i := range s.Steps {
		st := &s.Steps[i]
		switch st.Statement.Verb {
		case "select", "update", "delete":
		default:
			continue
		}
		if why := c.reason(&st.Statement); why != "" {
			c.v.Note("%s: not tried: %s", st.Statement.Text, why)
			continue
		}
		if key := st.Statement.Clauses.From + "\x00" + st.Statement.Clauses.Where; !c.tried[key] {
			c.tried[key] = true
			list = append(list, st)
		}
	}
	if len(list) == 0 {
		return c.v, nil
	}
	if err := stage.Prepare(ctx, c.setup(), len(s.Sessions)); err != nil {
		if ctx.Err() != nil {
			return c.v, context.Cause(ctx)
		}
		c.v.Unknown = "columns cannot be added: " + err.Error()
		return c.v, nil
	}
	for i := range s.Sessions {
		for _, st := range s.Sessions[i].Setup {
			if _, err := stage.Execute(ctx, i, st.Text); err != nil {
				return c.v, err
			}
		}
	}
	for _, st := range list {
		if err := c.try(ctx, st); err != nil {
			return c.v, err
		}
	}
	return c.v, nil
}

type checker struct {
	s       *schedule.Schedule
	o       Options
	stage   schedule.Stage
	family  bool
	lite    bool                // SQLite, which names tables as the MySQL family does
	keys    map[string][]string // of tables whose rows have no other number than their key: WITHOUT ROWID
	tables  []string            // in the order of their definitions
	cascade bool                // a deletion may delete more
	tried   map[string]bool
	v       schedule.Verdict
}

var (
	cascades = regexp.MustCompile(`(?i)\bon\s+delete\s+(cascade|set)\b`)
	engines  = regexp.MustCompile(`(?i)\bengine\s*=?\s*(myisam|memory|heap|aria|csv|archive|merge|blackhole)\b`)
)

// read finds the tables.
func (c *checker) read() {
	for _, block := range c.s.Setup {
		statements, err := c.o.Describe(block)
		if err != nil {
			c.v.Unknown = err.Error()
			return
		}
		for i := range statements {
			if !statements[i].DDL {
				continue
			}
			text := statements[i].Text
			switch d := c.o.Define(text); {
			case d.Why != "":
				c.v.Unknown = fmt.Sprintf("%s: %s", d.Why, text)
			case d.Kind == "trigger":
				c.v.Unknown = "a trigger may write other rows: " + text
			case d.Kind == "create table" && engines.MatchString(text):
				c.v.Note("table %s: its engine takes nothing back", d.Table)
			case d.Kind == "create table" && d.Parent == "":
				c.tables = append(c.tables, d.Table)
				if c.lite && len(d.Configs) > 0 {
					i := slices.IndexFunc(d.Keys, func(k statement.KeyDefinition) bool { return k.Kind == "PRIMARY KEY" })
					c.keys[d.Table] = d.Keys[max(i, 0)].Columns
				}
			case d.Kind == "drop table", d.Kind == "alter table" && d.Rewrites:
				c.tables = slices.DeleteFunc(c.tables, func(name string) bool { return name == d.Table })
			}
			c.cascade = c.cascade || cascades.MatchString(text)
		}
	}
}

// setup is the case's own, with the added columns.
func (c *checker) setup() []string {
	out := slices.Clone(c.s.Setup)
	for _, t := range c.tables {
		name := c.quote(t)
		if c.lite {
			number := "rowid"
			if key := c.keys[t]; key != nil {
				order := make([]string, len(key))
				for i, column := range key {
					order[i] = c.quote(column)
				}
				columns := strings.Join(order, ", ")
				number = fmt.Sprintf("(SELECT COUNT(*) FROM %s AS wc_other WHERE (wc_other.%s) <= (%s))", name, strings.Join(order, ", wc_other."), name+"."+strings.Join(order, ", "+name+"."))
				if len(key) == 1 {
					number = fmt.Sprintf("(SELECT COUNT(*) FROM %s AS wc_other WHERE wc_other.%s <= %s.%s)", name, columns, name, columns)
				}
			}
			out = append(out, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s INT", name, rowID), fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s INT DEFAULT 0", name, updated),
				fmt.Sprintf("UPDATE %s SET %s = %s", name, rowID, number))
			continue
		}
		if !c.family {
			out = append(out, fmt.Sprintf("ALTER TABLE %s ADD COLUMN IF NOT EXISTS %s serial, ADD COLUMN IF NOT EXISTS %s int DEFAULT 0", name, rowID, updated))
			continue
		}
		out = append(out, fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s BIGINT, ADD COLUMN %s INT DEFAULT 0", name, rowID, updated),
			"SET @wc_dqe = 0", fmt.Sprintf("UPDATE %s SET %s = (@wc_dqe := @wc_dqe + 1)", name, rowID))
	}
	return out
}

func (c *checker) quote(table string) string {
	if c.family {
		return "`" + strings.ReplaceAll(table, "`", "``") + "`"
	}
	parts := strings.SplitN(table, ".", 2)
	for i, p := range parts {
		parts[i] = `"` + strings.ReplaceAll(p, `"`, `""`) + `"`
	}
	return strings.Join(parts, ".")
}

// reason says why a statement's condition is not tried; empty: it is.
func (c *checker) reason(st *statement.Statement) string {
	if st.Verb == "select" || st.Unparsed {
		if why := schedule.Steady(st); why != "" {
			return why
		}
	}
	main := st.Main()
	switch {
	case st.Variables || st.Parameters > 0:
		return "it depends on what the session did before, or on parameters"
	case st.Volatile != "" && st.Verb != "select":
		return st.Volatile
	case st.Clauses.Where == "":
		return "it has no condition"
	case st.SetOperation || st.Clauses.With != "":
		return "it is not a plain statement on a table"
	case len(main) != 1 || main[0].Kind != statement.SourceTable || !slices.Contains(c.tables, c.name(main[0])):
		return "it is not about a single table of the setup"
	case st.Limit && st.Verb != "select":
		return "LIMIT"
	}
	return ""
}

func (c *checker) name(u statement.TableUse) string {
	if !c.family && u.Schema != "" && u.Schema != c.s.DBMS().DefaultSchema {
		return u.Schema + "." + u.Name
	}
	return u.Name
}

// Queries are the three statements with one condition, and the queries that tell which rows they accessed.
type Queries struct {
	Select         string
	Update, Hits   string // Hits tells which rows were updated
	Delete, Remain string // Remain tells which rows are left
}

// Translate makes the three statements of one statement's condition (section III-C).
func Translate(st *statement.Statement, family bool) Queries {
	u := st.Main()[0]
	from, where := st.Clauses.From, " WHERE "+st.Clauses.Where
	q := Queries{
		Select: "SELECT " + u.Ref + "." + rowID + " FROM " + from + where,
		Update: "UPDATE " + from + " SET " + updated + " = 1" + where, Hits: "SELECT " + rowID + " FROM " + u.SQL + " WHERE " + updated + " = 1",
		Delete: "DELETE FROM " + from + where, Remain: "SELECT " + rowID + " FROM " + u.SQL,
	}
	if family && u.Alias != "" { // MariaDB before 11.6 has no alias in DELETE of a single table
		q.Delete = "DELETE " + u.Ref + " FROM " + from + where
	}
	return q
}

// try executes the three statements.
func (c *checker) try(ctx context.Context, st *schedule.Step) error {
	q := Translate(&st.Statement, c.family && !c.lite)
	asked, err := schedule.Together(ctx, c.stage, st.Session, q.Select, q.Remain)
	if err != nil {
		return err
	}
	if e := first(asked...); e != nil {
		c.v.Note("%s: not compared: %s", q.Select, e.Text())
		return nil
	}
	chosen, all := asked[0], asked[1]
	if n := len(answer.DiffRows(answer.DistinctRows(all.Answer.Rows), all.Answer.Rows).Extra); n > 0 {
		c.v.Unknown = "the server did not number the rows"
		return nil
	}
	c.v.Compared++
	hits, err := c.within(ctx, st.Session, q.Update, q.Hits)
	if err != nil {
		return err
	}
	var removed *answer.Result
	if !c.cascade {
		left, err := c.within(ctx, st.Session, q.Delete, q.Remain)
		if err != nil {
			return err
		}
		if left != nil {
			removed = &answer.Result{Columns: left.Columns, Rows: answer.DiffRows(all.Answer.Rows, left.Rows).Missing}
		}
	}
	return c.compare(ctx, st, q, chosen.Answer, hits, removed)
}

func first(steps ...schedule.Step) *answer.Error {
	for _, st := range steps {
		if st.Answer.Err != nil {
			return st.Answer.Err
		}
	}
	return nil
}

// within executes a write and a query in a transaction that is taken back. It gives nil, and a note, if the write was refused:
// constraints may forbid it, and in strict mode the MySQL family refuses to write where a condition has values that it only
// warns of in a query (MySQL manual, 7.1.11, "Strict SQL Mode").
func (c *checker) within(ctx context.Context, session int, write, query string) (*answer.Result, error) {
	got, err := schedule.Together(ctx, c.stage, session, "BEGIN", write, query, "ROLLBACK")
	if err != nil {
		return nil, err
	}
	if len(got) < 4 {
		if _, err := c.stage.Execute(ctx, session, "ROLLBACK"); err != nil {
			return nil, err
		}
	}
	if e := first(got...); e != nil {
		c.v.Note("%s: not compared: %s", write, e.Text())
		return nil, nil
	}
	return &got[2].Answer, nil
}

// compare finds statements that accessed other rows than SELECT; nil: it was not executed.
func (c *checker) compare(ctx context.Context, st *schedule.Step, q Queries, chosen answer.Result, hits, removed *answer.Result) error {
	parts := []oracle.Part{schedule.PartOf(q.Select, "", chosen)}
	answers := []answer.Result{chosen}
	differs := -1
	for i, got := range []*answer.Result{hits, removed} {
		if got == nil {
			continue
		}
		if differs < 0 && !answer.DiffRows(chosen.Rows, got.Rows).Equal() {
			differs = len(parts)
		}
		parts, answers = append(parts, schedule.PartOf([]string{q.Update, q.Delete}[i], "", *got)), append(answers, *got)
	}
	if differs < 0 {
		return nil
	}
	want, got, opinion := chosen.Rows, answers[differs].Rows, ""
	truth, sql, err := c.truth(ctx, st)
	if err != nil {
		return err
	}
	by := "the condition's values, computed for each row by " + sql
	if truth == nil && len(answers) == 3 && !schedule.Nested(&st.Statement) { // what two of the three say
		by = "the two other statements, which agree"
		for i := range answers {
			if a, b := answers[i].Rows, answers[(i+1)%3].Rows; answer.DiffRows(a, b).Equal() {
				truth = a
			}
		}
	}
	if truth != nil {
		if against, err := c.s.Contradicted(ctx, c.stage, st.Session, &st.Statement, answer.Idle, len(truth)); err != nil {
			return err
		} else if against {
			truth = nil
		}
	}
	var wrong []int
	for i := range answers {
		if truth != nil && !answer.DiffRows(truth, answers[i].Rows).Equal() {
			wrong = append(wrong, i)
		}
	}
	if len(wrong) > 0 {
		want, got, differs = truth, answers[wrong[0]].Rows, wrong[0]
		opinion = by
	}
	for _, i := range wrong {
		parts[i].Wrong = true
	}
	name := c.s.Sessions[st.Session].Name
	expected, observed := schedule.Sides([]answer.Column{{Name: rowID}}, want, got, answer.DiffRows(want, got))
	reference := slices.Clone(c.setup()[len(c.s.Setup):])
	for _, part := range parts {
		reference = append(reference, name+": "+part.SQL)
	}
	f := oracle.Finding{
		Oracle: Descriptor.Name, Kind: oracle.KindViolation, Class: oracle.DQE, Name: oracle.NameResult, Level: c.s.Level, Promised: true, Seen: 1,
		Tables: []string{c.name(st.Statement.Main()[0])},
		Difference: &oracle.Difference{
			Rule: "DQE, section III: SELECT, UPDATE and DELETE with the same condition access the same rows (numbered in the order of the setup)",
			Step: st.Name, Session: name, SQL: parts[differs].SQL,
			Expected: expected, Observed: observed, Reference: reference, Parts: parts, Opinion: opinion,
		},
	}
	c.s.Permit(&f, st.Statement.Text)
	c.v.Add(f)
	return nil
}

// truth is a third opinion: the rows for which the condition, in the select list, has a value that is true; nil: there is none.
func (c *checker) truth(ctx context.Context, st *schedule.Step) (rows [][]answer.Value, sql string, err error) {
	if schedule.Nested(&st.Statement) {
		return nil, "", nil
	}
	sql = "SELECT " + st.Statement.Main()[0].Ref + "." + rowID + ", (" + st.Statement.Clauses.Where + ") FROM " + st.Statement.Clauses.From
	got, err := c.stage.Execute(ctx, st.Session, sql)
	if err != nil || got.Answer.Err != nil || len(got.Answer.Rows) == 0 {
		return nil, sql, err
	}
	rows = [][]answer.Value{}
	for _, row := range got.Answer.Rows {
		if len(row) != 2 {
			return nil, sql, nil
		}
		is, sure := schedule.True(row[1])
		if row[1] != nil && !sure {
			return nil, sql, nil
		}
		twice := slices.ContainsFunc(rows, func(o []answer.Value) bool { return answer.SameRow(o, row[:1]) })
		if is && !twice { // the column that numbers the rows is their key
			rows = append(rows, row[:1])
		}
	}
	return rows, sql, nil
}
