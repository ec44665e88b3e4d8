package flow

import (
	"strings"

	"wirecheck/trace/lex"
)

// TypeORM's save() reads the rows that it is about to write, to find the columns that differ, and shows the application nothing of what it read
// (SubjectDatabaseEntityLoader, 0.2 to 1.1). Its texts are
//
//	SELECT "Product"."id" AS "Product_id", ... FROM "product" "Product" WHERE "Product"."id" IN ($1)
//	SELECT "item"."id" AS "id", "item"."orderId" AS "orderId" FROM "item" "item" WHERE (("item"."orderId" = $1))
//	UPDATE "product" SET "stock" = $1 WHERE "id" IN ($2)
//
// The second one is of its related rows (RelationIdLoader). Since 1.0, = $1 stands in place of IN ($1) if it is a single row. An application's own query
// has that form, too, so it counts only under the name of a class, which save() uses and a query has no reason to.

// Loads reports whether a SELECT has the form by which save() reads rows.
func Loads(sql string, d lex.Dialect) bool {
	t := words(sql, d)
	if len(t) < 6 || !t[0].Is("select") || !named(t[1]) || t[2].Text != "." || !named(t[3]) || !t[4].Is("as") || bare(t[5]) != bare(t[1])+"_"+bare(t[3]) {
		return false
	}
	for i := 6; i < len(t); i++ {
		if t[i].Text == "(" || isValue(t[i]) {
			return false // an expression
		}
		if t[i].Is("where") {
			return bare(t[i-1]) == bare(t[1]) && i+4 < len(t) && bare(t[i+1]) == bare(t[1]) && t[i+2].Text == "." &&
				(t[i+4].Text != "=" || ofClass(bare(t[1]))) && keys(t[i+3:])
		}
	}
	return false
}

// LoadsRelated reports whether a SELECT has the form by which save() reads which rows belong to others.
func LoadsRelated(sql string, d lex.Dialect) bool {
	t := words(sql, d)
	if len(t) < 6 || !t[0].Is("select") || !named(t[1]) || t[2].Text != "." || !named(t[3]) || !t[4].Is("as") || bare(t[5]) != bare(t[3]) {
		return false
	}
	for i := 6; i+2 < len(t); i++ {
		if t[i].Is("from") {
			return t[i+1].Text == t[1].Text && t[i+2].Text == t[1].Text
		}
	}
	return false
}

// Saves reports whether an UPDATE has the form by which save() writes a row.
func Saves(sql string, d lex.Dialect) bool {
	t := words(sql, d)
	if len(t) == 0 || !t[0].Is("update") {
		return false
	}
	for i := range t {
		if t[i].Is("where") {
			return keys(t[i+1:])
		}
	}
	return false
}

// ofClass reports whether a name is written as classes are.
func ofClass(name string) bool { return name != "" && name[0] >= 'A' && name[0] <= 'Z' }

// keys reports whether the rest of a text is a column that is equal to a value or IN a list of values, and nothing more that chooses rows.
func keys(t []lex.Token) bool {
	if len(t) > 2 && named(t[0]) && t[1].Text == "=" {
		value := t[2:]
		if len(value) > 1 && value[0].Text == "-" {
			value = value[1:]
		}
		return isValue(value[0]) && (len(value) == 1 || value[1].Is("returning") || value[1].Text == ";" && len(value) == 2)
	}
	if len(t) < 5 || !named(t[0]) || !t[1].Is("in") || t[2].Text != "(" {
		return false
	}
	for i, k := range t[3:] {
		switch {
		case k.Text == ")":
			return i > 0 && (len(t) == i+4 || t[i+4].Is("returning") || t[i+4].Text == ";" && len(t) == i+5)
		case k.Text != "," && k.Text != "-" && !isValue(k):
			return false
		}
	}
	return false
}

// words are the tokens of a text without spaces and comments.
func words(sql string, d lex.Dialect) (list []lex.Token) {
	for t := range lex.Tokens(sql, d) {
		if t.Kind != lex.Space && t.Kind != lex.Comment {
			list = append(list, t)
		}
	}
	return list
}

func isValue(t lex.Token) bool {
	return t.Kind == lex.Number || t.Kind == lex.String || t.Kind == lex.Placeholder
}

func named(t lex.Token) bool { return t.Kind == lex.Name }

func bare(t lex.Token) string { return strings.Trim(t.Text, "\"`") }
