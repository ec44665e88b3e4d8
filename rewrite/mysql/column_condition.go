package mysql

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement/condition"
)

// Conditions that depend on more of a column than its type.

// null makes a condition of IS NULL, or of IS NOT NULL.
func (a *asker) null(n ast.ExprNode, isNot bool) condition.Condition {
	switch name, at := a.column(n); {
	case name != "" && at.Auto && isNot: // it has a value in each row: Django excludes the row without a key
		return condition.Always
	case name == "" || at.Auto:
		// IS NULL finds the row that was inserted last, where sql_auto_is_null is on (MySQL manual, 14.4.2).
		return condition.Unknown("IS NULL of something else than a column")
	default:
		return negated(isNot, condition.Condition{Op: "null", Column: name})
	}
}

// binary gives the pattern of LIKE BINARY pattern, which Django writes. What a Folded comparison is sure of holds for bytes of UTF-8, too.
func (a *asker) binary(column, pattern ast.ExprNode) ast.ExprNode {
	_, at := a.column(column)
	b, ok := unwrapped(pattern).(*ast.FuncCastExpr)
	if !ok || at == nil || b.FunctionType != ast.CastBinaryOperator || !strings.HasPrefix(at.Collation, "utf8") {
		return pattern
	}
	return b.Expr
}

// kindOf says how the values of a column compare, as far as that is certain.
func kindOf(a *rewrite.Attribute) condition.Kind {
	switch name := typeName(a.Type); name {
	case "tinyint", "smallint", "mediumint", "int", "bigint", "decimal":
		return condition.Number
	case "date":
		return condition.Date
	case "datetime", "timestamp":
		return condition.Timestamp
	case "char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum":
		charset, rest, _ := strings.Cut(a.Collation, "_")
		if slices.Contains(utf8Charsets, charset) && (slices.Contains(rootCollations, rest) || a.Collation == "latin1_swedish_ci") {
			return condition.Folded
		}
	case "uuid":
		return condition.UUID // but for the order, see open
	case "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob":
		return condition.Bytes // MySQL manual, 13.3.3: by the numeric values of the bytes, and none is ignored
	}
	return condition.Other
}

// kindHere is kindOf for a statement: a TIMESTAMP is shown, and compared, in the time zone of the session (MySQL manual, 13.2.2), and its image is in UTC.
func (s *scene) kindHere(a *rewrite.Attribute) condition.Kind {
	if typeName(a.Type) == "timestamp" && (!s.session.UTC || s.r.flavor == TiDB) {
		return condition.Other
	}
	return kindOf(a)
}

// utf8Charsets are the character sets of which UTF-8 has all that a column may contain. MariaDB refuses a write whose value, converted for its image, has a
// character that UTF-8 lacks (1977), as columns of ujis or cp1251 may. Columns of ascii may have bytes that are none, but need no conversion (inUTF8).
var utf8Charsets = strings.Fields("utf8mb4 utf8mb3 utf8 ascii latin1 latin2 latin5 latin7 koi8r koi8u cp850 cp852 cp866 ucs2 utf16 utf16le utf32")

// inUTF8 is SQL text for the value of a column of texts, in UTF-8.
func inUTF8(ref string, a *rewrite.Attribute) string {
	if strings.HasPrefix(a.Collation, "ascii_") {
		return ref
	}
	return "CONVERT(" + ref + " USING utf8mb4)"
}

// rootCollations are, without their character set, collations of no language. In them two characters of ASCII are equal if they are the
// same letter, and otherwise differ, and none is ignored (measured on MariaDB 10.11.19 and MySQL 9.7.4, TestCollations).
var rootCollations = strings.Fields("general_ci general_nopad_ci unicode_ci unicode_nopad_ci unicode_520_ci unicode_520_nopad_ci bin nopad_bin " +
	"0900_ai_ci 0900_as_ci 0900_as_cs 0900_bin uca1400_ai_ci uca1400_as_ci uca1400_as_cs uca1400_ai_cs uca1400_nopad_ai_ci uca1400_nopad_as_ci uca1400_nopad_as_cs")
