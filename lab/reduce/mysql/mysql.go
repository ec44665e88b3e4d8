// Package mysql makes statements of the MySQL family simpler by way of their trees.
package mysql

import (
	"reflect"
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
	"github.com/pingcap/tidb/pkg/parser/format"
	pmysql "github.com/pingcap/tidb/pkg/parser/mysql"
	"github.com/pingcap/tidb/pkg/parser/opcode"
	"github.com/pingcap/tidb/pkg/parser/types"

	"wirecheck/lab/reduce/tree"
	"wirecheck/statement/mysqlsyntax"
)

// New gives a function for reduce.Options.Simpler that reads statements with TiDB's parser. What that parser does not have is not known: of
// generated statements 2% of MariaDB's (RETURNING, UUID, some words of CREATE TABLE) and less than 1% of MySQL's.
func New() func(sql string) (self string, simpler []string, known bool) {
	p := mysqlsyntax.NewParser()
	return func(sql string) (self string, simpler []string, known bool) {
		root, err := p.Parse(sql, 0)
		if err != nil {
			return "", nil, false
		}
		switch root.(type) {
		case *ast.BeginStmt:
			return sql, []string{"BEGIN"}, true
		case *ast.SelectStmt, *ast.SetOprStmt, *ast.InsertStmt, *ast.UpdateStmt, *ast.DeleteStmt, *ast.CreateTableStmt, *ast.CreateIndexStmt, *ast.CreateViewStmt:
		default: // SET TRANSACTION, for one, is printed as the variable that it sets in TiDB
			return sql, nil, true
		}
		unenforced := !strings.Contains(strings.ToUpper(sql), "ENFORCED")
		print := func(f format.RestoreFlags) (string, error) {
			var b strings.Builder
			err := root.Restore(format.NewRestoreCtx(f, &b))
			if unenforced { // the default, for which MariaDB has no word
				return strings.ReplaceAll(b.String(), ") ENFORCED", ")"), err
			}
			return b.String(), err
		}
		quote := format.RestoreFlags(0)
		if self, err = print(flags); err == nil {
			if _, err = p.Parse(self, 0); err != nil { // a name is a reserved word
				quote = format.RestoreNameBackQuotes
				self, err = print(flags | quote)
			}
		}
		if err != nil {
			return "", nil, false
		}
		list := tree.Simpler(&root, tree.Grammar{
			Print: func() (string, error) { return print(flags | quote) }, Enter: enter, Clear: clear, Slot: slot, Constants: constants, Extra: extra,
		})
		return self, slices.DeleteFunc(list, func(text string) bool { _, err := p.Parse(text, 0); return err != nil }), true
	}
}

// flags print names without quotes, and literals without a character set that nobody wrote.
const flags = format.RestoreStringSingleQuotes | format.RestoreStringEscapeBackslash | format.RestoreKeyWordUppercase | format.RestoreSpacesAroundBinaryOperation |
	format.RestoreStringWithoutDefaultCharset

// enter keeps away from what is no part of the text.
func enter(node reflect.Type, name string) bool {
	switch name {
	case "SelectStmtOpts": // of it only Distinct matters, which SelectStmt has, too
		return false
	case "Tp", "Table", "Name", "TableHints":
		return name == "Table" && node == reflect.TypeFor[ast.InsertStmt]() || name == "TableHints"
	}
	return node.PkgPath() == astPath
}

var astPath = reflect.TypeFor[ast.SelectStmt]().PkgPath()

// clear says what may be taken away: all that may be absent in the text. What the parser then refuses is no candidate.
func clear(node reflect.Type, name string) bool {
	switch name {
	case "IsInBraces", "ExplicitParens", "IsReplace", "MultipleTable", "IsMultiTable", "BeforeFrom", "Setlist", "MultiRows", "Evaluated", "Correlated", "InColumn", "ExplicitCharSet":
		return false
	}
	return true
}

var (
	exprType   = reflect.TypeFor[ast.ExprNode]()
	sourceType = reflect.TypeFor[ast.ResultSetNode]()
)

func slot(place reflect.Value) string {
	switch place.Type() {
	case exprType:
		if !place.IsNil() {
			return "expression"
		}
	case sourceType:
		if !place.IsNil() {
			return "rows"
		}
	case reflect.TypeFor[ast.StmtNode]():
		return "rows"
	}
	return ""
}

// plainer says an expression in a plainer way, so that what is one bug looks like one; nil: it is plain.
func plainer(e ast.ExprNode) ast.ExprNode {
	switch e := e.(type) {
	case *ast.PatternInExpr: // a IN (b): a = b
		if len(e.List) != 1 || e.Sel != nil {
			return nil
		}
		op := opcode.EQ
		if e.Not {
			op = opcode.NE
		}
		return &ast.BinaryOperationExpr{Op: op, L: e.Expr, R: e.List[0]}
	case *ast.CompareSubqueryExpr: // a = ANY (SELECT ...): a IN (SELECT ...)
		if e.Op == opcode.EQ && !e.All || e.Op == opcode.NE && e.All {
			return &ast.PatternInExpr{Expr: e.L, Sel: e.R, Not: e.All}
		}
	case *ast.IsTruthExpr: // a IS FALSE, a IS NOT TRUE: NOT a
		if (e.True == 1) == e.Not {
			return &ast.UnaryOperationExpr{Op: opcode.Not, V: e.Expr}
		}
	}
	return nil
}

// constants may stand where an expression does, and a plainer one.
func constants(kind string, place reflect.Value) (list []reflect.Value) {
	if kind != "expression" {
		return nil
	}
	if plain := plainer(place.Interface().(ast.ExprNode)); plain != nil {
		list = append(list, reflect.ValueOf(plain))
	}
	if v, leaf := place.Interface().(ast.ValueExpr); leaf && reflect.TypeOf(v.GetValue()) == reflect.TypeFor[string]() {
		list = append(list, reflect.ValueOf(literal("")))
	}
	for _, v := range []any{int64(1), nil, int64(0)} {
		list = append(list, reflect.ValueOf(literal(v)))
	}
	return list
}

func literal(v any) ast.ExprNode { return ast.NewValueExpr(v, "", "") }

// extra knows what cannot be said of fields alone.
func extra(node any) (edits []func() func()) {
	switch n := node.(type) {
	case *ast.Join:
		if n.Right == nil {
			return nil
		}
		for _, side := range []ast.ResultSetNode{n.Left, n.Right} {
			edits = append(edits, replace(n, ast.Join{Left: side}))
		}
		plain := *n
		plain.Tp, plain.NaturalJoin, plain.StraightJoin = ast.CrossJoin, false, false
		edits = append(edits, replace(n, plain))
	case *ast.InsertStmt:
		for i := range n.Columns {
			less := *n
			less.Columns = without(n.Columns, i)
			less.Lists = nil
			for _, row := range n.Lists {
				if i < len(row) {
					row = without(row, i)
				}
				less.Lists = append(less.Lists, row)
			}
			edits = append(edits, replace(n, less))
		}
		plain := *n
		plain.IsReplace, plain.OnDuplicate, plain.IgnoreErr = false, nil, false
		edits = append(edits, replace(n, plain))
	case *ast.ColumnDef:
		edits = append(edits, func() func() {
			old := n.Tp
			n.Tp = types.NewFieldType(pmysql.TypeLong)
			return func() { n.Tp = old }
		})
	case *ast.CreateIndexStmt:
		plain := *n
		plain.KeyType = ast.IndexKeyTypeNone
		edits = append(edits, replace(n, plain))
	case *ast.IndexPartSpecification:
		if n.Length > 0 {
			plain := *n
			plain.Length = types.UnspecifiedLength
			edits = append(edits, replace(n, plain))
		}
	case *ast.SelectStmt:
		if n.With != nil && len(n.With.CTEs) == 1 {
			edits = append(edits, func() func() { return inline(n) })
		}
	case *ast.TableSource: // a table in place of a query of that table
		if q, ok := n.Source.(*ast.SelectStmt); ok && q.From != nil {
			if inner, ok := q.From.TableRefs.Left.(*ast.TableSource); ok {
				plain := *n
				plain.Source = inner.Source
				edits = append(edits, replace(n, plain))
			}
		}
	case *ast.TableName:
		plain := *n
		plain.IndexHints, plain.PartitionNames = nil, nil
		edits = append(edits, replace(n, plain))
	}
	return edits
}

// replace puts another value in the place of a node.
func replace[T any](n *T, by T) func() func() {
	return func() func() {
		old := *n
		*n = by
		return func() { *n = old }
	}
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// inline puts the table that a common table expression reads in the place of the expression.
func inline(n *ast.SelectStmt) (undo func()) {
	old, in := n.With, &inliner{cte: n.With.CTEs[0]}
	if q, ok := in.cte.Query.Query.(*ast.SelectStmt); ok && q.From != nil {
		if source, ok := q.From.TableRefs.Left.(*ast.TableSource); ok {
			in.table, _ = source.Source.(*ast.TableName)
		}
	}
	if in.table != nil {
		n.With = nil
		n.Accept(in)
	}
	return func() {
		n.With = old
		for _, u := range in.undo {
			u()
		}
	}
}

type inliner struct {
	cte   *ast.CommonTableExpression
	table *ast.TableName
	undo  []func()
}

// Enter replaces the expression's name, which goes on to name the columns.
func (in *inliner) Enter(node ast.Node) (ast.Node, bool) {
	if source, ok := node.(*ast.TableSource); ok {
		if t, ok := source.Source.(*ast.TableName); ok && t.Schema.L == "" && t.Name.L == in.cte.Name.L {
			in.undo = append(in.undo, replace(source, ast.TableSource{Source: in.table, AsName: source.AsName})())
			if source.AsName.L == "" {
				source.AsName = in.cte.Name
			}
			return node, true
		}
	}
	return node, false
}

// Leave changes nothing.
func (in *inliner) Leave(node ast.Node) (ast.Node, bool) { return node, true }
