// Package pgsyntax reads SQL with PostgreSQL's own grammar (libpg_query): it gives the tree and the tokens of a text, and walks
// and compares trees. All of wirecheck calls the parser through this package alone.
package pgsyntax

import (
	pg "github.com/pganalyze/pg_query_go/v6"
	"google.golang.org/protobuf/reflect/protoreflect"

	"wirecheck/statement"
)

// Parse gives the tree of a text, or statement.TooLarge as the error.
func Parse(sql string) (*pg.ParseResult, error) {
	if err := Bound(sql); err != nil {
		return nil, err
	}
	return pg.Parse(sql)
}

// maxPrinted bounds the stack of the printer, which takes up to a kilobyte for two messages of a tree, one within the other.
const maxPrinted = 800

// Print prints a tree. The printer is C code that ends the process where a part is missing that it takes for granted.
func Print(tree *pg.ParseResult) (string, error) {
	if depth := messages(tree.ProtoReflect()); depth > maxPrinted {
		return "", &statement.TooLarge{Of: "a depth", Amount: depth, Limit: maxPrinted}
	}
	return pg.Deparse(tree)
}

// messages is how deep a tree is, in messages.
func messages(m protoreflect.Message) (deepest int) {
	EachPart(m, func(part protoreflect.Message) { deepest = max(deepest, messages(part)) })
	return deepest + 1
}

// Tokens cuts a text, of any length, into tokens and leaves the comments out. The error may be statement.TooLarge.
func Tokens(sql string) ([]*pg.ScanToken, error) {
	if _, err := measure(sql); err != nil {
		return nil, err
	}
	res, err := pg.Scan(sql)
	if err != nil {
		return nil, err
	}
	out := make([]*pg.ScanToken, 0, len(res.Tokens))
	for _, t := range res.Tokens {
		if t.Token != pg.Token_SQL_COMMENT && t.Token != pg.Token_C_COMMENT {
			out = append(out, t)
		}
	}
	return out, nil
}

// Bounds gives the part of a text that is one statement's.
func Bounds(sql string, raw *pg.RawStmt) (from, to int) {
	from = int(raw.StmtLocation)
	to = len(sql)
	if raw.StmtLen > 0 {
		to = from + int(raw.StmtLen)
	}
	return from, to
}
