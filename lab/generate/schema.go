package generate

import (
	"slices"
	"strings"
)

// Database is a schema with rows, as the statements that make it and as what is known of it.
type Database struct {
	Dialect Dialect
	Tables  []*Table
	Views   []*View
	// Setup are the statements that make it, in order; none of them is refused.
	Setup []Statement

	pool pool
	enum bool // PostgreSQL: the type kind is there
}

// Table is a table.
type Table struct {
	Name    string
	Columns []*Column
	// Primary are the columns of the primary key; none: there is no such key.
	Primary []*Column
	// Rows are those of the setup: a value for each column, in order. Those of generated columns have no SQL.
	Rows [][]Value
	// Partitioned, and the column that it is partitioned by.
	Partitioned bool
	partitioned string // the feature
	// Referenced: a foreign key of some table names it.
	Referenced bool

	keys      []key   // that must stay unique, the primary key included
	checks    []check // that must hold
	partition *Column
	indexes   int  // how many were made
	added     int  // columns added by steps, which no statement names
	foreign   bool // it has foreign keys
	prefixed  bool // the primary key holds the beginning of a text only
	apart     bool // no foreign key may name it
	strict    bool // SQLite: STRICT
	keyed     bool // SQLite: WITHOUT ROWID
}

// Column is a column.
type Column struct {
	Name string
	Type
	NotNull   bool
	Default   *Value // nil: none
	Generated string // its expression; empty: a common column
	// Parent is the column that a foreign key refers to; nil: none.
	Parent      *Column
	parentTable *Table
	auto        bool    // it numbers the rows by itself
	samples     []Value // that rows of the setup have, none NULL
}

// View is a view of one table that shows some columns and rows, all unchanged.
type View struct {
	Name    string
	Table   *Table
	Columns []*Column
}

// key is what a unique index keeps apart.
type key struct {
	columns []*Column
	// plain: of the whole values of columns, for all rows, so that a foreign key and ON CONFLICT can name it.
	plain bool
	// of gives the key of a row by the values of the key's columns; applies is false where the index takes no notice of the row.
	of func(values []Value) (text string, applies bool)
}

// check is a condition that rows must meet.
type check struct {
	columns []*Column
	holds   func(values []Value) bool
}

// index gives the place of a column in the table.
func (t *Table) index(c *Column) int {
	i := slices.Index(t.Columns, c)
	if i < 0 {
		panic("generate: no such column in " + t.Name)
	}
	return i
}

// values gives those of some columns in a row.
func (t *Table) values(row []Value, columns []*Column) []Value {
	out := make([]Value, len(columns))
	for i, c := range columns {
		out[i] = row[t.index(c)]
	}
	return out
}

// writable are the columns that INSERT and UPDATE may name.
func (t *Table) writable() []*Column {
	return slices.DeleteFunc(slices.Clone(t.Columns), func(c *Column) bool { return c.Generated != "" })
}

// inKey reports whether a unique key holds the column.
func (t *Table) inKey(c *Column) bool {
	for _, k := range t.keys {
		for _, other := range k.columns {
			if other == c {
				return true
			}
		}
	}
	return false
}

// allowed reports whether the row may stand beside those of the setup.
func (t *Table) allowed(row []Value) bool {
	for i, c := range t.Columns {
		if row[i].Null && c.NotNull {
			return false
		}
	}
	if !t.checked(row) {
		return false
	}
	for _, k := range t.keys {
		text, applies := k.of(t.values(row, k.columns))
		if !applies {
			continue
		}
		for _, other := range t.Rows {
			if had, applied := k.of(t.values(other, k.columns)); applied && had == text {
				return false
			}
		}
	}
	return true
}

// checked reports whether the row meets the table's CHECK constraints.
func (t *Table) checked(row []Value) bool {
	return !slices.ContainsFunc(t.checks, func(c check) bool { return !c.holds(t.values(row, c.columns)) })
}

// wholeKey is the key of an index over whole values: rows with NULL in one of them are not compared.
func wholeKey(values []Value) (string, bool) {
	texts := make([]string, len(values))
	for i, v := range values {
		if v.Null {
			return "", false
		}
		texts[i] = v.Key
	}
	return strings.Join(texts, "\x00"), true
}

// nullsToo is the key of an index that takes NULLs as equal.
func nullsToo(values []Value) (string, bool) {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = v.Key
	}
	return strings.Join(texts, "\x00"), true
}

func namesOf(columns []*Column) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.Name
	}
	return names
}

func list(items []string) string { return strings.Join(items, ", ") }
