package pgsyntax

import (
	"strings"

	pg "github.com/pganalyze/pg_query_go/v6"
)

// Fixed are the columns that a condition fixes by equality with constants or parameters, each of which equals one value of the column. They stand without qualifier or with ref.
func Fixed(where *pg.Node, ref string) map[string]bool {
	fixed := map[string]bool{}
	var visit func(n *pg.Node)
	visit = func(n *pg.Node) {
		if b := n.GetBoolExpr(); b != nil && b.Boolop == pg.BoolExprType_AND_EXPR {
			for _, a := range b.Args {
				visit(a)
			}
		}
		e := n.GetAExpr()
		if e == nil || e.Kind != pg.A_Expr_Kind_AEXPR_OP || len(e.Name) != 1 || LastName(e.Name) != "=" {
			return
		}
		for _, side := range [2][2]*pg.Node{{e.Lexpr, e.Rexpr}, {e.Rexpr, e.Lexpr}} {
			if name := Column(side[0], ref); name != "" && fixedValue(side[1]) {
				fixed[name] = true
			}
		}
	}
	visit(where)
	return fixed
}

// Column gives the name of a column reference without qualifier or with that of ref.
func Column(n *pg.Node, ref string) string {
	f := n.GetColumnRef().GetFields()
	if len(f) == 2 && f[0].GetString_().GetSval() == ref {
		f = f[1:]
	}
	if len(f) != 1 {
		return ""
	}
	return f[0].GetString_().GetSval()
}

func fixedValue(n *pg.Node) bool {
	switch v := n.GetNode().(type) {
	case *pg.Node_AConst, *pg.Node_ParamRef:
		return true
	case *pg.Node_TypeCast: // many numbers equal one that is rounded (PostgreSQL manual, 8.1.3)
		return !strings.HasPrefix(LastName(v.TypeCast.GetTypeName().GetNames()), "float") && fixedValue(v.TypeCast.Arg)
	case *pg.Node_AExpr: // -1
		return v.AExpr.Lexpr == nil && fixedValue(v.AExpr.Rexpr)
	}
	return false
}
