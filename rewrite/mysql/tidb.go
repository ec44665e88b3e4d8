package mysql

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/history"
	"wirecheck/rewrite"
	"wirecheck/statement/condition"
	"wirecheck/statement/mysqlsyntax"
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

// alwaysVisible reports whether the hidden columns are ordinary ones.
func alwaysVisible(f Flavor) bool { return f == TiDB }

// stampChanged puts in, behind the assignments of an UPDATE, what marks a row that they really change.
func (s *planner) stampChanged(list []*ast.Assignment, src *source, set, end int, log bool) bool {
	texts := s.assigned(set, end)
	if len(texts) != len(list) {
		s.opaque("the assignments are not certain")
		return false
	}
	var same, columns []string
	became := map[string]string{}
	for i, a := range list {
		c := src.column(a.Column.Name.O)
		if c == nil || c.Generated || mysqlsyntax.ContainsName(columns, c.Name) {
			s.opaque("a column that is not known, or assigned twice")
			return false
		}
		columns = append(columns, c.Name)
		before, ok := signature(s.r.flavor, src.ref+"."+mysqlsyntax.Quote(c.Name), c.Type)
		after, ok2 := s.assignedSignature([]source{*src}, texts[i], a.Expr, c.Type)
		if !ok || !ok2 {
			s.opaque("whether it changes the row cannot be computed beforehand on this server")
			return false
		}
		same = append(same, before+"="+after)
		became[c.Name] = assignedImage("("+texts[i]+")", c)
	}
	w := src.ref + "." + columnWriters
	kept, next := w, nextWriters(w)
	if log {
		op, images := "u", []string(nil)
		if image := s.image(src, func(*rewrite.Attribute) bool { return true }); image != "" {
			op, images = "U", []string{image, cmp.Or(s.imageOf(src, func(a *rewrite.Attribute) string {
				switch text, assigned := became[a.Name]; {
				case assigned:
					return text
				case a.Touched:
					return ""
				}
				return stored(src, a)
			}), "'-'")}
		}
		kept, next = logging(logEntry("m", src), kept), logging(logEntry(op, src, images...), next)
		s.plan.Log = true
	}
	s.plan.Stamp = true
	s.edits = append(s.edits, edit{
		at: s.text.Tokens[end-1].End, add: "," + w + "=IF(" + strings.Join(same, " AND ") + "," + kept + "," + next + ")",
		check: "," + columnWriters + "=1 ",
	})
	return true
}

// assigned gives the texts of the values that are assigned between the tokens set and end.
func (s *scene) assigned(set, end int) (texts []string) {
	for _, v := range s.text.Assigned(set+1, end) {
		texts = append(texts, s.text.Between(v[0], v[1]))
	}
	return texts
}

// assignedSignature is the signature of the value that a column of type typ takes from an expression. ok is false where that is
// not certain, or where a second evaluation would warn a second time: then the statement stays as it is.
func (s *scene) assignedSignature(list []source, text string, e ast.ExprNode, typ string) (string, bool) {
	v := repeatable{list: list}
	if e == nil || !plainCondition(e) {
		return "", false
	}
	if visit(e, v.enter); v.not {
		return "", false
	}
	text = "(" + text + ")"
	size := sizeOf(typ)
	switch name := typeName(typ); name {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
		as := "SIGNED"
		if strings.Contains(strings.ToLower(typ), "unsigned") {
			as = "UNSIGNED"
		}
		return "IFNULL(CAST(" + text + " AS " + as + "),'N')", v.numeric(0)
	case "decimal", "numeric":
		_, digits, _ := strings.Cut(size, ",")
		scale, err := strconv.Atoi(digits)
		return "IFNULL(CAST(" + text + " AS DECIMAL(" + size + ")),'N')", err == nil && v.numeric(scale)
	case "double", "real":
		return "IFNULL(" + text + "*1e0,'N')", v.numeric(scaleFloat)
	case "char":
		text = "RTRIM(CAST(" + text + " AS CHAR))"
	case "varchar", "tinytext", "text", "mediumtext", "longtext":
		text = "CAST(" + text + " AS CHAR)"
	case "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		text = "CAST(" + text + " AS BINARY)"
	case "date", "datetime", "timestamp", "time":
		if size != "" {
			size = "(" + size + ")"
		}
		text = "CAST(" + text + " AS " + strings.Replace(strings.ToUpper(name), "TIMESTAMP", "DATETIME", 1) + size + ")"
	default:
		return "", false
	}
	return signature(s.r.flavor, text, typ)
}

// assignedImage is SQL text for the value that a column gets from an expression that has a signature; ! where it may take another one.
func assignedImage(text string, a *rewrite.Attribute) string {
	null, size := "'N'", sizeOf(a.Type)
	if a.Required {
		null = "'!'"
	}
	as := func(typ string) string { return "CAST(" + text + " AS " + typ + ")" }
	var value string
	switch kind := kindOf(a); {
	case kind == condition.Number && typeName(a.Type) == "decimal":
		value = as("DECIMAL(" + size + ")")
	case kind == condition.Number:
		typ, least, most := "SIGNED", "0", int64(math.MaxInt64)
		if bits := integerBits[typeName(a.Type)]; !strings.Contains(strings.ToLower(a.Type), "unsigned") {
			most >>= 64 - bits
			least = strconv.FormatInt(-most-1, 10)
		} else if typ = "UNSIGNED"; bits < 64 {
			most >>= 63 - bits
		}
		value = fmt.Sprintf("IF(%s BETWEEN %s AND %d,%[1]s,'!')", as(typ), least, most)
	case kind == condition.Date:
		value = as("DATE")
	case kind == condition.Timestamp:
		value = "REPLACE(" + as(strings.ToUpper(a.Type)) + ",' ','T')"
	case !strings.HasPrefix(a.Collation, "utf8mb4_") || typeName(a.Type) != "varchar":
		return ""
	default:
		value = fmt.Sprintf("IF(OCTET_LENGTH(%s)>%d OR CHAR_LENGTH(%[1]s)>%[3]s,'!',%[4]s)", as("CHAR"), maxImage, size, inHex(inUTF8(as("CHAR"), a)))
	}
	return "IF(" + text + " IS NULL," + null + ",IFNULL(" + value + ",'!'))"
}

var integerBits = map[string]int{"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}

// sizeOf is what stands in parentheses behind a type's name.
func sizeOf(typ string) string {
	_, size, _ := strings.Cut(typ, "(")
	size, _, _ = strings.Cut(size, ")")
	return size
}

// scaleFloat stands for the scale of what is no exact number.
const scaleFloat = 1 << 16

// repeatable looks for what makes it uncertain that an expression, evaluated twice, gives the same and no further warning.
type repeatable struct {
	list  []source
	not   bool
	words bool // a text that is no number
	scale int  // at most so many digits behind the point
	most  int  // of one operand
	times bool // a product is in it
}

// numeric reports whether the expression is certainly a number with at most so many digits behind the point.
func (v *repeatable) numeric(scale int) bool {
	if v.times {
		return !v.words && v.scale <= scale
	}
	return !v.words && v.most <= scale
}

func (v *repeatable) operand(scale int) {
	v.scale, v.most = min(v.scale+scale, scaleFloat), max(v.most, scale)
}

func (v *repeatable) enter(n ast.Node) {
	switch n := n.(type) {
	case *mysqlsyntax.ParamMarker: // it cannot stand twice in the text
		v.not = true
	case *ast.FuncCallExpr, *ast.FuncCastExpr: // what they give may be of another kind than what they take, or they may warn
		v.words = true
	case *mysqlsyntax.Value:
		v.literal(n)
	case *ast.ColumnName:
		v.column(n)
	case *ast.BinaryOperationExpr:
		switch n.Op.String() {
		case "div", "intdiv", "mod": // by zero, it warns
			v.not = true
		case "mul":
			v.times = true
		}
	}
}

func (v *repeatable) literal(n *mysqlsyntax.Value) {
	switch f := n.V.(type) {
	case string, mysqlsyntax.Written:
	case float64:
		if f != 0 {
			v.operand(scaleFloat)
		}
		return
	default:
		return
	}
	text := n.GetString()
	whole, fraction, _ := strings.Cut(text, ".")
	if !digits(whole) || strings.Trim(fraction, "0123456789") != "" {
		v.words = true
	}
	v.operand(len(fraction))
}

func (v *repeatable) column(n *ast.ColumnName) {
	var c *rewrite.Attribute
	for i := range v.list {
		if a := v.list[i].column(n.Name.O); a != nil && (n.Table.O == "" || strings.EqualFold(n.Table.O, v.list[i].alias)) {
			if c != nil {
				v.not = true
			}
			c = a
		}
	}
	if c == nil {
		v.not = true
		return
	}
	switch typeName(c.Type) {
	case "tinyint", "smallint", "mediumint", "int", "integer", "bigint":
	case "decimal", "numeric":
		_, digits, _ := strings.Cut(sizeOf(c.Type), ",")
		scale, err := strconv.Atoi(digits)
		if err != nil {
			scale = scaleFloat
		}
		v.operand(scale)
	case "double", "real", "float":
		v.operand(scaleFloat)
	default:
		v.words = true
	}
}

// Attempt keeps of a statement's entries of the log, in the order in which they were made, those of its last attempt: count is
// how many rows it found, by the server's answer.
func Attempt(entries []history.Access, count int) []history.Access {
	return entries[max(0, len(entries)-max(0, count)):]
}

// addVisibly is AddColumns for TiDB. ADD COLUMN refuses a default that differs from row to row (error 1674), though ALTER
// COLUMN ... SET DEFAULT takes it for rows to come; existing rows get their ids by an UPDATE, which sets ON UPDATE columns to themselves.
func addVisibly(rel *rewrite.Relation) []string {
	table := mysqlsyntax.Quote(rel.Schema) + "." + mysqlsyntax.Quote(rel.Name)
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
			fill += "," + mysqlsyntax.Quote(c.Name) + "=" + mysqlsyntax.Quote(c.Name)
		}
	}
	return append(list, alter+"ALTER COLUMN "+columnRowID+" SET DEFAULT (UUID())",
		fill+" WHERE "+columnRowID+"='"+noKey+"'", alter+addWriters("", ""))
}
