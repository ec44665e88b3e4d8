package statement

import (
	"strings"
)

func (d *definer) createIndex(i int) {
	d.out.Raw, d.out.Kind = "", "create index"
	kind := "INDEX"
	for j := 1; j < i; j++ {
		if d.Is(j, "UNIQUE", "FULLTEXT", "SPATIAL") {
			kind = strings.ToUpper(d.Between(j, j+1)) + " INDEX"
		}
	}
	for j := i; j < len(d.Tokens); j++ {
		if d.Tokens[j].Depth != d.Tokens[0].Depth || !d.Is(j, "ON") {
			continue
		}
		var next int
		d.out.Table, next = d.table(d.Skip(j+1, "ONLY"))
		for next < len(d.Tokens) && !d.Is(next, "(") {
			next++
		}
		if next < len(d.Tokens) {
			k := KeyDefinition{Kind: kind}
			k.Columns, _ = d.names(next)
			d.out.Keys = append(d.out.Keys, k)
		}
		return
	}
}

// createDomain keeps the type: a domain's constraints and default are optional.
func (d *definer) createDomain(i int) {
	_, i = d.table(i)
	end := d.Skip(i, "AS")
	for end < len(d.Tokens) && !d.Is(end, postgresOptions...) {
		end++
	}
	d.out.Raw = d.Between(0, end)
	if d.Is(end, "COLLATE") {
		_, next := d.table(end + 1)
		d.out.Raw = d.Between(0, next)
	}
}

func (d *definer) drop() {
	i := d.Skip(1, "TEMPORARY", "MATERIALIZED", "UNIQUE", "ONLINE")
	switch {
	case d.Is(i, "TABLE"):
		d.out.Kind = "drop table"
		i++
		if d.Seq(i, "IF", "EXISTS") {
			i += 2
		}
		d.out.Table, _ = d.table(i)
	case d.Is(i, "VIEW", "TYPE", "FUNCTION", "SCHEMA", "EXTENSION", "DOMAIN", "SEQUENCE", "AGGREGATE", "OPERATOR", "CAST", "COLLATION"):
	default:
		d.out.Raw = ""
	}
}

func (d *definer) alter() {
	i := d.Skip(1, "ONLINE", "OFFLINE", "IGNORE")
	if !d.Is(i, "TABLE") {
		if !d.Is(i, "TYPE", "VIEW", "FUNCTION", "SCHEMA") || d.Is(i+2, "OWNER") {
			d.out.Raw = ""
		}
		return
	}
	d.out.Kind = "alter table"
	i++
	if d.Seq(i, "IF", "EXISTS") {
		i += 2
	}
	i = d.Skip(i, "ONLY")
	d.out.Table, i = d.table(i)
	i = d.Skip(i, "*")
	if d.Is(i, "WAIT", "NOWAIT") {
		i += 2
	}
	head := d.Between(0, i)
	to := len(d.Tokens)
	for j := i; j < to; j++ {
		if d.Tokens[j].Depth == d.Tokens[0].Depth && (d.Seq(j, "PARTITION", "BY") || d.Seq(j, "REMOVE", "PARTITIONING")) {
			d.options(j, to)
			to = j
		}
	}
	var keep []string
	for _, p := range d.Split(i, to) {
		if raw := d.action(p[0], p[1]); raw != "" {
			keep = append(keep, raw)
		}
	}
	d.expressions()
	d.out.Raw = ""
	if len(keep) > 0 {
		d.out.Raw = head + " " + strings.Join(keep, ", ")
	}
}

// action gives one action of ALTER TABLE without optional metadata; empty: nothing remains.
func (d *definer) action(i, to int) string {
	all := d.Between(i, to)
	next := i + 1
	named := func() { // behind [COLUMN] [IF [NOT] EXISTS]
		next = d.Skip(next, "COLUMN")
		if d.Is(next, "IF") {
			next = d.Skip(next, "IF", "NOT", "EXISTS")
		}
	}
	switch {
	case d.Is(i, "ADD") && d.Is(next, "PARTITION", "SYSTEM", "PERIOD"):
		if !d.Is(next, "PARTITION") {
			d.fail("a system-versioned table has versions of rows besides the rows")
		}
		return ""
	case d.Is(i, "ADD") && d.constraint(next):
		d.key(next, to)
		return ""
	case d.Is(i, "ADD"):
		named()
		if d.constraint(next) {
			d.key(next, to)
			return ""
		}
		prefix := d.Between(i, next)
		if d.Is(next, "(") {
			return prefix + " (" + strings.Join(d.elements(next), ", ") + ")"
		}
		return prefix + " " + d.column(next, to)
	case d.Is(i, "MODIFY") && d.family:
		named()
		d.out.Rewrites = true
		return d.Between(i, next) + " " + d.column(next, to)
	case d.Is(i, "CHANGE") && d.family:
		named()
		d.out.Rewrites = true
		return d.Between(i, next+1) + " " + d.column(next+1, to)
	case d.Is(i, "DROP"):
		if d.Is(next, "INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "SYSTEM", "PERIOD") {
			d.out.Rewrites = d.out.Rewrites || d.Is(next, "PARTITION")
			return ""
		}
		return all
	case d.Is(i, "RENAME"):
		if d.Is(next, "INDEX", "KEY", "CONSTRAINT") {
			return ""
		}
		d.out.Rewrites = true
		return all
	case d.Is(i, "ALTER") && !d.family:
		named()
		if d.Is(next+1, "TYPE") || d.Seq(next+1, "SET", "DATA") {
			d.out.Rewrites = true
			return all
		}
		return ""
	case d.Is(i, "CONVERT") && d.family, d.Is(i, "INHERIT") && !d.family, d.Is(i, "NO") && d.Is(next, "INHERIT"):
		d.out.Rewrites = true
		return all
	case d.family && d.Is(i, "DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
		return all
	case d.Is(i, "ENABLE", "FORCE") && d.Seq(next, "ROW", "LEVEL"):
		d.fail("row security decides which rows are seen")
	case d.Seq(i, "ATTACH", "PARTITION"):
		d.fail("a partition is attached")
	case d.Seq(i, "DETACH", "PARTITION"):
		d.fail("a partition is detached")
	case d.Is(i, "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"):
		d.out.Rewrites = true
	}
	return ""
}
