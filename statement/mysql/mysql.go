// Package mysql describes statements of the MySQL family by their text alone: what they read and write, their clauses, what they
// do to the transaction, and the metadata that they define. Tokens tell what TiDB's parser does not know (package mysqlsyntax).
package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/statement"
	"wirecheck/statement/mysqlsyntax"
)

// Reader describes statements of one product. Many goroutines may use it.
type Reader struct {
	flavor Flavor
	parser *mysqlsyntax.Parser
}

// New makes a Reader.
func New(flavor Flavor) *Reader { return &Reader{flavor: flavor, parser: mysqlsyntax.NewParser()} }

// Describe describes the statements of a script, one by one; empty ones are left out. It reads texts as a session with the
// default sql_mode does. A statement that the parser does not have is described as Unparsed, and so is one with a comment that
// only certain versions of the server execute. The error says that the text cannot even be cut into statements.
func (r *Reader) Describe(sql string) ([]statement.Statement, error) {
	t, err := mysqlsyntax.Lex(sql, 0)
	if err != nil {
		return nil, fmt.Errorf("describe statement: %w", err)
	}
	var list []statement.Statement
	for _, p := range pieces(t) {
		st, err := r.describe(sql[p.start:p.end])
		if err != nil {
			return nil, err
		}
		st.At = p.start
		list = append(list, st)
	}
	return list, nil
}

// piece is the place of one statement in a script.
type piece struct{ start, end int }

// pieces cuts a script at the semicolons that end a statement. Those within a compound statement do not, nor those in a comment
// that a server may execute: if there is such a one, the script is one piece.
func pieces(t *statement.Text) (list []piece) {
	if slices.ContainsFunc(t.Tokens, func(k statement.Token) bool { return k.Executable && t.SQL[k.Start] == ';' }) {
		return []piece{bounds(t, 0, len(t.Tokens))}
	}
	first, depth := 0, 0
	body := false
	for i := 0; i <= len(t.Tokens); i++ {
		if i == first && i < len(t.Tokens) {
			body = mysqlsyntax.Compound(&statement.Text{SQL: t.SQL, Tokens: t.Tokens[i:]})
			depth = 0
		}
		if i < len(t.Tokens) {
			if body {
				depth += nesting(t, i, first)
			}
			if !t.Is(i, ";") || depth > 0 {
				continue
			}
		}
		if i > first {
			list = append(list, bounds(t, first, i))
		}
		first = i + 1
	}
	return list
}

// nesting is how token i changes the depth of blocks in a compound statement that begins at token first (MariaDB knowledge base
// and MySQL manual, "Compound Statement Syntax"). IF, LOOP, WHILE, REPEAT and FOR are also functions or parts of others, so they
// count only where a statement begins; the body itself begins behind FOR EACH ROW or a list of parameters.
func nesting(t *statement.Text, i, first int) int {
	begins := i == first || t.Is(i-1, ";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", ":", "ATOMIC")
	switch {
	case t.Is(i, "END"):
		return -1
	case t.Is(i-1, "END") && t.Is(i, "IF", "CASE", "LOOP", "WHILE", "REPEAT"):
		return 0
	case t.Is(i, "CASE", "BEGIN"), begins && t.Is(i, "IF", "LOOP", "WHILE", "REPEAT", "FOR"),
		t.Is(i-1, "ROW", ")") && t.Is(i, "IF", "LOOP", "WHILE", "REPEAT"):
		return 1
	}
	return 0
}

// bounds is the place of the tokens from i to j. Where some are in a comment that a server may execute, all that stands between
// the statements statement.Around belongs to it, but for white space.
func bounds(t *statement.Text, i, j int) piece {
	p := piece{t.Tokens[i].Start, t.Tokens[j-1].End}
	if !slices.ContainsFunc(t.Tokens[i:j], func(k statement.Token) bool { return k.Executable }) {
		return p
	}
	p = piece{0, len(t.SQL)}
	if i > 0 {
		p.start = t.Tokens[i-1].End
	}
	if j < len(t.Tokens) {
		p.end = t.Tokens[j].Start
	}
	inner := t.SQL[p.start:p.end]
	p.start += len(inner) - len(strings.TrimLeft(inner, " \t\r\n\f\v"))
	p.end -= len(inner) - len(strings.TrimRight(inner, " \t\r\n\f\v"))
	return p
}

// describe describes one statement.
func (r *Reader) describe(sql string) (statement.Statement, error) {
	t, err := mysqlsyntax.Lex(sql, 0)
	if err != nil || len(t.Tokens) == 0 {
		return statement.Statement{}, fmt.Errorf("describe statement: %q cannot be read alone: %w", sql, err)
	}
	d := &describer{Reader: r, st: statement.Statement{Text: sql}, text: t}
	first := t.Skip(0, "(")
	d.effect, _ = EffectOf(t, first, r.flavor)
	st := &d.st
	st.Verb, st.Control, st.DDL, st.Ends = d.effect.Verb, d.effect.Control, d.effect.Verb == "ddl", d.effect.Control.Ends
	switch {
	case slices.ContainsFunc(t.Tokens, func(k statement.Token) bool { return k.Executable }):
		d.st.NotParsed("a comment for certain versions of the server")
	case mysqlsyntax.Compound(t):
		d.st.NotParsed("a compound statement")
	case d.steers():
		d.begin()
		d.session()
	default:
		d.parsed()
	}
	return d.st, nil
}

// describer describes one statement.
type describer struct {
	*Reader
	st     statement.Statement
	effect Effect
	text   *statement.Text
}

// steers reports whether tokens tell all that there is to know: the parser lacks some of these statements.
func (d *describer) steers() bool {
	t := d.text
	return t.Is(0, "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "USE", "XA", "KILL", "HELP", "SHUTDOWN", "EXECUTE", "PREPARE", "DEALLOCATE",
		"CALL", "SIGNAL", "RESIGNAL", "GET", "BINLOG", "FLUSH", "GRANT", "REVOKE", "UNLOCK", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "LOAD") ||
		t.Seq(0, "START", "TRANSACTION") || t.Seq(0, "DROP", "PREPARE") || d.setsTransaction()
}

func (d *describer) setsTransaction() bool {
	t := d.text
	return t.Is(0, "SET") && (t.Is(1, "TRANSACTION") || t.Is(1, "SESSION", "LOCAL", "GLOBAL") && t.Is(2, "TRANSACTION"))
}

// begin reads the options of BEGIN, START TRANSACTION and SET TRANSACTION.
func (d *describer) begin() {
	if d.st.Verb != "begin" && !d.setsTransaction() {
		return
	}
	t, b := d.text, &d.st.Begin
	for i := range t.Tokens {
		b.ReadOnly = b.ReadOnly || t.Seq(i, "READ", "ONLY")
		b.ReadWrite = b.ReadWrite || t.Seq(i, "READ", "WRITE")
		b.Snapshot = b.Snapshot || t.Seq(i, "WITH", "CONSISTENT", "SNAPSHOT")
		b.Optimistic = b.Optimistic || t.Is(i, "OPTIMISTIC")
		b.Pessimistic = b.Pessimistic || t.Is(i, "PESSIMISTIC")
	}
}

// session says which of the steering statements depend on more than the database.
func (d *describer) session() {
	switch t := d.text; {
	case t.Is(0, "EXECUTE", "GET"):
		d.st.Variables, d.st.Volatile = true, "it depends on what the session did before"
	case t.Is(0, "SHOW"):
		d.st.Variables, d.st.Volatile = true, "SHOW"
	case t.Is(0, "CALL"):
		d.st.Variables, d.st.Volatile = true, "it calls a procedure"
	case t.Is(0, "EXPLAIN", "DESC", "DESCRIBE"):
		d.st.Volatile = "EXPLAIN"
	case t.Is(0, "LOAD"):
		d.st.Volatile = "rows from a file"
	}
}

// parsed describes what the parser has.
func (d *describer) parsed() {
	sql, returning, why := Parsable(d.text, d.st.Verb, d.flavor)
	if why != "" {
		d.st.NotParsed(why)
		return
	}
	node, err := d.parser.Parse(sql, 0)
	if err != nil {
		d.st.NotParsed(strings.TrimSpace(err.Error()))
		return
	}
	st := &d.st
	switch node.(type) { // behind WITH
	case *ast.UpdateStmt:
		st.Verb = "update"
	case *ast.DeleteStmt:
		st.Verb = "delete"
	}
	st.Returning = st.Verb != "select" && (returning || d.text.Find(0, 0, "RETURNING") >= 0)
	u := &uses{}
	u.top(node)
	st.Tables, st.HasSubquery = u.list, u.sub
	vary(node, st)
	if d.effect.Temporary != "" {
		st.Variables = true
	}
	switch n := node.(type) {
	case *ast.SelectStmt:
		d.selectStmt(n)
	case *ast.SetOprStmt:
		st.SetOperation, st.Limit = true, n.Limit != nil
		d.st.Unaddressed("a set operation")
	case *ast.UpdateStmt:
		d.updateStmt(n)
	case *ast.DeleteStmt:
		d.deleteStmt(n)
	case *ast.InsertStmt:
		d.insertStmt(n)
	}
	st.Chooses()
}
