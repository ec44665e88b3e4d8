package mysql

import (
	"slices"
	"strings"
)

// MySQL fills an invisible column less reliably than MariaDB does (measured on 9.7.4): with the binary log on, ADD COLUMN
// refuses a default that differs from row to row (error 1674), though ALTER COLUMN ... SET DEFAULT takes it for rows to
// come; and an INSERT without a list of columns leaves a column with such a default NULL. So wc_row_id is
//
//	0     in rows that were there before it: such a row is named by its primary key, and gets an id when that changes
//	NULL  in rows that others inserted without a list of columns: they are not seen, as a row with the same primary key
//	      may have been there before
//	else  unique, as on MariaDB
//
// Tables without a primary key get ids for the rows that they have (AddColumns).

// noKey stands for a row that has no name.
const noKey = "-"

// rowKey is SQL text that names a row; it holds no space, comma or semicolon.
func rowKey(flavor Flavor, src *source) string {
	id := src.ref + "." + columnRowID
	if flavor != MySQL || src.rel == nil {
		return id
	}
	initial := "'" + noKey + "'"
	if parts := keyParts(src); len(parts) > 0 {
		initial = "CONCAT_WS('_','k'," + strings.Join(parts, ",") + ")"
	}
	return "CASE " + id + " WHEN 0 THEN " + initial + " ELSE IFNULL(" + id + ",'" + noKey + "') END"
}

// keyParts are SQL texts of the values of the whole primary key; none if there is no key or one of an unknown type. Texts that are
// equal to the server may come out differently: that parts what is one row, but only if its key was assigned, and then
// it has an id.
func keyParts(src *source) []string {
	parts := make([]string, len(src.rel.Key))
	for i, name := range src.rel.Key {
		c := src.column(name)
		if c == nil {
			return nil
		}
		ref := src.ref + "." + quoteName(c.Name)
		part, ok := signature(MySQL, ref, c.Type)
		if !ok {
			return nil
		}
		switch typeName(c.Type) {
		case "tinyint", "smallint", "mediumint", "int", "integer", "bigint", "decimal", "numeric", "year", "date":
			part = ref // a key is never NULL
		case "time", "datetime", "timestamp": // these print with a space, or by the session's time zone
			part = ref + "+0"
			if typeName(c.Type) == "timestamp" {
				part = "UNIX_TIMESTAMP(" + ref + ")"
			}
		}
		parts[i] = part
	}
	return parts
}

// renames reports whether an assignment may change what rowKey gives: a row that is named by its primary key gets an id
// then (MySQL).
func (s *statement) renames(assigned []string, src *source) bool {
	return s.r.flavor == MySQL && slices.ContainsFunc(src.rel.Key, func(c string) bool { return containsFold(assigned, c) })
}

// assignments counts what MySQL warns of in the added texts.
func assignments(edits []edit) (n int) {
	for _, e := range edits {
		n += strings.Count(e.add, ":=")
	}
	return n
}
