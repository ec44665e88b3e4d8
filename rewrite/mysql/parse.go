package mysql

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/pingcap/tidb/pkg/parser"
	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	pmysql "github.com/pingcap/tidb/pkg/parser/mysql"
)

// The parser's values are made by a driver that its user supplies through variables of package ast. This one keeps
// numbers as text: nobody here calculates with them.

var installDriver = sync.OnceFunc(func() {
	ast.NewValueExpr = func(v any, _, _ string) ast.ValueExpr {
		if e, ok := v.(*value); ok {
			return e
		}
		return &value{v: v}
	}
	ast.NewParamMarkerExpr = func(int) ast.ParamMarkerExpr { return &param{} }
	asWritten := func(s string) (any, error) { return written(s), nil }
	ast.NewDecimal, ast.NewHexLiteral, ast.NewBitLiteral = asWritten, asWritten, asWritten
})

// written is a literal as it stands in the text: a decimal number, x'4D', 0b1.
type written string

// value is a literal.
type value struct {
	ast.TexprNode
	v any
}

func (n *value) Accept(v ast.Visitor) (ast.Node, bool) {
	m, skip := v.Enter(n)
	if skip {
		return v.Leave(m)
	}
	return v.Leave(m)
}

// Restore prints the literal, with its character set if that was written. Statements on their way to a server are never printed from
// a tree; package reduce prints trees that it made smaller.
func (n *value) Restore(ctx *format.RestoreCtx) error {
	if t := n.GetType(); t.GetFlag()&pmysql.UnderScoreCharsetFlag != 0 {
		ctx.WritePlain("_" + t.GetCharset() + " ")
	}
	switch v := n.v.(type) {
	case nil:
		ctx.WriteKeyWord("NULL")
	case bool:
		ctx.WriteKeyWord(strings.ToUpper(strconv.FormatBool(v)))
	case string:
		ctx.WriteString(v)
	case float64:
		ctx.WritePlain(strconv.FormatFloat(v, 'e', -1, 64))
	case written, int64, uint64, int:
		ctx.WritePlain(fmt.Sprint(v))
	default:
		return fmt.Errorf("print a literal of type %T", v)
	}
	return nil
}

// Format implements ast.ExprNode; nobody here asks for it.
func (n *value) Format(w io.Writer) {}

func (n *value) SetValue(v any)           { n.v = v }
func (n *value) GetValue() any            { return n.v }
func (n *value) GetDatumString() string   { return n.GetString() }
func (n *value) GetProjectionOffset() int { return -1 }
func (n *value) SetProjectionOffset(int)  {}
func (n *value) GetString() string {
	if s, ok := n.v.(string); ok {
		return s
	}
	return fmt.Sprint(n.v)
}

// param is a question mark.
type param struct {
	value
}

// Restore implements ast.Node.
func (n *param) Restore(ctx *format.RestoreCtx) error { ctx.WritePlain("?"); return nil }

func (n *param) SetOrder(int) {}
func (n *param) Accept(v ast.Visitor) (ast.Node, bool) {
	m, skip := v.Enter(n)
	if skip {
		return v.Leave(m)
	}
	return v.Leave(m)
}

func newParser() any {
	installDriver()
	return parser.New()
}

// parse gives the tree of one statement. The parser has panicked on odd input before (notes in its issue tracker), so
// a panic is an error like any other, and its parser is thrown away.
func (r *Rewriter) parse(sql string, mode Mode) (n ast.StmtNode, err error) {
	p := r.parsers.Get().(*parser.Parser)
	defer func() {
		if e := recover(); e != nil {
			n, err = nil, fmt.Errorf("parser gave up: %v", e)
			return
		}
		r.parsers.Put(p)
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

// Tree gives the tree of one statement, read as a session with the default sql_mode does. It belongs to the caller.
func (r *Rewriter) Tree(sql string) (ast.StmtNode, error) { return r.parse(sql, 0) }
