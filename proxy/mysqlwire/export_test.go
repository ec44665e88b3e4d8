package mysqlwire

import (
	"net"

	dialect "wirecheck/rewrite/mysql"
)

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

// NewCompressed gives a client's connection as it is behind a login that asked for compression. The client's own side is the same, but for NewCommand.
func NewCompressed(c net.Conn) net.Conn { return newCompressed(c) }

// NewCommand makes the numbers of a compressed connection begin again, as a client does with each command. It reports whether the connection is one.
func NewCommand(c net.Conn) bool {
	z, ok := c.(*compressed)
	if ok {
		z.next.Store(0)
	}
	return ok
}
