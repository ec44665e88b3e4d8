package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// source is a table of a FROM clause that can be asked for its versions.
type source struct {
	rel  *rewrite.Relation
	ref  string            // the name by which its columns are qualified
	cols map[string]string // names of renamed columns; nil if none is
	lock bool
	// certain are the columns that it has if the server comes to what is added, see firm.go.
	certain []string
	// up is set for a table inside a subquery or a common table expression: what shows its version outside.
	up  string
	how part
}

// sources finds the tables of a FROM clause. What cannot be asked is noted as missing. ok is false if the names are
// ambiguous, so that nothing can be added. outputs is the target list or RETURNING list that can see the clause; alone says that * there is the only item
// of the clause.
func (x *instrumentation) sources(from, outputs []*pg.Node, alone bool) (list []source, ok bool) {
	refs := map[string]int{}
	hidden := 0 // depth of joins with an alias, which hides the names inside
	name := func(ref string) {
		if hidden == 0 {
			refs[ref]++
		}
	}
	// below looks at a subquery, or a common table expression, which the item n of the clause knows as ref.
	below := func(q *pg.SelectStmt, ref string, names int, n *pg.Node) {
		if x.visible(outputs, ref) {
			list = append(list, x.expose(q, ref, names, outputs)...)
		} else if stars := x.stars(outputs, ref, q, alone && from[0] == n); stars != nil && names == 0 {
			told := x.expose(q, ref, 0, outputs)
			if list = append(list, told...); len(told) > 0 {
				x.writeOut(stars, ref, columnNames(q))
			}
		}
	}
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		switch f := n.Node.(type) {
		case *pg.Node_RangeVar:
			rv := f.RangeVar
			ref := refName(rv)
			name(ref)
			if c := x.ctes[rv.Relname]; rv.Schemaname == "" && x.scope[rv.Relname] > 0 {
				if hidden == 0 && c.uses == 1 && c.query != nil {
					below(c.query, ref, max(c.names, len(rv.GetAlias().GetColnames())), n)
				}
				return
			}
			if !x.watched(rv) {
				return
			}
			if x.unneeded[rv] {
				x.idle++
				return
			}
			if hidden > 0 {
				x.missing("%s is inside a join with an alias", rv.Relname)
				return
			}
			if told, ok := x.viewed(rv, ref); ok {
				list = append(list, told...)
				x.idle += 1 - len(told) // the text mentions one
				return
			}
			if s, ok := x.source(rv, ref); ok {
				list = append(list, s)
			}
		case *pg.Node_JoinExpr:
			if a := f.JoinExpr.JoinUsingAlias; a != nil {
				name(a.Aliasname)
			}
			if a := f.JoinExpr.Alias; a != nil {
				name(a.Aliasname)
				hidden++
				defer func() { hidden-- }()
			}
			if f.JoinExpr.Jointype != pg.JoinType_JOIN_INNER {
				x.sided++
				defer func() { x.sided-- }()
			}
			visit(f.JoinExpr.Larg)
			visit(f.JoinExpr.Rarg)
		case *pg.Node_RangeTableSample:
			visit(f.RangeTableSample.Relation)
		case *pg.Node_RangeSubselect:
			ref := f.RangeSubselect.GetAlias().GetAliasname()
			if ref == "" {
				return
			}
			name(ref)
			q := f.RangeSubselect.Subquery.GetSelectStmt()
			if hidden > 0 || q == nil {
				return
			}
			below(q, ref, len(f.RangeSubselect.Alias.Colnames), n)
		case *pg.Node_RangeFunction:
			if a := f.RangeFunction.Alias; a != nil {
				name(a.Aliasname)
			}
		}
	}
	for _, n := range from {
		visit(n)
	}
	for _, n := range refs {
		if n > 1 {
			return nil, false
		}
	}
	return list, true
}

// expose adds the versions of a subquery's tables to its columns, and gives them as sources of the query around it.
// The expressions are not volatile, so the subquery is planned as before.
// names is how many columns have a name in a list behind the alias, outputs the select list around.
func (x *instrumentation) expose(s *pg.SelectStmt, ref string, names int, outputs []*pg.Node) []source {
	grouped, why := x.form(s)
	if why != "" || s.IntoClause != nil || x.beyond(s) || names > x.width(s) {
		return nil
	}
	shown := !x.partly && mentioned(outputs, ref, s)
	if grouped && (x.sided > 0 && !shown || !x.collectable(s)) {
		return nil
	}
	defer x.enter(s.WithClause)()
	before := *x
	x.partly, x.sided, x.opens = !shown || len(s.TargetList) > 1, 0, nil
	list, ok := x.sources(s.FromClause, s.TargetList, len(s.FromClause) == 1)
	x.partly, x.sided, x.opens = before.partly, before.sided, before.opens
	at := x.targetEnd(s)
	if !ok || at < 0 || wide(s.TargetList, list) || grouped && !x.countable(s, list) {
		x.edits, x.written = before.edits, before.written // of subqueries within
		return nil
	}
	x.locked(s, list)
	list = x.kept(s, list, false)
	if len(s.DistinctClause) > 0 {
		x.missing("DISTINCT ON shows one row of each group only")
	}
	var out []source
	var add strings.Builder
	for _, in := range list {
		how := in.how
		expr := in.up
		if expr == "" {
			how = part{}
			expr = "pg_catalog.concat_ws(' ', " + x.version(in, &how) + ")"
		}
		if grouped {
			how.nested = true
			expr = fmt.Sprintf("CASE WHEN %s THEN coalesce(pg_catalog.json_agg(%s)::pg_catalog.text, '') ELSE '%s' END", small(list, maxGroupBytes), expr, tooMany)
		}
		x.inner++
		name := fmt.Sprintf("%sinner %d", x.hiddenPrefix(), x.inner)
		fmt.Fprintf(&add, ", %s AS %s", expr, pgsyntax.Quote(name))
		out = append(out, source{rel: in.rel, ref: ref, lock: in.lock, up: pgsyntax.Quote(ref) + "." + pgsyntax.Quote(name), how: how})
	}
	if len(out) > 0 {
		x.edits = append(x.edits, rewrite.Edit{At: at, Add: add.String()})
	}
	return out
}

// mentioned reports whether a select list has a column of the subquery q, which it knows as ref: then the server needs the subquery.
func mentioned(outputs []*pg.Node, ref string, q *pg.SelectStmt) bool {
	found := false
	names := columnNames(q)
	pgsyntax.WalkAll(outputs, func(m proto.Message) bool {
		if r, ok := m.(*pg.ColumnRef); ok {
			name := r.Fields[0].GetString_().GetSval()
			found = found || len(r.Fields) > 1 && name == ref || len(r.Fields) == 1 && slices.Contains(names, name)
		}
		_, sub := m.(*pg.SubLink)
		return !found && !sub
	})
	return found
}

// collectable reports whether the versions of each group of a subquery can be collected without the server having to answer it in another way: it reads
// all rows, collecting does not depend on their order, and neither HAVING nor LIMIT hides groups.
func (x *judge) collectable(s *pg.SelectStmt) bool {
	return s.HavingClause == nil && s.LimitCount == nil && s.LimitOffset == nil && !slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return n.GetGroupingSet() != nil }) && len(s.LockingClause) == 0 &&
		!x.unread(s) && !x.few(s) && (len(s.GroupClause) == 0 || len(s.DistinctClause) == 0)
}

// countable reports whether the groups of a subquery are so few that collecting does not make the server sort in place of hashing, or whether it does not
// matter, as the rows of the answer have an order. The server reckons with 8 KB for what a group collects, and has 4 MB by default.
func (x *judge) countable(s *pg.SelectStmt, list []source) bool {
	if slices.ContainsFunc(list, func(src source) bool { return src.rel.Rows > maxGroupRows }) {
		return false
	}
	top := x.node.GetSelectStmt()
	if len(s.GroupClause) == 0 || len(top.GetSortClause()) > 0 {
		return true
	}
	return len(list) == 1 && list[0].up == "" && list[0].rel.Rows <= maxHashed
}

// maxHashed is how many rows a table has at most that is surely grouped by hashing.
const maxHashed = 400

// source looks at one table that a statement reads.
func (x *judge) source(rv *pg.RangeVar, ref string) (source, bool) {
	rel, why := x.resolve(rv)
	if rel == nil {
		x.missing("%s", why)
		return source{}, false
	}
	if why := unreadable(rel); why != "" {
		x.missing("%s", why)
		return source{}, false
	}
	if !x.native && !rel.Instrumented {
		x.missing("%s does not have the hidden columns", rel.RelationName)
		return source{}, false
	}
	if rel.RowSecurity {
		x.missing("row security policies of %s may read other tables", rel.RelationName)
	}
	s := source{rel: rel, ref: ref}
	if names := rv.GetAlias().GetColnames(); len(names) > 0 {
		s.cols = map[string]string{}
		for i, n := range names {
			name := n.GetString_().GetSval()
			if i >= len(rel.Columns) || name == "tableoid" || name == "ctid" || name == "xmin" || name == "xmax" {
				x.missing("the columns of %s are renamed", rel.RelationName)
				return source{}, false
			}
			s.cols[rel.Columns[i].Name] = name
		}
	}
	return s, true
}

// unreadable says why the versions of a table's rows cannot be asked for.
func unreadable(rel *rewrite.Relation) string {
	switch {
	case rel.Kind == "view", rel.Kind == "matview":
		return fmt.Sprintf("%s is a view", rel.RelationName)
	case rel.Kind == "foreign":
		return fmt.Sprintf("%s is a foreign table", rel.RelationName)
	case rel.Kind != "table" && rel.Kind != "partitioned":
		return fmt.Sprintf("%s is not a table", rel.RelationName)
	case rel.Inherits:
		return fmt.Sprintf("%s has an inheritance parent or child", rel.RelationName)
	case !rel.Readable:
		return fmt.Sprintf("the user may not read all of %s", rel.RelationName)
	}
	return ""
}

// plainKeys are the types whose text is the same whatever the session's settings are, and ASCII without blanks.
var plainKeys = map[string]bool{
	"int2": true, "int4": true, "int8": true, "oid": true, "numeric": true, "bool": true, "uuid": true, "inet": true,
	"cidr": true, "macaddr": true, "macaddr8": true,
}

// sentKeys are types whose text depends on settings: their binary form is taken.
var sentKeys = map[string]string{
	"date": "date_send", "time": "time_send", "timetz": "timetz_send", "timestamp": "timestamp_send",
	"timestamptz": "timestamptz_send", "interval": "interval_send", "float4": "float4send", "float8": "float8send",
	"bytea": "byteasend",
}

// textKeys are types whose text is any text of the database's encoding.
var textKeys = map[string]bool{"text": true, "varchar": true, "bpchar": true, "name": true, "enum": true}

// keyColumns are the columns that name a row of rel: the primary key of the table, or for a partition that of the
// partitioned table at the top, so that a row has one name whichever table the statement names.
func keyColumns(rel *rewrite.Relation) []string {
	if rel.Root != nil {
		return rel.Root.Key
	}
	return rel.Key
}

// key gives the expressions of a row's key; hex says that the text comes in hexadecimal. Nothing if there is no key
// that every session sees alike.
func (x *scene) key(s source) (expr string, hex bool) {
	cols := keyColumns(s.rel)
	var list []string
	var missing []missingColumn
	text, bare := false, s.bare(x, cols)
	for _, c := range cols {
		a := s.rel.Attribute(c)
		if a == nil {
			return "", false
		}
		name := cmp.Or(s.cols[c], c)
		e := s.named(name, bare)
		typ := a.Type
		missing = append(missing, missingColumn{name, "NULL"})
		switch {
		case plainKeys[typ]:
		case sentKeys[typ] != "":
			missing[len(missing)-1].value += "::pg_catalog." + pgsyntax.Quote(typ)
			e = "pg_catalog.encode(pg_catalog." + sentKeys[typ] + "(" + e + "), 'hex')"
		case textKeys[typ] && x.catalog.Encoding == "UTF8":
			text = true
			if len(cols) > 1 {
				e = "pg_catalog.quote_literal(" + e + ")"
			}
		default:
			return "", false
		}
		list = append(list, e)
	}
	expr = strings.Join(list, ", ")
	if text && !x.session.utf8() {
		// The client's encoding may lack characters of the key, which would be an error.
		expr, hex = "pg_catalog.encode(pg_catalog.convert_to(pg_catalog.concat_ws(' ', "+expr+"), 'UTF8'), 'hex')", true
	}
	if bare && expr != "" {
		expr = firmKey(x, s, expr, missing, hex)
	}
	return expr, hex
}

// ask gives the hidden column for a source and notes how it is read. What first holds comes before the first column.
func (x *instrumentation) ask(s source, op history.Op, upsert bool, first ...string) string {
	p := x.part(s, op)
	upsert = upsert && x.native // the hidden columns tell it themselves
	p.upsert = upsert
	ref := pgsyntax.Quote(s.ref)
	var list []string
	if len(x.parts) == 0 {
		list = append(list, first...)
	}
	if p.lsn {
		list = append(list, position)
	}
	if upsert {
		list = append(list, ref+".xmax")
	}
	if x.linked && len(x.parts) == 0 {
		p.linked = true
		old := "pg_catalog.current_setting('" + oldVersion + "')"
		list = append(list, "pg_catalog.octet_length("+old+")", old)
	}
	list = append(list, x.version(s, &p))
	return x.hidden(p, "pg_catalog.concat_ws(' ', "+strings.Join(list, ", ")+")")
}

// oldVersion is the setting in which an UPDATE that links versions keeps the one that it is about to replace.
const oldVersion = "wirecheck.old"

// oldImage is the one in which it keeps the image of that version.
const oldImage = "wirecheck.was"

// remember gives a condition that is always true and keeps the version for which it was evaluated last.
func (x *scene) remember(s source) string {
	ref := pgsyntax.Quote(s.ref)
	list := ref + ".ctid, " + ref + ".xmin"
	if key, _ := x.key(s); key != "" {
		list += ", " + key
	}
	set := "pg_catalog.set_config('" + oldVersion + "', pg_catalog.concat_ws(' ', " + list + "), true)"
	if image, columns := x.image(s); columns != nil {
		set = "(" + set + " || pg_catalog.set_config('" + oldImage + "', " + image + ", true))"
	}
	return set + " IS NOT NULL"
}

const position = "pg_catalog.pg_current_wal_insert_lsn()"

// part makes the description of the next hidden column.
func (x *instrumentation) part(s source, op history.Op) part {
	if s.lock && op == history.OpRead {
		op = history.OpLock
	}
	return part{
		rel: s.rel, op: op, horizon: x.catalog.Horizon,
		// The position is the same for all tables of a row. In recovery the function is an error (manual, 9.27.3).
		lsn: x.native && len(x.parts) == 0 && !x.catalog.Standby && !x.distinct,
	}
}

// hidden adds a hidden column.
func (x *instrumentation) hidden(p part, expr string) string {
	x.parts = append(x.parts, p)
	return expr + " AS " + pgsyntax.Quote(x.hiddenName(len(x.parts)))
}

// version gives the expressions that name a row version.
func (x *instrumentation) version(s source, p *part) string {
	if s.up != "" {
		p.key, p.hex, p.cols, p.columns, p.nested = s.how.key, s.how.hex, s.how.cols, s.how.columns, s.how.nested
		return s.up
	}
	if !x.native {
		return x.columnVersion(s, p)
	}
	ref := pgsyntax.Quote(s.ref)
	// VACUUM FULL and CLUSTER copy the rows to another file, where a version may get the place that an earlier one of the
	// same transaction had. A table's first file has the table's number.
	list := "nullif(pg_catalog.pg_relation_filenode(" + ref + ".tableoid), " + ref + ".tableoid), " + ref + ".tableoid, " + ref + ".ctid, "
	if p.top = p.op == history.OpInsert && s.rel.Kind == "partitioned"; p.top {
		// A row that was routed to a partition has no xmin yet in RETURNING: "cannot retrieve a system column in this
		// context" (seen with 15). The transaction's id tells the writer, but behind a savepoint xmin is another one.
		x.missing("rows that are routed to a partition do not tell their version")
		list += "pg_catalog.pg_current_xact_id_if_assigned()"
	} else {
		list += ref + ".xmin"
	}
	if key, hex := x.key(s); key != "" {
		p.key, p.hex, p.cols = true, hex, keyed(s.rel)
		list += ", " + key
	}
	return list
}

// maxGroupBytes is how large the tables of an aggregate query may be for their versions to be collected: the server
// holds what it collects in memory. The parallel plans that collecting prevents are not made for such tables
// (min_parallel_table_scan_size is 8 MB).
const maxGroupBytes = 4 << 20

// askGroup gives the hidden column that collects the versions of a source in each group. guard is a condition that is
// evaluated once and says that the tables are small enough.
func (x *instrumentation) askGroup(s source, guard string, distinct bool) string {
	p := x.part(s, history.OpRead)
	p.group = true
	what := "pg_catalog.concat_ws(' ', " + x.version(s, &p) + ")"
	if distinct {
		// In a join a row may come many times.
		what = "DISTINCT " + what
	}
	list := fmt.Sprintf("coalesce(pg_catalog.json_agg(%s) FILTER (WHERE %s)::pg_catalog.text, '[]')", what, guard)
	if p.lsn {
		list = position + ", " + list
	}
	return x.hidden(p, fmt.Sprintf("CASE WHEN %s THEN pg_catalog.concat_ws(' ', %s) END", guard, list))
}

// maxGroupRows is how many rows the server may estimate a table to have for an aggregate query of it to be changed:
// with larger ones the collecting would cost the client a parallel plan, or the index that answers min and max.
const maxGroupRows = 50_000

// small is the condition that tables are not larger than that, in bytes each. The size of a partition is not asked for, since that locks it, also where the
// statement does not read it: what the statistics say of its rows is, each taken for 80 bytes.
func small(list []source, limit int) string {
	var sizes []string
	for _, s := range list {
		size := fmt.Sprintf("pg_catalog.pg_relation_size(%d)", s.rel.OID)
		if s.rel.Kind == "partitioned" {
			oids := strings.ReplaceAll(strings.Trim(fmt.Sprint(s.rel.Partitions), "[]"), " ", ",")
			size = fmt.Sprintf("(SELECT coalesce(80 * pg_catalog.sum(pg_catalog.pg_stat_get_live_tuples(r)), 0) FROM pg_catalog.unnest('{%s}'::pg_catalog.oid[]) r)", oids)
		}
		sizes = append(sizes, fmt.Sprintf("%s < %d", size, limit))
	}
	return "(SELECT " + strings.Join(sizes, " AND ") + ")"
}
