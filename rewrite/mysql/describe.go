package mysql

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
)

// Describe describes the statements of a script, one by one; empty ones are left out. It reads texts as a session with the
// default sql_mode does. A statement that the parser does not have is described as Unparsed, and so is one with a comment that
// only certain versions of the server execute. The error says that the text cannot even be cut into statements.
func (r *Rewriter) Describe(sql string) ([]rewrite.Statement, error) {
	tokens, err := lex(sql, 0)
	if err != nil {
		return nil, fmt.Errorf("describe statement: %w", err)
	}
	var list []rewrite.Statement
	for _, p := range pieces(&text{sql, tokens}) {
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
func pieces(t *text) (list []piece) {
	if slices.ContainsFunc(t.tokens, func(k token) bool { return k.executable && t.sql[k.start] == ';' }) {
		return []piece{t.bounds(0, len(t.tokens))}
	}
	first, depth := 0, 0
	body := false
	for i := 0; i <= len(t.tokens); i++ {
		if i == first && i < len(t.tokens) {
			body = compound(&text{t.sql, t.tokens[i:]})
			depth = 0
		}
		if i < len(t.tokens) {
			if body {
				depth += nesting(t, i, first)
			}
			if !t.is(i, ";") || depth > 0 {
				continue
			}
		}
		if i > first {
			list = append(list, t.bounds(first, i))
		}
		first = i + 1
	}
	return list
}

// nesting is how token i changes the depth of blocks in a compound statement that begins at token first (MariaDB knowledge base
// and MySQL manual, "Compound Statement Syntax"). IF, LOOP, WHILE, REPEAT and FOR are also functions or parts of others, so they
// count only where a statement begins; the body itself begins behind FOR EACH ROW or a list of parameters.
func nesting(t *text, i, first int) int {
	begins := i == first || t.is(i-1, ";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", ":", "ATOMIC")
	switch {
	case t.is(i, "END"):
		return -1
	case t.is(i-1, "END") && t.is(i, "IF", "CASE", "LOOP", "WHILE", "REPEAT"):
		return 0
	case t.is(i, "CASE", "BEGIN"), begins && t.is(i, "IF", "LOOP", "WHILE", "REPEAT", "FOR"),
		t.is(i-1, "ROW", ")") && t.is(i, "IF", "LOOP", "WHILE", "REPEAT"):
		return 1
	}
	return 0
}

// bounds is the place of the tokens from i to j. Where some are in a comment that a server may execute, all that stands between
// the statements around belongs to it, but for white space.
func (t *text) bounds(i, j int) piece {
	p := piece{t.tokens[i].start, t.tokens[j-1].end}
	if !slices.ContainsFunc(t.tokens[i:j], func(k token) bool { return k.executable }) {
		return p
	}
	p = piece{0, len(t.sql)}
	if i > 0 {
		p.start = t.tokens[i-1].end
	}
	if j < len(t.tokens) {
		p.end = t.tokens[j].start
	}
	inner := t.sql[p.start:p.end]
	p.start += len(inner) - len(strings.TrimLeft(inner, " \t\r\n\f\v"))
	p.end -= len(inner) - len(strings.TrimRight(inner, " \t\r\n\f\v"))
	return p
}

// describe describes one statement.
func (r *Rewriter) describe(sql string) (rewrite.Statement, error) {
	tokens, err := lex(sql, 0)
	if err != nil || len(tokens) == 0 {
		return rewrite.Statement{}, fmt.Errorf("describe statement: %q cannot be read alone: %w", sql, err)
	}
	d := &describer{st: rewrite.Statement{Text: sql}, text: &text{sql, tokens}}
	d.of = &statement{r: r, text: d.text, plan: &rewrite.Plan{}}
	d.of.analyse()
	st, p := &d.st, d.of.plan
	st.Verb, st.Control, st.DDL, st.Ends = p.Verb, p.Control, p.Verb == "ddl", p.Control.Ends
	switch {
	case slices.ContainsFunc(tokens, func(k token) bool { return k.executable }):
		d.unparsed("a comment for certain versions of the server")
	case compound(d.text):
		d.unparsed("a compound statement")
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
	st   rewrite.Statement
	of   *statement
	text *text
}

func (d *describer) unparsed(why string) {
	d.st.Unparsed, d.st.Why = true, why
	d.st.Variables, d.st.Volatile = true, "a statement that is not understood"
}

// steers reports whether tokens tell all that there is to know: the parser lacks some of these statements.
func (d *describer) steers() bool {
	t := d.text
	return t.is(0, "BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "USE", "XA", "KILL", "HELP", "SHUTDOWN", "EXECUTE", "PREPARE", "DEALLOCATE",
		"CALL", "SIGNAL", "RESIGNAL", "GET", "BINLOG", "FLUSH", "GRANT", "REVOKE", "UNLOCK", "SHOW", "DESC", "DESCRIBE", "EXPLAIN", "LOAD") ||
		t.seq(0, "START", "TRANSACTION") || t.seq(0, "DROP", "PREPARE") || d.setsTransaction()
}

func (d *describer) setsTransaction() bool {
	t := d.text
	return t.is(0, "SET") && (t.is(1, "TRANSACTION") || t.is(1, "SESSION", "LOCAL", "GLOBAL") && t.is(2, "TRANSACTION"))
}

// begin reads the options of BEGIN, START TRANSACTION and SET TRANSACTION.
func (d *describer) begin() {
	if d.st.Verb != "begin" && !d.setsTransaction() {
		return
	}
	t, b := d.text, &d.st.Begin
	for i := range t.tokens {
		b.ReadOnly = b.ReadOnly || t.seq(i, "READ", "ONLY")
		b.ReadWrite = b.ReadWrite || t.seq(i, "READ", "WRITE")
		b.Snapshot = b.Snapshot || t.seq(i, "WITH", "CONSISTENT", "SNAPSHOT")
		b.Optimistic = b.Optimistic || t.is(i, "OPTIMISTIC")
		b.Pessimistic = b.Pessimistic || t.is(i, "PESSIMISTIC")
	}
}

// session says which of the steering statements depend on more than the database.
func (d *describer) session() {
	switch t := d.text; {
	case t.is(0, "EXECUTE", "GET"):
		d.st.Variables, d.st.Volatile = true, "it depends on what the session did before"
	case t.is(0, "SHOW"):
		d.st.Variables, d.st.Volatile = true, "SHOW"
	case t.is(0, "CALL"):
		d.st.Variables, d.st.Volatile = true, "it calls a procedure"
	case t.is(0, "EXPLAIN", "DESC", "DESCRIBE"):
		d.st.Volatile = "EXPLAIN"
	case t.is(0, "LOAD"):
		d.st.Volatile = "rows from a file"
	}
}

// parsed describes what the parser has.
func (d *describer) parsed() {
	d.of.base, d.of.plan.Text = 0, d.text.sql
	d.of.plan.Coverage, d.of.plan.Why = "", ""
	sql, ok := d.of.shim()
	if !ok {
		d.unparsed(d.of.plan.Why)
		return
	}
	node, err := d.of.r.parse(sql, 0)
	if err != nil {
		d.unparsed(strings.TrimSpace(err.Error()))
		return
	}
	st := &d.st
	switch node.(type) { // behind WITH
	case *ast.UpdateStmt:
		st.Verb = "update"
	case *ast.DeleteStmt:
		st.Verb = "delete"
	}
	st.Returning = sql != d.text.sql && st.Verb != "select" || d.text.find(0, 0, "RETURNING") >= 0 && st.Verb != "select"
	u := &uses{}
	u.top(node)
	st.Tables, st.HasSubquery = u.list, u.sub
	into := st.Verb == "insert" || st.Verb == "replace"
	for _, t := range st.Tables {
		st.Predicate = st.Predicate || t.Read && t.Kind == rewrite.SourceTable && (!into || t.Place != rewrite.PlaceMain)
	}
	vary(node, st)
	if d.of.plan.Temporary != "" {
		st.Variables = true
	}
	switch n := node.(type) {
	case *ast.SelectStmt:
		d.selectStmt(n)
	case *ast.SetOprStmt:
		st.SetOperation, st.Limit = true, n.Limit != nil
		d.unaddressed("a set operation")
	case *ast.UpdateStmt:
		d.updateStmt(n)
	case *ast.DeleteStmt:
		d.deleteStmt(n)
	case *ast.InsertStmt:
		d.insertStmt(n)
	}
}
