package postgres

import (
	"fmt"
	"strings"

	"wirecheck/statement/pgsyntax"
)

// A definition of a client that does not use the proxy shows late. Until then, a text that names a column which is gone is refused when the server
// analyses it. Outside of a transaction block the client's own text is sent then. Where that is too late (in a block, for a prepared statement, which may
// be bound in one, and behind another statement of the same text), what is added names columns so that it cannot be refused. The server looks for a bare
// name in the innermost query first, and then in those around it (manual, 4.2.11 and colNameToVar, src/backend/parser/parse_relation.c):
//
//	(SELECT l.v FROM (SELECT NULL AS "id") d, LATERAL (SELECT "id" AS v FROM (SELECT t.*) s) l)
//
// is t.id, or NULL if t has no such column. The server plans it as a projection, without a scan.

// missingColumn says what stands for a column if the table does not have it any more.
type missingColumn struct{ name, value string }

// noValue stands for the value of a column in an image: no column that is part of one is an object.
const noValue = "'{}'::pg_catalog.json"

// firm reports whether what is added must not be refused by the server.
func firm(x *scene) bool { return x.session.Firm && x.native }

// namedBy is the expression of a column of s, or its bare name for lookup.
func namedBy(x *scene, s source, name string) string {
	if firm(x) {
		return pgsyntax.Quote(name)
	}
	return pgsyntax.Quote(s.ref) + "." + pgsyntax.Quote(name)
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
