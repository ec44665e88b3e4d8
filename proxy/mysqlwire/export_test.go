package mysqlwire

import (
	"wirecheck/rewrite"
	dialect "wirecheck/rewrite/mysql"
)

// NewTables gives the tables to be instrumented that were not there before.
func NewTables(before, now []*rewrite.Relation) []*rewrite.Relation {
	return newTables(before, now, InstrumentAuto)
}

// BreakRewriter gives all sessions a rewriter that panics: it has no cache.
func (o *Observer) BreakRewriter() {
	o.rewriters = map[dialect.Flavor]*dialect.Rewriter{dialect.MariaDB: {}, dialect.MySQL: {}, dialect.TiDB: {}}
}
