package mysqlwire

import (
	"bytes"
	"slices"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// columns is what must be known of a result set's columns to cut rows.
type columns struct {
	types  []byte                         // of all columns, the hidden ones included
	hidden int                            // columns at the end that the client did not ask for
	binary bool                           // rows of the binary protocol
	hide   func(row [][]byte) (keep bool) // see rewrite.Plan.Conceal
	// sources are the columns of tables that the client's columns show; nil where nobody asks.
	sources []source

	cells [][]byte // room for the hidden values of a row
}

// shown is the number of columns that the client sees.
func (c *columns) shown() int { return len(c.types) - c.hidden }

// bitmap is the length of a binary row's header byte and null bitmap; the bitmap begins with two unused bits (MySQL manual, "Binary
// Protocol Resultset Row").
func bitmap(columns int) int { return 1 + (columns+7+2)/8 }

// walker finds the columns of a row.
type walker struct {
	columns *columns
	nulls   []byte // binary: the header byte and the null bitmap
	column  int    // the next one
	at      int    // where it begins
}

// start places the walker before the first column. It reports whether the row is long enough for that.
func (w *walker) start(row []byte) bool {
	if !w.columns.binary {
		return true
	}
	n := bitmap(len(w.columns.types))
	if len(row) < n {
		return false
	}
	w.nulls, w.at = row[:n], n
	return true
}

// isNull reports whether the null bitmap of a binary row says so of the i-th column.
func isNull(nulls []byte, i int) bool {
	bit := i + 2
	return nulls[1+bit/8]&(1<<(bit%8)) != 0
}

// next finds the extent of the next column: its value is row[from:to], or null.
func (w *walker) next(row []byte) (from, to int, null bool, err error) {
	rest := row[w.at:]
	w.column++
	if w.columns.binary {
		if isNull(w.nulls, w.column-1) {
			return w.at, w.at, true, nil
		}
		if size, fixed := binarySize(w.columns.types[w.column-1]); fixed {
			return w.step(row, w.at, size)
		}
	}
	if len(rest) == 0 || len(rest) < lenencSize(rest[0]) {
		return 0, 0, false, errMalformed
	}
	if rest[0] == markInfo && !w.columns.binary {
		w.at++
		return w.at, w.at, true, nil
	}
	n, after, err := lenenc(rest)
	if err != nil || n > uint64(len(after)) {
		return 0, 0, false, errMalformed
	}
	return w.step(row, len(row)-len(after), int(n))
}

func (w *walker) step(row []byte, from, size int) (int, int, bool, error) {
	if w.at = from + size; w.at > len(row) {
		return 0, 0, false, errMalformed
	}
	return from, w.at, false, nil
}

func lenencSize(first byte) int {
	switch first {
	case 0xfc:
		return 3
	case 0xfd:
		return 4
	case 0xfe:
		return 9
	}
	return 1
}

// binarySize is the length of a value in the binary protocol; not fixed are those with a length in front, of which the
// temporal ones have one byte, which reads as a length-encoded integer.
func binarySize(typ byte) (n int, fixed bool) {
	switch typ {
	case mysql.MYSQL_TYPE_NULL:
		return 0, true
	case mysql.MYSQL_TYPE_TINY:
		return 1, true
	case mysql.MYSQL_TYPE_SHORT, mysql.MYSQL_TYPE_YEAR:
		return 2, true
	case mysql.MYSQL_TYPE_LONG, mysql.MYSQL_TYPE_INT24, mysql.MYSQL_TYPE_FLOAT:
		return 4, true
	case mysql.MYSQL_TYPE_LONGLONG, mysql.MYSQL_TYPE_DOUBLE:
		return 8, true
	}
	return 0, false
}

// cut takes a whole row apart: shown is the row for the client, hidden the values of the hidden columns (nil: NULL). What is
// returned is valid as long as row, and until the next cut; scratch is used where a binary row's null bitmap becomes shorter.
func (c *columns) cut(row, scratch []byte) (shown []byte, hidden [][]byte, err error) {
	w := walker{columns: c}
	if !w.start(row) {
		return nil, nil, errMalformed
	}
	end := w.at
	hidden = c.cells[:0]
	for w.column < len(c.types) {
		if w.column == c.shown() {
			end = w.at
		}
		from, to, null, err := w.next(row)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case w.column <= c.shown():
		case null:
			hidden = append(hidden, nil)
		default:
			hidden = append(hidden, row[from:to])
		}
	}
	if w.at != len(row) {
		return nil, nil, errMalformed
	}
	c.cells = hidden
	if c.hidden == 0 {
		end = w.at
	}
	if !c.binary {
		return row[:end], hidden, nil
	}
	scratch = c.appendNulls(scratch[:0], row)
	return append(scratch, row[bitmap(len(c.types)):end]...), hidden, nil
}

// first is the value of a row's first column; nothing if it is not there.
func (c *columns) first(row []byte) []byte {
	w := walker{columns: c}
	if len(c.types) == 0 || !w.start(row) {
		return nil
	}
	from, to, _, err := w.next(row)
	if err != nil {
		return nil
	}
	return row[from:to]
}

// appendNulls appends the header and null bitmap of the row for the client to b, which is empty.
func (c *columns) appendNulls(b, row []byte) []byte {
	b = append(b, row[:bitmap(c.shown())]...)
	if used := (c.shown() + 2) % 8; used != 0 {
		b[len(b)-1] &= 1<<used - 1
	}
	return b
}

// conceal lets hide change or drop a row of the client's columns.
func (c *columns) conceal(row []byte, hide func([][]byte) bool) (changed []byte, keep bool, err error) {
	all := columns{types: c.types[:c.shown()], binary: c.binary}
	w := walker{columns: &all}
	if !w.start(row) {
		return nil, false, errMalformed
	}
	cells := make([][]byte, len(all.types))
	head := w.at
	for w.column < len(all.types) {
		i := w.column
		from, to, null, err := w.next(row)
		if err != nil {
			return nil, false, err
		}
		if !null {
			cells[i] = row[from:to:to]
		}
	}
	before := slices.Clone(cells)
	if !hide(cells) {
		return nil, false, nil
	}
	if slices.EqualFunc(before, cells, bytes.Equal) {
		return row, true, nil
	}
	changed = slices.Clone(row[:head])
	for i, cell := range cells {
		_, fixed := binarySize(all.types[i])
		switch {
		case cell == nil && c.binary:
		case cell == nil:
			changed = append(changed, markInfo)
		case c.binary && fixed:
			changed = append(changed, cell...)
		default:
			changed = appendLenencString(changed, cell)
		}
	}
	return changed, true, nil
}
