package rewrite

import (
	"strings"
)

func (d *definer) createIndex(i int) {
	d.out.Raw, d.out.Kind = "", "create index"
	kind := "INDEX"
	for j := 1; j < i; j++ {
		if d.is(j, "UNIQUE", "FULLTEXT", "SPATIAL") {
			kind = strings.ToUpper(d.text(j, j+1)) + " INDEX"
		}
	}
	for j := i; j < len(d.t); j++ {
		if d.t[j].Depth != d.t[0].Depth || !d.is(j, "ON") {
			continue
		}
		var next int
		d.out.Table, next = d.name(d.skip(j+1, "ONLY"))
		for next < len(d.t) && !d.is(next, "(") {
			next++
		}
		if next < len(d.t) {
			k := KeyDefinition{Kind: kind}
			k.Columns, _ = d.names(next)
			d.out.Keys = append(d.out.Keys, k)
		}
		return
	}
}

// createDomain keeps the type: a domain's constraints and default are optional.
func (d *definer) createDomain(i int) {
	_, i = d.name(i)
	end := d.skip(i, "AS")
	for end < len(d.t) && !d.is(end, postgresOptions...) {
		end++
	}
	d.out.Raw = d.text(0, end)
	if d.is(end, "COLLATE") {
		_, next := d.name(end + 1)
		d.out.Raw = d.text(0, next)
	}
}

func (d *definer) drop() {
	i := d.skip(1, "TEMPORARY", "MATERIALIZED", "UNIQUE", "ONLINE")
	switch {
	case d.is(i, "TABLE"):
		d.out.Kind = "drop table"
		i++
		if d.seq(i, "IF", "EXISTS") {
			i += 2
		}
		d.out.Table, _ = d.name(i)
	case d.is(i, "VIEW", "TYPE", "FUNCTION", "SCHEMA", "EXTENSION", "DOMAIN", "SEQUENCE", "AGGREGATE", "OPERATOR", "CAST", "COLLATION"):
	default:
		d.out.Raw = ""
	}
}

func (d *definer) alter() {
	i := d.skip(1, "ONLINE", "OFFLINE", "IGNORE")
	if !d.is(i, "TABLE") {
		if !d.is(i, "TYPE", "VIEW", "FUNCTION", "SCHEMA") || d.is(i+2, "OWNER") {
			d.out.Raw = ""
		}
		return
	}
	d.out.Kind = "alter table"
	i++
	if d.seq(i, "IF", "EXISTS") {
		i += 2
	}
	i = d.skip(i, "ONLY")
	d.out.Table, i = d.name(i)
	i = d.skip(i, "*")
	if d.is(i, "WAIT", "NOWAIT") {
		i += 2
	}
	head := d.text(0, i)
	to := len(d.t)
	for j := i; j < to; j++ {
		if d.t[j].Depth == d.t[0].Depth && (d.seq(j, "PARTITION", "BY") || d.seq(j, "REMOVE", "PARTITIONING")) {
			d.options(j, to)
			to = j
		}
	}
	var keep []string
	for _, p := range d.parts(i, to, d.t[0].Depth) {
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
	all := d.text(i, to)
	next := i + 1
	named := func() { // behind [COLUMN] [IF [NOT] EXISTS]
		next = d.skip(next, "COLUMN")
		if d.is(next, "IF") {
			next = d.skip(next, "IF", "NOT", "EXISTS")
		}
	}
	switch {
	case d.is(i, "ADD") && d.is(next, "PARTITION", "SYSTEM", "PERIOD"):
		if !d.is(next, "PARTITION") {
			d.fail("a system-versioned table has versions of rows besides the rows")
		}
		return ""
	case d.is(i, "ADD") && d.constraint(next):
		d.key(next, to)
		return ""
	case d.is(i, "ADD"):
		named()
		if d.constraint(next) {
			d.key(next, to)
			return ""
		}
		prefix := d.text(i, next)
		if d.is(next, "(") {
			return prefix + " (" + strings.Join(d.elements(next), ", ") + ")"
		}
		return prefix + " " + d.column(next, to)
	case d.is(i, "MODIFY") && d.family:
		named()
		d.out.Rewrites = true
		return d.text(i, next) + " " + d.column(next, to)
	case d.is(i, "CHANGE") && d.family:
		named()
		d.out.Rewrites = true
		return d.text(i, next+1) + " " + d.column(next+1, to)
	case d.is(i, "DROP"):
		if d.is(next, "INDEX", "KEY", "PRIMARY", "FOREIGN", "CONSTRAINT", "CHECK", "PARTITION", "SYSTEM", "PERIOD") {
			d.out.Rewrites = d.out.Rewrites || d.is(next, "PARTITION")
			return ""
		}
		return all
	case d.is(i, "RENAME"):
		if d.is(next, "INDEX", "KEY", "CONSTRAINT") {
			return ""
		}
		d.out.Rewrites = true
		return all
	case d.is(i, "ALTER") && !d.family:
		named()
		if d.is(next+1, "TYPE") || d.seq(next+1, "SET", "DATA") {
			d.out.Rewrites = true
			return all
		}
		return ""
	case d.is(i, "CONVERT") && d.family, d.is(i, "INHERIT") && !d.family, d.is(i, "NO") && d.is(next, "INHERIT"):
		d.out.Rewrites = true
		return all
	case d.family && d.is(i, "DEFAULT", "CHARACTER", "CHARSET", "COLLATE"):
		return all
	case d.is(i, "ENABLE", "FORCE") && d.seq(next, "ROW", "LEVEL"):
		d.fail("row security decides which rows are seen")
	case d.seq(i, "ATTACH", "PARTITION"):
		d.fail("a partition is attached")
	case d.seq(i, "DETACH", "PARTITION"):
		d.fail("a partition is detached")
	case d.is(i, "TRUNCATE", "EXCHANGE", "DISCARD", "IMPORT"):
		d.out.Rewrites = true
	}
	return ""
}
