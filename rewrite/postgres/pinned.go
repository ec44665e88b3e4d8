package postgres

import (
	"slices"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement/pgsyntax"
)

// pinned reports whether a condition fixes a whole unique key of the source by equality with constants or parameters,
// so that at most one row, known beforehand, can match.
func pinned(where *pg.Node, s source) bool {
	fixed := pgsyntax.Fixed(where, s.ref)
	return slices.ContainsFunc(s.rel.Unique, func(u []string) bool {
		for _, c := range u {
			if s.cols[c] != "" {
				c = s.cols[c]
			}
			if c == "" || !fixed[c] {
				return false
			}
		}
		return len(u) > 0
	})
}
