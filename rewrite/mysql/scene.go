package mysql

import (
	"cmp"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"

	"wirecheck/rewrite"
	"wirecheck/statement"
)

// scene is what stands around one statement: its text, the session, and what its names mean.
type scene struct {
	r        *Rewriter
	text     *statement.Text
	base     int // offset of the statement in the whole text
	catalog  *rewrite.View
	session  Session
	several  bool                       // one of several in its request
	changed  []string                   // the names of tables that those in front of it may have given another index or column
	ctes     map[string]*ast.SelectStmt // the common table expressions in lower case; nil of one that may not be looked into
	prepared bool                       // sent as COM_STMT_PREPARE
	bare     *rewrite.RelationName      // see rewrite.Plan
}

// judge says whether what a statement reads and writes may be observed exactly, and why not.
type judge struct {
	*scene
	why []string
}

// partial says that not everything will be seen.
func (s *judge) partial(why string) {
	for _, w := range s.why {
		if w == why {
			return
		}
	}
	s.why = append(s.why, why)
}

// mayReadTables reports whether an expression statement (SET, DO) contains a query or a call of a stored function.
func (s *scene) mayReadTables() bool {
	for i := range s.text.Tokens {
		if s.text.Is(i, "SELECT", "TABLE") {
			return true
		}
		if name, ok := s.text.Name(i); ok && s.text.Is(i+1, "(") && s.stored(name) {
			return true
		}
	}
	return false
}

func (s *scene) stored(function string) bool {
	n := rewrite.Name{Name: strings.ToLower(function), Function: true}
	return s.catalog.Function(n.Name)&rewrite.FunctionUser != 0 || s.catalog.Guessed(n)
}

func (s *scene) qualify(schema, name string) string {
	schema = cmp.Or(schema, s.session.Database)
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// selectListEnd gives the offset behind the select list of the statement's outermost SELECT; -1 if it is not certain.
func (s *scene) selectListEnd() int {
	if i := s.outerSelect(); i >= 0 {
		return listEnd(s.text, i)
	}
	return -1
}

// bareListEnd gives the offset behind the select list of a query without other clauses, or -1.
func (s *scene) bareListEnd() int {
	t := s.text
	last := len(t.Tokens) - 1
	for last >= 0 && t.Is(last, ";") {
		last--
	}
	if i := s.outerSelect(); i != 0 || last < 1 || t.Find(1, t.Tokens[0].Depth, "FROM") >= 0 {
		return -1
	}
	return t.Tokens[last].End
}

// outerSelect gives the token SELECT of the statement's outermost query, or -1.
func (s *scene) outerSelect() int {
	t := s.text
	for i := range t.Tokens {
		if !t.Is(i, "SELECT") {
			continue
		}
		// With WITH, the bodies stand in parentheses; without, the first SELECT is the outermost.
		if t.Is(0, "WITH") && t.Tokens[i].Depth != t.Tokens[0].Depth {
			continue
		}
		return i
	}
	return -1
}

// behindTable gives the token behind the table of an INSERT or REPLACE.
func (s *scene) behindTable() (int, bool) {
	t := s.text
	i := 1
	for t.Is(i, "LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "IGNORE", "INTO") {
		i++
	}
	_, _, i, ok := t.Qualified(i)
	if ok && t.Is(i, "PARTITION") && t.Is(i+1, "(") {
		if i = t.Close(i+1) + 1; i == 0 {
			ok = false
		}
	}
	return i, ok && i < len(t.Tokens)
}
