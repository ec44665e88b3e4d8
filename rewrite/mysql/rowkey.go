package mysql

import (
	"strings"
)

// MySQL fills an invisible column less reliably than MariaDB does (measured on 9.7.4): ADD COLUMN refuses a default that
// differs from row to row (error 1674), though ALTER COLUMN ... SET DEFAULT takes it for rows to come; and an INSERT
// without a list of columns leaves a column with such a default NULL. So wc_row_id is
//
//	unique  as on MariaDB, in rows that got it from its default, or from AddColumns if they were there before
//	0       in rows that AddColumns left alone, as their table has triggers
//	NULL    in rows that others inserted without a list of columns
//
// Rows without an id are not seen. Their primary key could not name them: it may have been that of another row before, by
// a DELETE and an INSERT, or by an UPDATE of the key, that nobody saw.

// noKey stands for a row that has no name.
const noKey = "-"

// rowKey is SQL text that names a row; it holds no space, comma or semicolon.
func rowKey(flavor Flavor, src *source) string {
	id := src.ref + "." + columnRowID
	if flavor != MySQL { // on TiDB a row without an id has noKey in it
		return id
	}
	return "IFNULL(NULLIF(" + id + ",0),'" + noKey + "')"
}

// assignments counts what MySQL warns of in the added texts.
func assignments(edits []edit) (n int) {
	for _, e := range edits {
		n += strings.Count(e.add, ":=")
	}
	return n
}
