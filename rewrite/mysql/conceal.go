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

// concealSelect looks for queries about columns.
func (s *scene) concealSelect() func([][]byte) bool {
	about := strings.EqualFold(s.session.Database, "information_schema")
	for i := range s.text.Tokens {
		if name, ok := s.text.Name(i); ok && len(name) == len("information_schema") && strings.EqualFold(name, "information_schema") {
			about = true
		}
	}
	if !about {
		return nil
	}
	return concealRows
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
		name := bytes.TrimLeft(line, " ")
		if bytes.HasPrefix(name, []byte("`"+columnRowID+"`")) || bytes.HasPrefix(name, []byte("`"+columnWriters+"`")) ||
			bytes.HasPrefix(name, []byte(`"`+columnRowID+`"`)) || bytes.HasPrefix(name, []byte(`"`+columnWriters+`"`)) {
			if n := len(kept); n > 0 && !bytes.HasSuffix(line, []byte(",")) {
				kept[n-1] = bytes.TrimSuffix(kept[n-1], []byte(",")) // it was the last one
			}
			continue
		}
		kept = append(kept, line)
	}
	return bytes.Join(kept, []byte("\n"))
}
