// Package pgsyntax reads SQL with PostgreSQL's own grammar (libpg_query): it gives the tree and the tokens of a text, and walks
// and compares trees. All of wirecheck calls the parser through this package alone.
package pgsyntax

import (
	"fmt"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// MaxText is how long a text may be to be parsed, in bytes.
const MaxText = 256 << 10

// Parse gives the tree of a text.
func Parse(sql string) (*pg.ParseResult, error) {
	if len(sql) > MaxText {
		return nil, fmt.Errorf("the text is longer than %d bytes", MaxText)
	}
	return pg.Parse(sql)
}

// Print prints a tree. The printer is C code that ends the process where a part is missing that it takes for granted.
func Print(tree *pg.ParseResult) (string, error) { return pg.Deparse(tree) }

// Tokens cuts a text into tokens and leaves the comments out.
func Tokens(sql string) ([]*pg.ScanToken, error) {
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
