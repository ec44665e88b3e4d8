package mysql

import (
	"errors"
	"fmt"
	"io"
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
	ast.NewDecimal = func(s string) (any, error) { return s, nil }
	ast.NewHexLiteral = func(s string) (any, error) { return s, nil }
	ast.NewBitLiteral = func(s string) (any, error) { return s, nil }
})

var errPrint = errors.New("trees are not printed")

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

// Restore and Format print the tree, which nobody here does.
func (n *value) Restore(*format.RestoreCtx) error { return errPrint }

// Format implements ast.ExprNode.
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
