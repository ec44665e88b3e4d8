// Package postgres makes statements of PostgreSQL simpler by way of their trees.
package postgres

import (
	"reflect"
	"slices"
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"

	"wirecheck/lab/reduce/tree"
	"wirecheck/statement/pgsyntax"
)

// Simpler reads a statement with PostgreSQL's own grammar and gives it as that grammar's printer writes it, and the same made simpler
// in one place each. It is for reduce.Options.Simpler.
func Simpler(sql string) (self string, simpler []string, known bool) {
	if strings.IndexByte(sql, 0) >= 0 {
		return "", nil, false
	}
	root, err := pgsyntax.Parse(sql)
	if err != nil || len(root.Stmts) != 1 {
		return "", nil, false
	}
	if self, err = pgsyntax.Print(root); err != nil {
		return "", nil, false
	}
	list := tree.Simpler(&root.Stmts[0].Stmt, tree.Grammar{
		Print: func() (string, error) { return pgsyntax.Print(root) }, Enter: enter, Clear: clear, Shorten: shorten, Slot: slot, Constants: constants, Extra: extra,
	})
	return self, slices.DeleteFunc(list, func(text string) bool {
		again, err := pgsyntax.Parse(text)
		return err != nil || len(again.Stmts) != 1
	}), true
}

// lists are the fields that are lists of which a part may go, and those that may go as a whole. The printer is C code, which ends the
// process where a part is missing that it takes for granted: so nothing is taken away but what is named here.
var lists = map[string]bool{
	"TargetList": true, "FromClause": true, "UsingClause": true, "GroupClause": true, "SortClause": true, "WindowClause": true, "LockingClause": true,
	"ReturningList": true, "Ctes": true, "Args": true, "Items": true, "Elements": true, "TableElts": true, "Constraints": true, "Options": true, "IndexParams": true,
	"IndexIncludingParams": true, "PartitionClause": true, "OrderClause": true, "MergeWhenClauses": true, "AggOrder": true, "Keys": true, "ValuesLists": true, "DistinctClause": true,
	"Relations": true, "Cmds": true, "LockedRels": true,
}

var optional = map[string][]string{
	"SelectStmt": {"DistinctClause", "FromClause", "WhereClause", "GroupClause", "GroupDistinct", "HavingClause", "WindowClause", "SortClause", "LockingClause", "WithClause"},
	"InsertStmt": {"OnConflictClause", "ReturningList", "WithClause"}, "UpdateStmt": {"FromClause", "WhereClause", "ReturningList", "WithClause"},
	"DeleteStmt": {"UsingClause", "WhereClause", "ReturningList", "WithClause"}, "MergeStmt": {"WithClause"}, "MergeWhenClause": {"Condition"},
	"OnConflictClause": {"WhereClause"}, "CreateStmt": {"Constraints", "Options", "Partspec", "TableElts", "IfNotExists"}, "ColumnDef": {"Constraints", "CollClause"},
	"IndexStmt": {"WhereClause", "IndexIncludingParams", "Options", "Unique", "NullsNotDistinct"}, "Constraint": {"Deferrable", "Initdeferred", "NullsNotDistinct", "Including"},
	"FuncCall": {"AggOrder", "AggFilter", "Over", "AggDistinct"}, "CaseExpr": {"Arg", "Defresult"}, "WindowDef": {"PartitionClause", "OrderClause"},
	"TransactionStmt": {"Options", "Chain"}, "LockingClause": {"LockedRels"}, "RangeSubselect": {"Lateral"}, "WithClause": {"Recursive"},
}

func enter(node reflect.Type, name string) bool {
	return name != "Location" && name != "Xpr" && name != "Typmods"
}

func clear(node reflect.Type, name string) bool { return slices.Contains(optional[node.Name()], name) }

// shorten says of which lists a part may go; never all of it, but where it is optional.
func shorten(_ reflect.Type, name string) bool { return lists[name] }

// slot tells expressions, tables and queries apart: all are nodes.
func slot(place reflect.Value) string {
	n, ok := place.Interface().(*pg.Node)
	if !ok || n == nil {
		return ""
	}
	switch n.Node.(type) {
	case *pg.Node_AExpr, *pg.Node_BoolExpr, *pg.Node_FuncCall, *pg.Node_CaseExpr, *pg.Node_CoalesceExpr, *pg.Node_MinMaxExpr, *pg.Node_NullTest, *pg.Node_BooleanTest,
		*pg.Node_SubLink, *pg.Node_TypeCast, *pg.Node_AConst, *pg.Node_ColumnRef, *pg.Node_AArrayExpr, *pg.Node_AIndirection, *pg.Node_CollateClause,
		*pg.Node_SqlvalueFunction:
		return "expression"
	case *pg.Node_RangeVar, *pg.Node_JoinExpr, *pg.Node_RangeSubselect:
		return "table"
	case *pg.Node_SelectStmt:
		return "query"
	}
	return ""
}

// plainer says an expression in a plainer way, so that what is one bug looks like one; nil: it is plain.
func plainer(n *pg.Node) *pg.Node {
	if e := n.GetAExpr(); e.GetKind() == pg.A_Expr_Kind_AEXPR_IN && len(e.Rexpr.GetList().GetItems()) == 1 { // a IN (b): a = b
		return &pg.Node{Node: &pg.Node_AExpr{AExpr: &pg.A_Expr{Kind: pg.A_Expr_Kind_AEXPR_OP, Name: e.Name, Lexpr: e.Lexpr, Rexpr: e.Rexpr.GetList().Items[0]}}}
	}
	if e := n.GetBooleanTest(); e != nil && (e.Booltesttype == pg.BoolTestType_IS_FALSE || e.Booltesttype == pg.BoolTestType_IS_NOT_TRUE) { // a IS FALSE: NOT a
		return &pg.Node{Node: &pg.Node_BoolExpr{BoolExpr: &pg.BoolExpr{Boolop: pg.BoolExprType_NOT_EXPR, Args: []*pg.Node{e.Arg}}}}
	}
	return nil
}

// constants may stand where an expression does, and a plainer one.
func constants(kind string, place reflect.Value) (list []reflect.Value) {
	if kind != "expression" {
		return nil
	}
	if plain := plainer(place.Interface().(*pg.Node)); plain != nil {
		list = append(list, reflect.ValueOf(plain))
	}
	if place.Interface().(*pg.Node).GetAConst().GetSval().GetSval() != "" {
		list = append(list, reflect.ValueOf(pg.MakeAConstStrNode("", -1)))
	}
	for _, c := range []*pg.A_Const{
		{Isnull: true}, {Val: &pg.A_Const_Ival{Ival: &pg.Integer{Ival: 1}}}, {Val: &pg.A_Const_Ival{Ival: &pg.Integer{Ival: 0}}}, {Val: &pg.A_Const_Boolval{Boolval: &pg.Boolean{Boolval: true}}},
	} {
		list = append(list, reflect.ValueOf(&pg.Node{Node: &pg.Node_AConst{AConst: c}}))
	}
	return list
}

// extra knows what cannot be said of fields alone.
func extra(node any) (edits []func() func()) {
	switch n := node.(type) {
	case *pg.Node:
		if s := n.GetSelectStmt(); s.GetLarg() != nil { // a set operation: one of its sides
			for _, side := range []*pg.SelectStmt{s.Larg, s.Rarg} {
				edits = append(edits, func() func() {
					old := n.Node
					n.Node = &pg.Node_SelectStmt{SelectStmt: side}
					return func() { n.Node = old }
				})
			}
		}
	case *pg.SelectStmt:
		for _, at := range []**pg.SelectStmt{&n.Larg, &n.Rarg} {
			if s := *at; s != nil && s.Larg != nil {
				edits = append(edits, set(at, s, s.Larg), set(at, s, s.Rarg))
			}
		}
		if count, offset, option := n.LimitCount, n.LimitOffset, n.LimitOption; count != nil || offset != nil {
			edits = append(edits, func() func() {
				n.LimitCount, n.LimitOffset, n.LimitOption = nil, nil, pg.LimitOption_LIMIT_OPTION_DEFAULT
				return func() { n.LimitCount, n.LimitOffset, n.LimitOption = count, offset, option }
			})
		}
	case *pg.InsertStmt:
		for i := range n.Cols {
			edits = append(edits, func() func() { return withoutColumn(n, i) })
		}
	case *pg.JoinExpr:
		edits = append(edits, set(&n.Jointype, n.Jointype, pg.JoinType_JOIN_INNER))
	case *pg.ColumnDef:
		integer := &pg.TypeName{Names: []*pg.Node{pg.MakeStrNode("pg_catalog"), pg.MakeStrNode("int4")}, Typemod: -1}
		if n.TypeName != nil {
			name, collation := n.TypeName, n.CollClause
			edits = append(edits, func() func() {
				n.TypeName, n.CollClause = integer, nil
				return func() { n.TypeName, n.CollClause = name, collation }
			})
		}
	case *pg.TransactionStmt:
		if n.Kind == pg.TransactionStmtKind_TRANS_STMT_START {
			edits = append(edits, set(&n.Kind, n.Kind, pg.TransactionStmtKind_TRANS_STMT_BEGIN))
		}
	}
	return edits
}

func set[T any](at *T, old, value T) func() func() {
	return func() func() {
		*at = value
		return func() { *at = old }
	}
}

// withoutColumn leaves the i-th column and its values out of an INSERT ... VALUES.
func withoutColumn(n *pg.InsertStmt, i int) (undo func()) {
	cols := n.Cols
	n.Cols = without(cols, i)
	undo = func() { n.Cols = cols }
	for _, row := range n.SelectStmt.GetSelectStmt().GetValuesLists() {
		list := row.GetList()
		if list == nil || i >= len(list.Items) {
			continue
		}
		before, items := undo, list.Items
		list.Items = without(items, i)
		undo = func() { before(); list.Items = items }
	}
	return undo
}

func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }
