package mysql

import (
	"bytes"
	"strings"
)

// HiddenColumn reports whether a column of that name is one of ours: the answer to COM_FIELD_LIST leaves it away.
func HiddenColumn(name string) bool {
	return strings.EqualFold(name, columnRowID) || strings.EqualFold(name, columnWriters)
}

// concealRows drops the rows in which one cell is the name of a hidden column.
func concealRows(row [][]byte) bool {
	for _, cell := range row {
		if len(cell) == len(columnRowID) && HiddenColumn(string(cell)) || len(cell) == len(columnWriters) && HiddenColumn(string(cell)) {
			return false
		}
	}
	return true
}

func (s *scene) concealShow(i int) func([][]byte) bool {
	t := s.text
	if t.Is(i+1, "CREATE") && t.Is(i+2, "TABLE") {
		return concealCreate
	}
	for j := i + 1; j < i+4; j++ {
		if t.Is(j, "COLUMNS", "FIELDS") {
			return concealRows
		}
	}
	return nil
}

// aboutColumns reports whether a statement may be about columns.
func (s *judge) aboutColumns() bool {
	for i := range s.text.Tokens {
		if name, ok := s.text.Name(i); ok && len(name) == len("information_schema") && strings.EqualFold(name, "information_schema") {
			return true
		}
	}
	return strings.EqualFold(s.session.Database, "information_schema")
}

// ConcealAnswer gives what conceals the hidden columns in a result of which only its columns tell what it is about: that of a
// procedure, or of a statement that is prepared in SQL. Of each column it gets the schema, the table as the statement calls it
// and as the server does, and the column's name in the same two ways. It is nil for other results.
func ConcealAnswer(columns [][5]string) func(row [][]byte) bool {
	for i, c := range columns {
		about := strings.EqualFold(c[0], "information_schema") || c[1] == "COLUMNS" || c[2] == "COLUMNS"
		if name := strings.ToUpper(c[4]); about && (name == "COLUMN_NAME" || name == "FIELD") {
			return concealRows
		}
		if i == 1 && c[3] == "Create Table" {
			return concealCreate
		}
	}
	return nil
}

// concealCreate takes the lines of the hidden columns out of the answer to SHOW CREATE TABLE. The server prints one
// column or key to a line, each but the last with a comma at its end.
func concealCreate(row [][]byte) bool {
	for i := 1; i < len(row) && i < 2; i++ {
		row[i] = stripColumns(row[i])
	}
	return true
}

func stripColumns(ddl []byte) []byte {
	if !bytes.Contains(ddl, []byte(columnRowID)) && !bytes.Contains(ddl, []byte(columnWriters)) {
		return ddl
	}
	var kept [][]byte
	lines := bytes.Split(ddl, []byte("\n"))
	for _, line := range lines {
		name, _, _ := bytes.Cut(bytes.TrimLeft(line, " "), []byte(" "))
		if HiddenColumn(string(bytes.Trim(name, "`\""))) { // without quotes if sql_quote_show_create is off
			if n := len(kept); n > 0 && !bytes.HasSuffix(line, []byte(",")) {
				kept[n-1] = bytes.TrimSuffix(kept[n-1], []byte(",")) // it was the last one
			}
			continue
		}
		kept = append(kept, line)
	}
	return bytes.Join(kept, []byte("\n"))
}
