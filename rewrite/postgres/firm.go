package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/proto"

	"wirecheck/statement/pgsyntax"
)

// A definition of a client that does not use the proxy shows late. Until then, a text that names a column which is gone is refused when the server
// analyses it. Outside of a transaction block the client's own text is sent then. Where that is too late (in a block, for a prepared statement, which may
// be bound in one, and behind another statement of the same text), what is added names columns so that it cannot be refused. The server looks for a bare
// name in the innermost query first, and then in those around it (manual, 4.2.11 and colNameToVar, src/backend/parser/parse_relation.c):
//
//	(SELECT l.v FROM (SELECT NULL AS "id") d, LATERAL (SELECT "id" AS v FROM (SELECT t.*) s) l)
//
// is t.id, or NULL if t has no such column. The server plans it as a projection, without a scan, but planning it takes longer than the rest of a short
// statement. So a column that the client's own text names, where the server looks before it comes to what is added, is named as it is: if it is gone, the
// server refuses the client's text, too, and says the same.

// missingColumn says what stands for a column if the table does not have it any more.
type missingColumn struct{ name, value string }

// noValue stands for the value of a column in an image: no column that is part of one is an object.
const noValue = "'{}'::pg_catalog.json"

// firm reports whether what is added must not be refused by the server.
func firm(x *scene) bool { return x.session.Firm && x.native }

// sure is s with the columns that are named in parts of a statement, outside of subqueries: what the server analyses before what is added. A bare name is
// one of s if there is no other table.
func (s source) sure(alone bool, parts ...[]*pg.Node) source {
	pgsyntax.WalkAll(slices.Concat(parts...), func(m proto.Message) bool {
		switch n := m.(type) {
		case *pg.SubLink, *pg.RangeSubselect:
			return false
		case *pg.ColumnRef:
			last := pgsyntax.LastName(n.Fields)
			switch {
			case len(n.Fields) == 2 && n.Fields[0].GetString_().GetSval() == s.ref,
				len(n.Fields) == 1 && alone && last != s.ref: // the name of a table may stand for its row
				s.certain = append(s.certain, last)
			}
		}
		return true
	})
	return s
}

// oneTable reports whether a FROM clause has one item, which is a table.
func oneTable(from []*pg.Node) bool { return len(from) == 1 && from[0].GetRangeVar() != nil }

// bare reports whether what is added must not be refused, and s may have lost one of these columns, so that they are named for lookup.
func (s source) bare(x *scene, columns []string) bool {
	return firm(x) && slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(s.certain, cmp.Or(s.cols[c], c)) })
}

// named is the expression of a column of s, or its bare name.
func (s source) named(column string, bare bool) string {
	if bare {
		return pgsyntax.Quote(column)
	}
	return pgsyntax.Quote(s.ref) + "." + pgsyntax.Quote(column)
}

// lookup gives the value of an expression of bare columns of s, with what stands for those that are missing.
func lookup(x *scene, s source, expr string, missing []missingColumn) string {
	list := make([]string, len(missing))
	for i, m := range missing {
		list[i] = m.value + " AS " + pgsyntax.Quote(m.name)
	}
	prefix := x.hiddenPrefix()
	return fmt.Sprintf(`(SELECT "%[1]sl".v FROM (SELECT %[2]s) "%[1]sd", LATERAL (SELECT %[3]s AS v FROM (SELECT %[4]s.*) "%[1]ss") "%[1]sl")`,
		prefix, strings.Join(list, ", "), expr, pgsyntax.Quote(s.ref))
}

// textOf is SQL text for the value of a column of s as a text; NULL if the column may be missing and is.
func (s source) textOf(x *scene, column string) string {
	bare := s.bare(x, []string{column})
	expr := s.named(column, bare) + "::pg_catalog.text"
	if bare {
		expr = lookup(x, s, expr, []missingColumn{{column, "NULL"}})
	}
	return expr
}

// firmKey is lookup for a key: it is NULL if one of its columns is missing.
func firmKey(x *scene, s source, expr string, missing []missingColumn, hex bool) string {
	if len(missing) > 1 || hex {
		names := make([]string, len(missing))
		for i, m := range missing {
			names[i] = pgsyntax.Quote(m.name)
		}
		if !hex {
			expr = "pg_catalog.concat_ws(' ', " + expr + ")"
		}
		expr = "CASE WHEN ROW(" + strings.Join(names, ", ") + ") IS NOT NULL THEN " + expr + " END"
	}
	return lookup(x, s, expr, missing)
}
