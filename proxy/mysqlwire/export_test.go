package mysqlwire

import dialect "wirecheck/rewrite/mysql"

// BreakRewriter gives all sessions a rewriter that panics: it has no cache.
func (o *Observer) BreakRewriter() {
	o.rewriters = map[dialect.Flavor]*dialect.Rewriter{dialect.MariaDB: {}, dialect.MySQL: {}, dialect.TiDB: {}}
}
