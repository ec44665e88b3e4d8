package mysqlsyntax

import (
	"encoding/hex"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"wirecheck/statement"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	pmysql "github.com/pingcap/tidb/pkg/parser/mysql"
)

// The parser's values are made by a driver that its user supplies through variables of package ast. This one keeps
// numbers as text: nobody here calculates with them.

var installDriver = sync.OnceFunc(func() {
	ast.NewValueExpr = func(v any, _, _ string) ast.ValueExpr {
		if e, ok := v.(*Value); ok {
			return e
		}
		return &Value{V: v}
	}
	ast.NewParamMarkerExpr = func(int) ast.ParamMarkerExpr { return &ParamMarker{} }
	asWritten := func(s string) (any, error) { return Written(s), nil }
	ast.NewDecimal, ast.NewHexLiteral, ast.NewBitLiteral = asWritten, asWritten, asWritten
})

// Written is a literal as it stands in the text: a decimal number, x'4D', 0b1.
type Written string

// Bytes are those that a hexadecimal literal is (MySQL manual, 11.1.4); ok is false of others.
func (w Written) Bytes() (raw string, ok bool) {
	digits, ok := strings.CutPrefix(string(w), "0x")
	if !ok && len(w) > 2 && strings.EqualFold(string(w[:2]), "x'") {
		digits, ok = strings.TrimSuffix(string(w[2:]), "'"), true
	}
	if len(digits)%2 > 0 { // 0xabc is 0x0abc
		digits = "0" + digits
	}
	b, err := hex.DecodeString(digits)
	return string(b), ok && err == nil
}

// Value is a literal.
type Value struct {
	ast.TexprNode
	V any
}

// Accept implements ast.Node.
func (n *Value) Accept(v ast.Visitor) (ast.Node, bool) {
	m, skip := v.Enter(n)
	if skip {
		return v.Leave(m)
	}
	return v.Leave(m)
}

// Restore prints the literal, with its character set if that was written. Statements on their way to a server are never printed from
// a tree; package reduce prints trees that it made smaller.
func (n *Value) Restore(ctx *format.RestoreCtx) error {
	if t := n.GetType(); t.GetFlag()&pmysql.UnderScoreCharsetFlag != 0 {
		ctx.WritePlain("_" + t.GetCharset() + " ")
	}
	switch v := n.V.(type) {
	case nil:
		ctx.WriteKeyWord("NULL")
	case bool:
		ctx.WriteKeyWord(strings.ToUpper(strconv.FormatBool(v)))
	case string:
		ctx.WriteString(v)
	case float64:
		ctx.WritePlain(strconv.FormatFloat(v, 'e', -1, 64))
	case Written, int64, uint64, int:
		ctx.WritePlain(fmt.Sprint(v))
	default:
		return fmt.Errorf("print a literal of type %T", v)
	}
	return nil
}

// Format implements ast.ExprNode; nobody here asks for it.
func (n *Value) Format(w io.Writer) {}

// SetValue implements ast.ValueExpr.
func (n *Value) SetValue(v any) { n.V = v }

// GetValue implements ast.ValueExpr.
func (n *Value) GetValue() any { return n.V }

// GetDatumString implements ast.ValueExpr.
func (n *Value) GetDatumString() string { return n.GetString() }

// GetProjectionOffset implements ast.ValueExpr.
func (n *Value) GetProjectionOffset() int { return -1 }

// SetProjectionOffset implements ast.ValueExpr.
func (n *Value) SetProjectionOffset(int) {}

// GetString implements ast.ValueExpr.
func (n *Value) GetString() string {
	if s, ok := n.V.(string); ok {
		return s
	}
	return fmt.Sprint(n.V)
}

// ParamMarker is a question mark.
type ParamMarker struct {
	Value
}

// Restore implements ast.Node.
func (n *ParamMarker) Restore(ctx *format.RestoreCtx) error { ctx.WritePlain("?"); return nil }

// SetOrder implements ast.ParamMarkerExpr.
func (n *ParamMarker) SetOrder(int) {}

// Accept implements ast.Node.
func (n *ParamMarker) Accept(v ast.Visitor) (ast.Node, bool) {
	m, skip := v.Enter(n)
	if skip {
		return v.Leave(m)
	}
	return v.Leave(m)
}

// Visit calls enter with n and what is below it, in the order of the text. What is below a node of which enter says so is passed over.
func Visit(n ast.Node, enter func(ast.Node) (over bool)) {
	if n != nil {
		n.Accept(visitor(enter))
	}
}

type visitor func(ast.Node) bool

// Enter implements ast.Visitor.
func (v visitor) Enter(n ast.Node) (ast.Node, bool) { return n, v(n) }

// Leave implements ast.Visitor.
func (v visitor) Leave(n ast.Node) (ast.Node, bool) { return n, true }

// What bounds the time that the parser takes for a text: it is half a microsecond a token, and for joins and strings in a row it is
// quadratic. A tree that is walked by recursion is no deeper than the text has tokens.
const (
	MaxTokens  = 1 << 15
	maxJoins   = 500 // the servers join 61 tables at most (MySQL manual, 10.11); TiDB has no limit
	maxStrings = 500
	smallText  = 2 << 10 // bytes of a text that has none of them
)

// Bound gives the error with which Parse refuses a text that is too large; nil for other texts.
func Bound(sql string, mode Mode) error {
	if len(sql) <= smallText {
		return nil
	}
	t, err := LexFew(sql, mode)
	if err != nil {
		return err
	}
	joins, strings := 0, 0
	for i := range t.Tokens {
		switch {
		case t.Is(i, "JOIN", "STRAIGHT_JOIN"):
			joins++
		case t.Tokens[i].Kind == statement.TokenString && i > 0 && t.Tokens[i-1].Kind == statement.TokenString:
			strings++
		}
	}
	for _, c := range []statement.TooLarge{
		{Of: "a number of joins", Amount: joins, Limit: maxJoins}, {Of: "a number of strings in a row", Amount: strings, Limit: maxStrings},
	} {
		if c.Amount > c.Limit {
			return &c
		}
	}
	return nil
}

// Parser makes trees. Many goroutines may use it.
type Parser struct{ pool sync.Pool }

// NewParser makes a Parser.
func NewParser() *Parser {
	p := &Parser{}
	p.pool.New = func() any {
		installDriver()
		return parser.New()
	}
	return p
}

// Parse gives the tree of one statement, which belongs to the caller, or statement.TooLarge as the error. TiDB's parser has panicked on odd input before (notes in its issue tracker), so
// a panic is an error like any other, and its parser is thrown away.
func (r *Parser) Parse(sql string, mode Mode) (n ast.StmtNode, err error) {
	if err := Bound(sql, mode); err != nil {
		return nil, err
	}
	p := r.pool.Get().(*parser.Parser)
	defer func() {
		if e := recover(); e != nil {
			n, err = nil, fmt.Errorf("parser gave up: %v", e)
			return
		}
		r.pool.Put(p)
	}()
	var m pmysql.SQLMode
	for _, b := range []struct {
		mode Mode
		flag pmysql.SQLMode
	}{
		{AnsiQuotes, pmysql.ModeANSIQuotes}, {NoBackslashEscapes, pmysql.ModeNoBackslashEscapes},
		{PipesAsConcat, pmysql.ModePipesAsConcat}, {IgnoreSpace, pmysql.ModeIgnoreSpace},
		{HighNotPrecedence, pmysql.ModeHighNotPrecedence},
	} {
		if mode&b.mode != 0 {
			m |= b.flag
		}
	}
	p.SetSQLMode(m)
	nodes, _, err := p.ParseSQL(sql)
	if err != nil {
		return nil, err
	}
	if len(nodes) != 1 {
		return nil, fmt.Errorf("%d statements", len(nodes))
	}
	n = nodes[0]
	nodes[0] = nil // the parser keeps its result
	return n, nil
}
