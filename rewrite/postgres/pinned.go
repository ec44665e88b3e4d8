package postgres

import (
	"cmp"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// pinned reports whether a condition fixes a whole unique key of the source by equality with constants or parameters,
// so that at most one row, known beforehand, can match.
func pinned(where *pg.Node, s source) bool {
	fixed := pgsyntax.Fixed(where, s.ref)
	return statement.Whole(s.rel.Unique, func(c string) bool { c = cmp.Or(s.cols[c], c); return c != "" && fixed[c] }) != nil
}
