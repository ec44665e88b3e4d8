package sqlite

import (
	"cmp"
	"fmt"
	"strings"
	"unsafe"

	"modernc.org/libc"
	library "modernc.org/sqlite/lib"

	"wirecheck/answer"
	"wirecheck/product"
)

// handle is an open database of the library. Its methods are for one goroutine at a time, but for interrupt.
type handle struct {
	tls *libc.TLS
	db  uintptr
	out uintptr // where the library puts pointers: two of them

	relaxed bool // unsafeSync is set
	current bool // the definitions that the library has in memory were read again before the present transaction
}

const (
	pointerSize = int(unsafe.Sizeof(uintptr(0)))
	openFlags   = library.SQLITE_OPEN_READWRITE | library.SQLITE_OPEN_FULLMUTEX
)

// Version is the library's.
func Version() string { return library.SQLITE_VERSION }

// open opens a database file that is there; the name :memory: opens an empty database of its own.
func open(path string) (*handle, error) {
	h := &handle{tls: libc.NewTLS()}
	h.out = libc.Xmalloc(h.tls, uint64(2*pointerSize))
	name, err := libc.CString(path)
	if err != nil || h.out == 0 {
		h.close()
		return nil, fmt.Errorf("open %s: no memory", path)
	}
	defer libc.Xfree(h.tls, name)
	rc := library.Xsqlite3_open_v2(h.tls, name, h.out, openFlags, 0)
	h.db = h.pointer(0)
	if rc != library.SQLITE_OK {
		err := fmt.Errorf("open %s: %s", path, codeName(rc))
		h.close()
		return nil, err
	}
	library.Xsqlite3_extended_result_codes(h.tls, h.db, 1)
	return h, nil
}

// pointer reads what the library has put into h.out.
func (h *handle) pointer(i int) uintptr {
	return *(*uintptr)(unsafe.Add(*(*unsafe.Pointer)(unsafe.Pointer(&h.out)), i*pointerSize))
}

func (h *handle) close() {
	if h.db != 0 {
		library.Xsqlite3_close_v2(h.tls, h.db)
		h.db = 0
	}
	if h.out != 0 {
		libc.Xfree(h.tls, h.out)
		h.out = 0
	}
	h.tls.Close()
}

// interrupt makes the statement that is under way end (sqlite.org/c3ref/interrupt.html). Any goroutine may call it as long as the
// database is open.
func (h *handle) interrupt() {
	tls := libc.NewTLS()
	defer tls.Close()
	library.Xsqlite3_interrupt(tls, h.db)
}

func (h *handle) transaction() answer.State {
	if library.Xsqlite3_get_autocommit(h.tls, h.db) == 0 {
		return answer.Open
	}
	return answer.Idle
}

// failure is the last error.
func (h *handle) failure(rc int32, before answer.State) *answer.Error {
	e := &answer.Error{Code: codeName(rc), Message: libc.GoString(library.Xsqlite3_errmsg(h.tls, h.db))}
	e.Aborted = before == answer.Open && h.transaction() == answer.Idle
	return e
}

// refresh makes the library read definitions again that others have changed, outside of transactions. The library itself looks at
// them when it executes a statement, and when it prepares one for few errors only ("no such table"): for others ("cannot INSERT into
// generated column") it goes by what it has (seen with 3.54.1), which may be of a case that is long over.
func (h *handle) refresh() {
	if h.transaction() != answer.Idle {
		return
	}
	_, refused := h.execute("SELECT 1 FROM sqlite_schema LIMIT 0")
	if h.current = refused == nil; h.current && !h.relaxed {
		_, refused = h.execute(unsafeSync)
		h.relaxed = refused == nil
	}
}

// stale gives the error that a statement had to get in place of its own: where a lock keeps the library from looking whether the
// definitions are still true it goes on with what it has, and "no such table" is what comes of it.
func (h *handle) stale(e *answer.Error) *answer.Error {
	if e.Code != "SQLITE_ERROR" || h.current {
		return e
	}
	if _, refused := h.execute("PRAGMA schema_version"); refused != nil && product.Of("sqlite").Error(refused.Code, refused.Message).Retry {
		refused.Message += ", so that it is not known whether " + e.Message
		return refused
	}
	return e
}

// execute executes the statements of a text until one is refused.
func (h *handle) execute(sql string) (results []answer.Result, refused *answer.Error) {
	text, err := libc.CString(sql)
	if err != nil {
		return nil, &answer.Error{Code: "SQLITE_NOMEM", Message: "no memory for the statement"}
	}
	defer libc.Xfree(h.tls, text)
	for at := text; ; {
		before := h.transaction()
		if rc := library.Xsqlite3_prepare_v2(h.tls, h.db, at, -1, h.out, h.out+uintptr(pointerSize)); rc != library.SQLITE_OK {
			return results, h.stale(h.failure(rc, before))
		}
		statement, rest := h.pointer(0), h.pointer(1)
		if statement != 0 {
			r, rc := h.run(statement)
			if rc != library.SQLITE_DONE {
				refused = h.failure(rc, before)
			}
			library.Xsqlite3_finalize(h.tls, statement)
			if refused != nil {
				return results, refused
			}
			results = append(results, r)
		}
		if rest == at || rest-text >= uintptr(len(sql)) {
			return results, nil
		}
		at = rest
	}
}

// run steps through one statement. The code is SQLITE_DONE at its end.
func (h *handle) run(statement uintptr) (r answer.Result, rc int32) {
	total := library.Xsqlite3_total_changes64(h.tls, h.db)
	rc = library.Xsqlite3_step(h.tls, statement)
	// Only now: if the definitions have changed since it was prepared, the first step prepares it anew, and it may have other columns.
	n := library.Xsqlite3_column_count(h.tls, statement)
	for i := range n {
		r.Columns = append(r.Columns, answer.Column{
			Name: libc.GoString(library.Xsqlite3_column_name(h.tls, statement, i)),
			Type: strings.ToLower(libc.GoString(library.Xsqlite3_column_decltype(h.tls, statement, i))),
		})
	}
	kinds := make([]string, n)
	for ; rc == library.SQLITE_ROW; rc = library.Xsqlite3_step(h.tls, statement) {
		row := make([]answer.Value, n)
		for i := range n {
			var kind string
			row[i], kind = h.value(statement, i)
			if kinds[i] == "" {
				kinds[i] = kind
			} else if kind != "" && kind != kinds[i] {
				kinds[i] = "any"
			}
		}
		r.Rows = append(r.Rows, row)
	}
	for i := range r.Columns { // what is computed has no declared type
		c := &r.Columns[i]
		c.Numeric = kinds[i] == "integer" || kinds[i] == "real"
		c.Type = cmp.Or(c.Type, kinds[i])
	}
	// What the library says of the last change is about the last statement that made one.
	if library.Xsqlite3_total_changes64(h.tls, h.db) != total {
		r.Affected = int64(library.Xsqlite3_changes64(h.tls, h.db))
	}
	return r, rc
}

// value gives a field and the type that it has; NULL has none.
func (h *handle) value(statement uintptr, i int32) (v answer.Value, kind string) {
	switch library.Xsqlite3_column_type(h.tls, statement, i) {
	case library.SQLITE_INTEGER:
		return integerValue(int64(library.Xsqlite3_column_int64(h.tls, statement, i))), "integer"
	case library.SQLITE_FLOAT:
		return realValue(library.Xsqlite3_column_double(h.tls, statement, i)), "real"
	case library.SQLITE_TEXT:
		p := library.Xsqlite3_column_text(h.tls, statement, i)
		return textValue(string(h.bytes(p, library.Xsqlite3_column_bytes(h.tls, statement, i)))), "text"
	case library.SQLITE_BLOB:
		p := library.Xsqlite3_column_blob(h.tls, statement, i)
		return blobValue(h.bytes(p, library.Xsqlite3_column_bytes(h.tls, statement, i))), "blob"
	}
	return nil, ""
}

// bytes copies memory of the library's.
func (h *handle) bytes(p uintptr, n int32) []byte {
	if p == 0 || n == 0 {
		return nil
	}
	return append([]byte(nil), unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&p))), n)...)
}
