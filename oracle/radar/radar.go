// Package radar is the oracle of Song et al., "Detecting Metadata-Related Logic Bugs in Database Systems via Raw Database
// Construction" (Radar, PVLDB 17(8), 2024). Optional metadata (constraints, indexes, defaults, generated columns, partitions) has no
// say in what a query answers (section 2.3). So a query answers the same on the database and on its raw database, which has the same
// tables, columns, types and rows, and no optional metadata (section 3.4).
//
// Beyond the paper: the raw database is filled with the values that were written, as far as the text tells, and not from the
// database under test, whose wrong value it would copy; queries inside transactions are compared, after the transaction's own
// writes; and the paper's false alarms (section 4.6.2) are recognised.
package radar

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"wirecheck/answer"
	"wirecheck/oracle"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// Descriptor describes the oracle.
var Descriptor = oracle.Oracle{
	Name: "radar",
	Doc: "a query answers differently once optional metadata is gone\n\n" +
		"Each query is executed alone, in the state that the transactions before it and its own left, and on a raw database with the same rows " +
		"and without constraints, indexes, defaults, generated columns and partitions (Radar, VLDB'24). It needs two databases of its own.",
}

// Stage is what the oracle executes with: a stage that tells what a session sees.
type Stage interface {
	schedule.Stage
	// Visible reads all tables as a session sees them now, its own uncommitted writes included, without loss.
	Visible(ctx context.Context, session int) ([]answer.Table, error)
}

// Options is what the oracle needs besides.
type Options struct {
	Describe func(sql string) ([]statement.Statement, error) // of the dialect
	Define   func(sql string) statement.Definition           // of the dialect
	Raw      schedule.Stage                                  // another database, for the twin
	// Executed says that the schedule was executed on the stage's database.
	Executed bool
}

// Check compares the queries of a schedule. It executes the schedule's transactions one after the other on the stage, and each query
// that can be compared also on the raw database.
func Check(ctx context.Context, s *schedule.Schedule, stage Stage, o Options) (schedule.Verdict, error) {
	c := &checker{s: s, o: o, stage: stage, family: s.DBMS().Dialect != product.DialectPostgres, lite: s.DBMS().Dialect == product.DialectSQLite, unchecked: s.Unchecked(), whys: map[*schedule.Step]string{}}
	if c.v.Unknown = s.Incomplete(); c.v.Unknown != "" {
		return c.v, nil
	}
	if !slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return c.reason(&st.Statement) == "" }) {
		for i := range s.Steps {
			if st := &s.Steps[i].Statement; st.Verb == "select" {
				c.v.Note("%s: not compared: %s", st.Text, c.reason(st))
			}
		}
		return c.v, nil
	}
	for _, session := range s.Sessions {
		for _, st := range session.Setup {
			if autoNull(st.Text) {
				c.v.Unknown = "with sql_auto_is_null, which columns have AUTO_INCREMENT decides what IS NULL finds"
				return c.v, nil
			}
		}
	}
	c.alone = len(s.Sessions) == 1
	c.twin = Construct(s.Setup, c.family, o)
	if s.Raw != nil {
		c.twin = given(s.Raw, c.family, o)
	}
	if c.twin.Why != "" {
		c.v.Unknown = "no raw database: " + c.twin.Why
		return c.v, nil
	}
	if err := c.prepare(ctx); err != nil || c.v.Unknown != "" {
		return c.v, err
	}
	err := s.Serial(ctx, stage, schedule.Serial{
		Before: func(st *schedule.Step, now answer.State) (bool, error) { return c.before(ctx, st, now) },
		After:  c.after,
	})
	return c.v, err
}

type checker struct {
	s      *schedule.Schedule
	o      Options
	stage  Stage
	family bool
	lite   bool // SQLite, which names tables as the MySQL family does, and has none of its peculiarities
	twin   *Twin
	v      schedule.Verdict
	stale  bool           // the raw database's rows are not those that are seen now
	wrote  []bool         // by session: its transaction has written
	failed []bool         // by session: a query failed its transaction
	ended  string         // why nothing more is compared
	known  []answer.Table // the raw database's tables
	held   []answer.Table // the rows that it has, or was given; a table that is not known has no columns
	shown  []bool         // by session: it shows values otherwise than servers do by default
	made   []string       // how the raw database was made
	loaded bool           // it got rows that the database has
	zeros  bool           // a NOT NULL column has a zero date

	unchecked map[*schedule.Step]bool
	whys      map[*schedule.Step]string // see why
	alone     bool                      // the schedule has one session: each query is answered in the state that the serial execution finds
	turn      int                       // counts the queries that the raw database was asked in place of those of the schedule
	expected  int                       // how many more of them it was told of
}

// prepare makes both databases, and fills the raw one.
func (c *checker) prepare(ctx context.Context) error {
	n := len(c.s.Sessions)
	if err := c.stage.Prepare(ctx, c.s.Setup, n); err != nil {
		return err
	}
	c.made = c.twin.Setup
	first := c.o.Raw.Prepare(ctx, c.twin.Setup, max(n, lanes))
	if first != nil && c.s.Raw != nil && ctx.Err() == nil {
		c.v.Unknown = "the raw database cannot be made: " + first.Error()
		return nil
	}
	if first != nil && ctx.Err() == nil {
		c.twin.unsure, c.made = first.Error(), c.twin.Bare
		if second := c.o.Raw.Prepare(ctx, c.twin.Bare, max(n, lanes)); second != nil {
			c.v.Unknown = "the raw database cannot be made: " + second.Error()
			return nil
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	c.wrote, c.failed, c.shown = make([]bool, n), make([]bool, n), make([]bool, n)
	for i, session := range c.s.Sessions {
		for _, st := range session.Setup {
			c.shown[i] = c.shown[i] || showing.MatchString(st.Text)
			if st.Control.Verb == statement.ControlAutocommit { // there are no transactions on the raw database
				continue
			}
			if err := c.set(ctx, i, st.Text); err != nil {
				return err
			}
		}
	}
	rows, err := c.stage.Tables(ctx)
	if err != nil {
		return err
	}
	if c.known, err = c.o.Raw.Tables(ctx); err != nil {
		return err
	}
	rows, ok := c.fit(rows)
	if !ok || c.s.Raw != nil {
		return nil
	}
	return c.fill(ctx, rows)
}

// fit makes of the database's tables what the raw database's tables hold.
func (c *checker) fit(tables []answer.Table) ([]answer.Table, bool) {
	out, there := make([]answer.Table, len(c.known)), make([]bool, len(c.known))
	for i, k := range c.known {
		out[i] = answer.Table{Name: k.Name, Columns: k.Columns}
	}
	for _, t := range tables {
		name := c.twin.root(t.Name)
		i := slices.IndexFunc(out, func(k answer.Table) bool { return k.Name == name })
		if i < 0 {
			c.v.Unknown = fmt.Sprintf("the raw database has no table %s", name)
			return nil, false
		}
		there[i] = true
		places := make([]int, len(out[i].Columns))
		for n, col := range out[i].Columns {
			places[n] = slices.IndexFunc(t.Columns, func(k answer.Column) bool { return k.Name == col.Name })
		}
		if len(places) != len(t.Columns) || slices.Contains(places, -1) || t.Name == name && !slices.IsSorted(places) {
			c.v.Unknown = fmt.Sprintf("table %s has other columns than its twin", t.Name)
			return nil, false
		}
		c.zeros = c.zeros || !c.lite && c.twin.zero(t)
		for _, row := range t.Rows {
			fitted := make([]answer.Value, len(places))
			for n, place := range places {
				fitted[n] = row[place]
			}
			out[i].Rows = append(out[i].Rows, fitted)
		}
	}
	if i := slices.Index(there, false); i >= 0 {
		c.v.Unknown = fmt.Sprintf("the raw database has a table %s, and the database does not", out[i].Name)
		return nil, false
	}
	return out, true
}

// zero reports whether a table has a zero date in a column that is NOT NULL.
func (t *Twin) zero(rows answer.Table) bool {
	known := t.tables[rows.Name]
	if known == nil || !t.family {
		return false
	}
	for n, col := range rows.Columns {
		if !slices.ContainsFunc(known.columns, func(d statement.ColumnDefinition) bool { return strings.EqualFold(d.Name, col.Name) && d.NotNull }) {
			continue
		}
		if slices.ContainsFunc(rows.Rows, func(row []answer.Value) bool { return strings.HasPrefix(string(row[n]), "0000-00-00") }) {
			return true
		}
	}
	return false
}

// fill compares the rows that the database has with those that were written, and completes those of the raw database by what the
// server computed: defaults, generated columns, counters. Where the text does not tell what rows there are, the raw database gets the
// rows that the database has.
func (c *checker) fill(ctx context.Context, rows []answer.Table) error {
	var load []answer.Table
	c.held = slices.Clone(rows)
	for i, t := range rows {
		raw := c.known[i]
		if answer.DiffRows(raw.Rows, t.Rows).Equal() {
			continue
		}
		known := c.twin.tables[t.Name]
		if c.twin.unsure != "" || known == nil || known.unsure != "" || !known.complete(t.Columns) {
			load = append(load, t)
			continue
		}
		want, got := known.written(raw), known.written(t)
		d := answer.DiffRows(want.Rows, got.Rows)
		if d.Equal() {
			load = append(load, t)
			continue
		}
		if err := c.stored(ctx, want, got, d); err != nil {
			return err
		}
		if len(want.Columns) < len(t.Columns) { // what the server computed cannot be told apart
			load = append(load, t)
		} else {
			c.held[i] = answer.Table{}
		}
	}
	return c.load(ctx, load)
}

// complete reports whether the text has all columns: others are inherited, or come from a query or another table.
func (t *table) complete(columns []answer.Column) bool {
	return len(columns) == len(t.columns) && !slices.ContainsFunc(columns, func(c answer.Column) bool {
		return !slices.ContainsFunc(t.columns, func(d statement.ColumnDefinition) bool { return strings.EqualFold(d.Name, c.Name) })
	})
}

// written gives a table without the columns that the server computes.
func (t *table) written(full answer.Table) answer.Table {
	out := answer.Table{Name: full.Name}
	var places []int
	for n, col := range full.Columns {
		if !slices.ContainsFunc(t.columns, func(c statement.ColumnDefinition) bool {
			return strings.EqualFold(c.Name, col.Name) && t.computed[c.Name]
		}) {
			out.Columns = append(out.Columns, col)
			places = append(places, n)
		}
	}
	for _, row := range full.Rows {
		cut := make([]answer.Value, len(places))
		for n, place := range places {
			cut[n] = row[place]
		}
		out.Rows = append(out.Rows, cut)
	}
	return out
}

// stored reports rows that are not those that were written.
func (c *checker) stored(ctx context.Context, want, got answer.Table, d answer.Difference) error {
	f := oracle.Finding{Kind: oracle.KindViolation, Name: oracle.NameFinalState, Tables: []string{want.Name}, Difference: &oracle.Difference{
		Rule:     "the rows that INSERT statements wrote are stored alike whatever optional metadata the table has (Radar, section 2.3)",
		Table:    want.Name,
		Expected: schedule.SideOf(want.Columns, d.Missing, len(want.Rows)-len(d.Missing)), Observed: schedule.SideOf(got.Columns, d.Extra, len(got.Rows)-len(d.Extra)),
	}}
	return c.report(ctx, f)
}

// report completes a finding and keeps it.
func (c *checker) report(ctx context.Context, f oracle.Finding) (err error) {
	if f.Difference.Reference, err = c.reference(ctx, f.Difference.SQL); err != nil {
		return err
	}
	f.Oracle, f.Class, f.Level, f.Promised, f.Seen = Descriptor.Name, oracle.Radar, c.s.Level, f.Kind == oracle.KindViolation, 1
	c.v.Add(f)
	return nil
}

// reference is how the raw database was made, and the query on it. Where it got the rows that the database has, these say how.
func (c *checker) reference(ctx context.Context, query string) ([]string, error) {
	made := c.made
	if c.loaded {
		rows, err := c.o.Raw.Tables(ctx)
		if err != nil {
			return nil, err
		}
		made = slices.Clone(c.twin.Bare)
		for _, t := range rows {
			if len(t.Rows) > 0 {
				made = append(made, c.insert(t))
			}
		}
	}
	var list []string
	for _, sql := range made {
		list = append(list, oracle.RawDatabase+": "+sql)
	}
	if query != "" {
		list = append(list, oracle.RawDatabase+": "+query)
	}
	return list, nil
}

// insert writes a table's rows as a statement, for people. The server makes numbers of texts, too; an ENUM's value and JSON are no numbers.
func (c *checker) insert(t answer.Table) string {
	rows := make([]string, len(t.Rows))
	for i, row := range t.Rows {
		values := make([]string, len(row))
		for n, v := range row {
			text := strings.ReplaceAll(string(v), "'", "''")
			switch {
			case v == nil:
				values[n] = "NULL"
			case c.lite && number.Match(v): // where a column has no type, a text would stay one
				values[n] = text
			case c.family && !c.lite && !printable(text):
				values[n] = fmt.Sprintf("X'%x'", []byte(v))
			case c.family && !c.lite:
				values[n] = "'" + strings.ReplaceAll(text, `\`, `\\`) + "'"
			default:
				values[n] = "'" + text + "'"
			}
		}
		rows[i] = "(" + strings.Join(values, ", ") + ")"
	}
	return fmt.Sprintf("INSERT INTO %s VALUES %s", c.s.DBMS().Quote(t.Name), strings.Join(rows, ", "))
}

// number is a whole number whose text is that of its value.
var number = regexp.MustCompile(`^(0|-?[1-9][0-9]{0,17})$`)

func printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// before is asked in front of each statement of the serial execution.
func (c *checker) before(ctx context.Context, st *schedule.Step, now answer.State) (bool, error) {
	if c.ended != "" {
		return false, nil
	}
	if now == answer.Failed || c.failed[st.Session] {
		return st.Statement.Verb != "select", nil
	}
	sql := &st.Statement
	switch {
	case sql.DDL && now == answer.Open && (!c.family || c.lite):
		c.end("a definition in a transaction: %s", sql.Text)
		return false, nil
	case schedule.Temporary(sql):
		c.end("a temporary table is the session's own: %s", sql.Text)
		return false, nil
	case sql.Control.Verb == statement.ControlLocks:
		c.end("which tables are locked decides which can be queried: %s", sql.Text)
		return false, nil
	case autoNull(sql.Text):
		c.end("with sql_auto_is_null, which columns have AUTO_INCREMENT decides what IS NULL finds")
		return false, nil
	case sql.Control.Verb == statement.ControlDatabase:
		c.end("another database: %s", sql.Text)
		return false, nil
	case deferral.MatchString(sql.Text):
		return true, nil // the raw database has no constraints
	case setting.MatchString(sql.Text) && now == answer.Open && !c.family && sql.Control.Verb != statement.ControlLevel && !schedule.SetsAccess(c.s.DBMS(), sql):
		c.end("a setting that ends or is undone with its transaction: %s", sql.Text)
		return false, nil
	case setting.MatchString(sql.Text):
		// The twin's session needs it, too, unless it is about transactions: there is none on the raw database.
		c.shown[st.Session] = c.shown[st.Session] || showing.MatchString(sql.Text)
		if v := sql.Control.Verb; (v == statement.ControlNone || v == statement.ControlReset) && !schedule.SetsAccess(c.s.DBMS(), sql) {
			if err := c.set(ctx, st.Session, sql.Text); err != nil {
				return false, err
			}
		}
	case sql.Verb == "script":
		c.end("several statements whose answers cannot be told apart: %s", sql.Text)
		return false, nil
	case sql.DDL:
		return c.define(ctx, st)
	case sql.Verb == "select":
		if why := c.why(st); why != "" {
			c.v.Note("%s: not compared: %s", sql.Text, why)
			return st.Leaves(), nil
		}
		if c.stale {
			if err := c.follow(ctx, st.Session, now); err != nil || c.ended != "" {
				return false, err
			}
		}
		return false, c.compare(ctx, st, now)
	}
	return true, nil
}

// follow gives the raw database the rows that a session sees.
func (c *checker) follow(ctx context.Context, session int, now answer.State) error {
	read := c.stage.Tables
	if now.InTransaction() {
		if c.shown[session] {
			c.end("in a transaction of a session that shows values otherwise, rows cannot be read without loss")
			return nil
		}
		read = func(ctx context.Context) ([]answer.Table, error) { return c.stage.Visible(ctx, session) }
	}
	tables, err := read(ctx)
	if err != nil {
		return err
	}
	rows, ok := c.fit(tables)
	if !ok {
		c.end("%s", c.v.Unknown)
		return nil
	}
	var changed []answer.Table
	for i, t := range rows {
		if len(c.held) == 0 || c.held[i].Columns == nil || !answer.DiffRows(c.held[i].Rows, t.Rows).Equal() {
			changed = append(changed, t)
		}
	}
	if err := c.load(ctx, changed); err != nil {
		return err
	}
	c.held = rows
	c.stale, c.expected = false, 0
	return nil
}

func (c *checker) end(format string, args ...any) {
	c.ended = fmt.Sprintf(format, args...)
	c.v.Unknown = c.ended
}

// after notes what a statement did to the rows.
func (c *checker) after(st, got *schedule.Step) error {
	n := st.Session
	c.failed[n] = got.After == answer.Failed
	switch v := st.Statement.Control.Verb; {
	case st.Statement.Verb == "select" && len(st.Statement.Targets()) > 0:
		c.stale, c.wrote[n] = true, true
	case st.Statement.Verb == "select" || setting.MatchString(st.Statement.Text):
		if st.Statement.Volatile != "" {
			c.stale = true // it may call what writes
		}
	case v == statement.ControlCommit || v == statement.ControlRollback || v == statement.ControlRollbackTo || v == statement.ControlBegin:
		c.stale = c.stale || c.wrote[n]
		if v != statement.ControlRollbackTo {
			c.wrote[n] = false
		}
	case v == statement.ControlNone:
		c.stale, c.wrote[n] = true, true
	}
	if got.After != answer.Open && c.wrote[n] { // rolled back, or committed
		c.stale = true
	}
	return nil
}

// define executes a definition on both sides.
func (c *checker) define(ctx context.Context, st *schedule.Step) (bool, error) {
	d := c.o.Define(st.Statement.Text)
	if d.Why != "" {
		c.end("the raw database cannot follow: %s: %s", d.Why, st.Statement.Text)
		return false, nil
	}
	got, err := c.stage.Execute(ctx, st.Session, st.Statement.Text)
	if err != nil || got.Failed() {
		return false, err
	}
	c.stale = true
	c.twin.define(&d)
	clear(c.whys)
	if d.Raw == "" {
		return false, nil
	}
	// The raw database's tables are loaded by what Prepare remembered: a changed one is a new setup.
	c.twin.Bare = append(c.twin.Bare, d.Raw)
	c.made = append(slices.Clone(c.made), d.Raw)
	if err := c.o.Raw.Prepare(ctx, c.twin.Bare, max(len(c.s.Sessions), lanes)); err != nil {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		c.end("the raw database cannot follow: %v", err)
		return false, nil
	}
	c.held = nil
	c.known, err = c.o.Raw.Tables(ctx)
	return false, err
}
