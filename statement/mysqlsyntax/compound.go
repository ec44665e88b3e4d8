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

// Simple reports whether the body of a routine, a trigger or an event is one statement, which ends at the first semicolon.
func Simple(t *statement.Text) bool {
	for i := range t.Tokens {
		if t.Is(i, "BEGIN", "IF", "LOOP", "WHILE", "REPEAT", "CASE", "DECLARE", "PACKAGE", "BODY") || t.Is(i, "FOR") && !t.Is(i+1, "EACH") {
			return false
		}
	}
	return t.Is(0, "CREATE", "ALTER")
}
