package mysqlsyntax

import "wirecheck/statement"

// Compound reports whether the statement may have semicolons of its own, or goes on behind one.
func Compound(t *statement.Text) bool {
	if t.Is(0, "BEGIN") && t.Seq(1, "NOT", "ATOMIC") || t.Is(0, "IF", "LOOP", "WHILE", "REPEAT", "FOR", "CASE", "DECLARE", "END", "ELSE", "ELSEIF") {
		return true
	}
	if !t.Is(0, "CREATE", "ALTER") {
		return false
	}
	for i := 1; i < len(t.Tokens) && i < 24; i++ {
		if t.Is(i, "PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE") {
			return true
		}
		if t.Is(i, "TABLE", "VIEW", "INDEX", "DATABASE", "SCHEMA", "USER", "SEQUENCE", "(") {
			return false
		}
	}
	return false
}
