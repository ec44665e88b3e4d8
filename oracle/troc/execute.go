package troc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"wirecheck/answer"
	"wirecheck/oracle/schedule"
	"wirecheck/product"
	"wirecheck/statement"
)

// rowID is the column that identifies rows in the stage's tables (Troc, III-C: rowId).
const rowID = "wc_row_id"

// theater is the stage with the case's tables and a row id in each: a statement is executed on them unchanged, by the engine
// itself, on whatever view is loaded.
type theater struct {
	stage    schedule.Stage
	s        *schedule.Schedule
	visible  bool // the row id is an ordinary column: SELECT * shows it
	columns  map[string][]answer.Column
	names    []string          // of the tables, sorted
	loaded   map[string]string // by table: the key of the rows that are in it
	plain    bool              // the tables are without row ids at the moment
	settings [][]string        // by session: what was executed in it up to now that may change what a statement means
	applied  []int             // by session: how many of them were executed on the stage
	memo     map[string]*trial
	executed int
}

// trial is one execution of a statement on its views.
type trial struct {
	answer answer.Result
	reason answer.Reason
	// addressed are the rows that the statement's condition chose, by table, in the order in which the engine came to them; nil if
	// that cannot be asked for.
	addressed map[string][]int
	changed   map[string][]tuple // by table: rows with new values
	deleted   map[string][]int
	added     map[string][][]answer.Value
}

// effect is what an execution did to tables.
func (tr *trial) effect() []any { return []any{tr.addressed, tr.changed, tr.deleted, tr.added} }

// quote quotes a table's name, with its schema where it has one.
func quote(p *product.Product, name string) string {
	if schema, table, ok := strings.Cut(name, "."); ok && p.DefaultSchema != "" {
		return p.Quote(schema) + "." + p.Quote(table)
	}
	return p.Quote(name)
}

// staged is the setup of the stage: without the constraints that are looked at when a transaction ends, since a statement alone is a transaction there, and
// with a row id in the tables.
func staged(s *schedule.Schedule, tables []answer.Table) []string {
	return append(s.Prompt(true), adding(s.DBMS(), tables)...)
}

// adding makes the statements that give tables a row id.
func adding(p *product.Product, tables []answer.Table) (list []string) {
	invisible := ""
	if p.InvisibleColumns {
		invisible = " INVISIBLE"
	}
	for _, t := range tables {
		list = append(list, "ALTER TABLE "+quote(p, t.Name)+" ADD COLUMN "+rowID+" BIGINT NOT NULL DEFAULT 0"+invisible)
	}
	return list
}

// errRowID says that the stage could not be prepared for a reason that lies in the case.
type errRowID struct{ err error }

func (e errRowID) Error() string { return e.err.Error() }

// newTheater prepares the stage and reads what the setup left. The rows are numbered in the order in which they were read.
func newTheater(ctx context.Context, s *schedule.Schedule, stage schedule.Stage, tables []answer.Table) (*theater, map[string]relation, error) {
	n := len(s.Sessions)
	t := &theater{
		stage: stage, s: s, visible: !s.DBMS().InvisibleColumns, columns: map[string][]answer.Column{},
		loaded: map[string]string{}, settings: make([][]string, n), applied: make([]int, n), memo: map[string]*trial{},
	}
	for i := range s.Sessions {
		for j := range s.Sessions[i].Setup {
			t.set(i, &s.Sessions[i].Setup[j])
		}
	}
	if err := stage.Prepare(ctx, staged(s, tables), n); err != nil {
		if ctx.Err() != nil {
			return nil, nil, err
		}
		if again := stage.Prepare(ctx, s.Setup, n); again != nil {
			return nil, nil, fmt.Errorf("prepare the stage: %w", again)
		}
		return nil, nil, errRowID{fmt.Errorf("the tables cannot be given row ids: %w", err)}
	}
	read, err := stage.Tables(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("read the stage: %w", err)
	}
	start, next := map[string]relation{}, 1
	for _, table := range read {
		at := slices.IndexFunc(table.Columns, func(c answer.Column) bool { return c.Name == rowID })
		if at < 0 {
			return nil, nil, errRowID{fmt.Errorf("table %s has got no row id", table.Name)}
		}
		t.columns[table.Name] = slices.Delete(slices.Clone(table.Columns), at, at+1)
		t.names = append(t.names, table.Name)
		rel := relation{}
		for _, r := range table.Rows {
			rel = append(rel, tuple{next, slices.Delete(slices.Clone(r), at, at+1)})
			next++
		}
		start[table.Name] = rel
	}
	slices.Sort(t.names)
	return t, start, nil
}

// set notes a statement that may change what later statements of its session mean.
func (t *theater) set(session int, st *statement.Statement) {
	switch {
	case st.Control.Verb == statement.ControlAutocommit, st.Control.Verb == statement.ControlLevel, st.Verb != "set", schedule.SetsAccess(t.s.DBMS(), st):
		return
	}
	t.settings[session] = append(t.settings[session], st.Text)
}

// known finds a table that a statement mentions.
func (t *theater) known(u statement.TableUse) (string, bool) {
	name := u.Name
	if schema := t.s.DBMS().DefaultSchema; u.Schema != "" && (schema == "" || u.Schema != schema) {
		name = u.Schema + "." + u.Name
	}
	_, ok := t.columns[name]
	return name, ok
}

// load makes the stage's tables what the views say. With anonymous set all rows have the same id, so that a column that SELECT *,
// DISTINCT or NATURAL JOIN should not see makes no difference.
func (t *theater) load(ctx context.Context, views map[string]relation, anonymous bool) error {
	var tables []answer.Table
	for _, name := range slices.Sorted(maps.Keys(views)) {
		var b strings.Builder
		fmt.Fprintf(&b, "%v", anonymous)
		views[name].key(&b)
		if have, ok := t.loaded[name]; ok && have == b.String() {
			continue
		}
		table := answer.Table{Name: name, Columns: t.columns[name]}
		if !t.plain {
			table.Columns = append(slices.Clone(table.Columns), answer.Column{Name: rowID, Type: "bigint"})
		}
		for _, r := range views[name] {
			values := slices.Clone(r.values)
			switch {
			case anonymous && !t.plain:
				values = append(values, answer.Value("0"))
			case !t.plain:
				values = append(values, answer.Value(strconv.Itoa(r.id)))
			}
			table.Rows = append(table.Rows, values)
		}
		tables = append(tables, table)
		t.loaded[name] = b.String()
	}
	if len(tables) == 0 {
		return nil
	}
	if err := t.stage.Load(ctx, tables); err != nil {
		clear(t.loaded)
		clear(t.applied)
		if again := t.stage.Reset(ctx); again != nil {
			return fmt.Errorf("load a view: %w", errors.Join(err, again))
		}
		return errNoView
	}
	return nil
}

// errNoView says that a view breaks the tables' own constraints, so that nothing can be executed on it: a snapshot shows the row that
// another transaction has deleted beside the one with the same key that this one has inserted since.
var errNoView = errors.New("its view is one that the tables cannot hold")

func (t *theater) do(ctx context.Context, session int, sql string) (schedule.Step, error) {
	for t.applied[session] < len(t.settings[session]) {
		if _, err := t.stage.Execute(ctx, session, t.settings[session][t.applied[session]]); err != nil {
			return schedule.Step{}, err
		}
		t.applied[session]++
	}
	t.executed++
	return t.stage.Execute(ctx, session, sql)
}

func keyOf(st *schedule.Step, views map[string]relation, prefix string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d %s\n", prefix, st.Session, st.Statement.Text)
	for _, name := range slices.Sorted(maps.Keys(views)) {
		b.WriteString(name + "\n")
		views[name].key(&b)
	}
	return b.String()
}

var stars = regexp.MustCompile(`(?i)\bnatural\b|\*`)

// try executes a statement on its views, in autocommit (Troc, III-E4).
func (t *theater) try(ctx context.Context, st *schedule.Step, views map[string]relation, locks bool) (*trial, error) {
	key := keyOf(st, views, "try")
	if tr, ok := t.memo[key]; ok {
		return tr, nil
	}
	tr := &trial{}
	var err error
	reads := st.Statement.Verb == "select" && len(st.Statement.Targets()) == 0
	if locks || !reads {
		if tr.addressed, err = t.address(ctx, st, views); err != nil {
			return nil, err
		}
	}
	if reads {
		err = t.read(ctx, st, views, tr)
	} else {
		err = t.write(ctx, st, views, tr)
	}
	if err != nil {
		return nil, err
	}
	t.memo[key] = tr
	return tr, nil
}

// inner says that a table is written within a common table expression.
func inner(u statement.TableUse) bool { return u.Place != statement.PlaceMain }

// returned finds all columns of a part that writes.
var returned = regexp.MustCompile(`(?i)\breturning\s+\*`)

// sensitive says that a query may see the row ids.
func (t *theater) sensitive(q *statement.Statement) bool {
	text := q.Text
	if all := []string{"*"}; slices.Equal(q.Columns, all) && !q.Distinct && !q.SetOperation && slices.ContainsFunc(q.Targets(), inner) { // what it returns in the end is stripped
		text = strings.Replace(returned.ReplaceAllString(text, ""), "*", "", 1)
	}
	return t.visible && (q.Distinct || q.SetOperation || q.HasSubquery || q.Aggregate) && stars.MatchString(text) ||
		t.visible && strings.Contains(strings.ToLower(q.Text), "natural")
}

// read executes a SELECT.
func (t *theater) read(ctx context.Context, st *schedule.Step, views map[string]relation, tr *trial) error {
	q := &st.Statement
	if err := t.load(ctx, views, t.sensitive(q)); err != nil {
		return err
	}
	done, err := t.do(ctx, st.Session, q.Text)
	if err != nil {
		return err
	}
	tr.answer, tr.reason = done.Answer, done.Reason
	t.strip(&tr.answer)
	return nil
}

// strip takes the row ids out of an answer.
func (t *theater) strip(a *answer.Result) {
	if !t.visible {
		return
	}
	for i := len(a.Columns) - 1; i >= 0; i-- {
		if a.Columns[i].Name != rowID {
			continue
		}
		a.Columns = slices.Delete(slices.Clone(a.Columns), i, i+1)
		rows := make([][]answer.Value, len(a.Rows))
		for n, r := range a.Rows {
			rows[n] = slices.Delete(slices.Clone(r), i, i+1)
		}
		a.Rows = rows
	}
}

// text is the statement as it is executed on tables with a row id.
func (t *theater) text(q *statement.Statement) string {
	// The MySQL family's INSERT without a list of columns has a value for each one.
	if !t.visible || t.s.DBMS().Dialect != product.DialectMySQL || q.Insert == nil || q.Insert.Columns != nil || q.Insert.NewListAt == 0 || q.Insert.Set {
		return q.Text
	}
	targets := q.Targets()
	if len(targets) == 0 || q.Insert.Select != "" && stars.MatchString(q.Insert.Select) { // * brings a row id, too
		return q.Text
	}
	name, ok := t.known(targets[0])
	if !ok {
		return q.Text
	}
	var list []string
	for _, c := range t.columns[name] {
		list = append(list, t.s.DBMS().Quote(c.Name))
	}
	return q.Text[:q.Insert.NewListAt] + " (" + strings.Join(list, ", ") + ")" + q.Text[q.Insert.NewListAt:]
}

// write executes a statement that writes, and looks at what it did.
func (t *theater) write(ctx context.Context, st *schedule.Step, views map[string]relation, tr *trial) error {
	// REPLACE of a row by an equal one counts otherwise than by another one: the row id must not make the difference.
	anonymous := st.Statement.Verb == "replace"
	if err := t.load(ctx, views, anonymous); err != nil {
		return err
	}
	done, err := t.do(ctx, st.Session, t.text(&st.Statement))
	if err != nil {
		return err
	}
	tr.answer, tr.reason = done.Answer, done.Reason
	t.strip(&tr.answer)
	if done.Answer.Err != nil {
		return nil
	}
	after, err := t.stage.Tables(ctx)
	if err != nil {
		return fmt.Errorf("read the stage: %w", err)
	}
	tr.changed, tr.deleted, tr.added = map[string][]tuple{}, map[string][]int{}, map[string][][]answer.Value{}
	for _, table := range after {
		before, ok := views[table.Name]
		if !ok {
			continue
		}
		at := slices.IndexFunc(table.Columns, func(c answer.Column) bool { return c.Name == rowID })
		if at < 0 {
			return fmt.Errorf("read the stage: table %s has no row id any more", table.Name)
		}
		if anonymous {
			number(table.Rows, before, at)
		}
		if t.differ(tr, table, before, at) {
			delete(t.loaded, table.Name)
		}
	}
	return nil
}

// number gives rows without ids those of equal rows that were there before.
func number(rows [][]answer.Value, before relation, at int) {
	left := slices.Clone(before)
	for n, r := range rows {
		values := slices.Delete(slices.Clone(r), at, at+1)
		i := slices.IndexFunc(left, func(t tuple) bool { return answer.SameRow(t.values, values) })
		if i < 0 {
			continue
		}
		rows[n] = slices.Clone(r)
		rows[n][at] = answer.Value(strconv.Itoa(left[i].id))
		left = slices.Delete(left, i, i+1)
	}
}

// differ notes what a statement did to one table. A row with an id that the table did not have is new, and so is all but one of several
// with the same id (INSERT ... SELECT * may copy ids where they are visible).
func (t *theater) differ(tr *trial, table answer.Table, before relation, at int) (any bool) {
	groups := map[int][][]answer.Value{}
	for _, r := range table.Rows {
		id, err := strconv.Atoi(string(r[at]))
		if _, known := before.find(id); err != nil || !known {
			id = 0
		}
		groups[id] = append(groups[id], slices.Delete(slices.Clone(r), at, at+1))
	}
	name := table.Name
	for _, old := range before {
		now := groups[old.id]
		if len(now) == 0 {
			tr.deleted[name] = append(tr.deleted[name], old.id)
			any = true
			continue
		}
		keep := max(0, slices.IndexFunc(now, func(v []answer.Value) bool { return answer.SameRow(v, old.values) }))
		if !answer.SameRow(now[keep], old.values) {
			tr.changed[name] = append(tr.changed[name], tuple{old.id, now[keep]})
			any = true
		}
		groups[0] = append(groups[0], slices.Delete(now, keep, keep+1)...)
	}
	if len(groups[0]) > 0 {
		tr.added[name] = groups[0]
		any = true
	}
	return any
}

// address asks which rows the statement's condition chooses in the tables that it locks or writes: the paper's SELECT rowId FROM view
// WHERE condition (Troc, III-E3).
func (t *theater) address(ctx context.Context, st *schedule.Step, views map[string]relation) (map[string][]int, error) {
	q := &st.Statement
	if q.Verb == "insert" || q.Verb == "replace" || q.Verb == "merge" || slices.ContainsFunc(q.Targets(), inner) {
		return nil, nil
	}
	if st.Answer.Err == nil && q.Volatile != "" {
		return nil, nil
	}
	key := keyOf(st, views, "address")
	if tr, ok := t.memo[key]; ok {
		return tr.addressed, nil
	}
	var names, exprs []string
	for _, u := range q.Main() {
		if u.Kind != statement.SourceTable || q.Verb != "select" && !u.Target {
			continue
		}
		if q.Verb == "select" && q.Locking.Lock != statement.LockNone && u.Lock == statement.LockNone {
			continue
		}
		name, ok := t.known(u)
		if !ok {
			return nil, nil
		}
		names, exprs = append(names, name), append(exprs, u.Ref+"."+rowID)
	}
	tr := &trial{}
	defer func() { t.memo[key] = tr }()
	if len(names) == 0 {
		return nil, nil
	}
	sql, ok := q.Addressed(strings.Join(exprs, ", "))
	if !ok {
		return nil, nil
	}
	if err := t.load(ctx, views, false); err != nil {
		return nil, err
	}
	done, err := t.do(ctx, st.Session, sql)
	if err != nil {
		return nil, err
	}
	if done.Answer.Err != nil || done.Failed() {
		return nil, nil
	}
	tr.addressed = map[string][]int{}
	for i, name := range names {
		tr.addressed[name] = append(tr.addressed[name], []int{}...)
		for _, r := range done.Answer.Rows {
			if id, err := strconv.Atoi(string(r[i])); err == nil && !slices.Contains(tr.addressed[name], id) {
				tr.addressed[name] = append(tr.addressed[name], id)
			}
		}
	}
	return tr.addressed, nil
}

// again executes a SELECT once more before something is reported: on tables without row ids, and with the rows put in in the opposite
// order. If that makes a difference the statement tells of the order of rows or of the row id, not of its view. No answers: its view
// cannot be loaded so.
func (t *theater) again(ctx context.Context, st *schedule.Step, views map[string]relation) (answers []answer.Result, err error) {
	if err := t.bare(ctx, true); err != nil {
		return nil, err
	}
	reversed := map[string]relation{}
	for name, rel := range views {
		rel = slices.Clone(rel)
		slices.Reverse(rel)
		reversed[name] = rel
	}
	for _, v := range []map[string]relation{views, reversed} {
		clear(t.loaded)
		if err := t.load(ctx, v, false); errors.Is(err, errNoView) {
			return nil, t.bare(ctx, false)
		} else if err != nil {
			return nil, err
		}
		done, err := t.do(ctx, st.Session, st.Statement.Text)
		if err != nil {
			return nil, err
		}
		answers = append(answers, done.Answer)
	}
	return answers, t.bare(ctx, false)
}

// bare takes the row ids away, or brings them back.
func (t *theater) bare(ctx context.Context, plain bool) error {
	var tables []answer.Table
	if !plain {
		for _, name := range t.names {
			tables = append(tables, answer.Table{Name: name})
		}
	}
	if err := t.stage.Prepare(ctx, staged(t.s, tables), len(t.s.Sessions)); err != nil {
		return fmt.Errorf("prepare the stage once more: %w", err)
	}
	t.plain = plain
	clear(t.loaded)
	clear(t.applied)
	return nil
}
