package radar

import (
	"fmt"
	"slices"
	"strings"

	"wirecheck/statement"
)

// Abstract gives the abstract metadata of a setup (Radar, section 3.5.1): no names of tables and columns; where a constraint, an index or a
// table option names a column, that column's type and constraints stand; of expressions only these remain. The text is
// canonical: the order of tables, columns and constraints does not matter (section 3.5.2). Types are as written, in upper case.
func Abstract(setup []string, o Options) string {
	a := &abstract{}
	for _, block := range setup {
		statements, err := o.Describe(block)
		if err != nil {
			continue // what is not understood adds nothing
		}
		for i := range statements {
			if st := &statements[i]; st.DDL {
				a.add(o.Define(st.Text))
			}
		}
	}
	var tables []string
	for _, t := range a.tables {
		tables = append(tables, a.table(t))
	}
	slices.Sort(tables)
	return strings.Join(tables, "\n")
}

// abstract collects definitions by table.
type abstract struct{ tables []*definition }

type definition struct {
	name    string
	columns []statement.ColumnDefinition
	keys    []statement.KeyDefinition
}

func (a *abstract) find(name string) *definition {
	if i := slices.IndexFunc(a.tables, func(t *definition) bool { return t.name == name }); i >= 0 {
		return a.tables[i]
	}
	return nil
}

func (a *abstract) add(d statement.Definition) {
	if d.Table == "" || d.Why != "" {
		return
	}
	switch {
	case d.Kind == "drop table":
		a.tables = slices.DeleteFunc(a.tables, func(t *definition) bool { return t.name == d.Table })
		return
	case d.Parent != "":
		if t := a.find(d.Parent); t != nil {
			t.keys = append(t.keys, statement.KeyDefinition{Kind: "PARTITION"})
		}
		return
	case d.Kind == "create table":
		a.tables = append(a.tables, &definition{name: d.Table})
	}
	t := a.find(d.Table)
	if t == nil {
		return
	}
	t.columns = append(t.columns, d.Columns...)
	t.keys = append(append(t.keys, d.Keys...), d.Configs...)
}

// table prints one table.
func (a *abstract) table(t *definition) string {
	var parts []string
	for _, c := range t.columns {
		parts = append(parts, a.column(t, c, true))
	}
	for _, k := range t.keys {
		text := k.Kind + a.columns(t, k.Columns)
		if k.Kind == "CONFIG" {
			text = k.Text + a.columns(t, k.Columns)
		}
		if k.Kind == "FOREIGN KEY" {
			text += "->"
			if other := a.find(k.Table); other != nil {
				text += a.columns(other, k.Targets)
			}
		}
		parts = append(parts, text)
	}
	slices.Sort(parts)
	return strings.Join(parts, "; ")
}

// column prints a column: its type, and its constraints. Those of columns that a generated column names are left out, so that it ends.
func (a *abstract) column(t *definition, c statement.ColumnDefinition, deep bool) string {
	parts := []string{strings.ToUpper(strings.Join(strings.Fields(c.Type), " "))}
	for _, k := range c.Constraints {
		text := k.Kind
		if k.Kind == "GENERATED" && deep {
			text += a.columns(t, k.Columns)
		}
		parts = append(parts, text)
	}
	slices.Sort(parts[1:])
	return "<" + strings.Join(parts, ", ") + ">"
}

func (a *abstract) columns(t *definition, names []string) string {
	if len(names) == 0 {
		return ""
	}
	parts := make([]string, len(names))
	for i, name := range names {
		n := slices.IndexFunc(t.columns, func(c statement.ColumnDefinition) bool { return strings.EqualFold(c.Name, name) })
		if parts[i] = "?"; n >= 0 {
			parts[i] = a.column(t, t.columns[n], false)
		}
	}
	return fmt.Sprintf("(%s)", strings.Join(parts, ", "))
}
