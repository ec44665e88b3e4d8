package mysqlwire

import (
	"strings"
	"sync/atomic"

	"github.com/go-mysql-org/go-mysql/mysql"

	"wirecheck/trace/lex"
)

// schemaWatch looks for commands that may change the schema in a session that is not observed while others are
// (proxy.Config.Sample), so that these read their catalogs again. It would rather see a change too many.
type schemaWatch struct {
	changed func()

	// Of the goroutine that reads the client:
	head     [headerSize]byte // as far as it came
	have     int
	rest     int  // bytes of the present frame that are still to come
	goes     bool // the frame goes on with the packet of the one before it
	prepared bool // a statement was prepared that may change the schema

	pending atomic.Bool // a command that may change the schema was sent, and its answer may not be complete
}

// request gets what the client sent.
func (w *schemaWatch) request(b []byte) {
	for len(b) > 0 {
		if w.rest > 0 {
			k := min(w.rest, len(b))
			b, w.rest = b[k:], w.rest-k
			continue
		}
		k := copy(w.head[w.have:], b)
		w.have, b = w.have+k, b[k:]
		if w.have < headerSize || len(b) == 0 && w.head[0]|w.head[1]|w.head[2] != 0 {
			return
		}
		w.have, w.rest = 0, int(w.head[0])|int(w.head[1])<<8|int(w.head[2])<<16
		if !w.goes && w.head[3] == 0 && w.rest > 0 {
			w.command(b[0], b[1:min(w.rest, len(b))], w.rest <= len(b))
		}
		w.goes = w.rest == frameMax
	}
}

// command looks at a command with its text, as far as it is there.
func (w *schemaWatch) command(kind byte, text []byte, whole bool) {
	may := false
	switch kind {
	case mysql.COM_QUERY:
		may = !whole || mayChangeSchema(string(text))
	case mysql.COM_STMT_PREPARE:
		w.prepared = w.prepared || !whole || mayChangeSchema(string(text))
	case mysql.COM_STMT_EXECUTE, comBulkExecute:
		may = w.prepared
	case mysql.COM_CREATE_DB, mysql.COM_DROP_DB:
		may = true
	}
	if may {
		w.changed() // no session may rely on what it reads from here on
	}
	w.pending.Store(may)
}

// answer says that the server has sent something.
func (w *schemaWatch) answer() {
	if w.pending.Load() {
		w.changed()
	}
}

// mayChangeSchema reports whether a text may change the schema. One with query attributes looks as if it did.
func mayChangeSchema(sql string) bool {
	sql = strings.TrimPrefix(sql, "\x00\x01") // no query attributes, one set of them
	words := lex.Words(sql, lex.MySQL, 1)
	if len(words) == 0 || strings.Contains(sql, ";") && lex.Several(sql, lex.MySQL) {
		return true
	}
	switch words[0] {
	case "select", "insert", "update", "delete", "replace", "with", "set", "show", "use", "begin", "start", "commit", "rollback", "savepoint", "release",
		"explain", "describe", "desc", "kill", "lock", "unlock", "flush", "load", "values", "table", "xa", "prepare", "deallocate":
		return false
	}
	return true
}
