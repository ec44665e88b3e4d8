package radar

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"wirecheck/statement"
)

// Twin is what makes the raw database of a setup.
type Twin struct {
	// Setup are the statements that make it: the definitions without optional metadata, and the INSERT statements whose values are
	// what the rows hold.
	Setup []string
	// Bare are the definitions alone.
	Bare []string
	// Why says why there is none.
	Why string

	tables     map[string]*table // by name, as the stage lists them
	partitions map[string]string // a partition's partitioned table: it has no twin
	unsure     string            // why no table's rows are known from the text; empty: some may be
	family     bool
}

// table is what a setup says of one table.
type table struct {
	columns []statement.ColumnDefinition
	// computed are the columns of which some row's value is not the written one: generated, numbered or default values.
	computed map[string]bool
	unsure   string // why the rows are not known from the text; empty: they are those of the INSERT statements
}

// Construct makes the raw database of a setup (Radar, section 3.3). family says that the dialect is the MySQL family's.
func Construct(setup []string, family bool, o Options) *Twin {
	t := &Twin{tables: map[string]*table{}, partitions: map[string]string{}, family: family}
	for _, block := range setup {
		statements, err := o.Describe(block)
		if err != nil {
			t.Why = err.Error()
			return t
		}
		for i := range statements {
			if t.add(&statements[i], o); t.Why != "" {
				return t
			}
		}
	}
	return t
}

// given is the raw database that a user's statements make. Only its definitions stay where transactions have changed rows.
func given(raw []string, family bool, o Options) *Twin {
	t := &Twin{Setup: raw, tables: map[string]*table{}, partitions: map[string]string{}, family: family, unsure: "the scenario says how the raw database is made"}
	for _, block := range raw {
		statements, err := o.Describe(block)
		if err != nil {
			t.Why = err.Error()
			return t
		}
		if slices.ContainsFunc(statements, func(st statement.Statement) bool { return st.DDL }) {
			t.Bare = append(t.Bare, block)
		}
	}
	return t
}

// add goes on with one statement of the setup.
func (t *Twin) add(st *statement.Statement, o Options) {
	switch st.Verb {
	case "insert", "replace", "update", "delete", "merge":
		if !st.Unparsed && !st.DDL {
			t.write(st)
			return
		}
		t.unsure = "a statement that writes is not understood: " + st.Text
		return
	case "select":
		return // if it calls what writes, the rows that are there tell
	}
	d := o.Define(st.Text)
	if d.Why != "" {
		t.Why = fmt.Sprintf("%s: %s", d.Why, st.Text)
		return
	}
	t.define(&d)
	if d.Raw != "" {
		t.Setup = append(t.Setup, d.Raw)
		t.Bare = append(t.Bare, d.Raw)
	}
}

// define notes what a definition says of tables.
func (t *Twin) define(d *statement.Definition) {
	switch {
	case d.Parent != "":
		t.partitions[d.Table] = d.Parent
		return
	case d.Kind == "trigger":
		t.unsure = "a trigger may write other values"
		return
	case d.Kind == "drop table":
		if t.partitions[d.Table] != "" {
			t.unsure, d.Raw = "a partition is dropped", ""
		}
		delete(t.tables, d.Table)
		return
	case d.Kind == "create table":
		t.tables[d.Table] = &table{computed: map[string]bool{}}
	}
	known := t.tables[d.Table]
	if d.Rewrites {
		if known == nil {
			t.unsure = "rows may have been changed"
		} else {
			known.unsure = "rows were changed"
		}
	}
	if known == nil {
		return
	}
	for _, c := range d.Columns {
		if d.Kind == "alter table" {
			known.computed[c.Name] = true // of the rows that are there
			if d.Raw != "" && positioned.MatchString(d.Raw) {
				known.unsure = "a column was put between others"
			}
		}
		if c.Generated || c.Automatic {
			known.computed[c.Name] = true
		}
		known.columns = append(known.columns, c)
	}
	if len(known.columns) == 0 {
		known.unsure = "its columns are not in the text"
	}
}

var positioned = regexp.MustCompile(`(?i)\b(first|after|drop|like)\b`)

// literals are the values that both databases store alike because nothing but the column's type has a say in it. NULL and DEFAULT are
// looked at apart.
var literals = regexp.MustCompile(`(?is)^(` +
	`[-+]?\s*[0-9]*\.?[0-9]+(e[-+]?[0-9]+)?` + // a number
	`|(date|time|timestamp|interval|[xbn]|e)?\s*'([^'\\]|''|\\.)*'(::[a-z_ ]+(\([0-9, ]+\))?(\[\])?)?` +
	`|"[^"\\]*"|true|false|null|default|0x[0-9a-f]+|array\s*\[[-+0-9,. ]*\])$`)

// write goes on with a statement that writes. Rows are known as long as they come from INSERT with literal values only.
func (t *Twin) write(st *statement.Statement) {
	targets := st.Targets()
	if len(targets) != 1 || t.tables[t.nameOf(targets[0])] == nil {
		t.unsure = "what is written is no table of the setup: " + st.Text
		return
	}
	known := t.tables[t.nameOf(targets[0])]
	in := st.Insert
	if st.Verb != "insert" || in == nil || in.Conflict || st.Ignore || in.Select != "" || in.Defaults || in.Set || len(in.Rows) == 0 {
		known.unsure = "rows come from other statements than INSERT ... VALUES"
		return
	}
	for _, row := range in.Rows {
		for _, v := range row {
			if !literals.MatchString(strings.TrimSpace(v)) {
				known.unsure = "a written value is no literal"
				return
			}
		}
	}
	for _, row := range in.Rows {
		known.note(in.Columns, row)
	}
	t.Setup = append(t.Setup, st.Text)
}

// note notes which columns of an inserted row the server fills in.
func (t *table) note(columns, row []string) {
	visible := 0
	for _, c := range t.columns {
		at := slices.IndexFunc(columns, func(name string) bool { return strings.EqualFold(name, c.Name) })
		if columns == nil {
			if at = visible; c.Invisible {
				at = -1
			} else {
				visible++
			}
		}
		if at < 0 || at >= len(row) {
			t.computed[c.Name] = true
			continue
		}
		switch v := strings.ToLower(strings.TrimSpace(row[at])); {
		case v == "default", v == "null" && (c.NotNull || strings.HasPrefix(strings.ToLower(c.Type), "timestamp")):
			t.computed[c.Name] = true
		}
	}
}

// nameOf is a mention's table as the stage lists tables.
func (t *Twin) nameOf(u statement.TableUse) string {
	if !t.family && u.Schema != "" && u.Schema != "public" {
		return u.Schema + "." + u.Name
	}
	return u.Name
}

// root is the table whose twin has a partition's rows; other tables are their own.
func (t *Twin) root(name string) string {
	for range len(t.partitions) + 1 {
		parent, ok := t.partitions[name]
		if !ok {
			break
		}
		name = parent
	}
	return name
}
