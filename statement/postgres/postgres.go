// Package postgres describes statements of PostgreSQL by their text alone: what they read and write, their clauses, what they
// do to the transaction, and the metadata that they define. The grammar is PostgreSQL's own (package pgsyntax).
package postgres

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/statement"
	"wirecheck/statement/pgsyntax"
)

// Describe describes the statements of a script, one by one; empty ones are left out. It reads texts as a session with
// standard_conforming_strings on does. A statement that the grammar does not have is described as Unparsed. The error says that
// the text cannot even be cut into statements.
func Describe(sql string) (list []statement.Statement, err error) {
	defer func() {
		if p := recover(); p != nil { // the parser and the tree belong to others
			list, err = nil, fmt.Errorf("describe statement: the parser stumbled: %v", p)
		}
	}()
	switch {
	case strings.IndexByte(sql, 0) >= 0:
		return nil, fmt.Errorf("describe statement: a zero byte at byte %d", strings.IndexByte(sql, 0))
	case !utf8.ValidString(sql):
		return nil, fmt.Errorf("describe statement: the text is not UTF-8")
	}
	toks, err := pgsyntax.Tokens(sql)
	if err != nil {
		return nil, fmt.Errorf("describe statement: %w", err)
	}
	for _, part := range statements(sql, toks) {
		at, to := part[0].Start, part[len(part)-1].End
		for _, t := range part {
			t.Start, t.End = t.Start-at, t.End-at
		}
		st := describe(sql[at:to], part)
		st.At = int(at)
		list = append(list, st)
	}
	return list, nil
}

// statements cuts tokens into those of each statement: as the grammar does, or where it does not understand the whole text at
// the semicolons that are not in parentheses.
func statements(sql string, toks []*pg.ScanToken) (parts [][]*pg.ScanToken) {
	var ends map[int]bool // places of the semicolons that end a statement; nil: all that are not in parentheses
	if !slices.ContainsFunc(toks, func(t *pg.ScanToken) bool { return t.Token == pgsyntax.TokenEnd }) {
		if len(toks) == 0 {
			return nil
		}
		return [][]*pg.ScanToken{toks}
	}
	if tree, err := pgsyntax.Parse(sql); err == nil {
		ends = map[int]bool{}
		for _, raw := range tree.Stmts {
			_, to := pgsyntax.Bounds(sql, raw)
			ends[to] = true
		}
	}
	depth, first := 0, 0
	cut := func(i int) {
		if i > first {
			parts = append(parts, toks[first:i])
		}
		first = i + 1
	}
	for i, t := range toks {
		switch t.Token {
		case pgsyntax.TokenOpen:
			depth++
		case pgsyntax.TokenClose:
			depth--
		case pgsyntax.TokenEnd:
			if i == first || ends[int(t.Start)] || ends == nil && depth <= 0 {
				depth = 0
				cut(i)
			}
		}
	}
	cut(len(toks))
	return parts
}

// describe describes one statement, which has these tokens.
func describe(text string, toks []*pg.ScanToken) statement.Statement {
	st := statement.Statement{Text: text}
	tree, err := pgsyntax.Parse(text)
	if err != nil || len(tree.Stmts) != 1 {
		return undescribed(text, err)
	}
	n := tree.Stmts[0].Stmt
	e := EffectOf(n)
	st.Verb, st.Control, st.DDL = e.Verb, e.Control, e.Verb == "ddl"
	st.Begin = beginOf(n)

	u := &uses{}
	u.top(n)
	st.Tables, st.HasSubquery = u.inOrder(), u.sub
	st.Predicate = st.Verb == "merge"
	variation(n, &st)

	d := describer{st: &st, node: n, phrase: phrase{text, toks}}
	switch s := n.Node.(type) {
	case *pg.Node_SelectStmt:
		d.selectStmt(s.SelectStmt)
	case *pg.Node_UpdateStmt:
		d.updateStmt(s.UpdateStmt)
	case *pg.Node_DeleteStmt:
		d.deleteStmt(s.DeleteStmt)
	case *pg.Node_InsertStmt:
		d.insertStmt(s.InsertStmt)
	case *pg.Node_MergeStmt:
		st.Returning = len(s.MergeStmt.ReturningList) > 0
	}
	st.Chooses()
	return st
}

// undescribed is for statements that are not in the grammar.
func undescribed(text string, err error) statement.Statement {
	why := "the text is not one statement"
	if err != nil {
		why = err.Error()
	}
	st := statement.Statement{Text: text, Verb: "other"}
	st.NotParsed(why)
	switch word, _, _ := strings.Cut(strings.ToLower(strings.Join(strings.Fields(text), " ")), " "); word {
	case "select", "insert", "update", "delete", "merge", "copy", "set": // WITH may write
		st.Verb = word
	case "create", "alter", "drop", "truncate":
		st.Verb, st.DDL = "ddl", true
	}
	return st
}

// beginOf reads the options of BEGIN and SET TRANSACTION.
func beginOf(n *pg.Node) (b statement.Begin) {
	options := n.GetTransactionStmt().GetOptions()
	if s := n.GetVariableSetStmt(); s != nil && s.Kind == pg.VariableSetKind_VAR_SET_MULTI {
		options = s.Args
	}
	for _, o := range options {
		on := o.GetDefElem().GetArg().GetAConst().GetIval().GetIval() != 0
		switch o.GetDefElem().GetDefname() {
		case "transaction_read_only":
			b.ReadOnly, b.ReadWrite = on, !on
		case "transaction_deferrable":
			b.Deferrable = on
		}
	}
	return b
}
