package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"wirecheck/answer"
)

// Table is a table of a lab.
type Table struct {
	answer.Table

	quoted, only string // as statements take it
	generated    []bool // of Columns: the server computes them
}

// Hide takes columns away.
func (t *Table) Hide(hidden func(column string) bool) {
	for i := len(t.Columns) - 1; i >= 0; i-- {
		if !hidden(t.Columns[i].Name) {
			continue
		}
		t.Columns = slices.Delete(slices.Clone(t.Columns), i, i+1)
		t.generated = slices.Delete(slices.Clone(t.generated), i, i+1)
		for n, row := range t.Rows {
			t.Rows[n] = slices.Delete(slices.Clone(row), i, i+1)
		}
	}
	slices.SortFunc(t.Rows, answer.CompareRows)
}

// Contents is what the tables of a lab held when it was remembered. Reset brings it back.
type Contents struct {
	Tables []Table
	// Resettable is false where rows cannot be put back as they were (triggers on the MySQL family, foreign keys without the right to
	// ignore them on PostgreSQL): then clear the database and set it up anew.
	Resettable  bool
	Fingerprint string // of the definitions

	quick, thorough string   // the messages
	counters        []string // that are set apart from them, where they have moved
	lab             Lab
}

// PrepareConn makes a connection to a lab's database ready for ReadTables, Remember and Reset. It must not be one that executes
// steps, since it changes settings.
func (l Lab) PrepareConn(ctx context.Context, c Conn) error {
	if l.Prepare == "" {
		return nil
	}
	if err := Exec(ctx, c, l.Prepare); err != nil {
		return fmt.Errorf("prepare a lab's connection: %w", err)
	}
	return nil
}

// ReadTables reads all rows of all tables, without loss. It costs two round trips.
func (l Lab) ReadTables(ctx context.Context, c Conn) ([]Table, error) {
	tables, err := l.Definitions(ctx, c)
	if err != nil || len(tables) == 0 {
		return nil, err
	}
	if err := l.ReadRows(ctx, c, tables); err != nil {
		return nil, err
	}
	return tables, nil
}

// sortRows puts the rows into canonical order.
func sortRows(tables []Table) {
	for i := range tables {
		slices.SortFunc(tables[i].Rows, answer.CompareRows)
	}
}

// ReadRows reads the rows of tables whose definition is known, in one round trip.
func (l Lab) ReadRows(ctx context.Context, c Conn, tables []Table) error {
	if err := l.readRows(ctx, c, tables); err != nil {
		return err
	}
	sortRows(tables)
	return nil
}

// readRows reads the rows in the order in which the server has them.
func (l Lab) readRows(ctx context.Context, c Conn, tables []Table) error {
	if len(tables) == 0 {
		return nil
	}
	var sql strings.Builder
	for _, t := range tables {
		sql.WriteString("SELECT ")
		for i, col := range t.Columns {
			if i > 0 {
				sql.WriteString(", ")
			}
			sql.WriteString(l.Expression(l.Identifier(col.Name), col.Type))
		}
		sql.WriteString(" FROM " + t.only + ";")
	}
	a, err := Ask(ctx, c, sql.String())
	if err == nil && len(a.Results) < len(tables) {
		err = fmt.Errorf("%d answers for %d tables", len(a.Results), len(tables))
	}
	if err != nil {
		return fmt.Errorf("read tables: %w", err)
	}
	for i := range tables {
		tables[i].Rows = a.Results[i].Rows
	}
	return nil
}

// Definitions gives all tables without their rows, for ReadRows.
func (l Lab) Definitions(ctx context.Context, c Conn) ([]Table, error) {
	rows, err := Query(ctx, c, l.Columns)
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	var tables []Table
	for _, row := range rows {
		name := string(row[0])
		if n := len(tables); n == 0 || tables[n-1].quoted != string(row[1]) {
			tables = append(tables, Table{Table: answer.Table{Name: name}, quoted: string(row[1]), only: string(row[2])})
		}
		t := &tables[len(tables)-1]
		t.Columns = append(t.Columns, answer.Column{Name: string(row[3]), Type: string(row[4])})
		t.generated = append(t.generated, string(row[5]) == "t" || string(row[5]) == "1")
	}
	return tables, nil
}

// InsertText is the statement that puts a table's rows back; empty if it has none.
func (l Lab) InsertText(t Table) string { return string(l.insert(t)) }

// UniqueKeys gives the columns of each unique key by the table's name, all in lower case. A name that tables of several schemas have gets none.
func (l Lab) UniqueKeys(ctx context.Context, c Conn) (map[string][][]string, error) {
	if l.Keys == "" {
		return nil, nil
	}
	rows, err := Query(ctx, c, l.Keys)
	if err != nil {
		return nil, fmt.Errorf("read which columns are unique: %w", err)
	}
	keys, schemas, last := map[string][][]string{}, map[string]string{}, ""
	for _, row := range rows {
		schema, table, column := string(row[0]), strings.ToLower(string(row[1])), strings.ToLower(string(row[3]))
		if other, ok := schemas[table]; ok && other != schema {
			keys[table] = nil
			continue
		}
		schemas[table] = schema
		if key := table + "." + string(row[2]); key != last {
			keys[table], last = append(keys[table], nil), key
		}
		n := len(keys[table]) - 1
		keys[table][n] = append(keys[table][n], column)
	}
	return keys, nil
}

// NumberedColumns gives the columns that counters fill, as table.column in lower case; nil if that is not known.
func (l Lab) NumberedColumns(ctx context.Context, c Conn) (map[string]bool, error) {
	if l.Numbered == "" {
		return nil, nil
	}
	rows, err := Query(ctx, c, l.Numbered)
	if err != nil {
		return nil, fmt.Errorf("read which columns counters fill: %w", err)
	}
	set := map[string]bool{}
	for _, row := range rows {
		set[strings.ToLower(string(row[0])+"."+string(row[1]))] = true
	}
	return set, nil
}

// Remember keeps all rows, counters and definitions of a lab's database, for Reset.
func (l Lab) Remember(ctx context.Context, c Conn) (*Contents, error) {
	s := &Contents{lab: l}
	var err error
	if s.Tables, err = l.Definitions(ctx, c); err != nil {
		return nil, err
	}
	if err = l.readRows(ctx, c, s.Tables); err != nil {
		return nil, err
	}
	counters, err := l.Counters(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("read counters: %w", err)
	}
	blocked, err := yes(ctx, c, l.Blocks)
	if err != nil {
		return nil, fmt.Errorf("look for triggers and foreign keys: %w", err)
	}
	s.Resettable = !blocked
	if s.Fingerprint, err = l.Fingerprint(ctx, c); err != nil {
		return nil, fmt.Errorf("read definitions: %w", err)
	}
	var empty, fill strings.Builder
	var names []string
	for _, t := range s.Tables {
		empty.WriteString("DELETE FROM " + t.only + ";")
		fill.Write(l.insert(t))
		names = append(names, t.quoted)
	}
	after := l.After
	if l.CountersTell {
		s.counters, counters = counters, nil
	}
	for _, counter := range counters {
		fill.WriteString(counter + ";")
	}
	// The rows go back in the order in which the server had them: without a primary key that is the order in which a statement
	// comes to them, and which row it waits for.
	sortRows(s.Tables)
	s.quick = l.Before + empty.String() + fill.String() + after
	if len(names) > 0 {
		s.thorough = l.Before + l.Truncate(names) + fill.String() + after
	}
	return s, nil
}

// insert makes the statement that puts a table's rows back; nothing if it has none.
func (l Lab) insert(t Table) []byte {
	if len(t.Rows) == 0 {
		return nil
	}
	b := append([]byte("INSERT INTO "), t.quoted...)
	separator := " ("
	for i, c := range t.Columns {
		if !t.generated[i] {
			b = append(append(b, separator...), l.Identifier(c.Name)...)
			separator = ", "
		}
	}
	if separator == " (" { // nothing but generated columns
		b = append(b, " ("...)
	}
	b = append(append(append(b, ')'), l.Insert...), " VALUES "...)
	for n, row := range t.Rows {
		if n > 0 {
			b = append(b, ", "...)
		}
		separator = "("
		for i, v := range row {
			if t.generated[i] {
				continue
			}
			b = append(b, separator...)
			separator = ", "
			if v == nil {
				b = append(b, "NULL"...)
			} else {
				b = l.Literal(b, v, t.Columns[i].Type)
			}
		}
		if separator == "(" {
			b = append(b, '(')
		}
		b = append(b, ')')
	}
	return append(b, ';')
}

// Reset puts the remembered rows and counters back, in one message. The definitions must be as they were: see Changed. A quick
// reset deletes and inserts; on InnoDB deleted rows may linger and change which gaps a statement locks. A thorough one leaves nothing of
// earlier rows: use it to confirm what was found, and where the pattern of blocking is what is judged.
func (s *Contents) Reset(ctx context.Context, c Conn, thorough bool) error {
	if !s.Resettable {
		return fmt.Errorf("reset lab: it has triggers or foreign keys that cannot be switched off; clear it and set it up anew")
	}
	sql := s.quick
	if thorough {
		sql = s.thorough
	}
	if sql == "" {
		return nil
	}
	if err := Exec(ctx, c, sql); err != nil {
		return fmt.Errorf("reset lab: %w", err)
	}
	if err := s.count(ctx, c); err != nil {
		return fmt.Errorf("reset lab: %w", err)
	}
	if thorough { // TRUNCATE is a change of definition for some products' catalogs
		return s.renew(ctx, c)
	}
	return nil
}

// Load puts rows in the place of those that tables have, in one message. The tables are among the remembered ones, with the same
// columns. Columns that the server generates are left out; triggers and foreign keys are not looked at.
func (s *Contents) Load(ctx context.Context, c Conn, tables []answer.Table) error {
	if !s.Resettable {
		return fmt.Errorf("load a lab: it has triggers or foreign keys that cannot be switched off")
	}
	var sql strings.Builder
	sql.WriteString(s.lab.Before)
	for _, t := range tables {
		i := slices.IndexFunc(s.Tables, func(known Table) bool { return known.Name == t.Name })
		if i < 0 {
			return fmt.Errorf("load a lab: it has no table %s", t.Name)
		}
		into := s.Tables[i]
		if !slices.EqualFunc(into.Columns, t.Columns, func(a, b answer.Column) bool { return a.Name == b.Name }) {
			return fmt.Errorf("load a lab: table %s has other columns than the rows for it", t.Name)
		}
		into.Rows = t.Rows
		sql.WriteString("DELETE FROM " + into.only + ";")
		sql.Write(s.lab.insert(into))
	}
	sql.WriteString(s.lab.After)
	if err := Exec(ctx, c, sql.String()); err != nil {
		return fmt.Errorf("load a lab: %w", err)
	}
	return nil
}

// count sets the counters that have moved.
func (s *Contents) count(ctx context.Context, c Conn) error {
	if len(s.counters) == 0 {
		return nil
	}
	now, err := s.lab.Counters(ctx, c)
	if err != nil {
		return err
	}
	for _, sql := range s.counters {
		if slices.Contains(now, sql) {
			continue
		}
		if err := Exec(ctx, c, sql); err != nil {
			return err
		}
	}
	return nil
}

func (s *Contents) renew(ctx context.Context, c Conn) (err error) {
	if s.Fingerprint, err = s.lab.Fingerprint(ctx, c); err != nil {
		return fmt.Errorf("read definitions: %w", err)
	}
	return nil
}

// Changed reports whether definitions have changed since the contents were remembered.
func (s *Contents) Changed(ctx context.Context, c Conn) (bool, error) {
	now, err := s.lab.Fingerprint(ctx, c)
	if err != nil {
		return false, fmt.Errorf("read definitions: %w", err)
	}
	return now != s.Fingerprint, nil
}
