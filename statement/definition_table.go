package statement

import (
	"slices"
	"strings"
)

func (d *definer) createTable(i int) {
	d.out.Kind = "create table"
	if d.Seq(i, "IF", "NOT", "EXISTS") {
		i += 3
	}
	d.out.Table, i = d.table(i)
	head := d.Between(0, i)
	switch {
	case d.Seq(i, "PARTITION", "OF"):
		d.out.Parent, i = d.table(i + 2)
		d.out.Raw = ""
		return
	case d.Is(i, "OF"):
		d.fail("a table of a type")
		return
	case d.Is(i, "LIKE"), d.Is(i, "(") && d.Is(i+1, "LIKE") && d.family:
		return // the twin of the other table has no optional metadata either
	}
	columns := ""
	if d.Is(i, "(") && !d.Is(i+1, "SELECT", "WITH", "VALUES", "(") {
		if end := d.close(i); !d.family && d.query(end+1) < len(d.Tokens) { // names of columns only
			d.out.Rewrites = true
			return
		} else {
			if list := d.elements(i); len(list) > 0 {
				columns = " (" + strings.Join(list, ", ") + ")"
			}
			i = end + 1
		}
	}
	query := d.query(i)
	if query < len(d.Tokens) {
		d.out.Rewrites = true
	} else if columns == "" {
		d.fail("a table without columns")
	}
	d.out.Raw = head + columns + d.options(i, query)
	if query < len(d.Tokens) {
		d.out.Raw += " " + d.Between(query, len(d.Tokens))
	}
}

// query gives the token at which the query of CREATE TABLE AS begins, or the number of tokens.
func (d *definer) query(i int) int {
	if i >= len(d.Tokens) {
		return len(d.Tokens)
	}
	depth := d.Tokens[i].Depth
	for ; i < len(d.Tokens); i++ {
		if d.Tokens[i].Depth == depth && (d.Is(i, "AS", "SELECT", "VALUES") || d.Is(i, "WITH") && d.family && !d.Is(i+1, "SYSTEM") ||
			d.Is(i, "IGNORE", "REPLACE") && d.family || d.Is(i, "(") && d.Is(i+1, "SELECT")) {
			return i
		}
	}
	return len(d.Tokens)
}

// options gives those that are compulsory (Radar, section 2.3: ENGINE, CHARACTER SET and the like), and notes the others.
func (d *definer) options(i, to int) (keep string) {
	config := func(from, until int) {
		c := KeyDefinition{Kind: "CONFIG", Columns: d.mentioned(from, until)}
		for j := from; j < until; j++ {
			if len(c.Columns) == 0 || d.Tokens[j].Kind == TokenWord && !slices.Contains(c.Columns, d.named(j)) {
				c.Text += strings.ToUpper(d.Between(j, j+1)) + " "
			}
		}
		c.Text = strings.TrimSpace(c.Text)
		d.out.Configs = append(d.out.Configs, c)
	}
	if d.lite { // STRICT decides which values a column has; WITHOUT ROWID how they are stored
		for ; i < to; i++ {
			switch {
			case d.Is(i, "STRICT"):
				keep = " STRICT"
			case d.Seq(i, "WITHOUT", "ROWID"):
				config(i, i+2)
				i++
			case !d.Is(i, ","):
				d.fail("an option of the table that is not known: " + d.Between(i, i+1))
			}
		}
		return keep
	}
	value := func(j int) int { // the token behind [=] value
		return min(d.Skip(j, "=")+1, to)
	}
	for i < to {
		switch {
		case d.Seq(i, "PARTITION", "BY"):
			config(i, to)
			return keep
		case d.Is(i, "INHERITS") && !d.family, d.Seq(i, "ON", "COMMIT"):
			end := i + 4
			if d.Is(i, "INHERITS") {
				end = d.close(i+1) + 1
			}
			keep += " " + d.Between(i, min(end, to))
			i = end
		case d.Seq(i, "WITH", "SYSTEM"):
			d.fail("a system-versioned table has versions of rows besides the rows")
			return keep
		case d.family && d.Is(i, "ENGINE", "CHARSET", "COLLATE"):
			end := value(i + 1)
			keep += " " + d.Between(i, end)
			i = end
		case d.family && d.Seq(i, "CHARACTER", "SET"):
			end := value(i + 2)
			keep += " " + d.Between(i, end)
			i = end
		case d.Is(i, ",", "DEFAULT"):
			i++
		case d.Is(i+1, "("):
			end := d.close(i+1) + 1
			config(i, end)
			i = end
		default:
			end := i + 1
			for end < to && !d.Is(end, "=", ",", "(") && !d.Is(end-1, "=") {
				end++
			}
			if d.Is(end, "=") {
				end = value(end)
			}
			config(i, end)
			i = end
		}
	}
	return keep
}

// mentioned gives the columns of the statement's own table that tokens name, in their order.
func (d *definer) mentioned(from, to int) (list []string) {
	for i := from; i < to; i++ {
		if d.Tokens[i].Kind > TokenName || d.Is(i+1, "(") {
			continue
		}
		if slices.ContainsFunc(d.out.Columns, func(c ColumnDefinition) bool { return strings.EqualFold(c.Name, d.named(i)) }) {
			list = append(list, d.named(i))
		}
	}
	return list
}

// names gives those in the parentheses at i, an index's columns: their options and expressions are left out but for names.
func (d *definer) names(i int) (list []string, end int) {
	end = d.close(i)
	for _, p := range d.Split(i+1, end) {
		if d.Tokens[p[0]].Kind <= TokenName && !d.Is(p[0]+1, "(") || d.family && d.Tokens[p[0]].Kind <= TokenName {
			list = append(list, d.named(p[0]))
		} else {
			list = append(list, d.mentioned(p[0], p[1])...)
		}
	}
	return list, end
}

// elements reads the columns and constraints in the parentheses at open. It gives the raw columns.
func (d *definer) elements(open int) (raw []string) {
	end := d.close(open)
	parts := d.Split(open+1, end)
	for _, p := range parts { // columns first: constraints name them
		switch {
		case d.Is(p[0], "LIKE") && !d.family:
			_, next := d.table(p[0] + 1)
			raw = append(raw, d.Between(p[0], next))
		case !d.constraint(p[0]):
			raw = append(raw, d.column(p[0], p[1]))
		}
	}
	for _, p := range parts {
		switch {
		case d.Is(p[0], "PERIOD") && d.Is(p[0]+1, "FOR"):
			d.fail("a period makes versions of rows")
		case d.constraint(p[0]):
			d.key(p[0], p[1])
		}
	}
	d.expressions()
	return raw
}

// constraint reports whether a table constraint or an index begins at i.
func (d *definer) constraint(i int) bool {
	if d.family {
		return d.Is(i, "CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "FOREIGN", "CHECK", "VECTOR") && !(d.Is(i, "VECTOR") && !d.Is(i+1, "INDEX")) ||
			d.Seq(i, "PERIOD", "FOR")
	}
	return d.Is(i, "CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK", "EXCLUDE")
}

// key notes a table constraint.
func (d *definer) key(i, to int) {
	if d.Is(i, "CONSTRAINT") {
		i++
		if !d.constraint(i) {
			i++
		}
	}
	k := KeyDefinition{Kind: "INDEX"}
	for j := i; j < to && d.lite; j++ {
		if d.Seq(j, "ON", "CONFLICT") {
			d.fail("ON CONFLICT of a constraint decides what is written")
		}
	}
	switch {
	case d.Is(i, "PRIMARY"):
		k.Kind = "PRIMARY KEY"
	case d.Is(i, "UNIQUE"):
		k.Kind = "UNIQUE"
	case d.Is(i, "FOREIGN"):
		k.Kind = "FOREIGN KEY"
	case d.Is(i, "CHECK"):
		k.Kind, k.Columns = "CHECK", d.mentioned(i, to)
	case d.Is(i, "EXCLUDE"):
		k.Kind, k.Columns = "EXCLUDE", d.mentioned(i, to)
	case d.Is(i, "FULLTEXT", "SPATIAL", "VECTOR"):
		k.Kind = strings.ToUpper(d.Between(i, i+1)) + " INDEX"
	}
	for j := i; j < to && k.Columns == nil && k.Kind != "CHECK"; j++ {
		if d.Is(j, "(") {
			k.Columns, j = d.names(j)
			if k.Kind == "FOREIGN KEY" && d.Is(j+1, "REFERENCES") {
				k.Table, k.Targets = d.reference(j + 2)
			}
			break
		}
	}
	if k.Kind == "PRIMARY KEY" {
		for n := range d.out.Columns {
			c := &d.out.Columns[n]
			c.NotNull = c.NotNull || slices.ContainsFunc(k.Columns, func(name string) bool { return strings.EqualFold(name, c.Name) })
		}
	}
	d.out.Keys = append(d.out.Keys, k)
}

func (d *definer) reference(i int) (table string, columns []string) {
	table, i = d.table(i)
	if d.Is(i, "(") {
		columns, _ = d.names(i)
	}
	return table, columns
}
