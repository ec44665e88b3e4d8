package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/rewrite"
	"wirecheck/statement/pgsyntax"
)

// A view that joins tables, and shows their primary keys, is seen where a query reads it: each row of it is one row of each of its tables, which a
// subquery of the select list finds by that key in the same snapshot. The view stays in the query, so nothing that the client sees of its columns changes.
//
//	(SELECT <version> FROM <table> t WHERE t.id = v.id)
//
// What is known of the view holds if its rule is the same as when the server was asked, in the statement's own snapshot. The subquery locks what reading the view locks. At SERIALIZABLE it
// would also leave a predicate lock on the key's index, so there it tells nothing.

// viewRow makes the JSON array of what rewrite.Shown has, of a view of which each row is one row of each of its tables; NULL of others. The server keeps
// the parsed query: to print it as text the server would lock its tables. It may be long, so it is fetched once, and not where it
// takes more than 8 KiB. Each table stands in it once; up to
// PostgreSQL 15, the view itself does so twice. What the view names, but for the server's own functions and operators, is in pg_depend.
var viewRow = `(SELECT pg_catalog.json_build_array(r.xmin::pg_catalog.text,
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(b.oid::pg_catalog.int8, bn.nspname, b.relname, b.relrowsecurity)) FROM pg_catalog.pg_class b JOIN pg_catalog.pg_namespace bn ON bn.oid = b.relnamespace
   WHERE b.oid = ANY (ARRAY(SELECT refobjid FROM pg_catalog.pg_depend WHERE classid = 2618 AND objid = r.oid AND refclassid = 1259 AND refobjid <> c.oid))
   HAVING pg_catalog.bool_and(pg_catalog.octet_length(pg_catalog.replace(q, ':rtekind 0 :relid ' || b.oid || ' ', '')) = pg_catalog.octet_length(q) - pg_catalog.octet_length(':rtekind 0 :relid ' || b.oid || ' '))),
  (SELECT pg_catalog.json_agg(pg_catalog.json_build_array(pg_catalog.split_part(t, ' ', 1)::pg_catalog.int4, pg_catalog.split_part(t, ' ', 7)::pg_catalog.int8, pg_catalog.split_part(t, ' ', 9)::pg_catalog.int4))
   FROM (SELECT pg_catalog.left(u, 300) AS t FROM pg_catalog.unnest((pg_catalog.string_to_array(q, ':resno '))[2:]) u) t WHERE pg_catalog.split_part(t, ' ', 4) = ':ressortgroupref' AND pg_catalog.split_part(t, ' ', 8) = ':resorigcol'))
 FROM pg_catalog.pg_rewrite r, LATERAL (SELECT r.ev_action::pg_catalog.text || '' AS q OFFSET 0) q
 WHERE r.ev_class = c.oid AND r.rulename = '_RETURN' AND pg_catalog.pg_column_size(r.ev_action) < 8192 AND q LIKE '%:hasAggs false :hasWindowFuncs false :hasTargetSRFs false :hasSubLinks false :hasDistinctOn false %'` +
	` AND q NOT LIKE '%{QUERY %{QUERY %' AND q LIKE '%:cteList <> %:groupClause <> %:groupingSets <> :havingQual <> %:distinctClause <> %:limitOffset <> :limitCount <> %:rowMarks <> :setOperations <> %'` +
	without(":rtekind 1 ", ":rtekind 3 ", ":rtekind 4 ", ":rtekind 5 ", ":rtekind 6 ", ":rtekind 7 ", ":rtekind 8 ", ":rtekind 9 ", ":jointype 1 ", ":jointype 2 ", ":jointype 3 ", ":jointype 4 ", ":jointype 5 ", ":tablesample {") +
	` AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend WHERE classid = 2618 AND objid = r.oid AND refclassid IN (1255, 2617))
 AND NOT EXISTS (SELECT FROM pg_catalog.pg_proc p WHERE p.proname = ANY ('{` + strings.Join(slices.Sorted(maps.Keys(texts)), ",") + `}'::pg_catalog.name[]) AND pg_catalog.strpos(q, ':funcid ' || p.oid || ' ') > 0))`

// without makes conditions that a text has none of some parts.
func without(parts ...string) (conditions string) {
	for _, p := range parts {
		conditions += " AND pg_catalog.strpos(q, '" + p + "') = 0"
	}
	return conditions
}

// maxViews is how many views may stand within each other.
const maxViews = 8

// shownTable is a table of a view: its rows are found by these columns of the view, which show its primary key.
type shownTable struct {
	rel     *rewrite.Relation
	columns map[int]string // the view's names of the table's columns, by their numbers
}

// tablesOf gives the tables of a view. guard is a condition that it is the one that is known. ok is false if its rows do not tell their rows.
func tablesOf(x *scene, view *rewrite.Relation, depth int) (list []shownTable, guard []string, ok bool) {
	if view.Shown == nil || depth == maxViews {
		return nil, nil, false
	}
	guard = append(guard, fmt.Sprintf("(SELECT xmin FROM pg_catalog.pg_rewrite WHERE ev_class = %d AND rulename = '_RETURN') = '%s'::pg_catalog.xid", view.OID, view.Shown.Rule))
	for i, t := range view.Shown.Tables {
		rel := in(x.catalog.Named(t.Name), t.Schema)
		if rel == nil || rel.OID != t.OID || t.Secured || slices.ContainsFunc(view.Shown.Tables[:i], func(o rewrite.ShownTable) bool { return o.OID == t.OID }) {
			return nil, nil, false
		}
		shown := map[int]string{}
		for _, a := range view.Columns {
			if of := t.Columns[a.Number]; of > 0 {
				shown[of] = a.Name
			}
		}
		if rel.Kind != "view" {
			list = append(list, shownTable{rel, shown})
			continue
		}
		inner, more, ok := tablesOf(x, rel, depth+1)
		if !ok {
			return nil, nil, false
		}
		for _, s := range inner {
			through := map[int]string{}
			for of, name := range s.columns {
				if a := rel.Attribute(name); a != nil && shown[a.Number] != "" {
					through[of] = shown[a.Number]
				}
			}
			list = append(list, shownTable{s.rel, through})
		}
		guard = append(guard, more...)
	}
	for i, t := range list {
		if unreadable(t.rel) != "" || t.rel.RowSecurity || slices.ContainsFunc(list[:i], func(o shownTable) bool { return topName(o.rel) == topName(t.rel) }) {
			return nil, nil, false
		}
	}
	return list, guard, len(list) > 0
}

// viewed gives the tables of a view as sources of the query that reads it.
func (x *instrumentation) viewed(rv *pg.RangeVar, ref string) (told []source, ok bool) {
	s := x.opens
	view, _ := x.resolve(rv)
	if s == nil || view == nil || view.Kind != "view" || x.sided > 0 || len(rv.GetAlias().GetColnames()) > 0 {
		return nil, false
	}
	tables, guard, ok := tablesOf(x.scene, view, 0)
	if !ok {
		return nil, false
	}
	guarded := strings.Join(append(guard, "pg_catalog.current_setting('transaction_isolation') = 'read committed'"), " AND ")
	for _, t := range tables {
		if indexed(s, t) || t.rel.Rows > maxGroupRows && !short(s) {
			return nil, false
		}
		row := source{rel: t.rel, ref: x.hiddenPrefix() + "row"}
		var where []string
		for _, c := range keyColumns(t.rel) {
			a := t.rel.Attribute(c)
			if a == nil || t.columns[a.Number] == "" {
				return nil, false
			}
			where = append(where, fmt.Sprintf("%s.%s = %s.%s", pgsyntax.Quote(row.ref), pgsyntax.Quote(c), pgsyntax.Quote(ref), pgsyntax.Quote(t.columns[a.Number])))
		}
		var how part
		version := x.version(row, &how)
		if how.nested = true; !how.key {
			return nil, false
		}
		up := fmt.Sprintf("coalesce(CASE WHEN %s THEN (SELECT pg_catalog.concat_ws(' ', %s) FROM %s.%s %s WHERE %s) END, '%s')", guarded, version,
			pgsyntax.Quote(t.rel.Schema), pgsyntax.Quote(t.rel.Name), pgsyntax.Quote(row.ref), strings.Join(where, " AND "), tooMany)
		told = append(told, source{rel: t.rel, ref: ref, up: up, how: how})
	}
	x.views = maps.Clone(x.views)
	if x.views == nil {
		x.views = map[string]map[string]rewrite.Shows{}
	}
	x.views[view.String()] = shownBy(tables)
	return told, true
}

// shownBy gives the columns that a view shows of its tables, by its names of them.
func shownBy(tables []shownTable) map[string]rewrite.Shows {
	columns := map[string]rewrite.Shows{}
	for _, t := range tables {
		for _, a := range t.rel.Columns {
			if name := t.columns[a.Number]; name != "" {
				columns[strings.ToLower(name)] = rewrite.Shows{Table: topName(t.rel), Name: a.Name}
			}
		}
	}
	return columns
}

// opened gives a query in which views are seen, or nil: none may lock rows, and what is added to groups must leave them in their order.
func (x *instrumentation) opened(s *pg.SelectStmt) *pg.SelectStmt {
	if !x.native || x.catalog.Standby || x.distinct || locks(s) || s.HavingClause != nil || len(s.DistinctClause) > 0 || len(s.GroupClause) > 0 && !x.sortedGroups(s) {
		return nil
	}
	return s
}

// sortedGroups reports whether the groups of a query stand in one order whatever the server does: it sorts by all that it groups by.
func (x *judge) sortedGroups(s *pg.SelectStmt) bool {
	names := map[string]bool{}
	last := func(n *pg.Node) string {
		f := n.GetColumnRef().GetFields()
		if len(f) == 0 {
			return ""
		}
		return f[len(f)-1].GetString_().GetSval()
	}
	for _, n := range s.SortClause {
		names[last(n.GetSortBy().GetNode())] = true
	}
	delete(names, "")
	for _, n := range s.TargetList { // ORDER BY means a column of the answer first, GROUP BY one of a table
		if name := n.GetResTarget().GetName(); name != "" && last(n.GetResTarget().GetVal()) != name {
			delete(names, name)
		}
	}
	return s.LimitCount == nil && s.LimitOffset == nil && !x.ordered(&pg.SelectStmt{TargetList: s.TargetList}) &&
		!slices.ContainsFunc(s.GroupClause, func(n *pg.Node) bool { return !names[last(n)] })
}

// indexed reports whether an index of a view's table may have all that a query needs of it, and give the order of the rows: more columns would take that
// way from it.
func indexed(s *pg.SelectStmt, t shownTable) bool {
	if len(s.SortClause) > 0 || t.rel.Rows >= 0 && t.rel.Rows < minCovered {
		return false
	}
	names, star := map[string]bool{}, false
	pgsyntax.Walk(s, func(m proto.Message) bool {
		if r, ok := m.(*pg.ColumnRef); ok {
			name := r.Fields[len(r.Fields)-1].GetString_().GetSval()
			names[name], star = true, star || name == ""
		}
		return true
	})
	if star {
		for _, name := range t.columns {
			names[name] = true
		}
	}
	covers := func(ix []string) bool {
		for _, a := range t.rel.Columns {
			if name := t.columns[a.Number]; name != "" && names[name] && !slices.Contains(ix, a.Name) {
				return false
			}
		}
		return true
	}
	return slices.ContainsFunc(t.rel.Indexes, covers) || slices.ContainsFunc(t.rel.Unique, covers)
}

// short reports whether a query gives few rows.
func short(s *pg.SelectStmt) bool {
	n := s.LimitCount.GetAConst().GetIval()
	return n != nil && n.Ival <= maxCounted && s.LimitOption == pg.LimitOption_LIMIT_OPTION_COUNT
}
