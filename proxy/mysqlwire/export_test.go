package mysqlwire

import dialect "wirecheck/rewrite/mysql"

// BreakRewriter gives all sessions a rewriter that panics: it has no cache.
func (o *Observer) BreakRewriter() {
	o.rewriters = map[dialect.Flavor]*dialect.Rewriter{dialect.MariaDB: {}, dialect.MySQL: {}, dialect.TiDB: {}}
}

// AskByName has tables asked for as statements name them, however few the server has. It is for use before the first session.
func (o *Observer) AskByName() { o.byName = true }

// WatchSchema gives what a schemaWatch does with commands and answers.
func WatchSchema(changed func()) (request func([]byte), answer func()) {
	w := &schemaWatch{changed: changed}
	return w.request, w.answer
}
