package mysql

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
)

// TiDB differs from MariaDB in this (measured on TiDB of November 2025 and of January 2023):
//
//   - It has no invisible columns, so what would show them is written out (veil.go).
//   - The expressions of an UPDATE's SET list see the row as it was, whatever was assigned before, so nothing in the statement
//     can look at the new values. Whether the row changes is computed from the client's own expressions, once more, as the
//     columns' types would take them (stampChanged). ON DUPLICATE KEY UPDATE sees new values, as MariaDB's.
//   - A statement that meets a write conflict is executed again by the server, and both attempts append to the log. The
//     entries of the last one come last; how many they are the answer tells (Attempt).
//   - wc_row_id is a UUID, as there is no UUID_SHORT().
//
// Adding columns, a condition or an assignment changes neither the locks nor, for rows found by their key, the plan.

// visible reports whether the hidden columns are ordinary ones.
func (f Flavor) visible() bool { return f == TiDB }

// stampChanged puts in, behind the assignments of an UPDATE, what marks a row that they really change.
func (s *statement) stampChanged(list []*ast.Assignment, src *source, set, end int, log bool) bool {
	texts := s.assigned(set, end)
	if len(texts) != len(list) {
		s.opaque("the assignments are not certain")
		return false
	}
	var same []string
	var columns []string
	for i, a := range list {
		c := src.column(a.Column.Name.O)
		if c == nil || c.Generated || containsFold(columns, c.Name) {
			s.opaque("a column that is not known, or assigned twice")
			return false
		}
		columns = append(columns, c.Name)
		before, ok := signature(s.r.flavor, src.ref+"."+quoteName(c.Name), c.Type)
		after, ok2 := assignedSignature(s.r.flavor, texts[i], a.Expr, c.Type)
		if !ok || !ok2 {
			s.opaque("whether it changes the row cannot be computed beforehand on this server")
			return false
		}
		same = append(same, before+"="+after)
	}
	w := src.ref + "." + columnWriters
	kept, next := w, nextWriters(w)
	if log {
		kept, next = logging("m", src, kept), logging("u", src, next)
		s.plan.Log = true
	}
	s.plan.Stamp = true
	s.edits = append(s.edits, edit{
		at: s.text.tokens[end-1].end, add: "," + w + "=IF(" + strings.Join(same, " AND ") + "," + kept + "," + next + ")",
		check: "," + columnWriters + "=1 ",
	})
	return true
}

// assigned gives the texts of the values that are assigned between the tokens set and end.
func (s *statement) assigned(set, end int) (texts []string) {
	t := s.text
	depth := t.tokens[set].depth
	for i := set + 1; i < end; {
		stop := t.find(i, depth, ",")
		if stop < 0 || stop > end {
			stop = end
		}
		eq := t.find(i, depth, "=")
		if eq < 0 || eq+1 >= stop {
			return nil
		}
		texts = append(texts, t.sql[t.tokens[eq+1].start:t.tokens[stop-1].end])
		i = stop + 1
	}
	return texts
}

// assignedSignature is the signature of the value that a column of type typ takes from an expression. ok is false where that is
// not certain: then the statement stays as it is.
func assignedSignature(flavor Flavor, text string, e ast.ExprNode, typ string) (string, bool) {
	var v repeatable
	if e == nil || !plainCondition(e) {
		return "", false
	}
	if e.Accept(&v); v.not {
		return "", false
	}
	text = "(" + text + ")"
	_, size, _ := strings.Cut(strings.TrimSuffix(strings.Fields(strings.ToLower(typ))[0], ")"), "(")
	switch name := typeName(typ); name {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		as := "SIGNED"
		if strings.Contains(strings.ToLower(typ), "unsigned") {
			as = "UNSIGNED"
		}
		text = "CAST(" + text + "+0 AS " + as + ")"
		return "IFNULL(" + text + ",'N')", !v.words
	case "decimal", "numeric":
		text = "CAST(" + text + " AS DECIMAL(" + size + "))"
		return "IFNULL(" + text + ",'N')", !v.words && size != ""
	case "double", "real":
		return "IFNULL(" + text + "*1e0,'N')", !v.words
	case "char":
		text = "RTRIM(CAST(" + text + " AS CHAR))"
	case "varchar", "tinytext", "text", "mediumtext", "longtext":
		text = "CAST(" + text + " AS CHAR)"
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		text = "CAST(" + text + " AS BINARY)"
	case "date":
		text = "CAST(" + text + " AS DATE)"
	case "datetime", "timestamp", "time":
		if size == "" {
			size = "0"
		}
		as := "DATETIME"
		if name == "time" {
			as = "TIME"
		}
		text = "CAST(" + text + " AS " + as + "(" + size + "))"
	default:
		return "", false
	}
	return signature(flavor, text, typ)
}

// repeatable looks for what makes it uncertain that an expression, evaluated twice, gives the same and no further warning.
type repeatable struct {
	not   bool
	words bool // a text that is no number
}

// Enter implements ast.Visitor.
func (v *repeatable) Enter(n ast.Node) (ast.Node, bool) {
	switch n := n.(type) {
	case *param:
		v.not = true // it cannot stand twice in the text
	case *value:
		if s, ok := n.v.(string); ok {
			if _, err := strconv.ParseFloat(s, 64); err != nil {
				v.words = true
			}
		}
	case *ast.BinaryOperationExpr:
		switch n.Op.String() {
		case "div", "intdiv", "mod": // by zero, it warns
			v.not = true
		}
	case *ast.FuncCastExpr:
		v.not = true // it may warn
	}
	return n, v.not
}

// Leave implements ast.Visitor.
func (v *repeatable) Leave(n ast.Node) (ast.Node, bool) { return n, !v.not }

// Attempt keeps of a statement's entries of the log, in the order in which they were made, those of its last attempt: count is
// how many rows it found, by the server's answer.
func Attempt(entries []history.Access, count int) []history.Access {
	return entries[max(0, len(entries)-max(0, count)):]
}

// addVisibly is AddColumns for TiDB. ADD COLUMN refuses a default that differs from row to row (error 1674), though ALTER
// COLUMN ... SET DEFAULT takes it for rows to come; existing rows get their ids by an UPDATE, which sets ON UPDATE columns to themselves.
func addVisibly(rel *rewrite.Relation) []string {
	table := quoteName(rel.Schema) + "." + quoteName(rel.Name)
	alter := "ALTER TABLE " + table + " "
	if has(rel, columnWriters) && has(rel, columnRowID) {
		return nil
	}
	var list []string
	if !has(rel, columnRowID) {
		list = append(list, fmt.Sprintf("%sADD COLUMN %s VARCHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '%s'", alter, columnRowID, noKey))
	}
	fill := "UPDATE " + table + " SET " + columnRowID + "=UUID()"
	for _, c := range rel.Columns {
		if c.Touched {
			fill += "," + quoteName(c.Name) + "=" + quoteName(c.Name)
		}
	}
	return append(list, alter+"ALTER COLUMN "+columnRowID+" SET DEFAULT (UUID())",
		fill+" WHERE "+columnRowID+"='"+noKey+"'", alter+addWriters("", ""))
}
